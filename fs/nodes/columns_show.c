/* SPDX-License-Identifier: MIT */
/* The table that the operators read, and its columns. */
#include "fs/nodes/columns_impl.h"

#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

#pragma GCC diagnostic error "-Wswitch" /* a source that a switch without default lacks */

/* Returns the stamps of the array that a field shows, which is made of one column. */
static const struct pfs_stamps *stamps_of(const struct pfs_tree *tree, enum pfs_field field)
{
	return pfs_feed_stamps(&tree->image, __builtin_ctz(pfs_fields[field].made_of));
}

void pfs_columns_table(struct pfs_tree *tree, struct pfs_table *out)
{
	*out = (struct pfs_table){
		.n_rows = tree->image.end,
		.live = tree->image.nodes == tree->image.end ? NULL : tree->image.live,
		.live_stamps = pfs_feed_stamps(&tree->image, PFS_COLUMN_NUMBER_LIVE),
		.epoch = tree->image.epoch,
	};
}

static int show_derived(struct pfs_tree *tree, struct pfs_table_column *out,
			enum pfs_derived_kind kind, const struct pfs_column_wish *wish)
{
	struct pfs_derived *column;

	PFS_TRY(pfs_derived_get(tree, &column, kind, wish));
	*out = (struct pfs_table_column){
		.kind = PFS_KIND_INTEGER,
		.width = pfs_derived_width(column),
		.data = column->data.base,
		.nulls = kind == PFS_DERIVED_DEPTH ? NULL : column->nulls.base,
		.not_null = kind == PFS_DERIVED_DEPTH,
		.data_stamps = &column->data_stamps,
		.nulls_stamps = &column->nulls_stamps,
	};
	if (kind == PFS_DERIVED_EXT ||
	    (kind == PFS_DERIVED_ATTR && column->type == PFS_ATTR_TEXT)) {
		out->kind = PFS_KIND_CODE;
		out->dictionary = &column->dictionary.shown;
	} else if (kind == PFS_DERIVED_ATTR) {
		out->kind = column->type == PFS_ATTR_REAL ? PFS_KIND_REAL : PFS_KIND_INTEGER;
		out->is_signed = column->type == PFS_ATTR_INTEGER;
	}
	return 0;
}

/* By the bits of st_mode that say it; what no node has has texts of no letter. */
static const struct pfs_dictionary *types(void)
{
	static const uint8_t bytes[] = "\1pc\2d\3b\4f\5l\6s\7\10\11";
	static const uint64_t offset[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	static struct pfs_dictionary dictionary = {.bytes = bytes, .offset = offset, .n = 16};

	return &dictionary;
}

static void show_number(struct pfs_table_column *out, const void *data, uint8_t width)
{
	*out = (struct pfs_table_column){
		.kind = PFS_KIND_INTEGER, .width = width, .data = data, .not_null = true};
}

/* Readers in the same hold find the heap as it is, and write nothing. */
static void show_name(struct pfs_tree *tree, struct pfs_table_column *out)
{
	struct pfs_heap *heap = &tree->columns->names;
	struct pfs_names_view view;
	PFS_LOCKED(&tree->columns->lock);

	pfs_names_view(tree->image.names, &view);
	if (heap->bytes != view.heap || heap->size != view.heap_size)
		*heap = (struct pfs_heap){
			.bytes = view.heap,
			.size = view.heap_size,
			.place_shift = (uint8_t)view.place_shift,
			.length_size = 1,
			.stamps = pfs_names_stamps(tree->image.names),
		};
	*out = (struct pfs_table_column){
		.kind = PFS_KIND_PLACE,
		.width = sizeof(uint32_t),
		.not_null = true,
		.data = tree->image.name,
		.heap = heap,
		.data_stamps = stamps_of(tree, PFS_FIELD_NAME),
	};
}

static int show_array(struct pfs_tree *tree, struct pfs_table_column *out, enum pfs_field field)
{
	const struct pfs_image *image = &tree->image;
	const void *array = pfs_field_array(image, field);

	switch (pfs_fields[field].source) {
	case PFS_SOURCE_U16:
		show_number(out, array, sizeof(uint16_t));
		return 0;
	case PFS_SOURCE_U32:
		show_number(out, array, sizeof(uint32_t));
		return 0;
	case PFS_SOURCE_I64:
	case PFS_SOURCE_TIME:
		show_number(out, array, sizeof(int64_t));
		out->is_signed = true;
		return 0;
	case PFS_SOURCE_INO:
		show_number(out, array, sizeof(uint64_t));
		out->unique = true;
		return 0;
	case PFS_SOURCE_TYPE:
		show_number(out, array, sizeof(uint16_t));
		out->kind = PFS_KIND_CODE;
		out->shift = 12;
		out->dictionary = types();
		return 0;
	case PFS_SOURCE_PARENT:
		show_number(out, image->prime, sizeof(*image->prime));
		out->not_null = false;
		out->is_by_via = true;
		out->via = image->parent;
		out->n_elements = image->end;
		return 0;
	case PFS_SOURCE_NAME:
		show_name(tree, out);
		return 0;
	case PFS_SOURCE_NONE:
	case PFS_SOURCE_DEPTH:
	case PFS_SOURCE_LINK:
	case PFS_SOURCE_LINKS:
	case PFS_SOURCE_RDEV:
	case PFS_SOURCE_COMPARED:
	case PFS_SOURCE_READDIR:
	case PFS_SOURCE_TOTAL:
	case PFS_SOURCE_TOTAL_TIME:
	case PFS_SOURCE_EXT:
	case PFS_SOURCE_TARGET:
	case PFS_SOURCE_PATH:
	case PFS_SOURCE_PREORDER:
		break;
	}
	return -EOPNOTSUPP;
}

static int show_field(struct pfs_tree *tree, struct pfs_table_column *out, enum pfs_field field)
{
	int error = show_array(tree, out, field);

	/* inos, by way of the array of parents */
	out->data_stamps = stamps_of(tree, out->via ? PFS_FIELD_INO : field);
	if (out->via)
		out->via_stamps = stamps_of(tree, PFS_FIELD_PARENT);
	return error;
}

int pfs_columns_get(struct pfs_tree *tree, struct pfs_table_column *out,
		    const struct pfs_column_wish *wish)
{
	enum pfs_derived_kind kind;

	return pfs_derived_kind_of(&kind, wish) ? show_derived(tree, out, kind, wish)
						: show_field(tree, out, wish->field);
}
