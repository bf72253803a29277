/* SPDX-License-Identifier: MIT */
/* gpu/prefix_walk.h - how a prefix tree lies in its pages and how a key's way through it goes, for both
 * back ends.
 *
 * Everything is 32-bit *words*.  A node is a word for each partition of its group (its width: 16, or 1)
 * where a key may end at the node, then 2^bits children: a word each, but in the last level of a
 * partition one for each partition of the group.  Integers, which all end alike, have no end words.
 * What a word holds: 0: nothing; with PFS_PREFIX_ITEM: an item, where the key ends there; else, in the
 * last level of a partition, the number of the next partition; else a node, in units of 4 words.
 * Partition number = group * width + lane; the root's is 0, to which nothing leads.
 * An item is the place of a key's record, in units of 8 bytes.
 *
 * A node of a compact tree has a head, and behind it only the words that are not 0: the end word, then the
 * children in order.  The head is its level << 16, PFS_PREFIX_ENDS if a key ends there, and a bit for each
 * child: in the same word if that has room for 2^bits of them, else in the next ones.  Most nodes have few
 * children, so that nearly all of a tree stays in a processor's caches.  The word of the root is the first of
 * all. */
#ifndef PFS_GPU_PREFIX_WALK_H
#define PFS_GPU_PREFIX_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gpu/modexact.h" /* PFS_BOTH */

#define PFS_PREFIX_ITEM	    0x80000000u
#define PFS_PREFIX_UNIT	    4u /* words */
#define PFS_PREFIX_WIDE	    16u
#define PFS_PREFIX_NO_LEVEL UINT32_MAX
#define PFS_PREFIX_ENDS	    0x80000000u

struct pfs_prefix_group {
	uint32_t root;	/* node */
	uint32_t level; /* of the root; PFS_PREFIX_NO_LEVEL: the number is free */
};

/* A key, whose bytes follow; a device looks at these alone and at `len`. */
struct pfs_prefix_record {
	uint64_t payload;     /* the first one, so that who gets a key need not look for it elsewhere */
	uint32_t first, last; /* places of payloads */
	uint32_t len;
};
#define PFS_PREFIX_RECORD_HEAD 20u /* bytes; the struct has more for its alignment's sake */

struct pfs_prefix_block {
	uint32_t root; /* partition */
	uint32_t size; /* partitions; 0: the number is free */
};

/* Tells where a tree lies, on the host or a device. */
struct pfs_prefix_view {
	const uint32_t *words;
	const struct pfs_prefix_group *groups;
	const uint8_t *records;
	uint32_t n_groups;
	uint32_t root;	 /* a compact tree's first word */
	uint32_t levels; /* of a partition */
	uint32_t fixed;	 /* levels of every key; 0: they vary */
	uint32_t width, ends; /* partitions of a group; end words of a node */
	uint32_t bits;
	uint32_t map, head; /* COMPACT: where a node's bits begin, and what is not 0; in words */
	bool is_compact;
};

struct pfs_prefix_text { /* a key */
	const uint8_t *bytes;
	uint32_t len;
	uint32_t n_levels;
};

PFS_BOTH uint32_t pfs_prefix_levels_of(uint32_t len, uint32_t bits)
{
	return (len * 8 + bits - 1) / bits;
}

/* The sub-key of a level below n_levels; bits past the end are 0. */
PFS_BOTH uint32_t pfs_prefix_sub_key(const struct pfs_prefix_text *key, uint32_t level, uint32_t bits)
{
	uint32_t bit = level * bits, byte = bit / 8;
	uint32_t two = (uint32_t)key->bytes[byte] << 8;

	if (byte + 1 < key->len)
		two |= key->bytes[byte + 1];
	return two >> (16 - bit % 8 - bits) & ((1u << bits) - 1);
}

/* True if children of a node at this level are partitions. */
PFS_BOTH bool pfs_prefix_is_last(const struct pfs_prefix_view *v, uint32_t level)
{
	return (level + 1) % v->levels == 0 || level + 1 == v->fixed;
}

/* Returns where in a node a partition's child is. */
PFS_BOTH uint32_t pfs_prefix_child(const struct pfs_prefix_view *v, uint32_t sub_key, uint32_t lane,
				   bool is_last)
{
	return v->ends + (is_last ? sub_key * v->width + lane : sub_key);
}

/* Through one partition: an item, the next partition, or 0.  The key need not lead to the partition. */
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
	/* The builtin is a call where the processor's own instruction may not be taken for granted. */
	bits -= bits >> 1 & 0x55555555u;
	bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
	return ((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
#endif
}

PFS_BOTH uint32_t pfs_prefix_level(const uint32_t *node)
{
	return node[0] >> 16 & 0x7fff;
}

/* Returns true if a compact node has a word of this index. 0 is the index of the end word; that of
 * a sub-key is one more than it. */
PFS_BOTH bool pfs_prefix_has(const struct pfs_prefix_view *v, const uint32_t *node, uint32_t index)
{
	if (index == 0)
		return node[0] >> 31;
	return node[v->map + (index - 1) / 32] >> (index - 1) % 32 & 1;
}

/* Returns how many words of a compact node come before the one of this index. */
PFS_BOTH uint32_t pfs_prefix_rank(const struct pfs_prefix_view *v, const uint32_t *node, uint32_t index)
{
	const uint32_t *map = node + v->map;
	uint32_t n = node[0] >> 31, bit = index - 1, i;

	if (index == 0)
		return 0;
	for (i = 0; i < bit / 32; i++)
		n += pfs_prefix_ones(map[i]);
	return n + pfs_prefix_ones(map[i] & ((1u << bit % 32) - 1));
}

/* One step down a compact tree: what the word at the key's place is. */
PFS_BOTH uint32_t pfs_prefix_step(const struct pfs_prefix_view *v, uint32_t node,
				  const struct pfs_prefix_text *key)
{
	const uint32_t *words = v->words + (uint64_t)node * PFS_PREFIX_UNIT;
	uint32_t level = pfs_prefix_level(words), index;

	if (level > key->n_levels)
		return 0;
	index = level == key->n_levels ? 0 : 1 + pfs_prefix_sub_key(key, level, v->bits);
	return pfs_prefix_has(v, words, index) ? words[v->head + pfs_prefix_rank(v, words, index)] : 0;
}

/* The item that a compact tree's word is, if the key is its; else 0. */
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

/* Level by level: the key's item with PFS_PREFIX_ITEM, or 0. */
PFS_BOTH uint32_t pfs_prefix_serial(const struct pfs_prefix_view *v, const struct pfs_prefix_text *key)
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
