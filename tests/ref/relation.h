/* SPDX-License-Identifier: MIT */
/* tests/ref/relation.h - random tables that stand in SQLite's memory and, as lent columns, before
 * the engine; random expressions as programs and as SQL.
 *
 * The cases (tests/ref/relation_cases.c) run on any engine: what is to be compared is asked of
 * SQLite. */
#ifndef PFS_TESTS_REF_RELATION_H
#define PFS_TESTS_REF_RELATION_H

#include <sqlite3.h>

#include "gpu/relation.h"

#define REF_COLUMNS_MAX 10
#define REF_STEPS_MAX	200
#define REF_TEXTS	64

/* A table: column i is named c<i>, `r` the row. */
struct ref_table {
	struct pfs_table table;
	struct pfs_table_column columns[REF_COLUMNS_MAX];
	struct pfs_constant *values;	   /* by row, then column: what SQLite has */
	void *memory[REF_COLUMNS_MAX * 4]; /* to be freed */
	size_t n_memory;
	struct pfs_dictionary dictionary[REF_COLUMNS_MAX];
	struct pfs_heap heap[REF_COLUMNS_MAX];
};

struct ref_world {
	sqlite3 *db;
	uint64_t random;
	struct pfs_run run;
	int64_t charged;
	char *texts[REF_TEXTS];
	size_t text_len[REF_TEXTS];
	struct ref_table a, b; /* SQLite's tables a and b */
};

/* An expression, both ways.  Parameters of the SQL are bound in order. */
struct ref_expression {
	struct pfs_step steps[REF_STEPS_MAX];
	size_t n;
	char sql[16384];
	size_t len;
	struct pfs_constant bound[REF_STEPS_MAX * 4];
	size_t n_bound;
	struct pfs_constant lists[400]; /* of IN */
	size_t n_lists;
	struct pfs_rows *sets[8]; /* of BITS */
	size_t n_sets;
};

/* operators: of any engine; `on` says which of its back ends. */
void ref_open(struct ref_world *w, struct pfs_operators *operators, enum pfs_engine_kind on,
	      uint64_t seed);
void ref_close(struct ref_world *w); /* checks that nothing is charged any more */

/* New tables of that many rows. */
void ref_fill(struct ref_world *w, uint32_t n_a, uint32_t n_b);

uint32_t ref_below(struct ref_world *w, uint32_t n);

/* Random values: small ones that repeat, and the ends of their ranges. */
int64_t ref_integer(struct ref_world *w);
double ref_real(struct ref_world *w);
struct pfs_constant ref_text(struct ref_world *w);

/* Random expressions over table a: a truth, or a number. */
void ref_truth(struct ref_world *w, struct ref_expression *e, unsigned depth);
void ref_condition(struct ref_world *w, struct ref_expression *e, unsigned depth); /* a truth */
void ref_number(struct ref_world *w, struct ref_expression *e, unsigned depth);
void ref_expression_finish(struct ref_world *w, struct ref_expression *e);

/* Prepares SQL with the expression's parameters bound. */
sqlite3_stmt *ref_prepare(struct ref_world *w, const char *sql, const struct ref_expression *e);

/* All cases, once, over new tables. */
void ref_case_select(struct ref_world *w);
void ref_case_filter(struct ref_world *w); /* relation_filter.c */
void ref_case_compute(struct ref_world *w);
void ref_case_sort(struct ref_world *w);
void ref_case_group(struct ref_world *w);
void ref_case_join(struct ref_world *w);
void ref_case_index(struct ref_world *w);

#endif
