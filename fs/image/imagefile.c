/* SPDX-License-Identifier: MIT */
/* Reading an image file: blocks go straight to where they stay, several at a time, and are summed up while
 * they are in the cache.  They are read and not mapped: who cuts a mapped file ends whoever reads it
 * (SIGBUS), and who writes to one changes what has been verified. */
#include "fs/image/imagefile.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fs/image/imagefile_impl.h"
#include "fs/image/names.h"
#include "fs/image/slotmap.h"
#include "fs/tree/tree_impl.h"

/* ---- what the file is like ---- */

static const struct {
	size_t field, element;
} columns[PFS_SECTION_COLUMNS] = {
#define COLUMN(id, name, type, ...)                                                                \
	[PFS_SECTION_##id] = {offsetof(struct pfs_image, name), sizeof(type)},
	PFS_STORED_COLUMNS(COLUMN)
#undef COLUMN
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

void pfs_imagefile_layout(struct pfs_image_layout *layout, const struct pfs_image_header *header)
{
	uint64_t *size = layout->size, at;

	*layout = (struct pfs_image_layout){.blocks = 0};
	for (unsigned i = 0; i < PFS_SECTION_COLUMNS; i++)
		size[i] = (uint64_t)header->end * columns[i].element;
	size[PFS_SECTION_HEAP] = header->heap_size;
	size[PFS_SECTION_INDEX] = ((uint64_t)header->nodes - 1) * sizeof(uint64_t);
	size[PFS_SECTION_MAP] = (uint64_t)header->cells * sizeof(uint32_t);
	size[PFS_SECTION_RARE] = header->rare_size;
	for (unsigned i = 0; i < PFS_SECTIONS; i++) {
		layout->first_block[i] = layout->blocks;
		layout->blocks += pfs_div_round_up(size[i], PFS_IMAGE_FILE_BLOCK);
	}
	at = PFS_IMAGE_FILE_PAGE + whole_pages(layout->blocks * sizeof(uint64_t));
	for (unsigned i = 0; i < PFS_SECTIONS; i++) {
		layout->offset[i] = at;
		at += whole_pages(size[i]);
	}
	layout->file_size = at;
}

char *pfs_imagefile_name(const struct pfs_tree *tree, const char *suffix)
{
	char *name;

	return asprintf(&name, "%s" PFS_IMAGE_FILE_SUFFIX "%s", pfs_store_path(tree->store), suffix) < 0
		       ? NULL
		       : name;
}

/* ---- checksums ---- */

#define LANES 8u
#define MIX   UINT64_C(0x9e3779b97f4a7c15)

static uint64_t stir(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * MIX;
	return sum ^ sum >> 29;
}

/* Each step is a bijection of sum and of word: one word that is another makes another sum.  Lanes that do not
 * wait for each other make it as fast as memory. */
uint64_t pfs_imagefile_sum(const struct pfs_image_header *header, uint64_t number, const void *bytes,
			   size_t size)
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

/* ---- the header ---- */

/* Only the store's owner may say what the image of a store is. */
static bool is_trusted(const struct pfs_tree *tree, int fd, uint64_t *size)
{
	struct stat file, store;

	if (fstat(fd, &file) || stat(pfs_store_path(tree->store), &store) || !S_ISREG(file.st_mode))
		return false;
	*size = (uint64_t)file.st_size;
	return file.st_uid == store.st_uid && !(file.st_mode & (S_IWGRP | S_IWOTH));
}

static bool read_all(int fd, void *to, uint64_t size, uint64_t offset)
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

static bool counts_are_sound(const struct pfs_image_header *header)
{
	return header->end <= PFS_SLOT_MAX && header->nodes && header->nodes <= header->end &&
	       header->directories <= header->nodes && header->root < header->end &&
	       header->cells > header->nodes && header->cells < UINT32_MAX &&
	       header->heap_size && header->heap_size % sizeof(uint32_t) == 0 &&
	       header->heap_size <= (uint64_t)UINT32_MAX * sizeof(uint32_t) &&
	       header->rare_size <= UINT64_C(1) << 48;
}

/* Whether the file is one, whole, and of the store as it is or was. */
static bool header_is_sound(struct pfs_image_reading *reading, int fd)
{
	const struct pfs_image_header *header = &reading->header;
	struct pfs_store *store = reading->tree->store;
	struct pfs_store_state state = {.seq = 0};
	uint64_t size;

	if (!is_trusted(reading->tree, fd, &size) ||
	    !read_all(fd, &reading->header, sizeof(*header), 0) ||
	    memcmp(header->magic, PFS_IMAGE_FILE_MAGIC, sizeof(header->magic)) != 0 ||
	    header->order != PFS_IMAGE_FILE_ORDER || header->times != PFS_IMAGE_FILE_TIMES ||
	    header->checksum != pfs_imagefile_sum(header, PFS_SUM_HEADER, header,
						  offsetof(struct pfs_image_header, checksum)) ||
	    !counts_are_sound(header))
		return false;
	pfs_imagefile_layout(&reading->layout, header);
	state.seq = header->seq;
	memcpy(state.token, header->token, PFS_TOKEN_SIZE);
	return reading->layout.file_size == size && header->seed == pfs_store_seed(store) &&
	       pfs_store_follows(store, &state) == 0;
}

/* ---- blocks ---- */

struct blocks {
	struct pfs_image_reading *reading;
	int fd;
	uint64_t *sums;
	uint8_t *place[PFS_SECTIONS]; /* where sections go */
};

static void read_blocks(void *context, size_t from, size_t to)
{
	struct blocks *blocks = context;
	struct pfs_image_reading *reading = blocks->reading;
	const struct pfs_image_layout *layout = &reading->layout;
	unsigned section = 0;

	for (size_t i = from; i < to && !atomic_load(&reading->bad); i++) {
		uint64_t at, size;
		uint8_t *place;

		while (section + 1 < PFS_SECTIONS && layout->first_block[section + 1] <= i)
			section++;
		at = (i - layout->first_block[section]) * PFS_IMAGE_FILE_BLOCK;
		size = PFS_MIN(layout->size[section] - at, PFS_IMAGE_FILE_BLOCK);
		place = blocks->place[section] + at;
		if (!read_all(blocks->fd, place, size, layout->offset[section] + at) ||
		    pfs_imagefile_sum(&reading->header, i, place, size) != blocks->sums[i])
			atomic_store(&reading->bad, true);
	}
}

/* Memory for all of it: the image's own, and that of what is made into something else. */
static int make_room(struct pfs_image_reading *reading, struct blocks *blocks)
{
	struct pfs_image *image = &reading->tree->image;
	const struct pfs_image_header *header = &reading->header;
	size_t element;
	void *heap;

	PFS_TRY(pfs_image_grow(reading->tree, header->end));
	PFS_TRY(pfs_names_adopt(image->names, &heap, header->heap_size));
	PFS_TRY(pfs_slot_map_adopt(image->by_prime, &reading->cells, header->cells, header->nodes));
	reading->entries = malloc(reading->layout.size[PFS_SECTION_INDEX] + 1);
	reading->rare = malloc(header->rare_size + 1);
	if (!reading->entries || !reading->rare)
		return -ENOMEM;
	for (unsigned i = 0; i < PFS_SECTION_COLUMNS; i++)
		blocks->place[i] = pfs_imagefile_column(image, &element, i);
	blocks->place[PFS_SECTION_HEAP] = heap;
	blocks->place[PFS_SECTION_INDEX] = (uint8_t *)reading->entries;
	blocks->place[PFS_SECTION_MAP] = (uint8_t *)reading->cells;
	blocks->place[PFS_SECTION_RARE] = reading->rare;
	for (unsigned i = 0; i < PFS_SECTIONS; i++)
		pfs_expect_filled(blocks->place[i], reading->layout.size[i]);
	return 0;
}

static int read_sections(struct pfs_image_reading *reading, int fd)
{
	size_t table_size = reading->layout.blocks * sizeof(uint64_t);
	uint64_t *sums PFS_FREE = malloc(table_size);
	struct blocks blocks = {.reading = reading, .fd = fd, .sums = sums};

	if (!sums)
		return -ENOMEM;
	if (!read_all(fd, sums, table_size, PFS_IMAGE_FILE_PAGE) ||
	    pfs_imagefile_sum(&reading->header, PFS_SUM_TABLE, sums, table_size) !=
		    reading->header.table_checksum)
		return -ENOENT;
	PFS_TRY(make_room(reading, &blocks));
	pfs_pool_run(reading->pool, reading->layout.blocks, 1, read_blocks, &blocks);
	return atomic_load(&reading->bad) ? -ENOENT : 0;
}

/* ---- all of it ---- */

static int fill(struct pfs_image_reading *reading, int fd)
{
	struct pfs_image *image = &reading->tree->image;
	struct pfs_store *store = reading->tree->store;
	const struct pfs_image_header *header = &reading->header;

	for (int kind = 0; kind < 2; kind++)
		PFS_TRY(pfs_store_reserved(store, &reading->handed_out[kind],
					   (enum pfs_prime_kind)kind));
	PFS_TRY(read_sections(reading, fd));
	image->end = header->end;
	image->nodes = header->nodes;
	image->directories = header->directories;
	image->root = header->root;
	image->from_file = true;
	image->file_state.seq = header->seq;
	memcpy(image->file_state.token, header->token, PFS_TOKEN_SIZE);
	return pfs_imagefile_check(reading);
}

int pfs_imagefile_load(struct pfs_tree *tree)
{
	struct pfs_image_reading reading = {.tree = tree};
	char *name PFS_FREE = pfs_imagefile_name(tree, "");
	int fd PFS_CLOSE = -1;
	int error;

	if (!name)
		return -ENOMEM;
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || !header_is_sound(&reading, fd))
		return -ENOENT;
	PFS_TRY(pfs_pool_open(&reading.pool, 0));
	error = fill(&reading, fd);
	if (!error && tree->image.file_state.seq != pfs_store_seq(tree->store))
		error = pfs_imagefile_follow(tree);
	pfs_pool_close(reading.pool);
	free(reading.entries);
	free(reading.rare);
	if (!error)
		return 0;
	pfs_info("%s: is not used: damaged, or too old", name);
	PFS_TRY(pfs_image_clear(tree));
	return error;
}
