/* SPDX-License-Identifier: MIT */
/* fs/query/parts/parts_impl.h - inside of parts.h: parts.c (runs the parts), find.c (finds them in
 * a statement), split.c (makes a part of a SELECT whose expressions SQLite has to compute), part.c
 * (makes a table of one part). */
#ifndef PFS_FS_QUERY_PARTS_PARTS_IMPL_H
#define PFS_FS_QUERY_PARTS_PARTS_IMPL_H

#include "fs/query/parse/parse.h"
#include "fs/query/parts/parts.h"

#define PFS_STATEMENT_PARTS_MAX 32

struct pfs_statement_part {
	struct pfs_relational *relational;
	char *declaration;
	size_t n;		/* columns: c0, c1 ... */
	bool *is_expression;	/* by column: it is one, which has no affinity and no collation */
	bool is_members; /* its rows are the numbers of nodes that an UPDATE or DELETE is about */
};

struct pfs_parts {
	struct pfs_query *query;
	struct pfs_statement_part part[PFS_STATEMENT_PARTS_MAX];
	struct pfs_sql_part tables[PFS_STATEMENT_PARTS_MAX];
	unsigned n;
	struct pfs_edits text;
	bool is_cut; /* the whole statement has a LIMIT */
	bool has_run, failed;
};

struct pfs_substitute { /* a text that replaces a range of the statement */
	struct pfs_text_range span;
	char *text;
};

/* Looks for parts in one statement. */
struct pfs_finder {
	struct pfs_parts *parts;
	const char *text; /* the statement's */
	/* The whole statement, or the SELECT whose rows it inserts or makes a table of; NULL:
	 * none. */
	const struct pfs_select *select;
	/* The statement changes something; its parts may be plain rows (struct pfs_row_plan). */
	bool is_change;
	/* What stands around the SELECT that is looked at orders its rows or joins them, or may do
	 * so: SQLite leaves out its ORDER BY, and those within. */
	bool is_order_hidden;
	const struct pfs_cte
		*alone;	  /* that `select` alone names, until this is looked at; or NULL */
	bool makes_table; /* CREATE TABLE AS: SQLite derives the types of the table's columns */
	char *with; /* the statement's WITH, whose CTEs parts may name; owned; "": none */
	struct pfs_substitute *places; /* owned, in no order */
	size_t n_places, capacity;
	bool is_prepared; /* SQLite has prepared a part, and so dropped the statement */
	int error;	  /* 0 or -ENOMEM */
};

/* Says how the rows of a part are used; which SELECTs can be parts depends on it. */
enum pfs_part_use { PFS_PART_ROWS, PFS_PART_VALUE, PFS_PART_SET, PFS_PART_MEMBERS };

/* ---- part.c ---- */

/* Makes the next part, of a SELECT's text (without the statement's WITH, which is added). SQLite
 * prepares the part, and so drops the statement. Returns false if the text cannot be a part, or if
 * memory is short (finder->error). */
bool pfs_part_take(struct pfs_finder *finder, enum pfs_part_use use, const char *text, size_t len);
/* Prints the last part's column as an expression. */
void pfs_part_column(const struct pfs_finder *finder, FILE *out, size_t column);
/* Prints a SELECT of all columns of the last part, under the names that SQLite gives them.
 * is_whole: SQLite must not merge it with the SELECT around it, so that it reads the rows once, and
 * not for each row of another table. */
void pfs_part_select(const struct pfs_finder *finder, FILE *out, bool is_whole);
/* Gives the results of a SELECT whose text will change the names that SQLite gave them. Returns
 * false if that is impossible. */
bool pfs_part_name_results(struct pfs_finder *finder, const struct pfs_select *select);
void pfs_part_free(struct pfs_statement_part *part);

/* ---- find.c ---- */

/* Finds and takes all parts of the statement. */
void pfs_find_parts(struct pfs_finder *finder, const struct pfs_statement *statement);
/* Notes that `text`, which the finder then owns, replaces that range of the statement. */
void pfs_finder_put(struct pfs_finder *finder, struct pfs_text_range span, char *text);

/* If the SELECT at `span` can be a part, makes it one, and replaces it by a SELECT of the part's
 * table. Returns false if it cannot be one; parts taken before stay. */
bool pfs_finder_take(struct pfs_finder *finder, struct pfs_text_range span, enum pfs_part_use use,
		     bool is_whole);

/* ---- split.c ---- */

/* Splits a SELECT of one core: its FROM, WHERE and GROUP BY become a part, and SQLite computes its
 * results, HAVING and ORDER BY from the part's columns. Returns false if that is impossible. */
bool pfs_split(struct pfs_finder *finder, const struct pfs_select *select);

#endif
