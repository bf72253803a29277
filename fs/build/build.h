/* SPDX-License-Identifier: MIT */
/* fs/build/build.h - puts many nodes into a store at once: what import is made of.
 *
 * Nodes are added in any order, parents before their children. finish() lays slots out in pre-order
 * (children in byte order of names), gives the heaviest directories the smallest primes, and writes
 * the records in order of primes. Content, attributes and sources go straight to the store: at once
 * for a node that will certainly stay no directory (pfs_build_fix), for others after finish().
 *
 * A new store is one bulk file, which gets its name when it is complete. Into an existing store a
 * build is one transaction below one of its directories. Either way an interrupted build leaves
 * nothing behind.
 *
 * Threads: one at a time. finish() has threads of its own: it calls options.progress and
 * options.written on any of them, one call after the other, and options.number beside these.
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

#define PFS_BUILD_ROOT 0u /* what is added lies under this node: the root, or `at` */

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

/* Begins a build. -EEXIST: the new store's name is taken; -ENOTDIR: `at` is, or lies under,
 * something that is no directory; and what pfs_store_open returns. *out is NULL on failure. */
PFS_MUST_CHECK int pfs_build_open(struct pfs_build **out, const char *store,
				  const struct pfs_build_options *options);

/* Frees the build; one that is not committed leaves nothing in the store. NULL is allowed. */
void pfs_build_close(struct pfs_build *build);

/* Returns the file to unlink if the process is to end before commit; NULL with an existing
 * store. */
const char *pfs_build_temporary(const struct pfs_build *build);

enum pfs_build_seen {
	PFS_BUILD_NEW,
	PFS_BUILD_AGAIN,  /* added before; attr is left alone */
	PFS_BUILD_STORED, /* the store had it before the build; attr is left alone */
};

/* Adds a node, or finds the one of that name. attr NULL: it has the defaults. Its type is attr's,
 * and a regular file's without attr; a regular file becomes a directory when it gets children.
 * ".query" is stored as ".query~", which is counted. -ENAMETOOLONG; -EINVAL: the name is empty, "."
 * or "..", or has '/' or NUL in it; -ENOTDIR: the parent is no directory and cannot become one;
 * -ENOTUNIQ: ".query" and ".query~" were both added; -ENOMEM; -EOVERFLOW: there would be more
 * than PFS_SLOT_MAX nodes. */
PFS_MUST_CHECK int pfs_build_add(struct pfs_build *build, uint32_t *node, enum pfs_build_seen *seen,
				 uint32_t parent, const void *name, size_t name_len,
				 const struct stat *attr);

/* Fetches what adding or finding that child soon will look at into the processor's cache. */
void pfs_build_expect(const struct pfs_build *build, uint32_t parent, const void *name,
		      size_t name_len);

/* Finds the child of that name. -ENOENT: there is none. */
PFS_MUST_CHECK int pfs_build_find(const struct pfs_build *build, uint32_t *node, uint32_t parent,
				  const void *name, size_t name_len);

/* Replaces the node's attributes: a directory's own record may come after its children. -EISDIR:
 * the node has children, and attr is no directory's; -ENOTDIR: the node is fixed, and attr is a
 * directory's. */
PFS_MUST_CHECK int pfs_build_set(struct pfs_build *build, uint32_t node, const struct stat *attr);

/* Sets a symlink's target; a later one replaces it. -ENAMETOOLONG: it has more than PFS_TARGET_MAX
 * bytes. */
PFS_MUST_CHECK int pfs_build_set_target(struct pfs_build *build, uint32_t node, const void *target,
					size_t len);

/* Makes a node that has no attributes of its own a directory. -ENOTDIR: it is something else
 * already. */
PFS_MUST_CHECK int pfs_build_set_directory(struct pfs_build *build, uint32_t node);

/* pfs_build_is_top returns true for the highest directories below which all is new: `at` itself if
 * nothing lay in it and something does now, else each directory that is new in one that was there
 * before; or a new store's root. pfs_build_is_grown returns true for `at` and directories below it
 * that were there before and have got children. pfs_build_next_place gets the next node from number
 * *from on that is one or the other, and *from goes behind it. Returns false if there is none. */
bool pfs_build_is_top(const struct pfs_build *build, uint32_t node);
bool pfs_build_is_grown(const struct pfs_build *build, uint32_t node);
bool pfs_build_next_place(const struct pfs_build *build, uint32_t *node, uint32_t *from);

/* Sets and clears flags (enum pfs_node_flag) of the node's record. */
void pfs_build_set_flags(struct pfs_build *build, uint32_t node, uint32_t set, uint32_t clear);

/* Writes the node's path below PFS_BUILD_ROOT ("" for that node itself), made of the names as they
 * were added (".query" too), and a NUL. Returns its length; -ENAMETOOLONG. */
PFS_MUST_CHECK ssize_t pfs_build_path(const struct pfs_build *build, char *out, size_t size,
				      uint32_t node);

/* Gets the attributes that were added or set. Returns false if there are none: the node has the
 * defaults. */
bool pfs_build_get(const struct pfs_build *build, struct stat *attr, uint32_t node);

/* Returns true if the node has children or a directory's attributes. */
bool pfs_build_is_directory(const struct pfs_build *build, uint32_t node);
bool pfs_build_has_children(const struct pfs_build *build, uint32_t node);
uint64_t pfs_build_count(const struct pfs_build *build); /* nodes added */

/* Gives the node, which may then never become a directory, its prime now, so that content,
 * attributes and sources can be written to the store as they come. -EISDIR. */
PFS_MUST_CHECK int pfs_build_fix(struct pfs_build *build, uint64_t *prime, uint32_t node);

/* Takes the prime back, which is not used again, so that the node may become a directory. The
 * caller removes what was written under that prime. */
void pfs_build_unfix(struct pfs_build *build, uint32_t node);

/* Writes all node records.  Afterwards, and in options.written, only the functions that look at a
 * build may be called, and commit and close. -EOVERFLOW: there would be more than PFS_SLOT_MAX
 * slots; and what the store's functions return. */
PFS_MUST_CHECK int pfs_build_finish(struct pfs_build *build);

/* Returns the node's prime: of a fixed node, or of a node of the existing store, at once; of all
 * others after finish(), and 0 before. */
uint64_t pfs_build_prime(const struct pfs_build *build, uint32_t node);

/* Returns the store, in the middle of the build's group. */
struct pfs_store *pfs_build_store(struct pfs_build *build);

/* Commits, syncs, puts the file in place and closes the store; only report and close may follow.
 * -EEXIST: somebody else has made a file of that name meanwhile. */
PFS_MUST_CHECK int pfs_build_commit(struct pfs_build *build);

struct pfs_build_report {
	uint64_t nodes, directories, files; /* added */
	uint64_t bytes;			    /* sum of st_size of what is no directory */
	uint64_t renamed_query;		    /* entries stored as ".query~" */
};
void pfs_build_report(const struct pfs_build *build, struct pfs_build_report *out);

#endif
