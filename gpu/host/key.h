/* SPDX-License-Identifier: MIT */
/* gpu/host/key.h - the keys of a group or join as one 64-bit number a tuple.
 *
 * Keys of integers and codes whose ranges multiply to less than 2^64 make a number that is exact:
 * tuples are equal when their numbers are.  Other keys make a hash, and the values are compared
 * where hashes meet. */
#ifndef PFS_GPU_HOST_KEY_H
#define PFS_GPU_HOST_KEY_H

#include "gpu/host/operators.h"
#include "gpu/host/positions.h"
#include "gpu/host/span.h"

struct pfs_key {
	struct pfs_cell_reader reader;
	enum pfs_collation collation;
	struct pfs_codes_map map; /* of codes; PFS_NO_ROW: equal to none */
	bool is_ranged;		  /* INTEGER and CODE, of mapped codes: all values are in */
	int64_t least;		  /* least.. */
	uint64_t span;		  /* least + span */
	bool by_text;		  /* CODE: hashed and compared by its bytes */
};

struct pfs_keys {
	struct pfs_key *key;
	size_t n;
	bool is_alone; /* said before they are opened: the numbers are compared with each other
			  only, not with those of a join's other side */
	bool exact;
	uint64_t domain; /* exact: all numbers are below it */
};

/* Returns true if the columns themselves say what range each key has, to group by it. */
bool pfs_keys_are_known(const struct pfs_source *source, const struct pfs_group_key *wanted,
			size_t n);
/* Opens the keys, and reads their ranges at the positions, which are not looked at if the ranges
 * are known; that of a single key that is alone may be that of its type. *keys is {0} on failure.
 */
PFS_MUST_CHECK int pfs_keys_open(struct pfs_keys *keys, struct pfs_host_operators *host,
				 const struct pfs_run *run, const struct pfs_source *source,
				 const struct pfs_positions *positions,
				 const struct pfs_group_key *wanted, size_t n);
void pfs_keys_close(const struct pfs_run *run, struct pfs_keys *keys);

/* Computes exact and domain from the ranges. */
void pfs_keys_multiply(struct pfs_keys *keys);

/* Reads the numbers of a span. NULLs are values. With `absent`, which has a bit for each tuple,
 * they are not: its bit is set where a key is NULL, or has a value or code that no tuple in range
 * has. */
void pfs_keys_read(const struct pfs_keys *keys, const struct pfs_span *span, uint64_t *out,
		   uint64_t *absent);

/* Returns true if the tuples' keys are the same; NULL and NULL are, too. */
bool pfs_keys_equal(const struct pfs_keys *a, uint32_t a_at, const struct pfs_keys *b,
		    uint32_t b_at);

#endif
