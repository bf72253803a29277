/* SPDX-License-Identifier: MIT */
/* fs/query/relational/cost.h - how long the operators are going to take for a statement, on the
 * host and on the device, from the rates of each kind of work (rates.h; docs/design/statements.md,
 * "What a statement costs").  Columns are taken to be where they are computed on. Not handled here:
 * what SQLite would take. */
#ifndef PFS_FS_QUERY_RELATIONAL_COST_H
#define PFS_FS_QUERY_RELATIONAL_COST_H

#include <stdio.h>

#include "fs/query/relational/bound.h"
#include "fs/query/relational/rates.h"

/* Estimates a block over a tree of so many nodes, with so many threads on the host. */
struct pfs_cost pfs_cost_of(const struct pfs_block *block, const struct pfs_rates *rates,
			    uint64_t n_nodes, unsigned n_threads);

/* Estimates finding nodes by values of that field (INO, PARENT or NAME), beside a look at all of
 * them. */
struct pfs_few_nodes pfs_cost_few_nodes(enum pfs_field field, const struct pfs_rates *rates,
					uint64_t n_values, uint64_t n_nodes, unsigned n_threads);
/* Writes a line of a plan, if there was such a choice. */
void pfs_cost_describe_few(const struct pfs_few_nodes *few, FILE *out);

/* Writes lines of a plan: a newline before each, none at the end. The rates are those of the cost;
 * on_host: where the statement runs. */
void pfs_cost_describe(const struct pfs_cost *cost, const struct pfs_rates *rates, FILE *out,
		       bool has_device, bool on_host);

#endif
