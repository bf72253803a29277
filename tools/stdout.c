/* SPDX-License-Identifier: MIT */
#include "tools/stdout.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

#include "base/checked.h"
#include "tools/cmd.h"

static void write_all(struct pfs_stdout *out, const char *bytes, size_t n)
{
	while (n && !out->error) {
		ssize_t written = write(STDOUT_FILENO, bytes, n);

		if (written >= 0) {
			bytes += written;
			n -= (size_t)written;
		} else if (errno != EINTR) {
			out->error = errno;
		}
	}
}

void pfs_stdout_flush(struct pfs_stdout *out)
{
	write_all(out, out->bytes, out->n);
	out->n = 0;
}

int pfs_stdout_end(struct pfs_stdout *out, const char *verb, int status)
{
	pfs_stdout_flush(out);
	if (!out->error || status == PFS_EXIT_FAILURE)
		return status;
	return pfs_cmd_fail(verb, "standard output: %s", strerror(out->error));
}

void pfs_stdout_overflow(struct pfs_stdout *out, const char *bytes, size_t n)
{
	pfs_stdout_flush(out);
	if (n > sizeof(out->bytes))
		write_all(out, bytes, n);
	else
		pfs_stdout_put(out, bytes, n);
}

static void put_blanks(struct pfs_stdout *out, size_t n)
{
	static const char blanks[] = "                                ";

	for (; n >= sizeof(blanks); n -= sizeof(blanks) - 1)
		pfs_stdout_put(out, blanks, sizeof(blanks) - 1);
	pfs_stdout_put(out, blanks, n);
}

void pfs_stdout_right(struct pfs_stdout *out, const char *bytes, size_t n, size_t width)
{
	if (n < width)
		put_blanks(out, width - n);
	pfs_stdout_put(out, bytes, n);
}

void pfs_stdout_left(struct pfs_stdout *out, const char *bytes, size_t n, size_t width)
{
	pfs_stdout_put(out, bytes, n);
	if (n < width)
		put_blanks(out, width - n);
}

size_t pfs_stdout_number(struct pfs_stdout *out, uint64_t number, size_t width)
{
	char digits[PFS_DIGITS];
	size_t len;
	const char *text = pfs_decimal(digits, &len, number);

	pfs_stdout_right(out, text, len, width);
	return PFS_MAX(len, width);
}

void pfs_stdout_printf(struct pfs_stdout *out, const char *format, ...)
{
	char *text = NULL;
	va_list values;
	int n;

	va_start(values, format);
	n = vasprintf(&text, format, values);
	va_end(values);
	if (n < 0) {
		out->error = ENOMEM;
		return;
	}
	pfs_stdout_put(out, text, (size_t)n);
	free(text);
}

/* ---- names ---- */

/* Bytes of the first character, or of what is none; *prints: it can be shown. */
static size_t first_character(bool *prints, const char *text, size_t len)
{
	mbstate_t state = {0};
	wchar_t c = 0;
	size_t n = mbrtowc(&c, text, len, &state);

	*prints = n <= len && wcwidth(c) >= 0;
	if (n == (size_t)-2) /* the beginning of one */
		return len;
	return n && n <= len ? n : 1;
}

size_t pfs_printable(char *to, const char *name, size_t len, bool terminal)
{
	char *at = to;
	bool prints;
	size_t n;

	if (!terminal)
		at = mempcpy(at, name, len);
	for (; terminal && len; name += n, len -= n) {
		n = first_character(&prints, name, len);
		at = mempcpy(at, prints ? name : "?", prints ? n : 1);
	}
	return (size_t)(at - to);
}

void pfs_stdout_name(struct pfs_stdout *out, const char *name, size_t len, bool terminal)
{
	char *text;

	if (!terminal) {
		pfs_stdout_put(out, name, len);
	} else if ((text = malloc(len + 1))) {
		pfs_stdout_put(out, text, pfs_printable(text, name, len, true));
		free(text);
	} else {
		out->error = ENOMEM;
	}
}
