/* SPDX-License-Identifier: MIT */
/* Snapshots: blocks as they were, whoever changes them meanwhile; names and slots that are kept;
 * and what happens when memory is short. */
#include "totals_util.h"

#include <pthread.h>
#include <unistd.h>

#include "fs/image/image.h"
#include "fs/image/kept.h"
#include "fs/image/names.h"
#include "fs/image/snapshot.h"
#include "fs/tree/tree_impl.h"

#define ALL PFS_COLUMNS_ALL

static bool is_small(void)
{
	const char *text = getenv("PFS_TEST_SMALL");

	return text && *text;
}

static struct pfs_snapshot *take(unsigned columns)
{
	struct pfs_snapshot *snapshot;

	pfs_hold_read(tree, __func__);
	assert_int_equal(pfs_snapshot_take(&snapshot, tree, columns), 0);
	pfs_hold_end(tree);
	return snapshot;
}

static int64_t size_in(struct pfs_snapshot *snapshot, uint32_t slot)
{
	static int64_t sizes[PFS_SNAPSHOT_BLOCK];

	assert_int_equal(pfs_snapshot_fetch(snapshot, sizes, PFS_COLUMN_SIZE,
					    slot / PFS_SNAPSHOT_BLOCK),
			 0);
	return sizes[slot % PFS_SNAPSHOT_BLOCK];
}

/* As operations do: memory first, then the lock. */
static void set_size(uint32_t slot, int64_t size)
{
	pfs_snapshots_reserve(tree, 1, ALL);
	pfs_hold_write(tree, __func__);
	pfs_image_set_size(tree, slot, size, 0);
	pfs_hold_end(tree);
}

static uint32_t slot_of(uint64_t ino)
{
	return pfs_image_slot(tree, ino);
}

static struct pfs_snapshot_stats stats(void)
{
	struct pfs_snapshot_stats out;

	pfs_snapshots_stats(tree, &out);
	return out;
}

/* ---- versions ---- */

static void test_versions(void **state)
{
	struct pfs_snapshot *first, *second, *third;
	uint64_t file;
	uint32_t slot;

	(void)state;
	open_new();
	file = make_in(ROOT, "file", S_IFREG | 0644);
	slot = slot_of(file);
	set_size(slot, 1);
	first = take(PFS_COLUMN_SIZE);
	second = take(PFS_COLUMN_SIZE);
	set_size(slot, 2);
	set_size(slot, 3);
	assert_int_equal(stats().copied, 1); /* both share it, and what comes second costs none */
	third = take(PFS_COLUMN_SIZE | PFS_COLUMN_MODE);
	set_size(slot, 4);
	assert_int_equal(stats().copied, 2);
	assert_int_equal(size_in(first, slot), 1);
	assert_int_equal(size_in(second, slot), 1);
	assert_int_equal(size_in(third, slot), 3);
	pfs_snapshot_end(second);
	assert_int_equal(size_in(first, slot), 1);
	pfs_snapshot_end(first);
	assert_int_equal(size_in(third, slot), 3);
	pfs_snapshot_end(third);
	assert_int_equal(stats().open, 0);
	assert_int_equal(stats().bytes, 0);
	set_size(slot, 0);
	end();
}

/* Of a middle one that ends first nothing is left. */
static void test_middle(void **state)
{
	struct pfs_snapshot *snapshots[3];
	uint64_t bytes;
	uint32_t slot;

	(void)state;
	open_new();
	slot = slot_of(make_in(ROOT, "file", S_IFREG | 0644));
	for (int i = 0; i < 3; i++) {
		snapshots[i] = take(PFS_COLUMN_SIZE);
		set_size(slot, i + 1);
	}
	bytes = stats().bytes;
	pfs_snapshot_end(snapshots[1]);
	assert_int_equal(stats().copied, 3);
	set_size(slot, 10); /* needs no copy, nor memory for one */
	assert_int_equal(stats().copied, 3);
	assert_true(stats().bytes <= bytes);
	assert_int_equal(size_in(snapshots[0], slot), 0);
	assert_int_equal(size_in(snapshots[2], slot), 2);
	pfs_snapshot_end(snapshots[0]);
	assert_int_equal(size_in(snapshots[2], slot), 2);
	pfs_snapshot_end(snapshots[2]);
	set_size(slot, 0);
	end();
}

/* ---- names and slots ---- */

static void test_kept(void **state)
{
	struct pfs_snapshot *snapshot;
	struct pfs_entry entry;
	uint64_t file;
	uint32_t slot, place;
	const char *name;
	size_t len;

	(void)state;
	open_new();
	file = make_in(ROOT, "a name to keep", S_IFREG | 0644);
	slot = slot_of(file);
	place = tree->image.name[slot];
	snapshot = take(ALL);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "a name to keep"), 0);
	assert_int_equal(stats().kept_names, 1); /* it counts from now on */
	pfs_tree_forget(tree, file, 1);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(stats().kept_slots, 1);
	assert_int_equal(pfs_tree_getattr(tree, &entry, file), -ESTALE);
	assert_int_equal(tree->image.prime[slot], file);
	(void)make_in(ROOT, "another of length", S_IFREG | 0644);
	name = pfs_names_get(tree->image.names, place, &len);
	assert_int_equal(len, strlen("a name to keep"));
	assert_memory_equal(name, "a name to keep", len);
	assert_int_not_equal(tree->image.name[slot_of(make_in(ROOT, "a name of same", S_IFREG))],
			     place);
	pfs_snapshot_end(snapshot);
	(void)make_in(ROOT, "x", S_IFREG | 0644);
	assert_int_equal(pfs_tree_sync(tree), 0); /* a cut frees what was kept */
	assert_int_not_equal(tree->image.prime[slot], file);
	(void)make_in(ROOT, "once more", S_IFREG | 0644);
	assert_int_equal(stats().kept_slots, 0);
	assert_int_equal(stats().kept_names, 0);
	end();
}

/* What came after the snapshot is not kept for it, however often it comes and goes. */
static void test_came_later(void **state)
{
	struct pfs_snapshot *snapshot;
	uint32_t end_slot = 0;
	uint64_t ino;

	(void)state;
	open_new();
	(void)make_in(ROOT, "0", S_IFREG | 0644);
	snapshot = take(ALL);
	for (unsigned i = 0; i < 100; i++) {
		char from[16], to[16];

		(void)snprintf(from, sizeof(from), "%u", i);
		(void)snprintf(to, sizeof(to), "%u", i + 1);
		assert_int_equal(pfs_tree_rename(tree, ROOT, from, ROOT, to, 0), 0);
		ino = make_in(ROOT, "comes and goes", S_IFREG | 0644);
		assert_int_equal(pfs_tree_unlink(tree, ROOT, "comes and goes"), 0);
		pfs_tree_forget(tree, ino, 1);
		assert_int_equal(pfs_tree_sync(tree), 0);
		if (!i)
			end_slot = tree->image.end;
	}
	assert_int_equal(stats().kept_names, 1);
	assert_int_equal(stats().kept_slots, 0);
	assert_int_equal(tree->image.end, end_slot);
	pfs_snapshot_end(snapshot);
	end();
}

/* Snapshots overlap, so that something is kept all the time: the queue does not grow. */
static void test_kept_queue(void **state)
{
	struct pfs_kept kept = {0};
	uint32_t what, next = 0;

	(void)state;
	for (uint32_t round = 1; round <= 1000; round++) {
		for (uint32_t i = 0; i < 10; i++)
			assert_int_equal(pfs_kept_add(&kept, 10 * round + i, round), 0);
		for (; pfs_kept_take(&kept, &what, PFS_MAX(round, 3) - 2); next++)
			assert_int_equal(what, 10 + next);
		assert_true(pfs_kept_count(&kept) <= 40);
	}
	assert_true(kept.capacity <= 200);
	for (; pfs_kept_take(&kept, &what, 0); next++)
		assert_int_equal(what, 10 + next);
	assert_int_equal(next, 10000);
	pfs_kept_finish(&kept);
}

/* ---- too little memory ---- */

#define BLOCKS 3
#define MOST   500

static void make_files(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%u", i);
		(void)make_in(ROOT, name, S_IFREG | 0644);
	}
}

static void change_each_block(int64_t size)
{
	for (uint32_t block = 0; block < BLOCKS; block++)
		set_size(block * PFS_SNAPSHOT_BLOCK + 5, size);
}

/* The image is small, and so is an eighth of it: the oldest has to go, and no change fails. */
static void test_given_up(void **state)
{
	static int64_t sizes[PFS_SNAPSHOT_BLOCK];
	struct pfs_snapshot *snapshots[MOST];
	unsigned n = 0;

	(void)state;
	open_new();
	make_files(BLOCKS * PFS_SNAPSHOT_BLOCK);
	change_each_block(MOST + 1); /* a commit may see it */
	do {
		snapshots[n++] = take(PFS_COLUMN_SIZE | PFS_COLUMN_BLOCKS);
		change_each_block(n);
	} while (n < MOST && !pfs_snapshot_is_given_up(snapshots[0]));
	assert_true(pfs_snapshot_is_given_up(snapshots[0]));
	assert_int_equal(stats().given_up, 1);
	assert_int_equal(pfs_snapshot_fetch(snapshots[0], sizes, PFS_COLUMN_SIZE, 0), -ENOMEM);
	assert_int_equal(tree->image.size[5], n);
	for (unsigned i = 1; i < n; i++)
		assert_int_equal(size_in(snapshots[i], 5), i);
	for (unsigned i = 0; i < n; i++)
		pfs_snapshot_end(snapshots[i]);
	assert_int_equal(stats().bytes, 0);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* What is kept elsewhere, of the limit all but `left`; more than that if left is negative. */
static int64_t fill_limit(int64_t left)
{
	int64_t bytes = (int64_t)stats().limit - (int64_t)stats().taken_bytes - left;

	pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, bytes);
	return bytes;
}

/* Who reserves does not know how much he needs: no snapshot is given up for that. */
static void test_reserved(void **state)
{
	const int64_t block = (int64_t)pfs_snapshot_block_size(PFS_COLUMN_SIZE);
	struct pfs_snapshot *snapshot;
	int64_t kept;

	(void)state;
	open_new();
	make_files(BLOCKS * PFS_SNAPSHOT_BLOCK);
	change_each_block(7);
	snapshot = take(ALL);
	pfs_snapshots_reserve(tree, 1000000, PFS_COLUMN_SIZE);
	assert_int_equal(stats().bytes, (BLOCKS + 1) * block);
	kept = fill_limit(3 * block); /* much less than all columns could need */
	pfs_snapshots_reserve(tree, 1000000, ALL);
	assert_false(pfs_snapshot_is_given_up(snapshot));
	pfs_hold_write(tree, __func__);
	pfs_image_stamp(tree, 5, PFS_COLUMN_MTIME, (struct pfs_time){1, 0});
	pfs_hold_end(tree);
	assert_false(pfs_snapshot_is_given_up(snapshot));
	/* what was reserved for other columns goes first */
	for (uint32_t i = 0; i < BLOCKS; i++) {
		pfs_hold_write(tree, __func__);
		pfs_image_set_mode(tree, i * PFS_SNAPSHOT_BLOCK + 5, S_IFREG | 0600);
		pfs_image_stamp(tree, i * PFS_SNAPSHOT_BLOCK + 5, PFS_COLUMN_MTIME,
				(struct pfs_time){2, 0});
		pfs_hold_end(tree);
	}
	assert_int_equal(stats().given_up, 0);
	assert_int_equal(stats().copied, 2 * BLOCKS);
	assert_int_equal(size_in(snapshot, 5), 7);
	pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, -kept);
	pfs_snapshot_end(snapshot);
	assert_int_equal(stats().bytes, 0);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* For a block the oldest goes that has any; for what goes with its end, the oldest. */
static void test_who_is_given_up(void **state)
{
	struct pfs_snapshot *without, *with, *last;
	int64_t kept;

	(void)state;
	open_new();
	make_files(10);
	without = take(ALL);
	pfs_snapshot_drop_columns(without);
	with = take(ALL);
	last = take(PFS_COLUMN_SIZE);
	kept = fill_limit(0);
	pfs_hold_write(tree, __func__);
	pfs_image_set_size(tree, 3, 33, 0);
	pfs_hold_end(tree);
	assert_false(pfs_snapshot_is_given_up(without));
	assert_true(pfs_snapshot_is_given_up(with));
	assert_int_equal(size_in(last, 3),
			 0); /* a quarter more is allowed until that one has ended */
	pfs_snapshot_end(with);
	pfs_snapshots_reserve(tree, 1, PFS_COLUMN_MTIME);
	assert_true(pfs_snapshot_is_given_up(without));
	assert_false(pfs_snapshot_is_given_up(last));
	pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, -kept);
	pfs_snapshot_end(without);
	pfs_snapshot_end(last);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* Blocks that a snapshot does not have are not copied for it. */
static void test_new_blocks(void **state)
{
	struct pfs_snapshot *snapshot;

	(void)state;
	open_new();
	snapshot = take(PFS_COLUMN_NAME);
	make_files(2 * PFS_SNAPSHOT_BLOCK);
	assert_int_equal(stats().copied, 1);
	pfs_snapshot_end(snapshot);
	snapshot = take(PFS_COLUMN_NAME);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "f8000", ROOT, "renamed", 0), 0);
	assert_int_equal(stats().copied, 2);
	pfs_snapshot_end(snapshot);
	end();
}

/* Others may have taken what a change reserved. */
static void test_nothing_reserved(void **state)
{
	struct pfs_snapshot *snapshot;

	(void)state;
	open_new();
	make_files(10);
	snapshot = take(PFS_COLUMN_SIZE);
	pfs_hold_write(tree, __func__);
	pfs_image_set_size(tree, 3, 33, 0);
	pfs_hold_end(tree);
	assert_int_equal(size_in(snapshot, 3), 0);
	assert_int_equal(tree->image.size[3], 33);
	pfs_snapshot_end(snapshot);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* ---- litmus: readers beside writers ---- */

#define WRITERS 4
#define READERS 16
#define CELLS	3 /* slots, far apart, that each change gives the same value */

static struct {
	uint32_t slots[CELLS];
	int64_t value; /* protected by tree->lock */
	_Atomic bool stop;
	_Atomic unsigned torn, failed, read;
	unsigned rounds;
} litmus;

static void *write_all_the_time(void *arg)
{
	while (!atomic_load(&litmus.stop)) {
		pfs_snapshots_reserve(tree, CELLS, ALL);
		pfs_hold_write(tree, __func__);
		litmus.value++;
		for (unsigned cell = 0; cell < CELLS; cell++)
			pfs_image_set_size(tree, litmus.slots[cell], litmus.value, litmus.value);
		pfs_hold_end(tree);
	}
	return arg;
}

/* As if what is kept elsewhere became too much now and then. */
static void *give_up_all_the_time(void *arg)
{
	while (!atomic_load(&litmus.stop)) {
		const int64_t bytes = INT64_C(1) << 40;

		pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, bytes);
		pfs_snapshots_reserve(tree, 0, 0);
		pfs_snapshots_keep(tree, PFS_KEPT_ATTRIBUTES, -bytes);
		(void)usleep(500);
	}
	return arg;
}

static void look_at(struct pfs_snapshot *snapshot, int64_t *block, unsigned column, int64_t value)
{
	for (unsigned cell = 0; cell < CELLS; cell++) {
		uint32_t slot = litmus.slots[cell];

		if (pfs_snapshot_fetch(snapshot, block, column, slot / PFS_SNAPSHOT_BLOCK)) {
			atomic_fetch_add(&litmus.failed, 1);
			return;
		}
		if (block[slot % PFS_SNAPSHOT_BLOCK] != value)
			atomic_fetch_add(&litmus.torn, 1);
		atomic_fetch_add(&litmus.read, 1);
	}
}

/* Whatever the others come to: so many rounds, and more until each of it has happened. */
static bool reads_on(unsigned round)
{
	return round < litmus.rounds ||
	       (round < 1000 * litmus.rounds && !(stats().copied && stats().given_up));
}

static void *read_all_the_time(void *arg)
{
	int64_t *block = malloc(PFS_SNAPSHOT_BLOCK * sizeof(*block));

	for (unsigned i = 0; block && reads_on(i); i++) {
		struct pfs_snapshot *snapshot = NULL;
		int64_t value;
		int error;

		pfs_hold_read(tree, __func__);
		error = pfs_snapshot_take(&snapshot, tree, PFS_COLUMN_SIZE | PFS_COLUMN_BLOCKS);
		value = litmus.value;
		pfs_hold_end(tree);
		for (unsigned times = 0; !error && times < 3; times++) {
			look_at(snapshot, block, PFS_COLUMN_SIZE, value);
			look_at(snapshot, block, PFS_COLUMN_BLOCKS, value);
		}
		pfs_snapshot_end(snapshot);
	}
	free(block);
	return arg;
}

static void test_litmus(void **state)
{
	pthread_t threads[WRITERS + READERS], giving_up;

	(void)state;
	open_new();
	memset(&litmus, 0, sizeof(litmus));
	litmus.rounds = is_small() ? 60 : 1000;
	make_files(2 * PFS_SNAPSHOT_BLOCK + 100);
	for (unsigned cell = 0; cell < CELLS; cell++)
		litmus.slots[cell] = cell * PFS_SNAPSHOT_BLOCK + 17;
	for (unsigned i = 0; i < WRITERS + READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						i < WRITERS ? write_all_the_time
							    : read_all_the_time,
						NULL),
				 0);
	assert_int_equal(pthread_create(&giving_up, NULL, give_up_all_the_time, NULL), 0);
	for (unsigned i = WRITERS; i < WRITERS + READERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	atomic_store(&litmus.stop, true);
	for (unsigned i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(pthread_join(giving_up, NULL), 0);
	assert_int_equal(atomic_load(&litmus.torn), 0);
	assert_true(atomic_load(&litmus.read) > 0 && stats().copied > 0 && stats().given_up > 0);
	assert_int_equal(stats().open, 0);
	assert_int_equal(stats().bytes, 0);
	print_message("%u values read, %llu blocks copied, %llu snapshots given up\n",
		      atomic_load(&litmus.read), (unsigned long long)stats().copied,
		      (unsigned long long)stats().given_up);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions), cmocka_unit_test(test_middle),
		cmocka_unit_test(test_kept),	 cmocka_unit_test(test_kept_queue),
		cmocka_unit_test(test_came_later),
		cmocka_unit_test(test_given_up), cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_who_is_given_up), cmocka_unit_test(test_new_blocks),
		cmocka_unit_test(test_nothing_reserved), cmocka_unit_test(test_litmus),
	};

	take_seed(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
