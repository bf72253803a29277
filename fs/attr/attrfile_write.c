/* SPDX-License-Identifier: MIT */
/* Writes columns of attributes into the image's file. */
#include "fs/attr/attrfile.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/siphash.h"
#include "fs/attr/xattr_impl.h"
#include "fs/content/register.h"
#include "fs/image/imagefile.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"

#define AT_ONCE 256u /* values that are read in one hold */

/* A column that is being written. */
struct making {
	struct pfs_attrfile_head head;
	struct pfs_attrfile_value *values;
	char *texts;
	struct pfs_attrfile_pair *pairs;
	size_t values_capacity, texts_capacity, pairs_capacity;
	uint32_t *table; /* by hash: 1 + the number of a value; 0: empty */
	size_t table_size;
};

static const void *bytes_of(const struct making *making, size_t *len,
			    const struct pfs_attrfile_value *value)
{
	bool is_text = value->type == PFS_ATTR_TEXT;

	*len = is_text ? value->text_len : sizeof(value->is);
	return is_text ? (const void *)(making->texts + value->is) : (const void *)&value->is;
}

/* Returns the cell of the value that has these bytes, or the empty one where it belongs. */
static uint32_t *cell_of(const struct making *making, uint32_t type, const void *bytes, size_t len)
{
	size_t at = pfs_siphash(bytes, len, type, len) % making->table_size;

	for (;; at = (at + 1) % making->table_size) {
		const struct pfs_attrfile_value *there;
		const void *its;
		size_t its_len;

		if (!making->table[at])
			return &making->table[at];
		there = &making->values[making->table[at] - 1];
		its = bytes_of(making, &its_len, there);
		if (there->type == type && its_len == len && (!len || memcmp(its, bytes, len) == 0))
			return &making->table[at];
	}
}

static int grow_table(struct making *making)
{
	size_t size = PFS_MAX(making->table_size * 2, 1024);
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	free(making->table);
	making->table = table;
	making->table_size = size;
	for (uint32_t i = 0; i < making->head.n_values; i++) {
		size_t len;
		const void *bytes = bytes_of(making, &len, &making->values[i]);

		*cell_of(making, making->values[i].type, bytes, len) = i + 1;
	}
	return 0;
}

/* Returns where the next text goes, with room for it and one byte more; NULL: there is no memory.
 */
static char *room_for_text(struct making *making, size_t len)
{
	if (pfs_grow(&making->texts, &making->texts_capacity, making->head.texts_size + len + 1, 1))
		return NULL;
	return making->texts + making->head.texts_size;
}

static int add_value(struct making *making, uint32_t *cell, uint32_t type, const void *bytes,
		     size_t len)
{
	struct pfs_attrfile_value value = {.text_len = (uint32_t)len, .type = type};

	PFS_TRY(pfs_grow(&making->values, &making->values_capacity,
			 (size_t)making->head.n_values + 1, sizeof(value)));
	if (type == PFS_ATTR_TEXT) {
		char *text = room_for_text(making, len);

		if (!text)
			return -ENOMEM;
		memcpy(text, bytes, len);
		value.is = making->head.texts_size;
		making->head.texts_size += len;
	} else {
		memcpy(&value.is, bytes, sizeof(value.is));
		value.text_len = 0;
	}
	making->values[making->head.n_values++] = value;
	*cell = making->head.n_values;
	return 0;
}

static int add(struct making *making, uint32_t slot, const struct pfs_attr_value *value)
{
	const bool is_text = value->type == PFS_ATTR_TEXT;
	const void *bytes = is_text ? (const void *)value->text : (const void *)&value->integer;
	const size_t len = is_text ? value->text_len : sizeof(value->integer);
	uint32_t *cell;

	if (!value->is_set)
		return 0;
	if (making->table_size / 2 <= making->head.n_values)
		PFS_TRY(grow_table(making));
	cell = cell_of(making, value->type, bytes, len);
	if (!*cell)
		PFS_TRY(add_value(making, cell, value->type, bytes, len));
	PFS_TRY(pfs_grow(&making->pairs, &making->pairs_capacity, making->head.n_pairs + 1,
			 sizeof(*making->pairs)));
	making->pairs[making->head.n_pairs++] = (struct pfs_attrfile_pair){slot, *cell - 1};
	return 0;
}

static int read_all(struct pfs_tree *tree, struct making *making, struct pfs_attr_reader *reader)
{
	struct pfs_attr_value values[AT_ONCE];
	uint32_t slots[AT_ONCE], n, end = tree->image.end;
	int error = 0;

	for (uint32_t from = 0; from < end && !error; from += n) {
		n = PFS_MIN(end - from, AT_ONCE);
		for (uint32_t i = 0; i < n; i++)
			slots[i] = from + i;
		(void)pfs_scan_lock(tree, __func__);
		error = pfs_attr_read(reader, values, slots, n);
		for (uint32_t i = 0; i < n && !error; i++)
			if (pfs_image_is_live(&tree->image, from + i))
				error = add(making, from + i, &values[i]);
		pfs_scan_unlock(tree);
	}
	return error;
}

static uint8_t *put(uint8_t *to, const void *bytes, size_t size)
{
	if (size)
		memcpy(to, bytes, size);
	return to + pfs_attrfile_round_up(size);
}

/* The bytes that are written for all columns. */
struct extra {
	struct pfs_tree *tree;
	uint8_t *bytes;
	size_t size, capacity;
};

static int append(struct extra *extra, struct making *making, const char *name, size_t name_len)
{
	struct pfs_attrfile_head *head = &making->head;
	uint8_t *at;

	head->name_len = (uint32_t)name_len;
	head->size = sizeof(*head) + pfs_attrfile_round_up(name_len) +
		     head->n_values * sizeof(*making->values) +
		     pfs_attrfile_round_up(head->texts_size) +
		     head->n_pairs * sizeof(*making->pairs);
	PFS_TRY(pfs_grow(&extra->bytes, &extra->capacity, extra->size + head->size, 1));
	at = extra->bytes + extra->size;
	memset(at, 0, head->size);
	at = put(at, head, sizeof(*head));
	at = put(at, name, name_len);
	at = put(at, making->values, head->n_values * sizeof(*making->values));
	at = put(at, making->texts, head->texts_size);
	(void)put(at, making->pairs, head->n_pairs * sizeof(*making->pairs));
	extra->size += head->size;
	return 0;
}

/* Writes a column. One that cannot be read is left out, and will be read from the store when
 * somebody asks for it. */
static int write_column(void *arg, const char *name, size_t name_len)
{
	struct extra *extra = arg;
	struct making making = {.table = NULL};
	struct pfs_attr_reader *reader;
	int error;

	if (pfs_registers_computing(extra->tree, name, name_len) ||
	    pfs_attr_reader_open(&reader, extra->tree, name, name_len))
		return 0;
	error = read_all(extra->tree, &making, reader);
	if (!error)
		error = append(extra, &making, name, name_len);
	pfs_attr_reader_close(reader);
	free(making.values);
	free(making.texts);
	free(making.pairs);
	free(making.table);
	return error == -EAGAIN ? 0 : error;
}

/* Returns true if the file has the column. If there is no memory to find out, it counts as missing,
 * and the file is written once more. */
static bool is_in_file(const struct pfs_tree *tree, const char *name, size_t name_len)
{
	char found[PFS_NAME_MAX];
	struct pfs_attrfile_head head;
	uint64_t at = 0;

	while (!pfs_attrfile_next(tree, &head, found, &at))
		if (head.name_len == name_len && memcmp(found, name, name_len) == 0)
			return true;
	return false;
}

static int ask(void *arg, const char *name, size_t name_len)
{
	struct pfs_attr_reader *reader;

	if (!pfs_attr_reader_open(&reader, arg, name, name_len))
		pfs_attr_reader_close(reader);
	return 0;
}

/* Makes the bytes of all columns. Those that the file has are opened, too, if that is possible, so
 * that they are among the others. */
static int make(struct pfs_tree *tree, void **bytes, size_t *size)
{
	struct extra extra = {.tree = tree};
	char name[PFS_NAME_MAX];
	struct pfs_attrfile_head head;
	uint64_t at = 0;
	int error = 0;

	if ((pfs_imagefile_current_end(tree) && !atomic_load(&tree->attrs->is_written)) ||
	    pfs_imagefile_may_ask_store(tree))
		while (!(error = pfs_attrfile_next(tree, &head, name, &at)))
			(void)ask(tree, name, head.name_len);
	if (error == -ENOMEM)
		return error;
	error = pfs_attr_columns_asked(tree, write_column, &extra);
	if (error) {
		free(extra.bytes);
		return error;
	}
	*bytes = extra.bytes;
	*size = extra.size;
	return 0;
}

static int is_missing(void *arg, const char *name, size_t name_len)
{
	return !pfs_registers_computing(arg, name, name_len) && !is_in_file(arg, name, name_len);
}

static bool is_wanted(struct pfs_tree *tree)
{
	return pfs_attr_columns_asked(tree, is_missing, tree);
}

int pfs_attrfile_create(struct pfs_tree *tree)
{
	static const struct pfs_image_extras extras = {make, is_wanted};

	tree->extras = &extras;
	return 0;
}
