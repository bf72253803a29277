/* SPDX-License-Identifier: MIT */
/* What viewers see, against a walk that asks every directory above a node. */
#include "scan_util.h"

#include "fs/image/hold.h"
#include "fs/nodes/visible_open.h"
#include "fs/tree/tree_impl.h"

#include <pthread.h>
#include <stdatomic.h>

static uint64_t seed = 20260921;
static struct temp_store temp;
static struct model model;
static unsigned in_part; /* how often somebody saw some nodes, and not others */
static const struct pfs_tree_options options = {.no_atime = true};

static bool naive_sees(size_t i, const struct pfs_viewer *viewer)
{
	while (i && viewer->uid) {
		i = model.seen[i].parent;
		if (!lets_in(&model.seen[i].attr, viewer))
			return false;
	}
	return true;
}

/* Totals of what is seen under the node: the nodes after it in pre-order that are deeper. */
static void check_totals(struct pfs_visible *visible, const struct pfs_viewer *viewer, size_t i)
{
	int64_t count = 0, size = 0, got[2];

	for (size_t k = i; k < model.n && (k == i || model.seen[k].depth > model.seen[i].depth);
	     k++) {
		if (!naive_sees(k, viewer))
			continue;
		count++;
		if (!S_ISDIR(model.seen[k].attr.st_mode))
			size += model.seen[k].attr.st_size;
	}
	assert_int_equal(pfs_visible_integers(visible, model.tree, &got[0], PFS_FIELD_SUBTREE_COUNT,
					      &model.seen[i].slot, 1),
			 0);
	assert_int_equal(pfs_visible_integers(visible, model.tree, &got[1], PFS_FIELD_SUBTREE_SIZE,
					      &model.seen[i].slot, 1),
			 0);
	assert_int_equal(got[0], count);
	assert_int_equal(got[1], size);
}

static void check_viewer(const struct pfs_viewer *viewer)
{
	struct pfs_visible *visible;
	struct pfs_predicate shown;
	uint64_t expected = 0;
	struct pfs_slots slots;

	if (rnd(2) ||
	    !pfs_open_is_little(model.tree)) /* what is made in many holds is what is made in one */
		assert_int_equal(pfs_visible_make(model.tree, viewer), 0);
	(void)pfs_scan_lock(model.tree, __func__);
	assert_int_equal(pfs_visible_get(&visible, model.tree, viewer), 0);
	for (size_t i = 0; i < model.n; i++) {
		bool sees = naive_sees(i, viewer);

		assert_int_equal(pfs_visible_has(visible, model.tree, model.seen[i].slot), sees);
		expected += sees;
		if (sees)
			check_totals(visible, viewer, i);
	}
	shown = pfs_visible_predicate(visible);
	assert_int_equal(pfs_scan_select(model.tree, &slots, &shown, 1, NULL, NULL), 0);
	assert_int_equal(slots.n, expected);
	pfs_slots_finish(&slots);
	in_part += expected > 1 && expected < model.n;
	pfs_scan_unlock(model.tree);
	pfs_visible_unref(visible);
}

/* More viewers than are remembered, some of them twice. */
static void check_viewers(void)
{
	for (int i = 0; i < 24; i++) {
		gid_t groups[2] = {rnd(4), rnd(4)};
		struct pfs_viewer viewer = {
			.uid = rnd(6),
			.gid = rnd(6),
			.groups = groups,
			.n_groups = rnd(3),
		};

		check_viewer(&viewer);
		check_viewer(&viewer);
	}
}

static void test_random_trees(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 8; i++) {
		random_state = seed + i;
		print_message("seed %llu\n", (unsigned long long)random_state);
		temp_store_create(&temp);
		model.tree = temp_tree_open_with(&temp, &options);
		random_tree(model.tree, 150);
		model_look(&model, model.tree);
		random_rights(&model);
		check_viewers();
		for (int round = 0; round < 4; round++) { /* what is remembered must go */
			random_changes(&model, 3);
			check_viewers();
			random_rights(&model);
			check_viewers();
		}
		model_forget(&model);
		temp_tree_close(model.tree);
		temp_store_remove(&temp);
	}
	print_message("%u viewers saw some nodes and not others\n", in_part);
	assert_true(in_part > 100);
}

/* ---- beside somebody who changes directories all the time ---- */

#define TOPS 20u
#define BELOW 30u

static _Atomic bool stop;
static uint64_t tops[TOPS];

static void change_one(unsigned i, bool *ok)
{
	uint64_t top = tops[i % TOPS], other = tops[i * 7 % TOPS];
	struct stat attr = {.st_mode = i % 3 ? 0755 : 0700};
	struct pfs_entry entry;
	char name[32];
	int error;

	(void)snprintf(name, sizeof(name), "d%u", i % BELOW);
	if (i % 5 == 0)
		error = pfs_tree_setattr(model.tree, &entry, top, &attr, PFS_SET_MODE, &temp_root);
	else if (i % 5 == 1)
		error = pfs_tree_rename(model.tree, top, name, other, "moved", 0);
	else if (i % 5 == 2)
		error = pfs_tree_rename(model.tree, other, "moved", top, name, 0);
	else if (i % 5 == 3)
		error = pfs_tree_make(model.tree, &entry, top, "newer", S_IFDIR | 0755, 0,
				      &temp_root);
	else
		error = pfs_tree_rmdir(model.tree, other, "newer");
	*ok &= !error || error == -ENOENT || error == -EEXIST || error == -ENOTEMPTY;
}

static void *change_directories(void *arg)
{
	bool ok = true;

	for (unsigned i = 0; !atomic_load(&stop) && ok; i++) {
		change_one(i, &ok);
		if (i % 16 == 0)
			(void)usleep(100);
	}
	return ok ? arg : NULL;
}

static bool naive_open(uint32_t slot, const struct pfs_viewer *viewer)
{
	const struct pfs_image *image = &model.tree->image;

	for (; slot != PFS_NO_SLOT; slot = image->parent[slot])
		if (!pfs_viewer_may(image, viewer, slot, R_OK | X_OK))
			return false;
	return true;
}

static void check_open(const struct pfs_open *open, const struct pfs_viewer *viewer)
{
	const struct pfs_image *image = &model.tree->image;

	assert_true(open->access == image->access);
	for (uint32_t slot = 0; slot < image->end; slot++)
		if (S_ISDIR(image->mode[slot]) && pfs_image_is_live(image, slot))
			assert_int_equal(open->bits[slot / 64] >> slot % 64 & 1,
					 naive_open(slot, viewer));
}

/* Found in pieces, and put right afterwards. *moved: how often directories changed in between. */
static void find_beside(const struct pfs_viewer *viewer, uint64_t *moved, unsigned *found)
{
	struct pfs_open open, now = {.bits = NULL};
	uint64_t access;
	int error;

	pfs_hold_read(model.tree, __func__);
	access = model.tree->image.access;
	error = pfs_open_find(&open, model.tree, viewer, true);
	assert_true(!error || error == -EAGAIN);
	*moved += !error && model.tree->image.access != access;
	*found += !error;
	if (!error)
		check_open(&open, viewer);
	(void)pfs_hold_pause(model.tree);
	if (!error && !pfs_open_copy(&now, model.tree, viewer, &open))
		check_open(&now, viewer);
	pfs_hold_end(model.tree);
	pfs_open_finish(&open);
	pfs_open_finish(&now);
}

static void test_beside_changes(void **state)
{
	const struct pfs_viewer viewer = {.uid = 1000, .gid = 1000};
	unsigned found = 0, rounds = getenv("PFS_TEST_SMALL") ? 50 : 400;
	uint64_t moved = 0;
	pthread_t thread;
	char name[32];

	(void)state;
	temp_store_create(&temp);
	model.tree = temp_tree_open_with(&temp, &options);
	for (unsigned i = 0; i < TOPS; i++) {
		(void)snprintf(name, sizeof(name), "top%u", i);
		tops[i] = temp_tree_make(model.tree, i % 3 ? tops[i / 3] : PFS_ROOT_PRIME, name,
					 S_IFDIR | 0755);
		for (unsigned j = 0; j < BELOW; j++) {
			(void)snprintf(name, sizeof(name), "d%u", j);
			(void)temp_tree_make(model.tree, tops[i], name,
					     S_IFDIR | (j % 5 ? 0755 : 0711));
		}
	}
	pfs_open_set_piece(64, 0);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, change_directories, (void *)&stop), 0);
	for (unsigned i = 0; i < rounds || !moved; i++)
		find_beside(&viewer, &moved, &found);
	pfs_open_set_piece(64, 8); /* more than may be followed */
	for (unsigned i = 0; i < rounds; i++)
		find_beside(&viewer, &moved, &found);
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, (void **)&state), 0);
	assert_non_null(state);
	pfs_open_set_piece(0, 0);
	print_message("%u of %u were found, %llu of them beside changes\n", found, 2 * rounds,
		      (unsigned long long)moved);
	temp_tree_close(model.tree);
	temp_store_remove(&temp);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_trees),
		cmocka_unit_test(test_beside_changes),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
