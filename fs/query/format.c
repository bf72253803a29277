/* SPDX-License-Identifier: MIT */
/* Rows as text: TSV, CSV, JSON, lists of paths.  Aligned columns are in aligned.c. */
#include "fs/query/format.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

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

/* ---- output, gathered ---- */

void pfs_out_flush(struct pfs_out *out)
{
	if (!out->error && out->used)
		out->error = out->sink->write(out->sink->arg, out->data, out->used);
	out->used = 0;
}

void pfs_out_bytes(struct pfs_out *out, const void *bytes, size_t size)
{
	if (size > sizeof(out->data) - out->used) {
		pfs_out_flush(out);
		if (size > sizeof(out->data)) {
			if (!out->error)
				out->error = out->sink->write(out->sink->arg, bytes, size);
			return;
		}
	}
	memcpy(out->data + out->used, bytes, size);
	out->used += size;
}

void pfs_out_text(struct pfs_out *out, const char *text)
{
	pfs_out_bytes(out, text, strlen(text));
}

static void out_char(struct pfs_out *out, char c)
{
	if (out->used == sizeof(out->data))
		pfs_out_flush(out);
	out->data[out->used++] = c;
}

/* The value's text; numbers are printed into buffer. */
static const char *text_of(size_t *size, char buffer[PFS_NUMBER_SIZE],
			   const struct pfs_query_value *value)
{
	switch (value->type) {
	case PFS_VALUE_INT:
		*size = pfs_print_integer(buffer, value->integer);
		return buffer;
	case PFS_VALUE_REAL:
		*size = pfs_print_real(buffer, value->real);
		return buffer;
	case PFS_VALUE_TEXT:
	case PFS_VALUE_BLOB:
		*size = value->size;
		return value->size ? value->bytes : "";
	case PFS_VALUE_NULL:
		break;
	}
	*size = 0;
	return "";
}

/* ---- TSV ---- */

/* What a byte is written as after a backslash; 0: itself, without one. */
static const char tsv_escape[256] = {['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r', ['\\'] = '\\'};

static void tsv_bytes(struct pfs_out *out, const char *bytes, size_t size)
{
	size_t from = 0, i;

	for (i = 0; i < size; i++) {
		char escape = tsv_escape[(unsigned char)bytes[i]];

		if (!escape)
			continue;
		pfs_out_bytes(out, bytes + from, i - from);
		out_char(out, '\\');
		out_char(out, escape);
		from = i + 1;
	}
	pfs_out_bytes(out, bytes + from, size - from);
}

void pfs_tsv_value(struct pfs_out *out, const struct pfs_query_value *value)
{
	char buffer[PFS_NUMBER_SIZE];
	size_t size;
	const char *text = text_of(&size, buffer, value);

	if (text == buffer) /* nothing to escape */
		pfs_out_bytes(out, text, size);
	else
		tsv_bytes(out, text, size);
}

static void tsv_header(struct pfs_out *out, const struct pfs_query *query)
{
	size_t n = pfs_query_columns(query), i;

	for (i = 0; i < n; i++) {
		const char *name = pfs_query_column_name(query, i);

		if (i)
			out_char(out, '\t');
		tsv_bytes(out, name, strlen(name));
	}
	if (n)
		out_char(out, '\n');
}

static void tsv_row(struct pfs_out *out, const struct pfs_query *query)
{
	size_t n = pfs_query_columns(query), i;

	for (i = 0; i < n; i++) {
		struct pfs_query_value value;

		if (i)
			out_char(out, '\t');
		pfs_query_value(query, i, &value);
		pfs_tsv_value(out, &value);
	}
	out_char(out, '\n');
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
	out_char(out, '"');
	for (i = 0; i < size; i++) {
		if (bytes[i] == '"')
			out_char(out, '"');
		out_char(out, bytes[i]);
	}
	out_char(out, '"');
}

static void csv_header(struct pfs_out *out, const struct pfs_query *query)
{
	size_t n = pfs_query_columns(query), i;

	for (i = 0; i < n; i++) {
		const char *name = pfs_query_column_name(query, i);

		if (i)
			out_char(out, ',');
		csv_bytes(out, name, strlen(name));
	}
	if (n)
		pfs_out_text(out, "\r\n");
}

static void csv_row(struct pfs_out *out, const struct pfs_query *query)
{
	size_t n = pfs_query_columns(query), i;

	for (i = 0; i < n; i++) {
		char buffer[PFS_NUMBER_SIZE];
		struct pfs_query_value value;
		const char *text;
		size_t size;

		if (i)
			out_char(out, ',');
		pfs_query_value(query, i, &value);
		text = text_of(&size, buffer, &value);
		if (value.type != PFS_VALUE_NULL)
			csv_bytes(out, text, size);
	}
	pfs_out_text(out, "\r\n");
}

/* ---- JSON ---- */

/* The bytes of the UTF-8 character at text, 0 if there is none: overlong forms, surrogates and what
 * is beyond U+10FFFF are none. */
size_t pfs_utf8_length(const char *text, size_t size)
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf;
	size_t n, i;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (n > size || p[1] < low || p[1] > high)
		return 0;
	for (i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

static void json_escape(struct pfs_out *out, unsigned char c)
{
	static const char shorthand[256] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
					    ['\r'] = 'r', ['"'] = '"',	['\\'] = '\\'};
	char text[8];

	if (shorthand[c]) {
		out_char(out, '\\');
		out_char(out, shorthand[c]);
		return;
	}
	(void)snprintf(text, sizeof(text), "\\u%04x", c);
	pfs_out_text(out, text);
}

/* A string with its quotes; false if a byte of it was no UTF-8. */
bool pfs_out_json(struct pfs_out *out, const char *bytes, size_t size)
{
	bool valid = true;
	size_t i = 0;

	out_char(out, '"');
	while (i < size) {
		unsigned char c = (unsigned char)bytes[i];
		size_t n = pfs_utf8_length(bytes + i, size - i);

		if (n == 0) {
			pfs_out_text(out, "\xef\xbf\xbd");
			valid = false;
			n = 1;
		} else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
			json_escape(out, c);
		} else {
			pfs_out_bytes(out, bytes + i, n);
		}
		i += n;
	}
	out_char(out, '"');
	return valid;
}

static void json_base64(struct pfs_out *out, const char *bytes, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)bytes;
	size_t i;

	out_char(out, '"');
	for (i = 0; i < size; i += 3) {
		size_t left = size - i;
		unsigned bits = (unsigned)p[i] << 16;

		if (left > 1)
			bits |= (unsigned)p[i + 1] << 8;
		if (left > 2)
			bits |= p[i + 2];
		out_char(out, digits[bits >> 18]);
		out_char(out, digits[bits >> 12 & 63]);
		out_char(out, left > 1 ? digits[bits >> 6 & 63] : '=');
		out_char(out, left > 2 ? digits[bits & 63] : '=');
	}
	out_char(out, '"');
}

static void json_number(struct pfs_out *out, const struct pfs_query_value *value)
{
	char buffer[PFS_NUMBER_SIZE];
	size_t size;
	const char *text = text_of(&size, buffer, value);

	/* JSON has no infinities; what is too large reads as one. */
	if (value->type == PFS_VALUE_REAL && (value->real - value->real) != 0)
		pfs_out_text(out, value->real < 0 ? "-9e999" : "9e999");
	else
		pfs_out_bytes(out, text, size);
}

static void json_member(struct pfs_out *out, const char *name, const struct pfs_query_value *value)
{
	(void)pfs_out_json(out, name, strlen(name));
	out_char(out, ':');
	if (value->type == PFS_VALUE_NULL) {
		pfs_out_text(out, "null");
	} else if (value->type == PFS_VALUE_INT || value->type == PFS_VALUE_REAL) {
		json_number(out, value);
	} else if (!pfs_out_json(out, value->bytes, value->size)) {
		char longer[256];

		(void)snprintf(longer, sizeof(longer), "%.200s_bytes", name);
		out_char(out, ',');
		(void)pfs_out_json(out, longer, strlen(longer));
		out_char(out, ':');
		json_base64(out, value->bytes, value->size);
	}
}

static void json_header(struct pfs_out *out, const struct pfs_query *query PFS_UNUSED)
{
	out_char(out, '[');
}

static void json_row(struct pfs_out *out, const struct pfs_query *query)
{
	size_t n = pfs_query_columns(query), i;

	pfs_out_text(out, out->rows ? ",\n{" : "\n{");
	for (i = 0; i < n; i++) {
		struct pfs_query_value value;

		if (i)
			out_char(out, ',');
		pfs_query_value(query, i, &value);
		json_member(out, pfs_query_column_name(query, i), &value);
	}
	out_char(out, '}');
}

static void json_end(struct pfs_out *out)
{
	pfs_out_text(out, out->rows ? "\n]\n" : "]\n");
}

/* ---- paths ---- */

static void paths_header(struct pfs_out *out, const struct pfs_query *query)
{
	size_t n = pfs_query_columns(query), i;

	out->path = 0;
	for (i = 0; i < n; i++) {
		if (strcmp(pfs_query_column_name(query, i), "path") == 0) {
			out->path = i;
			return;
		}
	}
}

static void path_row(struct pfs_out *out, const struct pfs_query *query, char end)
{
	char buffer[PFS_NUMBER_SIZE];
	struct pfs_query_value value;
	const char *text;
	size_t size;

	pfs_query_value(query, out->path, &value);
	if (value.type == PFS_VALUE_NULL)
		return; /* no path, rather than an empty one */
	text = text_of(&size, buffer, &value);
	pfs_out_bytes(out, text, size);
	out_char(out, end);
}

static void paths_row(struct pfs_out *out, const struct pfs_query *query)
{
	path_row(out, query, '\n');
}

static void paths0_row(struct pfs_out *out, const struct pfs_query *query)
{
	path_row(out, query, '\0');
}

/* ---- */

static const struct writer {
	void (*header)(struct pfs_out *out, const struct pfs_query *query);
	void (*row)(struct pfs_out *out, const struct pfs_query *query);
	void (*end)(struct pfs_out *out); /* NULL: nothing */
} writers[] = {
	[PFS_FORMAT_TSV] = {tsv_header, tsv_row, NULL},
	[PFS_FORMAT_CSV] = {csv_header, csv_row, NULL},
	[PFS_FORMAT_JSON] = {json_header, json_row, json_end},
	[PFS_FORMAT_PATHS] = {paths_header, paths_row, NULL},
	[PFS_FORMAT_PATHS0] = {paths_header, paths0_row, NULL},
};

int pfs_format_failed(struct pfs_query_error *error, int rc)
{
	*error = (struct pfs_query_error){.error = rc, .offset = -1};
	if (rc == -EFBIG)
		(void)snprintf(error->text, sizeof(error->text),
			       "the answer is larger than the limit; ask for less");
	else if (rc == -ENOSPC)
		(void)snprintf(error->text, sizeof(error->text),
			       "no space for the answer in the folder for temporary files; "
			       "ask for less, or set TMPDIR");
	else
		(void)snprintf(error->text, sizeof(error->text), "cannot keep the answer: %s",
			       strerror(-rc));
	return rc;
}

static int write_rows(struct pfs_out *out, struct pfs_query *query, const struct writer *writer,
		      struct pfs_query_error *error)
{
	int rc;

	writer->header(out, query);
	while (!out->error && (rc = pfs_query_next(query, error)) != 0) {
		if (rc < 0)
			return rc;
		if (pfs_query_columns(query))
			writer->row(out, query);
		out->rows++;
	}
	if (writer->end)
		writer->end(out);
	pfs_out_flush(out);
	return out->error ? pfs_format_failed(error, out->error) : 0;
}

int pfs_format_rows(struct pfs_query *query, enum pfs_format format, const struct pfs_sink *sink,
		    struct pfs_query_error *error)
{
	struct pfs_out *out;
	int rc;

	if (format == PFS_FORMAT_TEXT)
		return pfs_format_aligned(query, sink, error);
	out = malloc(sizeof(*out));
	if (!out)
		return pfs_format_failed(error, -ENOMEM);
	*out = (struct pfs_out){.sink = sink};
	rc = write_rows(out, query, &writers[format], error);
	free(out);
	return rc;
}
