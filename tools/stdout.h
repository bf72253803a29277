/* SPDX-License-Identifier: MIT */
/* tools/stdout.h - standard output for lines by the hundred thousand: put into a buffer by inline
 * code, written in large pieces.  One thread; whoever prints so does not use stdout, too. */
#ifndef PFS_TOOLS_STDOUT_H
#define PFS_TOOLS_STDOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"

#define PFS_STDOUT_SIZE ((size_t)256 << 10)

struct pfs_stdout {
	size_t n;
	int error; /* of a write, after which nothing is written; noticed at the end */
	char bytes[PFS_STDOUT_SIZE];
};

/* Writes what has been put. */
void pfs_stdout_flush(struct pfs_stdout *out);

/* As pfs_stdout_flush, at the end. Returns `status`; or PFS_EXIT_FAILURE, with a line, if something
 * did not get out. */
PFS_MUST_CHECK int pfs_stdout_end(struct pfs_stdout *out, const char *verb, int status);

/* Takes what the buffer has no room for. */
void pfs_stdout_overflow(struct pfs_stdout *out, const char *bytes, size_t n);

static inline void pfs_stdout_put(struct pfs_stdout *out, const char *bytes, size_t n)
{
	if (n > sizeof(out->bytes) - out->n) {
		pfs_stdout_overflow(out, bytes, n);
	} else {
		(void)memcpy(out->bytes + out->n, bytes, n);
		out->n += n;
	}
}

static inline void pfs_stdout_char(struct pfs_stdout *out, char c)
{
	if (out->n == sizeof(out->bytes))
		pfs_stdout_flush(out);
	out->bytes[out->n++] = c;
}

static inline void pfs_stdout_text(struct pfs_stdout *out, const char *text)
{
	pfs_stdout_put(out, text, strlen(text));
}

/* Put n bytes into a column, after or before blanks that make them `width`. */
void pfs_stdout_right(struct pfs_stdout *out, const char *bytes, size_t n, size_t width);
void pfs_stdout_left(struct pfs_stdout *out, const char *bytes, size_t n, size_t width);

/* Puts a number to the right of a column; returns how wide it is, which may be more than the
 * width. */
size_t pfs_stdout_number(struct pfs_stdout *out, uint64_t number, size_t width);

/* Prints by printf, which is slow, what is rare. */
void pfs_stdout_printf(struct pfs_stdout *out, const char *format, ...) PFS_PRINTF(2, 3);

/* A name or path.  For a terminal with ? for what does not print in the locale, so that no name can
 * tell it what to do.  The same into `to`, which is as large, without a NUL; returns the size. */
void pfs_stdout_name(struct pfs_stdout *out, const char *name, size_t len, bool terminal);
size_t pfs_printable(char *to, const char *name, size_t len, bool terminal);

/* Returns the number as text, in digits; *len: its length. */
#define PFS_DIGITS PFS_NUMBER_SIZE
static inline const char *pfs_decimal(char digits[PFS_DIGITS], size_t *len, uint64_t number)
{
	*len = pfs_print_unsigned(digits, number);
	return digits;
}

#endif
