/* SPDX-License-Identifier: MIT */
/* Primes for new nodes.  Numbers come from the store in ranges; the committer reserves a range in
 * the group that it is writing anyway and sieves it, and only when that group is committed are its
 * primes given out.  Ranges start small and double while they are used up, so that a mount that
 * creates little wastes little. */
#include "fs/image/primes.h"

#include <inttypes.h>
#include <primesieve.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fs/tree/tree_impl.h"

#define KINDS 2

struct range {
	uint64_t *primes; /* primesieve's memory */
	size_t n, next;
};

struct kind {
	struct range current, ready, fetching;
	uint64_t numbers; /* how many the next range takes */
	bool wanted; /* somebody asked */
	bool exhausted; /* the store has no more */
};

struct pfs_primes {
	pthread_mutex_t lock;
	struct kind kinds[KINDS]; /* by enum pfs_prime_kind; protected by lock */
};

/* Small numbers are scarce, so that directories get the next range when half of one is used up; the
 * others have one to spare always, for files come fast. */
static const struct {
	uint64_t first_numbers, most_numbers;
	bool spare;
} sizes[KINDS] = {
	[PFS_PRIME_DIRECTORY] = {UINT64_C(1) << 12, UINT64_C(1) << 17, false},
	[PFS_PRIME_OTHER] = {UINT64_C(1) << 20, UINT64_C(1) << 23, true},
};

int pfs_primes_create(struct pfs_tree *tree)
{
	struct pfs_primes *primes = calloc(1, sizeof(*primes));

	if (!primes)
		return -ENOMEM;
	(void)pthread_mutex_init(&primes->lock, NULL);
	for (int kind = 0; kind < KINDS; kind++)
		primes->kinds[kind].numbers = sizes[kind].first_numbers;
	tree->primes = primes;
	return 0;
}

static void release(struct range *range)
{
	if (range->primes)
		primesieve_free(range->primes);
	*range = (struct range){0};
}

void pfs_primes_destroy(struct pfs_tree *tree)
{
	if (!tree->primes)
		return;
	for (int kind = 0; kind < KINDS; kind++) {
		release(&tree->primes->kinds[kind].current);
		release(&tree->primes->kinds[kind].ready);
		release(&tree->primes->kinds[kind].fetching);
	}
	(void)pthread_mutex_destroy(&tree->primes->lock);
	free(tree->primes);
	tree->primes = NULL;
}

int pfs_primes_next(struct pfs_tree *tree, uint64_t *prime, enum pfs_prime_kind which)
{
	struct kind *kind = &tree->primes->kinds[which];
	PFS_LOCKED(&tree->primes->lock);

	kind->wanted = true;
	if (kind->current.next == kind->current.n) {
		release(&kind->current);
		kind->current = kind->ready;
		kind->ready = (struct range){0};
	}
	if (kind->current.next == kind->current.n)
		return kind->exhausted ? -ENOSPC : -EAGAIN;
	*prime = kind->current.primes[kind->current.next++];
	return 0;
}

void pfs_primes_want(struct pfs_tree *tree, enum pfs_prime_kind kind)
{
	PFS_LOCKED(&tree->primes->lock);

	tree->primes->kinds[kind].wanted = true;
}

static bool is_low(const struct pfs_primes *primes, int which)
{
	const struct kind *kind = &primes->kinds[which];

	return kind->wanted && !kind->exhausted && !kind->ready.n && !kind->fetching.n &&
	       (sizes[which].spare || kind->current.next >= kind->current.n / 2);
}

bool pfs_primes_low(struct pfs_tree *tree)
{
	PFS_LOCKED(&tree->primes->lock);

	for (int kind = 0; kind < KINDS; kind++)
		if (is_low(tree->primes, kind))
			return true;
	return false;
}

/* Reserves numbers until there is a prime among them. */
static int fetch(struct pfs_tree *tree, struct range *out, enum pfs_prime_kind which,
		 uint64_t numbers)
{
	while (!out->n) {
		uint64_t first, end;

		PFS_TRY(pfs_store_reserve(tree->store, &first, &end, which, numbers));
		release(out);
		errno = 0;
		out->primes = primesieve_generate_primes(first, end - 1, &out->n, UINT64_PRIMES);
		if (errno == EDOM) {
			pfs_error("cannot sieve primes from %" PRIu64 " on", first);
			return -ENOMEM;
		}
	}
	return 0;
}

int pfs_primes_fetch(struct pfs_tree *tree)
{
	for (int which = 0; which < KINDS; which++) {
		struct kind *kind = &tree->primes->kinds[which];
		struct range range = {0};
		bool low;
		uint64_t numbers;
		int error;

		{
			PFS_LOCKED(&tree->primes->lock);
			low = is_low(tree->primes, which);
			numbers = kind->numbers;
		}
		if (!low)
			continue;
		error = fetch(tree, &range, which, numbers);
		if (error && error != -ENOSPC) {
			release(&range);
			return error;
		}
		{
			PFS_LOCKED(&tree->primes->lock);
			kind->exhausted = error == -ENOSPC;
			kind->fetching = range;
		}
		if (error)
			pfs_error("no primes left for new %s", which ? "files" : "directories");
	}
	return 0;
}

void pfs_primes_fetched(struct pfs_tree *tree, bool committed)
{
	PFS_LOCKED(&tree->primes->lock);

	for (int which = 0; which < KINDS; which++) {
		struct kind *kind = &tree->primes->kinds[which];

		if (!kind->fetching.n)
			continue;
		if (committed) {
			kind->ready = kind->fetching;
			kind->fetching = (struct range){0};
			kind->numbers = PFS_MIN(kind->numbers * 2, sizes[which].most_numbers);
		} else {
			release(&kind->fetching);
		}
	}
}
