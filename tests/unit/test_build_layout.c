/* SPDX-License-Identifier: MIT */
/* Trees of any shape are laid out as a build promises: random ones, a chain and a star. */
#include "build_util.h"

#include "tests/ref/random.h"

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	return random_below(&random_state, limit);
}

static int by_slot(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return x->slot < y->slot ? -1 : 1;
}

/* Slots are 0, 1, 2, ... in pre-order with siblings in byte order: each node's parent is on the
 * path of the node before it, and siblings ascend. */
static void check_pre_order(void)
{
	struct record *sorted = malloc(n_records * sizeof(*sorted));
	struct record **path = calloc(n_records, sizeof(struct record *));
	size_t depth = 0, i;

	(void)memcpy(sorted, records, n_records * sizeof(*sorted));
	qsort(sorted, n_records, sizeof(*sorted), by_slot);
	for (i = 0; i < n_records; i++) {
		struct record *last = NULL;

		assert_int_equal(sorted[i].slot, i);
		while (depth && path[depth - 1]->prime != sorted[i].parent)
			last = path[--depth];
		assert_true(i == 0 || depth > 0);
		assert_true(!last || strcmp(last->name, sorted[i].name) < 0);
		path[depth++] = &sorted[i];
	}
	free(sorted);
	free(path);
}

static void check_weights(void)
{
	size_t *weight = calloc(n_records, sizeof(*weight)), i, at;
	size_t last = SIZE_MAX;

	for (i = 0; i < n_records; i++)
		for (at = i; records[at].prime != PFS_ROOT_PRIME;) {
			at = (size_t)(by_prime(records[at].parent) - records);
			weight[at]++;
		}
	for (i = 1; i < n_records && records[i].prime <= UINT32_MAX; i++) {
		assert_true(S_ISDIR(records[i].mode));
		assert_true(weight[i] <= last);
		last = weight[i];
	}
	for (; i < n_records; i++)
		assert_false(S_ISDIR(records[i].mode));
	free(weight);
}

static void random_trees_are_laid_out_well(void **state PFS_UNUSED)
{
	random_state = 20240607;
	print_message("seed %llu\n", (unsigned long long)random_state);
	for (unsigned round = 0; round < 6; round++) {
		struct pfs_build *build = open_build(NULL);
		uint32_t n = 1 + below(3000), i;

		for (i = 0; i < n; i++) {
			char name[32];
			enum pfs_build_seen seen;
			uint32_t node, parent = below(2) ? below((uint32_t)pfs_build_count(build))
							 : PFS_BUILD_ROOT;
			size_t len = (size_t)snprintf(name, sizeof(name), "%s%x",
						      below(2) ? "common-prefix-" : "",
						      below(1 << (1 + below(16))));

			assert_int_equal(
				pfs_build_add(build, &node, &seen, parent, name, len, NULL), 0);
		}
		n = (uint32_t)pfs_build_count(build);
		complete(build);
		load();
		assert_int_equal(n_records, n);
		check_pre_order();
		check_weights();
		(void)unlink(test_path);
	}
}

static void chains_and_stars_are_no_trouble(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);
	uint32_t node = PFS_BUILD_ROOT, i;

	for (i = 0; i < 20000; i++)
		node = add(build, node, "d", NULL);
	for (i = 0; i < 30000; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%u", 30000 - i);
		(void)add(build, PFS_BUILD_ROOT, name, NULL);
	}
	complete(build);
	load();
	assert_int_equal(n_records, 50001);
	check_pre_order();
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup(function, fresh)
	const struct CMUnitTest tests[] = {
		TEST(random_trees_are_laid_out_well),
		TEST(chains_and_stars_are_no_trouble),
	};
	int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);

	free(records);
	return failed;
}
