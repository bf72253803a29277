/* SPDX-License-Identifier: MIT */
/* Chunks in memory: buffers, the ordered set of a file's chunks, the files that have any. */
#include "fs/content/content_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define BUFFERS_KEPT 256 /* buffers of whole chunks that are kept for reuse */

/* ---- buffers and chunks ---- */

uint8_t *pfs_buffer_get(struct pfs_content *content)
{
	void **buffer;

	{
		PFS_LOCKED(&content->buffers_lock);
		buffer = content->buffers;
		if (buffer) {
			content->buffers = *buffer;
			content->n_buffers--;
		}
	}
	if (buffer)
		return (void *)buffer;
	/* Not from malloc, which would not give the memory of one large file back to the system. */
	buffer = mmap(NULL, PFS_CHUNK_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return buffer == MAP_FAILED ? NULL : (void *)buffer;
}

void pfs_buffer_unmap(void *buffer)
{
	(void)munmap(buffer, PFS_CHUNK_SIZE);
}

void pfs_buffer_put(struct pfs_content *content, uint8_t *buffer)
{
	if (!buffer)
		return;
	{
		PFS_LOCKED(&content->buffers_lock);
		if (content->n_buffers < BUFFERS_KEPT) {
			*(void **)(void *)buffer = content->buffers;
			content->buffers = buffer;
			content->n_buffers++;
			buffer = NULL;
		}
	}
	if (buffer)
		pfs_buffer_unmap(buffer);
}

void pfs_chunk_empty(struct pfs_content *content, struct pfs_chunk *chunk)
{
	if (chunk->capacity == PFS_CHUNK_SIZE)
		pfs_buffer_put(content, chunk->data);
	else
		free(chunk->data);
	chunk->data = NULL;
	chunk->capacity = 0;
}

/* Returns the rank of a chunk in its treap. Ranks must look random, which the numbers of chunks do
 * not. */
static uint32_t rank_of(uint64_t n)
{
	n = (n ^ n >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(n >> 32);
}

struct pfs_chunk *pfs_chunk_create(struct pfs_content *content, uint64_t n, uint32_t capacity)
{
	struct pfs_chunk *chunk = malloc(sizeof(*chunk));

	if (!chunk)
		return NULL;
	*chunk = (struct pfs_chunk){.n = n, .rank = rank_of(n), .kind = PFS_CHUNK_GONE};
	if (capacity && pfs_chunk_grow(content, chunk, capacity)) {
		free(chunk);
		return NULL;
	}
	return chunk;
}

void pfs_chunk_free(struct pfs_content *content, struct pfs_chunk *chunk)
{
	if (!chunk)
		return;
	pfs_chunk_empty(content, chunk);
	free(chunk);
}

/* Returns the bytes that a chunk takes while it waits for the store. */
static int64_t weight(const struct pfs_chunk *chunk)
{
	return (int64_t)sizeof(*chunk) + chunk->capacity;
}

int64_t pfs_chunks_free(struct pfs_content *content, struct pfs_chunk *root)
{
	struct pfs_chunk *other;
	int64_t freed = 0;

	/* Rotations make a list of the tree on the way: so nothing recurses, and each link is moved
	 * at most once. */
	while (root) {
		other = root->child[0];
		if (other) {
			root->child[0] = other->child[1];
			other->child[1] = root;
		} else {
			other = root->child[1];
			freed += weight(root);
			pfs_chunk_free(content, root);
		}
		root = other;
	}
	return freed;
}

int pfs_chunk_grow(struct pfs_content *content, struct pfs_chunk *chunk, uint32_t capacity)
{
	uint8_t *data;

	if (capacity <= chunk->capacity)
		return 0;
	/* Takes exactly what is needed at first, since most files are written once; then doubles.
	 */
	if (chunk->capacity)
		capacity = PFS_MAX(capacity, PFS_MIN(2 * chunk->capacity, PFS_CHUNK_SIZE));
	if (capacity > PFS_CHUNK_SIZE / 2)
		capacity = PFS_CHUNK_SIZE;
	if (capacity < PFS_CHUNK_SIZE) {
		data = realloc(chunk->data, capacity);
		if (!data)
			return -ENOMEM;
	} else {
		data = pfs_buffer_get(content);
		if (!data)
			return -ENOMEM;
		if (chunk->len)
			memcpy(data, chunk->data, chunk->len);
		pfs_chunk_empty(content, chunk);
	}
	chunk->data = data;
	chunk->capacity = capacity;
	return 0;
}

/* ---- the ordered set ---- */

struct pfs_chunk *pfs_chunk_at(const struct pfs_chunk *root, uint64_t n)
{
	while (root && root->n != n)
		root = root->child[n > root->n];
	return (struct pfs_chunk *)root;
}

struct pfs_chunk *pfs_chunk_from(const struct pfs_chunk *root, uint64_t n)
{
	const struct pfs_chunk *best = NULL;

	while (root) {
		if (root->n >= n)
			best = root;
		root = root->child[n > root->n];
	}
	return (struct pfs_chunk *)best;
}

static void insert(struct pfs_chunk **at, struct pfs_chunk *chunk)
{
	struct pfs_chunk *rest, **less = &chunk->child[0], **more = &chunk->child[1];

	while (*at && (*at)->rank >= chunk->rank)
		at = &(*at)->child[chunk->n > (*at)->n];
	rest = *at;
	*at = chunk;
	while (rest) {
		if (rest->n < chunk->n) {
			*less = rest;
			less = &rest->child[1];
			rest = *less;
		} else {
			*more = rest;
			more = &rest->child[0];
			rest = *more;
		}
	}
	*less = *more = NULL;
}

static void take_out(struct pfs_chunk **at, const struct pfs_chunk *chunk)
{
	struct pfs_chunk *less = chunk->child[0], *more = chunk->child[1];

	while (*at != chunk)
		at = &(*at)->child[chunk->n > (*at)->n];
	while (less && more) {
		if (less->rank >= more->rank) {
			*at = less;
			at = &less->child[1];
			less = *at;
		} else {
			*at = more;
			at = &more->child[0];
			more = *at;
		}
	}
	*at = less ? less : more;
}

/* ---- files ---- */

struct pfs_file *pfs_file_find(const struct pfs_content *content, uint64_t prime)
{
	return (struct pfs_file *)pfs_byprime_find(&content->files, prime);
}

struct pfs_file *pfs_file_pin(struct pfs_content *content, uint64_t prime)
{
	struct pfs_file *file = pfs_file_find(content, prime);

	if (!file) {
		file = calloc(1, sizeof(*file));
		if (!file)
			return NULL;
		file->by_prime.prime = prime;
		file->layer[PFS_DIRTY].cut = PFS_NO_CHUNK;
		file->layer[PFS_WRITING].cut = PFS_NO_CHUNK;
		file->store_end = PFS_NO_CHUNK;
		pfs_byprime_add(&content->files, &file->by_prime);
	}
	file->pins++;
	return file;
}

void pfs_file_release(struct pfs_content *content, struct pfs_file *file)
{
	if (file->pins || file->layer[PFS_DIRTY].listed || file->layer[PFS_WRITING].listed)
		return;
	pfs_byprime_remove(&content->files, &file->by_prime);
	free(file);
}

void pfs_file_unpin(struct pfs_content *content, struct pfs_file *file)
{
	file->pins--;
	pfs_file_release(content, file);
}

void pfs_file_list(struct pfs_content *content, struct pfs_file *file, enum pfs_layer_name name)
{
	struct pfs_layer *layer = &file->layer[name];
	struct pfs_file *last = content->last[name];

	if (layer->listed)
		return;
	layer->listed = true;
	layer->next = NULL;
	layer->previous = last;
	if (last)
		last->layer[name].next = file;
	else
		content->first[name] = file;
	content->last[name] = file;
	*content->unreported += (int64_t)sizeof(*file);
}

void pfs_file_unlist(struct pfs_content *content, struct pfs_file *file, enum pfs_layer_name name)
{
	struct pfs_layer *layer = &file->layer[name];

	if (!layer->listed)
		return;
	layer->listed = false;
	if (layer->previous)
		layer->previous->layer[name].next = layer->next;
	else
		content->first[name] = layer->next;
	if (layer->next)
		layer->next->layer[name].previous = layer->previous;
	else
		content->last[name] = layer->previous;
	*content->unreported -= (int64_t)sizeof(*file);
}

void pfs_file_add(struct pfs_content *content, struct pfs_file *file, struct pfs_chunk *chunk)
{
	insert(&file->layer[PFS_DIRTY].chunks, chunk);
	*content->unreported += weight(chunk);
	pfs_file_list(content, file, PFS_DIRTY);
}

void pfs_file_remove(struct pfs_content *content, struct pfs_file *file, struct pfs_chunk *chunk)
{
	take_out(&file->layer[PFS_DIRTY].chunks, chunk);
	*content->unreported -= weight(chunk);
	pfs_chunk_free(content, chunk);
}

/* Returns true if layers below the dirty one may have a chunk from number n on. */
static bool anything_below(const struct pfs_file *file, uint64_t n)
{
	const struct pfs_layer *writing = &file->layer[PFS_WRITING];

	return pfs_chunk_from(writing->chunks, n) || (file->store_end > n && writing->cut > n);
}

void pfs_file_cut(struct pfs_content *content, struct pfs_file *file, uint64_t n)
{
	struct pfs_layer *dirty = &file->layer[PFS_DIRTY];
	struct pfs_chunk *chunk;

	while ((chunk = pfs_chunk_from(dirty->chunks, n)))
		pfs_file_remove(content, file, chunk);
	if (dirty->cut <= n || !anything_below(file, n))
		return;
	dirty->cut = n;
	pfs_file_list(content, file, PFS_DIRTY);
}

static enum pfs_chunk_place look_in(const struct pfs_chunk *found, struct pfs_chunk **chunk)
{
	*chunk = (struct pfs_chunk *)found;
	return found->kind == PFS_CHUNK_GONE ? PFS_PLACE_HOLE : PFS_PLACE_MEMORY;
}

enum pfs_chunk_place pfs_file_look_below(const struct pfs_file *file, struct pfs_chunk **chunk,
				   uint64_t n)
{
	const struct pfs_layer *writing = &file->layer[PFS_WRITING];
	const struct pfs_chunk *found;

	*chunk = NULL;
	if (n >= file->layer[PFS_DIRTY].cut)
		return PFS_PLACE_HOLE;
	found = pfs_chunk_at(writing->chunks, n);
	if (found)
		return look_in(found, chunk);
	return n >= writing->cut || n >= file->store_end ? PFS_PLACE_HOLE : PFS_PLACE_STORE;
}

enum pfs_chunk_place pfs_file_look(const struct pfs_file *file, struct pfs_chunk **chunk,
				   uint64_t n)
{
	const struct pfs_chunk *found = pfs_chunk_at(file->layer[PFS_DIRTY].chunks, n);

	return found ? look_in(found, chunk) : pfs_file_look_below(file, chunk, n);
}
