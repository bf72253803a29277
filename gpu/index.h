/* SPDX-License-Identifier: MIT */
/* gpu/index.h - ordered indexes: B+-trees of 64-bit keys and values of 32 or 64 bits, in the host's
 * memory or a device's (S5 of docs/design/papers.md).
 *
 * An index is either unique, with one value a key, or has duplicates: then its entries are unique
 * as (key, value) pairs, and the values of a key come in ascending order. Questions and changes
 * come in batches, of one or of millions. Both back ends give the same answers; but only the host
 * has cursors, and pages on a device always have the width of a warp. Values are arrays of uint32_t
 * or, if the index is wide, of uint64_t.
 *
 * Threads: any number. Each batch of changes is one step: a batch of questions sees the index
 * before it or after it, never between. Questions run side by side. An index is built on run->on's
 * back end, if there is one, and stays there; if a device is short of memory, its index moves to
 * the host, with a warning. Errors of all functions, beside their own: -ENOMEM; what run->poll
 * returns; -EIO: the device failed, and the index is lost with it: close it and build it anew. */
#ifndef PFS_GPU_INDEX_H
#define PFS_GPU_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/run.h"

#define PFS_INDEX_NONE	    UINT32_MAX /* no value: no entry may have it */
#define PFS_INDEX_WIDE_NONE UINT64_MAX /* in a wide index it takes the place of PFS_INDEX_NONE */
#define PFS_INDEX_BATCH_MAX ((size_t)1 << 30)

struct pfs_index;

enum pfs_index_kind { PFS_INDEX_UNIQUE, PFS_INDEX_DUPLICATES };

/* The most entries that a page, a leaf of the tree, has on the host; 0: PFS_INDEX_PAGE. MEASURED:
 * building the index finds the page with which searches of its keys are fastest, and does so again
 * whenever the index has four times as many entries; that takes as long as about five builds. On a
 * device this has no effect. */
#define PFS_INDEX_PAGE_LEAST 8u
#define PFS_INDEX_PAGE	     62u
#define PFS_INDEX_PAGE_MOST  1024u
#define PFS_INDEX_MEASURED   UINT32_MAX

/* Says where the levels above the leaves are: BESIDE the leaves, or in the memory of the HOST while
 * the leaves are on a device. In the second case the host finds the leaf of each key, and the
 * device looks into the leaf: a search crosses the bus once more and waits for the host, but the
 * device walks no levels. The fences of the leaves, which changes need, are on the device as well.
 * Without a device all is on the host. */
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

/* Says what an insertion does if a unique index has its key already. */
enum pfs_index_policy { PFS_INDEX_REFUSE, PFS_INDEX_REPLACE };

/* Entries in order, for pfs_index_list_free. */
struct pfs_index_list {
	uint64_t *keys;
	uint32_t *values;      /* NULL for a wide index */
	uint64_t *wide_values; /* NULL for any other */
	size_t n;
};

/* Builds an index of n pairs, at most PFS_INDEX_BATCH_MAX, which stay the caller's. -EINVAL: they
 * do not strictly ascend (by key, or by key and value), a value is PFS_INDEX_NONE, or there is no
 * such page. */
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

/* A place between entries: before all entries that are not less than this pair. The caller sets it,
 * and it stays valid whatever changes. */
struct pfs_index_cursor {
	uint64_t key;
	uint64_t value;
};
#define PFS_INDEX_BEGIN ((struct pfs_index_cursor){0, 0})
#define PFS_INDEX_END	((struct pfs_index_cursor){UINT64_MAX, UINT64_MAX})

enum pfs_index_direction { PFS_INDEX_UP, PFS_INDEX_DOWN };

/* Reads the next entries from the cursor on, the nearest first, into the caller's arrays, which
 * have room for out->n; out->n becomes how many were read, fewer only if there are no more. The
 * cursor steps over them; on an error it does not. -EOPNOTSUPP: the index is on a device, which has
 * ranges but no cursors. */
PFS_MUST_CHECK int pfs_index_read(const struct pfs_run *run, struct pfs_index *index,
				  struct pfs_index_cursor *cursor, struct pfs_index_list *out,
				  enum pfs_index_direction direction);

/* Makes n insertions as if one after the other; *n_added is how many entries are new. If a unique
 * index has the key, REPLACE sets its value, and REFUSE leaves it. With duplicates the policy has
 * no effect: a pair that is there is left. -EINVAL: a value is PFS_INDEX_NONE. On any error but
 * -EIO nothing has changed. */
PFS_MUST_CHECK int pfs_index_insert(const struct pfs_run *run, struct pfs_index *index,
				    uint64_t *n_added, const uint64_t *keys, const void *values,
				    size_t n, enum pfs_index_policy policy);

/* Removes the keys' entries; *n_removed is how many were there. With duplicates `values` says which
 * of a key's entries; for a unique index it is NULL (-EINVAL if not so). On any error but -EIO
 * nothing has changed. */
PFS_MUST_CHECK int pfs_index_remove(const struct pfs_run *run, struct pfs_index *index,
				    uint64_t *n_removed, const uint64_t *keys,
				    const void *values, size_t n);

struct pfs_index_info {
	const char *where; /* "host" or "cuda" */
	uint64_t n;	   /* entries */
	uint64_t n_leaves, bytes; /* pages of the lowest level (0: not known); bytes of memory */
	uint64_t upper_bytes;	  /* the host's memory for a device's upper levels; 0: none */
	uint32_t page;	   /* entries that a leaf has room for */
	uint32_t measured; /* how often the page has been measured */
};

void pfs_index_describe(struct pfs_index *index, struct pfs_index_info *info);

/* Checks the invariants: order, fill, links and the list of leaves, levels, count. -EUCLEAN: one is
 * broken; page and rule have been logged. Verify builds call it after each change. */
PFS_MUST_CHECK int pfs_index_verify(const struct pfs_run *run, struct pfs_index *index);

/* For benchmarks: measures on the device, where questions and answers stay, the seconds that
 * `repeat` searches of n keys take, and those of Thrust's lower_bound in an array of the index's
 * keys; and copies of all entries in order, and sums of what these copies are. -EOPNOTSUPP: the
 * index is not on a device. */
enum pfs_index_probe {
	PFS_INDEX_SEARCHED,
	PFS_INDEX_BISECTED,
	PFS_INDEX_VISITED,
	PFS_INDEX_SUMMED,
	PFS_INDEX_PROBES
};
struct pfs_index_seconds {
	double *seconds[PFS_INDEX_PROBES]; /* `repeat` each */
	unsigned repeat;
	uint64_t key_sum, value_sum; /* of the entries as they were copied */
};
PFS_MUST_CHECK int pfs_index_probe(const struct pfs_run *run, struct pfs_index *index,
				   struct pfs_index_seconds *out, const uint64_t *keys, size_t n);

#endif
