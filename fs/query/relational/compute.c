/* SPDX-License-Identifier: MIT */
/* Values that are computed of all rows at a stage, as vectors; texts are printed on the way. */
#include "fs/query/relational/printed.h"
#include "fs/query/relational/run.h"

int pfs_running_add_vector(struct pfs_running *running, struct pfs_vector **out,
			   struct pfs_ref *ref, const struct pfs_program *program)
{
	struct pfs_run *run = pfs_arena_get(running->arena, sizeof(*run));
	struct pfs_tuples *tuples;

	if (!run)
		return -ENOMEM;
	PFS_TRY(pfs_running_settle(running));
	PFS_TRY(pfs_compute(running->run, &tuples, &running->source, program, 1));
	pfs_running_go_on(running, tuples);
	PFS_TRY(pfs_tuples_here(running->run, tuples));
	*run = *running->run;
	run->on = PFS_ENGINE_HOST;
	running->run = run;
	*ref = (struct pfs_ref){PFS_COMPUTED, (uint16_t)(tuples->n_computed - 1)};
	*out = &tuples->computed[ref->column];
	return 0;
}

/* A vector takes the place of the text that is printed. It is that of an argument that has to be
 * computed, *own, or, if there is none, of zeros. */
static int add_printed(struct pfs_running *running, struct pfs_vector **out, struct pfs_ref *ref,
		       unsigned *own, const struct pfs_term *term)
{
	static const struct pfs_step zero = {.op = PFS_OP_CONSTANT,
					     .constant = {.type = PFS_IS_INTEGER}};
	struct pfs_program program = {&zero, 1};

	*own = PFS_TERM_ARGS_MAX;
	for (unsigned i = 0; i < term->n_args; i++) {
		const struct pfs_term *arg = term->args[i];

		if (pfs_stage_ref(&running->stage, ref, arg))
			continue;
		if (*own < term->n_args || !pfs_bound_is_number(arg)) {
			PFS_TRY(pfs_running_compute(running, &arg, 1));
			continue;
		}
		*own = i;
		PFS_TRY(pfs_stage_program(&running->stage, &program, &arg, 1));
	}
	return pfs_running_add_vector(running, out, ref, &program);
}

/* Gets the other arguments' values; each vector of *values is to be freed. */
static int gather_values(struct pfs_running *running, struct pfs_vector *values, unsigned own,
			 const struct pfs_term *term)
{
	struct pfs_ref ref;

	for (unsigned i = 0; i < term->n_args; i++) {
		if (i == own)
			continue;
		if (!pfs_stage_ref(&running->stage, &ref, term->args[i]))
			return -EOPNOTSUPP;
		PFS_TRY(pfs_gather(running->run, &values[i], &running->source, ref));
	}
	return 0;
}

/* Printing is the host's work. */
static int print(struct pfs_running *running, const struct pfs_term *term)
{
	struct pfs_printing printing = {.format = term->format};
	struct pfs_vector *vector;
	struct pfs_ref ref;
	unsigned own;
	int error;

	PFS_TRY(add_printed(running, &vector, &ref, &own, term));
	error = gather_values(running, printing.values, own, term);
	if (own < term->n_args)
		printing.values[own] = *vector;
	if (!error)
		error = pfs_running_print(running, vector, &printing);
	for (unsigned i = 0; i < term->n_args; i++) {
		if (i != own)
			pfs_vector_free(running->run, &printing.values[i]);
	}
	if (!error)
		pfs_stage_add(&running->stage, term, ref);
	return error;
}

int pfs_running_print_all(struct pfs_running *running, const struct pfs_term *term)
{
	struct pfs_ref ref;

	if (term->is_late || pfs_stage_ref(&running->stage, &ref, term))
		return 0;
	for (unsigned i = 0; i < term->n_args; i++)
		PFS_TRY(pfs_running_print_all(running, term->args[i]));
	return term->kind == PFS_BOUND_PRINTED ? print(running, term) : 0;
}

static int print_values(struct pfs_running *running, const struct pfs_term *const *values, size_t n)
{
	if (!running->block->n_printed)
		return 0;
	for (size_t i = 0; i < n; i++)
		PFS_TRY(pfs_running_print_all(running, values[i]));
	return 0;
}

int pfs_running_compute(struct pfs_running *running, const struct pfs_term *const *values, size_t n)
{
	struct pfs_program *programs = pfs_arena_get(running->arena, (n + 1) * sizeof(*programs));
	const struct pfs_term **computed =
		pfs_arena_get(running->arena, (n + 1) * sizeof(struct pfs_term *));
	struct pfs_tuples *tuples;
	struct pfs_ref ref;
	size_t n_computed = 0;
	uint16_t first;

	if (!programs || !computed)
		return -ENOMEM;
	PFS_TRY(print_values(running, values, n));
	first = running->tuples ? running->tuples->n_computed : 0;
	for (size_t i = 0; i < n; i++) {
		if (values[i]->kind == PFS_BOUND_CONSTANT || values[i]->is_late ||
		    pfs_stage_ref(&running->stage, &ref, values[i]))
			continue;
		if (!pfs_bound_is_number(values[i]))
			return -EOPNOTSUPP;
		PFS_TRY(pfs_stage_program(&running->stage, &programs[n_computed], &values[i], 1));
		computed[n_computed++] = values[i];
	}
	if (!n_computed)
		return 0;
	PFS_TRY(pfs_running_settle(running));
	PFS_TRY(pfs_compute(running->run, &tuples, &running->source, programs, n_computed));
	pfs_running_go_on(running, tuples);
	for (size_t i = 0; i < n_computed; i++)
		pfs_stage_add(&running->stage, computed[i],
			      (struct pfs_ref){PFS_COMPUTED, (uint16_t)(first + i)});
	return 0;
}
