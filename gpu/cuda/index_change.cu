/* SPDX-License-Identifier: MIT */
/* gpu/cuda/index_change.cu - batches of insertions and removals in the B+-tree: the sorted batch is
 * merged with the leaves that it touches, a warp a page that comes of it. */
#include "gpu/cuda/index.cuh"
#include "gpu/index.h"

/* ---- device code: insertion ---- */

static __global__ void insert_one_kernel(pfs_device_btree t, uint32_t *inserted, uint64_t key,
					 pfs_index_value value, bool replace)
{
	const uint32_t lane = threadIdx.x;
	const uint32_t position = pfs_find_leaf(t, key, t.is_unique ? 0 : value, lane);
	const size_t entry = (size_t)t.leaves.d_page[position] * PFS_PAGE + lane;
	const uint32_t count = t.pages.d_count[t.leaves.d_page[position]];
	bool is_full;
	bool is_there = pfs_add_pair(t, t.leaves.d_page[position], key, value, lane, &is_full);

	if (is_there && replace && lane < count && t.pages.d_keys[entry] == key)
		t.pages.d_values[entry] = value;
	if (lane == 0)
		*inserted = is_full    ? PFS_INSERTED_NO_ROOM
			    : is_there ? PFS_INSERTED_THERE
				       : PFS_INSERTED_NEW;
}

static __global__ void mark_new_kernel(pfs_device_btree t, uint32_t *is_new, uint32_t *at,
				       uint32_t *place_out, const uint64_t *__restrict__ keys,
				       const pfs_index_value *__restrict__ values, uint32_t n,
				       bool replace)
{
	PFS_EACH(i, n)
	{
		uint64_t key = keys[i];
		pfs_index_value value = t.is_unique ? 0 : values[i];
		pfs_index_place place = pfs_locate(t, t.d_level[t.top], key, value);
		size_t e = (size_t)place.page * PFS_PAGE + place.entry;
		bool is_there, is_shadowed; /* by another one of the batch */

		is_there = place.entry < t.pages.d_count[place.page] && t.pages.d_keys[e] == key &&
			   (t.is_unique || t.pages.d_values[e] == value);
		if (t.is_unique && replace)
			is_shadowed = i + 1 < n && keys[i + 1] == key;
		else
			is_shadowed = i > 0 && keys[i - 1] == key &&
				      (t.is_unique || values[i - 1] == value);
		is_new[i] = !is_there && !is_shadowed;
		at[i] = place.position;
		place_out[i] = is_there && !is_shadowed && t.is_unique && replace ? (uint32_t)e
										  : PFS_PAGE_NONE;
	}
}

static __global__ void replace_kernel(pfs_device_btree t, const uint32_t *__restrict__ place,
				      const pfs_index_value *__restrict__ values, uint32_t n)
{
	PFS_EACH(i, n)
	{
		if (place[i] != PFS_PAGE_NONE)
			t.pages.d_values[place[i]] = values[i];
	}
}

static __global__ void compact_kernel(uint64_t *keys_out, pfs_index_value *values_out,
				      uint32_t *at_out, const uint64_t *__restrict__ keys,
				      const pfs_index_value *__restrict__ values,
				      const uint32_t *__restrict__ at,
				      const uint32_t *__restrict__ is_new,
				      const uint32_t *__restrict__ rank, uint32_t n)
{
	PFS_EACH(i, n)
	{
		uint32_t to = rank[i];

		if (!is_new[i])
			continue;
		keys_out[to] = keys[i];
		values_out[to] = values[i];
		at_out[to] = at[i];
	}
}

static __global__ void segments_kernel(pfs_device_insertion in)
{
	PFS_EACH(i, in.n)
	{
		uint32_t at = in.d_at[i];

		if (i == 0 || in.d_at[i - 1] != at)
			in.d_begin[at] = (uint32_t)i;
		if (i + 1 == in.n || in.d_at[i + 1] != at)
			in.d_end[at] = (uint32_t)i + 1;
	}
}

static __global__ void shares_kernel(pfs_device_btree t, pfs_device_insertion in, uint32_t *pages,
				     uint32_t *fresh)
{
	PFS_EACH(p, (size_t)t.leaves.n + 1)
	{
		uint32_t n = 0, wanted = 1;

		if (p < t.leaves.n && in.d_end[p] > in.d_begin[p])
			n = t.pages.d_count[t.leaves.d_page[p]] + in.d_end[p] - in.d_begin[p];
		if (n > PFS_PAGE)
			wanted = (n + PFS_PAGE_FILL - 1) / PFS_PAGE_FILL;
		pages[p] = p < t.leaves.n ? wanted : 0;
		fresh[p] = wanted > 1 ? wanted : 0;
	}
}

/* One page of those that leaf and batch become together: the entries from..to of both merged. */
struct merge {
	const uint64_t *leaf_keys, *keys;
	const pfs_index_value *leaf_values, *values;
	uint32_t count, n; /* of the leaf, and of the batch's part */
};

/* Entry r of the merged: found where the two lists' first r entries end. */
static __device__ __forceinline__ void merged_entry(const merge &m, uint32_t r, uint64_t *key,
						    pfs_index_value *value)
{
	uint32_t low = r > m.n ? r - m.n : 0, high = min(r, m.count), j;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		j = r - 1 - middle;
		if (pfs_pair_less(m.leaf_keys[middle], m.leaf_values[middle], m.keys[j],
				  m.values[j]))
			low = middle + 1;
		else
			high = middle;
	}
	j = r - low;
	if (low < m.count && (j >= m.n || pfs_pair_less(m.leaf_keys[low], m.leaf_values[low],
							m.keys[j], m.values[j]))) {
		*key = m.leaf_keys[low];
		*value = m.leaf_values[low];
	} else {
		*key = m.keys[j];
		*value = m.values[j];
	}
}

/* A whole warp: page `to`, which may be the leaf itself, gets share i of k.  Returns its first
 * entry. */
static __device__ __forceinline__ void merge_page(const pfs_device_btree &t,
						  const pfs_device_insertion &in, uint32_t position,
						  uint32_t to, uint32_t i, uint32_t k,
						  uint64_t *first_key, pfs_index_value *first_value)
{
	uint32_t lane = threadIdx.x & 31, page = t.leaves.d_page[position];
	uint32_t begin = in.d_begin[position];
	const merge m = {t.pages.d_keys + (size_t)page * PFS_PAGE,
			 in.d_keys + begin,
			 t.pages.d_values + (size_t)page * PFS_PAGE,
			 in.d_values + begin,
			 t.pages.d_count[page],
			 in.d_end[position] - begin};
	uint64_t all = (uint64_t)m.count + m.n, key = UINT64_MAX;
	uint32_t from = (uint32_t)(all * i / k), end = (uint32_t)(all * (i + 1) / k);
	pfs_index_value value = PFS_VALUE_NONE;

	if (from + lane < end)
		merged_entry(m, from + lane, &key, &value);
	__syncwarp(); /* all have read what is overwritten now */
	t.pages.d_keys[(size_t)to * PFS_PAGE + lane] = key;
	t.pages.d_values[(size_t)to * PFS_PAGE + lane] = value;
	if (lane == 0)
		t.pages.d_count[to] = end - from;
	*first_key = key;
	*first_value = value;
}

/* A warp an entry, of which the first of each leaf works. */
static __global__ void insert_kernel(pfs_device_btree t, pfs_device_insertion in)
{
	uint64_t key;
	pfs_index_value value;

	PFS_EACH(thread, (size_t)in.n * 32)
	{
		size_t i = thread / 32;
		uint32_t at = in.d_at[i];

		if (i == 0 || in.d_at[i - 1] != at)
			merge_page(t, in, at, t.leaves.d_page[at], 0, 1, &key, &value);
	}
}

/* The position whose pages hold number o of the new list. */
static __device__ __forceinline__ uint32_t source_of(const uint32_t *__restrict__ out_at,
						     uint32_t n, uint32_t o)
{
	uint32_t low = 0;

	while (n > 1) {
		uint32_t half = n / 2;

		if (out_at[low + half] <= o)
			low += half;
		n -= half;
	}
	return low;
}

/* A warp a leaf of the new list. */
static __global__ void insert_split_kernel(pfs_device_btree t, pfs_device_insertion in,
					   pfs_device_leaves out)
{
	uint32_t lane = threadIdx.x & 31;

	PFS_EACH(thread, (size_t)out.n * 32)
	{
		uint32_t o = (uint32_t)(thread / 32), p = source_of(in.d_out_at, t.leaves.n, o);
		uint32_t i = o - in.d_out_at[p], k = in.d_out_at[p + 1] - in.d_out_at[p];
		uint32_t page = t.leaves.d_page[p];
		pfs_index_value value = 0;
		uint64_t key = 0;

		if (k > 1)
			page = in.d_free[in.n_free - 1 - (in.d_fresh_at[p] + i)];
		if (in.d_end[p] > in.d_begin[p])
			merge_page(t, in, p, page, i, k, &key, &value);
		if (lane)
			continue;
		out.d_page[o] = page;
		out.d_fence[o] = i ? key : t.leaves.d_fence[p];
		out.d_fence_value[o] = i ? (t.is_unique ? 0 : value) : t.leaves.d_fence_value[p];
	}
}

static __global__ void retire_split_kernel(pfs_device_btree t, pfs_device_insertion in,
					   uint32_t *free_pages, uint32_t *n)
{
	PFS_EACH(p, t.leaves.n)
	{
		if (in.d_fresh_at[p + 1] > in.d_fresh_at[p])
			free_pages[atomicAdd(n, 1u)] = t.leaves.d_page[p];
	}
}

/* ---- device code: removal ---- */

static __global__ void mark_dead_kernel(pfs_device_btree t, uint32_t *dead,
					const uint64_t *__restrict__ keys,
					const pfs_index_value *__restrict__ values, uint32_t n)
{
	PFS_EACH(i, n)
	{
		pfs_index_value value = values ? values[i] : 0;
		pfs_index_place place = pfs_locate(t, t.d_level[t.top], keys[i], value);
		size_t e = (size_t)place.page * PFS_PAGE + place.entry;

		if (place.entry < t.pages.d_count[place.page] && t.pages.d_keys[e] == keys[i] &&
		    (!values || t.pages.d_values[e] == value))
			atomicOr(&dead[place.position], 1u << place.entry);
	}
}

/* A warp a leaf: those that stay move together. */
static __global__ void close_gaps_kernel(pfs_device_btree t, const uint32_t *__restrict__ dead,
					 uint32_t *n)
{
	uint32_t lane = threadIdx.x & 31;

	PFS_EACH(thread, (size_t)t.leaves.n * 32)
	{
		uint32_t gone = dead[thread / 32], page, count, stays, left;
		uint64_t key;
		pfs_index_value value;
		uint32_t to;
		size_t base;

		if (!gone)
			continue;
		page = t.leaves.d_page[thread / 32];
		base = (size_t)page * PFS_PAGE;
		count = t.pages.d_count[page];
		key = t.pages.d_keys[base + lane];
		value = t.pages.d_values[base + lane];
		stays = __ballot_sync(PFS_ALL_LANES, lane < count && !(gone >> lane & 1));
		left = __popc(stays);
		to = __popc(stays & ((1u << lane) - 1));
		__syncwarp();
		if (stays >> lane & 1) {
			t.pages.d_keys[base + to] = key;
			t.pages.d_values[base + to] = value;
		}
		if (lane >= left) {
			t.pages.d_keys[base + lane] = UINT64_MAX;
			t.pages.d_values[base + lane] = PFS_VALUE_NONE;
		}
		if (lane == 0) {
			t.pages.d_count[page] = left;
			atomicAdd(n, __popc(gone));
		}
	}
}

static __global__ void ones_kernel(uint32_t *out, uint32_t n)
{
	PFS_EACH(i, n)
	{
		out[i] = 1;
	}
}

/* A warp a pair. */
static __global__ void join_kernel(pfs_device_btree t, uint32_t *stays, uint32_t *n,
				   uint32_t parity)
{
	uint32_t lane = threadIdx.x & 31;

	PFS_EACH(thread, (size_t)(t.leaves.n / 2) * 32)
	{
		size_t p = thread / 32 * 2 + parity;
		uint32_t left, right, n_left, n_right;

		if (p + 1 >= t.leaves.n)
			continue;
		left = t.leaves.d_page[p];
		right = t.leaves.d_page[p + 1];
		n_left = t.pages.d_count[left];
		n_right = t.pages.d_count[right];
		if (min(n_left, n_right) >= PFS_PAGE_POOR || n_left + n_right > PFS_PAGE)
			continue;
		if (lane < n_right) {
			size_t from = (size_t)right * PFS_PAGE + lane;
			size_t to = (size_t)left * PFS_PAGE + n_left + lane;

			t.pages.d_keys[to] = t.pages.d_keys[from];
			t.pages.d_values[to] = t.pages.d_values[from];
		}
		__syncwarp(); /* all have read the counts */
		if (lane == 0) {
			t.pages.d_count[left] = n_left + n_right;
			stays[p + 1] = 0;
			atomicAdd(n, 1u);
		}
	}
}

static __global__ void drop_kernel(pfs_device_btree t, pfs_device_leaves out,
				   const uint32_t *__restrict__ stays,
				   const uint32_t *__restrict__ rank, uint32_t *free_pages,
				   uint32_t *n)
{
	PFS_EACH(p, t.leaves.n)
	{
		uint32_t to = rank[p];

		if (!stays[p]) {
			free_pages[atomicAdd(n, 1u)] = t.leaves.d_page[p];
			continue;
		}
		out.d_page[to] = t.leaves.d_page[p];
		out.d_fence[to] = t.leaves.d_fence[p];
		out.d_fence_value[to] = t.leaves.d_fence_value[p];
	}
}

/* ---- launches ---- */

extern "C" int pfs_cuda_index_insert_one(const struct pfs_device_btree *t, uint32_t *d_inserted,
					 uint64_t key, pfs_index_value value, bool replace,
					 cudaStream_t stream)
{
	insert_one_kernel<<<1, PFS_PAGE, 0, stream>>>(*t, d_inserted, key, value, replace);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_mark_new(const pfs_device_btree *t, uint32_t *d_is_new,
				       uint32_t *d_at, uint32_t *d_place, const uint64_t *d_keys,
				       const pfs_index_value *d_values, uint32_t n, bool replace,
				       cudaStream_t stream)
{
	mark_new_kernel<<<pfs_grid(n), 256, 0, stream>>>(*t, d_is_new, d_at, d_place, d_keys,
							 d_values, n, replace);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_replace(const pfs_device_btree *t, const uint32_t *d_place,
				      const pfs_index_value *d_values, uint32_t n,
				      cudaStream_t stream)
{
	replace_kernel<<<pfs_grid(n), 256, 0, stream>>>(*t, d_place, d_values, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_compact(uint64_t *d_keys_out, pfs_index_value *d_values_out,
				      uint32_t *d_at_out, const uint64_t *d_keys,
				      const pfs_index_value *d_values, const uint32_t *d_at,
				      const uint32_t *d_is_new, const uint32_t *d_rank, uint32_t n,
				      cudaStream_t stream)
{
	compact_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_keys_out, d_values_out, d_at_out, d_keys,
							d_values, d_at, d_is_new, d_rank, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_shares(const pfs_device_btree *t, const pfs_device_insertion *in,
				     uint32_t *d_pages, uint32_t *d_fresh, cudaStream_t stream)
{
	segments_kernel<<<pfs_grid(in->n), 256, 0, stream>>>(*in);
	shares_kernel<<<pfs_grid((size_t)t->leaves.n + 1), 256, 0, stream>>>(*t, *in, d_pages,
									     d_fresh);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_insert(const pfs_device_btree *t, const pfs_device_insertion *in,
				     cudaStream_t stream)
{
	insert_kernel<<<pfs_grid((size_t)in->n * 32), 256, 0, stream>>>(*t, *in);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_insert_split(const pfs_device_btree *t,
					   const pfs_device_insertion *in,
					   const pfs_device_leaves *out, cudaStream_t stream)
{
	insert_split_kernel<<<pfs_grid((size_t)out->n * 32), 256, 0, stream>>>(*t, *in, *out);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_retire_split(const pfs_device_btree *t,
					   const pfs_device_insertion *in, uint32_t *d_free,
					   uint32_t *d_n, cudaStream_t stream)
{
	retire_split_kernel<<<pfs_grid(t->leaves.n), 256, 0, stream>>>(*t, *in, d_free, d_n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_mark_dead(const pfs_device_btree *t, uint32_t *d_dead,
					const uint64_t *d_keys, const pfs_index_value *d_values,
					uint32_t n, cudaStream_t stream)
{
	mark_dead_kernel<<<pfs_grid(n), 256, 0, stream>>>(*t, d_dead, d_keys, d_values, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_close_gaps(const pfs_device_btree *t, const uint32_t *d_dead,
					 uint32_t *d_n, cudaStream_t stream)
{
	close_gaps_kernel<<<pfs_grid((size_t)t->leaves.n * 32), 256, 0, stream>>>(*t, d_dead, d_n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_ones(uint32_t *d_out, uint32_t n, cudaStream_t stream)
{
	ones_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_out, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_join(const pfs_device_btree *t, uint32_t *d_stays, uint32_t *d_n,
				   uint32_t parity, cudaStream_t stream)
{
	join_kernel<<<pfs_grid((size_t)(t->leaves.n / 2) * 32), 256, 0, stream>>>(*t, d_stays, d_n,
										 parity);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_index_drop(const pfs_device_btree *t, const pfs_device_leaves *out,
				   const uint32_t *d_stays, const uint32_t *d_rank,
				   uint32_t *d_free, uint32_t *d_n, cudaStream_t stream)
{
	drop_kernel<<<pfs_grid(t->leaves.n), 256, 0, stream>>>(*t, *out, d_stays, d_rank, d_free,
							       d_n);
	return PFS_CUDA(cudaGetLastError());
}
