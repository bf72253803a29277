/* SPDX-License-Identifier: MIT */
/* Looking for names where they lie in the image file, without a column, a heap or a place of memory
 * being filled: parts that have none of those asked for are nothing but read, verified and left. */
#include "fs/image/imagefile.h"

#include <string.h>

#include "base/checked.h"
#include "base/lazy.h"
#include "fs/image/imagefile_impl.h"
#include "fs/image/names.h"

#define READ_MAX   ((size_t)64 << 10) /* bytes that are read at once: they stay in the processor's cache */
#define FRONT	   4u		      /* bytes before a name that may be read with it */
#define MANY	   4u /* one of so many is asked for at least: fewer are looked at one by one */

static size_t begin_of(const struct pfs_image_file *file, uint32_t part)
{
	return (size_t)file->parts[part].place * PFS_NAME_UNIT;
}

/* Returns in how many blocks of the heap the names of parts from `part` to `end` lie; *first is the
 * first. */
static uint64_t blocks_of(const struct pfs_image_file *file, uint64_t *first, uint32_t part,
			  uint32_t end)
{
	*first = begin_of(file, part) / PFS_IMAGE_FILE_BLOCK;
	return pfs_div_round_up(begin_of(file, end), PFS_IMAGE_FILE_BLOCK) - *first;
}

struct left_out {
	const struct pfs_image_file *file;
	uint64_t *bits;
	uint32_t from, to; /* slots */
	const struct pfs_image_test *test;
};

/* The words of the part, which may lie in it but for an end; how many. */
static size_t words_of(const struct left_out *left, uint64_t **words, uint32_t part)
{
	uint32_t from = PFS_MAX(left->from, part * PFS_IMAGE_PART);
	uint32_t to = PFS_MIN(left->to, (part + 1) * PFS_IMAGE_PART);

	*words = left->bits + (from - left->from) / 64;
	return (to - from) / 64;
}

/* Nobody has touched the part's names, so that they are those in the file, and many of them are
 * asked for. */
static bool is_wanted(const struct left_out *left, uint32_t part)
{
	uint64_t *words;
	size_t n = words_of(left, &words, part), asked = 0;

	if (!pfs_lazy_is_absent(left->file->lazy_parts[PFS_SECTION_NAME], part))
		return false;
	for (size_t w = 0; w < n; w++)
		asked += (size_t)__builtin_popcountll(words[w]);
	return asked >= n * 64 / MANY;
}

/* The parts from `part` on that can be read at once; the first that is not among them. */
static uint32_t run_end(const struct left_out *left, uint32_t part, uint32_t end)
{
	uint32_t to = part;
	uint64_t first;

	while (to < end && is_wanted(left, to) &&
	       blocks_of(left->file, &first, part, to + 1) <= READ_MAX / PFS_IMAGE_FILE_BLOCK)
		to++;
	return to;
}

/* Where the names of the part's slots begin, each where the one before ends; `none`: where it has
 * none.  False: they are not where the slots are. */
static bool place_names(const struct pfs_image_file *file, uint32_t places[PFS_IMAGE_PART],
			const uint8_t *names, uint32_t none, uint32_t part)
{
	uint32_t end = file->parts[part + 1].place - file->parts[part].place, next = 0;
	uint64_t live[PFS_IMAGE_PART / 64];

	if (!pfs_imagefile_read(file, live, PFS_SECTION_LIVE, part, 1))
		return false;
	for (uint32_t i = 0; i < PFS_IMAGE_PART; i++) {
		places[i] = none;
		if (!(live[i / 64] >> i % 64 & 1) || part * PFS_IMAGE_PART + i == file->header.root)
			continue;
		if (next >= end)
			return false;
		places[i] = next;
		next += (1 + names[(size_t)next * PFS_NAME_UNIT] + 1 + PFS_NAME_UNIT - 1) /
			PFS_NAME_UNIT;
	}
	return next == end;
}

static void leave_out_part(const struct left_out *left, const uint8_t *names, uint32_t none,
			   uint32_t part)
{
	size_t size = begin_of(left->file, part + 1) - begin_of(left->file, part);
	const struct pfs_image_test *test = left->test;
	uint32_t places[PFS_IMAGE_PART];
	uint64_t *words;
	size_t n = words_of(left, &words, part);
	uint32_t first = PFS_MAX(left->from, part * PFS_IMAGE_PART) - part * PFS_IMAGE_PART;

	if (!test->has(test->arg, names, size))
		memset(words, 0, n * sizeof(*words));
	else if (place_names(left->file, places, names, none, part))
		test->keep(test->arg, words, names, places + first, n);
}

/* What is damaged is left to who fills it. */
static void leave_out_run(const struct left_out *left, uint32_t part, uint32_t end)
{
	const struct pfs_image_file *file = left->file;
	uint8_t memory[FRONT + READ_MAX + PFS_IMAGE_HAS_SLACK], *blocks = memory + FRONT;
	uint64_t first, n = blocks_of(file, &first, part, end), size = n * PFS_IMAGE_FILE_BLOCK;

	if (!pfs_imagefile_read(file, blocks, PFS_SECTION_HEAP, first, n))
		return;
	memset(memory, 0, FRONT);
	memset(blocks + size, 0, PFS_IMAGE_HAS_SLACK);
	for (; part < end; part++) {
		size_t from = begin_of(file, part) - first * PFS_IMAGE_FILE_BLOCK;

		leave_out_part(left, blocks + from, (uint32_t)((size - from) / PFS_NAME_UNIT),
			       part);
	}
}

void pfs_imagefile_leave_out(const struct pfs_image *image, uint64_t *bits, uint32_t slot,
			     size_t words, const struct pfs_image_test *test)
{
	struct left_out left = {
		.file = image->file, .from = slot, .to = slot + (uint32_t)words * 64, .test = test};
	uint32_t part = slot / PFS_IMAGE_PART, end, to;

	if (!left.file)
		return;
	left.bits = bits;
	end = (uint32_t)PFS_MIN(pfs_div_round_up(left.to, PFS_IMAGE_PART),
				left.file->layout.n_parts);
	for (; part < end; part = PFS_MAX(to, part + 1)) {
		to = run_end(&left, part, end);
		if (to > part)
			leave_out_run(&left, part, to);
	}
}
