/* SPDX-License-Identifier: MIT */
/* fs/query/facet.h - paths below `.query/where/` as statements: columns and values in turn, each
 * pair being one more condition.
 *
 * A facet is one allocated piece of memory and is freed with free(). Threads: any, since a facet is
 * never changed. Not handled here: running the statements; finding the node of `under/CHILD`. */
#ifndef PFS_FS_QUERY_FACET_H
#define PFS_FS_QUERY_FACET_H

#include <stdio.h>

#include "fs/query/output/answer.h"

#define PFS_FACET_VALUES_MAX 1000 /* values that a listing has at most, the most frequent first */
#define PFS_FACET_NAME_MAX   255

enum pfs_facet_kind {
	PFS_FACET_COLUMNS,  /* `where` itself, or a value: its entries are columns and ends */
	PFS_FACET_VALUES,   /* a column: its entries are the column's values */
	PFS_FACET_OPERANDS, /* COLUMN.gt and the like: its entries are any operands */
	PFS_FACET_CHILDREN, /* under: its entries are a directory's children */
	PFS_FACET_NODES,    /* @nodes, an end: a directory of links to the nodes found */
	PFS_FACET_ANSWER,   /* another end, or the rest of the values: a file */
};

struct pfs_facet {
	enum pfs_facet_kind kind;
	enum pfs_format format; /* of an ANSWER */
	/* The directory whose children are the entries of `under`; 0: the one that `.query` is
	 * in. */
	uint64_t under;
	unsigned op;		/* of VALUES and OPERANDS: facet.c's number of the comparison */
	bool is_number;		/* the column's values are numbers */
	bool is_number_only;	/* each of them is, without exception */
	unsigned n_conditions;
	size_t where_len; /* bytes of the condition */
	/* The condition in SQL; after its NUL the last column, quoted, or the ANSWER's
	 * statement. */
	char text[];
};

/* The columns of nodes. */
struct pfs_facet_column {
	char *name;
	/* is_number: its values are numbers. is_number_only: and a text in it, which an attribute
	 * may hold all the same, counts as no value. */
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

/* Gets the entry `name` of a facet that is not CHILDREN or NODES. A time such as '1 year ago' is
 * relative to now. -ENOENT: there is no such column or end, or the name is no operand; `problem` is
 * one line about that, or "". -ENAMETOOLONG: there are more conditions than a statement may have;
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_facet_step(struct pfs_facet **out, const struct pfs_facet *from,
				  const char *name, const struct pfs_facet_columns *columns,
				  char problem[PFS_FACET_PROBLEM]);
/* Get entries of a facet CHILDREN: that of the child `ino`, and that of all children, an ANSWER.
 * dir is the directory that `.query` is in. -ENOMEM. */
PFS_MUST_CHECK int pfs_facet_step_under(struct pfs_facet **out, const struct pfs_facet *from,
					uint64_t ino);
PFS_MUST_CHECK int pfs_facet_step_children(struct pfs_facet **out, const struct pfs_facet *from,
					   uint64_t dir);
/* Returns true for @values and @more-N: an answer with the values that a listing may lack. */
bool pfs_facet_is_rest(const char *name);
/* Listings end early, so that programs that walk into them come to an end: `where` lists the
 * columns, a column its values, and a value the other columns. Entries further down are found by
 * lookups, but listings there have only those that begin with @. No listing has @nodes, so that no
 * walk meets as many links as there are nodes, times the number of columns. */
bool pfs_facet_lists_columns(const struct pfs_facet *facet);
/* Returns true if a facet that lists columns lists this one. */
bool pfs_facet_lists_column(const struct pfs_facet *facet, const char *name);
bool pfs_facet_lists_values(const struct pfs_facet *facet); /* true: it lists values, or children */

bool pfs_facet_is_same(const struct pfs_facet *a, const struct pfs_facet *b);

/* Return statements, which the caller frees; NULL: no memory. Each comment names the columns of the
 * statement's rows. */
char *pfs_facet_values(const struct pfs_facet *facet); /* value, nodes, values in all */
char *pfs_facet_children(const struct pfs_facet *facet,
			 uint64_t dir); /* name, nodes, children in all */
char *pfs_facet_child(const struct pfs_facet *facet, uint64_t dir, const char *name); /* ino */
char *pfs_facet_nodes(const struct pfs_facet *facet); /* name, ino, path */

/* Makes the name of a value's entry, with a NUL: slashes, percent signs and control characters
 * become %XX, and so does an @ or a dot where it would have another meaning. Returns its length; 0:
 * it is too long. */
size_t pfs_facet_encode(char out[PFS_FACET_NAME_MAX + 1], const struct pfs_sql_value *value);

/* Writes bytes as a text literal of SQL. */
void pfs_sql_literal(FILE *out, const char *bytes, size_t len);

#endif
