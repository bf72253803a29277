/* SPDX-License-Identifier: MIT */
/* Versions of blocks. What makes reading without the lock right stands in docs/design/snapshots.md,
 * "Snapshots". */
#include "fs/image/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/hold.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

#define BLOCKS	   (PFS_SLOT_MAX / PFS_SNAPSHOT_BLOCK)
#define CLASSES	   4u /* of blocks by their size */
#define PART	   8u /* of the image: what copies may take */
#define DRAIN	   256u /* kept slots freed at a time */
#define KEPT_NAME  16u /* bytes that a kept name costs, about, */
#define KEPT_SLOT  96u /* and a slot */

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
static const size_t class_size[CLASSES] = {512, 8192, 16384, 32768};

/* A block as it was. It is what snapshots read whose number is above `from` and at most `to`. */
struct version {
	struct version *older; /* of the same block; of free ones: the next */
	struct version *next;  /* of all */
	uint64_t from, to;
	uint32_t block;
	uint8_t column;
	uint64_t data[];
};

struct entry {
	_Atomic uint64_t copied; /* the number of the newest snapshot that a copy was made for */
	struct version *newest;	 /* protected by the lock */
};

struct pfs_snapshot {
	struct pfs_tree *tree;
	uint64_t number; /* they are counted from 1 */
	uint32_t end;
	unsigned declared;
	unsigned columns; /* of those, which are still wanted; protected by the lock, as all below */
	_Atomic bool given_up;
	struct pfs_snapshot *next; /* the one taken after it */
};

struct kept_slot {
	uint32_t slot;
	uint64_t number; /* of the newest snapshot when its node went */
};

struct pfs_snapshots {
	pthread_mutex_t lock;
	_Atomic unsigned declared; /* by some snapshot */
	_Atomic uint64_t newest[PFS_COLUMN_COUNT]; /* snapshot that declares the column; 0: none */
	_Atomic uint64_t first, last; /* numbers of those open; 0: there is none */
	_Atomic int64_t elsewhere; /* bytes */
	struct pfs_reserve memory;
	struct entry *entries; /* memory.base, by column and block */
	/* Protected by the lock. */
	struct pfs_snapshot *oldest;
	uint64_t number; /* given last */
	struct version *all, *spare[CLASSES];
	size_t n_spare[CLASSES];
	uint64_t limit;
	struct pfs_tree *tree;
	struct pfs_snapshot_stats stats;
	/* Protected by tree->lock, for writing. */
	struct kept_slot *kept;
	size_t first_kept, n_kept, kept_capacity;
};

/* ---- life ---- */

static void free_spare(struct pfs_snapshots *snapshots)
{
	for (unsigned class = 0; class < CLASSES; class++) {
		while (snapshots->spare[class]) {
			struct version *version = snapshots->spare[class];

			snapshots->spare[class] = version->older;
			free(version);
			snapshots->stats.bytes -= class_size[class];
		}
		snapshots->n_spare[class] = 0;
	}
}

void pfs_snapshots_destroy(struct pfs_tree *tree)
{
	struct pfs_snapshots *snapshots = tree->snapshots;

	if (!snapshots)
		return;
	PFS_VERIFY_CHECK(!snapshots->oldest && !snapshots->all);
	free_spare(snapshots);
	free(snapshots->kept);
	pfs_reserve_close(&snapshots->memory);
	(void)pthread_mutex_destroy(&snapshots->lock);
	free(snapshots);
	tree->snapshots = NULL;
}

/* ---- which versions are needed; the lock is held ---- */

static struct entry *entry_of(const struct pfs_snapshots *snapshots, unsigned column, uint32_t block)
{
	return &snapshots->entries[(size_t)column * BLOCKS + block];
}

static bool is_wanted(const struct pfs_snapshots *snapshots, unsigned column, uint64_t from,
		      uint64_t to)
{
	for (const struct pfs_snapshot *one = snapshots->oldest; one; one = one->next)
		if (one->columns >> column & 1 && one->number > from && one->number <= to)
			return true;
	return false;
}

static void put_spare(struct pfs_snapshots *snapshots, struct version *version, unsigned class)
{
	version->older = snapshots->spare[class];
	snapshots->spare[class] = version;
	snapshots->n_spare[class]++;
}

static void free_version(struct pfs_snapshots *snapshots, struct version *version)
{
	struct version **at = &entry_of(snapshots, version->column, version->block)->newest;

	while (*at != version)
		at = &(*at)->older;
	*at = version->older;
	put_spare(snapshots, version, layout[version->column].class);
}

/* After snapshots or columns of them have gone. */
static void settle(struct pfs_snapshots *snapshots)
{
	uint64_t newest[PFS_COLUMN_COUNT] = {0}, last = 0;
	unsigned declared = 0;

	for (const struct pfs_snapshot *one = snapshots->oldest; one; one = one->next) {
		declared |= one->columns;
		last = one->number;
		for (unsigned column = 0; column < PFS_COLUMN_COUNT; column++)
			if (one->columns >> column & 1)
				newest[column] = one->number;
	}
	for (unsigned column = 0; column < PFS_COLUMN_COUNT; column++)
		atomic_store_explicit(&snapshots->newest[column], newest[column],
				      memory_order_relaxed);
	atomic_store_explicit(&snapshots->declared, declared, memory_order_relaxed);
	/* release: who sees that a snapshot has ended sees that its names and slots have been read */
	atomic_store_explicit(&snapshots->first, snapshots->oldest ? snapshots->oldest->number : 0,
			      memory_order_release);
	atomic_store_explicit(&snapshots->last, last, memory_order_release);
	for (struct version **at = &snapshots->all; *at;) {
		struct version *version = *at;

		if (is_wanted(snapshots, version->column, version->from, version->to)) {
			at = &version->next;
		} else {
			*at = version->next;
			free_version(snapshots, version);
		}
	}
	if (!declared)
		free_spare(snapshots);
	pfs_names_hold(snapshots->tree->image.names, last);
}

/* The oldest loses its columns, and is to end. False: there is none. */
static bool give_up_oldest(struct pfs_snapshots *snapshots)
{
	struct pfs_snapshot *one = snapshots->oldest;

	while (one && one->given_up)
		one = one->next;
	if (!one)
		return false;
	atomic_store_explicit(&one->given_up, true, memory_order_relaxed);
	one->columns = 0;
	snapshots->stats.given_up++;
	settle(snapshots);
	return true;
}

/* ---- taken and ended ---- */

static uint64_t limit_of(const struct pfs_tree *tree)
{
	uint64_t bytes = pfs_names_bytes(tree->image.names);

	for (size_t i = 0; i < PFS_IMAGE_COLUMNS; i++)
		bytes += tree->image.memory[i].committed;
	return bytes / PART;
}

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
					  .declared = columns,
					  .columns = columns};
	while (*at)
		at = &(*at)->next;
	*at = snapshot;
	snapshots->limit = limit_of(tree);
	snapshots->stats.open++;
	snapshots->stats.taken++;
	settle(snapshots);
	return 0;
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
	settle(snapshots);
	(void)pthread_mutex_unlock(&snapshots->lock);
	free(snapshot);
}

void pfs_snapshot_drop_columns(struct pfs_snapshot *snapshot)
{
	struct pfs_snapshots *snapshots = snapshot->tree->snapshots;
	PFS_LOCKED(&snapshots->lock);

	snapshot->columns = 0;
	settle(snapshots);
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

/* The one place that reads what a writer may be changing: words, each at once, that are used only if
 * they prove to have stood still. */
__attribute__((no_sanitize("thread"), noinline)) static void read_words(uint64_t *to, const uint64_t *from,
									size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

static bool is_untouched(const struct pfs_snapshot *snapshot, const struct entry *entry)
{
	return atomic_load_explicit(&entry->copied, memory_order_relaxed) < snapshot->number &&
	       !pfs_snapshot_is_given_up(snapshot);
}

static int fetch_version(struct pfs_snapshot *snapshot, void *out, const struct entry *entry,
			 size_t bytes)
{
	const struct version *version;
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
	const struct entry *entry = entry_of(snapshot->tree->snapshots, number, block);
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

/* Bytes in all; the lock is held, as for the next three. */
static uint64_t taken(const struct pfs_snapshots *snapshots)
{
	const struct pfs_snapshot_stats *stats = &snapshots->stats;

	return stats->bytes + stats->kept_names * KEPT_NAME + stats->kept_slots * KEPT_SLOT +
	       (uint64_t)atomic_load_explicit(&snapshots->elsewhere, memory_order_relaxed);
}

/* What is kept for one that was given up is freed when it has ended: that shall not cost the others theirs. */
static uint64_t limit_now(const struct pfs_snapshots *snapshots)
{
	uint64_t limit = snapshots->limit;

	for (const struct pfs_snapshot *one = snapshots->oldest; one && one->given_up; one = one->next)
		limit += snapshots->limit / 4;
	return limit;
}

static struct version *make_spare(struct pfs_snapshots *snapshots, unsigned class)
{
	struct pfs_snapshot_stats *stats = &snapshots->stats;
	struct version *version = NULL;

	if (taken(snapshots) + class_size[class] <= limit_now(snapshots))
		version = malloc(sizeof(*version) + class_size[class]);
	if (version) {
		stats->bytes += class_size[class];
		stats->most_bytes = PFS_MAX(stats->most_bytes, stats->bytes);
	}
	return version;
}

/* What was reserved; other changes may have been faster. */
static struct version *take_spare(struct pfs_snapshots *snapshots, unsigned class)
{
	struct version *version = snapshots->spare[class];

	if (!version)
		return make_spare(snapshots, class);
	snapshots->spare[class] = version->older;
	snapshots->n_spare[class]--;
	return version;
}

/* Copies the block for all snapshots since the last copy of it. */
static void copy_block(struct pfs_tree *tree, unsigned column, uint32_t block)
{
	struct pfs_snapshots *snapshots = tree->snapshots;
	struct entry *entry = entry_of(snapshots, column, block);
	const char *array = pfs_snapshot_array(&tree->image, 1u << column);
	struct version *version;
	uint64_t from, to;
	PFS_LOCKED(&snapshots->lock);

	from = atomic_load_explicit(&entry->copied, memory_order_relaxed);
	to = atomic_load_explicit(&snapshots->newest[column], memory_order_relaxed);
	if (!is_wanted(snapshots, column, from, to))
		return;
	do
		version = take_spare(snapshots, layout[column].class);
	while (!version && give_up_oldest(snapshots) && is_wanted(snapshots, column, from, to));
	if (!version)
		return;
	*version = (struct version){.older = entry->newest,
				    .next = snapshots->all,
				    .from = from,
				    .to = to,
				    .block = block,
				    .column = (uint8_t)column};
	memcpy(version->data, array + (size_t)block * PFS_SNAPSHOT_BLOCK * layout[column].bits / 8,
	       bytes_of(column, block, tree->image.end));
	entry->newest = snapshots->all = version;
	snapshots->stats.copied++;
	atomic_store_explicit(&entry->copied, to, memory_order_relaxed);
}

static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	struct pfs_snapshots *snapshots = tree->snapshots;
	const uint32_t block = slot / PFS_SNAPSHOT_BLOCK;
	unsigned left = columns & atomic_load_explicit(&snapshots->declared, memory_order_relaxed);

	for (; left; left &= left - 1) {
		unsigned column = number_of(left);
		const struct entry *entry = entry_of(snapshots, column, block);

		if (atomic_load_explicit(&entry->copied, memory_order_relaxed) <
		    atomic_load_explicit(&snapshots->newest[column], memory_order_relaxed))
			copy_block(tree, column, block);
	}
	/* who sees what is stored from here on sees that it was copied (or given up) before */
	atomic_thread_fence(memory_order_release);
}

static const struct pfs_watcher watcher = {
	.name = "snapshots",
	.columns = PFS_COLUMNS_ALL,
	.changing = changing,
};

int pfs_snapshots_create(struct pfs_tree *tree)
{
	struct pfs_snapshots *snapshots = calloc(1, sizeof(*snapshots));
	const size_t size = (size_t)PFS_COLUMN_COUNT * BLOCKS * sizeof(struct entry);

	tree->snapshots = snapshots;
	if (!snapshots)
		return -ENOMEM;
	snapshots->tree = tree;
	(void)pthread_mutex_init(&snapshots->lock, NULL);
	PFS_TRY(pfs_reserve_open(&snapshots->memory, size));
	PFS_TRY(pfs_reserve_grow(&snapshots->memory, size)); /* what is not touched takes no memory */
	snapshots->entries = snapshots->memory.base;
	pfs_watch(tree, &watcher);
	return 0;
}

/* ---- memory for them ---- */

/* The lock is held. */
static void reserve_class(struct pfs_snapshots *snapshots, unsigned class, size_t wanted)
{
	while (snapshots->n_spare[class] < wanted &&
	       atomic_load_explicit(&snapshots->declared, memory_order_relaxed)) {
		struct version *version = make_spare(snapshots, class);

		if (version)
			put_spare(snapshots, version, class);
		else
			(void)give_up_oldest(snapshots);
	}
}

/* No more than all the blocks that the newest snapshot has. */
static uint32_t most_blocks(const struct pfs_snapshots *snapshots)
{
	uint32_t end = 0;

	for (const struct pfs_snapshot *one = snapshots->oldest; one; one = one->next)
		end = PFS_MAX(end, one->end);
	return end / PFS_SNAPSHOT_BLOCK + 1;
}

void pfs_snapshots_reserve(struct pfs_tree *tree, size_t slots)
{
	struct pfs_snapshots *snapshots = tree->snapshots;
	size_t wanted[CLASSES] = {0};
	uint64_t first;

	if (!pfs_snapshots_open(tree, &first))
		return;
	PFS_LOCKED(&snapshots->lock);
	if (taken(snapshots) > limit_now(snapshots))
		(void)give_up_oldest(snapshots);
	slots = PFS_MIN(slots, most_blocks(snapshots));
	for (unsigned column = 0; column < PFS_COLUMN_COUNT; column++) {
		unsigned class = layout[column].class;

		if (!(atomic_load(&snapshots->declared) >> column & 1))
			continue;
		wanted[class] += slots;
		reserve_class(snapshots, class, wanted[class]);
	}
}

/* ---- slots and names ---- */

uint64_t pfs_snapshots_open(const struct pfs_tree *tree, uint64_t *first)
{
	const struct pfs_snapshots *snapshots = tree->snapshots;

	*first = snapshots ? atomic_load_explicit(&snapshots->first, memory_order_acquire) : 0;
	return snapshots ? atomic_load_explicit(&snapshots->last, memory_order_acquire) : 0;
}

void pfs_snapshots_keep(struct pfs_tree *tree, int64_t bytes)
{
	if (tree->snapshots)
		(void)atomic_fetch_add_explicit(&tree->snapshots->elsewhere, bytes, memory_order_relaxed);
}

void pfs_snapshots_keep_slot(struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_snapshots *snapshots = tree->snapshots;

	if (pfs_grow(&snapshots->kept, &snapshots->kept_capacity, snapshots->n_kept + 1,
		     sizeof(*snapshots->kept)))
		return;
	snapshots->kept[snapshots->n_kept++] = (struct kept_slot){
		slot, atomic_load_explicit(&snapshots->last, memory_order_relaxed)};
}

/* False: there is no more that can be freed. */
static bool drain_some(struct pfs_tree *tree)
{
	struct pfs_snapshots *snapshots = tree->snapshots;
	uint64_t first = atomic_load_explicit(&snapshots->first, memory_order_acquire);
	bool more;
	unsigned i;

	for (i = 0; i < DRAIN && snapshots->first_kept < snapshots->n_kept; i++) {
		const struct kept_slot *kept = &snapshots->kept[snapshots->first_kept];

		if (first && first <= kept->number)
			break;
		snapshots->first_kept++;
		pfs_image_free_now(tree, kept->slot);
	}
	if (snapshots->first_kept == snapshots->n_kept)
		snapshots->first_kept = snapshots->n_kept = 0;
	more = pfs_names_drain(tree->image.names, first) || i == DRAIN;
	(void)pthread_mutex_lock(&snapshots->lock);
	snapshots->stats.kept_names = pfs_names_held(tree->image.names);
	snapshots->stats.kept_slots = snapshots->n_kept - snapshots->first_kept;
	(void)pthread_mutex_unlock(&snapshots->lock);
	return more;
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

void pfs_snapshots_stats(struct pfs_tree *tree, struct pfs_snapshot_stats *out)
{
	const struct pfs_snapshots *snapshots = tree->snapshots;
	PFS_LOCKED(&tree->snapshots->lock);

	*out = snapshots->stats;
	out->kept_elsewhere = (uint64_t)atomic_load(&snapshots->elsewhere);
	out->taken_bytes = taken(snapshots);
	out->limit = snapshots->limit;
}
