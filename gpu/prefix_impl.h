/* SPDX-License-Identifier: MIT */
/* gpu/prefix_impl.h - for implementers: the host's prefix tree, and the functions of a device that
 * keeps copies of such trees.
 *
 * An index is kept in *sections*. A section is one piece of memory that grows without moving; it
 * holds offsets and no addresses, so it can be written to a file as it is. Each of its pages of 64
 * KiB has a mark that says whether it has changed since the device's copy was made. */
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
#define PFS_PREFIX_BLOCK_MAX 1024u /* partitions of a block: their results fit into shared memory */
#define PFS_PREFIX_BATCH     65536u /* keys that are converted to struct pfs_prefix_text at once */
#define PFS_PREFIX_KEY_SIZES ((PFS_PREFIX_KEY_MAX + PFS_PREFIX_RECORD_HEAD) / 8 + 2) /* units of 8 bytes */
#define PFS_PREFIX_NODE_SIZES 68u /* COMPACT: to the node of 266 words, 257 behind its head */

enum pfs_prefix_section_name {
	PFS_PREFIX_WORDS,
	PFS_PREFIX_GROUPS,
	PFS_PREFIX_BLOCKS,
	PFS_PREFIX_RECORDS, /* keys */
	PFS_PREFIX_PARTS,   /* this one and the following are not copied to a device */
	PFS_PREFIX_SPARES,
	PFS_PREFIX_OPEN,
	PFS_PREFIX_ENTRIES,
	PFS_PREFIX_SECTIONS,
	PFS_PREFIX_ON_DEVICE = PFS_PREFIX_PARTS,
};

struct pfs_prefix_section {
	struct pfs_reserve memory;
	uint64_t used;		  /* bytes */
	struct pfs_reserve stale; /* a byte for each page: 1 if a device's copy is older */
};

/* An element of the section PARTS: one for each partition. */
struct pfs_prefix_part {
	uint32_t count; /* of the partition's words, those that hold an item or a partition */
	uint32_t block; /* the block that the partition belongs to */
};

/* An element of the section SPARES: one for each group. */
struct pfs_prefix_spare {
	uint32_t lanes; /* a bit for each lane that has a partition */
	uint32_t next;	/* the next in the list of free groups, or of those with a free lane */
};

/* An element of the section ENTRIES; its index is the payload's *place*. All payloads are one list
 * that is linked both ways, in the order of their keys; place 0 holds no payload and ends the list
 * at both ends. */
struct pfs_prefix_payload {
	uint64_t payload;
	uint32_t next, previous; /* places */
	uint32_t item; /* the key; PFS_PREFIX_NONE: the place is free, `next` the next free one */
	uint32_t unused;
};

/* What an index has beside its sections; pfs_prefix_write puts it before them. Each free_ member is
 * the first element of a list of free ones of one kind and size; 0 ends such a list. */
struct pfs_prefix_head {
	struct pfs_prefix_shape shape;
	uint32_t first_place; /* of the list of free places */
	/* [0] inner nodes, [1] nodes of last levels; COMPACT: [i] nodes of i + 1 units. */
	uint32_t free_nodes[PFS_PREFIX_NODE_SIZES];
	uint32_t free_group, free_block;
	uint32_t free_records[PFS_PREFIX_KEY_SIZES]; /* by size, in units of 8 bytes */
	uint64_t n_keys, n_payloads, n_nodes, n_partitions, n_blocks;
	uint64_t removals;
};

/* A word of a node on the way to a key. */
struct pfs_prefix_place {
	uint32_t node;
	uint32_t partition;
	uint32_t index; /* 0: the end word; 1 + a sub-key; PFS_PREFIX_BEFORE: before all words */
};
#define PFS_PREFIX_BEFORE UINT32_MAX

/* The way from the root to a word: steps[i] is at level i. */
struct pfs_prefix_path {
	struct pfs_prefix_place *steps;
	size_t n, capacity;
};

struct pfs_prefix_tree {
	struct pfs_prefix_head head;
	struct pfs_prefix_section sections[PFS_PREFIX_SECTIONS];
	struct pfs_prefix_view view;
	/* The size of each kind of node, in words, a multiple of PFS_PREFIX_UNIT: as
	 * head.free_nodes. */
	uint32_t node_words[PFS_PREFIX_NODE_SIZES];
	struct pfs_prefix_path path; /* memory that changes use again */
	uint64_t changes;	     /* batches of changes so far */
};

/* The partitions of each block, for HIERARCHICAL lookups: those of block b are list[first[b]] to
 * list[first[b + 1]], its root first. Partition p is in block[p], and at place[p] behind first[b].
 */
struct pfs_prefix_blocks {
	uint32_t *first, *list, *place, *block;
	uint32_t n_blocks, n_partitions; /* upper bounds of the numbers in use */
};

struct pfs_prefix_copy; /* a device's copy of the tree's pages */

struct pfs_prefix {
	/* Questions hold it for reading, changes for writing. It protects `tree`. */
	pthread_rwlock_t lock;
	struct pfs_prefix_tree tree;
	/* Held while `blocks` is made, under `lock` for reading. Changes throw it away. */
	pthread_mutex_t blocks_lock;
	struct pfs_prefix_blocks blocks;
	bool has_blocks;
	pthread_mutex_t copy_lock;
	struct pfs_prefix_copy *copy; /* protected by copy_lock; NULL: the device has none */
	bool no_copy;		      /* the device was short of memory, and a warning was logged */
	atomic_uint_fast64_t asked_on_device; /* keys that the device has looked up */
};

/* A batch of keys to be looked up. */
struct pfs_prefix_texts {
	const struct pfs_prefix_text *texts;
	size_t n;
	enum pfs_prefix_traversal traversal;
};

/* A device's functions. `find` is called with the index's lock held for reading, and copy_lock;
 * `drop` with copy_lock, or by the index's last user. `find` sets items[i] to an item with
 * PFS_PREFIX_ITEM, or to 0; if it sets *unsure, the host has to compare the keys. */
struct pfs_prefix_family {
	int (*find)(struct pfs_operator_backend *b, const struct pfs_run *run,
		    struct pfs_prefix *index, uint32_t *items, bool *unsure,
		    const struct pfs_prefix_texts *keys);
	void (*drop)(struct pfs_operator_backend *b, struct pfs_prefix_copy *copy);
	int (*find_name)(struct pfs_operator_backend *b, const struct pfs_run *run, uint32_t *found,
			 const char *names, size_t n, const char *name);
};

/* ---- prefix_section.c ---- */

/* Reserves address space for all sections. -ENOMEM. */
PFS_MUST_CHECK int pfs_prefix_sections_open(struct pfs_prefix_tree *tree);
void pfs_prefix_sections_close(struct pfs_prefix_tree *tree);
/* Makes room for `size` more bytes in a section. -ENOMEM; -EOVERFLOW: the section is full. */
PFS_MUST_CHECK int pfs_prefix_reserve(struct pfs_prefix_tree *tree,
				      enum pfs_prefix_section_name name, size_t size);
/* Takes `size` bytes that were reserved, all 0. Returns their offset in the section. */
uint64_t pfs_prefix_take(struct pfs_prefix_tree *tree, enum pfs_prefix_section_name name,
			 size_t size);

/* Returns the address of a section, which stays the same while it grows. */
static inline void *pfs_prefix_base(const struct pfs_prefix_tree *tree,
				    enum pfs_prefix_section_name name)
{
	return tree->sections[name].memory.base;
}

/* Marks the pages of `size` bytes from `offset` on as changed. */
static inline void pfs_prefix_touch(struct pfs_prefix_tree *tree, enum pfs_prefix_section_name name,
				    uint64_t offset, size_t size)
{
	uint8_t *stale = tree->sections[name].stale.base;

	for (uint64_t p = offset >> PFS_PREFIX_PAGE_BITS;
	     p <= (offset + size - 1) >> PFS_PREFIX_PAGE_BITS; p++)
		stale[p] = 1;
}

/* Returns an item's record. The caller may change all but its key and length without marking the
 * page, since a device reads nothing else of it. */
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

/* Returns how many groups of partitions have been made, free ones included. */
static inline uint32_t pfs_prefix_n_groups(const struct pfs_prefix_tree *tree)
{
	return (uint32_t)(tree->sections[PFS_PREFIX_GROUPS].used / sizeof(struct pfs_prefix_group));
}

/* Returns an upper bound of the partition numbers in use. */
static inline uint32_t pfs_prefix_n_partitions(const struct pfs_prefix_tree *tree)
{
	return pfs_prefix_n_groups(tree) * tree->view.width;
}

/* Returns the key of an item; its bytes are those of the item's record. */
static inline struct pfs_prefix_text pfs_prefix_key_of(const struct pfs_prefix_tree *tree,
						       uint32_t item)
{
	const struct pfs_prefix_record *r = pfs_prefix_record_of(tree, item);

	return (struct pfs_prefix_text){pfs_prefix_bytes_of(r), r->len,
					pfs_prefix_levels_of(r->len, tree->view.bits)};
}

/* pfs_prefix_check_keys returns -ENAMETOOLONG or -EINVAL as gpu/prefix.h says.
 * pfs_prefix_texts_make converts the keys from..from + n of a batch; `texts` has room for n, and
 * `integers` for the bytes of n integers, which the texts point to. */
PFS_MUST_CHECK int pfs_prefix_check_keys(const struct pfs_prefix_tree *tree,
					 const struct pfs_prefix_keys *keys);
void pfs_prefix_texts_make(const struct pfs_prefix_tree *tree, struct pfs_prefix_text *texts,
			   uint64_t *integers, const struct pfs_prefix_keys *keys, size_t from,
			   size_t n);

/* ---- host/prefix_tree.c: the layouts with partitions; host/prefix_compact.c: COMPACT ----
 *
 * The caller knows before an insert that the key is not there, and before a removal that it is.
 * Before an insert it calls the function `reserve` of the layout, so that the insert cannot fail.
 */

/* Makes the root of an empty tree, whose sections are open. -ENOMEM. */
PFS_MUST_CHECK int pfs_prefix_tree_create(struct pfs_prefix_tree *tree);
/* Sets *word to the key's item and *equal to true, or *word to the item of the first greater key,
 * or to 0 if there is none. Overwrites the path with the way to it. -ENOMEM. */
PFS_MUST_CHECK int pfs_prefix_tree_seek(const struct pfs_prefix_tree *tree, uint32_t *word,
					bool *equal, struct pfs_prefix_path *path,
					const struct pfs_prefix_text *key);
PFS_MUST_CHECK int pfs_prefix_tree_reserve(struct pfs_prefix_tree *tree,
					   const struct pfs_prefix_text *key);
void pfs_prefix_tree_insert(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
			    uint32_t item);
PFS_MUST_CHECK int pfs_prefix_tree_remove(struct pfs_prefix_tree *tree,
					  const struct pfs_prefix_text *key);
/* Checks that nodes lie within their section, that counts are right, and that each partition is
 * reached once. -EUCLEAN: one of these is wrong, which is logged; -ENOMEM. */
PFS_MUST_CHECK int pfs_prefix_tree_verify(const struct pfs_prefix_tree *tree);

/* Tells where in a compact tree a key belongs. */
struct pfs_prefix_spot {
	uint32_t *word;	 /* the word that leads to the node or item from which the key parts */
	uint32_t level;	 /* the first level at which the key and the leaf's key differ */
	bool is_free; /* the node at *word gets the key as a child; else a new node takes its
		       * place */
	bool is_less;	 /* the key is less than the leaf's */
	bool equal;	 /* the key is the leaf's */
	uint32_t leaf; /* the item of the key or of one next to it in order; 0: the tree is empty */
};

/* Sets *spot to the key's place. Any change of the tree invalidates it. */
void pfs_prefix_compact_locate(const struct pfs_prefix_tree *tree, struct pfs_prefix_spot *spot,
			       const struct pfs_prefix_text *key);
void pfs_prefix_compact_insert(struct pfs_prefix_tree *tree, const struct pfs_prefix_spot *spot,
			       const struct pfs_prefix_text *key, uint32_t item);
/* Takes memory for one insert. -ENOMEM, -EOVERFLOW. */
PFS_MUST_CHECK int pfs_prefix_compact_reserve(struct pfs_prefix_tree *tree);
void pfs_prefix_compact_remove(struct pfs_prefix_tree *tree, const struct pfs_prefix_spot *spot);
/* As pfs_prefix_tree_verify. */
PFS_MUST_CHECK int pfs_prefix_compact_verify(const struct pfs_prefix_tree *tree);

/* Takes an empty node, whose memory was reserved, and gives one back. `size` is an index of
 * node_words. */
uint32_t pfs_prefix_node_take(struct pfs_prefix_tree *tree, unsigned size);
void pfs_prefix_node_give(struct pfs_prefix_tree *tree, unsigned size, uint32_t node);
PFS_MUST_CHECK int pfs_prefix_path_push(struct pfs_prefix_path *path,
					const struct pfs_prefix_place *step);

static inline uint32_t *pfs_prefix_words_of(const struct pfs_prefix_tree *tree, uint32_t node)
{
	return (uint32_t *)pfs_prefix_base(tree, PFS_PREFIX_WORDS) +
	       (size_t)node * PFS_PREFIX_UNIT;
}

/* Goes one step down a compact tree, from a node towards the key or a key next to it. At the node
 * where the key's own word is missing, the step follows the next greater word, and from there on
 * always the first word; or, if no word is greater, always the last one. *side keeps which of these
 * it is; it is PFS_PREFIX_ON_THE_WAY at the root. Returns the word that it followed. */
enum pfs_prefix_side { PFS_PREFIX_ON_THE_WAY, PFS_PREFIX_FIRST, PFS_PREFIX_LAST };
static inline uint32_t pfs_prefix_step_near(const struct pfs_prefix_view *v, uint8_t *side,
					    uint32_t node, const struct pfs_prefix_text *key)
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

/* Sets a word of a node, and marks its page as changed. */
static inline void pfs_prefix_set(struct pfs_prefix_tree *tree, uint32_t *word, uint32_t value)
{
	uint32_t *base = pfs_prefix_base(tree, PFS_PREFIX_WORDS);

	pfs_prefix_touch(tree, PFS_PREFIX_WORDS, (uint64_t)(word - base) * sizeof(*word),
			 sizeof(*word));
	*word = value;
}

/* ---- host/prefix_lists.c: keys and payloads ---- */

/* Makes the empty list of payloads. -ENOMEM. */
PFS_MUST_CHECK int pfs_prefix_lists_create(struct pfs_prefix_tree *tree);
/* Adds a payload, and the key if it is not there. -ENOMEM, -EOVERFLOW: nothing has changed. */
PFS_MUST_CHECK int pfs_prefix_lists_insert(struct pfs_prefix_tree *tree,
					   const struct pfs_prefix_text *key, uint64_t payload);
/* Returns 1 if it removed the payload, 0 if the key has no such payload. -ENOMEM. */
PFS_MUST_CHECK int pfs_prefix_lists_remove(struct pfs_prefix_tree *tree,
					   const struct pfs_prefix_text *key, uint64_t payload);
/* -EUCLEAN: something is wrong, which is logged. */
PFS_MUST_CHECK int pfs_prefix_lists_verify(const struct pfs_prefix_tree *tree);
/* Sets *place to that of the first payload of the first key that is not less, or to 0. -ENOMEM. */
PFS_MUST_CHECK int pfs_prefix_seek_place(const struct pfs_prefix_tree *tree, uint32_t *place,
					 const struct pfs_prefix_text *key);

/* ---- host/prefix.c: questions ---- */

/* Sets items[i] to the item of the i-th key, or to 0. It is the member `find` of the host. */
PFS_MUST_CHECK int pfs_host_prefix_find(struct pfs_operator_backend *b, const struct pfs_run *run,
					struct pfs_prefix *index, uint32_t *items,
					const struct pfs_prefix_texts *keys);
/* Fetches into the cache, for several keys side by side, what changes of these keys will read. The
 * tree is compact, and n is at most PFS_PREFIX_SIDE_BY_SIDE. */
#define PFS_PREFIX_SIDE_BY_SIDE 16u
void pfs_prefix_fetch(const struct pfs_prefix_tree *tree, const struct pfs_prefix_text *texts,
		      size_t n);
/* Gets the index's blocks, and makes them if a change has thrown them away; they are valid while
 * the index's lock is held. -ENOMEM. */
PFS_MUST_CHECK int pfs_prefix_blocks_get(struct pfs_prefix *index,
					 const struct pfs_prefix_blocks **out);
void pfs_prefix_blocks_forget(struct pfs_prefix *index);

/* ---- for prefix_bytes.c ---- */

/* Makes an index that has no sections' content yet. -EINVAL: there is no such shape; -ENOMEM. */
PFS_MUST_CHECK int pfs_prefix_open_empty(const struct pfs_run *run, struct pfs_prefix **out,
					 const struct pfs_prefix_shape *shape);
PFS_MUST_CHECK int pfs_prefix_verify_tree(const struct pfs_prefix_tree *tree);
/* Sets tree->view anew, after sections have grown or the root has changed. */
void pfs_prefix_set_view(struct pfs_prefix_tree *tree);

#endif
