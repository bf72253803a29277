/* SPDX-License-Identifier: MIT */
/* fs/nodes/index_paths_impl.h - what the files behind index_paths.h share: index_paths.c (life,
 * changes, making one) and index_paths_walk.c (ranges). */
#ifndef PFS_FS_NODES_INDEX_PATHS_IMPL_H
#define PFS_FS_NODES_INDEX_PATHS_IMPL_H

#include <pthread.h>

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
	/* Written with tree->lock for writing, or with it for reading by who makes it or has `lock`. */
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
	bool has_thread; /* protected by lock */
	atomic_bool thread_ended;
	pthread_t thread;
	_Atomic uint64_t made, asked;
};

/* Gets the index as it follows the tree, which is held; to be given back by unref. -ENOENT. */
PFS_MUST_CHECK int pfs_path_entries_take(struct pfs_tree *tree, struct pfs_path_entries **out);
void pfs_path_entries_unref(struct pfs_path_entries *entries); /* NULL is allowed */

#define PFS_PATH_KEY_SIZE (4u + PFS_NAME_MAX + 1u)

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
