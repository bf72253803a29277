/* SPDX-License-Identifier: MIT */
/* Linear probing.  When a table is full a larger one is begun, and every insert moves some entries
 * over; until the old table is empty a search looks into both. */
#include "fs/image/slotmap.h"

#include <stdlib.h>

#include "base/reserve.h"
#include "gpu/engine.h"

#define EMPTY      0u	      /* cells hold slot + 1 */
#define REMOVED    UINT32_MAX /* only in the old table, which nobody inserts into */
#define CELLS_MIN  1024u
#define PREFETCH   16u /* slots ahead */
#define MOVE_CELLS 16u /* of the old table with every insert: it is empty before the new one is full */

struct table {
	struct pfs_reserve memory;
	uint32_t n_cells;
	uint32_t n_used;
};

struct pfs_slot_map {
	struct table now, old; /* old.n_cells is 0 when there is none */
	uint32_t moved;	       /* cells of old before this one are empty */
};

static uint32_t *cells(const struct table *table)
{
	return (uint32_t *)table->memory.base;
}

static uint32_t home(const struct table *table, uint64_t prime)
{
	uint64_t hash = prime * UINT64_C(0x9e3779b97f4a7c15);

	hash ^= hash >> 32;
	hash *= UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)((hash >> 32) * table->n_cells >> 32);
}

static uint32_t following(const struct table *table, uint32_t i)
{
	return i + 1 == table->n_cells ? 0 : i + 1;
}

static int table_create(struct table *table, size_t n_cells)
{
	*table = (struct table){0};
	if (n_cells >= UINT32_MAX)
		return -ENOMEM;
	PFS_TRY(pfs_reserve_whole(&table->memory, n_cells * sizeof(uint32_t)));
	table->n_cells = (uint32_t)n_cells;
	return 0;
}

static void table_release(struct table *table)
{
	pfs_reserve_close(&table->memory);
	*table = (struct table){0};
}

static void table_insert(struct table *table, uint64_t prime, uint32_t slot)
{
	uint32_t i = home(table, prime);

	while (cells(table)[i] != EMPTY)
		i = following(table, i);
	cells(table)[i] = slot + 1;
	table->n_used++;
}

/* The prime's cell, or PFS_NO_SLOT. */
static uint32_t table_find(const struct table *table, const uint64_t *primes, uint64_t prime)
{
	uint32_t i;

	if (!table->n_cells || !prime) /* which a slot without a node has */
		return PFS_NO_SLOT;
	for (i = home(table, prime); cells(table)[i] != EMPTY; i = following(table, i))
		if (cells(table)[i] != REMOVED && primes[cells(table)[i] - 1] == prime)
			return i;
	return PFS_NO_SLOT;
}

/* Is `middle` cyclically in (from, to]? */
static bool between(uint32_t from, uint32_t middle, uint32_t to)
{
	return from <= to ? from < middle && middle <= to : from < middle || middle <= to;
}

/* Empties cell i and draws later entries of its run back, so that no search stops too early. */
static void table_close(struct table *table, const uint64_t *primes, uint32_t i)
{
	uint32_t next = i;

	table->n_used--;
	for (;;) {
		cells(table)[i] = EMPTY;
		do {
			next = following(table, next);
			if (cells(table)[next] == EMPTY)
				return;
		} while (between(i, home(table, primes[cells(table)[next] - 1]), next));
		cells(table)[i] = cells(table)[next];
		i = next;
	}
}

int pfs_slot_map_create(struct pfs_slot_map **out)
{
	struct pfs_slot_map *map = calloc(1, sizeof(*map));

	*out = NULL;
	if (!map)
		return -ENOMEM;
	if (table_create(&map->now, CELLS_MIN)) {
		free(map);
		return -ENOMEM;
	}
	*out = map;
	return 0;
}

void pfs_slot_map_destroy(struct pfs_slot_map *map)
{
	if (!map)
		return;
	table_release(&map->now);
	table_release(&map->old);
	free(map);
}

int pfs_slot_map_reserve(struct pfs_slot_map *map, uint64_t count)
{
	struct table larger;

	if (count <= (uint64_t)map->now.n_cells * 4 / 5)
		return 0;
	if (!map->now.n_used) {
		PFS_TRY(table_create(&larger, count / 2 * 3 + CELLS_MIN));
		table_release(&map->now);
		map->now = larger;
		return 0;
	}
	PFS_VERIFY_CHECK(!map->old.n_cells);
	PFS_TRY(table_create(&larger, (size_t)map->now.n_cells / 2 * 3));
	map->old = map->now;
	map->now = larger;
	map->moved = 0;
	return 0;
}

static void move_some(struct pfs_slot_map *map, const uint64_t *primes)
{
	struct table *old = &map->old;
	uint32_t end = old->n_cells - map->moved < MOVE_CELLS ? old->n_cells
							       : map->moved + MOVE_CELLS;

	for (; map->moved < end; map->moved++) {
		uint32_t *cell = &cells(old)[map->moved];

		if (*cell == EMPTY || *cell == REMOVED)
			continue;
		table_insert(&map->now, primes[*cell - 1], *cell - 1);
		*cell = REMOVED;
	}
	if (map->moved == old->n_cells)
		table_release(old);
}

void pfs_slot_map_insert(struct pfs_slot_map *map, const uint64_t *primes, uint32_t slot)
{
	if (map->old.n_cells)
		move_some(map, primes);
	table_insert(&map->now, primes[slot], slot);
}

/* As table_insert, while others do the same. */
static void table_insert_shared(struct table *table, uint64_t prime, uint32_t slot)
{
	uint32_t i = home(table, prime), expected = EMPTY;

	while (!__atomic_compare_exchange_n(&cells(table)[i], &expected, slot + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		i = following(table, i);
		expected = EMPTY;
	}
}

void pfs_slot_map_fill(struct pfs_slot_map *map, const uint64_t *primes, uint32_t from, uint32_t to)
{
	uint32_t n = 0;

	PFS_VERIFY_CHECK(!map->old.n_cells);
	for (uint32_t slot = from; slot < to; slot++) {
		if (slot + PREFETCH < to)
			__builtin_prefetch(
				&cells(&map->now)[home(&map->now, primes[slot + PREFETCH])], 1);
		if (!primes[slot])
			continue;
		table_insert_shared(&map->now, primes[slot], slot);
		n++;
	}
	(void)__atomic_fetch_add(&map->now.n_used, n, __ATOMIC_RELAXED);
}

void pfs_slot_map_prefetch(const struct pfs_slot_map *map, uint64_t prime)
{
	__builtin_prefetch(&cells(&map->now)[home(&map->now, prime)]);
}

void pfs_slot_map_remove(struct pfs_slot_map *map, const uint64_t *primes, uint64_t prime)
{
	uint32_t i = table_find(&map->now, primes, prime);

	if (i != PFS_NO_SLOT) {
		table_close(&map->now, primes, i);
		return;
	}
	i = table_find(&map->old, primes, prime);
	if (i != PFS_NO_SLOT)
		cells(&map->old)[i] = REMOVED;
}

uint32_t pfs_slot_map_find(const struct pfs_slot_map *map, const uint64_t *primes, uint64_t prime)
{
	uint32_t i = table_find(&map->now, primes, prime);

	if (i != PFS_NO_SLOT)
		return cells(&map->now)[i] - 1;
	i = table_find(&map->old, primes, prime);
	return i == PFS_NO_SLOT ? i : cells(&map->old)[i] - 1;
}

const uint32_t *pfs_slot_map_cells(const struct pfs_slot_map *map, uint32_t *n_cells)
{
	PFS_VERIFY_CHECK(!map->old.n_cells);
	*n_cells = map->now.n_cells;
	return cells(&map->now);
}

int pfs_slot_map_adopt(struct pfs_slot_map *map, uint32_t **out, uint32_t n_cells, uint32_t n_used)
{
	struct table table;

	PFS_VERIFY_CHECK(!map->now.n_used && !map->old.n_cells);
	PFS_TRY(table_create(&table, n_cells));
	table_release(&map->now);
	map->now = table;
	map->now.n_used = n_used;
	*out = cells(&map->now);
	return 0;
}

uint64_t pfs_slot_map_memory(const struct pfs_slot_map *map)
{
	return sizeof(*map) + ((size_t)map->now.n_cells + map->old.n_cells) * sizeof(uint32_t);
}
