/* SPDX-License-Identifier: MIT */
/* The list of changes has first those that are committed, which are kept for readers that know only
 * what was before them; then those of the group that is being written; then those that are in no
 * group. */
#include "fs/tree/sides.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/journal/journal.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

#define KEPT_MAX ((size_t)4 << 20) /* bytes of changes that are committed */

#define CHAINS	   64	 /* of tables by their numbers */
#define TABLES_MAX 1024u /* of which something is known; all is forgotten where they are more */

struct change {
	struct change *next;
	_Atomic unsigned users;		/* the list, and who reads its rows without a lock */
	struct change *earlier, *later; /* of the same table; earlier is gone if `before` is not in
					   the list any more */
	uint64_t version; /* that it made */
	uint64_t before;  /* the version of the earlier one; 0: there was none */
	struct pfs_side_rows rows;
};

/* A table that has changed. */
struct table {
	struct table *next; /* of the chain */
	uint32_t id;
	uint64_t schema;  /* the version of its last change of more than rows; 0: there was none */
	uint64_t changed; /* the version of its last change, */
	struct change *last; /* which may have left the list, or was of more than rows: NULL */
};

struct pfs_sides {
	pthread_mutex_t change;	  /* held by whoever changes tables */
	pthread_rwlock_t
		reading; /* for writing while a change becomes visible; before the content lock */
	_Atomic uint64_t version;
	/* The list.  It grows under both locks; only the committer takes out of it, under
	 * `reading`. */
	struct change *first, *last;
	struct change *pending;	 /* the first that is not committed; NULL: none */
	struct table *tables[CHAINS]; /* as the list */
	size_t n_tables;
	struct table *touched; /* by the errand that is being written; the committer's */
	_Atomic uint64_t
		schema; /* the version that the last change made which was one of more than rows */
	uint64_t floor; /* what any table was before this version is not known; as `since` */
	uint64_t since; /* the list has all that came after this version; protected by `reading` */
	size_t kept;		 /* bytes of those before `pending`; the committer's */
	_Atomic uint64_t n_pending; /* rows that are not committed */
	uint64_t group; /* the version up to which the group goes; 0: none; the committer's */
};

static size_t cost(const struct change *change)
{
	return sizeof(*change) + change->rows.capacity;
}

static struct table *find_table(const struct pfs_sides *sides, uint32_t id)
{
	struct table *table = sides->tables[id % CHAINS];

	while (table && table->id != id)
		table = table->next;
	return table;
}

static void forget_chain(struct table **first)
{
	while (*first) {
		struct table *table = *first;

		*first = table->next;
		free(table);
	}
}

static void forget_tables(struct pfs_sides *sides)
{
	for (size_t i = 0; i < CHAINS; i++)
		forget_chain(&sides->tables[i]);
	sides->n_tables = 0;
}

/* The table's entry; it becomes *spare, which is taken then, if it has none.  The change lock and
 * `reading` are held. */
static struct table *get_table(struct pfs_sides *sides, uint32_t id, struct table **spare)
{
	struct table *table = find_table(sides, id);

	if (table)
		return table;
	table = PFS_TAKE(*spare);
	*table = (struct table){.next = sides->tables[id % CHAINS], .id = id};
	sides->tables[id % CHAINS] = table;
	sides->n_tables++;
	return table;
}

static void put_change(struct change *change)
{
	if (atomic_fetch_sub(&change->users, 1) > 1)
		return;
	pfs_side_rows_finish(&change->rows);
	free(change);
}

/* Puts each of a list, with no lock, as much memory may be freed. */
static void put_list(struct change *first)
{
	while (first) {
		struct change *change = first;

		first = change->next;
		put_change(change);
	}
}

/* ---- what the committer does ---- */

/* Nobody takes them out meanwhile, and what stands behind the last one is not looked at. */
static int write_up_to(const struct pfs_sides *sides, struct pfs_store *store, uint64_t version)
{
	const struct change *change = sides->pending;

	while (change) {
		PFS_TRY(pfs_store_write_rows(store, &change->rows));
		if (change->version == version)
			break;
		change = change->next;
	}
	return 0;
}

/* The group begins with what was pending before: if nothing was, `pending` is the first of them. */
static void cut(struct pfs_tree *tree)
{
	struct pfs_sides *sides = tree->sides;

	sides->group = sides->pending ? sides->last->version : 0;
}

static int write_group(struct pfs_tree *tree)
{
	const struct pfs_sides *sides = tree->sides;

	return sides->group ? write_up_to(sides, tree->store, sides->group) : 0;
}

/* Those up to the version are committed; `reading` is held for writing. */
static void settle(struct pfs_tree *tree, uint64_t version)
{
	struct pfs_sides *sides = tree->sides;

	pfs_parts_lock(tree);
	for (; sides->pending && sides->pending->version <= version;
	     sides->pending = sides->pending->next) {
		*pfs_parts_unreported(tree) -= (int64_t)cost(sides->pending);
		atomic_fetch_sub(&sides->n_pending, sides->pending->rows.n);
		sides->kept += cost(sides->pending);
	}
	pfs_parts_unlock(tree);
}

/* Moves the first of the list to those that are put once no lock is held. */
static void forget_first(struct pfs_sides *sides, struct change **forgotten)
{
	struct change *change = sides->first;
	struct table *table = find_table(sides, change->rows.table);

	if (table && table->last == change)
		table->last = NULL;
	sides->first = change->next;
	if (!sides->first)
		sides->last = NULL;
	sides->since = change->version;
	sides->kept -= cost(change);
	change->next = *forgotten;
	*forgotten = change;
}

static void done(struct pfs_tree *tree)
{
	struct pfs_sides *sides = tree->sides;
	struct change *forgotten = NULL;

	if (!sides->group)
		return;
	(void)pthread_rwlock_wrlock(&sides->reading);
	settle(tree, sides->group);
	pfs_parts_lock(tree); /* for cutting and adding; both look at the last */
	while (sides->kept > KEPT_MAX)
		forget_first(sides, &forgotten);
	pfs_parts_unlock(tree);
	(void)pthread_rwlock_unlock(&sides->reading);
	put_list(forgotten);
	sides->group = 0;
}

/* Nothing is known of tables that the errand has touched, or, if it does not say which these are,
 * of any.  Who reads older changes of theirs does not find them any more. */
static void forget_touched(struct pfs_sides *sides, struct change **forgotten, uint64_t version)
{
	bool is_all = !sides->touched || sides->n_tables > TABLES_MAX;

	while (sides->first && (is_all || sides->kept > KEPT_MAX))
		forget_first(sides, forgotten);
	if (is_all) {
		forget_tables(sides);
		sides->floor = sides->since = version;
	}
	while (sides->touched) {
		struct table *spare = sides->touched, *table;

		sides->touched = spare->next;
		table = get_table(sides, spare->id, &spare);
		table->schema = table->changed = version;
		table->last = NULL;
		free(spare);
	}
}

/* Commits an errand, which has written all rows that were pending: no change comes in between. */
static int commit_shown(struct pfs_tree *tree)
{
	struct pfs_sides *sides = tree->sides;
	struct change *forgotten = NULL;
	uint64_t version;
	int error;

	(void)pthread_rwlock_wrlock(&sides->reading);
	error = pfs_store_commit(tree->store, NULL);
	if (!error) {
		settle(tree, UINT64_MAX);
		version = atomic_load(&sides->version) + 1;
		pfs_parts_lock(tree);
		forget_touched(sides, &forgotten, version);
		pfs_parts_unlock(tree);
		atomic_store(&sides->schema, version);
		atomic_store(&sides->version, version);
	}
	(void)pthread_rwlock_unlock(&sides->reading);
	put_list(forgotten);
	return error;
}

static const struct pfs_part part = {.name = "side tables",
				     .cut = cut,
				     .write = write_group,
				     .done = done,
				     .commit = commit_shown};

/* ---- life ---- */

int pfs_sides_create(struct pfs_tree *tree)
{
	struct pfs_sides *sides = calloc(1, sizeof(*sides));

	if (!sides)
		return -ENOMEM;
	(void)pthread_mutex_init(&sides->change, NULL);
	(void)pthread_rwlock_init(&sides->reading, NULL);
	atomic_store(&sides->version, 1);
	atomic_store(&sides->schema, 1);
	sides->floor = sides->since = 1;
	tree->sides = sides;
	pfs_take_part(tree, &part);
	return 0;
}

void pfs_sides_destroy(struct pfs_tree *tree)
{
	struct pfs_sides *sides = tree->sides;

	if (!sides)
		return;
	put_list(sides->first);
	forget_tables(sides);
	forget_chain(&sides->touched);
	(void)pthread_rwlock_destroy(&sides->reading);
	(void)pthread_mutex_destroy(&sides->change);
	free(sides);
	tree->sides = NULL;
}

uint64_t pfs_sides_version(const struct pfs_tree *tree)
{
	return atomic_load(&tree->sides->version);
}

void pfs_sides_hold(struct pfs_tree *tree)
{
	(void)pthread_mutex_lock(&tree->sides->change);
}

void pfs_sides_release(struct pfs_tree *tree)
{
	(void)pthread_mutex_unlock(&tree->sides->change);
}

/* ---- reading ---- */

int pfs_sides_read(struct pfs_tree *tree, int (*read)(void *arg, struct pfs_store *store),
		   void *arg)
{
	int error;

	(void)pthread_rwlock_rdlock(&tree->sides->reading);
	error = read(arg, tree->store);
	(void)pthread_rwlock_unlock(&tree->sides->reading);
	return error;
}

uint64_t pfs_sides_schema(const struct pfs_tree *tree)
{
	return atomic_load(&tree->sides->schema);
}

/* The table's first change after that version; NULL: there is none, or it is not in the list. */
static struct change *first_after(const struct pfs_sides *sides, uint32_t id, uint64_t after)
{
	const struct table *table = find_table(sides, id);
	struct change *change = table ? table->last : NULL;

	while (change && change->before > after && change->before > sides->since)
		change = change->earlier;
	return change && change->version > after ? change : NULL;
}

/* Returns true if the list has all that changed of the table after that version. What was taken out
 * of it since may be of other tables. */
static bool is_known(const struct pfs_sides *sides, uint32_t id, uint64_t after)
{
	const struct table *table = find_table(sides, id);
	const struct change *change = first_after(sides, id, after);

	return after >= sides->floor && (!table || after >= table->schema) &&
	       (after >= sides->since || !table || table->changed <= after ||
		(change && change->before <= after));
}

bool pfs_sides_is_known(struct pfs_tree *tree, uint32_t table, uint64_t version)
{
	bool is;

	(void)pthread_rwlock_rdlock(&tree->sides->reading);
	is = is_known(tree->sides, table, version);
	(void)pthread_rwlock_unlock(&tree->sides->reading);
	return is;
}

bool pfs_sides_is_as_declared(struct pfs_tree *tree, uint32_t id, uint64_t version)
{
	const struct table *table;
	bool is;

	(void)pthread_rwlock_rdlock(&tree->sides->reading);
	table = find_table(tree->sides, id);
	is = version >= tree->sides->floor && (!table || version >= table->schema);
	(void)pthread_rwlock_unlock(&tree->sides->reading);
	return is;
}

struct rows {
	struct pfs_sides *sides;
	bool is_held; /* `reading` */
	int (*row)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n);
	void *arg;
};

/* The store's rows are settled, and the others are at hand. */
static void let_go(void *arg)
{
	struct rows *rows = arg;

	(void)pthread_rwlock_unlock(&rows->sides->reading);
	rows->is_held = false;
}

static int give_row(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	const struct rows *rows = arg;

	return rows->row(rows->arg, row, cells, n);
}

struct changes {
	struct change **list;
	size_t n, capacity;
};

/* `reading` is held. */
static int use(struct changes *out, struct change *change)
{
	PFS_TRY(pfs_grow(&out->list, &out->capacity, out->n + 1, sizeof(struct change *)));
	atomic_fetch_add(&change->users, 1);
	out->list[out->n++] = change;
	return 0;
}

static int use_pending(struct changes *out, const struct pfs_sides *sides, uint32_t table)
{
	for (struct change *change = sides->pending; change; change = change->next)
		if (change->rows.table == table)
			PFS_TRY(use(out, change));
	return 0;
}

static void put_changes(struct changes *changes)
{
	for (size_t i = 0; i < changes->n; i++)
		put_change(changes->list[i]);
	free(changes->list);
}

int pfs_sides_rows(struct pfs_tree *tree, uint32_t table, uint64_t version,
		   int (*row)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
		   int (*changed)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
		   void *arg)
{
	struct rows rows = {.sides = tree->sides, .is_held = true, .row = row, .arg = arg};
	struct changes pending = {.n = 0};
	int error;

	(void)pthread_rwlock_rdlock(&tree->sides->reading);
	error = is_known(tree->sides, table, version) && !first_after(tree->sides, table, version)
			? use_pending(&pending, tree->sides, table)
			: -EAGAIN;
	if (!error)
		error = pfs_store_scan_rows(tree->store, table, let_go, give_row, &rows);
	if (rows.is_held)
		let_go(&rows);
	for (size_t i = 0; i < pending.n && !error; i++)
		error = pfs_side_rows_each(&pending.list[i]->rows, changed, arg);
	put_changes(&pending);
	return error;
}

bool pfs_sides_are_same(struct pfs_tree *tree, uint32_t table, uint64_t version, uint64_t other)
{
	struct pfs_sides *sides = tree->sides;
	uint64_t after = PFS_MIN(version, other);
	const struct change *change;
	bool are;

	if (version == other)
		return true;
	(void)pthread_rwlock_rdlock(&sides->reading);
	change = first_after(sides, table, after);
	are = is_known(sides, table, after) &&
	      (!change || change->version > PFS_MAX(version, other));
	(void)pthread_rwlock_unlock(&sides->reading);
	return are;
}

uint64_t pfs_sides_distance(struct pfs_tree *tree, uint32_t table, uint64_t version, uint64_t most)
{
	struct pfs_sides *sides = tree->sides;
	uint64_t rows = 0;

	(void)pthread_rwlock_rdlock(&sides->reading);
	if (!is_known(sides, table, version))
		rows = most;
	for (const struct change *change = first_after(sides, table, version);
	     change && rows < most; change = change->later)
		rows += change->rows.n;
	(void)pthread_rwlock_unlock(&sides->reading);
	return PFS_MIN(rows, most);
}

static int use_between(struct changes *out, const struct pfs_sides *sides, uint32_t table,
		       uint64_t after, uint64_t up_to)
{
	if (!is_known(sides, table, after))
		return -ENOENT;
	for (struct change *change = first_after(sides, table, after);
	     change && change->version <= up_to; change = change->later)
		PFS_TRY(use(out, change));
	return 0;
}

int pfs_sides_between(struct pfs_tree *tree, uint32_t table, uint64_t after, uint64_t up_to,
		      int (*fn)(void *arg, const struct pfs_side_rows *rows), void *arg)
{
	struct changes between = {.n = 0};
	int error;

	(void)pthread_rwlock_rdlock(&tree->sides->reading);
	error = use_between(&between, tree->sides, table, after, up_to);
	(void)pthread_rwlock_unlock(&tree->sides->reading);
	for (size_t i = 0; i < between.n && !error; i++)
		error = fn(arg, &between.list[i]->rows);
	put_changes(&between);
	return error;
}

/* ---- changing ---- */

struct apart {
	struct pfs_sides *sides;
	int (*write)(void *arg, struct pfs_store *store);
	void *arg;
};

static int write_apart(void *arg, struct pfs_store *store)
{
	const struct apart *apart = arg;

	PFS_VERIFY_CHECK(!apart->sides->group);
	forget_chain(&apart->sides->touched); /* of one that came to nothing */
	PFS_TRY(write_up_to(apart->sides, store, UINT64_MAX));
	return apart->write(apart->arg, store);
}

int pfs_sides_touch(struct pfs_tree *tree, uint32_t table)
{
	struct table *touched = malloc(sizeof(*touched));

	if (!touched)
		return -ENOMEM;
	*touched = (struct table){.next = tree->sides->touched, .id = table};
	tree->sides->touched = touched;
	return 0;
}

int pfs_sides_commit(struct pfs_tree *tree, uint64_t bytes,
		     int (*write)(void *arg, struct pfs_store *store), void *arg)
{
	struct apart apart = {tree->sides, write, arg};
	struct pfs_errand errand = {.part = &part, .write = write_apart, .arg = &apart};

	PFS_TRY(pfs_journal_reserve(tree, 1, bytes, false));
	return pfs_journal_send(tree, &errand);
}

/* Both locks are held. */
static void put_last(struct pfs_sides *sides, struct change *change, struct table *table)
{
	change->before = table->changed;
	change->earlier = table->last;
	if (table->last)
		table->last->later = change;
	table->last = change;
	table->changed = change->version;
	*(sides->last ? &sides->last->next : &sides->first) = change;
	sides->last = change;
	if (!sides->pending)
		sides->pending = change;
}

#define PAGE_ROWS 2u /* that a page of the store counts as where room is reserved */

bool pfs_sides_fit(struct pfs_tree *tree, const struct pfs_side_rows *rows)
{
	return pfs_journal_has_room(
		tree, PAGE_ROWS * (rows->n + atomic_load(&tree->sides->n_pending)), rows->size);
}

int pfs_sides_apply(struct pfs_tree *tree, struct pfs_side_rows *rows)
{
	struct pfs_sides *sides = tree->sides;
	struct table *spare PFS_FREE = NULL;
	struct change *change;

	PFS_TRY(pfs_journal_reserve(tree, 1, rows->size, false));
	spare = malloc(sizeof(*spare));
	change = malloc(sizeof(*change));
	if (!spare || !change) {
		free(change);
		return -ENOMEM;
	}
	(void)pthread_rwlock_wrlock(&sides->reading);
	*change = (struct change){
		.users = 1, .version = atomic_load(&sides->version) + 1, .rows = *rows};
	*rows = (struct pfs_side_rows){.table = rows->table};
	pfs_parts_lock(tree);
	put_last(sides, change, get_table(sides, change->rows.table, &spare));
	*pfs_parts_unreported(tree) += (int64_t)cost(change);
	atomic_fetch_add(&sides->n_pending, change->rows.n);
	atomic_store(&sides->version, change->version);
	pfs_parts_unlock(tree);
	(void)pthread_rwlock_unlock(&sides->reading);
	return 0;
}
