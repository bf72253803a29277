/* SPDX-License-Identifier: MIT */
#include "base/preorder.h"

#include <endian.h>
#include <string.h>

#include "base/checked.h"
#include "base/later.h"

#define LOOK_EVERY 4096u

uint64_t pfs_preorder_key(const void *name, size_t len)
{
	uint64_t key = 0;

	memcpy(&key, name, PFS_MIN(len, sizeof(key)));
	return be64toh(key);
}

int pfs_preorder_add(struct pfs_preorder *order, uint32_t *number, uint32_t above, uint32_t slot,
		     uint64_t key)
{
	struct pfs_preorder_entry *entry;

	PFS_TRY(pfs_grow(&order->entries, &order->capacity, order->n + 1, sizeof(*entry)));
	entry = &order->entries[order->n];
	*entry = (struct pfs_preorder_entry){.slot = slot, .key = key};
	*number = (uint32_t)++order->n;
	if (above) {
		entry->next = order->entries[above - 1].first;
		order->entries[above - 1].first = *number;
	}
	return 0;
}

void pfs_preorder_want(struct pfs_preorder *order, uint32_t number)
{
	order->entries[number - 1].wanted = true;
}

static bool precedes(const struct pfs_preorder *order, uint32_t a, uint32_t b)
{
	const struct pfs_preorder_entry *x = &order->entries[a - 1], *y = &order->entries[b - 1];

	if (x->key != y->key)
		return x->key < y->key;
	return order->compare(order->arg, x->slot, y->slot) < 0;
}

static int look(struct pfs_preorder *order)
{
	if (!order->look || ++order->steps < LOOK_EVERY)
		return 0;
	order->steps = 0;
	return order->look(order->look_arg);
}

/* Merges two sorted chains of siblings. */
static int merge(struct pfs_preorder *order, uint32_t *out, uint32_t a, uint32_t b)
{
	uint32_t head = 0, *tail = &head;

	while (a && b) {
		uint32_t *less = precedes(order, b, a) ? &b : &a;

		*tail = *less;
		tail = &order->entries[*less - 1].next;
		*less = *tail;
		PFS_TRY(look(order));
	}
	*tail = a ? a : b;
	*out = head;
	return 0;
}

/* Sorts a chain by merging; bins[i] holds 2^i siblings. */
static int sort_chain(struct pfs_preorder *order, uint32_t *sorted, uint32_t chain)
{
	uint32_t bins[33] = {0};

	for (*sorted = 0; chain;) {
		uint32_t one = chain, i = 0;

		chain = order->entries[one - 1].next;
		order->entries[one - 1].next = 0;
		for (; bins[i]; i++) {
			PFS_TRY(merge(order, &one, bins[i], one));
			bins[i] = 0;
		}
		bins[i] = one;
	}
	for (size_t i = 0; i < PFS_COUNT(bins); i++)
		if (bins[i])
			PFS_TRY(merge(order, sorted, bins[i], *sorted));
	return 0;
}

/* Nothing recurses: each chain is sorted on the way down, and put in front of one list. */
int pfs_preorder_list(struct pfs_preorder *order, uint32_t *slots)
{
	uint32_t list = order->n ? 1 : 0;

	while (list) {
		struct pfs_preorder_entry *entry = &order->entries[list - 1];
		uint32_t children, last;

		PFS_TRY(look(order));
		PFS_TRY(sort_chain(order, &children, entry->first));
		last = children;
		if (entry->wanted)
			*slots++ = entry->slot;
		list = entry->next;
		if (!children)
			continue;
		while (order->entries[last - 1].next)
			last = order->entries[last - 1].next;
		order->entries[last - 1].next = list;
		list = children;
	}
	return 0;
}

void pfs_preorder_finish(struct pfs_preorder *order)
{
	pfs_free_later(order->entries);
	order->entries = NULL;
	order->n = order->capacity = 0;
}
