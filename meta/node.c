/* SPDX-License-Identifier: MIT */
/* Records of nodes: checked on their way in and out, written, read (meta/store.h). */
#include "meta/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* Columns in the order of PFS_NODE_COLUMNS; parameters are one higher. */
enum node_column {
	PRIME,
	PARENT,
	SLOT,
	MODE,
	FLAGS,
	MTIME,
	ATIME,
	CTIME,
	NAME,
	RDEV,
	TARGET,
#define NUMBER(id, name, type, since) id,
	PFS_NODE_NUMBERS(NUMBER)
#undef NUMBER
};

/* ---- what a record must be, going in and coming out ---- */

static bool mode_valid(uint32_t mode)
{
	const unsigned known = 1u << (S_IFIFO >> 12) | 1u << (S_IFCHR >> 12) |
			       1u << (S_IFDIR >> 12) | 1u << (S_IFBLK >> 12) |
			       1u << (S_IFREG >> 12) | 1u << (S_IFLNK >> 12) |
			       1u << (S_IFSOCK >> 12);

	return mode <= 0xffff && known >> (mode >> 12) & 1;
}

static bool name_valid(const char *name, size_t len)
{
	if (len == 0 || len > PFS_NAME_MAX || memchr(name, '/', len) || memchr(name, 0, len))
		return false;
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

static bool target_valid(const struct pfs_node_record *node)
{
	if (!S_ISLNK(node->mode))
		return node->target_len == 0;
	return node->target_len > 0 && node->target_len <= PFS_TARGET_MAX &&
	       !memchr(node->target, 0, node->target_len);
}

/* Returns what is wrong with the record, or NULL. */
static const char *node_fault(const struct pfs_node_record *node)
{
	bool root = node->prime == PFS_ROOT_PRIME;

	if (node->prime < PFS_ROOT_PRIME || node->prime >= PFS_END_PRIME)
		return "the prime is out of range";
	if (root ? node->parent != 0
		 : node->parent < PFS_ROOT_PRIME || node->parent >= PFS_END_PRIME)
		return "the parent is out of range";
	if (!mode_valid(node->mode))
		return "the mode has no known type";
	if (node->size < 0 || node->blocks < 0)
		return "the size is negative";
	if (node->atime.nsec >= 1000000000 || node->mtime.nsec >= 1000000000 ||
	    node->ctime.nsec >= 1000000000)
		return "a time has too many nanoseconds";
	if (root ? node->name_len != 0 : !name_valid(node->name, node->name_len))
		return "the name is not one";
	return target_valid(node) ? NULL : "the target is not one";
}

/* ---- writing ---- */

struct time_texts {
	char text[3][PFS_TIME_TEXT_SIZE];
};

/* Parameters of the row before which there are so many; what every node has of its own, and what
 * many have alike. */
static void bind_place(sqlite3_stmt *s, int before, const struct pfs_node_record *node)
{
	pfs_bind_u64(s, before + PRIME + 1, node->prime);
	if (node->parent)
		pfs_bind_u64(s, before + PARENT + 1, node->parent);
	else
		(void)sqlite3_bind_null(s, before + PARENT + 1);
	pfs_bind_int(s, before + SLOT + 1, node->slot);
	pfs_bind_blob(s, before + NAME + 1, node->name, node->name_len);
}

static void bind_rest(sqlite3_stmt *s, int before, const struct pfs_node_record *node,
		      struct time_texts *times)
{
	pfs_bind_int(s, before + MODE + 1, node->mode);
	pfs_bind_int(s, before + FLAGS + 1, node->flags);
	pfs_bind_time(s, before + MTIME + 1, &node->mtime, times->text[0]);
	pfs_bind_time(s, before + ATIME + 1, &node->atime, times->text[1]);
	pfs_bind_time(s, before + CTIME + 1, &node->ctime, times->text[2]);
	if (node->rdev)
		pfs_bind_u64(s, before + RDEV + 1, node->rdev);
	else
		(void)sqlite3_bind_null(s, before + RDEV + 1);
	if (node->target_len)
		pfs_bind_blob(s, before + TARGET + 1, node->target, node->target_len);
	else
		(void)sqlite3_bind_null(s, before + TARGET + 1);
#define NUMBER(id, name, type, since) pfs_bind_int(s, before + (id) + 1, node->name);
	PFS_NODE_NUMBERS(NUMBER)
#undef NUMBER
}

static void bind_node(sqlite3_stmt *s, const struct pfs_node_record *node, struct time_texts *times)
{
	bind_place(s, 0, node);
	bind_rest(s, 0, node, times);
}

/* Writes the former row to history before it is overwritten. */
static int leave_former(struct pfs_store *store, const struct pfs_node_record *node,
			struct time_texts *times)
{
	sqlite3_stmt *leave = pfs_history_statement(store, PFS_HISTORY_NODE_CHANGE);

	if (!leave)
		return 0;
	bind_node(leave, node, times);
	return pfs_history_note(store, PFS_HISTORY_NODE_CHANGE);
}

/* Runs a statement of history that has one parameter. */
static int leave_of(struct pfs_store *store, enum pfs_history_statement which, uint64_t prime)
{
	sqlite3_stmt *leave = pfs_history_statement(store, which);

	if (!leave)
		return 0;
	pfs_bind_u64(leave, 1, prime);
	return pfs_history_note(store, which);
}

static void see_slot(struct pfs_store *store, uint32_t slot)
{
	if (slot < store->meta.end_slot)
		return;
	store->meta.end_slot = (uint64_t)slot + 1;
	__atomic_store_n(&store->end_slot, PFS_MAX(store->end_slot, store->meta.end_slot),
			 __ATOMIC_RELAXED);
}

int pfs_store_put_node(struct pfs_store *store, const struct pfs_node_record *node)
{
	struct time_texts times;
	int error = pfs_group_ready(store);

	if (error)
		return error;
	if (node_fault(node))
		return -EINVAL;
	pfs_change_note(store, node->prime);
	error = leave_former(store, node, &times);
	if (error)
		return error;
	bind_node(store->writer->sql[PFS_SQL_NODE_INSERT], node, &times);
	error = pfs_group_run(store, PFS_SQL_NODE_INSERT);
	if (error)
		return error;
	if (sqlite3_changes(store->writer->handle)) {
		store->meta.nodes[pfs_prime_kind_of(node->prime)]++;
		error = leave_of(store, PFS_HISTORY_NODE_NEW, node->prime);
	} else {
		bind_node(store->writer->sql[PFS_SQL_NODE_UPDATE], node, &times);
		error = pfs_group_run(store, PFS_SQL_NODE_UPDATE);
	}
	if (!error)
		see_slot(store, node->slot);
	return error;
}

/* ---- many at once ---- */

struct pfs_bulk_rows {
	struct {
		bool is_bound;
		struct pfs_node_record node; /* as it was last bound, without its texts */
		struct time_texts times;
	} row[PFS_STORE_NODES];
};

static bool same_time(const struct pfs_time *a, const struct pfs_time *b)
{
	return a->sec == b->sec && a->nsec == b->nsec;
}

/* Returns true if all that bind_rest binds is the same. */
static bool same_rest(const struct pfs_node_record *a, const struct pfs_node_record *b)
{
	bool same = a->mode == b->mode && a->flags == b->flags && a->rdev == b->rdev &&
		    !a->target_len && !b->target_len && same_time(&a->mtime, &b->mtime) &&
		    same_time(&a->atime, &b->atime) && same_time(&a->ctime, &b->ctime);

#define NUMBER(id, name, type, since) same &= a->name == b->name;
	PFS_NODE_NUMBERS(NUMBER)
#undef NUMBER
	return same;
}

static void bind_row(struct pfs_store *store, unsigned i, const struct pfs_node_record *node)
{
	sqlite3_stmt *insert = store->writer->sql[PFS_SQL_NODES_INSERT];
	int before = (int)i * sqlite3_bind_parameter_count(insert) / (int)PFS_STORE_NODES;

	bind_place(insert, before, node);
	if (!store->rows->row[i].is_bound || !same_rest(&store->rows->row[i].node, node))
		bind_rest(insert, before, node, &store->rows->row[i].times);
	store->rows->row[i].is_bound = true;
	store->rows->row[i].node = *node;
}

static int put_rows(struct pfs_store *store, const struct pfs_node_record nodes[PFS_STORE_NODES])
{
	if (!store->rows)
		store->rows = calloc(1, sizeof(*store->rows));
	if (!store->rows)
		return -ENOMEM;
	for (unsigned i = 0; i < PFS_STORE_NODES; i++) {
		if (node_fault(&nodes[i]))
			return -EINVAL;
		bind_row(store, i, &nodes[i]);
	}
	PFS_TRY(pfs_group_run(store, PFS_SQL_NODES_INSERT));
	for (unsigned i = 0; i < PFS_STORE_NODES; i++) {
		store->meta.nodes[pfs_prime_kind_of(nodes[i].prime)]++;
		see_slot(store, nodes[i].slot);
	}
	return 0;
}

int pfs_store_put_nodes(struct pfs_store *store,
			const struct pfs_node_record nodes[PFS_STORE_NODES])
{
	PFS_TRY(pfs_group_ready(store));
	if (store->flags & PFS_STORE_BULK)
		return put_rows(store, nodes);
	for (unsigned i = 0; i < PFS_STORE_NODES; i++)
		PFS_TRY(pfs_store_put_node(store, &nodes[i]));
	return 0;
}

/* ---- removing ---- */

int pfs_store_remove_node(struct pfs_store *store, uint64_t prime)
{
	int error = pfs_group_ready(store);

	if (!error)
		error = pfs_group_settle(store);
	if (error)
		return error;
	pfs_change_note(store, prime);
	error = leave_of(store, PFS_HISTORY_NODE_GONE, prime);
	if (!error)
		error = leave_of(store, PFS_HISTORY_ATTRS_GONE, prime);
	if (!error)
		error = pfs_group_run_for(store, PFS_SQL_NODE_DELETE, prime);
	if (!error && sqlite3_changes(store->writer->handle))
		store->meta.nodes[pfs_prime_kind_of(prime)]--;
	if (!error)
		error = pfs_group_run_for(store, PFS_SQL_ATTR_DELETE_ALL, prime);
	if (!error)
		error = pfs_group_run_for(store, PFS_SQL_SOURCE_DELETE, prime);
	if (!error)
		error = pfs_group_run_for(store, PFS_SQL_HARD_LINK_DELETE, prime);
	return error;
}

/* ---- reading ---- */

static bool optional_u64(uint64_t *out, sqlite3_stmt *row, int column)
{
	*out = 0;
	return sqlite3_column_type(row, column) == SQLITE_NULL || pfs_column_u64(out, row, column);
}

static bool optional_blob(const void **data, size_t *len, sqlite3_stmt *row, int column, size_t max)
{
	*data = NULL;
	*len = 0;
	return sqlite3_column_type(row, column) == SQLITE_NULL ||
	       pfs_column_blob(data, len, row, column, max);
}

/* A number that came with a later version is NULL in older rows. */
static bool read_number(int64_t *out, sqlite3_stmt *row, int column, size_t size, int since)
{
	*out = 0;
	if (since > 1 && sqlite3_column_type(row, column) == SQLITE_NULL)
		return true;
	return pfs_column_int(out, row, column, 0,
			      size == sizeof(uint32_t) ? UINT32_MAX : INT64_MAX);
}

static bool read_numbers(struct pfs_node_record *out, sqlite3_stmt *row)
{
	int64_t value;

#define NUMBER(id, name, type, since)                                                              \
	if (!read_number(&value, row, id, sizeof(type), since))                                    \
		return false;                                                                      \
	out->name = (type)value;
	PFS_NODE_NUMBERS(NUMBER)
#undef NUMBER
	return true;
}

int pfs_node_from_row(struct pfs_node_record *out, const char **why, sqlite3_stmt *row)
{
	*why = "a value is of the wrong type or out of range";
	if (!pfs_column_u64(&out->prime, row, PRIME) || !optional_u64(&out->parent, row, PARENT) ||
	    !pfs_column_u32(&out->slot, row, SLOT) || !pfs_column_u32(&out->mode, row, MODE) ||
	    !pfs_column_u32(&out->flags, row, FLAGS) || !read_numbers(out, row) ||
	    !pfs_column_time(&out->mtime, row, MTIME) ||
	    !pfs_column_time(&out->atime, row, ATIME) ||
	    !pfs_column_time(&out->ctime, row, CTIME) ||
	    !pfs_column_blob(&out->name, &out->name_len, row, NAME, PFS_NAME_MAX) ||
	    !optional_u64(&out->rdev, row, RDEV) ||
	    !optional_blob(&out->target, &out->target_len, row, TARGET, PFS_TARGET_MAX))
		return -EUCLEAN;
	*why = node_fault(out);
	return *why ? -EUCLEAN : 0;
}

int pfs_store_scan_nodes(struct pfs_store *store, uint64_t first, uint64_t end,
			 int (*fn)(void *arg, const struct pfs_node_record *node), void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = 0;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_NODE_SCAN));
	pfs_bind_u64(reader.row, 1, PFS_MIN(first, PFS_END_PRIME - 1));
	pfs_bind_u64(reader.row, 2, PFS_MIN(end, PFS_END_PRIME - 1));
	while (!got && (got = pfs_reader_step(&reader)) == 1) {
		struct pfs_node_record node = {.prime = 0};
		const char *why;

		if (pfs_node_from_row(&node, &why, reader.row))
			return pfs_db_damaged(reader.db, "node", node.prime, why);
		if (node.slot >= __atomic_load_n(&store->end_slot, __ATOMIC_RELAXED) &&
		    !(store->flags & PFS_STORE_UNLOCKED))
			return pfs_db_damaged(reader.db, "node", node.prime,
					      "the slot is beyond the last one");
		got = fn(arg, &node);
	}
	(void)sqlite3_reset(reader.row);
	if (!(store->flags & PFS_STORE_BULK) && !store->past_seq)
		(void)sqlite3_db_release_memory(
			reader.db->handle); /* a scan is seldom repeated, except of a past store */
	return got;
}

/* ---- totals ---- */

static int last_prime(uint64_t *out, struct pfs_db *db, uint64_t end)
{
	sqlite3_stmt *row PFS_RESET = db->sql[PFS_SQL_NODE_LAST];
	int got;

	pfs_bind_u64(row, 1, end);
	got = pfs_db_step(db, row);
	if (got < 0)
		return got;
	if (!got || !optional_u64(out, row, 0) || *out >= PFS_END_PRIME)
		return pfs_db_damaged(db, "node", 0, "the last prime is out of range");
	return 0;
}

static int count_rows(uint64_t *out, struct pfs_db *db, enum pfs_store_statement sql)
{
	sqlite3_stmt *row PFS_RESET = db->sql[sql];
	int got = pfs_db_step(db, row);

	if (got < 0)
		return got;
	*out = (uint64_t)sqlite3_column_int64(row, 0);
	return 0;
}

int pfs_store_totals(struct pfs_store *store, struct pfs_store_totals *out)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	uint64_t orphans = 0, last = 0;
	struct pfs_meta meta;
	int error = pfs_reader_get(store, &reader.db);

	if (!error)
		error = count_rows(&orphans, reader.db, PFS_SQL_ORPHAN_COUNT);
	if (!error)
		error = last_prime(&last, reader.db, PFS_END_PRIME - 1);
	if (error)
		return error;
	(void)pthread_mutex_lock(&store->mutex);
	meta = store->flags & PFS_STORE_BULK ? store->meta : store->committed;
	(void)pthread_mutex_unlock(&store->mutex);
	*out = (struct pfs_store_totals){
		.nodes = meta.nodes[PFS_PRIME_DIRECTORY] + meta.nodes[PFS_PRIME_OTHER],
		.orphans = orphans,
		.end_slot = meta.end_slot,
		.end_prime = last + 1,
	};
	return 0;
}
