/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_compute.c - computed values on the device: expressions over numbers whose results
 * are all integers or all reals; where they are mixed the host has them.  And the tuples that a
 * condition keeps. */
#include "gpu/cuda/cuda_operators.h"

#include <string.h>

#include "base/checked.h"

static int read_leaf(struct pfs_job *job, struct pfs_device_operation *o,
		     const struct pfs_source *source, const struct pfs_step *step)
{
	const struct pfs_constant *constant = &step->constant;
	enum pfs_kind kind;

	if (step->op == PFS_OP_COLUMN) {
		PFS_TRY(pfs_job_value(job, &o->value, &kind, source, step->ref));
		return kind == PFS_KIND_INTEGER || kind == PFS_KIND_REAL ? 0 : -EOPNOTSUPP;
	}
	switch (constant->type) {
	case PFS_IS_INTEGER:
		o->bits = constant->integer;
		o->type = PFS_CELL_INTEGER;
		return 0;
	case PFS_IS_REAL:
		memcpy(&o->bits, &constant->real, sizeof(o->bits));
		o->type = PFS_CELL_REAL;
		return 0;
	case PFS_IS_NULL:
		o->type = PFS_CELL_NULL;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/* How many values the step takes; -EOPNOTSUPP: the device has it not. */
static int operands_of(enum pfs_op op)
{
	switch (op) {
	case PFS_OP_COLUMN:
	case PFS_OP_CONSTANT:
		return 0;
	case PFS_OP_NEGATE:
	case PFS_OP_TO_INTEGER:
	case PFS_OP_TO_REAL:
	case PFS_OP_IS_NULL:
	case PFS_OP_NOT_NULL:
	case PFS_OP_NOT:
		return 1;
	case PFS_OP_ADD:
	case PFS_OP_SUBTRACT:
	case PFS_OP_MULTIPLY:
	case PFS_OP_DIVIDE:
	case PFS_OP_REMAINDER:
	case PFS_OP_EQ:
	case PFS_OP_NE:
	case PFS_OP_LT:
	case PFS_OP_LE:
	case PFS_OP_GT:
	case PFS_OP_GE:
	case PFS_OP_IS:
	case PFS_OP_IS_NOT:
	case PFS_OP_AND:
	case PFS_OP_OR:
		return 2;
	case PFS_OP_CHOOSE:
		return 3;
	default:
		return -EOPNOTSUPP;
	}
}

static int read_program(struct pfs_job *job, struct pfs_device_expression *out,
			const struct pfs_source *source, const struct pfs_program *program)
{
	int depth = 0;

	out->n = 0;
	for (size_t i = 0; i < program->n; i++) {
		const struct pfs_step *step = &program->steps[i];
		struct pfs_device_operation *o = &out->operation[out->n];
		int operands = operands_of(step->op);

		if (operands < 0 || out->n == PFS_EXPRESSION_STEPS)
			return -EOPNOTSUPP;
		*o = (struct pfs_device_operation){.op = (int)step->op};
		if (operands == 0)
			PFS_TRY(read_leaf(job, o, source, step));
		depth += 1 - operands;
		if (depth < 1 || depth > PFS_EXPRESSION_DEPTH)
			return -EOPNOTSUPP;
		out->n++;
	}
	return depth == 1 ? 0 : -EOPNOTSUPP;
}

/* The rows of the input, written out. */
static int list_places(struct pfs_job *job, uint32_t **d_list, uint64_t *n,
		       const struct pfs_source *source)
{
	struct pfs_device_places places;

	PFS_TRY(pfs_job_places(job, &places, source));
	PFS_TRY(pfs_job_list(job, d_list, n, &places));
	if (*d_list)
		return 0;
	PFS_TRY(pfs_job_alloc(job, d_list, *n * sizeof(**d_list)));
	return pfs_cuda_count_up(*d_list, (uint32_t)places.from, *n, job->stream);
}

/* Vector `at` of the batch; which types its values have is found out on the way. */
static int compute_one(struct pfs_job *job, struct pfs_tuples *tuples, size_t at,
		       const struct pfs_source *source, const struct pfs_program *program,
		       const uint32_t *d_list)
{
	struct pfs_device_tuples *device = tuples->device;
	struct pfs_device_expression expression;
	uint32_t *d_types, *d_nulls, types;
	uint64_t *d_out;

	PFS_TRY(pfs_run_check(job->run));
	PFS_TRY(read_program(job, &expression, source, program));
	PFS_TRY(pfs_job_alloc_zero(job, &d_types, sizeof(*d_types)));
	PFS_TRY(pfs_job_alloc(job, &d_nulls, pfs_div_round_up(tuples->n, 64) * 8));
	PFS_TRY(pfs_job_alloc(job, &d_out, tuples->n * 8));
	PFS_TRY(pfs_cuda_evaluate(d_out, d_nulls, d_types, &expression, d_list, 0, tuples->n,
				  job->stream));
	PFS_TRY(pfs_job_download(job, &types, d_types, sizeof(types)));
	if ((types >> PFS_CELL_INTEGER & 1) && (types >> PFS_CELL_REAL & 1))
		return -EOPNOTSUPP;
	tuples->computed[at].kind = types >> PFS_CELL_REAL & 1 ? PFS_KIND_REAL : PFS_KIND_INTEGER;
	tuples->computed[at].n = tuples->n;
	pfs_device_tuples_own(job, tuples, d_out);
	device->d_data[at] = d_out;
	if (!(types >> PFS_CELL_NULL & 1))
		return 0;
	pfs_device_tuples_own(job, tuples, d_nulls);
	device->d_nulls[at] = d_nulls;
	return 0;
}

static int compute(struct pfs_job *job, struct pfs_tuples **out, const struct pfs_source *source,
		   const struct pfs_program *programs, size_t n_programs, bool alone)
{
	size_t before = alone ? 0 : pfs_source_computed(source);
	uint32_t *d_list;
	uint64_t n;

	PFS_TRY(list_places(job, &d_list, &n, source));
	PFS_TRY(pfs_device_tuples_make(job, out, n, alone ? 0 : pfs_source_tables(source),
				       before + n_programs));
	for (size_t i = 0; i < n_programs; i++)
		PFS_TRY(compute_one(job, *out, before + i, source, &programs[i], d_list));
	return alone ? 0 : pfs_job_put(job, *out, 0, 0, source, d_list, true);
}

int pfs_cuda_compute(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_tuples **out, const struct pfs_source *source,
		     const struct pfs_program *programs, size_t n_programs, bool alone)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error
					: compute(&job, out, source, programs, n_programs, alone));
	if (error) {
		pfs_tuples_free(run, *out);
		*out = NULL;
	}
	return error;
}

/* ---- filter ---- */

static int keep_tuples(struct pfs_job *job, struct pfs_tuples **out,
		       const struct pfs_source *source, const struct pfs_program *program)
{
	struct pfs_device_program steps;
	struct pfs_device_places places;
	uint32_t *d_bits, *d_list;
	uint64_t n;

	PFS_TRY(pfs_job_places(job, &places, source));
	PFS_TRY(pfs_job_predicate(job, &steps, source, program));
	PFS_TRY(pfs_job_alloc(job, &d_bits, pfs_div_round_up(places.to, 64) * 8));
	PFS_TRY(pfs_cuda_select(d_bits, places.to, NULL, &places, &steps, job->stream));
	places.d_mask = d_bits;
	PFS_TRY(pfs_job_list(job, &d_list, &n, &places));
	PFS_TRY(pfs_device_tuples_make(job, out, n, pfs_source_tables(source),
				       pfs_source_computed(source)));
	return pfs_job_put(job, *out, 0, 0, source, d_list, true);
}

int pfs_cuda_filter(struct pfs_operator_backend *b, const struct pfs_run *run,
		    struct pfs_tuples **out, const struct pfs_source *source,
		    const struct pfs_program *program)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error : keep_tuples(&job, out, source, program));
	if (error) {
		pfs_tuples_free(run, *out);
		*out = NULL;
	}
	return error;
}
