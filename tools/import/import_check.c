/* SPDX-License-Identifier: MIT */
/* Checks whether the options of an import make sense. */
#include "tools/import/import.h"

#include <assert.h>
#include <string.h>

#include "base/csv.h"
#include "tools/import/ignore.h"
#include "tools/import/import_columns.h"

/* One byte, with an escape for a tab, or the NCBI's. */
static const char *check_delimiter(struct pfs_import_options *options)
{
	if (strcmp(options->delimiter, "\\t") == 0)
		options->delimiter = "\t";
	else if (strcmp(options->delimiter, "\\t|\\t") == 0)
		options->delimiter = PFS_CSV_NCBI;
	if (strcmp(options->delimiter, PFS_CSV_NCBI) == 0)
		return NULL;
	return strlen(options->delimiter) == 1 && !strchr("\"\r\n", *options->delimiter)
		       ? NULL
		       : "one character, no quote or line end, or \\t|\\t";
}

/* One byte, or one character of UTF-8. */
static const char *check_slash(const char *slash)
{
	size_t len = strlen(slash), i = 1;

	while (i < len && ((unsigned char)slash[i] & 0xc0) == 0x80)
		i++;
	return len && len <= 4 && i == len && !strchr("/.\n", *slash) ? NULL
								     : "one character other than "
								       "'/' and '.'";
}

int pfs_import_check_values(struct pfs_import_options *options)
{
	struct pfs_import_columns columns = {0};
	const char *why = NULL, *at;

	if (options->path_column &&
	    (options->id_column || options->parent_column || options->name_column))
		return pfs_cmd_usage("import", "--path and --id, --parent, --name are different "
					       "ways to say where rows belong; give one");
	if (options->columns) {
		why = pfs_import_columns_parse(&columns, options->columns);
		pfs_import_columns_free(&columns);
	}
	if (why)
		return pfs_cmd_usage("import", "--columns=%s: %s", options->columns, why);
	why = options->delimiter ? check_delimiter(options) : NULL;
	if (why)
		return pfs_cmd_usage("import", "--delimiter=%s: %s", options->delimiter, why);
	why = options->slash ? check_slash(options->slash) : NULL;
	if (why)
		return pfs_cmd_usage("import", "--slash=%s: %s", options->slash, why);
	if (options->path_column && options->slash)
		return pfs_cmd_usage("import", "--slash is for --name; a --path has slashes of "
					       "its own");
	if (options->at && !*options->at)
		return pfs_cmd_usage("import", "--at needs a directory of the store, such as /");
	for (at = options->at; at && *at && !why; at += strspn(at, "/")) {
		size_t len = strcspn(at, "/");

		if (len == 2 && at[0] == '.' && at[1] == '.')
			why = "'..' in a path; write it from the top down";
		else if (len > PFS_NAME_MAX)
			why = pfs_import_name_error(-ENAMETOOLONG);
		at += len;
	}
	return why ? pfs_cmd_usage("import", "--at=%s: %s", options->at, why) : 0;
}

int pfs_import_check_uses(const struct pfs_import_options *options)
{
	const struct pfs_import_format *format = options->format;
	const struct {
		bool given;
		const struct pfs_import_format *format;
		const char *option;
	} uses[] = {
		{options->content_given, &pfs_import_dir, "content"},
		{options->cross_mounts, &pfs_import_dir, "cross-mounts"},
		{pfs_leaving_out_given(options->leaving_out), &pfs_import_dir, "exclude"},
		{options->nul_ended, &pfs_import_paths, "null"},
		{options->path_column != NULL, &pfs_import_csv, "path"},
		{options->id_column != NULL, &pfs_import_csv, "id"},
		{options->parent_column != NULL, &pfs_import_csv, "parent"},
		{options->name_column != NULL, &pfs_import_csv, "name"},
		{options->delimiter != NULL, &pfs_import_csv, "delimiter"},
		{options->slash != NULL, &pfs_import_csv, "slash"},
	};
	size_t i;

	assert(format);
	if (options->columns && format != &pfs_import_paths && format != &pfs_import_csv)
		return pfs_cmd_usage("import", "--columns is for paths and csv; this is %s",
				     format->name);
	for (i = 0; i < PFS_COUNT(uses); i++)
		if (uses[i].given && uses[i].format != format)
			return pfs_cmd_usage("import", "--%s is for --format=%s; this is %s",
					     uses[i].option, uses[i].format->name, format->name);
	return 0;
}
