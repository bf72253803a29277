/* SPDX-License-Identifier: MIT */
/* The image's columns, its slots, and the index of names. */
#include "fs/image/image.h"

#include <string.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/siphash.h"
#include "fs/image/feed.h"
#include "fs/image/imagefile.h"
#include "fs/image/names.h"
#include "fs/image/rare_values.h"
#include "fs/image/slotmap.h"
#include "fs/image/snapshot.h"
#include "fs/image/image_copy.h"
#include "fs/tree/tree_impl.h"

#define NANOSECONDS INT64_C(1000000000)
#define STEP	    4096u /* slots by which the columns grow at least, so that few changes make them grow */

/* Relaxed: whoever reads beside a snapshot looks again (snapshot.h). */
#define SET(column, slot, value) __atomic_store_n(&(column)[slot], (value), __ATOMIC_RELAXED)

/* Where struct pfs_image keeps a column, and how large an element is. */
static const struct {
	size_t field, size;
} layout[PFS_IMAGE_COLUMNS] = {
#define COLUMN(id, name, type, ...) {offsetof(struct pfs_image, name), sizeof(type)},
	PFS_IMAGE_ARRAYS(COLUMN)
#undef COLUMN
};
#define COLUMN(id, name, type, ...)                                                                \
	_Static_assert(sizeof(*((struct pfs_image *)0)->name) == sizeof(type), #name);
PFS_IMAGE_ARRAYS(COLUMN)
#undef COLUMN

int pfs_image_open_columns(struct pfs_image *image)
{
	for (size_t i = 0; i < PFS_IMAGE_COLUMNS; i++) {
		PFS_TRY(pfs_reserve_open(&image->memory[i], PFS_SLOT_MAX * layout[i].size));
		memcpy((char *)image + layout[i].field, &image->memory[i].base, sizeof(void *));
	}
	PFS_TRY(pfs_reserve_open(&image->live_memory, PFS_SLOT_MAX / 8));
	image->live = image->live_memory.base;
	return pfs_feed_create(image);
}

void pfs_image_close_columns(struct pfs_image *image)
{
	pfs_feed_destroy(image);
	for (size_t i = 0; i < PFS_IMAGE_COLUMNS; i++)
		pfs_reserve_close(&image->memory[i]);
	pfs_reserve_close(&image->live_memory);
}

int pfs_image_create(struct pfs_tree *tree)
{
	struct pfs_image *image = &tree->image;
	int error;

	*image = (struct pfs_image){.root = PFS_NO_SLOT, .free_head = PFS_NO_SLOT};
	error = pfs_image_open_columns(image);
	if (!error)
		error = pfs_names_create(&image->names);
	if (!error)
		error = pfs_slot_map_create(&image->by_prime);
	if (!error)
		error = pfs_rare_create(&image->rare);
	if (!error)
		error = pfs_btree_create(&image->by_name);
	if (error) {
		pfs_error("no memory for the image: %s", strerror(-error));
		pfs_image_destroy(tree);
	}
	return error;
}

void pfs_image_destroy(struct pfs_tree *tree)
{
	struct pfs_image *image = &tree->image;

	if (image->close_file)
		image->close_file(image);
	pfs_btree_destroy(image->by_name);
	pfs_rare_destroy(image->rare);
	pfs_slot_map_destroy(image->by_prime);
	pfs_names_destroy(image->names);
	pfs_image_close_columns(image);
	*image = (struct pfs_image){.root = PFS_NO_SLOT, .free_head = PFS_NO_SLOT};
}

int pfs_image_clear(struct pfs_tree *tree)
{
	struct pfs_image *image = &tree->image;
	const struct pfs_watchers watchers = image->watchers;

	pfs_image_destroy(tree);
	PFS_TRY(pfs_image_create(tree));
	image->watchers = watchers;
	return 0;
}

uint32_t pfs_image_slot(const struct pfs_tree *tree, uint64_t ino)
{
	uint32_t slot;

	if (tree->image.copy)
		return pfs_image_copy_slot(tree, ino);
	slot = pfs_slot_map_find(tree->image.by_prime, tree->image.prime, ino);
	/* what nobody refers to any more is gone, though its slot waits for the next cut */
	if (slot != PFS_NO_SLOT && tree->image.state[slot] & PFS_SLOT_DROPPED)
		return PFS_NO_SLOT;
	return slot;
}

int pfs_image_grow(struct pfs_tree *tree, uint32_t end)
{
	struct pfs_image *image = &tree->image;

	if (end <= image->room)
		return 0;
	if (end > PFS_SLOT_MAX)
		return -ENOSPC;
	end = (end + STEP - 1) / STEP * STEP;
	for (size_t i = 0; i < PFS_IMAGE_COLUMNS; i++)
		PFS_TRY(pfs_reserve_grow(&image->memory[i], end * layout[i].size));
	PFS_TRY(pfs_reserve_grow(&image->live_memory, end / 8));
	image->room = end;
	return 0;
}

/* What nodes are given as they are asked for is not: a page of 2 MiB would be cleared then, while
 * the tree is held. */
void pfs_image_expect_filled(struct pfs_image *image)
{
	for (size_t i = 0; i < PFS_IMAGE_COLUMNS; i++)
		if (i != PFS_ARRAY_REFERENCES && i != PFS_ARRAY_DEPTH)
			pfs_expect_filled(image->memory[i].base, image->memory[i].committed);
}

int pfs_image_reserve(struct pfs_tree *tree, uint32_t n)
{
	struct pfs_image *image = &tree->image;
	uint32_t fresh = n > image->free_count ? n - image->free_count : 0;

	if (fresh > PFS_SLOT_MAX - image->end)
		return -ENOSPC;
	if (fresh)
		PFS_TRY(pfs_image_grow(tree, image->end + fresh));
	PFS_TRY(pfs_slot_map_reserve(image->by_prime,
				     (uint64_t)image->end - image->free_count + n));
	return pfs_btree_reserve(image->by_name, n);
}

uint32_t pfs_image_take(struct pfs_tree *tree, uint64_t prime)
{
	struct pfs_image *image = &tree->image;
	uint32_t slot = image->free_head;

	if (slot != PFS_NO_SLOT) {
		image->free_head = image->parent[slot];
		image->free_count--;
	} else {
		slot = image->end++;
	}
	SET(image->prime, slot, prime);
	SET(image->parent, slot, PFS_NO_SLOT);
	pfs_slot_map_insert(image->by_prime, image->prime, slot);
	return slot;
}

void pfs_image_free(struct pfs_tree *tree, uint32_t slot)
{
	if (pfs_snapshots_keep_slot(tree, slot))
		tree->image.state[slot] |= PFS_SLOT_DROPPED | PFS_SLOT_KEPT;
	else
		pfs_image_free_now(tree, slot);
}

void pfs_image_free_now(struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_image *image = &tree->image;
	uint8_t dirty =
		image->state[slot] & PFS_SLOT_DIRTY; /* may still stand in the journal's list */

	pfs_slot_map_remove(image->by_prime, image->prime, image->prime[slot]);
	if (image->state[slot] & PFS_SLOT_RARE)
		pfs_rare_drop(image->rare, slot);
#define COLUMN(id, name, type, ...) image->name[slot] = 0;
	PFS_IMAGE_ARRAYS(COLUMN)
#undef COLUMN
	image->state[slot] = dirty;
	pfs_watch_changed(tree, slot, PFS_COLUMN_PRIME);
	pfs_image_chain_free(tree, slot);
}

void pfs_image_chain_free(struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_image *image = &tree->image;

	image->parent[slot] = image->free_head;
	image->free_head = slot;
	image->free_count++;
}

void pfs_image_loaded(void *tree, size_t from, size_t to)
{
	struct pfs_image *image = &((struct pfs_tree *)tree)->image;

	for (size_t slot = from * 64; slot < PFS_MIN(to * 64, image->end); slot++)
		image->live[slot / 64] |= (uint64_t)(image->mode[slot] != 0) << slot % 64;
}

uint32_t pfs_image_hash(const struct pfs_tree *tree, const char *name, size_t len)
{
	uint64_t seed = pfs_store_seed(tree->store);

	return (uint32_t)(pfs_siphash(name, len, seed, ~seed) >> (64 - PFS_NAME_HASH_BITS));
}

bool pfs_image_rare(const struct pfs_image *image, struct pfs_rare_values *out, uint32_t slot)
{
	const struct pfs_rare_values *values;

	if (image->copy)
		return pfs_image_copy_rare(image, out, slot);
	values = pfs_rare_find(image->rare, slot);
	if (values)
		*out = *values;
	return values;
}

struct pfs_btree *pfs_image_index(const struct pfs_tree *tree)
{
	return tree->image.copy ? pfs_image_copy_index(tree) : tree->image.by_name;
}

/* ---- times ---- */

static unsigned rare_time(const struct pfs_image *image, const int64_t *column)
{
	if (column == image->atime)
		return PFS_RARE_ATIME;
	return column == image->mtime ? PFS_RARE_MTIME : PFS_RARE_CTIME;
}

struct pfs_time pfs_image_time(const struct pfs_tree *tree, const int64_t *column, uint32_t slot)
{
	unsigned time = rare_time(&tree->image, column);
	int64_t value =
		(int64_t)pfs_imagefile_get(&tree->image, PFS_COLUMN_NUMBER_ATIME + time, slot);
	int64_t sec = value / NANOSECONDS, nsec = value % NANOSECONDS;

	if (value == PFS_TIME_PAST || value == PFS_TIME_FUTURE)
		return pfs_rare_find(tree->image.rare, slot)->times[time];
	if (nsec < 0) {
		nsec += NANOSECONDS;
		sec--;
	}
	return (struct pfs_time){.sec = sec, .nsec = (uint32_t)nsec};
}

int pfs_image_load_time(struct pfs_tree *tree, int64_t *column, uint32_t slot, struct pfs_time time)
{
	int64_t value;
	struct pfs_rare_values *values;

	if (!__builtin_mul_overflow(time.sec, NANOSECONDS, &value) &&
	    !__builtin_add_overflow(value, (int64_t)time.nsec, &value) && value > PFS_TIME_PAST &&
	    value < PFS_TIME_FUTURE) {
		SET(column, slot, value);
		return 0;
	}
	PFS_TRY(pfs_rare_get(tree->image.rare, &values, slot));
	tree->image.state[slot] |= PFS_SLOT_RARE;
	values->times[rare_time(&tree->image, column)] = time;
	SET(column, slot, time.sec < 0 ? PFS_TIME_PAST : PFS_TIME_FUTURE);
	return 0;
}

/* Sets the times to one that fits the columns. */
static void set_times(struct pfs_tree *tree, uint32_t slot, unsigned times, struct pfs_time now)
{
	const struct pfs_image *image = &tree->image;
	const int64_t ns = now.sec * NANOSECONDS + now.nsec;

	PFS_VERIFY_CHECK(pfs_time_fits(now));
	if (times & PFS_COLUMN_ATIME)
		SET(image->atime, slot, ns);
	if (times & PFS_COLUMN_MTIME)
		SET(image->mtime, slot, ns);
	if (times & PFS_COLUMN_CTIME)
		SET(image->ctime, slot, ns);
}

/* ---- places ---- */

uint32_t pfs_image_hash_of(const struct pfs_tree *tree, uint32_t slot)
{
	size_t len;
	const char *name = pfs_names_get(tree->image.names, tree->image.name[slot], &len);

	return pfs_image_hash(tree, name, len);
}

/* A directory that gets another place takes what lies under it along. */
static void forget_depths(struct pfs_image *image, uint32_t slot)
{
	image->depth[slot] = 0;
	if (image->links[slot] <= 2 || !image->depth[image->root])
		return;
	for (size_t i = 0; i < PFS_IMAGE_COLUMNS; i++)
		if (image->memory[i].base == image->depth)
			pfs_reserve_clear(&image->memory[i]);
}

static void set_live(struct pfs_image *image, uint32_t slot, bool live)
{
	uint64_t bit = UINT64_C(1) << slot % 64, *word = &image->live[slot / 64];

	SET(word, 0, live ? *word | bit : *word & ~bit);
}

/* One directory less, or more, in the directory. */
static void count_link(struct pfs_tree *tree, uint32_t directory, bool more)
{
	uint32_t *links = tree->image.links;

	pfs_watch_changing(tree, directory, PFS_COLUMN_LINKS);
	SET(links, directory, more ? links[directory] + 1 : links[directory] - 1);
	pfs_watch_changed(tree, directory, PFS_COLUMN_LINKS);
}

static void enter(struct pfs_tree *tree, uint32_t slot, uint32_t parent, uint32_t name,
		  uint32_t hash)
{
	struct pfs_image *image = &tree->image;
	int error;

	SET(image->parent, slot, parent);
	SET(image->name, slot, name);
	PFS_VERIFY_CHECK(hash == pfs_image_hash_of(tree, slot));
	if (S_ISDIR(image->mode[slot])) {
		count_link(tree, parent, true);
		forget_depths(image, slot);
	}
	error = pfs_btree_insert(image->by_name, pfs_image_key(parent, hash), slot);
	PFS_VERIFY_CHECK(!error); /* reserved, and no slot is there twice */
	(void)error;
}

static void leave(struct pfs_tree *tree, uint32_t slot, uint32_t hash)
{
	struct pfs_image *image = &tree->image;

	PFS_VERIFY_CHECK(hash == pfs_image_hash_of(tree, slot));
	(void)pfs_btree_remove(image->by_name, pfs_image_key(image->parent[slot], hash), slot);
	pfs_names_remove(image->names, image->name[slot]);
	if (S_ISDIR(image->mode[slot]))
		count_link(tree, image->parent[slot], false);
}

void pfs_image_attach(struct pfs_tree *tree, uint32_t slot, uint32_t parent, uint32_t name,
		      uint32_t hash)
{
	struct pfs_image *image = &tree->image;

	pfs_watch_changing(tree, slot, PFS_COLUMNS_PLACE);
	enter(tree, slot, parent, name, hash);
	set_live(image, slot, true);
	image->nodes++;
	image->directories += S_ISDIR(image->mode[slot]);
	pfs_watch_changed(tree, slot, PFS_COLUMNS_PLACE);
}

void pfs_image_move(struct pfs_tree *tree, uint32_t slot, uint32_t parent, uint32_t name,
		    uint32_t hash, struct pfs_time ctime)
{
	const unsigned columns = PFS_COLUMN_PARENT | PFS_COLUMN_NAME | PFS_COLUMN_CTIME;

	pfs_watch_changing(tree, slot, columns);
	leave(tree, slot, pfs_image_hash_of(tree, slot));
	enter(tree, slot, parent, name, hash);
	set_times(tree, slot, PFS_COLUMN_CTIME, ctime);
	pfs_watch_changed(tree, slot, columns);
}

/* All that there is of the node: from now on the store need not have it (imagefile_mend.c). */
static void touch(const struct pfs_image *image, uint32_t slot)
{
	for (size_t i = 0; slot < image->file_end && i < PFS_IMAGE_COLUMNS; i++)
		(void)*((const volatile char *)image->memory[i].base + slot * layout[i].size);
}

void pfs_image_detach(struct pfs_tree *tree, uint32_t slot, uint32_t hash,
		      const struct pfs_time *ctime)
{
	struct pfs_image *image = &tree->image;
	const unsigned columns = PFS_COLUMNS_PLACE | PFS_COLUMN_LINKS | PFS_COLUMN_CTIME;

	touch(image, slot);
	pfs_watch_changing(tree, slot, columns);
	leave(tree, slot, hash);
	SET(image->parent, slot, PFS_NO_SLOT);
	SET(image->name, slot, PFS_NO_NAME);
	SET(image->links, slot, 0);
	if (ctime)
		set_times(tree, slot, PFS_COLUMN_CTIME, *ctime);
	set_live(image, slot, false);
	image->nodes--;
	image->directories -= S_ISDIR(image->mode[slot]);
	pfs_watch_changed(tree, slot, columns);
}

/* ---- times that are told ---- */

int pfs_image_set_times(struct pfs_tree *tree, uint32_t slot, unsigned columns,
			const struct pfs_times *times)
{
	const struct pfs_image *image = &tree->image;
	int error = 0;

	if (!columns)
		return 0;
	pfs_watch_changing(tree, slot, columns);
	if (columns & PFS_COLUMN_ATIME)
		error = pfs_image_load_time(tree, image->atime, slot, times->atime);
	if (!error && columns & PFS_COLUMN_MTIME)
		error = pfs_image_load_time(tree, image->mtime, slot, times->mtime);
	if (!error && columns & PFS_COLUMN_CTIME)
		error = pfs_image_load_time(tree, image->ctime, slot, times->ctime);
	pfs_watch_changed(tree, slot, columns);
	return error;
}

void pfs_image_stamp(struct pfs_tree *tree, uint32_t slot, unsigned times, struct pfs_time now)
{
	pfs_watch_changing(tree, slot, times);
	set_times(tree, slot, times, now);
	pfs_watch_changed(tree, slot, times);
}

/* ---- other setters ---- */

void pfs_image_make(struct pfs_tree *tree, uint32_t slot, mode_t mode, uid_t uid, gid_t gid,
		    struct pfs_time now)
{
	struct pfs_image *image = &tree->image;

	SET(image->mode, slot, (uint16_t)mode);
	SET(image->uid, slot, uid);
	SET(image->gid, slot, gid);
	SET(image->links, slot, S_ISDIR(mode) ? 2 : 1);
	set_times(tree, slot, PFS_COLUMN_ATIME | PFS_COLUMN_MTIME | PFS_COLUMN_CTIME, now);
}

int pfs_image_set_target(struct pfs_tree *tree, uint32_t slot, char *target, size_t target_len,
			 uint64_t rdev)
{
	struct pfs_rare_values *values;

	PFS_TRY(pfs_rare_get(tree->image.rare, &values, slot));
	tree->image.state[slot] |= PFS_SLOT_RARE;
	values->rdev = rdev;
	pfs_rare_set_target(tree->image.rare, values, target, (uint32_t)target_len);
	SET(tree->image.size, slot, (int64_t)target_len);
	return 0;
}

void pfs_image_set_mode(struct pfs_tree *tree, uint32_t slot, mode_t mode)
{
	pfs_watch_changing(tree, slot, PFS_COLUMN_MODE);
	SET(tree->image.mode, slot, (uint16_t)mode);
	pfs_watch_changed(tree, slot, PFS_COLUMN_MODE);
}

void pfs_image_set_owner(struct pfs_tree *tree, uint32_t slot, uid_t uid, gid_t gid)
{
	const unsigned columns = PFS_COLUMN_UID | PFS_COLUMN_GID;

	pfs_watch_changing(tree, slot, columns);
	SET(tree->image.uid, slot, uid);
	SET(tree->image.gid, slot, gid);
	pfs_watch_changed(tree, slot, columns);
}

void pfs_image_set_flags(struct pfs_tree *tree, uint32_t slot, unsigned gone, unsigned come)
{
	uint8_t *flags = tree->image.flags;

	pfs_watch_changing(tree, slot, PFS_COLUMN_FLAGS);
	SET(flags, slot, (uint8_t)((flags[slot] & ~gone) | come));
	pfs_watch_changed(tree, slot, PFS_COLUMN_FLAGS);
}

void pfs_image_set_size(struct pfs_tree *tree, uint32_t slot, int64_t size, int64_t blocks)
{
	const unsigned columns = PFS_COLUMN_SIZE | PFS_COLUMN_BLOCKS;

	pfs_watch_changing(tree, slot, columns);
	SET(tree->image.size, slot, size);
	SET(tree->image.blocks, slot, blocks);
	pfs_watch_changed(tree, slot, columns);
}

void pfs_image_write(struct pfs_tree *tree, uint32_t slot, int64_t size, int64_t blocks,
		     struct pfs_time now)
{
	const unsigned times = PFS_COLUMN_MTIME | PFS_COLUMN_CTIME;
	const unsigned columns = PFS_COLUMN_SIZE | PFS_COLUMN_BLOCKS | times;

	pfs_watch_changing(tree, slot, columns);
	SET(tree->image.size, slot, size);
	SET(tree->image.blocks, slot, blocks);
	set_times(tree, slot, times, now);
	pfs_watch_changed(tree, slot, columns);
}

struct pfs_time pfs_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return pfs_time_of(now);
}
