/* SPDX-License-Identifier: MIT */
/* fs/nodes/index_impl.h - what the files behind index.h share: index.c (what has changed, making an
 * index), index_walk.c, and index_names.c (what is different where the values are names).
 *
 * Each value has a key, a number that gives its order: an integer is its own key, a name's is its
 * first 8 bytes, so that names with the same key are compared. */
#ifndef PFS_FS_NODES_INDEX_IMPL_H
#define PFS_FS_NODES_INDEX_IMPL_H

#include <endian.h>
#include <string.h>

#include "base/checked.h"
#include "base/radix.h"
#include "fs/image/feed.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/nodes/index.h"
#include "fs/tree/tree_impl.h"
#include "gpu/table.h"

#define PFS_INDEX_STEP	 16u /* one of so many slots has its key kept beside it */

struct pfs_index_column {
	size_t n;
	uint32_t *slot;
	/* The keys of slot[0], slot[STEP], ... as they were when the index was made. */
	uint64_t *sample;
};

/* Lists what has changed, in the order of values, up to a cursor. */
struct pfs_index_fresh {
	atomic_uint users;
	uint64_t cursor;
	size_t n;
	struct pfs_keyed items[];
};

/* Indexes and what has changed since the first of them was begun. */
struct pfs_index_tracked {
	atomic_uint users;
	/* Written with tree->lock held for reading and the indexes' lock, before anybody walks at
	 * that epoch; so a walk reads it without the latter. */
	struct pfs_feed_follower follower;
	uint64_t last;	 /* the cursor after the last change of columns that they are made of */
	uint64_t *stale; /* by slot: is in `changed` */
	size_t words;
	uint32_t *changed;
	size_t n_changed, capacity, most;
	struct pfs_index_tracked
		*of; /* of a frozen tree: whose columns it has, too; NULL: nobody's */
	bool is_lent[PFS_FIELD_COUNT]; /* by that */
	/* Protected by the indexes' lock. */
	struct pfs_index_column *columns[PFS_FIELD_COUNT];
	struct pfs_index_fresh *fresh[PFS_FIELD_COUNT];
};

struct pfs_indexes {
	pthread_mutex_t lock;
	pthread_mutex_t making; /* one at a time; taken before tree->lock */
	/* NULL: none. Written with tree->lock held for reading and `lock`. */
	_Atomic(struct pfs_index_tracked *) now;
	atomic_uint missed[PFS_FIELD_COUNT];
	atomic_bool due;		 /* one is to be made */
	uint32_t slots[PFS_FEED_LOOKED]; /* that changed next; protected by lock */
};

/* Returns the indexes as they are at the tree's epoch, after PFS_FEED_LOOKED changes at most. NULL:
 * there are none, too much has changed, or, *more, there are more changes to be read in other
 * holds. The tree is held, and the indexes' lock. */
struct pfs_index_tracked *pfs_index_at_epoch(struct pfs_tree *tree, bool *more);

void pfs_index_unref(struct pfs_index_tracked *tracked);	   /* NULL is allowed, both */
void pfs_index_unref_fresh(struct pfs_index_fresh *fresh);

static inline bool pfs_index_is_stale(const struct pfs_index_tracked *tracked, uint32_t slot)
{
	return slot / 64 < tracked->words && tracked->stale[slot / 64] >> slot % 64 & 1;
}

/* ---- keys ---- */

static inline uint64_t pfs_index_number_key(int64_t value)
{
	return (uint64_t)value ^ UINT64_C(1) << 63;
}

/* Returns the key of the name's 8 bytes from `at` on; what follows the name counts as NUL, which is
 * in no name. */
static inline uint64_t pfs_index_name_key(const char *name, size_t len, size_t at)
{
	uint64_t key;

	if (at >= len)
		return 0;
#ifdef __SANITIZE_THREAD__ /* what lies behind a name may change while a frozen tree is read; it is masked */
	key = 0;
	memcpy(&key, name + at, PFS_MIN(len - at, sizeof(key)));
#else
	memcpy(&key, name + at, sizeof(key)); /* PFS_NAME_SLACK */
#endif
	key = be64toh(key);
	return len - at < sizeof(key) ? key & ~(UINT64_MAX >> 8 * (len - at)) : key;
}

/* As pfs_index_name_key from 0, of a text that is no name: its memory may end with it. */
static inline uint64_t pfs_index_text_key(const char *text, size_t len)
{
	char bytes[sizeof(uint64_t)] = {0};

	memcpy(bytes, text, len < sizeof(bytes) ? len : sizeof(bytes));
	return pfs_index_name_key(bytes, sizeof(bytes), 0);
}

/* Returns the key of the node's value. */
static inline uint64_t pfs_index_key(const struct pfs_tree *tree, enum pfs_field field,
				     uint32_t slot)
{
	const char *name;
	size_t len;

	if (field != PFS_FIELD_NAME)
		return pfs_index_number_key(pfs_scan_integer(tree, field, slot));
	name = pfs_names_get(tree->image.names, tree->image.name[slot], &len);
	return pfs_index_name_key(name, len, 0);
}

/* ---- index_names.c ---- */

/* Sorts items, which have the keys of their nodes' names and are sorted by these, by the names
 * where keys are equal; equal names stay in their order, and the keys are lost. holds: the tree is
 * held throughout; if not, it is held in between, for a part of them at a time, and names that
 * change meanwhile stand anywhere among those with their key. -ENOMEM. */
PFS_MUST_CHECK int pfs_index_sort_names(struct pfs_tree *tree, struct pfs_keyed *items, size_t n,
					bool holds);

/* Compares a slot's name with a text, by memcmp, the shorter one first. */
int pfs_index_compare_name(const struct pfs_image *image, uint32_t slot, const char *text,
			   size_t len);

#endif
