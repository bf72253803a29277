/* SPDX-License-Identifier: MIT */
/* gpu/cuda/tree.cu - questions that parents and primes answer: children, membership, factors, sums.
 */
#include <cub/device/device_scan.cuh>

#include "gpu/cuda/device.cuh"

#define ROLL_THREADS 256u
#define ROLL_TILE    4096u /* slots a block */
#define ROLL_CHUNK   64u   /* slots whose sum is kept */
#define NO_SLOT	     UINT32_MAX

typedef unsigned long long wide;

/* ---- device code ---- */

static __global__ void __launch_bounds__(256)
	children_kernel(pfs_cuda_tree t, uint32_t *__restrict__ bits, size_t words,
			uint32_t directory, uint64_t from, uint64_t to)
{
	/* Whole warps: words is a multiple of 32, a word's 32 slots are eight lanes' fours. */
	PFS_EACH(four, words * 8)
	{
		uint64_t slot = (uint64_t)four * 4;
		uint32_t nibble = 0;

		if (slot + 4 > from && slot < to) {
			uint4 home = pfs_load4(t.d_home + slot);

			nibble = (home.x == directory) | (home.y == directory) << 1 |
				 (home.z == directory) << 2 | (home.w == directory) << 3;
		}
		pfs_store_nibbles(nibble, bits, four);
	}
}

/* The directory itself has that home, its subdirectories have not. */
static __global__ void subdirectories_kernel(pfs_cuda_tree t, uint32_t *bits, uint32_t directory)
{
	PFS_EACH(d, t.n_directories)
	{
		uint32_t slot = t.d_directory_slot[d];

		if (slot == NO_SLOT)
			continue;
		if (d == directory)
			atomicAnd(bits + (slot >> 5), ~(1u << (slot & 31)));
		else if (t.d_directories[d].parent == directory)
			atomicOr(bits + (slot >> 5), 1u << (slot & 31));
	}
}

static __global__ void under_any_kernel(pfs_cuda_tree t, uint8_t *__restrict__ under,
					const uint32_t *__restrict__ slots, size_t n,
					const uint32_t *__restrict__ marks)
{
	PFS_EACH(i, n)
	{
		uint32_t slot = slots[i], d = slot < t.n_slots ? t.d_home[slot] : 0;

		while (d && !pfs_bit(marks, d))
			d = t.d_directories[d].parent;
		under[i] = d != 0;
	}
}

static __global__ void dividing_kernel(pfs_cuda_tree t, uint32_t *found, size_t capacity,
				       wide *count, const uint32_t *__restrict__ limbs,
				       size_t n_limbs)
{
	PFS_EACH(d, t.n_directories)
	{
		if (t.d_directory_slot[d] == NO_SLOT ||
		    !pfs_divides(pfs_divisor_of(t.d_directories[d].prime), limbs, (unsigned)n_limbs,
				 1))
			continue;
		wide at = atomicAdd(count, 1ull);

		if (at < capacity)
			found[at] = (uint32_t)d;
	}
}

static __global__ void find_prime_kernel(pfs_cuda_tree t, uint64_t prime, wide *count)
{
	PFS_EACH(i, t.n_slots)
	if (__ldcs(reinterpret_cast<const wide *>(t.d_prime) + i) == prime)
		*count = i + 1;
}

/* ---- sums where subtrees are ranges: prefix sums, once a chunk, and the rest within a block ----
 */

static __device__ __forceinline__ wide value_of(const int64_t *values, size_t n, size_t i)
{
	if (i >= n)
		return 0;
	return values ? (wide)values[i] : 1;
}

static __global__ void __launch_bounds__(256)
	chunk_sums_kernel(wide *__restrict__ sums, const int64_t *__restrict__ values, size_t n)
{
	/* A warp takes four chunks, each with one 16-byte load a lane. */
	size_t warp = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
	size_t base = warp * 4 * ROLL_CHUNK + lane * 2;
	wide sum[4];

	if (values && (warp + 1) * 4 * ROLL_CHUNK <= n) {
		longlong2 v[4];

#pragma unroll
		for (unsigned k = 0; k < 4; k++)
			v[k] = __ldcs(reinterpret_cast<const longlong2 *>(values + base +
									  k * ROLL_CHUNK));
#pragma unroll
		for (unsigned k = 0; k < 4; k++)
			sum[k] = (wide)v[k].x + (wide)v[k].y;
	} else {
#pragma unroll
		for (unsigned k = 0; k < 4; k++)
			sum[k] = value_of(values, n, base + k * ROLL_CHUNK) +
				 value_of(values, n, base + k * ROLL_CHUNK + 1);
	}
#pragma unroll
	for (unsigned step = 16; step; step /= 2)
#pragma unroll
		for (unsigned k = 0; k < 4; k++)
			sum[k] += __shfl_xor_sync(PFS_ALL_LANES, sum[k], step);
#pragma unroll
	for (unsigned k = 0; k < 4; k++)
		if (lane == k && (warp * 4 + k) * ROLL_CHUNK < n)
			sums[warp * 4 + k] = sum[k];
}

/* The sum before slot i, from the chunks' prefix sums. */
static __device__ wide prefix_at(const wide *prefix, const int64_t *values, size_t n, size_t i)
{
	wide sum;

	if (i >= n)
		i = n;
	sum = prefix[i / ROLL_CHUNK];
	for (size_t k = i / ROLL_CHUNK * ROLL_CHUNK; k < i; k++)
		sum += value_of(values, n, k);
	return sum;
}

static __device__ uint32_t first_at_or_after(const uint32_t *directory_slot, uint32_t n,
					     size_t slot)
{
	uint32_t low = 1, high = n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (directory_slot[middle] < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* firsts[i]: the first directory of block i's; a search in every block would hold it up. */
static __global__ void firsts_kernel(pfs_cuda_tree t, uint32_t *firsts, size_t n_blocks)
{
	PFS_EACH(i, n_blocks + 1)
	firsts[i] = first_at_or_after(t.d_directory_slot, t.n_directories, i * ROLL_TILE);
}

static __device__ __forceinline__ uint32_t padded(uint32_t i)
{
	return i + (i >> 4); /* sixteen values a thread: without it all in few banks */
}

/* Directories are numbered in the order of their slots, so a block's are a range of numbers. */
static __global__ void __launch_bounds__(ROLL_THREADS)
	roll_tile_kernel(pfs_cuda_tree t, int64_t *__restrict__ sums,
			 const int64_t *__restrict__ values, size_t n,
			 const wide *__restrict__ prefix, const uint32_t *__restrict__ firsts)
{
	__shared__ wide before[ROLL_TILE + ROLL_TILE / 16 + 2];
	__shared__ wide warps[ROLL_THREADS / 32];
	size_t base = (size_t)blockIdx.x * ROLL_TILE;
	uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	wide sum = 0, up;

	if (values && base + ROLL_TILE <= n) { /* all loads in flight at once */
		longlong2 v[ROLL_TILE / ROLL_THREADS / 2];

#pragma unroll
		for (uint32_t k = 0; k < ROLL_TILE / ROLL_THREADS / 2; k++)
			v[k] = __ldcs(reinterpret_cast<const longlong2 *>(values + base) +
				      k * ROLL_THREADS + threadIdx.x);
#pragma unroll
		for (uint32_t k = 0; k < ROLL_TILE / ROLL_THREADS / 2; k++) {
			before[padded(2 * (k * ROLL_THREADS + threadIdx.x))] = (wide)v[k].x;
			before[padded(2 * (k * ROLL_THREADS + threadIdx.x) + 1)] = (wide)v[k].y;
		}
	} else {
		for (uint32_t i = threadIdx.x; i < ROLL_TILE; i += ROLL_THREADS)
			before[padded(i)] = value_of(values, n, base + i);
	}
	__syncthreads();
	for (uint32_t i = 0; i < 16; i++)
		sum += before[padded(threadIdx.x * 16 + i)];
	up = sum;
	for (unsigned step = 1; step < 32; step *= 2) {
		wide other = __shfl_up_sync(PFS_ALL_LANES, up, step);

		if (lane >= step)
			up += other;
	}
	if (lane == 31)
		warps[warp] = up;
	__syncthreads();
	up += prefix[base / ROLL_CHUNK] - sum;
	for (uint32_t w = 0; w < warp; w++)
		up += warps[w];
	for (uint32_t i = 0; i < 16; i++) {
		wide value = before[padded(threadIdx.x * 16 + i)];

		before[padded(threadIdx.x * 16 + i)] = up;
		up += value;
	}
	if (threadIdx.x == ROLL_THREADS - 1)
		before[padded(ROLL_TILE)] = up;
	__syncthreads();
	for (uint32_t d = firsts[blockIdx.x] + threadIdx.x; d < firsts[blockIdx.x + 1];
	     d += ROLL_THREADS) {
		size_t from = t.d_directory_slot[d] - base, to = from + t.d_span[d];
		wide end = to <= ROLL_TILE ? before[padded((uint32_t)to)]
					   : prefix_at(prefix, values, n, base + to);

		sums[d] = (int64_t)(end - before[padded((uint32_t)from)]);
	}
}

/* ---- sums anywhere: a directory is complete when its subdirectories are, and is then added to the
 * one above by whoever completed it ---- */

/* Four neighbours a thread, which mostly have one home: one addition for them. */
static __global__ void own_sums_kernel(pfs_cuda_tree t, wide *sums,
				       const int64_t *__restrict__ values, size_t n)
{
	PFS_EACH(four, (t.n_slots + 3) / 4)
	{
		uint4 home4 = pfs_load4(t.d_home + four * 4); /* 0 past the end */
		uint32_t home[4] = {home4.x, home4.y, home4.z, home4.w};
		wide sum = 0;

#pragma unroll
		for (unsigned k = 0; k < 4; k++) {
			sum += values ? value_of(values, n, four * 4 + k) : 1;
			if (k == 3 || home[k] != home[k + 1]) {
				if (home[k] && sum)
					atomicAdd(sums + home[k], sum);
				sum = 0;
			}
		}
	}
}

/* A directory with many subdirectories would be a queue of additions to one place: a warp makes one
 * of its own first. */
static __global__ void pending_kernel(pfs_cuda_tree t, uint32_t *pending)
{
	PFS_EACH(i, ((size_t)t.n_directories + 31) / 32 * 32)
	{ /* whole warps */
		uint32_t up = i < t.n_directories ? t.d_directories[i].parent : 0;
		uint32_t peers = __match_any_sync(PFS_ALL_LANES, up);

		if (up && (threadIdx.x & 31) == __ffs(peers) - 1)
			atomicAdd(pending + up, __popc(peers));
	}
}

static __global__ void leaves_kernel(pfs_cuda_tree t, const uint32_t *__restrict__ pending,
				     uint32_t *__restrict__ leaves)
{
	PFS_EACH(i, ((size_t)t.n_directories + 31) / 32 * 32)
	{
		bool leaf = i > 0 && i < t.n_directories && pending[i] == 0 &&
			    t.d_directory_slot[i] != NO_SLOT;
		uint32_t word = __ballot_sync(PFS_ALL_LANES, leaf);

		if ((threadIdx.x & 31) == 0)
			leaves[i >> 5] = word;
	}
}

/* The sum over the peers, in parts that their number cannot make overflow. */
static __device__ __forceinline__ wide sum_peers(uint32_t peers, wide x)
{
	const uint32_t part = (1u << 22) - 1;

	return (wide)__reduce_add_sync(peers, (uint32_t)x & part) +
	       ((wide)__reduce_add_sync(peers, (uint32_t)(x >> 22) & part) << 22) +
	       ((wide)__reduce_add_sync(peers, (uint32_t)(x >> 44)) << 44);
}

static __global__ void add_upwards_kernel(pfs_cuda_tree t, wide *sums, uint32_t *pending,
					  const uint32_t *__restrict__ leaves)
{
	PFS_EACH(i, ((size_t)t.n_directories + 31) / 32 * 32)
	{
		uint32_t d = (uint32_t)i, up = 0, peers, n;
		wide sum = 0;

		if (i < t.n_directories && pfs_bit(leaves, d)) {
			up = t.d_directories[d].parent;
			sum = sums[d];
		}
		/* Leaves of one directory go up together, then one lane for them. */
		peers = __match_any_sync(PFS_ALL_LANES, up);
		sum = sum_peers(peers, sum);
		n = __popc(peers);
		if ((threadIdx.x & 31) != __ffs(peers) - 1)
			continue;
		while (up) {
			atomicAdd(sums + up, sum);
			__threadfence(); /* the sum before the count */
			if (atomicSub(pending + up, n) != n)
				break;
			__threadfence();
			sum = *(volatile wide *)(sums + up);
			up = t.d_directories[up].parent;
			n = 1;
		}
	}
}

/* ---- launches ---- */

int pfs_cuda_children(const pfs_cuda_tree *t, uint32_t *d_bits, size_t words, uint32_t directory,
		      uint64_t from, uint64_t to, cudaStream_t stream)
{
	children_kernel<<<pfs_grid(words * 8), 256, 0, stream>>>(*t, d_bits, words, directory, from,
								 to);
	subdirectories_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(*t, d_bits,
									      directory);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_under_any(const pfs_cuda_tree *t, uint8_t *d_under, const uint32_t *d_slots, size_t n,
		       const uint32_t *d_marks, cudaStream_t stream)
{
	under_any_kernel<<<pfs_grid(n), 256, 0, stream>>>(*t, d_under, d_slots, n, d_marks);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_dividing(const pfs_cuda_tree *t, uint32_t *d_found, size_t capacity, uint64_t *d_count,
		      const uint32_t *d_limbs, size_t n_limbs, cudaStream_t stream)
{
	dividing_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(
		*t, d_found, capacity, reinterpret_cast<wide *>(d_count), d_limbs, n_limbs);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_find_prime(const pfs_cuda_tree *t, uint64_t prime, uint64_t *d_count,
			cudaStream_t stream)
{
	find_prime_kernel<<<pfs_grid(t->n_slots), 256, 0, stream>>>(
		*t, prime, reinterpret_cast<wide *>(d_count));
	return PFS_CUDA(cudaGetLastError());
}

static size_t chunks_of(const pfs_cuda_tree *t)
{
	return t->n_slots / ROLL_CHUNK + 2;
}

/* Scratch: prefix sums, firsts, CUB's. */
static size_t prefix_size_of(const pfs_cuda_tree *t)
{
	return (chunks_of(t) * sizeof(wide) + 255) / 256 * 256;
}

static size_t firsts_size_of(const pfs_cuda_tree *t)
{
	return ((pfs_blocks(t->n_slots, ROLL_TILE) + 1) * sizeof(uint32_t) + 255) / 256 * 256;
}

size_t pfs_cuda_rollup_scratch(const pfs_cuda_tree *t)
{
	size_t size = 0;

	(void)cub::DeviceScan::ExclusiveSum(nullptr, size, (wide *)nullptr, (wide *)nullptr,
					    (int64_t)chunks_of(t));
	return prefix_size_of(t) + firsts_size_of(t) + size + 256;
}

int pfs_cuda_rollup_ranges(const pfs_cuda_tree *t, int64_t *d_sums, const int64_t *d_values,
			   size_t n_values, void *d_scratch, size_t scratch_size,
			   cudaStream_t stream)
{
	wide *d_prefix = static_cast<wide *>(d_scratch);
	size_t before = prefix_size_of(t) + firsts_size_of(t), size = scratch_size - before;
	uint32_t *d_firsts =
		reinterpret_cast<uint32_t *>(static_cast<char *>(d_scratch) + prefix_size_of(t));
	unsigned n_blocks = pfs_blocks(t->n_slots, ROLL_TILE);
	size_t n = d_values ? std::min<size_t>(n_values, t->n_slots) : t->n_slots;
	int rc = PFS_CUDA(cudaMemsetAsync(d_prefix, 0, prefix_size_of(t), stream));

	if (rc)
		return rc;
	chunk_sums_kernel<<<pfs_blocks(n, 2048), 256, 0, stream>>>(d_prefix, d_values, n);
	firsts_kernel<<<pfs_grid(n_blocks + 1), 256, 0, stream>>>(*t, d_firsts, n_blocks);
	rc = PFS_CUDA(cub::DeviceScan::ExclusiveSum(static_cast<char *>(d_scratch) + before, size,
						    d_prefix, d_prefix, (int64_t)chunks_of(t),
						    stream));
	if (rc)
		return rc;
	roll_tile_kernel<<<n_blocks, ROLL_THREADS, 0, stream>>>(*t, d_sums, d_values, n, d_prefix,
								d_firsts);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_rollup_any(const pfs_cuda_tree *t, int64_t *d_sums, const int64_t *d_values,
			size_t n_values, uint32_t *d_pending, cudaStream_t stream)
{
	wide *sums = reinterpret_cast<wide *>(d_sums);
	uint32_t *d_leaves = d_pending + t->n_directories;
	int rc = PFS_CUDA(cudaMemsetAsync(d_sums, 0, t->n_directories * sizeof(*d_sums), stream));

	rc = rc ? rc
		: PFS_CUDA(cudaMemsetAsync(d_pending, 0, t->n_directories * sizeof(*d_pending),
					   stream));
	if (rc)
		return rc;
	own_sums_kernel<<<pfs_blocks(t->n_slots, 1024), 256, 0, stream>>>(*t, sums, d_values,
									  n_values);
	pending_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(*t, d_pending);
	leaves_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(*t, d_pending, d_leaves);
	add_upwards_kernel<<<pfs_grid(t->n_directories), 256, 0, stream>>>(*t, sums, d_pending,
									   d_leaves);
	return PFS_CUDA(cudaGetLastError());
}
