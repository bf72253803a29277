/* SPDX-License-Identifier: MIT */
#include "fs/nodes/scan_names.h"

#include <stdlib.h>

#include "fs/image/imagefile.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

/* ---- predicates ---- */

int pfs_scan_match_init(struct pfs_text_match *out, const struct pfs_predicate *predicate)
{
	static const enum pfs_op ops[] = {
		[PFS_TEST_EQUAL] = PFS_OP_EQ,	  [PFS_TEST_GLOB] = PFS_OP_GLOB,
		[PFS_TEST_LIKE] = PFS_OP_LIKE,	  [PFS_TEST_CONTAINS] = PFS_OP_CONTAINS,
		[PFS_TEST_PREFIX] = PFS_OP_PREFIX, [PFS_TEST_SUFFIX] = PFS_OP_SUFFIX,
	};

	if (predicate->test != PFS_TEST_BETWEEN)
		return pfs_text_match_init(out, ops[predicate->test], predicate->text,
					   predicate->text_len);
	pfs_text_match_init_range(out, predicate->text, predicate->text_len, predicate->high_text,
				  predicate->high_len);
	return 0;
}

int pfs_scan_match_init_ext(struct pfs_text_match *out, const char *text, size_t len)
{
	char *end = malloc(len + 1);
	int error;

	*out = (struct pfs_text_match){.owned = end};
	if (!end)
		return -ENOMEM;
	end[0] = '.';
	if (len)
		memcpy(end + 1, text, len);
	error = pfs_text_match_init(out, PFS_OP_SUFFIX, end, len + 1);
	out->owned = end;
	out->min_len++; /* something stands before the dot */
	if (len && memchr(text, '.', len))
		out->max_len = 0;
	return error;
}

/* ---- names in the image file ---- */

/* Bytes that stand in the heap of names wherever there is one for which the test holds. */
struct trace {
	struct pfs_needle needle; /* len 0: nothing is known of them */
	uint8_t bytes[1 + PFS_NAME_MAX + 1];
};

/* The whole name behind its length, an end before its NUL, or the longest piece. */
static void find_trace(const struct pfs_text_match *match, struct trace *trace)
{
	const uint8_t *from = match->needle.text;
	size_t len = match->needle.len, before = 0;

	if (match->prefix_len && match->prefix_len >= len) {
		from = match->prefix;
		len = match->prefix_len;
		/* a length that is a capital letter's number is none of the small ones that a
		 * needle without case has */
		before = match->max_len == len && !(match->fold && len >= 'A' && len <= 'Z');
	}
	if (match->suffix_len && match->suffix_len >= len) {
		from = match->suffix;
		len = match->suffix_len;
		before = 0;
	}
	trace->needle = (struct pfs_needle){.text = trace->bytes, .fold = match->fold};
	if (!len || len > PFS_NAME_MAX)
		return;
	trace->bytes[0] = (uint8_t)len;
	memcpy(trace->bytes + before, from, len);
	trace->needle.len = before + len;
	if (from == match->suffix)
		trace->bytes[trace->needle.len++] = 0;
}

struct sought {
	struct trace trace;
	const struct pfs_text_match *match;
};

static bool has_trace(const void *arg, const uint8_t *heap, size_t size)
{
	const struct sought *sought = arg;

	return pfs_needle_version(0)->has(heap, size, &sought->trace.needle);
}

static void keep_sought(const void *arg, uint64_t *bits, const uint8_t *heap, const uint32_t *place,
			size_t words)
{
	const struct sought *sought = arg;
	const struct pfs_heap names = {.bytes = heap,
				       .size = UINT64_MAX,
				       .place_shift = (uint8_t)__builtin_ctz(PFS_NAME_UNIT),
				       .length_size = 1};

	pfs_text_match_keep(sought->match, bits, &names, place, words);
}

void pfs_scan_leave_out_names(const struct pfs_tree *tree, const struct pfs_text_match *match,
			      uint64_t *bits, uint32_t slot, size_t words)
{
	struct sought sought = {.match = match};
	const struct pfs_image_test test = {&sought, has_trace, keep_sought};

	if (!tree->image.file)
		return;
	find_trace(match, &sought.trace);
	if (sought.trace.needle.len)
		pfs_imagefile_leave_out(&tree->image, bits, slot, words, &test);
}
