/* SPDX-License-Identifier: MIT */
/* gpu/cuda/evaluate.cu - expressions over numbers, row by row, with SQLite's results:
 * gpu/host/arithmetic.c is the twin.  A value is NULL, an integer or a real; a truth is the integer
 * 0 or 1, or NULL.  Each row has a stack of its own, so that values may be of other types in the
 * next row. */
#include "gpu/cuda/relation.cuh"
#include "gpu/predicate.h"

#define BOUND 0x1p63

/* ---- device code ---- */

struct cell {
	long long bits;
	uint32_t type; /* PFS_CELL_ */
};

static __device__ __forceinline__ double real_of(const cell &x)
{
	return x.type == PFS_CELL_REAL ? __longlong_as_double(x.bits) : (double)x.bits;
}

static __device__ __forceinline__ long long integer_of(const cell &x)
{
	double real;

	if (x.type != PFS_CELL_REAL)
		return x.bits;
	real = __longlong_as_double(x.bits);
	return real <= -BOUND ? LLONG_MIN : real >= BOUND ? LLONG_MAX : (long long)real;
}

static __device__ __forceinline__ cell of_integer(long long x)
{
	return {x, PFS_CELL_INTEGER};
}

/* SQLite has NULL for what is no number. */
static __device__ __forceinline__ cell of_real(double x)
{
	return {__double_as_longlong(x),
		x == x ? (uint32_t)PFS_CELL_REAL : (uint32_t)PFS_CELL_NULL};
}

static __device__ __forceinline__ bool is_true(const cell &x)
{
	return x.type == PFS_CELL_REAL ? __longlong_as_double(x.bits) != 0 : x.bits != 0;
}

/* Without rounding either. */
static __device__ int compare_mixed(long long integer, double real)
{
	long long truncated;

	if (real < -BOUND)
		return 1;
	if (real >= BOUND)
		return -1;
	truncated = (long long)real;
	if (integer != truncated)
		return integer < truncated ? -1 : 1;
	return (real < (double)truncated) - (real > (double)truncated);
}

static __device__ int compare(const cell &a, const cell &b)
{
	if (a.type == PFS_CELL_REAL && b.type == PFS_CELL_REAL)
		return (real_of(a) > real_of(b)) - (real_of(a) < real_of(b));
	if (a.type == PFS_CELL_REAL)
		return -compare_mixed(b.bits, real_of(a));
	if (b.type == PFS_CELL_REAL)
		return compare_mixed(a.bits, real_of(b));
	return (a.bits > b.bits) - (a.bits < b.bits);
}

/* Two integers as one, if that is exact. */
static __device__ bool exact(long long *out, int op, long long a, long long b)
{
	unsigned long long sum;

	switch (op) {
	case PFS_OP_ADD:
		sum = (unsigned long long)a + (unsigned long long)b;
		*out = (long long)sum;
		return ((a ^ *out) & (b ^ *out)) >= 0;
	case PFS_OP_SUBTRACT:
		sum = (unsigned long long)a - (unsigned long long)b;
		*out = (long long)sum;
		return ((a ^ b) & (a ^ *out)) >= 0;
	case PFS_OP_MULTIPLY:
		sum = (unsigned long long)a * (unsigned long long)b;
		*out = (long long)sum;
		return __mul64hi(a, b) == *out >> 63;
	case PFS_OP_DIVIDE:
		if (a == LLONG_MIN && b == -1)
			return false;
		*out = a / b;
		return true;
	default:
		*out = b == -1 ? 0 : a % b;
		return true;
	}
}

static __device__ cell arithmetic(int op, const cell &a, const cell &b)
{
	bool is_whole = a.type == PFS_CELL_INTEGER && b.type == PFS_CELL_INTEGER;
	long long out;

	if (a.type == PFS_CELL_NULL || b.type == PFS_CELL_NULL)
		return {0, PFS_CELL_NULL};
	if ((op == PFS_OP_DIVIDE && real_of(b) == 0) ||
	    (op == PFS_OP_REMAINDER && integer_of(b) == 0))
		return {0, PFS_CELL_NULL};
	if (is_whole && exact(&out, op, a.bits, b.bits))
		return of_integer(out);
	switch (op) {
	case PFS_OP_ADD:
		return of_real(real_of(a) + real_of(b));
	case PFS_OP_SUBTRACT:
		return of_real(real_of(a) - real_of(b));
	case PFS_OP_MULTIPLY:
		return of_real(real_of(a) * real_of(b));
	case PFS_OP_DIVIDE:
		return of_real(real_of(a) / real_of(b));
	default:
		(void)exact(&out, op, integer_of(a), integer_of(b));
		return of_real((double)out);
	}
}

static __device__ cell truth_of_comparison(int op, const cell &a, const cell &b)
{
	bool nulls = a.type == PFS_CELL_NULL || b.type == PFS_CELL_NULL;
	int order;

	if (op == PFS_OP_IS || op == PFS_OP_IS_NOT) {
		bool same = nulls ? a.type == b.type : compare(a, b) == 0;

		return of_integer(same == (op == PFS_OP_IS));
	}
	if (nulls)
		return {0, PFS_CELL_NULL};
	order = compare(a, b);
	switch (op) {
	case PFS_OP_EQ:
		return of_integer(order == 0);
	case PFS_OP_NE:
		return of_integer(order != 0);
	case PFS_OP_LT:
		return of_integer(order < 0);
	case PFS_OP_LE:
		return of_integer(order <= 0);
	case PFS_OP_GT:
		return of_integer(order > 0);
	default:
		return of_integer(order >= 0);
	}
}

/* AND and OR: what decides does so beside NULL, too. */
static __device__ cell both(const cell &a, const cell &b, bool deciding)
{
	bool a_null = a.type == PFS_CELL_NULL, b_null = b.type == PFS_CELL_NULL;

	if ((!a_null && is_true(a) == deciding) || (!b_null && is_true(b) == deciding))
		return of_integer(deciding);
	if (a_null || b_null)
		return {0, PFS_CELL_NULL};
	return of_integer(!deciding);
}

static __device__ cell of_one(int op, const cell &x)
{
	if (op == PFS_OP_IS_NULL || op == PFS_OP_NOT_NULL)
		return of_integer((x.type == PFS_CELL_NULL) == (op == PFS_OP_IS_NULL));
	if (x.type == PFS_CELL_NULL)
		return x;
	switch (op) {
	case PFS_OP_NEGATE: /* as SQLite computes it */
		return arithmetic(PFS_OP_SUBTRACT, of_integer(0), x);
	case PFS_OP_TO_INTEGER:
		return of_integer(integer_of(x));
	case PFS_OP_TO_REAL:
		return of_real(real_of(x));
	default:
		return of_integer(!is_true(x));
	}
}

static __device__ cell read(const pfs_device_operation &o, uint32_t place)
{
	int64_t x;

	if (o.op == PFS_OP_CONSTANT)
		return {(long long)o.bits, o.type};
	if (!pfs_value(o.value, place, &x))
		return {0, PFS_CELL_NULL};
	return o.value.column.is_real ? of_real(pfs_real_of_order(x)) : of_integer(x);
}

static __device__ cell evaluate(const pfs_device_expression &e, uint32_t place)
{
	cell stack[PFS_EXPRESSION_DEPTH];
	int top = -1;

	for (uint32_t i = 0; i < e.n; i++) {
		const pfs_device_operation &o = e.operation[i];

		switch (o.op) {
		case PFS_OP_COLUMN:
		case PFS_OP_CONSTANT:
			stack[++top] = read(o, place);
			break;
		case PFS_OP_ADD:
		case PFS_OP_SUBTRACT:
		case PFS_OP_MULTIPLY:
		case PFS_OP_DIVIDE:
		case PFS_OP_REMAINDER:
			top--;
			stack[top] = arithmetic(o.op, stack[top], stack[top + 1]);
			break;
		case PFS_OP_CHOOSE:
			top -= 2;
			stack[top] = stack[top].type != PFS_CELL_NULL && is_true(stack[top])
					     ? stack[top + 1]
					     : stack[top + 2];
			break;
		case PFS_OP_AND:
		case PFS_OP_OR:
			top--;
			stack[top] = both(stack[top], stack[top + 1], o.op == PFS_OP_OR);
			break;
		case PFS_OP_NEGATE:
		case PFS_OP_TO_INTEGER:
		case PFS_OP_TO_REAL:
		case PFS_OP_IS_NULL:
		case PFS_OP_NOT_NULL:
		case PFS_OP_NOT:
			stack[top] = of_one(o.op, stack[top]);
			break;
		default:
			top--;
			stack[top] = truth_of_comparison(o.op, stack[top], stack[top + 1]);
			break;
		}
	}
	return stack[0];
}

static __global__ void __launch_bounds__(256)
	evaluate_kernel(unsigned long long *out, uint32_t *nulls, uint32_t *types,
			const __grid_constant__ pfs_device_expression e,
			const uint32_t *__restrict__ places, uint32_t from, uint64_t n)
{
	uint32_t met = 0;

	PFS_EACH(i, (n + 63) / 64 * 64)
	{
		cell x = {0, PFS_CELL_NULL};
		uint32_t word;

		if (i < n) {
			x = evaluate(e, places ? places[i] : from + (uint32_t)i);
			out[i] = (unsigned long long)x.bits;
			met |= 1u << x.type;
		}
		word = __ballot_sync(PFS_ALL_LANES, i < n && x.type == PFS_CELL_NULL);
		if ((threadIdx.x & 31) == 0)
			nulls[i / 32] = word;
	}
	met = __reduce_or_sync(PFS_ALL_LANES, met);
	if ((threadIdx.x & 31) == 0 && (met & ~*types))
		atomicOr(types, met);
}

/* ---- launches ---- */

extern "C" int pfs_cuda_evaluate(uint64_t *d_out, uint32_t *d_nulls, uint32_t *d_types,
				 const pfs_device_expression *expression, const uint32_t *d_places,
				 uint32_t from, uint64_t n, cudaStream_t stream)
{
	if (n == 0)
		return 0;
	evaluate_kernel<<<pfs_grid(n), 256, 0, stream>>>(
		reinterpret_cast<unsigned long long *>(d_out), d_nulls, d_types, *expression,
		d_places, from, n);
	return PFS_CUDA(cudaGetLastError());
}
