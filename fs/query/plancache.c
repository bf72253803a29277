/* SPDX-License-Identifier: MIT */
/* A statement that was prepared and planned stays so with its connection, at rest, until it is
 * asked again or others take its place. What binding knows of side tables is compared with what
 * they are then; what is sooner, and where it runs, is decided anew. One that SQLite runs is
 * planned anew once a table of its has other rows. */
#include "fs/query/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/query/relational/relational.h"
#include "fs/tree/sides.h"
#include "meta/sql/sqlcache.h"

#define KEPT_MAX   32		       /* statements of a connection, */
#define KEPT_BYTES ((size_t)2 << 20)   /* of all, and */
#define ONE_BYTES  ((size_t)256 << 10) /* of one */
#define OTHER_SIZE 2		       /* so much more or less nodes make another plan */

struct pfs_cached_plan {
	struct pfs_cached_plan *next;
	size_t size;
	uint64_t top, n_nodes, sides_version; /* the query's, and its connection's */
	unsigned plan_ids;
	char **titles;
	size_t n_titles;
	struct pfs_edits text; /* as it was written */
	struct pfs_sql_cached *prepared;
	struct pfs_relational *relational; /* NULL: it is to be planned */
};

static void free_one(struct pfs_cached_plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; i < plan->n_titles; i++)
		free(plan->titles[i]);
	free(plan->titles);
	pfs_edits_finish(&plan->text);
	pfs_relational_free(plan->relational);
	pfs_sql_cached_free(plan->prepared);
	free(plan);
}

/* ---- those of a connection ---- */

static struct pfs_cached_plan *take_out(struct pfs_connection *connection,
					struct pfs_queries *queries, struct pfs_cached_plan **link)
{
	struct pfs_cached_plan *plan = *link;

	*link = plan->next;
	connection->n_plans--;
	connection->plan_bytes -= plan->size;
	queries->plans_kept--;
	queries->plans_bytes -= plan->size;
	return plan;
}

static void put_in(struct pfs_connection *connection, struct pfs_queries *queries,
		   struct pfs_cached_plan *plan)
{
	plan->next = connection->plans;
	connection->plans = plan;
	connection->n_plans++;
	connection->plan_bytes += plan->size;
	queries->plans_kept++;
	queries->plans_bytes += plan->size;
	while (connection->plans &&
	       (connection->n_plans > KEPT_MAX || connection->plan_bytes > KEPT_BYTES)) {
		struct pfs_cached_plan **last = &connection->plans;

		for (plan = connection->plans; plan->next; plan = plan->next)
			last = &plan->next;
		free_one(take_out(connection, queries, last));
	}
}

void pfs_plan_cache_clear(struct pfs_connection *connection, struct pfs_queries *queries)
{
	while (connection->plans)
		free_one(take_out(connection, queries, &connection->plans));
}

static struct pfs_cached_plan *find(const struct pfs_query *query)
{
	struct pfs_cached_plan **link = &query->connection->plans;

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

	return pfs_sides_are_same(query->queries->tree, id, comparing->version,
				  query->connection->sides_version);
}

static bool has_same_rows(const struct pfs_query *query, uint64_t version)
{
	struct comparing comparing = {query, version};

	return version == query->connection->sides_version ||
	       pfs_sql_each_wanted(query->connection->sql, is_same, &comparing);
}

/* SQLite's way over the nodes goes by how many there are. */
static bool is_of_such_a_tree(const struct pfs_cached_plan *plan, const struct pfs_query *query)
{
	return plan->n_nodes <= query->n_nodes * OTHER_SIZE &&
	       query->n_nodes <= plan->n_nodes * OTHER_SIZE;
}

static void move_out(struct pfs_cached_plan *plan, struct pfs_query *query)
{
	query->titles = PFS_TAKE(plan->titles);
	query->n_titles = plan->n_titles;
	plan->n_titles = 0;
	query->text = plan->text;
	plan->text = (struct pfs_edits){.text = NULL};
	query->connection->plan_ids = plan->plan_ids;
}

bool pfs_plan_cache_take(struct pfs_query *query)
{
	struct pfs_relational *relational;
	struct pfs_cached_plan *plan;

	if (query->explains || query->is_planned || query->cached)
		return false;
	plan = find(query);
	if (!plan)
		return false;
	if (!is_of_such_a_tree(plan, query) ||
	    !pfs_sql_use_cached(query->connection->sql, plan->prepared)) {
		free_one(plan);
		return false;
	}
	query->cached = plan;
	move_out(plan, query);
	relational = PFS_TAKE(plan->relational);
	if (relational &&
	    (pfs_relational_is_bound(relational) || has_same_rows(query, plan->sides_version)) &&
	    pfs_relational_resume(relational, query))
		query->relational = relational;
	else
		pfs_relational_free(relational);
	query->queries->plans_found++;
	return true;
}

/* ---- caching ---- */

static bool can_be_kept(const struct pfs_query *query)
{
	return query->is_planned && !query->for_now && query->relational && !query->parts &&
	       !query->explains && !query->failure && !query->stop && !query->lost &&
	       !query->text.n && !query->connection->spent && !pfs_account_refusal(query->account);
}

static void move_in(struct pfs_cached_plan *plan, struct pfs_query *query)
{
	plan->titles = PFS_TAKE(query->titles);
	plan->n_titles = query->n_titles;
	query->n_titles = 0;
	plan->text = query->text;
	query->text = (struct pfs_edits){.text = NULL};
	plan->top = query->top;
	plan->n_nodes = query->n_nodes;
	plan->sides_version = query->connection->sides_version;
	plan->plan_ids = query->connection->plan_ids;
	plan->relational = PFS_TAKE(query->relational);
	pfs_relational_rest(plan->relational);
	plan->size = sizeof(*plan) + plan->text.capacity + pfs_sql_cached_size(plan->prepared) +
		     pfs_relational_memory(plan->relational);
}

void pfs_plan_cache_give(struct pfs_query *query)
{
	struct pfs_cached_plan *plan = PFS_TAKE(query->cached);

	if (query->connection && query->is_planned)
		query->queries->plans_made += !plan;
	if (!query->connection || !can_be_kept(query)) {
		free_one(plan);
		return;
	}
	if (!plan)
		plan = calloc(1, sizeof(*plan));
	if (!plan || pfs_sql_cache(query->connection->sql, &plan->prepared, query->text.text,
				   query->text.len)) {
		free_one(plan);
		return;
	}
	move_in(plan, query);
	if (plan->size > ONE_BYTES)
		free_one(plan);
	else
		put_in(query->connection, query->queries, plan);
}

void pfs_queries_plans(struct pfs_queries *queries, struct pfs_plan_counts *counts)
{
	*counts = (struct pfs_plan_counts){queries->plans_made, queries->plans_found,
					   queries->plans_kept, queries->plans_bytes};
}
