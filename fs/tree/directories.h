/* SPDX-License-Identifier: MIT */
/* fs/tree/directories.h - a hash table from paths of directories to their slots, for resolving many
 * paths. A lookup compares the path's bytes, so a hash that two paths share gives no wrong answer.
 *
 * A table is right for one value of image.access, which rises when a directory changes its place,
 * mode or owner; then the next pfs_directories_take makes a new table. It also makes a new one when
 * the memory for paths, which is about what each directory needs once, is used up.
 *
 * Threads: any number look up and add at once; an entry never changes. pfs_directories_take is
 * called with tree->lock held for reading; the caller may use the table until it gives it back or
 * releases the lock, whichever comes first. */
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
	uint32_t slot; /* of the directory */
	uint32_t top;  /* the slot at which the path begins; PFS_NO_SLOT: it is absolute */
	uint32_t len;
	char bytes[];
};

/* A bucket fills a cache line. A cell has the upper half of a path's hash, and in the lower half
 * the path's offset in `paths`, in units of 8 bytes; 0: the cell is free. */
struct pfs_directory_bucket {
	_Atomic uint64_t cells[8];
};

struct pfs_directories {
	struct pfs_reserve memory; /* of the buckets */
	struct pfs_directory_bucket *buckets;
	uint64_t mask; /* hash & mask is a bucket's number */
	char *paths;
	size_t paths_size;	  /* bytes */
	atomic_size_t paths_used; /* greater than paths_size: there is no room left */
	uint64_t access;	  /* the image.access for which the table is right */
	unsigned references;	  /* protected by the lock of struct pfs_directory_tables */
};

/* Makes room for the tree's present table, of which there is none yet. -ENOMEM. */
PFS_MUST_CHECK int pfs_directories_create(struct pfs_tree *tree);
void pfs_directories_destroy(struct pfs_tree *tree);

/* Returns a table for the present image.access; NULL: there is no memory for one. */
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

/* Returns a path whose hash has the same upper half, or NULL; the caller compares its bytes. */
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

/* Copies the path into the table, unless there is no room or the bucket has such a hash already.
 * The path's bytes are at `bytes`, not behind `path`. */
void pfs_directory_add(struct pfs_directories *table, uint64_t hash,
		       const struct pfs_directory_path *path, const char *bytes);

#endif
