/* SPDX-License-Identifier: MIT */
/* gpu/cuda/keys.cuh - combinations of values as numbers, and numbers in a table. */
#ifndef PFS_GPU_CUDA_KEYS_CUH
#define PFS_GPU_CUDA_KEYS_CUH

#include "gpu/cuda/relation.cuh"

#define PFS_EMPTY 0xffffffffffffffffull

/* *is_null: one of the values is. */
static __device__ __forceinline__ uint64_t pfs_number(const pfs_device_keys &keys, uint32_t place,
						      bool *is_null)
{
	uint64_t number = 0;

	*is_null = false;
	for (uint32_t k = 0; k < keys.n; k++) {
		int64_t x;

		if (pfs_value(keys.key[k].value, place, &x) &&
		    !(keys.key[k].is_row && x == PFS_NOWHERE) &&
		    (!keys.key[k].d_map || (x = keys.key[k].d_map[x]) != PFS_NOWHERE))
			number += ((uint64_t)x - (uint64_t)keys.key[k].least + 1) *
				  keys.key[k].stride;
		else
			*is_null = true;
	}
	return number;
}

static __device__ __forceinline__ uint64_t pfs_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

/* The number's place, where it is put if it was not there: the table has room for all. */
static __device__ __forceinline__ uint64_t pfs_enter(const pfs_device_table &table, uint64_t number)
{
	uint64_t at;

	if (table.capacity == 0)
		return number;
	for (at = pfs_mix(number) & (table.capacity - 1);; at = (at + 1) & (table.capacity - 1)) {
		unsigned long long there = table.d_numbers[at];

		if (there == PFS_EMPTY)
			there = atomicCAS(&table.d_numbers[at], PFS_EMPTY, number);
		if (there == PFS_EMPTY || there == number)
			return at;
	}
}

/* True: the number was not there, and now is.  The table has room for all. */
static __device__ __forceinline__ bool pfs_put(const pfs_device_table &table, uint64_t number)
{
	for (uint64_t at = pfs_mix(number) & (table.capacity - 1);;
	     at = (at + 1) & (table.capacity - 1)) {
		unsigned long long there = table.d_numbers[at];

		if (there == PFS_EMPTY)
			there = atomicCAS(&table.d_numbers[at], PFS_EMPTY, number);
		if (there == PFS_EMPTY)
			return true;
		if (there == number)
			return false;
	}
}

/* The number's place, or PFS_EMPTY: it is not there.  `limit`: numbers from it on are not. */
static __device__ __forceinline__ uint64_t pfs_look_up(const pfs_device_table &table,
						       uint64_t number, uint64_t limit)
{
	uint64_t at;

	if (table.capacity == 0)
		return number < limit ? number : PFS_EMPTY;
	for (at = pfs_mix(number) & (table.capacity - 1);; at = (at + 1) & (table.capacity - 1)) {
		unsigned long long there = table.d_numbers[at];

		if (there == number)
			return at;
		if (there == PFS_EMPTY)
			return PFS_EMPTY;
	}
}

#endif
