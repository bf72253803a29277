/* SPDX-License-Identifier: MIT */
/* What viewers see, against a walk that asks every directory above a node. */
#include "scan_util.h"

#include "fs/nodes/visible.h"

static uint64_t seed = 20260921;
static struct temp_store temp;
static struct model model;
static unsigned in_part; /* how often somebody saw some nodes, and not others */
static const struct pfs_tree_options options = {.no_atime = true};

static bool naive_lets_in(const struct stat *st, const struct pfs_viewer *viewer)
{
	bool member = st->st_gid == viewer->gid;
	mode_t needed = S_IROTH | S_IXOTH;

	for (size_t i = 0; i < viewer->n_groups; i++)
		member = member || viewer->groups[i] == st->st_gid;
	if (st->st_uid == viewer->uid)
		needed = S_IRUSR | S_IXUSR;
	else if (member)
		needed = S_IRGRP | S_IXGRP;
	return (st->st_mode & needed) == needed;
}

static bool naive_sees(size_t i, const struct pfs_viewer *viewer)
{
	while (i && viewer->uid) {
		i = model.seen[i].parent;
		if (!naive_lets_in(&model.seen[i].attr, viewer))
			return false;
	}
	return true;
}

/* Totals of what is seen under the node: the nodes after it in pre-order that are deeper. */
static void check_totals(struct pfs_visible *visible, const struct pfs_viewer *viewer, size_t i)
{
	int64_t count = 0, size = 0, got[2];

	for (size_t k = i; k < model.n && (k == i || model.seen[k].depth > model.seen[i].depth); k++) {
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

	if (rnd(2)) /* what is made in many holds is what is made in one */
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_trees),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
