/* SPDX-License-Identifier: MIT */
/* gpu/cuda/group_plain.cu - grouping as group.cu does it, of what is asked for most: by one column
 * into few groups, of which rows are counted and at most one column is added up, both read as they
 * lie.  All widths are known when it is compiled, so that it takes a third of the instructions and
 * waits for memory alone. */
#include "gpu/cuda/totals.cuh"

#define THREADS	    1024u
#define BLOCKS	    132u
#define SHARED_MOST (220u << 10) /* bytes, of one block a multiprocessor */
#define SHARED_HALF (110u << 10)

/* The columns, as rows from..to have them.  d_values may be NULL. */
struct plain_columns {
	const void *d_keys, *d_values;
	uint32_t less; /* than a key by as much as its group's number */
	uint64_t from, to, early_to; /* first places are looked for below this */
};

/* ---- device code ---- */

/* Where a thread adds to the block's totals. */
struct plain_totals {
	uint32_t *count, *low, *high; /* planes, at the thread's copy */
	uint32_t copies;
};

/* Adds the rows of a four that have a bit in `valid`.  All low words are under way before the first
 * one's carry is waited for. */
template <class V, bool HAS_VALUE>
static __device__ __forceinline__ void add_four(const plain_totals &t, const uint32_t (&group)[4],
						const V (&value)[4], uint32_t valid)
{
	uint32_t before[4];

#pragma unroll
	for (int r = 0; r < 4; r++) {
		if (!(valid >> r & 1))
			continue;
		atomicAdd(&t.count[group[r] * t.copies], 1u);
		if (HAS_VALUE)
			before[r] = atomicAdd(&t.low[group[r] * t.copies], (uint32_t)value[r]);
	}
#pragma unroll
	for (int r = 0; HAS_VALUE && r < 4; r++) {
		uint32_t low = (uint32_t)value[r], high;

		if (!(valid >> r & 1))
			continue;
		high = (uint32_t)((uint64_t)value[r] >> 32) + (before[r] + low < low);
		if (high)
			atomicAdd(&t.high[group[r] * t.copies], high);
	}
}

/* K and V are the columns' elements. */
template <class K, class V, bool HAS_VALUE>
static __global__ void __launch_bounds__(THREADS, 1)
	group_plain_kernel(const __grid_constant__ pfs_device_groups groups,
			   const __grid_constant__ plain_columns columns,
			   const __grid_constant__ pfs_total_planes t, uint32_t copies)
{
	extern __shared__ unsigned long long shared[];
	uint32_t *memory = reinterpret_cast<uint32_t *>(shared);
	const uint32_t copy = threadIdx.x & (copies - 1);
	uint32_t *low = HAS_VALUE ? pfs_plane(memory, t, t.value[0]) + copy : NULL;
	const plain_totals totals = {pfs_plane(memory, t, t.count) + copy, low, low + t.n, copies};

	pfs_clear(memory, t, groups);
	pfs_note_firsts(groups.d_first, {columns.from, columns.early_to, NULL},
			[&](uint32_t(&group)[4], const pfs_fours<1> &f) {
				if (f.valid)
					pfs_load_four<K>(group, columns.d_keys, f.first[0]);
#pragma unroll
				for (int r = 0; r < 4; r++)
					group[r] -= columns.less;
			});
	for (uint64_t four = columns.from / 4 + blockIdx.x * THREADS + threadIdx.x;
	     four * 4 < columns.to; four += (uint64_t)gridDim.x * THREADS) {
		const uint64_t first = four * 4;
		uint32_t group[4], valid = 0;
		V value[4];

		pfs_load_four<K>(group, columns.d_keys, first);
		if (HAS_VALUE)
			pfs_load_four<V>(value, columns.d_values, first);
#pragma unroll
		for (int r = 0; r < 4; r++) {
			group[r] -= columns.less;
			valid |= (uint32_t)(first + r >= columns.from && first + r < columns.to)
				 << r;
		}
		if (valid == 15)
			add_four<V, HAS_VALUE>(totals, group, value, 15);
		else
			add_four<V, HAS_VALUE>(totals, group, value, valid);
	}
	__syncthreads();
	for (uint32_t g = threadIdx.x; g < t.n / copies; g += THREADS)
		pfs_hand_over_copies(groups, memory, t, g * copies, copies, g);
}

/* ---- launches ---- */

/* True: elements lie beside each other and are read whole, NULLs apart, of which there are none. */
static bool is_read_whole(const pfs_device_value &v)
{
	const pfs_device_column &c = v.column;

	return !v.d_rows && !c.d_via && !c.d_nulls && (v.from & 3) == 0 && !c.shift && !c.is_real &&
	       c.mask == UINT64_MAX;
}

static const void *element_at(const pfs_device_value &v)
{
	return static_cast<const uint8_t *>(v.column.d_data) + (size_t)v.from * v.column.width;
}

extern "C" bool pfs_cuda_group_is_plain(const pfs_device_groups *groups,
					const pfs_device_keys *keys,
					const pfs_device_places *places)
{
	const pfs_device_key &key = keys->key[0];
	pfs_total_planes t;
	pfs_device_groups added = pfs_lay_out(&t, groups, false, false);
	const pfs_device_aggregate &sum = added.aggregate[0];
	const pfs_device_column &c = sum.value.column;

	if (places->d_mask || keys->n != 1 || key.d_map || key.stride != 1 ||
	    !is_read_whole(key.value) || key.value.column.is_signed || key.value.column.width > 4)
		return false;
	if (added.n_aggregates == 0)
		return true;
	return added.n_aggregates == 1 && sum.op == PFS_DEVICE_SUM && !sum.d_count && sum.d_value &&
	       is_read_whole(sum.value) && !c.base &&
	       (c.width == 8 || (c.width == 4 && !c.is_signed));
}

template <class K, class V, bool HAS_VALUE>
static int launch(const pfs_device_groups &groups, const plain_columns &columns,
		  const pfs_total_planes &t, uint32_t copies, cudaStream_t stream)
{
	const size_t bytes = (size_t)t.n * t.planes * 4;
	const unsigned most = bytes > SHARED_HALF ? BLOCKS : 2 * BLOCKS;
	static std::atomic<bool> is_allowed;
	int error = pfs_allow_shared(
		&is_allowed, reinterpret_cast<const void *>(group_plain_kernel<K, V, HAS_VALUE>),
		SHARED_MOST);

	if (error)
		return error;
	group_plain_kernel<K, V, HAS_VALUE>
		<<<std::min(pfs_blocks(columns.to - (columns.from & ~UINT64_C(3)), THREADS * 4),
			    most),
		   THREADS, bytes, stream>>>(groups, columns, t, copies);
	return PFS_CUDA(cudaGetLastError());
}

template <class K>
static int launch_by(const pfs_device_groups &groups, const plain_columns &columns,
		     const pfs_total_planes &t, uint32_t copies, cudaStream_t stream)
{
	if (groups.n_aggregates == 0)
		return launch<K, uint32_t, false>(groups, columns, t, copies, stream);
	return groups.aggregate[0].value.column.width == 8
		       ? launch<K, uint64_t, true>(groups, columns, t, copies, stream)
		       : launch<K, uint32_t, true>(groups, columns, t, copies, stream);
}

extern "C" int pfs_cuda_group_plain(const pfs_device_groups *groups, const pfs_device_keys *keys,
				    const pfs_device_places *places, uint32_t copies,
				    uint64_t early_to, cudaStream_t stream)
{
	const pfs_device_key &key = keys->key[0];
	pfs_total_planes t;
	const pfs_device_groups added = pfs_lay_out(&t, groups, false, false);
	plain_columns columns = {element_at(key.value),
				 NULL,
				 (uint32_t)((uint64_t)key.least - (uint64_t)key.value.column.base) -
					 1,
				 places->from,
				 places->to,
				 early_to};

	t.n = (uint32_t)groups->n * copies;
	if (added.n_aggregates)
		columns.d_values = element_at(added.aggregate[0].value);
	switch (key.value.column.width) {
	case 1:
		return launch_by<uint8_t>(added, columns, t, copies, stream);
	case 2:
		return launch_by<uint16_t>(added, columns, t, copies, stream);
	default:
		return launch_by<uint32_t>(added, columns, t, copies, stream);
	}
}
