/* SPDX-License-Identifier: MIT */
/* fs/tree/tree_impl.h - struct pfs_tree: the store, the image, and a pointer to each module beside
 * them. fs/query, fs/mount and tools do not include this header.
 *
 * Lock order: the content lock (pfs_parts_lock) -> tree->lock -> the mutexes of the journal and of
 * the totals. None of them is held while the store is read or written. */
#ifndef PFS_FS_TREE_TREE_IMPL_H
#define PFS_FS_TREE_TREE_IMPL_H

#include <stdatomic.h>

#include "fs/image/image.h"
#include "fs/image/hold.h"
#include "fs/tree/tree.h"

struct pfs_tree {
	struct pfs_tree_options options;
	struct pfs_store *store;
	struct pfs_tree_lock lock; /* taken by hold.h */
	struct pfs_image image; /* protected by lock */
	_Atomic bool read_only;
	struct pfs_journal *journal;
	struct pfs_content *content;
	struct pfs_attrs *attrs;
	struct pfs_attr_reader *frozen_attrs; /* of a frozen tree (frozen.h) */
	const struct pfs_image_extras *extras; /* of image files (imagefile.h); NULL: none */
	struct pfs_links *links;
	struct pfs_primes *primes;
	struct pfs_codes *codes;
	struct pfs_device_lookup *single;
	struct pfs_totals_table *totals;
	struct pfs_spans *spans;
	struct pfs_slotorder *slotorder;
	struct pfs_place_history *pasts;
	struct pfs_pool
		*pool; /* the threads of scans and operators; in a frozen tree the live tree's */
	struct pfs_operators
		*operators; /* by which scans select; in a frozen tree the live tree's */
	struct pfs_viewers *viewers;
	struct pfs_indexes *indexes;
	struct pfs_path_index *path_index; /* NULL: this tree makes none */
	struct pfs_path_frozen *path_frozen; /* of a frozen tree; NULL: it has no path index */
	struct pfs_derived_columns *columns;
	struct pfs_directory_tables *directories;
	struct pfs_snapshots *snapshots;
	struct pfs_sides *sides;
	struct pfs_registers *registers;
	struct pfs_kept_rows *rows;
	struct pfs_hard_links *hard_links;
	struct pfs_compared *compared; /* in a frozen tree the live tree's */
	struct pfs_tree_listener listener; /* protected by listener_lock (listen.h) */
	pthread_rwlock_t listener_lock;
	struct pfs_tree_info info; /* as last told; without nodes: not yet; protected by info_lock */
	pthread_mutex_t info_lock;
};

#endif
