/* SPDX-License-Identifier: MIT */
#include "fs/attr/attrnames.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/order.h"
#include "fs/attr/xattr_impl.h"
#include "fs/content/register.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

/* Returns the index at which the name is, or would be, in the order of bytes. */
static size_t place_of(const struct pfs_attr_name_list *list, const char *name, size_t len,
		       bool *found)
{
	size_t low = 0, high = list->n;

	*found = false;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct pfs_attr_name *other = &list->names[list->sorted[middle]];
		int order = pfs_compare_bytes(other->bytes, other->len, name, len);

		if (!order)
			*found = true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int pfs_attr_name_add(struct pfs_attr_name_list *list, const char *bytes, size_t len,
		      enum pfs_attr_type type)
{
	bool found;
	size_t place = place_of(list, bytes, len, &found), n = list->n;
	char *copy;

	if (found) {
		if (type != PFS_ATTR_TEXT)
			list->names[list->sorted[place]].type = type;
		return 0;
	}
	PFS_TRY(pfs_grow(&list->names, &list->capacity, n + 1, sizeof(*list->names)));
	PFS_TRY(pfs_grow(&list->sorted, &list->sorted_capacity, n + 1, sizeof(*list->sorted)));
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, len);
	copy[len] = 0;
	memmove(&list->sorted[place + 1], &list->sorted[place],
		(n - place) * sizeof(*list->sorted));
	list->sorted[place] = (uint32_t)n;
	list->names[n] = (struct pfs_attr_name){.bytes = copy, .len = len, .type = type};
	list->n = n + 1;
	return 0;
}

/* Returns the type of the name's values; TEXT if the name is not in the list. */
static enum pfs_attr_type type_of(const struct pfs_attr_name_list *list, const char *name,
				  size_t len)
{
	bool found;
	size_t place = place_of(list, name, len, &found);

	return found ? list->names[list->sorted[place]].type : PFS_ATTR_TEXT;
}

void pfs_attr_name_list_finish(struct pfs_attr_name_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->names[i].bytes);
	free(list->names);
	free(list->sorted);
}

/* ---- those of a store ---- */

static int take_name(void *arg, const void *name, size_t name_len)
{
	return pfs_attr_name_add(arg, name, name_len, PFS_ATTR_TEXT);
}

static int take_column(void *arg, const void *name, size_t name_len, enum pfs_attr_type type)
{
	return pfs_attr_name_add(arg, name, name_len, type);
}

/* Columns that no node keeps have names, too. */
static int add_computed(struct pfs_attr_name_list *list, const struct pfs_register *of)
{
	for (size_t i = 0; of && i < of->n; i++) {
		const char *name = of->columns[i];
		enum pfs_role role = pfs_register_role(of, name, strlen(name));
		enum pfs_attr_type type = PFS_ATTR_TEXT;

		if (role == PFS_ROLE_NONE)
			continue;
		if (role == PFS_ROLE_PARENT) {
			const char *id = of->columns[of->is.id];

			type = type_of(list, id, strlen(id));
		}
		PFS_TRY(pfs_attr_name_add(list, name, strlen(name), type));
	}
	return 0;
}

int pfs_attr_names_load(struct pfs_attr_name_list *list, struct pfs_tree *tree)
{
	const struct pfs_register *of;

	PFS_TRY(pfs_store_scan_names(tree->store, take_name, list));
	PFS_TRY(pfs_store_scan_columns(tree->store, take_column, list));
	for (size_t i = 0; (of = pfs_register_at(tree, i)); i++)
		PFS_TRY(add_computed(list, of));
	return 0;
}

int pfs_attr_names(struct pfs_tree *tree,
		   int (*fn)(void *arg, const char *name, size_t name_len, enum pfs_attr_type type),
		   void *arg)
{
	const struct pfs_attr_name_list *list = &tree->attrs->names;
	int error = 0;

	pfs_parts_lock(tree);
	for (size_t i = 0; i < list->n && !error; i++)
		error = fn(arg, list->names[i].bytes, list->names[i].len, list->names[i].type);
	pfs_parts_unlock(tree);
	return error;
}

uint64_t pfs_attr_names_count(const struct pfs_tree *tree)
{
	return tree->attrs->names.n;
}
