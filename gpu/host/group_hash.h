/* SPDX-License-Identifier: MIT */
/* gpu/host/group_hash.h - a hash table of groups, by the numbers of their keys. */
#ifndef PFS_GPU_HOST_GROUP_HASH_H
#define PFS_GPU_HOST_GROUP_HASH_H

#include "base/hash.h"
#include "gpu/host/group.h"

struct pfs_group_hash {
	const struct pfs_grouping *grouping;
	struct pfs_group_table *groups;
	uint32_t *slots; /* group + 1; 0: free */
	size_t n_slots;
	size_t before;	 /* groups before that are not in the slots, and have no keys here */
	uint64_t *keys;	 /* by group */
	size_t capacity; /* of keys */
	size_t cleared;	 /* groups, at least those in use: what is kept for others is undefined */
};

/* Makes the next n groups, for which there is room, empty. Few are at a time, so that they are in
 * the cache when tuples are added. */
void pfs_group_hash_clear(struct pfs_group_hash *t, size_t n);
void pfs_group_hash_free(struct pfs_group_hash *t); /* but for the groups; {0} is allowed */

/* Returns the group of the key, which a tuple at `at` has; there is room for one more, which is
 * empty. */
static inline uint32_t pfs_group_hash_find(struct pfs_group_hash *t, uint64_t key, uint32_t at)
{
	const struct pfs_keys *keys = &t->grouping->keys;
	size_t slot = pfs_hash_number(key, keys->seed) & (t->n_slots - 1);
	uint32_t group;

	for (; t->slots[slot]; slot = (slot + 1) & (t->n_slots - 1)) {
		group = t->slots[slot] - 1;
		if (t->keys[group - t->before] == key &&
		    (keys->exact || pfs_keys_equal(keys, t->groups->first[group], keys, at)))
			return group;
	}
	group = (uint32_t)t->groups->n++;
	t->slots[slot] = group + 1;
	t->keys[group - t->before] = key;
	t->groups->first[group] = at;
	return group;
}

/* ---- tuples whose groups lie near each other ---- */

/* Holds what each worker has made of the tuples that it has met: a group may be there several
 * times. */
struct pfs_near_groups {
	const struct pfs_grouping *grouping;
	unsigned n; /* workers */
	struct pfs_near_worker {
		struct pfs_group_table table;
		struct pfs_group_hash hash;
		size_t since;	   /* groups before that are not in the slots any more */
		size_t expected;   /* groups */
		uint64_t seen;	   /* tuples */
		uint64_t before;   /* groups of the workers before */
		uint8_t apart[64]; /* workers write, each in its own cache line */
	} * of_worker;
	uint64_t n_groups; /* of all workers */
	/* Groups that may be there several times, by a bit of each key: */
	uint64_t *is_repeated; /* a bit for each group */
	uint32_t *repeated;    /* their numbers, ascending */
	uint64_t *before; /* by piece of PFS_PIECE groups: how many of them earlier pieces have */
	uint64_t n_repeated;
};

/* -ENOTUNIQ: tuples of a group do not lie near each other; -ENOMEM, and what conditions say. */
PFS_MUST_CHECK int pfs_near_groups_make(struct pfs_near_groups *near, const struct pfs_grouping *g);
/* Tells the worker that has group `at`, which is not one before `worker`. */
static inline const struct pfs_near_worker *pfs_near_worker_of(const struct pfs_near_worker *worker,
							       uint64_t at)
{
	while (at >= worker->before + worker->table.n)
		worker++;
	return worker;
}
/* Copies the groups that are there once to those of `to`, from 0 on, which has room for them. */
PFS_MUST_CHECK int pfs_near_groups_copy(const struct pfs_near_groups *near,
					struct pfs_group_table *to);
void pfs_near_groups_free(struct pfs_near_groups *near, const struct pfs_grouping *g);

#endif
