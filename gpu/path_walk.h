/* SPDX-License-Identifier: MIT */
/* gpu/path_walk.h - how a path is followed over the columns of a tree, from component to component,
 * as kernels do it. Whoever walks finds the entries of the index of names himself.
 *
 * It leads where fs/tree/resolve.h says, for somebody who sees every node. */
#ifndef PFS_GPU_PATH_WALK_H
#define PFS_GPU_PATH_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/both.h"
#include "base/siphash.h"
#include "base/words.h"

#define PFS_PATH_NOWHERE  0xffffffffu
#define PFS_PATH_NAME_MAX 255u

/* The columns, by slot, and the heap of names (struct pfs_names_view), in the memory of whoever
 * walks. */
struct pfs_path_columns {
	const uint8_t *heap;
	const uint32_t *place;
	const uint64_t *prime; /* a directory's is below 2^32 */
	const uint32_t *parent;
	uint64_t seed;	    /* of the names' hashes */
	uint32_t hash_bits; /* the lower bits of a key of the index; the others are the parent's
			       slot */
	uint32_t place_shift;
	uint32_t n_slots;
	uint32_t root, top; /* where absolute and relative paths begin; top: or PFS_PATH_NOWHERE */
};

struct pfs_path_way {
	const char *at, *end; /* what is left of the path */
	const char *name;     /* the component that is to be looked up */
	uint32_t len;	      /* of the name */
	uint32_t slot;	      /* where it is; or PFS_PATH_NOWHERE */
};

PFS_BOTH struct pfs_path_way pfs_path_begin(const struct pfs_path_columns *c, const char *path,
					    uint32_t len)
{
	struct pfs_path_way walk;

	walk.at = walk.name = path;
	walk.end = path + len;
	walk.len = 0;
	walk.slot = PFS_PATH_NOWHERE;
	if (len)
		walk.slot = *path == '/' ? c->root : c->top;
	return walk;
}

/* Goes on to the next component that is to be looked up in the directory walk->slot. Returns false
 * if the walk is over. */
PFS_BOTH bool pfs_path_go_on(struct pfs_path_way *walk, const struct pfs_path_columns *c)
{
	while (walk->slot != PFS_PATH_NOWHERE && walk->at != walk->end) {
		if (walk->slot >= c->n_slots || c->prime[walk->slot] >> 32) {
			walk->slot = PFS_PATH_NOWHERE; /* "file/", too */
			break;
		}
		if (*walk->at == '/') {
			walk->at++;
			continue;
		}
		walk->name = walk->at;
		while (walk->at != walk->end && *walk->at != '/')
			walk->at++;
		if (walk->at - walk->name > (ptrdiff_t)PFS_PATH_NAME_MAX) {
			walk->slot = PFS_PATH_NOWHERE;
			break;
		}
		walk->len = (uint32_t)(walk->at - walk->name);
		if (walk->len > 2 || walk->name[0] != '.' || walk->name[walk->len - 1] != '.')
			return true;
		if (walk->len == 2 && walk->slot != c->root)
			walk->slot = c->parent[walk->slot];
	}
	return false;
}

/* Returns the key that the component has in the index of names. */
PFS_BOTH uint64_t pfs_path_key(const struct pfs_path_way *walk, const struct pfs_path_columns *c)
{
	uint64_t hash =
		pfs_siphash(walk->name, walk->len, c->seed, ~c->seed) >> (64 - c->hash_bits);

	return (uint64_t)walk->slot << c->hash_bits | hash;
}

/* Returns true if the slot, which the index has with that key, has that name. */
PFS_BOTH bool pfs_path_is_named(const struct pfs_path_way *walk, const struct pfs_path_columns *c,
				uint32_t slot)
{
	const uint8_t *name;

	if (slot >= c->n_slots)
		return false;
	name = c->heap + ((uint64_t)c->place[slot] << c->place_shift);
	return *name == walk->len && pfs_same_bytes(name + 1, walk->name, walk->len);
}

#endif
