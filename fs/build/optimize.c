/* SPDX-License-Identifier: MIT */
/* Optimizing: builds the store anew beside the old file, with slots in pre-order and the smallest
 * primes for the heaviest directories; the new file then takes the store's name. Until that moment
 * the old file is untouched; afterwards every inode number may have changed. */
#include "fs/tree/tree.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/build/build.h"
#include "fs/build/build_impl.h"
#include "fs/content/hardlink.h"
#include "fs/image/byprime.h"
#include "fs/image/image.h"
#include "fs/image/imagefile.h"
#include "fs/image/rare_values.h"
#include "fs/tree/tree_impl.h"
#include "meta/siderows.h"

struct optimize {
	struct pfs_tree *tree;
	struct pfs_byprime_table links; /* old links to new ones */
	struct pfs_build *build;
	uint64_t *old_primes; /* by the number of the build's node */
	size_t n, capacity;
	uint32_t *path; /* the number of the build's node at each depth of the walk */
	size_t path_capacity;
};

struct copy {
	struct pfs_store *to;
	uint64_t prime;
};

static int copy_attr(void *arg, const struct pfs_attr_record *attr)
{
	const struct copy *copy = arg;

	return pfs_store_put_attr(copy->to, copy->prime, attr);
}

static int copy_column(void *arg, const void *name, size_t name_len, enum pfs_attr_type type)
{
	return pfs_store_put_column(arg, name, name_len, type);
}

static int copy_root(void *arg, const struct pfs_source_root *root)
{
	uint32_t id;

	return pfs_store_put_source_root(arg, &id, root);
}

static int copy_dir(void *arg, const struct pfs_source_dir *dir)
{
	return pfs_store_put_source_dir(arg, dir);
}

static int copy_source(struct pfs_store *from, const struct copy *copy, uint64_t old)
{
	char path[PATH_MAX];
	struct pfs_source_record source;

	int error = pfs_store_get_source(from, &source, path, old);

	if (error)
		return error == -ENOENT ? 0 : error;
	source.prime = copy->prime;
	return pfs_store_put_source(copy->to, &source);
}

static int copy_chunks(struct pfs_store *from, const struct copy *copy, uint64_t old)
{
	char *data PFS_FREE = malloc(PFS_CHUNK_SIZE);
	uint64_t n = 0;
	size_t len;
	int error;

	if (!data)
		return -ENOMEM;
	while (!(error = pfs_store_next_chunk(from, &n, &len, old, n, UINT64_MAX))) {
		PFS_TRY(pfs_store_get_chunk(from, data, &len, old, n));
		PFS_TRY(pfs_store_put_chunk(copy->to, copy->prime, n, data, len));
		n++;
	}
	return error == -ENOENT ? 0 : error;
}

struct new_link {
	struct pfs_byprime by_old;
	uint64_t link;
};

/* Copies a hard link. Its number is the prime of a name: the first one that is met. */
static int copy_link(struct optimize *optimize, const struct copy *copy, uint32_t slot)
{
	int64_t old = pfs_hard_link_of(optimize->tree, slot);
	struct new_link *link;

	if (old == PFS_NO_LINK)
		return 0;
	link = (struct new_link *)pfs_byprime_find(&optimize->links, (uint64_t)old);
	if (!link) {
		link = malloc(sizeof(*link));
		if (!link)
			return -ENOMEM;
		*link = (struct new_link){.by_old.prime = (uint64_t)old, .link = copy->prime};
		pfs_byprime_add(&optimize->links, &link->by_old);
	}
	return pfs_store_put_hard_link(copy->to, copy->prime, (int64_t)link->link);
}

static void free_link(void *arg PFS_UNUSED, struct pfs_byprime *entry)
{
	free(entry);
}

/* Numbers that no attribute has are carried over, too. */
static void copy_numbers(void *arg, uint32_t node, struct pfs_node_record *record)
{
	const struct optimize *optimize = arg;

	pfs_image_numbers(&optimize->tree->image, record,
			  pfs_image_slot(optimize->tree, optimize->old_primes[node]));
}

/* Copies what belongs to a node, once its record has been written under the new prime. */
static int copy_belongings(void *arg, uint32_t node, uint64_t prime)
{
	struct optimize *optimize = arg;
	struct pfs_tree *tree = optimize->tree;
	struct copy copy = {.to = pfs_build_store(optimize->build), .prime = prime};
	uint64_t old = optimize->old_primes[node];
	uint32_t slot = pfs_image_slot(tree, old);

	if (tree->image.flags[slot] & PFS_NODE_ATTRS)
		PFS_TRY(pfs_store_scan_attrs(tree->store, old, copy_attr, &copy));
	if (tree->image.flags[slot] & PFS_NODE_LINKED || !S_ISREG(tree->image.mode[slot]))
		PFS_TRY(copy_source(tree->store, &copy, old));
	PFS_TRY(copy_link(optimize, &copy, slot));
	return S_ISREG(tree->image.mode[slot]) ? copy_chunks(tree->store, &copy, old) : 0;
}

static int add(struct optimize *optimize, uint32_t *node, const struct pfs_walk_node *walked)
{
	const char *name = memrchr(walked->path, '/', walked->path_len);
	enum pfs_build_seen seen;

	if (walked->depth == 0) {
		*node = PFS_BUILD_ROOT;
		return pfs_build_set(optimize->build, *node, &walked->entry.attr);
	}
	name = name ? name + 1 : walked->path;
	return pfs_build_add(optimize->build, node, &seen, optimize->path[walked->depth - 1], name,
			     (size_t)(walked->path + walked->path_len - name),
			     &walked->entry.attr);
}

static int add_walked(void *arg, const struct pfs_walk_node *walked)
{
	struct optimize *optimize = arg;
	const struct pfs_image *image = &optimize->tree->image;
	uint64_t prime = walked->entry.attr.st_ino;
	uint32_t slot = pfs_image_slot(optimize->tree, prime), node;

	PFS_TRY(add(optimize, &node, walked));
	PFS_TRY(pfs_grow(&optimize->old_primes, &optimize->capacity, (size_t)node + 1,
			 sizeof(*optimize->old_primes)));
	PFS_TRY(pfs_grow(&optimize->path, &optimize->path_capacity, (size_t)walked->depth + 1,
			 sizeof(*optimize->path)));
	optimize->old_primes[node] = prime;
	optimize->n = PFS_MAX(optimize->n, (size_t)node + 1);
	optimize->path[walked->depth] = node;
	pfs_build_set_flags(optimize->build, node, image->flags[slot], 0);
	if (S_ISLNK(image->mode[slot])) {
		const struct pfs_rare_values *values = pfs_rare_find(image->rare, slot);

		return pfs_build_set_target(optimize->build, node, values->target,
					    values->target_len);
	}
	return 0;
}

/* Copies a register under its directory's new prime. If the directory was removed it has none, and
 * its register is dropped. */
static int copy_register(void *arg, const struct pfs_register_record *record)
{
	const struct optimize *optimize = arg;
	struct pfs_register_record copy = *record;

	for (uint32_t node = 0; node < optimize->n; node++) {
		if (optimize->old_primes[node] != record->root)
			continue;
		copy.root = pfs_build_prime(optimize->build, node);
		return pfs_store_put_register(pfs_build_store(optimize->build), &copy);
	}
	return 0;
}

struct rows {
	struct pfs_store *from, *to;
	struct pfs_side_rows batch; /* of the table in `to` */
};

static int copy_row(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	struct rows *rows = arg;

	return pfs_store_put_row(rows->to, &rows->batch, row, cells, n);
}

static int copy_table(void *arg, const struct pfs_table_record *table)
{
	struct rows *rows = arg;
	struct pfs_table_record record = *table;
	unsigned n_columns;
	int error;

	record.id = 0;
	PFS_TRY(pfs_store_table_width(rows->from, &n_columns, table->id));
	PFS_TRY(pfs_store_put_table(rows->to, &rows->batch.table, &record, n_columns));
	error = pfs_store_scan_rows(rows->from, table->id, NULL, copy_row, rows);
	if (!error)
		error = pfs_store_write_rows(rows->to, &rows->batch);
	pfs_side_rows_finish(&rows->batch);
	return error;
}

/* The new file is as trusted as the old one was. */
static int copy_stamp(struct pfs_store *from, struct pfs_store *to)
{
	enum pfs_store_trust trust;

	PFS_TRY(pfs_store_trust(from, &trust));
	return trust == PFS_TRUST_OWN ? pfs_store_stamp(to) : 0;
}

/* Copies what belongs to no node. */
static int copy_rest(struct pfs_store *from, struct pfs_store *to)
{
	PFS_TRY(copy_stamp(from, to));
	PFS_TRY(pfs_store_scan_columns(from, copy_column, to));
	PFS_TRY(pfs_store_scan_source_roots(from, copy_root, to));
	PFS_TRY(pfs_store_scan_source_dirs(from, copy_dir, to));
	PFS_TRY(pfs_store_scan_tables(from, copy_table, &(struct rows){.from = from, .to = to}));
	return pfs_store_copy_path_indexes(from, to);
}

static int build(struct optimize *optimize)
{
	struct pfs_store *from = optimize->tree->store;

	PFS_TRY(copy_rest(from, pfs_build_store(optimize->build)));
	PFS_TRY(pfs_tree_walk(optimize->tree, PFS_ROOT_PRIME, add_walked, optimize));
	PFS_TRY(pfs_build_finish(optimize->build));
	PFS_TRY(pfs_store_scan_registers(from, copy_register, optimize));
	return pfs_build_commit(optimize->build);
}

static int optimize_locked(struct pfs_tree *tree, const char *temporary,
			   const struct pfs_build_options *options)
{
	struct optimize optimize = {.tree = tree};
	struct pfs_build_options how = *options;
	int error;

	how.number = copy_numbers;
	how.written = copy_belongings;
	how.arg = &optimize;
	error = pfs_build_open(&optimize.build, temporary, &how);
	if (!error)
		error = build(&optimize);
	pfs_build_close(optimize.build);
	pfs_byprime_drain(&optimize.links, free_link, NULL);
	free(optimize.old_primes);
	free(optimize.path);
	if (!error)
		error = pfs_store_replace(tree->store, temporary);
	if (!error)
		pfs_imagefile_remove(tree);
	if (error)
		(void)unlink(temporary);
	return error;
}

/* Moves what a crash left in the log into the file, which is then opened only for reading. */
static int recover(const char *path, unsigned wait_ms)
{
	struct pfs_store_options options = {.wait_ms = wait_ms};
	struct pfs_store *store;

	PFS_TRY(pfs_store_open(&store, path, &options));
	return pfs_store_close(store);
}

int pfs_tree_optimize(const char *path, unsigned wait_ms)
{
	struct pfs_tree_options options = {.read_only = true, .alone = true, .wait_ms = wait_ms};
	struct pfs_build_options how = {0};
	char *temporary PFS_FREE = NULL;
	struct pfs_tree *tree;
	int error;

	PFS_TRY(recover(path, wait_ms));
	PFS_TRY(pfs_tree_open(&tree, path, &options));
	error = pfs_build_name_part(&temporary, pfs_store_path(tree->store));
	if (!error)
		error = optimize_locked(tree, temporary, &how);
	(void)pfs_tree_close(tree);
	return error;
}
