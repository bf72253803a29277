/* SPDX-License-Identifier: MIT */
/* The values of columns of nodes for some slots at a time. */
#include "fs/query/gather.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define ROWS_MIN   128	 /* that there is room for */
#define BYTES_KEPT 16384 /* of a column, while it rests */
#define NS	   INT64_C(1000000000)

/* What a column is kept in. */
struct buffer {
	int64_t *integers;
	char *bytes;
	size_t capacity; /* of bytes */
	uint64_t *offset;
	uint8_t *is_null;
	struct pfs_sql_value *values;
	struct pfs_attr_value *attrs;
	size_t rows; /* that the arrays have room for */
};

struct pfs_gathered {
	struct pfs_query *query;
	size_t n_columns;
	const uint32_t *slots; /* gathered last */
	size_t n;	       /* of them */
	int64_t memory;	       /* bytes accounted for */
	bool *wanted;
	struct pfs_sql_column *columns;
	struct buffer *buffers;
	struct pfs_attr_reader **attrs; /* by column */
};

/* ---- memory ---- */

static int use(struct pfs_gathered *gather, int64_t bytes)
{
	gather->memory += bytes;
	return pfs_account_charge(gather->query->account, bytes);
}

static int64_t row_size(enum pfs_node_kind kind)
{
	switch (kind) {
	case PFS_NODE_INTEGER:
		return sizeof(int64_t);
	case PFS_NODE_BYTES:
		return sizeof(uint64_t) + sizeof(uint8_t);
	case PFS_NODE_ATTR:
		return sizeof(struct pfs_attr_value) + sizeof(struct pfs_sql_value);
	default:
		return sizeof(int64_t) + sizeof(struct pfs_sql_value);
	}
}

static int replace_array(void *array, size_t n, size_t size)
{
	free(*(void **)array);
	*(void **)array = calloc(n, size);
	return *(void **)array ? 0 : -ENOMEM;
}

static int replace_arrays(struct buffer *buffer, enum pfs_node_kind kind, size_t rows)
{
	if (kind == PFS_NODE_BYTES) {
		PFS_TRY(replace_array(&buffer->offset, rows + 1, sizeof(uint64_t)));
		return replace_array(&buffer->is_null, rows, sizeof(uint8_t));
	}
	if (kind == PFS_NODE_ATTR)
		PFS_TRY(replace_array(&buffer->attrs, rows, sizeof(*buffer->attrs)));
	else
		PFS_TRY(replace_array(&buffer->integers, rows, sizeof(int64_t)));
	if (kind == PFS_NODE_INTEGER)
		return 0;
	return replace_array(&buffer->values, rows, sizeof(struct pfs_sql_value));
}

static int make_room(struct pfs_gathered *gather, size_t column)
{
	enum pfs_node_kind kind = gather->query->connection->table->columns[column].kind;
	struct buffer *buffer = &gather->buffers[column];
	size_t rows = PFS_MAX(gather->n, ROWS_MIN);

	if (rows <= buffer->rows)
		return 0;
	PFS_TRY(use(gather, (int64_t)(rows - buffer->rows) * row_size(kind)));
	buffer->rows = 0;
	PFS_TRY(replace_arrays(buffer, kind, rows));
	buffer->rows = rows;
	return 0;
}

static void free_buffer(struct buffer *buffer)
{
	free(buffer->integers);
	free(buffer->bytes);
	free(buffer->offset);
	free(buffer->is_null);
	free(buffer->values);
	free(buffer->attrs);
}

/* ---- columns ---- */

static int gather_bytes(struct pfs_gathered *gather, struct buffer *buffer, enum pfs_field field)
{
	size_t before = buffer->capacity;
	int error =
		pfs_scan_bytes(gather->query->tree, &buffer->bytes, &buffer->capacity,
			       buffer->offset, buffer->is_null, field, gather->slots, gather->n);

	return error ? error : use(gather, (int64_t)(buffer->capacity - before));
}

static void name_types(struct pfs_sql_value *values, const int64_t *letters, size_t n)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz";

	for (size_t i = 0; i < n; i++)
		values[i] = (struct pfs_sql_value){
			.type = PFS_SQL_TEXT,
			.bytes = &alphabet[(letters[i] - 'a') % 26],
			.size = 1,
		};
}

static void from_attr(struct pfs_sql_value *out, const struct pfs_attr_value *attr,
		      enum pfs_attr_type declared)
{
	*out = (struct pfs_sql_value){.type = PFS_SQL_NULL};
	if (!attr->is_set)
		return;
	switch (attr->type) {
	case PFS_ATTR_INTEGER: /* as a column of reals would keep it */
		out->type = declared == PFS_ATTR_REAL ? PFS_SQL_REAL : PFS_SQL_INTEGER;
		if (declared == PFS_ATTR_REAL)
			out->real = (double)attr->integer;
		else
			out->integer = attr->integer;
		break;
	case PFS_ATTR_REAL:
		out->type = PFS_SQL_REAL;
		out->real = attr->real;
		break;
	case PFS_ATTR_TEXT:
		out->type = PFS_SQL_TEXT;
		out->bytes = attr->text;
		out->size = attr->text_len;
		break;
	}
}

/* Drops a hash that was made for another size or mtime of the file. */
static void from_hash(struct pfs_attr_value *value, int64_t size, int64_t mtime_ns)
{
	int64_t ns = mtime_ns % NS, s = mtime_ns / NS;
	const struct timespec mtime = {.tv_sec = s - (ns < 0), .tv_nsec = ns < 0 ? ns + NS : ns};

	if (!value->is_set || value->type != PFS_ATTR_TEXT)
		return;
	value->text = pfs_hash_of(value->text, value->text_len, size, mtime);
	value->text_len = PFS_HASH_DIGITS;
	value->is_set = value->text != NULL;
}

static int from_hashes(const struct pfs_gathered *gather, struct pfs_attr_value *values)
{
	const struct pfs_query *query = gather->query;
	int64_t *sizes PFS_FREE = calloc(gather->n + 1, sizeof(*sizes));
	int64_t *mtimes PFS_FREE = calloc(gather->n + 1, sizeof(*mtimes));

	if (!sizes || !mtimes)
		return -ENOMEM;
	PFS_TRY(pfs_visible_integers(query->visible, query->tree, sizes, PFS_FIELD_SIZE,
				     gather->slots, gather->n));
	PFS_TRY(pfs_visible_integers(query->visible, query->tree, mtimes, PFS_FIELD_MTIME,
				     gather->slots, gather->n));
	for (size_t row = 0; row < gather->n; row++)
		from_hash(&values[row], sizes[row], mtimes[row]);
	return 0;
}

static int gather_attrs(struct pfs_gathered *gather, size_t i)
{
	const struct pfs_query *query = gather->query;
	const struct pfs_node_column *column = &query->connection->table->columns[i];
	struct buffer *buffer = &gather->buffers[i];
	bool (*may_read)(const struct pfs_visible *, const struct pfs_tree *, uint32_t) =
		pfs_visible_may_read; /* as getxattr(2) would have it */

	PFS_TRY(pfs_attr_read(gather->attrs[i], buffer->attrs, gather->slots, gather->n));
	if (pfs_node_column_is_hash(column)) {
		PFS_TRY(from_hashes(gather, buffer->attrs));
		may_read = pfs_visible_may_surely_read;
	}
	for (size_t row = 0; row < gather->n; row++) {
		if (!may_read(query->visible, query->tree, gather->slots[row]))
			buffer->attrs[row].is_set = false;
		from_attr(&buffer->values[row], &buffer->attrs[row], column->type);
	}
	gather->columns[i] =
		(struct pfs_sql_column){.kind = PFS_SQL_VALUES, .values = buffer->values};
	return 0;
}

/* The values of one column.  The tree is held. */
static int gather_held(struct pfs_gathered *gather, size_t i)
{
	struct pfs_query *query = gather->query;
	const struct pfs_node_column *column = &query->connection->table->columns[i];
	struct buffer *buffer = &gather->buffers[i];

	PFS_TRY(make_room(gather, i));
	if (column->kind == PFS_NODE_ATTR)
		return gather_attrs(gather, i);
	if (column->kind == PFS_NODE_BYTES) {
		PFS_TRY(gather_bytes(gather, buffer, column->field));
		gather->columns[i] = (struct pfs_sql_column){
			.kind = PFS_SQL_BYTES,
			.bytes = buffer->bytes,
			.offset = buffer->offset,
			.is_null = buffer->is_null,
		};
		return 0;
	}
	PFS_TRY(pfs_visible_prepare(query->visible, query->tree, column->field, &query->watch));
	PFS_TRY(pfs_visible_integers(query->visible, query->tree, buffer->integers, column->field,
				     gather->slots, gather->n));
	if (column->kind == PFS_NODE_TYPE)
		name_types(buffer->values, buffer->integers, gather->n);
	else if (column->kind != PFS_NODE_INTEGER)
		PFS_TRY(pfs_owners_names(query->queries->owners, buffer->values, buffer->integers,
					 gather->n, column->kind == PFS_NODE_GROUP));
	gather->columns[i] = (struct pfs_sql_column){
		.kind = column->kind == PFS_NODE_INTEGER ? PFS_SQL_INTEGERS : PFS_SQL_VALUES,
		.integers = buffer->integers,
		.values = buffer->values,
	};
	return 0;
}

int pfs_gathered_want(struct pfs_gathered *gather, size_t column)
{
	gather->wanted[column] = true;
	if (gather->query->connection->table->columns[column].kind != PFS_NODE_ATTR ||
	    gather->attrs[column])
		return 0;
	return pfs_query_attr(gather->query, &gather->attrs[column], column);
}

int pfs_gathered_rows(struct pfs_gathered *gather, const uint32_t *slots, size_t n)
{
	bool any = false;
	int error = 0;

	gather->slots = slots;
	gather->n = n;
	for (size_t i = 0; i < gather->n_columns; i++) {
		gather->columns[i].kind = PFS_SQL_ABSENT;
		any |= gather->wanted[i];
	}
	for (size_t i = 0; any && n && i < gather->n_columns && !error; i++) {
		if (gather->wanted[i])
			error = gather_held(gather, i);
	}
	return error;
}

int pfs_gathered_column(struct pfs_gathered *gather, size_t column)
{
	int error;

	PFS_TRY(pfs_gathered_want(gather, column));
	PFS_TRY(pfs_query_hold(gather->query));
	error = gather_held(gather, column);
	pfs_query_release(gather->query);
	return error;
}

/* ---- open and closed ---- */

/* One piece with what there is for each column: many a statement takes no longer than to allocate
 * them one by one. */
int pfs_gathered_open(struct pfs_gathered **out, struct pfs_query *query)
{
	size_t n = query->connection->table->n;
	struct pfs_gathered *gather = calloc(
		1, sizeof(*gather) + n * (sizeof(*gather->columns) + sizeof(*gather->buffers) +
					  sizeof(struct pfs_attr_reader *) + sizeof(bool)));

	*out = gather;
	if (!gather)
		return -ENOMEM;
	gather->query = query;
	gather->n_columns = n;
	gather->columns = (struct pfs_sql_column *)(gather + 1);
	gather->buffers = (struct buffer *)(gather->columns + n);
	gather->attrs = (struct pfs_attr_reader **)(gather->buffers + n);
	gather->wanted = (bool *)(gather->attrs + n);
	return 0;
}

int pfs_gathered_copy(struct pfs_gathered **out, const struct pfs_gathered *of, const int *columns,
		    size_t n)
{
	int error;

	PFS_TRY(pfs_gathered_open(out, of->query));
	for (size_t i = 0; i < n; i++) {
		struct pfs_attr_reader **attr = &(*out)->attrs[columns[i]];

		(*out)->wanted[columns[i]] = true;
		error = of->attrs[columns[i]] && !*attr
				? pfs_attr_reader_copy(attr, of->attrs[columns[i]])
				: 0;
		if (error) {
			pfs_gathered_close(*out);
			*out = NULL;
			return error;
		}
	}
	return 0;
}

void pfs_gathered_close(struct pfs_gathered *gather)
{
	if (!gather)
		return;
	for (size_t i = 0; i < gather->n_columns; i++) {
		free_buffer(&gather->buffers[i]);
		pfs_attr_reader_close(gather->attrs[i]);
	}
	if (gather->memory)
		(void)use(gather, -gather->memory);
	free(gather);
}

void pfs_gathered_rest(struct pfs_gathered *gather)
{
	for (size_t i = 0; i < gather->n_columns; i++) {
		struct buffer *buffer = &gather->buffers[i];

		if (buffer->rows > ROWS_MIN || buffer->capacity > BYTES_KEPT) {
			free_buffer(buffer);
			*buffer = (struct buffer){.rows = 0};
		}
		pfs_attr_reader_close(gather->attrs[i]);
		gather->attrs[i] = NULL;
		gather->wanted[i] = false;
	}
	(void)use(gather, -gather->memory);
	gather->n = 0;
	gather->query = NULL;
}

void pfs_gathered_go_on(struct pfs_gathered *gather, struct pfs_query *query)
{
	gather->query = query;
}

struct pfs_sql_column *pfs_gathered_columns(struct pfs_gathered *gather)
{
	return gather->columns;
}

int64_t pfs_gathered_memory(const struct pfs_gathered *gather)
{
	return gather->memory;
}

size_t pfs_gathered_attrs(const struct pfs_gathered *gather)
{
	size_t n = 0;

	for (size_t i = 0; i < gather->n_columns; i++)
		n += gather->wanted[i] && gather->attrs[i];
	return n;
}

size_t pfs_gathered_bytes(const struct pfs_gathered *gather)
{
	size_t bytes = 0;

	for (size_t i = 0; gather->n && i < gather->n_columns; i++) {
		if (gather->columns[i].kind == PFS_SQL_BYTES)
			bytes += gather->columns[i].offset[gather->n];
	}
	return bytes;
}
