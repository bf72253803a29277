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
	struct pfs_codes_map map; /* of a CODE: which number each code gets; PFS_NO_ROW: it equals
				     no other value */
	bool is_ranged; /* all values, of INTEGER or of mapped CODE, are from `least` to `least` +
			   `span` */
	int64_t least;
	uint64_t span;
	bool by_text;	 /* a CODE is hashed and compared by its bytes */
	bool by_element; /* an exact key's numbers are made of elements' numbers, not of values */
};

struct pfs_keys {
	struct pfs_key *key;
	size_t n;
	uint64_t seed; /* of hashes, and for tables of the numbers */
	/* The numbers are compared with each other only, not with those of a join's other side. The
	 * caller sets this before it opens the keys. */
	bool is_alone;
	bool exact;	 /* tuples are equal if their numbers are */
	uint64_t domain; /* if exact, all numbers are below it */
};

/* Returns true if the columns themselves say what range each key has, to group by it. */
bool pfs_keys_are_known(const struct pfs_source *source, const struct pfs_group_key *wanted,
			size_t n);
/* Opens the keys, and finds the range of each by reading it at the positions, unless the column
 * itself says what its range is. A single key of `is_alone` keys may get the range of its type.
 * *keys is {0} on failure. */
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
