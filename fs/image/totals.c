/* SPDX-License-Identifier: MIT */
#include "fs/image/totals.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/image/newest.h"
#include "fs/tree/tree_impl.h"

#define BLOCK 64u /* slots */
#define STEP  4u  /* entries of a block are allocated in multiples of it */

#define LOOK_EVERY (64u << 10) /* slots, a multiple of BLOCK */
#define ADDED	   UINT32_MAX  /* to the directory above */

#define NOTHING INT64_MIN /* older than any mtime */

/* Sums are modulo 2^64.  Packed, since there may be as many as there are nodes. */
struct entry {
	uint64_t size, blocks;
	int64_t newest;
	uint32_t count;
} __attribute__((packed, aligned(4)));

/* The directories among 64 slots, and an entry for each, in order. */
struct block {
	uint64_t directories; /* a bit a slot */
	struct entry *entries;
};

struct table {
	struct pfs_reserve memory;
	struct block *blocks; /* memory.base */
	uint32_t n_blocks;
};

struct pfs_totals_table {
	pthread_mutex_t lock;	   /* held to put a table there under tree->lock for reading */
	_Atomic bool kept;	   /* the table is there and current */
	uint64_t changes;	   /* told of; protected by tree->lock */
	struct table table;	   /* protected by tree->lock */
	struct pfs_newest *newest; /* protected by tree->lock, for writing */
	/* Of the slot that is changing: as it was. */
	uint32_t parent; /* PFS_NO_SLOT: it had no place, or is the root */
	struct pfs_totals own;
};

/* ---- the table: from a directory's slot to its entry ---- */

static void close_table(struct table *table)
{
	for (uint32_t i = 0; i < table->n_blocks; i++)
		free(table->blocks[i].entries);
	pfs_reserve_close(&table->memory);
	*table = (struct table){0};
}

/* Makes the blocks reach to slots below `end`. */
static int grow_table(struct table *table, uint32_t end)
{
	uint32_t n_blocks = (uint32_t)pfs_div_round_up(end, BLOCK);

	if (n_blocks <= table->n_blocks)
		return 0;
	PFS_TRY(pfs_reserve_grow(&table->memory, n_blocks * sizeof(struct block)));
	table->n_blocks = n_blocks;
	return 0;
}

static uint64_t bit_of(uint32_t slot)
{
	return UINT64_C(1) << slot % BLOCK;
}

static unsigned count_bits(uint64_t bits)
{
	return (unsigned)__builtin_popcountll(bits);
}

static struct entry *entry_of(const struct table *table, uint32_t slot)
{
	const struct block *block = &table->blocks[slot / BLOCK];

	return block->entries + count_bits(block->directories & (bit_of(slot) - 1));
}

static bool has_entry(const struct table *table, uint32_t slot)
{
	return slot / BLOCK < table->n_blocks &&
	       table->blocks[slot / BLOCK].directories & bit_of(slot);
}

/* From n entries to n + 1, if that crosses a step. */
static int make_room(struct block *block, unsigned n)
{
	struct entry *entries;

	if (n % STEP)
		return 0;
	entries = realloc(block->entries, (n + STEP) * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	block->entries = entries;
	return 0;
}

/* A new directory's entry, undefined. */
static int insert_entry(struct table *table, uint32_t slot)
{
	struct block *block;
	struct entry *entry;
	unsigned n, place;

	PFS_TRY(grow_table(table, slot + 1));
	block = &table->blocks[slot / BLOCK];
	n = count_bits(block->directories);
	PFS_TRY(make_room(block, n));
	entry = entry_of(table, slot);
	place = (unsigned)(entry - block->entries);
	memmove(entry + 1, entry, (n - place) * sizeof(*entry));
	block->directories |= bit_of(slot);
	return 0;
}

static void remove_entry(struct table *table, uint32_t slot)
{
	struct block *block = &table->blocks[slot / BLOCK];
	struct entry *entry = entry_of(table, slot);
	unsigned place = (unsigned)(entry - block->entries), n;

	block->directories &= ~bit_of(slot);
	n = count_bits(block->directories);
	memmove(entry, entry + 1, (n - place) * sizeof(*entry));
	if (n)
		return;
	free(block->entries);
	block->entries = NULL;
}

/* ---- what a node adds to the directories above it ---- */

struct pfs_totals pfs_totals_own(const struct pfs_tree *tree, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;

	return (struct pfs_totals){
		.count = 1,
		.size = S_ISDIR(image->mode[slot]) ? 0 : (uint64_t)image->size[slot],
		.blocks = (uint64_t)image->blocks[slot],
		.mtime = image->mtime[slot],
	};
}

static struct pfs_totals whole(const struct pfs_tree *tree, const struct table *table,
			       uint32_t slot)
{
	const struct entry *entry;

	if (!S_ISDIR(tree->image.mode[slot]))
		return pfs_totals_own(tree, slot);
	entry = entry_of(table, slot);
	return (struct pfs_totals){
		.count = entry->count,
		.size = entry->size,
		.blocks = entry->blocks,
		.mtime = entry->newest,
	};
}

static void set_entry(struct entry *entry, const struct pfs_totals *totals)
{
	*entry = (struct entry){
		.size = totals->size,
		.blocks = totals->blocks,
		.newest = totals->mtime,
		.count = (uint32_t)totals->count,
	};
}

/* ---- making the table ---- */

static int place_directories(const struct pfs_tree *tree, struct table *table, uint32_t first)
{
	const struct pfs_image *image = &tree->image;
	struct block *block = &table->blocks[first / BLOCK];
	uint32_t end = PFS_MIN(image->end, first + BLOCK);
	struct pfs_totals totals;
	struct entry *entry;

	for (uint32_t slot = first; slot < end; slot++)
		if (image->prime[slot] && S_ISDIR(image->mode[slot]))
			block->directories |= bit_of(slot);
	if (!block->directories)
		return 0;
	entry = malloc(pfs_div_round_up(count_bits(block->directories), STEP) * STEP *
		       sizeof(*entry));
	block->entries = entry;
	if (!entry)
		return -ENOMEM;
	for (uint32_t slot = first; slot < end; slot++) {
		if (!(block->directories & bit_of(slot)))
			continue;
		totals = pfs_totals_own(tree, slot);
		set_entry(entry++, &totals);
	}
	return 0;
}

/* What is making a table. */
struct making {
	const struct pfs_tree *tree;
	struct table *table;
	uint32_t *below; /* by slot, of directories: those in it that have not been added to it */
	uint64_t changes; /* that it is of */
	int (*look)(void *arg);
	void *arg;
};

static int look(struct making *making, uint32_t slot)
{
	if (slot % LOOK_EVERY || !making->look)
		return 0;
	PFS_TRY(making->look(making->arg));
	return making->tree->totals->changes == making->changes ? 0 : -EAGAIN;
}

static bool is_directory(const struct pfs_image *image, uint32_t slot)
{
	return image->prime[slot] && S_ISDIR(image->mode[slot]);
}

static void add_to(const struct making *making, uint32_t directory, const struct pfs_totals *totals)
{
	struct entry *entry = entry_of(making->table, directory);

	entry->count += (uint32_t)totals->count;
	entry->size += totals->size;
	entry->blocks += totals->blocks;
	entry->newest = PFS_MAX(entry->newest, totals->mtime);
}

/* What is no directory goes to the one it lies in; those in it are counted. */
static int add_files(struct making *making)
{
	const struct pfs_image *image = &making->tree->image;

	for (uint32_t slot = 0; slot < image->end; slot++) {
		uint32_t parent = image->parent[slot];
		struct pfs_totals own;

		PFS_TRY(look(making, slot));
		if (!image->prime[slot] || parent == PFS_NO_SLOT) /* the root, or what has no name */
			continue;
		if (S_ISDIR(image->mode[slot])) {
			making->below[parent]++;
			continue;
		}
		own = pfs_totals_own(making->tree, slot);
		add_to(making, parent, &own);
	}
	return 0;
}

/* A directory is complete when all below it have been added; then it is added to the one above. */
static int add_directories(struct making *making)
{
	const struct pfs_image *image = &making->tree->image;

	for (uint32_t slot = image->end; slot-- > 0;) {
		uint32_t at = slot, above;

		PFS_TRY(look(making, slot));
		if (!is_directory(image, slot))
			continue;
		while (making->below[at] == 0 && (above = image->parent[at]) != PFS_NO_SLOT) {
			struct pfs_totals totals = whole(making->tree, making->table, at);

			add_to(making, above, &totals);
			making->below[at] = ADDED;
			making->below[above]--;
			at = above;
		}
	}
	return 0;
}

static int fill_table(struct making *making)
{
	const struct pfs_image *image = &making->tree->image;

	PFS_TRY(grow_table(making->table, image->end));
	for (uint32_t first = 0; first < image->end; first += BLOCK) {
		PFS_TRY(look(making, first));
		PFS_TRY(place_directories(making->tree, making->table, first));
	}
	making->below = calloc((size_t)image->end + 1, sizeof(*making->below));
	if (!making->below)
		return -ENOMEM;
	PFS_TRY(add_files(making));
	return add_directories(making);
}

static int make_table(struct making *making)
{
	struct table *table = making->table;
	int error;

	*table = (struct table){0};
	PFS_TRY(pfs_reserve_open(&table->memory, PFS_SLOT_MAX / BLOCK * sizeof(struct block)));
	table->blocks = table->memory.base;
	error = fill_table(making);
	free(making->below);
	if (error)
		close_table(table);
	return error;
}

void pfs_totals_destroy(struct pfs_tree *tree)
{
	if (!tree->totals)
		return;
	pfs_newest_destroy(tree->totals->newest);
	close_table(&tree->totals->table);
	(void)pthread_mutex_destroy(&tree->totals->lock);
	free(tree->totals);
	tree->totals = NULL;
}

/* With the write lock: the totals are not known any more. */
static void forget(struct pfs_totals_table *totals)
{
	atomic_store(&totals->kept, false);
	pfs_newest_clear(totals->newest);
	close_table(&totals->table);
}

bool pfs_totals_are_made(const struct pfs_tree *tree)
{
	return tree->totals && atomic_load_explicit(&tree->totals->kept, memory_order_acquire);
}

/* It is made without the mutex: whoever has that must not wait for the tree's lock. */
int pfs_totals_prepare(struct pfs_tree *tree, int (*fn)(void *arg), void *arg)
{
	struct pfs_totals_table *totals = tree->totals;
	struct table table;
	struct making making = {
		.tree = tree, .table = &table, .look = fn, .arg = arg, .changes = totals->changes};

	if (pfs_totals_are_made(tree))
		return 0;
	PFS_TRY(make_table(&making));
	PFS_LOCKED(&totals->lock);
	if (atomic_load(&totals->kept)) {
		close_table(&table);
		return 0;
	}
	totals->table = table;
	atomic_store(&totals->kept, true);
	return 0;
}

/* ---- reading ---- */

void pfs_totals_at(const struct pfs_tree *tree, struct pfs_totals *out, uint32_t slot)
{
	*out = whole(tree, &tree->totals->table, slot);
}

/* ---- changes ---- */

/* Whether the totals are to be brought up to date; who makes them meanwhile learns of the change. */
static bool are_kept(struct pfs_tree *tree)
{
	if (!tree->totals)
		return false;
	tree->totals->changes++;
	/* relaxed: whoever changes the image has the lock that whoever made the table had */
	return atomic_load_explicit(&tree->totals->kept, memory_order_relaxed);
}

/* To the directory and all above it; the newest mtime apart. */
static void add(struct pfs_tree *tree, uint32_t directory, const struct pfs_totals *change)
{
	for (; directory != PFS_NO_SLOT; directory = tree->image.parent[directory]) {
		struct entry *entry = entry_of(&tree->totals->table, directory);

		entry->count += (uint32_t)change->count;
		entry->size += change->size;
		entry->blocks += change->blocks;
	}
}

/* The newest mtime in the directory, none being newer than `most`. */
static int64_t look_for_newest(const struct pfs_tree *tree, uint32_t directory, int64_t most)
{
	int64_t own_mtime = tree->image.mtime[directory], below;

	if (own_mtime == most)
		return most;
	below = pfs_newest_look(tree->totals->newest, tree, directory, most);
	return PFS_MAX(own_mtime, below);
}

/* A child of the directory, or the directory itself, had `before` as its newest mtime, with all
 * that it holds, and has `now`. */
static void renew(struct pfs_tree *tree, uint32_t directory, uint32_t child, int64_t before,
		  int64_t now)
{
	while (directory != PFS_NO_SLOT) {
		struct entry *entry = entry_of(&tree->totals->table, directory);
		int64_t most = entry->newest;

		if (child != directory)
			pfs_newest_note(tree->totals->newest, tree, directory, child, now);
		if (now > most)
			entry->newest = now;
		else if (before == most && now < most)
			entry->newest = look_for_newest(tree, directory, most);
		if (entry->newest == most)
			return;
		now = entry->newest; /* `before` stays: it matters only while it is the newest */
		child = directory;
		directory = tree->image.parent[directory];
	}
}

static void attached(struct pfs_tree *tree, uint32_t slot)
{
	uint32_t parent = tree->image.parent[slot];
	struct table *table = &tree->totals->table;
	struct pfs_totals totals;

	if (S_ISDIR(tree->image.mode[slot]) && !has_entry(table, slot)) {
		totals = pfs_totals_own(tree, slot);
		if (insert_entry(table, slot)) {
			forget(tree->totals);
			return;
		}
		set_entry(entry_of(table, slot), &totals);
	}
	totals = whole(tree, table, slot);
	add(tree, parent, &totals);
	renew(tree, parent, slot, NOTHING, totals.mtime);
}

static void detached(struct pfs_tree *tree, uint32_t slot, uint32_t parent)
{
	const struct pfs_totals totals = whole(tree, &tree->totals->table, slot);

	add(tree, parent,
	    &(struct pfs_totals){
		    .count = -totals.count, .size = -totals.size, .blocks = -totals.blocks});
	renew(tree, parent, slot, totals.mtime, NOTHING);
}

static void freed(struct pfs_tree *tree, uint32_t slot)
{
	if (!has_entry(&tree->totals->table, slot))
		return;
	remove_entry(&tree->totals->table, slot);
	pfs_newest_drop(tree->totals->newest, slot);
}

/* Columns have changed, of a node that stays where it is. */
static void revalued(struct pfs_tree *tree, uint32_t slot, const struct pfs_totals *before)
{
	const struct pfs_totals now = pfs_totals_own(tree, slot);
	const struct pfs_totals change = {.size = now.size - before->size,
					  .blocks = now.blocks - before->blocks};
	uint32_t parent = tree->image.parent[slot];

	if (change.size || change.blocks)
		add(tree, parent, &change);
	if (now.mtime != before->mtime)
		renew(tree, S_ISDIR(tree->image.mode[slot]) ? slot : parent, slot, before->mtime,
		      now.mtime);
}

static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	if (!are_kept(tree))
		return;
	tree->totals->parent = tree->image.parent[slot];
	tree->totals->own = pfs_totals_own(tree, slot);
}

static void changed(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	struct pfs_totals_table *totals = tree->totals;

	if (!are_kept(tree))
		return;
	if (columns & PFS_COLUMN_PRIME) {
		freed(tree, slot);
		return;
	}
	if (!(columns & PFS_COLUMNS_PLACE)) {
		revalued(tree, slot, &totals->own);
		return;
	}
	if (totals->parent != PFS_NO_SLOT)
		detached(tree, slot, totals->parent);
	if (pfs_image_is_live(&tree->image, slot))
		attached(tree, slot);
}

/* ---- life ---- */

static bool same_blocks(const struct block *a, const struct block *b)
{
	size_t n = count_bits(a->directories);

	return a->directories == b->directories &&
	       (!n || !memcmp(a->entries, b->entries, n * sizeof(*a->entries)));
}

static bool check(struct pfs_tree *tree)
{
	const struct table *kept;
	struct table again = {.n_blocks = 0};
	struct making making = {.tree = tree, .table = &again};
	bool same = true;

	if (!pfs_totals_are_made(tree) || make_table(&making))
		return true;
	kept = &tree->totals->table;
	for (uint32_t i = 0; i < again.n_blocks && same; i++)
		same = i < kept->n_blocks ? same_blocks(&kept->blocks[i], &again.blocks[i])
					  : !again.blocks[i].directories;
	close_table(&again);
	return same;
}

static const struct pfs_watcher watcher = {
	.name = "totals",
	.columns = PFS_COLUMN_PRIME | PFS_COLUMNS_PLACE | PFS_COLUMN_SIZE | PFS_COLUMN_BLOCKS |
		   PFS_COLUMN_MTIME,
	.changing = changing,
	.changed = changed,
	.check = check,
};

int pfs_totals_create(struct pfs_tree *tree)
{
	tree->totals = calloc(1, sizeof(*tree->totals));
	if (!tree->totals)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->totals->lock, NULL);
	pfs_watch(tree, &watcher);
	return pfs_newest_create(&tree->totals->newest);
}

uint64_t pfs_totals_memory(const struct pfs_tree *tree)
{
	const struct table *table;
	uint64_t bytes;

	if (!pfs_totals_are_made(tree))
		return 0;
	table = &tree->totals->table;
	bytes = table->memory.committed;
	for (uint32_t i = 0; i < table->n_blocks; i++)
		bytes += pfs_div_round_up(count_bits(table->blocks[i].directories), STEP) * STEP *
			 sizeof(struct entry);
	return bytes;
}
