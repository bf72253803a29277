/* SPDX-License-Identifier: MIT */
/* gpu/prefix_walk.h - the memory layout of a prefix tree, and how a lookup walks through it, for
 * both back ends.
 *
 * A tree is an array of 32-bit *words*. A word that leads from a node to what lies below it is one
 * of:
 * - 0: no key goes on there;
 * - an *item*, marked by PFS_PREFIX_ITEM: the offset of a key's record, in units of 8 bytes; the
 *   key ends there;
 * - in the last level of a partition, the number of the next partition;
 * - in other levels, the offset of a node, in units of 4 words.
 *
 * In the layouts with partitions, a *group* is 16 partitions (or 1) that share their nodes; `width`
 * is how many. A partition's number is group * width + lane. The root partition is number 0; no
 * word leads to it. A node begins with an *end word* for each partition of its group: the item of
 * the key that ends at the node. Integers all have the same length, so their nodes have no end
 * words. Behind the end words are the 2^bits children: a word each, but in the last level of a
 * partition a word for each child and partition of the group.
 *
 * In the compact layout a node has a head, and behind it only the words that are not 0: the end
 * word, then the children in order. The head is the node's level << 16, PFS_PREFIX_ENDS if a key
 * ends at the node, and a bit for each child that there is: in the same word if 2^bits bits fit
 * there, else in the words behind it. Most nodes have few children, so nearly all of a tree stays
 * in a processor's caches. The first word of all leads to the root. */
#ifndef PFS_GPU_PREFIX_WALK_H
#define PFS_GPU_PREFIX_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/both.h"

#define PFS_PREFIX_ITEM	    0x80000000u
#define PFS_PREFIX_UNIT	    4u	/* words; nodes begin at multiples of it */
#define PFS_PREFIX_WIDE	    16u /* partitions of a group, of the layout SIXTEEN */
#define PFS_PREFIX_NO_LEVEL UINT32_MAX
#define PFS_PREFIX_ENDS	    0x80000000u

struct pfs_prefix_group {
	uint32_t root;	/* a node's offset */
	uint32_t level; /* of the root; PFS_PREFIX_NO_LEVEL: no group has this number */
};

/* The record of a key; the key's bytes follow it. A device reads only these bytes and `len`. */
struct pfs_prefix_record {
	uint64_t payload; /* a copy of the first one, which saves lookups a read of the list */
	uint32_t first, last; /* the places of the key's first and last payload */
	uint32_t len;	      /* of the key, in bytes */
};
#define PFS_PREFIX_RECORD_HEAD 20u /* bytes before the key; sizeof also counts padding */

/* A block of partitions, for HIERARCHICAL lookups. */
struct pfs_prefix_block {
	uint32_t root; /* the partition that all others of the block lie below */
	uint32_t size; /* in partitions; 0: no block has this number */
};

/* The addresses of a tree's parts, in the host's memory or in a device's, and its shape. */
struct pfs_prefix_view {
	const uint32_t *words;
	const struct pfs_prefix_group *groups;
	const uint8_t *records;
	uint32_t n_groups;
	uint32_t root;	 /* COMPACT: the first word of all, which leads to the root */
	uint32_t levels; /* of a partition */
	uint32_t fixed;	 /* the levels that every key has; 0: keys vary in length */
	uint32_t width;	 /* partitions of a group */
	uint32_t ends;	 /* end words of a node */
	uint32_t bits;	 /* of a sub-key */
	/* COMPACT: where in a node its children's bits begin, and where its words, in words. */
	uint32_t map, head;
	bool is_compact;
};

/* A key. An integer has its highest byte first. */
struct pfs_prefix_text {
	const uint8_t *bytes;
	uint32_t len;	   /* bytes */
	uint32_t n_levels; /* sub-keys */
};

PFS_BOTH uint32_t pfs_prefix_levels_of(uint32_t len, uint32_t bits)
{
	return (len * 8 + bits - 1) / bits;
}

/* Returns the key's sub-key of a level below n_levels; bits past the key's end are 0. */
PFS_BOTH uint32_t pfs_prefix_sub_key(const struct pfs_prefix_text *key, uint32_t level,
				     uint32_t bits)
{
	uint32_t bit = level * bits, byte = bit / 8;
	uint32_t two = (uint32_t)key->bytes[byte] << 8;

	if (byte + 1 < key->len)
		two |= key->bytes[byte + 1];
	return two >> (16 - bit % 8 - bits) & ((1u << bits) - 1);
}

/* Returns true if the words of a node at this level lead to partitions. */
PFS_BOTH bool pfs_prefix_is_last(const struct pfs_prefix_view *v, uint32_t level)
{
	return (level + 1) % v->levels == 0 || level + 1 == v->fixed;
}

/* Returns the index of a child's word in a node, for the partition in this lane. */
PFS_BOTH uint32_t pfs_prefix_child(const struct pfs_prefix_view *v, uint32_t sub_key, uint32_t lane,
				   bool is_last)
{
	return v->ends + (is_last ? sub_key * v->width + lane : sub_key);
}

/* Walks through one partition by the key's sub-keys. Returns an item, the number of the next
 * partition, or 0. Speculative traversals also walk partitions to which the key does not lead. */
PFS_BOTH uint32_t pfs_prefix_walk(const struct pfs_prefix_view *v, uint32_t partition,
				  const struct pfs_prefix_text *key)
{
	const struct pfs_prefix_group *group = &v->groups[partition / v->width];
	uint32_t lane = partition % v->width, level = group->level, node = group->root;

	if (level == PFS_PREFIX_NO_LEVEL || level > key->n_levels)
		return 0;
	for (;; level++) {
		const uint32_t *words = v->words + (uint64_t)node * PFS_PREFIX_UNIT;
		bool is_last;

		if (level == key->n_levels)
			return v->ends ? words[lane] : 0;
		is_last = pfs_prefix_is_last(v, level);
		node = words[pfs_prefix_child(v, pfs_prefix_sub_key(key, level, v->bits), lane,
					      is_last)];
		if (node & PFS_PREFIX_ITEM)
			return level + 1 == key->n_levels ? node : 0;
		if (is_last || node == 0)
			return node;
	}
}

PFS_BOTH const struct pfs_prefix_record *pfs_prefix_record_at(const uint8_t *records, uint32_t word)
{
	return (const struct pfs_prefix_record *)(records +
						  (uint64_t)(word & ~PFS_PREFIX_ITEM) * 8);
}

PFS_BOTH bool pfs_prefix_same(const uint8_t *a, const uint8_t *b, uint32_t len)
{
#ifdef __CUDA_ARCH__
	for (uint32_t i = 0; i < len; i++)
		if (a[i] != b[i])
			return false;
	return true;
#else
	return len == 0 || memcmp(a, b, len) == 0;
#endif
}

PFS_BOTH const uint8_t *pfs_prefix_bytes_of(const struct pfs_prefix_record *record)
{
	return (const uint8_t *)record + PFS_PREFIX_RECORD_HEAD;
}

PFS_BOTH uint32_t pfs_prefix_ones(uint32_t bits)
{
#ifdef __CUDA_ARCH__
	return (uint32_t)__popc(bits);
#else
	/* __builtin_popcount would be a call: not every x86-64 processor has the instruction. */
	bits -= bits >> 1 & 0x55555555u;
	bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
	return ((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
#endif
}

PFS_BOTH uint32_t pfs_prefix_level(const uint32_t *node)
{
	return node[0] >> 16 & 0x7fff;
}

/* Returns true if a compact node has the word of this index: 0 for the end word, 1 + the sub-key
 * for a child. */
PFS_BOTH bool pfs_prefix_has(const struct pfs_prefix_view *v, const uint32_t *node, uint32_t index)
{
	if (index == 0)
		return node[0] >> 31;
	return node[v->map + (index - 1) / 32] >> (index - 1) % 32 & 1;
}

/* Returns how many words of a compact node come before the one of this index. */
PFS_BOTH uint32_t pfs_prefix_rank(const struct pfs_prefix_view *v, const uint32_t *node,
				  uint32_t index)
{
	const uint32_t *map = node + v->map;
	uint32_t n = node[0] >> 31, bit = index - 1, i;

	if (index == 0)
		return 0;
	for (i = 0; i < bit / 32; i++)
		n += pfs_prefix_ones(map[i]);
	return n + pfs_prefix_ones(map[i] & ((1u << bit % 32) - 1));
}

/* Goes one step down a compact tree. Returns the node's word for the key's next sub-key, or 0. */
PFS_BOTH uint32_t pfs_prefix_step(const struct pfs_prefix_view *v, uint32_t node,
				  const struct pfs_prefix_text *key)
{
	const uint32_t *words = v->words + (uint64_t)node * PFS_PREFIX_UNIT;
	uint32_t level = pfs_prefix_level(words), index;

	if (level > key->n_levels)
		return 0;
	index = level == key->n_levels ? 0 : 1 + pfs_prefix_sub_key(key, level, v->bits);
	return pfs_prefix_has(v, words, index) ? words[v->head + pfs_prefix_rank(v, words, index)]
					       : 0;
}

/* Returns `word`, an item of a compact tree or 0, if its record has just this key; else 0. */
PFS_BOTH uint32_t pfs_prefix_compared(const struct pfs_prefix_view *v, uint32_t word,
				      const struct pfs_prefix_text *key)
{
	const struct pfs_prefix_record *record;

	if (word == 0)
		return 0;
	record = pfs_prefix_record_at(v->records, word);
	if (record->len != key->len ||
	    !pfs_prefix_same(pfs_prefix_bytes_of(record), key->bytes, key->len))
		return 0;
	return word;
}

/* Looks the key up level by level. Returns its item, with PFS_PREFIX_ITEM, or 0. */
PFS_BOTH uint32_t pfs_prefix_serial(const struct pfs_prefix_view *v,
				    const struct pfs_prefix_text *key)
{
	uint32_t word;

	if (v->is_compact) {
		for (word = v->root; word && !(word & PFS_PREFIX_ITEM);)
			word = pfs_prefix_step(v, word, key);
		return pfs_prefix_compared(v, word, key);
	}
	for (word = pfs_prefix_walk(v, 0, key); word && !(word & PFS_PREFIX_ITEM);)
		word = pfs_prefix_walk(v, word, key);
	return word;
}

#endif
