/* SPDX-License-Identifier: MIT */
/* The side tables that statements have in common. */
#include "fs/query/relational/sidetable_impl.h"

#include "base/cleanup.h"
#include "fs/query/sides.h"
#include "fs/tree/sides.h"
#include "meta/sql/sqlside.h"

#define KEPT_MAX 8 /* tables that nobody uses */

static const struct pfs_sql_side *find_side(struct pfs_query *query, const char *name)
{
	size_t n;
	const struct pfs_sql_side *sides = pfs_sql_sides(query->connection->sql, &n);

	for (size_t i = 0; i < n; i++) {
		if (pfs_side_is_named(sides[i].name, name))
			return sides[i].declared ? &sides[i] : NULL;
	}
	return NULL;
}

/* The next of the table's, or, if id is 0, of any, from then on used; `after` is no longer. */
static struct pfs_side_entry *use_next(struct pfs_queries *queries, struct pfs_side_entry *after,
				       uint32_t id)
{
	struct pfs_side_entry *entry;
	PFS_LOCKED(&queries->lock);

	entry = after ? after->next : queries->sides;
	while (entry && id && entry->table.id != id)
		entry = entry->next;
	if (entry)
		entry->users++;
	if (after)
		after->users--;
	return entry;
}

/* Asks without the lock: versions may wait for a commit. */
static struct pfs_side_entry *find(struct pfs_query *query, const struct pfs_sql_side *side)
{
	uint64_t version = query->connection->sides_version;
	struct pfs_side_entry *entry = NULL;

	do
		entry = use_next(query->queries, entry, side->id);
	while (entry &&
	       !pfs_sides_are_same(query->queries->tree, side->id, entry->version, version));
	return entry;
}

/* Takes out the latest of an older version that nobody uses; NULL: there is none. */
static struct pfs_side_entry *take_older(struct pfs_query *query, const struct pfs_sql_side *side)
{
	struct pfs_side_entry **latest = NULL, *entry;
	PFS_LOCKED(&query->queries->lock);

	for (struct pfs_side_entry **link = &query->queries->sides; *link; link = &(*link)->next) {
		entry = *link;
		if (entry->table.id == side->id && !entry->users &&
		    entry->version < query->connection->sides_version &&
		    (!latest || entry->version > (*latest)->version))
			latest = link;
	}
	if (!latest)
		return NULL;
	entry = *latest;
	*latest = entry->next;
	entry->users = 1;
	return entry;
}

static bool is_in(const struct pfs_side_entry *first, const struct pfs_side_entry *end, uint32_t id)
{
	while (first != end && first->table.id != id)
		first = first->next;
	return first != end;
}

/* Finds those of tables of which more than rows has changed, and what is not in the list of changes
 * any more: nobody will want them. */
static void find_lost(struct pfs_queries *queries)
{
	struct pfs_side_entry *entry = NULL;

	while ((entry = use_next(queries, entry, 0)))
		if (!pfs_sides_is_known(queries->tree, entry->table.id, entry->version))
			atomic_store(&entry->is_lost, true);
}

/* Takes those out that nobody uses and that there is a later one of, that are lost, or too many;
 * the latest stand first. */
static struct pfs_side_entry *take_old(struct pfs_queries *queries)
{
	struct pfs_side_entry **link = &queries->sides, *old = NULL;
	unsigned n = 0;

	while (*link) {
		struct pfs_side_entry *entry = *link;

		if (entry->users ||
		    (!atomic_load(&entry->is_lost) &&
		     !is_in(queries->sides, entry, entry->table.id) && ++n <= KEPT_MAX)) {
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		entry->next = old;
		old = entry;
	}
	return old;
}

static void free_all(struct pfs_side_entry *entry)
{
	while (entry) {
		struct pfs_side_entry *next = entry->next;

		pfs_side_entry_free(entry);
		entry = next;
	}
}

/* ---- those that are too large ---- */

static bool get_refusal(struct pfs_side_refusal *out, struct pfs_queries *queries, uint32_t id)
{
	PFS_LOCKED(&queries->lock);

	for (size_t i = 0; i < PFS_SIDES_REFUSED; i++) {
		*out = queries->sides_refused[i];
		if (out->id == id)
			return true;
	}
	return false;
}

/* Returns true if a statement with about as much memory as this one was refused the same rows. */
static bool was_refused(struct pfs_query *query, uint32_t id)
{
	uint64_t left = pfs_account_left(query->account);
	struct pfs_side_refusal refusal;

	return get_refusal(&refusal, query->queries, id) && left - left / 8 <= refusal.left &&
	       pfs_sides_are_same(query->queries->tree, id, refusal.version,
				  query->connection->sides_version);
}

static void note_refusal(const struct pfs_query *query, uint32_t id, uint64_t left)
{
	struct pfs_queries *queries = query->queries;
	struct pfs_side_refusal *refusal;
	PFS_LOCKED(&queries->lock);

	refusal = &queries->sides_refused[queries->n_sides_refused++ % PFS_SIDES_REFUSED];
	for (size_t i = 0; i < PFS_SIDES_REFUSED; i++)
		if (queries->sides_refused[i].id == id)
			refusal = &queries->sides_refused[i];
	*refusal = (struct pfs_side_refusal){id, query->connection->sides_version, left};
}

/* Makes the entry from the store, or from SQLite's copy where that does not do. */
static int make(struct pfs_side_entry **out, struct pfs_query *query,
		const struct pfs_sql_side *side)
{
	uint64_t left = pfs_account_left(query->account);
	int error;

	if (was_refused(query, side->id))
		return -E2BIG;
	error = pfs_side_entry_make(out, query, side, false);
	if (error == -EOPNOTSUPP)
		error = pfs_side_entry_make(out, query, side, true);
	if (error == -E2BIG)
		note_refusal(query, side->id, left);
	return error;
}

/* One that nobody else has; or a new one. */
static int get_own(struct pfs_side_entry **out, struct pfs_query *query,
		   const struct pfs_sql_side *side)
{
	struct pfs_queries *queries = query->queries;
	struct pfs_side_entry *entry = take_older(query, side), *old;
	bool is_new;
	int error = 0;

	if (entry && pfs_side_entry_follow(entry, query))
		pfs_side_entry_free(PFS_TAKE(entry));
	is_new = !entry;
	if (is_new)
		error = make(&entry, query, side);
	if (error)
		return error;
	*out = entry;
	find_lost(queries);
	{
		PFS_LOCKED(&queries->lock);
		queries->sides_made += is_new;
		entry->next = queries->sides;
		queries->sides = entry;
		old = take_old(queries);
	}
	free_all(old);
	return 0;
}

int pfs_side_table_get(const struct pfs_side_table **out, struct pfs_query *query, const char *name)
{
	const struct pfs_sql_side *side = find_side(query, name);
	struct pfs_side_entry *entry;

	*out = NULL;
	if (!side)
		return -ENOENT;
	entry = find(query, side);
	if (!entry)
		PFS_TRY(get_own(&entry, query, side));
	*out = &entry->table;
	return 0;
}

void pfs_side_table_put(struct pfs_queries *queries, const struct pfs_side_table *table)
{
	struct pfs_side_entry *entry = (struct pfs_side_entry *)table;
	PFS_LOCKED(&queries->lock);

	entry->users--;
}

void pfs_side_tables_close(struct pfs_queries *queries)
{
	free_all(queries->sides);
	queries->sides = NULL;
}
