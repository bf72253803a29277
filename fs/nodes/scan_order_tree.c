/* SPDX-License-Identifier: MIT */
/* Slots sorted as a tree: that of the nodes and those above them, whose siblings are sorted. */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>

#include "base/later.h"
#include "base/preorder.h"
#include "fs/image/names.h"

#define LOOK_EVERY 64u /* nodes, to each of which the way may be long */

struct ordering {
	const struct pfs_image *image;
	struct pfs_preorder order;
	uint32_t *entry_of; /* by slot: its number */
};

static int compare_names(const void *context, uint32_t a, uint32_t b)
{
	const struct pfs_image *image = context;

	return pfs_names_compare(image->names, image->name[a], image->name[b]);
}

/* The slot's entry, made with those above it as needed.  -ENOMEM. */
static int add_entry(struct ordering *o, uint32_t slot, struct pfs_trail *trail)
{
	size_t level;

	if (o->entry_of[slot])
		return 0;
	PFS_TRY(pfs_trail_to(trail, o->image, slot, false));
	for (level = trail->n; level > 0 && !o->entry_of[trail->slot[level - 1]];)
		level--;
	for (; level < trail->n; level++) {
		uint32_t made = trail->slot[level];
		uint32_t above = level ? o->entry_of[trail->slot[level - 1]] : 0;
		size_t len;
		const char *name = pfs_names_get(o->image->names, o->image->name[made], &len);

		PFS_TRY(pfs_preorder_add(&o->order, &o->entry_of[made], above, made,
					 pfs_preorder_key(name, len)));
	}
	return 0;
}

static int look_of(void *watch)
{
	return pfs_scan_look(watch);
}

int pfs_scan_sort_as_tree(const struct pfs_image *image, struct pfs_slots *slots,
			  const struct pfs_scan_watch *watch)
{
	uint32_t *entry_of PFS_FREE_LATER = calloc(image->end, sizeof(*entry_of));
	struct ordering o = {
		.image = image,
		.order = {.compare = compare_names,
			  .arg = image,
			  .look = look_of,
			  .look_arg = (void *)watch},
		.entry_of = entry_of,
	};
	struct pfs_trail trail = {0};
	int error = entry_of ? 0 : -ENOMEM;

	for (size_t i = 0; i < slots->n && !error; i++) {
		error = add_entry(&o, slots->slot[i], &trail);
		if (!error)
			pfs_preorder_want(&o.order, entry_of[slots->slot[i]]);
		if (!error && i % LOOK_EVERY == 0)
			error = pfs_scan_look(watch);
	}
	if (!error)
		error = pfs_preorder_list(&o.order, slots->slot);
	pfs_preorder_finish(&o.order);
	pfs_trail_finish(&trail);
	return error;
}
