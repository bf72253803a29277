/* SPDX-License-Identifier: MIT */
/* gpu/host/evaluate.h - runs a program over spans of a source. Threads: each worker has slots of
 * its own. */
#ifndef PFS_GPU_HOST_EVALUATE_H
#define PFS_GPU_HOST_EVALUATE_H

#include <stdatomic.h>

#include "gpu/host/operators.h"
#include "gpu/host/span.h"
#include "gpu/textmatch.h"

enum pfs_slot_type {
	PFS_SLOT_IS_TRUTH,
	PFS_SLOT_IS_NUMBER, /* cells.integers and reals; has_reals says whether there are reals */
	PFS_SLOT_IS_TEXT,   /* cells.codes, of `reader` */
	PFS_SLOT_IS_CONSTANT,
};

/* The steps from..to of a program, whose result is a truth. */
struct pfs_program_part {
	size_t from, to;
	bool is_safe; /* may be evaluated for rows that do not exist */
};
#define PFS_PARTS_MAX 8u

/* One operand or result of a step: its value for each tuple of a span. */
struct pfs_slot {
	enum pfs_slot_type type;
	const struct pfs_constant *constant;
	const struct pfs_cell_reader *reader;
	uint64_t truth[PFS_SPAN_WORDS]; /* 0 where cells.nulls has a bit */
	struct pfs_cells cells;
};

/* What is prepared for one step. */
struct pfs_prepared {
	struct pfs_cell_reader reader; /* of a COLUMN, or with has_range; of BITS only `rows` */
	struct pfs_constant *sorted;   /* IN: the list in order, without NULLs */
	size_t n_sorted;
	bool has_null;	    /* IN: the list has a NULL */
	bool only_integers; /* IN: `sorted` has integers alone */
	/* The result for each code, 0, 1, or 2 for NULL, of a step whose operands are a CODE and
	 * constants; else NULL. */
	uint8_t *by_code;
	size_t n_codes;
	bool is_within; /* it is not run: a step with has_range reads its operands itself */
	/* The step is true of a column's integers in low..high, or, with is_contrary, of all
	 * others. The range is empty if low > high. */
	bool has_range;
	bool is_contrary;
	int64_t low, high;
	bool has_match;
	/* The step taken apart, if it matches texts, or is an EQ, GE or LT of names and a
	 * constant. */
	struct pfs_text_match match;
};

struct pfs_evaluator {
	struct pfs_host_operators *host;
	const struct pfs_run *run;
	const struct pfs_source *source;
	const struct pfs_program *program;
	struct pfs_prepared *prepared; /* one for each step */
	struct pfs_slot *slots;	       /* `depth` for each worker */
	size_t depth, n_slots;
	struct pfs_program_part parts[PFS_PARTS_MAX]; /* the program is true if all of them are */
	unsigned n_parts;
	_Atomic int error; /* of polling while values were computed, which are invalid then; or 0 */
};

/* Returns how many values a step takes. */
unsigned pfs_step_operands(enum pfs_op op);

/* prepare.c: Prepares the program, with slots for each worker; without a host, for one, who then
 * prepares all alone. On failure nothing needs closing.
 * -EINVAL: the source is a batch of 2^32 tuples or more; and what `run` returns. */
PFS_MUST_CHECK int pfs_evaluator_open(struct pfs_evaluator *e, struct pfs_host_operators *host,
				      const struct pfs_run *run, const struct pfs_source *source,
				      const struct pfs_program *program);
void pfs_evaluator_close(struct pfs_evaluator *e); /* {0} is allowed */

/* Returns the program's value at the span, valid until the worker's next call. The caller has to
 * check the evaluator's error before it relies on values. */
struct pfs_slot *pfs_evaluate(struct pfs_evaluator *e, unsigned worker,
			      const struct pfs_span *span);
/* As pfs_evaluate, with slots that are the caller's: e->depth of them. */
struct pfs_slot *pfs_evaluate_with(struct pfs_evaluator *e, struct pfs_slot *slots,
				   const struct pfs_span *span);

/* Returns the value as a truth: bits where it is true, none where it is NULL; bits past the span
 * are 0. */
const uint64_t *pfs_evaluate_truth(struct pfs_evaluator *e, unsigned worker,
				   const struct pfs_span *span);

/* Keeps those of n rows, at most PFS_SPAN, for which the program is true. Returns how many. */
uint32_t pfs_evaluate_list(struct pfs_evaluator *e, unsigned worker, uint32_t *rows, uint32_t n);

/* Sets `words` as pfs_source_reader_words does, but only for rows for which the program is true.
 * Returns how many. */
uint32_t pfs_evaluate_words(struct pfs_evaluator *e, unsigned worker,
			    const struct pfs_source_reader *reader, uint64_t *words,
			    uint32_t first);

/* ---- arithmetic.c, compare.c ----
 * Each computes n values of one or more slots, which are the operands of a step in their order. The
 * first slot becomes the result. */

/* Convert a truth to a number, or a number to a truth; NULL stays NULL. */
void pfs_slot_to_number(struct pfs_slot *slot, uint32_t n);
void pfs_slot_to_truth(struct pfs_slot *slot, uint32_t n);
/* op: an operator of two numbers. */
void pfs_slot_arithmetic(struct pfs_slot *slots, enum pfs_op op, uint32_t n);
/* op: PFS_OP_NEGATE, BIT_NOT, TO_INTEGER or TO_REAL. */
void pfs_slot_convert(struct pfs_slot *slot, enum pfs_op op, uint32_t n);
/* Replaces texts by their lengths in characters. */
void pfs_slot_length(struct pfs_slot *slot, uint32_t n);
/* slots: a truth, the values where it is true, and the values where it is not. */
void pfs_slot_choose(struct pfs_slot *slots, uint32_t n);
void pfs_slot_compare(struct pfs_slot *slots, const struct pfs_step *step, uint32_t n);
void pfs_slot_in(struct pfs_slot *slot, const struct pfs_step *step,
		 const struct pfs_prepared *prepared, uint32_t n);
void pfs_slot_match(struct pfs_slot *slot, const struct pfs_step *step,
		    const struct pfs_prepared *prepared, uint32_t n, struct pfs_run_work *work);

/* Returns the result of a step for one text, which it compares with `others` or matches: 0, 1, or 2
 * for NULL. */
uint8_t pfs_text_truth(const struct pfs_step *step, const struct pfs_prepared *prepared,
		       const struct pfs_constant *const *others, const uint8_t *text, size_t len,
		       struct pfs_run_work *work);

/* Sets n_sorted, has_null, only_integers and `sorted`, of an IN. -ENOMEM. */
PFS_MUST_CHECK int pfs_prepare_in(const struct pfs_run *run, struct pfs_prepared *prepared,
				  const struct pfs_step *step);

#endif
