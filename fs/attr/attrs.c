/* SPDX-License-Identifier: MIT */
/* The sets of attributes: what they add to commits, and how a node's set is found. */
#include "fs/attr/xattr.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/order.h"
#include "fs/attr/xattr_impl.h"
#include "fs/image/image.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

#define CACHED_SETS ((size_t)4 << 20)

static int compare_columns(const void *a, const void *b)
{
	const struct pfs_attr_type_of_name *x = a, *y = b;

	return pfs_compare_bytes(x->name, x->name_len, y->name, y->name_len);
}

static int add_column(void *arg, const void *name, size_t name_len, enum pfs_attr_type type)
{
	struct pfs_attrs *attrs = arg;
	struct pfs_attr_type_of_name *column;
	int error;

	error = pfs_grow(&attrs->columns, &attrs->capacity, attrs->n_columns + 1, sizeof(*column));
	if (error)
		return error;
	column = &attrs->columns[attrs->n_columns];
	*column = (struct pfs_attr_type_of_name){
		.name = malloc(name_len + 1), .name_len = name_len, .type = type};
	if (!column->name)
		return -ENOMEM;
	memcpy(column->name, name, name_len);
	attrs->n_columns++;
	return 0;
}

static void cut(struct pfs_tree *tree)
{
	pfs_records_cut(tree->attrs->sets);
}

static bool cut_some(struct pfs_tree *tree, unsigned n)
{
	return pfs_records_cut_some(tree->attrs->sets, n);
}

static int store_set(struct pfs_tree *tree, uint64_t prime, const struct pfs_value *set)
{
	atomic_store(&tree->attrs->is_written, true);
	return pfs_attrset_store(tree, prime, set);
}

static int write_sets(struct pfs_tree *tree)
{
	return pfs_records_write(tree->attrs->sets, store_set);
}

static void done(struct pfs_tree *tree)
{
	pfs_records_done(tree->attrs->sets);
	pfs_attr_columns_settle(tree->attrs->by_name);
}

static void drop(struct pfs_tree *tree, uint64_t ino)
{
	pfs_records_drop(tree->attrs->sets, ino);
}

static int keep(struct pfs_tree *tree, uint64_t ino, uint64_t *former)
{
	struct pfs_value *set PFS_UNREF = NULL;

	PFS_TRY(pfs_records_get(tree->attrs->sets, &set, ino, PFS_RECORDS_KEEP));
	*former += set ? set->size : 0;
	return 0;
}

static const struct pfs_part part = {
	.name = "attributes",
	.cut = cut,
	.cut_some = cut_some,
	.write = write_sets,
	.done = done,
	.keep = keep,
	.flags = PFS_NODE_ATTRS,
	.drop = drop,
};

int pfs_attrs_create(struct pfs_tree *tree)
{
	struct pfs_attrs *attrs = calloc(1, sizeof(*attrs));
	int error;

	if (!attrs)
		return -ENOMEM;
	tree->attrs = attrs;
	error = pfs_records_create(&attrs->sets, tree, CACHED_SETS, pfs_attrset_load);
	if (!error)
		error = pfs_store_scan_columns(tree->store, add_column, attrs);
	if (!error)
		error = pfs_attr_names_load(&attrs->names, tree);
	if (!error)
		error = pfs_attr_columns_create(&attrs->by_name, tree);
	if (error) {
		pfs_attrs_destroy(tree);
		return error;
	}
	if (attrs->n_columns)
		qsort(attrs->columns, attrs->n_columns, sizeof(*attrs->columns), compare_columns);
	pfs_take_part(tree, &part);
	return 0;
}

void pfs_attrs_destroy(struct pfs_tree *tree)
{
	struct pfs_attrs *attrs = tree->attrs;
	size_t i;

	if (!attrs)
		return;
	for (i = 0; i < attrs->n_columns; i++)
		free(attrs->columns[i].name);
	free(attrs->columns);
	pfs_attr_columns_destroy(attrs->by_name);
	pfs_attr_name_list_finish(&attrs->names);
	pfs_records_destroy(attrs->sets);
	free(attrs);
	tree->attrs = NULL;
}

struct pfs_attr_columns *pfs_attrs_columns(const struct pfs_tree *tree)
{
	return tree->attrs->by_name;
}

int pfs_attrs_pending(struct pfs_tree *tree,
		      int (*fn)(void *arg, uint64_t prime, struct pfs_value *set), void *arg)
{
	return pfs_records_pending(tree->attrs->sets, fn, arg);
}

int pfs_attr_look(struct pfs_tree *tree, uint8_t *flags, mode_t *mode, uint64_t ino)
{
	int error = 0;
	uint32_t slot;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot == PFS_NO_SLOT || tree->image.state[slot] & PFS_SLOT_DROPPED) {
		error = -ESTALE;
	} else {
		*flags = tree->image.flags[slot];
		*mode = tree->image.mode[slot];
	}
	pfs_hold_end(tree);
	return error;
}

/* For a node without attributes the store is not asked. */
int pfs_attr_set_of(struct pfs_tree *tree, struct pfs_value **out, uint64_t ino)
{
	uint8_t flags;
	mode_t mode;
	int error = pfs_attr_look(tree, &flags, &mode, ino);

	*out = NULL;
	if (error || !(flags & PFS_NODE_ATTRS))
		return error;
	return pfs_records_get(tree->attrs->sets, out, ino, PFS_RECORDS_LOOK);
}

enum pfs_attr_type pfs_attr_type_of(const struct pfs_attrs *attrs, const struct pfs_attr *attr)
{
	struct pfs_attr_type_of_name key = {.name = (char *)attr->name, .name_len = attr->name_len};
	const struct pfs_attr_type_of_name *column = NULL;
	int64_t integer;
	double real;

	if (attrs->n_columns)
		column = bsearch(&key, attrs->columns, attrs->n_columns, sizeof(key),
				 compare_columns);
	if (column && column->type == PFS_ATTR_INTEGER &&
	    pfs_is_integer(&integer, attr->text, attr->text_len))
		return PFS_ATTR_INTEGER;
	if (column && column->type == PFS_ATTR_REAL &&
	    pfs_is_real(&real, attr->text, attr->text_len))
		return PFS_ATTR_REAL;
	return PFS_ATTR_TEXT;
}
