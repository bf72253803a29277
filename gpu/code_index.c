/* SPDX-License-Identifier: MIT */
#include "gpu/code_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/engine_impl.h"

/* scans after which a table is made, which takes as long as a few dozen scans */
#define ENOUGH	   32u
#define SLOTS_MOST (1u << 24) /* 256 MiB */

/* Codes without the root's factor are odd, so their low bits never are 0, and each factor still
 * counts in them. */
struct pfs_code_entry {
	uint32_t slot, tag;
};

static size_t place_of(const struct pfs_code_index *index, uint64_t low)
{
	return (size_t)(low * UINT64_C(0x9e3779b97f4a7c15) >> (64 - index->bits));
}

static uint32_t tag_of(uint64_t low)
{
	return (uint32_t)(low >> 32);
}

static void drop(struct pfs_code_index *index)
{
	free(index->entries);
	index->entries = NULL;
}

void pfs_code_index_init(struct pfs_code_index *index)
{
	*index = (struct pfs_code_index){.entries = NULL};
	(void)pthread_mutex_init(&index->making, NULL);
}

void pfs_code_index_finish(struct pfs_code_index *index)
{
	drop(index);
	(void)pthread_mutex_destroy(&index->making);
}

uint32_t pfs_code_index_next(const struct pfs_code_index *index, uint64_t low, size_t *at)
{
	size_t mask = ((size_t)1 << index->bits) - 1;

	for (;; ++*at) {
		const struct pfs_code_entry *e =
			&index->entries[(place_of(index, low) + *at) & mask];

		if (e->slot == PFS_NO_SLOT)
			return PFS_NO_SLOT;
		if (e->tag == tag_of(low)) {
			++*at;
			return e->slot;
		}
	}
}

static void insert(struct pfs_code_index *index, uint64_t low, uint32_t slot)
{
	size_t mask = ((size_t)1 << index->bits) - 1, at = place_of(index, low);

	while (index->entries[at].slot != PFS_NO_SLOT)
		at = (at + 1) & mask;
	index->entries[at] = (struct pfs_code_entry){.slot = slot, .tag = tag_of(low)};
}

struct lows {
	const struct pfs_columns *c;
	uint64_t *by_directory; /* 0: not known yet */
	uint32_t *path;
	size_t path_capacity;
};

/* Goes up to a directory whose bits are known, and down again. */
static int low_of_directory(struct lows *lows, uint32_t directory)
{
	const struct pfs_directory *directories = lows->c->directories;
	uint32_t d = directory;
	uint64_t low;
	size_t n = 0;

	for (; d && !lows->by_directory[d]; d = directories[d].parent) {
		if (pfs_grow(&lows->path, &lows->path_capacity, n + 1, sizeof(*lows->path)))
			return -ENOMEM;
		lows->path[n++] = d;
	}
	low = d ? lows->by_directory[d] : 1;
	while (n-- > 0) {
		low *= directories[lows->path[n]].prime;
		lows->by_directory[lows->path[n]] = low;
	}
	return 0;
}

static int fill(struct pfs_code_index *index, struct lows *lows)
{
	const struct pfs_columns *c = lows->c;

	for (uint32_t slot = 0; slot < c->n_slots; slot++) {
		uint32_t home = c->home[slot];
		uint64_t low;

		if (!pfs_slot_live(c, slot))
			continue;
		if (!lows->by_directory[home] && low_of_directory(lows, home))
			return -ENOMEM;
		low = lows->by_directory[home];
		if (!pfs_slot_is_directory(c, slot))
			low *= c->prime[slot];
		insert(index, low, slot);
	}
	return 0;
}

static void make(struct pfs_code_index *index, const struct pfs_columns *c)
{
	struct lows lows = {.c = c};
	size_t n;

	for (index->bits = 10; (size_t)1 << index->bits < (size_t)c->n_slots * 2;)
		index->bits++;
	n = (size_t)1 << index->bits;
	index->entries = malloc(n * sizeof(*index->entries));
	lows.by_directory = calloc((size_t)c->n_directories + 1, sizeof(*lows.by_directory));
	if (index->entries)
		memset(index->entries, 0xff, n * sizeof(*index->entries)); /* PFS_NO_SLOT */
	if (!index->entries || !lows.by_directory || fill(index, &lows))
		drop(index);
	free(lows.by_directory);
	free(lows.path);
}

bool pfs_code_index_ready(struct pfs_code_index *index, const struct pfs_columns *c, uint64_t epoch)
{
	if (__atomic_load_n(&index->ready, __ATOMIC_ACQUIRE) == epoch)
		return true;
	if (pthread_mutex_trylock(&index->making))
		return false;
	/* nobody searches the table: the columns have changed since it was made */
	if (index->epoch != epoch) {
		drop(index);
		index->epoch = epoch;
		index->asked = 0;
	}
	if (!index->entries && ++index->asked > ENOUGH && c->n_slots <= SLOTS_MOST) {
		index->asked = 0; /* if it fails it is not tried again at once */
		make(index, c);
	}
	if (index->entries)
		__atomic_store_n(&index->ready, epoch, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&index->making);
	return __atomic_load_n(&index->ready, __ATOMIC_ACQUIRE) == epoch;
}
