/* SPDX-License-Identifier: MIT */
/* gpu/cuda/select.cu - which rows a predicate is true for: one bit each.
 *
 * A warp takes 1,024 rows as 32 words.  A test reads 32 neighbouring rows at a time and makes a
 * word by ballot, which the lane of that number keeps; AND, OR and NOT are then one instruction a
 * lane for all 1,024 rows.  So interpreting the program costs little beside reading the columns. */
#include <cub/device/device_select.cuh>
#include <cstring>
#include <thrust/iterator/counting_iterator.h>

#include "gpu/cuda/texts.cuh"
#include "gpu/predicate.h"

#define WARPS 8u
#define DEPTH 16

/* ---- device code ---- */

struct truths {
	uint32_t yes, unknown;
};

enum { NO, YES, UNKNOWN };

static __device__ __forceinline__ unsigned lane_of()
{
	return threadIdx.x & 31;
}

/* test(place) of all rows from base on; what lies past the end is false. */
template <class Test>
static __device__ __forceinline__ truths each_row(uint64_t base, uint64_t to, Test test)
{
	truths mine = {0, 0};

#pragma unroll 8
	for (unsigned word = 0; word < 32; word++) {
		uint64_t place = base + word * 32 + lane_of();
		int truth = place < to ? test((uint32_t)place) : NO;
		uint32_t yes = __ballot_sync(PFS_ALL_LANES, truth == YES);
		uint32_t unknown = __ballot_sync(PFS_ALL_LANES, truth == UNKNOWN);

		if (lane_of() == word)
			mine = {yes, unknown};
	}
	return mine;
}

/* read(element) in the test's range. */
template <class Read>
static __device__ __forceinline__ truths range_by(const pfs_device_step &s, uint64_t base,
						  uint64_t to, Read read)
{
	const pfs_device_value v = s.value;
	const int64_t low = s.low, high = s.high;

	return each_row(base, to, [&](uint32_t place) -> int {
		uint32_t element = pfs_element(v, place);

		if (element == PFS_NOWHERE)
			return UNKNOWN;
		int64_t x = read(v.column, element);
		return x >= low && x <= high ? YES : NO;
	});
}

/* Elements that lie at the places themselves and are never NULL: as fast as memory.  low and high
 * are of T; one subtraction tests both. */
template <class T>
static __device__ __forceinline__ truths plain_range(const pfs_device_step &s, uint64_t base,
						     uint64_t to)
{
	const T *data = static_cast<const T *>(s.value.column.d_data) + s.value.from + base;
	const T low = (T)s.low, size = (T)((T)s.high - low);
	const uint32_t n = (uint32_t)min(to - base, (uint64_t)1024);
	uint32_t mine = 0;

#pragma unroll 16
	for (unsigned word = 0; word < 32; word++) {
		uint32_t i = word * 32 + lane_of();
		T x = i < n ? __ldcs(data + i) : low;
		uint32_t yes = __ballot_sync(PFS_ALL_LANES, (T)(x - low) <= size);

		mine = lane_of() == word ? yes : mine;
	}
	return {mine, 0};
}

static __device__ truths in_range(const pfs_device_step &s, uint64_t base, uint64_t to)
{
	const pfs_device_column &c = s.value.column;

	if (s.is_plain)
		return c.width == 8   ? plain_range<uint64_t>(s, base, to)
		       : c.width == 4 ? plain_range<uint32_t>(s, base, to)
		       : c.width == 2 ? plain_range<uint16_t>(s, base, to)
				      : plain_range<uint8_t>(s, base, to);
	return range_by(s, base, to, [](const pfs_device_column &k, uint32_t e) {
		return pfs_read_any(k, e);
	});
}

static __device__ __forceinline__ bool holds(int op, int64_t a, int64_t b)
{
	switch (op) {
	case PFS_OP_EQ:
		return a == b;
	case PFS_OP_NE:
		return a != b;
	case PFS_OP_LT:
		return a < b;
	case PFS_OP_LE:
		return a <= b;
	case PFS_OP_GT:
		return a > b;
	default:
		return a >= b;
	}
}

static __device__ bool is_listed(const int64_t *list, uint64_t n, int64_t x)
{
	uint64_t low = 0, high = n;

	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (list[middle] < x)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && list[low] == x;
}

/* ---- texts ---- */

static __device__ __forceinline__ bool same_bytes(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

static __device__ __forceinline__ uint8_t in_small(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c | 32 : c;
}

/* n bytes of a text are those sought. */
static __device__ __forceinline__ bool agrees(const pfs_device_step &s, const uint8_t *text)
{
	uint32_t n = (uint32_t)s.n;

	if (!s.folds)
		return same_bytes(text, s.d_text, n);
	for (uint32_t i = 0; i < n; i++)
		if (in_small(text[i]) != s.d_text[i])
			return false;
	return true;
}

static __device__ __forceinline__ bool has_nul(const uint8_t *text, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!text[i])
			return true;
	return false;
}

/* The first bytes sought, as they stand in a word, whose bits of letters' size `loose` are set;
 * mask: of fewer than four bytes.  That is what all positions are compared with first. */
struct beginning {
	uint32_t word, mask, loose;
};

static __device__ beginning beginning_of(const pfs_device_step &s)
{
	beginning b = {0, 0, s.folds ? 0x20202020u : 0};

	for (uint32_t i = 0; i < s.n && i < 4; i++) {
		b.word |= (uint32_t)s.d_text[i] << i * 8;
		b.mask |= 255u << i * 8;
	}
	b.word = (b.word | b.loose) & b.mask;
	return b;
}

/* True if the text may go on with the beginning at one of the four positions of the first word. */
template <bool MASKED>
static __device__ __forceinline__ bool may_begin(const beginning &b, uint32_t first,
						 uint32_t second)
{
	bool may = false;

#pragma unroll
	for (int k = 0; k < 4; k++) {
		uint32_t four = __funnelshift_r(first, second, 8 * k);

		may |= (MASKED ? four & b.mask : four) == b.word;
	}
	return may;
}

/* Is it at one of the eight positions from `at` on, of those up to last?  Positions count from
 * `base`. */
static __device__ __noinline__ bool is_at(const pfs_device_step &s, const uint8_t *base,
					  uint32_t start, uint32_t at, uint32_t last)
{
	for (uint32_t p = max(at, start); p <= min(at + 7, last); p++)
		if (agrees(s, base + p))
			return !s.ends_at_nul || !has_nul(base + start, p - start);
	return false;
}

/* Words of eight bytes, the first of which begins up to seven before the text and the last ends as
 * many behind it. */
template <bool MASKED>
static __device__ __forceinline__ bool contains(const pfs_device_step &s, const beginning &b,
						const uint8_t *text, uint32_t len)
{
	const uint32_t start = (uint32_t)((uintptr_t)text & 7), n = (uint32_t)s.n;
	const uint2 *words = reinterpret_cast<const uint2 *>(text - start);
	uint2 word;

	if (n > len)
		return false;
	const uint32_t last = start + (len - n);

	word = __ldg(words);
	for (uint32_t at = 0; at <= last; at += 8) {
		uint2 next = __ldg(++words);
		uint32_t middle = word.y | b.loose;

		if ((may_begin<MASKED>(b, word.x | b.loose, middle) ||
		     may_begin<MASKED>(b, middle, next.x | b.loose)) &&
		    is_at(s, text - start, start, at, last))
			return true;
		word = next;
	}
	return false;
}

static __device__ __forceinline__ int test_text(const pfs_device_step &s, const beginning &b,
						uint32_t place)
{
	uint32_t len, n = (uint32_t)s.n, element = pfs_element(s.value, place);
	const uint8_t *text;

	if (element == PFS_NOWHERE)
		return UNKNOWN;
	text = pfs_text_at(s.value.column, s.heap, element, &len);
	if (s.op == PFS_DEVICE_CONTAINS)
		return n >= 4 ? contains<false>(s, b, text, len) : contains<true>(s, b, text, len);
	if (s.ends_at_nul && s.op != PFS_DEVICE_BEGINS)
		for (uint32_t i = 0; i < len; i++)
			if (!text[i])
				len = i;
	if (len < n || (s.op == PFS_DEVICE_EQUALS && len != n))
		return NO;
	return agrees(s, s.op == PFS_DEVICE_ENDS ? text + (len - n) : text);
}

/* A text is many steps: a row after the other, not to take registers for several.  Only of rows
 * that are asked for, whose bits the lanes have: of others, which may be no rows any more, the
 * place may lie anywhere. */
static __device__ truths of_text(const pfs_device_step &s, uint64_t base, uint32_t asked)
{
	const beginning b = beginning_of(s);
	truths mine = {0, 0};

#pragma unroll 1
	for (unsigned word = 0; word < 32; word++) {
		uint32_t rows = __shfl_sync(PFS_ALL_LANES, asked, word);
		int truth = NO;

		if (!rows)
			continue;
		if (rows >> lane_of() & 1)
			truth = test_text(s, b, (uint32_t)(base + word * 32 + lane_of()));
		uint32_t yes = __ballot_sync(PFS_ALL_LANES, truth == YES);
		uint32_t unknown = __ballot_sync(PFS_ALL_LANES, truth == UNKNOWN);

		if (lane_of() == word)
			mine = {yes, unknown};
	}
	return mine;
}

static __device__ truths of_leaf(const pfs_device_step &s, uint64_t base, uint64_t to,
				 uint32_t asked)
{
	switch (s.op) {
	case PFS_DEVICE_RANGE:
		return in_range(s, base, to);
	case PFS_DEVICE_COMPARE:
		return each_row(base, to, [&](uint32_t place) -> int {
			int64_t a, b;

			if (!pfs_value(s.value, place, &a) || !pfs_value(s.other, place, &b))
				return UNKNOWN;
			return holds((int)s.high, a, b);
		});
	case PFS_DEVICE_IN:
		return each_row(base, to, [&](uint32_t place) -> int {
			int64_t x;

			return pfs_value(s.value, place, &x) ? (int)is_listed(s.d_list, s.n, x)
							     : (int)UNKNOWN;
		});
	case PFS_DEVICE_IN_SET:
		return each_row(base, to, [&](uint32_t place) -> int {
			int64_t x;

			if (!pfs_value(s.value, place, &x))
				return UNKNOWN;
			return (uint64_t)x < s.n && pfs_bit(s.d_set, (uint32_t)x);
		});
	case PFS_DEVICE_IS_NULL:
		return each_row(base, to, [&](uint32_t place) -> int {
			return pfs_element(s.value, place) == PFS_NOWHERE;
		});
	case PFS_DEVICE_MEMBER:
		return each_row(base, to, [&](uint32_t place) -> int {
			uint32_t row = s.value.d_rows ? s.value.d_rows[place]
						      : s.value.from + place;

			return row < s.n && pfs_bit(s.d_set, row);
		});
	case PFS_DEVICE_UNKNOWN:
		return {0, 0xffffffffu};
	default:
		return of_text(s, base, asked);
	}
}

static __device__ truths run(const pfs_device_step *steps, uint32_t n, uint64_t base, uint64_t to,
			     uint32_t asked)
{
	truths stack[DEPTH];
	int top = -1;

	for (uint32_t i = 0; i < n; i++) {
		const pfs_device_step &s = steps[i];
		truths a, b;

		switch (s.op) {
		case PFS_DEVICE_AND:
			b = stack[top--];
			a = stack[top];
			stack[top].yes = a.yes & b.yes;
			stack[top].unknown =
				(a.yes | a.unknown) & (b.yes | b.unknown) & ~(a.yes & b.yes);
			break;
		case PFS_DEVICE_OR:
			b = stack[top--];
			a = stack[top];
			stack[top].yes = a.yes | b.yes;
			stack[top].unknown = (a.unknown | b.unknown) & ~(a.yes | b.yes);
			break;
		case PFS_DEVICE_NOT:
			stack[top].yes = ~(stack[top].yes | stack[top].unknown);
			break;
		default:
			stack[++top] = of_leaf(s, base, to, asked);
			break;
		}
	}
	return n ? stack[top] : truths{0xffffffffu, 0};
}

/* The bits of a word that lie in from..to. */
static __device__ __forceinline__ uint32_t inside(uint64_t bit, uint64_t from, uint64_t to)
{
	uint64_t low = min(max(from, bit), bit + 32) - bit;
	uint64_t high = min(max(to, bit), bit + 32) - bit;

	return (uint32_t)(((UINT64_C(1) << high) - 1) & ~((UINT64_C(1) << low) - 1));
}

/* A program of at most MOST steps, which come with the launch. */
template <int MOST> struct steps_of {
	pfs_device_step step[MOST];
};

template <int MOST>
static __global__ void __launch_bounds__(WARPS * 32)
	select_kernel(uint32_t *bits, uint64_t n_bits, unsigned long long *count,
		      const __grid_constant__ pfs_device_places places,
		      const __grid_constant__ steps_of<MOST> steps, uint32_t n_steps)
{
	uint64_t base = ((uint64_t)blockIdx.x * WARPS + (threadIdx.x >> 5)) * 1024;
	uint64_t word = base / 32 + lane_of();
	uint32_t mine = base < places.to ? inside(word * 32, places.from, places.to) : 0;
	uint32_t sum;

	if (places.d_mask && mine)
		mine &= places.d_mask[word];
	if (__any_sync(PFS_ALL_LANES, mine != 0))
		mine &= run(steps.step, n_steps, base, places.to, mine).yes;
	if (bits && word < (n_bits + 63) / 64 * 2)
		bits[word] = mine;
	if (!count)
		return;
	sum = __reduce_add_sync(PFS_ALL_LANES, (unsigned)__popc(mine));
	if (lane_of() == 0 && sum)
		atomicAdd(count, (unsigned long long)sum);
}

struct has_bit {
	const uint32_t *bits;
	__device__ bool operator()(uint32_t i) const { return pfs_bit(bits, i); }
};

/* ---- launches ---- */

template <int MOST>
static void launch_select(uint32_t *d_bits, uint64_t n_bits, uint64_t *d_count,
			  const pfs_device_places *places, const pfs_device_program *program,
			  cudaStream_t stream)
{
	uint64_t rows = std::max(places->to, d_bits ? n_bits : 0);
	steps_of<MOST> steps;

	if (program)
		memcpy(&steps, program->step, program->n * sizeof(steps.step[0]));
	select_kernel<MOST><<<pfs_blocks(rows, WARPS * 1024), WARPS * 32, 0, stream>>>(
		d_bits, n_bits, reinterpret_cast<unsigned long long *>(d_count), *places, steps,
		program ? program->n : 0);
}

extern "C" int pfs_cuda_select(uint32_t *d_bits, uint64_t n_bits, uint64_t *d_count,
			       const pfs_device_places *places, const pfs_device_program *program,
			       cudaStream_t stream)
{
	if (!program || program->n <= 8)
		launch_select<8>(d_bits, n_bits, d_count, places, program, stream);
	else
		launch_select<PFS_DEVICE_STEPS>(d_bits, n_bits, d_count, places, program, stream);
	return PFS_CUDA(cudaGetLastError());
}

extern "C" int pfs_cuda_rows_list(uint32_t *d_list, uint64_t *d_n, void *d_temporary,
				  size_t *temporary_size, const uint32_t *d_bits, uint64_t n_bits,
				  cudaStream_t stream)
{
	return PFS_CUDA(cub::DeviceSelect::If(d_temporary, *temporary_size,
					      thrust::counting_iterator<uint32_t>(0), d_list, d_n,
					      (int64_t)n_bits, has_bit{d_bits}, stream));
}
