/* SPDX-License-Identifier: MIT */
/* Sub-selects of nodes that a condition only asks for a row, as IN, EXISTS and their contraries do:
 * nodes that have one are marked, instead of making the sub-select's rows distinct and joining with
 * them. */
#include "fs/query/relational/partners.h"

struct asking {
	const struct pfs_block *block;
	unsigned input;
	const struct pfs_term *test; /* the condition of WHERE that asks for a row, */
	bool wanted;		     /* or for none; */
	bool is_other;		     /* and there is more that names the input */
};

static bool names(const struct asking *asking, const struct pfs_term *term)
{
	return term && pfs_term_inputs(asking->block, term) >> asking->input & 1;
}

/* Finds the condition among those that AND ties together: IS [NOT] NULL is never NULL itself, so
 * that NOT before it makes the contrary of it. */
static void ask_where(struct asking *asking, const struct pfs_term *term)
{
	const struct pfs_term *test = term;
	bool wanted = true;

	if (!names(asking, term))
		return;
	if (term->kind == PFS_BOUND_STEP && term->op == PFS_OP_AND) {
		ask_where(asking, term->args[0]);
		ask_where(asking, term->args[1]);
		return;
	}
	for (; test->kind == PFS_BOUND_STEP && test->op == PFS_OP_NOT; test = test->args[0])
		wanted = !wanted;
	asking->is_other |= asking->test || test->kind != PFS_BOUND_STEP ||
			    (test->op != PFS_OP_IS_NULL && test->op != PFS_OP_NOT_NULL) ||
			    test->args[0]->kind != PFS_BOUND_COLUMN;
	asking->test = term;
	asking->wanted = wanted == (test->op == PFS_OP_NOT_NULL);
}

static void ask_others(struct asking *asking)
{
	const struct pfs_block *block = asking->block;

	asking->is_other |= block->n_windows || names(asking, block->having);
	for (unsigned i = 0; i < block->n_inputs; i++)
		asking->is_other |= i != asking->input && (names(asking, block->inputs[i].on) ||
							   names(asking, block->inputs[i].equal));
	for (size_t i = 0; i < block->n_group; i++)
		asking->is_other |= names(asking, block->group[i]);
	for (size_t i = 0; i < block->n_aggregates; i++)
		asking->is_other |= names(asking, block->aggregates[i].arg);
	for (size_t i = 0; i < block->n_results; i++)
		asking->is_other |= names(asking, block->results[i]);
	for (size_t i = 0; i < block->n_order; i++)
		asking->is_other |= names(asking, block->order[i].value);
}

/* Returns true if a condition asks for a row, or, *wanted false, for none, and nothing else names
 * the input. */
static bool is_only_asked(const struct pfs_block *block, unsigned input, bool *wanted)
{
	struct asking asking = {.block = block, .input = input};

	ask_where(&asking, block->where);
	ask_others(&asking);
	*wanted = asking.wanted;
	return asking.test && !asking.is_other;
}

/* Returns the number of a node that the only key ties the input to; else NULL. */
static const struct pfs_term *outer_of(const struct pfs_block *block, unsigned input)
{
	const struct pfs_input *from = &block->inputs[input];
	const struct pfs_term *on = from->on, *outer;

	if (!on || from->equal || on->kind != PFS_BOUND_STEP || on->op != PFS_OP_EQ)
		return NULL;
	outer = on->args[pfs_term_inputs(block, on->args[0]) == UINT32_C(1) << input];
	return pfs_block_is_field(block, outer, PFS_FIELD_INO) ? outer : NULL;
}

/* Returns what the sub-select's rows have: numbers of nodes, or of their parents; else NULL. */
static const struct pfs_term *key_of(const struct pfs_input *from)
{
	const struct pfs_block *part = from->n_parts == 1 && !from->n_first ? from->parts[0] : NULL;
	const struct pfs_term *key = part && part->n_results == 1 ? part->results[0] : NULL;

	if (!key || key->is_late || part->is_grouped || part->having || part->n_windows ||
	    part->offset || part->limit != UINT64_MAX)
		return NULL;
	return pfs_block_is_field(part, key, PFS_FIELD_INO) ||
			       pfs_block_is_field(part, key, PFS_FIELD_PARENT)
		       ? key
		       : NULL;
}

bool pfs_partners_ask(struct pfs_partners *partners, const struct pfs_running *running,
		      const struct pfs_source *source, unsigned input)
{
	const struct pfs_block *block = running->block;
	const struct pfs_term *outer = outer_of(block, input);
	bool wanted;

	if (!outer || !is_only_asked(block, input, &wanted))
		return false;
	*partners = (struct pfs_partners){
		.outer = outer, .rows = key_of(&block->inputs[input]), .wanted = wanted};
	return partners->rows && running->run->on == PFS_ENGINE_HOST && source->table &&
	       !source->where && block->inputs[outer->input].parent_of == outer->input &&
	       source->table == &running->tables[outer->input];
}

int pfs_partners_mark(const struct pfs_partners *partners, struct pfs_rows **marked,
		      const struct pfs_running *running, const struct pfs_source *source,
		      struct pfs_running *part)
{
	struct pfs_join_key key = {.collation = PFS_BINARY};

	PFS_TRY(pfs_running_settle(part));
	key.left.column = (uint16_t)pfs_stage_column(&running->stage, partners->outer);
	if (!pfs_stage_ref(&part->stage, &key.right, partners->rows))
		return -EOPNOTSUPP;
	return pfs_partners(running->run, marked, source, &part->source, &key);
}

int pfs_partners_select(const struct pfs_partners *partners, struct pfs_running *running,
			struct pfs_source *source, struct pfs_rows *marked)
{
	const struct pfs_step steps[] = {{.op = PFS_OP_BITS, .bits = marked}, {.op = PFS_OP_NOT}};
	const struct pfs_program program = {.steps = steps, .n = partners->wanted ? 1 : 2};

	return pfs_running_select(running, source, partners->outer->input, &program);
}
