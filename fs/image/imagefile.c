/* SPDX-License-Identifier: MIT */
/* Opening an image file: what is small is read at once, and the rest is memory that is filled from
 * it when it is touched (base/lazy.h).  It is read and not mapped: who cuts a mapped file ends
 * whoever reads it (SIGBUS), and who writes to one changes what has been verified. */
#include "fs/image/imagefile.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/lazy.h"
#include "base/log.h"
#include "fs/image/imagefile_impl.h"
#include "fs/image/names.h"
#include "fs/image/slotmap.h"
#include "fs/image/slotorder.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/tree/tree_impl.h"

/* ---- what the file is like ---- */

char *pfs_imagefile_name(const struct pfs_tree *tree, const char *suffix)
{
	char *name;

	return asprintf(&name, "%s" PFS_IMAGE_FILE_SUFFIX "%s", pfs_store_path(tree->store),
			suffix) < 0
		       ? NULL
		       : name;
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

static bool counts_are_sound(const struct pfs_image_header *header)
{
	return header->end <= PFS_SLOT_MAX && header->nodes && header->nodes <= header->end &&
	       header->directories && header->directories <= header->nodes &&
	       header->root < header->end && header->cells > header->nodes &&
	       header->cells < UINT32_MAX && header->heap_size &&
	       header->heap_size % sizeof(uint32_t) == 0 &&
	       header->heap_size <= (uint64_t)UINT32_MAX * sizeof(uint32_t) &&
	       header->rare_size <= UINT64_C(1) << 48 && header->extra_size <= UINT64_C(1) << 48;
}

/* Whether this is a whole image file, of the store as it is or was. -ENOENT: another's, or of
 * another version; -EUCLEAN: damaged. */
static int check_header(struct pfs_image_file *file)
{
	const struct pfs_image_header *header = &file->header;
	struct pfs_store *store = file->tree->store;
	struct pfs_store_state state = {.seq = 0};
	uint64_t size;
	bool whole;

	if (!is_trusted(file->tree, file->fd, &size))
		return -ENOENT;
	whole = pfs_imagefile_read_at(file->fd, &file->header, sizeof(*header), 0);
	if (memcmp(header->magic, PFS_IMAGE_FILE_MAGIC, sizeof(header->magic)) != 0 ||
	    (whole && (header->order != PFS_IMAGE_FILE_ORDER ||
		       header->revision != PFS_IMAGE_FILE_REVISION)))
		return -ENOENT;
	if (!whole ||
	    header->checksum != pfs_imagefile_sum(header, PFS_SUM_HEADER, header,
						  offsetof(struct pfs_image_header, checksum)) ||
	    !counts_are_sound(header))
		return -EUCLEAN;
	pfs_imagefile_layout(&file->layout, header);
	state.seq = header->seq;
	memcpy(state.token, header->token, PFS_TOKEN_SIZE);
	if (header->seed != pfs_store_seed(store) || pfs_store_follows(store, &state) != 0)
		return -ENOENT;
	return file->layout.file_size == size ? 0 : -EUCLEAN;
}

/* ---- sections ---- */

/* All of a section.  -ENOENT: it is not sound. */
static int read_section(const struct pfs_image_file *file, void *to, unsigned section)
{
	uint64_t n = pfs_div_round_up(file->layout.size[section], file->layout.unit[section]);

	return pfs_imagefile_read(file, to, section, 0, n) ? 0 : -ENOENT;
}

/* The same, into memory that becomes the caller's. */
static int take_section(const struct pfs_image_file *file, void **out, unsigned section)
{
	*out = malloc(file->layout.size[section] + 1);
	return *out ? read_section(file, *out, section) : -ENOMEM;
}

int pfs_imagefile_make_cells(const struct pfs_image_file *file, void *to, const uint64_t *primes,
			     size_t offset, size_t size)
{
	const struct pfs_image_header *header = &file->header;
	uint32_t end = 0, left = header->nodes, *cells = NULL;
	struct pfs_slot_map *map = NULL;
	int error;

	PFS_TRY(pfs_slot_map_create(&map));
	error = pfs_slot_map_adopt(map, &cells, header->cells, 0);
	for (; end < header->end && left; end++)
		left -= primes[end] != 0;
	if (!error) {
		pfs_slot_map_fill(map, primes, 0, end);
		memcpy(to, (char *)cells + offset, size);
	}
	pfs_slot_map_destroy(map);
	return error;
}

/* ---- what is read at once ---- */

/* The checksums of checksums; those of blocks are read with the blocks. */
static int read_sums(struct pfs_image_file *file)
{
	const struct pfs_image_layout *layout = &file->layout;
	size_t size = layout->n_sum_pages * sizeof(uint64_t);

	file->sum_pages = malloc(size);
	if (!file->sum_pages)
		return -ENOMEM;
	PFS_TRY(pfs_imagefile_open_known(&file->sums, layout->blocks, layout->n_sum_pages));
	return pfs_imagefile_read_at(file->fd, file->sum_pages, size, layout->sum_pages_offset) &&
			       pfs_imagefile_sum(&file->header, PFS_SUM_TABLE, file->sum_pages,
						 size) == file->header.table_checksum
		       ? 0
		       : -ENOENT;
}

static int read_tables(struct pfs_image_file *file)
{
	struct pfs_image *image = &file->tree->image;
	void *table = NULL;
	int error;

	PFS_TRY(pfs_reserve_grow(&image->live_memory, file->layout.size[PFS_SECTION_LIVE]));
	PFS_TRY(read_section(file, image->live, PFS_SECTION_LIVE));
	error = take_section(file, &table, PFS_SECTION_PARTS);
	file->parts = table;
	PFS_TRY(error);
	error = take_section(file, &table, PFS_SECTION_INNERS);
	file->tops = table;
	PFS_TRY(error);
	error = take_section(file, &table, PFS_SECTION_RARE);
	if (!error)
		error = pfs_imagefile_check(file, table);
	free(table);
	return error;
}

/* Who follows changes of the image from here on follows these, too. */
static int take_strays(const struct pfs_image_file *file)
{
	const struct pfs_image_header *header = &file->header;
	void *table = NULL;
	const uint32_t *strays;
	uint32_t n = header->strays ? header->strays - 1 : 0;
	int error;

	if (n > PFS_STRAYS_MAX)
		return -ENOENT;
	error = take_section(file, &table, PFS_SECTION_STRAYS);
	strays = table;
	for (uint32_t i = 0; i < n && !error; i++)
		if (strays[i] >= header->end || (i && strays[i] <= strays[i - 1]))
			error = -ENOENT;
	if (!error)
		pfs_slotorder_load(file->tree, strays, header->strays ? n : PFS_STRAYS_UNKNOWN);
	free(table);
	return error;
}

/* ---- what is read when it is touched ---- */

static int open_index(struct pfs_image_file *file)
{
	const struct pfs_image_layout *layout = &file->layout;

	PFS_TRY(pfs_reserve_whole(&file->leaves, layout->n_leaves * PFS_BTREE_LEAF_SIZE));
	PFS_TRY(pfs_reserve_whole(&file->inners, layout->n_inners * PFS_BTREE_INNER_SIZE));
	file->memory[PFS_SECTION_INDEX] = file->leaves.base;
	file->memory[PFS_SECTION_INNERS] = file->inners.base;
	return pfs_imagefile_open_known(
		&file->firsts, layout->n_leaves * sizeof(struct pfs_btree_entry) / sizeof(uint64_t),
		layout->n_inners);
}

static int open_memory(struct pfs_image_file *file)
{
	struct pfs_image *image = &file->tree->image;
	const struct pfs_image_header *header = &file->header;
	size_t element;
	uint32_t *cells;
	void *heap;

	PFS_TRY(pfs_image_grow(file->tree, header->end));
	PFS_TRY(pfs_names_adopt(image->names, &heap, header->heap_size));
	PFS_TRY(pfs_slot_map_adopt(image->by_prime, &cells, header->cells, header->nodes));
	PFS_TRY(open_index(file));
	for (unsigned i = 0; i < PFS_SECTION_COLUMNS; i++)
		file->memory[i] = pfs_imagefile_column(image, &element, i);
	file->memory[PFS_SECTION_HEAP] = heap;
	file->memory[PFS_SECTION_MAP] = (char *)cells;
	return pfs_imagefile_lend_subtrees(file);
}

static int open_lazily(struct pfs_image_file *file)
{
	PFS_TRY(pfs_lazy_create(&file->lazy));
	for (unsigned i = 0; i < PFS_SECTION_LAZY; i++) {
		file->sources[i] = (struct pfs_image_source){file, i};
		PFS_TRY(pfs_lazy_add(file->lazy, &file->lazy_parts[i], file->memory[i],
				     pfs_imagefile_memory_size(file, i),
				     pfs_imagefile_memory_block(i), pfs_imagefile_fill,
				     &file->sources[i]));
	}
	return pfs_lazy_start(file->lazy);
}

/* ---- all of it ---- */

/* Directories that lead in a circle to each other never lead to the root.  As import lays them out
 * each comes after its parent, so that there are none. */
static int check_circles(const struct pfs_image *image)
{
	uint8_t *known PFS_FREE = calloc(image->end, 1);

	if (!known)
		return -ENOMEM;
	known[image->root] = 1;
	for (uint32_t top = 0; top < image->end; top++) {
		uint32_t slot = top, steps = 0;

		if (!S_ISDIR(image->mode[top]))
			continue;
		for (; !known[slot]; slot = image->parent[slot])
			if (steps++ > image->directories)
				return -ENOENT;
		for (slot = top; !known[slot]; slot = image->parent[slot])
			known[slot] = 1;
	}
	return 0;
}

/* Free slots are chained as they are in the file. */
static int take_counts(struct pfs_image_file *file)
{
	struct pfs_image *image = &file->tree->image;
	const struct pfs_image_header *header = &file->header;

	image->end = header->end;
	image->nodes = header->nodes;
	image->directories = header->directories;
	image->root = header->root;
	image->free_count = header->end - header->nodes;
	image->free_head = file->parts[0].free;
	image->from_file = true;
	image->file_state.seq = header->seq;
	memcpy(image->file_state.token, header->token, PFS_TOKEN_SIZE);
	if (image->prime[image->root] != PFS_ROOT_PRIME || atomic_load(&file->bad))
		return -ENOENT;
	return header->descends ? check_circles(image) : 0;
}

static int read_at_once(struct pfs_image_file *file)
{
	for (int kind = 0; kind < 2; kind++)
		PFS_TRY(pfs_store_reserved(file->tree->store, &file->handed_out[kind],
					   (enum pfs_prime_kind)kind));
	PFS_TRY(read_sums(file));
	return read_tables(file);
}

/* What is known of the image only when it is filled. */
static int take_all(struct pfs_image_file *file)
{
	PFS_TRY(take_counts(file));
	PFS_TRY(take_strays(file));
	return pfs_imagefile_load_strays(file);
}

static int fill(struct pfs_image_file *file)
{
	struct pfs_image *image = &file->tree->image;
	int error;

	PFS_TRY(read_at_once(file));
	PFS_TRY(open_memory(file));
	error = pfs_btree_load_lazily(image->by_name, file->leaves.base, file->inners.base,
				      file->tops, file->header.nodes - 1);
	if (error)
		return error == -EINVAL ? -ENOENT : error;
	PFS_TRY(open_lazily(file));
	if (file->tree->options.beside_writer) /* whoever scans its only connection would keep us
						  from the rows */
		pfs_lazy_fill_all(file->lazy);
	PFS_TRY(take_all(file));
	file->followed = image->file_state.seq != pfs_store_seq(file->tree->store);
	if (file->followed)
		PFS_TRY(pfs_imagefile_follow(file->tree));
	return atomic_load(&file->bad) ? -ENOENT : 0;
}

void pfs_imagefile_settle(const struct pfs_tree *tree)
{
	if (tree->image.file)
		pfs_lazy_settle(tree->image.file->lazy);
}

static void close_file(struct pfs_image *image)
{
	struct pfs_image_file *file = image->file;

	image->file = NULL;
	image->close_file = NULL;
	if (!file)
		return;
	pfs_lazy_close(file->lazy);
	pfs_imagefile_forget_rows(file);
	pfs_reserve_close(&file->leaves);
	pfs_reserve_close(&file->inners);
	pfs_imagefile_close_known(&file->sums);
	pfs_imagefile_close_known(&file->firsts);
	if (file->fd >= 0)
		(void)close(file->fd);
	(void)pthread_mutex_destroy(&file->lock);
	free(file->sum_pages);
	free(file->parts);
	free(file->tops);
	free(file->rare);
	free(file);
}

/* Commands, whose log is closed, say so as well: nobody wonders why the store opens slowly. */
static void say_damaged(const char *name)
{
	pfs_notice("%s: damaged, and not used; it can be removed, or made anew by primefs optimize "
		   "--image",
		   name);
}

static int check_file(struct pfs_image_file *file)
{
	return file->fd < 0 || PFS_IMAGE_FILE_BLOCK % (size_t)sysconf(_SC_PAGESIZE)
		       ? -ENOENT
		       : check_header(file);
}

int pfs_imagefile_load(struct pfs_tree *tree, int (*load_rows)(struct pfs_tree *tree))
{
	char *name PFS_FREE = pfs_imagefile_name(tree, "");
	struct pfs_image_file *file = calloc(1, sizeof(*file));
	int error;

	if (!name || !file) {
		free(file);
		return -ENOMEM;
	}
	*file = (struct pfs_image_file){.tree = tree,
					.lock = PTHREAD_MUTEX_INITIALIZER,
					.loading = true,
					.load_rows = load_rows};
	tree->image.file = file; /* which goes with the image */
	tree->image.close_file = close_file;
	file->fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	error = check_file(file);
	if (error) {
		if (error == -EUCLEAN)
			say_damaged(name);
		close_file(&tree->image);
		return -ENOENT;
	}
	tree->image.file_end = file->header.end;
	error = fill(file);
	atomic_store(&file->loading, false);
	if (!error)
		return 0;
	if (error == -ENOENT && (!file->followed || atomic_load(&file->bad)))
		say_damaged(name);
	else
		pfs_info("%s: is not used: %s", name,
			 error == -ENOENT ? "too old" : strerror(-error));
	pfs_slotorder_load(tree, NULL, PFS_STRAYS_UNKNOWN);
	PFS_TRY(pfs_image_clear(tree));
	pfs_totals_drop(tree);
	pfs_spans_drop(tree);
	return error;
}
