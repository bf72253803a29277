/* SPDX-License-Identifier: MIT */
/* gpu/index_value.h - the values of ordered indexes (gpu/index.h) for their back ends, which are
 * compiled twice: for values of 32 bits, and with PFS_WIDE_VALUES for 64, under names of their
 * own. */
#ifndef PFS_GPU_INDEX_VALUE_H
#define PFS_GPU_INDEX_VALUE_H

#include "base/btree_value.h"

typedef pfs_btree_value pfs_index_value;
#define PFS_VALUE_NONE ((pfs_index_value)-1)

#ifndef PFS_WIDE_VALUES
#define PFS_VALUES_WIDE	       false
#define PFS_LIST_VALUES(list) ((list)->values)
#else
#define PFS_VALUES_WIDE	       true
#define PFS_LIST_VALUES(list) ((list)->wide_values)

#define pfs_host_index_family pfs_host_wide_index_family

/* gpu/index_upper.h */
#define pfs_index_upper		pfs_wide_index_upper
#define pfs_index_upper_find	pfs_wide_index_upper_find
#define pfs_index_upper_free	pfs_wide_index_upper_free
#define pfs_index_upper_memory	pfs_wide_index_upper_memory
#define pfs_index_upper_reserve pfs_wide_index_upper_reserve
#define pfs_index_upper_set	pfs_wide_index_upper_set

#define pfs_cuda_index_family pfs_cuda_wide_index_family

/* gpu/cuda/cuda_index.h */
#define pfs_cuda_index_insert_batch pfs_cuda_wide_index_insert_batch
#define pfs_cuda_index_probe	    pfs_cuda_wide_index_probe
#define pfs_cuda_index_remove_batch pfs_cuda_wide_index_remove_batch
#define pfs_index_alloc_leaves	    pfs_wide_index_alloc_leaves
#define pfs_index_alloc_pages	    pfs_wide_index_alloc_pages
#define pfs_index_clear_pages	    pfs_wide_index_clear_pages
#define pfs_index_answer	    pfs_wide_index_answer
#define pfs_index_arrays	    pfs_wide_index_arrays
#define pfs_index_set_levels	    pfs_wide_index_set_levels
#define pfs_index_sort		    pfs_wide_index_sort
#define pfs_index_sums		    pfs_wide_index_sums
#define pfs_index_upper_download    pfs_wide_index_upper_download

/* gpu/cuda/index_kernels.h */
#define pfs_cuda_index_build	    pfs_cuda_wide_index_build
#define pfs_cuda_index_close_gaps   pfs_cuda_wide_index_close_gaps
#define pfs_cuda_index_compact	    pfs_cuda_wide_index_compact
#define pfs_cuda_index_drop	    pfs_cuda_wide_index_drop
#define pfs_cuda_index_ends	    pfs_cuda_wide_index_ends
#define pfs_cuda_index_find	    pfs_cuda_wide_index_find
#define pfs_cuda_index_free_pages   pfs_cuda_wide_index_free_pages
#define pfs_cuda_index_insert	    pfs_cuda_wide_index_insert
#define pfs_cuda_index_insert_one   pfs_cuda_wide_index_insert_one
#define pfs_cuda_index_insert_split pfs_cuda_wide_index_insert_split
#define pfs_cuda_index_join	    pfs_cuda_wide_index_join
#define pfs_cuda_index_links	    pfs_cuda_wide_index_links
#define pfs_cuda_index_mark_dead    pfs_cuda_wide_index_mark_dead
#define pfs_cuda_index_mark_new	    pfs_cuda_wide_index_mark_new
#define pfs_cuda_index_numbers	    pfs_cuda_wide_index_numbers
#define pfs_cuda_index_ones	    pfs_cuda_wide_index_ones
#define pfs_cuda_index_put	    pfs_cuda_wide_index_put
#define pfs_cuda_index_range_copy   pfs_cuda_wide_index_range_copy
#define pfs_cuda_index_range_counts pfs_cuda_wide_index_range_counts
#define pfs_cuda_index_replace	    pfs_cuda_wide_index_replace
#define pfs_cuda_index_retire_split pfs_cuda_wide_index_retire_split
#define pfs_cuda_index_search_array pfs_cuda_wide_index_search_array
#define pfs_cuda_index_shares	    pfs_cuda_wide_index_shares
#define pfs_cuda_index_sort	    pfs_cuda_wide_index_sort
#define pfs_cuda_index_sort_values  pfs_cuda_wide_index_sort_values
#define pfs_cuda_index_total	    pfs_cuda_wide_index_total
#define pfs_cuda_index_verify	    pfs_cuda_wide_index_verify
#endif

#endif
