/* SPDX-License-Identifier: MIT */
/* gpu/engine.h - questions about a tree whose nodes have primes, answered by arithmetic on columns:
 * on a CUDA device if there is one, else on all cores, with the same results bit for bit.
 *
 * A node is a slot (dense, 32 bits).  Its prime is unique; a directory's is below 2^32 (the root's
 * is 2, all others odd), anything else's is above: that is how the engine tells them apart.  The
 * code of a node is the product of the primes on its path, the root's included.  x lies under k
 * exactly when prime(k) divides code(x).
 *
 * Threads: any number of callers. Questions run side by side, each on a stream of its own where
 * there is a device; on the host one of them has the threads, and the others work alone. Changes
 * run one after another, and no question runs while one changes the columns. An answer is that of
 * one moment between the call and its return. The first question after changes brings the back end
 * up to date, during which the others wait. A bitmap is one caller's at a time.
 *
 * If the device fails, or its memory is short for a question that has it alone, the engine leaves
 * it for good: it goes on with the host back end, repeats the calls that were concerned, and logs
 * one warning; the callers see no error. Not handled here: names (but for listings), permissions,
 * whether a change makes sense as a file operation. */
#ifndef PFS_GPU_ENGINE_H
#define PFS_GPU_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PFS_NO_SLOT	 UINT32_MAX
#define PFS_SUBTREES_MAX 64 /* subtrees that pfs_engine_subtrees finds in one pass */

struct pfs_engine;
struct pfs_bitmap;
struct pfs_listing;

enum pfs_engine_kind { PFS_ENGINE_AUTO, PFS_ENGINE_HOST, PFS_ENGINE_CUDA };

/* Gets the kind that is named "auto", "host" or "cuda". -EINVAL. */
PFS_MUST_CHECK int pfs_engine_by_name(enum pfs_engine_kind *kind, const char *name);

struct pfs_engine_info {
	const char *engine;	    /* "host" or "cuda": the back end that answers now */
	char device[64];	    /* the device's name */
	bool degraded;		    /* a device failed, when it was opened or since */
	unsigned threads;	    /* of the host back end */
	uint64_t device_bytes;	    /* allocated on the device */
	uint64_t directories, deep; /* deep: with codes beyond 4,096 bits, kept as their factors */
	uint64_t code_limbs;	    /* limbs of 32 bits of all codes together */
};

/* Opens an empty engine. To be called after daemonizing: CUDA does not survive a fork. AUTO takes
 * the device if there is one. If a device is there and fails, the engine is the host's, degraded,
 * and a warning is logged. -ENODEV: CUDA was asked for, and there is no device; -ENOMEM. */
PFS_MUST_CHECK int pfs_engine_open(struct pfs_engine **out, enum pfs_engine_kind kind);
/* Closes the engine; bitmaps and listings must have been freed before. NULL is allowed. */
void pfs_engine_close(struct pfs_engine *engine);
void pfs_engine_describe(struct pfs_engine *engine, struct pfs_engine_info *info);

/* ---- the tree ---- */

/* Replaces everything by slots 0..n: parent[i] is a slot, PFS_NO_SLOT at the root; prime[i] = 0
 * marks a slot that is not in use. The arrays stay the caller's. The engine is empty after an
 * error. -EINVAL: there is no root, or several; a parent is no directory; a directory's prime is
 * even or repeated. -EOVERFLOW: n is above 2^32 - 64; -ENOMEM. */
PFS_MUST_CHECK int pfs_engine_load(struct pfs_engine *engine, const uint32_t *parent,
				   const uint64_t *prime, size_t n);

enum pfs_delta_op {
	PFS_DELTA_ADD,	  /* slot, parent, prime: a new node */
	PFS_DELTA_REMOVE, /* slot: exactly this node; a directory must be empty */
	PFS_DELTA_MOVE,	  /* slot, parent: with everything under it */
	PFS_DELTA_NAME,	  /* slot: its place in the name heap changed */
};

struct pfs_delta {
	uint32_t slot, parent;
	uint64_t prime;
	enum pfs_delta_op op;
};

/* Applies the changes in order. Questions see them from now on; the next question brings the
 * device's columns up to date. -EINVAL: a change does not fit the tree as it then is (the slot is
 * in use, or is not, the parent is no directory, the prime is of the wrong kind, a directory would
 * come under itself); the changes before it have been applied. *applied is how many have been
 * (NULL: not wanted). */
PFS_MUST_CHECK int pfs_engine_apply(struct pfs_engine *engine, size_t *applied,
				    const struct pfs_delta *deltas, size_t n);

/* ---- one node ---- */

/* -ENOENT of all functions from here on: the slot is not in use. */

/* Gets the directory that the node lies in; PFS_NO_SLOT for the root. */
PFS_MUST_CHECK int pfs_engine_parent(struct pfs_engine *engine, uint32_t *parent, uint32_t slot);

/* Finds the node whose code is the decimal number. -ENOENT: no node has it; -EINVAL: it is no
 * number; -E2BIG: it is longer than 1 MiB. */
PFS_MUST_CHECK int pfs_engine_node(struct pfs_engine *engine, uint32_t *slot, const char *decimal);

/* Finds the deepest node that each of the n nodes is or lies under, by the greatest common divisor
 * of their codes. -EINVAL: n is 0. */
PFS_MUST_CHECK int pfs_engine_common_ancestor(struct pfs_engine *engine, uint32_t *ancestor,
					      const uint32_t *slots, size_t n);

/* ---- sets of nodes: one bit a slot, kept where the engine computes ---- */

/* These functions make a bitmap, which the caller frees. -ENOENT, -ENOMEM. */
PFS_MUST_CHECK int pfs_engine_subtree(struct pfs_engine *engine, struct pfs_bitmap **out,
				      uint32_t slot); /* the node included */
PFS_MUST_CHECK int pfs_engine_parents(struct pfs_engine *engine, struct pfs_bitmap **out,
				      uint32_t slot); /* proper ancestors */

/* Finds n subtrees in one pass, as n bitmaps. -E2BIG: n is above
 * PFS_SUBTREES_MAX. */
PFS_MUST_CHECK int pfs_engine_subtrees(struct pfs_engine *engine, struct pfs_bitmap **out,
				       const uint32_t *slots, size_t n);

/* Makes the set of these slots. -EINVAL: one is beyond the columns. */
PFS_MUST_CHECK int pfs_bitmap_of_slots(struct pfs_engine *engine, struct pfs_bitmap **out,
				       const uint32_t *slots, size_t n);
void pfs_bitmap_free(struct pfs_bitmap *bitmap);

enum pfs_bitmap_op { PFS_BITMAP_AND, PFS_BITMAP_OR, PFS_BITMAP_AND_NOT };

/* -ESTALE of all functions from here on: the bitmap was lost with its device; make it anew. */
PFS_MUST_CHECK int pfs_bitmap_combine(struct pfs_bitmap *bitmap, const struct pfs_bitmap *other,
				      enum pfs_bitmap_op op); /* bitmap = bitmap op other */
PFS_MUST_CHECK int pfs_bitmap_count(const struct pfs_bitmap *bitmap, uint64_t *count);

/* Reads n words of the set from word `first` on, least significant bit first; words past the end
 * read as 0. */
PFS_MUST_CHECK int pfs_bitmap_read(const struct pfs_bitmap *bitmap, uint32_t *words, size_t first,
				   size_t n);

/* A cursor over the set in slot order; it starts as {0} and is finished with pfs_cursor_finish.
 * pfs_cursor_next returns 1 and a slot, 0 at the end, or an error. */
struct pfs_cursor {
	uint32_t *words;
	size_t capacity, first, n;
	uint64_t next;
};
PFS_MUST_CHECK int pfs_cursor_next(struct pfs_cursor *cursor, const struct pfs_bitmap *bitmap,
				   uint32_t *slot);
void pfs_cursor_finish(struct pfs_cursor *cursor);

/* ---- recursive listings ---- */

struct pfs_stamps; /* gpu/table.h */

/* Where names are. The name of a slot is at heap[(uint64_t)place[slot] << place_shift]: its length
 * in one byte, and then its bytes. The heap grows at its end. Changes of other bytes are in
 * `stamps`, by blocks of PFS_BLOCK_ROWS places; `clock` is the last stamp. If the generation is
 * another one, the whole heap is. The root's name is not read. */
struct pfs_names_view {
	const uint8_t *heap;
	size_t heap_size;
	const uint32_t *place;
	size_t n_slots;
	unsigned place_shift;
	uint64_t generation;
	const struct pfs_stamps *stamps; /* NULL: places are not used again */
	uint64_t clock;
};

enum pfs_listing_flags {
	PFS_LISTING_PRIMES = 1, /* the prime in decimal and a tab before each path */
	PFS_LISTING_ZERO = 2,	/* paths end in NUL instead of newline */
};

/* Tells the back end about `most` bytes of the names that it does not know yet. Returns 1 if there
 * are more, 0 if it knows them all. -EINVAL: the view has fewer slots than the engine. */
PFS_MUST_CHECK int pfs_engine_send_names(struct pfs_engine *engine,
					 const struct pfs_names_view *view, size_t most);

/* Asks for the absolute paths of the nodes in n slots, in this order; slots without a node have no
 * line. fn gets pieces of whole lines, valid during the call, in the caller's thread; it must not
 * ask the engine. */
struct pfs_listing {
	const struct pfs_names_view *view; /* its names are sent first, if they have not been */
	const uint32_t *slots;
	size_t n;
	unsigned flags; /* enum pfs_listing_flags */
	int (*fn)(void *arg, const char *bytes, size_t size);
	void *arg;
};
/* Returns 0, or what fn returned that was not 0. -ESTALE: the device failed in the middle, and the
 * tree has changed since. */
PFS_MUST_CHECK int pfs_engine_list(struct pfs_engine *engine, const struct pfs_listing *listing);

/* ---- self-examination ---- */

/* Reads every directory's code back from the back end, and compares it with GMP's product of the
 * primes. *wrong is how many differ. */
PFS_MUST_CHECK int pfs_engine_check(struct pfs_engine *engine, uint64_t *wrong);

/* Brings the back end's columns up to date, and waits for that. */
PFS_MUST_CHECK int pfs_engine_sync(struct pfs_engine *engine);

#endif
