/* SPDX-License-Identifier: MIT */
/* gpu/cuda/group_parts.cu - many groups whose numbers are dense: rows are split by the low bits of
 * their group first, so that each part's totals fit a block's shared memory.
 *
 * 1. A block takes a tile of rows, puts them in the order of their parts in shared memory, and
 * writes them out as one tile again: of each row the group's number in its part with the row's
 * place in the tile in one word, and the values that are added.  Where a part begins in the tile is
 * written beside.  Nothing depends on other tiles, so nobody counts first, and a place is known
 * from the tile.
 * 2. From some tiles it is found how many blocks a part is worth, so that large ones are shared.
 * 3. A block reads a part from all tiles, or a share of them, into totals.  One that has a part
 * alone writes its totals, others add them.
 *
 * So 8-byte rows are read and written once and read again.  Low bits spread neighbouring groups,
 * and large ones, over parts; in a part one that is very large is added up by the warp first. */
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
#define SAMPLES	   32u
#define TOGETHER   8u  /* lanes that read one tile's share of a part, */
#define AHEAD	   8   /* so many rows each before they are added */
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

/* Where each part begins among the rows that `count` has counted, made of it; all threads call
 * it. */
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

/* The rows' values, loaded already, through shared memory to where the tile's lie. */
template <class T> /* uint32_t for what is bare, else uint64_t */
static __device__ __forceinline__ void carry(T *out, T *staged, const pfs_device_column &c,
					     const T (&raw)[ROWS], uint32_t valid,
					     const uint32_t (&at)[ROWS], uint32_t n)
{
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		if (valid >> r & 1)
			staged[at[r]] = sizeof(T) == 4 ? raw[r] : (T)pfs_cooked(c, raw[r]);
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < n; i += THREADS)
		__stcs(&out[i], staged[i]);
	__syncthreads();
}

template <class T>
static __device__ __forceinline__ void
load_and_carry(T *out, T *staged, const pfs_device_value &value, const pfs_fours<FOURS> &f,
	       const uint32_t (&at)[ROWS], uint32_t n)
{
	uint32_t known = f.valid;
	T raw[ROWS];

	pfs_load<FOURS>(raw, &known, value, f);
	carry(out, staged, value.column, raw, f.valid, at, n);
}

/* Puts the tile's rows in the order of their parts and writes them, and where each part begins;
 * at[] becomes where the thread's rows are among the *n of the tile.  Called by all threads, who
 * then wait for each other. */
static __device__ __forceinline__ void order_rows(const parts &p, uint32_t *staged,
						  const uint32_t (&number)[ROWS], uint32_t valid,
						  uint32_t (&at)[ROWS], uint32_t *n)
{
	__shared__ uint32_t start[PARTS_MAX + 1], sums[THREADS / 32];
	const uint64_t tile = blockIdx.x;

	for (uint32_t i = threadIdx.x; i < p.n; i += THREADS)
		start[i] = 0;
	__syncthreads();
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		if (valid >> r & 1)
			at[r] = atomicAdd(&start[number[r] & (p.n - 1)], 1u);
	__syncthreads();
	starts_of(start, p.n, sums);
	*n = start[p.n];
	for (uint32_t i = threadIdx.x; i <= p.n; i += THREADS)
		p.d_starts[tile * (p.n + 1) + i] = (uint16_t)start[i];
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		if (!(valid >> r & 1))
			continue;
		at[r] += start[number[r] & (p.n - 1)];
		staged[at[r]] = number[r] >> p.bits << TILE_BITS |
				((r / 4 * THREADS + threadIdx.x) * 4 + r % 4);
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < *n; i += THREADS)
		__stcs(&p.d_rows[tile * TILE + i], staged[i]);
	__syncthreads();
}

static __global__ void __launch_bounds__(THREADS, 2)
	split_kernel(const __grid_constant__ parts p,
		     const __grid_constant__ pfs_device_groups groups,
		     const __grid_constant__ pfs_device_keys keys,
		     const __grid_constant__ pfs_device_places places)
{
	extern __shared__ unsigned long long shared[];
	uint32_t *staged = reinterpret_cast<uint32_t *>(shared);
	const uint64_t out = (uint64_t)blockIdx.x * TILE;
	const bool is_early = p.n_values && p.width[0] == 4;
	uint32_t number[ROWS], at[ROWS], early[ROWS], n, known;
	pfs_fours<FOURS> f;

	pfs_take<FOURS>(f, places, (places.from & ~UINT64_C(3)) + out, THREADS);
	known = f.valid;
	if (is_early) /* under way while the rows are ordered */
		pfs_load<FOURS>(early, &known, groups.aggregate[0].value, f);
	pfs_numbers<FOURS>(number, keys, f);
	order_rows(p, staged, number, f.valid, at, &n);
	if (is_early)
		carry(static_cast<uint32_t *>(p.d_values[0]) + out, staged,
		      groups.aggregate[0].value.column, early, f.valid, at, n);
	for (uint32_t k = is_early; k < groups.n_aggregates; k++) {
		const pfs_device_value &value = groups.aggregate[k].value;

		if (p.width[k] == 4)
			load_and_carry(static_cast<uint32_t *>(p.d_values[k]) + out, staged, value,
				       f, at, n);
		else
			load_and_carry(static_cast<uint64_t *>(p.d_values[k]) + out,
				       reinterpret_cast<uint64_t *>(shared), value, f, at, n);
	}
}

/* The same by one column of 32 bits, with one value that is read as it lies: fewer registers, so
 * more blocks. */
template <class V>
static __global__ void __launch_bounds__(THREADS, 3)
	split_plain_kernel(const __grid_constant__ parts p, const uint32_t *__restrict__ keys,
			   const V *__restrict__ values, uint32_t less,
			   const __grid_constant__ pfs_device_places places)
{
	extern __shared__ unsigned long long shared[];
	V *staged = reinterpret_cast<V *>(shared);
	const uint64_t out = (uint64_t)blockIdx.x * TILE;
	uint32_t number[ROWS], at[ROWS], n;
	pfs_fours<FOURS> f;
	V value[ROWS];

	pfs_take<FOURS>(f, places, (places.from & ~UINT64_C(3)) + out, THREADS);
#pragma unroll
	for (int i = 0; i < FOURS; i++) {
		if (!(f.valid >> 4 * i & 15))
			continue;
		pfs_load_four<uint32_t>(number + 4 * i, keys, f.first[i]);
		pfs_load_four<V>(value + 4 * i, values, f.first[i]);
	}
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		number[r] -= less;
	order_rows(p, reinterpret_cast<uint32_t *>(shared), number, f.valid, at, &n);
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		if (f.valid >> r & 1)
			staged[at[r]] = value[r];
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < n; i += THREADS)
		__stcs(&static_cast<V *>(p.d_values[0])[out + i], staged[i]);
}

/* How many blocks share each part: of one that is much larger than others, several. */
static __global__ void __launch_bounds__(THREADS) units_kernel(const __grid_constant__ parts p)
{
	__shared__ uint32_t shares[PARTS_MAX + 1], sums[THREADS / 32], all;
	uint32_t samples = min(p.tiles, SAMPLES), step = p.tiles / samples, sum = 0, mine = 0;

	if (threadIdx.x == 0)
		all = 0;
	__syncthreads();
#pragma unroll
	for (uint32_t i = 0; i < SAMPLES; i++) { /* all under way at once */
		const uint16_t *start = p.d_starts + (uint64_t)(i * step) * (p.n + 1) + threadIdx.x;

		if (threadIdx.x < p.n && i < samples)
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

/* A row's values: VALUES of them, T all alike, or int64_t for any. */
template <int VALUES, class T> struct carried {
	T value[VALUES ? VALUES : 1];
};

template <int VALUES, class T>
static __device__ __forceinline__ void load_carried(carried<VALUES, T> &x, const parts &p,
						    uint64_t i)
{
#pragma unroll
	for (int v = 0; v < VALUES; v++) {
		const uint32_t *few = static_cast<const uint32_t *>(p.d_values[v]) + i;
		const unsigned long long *many =
			static_cast<const unsigned long long *>(p.d_values[v]) + i;

		if (sizeof(T) == 4)
			x.value[v] = (T)__ldcs(few);
		else
			x.value[v] = p.width[v] == 4 ? (T)__ldcs(few) : (T)__ldcs(many);
	}
}

/* Sum over the warp's lanes. */
static __device__ __forceinline__ uint64_t warp_sum(uint64_t x)
{
	for (int d = 16; d; d /= 2)
		x += __shfl_xor_sync(PFS_ALL_LANES, x, d);
	return x;
}

/* A lane's rows of a group, `times` of them. */
template <int VALUES, class T>
static __device__ __forceinline__ void
add_row(const pfs_device_groups &groups, uint32_t *memory, const pfs_total_planes &t,
	uint32_t group, uint32_t place, uint32_t times, const carried<VALUES, T> &x)
{
	atomicAdd(&pfs_plane(memory, t, t.count)[group], times);
	pfs_earlier(&pfs_plane(memory, t, t.first)[group], place);
#pragma unroll
	for (int v = 0; v < VALUES; v++) {
		const pfs_device_aggregate &a = groups.aggregate[v];
		uint32_t *plane = pfs_plane(memory, t, t.value[v]);

		if (a.op == PFS_DEVICE_SUM)
			pfs_add_wide(plane + group, plane + t.n + group,
				     (uint64_t)(int64_t)x.value[v]);
		else
			pfs_add_shared(a, plane, t, group, (int64_t)x.value[v]);
	}
}

/* The warp's rows, where many may be of one group: those of lane 0's are added up first, if all
 * that is wanted of them are sums. */
template <int VALUES, class T>
static __device__ __forceinline__ void add_together(const pfs_device_groups &groups,
						    uint32_t *memory, const pfs_total_planes &t,
						    bool is_row, uint32_t group, uint32_t place,
						    carried<VALUES, T> &x)
{
	uint32_t leader = __shfl_sync(PFS_ALL_LANES, is_row ? group : PFS_NOWHERE, 0);
	bool is_led = is_row && group == leader;
	uint32_t led = __ballot_sync(PFS_ALL_LANES, is_led);
	carried<VALUES, int64_t> sum;

#pragma unroll
	for (int v = 0; v < VALUES; v++)
		if (groups.aggregate[v].op != PFS_DEVICE_SUM)
			led = 0;
	if (__popc(led) >= 8) {
		uint32_t first = __reduce_min_sync(PFS_ALL_LANES, is_led ? place : PFS_NOWHERE);

#pragma unroll
		for (int v = 0; v < VALUES; v++)
			sum.value[v] = (int64_t)warp_sum(
				is_led ? (uint64_t)(int64_t)x.value[v] : 0);
		if ((threadIdx.x & 31) == 0)
			add_row<VALUES, int64_t>(groups, memory, t, group, first, __popc(led), sum);
		is_row = is_row && !is_led;
	}
	if (is_row)
		add_row<VALUES, T>(groups, memory, t, group, place, 1, x);
}

/* The lane's next rows of a tile's share, `at` being the first. */
template <int VALUES, class T, bool SHARED>
static __device__ __forceinline__ void add_ahead(const parts &p, const pfs_device_groups &groups,
						 uint32_t *memory, const pfs_total_planes &t,
						 uint64_t from, uint64_t base, uint32_t at,
						 uint32_t end)
{
	constexpr int N = sizeof(T) * VALUES > 4 ? AHEAD / 2 : AHEAD;
	carried<VALUES, T> x[N];
	uint32_t row[N];

	for (; SHARED ? __any_sync(PFS_ALL_LANES, at < end) : at < end; at += N * TOGETHER) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			if (at + i * TOGETHER >= end)
				continue;
			row[i] = __ldcs(&p.d_rows[base + at + i * TOGETHER]);
			load_carried<VALUES, T>(x[i], p, base + at + i * TOGETHER);
		}
#pragma unroll
		for (int i = 0; i < N; i++) {
			bool is_row = at + i * TOGETHER < end;
			uint32_t group = row[i] >> TILE_BITS;
			uint32_t place = (uint32_t)(from + base) + (row[i] & (TILE - 1));

			if constexpr (SHARED)
				add_together<VALUES, T>(groups, memory, t, is_row, group, place,
							x[i]);
			else if (is_row)
				add_row<VALUES, T>(groups, memory, t, group, place, 1, x[i]);
		}
	}
}

/* A part's totals to the device's: `alone` if no other block has any of it. */
static __device__ void write_part(const parts &p, const pfs_device_groups &groups, uint32_t *memory,
				  const pfs_total_planes &t, uint32_t part, bool alone)
{
	const uint32_t *count = pfs_plane(memory, t, t.count),
		       *first = pfs_plane(memory, t, t.first);

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

/* What tiles `tile`..`last` have of a part, every blockDim-th 32 of them.  Each TOGETHER lanes read
 * one's, a warp 32 tiles' bounds at a time.  SHARED: the part is large, so some of its groups
 * are. */
template <int VALUES, class T, bool SHARED>
static __device__ __forceinline__ void add_tiles(const parts &p, const pfs_device_groups &groups,
						 uint32_t *memory, const pfs_total_planes &t,
						 uint64_t from, uint32_t part, uint32_t tile,
						 uint32_t last)
{
	const uint32_t lane = threadIdx.x & 31, mine = lane / TOGETHER, step = lane % TOGETHER;

	for (tile += threadIdx.x / 32 * 32; tile < last; tile += PART_THREADS) {
		uint32_t bounds = 0; /* where the part begins and ends in the lane's tile */

		if (tile + lane < last) {
			const uint16_t *start =
				p.d_starts + (uint64_t)(tile + lane) * (p.n + 1) + part;

			bounds = (uint32_t)start[0] | (uint32_t)start[1] << 16;
		}
		for (uint32_t i = 0; i < 32; i += 32 / TOGETHER) {
			uint32_t b = __shfl_sync(PFS_ALL_LANES, bounds, i + mine);

			add_ahead<VALUES, T, SHARED>(p, groups, memory, t, from,
						     (uint64_t)(tile + i + mine) * TILE,
						     (b & 0xffff) + step, b >> 16);
			__syncwarp();
		}
	}
}

template <int VALUES, class T>
static __global__ void __launch_bounds__(PART_THREADS)
	add_parts_kernel(const __grid_constant__ parts p,
			 const __grid_constant__ pfs_device_groups groups, uint64_t from,
			 const __grid_constant__ pfs_total_planes t)
{
	extern __shared__ unsigned long long shared[];
	uint32_t *memory = reinterpret_cast<uint32_t *>(shared);

	if (blockIdx.x >= p.d_units[0])
		return;
	const uint32_t unit = p.d_units[1 + blockIdx.x], part = unit & 1023;
	const uint32_t share = unit >> 10 & 1023, shares = unit >> 20;
	const uint32_t tile = (uint32_t)((uint64_t)p.tiles * share / shares);
	const uint32_t last = (uint32_t)((uint64_t)p.tiles * (share + 1) / shares);

	pfs_clear(memory, t, groups);
	if (shares > 1)
		add_tiles<VALUES, T, true>(p, groups, memory, t, from, part, tile, last);
	else
		add_tiles<VALUES, T, false>(p, groups, memory, t, from, part, tile, last);
	__syncthreads();
	write_part(p, groups, memory, t, part, shares == 1);
}

/* ---- launches ---- */

/* How it would be split, but for memory; false: it cannot, or is not worth it. */
static bool plan(parts *p, pfs_total_planes *t, pfs_device_groups *added,
		 const pfs_device_groups *groups, const pfs_device_places *places)
{
	uint64_t rows = places->to - (places->from & ~UINT64_C(3));

	*p = {};
	*added = pfs_lay_out(t, groups, true, false);
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
	pfs_total_planes t;
	parts p;

	return plan(&p, &t, &added, groups, places) ? place_parts(&p, NULL) : 0;
}

static int allow_shared(const void *kernel, size_t bytes)
{
	return PFS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
					     (int)bytes));
}

template <int VALUES, class T>
static int add_parts(const parts &p, const pfs_device_groups &groups, uint64_t from,
		     const pfs_total_planes &t, cudaStream_t stream)
{
	int error = allow_shared(reinterpret_cast<const void *>(add_parts_kernel<VALUES, T>),
				 PART_BYTES);

	if (error)
		return error;
	add_parts_kernel<VALUES, T><<<2 * p.n, PART_THREADS, (size_t)t.n * t.planes * 4, stream>>>(
		p, groups, from, t);
	return PFS_CUDA(cudaGetLastError());
}

template <class V>
static int split_plain(const parts &p, const pfs_device_key &key, const pfs_device_value &value,
		       const pfs_device_places *places, size_t staged, cudaStream_t stream)
{
	uint64_t less = (uint64_t)key.least - (uint64_t)key.value.column.base - 1;
	int error = allow_shared(reinterpret_cast<const void *>(split_plain_kernel<V>), staged);

	if (error)
		return error;
	split_plain_kernel<V><<<p.tiles, THREADS, staged, stream>>>(
		p, static_cast<const uint32_t *>(key.value.column.d_data) + key.value.from,
		static_cast<const V *>(value.column.d_data) + value.from, (uint32_t)less, *places);
	return PFS_CUDA(cudaGetLastError());
}

/* Into tiles whose rows lie in the order of their parts. */
static int split(const parts &p, const pfs_device_groups &added, const pfs_device_keys *keys,
		 const pfs_device_places *places, size_t staged, cudaStream_t stream)
{
	const pfs_device_key &key = keys->key[0];
	int error;

	if (pfs_cuda_group_is_plain(&added, keys, places) && key.value.column.width == 4 &&
	    added.n_aggregates)
		return p.width[0] == 4 ? split_plain<uint32_t>(p, key, added.aggregate[0].value,
							       places, staged, stream)
				       : split_plain<uint64_t>(p, key, added.aggregate[0].value,
							       places, staged, stream);
	error = allow_shared(reinterpret_cast<const void *>(split_kernel), staged);
	if (error)
		return error;
	split_kernel<<<p.tiles, THREADS, staged, stream>>>(p, added, *keys, *places);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_group_parts(const pfs_device_groups *groups, const pfs_device_keys *keys,
				    const pfs_device_places *places, void *d_temporary,
				    cudaStream_t stream)
{
	const uint64_t from = places->from & ~UINT64_C(3);
	pfs_device_groups added;
	size_t staged = TILE * 4;
	pfs_total_planes t;
	parts p;
	int error;

	if (!plan(&p, &t, &added, groups, places))
		return -EINVAL;
	(void)place_parts(&p, static_cast<uint8_t *>(d_temporary));
	for (uint32_t v = 0; v < p.n_values; v++)
		staged = std::max(staged, (size_t)TILE * p.width[v]);
	error = split(p, added, keys, places, staged, stream);
	if (error)
		return error;
	units_kernel<<<1, THREADS, 0, stream>>>(p);
	error = PFS_CUDA(cudaGetLastError());
	if (error)
		return error;
	if (p.n_values == 0)
		return add_parts<0, uint32_t>(p, added, from, t, stream);
	if (p.n_values > 1)
		return add_parts<2, int64_t>(p, added, from, t, stream);
	return p.width[0] == 4 ? add_parts<1, uint32_t>(p, added, from, t, stream)
			       : add_parts<1, int64_t>(p, added, from, t, stream);
}
