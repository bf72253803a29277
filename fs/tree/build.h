/* SPDX-License-Identifier: MIT */
/* fs/tree/build.h - many nodes at once, into a store: what import is made of.
 *
 * Nodes come in any order, parents before their children or implied by paths; finish() lays slots
 * out in pre-order (children in byte order of names), gives the heaviest directories the smallest
 * primes, and writes the records in order of primes.  Content and attributes of a node may be
 * written at once for what is certain to stay no directory (pfs_build_fix), else after finish().
 *
 * Into a new store: one bulk file, renamed into place when complete.  Into an existing one: one
 * transaction under a directory of it.  Either way an interrupted build leaves nothing behind.
 *
 * Threads: one at a time, except where it says so.
 * Memory: at most 64 bytes a node besides the names, plus 48 when nodes carry stat attributes. */
#ifndef PFS_FS_TREE_BUILD_H
#define PFS_FS_TREE_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "meta/store.h"

struct pfs_build;

#define PFS_BUILD_ROOT 0u /* the node that things are added under: the root, or `at` */

struct pfs_build_options {
	const char *at; /* NULL: a new store (-EEXIST when there is one); else a path in it */
	struct stat defaults; /* mode (files; directories get x where r is), owner and times for what
				 is added without attributes */
};

PFS_MUST_CHECK int pfs_build_open(struct pfs_build **out, const char *store,
				  const struct pfs_build_options *options);

/* Abandons an unfinished build: nothing of it remains.  NULL is allowed. */
void pfs_build_close(struct pfs_build *build);

/* Adds a node, or finds it: *node = its number, *found = it was there already (attr then left
 * alone).  attr NULL: the defaults; the type is attr's, a directory when it gets children.
 * ".query" is stored as ".query~" (counted).  -ENAMETOOLONG, -EINVAL (empty, "." and "..", '/' or
 * NUL in it), -ENOTDIR (parent is fixed as no directory), -ENOMEM, -EFBIG (more than 2^32 - 2). */
PFS_MUST_CHECK int pfs_build_add(struct pfs_build *build, uint32_t *node, bool *found,
				 uint32_t parent, const void *name, size_t name_len,
				 const struct stat *attr);

/* The child of that name: -ENOENT. */
PFS_MUST_CHECK int pfs_build_find(struct pfs_build *build, uint32_t *node, uint32_t parent,
				  const void *name, size_t name_len);

/* A node without a place yet, for parent/child tables whose rows come in any order: place() gives
 * it one later.  Unplaced nodes at finish() are an error of the caller's. */
PFS_MUST_CHECK int pfs_build_detached(struct pfs_build *build, uint32_t *node,
				      const struct stat *attr);
/* -EEXIST: the name is taken; -ELOOP: parent lies under node. */
PFS_MUST_CHECK int pfs_build_place(struct pfs_build *build, uint32_t node, uint32_t parent,
				   const void *name, size_t name_len);

/* Replaces the attributes (a directory's own record may come after its children). */
PFS_MUST_CHECK int pfs_build_set(struct pfs_build *build, uint32_t node, const struct stat *attr);
PFS_MUST_CHECK int pfs_build_set_target(struct pfs_build *build, uint32_t node, const void *target,
					size_t len);
PFS_MUST_CHECK int pfs_build_set_flags(struct pfs_build *build, uint32_t node, uint32_t flags);

bool pfs_build_is_directory(const struct pfs_build *build, uint32_t node);
uint64_t pfs_build_count(const struct pfs_build *build); /* nodes added */

/* Gives the node, no directory for ever, its prime now, so that content, attributes and sources
 * can be written to the store as they come. */
PFS_MUST_CHECK int pfs_build_fix(struct pfs_build *build, uint64_t *prime, uint32_t node);

/* Writes all node records.  Afterwards only prime, is_directory, store and commit may be called. */
PFS_MUST_CHECK int pfs_build_finish(struct pfs_build *build);

/* The node's prime: fixed nodes at once, all after finish(). */
uint64_t pfs_build_prime(const struct pfs_build *build, uint32_t node);

/* The store, in the middle of the build's group. */
struct pfs_store *pfs_build_store(struct pfs_build *build);

/* Commits, syncs, puts the file in place, closes the store; only pfs_build_close may follow. */
PFS_MUST_CHECK int pfs_build_commit(struct pfs_build *build);

struct pfs_build_report {
	uint64_t nodes, directories, files, bytes;
	uint64_t renamed_query; /* entries stored as ".query~" */
	uint64_t store_bytes;
};
void pfs_build_report(const struct pfs_build *build, struct pfs_build_report *out);

#endif
