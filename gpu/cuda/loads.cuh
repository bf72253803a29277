/* SPDX-License-Identifier: MIT */
/* gpu/cuda/loads.cuh - how kernels that read all of a column do so: a thread takes places in fours, each
 * beginning at a multiple of four, and loads a four at once.  What a column is like is decided once for
 * all of a thread's rows, and nothing waits for a load before the next ones are under way. */
#ifndef PFS_GPU_CUDA_LOADS_CUH
#define PFS_GPU_CUDA_LOADS_CUH

#include "gpu/cuda/relation.cuh"

/* Places of a thread's fours: row r of them is first[r / 4] + r % 4, and counts if *valid has its bit. */
template <int FOURS> struct pfs_fours {
	uint32_t first[FOURS];
	uint32_t valid;
};

/* The rows of the four at `first` that are among `places`, a bit each. */
static __device__ __forceinline__ uint32_t pfs_valid_of(const pfs_device_places &places,
							uint64_t first)
{
	uint32_t bits = 15;

	if (first >= places.to)
		bits = 0;
	else if (first + 4 > places.to)
		bits >>= first + 4 - places.to;
	if (first < places.from)
		bits = first + 4 <= places.from ? 0 : bits & 15u << (places.from - first);
	if (bits && places.d_mask)
		bits &= places.d_mask[first >> 5] >> (first & 31);
	return bits;
}

/* Takes those of `places` that lie in the tile at `base`, a multiple of four, for `threads`
 * threads. */
template <int FOURS>
static __device__ __forceinline__ void pfs_take(pfs_fours<FOURS> &f, const pfs_device_places &places,
						uint64_t base, uint32_t threads)
{
	f.valid = 0;
#pragma unroll
	for (int i = 0; i < FOURS; i++) {
		uint64_t first = base + ((uint64_t)i * threads + threadIdx.x) * 4;

		f.first[i] = (uint32_t)first;
		f.valid |= pfs_valid_of(places, first) << 4 * i;
	}
}

/* Loads elements as they lie, without sign, shift or base. R is uint64_t, or uint32_t where they
 * have no more bytes. */
template <class T, class R>
static __device__ __forceinline__ void pfs_load_four(R *raw, const void *data, uint64_t first)
{
	if (sizeof(T) == 8) {
		const ulonglong2 *at = reinterpret_cast<const ulonglong2 *>(
			static_cast<const uint64_t *>(data) + first);
		ulonglong2 a = __ldcs(at), b = __ldcs(at + 1);

		raw[0] = (R)a.x, raw[1] = (R)a.y, raw[2] = (R)b.x, raw[3] = (R)b.y;
	} else if (sizeof(T) == 4) {
		uint4 a = __ldcs(reinterpret_cast<const uint4 *>(
			static_cast<const uint32_t *>(data) + first));

		raw[0] = a.x, raw[1] = a.y, raw[2] = a.z, raw[3] = a.w;
	} else if (sizeof(T) == 2) {
		uint2 a = __ldcs(reinterpret_cast<const uint2 *>(
			static_cast<const uint16_t *>(data) + first));

		raw[0] = a.x & 0xffff, raw[1] = a.x >> 16, raw[2] = a.y & 0xffff, raw[3] = a.y >> 16;
	} else {
		uint32_t a = __ldcs(reinterpret_cast<const uint32_t *>(
			static_cast<const uint8_t *>(data) + first));

#pragma unroll
		for (int r = 0; r < 4; r++)
			raw[r] = a >> 8 * r & 255;
	}
}

template <class T, int FOURS, class R>
static __device__ __forceinline__ void pfs_load_flat(R (&raw)[FOURS * 4],
						     const pfs_device_value &v,
						     const pfs_fours<FOURS> &f, uint32_t known)
{
#pragma unroll
	for (int i = 0; i < FOURS; i++)
		if (known >> 4 * i & 15)
			pfs_load_four<T, R>(raw + 4 * i, v.column.d_data, v.from + (uint64_t)f.first[i]);
}

static __device__ __forceinline__ uint64_t pfs_raw(const pfs_device_column &c, uint32_t element)
{
	switch (c.width) {
	case 1:
		return static_cast<const uint8_t *>(c.d_data)[element];
	case 2:
		return static_cast<const uint16_t *>(c.d_data)[element];
	case 4:
		return static_cast<const uint32_t *>(c.d_data)[element];
	default:
		return static_cast<const uint64_t *>(c.d_data)[element];
	}
}

/* True: elements of neighbouring places are neighbours, and of a four's four in one word of NULL bits. */
static __device__ __forceinline__ bool pfs_is_flat(const pfs_device_value &v)
{
	return !v.d_rows && !v.column.d_via && (v.from & 3) == 0;
}

/* The raw elements of the rows that are valid; of NULLs the bit of *known, at first f.valid, goes. */
template <int FOURS, class R>
static __device__ __forceinline__ void pfs_load(R (&raw)[FOURS * 4], uint32_t *known,
						const pfs_device_value &v,
						const pfs_fours<FOURS> &f)
{
	const pfs_device_column &c = v.column;

	if (!pfs_is_flat(v)) {
#pragma unroll
		for (int r = 0; r < FOURS * 4; r++) {
			uint32_t element = PFS_NOWHERE;

			if (*known >> r & 1)
				element = pfs_element(v, f.first[r / 4] + r % 4);
			if (element == PFS_NOWHERE)
				*known &= ~(1u << r);
			else
				raw[r] = (R)pfs_raw(c, element);
		}
		return;
	}
	if (c.width == 4)
		pfs_load_flat<uint32_t, FOURS, R>(raw, v, f, *known);
	else if (sizeof(R) == 8 && c.width == 8)
		pfs_load_flat<uint64_t, FOURS, R>(raw, v, f, *known);
	else if (c.width == 2)
		pfs_load_flat<uint16_t, FOURS, R>(raw, v, f, *known);
	else
		pfs_load_flat<uint8_t, FOURS, R>(raw, v, f, *known);
	if (!c.d_nulls)
		return;
#pragma unroll
	for (int i = 0; i < FOURS; i++) {
		uint64_t bit = v.from + (uint64_t)f.first[i];

		if (*known >> 4 * i & 15)
			*known &= ~((c.d_nulls[bit >> 5] >> (bit & 31) & 15) << 4 * i);
	}
}

/* The value of a raw element, as pfs_read_any has it. */
static __device__ __forceinline__ int64_t pfs_cooked(const pfs_device_column &c, uint64_t raw)
{
	if (c.is_real)
		return pfs_order_real(__longlong_as_double((long long)raw));
	if (c.is_signed)
		raw = c.width == 1   ? (uint64_t)(int64_t)(int8_t)raw
		      : c.width == 2 ? (uint64_t)(int64_t)(int16_t)raw
		      : c.width == 4 ? (uint64_t)(int64_t)(int32_t)raw
				     : raw;
	return (int64_t)((raw >> c.shift & c.mask) + (uint64_t)c.base);
}

/* True: a raw element of 4 bytes or less is the value. */
static __device__ __forceinline__ bool pfs_is_bare(const pfs_device_column &c)
{
	return c.width <= 4 && !c.is_signed && !c.shift && !c.base && c.mask == UINT64_MAX;
}

/* R is uint32_t for a key that is bare and has no map.  Of numbers of rows all ones become 0, which is
 * NULL's, as `less` is all ones, too. */
template <int FOURS, class R>
static __device__ __forceinline__ void pfs_add_key(uint32_t (&number)[FOURS * 4],
						   const pfs_device_key &key,
						   const pfs_fours<FOURS> &f)
{
	const uint32_t stride = (uint32_t)key.stride, less = (uint32_t)key.least - 1;
	uint32_t known = f.valid;
	R raw[FOURS * 4];

	pfs_load<FOURS>(raw, &known, key.value, f);
#pragma unroll
	for (int r = 0; r < FOURS * 4; r++) {
		if (!(known >> r & 1))
			continue;
		uint32_t x = (uint32_t)raw[r];

		if (sizeof(R) == 8)
			x = (uint32_t)pfs_cooked(key.value.column, raw[r]);
		if (sizeof(R) == 8 && key.d_map)
			x = key.d_map[x];
		number[r] += (x - less) * stride;
	}
}

/* The rows' numbers, where the keys can make fewer than 2^32. */
template <int FOURS>
static __device__ __forceinline__ void pfs_numbers(uint32_t (&number)[FOURS * 4],
						   const pfs_device_keys &keys,
						   const pfs_fours<FOURS> &f)
{
#pragma unroll
	for (int r = 0; r < FOURS * 4; r++)
		number[r] = 0;
	for (uint32_t k = 0; k < keys.n; k++) {
		const pfs_device_key &key = keys.key[k];

		if (pfs_is_bare(key.value.column) && !key.d_map)
			pfs_add_key<FOURS, uint32_t>(number, key, f);
		else
			pfs_add_key<FOURS, uint64_t>(number, key, f);
	}
}

#endif
