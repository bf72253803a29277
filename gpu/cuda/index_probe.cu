/* SPDX-License-Identifier: MIT */
/* gpu/cuda/index_probe.cu - what the benchmark holds the B+-tree against: a sorted array. */
#include <thrust/binary_search.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>

#include "gpu/cuda/index.cuh"

extern "C" int pfs_cuda_index_search_array(pfs_index_value *d_out, const uint64_t *d_keys,
					   uint64_t n, const uint64_t *d_asked, uint64_t m,
					   cudaStream_t stream)
{
	auto keys = thrust::device_pointer_cast(d_keys);
	auto asked = thrust::device_pointer_cast(d_asked);

	thrust::lower_bound(thrust::cuda::par_nosync.on(stream), keys, keys + n, asked, asked + m,
			    thrust::device_pointer_cast(d_out));
	return PFS_CUDA(cudaGetLastError());
}
