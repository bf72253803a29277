/* SPDX-License-Identifier: MIT */
/* What a statement asks of nodes, row by row, becomes a set of changes (fs/change/change.h): SQLite
 * reads the tree meanwhile, so it is changed only when the statement has seen all of it. */
#include "fs/query/internal.h"

#include <grp.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "fs/image/watch.h"

#define ENTRY_SIZE 16384 /* of a line in the database of users or groups */

struct row {
	struct pfs_query *query;
	struct pfs_change *change;
	const char *column; /* at hand, for messages */
	bool create;
};

static int wrong(const struct row *row, int code, const char *what)
{
	(void)snprintf(row->query->why, sizeof(row->query->why), "%s: %s", row->column, what);
	return code;
}

/* ---- values ---- */

static int as_integer(const struct row *row, int64_t *out, const struct pfs_sql_value *value,
		      int64_t low, int64_t high)
{
	bool is_number = true;

	if (value->type == PFS_SQL_INTEGER)
		*out = value->integer;
	else if (value->type == PFS_SQL_REAL && value->real >= -9e18 && value->real <= 9e18 &&
		 value->real == (double)(int64_t)value->real)
		*out = (int64_t)value->real;
	else
		is_number = value->type == PFS_SQL_TEXT &&
			    pfs_is_integer(out, value->bytes, value->size);
	if (!is_number || *out < low || *out > high)
		return wrong(row, -EINVAL, "not a value that it can have");
	return 0;
}

static int as_time(const struct row *row, int64_t *out, const struct pfs_sql_value *value)
{
	const int64_t most = INT64_MAX / 1000000000 * 1000000000 - 1; /* that a column holds */

	if (value->type == PFS_SQL_TEXT &&
	    pfs_time_read(out, value->bytes, value->size, row->query->now))
		return 0;
	return as_integer(row, out, value, -most, most);
}

/* Numbers as they print. */
static const char *as_text(size_t *len, char number[PFS_NUMBER_SIZE],
			   const struct pfs_sql_value *value)
{
	if (value->type == PFS_SQL_INTEGER)
		*len = pfs_print_integer(number, value->integer);
	else if (value->type == PFS_SQL_REAL)
		*len = pfs_print_real(number, value->real);
	else
		*len = value->size;
	return value->type == PFS_SQL_TEXT || value->type == PFS_SQL_BLOB ? value->bytes : number;
}

static int put_text(const struct row *row, struct pfs_bytes *out, const struct pfs_sql_value *value)
{
	char number[PFS_NUMBER_SIZE];
	size_t len;
	const char *text = as_text(&len, number, value);

	return pfs_change_set_text(&row->query->set, out, text, len);
}

static int find_user(const char *name, uint32_t *id)
{
	char *buffer PFS_FREE = malloc(ENTRY_SIZE);
	struct passwd entry, *found = NULL;

	if (!buffer)
		return -ENOMEM;
	if (getpwnam_r(name, &entry, buffer, ENTRY_SIZE, &found) || !found)
		return -ENOENT;
	*id = found->pw_uid;
	return 0;
}

static int find_group(const char *name, uint32_t *id)
{
	char *buffer PFS_FREE = malloc(ENTRY_SIZE);
	struct group entry, *found = NULL;

	if (!buffer)
		return -ENOMEM;
	if (getgrnam_r(name, &entry, buffer, ENTRY_SIZE, &found) || !found)
		return -ENOENT;
	*id = found->gr_gid;
	return 0;
}

static int as_owner(const struct row *row, uint32_t *id, const struct pfs_sql_value *value,
		    bool group)
{
	char name[256];
	int error = -ENOENT;

	if (value->type == PFS_SQL_TEXT && value->size < sizeof(name)) {
		(void)snprintf(name, sizeof(name), "%.*s", (int)value->size, value->bytes);
		error = group ? find_group(name, id) : find_user(name, id);
	}
	return error == -ENOENT ? wrong(row, -EINVAL, group ? "no group has this name"
							    : "no user has this name")
				: error;
}

/* ---- columns ---- */

static int set_never(const struct row *row, const struct pfs_sql_value *value PFS_UNUSED)
{
	return wrong(row, -EINVAL, "this column cannot be set");
}

static int set_type(const struct row *row, const struct pfs_sql_value *value)
{
	static const struct {
		char letter;
		mode_t type;
	} types[] = {
		{'f', S_IFREG}, {'d', S_IFDIR}, {'l', S_IFLNK}, {'p', S_IFIFO}, {'s', S_IFSOCK}};

	if (!row->create)
		return set_never(row, value);
	for (size_t i = 0; i < PFS_COUNT(types); i++) {
		if (value->type != PFS_SQL_TEXT || value->size != 1 ||
		    *value->bytes != types[i].letter)
			continue;
		if (row->change->mode & S_IFMT && (row->change->mode & S_IFMT) != types[i].type)
			return wrong(row, -EINVAL, "the mode says another one");
		row->change->mode |= types[i].type;
		return 0;
	}
	return wrong(row, -EINVAL, "f, d, l, p and s can be inserted");
}

static int set_mode(const struct row *row, const struct pfs_sql_value *value)
{
	int64_t mode;

	PFS_TRY(as_integer(row, &mode, value, 0, 0177777));
	if (row->change->mode & S_IFMT && mode & S_IFMT &&
	    (row->change->mode & S_IFMT) != (uint32_t)(mode & S_IFMT))
		return wrong(row, -EINVAL, "the type is another one");
	row->change->mode |= (uint32_t)mode;
	row->change->set |= PFS_CHANGE_MODE;
	return 0;
}

static int set_id(const struct row *row, const struct pfs_sql_value *value, bool is_name,
		  bool group)
{
	uint32_t *out = group ? &row->change->gid : &row->change->uid, id = 0;
	unsigned bit = group ? PFS_CHANGE_GID : PFS_CHANGE_UID;
	int64_t number = 0;

	if (is_name) {
		PFS_TRY(as_owner(row, &id, value, group));
	} else {
		PFS_TRY(as_integer(row, &number, value, 0, UINT32_MAX - 1));
		id = (uint32_t)number;
	}
	if (row->change->set & bit && *out != id)
		return wrong(row, -EINVAL, "the number and the name of its owner differ");
	*out = id;
	row->change->set |= bit;
	return 0;
}

static int set_uid(const struct row *row, const struct pfs_sql_value *value)
{
	return set_id(row, value, false, false);
}

static int set_gid(const struct row *row, const struct pfs_sql_value *value)
{
	return set_id(row, value, false, true);
}

static int set_path(const struct row *row, const struct pfs_sql_value *value)
{
	row->change->set |= PFS_CHANGE_PATH;
	return put_text(row, &row->change->path, value);
}

static int set_name(const struct row *row, const struct pfs_sql_value *value)
{
	row->change->set |= PFS_CHANGE_NAME;
	return put_text(row, &row->change->name, value);
}

static int set_parent(const struct row *row, const struct pfs_sql_value *value)
{
	int64_t number;

	PFS_TRY(as_integer(row, &number, value, 0, INT64_MAX));
	row->change->set |= PFS_CHANGE_PARENT;
	row->change->parent = (uint64_t)number;
	return 0;
}

static int set_size(const struct row *row, const struct pfs_sql_value *value)
{
	row->change->set |= PFS_CHANGE_SIZE;
	return as_integer(row, &row->change->size, value, 0, INT64_MAX);
}

static int set_mtime(const struct row *row, const struct pfs_sql_value *value)
{
	row->change->set |= PFS_CHANGE_MTIME;
	return as_time(row, &row->change->mtime, value);
}

static int set_atime(const struct row *row, const struct pfs_sql_value *value)
{
	row->change->set |= PFS_CHANGE_ATIME;
	return as_time(row, &row->change->atime, value);
}

static int set_target(const struct row *row, const struct pfs_sql_value *value)
{
	if (!row->create)
		return set_never(row, value);
	row->change->set |= PFS_CHANGE_TARGET;
	return put_text(row, &row->change->target, value);
}

/* The setters, by field. */
static int (*const setters[PFS_FIELD_COUNT])(const struct row *row,
					     const struct pfs_sql_value *value) = {
#define FIELD(id, name, type, kind, source, made_of, operators, values, order, index, viewers, setter) \
	[PFS_FIELD_##id] = set_##setter,
	PFS_FIELDS(FIELD, PFS_NO_ALIAS)
#undef FIELD
};

static int set_column(const struct row *row, const struct pfs_node_column *column,
		      const struct pfs_sql_value *value)
{
	bool group = column->kind == PFS_NODE_GROUP;

	if (group || column->kind == PFS_NODE_OWNER)
		return set_id(row, value, true, group);
	return setters[column->field](row, value);
}

/* The value as SQLite's affinities make it in a column that was imported with a type: 10 is 10.0
 * among reals, 10.0 is 10 among integers.  As text it would be no number there.  There is no
 * negative zero. */
static struct pfs_sql_value as_declared(enum pfs_attr_type type, const struct pfs_sql_value *value)
{
	const double two_63 = 9223372036854775808.0;
	struct pfs_sql_value out = *value;
	int64_t integer;

	if (out.type == PFS_SQL_TEXT && type == PFS_ATTR_REAL &&
	    pfs_is_integer(&integer, out.bytes, out.size)) {
		out.type = PFS_SQL_INTEGER;
		out.integer = integer;
	}
	if (out.type == PFS_SQL_INTEGER && type == PFS_ATTR_REAL) {
		out.type = PFS_SQL_REAL;
		out.real = (double)out.integer;
	} else if (out.type == PFS_SQL_REAL && type == PFS_ATTR_INTEGER &&
		   fabs(out.real) < two_63 && out.real == (double)(int64_t)out.real) {
		out.type = PFS_SQL_INTEGER;
		out.integer = (int64_t)out.real;
	}
	if (out.type == PFS_SQL_REAL && out.real == 0)
		out.real = 0;
	return out;
}

static int set_attr(const struct row *row, const struct pfs_node_column *column,
		    const struct pfs_sql_value *value)
{
	const struct pfs_sql_value declared = as_declared(column->type, value);
	struct pfs_change_set *set = &row->query->set;
	struct pfs_attr_change attr = {.removed = value->type == PFS_SQL_NULL};

	if (pfs_node_column_is_hash(column))
		return set_never(row, value);
	PFS_TRY(pfs_change_set_text(set, &attr.name, column->attr, column->attr_len));
	if (!attr.removed)
		PFS_TRY(put_text(row, &attr.value, &declared));
	PFS_TRY(pfs_grow(&set->attrs, &set->attrs_capacity, set->n_attrs + 1, sizeof(attr)));
	set->attrs[set->n_attrs++] = attr;
	row->change->n_attrs++;
	return 0;
}

static int set_columns(struct row *row, const struct pfs_sql_update *update)
{
	const struct pfs_node_table *table = row->query->connection->table;

	row->column = "rowid";
	if (update->sets_rowid)
		return set_never(row, NULL);
	for (size_t i = 0; i < update->n; i++) {
		const struct pfs_node_column *column = &table->columns[i];

		if (!update->given[i])
			continue;
		row->column = column->name;
		if (column->kind == PFS_NODE_ATTR)
			PFS_TRY(set_attr(row, column, &update->columns[i]));
		else if (update->columns[i].type == PFS_SQL_NULL)
			return wrong(row, -EINVAL, "it is never NULL");
		else
			PFS_TRY(set_column(row, column, &update->columns[i]));
	}
	return 0;
}

/* ---- rows ---- */

static int complete_new(struct row *row)
{
	struct pfs_change *change = row->change;

	row->column = "INSERT";
	if (!(change->set & PFS_CHANGE_PATH) &&
	    (change->set & (PFS_CHANGE_PARENT | PFS_CHANGE_NAME)) !=
		    (PFS_CHANGE_PARENT | PFS_CHANGE_NAME))
		return wrong(row, -EINVAL, "a node needs a path, or a parent and a name");
	if (!(change->mode & S_IFMT))
		change->mode |= change->set & PFS_CHANGE_TARGET ? S_IFLNK : S_IFREG;
	if (!(change->set & PFS_CHANGE_MODE))
		change->mode |= S_ISDIR(change->mode) ? 0755 : 0644;
	if (S_ISLNK(change->mode))
		change->mode = S_IFLNK | 0777;
	return 0;
}

static int check_place(struct row *row)
{
	unsigned set = row->change->set;

	row->column = "path";
	if (set & PFS_CHANGE_PATH && set & (PFS_CHANGE_PARENT | PFS_CHANGE_NAME))
		return wrong(row, -EINVAL, "set this, or parent and name");
	return 0;
}

static int collect(struct pfs_query *query, const struct pfs_sql_update *update)
{
	struct pfs_change_set *set = &query->set;
	struct row row = {.query = query, .create = update->kind == PFS_SQL_INSERTS};

	set->kind = row.create				   ? PFS_CHANGE_CREATE
		    : update->kind == PFS_SQL_DELETES ? PFS_CHANGE_REMOVE
						      : PFS_CHANGE_UPDATE;
	PFS_TRY(pfs_grow(&set->list, &set->capacity, set->n + 1, sizeof(*set->list)));
	row.change = &set->list[set->n];
	*row.change = (struct pfs_change){
		.ino = row.create ? 0 : (uint64_t)update->rowid,
		.first_attr = set->n_attrs,
	};
	PFS_TRY(set_columns(&row, update));
	PFS_TRY(check_place(&row));
	if (row.create)
		PFS_TRY(complete_new(&row));
	set->n++;
	return 0;
}

int pfs_nodes_update(void *user, const struct pfs_sql_update *update)
{
	struct pfs_query *query = user;
	uint64_t memory, before = query->set_charged;

	PFS_TRY(collect(query, update));
	memory = pfs_change_set_memory(&query->set);
	query->set_charged = memory;
	return pfs_account_charge(query->account, (int64_t)(memory - before));
}

int pfs_nodes_change(struct pfs_query *query, bool is_last)
{
	const struct pfs_caller caller = {.uid = query->uid, .gid = query->gid};
	const struct pfs_change_basis basis = {
		.epoch = query->epoch,
		.frozen = query->frozen,
		.columns = query->frozen_wish.columns |
			   PFS_COLUMN_PARENT, /* functions ask where a node lies */
		.is_last = is_last,
	};

	return pfs_tree_change(query->queries->tree, &query->set, &basis, &caller, query->why,
			       sizeof(query->why));
}

/* ---- before a statement is run ---- */

static bool is_word_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool pfs_statement_may_change(const char *sql, size_t len)
{
	static const char *const words[] = {"insert",  "update", "delete",
					    "replace", "create", "drop"};

	for (size_t at = 0; at < len;) {
		size_t n = 0;

		while (at + n < len && is_word_byte(sql[at + n]))
			n++;
		for (size_t i = 0; n && i < PFS_COUNT(words); i++) {
			if (strlen(words[i]) == n && strncasecmp(sql + at, words[i], n) == 0)
				return true;
		}
		at += n ? n : 1;
	}
	return false;
}
