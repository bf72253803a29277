/* SPDX-License-Identifier: MIT */
/* gpu/cuda/codes.cu - codes from parents and primes: how wide, which row, then the product.
 *
 * A thread a directory walks up its path.  In pre-order the directories of a block share the path above
 * the block's first one, so the block multiplies that out once and a thread walks only to where it
 * leaves the block; in any other order, or above a path that is too long, it walks all the way. */
#include "gpu/cuda/device.cuh"
#include "gpu/engine_impl.h"

#define THREADS 256u
#define SHARED_LEVELS 64u    /* of the shared path */
#define REGISTER_LIMBS 16u   /* wider codes are multiplied in place, in device memory */

/* ---- device code ---- */

static __device__ const uint8_t widths[PFS_N_WIDTHS] = PFS_WIDTHS;

struct shared_path {
	uint32_t number[SHARED_LEVELS]; /* descending: from the first directory's parent up */
	uint32_t prime[SHARED_LEVELS];
	float bits[SHARED_LEVELS]; /* logarithm of the code of number[i] */
	uint32_t limbs[REGISTER_LIMBS][SHARED_LEVELS + 1]; /* and the code itself; + 1: banks */
	uint32_t n;
};

/* One lane follows the parents of the block's first directory; numbers fall in pre-order.  A path that
 * is too long, or not of falling numbers, is not used. */
static __device__ void follow_shared_path(shared_path &path, const pfs_cuda_directory *directories,
					  uint32_t first)
{
	uint32_t n = 0, below = first;

	for (uint32_t a = directories[first].parent; a; a = directories[a].parent) {
		if (n == SHARED_LEVELS || a >= below) {
			n = 0;
			break;
		}
		path.number[n] = a;
		path.prime[n] = directories[a].prime;
		below = a;
		n++;
	}
	path.n = n;
}

static __device__ void sum_shared_bits(shared_path &path)
{
	if (threadIdx.x < path.n) {
		float bits = 0;

		/* From the top, as a directory that walks all the way does not; the margin of
		 * PFS_BITS_MARGIN covers either order. */
		for (uint32_t i = path.n; i-- > threadIdx.x;)
			bits += log2f((float)path.prime[i]);
		path.bits[threadIdx.x] = bits;
	}
}

static __device__ __forceinline__ void multiply_registers(uint32_t (&x)[REGISTER_LIMBS], uint32_t p,
							  uint32_t n_limbs)
{
	uint64_t carry = 0;

#pragma unroll
	for (unsigned q = 0; q < REGISTER_LIMBS; q += 4) {
		if (q >= n_limbs)
			break;
#pragma unroll
		for (unsigned l = q; l < q + 4; l++) {
			carry += (uint64_t)x[l] * p;
			x[l] = (uint32_t)carry;
			carry >>= 32;
		}
	}
}

/* Above what registers hold the product is wrong, and not used: those widths go another way. */
static __device__ void multiply_shared_path(shared_path &path)
{
	if (threadIdx.x < path.n) {
		uint32_t x[REGISTER_LIMBS] = {1};

		for (uint32_t i = threadIdx.x; i < path.n; i++)
			multiply_registers(x, path.prime[i], REGISTER_LIMBS);
#pragma unroll
		for (unsigned l = 0; l < REGISTER_LIMBS; l++)
			path.limbs[l][threadIdx.x] = x[l];
	}
}

/* The place of a directory on the shared path, or n. */
static __device__ __forceinline__ uint32_t find_on_path(const shared_path &path, uint32_t a)
{
	uint32_t low = 0, high = path.n;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (path.number[middle] > a)
			low = middle + 1;
		else
			high = middle;
	}
	return low < path.n && path.number[low] == a ? low : path.n;
}

/* Index of the width that a directory needs. */
static __device__ uint32_t width_of(const shared_path &path, const pfs_cuda_directory *directories,
				    uint32_t first, uint32_t d)
{
	float bits = 0;
	uint32_t a = d, w = 0;

	while (a && bits <= 32.0f * PFS_LIMBS_MAX) {
		if (a < first) {
			uint32_t at = find_on_path(path, a);

			if (at < path.n) {
				bits += path.bits[at];
				break;
			}
		}
		pfs_cuda_directory x = directories[a];

		bits += log2f((float)x.prime);
		a = x.parent;
	}
	bits = PFS_BITS_MARGIN(bits);
	if (bits > 32.0f * PFS_LIMBS_MAX)
		return PFS_CUDA_DEEP;
	while (32.0f * widths[w] < bits)
		w++;
	return w;
}

static __device__ __forceinline__ bool concerns(const uint32_t *concerned, uint32_t d)
{
	return !concerned || pfs_bit(concerned, d);
}

static __global__ void __launch_bounds__(THREADS)
	widths_kernel(pfs_cuda_codes c, const uint32_t *__restrict__ concerned)
{
	__shared__ shared_path path;
	__shared__ uint32_t counts[PFS_CUDA_WIDTHS], lost;
	uint32_t first = blockIdx.x * THREADS, d = first + threadIdx.x, w = PFS_CUDA_UNUSED;
	bool mine = d > 0 && d < c.n && concerns(concerned, d);

	if (!__syncthreads_or(mine))
		return;
	if (threadIdx.x < PFS_CUDA_WIDTHS)
		counts[threadIdx.x] = 0;
	if (threadIdx.x == 0) {
		lost = 0;
		follow_shared_path(path, c.d_directories, first);
	}
	__syncthreads();
	sum_shared_bits(path);
	__syncthreads();
	if (mine) {
		uint32_t row = c.d_row_of[d];

		if (c.d_directory_slot[d] != PFS_NO_SLOT)
			w = width_of(path, c.d_directories, first, d);
		c.d_width[d] = (uint8_t)w;
		if (row && (w >= PFS_N_WIDTHS || c.d_tiles[row / PFS_ROWS].n_limbs < widths[w])) {
			c.d_row_of[d] = row = 0;
			atomicAdd(&lost, 1);
		}
		if (row == 0 && w != PFS_CUDA_UNUSED)
			atomicAdd(&counts[w], 1);
	}
	__syncthreads();
	if (threadIdx.x < PFS_CUDA_WIDTHS && counts[threadIdx.x])
		atomicAdd(&c.d_counters->rows_needed[threadIdx.x], counts[threadIdx.x]);
	if (threadIdx.x == 0 && lost)
		atomicAdd(&c.d_counters->n_lost, lost);
}

static __global__ void tiles_kernel(pfs_cuda_tile *tiles, uint32_t first, uint32_t n, uint32_t at,
				    uint32_t n_limbs)
{
	PFS_EACH(i, n) {
		tiles[first + i].at = at + (uint32_t)i * n_limbs;
		tiles[first + i].n_limbs = n_limbs;
	}
}

/* Rows for the block's directories that need one: neighbours get neighbouring rows of a width. */
static __device__ uint32_t take_row(const pfs_cuda_codes &c, const pfs_cuda_rows &rows,
				    uint32_t (&counts)[PFS_CUDA_WIDTHS],
				    uint32_t (&bases)[PFS_CUDA_WIDTHS], bool needs, uint32_t w)
{
	uint32_t peers = __match_any_sync(PFS_ALL_LANES, needs ? w : PFS_CUDA_UNUSED);
	uint32_t lane = threadIdx.x & 31, leader = __ffs(peers) - 1, base = 0, i;

	if (needs && lane == leader)
		base = atomicAdd(&counts[w], __popc(peers));
	base = __shfl_sync(PFS_ALL_LANES, base, leader);
	__syncthreads();
	if (threadIdx.x < PFS_CUDA_WIDTHS && counts[threadIdx.x])
		bases[threadIdx.x] =
			atomicAdd(&c.d_counters->cursor[threadIdx.x], counts[threadIdx.x]);
	__syncthreads();
	if (!needs)
		return 0;
	i = bases[w] + base + __popc(peers & ((1u << lane) - 1));
	return i < rows.n_open[w] ? rows.open[w] + i : rows.fresh[w] + (i - rows.n_open[w]);
}

static __device__ void write_registers(const pfs_cuda_codes &c, const shared_path &path,
				       uint32_t first, uint32_t d, uint32_t *out, uint32_t n_limbs)
{
	uint32_t x[REGISTER_LIMBS] = {1}, exit = d, at = path.n;

	/* First where the path leaves the block, then the product from there down. */
	while (exit >= first && exit)
		exit = c.d_directories[exit].parent;
	if (exit)
		at = find_on_path(path, exit);
	if (at < path.n) {
#pragma unroll
		for (unsigned l = 0; l < REGISTER_LIMBS; l++)
			x[l] = path.limbs[l][at];
	} else {
		exit = 0;
	}
	for (uint32_t a = d; a != exit;) {
		pfs_cuda_directory y = c.d_directories[a];

		multiply_registers(x, y.prime, n_limbs);
		a = y.parent;
	}
#pragma unroll
	for (unsigned l = 0; l < REGISTER_LIMBS; l++)
		if (l < n_limbs)
			out[(size_t)l * PFS_ROWS] = x[l];
}

static __device__ void write_in_place(const pfs_cuda_codes &c, uint32_t d, uint32_t *out,
				      uint32_t n_limbs)
{
	uint32_t used = 1;

	for (uint32_t l = 0; l < n_limbs; l++)
		out[(size_t)l * PFS_ROWS] = l == 0;
	for (uint32_t a = d; a; a = c.d_directories[a].parent) {
		uint32_t carry = pfs_multiply(out, used, PFS_ROWS, c.d_directories[a].prime);

		if (carry && used < n_limbs)
			out[(size_t)used++ * PFS_ROWS] = carry;
	}
}

static __global__ void __launch_bounds__(THREADS)
	write_kernel(pfs_cuda_codes c, const uint32_t *__restrict__ concerned,
		     const __grid_constant__ pfs_cuda_rows rows)
{
	__shared__ shared_path path;
	__shared__ uint32_t counts[PFS_CUDA_WIDTHS], bases[PFS_CUDA_WIDTHS];
	uint32_t first = blockIdx.x * THREADS, d = first + threadIdx.x, row = 0, taken, w;
	bool mine = d > 0 && d < c.n && concerns(concerned, d);
	pfs_cuda_tile tile;
	uint32_t *out;

	if (!__syncthreads_or(mine))
		return;
	w = mine ? c.d_width[d] : PFS_CUDA_UNUSED;
	mine = mine && w < PFS_N_WIDTHS;
	if (mine)
		row = c.d_row_of[d];
	if (threadIdx.x < PFS_CUDA_WIDTHS)
		counts[threadIdx.x] = 0;
	if (threadIdx.x == 0)
		follow_shared_path(path, c.d_directories, first);
	__syncthreads();
	multiply_shared_path(path);
	taken = take_row(c, rows, counts, bases, mine && row == 0, w); /* synchronizes */
	if (!mine)
		return;
	if (row == 0)
		c.d_row_of[d] = row = taken;
	tile = c.d_tiles[row / PFS_ROWS];
	out = c.d_pool + (size_t)tile.at * PFS_ROWS + row % PFS_ROWS;
	if (tile.n_limbs <= REGISTER_LIMBS)
		write_registers(c, path, first, d, out, tile.n_limbs);
	else
		write_in_place(c, d, out, tile.n_limbs);
}

static __global__ void deep_kernel(pfs_cuda_codes c, uint32_t *deep)
{
	PFS_EACH(d, c.n)
		if (d && c.d_width[d] == PFS_CUDA_DEEP)
			deep[atomicAdd(&c.d_counters->n_deep, 1)] = (uint32_t)d;
}

static __global__ void read_kernel(pfs_cuda_codes c, uint32_t *limbs, uint32_t *n_limbs,
				   uint32_t first, uint32_t n)
{
	PFS_EACH(i, n) {
		uint32_t row = c.d_row_of[first + i];
		pfs_cuda_tile tile = c.d_tiles[row / PFS_ROWS];

		n_limbs[i] = row ? tile.n_limbs : 0;
		for (uint32_t l = 0; row && l < tile.n_limbs; l++)
			limbs[i * PFS_LIMBS_MAX + l] =
				c.d_pool[((size_t)tile.at + l) * PFS_ROWS + row % PFS_ROWS];
	}
}

/* ---- launches ---- */

int pfs_cuda_codes_widths(const pfs_cuda_codes *c, const uint32_t *d_concerned, cudaStream_t stream)
{
	widths_kernel<<<pfs_blocks(c->n, THREADS), THREADS, 0, stream>>>(*c, d_concerned);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_codes_tiles(pfs_cuda_tile *d_tiles, uint32_t first, uint32_t n, uint32_t at,
			 uint32_t n_limbs, cudaStream_t stream)
{
	tiles_kernel<<<pfs_grid(n), 256, 0, stream>>>(d_tiles, first, n, at, n_limbs);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_codes_write(const pfs_cuda_codes *c, const uint32_t *d_concerned,
			 const pfs_cuda_rows *rows, cudaStream_t stream)
{
	write_kernel<<<pfs_blocks(c->n, THREADS), THREADS, 0, stream>>>(*c, d_concerned, *rows);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_codes_deep(const pfs_cuda_codes *c, uint32_t *d_deep, cudaStream_t stream)
{
	deep_kernel<<<pfs_grid(c->n), 256, 0, stream>>>(*c, d_deep);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_codes_read(const pfs_cuda_codes *c, uint32_t *d_limbs, uint32_t *d_n_limbs,
			uint32_t first, uint32_t n, cudaStream_t stream)
{
	read_kernel<<<pfs_grid(n), 256, 0, stream>>>(*c, d_limbs, d_n_limbs, first, n);
	return PFS_CUDA(cudaGetLastError());
}
