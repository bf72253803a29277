/* SPDX-License-Identifier: MIT */
/* Prime -> slot: linear probing over an array of slots; a key is looked up in the image's column of
 * primes, so an entry is 4 bytes.  Removal shifts back what followed: no tombstones. */
#include "fs/tree/internal.h"

#include <stdlib.h>
#include <string.h>

#define MIN_CAPACITY 1024u

struct pfs_slot_map {
	uint32_t *slots; /* PFS_NO_SLOT: empty */
	uint64_t capacity; /* a power of two */
	uint64_t count;
	unsigned shift;
};

static uint64_t home(const struct pfs_slot_map *map, uint64_t prime)
{
	return prime * UINT64_C(0x9e3779b97f4a7c15) >> map->shift;
}

static int allocate(struct pfs_slot_map *map, uint64_t capacity)
{
	uint32_t *slots = malloc(capacity * sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, capacity * sizeof(*slots));
	map->slots = slots;
	map->capacity = capacity;
	map->shift = 64 - (unsigned)__builtin_ctzll(capacity);
	return 0;
}

int pfs_slot_map_create(struct pfs_slot_map **out)
{
	struct pfs_slot_map *map = calloc(1, sizeof(*map));

	*out = NULL;
	if (!map)
		return -ENOMEM;
	if (allocate(map, MIN_CAPACITY)) {
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
	free(map->slots);
	free(map);
}

static void put(struct pfs_slot_map *map, const uint64_t *primes, uint32_t slot)
{
	uint64_t i = home(map, primes[slot]);

	while (map->slots[i] != PFS_NO_SLOT)
		i = (i + 1) & (map->capacity - 1);
	map->slots[i] = slot;
}

int pfs_slot_map_reserve(struct pfs_slot_map *map, const uint64_t *primes, uint64_t count)
{
	struct pfs_slot_map old = *map;
	uint64_t capacity = map->capacity;

	while (count > capacity / 4 * 3)
		capacity *= 2;
	if (capacity == map->capacity)
		return 0;
	PFS_TRY(allocate(map, capacity));
	for (uint64_t i = 0; i < old.capacity; i++)
		if (old.slots[i] != PFS_NO_SLOT)
			put(map, primes, old.slots[i]);
	free(old.slots);
	return 0;
}

void pfs_slot_map_insert(struct pfs_slot_map *map, const uint64_t *primes, uint32_t slot)
{
	put(map, primes, slot);
	map->count++;
}

static uint64_t find(const struct pfs_slot_map *map, const uint64_t *primes, uint64_t prime)
{
	uint64_t i = home(map, prime);

	while (map->slots[i] != PFS_NO_SLOT && primes[map->slots[i]] != prime)
		i = (i + 1) & (map->capacity - 1);
	return i;
}

uint32_t pfs_slot_map_find(const struct pfs_slot_map *map, const uint64_t *primes, uint64_t prime)
{
	return map->slots[find(map, primes, prime)];
}

void pfs_slot_map_remove(struct pfs_slot_map *map, const uint64_t *primes, uint64_t prime)
{
	uint64_t mask = map->capacity - 1;
	uint64_t hole = find(map, primes, prime);

	if (map->slots[hole] == PFS_NO_SLOT)
		return;
	map->count--;
	for (uint64_t i = (hole + 1) & mask; map->slots[i] != PFS_NO_SLOT; i = (i + 1) & mask) {
		uint64_t wanted = home(map, primes[map->slots[i]]);

		/* an entry may fill the hole unless its home lies cyclically in (hole, i] */
		if (((i - wanted) & mask) >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole] = PFS_NO_SLOT;
}

uint64_t pfs_slot_map_memory(const struct pfs_slot_map *map)
{
	return map->capacity * sizeof(*map->slots);
}
