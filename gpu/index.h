/* SPDX-License-Identifier: MIT */
/* gpu/index.h - ordered indexes: B+-trees of 64-bit keys and values of 32 or 64 bits (S5), in the
 * host's memory or a device's.
 *
 * An index is either unique, with one value a key, or has duplicates: then its entries are unique
 * as (key, value) pairs, and the values of a key come in ascending order.  Everything is asked in
 * batches, of one or of millions.  Both back ends give the same answers; cursors are the host's
 * alone. Values are arrays of uint32_t; of uint64_t where the index is wide. Not here: other pages
 * on a device than a warp's.
 *
 * Threads: any number.  Each batch of changes is one step: a batch of questions sees the index
 * before it or after it, never between.  Questions run side by side. Where: on run->on's back end
 * if it can be had when the index is built, and there it stays; a device that is short of memory
 * hands the index to the host, with a warning. Errors of all functions, beside their own: -ENOMEM;
 * what run->poll answers; -EIO: the device failed and what the index held is lost with it: close it
 * and build it anew. */
#ifndef PFS_GPU_INDEX_H
#define PFS_GPU_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/run.h"

#define PFS_INDEX_NONE	    UINT32_MAX /* no value: no entry may have it */
#define PFS_INDEX_WIDE_NONE UINT64_MAX /* the same of a wide index, wherever NONE is meant below */
#define PFS_INDEX_BATCH_MAX ((size_t)1 << 30)

struct pfs_index;

enum pfs_index_kind { PFS_INDEX_UNIQUE, PFS_INDEX_DUPLICATES };

/* On the host a leaf is a page of up to so many entries; a device's are as wide as a warp, whatever is said here.
 * MEASURED: the page with which searches of the keys were fastest when the index was built, and again whenever it has
 * four times the entries of then: that takes as long as some five builds.  0: PFS_INDEX_PAGE. */
#define PFS_INDEX_PAGE_LEAST 8u
#define PFS_INDEX_PAGE	     62u
#define PFS_INDEX_PAGE_MOST  1024u
#define PFS_INDEX_MEASURED   UINT32_MAX

/* Says where the levels above the leaves are: beside them, or in the host's memory while the leaves
 * are on a device. In the second case the host finds the leaf of each key, and the device looks
 * into it: a search crosses the bus once more and waits for the host, and the device walks no
 * levels. The fences of the leaves, which changes need, are on the device as well. Without a device
 * all is on the host. */
enum pfs_index_upper_levels { PFS_INDEX_UPPER_BESIDE, PFS_INDEX_UPPER_HOST };

struct pfs_index_shape {
	enum pfs_index_kind kind;
	bool is_wide;
	uint32_t page;
	enum pfs_index_upper_levels upper;
};

enum pfs_index_question {
	PFS_INDEX_EQUAL,     /* the first entry of the key */
	PFS_INDEX_NOT_LESS,  /* the first entry whose key is not less (the lower bound) */
	PFS_INDEX_GREATER,   /* the first entry whose key is greater (the upper bound) */
};

/* Says what becomes of an entry whose key a unique index has already. */
enum pfs_index_policy { PFS_INDEX_REFUSE, PFS_INDEX_REPLACE };

/* Entries in order, for pfs_index_list_free. */
struct pfs_index_list {
	uint64_t *keys;
	uint32_t *values;      /* NULL of a wide index, */
	uint64_t *wide_values; /* and this of any other */
	size_t n;
};

/* Builds an index of n pairs, at most PFS_INDEX_BATCH_MAX, which stay the caller's. -EINVAL: they
 * do not strictly ascend (by key, or by key and value), a value is PFS_INDEX_NONE, or there is no such page. */
PFS_MUST_CHECK int pfs_index_build(const struct pfs_run *run, struct pfs_index **out,
				   const struct pfs_index_shape *shape,
				   const uint64_t *keys, const void *values, size_t n);

/* Closes an index, with `run` as it was built with. NULL is no index. */
void pfs_index_close(const struct pfs_run *run, struct pfs_index *index);

/* Answers n questions: values[i] = the value of the entry that answers for keys[i], PFS_INDEX_NONE
 * where there is none; found_keys[i] = its key, undefined where there is none (the array may be
 * NULL). -EINVAL: n is over PFS_INDEX_BATCH_MAX, here and below. */
PFS_MUST_CHECK int pfs_index_find(const struct pfs_run *run, struct pfs_index *index,
				  uint64_t *found_keys, void *values, const uint64_t *keys,
				  size_t n, enum pfs_index_question question);

/* Lists all entries with first <= key <= last, in order; *out is freed by pfs_index_list_free. */
PFS_MUST_CHECK int pfs_index_range(const struct pfs_run *run, struct pfs_index *index,
				   struct pfs_index_list *out, uint64_t first, uint64_t last);
void pfs_index_list_free(const struct pfs_run *run, struct pfs_index_list *list);

/* A place between entries: before all that are not less than this pair.  It is the caller's to set, and stays
 * there whatever is changed. */
struct pfs_index_cursor {
	uint64_t key;
	uint64_t value;
};
#define PFS_INDEX_BEGIN ((struct pfs_index_cursor){0, 0})
#define PFS_INDEX_END	((struct pfs_index_cursor){UINT64_MAX, UINT64_MAX})

enum pfs_index_direction { PFS_INDEX_UP, PFS_INDEX_DOWN };

/* Reads the next entries from the cursor on, the nearest first, into the caller's arrays of out->n;
 * out->n becomes how many there were, fewer only where there are no more. The cursor steps over
 * them; on an error it does not. -EOPNOTSUPP: the index is on a device, which has ranges but no
 * cursors. */
PFS_MUST_CHECK int pfs_index_read(const struct pfs_run *run, struct pfs_index *index,
				  struct pfs_index_cursor *cursor, struct pfs_index_list *out,
				  enum pfs_index_direction direction);

/* Does n insertions as if one after the other; *n_added entries are new. REPLACE sets the value of
 * a key that a unique index has; otherwise what is there stays, and the entry is refused. With
 * duplicates the policy means nothing: a pair that is there is refused. -EINVAL: a value is
 * PFS_INDEX_NONE. On any error but -EIO nothing has changed. */
PFS_MUST_CHECK int pfs_index_insert(const struct pfs_run *run, struct pfs_index *index,
				    uint64_t *n_added, const uint64_t *keys, const void *values,
				    size_t n, enum pfs_index_policy policy);

/* Removes the keys' entries; *n_removed of them were there. values is NULL for a unique index;
 * otherwise it tells which of a key's entries (-EINVAL if not so). On any error but -EIO nothing
 * has changed. */
PFS_MUST_CHECK int pfs_index_remove(const struct pfs_run *run, struct pfs_index *index,
				    uint64_t *n_removed, const uint64_t *keys,
				    const void *values, size_t n);

struct pfs_index_info {
	const char *where; /* "host" or "cuda" */
	uint64_t n;	   /* entries */
	uint64_t n_leaves, bytes; /* pages of the lowest level; memory.  0 leaves: not told */
	uint64_t upper_bytes;	  /* memory of the host for a device's upper levels; 0: they are not
				     there */
	uint32_t page;	   /* entries that a leaf has room for */
	uint32_t measured; /* how often the page has been measured */
};

void pfs_index_describe(struct pfs_index *index, struct pfs_index_info *info);

/* Checks the invariants: order, fill, links and the list of leaves, levels, count. -EUCLEAN: one is
 * broken; page and rule have been logged. Verify builds call it after each change. */
PFS_MUST_CHECK int pfs_index_verify(const struct pfs_run *run, struct pfs_index *index);

/* For benchmarks: measures the seconds that `repeat` searches of n keys take on the device,
 * questions and answers there; and those of Thrust's lower_bound in an array of the index's keys.
 * -EOPNOTSUPP: the index is not on a device. */
struct pfs_index_seconds {
	double *seconds; /* 2 * repeat: ours, then theirs */
	unsigned repeat;
};
PFS_MUST_CHECK int pfs_index_probe(const struct pfs_run *run, struct pfs_index *index,
				   const struct pfs_index_seconds *out, const uint64_t *keys,
				   size_t n);

#endif
