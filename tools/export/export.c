/* SPDX-License-Identifier: MIT */
/* What formats share: complaints, and the list of columns. */
#include "tools/export/export.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "tools/cmd.h"

int pfs_export_fail(const struct pfs_export *from, const char *format, ...)
{
	char message[8192];
	va_list values;

	va_start(values, format);
	(void)vsnprintf(message, sizeof(message), format, values);
	va_end(values);
	(void)pfs_cmd_fail("export", "%s: %s", from->store, message);
	return -ECANCELED;
}

int pfs_export_out_failed(struct pfs_export *to)
{
	if (!ferror(to->out))
		return 0;
	if (!to->out_error)
		to->out_error = errno ? errno : EIO;
	return 1;
}

int pfs_export_add_column(struct pfs_export *to, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < to->n_columns; i++)
		if (strlen(to->columns[i]) == len && memcmp(to->columns[i], name, len) == 0)
			return 0;
	PFS_TRY(pfs_grow(&to->columns, &to->columns_capacity, to->n_columns + 1,
			 sizeof(*to->columns)));
	to->columns[to->n_columns] = strndup(name, len);
	if (!to->columns[to->n_columns])
		return -ENOMEM;
	to->n_columns++;
	return 0;
}

static int add_imported(void *arg, const void *name, size_t name_len)
{
	return pfs_export_add_column(arg, name, name_len);
}

static int add_present(void *arg, const struct pfs_walk_node *node)
{
	struct pfs_export *to = arg;
	char list[PFS_ATTR_VALUE_MAX];
	ssize_t size = pfs_tree_listxattr(to->tree, list, sizeof(list), node->entry.attr.st_ino);
	const char *at;

	if (size < 0)
		return size == -EOPNOTSUPP || size == -EPERM ? 0 : (int)size;
	for (at = list; at < list + size; at += strlen(at) + 1)
		if (strncmp(at, "user.", 5) == 0)
			PFS_TRY(pfs_export_add_column(to, at + 5, strlen(at + 5)));
	return 0;
}

int pfs_export_add_present(struct pfs_export *to)
{
	return pfs_tree_walk(to->tree, to->root, add_present, to);
}

/* Lists the columns that were imported, in their order, and then others as they are met. */
int pfs_export_find_columns(struct pfs_export *to)
{
	PFS_TRY(pfs_tree_imported_columns(to->tree, add_imported, to));
	return pfs_export_add_present(to);
}
