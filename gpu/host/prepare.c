/* SPDX-License-Identifier: MIT */
/* Prepares a program before it runs: makes tables of results by code, takes texts apart, finds
 * ranges of integers, and splits the program into parts that all have to be true. */
#include "gpu/host/evaluate.h"

#include "base/checked.h"

unsigned pfs_step_operands(enum pfs_op op)
{
	switch (op) {
	case PFS_OP_COLUMN:
	case PFS_OP_CONSTANT:
	case PFS_OP_BITS:
		return 0;
	case PFS_OP_NEGATE:
	case PFS_OP_BIT_NOT:
	case PFS_OP_TO_INTEGER:
	case PFS_OP_TO_REAL:
	case PFS_OP_LENGTH:
	case PFS_OP_IN:
	case PFS_OP_IS_NULL:
	case PFS_OP_NOT_NULL:
	case PFS_OP_LIKE:
	case PFS_OP_GLOB:
	case PFS_OP_PREFIX:
	case PFS_OP_SUFFIX:
	case PFS_OP_CONTAINS:
	case PFS_OP_NOT:
		return 1;
	case PFS_OP_BETWEEN:
	case PFS_OP_CHOOSE:
		return 3;
	default:
		return 2;
	}
}

/* Returns true if the step's result for a NULL is NULL, as look_up in evaluate.c assumes. */
static bool has_table(const struct pfs_step *step)
{
	if (step->op == PFS_OP_IS || step->op == PFS_OP_IS_NOT)
		return false;
	if (step->op == PFS_OP_IN)
		return step->n_list > 0;
	return (step->op >= PFS_OP_EQ && step->op <= PFS_OP_BETWEEN) ||
	       (step->op >= PFS_OP_LIKE && step->op <= PFS_OP_CONTAINS);
}

/* ---- tables by code ---- */

struct table_job {
	const struct pfs_step *step;
	struct pfs_prepared *prepared;
	const struct pfs_run *run;
	const struct pfs_dictionary *dictionary;
	const struct pfs_constant *others[2];
};

static int fill_table(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct table_job *job = context;
	struct pfs_run_work work = {.run = job->run};

	(void)worker;
	for (uint64_t code = from; code < to && !work.error; code++) {
		size_t len;
		const uint8_t *text = pfs_dictionary_text(job->dictionary, (uint32_t)code, &len);

		job->prepared->by_code[code] =
			pfs_text_truth(job->step, job->prepared, job->others, text, len, &work);
	}
	return work.error;
}

/* Computes the results of step i once for each code, if its operands are a CODE and constants, and
 * there are no more codes than rows. */
static int prepare_table(struct pfs_evaluator *e, size_t i, uint64_t n_rows)
{
	const struct pfs_step *steps = e->program->steps;
	unsigned others = pfs_step_operands(steps[i].op) - 1;
	struct table_job job = {.step = &steps[i], .prepared = &e->prepared[i], .run = e->run};
	const struct pfs_cell_reader *reader;

	if (i < others + 1 || steps[i - others - 1].op != PFS_OP_COLUMN)
		return 0;
	for (unsigned k = 0; k < others; k++) {
		if (steps[i - others + k].op != PFS_OP_CONSTANT)
			return 0;
		job.others[k] = &steps[i - others + k].constant;
	}
	reader = &e->prepared[i - others - 1].reader;
	if (reader->kind != PFS_KIND_CODE)
		return 0;
	job.dictionary = reader->column ? reader->column->dictionary : reader->vector->dictionary;
	if (job.dictionary->n > n_rows)
		return 0;
	job.prepared->n_codes = job.dictionary->n;
	PFS_TRY(pfs_run_alloc_raw(e->run, &job.prepared->by_code, job.prepared->n_codes, 1));
	return pfs_host_for(e->host, e->run, job.dictionary->n, PFS_SPAN, fill_table, &job);
}

/* ---- opening ---- */

/* Returns true if step i, an EQ, GE or LT, compares a column of names with a constant. */
static bool is_name(const struct pfs_evaluator *e, size_t i)
{
	const struct pfs_step *steps = e->program->steps;
	const struct pfs_cell_reader *reader;

	if (i < 2 ||
	    (steps[i].op != PFS_OP_EQ && steps[i].op != PFS_OP_GE && steps[i].op != PFS_OP_LT) ||
	    steps[i].collation != PFS_BINARY || steps[i - 1].op != PFS_OP_CONSTANT ||
	    steps[i - 1].constant.type != PFS_IS_TEXT || steps[i - 2].op != PFS_OP_COLUMN)
		return false;
	reader = &e->prepared[i - 2].reader;
	return reader->kind == PFS_KIND_PLACE &&
	       (reader->column ? reader->column->heap : reader->vector->heap)->length_size == 1;
}

/* Takes apart what step i looks for in texts, if it is such a step. */
static int prepare_match(struct pfs_evaluator *e, size_t i)
{
	const struct pfs_step *step = &e->program->steps[i];
	const struct pfs_constant *constant = &step->constant;
	struct pfs_text_match *match = &e->prepared[i].match;

	if (is_name(e, i))
		constant = &step[-1].constant;
	else if (step->op < PFS_OP_LIKE || step->op > PFS_OP_CONTAINS || step->escape)
		return 0;
	e->prepared[i].has_match = true;
	if (step->op == PFS_OP_GE)
		pfs_text_match_init_range(match, constant->text, constant->len, NULL, 0);
	else if (step->op == PFS_OP_LT)
		pfs_text_match_init_range(match, NULL, 0, constant->text ? constant->text : "",
					  constant->len);
	else
		return pfs_text_match_init(match, step->op, constant->text, constant->len);
	return 0;
}

/* ---- ranges of a column's integers ---- */

/* Sets the range of integers for which the step is true; the constants that it compares with are
 * the `others` steps before it. Returns false if they are no integers, or there is no range. */
static bool range_of(struct pfs_prepared *range, const struct pfs_step *step, unsigned others)
{
	int64_t bound = step[-1].constant.integer;

	for (unsigned k = 1; k <= others; k++)
		if (step[-(int)k].op != PFS_OP_CONSTANT ||
		    step[-(int)k].constant.type != PFS_IS_INTEGER)
			return false;
	range->low = INT64_MIN;
	range->high = INT64_MAX;
	switch (step->op) {
	case PFS_OP_BETWEEN:
		range->low = step[-2].constant.integer;
		range->high = bound;
		return true;
	case PFS_OP_EQ:
	case PFS_OP_NE:
		range->low = range->high = bound;
		break;
	case PFS_OP_LT:
	case PFS_OP_GE:
		range->is_contrary = step->op == PFS_OP_LT;
		range->low = bound;
		return true;
	case PFS_OP_GT:
	case PFS_OP_LE:
		range->is_contrary = step->op == PFS_OP_GT;
		range->high = bound;
		return true;
	default:
		return false;
	}
	range->is_contrary = step->op == PFS_OP_NE;
	return true;
}

/* Cuts the range to the values that an element of the column can have. */
static void cut_range(struct pfs_prepared *range, const struct pfs_table_column *column)
{
	unsigned bits = column->width * 8u;
	uint64_t most = UINT64_MAX >> (64 - bits);

	if (column->is_signed && bits < 64) {
		range->low = PFS_MAX(range->low, -(int64_t)(most / 2) - 1);
		range->high = PFS_MIN(range->high, (int64_t)(most / 2));
	} else if (!column->is_signed) {
		range->low = PFS_MAX(range->low, INT64_C(0));
		range->high = bits < 64 ? PFS_MIN(range->high, (int64_t)most) : range->high;
	}
}

/* If step i compares a column's integers, none of which is NULL, with constants, makes it read the
 * column itself. Its operands are not computed then. */
static void prepare_range(struct pfs_evaluator *e, size_t i)
{
	const struct pfs_step *step = &e->program->steps[i];
	unsigned others = pfs_step_operands(step->op) - 1;
	struct pfs_prepared *range = &e->prepared[i];
	const struct pfs_table_column *column;

	if (step->op < PFS_OP_EQ || step->op > PFS_OP_BETWEEN || i < others + 1 ||
	    step[-1 - (int)others].op != PFS_OP_COLUMN)
		return;
	range->reader = range[-1 - (int)others].reader;
	column = range->reader.column;
	if (!column || range->reader.rows || range->reader.kind != PFS_KIND_INTEGER ||
	    column->via || column->base || (column->nulls && !column->not_null) ||
	    !range_of(range, step, others))
		return;
	cut_range(range, column);
	range->has_range = true;
	for (unsigned k = 1; k <= others + 1; k++)
		range[-(int)k].is_within = true;
}

static int prepare(struct pfs_evaluator *e, size_t i, uint64_t n_rows)
{
	const struct pfs_step *step = &e->program->steps[i];

	if (step->op == PFS_OP_COLUMN) {
		pfs_cell_reader_open(&e->prepared[i].reader, e->source, step->ref);
		return 0;
	}
	if (step->op == PFS_OP_BITS) {
		/* Only `rows` is set, which gives the row of a position: a table may have no
		 * columns. */
		e->prepared[i].reader.rows =
			e->source->table ? NULL : &e->source->tuples->tables[step->ref.table];
		return 0;
	}
	if (step->op == PFS_OP_IN)
		PFS_TRY(pfs_prepare_in(e->run, &e->prepared[i], step));
	prepare_range(e, i);
	PFS_TRY(prepare_match(e, i));
	return has_table(step) ? prepare_table(e, i, n_rows) : 0;
}

/* Returns how many values the program has on its stack at most. */
static size_t depth_of(const struct pfs_program *program)
{
	size_t depth = 0, most = 1;

	for (size_t i = 0; i < program->n; i++) {
		depth = depth + 1 - pfs_step_operands(program->steps[i].op);
		most = PFS_MAX(most, depth);
	}
	return most;
}

/* Returns the first of the steps that compute the value of step `last`. */
static size_t begin_of(const struct pfs_program *program, size_t last)
{
	size_t wanted = 1, i = last + 1;

	while (wanted) {
		i--;
		wanted = wanted - 1 + pfs_step_operands(program->steps[i].op);
	}
	return i;
}

static void add_part(struct pfs_evaluator *e, size_t from, size_t to)
{
	struct pfs_program_part part = {.from = from, .to = to, .is_safe = true};

	for (size_t i = from; i < to; i++)
		if (e->program->steps[i].op == PFS_OP_COLUMN)
			part.is_safe &= pfs_cell_reader_is_safe(&e->prepared[i].reader);
	e->parts[e->n_parts++] = part;
}

/* Splits the program into parts at its ANDs. A row for which one part is not true need not be
 * tested by the next. */
static void take_apart(struct pfs_evaluator *e)
{
	size_t end = e->program->n, begin;

	while (e->n_parts + 1 < PFS_PARTS_MAX && e->program->steps[end - 1].op == PFS_OP_AND) {
		end--;
		begin = begin_of(e->program, end - 1);
		add_part(e, begin, end);
		end = begin;
	}
	add_part(e, 0, end);
	for (unsigned i = 0, k = e->n_parts - 1; i < k; i++, k--) { /* the last was found first */
		struct pfs_program_part part = e->parts[i];

		e->parts[i] = e->parts[k];
		e->parts[k] = part;
	}
}

int pfs_evaluator_open(struct pfs_evaluator *e, struct pfs_host_operators *host,
		       const struct pfs_run *run, const struct pfs_source *source,
		       const struct pfs_program *program)
{
	struct pfs_source_reader reader;
	int error;

	*e = (struct pfs_evaluator){
		.host = host, .run = run, .source = source, .program = program};
	e->depth = depth_of(program);
	e->n_slots = e->depth * pfs_host_workers(host);
	PFS_TRY(pfs_source_reader_open(&reader, source));
	error = pfs_run_alloc(run, &e->prepared, program->n, sizeof(*e->prepared));
	if (!error)
		error = pfs_run_alloc_raw(run, &e->slots, e->n_slots, sizeof(*e->slots));
	for (size_t i = 0; !error && i < program->n; i++)
		error = prepare(e, i, pfs_source_reader_bound(&reader));
	if (error)
		pfs_evaluator_close(e);
	else
		take_apart(e);
	return error;
}

void pfs_evaluator_close(struct pfs_evaluator *e)
{
	for (size_t i = 0; e->prepared && i < e->program->n; i++) {
		struct pfs_prepared *prepared = &e->prepared[i];

		pfs_run_free(e->run, prepared->sorted, e->program->steps[i].n_list,
			     sizeof(*prepared->sorted));
		pfs_run_free(e->run, prepared->by_code, prepared->n_codes, 1);
		pfs_text_match_finish(&prepared->match);
	}
	if (e->prepared)
		pfs_run_free(e->run, e->prepared, e->program->n, sizeof(*e->prepared));
	pfs_run_free(e->run, e->slots, e->n_slots, sizeof(*e->slots));
	*e = (struct pfs_evaluator){0};
}
