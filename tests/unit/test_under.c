/* SPDX-License-Identifier: MIT */
/* Whether a node lies under another, by divisibility: against a walk, at every depth and length of
 * code; and rename, which must never make a circle. */
#include "tree_util.h"

#include <pthread.h>
#include <stdatomic.h>

#include "fs/image/image.h"
#include "fs/image/path.h"
#include "fs/tree/tree_impl.h"

static uint64_t make(uint64_t parent, const char *name, mode_t mode)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_make(tree, &entry, parent, name, mode, 0, &temp_root), 0);
	return entry.attr.st_ino;
}

/* As the tree says; and it says what a walk finds. */
static bool is_under(uint64_t ino, uint64_t top)
{
	uint32_t slot, top_slot;
	bool under;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	top_slot = pfs_image_slot(tree, top);
	under = pfs_image_is_under(tree, slot, top_slot);
	while (slot != PFS_NO_SLOT && slot != top_slot)
		slot = tree->image.parent[slot];
	pfs_hold_end(tree);
	assert_int_equal(under, slot == top_slot);
	return under;
}

static uint32_t bits_of(uint64_t ino)
{
	uint32_t bits = 0;

	pfs_hold_read(tree, __func__);
	assert_int_equal(pfs_image_code_bits(tree, &bits, pfs_image_slot(tree, ino)), 0);
	pfs_hold_end(tree);
	return bits;
}

static uint32_t random_below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % n;
}

static void test_every_pair(void **state)
{
	enum { NODES = 300 };
	uint64_t inos[NODES] = {PFS_ROOT_PRIME}, directories[NODES] = {PFS_ROOT_PRIME};
	uint64_t seed = 20261121;
	uint32_t n_directories = 1;
	char name[16];

	(void)state;
	for (uint32_t i = 1; i < NODES; i++) {
		bool directory = random_below(&seed, 2);
		uint64_t parent = directories[random_below(&seed, n_directories)];

		(void)snprintf(name, sizeof(name), "%u", i);
		inos[i] = make(parent, name, directory ? S_IFDIR | 0755 : S_IFREG | 0644);
		if (directory)
			directories[n_directories++] = inos[i];
	}
	for (uint32_t a = 0; a < NODES; a++)
		for (uint32_t b = 0; b < NODES; b++)
			(void)is_under(inos[a], inos[b]);
}

/* A chain whose code takes several parts; beside each link a directory that is on no path.  Looked
 * for from every depth where a part may end, and from others. */
static void test_long_codes(void **state)
{
	enum { DEPTH = 1200 };
	uint64_t chain[DEPTH] = {PFS_ROOT_PRIME}, beside[DEPTH] = {PFS_ROOT_PRIME};
	unsigned parts = 0;

	(void)state;
	for (unsigned i = 1; i < DEPTH; i++) {
		chain[i] = make(chain[i - 1], "d", S_IFDIR | 0755);
		beside[i] = make(chain[i - 1], "e", S_IFDIR | 0755);
	}
	for (unsigned from = 1; from < DEPTH; from++) {
		uint32_t bits = bits_of(chain[from]);

		if (bits % 4096 > 60 && bits % 4096 < 4036 && from % 61)
			continue;
		parts += bits % 4096 <= 60;
		for (unsigned top = 0; top < DEPTH;
		     top += top + 9 < from || top > from + 9 ? 7 : 1) {
			assert_int_equal(is_under(chain[from], chain[top]), top <= from);
			assert_int_equal(is_under(chain[from], beside[top]), top == 0);
			assert_int_equal(is_under(beside[from], chain[top]), top < from);
		}
	}
	assert_true(parts >= 3);
}

static void test_deep_renames(void **state)
{
	enum { DEPTH = 900 };
	uint64_t chain[DEPTH] = {PFS_ROOT_PRIME}, other;

	(void)state;
	for (unsigned i = 1; i < DEPTH; i++)
		chain[i] = make(chain[i - 1], "d", S_IFDIR | 0755);
	other = make(PFS_ROOT_PRIME, "other", S_IFDIR | 0755);
	(void)make(other, "x", S_IFDIR | 0755);
	for (unsigned i = 1; i < DEPTH; i += 7) {
		assert_int_equal(pfs_tree_rename(tree, chain[i - 1], "d", chain[DEPTH - 1], "x", 0),
				 -EINVAL);
		assert_int_equal(pfs_tree_rename(tree, chain[i - 1], "d", chain[i], "x", 0),
				 -EINVAL);
		if (i + 2 < DEPTH) {
			assert_int_equal(pfs_tree_rename(tree, chain[i - 1], "d", chain[i + 1], "d",
							 RENAME_EXCHANGE),
					 -EINVAL);
			assert_int_equal(pfs_tree_rename(tree, chain[i + 1], "d", chain[i - 1], "d",
							 RENAME_EXCHANGE),
					 -EINVAL);
		}
	}
	/* The half that is cut off no longer has the other above it. */
	assert_int_equal(pfs_tree_rename(tree, chain[449], "d", other, "half", 0), 0);
	assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, "d", chain[DEPTH - 1], "top", 0), 0);
	assert_int_equal(pfs_tree_rename(tree, other, "half", chain[449], "d", 0), -EINVAL);
	assert_true(is_under(chain[1], chain[DEPTH - 1]));
	assert_true(is_under(chain[449], chain[450]));
}

/* ---- no circles, whoever renames ---- */

enum { PLACES = 12, THREADS = 4, RENAMES = 20000 };

static uint64_t places[PLACES];
static _Atomic unsigned done, refused;

static int find_parent(uint64_t *parent, uint64_t ino)
{
	struct pfs_entry entry;
	int error = pfs_tree_lookup(tree, &entry, ino, "..");

	if (error)
		return error;
	*parent = entry.attr.st_ino;
	pfs_tree_forget(tree, *parent, 1);
	return 0;
}

/* Each directory has a name of its own, so that none replaces another. */
static void *rename_at_random(void *arg)
{
	uint64_t seed = *(const uint64_t *)arg, parent;
	char name[16];

	for (unsigned i = 0; i < RENAMES; i++) {
		uint32_t a = random_below(&seed, PLACES), b = random_below(&seed, PLACES);
		uint64_t to = random_below(&seed, 5) ? places[b] : PFS_ROOT_PRIME;
		int error;

		(void)snprintf(name, sizeof(name), "%u", a);
		if (find_parent(&parent, places[a]))
			continue;
		error = pfs_tree_rename(tree, parent, name, to, name, 0);
		if (error == 0)
			atomic_fetch_add(&done, 1);
		else if (error == -EINVAL)
			atomic_fetch_add(&refused, 1);
	}
	return NULL;
}

static int count(void *arg, const struct pfs_walk_node *node)
{
	(void)node;
	++*(unsigned *)arg;
	return 0;
}

static void test_no_circles(void **state)
{
	pthread_t threads[THREADS];
	uint64_t seeds[THREADS];
	unsigned reached = 0;
	char name[16];

	(void)state;
	for (unsigned i = 0; i < PLACES; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		places[i] = make(PFS_ROOT_PRIME, name, S_IFDIR | 0755);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		seeds[i] = i + 1;
		assert_int_equal(pthread_create(&threads[i], NULL, rename_at_random, &seeds[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(pfs_tree_walk(tree, PFS_ROOT_PRIME, count, &reached), 0);
	assert_int_equal(reached, PLACES + 1); /* what lies in a circle cannot be reached */
	assert_true(done > 1000 && refused > 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_tree, stop_tree)
	const struct CMUnitTest tests[] = {
		TEST(test_every_pair),
		TEST(test_long_codes),
		TEST(test_deep_renames),
		TEST(test_no_circles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
