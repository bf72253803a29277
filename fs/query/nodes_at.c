/* SPDX-License-Identifier: MIT */
/* nodes_at(TIME) and attrs_at(TIME): nodes and attributes as they were, from the store's history
 * (meta/history.h).  Rows are read from the store as it was committed, in order of inode numbers;
 * only directories are kept in memory, for paths. */
#include "fs/query/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/number.h"
#include "meta/account.h"
#include "meta/history.h"
#include "meta/store.h"

#define BATCH	     256  /* records that are read at once, at most */
#define WINDOW	     1024 /* primes that are looked through for them at first */
#define ROWS_ASSUMED 1000000
#define OTHERS	     (UINT64_C(1) << 32) /* the numbers of what is no directory begin there */

enum column {
	PATH,
	NAME,
	INO,
	PARENT,
	DEPTH,
	TYPE,
	MODE,
	UID,
	GID,
	SIZE,
	BLOCKS,
	TARGET,
	MTIME,
	CTIME,
	COLUMNS
};

struct directory {
	uint64_t prime, parent;
	size_t name; /* where in `names` */
	uint8_t name_len;
};

struct former {
	uint64_t prime;
	struct pfs_node_record record; /* its bytes are at `bytes`: the name, then the target */
	size_t bytes;
};

struct attribute {
	struct pfs_attr_record record; /* its bytes are at `bytes`: the name, then the text */
	size_t bytes;
};

struct past {
	struct pfs_query *query;
	struct pfs_store *store;
	/* The batch. */
	struct former rows[BATCH];
	size_t n, row;
	char *bytes;
	size_t n_bytes, bytes_capacity;
	uint64_t next;	 /* where the next one begins, */
	uint64_t window; /* how far it looks, */
	uint64_t end;	 /* and the first number beyond what was asked for */
	/* All directories by prime, once a path was asked for. */
	struct directory *directories;
	size_t n_directories, directories_capacity;
	char *names;
	size_t n_names, names_capacity;
	bool has_directories;
	size_t charged; /* of them, on the statement's account */
	/* The attributes of the row at hand. */
	struct attribute *attributes;
	size_t n_attributes, attribute, attributes_capacity;
	char *attr_bytes;
	size_t n_attr_bytes, attr_bytes_capacity;
	/* The path of the row at hand, up to its parent's. */
	uint64_t parent; /* 0: of none */
	size_t *chain;	 /* directories on the way up */
	size_t chain_capacity;
	char *path;
	size_t path_len, path_capacity;
	int64_t depth;
};

static void close_past(void *arg)
{
	struct past *past = arg;

	(void)pfs_store_close(past->store);
	pfs_account_discharge(past->query->account, past->charged);
	free(past->bytes);
	free(past->directories);
	free(past->names);
	free(past->attributes);
	free(past->attr_bytes);
	free(past->chain);
	free(past->path);
	free(past);
}

/* ---- the time ---- */

static int refuse(char problem[PFS_SQL_PROBLEM_SIZE], const char *text)
{
	(void)snprintf(problem, PFS_SQL_PROBLEM_SIZE, "%s", text);
	return -EINVAL;
}

static int find_time(const struct pfs_query *query, int64_t *at, const struct pfs_sql_value *value,
		     char problem[PFS_SQL_PROBLEM_SIZE])
{
	char number[PFS_NUMBER_SIZE];
	const char *text = value->bytes;
	size_t len = value->size;

	if (value->type == PFS_SQL_INTEGER) {
		text = number;
		len = pfs_print_integer(number, value->integer);
	} else if (value->type != PFS_SQL_TEXT) {
		len = 0;
	}
	if (len && pfs_time_point(at, text, len, query->now) && *at)
		return 0;
	return refuse(problem, "it takes a time: '2 days ago', '2024-01-31', '2024-01-31 "
			       "12:00:00' or seconds "
			       "since 1970");
}

static int refuse_time(struct pfs_query *query, int error, char problem[PFS_SQL_PROBLEM_SIZE])
{
	struct pfs_history history = {.since = 0};
	char since[PFS_TIME_TEXT];

	if (error == -ENODATA)
		return refuse(problem, "the store keeps no history; mount it with -o history=2d");
	if (error != -ESTALE || pfs_tree_history(query->queries->tree, &history))
		return error;
	pfs_time_print(since, history.since);
	(void)snprintf(problem, PFS_SQL_PROBLEM_SIZE, "what the store was is known from %s on",
		       since);
	return -EINVAL;
}

static int open_past(void *user, void **out, const struct pfs_sql_value *argument,
		     char problem[PFS_SQL_PROBLEM_SIZE])
{
	struct pfs_query *query = user;
	struct past *past;
	int64_t at = 0;
	int error;

	if (query->is_limited)
		return refuse(problem, "what was is for the user who mounts and for root");
	PFS_TRY(find_time(query, &at, argument, problem));
	past = calloc(1, sizeof(*past));
	if (!past)
		return -ENOMEM;
	past->query = query;
	error = pfs_tree_history_open(query->queries->tree, &past->store, at, pfs_query_tick,
				      query);
	if (error) {
		free(past);
		return refuse_time(query, error, problem);
	}
	*out = past;
	return 0;
}

/* ---- rows ---- */

static int take_row(void *arg, const struct pfs_node_record *record)
{
	struct past *past = arg;
	struct former *row = &past->rows[past->n];

	PFS_TRY(pfs_grow(&past->bytes, &past->bytes_capacity,
			 past->n_bytes + record->name_len + record->target_len + 1, 1));
	*row = (struct former){.prime = record->prime, .record = *record, .bytes = past->n_bytes};
	if (record->name_len)
		memcpy(past->bytes + past->n_bytes, record->name, record->name_len);
	past->n_bytes += record->name_len;
	if (record->target_len)
		memcpy(past->bytes + past->n_bytes, record->target, record->target_len);
	past->n_bytes += record->target_len;
	past->next = record->prime + 1;
	return ++past->n == BATCH;
}

/* The store as it was has its rows from two places, and looks for the next one in both: so it is
 * asked for a bounded range, else each batch would go by all rows behind it that have changed
 * since. */
static int read_window(struct past *past)
{
	uint64_t limit = past->next < OTHERS ? PFS_MIN(OTHERS, past->end) : past->end;
	uint64_t end = limit - past->next > past->window ? past->next + past->window : limit;
	int got = pfs_history_go_on(past->store);

	if (!got)
		got = pfs_store_scan_nodes(past->store, past->next, end, take_row, past);
	if (got < 0)
		return got;
	if (got == 0)
		past->next = end;
	if (got || end == OTHERS)
		past->window = WINDOW;
	else if (past->n < BATCH / 2)
		past->window *= 2;
	return 0;
}

static int next_row(void *arg)
{
	struct past *past = arg;

	if (past->row + 1 < past->n) {
		past->row++;
		return 1;
	}
	past->row = past->n = past->n_bytes = 0;
	while (!past->n && past->next < past->end)
		PFS_TRY(read_window(past));
	return past->n != 0;
}

static int start_past(void *arg, const int64_t *ino)
{
	struct past *past = arg;
	bool is_one = ino && *ino > 0 && *ino < INT64_MAX;

	past->row = past->n = past->n_bytes = 0;
	past->attribute = past->n_attributes = past->n_attr_bytes = 0;
	past->window = WINDOW;
	past->next = is_one ? (uint64_t)*ino : 0;
	past->end = is_one ? (uint64_t)*ino + 1 : ino ? 0 : INT64_MAX;
	return 0;
}

static void pause_past(void *arg)
{
	pfs_history_pause(((struct past *)arg)->store);
}

/* ---- paths ---- */

static int charge_directories(struct past *past)
{
	size_t size =
		past->directories_capacity * sizeof(*past->directories) + past->names_capacity;
	size_t more = size - past->charged;

	past->charged = size;
	return more ? pfs_account_charge(past->query->account, (int64_t)more) : 0;
}

static int take_directory(void *arg, const struct pfs_node_record *record)
{
	struct past *past = arg;

	PFS_TRY(pfs_grow(&past->directories, &past->directories_capacity, past->n_directories + 1,
			 sizeof(*past->directories)));
	PFS_TRY(pfs_grow(&past->names, &past->names_capacity, past->n_names + record->name_len + 1,
			 1));
	past->directories[past->n_directories++] = (struct directory){
		.prime = record->prime,
		.parent = record->parent,
		.name = past->n_names,
		.name_len = (uint8_t)record->name_len,
	};
	if (record->name_len)
		memcpy(past->names + past->n_names, record->name, record->name_len);
	past->n_names += record->name_len;
	return charge_directories(past);
}

static int compare_directories(const void *a, const void *b)
{
	const struct directory *x = a, *y = b;

	return (x->prime > y->prime) - (x->prime < y->prime);
}

static int climb(struct past *past, size_t *steps, uint64_t prime)
{
	for (*steps = 0; prime != PFS_ROOT_PRIME; ++*steps) {
		const struct directory key = {.prime = prime};
		const struct directory *found =
			past->n_directories ? bsearch(&key, past->directories, past->n_directories,
						      sizeof(key), compare_directories)
					    : NULL;

		if (!found || *steps > past->n_directories)
			return -EUCLEAN;
		PFS_TRY(pfs_grow(&past->chain, &past->chain_capacity, *steps + 1,
				 sizeof(*past->chain)));
		past->chain[*steps] = (size_t)(found - past->directories);
		prime = found->parent;
	}
	return 0;
}

static int append(struct past *past, const char *name, size_t len)
{
	PFS_TRY(pfs_grow(&past->path, &past->path_capacity, past->path_len + len + 2, 1));
	past->path[past->path_len++] = '/';
	memcpy(past->path + past->path_len, name, len);
	past->path_len += len;
	return 0;
}

/* `path` and `depth` become those of that directory. */
static int find_parent(struct past *past, uint64_t prime)
{
	size_t steps = 0;

	if (!past->has_directories) {
		past->n_directories = past->n_names = 0;
		PFS_TRY(pfs_history_go_on(past->store));
		PFS_TRY(pfs_store_scan_nodes(past->store, 0, OTHERS, take_directory, past));
	}
	past->has_directories = true;
	if (past->parent == prime)
		return 0;
	past->parent = 0;
	PFS_TRY(climb(past, &steps, prime));
	past->path_len = 0;
	past->depth = (int64_t)steps;
	while (steps--) {
		const struct directory *directory = &past->directories[past->chain[steps]];

		PFS_TRY(append(past, past->names + directory->name, directory->name_len));
	}
	past->parent = prime;
	return 0;
}

static int give_path(struct past *past, struct pfs_sql_value *out, const struct former *row)
{
	size_t len;

	*out = (struct pfs_sql_value){.type = PFS_SQL_TEXT, .bytes = "/", .size = 1};
	if (row->prime == PFS_ROOT_PRIME)
		return 0;
	PFS_TRY(find_parent(past, row->record.parent));
	len = past->path_len;
	PFS_TRY(append(past, past->bytes + row->bytes, row->record.name_len));
	*out = (struct pfs_sql_value){
		.type = PFS_SQL_TEXT, .bytes = past->path, .size = past->path_len};
	past->path_len = len; /* the parent's again; the bytes behind it stay for now */
	return 0;
}

static int give_depth(struct past *past, struct pfs_sql_value *out, const struct former *row)
{
	*out = (struct pfs_sql_value){.type = PFS_SQL_INTEGER};
	if (row->prime == PFS_ROOT_PRIME)
		return 0;
	PFS_TRY(find_parent(past, row->record.parent));
	out->integer = past->depth + 1;
	return 0;
}

/* ---- columns ---- */

static struct pfs_sql_value number(int64_t value)
{
	return (struct pfs_sql_value){.type = PFS_SQL_INTEGER, .integer = value};
}

static struct pfs_sql_value text(const char *bytes, size_t size)
{
	return (struct pfs_sql_value){.type = PFS_SQL_TEXT, .bytes = bytes, .size = size};
}

/* The nearest that 64 bits hold, as the columns of nodes. */
static struct pfs_sql_value time_value(const struct pfs_time *time)
{
	int64_t value;

	if (!__builtin_mul_overflow(time->sec, INT64_C(1000000000), &value) &&
	    !__builtin_add_overflow(value, (int64_t)time->nsec, &value))
		return number(value);
	return number(time->sec < 0 ? INT64_MIN + 1 : INT64_MAX);
}

/* find's letter, by the type bits' four. */
static struct pfs_sql_value type_value(uint32_t mode)
{
	static const char letters[] = "?pc?d?b?f?l?s???";

	return text(&letters[mode >> 12 & 15], 1);
}

static int give_value(void *arg, struct pfs_sql_value *out, int column)
{
	struct past *past = arg;
	const struct former *row = &past->rows[past->row];
	const struct pfs_node_record *record = &row->record;
	const char *bytes = past->bytes + row->bytes;

	switch ((enum column)column) {
	case PATH:
		return give_path(past, out, row);
	case DEPTH:
		return give_depth(past, out, row);
	case NAME:
		*out = text(bytes, record->name_len);
		break;
	case TARGET:
		if (record->target_len)
			*out = text(bytes + record->name_len, record->target_len);
		break;
	case INO:
		*out = number((int64_t)row->prime);
		break;
	case PARENT:
		if (record->parent)
			*out = number((int64_t)record->parent);
		break;
	case TYPE:
		*out = type_value(record->mode);
		break;
	case MODE:
		*out = number(record->mode);
		break;
	case UID:
		*out = number(record->uid);
		break;
	case GID:
		*out = number(record->gid);
		break;
	case SIZE:
		*out = number(record->size);
		break;
	case BLOCKS:
		*out = number(record->blocks);
		break;
	case MTIME:
		*out = time_value(&record->mtime);
		break;
	case CTIME:
		*out = time_value(&record->ctime);
		break;
	case COLUMNS:
		break;
	}
	return 0;
}

/* ---- attributes ---- */

enum attr_column { ATTR_INO, ATTR_NAME, ATTR_VALUE, ATTR_COLUMNS };

static int take_attribute(void *arg, const struct pfs_attr_record *record)
{
	static const char ours[] = "primefs."; /* not shown as attributes elsewhere, either */
	struct past *past = arg;
	char *bytes;

	if (record->name_len >= sizeof(ours) - 1 &&
	    memcmp(record->name, ours, sizeof(ours) - 1) == 0)
		return 0;
	PFS_TRY(pfs_grow(&past->attributes, &past->attributes_capacity, past->n_attributes + 1,
			 sizeof(*past->attributes)));
	PFS_TRY(pfs_grow(&past->attr_bytes, &past->attr_bytes_capacity,
			 past->n_attr_bytes + record->name_len + record->text_len + 1, 1));
	past->attributes[past->n_attributes++] =
		(struct attribute){.record = *record, .bytes = past->n_attr_bytes};
	bytes = past->attr_bytes + past->n_attr_bytes;
	memcpy(bytes, record->name, record->name_len);
	if (record->text_len)
		memcpy(bytes + record->name_len, record->text, record->text_len);
	past->n_attr_bytes += record->name_len + record->text_len;
	return 0;
}

static int next_attribute(void *arg)
{
	struct past *past = arg;
	int got = 1;

	past->attribute++;
	while (got == 1 && past->attribute >= past->n_attributes) {
		past->attribute = past->n_attributes = past->n_attr_bytes = 0;
		got = next_row(past);
		if (got == 1 && past->rows[past->row].record.flags & PFS_NODE_ATTRS) {
			PFS_TRY(pfs_history_go_on(past->store));
			PFS_TRY(pfs_store_scan_attrs(past->store, past->rows[past->row].prime,
						     take_attribute, past));
		}
	}
	return got;
}

static int give_attribute(void *arg, struct pfs_sql_value *out, int column)
{
	const struct past *past = arg;
	const struct attribute *attribute = &past->attributes[past->attribute];
	const struct pfs_attr_record *record = &attribute->record;
	const char *bytes = past->attr_bytes + attribute->bytes;

	if (column == ATTR_INO)
		*out = number((int64_t)past->rows[past->row].prime);
	else if (column == ATTR_NAME)
		*out = text(bytes, record->name_len);
	else if (record->type == PFS_ATTR_TEXT)
		*out = text(bytes + record->name_len, record->text_len);
	else if (record->type == PFS_ATTR_REAL)
		*out = (struct pfs_sql_value){.type = PFS_SQL_REAL, .real = record->real};
	else
		*out = number(record->integer);
	return 0;
}

const struct pfs_sql_table_function pfs_nodes_at_table = {
	.name = "nodes_at",
	.columns = "path TEXT, name TEXT, ino INTEGER, parent INTEGER, depth INTEGER, type TEXT, "
		   "mode INTEGER, "
		   "uid INTEGER, gid INTEGER, size INTEGER, blocks INTEGER, target TEXT, mtime "
		   "INTEGER, "
		   "ctime INTEGER",
	.n_columns = COLUMNS,
	.rows_assumed = ROWS_ASSUMED,
	.open = open_past,
	.next = next_row,
	.value = give_value,
	.close = close_past,
	.start = start_past,
	.key_column = INO,
	.key_rows = 1,
	.pause = pause_past,
};

const struct pfs_sql_table_function pfs_attrs_at_table = {
	.name = "attrs_at",
	.columns = "ino INTEGER, name TEXT, value",
	.n_columns = ATTR_COLUMNS,
	.rows_assumed = ROWS_ASSUMED,
	.open = open_past,
	.next = next_attribute,
	.value = give_attribute,
	.close = close_past,
	.start = start_past,
	.key_column = ATTR_INO,
	.key_rows = 4,
	.pause = pause_past,
};
