/* SPDX-License-Identifier: MIT */
/* The image's feed: followers of some columns, with any lag, have what a log of all changes says;
 * who fell behind finds it by blocks, and a quarter of them is the limit. */
#include <pthread.h>
#include <stdatomic.h>

#include "fs/image/feed.h"
#include "fs/image/hold.h"
#include "fs/image/image.h"
#include "fs/tree/tree_impl.h"
#include "gpu/table.h"
#include "tests/unit/totals_util.h"

#define BLOCKS	16u
#define SLOTS	(BLOCKS * PFS_BLOCK_ROWS)
#define CHANGES (3u * (uint32_t)PFS_FEED_CHANGES)

/* ---- a feed without a tree, against the log ---- */

static struct pfs_image image;
static struct noted {
	uint32_t slot, columns;
} * noted; /* the log, by number */

static int begin_feed(void **state PFS_UNUSED)
{
	noted = calloc(CHANGES, sizeof(*noted));
	assert_non_null(noted);
	assert_int_equal(pfs_feed_create(&image), 0);
	image.end = SLOTS;
	return 0;
}

static int end_feed(void **state PFS_UNUSED)
{
	pfs_feed_destroy(&image);
	memset(&image, 0, sizeof(image));
	free(noted);
	return 0;
}

static void note(uint32_t slot, unsigned columns)
{
	noted[image.epoch] =
		(struct noted){slot, columns & PFS_COLUMN_LIVE ? PFS_COLUMNS_ALL : columns};
	pfs_feed_note(&image, slot, columns);
}

static void note_some(uint64_t *random, uint64_t n)
{
	while (n--)
		note(random_below(random, SLOTS), 1u << random_below(random, PFS_COLUMN_COUNT));
}

/* All that was noted since, piece by piece. */
static void assert_follows(struct pfs_feed_follower *follower, size_t room)
{
	uint32_t slots[1024];
	int more = 1;

	assert_true(room <= PFS_COUNT(slots));
	while (more) {
		uint64_t at = follower->cursor;
		size_t n = room, found = 0;

		more = pfs_feed_next(&image, follower, slots, &n);
		assert_true(more >= 0 && n <= room && follower->cursor - at <= PFS_FEED_LOOKED);
		for (; at < follower->cursor; at++)
			if (noted[at].columns & follower->columns)
				assert_int_equal(slots[found++], noted[at].slot);
		assert_int_equal(found, n);
	}
	assert_int_equal(follower->cursor, image.epoch);
}

/* The blocks since, and whether they are few. */
static void assert_blocks(const struct pfs_feed_follower *follower)
{
	bool changed[BLOCKS] = {false};
	unsigned n = 0;

	for (uint64_t at = follower->cursor; at < image.epoch; at++)
		if (noted[at].columns & follower->columns)
			changed[noted[at].slot / PFS_BLOCK_ROWS] = true;
	for (uint32_t block = 0; block < BLOCKS; block++) {
		assert_int_equal(
			pfs_feed_has_changed(&image, follower->columns, block, follower->cursor),
			changed[block]);
		n += changed[block];
	}
	assert_int_equal(pfs_feed_is_near(&image, follower->columns, SLOTS - 1, follower->cursor),
			 n <= BLOCKS / 4);
}

static void test_any_lag(void **state PFS_UNUSED)
{
	struct pfs_feed_follower followers[5] = {{PFS_COLUMN_NAME, 0},
					    {PFS_COLUMN_NAME | PFS_COLUMN_SIZE, 0},
					    {PFS_COLUMNS_ALL, 0},
					    {PFS_COLUMN_LINKS, 0},
					    {PFS_COLUMN_LIVE, 0}};
	uint64_t random = seed;
	uint32_t slots[4];

	while (image.epoch < CHANGES - PFS_FEED_CHANGES / 2) {
		struct pfs_feed_follower *follower =
			&followers[random_below(&random, PFS_COUNT(followers))];
		size_t n = PFS_COUNT(slots);

		note_some(&random, random_below(&random, 2)
					   ? random_below(&random, 100)
					   : random_below(&random, PFS_FEED_CHANGES / 4));
		if (image.epoch - follower->cursor <= PFS_FEED_CHANGES) {
			if (!random_below(&random, 4))
				assert_blocks(follower);
			assert_follows(follower, 1 + random_below(&random, 1024));
			continue;
		}
		assert_int_equal(pfs_feed_next(&image, follower, slots, &n), -EAGAIN);
		assert_int_equal(n, 0);
		assert_blocks(follower);
		follower->cursor = image.epoch;
	}
}

/* Whoever fell behind looks at a quarter of the blocks, and at all if there is one more. */
static void test_a_quarter(void **state PFS_UNUSED)
{
	const uint64_t from = image.epoch;
	struct pfs_feed_follower follower = {PFS_COLUMN_NAME, from};
	uint32_t slot;
	size_t n = 1;

	for (uint32_t block = 0; block < BLOCKS / 4; block++)
		note(block * 3 * PFS_BLOCK_ROWS, block ? PFS_COLUMN_NAME : PFS_COLUMN_LIVE);
	while (image.epoch - from <= PFS_FEED_CHANGES)
		note((uint32_t)(image.epoch % SLOTS), PFS_COLUMN_SIZE);
	assert_int_equal(pfs_feed_next(&image, &follower, &slot, &n), -EAGAIN);
	assert_true(pfs_feed_is_near(&image, follower.columns, SLOTS - 1, from));
	assert_false(pfs_feed_has_changed(&image, follower.columns, 1, from));
	note(PFS_BLOCK_ROWS, PFS_COLUMN_NAME);
	assert_true(pfs_feed_has_changed(&image, follower.columns, 1, from));
	assert_false(pfs_feed_is_near(&image, follower.columns, SLOTS - 1, from));
}

/* ---- beside writers ---- */

#define READERS 3u
#define ROUNDS	400u
static atomic_bool is_over;
static unsigned seats[] = {0, 1, 2};

/* Each name as it was when the feed last told of it is the one there is. */
static void *follow(void *arg)
{
	const unsigned seat = *(const unsigned *)arg;
	struct pfs_feed_follower follower = {PFS_COLUMN_NAME | PFS_COLUMN_LIVE, 0};
	uint32_t *names = calloc(SLOTS, sizeof(*names));
	uint32_t slots[64];
	bool last, right = names;

	do {
		int more = 1;

		last = atomic_load(&is_over);
		pfs_hold_read(tree, __func__);
		while (more && right) {
			size_t n = 1 + seat * 21;

			more = pfs_feed_next(&tree->image, &follower, slots, &n);
			right = more >= 0;
			for (size_t i = 0; i < n && right; i++)
				names[slots[i]] = tree->image.name[slots[i]];
		}
		for (uint32_t slot = 0; slot < tree->image.end && right; slot++)
			right = !pfs_image_is_live(&tree->image, slot) ||
				slot == tree->image.root || names[slot] == tree->image.name[slot];
		pfs_hold_end(tree);
	} while (!last && right);
	free(names);
	return right ? arg : NULL;
}

static void *write_some(void *arg)
{
	const unsigned seat = *(const unsigned *)arg;
	char name[32], to[32];

	for (unsigned i = 0; i < ROUNDS; i++) {
		(void)snprintf(name, sizeof(name), "w%u.%u", seat, i % 7);
		(void)snprintf(to, sizeof(to), "w%u.to%u", seat, i % 5);
		pfs_tree_forget(tree, make_in(ROOT, name, S_IFREG | 0644), 1);
		assert_int_equal(pfs_tree_rename(tree, ROOT, name, ROOT, to, 0), 0);
		if (i % 3 == 0)
			assert_int_equal(pfs_tree_unlink(tree, ROOT, to), 0);
	}
	return arg;
}

static void test_beside_writers(void **state PFS_UNUSED)
{
	pthread_t readers[READERS], writers[2];
	void *result;

	open_new();
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, follow, &seats[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, write_some, &seats[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_join(writers[i], NULL), 0);
	atomic_store(&is_over, true);
	for (unsigned i = 0; i < READERS; i++) {
		assert_int_equal(pthread_join(readers[i], &result), 0);
		assert_non_null(result);
	}
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_any_lag, begin_feed, end_feed),
		cmocka_unit_test_setup_teardown(test_a_quarter, begin_feed, end_feed),
		cmocka_unit_test(test_beside_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
