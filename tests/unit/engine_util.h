/* SPDX-License-Identifier: MIT */
/* tests/unit/engine_util.h - what the tests of the engine share: each runs on every engine, as one
 * case of a table made of ON_ALL, and is skipped, visibly, where there is no device. */
#ifndef PFS_TESTS_ENGINE_UTIL_H
#define PFS_TESTS_ENGINE_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "gpu/engine.h"
#include "tests/ref/compare.h"

static inline struct pfs_engine *open_or_skip(enum pfs_engine_kind kind)
{
	struct pfs_engine *engine = NULL;
	int error = pfs_engine_open(&engine, kind);

	if (error == -ENODEV) {
		print_message("no CUDA device: skipped\n");
		skip();
	}
	assert_int_equal(error, 0);
	return engine;
}

static inline enum pfs_engine_kind kind_of(void **state)
{
	return *(const enum pfs_engine_kind *)*state;
}

/* ---- random trees, random changes ---- */

static inline void random_change(struct pair *p)
{
	uint32_t node = pair_random_node(p, false), directory = pair_random_node(p, true);
	uint32_t free_slot;

	switch (pair_random(p, 6)) {
	case 0:
	case 1:
	case 2: /* in a slot that was used before, or a new one */
		for (free_slot = 0; free_slot < p->ref.n && p->ref.nodes[free_slot].live;)
			free_slot++;
		pair_add(p,
			 pair_random(p, 2) ? free_slot
					   : (uint32_t)p->ref.n + (uint32_t)pair_random(p, 40),
			 directory, pair_random(p, 2));
		break;
	case 3:
		if (node != 0 && pair_random(p, 3) == 0)
			pair_remove(p, node);
		break;
	default:
		if (node != 0)
			pair_move(p, node, directory);
	}
}

/* Deep if `reach` is small: the parent is one of the last `reach` directories. */
static inline void random_tree(struct pair *p, size_t n, size_t reach)
{
	uint32_t *directories = calloc(n + 1, sizeof(*directories));
	size_t n_directories = 1;

	assert_non_null(directories);
	ref_add(&p->ref, 0, REF_NONE, 2);
	for (uint32_t i = 1; i < n; i++) {
		size_t back = pair_random(p, PFS_MIN(reach, n_directories));
		bool directory = pair_random(p, 3) == 0 || reach == 1;

		ref_add(&p->ref, i, directories[n_directories - 1 - back],
			pair_prime(p, directory));
		if (directory)
			directories[n_directories++] = i;
	}
	free(directories);
	pair_load(p);
}

static inline uint64_t first_seed(void)
{
	const char *given = getenv("PFS_TEST_SEED");

	return given ? strtoull(given, NULL, 10) : 20261121;
}

/* ---- the table ---- */

static enum pfs_engine_kind engine_host = PFS_ENGINE_HOST, engine_cuda = PFS_ENGINE_CUDA;

#define ON(engine, test)                                                                           \
	{                                                                                          \
#test " (" #engine ")", test, NULL, NULL, &engine_##engine                         \
	}
#define ON_ALL(test) ON(host, test), ON(cuda, test)

/* argv[1], if there is one, is a pattern: only the tests that match it. */
#define RUN_ON_ALL(tests, argc, argv)                                                              \
	({                                                                                         \
		if ((argc) > 1)                                                                    \
			cmocka_set_test_filter((argv)[1]);                                         \
		cmocka_run_group_tests(tests, NULL, NULL);                                         \
	})

#endif
