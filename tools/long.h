/* SPDX-License-Identifier: MIT */
/* tools/long.h - the fields of `ls -l` and `find -ls`, as GNU prints them. */
#ifndef PFS_TOOLS_LONG_H
#define PFS_TOOLS_LONG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define PFS_MODE_SIZE 11
#define PFS_WHEN_SIZE 32

/* type: find's letter. */
void pfs_print_mode(char out[PFS_MODE_SIZE], char type, mode_t mode);

/* Nanoseconds since 1970: "Nov 21 07:30" within the last half year, else "Nov 21  2020". */
void pfs_print_when(char out[PFS_WHEN_SIZE], int64_t time);

/* Bytes as `du -h` and `ls -h` have them, rounded up: "512", "1.5K", "12M". */
#define PFS_HUMAN_SIZE 24
void pfs_print_human(char out[PFS_HUMAN_SIZE], uint64_t bytes);

/* The number as text, somewhere in out: snprintf takes longer than all else that a line needs. */
#define PFS_DECIMAL_SIZE 24
const char *pfs_decimal(char out[PFS_DECIMAL_SIZE], uint64_t number);

/* A name or path.  For a terminal with ? for what does not print in the locale, so that no name can
 * tell it what to do. */
void pfs_print_name(FILE *out, const char *name, size_t len, bool terminal);

/* NULL if there is none; valid until the next call of the same.  One thread. */
const char *pfs_user_name(uid_t uid);
const char *pfs_group_name(gid_t gid);

#endif
