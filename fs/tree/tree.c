/* SPDX-License-Identifier: MIT */
/* Life of a tree: open, start, close. */
#include "fs/tree/tree.h"

#include <stdlib.h>

#include "base/pool.h"
#include "base/thread.h"
#include "fs/attr/attrfile.h"
#include "fs/attr/xattr.h"
#include "fs/content/content.h"
#include "fs/content/compared.h"
#include "fs/content/hardlink.h"
#include "fs/content/link.h"
#include "fs/content/register.h"
#include "fs/content/row.h"
#include "fs/image/image.h"
#include "fs/image/imagefile.h"
#include "fs/image/load.h"
#include "fs/image/primes.h"
#include "fs/image/old_places.h"
#include "fs/image/device_lookup.h"
#include "fs/image/snapshot.h"
#include "fs/image/slotorder.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/image/watch.h"
#include "fs/journal/journal.h"
#include "fs/nodes/codes.h"
#include "fs/nodes/columns.h"
#include "fs/nodes/index.h"
#include "fs/nodes/index_paths.h"
#include "fs/tree/directories.h"
#include "fs/tree/listen.h"
#include "fs/tree/sides.h"
#include "fs/tree/tree_impl.h"
#include "meta/history.h"

static int open_store(struct pfs_tree *tree, const char *path)
{
	struct pfs_store_options options = {
		.flags = (tree->options.read_only ? PFS_STORE_READ_ONLY : 0) |
			 (tree->options.alone ? PFS_STORE_ALONE : 0) |
			 (tree->options.beside_writer ? PFS_STORE_UNLOCKED : 0),
		.wait_ms = tree->options.wait_ms,
		.vfs = tree->options.vfs,
		.at = tree->options.at,
	};

	PFS_TRY(pfs_store_open(&tree->store, path, &options));
	return tree->options.history ? pfs_history_set(tree->store, tree->options.history) : 0;
}

static int create_parts(struct pfs_tree *tree)
{
	static int (*const create[])(struct pfs_tree * tree) = {
		pfs_image_create,	  pfs_journal_create,	 pfs_sides_create,
		pfs_primes_create,	  pfs_content_create,	 pfs_registers_create,
		pfs_rows_create,	  pfs_attrs_create,	 pfs_attrfile_create,
		pfs_links_create,	  pfs_codes_create,	 pfs_device_lookup_create,
		pfs_totals_create,	  pfs_spans_create,	 pfs_slotorder_create,
		pfs_place_history_create, pfs_scan_create,	 pfs_viewers_create,
		pfs_indexes_create,	  pfs_path_index_create, pfs_columns_create,
		pfs_directories_create,	  pfs_snapshots_create,	 pfs_load,
		pfs_hard_links_create,	  pfs_compared_create,
	};

	for (size_t i = 0; i < PFS_COUNT(create); i++)
		PFS_TRY(create[i](tree));
	return 0;
}

int pfs_tree_open(struct pfs_tree **out, const char *path, const struct pfs_tree_options *options)
{
	struct pfs_tree *tree = calloc(1, sizeof(*tree));
	int error;

	*out = NULL;
	if (!tree)
		return -ENOMEM;
	tree->options = *options;
	tree->options.no_image_file |= options->at != 0;
	pfs_hold_create(tree);
	pfs_listener_create(tree);
	(void)pthread_mutex_init(&tree->info_lock, NULL);
	error = pfs_pool_open(&tree->pool, 0, PFS_THREAD_NICE);
	if (!error)
		error = open_store(tree, path);
	if (!error) {
		atomic_store(&tree->read_only, pfs_store_is_read_only(tree->store));
		error = create_parts(tree);
	}
	if (error) {
		(void)pfs_tree_close(tree);
		return error;
	}
	*out = tree;
	return 0;
}

bool pfs_tree_is_read_only(const struct pfs_tree *tree)
{
	return atomic_load(&tree->read_only);
}

int pfs_tree_start(struct pfs_tree *tree)
{
	pfs_device_lookup_start(tree);
	return atomic_load(&tree->read_only) ? 0 : pfs_journal_start(tree);
}

int pfs_tree_close(struct pfs_tree *tree)
{
	int first, error;

	if (!tree)
		return 0;
	first = pfs_journal_stop(tree);
	if (!first)
		first = pfs_imagefile_failure(tree);
	PFS_VERIFY_CHECK(!pfs_watch_check(tree));
	if (tree->options.leave_image_file && !first)
		pfs_imagefile_write_behind(tree);
	pfs_directories_destroy(tree);
	pfs_snapshots_destroy(tree);
	pfs_path_index_destroy(tree);
	pfs_indexes_destroy(tree);
	pfs_columns_destroy(tree);
	pfs_viewers_destroy(tree);
	pfs_scan_destroy(tree);
	pfs_place_history_destroy(tree);
	pfs_slotorder_destroy(tree);
	pfs_imagefile_settle(tree); /* it mends by spans and totals */
	pfs_spans_destroy(tree);
	pfs_totals_destroy(tree);
	pfs_device_lookup_destroy(tree);
	pfs_codes_destroy(tree);
	pfs_links_destroy(tree);
	pfs_attrs_destroy(tree);
	pfs_hard_links_destroy(tree);
	pfs_compared_destroy(tree);
	pfs_rows_destroy(tree);
	pfs_registers_destroy(tree);
	pfs_content_destroy(tree);
	pfs_primes_destroy(tree);
	pfs_sides_destroy(tree);
	pfs_journal_destroy(tree);
	pfs_image_destroy(tree);
	pfs_pool_close(tree->pool);
	error = pfs_store_close(tree->store);
	(void)pthread_mutex_destroy(&tree->info_lock);
	pfs_listener_destroy(tree);
	pfs_hold_destroy(tree);
	free(tree);
	return first ? first : error;
}

struct columns {
	int (*fn)(void *arg, const void *name, size_t name_len);
	void *arg;
};

static int pass_column(void *arg, const void *name, size_t name_len,
		       enum pfs_attr_type type PFS_UNUSED)
{
	const struct columns *columns = arg;

	return columns->fn(columns->arg, name, name_len);
}

int pfs_tree_imported_columns(struct pfs_tree *tree,
			      int (*fn)(void *arg, const void *name, size_t name_len), void *arg)
{
	struct columns columns = {.fn = fn, .arg = arg};

	return pfs_store_scan_columns(tree->store, pass_column, &columns);
}
