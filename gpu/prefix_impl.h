/* SPDX-License-Identifier: MIT */
/* gpu/prefix_impl.h - for implementers: a prefix tree as the host has it, and the family of functions of
 * a device that has copies.
 *
 * All that an index is lies in *sections*, each one piece of memory that grows without moving and holds
 * no addresses but offsets.  Its pages have a mark each when they changed, for the device's copy. */
#ifndef PFS_GPU_PREFIX_IMPL_H
#define PFS_GPU_PREFIX_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/reserve.h"
#include "gpu/engine_impl.h"
#include "gpu/prefix.h"
#include "gpu/prefix_walk.h"

#define PFS_PREFIX_PAGE_BITS 16 /* 64 KiB */
#define PFS_PREFIX_PAGE	     ((size_t)1 << PFS_PREFIX_PAGE_BITS)
#define PFS_PREFIX_BLOCK_MAX 1024u /* partitions: their results fit into shared memory */
#define PFS_PREFIX_BATCH     65536u /* keys that are made ready at once */
#define PFS_PREFIX_KEY_SIZES ((PFS_PREFIX_KEY_MAX + PFS_PREFIX_RECORD_HEAD) / 8 + 2) /* units of 8 bytes */
#define PFS_PREFIX_NODE_SIZES 68u /* COMPACT, in units: to the 266 words of a node with 257 of them */

enum pfs_prefix_section_name {
	PFS_PREFIX_WORDS,
	PFS_PREFIX_GROUPS,
	PFS_PREFIX_BLOCKS,
	PFS_PREFIX_RECORDS, /* keys */
	PFS_PREFIX_PARTS,   /* from here on the host's only */
	PFS_PREFIX_SPARES,
	PFS_PREFIX_OPEN,
	PFS_PREFIX_ENTRIES,
	PFS_PREFIX_SECTIONS,
	PFS_PREFIX_ON_DEVICE = PFS_PREFIX_PARTS,
};

struct pfs_prefix_section {
	struct pfs_reserve memory;
	uint64_t used;		   /* bytes */
	struct pfs_reserve stale; /* a byte a page: changed since a device had it */
};

struct pfs_prefix_part { /* by partition */
	uint32_t count;	 /* words of it that hold an item or a partition */
	uint32_t block;
};

struct pfs_prefix_spare { /* by group */
	uint32_t lanes;	  /* a bit for each partition in use */
	uint32_t next;	  /* group in the same list */
};

struct pfs_prefix_payload { /* by place; number 0 ends the list at both sides */
	uint64_t payload;
	uint32_t next, previous;
	uint32_t item; /* PFS_PREFIX_NONE: the place is free, and next is the next free one */
	uint32_t unused;
};

/* Describes the sections that a tree is written as, and is written before them. */
struct pfs_prefix_head {
	struct pfs_prefix_shape shape;
	uint32_t first_place; /* a free one */
	/* Inner, last; COMPACT: of 1, 2, ... units.  0 ends a list, as below. */
	uint32_t free_nodes[PFS_PREFIX_NODE_SIZES];
	uint32_t free_group, free_block;
	uint32_t free_records[PFS_PREFIX_KEY_SIZES];
	uint64_t n_keys, n_payloads, n_nodes, n_partitions, n_blocks;
	uint64_t removals;
};

/* A node on the way to a key. */
struct pfs_prefix_place {
	uint32_t node;
	uint32_t partition;
	uint32_t index; /* 0: the end word; else a sub-key and 1; PFS_PREFIX_BEFORE: before both */
};
#define PFS_PREFIX_BEFORE UINT32_MAX

/* A way down: the step of number i is at level i. */
struct pfs_prefix_path {
	struct pfs_prefix_place *steps;
	size_t n, capacity;
};

struct pfs_prefix_tree {
	struct pfs_prefix_head head;
	struct pfs_prefix_section sections[PFS_PREFIX_SECTIONS];
	struct pfs_prefix_view view;
	/* Whole units.  Of an inner node, of one in the last level; COMPACT: of each size. */
	uint32_t node_words[PFS_PREFIX_NODE_SIZES];
	struct pfs_prefix_path path;  /* a change's */
	uint64_t changes; /* batches */
};

/* The partitions of each block, its root first: list[first[block]] on; and, by partition, its place
 * there. */
struct pfs_prefix_blocks {
	uint32_t *first, *list, *place, *block;
	uint32_t n_blocks, n_partitions; /* numbers, free ones too */
};

struct pfs_prefix_copy; /* a device's */

struct pfs_prefix {
	/* Held for reading by questions, for writing by changes; guards everything but what follows. */
	pthread_rwlock_t lock;
	struct pfs_prefix_tree tree;
	pthread_mutex_t blocks_lock;
	struct pfs_prefix_blocks blocks; /* protected by blocks_lock until made, then by lock */
	bool has_blocks;
	pthread_mutex_t copy_lock;
	struct pfs_prefix_copy *copy; /* protected by copy_lock */
	bool no_copy;		      /* the device was short of memory, which has been said */
	atomic_uint_fast64_t asked_on_device;
};

/* A batch of keys, ready: integers with the highest byte first. */
struct pfs_prefix_texts {
	const struct pfs_prefix_text *texts;
	size_t n;
	enum pfs_prefix_traversal traversal;
};

/* A device's functions. They are called with the index's lock held for reading, and copy_lock.
 * items[i] is set to an item with PFS_PREFIX_ITEM, or to 0; *unsure: the host has to compare the
 * keys. */
struct pfs_prefix_family {
	int (*find)(struct pfs_operator_backend *b, const struct pfs_run *run,
		    struct pfs_prefix *index, uint32_t *items, bool *unsure,
		    const struct pfs_prefix_texts *keys);
	void (*drop)(struct pfs_operator_backend *b, struct pfs_prefix_copy *copy);
	int (*find_name)(struct pfs_operator_backend *b, const struct pfs_run *run, uint32_t *found,
			 const char *names, size_t n, const char *name);
};

/* ---- prefix_section.c ---- */

PFS_MUST_CHECK int pfs_prefix_sections_open(struct pfs_prefix_tree *tree);
void pfs_prefix_sections_close(struct pfs_prefix_tree *tree);
/* Room for `size` more bytes.  -ENOMEM; -EOVERFLOW: the section is full. */
PFS_MUST_CHECK int pfs_prefix_reserve(struct pfs_prefix_tree *tree,
				      enum pfs_prefix_section_name name, size_t size);
/* Takes bytes for which there is room: where they begin.  They are 0. */
uint64_t pfs_prefix_take(struct pfs_prefix_tree *tree, enum pfs_prefix_section_name name, size_t size);

static inline void *pfs_prefix_base(const struct pfs_prefix_tree *tree,
				    enum pfs_prefix_section_name name)
{
	return tree->sections[name].memory.base;
}

/* The byte at this offset, and `size` from there on, are about to change. */
static inline void pfs_prefix_touch(struct pfs_prefix_tree *tree, enum pfs_prefix_section_name name,
				    uint64_t offset, size_t size)
{
	uint8_t *stale = tree->sections[name].stale.base;

	for (uint64_t p = offset >> PFS_PREFIX_PAGE_BITS;
	     p <= (offset + size - 1) >> PFS_PREFIX_PAGE_BITS; p++)
		stale[p] = 1;
}

/* Returns an item's record to be changed, its key apart. Whatever else it has is the host's alone,
 * so no page is touched for its sake. */
static inline struct pfs_prefix_record *pfs_prefix_record_of(const struct pfs_prefix_tree *tree,
							     uint32_t item)
{
	uint8_t *records = pfs_prefix_base(tree, PFS_PREFIX_RECORDS);

	return (struct pfs_prefix_record *)(records + (uint64_t)(item & ~PFS_PREFIX_ITEM) * 8);
}

static inline struct pfs_prefix_payload *pfs_prefix_payload_at(const struct pfs_prefix_tree *tree,
							       uint32_t place)
{
	return (struct pfs_prefix_payload *)pfs_prefix_base(tree, PFS_PREFIX_ENTRIES) + place;
}

static inline uint32_t pfs_prefix_n_groups(const struct pfs_prefix_tree *tree)
{
	return (uint32_t)(tree->sections[PFS_PREFIX_GROUPS].used / sizeof(struct pfs_prefix_group));
}

/* Partition numbers, free ones too. */
static inline uint32_t pfs_prefix_n_partitions(const struct pfs_prefix_tree *tree)
{
	return pfs_prefix_n_groups(tree) * tree->view.width;
}

static inline struct pfs_prefix_text pfs_prefix_key_of(const struct pfs_prefix_tree *tree,
						       uint32_t item)
{
	const struct pfs_prefix_record *r = pfs_prefix_record_of(tree, item);

	return (struct pfs_prefix_text){pfs_prefix_bytes_of(r), r->len,
					pfs_prefix_levels_of(r->len, tree->view.bits)};
}

/* -ENAMETOOLONG and -EINVAL as gpu/prefix.h says.  pfs_prefix_texts_make: keys from..from + n of a batch;
 * `texts` has room for them, and `integers` for 8 bytes each. */
PFS_MUST_CHECK int pfs_prefix_check_keys(const struct pfs_prefix_tree *tree,
					 const struct pfs_prefix_keys *keys);
void pfs_prefix_texts_make(const struct pfs_prefix_tree *tree, struct pfs_prefix_text *texts,
			   uint64_t *integers, const struct pfs_prefix_keys *keys, size_t from,
			   size_t n);

/* ---- host/prefix_tree.c: the layouts with partitions; host/prefix_compact.c: the other ----
 *
 * insert: the key is not there; what it needs has been reserved by `reserve`.
 * remove: the key is there. */

PFS_MUST_CHECK int pfs_prefix_tree_create(struct pfs_prefix_tree *tree);
/* *word is the key's, if *equal; else of the first key that is greater, or 0.  The path is anew. */
PFS_MUST_CHECK int pfs_prefix_tree_seek(const struct pfs_prefix_tree *tree, uint32_t *word, bool *equal,
					struct pfs_prefix_path *path,
					const struct pfs_prefix_text *key);
PFS_MUST_CHECK int pfs_prefix_tree_reserve(struct pfs_prefix_tree *tree,
					   const struct pfs_prefix_text *key);
void pfs_prefix_tree_insert(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
			    uint32_t item);
PFS_MUST_CHECK int pfs_prefix_tree_remove(struct pfs_prefix_tree *tree,
					  const struct pfs_prefix_text *key);
/* Nodes within their section, counts, each partition reached once.  -EUCLEAN, logged. */
PFS_MUST_CHECK int pfs_prefix_tree_verify(const struct pfs_prefix_tree *tree);

/* Tells where in a compact tree a key belongs. */
struct pfs_prefix_spot {
	uint32_t *word;	     /* that leads to what it parts from: a node, or a key */
	uint32_t level;	     /* where it parts from the leaf's key */
	bool is_free;	     /* the node at *word gets it; otherwise a new one before it does */
	bool is_less, equal; /* than the leaf's key */
	uint32_t leaf;	     /* the key itself or one next to it; 0: the tree is empty */
};

void pfs_prefix_compact_locate(const struct pfs_prefix_tree *tree, struct pfs_prefix_spot *spot,
			       const struct pfs_prefix_text *key);
void pfs_prefix_compact_insert(struct pfs_prefix_tree *tree, const struct pfs_prefix_spot *spot,
			       const struct pfs_prefix_text *key, uint32_t item);
PFS_MUST_CHECK int pfs_prefix_compact_reserve(struct pfs_prefix_tree *tree);
void pfs_prefix_compact_remove(struct pfs_prefix_tree *tree, const struct pfs_prefix_spot *spot);
PFS_MUST_CHECK int pfs_prefix_compact_verify(const struct pfs_prefix_tree *tree);

/* An empty node of this size (a number in node_words); what it takes has been reserved. */
uint32_t pfs_prefix_node_take(struct pfs_prefix_tree *tree, unsigned size);
void pfs_prefix_node_give(struct pfs_prefix_tree *tree, unsigned size, uint32_t node);
PFS_MUST_CHECK int pfs_prefix_path_push(struct pfs_prefix_path *path,
					const struct pfs_prefix_place *step);

static inline uint32_t *pfs_prefix_words_of(const struct pfs_prefix_tree *tree, uint32_t node)
{
	return (uint32_t *)pfs_prefix_base(tree, PFS_PREFIX_WORDS) +
	       (size_t)node * PFS_PREFIX_UNIT;
}

/* One step of a key's way down a compact tree to a key that is next to it below the node where it parts: where
 * it does not go on, the next word does, or the last one, and from there on always the side that is nearer. */
enum pfs_prefix_side { PFS_PREFIX_ON_THE_WAY, PFS_PREFIX_FIRST, PFS_PREFIX_LAST };
static inline uint32_t pfs_prefix_step_near(const struct pfs_prefix_view *v, uint8_t *side, uint32_t node,
					    const struct pfs_prefix_text *key)
{
	const uint32_t *words = v->words + (size_t)node * PFS_PREFIX_UNIT;
	uint32_t level = pfs_prefix_level(words), rank = 0, n, index;

	if (*side == PFS_PREFIX_FIRST)
		return words[v->head];
	n = pfs_prefix_rank(v, words, (1u << v->bits) + 1);
	if (*side == PFS_PREFIX_LAST)
		return words[v->head + n - 1];
	index = level >= key->n_levels ? 0 : 1 + pfs_prefix_sub_key(key, level, v->bits);
	rank = pfs_prefix_rank(v, words, index);
	if (!pfs_prefix_has(v, words, index))
		*side = rank < n ? PFS_PREFIX_FIRST : PFS_PREFIX_LAST;
	return words[v->head + (rank < n ? rank : n - 1)];
}

static inline void pfs_prefix_set(struct pfs_prefix_tree *tree, uint32_t *word, uint32_t value)
{
	uint32_t *base = pfs_prefix_base(tree, PFS_PREFIX_WORDS);

	pfs_prefix_touch(tree, PFS_PREFIX_WORDS, (uint64_t)(word - base) * sizeof(*word),
			 sizeof(*word));
	*word = value;
}

/* ---- host/prefix_lists.c: keys and payloads ---- */

PFS_MUST_CHECK int pfs_prefix_lists_create(struct pfs_prefix_tree *tree);
PFS_MUST_CHECK int pfs_prefix_lists_insert(struct pfs_prefix_tree *tree,
					   const struct pfs_prefix_text *key, uint64_t payload);
/* 1: removed; 0: not there. */
PFS_MUST_CHECK int pfs_prefix_lists_remove(struct pfs_prefix_tree *tree,
					   const struct pfs_prefix_text *key, uint64_t payload);
PFS_MUST_CHECK int pfs_prefix_lists_verify(const struct pfs_prefix_tree *tree);
/* The place of the first payload of the first key that is not less, or 0. */
PFS_MUST_CHECK int pfs_prefix_seek_place(const struct pfs_prefix_tree *tree, uint32_t *place,
					 const struct pfs_prefix_text *key);

/* ---- host/prefix.c: questions ---- */

PFS_MUST_CHECK int pfs_host_prefix_find(struct pfs_operator_backend *b, const struct pfs_run *run,
					struct pfs_prefix *index, uint32_t *items,
					const struct pfs_prefix_texts *keys);
/* Fetches into the cache, side by side, what changes of these keys will look at; the tree is a
 * compact one, and n is at most PFS_PREFIX_SIDE_BY_SIDE. */
#define PFS_PREFIX_SIDE_BY_SIDE 16u
void pfs_prefix_fetch(const struct pfs_prefix_tree *tree, const struct pfs_prefix_text *texts, size_t n);
/* The index's blocks, made if need be; valid while the lock is held. */
PFS_MUST_CHECK int pfs_prefix_blocks_get(struct pfs_prefix *index,
					 const struct pfs_prefix_blocks **out);
void pfs_prefix_blocks_forget(struct pfs_prefix *index);

/* ---- for prefix_bytes.c: an index without content of a shape that has been checked ---- */

PFS_MUST_CHECK int pfs_prefix_open_empty(const struct pfs_run *run, struct pfs_prefix **out,
					 const struct pfs_prefix_shape *shape);
PFS_MUST_CHECK int pfs_prefix_verify_tree(const struct pfs_prefix_tree *tree);
void pfs_prefix_set_view(struct pfs_prefix_tree *tree);

#endif
