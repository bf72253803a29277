/* SPDX-License-Identifier: MIT */
/* fs/attr/hash.h - the text that is kept as a file's hash (pfs_tree_set_hash): the size and mtime
 * of the file that it is of, and 32 hexadecimal digits. */
#ifndef PFS_FS_ATTR_HASH_H
#define PFS_FS_ATTR_HASH_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PFS_HASH_NAME	   "primefs.hash" /* the attribute, without "user." */
#define PFS_HASH_DIGITS	   32
#define PFS_HASH_TEXT_SIZE 128

/* Writes what stands before the digits of a hash of a file of that size and mtime. Returns its
 * length in bytes. */
static inline int pfs_hash_describe(char out[PFS_HASH_TEXT_SIZE], int64_t size,
				    struct timespec mtime)
{
	return snprintf(out, PFS_HASH_TEXT_SIZE, "xxh128 %" PRId64 " %" PRId64 ".%09ld ", size,
			(int64_t)mtime.tv_sec, mtime.tv_nsec);
}

/* Returns the digits, which follow the description, if the text is of a file of that size and
 * mtime; else NULL. */
static inline const char *pfs_hash_of(const char *text, size_t len, int64_t size,
				      struct timespec mtime)
{
	char now[PFS_HASH_TEXT_SIZE];
	size_t before = (size_t)pfs_hash_describe(now, size, mtime);

	return len == before + PFS_HASH_DIGITS && memcmp(text, now, before) == 0 ? text + before
										 : NULL;
}

#endif
