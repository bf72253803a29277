/* SPDX-License-Identifier: MIT */
/* gpu/cuda/index.cu - the B+-tree: made, asked, read in order. */
#include <cub/device/device_radix_sort.cuh>

#include "gpu/cuda/index.cuh"
#include "gpu/index.h"

#define SEARCH_THREADS	 1024
#define SEARCH_BLOCKS	 132u  /* one each of a large device's processors, for the whole top */
#define FEW_QUESTIONS	 8192u /* loading the top into shared memory is not worth it */
#define LEAVES_AT_ONCE	 2     /* of 1, 2, 4, 8 and 16 the fastest (docs/BENCHMARKS.md) */

/* ---- device code: building ---- */

/* A thread an entry of a page. */
static __global__ void build_kernel(pfs_device_btree t, const uint64_t *__restrict__ keys,
				    const pfs_index_value *__restrict__ values, uint64_t n)
{
	uint64_t n_leaves = t.leaves.n;

	PFS_EACH(i, n_leaves * PFS_PAGE)
	{
		uint64_t p = i / PFS_PAGE, entry = i % PFS_PAGE;
		uint64_t share = n / n_leaves, rest = n % n_leaves;
		uint64_t from = share * p + min(p, rest);
		uint32_t count = (uint32_t)(share + (p < rest));

		t.pages.d_keys[i] = entry < count ? keys[from + entry] : UINT64_MAX;
		t.pages.d_values[i] = entry < count ? values[from + entry] : PFS_VALUE_NONE;
		if (entry)
			continue;
		t.pages.d_count[p] = count;
		t.leaves.d_page[p] = (uint32_t)p;
		t.leaves.d_fence[p] = p ? keys[from] : 0;
		t.leaves.d_fence_value[p] = p && !t.is_unique ? values[from] : 0;
	}
}

static __global__ void links_kernel(pfs_device_btree t)
{
	PFS_EACH(i, t.leaves.n)
	{
		t.pages.d_next[t.leaves.d_page[i]] =
			i + 1 < t.leaves.n ? t.leaves.d_page[i + 1] : PFS_PAGE_NONE;
	}
}

static __global__ void level_kernel(uint64_t *out, const uint64_t *__restrict__ below, uint32_t n)
{
	PFS_EACH(i, n)
	{
		out[i] = below[i << PFS_FAN_BITS];
	}
}

static __global__ void free_pages_kernel(uint32_t *out, uint32_t from, uint32_t n)
{
	PFS_EACH(i, n)
	{
		out[i] = from + n - 1 - (uint32_t)i;
	}
}

static __global__ void numbers_kernel(uint32_t *out, uint32_t n)
{
	PFS_EACH(i, n)
	{
		out[i] = (uint32_t)i;
	}
}

/* ---- device code: questions ---- */

/* The value of the pair that a question looks for. */
static __device__ __forceinline__ pfs_index_value value_of(const pfs_device_find &f)
{
	return f.question == PFS_INDEX_GREATER ? PFS_VALUE_NONE : 0;
}

static __device__ __forceinline__ void answer_at(const pfs_device_btree &t,
						 const pfs_device_find &f,
						 const pfs_index_place &place, uint64_t key,
						 size_t i)
{
	size_t e = (size_t)place.page * PFS_PAGE + place.entry;
	bool is_there = true;

	if (place.entry == PFS_PAGE || t.pages.d_values[e] == PFS_VALUE_NONE) { /* past its last */
		uint32_t next = t.pages.d_next[place.page];

		is_there = next != PFS_PAGE_NONE;
		e = (size_t)next * PFS_PAGE;
	}
	if (is_there && f.question == PFS_INDEX_EQUAL)
		is_there = t.pages.d_keys[e] == key;
	f.d_values[i] = is_there ? t.pages.d_values[e] : PFS_VALUE_NONE;
	if (f.d_found_keys && is_there)
		f.d_found_keys[i] = t.pages.d_keys[e];
}

static __device__ __forceinline__ void answer(const pfs_device_btree &t, const pfs_device_find &f,
					      const uint64_t *top, size_t i)
{
	uint64_t key = __ldcs(f.d_keys + i);

	answer_at(t, f, pfs_locate(t, top, key, value_of(f)), key, i);
}

static __global__ void find_at_kernel(pfs_device_btree t, pfs_device_find f)
{
	PFS_EACH(i, f.n)
	{
		uint64_t key = __ldcs(f.d_keys + i);

		answer_at(t, f, pfs_locate_in(t, f.d_at[i], key, value_of(f)), key, i);
	}
}

static __global__ void find_few_kernel(pfs_device_btree t, pfs_device_find f)
{
	PFS_EACH(i, f.n)
	{
		answer(t, f, t.d_level[t.top], i);
	}
}

/* One block a processor, since the top takes most of its shared memory. */
static __global__ void __launch_bounds__(SEARCH_THREADS)
	find_kernel(pfs_device_btree t, pfs_device_find f)
{
	extern __shared__ uint64_t top[];

	for (uint32_t i = threadIdx.x; i < t.n_level[t.top]; i += blockDim.x)
		top[i] = t.d_level[t.top][i];
	__syncthreads();
	PFS_EACH(i, f.n)
	{
		answer(t, f, top, i);
	}
}

/* The cache is for what is written alone: that is far apart. */
template <typename element>
static __global__ void put_kernel(element *out, const element *__restrict__ from,
				  const uint32_t *__restrict__ places, uint32_t n)
{
	PFS_EACH(i, n)
	{
		__stcg(out + __ldcs(places + i), __ldcs(from + i));
	}
}

/* ---- device code: ranges ---- */

static __global__ void ends_kernel(pfs_device_btree t, uint32_t *ends, uint64_t first,
				   uint64_t last)
{
	bool is_end = threadIdx.x == 1;
	pfs_index_place place = pfs_locate(t, t.d_level[t.top], is_end ? last : first,
					   is_end ? PFS_VALUE_NONE : 0);

	ends[threadIdx.x * 2] = place.position;
	ends[threadIdx.x * 2 + 1] = place.entry;
}

/* First and end of the range's entries in the leaf at its i-th position. */
static __device__ __forceinline__ void clip(const pfs_device_btree &t, const pfs_device_range &r,
					    uint32_t i, uint32_t *first, uint32_t *end)
{
	uint32_t count = t.pages.d_count[t.leaves.d_page[r.from + i]];

	*first = i == 0 ? min(r.from_entry, count) : 0;
	*end = r.from + i == r.to ? min(r.to_entry, count) : count;
	*end = max(*first, *end);
}

static __global__ void range_counts_kernel(pfs_device_btree t, uint64_t *counts, pfs_device_range r)
{
	uint32_t n = r.to - r.from + 1, first, end;

	PFS_EACH(i, n + 1)
	{
		counts[i] = 0;
		if (i == n)
			continue;
		clip(t, r, (uint32_t)i, &first, &end);
		counts[i] = end - first;
	}
}

/* A warp a few leaves: a lane each looks where they lie, and all load the entries of all of them
 * before the first is stored, so that more loads are under way. */
static __global__ void range_copy_kernel(pfs_device_btree t, uint64_t *keys_out,
					 pfs_index_value *values_out,
					 const uint64_t *__restrict__ sums, pfs_device_range r)
{
	uint32_t n = r.to - r.from + 1, lane = threadIdx.x & 31;
	size_t warps = (n + LEAVES_AT_ONCE - 1) / LEAVES_AT_ONCE;

	PFS_EACH(thread, warps * 32)
	{
		uint32_t leaf = (uint32_t)(thread / 32 * LEAVES_AT_ONCE) + lane;
		uint32_t first = 0, end = 0, page = 0;
		uint64_t to = 0, keys[LEAVES_AT_ONCE];
		pfs_index_value values[LEAVES_AT_ONCE];
		bool is_in[LEAVES_AT_ONCE];

		if (lane < LEAVES_AT_ONCE && leaf < n) {
			page = t.leaves.d_page[r.from + leaf];
			clip(t, r, leaf, &first, &end);
			to = sums[leaf] - first;
		}
#pragma unroll
		for (uint32_t i = 0; i < LEAVES_AT_ONCE; i++) {
			size_t entry = (size_t)__shfl_sync(PFS_ALL_LANES, page, i) * PFS_PAGE + lane;
			uint32_t its_first = __shfl_sync(PFS_ALL_LANES, first, i);
			uint32_t its_end = __shfl_sync(PFS_ALL_LANES, end, i);

			is_in[i] = lane >= its_first && lane < its_end;
			keys[i] = is_in[i] ? __ldcs(t.pages.d_keys + entry) : 0;
			values[i] = is_in[i] ? __ldcs(t.pages.d_values + entry) : 0;
		}
#pragma unroll
		for (uint32_t i = 0; i < LEAVES_AT_ONCE; i++) {
			uint64_t at = __shfl_sync(PFS_ALL_LANES, to, i) + lane;

			if (!is_in[i])
				continue;
			__stcs(keys_out + at, keys[i]);
			__stcs(values_out + at, values[i]);
		}
	}
}

/* ---- device code: invariants ---- */

enum rule { FINE, COUNT, ORDER, PADDING, FENCE, LINK, LEVEL };

static __device__ uint32_t broken_rule(const pfs_device_btree &t, size_t position, uint32_t lane)
{
	const pfs_device_leaves &l = t.leaves;
	uint32_t page = l.d_page[position], count = t.pages.d_count[page];
	const uint64_t *keys = t.pages.d_keys + (size_t)page * PFS_PAGE;
	const pfs_index_value *values = t.pages.d_values + (size_t)page * PFS_PAGE;
	bool is_last = position + 1 == l.n;

	if (count > PFS_PAGE || (count == 0 && l.n > 1))
		return COUNT;
	if (t.pages.d_next[page] != (is_last ? PFS_PAGE_NONE : l.d_page[position + 1]))
		return LINK;
	for (int level = 1; level <= t.top; level++)
		if (position >> level * PFS_FAN_BITS << level * PFS_FAN_BITS == position &&
		    t.d_level[level][position >> level * PFS_FAN_BITS] != l.d_fence[position])
			return LEVEL;
	if (lane >= count)
		return keys[lane] == UINT64_MAX && values[lane] == PFS_VALUE_NONE ? FINE : PADDING;
	if (values[lane] == PFS_VALUE_NONE)
		return ORDER;
	if (lane + 1 < count &&
	    !(keys[lane] < keys[lane + 1] ||
	      (!t.is_unique && keys[lane] == keys[lane + 1] && values[lane] < values[lane + 1])))
		return ORDER;
	if (pfs_pair_less(keys[lane], values[lane], l.d_fence[position], l.d_fence_value[position]))
		return FENCE;
	if (!is_last && !pfs_pair_less(keys[lane], t.is_unique ? 0 : values[lane],
				       l.d_fence[position + 1], l.d_fence_value[position + 1]))
		return FENCE;
	return FINE;
}

static __global__ void verify_kernel(pfs_device_btree t, uint32_t *bad, unsigned long long *n)
{
	PFS_EACH(thread, (size_t)t.leaves.n * 32)
	{
		size_t position = thread / 32;
		uint32_t rule = broken_rule(t, position, threadIdx.x & 31);

		if (rule && atomicCAS(&bad[0], 0u, rule) == 0)
			bad[1] = t.leaves.d_page[position];
		if (thread % 32 == 0)
			atomicAdd(n,
				  (unsigned long long)t.pages.d_count[t.leaves.d_page[position]]);
	}
}

/* ---- launches ---- */

extern "C" int pfs_cuda_index_build(const pfs_device_btree *t, const uint64_t *d_keys,
				    const pfs_index_value *d_values, uint64_t n,
				    cudaStream_t stream)
{
	build_kernel<<<pfs_grid((size_t)t->leaves.n * PFS_PAGE), 256, 0, stream>>>(*t, d_keys,
										   d_values, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_links(const pfs_device_btree *t, cudaStream_t stream)
{
	links_kernel<<<pfs_grid(t->leaves.n), 256, 0, stream>>>(*t);
	for (int level = 1; level <= t->top; level++)
		level_kernel<<<pfs_grid(t->n_level[level]), 256, 0, stream>>>(
			const_cast<uint64_t *>(t->d_level[level]), t->d_level[level - 1],
			t->n_level[level]);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_free_pages(uint32_t *d_free, uint32_t from, uint32_t n,
					 cudaStream_t stream)
{
	free_pages_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_free, from, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_numbers(uint32_t *d_out, uint32_t n, cudaStream_t stream)
{
	numbers_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_out, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_find(const pfs_device_btree *t, const pfs_device_find *find,
				   cudaStream_t stream)
{
	size_t size = t->n_level[t->top] * sizeof(uint64_t);

	if (find->d_at) {
		find_at_kernel<<<pfs_grid(find->n), 256, 0, stream>>>(*t, *find);
		return PFS_CUDA(cudaGetLastError());
	}
	if (find->n < FEW_QUESTIONS) {
		find_few_kernel<<<pfs_grid(find->n), 256, 0, stream>>>(*t, *find);
		return PFS_CUDA(cudaGetLastError());
	}
	if (cudaFuncSetAttribute(find_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
				 (int)(PFS_TOP_MAX * sizeof(uint64_t))) != cudaSuccess) {
		(void)cudaGetLastError(); /* a small device */
		find_few_kernel<<<pfs_grid(find->n), 256, 0, stream>>>(*t, *find);
		return PFS_CUDA(cudaGetLastError());
	}
	find_kernel<<<std::min(SEARCH_BLOCKS, pfs_blocks(find->n, SEARCH_THREADS)), SEARCH_THREADS,
		      size, stream>>>(*t, *find);
	return PFS_CUDA(cudaGetLastError());
}

template <typename with>
static int sort_keys(void *d_temporary, size_t *temporary_size, uint64_t *d_keys_out,
		     const uint64_t *d_keys, void *d_with_out, const void *d_with, uint32_t n,
		     int first_bit, int bits, cudaStream_t stream)
{
	return PFS_CUDA(cub::DeviceRadixSort::SortPairs(
		d_temporary, *temporary_size, d_keys, d_keys_out, static_cast<const with *>(d_with),
		static_cast<with *>(d_with_out), n, first_bit, first_bit + bits, stream));
}

extern "C" int pfs_cuda_index_sort(void *d_temporary, size_t *temporary_size, uint64_t *d_keys_out,
				   const uint64_t *d_keys, void *d_with_out, const void *d_with,
				   size_t value_size, uint32_t n, int first_bit, int bits,
				   cudaStream_t stream)
{
	return value_size == sizeof(uint64_t)
		       ? sort_keys<uint64_t>(d_temporary, temporary_size, d_keys_out, d_keys,
					     d_with_out, d_with, n, first_bit, bits, stream)
		       : sort_keys<uint32_t>(d_temporary, temporary_size, d_keys_out, d_keys,
					     d_with_out, d_with, n, first_bit, bits, stream);
}

extern "C" int pfs_cuda_index_put(void *d_out, const void *d_from, const uint32_t *d_places,
				  size_t value_size, uint32_t n, cudaStream_t stream)
{
	if (value_size == sizeof(uint64_t))
		put_kernel<<<pfs_grid(n), 256, 0, stream>>>(static_cast<uint64_t *>(d_out),
							    static_cast<const uint64_t *>(d_from),
							    d_places, n);
	else
		put_kernel<<<pfs_grid(n), 256, 0, stream>>>(static_cast<uint32_t *>(d_out),
							    static_cast<const uint32_t *>(d_from),
							    d_places, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_sort_values(void *d_temporary, size_t *temporary_size,
					  pfs_index_value *d_values_out,
					  const pfs_index_value *d_values, uint64_t *d_keys_out,
					  const uint64_t *d_keys, uint32_t n, cudaStream_t stream)
{
	return PFS_CUDA(cub::DeviceRadixSort::SortPairs(d_temporary, *temporary_size, d_values,
							d_values_out, d_keys, d_keys_out, n, 0,
							8 * (int)sizeof(*d_values),
							stream));
}

extern "C" int pfs_cuda_index_ends(const pfs_device_btree *t, uint32_t *d_ends, uint64_t first,
				   uint64_t last, cudaStream_t stream)
{
	ends_kernel<<<1, 2, 0, stream>>>(*t, d_ends, first, last);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_range_counts(const pfs_device_btree *t, uint64_t *d_counts,
					   const pfs_device_range *range, cudaStream_t stream)
{
	range_counts_kernel<<<pfs_grid((size_t)range->to - range->from + 2), 256, 0, stream>>>(
		*t, d_counts, *range);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_range_copy(const pfs_device_btree *t, uint64_t *d_keys_out,
					 pfs_index_value *d_values_out, const uint64_t *d_sums,
					 const pfs_device_range *range, cudaStream_t stream)
{
	size_t n = (size_t)range->to - range->from + 1;

	range_copy_kernel<<<pfs_grid(n * 32), 256, 0, stream>>>(*t, d_keys_out, d_values_out,
								d_sums, *range);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_verify(const pfs_device_btree *t, uint32_t *d_bad, uint64_t *d_n,
				     cudaStream_t stream)
{
	verify_kernel<<<pfs_grid((size_t)t->leaves.n * 32), 256, 0, stream>>>(
		*t, d_bad, reinterpret_cast<unsigned long long *>(d_n));
	return PFS_CUDA(cudaGetLastError());
}
