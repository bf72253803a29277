/* SPDX-License-Identifier: MIT */
/* tools/gnu/long_fields.h - the fields of `ls -l` and `find -ls`, as GNU prints them.  One
 * thread. */
#ifndef PFS_TOOLS_GNU_LONG_FIELDS_H
#define PFS_TOOLS_GNU_LONG_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define PFS_MODE_SIZE 11

/* type: find's letter. */
void pfs_print_mode(char out[PFS_MODE_SIZE], char type, mode_t mode);

/* "Nov 21 07:30" if it is recent, else "Nov 21  2020", of nanoseconds since 1970; *len: its length.
 * Valid until the next call. */
#define PFS_DATES 1024
struct pfs_dates {
	bool (*is_recent)(time_t now, time_t seconds);
	time_t now; /* of the first call */
	struct {
		bool known, recent;
		time_t minute; /* where it begins: all of its seconds are printed the same */
		size_t len;
		char text[32];
	} kept[PFS_DATES];
};
const char *pfs_date(struct pfs_dates *dates, size_t *len, int64_t time_ns);

/* Bytes as `du -h` and `ls -h` have them, rounded up: "512", "1.5K", "12M". */
#define PFS_HUMAN_SIZE 24
void pfs_print_human(char out[PFS_HUMAN_SIZE], uint64_t bytes);

/* Return the name of the user, and of the group; NULL if there is none. Valid until the next call
 * of the same function; *len is its length. */
const char *pfs_user_name(uid_t uid, size_t *len);
const char *pfs_group_name(gid_t gid, size_t *len);

#endif
