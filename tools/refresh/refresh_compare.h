/* SPDX-License-Identifier: MIT */
/* tools/refresh/refresh_compare.h - what refresh_walk.c (directories), refresh_closed.c
 * (directories that need not be opened) and refresh_entry.c (entries) share; refresh_behind.c and
 * refresh_apply.c need some of it. No other file includes it. */
#ifndef PFS_TOOLS_REFRESH_REFRESH_COMPARE_H
#define PFS_TOOLS_REFRESH_REFRESH_COMPARE_H

#include <string.h>
#include <sys/stat.h>

#include "tools/refresh/refresh_impl.h"

#define PFS_TAKE_RIGHTS (PFS_SET_MODE | PFS_SET_UID | PFS_SET_GID)
#define PFS_TAKE_ALL                                                                               \
	(PFS_TAKE_RIGHTS | PFS_SET_SIZE | PFS_SET_ATIME | PFS_SET_MTIME | PFS_SET_CTIME)

/* One directory that is being compared. */
struct pfs_comparison {
	struct pfs_refresh *refresh;
	struct pfs_refresh_place *place;
	int fd;
	dev_t dev;
	bool mounted;	      /* something is mounted where the directory lies */
	const char *old_path; /* the path that the directory's record has */
	bool listing;	      /* the directory's listing is read anew */
	bool adopting;	      /* the store is an older one, with records of regular files alone */
	uint32_t *by_name;    /* if listing: the children in the order of their names */
	uint8_t *seen;	      /* a flag a child: the source has it */
	char **unknown;	      /* names that no child has; NULL: a child had this one once */
	size_t n_unknown, unknown_capacity;
};

static inline bool pfs_are_times_equal(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Returns true if the directory and its listing are as they were when it was last read. mounted:
 * something is mounted there. */
static inline bool pfs_is_unchanged(const struct pfs_follower *directory, const struct statx *now,
				    bool mounted)
{
	return directory->flags & PFS_NODE_SETTLED &&
	       (directory->flags & PFS_NODE_MOUNT) == (mounted ? PFS_NODE_MOUNT : 0) &&
	       pfs_are_times_equal(directory->attr.st_mtim,
				   pfs_timespec_of_statx(now->stx_mtime)) &&
	       pfs_are_times_equal(directory->attr.st_ctim, pfs_timespec_of_statx(now->stx_ctime));
}

/* Returns true if files in the place are not looked at, since the directory is the node's own. In
 * another directory that has taken the node's name a file of the same name need not be the node's,
 * and the node's may have moved. */
static inline bool pfs_passes_over_files(const struct pfs_comparison *comparison)
{
	const struct pfs_refresh *refresh = comparison->refresh;
	const struct pfs_refresh_place *place = comparison->place;

	return refresh->options->quick && !place->old_path &&
	       !pfs_refresh_find(refresh, place->ino);
}

/* Returns true if the child is not looked at: it is a file, and the refresh a quick one. But where
 * both store and source have changed a directory, names do not tell whose original an entry is, and
 * the next refresh finds the listing unchanged. */
static inline bool pfs_passes_over(const struct pfs_comparison *comparison,
				   const struct pfs_follower *child)
{
	return !S_ISDIR(child->attr.st_mode) && pfs_passes_over_files(comparison) &&
	       !(comparison->listing && comparison->place->touched);
}

/* Returns a node's name as the source has it. */
static inline const char *pfs_source_name(const char *name)
{
	return *name == '.' && strcmp(name, ".query~") == 0 ? ".query" : name;
}

/* ---- refresh_closed.c ---- */

/* Compares a directory in the place, and all below it, without opening it. Directories below it
 * that have to be opened are put on the list of places to be walked. *closed is false if the
 * directory itself has to be walked. */
PFS_MUST_CHECK int pfs_compare_closed(struct pfs_comparison *comparison, bool *closed,
				      const struct pfs_follower *child, const char *name,
				      const struct statx *now);

/* ---- refresh_entry.c ---- */

/* Compares the entries of the place's directory, which has been entered (pfs_refresh_enter). */
PFS_MUST_CHECK int pfs_compare_children(struct pfs_comparison *comparison);

#endif
