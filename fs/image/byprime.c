/* SPDX-License-Identifier: MIT */
#include "fs/image/byprime.h"

#include <stdlib.h>

#define FIRST_SIZE 64

static struct pfs_byprime **chain_of(const struct pfs_byprime_table *table, uint64_t prime)
{
	uint64_t hash = prime * UINT64_C(0x9e3779b97f4a7c15);

	if (!table->size)
		return (struct pfs_byprime **)&table->only;
	return &table->chains[(hash >> 32) & (table->size - 1)];
}

struct pfs_byprime *pfs_byprime_find(const struct pfs_byprime_table *table, uint64_t prime)
{
	struct pfs_byprime *entry = *chain_of(table, prime);

	while (entry && entry->prime != prime)
		entry = entry->next;
	return entry;
}

static void push(void *table, struct pfs_byprime *entry)
{
	struct pfs_byprime **chain = chain_of(table, entry->prime);

	entry->next = *chain;
	*chain = entry;
}

static void resize(struct pfs_byprime_table *table, size_t size)
{
	struct pfs_byprime_table larger = {
		.chains = calloc(size, sizeof(void *)), .size = size, .count = table->count};

	if (!larger.chains)
		return;
	pfs_byprime_drain(table, push, &larger);
	*table = larger;
}

void pfs_byprime_add(struct pfs_byprime_table *table, struct pfs_byprime *entry)
{
	if (table->count >= table->size)
		resize(table, table->size ? 2 * table->size : FIRST_SIZE);
	push(table, entry);
	table->count++;
}

void pfs_byprime_remove(struct pfs_byprime_table *table, struct pfs_byprime *entry)
{
	struct pfs_byprime **at = chain_of(table, entry->prime);

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	table->count--;
}

void pfs_byprime_drain(struct pfs_byprime_table *table,
		       void (*fn)(void *arg, struct pfs_byprime *entry), void *arg)
{
	struct pfs_byprime *entry;
	size_t i;

	for (i = 0; i < (table->size ? table->size : 1); i++) {
		struct pfs_byprime **chain = table->size ? &table->chains[i] : &table->only;

		while ((entry = *chain)) {
			*chain = entry->next;
			fn(arg, entry);
		}
	}
	free(table->chains);
	*table = (struct pfs_byprime_table){0};
}
