/* SPDX-License-Identifier: MIT */
/* fs/query/internal.h - what the files behind fs/query/query.h share: query.c and prepare.c
 * (statements), hold.c and frozen.c (the tree as a statement sees it), connections.c (connections
 * of SQLite), columns.c (which columns `nodes` has), attr_visibility.c (which attributes a viewer
 * sees), nodes.c (rows of `nodes`), gather.c (values of rows), push_plan.c and push.c (conditions
 * that the image answers), functions.c, nodes_at.c (rows of the past), owners.c, patterns.c,
 * errors.c, plan.c. */
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
	const char *declared; /* its SQL type */
	enum pfs_node_kind kind;
	enum pfs_field field;
	enum pfs_attr_type type; /* an attribute's declared type */
	const char *attr;	 /* an attribute's name, without "user."; owned by the table */
	size_t attr_len;
};

/* Returns true for the attribute in which primefs dupes keeps a file's hash. Statements cannot set
 * that column, and the operators do not have it. */
static inline bool pfs_node_column_is_hash(const struct pfs_node_column *column)
{
	return column->kind == PFS_NODE_ATTR && column->attr_len == sizeof(PFS_HASH_NAME) - 1 &&
	       memcmp(column->attr, PFS_HASH_NAME, column->attr_len) == 0;
}

/* Says which attributes a viewer sees: shown[i] is that of the i-th of n names; NULL: all. */
struct pfs_attr_visibility {
	bool *shown;
	uint64_t n;
};

/* The columns of `nodes` at the time when a connection was made. */
struct pfs_node_table {
	struct pfs_node_column *columns;
	size_t n, capacity;
	struct pfs_attr_visibility attrs; /* owned */
	uint64_t n_names; /* how many attributes there were at that time */
	char *declaration; /* the CREATE TABLE statement */
	bool is_full;	   /* there are more attributes than can be columns */
};

/* Makes the columns for a viewer who sees these attributes. -ENOMEM; -EAGAIN: there are more
 * attributes than attrs->n by now. */
PFS_MUST_CHECK int pfs_node_table_create(struct pfs_node_table **out, struct pfs_tree *tree,
					 const struct pfs_attr_visibility *attrs);
void pfs_node_table_destroy(struct pfs_node_table *table); /* NULL is allowed */
extern const int pfs_node_ino; /* the number of the column `ino` */

/* ---- attr_visibility.c: a viewer sees an attribute if a node has it that he sees and may read
 * ---- */

struct pfs_attr_visibilities; /* results for the viewers who asked last */
PFS_MUST_CHECK int pfs_attr_visibilities_create(struct pfs_attr_visibilities **out);
void pfs_attr_visibilities_destroy(
	struct pfs_attr_visibilities *visibilities); /* NULL is allowed */
/* Finds which attributes the query's viewer sees. The caller frees out->shown, which is not NULL.
 * The tree is not held. */
PFS_MUST_CHECK int pfs_attr_visibility_find(struct pfs_query *query,
					    struct pfs_attr_visibility *out);

/* ---- owners.c: names of users and groups, looked up once and kept ---- */

struct pfs_owners;
PFS_MUST_CHECK int pfs_owners_create(struct pfs_owners **out);
void pfs_owners_destroy(struct pfs_owners *owners); /* NULL is allowed */
/* Sets values[i] to the name of ids[i], or to NULL; they are valid as long as `owners`.  -ENOMEM.
 */
PFS_MUST_CHECK int pfs_owners_names(struct pfs_owners *owners, struct pfs_sql_value *values,
				    const int64_t *ids, size_t n, bool groups);

/* ---- portions of an answer whose rows are columns of nodes ---- */

struct pfs_portion {
	size_t n; /* rows */
	const struct pfs_sql_column *columns; /* values by column of `nodes` */
	const int *of; /* by column of the statement: its column of `nodes` */
};

static inline void pfs_portion_value(const struct pfs_portion *part, size_t row, size_t column,
				     struct pfs_sql_value *out)
{
	const struct pfs_sql_column *values = &part->columns[part->of[column]];

	*out = (struct pfs_sql_value){.type = PFS_SQL_NULL};
	switch (values->kind) {
	case PFS_SQL_INTEGERS:
		if (values->integers[row] == PFS_SQL_NO_INTEGER)
			break;
		out->type = PFS_SQL_INTEGER;
		out->integer = values->integers[row];
		break;
	case PFS_SQL_BYTES:
		if (values->is_null && values->is_null[row])
			break;
		out->type = PFS_SQL_TEXT;
		out->bytes = values->bytes + values->offset[row];
		out->size = values->offset[row + 1] - values->offset[row];
		break;
	case PFS_SQL_VALUES:
		*out = values->values[row];
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
	struct pfs_sql_scan *spare; /* an ended scan, whose memory the next one uses; NULL: none */
	uint64_t sides_version; /* of the side tables that are declared in it; 0: none is */
	/* If it is limited: the viewer whose copies of side tables it has. Owns its groups. */
	struct pfs_viewer viewer;
	struct pfs_account *account; /* of the statement that uses it; NULL: none does */
	bool spent;		/* it is not to be used again */
	bool plain_patterns;	/* it is for statements all of whose patterns are plain */
	unsigned plan_ids; /* ids of plans given out since the statement was prepared */
	struct pfs_cached_plan
		*plans; /* the plan cache: statements that may be asked again, the latest first */
	unsigned n_plans;
	size_t plan_bytes;
	struct pfs_connection *next; /* in the list of idle connections */
};

/* A statement that sees all nodes and a limited one never use the same connection, since SQLite
 * remembers which rows were made and how many changed. A connection's table says for which of the
 * two it is. */
#define PFS_SIDES_REFUSED 16

struct pfs_queries {
	struct pfs_tree *tree;
	struct pfs_owners *owners;
	struct pfs_attr_visibilities *attr_visibilities;
	pthread_mutex_t lock;
	pthread_mutex_t
		placing; /* of opening the placement, which starts a device; taken before lock */
	/* Not open until wanted. Set with both locks, so that either is enough to read it. */
	struct pfs_placement placement;
	struct pfs_kept_rates *rates;	 /* that estimates go by */
	struct pfs_side_entry *sides;	 /* relational/sidetable.h; protected by lock */
	uint64_t sides_made;		 /* entries made by reading all rows; protected by lock */
	/* Side tables that were too large to be read into memory, so that this is not tried again
	 * in vain; protected by lock, as n_sides_refused is. */
	struct pfs_side_refusal {
		uint32_t id; /* of the table; 0: none */
		uint64_t version, left; /* the table's version, and the statement's memory left */
	} sides_refused[PFS_SIDES_REFUSED];
	unsigned n_sides_refused; /* how many there ever were */
	_Atomic uint64_t operators_ns;		  /* for how long operators have run statements */
	_Atomic uint64_t plans_made, plans_found; /* statements prepared; found in a plan cache */
	_Atomic uint64_t plans_kept, plans_bytes; /* what all plan caches have now */
	struct pfs_connection *idle; /* the latest first; protected by lock */
	struct pfs_query *running;   /* queries with a connection; protected by lock */
	bool stopping;		     /* no query is to start any more; protected by lock */
};

/* What one planned scan of `nodes` has done. */
struct pfs_scan_record {
	char *pushed; /* "size >= 100, under(ino, 7)"; NULL: it has not started */
	const char *how;
	const char *sorted; /* "then sorted"; NULL: its rows were not sorted */
	struct pfs_scan_weighed weighed;
	uint64_t starts, estimated, selected, seen;
};

struct pfs_query {
	struct pfs_queries *queries;
	struct pfs_tree *tree; /* the tree that it reads: queries->tree, or the frozen one */
	struct pfs_tree *frozen; /* NULL: none */
	/* A frozen tree that is begun: it is the live tree at that moment, and is filled once the
	 * live one changes; NULL: not begun. */
	struct pfs_tree *still;
	struct pfs_account *frozen_account; /* the account that the frozen tree's bytes are on */
	struct pfs_frozen_wish frozen_wish; /* what a frozen tree has to have for the statement */
	struct pfs_attr_wish *frozen_attrs; /* the attributes in frozen_wish */
	size_t frozen_attrs_capacity;
	const char *lost; /* why a frozen tree is lacking or was given up; NULL: neither */
	struct pfs_connection *connection;
	uint64_t top; /* scope.ino */
	bool is_limited; /* the viewer does not see all nodes: scope.sees_all is false */
	struct pfs_viewer viewer;
	/* What the viewer sees at `epoch`, once the tree was held; NULL: everything. */
	struct pfs_visible *visible;

	const char *sql; /* the statement as it was written */
	size_t len;
	struct pfs_edits text; /* the statement with dates and the like as numbers */
	char **titles; /* titles of its columns, which SQLite made of `sql` */
	size_t n_titles;

	int64_t now; /* when it began, in nanoseconds: '1 year ago' is relative to it */
	uint64_t n_nodes; /* about how many nodes the tree has, for the planner */
	uint64_t epoch;
	bool bound;	 /* a scan or function has read the tree at `epoch`: no other may follow */
	unsigned holds;	 /* how many holds of the tree this query has, one in another */
	struct pfs_scan_watch watch; /* what its scans call from time to time */
	uint64_t held_ns; /* pfs_now_ns() when the lock was taken last */
	_Atomic bool stop;
	bool (*gone)(void *arg); /* of the scope */
	void *gone_arg;
	bool late;  /* its time limit has passed */
	bool is_by_operators; /* it changed rows of a side table by the operators, not by SQLite */
	bool is_index; /* it made or dropped a path index, and SQLite knows nothing of it */
	bool ended; /* no row is left, or it failed with `failure` */
	int failure;
	uint64_t changes;
	uid_t uid; /* owner of what it makes */
	gid_t gid;
	struct pfs_change_set set; /* the changes of nodes that it asks for */
	uint64_t set_charged;	   /* bytes of `set` that are on the account */
	char why[256];		/* why nodes cannot be changed so */
	struct pfs_account *account; /* counts SQLite's memory for it, and the buffers of scans */
	struct pfs_query *before, *after; /* in queries->running; protected by queries->lock */
	int64_t ticked_ns;   /* by the coarse clock: when it last looked whether to go on */
	int64_t deadline_ns; /* by that clock; 0: none */
	bool explains;
	struct pfs_scan_record *scans; /* by the plan's id */
	size_t n_scans, scans_capacity;

	struct pfs_cached_plan *cached; /* its entry in the plan cache; NULL: it came from none */
	bool is_planned; /* it has been prepared, and may be kept in the plan cache */
	bool for_now;	 /* its plan lacks a side table for the moment, and is not kept */
	struct pfs_relational *relational; /* relational/relational.h */
	struct pfs_portion_walk
		walk; /* of rows as they are, if it answers with those; else the portion has none */
	struct pfs_parts *parts; /* parts/parts.h; NULL: the statement has none */
	uint64_t piece; /* rows that it looks at in one hold of the tree; 0: it decides itself */

	struct pfs_attr_reader **attrs; /* by column, opened when needed; scans have copies */
	bool *attr_wanted;		/* by column: to be opened before the tree is held again */

	/* The path that a function last met, and its slot. */
	char *path;
	size_t path_len, path_capacity;
	uint32_t path_slot;
	bool path_known;
};

/* relational/placement.c: gets the placement, which decides where operators run; it is the
 * queries', and made at the first call. -ENOMEM. */
PFS_MUST_CHECK int pfs_queries_placement(struct pfs_queries *queries, struct pfs_placement **out);

/* Holds the tree that the statement reads. -EAGAIN: it has changed since the statement began;
 * -ENOMEM. After an error it is not held. */
PFS_MUST_CHECK int pfs_query_hold(struct pfs_query *query);
/* Sets query->visible to what the viewer sees in the tree as it is now. The tree is held, for
 * reading or writing. -ENOMEM. */
PFS_MUST_CHECK int pfs_query_look_around(struct pfs_query *query);
/* connections.c: enlist adds the query, which has a connection, to queries->running, which
 * pfs_queries_stop interrupts; strike takes it off. -EINTR: pfs_queries_stop was called before. */
PFS_MUST_CHECK int pfs_query_enlist(struct pfs_query *query);
void pfs_query_strike(struct pfs_query *query);

/* SQLite calls it between two steps; user is the query. Returns non-zero if the statement has to
 * end. */
int pfs_query_tick(void *user);
void pfs_query_release(struct pfs_query *query); /* ends one hold of the tree */
void pfs_query_let_go(struct pfs_query *query); /* at the end of a run: ends the hold, if any */
/* The function of query->watch; arg is the query. Looks at the clock and whether the client is
 * gone. If the tree has been held for some milliseconds, lets go of it for a moment, in which a
 * waiting writer gets it. -EINTR; -EAGAIN: the tree has changed. */
int pfs_query_look(void *arg);
/* What an operator's poll returns (gpu/run.h) to the thread that runs the statement. -EAGAIN: a
 * writer waits for the tree, and the operator has not paused for it. */
PFS_MUST_CHECK int pfs_query_poll(struct pfs_query *query);

/* Gets the reader of an attribute's column for one scan. -EAGAIN: it cannot be opened while the
 * tree is held, so the statement has to begin again. */
PFS_MUST_CHECK int pfs_query_attr(struct pfs_query *query, struct pfs_attr_reader **out,
				  size_t column);
void pfs_query_close_attrs(struct pfs_query *query);
/* Opens the attributes' readers of the last run anew, with present values. */
PFS_MUST_CHECK int pfs_query_reopen_attrs(struct pfs_query *query);

/* Returns the slot of the node that a value names, by path or ino; PFS_NO_SLOT: there is none, or
 * the viewer does not see it. The tree is held. */
uint32_t pfs_query_node(struct pfs_query *query, const struct pfs_sql_value *value);

/* ---- prepare.c ---- */

/* Prepares the query's text, with the side tables as they are at one moment, unless a kept plan has
 * it prepared. -EINVAL, and what SQLite says, in `problem`: it is no statement. */
PFS_MUST_CHECK int pfs_query_prepare_text(struct pfs_query *query, struct pfs_sql_problem *problem);
void pfs_query_forget_titles(struct pfs_query *query); /* frees the titles of the columns */

/* ---- frozen.c ---- */

/* Returns which columns a frozen tree needs to find out what the query's viewer sees. */
struct pfs_frozen_wish pfs_query_rights_wish(struct pfs_query *query);
/* Notes in query->frozen_wish what the statement, which is prepared, reads. -ENOMEM. */
PFS_MUST_CHECK int pfs_query_note_reads(struct pfs_query *query);
/* Begins to freeze the tree as it is now; pfs_query_freeze then fills that frozen tree. The tree is
 * not held. Errors are those of pfs_query_freeze, but the statement can go on after them. */
PFS_MUST_CHECK int pfs_query_begin_freeze(struct pfs_query *query);
/* As pfs_query_begin_freeze, but only if there seems to be memory for the frozen tree. */
PFS_MUST_CHECK int pfs_query_try_freeze(struct pfs_query *query);
/* Freezes the tree as it is now, or as it was at pfs_query_begin_freeze; from now on the statement
 * reads the frozen tree. The tree is not held. -EOPNOTSUPP: the statement reads a frozen tree
 * already; -ENOMEM; -EINTR; the store's errors. */
PFS_MUST_CHECK int pfs_query_freeze(struct pfs_query *query);
/* Closes the frozen tree at the statement's end, when nothing uses it any more. */
void pfs_query_thaw(struct pfs_query *query);
/* Returns true if the frozen tree was given up, and sets query->lost to the reason: the statement
 * has to end with -ENOMEM. */
bool pfs_query_is_lost(struct pfs_query *query);

/* ---- plancache.c: the plan cache keeps statements that were prepared and planned, for later
 * queries of the same text ---- */

/* Takes a statement of the same text and scope from the connection's plan cache. The query is then
 * prepared and, if query->relational is set, planned. Returns false if there is none that is still
 * valid. */
bool pfs_plan_cache_take(struct pfs_query *query);
/* Puts what the query, which is about to finish, has prepared and planned into the plan cache, if
 * that is worth it. */
void pfs_plan_cache_give(struct pfs_query *query);
/* Empties the connection's plan cache. */
void pfs_plan_cache_clear(struct pfs_connection *connection,
			  struct pfs_queries *queries);

/* ---- nodes.c, functions.c ---- */

extern const struct pfs_sql_source pfs_nodes_source;
void pfs_nodes_free_spare(struct pfs_connection *connection);
extern const struct pfs_sql_function pfs_tree_functions[];
extern const struct pfs_sql_table_function
	pfs_resolve_table; /* resolve(TEXT): its lines as paths */
extern const struct pfs_sql_table_function pfs_nodes_at_table, pfs_attrs_at_table; /* nodes_at.c */
extern const struct pfs_sql_table_function
	*const pfs_table_functions[]; /* connections.c: all of them; the last is NULL */

/* ---- change.c: changes of nodes by a statement ---- */

int pfs_nodes_update(void *user, const struct pfs_sql_update *update); /* pfs_sql_source's update */

/* Makes all the changes that the statement asked for, or none; the tree is not held. If a node is
 * the reason for an error, query->why says which and why. -EAGAIN: one of the nodes has changed
 * since the statement read it, and this is not the last run. */
PFS_MUST_CHECK int pfs_nodes_change(struct pfs_query *query, bool is_last);

/* ---- patterns.c ---- */

/* Returns true if the text has LIKE or GLOB, each with a literal whose only wildcard is its end. */
bool pfs_patterns_are_plain(const char *sql, size_t len);

/* ---- in_texts.c ---- */

/* Returns true if the constraint, on a column of text, may come from `column IN (SELECT ...)`. */
bool pfs_is_selected_member(const struct pfs_query *query,
			    const struct pfs_sql_constraint *constraint);

/* ---- push_plan.c ---- */

enum { PFS_CALL_UNDER, PFS_CALL_CHILD_OF, PFS_CALL_ANCESTOR_OF }; /* of the source's functions */

/* Returns the table's column of that number; -1: that of the rowid. */
const struct pfs_node_column *pfs_push_column(const struct pfs_node_table *table,
					      int column);

/* The function `plan` of pfs_sql_source (meta/sql/sqlquery.h). */
void pfs_push_plan(void *user, struct pfs_sql_plan *plan);

/* ---- push.c ---- */

#define PFS_PREDICATES_MAX 136 /* two for each of 64 constraints; the scope's and the viewer's */

struct pfs_pushed {
	struct pfs_predicate predicates[PFS_PREDICATES_MAX];
	size_t n;
	bool nothing; /* no row can satisfy them */
	char *text[PFS_PREDICATES_MAX]; /* texts that predicates point to; owned */
	size_t n_text;
};
void pfs_pushed_finish(struct pfs_pushed *pushed);

/* Makes predicates of a scan's arguments, of the query's scope, and of what its viewer sees. The
 * tree is held. -ENOMEM. */
PFS_MUST_CHECK int pfs_push_arguments(struct pfs_query *query, struct pfs_pushed *pushed,
				      const struct pfs_sql_argument *arguments, size_t n);

/* ---- plan.c ---- */

/* pfs_plan_record notes that the scan with that plan's id began, its predicates, how many nodes it
 * selected, or the order in which it finds them (NULL: in no order); the tree is held.
 * pfs_plan_seen notes that rows of the scan were read. If there is no memory, they note nothing. */
void pfs_plan_record(struct pfs_query *query, unsigned id, const struct pfs_pushed *pushed,
		     size_t selected, const struct pfs_ordered *ordered);
void pfs_plan_seen(struct pfs_query *query, unsigned id, size_t rows);
void pfs_plan_finish(struct pfs_query *query);

/* ---- errors.c ---- */

/* Fills in *error from the connection's message, and adds advice. Returns `code`. */
int pfs_query_complain(const struct pfs_query *query, struct pfs_query_error *error, int code,
		       const struct pfs_sql_problem *problem);

#endif
