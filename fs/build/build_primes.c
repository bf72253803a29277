/* SPDX-License-Identifier: MIT */
/* Primes for many nodes: ranges from the store, sieved by primesieve. */
#include "fs/build/build_impl.h"

#include <math.h>
#include <primesieve.h>

#include "base/checked.h"
#include "base/log.h"

#define SPAN_MIN (UINT64_C(1) << 13) /* about 370 primes above 2^32 */
#define SPAN_MAX (UINT64_C(1) << 24) /* about 760,000 primes, 6 MB */

/* Numbers that hold about `expected` primes from `first` on. */
static uint64_t span_for(uint64_t first, uint64_t expected)
{
	double gap = log((double)first + 24 * (double)expected + 2);

	expected = PFS_MIN(expected, SPAN_MAX);
	return (uint64_t)((double)expected * gap) + 16;
}

static void clear(struct pfs_build_primes *primes)
{
	primesieve_free(primes->list);
	primes->list = NULL;
	primes->next = primes->n = 0;
}

static int refill(struct pfs_build *build, struct pfs_build_primes *primes,
		  enum pfs_prime_kind kind, uint64_t expected)
{
	uint64_t first, end, span;
	int error;

	clear(primes);
	error = pfs_store_reserved(build->store, &first, kind);
	if (error)
		return error;
	/* Asks for what finish() needs, or in growing steps for single nodes. */
	span = expected > 1 ? span_for(first, expected) : primes->span;
	span = PFS_MIN(PFS_MAX(span, expected > 1 ? 16 : SPAN_MIN), SPAN_MAX);
	primes->span = span * 2;
	error = pfs_store_reserve(build->store, &first, &end, kind, span);
	if (error)
		return error;
	errno = 0;
	primes->list = primesieve_generate_primes(first, end - 1, &primes->n, UINT64_PRIMES);
	if (errno == EDOM) {
		primes->n = 0;
		pfs_error("cannot sieve primes from %llu on", (unsigned long long)first);
		return -ENOMEM;
	}
	return 0;
}

int pfs_build_next_prime(struct pfs_build *build, uint64_t *prime, enum pfs_prime_kind kind,
			 uint64_t expected)
{
	struct pfs_build_primes *primes = &build->primes[kind];

	while (primes->next == primes->n) {
		int error = refill(build, primes, kind, expected);

		if (error)
			return error;
	}
	*prime = primes->list[primes->next++];
	return 0;
}

void pfs_build_free_primes(struct pfs_build *build)
{
	clear(&build->primes[PFS_PRIME_DIRECTORY]);
	clear(&build->primes[PFS_PRIME_OTHER]);
}
