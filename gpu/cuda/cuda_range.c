/* SPDX-License-Identifier: MIT */
#include "gpu/cuda/cuda_range.h"

#include <math.h>

#include "gpu/cuda/relation_kernels.h"

static const struct pfs_range nothing = {1, 0}, everything = {INT64_MIN, INT64_MAX};

/* The integers that stand to the real as op says. */
static struct pfs_range integers_by_real(enum pfs_op op, double x)
{
	double below = floor(x), above = ceil(x);
	struct pfs_range r = everything;
	bool is_whole = below == x;

	if (op == PFS_OP_EQ) {
		if (!is_whole || x < -0x1p63 || x >= 0x1p63)
			return nothing;
		return (struct pfs_range){(int64_t)x, (int64_t)x};
	}
	if (op == PFS_OP_LT || op == PFS_OP_LE) {
		if (x >= 0x1p63)
			return everything;
		if (x < -0x1p63)
			return nothing;
		r.high = (int64_t)below;
		if (op == PFS_OP_LT && is_whole) {
			if (r.high == INT64_MIN)
				return nothing;
			r.high--;
		}
		return r;
	}
	if (x < -0x1p63)
		return everything;
	if (x >= 0x1p63)
		return nothing;
	if (above >= 0x1p63)
		return nothing;
	r.low = (int64_t)above;
	if (op == PFS_OP_GT && is_whole) {
		if (r.low == INT64_MAX)
			return nothing;
		r.low++;
	}
	return r;
}

/* All numbers in an order, between which x lies. */
static struct pfs_range by_order(enum pfs_op op, int64_t x)
{
	struct pfs_range r = everything;

	switch (op) {
	case PFS_OP_EQ:
		return (struct pfs_range){x, x};
	case PFS_OP_LT:
		r.high = x - 1;
		return x == INT64_MIN ? nothing : r;
	case PFS_OP_LE:
		r.high = x;
		return r;
	case PFS_OP_GT:
		r.low = x + 1;
		return x == INT64_MAX ? nothing : r;
	default:
		r.low = x;
		return r;
	}
}

/* The reals, in their order, that stand to the integer as op says. */
static struct pfs_range reals_by_integer(enum pfs_op op, int64_t x)
{
	double near = (double)x; /* rounded */
	bool is_above = near >= 0x1p63 || (int64_t)near > x;
	bool is_below = !is_above && (int64_t)near < x;

	if (is_above || is_below) {
		if (op == PFS_OP_EQ)
			return nothing;
		if (op == PFS_OP_LT || op == PFS_OP_LE) /* x lies just beside near */
			op = is_above ? PFS_OP_LT : PFS_OP_LE;
		else
			op = is_above ? PFS_OP_GE : PFS_OP_GT;
	}
	return by_order(op, pfs_order_real(near));
}

int pfs_range_of(struct pfs_range *r, enum pfs_op op, bool is_real,
		 const struct pfs_constant *constant)
{
	switch (constant->type) {
	case PFS_IS_INTEGER:
		*r = is_real ? reals_by_integer(op, constant->integer)
			     : by_order(op, constant->integer);
		return 0;
	case PFS_IS_REAL:
		*r = is_real ? by_order(op, pfs_order_real(constant->real))
			     : integers_by_real(op, constant->real);
		return 0;
	case PFS_IS_TEXT: /* above all numbers */
		*r = op == PFS_OP_LT || op == PFS_OP_LE ? everything : nothing;
		return 0;
	case PFS_IS_NULL:
		break;
	}
	return -EOPNOTSUPP;
}
