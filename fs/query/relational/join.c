/* SPDX-License-Identifier: MIT */
/* The first stage.  WHERE and ON are taken apart at their ANDs: a condition on one input selects
 * its rows, equalities of two columns are what inputs are joined by, and the rest is looked at
 * afterwards; but for those of a LEFT JOIN's ON, which decide what belongs together and leave
 * nothing out. */
#include "fs/query/relational/eager_groups.h"
#include "fs/query/relational/partners.h"
#include "fs/query/relational/side_lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/checked.h"
#include "fs/image/span.h"
#include "fs/nodes/relation.h"

#define CONDITIONS_MAX 256
#define SCANNED_MAX    16

struct condition {
	const struct pfs_term *term;
	uint32_t inputs; /* bit by bit */
	int left_join; /* the input whose ON it is of; -1: it leaves out what it is not true for */
	bool is_done;
};

struct pfs_joining {
	struct pfs_running *running;
	struct condition conditions[CONDITIONS_MAX];
	size_t n;
	struct pfs_eager_plan early;
	bool has_early;
	uint16_t *table_of; /* the stage's */
	uint32_t there; /* the inputs that are joined, bit by bit */
};

/* ---- which nodes ---- */

static int rows_of_scan(struct pfs_running *running, struct pfs_rows **rows, uint32_t n_rows,
			const struct pfs_predicate *predicates, size_t n)
{
	struct pfs_query *query = running->query;
	struct pfs_slots slots = {.slot = NULL};
	int error;

	error = pfs_scan_select(query->tree, &slots, predicates, n, NULL, &query->watch);
	if (!error)
		error = pfs_rows_of_list(running->run, rows, n_rows, slots.slot, (uint32_t)slots.n);
	pfs_slots_finish(&slots);
	return error;
}

/* -ENODATA: that is not known without a look at each node. */
static int rows_of_subtree(struct pfs_running *running, struct pfs_rows **rows, uint32_t n_rows,
			   uint32_t node)
{
	struct pfs_slot_range *ranges;
	uint64_t *bits;
	uint32_t from, to;
	size_t n;
	int error;

	PFS_TRY(pfs_scan_ranges(running->query->tree, &ranges, &n, node));
	from = ranges[0].from & ~UINT32_C(63);
	to = PFS_MIN(ranges[n - 1].to, n_rows);
	if (n == 1) {
		error = pfs_rows_of_range(running->run, rows, n_rows, ranges[0].from, to);
		free(ranges);
		return error;
	}
	bits = calloc((to - from) / 64 + 1, sizeof(*bits));
	for (size_t i = 0; bits && i < n; i++)
		pfs_bits_fill(bits, ranges[i].from - from, PFS_MIN(ranges[i].to, to) - from);
	error = bits ? pfs_rows_of_bits(running->run, rows, n_rows, bits, from, to) : -ENOMEM;
	free(bits);
	free(ranges);
	return error;
}

static int add_set(struct pfs_running *running, const struct pfs_term *bound)
{
	struct pfs_query *query = running->query;
	uint32_t n_rows = running->tables[bound->input].n_rows;
	struct pfs_predicate predicate = {.test = bound->test};
	uint32_t node = pfs_query_node(query, &bound->node);
	struct pfs_rows *rows = NULL;
	int error = -ENODATA;

	if (node == PFS_NO_SLOT)
		return -EOPNOTSUPP; /* NULL, not false */
	predicate.low = (int64_t)pfs_relation_ino(query->tree, node);
	if (bound->test == PFS_TEST_UNDER)
		error = rows_of_subtree(running, &rows, n_rows, node);
	if (error == -ENODATA)
		error = rows_of_scan(running, &rows, n_rows, &predicate, 1);
	if (error)
		return error;
	running->sets[running->stage.n_sets++] = (struct pfs_node_set){bound, rows};
	return 0;
}

static size_t count_sets(const struct pfs_term *bound)
{
	size_t n = bound && bound->kind == PFS_BOUND_NODES;

	for (unsigned i = 0; bound && i < bound->n_args; i++)
		n += count_sets(bound->args[i]);
	return n;
}

static int add_sets(struct pfs_running *running, const struct pfs_term *bound)
{
	for (unsigned i = 0; bound && i < bound->n_args; i++)
		PFS_TRY(add_sets(running, bound->args[i]));
	return bound && bound->kind == PFS_BOUND_NODES ? add_set(running, bound) : 0;
}

static int make_sets(struct pfs_running *running, size_t n)
{
	running->sets = pfs_arena_get(running->arena, (n + 1) * sizeof(*running->sets));
	running->stage.sets = running->sets;
	return running->sets ? 0 : -ENOMEM;
}

/* Functions of the tree in WHERE and ON; where else they stand, SQLite calls them. */
static int find_sets(struct pfs_running *running)
{
	const struct pfs_block *block = running->block;
	size_t n = count_sets(block->where);

	for (size_t i = 0; i < block->n_inputs; i++)
		n += count_sets(block->inputs[i].on);
	PFS_TRY(make_sets(running, n));
	PFS_TRY(add_sets(running, block->where));
	for (size_t i = 0; i < block->n_inputs; i++)
		PFS_TRY(add_sets(running, block->inputs[i].on));
	return 0;
}

int pfs_running_conditions(struct pfs_running *running, struct pfs_program *out,
			   const struct pfs_term *const *terms, size_t n)
{
	static const uint16_t alone[1] = {0};
	size_t n_sets = 0;

	for (size_t i = 0; i < n; i++)
		n_sets += count_sets(terms[i]);
	PFS_TRY(make_sets(running, n_sets));
	for (size_t i = 0; i < n; i++)
		PFS_TRY(add_sets(running, terms[i]));
	running->stage.table_of = alone;
	return pfs_stage_program(&running->stage, out, terms, n);
}

/* ---- conditions ---- */

static int add_conditions(struct pfs_joining *joining, const struct pfs_term *term, int left_join)
{
	if (!term)
		return 0;
	if (term->kind == PFS_BOUND_STEP && term->op == PFS_OP_AND) {
		PFS_TRY(add_conditions(joining, term->args[0], left_join));
		return add_conditions(joining, term->args[1], left_join);
	}
	if (joining->n == CONDITIONS_MAX)
		return -EOPNOTSUPP;
	joining->conditions[joining->n++] = (struct condition){
		.term = term,
		.inputs = pfs_term_inputs(joining->running->block, term),
		.left_join = left_join,
	};
	return 0;
}

static int split(struct pfs_joining *joining)
{
	const struct pfs_block *block = joining->running->block;

	PFS_TRY(add_conditions(joining, block->where, -1));
	for (unsigned i = 0; i < block->n_inputs; i++) {
		int left_join = block->inputs[i].is_left ? (int)i : -1;

		PFS_TRY(add_conditions(joining, block->inputs[i].on, left_join));
		PFS_TRY(add_conditions(joining, block->inputs[i].equal, left_join));
	}
	return 0;
}

/* Takes out those that a test is true for, as a program; *n 0: there are none. */
static int take(struct pfs_joining *joining, struct pfs_program *out, size_t *n,
		bool (*test)(const struct condition *condition, const void *arg), const void *arg)
{
	const struct pfs_term *terms[CONDITIONS_MAX];

	*n = 0;
	for (size_t i = 0; i < joining->n; i++) {
		struct condition *condition = &joining->conditions[i];

		if (condition->is_done || !test(condition, arg))
			continue;
		condition->is_done = true;
		terms[(*n)++] = condition->term;
	}
	return *n ? pfs_stage_program(&joining->running->stage, out, terms, *n) : 0;
}

/* ---- rows of one input ---- */

struct selecting {
	uint32_t inputs; /* the one's bit */
	int left_join;	 /* the one, if it is joined so; else -1 */
};

/* Nothing that WHERE says of a row that may be missing can be said before it is. */
static bool selects(const struct condition *condition, const void *arg)
{
	const struct selecting *selecting = arg;

	return condition->inputs == selecting->inputs &&
	       condition->left_join == selecting->left_join;
}

/* A pattern that a device has a kernel for. */
static bool is_for_device(const struct pfs_term *term)
{
	const struct pfs_step step = {.op = term->op, .constant = term->constant};
	const char *text;
	enum pfs_op op;
	size_t len;

	return term->op == PFS_OP_CONTAINS || pfs_pattern_is_simple(&step, &op, &text, &len);
}

/* A pattern that names are to have, or a place in the tree, as a scan has it; `on`: where the
 * operators run. */
static bool is_scanned(const struct pfs_block *block, const struct pfs_term *term,
		       enum pfs_engine_kind on, struct pfs_predicate *out)
{
	const struct pfs_term *of = term->n_args ? term->args[0] : NULL;
	const struct pfs_column_wish *wish;

	if (term->kind != PFS_BOUND_STEP || !of || of->kind != PFS_BOUND_COLUMN ||
	    (term->op != PFS_OP_LIKE && term->op != PFS_OP_GLOB && term->op != PFS_OP_CONTAINS) ||
	    term->escape || !term->constant.len ||
	    memchr(term->constant.text, 0, term->constant.len))
		return false;
	wish = &block->inputs[of->input].columns[of->column].wish;
	if (on != PFS_ENGINE_HOST && is_for_device(term))
		return false;
	*out = (struct pfs_predicate){
		.field = PFS_FIELD_NAME,
		.test = term->op == PFS_OP_LIKE	  ? PFS_TEST_LIKE
			: term->op == PFS_OP_GLOB ? PFS_TEST_GLOB
						  : PFS_TEST_CONTAINS,
		.text = term->constant.text,
		.text_len = term->constant.len,
	};
	return !wish->attr && wish->field == PFS_FIELD_NAME &&
	       block->inputs[of->input].parent_of == of->input;
}

/* The rows that a scan finds faster than the operators: in the directory that the statement is
 * about, with names as they are to be.  *rows NULL: it is not asked. */
static int scan(struct pfs_joining *joining, struct pfs_rows **rows, unsigned input,
		const struct selecting *selecting)
{
	struct pfs_running *running = joining->running;
	struct pfs_query *query = running->query;
	struct pfs_predicate predicates[SCANNED_MAX];
	uint32_t n_rows = running->tables[input].n_rows;
	uint32_t top = pfs_scan_slot_of(query->tree, query->top), span;
	size_t n = 0;

	if (top == PFS_NO_SLOT)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < joining->n && n + 2 < SCANNED_MAX; i++) {
		struct condition *condition = &joining->conditions[i];

		if (condition->is_done || !selects(condition, selecting) ||
		    !is_scanned(running->block, condition->term, running->run->on,
				&predicates[n]))
			continue;
		condition->is_done = true;
		n++;
	}
	if (query->top != PFS_ROOT_PRIME) {
		span = n || query->visible ? 0 : pfs_scan_span(query->tree, top);
		if (span)
			return pfs_rows_of_range(running->run, rows, n_rows, top, top + span);
		predicates[n++] =
			(struct pfs_predicate){.test = PFS_TEST_UNDER, .low = (int64_t)query->top};
	}
	if (n && query->visible) /* rows that a scan finds are looked at no more */
		predicates[n++] = pfs_visible_predicate(query->visible);
	return n ? rows_of_scan(running, rows, n_rows, predicates, n) : 0;
}

/* True if what is selected is grouped next, which looks at each row once. */
static bool is_left_to_groups(const struct pfs_joining *joining, const struct pfs_source *source)
{
	const struct pfs_running *running = joining->running;
	const struct pfs_block *block = running->block;

	for (size_t i = 0; i < joining->n; i++) {
		if (!joining->conditions[i].is_done)
			return false;
	}
	for (unsigned i = 1; i < block->n_inputs; i++) {
		if (!block->inputs[i].is_value)
			return false;
	}
	return (block->is_grouped || block->is_distinct) && running->run->on == PFS_ENGINE_HOST &&
	       !(source->rows && source->rows->form == PFS_ROWS_LIST);
}

/* Leaves those of the input's rows that lifted inputs have marked. */
static int leave_marked(struct pfs_running *running, unsigned input)
{
	struct pfs_source nodes = {.table = &running->tables[input], .rows = running->rows[input]};
	struct pfs_partners partners;

	for (unsigned i = 0; i < running->block->n_inputs; i++) {
		if (!running->marked[i] || !pfs_partners_ask(&partners, running, &nodes, i))
			continue;
		PFS_TRY(pfs_partners_select(&partners, running, &nodes, running->marked[i]));
		pfs_running_joined(running, i);
	}
	return 0;
}

/* The rows that are had without a look at each; running->rows[input] NULL: there is no such way. */
static int find_rows(struct pfs_joining *joining, unsigned input, const struct selecting *selecting)
{
	struct pfs_running *running = joining->running;
	struct pfs_rows **rows = &running->rows[input];

	switch (running->block->inputs[input].kind) {
	case PFS_INPUT_NODES:
		PFS_TRY(pfs_running_few_nodes(running, rows, input));
		if (!*rows)
			PFS_TRY(scan(joining, rows, input, selecting));
		PFS_TRY(leave_marked(running, input));
		return pfs_running_totals(running, input);
	case PFS_INPUT_SIDE:
		return running->block->n_inputs == 1 ? pfs_side_find(running, rows) : 0;
	default:
		return 0;
	}
}

static int select_rows(struct pfs_joining *joining, struct pfs_source *source, unsigned input)
{
	struct pfs_running *running = joining->running;
	const struct pfs_input *from = &running->block->inputs[input];
	struct selecting selecting = {UINT32_C(1) << input, from->is_left ? (int)input : -1};
	const uint16_t *table_of = running->stage.table_of;
	uint16_t alone[PFS_INPUTS_MAX] = {0};
	struct pfs_program *program = pfs_arena_get(running->arena, sizeof(*program));
	size_t n;
	int error;

	if (!program)
		return -ENOMEM;
	*source = (struct pfs_source){.table = &running->tables[input]};
	PFS_TRY(find_rows(joining, input, &selecting));
	source->rows = running->rows[input];
	running->stage.table_of = alone;
	error = take(joining, program, &n, selects, &selecting);
	running->stage.table_of = table_of;
	if (error)
		return error;
	source->where = n ? program : NULL;
	if (joining->has_early && joining->early.input == input)
		PFS_TRY(pfs_eager_group(running, source, &joining->early));
	if (!source->where || is_left_to_groups(joining, source))
		return 0;
	source->where = NULL;
	return pfs_running_select(running, source, input, program);
}

/* ---- joins ---- */

static bool is_column(const struct pfs_term *term)
{
	return term->kind == PFS_BOUND_COLUMN || term->kind == PFS_BOUND_MADE;
}

/* Returns true if the condition is an equality of a column of `input` and one of the inputs that
 * are joined already. */
static bool is_key(const struct pfs_joining *joining, const struct condition *condition,
		   unsigned input, uint32_t there, struct pfs_join_key *key)
{
	const struct pfs_stage *stage = &joining->running->stage;
	const struct pfs_term *term = condition->term, *left, *right;
	uint32_t own = UINT32_C(1) << input;

	if (term->kind != PFS_BOUND_STEP || term->op != PFS_OP_EQ || !is_column(term->args[0]) ||
	    !is_column(term->args[1]))
		return false;
	left = term->args[0];
	right = term->args[1];
	if (pfs_term_inputs(stage->block, left) == own) {
		left = term->args[1];
		right = term->args[0];
	}
	if (pfs_term_inputs(stage->block, right) != own ||
	    !(pfs_term_inputs(stage->block, left) & there))
		return false;
	key->collation = term->collation;
	if (!pfs_stage_ref(stage, &key->left, left) || !pfs_stage_ref(stage, &key->right, right))
		return false;
	key->right.table = 0; /* of its own side */
	return true;
}

static bool is_of_left_join(const struct condition *condition, const void *arg)
{
	return condition->left_join == *(const int *)arg;
}

static int join_input(struct pfs_joining *joining, unsigned input, uint32_t there)
{
	struct pfs_running *running = joining->running;
	int left_join = running->block->inputs[input].is_left ? (int)input : -1;
	struct pfs_join_key keys[CONDITIONS_MAX];
	struct pfs_program condition;
	struct pfs_join join = {.keys = keys, .kind = PFS_JOIN_INNER};
	struct pfs_run run = *running->run;
	struct pfs_source right;
	struct pfs_tuples *tuples;
	size_t n = 0;

	PFS_TRY(select_rows(joining, &right, input));
	for (size_t i = 0; i < joining->n; i++) {
		struct condition *one = &joining->conditions[i];

		if (!one->is_done && one->left_join == left_join &&
		    is_key(joining, one, input, there, &keys[join.n_keys])) {
			one->is_done = true;
			join.n_keys++;
		}
	}
	if (!join.n_keys)
		return -EOPNOTSUPP;
	if (left_join >= 0) {
		join.kind = PFS_JOIN_LEFT;
		PFS_TRY(take(joining, &condition, &n, is_of_left_join, &left_join));
		join.condition = n ? &condition : NULL;
	}
	if (pfs_block_keeps_order(running->block))
		run.on = PFS_ENGINE_HOST; /* which keeps left's order */
	PFS_TRY(pfs_join(&run, &tuples, &running->source, &right, &join));
	pfs_running_go_on(running, tuples);
	return 0;
}

static bool is_any(const struct condition *condition PFS_UNUSED, const void *arg PFS_UNUSED)
{
	return true;
}

static int filter_rest(struct pfs_joining *joining)
{
	struct pfs_running *running = joining->running;
	struct pfs_program program;
	struct pfs_tuples *tuples;
	size_t n;

	PFS_TRY(take(joining, &program, &n, is_any, NULL));
	if (!n)
		return 0;
	PFS_TRY(pfs_filter(running->run, &tuples, &running->source, &program));
	pfs_running_go_on(running, tuples);
	return 0;
}

static int begin(struct pfs_joining *joining, uint16_t *table_of)
{
	struct pfs_running *running = joining->running;
	const struct pfs_block *block = running->block;
	uint16_t n = 0;

	for (unsigned i = 0; i < block->n_inputs; i++) {
		if (block->inputs[i].parent_of == i)
			table_of[i] = n++;
	}
	for (unsigned i = 0; i < block->n_inputs; i++) {
		if (!block->inputs[i].is_value)
			table_of[i] = table_of[block->inputs[i].parent_of];
	}
	running->stage.table_of = table_of;
	PFS_TRY(find_sets(running));
	PFS_TRY(split(joining));
	joining->has_early = pfs_eager_find(&joining->early, block, running->query->n_nodes);
	return 0;
}

/* Sub-selects of expressions are joined behind all others. */
static int join_all(struct pfs_joining *joining, bool lifted)
{
	struct pfs_running *running = joining->running;
	const struct pfs_block *block = running->block;

	for (unsigned i = 0; i < block->n_inputs; i++) {
		if (block->inputs[i].parent_of != i || block->inputs[i].is_lifted != lifted ||
		    joining->there >> i & 1)
			continue;
		if (!joining->there)
			PFS_TRY(select_rows(joining, &running->source, i));
		else
			PFS_TRY(join_input(joining, i, joining->there));
		joining->there |= UINT32_C(1) << i;
	}
	return 0;
}

int pfs_running_join(struct pfs_running *running)
{
	struct pfs_joining *joining = pfs_arena_get(running->arena, sizeof(*joining));
	uint16_t *table_of = pfs_arena_get(running->arena, PFS_INPUTS_MAX * sizeof(*table_of));

	if (!joining || !table_of)
		return -ENOMEM;
	joining->running = running;
	joining->table_of = table_of;
	running->joining = joining;
	PFS_TRY(begin(joining, table_of));
	return join_all(joining, false);
}

void pfs_running_joined(struct pfs_running *running, unsigned input)
{
	struct pfs_joining *joining = running->joining;
	uint32_t own = UINT32_C(1) << input;

	for (size_t i = 0; i < joining->n; i++)
		joining->conditions[i].is_done |= (joining->conditions[i].inputs & own) != 0;
	for (unsigned i = input + 1; i < running->block->n_inputs; i++)
		joining->table_of[i]--; /* the batch has no table of it */
	joining->there |= own;
}

int pfs_running_join_lifted(struct pfs_running *running)
{
	PFS_TRY(join_all(running->joining, true));
	return filter_rest(running->joining);
}
