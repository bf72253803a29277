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

struct pfs_place { /* in the statement: what stands there instead */
	struct pfs_span span;
	char *text;
};

/* What is looked for in one statement. */
struct pfs_finder {
	struct pfs_parts *parts;
	const char *text; /* the statement's */
	const struct pfs_select *select; /* the whole */
	struct pfs_span with; /* its WITH, which each part may name; len 0: none */
	struct pfs_place *places; /* owned, in no order */
	size_t n_places, capacity;
	bool is_prepared; /* a part: the statement that SQLite had is gone */
	int error;	  /* -ENOMEM */
};

/* How the rows of a part are used, which decides what may be one. */
enum pfs_part_use { PFS_PART_ROWS, PFS_PART_VALUE, PFS_PART_SET };

/* ---- part.c ---- */

/* Makes the next part of a text without its WITH; SQLite then has it prepared.  False: it is none, or
 * finder->error. */
bool pfs_part_take(struct pfs_finder *finder, enum pfs_part_use use, const char *text, size_t len);
/* The last part's column as an expression. */
void pfs_part_column(const struct pfs_finder *finder, FILE *out, size_t column);
/* A SELECT of all its columns, under the names that SQLite has for them.  is_whole: not to be merged with
 * the SELECT around it, so that it is gone through once and not for each row of another table. */
void pfs_part_select(const struct pfs_finder *finder, FILE *out, bool is_whole);
void pfs_part_free(struct pfs_statement_part *part);

/* ---- find.c ---- */

/* Takes all parts of the statement. */
void pfs_find_parts(struct pfs_finder *finder);
/* What stands at a place instead of what was written; the text becomes the finder's. */
void pfs_finder_put(struct pfs_finder *finder, struct pfs_span span, char *text);

/* A SELECT of the part in its place, if it is one; what was taken before stays so. */
bool pfs_finder_take(struct pfs_finder *finder, struct pfs_span span, enum pfs_part_use use, bool is_whole);

/* ---- split.c ---- */

/* A SELECT of one core whose FROM, WHERE and GROUP BY are a part, while its results, HAVING and ORDER BY
 * are computed of the part's columns by SQLite. */
bool pfs_split(struct pfs_finder *finder, const struct pfs_select *select);

#endif
