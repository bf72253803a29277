/* SPDX-License-Identifier: MIT */
#include "fs/image/totals.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/dirtable.h"
#include "fs/image/image.h"
#include "fs/image/newest_child.h"
#include "fs/tree/tree_impl.h"

#define PIECE (64u << 10) /* slots that are counted in one hold of the tree */

#define NOTHING INT64_MIN /* older than any mtime */

/* What a piece adds to a directory. */
struct addition {
	struct pfs_totals sum;
	uint32_t directory;
	uint32_t below; /* directories in it whose additions have not come to it; DONE: it has been
			   given */
};

#define DONE UINT32_MAX

struct additions {
	struct pfs_reserve memory;
	uint32_t *number; /* by slot: of the directory's addition, from 1; 0: there is none */
	struct addition *list;
	size_t n, capacity;
};

struct pfs_totals_table {
	pthread_mutex_t lock; /* of who makes a piece of the table, under tree->lock for reading */
	_Atomic bool kept;    /* the table is there, and of all nodes */
	/* Protected by tree->lock, with the mutex if that is held for reading.  What slots have
	 * from `counted` on does not count yet. */
	bool begun;
	uint32_t counted;
	struct pfs_dirtable table;
	struct pfs_reserve lent[2]; /* memory that an image file fills: the table's and its
				       entries', which stay until the end */
	struct additions additions; /* of the piece that is being made */
	struct pfs_newest *newest; /* protected by tree->lock, for writing */
	/* Of the slot that is changing, as it was: its parent if its place changes, else its
	 * values. */
	uint32_t parent; /* PFS_NO_SLOT: it had no place, or is the root */
	struct pfs_totals own;
};

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

static bool is_counted(const struct pfs_tree *tree, uint32_t slot)
{
	return slot < tree->totals->counted;
}

/* What counts already of a node and what lies in it. */
static void find_whole(struct pfs_totals *out, const struct pfs_tree *tree,
		       const struct pfs_dirtable *table, uint32_t slot)
{
	const struct pfs_totals nothing = {.mtime = NOTHING};
	const struct pfs_dirtable_entry *entry;

	if (!S_ISDIR(tree->image.mode[slot])) {
		*out = is_counted(tree, slot) ? pfs_totals_own(tree, slot) : nothing;
		return;
	}
	entry = pfs_dirtable_find(table, slot);
	if (!entry) {
		*out = nothing;
		return;
	}
	*out = (struct pfs_totals){
		.count = entry->count,
		.size = entry->size,
		.blocks = entry->blocks,
		.mtime = entry->newest,
	};
}

static void set_entry(struct pfs_dirtable_entry *entry, const struct pfs_totals *totals)
{
	*entry = (struct pfs_dirtable_entry){
		.size = totals->size,
		.blocks = totals->blocks,
		.newest = totals->mtime,
		.count = (uint32_t)totals->count,
	};
}

/* ---- making the table ---- */

/* An entry of nothing, where there is none. */
static int want_entry(struct pfs_dirtable *table, uint32_t slot)
{
	const struct pfs_totals nothing = {.mtime = NOTHING};

	if (pfs_dirtable_has(table, slot))
		return 0;
	PFS_TRY(pfs_dirtable_insert(table, slot));
	set_entry(pfs_dirtable_at(table, slot), &nothing);
	return 0;
}

/* The directory above, within as many steps as there can be: where an image file or a store is
 * damaged, directories may lie in each other, until that is found. *left: steps, all at first. */
static int step_up(const struct pfs_tree *tree, uint32_t *directory, uint32_t *left)
{
	if (!(*left)--)
		return -ELOOP;
	*directory = tree->image.parent[*directory];
	return 0;
}

/* The directory and all above it. */
static int want_entries(const struct pfs_tree *tree, struct pfs_dirtable *table, uint32_t directory)
{
	uint32_t left = tree->image.end;

	while (directory != PFS_NO_SLOT) {
		PFS_TRY(want_entry(table, directory));
		PFS_TRY(step_up(tree, &directory, &left));
	}
	return 0;
}

static int open_additions(struct additions *additions)
{
	*additions = (struct additions){0};
	PFS_TRY(pfs_reserve_open(&additions->memory, PFS_SLOT_MAX * sizeof(*additions->number)));
	additions->number = additions->memory.base;
	return 0;
}

static void close_additions(struct additions *additions)
{
	pfs_reserve_close(&additions->memory);
	free(additions->list);
	*additions = (struct additions){0};
}

/* One for the directory, and for all above it. */
static int want_additions(struct additions *a, const struct pfs_tree *tree,
			  struct pfs_dirtable *table, uint32_t directory)
{
	for (; directory != PFS_NO_SLOT && !a->number[directory];
	     directory = tree->image.parent[directory]) {
		PFS_TRY(want_entry(table, directory));
		PFS_TRY(pfs_grow(&a->list, &a->capacity, a->n + 1, sizeof(*a->list)));
		a->list[a->n++] =
			(struct addition){.sum = {.mtime = NOTHING}, .directory = directory};
		a->number[directory] = (uint32_t)a->n;
	}
	return 0;
}

static struct addition *addition_above(const struct additions *a, const struct pfs_tree *tree,
				       const struct addition *addition)
{
	uint32_t above = tree->image.parent[addition->directory];

	return above == PFS_NO_SLOT ? NULL : &a->list[a->number[above] - 1];
}

/* Gives the addition to its directory and to the one above, and goes on with that when all below it
 * have come. */
static void give(const struct additions *a, const struct pfs_tree *tree, struct pfs_dirtable *table,
		 struct addition *addition)
{
	while (addition && addition->below == 0) {
		struct addition *above = addition_above(a, tree, addition);
		struct pfs_totals sum;

		find_whole(&sum, tree, table, addition->directory);
		pfs_totals_add(&sum, &addition->sum);
		set_entry(pfs_dirtable_at(table, addition->directory), &sum);
		addition->below = DONE;
		if (above) {
			pfs_totals_add(&above->sum, &addition->sum);
			above->below--;
		}
		addition = above;
	}
}

/* Counts the nodes in slots from..to: each directory that they are in gets its sum once, however
 * deep it lies. */
static int count(const struct pfs_tree *tree, struct pfs_dirtable *table, struct additions *a,
		 uint32_t from, uint32_t to)
{
	const struct pfs_image *image = &tree->image;

	PFS_TRY(pfs_reserve_grow(&a->memory, (size_t)image->end * sizeof(*a->number)));
	for (uint32_t slot = from; slot < to; slot++) {
		uint32_t directory = S_ISDIR(image->mode[slot]) ? slot : image->parent[slot];
		struct pfs_totals own;

		if (!image->prime[slot] || directory == PFS_NO_SLOT) /* it has no name */
			continue;
		PFS_TRY(want_additions(a, tree, table, directory));
		own = pfs_totals_own(tree, slot);
		pfs_totals_add(&a->list[a->number[directory] - 1].sum, &own);
	}
	for (size_t i = 0; i < a->n; i++) {
		struct addition *above = addition_above(a, tree, &a->list[i]);

		if (above)
			above->below++;
	}
	for (size_t i = 0; i < a->n; i++)
		give(a, tree, table, &a->list[i]);
	while (a->n)
		a->number[a->list[--a->n].directory] = 0;
	return 0;
}

static void close_table(struct pfs_totals_table *totals)
{
	if (totals->table.n_lent_blocks)
		totals->lent[0] = pfs_dirtable_take(&totals->table);
	else
		pfs_dirtable_close(&totals->table);
}

static void forget(struct pfs_totals_table *totals)
{
	atomic_store(&totals->kept, false);
	totals->begun = false;
	pfs_newest_clear(totals->newest);
	close_table(totals);
	close_additions(&totals->additions);
}

void pfs_totals_destroy(struct pfs_tree *tree)
{
	if (!tree->totals)
		return;
	pfs_newest_destroy(tree->totals->newest);
	close_table(tree->totals);
	for (unsigned i = 0; i < PFS_COUNT(tree->totals->lent); i++)
		pfs_reserve_close(&tree->totals->lent[i]);
	close_additions(&tree->totals->additions);
	(void)pthread_mutex_destroy(&tree->totals->lock);
	free(tree->totals);
	tree->totals = NULL;
}

bool pfs_totals_are_made(const struct pfs_tree *tree)
{
	return tree->totals && atomic_load_explicit(&tree->totals->kept, memory_order_acquire);
}

static _Atomic uint32_t piece = PIECE;

void pfs_totals_set_piece(uint32_t slots)
{
	atomic_store(&piece, PFS_MIN(slots, PIECE));
}

/* Makes a piece of the table. */
static int go_on(struct pfs_tree *tree)
{
	struct pfs_totals_table *totals = tree->totals;
	uint32_t to;
	int error = 0;
	PFS_LOCKED(&totals->lock);

	if (atomic_load(&totals->kept))
		return 0;
	if (!totals->begun) {
		PFS_TRY(pfs_dirtable_open(&totals->table));
		totals->begun = true;
		totals->counted = 0;
		error = open_additions(&totals->additions);
	}
	to = totals->counted + PFS_MIN(tree->image.end - totals->counted, atomic_load(&piece));
	if (!error)
		error = count(tree, &totals->table, &totals->additions, totals->counted, to);
	if (error) {
		forget(totals);
		return error;
	}
	totals->counted = to;
	pfs_newest_clear(totals->newest); /* it knows nothing of these */
	if (to < tree->image.end)
		return 0;
	totals->counted = UINT32_MAX;
	close_additions(&totals->additions);
	atomic_store(&totals->kept, true);
	return 0;
}

int pfs_totals_prepare(struct pfs_tree *tree, int (*look)(void *arg), void *arg)
{
	while (!pfs_totals_are_made(tree)) {
		PFS_TRY(go_on(tree));
		if (look)
			PFS_TRY(look(arg));
	}
	return 0;
}

/* ---- reading ---- */

void pfs_totals_at(const struct pfs_tree *tree, struct pfs_totals *out, uint32_t slot)
{
	find_whole(out, tree, &tree->totals->table, slot);
}

/* ---- changes ---- */

/* Returns true if somebody has asked for totals, so that each change has to keep them. */
static bool are_kept(const struct pfs_tree *tree)
{
	return tree->totals && tree->totals->begun;
}

/* To the directory and all above it; the newest mtime apart.  If one of them has no entry, as may
 * be where an image file was made up, nothing is known any more. */
static inline __attribute__((always_inline)) void walk_up(struct pfs_tree *tree, uint32_t directory,
							    struct pfs_totals change)
{
	const struct pfs_dirtable *table = &tree->totals->table;
	const uint32_t *parent = tree->image.parent;
	uint32_t left = tree->image.end;

	for (; directory != PFS_NO_SLOT; directory = parent[directory]) {
		struct pfs_dirtable_entry *entry = pfs_dirtable_find(table, directory);

		if (!entry || !left--) {
			forget(tree->totals);
			return;
		}
		entry->count += (uint32_t)change.count;
		entry->size += change.size;
		entry->blocks += change.blocks;
	}
}

PFS_COUNTS_ONES static void walk_up_fast(struct pfs_tree *tree, uint32_t directory,
					 struct pfs_totals change)
{
	walk_up(tree, directory, change);
}

static void add(struct pfs_tree *tree, uint32_t directory, struct pfs_totals change)
{
	if (pfs_can_count_ones())
		walk_up_fast(tree, directory, change);
	else
		walk_up(tree, directory, change);
}

/* The newest mtime in the directory, none being newer than `most`. */
static int64_t look_for_newest(const struct pfs_tree *tree, uint32_t directory, int64_t most)
{
	int64_t own_mtime = is_counted(tree, directory) ? tree->image.mtime[directory] : NOTHING,
		below;

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
	uint32_t left = tree->image.end;

	for (; directory != PFS_NO_SLOT; directory = tree->image.parent[directory]) {
		struct pfs_dirtable_entry *entry =
			pfs_dirtable_find(&tree->totals->table, directory);
		int64_t most;

		if (!entry || !left--) {
			forget(tree->totals);
			return;
		}
		most = entry->newest;
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
	}
}

static void attached(struct pfs_tree *tree, uint32_t slot)
{
	uint32_t parent = tree->image.parent[slot];
	struct pfs_dirtable *table = &tree->totals->table;
	struct pfs_totals totals;
	int error = 0;

	if (S_ISDIR(tree->image.mode[slot]) && is_counted(tree, slot) &&
	    !pfs_dirtable_has(table, slot)) {
		totals = pfs_totals_own(tree, slot);
		error = pfs_dirtable_insert(table, slot);
		if (!error)
			set_entry(pfs_dirtable_at(table, slot), &totals);
	}
	find_whole(&totals, tree, table, slot);
	if (!error && !totals.count)
		return;
	if (!error && tree->totals->counted != UINT32_MAX) /* else all directories have one */
		error = want_entries(tree, table, parent);
	if (error) {
		forget(tree->totals);
		return;
	}
	add(tree, parent, totals);
	renew(tree, parent, slot, NOTHING, totals.mtime);
}

static void detached(struct pfs_tree *tree, uint32_t slot, uint32_t parent)
{
	struct pfs_totals totals;

	find_whole(&totals, tree, &tree->totals->table, slot);
	if (!totals.count)
		return;
	add(tree, parent,
	    (struct pfs_totals){
		    .count = -totals.count, .size = -totals.size, .blocks = -totals.blocks});
	renew(tree, parent, slot, totals.mtime, NOTHING);
}

static void freed(struct pfs_tree *tree, uint32_t slot)
{
	if (!pfs_dirtable_has(&tree->totals->table, slot))
		return;
	if (pfs_dirtable_remove(&tree->totals->table, slot))
		forget(tree->totals);
	else
		pfs_newest_drop(tree->totals->newest, slot);
}

/* Columns have changed, of a node that stays where it is. */
static void revalued(struct pfs_tree *tree, uint32_t slot, const struct pfs_totals *before)
{
	const struct pfs_totals now = pfs_totals_own(tree, slot);
	const struct pfs_totals change = {.size = now.size - before->size,
					  .blocks = now.blocks - before->blocks};
	uint32_t first = S_ISDIR(tree->image.mode[slot]) ? slot : tree->image.parent[slot];

	if (!is_counted(tree, slot))
		return;
	if (change.size || change.blocks)
		add(tree, first, change);
	if (now.mtime != before->mtime)
		renew(tree, first, slot, before->mtime, now.mtime);
}

static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	if (!are_kept(tree))
		return;
	if (columns & PFS_COLUMNS_PLACE)
		tree->totals->parent = tree->image.parent[slot];
	else
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
	if (totals->parent != PFS_NO_SLOT && totals->parent == tree->image.parent[slot])
		return; /* it has another name there */
	if (totals->parent != PFS_NO_SLOT)
		detached(tree, slot, totals->parent);
	if (pfs_image_is_live(&tree->image, slot))
		attached(tree, slot);
}

/* What an image file says may have been made up: that is its owner's affair. */
static bool check(struct pfs_tree *tree)
{
	struct pfs_dirtable again = {.n_blocks = 0};
	struct additions additions = {.n = 0};
	bool same, made;

	made = pfs_totals_are_made(tree) && !tree->totals->table.n_lent_blocks &&
	       !pfs_dirtable_open(&again) && !open_additions(&additions) &&
	       !count(tree, &again, &additions, 0, tree->image.end);
	close_additions(&additions);
	if (!made) {
		pfs_dirtable_close(&again);
		return true;
	}
	same = pfs_dirtable_is_same(&tree->totals->table, &again);
	pfs_dirtable_close(&again);
	return same;
}

/* ---- an image file's ---- */

int pfs_totals_lend(struct pfs_tree *tree, uint32_t end, uint32_t n, void **blocks, void **entries)
{
	struct pfs_totals_table *totals = tree->totals;
	struct pfs_reserve *memory = &totals->lent[1];
	const size_t size = (size_t)n * sizeof(struct pfs_dirtable_entry);

	pfs_totals_drop(tree);
	PFS_TRY(pfs_reserve_whole(memory, size));
	PFS_TRY(pfs_dirtable_open_lent(&totals->table, end, memory->base, n));
	*blocks = totals->table.blocks;
	*entries = memory->base;
	totals->begun = true;
	totals->counted = UINT32_MAX;
	atomic_store(&totals->kept, true);
	return 0;
}

void pfs_totals_drop(struct pfs_tree *tree)
{
	struct pfs_totals_table *totals = tree->totals;

	forget(totals);
	for (unsigned i = 0; i < PFS_COUNT(totals->lent); i++)
		pfs_reserve_close(&totals->lent[i]);
}

const struct pfs_dirtable *pfs_totals_table(const struct pfs_tree *tree)
{
	return &tree->totals->table;
}

/* ---- life ---- */

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
	return pfs_totals_are_made(tree) ? pfs_dirtable_size(&tree->totals->table) : 0;
}
