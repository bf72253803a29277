/* SPDX-License-Identifier: MIT */
/* What a set of changes tells: why it is not possible, and what the kernel is to forget. */
#include "fs/change/change_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/content/register.h"
#include "fs/content/row.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/listen.h"
#include "fs/tree/tree_impl.h"

/* ---- what is wrong ---- */

static void say(struct pfs_changing *changing, const char *path, size_t len, const char *why)
{
	int shown = (int)PFS_MIN(len, 200);

	if (changing->why_size)
		(void)snprintf(changing->why, changing->why_size, "%s%.*s: %s",
			       (size_t)shown < len ? "..." : "", shown, path + len - (size_t)shown,
			       why);
}

int pfs_change_fail_path(struct pfs_changing *changing, int code, const char *path, size_t len,
			 const char *why)
{
	say(changing, path, len, why);
	return code;
}

int pfs_change_fail(struct pfs_changing *changing, int code, uint32_t slot, const char *why)
{
	const struct pfs_image *image = &changing->tree->image;
	char path[1024];
	size_t at = sizeof(path);

	for (; slot != PFS_NO_SLOT && slot != image->root; slot = image->parent[slot]) {
		size_t len;
		const char *name = pfs_names_get(image->names, image->name[slot], &len);

		if (len + 1 > at)
			break;
		at -= len + 1;
		path[at] = '/';
		memcpy(path + at + 1, name, len);
	}
	if (at == sizeof(path))
		path[--at] = '/';
	say(changing, path + at, sizeof(path) - at, why);
	return code;
}

int pfs_change_fail_row(struct pfs_changing *changing, int code, size_t row, const char *why)
{
	const struct pfs_change *change = &changing->changes->list[row];
	const struct pfs_bytes *text = change->set & PFS_CHANGE_PATH ? &change->path
				       : change->set & PFS_CHANGE_NAME ? &change->name
								       : NULL;

	if (!text && changing->slots && changing->changes->kind != PFS_CHANGE_CREATE)
		return pfs_change_fail(changing, code, changing->slots[row], why);
	return pfs_change_fail_path(changing, code, text ? pfs_change_text(changing, text) : "",
				    text ? text->len : 0, why);
}

/* ---- notices ---- */

struct notice {
	uint64_t ino;
	size_t name; /* a place in the text; SIZE_MAX: the node itself */
};

struct pfs_notices {
	struct notice *list;
	size_t n, capacity;
	char *text;
	size_t text_len, text_capacity;
};

/* Returns true if the kernel may know the node: it has looked it up, or it is the root. */
static bool is_known(const struct pfs_tree *tree, uint32_t slot)
{
	return slot == tree->image.root || atomic_load(&tree->image.references[slot]);
}

static int notice(struct pfs_changing *changing, uint32_t slot, const char *name, size_t len)
{
	struct pfs_notices *notices = changing->notices;
	struct notice new = {.ino = changing->tree->image.prime[slot], .name = SIZE_MAX};

	if (!is_known(changing->tree, slot))
		return 0;
	if (name) {
		new.name = notices->text_len;
		PFS_TRY(pfs_grow(&notices->text, &notices->text_capacity,
				 notices->text_len + len + 1, 1));
		memcpy(notices->text + notices->text_len, name, len);
		notices->text_len += len;
		notices->text[notices->text_len++] = 0;
	} else if (notices->n && notices->list[notices->n - 1].ino == new.ino &&
		   notices->list[notices->n - 1].name == SIZE_MAX) {
		return 0;
	}
	PFS_TRY(pfs_grow(&notices->list, &notices->capacity, notices->n + 1, sizeof(new)));
	notices->list[notices->n++] = new;
	return 0;
}

/* Tells of the node's name and directory as they are now. */
static int notice_place(struct pfs_changing *changing, uint32_t slot)
{
	const struct pfs_image *image = &changing->tree->image;
	size_t len;
	const char *name = pfs_names_get(image->names, image->name[slot], &len);

	if (is_known(changing->tree, slot)) {
		PFS_TRY(notice(changing, image->parent[slot], name, len));
		PFS_TRY(notice(changing, slot, NULL, 0));
	}
	return notice(changing, image->parent[slot], NULL, 0);
}

int pfs_notice_moves(struct pfs_changing *changing)
{
	for (size_t i = 0; i < changing->n_moves; i++) {
		const struct pfs_move *move = &changing->moves[i];

		if (changing->changes->kind != PFS_CHANGE_CREATE)
			PFS_TRY(notice_place(changing, move->slot));
		if (move->parent == PFS_NO_SLOT || changing->changes->kind == PFS_CHANGE_REMOVE)
			continue;
		PFS_TRY(notice(changing, move->parent, move->name, move->len));
		PFS_TRY(notice(changing, move->parent, NULL, 0));
	}
	return 0;
}

int pfs_notice_node(struct pfs_changing *changing, uint32_t slot)
{
	return notice(changing, slot, NULL, 0);
}

void pfs_notices_clear(struct pfs_changing *changing)
{
	changing->notices->n = changing->notices->text_len = 0;
}

int pfs_notices_create(struct pfs_changing *changing)
{
	changing->notices = calloc(1, sizeof(*changing->notices));
	return changing->notices ? 0 : -ENOMEM;
}

void pfs_notices_finish(struct pfs_changing *changing)
{
	if (!changing->notices)
		return;
	free(changing->notices->list);
	free(changing->notices->text);
	free(changing->notices);
}

void pfs_notices_tell(const struct pfs_changing *changing)
{
	const struct pfs_notices *notices = changing->notices;
	const struct pfs_tree_listener *listener;

	if (!notices->n && !pfs_registers_any(changing->tree))
		return;
	listener = pfs_listener_get(changing->tree);
	if (listener->begin)
		listener->begin(listener->arg);
	for (size_t i = 0; i < notices->n && listener->changed; i++)
		listener->changed(listener->arg, notices->list[i].ino,
				  notices->list[i].name == SIZE_MAX
					  ? NULL
					  : notices->text + notices->list[i].name);
	if (listener->end)
		listener->end(listener->arg);
	pfs_listener_put(changing->tree);
}

/* ---- rows ---- */

void pfs_change_rows(struct pfs_changing *changing)
{
	const unsigned places = PFS_CHANGE_PARENT | PFS_CHANGE_NAME | PFS_CHANGE_PATH;
	const struct pfs_change_set *changes = changing->changes;
	struct pfs_tree *tree = changing->tree;

	if (changes->kind != PFS_CHANGE_UPDATE || !pfs_registers_any(tree))
		return;
	for (size_t row = 0; row < changes->n; row++) {
		const struct pfs_change *change = &changes->list[row];
		bool shows = change->set & places, below = false;

		for (size_t i = 0; i < change->n_attrs; i++) {
			const struct pfs_bytes *name =
				&changes->attrs[change->first_attr + i].name;
			const char *text = pfs_change_text(changing, name);

			shows = shows || pfs_row_shows(tree, change->ino, text, name->len);
			below = below || pfs_row_is_id(tree, change->ino, text, name->len);
		}
		if (shows)
			pfs_row_changed(tree, change->ino, below);
	}
}
