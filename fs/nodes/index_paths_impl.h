/* SPDX-License-Identifier: MIT */
/* fs/nodes/index_paths_impl.h - what the files behind index_paths.h share: index_paths.c (life,
 * changes, making one), index_paths_walk.c (ranges) and index_paths_frozen.c (frozen trees). */
#ifndef PFS_FS_NODES_INDEX_PATHS_IMPL_H
#define PFS_FS_NODES_INDEX_PATHS_IMPL_H

#include <pthread.h>

#include "fs/image/feed.h"
#include "fs/nodes/index_paths.h"
#include "fs/tree/tree_impl.h"
#include "gpu/prefix.h"

/* Keys and their slots, as many as there are. */
struct pfs_path_keys {
	uint8_t *bytes;
	uint64_t *at; /* n + 1 */
	uint64_t *slots;
	size_t n, size, capacity, at_capacity, slots_capacity;
};

struct pfs_path_change {
	uint32_t slot;
	size_t first_key; /* of those that it had */
};

/* An index, and what has changed that it has not been told of. */
struct pfs_path_entries {
	atomic_uint users;
	struct pfs_prefix *prefix;
	pthread_mutex_t lock; /* whoever applies changes, with the tree held */
	atomic_bool is_made;
	atomic_bool is_broken; /* memory was short: it is wrong */
	/* Written with tree->lock for writing, or with it for reading by who makes it or has
	 * `lock`. */
	uint32_t made_to; /* changes of slots below it are noted */
	uint64_t *noted;  /* a bit a slot */
	size_t words;
	struct pfs_path_change *changes;
	size_t n_changes, capacity, most;
	struct pfs_path_keys old; /* keys that those had */
};

struct pfs_path_index {
	pthread_mutex_t lock;
	struct pfs_path_entries *now; /* NULL: none; protected by lock */
	struct pfs_path_entries *given_up; /* to be freed; NULL: none; protected by lock */
	atomic_bool is_watching; /* there is one now, for watchers, who ask before they take it */
	atomic_bool is_wanted, stop;
	atomic_uint missed;
	pthread_mutex_t making; /* one at a time; taken before tree->lock */
	atomic_uint_least64_t too_many; /* nodes, whose index was found too large */
	bool has_thread; /* protected by lock */
	atomic_bool thread_ended;
	pthread_t thread;
	_Atomic uint64_t made, asked;
};

/* Gets the index as it follows the tree, which is held; to be given back by unref. -ENOENT. */
PFS_MUST_CHECK int pfs_path_entries_take(struct pfs_tree *tree, struct pfs_path_entries **out);
void pfs_path_entries_unref(struct pfs_path_entries *entries); /* NULL is allowed */

/* ---- index_paths_frozen.c ---- */

/* What a frozen tree has of an index: the live tree's for nodes whose place has not changed since,
 * and a prefix tree of its own for the others. */
struct pfs_path_frozen {
	struct pfs_tree *tree, *live;
	pthread_mutex_t lock; /* guards all that follows; taken before the live tree's lock */
	struct pfs_path_entries *entries; /* the live tree's; NULL: not asked for yet */
	struct pfs_prefix *own;		  /* NULL until it has a key */
	struct pfs_account *account; /* counts that, and what is below; NULL as long as `entries` */
	uint64_t charged;	     /* bytes */
	struct pfs_feed_follower follower;
	uint64_t *changed; /* a bit a slot; NULL as long as `entries` */
	size_t n_changed;
	/* Places of nodes from each of these slots on, `run` of them, may have changed next. */
	uint32_t *next, run;
	size_t n_next;
	int error; /* memory was short: the index is of no use any more, and only `entries` is
		    * left */
	atomic_bool is_lost; /* a question that had begun could not go on therefore */
};

/* Begins a piece of a question: until its end, nobody changes the keys. opens: the question begins,
 * or can still be answered without the index. The live tree is not held. -ENOMEM; if it opens,
 * -ENOENT instead: there is no index, too much has changed, or memory is short. */
PFS_MUST_CHECK int pfs_path_frozen_begin(struct pfs_path_frozen *frozen, bool opens);
void pfs_path_frozen_end(struct pfs_path_frozen *frozen);

/* Returns true if the live index's keys of the slot say nothing of the frozen tree. */
static inline bool pfs_path_frozen_has_changed(const struct pfs_path_frozen *frozen, uint64_t slot)
{
	return slot >= frozen->tree->image.end || frozen->changed[slot / 64] >> slot % 64 & 1;
}

/* ---- keys ---- */

/* Adds the keys of a slot's node; it has none if it is not live, and the root has none. -ENOMEM. */
PFS_MUST_CHECK int pfs_path_keys_add(struct pfs_path_keys *keys, const struct pfs_image *image,
				     uint32_t slot);
void pfs_path_keys_cut(struct pfs_path_keys *keys, size_t n); /* the first n stay */
void pfs_path_keys_finish(struct pfs_path_keys *keys);

/* Makes a prefix tree as the index is one. -ENOMEM. */
PFS_MUST_CHECK int pfs_path_prefix_create(struct pfs_prefix **out);
void pfs_path_prefix_close(struct pfs_prefix *prefix); /* NULL is allowed */
PFS_MUST_CHECK int pfs_path_keys_insert(struct pfs_prefix *prefix,
					const struct pfs_path_keys *keys);
/* Returns true if the tree has all of the keys, each with its slot. */
bool pfs_path_keys_are_in(struct pfs_prefix *prefix, const struct pfs_path_keys *keys);

/* For a slash, and one byte more than any key has. */
#define PFS_PATH_KEY_SIZE (4u + PFS_NAME_MAX + 2u)

/* Makes a key as the index has it, of bytes of a name or of more. Returns its length. */
static inline size_t pfs_path_key(uint8_t out[PFS_PATH_KEY_SIZE], uint32_t directory,
				  const char *bytes, size_t len)
{
	const uint8_t head[4] = {(uint8_t)(directory >> 24), (uint8_t)(directory >> 16),
				 (uint8_t)(directory >> 8), (uint8_t)directory};

	/* Nothing in the index is longer than that, and what is begins otherwise. */
	len = len < PFS_PATH_KEY_SIZE - 4 ? len : PFS_PATH_KEY_SIZE - 4;
	memcpy(out, head, 4);
	memcpy(out + 4, bytes, len);
	return len + 4;
}

#endif
