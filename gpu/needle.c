/* SPDX-License-Identifier: MIT */
#include "gpu/needle.h"

#include "base/checked.h"

/* ---- portable ---- */

static bool has_c(const uint8_t *bytes, size_t size, const struct pfs_needle *needle)
{
	if (!needle->fold)
		return memmem(bytes, size, needle->text, needle->len) != NULL;
	for (size_t at = 0; at + needle->len <= size; at++)
		if (pfs_same_bytes(bytes + at, needle->text, needle->len, true))
			return true;
	return false;
}

static void keep_containing_c(uint64_t *bits, const struct pfs_heap *heap, const uint32_t *places,
			      size_t words, const struct pfs_needle *needle)
{
	for (size_t w = 0; w < words; w++, places += 64) {
		for (uint64_t left = bits[w]; left; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctzll(left);
			size_t len;
			const uint8_t *text = pfs_heap_text(heap, places[i], &len);

			if (!has_c(text, len, needle))
				bits[w] &= ~(UINT64_C(1) << i);
		}
	}
}

static const struct pfs_needle_search portable = {
	.name = "portable",
	.keep_containing = keep_containing_c,
	.has = has_c,
};

/* ---- AVX2 ---- */

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2")))

AVX2 static inline __m256i load(const void *values)
{
	return _mm256_loadu_si256(values);
}

/* The needle's first and last byte, and for each the bit that folds its case, or 0. */
struct ends {
	__m256i first, last, first_fold, last_fold;
};

/* Returns the bit that folds the case of a letter, or 0. */
static uint8_t fold_of(uint8_t c)
{
	return c >= 'a' && c <= 'z' ? 0x20 : 0;
}

AVX2 static inline struct ends ends_of(const struct pfs_needle *needle)
{
	uint8_t first = needle->text[0], last = needle->text[needle->len - 1];

	return (struct ends){
		.first = _mm256_set1_epi8((char)first),
		.last = _mm256_set1_epi8((char)last),
		.first_fold = _mm256_set1_epi8(needle->fold ? (char)fold_of(first) : 0),
		.last_fold = _mm256_set1_epi8(needle->fold ? (char)fold_of(last) : 0),
	};
}

/* Loads 32 bytes, of which `left` belong to the text. The bytes behind may change while a frozen
 * tree is read; the caller ignores them. */
AVX2 static inline __m256i load_text(const uint8_t *bytes, size_t left PFS_UNUSED)
{
#ifdef __SANITIZE_THREAD__
	uint8_t copy[32] = {0};

	memcpy(copy, bytes, PFS_MIN(left, sizeof(copy)));
	return load(copy);
#else
	return load(bytes); /* the caller provides PFS_NEEDLE_SLACK */
#endif
}

/* Returns true if the bytes contain the needle. Checks its first and last byte at 32 positions at a
 * time, and compares the whole needle where both match. */
AVX2 static inline bool contains_avx2(const uint8_t *bytes, size_t size,
				      const struct pfs_needle *needle, const struct ends *ends)
{
	/* the last position at which the needle may begin */
	ptrdiff_t last = (ptrdiff_t)size - (ptrdiff_t)needle->len;

	for (ptrdiff_t at = 0; at <= last; at += 32) {
		__m256i a =
			_mm256_or_si256(load_text(bytes + at, size - (size_t)at), ends->first_fold);
		__m256i b = _mm256_or_si256(
			load_text(bytes + at + needle->len - 1, (size_t)(last - at) + 1),
			ends->last_fold);
		__m256i both = _mm256_and_si256(_mm256_cmpeq_epi8(a, ends->first),
						_mm256_cmpeq_epi8(b, ends->last));
		uint32_t hits = (uint32_t)_mm256_movemask_epi8(both);

		if (last - at < 31)
			hits = _bzhi_u32(hits, (unsigned)(last - at) + 1);
		for (; hits; hits &= hits - 1)
			if (pfs_same_bytes(bytes + at + __builtin_ctz(hits), needle->text,
					   needle->len, needle->fold))
				return true;
	}
	return false;
}

AVX2 static void keep_containing_avx2(uint64_t *bits, const struct pfs_heap *heap,
				      const uint32_t *places, size_t words,
				      const struct pfs_needle *needle)
{
	const struct pfs_heap in = *heap; /* a copy, which writing bits cannot change */
	struct ends ends = ends_of(needle);

	for (size_t w = 0; w < words; w++, places += 64) {
		uint64_t found = 0;

		for (uint64_t left = bits[w]; left; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctzll(left);
			const uint8_t *at = in.bytes + ((uint64_t)places[i] << in.place_shift);
			bool has = pfs_heap_has_slack(&in, places[i])
					   ? contains_avx2(at + 1, *at, needle, &ends)
					   : has_c(at + 1, *at, needle);

			found |= (uint64_t)has << i;
		}
		bits[w] = found;
	}
}

AVX2 static bool has_avx2(const uint8_t *bytes, size_t size, const struct pfs_needle *needle)
{
	struct ends ends = ends_of(needle);

	return contains_avx2(bytes, size, needle, &ends);
}

static const struct pfs_needle_search avx2 = {
	.name = "AVX2",
	.keep_containing = keep_containing_avx2,
	.has = has_avx2,
};
#endif

const struct pfs_needle_search *pfs_needle_version(unsigned i)
{
	const struct pfs_needle_search *versions[3];
	unsigned n = 0;

#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
	    __builtin_cpu_supports("bmi2"))
		versions[n++] = &avx2;
#endif
	versions[n++] = &portable;
	return i < n ? versions[i] : NULL;
}
