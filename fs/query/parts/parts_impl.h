/* SPDX-License-Identifier: MIT */
/* fs/query/parts/parts_impl.h - inside of parts.h: parts.c (what is run and when), find.c (where in a
 * statement parts are), split.c (a SELECT that is one but for its expressions), part.c (one of them as a
 * table). */
#ifndef PFS_FS_QUERY_PARTS_PARTS_IMPL_H
#define PFS_FS_QUERY_PARTS_PARTS_IMPL_H

#include "fs/query/parse/parse.h"
#include "fs/query/parts/parts.h"

#define PFS_STATEMENT_PARTS_MAX 32

struct pfs_statement_part {
	struct pfs_relational *relational;
	char *declaration;
	size_t n;		/* columns: c0, c1 ... */
	bool *has_no_affinity; /* by column: an expression without one, which a column cannot be */
	bool is_members; /* the numbers of the nodes that an UPDATE or DELETE is about */
};

struct pfs_parts {
	struct pfs_query *query;
	struct pfs_statement_part part[PFS_STATEMENT_PARTS_MAX];
	struct pfs_sql_part tables[PFS_STATEMENT_PARTS_MAX];
	unsigned n;
	struct pfs_edits text;
	bool is_cut; /* the whole, by a LIMIT */
	bool has_run, failed;
};

struct pfs_substitute { /* in the statement: what stands there instead */
	struct pfs_text_range span;
	char *text;
};

/* Looks for parts in one statement. */
struct pfs_finder {
	struct pfs_parts *parts;
	const char *text; /* the statement's */
	const struct pfs_select *select; /* the whole, or what a statement inserts or makes a table of; NULL: none */
	bool is_change;	  /* it changes something; parts of it may be rows of nodes as they are */
	bool makes_table; /* whose columns are declared as SQLite derives them */
	char *with; /* the statement's WITH, which each part may name; owned; "": none */
	struct pfs_substitute *places; /* owned, in no order */
	size_t n_places, capacity;
	bool is_prepared; /* a part: the statement that SQLite had is gone */
	int error;	  /* -ENOMEM */
};

/* Says how the rows of a part are used, which decides what may be one. */
enum pfs_part_use { PFS_PART_ROWS, PFS_PART_VALUE, PFS_PART_SET, PFS_PART_MEMBERS };

/* ---- part.c ---- */

/* Makes the next part of a text without its WITH, which SQLite then has prepared.  Returns false if the text cannot be a part, or memory
 * is short (finder->error). */
bool pfs_part_take(struct pfs_finder *finder, enum pfs_part_use use, const char *text, size_t len);
/* Prints the last part's column as an expression. */
void pfs_part_column(const struct pfs_finder *finder, FILE *out, size_t column);
/* Prints a SELECT of all columns of the last part, under the names that SQLite has for them.  is_whole: SQLite must not merge it with
 * the SELECT around it, so that it reads the rows once, and not for each row of another table. */
void pfs_part_select(const struct pfs_finder *finder, FILE *out, bool is_whole);
/* Names the results of a SELECT as SQLite does, wherever their text is going to be another one.  Returns false if that cannot be. */
bool pfs_part_name_results(struct pfs_finder *finder, const struct pfs_select *select);
void pfs_part_free(struct pfs_statement_part *part);

/* ---- find.c ---- */

/* Takes all parts of the statement. */
void pfs_find_parts(struct pfs_finder *finder, const struct pfs_statement *statement);
/* Puts a text, which becomes the finder's, in the place of what was written there. */
void pfs_finder_put(struct pfs_finder *finder, struct pfs_text_range span, char *text);

/* If the SELECT at `span` can be a part, takes it and puts a SELECT of the part in its place.  Returns false if it cannot; parts taken
 * before stay. */
bool pfs_finder_take(struct pfs_finder *finder, struct pfs_text_range span, enum pfs_part_use use, bool is_whole);

/* ---- split.c ---- */

/* Splits a SELECT of one core: its FROM, WHERE and GROUP BY become a part, and SQLite computes its results, HAVING and ORDER BY from the
 * part's columns.  Returns false if that cannot be. */
bool pfs_split(struct pfs_finder *finder, const struct pfs_select *select);

#endif
