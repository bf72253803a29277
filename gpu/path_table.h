/* SPDX-License-Identifier: MIT */
/* gpu/path_table.h - nodes by their whole paths, so that a path is found by one hash, or followed
 * from its last component instead of the root.
 *
 * The table is made from a tree's columns. It is right as long as no directory of it is moved,
 * renamed or removed, and the slots of other nodes that are have been marked. It need not have all
 * nodes: what it lacks is found by components, as are paths that are written in another way than a
 * listing does ("//", "..") and relative ones.
 *
 * It is made in pieces, each by somebody who asks for paths while the tree is held, so that a
 * change waits for one piece. First all paths are measured, then there is room, then it is filled;
 * only then is it asked. From before the first piece on slots are marked, and one that is gets no
 * place: so no path is longer than when it was measured. A directory that moves meanwhile makes it
 * begin anew. */
#ifndef PFS_GPU_PATH_TABLE_H
#define PFS_GPU_PATH_TABLE_H

#include "gpu/path_walk.h"

#define PFS_PATH_TABLE_MAX 4096u /* bytes of a path; a node with a longer one is left out */
#define PFS_PATH_ALIGN	   4u	 /* words: a path begins where a device reads its memory */
/* Slots that are looked through for each path that was asked for: a table of 8 M nodes is begun
 * with the 32,000th path; and by one who asks, at most, which is some milliseconds. */
#define PFS_PATH_WORTH 256u
#define PFS_PATH_PIECE (UINT32_C(1) << 20)

struct pfs_path_entry {
	uint32_t slot; /* PFS_PATH_NOWHERE: none */
	uint32_t tag;  /* the upper half of the hash of its path */
	uint32_t len;  /* of its path, in bytes */
	uint32_t word; /* of the text, where its path begins, by PFS_PATH_ALIGN */
} __attribute__((aligned(16)));

/* A hash table, where one that does not find its place free takes the next. At most half are
 * taken. A table that is being made has no places for who asks, but slots that are marked. */
struct pfs_path_table {
	struct pfs_path_entry *nodes;
	uint64_t *text;	   /* zeros follow a path up to where the next may begin */
	uint32_t *changed; /* a bit for each slot that the table was made from */
	uint32_t n_slots;
	uint32_t mask; /* the number of places less one; 0: there is no table to ask */
};

/* Where the piece of somebody ends who asks for n paths; it begins at the slot `from`. */
PFS_BOTH uint32_t pfs_table_piece_end(const struct pfs_path_table *t, uint32_t from, size_t n)
{
	const size_t most =
		n < PFS_PATH_PIECE / PFS_PATH_WORTH ? n * PFS_PATH_WORTH : PFS_PATH_PIECE;

	return t->n_slots - from < most ? t->n_slots : from + (uint32_t)most;
}

PFS_BOTH bool pfs_table_is_marked(const struct pfs_path_table *t, uint32_t slot)
{
	return t->changed[slot / 32] >> slot % 32 & 1;
}

PFS_BOTH uint64_t pfs_path_hash(uint64_t seed, const char *path, uint32_t len)
{
	return pfs_siphash(path, len, ~seed, seed);
}

/* ---- what the table is made from ---- */

PFS_BOTH const uint8_t *pfs_path_name(const struct pfs_path_columns *c, uint32_t slot)
{
	return c->heap + ((uint64_t)c->place[slot] << c->place_shift);
}

/* Returns how many bytes the path of a node has that belongs into the table; 0: it does not, or is
 * none. */
PFS_BOTH uint32_t pfs_table_path_length(const struct pfs_path_columns *c, uint32_t slot)
{
	uint32_t len = 0;

	if (c->prime[slot] == 0)
		return 0;
	for (; slot != c->root; slot = c->parent[slot]) {
		if (slot >= c->n_slots)
			return 0;
		len += 1u + *pfs_path_name(c, slot);
		if (len > PFS_PATH_TABLE_MAX)
			return 0;
	}
	return len;
}

/* Returns how many times PFS_PATH_ALIGN words a path takes. */
PFS_BOTH uint32_t pfs_table_path_size(uint32_t len)
{
	return (len + 8 * PFS_PATH_ALIGN - 1) / (8 * PFS_PATH_ALIGN);
}

/* Writes that path, of len bytes. */
PFS_BOTH void pfs_table_path_write(const struct pfs_path_columns *c, uint32_t slot, uint64_t *text,
				   uint32_t len)
{
	char *end = (char *)text + len;

	for (uint32_t i = (len - 1) / 8; i < pfs_table_path_size(len) * PFS_PATH_ALIGN; i++)
		text[i] = 0;
	for (; slot != c->root; slot = c->parent[slot]) {
		const uint8_t *name = pfs_path_name(c, slot);

		for (uint32_t i = *name; i; i--)
			*--end = (char)name[i];
		*--end = '/';
	}
}

/* ---- asking ---- */

PFS_BOTH const uint64_t *pfs_table_text(const struct pfs_path_table *t,
					const struct pfs_path_entry *node)
{
	return t->text + (uint64_t)node->word * PFS_PATH_ALIGN;
}

/* Returns the slot of a node that was found, unless it is another node's now. */
PFS_BOTH uint32_t pfs_table_slot(const struct pfs_path_table *t, const struct pfs_path_entry *node)
{
	return pfs_table_is_marked(t, node->slot) ? PFS_PATH_NOWHERE : node->slot;
}

/* Bytes of a path, with zeros behind its end. A kernel has them in registers from when it hashes
 * them until it compares them, and so waits once for all of a path that is not longer. */
#define PFS_PATH_BLOCK 64u

#ifdef __CUDA_ARCH__
#define PFS_UNROLL _Pragma("unroll")
#else
#define PFS_UNROLL
#endif

struct pfs_path_block {
	uint64_t word[PFS_PATH_BLOCK / 8];
};

struct pfs_path_pair {
	uint64_t a, b;
} __attribute__((aligned(16)));

/* Lanes of a warp have paths of several lengths: what each does with a word is the same, and only
 * what it keeps of it differs, so that they stay together. */
PFS_BOTH struct pfs_path_block pfs_path_block_read(const char *path, uint32_t left)
{
	struct pfs_path_block block;

#ifdef __CUDA_ARCH__
	const uint64_t *const at = (const uint64_t *)((uintptr_t)path & ~(uintptr_t)7);
	const uint32_t skip = (uint32_t)(uintptr_t)path & 7;
	const uint32_t end = left ? skip + min(left, PFS_PATH_BLOCK) : 0;
	uint32_t half[PFS_PATH_BLOCK / 4 + 2];

	PFS_UNROLL
	for (uint32_t i = 0; i <= PFS_PATH_BLOCK / 8; i++) {
		const uint64_t word = 8 * i < end ? at[i] : 0;

		half[2 * i] = (uint32_t)word;
		half[2 * i + 1] = (uint32_t)(word >> 32);
	}
	PFS_UNROLL
	for (uint32_t i = 0; i <= PFS_PATH_BLOCK / 4; i++)
		half[i] = skip & 4 ? half[i + 1] : half[i];
	PFS_UNROLL
	for (uint32_t i = 0; i < PFS_PATH_BLOCK / 4; i++) {
		const int beyond = 8 * (int)(4 * i + 4) - 8 * (int)min(left, PFS_PATH_BLOCK);

		half[i] = __funnelshift_r(half[i], half[i + 1], 8 * (skip & 3)) &
			  __funnelshift_rc(0xffffffffu, 0, (uint32_t)max(beyond, 0));
	}
	PFS_UNROLL
	for (uint32_t i = 0; i < PFS_PATH_BLOCK / 8; i++)
		block.word[i] = half[2 * i] | (uint64_t)half[2 * i + 1] << 32;
#else
	struct pfs_words words = pfs_words_begin(path, left);

	for (uint32_t i = 0; i < PFS_PATH_BLOCK / 8; i++)
		block.word[i] = pfs_words_next(&words);
#endif
	return block;
}

/* As pfs_path_hash; first: the path's first block. */
PFS_BOTH uint64_t pfs_path_block_hash(uint64_t seed, const struct pfs_path_block *first,
				      const char *path, uint32_t len)
{
	struct pfs_path_block block = *first;
	uint64_t v[4];

	pfs_sip_begin(v, ~seed, seed);
	for (uint32_t left = len;; left -= PFS_PATH_BLOCK) {
		PFS_UNROLL
		for (uint32_t i = 0; i < PFS_PATH_BLOCK / 8; i++) {
			const uint64_t end = 8 * i + 8 > left ? (uint64_t)len << 56 : 0;

			if (8 * i <= left)
				pfs_sip_word(v, block.word[i] | end);
		}
		if (left < PFS_PATH_BLOCK)
			break;
		path += PFS_PATH_BLOCK;
		block = pfs_path_block_read(path, left - PFS_PATH_BLOCK);
	}
	return pfs_sip_finish(v);
}

/* Returns true if the text of a node is a path of len bytes, which begins with that block. */
PFS_BOTH bool pfs_path_block_is(const struct pfs_path_block *first, const char *path, uint32_t len,
				const uint64_t *text)
{
	const struct pfs_path_pair *pairs = (const struct pfs_path_pair *)text;
	struct pfs_path_block block = *first;

	for (uint32_t left = len;; left -= PFS_PATH_BLOCK) {
		uint64_t differs = 0;

		PFS_UNROLL
		for (uint32_t i = 0; i < PFS_PATH_BLOCK / 16; i++) {
			struct pfs_path_pair pair = {0, 0};

			if (16 * i < left)
				pair = pairs[i];
			differs |= pair.a ^ block.word[2 * i];
			differs |= pair.b ^ block.word[2 * i + 1];
		}
		if (differs || left <= PFS_PATH_BLOCK)
			return differs == 0;
		pairs += PFS_PATH_BLOCK / 16;
		path += PFS_PATH_BLOCK;
		block = pfs_path_block_read(path, left - PFS_PATH_BLOCK);
	}
}

/* Returns the slot with this path; or PFS_PATH_NOWHERE. Lanes look for their entries before one of
 * them compares texts. */
PFS_BOTH uint32_t pfs_table_find(const struct pfs_path_table *t, uint64_t seed, const char *path,
				 uint32_t len)
{
	const struct pfs_path_block first = pfs_path_block_read(path, len);
	const uint64_t hash = pfs_path_block_hash(seed, &first, path, len);

	for (uint32_t i = (uint32_t)hash & t->mask;; i = (i + 1) & t->mask) {
		struct pfs_path_entry node = t->nodes[i];

		while (node.slot != PFS_PATH_NOWHERE &&
		       (node.tag != hash >> 32 || node.len != len)) {
			i = (i + 1) & t->mask;
			node = t->nodes[i];
		}
		if (node.slot == PFS_PATH_NOWHERE)
			return PFS_PATH_NOWHERE;
		if (pfs_path_block_is(&first, path, len, pfs_table_text(t, &node)))
			return pfs_table_slot(t, &node);
	}
}

/* Goes on to the end of an absolute path, or to its last component, if the table has it, or the
 * directory before that. */
PFS_BOTH void pfs_path_jump(struct pfs_path_way *walk, const struct pfs_path_table *t,
			    const struct pfs_path_columns *c)
{
	const char *to = walk->end;

	if (t->mask == 0 || walk->slot != c->root || walk->at == walk->end || *walk->at != '/')
		return;
	for (uint32_t tries = 0; tries < 2; tries++) {
		const uint32_t len = (uint32_t)(to - walk->at);
		const uint32_t slot = pfs_table_find(t, c->seed, walk->at, len);

		if (slot != PFS_PATH_NOWHERE) {
			walk->slot = slot;
			walk->at = to;
			return;
		}
		while (*--to != '/')
			;
		if (to == walk->at)
			return; /* in the root */
	}
}

#endif
