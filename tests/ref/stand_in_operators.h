/* SPDX-License-Identifier: MIT */
/* tests/ref/stand_in_operators.h - the host's operators in place of a device's: those that select. */
#ifndef PFS_TESTS_REF_STAND_IN_OPERATORS_H
#define PFS_TESTS_REF_STAND_IN_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct pfs_operator_backend;

struct stand_in_operators {
	bool loses_rows; /* what is selected lies on the device, and cannot be had from there */
	int more;	 /* what the next calls of pfs_table_mirror return */
	unsigned mirrored; /* calls of it, */
	size_t most;	   /* the most bytes that one of them might copy, */
	unsigned columns;  /* and of how many columns the last was */
};

extern struct stand_in_operators stand_in_operators;

PFS_MUST_CHECK int stand_in_operators_open(struct pfs_operator_backend **out);

#endif
