/* SPDX-License-Identifier: MIT */
/* How an image file is laid out, its checksums, and reading blocks of it. */
#include "fs/image/imagefile_impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/lazy.h"
#include "fs/image/dirtable.h"
#include "fs/tree/tree_impl.h"

/* ---- what the file is like ---- */

static const struct {
	size_t field, element;
} columns[PFS_SECTION_COLUMNS] = {
#define COLUMN(id, name, type, ...)                                                                \
	[PFS_SECTION_##id] = {offsetof(struct pfs_image, name), sizeof(type)},
	PFS_WATCHED_COLUMNS(COLUMN)
#undef COLUMN
		[PFS_SECTION_STATE] = {offsetof(struct pfs_image, state), sizeof(uint8_t)},
};

void *pfs_imagefile_column(const struct pfs_image *image, size_t *element, unsigned section)
{
	void *column;

	memcpy(&column, (const char *)image + columns[section].field, sizeof(column));
	*element = columns[section].element;
	return column;
}

static uint64_t whole_pages(uint64_t size)
{
	return pfs_div_round_up(size, PFS_IMAGE_FILE_PAGE) * PFS_IMAGE_FILE_PAGE;
}

static uint64_t unit_of(unsigned section)
{
	switch (section) {
	case PFS_SECTION_INDEX:
		return (uint64_t)PFS_IMAGE_LEAVES * PFS_BTREE_LEAF_COUNT * sizeof(uint64_t);
	case PFS_SECTION_FIRSTS:
		return PFS_BTREE_INNER_COUNT * sizeof(struct pfs_btree_entry);
	case PFS_SECTION_LIVE:
	case PFS_SECTION_DIRECTORIES:
		return PFS_IMAGE_PART / 8;
	default:
		return PFS_IMAGE_FILE_BLOCK;
	}
}

static void set_sizes(struct pfs_image_layout *layout, const struct pfs_image_header *header)
{
	uint64_t *size = layout->size;

	layout->n_leaves =
		(size_t)pfs_div_round_up((uint64_t)header->nodes - 1, PFS_BTREE_LEAF_COUNT);
	layout->n_inners = pfs_btree_count_inners(layout->n_leaves);
	layout->n_parts = (size_t)pfs_div_round_up(header->end, PFS_IMAGE_PART);
	for (unsigned i = 0; i < PFS_SECTION_COLUMNS; i++)
		size[i] = (uint64_t)header->end * columns[i].element;
	size[PFS_SECTION_HEAP] = header->heap_size;
	size[PFS_SECTION_INDEX] = ((uint64_t)header->nodes - 1) * sizeof(uint64_t);
	size[PFS_SECTION_MAP] = (uint64_t)header->cells * sizeof(uint32_t);
	size[PFS_SECTION_ENDS] =
		header->span_strays ? (uint64_t)header->directories * sizeof(uint32_t) : 0;
	size[PFS_SECTION_TOTALS] =
		(uint64_t)header->directories * sizeof(struct pfs_dirtable_entry);
	size[PFS_SECTION_DIRECTORIES] = layout->n_parts * PFS_IMAGE_PART / 8;
	size[PFS_SECTION_LIVE] = layout->n_parts * PFS_IMAGE_PART / 8;
	size[PFS_SECTION_PARTS] = (layout->n_parts + 1) * sizeof(struct pfs_image_part);
	size[PFS_SECTION_INNERS] = layout->n_inners * sizeof(struct pfs_btree_entry);
	size[PFS_SECTION_FIRSTS] = layout->n_inners * unit_of(PFS_SECTION_FIRSTS);
	size[PFS_SECTION_RARE] = header->rare_size;
	size[PFS_SECTION_STRAYS] = header->strays ? (header->strays - 1) * sizeof(uint32_t) : 0;
	size[PFS_SECTION_SPAN_STRAYS] = header->span_strays ? (uint64_t)(header->span_strays - 1) *
								      sizeof(struct pfs_image_stray)
							    : 0;
	size[PFS_SECTION_EXTRA] = header->extra_size;
}

void pfs_imagefile_layout(struct pfs_image_layout *layout, const struct pfs_image_header *header)
{
	uint64_t at;

	*layout = (struct pfs_image_layout){.blocks = 0};
	set_sizes(layout, header);
	for (unsigned i = 0; i < PFS_SECTIONS; i++) {
		layout->unit[i] = unit_of(i);
		layout->first_block[i] = layout->blocks;
		layout->blocks += pfs_div_round_up(layout->size[i], unit_of(i));
	}
	layout->n_sum_pages = pfs_div_round_up(layout->blocks, PFS_IMAGE_SUMS);
	layout->sum_pages_offset =
		PFS_IMAGE_FILE_PAGE + whole_pages(layout->blocks * sizeof(uint64_t));
	at = layout->sum_pages_offset + whole_pages(layout->n_sum_pages * sizeof(uint64_t));
	for (unsigned i = 0; i < PFS_SECTIONS; i++) {
		layout->offset[i] = at;
		at += whole_pages(layout->size[i]);
	}
	layout->file_size = at;
}

/* ---- checksums ---- */

#define LANES 8u
#define MIX   UINT64_C(0x9e3779b97f4a7c15)

static uint64_t stir(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * MIX;
	return sum ^ sum >> 29;
}

/* Each step is a bijection of sum and of word: one word that is another makes another sum.  Lanes
 * that do not wait for each other make it as fast as memory. */
uint64_t pfs_imagefile_sum(const struct pfs_image_header *header, uint64_t number,
			   const void *bytes, size_t size)
{
	uint64_t lanes[LANES], words[LANES], sum = stir(size, number);
	size_t i = 0;

	for (unsigned k = 0; k < PFS_TOKEN_SIZE / sizeof(uint64_t); k++) {
		memcpy(words, header->token + k * sizeof(uint64_t), sizeof(uint64_t));
		sum = stir(sum, words[0]);
	}
	for (unsigned k = 0; k < LANES; k++)
		lanes[k] = sum + k;
	for (; i + sizeof(words) <= size; i += sizeof(words)) {
		memcpy(words, (const uint8_t *)bytes + i, sizeof(words));
		for (unsigned k = 0; k < LANES; k++)
			lanes[k] = stir(lanes[k], words[k]);
	}
	memset(words, 0, sizeof(words));
	memcpy(words, (const uint8_t *)bytes + i, size - i);
	for (unsigned k = 0; k < LANES; k++)
		sum = stir(sum, stir(lanes[k], words[k]));
	return sum;
}

uint64_t pfs_imagefile_sum_sums(const struct pfs_image_header *header,
				const struct pfs_image_layout *layout, const uint64_t *sums,
				uint64_t *sum_pages)
{
	for (uint64_t i = 0; i < layout->n_sum_pages; i++) {
		uint64_t first = i * PFS_IMAGE_SUMS;

		sum_pages[i] = pfs_imagefile_sum(header, PFS_SUM_PAGES + i, sums + first,
						 PFS_MIN(layout->blocks - first, PFS_IMAGE_SUMS) *
							 sizeof(*sums));
	}
	return pfs_imagefile_sum(header, PFS_SUM_TABLE, sum_pages,
				 layout->n_sum_pages * sizeof(*sum_pages));
}

/* ---- what is read when it is first needed, and kept ---- */

int pfs_imagefile_open_known(struct pfs_image_known *known, size_t words, size_t pieces)
{
	PFS_TRY(pfs_reserve_whole(&known->memory, words * sizeof(*known->words)));
	known->words = known->memory.base;
	known->pieces = calloc(pieces + 1, sizeof(*known->pieces));
	return known->pieces ? 0 : -ENOMEM;
}

void pfs_imagefile_close_known(struct pfs_image_known *known)
{
	pfs_reserve_close(&known->memory);
	free((void *)known->pieces);
	*known = (struct pfs_image_known){.pieces = NULL};
}

void pfs_imagefile_put_known(const struct pfs_image_known *known, size_t piece, size_t first,
			     const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		atomic_store_explicit(&known->words[first + i], words[i], memory_order_relaxed);
	atomic_store_explicit(&known->pieces[piece], 1, memory_order_release);
}

/* ---- blocks ---- */

bool pfs_imagefile_read_at(int fd, void *to, uint64_t size, uint64_t offset)
{
	uint8_t *at = to;

	while (size) {
		ssize_t n = pread(fd, at, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		offset += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return true;
}

size_t pfs_imagefile_size(const struct pfs_image_file *file, unsigned section, uint64_t first,
			  uint64_t count)
{
	const struct pfs_image_layout *layout = &file->layout;
	uint64_t unit = layout->unit[section];

	return PFS_MIN(layout->size[section] - first * unit, count * unit);
}

size_t pfs_imagefile_memory_size(const struct pfs_image_file *file, unsigned section)
{
	const struct pfs_image_layout *layout = &file->layout;

	switch (section) {
	case PFS_SECTION_INDEX:
		return layout->n_leaves * PFS_BTREE_LEAF_SIZE;
	case PFS_SECTION_INNERS:
		return layout->n_inners * PFS_BTREE_INNER_SIZE;
	default:
		return section > PFS_SECTION_MAP ? pfs_imagefile_subtrees_size(file, section)
						 : layout->size[section];
	}
}

size_t pfs_imagefile_memory_block(unsigned section)
{
	switch (section) {
	case PFS_SECTION_INDEX:
		return (size_t)PFS_IMAGE_LEAVES * PFS_BTREE_LEAF_SIZE;
	case PFS_SECTION_INNERS:
		return (size_t)PFS_IMAGE_INNERS * PFS_BTREE_INNER_SIZE;
	default:
		return PFS_IMAGE_FILE_BLOCK;
	}
}

/* Makes the checksums known that have one together with this one. */
static bool know_sums(const struct pfs_image_file *file, uint64_t block)
{
	uint64_t page = block / PFS_IMAGE_SUMS, first = page * PFS_IMAGE_SUMS, sums[PFS_IMAGE_SUMS];
	size_t n = PFS_MIN(file->layout.blocks - first, PFS_IMAGE_SUMS);

	if (atomic_load_explicit(&file->sums.pieces[page], memory_order_acquire))
		return true;
	if (!pfs_imagefile_read_at(file->fd, sums, n * sizeof(*sums),
				   PFS_IMAGE_FILE_PAGE + first * sizeof(*sums)) ||
	    pfs_imagefile_sum(&file->header, PFS_SUM_PAGES + page, sums, n * sizeof(*sums)) !=
		    file->sum_pages[page])
		return false;
	pfs_imagefile_put_known(&file->sums, page, first, sums, n);
	return true;
}

static bool block_is_sound(const struct pfs_image_file *file, uint64_t block, const void *bytes,
			   size_t size)
{
	return know_sums(file, block) &&
	       pfs_imagefile_sum(&file->header, block, bytes, size) ==
		       atomic_load_explicit(&file->sums.words[block], memory_order_relaxed);
}

bool pfs_imagefile_read(const struct pfs_image_file *file, void *to, unsigned section,
			uint64_t first, uint64_t count)
{
	const struct pfs_image_layout *layout = &file->layout;
	size_t unit = layout->unit[section], size = pfs_imagefile_size(file, section, first, count);
	uint64_t block = layout->first_block[section] + first;
	const char *at = to;

	if (!pfs_imagefile_read_at(file->fd, to, size, layout->offset[section] + first * unit))
		return false;
	for (; size; block++) {
		size_t n = PFS_MIN(size, unit);

		if (!block_is_sound(file, block, at, n))
			return false;
		at += n;
		size -= n;
	}
	return true;
}

/* Sections of columns have the columns' numbers. */
uint64_t pfs_imagefile_get(const struct pfs_image *image, unsigned column, uint32_t slot)
{
	size_t size;
	const char *array = pfs_imagefile_column(image, &size, column);
	union {
		uint8_t of_1;
		uint16_t of_2;
		uint32_t of_4;
		uint64_t of_8;
	} value;

	if (image->file && !image->copy && slot < image->file_end)
		pfs_lazy_get(image->file->lazy_parts[column], &value, slot * size, size);
	else
		memcpy(&value, array + slot * size, size);
	return size == 8   ? value.of_8
	       : size == 4 ? value.of_4
	       : size == 2 ? value.of_2
			   : value.of_1;
}

/* ---- what who is above keeps there ---- */

uint64_t pfs_imagefile_extra_size(const struct pfs_tree *tree)
{
	return tree->image.file ? tree->image.file->header.extra_size : 0;
}

int pfs_imagefile_read_extra(const struct pfs_tree *tree, struct pfs_image_extra *out, uint64_t at,
			     uint64_t size)
{
	const uint64_t unit = PFS_IMAGE_FILE_BLOCK, first = at / unit,
		       n = pfs_div_round_up(at % unit + size, unit);
	uint64_t all = pfs_imagefile_extra_size(tree);
	uint8_t *memory;

	pfs_imagefile_free_extra(out);
	if (at > all || size > all - at)
		return -ENOENT;
	memory = malloc(n * unit + 1);
	if (!memory)
		return -ENOMEM;
	*out = (struct pfs_image_extra){memory + at % unit, memory};
	return pfs_imagefile_read(tree->image.file, memory, PFS_SECTION_EXTRA, first, n) ? 0
											 : -ENOENT;
}

void pfs_imagefile_free_extra(struct pfs_image_extra *extra)
{
	free(extra->memory);
	*extra = (struct pfs_image_extra){NULL, NULL};
}

uint32_t pfs_imagefile_current_end(const struct pfs_tree *tree)
{
	const struct pfs_image_file *file = tree->image.file;

	return file && !file->followed ? file->header.end : 0;
}

bool pfs_imagefile_may_ask_store(const struct pfs_tree *tree)
{
	return !tree->image.file || tree->image.file->load_rows;
}
