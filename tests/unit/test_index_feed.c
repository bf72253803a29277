/* SPDX-License-Identifier: MIT */
/* Column indexes follow the image's feed, closely or from far behind: after each step they tell
 * what a look at all nodes does.  PFS_SEED=N: another run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "fs/image/feed.h"
#include "fs/image/hold.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/watch.h"
#include "fs/nodes/index.h"
#include "fs/tree/frozen.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/random.h"
#include "tests/ref/temp_store.h"

#define FILES 12000u /* three blocks, of which one may change unseen */
#define SIZES 1000000
#define STEPS 400u

static uint64_t seed = 20261124, random_state;
static struct temp_store temp;
static struct pfs_tree *tree;
static uint64_t inos[FILES];

static uint32_t rnd(uint32_t n)
{
	return random_below(&random_state, n);
}

static void make(unsigned i)
{
	struct pfs_entry entry;
	char name[32];

	(void)snprintf(name, sizeof(name), "f%u", i);
	assert_int_equal(
		pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name, S_IFREG | 0644, 0, &temp_root),
		0);
	inos[i] = entry.attr.st_ino;
	pfs_tree_forget(tree, inos[i], 1);
}

static void resize(unsigned i, int64_t size)
{
	struct stat attr = {.st_size = size};
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, inos[i], &attr, PFS_SET_SIZE, &temp_root),
			 0);
}

static void start(void)
{
	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, &(struct pfs_tree_options){.no_atime = true});
	for (unsigned i = 0; i < FILES; i++) {
		make(i);
		resize(i, rnd(SIZES));
	}
}

static void stop(void)
{
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
}

/* So many changes of a column that no index is made of. */
static void change_modes(uint64_t n)
{
	pfs_hold_write(tree, __func__);
	while (n--)
		pfs_feed_note(&tree->image, tree->image.root, PFS_COLUMN_MODE);
	pfs_hold_end(tree);
}

/* ---- questions; the tree is held ---- */

/* How few files of a range of sizes are found, and whether all of them are. */
static const char *ask_sizes(struct pfs_tree *of, bool *fine)
{
	struct pfs_predicate p = {.field = PFS_FIELD_SIZE, .low = rnd(SIZES)};
	struct pfs_slots found;
	const char *how;
	size_t n = 0;

	p.high = p.low + 50;
	(void)pfs_scan_estimate(of, &how, &p, 1);
	*fine = !pfs_scan_select(of, &found, &p, 1, NULL, NULL);
	for (uint32_t slot = 0; slot < of->image.end && *fine; slot++) {
		if (!pfs_image_is_live(&of->image, slot) || of->image.size[slot] < p.low ||
		    of->image.size[slot] > p.high)
			continue;
		*fine = n < found.n && found.slot[n] == slot;
		n++;
	}
	*fine = *fine && n == found.n;
	pfs_slots_finish(&found);
	return how;
}

static const char *ask_name(struct pfs_tree *of, unsigned i, bool *fine)
{
	struct pfs_predicate p = {.field = PFS_FIELD_NAME, .test = PFS_TEST_PREFIX};
	struct pfs_slots found;
	const char *how;
	char name[32];

	p.text = name;
	p.text_len = (size_t)snprintf(name, sizeof(name), "f%u", i);
	(void)pfs_scan_estimate(of, &how, &p, 1);
	*fine = !pfs_scan_select(of, &found, &p, 1, NULL, NULL);
	for (size_t k = 0; k < found.n && *fine; k++) {
		size_t len;
		const char *is =
			pfs_names_get(of->image.names, of->image.name[found.slot[k]], &len);

		*fine = len >= p.text_len && memcmp(is, name, p.text_len) == 0;
	}
	*fine = *fine && found.n > 0;
	pfs_slots_finish(&found);
	return how;
}

static bool is_by_index(const char *how)
{
	return strncmp(how, "index", 5) == 0;
}

/* Whether both were by indexes. */
static bool ask(struct pfs_tree *of, bool prepares)
{
	bool fine[2], by_index;

	if (prepares)
		pfs_scan_prepare(of);
	(void)pfs_scan_lock(of, __func__);
	by_index = is_by_index(ask_sizes(of, &fine[0]));
	by_index &= is_by_index(ask_name(of, rnd(FILES), &fine[1]));
	pfs_scan_unlock(of);
	assert_true(fine[0] && fine[1]);
	return by_index;
}

static void ask_until_indexed(void)
{
	for (unsigned i = 0; !ask(tree, true); i++)
		assert_true(i < 10);
}

/* ---- one thing at a time ---- */

/* Who fell behind looks at the one block that has changed; if all have, it is made anew. */
static void test_behind(void **state PFS_UNUSED)
{
	start();
	ask_until_indexed();
	for (unsigned round = 0; round < 3; round++) {
		change_modes(PFS_FEED_CHANGES - 100);
		for (unsigned i = 0; i < 100; i++)
			resize(FILES - 1 - i, rnd(SIZES));
		change_modes(round * 1000);
		assert_true(ask(tree, true));
		change_modes(round * 1000 + PFS_FEED_LOOKED);
		assert_true(ask(tree, true)); /* again by the ring */
	}
	for (unsigned i = 0; i < FILES; i += 1000)
		resize(i, rnd(SIZES));
	change_modes(PFS_FEED_CHANGES);
	assert_false(ask(tree, true));
	ask_until_indexed();
	assert_null(pfs_watch_check(tree));
	stop();
}

/* In one hold no more is read than a step; who asks on gets there. */
static void test_steps(void **state PFS_UNUSED)
{
	start();
	ask_until_indexed();
	change_modes(UINT64_C(5) * PFS_FEED_LOOKED);
	assert_false(ask(tree, false));
	for (unsigned i = 0; i < 5; i++)
		(void)ask(tree, false);
	assert_true(ask(tree, false));
	stop();
}

/* What no index is made of makes none look again. */
static void test_other_columns(void **state PFS_UNUSED)
{
	struct pfs_entry entry;

	start();
	ask_until_indexed();
	for (unsigned i = 0; i < FILES; i++)
		assert_int_equal(pfs_tree_setattr(tree, &entry, inos[i],
						  &(struct stat){.st_mode = 0600}, PFS_SET_MODE,
						  &temp_root),
				 0);
	assert_true(ask(tree, true)); /* so many changed sizes it would not bear */
	stop();
}

/* ---- random changes ---- */

static void change_one(void)
{
	unsigned i = rnd(FILES);
	char name[32], other[32];

	(void)snprintf(name, sizeof(name), "f%u", i);
	(void)snprintf(other, sizeof(other), "f%u", rnd(FILES));
	if (rnd(4)) {
		resize(i, rnd(SIZES));
	} else if (rnd(2)) {
		assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, name), 0);
		make(i);
	} else if (strcmp(name, other) != 0) { /* two names are exchanged */
		unsigned with = (unsigned)strtoul(other + 1, NULL, 10);
		uint64_t ino = inos[i];

		assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, name, PFS_ROOT_PRIME, other,
						 RENAME_EXCHANGE),
				 0);
		inos[i] = inos[with];
		inos[with] = ino;
	}
}

static void test_random(void **state PFS_UNUSED)
{
	const struct pfs_frozen_wish wish = {.columns = PFS_COLUMNS_ALL, .most = UINT64_MAX};
	unsigned indexed = 0, behind = 0, frozen = 0;

	start();
	for (unsigned step = 0; step < STEPS; step++) {
		const bool far = rnd(10) == 0;
		struct pfs_tree *still;

		for (unsigned n = rnd(20) ? rnd(20) : rnd(8000); n; n--)
			change_one();
		if (far)
			change_modes(PFS_FEED_CHANGES - rnd(20));
		if (rnd(10) == 0) {
			assert_int_equal(pfs_frozen_open(&still, tree, &wish), 0);
			change_one();
			frozen += ask(still, true);
			pfs_frozen_close(still);
		}
		if (ask(tree, rnd(4)))
			*(far ? &behind : &indexed) += 1;
		if (rnd(20) == 0)
			assert_null(pfs_watch_check(tree));
	}
	print_message("by indexes %u times, %u after the ring was over, %u frozen\n", indexed,
		      behind, frozen);
	assert_true(indexed > STEPS / 4 && behind > 0 && frozen > 5);
	stop();
}

/* ---- beside a writer ---- */

static atomic_bool is_over;

static void *read_on(void *arg)
{
	unsigned *wrong = arg;

	for (unsigned i = 0; i < 100 || !atomic_load(&is_over); i++) {
		const struct pfs_predicate p = {
			.field = PFS_FIELD_SIZE, .low = SIZES, .high = INT64_MAX};
		struct pfs_slots found;
		size_t n = 0;

		pfs_scan_prepare(tree);
		(void)pfs_scan_lock(tree, __func__);
		if (pfs_scan_select(tree, &found, &p, 1, NULL, NULL))
			++*wrong;
		for (uint32_t slot = 0; slot < tree->image.end; slot++)
			n += pfs_image_is_live(&tree->image, slot) &&
			     tree->image.size[slot] >= SIZES;
		*wrong += n != found.n;
		pfs_scan_unlock(tree);
		pfs_slots_finish(&found);
	}
	return NULL;
}

static void test_threads(void **state PFS_UNUSED)
{
	unsigned wrong[2] = {0};
	pthread_t readers[2];

	start();
	atomic_store(&is_over, false);
	for (size_t i = 0; i < PFS_COUNT(readers); i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_on, &wrong[i]), 0);
	for (unsigned i = 0; i < 4000; i++) {
		unsigned at = rnd(FILES);

		resize(at, SIZES + 1);
		change_one();
		resize(at, 5);
		if (i % 1000 == 999)
			change_modes(PFS_FEED_CHANGES);
	}
	atomic_store(&is_over, true);
	for (size_t i = 0; i < PFS_COUNT(readers); i++) {
		assert_int_equal(pthread_join(readers[i], NULL), 0);
		assert_int_equal(wrong[i], 0);
	}
	stop();
}

int main(void)
{
	const char *given = getenv("PFS_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_behind),	      cmocka_unit_test(test_steps),
		cmocka_unit_test(test_other_columns), cmocka_unit_test(test_random),
		cmocka_unit_test(test_threads),
	};

	random_state = seed = given ? strtoull(given, NULL, 10) : seed;
	print_message("seed %llu (PFS_SEED sets it)\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
