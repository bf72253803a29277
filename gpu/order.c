/* SPDX-License-Identifier: MIT */
/* gpu/order.c - component-wise pre-order of a set of nodes: every directory before what lies in it,
 * siblings by the bytes of their names. */
#include "gpu/engine_impl.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/preorder.h"

struct ordering {
	const struct pfs_columns *c;
	const struct pfs_names_view *view;
	struct pfs_preorder order;
	uint32_t *of_directory; /* by directory number: its entry's */
};

static int compare_names(const void *view, uint32_t a, uint32_t b)
{
	const uint8_t *x = pfs_name_of(view, a), *y = pfs_name_of(view, b);
	int order = memcmp(x + 1, y + 1, PFS_MIN(*x, *y));

	return order ? order : (int)*x - (int)*y;
}

static int add_entry(struct ordering *o, uint32_t slot, uint32_t above, uint32_t *number)
{
	const uint8_t *name = pfs_name_of(o->view, slot);

	return pfs_preorder_add(&o->order, number, above, slot, pfs_preorder_key(name + 1, *name));
}

/* The directory's entry, made with those above it as needed. */
static int directory_entry(struct ordering *o, uint32_t directory, uint32_t *index)
{
	uint32_t missing = 0, top = directory, below = 0;
	int error = 0;

	/* Reverses the chain of missing ones in of_directory, to be made from the top. */
	while (top && !o->of_directory[top]) {
		o->of_directory[top] = below;
		below = top;
		top = o->c->directories[top].parent;
		missing++;
	}
	*index = top ? o->of_directory[top] : 0;
	while (missing-- > 0 && error == 0) {
		uint32_t d = below;

		below = o->of_directory[d];
		error = add_entry(o, o->c->directory_slot[d], *index, index);
		o->of_directory[d] = *index;
	}
	return error;
}

static int add_slot(struct ordering *o, uint32_t slot)
{
	uint32_t home = o->c->home[slot], index;
	int error;

	if (!home)
		return 0;
	error = directory_entry(o, home, &index);
	if (error == 0 && !pfs_slot_is_directory(o->c, slot))
		error = add_entry(o, slot, index, &index);
	if (error == 0)
		pfs_preorder_want(&o->order, index);
	return error;
}

int pfs_path_order(const struct pfs_columns *c, const struct pfs_names_view *view, uint32_t *slots,
		   size_t n)
{
	struct ordering o = {
		.c = c,
		.view = view,
		.order = {.compare = compare_names, .arg = view},
	};
	int error;

	o.of_directory = calloc(PFS_MAX(c->n_directories, 1u), sizeof(*o.of_directory));
	if (!o.of_directory)
		return -ENOMEM;
	error = pfs_grow(&o.order.entries, &o.order.capacity, n + 1, sizeof(*o.order.entries));
	for (size_t i = 0; i < n && error == 0; i++)
		error = add_slot(&o, slots[i]);
	if (error == 0)
		error = pfs_preorder_list(&o.order, slots);
	pfs_preorder_finish(&o.order);
	free(o.of_directory);
	return error;
}
