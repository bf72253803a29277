/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/cost.h"

#include <math.h>

#include "base/checked.h"
#include "fs/query/relational/eager_groups.h"
#include "fs/query/relational/sidetable.h"
#include "fs/query/relational/ties.h"

#define FEW_GROUPS 65536.0
#define FEW_VALUES 1000.0 /* about how many different ones a column of few has */
#define TOP_ROWS   4096u /* a LIMIT that keeps candidates */
#define VALUE_BYTES 8.0 /* of a column on the device, about: many are narrower, names are longer */

struct costing {
	const struct pfs_rates *rates;
	double host, device;
	double threads;
	double n_nodes;
	double joined; /* rows, of both sides */
	unsigned n_joins;
	bool on_host; /* what follows is the host's: the device makes no early groups */
};

static void add(struct costing *costing, enum pfs_work work, double rows)
{
	const struct pfs_rate *rate = &costing->rates->work[work];

	costing->host += rate->host * rows / (work == PFS_WORK_GIVE ? 1 : costing->threads);
	costing->device += rate->device * rows + costing->rates->launch_ns;
}

static void look_at(struct costing *costing, const struct pfs_term *term, double rows)
{
	for (unsigned i = 0; term && i < term->n_args; i++)
		look_at(costing, term->args[i], rows);
	if (term && (term->kind == PFS_BOUND_MADE || term->kind == PFS_BOUND_PRINTED))
		add(costing, PFS_WORK_PATTERN, rows);
	if (!term || term->kind != PFS_BOUND_STEP)
		return;
	add(costing,
	    term->op >= PFS_OP_LIKE && term->op <= PFS_OP_CONTAINS ? PFS_WORK_PATTERN
								   : PFS_WORK_LOOK,
	    rows);
}

/* Nothing is known of values: an equality leaves a tenth of the rows, another condition a third. */
static double part_left(const struct pfs_term *term)
{
	if (!term)
		return 1;
	if (term->kind == PFS_BOUND_STEP && term->op == PFS_OP_AND)
		return part_left(term->args[0]) * part_left(term->args[1]);
	if (term->kind == PFS_BOUND_STEP && term->op == PFS_OP_OR)
		return fmin(1, part_left(term->args[0]) + part_left(term->args[1]));
	return term->kind == PFS_BOUND_STEP && term->op == PFS_OP_EQ ? 0.1 : 1.0 / 3;
}

static double groups_of(const struct pfs_block *block, const struct pfs_term *key, double rows)
{
	const struct pfs_input *from = &block->inputs[key->input];
	const struct pfs_column_wish *wish = &from->columns[key->column].wish;

	if (key->kind != PFS_BOUND_COLUMN || from->kind != PFS_INPUT_NODES || wish->attr)
		return sqrt(rows);
	switch (pfs_fields[wish->field].values) {
	case PFS_VALUES_ALL:
		return rows;
	case PFS_VALUES_MANY:
		return rows / 10;
	case PFS_VALUES_FEW:
		break;
	}
	return fmin(rows, FEW_VALUES);
}

/* ---- few nodes ---- */

#define CHILDREN 10.0 /* of a directory, and nodes of a name, about */

struct pfs_few_nodes pfs_cost_few_nodes(enum pfs_field field, const struct pfs_rates *rates,
					uint64_t n_values, uint64_t n_nodes, unsigned n_threads)
{
	const struct pfs_rate *rate = rates->work;
	double values = (double)n_values, nodes = (double)n_nodes;
	double find = rate[PFS_WORK_FIND_NUMBER].host * values;

	if (field == PFS_FIELD_PARENT)
		find = fmin(rate[PFS_WORK_FIND_CHILDREN].host * values,
			    rate[PFS_WORK_LOOK_AT_PARENT].host * nodes + find);
	else if (field == PFS_FIELD_NAME)
		find = rate[PFS_WORK_FIND_NAME].host * values;
	return (struct pfs_few_nodes){
		.by = field == PFS_FIELD_INO ? "number" : pfs_fields[field].name,
		.n_values = n_values,
		.find_ns = (uint64_t)find,
		.all_ns = (uint64_t)(rate[PFS_WORK_JOIN].host * (nodes + values) /
				     PFS_MAX(n_threads, 1u)),
	};
}

void pfs_cost_describe_few(const struct pfs_few_nodes *few, FILE *out)
{
	if (few->by)
		(void)fprintf(
			out,
			"\nfew nodes or all: %.3f ms by the %s that %llu values say, %.3f ms by a look at all; chosen: %s%s",
			(double)few->find_ns / 1e6, few->by, (unsigned long long)few->n_values,
			(double)few->all_ns / 1e6, few->is_chosen ? "few" : "all",
			few->lacks_index
				? ", for an index of names is not made yet, or has many for one"
				: "");
}

static double cost_block(struct costing *costing, const struct pfs_block *block);

static double rows_of(struct costing *costing, const struct pfs_input *input)
{
	double rows = 0;

	if (input->kind == PFS_INPUT_NODES)
		return costing->n_nodes;
	if (input->kind == PFS_INPUT_SIDE)
		return input->side->table.n_rows;
	if (input->kind == PFS_INPUT_VALUES)
		return (double)input->n_rows;
	for (size_t i = 0; i < input->n_parts; i++)
		rows += cost_block(costing, input->parts[i]);
	return rows;
}

/* Returns how many rows of the input are looked at: all, or those that values of another one
 * name. */
static double rows_looked_at(struct costing *costing, const struct pfs_block *block, unsigned input)
{
	double rows = rows_of(costing, &block->inputs[input]);
	struct pfs_tie ties[PFS_TIES_MAX];
	size_t n = pfs_ties_find(ties, block, input);

	for (size_t i = 0; i < n; i++) {
		struct costing apart = *costing; /* they are an input, and counted there */
		double values = rows_of(&apart, &block->inputs[ties[i].by->input]);
		struct pfs_few_nodes few =
			pfs_cost_few_nodes(ties[i].field, costing->rates, (uint64_t)values,
					   (uint64_t)rows, (unsigned)costing->threads);

		if (few.find_ns >= few.all_ns)
			continue;
		costing->host += (double)few.find_ns;
		costing->device += (double)few.find_ns; /* the host finds them */
		return fmin(rows, values * (ties[i].field == PFS_FIELD_INO ? 1 : CHILDREN));
	}
	return rows;
}

static double cost_joins(struct costing *costing, const struct pfs_block *block)
{
	struct pfs_eager_plan early;
	bool has_early =
		costing->on_host && pfs_eager_find(&early, block, (uint64_t)costing->n_nodes);
	double rows = 0;

	for (unsigned i = 0; i < block->n_inputs; i++) {
		double own;

		if (block->inputs[i].is_value)
			(void)rows_of(costing, &block->inputs[i]);
		if (block->inputs[i].parent_of != i)
			continue;
		own = rows_looked_at(costing, block, i);
		look_at(costing, block->inputs[i].on, own);
		if (has_early && early.input == i) {
			add(costing, PFS_WORK_GROUP_FEW,
			    own * (1 + (double)block->n_aggregates) / 2);
			own = fmin(own, FEW_VALUES);
		}
		if (i) {
			add(costing, PFS_WORK_JOIN, rows + own);
			costing->joined += rows + own;
			costing->n_joins++;
		}
		rows = fmax(rows, own);
	}
	look_at(costing, block->where, rows);
	return rows * part_left(block->where);
}

static double cost_groups(struct costing *costing, const struct pfs_block *block,
			  struct pfs_term *const *keys, size_t n_keys, double rows)
{
	double groups = 1;

	for (size_t i = 0; i < n_keys; i++) {
		look_at(costing, keys[i], rows);
		groups = fmin(rows, groups * groups_of(block, keys[i], rows));
	}
	for (size_t i = 0; i < block->n_aggregates; i++)
		look_at(costing, block->aggregates[i].arg, rows);
	add(costing,
	    !n_keys		  ? PFS_WORK_FOLD
	    : groups > FEW_GROUPS ? PFS_WORK_GROUP_MANY
				  : PFS_WORK_GROUP_FEW,
	    rows * (1 + (double)block->n_aggregates) / 2);
	for (size_t i = 0; i < block->n_aggregates; i++) {
		if (pfs_fold_of(block->aggregates[i].op)->groups_again)
			add(costing, PFS_WORK_GROUP_MANY, rows);
	}
	return groups;
}

/* The block's rows, of which it adds what they cost. */
static double cost_block(struct costing *costing, const struct pfs_block *block)
{
	double rows = cost_joins(costing, block);

	if (block->is_grouped)
		rows = cost_groups(costing, block, block->group, block->n_group, rows);
	look_at(costing, block->having, rows);
	for (size_t i = 0; i < block->n_windows; i++)
		add(costing, PFS_WORK_WINDOW, rows);
	if (block->is_distinct)
		rows = cost_groups(costing, block, block->results, block->n_results, rows);
	if (block->n_order)
		add(costing, block->limit <= TOP_ROWS ? PFS_WORK_TOP : PFS_WORK_SORT, rows);
	if (block->limit != UINT64_MAX)
		rows = fmin(rows, (double)block->limit);
	add(costing, PFS_WORK_GIVE, rows * (double)block->n_results);
	return rows;
}

/* The two sides sorted and then merged are three operators on the device. */
static struct pfs_join_cost join_cost(const struct costing *costing, bool on_device)
{
	const struct pfs_rate *by_hash = &costing->rates->work[PFS_WORK_JOIN];
	const struct pfs_rate *by_merge = &costing->rates->work[PFS_WORK_MERGE];
	double hash = on_device ? by_hash->device : by_hash->host / costing->threads;
	double merge = on_device ? by_merge->device : by_merge->host / costing->threads;
	double launch = on_device ? costing->rates->launch_ns * costing->n_joins : 0;

	return (struct pfs_join_cost){(uint64_t)fmin(hash * costing->joined + launch, 1e18),
				      (uint64_t)fmin(merge * costing->joined + 3 * launch, 1e18)};
}

/* The bytes of the columns that the block reads. */
static double upload_of(const struct pfs_block *block, double n_nodes)
{
	double bytes = 0;

	for (size_t i = 0; i < block->n_inputs; i++) {
		const struct pfs_input *input = &block->inputs[i];
		double rows = input->kind == PFS_INPUT_NODES  ? n_nodes
			      : input->kind == PFS_INPUT_SIDE ? input->side->table.n_rows
							      : 0;

		bytes += rows * (double)input->n_used * VALUE_BYTES;
		for (size_t part = 0; part < input->n_parts; part++)
			bytes += upload_of(input->parts[part], n_nodes);
	}
	return bytes;
}

struct pfs_cost pfs_cost_of(const struct pfs_block *block, const struct pfs_rates *rates,
			    uint64_t n_nodes, unsigned n_threads)
{
	struct costing host = {.rates = rates,
			       .threads = PFS_MAX(n_threads, 1u),
			       .n_nodes = (double)n_nodes},
		       device = host;
	double start = rates->start_ns + rates->byte_ns * upload_of(block, (double)n_nodes);

	host.on_host = true;
	(void)cost_block(&host, block);
	(void)cost_block(&device, block);
	return (struct pfs_cost){(uint64_t)fmin(host.host, 1e18),
				 (uint64_t)fmin(device.device, 1e18), (uint64_t)fmin(start, 1e18),
				 join_cost(&host, false), join_cost(&device, true)};
}

/* Statements have no columns that stay sorted, so that hashing is what they do. */
static void describe_joins(const struct pfs_join_cost *join, FILE *out)
{
	if (join->hash_ns)
		(void)fprintf(
			out,
			"\njoins: %.3f ms by hash, %.3f ms by merging columns that are sorted for it; chosen: hash",
			(double)join->hash_ns / 1e6, (double)join->merge_ns / 1e6);
}

void pfs_cost_describe(const struct pfs_cost *cost, const struct pfs_rates *rates, FILE *out,
		       bool has_device, bool on_host)
{
	(void)fprintf(out,
		      "\nestimated: %.3f ms on the host, %.3f ms on a device%s; chosen: the %s",
		      (double)cost->host_ns / 1e6, (double)cost->device_ns / 1e6,
		      has_device ? "" : ", of which none is running", on_host ? "host" : "device");
	(void)fprintf(out, "\nrates: the host's are %s, a device's %s",
		      rates->is_measured ? "measured" : "fixed",
		      rates->is_seen ? "measured" : "fixed");
	describe_joins(on_host ? &cost->host_join : &cost->device_join, out);
}
