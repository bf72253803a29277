/* SPDX-License-Identifier: MIT */
/* fs/nodes/scan_impl.h - what the parts of scan.h share.  tree->lock is held for reading
 * throughout.
 *
 * A selection goes: scan_prepare.c makes a test of each predicate, by what it has to look at;
 * scan_begin.c finds the slots that have to be looked at, scan_rank.c the order of the tests;
 * scan.c takes these slots through the tests (scan_filter.c), 64 to a word of bits, block by block
 * on all cores, and lists the bits that are left. */
#ifndef PFS_FS_NODES_SCAN_IMPL_H
#define PFS_FS_NODES_SCAN_IMPL_H

#include "fs/image/image.h"
#include "fs/image/span.h"
#include "fs/nodes/scan.h"
#include "fs/nodes/scan_names.h"
#include "fs/nodes/scan_simd.h"

#define PFS_SCAN_BLOCK_WORDS 64u /* what one thread takes through all tests before the next */
#define PFS_SCAN_BLOCK	     (PFS_SCAN_BLOCK_WORDS * 64u) /* slots */
#define PFS_SCAN_SMALL	     4096u /* slots; looking at so many costs less than choosing another way */

/* ---- tests ---- */

/* Says what a test looks at. */
enum pfs_scan_how {
	PFS_HOW_NOTHING, /* no value passes (negated: every node that has a value does) */
	PFS_HOW_SLOT,	 /* the slot's number: low <= slot <= high */
	PFS_HOW_LIST,	 /* a few slots, ascending */
	PFS_HOW_RANGES,	 /* ranges of slots, ascending; without `slot` if proper */
	PFS_HOW_U32, PFS_HOW_I64, /* a column: low to high */
	PFS_HOW_MASK,	 /* mode & low == high */
	PFS_HOW_TYPE,	 /* the mode's type is one of the bits of low */
	PFS_HOW_NAME,	 /* the text, in names */
	PFS_HOW_DEPTH,
	PFS_HOW_INTEGER, /* pfs_scan_integer: low to high */
	PFS_HOW_TEXT,	 /* pfs_scan_text: the text, or NONE */
	PFS_HOW_PARENT_BITS, /* the parent's bit */
	PFS_HOW_BITS,	 /* the slot's bit */
	PFS_HOW_CLIMB,	 /* `slot` is met on the way up; the node itself counts, too, unless proper */
};

struct pfs_scan_test {
	enum pfs_scan_how how;
	bool negated;
	bool not_root; /* the root has no such value */
	bool is_none;  /* TEXT: it tests that there is none */
	bool proper;   /* CLIMB, RANGES */
	bool done;     /* the slots looked at have passed it */
	enum pfs_field field;
	const void *column;
	int64_t low, high;
	uint32_t slot; /* of the node that a relation names, or a path, or an ino; or PFS_NO_SLOT */
	enum pfs_test relation; /* UNDER and the like; RANGE: none */
	struct pfs_text_match text;
	const uint64_t *bits;
	uint32_t *list;
	size_t n_list;
	struct pfs_slot_range *ranges;
	size_t n_ranges;
	uint8_t *climbed; /* by slot: 0: not known, 1: under, 2: not */
	uint64_t *own_bits;
	unsigned passed; /* how many of a sample passed */
	float cost, share; /* nanoseconds a slot; and the part of the slots that is expected to pass */
};

/* ---- selections ---- */

#define PFS_TESTS_FEW 3

struct pfs_selection {
	struct pfs_tree *tree;
	const struct pfs_image *image;
	const struct pfs_scan_simd *simd;
	struct pfs_heap names;
	bool all_live;	     /* every slot has a node with a name */
	struct pfs_scan_test *tests;
	size_t n_tests, n_order;
	struct pfs_scan_test **order; /* those that are to be done */
	struct pfs_scan_test few[PFS_TESTS_FEW]; /* room for them: joins ask thousands of times */
	struct pfs_scan_test *few_order[PFS_TESTS_FEW];
	uint32_t from, to; /* slots to be looked at; of these, if `list`, only the n listed */
	const uint32_t *list;
	size_t n_list;
	uint32_t *own_list;
	const char *how; /* as pfs_scan_estimate says it */
	double share; /* the part of the slots looked at that is expected to pass */
	const struct pfs_scan_watch *watch; /* NULL: nobody */
};

/* scan_prepare.c: Makes a test of each predicate. Finish in any case. -EINVAL, -ENOENT, -ENOMEM. */
PFS_MUST_CHECK int pfs_selection_init(struct pfs_selection *selection, struct pfs_tree *tree,
				      const struct pfs_predicate *predicates, size_t n,
				      const struct pfs_scan_watch *watch);
void pfs_selection_finish(struct pfs_selection *selection);

/* scan_begin.c: Chooses the slots to look at. -ENOMEM. */
PFS_MUST_CHECK int pfs_selection_begin(struct pfs_selection *selection,
				       const struct pfs_slots *within);
/* scan_begin.c: As pfs_scan_weigh, of a selection that is not begun, and not to be used afterwards. */
PFS_MUST_CHECK int pfs_selection_weigh(struct pfs_selection *selection, struct pfs_scan_weighed *out);
/* scan_rank.c: Chooses in which order the tests are made; with `estimate`, what may be left is what
 * matters. -ENOMEM, and what pfs_scan_filter returns. */
PFS_MUST_CHECK int pfs_selection_order(struct pfs_selection *selection, bool estimate);

/* Notes, afterwards, that a column index may have been better. */
void pfs_selection_note(const struct pfs_selection *selection, uint64_t found);

/* So many of `size` slots are listed rather than looked for among them. */
static inline uint32_t pfs_selection_few(size_t size)
{
	return (uint32_t)(size / 256) + 16;
}

static inline size_t pfs_selection_size(const struct pfs_selection *selection)
{
	return selection->list ? selection->n_list : selection->to - selection->from;
}

/* ---- one thread's room ---- */

/* The nodes from the root down to the one last asked for, and its path: in pre-order the next one
 * differs little. */
struct pfs_trail {
	uint32_t *slot; /* the root first */
	size_t *end;	/* of the path down to it, the root's is 0 */
	size_t n, slots_capacity, ends_capacity;
	char *bytes; /* the path, if kept */
	size_t bytes_capacity;
	uint32_t *missing; /* by meet: the node, and those above it that are not on the trail */
	size_t n_missing, missing_capacity;
	uint32_t level[256]; /* where a slot is, if at all, by its last 8 bits */
};

/* scan_trail.c: Makes it the trail of a node; the bytes of its path are always kept with it, or
 * never. -ENOMEM. */
PFS_MUST_CHECK int pfs_trail_to(struct pfs_trail *trail, const struct pfs_image *image,
				uint32_t slot, bool keep_bytes);
/* Do the same in two steps: meet sets *level to where the way to the node leaves the trail; turn
 * takes that way. */
PFS_MUST_CHECK int pfs_trail_meet(struct pfs_trail *trail, const struct pfs_image *image,
				  uint32_t slot, size_t *level);
PFS_MUST_CHECK int pfs_trail_turn(struct pfs_trail *trail, const struct pfs_image *image,
				  size_t level, bool keep_bytes);
void pfs_trail_finish(struct pfs_trail *trail);

/* Bounds what texts take in one hold of the tree, about: bytes looked at, or steps of patterns. */
#define PFS_SCAN_WORK (UINT64_C(1) << 21)

struct pfs_scan_worker {
	const struct pfs_selection *selection;
	struct pfs_trail trail;
	char *path;
	size_t path_capacity;
	_Atomic uint64_t *work; /* done in this hold by all workers; NULL: as much as it takes */
	uint64_t own_work;	/* not in there yet */
	uint32_t next; /* the first slot that was left because so much was done; a slot behind all: none was */
};
/* Returns a worker. The first bytes that it looks at in this hold are always looked at, so that
 * each hold gets further. */
static inline struct pfs_scan_worker pfs_scan_worker_of(const struct pfs_selection *selection,
							_Atomic uint64_t *work)
{
	return (struct pfs_scan_worker){.selection = selection, .work = work, .next = UINT32_MAX};
}
void pfs_scan_worker_finish(struct pfs_scan_worker *worker);

/* scan_filter.c: clears the bits of those of the slots, from `first` (a multiple of 64) on, for which
 * the test does not hold, and of those from worker->next on, which it may lower.  At most
 * PFS_SCAN_BLOCK_WORDS.  -ENOMEM. */
PFS_MUST_CHECK int pfs_scan_filter(struct pfs_scan_worker *worker,
				   const struct pfs_scan_test *test, uint64_t *bits, uint32_t first,
				   size_t words);
/* As pfs_scan_filter, for all tests in their order, and for slots without a name. */
PFS_MUST_CHECK int pfs_scan_filter_all(struct pfs_scan_worker *worker, uint64_t *bits,
				       uint32_t first, size_t words);

/* ---- values ---- */

/* Returns the field of a node; totals only after pfs_totals_prepare. */
int64_t pfs_scan_integer(const struct pfs_tree *tree, enum pfs_field field, uint32_t slot);

int64_t pfs_scan_total(const struct pfs_totals *totals, enum pfs_field field);

/* Returns what follows the last dot that is not the first byte; NULL if there is none. */
const char *pfs_scan_extension(const char *name, size_t *len);
/* Returns the bytes of a field that has some and is no path; NULL if the node has none. */
const char *pfs_scan_text(const struct pfs_image *image, size_t *len, enum pfs_field field,
			  uint32_t slot);
/* Sets *path to the node's path, ended by NUL, in the worker's room. -ENOMEM. */
PFS_MUST_CHECK int pfs_scan_path(struct pfs_scan_worker *worker, const struct pfs_image *image,
				 const char **path, size_t *len, uint32_t slot);

/* ---- scan_order.c ---- */

/* Returns how many slots are looked at between two looks, if each takes some steps. */
uint32_t pfs_scan_piece(void);
/* Sets *out to true if each slot is above the one before. What looks return. */
PFS_MUST_CHECK int pfs_slots_ascend(const struct pfs_slots *slots, bool *out,
				    const struct pfs_scan_watch *watch);

/* Sorts slots into pre-order by walking up to their directories; scan_order.c decides when this is
 * the cheapest way. */
PFS_MUST_CHECK int pfs_scan_sort_as_tree(const struct pfs_image *image, struct pfs_slots *slots,
					 const struct pfs_scan_watch *watch);

/* Returns true if a comes before b, by the bytes of PATH or PREORDER. */
bool pfs_scan_path_is_before(const struct pfs_image *image, enum pfs_field field, uint32_t a,
			     uint32_t b);

/* ---- scan_pool.c ---- */

PFS_MUST_CHECK int pfs_scan_create(struct pfs_tree *tree);
void pfs_scan_destroy(struct pfs_tree *tree);

/* visible.c */
PFS_MUST_CHECK int pfs_viewers_create(struct pfs_tree *tree);
void pfs_viewers_destroy(struct pfs_tree *tree);

#endif
