/* SPDX-License-Identifier: MIT */
#include "tools/import/import_recognise.h"

#include <ctype.h>
#include <string.h>

#include "base/csv.h"
#include "fs/query/output/format.h"
#include "tools/import/import_columns.h"
#include "tools/import/unpack.h"

#define PEEK ((size_t)256 << 10)

/* The NCBI's before its parts; a comma before what may be in the text beside it. */
static const char *const delimiters[] = {PFS_CSV_NCBI, "\t", ",", ";", "|"};

/* ---- the beginning of a table ---- */

static bool is_name(const struct pfs_csv_field *field)
{
	size_t i;

	for (i = 0; i < field->len && !field->quoted; i++) {
		unsigned char c = (unsigned char)field->text[i];

		if (!isalnum(c) && !strchr(" _-.#:", c) && c < 0x80)
			return false;
	}
	return field->len > 0;
}

/* Fields of the header, or 0 if it is none, or the next row does not go with it. */
static size_t count_fields(struct pfs_csv *csv, bool by_looks)
{
	const char *why;
	size_t i, n;

	if (pfs_csv_next(csv, &why) != 1)
		return 0;
	n = csv->n_fields;
	for (i = 0; i < n && by_looks; i++)
		if (!is_name(&csv->fields[i]))
			return 0;
	/* a row that does not end within the bytes at hand cannot be counted */
	return pfs_csv_next(csv, &why) == 1 && csv->n_fields != n ? 0 : n;
}

static size_t try_delimiter(const char *data, size_t size, const char *delimiter, bool by_looks)
{
	struct pfs_input_stream input;
	struct pfs_csv csv = {.input = &input, .delimiter = delimiter};
	size_t n = 0;

	if (pfs_input_open_memory(&input, data, size) == 0)
		n = count_fields(&csv, by_looks);
	pfs_csv_free(&csv);
	pfs_input_close(&input);
	return n;
}

const char *pfs_find_delimiter(const char *data, size_t size, bool by_looks)
{
	const char *end = memrchr(data, '\n', size), *best = NULL;
	size_t i, n, most = 1;

	if (!end)
		return NULL;
	if (size >= PEEK)
		size = (size_t)(end - data) + 1;
	for (i = 0; i < PFS_COUNT(delimiters) && (i != 1 || !best); i++) {
		n = try_delimiter(data, size, delimiters[i], by_looks);
		if (n > most) {
			most = n;
			best = delimiters[i];
		}
	}
	return best;
}

/* All columns that --columns declares are in the header. */
static bool has_columns(const char *data, size_t size, const char *delimiter, const char *list)
{
	struct pfs_import_columns wanted = {0};
	struct pfs_input_stream input;
	struct pfs_csv csv = {.input = &input, .delimiter = delimiter};
	const char *why = pfs_import_columns_parse(&wanted, list);
	size_t found = 0, i, j;

	if (pfs_input_open_memory(&input, data, size) == 0 && !why &&
	    pfs_csv_next(&csv, &why) == 1)
		for (i = 0; i < wanted.n; i++)
			for (j = 0; j < csv.n_fields; j++)
				found += csv.fields[j].len == wanted.list[i].name_len &&
					 memcmp(csv.fields[j].text, wanted.list[i].name,
						csv.fields[j].len) == 0;
	why = found == wanted.n ? NULL : "";
	pfs_csv_free(&csv);
	pfs_input_close(&input);
	pfs_import_columns_free(&wanted);
	return !why;
}

/* ---- formats ---- */

static bool ends_with(const char *name, size_t *len, const char *suffix)
{
	size_t n = strlen(suffix);

	if (*len <= n || strncasecmp(name + *len - n, suffix, n) != 0)
		return false;
	*len -= n;
	return true;
}

static bool is_named_as_table(const char *name)
{
	static const char *const packed[] = {".gz",  ".bz2", ".xz", ".zst",
					     ".lz4", ".lz",  ".Z",  ".lzma"};
	size_t len = strlen(name), i;

	for (i = 0; i < PFS_COUNT(packed); i++)
		if (ends_with(name, &len, packed[i]))
			break;
	return ends_with(name, &len, ".csv") || ends_with(name, &len, ".tsv");
}

/* What people have besides, and what to do with it. */
static const char *other_format(const char *name, const char *data, size_t size)
{
	static const struct {
		const char *head, *why;
	} heads[] = {
		{"SQLite format 3",
		 "is a database, or a primefs store; mount a store, export a table as CSV"},
		{"{\"", "is JSON, which import does not read; make it a CSV file"},
		{"{\n", "is JSON, which import does not read; make it a CSV file"},
		{"[{", "is JSON, which import does not read; make it a CSV file"},
		{"[\n", "is JSON, which import does not read; make it a CSV file"},
		{"<?xml", "is XML, which import does not read; make it a CSV file"},
		{"%PDF-", "is a PDF file, which import does not read"},
		{"PAR1", "is Parquet, which import does not read; make it a CSV file"},
	};
	static const char *const sheets[] = {".xlsx", ".xlsm", ".xls", ".ods"};
	size_t len = strlen(name);

	for (size_t i = 0; i < PFS_COUNT(heads); i++)
		if (size >= strlen(heads[i].head) &&
		    memcmp(data, heads[i].head, strlen(heads[i].head)) == 0)
			return heads[i].why;
	for (size_t i = 0; i < PFS_COUNT(sheets); i++)
		if (ends_with(name, &len, sheets[i]))
			return "is a spreadsheet, which import does not read; save it as CSV";
	return NULL;
}

/* Each of the first lines has a tab, and there are two. */
static bool has_fields(const char *data, size_t size)
{
	const char *end;
	size_t n = 0;

	for (; (end = memchr(data, '\n', size)); n++) {
		if (!memchr(data, '\t', (size_t)(end - data)))
			return false;
		size -= (size_t)(end + 1 - data);
		data = end + 1;
	}
	return n > 1;
}

/* Each whole line ends with a carriage return, and there is one. */
static bool has_returns(const char *data, size_t size)
{
	const char *end, *from = data;

	while ((end = memchr(from, '\n', size - (size_t)(from - data)))) {
		if (end == from || end[-1] != '\r')
			return false;
		from = end + 1;
	}
	return from != data;
}

/* Lines as another system ends them: a table may have returns before its newlines, a list would
 * have them in its names. */
static int check_line_ends(const struct pfs_import_options *options, const char *data, size_t size,
			   const char **why)
{
	if (!memchr(data, '\n', size) && memchr(data, '\r', size))
		*why = "its lines end with carriage returns alone; convert them first: tr '\\r' '\\n'";
	else if (options->format == &pfs_import_paths && !options->passing &&
		 has_returns(data, size))
		*why = "each line ends with a carriage return; remove them first, with tr -d '\\r', or, if they are "
		       "in the names, say --format=paths";
	else
		return 0;
	return -EBADMSG;
}

static int refuse(const char *data, size_t size, const char **why)
{
	*why = size > 1 && (memcmp(data, "\xff\xfe", 2) == 0 || memcmp(data, "\xfe\xff", 2) == 0)
		       ? "is text in UTF-16; convert it first: iconv -f UTF-16 -t UTF-8"
		       : "is no archive that can be read, nor text; if it is a table or a list "
			 "nevertheless, say so with --format=csv or --format=paths";
	return -EBADMSG;
}

/* Returns true if a line that has no end is the beginning of an archive, or no text. Whoever has
 * such names can say that it is a list; a list with whole lines is one, whatever its names are. */
static bool is_rubble(const char *data, size_t size)
{
	static const char *const heads[] = {"BZh1", "BZh2", "BZh3", "BZh4", "BZh5", "BZh6", "BZh7",
					    "BZh8", "BZh9", "LZIP", "Rar!", "MSCF", "xar!", "!<ar",
					    "070701", "070702", "070707", "WARC/"};
	size_t at, n;

	if (memchr(data, '\n', size))
		return false;
	for (at = 0; at < PFS_COUNT(heads); at++)
		if (size >= strlen(heads[at]) && memcmp(data, heads[at], strlen(heads[at])) == 0)
			return true;
	for (at = 0; at < size; at += n) {
		n = pfs_utf8_length(data + at, size - at);
		if (n == 0 ||
		    ((unsigned char)data[at] < ' ' && data[at] != '\t' && data[at] != '\r'))
			return true;
	}
	return false;
}

static int guess(struct pfs_import_options *options, const char *data, size_t size,
		 const char **why)
{
	const char *delimiter;

	if (options->path_column || options->id_column || options->parent_column ||
	    options->name_column || options->delimiter || options->slash) {
		options->format = &pfs_import_csv;
		return check_line_ends(options, data, size, why);
	}
	options->format = &pfs_import_paths;
	if (options->nul_ended || size == 0)
		return 0;
	*why = other_format(options->source, data, size);
	if (*why)
		return -EBADMSG;
	options->format = &pfs_import_tar;
	if (pfs_looks_like_archive(data, size))
		return 0;
	if (memchr(data, 0, size) || is_rubble(data, size))
		return refuse(data, size, why);
	delimiter = pfs_find_delimiter(data, size, true);
	if (delimiter && options->columns && !has_columns(data, size, delimiter, options->columns))
		delimiter = NULL;
	options->format = delimiter || is_named_as_table(options->source) ? &pfs_import_csv
									  : &pfs_import_paths;
	PFS_TRY(check_line_ends(options, data, size, why));
	if (delimiter || options->columns || !has_fields(data, size))
		return 0;
	*why = "each line has a field behind a tab; name them with --columns=NAME,..., or, if the tabs are "
	       "in the names, say --format=paths";
	return -EBADMSG;
}

int pfs_import_recognise(struct pfs_import *import, const char **why)
{
	struct pfs_import_options *options = &import->options;
	struct pfs_input_stream *input = &import->input;
	int error = options->format == &pfs_import_tar ? 0 : pfs_unpack(input);
	const char *data;
	ssize_t size;

	*why = input->why;
	if (error ||
	    (options->format && (options->format != &pfs_import_csv || options->delimiter)))
		return error;
	size = pfs_input_need(input, PEEK);
	*why = input->why;
	if (size < 0)
		return (int)size;
	data = input->buffer + input->next;
	if (!options->format)
		PFS_TRY(guess(options, data, (size_t)size, why));
	if (options->format != &pfs_import_csv || options->delimiter)
		return 0;
	options->delimiter = pfs_find_delimiter(data, (size_t)size, true);
	if (!options->delimiter)
		options->delimiter = pfs_find_delimiter(data, (size_t)size, false);
	return 0;
}
