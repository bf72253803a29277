/* SPDX-License-Identifier: MIT */
/* What a file with right checksums may say all the same, since anybody can make one: slots, places of names
 * and cells that are out of bounds, parents that are no directories or lead in circles, names that are in
 * the index twice or not at all.  With what is let through here the image is as it would be if a store
 * said the same. */
#include <stdlib.h>
#include <string.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/imagefile_impl.h"
#include "fs/image/load.h"
#include "fs/image/names.h"
#include "fs/image/rare_values.h"
#include "fs/tree/tree_impl.h"

#define GRAIN	   ((size_t)1 << 16) /* slots, entries or cells that a thread takes at once */
#define HEAP_UNIT  4u
#define NSEC_END   UINT64_C(1000000000)
#define OTHERS	   (UINT64_C(1) << 32) /* primes of what is no directory are above it */
#define ONES	   UINT64_C(0x0101010101010101)
#define SLASHES	   (ONES * '/')

struct check {
	struct pfs_image_reading *reading;
	struct pfs_image *image;
	_Atomic uint64_t nodes, directories;
	_Atomic bool descends;	  /* some directory's slot is below its parent's */
	_Atomic uint64_t *listed; /* a bit a slot: the index has it */
	uint64_t *keys;
	uint32_t *slots; /* of the index, in order */
};

static int run(struct check *check, size_t n, void (*work)(void *context, size_t from, size_t to))
{
	pfs_pool_run(check->reading->pool, n, GRAIN, work, check);
	return atomic_load(&check->reading->bad) ? -ENOENT : 0;
}

/* ---- a node by itself ---- */

static bool mode_is_sound(uint32_t mode)
{
	return S_ISDIR(mode) || S_ISREG(mode) || S_ISLNK(mode) || S_ISCHR(mode) || S_ISBLK(mode) ||
	       S_ISFIFO(mode) || S_ISSOCK(mode);
}

static bool prime_is_sound(const struct check *check, uint32_t slot)
{
	const struct pfs_image *image = check->image;
	uint64_t prime = image->prime[slot];

	if (slot == image->root || prime == PFS_ROOT_PRIME)
		return slot == image->root && prime == PFS_ROOT_PRIME && S_ISDIR(image->mode[slot]);
	if (S_ISDIR(image->mode[slot]))
		return prime > PFS_ROOT_PRIME && prime < OTHERS &&
		       prime < check->reading->handed_out[PFS_PRIME_DIRECTORY];
	return prime > OTHERS && prime < check->reading->handed_out[PFS_PRIME_OTHER];
}

/* Whether one of the 8 bytes is 0. */
static bool has_zero(uint64_t word)
{
	return (word - ONES) & ~word & ONES << 7;
}

/* As the store has it: no NUL, no slash, neither "." nor "..".  Reads as far past the name as the heap allows. */
static bool bytes_are_sound(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, name + i, sizeof(word));
		if (len - i < sizeof(word))
			word |= ~UINT64_C(0) << 8 * (len - i);
		if (has_zero(word) || has_zero(word ^ SLASHES))
			return false;
	}
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

/* The root's is the place of no name. */
static bool name_is_sound(const struct check *check, uint32_t slot)
{
	const struct pfs_image *image = check->image;
	uint64_t at = (uint64_t)image->name[slot] * HEAP_UNIT;
	uint64_t size = check->reading->header.heap_size;
	const char *name;
	size_t len;

	if (slot == image->root)
		return image->name[slot] == PFS_NO_NAME;
	if (image->name[slot] == PFS_NO_NAME || at >= size)
		return false;
	name = pfs_names_get(image->names, image->name[slot], &len);
	return len && at + 1 + len + 1 <= size && !name[len] && bytes_are_sound(name, len);
}

static bool numbers_are_sound(const struct pfs_image *image, uint32_t slot)
{
	bool sound = true;

#define NUMBER(id, name, type, since) sound &= (int64_t)image->name[slot] >= 0;
	PFS_NODE_NUMBERS(NUMBER)
#undef NUMBER
	return sound;
}

static bool is_sound_alone(const struct check *check, uint32_t slot)
{
	const struct pfs_image *image = check->image;

	if (!image->prime[slot])
		return !image->mode[slot]; /* by which slots without a node are known */
	return mode_is_sound(image->mode[slot]) && prime_is_sound(check, slot) &&
	       name_is_sound(check, slot) && numbers_are_sound(image, slot);
}

/* States and links of nodes by themselves. */
static void check_nodes(void *context, size_t from, size_t to)
{
	struct check *check = context;
	struct pfs_image *image = check->image;
	uint64_t nodes = 0, directories = 0;

	for (size_t i = from; i < to; i++) {
		uint32_t slot = (uint32_t)i;

		if (!is_sound_alone(check, slot)) {
			atomic_store(&check->reading->bad, true);
			return;
		}
		if (!image->prime[slot])
			continue;
		nodes++;
		directories += S_ISDIR(image->mode[slot]);
		image->state[slot] = PFS_SLOT_STORED;
		image->links[slot] = S_ISDIR(image->mode[slot]) ? 2 : 1;
	}
	(void)atomic_fetch_add(&check->nodes, nodes);
	(void)atomic_fetch_add(&check->directories, directories);
}

/* ---- nodes and their parents ---- */

static bool parent_is_sound(const struct pfs_image *image, uint32_t slot)
{
	uint32_t parent = image->parent[slot];

	if (slot == image->root)
		return parent == PFS_NO_SLOT;
	return parent < image->end && image->prime[parent] && S_ISDIR(image->mode[parent]);
}

static bool is_time(int64_t value, const struct pfs_rare_values *values)
{
	return value > PFS_TIME_PAST && value < PFS_TIME_FUTURE ? true : values && value != INT64_MIN;
}

/* What few have must be there for those who will look for it. */
static bool rare_is_there(const struct pfs_image *image, uint32_t slot)
{
	const struct pfs_rare_values *values = NULL;

	if (image->state[slot] & PFS_SLOT_RARE)
		values = pfs_rare_find(image->rare, slot);
	if (S_ISLNK(image->mode[slot]))
		return values && values->target;
	return is_time(image->atime[slot], values) && is_time(image->mtime[slot], values) &&
	       is_time(image->ctime[slot], values);
}

static void check_parents(void *context, size_t from, size_t to)
{
	struct check *check = context;
	struct pfs_image *image = check->image;
	bool descends = false;

	for (size_t i = from; i < to; i++) {
		uint32_t slot = (uint32_t)i, parent = image->parent[slot];

		if (!image->prime[slot])
			continue;
		if (!parent_is_sound(image, slot) || !rare_is_there(image, slot)) {
			atomic_store(&check->reading->bad, true);
			return;
		}
		if (!S_ISDIR(image->mode[slot]) || slot == image->root)
			continue;
		descends |= slot < parent;
		(void)__atomic_fetch_add(&image->links[parent], 1, __ATOMIC_RELAXED);
	}
	if (descends)
		atomic_store(&check->descends, true);
}

/* ---- rare values ---- */

static int take_rare(struct check *check, const struct pfs_image_rare *rare, const uint8_t *target)
{
	struct pfs_image *image = check->image;
	struct pfs_rare_values *values;

	if (rare->slot >= image->end || !image->prime[rare->slot] ||
	    image->state[rare->slot] & PFS_SLOT_RARE ||
	    (rare->target_len != 0) != S_ISLNK(image->mode[rare->slot]) ||
	    memchr(target, 0, rare->target_len))
		return -ENOENT;
	PFS_TRY(pfs_rare_get(image->rare, &values, rare->slot));
	image->state[rare->slot] |= PFS_SLOT_RARE;
	values->rdev = rare->rdev;
	for (unsigned i = 0; i < PFS_RARE_TIMES; i++) {
		if (rare->times[i].nsec >= NSEC_END)
			return -ENOENT;
		values->times[i] = (struct pfs_time){.sec = rare->times[i].sec,
						     .nsec = (uint32_t)rare->times[i].nsec};
	}
	if (!rare->target_len)
		return 0;
	values->target = strndup((const char *)target, rare->target_len);
	values->target_len = rare->target_len;
	return values->target ? 0 : -ENOMEM;
}

static int take_all_rare(struct check *check)
{
	const uint8_t *at = check->reading->rare;
	uint64_t left = check->reading->header.rare_size;
	struct pfs_image_rare rare;

	while (left) {
		uint64_t room;

		if (left < sizeof(rare))
			return -ENOENT;
		memcpy(&rare, at, sizeof(rare));
		at += sizeof(rare);
		left -= sizeof(rare);
		room = pfs_div_round_up(rare.target_len, 8) * 8;
		if (rare.target_len > PFS_TARGET_MAX || room > left)
			return -ENOENT;
		PFS_TRY(take_rare(check, &rare, at));
		at += room;
		left -= room;
	}
	return 0;
}

/* ---- the index of names, and the map of primes ---- */

static void take_entries(void *context, size_t from, size_t to)
{
	struct check *check = context;
	const struct pfs_image *image = check->image;

	for (size_t i = from; i < to; i++) {
		uint64_t entry = check->reading->entries[i];
		uint32_t slot = (uint32_t)entry;
		uint64_t bit = UINT64_C(1) << slot % 64;

		if (slot >= image->end || !image->prime[slot] || slot == image->root ||
		    entry >> 32 >> PFS_NAME_HASH_BITS ||
		    atomic_fetch_or_explicit(&check->listed[slot / 64], bit, memory_order_relaxed) & bit) {
			atomic_store(&check->reading->bad, true);
			return;
		}
		check->keys[i] = pfs_image_key(image->parent[slot], (uint32_t)(entry >> 32));
		check->slots[i] = slot;
	}
}

/* As many entries as nodes, none twice: each node has one.  pfs_btree_load sees to their order. */
static int take_index(struct check *check)
{
	size_t n = check->image->nodes - 1;
	int error;

	PFS_TRY(run(check, n, take_entries));
	error = pfs_btree_load(check->image->by_name, check->reading->pool, check->keys,
			       check->slots, n);
	return error == -EINVAL ? -ENOENT : error;
}

/* Where every slot has a node none need be looked at. */
static void check_cells(void *context, size_t from, size_t to)
{
	struct check *check = context;
	const struct pfs_image *image = check->image;
	const uint32_t *cells = check->reading->cells;
	bool has_free = image->nodes != image->end, bad = false;
	uint64_t used = 0;

	for (size_t i = from; i < to; i++) {
		bad |= cells[i] > image->end ||
		       (has_free && cells[i] && !image->prime[cells[i] - 1]);
		used += cells[i] != 0;
	}
	if (bad)
		atomic_store(&check->reading->bad, true);
	(void)atomic_fetch_add(&check->nodes, used);
}

/* ---- all of it ---- */

/* A directory's slot is above its parent's as import lays them out: then there are no circles. */
static int check_circles(const struct check *check)
{
	const struct pfs_image *image = check->image;
	uint8_t *known PFS_FREE = NULL;

	if (!atomic_load(&check->descends))
		return 0;
	known = calloc(image->end, 1);
	if (!known)
		return -ENOMEM;
	known[image->root] = 1;
	for (uint32_t top = 0; top < image->end; top++) {
		uint32_t slot = top, steps = 0;

		if (!image->prime[top] || !S_ISDIR(image->mode[top]))
			continue;
		for (; !known[slot]; slot = image->parent[slot])
			if (steps++ > image->directories)
				return -ENOENT;
		for (slot = top; !known[slot]; slot = image->parent[slot])
			known[slot] = 1;
	}
	return 0;
}

static int check_all(struct check *check)
{
	struct pfs_image *image = check->image;

	PFS_TRY(run(check, image->end, check_nodes));
	if (check->nodes != image->nodes || check->directories != image->directories ||
	    image->prime[image->root] != PFS_ROOT_PRIME)
		return -ENOENT;
	PFS_TRY(take_all_rare(check));
	PFS_TRY(run(check, image->end, check_parents));
	PFS_TRY(check_circles(check));
	PFS_TRY(take_index(check));
	atomic_store(&check->nodes, 0);
	PFS_TRY(run(check, check->reading->header.cells, check_cells));
	if (check->nodes != image->nodes)
		return -ENOENT;
	pfs_image_loaded(check->reading->tree);
	for (uint32_t slot = image->end; slot-- > 0 && image->free_count < image->end - image->nodes;)
		if (!image->prime[slot])
			pfs_image_chain_free(check->reading->tree, slot);
	return 0;
}

int pfs_imagefile_check(struct pfs_image_reading *reading)
{
	struct pfs_image *image = &reading->tree->image;
	_Atomic uint64_t *listed PFS_FREE = calloc(image->end / 64 + 1, sizeof(*listed));
	uint64_t *keys PFS_FREE = malloc(image->nodes * sizeof(*keys));
	uint32_t *slots PFS_FREE = malloc(image->nodes * sizeof(*slots));
	struct check check = {
		.reading = reading, .image = image, .listed = listed, .keys = keys, .slots = slots};

	if (!listed || !keys || !slots)
		return -ENOMEM;
	pfs_expect_filled(keys, image->nodes * sizeof(*keys));
	pfs_expect_filled(slots, image->nodes * sizeof(*slots));
	pfs_expect_filled(image->links, image->end * sizeof(*image->links));
	return check_all(&check);
}
