/* SPDX-License-Identifier: MIT */
/* Lists of paths, and tables. Every node has a line, the root only if it has a value. The path of
 * an empty directory ends with a slash, so that import does not take it for a file. */
#include "tools/export/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "meta/store.h"
#include "base/csv.h"

/* The node before the present one, since only the next node shows whether a directory is empty. */
struct text {
	struct pfs_export *to;
	int (*print)(struct text *text);
	char *path; /* it begins with a slash */
	size_t len, capacity;
	uint64_t ino;
	uint32_t depth;
	bool directory;
	bool any; /* there is such a node */
	char value[PFS_ATTR_VALUE_MAX];
};

ssize_t pfs_export_value(struct pfs_export *to, char *value, uint64_t ino, const char *column)
{
	char name[PFS_ATTR_NAME_MAX + 6];
	ssize_t size;

	if (snprintf(name, sizeof(name), "user.%s", column) >= (int)sizeof(name))
		return 0;
	size = pfs_tree_getxattr(to->tree, value, PFS_ATTR_VALUE_MAX, ino, name);
	return size == -ENODATA || size == -EPERM || size == -EOPNOTSUPP ? 0 : size;
}

static ssize_t get_value(struct text *text, const char *column)
{
	return pfs_export_value(text->to, text->value, text->ino, column);
}

static bool has_value(struct text *text)
{
	size_t i;

	for (i = 0; i < text->to->n_columns; i++)
		if (get_value(text, text->to->columns[i]) > 0)
			return true;
	return false;
}

static bool has_any(const char *bytes, size_t len, const char *of, size_t n)
{
	while (n--)
		if (memchr(bytes, of[n], len))
			return true;
	return false;
}

static int print_path(struct text *text)
{
	struct pfs_export *to = text->to;
	const char forbidden[] = {'\t', to->nul_ended ? '\0' : '\n'};
	size_t i;

	if (!to->nul_ended && memchr(text->path, '\n', text->len))
		return pfs_export_fail(to, "'%.*s' has a newline in it; use -0, csv or tar",
				       (int)text->len, text->path);
	if (to->n_columns && memchr(text->path, '\t', text->len))
		return pfs_export_fail(to, "'%.*s' has a tab in it; use csv or tar", (int)text->len,
				       text->path);
	(void)fwrite(text->path, 1, text->len, to->out);
	for (i = 0; i < to->n_columns; i++) {
		ssize_t len = get_value(text, to->columns[i]);

		if (len < 0)
			return (int)len;
		if (has_any(text->value, (size_t)len, forbidden, sizeof(forbidden)))
			return pfs_export_fail(to,
					       "the value of '%s' of '%.*s' has a tab or a line "
					       "end in it; use csv",
					       to->columns[i], (int)text->len, text->path);
		(void)fputc('\t', to->out);
		(void)fwrite(text->value, 1, (size_t)len, to->out);
	}
	(void)fputc(to->nul_ended ? 0 : '\n', to->out);
	return pfs_export_out_failed(to);
}

static int print_row(struct text *text)
{
	struct pfs_export *to = text->to;
	size_t i;

	pfs_csv_print(to->out, ',', text->path, text->len);
	for (i = 0; i < to->n_columns; i++) {
		ssize_t len = get_value(text, to->columns[i]);

		if (len < 0)
			return (int)len;
		(void)fputc(',', to->out);
		pfs_csv_print(to->out, ',', text->value, (size_t)len);
	}
	(void)fputc('\n', to->out);
	return pfs_export_out_failed(to);
}

/* Prints the node before; next_depth: of the one after it. */
static int print_last(struct text *text, uint32_t next_depth)
{
	if (!text->any)
		return 0;
	if (text->directory && next_depth <= text->depth)
		text->path[text->len++] = '/';
	return text->print(text);
}

static int visit(void *arg, const struct pfs_walk_node *node)
{
	struct text *text = arg;

	PFS_TRY(print_last(text, node->depth));
	PFS_TRY(pfs_grow(&text->path, &text->capacity, node->path_len + 3, 1));
	text->path[0] = '/';
	(void)memcpy(text->path + 1, node->path, node->path_len);
	text->len = node->path_len + 1;
	text->ino = node->entry.attr.st_ino;
	text->depth = node->depth;
	text->directory = node->depth && S_ISDIR(node->entry.attr.st_mode);
	text->any = node->depth || (text->ino == PFS_ROOT_PRIME && has_value(text));
	return 0;
}

static int write_text(struct pfs_export *to, int (*print)(struct text *text))
{
	struct text *text = calloc(1, sizeof(*text));
	int error;

	if (!text)
		return -ENOMEM;
	text->to = to;
	text->print = print;
	error = pfs_tree_walk(to->tree, to->root, visit, text);
	if (!error)
		error = print_last(text, 0);
	free(text->path);
	free(text);
	return error > 0 ? 0 : error;
}

static int write_paths(struct pfs_export *to)
{
	return write_text(to, print_path);
}

/* The column of paths is called `path`, unless an attribute has that name. */
static int write_csv(struct pfs_export *to)
{
	const char *name = "path";
	size_t i;

	if (!to->n_columns) {
		int error = pfs_export_register(to);

		if (error != -ENODATA)
			return error;
		PFS_TRY(pfs_export_find_columns(to));
	}
	for (i = 0; i < to->n_columns; i++)
		if (strcmp(to->columns[i], "path") == 0)
			name = "path~";
	(void)fputs(name, to->out);
	for (i = 0; i < to->n_columns; i++) {
		(void)fputc(',', to->out);
		pfs_csv_print(to->out, ',', to->columns[i], strlen(to->columns[i]));
	}
	(void)fputc('\n', to->out);
	return write_text(to, print_row);
}

const struct pfs_export_format pfs_export_paths = {.name = "paths", .write = write_paths};
const struct pfs_export_format pfs_export_csv = {.name = "csv", .write = write_csv};
