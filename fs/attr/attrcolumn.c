/* SPDX-License-Identifier: MIT */
#include "fs/attr/attrcolumn.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/attr/attrfile.h"
#include "fs/attr/attrnotes.h"
#include "fs/attr/attrscan.h"
#include "fs/attr/attrvalue.h"
#include "fs/attr/xattr.h"
#include "fs/content/register.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/journal/part.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"

/* The column as the store had it when it was read, without what was being changed at that time. */
struct base {
	struct base *next;
	_Atomic unsigned references;
	struct pfs_attr_notes *notes; /* what has changed since */
	char *name;
	size_t name_len;
	uint32_t *place; /* by slot: 1 + the number of its value; 0: it has none */
	uint32_t end;	 /* how many slots `place` has */
	struct pfs_attr_value *values;
	/* the texts of all values, as an image file has them; NULL: each value has its own */
	char *texts;
	size_t n;
};

struct pfs_attr_columns {
	struct pfs_tree *tree;
	/* protected by the content lock */
	struct base *bases, *forgotten;
	/* changed only with tree->lock held for writing, too */
	struct pfs_attr_notes *notes; /* NULL: nothing is noted */
	struct pfs_attr_notes *old_notes;
};

struct pfs_attr_reader {
	struct pfs_tree *tree;
	struct base *base;
	/* the registers that compute this column; NULL: none does */
	const struct pfs_register *computed;
	struct base *ids; /* the column of ids, for the parent's id */
	uint64_t number; /* the number of the snapshot that it reads */
	struct pfs_attr_reader *next; /* the next reader that a frozen tree has */
	bool has_lock;	 /* it holds the live tree's lock */
	struct pfs_value **held; /* sets into which the given values point */
	size_t n_held, held_capacity;
};

int pfs_attr_columns_create(struct pfs_attr_columns **out, struct pfs_tree *tree)
{
	struct pfs_attr_columns *columns = calloc(1, sizeof(*columns));

	*out = columns;
	if (!columns)
		return -ENOMEM;
	columns->tree = tree;
	return 0;
}

/* ---- changes ---- */

static void free_base(struct base *base)
{
	for (size_t i = 0; i < base->n && !base->texts; i++)
		if (base->values[i].type == PFS_ATTR_TEXT)
			free((char *)base->values[i].text);
	free(base->texts);
	free(base->name);
	free(base->place);
	free(base->values);
	pfs_attr_notes_unref(base->notes);
	free(base);
}

static void unref_base(struct base *base)
{
	if (base && --base->references == 0)
		free_base(base);
}

static void free_bases(struct base *base)
{
	while (base) {
		struct base *next = base->next;

		unref_base(base);
		base = next;
	}
}

/* Takes all columns out, for the caller to free them later, since that takes long. Both locks are
 * held, or nobody else uses the columns. */
static void forget(struct pfs_attr_columns *columns)
{
	PFS_VERIFY_CHECK(!columns->forgotten && !columns->old_notes);
	columns->forgotten = PFS_TAKE(columns->bases);
	columns->old_notes = PFS_TAKE(columns->notes);
}

void pfs_attr_columns_settle(struct pfs_attr_columns *columns)
{
	struct base *bases;
	struct pfs_attr_notes *notes;

	pfs_parts_lock(columns->tree);
	bases = PFS_TAKE(columns->forgotten);
	notes = PFS_TAKE(columns->old_notes);
	pfs_parts_unlock(columns->tree);
	free_bases(bases);
	pfs_attr_notes_unref(notes);
}

void pfs_attr_columns_destroy(struct pfs_attr_columns *columns)
{
	if (!columns)
		return;
	free_bases(columns->bases);
	free_bases(columns->forgotten);
	pfs_attr_notes_unref(columns->notes);
	pfs_attr_notes_unref(columns->old_notes);
	free(columns);
}

void pfs_attr_columns_note(struct pfs_attr_columns *columns, uint64_t prime, struct pfs_value *set)
{
	if (columns->notes && pfs_attr_notes_put(columns->notes, prime, set))
		forget(columns);
}

/* ---- reading a column ---- */

static int note_pending(void *arg, uint64_t prime, struct pfs_value *set)
{
	return pfs_attr_notes_put(arg, prime, set);
}

/* Begins to note changes. What the store does not have yet counts as a change, too. */
static int begin_notes(struct pfs_attr_columns *columns, struct pfs_attr_notes **out)
{
	struct pfs_attr_notes *notes;
	int error = 0;

	PFS_TRY(pfs_attr_notes_create(&notes, columns->tree));
	pfs_parts_lock(columns->tree);
	while (columns->old_notes) {
		pfs_parts_unlock(columns->tree);
		pfs_attr_columns_settle(columns);
		pfs_parts_lock(columns->tree);
	}
	if (!columns->notes)
		error = pfs_attrs_pending(columns->tree, note_pending, notes);
	if (!columns->notes && !error) {
		pfs_hold_write(columns->tree, __func__);
		columns->notes = PFS_TAKE(notes);
		pfs_hold_end(columns->tree);
	}
	if (!error)
		*out = pfs_attr_notes_ref(columns->notes);
	pfs_parts_unlock(columns->tree);
	pfs_attr_notes_unref(notes);
	return error;
}

/* From the image's file, if that has it; else from the store. */
static int take_column(struct base *base, struct pfs_tree *tree)
{
	struct pfs_attrfile_column column;
	int error = pfs_attrfile_read(tree, &column, base->name, base->name_len);

	if (error == -ENOENT)
		error = pfs_attrscan_read(tree, &column, base->name, base->name_len);
	if (error)
		return error;
	base->place = column.place;
	base->end = column.end;
	base->values = column.values;
	base->n = column.n;
	base->texts = column.texts;
	return 0;
}

static int read_base(struct base **out, struct pfs_attr_columns *columns, const char *name,
		     size_t name_len)
{
	struct pfs_tree *tree = columns->tree;
	struct base *base = calloc(1, sizeof(*base));
	int error;

	if (!base)
		return -ENOMEM;
	base->references = 1;
	base->name = malloc(name_len + 1);
	error = base->name ? begin_notes(columns, &base->notes) : -ENOMEM;
	if (!error) {
		memcpy(base->name, name, name_len);
		base->name_len = name_len;
		error = take_column(base, tree);
	}
	if (error)
		free_base(base);
	else
		*out = base;
	return error;
}

/* Returns a reference to the column; NULL: it has not been read. The content lock is held. */
static struct base *find_base(struct pfs_attr_columns *columns, const char *name, size_t name_len)
{
	struct base *base = columns->bases;

	while (base && (base->name_len != name_len || memcmp(base->name, name, name_len) != 0))
		base = base->next;
	if (base)
		base->references++;
	return base;
}

int pfs_attr_columns_asked(struct pfs_tree *tree,
			   int (*fn)(void *arg, const char *name, size_t name_len), void *arg)
{
	struct base *base;
	int error = 0;

	for (size_t i = 0; !error; i++) {
		pfs_parts_lock(tree);
		base = pfs_attrs_columns(tree)->bases;
		for (size_t k = 0; base && k < i; k++)
			base = base->next;
		if (base)
			base->references++;
		pfs_parts_unlock(tree);
		if (!base)
			break;
		error = fn(arg, base->name, base->name_len);
		unref_base(base);
	}
	return error;
}

/* Keeps the column for others, if it still holds and nobody else has read it meanwhile. */
static void keep_base(struct pfs_attr_columns *columns, struct base *base)
{
	struct base *other = find_base(columns, base->name, base->name_len);

	unref_base(other);
	if (other || base->notes != columns->notes)
		return;
	base->references++;
	base->next = columns->bases;
	columns->bases = base;
}

static int open_base(struct base **out, struct pfs_tree *tree, const char *name, size_t name_len)
{
	struct pfs_attr_columns *columns = pfs_attrs_columns(tree);

	pfs_parts_lock(tree);
	*out = find_base(columns, name, name_len);
	pfs_parts_unlock(tree);
	if (*out)
		return 0;
	PFS_TRY(read_base(out, columns, name, name_len));
	pfs_parts_lock(tree);
	keep_base(columns, *out);
	pfs_parts_unlock(tree);
	return 0;
}

int pfs_attr_reader_copy(struct pfs_attr_reader **out, const struct pfs_attr_reader *reader)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->tree = reader->tree;
	(*out)->number = reader->number;
	(*out)->base = reader->base;
	(*out)->base->references++;
	(*out)->computed = reader->computed;
	(*out)->ids = reader->ids;
	if (reader->ids)
		(*out)->ids->references++;
	return 0;
}

/* Copies a reader that the frozen tree has: the columns that are going to be read were opened when
 * it was frozen. */
static int copy_frozen(struct pfs_attr_reader **out, const struct pfs_attr_reader *frozen,
		       const char *name, size_t name_len)
{
	while (frozen && (frozen->base->name_len != name_len ||
			  memcmp(frozen->base->name, name, name_len) != 0))
		frozen = frozen->next;
	return frozen ? pfs_attr_reader_copy(out, frozen) : -EOPNOTSUPP;
}

int pfs_attr_reader_open(struct pfs_attr_reader **out, struct pfs_tree *tree, const char *name,
			 size_t name_len)
{
	struct pfs_attr_reader *reader;
	int error;

	*out = NULL;
	if (tree->image.copy)
		return copy_frozen(out, tree->frozen_attrs, name, name_len);
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	reader->tree = tree;
	reader->number = PFS_NOTES_NOW;
	reader->computed = pfs_registers_computing(tree, name, name_len);
	error = open_base(&reader->base, tree, name, name_len);
	if (!error && reader->computed && reader->computed->is.id != PFS_NO_COLUMN) {
		name = reader->computed->columns[reader->computed->is.id];
		error = open_base(&reader->ids, tree, name, strlen(name));
	}
	if (error)
		pfs_attr_reader_close(reader);
	else
		*out = reader;
	return error;
}

static void let_go(struct pfs_attr_reader *reader)
{
	while (reader->n_held)
		pfs_value_unref(reader->held[--reader->n_held]);
}

void pfs_attr_reader_close(struct pfs_attr_reader *reader)
{
	if (!reader)
		return;
	let_go(reader);
	free(reader->held);
	unref_base(reader->base);
	unref_base(reader->ids);
	free(reader);
}

/* ---- values ---- */

static int hold_set(struct pfs_attr_reader *reader, struct pfs_value *set)
{
	PFS_TRY(pfs_grow(&reader->held, &reader->held_capacity, reader->n_held + 1,
			 sizeof(struct pfs_value *)));
	reader->held[reader->n_held++] = pfs_value_ref(set);
	return 0;
}

/* Sets *noted if the node's attributes have changed since the column was read. Then *set is what
 * they changed to, with a reference; NULL: the node has none. */
static int find_noted(struct pfs_attr_reader *reader, struct pfs_value **set, bool *noted,
		      const struct base *base, uint32_t slot)
{
	struct pfs_tree *live = reader->has_lock ? NULL : pfs_attrs_columns(reader->tree)->tree;
	int error = 0;

	if (live)
		pfs_hold_read(live, __func__);
	/* the column of primes may still lie in a file */
	*noted = !pfs_attr_notes_empty(base->notes) &&
		 pfs_attr_notes_find(base->notes, set, reader->tree->image.prime[slot],
				     reader->number);
	if (*noted && *set)
		error = hold_set(reader, *set);
	if (live)
		pfs_hold_end(live);
	return error;
}

static int read_kept(struct pfs_attr_reader *reader, struct pfs_attr_value *out,
		     const struct base *base, uint32_t slot)
{
	const struct pfs_image *image = &reader->tree->image;
	uint32_t place = slot < base->end ? base->place[slot] : 0;
	struct pfs_value *set;
	bool noted;

	*out = (struct pfs_attr_value){.is_set = false};
	if (!(image->flags[slot] & PFS_NODE_ATTRS))
		return 0;
	PFS_TRY(find_noted(reader, &set, &noted, base, slot));
	if (noted && set)
		pfs_attr_value_in(out, set, base->name, base->name_len);
	else if (place && !noted)
		*out = base->values[place - 1];
	return 0;
}

/* Takes the text over, into what is held with the values. */
static int hold_text(struct pfs_attr_reader *reader, struct pfs_attr_value *out, const char *text,
		     size_t len)
{
	struct pfs_value *value;

	PFS_TRY(pfs_grow(&reader->held, &reader->held_capacity, reader->n_held + 1,
			 sizeof(struct pfs_value *)));
	value = pfs_value_create(len + 1);
	if (!value)
		return -ENOMEM;
	memcpy(value->data, text, len);
	reader->held[reader->n_held++] = value;
	*out = (struct pfs_attr_value){
		.is_set = true,
		.type = PFS_ATTR_TEXT,
		.text = (const char *)value->data,
		.text_len = len,
	};
	return 0;
}

/* Gets the value that follows from the node's place, if its register computes the column. */
static int read_computed(struct pfs_attr_reader *reader, struct pfs_attr_value *out, uint32_t slot)
{
	const struct pfs_image *image = &reader->tree->image;
	const struct pfs_register *of = pfs_register_of(reader->tree, slot);
	const struct base *base = reader->base;
	char name[PFS_NAME_MAX], *path PFS_FREE = NULL;
	uint32_t parent = image->parent[slot];
	const char *text;
	size_t len;

	switch (pfs_register_role(of, base->name, base->name_len)) {
	case PFS_ROLE_NAME:
		text = pfs_names_get(image->names, image->name[slot], &len);
		len = pfs_register_name(of, name, text, len);
		return hold_text(reader, out, name, len);
	case PFS_ROLE_PATH:
		PFS_TRY(pfs_register_path(reader->tree, of, &path, &len, slot));
		return hold_text(reader, out, path, len);
	case PFS_ROLE_PARENT:
		*out = (struct pfs_attr_value){.is_set = false};
		if (!reader->ids || parent == PFS_NO_SLOT)
			return 0;
		PFS_TRY(read_kept(reader, out, reader->ids, parent));
		if (!out->is_set && image->prime[parent] == of->is.root &&
		    of->is.style & PFS_REGISTER_OWN_PARENT)
			return read_kept(reader, out, reader->ids, slot);
		return 0;
	case PFS_ROLE_NONE:
		break;
	}
	return read_kept(reader, out, base, slot);
}

static bool is_forgotten(const struct pfs_attr_columns *columns,
			 const struct pfs_attr_reader *reader)
{
	return columns->notes != reader->base->notes ||
	       (reader->ids && columns->notes != reader->ids->notes);
}

int pfs_attr_read(struct pfs_attr_reader *reader, struct pfs_attr_value *out, const uint32_t *slots,
		  size_t n)
{
	struct pfs_attr_columns *columns = pfs_attrs_columns(reader->tree);
	bool is_live = reader->number == PFS_NOTES_NOW;
	int error = 0;

	if (is_live && is_forgotten(columns, reader))
		return -EAGAIN;
	let_go(reader);
	/* to compute a value, the live tree may be needed, too */
	reader->has_lock = is_live || !reader->computed;
	if (!is_live && reader->has_lock)
		pfs_hold_read(columns->tree, __func__);
	for (size_t i = 0; i < n && !error; i++)
		error = reader->computed ? read_computed(reader, &out[i], slots[i])
					 : read_kept(reader, &out[i], reader->base, slots[i]);
	if (!is_live && reader->has_lock)
		pfs_hold_end(columns->tree);
	return error;
}

/* ---- of a frozen tree ---- */

int pfs_attrs_frozen_open(struct pfs_tree *frozen, struct pfs_tree *live,
			  const struct pfs_attr_wish *wishes, size_t n)
{
	frozen->attrs = live->attrs;
	for (size_t i = 0; i < n; i++) {
		struct pfs_attr_reader *reader;

		PFS_TRY(pfs_attr_reader_open(&reader, live, wishes[i].name, wishes[i].len));
		reader->next = frozen->frozen_attrs;
		frozen->frozen_attrs = reader;
	}
	return 0;
}

int pfs_attrs_frozen_begin(struct pfs_tree *frozen, uint64_t number)
{
	for (struct pfs_attr_reader *reader = frozen->frozen_attrs; reader; reader = reader->next) {
		if (is_forgotten(pfs_attrs_columns(frozen), reader))
			return -EAGAIN;
		reader->tree = frozen;
		reader->number = number;
	}
	return 0;
}

void pfs_attrs_frozen_close(struct pfs_tree *frozen)
{
	while (frozen->frozen_attrs) {
		struct pfs_attr_reader *reader = frozen->frozen_attrs;

		frozen->frozen_attrs = reader->next;
		pfs_attr_reader_close(reader);
	}
}

bool pfs_attrs_frozen_changed(const struct pfs_tree *frozen, uint64_t prime)
{
	/* all of them have the same notes */
	const struct pfs_attr_reader *reader = frozen->frozen_attrs;
	struct pfs_value *now, *was;
	bool is_noted;

	if (!reader)
		return false;
	if (is_forgotten(pfs_attrs_columns(frozen), reader))
		return true;
	is_noted = pfs_attr_notes_find(reader->base->notes, &now, prime, PFS_NOTES_NOW);
	return is_noted != pfs_attr_notes_find(reader->base->notes, &was, prime, reader->number) ||
	       now != was;
}
