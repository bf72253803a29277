/* SPDX-License-Identifier: MIT */
/* gpu/cuda/relation.cuh - how kernels of the relational operators read values. */
#ifndef PFS_GPU_CUDA_RELATION_CUH
#define PFS_GPU_CUDA_RELATION_CUH

#include <climits>

#include "gpu/cuda/device.cuh"
#include "gpu/cuda/relation_kernels.h"

#define PFS_NOWHERE 0xffffffffu /* PFS_NO_ROW */

/* The element that holds the value at the place, or PFS_NOWHERE: it is NULL. */
static __device__ __forceinline__ uint32_t pfs_element(const pfs_device_value &v, uint32_t place)
{
	uint32_t row = v.d_rows ? v.d_rows[place] : v.from + place;

	if (v.column.d_via && row != PFS_NOWHERE)
		row = v.column.d_via[row];
	if (v.column.d_nulls && row != PFS_NOWHERE && pfs_bit(v.column.d_nulls, row))
		row = PFS_NOWHERE;
	return row;
}

template <class T>
static __device__ __forceinline__ int64_t pfs_read(const pfs_device_column &c, uint32_t element)
{
	uint64_t raw = (uint64_t)(int64_t)static_cast<const T *>(c.d_data)[element];

	return (int64_t)((raw >> c.shift & c.mask) + (uint64_t)c.base);
}

/* A real in its order (pfs_order_real). */
static __device__ __forceinline__ int64_t pfs_read_real(const pfs_device_column &c,
							uint32_t element)
{
	return pfs_order_real(static_cast<const double *>(c.d_data)[element]);
}

static __device__ __forceinline__ int64_t pfs_read_any(const pfs_device_column &c, uint32_t element)
{
	switch (c.width | c.is_signed << 4 | c.is_real << 5) {
	case 1:
		return pfs_read<uint8_t>(c, element);
	case 2:
		return pfs_read<uint16_t>(c, element);
	case 4:
		return pfs_read<uint32_t>(c, element);
	case 1 | 16:
		return pfs_read<int8_t>(c, element);
	case 2 | 16:
		return pfs_read<int16_t>(c, element);
	case 4 | 16:
		return pfs_read<int32_t>(c, element);
	case 8 | 32:
	case 8 | 16 | 32:
		return pfs_read_real(c, element);
	default:
		return pfs_read<int64_t>(c, element);
	}
}

/* False: NULL. */
static __device__ __forceinline__ bool pfs_value(const pfs_device_value &v, uint32_t place,
						 int64_t *out)
{
	uint32_t element = pfs_element(v, place);

	if (element == PFS_NOWHERE)
		return false;
	*out = pfs_read_any(v.column, element);
	return true;
}

/* Reads the values at a thread's places, NULL where the bit of *valid is cleared. What they have in
 * common is decided once. */
template <int ROWS, class Read>
static __device__ __forceinline__ void pfs_values_by(const pfs_device_value &v,
						     const uint32_t (&place)[ROWS],
						     int64_t (&out)[ROWS], uint32_t *valid,
						     Read read)
{
	uint32_t element[ROWS];
	bool is_plain = !v.d_rows && !v.column.d_via && !v.column.d_nulls;

#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		element[r] = v.from + place[r];
		if (!is_plain && (*valid >> r & 1)) {
			element[r] = pfs_element(v, place[r]);
			if (element[r] == PFS_NOWHERE)
				*valid &= ~(1u << r);
		}
	}
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		if (*valid >> r & 1)
			out[r] = read(v.column, element[r]);
}

template <int ROWS>
static __device__ __forceinline__ void pfs_values(const pfs_device_value &v,
						  const uint32_t (&place)[ROWS],
						  int64_t (&out)[ROWS], uint32_t *valid)
{
	const pfs_device_column &c = v.column;

	if (c.width == 4 && !c.is_signed)
		pfs_values_by(v, place, out, valid, [](const pfs_device_column &k, uint32_t e) {
			return pfs_read<uint32_t>(k, e);
		});
	else if (c.width == 8 && !c.is_real)
		pfs_values_by(v, place, out, valid, [](const pfs_device_column &k, uint32_t e) {
			return pfs_read<int64_t>(k, e);
		});
	else
		pfs_values_by(v, place, out, valid, [](const pfs_device_column &k, uint32_t e) {
			return pfs_read_any(k, e);
		});
}

static __device__ __forceinline__ double pfs_real_of_order(int64_t order)
{
	return __longlong_as_double(order < 0 ? (long long)(0x8000000000000000ull - (uint64_t)order)
					      : order);
}

static __device__ __forceinline__ bool pfs_is_among(const pfs_device_places &p, uint64_t place)
{
	return place < p.to && (!p.d_mask || pfs_bit(p.d_mask, (uint32_t)place));
}

#endif
