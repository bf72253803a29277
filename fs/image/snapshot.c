/* SPDX-License-Identifier: MIT */
/* Versions of blocks. What makes reading without the lock right stands in docs/design/snapshots.md,
 * "Snapshots". */
#include "fs/image/snapshot.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/hold.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/snapshot_impl.h"
#include "fs/tree/tree_impl.h"

#define BLOCKS (PFS_SLOT_MAX / PFS_SNAPSHOT_BLOCK)
#define PIECE  256u /* versions looked at in one hold of the lock, */
#define DRAIN  256u /* and slots freed in one of the tree */

static const struct {
	size_t field; /* of struct pfs_image */
	uint16_t bits; /* of an element */
	uint8_t class;
} layout[PFS_COLUMN_COUNT] = {
#define CLASS_OF(bits) ((bits) > 32 ? 3 : (bits) > 16 ? 2 : (bits) > 1)
#define COLUMN(id, name, type, ...)                                                                \
	{offsetof(struct pfs_image, name), 8 * sizeof(type), CLASS_OF(8 * sizeof(type))},
	PFS_WATCHED_COLUMNS(COLUMN)
	{offsetof(struct pfs_image, live), 1, CLASS_OF(1)},
#undef COLUMN
};

/* ---- which versions are needed; the lock is held ---- */

static struct pfs_snapshot_entry *entry_of(const struct pfs_snapshots *snapshots, unsigned column,
					   uint32_t block)
{
	return &snapshots->entries[(size_t)column * BLOCKS + block];
}

/* The newest snapshot that reads a version of the block with these numbers; NULL: none does. */
static struct pfs_snapshot *find_reader(const struct pfs_snapshots *snapshots, unsigned column,
					uint32_t block, uint64_t from, uint64_t to)
{
	struct pfs_snapshot *found = NULL;

	for (struct pfs_snapshot *one = snapshots->oldest; one && one->number <= to;
	     one = one->next)
		if (one->columns >> column & 1 && one->number > from &&
		    one->end > block * PFS_SNAPSHOT_BLOCK)
			found = one;
	return found;
}

static void free_version(struct pfs_snapshots *snapshots, struct pfs_version *version)
{
	struct pfs_version **at = &entry_of(snapshots, version->column, version->block)->newest;

	while (*at != version)
		at = &(*at)->older;
	*at = version->older;
	pfs_spare_put(snapshots, version, layout[version->column].class);
}

static void put_version(struct pfs_snapshot *snapshot, struct pfs_version *version)
{
	version->next = snapshot->versions;
	snapshot->versions = version;
}

/* Some versions of a snapshot that has no columns any more: others who read them get them. */
static void hand_over(struct pfs_snapshot *snapshot, unsigned most)
{
	struct pfs_snapshots *snapshots = snapshot->tree->snapshots;

	for (unsigned i = 0; i < most && snapshot->versions; i++) {
		struct pfs_version *version = snapshot->versions;
		struct pfs_snapshot *reader = find_reader(
			snapshots, version->column, version->block, version->from, version->to);

		snapshot->versions = version->next;
		if (reader)
			put_version(reader, version);
		else
			free_version(snapshots, version);
	}
}

/* Says what is declared yet, after snapshots or columns of them have gone. Each store is a release:
 * a writer who sees it, and therefore copies nothing, also sees that the snapshot was given up, and
 * so does who sees what that writer stores. Who sees that a snapshot has ended sees that its names
 * and slots have been read. */
static void publish(struct pfs_snapshots *snapshots)
{
	uint64_t newest[PFS_COLUMN_COUNT] = {0};
	const struct pfs_snapshot *last = NULL;
	unsigned declared = 0;

	for (const struct pfs_snapshot *one = snapshots->oldest; one; one = one->next) {
		declared |= one->columns;
		last = one;
		for (unsigned left = one->columns; left; left &= left - 1)
			newest[__builtin_ctz(left)] = one->number;
	}
	for (unsigned column = 0; column < PFS_COLUMN_COUNT; column++)
		atomic_store_explicit(&snapshots->newest[column], newest[column],
				      memory_order_release);
	atomic_store_explicit(&snapshots->declared, declared, memory_order_release);
	atomic_store_explicit(&snapshots->first, snapshots->oldest ? snapshots->oldest->number : 0,
			      memory_order_release);
	atomic_store_explicit(&snapshots->end, last ? last->end : 0, memory_order_release);
	atomic_store_explicit(&snapshots->last, last ? last->number : 0, memory_order_release);
	pfs_names_hold(snapshots->tree->image.names, last ? last->number : 0,
		       last ? last->names_end : 0);
}

/* The oldest, or the oldest of those that have columns, loses its columns and is to end. False:
 * there is none. */
static bool give_up(struct pfs_snapshots *snapshots, bool has_columns)
{
	struct pfs_snapshot *one = snapshots->oldest;

	while (one && (one->given_up || (has_columns && !one->columns)))
		one = one->next;
	if (!one)
		return false;
	atomic_store_explicit(&one->given_up, true, memory_order_relaxed);
	one->columns = 0;
	snapshots->stats.given_up++;
	publish(snapshots);
	hand_over(one, UINT_MAX);
	return true;
}

/* ---- taken and ended ---- */

int pfs_snapshot_take(struct pfs_snapshot **out, struct pfs_tree *tree, unsigned columns)
{
	struct pfs_snapshots *snapshots = tree->snapshots;
	struct pfs_snapshot *snapshot = calloc(1, sizeof(*snapshot)), **at = &snapshots->oldest;

	*out = snapshot;
	if (!snapshot)
		return -ENOMEM;
	PFS_LOCKED(&snapshots->lock);
	*snapshot = (struct pfs_snapshot){.tree = tree,
					  .number = ++snapshots->number,
					  .end = tree->image.end,
					  .names_end = pfs_names_end(tree->image.names),
					  .declared = columns,
					  .columns = columns};
	while (*at)
		at = &(*at)->next;
	*at = snapshot;
	pfs_snapshots_find_limit(snapshots);
	snapshots->stats.open++;
	snapshots->stats.taken++;
	publish(snapshots);
	return 0;
}

/* It reads no column any more. */
static void let_go(struct pfs_snapshot *snapshot)
{
	struct pfs_snapshots *snapshots = snapshot->tree->snapshots;
	struct pfs_version *spares = NULL, *next;
	bool more = true;

	while (more) { /* a writer may be waiting for the lock */
		PFS_LOCKED(&snapshots->lock);
		hand_over(snapshot, PIECE);
		more = snapshot->versions;
		if (!more && !atomic_load_explicit(&snapshots->declared, memory_order_relaxed))
			spares = pfs_spare_take_all(snapshots);
	}
	for (; spares; spares = next) {
		next = spares->older;
		free(spares);
	}
}

void pfs_snapshot_end(struct pfs_snapshot *snapshot)
{
	struct pfs_snapshots *snapshots = snapshot ? snapshot->tree->snapshots : NULL;

	if (!snapshot)
		return;
	(void)pthread_mutex_lock(&snapshots->lock);
	for (struct pfs_snapshot **at = &snapshots->oldest; *at; at = &(*at)->next)
		if (*at == snapshot) {
			*at = snapshot->next;
			break;
		}
	snapshots->stats.open--;
	publish(snapshots);
	(void)pthread_mutex_unlock(&snapshots->lock);
	let_go(snapshot);
	free(snapshot);
}

void pfs_snapshot_drop_columns(struct pfs_snapshot *snapshot)
{
	struct pfs_snapshots *snapshots = snapshot->tree->snapshots;

	(void)pthread_mutex_lock(&snapshots->lock);
	snapshot->columns = 0;
	publish(snapshots);
	(void)pthread_mutex_unlock(&snapshots->lock);
	let_go(snapshot);
}

bool pfs_snapshot_is_given_up(const struct pfs_snapshot *snapshot)
{
	return atomic_load_explicit(&snapshot->given_up, memory_order_relaxed);
}

uint64_t pfs_snapshot_number(const struct pfs_snapshot *snapshot)
{
	return snapshot->number;
}

/* ---- reading ---- */

static unsigned number_of(unsigned column)
{
	return (unsigned)__builtin_ctz(column);
}

size_t pfs_snapshot_block_size(unsigned column)
{
	return (size_t)PFS_SNAPSHOT_BLOCK * layout[number_of(column)].bits / 8;
}

void *pfs_snapshot_array(const struct pfs_image *image, unsigned column)
{
	void *array;

	memcpy(&array, (const char *)image + layout[number_of(column)].field, sizeof(array));
	return array;
}

/* Bytes of the block that slots below `end` have, in whole words. */
static size_t bytes_of(unsigned column, uint32_t block, uint32_t end)
{
	uint64_t first = (uint64_t)block * PFS_SNAPSHOT_BLOCK;
	uint64_t slots = end > first ? PFS_MIN(end - first, PFS_SNAPSHOT_BLOCK) : 0;

	return (size_t)(pfs_div_round_up(slots * layout[column].bits, 64) * sizeof(uint64_t));
}

/* The one place that reads what a writer may be changing: words, each at once, that are used only
 * if they prove to have stood still. */
__attribute__((no_sanitize("thread"), noinline)) static void
read_words(uint64_t *to, const uint64_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

static bool is_untouched(const struct pfs_snapshot *snapshot,
			 const struct pfs_snapshot_entry *entry)
{
	return atomic_load_explicit(&entry->copied, memory_order_relaxed) < snapshot->number &&
	       !pfs_snapshot_is_given_up(snapshot);
}

static int fetch_version(struct pfs_snapshot *snapshot, void *out,
			 const struct pfs_snapshot_entry *entry, size_t bytes)
{
	const struct pfs_version *version;
	PFS_LOCKED(&snapshot->tree->snapshots->lock);

	if (snapshot->given_up)
		return -ENOMEM;
	for (version = entry->newest; version && version->from >= snapshot->number;)
		version = version->older;
	PFS_VERIFY_CHECK(version && version->to >= snapshot->number);
	if (!version)
		return -EIO;
	memcpy(out, version->data, bytes);
	return 0;
}

int pfs_snapshot_fetch(struct pfs_snapshot *snapshot, void *out, unsigned column, uint32_t block)
{
	unsigned number = number_of(column);
	const struct pfs_snapshot_entry *entry = entry_of(snapshot->tree->snapshots, number, block);
	const size_t bytes = bytes_of(number, block, snapshot->end);
	const char *array = pfs_snapshot_array(&snapshot->tree->image, column);

	PFS_VERIFY_CHECK(snapshot->declared & column);
	if (is_untouched(snapshot, entry)) {
		read_words(out, (const uint64_t *)(array + block * pfs_snapshot_block_size(column)),
			   bytes);
		atomic_thread_fence(memory_order_acquire);
		if (is_untouched(snapshot, entry))
			return 0;
	}
	return fetch_version(snapshot, out, entry, bytes);
}

/* ---- changes ---- */

/* What was reserved; other changes may have been faster, or there was no memory to reserve: then
 * what is reserved for other columns goes first, and the oldest snapshot with columns only after
 * that. NULL: nobody reads the version any more. */
static struct pfs_version *take_spare(struct pfs_snapshots *snapshots, struct pfs_snapshot **reader,
				  const struct pfs_version *as)
{
	const unsigned class = layout[as->column].class;

	while ((*reader = find_reader(snapshots, as->column, as->block, as->from, as->to))) {
		struct pfs_version *version = pfs_spare_pop(snapshots, class);

		if (!version)
			version = pfs_spare_make(snapshots, class);
		if (version)
			return version;
		if (!pfs_spare_free(snapshots))
			(void)give_up(snapshots, true);
	}
	return NULL;
}

/* Copies the block for all snapshots since the last copy of it. */
static void copy_block(struct pfs_tree *tree, unsigned column, uint32_t block)
{
	struct pfs_snapshots *snapshots = tree->snapshots;
	struct pfs_snapshot_entry *entry = entry_of(snapshots, column, block);
	const char *array = pfs_snapshot_array(&tree->image, 1u << column);
	struct pfs_version *version, new = {.block = block, .column = (uint8_t)column};
	struct pfs_snapshot *reader;
	PFS_LOCKED(&snapshots->lock);

	new.from = atomic_load_explicit(&entry->copied, memory_order_relaxed);
	new.to = atomic_load_explicit(&snapshots->newest[column], memory_order_relaxed);
	if (new.from >= new.to)
		return;
	version = take_spare(snapshots, &reader, &new);
	if (version) {
		new.older = entry->newest; /* taking it may have freed others */
		*version = new;
		memcpy(version->data,
		       array + (size_t)block * PFS_SNAPSHOT_BLOCK * layout[column].bits / 8,
		       bytes_of(column, block, tree->image.end));
		entry->newest = version;
		put_version(reader, version);
		snapshots->stats.copied++;
	}
	atomic_store_explicit(&entry->copied, new.to, memory_order_relaxed);
}

/* Copies the slot's block of each of these columns, unless it was copied since the last
 * snapshot. */
PFS_SELDOM static void copy_blocks(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	const struct pfs_snapshots *snapshots = tree->snapshots;
	const uint32_t block = slot / PFS_SNAPSHOT_BLOCK;

	for (unsigned left = columns; left; left &= left - 1) {
		unsigned column = number_of(left);
		const struct pfs_snapshot_entry *entry = entry_of(snapshots, column, block);

		if (atomic_load_explicit(&entry->copied, memory_order_relaxed) <
		    atomic_load_explicit(&snapshots->newest[column], memory_order_acquire))
			copy_block(tree, column, block);
	}
}

static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	/* acquire: if a snapshot was given up and so nothing is copied, this thread has seen
	 * that */
	columns &= atomic_load_explicit(&tree->snapshots->declared, memory_order_acquire);
	if (columns)
		copy_blocks(tree, slot, columns);
	/* who sees what is stored from here on sees that it was copied (or given up) before */
	atomic_thread_fence(memory_order_release);
}

static const struct pfs_watcher watcher = {
	.name = "snapshots",
	.columns = PFS_COLUMNS_ALL,
	.changing = changing,
};

/* ---- life ---- */

int pfs_snapshots_create(struct pfs_tree *tree)
{
	struct pfs_snapshots *snapshots = calloc(1, sizeof(*snapshots));
	const size_t size = (size_t)PFS_COLUMN_COUNT * BLOCKS * sizeof(struct pfs_snapshot_entry);

	tree->snapshots = snapshots;
	if (!snapshots)
		return -ENOMEM;
	snapshots->tree = tree;
	(void)pthread_mutex_init(&snapshots->lock, NULL);
	PFS_TRY(pfs_reserve_whole(&snapshots->memory, size));
	snapshots->entries = snapshots->memory.base;
	pfs_watch(tree, &watcher);
	return 0;
}

void pfs_snapshots_destroy(struct pfs_tree *tree)
{
	struct pfs_snapshots *snapshots = tree->snapshots;

	if (!snapshots)
		return;
	PFS_VERIFY_CHECK(!snapshots->oldest);
	while (pfs_spare_free(snapshots))
		;
	PFS_VERIFY_CHECK(!snapshots->stats.bytes);
	pfs_kept_finish(&snapshots->kept);
	pfs_reserve_close(&snapshots->memory);
	(void)pthread_mutex_destroy(&snapshots->lock);
	free(snapshots);
	tree->snapshots = NULL;
}

/* ---- memory for them ---- */

/* No more than all the blocks that the newest snapshot has; the lock is held. */
static uint32_t most_blocks(const struct pfs_snapshots *snapshots)
{
	uint32_t end = 0;

	for (const struct pfs_snapshot *one = snapshots->oldest; one; one = one->next)
		end = PFS_MAX(end, one->end);
	return end / PFS_SNAPSHOT_BLOCK + 1;
}

/* Names, slots and what is kept elsewhere go when the oldest snapshot has ended: no change waits
 * for that. */
static void keep_limit(struct pfs_snapshots *snapshots)
{
	while (pfs_snapshots_are_over(snapshots))
		if (!pfs_spare_free(snapshots)) {
			(void)give_up(snapshots, false);
			break;
		}
}

/* Some of the memory for copies of so many blocks of each column. False: all is there, or there is
 * no more. */
static bool reserve_some(struct pfs_snapshots *snapshots, size_t slots, unsigned columns)
{
	size_t wanted[PFS_VERSION_CLASSES] = {0}, blocks = PFS_MIN(slots, most_blocks(snapshots));
	unsigned made = 0;

	columns &= atomic_load_explicit(&snapshots->declared, memory_order_relaxed);
	for (; columns; columns &= columns - 1) {
		unsigned class = layout[number_of(columns)].class;

		wanted[class] += blocks;
		for (; snapshots->n_spare[class] < wanted[class]; made++) {
			struct pfs_version *version =
				made < PIECE ? pfs_spare_make(snapshots, class) : NULL;

			if (!version) /* how much is needed is seen when blocks change */
				return made == PIECE;
			pfs_spare_put(snapshots, version, class);
		}
	}
	return false;
}

PFS_SELDOM static void reserve(struct pfs_snapshots *snapshots, size_t slots, unsigned columns)
{
	bool more = true;

	while (more) { /* who takes a snapshot may be waiting for the lock */
		PFS_LOCKED(&snapshots->lock);
		keep_limit(snapshots);
		more = reserve_some(snapshots, slots, columns);
	}
}

void pfs_snapshots_reserve(struct pfs_tree *tree, size_t slots, unsigned columns)
{
	uint64_t first;

	if (pfs_snapshots_open(tree, &first))
		reserve(tree->snapshots, slots, columns);
}

/* ---- slots and names ---- */

/* False: there is no more that can be freed. */
static bool drain_some(struct pfs_tree *tree)
{
	struct pfs_snapshots *snapshots = tree->snapshots;
	uint64_t first = atomic_load_explicit(&snapshots->first, memory_order_acquire);
	uint32_t slot;
	unsigned i;

	for (i = 0; i < DRAIN && pfs_kept_take(&snapshots->kept, &slot, first); i++)
		pfs_image_free_now(tree, slot);
	return pfs_names_drain(tree->image.names, first) || i == DRAIN;
}

void pfs_snapshots_drain(struct pfs_tree *tree)
{
	bool more = true;

	while (more) {
		pfs_hold_write(tree, __func__);
		more = drain_some(tree);
		pfs_hold_end(tree);
	}
}
