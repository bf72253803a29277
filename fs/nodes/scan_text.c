/* SPDX-License-Identifier: MIT */
/* Patterns are taken apart at their wildcards: what stands before the first one begins a matching
 * text, what stands after the last one ends it, and the longest piece between them is in it.  That
 * is said of ASCII alone, whose bytes are characters: other characters can be written in several
 * ways that SQLite takes for the same, and count as wildcards here. */
#include "fs/nodes/scan_text.h"

#include <string.h>

#include "base/checked.h"
#include "base/pattern.h"
#include "fs/image/names.h"

#define LOOKS 256u /* of patterns, at the most: 16 M steps, while the tree is held */

/* ---- taking patterns apart ---- */

/* Whether the pattern has a wildcard, or what counts as one, at `at`. */
static bool is_wild(const struct pfs_scan_text *text, size_t at)
{
	char c = text->text[at];

	if ((uint8_t)c >= 0x80)
		return true;
	if (text->verify == PFS_TEST_GLOB)
		return c == '*' || c == '?' || c == '[';
	return c == '%' || c == '_';
}

/* Where the wildcard at `at` ends; only sets are longer than a byte. */
static size_t wild_end(const struct pfs_scan_text *text, size_t at)
{
	const char *p = text->text;

	if (p[at++] != '[' || text->verify != PFS_TEST_GLOB)
		return at;
	at += p[at] == '^';
	at += p[at] == ']';
	at += strcspn(p + at, "]");
	return p[at] ? at + 1 : at;
}

/* Notes a piece without wildcards. */
static void take_piece(struct pfs_scan_text *text, size_t from, size_t to)
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

static void take_apart(struct pfs_scan_text *text)
{
	char star = text->verify == PFS_TEST_GLOB ? '*' : '%';
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
	if (text->prefix_len == text->text_len) /* no wildcard at all */
		text->max_len = text->text_len;
	if (stars_alone && (pieces <= 1 || (pieces == 2 && text->prefix_len && text->suffix_len)))
		text->verify = PFS_TEST_NONE; /* that was all of it */
}

static int own_pattern(struct pfs_scan_text *out, const struct pfs_predicate *predicate)
{
	out->owned =
		strndup(predicate->text, predicate->text_len); /* to the first NUL, as SQLite */
	if (!out->owned)
		return -ENOMEM;
	out->verify = predicate->test;
	out->text = out->owned;
	out->text_len = strlen(out->owned);
	out->fold = predicate->test == PFS_TEST_LIKE;
	for (size_t i = 0; i < out->text_len && out->fold; i++)
		if (out->owned[i] >= 'A' && out->owned[i] <= 'Z')
			out->owned[i] |= 0x20;
	take_apart(out);
	return 0;
}

/* ---- the other tests ---- */

/* [low, high) that are all texts with the beginning low: high is low with its last byte raised. */
static bool is_prefix_range(const struct pfs_predicate *p)
{
	size_t n = p->text_len;

	return p->text && p->high_text && n && p->high_len == n &&
	       memcmp(p->text, p->high_text, n - 1) == 0 &&
	       (uint8_t)p->text[n - 1] + 1 == (uint8_t)p->high_text[n - 1];
}

static void init_between(struct pfs_scan_text *out, const struct pfs_predicate *p)
{
	size_t shared = p->text && p->high_text ? PFS_MIN(p->text_len, p->high_len) : 0, n = 0;

	out->prefix = (const uint8_t *)p->text;
	if (is_prefix_range(p)) {
		out->prefix_len = out->min_len = p->text_len;
		return;
	}
	while (n < shared && p->text[n] == p->high_text[n])
		n++;
	out->prefix_len = out->min_len = n;
	out->verify = PFS_TEST_BETWEEN;
}

int pfs_scan_text_init(struct pfs_scan_text *out, const struct pfs_predicate *predicate)
{
	const uint8_t *bytes = (const uint8_t *)predicate->text;
	size_t len = predicate->text_len;

	*out = (struct pfs_scan_text){
		.max_len = SIZE_MAX,
		.verify = PFS_TEST_NONE,
		.text = predicate->text,
		.text_len = len,
		.high_text = predicate->high_text,
		.high_len = predicate->high_len,
	};
	switch (predicate->test) {
	case PFS_TEST_GLOB:
	case PFS_TEST_LIKE:
		return own_pattern(out, predicate);
	case PFS_TEST_BETWEEN:
		init_between(out, predicate);
		return 0;
	case PFS_TEST_CONTAINS:
		out->needle = (struct pfs_needle){.text = bytes, .len = len};
		break;
	case PFS_TEST_SUFFIX:
		out->suffix = bytes;
		out->suffix_len = len;
		break;
	default:
		out->prefix = bytes;
		out->prefix_len = len;
		out->max_len = predicate->test == PFS_TEST_EQUAL ? len : SIZE_MAX;
	}
	out->min_len = len;
	return 0;
}

int pfs_scan_text_init_ext(struct pfs_scan_text *out, const char *text, size_t len)
{
	*out = (struct pfs_scan_text){
		.min_len = len + 2, /* something stands before the dot */
		.max_len = len && memchr(text, '.', len) ? 0 : SIZE_MAX,
		.suffix_len = len + 1,
		.verify = PFS_TEST_NONE,
	};
	out->owned = malloc(len + 1);
	if (!out->owned)
		return -ENOMEM;
	out->owned[0] = '.';
	if (len)
		memcpy(out->owned + 1, text, len);
	out->suffix = (const uint8_t *)out->owned;
	return 0;
}

void pfs_scan_text_finish(struct pfs_scan_text *text)
{
	free(text->owned);
	text->owned = NULL;
}

/* ---- one text ---- */

/* By memcmp, the shorter one first. */
static bool is_before(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t n = PFS_MIN(a_len, b_len);
	int order = n ? memcmp(a, b, n) : 0;

	return order < 0 || (order == 0 && a_len < b_len);
}

bool pfs_scan_text_verify(const struct pfs_scan_text *text, const char *bytes, size_t len)
{
	switch (text->verify) {
	case PFS_TEST_GLOB:
		return pfs_glob_matches(text->text, bytes);
	case PFS_TEST_LIKE:
		return pfs_like_matches(text->text, bytes);
	case PFS_TEST_BETWEEN:
		return !(text->text && is_before(bytes, len, text->text, text->text_len)) &&
		       (!text->high_text || is_before(bytes, len, text->high_text, text->high_len));
	default:
		return true;
	}
}

static bool has_needle(const struct pfs_needle *needle, const char *bytes, size_t len)
{
	if (!needle->fold)
		return memmem(bytes, len, needle->text, needle->len) != NULL;
	for (size_t at = 0; at + needle->len <= len; at++)
		if (pfs_same_bytes((const uint8_t *)bytes + at, needle->text, needle->len, true))
			return true;
	return false;
}

/* Length, beginning and end. */
static inline bool ends_hold(const struct pfs_scan_text *text, const uint8_t *bytes, size_t len)
{
	return len >= text->min_len && len <= text->max_len &&
	       pfs_same_bytes(bytes, text->prefix, text->prefix_len, text->fold) &&
	       pfs_same_bytes(bytes + len - text->suffix_len, text->suffix, text->suffix_len,
			      text->fold);
}

bool pfs_scan_text_holds(const struct pfs_scan_text *text, const char *bytes, size_t len)
{
	return ends_hold(text, (const uint8_t *)bytes, len) &&
	       (!text->needle.len || has_needle(&text->needle, bytes, len)) &&
	       pfs_scan_text_verify(text, bytes, len);
}

static int count_look(void *arg)
{
	return ++*(unsigned *)arg > LOOKS;
}

int pfs_scan_text_holds_long(const struct pfs_scan_text *text, bool *holds, const char *bytes,
			     size_t len)
{
	bool is_glob = text->verify == PFS_TEST_GLOB;
	unsigned looks = 0;
	const struct pfs_pattern_look look = {count_look, &looks};

	if (!is_glob && text->verify != PFS_TEST_LIKE) {
		*holds = pfs_scan_text_holds(text, bytes, len);
		return 0;
	}
	*holds = ends_hold(text, (const uint8_t *)bytes, len) &&
		 (!text->needle.len || has_needle(&text->needle, bytes, len));
	if (*holds && pfs_pattern_matches_until(holds, &look,
						is_glob ? PFS_PATTERN_GLOB : PFS_PATTERN_LIKE,
						text->text, 0, bytes, len))
		return -E2BIG;
	return 0;
}

/* ---- many names ---- */

/* The whole name behind its length, an end before its NUL, or the longest piece. */
void pfs_scan_text_trace(const struct pfs_scan_text *text, struct pfs_scan_trace *trace)
{
	const uint8_t *from = text->needle.text;
	size_t len = text->needle.len, before = 0;

	if (text->prefix_len && text->prefix_len >= len) {
		from = text->prefix;
		len = text->prefix_len;
		/* a length that is a capital letter's number is none of the small ones that a needle without case has */
		before = text->max_len == len && !(text->fold && len >= 'A' && len <= 'Z');
	}
	if (text->suffix_len && text->suffix_len >= len) {
		from = text->suffix;
		len = text->suffix_len;
		before = 0;
	}
	trace->needle = (struct pfs_needle){.text = trace->bytes, .fold = text->fold};
	if (!len || len > PFS_NAME_MAX)
		return;
	trace->bytes[0] = (uint8_t)len;
	memcpy(trace->bytes + before, from, len);
	trace->needle.len = before + len;
	if (from == text->suffix)
		trace->bytes[trace->needle.len++] = 0;
}

/* The first four bytes of a name's place (its length, then the first three of its bytes), or the
 * last four of its bytes, as a number under a mask: tells nearly all apart. */
struct glance {
	uint32_t mask, wanted, fold;
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

static struct glance glance_of_start(const struct pfs_scan_text *text)
{
	struct glance glance = {0};

	if (text->min_len == text->max_len)
		glance_at(&glance, 0, (uint8_t)text->min_len, false);
	for (unsigned i = 0; i < 3 && i < text->prefix_len; i++)
		glance_at(&glance, i + 1, text->prefix[i], text->fold);
	return glance;
}

static struct glance glance_of_end(const struct pfs_scan_text *text)
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

static void keep_by_ends(const struct pfs_scan_text *text, uint64_t *bits, const uint8_t *heap,
			 const uint32_t *place, size_t words)
{
	struct glance start = glance_of_start(text), end = glance_of_end(text);

	for (size_t w = 0; w < words; w++, place += 64) {
		uint64_t kept = 0;

		for (uint64_t left = bits[w]; left; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctzll(left);
			const uint8_t *name = heap + (size_t)place[i] * PFS_NAME_UNIT;

			/* of shorter names the end would be read with the name before, which may be written now */
			if (fits(&start, name) && name[0] >= text->min_len &&
			    (!end.mask || name[0] < 3 || fits(&end, name + name[0] - 3)) &&
			    ends_hold(text, name + 1, name[0]))
				kept |= UINT64_C(1) << i;
		}
		bits[w] = kept;
	}
}

void pfs_scan_text_keep_names(const struct pfs_scan_text *text, const struct pfs_scan_simd *simd,
			      uint64_t *bits, const uint8_t *heap, const uint32_t *place,
			      size_t words)
{
	if (text->min_len > text->max_len || text->min_len > PFS_NAME_MAX) {
		memset(bits, 0, words * sizeof(*bits));
		return;
	}
	if (text->prefix_len || text->suffix_len || text->max_len <= PFS_NAME_MAX)
		keep_by_ends(text, bits, heap, place, words);
	if (text->needle.len)
		simd->keep_containing(bits, heap, place, words, &text->needle);
}
