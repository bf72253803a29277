/* SPDX-License-Identifier: MIT */
/* fs/build/build_impl.h - a build in memory, as the files build*.c share it. Nobody else includes
 * it.
 *
 * There is one array a column, indexed by node. Node 0 is the root. With an existing store that
 * store's nodes come first, numbered in order of primes; PFS_BUILD_ROOT then stands for the node
 * `at`. */
#ifndef PFS_FS_BUILD_BUILD_IMPL_H
#define PFS_FS_BUILD_BUILD_IMPL_H

#include "base/pool.h"
#include "fs/build/build.h"

enum pfs_build_state {
	BUILD_DIRECTORY = 1, /* by its attributes or by its children */
	BUILD_PARENT = 2,    /* has children */
	BUILD_SPECIAL = 4,   /* neither regular nor a directory */
	BUILD_ATTR = 8,	     /* has an entry in attr */
	BUILD_FIXED = 16,    /* has a prime above 2^32 */
	BUILD_CHANGED = 32,  /* was in the store before, its record has to be written again */
	BUILD_QUERY = 64,    /* was added as ".query" */
	BUILD_GROWN = 128,   /* was in the store before, and has got children */
};

struct pfs_build_attr {
	int64_t size; /* devices: rdev */
	int64_t blocks;
	int64_t sec[3]; /* atime, mtime, ctime */
	uint32_t nsec[3];
	uint32_t uid, gid;
	uint16_t mode;
};

struct pfs_build_target {
	uint32_t node;
	uint32_t len;
	uint64_t offset; /* in the heap */
};

struct pfs_build_fixed {
	uint64_t prime;
	uint32_t node; /* whose prime is another one if it has been unfixed since */
};

struct pfs_build_primes {
	uint64_t *list; /* primesieve's */
	size_t next, n;
	uint64_t span; /* how many numbers to reserve next */
};

struct pfs_build {
	struct pfs_build_options options;
	struct pfs_store *store;
	char *path;
	char *temporary; /* NULL with an existing store */
	bool finished;	 /* every node has its prime */

	size_t count, capacity; /* nodes */
	size_t n_stored;	/* of which the first came from the store */
	uint32_t at;		/* what PFS_BUILD_ROOT stands for */
	bool into_empty;	/* it was in the store before, and nothing lay in it */
	uint32_t *parent;
	uint64_t *name;	 /* offset in the heap << 8 | length */
	uint8_t *state;	 /* enum pfs_build_state */
	uint8_t *flags;	 /* enum pfs_node_flag */
	uint64_t *prime; /* NULL until the first is known */
	size_t prime_capacity;
	struct pfs_build_attr *attr; /* NULL until there are any; its end grows when needed */
	size_t attr_capacity;

	char *heap; /* names and targets */
	size_t heap_size, heap_capacity;
	struct pfs_build_target *targets; /* sorted by finish() */
	size_t n_targets, targets_capacity;

	uint64_t *table;   /* name hash << 32 | node, 0: empty */
	size_t table_size; /* a power of 2 */
	uint64_t seed;

	struct pfs_build_fixed *fixed; /* in order of primes */
	size_t n_fixed, fixed_capacity;
	struct pfs_build_primes primes[2]; /* by enum pfs_prime_kind */

	uint64_t done; /* records written */
	struct pfs_build_report report;
};

static inline uint32_t pfs_build_node(const struct pfs_build *build, uint32_t node)
{
	return node == PFS_BUILD_ROOT ? build->at : node;
}

/* Appends a node without looking for its name or checking it. */
PFS_MUST_CHECK int pfs_build_append(struct pfs_build *build, uint32_t *node, uint32_t parent,
				    const void *name, size_t name_len);
/* Enters all nodes but the root into the table of names. */
PFS_MUST_CHECK int pfs_build_index(struct pfs_build *build);
/* Makes the column of primes, for all nodes. */
PFS_MUST_CHECK int pfs_build_need_primes(struct pfs_build *build);

/* Makes a name, which the caller frees, for a file that becomes the store: STORE.part-PID-DIGITS,
 * which nobody else can have used. Removes such files of processes that are gone. */
PFS_MUST_CHECK int pfs_build_name_part(char **out, const char *store);

/* build_load.c: Loads the nodes of an existing store and finds build->at. */
PFS_MUST_CHECK int pfs_build_load(struct pfs_build *build);

/* build_primes.c: Gets the next unused prime. expected: how many will be wanted from now on, this
 * one included. */
PFS_MUST_CHECK int pfs_build_next_prime(struct pfs_build *build, uint64_t *prime,
					enum pfs_prime_kind kind, uint64_t expected);
void pfs_build_free_primes(struct pfs_build *build);

/* build_order.c: Writes the nodes in pre-order, children in byte order of their names, into
 * `order`, which has room for all; weight[node] becomes the number of its descendants. */
PFS_MUST_CHECK int pfs_build_order(const struct pfs_build *build, struct pfs_pool *pool,
				   uint32_t *order, uint32_t *weight);

/* build_records.c: Writes the records of n nodes in this order, which is that of their primes, and
 * tells of each. slot is by node. */
PFS_MUST_CHECK int pfs_build_write(struct pfs_build *build, struct pfs_pool *pool,
				   const uint32_t *nodes, size_t n, const uint32_t *slot);
/* Calls options.written for the node. */
PFS_MUST_CHECK int pfs_build_tell(struct pfs_build *build, uint32_t node, uint64_t prime);

#endif
