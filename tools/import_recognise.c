/* SPDX-License-Identifier: MIT */
#include "tools/import_recognise.h"

#include <ctype.h>
#include <string.h>

#define PEEK ((size_t)256 << 10)

/* Fields of a line, or 0 where one cannot be a column's name. */
static size_t count_fields(const char *line, size_t len, bool header)
{
	size_t i, n = 1;
	bool quoted = false;

	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)line[i];

		if (c == '"')
			quoted = !quoted;
		else if (c == ',' && !quoted)
			n++;
		else if (header && !quoted && !isalnum(c) && !strchr(" _-.#\r", c) && c < 0x80)
			return 0;
		if (header && c == ',' && !quoted && (i == 0 || line[i - 1] == ','))
			return 0;
	}
	return quoted ? 0 : n;
}

bool pfs_looks_like_csv(const char *data, size_t size)
{
	const char *limit = data + size, *end = memchr(data, '\n', size), *row, *row_end;
	size_t fields;

	if (!end || memchr(data, 0, size))
		return false;
	if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
		data += 3;
	fields = count_fields(data, (size_t)(end - data), true);
	row = end + 1;
	row_end = memchr(row, '\n', (size_t)(limit - row));
	if (!row_end)
		row_end = limit;
	/* a row that goes on in the next line cannot be counted */
	return fields > 1 && (row == row_end || memchr(row, '"', (size_t)(row_end - row)) ||
			      count_fields(row, (size_t)(row_end - row), false) == fields);
}

static const struct pfs_import_format *guess(const struct pfs_import_options *options,
					     const char *data, size_t size)
{
	size_t len = strlen(options->source);

	if (options->path_column || options->id_column ||
	    (len > 4 && strcasecmp(options->source + len - 4, ".csv") == 0))
		return &pfs_import_csv;
	if (options->nul_ended || size == 0)
		return &pfs_import_paths;
	if (!options->columns && pfs_looks_like_archive(data, size))
		return &pfs_import_tar;
	return pfs_looks_like_csv(data, size) ? &pfs_import_csv : &pfs_import_paths;
}

int pfs_import_recognise(struct pfs_import *import)
{
	ssize_t size = pfs_input_need(&import->input, PEEK);

	if (size < 0)
		return (int)size;
	import->options.format =
		guess(&import->options, import->input.buffer + import->input.next, (size_t)size);
	return 0;
}
