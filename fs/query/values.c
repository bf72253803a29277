/* SPDX-License-Identifier: MIT */
/* SQLite's values as callers of a statement get them. */
#include "fs/query/internal.h"

void pfs_query_take_value(struct pfs_query_value *out, const struct pfs_sql_value *value)
{
	*out = (struct pfs_query_value){.type = PFS_VALUE_NULL};
	switch (value->type) {
	case PFS_SQL_NULL:
		break;
	case PFS_SQL_INTEGER:
		out->type = PFS_VALUE_INT;
		out->integer = value->integer;
		break;
	case PFS_SQL_REAL:
		out->type = PFS_VALUE_REAL;
		out->real = value->real;
		break;
	case PFS_SQL_TEXT:
	case PFS_SQL_BLOB:
		out->type = value->type == PFS_SQL_TEXT ? PFS_VALUE_TEXT : PFS_VALUE_BLOB;
		out->bytes = value->bytes;
		out->size = value->size;
		break;
	}
}
