/* SPDX-License-Identifier: MIT */
/* The layers of content: what they add to commits, and which chunks a file has in which layer. */
#include "fs/content/content.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/content/content_impl.h"
#include "fs/image/image.h"
#include "fs/journal/journal.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

static void free_file(void *arg, struct pfs_byprime *entry)
{
	struct pfs_file *file = (struct pfs_file *)entry;
	unsigned i;

	for (i = 0; i < PFS_LAYERS; i++)
		pfs_chunks_free(arg, file->layer[i].chunks);
	free(file);
}

void pfs_content_destroy(struct pfs_tree *tree)
{
	struct pfs_content *content = tree->content;
	void *buffer;

	if (!content)
		return;
	pfs_byprime_drain(&content->files, free_file, content);
	while ((buffer = content->buffers)) {
		content->buffers = *(void **)buffer;
		pfs_buffer_unmap(buffer);
	}
	(void)pthread_cond_destroy(&content->idle);
	(void)pthread_mutex_destroy(&content->buffers_lock);
	free(content);
	tree->content = NULL;
}

/* ---- a part of commits ---- */

static void cut_chunks(struct pfs_tree *tree)
{
	struct pfs_content *content = tree->content;
	struct pfs_file *file, *next;

	PFS_VERIFY_CHECK(!content->first[PFS_WRITING]);
	for (file = content->first[PFS_DIRTY]; file; file = next) {
		struct pfs_layer *dirty = &file->layer[PFS_DIRTY];
		struct pfs_layer *writing = &file->layer[PFS_WRITING];

		next = dirty->next;
		writing->chunks = dirty->chunks;
		writing->cut = dirty->cut;
		dirty->chunks = NULL;
		dirty->cut = PFS_NO_CHUNK;
		pfs_file_list(content, file, PFS_WRITING);
		pfs_file_unlist(content, file, PFS_DIRTY);
	}
}

static int write_chunk(struct pfs_store *store, uint64_t prime, const struct pfs_chunk *chunk)
{
	if (chunk->kind == PFS_CHUNK_GONE)
		return pfs_store_remove_chunks(store, prime, chunk->n, chunk->n + 1);
	return pfs_store_put_chunk(store, prime, chunk->n, chunk->data,
				   chunk->kind == PFS_CHUNK_DATA ? chunk->len : 0);
}

static int write_chunks(struct pfs_tree *tree)
{
	const struct pfs_file *file;
	const struct pfs_chunk *chunk;
	int error;

	/* No lock is needed: only cut and done change this layer, and they run on this thread. */
	for (file = tree->content->first[PFS_WRITING]; file; file = file->layer[PFS_WRITING].next) {
		const struct pfs_layer *layer = &file->layer[PFS_WRITING];
		uint64_t prime = file->by_prime.prime;

		if (layer->cut != PFS_NO_CHUNK) {
			error = pfs_store_remove_chunks(tree->store, prime, layer->cut,
							PFS_CHUNKS_MAX);
			if (error)
				return error;
		}
		for (chunk = pfs_chunk_from(layer->chunks, 0); chunk;
		     chunk = pfs_chunk_from(layer->chunks, chunk->n + 1)) {
			error = write_chunk(tree->store, prime, chunk);
			if (error)
				return error;
		}
	}
	return 0;
}

/* Called when the file's group is in the store: updates what is known of the store's chunks.
 * Returns the chunks of the group, which the caller frees without the lock. */
static struct pfs_chunk *file_done(struct pfs_content *content, struct pfs_file *file)
{
	struct pfs_layer *layer = &file->layer[PFS_WRITING];
	struct pfs_chunk *chunks = layer->chunks;
	const struct pfs_chunk *last = chunks;

	file->store_end = PFS_MIN(file->store_end, layer->cut);
	while (last && last->child[1])
		last = last->child[1];
	if (last && file->store_end <= last->n)
		file->store_end = last->n + 1;
	layer->chunks = NULL;
	layer->cut = PFS_NO_CHUNK;
	file->groups++;
	pfs_file_unlist(content, file, PFS_WRITING);
	pfs_file_release(content, file);
	return chunks;
}

static void chunks_done(struct pfs_tree *tree)
{
	struct pfs_content *content = tree->content;
	struct pfs_chunk *chunks;

	/* Handles one file at a time, so that a large group does not make everybody wait. */
	for (;;) {
		int64_t freed;

		pfs_parts_lock(tree);
		if (!content->first[PFS_WRITING]) {
			pfs_parts_unlock(tree);
			break;
		}
		chunks = file_done(content, content->first[PFS_WRITING]);
		pfs_parts_unlock(tree);
		freed = pfs_chunks_free(content, chunks);
		if (freed)
			pfs_journal_pending(tree, -freed);
	}
}

static void drop_chunks(struct pfs_tree *tree, uint64_t ino)
{
	struct pfs_content *content = tree->content;
	struct pfs_file *file = pfs_file_find(content, ino);
	struct pfs_chunk *chunk;

	if (file) {
		struct pfs_layer *dirty = &file->layer[PFS_DIRTY];

		while ((chunk = dirty->chunks))
			pfs_file_remove(content, file, chunk);
		dirty->cut = PFS_NO_CHUNK;
		file->dropped = true;
		pfs_file_unlist(content, file, PFS_DIRTY);
		pfs_file_release(content, file);
	}
}

static const struct pfs_part part = {
	.name = "content",
	.cut = cut_chunks,
	.write = write_chunks,
	.done = chunks_done,
	.drop = drop_chunks,
};

int pfs_content_create(struct pfs_tree *tree)
{
	struct pfs_content *content = calloc(1, sizeof(*content));

	if (!content)
		return -ENOMEM;
	(void)pthread_mutex_init(&content->buffers_lock, NULL);
	(void)pthread_cond_init(&content->idle, NULL);
	content->unreported = pfs_parts_unreported(tree);
	tree->content = content;
	pfs_take_part(tree, &part);
	return 0;
}

/* ---- what is where ---- */

int pfs_file_node(struct pfs_tree *tree, struct pfs_file_node *out, uint64_t ino)
{
	const struct pfs_image *image = &tree->image;
	int error = 0;
	uint32_t slot;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot == PFS_NO_SLOT || image->state[slot] & PFS_SLOT_DROPPED)
		error = -ESTALE;
	else if (S_ISDIR(image->mode[slot]))
		error = -EISDIR;
	else if (!S_ISREG(image->mode[slot]))
		error = -EINVAL;
	else
		*out = (struct pfs_file_node){.slot = slot,
					      .flags = image->flags[slot],
					      .stored = image->state[slot] & PFS_SLOT_STORED,
					      .unlinked = image->state[slot] & PFS_SLOT_UNLINKED,
					      .size = image->size[slot],
					      .blocks = image->blocks[slot]};
	pfs_hold_end(tree);
	return error;
}

int pfs_content_room(struct pfs_tree *tree, uint64_t bytes)
{
	uint64_t free_bytes, total_bytes;
	int error = pfs_journal_space(tree, &free_bytes, &total_bytes);

	if (error)
		return error;
	return bytes <= free_bytes ? 0 : -ENOSPC;
}

static uint32_t chunk_len(const struct pfs_chunk *chunk)
{
	return chunk->kind == PFS_CHUNK_DATA ? chunk->len : 0;
}

/* What the layers in memory say about the chunks from number `first` on. */
struct outlook {
	bool pending; /* memory has chunk n; before it, only the store decides */
	bool gone;
	uint64_t n;
	uint32_t len;
	uint64_t store_end; /* from this chunk on the store's chunks do not count */
};

static void look_ahead(struct pfs_tree *tree, struct outlook *out, uint64_t prime, uint64_t first)
{
	const struct pfs_file *file;
	const struct pfs_chunk *dirty, *writing;

	*out = (struct outlook){.store_end = PFS_NO_CHUNK};
	pfs_parts_lock(tree);
	file = pfs_file_find(tree->content, prime);
	if (file) {
		uint64_t cut = file->layer[PFS_DIRTY].cut;

		dirty = pfs_chunk_from(file->layer[PFS_DIRTY].chunks, first);
		writing = pfs_chunk_from(file->layer[PFS_WRITING].chunks, first);
		if (writing && writing->n < cut && (!dirty || writing->n < dirty->n))
			dirty = writing;
		out->store_end =
			PFS_MIN(PFS_MIN(cut, file->layer[PFS_WRITING].cut), file->store_end);
		if (dirty) {
			out->pending = true;
			out->gone = dirty->kind == PFS_CHUNK_GONE;
			out->n = dirty->n;
			out->len = chunk_len(dirty);
		}
	}
	pfs_parts_unlock(tree);
}

int pfs_content_next(struct pfs_tree *tree, uint64_t *n, uint32_t *len, uint64_t prime,
		     uint64_t first, uint64_t end)
{
	struct outlook memory;
	uint64_t limit;
	size_t stored_len;
	int error;

	for (; first < end; first = memory.n + 1) {
		look_ahead(tree, &memory, prime, first);
		limit = PFS_MIN(end, memory.store_end);
		if (memory.pending)
			limit = PFS_MIN(limit, memory.n);
		if (first < limit) {
			error = pfs_store_next_chunk(tree->store, n, &stored_len, prime, first,
						     limit);
			if (!error)
				*len = (uint32_t)stored_len;
			if (error != -ENOENT)
				return error;
		}
		if (!memory.pending || memory.n >= end)
			break;
		if (!memory.gone) {
			*n = memory.n;
			*len = memory.len;
			return 0;
		}
	}
	return -ENOENT;
}
