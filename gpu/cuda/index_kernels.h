/* SPDX-License-Identifier: MIT */
/* gpu/cuda/index_kernels.h - launch wrappers of the B+-tree on the device, under the rules of
 * relation_kernels.h.
 *
 * A leaf is a *page* of 32 entries in flat arrays, as wide as a warp; what it does not use holds
 * the greatest key and value.  The list of leaves in key order says which page each *position* has,
 * and its fence: no entry of the page is less, and every entry of the pages before is.  Position 0
 * has the least fence there is.  In a unique index the values of fences are 0.  The levels above
 * are every 16th fence, every 256th, and so on, up to a top that fits into shared memory: they are
 * made anew from the list, at the speed of memory, whenever that has changed. */
#ifndef PFS_GPU_CUDA_INDEX_KERNELS_H
#define PFS_GPU_CUDA_INDEX_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/index_value.h"

#define PFS_PAGE	32u /* entries */
#define PFS_PAGE_FILL	24u /* of a page made by building or splitting, at most */
#define PFS_PAGE_POOR	8u  /* fewer: joined with a neighbour that has room */
#define PFS_PAGE_NONE	0xffffffffu
#define PFS_FAN_BITS	4
#define PFS_TOP_MAX	16384u /* keys: 128 KiB of shared memory */
#define PFS_LEVELS	8

struct pfs_device_leaves { /* the list, by position */
	uint32_t *d_page;
	uint64_t *d_fence;
	pfs_index_value *d_fence_value;
	uint32_t n;
};

struct pfs_device_pages { /* by page */
	uint64_t *d_keys; /* PFS_PAGE of each */
	pfs_index_value *d_values;
	uint32_t *d_count;
	uint32_t *d_next; /* the page at the next position, or PFS_PAGE_NONE */
};

struct pfs_device_btree {
	struct pfs_device_pages pages;
	struct pfs_device_leaves leaves;
	const uint64_t *d_level[PFS_LEVELS]; /* 0: the fences */
	uint32_t n_level[PFS_LEVELS];
	int top; /* the last level */
	bool is_unique;
	bool has_upper; /* levels above the fences; not where those are on the host */
};

/* New entries, sorted, with the position of each one's leaf; by position, which of them (d_begin ==
 * d_end: none), and the exclusive sums of the pages that leaves become (d_out_at) and of those
 * among them that are split (d_fresh_at), n + 1 of each. */
struct pfs_device_insertion {
	const uint64_t *d_keys;
	const pfs_index_value *d_values;
	const uint32_t *d_at;
	uint32_t n;
	uint32_t *d_begin, *d_end, *d_out_at, *d_fresh_at;
	const uint32_t *d_free; /* its last n_free pages are taken from the end */
	uint32_t n_free;
};

#ifdef __cplusplus
extern "C" {
#endif

/* The pages 0.. of the list from n sorted pairs, spread evenly, and the list. */
int pfs_cuda_index_build(const struct pfs_device_btree *t, const uint64_t *d_keys,
			 const pfs_index_value *d_values, uint64_t n, cudaStream_t stream);
/* Makes what follows from the list: the links, and the levels from 1 up. */
int pfs_cuda_index_links(const struct pfs_device_btree *t, cudaStream_t stream);
/* d_free[i] = from + n - 1 - i: so the least are taken first. */
int pfs_cuda_index_free_pages(uint32_t *d_free, uint32_t from, uint32_t n, cudaStream_t stream);

/* Answers questions (enum pfs_index_question) in the leaf at position d_at[i], or if that is NULL
 * in the one that the levels lead to. */
struct pfs_device_find {
	uint64_t *d_found_keys; /* or NULL */
	pfs_index_value *d_values;
	const uint64_t *d_keys;
	const uint32_t *d_at;
	uint32_t n;
	int question;
};
int pfs_cuda_index_find(const struct pfs_device_btree *t, const struct pfs_device_find *find,
			cudaStream_t stream);
/* Keys, and what is with each in value_size bytes, 4 or 8, sorted by `bits` bits of the keys from
 * first_bit on, equal ones as they were.  A call without temporary memory sets its size. */
int pfs_cuda_index_sort(void *d_temporary, size_t *temporary_size, uint64_t *d_keys_out,
			const uint64_t *d_keys, void *d_with_out, const void *d_with,
			size_t value_size, uint32_t n, int first_bit, int bits,
			cudaStream_t stream);
/* d_out[d_places[i]] = d_from[i], of value_size bytes, 4 or 8. */
int pfs_cuda_index_put(void *d_out, const void *d_from, const uint32_t *d_places, size_t value_size,
		       uint32_t n, cudaStream_t stream);
/* As pfs_cuda_index_sort, by values. */
int pfs_cuda_index_sort_values(void *d_temporary, size_t *temporary_size,
			       pfs_index_value *d_values_out, const pfs_index_value *d_values,
			       uint64_t *d_keys_out, const uint64_t *d_keys, uint32_t n,
			       cudaStream_t stream);
/* d_out[i] = i. */
int pfs_cuda_index_numbers(uint32_t *d_out, uint32_t n, cudaStream_t stream);

/* Inserts one pair into a page that has room; a unique index's value of the key is replaced, if
 * that is wanted. */
enum pfs_device_inserted { PFS_INSERTED_NEW, PFS_INSERTED_THERE, PFS_INSERTED_NO_ROOM };
int pfs_cuda_index_insert_one(const struct pfs_device_btree *t, uint32_t *d_inserted, uint64_t key,
			      pfs_index_value value, bool replace, cudaStream_t stream);

/* Looks up sorted pairs: sets d_is_new[i] for one that is to be added, and its leaf's position in
 * d_at[i]; d_place[i] to where the value of pair i is to replace one, or to PFS_PAGE_NONE. */
int pfs_cuda_index_mark_new(const struct pfs_device_btree *t, uint32_t *d_is_new, uint32_t *d_at,
			    uint32_t *d_place, const uint64_t *d_keys,
			    const pfs_index_value *d_values, uint32_t n, bool replace,
			    cudaStream_t stream);
int pfs_cuda_index_replace(const struct pfs_device_btree *t, const uint32_t *d_place,
			   const pfs_index_value *d_values, uint32_t n, cudaStream_t stream);
/* The new ones among n, one after the other: d_rank are the exclusive sums of d_is_new. */
int pfs_cuda_index_compact(uint64_t *d_keys_out, pfs_index_value *d_values_out, uint32_t *d_at_out,
			   const uint64_t *d_keys, const pfs_index_value *d_values,
			   const uint32_t *d_at, const uint32_t *d_is_new, const uint32_t *d_rank,
			   uint32_t n, cudaStream_t stream);
/* d_begin and d_end, cleared before; and how many pages each leaf becomes, to be summed. */
int pfs_cuda_index_shares(const struct pfs_device_btree *t, const struct pfs_device_insertion *in,
			  uint32_t *d_pages, uint32_t *d_fresh, cudaStream_t stream);
/* No leaf is split: the list stays. */
int pfs_cuda_index_insert(const struct pfs_device_btree *t, const struct pfs_device_insertion *in,
			  cudaStream_t stream);
/* Leaves are split: `out` is the list afterwards. */
int pfs_cuda_index_insert_split(const struct pfs_device_btree *t,
				const struct pfs_device_insertion *in,
				const struct pfs_device_leaves *out, cudaStream_t stream);
/* Puts the pages of positions whose leaf was split into d_free from *d_n on. */
int pfs_cuda_index_retire_split(const struct pfs_device_btree *t,
				const struct pfs_device_insertion *in, uint32_t *d_free,
				uint32_t *d_n, cudaStream_t stream);

/* d_dead[position]: the bits of entries that the pairs (a unique index: keys) name. */
int pfs_cuda_index_mark_dead(const struct pfs_device_btree *t, uint32_t *d_dead,
			     const uint64_t *d_keys, const pfs_index_value *d_values, uint32_t n,
			     cudaStream_t stream);
/* Closes the gaps; *d_n counts them. */
int pfs_cuda_index_close_gaps(const struct pfs_device_btree *t, const uint32_t *d_dead,
			      uint32_t *d_n, cudaStream_t stream);
/* d_out[i] = 1. */
int pfs_cuda_index_ones(uint32_t *d_out, uint32_t n, cudaStream_t stream);
/* Joins the leaves at 2 i + parity and the next where one is poor and one page holds both: d_stays
 * of the right one becomes 0, and *d_n counts them. */
int pfs_cuda_index_join(const struct pfs_device_btree *t, uint32_t *d_stays, uint32_t *d_n,
			uint32_t parity, cudaStream_t stream);
/* The list without those; their pages into d_free from *d_n on. */
int pfs_cuda_index_drop(const struct pfs_device_btree *t, const struct pfs_device_leaves *out,
			const uint32_t *d_stays, const uint32_t *d_rank, uint32_t *d_free,
			uint32_t *d_n, cudaStream_t stream);

/* Position and entry of the first pair >= (first, 0) and of the first > last: four numbers. */
int pfs_cuda_index_ends(const struct pfs_device_btree *t, uint32_t *d_ends, uint64_t first,
			uint64_t last, cudaStream_t stream);
struct pfs_device_range {
	uint32_t from, from_entry, to, to_entry; /* positions; the end is exclusive */
};
/* Count the entries of the range in each of its leaves, which the caller sums; then copy the
 * entries. */
int pfs_cuda_index_range_counts(const struct pfs_device_btree *t, uint64_t *d_counts,
				const struct pfs_device_range *range, cudaStream_t stream);
int pfs_cuda_index_range_copy(const struct pfs_device_btree *t, uint64_t *d_keys_out,
			      pfs_index_value *d_values_out, const uint64_t *d_sums,
			      const struct pfs_device_range *range, cudaStream_t stream);

/* d_bad[0]: a rule that is broken, or 0; [1]: the page; *d_n counts entries. */
int pfs_cuda_index_verify(const struct pfs_device_btree *t, uint32_t *d_bad, uint64_t *d_n,
			  cudaStream_t stream);

/* Finds the first of n ascending keys that is not less, by Thrust, for each of m; for
 * comparison. */
int pfs_cuda_index_search_array(pfs_index_value *d_out, const uint64_t *d_keys, uint64_t n,
				const uint64_t *d_asked, uint64_t m, cudaStream_t stream);
/* Sums n keys and values into d_out[0] and [1]. d_temporary NULL: only says its size. */
int pfs_cuda_index_total(void *d_temporary, size_t *temporary_size, uint64_t *d_out,
			 const uint64_t *d_keys, const pfs_index_value *d_values, uint64_t n,
			 cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
