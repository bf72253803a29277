/* SPDX-License-Identifier: MIT */
/* The order of rows: which one a block has, who sees it, and whether it is SQLite's. */
#include "fs/query/relational/bind.h"

#include "fs/query/relational/sidetable.h"

#define FEW_PARTS_MAX 3 /* of few rows each: for four of them SQLite makes an index of a table */

/* ---- what an order leaves open ---- */

static bool is_ordered_by(const struct pfs_block *block, const struct pfs_term *term)
{
	for (size_t i = 0; i < block->n_order; i++) {
		if (pfs_bound_equals(block->order[i].value, term))
			return true;
	}
	return term->kind == PFS_BOUND_CONSTANT;
}

static bool is_ordered_by_all(const struct pfs_block *block, struct pfs_term *const *terms,
			      size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_ordered_by(block, terms[i]))
			return false;
	}
	return true;
}

bool pfs_block_is_node(const struct pfs_block *block, const struct pfs_term *term)
{
	return pfs_block_is_field(block, term, PFS_FIELD_INO);
}

static bool leaves_nothing_open(const struct pfs_block *block)
{
	if (!block->n_order)
		return false;
	if (block->is_distinct)
		return is_ordered_by_all(block, block->results, block->n_results);
	if (block->is_grouped)
		return is_ordered_by_all(block, block->group, block->n_group);
	for (size_t i = 0; i < block->n_order && block->n_inputs == 1; i++) {
		if (pfs_block_is_node(block, block->order[i].value))
			return true;
	}
	return false;
}

static bool is_cut(const struct pfs_block *block)
{
	return block->limit != UINT64_MAX || block->offset;
}

bool pfs_block_is_determined(const struct pfs_block *block)
{
	return !is_cut(block) || leaves_nothing_open(block);
}

/* ---- rows of one block ---- */

/* True if the order of peers shows. */
static bool tells_peers_apart(const struct pfs_bound_window *window)
{
	bool tells = false;

	for (size_t i = 0; i < window->n_functions; i++)
		tells |= pfs_window_traits[window->functions[i].op].tells_peers_apart;
	return tells;
}

/* True if rows are met as nodes ascend. */
static bool is_scan_of_nodes(const struct pfs_block *block)
{
	return block->n_inputs == 1 && block->inputs[0].kind == PFS_INPUT_NODES &&
	       !block->n_dropped;
}

/* True if no two rows of the only input are peers. */
static bool has_no_peers(const struct pfs_block *block, const struct pfs_bound_window *window)
{
	bool has = false;

	for (size_t i = 0; i < window->n_keys; i++)
		has |= pfs_block_is_node(block, window->keys[i].value);
	return has;
}

/* Peers, and rows without an order of their own, come as SQLite's scan of nodes meets them.  With
 * several windows they come in an order of SQLite's own: functions whose frames differ are several
 * windows to it. */
static void check_windows(struct pfs_binder *binder)
{
	const struct pfs_block *block = binder->block;
	bool is_scan = is_scan_of_nodes(block);
	bool is_open = !block->n_order && is_cut(block);

	if (!block->n_windows || binder->error)
		return;
	if (block->is_grouped || block->is_distinct)
		pfs_bind_refuse(binder, "a window with GROUP BY or DISTINCT");
	for (size_t i = 0; i < block->n_windows; i++)
		is_open |= tells_peers_apart(&block->windows[i]) &&
			   (block->n_windows == 1 || !is_scan ||
			    !has_no_peers(block, &block->windows[i]));
	if (is_open && (!is_scan || block->n_windows > 1))
		pfs_bind_refuse(binder, "a window that leaves the order of rows open");
}

/* True if the condition may be looked for by several scans, one after the other. */
static bool has_alternatives(const struct pfs_term *term)
{
	bool has = term && term->kind == PFS_BOUND_STEP &&
		   (term->op == PFS_OP_IN || term->op == PFS_OP_OR);

	for (unsigned i = 0; term && i < term->n_args; i++)
		has |= has_alternatives(term->args[i]);
	return has;
}

/* Groups that are wanted from the last one on may have their rows so, too. */
static bool is_scan(const struct pfs_block *block)
{
	bool is = is_scan_of_nodes(block) && !has_alternatives(block->where);

	for (size_t i = 0; i < block->n_order; i++)
		is &= block->is_grouped && !block->is_distinct && !block->order[i].is_descending;
	return is;
}

/* A text that several rows make has them as they ascend. */
static void check_texts(struct pfs_binder *binder)
{
	const struct pfs_block *block = binder->block;
	bool has = false;

	for (size_t i = 0; i < block->n_aggregates; i++)
		has |= block->aggregates[i].op == PFS_GROUP_CONCAT;
	if (has && !block->is_scan)
		pfs_bind_refuse(binder, "group_concat of rows in an order of SQLite's");
}

/* Rows that have no order of their own come in that of the sub-select that they are from, as SQLite
 * has it. It is no part of an answer that joins or groups them. */
static void take_order_of_part(struct pfs_binder *binder, const struct pfs_core *core)
{
	struct pfs_block *block = binder->block;
	struct pfs_input *input = &block->inputs[0];
	struct pfs_block *part = input->n_parts == 1 ? input->parts[0] : NULL;
	bool shows = !core->from->next && !block->is_grouped;
	bool is_dropped = block->n_dropped || (part && part->n_dropped);

	block->is_in_order = shows && (is_dropped || (part && part->is_in_order));
	if (block->is_in_order && (block->n_windows || (block->is_distinct && !block->n_order)))
		pfs_bind_refuse(binder, "DISTINCT or a window of rows in an order");
	if (shows && is_dropped && !block->n_order) {
		if (block->n_inputs > 1)
			pfs_bind_refuse(binder, "rows in an order, beside sub-selects in expressions");
		if (part) {
			part->n_order = part->n_dropped;
			part->order = part->dropped;
		}
		block->order = block->dropped;
		block->n_order = block->n_dropped;
	}
	block->n_dropped = 0;
}

void pfs_bind_row_order(struct pfs_binder *binder, const struct pfs_core *written,
			const struct pfs_select *end)
{
	/* of a compound others say in which order */
	binder->block->is_scan = end && is_scan(binder->block);
	check_windows(binder);
	check_texts(binder);
	take_order_of_part(binder, written);
}

/* ---- blocks of blocks ---- */

bool pfs_block_joins(const struct pfs_block *block)
{
	for (unsigned i = 1; i < block->n_inputs; i++)
		if (!block->inputs[i].is_lifted)
			return true;
	return false;
}

/* Returns the inputs without whose rows the condition may be false or NULL to SQLite, which looks
 * at comparisons and what is computed, and no further. */
static uint32_t needed_by(const struct pfs_block *block, const struct pfs_term *term)
{
	uint32_t needed = 0;

	if (!term || term->kind != PFS_BOUND_STEP)
		return term ? pfs_term_inputs(block, term) : 0;
	switch (term->op) {
	case PFS_OP_IS_NULL:
	case PFS_OP_NOT_NULL: /* where AND does not tie it to the others (ties.c) */
	case PFS_OP_IS:
	case PFS_OP_IS_NOT:
	case PFS_OP_OR:
		return 0;
	default:
		for (unsigned i = 0; i < term->n_args; i++)
			needed |= needed_by(block, term->args[i]);
		return needed;
	}
}

/* Returns the inputs that some condition needs that is not of a LEFT JOIN. */
static uint32_t asked_for(const struct pfs_block *block)
{
	uint32_t asked = needed_by(block, block->where);

	for (unsigned i = 1; i < block->n_inputs; i++) {
		const struct pfs_input *input = &block->inputs[i];

		if (!input->is_left)
			asked |= needed_by(block, input->on) | needed_by(block, input->equal);
	}
	return asked;
}

/* True if SQLite goes through the first input's rows one by one, and joins each with others. Of a
 * LEFT JOIN it makes an inner one, whose tables it may exchange, where a condition is true only of
 * rows that it has found. */
static bool is_first_outermost(const struct pfs_block *block)
{
	uint32_t asked = asked_for(block);

	for (unsigned i = 1; i < block->n_inputs; i++) {
		const struct pfs_input *input = &block->inputs[i];

		if (!input->is_lifted && !input->is_cross && (!input->is_left || asked >> i & 1))
			return false;
	}
	return true;
}

/* True if AND ties a condition to the others that leaves of the column one value for each row of
 * other inputs. */
static bool ties_column(const struct pfs_block *block, const struct pfs_term *term, unsigned input,
			unsigned column, enum pfs_collation collation)
{
	bool ties = false;

	if (!term || term->kind != PFS_BOUND_STEP)
		return false;
	if (term->op == PFS_OP_AND)
		return ties_column(block, term->args[0], input, column, collation) ||
		       ties_column(block, term->args[1], input, column, collation);
	if (term->op != PFS_OP_EQ ||
	    (term->collation != PFS_BINARY && term->collation != collation))
		return false;
	for (unsigned own = 0; own < 2; own++) {
		const struct pfs_term *at = term->args[own];

		ties |= at->kind == PFS_BOUND_COLUMN && at->input == input &&
			at->column == column &&
			!(pfs_term_inputs(block, term->args[1 - own]) >> input & 1);
	}
	return ties;
}

/* True if what a row is joined with of the input has one value in that column. */
static bool is_column_tied(const struct pfs_block *block, unsigned input, unsigned column,
			   enum pfs_collation collation)
{
	const struct pfs_input *from = &block->inputs[input];

	return ties_column(block, from->on, input, column, collation) ||
	       ties_column(block, from->equal, input, column, collation) ||
	       (!from->is_left && ties_column(block, block->where, input, column, collation));
}

/* True if the groups that some row is joined with have the key in common. */
static bool is_key_tied(const struct pfs_block *block, unsigned input, const struct pfs_term *key)
{
	const struct pfs_block *part = block->inputs[input].parts[0];
	bool is_tied = false;

	for (unsigned i = 0; i < part->n_results; i++)
		is_tied |= pfs_bound_equals(part->results[i], key) &&
			   is_column_tied(block, input, i, key->collation);
	return is_tied;
}

/* True if SQLite takes the rows for so few that it makes no index of a table for them. */
static bool are_few(const struct pfs_input *input)
{
	bool are = input->n_parts && input->n_parts <= FEW_PARTS_MAX;

	for (size_t i = 0; are && i < input->n_parts; i++)
		are = pfs_block_is_few(input->parts[i]);
	return are;
}

bool pfs_block_is_few(const struct pfs_block *block)
{
	return block->is_aggregate || block->limit <= PFS_FEW_ROWS ||
	       (!pfs_block_joins(block) && are_few(&block->inputs[0]));
}

/* True if SQLite goes through all rows of a side table for each row of few, rather than make an
 * index of it: it takes a table for a million rows. */
static bool is_gone_through(const struct pfs_block *block, unsigned input)
{
	const struct pfs_input *from = &block->inputs[input];
	bool has_index = false;

	for (unsigned i = 0; i < from->n_columns; i++)
		has_index |= from->side->columns[i].is_indexed;
	return input == 1 && !has_index && are_few(&block->inputs[0]);
}

/* True if each row is joined with one row of a side table at most. */
static bool is_number_tied(const struct pfs_block *block, unsigned input)
{
	const struct pfs_input *from = &block->inputs[input];
	bool is_tied = false;

	for (unsigned i = 0; i < from->n_columns; i++)
		is_tied |= from->side->columns[i].is_number &&
			   is_column_tied(block, input, i, PFS_BINARY);
	return is_tied;
}

static bool are_keys_tied(const struct pfs_block *block, unsigned input)
{
	const struct pfs_input *from = &block->inputs[input];
	const struct pfs_block *part = from->n_parts == 1 ? from->parts[0] : NULL;
	bool are_tied = part && part->is_grouped;

	for (size_t i = 0; are_tied && i < part->n_group; i++)
		are_tied = is_key_tied(block, input, part->group[i]);
	return are_tied;
}

/* True if a row may be joined with several of the input's, of which SQLite makes an index of its
 * own: their order is that of the columns that it puts there. */
static bool has_several(const struct pfs_block *block, unsigned input)
{
	const struct pfs_input *from = &block->inputs[input];

	if (from->is_lifted)
		return false;
	switch (from->kind) {
	case PFS_INPUT_SIDE:
		return !is_number_tied(block, input) && !is_gone_through(block, input);
	case PFS_INPUT_BLOCKS:
		return !are_keys_tied(block, input);
	default:
		return false;
	}
}

/* True if a result names the input, or one behind it, which may be joined with it. */
static bool shows_from(const struct pfs_block *block, unsigned input)
{
	bool shows = false;

	for (size_t i = 0; i < block->n_results; i++)
		shows |= pfs_term_inputs(block, block->results[i]) >> input != 0;
	return shows;
}

/* True if it shows in which order those come that a row of the first input is joined with. */
static bool shows_partners(const struct pfs_block *block)
{
	for (unsigned i = 1; i < block->n_inputs; i++)
		if (has_several(block, i) && shows_from(block, i))
			return true;
	return false;
}

/* SQLite keeps the ORDER BY of groups, whatever stands around them. */
static void show_order(struct pfs_block *part)
{
	part->shows_order = true;
	if (part->is_aggregate && part->n_dropped) {
		part->n_order = part->n_dropped;
		part->order = part->dropped;
	}
}

bool pfs_block_may_lose_order(const struct pfs_block *block)
{
	const struct pfs_input *input = &block->inputs[0];
	bool may = block->n_order != 0;

	if (block->is_aggregate || is_cut(block))
		return false;
	for (size_t i = 0; i < input->n_parts && !may; i++)
		may = pfs_block_may_lose_order(input->parts[i]);
	return may;
}

/* Of other rows SQLite leaves it out where they are joined or ordered by something else. */
static void forget_order(struct pfs_block *part)
{
	struct pfs_input *input = &part->inputs[0];

	if (part->is_aggregate || is_cut(part))
		return;
	part->n_order = 0;
	for (size_t i = 0; i < input->n_parts; i++)
		forget_order(input->parts[i]);
}

/* What is sorted by all that it shows has no ties, and groups come by their keys.  Of a part
 * SQLite may leave out rows. */
void pfs_bind_pass_order(struct pfs_binder *binder, struct pfs_block *block)
{
	const struct pfs_input *input = &block->inputs[0];
	bool is_hidden = block->n_order || pfs_block_joins(block);

	for (size_t i = 0; i < input->n_parts && is_hidden; i++)
		forget_order(input->parts[i]);
	block->passes_order = block->shows_order && !block->is_grouped && !block->is_set &&
			      !(block->is_distinct && pfs_block_joins(block)) &&
			      is_first_outermost(block) &&
			      !is_ordered_by_all(block, block->results, block->n_results);
	for (size_t i = 0; i < input->n_parts && block->passes_order; i++)
		show_order(input->parts[i]);
	if (block->passes_order && input->n_parts && shows_partners(block) &&
	    (is_cut(binder->block) || binder->is_table))
		pfs_bind_refuse(binder, "a LIMIT of joined rows in an order of SQLite's");
}

/* True if the first input's rows are nodes that SQLite meets as they ascend. */
static bool are_nodes_met(const struct pfs_block *block)
{
	bool are = block->inputs[0].kind == PFS_INPUT_NODES && !block->n_order &&
		   !block->n_dropped && !has_alternatives(block->where);

	for (unsigned i = 1; i < block->n_inputs; i++)
		are &= block->inputs[i].is_left || (!has_alternatives(block->inputs[i].on) &&
						    !has_alternatives(block->inputs[i].equal));
	return are;
}

bool pfs_block_keeps_order(const struct pfs_block *block)
{
	return block->passes_order &&
	       (block->inputs[0].n_parts || (is_cut(block) && are_nodes_met(block)));
}

static bool is_in_known_order(const struct pfs_block *block);

/* Ties of nodes come as the index has them that SQLite walks. */
static bool are_in_known_order(const struct pfs_block *block, const struct pfs_input *input)
{
	bool are = !input->n_first;

	for (size_t i = 0; i < input->n_parts; i++) {
		const struct pfs_block *part = input->parts[i];

		are &= is_in_known_order(part) &&
		       (!block->n_order || part->is_grouped || part->is_set);
	}
	return are;
}

static bool is_in_known_order(const struct pfs_block *block)
{
	if (leaves_nothing_open(block) || block->is_grouped || block->is_set)
		return true;
	if (block->n_windows)
		return false;
	if (pfs_block_joins(block))
		return pfs_block_keeps_order(block) && !shows_partners(block) &&
		       are_in_known_order(block, &block->inputs[0]);
	switch (block->inputs[0].kind) {
	case PFS_INPUT_BLOCKS:
		return are_in_known_order(block, &block->inputs[0]);
	case PFS_INPUT_VALUES:
		return true;
	default:
		return !block->n_order && is_scan(block);
	}
}

bool pfs_block_is_known(const struct pfs_block *block)
{
	return !is_cut(block) || is_in_known_order(block);
}

/* SQLite makes a member's groups descend as the compound's ORDER BY does (groups_descend). */
void pfs_bind_check_members(struct pfs_binder *binder)
{
	const struct pfs_block *block = binder->block;
	const struct pfs_input *input = &block->inputs[0];
	bool descends = false;

	for (size_t i = 0; i < block->n_order; i++)
		descends |= block->order[i].is_descending;
	if (!descends || block->is_set || block->is_grouped || !is_cut(block) ||
	    is_ordered_by_all(block, block->results, block->n_results))
		return;
	for (size_t i = 0; i < input->n_parts; i++) {
		if (input->parts[i]->n_group == block->n_order)
			pfs_bind_refuse(binder, "a LIMIT of groups of a UNION ALL that descend");
	}
}
