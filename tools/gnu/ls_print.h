/* SPDX-License-Identifier: MIT */
/* tools/gnu/ls_print.h - what `primefs ls` prints of a directory's entries, as ls(1) does: one a
 * line, in columns, or at length.  One thread. */
#ifndef PFS_TOOLS_GNU_LS_PRINT_H
#define PFS_TOOLS_GNU_LS_PRINT_H

#include <sys/types.h>

#include "tools/stdout.h"

struct pfs_ls_entry {
	char type;     /* find's letter */
	uint32_t node; /* the caller's */
	const char *name, *target; /* NUL-terminated */
	size_t len, target_len;
	uint64_t ino;
	/* what follows only if it is asked for */
	uint64_t nlink, rdev;
	int64_t size, blocks, mtime;
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

struct pfs_ls_style {
	enum { PFS_LS_LINES, PFS_LS_COLUMNS, PFS_LS_LONG } form;
	bool inodes, human, numeric;
	bool quotes; /* names as words of a shell, for a terminal; else as they are */
	size_t line; /* COLUMNS: characters of one */
};

/* Prints n entries, in columns that are as wide as the first n_measured need.  -ENOMEM. */
PFS_MUST_CHECK int pfs_ls_put(struct pfs_stdout *out, const struct pfs_ls_style *style,
			      const struct pfs_ls_entry *entries, size_t n, size_t n_measured);
/* Prints "total 12": what the entries take. */
void pfs_ls_put_total(struct pfs_stdout *out, const struct pfs_ls_style *style,
		      const struct pfs_ls_entry *entries, size_t n);
/* Prints the heading "path:". */
void pfs_ls_put_heading(struct pfs_stdout *out, const struct pfs_ls_style *style, const char *path,
			size_t len);

#endif
