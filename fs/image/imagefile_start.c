/* SPDX-License-Identifier: MIT */
/* What is read of an image file, and verified, when it is opened: which slots have nodes, where
 * parts begin, and what few nodes have. */
#include "fs/image/imagefile_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/names.h"
#include "fs/image/rare_values.h"
#include "fs/tree/tree_impl.h"

#define NSEC_END UINT64_C(1000000000)

static int take_rare(struct pfs_image_file *file, const struct pfs_image_rare *rare,
		     const uint8_t *target)
{
	struct pfs_image *image = &file->tree->image;
	struct pfs_rare_values *values;

	if (rare->slot >= file->header.end || !pfs_image_is_live(image, rare->slot) ||
	    (file->n_rare && (file->rare[file->n_rare - 1] & ~PFS_IMAGE_TARGET) >= rare->slot) ||
	    memchr(target, 0, rare->target_len))
		return -ENOENT;
	PFS_TRY(pfs_rare_get(image->rare, &values, rare->slot));
	file->rare[file->n_rare++] = rare->slot | (rare->target_len ? PFS_IMAGE_TARGET : 0);
	values->rdev = rare->rdev;
	for (unsigned i = 0; i < PFS_RARE_TIMES; i++) {
		if (rare->times[i].nsec >= NSEC_END)
			return -ENOENT;
		values->times[i] = (struct pfs_time){.sec = rare->times[i].sec,
						     .nsec = (uint32_t)rare->times[i].nsec};
	}
	if (!rare->target_len)
		return 0;
	pfs_rare_set_target(image->rare, values, strndup((const char *)target, rare->target_len),
			    rare->target_len);
	return values->target ? 0 : -ENOMEM;
}

static int take_all_rare(struct pfs_image_file *file, const uint8_t *at)
{
	uint64_t left = file->header.rare_size;
	struct pfs_image_rare rare;

	file->rare = malloc((left / sizeof(rare) + 1) * sizeof(*file->rare));
	if (!file->rare)
		return -ENOMEM;
	while (left) {
		uint64_t room;

		if (left < sizeof(rare))
			return -ENOENT;
		memcpy(&rare, at, sizeof(rare));
		at += sizeof(rare);
		left -= sizeof(rare);
		room = pfs_div_round_up(rare.target_len, 8) * 8;
		if (rare.target_len > PFS_TARGET_MAX || room > left)
			return -ENOENT;
		PFS_TRY(take_rare(file, &rare, at));
		at += room;
		left -= room;
	}
	return 0;
}

/* Arrays are as large as the counts say. */
static bool counts_are_true(const struct pfs_image_file *file)
{
	const struct pfs_image_header *header = &file->header;
	const uint64_t *live = file->tree->image.live;
	uint64_t nodes = 0, directories = 0;

	for (size_t i = 0; i < file->layout.size[PFS_SECTION_LIVE] / sizeof(*live); i++)
		nodes += (unsigned)__builtin_popcountll(live[i]);
	if (header->end % 64 && live[header->end / 64] >> header->end % 64)
		return false;
	for (size_t i = pfs_div_round_up(header->end, 64);
	     i < file->layout.size[PFS_SECTION_LIVE] / sizeof(*live); i++)
		if (live[i])
			return false;
	for (size_t i = 0; i < file->layout.n_parts; i++) {
		if (file->parts[i].before != directories)
			return false;
		directories += file->parts[i].directories;
	}
	return nodes == header->nodes && directories == header->directories &&
	       pfs_image_is_live(&file->tree->image, header->root);
}

static bool parts_are_true(const struct pfs_image_file *file)
{
	const uint64_t *live = file->tree->image.live;
	const struct pfs_image_part *last = &file->parts[file->layout.n_parts];
	uint32_t next = PFS_NO_SLOT;

	for (uint32_t slot = file->header.end; slot-- > 0;) {
		if (live[slot / 64] == UINT64_MAX && slot % 64 == 63)
			slot &= ~UINT32_C(63); /* of which all have a node */
		else if (!pfs_image_is_live(&file->tree->image, slot))
			next = slot;
		if (slot % PFS_IMAGE_PART == 0 && file->parts[slot / PFS_IMAGE_PART].free != next)
			return false;
	}
	for (size_t i = 0; i < file->layout.n_parts; i++)
		if (file->parts[i].place > file->parts[i + 1].place || !file->parts[i].place)
			return false;
	return last->free == PFS_NO_SLOT &&
	       (uint64_t)last->place * PFS_NAME_UNIT == file->header.heap_size;
}

int pfs_imagefile_check(struct pfs_image_file *file, const uint8_t *rare)
{
	return pfs_imagefile_tops_are_sound(file) && counts_are_true(file) && parts_are_true(file)
		       ? take_all_rare(file, rare)
		       : -ENOENT;
}
