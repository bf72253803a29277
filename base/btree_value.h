/* SPDX-License-Identifier: MIT */
/* base/btree_value.h - the type of the values in a B+-tree: 32 bits, for the slots of an image. The
 * Makefile compiles the same source once more with PFS_WIDE_VALUES, for values of 64 bits and under
 * other names. */
#ifndef PFS_BASE_BTREE_VALUE_H
#define PFS_BASE_BTREE_VALUE_H

#include <stdint.h>

#ifndef PFS_WIDE_VALUES
typedef uint32_t pfs_btree_value;
#define PFS_BTREE_NONE UINT32_MAX
#else
typedef uint64_t pfs_btree_value;
#define PFS_BTREE_NONE UINT64_MAX

#define pfs_btree_count	      pfs_wide_btree_count
#define pfs_btree_count_inners pfs_wide_btree_count_inners
#define pfs_btree_create      pfs_wide_btree_create
#define pfs_btree_create_of   pfs_wide_btree_create_of
#define pfs_btree_destroy     pfs_wide_btree_destroy
#define pfs_btree_find	      pfs_wide_btree_find
#define pfs_btree_first_leaf  pfs_wide_btree_first_leaf
#define pfs_btree_inner_of    pfs_wide_btree_inner_of
#define pfs_btree_insert      pfs_wide_btree_insert
#define pfs_btree_insert_key  pfs_wide_btree_insert_key
#define pfs_btree_load	      pfs_wide_btree_load
#define pfs_btree_load_lazily pfs_wide_btree_load_lazily
#define pfs_btree_make_inner  pfs_wide_btree_make_inner
#define pfs_btree_make_leaf   pfs_wide_btree_make_leaf
#define pfs_btree_memory      pfs_wide_btree_memory
#define pfs_btree_next	      pfs_wide_btree_next
#define pfs_btree_read	      pfs_wide_btree_read
#define pfs_btree_read_back   pfs_wide_btree_read_back
#define pfs_btree_remove      pfs_wide_btree_remove
#define pfs_btree_remove_key  pfs_wide_btree_remove_key
#define pfs_btree_reserve     pfs_wide_btree_reserve
#define pfs_btree_seek	      pfs_wide_btree_seek
#define pfs_btree_verify      pfs_wide_btree_verify
#endif

#endif
