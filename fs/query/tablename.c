/* SPDX-License-Identifier: MIT */
/* What a table may be called. */
#include "fs/query/tables.h"

#include <string.h>
#include <strings.h>

#include "fs/query/output/format.h"
#include "fs/query/sides.h"

bool pfs_table_is_text(const char *name, size_t len)
{
	for (size_t at = 0, n; at < len; at += n) {
		n = pfs_utf8_length(name + at, len - at);
		if (!n || (unsigned char)name[at] < ' ' || name[at] == 0x7f)
			return false;
	}
	return len > 0;
}

/* The tree's own: pfs_nodes_source and each of pfs_table_functions. */
static const char *const reserved[] = {"nodes", "resolve", "nodes_at", "attrs_at"};

static bool is_reserved(const char *name)
{
	for (size_t i = 0; i < PFS_COUNT(reserved); i++) {
		if (pfs_side_is_named(name, reserved[i]))
			return true;
	}
	return pfs_sql_is_sqlites(name);
}

int pfs_table_check_name(const char *name)
{
	size_t len = strnlen(name, PFS_TABLE_NAME_MAX + 1);

	if (len > PFS_TABLE_NAME_MAX)
		return -ENAMETOOLONG;
	if (is_reserved(name))
		return -EEXIST;
	return pfs_table_is_text(name, len) && !strpbrk(name, "/\"") && *name != '.' &&
			       strncasecmp(name, "sqlite_", 7) != 0
		       ? 0
		       : -EINVAL;
}
