/* SPDX-License-Identifier: MIT */
/* Filling a block from the image file, and what a file with right checksums may say all the same,
 * since anybody can make one: slots, places of names and cells that are out of bounds, parents that
 * are no directories or lead in circles, entries out of order.
 *
 * Blocks of the image that are looked at are provided before, so that there is an order: modes need
 * none, parents, primes and links need modes, the index needs parents and modes. */
#include "fs/image/imagefile_impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/lazy.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

#define OTHERS	   (UINT64_C(1) << 32) /* primes of what is no directory are above it */
#define ONES	   UINT64_C(0x0101010101010101)
#define SLASHES	   (ONES * '/')
#define RUN_MAX	   32u /* blocks that are read at once */
#define NAME_ROOM  260u /* bytes that a name takes at most */
#define NAMES_SIZE (PFS_IMAGE_PART * NAME_ROOM + 2 * PFS_IMAGE_FILE_BLOCK + 2 * NAME_ROOM)
#define RETRY_US   10000u
#define LIVE_WORDS (RUN_MAX * PFS_IMAGE_FILE_BLOCK / 64)

/* Slots of a column, as they are going to be. */
struct range {
	const struct pfs_image_file *file;
	const struct pfs_image *image;
	uint32_t from, to; /* slots */
	const uint64_t *live; /* from slot `first` on, as the file has it */
	uint32_t first;
	uint64_t modes, parents; /* the block of that column that was looked at last, from 1 on */
};

static bool is_live(const struct range *range, uint32_t slot)
{
	return range->live[(slot - range->first) / 64] >> slot % 64 & 1;
}

/* An element of another column. */
static void provide(const struct range *range, uint64_t *last, unsigned section, size_t element,
		    uint32_t slot)
{
	uint64_t block = slot / (PFS_IMAGE_FILE_BLOCK / element) + 1;

	if (block != *last)
		pfs_lazy_provide(range->file->lazy_parts[section], slot * element, element);
	*last = block;
}

/* What somebody may be changing who could not before the block that is filled was there, which the
 * kernel saw to: of that ThreadSanitizer knows nothing.  Nobody changes a mode's type. */
__attribute__((no_sanitize("thread"), noinline)) static uint32_t
parent_there(const struct range *range, uint32_t slot)
{
	return __atomic_load_n(&range->image->parent[slot], __ATOMIC_RELAXED);
}

__attribute__((no_sanitize("thread"), noinline)) static uint32_t
mode_there(const struct range *range, uint32_t slot)
{
	return __atomic_load_n(&range->image->mode[slot], __ATOMIC_RELAXED);
}

static uint32_t mode_of(struct range *range, uint32_t slot)
{
	provide(range, &range->modes, PFS_SECTION_MODE, sizeof(range->image->mode[0]), slot);
	return mode_there(range, slot);
}

/* The first of the file's rare slots that is not below; *at: where to look from, kept. */
static bool is_rare(const struct pfs_image_file *file, uint32_t slot, bool with_target)
{
	size_t from = 0, n = file->n_rare;

	while (n) {
		size_t half = n / 2;
		uint32_t there = file->rare[from + half] & ~PFS_IMAGE_TARGET;

		if (there == slot)
			return !with_target || file->rare[from + half] & PFS_IMAGE_TARGET;
		if (there < slot) {
			from += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return false;
}

/* ---- columns ---- */

static bool mode_is_sound(uint32_t mode)
{
	return S_ISDIR(mode) || S_ISREG(mode) || S_ISLNK(mode) || S_ISCHR(mode) || S_ISBLK(mode) ||
	       S_ISFIFO(mode) || S_ISSOCK(mode);
}

static bool modes_are_sound(const struct range *range, const uint16_t *modes)
{
	const struct pfs_image_file *file = range->file;
	uint32_t directories = 0;

	for (uint32_t slot = range->from; slot < range->to; slot++) {
		uint32_t mode = modes[slot - range->from];

		if (is_live(range, slot) ? !mode_is_sound(mode) : mode != 0)
			return false;
		if (S_ISLNK(mode) && !is_rare(file, slot, true))
			return false;
		directories += S_ISDIR(mode);
		if ((slot + 1) % PFS_IMAGE_PART && slot + 1 != range->to)
			continue;
		if (directories != file->parts[slot / PFS_IMAGE_PART].directories)
			return false;
		directories = 0;
	}
	return true;
}

static bool prime_is_sound(struct range *range, uint32_t slot, uint64_t prime)
{
	const uint64_t *handed_out = range->file->handed_out;

	if (!is_live(range, slot))
		return !prime;
	if (slot == range->file->header.root || prime == PFS_ROOT_PRIME)
		return slot == range->file->header.root && prime == PFS_ROOT_PRIME &&
		       S_ISDIR(mode_of(range, slot));
	if (S_ISDIR(mode_of(range, slot)))
		return prime > PFS_ROOT_PRIME && prime < OTHERS &&
		       prime < handed_out[PFS_PRIME_DIRECTORY];
	return prime > OTHERS && prime < handed_out[PFS_PRIME_OTHER];
}

static bool primes_are_sound(struct range *range, const uint64_t *primes)
{
	for (uint32_t slot = range->from; slot < range->to; slot++)
		if (!prime_is_sound(range, slot, primes[slot - range->from]))
			return false;
	return true;
}

static bool parent_is_sound(struct range *range, uint32_t slot, uint32_t parent)
{
	const struct pfs_image_header *header = &range->file->header;

	if (slot == header->root)
		return parent == PFS_NO_SLOT;
	return parent < header->end && S_ISDIR(mode_of(range, parent)) &&
	       (parent < slot || header->descends || !S_ISDIR(mode_of(range, slot)));
}

/* Slots without a node are chained, each to the next. */
static bool parents_are_sound(struct range *range, const uint32_t *parents)
{
	uint32_t next = range->file->parts[pfs_div_round_up(range->to, PFS_IMAGE_PART)].free;

	for (uint32_t slot = range->to; slot-- > range->from;) {
		uint32_t parent = parents[slot - range->from];

		if (is_live(range, slot) ? !parent_is_sound(range, slot, parent) : parent != next)
			return false;
		if (!is_live(range, slot))
			next = slot;
	}
	return true;
}

static bool links_are_sound(struct range *range, const uint32_t *links)
{
	for (uint32_t slot = range->from; slot < range->to; slot++) {
		uint32_t n = links[slot - range->from];

		if (!is_live(range, slot) ? n != 0 : S_ISDIR(mode_of(range, slot)) ? n < 2 : n != 1)
			return false;
	}
	return true;
}

static bool states_are_sound(const struct range *range, const uint8_t *states)
{
	for (uint32_t slot = range->from; slot < range->to; slot++) {
		uint8_t state = is_live(range, slot) ? PFS_SLOT_STORED : 0;

		if (states[slot - range->from] == state && !(range->file->n_rare))
			continue;
		if (states[slot - range->from] !=
		    (state | (is_rare(range->file, slot, false) ? PFS_SLOT_RARE : 0)))
			return false;
	}
	return true;
}

static bool is_time(int64_t value)
{
	return value > PFS_TIME_PAST && value < PFS_TIME_FUTURE;
}

/* What few have must be there for those who will look for it. */
static bool times_are_sound(const struct range *range, const int64_t *times)
{
	const struct pfs_image_file *file = range->file;

	for (uint32_t slot = range->from; slot < range->to; slot++)
		if (!is_time(times[slot - range->from]) &&
		    (times[slot - range->from] == INT64_MIN || !is_rare(file, slot, false)))
			return false;
	return true;
}

static bool none_is_negative(const struct range *range, const int64_t *numbers)
{
	int64_t all = 0;

	for (uint32_t i = 0; i < range->to - range->from; i++)
		all |= numbers[i];
	return all >= 0;
}

/* ---- names ---- */

/* Returns true if one of the 8 bytes is 0. */
static bool has_zero(uint64_t word)
{
	return (word - ONES) & ~word & ONES << 7;
}

/* As the store has it: no NUL, no slash, neither "." nor "..".  Reads as far past the name as the
 * heap allows. */
static bool bytes_are_sound(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, name + i, sizeof(word));
		if (len - i < sizeof(word))
			word |= ~UINT64_C(0) << 8 * (len - i);
		if (has_zero(word) || has_zero(word ^ SLASHES))
			return false;
	}
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

/* The part's names as the file has them, with what may be read past the last; *names is in the
 * buffer.  They are not looked at in the image: others write there. */
static bool read_names(const struct pfs_image_file *file, char *buffer, const char **names,
		       uint32_t part)
{
	size_t from = (size_t)file->parts[part].place * PFS_NAME_UNIT,
	       to = (size_t)file->parts[part + 1].place * PFS_NAME_UNIT;
	uint64_t first = from / PFS_IMAGE_FILE_BLOCK;
	uint64_t end = pfs_div_round_up(to, PFS_IMAGE_FILE_BLOCK);

	*names = buffer + from % PFS_IMAGE_FILE_BLOCK;
	return to - from <= (size_t)PFS_IMAGE_PART * NAME_ROOM &&
	       (to == from ||
		pfs_imagefile_read(file, buffer, PFS_SECTION_HEAP, first, end - first));
}

/* Names follow each other: each begins where the one before ends. */
static bool part_is_sound(const struct range *range, const uint32_t *places, uint32_t from,
			  uint32_t to, const char *names)
{
	const struct pfs_image_part *part = &range->file->parts[from / PFS_IMAGE_PART];
	uint64_t end = part[1].place, next = part->place;

	for (uint32_t slot = from; slot < to; slot++, places++) {
		const char *name = names + (next - part->place) * PFS_NAME_UNIT;
		size_t len = (uint8_t)name[0];

		if (!is_live(range, slot) || slot == range->file->header.root) {
			if (*places != PFS_NO_NAME)
				return false;
			continue;
		}
		if (*places != next || next >= end)
			return false;
		next += (1 + len + 1 + PFS_NAME_UNIT - 1) / PFS_NAME_UNIT;
		if (!len || next > end || name[1 + len] || !bytes_are_sound(name + 1, len))
			return false;
	}
	return next == end;
}

static bool names_are_sound(const struct range *range, const uint32_t *places)
{
	char *buffer PFS_FREE = NULL;
	const char *names;
	bool sound = true;

	while ((buffer = calloc(1, NAMES_SIZE)) == NULL)
		(void)usleep(RETRY_US); /* nothing is wrong with the file */
	for (uint32_t from = range->from; sound && from < range->to; from += PFS_IMAGE_PART)
		sound = read_names(range->file, buffer, &names, from / PFS_IMAGE_PART) &&
			part_is_sound(range, places + (from - range->from), from,
				      PFS_MIN(range->to, from + PFS_IMAGE_PART), names);
	return sound;
}

static bool column_is_sound(struct range *range, unsigned section, const void *bytes)
{
	switch (section) {
	case PFS_SECTION_PRIME:
		return primes_are_sound(range, bytes);
	case PFS_SECTION_PARENT:
		return parents_are_sound(range, bytes);
	case PFS_SECTION_NAME:
		return names_are_sound(range, bytes);
	case PFS_SECTION_MODE:
		return modes_are_sound(range, bytes);
	case PFS_SECTION_LINKS:
		return links_are_sound(range, bytes);
	case PFS_SECTION_STATE:
		return states_are_sound(range, bytes);
	case PFS_SECTION_SIZE:
	case PFS_SECTION_BLOCKS:
		return none_is_negative(range, bytes);
	case PFS_SECTION_ATIME:
	case PFS_SECTION_MTIME:
	case PFS_SECTION_CTIME:
		return times_are_sound(range, bytes);
	default:
		return true;
	}
}

/* Which slots had a node, as the file has it: the image may have come to differ in other slots. */
static bool read_live(const struct pfs_image_file *file, uint64_t *live, struct range *range)
{
	uint32_t unit = range->from / PFS_IMAGE_PART;

	range->live = live;
	range->first = unit * PFS_IMAGE_PART;
	return pfs_imagefile_read(file, live, PFS_SECTION_LIVE, unit,
				  pfs_div_round_up(range->to, PFS_IMAGE_PART) - unit);
}

static bool fill_column(const struct pfs_image_file *file, void *to, unsigned section,
			uint64_t first, uint64_t count)
{
	struct range range = {.file = file, .image = &file->tree->image};
	uint64_t live[LIVE_WORDS];
	size_t element;

	if (!pfs_imagefile_read(file, to, section, first, count))
		return false;
	(void)pfs_imagefile_column(range.image, &element, section);
	range.from = (uint32_t)(first * (PFS_IMAGE_FILE_BLOCK / element));
	range.to =
		range.from + (uint32_t)(pfs_imagefile_size(file, section, first, count) / element);
	return read_live(file, live, &range) && column_is_sound(&range, section, to);
}

/* ---- the map of primes ---- */

/* A search ends at an empty cell: so long a row of used ones there never is. */
static bool fill_cells(const struct pfs_image_file *file, void *to, uint64_t first, uint64_t count)
{
	size_t n = pfs_imagefile_size(file, PFS_SECTION_MAP, first, count) / sizeof(uint32_t);
	const uint32_t *cells = to;
	size_t used = 0;

	if (!pfs_imagefile_read(file, to, PFS_SECTION_MAP, first, count))
		return false;
	for (size_t i = 0; i < n; i++) {
		used = cells[i] ? used + 1 : 0;
		if (cells[i] > file->header.end ||
		    used == PFS_IMAGE_FILE_BLOCK / sizeof(uint32_t) || used == file->header.cells)
			return false;
	}
	return true;
}

/* ---- the index of names ---- */

static bool take_entry(struct range *range, struct pfs_btree_entry *out, uint64_t entry)
{
	const struct pfs_image_file *file = range->file;
	uint32_t slot = (uint32_t)entry, parent;

	if (slot >= file->header.end || slot == file->header.root ||
	    entry >> 32 >> PFS_NAME_HASH_BITS)
		return false;
	provide(range, &range->parents, PFS_SECTION_PARENT, sizeof(parent), slot);
	parent = parent_there(range, slot);
	if (parent >= file->header.end || !S_ISDIR(mode_of(range, parent)))
		return false; /* as that of a slot without a node may be */
	*out = (struct pfs_btree_entry){pfs_image_key(parent, (uint32_t)(entry >> 32)), slot};
	return true;
}

static bool fill_leaf(const struct pfs_image_file *file, void *to, size_t leaf,
		      const uint64_t *packed)
{
	struct pfs_btree_entry entries[PFS_BTREE_LEAF_COUNT] = {{0}}, last = {0};
	size_t before = leaf * PFS_BTREE_LEAF_COUNT;
	unsigned n = (unsigned)PFS_MIN(file->header.nodes - 1 - before, PFS_BTREE_LEAF_COUNT);
	struct range range = {.file = file, .image = &file->tree->image};

	if (!n)
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (!take_entry(&range, &entries[i], packed[i]) ||
		    (i && !pfs_btree_is_less(last, entries[i])))
			return false;
		last = entries[i];
	}
	if (!pfs_imagefile_leaf_is_between(file, leaf, entries[0], last))
		return false;
	pfs_btree_make_leaf(to, file->leaves.base, leaf, file->layout.n_leaves, entries, n);
	return true;
}

/* The packed entries go to the end of the block, which the leaves grow towards: a leaf is larger
 * than what it is made of. */
static bool fill_index(const struct pfs_image_file *file, void *to, uint64_t first, uint64_t count,
		       size_t size)
{
	size_t leaf = first * PFS_IMAGE_LEAVES, n = size / PFS_BTREE_LEAF_SIZE;
	size_t packed = pfs_imagefile_size(file, PFS_SECTION_INDEX, first, count);
	const char *at = (char *)to + size - packed;
	uint64_t entries[PFS_BTREE_LEAF_COUNT];

	if (!pfs_imagefile_read(file, (char *)to + size - packed, PFS_SECTION_INDEX, first, count))
		return false;
	for (size_t i = 0; i < n; i++, at += sizeof(entries)) {
		memcpy(entries, at, PFS_MIN(sizeof(entries), (size_t)((char *)to + size - at)));
		if (!fill_leaf(file, (char *)to + i * PFS_BTREE_LEAF_SIZE, leaf + i, entries))
			return false;
	}
	return true;
}

/* ---- all of it ---- */

static bool fill(const struct pfs_image_source *from, void *to, uint64_t first, uint64_t count,
		 size_t size)
{
	const struct pfs_image_file *file = from->file;

	if (from->section < PFS_SECTION_COLUMNS)
		return fill_column(file, to, from->section, first, count);
	if (from->section == PFS_SECTION_MAP)
		return fill_cells(file, to, first, count);
	if (from->section == PFS_SECTION_INDEX)
		return fill_index(file, to, first, count, size);
	if (from->section == PFS_SECTION_INNERS)
		return pfs_imagefile_fill_inners(file, to, first, size);
	if (from->section > PFS_SECTION_MAP)
		return pfs_imagefile_fill_subtrees(file, to, from->section, first, count, size);
	return pfs_imagefile_read(file, to, from->section, first, count);
}

static void fill_or_mend(const struct pfs_image_source *from, void *to, uint64_t number,
			 size_t size)
{
	struct pfs_image_file *file = from->file;

	if (fill(from, to, number, 1, size))
		return;
	memset(to, 0, size);
	atomic_store(&file->bad, true);
	if (!atomic_load(&file->loading))
		pfs_imagefile_mend(file, to, from->section, number, size);
	else if (from->section == PFS_SECTION_INNERS)
		pfs_imagefile_poor_inners(file, to, number, size); /* until the file is given up */
}

void pfs_imagefile_fill(void *source, void *to, uint64_t first, uint64_t count, size_t size)
{
	const struct pfs_image_source *from = source;
	size_t block = pfs_imagefile_memory_block(from->section);

	while (count) {
		uint64_t n = PFS_MIN(count, RUN_MAX);
		size_t part = PFS_MIN(size, n * block);
		char *at = to;

		if (n == 1 || !fill(from, to, first, n, part))
			for (uint64_t i = 0; i < n; i++)
				fill_or_mend(from, at + i * block, first + i,
					     PFS_MIN(part - i * block, block));
		first += n;
		count -= n;
		size -= part;
		to = at + part;
	}
}
