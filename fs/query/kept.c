/* SPDX-License-Identifier: MIT */
/* A statement that was prepared and planned stays so with its connection, at rest, until it is asked again or others take
 * its place. What binding knows of side tables is compared with what they are then; what is sooner, and where it runs, is
 * decided anew. One that SQLite runs is planned anew once a table of its has other rows. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/parts/parts.h"
#include "fs/query/relational/relational.h"
#include "fs/tree/sides.h"
#include "meta/sql/sqlkept.h"
#include "meta/sql/sqlside.h"

#define KEPT_MAX   32		      /* statements of a connection, */
#define KEPT_BYTES ((size_t)2 << 20)  /* of all, and */
#define ONE_BYTES  ((size_t)256 << 10) /* of one */
#define OTHER_SIZE 2 /* so much more or less nodes make another plan */

struct pfs_kept {
	struct pfs_kept *next;
	size_t size;
	uint64_t top, n_nodes, sides_version; /* the query's, and its connection's */
	unsigned plan_ids;
	char **titles;
	size_t n_titles;
	struct pfs_edits text; /* as it was written */
	struct pfs_sql_kept *prepared;
	struct pfs_relational *relational; /* NULL: it is to be planned */
};

static void free_one(struct pfs_kept *kept)
{
	if (!kept)
		return;
	for (size_t i = 0; i < kept->n_titles; i++)
		free(kept->titles[i]);
	free(kept->titles);
	pfs_edits_finish(&kept->text);
	pfs_relational_free(kept->relational);
	pfs_sql_kept_free(kept->prepared);
	free(kept);
}

/* ---- those of a connection ---- */

static struct pfs_kept *take_out(struct pfs_connection *connection, struct pfs_queries *queries, struct pfs_kept **link)
{
	struct pfs_kept *kept = *link;

	*link = kept->next;
	connection->n_kept--;
	connection->kept_bytes -= kept->size;
	queries->plans_kept--;
	queries->plans_bytes -= kept->size;
	return kept;
}

static void put_in(struct pfs_connection *connection, struct pfs_queries *queries, struct pfs_kept *kept)
{
	kept->next = connection->kept;
	connection->kept = kept;
	connection->n_kept++;
	connection->kept_bytes += kept->size;
	queries->plans_kept++;
	queries->plans_bytes += kept->size;
	while (connection->kept && (connection->n_kept > KEPT_MAX || connection->kept_bytes > KEPT_BYTES)) {
		struct pfs_kept **last = &connection->kept;

		for (kept = connection->kept; kept->next; kept = kept->next)
			last = &kept->next;
		free_one(take_out(connection, queries, last));
	}
}

void pfs_kept_forget(struct pfs_connection *connection, struct pfs_queries *queries)
{
	while (connection->kept)
		free_one(take_out(connection, queries, &connection->kept));
}

static struct pfs_kept *find(const struct pfs_query *query)
{
	struct pfs_kept **link = &query->connection->kept;

	while (*link && ((*link)->top != query->top || (*link)->text.len != query->len ||
			 memcmp((*link)->text.text, query->sql, query->len) != 0))
		link = &(*link)->next;
	return *link ? take_out(query->connection, query->queries, link) : NULL;
}

/* ---- taken up again ---- */

struct comparing {
	const struct pfs_query *query;
	uint64_t version;
};

static bool is_same(void *arg, uint32_t id)
{
	const struct comparing *comparing = arg;
	const struct pfs_query *query = comparing->query;

	return pfs_sides_are_same(query->queries->tree, id, comparing->version, query->connection->sides_version);
}

static bool has_same_rows(const struct pfs_query *query, uint64_t version)
{
	struct comparing comparing = {query, version};

	return version == query->connection->sides_version ||
	       pfs_sql_each_wanted(query->connection->sql, is_same, &comparing);
}

/* SQLite's way over the nodes goes by how many there are. */
static bool is_of_such_a_tree(const struct pfs_kept *kept, const struct pfs_query *query)
{
	return kept->n_nodes <= query->n_nodes * OTHER_SIZE && query->n_nodes <= kept->n_nodes * OTHER_SIZE;
}

static void move_out(struct pfs_kept *kept, struct pfs_query *query)
{
	query->titles = PFS_TAKE(kept->titles);
	query->n_titles = kept->n_titles;
	kept->n_titles = 0;
	query->text = kept->text;
	kept->text = (struct pfs_edits){.text = NULL};
	query->connection->plan_ids = kept->plan_ids;
}

bool pfs_kept_take(struct pfs_query *query)
{
	struct pfs_relational *relational;
	struct pfs_kept *kept;

	if (query->explains || query->is_planned || query->kept)
		return false;
	kept = find(query);
	if (!kept)
		return false;
	if (!is_of_such_a_tree(kept, query) || !pfs_sql_use(query->connection->sql, kept->prepared)) {
		free_one(kept);
		return false;
	}
	query->kept = kept;
	move_out(kept, query);
	relational = PFS_TAKE(kept->relational);
	if (relational && (pfs_relational_is_bound(relational) || has_same_rows(query, kept->sides_version)) &&
	    pfs_relational_resume(relational, query))
		query->relational = relational;
	else
		pfs_relational_free(relational);
	query->queries->plans_found++;
	return true;
}

/* ---- kept ---- */

static bool can_be_kept(const struct pfs_query *query)
{
	return query->is_planned && query->relational && !query->parts && !query->explains && !query->failure &&
	       !query->stop && !query->lost && !query->text.n && !query->connection->spent &&
	       !pfs_account_refusal(query->account);
}

static void move_in(struct pfs_kept *kept, struct pfs_query *query)
{
	kept->titles = PFS_TAKE(query->titles);
	kept->n_titles = query->n_titles;
	query->n_titles = 0;
	kept->text = query->text;
	query->text = (struct pfs_edits){.text = NULL};
	kept->top = query->top;
	kept->n_nodes = query->n_nodes;
	kept->sides_version = query->connection->sides_version;
	kept->plan_ids = query->connection->plan_ids;
	kept->relational = PFS_TAKE(query->relational);
	pfs_relational_rest(kept->relational);
	kept->size = sizeof(*kept) + kept->text.capacity + pfs_sql_kept_size(kept->prepared) +
		     pfs_relational_memory(kept->relational);
}

void pfs_kept_give(struct pfs_query *query)
{
	struct pfs_kept *kept = PFS_TAKE(query->kept);

	if (query->connection && query->is_planned)
		query->queries->plans_made += !kept;
	if (!query->connection || !can_be_kept(query)) {
		free_one(kept);
		return;
	}
	if (!kept)
		kept = calloc(1, sizeof(*kept));
	if (!kept || pfs_sql_keep(query->connection->sql, &kept->prepared, query->text.text, query->text.len)) {
		free_one(kept);
		return;
	}
	move_in(kept, query);
	if (kept->size > ONE_BYTES)
		free_one(kept);
	else
		put_in(query->connection, query->queries, kept);
}

void pfs_queries_plans(struct pfs_queries *queries, struct pfs_plan_counts *counts)
{
	*counts = (struct pfs_plan_counts){queries->plans_made, queries->plans_found, queries->plans_kept,
					   queries->plans_bytes};
}
