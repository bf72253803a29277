/* SPDX-License-Identifier: MIT */
/* gpu/cuda/scan.cu - which codes does a prime divide?  A block scans a tile, a thread four rows of
 * it with 16-byte loads; then bits go from rows to directories and from directories to slots. */
#include "gpu/cuda/device.cuh"

/* ---- device code ---- */

/* Four rows of W limbs, all loads in flight before the first use. */
template <unsigned W>
static __device__ __forceinline__ void load_rows(uint4 (&x)[W], const uint32_t *rows)
{
#pragma unroll
	for (unsigned l = 0; l < W; l++)
		x[l] = pfs_load4(rows + (size_t)l * PFS_ROWS);
}

static __device__ __forceinline__ void step_rows(uint4 &carry, uint4 limb, pfs_divisor d)
{
	carry.x = pfs_exact_step(carry.x, limb.x, d);
	carry.y = pfs_exact_step(carry.y, limb.y, d);
	carry.z = pfs_exact_step(carry.z, limb.z, d);
	carry.w = pfs_exact_step(carry.w, limb.w, d);
}

static __device__ __forceinline__ uint32_t zero_rows(uint4 carry)
{
	return (carry.x == 0) | (carry.y == 0) << 1 | (carry.z == 0) << 2 | (carry.w == 0) << 3;
}

template <unsigned W>
static __device__ __forceinline__ uint32_t divide_rows(const uint4 (&x)[W], pfs_divisor d)
{
	uint4 carry = make_uint4(0, 0, 0, 0);

#pragma unroll
	for (unsigned l = 0; l < W; l++)
		step_rows(carry, x[l], d);
	return zero_rows(carry);
}

template <unsigned W>
static __device__ __forceinline__ uint32_t scan_rows(const uint32_t *rows, pfs_divisor d)
{
	uint4 x[W];

	load_rows<W>(x, rows);
	return divide_rows<W>(x, d);
}

/* Any width: four limbs at a time. */
static __device__ __forceinline__ uint32_t scan_wide(const uint32_t *rows, unsigned n_limbs,
						     pfs_divisor d)
{
	uint4 carry = make_uint4(0, 0, 0, 0);

	for (unsigned l = 0; l < n_limbs; l += 4) { /* wide tiles have multiples of four */
		uint4 x[4];

		load_rows<4>(x, rows + (size_t)l * PFS_ROWS);
#pragma unroll
		for (unsigned k = 0; k < 4; k++)
			step_rows(carry, x[k], d);
	}
	return zero_rows(carry);
}

static __global__ void __launch_bounds__(256)
	scan_kernel(const pfs_cuda_tile *__restrict__ tiles, const uint32_t *__restrict__ pool,
		    pfs_divisor d, uint32_t *__restrict__ bits)
{
	uint32_t tile = blockIdx.x + 1; /* the first is blank */
	pfs_cuda_tile t = tiles[tile];
	const uint32_t *rows = pool + (size_t)t.at * PFS_ROWS + threadIdx.x * 4;
	uint32_t nibble;

	switch (t.n_limbs) {
	case 1:
		nibble = scan_rows<1>(rows, d);
		break;
	case 2:
		nibble = scan_rows<2>(rows, d);
		break;
	case 3:
		nibble = scan_rows<3>(rows, d);
		break;
	case 4:
		nibble = scan_rows<4>(rows, d);
		break;
	case 5:
		nibble = scan_rows<5>(rows, d);
		break;
	case 6:
		nibble = scan_rows<6>(rows, d);
		break;
	case 7:
		nibble = scan_rows<7>(rows, d);
		break;
	case 8:
		nibble = scan_rows<8>(rows, d);
		break;
	case 10:
		nibble = scan_rows<10>(rows, d);
		break;
	case 12:
		nibble = scan_rows<12>(rows, d);
		break;
	case 14:
		nibble = scan_rows<14>(rows, d);
		break;
	case 16:
		nibble = scan_rows<16>(rows, d);
		break;
	default:
		nibble = scan_wide(rows, t.n_limbs, d);
		break;
	}
	pfs_store_nibbles(nibble, bits, ((size_t)tile * PFS_ROWS + threadIdx.x * 4) >> 2);
}

/* Many predicates on one row.  The chain costs five instructions a limb; the sum of limb * (2^(32
 * l) mod p) costs one multiply-add and is divisible by p just when the code is.  It fits in 64
 * bits, and hi - carry below, between -p and (W + 1) p, in 32, while (W + 2) p < 2^32:
 * divisors.max_limbs.
 *
 * sum = lo + 2^32 hi; q = lo / p (mod 2^32) and q p = lo + 2^32 carry, so p divides the sum when it
 * divides hi - carry + p, which is k p with k <= W + 1; times the inverse of p that is k. */
template <unsigned W>
static __device__ __forceinline__ bool divides_sum(const uint32_t (&x)[W], const uint32_t *powers,
						   pfs_divisor d)
{
	uint64_t sum = x[0];
	uint32_t carry, rest;

#pragma unroll
	for (unsigned l = 1; l < W; l++)
		sum += (uint64_t)x[l] * powers[l];
	carry = pfs_mul_high((uint32_t)sum * d.inverse, d.p);
	rest = (uint32_t)(sum >> 32) - carry + d.p;
	return rest * d.inverse <= W + 1;
}

template <unsigned W>
static __device__ __forceinline__ void
many_rows(const uint32_t *rows, const pfs_cuda_divisors &divisors, uint64_t (&mask)[4])
{
	uint4 x4[W];
	uint32_t x[4][W];

	load_rows<W>(x4, rows);
#pragma unroll
	for (unsigned l = 0; l < W; l++) {
		x[0][l] = x4[l].x;
		x[1][l] = x4[l].y;
		x[2][l] = x4[l].z;
		x[3][l] = x4[l].w;
	}
	for (unsigned k0 = 0; k0 < divisors.n; k0 += 8) {
		uint32_t byte[4] = {0, 0, 0, 0};

#pragma unroll
		for (unsigned k = 0; k < 8; k++) {
			pfs_divisor d = {divisors.p[k0 + k], divisors.inverse[k0 + k]};

			if (divisors.max_limbs[k0 + k] >= W) {
#pragma unroll
				for (unsigned j = 0; j < 4; j++)
					if (divides_sum<W>(x[j], divisors.powers[k0 + k], d))
						byte[j] |= 1u << k;
			} else {
				uint32_t nibble = divide_rows<W>(x4, d);

#pragma unroll
				for (unsigned j = 0; j < 4; j++)
					byte[j] |= (nibble >> j & 1) << k;
			}
		}
#pragma unroll
		for (unsigned j = 0; j < 4; j++)
			mask[j] |= (uint64_t)byte[j] << k0;
	}
}

/* Any width: read again for each predicate, from the cache. */
static __device__ void many_any(const uint32_t *rows, unsigned n_limbs,
				const pfs_cuda_divisors &divisors, uint64_t (&mask)[4])
{
	for (unsigned k = 0; k < divisors.n; k++) {
		pfs_divisor d = {divisors.p[k], divisors.inverse[k]};
		uint4 carry = make_uint4(0, 0, 0, 0);
		uint32_t nibble;

		for (unsigned l = 0; l < n_limbs; l++)
			step_rows(
				carry,
				__ldg(reinterpret_cast<const uint4 *>(rows + (size_t)l * PFS_ROWS)),
				d);
		nibble = zero_rows(carry);
		for (unsigned j = 0; j < 4; j++)
			mask[j] |= (uint64_t)(nibble >> j & 1) << k;
	}
}

/* Two kernels, so that the registers of wide codes do not slow narrow ones; each leaves the other's
 * tiles alone. */
template <bool WIDE>
static __global__ void __launch_bounds__(256)
	scan_many_kernel(const pfs_cuda_tile *__restrict__ tiles, const uint32_t *__restrict__ pool,
			 const __grid_constant__ pfs_cuda_divisors divisors,
			 uint64_t *__restrict__ masks)
{
	uint32_t tile = blockIdx.x + 1;
	pfs_cuda_tile t = tiles[tile];
	const uint32_t *rows = pool + (size_t)t.at * PFS_ROWS + threadIdx.x * 4;
	uint64_t mask[4] = {0, 0, 0, 0};
	ulonglong2 *out =
		reinterpret_cast<ulonglong2 *>(masks + (size_t)tile * PFS_ROWS + threadIdx.x * 4);

	if ((t.n_limbs > 8) != WIDE)
		return;
	if (WIDE)
		switch (t.n_limbs) {
		case 10:
			many_rows<10>(rows, divisors, mask);
			break;
		case 12:
			many_rows<12>(rows, divisors, mask);
			break;
		case 14:
			many_rows<14>(rows, divisors, mask);
			break;
		case 16:
			many_rows<16>(rows, divisors, mask);
			break;
		default:
			many_any(rows, t.n_limbs, divisors, mask);
			break;
		}
	else
		switch (t.n_limbs) {
		case 1:
			many_rows<1>(rows, divisors, mask);
			break;
		case 2:
			many_rows<2>(rows, divisors, mask);
			break;
		case 3:
			many_rows<3>(rows, divisors, mask);
			break;
		case 4:
			many_rows<4>(rows, divisors, mask);
			break;
		case 5:
			many_rows<5>(rows, divisors, mask);
			break;
		case 6:
			many_rows<6>(rows, divisors, mask);
			break;
		case 7:
			many_rows<7>(rows, divisors, mask);
			break;
		case 8:
			many_rows<8>(rows, divisors, mask);
			break;
		}
	/* The divisors are filled up to a multiple of eight. */
	for (unsigned j = 0; j < 4; j++)
		mask[j] &= ~UINT64_C(0) >> (PFS_CUDA_PREDICATES - divisors.n);
	out[0] = make_ulonglong2(mask[0], mask[1]);
	out[1] = make_ulonglong2(mask[2], mask[3]);
}

/* 4,096 elements a block: a thread's four loads, then its sixteen gathers, are in flight together.
 */
static __global__ void __launch_bounds__(256)
	gather_bits_kernel(uint32_t *__restrict__ bits, const uint32_t *__restrict__ index,
			   size_t n, const uint32_t *__restrict__ table)
{
	size_t base = (size_t)blockIdx.x * 4096 + threadIdx.x * 4;
	uint4 at[4];
	uint32_t nibble[4];

#pragma unroll
	for (unsigned k = 0; k < 4; k++)
		at[k] = base + k * 1024 < n ? pfs_load4(index + base + k * 1024)
					    : make_uint4(0, 0, 0, 0);
#pragma unroll
	for (unsigned k = 0; k < 4; k++)
		nibble[k] = pfs_bit(table, at[k].x) | pfs_bit(table, at[k].y) << 1 |
			    pfs_bit(table, at[k].z) << 2 | pfs_bit(table, at[k].w) << 3;
#pragma unroll
	for (unsigned k = 0; k < 4; k++)
		if (base + k * 1024 < n) /* the same for the whole block: n counts tiles */
			pfs_store_nibbles(nibble[k], bits, (base + k * 1024) >> 2);
}

/* Each lane gives a row of 32 bits, each gets a column. */
static __device__ __forceinline__ uint32_t transpose(uint32_t x)
{
	uint32_t lane = threadIdx.x & 31, mask = 0x0000ffffu;

#pragma unroll
	for (unsigned j = 16; j; j >>= 1) {
		uint32_t y = __shfl_xor_sync(PFS_ALL_LANES, x, j);

		x = lane & j ? (x & ~mask) | (y >> j & mask) : (x & mask) | (y & mask) << j;
		mask ^= mask << (j >> 1);
	}
	return x;
}

/* 1,024 slots a block, eight warps of four words each; written by bitmap, 128 bytes at a time. */
static __global__ void __launch_bounds__(256)
	spread_masks_kernel(const __grid_constant__ pfs_cuda_bitmaps bitmaps, uint32_t n_bitmaps,
			    const uint32_t *__restrict__ index, const uint64_t *__restrict__ table)
{
	__shared__ uint32_t words[PFS_CUDA_PREDICATES][33];
	uint32_t warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
	size_t base = (size_t)blockIdx.x * PFS_ROWS;
	uint64_t mask[4];

#pragma unroll
	for (unsigned r = 0; r < 4; r++)
		mask[r] = table[__ldcs(index + base + (r * 8 + warp) * 32 + lane)];
#pragma unroll
	for (unsigned r = 0; r < 4; r++) {
		words[lane][r * 8 + warp] = transpose((uint32_t)mask[r]);
		words[lane + 32][r * 8 + warp] = transpose((uint32_t)(mask[r] >> 32));
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < n_bitmaps * 32; i += 256)
		__stcs(bitmaps.d_bits[i >> 5] + (base >> 5) + (i & 31), words[i >> 5][i & 31]);
}

static __global__ void deep_bits_kernel(pfs_cuda_codes c, const uint32_t *__restrict__ deep,
					uint32_t n_deep, uint32_t p, uint32_t *bits)
{
	PFS_EACH(i, n_deep)
	{
		uint32_t d = deep[i];
		bool under = p == 1;

		for (; !under && d && c.d_width[d] == PFS_CUDA_DEEP; d = c.d_directories[d].parent)
			under = c.d_directories[d].prime == p;
		/* No deep directory's bit is read, so they may be set in any order. */
		if (under || (d && c.d_width[d] != PFS_CUDA_DEEP && pfs_bit(bits, d)))
			atomicOr(bits + (deep[i] >> 5), 1u << (deep[i] & 31));
	}
}

/* ---- launches ---- */

int pfs_cuda_scan(const pfs_cuda_tile *d_tiles, uint32_t n_tiles, const uint32_t *d_pool,
		  uint32_t p, uint32_t inverse, uint32_t *d_row_bits, cudaStream_t stream)
{
	if (n_tiles > 1)
		scan_kernel<<<n_tiles - 1, 256, 0, stream>>>(d_tiles, d_pool,
							     pfs_divisor{p, inverse}, d_row_bits);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_scan_many(const pfs_cuda_tile *d_tiles, uint32_t n_tiles, const uint32_t *d_pool,
		       const pfs_cuda_divisors *divisors, uint64_t *d_row_masks, int wide,
		       cudaStream_t stream)
{
	if (n_tiles > 1)
		scan_many_kernel<false>
			<<<n_tiles - 1, 256, 0, stream>>>(d_tiles, d_pool, *divisors, d_row_masks);
	if (n_tiles > 1 && wide)
		scan_many_kernel<true>
			<<<n_tiles - 1, 256, 0, stream>>>(d_tiles, d_pool, *divisors, d_row_masks);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_gather_bits(uint32_t *d_bits, const uint32_t *d_index, size_t n,
			 const uint32_t *d_table, cudaStream_t stream)
{
	gather_bits_kernel<<<pfs_blocks(n, 4096), 256, 0, stream>>>(d_bits, d_index, n, d_table);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_spread_masks(const pfs_cuda_bitmaps *bitmaps, uint32_t n_bitmaps,
			  const uint32_t *d_index, size_t n, const uint64_t *d_table,
			  cudaStream_t stream)
{
	spread_masks_kernel<<<(unsigned)(n / PFS_ROWS), 256, 0, stream>>>(*bitmaps, n_bitmaps,
									  d_index, d_table);
	return PFS_CUDA(cudaGetLastError());
}

int pfs_cuda_deep_bits(const pfs_cuda_codes *c, const uint32_t *d_deep, uint32_t n_deep, uint32_t p,
		       uint32_t *d_bits, cudaStream_t stream)
{
	deep_bits_kernel<<<pfs_grid(n_deep), 256, 0, stream>>>(*c, d_deep, n_deep, p, d_bits);
	return PFS_CUDA(cudaGetLastError());
}
