/* SPDX-License-Identifier: MIT */
/* Hashes under a seed: numbers that follow each other in some regular way are spread over a table,
 * whatever the seed, and each process has a seed of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/random.h"
#include "tests/ref/random.h"

#define PLACES (UINT64_C(1) << 18)
#define SEEDS  20u
#define MOST   128u /* places that are looked at for a number */

static uint64_t number_of(unsigned kind, uint64_t i)
{
	switch (kind) {
	case 0:
		return i;
	case 1:
		return i << 32;
	case 2:
		return i / 1000 * (UINT64_C(1) << 40) + i % 1000;
	default:
		return i * i;
	}
}

/* Fills half of a table, and returns how many places were looked at for a number at the most. */
static unsigned most_probes(unsigned kind, uint64_t seed)
{
	static uint8_t taken[PLACES];
	unsigned most = 0;

	memset(taken, 0, sizeof(taken));
	for (uint64_t i = 0; i < PLACES / 2; i++) {
		uint64_t at = pfs_hash_number(number_of(kind, i), seed) % PLACES;
		unsigned probes = 1;

		for (; taken[at]; at = (at + 1) % PLACES)
			probes++;
		taken[at] = 1;
		most = probes > most ? probes : most;
	}
	return most;
}

static void regular_numbers(void **state)
{
	uint64_t seeds = 1;

	(void)state;
	for (unsigned i = 0; i < SEEDS; i++) {
		uint64_t seed = random_next(&seeds);

		for (unsigned kind = 0; kind < 4; kind++)
			assert_in_range(most_probes(kind, seed), 2, MOST);
	}
}

/* Each process draws a seed of its own. */
static void processes_differ(void **state)
{
	uint64_t seed;
	int ends[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	seed = pfs_random_seed();
	if (child == 0)
		_exit(write(ends[1], &seed, sizeof(seed)) != sizeof(seed));
	(void)close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(read(ends[0], &seed, sizeof(seed)), sizeof(seed));
	assert_int_not_equal(seed, pfs_random_seed());
	assert_int_equal(pfs_random_seed(), pfs_random_seed());
	(void)close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regular_numbers),
		cmocka_unit_test(processes_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
