/* SPDX-License-Identifier: MIT */
/* One change of content: finds out what there is, gets everything ready, then changes it. */
#include "fs/content/content_impl.h"

#include <string.h>

#include "base/checked.h"
#include "fs/content/hardlink.h"
#include "fs/image/image.h"
#include "fs/journal/journal.h"
#include "fs/tree/tree_impl.h"

/* ---- beginning and ending ---- */

static void take_lock(struct pfs_edit *edit)
{
	pfs_parts_lock(edit->tree);
	edit->locked = true;
}

static void give_lock(struct pfs_edit *edit)
{
	edit->locked = false;
	pfs_parts_unlock(edit->tree);
}

void pfs_edit_busy(struct pfs_edit *edit)
{
	edit->file->busy = true;
	give_lock(edit);
}

int pfs_edit_busy_end(struct pfs_edit *edit)
{
	take_lock(edit);
	edit->file->busy = false;
	(void)pthread_cond_broadcast(&edit->tree->content->idle);
	return edit->file->dropped ? -ESTALE : 0;
}

/* Does one step towards an open edit. Returns 0, an error, or 1: look again. */
static int open_step(struct pfs_edit *edit, bool keep_linked)
{
	struct pfs_content *content = edit->tree->content;
	struct pfs_tree *tree = edit->tree;
	uint32_t slot;
	int error;

	error = pfs_file_node(tree, &edit->node, edit->ino);
	if (error)
		return error;
	if (edit->node.flags & PFS_NODE_NODATA && !keep_linked)
		return -ENODATA;
	if (!edit->file) {
		edit->file = pfs_file_pin(content, edit->ino);
		if (!edit->file)
			return -ENOMEM;
	}
	if (!edit->node.stored && !edit->node.unlinked)
		edit->file->store_end = 0; /* the store does not have the node yet */
	if (edit->file->busy) {
		if (edit->nowait)
			return -EAGAIN;
		pfs_parts_wait(tree, &content->idle);
		return 1;
	}
	if (!(edit->node.flags & PFS_NODE_ELSEWHERE) || keep_linked)
		return 0;
	if (edit->nowait)
		return -EAGAIN;
	error = pfs_copyup(edit, INT64_MAX);
	if (error)
		return error;
	pfs_hold_write(tree, __func__);
	slot = pfs_image_slot(tree, edit->ino);
	pfs_copyup_commit(edit, slot, -1);
	pfs_hold_end(tree);
	return 1;
}

int pfs_edit_open(struct pfs_edit *edit, struct pfs_tree *tree, uint64_t ino, bool nowait,
		  bool keep_linked)
{
	int error;

	edit->tree = tree;
	edit->ino = ino;
	edit->nowait = nowait;
	take_lock(edit);
	do
		error = open_step(edit, keep_linked);
	while (error > 0);
	return error;
}

void pfs_edit_close(struct pfs_edit *edit)
{
	struct pfs_content *content = edit->tree->content;
	unsigned i;

	if (edit->file) {
		if (!edit->locked)
			take_lock(edit);
		pfs_file_unpin(content, edit->file);
		edit->file = NULL;
	}
	if (edit->locked)
		give_lock(edit);
	for (i = 0; i < edit->count; i++) {
		pfs_buffer_put(content, edit->stored[i].data);
		pfs_chunk_free(content, edit->ready[i]);
		if (edit->fresh[i])
			pfs_chunk_free(content, edit->target[i]);
	}
	edit->count = 0;
}

void pfs_edit_span(struct pfs_edit *edit, enum pfs_edit_kind kind, const void *data, int64_t offset,
		   size_t length)
{
	edit->kind = kind;
	edit->data = data;
	edit->offset = offset;
	edit->length = length;
	edit->first = (uint64_t)offset / PFS_CHUNK_SIZE;
	edit->count =
		(unsigned)(((uint64_t)offset + length - 1) / PFS_CHUNK_SIZE - edit->first + 1);
}

/* Gets the part [*low, *high) of chunk i that changes. */
static void bounds(const struct pfs_edit *edit, unsigned i, uint32_t *low, uint32_t *high)
{
	int64_t base = (int64_t)(edit->first + i) * PFS_CHUNK_SIZE;

	*low = (uint32_t)PFS_MAX(edit->offset - base, 0);
	*high = (uint32_t)PFS_MIN(edit->offset + (int64_t)edit->length - base, PFS_CHUNK_SIZE);
}

int pfs_edit_fill(struct pfs_edit *edit)
{
	struct pfs_content *content = edit->tree->content;
	uint32_t low, high;
	unsigned i;

	for (i = 0; i < edit->count; i++) {
		bounds(edit, i, &low, &high);
		if (low || high < PFS_CHUNK_SIZE)
			continue;
		edit->ready[i] = pfs_chunk_create(content, edit->first + i, PFS_CHUNK_SIZE);
		if (!edit->ready[i])
			return -ENOMEM;
		edit->ready[i]->kind = PFS_CHUNK_DATA;
		edit->ready[i]->len = PFS_CHUNK_SIZE;
		memcpy(edit->ready[i]->data,
		       edit->data + (edit->first + i) * PFS_CHUNK_SIZE - (uint64_t)edit->offset,
		       PFS_CHUNK_SIZE);
	}
	return 0;
}

/* ---- what is there, and what will be ---- */

/* A chunk as it is now. */
struct now {
	bool known, present, in_store;
	uint32_t len;		 /* 0: allocated */
	const uint8_t *data;	 /* NULL if only the store has the bytes */
	struct pfs_chunk *dirty; /* the dirty layer's chunk of that number, also a dead one */
};

static void look(const struct pfs_edit *edit, unsigned i, struct now *now)
{
	uint64_t n = edit->first + i;
	const struct pfs_stored *stored = &edit->stored[i];
	struct pfs_chunk *chunk;

	*now = (struct now){.known = true,
			    .dirty = pfs_chunk_at(edit->file->layer[PFS_DIRTY].chunks, n)};
	switch (pfs_file_look(edit->file, &chunk, n)) {
	case PFS_PLACE_HOLE:
		break;
	case PFS_PLACE_MEMORY:
		now->present = true;
		now->len = chunk->kind == PFS_CHUNK_DATA ? chunk->len : 0;
		now->data = chunk->data;
		break;
	case PFS_PLACE_STORE:
		now->known = stored->known;
		now->in_store = true;
		now->present = stored->present;
		now->len = stored->len;
		now->data = stored->loaded ? stored->data : NULL;
		break;
	}
}

struct outcome {
	bool same;
	enum pfs_chunk_kind kind;
	uint32_t len;
	bool needs_old; /* some of the bytes that were there stay */
};

static struct outcome written(const struct pfs_edit *edit, unsigned i, const struct now *now,
			      uint32_t low, uint32_t high)
{
	struct outcome out = {.kind = PFS_CHUNK_DATA, .len = PFS_MAX(now->len, high)};
	int64_t rest = edit->end_size - (int64_t)(edit->first + i) * PFS_CHUNK_SIZE;

	/* Allocated space stays allocated: it becomes zeros, up to the end of the file. */
	if (now->present && !now->len && rest > out.len)
		out.len = (uint32_t)PFS_MIN(rest, PFS_CHUNK_SIZE);
	out.needs_old = now->len && (low || high < now->len);
	return out;
}

static struct outcome punched(const struct now *now, uint32_t low, uint32_t high)
{
	bool whole = !low && (high == PFS_CHUNK_SIZE || (now->len && high >= now->len));

	if (whole && now->present)
		return (struct outcome){.kind = PFS_CHUNK_GONE};
	if (!now->present || low >= now->len)
		return (struct outcome){.same = true};
	return (struct outcome){.kind = PFS_CHUNK_DATA,
				.len = high >= now->len ? low : now->len,
				.needs_old = true};
}

static struct outcome outcome_of(const struct pfs_edit *edit, unsigned i, const struct now *now)
{
	struct outcome extended = {.kind = PFS_CHUNK_DATA, .needs_old = true};
	uint32_t low, high;

	bounds(edit, i, &low, &high);
	extended.len = PFS_MAX(now->len, high);
	switch (edit->kind) {
	case PFS_EDIT_WRITE:
		return written(edit, i, now, low, high);
	case PFS_EDIT_PUNCH:
		return punched(now, low, high);
	case PFS_EDIT_ZERO:
		if (now->len && (low || high < PFS_CHUNK_SIZE))
			return extended;
		return (struct outcome){.kind = PFS_CHUNK_ALLOCATED,
					.same = now->present && !now->len};
	case PFS_EDIT_ALLOCATE:
	default:
		extended.same = now->present && (!now->len || now->len >= high);
		if (!now->present)
			return (struct outcome){.kind = PFS_CHUNK_ALLOCATED};
		return extended;
	}
}

/* ---- making ready ---- */

/* Asks the store about chunk i, without the lock. Sets *end if it shows that the store has no chunk
 * from there on. */
static int fetch(struct pfs_edit *edit, unsigned i, uint64_t *end)
{
	struct pfs_stored *stored = &edit->stored[i];
	uint64_t n = edit->first + i, found;
	bool beyond = (int64_t)n * PFS_CHUNK_SIZE >= edit->node.size;
	struct pfs_store *store = edit->tree->store;
	size_t len;
	int error;

	if (!stored->known) {
		/* Behind the end of the file there is usually no chunk at all, so this asks for all
		 * of them at once. */
		error = pfs_store_next_chunk(store, &found, &len, edit->ino, n,
					     beyond ? PFS_CHUNKS_MAX : n + 1);
		if (error && error != -ENOENT)
			return error;
		if (error && beyond)
			*end = n;
		stored->known = true;
		stored->present = !error && found == n;
		stored->len = stored->present ? (uint32_t)len : 0;
		return 0;
	}
	if (!stored->data)
		stored->data = pfs_buffer_get(edit->tree->content);
	if (!stored->data)
		return -ENOMEM;
	error = pfs_store_get_chunk(store, stored->data, &len, edit->ino, n);
	if (error)
		/* it was there, and only this edit may change it */
		return error == -ENOENT ? -EUCLEAN : error;
	stored->loaded = true;
	return 0;
}

/* Returns true if the store must be asked about chunk i before it can be changed. */
static bool is_missing(const struct pfs_edit *edit, unsigned i)
{
	struct now now;

	if (edit->ready[i] && edit->stored[i].known)
		return false;
	look(edit, i, &now);
	if (!now.known)
		return true;
	return now.in_store && now.len && !now.data && outcome_of(edit, i, &now).needs_old &&
	       !outcome_of(edit, i, &now).same;
}

static int fetch_missing(struct pfs_edit *edit, const bool *missing)
{
	uint64_t end = PFS_NO_CHUNK;
	uint32_t groups = edit->file->groups;
	unsigned i;
	int error = 0, ended;

	pfs_edit_busy(edit);
	for (i = 0; i < edit->count && !error; i++)
		if (missing[i] && edit->first + i < end)
			error = fetch(edit, i, &end);
	ended = pfs_edit_busy_end(edit);
	if (ended)
		return ended;
	/* That is true unless a group has brought more chunks since the store was asked. */
	if (edit->file->groups == groups)
		edit->file->store_end = PFS_MIN(edit->file->store_end, end);
	return error;
}

static int load(struct pfs_edit *edit)
{
	bool missing[PFS_EDIT_CHUNKS], any;
	unsigned i;
	int error;

	for (;;) {
		any = false;
		for (i = 0; i < edit->count; i++) {
			missing[i] = is_missing(edit, i);
			any |= missing[i];
		}
		if (!any)
			return 0;
		if (edit->nowait)
			return -EAGAIN;
		error = fetch_missing(edit, missing);
		if (error)
			return error;
	}
}

/* Makes a chunk of the edit's own, with those old bytes that stay. */
static int make_fresh(struct pfs_edit *edit, unsigned i, const struct now *now,
		      const struct outcome *outcome)
{
	struct pfs_chunk *chunk;

	if (edit->ready[i]) {
		edit->target[i] = edit->ready[i];
		edit->ready[i] = NULL;
		edit->fresh[i] = true;
		return 0;
	}
	chunk = pfs_chunk_create(edit->tree->content, edit->first + i,
				 outcome->kind == PFS_CHUNK_DATA ? outcome->len : 0);
	if (!chunk)
		return -ENOMEM;
	if (outcome->needs_old && now->data) {
		chunk->len = PFS_MIN(now->len, outcome->len);
		memcpy(chunk->data, now->data, chunk->len);
	}
	edit->target[i] = chunk;
	edit->fresh[i] = true;
	return 0;
}

static int make_target(struct pfs_edit *edit, unsigned i)
{
	struct now now;
	struct outcome outcome;
	uint32_t before;
	int error = 0;

	look(edit, i, &now);
	outcome = outcome_of(edit, i, &now);
	if (outcome.same)
		return 0;
	if (!now.dirty || edit->ready[i])
		return make_fresh(edit, i, &now, &outcome);
	edit->target[i] = now.dirty;
	if (outcome.kind == PFS_CHUNK_DATA) {
		before = now.dirty->capacity;
		error = pfs_chunk_grow(edit->tree->content, now.dirty, outcome.len);
		*edit->tree->content->unreported += now.dirty->capacity - before;
	}
	return error;
}

int pfs_edit_prepare(struct pfs_edit *edit)
{
	unsigned i;
	int error;

	edit->end_size = edit->node.size;
	if (edit->kind == PFS_EDIT_WRITE)
		edit->end_size = PFS_MAX(edit->end_size, edit->offset + (int64_t)edit->length);
	error = load(edit);
	for (i = 0; i < edit->count && !error; i++)
		error = make_target(edit, i);
	return error;
}

/* ---- changing ---- */

/* Makes the chunk's bytes: the old ones, zeros where there were none, and the change. */
static void change_bytes(const struct pfs_edit *edit, unsigned i, struct pfs_chunk *chunk,
			 uint32_t len)
{
	uint32_t low, high, old = chunk->len;
	bool write = edit->kind == PFS_EDIT_WRITE;

	bounds(edit, i, &low, &high);
	high = PFS_MIN(high, len);
	if (write) { /* what a write covers needs no zeros */
		if (old < low)
			memset(chunk->data + old, 0, low - old);
		old = PFS_MAX(old, high);
	}
	if (old < len)
		memset(chunk->data + old, 0, len - old);
	if (write)
		memcpy(chunk->data + low,
		       edit->data + (int64_t)(edit->first + i) * PFS_CHUNK_SIZE + low -
			       edit->offset,
		       high - low);
	else if (edit->kind != PFS_EDIT_ALLOCATE && low < high)
		memset(chunk->data + low, 0, high - low);
	chunk->len = len;
}

static void apply_one(struct pfs_edit *edit, unsigned i)
{
	struct pfs_content *content = edit->tree->content;
	struct pfs_chunk *chunk = edit->target[i], *below;
	bool whole = edit->fresh[i] && chunk->kind == PFS_CHUNK_DATA; /* it was filled already */
	struct outcome outcome;
	struct now now;

	look(edit, i, &now);
	outcome = outcome_of(edit, i, &now);
	edit->blocks -= now.present ? pfs_chunk_blocks(now.len) : 0;
	edit->blocks += outcome.kind == PFS_CHUNK_GONE ? 0 : pfs_chunk_blocks(outcome.len);
	if (!whole && outcome.kind == PFS_CHUNK_DATA)
		change_bytes(edit, i, chunk, outcome.len);
	if (outcome.kind != PFS_CHUNK_DATA) {
		*content->unreported -= edit->fresh[i] ? 0 : chunk->capacity;
		pfs_chunk_empty(content, chunk);
	}
	chunk->kind = outcome.kind;
	chunk->len = outcome.len;
	if (edit->fresh[i]) {
		if (now.dirty)
			pfs_file_remove(content, edit->file, now.dirty);
		edit->fresh[i] = false;
		pfs_file_add(content, edit->file, chunk);
	}
	/* A hole needs no mark if nothing is below it. */
	if (chunk->kind == PFS_CHUNK_GONE &&
	    pfs_file_look_below(edit->file, &below, chunk->n) == PFS_PLACE_HOLE)
		pfs_file_remove(content, edit->file, chunk);
	edit->target[i] = NULL;
}

void pfs_edit_apply(struct pfs_edit *edit)
{
	unsigned i;

	for (i = 0; i < edit->count; i++)
		if (edit->target[i])
			apply_one(edit, i);
}

/* Clears suid and sgid as a change of content does. */
static void clear_set_id(struct pfs_tree *tree, uint32_t slot, bool privileged)
{
	mode_t mode = tree->image.mode[slot];
	/* If the group may not execute the file, sgid means mandatory locking, and stays. */
	mode_t gone = mode & S_IXGRP ? S_ISUID | S_ISGID : S_ISUID;

	if (!privileged && mode & gone)
		pfs_image_set_mode(tree, slot, mode & ~gone);
}

void pfs_node_changed(struct pfs_tree *tree, uint32_t slot, bool privileged)
{
	pfs_image_stamp(tree, slot, PFS_COLUMN_MTIME | PFS_COLUMN_CTIME, pfs_now());
	clear_set_id(tree, slot, privileged);
}

void pfs_edit_commit(struct pfs_edit *edit, int64_t size, bool privileged)
{
	struct pfs_tree *tree = edit->tree;
	struct pfs_image *image = &tree->image;
	uint32_t slot;

	pfs_hold_write(tree, __func__);
	slot = pfs_image_slot(tree, edit->ino); /* it exists, since the content lock keeps it */
	pfs_image_write(tree, slot, size >= 0 ? size : image->size[slot],
			PFS_MAX(image->blocks[slot] + edit->blocks, 0), pfs_now());
	pfs_hard_link_leave(tree, slot);
	clear_set_id(tree, slot, privileged);
	pfs_journal_touch(tree, slot);
	pfs_hold_end(tree);
	edit->blocks = 0;
}
