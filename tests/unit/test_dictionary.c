/* SPDX-License-Identifier: MIT */
/* Arrays by code, which are made of all texts of a dictionary: the run is polled meanwhile, and
 * ends them at each of its polls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "gpu/host/dictionary.h"

#define N	    1000u
#define MOST	    64u /* texts between two polls */
#define LEN	    4u
#define INTERRUPTED (-EINTR)

static uint8_t bytes[N * LEN + 1];
static uint64_t offset[N + 1];
static const struct pfs_dictionary dictionary = {.bytes = bytes, .offset = offset, .n = N};

struct polls {
	unsigned n, last; /* last: the number of the one that ends the run */
	int64_t charged;
};

static int poll_run(void *context)
{
	struct polls *p = context;

	return ++p->n == p->last ? INTERRUPTED : 0;
}

static int charge(void *context, int64_t size)
{
	struct polls *p = context;

	p->charged += size;
	return 0;
}

static int fold(struct pfs_codes_map *map, const struct pfs_run *run)
{
	return pfs_codes_fold(map, run, &dictionary, PFS_NOCASE);
}

static int translate(struct pfs_codes_map *map, const struct pfs_run *run)
{
	return pfs_codes_translate(map, run, &dictionary, &dictionary, PFS_BINARY);
}

static void check(int (*make)(struct pfs_codes_map *map, const struct pfs_run *run),
		  unsigned passes)
{
	int error = INTERRUPTED;

	for (unsigned last = 1; error; last++) {
		struct polls polls = {.last = last};
		const struct pfs_run run = {.poll = poll_run, .charge = charge, .context = &polls};
		struct pfs_codes_map map;

		error = make(&map, &run);
		if (!error) {
			assert_true(polls.n >= passes * N / MOST);
			for (uint32_t i = 0; i < N; i++)
				assert_int_equal(map.of[i], i);
			pfs_codes_map_close(&run, &map);
		} else {
			assert_int_equal(error, INTERRUPTED);
			assert_null(map.made);
		}
		assert_int_equal(polls.charged, 0);
	}
}

static void polled(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		(void)snprintf((char *)bytes + i * LEN, LEN + 1, "%04u", i);
		offset[i + 1] = offset[i] + LEN;
	}
	check(fold, 1);
	check(translate, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(polled)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
