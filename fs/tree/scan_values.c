/* SPDX-License-Identifier: MIT */
/* What a node's fields are, one by one and in bulk. */
#include "fs/tree/scan_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/tree/totals.h"

/* ---- integers ---- */

static int64_t type_letter(uint16_t mode)
{
	static const char letters[] = "?pc?d?b?f?l?s???"; /* by the type bits */

	return letters[mode >> 12];
}

static int64_t depth(const struct pfs_image *image, uint32_t slot)
{
	int64_t n = 0;

	for (; slot != image->root; slot = image->parent[slot])
		n++;
	return n;
}

/* What nanoseconds in 64 bits cannot say is the nearest that they can; INT64_MIN means none. */
static int64_t nanoseconds(const struct pfs_tree *tree, const int64_t *column, uint32_t slot)
{
	if (column[slot] != INT64_MIN)
		return column[slot];
	return pfs_image_time(tree, column, slot).sec < 0 ? INT64_MIN + 1 : INT64_MAX;
}

static int64_t device(const struct pfs_image *image, uint32_t slot)
{
	const struct pfs_rare_values *values;

	if (!S_ISCHR(image->mode[slot]) && !S_ISBLK(image->mode[slot]))
		return 0;
	values = pfs_rare_find(image->rare, slot);
	return values ? (int64_t)values->rdev : 0;
}

/* The totals have been made: see pfs_scan_integers and the predicates. */
static int64_t total(const struct pfs_tree *tree, enum pfs_field field, uint32_t slot)
{
	struct pfs_totals totals;

	pfs_totals_at(tree, &totals, slot);
	switch (field) {
	case PFS_FIELD_SUBTREE_COUNT:
		return (int64_t)totals.count;
	case PFS_FIELD_SUBTREE_SIZE:
		return (int64_t)totals.size;
	case PFS_FIELD_SUBTREE_BLOCKS:
		return (int64_t)totals.blocks;
	default:
		return totals.mtime;
	}
}

int64_t pfs_scan_integer(const struct pfs_tree *tree, enum pfs_field field, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;

	switch (field) {
	case PFS_FIELD_INO:
		return (int64_t)image->prime[slot];
	case PFS_FIELD_PARENT:
		return slot == image->root ? PFS_FIELD_NONE
					   : (int64_t)image->prime[image->parent[slot]];
	case PFS_FIELD_DEPTH:
		return depth(image, slot);
	case PFS_FIELD_TYPE:
		return type_letter(image->mode[slot]);
	case PFS_FIELD_MODE:
		return image->mode[slot];
	case PFS_FIELD_UID:
		return image->uid[slot];
	case PFS_FIELD_GID:
		return image->gid[slot];
	case PFS_FIELD_SIZE:
		return image->size[slot];
	case PFS_FIELD_BLOCKS:
		return image->blocks[slot];
	case PFS_FIELD_NLINK:
		return image->links[slot];
	case PFS_FIELD_MTIME:
		return nanoseconds(tree, image->mtime, slot);
	case PFS_FIELD_ATIME:
		return nanoseconds(tree, image->atime, slot);
	case PFS_FIELD_CTIME:
		return nanoseconds(tree, image->ctime, slot);
	case PFS_FIELD_RDEV:
		return device(image, slot);
	case PFS_FIELD_SUBTREE_COUNT:
	case PFS_FIELD_SUBTREE_SIZE:
	case PFS_FIELD_SUBTREE_BLOCKS:
	case PFS_FIELD_SUBTREE_MTIME:
		return total(tree, field, slot);
	default:
		return PFS_FIELD_NONE;
	}
}

int pfs_scan_integers(struct pfs_tree *tree, int64_t *out, enum pfs_field field,
		      const uint32_t *slots, size_t n)
{
	if (pfs_field_is_bytes(field))
		return -EINVAL;
	if (field >= PFS_FIELD_SUBTREE_COUNT)
		PFS_TRY(pfs_totals_prepare(tree));
	for (size_t i = 0; i < n; i++)
		out[i] = pfs_scan_integer(tree, field, slots[i]);
	return 0;
}

/* ---- bytes ---- */

/* What follows the last dot that is not the first byte. */
static const char *extension(const char *name, size_t *len)
{
	const char *dot = *len > 1 ? memrchr(name + 1, '.', *len - 1) : NULL;

	if (!dot)
		return NULL;
	*len -= (size_t)(dot + 1 - name);
	return dot + 1;
}

static const char *target(const struct pfs_image *image, size_t *len, uint32_t slot)
{
	const struct pfs_rare_values *values;

	if (!S_ISLNK(image->mode[slot]))
		return NULL;
	values = pfs_rare_find(image->rare, slot);
	*len = values ? values->target_len : 0;
	return values && values->target ? values->target : "";
}

static int path(const struct pfs_image *image, struct pfs_scan_text *room, size_t *len,
		uint32_t slot)
{
	size_t name_len, total = 0, at;

	for (uint32_t s = slot; s != image->root; s = image->parent[s]) {
		(void)pfs_names_get(image->names, image->name[s], &name_len);
		total += name_len + 1;
	}
	assert(total < SIZE_MAX - 2);
	PFS_TRY(pfs_grow(&room->bytes, &room->capacity, total + 2, 1));
	room->bytes[0] = '/';
	at = *len = PFS_MAX(total, 1);
	room->bytes[at] = '\0';
	for (uint32_t s = slot; s != image->root; s = image->parent[s]) {
		const char *name = pfs_names_get(image->names, image->name[s], &name_len);

		at -= name_len;
		memcpy(room->bytes + at, name, name_len);
		room->bytes[--at] = '/';
	}
	return 0;
}

int pfs_scan_text(const struct pfs_tree *tree, struct pfs_scan_text *room, const char **bytes,
		  size_t *len, enum pfs_field field, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;
	const char *name = pfs_names_get(image->names, image->name[slot], len);

	if (field == PFS_FIELD_NAME) {
		*bytes = name;
	} else if (field == PFS_FIELD_EXT) {
		*bytes = extension(name, len);
	} else if (field == PFS_FIELD_TARGET) {
		*bytes = target(image, len, slot);
	} else {
		PFS_TRY(path(image, room, len, slot));
		*bytes = room->bytes;
	}
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): a column is its four arrays */
int pfs_scan_bytes(struct pfs_tree *tree, char **bytes, size_t *capacity, uint64_t *offset,
		   uint8_t *is_none, enum pfs_field field, const uint32_t *slots, size_t n)
{
	struct pfs_scan_text room = {0};
	uint64_t end = 0;
	int error = 0;

	if (!pfs_field_is_bytes(field))
		return -EINVAL;
	for (size_t i = 0; i < n && !error; i++) {
		const char *text;
		size_t len;

		error = pfs_scan_text(tree, &room, &text, &len, field, slots[i]);
		if (!error && text)
			error = pfs_grow(bytes, capacity, end + len, 1);
		if (error)
			break;
		if (is_none)
			is_none[i] = !text;
		offset[i] = end;
		if (text && len) {
			memcpy(*bytes + end, text, len);
			end += len;
		}
	}
	offset[n] = end;
	free(room.bytes);
	return error;
}
