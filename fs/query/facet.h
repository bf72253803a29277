/* SPDX-License-Identifier: MIT */
/* fs/query/facet.h - paths below `.query/where/` as statements: columns and values in turn, each
 * pair being one more condition.
 *
 * A facet is one allocated piece of memory and is freed with free(). Threads: a facet is never
 * changed. Not handled here: running the statements, and what `under/CHILD` is called in the
 * tree. */
#ifndef PFS_FS_QUERY_FACET_H
#define PFS_FS_QUERY_FACET_H

#include <stdio.h>

#include "fs/query/output/answer.h"

#define PFS_FACET_VALUES_MAX 1000 /* so many values are in a listing, the most frequent first */
#define PFS_FACET_NAME_MAX   255

enum pfs_facet_kind {
	PFS_FACET_COLUMNS,  /* `where` itself, or a value: columns are next, or an end */
	PFS_FACET_VALUES,   /* a column: its values are next */
	PFS_FACET_OPERANDS, /* COLUMN.gt and the like: anything is next */
	PFS_FACET_CHILDREN, /* under: a directory's children are next */
	PFS_FACET_NODES,    /* @nodes, an end: links to what is found */
	PFS_FACET_ANSWER,   /* another end, or the rest of the values: a file */
};

struct pfs_facet {
	enum pfs_facet_kind kind;
	enum pfs_format format; /* of an ANSWER */
	uint64_t under;		/* whose children are next after `under`; 0: the directory's own */
	unsigned op;		/* of VALUES and OPERANDS; facet.c's own */
	bool is_number;		/* the column's values are, */
	bool is_number_only;	/* without an exception */
	unsigned n_conditions;
	size_t where_len;
	char text[]; /* the condition; after its NUL the column that is, or was, the last one, quoted, or
		      * the ANSWER's statement */
};

/* The columns of nodes. */
struct pfs_facet_column {
	char *name;
	/* only: a text, which an attribute may hold all the same, counts as none. */
	bool is_number, is_number_only;
};
struct pfs_facet_columns {
	struct pfs_facet_column *columns;
	size_t n, capacity;
};
PFS_MUST_CHECK int pfs_facet_add_column(struct pfs_facet_columns *columns, const char *name,
					size_t len, bool is_number, bool is_number_only);
void pfs_facet_columns_clear(struct pfs_facet_columns *columns);
void pfs_facet_columns_finish(struct pfs_facet_columns *columns);

/* Makes the facet `where`. -ENOMEM. */
PFS_MUST_CHECK int pfs_facet_begin(struct pfs_facet **out);
#define PFS_FACET_PROBLEM 320

/* Gets the entry `name` of a facet that is not CHILDREN or NODES. Times are seen from now. -ENOENT:
 * there is no such column or end, or it is no operand, of which `problem` has one line ("" if there
 * is nothing to say); -ENAMETOOLONG: more conditions than a statement holds; -ENOMEM. */
PFS_MUST_CHECK int pfs_facet_step(struct pfs_facet **out, const struct pfs_facet *from,
				  const char *name, const struct pfs_facet_columns *columns,
				  char problem[PFS_FACET_PROBLEM]);
/* Get the child `ino` of a facet CHILDREN; and all children of it, or of the directory `dir`, as an
 * ANSWER. -ENOMEM. */
PFS_MUST_CHECK int pfs_facet_step_under(struct pfs_facet **out, const struct pfs_facet *from,
					uint64_t ino);
PFS_MUST_CHECK int pfs_facet_step_children(struct pfs_facet **out, const struct pfs_facet *from,
					   uint64_t dir);
/* Returns true for @values and @more-N: an answer with all that a listing may have cut off. */
bool pfs_facet_is_rest(const char *name);
/* Listings are bounded, so that programs that walk into them come to an end: those of `where` have the
 * columns, those of a column its values, those below a value the other columns.  Whatever lies further
 * down is found when it is named, and listings there have only what begins with @.  @nodes is in none, so
 * that no walk meets as many links as there are nodes for each of the columns. */
bool pfs_facet_lists_columns(const struct pfs_facet *facet);
bool pfs_facet_lists_column(const struct pfs_facet *facet, const char *name); /* if it does that at all */
bool pfs_facet_lists_values(const struct pfs_facet *facet); /* or children */

bool pfs_facet_is_same(const struct pfs_facet *a, const struct pfs_facet *b);

/* Statements, which the caller frees; NULL: no memory. The comments name their columns. */
char *pfs_facet_values(const struct pfs_facet *facet); /* value, nodes, values in all */
char *pfs_facet_children(const struct pfs_facet *facet, uint64_t dir); /* name, nodes, children in all */
char *pfs_facet_child(const struct pfs_facet *facet, uint64_t dir, const char *name); /* ino */
char *pfs_facet_nodes(const struct pfs_facet *facet); /* name, ino, path */

/* Makes the entry's name for a value, with a NUL: slashes, percent signs and control characters
 * become %XX, and so do an @ or dots that would mean something else. Returns the length; 0: it is
 * too long. */
size_t pfs_facet_encode(char out[PFS_FACET_NAME_MAX + 1], const struct pfs_query_value *value);

/* Writes bytes as a text literal of SQL. */
void pfs_sql_literal(FILE *out, const char *bytes, size_t len);

#endif
