/* SPDX-License-Identifier: MIT */
/* gpu/cuda/codes.cu - codes from parents and primes: how wide, which row, then the product.
 *
 * A thread a directory walks up its path.  In pre-order the directories of a block share the path
 * above the block's first one, so the block multiplies that out once and a thread walks only to
 * where it leaves the block; in any other order, or above a path that is too long, it walks all the
 * way. */
#include "gpu/cuda/device.cuh"
#include "gpu/engine_impl.h"

#define THREADS	       256u
#define BLOCK	       1024u /* directories a block: the shared path costs it once */
#define EACH	       (BLOCK / THREADS)
#define SHARED_LEVELS  64u /* of the shared path */
#define REGISTER_LIMBS 16u /* wider codes are multiplied in local memory */

/* ---- device code ---- */

static __device__ const uint8_t widths[PFS_N_WIDTHS] = PFS_WIDTHS;

struct shared_path {
	uint32_t number[SHARED_LEVELS]; /* descending: from the first directory's parent up */
	uint32_t prime[SHARED_LEVELS];
	float bits[SHARED_LEVELS];			   /* logarithm of the code of number[i] */
	uint32_t limbs[REGISTER_LIMBS][SHARED_LEVELS + 1]; /* and the code itself; + 1: banks */
	uint32_t n, first;
	pfs_cuda_directory own[BLOCK]; /* the block's directories, for walks inside it */
};

static __device__ void load_own(shared_path &path, const pfs_cuda_codes &c, uint32_t first)
{
	const uint2 *from = reinterpret_cast<const uint2 *>(c.d_directories);

	for (uint32_t i = threadIdx.x; i < BLOCK; i += THREADS) {
		uint2 x = first + i < c.n ? from[first + i] : make_uint2(0, 1);

		path.own[i].parent = x.x;
		path.own[i].prime = x.y;
	}
}

static __device__ __forceinline__ pfs_cuda_directory directory_at(const shared_path &path,
								  const pfs_cuda_codes &c,
								  uint32_t d)
{
	return d - path.first < BLOCK ? path.own[d - path.first] : c.d_directories[d];
}

/* One lane follows the parents of the block's first directory; numbers fall in pre-order.  A path
 * that is too long, or not of falling numbers, is not used. */
static __device__ void follow_shared_path(shared_path &path, const pfs_cuda_directory *directories,
					  uint32_t first)
{
	uint32_t n = 0, below = first;

	path.first = first;
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
		 * pfs_bits_most() covers either order. */
		for (uint32_t i = path.n; i-- > threadIdx.x;)
			bits += __log2f((float)path.prime[i]);
		path.bits[threadIdx.x] = bits;
	}
}

static __device__ __forceinline__ void multiply_registers(uint32_t (&x)[REGISTER_LIMBS], uint32_t p,
							  uint32_t n_limbs)
{
	uint64_t carry = 0;

#pragma unroll
	for (unsigned q = 0; q < REGISTER_LIMBS; q += 2) {
		if (q >= n_limbs)
			break;
#pragma unroll
		for (unsigned l = q; l < q + 2; l++) {
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

/* The whole product, from the directory up; its limbs, 0: more than are kept. */
static __device__ uint32_t multiply_path(uint32_t *limbs, const pfs_cuda_codes &c,
					 const shared_path &path, uint32_t d)
{
	uint32_t n = 1;

	limbs[0] = 1;
	for (uint32_t a = d; a;) {
		pfs_cuda_directory y = directory_at(path, c, a);

		if (!pfs_multiply_on(limbs, &n, PFS_LIMBS_MAX, y.prime))
			return 0;
		a = y.parent;
	}
	return n;
}

/* Too near to the last width's edge for logarithms. */
static __device__ __noinline__ bool fits_exactly(const pfs_cuda_codes &c, const shared_path &path,
						 uint32_t d)
{
	uint32_t limbs[PFS_LIMBS_MAX];

	return multiply_path(limbs, c, path, d) != 0;
}

/* Index of the width that a directory needs. */
static __device__ uint32_t width_of(const shared_path &path, const float *own_bits,
				    const pfs_cuda_codes &c, uint32_t d)
{
	float bits = 0;
	uint32_t a = d, w = 0;

	while (a && pfs_bits_least(bits) <= 32.0f * PFS_LIMBS_MAX) {
		uint32_t own = a - path.first;

		if (own < BLOCK) {
			bits += own_bits[own];
			a = path.own[own].parent;
			continue;
		}
		if (a < path.first) {
			uint32_t at = find_on_path(path, a);

			if (at < path.n) {
				bits += path.bits[at];
				break;
			}
		}
		bits += __log2f((float)c.d_directories[a].prime);
		a = c.d_directories[a].parent;
	}
	if (pfs_bits_least(bits) > 32.0f * PFS_LIMBS_MAX)
		return PFS_CUDA_DEEP;
	bits = pfs_bits_most(bits);
	if (bits > 32.0f * PFS_LIMBS_MAX)
		return fits_exactly(c, path, d) ? PFS_N_WIDTHS - 1 : PFS_CUDA_DEEP;
	while (32.0f * widths[w] < bits)
		w++;
	return w;
}

static __device__ __forceinline__ bool concerns(const uint32_t *concerned, uint32_t d)
{
	return !concerned || pfs_bit(concerned, d);
}

static __device__ bool any_concerned(const pfs_cuda_codes &c, const uint32_t *concerned,
				     uint32_t first)
{
	bool mine = !concerned;

	/* A block's bits are whole words. */
	if (concerned && threadIdx.x < BLOCK / 32 && first + threadIdx.x * 32 < c.n)
		mine = concerned[first / 32 + threadIdx.x] != 0;
	return __syncthreads_or(mine);
}

static __global__ void __launch_bounds__(THREADS)
	widths_kernel(pfs_cuda_codes c, const uint32_t *__restrict__ concerned)
{
	__shared__ shared_path path;
	__shared__ float own_bits[BLOCK];
	__shared__ uint32_t counts[PFS_CUDA_WIDTHS], lost;
	uint32_t first = blockIdx.x * BLOCK;

	if (!any_concerned(c, concerned, first))
		return;
	if (threadIdx.x < PFS_CUDA_WIDTHS)
		counts[threadIdx.x] = 0;
	if (threadIdx.x == 0) {
		lost = 0;
		follow_shared_path(path, c.d_directories, first);
	}
	load_own(path, c, first);
	__syncthreads();
	sum_shared_bits(path);
	for (uint32_t i = threadIdx.x; i < BLOCK; i += THREADS)
		own_bits[i] = __log2f((float)path.own[i].prime);
	__syncthreads();
	for (uint32_t d = first + threadIdx.x; d < first + BLOCK && d < c.n; d += THREADS) {
		uint32_t row, w = PFS_CUDA_UNUSED;

		if (d == 0 || !concerns(concerned, d))
			continue;
		row = c.d_row_of[d];
		if (c.d_directory_slot[d] != PFS_NO_SLOT)
			w = width_of(path, own_bits, c, d);
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
	PFS_EACH(i, n)
	{
		tiles[first + i].at = at + (uint32_t)i * n_limbs;
		tiles[first + i].n_limbs = n_limbs;
	}
}

/* The place of a directory among the block's that need a row of that width; -> counts[w]. */
static __device__ uint32_t place_in_block(uint32_t (&counts)[PFS_CUDA_WIDTHS], bool needs,
					  uint32_t w)
{
	uint32_t peers = __match_any_sync(PFS_ALL_LANES, needs ? w : PFS_CUDA_UNUSED);
	uint32_t lane = threadIdx.x & 31, leader = __ffs(peers) - 1, base = 0;

	if (needs && lane == leader)
		base = atomicAdd(&counts[w], __popc(peers));
	return __shfl_sync(PFS_ALL_LANES, base, leader) + __popc(peers & ((1u << lane) - 1));
}

static __device__ void write_registers(const pfs_cuda_codes &c, const shared_path &path, uint32_t d,
				       uint32_t *out, uint32_t n_limbs)
{
	uint32_t x[REGISTER_LIMBS] = {1}, exit = d, at = path.n;

	/* First where the path leaves the block, then the product from there down. */
	while (exit >= path.first && exit)
		exit = directory_at(path, c, exit).parent;
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
		pfs_cuda_directory y = directory_at(path, c, a);

		multiply_registers(x, y.prime, n_limbs);
		a = y.parent;
	}
#pragma unroll
	for (unsigned l = 0; l < REGISTER_LIMBS; l++)
		if (l < n_limbs)
			out[(size_t)l * PFS_ROWS] = x[l];
}

static __device__ __noinline__ void write_wide(const pfs_cuda_codes &c, const shared_path &path,
					       uint32_t d, uint32_t *out, uint32_t n_limbs)
{
	uint32_t x[PFS_LIMBS_MAX], used = multiply_path(x, c, path, d);

	for (uint32_t l = 0; l < n_limbs; l++)
		out[(size_t)l * PFS_ROWS] = l < used ? x[l] : 0;
}

/* What the block's directories need, by width: all, and those without a row. */
struct shared_order {
	uint32_t n[PFS_CUDA_WIDTHS], n_new[PFS_CUDA_WIDTHS];
	uint32_t start[PFS_CUDA_WIDTHS],
		base[PFS_CUDA_WIDTHS]; /* in the order below; of new rows */
	uint32_t total;
	uint32_t row[BLOCK];
	uint16_t directory[BLOCK]; /* in the block */
};

/* Starts of the widths in the block's order, and the block's share of every width's new rows. */
static __device__ void settle_order(shared_order &order, const pfs_cuda_codes &c)
{
	uint32_t w = threadIdx.x;

	if (w < PFS_CUDA_WIDTHS) {
		uint32_t start = 0;

		for (uint32_t v = 0; v < w; v++)
			start += order.n[v];
		order.start[w] = start;
		if (w == PFS_CUDA_WIDTHS - 1)
			order.total = start + order.n[w];
		if (order.n_new[w])
			order.base[w] = atomicAdd(&c.d_counters->cursor[w], order.n_new[w]);
	}
}

static __device__ __forceinline__ uint32_t new_row(const pfs_cuda_rows &rows, uint32_t w,
						   uint32_t i)
{
	return i < rows.n_open[w] ? rows.open[w] + i : rows.fresh[w] + (i - rows.n_open[w]);
}

/* The block's directories are taken by width, so that a warp's codes are equally long and their
 * rows neighbours. */
static __device__ void order_by_width(shared_order &order, const pfs_cuda_codes &c,
				      const uint32_t *concerned, const pfs_cuda_rows &rows,
				      uint32_t first)
{
	uint32_t row[EACH], place[EACH], place_new[EACH], width[EACH];

#pragma unroll
	for (uint32_t k = 0; k < EACH; k++) {
		uint32_t d = first + k * THREADS + threadIdx.x;
		bool mine = d > 0 && d < c.n && concerns(concerned, d);

		width[k] = mine ? c.d_width[d] : PFS_CUDA_UNUSED;
		mine = width[k] < PFS_N_WIDTHS;
		row[k] = mine ? c.d_row_of[d] : 0;
		place[k] = place_in_block(order.n, mine, width[k]);
		place_new[k] = place_in_block(order.n_new, mine && row[k] == 0, width[k]);
	}
	__syncthreads();
	settle_order(order, c);
	__syncthreads();
#pragma unroll
	for (uint32_t k = 0; k < EACH; k++) {
		uint32_t w = width[k], at, own = k * THREADS + threadIdx.x;

		if (w >= PFS_N_WIDTHS)
			continue;
		if (row[k] == 0) {
			row[k] = new_row(rows, w, order.base[w] + place_new[k]);
			c.d_row_of[first + own] = row[k];
		}
		at = order.start[w] + place[k];
		order.directory[at] = (uint16_t)own;
		order.row[at] = row[k];
	}
	__syncthreads();
}

static __global__ void __launch_bounds__(THREADS)
	write_kernel(pfs_cuda_codes c, const uint32_t *__restrict__ concerned,
		     const __grid_constant__ pfs_cuda_rows rows)
{
	__shared__ shared_path path;
	__shared__ shared_order order;
	uint32_t first = blockIdx.x * BLOCK;

	if (!any_concerned(c, concerned, first))
		return;
	if (threadIdx.x < PFS_CUDA_WIDTHS)
		order.n[threadIdx.x] = order.n_new[threadIdx.x] = 0;
	if (threadIdx.x == 0)
		follow_shared_path(path, c.d_directories, first);
	load_own(path, c, first);
	__syncthreads();
	multiply_shared_path(path);
	order_by_width(order, c, concerned, rows, first);
	for (uint32_t i = threadIdx.x; i < order.total; i += THREADS) {
		uint32_t d = first + order.directory[i], r = order.row[i];
		pfs_cuda_tile tile = c.d_tiles[r / PFS_ROWS];
		uint32_t *out = c.d_pool + (size_t)tile.at * PFS_ROWS + r % PFS_ROWS;

		if (tile.n_limbs <= REGISTER_LIMBS)
			write_registers(c, path, d, out, tile.n_limbs);
		else
			write_wide(c, path, d, out, tile.n_limbs);
	}
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
	PFS_EACH(i, n)
	{
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
	widths_kernel<<<pfs_blocks(c->n, BLOCK), THREADS, 0, stream>>>(*c, d_concerned);
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
	write_kernel<<<pfs_blocks(c->n, BLOCK), THREADS, 0, stream>>>(*c, d_concerned, *rows);
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
