/* SPDX-License-Identifier: MIT */
/* gpu/cuda/group_parts.cu - many groups whose numbers are dense: rows are split by the low bits of their
 * group first, so that each part's totals fit a block's shared memory.
 *
 * 1. A block takes a tile of rows, puts them in the order of their parts in shared memory, and writes them
 *    out as one tile again: of each row the group's number in its part with the row's place in the tile in
 *    one word, and the values that are added.  Where a part begins in the tile is written beside.  Nothing
 *    depends on other tiles, so nobody counts first, and a place is known from the tile.
 * 2. From some tiles it is found how many blocks a part is worth, so that large ones are shared.
 * 3. A block reads a part from all tiles, or a share of them, into totals.  One that has a part alone
 *    writes its totals, others add them.
 *
 * So 8-byte rows are read and written once and read again.  Low bits spread neighbouring groups, and large
 * ones, over parts; in a part one that is very large is added up by the warp first. */
#include <cerrno>

#include "gpu/cuda/totals.cuh"

#define THREADS	   512u
#define FOURS	   2
#define ROWS	   (FOURS * 4)
#define TILE	   (THREADS * ROWS)
#define TILE_BITS  12
#define PARTS_MIN  128u
#define PARTS_MAX  512u
#define PART_BYTES (200u << 10) /* of totals: one block of PART_THREADS a multiprocessor */
#define PART_THREADS 1024u
#define CARRIED	   2 /* values that can be added */
#define SAMPLES	   128u
#define TOGETHER   8u  /* lanes that read one tile's share of a part, */
#define AHEAD	   4   /* so many rows each before they are added */
#define ROWS_MIN   (1u << 18)

static_assert(TILE == 1u << TILE_BITS, "a place in the tile has so many bits");

/* What lies in d_temporary. */
struct parts {
	uint32_t *d_rows;   /* TILE a tile: group / n << TILE_BITS | place in the tile */
	void *d_values[CARRIED];
	uint16_t *d_starts; /* n + 1 a tile */
	uint32_t *d_units;  /* [0]: how many; then part | share << 10 | shares << 20 */
	uint32_t n, bits, tiles;
	uint8_t n_values, width[CARRIED];
};

/* ---- device code ---- */

/* Where each part begins among the rows that `count` has counted, made of it; all threads call it. */
static __device__ void starts_of(uint32_t *count, uint32_t n, uint32_t *sums)
{
	uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	uint32_t mine = threadIdx.x < n ? count[threadIdx.x] : 0, sum = mine;

	for (int d = 1; d < 32; d *= 2) {
		uint32_t other = __shfl_up_sync(PFS_ALL_LANES, sum, d);

		if (lane >= d)
			sum += other;
	}
	if (lane == 31)
		sums[warp] = sum;
	__syncthreads();
	for (uint32_t w = 0; w < warp; w++)
		sum += sums[w];
	if (threadIdx.x < n)
		count[threadIdx.x] = sum - mine;
	if (threadIdx.x == THREADS - 1)
		count[n] = sum;
	__syncthreads();
}

/* The rows' values through shared memory to where the tile's lie. */
template <class T> /* uint32_t for what is bare, else uint64_t */
static __device__ __forceinline__ void carry(T *out, T *staged, const pfs_device_value &value,
					     const pfs_fours<FOURS> &f,
					     const uint32_t (&at)[ROWS], uint32_t n)
{
	uint32_t known = f.valid;
	T raw[ROWS];

	pfs_load<FOURS>(raw, &known, value, f);
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		if (f.valid >> r & 1)
			staged[at[r]] = sizeof(T) == 4 ? raw[r]
						       : (T)pfs_cooked(value.column, raw[r]);
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < n; i += THREADS)
		__stcs(&out[i], staged[i]);
	__syncthreads();
}

static __global__ void __launch_bounds__(THREADS, 2)
	split_kernel(const __grid_constant__ parts p,
		     const __grid_constant__ pfs_device_groups groups,
		     const __grid_constant__ pfs_device_keys keys,
		     const __grid_constant__ pfs_device_places places)
{
	extern __shared__ unsigned long long shared[];
	__shared__ uint32_t start[PARTS_MAX + 1], sums[THREADS / 32];
	uint32_t *staged = reinterpret_cast<uint32_t *>(shared);
	const uint64_t tile = blockIdx.x, out = tile * TILE;
	uint32_t number[ROWS], at[ROWS], n;
	pfs_fours<FOURS> f;

	for (uint32_t i = threadIdx.x; i < p.n; i += THREADS)
		start[i] = 0;
	__syncthreads();
	pfs_take<FOURS>(f, places, (places.from & ~UINT64_C(3)) + out, THREADS);
	pfs_numbers<FOURS>(number, keys, f);
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		if (f.valid >> r & 1)
			at[r] = atomicAdd(&start[number[r] & (p.n - 1)], 1u);
	__syncthreads();
	starts_of(start, p.n, sums);
	n = start[p.n];
	for (uint32_t i = threadIdx.x; i <= p.n; i += THREADS)
		p.d_starts[tile * (p.n + 1) + i] = (uint16_t)start[i];
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		if (!(f.valid >> r & 1))
			continue;
		at[r] += start[number[r] & (p.n - 1)];
		staged[at[r]] = number[r] >> p.bits << TILE_BITS |
				((r / 4 * THREADS + threadIdx.x) * 4 + r % 4);
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < n; i += THREADS)
		__stcs(&p.d_rows[out + i], staged[i]);
	__syncthreads();
	for (uint32_t k = 0; k < groups.n_aggregates; k++) {
		const pfs_device_value &value = groups.aggregate[k].value;

		if (p.width[k] == 4)
			carry(static_cast<uint32_t *>(p.d_values[k]) + out, staged, value, f, at, n);
		else
			carry(static_cast<uint64_t *>(p.d_values[k]) + out,
			      reinterpret_cast<uint64_t *>(shared), value, f, at, n);
	}
}

/* How many blocks share each part: of one that is much larger than others, several. */
static __global__ void __launch_bounds__(THREADS) units_kernel(const __grid_constant__ parts p)
{
	__shared__ uint32_t shares[PARTS_MAX + 1], sums[THREADS / 32], all;
	uint32_t samples = min(p.tiles, SAMPLES), sum = 0, mine = 0;

	if (threadIdx.x == 0)
		all = 0;
	__syncthreads();
	for (uint32_t i = 0; threadIdx.x < p.n && i < samples; i++) {
		const uint16_t *start = p.d_starts +
					(uint64_t)i * p.tiles / samples * (p.n + 1) + threadIdx.x;

		sum += (uint32_t)start[1] - start[0];
	}
	if (sum)
		atomicAdd(&all, sum);
	__syncthreads();
	if (threadIdx.x < p.n) { /* one share for each 1.5 times the mean */
		uint64_t wanted = max((uint64_t)all * 3, (uint64_t)1);

		mine = max((uint32_t)1,
			   (uint32_t)(((uint64_t)sum * 2 * p.n + wanted - 1) / wanted));
		shares[threadIdx.x] = mine;
	}
	__syncthreads();
	starts_of(shares, p.n, sums);
	for (uint32_t i = 0; i < mine; i++)
		p.d_units[1 + shares[threadIdx.x] + i] = threadIdx.x | i << 10 | mine << 20;
	if (threadIdx.x == 0)
		p.d_units[0] = shares[p.n];
}

static __device__ __forceinline__ int64_t carried(const parts &p, uint32_t v, uint64_t i)
{
	return p.width[v] == 4 ? (int64_t)__ldcs(static_cast<const uint32_t *>(p.d_values[v]) + i)
			       : (int64_t)__ldcs(static_cast<const unsigned long long *>(
							 p.d_values[v]) + i);
}

/* Sum over the warp's lanes. */
static __device__ __forceinline__ uint64_t warp_sum(uint64_t x)
{
	for (int d = 16; d; d /= 2)
		x += __shfl_xor_sync(PFS_ALL_LANES, x, d);
	return x;
}

/* The warp's rows; `group` is PFS_NOWHERE where a lane has none. */
static __device__ __forceinline__ void add_part_rows(const pfs_device_groups &groups,
						     uint32_t *memory, const pfs_totals &t,
						     uint32_t group, uint32_t place,
						     const int64_t (&x)[CARRIED])
{
	uint32_t *count = pfs_plane(memory, t, t.count), *first = pfs_plane(memory, t, t.first);
	uint32_t leader = __shfl_sync(PFS_ALL_LANES, group, 0);
	bool is_led = group == leader && group != PFS_NOWHERE;
	uint32_t led = __ballot_sync(PFS_ALL_LANES, is_led), times = 1;
	int64_t value[CARRIED] = {x[0], x[1]};

	if (__popc(led) >= 8) { /* together, by lane 0 */
		uint32_t least = __reduce_min_sync(PFS_ALL_LANES, is_led ? place : PFS_NOWHERE);

#pragma unroll
		for (uint32_t k = 0; k < CARRIED; k++) {
			if (k >= groups.n_aggregates || groups.aggregate[k].op != PFS_DEVICE_SUM)
				continue;
			uint64_t sum = warp_sum(is_led ? (uint64_t)x[k] : 0);

			if ((threadIdx.x & 31) == 0)
				value[k] = (int64_t)sum;
			else if (is_led)
				value[k] = 0;
		}
		if ((threadIdx.x & 31) == 0) {
			times = __popc(led);
			place = least;
		} else if (is_led) {
			times = 0;
		}
	}
	if (group == PFS_NOWHERE)
		return;
	if (times) {
		atomicAdd(&count[group], times);
		pfs_earlier(&first[group], place);
	}
#pragma unroll
	for (uint32_t k = 0; k < CARRIED; k++) {
		if (k >= groups.n_aggregates)
			continue;
		const pfs_device_aggregate &a = groups.aggregate[k];

		if (times || a.op != PFS_DEVICE_SUM)
			pfs_add_shared(a, pfs_plane(memory, t, t.value[k]), t, group, value[k]);
	}
}

/* The lanes' next rows of a tile's share, `at` being the lane's first. */
static __device__ __forceinline__ void add_ahead(const parts &p, const pfs_device_groups &groups,
						 uint32_t *memory, const pfs_totals &t,
						 uint64_t from, uint64_t base, uint32_t at,
						 uint32_t end)
{
	int64_t x[AHEAD][CARRIED] = {};
	uint32_t row[AHEAD];

#pragma unroll
	for (int i = 0; i < AHEAD; i++) {
		if (at + i * TOGETHER >= end)
			continue;
		row[i] = __ldcs(&p.d_rows[base + at + i * TOGETHER]);
#pragma unroll
		for (uint32_t v = 0; v < CARRIED; v++)
			if (v < p.n_values)
				x[i][v] = carried(p, v, base + at + i * TOGETHER);
	}
#pragma unroll
	for (int i = 0; i < AHEAD; i++) {
		bool is_row = at + i * TOGETHER < end;

		if (!__any_sync(PFS_ALL_LANES, is_row))
			continue;
		add_part_rows(groups, memory, t, is_row ? row[i] >> TILE_BITS : PFS_NOWHERE,
			      (uint32_t)(from + base + (row[i] & (TILE - 1))), x[i]);
	}
}

/* A part's totals to the device's: `alone` if no other block has any of it. */
static __device__ void write_part(const parts &p, const pfs_device_groups &groups,
				  uint32_t *memory, const pfs_totals &t, uint32_t part, bool alone)
{
	const uint32_t *count = pfs_plane(memory, t, t.count), *first = pfs_plane(memory, t, t.first);

	for (uint32_t i = threadIdx.x; i < t.n; i += blockDim.x) {
		uint64_t group = (uint64_t)i << p.bits | part;

		if (!count[i] || group >= groups.n)
			continue;
		if (alone) {
			groups.d_count[group] = count[i];
			groups.d_first[group] = first[i];
		} else {
			atomicAdd(&groups.d_count[group], count[i]);
			pfs_earlier(&groups.d_first[group], first[i]);
		}
		for (uint32_t k = 0; k < groups.n_aggregates; k++) {
			const pfs_device_aggregate &a = groups.aggregate[k];
			unsigned long long total = pfs_total_at(memory, t, a, k, i);

			if (alone)
				a.d_value[group] = total;
			else
				pfs_hand_over(a, (uint32_t)group, total);
		}
	}
}

/* Each TOGETHER lanes read a tile's share of the part, a warp 32 tiles' bounds at a time. */
static __global__ void __launch_bounds__(PART_THREADS)
	add_parts_kernel(const __grid_constant__ parts p,
			 const __grid_constant__ pfs_device_groups groups, uint64_t from,
			 const __grid_constant__ pfs_totals t)
{
	extern __shared__ unsigned long long shared[];
	uint32_t *memory = reinterpret_cast<uint32_t *>(shared);
	const uint32_t lane = threadIdx.x & 31, mine = lane / TOGETHER, step = lane % TOGETHER;

	if (blockIdx.x >= p.d_units[0])
		return;
	const uint32_t unit = p.d_units[1 + blockIdx.x], part = unit & 1023, share = unit >> 10 & 1023,
		       shares = unit >> 20;
	const uint32_t last = (uint32_t)((uint64_t)p.tiles * (share + 1) / shares);

	pfs_clear(memory, t, groups);
	for (uint32_t tile = (uint32_t)((uint64_t)p.tiles * share / shares) + threadIdx.x / 32 * 32;
	     tile < last; tile += PART_THREADS) {
		uint32_t bounds = 0; /* where the part begins and ends in the lane's tile */

		if (tile + lane < last) {
			const uint16_t *start =
				p.d_starts + (uint64_t)(tile + lane) * (p.n + 1) + part;

			bounds = (uint32_t)start[0] | (uint32_t)start[1] << 16;
		}
		for (uint32_t i = 0; i < 32; i += 32 / TOGETHER) {
			uint32_t b = __shfl_sync(PFS_ALL_LANES, bounds, i + mine);
			uint32_t at = (b & 0xffff) + step, end = b >> 16;
			const uint64_t base = (uint64_t)(tile + i + mine) * TILE;

			while (__any_sync(PFS_ALL_LANES, at < end)) {
				add_ahead(p, groups, memory, t, from, base, at, end);
				at += AHEAD * TOGETHER;
			}
		}
	}
	__syncthreads();
	write_part(p, groups, memory, t, part, shares == 1);
}

/* ---- launches ---- */

/* How it would be split, but for memory; false: it cannot, or is not worth it. */
static bool plan(parts *p, pfs_totals *t, pfs_device_groups *added,
		 const pfs_device_groups *groups, const pfs_device_places *places)
{
	uint64_t rows = places->to - (places->from & ~UINT64_C(3));

	*p = {};
	*added = pfs_lay_out(t, groups, false);
	if (rows < ROWS_MIN || rows >= UINT64_C(1) << 32 || added->n_aggregates > CARRIED)
		return false;
	for (uint32_t k = 0; k < added->n_aggregates; k++) {
		const pfs_device_aggregate &a = added->aggregate[k];
		const pfs_device_column &c = a.value.column;

		if (a.d_count || a.can_be_null || a.d_rank)
			return false;
		p->width[p->n_values++] = c.width <= 4 && !c.is_signed && !c.shift && !c.base &&
							  c.mask == UINT64_MAX
						  ? 4
						  : 8;
	}
	for (p->n = PARTS_MIN, p->bits = 7; p->n <= PARTS_MAX; p->n *= 2, p->bits++) {
		t->n = (uint32_t)((groups->n + p->n - 1) >> p->bits);
		if ((uint64_t)t->n * t->planes * 4 <= PART_BYTES)
			break;
	}
	p->tiles = (uint32_t)((rows + TILE - 1) / TILE);
	return p->n <= PARTS_MAX && t->n < 1u << (32 - TILE_BITS);
}

/* Places of an area for `size` bytes. */
static size_t put(uint8_t *memory, void *out, size_t at, size_t size)
{
	*static_cast<void **>(out) = memory + at;
	return at + (size + 255) / 256 * 256;
}

static size_t place_parts(parts *p, uint8_t *memory)
{
	size_t at = put(memory, &p->d_rows, 0, (size_t)p->tiles * TILE * 4);

	for (uint32_t v = 0; v < p->n_values; v++)
		at = put(memory, &p->d_values[v], at, (size_t)p->tiles * TILE * p->width[v]);
	at = put(memory, &p->d_starts, at, (size_t)p->tiles * (p->n + 1) * 2);
	return put(memory, &p->d_units, at, (size_t)(2 * p->n + 2) * 4);
}

extern "C" size_t pfs_cuda_group_parts_room(const pfs_device_groups *groups,
					    const pfs_device_places *places)
{
	pfs_device_groups added;
	pfs_totals t;
	parts p;

	return plan(&p, &t, &added, groups, places) ? place_parts(&p, NULL) : 0;
}

static int allow_shared(const void *kernel, size_t bytes)
{
	return PFS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
					     (int)bytes));
}

extern "C" int pfs_cuda_group_parts(const pfs_device_groups *groups, const pfs_device_keys *keys,
				    const pfs_device_places *places, void *d_temporary,
				    cudaStream_t stream)
{
	pfs_device_groups added;
	size_t staged = TILE * 4;
	pfs_totals t;
	parts p;
	int error;

	if (!plan(&p, &t, &added, groups, places))
		return -EINVAL;
	(void)place_parts(&p, static_cast<uint8_t *>(d_temporary));
	for (uint32_t v = 0; v < p.n_values; v++)
		staged = std::max(staged, (size_t)TILE * p.width[v]);
	error = allow_shared(reinterpret_cast<const void *>(split_kernel), staged);
	if (!error)
		error = allow_shared(reinterpret_cast<const void *>(add_parts_kernel), PART_BYTES);
	if (error)
		return error;
	split_kernel<<<p.tiles, THREADS, staged, stream>>>(p, added, *keys, *places);
	error = PFS_CUDA(cudaGetLastError());
	if (error)
		return error;
	units_kernel<<<1, THREADS, 0, stream>>>(p);
	error = PFS_CUDA(cudaGetLastError());
	if (error)
		return error;
	add_parts_kernel<<<2 * p.n, PART_THREADS, (size_t)t.n * t.planes * 4, stream>>>(
		p, added, places->from & ~UINT64_C(3), t);
	return PFS_CUDA(cudaGetLastError());
}
