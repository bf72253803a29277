/* SPDX-License-Identifier: MIT */
/* fs/build/build.h - many nodes at once, into a store: what import is made of.
 *
 * Nodes come in any order, parents before their children.  finish() lays slots out in pre-order
 * (children in byte order of names), gives the heaviest directories the smallest primes, and
 * writes the records in order of primes.  Content, attributes and sources go straight to the
 * store: for what is certain to stay no directory at once (pfs_build_fix), else after finish().
 *
 * Into a new store: one bulk file, which gets its name when it is complete.  Into an existing one:
 * one transaction under a directory of it.  Either way an interrupted build leaves nothing behind.
 *
 * Threads: one at a time.
 * Memory: at most 64 bytes a node besides the names, plus 64 when nodes carry stat attributes. */
#ifndef PFS_FS_BUILD_BUILD_H
#define PFS_FS_BUILD_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "meta/store.h"

struct pfs_build;

#define PFS_BUILD_ROOT 0u /* the node that things are added under: the root, or `at` */

struct pfs_build_options {
	const char *at; /* NULL: a new store; else a path in an existing one, made if missing */
	struct stat defaults; /* permissions of files (a directory gets x where r is), owner and
				 times of what is added without attributes */
	mode_t mode;	      /* of a new store's file; 0: 0600 */
	unsigned wait_ms;     /* for another process's lock on an existing store */
	void *arg;	      /* for the functions, any of which may be NULL: */
	void (*progress)(void *arg, uint64_t done, uint64_t total); /* of finish() */
	/* Called by finish() before a node's record is written: for numbers of it (meta/format.h)
	 * that come from elsewhere than its attributes. */
	void (*number)(void *arg, uint32_t node, struct pfs_node_record *record);
	/* Called by finish() after a node's record was written, in order of primes, to put what
	 * belongs to the node into the store; not 0 ends the build, and finish() returns it. */
	int (*written)(void *arg, uint32_t node, uint64_t prime);
};

/* -EEXIST: a new store's name is taken; -ENOTDIR: at is, or lies under, no directory; and what
 * pfs_store_open says.  *out is NULL on failure. */
PFS_MUST_CHECK int pfs_build_open(struct pfs_build **out, const char *store,
				  const struct pfs_build_options *options);

/* Abandons an unfinished build: nothing of it remains.  NULL is allowed. */
void pfs_build_close(struct pfs_build *build);

/* The file to unlink if the process is to end before commit; NULL with an existing store. */
const char *pfs_build_temporary(const struct pfs_build *build);

enum pfs_build_seen {
	PFS_BUILD_NEW,
	PFS_BUILD_AGAIN,  /* added before; attr is left alone */
	PFS_BUILD_STORED, /* the store had it before the build; attr is left alone */
};

/* Adds a node, or finds it.  attr NULL: the defaults.  The type is attr's, a regular file without
 * attr; what is no more than a regular file becomes a directory when it gets children.
 * ".query" is stored as ".query~" (counted).  -ENAMETOOLONG; -EINVAL (empty, "." and "..", '/' or
 * NUL in it); -ENOTDIR (the parent is no directory and cannot become one); -ENOTUNIQ (".query" and
 * ".query~" were both added); -ENOMEM; -EFBIG (more than 2^32 - 2 nodes). */
PFS_MUST_CHECK int pfs_build_add(struct pfs_build *build, uint32_t *node, enum pfs_build_seen *seen,
				 uint32_t parent, const void *name, size_t name_len,
				 const struct stat *attr);

/* The child of that name: -ENOENT. */
PFS_MUST_CHECK int pfs_build_find(const struct pfs_build *build, uint32_t *node, uint32_t parent,
				  const void *name, size_t name_len);

/* Replaces the attributes (a directory's own record may come after its children).  -EISDIR: the
 * node has children and attr is no directory's; -ENOTDIR: the node is fixed and attr is one's. */
PFS_MUST_CHECK int pfs_build_set(struct pfs_build *build, uint32_t node, const struct stat *attr);

/* A symlink's target, PFS_TARGET_MAX bytes at most (-ENAMETOOLONG); the last one set counts. */
PFS_MUST_CHECK int pfs_build_set_target(struct pfs_build *build, uint32_t node, const void *target,
					size_t len);

/* Makes a directory of a node that has no attributes of its own.  -ENOTDIR: it is something else.
 */
PFS_MUST_CHECK int pfs_build_set_directory(struct pfs_build *build, uint32_t node);

/* Adds to (or takes from) the record's enum pfs_node_flag. */
void pfs_build_set_flags(struct pfs_build *build, uint32_t node, uint32_t set, uint32_t clear);

/* The node's path below PFS_BUILD_ROOT ("" for itself), of names as they were added (".query" too),
 * with a NUL at its end.  Returns its length; -ENAMETOOLONG. */
PFS_MUST_CHECK ssize_t pfs_build_path(const struct pfs_build *build, char *out, size_t size,
				      uint32_t node);

/* The attributes that were added or set; false: none, the defaults will do. */
bool pfs_build_get(const struct pfs_build *build, struct stat *attr, uint32_t node);

/* With children, or with a directory's attributes. */
bool pfs_build_is_directory(const struct pfs_build *build, uint32_t node);
bool pfs_build_has_children(const struct pfs_build *build, uint32_t node);
uint64_t pfs_build_count(const struct pfs_build *build); /* nodes added */

/* Gives the node, no directory for ever, its prime now, so that content, attributes and sources
 * can be written to the store as they come.  -EISDIR. */
PFS_MUST_CHECK int pfs_build_fix(struct pfs_build *build, uint64_t *prime, uint32_t node);

/* Takes the prime back (it is not used again), so that the node may become a directory; what was
 * written under it is the caller's to remove. */
void pfs_build_unfix(struct pfs_build *build, uint32_t node);

/* Writes all node records.  Afterwards, and in options.written, only the functions that look at a
 * build may be called, and commit and close. */
PFS_MUST_CHECK int pfs_build_finish(struct pfs_build *build);

/* The node's prime: of fixed nodes and of a store's own at once, of all after finish(); else 0. */
uint64_t pfs_build_prime(const struct pfs_build *build, uint32_t node);

/* The store, in the middle of the build's group. */
struct pfs_store *pfs_build_store(struct pfs_build *build);

/* Commits, syncs, puts the file in place, closes the store; only report and close may follow.
 * -EEXIST: somebody else made a file of that name meanwhile. */
PFS_MUST_CHECK int pfs_build_commit(struct pfs_build *build);

struct pfs_build_report {
	uint64_t nodes, directories, files; /* added */
	uint64_t bytes;			    /* sum of st_size of what is no directory */
	uint64_t renamed_query;		    /* entries stored as ".query~" */
};
void pfs_build_report(const struct pfs_build *build, struct pfs_build_report *out);

#endif
