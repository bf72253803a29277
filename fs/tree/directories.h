/* SPDX-License-Identifier: MIT */
/* fs/tree/directories.h - where paths of directories lead, for whoever resolves many: a table by
 * hash, verified by the path's bytes.
 *
 * A table holds for the image.access that it was made at: whatever changes a directory's place
 * makes it stale, and it is replaced. It has room for each directory once, and is given up when
 * that is full.
 *
 * Threads: any number look and add at once; nothing that is in a table changes.
 * pfs_directories_take is called with tree->lock held for reading; what it returns is valid until
 * it is returned or the lock is let go, whichever comes first. */
#ifndef PFS_FS_TREE_DIRECTORIES_H
#define PFS_FS_TREE_DIRECTORIES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/reserve.h"

struct pfs_tree;

#define PFS_DIRECTORY_PATH_MAX 1000u /* bytes; longer ones are walked */

struct pfs_directory_path {
	uint32_t slot, top; /* top: that it begins at; PFS_NO_SLOT: it is absolute */
	uint32_t len;
	char bytes[]; /* as it is written in paths */
};

/* A cell: the hash's upper half, and the path's place in units of 8 bytes; 0: free. */
struct pfs_directory_bucket { /* a cache line */
	_Atomic uint64_t cells[8];
};

struct pfs_directories {
	struct pfs_reserve memory;
	struct pfs_directory_bucket *buckets; /* in it */
	uint64_t mask; /* of bucket numbers */
	char *paths;
	size_t paths_size;
	atomic_size_t paths_used; /* past the size: it is full */
	uint64_t access;
	unsigned references; /* protected by the tables' lock */
};

PFS_MUST_CHECK int pfs_directories_create(struct pfs_tree *tree);
void pfs_directories_destroy(struct pfs_tree *tree);

/* Returns the tree's table as it is now; NULL: there is no memory for one. */
struct pfs_directories *pfs_directories_take(struct pfs_tree *tree);
/* Gives a table back; NULL is allowed. */
void pfs_directories_return(struct pfs_tree *tree, struct pfs_directories *table);

static inline uint64_t pfs_directory_hash(const char *bytes, size_t len)
{
	const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t hash = len, word;

	for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = (hash ^ word) * factor;
		hash ^= hash >> 32;
	}
	word = 0;
	if (len)
		memcpy(&word, bytes, len);
	hash = (hash ^ word) * factor;
	return hash ^ hash >> 29;
}

static inline struct pfs_directory_bucket *pfs_directory_bucket(const struct pfs_directories *table,
								uint64_t hash)
{
	return &table->buckets[hash & table->mask];
}

/* Returns a path that may be the hash's, or NULL; the caller compares its bytes. */
static inline const struct pfs_directory_path *
pfs_directory_find(const struct pfs_directories *table, uint64_t hash)
{
	struct pfs_directory_bucket *bucket = pfs_directory_bucket(table, hash);

	for (unsigned i = 0; i < 8; i++) {
		uint64_t cell = atomic_load_explicit(&bucket->cells[i], memory_order_acquire);

		if (cell == 0)
			return NULL;
		if (cell >> 32 == hash >> 32)
			return (const struct pfs_directory_path *)(table->paths +
								   (cell & UINT32_MAX) * 8);
	}
	return NULL;
}

/* Copies the path into the table, if there is room and nothing of that hash. `path` has no bytes; they are
 * `bytes`. */
void pfs_directory_add(struct pfs_directories *table, uint64_t hash,
		       const struct pfs_directory_path *path, const char *bytes);

#endif
