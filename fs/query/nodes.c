/* SPDX-License-Identifier: MIT */
/* The rows of nodes.  A scan first selects slots, then gathers the columns that the statement uses
 * for a batch of them at a time, so that the tree is held for a batch only; a tree that changes in
 * between ends the statement with -EAGAIN. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/query/internal.h"

#define FIRST_BATCH 128 /* rows: a LIMIT may want no more */
#define BATCH	    4096
#define LARGE_BATCH 16384 /* past SQLite; */
#define MEMORY_PART 4	  /* that much of what is left of the memory it may take */

/* What a column of the batch is kept in. */
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

struct pfs_sql_scan {
	struct pfs_query *query;
	unsigned id; /* of the plan */
	struct pfs_slots slots;
	size_t next, batch; /* the next slot; how many rows the next batch may have */
	struct pfs_ordered *ordered; /* instead of slots */
	struct pfs_pushed *pushed; /* what the slots were found by */
	uint32_t *room; /* a batch of its slots */
	size_t room_rows;
	uint64_t seen; /* rows fetched */
	bool is_limited, is_large; /* the statement has a LIMIT; batches are LARGE_BATCH */
	size_t held; /* bytes of memory for slots, either way */
	bool is_fetched; /* the first batch, by start */
	const uint32_t *rows; /* slots of the batch */
	size_t n;	      /* of them */
	int64_t memory;	      /* bytes accounted for */
	bool *wanted; /* columns to gather */
	struct pfs_sql_column *columns;
	struct buffer *buffers;
	struct pfs_attr_reader **attrs; /* by column */
};

/* ---- memory ---- */

static int use(struct pfs_sql_scan *scan, int64_t bytes)
{
	scan->memory += bytes;
	return pfs_query_use(scan->query, bytes);
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

static int make_room(struct pfs_sql_scan *scan, size_t column)
{
	enum pfs_node_kind kind = scan->query->connection->table->columns[column].kind;
	struct buffer *buffer = &scan->buffers[column];
	size_t rows = PFS_MAX(scan->n, FIRST_BATCH);

	if (rows <= buffer->rows)
		return 0;
	PFS_TRY(use(scan, (int64_t)(rows - buffer->rows) * row_size(kind)));
	buffer->rows = rows;
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

static int gather_bytes(struct pfs_sql_scan *scan, struct buffer *buffer, enum pfs_field field)
{
	size_t before = buffer->capacity;
	int error = pfs_scan_bytes(scan->query->tree, &buffer->bytes, &buffer->capacity,
				   buffer->offset, buffer->is_null, field, scan->rows, scan->n);

	return error ? error : use(scan, (int64_t)(buffer->capacity - before));
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

static int gather_attrs(struct pfs_sql_scan *scan, size_t i)
{
	const struct pfs_node_column *column = &scan->query->connection->table->columns[i];
	struct buffer *buffer = &scan->buffers[i];

	PFS_TRY(pfs_attr_read(scan->attrs[i], buffer->attrs, scan->rows, scan->n));
	for (size_t row = 0; row < scan->n; row++) {
		/* as getxattr(2) would have it */
		if (!pfs_visible_may_read(scan->query->visible, scan->query->tree, scan->rows[row]))
			buffer->attrs[row].is_set = false;
		from_attr(&buffer->values[row], &buffer->attrs[row], column->type);
	}
	scan->columns[i] =
		(struct pfs_sql_column){.kind = PFS_SQL_VALUES, .values = buffer->values};
	return 0;
}

/* What the column needs before the tree is held. */
static int get_ready(struct pfs_sql_scan *scan, size_t i)
{
	if (scan->query->connection->table->columns[i].kind != PFS_NODE_ATTR || scan->attrs[i])
		return 0;
	return pfs_query_attr(scan->query, &scan->attrs[i], i);
}

/* The batch's values of one column.  The tree is held. */
static int gather_held(struct pfs_sql_scan *scan, size_t i)
{
	struct pfs_query *query = scan->query;
	const struct pfs_node_column *column = &query->connection->table->columns[i];
	struct buffer *buffer = &scan->buffers[i];

	PFS_TRY(make_room(scan, i));
	if (column->kind == PFS_NODE_ATTR)
		return gather_attrs(scan, i);
	if (column->kind == PFS_NODE_BYTES) {
		PFS_TRY(gather_bytes(scan, buffer, column->field));
		scan->columns[i] = (struct pfs_sql_column){
			.kind = PFS_SQL_BYTES,
			.bytes = buffer->bytes,
			.offset = buffer->offset,
			.is_null = buffer->is_null,
		};
		return 0;
	}
	PFS_TRY(pfs_visible_integers(query->visible, query->tree, buffer->integers, column->field,
				     scan->rows, scan->n));
	if (column->kind == PFS_NODE_TYPE)
		name_types(buffer->values, buffer->integers, scan->n);
	else if (column->kind != PFS_NODE_INTEGER)
		PFS_TRY(pfs_owners_names(query->queries->owners, buffer->values, buffer->integers,
					 scan->n, column->kind == PFS_NODE_GROUP));
	scan->columns[i] = (struct pfs_sql_column){
		.kind = column->kind == PFS_NODE_INTEGER ? PFS_SQL_INTEGERS : PFS_SQL_VALUES,
		.integers = buffer->integers,
		.values = buffer->values,
	};
	return 0;
}

static int gather_wanted(struct pfs_sql_scan *scan)
{
	bool any = false;
	int error = 0;

	for (size_t i = 0; i < scan->query->connection->table->n; i++) {
		scan->columns[i].kind = PFS_SQL_ABSENT;
		any |= scan->wanted[i];
	}
	if (!any)
		return 0;
	PFS_TRY(pfs_query_hold(scan->query));
	for (size_t i = 0; i < scan->query->connection->table->n && !error; i++) {
		if (scan->wanted[i])
			error = gather_held(scan, i);
	}
	pfs_query_release(scan->query);
	return error;
}

static int gather(struct pfs_sql_scan *scan, struct pfs_sql_rows *rows PFS_UNUSED, int column)
{
	int error;

	scan->wanted[column] = true;
	PFS_TRY(get_ready(scan, (size_t)column));
	PFS_TRY(pfs_query_hold(scan->query));
	error = gather_held(scan, (size_t)column);
	pfs_query_release(scan->query);
	return error;
}

static int rowid(struct pfs_sql_scan *scan, int64_t *out, size_t row)
{
	if (scan->columns[pfs_node_ino].kind == PFS_SQL_ABSENT)
		PFS_TRY(gather(scan, NULL, pfs_node_ino));
	*out = scan->columns[pfs_node_ino].integers[row];
	return 0;
}

/* ---- scans ---- */

/* Forgets the slots. */
static int let_go(struct pfs_sql_scan *scan)
{
	PFS_TRY(use(scan, -(int64_t)scan->held));
	scan->held = 0;
	pfs_slots_finish(&scan->slots);
	scan->slots = (struct pfs_slots){.slot = NULL};
	pfs_ordered_close(scan->ordered);
	scan->ordered = NULL;
	pfs_pushed_finish(scan->pushed);
	return 0;
}

static void close_scan(struct pfs_sql_scan *scan)
{
	struct pfs_connection *connection = scan->query->connection;

	for (size_t i = 0; i < connection->table->n; i++) {
		if (!scan->wanted[i])
			continue;
		free_buffer(&scan->buffers[i]);
		pfs_attr_reader_close(scan->attrs[i]);
	}
	(void)let_go(scan);
	scan->query->memory -= (uint64_t)scan->memory;
	if (!connection->spare) {
		connection->spare = scan->pushed;
		scan->pushed = NULL;
	}
	free(scan->pushed);
	free(scan->room);
	free(scan);
}

/* One for each column behind it: many a statement takes no longer than to allocate them one by one. */
static int open_scan(void *user, struct pfs_sql_scan **out)
{
	struct pfs_query *query = user;
	struct pfs_connection *connection = query->connection;
	size_t n = connection->table->n;
	struct pfs_sql_scan *scan =
		calloc(1, sizeof(*scan) + n * (sizeof(*scan->columns) + sizeof(*scan->buffers) +
					       sizeof(struct pfs_attr_reader *) + sizeof(bool)));

	if (!scan)
		return -ENOMEM;
	scan->query = query;
	scan->columns = (struct pfs_sql_column *)(scan + 1);
	scan->buffers = (struct buffer *)(scan->columns + n);
	scan->attrs = (struct pfs_attr_reader **)(scan->buffers + n);
	scan->wanted = (bool *)(scan->attrs + n);
	scan->pushed = connection->spare ? connection->spare : malloc(sizeof(*scan->pushed));
	connection->spare = NULL;
	if (!scan->pushed) {
		free(scan);
		return -ENOMEM;
	}
	scan->pushed->n_text = 0;
	*out = scan;
	return 0;
}

/* How rows are to come, as the image says it. */
static void spell_order(struct pfs_order *out, const struct pfs_query *query,
			const struct pfs_sql_begin *begin)
{
	for (size_t i = 0; i < begin->n_order; i++)
		out[i] = (struct pfs_order){
			.field = pfs_push_column(query->connection->table, begin->order[i].column)
					 ->field,
			.descending = begin->order[i].descending,
		};
}

static int select_ordered(struct pfs_sql_scan *scan, const struct pfs_sql_begin *begin)
{
	struct pfs_query *query = scan->query;
	struct pfs_order order[PFS_SQL_ORDER_MAX];
	struct pfs_ordered_question question = {
		.order = order,
		.n_order = begin->n_order,
		.predicates = scan->pushed->predicates,
		.n = scan->pushed->n,
		.limit = begin->limit,
		.stop = &query->stop,
	};

	spell_order(order, query, begin);
	PFS_TRY(pfs_ordered_open(&scan->ordered, query->tree, &question));
	scan->held = pfs_ordered_memory(scan->ordered);
	pfs_plan_record(query, scan->id, scan->pushed, pfs_ordered_selected(scan->ordered),
			scan->ordered);
	return 0;
}

static int select_slots(struct pfs_sql_scan *scan)
{
	struct pfs_query *query = scan->query;

	PFS_TRY(pfs_scan_select(query->tree, &scan->slots, scan->pushed->predicates,
				scan->pushed->n, NULL, &query->stop));
	scan->held = scan->slots.n * sizeof(*scan->slots.slot);
	pfs_plan_record(query, scan->id, scan->pushed, scan->slots.n, NULL);
	return 0;
}

/* Finds the slots.  The tree is held. */
static int find(struct pfs_sql_scan *scan, const struct pfs_sql_begin *begin)
{
	int error = pfs_push_arguments(scan->query, scan->pushed, begin->arguments, begin->n);

	if (!error && !scan->pushed->nothing)
		error = begin->n_order ? select_ordered(scan, begin) : select_slots(scan);
	return error && error != -ENOENT ? error : use(scan, (int64_t)scan->held);
}

/* The slots of the next batch, scan->n of them. */
static int next_slots(struct pfs_sql_scan *scan)
{
	if (!scan->ordered) {
		scan->rows = scan->slots.n ? scan->slots.slot + scan->next : NULL;
		scan->n = PFS_MIN(scan->slots.n - scan->next, scan->batch);
		scan->next += scan->n;
		return 0;
	}
	if (scan->batch > scan->room_rows) {
		PFS_TRY(replace_array(&scan->room, scan->batch, sizeof(*scan->room)));
		scan->room_rows = scan->batch;
	}
	scan->rows = scan->room;
	scan->n = scan->batch;
	return pfs_ordered_next(scan->ordered, scan->room, &scan->n);
}

/* Whether there are many rows in all, as far as that is known. */
static bool is_long(const struct pfs_sql_scan *scan)
{
	uint64_t rows = scan->slots.n;

	if (scan->is_limited || !scan->n)
		return false;
	if (scan->ordered)
		rows = pfs_ordered_walks(scan->ordered) ? scan->seen
							: pfs_ordered_selected(scan->ordered);
	return pfs_batch_is_worth(scan->query, rows);
}

void pfs_nodes_enlarge(struct pfs_sql_scan *scan)
{
	scan->is_large = true;
}

/* How many rows the next batch may have, by what the last one took. */
static size_t next_batch(const struct pfs_sql_scan *scan)
{
	const struct pfs_query *query = scan->query;
	size_t batch = PFS_MIN(scan->batch * 4, scan->is_large ? LARGE_BATCH : BATCH);
	uint64_t left, row;

	if (batch <= BATCH || !query->memory_limit)
		return batch;
	left = query->memory_limit - PFS_MIN(query->memory_limit, query->memory);
	row = (uint64_t)(scan->memory - (int64_t)scan->held) / BATCH + 1;
	return (size_t)PFS_MAX(PFS_MIN(batch, left / MEMORY_PART / row), BATCH);
}

static int fetch_held(struct pfs_sql_scan *scan)
{
	PFS_TRY(next_slots(scan));
	scan->batch = next_batch(scan);
	scan->seen += scan->n;
	pfs_plan_seen(scan->query, scan->id, scan->n);
	return scan->n ? gather_wanted(scan) : 0;
}

static int start(struct pfs_sql_scan *scan, const struct pfs_sql_begin *begin)
{
	int error;

	PFS_TRY(let_go(scan));
	scan->id = begin->id;
	scan->next = 0;
	scan->n = 0;
	scan->seen = 0;
	scan->is_limited = begin->limit != UINT64_MAX;
	scan->is_large = false;
	scan->batch = begin->limit < FIRST_BATCH ? PFS_MAX(begin->limit, 1) : FIRST_BATCH;
	for (size_t i = 0; i < scan->query->connection->table->n && i < 63; i++)
		scan->wanted[i] |= begin->columns >> i & 1;
	for (size_t i = 0; i < scan->query->connection->table->n; i++) {
		if (scan->wanted[i])
			PFS_TRY(get_ready(scan, i));
	}
	if (!scan->query->holds)
		pfs_scan_prepare(scan->query->tree);
	PFS_TRY(pfs_query_hold(scan->query));
	error = find(scan, begin);
	if (!error)
		error = fetch_held(scan);
	pfs_query_release(scan->query);
	scan->is_fetched = true;
	return error;
}

static int fetch(struct pfs_sql_scan *scan, struct pfs_sql_rows *rows)
{
	int error = 0;

	if (scan->query->stop)
		return -EINTR;
	if (!scan->ordered && scan->next == scan->slots.n && !scan->is_fetched) {
		scan->n = 0;
	} else if (!scan->is_fetched) {
		PFS_TRY(pfs_query_hold(scan->query));
		error = fetch_held(scan);
		pfs_query_release(scan->query);
	}
	scan->is_fetched = false;
	rows->columns = scan->columns;
	rows->n = error ? 0 : scan->n;
	scan->query->long_scan = !error && is_long(scan) ? scan : NULL;
	return error;
}

static const char *const functions[] = {
	[PFS_CALL_UNDER] = "under",
	[PFS_CALL_CHILD_OF] = "child_of",
	[PFS_CALL_ANCESTOR_OF] = "ancestor_of",
	NULL,
};

const struct pfs_sql_source pfs_nodes_source = {
	.name = "nodes",
	.functions = functions,
	.plan = pfs_push_plan,
	.open = open_scan,
	.close = close_scan,
	.start = start,
	.fetch = fetch,
	.gather = gather,
	.rowid = rowid,
	.update = pfs_nodes_update,
};
