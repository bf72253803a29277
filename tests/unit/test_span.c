/* SPDX-License-Identifier: MIT */
/* Subtrees as ranges of slots, beside a naive walk after each of many random changes, and beside
 * the codes. PFS_LONG=1: 100,000 changes.  PFS_SEED: another seed. */
#include "tree_util.h"

#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/image/span.h"
#include "fs/image/span_layout.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/random.h"

#define FOLDERS 60u
#define FILES	20u

static uint64_t seed;
static uint64_t folders[FOLDERS];
static const struct pfs_tree_options options = {.no_atime = true, .engine = PFS_ENGINE_HOST};

/* Folders in folders, with files in each, so that slots are in pre-order at first. */
static int start(void **state)
{
	char name[32];

	(void)state;
	start_tree(&options);
	for (unsigned i = 0; i < FOLDERS; i++) {
		uint64_t parent = i % 4 ? folders[i - 1] : PFS_ROOT_PRIME;

		(void)snprintf(name, sizeof(name), "folder%02u", i);
		folders[i] = temp_tree_make(tree, parent, name, S_IFDIR | 0755);
		for (unsigned k = 0; k < FILES; k++) {
			(void)snprintf(name, sizeof(name), "a%02u", k);
			assert_true(temp_tree_make(tree, folders[i], name, S_IFREG | 0644) != 0);
		}
	}
	return 0;
}

/* ---- beside the way up ---- */

static bool is_under(const struct pfs_image *image, uint32_t top, uint32_t slot)
{
	while (slot != PFS_NO_SLOT && slot != top)
		slot = image->parent[slot];
	return slot == top;
}

/* How many ranges it has. */
static size_t check_directory(uint64_t ino)
{
	const struct pfs_image *image = &tree->image;
	struct pfs_slot_range *ranges PFS_FREE = NULL;
	uint32_t top = pfs_scan_slot_of(tree, ino), end;
	size_t n = 0, at = 0;

	if (top == PFS_NO_SLOT)
		return 0;
	assert_int_equal(pfs_span_ranges(tree, &ranges, &n, top), 0);
	end = pfs_span_end(tree, top);
	for (size_t i = 0; i < n; i++)
		assert_true(ranges[i].from < ranges[i].to &&
			    (i == 0 || ranges[i - 1].to < ranges[i].from));
	for (uint32_t slot = 0; slot < image->end; slot++) {
		bool wanted = pfs_image_is_live(image, slot) && is_under(image, top, slot);

		while (at < n && ranges[at].to <= slot)
			at++;
		if (pfs_image_is_live(image, slot)) {
			assert_int_equal(at < n && ranges[at].from <= slot, wanted);
			assert_true(!end || wanted == (slot >= top && slot < end));
		}
	}
	return n;
}

/* ---- changes ---- */

static void change(void)
{
	unsigned a = random_below(&seed, FOLDERS), b = random_below(&seed, FOLDERS);
	uint64_t from = folders[a], into = folders[b];
	char name[32], to[32];

	(void)snprintf(name, sizeof(name), "a%02u", random_below(&seed, FILES + 5));
	(void)snprintf(to, sizeof(to), "%c%02u", random_below(&seed, 2) ? 'a' : 'b',
		       random_below(&seed, FILES + 5));
	switch (random_below(&seed, 6)) {
	case 0:
		(void)!pfs_tree_unlink(tree, from, name);
		break;
	case 1:
		(void)!pfs_tree_rename(tree, from, name, into, to, 0);
		break;
	case 2:
		(void)temp_tree_make(tree, from, to, S_IFREG | 0644);
		break;
	case 3: /* with all that lies in it; who can tell where it is */
		for (unsigned i = 0; i <= FOLDERS; i++) {
			uint64_t parent = i < FOLDERS ? folders[i] : PFS_ROOT_PRIME;

			(void)snprintf(name, sizeof(name), "folder%02u", a);
			if (!pfs_tree_rename(tree, parent, name,
					     random_below(&seed, 4) ? into : PFS_ROOT_PRIME, name,
					     0))
				break;
		}
		break;
	case 4: /* an empty directory, which goes again some time */
		(void)snprintf(to, sizeof(to), "new%u", random_below(&seed, 9));
		if (!temp_tree_make(tree, from, to, S_IFDIR | 0755))
			(void)!pfs_tree_rmdir(tree, from, to);
		break;
	default:
		(void)!pfs_tree_rename(tree, from, name, from, to, 0);
	}
}

static uint64_t count(const uint64_t *inos, size_t n)
{
	const struct pfs_question question = {PFS_SUBTREE, inos, n};
	uint64_t found = 0;

	assert_int_equal(pfs_tree_count(tree, &found, &question), 0);
	return found;
}

static void test_random(void **state)
{
	const char *is_long = getenv("PFS_LONG");
	unsigned n = is_long && !strcmp(is_long, "1") ? 100000 : 3000;
	size_t most = 0, n_ranges;

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		uint64_t ino = folders[random_below(&seed, FOLDERS)];

		change();
		(void)pfs_scan_lock(tree, __func__);
		n_ranges = check_directory(ino);
		most = PFS_MAX(most, n_ranges);
		(void)check_directory(PFS_ROOT_PRIME);
		pfs_scan_unlock(tree);
		if (i % 100 == 0) { /* two at once are the codes' */
			const uint64_t twice[2] = {ino, ino};

			assert_int_equal(count(&ino, 1), count(twice, 2));
		}
		if (i % 1000 == 999)
			assert_int_equal(pfs_tree_sync(tree), 0); /* slots are given to others */
	}
	assert_true(most > 20);
}

/* A few changes, between two pieces of the pass. */
static int change_between(void *arg)
{
	unsigned *pieces = arg;

	pfs_scan_unlock(tree);
	for (unsigned i = random_below(&seed, 4); i > 0; i--)
		change();
	if (++*pieces % 8 == 0)
		assert_int_equal(pfs_tree_sync(tree), 0); /* slots are given to others */
	(void)pfs_scan_lock(tree, __func__);
	return 0;
}

static void test_changes_between(void **state)
{
	unsigned pieces;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(pfs_tree_sync(tree), 0);
		temp_tree_close(tree);
		tree = temp_tree_open_with(&temp, &options);
		pieces = 0;
		pfs_spans_set_piece(40);
		(void)pfs_scan_lock(tree, __func__);
		assert_int_equal(pfs_span_end(tree, pfs_scan_slot_of(tree, folders[0])),
				 0); /* not known yet */
		assert_int_equal(pfs_spans_prepare(tree, change_between, &pieces), 0);
		assert_true(pieces > 10);
		for (unsigned k = 0; k < FOLDERS; k++)
			(void)check_directory(folders[k]);
		(void)check_directory(PFS_ROOT_PRIME);
		pfs_scan_unlock(tree);
		pfs_spans_set_piece(PFS_SPAN_PIECE);
	}
}

/* What goes and comes back leaves the others' ranges alone. */
static void test_others_stay(void **state)
{
	uint32_t slot, end;
	struct pfs_slot_range *ranges = NULL;
	size_t n;

	(void)state;
	(void)pfs_scan_lock(tree, __func__);
	slot = pfs_scan_slot_of(tree, folders[8]);
	end = pfs_span_end(tree, slot);
	pfs_scan_unlock(tree);
	assert_int_equal(end, slot + 4 * (FILES + 1));
	assert_true(temp_tree_make(tree, folders[4], "new", S_IFREG | 0644) != 0);
	assert_int_equal(pfs_tree_rename(tree, folders[12], "folder13", folders[40], "folder13", 0),
			 0);
	assert_int_equal(pfs_tree_unlink(tree, folders[9], "a03"), 0);
	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_span_end(tree, slot), end); /* something in it went */
	assert_int_equal(pfs_span_end(tree, pfs_scan_slot_of(tree, folders[4])), 0);
	assert_int_equal(pfs_span_ranges(tree, &ranges, &n, pfs_scan_slot_of(tree, folders[4])), 0);
	assert_int_equal(n, 2); /* and the new file */
	free(ranges);
	ranges = NULL;
	assert_int_equal(pfs_span_ranges(tree, &ranges, &n, pfs_scan_slot_of(tree, folders[40])),
			 0);
	assert_int_equal(n, 2); /* and what moved, as one */
	free(ranges);
	pfs_scan_unlock(tree);
	assert_int_equal(count(&folders[40], 1), 4 * (FILES + 1) + 3 * (FILES + 1));
}

/* One that comes behind all that was laid out, and goes again. */
static void test_one_behind(void **state)
{
	(void)state;
	(void)check_directory(folders[1]);
	assert_true(temp_tree_make(tree, folders[1], "new", S_IFREG | 0644) != 0);
	assert_int_equal(pfs_span_end(tree, pfs_scan_slot_of(tree, folders[1])), 0);
	(void)check_directory(folders[1]);
	assert_int_equal(pfs_tree_unlink(tree, folders[1], "new"), 0);
	assert_int_not_equal(pfs_span_end(tree, pfs_scan_slot_of(tree, folders[1])), 0);
}

/* ---- few strays among many slots ---- */

#define SLOTS 70001u

/* The first stray from one slot on and before another, as a pass over all slots finds it. */
static void check_next(const struct pfs_span_layout *layout, const bool *are_strays, uint32_t from,
		       uint32_t to)
{
	uint32_t wanted = from, found = 0;

	while (wanted < to && wanted < SLOTS && !are_strays[wanted])
		wanted++;
	assert_int_equal(pfs_span_layout_next(layout, &found, from, to),
			 wanted < to && wanted < SLOTS);
	if (wanted < to && wanted < SLOTS)
		assert_int_equal(found, wanted);
}

static void test_few_strays(void **state)
{
	static bool are_strays[SLOTS];
	struct pfs_span_layout *layout;

	(void)state;
	assert_int_equal(pfs_span_layout_create(&layout, SLOTS), 0);
	for (unsigned i = 0; i < 400; i++) {
		uint32_t slot = random_below(&seed, SLOTS), from = random_below(&seed, SLOTS);

		if (i % 3 == 0 && pfs_span_layout_next(layout, &slot, slot, SLOTS)) {
			pfs_span_layout_gone(layout, slot);
			are_strays[slot] = false;
		} else if (i % 3) {
			(void)!pfs_span_layout_stray(layout, slot, i);
			are_strays[slot] = true;
		}
		assert_int_equal(pfs_span_layout_is_stray(layout, slot), are_strays[slot]);
		check_next(layout, are_strays, slot, slot + 1);
		check_next(layout, are_strays, from, SLOTS);
		check_next(layout, are_strays, from, UINT32_MAX);
		check_next(layout, are_strays, from, from + random_below(&seed, 10000));
		check_next(layout, are_strays, 0, SLOTS);
	}
	assert_true(pfs_span_layout_is_stray(layout, SLOTS));
	pfs_span_layout_free(layout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_others_stay, start, stop_tree),
		cmocka_unit_test_setup_teardown(test_one_behind, start, stop_tree),
		cmocka_unit_test_setup_teardown(test_random, start, stop_tree),
		cmocka_unit_test_setup_teardown(test_changes_between, start, stop_tree),
		cmocka_unit_test(test_few_strays),
	};

	const char *given = getenv("PFS_SEED");

	seed = given ? strtoull(given, NULL, 0) : 20261122;
	(void)printf("seed %llu (PFS_SEED sets it)\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
