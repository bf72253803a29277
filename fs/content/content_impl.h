/* SPDX-License-Identifier: MIT */
/* fs/content/content_impl.h - what the modules that keep content share.
 *
 * The bytes of a file come from three layers, the upper one first: the *dirty* chunks, the chunks
 * of the group *being written*, and the store. In each of the two layers in memory a file has its
 * chunks, ordered by number, and a *cut*: the number of a chunk at which the file was truncated.
 * Chunks of the layers below do not count from the cut on. A single chunk of the layers below that
 * does not count, because it was punched, is a chunk of kind GONE.
 *
 * When a group is cut, its chunks move from the first layer to the second, and when it is
 * committed, to the third; neither changes what a file contains. Only an edit does, and a file has
 * one edit at a time: an edit that must wait (for the store, for space) marks the file busy and
 * lets go of the lock. What it learned stays true until it is done. */
#ifndef PFS_FS_CONTENT_CONTENT_IMPL_H
#define PFS_FS_CONTENT_CONTENT_IMPL_H

#include <pthread.h>

#include "fs/content/content.h"
#include "fs/image/byprime.h"
#include "fs/journal/part.h"
#include "fs/journal/records.h"

struct pfs_fd;	      /* fdcache.h */
struct pfs_originals; /* original.h */

#define PFS_NO_CHUNK   UINT64_MAX
#define PFS_CHUNKS_MAX (PFS_FILE_SIZE_MAX / PFS_CHUNK_SIZE + 1) /* no chunk has this number */

enum pfs_chunk_kind {
	PFS_CHUNK_DATA,	     /* len bytes, at least 1; what follows them reads as zeros */
	PFS_CHUNK_ALLOCATED, /* zeros that take space */
	PFS_CHUNK_GONE,	     /* a hole, whatever the layers below have */
};

struct pfs_chunk {
	uint64_t n;
	struct pfs_chunk *child[2]; /* a treap: ordered by n, a heap by rank */
	uint32_t rank;
	uint32_t len, capacity;
	enum pfs_chunk_kind kind;
	uint8_t *data;
};

enum pfs_layer_name { PFS_DIRTY, PFS_WRITING, PFS_LAYERS };

struct pfs_layer {
	struct pfs_chunk *chunks;
	uint64_t cut; /* PFS_NO_CHUNK: none */
	bool listed;  /* the file is in the content's list of this layer */
	struct pfs_file *next, *previous;
};

/* A file some of whose content is not in the store, or that an operation is at work on. */
struct pfs_file {
	struct pfs_byprime by_prime;
	struct pfs_layer layer[PFS_LAYERS];
	uint64_t store_end; /* the store has no chunk from here on; PFS_NO_CHUNK: not known */
	uint32_t groups;    /* groups of its changes that have reached the store */
	uint32_t pins; /* operations at work on it */
	bool busy;    /* an edit is under way without the lock */
	bool dropped; /* the node is gone */
};

struct pfs_content {
	pthread_cond_t idle; /* a file is no longer busy */
	/* protected by the content lock */
	struct pfs_byprime_table files;
	struct pfs_file *first[PFS_LAYERS], *last[PFS_LAYERS];
	struct pfs_edit *resize; /* between prepare_size and end_size */
	int64_t *unreported;	 /* pfs_parts_unreported */
	/* protected by buffers_lock, the innermost lock */
	pthread_mutex_t buffers_lock;
	void *buffers; /* a list of free buffers of PFS_CHUNK_SIZE bytes */
	unsigned n_buffers;
};

/* ---- chunks.c; content lock held, except where it says so ---- */

/* Returns the st_blocks of a chunk with len bytes; len 0 means allocated space. */
static inline int64_t pfs_chunk_blocks(uint32_t len)
{
	return len ? (int64_t)(len + 4095) / 4096 * 8 : PFS_CHUNK_SIZE / 512;
}

/* Makes a chunk with room for `capacity` bytes (0: without a buffer). Returns NULL if there is no
 * memory. No lock is held. */
struct pfs_chunk *pfs_chunk_create(struct pfs_content *content, uint64_t n, uint32_t capacity);
/* Frees a chunk. NULL is allowed. No lock is held. */
void pfs_chunk_free(struct pfs_content *content, struct pfs_chunk *chunk);
/* Frees all chunks of a layer of a file, and returns the bytes of memory that were pending for
 * them. No lock is held. */
int64_t pfs_chunks_free(struct pfs_content *content, struct pfs_chunk *root);
/* Makes room in the chunk for at least `capacity` bytes. No lock is held. -ENOMEM. */
PFS_MUST_CHECK int pfs_chunk_grow(struct pfs_content *content, struct pfs_chunk *chunk,
				  uint32_t capacity);
/* Frees the chunk's buffer. No lock is held. */
void pfs_chunk_empty(struct pfs_content *content, struct pfs_chunk *chunk);
/* Get and give back a buffer of PFS_CHUNK_SIZE bytes, which are undefined. No lock is held. */
uint8_t *pfs_buffer_get(struct pfs_content *content);
void pfs_buffer_put(struct pfs_content *content, uint8_t *buffer);
void pfs_buffer_unmap(void *buffer); /* frees a buffer that is not in the list of free ones */

/* pfs_chunk_at returns chunk n, pfs_chunk_from the first chunk from n on; NULL: there is none. */
struct pfs_chunk *pfs_chunk_at(const struct pfs_chunk *root, uint64_t n);
struct pfs_chunk *pfs_chunk_from(const struct pfs_chunk *root, uint64_t n);

/* Returns the file of that prime; NULL if nothing of it is in memory. */
struct pfs_file *pfs_file_find(const struct pfs_content *content, uint64_t prime);
/* Finds or makes the file and pins it; NULL if there is no memory. */
struct pfs_file *pfs_file_pin(struct pfs_content *content, uint64_t prime);
void pfs_file_unpin(struct pfs_content *content, struct pfs_file *file);
void pfs_file_release(struct pfs_content *content, struct pfs_file *file); /* frees it if unused */

/* Put the file into the content's list of the layer, and take it out. */
void pfs_file_list(struct pfs_content *content, struct pfs_file *file, enum pfs_layer_name name);
void pfs_file_unlist(struct pfs_content *content, struct pfs_file *file, enum pfs_layer_name name);

/* pfs_file_add puts a chunk into the file's dirty layer, and lists the file there. pfs_file_remove
 * takes a chunk out of it, and frees the chunk. */
void pfs_file_add(struct pfs_content *content, struct pfs_file *file, struct pfs_chunk *chunk);
void pfs_file_remove(struct pfs_content *content, struct pfs_file *file, struct pfs_chunk *chunk);
/* Makes everything from chunk n on a hole. */
void pfs_file_cut(struct pfs_content *content, struct pfs_file *file, uint64_t n);

/* Says where chunk n of a file is. */
enum pfs_chunk_place {
	PFS_PLACE_HOLE,
	PFS_PLACE_MEMORY, /* it is *chunk, of kind DATA or ALLOCATED */
	PFS_PLACE_STORE,  /* the store has it, or it is a hole */
};
enum pfs_chunk_place pfs_file_look(const struct pfs_file *file, struct pfs_chunk **chunk,
				   uint64_t n);
/* As pfs_file_look, but without looking at the dirty layer's chunk of that number. */
enum pfs_chunk_place pfs_file_look_below(const struct pfs_file *file, struct pfs_chunk **chunk,
				   uint64_t n);

/* ---- content.c ---- */

/* Finds the file's first chunk that is no hole with first <= *n < end, and its length. No lock is
 * held. -ENOENT: there is none. */
PFS_MUST_CHECK int pfs_content_next(struct pfs_tree *tree, uint64_t *n, uint32_t *len,
				    uint64_t prime, uint64_t first, uint64_t end);

/* To be called before a change that is made piece by piece: checks that the store's filesystem has
 * room for so many bytes in all. No lock is held. -ENOSPC. */
PFS_MUST_CHECK int pfs_content_room(struct pfs_tree *tree, uint64_t bytes);

/* Gets what an operation has to know of a node before it begins. No lock is held. -ESTALE, -EISDIR;
 * -EINVAL: it is no regular file. */
struct pfs_file_node {
	uint32_t slot;
	uint8_t flags; /* enum pfs_node_flag */
	bool stored;   /* the store may know the node */
	bool unlinked;
	int64_t size, blocks;
};
PFS_MUST_CHECK int pfs_file_node(struct pfs_tree *tree, struct pfs_file_node *out, uint64_t ino);

/* ---- edit.c: one change of up to PFS_EDIT_SPAN bytes ---- */

#define PFS_EDIT_CHUNKS 17
#define PFS_EDIT_SPAN	((PFS_EDIT_CHUNKS - 1) * PFS_CHUNK_SIZE)

enum pfs_edit_kind { PFS_EDIT_WRITE, PFS_EDIT_ALLOCATE, PFS_EDIT_ZERO, PFS_EDIT_PUNCH };

struct pfs_stored { /* a chunk as the store has it */
	bool known, present, loaded;
	uint32_t len;
	uint8_t *data;
};

struct pfs_edit {
	struct pfs_tree *tree;
	uint64_t ino;
	bool nowait;
	bool locked; /* the edit has the content lock */
	struct pfs_file *file; /* pinned */
	struct pfs_file_node node;
	/* the change: */
	enum pfs_edit_kind kind;
	const uint8_t *data;
	int64_t offset;
	int64_t end_size; /* the file's st_size after the change */
	size_t length;
	uint64_t first; /* the number of the first chunk that changes */
	unsigned count; /* of chunks that change; the arrays have an element for each */
	struct pfs_stored stored[PFS_EDIT_CHUNKS];
	struct pfs_chunk *ready[PFS_EDIT_CHUNKS];  /* whole chunks, filled without the lock */
	struct pfs_chunk *target[PFS_EDIT_CHUNKS]; /* the chunks that will change */
	bool fresh[PFS_EDIT_CHUNKS]; /* the target is new, and the edit's until it is applied */
	int64_t blocks; /* by how much st_blocks changes */
	int64_t new_size; /* of a truncation */
	bool copied; /* the file's original, or the text of its row, has been copied */
	int64_t copied_blocks, copied_size; /* st_blocks of the copy; st_size of a row's text */
};

/* Begins an edit: on success the content lock is held, and no other edit of the file can begin. A
 * linked file is copied first, unless keep_linked. -EAGAIN with nowait; -ENODATA; and what
 * pfs_file_node returns. */
PFS_MUST_CHECK int pfs_edit_open(struct pfs_edit *edit, struct pfs_tree *tree, uint64_t ino,
				 bool nowait, bool keep_linked);
/* Ends the edit, also a failed one: frees and unlocks. */
void pfs_edit_close(struct pfs_edit *edit);

/* Sets what the edit changes: `length` bytes at `offset`, PFS_EDIT_SPAN at most. data stays the
 * caller's. */
void pfs_edit_span(struct pfs_edit *edit, enum pfs_edit_kind kind, const void *data, int64_t offset,
		   size_t length);
/* Copies the whole chunks of a write into `ready`, before the lock is taken. */
PFS_MUST_CHECK int pfs_edit_fill(struct pfs_edit *edit);
/* Prepares all chunks, and may give up the lock for a while. Then pfs_edit_apply cannot fail. */
PFS_MUST_CHECK int pfs_edit_prepare(struct pfs_edit *edit);
void pfs_edit_apply(struct pfs_edit *edit);
/* Updates the node's row: size (-1: as it is), blocks, times; clears suid and sgid unless
 * privileged. */
void pfs_edit_commit(struct pfs_edit *edit, int64_t size, bool privileged);

/* pfs_edit_busy gives up the content lock; no other edit can begin on the file until
 * pfs_edit_busy_end, which takes the lock again. -ESTALE: the node is gone. */
void pfs_edit_busy(struct pfs_edit *edit);
PFS_MUST_CHECK int pfs_edit_busy_end(struct pfs_edit *edit);

/* Sets mtime and ctime to now, and clears suid and sgid as a change of content does. tree->lock is
 * held for writing. */
void pfs_node_changed(struct pfs_tree *tree, uint32_t slot, bool privileged);

/* ---- copyup.c ---- */

/* Copies, in an edit of a linked file, the original's first `upto` bytes into dirty chunks; reads
 * still get the original's bytes. The content lock is held before and after. */
PFS_MUST_CHECK int pfs_copyup(struct pfs_edit *edit, int64_t upto);
/* Makes reads get the copied chunks, and the node linked no longer. The content lock has been held
 * since pfs_copyup, and tree->lock is held. */
void pfs_copyup_commit(struct pfs_edit *edit, uint32_t slot, int64_t size);

/* ---- link.c ---- */

struct pfs_records *pfs_links_sources(struct pfs_tree *tree); /* returns all sources */

/* Gets the source of a linked node. The caller gives it back with pfs_value_unref. No lock is held.
 * -ENOENT: the node is linked no longer; -ESTALE. */
PFS_MUST_CHECK int pfs_links_source(struct pfs_tree *tree, struct pfs_value **out, uint64_t ino);
const struct pfs_source_record *pfs_links_record(const struct pfs_value *value);
/* Makes a value of which pfs_links_record returns this record; NULL if there is no memory. No lock
 * is held. */
struct pfs_value *pfs_links_value(const struct pfs_source_record *record);
/* pfs_links_forget closes the node's original, and pfs_links_forget_ways all folders on ways to
 * originals: each may be another file or folder now. No lock is held. */
void pfs_links_forget(struct pfs_tree *tree, uint64_t ino);
void pfs_links_forget_ways(struct pfs_tree *tree);
/* Returns true if the original, whose stat is *st, still is as the record says. *st is that of a
 * descriptor which pfs_links_open gave. */
bool pfs_links_same(const struct pfs_source_record *record, const struct stat *st);

/* Opens the original for reading. If it is not as its record says, the record is refreshed first.
 * No lock is held. Errors are those of pfs_links_source and of opening; -ENODATA: originals are not
 * followed. */
PFS_MUST_CHECK int pfs_links_open(struct pfs_tree *tree, struct pfs_fd **out, uint64_t ino);
/* Returns the original if it is open already, else NULL. */
struct pfs_fd *pfs_links_opened(struct pfs_tree *tree, uint64_t ino);
void pfs_links_close(struct pfs_tree *tree, struct pfs_fd *original); /* NULL is allowed */

bool pfs_links_refused(const struct pfs_tree *tree); /* true: originals are not followed */
struct pfs_originals *pfs_links_originals(const struct pfs_tree *tree);

extern const struct pfs_part pfs_sources_part; /* the part of records of sources (part.h) */

#endif
