/* SPDX-License-Identifier: MIT */
/* gpu/host/lanes_body.h - the loops of gpu/host/lanes.h, for one instruction set: lanes.c includes
 * it with LANES(name) and LANES_TARGET defined. */
#ifndef LANES
#include <endian.h>
#include <string.h>

#include "gpu/host/lanes.h"

#define LANES(name)  name##_alone
#define LANES_TARGET PFS_UNUSED
#endif

LANES_TARGET static uint32_t LANES(list_bits)(uint32_t *out, const uint64_t *words, size_t n,
					      uint32_t first)
{
	uint32_t count = 0;

	for (size_t w = 0; w < n; w++) {
		uint64_t word = words[w];

		if (word == UINT64_MAX) {
			for (uint32_t i = 0; i < 64; i++)
				out[count + i] = first + (uint32_t)w * 64 + i;
			count += 64;
			continue;
		}
		for (; word; word &= word - 1)
			out[count++] = first + (uint32_t)w * 64 + (uint32_t)__builtin_ctzll(word);
	}
	return count;
}

#define LANES_READ(type)                                                                           \
	do {                                                                                       \
		const type *data = column->data;                                                   \
                                                                                                   \
		for (uint32_t i = 0; at && i < n; i++)                                             \
			out[i] = (int64_t)((((uint64_t)data[at[i]] >> shift) & mask) + base);      \
		for (uint32_t i = 0; !at && i < n; i++)                                            \
			out[i] = (int64_t)((((uint64_t)data[first + i] >> shift) & mask) + base);  \
	} while (0)

LANES_TARGET static void LANES(read_64)(int64_t *restrict out,
					const struct pfs_table_column *column, const uint32_t *at,
					uint32_t first, uint32_t n)
{
	uint64_t mask = column->mask ? column->mask : UINT64_MAX, base = (uint64_t)column->base;
	unsigned shift = column->shift;

	switch (column->width + (column->is_signed ? 16 : 0)) {
	case 1:
		LANES_READ(uint8_t);
		return;
	case 2:
		LANES_READ(uint16_t);
		return;
	case 4:
		LANES_READ(uint32_t);
		return;
	case 16 + 1:
		LANES_READ(int8_t);
		return;
	case 16 + 2:
		LANES_READ(int16_t);
		return;
	case 16 + 4:
		LANES_READ(int32_t);
		return;
	default:
		LANES_READ(uint64_t);
	}
}

#define LANES_READ_32(type)                                                                        \
	do {                                                                                       \
		const type *data = column->data;                                                   \
                                                                                                   \
		for (uint32_t i = 0; at && i < n; i++)                                             \
			out[i] = (uint32_t)((data[at[i]] >> shift) & mask);                        \
		for (uint32_t i = 0; !at && i < n; i++)                                            \
			out[i] = (uint32_t)((data[first + i] >> shift) & mask);                    \
	} while (0)

LANES_TARGET static void LANES(read_32)(uint32_t *restrict out,
					const struct pfs_table_column *column, const uint32_t *at,
					uint32_t first, uint32_t n)
{
	uint64_t mask = column->mask ? column->mask : UINT64_MAX;
	unsigned shift = column->shift;

	switch (column->width) {
	case 1:
		LANES_READ_32(uint8_t);
		return;
	case 2:
		LANES_READ_32(uint16_t);
		return;
	case 4:
		LANES_READ_32(uint32_t);
		return;
	default:
		LANES_READ_32(uint64_t);
	}
}

LANES_TARGET static void LANES(list_64)(int64_t *restrict out, const void *data, const uint32_t *at,
					uint32_t n)
{
	const int64_t *values = data;

	for (uint32_t i = 0; i < n; i++)
		out[i] = values[at[i]];
}

/* Truths become bytes first, of which vectors can be made for any width; then eight bytes at a time
 * become bits. In the product byte k's lowest bit is at 56 + k, and nothing carries into these
 * bits. Whole words come first, so that the loops have a known length. */
#define LANES_COMPARE(condition)                                                                   \
	do {                                                                                       \
		uint32_t w = 0;                                                                    \
                                                                                                   \
		for (; w < n / 64; w++) {                                                          \
			uint64_t word = 0;                                                         \
			uint8_t truths[64];                                                        \
                                                                                                   \
			for (uint32_t k = 0; k < 64; k++) {                                        \
				uint32_t i = w * 64 + k;                                           \
                                                                                                   \
				truths[k] = (condition);                                           \
			}                                                                          \
			for (uint32_t k = 0; k < 64; k += 8) {                                     \
				uint64_t eight;                                                    \
                                                                                                   \
				memcpy(&eight, truths + k, sizeof(eight));                         \
				eight = le64toh(eight);                                            \
				word |= (eight * UINT64_C(0x0102040810204080) >> 56) << k;         \
			}                                                                          \
			words[w] = word;                                                           \
		}                                                                                  \
		if (n % 64)                                                                        \
			words[w] = 0;                                                              \
		for (uint32_t i = w * 64; i < n; i++)                                              \
			words[w] |= (uint64_t)(condition) << i % 64;                               \
	} while (0)

/* Both bounds by one comparison, in as many bits as an element has. */
#define LANES_BETWEEN(type)                                                                        \
	do {                                                                                       \
		const type *data = (const type *)column->data + (at ? 0 : first);                  \
		type from = (type)low, span = (type)((uint64_t)high - (uint64_t)low);              \
		type kept = (type)mask;                                                            \
                                                                                                   \
		if (at)                                                                            \
			LANES_COMPARE((type)(((type)(data[at[i]] >> shift) & kept) - from) <=      \
				      span);                                                       \
		else if (shift || kept != (type)UINT64_MAX)                                        \
			LANES_COMPARE((type)(((type)(data[i] >> shift) & kept) - from) <= span);   \
		else                                                                               \
			LANES_COMPARE((type)(data[i] - from) <= span);                             \
	} while (0)

LANES_TARGET static void LANES(between)(uint64_t *restrict words,
					const struct pfs_table_column *column, const uint32_t *at,
					uint32_t first, uint32_t n, int64_t low, int64_t high)
{
	uint64_t mask = column->mask ? column->mask : UINT64_MAX;
	unsigned shift = column->shift;

	switch (column->width) {
	case 1:
		LANES_BETWEEN(uint8_t);
		return;
	case 2:
		LANES_BETWEEN(uint16_t);
		return;
	case 4:
		LANES_BETWEEN(uint32_t);
		return;
	default:
		LANES_BETWEEN(uint64_t);
	}
}

#define LANES_COMPARE_BY(right)                                                                    \
	do {                                                                                       \
		if (op == PFS_LANES_EQ)                                                            \
			LANES_COMPARE(values[i] == (right));                                       \
		else if (op == PFS_LANES_LT)                                                       \
			LANES_COMPARE(values[i] < (right));                                        \
		else                                                                               \
			LANES_COMPARE(values[i] > (right));                                        \
	} while (0)

LANES_TARGET static void LANES(compare)(uint64_t *restrict words, const int64_t *values, uint32_t n,
					enum pfs_order_op op, int64_t constant)
{
	LANES_COMPARE_BY(constant);
}

LANES_TARGET static void LANES(compare_real)(uint64_t *restrict words, const double *values,
					     uint32_t n, enum pfs_order_op op, double constant)
{
	LANES_COMPARE_BY(constant);
}

LANES_TARGET static void LANES(compare_both)(uint64_t *restrict words, const int64_t *values,
					     const int64_t *others, uint32_t n,
					     enum pfs_order_op op)
{
	LANES_COMPARE_BY(others[i]);
}

LANES_TARGET static void LANES(extremes)(int64_t *least, int64_t *greatest, const int64_t *values,
					 uint32_t n)
{
	int64_t low = values[0], high = values[0];

	for (uint32_t i = 1; i < n; i++) {
		low = values[i] < low ? values[i] : low;
		high = values[i] > high ? values[i] : high;
	}
	*least = low;
	*greatest = high;
}

LANES_TARGET static void LANES(sum)(uint64_t *sum, uint64_t *high, uint64_t *low,
				    const int64_t *values, uint32_t n)
{
	uint64_t all = 0, upper = 0, lower = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t size = (uint64_t)(values[i] < 0 ? ~values[i] : values[i]);

		all += (uint64_t)values[i];
		upper += size >> 32;
		lower += size & UINT32_MAX;
	}
	*sum = all;
	*high = upper;
	*low = lower;
}

#define LANES_APPLY(result)                                                                        \
	do {                                                                                       \
		for (uint32_t i = 0; i < n; i++)                                                   \
			values[i] = (int64_t)(result);                                             \
	} while (0)

LANES_TARGET static void LANES(add)(int64_t *values, uint32_t n, int64_t constant)
{
	LANES_APPLY((uint64_t)values[i] + (uint64_t)constant);
}

LANES_TARGET static void LANES(multiply)(int64_t *values, uint32_t n, int64_t constant)
{
	LANES_APPLY((uint64_t)values[i] * (uint64_t)constant);
}

/* Of integers below 2^53 the quotient is not rounded up to an integer, since what it lacks of one
 * is more than half of a real's last place; and reals are divided faster. */
LANES_TARGET static void LANES(divide)(int64_t *values, uint32_t n, int64_t constant, int64_t least,
				       int64_t greatest)
{
	const int64_t exact = INT64_C(1) << 53;
	const double real = (double)constant;
	const unsigned shift = (unsigned)__builtin_ctzll((uint64_t)constant);

	if (constant >> shift == 1 && least >= 0)
		LANES_APPLY((uint64_t)values[i] >> shift);
	else if (constant < exact && least > -exact && greatest < exact)
		LANES_APPLY((double)values[i] / real);
	else
		LANES_APPLY(values[i] / constant);
}

PFS_UNUSED static const struct pfs_lanes LANES(lanes) = {
	.list_bits = LANES(list_bits),
	.read_64 = LANES(read_64),
	.read_32 = LANES(read_32),
	.list_64 = LANES(list_64),
	.between = LANES(between),
	.compare = LANES(compare),
	.compare_real = LANES(compare_real),
	.compare_both = LANES(compare_both),
	.extremes = LANES(extremes),
	.sum = LANES(sum),
	.add = LANES(add),
	.multiply = LANES(multiply),
	.divide = LANES(divide),
};

#undef LANES_READ
#undef LANES_READ_32
#undef LANES_COMPARE
#undef LANES_BETWEEN
#undef LANES_APPLY
#undef LANES_COMPARE_BY
#undef LANES
#undef LANES_TARGET
