/* SPDX-License-Identifier: MIT */
/* gpu/cuda/merge.cu - the equality join of two column indexes, which needs no table.
 *
 * Each key of the smaller index finds its range of the other one.  The pairs of all keys are one
 * sequence, of which each block writes an even share, however the pairs are distributed over the
 * keys.  Where most keys of the other index repeat, its list of *runs* is searched: each key once,
 * and where its first entry lies.  That list stays in the second-level cache, while the keys
 * themselves do not. */
#include "gpu/cuda/relation.cuh"

#define THREADS	 256
#define SHARE	 2048u				     /* pairs that a block writes */
#define TOGETHER 4				     /* pairs that a thread writes at once, */
#define TURNS	 ((int)SHARE / (THREADS * TOGETHER)) /* so many times */
#define BESIDE	 33 /* a warp cuts a range of keys into so many parts at a time */

/* ---- device code: runs of equal keys ---- */

static __global__ void run_bits_kernel(uint32_t *bits, const uint64_t *__restrict__ keys,
				       uint64_t n)
{
	PFS_EACH(i, (n + 31) / 32 * 32)
	{
		uint32_t word =
			__ballot_sync(PFS_ALL_LANES, i < n && (i == 0 || keys[i] != keys[i - 1]));

		if ((threadIdx.x & 31) == 0)
			bits[i / 32] = word;
	}
}

/* starts[n_runs] becomes n, the end of the last run. */
static __global__ void run_keys_kernel(uint64_t *run_keys, uint32_t *starts,
				       const uint64_t *__restrict__ keys, uint64_t n_runs,
				       uint64_t n)
{
	PFS_EACH(i, n_runs)
	{
		run_keys[i] = keys[starts[i]];
		if (i + 1 == n_runs)
			starts[n_runs] = (uint32_t)n;
	}
}

/* ---- device code: ranges ---- */

/* The first of ascending keys from..to that is not below (or, above: not at most) key. */
template <class T>
static __device__ __forceinline__ T bound(const T *__restrict__ keys, T from, T to, T key,
					  bool above)
{
	while (from < to) {
		T middle = (from + to) / 2;

		if (keys[middle] < key || (above && keys[middle] == key))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* The same of n keys, found by a whole warp. */
static __device__ __forceinline__ uint64_t bound_by_warp(const uint64_t *__restrict__ keys,
							 uint64_t n, uint64_t key, bool above)
{
	uint64_t from = 0, to = n;

	while (from < to) {
		uint64_t step = (to - from + BESIDE - 1) / BESIDE;
		uint64_t at = from + ((threadIdx.x & 31) + 1) * step - 1;
		bool is_passed = at < to && (keys[at] < key || (above && keys[at] == key));
		uint32_t passed = __popc(__ballot_sync(PFS_ALL_LANES, is_passed));

		if (passed < 32)
			to = min(to, from + (passed + 1) * step - 1);
		from += passed * step;
	}
	return from;
}

/* Behind the last of those that are equal to keys[from]: most often near. */
static __device__ __forceinline__ uint64_t end_of(const uint64_t *__restrict__ keys, uint64_t from,
						  uint64_t to)
{
	uint64_t key = keys[from], step = 1;

	while (from + step < to && keys[from + step] == key) {
		from += step;
		step *= 2;
	}
	return bound(keys, from, min(from + step, to), key, true);
}

/* Of each key of the smaller index its rows and the other's, at the first of the equal ones.  A
 * block's keys lie beside each other, so all of them are looked for between the bounds of its first
 * and last. */
static __global__ void __launch_bounds__(THREADS)
	merge_count_kernel(uint64_t *pairs, pfs_merge_range *ranges,
			   const uint64_t *__restrict__ few, uint64_t n,
			   const __grid_constant__ pfs_merge_side many)
{
	__shared__ uint64_t ends[2];
	const uint64_t base = (uint64_t)blockIdx.x * THREADS, i = base + threadIdx.x;
	const uint64_t last = min(base + THREADS, n) - 1;
	const uint64_t *keys = many.d_run_keys ? many.d_run_keys : many.d_keys;
	const uint64_t from = many.d_run_keys ? 0 : many.from, warp = threadIdx.x >> 5;
	const uint64_t n_keys = many.d_run_keys ? many.n_runs : many.to - many.from;
	pfs_merge_range range = {};
	uint64_t key, first, end;

	if (warp < 2)
		ends[warp] =
			from + bound_by_warp(keys + from, n_keys, few[warp ? last : base], false);
	__syncthreads();
	if (i >= n)
		return;
	key = few[i];
	first = bound(keys, ends[0], ends[1], key, false);
	if (first < from + n_keys && keys[first] == key && (i == 0 || few[i - 1] != key)) {
		if (many.d_run_keys) {
			end = min((uint64_t)many.d_run_starts[first + 1], many.to);
			first = max((uint64_t)many.d_run_starts[first], many.from);
		} else {
			end = end_of(keys, first, many.to);
		}
		range.few = (uint32_t)(end_of(few, i, n) - i);
		range.first = (uint32_t)first;
		range.many = (uint32_t)(end > first ? end - first : 0);
	}
	ranges[i] = range;
	pairs[i] = (uint64_t)range.few * range.many;
}

/* keys[s]: the key that pair s * SHARE is of, and at the end the last pair's; a warp finds one. */
static __global__ void merge_shares_kernel(uint32_t *keys, const uint64_t *__restrict__ starts,
					   uint64_t n, uint64_t total, uint32_t shares)
{
	PFS_EACH(thread, ((size_t)shares + 1) * 32)
	{
		uint64_t share = thread / 32, pair = min(share * SHARE, total - 1);
		uint64_t key = bound_by_warp(starts, n, pair, true) - 1;

		if (thread % 32 == 0)
			keys[share] = (uint32_t)key;
	}
}

/* ---- device code: pairs ---- */

/* What all blocks write from. */
struct merge_writing {
	const uint64_t *starts; /* of each key's pairs */
	const pfs_merge_range *ranges;
	const uint32_t *few, *many; /* rows */
	bool swapped;		    /* the smaller index is right's */
};

/* out[at..] = rows, but none from `to` on; at is a multiple of TOGETHER. */
static __device__ __forceinline__ void write_rows(uint32_t *out, const uint32_t (&rows)[TOGETHER],
						  uint32_t at, uint32_t to)
{
	if (at + TOGETHER <= to) {
		__stcs(reinterpret_cast<uint4 *>(out + at),
		       make_uint4(rows[0], rows[1], rows[2], rows[3]));
		return;
	}
#pragma unroll
	for (int r = 0; r < TOGETHER; r++)
		if (at + r < to)
			out[at + r] = rows[r];
}

/* The last of a share's keys key..n whose pairs begin at or before `pair`: key's do. */
template <class T>
static __device__ __forceinline__ uint32_t key_in(const T *__restrict__ starts, uint32_t key,
						  uint32_t n, uint32_t pair)
{
	if (key + 1 == n || starts[key + 1] > pair)
		return key;
	return (uint32_t)bound(starts, (T)(key + 1), (T)n, (T)pair, true) - 1;
}

/* Which rows of the two a key's pair is of: first those of left's first row. */
static __device__ __forceinline__ void pair_of(const pfs_merge_range &range, uint32_t pair,
					       bool swapped, uint32_t *few, uint32_t *many)
{
	uint32_t right = swapped ? range.few : range.many;
	uint32_t i = pair < right ? 0 : right == 1 ? pair : pair / right, j = pair - i * right;

	*few = swapped ? j : i;
	*many = range.first + (swapped ? i : j);
}

/* A block writes pairs from..to, whose keys are `keys` of them from key `first` on, whatever these
 * are. */
static __device__ void write_any(uint32_t *few_out, uint32_t *many_out, const merge_writing &w,
				 uint32_t from, uint32_t to, uint64_t first, uint32_t keys)
{
	const uint64_t *starts = w.starts + first;

	for (uint32_t at = threadIdx.x * TOGETHER; at < to - from; at += THREADS * TOGETHER) {
		const uint32_t pair = from + at;
		uint32_t few_rows[TOGETHER], many_rows[TOGETHER], key = 0;

#pragma unroll
		for (int r = 0; r < TOGETHER; r++) {
			uint32_t p = min(pair + r, to - 1), in_few, in_many;

			key = key_in(starts, key, keys, p);
			pair_of(w.ranges[first + key], p - (uint32_t)starts[key], w.swapped,
				&in_few, &in_many);
			few_rows[r] = __ldg(w.few + first + key + in_few);
			many_rows[r] = __ldg(w.many + in_many);
		}
		write_rows(few_out, few_rows, pair, to);
		write_rows(many_out, many_rows, pair, to);
	}
}

/* A share's keys, each once in the smaller index: where its pairs begin, how far behind them its
 * entries of the other index lie, and its row. */
struct share_keys {
	uint32_t start[SHARE + 1], ahead[SHARE], row[SHARE];
};

/* The rows of pairs pair..pair + TOGETHER, of which those from `to` on are the last one again. */
static __device__ __forceinline__ void
find_rows(uint32_t (&few_rows)[TOGETHER], uint32_t (&many_rows)[TOGETHER], const share_keys &known,
	  uint32_t keys, const uint32_t *__restrict__ many, uint32_t pair, uint32_t to)
{
	uint32_t key = bound(known.start, 0u, keys, pair, true) - 1;
	uint32_t at[TOGETHER];
	bool is_together = true;

#pragma unroll
	for (int r = 0; r < TOGETHER; r++) {
		uint32_t p = min(pair + r, to - 1);

		key = key_in(known.start, key, keys, p);
		at[r] = p + known.ahead[key];
		few_rows[r] = known.row[key];
		is_together = is_together && at[r] == at[0] + r;
	}
	if (is_together && (reinterpret_cast<uintptr_t>(many + at[0]) & 15) == 0) {
		uint4 four = __ldcs(reinterpret_cast<const uint4 *>(many + at[0]));

		many_rows[0] = four.x, many_rows[1] = four.y;
		many_rows[2] = four.z, many_rows[3] = four.w;
		return;
	}
#pragma unroll
	for (int r = 0; r < TOGETHER; r++)
		many_rows[r] = __ldg(many + at[r]);
}

/* A block writes a share. */
static __global__ void __launch_bounds__(THREADS)
	merge_write_kernel(uint32_t *__restrict__ few_out, uint32_t *__restrict__ many_out,
			   const uint32_t *__restrict__ share_key,
			   const __grid_constant__ merge_writing w, uint32_t total)
{
	__shared__ share_keys known;
	const uint32_t from = blockIdx.x * SHARE, to = from + min(SHARE, total - from);
	const uint32_t first = share_key[blockIdx.x], keys = share_key[blockIdx.x + 1] + 1 - first;
	uint32_t few_rows[TURNS][TOGETHER], many_rows[TURNS][TOGETHER];
	bool is_plain = keys <= SHARE;

	for (uint32_t i = threadIdx.x; keys <= SHARE && i < keys; i += THREADS) {
		const pfs_merge_range range = w.ranges[first + i];
		uint32_t start = (uint32_t)w.starts[first + i];

		known.start[i] = start;
		known.ahead[i] = range.first - start;
		known.row[i] = w.few[first + i];
		is_plain = is_plain && range.few <= 1;
	}
	if (!__syncthreads_and(is_plain)) {
		write_any(few_out, many_out, w, from, to, first, keys);
		return;
	}
#pragma unroll
	for (int turn = 0; turn < TURNS; turn++) {
		uint32_t pair = from + (turn * THREADS + threadIdx.x) * TOGETHER;

		if (pair < to)
			find_rows(few_rows[turn], many_rows[turn], known, keys, w.many, pair, to);
	}
#pragma unroll
	for (int turn = 0; turn < TURNS; turn++) {
		uint32_t pair = from + (turn * THREADS + threadIdx.x) * TOGETHER;

		if (pair >= to)
			continue;
		write_rows(few_out, few_rows[turn], pair, to);
		write_rows(many_out, many_rows[turn], pair, to);
	}
}

/* ---- launches ---- */

extern "C" int pfs_cuda_run_bits(uint32_t *d_bits, const uint64_t *d_keys, uint64_t n,
				 cudaStream_t stream)
{
	run_bits_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_bits, d_keys, n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_run_keys(uint64_t *d_run_keys, uint32_t *d_starts, const uint64_t *d_keys,
				 uint64_t n_runs, uint64_t n, cudaStream_t stream)
{
	run_keys_kernel<<<pfs_grid(n_runs), 256, 0, stream>>>(d_run_keys, d_starts, d_keys, n_runs,
							      n);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_merge_count(uint64_t *d_pairs, pfs_merge_range *d_ranges,
				    const uint64_t *d_few, uint64_t n, const pfs_merge_side *many,
				    cudaStream_t stream)
{
	if (n == 0)
		return 0;
	merge_count_kernel<<<pfs_blocks(n, THREADS), THREADS, 0, stream>>>(d_pairs, d_ranges, d_few,
									   n, *many);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" uint64_t pfs_cuda_merge_shares(uint64_t total)
{
	return (total + SHARE - 1) / SHARE;
}

extern "C" int pfs_cuda_merge_write(uint32_t *d_few_out, uint32_t *d_many_out,
				    uint32_t *d_share_keys, const uint64_t *d_starts, uint64_t n,
				    const pfs_merge_range *d_ranges, const uint32_t *d_few,
				    const uint32_t *d_many, uint64_t total, bool swapped,
				    cudaStream_t stream)
{
	const uint32_t shares = (uint32_t)pfs_cuda_merge_shares(total);
	const merge_writing w = {d_starts, d_ranges, d_few, d_many, swapped};
	int error;

	if (total == 0)
		return 0;
	merge_shares_kernel<<<pfs_grid(((size_t)shares + 1) * 32), 256, 0, stream>>>(
		d_share_keys, d_starts, n, total, shares);
	error = PFS_CUDA(cudaGetLastError());
	if (error)
		return error;
	merge_write_kernel<<<shares, THREADS, 0, stream>>>(d_few_out, d_many_out, d_share_keys, w,
							   (uint32_t)total);
	return PFS_CUDA(cudaGetLastError());
}
