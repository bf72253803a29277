/* SPDX-License-Identifier: MIT */
#include "base/csv.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum state {
	FIELD_START, /* after the record's start or a comma */
	PLAIN,	     /* in a field without quotes */
	QUOTED,
	/* after a quote in a quoted field: the field ends, or the next quote is doubled */
	QUOTE,
	QUOTE_CR, /* after that and a CR */
	RECORD_END,
};

struct parser {
	struct pfs_csv *csv;
	enum state state;
	size_t start;	     /* where the field starts in the text */
	uint64_t quote_line; /* where the quoted field began */
	bool quoted;	     /* the field is in quotes */
	char delimiter;	     /* or its last byte */
	bool ncbi;
	const char *why;
};

static int end_field(struct parser *parser)
{
	struct pfs_csv *csv = parser->csv;

	PFS_TRY(pfs_grow(&csv->fields, &csv->fields_capacity, csv->n_fields + 1,
			 sizeof(*csv->fields)));
	/* The text may still move, so pfs_csv_next fills in the address. */
	csv->fields[csv->n_fields++] = (struct pfs_csv_field){
		.text = NULL,
		.len = csv->size - parser->start,
		.quoted = parser->quoted,
	};
	parser->quoted = false;
	parser->start = csv->size;
	return 0;
}

static int end_record(struct parser *parser)
{
	struct pfs_csv *csv = parser->csv;

	if (parser->state == PLAIN && csv->size > parser->start && csv->text[csv->size - 1] == '\r')
		csv->size--; /* the first byte of CRLF */
	if (parser->ncbi && csv->size - parser->start >= 2 &&
	    memcmp(csv->text + csv->size - 2, PFS_CSV_NCBI, 2) == 0)
		csv->size -= 2;
	parser->state = RECORD_END;
	return end_field(parser);
}

static int bad(struct parser *parser, const char *why)
{
	parser->why = why;
	return -EBADMSG;
}

static int take_quoted(struct parser *parser, char c)
{
	struct pfs_csv *csv = parser->csv;

	if (parser->state == QUOTED) {
		if (c == '"')
			parser->state = QUOTE;
		else
			csv->text[csv->size++] = c;
		return 0;
	}
	if (c == '\n')
		return end_record(parser);
	if (parser->state == QUOTE_CR)
		return bad(parser, "a carriage return without a line feed after a quoted field");
	if (c == parser->delimiter) {
		parser->state = FIELD_START;
		return end_field(parser);
	}
	switch (c) {
	case '"':
		csv->text[csv->size++] = c;
		parser->state = QUOTED;
		return 0;
	case '\r':
		parser->state = QUOTE_CR;
		return 0;
	default:
		return bad(parser,
			   "text after the closing quote of a field; double quotes inside it");
	}
}

/* The delimiter, or its last byte, has been read. Returns true if it ends the field, and cuts off
 * its bytes before that one. */
static bool ends_field(struct parser *parser)
{
	struct pfs_csv *csv = parser->csv;

	if (!parser->ncbi)
		return true;
	if (csv->size - parser->start < 2 ||
	    memcmp(csv->text + csv->size - 2, PFS_CSV_NCBI, 2) != 0)
		return false;
	csv->size -= 2;
	return true;
}

static int take_plain(struct parser *parser, char c)
{
	struct pfs_csv *csv = parser->csv;

	if (c == '"' && parser->state == FIELD_START && !parser->ncbi) {
		parser->state = QUOTED;
		parser->quoted = true;
		parser->quote_line = csv->next_line;
		return 0;
	}
	if (c == parser->delimiter && ends_field(parser)) {
		parser->state = FIELD_START;
		return end_field(parser);
	}
	if (c == '\n') {
		parser->state = PLAIN;
		return end_record(parser);
	}
	parser->state = PLAIN;
	csv->text[csv->size++] = c;
	return 0;
}

/* Takes at once the bytes of a field that end nothing, as most do. */
static void take_run(struct parser *parser)
{
	struct pfs_csv *csv = parser->csv;
	struct pfs_input_stream *input = csv->input;
	const char *from = input->buffer + input->next;
	const size_t most = input->size - input->next;
	const char end = parser->state == QUOTED ? '"' : parser->delimiter;
	char *to = csv->text + csv->size;
	size_t n = 0;

	for (; n < most && from[n] != end && from[n] != '\n'; n++)
		to[n] = from[n];
	input->next += n;
	csv->size += n;
}

/* Takes bytes that are in the buffer up to the record's end. */
static int take(struct parser *parser)
{
	struct pfs_csv *csv = parser->csv;
	struct pfs_input_stream *input = csv->input;

	PFS_TRY(pfs_grow(&csv->text, &csv->capacity, csv->size + input->size - input->next, 1));
	while (input->next < input->size && parser->state != RECORD_END) {
		char c;

		if (parser->state == PLAIN || parser->state == QUOTED)
			take_run(parser);
		if (input->next == input->size)
			break;
		c = input->buffer[input->next];
		PFS_TRY(parser->state == QUOTED || parser->state == QUOTE ||
					parser->state == QUOTE_CR
				? take_quoted(parser, c)
				: take_plain(parser, c));
		input->next++;
		csv->next_line += c == '\n';
	}
	return 0;
}

/* Takes the end of the input, which may be in the middle of a record. */
static int take_end(struct parser *parser)
{
	struct pfs_csv *csv = parser->csv;

	if (parser->state == QUOTED) {
		csv->next_line = parser->quote_line;
		return bad(parser, "a quoted field that begins here never ends");
	}
	if (parser->state == FIELD_START && csv->n_fields == 0)
		return 0; /* nothing more */
	return end_record(parser);
}

static int skip_mark(struct pfs_csv *csv)
{
	ssize_t n;

	if (pfs_input_tell(csv->input) != 0)
		return 0;
	n = pfs_input_need(csv->input, 3);
	if (n >= 3 && memcmp(csv->input->buffer + csv->input->next, "\xef\xbb\xbf", 3) == 0)
		csv->input->next += 3;
	return n < 0 ? (int)n : 0;
}

static int read_record(struct parser *parser)
{
	struct pfs_csv *csv = parser->csv;

	while (parser->state != RECORD_END) {
		ssize_t n = pfs_input_need(csv->input, 1);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return take_end(parser);
		PFS_TRY(take(parser));
		if (csv->size > PFS_INPUT_RECORD_MAX)
			return bad(parser, "a record of more than 64 MiB");
	}
	return 0;
}

static struct parser begin_record(struct pfs_csv *csv)
{
	const char *delimiter = csv->delimiter ? csv->delimiter : ",";

	return (struct parser){
		.csv = csv,
		.delimiter = delimiter[strlen(delimiter) - 1],
		.ncbi = strcmp(delimiter, PFS_CSV_NCBI) == 0,
	};
}

int pfs_csv_next(struct pfs_csv *csv, const char **why)
{
	struct parser parser = begin_record(csv);
	const char *text;
	size_t i;
	int error = skip_mark(csv);

	if (!csv->next_line)
		csv->next_line = 1;
	while (!error) {
		csv->n_fields = csv->size = 0;
		csv->offset = pfs_input_tell(csv->input);
		csv->line = csv->next_line;
		parser = begin_record(csv);
		error = read_record(&parser);
		if (error || csv->empty_lines || csv->n_fields != 1 || csv->fields[0].len != 0 ||
		    csv->fields[0].quoted)
			break;
	}
	if (error == -EBADMSG) {
		csv->line = csv->next_line;
		*why = parser.why;
	}
	if (error)
		return error;
	for (i = 0, text = csv->text; i < csv->n_fields; i++) {
		csv->fields[i].text = text;
		text += csv->fields[i].len;
	}
	return csv->n_fields > 0;
}

int pfs_csv_seek(struct pfs_csv *csv, uint64_t offset)
{
	csv->next_line = 1;
	return pfs_input_seek(csv->input, offset);
}

void pfs_csv_free(struct pfs_csv *csv)
{
	free(csv->fields);
	free(csv->text);
	csv->fields = NULL;
	csv->text = NULL;
	csv->fields_capacity = csv->capacity = csv->n_fields = csv->size = 0;
}

void pfs_csv_print(FILE *out, char delimiter, const void *text, size_t len)
{
	const char *at = text, *end = at + len;

	if (!memchr(at, '"', len) && !memchr(at, delimiter, len) && !memchr(at, '\n', len) &&
	    !memchr(at, '\r', len)) {
		(void)fwrite(at, 1, len, out);
		return;
	}
	(void)fputc('"', out);
	for (; at < end; at++) {
		if (*at == '"')
			(void)fputc('"', out);
		(void)fputc(*at, out);
	}
	(void)fputc('"', out);
}
