/* SPDX-License-Identifier: MIT */
/* The heap of names: a length byte, the bytes, a NUL, rounded up to units of 8 bytes, which places
 * count: so 32 bits reach 32 GiB, a billion names of 20 bytes.  Freed places are kept in a list for
 * each size and never merged: names are short and sizes few. */
#include "fs/image/names.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "base/reserve.h"
#include "fs/image/kept.h"
#include "gpu/table.h"
#include "meta/store.h"

#define HEAP_MAX (((size_t)PFS_NAME_UNIT << 32) + PFS_NAME_SLACK)
#define REGION 16384u /* units a loading thread takes at once */
#define DRAIN 1024u /* names freed at a time */
#define CLASSES ((1 + PFS_NAME_MAX + 1 + PFS_NAME_UNIT - 1) / PFS_NAME_UNIT + 1)

struct pfs_names {
	pthread_mutex_t lock; /* of pfs_names_add_in; the tree's lock protects all else */
	struct pfs_reserve heap;
	_Atomic uint64_t end; /* in units; read without the lock, too, by who reads a still image */
	uint64_t free_units;
	uint32_t free_list[CLASSES]; /* by size in units */
	struct pfs_reserve blocks;   /* of stamps */
	struct pfs_stamps stamps;
	_Atomic uint64_t clock; /* the last stamp; read without the lock, too */
	_Atomic uint64_t held;	/* 0: names that are removed are free at once, */
	_Atomic uint64_t held_end; /* as those are that have places from here on */
	struct pfs_kept kept;	/* what there is no memory for stays unused */
};

static uint32_t units(size_t len)
{
	return (uint32_t)((1 + len + 1 + PFS_NAME_UNIT - 1) / PFS_NAME_UNIT);
}

static unsigned char *at(const struct pfs_names *names, uint32_t place)
{
	return (unsigned char *)names->heap.base + (size_t)place * PFS_NAME_UNIT;
}

int pfs_names_create(struct pfs_names **out)
{
	struct pfs_names *names = calloc(1, sizeof(*names));
	int error;

	*out = NULL;
	if (!names)
		return -ENOMEM;
	(void)pthread_mutex_init(&names->lock, NULL);
	error = pfs_reserve_open(&names->heap, HEAP_MAX);
	if (!error)
		error = pfs_reserve_grow(&names->heap, PFS_NAME_UNIT + PFS_NAME_SLACK);
	if (!error)
		error = pfs_stamps_reserve(&names->stamps, &names->blocks);
	if (error) {
		pfs_names_destroy(names);
		return error;
	}
	names->end = 1; /* place 0 is PFS_NO_NAME: four zero bytes, the empty name */
	*out = names;
	return 0;
}

void pfs_names_destroy(struct pfs_names *names)
{
	if (!names)
		return;
	pfs_reserve_close(&names->heap);
	pfs_reserve_close(&names->blocks);
	pfs_kept_finish(&names->kept);
	(void)pthread_mutex_destroy(&names->lock);
	free(names);
}

static void store(const struct pfs_names *names, uint32_t place, const void *name, size_t len)
{
	unsigned char *p = at(names, place);

	p[0] = (unsigned char)len;
	if (len) /* the root's name may be NULL */
		memcpy(p + 1, name, len);
	p[1 + len] = 0;
}

/* What stands from the place on has changed: a name may reach into the next block. */
static void touch(struct pfs_names *names, uint32_t place, uint32_t size)
{
	uint64_t epoch = atomic_fetch_add_explicit(&names->clock, 1, memory_order_relaxed) + 1;

	pfs_stamps_touch(&names->stamps, place, epoch);
	pfs_stamps_touch(&names->stamps, place + size - 1, epoch);
}

/* *first = the start of n fresh units. */
static int take_fresh(struct pfs_names *names, uint64_t *first, uint64_t n)
{
	const size_t committed = names->heap.committed;

	if (names->end + n > UINT32_MAX)
		return -ENOMEM;
	PFS_TRY(pfs_reserve_grow(&names->heap, (names->end + n) * PFS_NAME_UNIT + PFS_NAME_SLACK));
	if (names->heap.committed > committed)
		pfs_expect_filled(names->heap.base, names->heap.committed);
	*first = names->end;
	names->end += n;
	return 0;
}

int pfs_names_add(struct pfs_names *names, uint32_t *place, const void *name, size_t len)
{
	uint32_t size = units(len);
	uint64_t first;

	if (names->free_list[size]) {
		*place = names->free_list[size];
		memcpy(&names->free_list[size], at(names, *place), sizeof(uint32_t));
		names->free_units -= size;
	} else {
		PFS_TRY(take_fresh(names, &first, size));
		*place = (uint32_t)first;
	}
	store(names, *place, name, len);
	touch(names, *place, size);
	return 0;
}

int pfs_names_add_in(struct pfs_names *names, struct pfs_name_region *region, uint32_t *place,
		     const void *name, size_t len)
{
	uint32_t size = units(len);

	if (region->next + size > region->end) {
		PFS_LOCKED(&names->lock);
		PFS_TRY(take_fresh(names, &region->next, REGION));
		region->end = region->next + REGION;
	}
	*place = (uint32_t)region->next;
	region->next += size;
	store(names, *place, name, len);
	return 0;
}

int pfs_names_adopt(struct pfs_names *names, void **bytes, uint64_t size)
{
	uint64_t first;

	PFS_VERIFY_CHECK(names->end == 1 && size % PFS_NAME_UNIT == 0);
	PFS_TRY(take_fresh(names, &first, size / PFS_NAME_UNIT - 1));
	*bytes = names->heap.base;
	return 0;
}

static void free_place(struct pfs_names *names, uint32_t place)
{
	unsigned char *p = at(names, place);
	uint32_t size = units(p[0]);

	memcpy(p, &names->free_list[size], sizeof(uint32_t));
	touch(names, place, size);
	names->free_list[size] = place;
	names->free_units += size;
}

void pfs_names_remove(struct pfs_names *names, uint32_t place)
{
	/* Who has ended the last snapshot has read its names before. */
	uint64_t held = atomic_load_explicit(&names->held, memory_order_acquire);

	if (place == PFS_NO_NAME)
		return;
	/* the store need not have it from now on (imagefile_mend.c): all of it is here */
	(void)*(const volatile unsigned char *)(at(names, place) +
						units(*at(names, place)) * PFS_NAME_UNIT - 1);
	if (!held || place >= atomic_load_explicit(&names->held_end, memory_order_acquire))
		free_place(names, place);
	else
		(void)!pfs_kept_add(&names->kept, place, held);
}

void pfs_names_hold(struct pfs_names *names, uint64_t number, uint64_t end)
{
	atomic_store_explicit(&names->held_end, end, memory_order_release);
	atomic_store_explicit(&names->held, number, memory_order_release);
}

uint64_t pfs_names_end(const struct pfs_names *names)
{
	return names->end;
}

bool pfs_names_drain(struct pfs_names *names, uint64_t first)
{
	uint32_t place;
	unsigned i;

	for (i = 0; i < DRAIN && pfs_kept_take(&names->kept, &place, first); i++)
		free_place(names, place);
	return i == DRAIN;
}

size_t pfs_names_held(const struct pfs_names *names)
{
	return pfs_kept_count(&names->kept);
}

const char *pfs_names_get(const struct pfs_names *names, uint32_t place, size_t *len)
{
	const unsigned char *p = at(names, place);

	*len = p[0];
	(void)*(const volatile unsigned char
			*)(p + 1 + *len); /* all of it may go to a system call: base/lazy.h */
	return (const char *)p + 1;
}

int pfs_names_compare(const struct pfs_names *names, uint32_t a, uint32_t b)
{
	size_t a_len, b_len;
	const char *x = pfs_names_get(names, a, &a_len), *y = pfs_names_get(names, b, &b_len);

	return pfs_compare_bytes(x, a_len, y, b_len);
}

void pfs_names_prefetch(const struct pfs_names *names, uint32_t place)
{
	__builtin_prefetch(at(names, place));
}

uint64_t pfs_names_bytes(const struct pfs_names *names)
{
	return (names->end - names->free_units) * PFS_NAME_UNIT;
}

const struct pfs_stamps *pfs_names_stamps(const struct pfs_names *names)
{
	return &names->stamps;
}

void pfs_names_view(const struct pfs_names *names, struct pfs_names_view *view)
{
	*view = (struct pfs_names_view){
		.heap = names->heap.base,
		.heap_size = names->end * PFS_NAME_UNIT,
		.place_shift = (unsigned)__builtin_ctz(PFS_NAME_UNIT),
		.generation = names->stamps.id,
		.stamps = &names->stamps,
		.clock = names->clock,
	};
}
