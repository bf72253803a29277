/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_predicate.c - a predicate is made a program of tests on the device.
 *
 * Each comparison with a constant becomes a range of integers (reals in their order as integers),
 * so that integers and reals compare exactly.  What is asked of a text with a dictionary is asked
 * of the dictionary's texts, by the host; the rows then look their code's bit up.  Arithmetic is
 * the host's. */
#include "gpu/cuda/cuda_operators.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "gpu/cuda/cuda_range.h"

#define STACK 16 /* truths, as select.cu has room for */

/* What lies on the stack while the program is read. */
struct operand {
	enum { TRUTH, COLUMN, CONSTANT } what;
	struct pfs_ref ref;
	const struct pfs_constant *constant;
};

struct compiler {
	struct pfs_job *job;
	const struct pfs_source *source;
	struct operand stack[PFS_PROGRAM_DEPTH];
	size_t n, n_truths;
	struct pfs_device_program *out;
};

static int emit(struct compiler *c, const struct pfs_device_step *step)
{
	if (c->out->n == PFS_DEVICE_STEPS)
		return -EOPNOTSUPP;
	c->out->step[c->out->n++] = *step;
	return 0;
}

static int push(struct compiler *c, const struct operand *operand)
{
	if (c->n == PFS_PROGRAM_DEPTH)
		return -E2BIG;
	if (operand->what == TRUTH && ++c->n_truths > STACK)
		return -EOPNOTSUPP;
	c->stack[c->n++] = *operand;
	return 0;
}

static int push_truth(struct compiler *c)
{
	return push(c, &(struct operand){.what = TRUTH});
}

static int emit_truth(struct compiler *c, const struct pfs_device_step *step)
{
	PFS_TRY(emit(c, step));
	return push_truth(c);
}

static struct operand *pop(struct compiler *c)
{
	struct operand *operand = &c->stack[--c->n];

	c->n_truths -= operand->what == TRUTH;
	return operand;
}

/* Takes a column off the stack, to be the step's value. */
static int pop_column(struct compiler *c, struct pfs_device_step *step, struct pfs_ref *ref,
		      enum pfs_kind *kind)
{
	const struct operand *column;

	if (c->n < 1)
		return -EINVAL;
	column = pop(c);
	if (column->what != COLUMN)
		return -EOPNOTSUPP;
	*ref = column->ref;
	return pfs_job_value(c->job, &step->value, kind, c->source, *ref);
}

/* ---- texts ---- */

/* Which codes the step is true for, by the host, over a table of the dictionary alone: *step tests
 * their bits. */
static int ask_dictionary(struct compiler *c, struct pfs_device_step *step,
			  const struct pfs_dictionary *dictionary, const struct pfs_step *steps,
			  size_t n)
{
	uint32_t *codes PFS_FREE = malloc((dictionary->n + 1) * sizeof(*codes));
	const struct pfs_table_column column = {.kind = PFS_KIND_CODE,
						.width = 4,
						.not_null = true,
						.data = codes,
						.dictionary = dictionary};
	const struct pfs_table table = {
		.n_rows = dictionary->n, .n_columns = 1, .columns = &column};
	struct pfs_operator_backend *host = pfs_operators_host(c->job->run->operators);
	struct pfs_run run = *c->job->run;
	size_t words = pfs_div_round_up(dictionary->n, 64);
	uint64_t *bits PFS_FREE = malloc(words * 8 + 1);
	struct pfs_rows *rows;
	int error;

	if (!codes || !bits)
		return -ENOMEM;
	for (uint32_t i = 0; i < dictionary->n; i++)
		codes[i] = i;
	run.on = PFS_ENGINE_HOST;
	run.pause = NULL; /* the job has leases */
	PFS_TRY(host->families->select->select(host, &run, &rows,
					       &(struct pfs_source){.table = &table},
					       &(struct pfs_program){steps, n}));
	pfs_rows_words(rows, bits, 0, words);
	pfs_rows_free(&run, rows);
	step->op = PFS_DEVICE_IN_SET;
	step->n = dictionary->n;
	error = pfs_job_upload(c->job, &step->d_set, bits, words * 8);
	return error ? error : PFS_CUDA(cudaStreamSynchronize(c->job->stream));
}

/* What the step tests texts of a heap for; -EOPNOTSUPP: only the host can. */
static int pattern_of(struct pfs_device_step *step, const struct pfs_step *s, const char **text,
		      size_t *len)
{
	enum pfs_op op = s->op;

	*text = s->constant.text;
	*len = s->constant.len;
	if (op == PFS_OP_LIKE || op == PFS_OP_GLOB) {
		if (!pfs_pattern_is_simple(s, &op, text, len))
			return -EOPNOTSUPP;
		step->folds = s->op == PFS_OP_LIKE;
		step->ends_at_nul = true;
	}
	step->op = op == PFS_OP_PREFIX	 ? PFS_DEVICE_BEGINS
		   : op == PFS_OP_SUFFIX ? PFS_DEVICE_ENDS
		   : op == PFS_OP_EQ	 ? PFS_DEVICE_EQUALS
					 : PFS_DEVICE_CONTAINS;
	return *len > UINT32_MAX ? -EOPNOTSUPP : 0;
}

/* Texts are compared with these; capitals made small if the step folds. */
static int send_text(struct compiler *c, struct pfs_device_step *step, const char *text, size_t len)
{
	char *small PFS_FREE = malloc(len + 1);

	if (!small)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		small[i] = step->folds && text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 32)
									   : text[i];
	step->n = len;
	PFS_TRY(pfs_job_upload(c->job, &step->d_text, small, len));
	return PFS_CUDA(cudaStreamSynchronize(c->job->stream));
}

/* A test of a text column. */
static int test_text(struct compiler *c, struct pfs_device_step *step, const struct pfs_step *s,
		     struct pfs_ref ref, enum pfs_kind kind)
{
	const struct pfs_table_column *column = pfs_source_column(c->source, ref);
	const char *text;
	size_t len;

	if (kind == PFS_KIND_CODE) {
		const struct pfs_step steps[2] = {{.op = PFS_OP_COLUMN}, *s};

		return ask_dictionary(c, step, pfs_source_dictionary(c->source, ref), steps, 2);
	}
	if (!column)
		return -EOPNOTSUPP;
	PFS_TRY(pattern_of(step, s, &text, &len));
	PFS_TRY(pfs_job_heap(c->job, &step->heap, column->heap));
	return send_text(c, step, text, len);
}

/* ---- comparisons ---- */

static int emit_not(struct compiler *c)
{
	return emit(c, &(struct pfs_device_step){.op = PFS_DEVICE_NOT});
}

/* column op text. */
static int compare_text(struct compiler *c, struct pfs_device_step *step, enum pfs_op op,
			const struct pfs_step *s, const struct operand *column,
			const struct pfs_constant *constant, enum pfs_kind kind)
{
	const struct pfs_table_column *at = pfs_source_column(c->source, column->ref);
	const struct pfs_step steps[3] = {
		{.op = PFS_OP_COLUMN},
		{.op = PFS_OP_CONSTANT, .constant = *constant},
		{.op = op, .collation = s->collation},
	};

	if (kind == PFS_KIND_CODE) {
		PFS_TRY(ask_dictionary(c, step, pfs_source_dictionary(c->source, column->ref),
				       steps, 3));
		return emit_truth(c, step);
	}
	if (!at || (op != PFS_OP_EQ && op != PFS_OP_NE) || constant->type != PFS_IS_TEXT ||
	    constant->len > UINT32_MAX)
		return -EOPNOTSUPP;
	/* By NOCASE, what stands behind a NUL is not compared. */
	if (s->collation == PFS_RTRIM || (s->collation == PFS_NOCASE && constant->len &&
					  memchr(constant->text, 0, constant->len)))
		return -EOPNOTSUPP;
	step->op = PFS_DEVICE_EQUALS;
	step->folds = s->collation == PFS_NOCASE;
	PFS_TRY(pfs_job_heap(c->job, &step->heap, at->heap));
	PFS_TRY(send_text(c, step, constant->text, constant->len));
	PFS_TRY(emit_truth(c, step));
	return op == PFS_OP_NE ? emit_not(c) : 0;
}

/* Where elements can be compared as they lie in the column, the range is made one of elements. */
static void make_plain(struct pfs_device_step *step)
{
	const struct pfs_device_column *c = &step->value.column;
	int64_t least = 0, most = INT64_MAX;

	if (step->value.d_rows || c->d_via || c->d_nulls || c->shift || c->mask != UINT64_MAX ||
	    c->is_real || step->low > step->high)
		return;
	if (c->width < 8 && c->is_signed)
		return;
	if (c->width < 8)
		most = (int64_t)((UINT64_C(1) << 8 * c->width) - 1);
	else
		least = INT64_MIN;
	if (c->width == 8 && c->base)
		return;
	if (__builtin_sub_overflow(step->low, c->base, &step->low))
		step->low = c->base > 0 ? INT64_MIN : INT64_MAX;
	if (__builtin_sub_overflow(step->high, c->base, &step->high))
		step->high = c->base > 0 ? INT64_MIN : INT64_MAX;
	if (step->low > most || step->high < least) { /* nothing: as a range that is none */
		step->low = 1;
		step->high = 0;
		return;
	}
	step->low = PFS_MAX(step->low, least);
	step->high = PFS_MIN(step->high, most);
	step->is_plain = true;
}

static int compare_constant(struct compiler *c, enum pfs_op op, const struct pfs_step *s,
			    const struct operand *column, const struct pfs_constant *constant)
{
	struct pfs_device_step step = {.op = PFS_DEVICE_RANGE};
	enum pfs_kind kind;
	struct pfs_range r;

	if (constant->type == PFS_IS_NULL)
		return emit_truth(c, &(struct pfs_device_step){.op = PFS_DEVICE_UNKNOWN});
	PFS_TRY(pfs_job_value(c->job, &step.value, &kind, c->source, column->ref));
	if (kind == PFS_KIND_CODE || kind == PFS_KIND_PLACE)
		return compare_text(c, &step, op, s, column, constant, kind);
	PFS_TRY(pfs_range_of(&r, op == PFS_OP_NE ? PFS_OP_EQ : op, step.value.column.is_real,
			 constant));
	step.low = r.low;
	step.high = r.high;
	make_plain(&step);
	PFS_TRY(emit_truth(c, &step));
	return op == PFS_OP_NE ? emit_not(c) : 0;
}

static int compare_columns(struct compiler *c, enum pfs_op op, const struct operand *a,
			   const struct operand *b)
{
	struct pfs_device_step step = {.op = PFS_DEVICE_COMPARE, .high = op};
	enum pfs_kind kind, other;

	PFS_TRY(pfs_job_value(c->job, &step.value, &kind, c->source, a->ref));
	PFS_TRY(pfs_job_value(c->job, &step.other, &other, c->source, b->ref));
	if (kind != other || (kind != PFS_KIND_INTEGER && kind != PFS_KIND_REAL))
		return -EOPNOTSUPP;
	return emit_truth(c, &step);
}

/* A truth that is the same for all places: no place is a member of nothing. */
static int emit_known(struct compiler *c, bool is_true)
{
	PFS_TRY(emit_truth(c, &(struct pfs_device_step){.op = PFS_DEVICE_MEMBER}));
	return is_true ? emit_not(c) : 0;
}

/* Sub-selects of one row are constants, so that two may be compared. */
static int compare_constants(struct compiler *c, enum pfs_op op, const struct pfs_constant *a,
			     const struct pfs_constant *b)
{
	bool is_real = a->type == PFS_IS_REAL, is_in;
	struct pfs_range r;
	int64_t x;

	if (a->type == PFS_IS_NULL || b->type == PFS_IS_NULL)
		return emit_truth(c, &(struct pfs_device_step){.op = PFS_DEVICE_UNKNOWN});
	if (a->type == PFS_IS_TEXT)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_range_of(&r, op == PFS_OP_NE ? PFS_OP_EQ : op, is_real, b));
	x = is_real ? pfs_order_real(a->real) : a->integer;
	is_in = x >= r.low && x <= r.high;
	return emit_known(c, is_in != (op == PFS_OP_NE));
}

static int compare(struct compiler *c, const struct pfs_step *s)
{
	struct operand b, a;

	if (c->n < 2)
		return -EINVAL;
	b = *pop(c);
	a = *pop(c);
	if (a.what == COLUMN && b.what == CONSTANT)
		return compare_constant(c, s->op, s, &a, b.constant);
	if (a.what == CONSTANT && b.what == COLUMN)
		return compare_constant(c, pfs_op_mirrored(s->op), s, &b, a.constant);
	if (a.what == COLUMN && b.what == COLUMN)
		return compare_columns(c, s->op, &a, &b);
	if (a.what == CONSTANT && b.what == CONSTANT)
		return compare_constants(c, s->op, a.constant, b.constant);
	return -EOPNOTSUPP;
}

static int between(struct compiler *c, const struct pfs_step *s)
{
	struct operand high, low, column;

	if (c->n < 3)
		return -EINVAL;
	high = *pop(c);
	low = *pop(c);
	column = *pop(c);
	if (column.what != COLUMN || low.what != CONSTANT || high.what != CONSTANT)
		return -EOPNOTSUPP;
	PFS_TRY(compare_constant(c, PFS_OP_GE, s, &column, low.constant));
	PFS_TRY(compare_constant(c, PFS_OP_LE, s, &column, high.constant));
	(void)pop(c);
	return emit(c, &(struct pfs_device_step){.op = PFS_DEVICE_AND});
}

/* The list's numbers, ascending, as the column has them, at *d_list; step->n of them. */
static int send_numbers(struct compiler *c, struct pfs_device_step *step, const struct pfs_step *s)
{
	int64_t *numbers PFS_FREE = malloc(s->n_list * sizeof(*numbers) + 1);
	struct pfs_range r;
	int error;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_list; i++) {
		PFS_TRY(pfs_range_of(&r, PFS_OP_EQ, step->value.column.is_real, &s->list[i]));
		if (r.low <= r.high)
			numbers[step->n++] = r.low;
	}
	if (step->n)
		qsort(numbers, step->n, sizeof(*numbers), pfs_compare_i64);
	error = pfs_job_upload(c->job, &step->d_list, numbers, step->n * sizeof(*numbers));
	return error ? error : PFS_CUDA(cudaStreamSynchronize(c->job->stream));
}

static int combine_truths(struct compiler *c, enum pfs_device_op op, size_t n)
{
	if (c->n < n)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (pop(c)->what != TRUTH)
			return -EOPNOTSUPP;
	return emit_truth(c, &(struct pfs_device_step){.op = op});
}

/* Texts of a heap are compared with each text of the list; numbers are equal to none. */
static int in_texts(struct compiler *c, const struct pfs_step *s, const struct operand *column)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_list; i++) {
		if (s->list[i].type != PFS_IS_TEXT)
			continue;
		PFS_TRY(compare_constant(c, PFS_OP_EQ, s, column, &s->list[i]));
		if (n++)
			PFS_TRY(combine_truths(c, PFS_DEVICE_OR, 2));
	}
	return n ? 0 : -EOPNOTSUPP;
}

/* The list has at least one member, and none is NULL. */
static int in_known(struct compiler *c, const struct pfs_step *s, const struct operand *column)
{
	const struct pfs_step steps[2] = {{.op = PFS_OP_COLUMN}, *s};
	struct pfs_device_step step = {.op = PFS_DEVICE_IN};
	enum pfs_kind kind;

	PFS_TRY(pfs_job_value(c->job, &step.value, &kind, c->source, column->ref));
	if (kind == PFS_KIND_PLACE)
		return in_texts(c, s, column);
	if (kind == PFS_KIND_CODE)
		PFS_TRY(ask_dictionary(c, &step, pfs_source_dictionary(c->source, column->ref),
				       steps, 2));
	else
		PFS_TRY(send_numbers(c, &step, s));
	return emit_truth(c, &step);
}

/* With a NULL in the list, what is not found is unknown. */
static int in_list(struct compiler *c, const struct pfs_step *s)
{
	struct pfs_constant *list PFS_FREE = malloc((s->n_list + 1) * sizeof(*list));
	struct pfs_step known = *s;
	struct operand column;

	if (!list)
		return -ENOMEM;
	if (c->n < 1)
		return -EINVAL;
	column = *pop(c);
	if (column.what != COLUMN)
		return -EOPNOTSUPP;
	if (s->n_list == 0) /* false, for NULL, too */
		return emit_known(c, false);
	known.list = list;
	known.n_list = 0;
	for (size_t i = 0; i < s->n_list; i++) {
		if (s->list[i].type != PFS_IS_NULL)
			list[known.n_list++] = s->list[i];
	}
	if (known.n_list)
		PFS_TRY(in_known(c, &known, &column));
	if (known.n_list == s->n_list)
		return 0;
	PFS_TRY(emit_truth(c, &(struct pfs_device_step){.op = PFS_DEVICE_UNKNOWN}));
	return known.n_list ? combine_truths(c, PFS_DEVICE_OR, 2) : 0;
}

static int is_null(struct compiler *c, bool wanted)
{
	struct pfs_device_step step = {.op = PFS_DEVICE_IS_NULL};
	enum pfs_kind kind;
	struct pfs_ref ref;

	PFS_TRY(pop_column(c, &step, &ref, &kind));
	PFS_TRY(emit_truth(c, &step));
	return wanted ? 0 : emit_not(c);
}

static int match(struct compiler *c, const struct pfs_step *s)
{
	struct pfs_device_step step = {0};
	enum pfs_kind kind;
	struct pfs_ref ref;

	PFS_TRY(pop_column(c, &step, &ref, &kind));
	if (kind != PFS_KIND_CODE && kind != PFS_KIND_PLACE)
		return -EOPNOTSUPP;
	PFS_TRY(test_text(c, &step, s, ref, kind));
	return emit_truth(c, &step);
}

static int member(struct compiler *c, const struct pfs_step *s)
{
	struct pfs_device_step step = {.op = PFS_DEVICE_MEMBER, .n = s->bits->n_rows};
	const struct pfs_source rows = {.table = &(struct pfs_table){.n_rows = s->bits->n_rows},
					.rows = s->bits};
	struct pfs_device_places places;
	uint32_t *d_bits;

	if (c->source->tuples)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_job_places(c->job, &places, &rows));
	if (!places.d_mask) { /* a range: written out */
		PFS_TRY(pfs_job_alloc(c->job, &d_bits, pfs_div_round_up(s->bits->n_rows, 64) * 8));
		PFS_TRY(pfs_cuda_select(d_bits, s->bits->n_rows, NULL, &places, NULL,
					c->job->stream));
		places.d_mask = d_bits;
	}
	step.d_set = places.d_mask;
	return emit_truth(c, &step);
}

static int read_step(struct compiler *c, const struct pfs_step *s)
{
	switch (s->op) {
	case PFS_OP_COLUMN:
		return push(c, &(struct operand){.what = COLUMN, .ref = s->ref});
	case PFS_OP_CONSTANT:
		return push(c, &(struct operand){.what = CONSTANT, .constant = &s->constant});
	case PFS_OP_BITS:
		return member(c, s);
	case PFS_OP_EQ:
	case PFS_OP_NE:
	case PFS_OP_LT:
	case PFS_OP_LE:
	case PFS_OP_GT:
	case PFS_OP_GE:
		return compare(c, s);
	case PFS_OP_BETWEEN:
		return between(c, s);
	case PFS_OP_IN:
		return in_list(c, s);
	case PFS_OP_IS_NULL:
	case PFS_OP_NOT_NULL:
		return is_null(c, s->op == PFS_OP_IS_NULL);
	case PFS_OP_LIKE:
	case PFS_OP_GLOB:
	case PFS_OP_PREFIX:
	case PFS_OP_SUFFIX:
	case PFS_OP_CONTAINS:
		return match(c, s);
	case PFS_OP_AND:
		return combine_truths(c, PFS_DEVICE_AND, 2);
	case PFS_OP_OR:
		return combine_truths(c, PFS_DEVICE_OR, 2);
	case PFS_OP_NOT:
		return combine_truths(c, PFS_DEVICE_NOT, 1);
	default:
		return -EOPNOTSUPP;
	}
}

int pfs_job_predicate(struct pfs_job *job, struct pfs_device_program *out,
		      const struct pfs_source *source, const struct pfs_program *program)
{
	struct compiler c = {.job = job, .source = source, .out = out};

	out->n = 0;
	if (!program)
		return 0;
	for (size_t i = 0; i < program->n; i++)
		PFS_TRY(read_step(&c, &program->steps[i]));
	return c.n == 1 && c.stack[0].what == TRUTH ? 0 : -EOPNOTSUPP;
}
