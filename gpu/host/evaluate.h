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

/* Steps from..to of a program, which leave a truth. */
struct pfs_program_part {
	size_t from, to;
	bool is_safe; /* rows that do not exist can be evaluated, too */
};
#define PFS_PARTS_MAX 8u

/* A place on the stack. */
struct pfs_slot {
	enum pfs_slot_type type;
	const struct pfs_constant *constant;
	const struct pfs_cell_reader *reader;
	uint64_t truth[PFS_SPAN_WORDS]; /* no bit where cells.nulls has one */
	struct pfs_cells cells;
};

/* Holds what a step needs beside itself. */
struct pfs_prepared {
	struct pfs_cell_reader reader; /* COLUMN, or has_range */
	struct pfs_constant *sorted;   /* IN: without NULLs */
	size_t n_sorted;
	bool has_null;	    /* IN */
	bool only_integers; /* IN */
	uint8_t *by_code;   /* for a step whose operand is a CODE and whose others are constants: 0,
			     * 1, or   2 for NULL, by code */
	size_t n_codes;
	bool is_within; /* the step that takes its value reads it itself: */
	bool has_range; /* is_contrary != (low <= a column's integer <= high), none if low > high */
	bool is_contrary;
	int64_t low, high;
	bool has_match;
	struct pfs_text_match match; /* of a pattern, or of EQ, GE or LT of names and a constant: the step taken apart */
};

struct pfs_evaluator {
	struct pfs_host_operators *host;
	const struct pfs_run *run;
	const struct pfs_source *source;
	const struct pfs_program *program;
	struct pfs_prepared *prepared; /* n of the program */
	struct pfs_slot *slots;	       /* depth for each worker */
	size_t depth, n_slots;
	struct pfs_program_part parts[PFS_PARTS_MAX]; /* all of which have to be true, if the program is */
	unsigned n_parts;
	_Atomic int error; /* of polling while values were made, which are none then */
};

/* Returns how many values a step takes. */
unsigned pfs_step_operands(enum pfs_op op);

/* prepare.c: */
PFS_MUST_CHECK int pfs_evaluator_open(struct pfs_evaluator *e, struct pfs_host_operators *host,
				      const struct pfs_run *run, const struct pfs_source *source,
				      const struct pfs_program *program);
void pfs_evaluator_close(struct pfs_evaluator *e); /* {0} is allowed */

/* Returns the program's value at the span, valid until the worker's next call; the evaluator's error is to be looked at before
 * it is used up. */
struct pfs_slot *pfs_evaluate(struct pfs_evaluator *e, unsigned worker,
			      const struct pfs_span *span);

/* Returns the value as a truth: bits where it is true, none where it is NULL; bits past the span
 * are 0. */
const uint64_t *pfs_evaluate_truth(struct pfs_evaluator *e, unsigned worker,
				   const struct pfs_span *span);

/* Keeps those of the span's n rows, which are listed, for which the program is true. Returns how many. */
uint32_t pfs_evaluate_list(struct pfs_evaluator *e, unsigned worker, uint32_t *rows, uint32_t n);

/* Tells which of the source's rows from `first` on, as pfs_source_reader_words, the program is true for.
 * Returns how many. */
uint32_t pfs_evaluate_words(struct pfs_evaluator *e, unsigned worker,
			    const struct pfs_source_reader *reader, uint64_t *words, uint32_t first);

/* ---- arithmetic.c, compare.c ----
 * Each computes n values of one or more slots, which are the operands of a step in their order. The
 * first slot becomes the result. */

/* Make numbers of truths, and truths of numbers; NULL stays NULL. */
void pfs_slot_to_number(struct pfs_slot *slot, uint32_t n);
void pfs_slot_to_truth(struct pfs_slot *slot, uint32_t n);
/* op: an operator of two numbers. */
void pfs_slot_arithmetic(struct pfs_slot *slots, enum pfs_op op, uint32_t n);
/* op: PFS_OP_NEGATE, BIT_NOT, TO_INTEGER or TO_REAL. */
void pfs_slot_convert(struct pfs_slot *slot, enum pfs_op op, uint32_t n);
/* Makes of texts their lengths in characters. */
void pfs_slot_length(struct pfs_slot *slot, uint32_t n);
/* slots: a truth, and the values that are chosen where it is true, and where it is not. */
void pfs_slot_choose(struct pfs_slot *slots, uint32_t n);
void pfs_slot_compare(struct pfs_slot *slots, const struct pfs_step *step, uint32_t n);
void pfs_slot_in(struct pfs_slot *slot, const struct pfs_step *step,
		 const struct pfs_prepared *prepared, uint32_t n);
void pfs_slot_match(struct pfs_slot *slot, const struct pfs_step *step, const struct pfs_prepared *prepared,
		    uint32_t n, struct pfs_run_work *work);

/* Returns the truth of one text: 0, 1, or 2 for NULL. The step compares it with `others`, or
 * matches it. */
uint8_t pfs_text_truth(const struct pfs_step *step, const struct pfs_prepared *prepared,
		       const struct pfs_constant *const *others, const uint8_t *text, size_t len,
		       struct pfs_run_work *work);

/* Fills `sorted` and what belongs to it. -ENOMEM. */
PFS_MUST_CHECK int pfs_prepare_in(const struct pfs_run *run, struct pfs_prepared *prepared,
				  const struct pfs_step *step);

#endif
