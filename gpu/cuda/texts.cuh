/* SPDX-License-Identifier: MIT */
/* gpu/cuda/texts.cuh - how kernels read texts of a heap. */
#ifndef PFS_GPU_CUDA_TEXTS_CUH
#define PFS_GPU_CUDA_TEXTS_CUH

#include "gpu/cuda/relation.cuh"

/* Returns the bytes of the text whose place is at the element, and how many they are. */
static __device__ __forceinline__ const uint8_t *pfs_text_at(const pfs_device_column &places,
							     const pfs_device_heap &heap,
							     uint32_t element, uint32_t *len)
{
	uint32_t place = static_cast<const uint32_t *>(places.d_data)[element];
	const uint8_t *at = heap.d_bytes + ((uint64_t)place << heap.place_shift);

	*len = heap.length_size == 1
		       ? *at
		       : at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
	return at + heap.length_size;
}

#endif
