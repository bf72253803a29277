/* SPDX-License-Identifier: MIT */
/* Checks what an operator was given and chooses the back end: the device where it may, else the
 * host. */
#include "gpu/relation.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "base/thread.h"
#include "gpu/aggregate.h"
#include "gpu/engine_impl.h"
#include "gpu/host/operators.h"
#include "gpu/window.h"

int pfs_operators_open_on(struct pfs_operators **out, enum pfs_engine_kind kind,
			  struct pfs_pool *pool)
{
	struct pfs_operators *o = calloc(1, sizeof(*o));
	int error;

	*out = NULL;
	if (!o)
		return -ENOMEM;
	(void)pthread_mutex_init(&o->starting, NULL);
	error = pfs_host_operators_open(&o->host, pool);
	if (!error && kind == PFS_ENGINE_CUDA)
		error = pfs_operators_start_device(o);
	if (error)
		pfs_operators_close(o);
	else
		*out = o;
	return error;
}

int pfs_operators_open(struct pfs_operators **out, enum pfs_engine_kind kind, unsigned n_threads)
{
	struct pfs_pool *pool;
	int error;

	*out = NULL;
	PFS_TRY(pfs_pool_open(&pool, n_threads, PFS_THREAD_NICE));
	error = pfs_operators_open_on(out, kind, pool);
	if (error)
		pfs_pool_close(pool);
	else
		(*out)->own_pool = pool;
	return error;
}

void pfs_operators_close(struct pfs_operators *o)
{
	if (!o)
		return;
	if (o->device)
		o->device->families->close(o->device);
	if (o->host)
		o->host->families->close(o->host);
	pfs_pool_close(o->own_pool);
	(void)pthread_mutex_destroy(&o->starting);
	free(o);
}

int pfs_operators_for(const struct pfs_run *run, uint64_t n, uint64_t grain,
		      int (*work)(void *context, unsigned worker, uint64_t from, uint64_t to),
		      void *context)
{
	return pfs_host_for(pfs_host_operators_of(run->operators->host), run, n, grain, work,
			    context);
}

int pfs_operators_start_device(struct pfs_operators *o)
{
	PFS_LOCKED(&o->starting);
	struct pfs_operator_backend *device;

	if (o->device)
		return 0;
	PFS_TRY(pfs_cuda_operators_open(&device));
	__atomic_store_n(&o->device, device, __ATOMIC_RELEASE);
	return 0;
}

bool pfs_operators_has_device(const struct pfs_operators *o)
{
	return pfs_operators_device(o) != NULL;
}

void pfs_operators_count(const struct pfs_operators *o, struct pfs_operator_counts *counts)
{
	counts->host = __atomic_load_n(&o->counts.host, __ATOMIC_RELAXED);
	counts->device = __atomic_load_n(&o->counts.device, __ATOMIC_RELAXED);
}

/* Returns the error; none is an answer that counts. */
static int counted(const struct pfs_run *run, const struct pfs_operator_backend *b, int error)
{
	struct pfs_operators *o = run->operators;

	if (error)
		return error;
	(void)__atomic_fetch_add(b == o->host ? &o->counts.host : &o->counts.device, 1,
				 __ATOMIC_RELAXED);
	if (run->counts)
		++*(b == o->host ? &run->counts->host : &run->counts->device);
	return 0;
}

int pfs_table_mirror(const struct pfs_run *run, const struct pfs_table *table, size_t size)
{
	struct pfs_operator_backend *b = pfs_operators_device(run->operators);

	if (run->on == PFS_ENGINE_HOST || !b || !b->families->gather ||
	    !b->families->gather->mirror)
		return 0;
	return b->families->gather->mirror(b, run, table, size);
}

/* ---- what every operator is given ---- */

static int check_source(const struct pfs_source *source)
{
	if (source->where || (source->to && source->from > source->to))
		return -EINVAL;
	if (source->table)
		return !source->tuples && (!source->rows ||
					   source->rows->n_rows == source->table->n_rows)
			       ? 0
			       : -EINVAL;
	return source->tuples && !source->rows ? 0 : -EINVAL;
}

static int check_ref(const struct pfs_source *source, struct pfs_ref ref)
{
	const struct pfs_table *table;

	if (ref.table == PFS_COMPUTED)
		return source->tuples && ref.column < source->tuples->n_computed ? 0 : -EINVAL;
	if (source->table)
		table = ref.table == 0 ? source->table : NULL;
	else
		table = ref.table < source->tuples->n_tables
				? source->tuples->tables[ref.table].table
				: NULL;
	return table && ref.column < table->n_columns ? 0 : -EINVAL;
}

static enum pfs_kind kind_of(const struct pfs_source *source, struct pfs_ref ref)
{
	const struct pfs_table *table;

	if (ref.table == PFS_COMPUTED)
		return source->tuples->computed[ref.column].kind;
	table = source->table ? source->table : source->tuples->tables[ref.table].table;
	return table->columns[ref.column].kind;
}

static int check_program(const struct pfs_source *source, const struct pfs_program *program)
{
	enum pfs_kind kind;
	bool is_truth;

	return program ? pfs_program_check(&kind, &is_truth, program, source->table, source->tuples)
		       : 0;
}

/* Brings everything of the source to the host that is on a back end other than b. */
static int bring_source(const struct pfs_run *run, const struct pfs_operator_backend *b,
			const struct pfs_source *source)
{
	if (source->rows && source->rows->backend != b)
		PFS_TRY(pfs_rows_here(run, source->rows));
	if (source->tuples && source->tuples->backend != b)
		PFS_TRY(pfs_tuples_here(run, source->tuples));
	PFS_TRY(pfs_table_bring(run, b, source->table));
	for (size_t i = 0; source->tuples && i < source->tuples->n_tables; i++)
		PFS_TRY(pfs_table_bring(run, b, source->tuples->tables[i].table));
	return 0;
}

static int bring_program(const struct pfs_run *run, const struct pfs_operator_backend *b,
			 const struct pfs_program *program)
{
	for (size_t i = 0; program && i < program->n; i++) {
		const struct pfs_step *step = &program->steps[i];

		if (step->op == PFS_OP_BITS && step->bits->backend != b)
			PFS_TRY(pfs_rows_here(run, step->bits));
	}
	return 0;
}

static int bring(const struct pfs_run *run, const struct pfs_operator_backend *b,
		 const struct pfs_source *source, const struct pfs_program *programs, size_t n)
{
	PFS_TRY(bring_source(run, b, source));
	for (size_t i = 0; i < n; i++)
		PFS_TRY(bring_program(run, b, &programs[i]));
	return 0;
}

/* Returns true for errors of a device after which the host should try. */
static bool is_left_to_host(int error)
{
	return error == -EOPNOTSUPP || error == -ENOMEM || error == -EIO;
}

/* Runs family->member(b, run, ...) after `brought`, an expression with b that makes the inputs b's:
 * on the device if it may and can, else on the host. */
#define OPERATE(run, family, member, brought, ...)                                                 \
	({                                                                                         \
		int operate_error = -EOPNOTSUPP;                                                   \
		for (int on_host = (run)->on == PFS_ENGINE_HOST;                                   \
		     on_host < 2 && is_left_to_host(operate_error); on_host++) {                   \
			struct pfs_operator_backend *b =                                           \
				on_host ? pfs_operators_host((run)->operators)                     \
					: pfs_operators_device((run)->operators);                  \
                                                                                                   \
			if (!b || !b->families->family || !b->families->family->member)            \
				continue;                                                          \
			operate_error = (brought);                                                 \
			if (!operate_error)                                                        \
				operate_error = counted(                                           \
					run, b, b->families->family->member(b, run, __VA_ARGS__)); \
		}                                                                                  \
		operate_error;                                                                     \
	})

/* ---- the operators ---- */

int pfs_select(const struct pfs_run *run, struct pfs_rows **out, const struct pfs_source *source,
	       const struct pfs_program *program)
{
	*out = NULL;
	PFS_TRY(check_source(source));
	if (!source->table)
		return -EINVAL;
	PFS_TRY(check_program(source, program));
	return OPERATE(run, select, select, bring(run, b, source, program, program != NULL), out,
		       source, program);
}

int pfs_filter(const struct pfs_run *run, struct pfs_tuples **out, const struct pfs_source *source,
	       const struct pfs_program *program)
{
	*out = NULL;
	if (!program)
		return -EINVAL;
	PFS_TRY(check_source(source));
	PFS_TRY(check_program(source, program));
	return OPERATE(run, gather, filter, bring(run, b, source, program, 1), out, source,
		       program);
}

static int compute(const struct pfs_run *run, struct pfs_tuples **out,
		   const struct pfs_source *source, const struct pfs_program *programs,
		   size_t n_programs, bool alone)
{
	*out = NULL;
	PFS_TRY(check_source(source));
	for (size_t i = 0; i < n_programs; i++)
		PFS_TRY(check_program(source, &programs[i]));
	return OPERATE(run, gather, compute, bring(run, b, source, programs, n_programs), out,
		       source, programs, n_programs, alone);
}

int pfs_compute(const struct pfs_run *run, struct pfs_tuples **out, const struct pfs_source *source,
		const struct pfs_program *programs, size_t n_programs)
{
	return compute(run, out, source, programs, n_programs, false);
}

int pfs_project(const struct pfs_run *run, struct pfs_tuples **out, const struct pfs_source *source,
		const struct pfs_program *programs, size_t n_programs)
{
	return compute(run, out, source, programs, n_programs, true);
}

int pfs_sort(const struct pfs_run *run, struct pfs_tuples **out, const struct pfs_source *source,
	     const struct pfs_sort_key *keys, size_t n_keys, uint64_t offset, uint64_t limit)
{
	*out = NULL;
	PFS_TRY(check_source(source));
	for (size_t i = 0; i < n_keys; i++)
		PFS_TRY(check_ref(source, keys[i].ref));
	return OPERATE(run, sort, sort, bring_source(run, b, source), out, source, keys, n_keys,
		       offset, limit);
}

static int check_function(const struct pfs_source *source,
			  const struct pfs_window_function *function)
{
	if (function->op >= PFS_N_WINDOWS || function->distance < (function->op == PFS_NTILE))
		return -EINVAL;
	return pfs_window_traits[function->op].has_argument ? check_ref(source, function->ref) : 0;
}

static int check_window(const struct pfs_source *source, const struct pfs_window *window)
{
	PFS_TRY(check_source(source));
	if (window->n_partition > window->n_keys)
		return -EINVAL;
	for (size_t i = 0; i < window->n_keys; i++)
		PFS_TRY(check_ref(source, window->keys[i].ref));
	for (size_t i = 0; i < window->n_functions; i++)
		PFS_TRY(check_function(source, &window->functions[i]));
	return 0;
}

int pfs_window(const struct pfs_run *run, struct pfs_tuples **out, const struct pfs_source *source,
	       const struct pfs_window *window)
{
	*out = NULL;
	PFS_TRY(check_window(source, window));
	return OPERATE(run, sort, window, bring_source(run, b, source), out, source, window);
}

/* What is computed while tuples are added is not there when an end is looked up. */
static int check_folded(const struct pfs_source *source, const struct pfs_aggregate *aggregate)
{
	enum pfs_fold_takes takes = pfs_fold_of(aggregate->op)->takes;
	enum pfs_kind kind;
	bool is_truth;

	if (takes != PFS_TAKES_NULLS && takes != PFS_TAKES_NUMBERS)
		return -EINVAL;
	PFS_TRY(pfs_program_check(&kind, &is_truth, aggregate->program, source->table,
				  source->tuples));
	return kind == PFS_KIND_CODE || kind == PFS_KIND_PLACE ? -EOPNOTSUPP : 0;
}

static int check_aggregate(const struct pfs_source *source, const struct pfs_aggregate *aggregate)
{
	enum pfs_fold_takes takes;
	enum pfs_kind kind;

	if (aggregate->op >= PFS_N_AGGREGATES)
		return -EINVAL;
	takes = pfs_fold_of(aggregate->op)->takes;
	if (takes == PFS_TAKES_NOTHING)
		return 0;
	if (aggregate->program)
		return check_folded(source, aggregate);
	if (aggregate->op == PFS_GROUP_CONCAT &&
	    (!aggregate->texts || aggregate->separator.type != PFS_IS_TEXT))
		return -EINVAL;
	PFS_TRY(check_ref(source, aggregate->ref));
	kind = kind_of(source, aggregate->ref);
	return takes == PFS_TAKES_NUMBERS && (kind == PFS_KIND_CODE || kind == PFS_KIND_PLACE)
		       ? -EOPNOTSUPP
		       : 0;
}

static int check_group(const struct pfs_source *source, const struct pfs_group_key *keys,
		       size_t n_keys, const struct pfs_aggregate *aggregates, size_t n_aggregates)
{
	struct pfs_source all = *source;

	all.where = NULL;
	PFS_TRY(check_source(&all));
	if (source->where && !source->table)
		return -EINVAL;
	PFS_TRY(check_program(source, source->where));
	for (size_t i = 0; i < n_keys; i++)
		PFS_TRY(check_ref(source, keys[i].ref));
	for (size_t i = 0; i < n_aggregates; i++)
		PFS_TRY(check_aggregate(source, &aggregates[i]));
	return 0;
}

static int bring_group(const struct pfs_run *run, const struct pfs_operator_backend *b,
		       const struct pfs_source *source, const struct pfs_aggregate *aggregates,
		       size_t n_aggregates)
{
	bool is_host = b == pfs_operators_host(run->operators);

	if (source->where && !is_host)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < n_aggregates; i++) {
		if (aggregates[i].program && !is_host)
			return -EOPNOTSUPP;
		PFS_TRY(bring_program(run, b, aggregates[i].program));
	}
	return bring(run, b, source, source->where, source->where != NULL);
}

int pfs_group(const struct pfs_run *run, struct pfs_tuples **out, const struct pfs_source *source,
	      const struct pfs_group_key *keys, size_t n_keys,
	      const struct pfs_aggregate *aggregates, size_t n_aggregates)
{
	*out = NULL;
	PFS_TRY(check_group(source, keys, n_keys, aggregates, n_aggregates));
	return OPERATE(run, group, group, bring_group(run, b, source, aggregates, n_aggregates),
		       out, source, keys, n_keys, aggregates, n_aggregates);
}

static int bring_join(const struct pfs_run *run, const struct pfs_operator_backend *b,
		      const struct pfs_source *left, const struct pfs_source *right,
		      const struct pfs_join *join)
{
	PFS_TRY(bring_source(run, b, left));
	PFS_TRY(bring_source(run, b, right));
	return bring_program(run, b, join->condition);
}

static int check_join(const struct pfs_source *left, const struct pfs_source *right,
		      const struct pfs_join *join)
{
	PFS_TRY(check_source(left));
	PFS_TRY(check_source(right));
	if (join->n_keys == 0)
		return -EINVAL;
	for (size_t i = 0; i < join->n_keys; i++) {
		PFS_TRY(check_ref(left, join->keys[i].left));
		PFS_TRY(check_ref(right, join->keys[i].right));
	}
	return 0;
}

int pfs_join(const struct pfs_run *run, struct pfs_tuples **out, const struct pfs_source *left,
	     const struct pfs_source *right, const struct pfs_join *join)
{
	*out = NULL;
	PFS_TRY(check_join(left, right, join));
	return OPERATE(run, join, join, bring_join(run, b, left, right, join), out, left, right,
		       join);
}

int pfs_partners(const struct pfs_run *run, struct pfs_rows **out, const struct pfs_source *left,
		 const struct pfs_source *right, const struct pfs_join_key *key)
{
	const struct pfs_join join = {.keys = key, .n_keys = 1};

	*out = NULL;
	PFS_TRY(check_join(left, right, &join));
	if (!left->table)
		return -EINVAL;
	return OPERATE(run, join, partners, bring_join(run, b, left, right, &join), out, left,
		       right, key);
}

int pfs_gather(const struct pfs_run *run, struct pfs_vector *out, const struct pfs_source *source,
	       struct pfs_ref ref)
{
	*out = (struct pfs_vector){0};
	PFS_TRY(check_source(source));
	PFS_TRY(check_ref(source, ref));
	return OPERATE(run, gather, gather, bring_source(run, b, source), out, source, ref);
}

/* ---- column indexes ---- */

int pfs_column_index_build(const struct pfs_run *run, struct pfs_column_index **out,
			   const struct pfs_source *source, uint16_t column,
			   enum pfs_collation collation)
{
	struct pfs_column_index *index;
	int error;

	*out = NULL;
	PFS_TRY(check_source(source));
	if (!source->table || column >= source->table->n_columns)
		return -EINVAL;
	PFS_TRY(pfs_run_alloc(run, &index, 1, sizeof(*index)));
	index->table = source->table;
	index->column = column;
	index->collation = collation;
	error = OPERATE(run, sort, index, bring_source(run, b, source), index, source);
	if (error)
		pfs_column_index_free(run, index);
	else
		*out = index;
	return error;
}

void pfs_column_index_free(const struct pfs_run *run, struct pfs_column_index *index)
{
	if (!index)
		return;
	if (index->device)
		index->backend->families->sort->release(index->backend, run, index);
	pfs_run_free(run, index->rows, index->n, sizeof(*index->rows));
	pfs_run_free(run, index->numbers, index->n, sizeof(*index->numbers));
	pfs_run_free(run, index, 1, sizeof(*index));
}

static int bring_index(const struct pfs_run *run, const struct pfs_operator_backend *b,
		       struct pfs_column_index *index)
{
	return index->backend == b ? 0 : pfs_column_index_here(run, index);
}

static int bring_fragments(const struct pfs_run *run, const struct pfs_operator_backend *b,
			   const struct pfs_index_fragment *left,
			   const struct pfs_index_fragment *right)
{
	PFS_TRY(bring_index(run, b, left->index));
	return bring_index(run, b, right->index);
}

int pfs_column_index_join(const struct pfs_run *run, struct pfs_tuples **out,
			  const struct pfs_index_fragment *left,
			  const struct pfs_index_fragment *right)
{
	*out = NULL;
	if (left->from > left->to || left->to > left->index->n || right->from > right->to ||
	    right->to > right->index->n || left->index->collation != right->index->collation)
		return -EINVAL;
	return OPERATE(run, join, merge, bring_fragments(run, b, left, right), out, left, right);
}
