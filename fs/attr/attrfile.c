/* SPDX-License-Identifier: MIT */
/* Columns of attributes in the image's file: one after the other, each a head, the name, values,
 * their texts, and pairs of slots and values; each begins at a multiple of 8. */
#include "fs/attr/attrfile.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/attr/xattr_impl.h"
#include "fs/image/imagefile.h"
#include "fs/tree/tree_impl.h"

#define SIZE_BITS 40u

static bool head_is_sound(const struct pfs_attrfile_head *head, uint64_t room)
{
	return !(head->n_pairs >> SIZE_BITS) && !(head->texts_size >> SIZE_BITS) &&
	       head->name_len <= PFS_NAME_MAX && head->size <= room &&
	       head->size == sizeof(*head) + pfs_attrfile_round_up(head->name_len) +
				     head->n_values * sizeof(struct pfs_attrfile_value) +
				     pfs_attrfile_round_up(head->texts_size) +
				     head->n_pairs * sizeof(struct pfs_attrfile_pair);
}

int pfs_attrfile_next(const struct pfs_tree *tree, struct pfs_attrfile_head *head,
		      char name[PFS_NAME_MAX], uint64_t *at)
{
	struct pfs_image_extra extra PFS_EXTRA = {NULL, NULL};
	uint64_t size = pfs_imagefile_extra_size(tree), room = size - PFS_MIN(*at, size);

	if (room < sizeof(*head))
		return -ENOENT;
	PFS_TRY(pfs_imagefile_read_extra(tree, &extra, *at, sizeof(*head)));
	memcpy(head, extra.bytes, sizeof(*head));
	pfs_imagefile_free_extra(&extra);
	if (!head_is_sound(head, room))
		return -ENOENT;
	PFS_TRY(pfs_imagefile_read_extra(tree, &extra, *at + sizeof(*head), head->name_len));
	memcpy(name, extra.bytes, head->name_len);
	*at += head->size;
	return 0;
}

static bool take_values(struct pfs_attrfile_column *out, const struct pfs_attrfile_head *head,
			const uint8_t *bytes)
{
	const struct pfs_attrfile_value *stored = (const void *)bytes;

	for (uint32_t i = 0; i < head->n_values; i++) {
		struct pfs_attr_value *value = &out->values[i];

		*value = (struct pfs_attr_value){
			.is_set = true, .same = i + 1, .type = (enum pfs_attr_type)stored[i].type};
		if (value->type == PFS_ATTR_TEXT) {
			if (stored[i].is > head->texts_size ||
			    stored[i].text_len > head->texts_size - stored[i].is)
				return false;
			value->text = out->texts + stored[i].is;
			value->text_len = stored[i].text_len;
		} else if (value->type == PFS_ATTR_INTEGER || value->type == PFS_ATTR_REAL) {
			memcpy(&value->integer, &stored[i].is, sizeof(value->integer));
		} else {
			return false;
		}
	}
	out->n = head->n_values;
	return true;
}

static bool take_places(struct pfs_attrfile_column *out, const struct pfs_attrfile_head *head,
			const uint8_t *bytes)
{
	const struct pfs_attrfile_pair *pairs = (const void *)bytes;

	for (uint64_t i = 0; i < head->n_pairs; i++) {
		if (pairs[i].slot >= out->end || pairs[i].value >= head->n_values)
			return false;
		out->place[pairs[i].slot] = pairs[i].value + 1;
	}
	return true;
}

static int take_column(struct pfs_attrfile_column *out, const struct pfs_attrfile_head *head,
		       const uint8_t *bytes)
{
	const uint8_t *texts = bytes + head->n_values * sizeof(struct pfs_attrfile_value);

	out->place = calloc((size_t)out->end + 1, sizeof(*out->place));
	out->values = calloc((size_t)head->n_values + 1, sizeof(*out->values));
	out->texts = malloc(head->texts_size + 1);
	if (!out->place || !out->values || !out->texts)
		return -ENOMEM;
	memcpy(out->texts, texts, head->texts_size);
	if (!take_values(out, head, bytes) ||
	    !take_places(out, head, texts + pfs_attrfile_round_up(head->texts_size)))
		return -ENOENT;
	return 0;
}

void pfs_attrfile_free(struct pfs_attrfile_column *column)
{
	free(column->place);
	free(column->values);
	free(column->texts);
}

int pfs_attrfile_read(struct pfs_tree *tree, struct pfs_attrfile_column *out, const char *name,
		      size_t name_len)
{
	struct pfs_image_extra extra PFS_EXTRA = {NULL, NULL};
	char found[PFS_NAME_MAX];
	uint64_t at = 0, skipped;
	struct pfs_attrfile_head head;
	int error;

	*out = (struct pfs_attrfile_column){.end = pfs_imagefile_current_end(tree)};
	if (!out->end || atomic_load(&tree->attrs->is_written))
		return -ENOENT;
	do {
		PFS_TRY(pfs_attrfile_next(tree, &head, found, &at));
	} while (head.name_len != name_len || memcmp(found, name, name_len) != 0);
	skipped = sizeof(head) + pfs_attrfile_round_up(name_len);
	error = pfs_imagefile_read_extra(tree, &extra, at - head.size + skipped,
					 head.size - skipped);
	if (!error)
		error = take_column(out, &head, extra.bytes);
	if (error)
		pfs_attrfile_free(out);
	return error;
}
