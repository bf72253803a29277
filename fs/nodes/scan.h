/* SPDX-License-Identifier: MIT */
/* fs/nodes/scan.h - sets of nodes by their columns: predicates over the image, pushed down from
 * statements, and the values of the nodes that are found, in bulk.
 *
 * Times are integer nanoseconds since 1970, clamped to 64 bits.
 *
 * Locks: everything here is done between pfs_scan_lock and pfs_scan_unlock, which hold tree->lock
 * for reading. The tree stays as it is meanwhile, so hold it briefly. Scans run on all cores. */
#ifndef PFS_FS_NODES_SCAN_H
#define PFS_FS_NODES_SCAN_H

#include "fs/nodes/fields.h"
#include "fs/tree/tree.h"

/* Holds the tree; returns its epoch. `by` is who holds it (fs/image/hold.h). */
uint64_t pfs_scan_lock(struct pfs_tree *tree, const char *by);
void pfs_scan_unlock(struct pfs_tree *tree);

/* Watches a scan on behalf of whoever waits for it. Any thread of the scan looks at `stop`. The
 * thread that asked calls `look` every few milliseconds, with the tree held; a result that is not 0
 * ends the scan. look may let go of the tree and take it again; if the epoch is another one then,
 * it returns -EAGAIN. */
struct pfs_scan_watch {
	const _Atomic bool *stop; /* becoming true ends the scan with -EINTR */
	int (*look)(void *arg);
	void *arg;
};

/* Returns 0 if the scan is to go on; NULL: nobody waits. */
PFS_MUST_CHECK static inline int pfs_scan_look(const struct pfs_scan_watch *watch)
{
	if (!watch)
		return 0;
	return *watch->stop ? -EINTR : watch->look(watch->arg);
}

/* Makes totals, if there are none yet; what is asked for later would make them without a look.
 * -ENOMEM, and what looks return. */
PFS_MUST_CHECK int pfs_scan_prepare_totals(struct pfs_tree *tree,
					   const struct pfs_scan_watch *watch);

/* As pfs_scan_prepare_totals for subtrees as ranges of slots (fs/image/span.h), but nothing is made
 * if nobody looks. */
PFS_MUST_CHECK int pfs_scan_prepare_spans(struct pfs_tree *tree,
					  const struct pfs_scan_watch *watch);

/* Makes the column indexes that earlier questions have missed, if any, and lets the path index
 * follow the tree. To be called between two holds. */
void pfs_scan_prepare(struct pfs_tree *tree);

/* Returns a number that all slots are below. Those without a node, or whose node has no name any
 * more, are in no set. */
uint32_t pfs_scan_end(const struct pfs_tree *tree);
uint32_t pfs_scan_slot_of(const struct pfs_tree *tree, uint64_t ino); /* PFS_NO_SLOT: none */

enum pfs_test {
	PFS_TEST_RANGE,	   /* integers: low <= value <= high */
	PFS_TEST_MASK,	   /* MODE: value & low == high */
	PFS_TEST_EQUAL,	   /* bytes, also those of PATH */
	PFS_TEST_BETWEEN,  /* bytes: low_text <= value < high_text (NULL: open), by memcmp */
	PFS_TEST_GLOB,	   /* SQLite's GLOB */
	PFS_TEST_LIKE,	   /* SQLite's LIKE, ASCII case folded, no escape */
	PFS_TEST_CONTAINS, /* bytes */
	PFS_TEST_PREFIX,
	PFS_TEST_SUFFIX,
	PFS_TEST_NONE, /* the value is none (SQL: IS NULL) */
	PFS_TEST_UNDER,
	PFS_TEST_CHILD_OF,
	PFS_TEST_ANCESTOR_OF, /* of the node `low` (an ino); no field */
	PFS_TEST_SHOWN, /* the bit of the node's directory is set, or it is the root; no field */
};

struct pfs_predicate {
	enum pfs_field field;
	enum pfs_test test;
	bool negated; /* true where the value is there and the test is false */
	int64_t low, high;
	const char *text, *high_text; /* the caller's */
	size_t text_len, high_len;
	const uint64_t *bits; /* SHOWN: of directories, by slot; as many words as slots need */
};

struct pfs_slots { /* ascending, malloc'ed */
	uint32_t *slot;
	size_t n;
};
void pfs_slots_finish(struct pfs_slots *slots);

/* Finds the nodes, among `within` (NULL: all), for which all n predicates hold. Chooses by itself
 * where to begin: a node by its number or path, a name in one directory, a range of slots, the
 * children of one directory, the engine's bitmap, or all columns. watch: who waits, or NULL.
 * -ENOMEM; -ENOENT: UNDER and the like are of no node, so nothing matches; -EINVAL: the field does
 * not have the test. */
PFS_MUST_CHECK int pfs_scan_select(struct pfs_tree *tree, struct pfs_slots *out,
				   const struct pfs_predicate *predicates, size_t n,
				   const struct pfs_slots *within,
				   const struct pfs_scan_watch *watch);

/* Lists the directory's children by its entries, ascending. -E2BIG: they are more than max;
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_scan_children(const struct pfs_tree *tree, struct pfs_slots *out,
				     uint32_t directory, size_t max);

/* Guesses from a sample how many nodes the predicates leave, and tells where they would be looked
 * for, as a phrase: "one node", "range of slots", "ranges of slots", "children", "name index",
 * "subtree by name index", "index of size", "index of name" and the like, "path index",
 * "ancestors", "codes on cuda" or "on host", "all names", "all columns". */
uint64_t pfs_scan_estimate(struct pfs_tree *tree, const char **how,
			   const struct pfs_predicate *predicates, size_t n);

/* A column index beside a scan, in nanoseconds of one processor. */
struct pfs_scan_weighed {
	const char *index; /* as pfs_scan_estimate has it; NULL: nothing that is asked is a range of
			      a column that can have one */
	bool is_there;	   /* it is made */
	bool is_chosen;
	uint64_t index_ns, scan_ns;
};

/* Estimates what the predicates cost by the column index that leaves the fewest nodes, made or not,
 * and by a scan. */
void pfs_scan_weigh(struct pfs_tree *tree, struct pfs_scan_weighed *out,
		    const struct pfs_predicate *predicates, size_t n);

/* Returns true if pfs_scan_select would have the nodes from an index or a list, and look at few
 * others. */
bool pfs_scan_is_short(struct pfs_tree *tree, const struct pfs_predicate *predicates, size_t n);

/* Notes that an index of the field would have helped a question. */
void pfs_scan_missed(struct pfs_tree *tree, enum pfs_field field);

/* Returns how many slots the node's subtree takes, if it is a range of them, or all; 0: it is not
 * known. */
uint32_t pfs_scan_span(struct pfs_tree *tree, uint32_t slot);

/* Gets the node and what lies under it as n ranges of slots, which ascend; slots in them that have no
 * node count for nothing. The caller frees *ranges. -ENODATA: they are not known, or very many;
 * -ENOMEM. */
struct pfs_slot_range;
PFS_MUST_CHECK int pfs_scan_ranges(struct pfs_tree *tree, struct pfs_slot_range **ranges, size_t *n,
				   uint32_t slot);

/* Sets out[i] to the integer field of slots[i]. */
PFS_MUST_CHECK int pfs_scan_integers(struct pfs_tree *tree, int64_t *out, enum pfs_field field,
				     const uint32_t *slots, size_t n);

/* Gets the bytes of each slot's field: those of slots[i] are bytes[offset[i]] to bytes[offset[i +
 * 1]]; if there are none, is_none[i] is set (NULL: not asked). offset has room for n + 1. *bytes,
 * allocated with *capacity bytes, grows. */
PFS_MUST_CHECK int pfs_scan_bytes(struct pfs_tree *tree, char **bytes, size_t *capacity,
				  uint64_t *offset, uint8_t *is_none, enum pfs_field field,
				  const uint32_t *slots, size_t n);

/* Returns the threads of the tree, which scans and operators share. */
struct pfs_pool *pfs_scan_pool(const struct pfs_tree *tree);

/* Calls work(context, from, to) for pieces of 0..n, at most `grain` long each, as pfs_pool_run
 * does. */
void pfs_scan_run(struct pfs_tree *tree, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context);

/* As pfs_scan_run, with pieces of `grain` that are begun in their order; none is begun any more
 * once the calling thread has done `most` of them. Returns how many of n are done. */
size_t pfs_scan_run_some(struct pfs_tree *tree, size_t n, size_t grain, size_t most,
			 void (*work)(void *context, size_t from, size_t to), void *context);

/* As pfs_operators_for on the same threads, with a look every few milliseconds, while no thread
 * works, and one at the end; what that returns, if not 0, ends it. */
PFS_MUST_CHECK int pfs_scan_run_watched(struct pfs_tree *tree, size_t n, size_t grain,
					int (*work)(void *context, unsigned worker, uint64_t from,
						    uint64_t to),
					void *context, const struct pfs_scan_watch *watch);

/* Sorts slots component-wise: pre-order, children in byte order of names (the order of `primefs
 * tree`). */
PFS_MUST_CHECK int pfs_scan_sort_preorder(struct pfs_tree *tree, struct pfs_slots *slots,
					  const struct pfs_scan_watch *watch);
/* Sorts slots by the bytes of their paths. -ENOMEM. */
PFS_MUST_CHECK int pfs_scan_sort_paths(struct pfs_tree *tree, struct pfs_slots *slots,
				       const struct pfs_scan_watch *watch);

/* Finds out whether all slots have that order, if that is not known, a few milliseconds at a time.
 * The look may let go of the tree, and go on though it changes; if too much does, it is not known
 * afterwards. */
PFS_MUST_CHECK int pfs_scan_learn_order(struct pfs_tree *tree, const struct pfs_scan_watch *watch);
void pfs_scan_set_piece(uint32_t slots); /* of pfs_scan_piece, a multiple of 64; for tests */

/* Returns true if the slots from..to are known to have that order, ascending. */
bool pfs_scan_ascends(struct pfs_tree *tree, uint32_t from, uint32_t to);

#endif
