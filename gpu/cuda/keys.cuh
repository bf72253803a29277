/* SPDX-License-Identifier: MIT */
/* gpu/cuda/keys.cuh - combinations of values as numbers, and numbers in a table. */
#ifndef PFS_GPU_CUDA_KEYS_CUH
#define PFS_GPU_CUDA_KEYS_CUH

#include "base/hash.h"
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

/* True: after so many probes a table is given up, because what is looked for is too far from its
 * first place, or something else was. */
static __device__ __forceinline__ bool pfs_is_crowded(uint32_t probes, uint32_t *d_refused)
{
	if (probes % 32) /* nearly always */
		return false;
	if (probes >= PFS_PROBES_MAX)
		*d_refused = 1;
	return *reinterpret_cast<volatile uint32_t *>(d_refused);
}

static __device__ __forceinline__ uint64_t pfs_first_place(const pfs_device_table &table,
							   uint64_t number)
{
	return pfs_hash_number(number, table.seed) & (table.capacity - 1);
}

/* The number's place, where it is put if it was not there: *is_new.  Any place, if the table is
 * given up. */
static __device__ __forceinline__ uint64_t pfs_put(const pfs_device_table &table, uint64_t number,
						   bool *is_new)
{
	uint64_t at = pfs_first_place(table, number);

	for (uint32_t probes = 1;; probes++, at = (at + 1) & (table.capacity - 1)) {
		unsigned long long there = table.d_numbers[at];

		if (there == PFS_EMPTY)
			there = atomicCAS(&table.d_numbers[at], PFS_EMPTY, number);
		*is_new = there == PFS_EMPTY;
		if (*is_new || there == number || pfs_is_crowded(probes, table.d_refused))
			return at;
	}
}

/* The same, or the number itself where these are places. */
static __device__ __forceinline__ uint64_t pfs_enter(const pfs_device_table &table, uint64_t number)
{
	bool is_new;

	return table.capacity ? pfs_put(table, number, &is_new) : number;
}

/* The number's place, or PFS_EMPTY: it is not there.  `limit`: numbers from it on are not.  The
 * table has not refused, so that no number in it is PFS_PROBES_MAX places or more behind its first
 * one. */
static __device__ __forceinline__ uint64_t pfs_look_up(const pfs_device_table &table,
						       uint64_t number, uint64_t limit)
{
	uint64_t at;

	if (table.capacity == 0)
		return number < limit ? number : PFS_EMPTY;
	at = pfs_first_place(table, number);
	for (uint32_t probes = 0; probes < PFS_PROBES_MAX; probes++) {
		unsigned long long there = table.d_numbers[at];

		if (there == number)
			return at;
		if (there == PFS_EMPTY)
			break;
		at = (at + 1) & (table.capacity - 1);
	}
	return PFS_EMPTY;
}

#endif
