/* SPDX-License-Identifier: MIT */
/* Patterns are split at their wildcards: a matching text begins with what precedes the first one,
 * ends with what follows the last one, and contains the longest piece in between. This compares
 * bytes, which suffices only for ASCII: SQLite takes several encodings of another character to be
 * equal. So other characters count as wildcards here. */
#include "gpu/textmatch.h"

#include <stdlib.h>

#include "base/checked.h"

/* ---- taking patterns apart ---- */

/* Returns true if the pattern has a wildcard, or what counts as one, at `at`. */
static bool is_wild(const struct pfs_text_match *text, size_t at)
{
	char c = text->text[at];

	if ((uint8_t)c >= 0x80)
		return true;
	if (text->op == PFS_OP_GLOB)
		return c == '*' || c == '?' || c == '[';
	return c == '%' || c == '_';
}

/* Returns where the wildcard at `at` ends; only sets are longer than a byte. */
static size_t wild_end(const struct pfs_text_match *text, size_t at)
{
	const char *p = text->text;

	if (p[at++] != '[' || text->op != PFS_OP_GLOB)
		return at;
	at += p[at] == '^';
	at += p[at] == ']';
	at += strcspn(p + at, "]");
	return p[at] ? at + 1 : at;
}

/* Notes text[from..to), a piece without wildcards. */
static void take_piece(struct pfs_text_match *text, size_t from, size_t to)
{
	const uint8_t *bytes = (const uint8_t *)text->text + from;
	size_t len = to - from;

	text->min_len += len;
	if (from == 0) {
		text->prefix = bytes;
		text->prefix_len = len;
	} else if (to == text->text_len) {
		text->suffix = bytes;
		text->suffix_len = len;
	} else if (len > text->needle.len) {
		text->needle = (struct pfs_needle){.text = bytes, .len = len, .fold = text->fold};
	}
}

static void take_apart(struct pfs_text_match *text)
{
	char star = text->op == PFS_OP_GLOB ? '*' : '%';
	bool stars_alone = true;
	size_t pieces = 0, at = 0;

	while (at < text->text_len) {
		size_t from = at;

		while (at < text->text_len && !is_wild(text, at))
			at++;
		if (at > from) {
			take_piece(text, from, at);
			pieces++;
		}
		if (at < text->text_len) {
			stars_alone &= text->text[at] == star;
			at = wild_end(text, at);
		}
	}
	if (text->prefix_len == text->text_len) /* there is no wildcard */
		text->max_len = text->text_len;
	if (stars_alone && (pieces <= 1 || (pieces == 2 && text->prefix_len && text->suffix_len)))
		text->rest = PFS_REST_NONE; /* the pieces say everything */
}

/* Copies a LIKE or GLOB pattern, folded if it is a LIKE, and takes it apart. */
static int own_pattern(struct pfs_text_match *out, const char *text, size_t len)
{
	out->owned = len ? strndup(text, len) : strdup(""); /* up to the first NUL, as in SQLite */
	if (!out->owned)
		return -ENOMEM;
	out->rest = PFS_REST_PATTERN;
	out->text = out->owned;
	out->text_len = strlen(out->owned);
	out->fold = out->op == PFS_OP_LIKE;
	for (size_t i = 0; i < out->text_len && out->fold; i++)
		if (out->owned[i] >= 'A' && out->owned[i] <= 'Z')
			out->owned[i] |= 0x20;
	take_apart(out);
	return 0;
}

/* ---- the other tests ---- */

/* Returns true if [low, high) is exactly the texts that begin with `low`: high is low with its last
 * byte plus 1. */
static bool is_prefix_range(const struct pfs_text_match *range)
{
	size_t n = range->text_len;

	return range->text && range->high_text && n && range->high_len == n &&
	       memcmp(range->text, range->high_text, n - 1) == 0 &&
	       (uint8_t)range->text[n - 1] + 1 == (uint8_t)range->high_text[n - 1];
}

void pfs_text_match_init_range(struct pfs_text_match *out, const char *low, size_t low_len,
			       const char *high, size_t high_len)
{
	size_t shared = low && high ? PFS_MIN(low_len, high_len) : 0, n = 0;

	*out = (struct pfs_text_match){
		.max_len = SIZE_MAX,
		.op = PFS_OP_BETWEEN,
		.prefix = (const uint8_t *)low,
		.text = low,
		.text_len = low_len,
		.high_text = high,
		.high_len = high_len,
	};
	while (n < shared && low[n] == high[n])
		n++;
	if (is_prefix_range(out))
		n = low_len;
	else
		out->rest = PFS_REST_RANGE;
	out->prefix_len = out->min_len = n;
}

int pfs_text_match_init(struct pfs_text_match *out, enum pfs_op op, const char *text, size_t len)
{
	const uint8_t *bytes = (const uint8_t *)text;

	*out = (struct pfs_text_match){.min_len = len, .max_len = SIZE_MAX, .op = op};
	switch (op) {
	case PFS_OP_GLOB:
	case PFS_OP_LIKE:
		out->min_len = 0;
		return own_pattern(out, text, len);
	case PFS_OP_CONTAINS:
		out->needle = (struct pfs_needle){.text = bytes, .len = len};
		return 0;
	case PFS_OP_SUFFIX:
		out->suffix = bytes;
		out->suffix_len = len;
		return 0;
	default:
		out->prefix = bytes;
		out->prefix_len = len;
		out->max_len = op == PFS_OP_EQ ? len : SIZE_MAX;
		return 0;
	}
}

void pfs_text_match_finish(struct pfs_text_match *match)
{
	free(match->owned);
	match->owned = NULL;
}

/* ---- one text ---- */

/* Returns true if a comes before b, byte by byte; a text comes before its continuations. */
static bool is_before(const uint8_t *a, size_t a_len, const char *b, size_t b_len)
{
	size_t n = PFS_MIN(a_len, b_len);
	int order = n ? memcmp(a, b, n) : 0;

	return order < 0 || (order == 0 && a_len < b_len);
}

static bool in_range(const struct pfs_text_match *range, const uint8_t *text, size_t len)
{
	return !(range->text && is_before(text, len, range->text, range->text_len)) &&
	       (!range->high_text || is_before(text, len, range->high_text, range->high_len));
}

static bool has_needle(const struct pfs_needle *needle, const uint8_t *text, size_t len)
{
	if (!needle->fold)
		return memmem(text, len, needle->text, needle->len) != NULL;
	for (size_t at = 0; at + needle->len <= len; at++)
		if (pfs_same_bytes(text + at, needle->text, needle->len, true))
			return true;
	return false;
}

/* Returns true if a text has the length, the beginning and the end that the test wants. */
static inline bool ends_hold(const struct pfs_text_match *text, const uint8_t *bytes, size_t len)
{
	return len >= text->min_len && len <= text->max_len &&
	       pfs_same_bytes(bytes, text->prefix, text->prefix_len, text->fold) &&
	       pfs_same_bytes(bytes + len - text->suffix_len, text->suffix, text->suffix_len,
			      text->fold);
}

/* Returns how many bytes of a text count. */
static size_t len_of(const struct pfs_text_match *match, const uint8_t *text, size_t len)
{
	return match->op == PFS_OP_LIKE || match->op == PFS_OP_GLOB
		       ? strnlen((const char *)text, len)
		       : len;
}

bool pfs_text_match_ends_hold(const struct pfs_text_match *match, const uint8_t *text, size_t len)
{
	return ends_hold(match, text, len_of(match, text, len));
}

bool pfs_text_match_holds_outside(const struct pfs_text_match *match, const uint8_t *text,
				  size_t len)
{
	len = len_of(match, text, len);
	return ends_hold(match, text, len) &&
	       (!match->needle.len || has_needle(&match->needle, text, len)) &&
	       (match->rest != PFS_REST_RANGE || in_range(match, text, len));
}

/* ---- many texts ---- */

/* What a test wants of the first four bytes at a text's place (its length and its first three
 * bytes), or of its last four bytes. This rules out nearly all texts that do not match. */
struct glance {
	uint32_t mask, wanted, fold; /* (bytes | fold) & mask has to be `wanted` */
};

static uint32_t fold_bits(uint8_t c)
{
	return c >= 'a' && c <= 'z' ? 0x20 : 0;
}

static void glance_at(struct glance *glance, unsigned byte, uint8_t wanted, bool fold)
{
	glance->mask |= UINT32_C(0xff) << 8 * byte;
	glance->wanted |= (uint32_t)wanted << 8 * byte;
	glance->fold |= fold ? fold_bits(wanted) << 8 * byte : 0;
}

static struct glance glance_of_start(const struct pfs_text_match *text)
{
	struct glance glance = {0};

	if (text->min_len == text->max_len)
		glance_at(&glance, 0, (uint8_t)text->min_len, false);
	for (unsigned i = 0; i < 3 && i < text->prefix_len; i++)
		glance_at(&glance, i + 1, text->prefix[i], text->fold);
	return glance;
}

static struct glance glance_of_end(const struct pfs_text_match *text)
{
	struct glance glance = {0};

	for (unsigned i = 0; i < 4 && i < text->suffix_len; i++)
		glance_at(&glance, 3 - i, text->suffix[text->suffix_len - 1 - i], text->fold);
	return glance;
}

static inline bool fits(const struct glance *glance, const uint8_t *at)
{
	uint32_t bytes = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
			 (uint32_t)at[3] << 24;

	return ((bytes | glance->fold) & glance->mask) == glance->wanted;
}

/* Returns false if a glance shows that a text does not match. It skips texts at the heap's end,
 * where it could read too far, and the end of texts of fewer than three bytes, since the bytes
 * before a text may be changing. */
static inline bool may_fit(const struct glance *start, const struct glance *end,
			   const struct pfs_heap *heap, uint32_t place, const uint8_t *at)
{
	if (!pfs_heap_has_slack(heap, place))
		return true;
	return fits(start, at) && (!end->mask || *at < 3 || fits(end, at + *at - 3));
}

static void keep_by_ends(const struct pfs_text_match *match, uint64_t *bits,
			 const struct pfs_heap *heap, const uint32_t *places, size_t words)
{
	struct glance start = glance_of_start(match), end = glance_of_end(match);

	for (size_t w = 0; w < words; w++, places += 64) {
		uint64_t kept = 0;

		for (uint64_t left = bits[w]; left; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctzll(left);
			const uint8_t *at =
				heap->bytes + ((uint64_t)places[i] << heap->place_shift);

			if (*at >= match->min_len && may_fit(&start, &end, heap, places[i], at) &&
			    ends_hold(match, at + 1, *at))
				kept |= UINT64_C(1) << i;
		}
		bits[w] = kept;
	}
}

static void keep_in_range(const struct pfs_text_match *match, uint64_t *bits,
			  const struct pfs_heap *heap, const uint32_t *places, size_t words)
{
	for (size_t w = 0; w < words; w++, places += 64) {
		for (uint64_t left = bits[w]; left; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctzll(left);
			const uint8_t *at =
				heap->bytes + ((uint64_t)places[i] << heap->place_shift);

			if (!in_range(match, at + 1, *at))
				bits[w] &= ~(UINT64_C(1) << i);
		}
	}
}

void pfs_text_match_keep(const struct pfs_text_match *match, uint64_t *bits,
			 const struct pfs_heap *heap, const uint32_t *places, size_t words)
{
	if (match->min_len > match->max_len || match->min_len > UINT8_MAX) {
		memset(bits, 0, words * sizeof(*bits));
		return;
	}
	if (match->prefix_len || match->suffix_len || match->max_len <= UINT8_MAX)
		keep_by_ends(match, bits, heap, places, words);
	if (match->needle.len)
		pfs_needle_version(0)->keep_containing(bits, heap, places, words, &match->needle);
	if (match->rest == PFS_REST_RANGE)
		keep_in_range(match, bits, heap, places, words);
}
