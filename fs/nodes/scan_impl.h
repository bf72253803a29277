/* SPDX-License-Identifier: MIT */
/* fs/nodes/scan_impl.h - what the parts of scan.h share.  tree->lock is held for reading
 * throughout.
 *
 * A selection goes: scan_prepare.c makes a test of each predicate, by what it has to look at;
 * scan_begin.c finds the slots that have to be looked at, scan_rank.c the order of the tests;
 * scan_program.c makes a program of those tests that the operators can make, which select from
 * these slots (scan.c); what they find the other tests look at one by one (scan_rest.c). */
#ifndef PFS_FS_NODES_SCAN_IMPL_H
#define PFS_FS_NODES_SCAN_IMPL_H

#include <pthread.h>

#include "fs/image/image.h"
#include "fs/image/span.h"
#include "fs/nodes/scan.h"
#include "fs/nodes/scan_names.h"
#include "gpu/relation.h"

#define PFS_SCAN_SMALL 4096u /* slots; looking at so many costs less than choosing another way */

/* ---- tests ---- */

/* Says what a test looks at. */
enum pfs_scan_how {
	PFS_HOW_NOTHING, /* no value passes (negated: every node that has a value does) */
	PFS_HOW_SLOT,	 /* the slot's number: low <= slot <= high */
	PFS_HOW_LIST,	 /* a few slots, ascending */
	PFS_HOW_RANGES,	 /* ranges of slots, ascending; without `slot` if proper */
	PFS_HOW_U32,
	PFS_HOW_I64,  /* a column: low to high */
	PFS_HOW_MASK, /* mode & low == high */
	PFS_HOW_TYPE, /* the mode's type is one of the bits of low */
	PFS_HOW_NAME, /* the text, in names */
	PFS_HOW_DEPTH,
	PFS_HOW_INTEGER,     /* pfs_scan_integer: low to high */
	PFS_HOW_TEXT,	     /* pfs_scan_text: the text, or NONE */
	PFS_HOW_PARENT_BITS, /* the parent's bit */
	PFS_HOW_BITS,	     /* the slot's bit */
	PFS_HOW_CLIMB, /* `slot` is met on the way up; the node itself counts, too, unless proper */
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
	float cost,
		share; /* nanoseconds a slot; and the part of the slots that is expected to pass */
};

/* ---- selections ---- */

#define PFS_TESTS_FEW  3
#define PFS_SCAN_STEPS 24u /* of a test, in a program, at most */

struct pfs_selection {
	struct pfs_tree *tree;
	const struct pfs_image *image;
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
/* scan_begin.c: As pfs_scan_weigh, of a selection that is not begun, and not to be used
 * afterwards. */
PFS_MUST_CHECK int pfs_selection_weigh(struct pfs_selection *selection,
				       struct pfs_scan_weighed *out);
/* scan_rank.c: Chooses in which order the tests are made; with `estimate`, what may be left is what
 * matters. -ENOMEM, and what pfs_scan_rest returns. */
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

/* Where a thread makes paths. */
struct pfs_scan_worker {
	struct pfs_trail trail;
	char *path;
	size_t path_capacity;
};

/* ---- selecting ---- */

/* Tests as a program over the image's columns; it must not move. */
struct pfs_scan_program {
	const struct pfs_selection *selection;
	struct pfs_program program; /* without steps: no test is of it */
	struct pfs_table table;
	size_t n_rest; /* tests that are not of it */
	struct pfs_step *steps;
	struct pfs_table_column *columns;
	struct pfs_rows *sets;
	size_t n_steps, n_columns, n_sets;
	struct pfs_step few_steps[PFS_TESTS_FEW * PFS_SCAN_STEPS];
	struct pfs_table_column few_columns[PFS_TESTS_FEW];
	struct pfs_rows few_sets[PFS_TESTS_FEW * 2];
};

/* scan_program.c: Returns true if slots are taken through the test one by one. */
bool pfs_scan_test_is_rest(const struct pfs_selection *selection, const struct pfs_scan_test *test);
/* Makes a program of those of the tests that are not. Finish in any case. -ENOMEM. */
PFS_MUST_CHECK int pfs_scan_program_init(struct pfs_scan_program *p,
					 const struct pfs_selection *selection,
					 struct pfs_scan_test *const *tests, size_t n);
void pfs_scan_program_finish(struct pfs_scan_program *p);

/* scan_rest.c: Keeps those of the slots for which all tests that are taken one by one hold. Of a
 * `sample` no more is looked at than a hold of the tree has time for: *n_seen of them. -ENOMEM,
 * -E2BIG: a pattern would take too many steps; what looks return. */
PFS_MUST_CHECK int pfs_scan_rest(const struct pfs_selection *selection,
				 struct pfs_scan_test *const *tests, size_t n_tests,
				 struct pfs_slots *slots, bool sample, size_t *n_seen);

/* scan.c: Keeps those of the slots for which all tests hold, as pfs_scan_rest. */
PFS_MUST_CHECK int pfs_selection_keep(const struct pfs_selection *selection,
				      struct pfs_scan_test *const *tests, size_t n_tests,
				      struct pfs_slots *slots, bool sample, size_t *n_seen);

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

/* What a run of operators asks whoever waits for a scan. */
struct pfs_scan_pauses {
	const struct pfs_scan_watch *watch;
	pthread_t thread; /* that scans */
	uint64_t until_ns; /* the next look */
};

/* Returns a run of operators on the host that looks every few milliseconds, while no thread works.
 * *pauses has to last as long as it. watch NULL: nobody looks. */
struct pfs_run pfs_scan_run_of(const struct pfs_tree *tree, struct pfs_scan_pauses *pauses,
			       const struct pfs_scan_watch *watch);

PFS_MUST_CHECK int pfs_scan_create(struct pfs_tree *tree);
void pfs_scan_destroy(struct pfs_tree *tree);

/* visible.c */
PFS_MUST_CHECK int pfs_viewers_create(struct pfs_tree *tree);
void pfs_viewers_destroy(struct pfs_tree *tree);

#endif
