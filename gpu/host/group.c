/* SPDX-License-Identifier: MIT */
#include "gpu/host/group.h"

#include <string.h>

#include "base/bits.h"
#include "base/checked.h"
#include "base/radix.h"
#include "gpu/aggregate.h"
#include "gpu/host/families.h"

#define SORTED_MAX 65536u /* up to so many groups always come in the order of their first tuples */
#define PLACES	   64u	  /* with up to so many positions for each group, none are sorted */

/* The groups that have tuples, in the order in which they are returned. */
struct groups {
	struct pfs_group_table table;
	uint32_t *order; /* indexes of groups; NULL: all, in the table's order */
	size_t n;
};

/* Returns the table's index of the i-th group that is returned. */
static size_t group_at(const struct groups *groups, size_t i)
{
	return groups->order ? groups->order[i] : i;
}

static void close_groups(struct groups *groups, const struct pfs_grouping *g)
{
	pfs_run_free(g->run, groups->order, groups->table.n, sizeof(*groups->order));
	pfs_group_table_close(&groups->table, g);
}

/* Lists the groups' first positions, in the groups' order. The table loses its list of them if that
 * is the same. */
static int list_first(struct pfs_positions *out, struct groups *groups, const struct pfs_run *run)
{
	int error;

	out->n = groups->n;
	if (!groups->order) {
		out->at = groups->table.first;
		out->allocated = groups->table.capacity;
		groups->table.first = NULL;
		return 0;
	}
	out->allocated = groups->n;
	error = pfs_run_alloc_raw(run, &out->at, out->n, sizeof(*out->at));
	for (size_t i = 0; !error && i < groups->n; i++) {
		out->at[i] = groups->table.first[groups->order[i]];
		error = pfs_group_look(run, i);
	}
	return error;
}

/* 64 positions: which of them are of a group's first tuple, and how many such ones come before. */
struct places {
	uint64_t bits;
	uint32_t before;
};

/* Puts groups in the order of their first tuples, which all differ and are below position `end`.
 * With as many positions as PLACES allows, this takes no more memory than sorting does. */
static int place_groups(struct groups *groups, const struct pfs_run *run, uint32_t end)
{
	const size_t n_places = end / 64 + 1;
	const uint32_t *first = groups->table.first;
	struct places *places = NULL;
	uint32_t *order = NULL, before = 0;
	int error = pfs_run_grow(run, &places, 0, n_places, sizeof(*places), true);

	/* It is filled in no order: cleared, so that the system need not find pages meanwhile. */
	if (!error)
		error = pfs_run_grow(run, &order, 0, groups->table.n, sizeof(*order), true);
	for (size_t i = 0; !error && i < groups->n; i++) {
		uint32_t at = first[groups->order[i]];

		places[at / 64].bits |= UINT64_C(1) << at % 64;
		error = pfs_group_look(run, i);
	}
	for (size_t i = 0; !error && i < n_places; i++) {
		places[i].before = before;
		before += pfs_count_ones(places[i].bits);
		error = pfs_group_look(run, i);
	}
	for (size_t i = 0; !error && i < groups->n; i++) {
		uint32_t at = first[groups->order[i]];
		uint64_t lower = places[at / 64].bits & ((UINT64_C(1) << at % 64) - 1);

		order[places[at / 64].before + pfs_count_ones(lower)] = groups->order[i];
		error = pfs_group_look(run, i);
	}
	pfs_run_free(run, error ? order : groups->order, groups->table.n, sizeof(*order));
	if (!error)
		groups->order = order;
	pfs_run_free(run, places, n_places, sizeof(*places));
	return error;
}

static int sort_groups(struct groups *groups, const struct pfs_run *run)
{
	struct pfs_keyed *items;
	uint32_t end = 0;

	for (size_t i = 0; groups->n > SORTED_MAX && i < groups->n; i++) {
		PFS_TRY(pfs_group_look(run, i));
		end = PFS_MAX(end, groups->table.first[groups->order[i]] + 1);
	}
	if (end && end / PLACES <= groups->n)
		return place_groups(groups, run, end);
	PFS_TRY(pfs_run_alloc_raw(run, &items, 2 * groups->n, sizeof(*items)));
	for (size_t i = 0; i < groups->n; i++)
		items[i] = (struct pfs_keyed){.key = groups->table.first[groups->order[i]],
					      .value = groups->order[i]};
	pfs_radix_sort_with(items, items + groups->n, groups->n);
	for (size_t i = 0; i < groups->n; i++)
		groups->order[i] = items[i].value;
	pfs_run_free(run, items, 2 * groups->n, sizeof(*items));
	return 0;
}

/* Returns true if tuples are to be grouped by index: an array by the keys' numbers is worth the
 * memory that it takes in every thread. */
static bool is_indexed(const struct pfs_grouping *g)
{
	uint64_t domain = g->keys.domain;

	if (!g->keys.exact)
		return false;
	return domain <= PFS_GROUP_INDEXED ||
	       (domain <= g->bound / PFS_GROUP_ROWS &&
		domain * pfs_host_workers(g->host) <= PFS_GROUP_INDEXED_MAX);
}

/* Puts groups in the order of their first tuples if `sorted` is true or if they are few. */
static int order_groups(struct groups *groups, const struct pfs_grouping *g, bool sorted)
{
	struct pfs_group_table *table = &groups->table;

	if (g->keys.n == 0) { /* without keys there is one group, even if there are no tuples */
		PFS_TRY(pfs_group_table_reserve(table, g, 1, true));
		table->n = 1;
		if (!table->rows[0])
			table->first[0] = PFS_NO_ROW;
	}
	groups->n = table->n;
	if (!sorted && !is_indexed(g) && table->n > SORTED_MAX)
		return 0;
	groups->n = 0;
	PFS_TRY(pfs_run_alloc_raw(g->run, &groups->order, table->n, sizeof(*groups->order)));
	for (size_t i = 0; i < table->n; i++) {
		PFS_TRY(pfs_group_look(g->run, i));
		if (table->rows[i] || g->keys.n == 0)
			groups->order[groups->n++] = (uint32_t)i;
	}
	return sorted || groups->n <= SORTED_MAX ? sort_groups(groups, g->run) : 0;
}

static int make_groups(struct groups *groups, const struct pfs_grouping *g, bool sorted)
{
	int error;

	*groups = (struct groups){0};
	PFS_TRY(pfs_group_table_open(&groups->table, g));
	if (is_indexed(g))
		error = pfs_group_by_index(&groups->table, g);
	else
		error = pfs_group_by_hash(&groups->table, g);
	return error ? error : order_groups(groups, g, sorted);
}

/* Marks the sums that have to be exact, and returns true if there are any. */
static bool mark_exact(struct pfs_fold *folds, const struct pfs_grouping *g,
		       const struct groups *groups)
{
	bool any = false;

	for (size_t i = 0; i < g->n_folds; i++) {
		if (!pfs_fold_wants_exact(&folds[i], &groups->table.folds[i], g->bound,
					  groups->order, groups->n))
			continue;
		folds[i].exact = true;
		any = true;
	}
	return any;
}

/* ---- counting what is distinct ---- */

/* Opens the keys, and finds out how tuples are to be grouped by them. */
static int group_keys(struct pfs_grouping *g, const struct pfs_group_key *keys, size_t n_keys)
{
	g->keys.is_alone = true;
	PFS_TRY(pfs_keys_open(&g->keys, g->host, g->run, g->source, g->positions, keys, n_keys));
	g->is_near = false;
	return is_indexed(g) ? 0 : pfs_grouping_sample(g);
}

/* Gets the first position of each combination of the keys and the aggregate's value, ascending if
 * there are keys: the groups that they are then counted in have to come in the outer groups'
 * order. */
static int distinct_positions(struct pfs_positions *out, const struct pfs_grouping *outer,
			      const struct pfs_group_key *keys, size_t n_keys,
			      const struct pfs_aggregate *aggregate)
{
	struct pfs_grouping g = *outer;
	struct pfs_group_key *more;
	struct groups groups;
	int error;

	*out = (struct pfs_positions){0};
	PFS_TRY(pfs_run_alloc(g.run, &more, n_keys + 1, sizeof(*more)));
	if (n_keys)
		memcpy(more, keys, n_keys * sizeof(*more));
	more[n_keys] = (struct pfs_group_key){aggregate->ref, aggregate->collation};
	g.folds = NULL;
	g.n_folds = 0;
	error = group_keys(&g, more, n_keys + 1);
	if (!error) {
		error = make_groups(&groups, &g, n_keys != 0);
		if (!error)
			error = list_first(out, &groups, g.run);
		close_groups(&groups, &g);
	}
	if (error)
		pfs_positions_close(g.run, out);
	pfs_keys_close(g.run, &g.keys);
	pfs_run_free(g.run, more, n_keys + 1, sizeof(*more));
	return error;
}

/* Counts the distinct values in each of the n outer groups, in the order of their first tuples. */
static int count_distinct(struct pfs_vector *out, const struct pfs_grouping *outer,
			  const struct pfs_group_key *keys, size_t n_keys,
			  const struct pfs_aggregate *aggregate, size_t n)
{
	struct pfs_grouping g = *outer;
	const struct pfs_aggregate count = {.op = PFS_COUNT, .ref = aggregate->ref};
	struct pfs_positions positions;
	struct pfs_fold fold;
	struct groups groups;
	int error;

	PFS_TRY(pfs_fold_open(&fold, 0, g.run, g.source, &count));
	PFS_TRY(distinct_positions(&positions, outer, keys, n_keys, aggregate));
	g.positions = &positions;
	g.bound = positions.n;
	g.folds = &fold;
	g.n_folds = 1;
	error = group_keys(&g, keys, n_keys);
	if (!error) {
		error = make_groups(&groups, &g, true);
		PFS_VERIFY_CHECK(error || groups.n == n);
		(void)n;
		if (!error)
			error = pfs_fold_finish(&fold, g.host, g.run, out, &groups.table.folds[0],
						groups.order, groups.n);
		close_groups(&groups, &g);
	}
	pfs_keys_close(g.run, &g.keys);
	pfs_positions_close(g.run, &positions);
	return error;
}

/* ---- the operator ---- */

struct operation {
	const struct pfs_group_key *keys;
	size_t n_keys;
	const struct pfs_aggregate *aggregates;
	size_t n_aggregates;
	struct pfs_fold *folds; /* those of aggregates that have one, in their order */
};

static enum pfs_fold_kind fold_of(const struct pfs_aggregate *aggregate)
{
	return pfs_aggregate_traits[aggregate->op].fold;
}

/* Returns false if the groups alone determine the aggregate, without a look at its values. */
static bool has_fold(const struct pfs_aggregate *aggregate)
{
	switch (fold_of(aggregate)) {
	case PFS_FOLD_TUPLES:
	case PFS_FOLD_DIFFERENT:
		return false;
	case PFS_FOLD_VALUES:
	case PFS_FOLD_SUM:
	case PFS_FOLD_LEAST:
	case PFS_FOLD_GREATEST:
	case PFS_FOLD_TEXTS:
		break;
	}
	return true;
}

/* Returns true if an aggregate groups the tuples once more. */
static bool groups_again(const struct operation *o)
{
	for (size_t i = 0; i < o->n_aggregates; i++) {
		if (pfs_fold_of(o->aggregates[i].op)->groups_again)
			return true;
	}
	return false;
}

struct counting {
	const struct groups *groups;
	struct pfs_vector *out;
};

static int count_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct counting *c = context;

	(void)worker;
	for (size_t i = from; i < to; i++)
		c->out->integers[i] = c->groups->table.rows[group_at(c->groups, i)];
	return 0;
}

/* is_last: the table may lose the numbers of tuples. */
static int count_all(struct pfs_vector *out, const struct pfs_grouping *g, struct groups *groups,
		     bool is_last)
{
	struct counting c = {groups, out};

	if (is_last && !groups->order && groups->table.capacity == groups->n) {
		*out = (struct pfs_vector){
			.kind = PFS_KIND_INTEGER, .integers = groups->table.rows, .n = groups->n};
		groups->table.rows = NULL;
		return 0;
	}
	PFS_TRY(pfs_vector_make(g->run, out, PFS_KIND_INTEGER, groups->n));
	return pfs_host_for(g->host, g->run, groups->n, PFS_PIECE, count_piece, &c);
}

/* Returns true if no aggregate behind number i counts the tuples of groups. */
static bool is_last_count(const struct operation *o, size_t i)
{
	for (i++; i < o->n_aggregates; i++) {
		if (fold_of(&o->aggregates[i]) == PFS_FOLD_TUPLES)
			return false;
	}
	return true;
}

/* Computes aggregate number i for all groups. fold: how many aggregates before it have a fold. */
static int finish_one(struct pfs_vector *out, const struct pfs_grouping *g,
		      const struct operation *o, struct groups *groups, size_t i, size_t fold)
{
	const struct pfs_aggregate *aggregate = &o->aggregates[i];

	switch (fold_of(aggregate)) {
	case PFS_FOLD_TUPLES:
		return count_all(out, g, groups, is_last_count(o, i));
	case PFS_FOLD_DIFFERENT:
		return count_distinct(out, g, o->keys, o->n_keys, aggregate, groups->n);
	case PFS_FOLD_VALUES:
	case PFS_FOLD_SUM:
	case PFS_FOLD_LEAST:
	case PFS_FOLD_GREATEST:
	case PFS_FOLD_TEXTS:
		break;
	}
	return pfs_fold_finish(&o->folds[fold], g->host, g->run, out, &groups->table.folds[fold],
			       groups->order, groups->n);
}

static int finish_aggregates(struct pfs_vector *out, const struct pfs_grouping *g,
			     const struct operation *o, struct groups *groups)
{
	size_t fold = 0;

	for (size_t i = 0; i < o->n_aggregates; i++) {
		PFS_TRY(finish_one(&out[i], g, o, groups, i, fold));
		fold += has_fold(&o->aggregates[i]);
	}
	return 0;
}

/* Makes a batch of the groups' first tuples; of rows, their list is the batch's. */
static int make_batch(struct pfs_tuples **out, const struct pfs_grouping *g, struct groups *groups,
		      size_t more)
{
	struct pfs_positions first = {0};
	int error = list_first(&first, groups, g->run);

	if (!error && g->source->table && first.allocated == first.n) {
		error = pfs_tuples_make(g->run, out, first.n, 1, more);
		if (!error) {
			(*out)->tables[0].table = g->source->table;
			(*out)->tables[0].rows = first.at;
			first.at = NULL;
		}
	} else if (!error) {
		error = pfs_host_batch(g->host, g->run, out, g->source, &first, more);
	}
	pfs_positions_close(g->run, &first);
	return error;
}

static int make_tuples(struct pfs_tuples **out, const struct pfs_grouping *g,
		       const struct operation *o, struct groups *groups)
{
	struct pfs_tuples *tuples = NULL;
	int error = make_batch(&tuples, g, groups, o->n_aggregates);

	if (!error)
		error = finish_aggregates(tuples->computed + pfs_source_computed(g->source), g, o,
					  groups);
	if (error)
		pfs_tuples_free(g->run, tuples);
	else
		*out = tuples;
	return error;
}

static int run_groups(struct pfs_tuples **out, struct pfs_grouping *g, const struct operation *o)
{
	bool sorted = groups_again(o);
	struct groups groups;
	int error;

	error = make_groups(&groups, g, sorted);
	if (!error && mark_exact(o->folds, g, &groups)) {
		close_groups(&groups, g);
		error = make_groups(&groups, g, sorted);
	}
	if (!error)
		error = make_tuples(out, g, o, &groups);
	close_groups(&groups, g);
	return error;
}

/* ---- what is grouped ---- */

struct input {
	struct pfs_source_reader reader;
	struct pfs_evaluator where;
	struct pfs_source kept;
	struct pfs_rows *rows; /* kept.rows, if the rows were selected here; else NULL */
	struct pfs_positions positions;
};

static void close_input(const struct pfs_run *run, struct input *input)
{
	pfs_evaluator_close(&input->where);
	pfs_positions_close(run, &input->positions);
	pfs_rows_free(run, input->rows);
}

/* Lists the positions of all tuples that are to be grouped. */
static int list_input(struct input *input, struct pfs_grouping *g, struct pfs_operator_backend *b)
{
	input->kept = *g->source;
	input->kept.where = NULL;
	if (g->source->where) {
		PFS_TRY(pfs_host_select_rows(b, g->run, &input->rows, &input->kept,
					     g->source->where));
		input->kept.rows = input->rows;
	}
	PFS_TRY(pfs_positions_open(&input->positions, g->host, g->run, &input->kept));
	g->positions = &input->positions;
	g->bound = input->positions.n;
	g->reader = NULL;
	g->where = NULL;
	return 0;
}

/* Returns true if rows of a table are grouped as soon as they are read, since each is needed only
 * once. */
static bool is_streamed(const struct pfs_grouping *g, const struct operation *o)
{
	const struct pfs_source *source = g->source;
	bool only_counts = o->n_keys == 0 && g->n_folds == 0 && !source->where;

	return source->table && !(source->rows && source->rows->form == PFS_ROWS_LIST) &&
	       !only_counts && !groups_again(o) && pfs_keys_are_known(source, o->keys, o->n_keys);
}

/* Opens the tuples, as a reader or as a list of positions, and the keys. */
static int open_input(struct input *input, struct pfs_grouping *g, struct pfs_operator_backend *b,
		      const struct operation *o)
{
	if (!is_streamed(g, o)) {
		PFS_TRY(list_input(input, g, b));
		return group_keys(g, o->keys, o->n_keys);
	}
	PFS_TRY(pfs_source_reader_open(&input->reader, g->source));
	g->bound = input->reader.to - input->reader.from;
	g->reader = &input->reader;
	if (g->source->where) {
		PFS_TRY(pfs_evaluator_open(&input->where, g->host, g->run, g->source,
					   g->source->where));
		g->where = &input->where;
	}
	PFS_TRY(group_keys(g, o->keys, o->n_keys));
	return is_indexed(g) || g->is_near ? 0 : list_input(input, g, b);
}

/* Groups the tuples. If those of a group prove not to lie near each other, lists all and starts
 * anew. */
static int group_input(struct pfs_tuples **out, struct pfs_grouping *g, struct input *input,
		       struct pfs_operator_backend *b, const struct operation *o)
{
	int error = run_groups(out, g, o);

	if (error != -ENOTUNIQ)
		return error;
	g->is_near = false;
	PFS_TRY(list_input(input, g, b));
	return run_groups(out, g, o);
}

/* NOLINTNEXTLINE(readability-function-size): the public function's, and the back end */
int pfs_host_group(struct pfs_operator_backend *b, const struct pfs_run *run,
		   struct pfs_tuples **out, const struct pfs_source *source,
		   const struct pfs_group_key *keys, size_t n_keys,
		   const struct pfs_aggregate *aggregates, size_t n_aggregates)
{
	struct operation o = {.keys = keys,
			      .n_keys = n_keys,
			      .aggregates = aggregates,
			      .n_aggregates = n_aggregates};
	struct pfs_grouping g = {.host = pfs_host_operators_of(b), .run = run, .source = source};
	struct input input = {.rows = NULL};
	int error = 0;

	PFS_TRY(pfs_run_alloc(run, &o.folds, n_aggregates, sizeof(*o.folds)));
	for (size_t i = 0; !error && i < n_aggregates; i++) {
		if (!has_fold(&aggregates[i]))
			continue;
		error = pfs_fold_open(&o.folds[g.n_folds], g.n_folds, run, source, &aggregates[i]);
		if (!error && n_keys)
			pfs_fold_has_tuples(&o.folds[g.n_folds]);
		g.n_folds++;
	}
	g.folds = o.folds;
	if (!error)
		error = open_input(&input, &g, b, &o);
	if (!error)
		error = group_input(out, &g, &input, b, &o);
	pfs_keys_close(run, &g.keys);
	close_input(run, &input);
	for (size_t i = 0; i < g.n_folds; i++)
		pfs_fold_close(run, &o.folds[i]);
	pfs_run_free(run, o.folds, n_aggregates, sizeof(*o.folds));
	return error;
}
