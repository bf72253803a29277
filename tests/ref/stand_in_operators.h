/* SPDX-License-Identifier: MIT */
/* tests/ref/stand_in_operators.h - the host in place of a device: its operators that select, and
 * indexes that are sorted arrays. */
#ifndef PFS_TESTS_REF_STAND_IN_OPERATORS_H
#define PFS_TESTS_REF_STAND_IN_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct pfs_operator_backend;

struct stand_in_operators {
	bool refuses;	 /* it selects nothing: the host has to */
	bool loses_rows; /* what is selected lies on the device, and cannot be had from there */
	bool keeps;	 /* it computes, and has the vectors until they are fetched; */
	bool narrows;	 /* and leaves it to the host to sort what could be among the first */
	unsigned fetched; /* batches */
	unsigned vectors, tables; /* of the last batch that it kept */
	int more;	 /* what the next calls of pfs_table_mirror return */
	unsigned mirrored; /* calls of it, */
	size_t most;	   /* the most bytes that one of them might copy, */
	unsigned columns;  /* and of how many columns the last was */
	/* Of indexes and prefix trees: the call of this number from now on fails, 0: none does.
	 * With -EIO so do all that follow, as a lost device's. */
	unsigned fail_at;
	int failure;
	_Atomic unsigned indexed; /* calls of these */
};

extern struct stand_in_operators stand_in_operators;

PFS_MUST_CHECK int stand_in_operators_open(struct pfs_operator_backend **out);

/* For the families: counts a call; what it returns. */
PFS_MUST_CHECK int stand_in_operators_call(void);

struct pfs_index_family;
extern const struct pfs_index_family
	stand_in_index_family; /* stand_in_index.c; for values of either width */
struct pfs_prefix_family;
extern const struct pfs_prefix_family stand_in_prefix_family; /* stand_in_prefix.c */

#endif
