/* SPDX-License-Identifier: MIT */
/* Connections, which statements run on: one each, kept for the next when it is done, since opening
 * one takes longer than many a statement. */
#include "fs/query/sides.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/query/relational/kept_rates.h"
#include "fs/query/relational/sidetable.h"

#define IDLE_CONNECTIONS 4

static void close_connection(struct pfs_connection *connection, struct pfs_queries *queries)
{
	if (!connection)
		return;
	pfs_plan_cache_clear(connection, queries);
	pfs_sql_close(connection->sql);
	pfs_nodes_free_spare(connection);
	pfs_node_table_destroy(connection->table);
	free((gid_t *)connection->viewer.groups);
	free(connection);
}

const struct pfs_sql_table_function *const pfs_table_functions[] = {
	&pfs_resolve_table, &pfs_nodes_at_table, &pfs_attrs_at_table, NULL};

static int open_connection(struct pfs_connection **out, struct pfs_queries *queries,
			   const struct pfs_attr_visibility *attrs, bool plain_patterns)
{
	struct pfs_connection *connection = calloc(1, sizeof(*connection));
	struct pfs_sql_options options = {
		.source = &pfs_nodes_source,
		.functions = pfs_tree_functions,
		.tables = pfs_table_functions,
		.tick = pfs_query_tick,
		.plain_patterns = plain_patterns,
	};
	int error;

	*out = NULL;
	if (!connection)
		return -ENOMEM;
	connection->plain_patterns = plain_patterns;
	error = pfs_node_table_create(&connection->table, queries->tree, attrs);
	if (!error) {
		options.declaration = connection->table->declaration;
		error = pfs_sql_open(&connection->sql, &options);
	}
	if (error)
		close_connection(connection, queries);
	else
		*out = connection;
	return error;
}

static bool is_for(const struct pfs_connection *connection, const struct pfs_attr_visibility *attrs,
		   uint64_t n_names)
{
	const struct pfs_attr_visibility *its = &connection->table->attrs;

	if (connection->table->n_names != n_names || !its->shown != !attrs->shown)
		return false;
	return !attrs->shown || (its->n == attrs->n &&
				 memcmp(its->shown, attrs->shown, attrs->n * sizeof(bool)) == 0);
}

static struct pfs_connection *
take_idle(struct pfs_queries *queries, const struct pfs_attr_visibility *attrs, bool plain_patterns)
{
	uint64_t n_names = pfs_attr_names_count(queries->tree);
	struct pfs_connection **link = &queries->idle, *connection;
	PFS_LOCKED(&queries->lock);

	while (*link &&
	       ((*link)->plain_patterns != plain_patterns || !is_for(*link, attrs, n_names)))
		link = &(*link)->next;
	connection = *link;
	if (connection)
		*link = connection->next;
	return connection;
}

static bool is_of(const struct pfs_connection *connection, const struct pfs_viewer *viewer)
{
	const struct pfs_viewer *its = &connection->viewer;

	return its->uid == viewer->uid && its->gid == viewer->gid &&
	       its->n_groups == viewer->n_groups &&
	       (!viewer->n_groups ||
		memcmp(its->groups, viewer->groups, viewer->n_groups * sizeof(gid_t)) == 0);
}

/* What one viewer's statements have filled no other one's find. */
static int give_to(struct pfs_connection *connection, const struct pfs_viewer *viewer,
		   struct pfs_queries *queries)
{
	gid_t *groups = malloc((viewer->n_groups + 1) * sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	if (viewer->n_groups)
		memcpy(groups, viewer->groups, viewer->n_groups * sizeof(*groups));
	free((gid_t *)connection->viewer.groups);
	connection->viewer = *viewer;
	connection->viewer.groups = groups;
	connection->sides_version = 0;
	pfs_plan_cache_clear(connection, queries);
	return 0;
}

int pfs_connection_get(struct pfs_connection **out, struct pfs_queries *queries,
		       const struct pfs_attr_visibility *attrs, bool plain_patterns,
		       const struct pfs_viewer *viewer)
{
	int error = 0;

	*out = take_idle(queries, attrs, plain_patterns);
	if (!*out)
		PFS_TRY(open_connection(out, queries, attrs, plain_patterns));
	if (viewer && !is_of(*out, viewer))
		error = give_to(*out, viewer, queries);
	if (error)
		close_connection(PFS_TAKE(*out), queries);
	return error;
}

/* The one idle for longest of more than may be, taken out; or NULL.  Each kind has its own share,
 * so that one does not drive out the other.  The lock is held. */
static struct pfs_connection *take_surplus(struct pfs_queries *queries,
					   const struct pfs_connection *like)
{
	struct pfs_connection **link, **last = NULL, *surplus;
	unsigned n = 0;

	for (link = &queries->idle; *link; link = &(*link)->next) {
		if (!(*link)->table->attrs.shown != !like->table->attrs.shown ||
		    (*link)->plain_patterns != like->plain_patterns)
			continue;
		last = link;
		n++;
	}
	if (n <= IDLE_CONNECTIONS)
		return NULL;
	surplus = *last;
	*last = surplus->next;
	return surplus;
}

void pfs_connection_put(struct pfs_queries *queries, struct pfs_connection *connection)
{
	struct pfs_connection *closed = connection;

	if (!connection)
		return;
	connection->account = NULL;
	/* when memory is scarce nobody's copies of side tables are kept for the next statement */
	connection->spent |= !pfs_sql_rest(connection->sql) || pfs_accounts_crowded();
	if (!connection->spent) {
		PFS_LOCKED(&queries->lock);
		connection->next = queries->idle;
		queries->idle = connection;
		closed = take_surplus(queries, connection);
	}
	close_connection(closed, queries);
}

/* ---- all at once ---- */

int pfs_query_enlist(struct pfs_query *query)
{
	struct pfs_queries *queries = query->queries;
	PFS_LOCKED(&queries->lock);

	if (queries->stopping)
		return -EINTR;
	query->after = queries->running;
	if (query->after)
		query->after->before = query;
	queries->running = query;
	return 0;
}

void pfs_query_strike(struct pfs_query *query)
{
	struct pfs_queries *queries = query->queries;
	PFS_LOCKED(&queries->lock);

	if (query->before)
		query->before->after = query->after;
	else if (queries->running == query)
		queries->running = query->after;
	if (query->after)
		query->after->before = query->before;
}

void pfs_queries_measure(struct pfs_queries *queries, unsigned delay_ms)
{
	pfs_kept_rates_measure(queries->rates, delay_ms);
}

void pfs_queries_rates(struct pfs_queries *queries, struct pfs_rates *rates)
{
	pfs_kept_rates_get(queries->rates, rates);
}

void pfs_queries_stop(struct pfs_queries *queries)
{
	if (!queries)
		return;
	PFS_LOCKED(&queries->lock);

	queries->stopping = true;
	for (struct pfs_query *query = queries->running; query; query = query->after)
		pfs_query_interrupt(query);
}

int pfs_queries_open(struct pfs_queries **out, struct pfs_tree *tree)
{
	struct pfs_queries *queries = calloc(1, sizeof(*queries));
	int error;

	*out = NULL;
	if (!queries)
		return -ENOMEM;
	queries->tree = tree;
	(void)pthread_mutex_init(&queries->lock, NULL);
	(void)pthread_mutex_init(&queries->placing, NULL);
	error = pfs_owners_create(&queries->owners);
	if (!error)
		error = pfs_kept_rates_open(&queries->rates);
	if (!error)
		error = pfs_attr_visibilities_create(&queries->attr_visibilities);
	if (error)
		pfs_queries_close(queries);
	else
		*out = queries;
	return error;
}

void pfs_queries_close(struct pfs_queries *queries)
{
	if (!queries)
		return;
	while (queries->idle) {
		struct pfs_connection *connection = queries->idle;

		queries->idle = connection->next;
		close_connection(connection, queries);
	}
	pfs_side_tables_close(queries);
	pfs_placement_close(&queries->placement);
	pfs_kept_rates_close(queries->rates);
	pfs_owners_destroy(queries->owners);
	pfs_attr_visibilities_destroy(queries->attr_visibilities);
	(void)pthread_mutex_destroy(&queries->lock);
	(void)pthread_mutex_destroy(&queries->placing);
	free(queries);
}

