/* SPDX-License-Identifier: MIT */
/* What an image file says of directories' subtrees: where their slots end (span.h), and their
 * totals (totals.h).  In the file both are lists in the order of the directories' slots, with a bit
 * a slot that tells which those are; what struct pfs_image_part counts tells where a part's begin.
 */
#include "fs/image/imagefile_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/lazy.h"
#include "fs/image/dirtable.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/tree/tree_impl.h"

#define PART_WORDS (PFS_IMAGE_PART / 64)
#define TABLE_PARTS                                                                                \
	((uint32_t)(PFS_IMAGE_FILE_BLOCK / sizeof(struct pfs_dirtable_block) /                     \
		    PART_WORDS)) /* in a block of the table */
#define END_BLOCKS                                                                                 \
	(PFS_IMAGE_PART * sizeof(uint32_t) / PFS_IMAGE_FILE_BLOCK +                                \
	 1) /* that the ends of a part's directories lie in */

/* ---- memory ---- */

int pfs_imagefile_lend_subtrees(struct pfs_image_file *file)
{
	const struct pfs_image_header *header = &file->header;
	void *ends = NULL, *blocks, *entries;

	PFS_TRY(pfs_totals_lend(file->tree, header->end, header->directories, &blocks, &entries));
	if (header->span_strays)
		PFS_TRY(pfs_spans_lend(file->tree, header->end, &ends));
	file->memory[PFS_SECTION_ENDS] = ends;
	file->memory[PFS_SECTION_TOTALS] = entries;
	file->memory[PFS_SECTION_DIRECTORIES] = blocks;
	return 0;
}

size_t pfs_imagefile_subtrees_size(const struct pfs_image_file *file, unsigned section)
{
	const struct pfs_image_header *header = &file->header;

	switch (section) {
	case PFS_SECTION_ENDS:
		return header->span_strays ? (size_t)header->end * sizeof(uint32_t) : 0;
	case PFS_SECTION_DIRECTORIES:
		return pfs_div_round_up(header->end, PFS_DIRTABLE_BLOCK) *
		       sizeof(struct pfs_dirtable_block);
	default:
		return file->layout.size[section];
	}
}

int pfs_imagefile_load_strays(struct pfs_image_file *file)
{
	const struct pfs_image_header *header = &file->header;
	const uint64_t unit = file->layout.unit[PFS_SECTION_SPAN_STRAYS],
		       size = file->layout.size[PFS_SECTION_SPAN_STRAYS];
	uint32_t n = header->span_strays ? header->span_strays - 1 : 0;
	struct pfs_image_stray *strays PFS_FREE = NULL;

	if (n > PFS_SPAN_STRAYS)
		return -ENOENT;
	strays = malloc(size + 1);
	if (!strays)
		return -ENOMEM;
	if (!pfs_imagefile_read(file, strays, PFS_SECTION_SPAN_STRAYS, 0,
				pfs_div_round_up(size, unit)))
		return -ENOENT;
	for (uint32_t i = 0; i < n; i++) {
		if (strays[i].slot >= header->end || strays[i].parent >= header->end ||
		    (i && strays[i].slot <= strays[i - 1].slot))
			return -ENOENT;
		if (pfs_spans_add_stray(file->tree, strays[i].slot, strays[i].parent))
			return -ENOMEM;
	}
	return 0;
}

/* ---- filling ---- */

/* Which slots of a part are directories'. */
static bool read_part(const struct pfs_image_file *file, uint64_t bits[PART_WORDS], uint32_t part)
{
	uint32_t n = 0;

	if (!pfs_imagefile_read(file, bits, PFS_SECTION_DIRECTORIES, part, 1))
		return false;
	for (unsigned i = 0; i < PART_WORDS; i++)
		n += (unsigned)__builtin_popcountll(bits[i]);
	return n == file->parts[part].directories;
}

/* The ends of the part's directories; *ends is in the buffer. */
static bool read_ends(const struct pfs_image_file *file, char *buffer, const uint32_t **ends,
		      uint32_t part)
{
	size_t from = (size_t)file->parts[part].before * sizeof(uint32_t);
	size_t to = from + (size_t)file->parts[part].directories * sizeof(uint32_t);
	uint64_t first = from / PFS_IMAGE_FILE_BLOCK,
		 end = pfs_div_round_up(to, PFS_IMAGE_FILE_BLOCK);

	*ends = (const uint32_t *)(const void *)(buffer + from % PFS_IMAGE_FILE_BLOCK);
	return to == from || pfs_imagefile_read(file, buffer, PFS_SECTION_ENDS, first, end - first);
}

static bool fill_ends(const struct pfs_image_file *file, uint32_t *to, uint32_t part)
{
	char buffer[END_BLOCKS * PFS_IMAGE_FILE_BLOCK] __attribute__((aligned(8)));
	uint64_t bits[PART_WORDS];
	const uint32_t *ends;

	if (!read_part(file, bits, part) || !read_ends(file, buffer, &ends, part))
		return false;
	for (unsigned i = 0; i < PART_WORDS; i++)
		for (uint64_t word = bits[i]; word; word &= word - 1) {
			unsigned at = i * 64 + (unsigned)__builtin_ctzll(word);
			uint32_t slot = part * PFS_IMAGE_PART + at;

			if (*ends <= slot || *ends > file->header.end)
				return false;
			to[at] = *ends++;
		}
	return true;
}

/* A part's blocks of the table, from what each has: how many there are. */
static uint32_t make_blocks(const struct pfs_image_file *file, struct pfs_dirtable_block *to,
			    const uint64_t *bits, uint32_t part)
{
	struct pfs_dirtable_entry *entries = (void *)file->memory[PFS_SECTION_TOTALS];
	uint32_t n = file->parts[part].before;

	for (unsigned i = 0;
	     i < PART_WORDS && part * PART_WORDS + i < pfs_div_round_up(file->header.end, 64);
	     i++) {
		to[i] = (struct pfs_dirtable_block){.has = bits[i], .entries = entries + n};
		n += (unsigned)__builtin_popcountll(bits[i]);
	}
	return n - file->parts[part].before;
}

static bool fill_table(const struct pfs_image_file *file, struct pfs_dirtable_block *to,
		       uint32_t first)
{
	uint32_t end = (uint32_t)PFS_MIN(first + TABLE_PARTS, file->layout.n_parts);

	for (uint32_t part = first; part < end; part++, to += PART_WORDS) {
		uint64_t bits[PART_WORDS];

		if (!read_part(file, bits, part) ||
		    make_blocks(file, to, bits, part) != file->parts[part].directories)
			return false;
	}
	return true;
}

bool pfs_imagefile_fill_subtrees(const struct pfs_image_file *file, void *to, unsigned section,
				 uint64_t first, uint64_t count, size_t size PFS_UNUSED)
{
	if (section == PFS_SECTION_TOTALS)
		return pfs_imagefile_read(file, to, section, first, count);
	for (uint64_t i = 0; i < count; i++) {
		void *at = (char *)to + i * PFS_IMAGE_FILE_BLOCK;

		if (section == PFS_SECTION_ENDS
			    ? !fill_ends(file, at, (uint32_t)(first + i))
			    : !fill_table(file, at, (uint32_t)(first + i) * TABLE_PARTS))
			return false;
	}
	return true;
}

/* ---- what is damaged, from the store's rows ---- */

/* Which of 64 slots have directories. */
static uint64_t directories_of(const struct pfs_image *rows, uint32_t word)
{
	uint64_t bits = 0;

	for (uint32_t slot = word * 64; slot < word * 64 + 64 && slot < rows->end; slot++)
		if (pfs_image_is_live(rows, slot) && S_ISDIR(rows->mode[slot]))
			bits |= UINT64_C(1) << slot % 64;
	return bits;
}

static int mend_table(const struct pfs_image_file *file, struct pfs_dirtable_block *to,
		      uint32_t first)
{
	uint32_t end = (uint32_t)PFS_MIN(first + TABLE_PARTS, file->layout.n_parts);

	for (uint32_t part = first; part < end; part++, to += PART_WORDS) {
		uint64_t bits[PART_WORDS];

		for (unsigned i = 0; i < PART_WORDS; i++)
			bits[i] = directories_of(&file->rows->image, part * PART_WORDS + i);
		if (make_blocks(file, to, bits, part) != file->parts[part].directories)
			return -EUCLEAN;
	}
	return 0;
}

/* Which of 64 slots had directories when the file was written: who makes one, or takes one away,
 * has touched the table there. */
static uint64_t directories_then(const struct pfs_image_file *file, uint32_t word)
{
	uint64_t block = word / (TABLE_PARTS * PART_WORDS);
	const struct pfs_dirtable *table = pfs_totals_table(file->tree);

	if (word < table->n_lent_blocks &&
	    pfs_lazy_is_filled(file->lazy_parts[PFS_SECTION_DIRECTORIES], block))
		return pfs_dirtable_had(table, word);
	return directories_of(&file->rows->image, word);
}

static int make_totals(struct pfs_image_file *file)
{
	PFS_LOCKED(&file->lock);

	if (!file->rows->totals)
		PFS_TRY(pfs_totals_create(file->rows));
	return pfs_totals_prepare(file->rows, NULL, NULL);
}

/* The part's entries, as far as the block has them.  Those of a block that nobody has touched are
 * of directories in which nothing has changed. */
static int mend_entries_of(const struct pfs_image_file *file, char *to, size_t from, size_t end,
			   uint32_t part)
{
	const size_t size = sizeof(struct pfs_dirtable_entry);
	size_t at = file->parts[part].before * size;

	for (uint32_t i = 0; i < PART_WORDS; i++)
		for (uint64_t word = directories_then(file, part * PART_WORDS + i); word;
		     word &= word - 1, at += size) {
			uint32_t slot =
				part * PFS_IMAGE_PART + i * 64 + (uint32_t)__builtin_ctzll(word);
			size_t first = PFS_MAX(at, from), last = PFS_MIN(at + size, end);
			const struct pfs_dirtable *rows = pfs_totals_table(file->rows);

			if (first < last && pfs_dirtable_has(rows, slot))
				memcpy(to + (first - from),
				       (const char *)pfs_dirtable_at(rows, slot) + (first - at),
				       last - first);
		}
	return at == (file->parts[part].before + (size_t)file->parts[part].directories) * size
		       ? 0
		       : -EUCLEAN;
}

static int mend_entries(struct pfs_image_file *file, char *to, uint64_t number, size_t size)
{
	const size_t from = number * PFS_IMAGE_FILE_BLOCK, end = from + size,
		     each = sizeof(struct pfs_dirtable_entry);

	PFS_TRY(make_totals(file));
	for (uint32_t part = 0; part < file->layout.n_parts; part++) {
		size_t begin = file->parts[part].before * each;

		if (begin < end && begin + file->parts[part].directories * each > from)
			PFS_TRY(mend_entries_of(file, to, from, end, part));
	}
	return 0;
}

int pfs_imagefile_mend_subtrees(struct pfs_image_file *file, void *to, unsigned section,
				uint64_t number, size_t size)
{
	return section == PFS_SECTION_TOTALS ? mend_entries(file, to, number, size)
					     : mend_table(file, to, (uint32_t)number * TABLE_PARTS);
}

/* ---- writing ---- */

static int write_directories(const struct pfs_image_out *out, const struct pfs_image *image)
{
	uint32_t n = (uint32_t)pfs_div_round_up(image->end, PFS_IMAGE_PART) * PART_WORDS;

	for (uint32_t word = 0; word < n; word++) {
		uint64_t bits = directories_of(image, word);

		PFS_TRY(out->put(out->writer, &bits, sizeof(bits)));
	}
	return 0;
}

static int write_strays(const struct pfs_image_out *out, const struct pfs_tree *tree)
{
	struct pfs_image_stray stray;

	for (uint32_t from = 0; pfs_spans_next_stray(tree, &stray.slot, from);
	     from = stray.slot + 1) {
		stray.parent = tree->image.parent[stray.slot];
		PFS_TRY(out->put(out->writer, &stray, sizeof(stray)));
	}
	return 0;
}

static int write_end(const struct pfs_image_out *out, const struct pfs_tree *tree, uint32_t slot)
{
	uint32_t end = PFS_MIN(pfs_spans_end_of(tree, slot), tree->image.end);

	return !end ? -EUCLEAN : out->put(out->writer, &end, sizeof(end));
}

static int write_total(const struct pfs_image_out *out, const struct pfs_tree *tree, uint32_t slot)
{
	const struct pfs_dirtable *table = pfs_totals_table(tree);

	return pfs_dirtable_has(table, slot) ? out->put(out->writer, pfs_dirtable_at(table, slot),
							sizeof(struct pfs_dirtable_entry))
					     : -EUCLEAN;
}

int pfs_imagefile_write_subtrees(const struct pfs_image_out *out, const struct pfs_tree *tree,
				 unsigned section)
{
	int (*const write)(const struct pfs_image_out *, const struct pfs_tree *, uint32_t) =
		section == PFS_SECTION_ENDS ? write_end : write_total;
	const struct pfs_image *image = &tree->image;

	if (section == PFS_SECTION_DIRECTORIES)
		return write_directories(out, image);
	if (section == PFS_SECTION_SPAN_STRAYS)
		return write_strays(out, tree);
	for (uint32_t slot = 0; slot < image->end; slot++)
		if (pfs_image_is_live(image, slot) && S_ISDIR(image->mode[slot]))
			PFS_TRY(write(out, tree, slot));
	return 0;
}

/* ---- comparing ---- */

bool pfs_imagefile_subtrees_are_same(struct pfs_tree *tree, struct pfs_tree *rows)
{
	return !pfs_totals_prepare(tree, NULL, NULL) && !pfs_totals_prepare(rows, NULL, NULL) &&
	       pfs_dirtable_is_same(pfs_totals_table(tree), pfs_totals_table(rows)) &&
	       pfs_spans_are_sound(tree);
}
