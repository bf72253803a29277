/* SPDX-License-Identifier: MIT */
/* Rows as text: TSV, CSV, JSON, lists of paths.  Aligned columns are in aligned.c. */
#include "fs/query/output/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "fs/query/internal.h"

int pfs_format_by_name(enum pfs_format *format, const char *name, size_t len)
{
	static const char *const names[] = {
		[PFS_FORMAT_TSV] = "tsv",     [PFS_FORMAT_CSV] = "csv",
		[PFS_FORMAT_JSON] = "json",   [PFS_FORMAT_TEXT] = "txt",
		[PFS_FORMAT_PATHS] = "paths", [PFS_FORMAT_PATHS0] = "paths0",
	};
	unsigned i;

	for (i = 0; i < PFS_COUNT(names); i++) {
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0) {
			*format = (enum pfs_format)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* ---- rows ---- */

struct rows {
	struct pfs_query *query;
	size_t n_columns;
	const char **names;
	size_t path; /* the column that lists of paths are made of */
};

/* One of them: the query's, or one of a part. */
struct row {
	const struct rows *of;
	const struct pfs_portion *part; /* NULL: the query's */
	size_t at;
};

static inline void value_of(struct pfs_sql_value *out, const struct row *row, size_t column)
{
	if (row->part)
		pfs_portion_value(row->part, row->at, column, out);
	else
		pfs_query_value(row->of->query, column, out);
}

/* The value's text; numbers are printed into buffer. */
static const char *text_of(size_t *size, char buffer[PFS_NUMBER_SIZE],
			   const struct pfs_sql_value *value)
{
	switch (value->type) {
	case PFS_SQL_INTEGER:
		*size = pfs_print_integer(buffer, value->integer);
		return buffer;
	case PFS_SQL_REAL:
		*size = pfs_print_real(buffer, value->real);
		return buffer;
	case PFS_SQL_TEXT:
	case PFS_SQL_BLOB:
		*size = value->size;
		return value->size ? value->bytes : "";
	case PFS_SQL_NULL:
		break;
	}
	*size = 0;
	return "";
}

/* ---- TSV ---- */

static void tsv_header(struct pfs_out *out, const struct rows *rows)
{
	for (size_t i = 0; i < rows->n_columns; i++) {
		if (i)
			pfs_out_char(out, '\t');
		pfs_tsv_bytes(out, rows->names[i], strlen(rows->names[i]));
	}
	if (rows->n_columns)
		pfs_out_char(out, '\n');
}

static void tsv_row(struct pfs_out *out, const struct row *row)
{
	size_t n = row->of->n_columns, i;

	for (i = 0; i < n; i++) {
		struct pfs_sql_value value;

		if (i)
			pfs_out_char(out, '\t');
		value_of(&value, row, i);
		pfs_tsv_value(out, &value);
	}
	pfs_out_char(out, '\n');
}

/* ---- CSV ---- */

static bool csv_is_plain(const char *bytes, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (bytes[i] == ',' || bytes[i] == '"' || bytes[i] == '\n' || bytes[i] == '\r')
			return false;
	return size > 0; /* an empty text has quotes, unlike NULL */
}

static void csv_bytes(struct pfs_out *out, const char *bytes, size_t size)
{
	size_t i;

	if (csv_is_plain(bytes, size)) {
		pfs_out_bytes(out, bytes, size);
		return;
	}
	pfs_out_char(out, '"');
	for (i = 0; i < size; i++) {
		if (bytes[i] == '"')
			pfs_out_char(out, '"');
		pfs_out_char(out, bytes[i]);
	}
	pfs_out_char(out, '"');
}

static void csv_header(struct pfs_out *out, const struct rows *rows)
{
	for (size_t i = 0; i < rows->n_columns; i++) {
		if (i)
			pfs_out_char(out, ',');
		csv_bytes(out, rows->names[i], strlen(rows->names[i]));
	}
	if (rows->n_columns)
		pfs_out_text(out, "\r\n");
}

static void csv_row(struct pfs_out *out, const struct row *row)
{
	size_t n = row->of->n_columns, i;

	for (i = 0; i < n; i++) {
		char buffer[PFS_NUMBER_SIZE];
		struct pfs_sql_value value;
		const char *text;
		size_t size;

		if (i)
			pfs_out_char(out, ',');
		value_of(&value, row, i);
		text = text_of(&size, buffer, &value);
		if (text == buffer) /* a number is plain */
			pfs_out_bytes(out, text, size);
		else if (value.type != PFS_SQL_NULL)
			csv_bytes(out, text, size);
	}
	pfs_out_text(out, "\r\n");
}

/* ---- JSON ---- */

static void json_header(struct pfs_out *out, const struct rows *rows PFS_UNUSED)
{
	pfs_out_char(out, '[');
}

static void json_row(struct pfs_out *out, const struct row *row)
{
	size_t n = row->of->n_columns, i;

	pfs_out_text(out, out->rows ? ",\n{" : "\n{");
	for (i = 0; i < n; i++) {
		struct pfs_sql_value value;

		if (i)
			pfs_out_char(out, ',');
		value_of(&value, row, i);
		pfs_json_member(out, row->of->names[i], &value);
	}
	pfs_out_char(out, '}');
}

static void json_end(struct pfs_out *out)
{
	pfs_out_text(out, out->rows ? "\n]\n" : "]\n");
}

/* ---- paths ---- */

static void path_row(struct pfs_out *out, const struct row *row, char end)
{
	char buffer[PFS_NUMBER_SIZE];
	struct pfs_sql_value value;
	const char *text;
	size_t size;

	value_of(&value, row, row->of->path);
	if (value.type == PFS_SQL_NULL)
		return; /* no path, rather than an empty one */
	text = text_of(&size, buffer, &value);
	pfs_out_bytes(out, text, size);
	pfs_out_char(out, end);
}

static void paths_row(struct pfs_out *out, const struct row *row)
{
	path_row(out, row, '\n');
}

static void paths0_row(struct pfs_out *out, const struct row *row)
{
	path_row(out, row, '\0');
}

/* ---- */

static const struct writer {
	void (*header)(struct pfs_out *out, const struct rows *rows); /* NULL: nothing, as of: */
	void (*row)(struct pfs_out *out, const struct row *row);
	void (*end)(struct pfs_out *out);
	/* Rows of a part until there are so many bytes, instead of row. */
	size_t (*part)(struct pfs_out *out, const struct pfs_portion *part, size_t n_columns,
		       size_t size);
} writers[] = {
	[PFS_FORMAT_TSV] = {tsv_header, tsv_row, NULL, pfs_tsv_part},
	[PFS_FORMAT_CSV] = {csv_header, csv_row, NULL, NULL},
	[PFS_FORMAT_JSON] = {json_header, json_row, json_end, NULL},
	[PFS_FORMAT_PATHS] = {NULL, paths_row, NULL, NULL},
	[PFS_FORMAT_PATHS0] = {NULL, paths0_row, NULL, NULL},
};

int pfs_format_failed(struct pfs_query_error *error, int failure)
{
	*error = (struct pfs_query_error){.error = failure, .offset = -1};
	if (failure == -EFBIG)
		(void)snprintf(error->text, sizeof(error->text),
			       "the answer is larger than the limit; ask for less");
	else if (failure == -ENOSPC)
		(void)snprintf(error->text, sizeof(error->text),
			       "no space for the answer in the folder for temporary files; "
			       "ask for less, or set TMPDIR");
	else
		(void)snprintf(error->text, sizeof(error->text), "cannot keep the answer: %s",
			       strerror(-failure));
	return failure;
}

/* ---- in parts, by all cores ---- */

#define STEP_ROWS  1024 /* or those of parts that are made at once */
#define PART_BYTES ((size_t)1 << 20) /* of a part's text: it ends with the row that passes it */

/* What is left of a chunk that the answer has lent. */
struct room {
	char *at;
	size_t size;
};

struct pfs_writing {
	enum pfs_format format;
	struct rows rows;
	const struct writer *writer;
	struct pfs_out out;
	struct pfs_out parts[PFS_PARTS_MAX]; /* made when they are first used */
	struct pfs_sink sink;
	struct pfs_answer *answer;	     /* NULL: the sink alone is known */
	pthread_mutex_t lock;
	/* protected by lock */
	struct room rooms[PFS_PARTS_MAX]; /* that no part is written to */
	size_t n_rooms, largest; /* of the parts' texts */
};

/* Room in the answer for a text that is not much longer than those before.  False: there is
 * none. */
static bool take_room(struct pfs_writing *writing, struct room *room)
{
	size_t wanted;

	if (!writing->answer)
		return false;
	(void)pthread_mutex_lock(&writing->lock);
	*room = writing->n_rooms ? writing->rooms[--writing->n_rooms] : (struct room){NULL, 0};
	wanted = writing->largest + writing->largest / 4 + PFS_OUT_SIZE;
	(void)pthread_mutex_unlock(&writing->lock);
	if (room->size < wanted)
		*room = (struct room){pfs_answer_lend(writing->answer), PFS_ANSWER_CHUNK};
	return room->at;
}

static void put_room(struct pfs_writing *writing, const struct room *room, size_t used)
{
	PFS_LOCKED(&writing->lock);
	writing->largest = PFS_MAX(writing->largest, used);
	writing->rooms[writing->n_rooms++] = *room;
}

/* Returns how many rows. */
static size_t write_text(const struct pfs_writing *writing, struct pfs_out *out,
			 const struct pfs_portion *part)
{
	const struct writer *writer = writing->writer;
	struct row row = {&writing->rows, part, 0};

	if (writer->part)
		return writer->part(out, part, writing->rows.n_columns, PART_BYTES);
	while (row.at < part->n && out->used < PART_BYTES && !out->error) {
		writer->row(out, &row);
		row.at++;
	}
	return row.at;
}

static int write_part(void *arg, size_t number, const struct pfs_portion *part)
{
	struct pfs_writing *writing = arg;
	struct pfs_out *out = &writing->parts[number];
	struct room room = {NULL, 0};
	size_t rows;

	if (take_room(writing, &room)) {
		pfs_out_finish(out);
		pfs_out_init_lent(out, room.at, room.size);
	} else if (!out->data || out->is_lent) {
		PFS_TRY(pfs_out_init(out, NULL));
	}
	out->used = 0;
	out->rows = writing->out.rows; /* not the first ones */
	rows = write_text(writing, out, part);
	if (room.at) {
		size_t used = out->is_lent ? out->used : 0;

		room.at += used;
		room.size -= used;
		put_room(writing, &room, out->used);
	}
	return out->error ? out->error : (int)rows;
}

static int write_one(struct pfs_writing *writing, struct pfs_out *part)
{
	const struct pfs_sink *sink = writing->out.sink;

	if (part->is_lent)
		return pfs_answer_add(writing->answer, part->data, part->used);
	return part->used ? sink->write(sink->arg, part->data, part->used) : 0;
}

static void write_parts(struct pfs_writing *writing, size_t n)
{
	struct pfs_out *out = &writing->out;

	pfs_out_flush(out);
	for (size_t i = 0; i < n && !out->error; i++)
		out->error = write_one(writing, &writing->parts[i]);
}

/* ---- */

#define MANY 2

/* As pfs_query_next; MANY: parts. */
static int write_some(struct pfs_writing *writing, struct pfs_query_error *error)
{
	struct rows *rows = &writing->rows;
	const struct row row = {rows, NULL, 0};
	size_t n_parts;
	int status = pfs_query_parts(rows->query, &n_parts, write_part, writing, error);

	if (status > 0)
		write_parts(writing, n_parts);
	if (status)
		return status < 0 ? status : MANY;
	status = pfs_query_next(rows->query, error);
	if (status <= 0)
		return status;
	if (rows->n_columns)
		writing->writer->row(&writing->out, &row);
	writing->out.rows++;
	return 1;
}

static int name_columns(struct rows *rows)
{
	rows->n_columns = pfs_query_columns(rows->query);
	rows->names = calloc(rows->n_columns + 1, sizeof(*rows->names));
	if (!rows->names)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n_columns; i++)
		rows->names[i] = pfs_query_column_name(rows->query, i);
	for (size_t i = rows->n_columns; i > 0; i--)
		if (strcmp(rows->names[i - 1], "path") == 0)
			rows->path = i - 1;
	return 0;
}

int pfs_writing_open(struct pfs_writing **out, struct pfs_query *query, enum pfs_format format,
		     const struct pfs_sink *sink, struct pfs_answer *answer)
{
	struct pfs_writing *writing = calloc(1, sizeof(*writing));
	int error;

	*out = NULL;
	if (!writing)
		return -ENOMEM;
	writing->format = format;
	writing->rows.query = query;
	writing->writer = &writers[format];
	writing->sink = *sink;
	writing->answer = answer;
	(void)pthread_mutex_init(&writing->lock, NULL);
	error = name_columns(&writing->rows);
	if (!error)
		error = pfs_out_init(&writing->out, &writing->sink);
	if (error) {
		pfs_writing_close(writing);
		return error;
	}
	if (format != PFS_FORMAT_TEXT && writing->writer->header)
		writing->writer->header(&writing->out, &writing->rows);
	*out = writing;
	return 0;
}

void pfs_writing_close(struct pfs_writing *writing)
{
	if (!writing)
		return;
	free(writing->rows.names);
	pfs_out_finish(&writing->out);
	for (size_t i = 0; i < PFS_PARTS_MAX; i++)
		pfs_out_finish(&writing->parts[i]);
	(void)pthread_mutex_destroy(&writing->lock);
	free(writing);
}

int pfs_writing_step(struct pfs_writing *writing, struct pfs_query_error *error)
{
	struct pfs_out *out = &writing->out;
	uint64_t rows = out->rows;
	int status = 1;

	if (writing->format == PFS_FORMAT_TEXT)
		return pfs_format_aligned(writing->rows.query, &writing->sink, error);
	while (status == 1 && !out->error && out->rows - rows < STEP_ROWS) {
		status = write_some(writing, error);
		if (status < 0)
			return status;
	}
	if (!status && writing->writer->end)
		writing->writer->end(out);
	if (!status)
		pfs_out_flush(out);
	return out->error ? pfs_format_failed(error, out->error) : status > 0;
}

int pfs_format_rows(struct pfs_query *query, enum pfs_format how, const struct pfs_sink *sink,
		    struct pfs_query_error *error)
{
	struct pfs_writing *writing;
	int status = pfs_writing_open(&writing, query, how, sink, NULL);

	if (status)
		return pfs_format_failed(error, status);
	do
		status = pfs_writing_step(writing, error);
	while (status > 0);
	pfs_writing_close(writing);
	return status;
}
