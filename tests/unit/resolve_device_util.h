/* SPDX-License-Identifier: MIT */
/* tests/unit/resolve_device_util.h - a tree whose paths a device resolves, or a stand-in for one. A
 * test that includes it has pfs_cuda_resident_open wrapped (tests/wrap.mk). */
#ifndef PFS_TESTS_UNIT_RESOLVE_DEVICE_UTIL_H
#define PFS_TESTS_UNIT_RESOLVE_DEVICE_UTIL_H

#include "resolve_util.h"

#include "fs/image/device_lookup.h"
#include "tests/ref/stand_in_resident.h"

#define WAIT_MS 20000

static uint64_t seed = 20261126;
static const struct pfs_tree_options options = {.engine = PFS_ENGINE_CUDA, .no_atime = true};
static bool is_stand_in;

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __wrap_pfs_cuda_resident_open(struct pfs_resident_backend **out);
int __real_pfs_cuda_resident_open(struct pfs_resident_backend **out);
int __wrap_pfs_cuda_resident_open(struct pfs_resident_backend **out)
{
	return is_stand_in ? stand_in_resident_open(out) : __real_pfs_cuda_resident_open(out);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static uint64_t count(bool on_device)
{
	struct pfs_device_lookup_stats stats;

	pfs_device_lookup_stats(model.tree, &stats);
	return (on_device ? stats.device : stats.host)[PFS_QUESTION_PATH].n;
}

/* Asks until the device has all of the tree. */
static bool is_on_device(unsigned most_ms)
{
	const struct pfs_path_text path = {"/", 1};
	const struct pfs_resolve_from from = {0};
	uint64_t before = count(true), ino;

	for (unsigned ms = 0; ms < most_ms && count(true) == before; ms++) {
		assert_int_equal(pfs_tree_resolve_many(model.tree, &ino, &path, 1, &from), 0);
		assert_int_equal(ino, PFS_ROOT_PRIME);
		(void)usleep(1000);
	}
	return count(true) > before;
}

static void wait_for_device(void)
{
	assert_true(is_on_device(WAIT_MS));
}

/* cmocka's state is not NULL for a stand-in. */
static void open_tree(void **state)
{
	is_stand_in = *state != NULL;
	if (!is_stand_in && access("/dev/nvidiactl", F_OK))
		skip();
	random_state = seed;
	print_message("seed %llu\n", (unsigned long long)seed);
	temp_store_create(&temp);
	model.tree = temp_tree_open_with(&temp, &options);
}

#define ON_BOTH(test)                                                                              \
	{#test " (stand-in)", test, NULL, NULL, (void *)"stand-in"},                               \
	{                                                                                          \
#test " (cuda)", test, NULL, NULL, NULL                                            \
	}

#endif
