/* SPDX-License-Identifier: MIT */
/* gpu/order.c - component-wise pre-order of a set of nodes: every directory before what lies in it,
 * siblings by the bytes of their names. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/engine_impl.h"

/* One node of the set or above it.  Entries are chained to their directory's and walked from the
 * root's. */
struct entry {
	uint32_t slot;
	uint32_t next, first; /* sibling after this one, first child; index + 1, 0: none */
	bool wanted;
};

struct ordering {
	const struct pfs_columns *c;
	const struct pfs_names_view *view;
	struct entry *entries;
	size_t n, capacity;
	uint32_t *of_directory; /* by directory number: index + 1 */
};

static int compare_names(const struct pfs_names_view *view, uint32_t a, uint32_t b)
{
	const uint8_t *x = pfs_name_of(view, a), *y = pfs_name_of(view, b);
	int order = memcmp(x + 1, y + 1, PFS_MIN(*x, *y));

	return order ? order : (int)*x - (int)*y;
}

/* Merges two sorted chains of siblings. */
static uint32_t merge(struct ordering *o, uint32_t a, uint32_t b)
{
	uint32_t head = 0, *tail = &head;

	while (a && b) {
		uint32_t *less =
			compare_names(o->view, o->entries[a - 1].slot, o->entries[b - 1].slot) <= 0
				? &a
				: &b;

		*tail = *less;
		tail = &o->entries[*less - 1].next;
		*less = *tail;
	}
	*tail = a ? a : b;
	return head;
}

/* Bottom-up merge sort of a chain; bins[i] holds 2^i siblings. */
static uint32_t sort_chain(struct ordering *o, uint32_t chain)
{
	uint32_t bins[33] = {0}, sorted = 0;

	while (chain) {
		uint32_t one = chain, i = 0;

		chain = o->entries[one - 1].next;
		o->entries[one - 1].next = 0;
		for (; bins[i]; i++) {
			one = merge(o, bins[i], one);
			bins[i] = 0;
		}
		bins[i] = one;
	}
	for (size_t i = 0; i < PFS_COUNT(bins); i++)
		if (bins[i])
			sorted = sorted ? merge(o, bins[i], sorted) : bins[i];
	return sorted;
}

static int add_entry(struct ordering *o, uint32_t slot, uint32_t parent_entry, uint32_t *index)
{
	if (pfs_grow(&o->entries, &o->capacity, o->n + 1, sizeof(*o->entries)))
		return -ENOMEM;
	o->entries[o->n] = (struct entry){.slot = slot};
	if (parent_entry) {
		o->entries[o->n].next = o->entries[parent_entry - 1].first;
		o->entries[parent_entry - 1].first = (uint32_t)o->n + 1;
	}
	*index = (uint32_t)++o->n;
	return 0;
}

/* The directory's entry, made with those above it as needed. */
static int directory_entry(struct ordering *o, uint32_t directory, uint32_t *index)
{
	uint32_t missing = 0, top = directory, below = 0;
	int rc = 0;

	/* Reverses the chain of missing ones in of_directory, to be made from the top. */
	while (top && !o->of_directory[top]) {
		o->of_directory[top] = below;
		below = top;
		top = o->c->directories[top].parent;
		missing++;
	}
	*index = top ? o->of_directory[top] : 0;
	while (missing-- > 0 && rc == 0) {
		uint32_t d = below;

		below = o->of_directory[d];
		rc = add_entry(o, o->c->directory_slot[d], *index, index);
		o->of_directory[d] = *index;
	}
	return rc;
}

static int add_slot(struct ordering *o, uint32_t slot)
{
	uint32_t home = o->c->home[slot], index;
	int rc;

	if (!home)
		return 0;
	rc = directory_entry(o, home, &index);
	if (rc == 0 && !pfs_slot_is_directory(o->c, slot))
		rc = add_entry(o, slot, index, &index);
	if (rc == 0)
		o->entries[index - 1].wanted = true;
	return rc;
}

/* Pre-order without recursion: chains are sorted on the way down, spliced into one list. */
static size_t emit(struct ordering *o, uint32_t *slots)
{
	uint32_t list = o->n ? 1 : 0; /* the root is always made first */
	size_t n = 0;

	while (list) {
		struct entry *entry = &o->entries[list - 1];
		uint32_t children = sort_chain(o, entry->first), last = children;

		if (entry->wanted)
			slots[n++] = entry->slot;
		list = entry->next;
		if (!children)
			continue;
		while (o->entries[last - 1].next)
			last = o->entries[last - 1].next;
		o->entries[last - 1].next = list;
		list = children;
	}
	return n;
}

int pfs_path_order(const struct pfs_columns *c, const struct pfs_names_view *view, uint32_t *slots,
		   size_t n)
{
	struct ordering o = {.c = c, .view = view};
	int rc;

	o.of_directory = calloc(PFS_MAX(c->n_directories, 1u), sizeof(*o.of_directory));
	if (!o.of_directory)
		return -ENOMEM;
	rc = pfs_grow(&o.entries, &o.capacity, n + 1, sizeof(*o.entries));
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = add_slot(&o, slots[i]);
	if (rc == 0)
		(void)emit(&o, slots);
	free(o.entries);
	free(o.of_directory);
	return rc;
}
