/* SPDX-License-Identifier: MIT */
/* Compares the columns of attributes in the image's file with the store. */
#include "fs/attr/attrfile.h"

#include <string.h>

#include "base/checked.h"
#include "fs/image/imagefile.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"

#define AT_ONCE 256u /* values that are read in one hold */

static bool is_same(const struct pfs_attr_value *a, const struct pfs_attr_value *b)
{
	if (a->is_set != b->is_set || !a->is_set)
		return a->is_set == b->is_set;
	if (a->type != b->type)
		return false;
	if (a->type != PFS_ATTR_TEXT)
		return a->integer == b->integer; /* or the bits of a real number */
	return a->text_len == b->text_len &&
	       (!a->text_len || memcmp(a->text, b->text, a->text_len) == 0);
}

static int compare_values(const struct pfs_attrfile_column *column, struct pfs_tree *rows,
			  struct pfs_attr_reader *reader, uint64_t *different)
{
	const struct pfs_attr_value none = {.is_set = false};
	uint32_t slots[AT_ONCE], n, end = PFS_MIN(column->end, rows->image.end);
	struct pfs_attr_value values[AT_ONCE];
	int error = 0;

	for (uint32_t from = 0; from < end && !error; from += n) {
		n = PFS_MIN(end - from, AT_ONCE);
		for (uint32_t i = 0; i < n; i++)
			slots[i] = from + i;
		(void)pfs_scan_lock(rows, __func__);
		error = pfs_attr_read(reader, values, slots, n);
		for (uint32_t i = 0; i < n && !error; i++) {
			uint32_t place = column->place[from + i];

			*different +=
				!is_same(&values[i], place ? &column->values[place - 1] : &none);
		}
		pfs_scan_unlock(rows);
	}
	return error;
}

static int compare_column(struct pfs_tree *tree, struct pfs_tree *rows, uint64_t *different,
			  const char *name, size_t name_len)
{
	struct pfs_attrfile_column column;
	struct pfs_attr_reader *reader;
	int error;

	error = pfs_attrfile_read(tree, &column, name, name_len);
	if (error) {
		++*different;
		return error == -ENOENT ? 0 : error;
	}
	error = pfs_attr_reader_open(&reader, rows, name, name_len);
	if (!error)
		error = compare_values(&column, rows, reader, different);
	pfs_attr_reader_close(reader);
	pfs_attrfile_free(&column);
	return error;
}

int pfs_attrfile_compare(struct pfs_tree *tree, struct pfs_tree *rows, uint64_t *different)
{
	char name[PFS_NAME_MAX];
	struct pfs_attrfile_head head;
	uint64_t at = 0, n = 0;
	int error = pfs_imagefile_current_end(tree) ? 0 : -ENOENT;

	while (!error) {
		error = pfs_attrfile_next(tree, &head, name, &at);
		if (!error)
			error = compare_column(tree, rows, &n, name, head.name_len);
	}
	if (error != -ENOENT)
		return error;
	*different = n + (pfs_imagefile_current_end(tree) && at != pfs_imagefile_extra_size(tree));
	return 0;
}
