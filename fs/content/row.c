/* SPDX-License-Identifier: MIT */
#include "fs/content/row.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/attr/attrset.h"
#include "fs/attr/xattr.h"
#include "fs/content/content.h"
#include "fs/content/register.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/journal/journal.h"
#include "fs/tree/listen.h"
#include "fs/tree/tree_impl.h"

#define TRIES 4 /* how often the size of a row that changes is asked for */

/* The text of a row whose node has no place in the tree any more. */
struct kept {
	struct pfs_byprime by_prime;
	size_t len;
	char text[];
};

struct pfs_kept_rows {
	struct pfs_byprime_table kept; /* protected by the content lock */
};

static void free_kept(void *arg PFS_UNUSED, struct pfs_byprime *entry)
{
	free(entry);
}

void pfs_rows_destroy(struct pfs_tree *tree)
{
	if (!tree->rows)
		return;
	pfs_byprime_drain(&tree->rows->kept, free_kept, NULL);
	free(tree->rows);
	tree->rows = NULL;
}

/* ---- the place ---- */

struct place {
	const struct pfs_register *of;
	uint64_t parent; /* 0: none that has an id */
	bool top;	 /* the node is right below the register's root */
	bool unlinked;
	uint8_t flags;
	mode_t mode;
	size_t name_len;
	char name[PFS_NAME_MAX];
};

static int find_place(struct pfs_tree *tree, struct place *out, uint64_t ino)
{
	const struct pfs_image *image = &tree->image;
	uint32_t slot;
	int error = 0;

	*out = (struct place){.of = NULL};
	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot == PFS_NO_SLOT || image->state[slot] & PFS_SLOT_DROPPED) {
		error = -ESTALE;
	} else {
		uint32_t up = image->parent[slot];

		out->unlinked = image->state[slot] & PFS_SLOT_UNLINKED;
		out->flags = image->flags[slot];
		out->mode = image->mode[slot];
		if (!out->unlinked) {
			size_t len;
			const char *name = pfs_names_get(image->names, image->name[slot], &len);

			out->of = pfs_register_of(tree, slot);
			out->parent = up == PFS_NO_SLOT ? 0 : image->prime[up];
			out->top = out->of && out->parent == out->of->is.root;
			if (out->of)
				out->name_len = pfs_register_name(out->of, out->name, name, len);
		}
	}
	pfs_hold_end(tree);
	return error;
}

/* ---- the text ---- */

struct text {
	char *bytes;
	size_t len, capacity;
};

static int add(struct text *text, const char *bytes, size_t len)
{
	PFS_TRY(pfs_grow(&text->bytes, &text->capacity, text->len + len + 1, 1));
	if (len && text->bytes)
		memcpy(text->bytes + text->len, bytes, len);
	text->len += len;
	return 0;
}

/* Adds a line. Further lines of the value begin with a blank. */
static int add_line(struct text *text, const char *column, const char *value, size_t len)
{
	const char *end = value + len;

	PFS_TRY(add(text, column, strlen(column)));
	PFS_TRY(add(text, ": ", 2));
	while (value < end) {
		const char *line = memchr(value, '\n', (size_t)(end - value));

		len = (size_t)((line ? line + 1 : end) - value);
		PFS_TRY(add(text, value, len));
		if (line)
			PFS_TRY(add(text, " ", 1));
		value += len;
	}
	return add(text, "\n", 1);
}

static void id_in(const struct pfs_register *of, const struct pfs_value *set, struct pfs_attr *id)
{
	const char *name = of->columns[of->is.id];

	if (!pfs_attrset_find(set, id, name, strlen(name)))
		*id = (struct pfs_attr){.text = ""};
}

/* Gets the id of the parent, or what rows at the top have instead. */
static int parent_id(struct pfs_tree *tree, const struct place *place, const struct pfs_value *own,
		     struct pfs_value **set, struct pfs_attr *id)
{
	*id = (struct pfs_attr){.text = ""};
	if (place->parent)
		PFS_TRY(pfs_attr_set_of(tree, set, place->parent));
	id_in(place->of, *set, id);
	if (!id->text_len && place->top && place->of->is.style & PFS_REGISTER_OWN_PARENT)
		id_in(place->of, own, id);
	return 0;
}

static int make_text(struct pfs_tree *tree, struct text *text, const struct place *place,
		     uint64_t ino)
{
	struct pfs_value *set PFS_UNREF = NULL, *parents PFS_UNREF = NULL;
	const struct pfs_register *of = place->of;

	PFS_TRY(pfs_attr_set_of(tree, &set, ino));
	PFS_TRY(add(text, "", 0));
	for (size_t i = 0; i < of->n; i++) {
		const char *column = of->columns[i];
		struct pfs_attr attr = {.text = ""};

		switch (pfs_register_role(of, column, strlen(column))) {
		case PFS_ROLE_PATH: /* the place of the file says it */
			continue;
		case PFS_ROLE_PARENT:
			PFS_TRY(parent_id(tree, place, set, &parents, &attr));
			break;
		case PFS_ROLE_NAME:
			attr.text = place->name;
			attr.text_len = (uint32_t)place->name_len;
			break;
		case PFS_ROLE_NONE:
			if (!pfs_attrset_find(set, &attr, column, strlen(column)))
				attr = (struct pfs_attr){.text = ""};
			break;
		}
		PFS_TRY(add_line(text, column, attr.text, attr.text_len));
	}
	return 0;
}

static int get_kept(struct pfs_tree *tree, struct text *text, uint64_t ino)
{
	const struct kept *kept;
	int error = -ENODATA;

	pfs_parts_lock(tree);
	kept = (const struct kept *)pfs_byprime_find(&tree->rows->kept, ino);
	if (kept)
		error = add(text, kept->text, kept->len);
	pfs_parts_unlock(tree);
	return error;
}

int pfs_row_text(struct pfs_tree *tree, char **out, size_t *len, uint64_t ino)
{
	struct text text = {.bytes = NULL};
	struct place place;
	int error;

	*out = NULL;
	PFS_TRY(find_place(tree, &place, ino));
	if (place.unlinked)
		error = get_kept(tree, &text, ino);
	else
		error = place.of ? make_text(tree, &text, &place, ino) : -ENODATA;
	if (error) {
		free(text.bytes);
		return error;
	}
	*out = text.bytes;
	*len = text.len;
	return 0;
}

/* ---- one column ---- */

static int computed_path(struct pfs_tree *tree, char **text, size_t *len,
			 const struct pfs_register *of, uint64_t ino)
{
	uint32_t slot;
	int error = -ESTALE;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT && !(tree->image.state[slot] & PFS_SLOT_UNLINKED))
		error = pfs_register_path(tree, of, text, len, slot);
	pfs_hold_end(tree);
	return error;
}

int pfs_row_computed(struct pfs_tree *tree, char **out, size_t *len, uint64_t ino, const char *name,
		     size_t name_len)
{
	struct pfs_value *set PFS_UNREF = NULL, *own PFS_UNREF = NULL;
	struct text text = {.bytes = NULL};
	struct pfs_attr id = {.text = ""};
	struct place place;
	enum pfs_role role;

	*out = NULL;
	PFS_TRY(find_place(tree, &place, ino));
	role = pfs_register_role(place.of, name, name_len);
	if (role == PFS_ROLE_NONE)
		return -ENODATA;
	if (role == PFS_ROLE_PATH)
		return computed_path(tree, out, len, place.of, ino);
	if (role == PFS_ROLE_NAME) {
		id.text = place.name;
		id.text_len = (uint32_t)place.name_len;
	} else {
		PFS_TRY(pfs_attr_set_of(tree, &own, ino));
		PFS_TRY(parent_id(tree, &place, own, &set, &id));
	}
	PFS_TRY(add(&text, id.text, id.text_len));
	*out = text.bytes;
	*len = text.len;
	return 0;
}

static const struct pfs_register *register_of(struct pfs_tree *tree, uint64_t ino)
{
	const struct pfs_register *of = NULL;
	uint32_t slot;

	if (!pfs_registers_any(tree))
		return NULL;
	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT && !(tree->image.state[slot] & PFS_SLOT_UNLINKED))
		of = pfs_register_of(tree, slot);
	pfs_hold_end(tree);
	return of;
}

static bool is_column(const struct pfs_register *of, size_t i, const char *name, size_t len)
{
	return strlen(of->columns[i]) == len && memcmp(of->columns[i], name, len) == 0;
}

bool pfs_row_is_computed(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len)
{
	return pfs_register_role(register_of(tree, ino), name, name_len) != PFS_ROLE_NONE;
}

bool pfs_row_is_id(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len)
{
	const struct pfs_register *of = register_of(tree, ino);

	return of && of->is.id != PFS_NO_COLUMN && is_column(of, of->is.id, name, name_len);
}

bool pfs_row_shows(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len)
{
	const struct pfs_register *of = register_of(tree, ino);

	for (size_t i = 0; of && i < of->n; i++)
		if (is_column(of, i, name, name_len))
			return true;
	return false;
}

/* ---- sizes ---- */

static bool is_made(const struct pfs_tree *tree, uint32_t slot)
{
	return slot != PFS_NO_SLOT && tree->image.flags[slot] & PFS_NODE_ROW &&
	       S_ISREG(tree->image.mode[slot]) &&
	       !(tree->image.state[slot] & PFS_SLOT_UNLINKED);
}

/* Returns true if the node's file shows its row. *dirty: a change has already reserved room for the
 * node's record. */
static bool ask(struct pfs_tree *tree, uint64_t ino, uint64_t *epoch, bool *dirty)
{
	uint32_t slot;
	bool made;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	made = is_made(tree, slot);
	*dirty = made && pfs_journal_is_touched(tree, slot);
	*epoch = tree->image.epoch;
	pfs_hold_end(tree);
	return made;
}

static void set_size(struct pfs_tree *tree, uint32_t slot, size_t len, bool stamp)
{
	bool same = tree->image.size[slot] == (int64_t)len;

	if (!same)
		pfs_image_set_size(tree, slot, (int64_t)len,
				   (int64_t)pfs_div_round_up(len, 4096) * 8);
	if (tree->read_only) /* nobody commits this image */
		return;
	if (stamp)
		pfs_stamp(tree, slot, PFS_COLUMN_MTIME | PFS_COLUMN_CTIME, pfs_now());
	else if (!same)
		pfs_journal_touch(tree, slot);
}

static void refresh(struct pfs_tree *tree, uint64_t ino, bool stamp)
{
	uint64_t epoch;
	bool done = false, dirty;

	if (!pfs_registers_any(tree))
		return;
	for (int i = 0; i < TRIES && !done && ask(tree, ino, &epoch, &dirty); i++) {
		char *text PFS_FREE = NULL;
		uint32_t slot;
		size_t len;

		if (pfs_row_text(tree, &text, &len, ino) ||
		    (!tree->read_only && !dirty && pfs_journal_reserve(tree, 1, 0, false)))
			return;
		pfs_hold_write(tree, __func__);
		slot = pfs_image_slot(tree, ino);
		done = tree->image.epoch == epoch || i == TRIES - 1;
		if (done && is_made(tree, slot))
			set_size(tree, slot, len, stamp);
		pfs_hold_end(tree);
	}
}

void pfs_row_refresh(struct pfs_tree *tree, uint64_t ino)
{
	refresh(tree, ino, false);
}

/* ---- changes ---- */

void pfs_rows_hold(struct pfs_tree *tree)
{
	if (pfs_registers_any(tree))
		pfs_journal_hold(tree);
}

void pfs_rows_let_go(struct pfs_tree *tree)
{
	if (pfs_registers_any(tree))
		pfs_journal_let_go(tree);
}

struct children {
	uint64_t *list;
	size_t n, capacity;
};

static int list_children(struct pfs_tree *tree, struct children *out, uint64_t ino)
{
	const struct pfs_image *image = &tree->image;
	struct pfs_children found;
	struct pfs_btree_entry entry;
	uint32_t slot;
	int error = 0;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT && S_ISDIR(image->mode[slot])) {
		pfs_children_begin(&found, tree, slot, 0, 0);
		while (!error && pfs_children_next(&found, &entry)) {
			if (!is_made(tree, entry.slot))
				continue;
			error = pfs_grow(&out->list, &out->capacity, out->n + 1,
					 sizeof(*out->list));
			if (!error)
				out->list[out->n++] = image->prime[entry.slot];
		}
	}
	pfs_hold_end(tree);
	return error;
}

static void change_one(struct pfs_tree *tree, uint64_t ino)
{
	uint64_t epoch;
	bool dirty;

	if (!ask(tree, ino, &epoch, &dirty))
		return;
	refresh(tree, ino, true);
	pfs_tell_stale(tree, ino);
}

void pfs_row_changed(struct pfs_tree *tree, uint64_t ino, bool below)
{
	struct children children = {.list = NULL};

	if (!pfs_registers_any(tree))
		return;
	change_one(tree, ino);
	if (below && list_children(tree, &children, ino) == 0)
		for (size_t i = 0; i < children.n; i++)
			change_one(tree, children.list[i]);
	free(children.list);
}

/* ---- without a place ---- */

static void drop(struct pfs_tree *tree, uint64_t ino)
{
	struct pfs_byprime *kept = pfs_byprime_find(&tree->rows->kept, ino);

	if (!kept)
		return;
	pfs_byprime_remove(&tree->rows->kept, kept);
	free(kept);
}

static int keep(struct pfs_tree *tree, uint64_t ino, uint64_t *former PFS_UNUSED)
{
	char *text PFS_FREE = NULL;
	struct kept *kept;
	size_t len;
	int error = pfs_row_text(tree, &text, &len, ino);

	if (error)
		return error == -ENODATA || error == -ESTALE ? 0 : error;
	kept = malloc(sizeof(*kept) + len);
	if (!kept)
		return -ENOMEM;
	kept->by_prime.prime = ino;
	kept->len = len;
	if (text)
		memcpy(kept->text, text, len);
	pfs_parts_lock(tree);
	drop(tree, ino); /* left by an earlier attempt */
	pfs_byprime_add(&tree->rows->kept, &kept->by_prime);
	pfs_parts_unlock(tree);
	return 0;
}

static const struct pfs_part part = {
	.name = "rows", .keep = keep, .flags = PFS_NODE_ROW, .drop = drop};

int pfs_rows_create(struct pfs_tree *tree)
{
	tree->rows = calloc(1, sizeof(*tree->rows));
	if (!tree->rows)
		return -ENOMEM;
	pfs_take_part(tree, &part);
	return 0;
}

/* ---- written to ---- */

/* The content lock is held. */
static int add_chunks(struct pfs_edit *edit, const char *text, size_t size)
{
	struct pfs_content *content = edit->tree->content;

	for (size_t at = 0; at < size; at += PFS_CHUNK_SIZE) {
		uint32_t len = (uint32_t)PFS_MIN(size - at, PFS_CHUNK_SIZE);
		struct pfs_chunk *chunk = pfs_chunk_create(content, at / PFS_CHUNK_SIZE, len);

		if (!chunk)
			return -ENOMEM;
		chunk->kind = PFS_CHUNK_DATA;
		chunk->len = len;
		memcpy(chunk->data, text + at, len);
		edit->copied_blocks += pfs_chunk_blocks(len);
		pfs_file_add(content, edit->file, chunk);
	}
	return 0;
}

int pfs_row_copyup(struct pfs_edit *edit, int64_t upto)
{
	char *text PFS_FREE = NULL;
	size_t len = 0;
	int error = 0, ended;

	edit->copied_blocks = 0;
	edit->copied_size = 0;
	pfs_file_cut(edit->tree->content, edit->file, 0);
	if (!upto)
		return 0;
	pfs_edit_busy(edit);
	error = pfs_row_text(edit->tree, &text, &len, edit->ino);
	if (!error)
		error = pfs_journal_reserve(edit->tree, 0, len, false);
	ended = pfs_edit_busy_end(edit);
	if (error || ended)
		return ended ? ended : error;
	edit->copied_size = (int64_t)PFS_MIN(len, (uint64_t)upto);
	error = add_chunks(edit, text, (size_t)edit->copied_size);
	if (error)
		pfs_file_cut(edit->tree->content, edit->file, 0);
	return error;
}

void pfs_row_commit(struct pfs_edit *edit, uint32_t slot, int64_t size)
{
	pfs_image_set_flags(edit->tree, slot, PFS_NODE_ROW, PFS_NODE_WRITTEN);
	pfs_image_set_size(edit->tree, slot, size >= 0 ? size : edit->copied_size,
			   edit->copied_blocks);
	drop(edit->tree, edit->ino);
	pfs_journal_touch(edit->tree, slot);
}
