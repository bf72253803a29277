/* SPDX-License-Identifier: MIT */
/* gpu/cuda/index_probe.cu - what the benchmark holds the B+-tree against: a sorted array, and a
 * pass over it. */
#include <cub/device/device_reduce.cuh>
#include <algorithm>
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

extern "C" int pfs_cuda_index_total(void *d_temporary, size_t *temporary_size, uint64_t *d_out,
				    const uint64_t *d_keys, const pfs_index_value *d_values,
				    uint64_t n, cudaStream_t stream)
{
	size_t sizes[2] = {*temporary_size, *temporary_size};
	int error = PFS_CUDA(cub::DeviceReduce::Sum(d_temporary, sizes[0], d_keys, d_out,
						    (int64_t)n, stream));

	error = error ? error
		      : PFS_CUDA(cub::DeviceReduce::Sum(d_temporary, sizes[1], d_values, d_out + 1,
							(int64_t)n, stream));
	*temporary_size = std::max(sizes[0], sizes[1]);
	return error;
}
