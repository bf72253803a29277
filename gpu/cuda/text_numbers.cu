/* SPDX-License-Identifier: MIT */
/* gpu/cuda/text_numbers.cu - texts of a heap as numbers: equal texts get the place of one of them.
 *
 * A hash table has the places of texts that differ, each beside the upper half of its text's hash.
 * A text whose half is there is compared with that place's text, so numbers are equal only where
 * texts are. */
#include "gpu/cuda/keys.cuh"
#include "gpu/cuda/texts.cuh"
#include "gpu/textkey.h"

/* ---- device code ---- */

/* The number of the text at a place that has one. */
static __device__ __forceinline__ uint32_t number_of(const pfs_device_table &table,
						     const pfs_device_texts &t, uint32_t place,
						     const uint8_t *text, uint32_t len)
{
	const enum pfs_collation by = (enum pfs_collation)t.collation;
	const uint64_t hash = pfs_textkey_hash(by, text, len, table.seed);
	const uint64_t last = table.capacity - 1;
	const unsigned long long own = (hash & 0xffffffff00000000ull) | place;
	uint64_t at = hash & last;

	for (uint32_t probes = 1; !pfs_is_crowded(probes, table.d_refused); probes++) {
		unsigned long long there = table.d_numbers[at];
		const uint8_t *other;
		uint32_t other_len;

		if (there == PFS_EMPTY)
			there = atomicCAS(&table.d_numbers[at], PFS_EMPTY, own);
		if (there == PFS_EMPTY)
			return place;
		at = (at + 1) & last;
		if (there >> 32 != own >> 32)
			continue;
		other = pfs_text_at(t.value.column, t.heap,
				    pfs_element(t.value, (uint32_t)there), &other_len);
		other_len = pfs_textkey_size(by, other, other_len);
		if (pfs_textkey_equal(by, text, len, other, other_len))
			return (uint32_t)there;
	}
	return place;
}

/* From a multiple of four to another, as loads.cuh reads the numbers. */
static __global__ void __launch_bounds__(256, 8)
	number_texts_kernel(uint32_t *numbers, const __grid_constant__ pfs_device_table table,
			    const __grid_constant__ pfs_device_texts t,
			    const __grid_constant__ pfs_device_places places)
{
	const uint64_t from = places.from & ~UINT64_C(3), to = (places.to + 3) & ~UINT64_C(3);

	PFS_EACH(i, to - from)
	{
		uint64_t place = from + i;
		uint32_t element, len, number = 0;
		const uint8_t *text;

		if (place >= places.from && pfs_is_among(places, place)) {
			element = pfs_element(t.value, (uint32_t)place);
			number = PFS_NOWHERE;
			if (element != PFS_NOWHERE) {
				text = pfs_text_at(t.value.column, t.heap, element, &len);
				if (len > PFS_DEVICE_TEXT_MAX)
					*table.d_refused = 1;
				else
					number = number_of(
						table, t, (uint32_t)place, text,
						pfs_textkey_size((enum pfs_collation)t.collation,
								 text, len));
			}
		}
		numbers[place] = number;
	}
}

/* ---- launches ---- */

extern "C" int pfs_cuda_number_texts(uint32_t *d_numbers, const pfs_device_table *table,
				     const pfs_device_texts *texts, const pfs_device_places *places,
				     cudaStream_t stream)
{
	if (places->to <= places->from)
		return 0;
	number_texts_kernel<<<pfs_blocks(places->to - places->from, 256), 256, 0, stream>>>(
		d_numbers, *table, *texts, *places);
	return PFS_CUDA(cudaGetLastError());
}
