/* SPDX-License-Identifier: MIT */
/* fs/query/internal.h - what the files behind fs/query/query.h share: query.c (statements), hold.c
 * and frozen.c (the tree as a statement sees it), connections.c (what statements run on), columns.c
 * (which columns `nodes` has), attr_visibility.c (and for whom), nodes.c (its rows), gather.c
 * (their values), push.c (conditions that the image answers), functions.c, nodes_at.c (rows of the
 * past), owners.c, patterns.c, errors.c, plan.c. */
#ifndef PFS_FS_QUERY_INTERNAL_H
#define PFS_FS_QUERY_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "fs/query/edits.h"
#include "fs/query/query.h"
#include "fs/query/relational/placement.h"
#include "fs/query/times/times.h"
#include "fs/attr/attrcolumn.h"
#include "fs/attr/hash.h"
#include "fs/change/change.h"
#include "fs/nodes/ordered.h"
#include "fs/nodes/visible.h"
#include "fs/tree/frozen.h"
#include "meta/sql/sqlquery.h"

/* ---- columns.c ---- */

struct pfs_node_column {
	const char *name;
	const char *declared; /* type */
	enum pfs_node_kind kind;
	enum pfs_field field;
	enum pfs_attr_type type; /* of an attribute: what it is declared as */
	const char *attr;	 /* its name, without "user."; the table's */
	size_t attr_len;
};

/* Returns true for the attribute in which primefs dupes keeps a file's hash: nobody sets that column, and the operators do not have it. */
static inline bool pfs_node_column_is_hash(const struct pfs_node_column *column)
{
	return column->kind == PFS_NODE_ATTR && column->attr_len == sizeof(PFS_HASH_NAME) - 1 &&
	       memcmp(column->attr, PFS_HASH_NAME, column->attr_len) == 0;
}

/* Says which of the attributes' names, in their order, a viewer sees. shown NULL: all of them. */
struct pfs_attr_visibility {
	bool *shown;
	uint64_t n;
};

/* The columns of nodes when a connection was made. */
struct pfs_node_table {
	struct pfs_node_column *columns;
	size_t n, capacity;
	struct pfs_attr_visibility attrs; /* owned */
	uint64_t n_names; /* attributes that there were then */
	char *declaration; /* CREATE TABLE */
	bool is_full;	   /* there are more attributes than can be columns */
};

/* Makes the columns that a viewer of these attributes has.  -ENOMEM; -EAGAIN: there are more attributes than attrs->n by now. */
PFS_MUST_CHECK int pfs_node_table_create(struct pfs_node_table **out, struct pfs_tree *tree,
					 const struct pfs_attr_visibility *attrs);
void pfs_node_table_destroy(struct pfs_node_table *table); /* NULL is allowed */
extern const int pfs_node_ino; /* the number of the column `ino` */

/* ---- attr_visibility.c: a viewer sees the attributes that some node has which he sees and may read ---- */

struct pfs_attr_visibilities; /* of the viewers who asked last */
PFS_MUST_CHECK int pfs_attr_visibilities_create(struct pfs_attr_visibilities **out);
void pfs_attr_visibilities_destroy(struct pfs_attr_visibilities *visibilities); /* NULL is allowed */
/* Finds which attributes the query's viewer sees; the caller frees out->shown, which is not NULL.  The tree is not held. */
PFS_MUST_CHECK int pfs_attr_visibility_find(struct pfs_query *query, struct pfs_attr_visibility *out);

/* ---- owners.c: names of users and groups, looked up once and kept ---- */

struct pfs_owners;
PFS_MUST_CHECK int pfs_owners_create(struct pfs_owners **out);
void pfs_owners_destroy(struct pfs_owners *owners); /* NULL is allowed */
/* Sets values[i] to the name of ids[i], or to NULL; they are valid as long as `owners`.  -ENOMEM. */
PFS_MUST_CHECK int pfs_owners_names(struct pfs_owners *owners, struct pfs_sql_value *values,
				    const int64_t *ids, size_t n, bool groups);

/* ---- parts of rows as they are ---- */

struct pfs_portion {
	size_t n;
	const struct pfs_sql_column *columns; /* of nodes, */
	const int *of;			      /* by the statement's */
};

void pfs_query_take_value(struct pfs_query_value *out, const struct pfs_sql_value *value);

static inline void pfs_portion_value(const struct pfs_portion *part, size_t row, size_t column,
				  struct pfs_query_value *out)
{
	const struct pfs_sql_column *values = &part->columns[part->of[column]];

	*out = (struct pfs_query_value){.type = PFS_VALUE_NULL};
	switch (values->kind) {
	case PFS_SQL_INTEGERS:
		if (values->integers[row] == PFS_SQL_NO_INTEGER)
			break;
		out->type = PFS_VALUE_INT;
		out->integer = values->integers[row];
		break;
	case PFS_SQL_BYTES:
		if (values->is_null && values->is_null[row])
			break;
		out->type = PFS_VALUE_TEXT;
		out->bytes = values->bytes + values->offset[row];
		out->size = values->offset[row + 1] - values->offset[row];
		break;
	case PFS_SQL_VALUES:
		pfs_query_take_value(out, &values->values[row]);
		break;
	case PFS_SQL_ABSENT:
		break;
	}
}

/* A walk through portions, row by row: the portion at hand, and at which of its rows it is. */
struct pfs_portion_walk {
	struct pfs_portion portion;
	size_t row;
};

/* Goes to the portion's next row.  False: the row was the last. */
static inline bool pfs_portion_walk_on(struct pfs_portion_walk *walk)
{
	return ++walk->row < walk->portion.n;
}

/* ---- query.c ---- */

struct pfs_connection {
	struct pfs_sql *sql;
	struct pfs_node_table *table;
	struct pfs_sql_scan *spare; /* the scan before, for its memory; NULL: there is none */
	uint64_t sides_version; /* of the side tables that it knows; 0: of none */
	struct pfs_viewer viewer; /* whose copies of them it has, if it is limited; its groups are its own */
	struct pfs_account *account; /* of the statement that has it; NULL: none */
	bool spent;		/* not to be used again */
	bool plain_patterns;	/* it is for statements that have no others */
	unsigned plan_ids; /* given out since the statement was prepared */
	struct pfs_cached_plan
		*plans; /* the plan cache: statements that may be asked again, the latest first */
	unsigned n_plans;
	size_t plan_bytes;
	struct pfs_connection *next; /* of the idle ones */
};

/* Statements that see all and those that are limited never share one: SQLite remembers rows that were
 * made and how many changed.  A connection's table tells which it is of. */
#define PFS_SIDES_REFUSED 16

struct pfs_queries {
	struct pfs_tree *tree;
	struct pfs_owners *owners;
	struct pfs_attr_visibilities *attr_visibilities;
	pthread_mutex_t lock;
	struct pfs_placement placement;	 /* not open until wanted; opening is protected by lock */
	struct pfs_side_entry *sides;	 /* relational/sidetable.h; protected by lock */
	uint64_t sides_made;		 /* of them, from all rows; protected by lock */
	struct pfs_side_refusal {
		uint32_t id; /* of a table that is too large for them, 0: none, */
		uint64_t version, left; /* as it was then, for a statement that has so much memory left */
	} sides_refused[PFS_SIDES_REFUSED];
	unsigned n_sides_refused; /* ever; both protected by lock */
	_Atomic uint64_t plans_made, plans_found; /* of statements: prepared, and found as they were prepared before */
	_Atomic uint64_t plans_kept, plans_bytes; /* now */
	struct pfs_connection *idle; /* the latest first; protected by lock */
	struct pfs_query *running;   /* those that have a connection; protected by lock */
	bool stopping;		     /* none is to start; protected by lock */
};

/* Records what one scan of nodes, as planned, has done. */
struct pfs_scan_record {
	char *pushed; /* "size >= 100, under(ino, 7)"; NULL: not yet started */
	const char *how;
	const char *sorted; /* "then sorted"; NULL: not */
	struct pfs_scan_weighed weighed;
	uint64_t starts, estimated, selected, seen;
};

struct pfs_query {
	struct pfs_queries *queries;
	struct pfs_tree *tree; /* that it reads: the queries', or the frozen one */
	struct pfs_tree *frozen; /* NULL: none */
	struct pfs_tree *still; /* the live one as it was when they began; to be frozen once that changes; NULL: not begun */
	struct pfs_account *frozen_account; /* that its bytes are on */
	struct pfs_frozen_wish frozen_wish; /* what the statement as it was written reads, */
	struct pfs_attr_wish *frozen_attrs; /* with these */
	size_t frozen_attrs_capacity;
	const char *lost; /* why there is no frozen tree, or not any more; NULL: none is missed */
	struct pfs_connection *connection;
	uint64_t top; /* scope.ino */
	bool is_limited; /* to what the viewer sees; scope.sees_all is false */
	struct pfs_viewer viewer;
	struct pfs_visible *visible; /* that at `epoch`, once the tree was held; NULL: everything */

	const char *sql; /* as it was written */
	size_t len;
	struct pfs_edits text; /* with times made so */
	char **titles; /* of its columns, as SQLite has them of what was written */
	size_t n_titles;

	int64_t now; /* when it began, in nanoseconds: what '1 year ago' is seen from */
	uint64_t n_nodes; /* of the tree, about, for the planner */
	uint64_t epoch;
	bool bound;	 /* a scan or function has seen this epoch: there can be no other */
	unsigned holds;	 /* of the lock, by this query */
	struct pfs_scan_watch watch; /* its scans ask it */
	int64_t held_ms, looked_ms;  /* by the coarse clock: the lock taken last, and asked last */
	_Atomic bool stop;
	bool (*gone)(void *arg); /* the scope's */
	void *gone_arg;
	bool late;  /* stopped by its own clock */
	bool is_by_operators; /* rows of a side table were changed, and not by SQLite */
	bool is_index; /* it made or dropped a path index, and SQLite knows nothing of it */
	bool ended; /* no row is left, or it failed with `failure` */
	int failure;
	uint64_t changes;
	uid_t uid; /* of what it makes */
	gid_t gid;
	struct pfs_change_set set; /* what it asks of nodes */
	uint64_t set_charged;	   /* bytes of it that the account knows of */
	char why[256];		/* they cannot be changed so */
	struct pfs_account *account; /* what SQLite has for it, and the buffers of scans */
	struct pfs_query *before, *after; /* of those that run; protected by queries->lock */
	int64_t ticked_ns;   /* the coarse clock, when it was asked last whether to go on */
	int64_t deadline_ns; /* by that clock; 0: none */
	bool explains;
	struct pfs_scan_record *scans; /* by the plan's id */
	size_t n_scans, scans_capacity;

	struct pfs_cached_plan *cached; /* as which the connection had it; NULL: it was not kept */
	bool is_planned; /* it has been prepared, and may be kept */
	bool for_now;	 /* its plan lacks a table for the moment, and is not kept */
	struct pfs_relational *relational; /* relational/relational.h */
	struct pfs_portion_walk walk; /* of rows as they are, if it answers with those; else the portion has none */
	struct pfs_parts *parts; /* parts/parts.h; NULL: the statement has none */
	uint64_t piece; /* rows that it looks at before it lets go of the tree; 0: as it finds right */

	struct pfs_attr_reader **attrs; /* by column, as they are needed; scans have copies */
	bool *attr_wanted;		/* to be opened before the tree is held again */

	/* The path met last in a function, and what it is. */
	char *path;
	size_t path_len, path_capacity;
	uint32_t path_slot;
	bool path_known;
};

/* relational/placement.c: gets what decides where operators run, which the queries own; opens it if this is the first call.  -ENOMEM. */
PFS_MUST_CHECK int pfs_queries_placement(struct pfs_queries *queries, struct pfs_placement **out);

/* Holds the tree as the statement sees it.  -EAGAIN: it has changed since the statement began; -ENOMEM
 * (not held then). */
PFS_MUST_CHECK int pfs_query_hold(struct pfs_query *query);
/* Sets query->visible to what the viewer sees in the tree as it is now.  The tree is held, for reading or writing.  -ENOMEM. */
PFS_MUST_CHECK int pfs_query_look_around(struct pfs_query *query);
/* connections.c: enlist adds the query, which has a connection, to those that pfs_queries_stop interrupts; strike takes it off.
 * -EINTR: pfs_queries_stop was called before. */
PFS_MUST_CHECK int pfs_query_enlist(struct pfs_query *query);
void pfs_query_strike(struct pfs_query *query);

/* Looks between two steps of SQLite's whether the statement, which is `user`, has to end; returns not 0 if so. */
int pfs_query_tick(void *user);
void pfs_query_release(struct pfs_query *query);
void pfs_query_let_go(struct pfs_query *query); /* the end of a run */
/* Is query->watch's function, arg the query: looks at the clock and the client, and lets in between others have the tree who wait for it.
 * -EINTR; -EAGAIN. */
int pfs_query_look(void *arg);
/* Returns true if others wait for the tree, and the statement has held it for too long without a look. */
bool pfs_query_holds_long(const struct pfs_query *query);

/* Gets the reader of an attribute's column for one scan.  -EAGAIN: it cannot be opened while the tree is held; the statement begins
 * again. */
PFS_MUST_CHECK int pfs_query_attr(struct pfs_query *query, struct pfs_attr_reader **out,
				  size_t column);
void pfs_query_close_attrs(struct pfs_query *query);
/* Opens the attributes' readers of the run before anew, with the values of now. */
PFS_MUST_CHECK int pfs_query_reopen_attrs(struct pfs_query *query);

/* Returns the slot of the node that a value names, by path or ino; PFS_NO_SLOT: there is none, or the viewer does not see it.  The tree
 * is held. */
uint32_t pfs_query_node(struct pfs_query *query, const struct pfs_sql_value *value);

/* ---- frozen.c ---- */

/* Returns what is to be frozen of a tree to see what may be seen of it. */
struct pfs_frozen_wish pfs_query_rights_wish(struct pfs_query *query);
/* Notes what the statement, which is prepared, reads. -ENOMEM. */
PFS_MUST_CHECK int pfs_query_note_reads(struct pfs_query *query);
/* Begins to freeze the tree, which is not held, as it is now; freeze goes on from there.  Errors as freeze, but they do not end the
 * statement. */
PFS_MUST_CHECK int pfs_query_begin_freeze(struct pfs_query *query);
/* The same, only if there seems to be memory for the frozen tree. */
PFS_MUST_CHECK int pfs_query_try_freeze(struct pfs_query *query);
/* Freezes the tree, which is not held, as it is now, for the statement to read from now on.  -EOPNOTSUPP: it reads a frozen one;
 * -ENOMEM; -EINTR; the store's errors. */
PFS_MUST_CHECK int pfs_query_freeze(struct pfs_query *query);
/* Closes the frozen tree, at the statement's end: nothing of it is used any more. */
void pfs_query_thaw(struct pfs_query *query);
/* Returns true, with the reason in query->lost, if the frozen tree was given up: the statement has to end with -ENOMEM. */
bool pfs_query_is_lost(struct pfs_query *query);

/* ---- plancache.c: the plan cache: statements that were prepared and planned are kept for whoever
 * asks them again ---- */

/* Looks among those that the connection keeps for one of the same text and scope, and takes it: it is prepared then, and planned if
 * query->relational is there. Returns false if there is none that still holds. */
bool pfs_plan_cache_take(struct pfs_query *query);
/* Keeps what the query, which is about to finish, has prepared and planned, if that is worth it. */
void pfs_plan_cache_give(struct pfs_query *query);
void pfs_plan_cache_clear(struct pfs_connection *connection,
			  struct pfs_queries *queries); /* all of it */

/* ---- nodes.c, functions.c ---- */

extern const struct pfs_sql_source pfs_nodes_source;
void pfs_nodes_free_spare(struct pfs_connection *connection);
extern const struct pfs_sql_function pfs_tree_functions[];
extern const struct pfs_sql_table_function pfs_resolve_table; /* resolve(TEXT): its lines as paths */
extern const struct pfs_sql_table_function pfs_nodes_at_table, pfs_attrs_at_table; /* nodes_at.c */

/* ---- change.c: what a statement asks of nodes ---- */

int pfs_nodes_update(void *user, const struct pfs_sql_update *update); /* is pfs_sql_source's update */

/* Makes all the changes that the statement asked for, or none; the tree is not held.  If a node is the reason, query->why says
 * it.  -EAGAIN: one of the nodes has changed since, and this is not the last run. */
PFS_MUST_CHECK int pfs_nodes_change(struct pfs_query *query, bool is_last);

/* ---- patterns.c ---- */

/* Returns true if the text has LIKE or GLOB, each with a literal whose only wildcard is its end. */
bool pfs_patterns_are_plain(const char *sql, size_t len);

/* ---- in_texts.c ---- */

/* Returns true if the constraint of a column of text may be of IN with what is selected behind it.
 */
bool pfs_is_selected_member(const struct pfs_query *query,
			    const struct pfs_sql_constraint *constraint);

/* ---- push.c ---- */

#define PFS_PREDICATES_MAX 136 /* two for each of 64 constraints, the scope, what is seen */

enum { PFS_CALL_UNDER, PFS_CALL_CHILD_OF, PFS_CALL_ANCESTOR_OF }; /* of the source's functions */

const struct pfs_node_column *pfs_push_column(const struct pfs_node_table *table,
					      int column); /* -1: the rowid's */

/* Is pfs_sql_source's plan (meta/sql/sqlquery.h). */
void pfs_push_plan(void *user, struct pfs_sql_plan *plan);

struct pfs_pushed {
	struct pfs_predicate predicates[PFS_PREDICATES_MAX];
	size_t n;
	bool nothing; /* no row can be */
	char *text[PFS_PREDICATES_MAX]; /* that predicates point to */
	size_t n_text;
};
void pfs_pushed_finish(struct pfs_pushed *pushed);

/* Makes predicates of a scan's arguments, and of the query's scope and what its viewer sees.  The tree is held.  -ENOMEM. */
PFS_MUST_CHECK int pfs_push_arguments(struct pfs_query *query, struct pfs_pushed *pushed,
				      const struct pfs_sql_argument *arguments, size_t n);

/* ---- plan.c ---- */

/* record notes that a scan of that plan began, with which predicates, and how many nodes it selected or in which order it finds them
 * (NULL: in none); the tree is held.  seen notes that rows of it were read.  Without memory both note nothing. */
void pfs_plan_record(struct pfs_query *query, unsigned id, const struct pfs_pushed *pushed,
		     size_t selected, const struct pfs_ordered *ordered);
void pfs_plan_seen(struct pfs_query *query, unsigned id, size_t rows);
void pfs_plan_finish(struct pfs_query *query);

/* ---- errors.c ---- */

/* Fills in *error from what the connection says, with advice. */
int pfs_query_complain(const struct pfs_query *query, struct pfs_query_error *error, int code,
		       const struct pfs_sql_problem *problem);

#endif
