/* SPDX-License-Identifier: MIT */
/* Functions of windows: what they and a window's keys are of is computed, and one operator does the
 * rest. */
#include "fs/query/relational/run.h"

static int compute_values(struct pfs_running *running, const struct pfs_bound_window *window)
{
	const struct pfs_term **values =
		pfs_arena_get(running->arena, (window->n_keys + window->n_functions + 1) *
						      sizeof(struct pfs_term *));
	size_t n = 0;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < window->n_keys; i++)
		values[n++] = window->keys[i].value;
	for (size_t i = 0; i < window->n_functions; i++) {
		if (window->functions[i].arg)
			values[n++] = window->functions[i].arg;
	}
	return pfs_running_compute(running, values, n);
}

static int find_keys(const struct pfs_running *running, struct pfs_sort_key *keys,
		     const struct pfs_bound_window *window)
{
	for (size_t i = 0; i < window->n_keys; i++) {
		const struct pfs_bound_order *order = &window->keys[i];

		keys[i] = (struct pfs_sort_key){
			.collation = order->value->collation,
			.descending = order->is_descending,
			.nulls_last = order->nulls_last,
		};
		if (!pfs_stage_ref(&running->stage, &keys[i].ref, order->value))
			return -EOPNOTSUPP;
	}
	return 0;
}

static int find_functions(const struct pfs_running *running, struct pfs_window_function *functions,
			  const struct pfs_bound_window *window)
{
	for (size_t i = 0; i < window->n_functions; i++) {
		const struct pfs_bound_function *function = &window->functions[i];

		functions[i] = (struct pfs_window_function){.op = function->op,
							    .distance = function->distance};
		if (function->arg &&
		    !pfs_stage_ref(&running->stage, &functions[i].ref, function->arg))
			return -EOPNOTSUPP;
	}
	return 0;
}

static int run_window(struct pfs_running *running, const struct pfs_bound_window *bound)
{
	struct pfs_window window = {.n_keys = bound->n_keys,
				    .n_partition = bound->n_partition,
				    .n_functions = bound->n_functions};
	struct pfs_window_function *functions;
	struct pfs_sort_key *keys;
	struct pfs_tuples *tuples;
	uint16_t first;

	PFS_TRY(compute_values(running, bound));
	keys = pfs_arena_get(running->arena, (bound->n_keys + 1) * sizeof(*keys));
	functions = pfs_arena_get(running->arena, bound->n_functions * sizeof(*functions));
	if (!keys || !functions)
		return -ENOMEM;
	PFS_TRY(find_keys(running, keys, bound));
	PFS_TRY(find_functions(running, functions, bound));
	window.keys = keys;
	window.functions = functions;
	first = running->tuples ? running->tuples->n_computed : 0;
	PFS_TRY(pfs_window(running->run, &tuples, &running->source, &window));
	pfs_running_go_on(running, tuples);
	for (size_t i = 0; i < bound->n_functions; i++)
		pfs_stage_add(&running->stage, bound->functions[i].term,
			      (struct pfs_ref){PFS_COMPUTED, (uint16_t)(first + i)});
	return 0;
}

int pfs_running_windows(struct pfs_running *running)
{
	for (size_t i = running->block->n_windows; i; i--)
		PFS_TRY(run_window(running, &running->block->windows[i - 1]));
	return 0;
}
