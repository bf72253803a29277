/* SPDX-License-Identifier: MIT */
/* tests/unit/totals_util.h - what the tests of totals share: a tree, and its totals against sums
 * over what a walk lists. */
#ifndef PFS_TESTS_TOTALS_UTIL_H
#define PFS_TESTS_TOTALS_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/nodes/scan.h"
#include "fs/image/totals.h"
#include "fs/image/watch.h"
#include "tests/ref/temp_store.h"

#define ROOT   PFS_ROOT_PRIME
#define SECOND INT64_C(1000000000)

static struct temp_store temp;
static struct pfs_tree *tree;
static uint64_t seed = 20261121;

static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

/* ---- what they must be ---- */

struct seen {
	uint64_t ino;
	uint32_t depth;
	struct pfs_totals totals; /* at first of the node alone */
};

struct listing {
	struct seen *nodes;
	size_t n, capacity;
};

static inline bool totals_are_right(struct pfs_tree *of)
{
	bool right;

	(void)pfs_scan_lock(of, __func__);
	right = !pfs_watch_check(of);
	pfs_scan_unlock(of);
	return right;
}

static inline int64_t nanoseconds(struct timespec time)
{
	int64_t value;

	if (!__builtin_mul_overflow(time.tv_sec, SECOND, &value) &&
	    !__builtin_add_overflow(value, time.tv_nsec, &value) && value != INT64_MIN)
		return value;
	return time.tv_sec < 0 ? INT64_MIN + 1 : INT64_MAX;
}

static inline int see(void *arg, const struct pfs_walk_node *node)
{
	struct listing *listing = arg;
	const struct stat *st = &node->entry.attr;

	PFS_TRY(pfs_grow(&listing->nodes, &listing->capacity, listing->n + 1,
			 sizeof(*listing->nodes)));
	listing->nodes[listing->n++] = (struct seen){
		.ino = st->st_ino,
		.depth = node->depth,
		.totals = {.count = 1,
			   .size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
			   .blocks = (uint64_t)st->st_blocks,
			   .mtime = nanoseconds(st->st_mtim)},
	};
	return 0;
}

static inline void assert_totals(uint64_t ino, const struct pfs_totals *expected)
{
	struct pfs_totals totals;

	assert_int_equal(pfs_tree_totals(tree, &totals, ino), 0);
	assert_int_equal(totals.count, expected->count);
	assert_int_equal(totals.size, expected->size);
	assert_int_equal(totals.blocks, expected->blocks);
	assert_int_equal(totals.mtime, expected->mtime);
}

/* Every node's totals are the sums over those that a walk finds below it. */
static inline void check_all(void)
{
	struct listing listing = {0};

	assert_int_equal(pfs_tree_walk(tree, ROOT, see, &listing), 0);
	for (size_t i = 0; i < listing.n; i++) {
		struct pfs_totals sum = listing.nodes[i].totals;

		for (size_t k = i + 1;
		     k < listing.n && listing.nodes[k].depth > listing.nodes[i].depth; k++) {
			const struct pfs_totals *below = &listing.nodes[k].totals;

			sum.count++;
			sum.size += below->size;
			sum.blocks += below->blocks;
			sum.mtime = PFS_MAX(sum.mtime, below->mtime);
		}
		assert_totals(listing.nodes[i].ino, &sum);
	}
	free(listing.nodes);
	assert_true(totals_are_right(tree));
}

/* ---- short ways to change something ---- */

static inline uint64_t make_in(uint64_t parent, const char *name, mode_t mode)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_make(tree, &entry, parent, name, mode, 0, &temp_root), 0);
	return entry.attr.st_ino;
}

static inline void set_mtime(uint64_t ino, int64_t sec, int64_t nsec)
{
	struct stat attr = {.st_mtim = {.tv_sec = sec, .tv_nsec = nsec}};
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr, PFS_SET_MTIME, &temp_root), 0);
}

static inline void open_new(void)
{
	temp_store_create(&temp);
	tree = temp_tree_open(&temp);
}

static inline void end(void)
{
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
}

static inline void take_seed(int argc, char **argv)
{
	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	print_message("seed %llu\n", (unsigned long long)seed);
}

#endif
