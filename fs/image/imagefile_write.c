/* SPDX-License-Identifier: MIT */
/* Writing an image file: section after section through a buffer.  Names are laid out anew, in order
 * of slots and without what removed ones have left. */
#include "fs/image/imagefile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/imagefile_impl.h"
#include "fs/image/names.h"
#include "fs/image/rare_values.h"
#include "fs/image/slotmap.h"
#include "fs/image/slotorder.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/tree/tree_impl.h"

#define BUFFER	  ((size_t)1 << 20)
#define FREE_PART 10u /* one of so many parts of the filesystem stays free */

struct writer {
	struct pfs_tree *tree;
	const struct pfs_image *image;
	int fd;
	struct pfs_image_header header;
	struct pfs_image_layout layout;
	uint64_t *sums, *sum_pages;
	uint8_t *buffer; /* BUFFER bytes */
	struct pfs_image_part *parts;
	const uint32_t *strays;
	void *extra; /* of who is above */
	size_t filled;
	unsigned section;
	uint64_t block; /* the next one's number */
};

static bool is_live(const struct pfs_image *image, uint32_t slot)
{
	return image->live[slot / 64] >> slot % 64 & 1;
}

/* ---- the stream of blocks ---- */

static int write_at(int fd, const void *bytes, size_t size, uint64_t offset)
{
	const uint8_t *at = bytes;

	while (size) {
		ssize_t n = pwrite(fd, at, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		at += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

static int flush(struct writer *writer)
{
	const struct pfs_image_layout *layout = &writer->layout;
	size_t unit = layout->unit[writer->section];
	uint64_t at = (writer->block - layout->first_block[writer->section]) * unit;

	if (!writer->filled)
		return 0;
	for (size_t from = 0; from < writer->filled; from += unit, writer->block++)
		writer->sums[writer->block] =
			pfs_imagefile_sum(&writer->header, writer->block, writer->buffer + from,
					  PFS_MIN(writer->filled - from, unit));
	PFS_TRY(write_at(writer->fd, writer->buffer, writer->filled,
			 layout->offset[writer->section] + at));
	writer->filled = 0;
	return 0;
}

/* The buffer takes whole units. */
static int put(void *to, const void *bytes, size_t size)
{
	struct writer *writer = to;
	size_t unit = writer->layout.unit[writer->section], room = BUFFER / unit * unit;

	while (size) {
		size_t n = PFS_MIN(size, room - writer->filled);

		memcpy(writer->buffer + writer->filled, bytes, n);
		writer->filled += n;
		bytes = (const uint8_t *)bytes + n;
		size -= n;
		if (writer->filled == room)
			PFS_TRY(flush(writer));
	}
	return 0;
}

/* ---- sections ---- */

static int write_column(struct writer *writer)
{
	static const uint64_t nothing;
	const struct pfs_image *image = writer->image;
	size_t element;
	const uint8_t *column = pfs_imagefile_column(image, &element, writer->section);

	if (image->nodes == image->end)
		return put(writer, column, element * image->end);
	for (uint32_t slot = 0; slot < image->end; slot++)
		PFS_TRY(put(writer,
			    is_live(image, slot) ? column + slot * element : (const void *)&nothing,
			    element));
	return 0;
}

/* Bytes of a name with its length, a NUL, and up to whole units. */
static size_t name_room(size_t len)
{
	return pfs_div_round_up(1 + len + 1, PFS_NAME_UNIT) * PFS_NAME_UNIT;
}

static int write_places(struct writer *writer)
{
	const struct pfs_image *image = writer->image;
	uint32_t next = 1; /* place 0 is that of no name */

	for (uint32_t slot = 0; slot < image->end; slot++) {
		uint32_t place = 0;
		size_t len;

		if (is_live(image, slot) && slot != image->root) {
			(void)pfs_names_get(image->names, image->name[slot], &len);
			place = next;
			next += (uint32_t)(name_room(len) / PFS_NAME_UNIT);
		}
		PFS_TRY(put(writer, &place, sizeof(place)));
	}
	return 0;
}

static int write_names(struct writer *writer)
{
	const struct pfs_image *image = writer->image;
	uint8_t room[1 + PFS_NAME_MAX + 1 + PFS_NAME_UNIT];

	memset(room, 0, PFS_NAME_UNIT);
	PFS_TRY(put(writer, room, PFS_NAME_UNIT));
	for (uint32_t slot = 0; slot < image->end; slot++) {
		const char *name;
		size_t len;

		if (!is_live(image, slot) || slot == image->root)
			continue;
		name = pfs_names_get(image->names, image->name[slot], &len);
		room[0] = (uint8_t)len;
		memcpy(room + 1, name, len);
		memset(room + 1 + len, 0, name_room(len) - 1 - len);
		PFS_TRY(put(writer, room, name_room(len)));
	}
	return 0;
}

/* Slots without a node are chained, whatever the image has of them. */
static int write_parents(struct writer *writer)
{
	const struct pfs_image *image = writer->image;
	uint32_t *parents PFS_FREE = malloc(PFS_IMAGE_PART * sizeof(*parents));

	if (!parents)
		return -ENOMEM;
	for (uint32_t from = 0; from < image->end; from += PFS_IMAGE_PART) {
		uint32_t n = PFS_MIN(image->end - from, PFS_IMAGE_PART);
		uint32_t next = writer->parts[from / PFS_IMAGE_PART + 1].free;

		for (uint32_t i = n; i-- > 0;) {
			parents[i] = is_live(image, from + i) ? image->parent[from + i] : next;
			if (!is_live(image, from + i))
				next = from + i;
		}
		PFS_TRY(put(writer, parents, n * sizeof(*parents)));
	}
	return 0;
}

static int write_states(struct writer *writer)
{
	const struct pfs_image *image = writer->image;

	for (uint32_t slot = 0; slot < image->end; slot++) {
		uint8_t state = is_live(image, slot)
					? PFS_SLOT_STORED | (image->state[slot] & PFS_SLOT_RARE)
					: 0;

		PFS_TRY(put(writer, &state, sizeof(state)));
	}
	return 0;
}

static int write_live(struct writer *writer)
{
	static const uint64_t none;
	const struct pfs_image *image = writer->image;
	size_t n = writer->layout.size[PFS_SECTION_LIVE] / sizeof(none);

	for (size_t i = 0; i < n; i++)
		PFS_TRY(put(writer, i * 64 < image->end ? &image->live[i] : &none, sizeof(none)));
	return 0;
}

static int write_index(struct writer *writer)
{
	const struct pfs_btree *index = writer->image->by_name;
	struct pfs_btree_cursor cursor;
	struct pfs_btree_entry entry;

	pfs_btree_seek(index, &cursor, 0, 0);
	while (pfs_btree_next(index, &cursor, &entry)) {
		uint32_t hash = (uint32_t)(entry.key & ((UINT64_C(1) << PFS_NAME_HASH_BITS) - 1));
		uint64_t packed = pfs_image_entry(hash, entry.slot);

		PFS_TRY(put(writer, &packed, sizeof(packed)));
	}
	return 0;
}

static int write_rare_of(struct writer *writer, uint32_t slot)
{
	static const uint8_t zeros[8];
	const struct pfs_rare_values *values = pfs_rare_find(writer->image->rare, slot);
	struct pfs_image_rare rare = {
		.slot = slot, .target_len = values->target_len, .rdev = values->rdev};

	for (unsigned i = 0; i < PFS_RARE_TIMES; i++) {
		rare.times[i].sec = values->times[i].sec;
		rare.times[i].nsec = values->times[i].nsec;
	}
	PFS_TRY(put(writer, &rare, sizeof(rare)));
	PFS_TRY(put(writer, values->target, values->target_len));
	return put(writer, zeros, (8 - values->target_len % 8) % 8);
}

static int write_rare(struct writer *writer)
{
	const struct pfs_image *image = writer->image;

	for (uint32_t slot = 0; slot < image->end; slot++)
		if (is_live(image, slot) && image->state[slot] & PFS_SLOT_RARE)
			PFS_TRY(write_rare_of(writer, slot));
	return 0;
}

static int write_section(struct writer *writer, const uint32_t *cells)
{
	switch (writer->section) {
	case PFS_SECTION_NAME:
		return write_places(writer);
	case PFS_SECTION_PARENT:
		return write_parents(writer);
	case PFS_SECTION_STATE:
		return write_states(writer);
	case PFS_SECTION_LIVE:
		return write_live(writer);
	case PFS_SECTION_PARTS:
		return put(writer, writer->parts, writer->layout.size[PFS_SECTION_PARTS]);
	case PFS_SECTION_FIRSTS:
	case PFS_SECTION_INNERS:
		return pfs_imagefile_write_firsts(&(struct pfs_image_out){put, writer},
						  writer->image->by_name, &writer->layout,
						  writer->section);
	case PFS_SECTION_HEAP:
		return write_names(writer);
	case PFS_SECTION_INDEX:
		return write_index(writer);
	case PFS_SECTION_MAP:
		return put(writer, cells, writer->layout.size[PFS_SECTION_MAP]);
	case PFS_SECTION_RARE:
		return write_rare(writer);
	case PFS_SECTION_STRAYS:
		return put(writer, writer->strays, writer->layout.size[PFS_SECTION_STRAYS]);
	case PFS_SECTION_ENDS:
	case PFS_SECTION_SPAN_STRAYS:
	case PFS_SECTION_TOTALS:
	case PFS_SECTION_DIRECTORIES:
		return pfs_imagefile_write_subtrees(&(struct pfs_image_out){put, writer},
						    writer->tree, writer->section);
	case PFS_SECTION_EXTRA:
		return put(writer, writer->extra, writer->header.extra_size);
	default:
		return write_column(writer);
	}
}

/* ---- the whole file ---- */

static void count_node(struct writer *writer, uint32_t slot)
{
	const struct pfs_image *image = writer->image;
	struct pfs_image_header *header = &writer->header;
	size_t len;

	(void)pfs_names_get(image->names, image->name[slot], &len);
	header->heap_size += slot == image->root ? 0 : name_room(len);
	if (S_ISDIR(image->mode[slot])) {
		writer->parts[slot / PFS_IMAGE_PART].directories++;
		header->descends |= slot != image->root && slot < image->parent[slot];
	}
	if (image->state[slot] & PFS_SLOT_RARE)
		header->rare_size +=
			sizeof(struct pfs_image_rare) +
			pfs_div_round_up(pfs_rare_find(image->rare, slot)->target_len, 8) * 8;
}

/* What is known once all nodes were counted. */
static void count_parts(struct writer *writer)
{
	const struct pfs_image *image = writer->image;
	size_t n = pfs_div_round_up(image->end, PFS_IMAGE_PART);
	uint32_t next = PFS_NO_SLOT;

	for (size_t i = 0; i < n; i++)
		writer->parts[i + 1].before =
			writer->parts[i].before + writer->parts[i].directories;
	writer->parts[n].place = (uint32_t)(writer->header.heap_size / PFS_NAME_UNIT);
	writer->parts[n].free = next;
	for (uint32_t slot = image->end; slot-- > 0;) {
		if (!is_live(image, slot))
			next = slot;
		if (slot % PFS_IMAGE_PART == 0)
			writer->parts[slot / PFS_IMAGE_PART].free = next;
	}
}

/* The counts that all else follows from. */
static int count(struct writer *writer)
{
	const struct pfs_image *image = writer->image;
	struct pfs_image_header *header = &writer->header;
	struct pfs_store_state state;
	uint32_t strays;

	PFS_TRY(pfs_totals_prepare(writer->tree, NULL, NULL));
	PFS_TRY(pfs_store_state(writer->tree->store, &state));
	*header = (struct pfs_image_header){
		.magic = PFS_IMAGE_FILE_MAGIC,
		.order = PFS_IMAGE_FILE_ORDER,
		.seed = pfs_store_seed(writer->tree->store),
		.seq = state.seq,
		.end = image->end,
		.nodes = image->nodes,
		.directories = image->directories,
		.root = image->root,
		.heap_size = PFS_NAME_UNIT,
		.revision = PFS_IMAGE_FILE_REVISION,
	};
	memcpy(header->token, state.token, PFS_TOKEN_SIZE);
	for (uint32_t slot = 0; slot < image->end; slot++) {
		if (slot % PFS_IMAGE_PART == 0)
			writer->parts[slot / PFS_IMAGE_PART].place =
				(uint32_t)(header->heap_size / PFS_NAME_UNIT);
		if (is_live(image, slot))
			count_node(writer, slot);
		if (header->heap_size / PFS_NAME_UNIT >= UINT32_MAX)
			return -EFBIG;
	}
	count_parts(writer);
	strays = pfs_slotorder_find(writer->tree, &writer->strays);
	header->strays = strays == PFS_STRAYS_UNKNOWN ? 0 : strays + 1;
	strays = pfs_spans_find(writer->tree);
	header->span_strays = strays == PFS_SPANS_UNKNOWN ? 0 : strays + 1;
	return 0;
}

/* A map with nothing in it but nodes that have names. */
static int make_map(const struct pfs_image *image, struct pfs_slot_map **map)
{
	int error;

	PFS_TRY(pfs_slot_map_create(map));
	error = pfs_slot_map_reserve(*map, (uint64_t)image->nodes + image->nodes / 16);
	if (error) {
		pfs_slot_map_destroy(*map);
		return error;
	}
	for (uint32_t from = 0, to = 0; to < image->end; from = to) {
		while (from < image->end && !is_live(image, from))
			from++;
		for (to = from; to < image->end && is_live(image, to);)
			to++;
		pfs_slot_map_fill(*map, image->prime, from, to);
	}
	return 0;
}

static int check_space(const struct writer *writer)
{
	struct statvfs fs;

	if (fstatvfs(writer->fd, &fs))
		return -errno;
	return (uint64_t)fs.f_bavail * fs.f_frsize <
			       writer->layout.file_size +
				       (uint64_t)fs.f_blocks / FREE_PART * fs.f_frsize
		       ? -ENOSPC
		       : 0;
}

static int write_sections(struct writer *writer, const uint32_t *cells)
{
	struct pfs_image_header *header = &writer->header;
	size_t table_size = writer->layout.blocks * sizeof(uint64_t);

	PFS_TRY(check_space(writer));
	if (ftruncate(writer->fd, (off_t)writer->layout.file_size))
		return -errno;
	for (writer->section = 0; writer->section < PFS_SECTIONS; writer->section++) {
		if (writer->layout.size[writer->section])
			PFS_TRY(write_section(writer, cells));
		PFS_TRY(flush(writer));
	}
	header->table_checksum =
		pfs_imagefile_sum_sums(header, &writer->layout, writer->sums, writer->sum_pages);
	header->checksum = pfs_imagefile_sum(header, PFS_SUM_HEADER, header,
					     offsetof(struct pfs_image_header, checksum));
	PFS_TRY(write_at(writer->fd, writer->sums, table_size, PFS_IMAGE_FILE_PAGE));
	PFS_TRY(write_at(writer->fd, writer->sum_pages,
			 writer->layout.n_sum_pages * sizeof(uint64_t),
			 writer->layout.sum_pages_offset));
	PFS_TRY(write_at(writer->fd, header, sizeof(*header), 0));
	return fsync(writer->fd) ? -errno : 0;
}

static int make_extra(struct writer *writer)
{
	const struct pfs_image_extras *extras = writer->tree->extras;
	size_t size = 0;
	int error = extras ? extras->make(writer->tree, &writer->extra, &size) : 0;

	writer->header.extra_size = size;
	return error;
}

static int write_file(struct writer *writer)
{
	struct pfs_image_part *parts PFS_FREE =
		calloc(pfs_div_round_up(writer->image->end, PFS_IMAGE_PART) + 1, sizeof(*parts));
	struct pfs_slot_map *map;
	const uint32_t *cells;
	int error;

	writer->parts = parts;
	if (!parts)
		return -ENOMEM;
	PFS_TRY(count(writer));
	PFS_TRY(make_extra(writer));
	PFS_TRY(make_map(writer->image, &map));
	cells = pfs_slot_map_cells(map, &writer->header.cells);
	pfs_imagefile_layout(&writer->layout, &writer->header);
	writer->sums = malloc(writer->layout.blocks * sizeof(uint64_t));
	writer->sum_pages = malloc(writer->layout.n_sum_pages * sizeof(uint64_t));
	writer->buffer = malloc(BUFFER);
	error = writer->sums && writer->sum_pages && writer->buffer ? write_sections(writer, cells)
								    : -ENOMEM;
	free(writer->sums);
	free(writer->sum_pages);
	free(writer->buffer);
	pfs_slot_map_destroy(map);
	return error;
}

/* ---- its place ---- */

/* Nobody may read it who may not read the store, and nobody but the owner write it. */
static int take_rights(int fd, const struct stat *store)
{
	mode_t mode = store->st_mode & (S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);

	if (fchown(fd, store->st_uid, store->st_gid)) {
		if (store->st_uid != geteuid())
			return -EPERM;
		mode &= ~(mode_t)(S_IRGRP | S_IROTH); /* meant for another group */
	}
	return fchmod(fd, mode) ? -errno : 0;
}

/* What is written is of no use once the store is another file, or gone. */
static bool is_still_there(const struct stat *store, const char *path)
{
	struct stat now;

	return !stat(path, &now) && now.st_dev == store->st_dev && now.st_ino == store->st_ino;
}

int pfs_imagefile_write_to(struct pfs_tree *tree, int fd)
{
	const char *path = pfs_store_path(tree->store);
	struct stat store;
	struct writer writer = {.tree = tree, .image = &tree->image, .fd = fd};
	char *name PFS_FREE = pfs_imagefile_name(tree, "");
	char *part PFS_FREE = pfs_imagefile_name(tree, PFS_IMAGE_PART_SUFFIX);
	int error;

	if (!name || !part)
		return -ENOMEM;
	error = stat(path, &store) ? -errno : 0;
	if (!error && !pfs_imagefile_may_replace(name))
		error = -EPERM;
	if (!error)
		error = take_rights(fd, &store);
	if (!error)
		error = write_file(&writer);
	free(writer.extra);
	if (!error)
		error = pfs_imagefile_failure(tree);
	if (!error && !is_still_there(&store, path))
		error = -ENOENT;
	if (!error && rename(part, name))
		error = -errno;
	if (error)
		(void)unlink(part);
	return error ? error : pfs_store_sync_folder(name);
}

int pfs_imagefile_write(struct pfs_tree *tree)
{
	int fd PFS_CLOSE = pfs_imagefile_begin(pfs_store_path(tree->store));

	return fd < 0 ? fd : pfs_imagefile_write_to(tree, fd);
}

void pfs_imagefile_remove(const struct pfs_tree *tree)
{
	char *name PFS_FREE = pfs_imagefile_name(tree, "");

	if (name && pfs_imagefile_may_replace(name))
		(void)unlink(name);
}
