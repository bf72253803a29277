/* SPDX-License-Identifier: MIT */
#include "fs/attr/attrcolumn.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "fs/attr/attrset.h"
#include "fs/attr/xattr.h"
#include "fs/content/register.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/journal/part.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"

#define NOTES_MAX ((size_t)1 << 17) /* changed nodes; more: forget the columns */

/* What the store had when the column was read, less what was being changed then. */
struct base {
	struct base *next;
	_Atomic unsigned references;
	uint64_t generation;
	char *name;
	size_t name_len;
	uint32_t *place; /* by slot: 1 + the value's; 0: none */
	uint32_t end;	 /* slots that place has */
	struct pfs_attr_value *values;
	uint64_t *primes; /* only while it is being read */
	size_t n, capacity, primes_capacity;
};

struct note { /* a node whose attributes have changed since */
	struct pfs_byprime by_prime;
	struct pfs_value *set;
};

struct name {
	char *bytes;
	size_t len;
	enum pfs_attr_type type;
};

struct pfs_attr_columns {
	struct pfs_tree *tree;
	/* protected by the content lock */
	struct name *names; /* the oldest first */
	uint32_t *sorted;   /* their numbers, in byte order */
	size_t names_capacity, sorted_capacity;
	struct base *bases;
	/* changed with tree->lock held for writing, too */
	_Atomic uint64_t n_names;
	_Atomic uint64_t generation; /* of the bases that hold; 0: nothing is noted */
	struct pfs_byprime_table notes;
};

struct pfs_attr_reader {
	struct pfs_tree *tree;
	struct base *base;
	const struct pfs_register *computed; /* of whose registers it is a computed column */
	struct base *ids; /* for the parent's */
	struct pfs_value **held; /* sets that values given out point into */
	size_t n_held, held_capacity;
};

/* ---- names ---- */

/* In the order of bytes. */
static size_t place_of(const struct pfs_attr_columns *columns, const char *name, size_t len,
		       bool *found)
{
	size_t low = 0, high = columns->n_names;

	*found = false;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct name *other = &columns->names[columns->sorted[middle]];
		int order = memcmp(other->bytes, name, PFS_MIN(other->len, len));

		order = order ? order : (other->len > len) - (other->len < len);
		if (!order)
			*found = true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add_name(struct pfs_attr_columns *columns, const char *bytes, size_t len,
		    enum pfs_attr_type type)
{
	bool found;
	size_t place = place_of(columns, bytes, len, &found), n = columns->n_names;
	char *copy;

	if (found) {
		if (type != PFS_ATTR_TEXT)
			columns->names[columns->sorted[place]].type = type;
		return 0;
	}
	PFS_TRY(pfs_grow(&columns->names, &columns->names_capacity, n + 1, sizeof(*columns->names)));
	PFS_TRY(pfs_grow(&columns->sorted, &columns->sorted_capacity, n + 1, sizeof(*columns->sorted)));
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, len);
	copy[len] = 0;
	memmove(&columns->sorted[place + 1], &columns->sorted[place], (n - place) * sizeof(*columns->sorted));
	columns->sorted[place] = (uint32_t)n;
	columns->names[n] = (struct name){.bytes = copy, .len = len, .type = type};
	columns->n_names = n + 1;
	return 0;
}

int pfs_attr_columns_name(struct pfs_attr_columns *columns, const char *name, size_t name_len)
{
	return add_name(columns, name, name_len, PFS_ATTR_TEXT);
}

int pfs_attr_names(struct pfs_tree *tree,
		   int (*fn)(void *arg, const char *name, size_t name_len, enum pfs_attr_type type),
		   void *arg)
{
	const struct pfs_attr_columns *columns = pfs_attrs_columns(tree);
	int error = 0;

	pfs_parts_lock(tree);
	for (size_t i = 0; i < columns->n_names && !error; i++)
		error = fn(arg, columns->names[i].bytes, columns->names[i].len,
			   columns->names[i].type);
	pfs_parts_unlock(tree);
	return error;
}

uint64_t pfs_attr_names_count(const struct pfs_tree *tree)
{
	return pfs_attrs_columns(tree)->n_names;
}

static int take_name(void *arg, const void *name, size_t name_len)
{
	return add_name(arg, name, name_len, PFS_ATTR_TEXT);
}

static int take_column(void *arg, const void *name, size_t name_len, enum pfs_attr_type type)
{
	return add_name(arg, name, name_len, type);
}

/* Columns that no node keeps have names, too. */
static int add_computed(struct pfs_attr_columns *columns, const struct pfs_register *of)
{
	for (size_t i = 0; of && i < of->n; i++) {
		size_t len = strlen(of->columns[i]), id;
		enum pfs_role role = pfs_register_role(of, of->columns[i], len);
		enum pfs_attr_type type = PFS_ATTR_TEXT;
		bool found;

		if (role == PFS_ROLE_NONE)
			continue;
		if (role == PFS_ROLE_PARENT) {
			const char *name = of->columns[of->is.id];

			id = place_of(columns, name, strlen(name), &found);
			type = found ? columns->names[columns->sorted[id]].type : PFS_ATTR_TEXT;
		}
		PFS_TRY(add_name(columns, of->columns[i], len, type));
	}
	return 0;
}

static int add_all_computed(struct pfs_attr_columns *columns)
{
	const struct pfs_register *of;

	for (size_t i = 0; (of = pfs_register_at(columns->tree, i)); i++)
		PFS_TRY(add_computed(columns, of));
	return 0;
}

int pfs_attr_columns_create(struct pfs_attr_columns **out, struct pfs_tree *tree)
{
	struct pfs_attr_columns *columns = calloc(1, sizeof(*columns));
	int error;

	*out = NULL;
	if (!columns)
		return -ENOMEM;
	columns->tree = tree;
	error = pfs_store_scan_names(tree->store, take_name, columns);
	if (!error)
		error = pfs_store_scan_columns(tree->store, take_column, columns);
	if (!error)
		error = add_all_computed(columns);
	if (error)
		pfs_attr_columns_destroy(columns);
	else
		*out = columns;
	return error;
}

/* ---- changes ---- */

static void free_note(void *arg PFS_UNUSED, struct pfs_byprime *entry)
{
	struct note *note = (struct note *)entry;

	pfs_value_unref(note->set);
	free(note);
}

static void free_base(struct base *base)
{
	for (size_t i = 0; i < base->n; i++) {
		if (base->values[i].type == PFS_ATTR_TEXT)
			free((char *)base->values[i].text);
	}
	free(base->name);
	free(base->place);
	free(base->values);
	free(base->primes);
	free(base);
}

static void unref_base(struct base *base)
{
	if (base && --base->references == 0)
		free_base(base);
}

/* The content lock is held, and tree->lock for writing, or the columns are nobody else's. */
static void forget(struct pfs_attr_columns *columns)
{
	pfs_byprime_drain(&columns->notes, free_note, NULL);
	columns->notes = (struct pfs_byprime_table){.count = 0};
	while (columns->bases) {
		struct base *base = columns->bases;

		columns->bases = base->next;
		unref_base(base);
	}
	columns->generation = 0;
}

void pfs_attr_columns_destroy(struct pfs_attr_columns *columns)
{
	if (!columns)
		return;
	forget(columns);
	for (size_t i = 0; i < columns->n_names; i++)
		free(columns->names[i].bytes);
	free(columns->names);
	free(columns->sorted);
	free(columns);
}

static int put_note(struct pfs_attr_columns *columns, uint64_t prime, struct pfs_value *set)
{
	struct note *note = (struct note *)pfs_byprime_find(&columns->notes, prime);

	if (!note) {
		note = columns->notes.count < NOTES_MAX ? calloc(1, sizeof(*note)) : NULL;
		if (!note)
			return -ENOMEM;
		note->by_prime.prime = prime;
		pfs_byprime_add(&columns->notes, &note->by_prime);
	}
	pfs_value_unref(note->set);
	note->set = pfs_value_ref(set);
	return 0;
}

void pfs_attr_columns_note(struct pfs_attr_columns *columns, uint64_t prime, struct pfs_value *set)
{
	if (columns->generation && put_note(columns, prime, set))
		forget(columns);
}

/* ---- reading a column ---- */

static int note_pending(void *arg, uint64_t prime, struct pfs_value *set)
{
	return put_note(arg, prime, set);
}

/* From now on changes are noted; what the store does not have yet is a change, too. */
static int begin_notes(struct pfs_attr_columns *columns, uint64_t *generation)
{
	static _Atomic uint64_t last;
	struct pfs_tree *tree = columns->tree;
	int error = 0;

	pfs_parts_lock(tree);
	if (!columns->generation) {
		pfs_hold_write(tree, __func__);
		error = pfs_attrs_pending(tree, note_pending, columns);
		if (error)
			forget(columns);
		else
			columns->generation = ++last;
		pfs_hold_end(tree);
	}
	*generation = columns->generation;
	pfs_parts_unlock(tree);
	return error;
}

static int take_value(void *arg, uint64_t prime, const struct pfs_attr_record *attr)
{
	struct base *base = arg;
	struct pfs_attr_value value = {.is_set = true, .type = attr->type};
	char *text;

	PFS_TRY(pfs_grow(&base->values, &base->capacity, base->n + 1, sizeof(value)));
	PFS_TRY(pfs_grow(&base->primes, &base->primes_capacity, base->n + 1, sizeof(uint64_t)));
	switch (attr->type) {
	case PFS_ATTR_INTEGER:
		value.integer = attr->integer;
		break;
	case PFS_ATTR_REAL:
		value.real = attr->real;
		break;
	case PFS_ATTR_TEXT:
		text = malloc(attr->text_len + 1);
		if (!text)
			return -ENOMEM;
		memcpy(text, attr->text, attr->text_len);
		value.text = text;
		value.text_len = attr->text_len;
		break;
	}
	base->primes[base->n] = prime;
	base->values[base->n++] = value;
	return 0;
}

/* Slots of the values' nodes.  A slot that another node takes later has none of them: that node's
 * attributes are all noted. */
static int place_values(const struct pfs_tree *tree, struct base *base)
{
	base->end = pfs_scan_end(tree);
	base->place = calloc(PFS_MAX(base->end, 1), sizeof(*base->place));
	if (!base->place || base->n >= UINT32_MAX)
		return -ENOMEM;
	for (size_t i = 0; i < base->n; i++) {
		uint32_t slot = pfs_image_slot(tree, base->primes[i]);

		if (slot != PFS_NO_SLOT)
			base->place[slot] = (uint32_t)i + 1;
	}
	free(base->primes);
	base->primes = NULL;
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
	error = base->name ? begin_notes(columns, &base->generation) : -ENOMEM;
	if (!error) {
		memcpy(base->name, name, name_len);
		base->name_len = name_len;
		error = pfs_store_scan_values(tree->store, name, name_len, take_value, base);
	}
	if (!error) {
		(void)pfs_scan_lock(tree, __func__);
		error = place_values(tree, base);
		pfs_scan_unlock(tree);
	}
	if (error)
		free_base(base);
	else
		*out = base;
	return error;
}

/* A reference to the column, if it is there.  The content lock is held. */
static struct base *find_base(struct pfs_attr_columns *columns, const char *name, size_t name_len)
{
	struct base *base = columns->bases;

	while (base && (base->name_len != name_len || memcmp(base->name, name, name_len) != 0))
		base = base->next;
	if (base)
		base->references++;
	return base;
}

/* Keeps the column for others, if it still holds and nobody else has read it meanwhile. */
static void keep_base(struct pfs_attr_columns *columns, struct base *base)
{
	struct base *other = find_base(columns, base->name, base->name_len);

	unref_base(other);
	if (other || base->generation != columns->generation)
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

int pfs_attr_reader_open(struct pfs_attr_reader **out, struct pfs_tree *tree, const char *name,
			 size_t name_len)
{
	struct pfs_attr_reader *reader = calloc(1, sizeof(*reader));
	int error;

	*out = NULL;
	if (!reader)
		return -ENOMEM;
	reader->tree = tree;
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

int pfs_attr_reader_copy(struct pfs_attr_reader **out, const struct pfs_attr_reader *reader)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->tree = reader->tree;
	(*out)->base = reader->base;
	(*out)->base->references++;
	(*out)->computed = reader->computed;
	(*out)->ids = reader->ids;
	if (reader->ids)
		(*out)->ids->references++;
	return 0;
}

/* ---- values ---- */

/* The value in a set of texts, as the store would type it. */
static void from_set(struct pfs_attr_value *out, const struct pfs_value *set,
		     const struct base *base)
{
	struct pfs_attr attr;

	if (!pfs_attrset_find(set, &attr, base->name, base->name_len))
		return;
	out->is_set = true;
	if (attr.type == PFS_ATTR_INTEGER &&
	    pfs_is_integer(&out->integer, attr.text, attr.text_len)) {
		out->type = PFS_ATTR_INTEGER;
	} else if (attr.type == PFS_ATTR_REAL &&
		   pfs_is_real(&out->real, attr.text, attr.text_len)) {
		out->type = PFS_ATTR_REAL;
	} else {
		out->type = PFS_ATTR_TEXT;
		out->text = attr.text;
		out->text_len = attr.text_len;
	}
}

static int read_noted(struct pfs_attr_reader *reader, struct pfs_attr_value *out,
		      const struct base *base, const struct note *note)
{
	if (!note->set)
		return 0;
	PFS_TRY(pfs_grow(&reader->held, &reader->held_capacity, reader->n_held + 1,
			 sizeof(struct pfs_value *)));
	reader->held[reader->n_held++] = pfs_value_ref(note->set);
	from_set(out, note->set, base);
	return 0;
}

static int read_kept(struct pfs_attr_reader *reader, struct pfs_attr_value *out,
		     const struct base *base, uint32_t slot)
{
	const struct pfs_attr_columns *columns = pfs_attrs_columns(reader->tree);
	const struct pfs_image *image = &reader->tree->image;
	uint32_t place = slot < base->end ? base->place[slot] : 0;
	const struct note *note = NULL;

	*out = (struct pfs_attr_value){.is_set = false};
	if (!(image->flags[slot] & PFS_NODE_ATTRS))
		return 0;
	if (columns->notes.count)
		note = (const struct note *)pfs_byprime_find(&columns->notes, image->prime[slot]);
	if (place && !note)
		*out = base->values[place - 1];
	return note ? read_noted(reader, out, base, note) : 0;
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

/* What follows from the node's place, if its register has the column so. */
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

int pfs_attr_read(struct pfs_attr_reader *reader, struct pfs_attr_value *out, const uint32_t *slots,
		  size_t n)
{
	const struct pfs_attr_columns *columns = pfs_attrs_columns(reader->tree);
	const struct base *base = reader->base, *ids = reader->ids;

	if (columns->generation != base->generation ||
	    (ids && columns->generation != ids->generation))
		return -EAGAIN;
	let_go(reader);
	for (size_t i = 0; i < n; i++)
		PFS_TRY(reader->computed ? read_computed(reader, &out[i], slots[i])
					 : read_kept(reader, &out[i], base, slots[i]));
	return 0;
}
