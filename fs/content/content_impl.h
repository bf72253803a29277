/* SPDX-License-Identifier: MIT */
/* fs/content/content_impl.h - what the modules that keep content share.
 *
 * The bytes of a file come from three layers, the upper one first: the *dirty* chunks, those of the
 * group *being written*, and the store.  In each of the two layers in memory a file has its chunks,
 * ordered by number, and a *cut*: of the layers below, chunks from the cut on are dead (the file
 * was truncated there).  A single dead chunk (punched) is a chunk of kind GONE.
 *
 * Cutting a group and completing it move chunks down a layer; neither changes what a file contains.
 * Only an edit does, and a file has one at a time: one that must wait (for the store, for space)
 * marks the file busy and lets go of the lock.  What it learned stays true until it is done. */
#ifndef PFS_FS_CONTENT_CONTENT_IMPL_H
#define PFS_FS_CONTENT_CONTENT_IMPL_H

#include <pthread.h>

#include "fs/content/content.h"
#include "fs/content/fdcache.h"
#include "fs/content/follow.h"
#include "fs/image/byprime.h"
#include "fs/journal/part.h"
#include "fs/journal/records.h"

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
	bool listed;  /* in the content's list of the layer */
	struct pfs_file *next, *previous;
};

/* A file some of whose content is not in the store, or that somebody works on. */
struct pfs_file {
	struct pfs_byprime by_prime;
	struct pfs_layer layer[PFS_LAYERS];
	uint64_t store_end; /* the store has no chunk from here on; PFS_NO_CHUNK: not known */
	uint32_t groups;    /* of its that have reached the store */
	uint32_t pins;
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
	void *buffers; /* a list of free ones of PFS_CHUNK_SIZE */
	unsigned n_buffers;
};

/* ---- chunks.c; content lock held, except where it says so ---- */

/* st_blocks of a chunk with len bytes; 0 bytes is allocated space. */
static inline int64_t pfs_chunk_blocks(uint32_t len)
{
	return len ? (int64_t)(len + 4095) / 4096 * 8 : PFS_CHUNK_SIZE / 512;
}

/* No lock.  NULL when there is no memory; capacity 0: without a buffer. */
struct pfs_chunk *pfs_chunk_create(struct pfs_content *content, uint64_t n, uint32_t capacity);
/* No lock.  NULL is allowed. */
void pfs_chunk_free(struct pfs_content *content, struct pfs_chunk *chunk);
/* No lock.  Frees a whole set and returns what it had cost. */
int64_t pfs_chunks_free(struct pfs_content *content, struct pfs_chunk *root);
/* No lock.  Room for at least capacity bytes.  -ENOMEM. */
PFS_MUST_CHECK int pfs_chunk_grow(struct pfs_content *content, struct pfs_chunk *chunk,
				  uint32_t capacity);
/* No lock.  Frees the buffer. */
void pfs_chunk_empty(struct pfs_content *content, struct pfs_chunk *chunk);
/* A buffer of PFS_CHUNK_SIZE, undefined bytes.  No lock. */
uint8_t *pfs_buffer_get(struct pfs_content *content);
void pfs_buffer_put(struct pfs_content *content, uint8_t *buffer);
void pfs_buffer_unmap(void *buffer); /* one that is not among the free */

/* The chunk n, or the first one from n on; NULL. */
struct pfs_chunk *pfs_chunk_at(const struct pfs_chunk *root, uint64_t n);
struct pfs_chunk *pfs_chunk_from(const struct pfs_chunk *root, uint64_t n);

/* NULL when nothing of the file is in memory. */
struct pfs_file *pfs_file_find(const struct pfs_content *content, uint64_t prime);
/* Found or made, and pinned; NULL when there is no memory. */
struct pfs_file *pfs_file_pin(struct pfs_content *content, uint64_t prime);
void pfs_file_unpin(struct pfs_content *content, struct pfs_file *file);
void pfs_file_release(struct pfs_content *content, struct pfs_file *file); /* frees it if unused */

void pfs_file_list(struct pfs_content *content, struct pfs_file *file, enum pfs_layer_name name);
void pfs_file_unlist(struct pfs_content *content, struct pfs_file *file, enum pfs_layer_name name);

/* Into, or out of and freed from, the dirty layer; the file is listed there. */
void pfs_file_add(struct pfs_content *content, struct pfs_file *file, struct pfs_chunk *chunk);
void pfs_file_remove(struct pfs_content *content, struct pfs_file *file, struct pfs_chunk *chunk);
/* Everything from chunk n on is a hole now. */
void pfs_file_cut(struct pfs_content *content, struct pfs_file *file, uint64_t n);

enum pfs_place {
	PFS_PLACE_HOLE,
	PFS_PLACE_MEMORY, /* *chunk, of kind DATA or ALLOCATED */
	PFS_PLACE_STORE,  /* what the store says */
};
enum pfs_place pfs_file_look(const struct pfs_file *file, struct pfs_chunk **chunk, uint64_t n);
/* The same without the dirty chunk of that number. */
enum pfs_place pfs_file_look_below(const struct pfs_file *file, struct pfs_chunk **chunk,
				   uint64_t n);

/* ---- content.c ---- */

/* The first present chunk with first <= n < end, and its length; -ENOENT.  No lock. */
PFS_MUST_CHECK int pfs_content_next(struct pfs_tree *tree, uint64_t *n, uint32_t *len,
				    uint64_t prime, uint64_t first, uint64_t end);

/* Whether so much more can come into the store at all, before a change that is made piece by piece:
 * -ENOSPC.  No lock. */
PFS_MUST_CHECK int pfs_content_room(struct pfs_tree *tree, uint64_t bytes);

/* What an operation has to know of a node before it begins; no lock.  -ESTALE, -EISDIR, -EINVAL
 * (no regular file). */
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
	bool locked;
	struct pfs_file *file; /* pinned */
	struct pfs_file_node node;
	/* the change */
	enum pfs_edit_kind kind;
	const uint8_t *data;
	int64_t offset;
	int64_t end_size; /* st_size after it */
	size_t length;
	uint64_t first;
	unsigned count;
	struct pfs_stored stored[PFS_EDIT_CHUNKS];
	struct pfs_chunk *ready[PFS_EDIT_CHUNKS];  /* whole chunks, filled without the lock */
	struct pfs_chunk *target[PFS_EDIT_CHUNKS]; /* what will be changed; fresh ones are owned */
	bool fresh[PFS_EDIT_CHUNKS];
	int64_t blocks; /* by how much st_blocks changes */
	/* a truncation, and a copy of the original */
	int64_t new_size;
	bool copied;
	int64_t copied_blocks, copied_size; /* the size: of a row */
};

/* Begins: on success the content lock is held and the file is nobody else's.  A linked file is
 * copied first, unless keep_linked.  -EAGAIN with nowait, -ENODATA, and what file_node says. */
PFS_MUST_CHECK int pfs_edit_open(struct pfs_edit *edit, struct pfs_tree *tree, uint64_t ino,
				 bool nowait, bool keep_linked);
/* Ends, on every path: frees and unlocks. */
void pfs_edit_close(struct pfs_edit *edit);

/* Sets the change: length bytes at offset, at most PFS_EDIT_SPAN. */
void pfs_edit_span(struct pfs_edit *edit, enum pfs_edit_kind kind, const void *data, int64_t offset,
		   size_t length);
/* A write's whole chunks, copied before the lock is taken. */
PFS_MUST_CHECK int pfs_edit_fill(struct pfs_edit *edit);
/* Makes everything ready, perhaps giving up the lock for a while; then apply cannot fail. */
PFS_MUST_CHECK int pfs_edit_prepare(struct pfs_edit *edit);
void pfs_edit_apply(struct pfs_edit *edit);
/* The node's row: size (-1: as it is), blocks, times; clears suid and sgid unless privileged. */
void pfs_edit_commit(struct pfs_edit *edit, int64_t size, bool privileged);

/* Gives up the content lock while the file stays this edit's.  busy_end: -ESTALE when the node is
 * gone. */
void pfs_edit_busy(struct pfs_edit *edit);
PFS_MUST_CHECK int pfs_edit_busy_end(struct pfs_edit *edit);

/* With tree->lock: mtime and ctime are now; suid and sgid go as a change of content has it. */
void pfs_node_changed(struct pfs_tree *tree, uint32_t slot, bool privileged);

/* ---- range.c ---- */

PFS_MUST_CHECK int pfs_content_prepare(struct pfs_tree *tree, uint64_t ino, int64_t size,
				       bool nowait);

/* ---- copyup.c ---- */

/* In an edit of a linked file, lock held before and after: copies the original's first `upto` bytes
 * into dirty chunks that do not count yet. */
PFS_MUST_CHECK int pfs_copyup(struct pfs_edit *edit, int64_t upto);
/* Both locks held, the content lock since pfs_copyup: the chunks count, the source does not. */
void pfs_copyup_commit(struct pfs_edit *edit, uint32_t slot, int64_t size);

/* ---- link.c ---- */

struct pfs_records *pfs_links_sources(struct pfs_tree *tree);

/* The source of a linked node; the caller drops the value.  -ENOENT: it is linked no longer;
 * -ESTALE.  No lock. */
PFS_MUST_CHECK int pfs_links_source(struct pfs_tree *tree, struct pfs_value **out, uint64_t ino);
const struct pfs_source_record *pfs_links_record(const struct pfs_value *value);
/* A value that pfs_links_record makes this of; NULL: no memory.  No lock. */
struct pfs_value *pfs_links_value(const struct pfs_source_record *record);
/* What was opened of the node, or of all folders on the way to originals, is forgotten: it may be another
 * one now.  No lock. */
void pfs_links_forget(struct pfs_tree *tree, uint64_t ino);
void pfs_links_forget_ways(struct pfs_tree *tree);
/* The file of the descriptor that pfs_links_open gave still is as the record says. */
bool pfs_links_same(const struct pfs_source_record *record, const struct stat *st);

/* The original, opened for reading and as its record says (refreshed first if it is not).  What
 * links_source says, and what opening says; -ENODATA: originals are not followed.  No lock. */
PFS_MUST_CHECK int pfs_links_open(struct pfs_tree *tree, struct pfs_fd **out, uint64_t ino);
struct pfs_fd *pfs_links_opened(struct pfs_tree *tree, uint64_t ino); /* open already, or NULL */
void pfs_links_close(struct pfs_tree *tree, struct pfs_fd *original); /* NULL is allowed */

bool pfs_links_refused(const struct pfs_tree *tree);
struct pfs_originals *pfs_links_originals(const struct pfs_tree *tree);

extern const struct pfs_part pfs_sources_part; /* records of sources take part in commits as this */

/* Of follow.c. */
struct pfs_follow_known {
	pthread_mutex_t lock;
	struct pfs_follow_state state; /* protected by lock */
};
struct pfs_follow_known *pfs_links_follow_known(const struct pfs_tree *tree);

#endif
