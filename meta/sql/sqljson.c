/* SPDX-License-Identifier: MIT */
/* A replacement of SQLite's json_patch(target, patch), which searches the target for each member of
 * the patch without looking at the clock. For short arguments SQLite's is used, on a connection of
 * its own where it was not replaced. */
#include "meta/sql/sqlquery_impl.h"

#include <stdlib.h>

#define PRODUCT_MAX ((uint64_t)1 << 30) /* of both lengths: some hundredths of a second */
#define SUBTYPE_JSON 'J'

#ifndef SQLITE_RESULT_SUBTYPE
#define SQLITE_RESULT_SUBTYPE 0
#endif

struct pfs_sql_json {
	sqlite3 *handle;
	sqlite3_stmt *patch;
};

void pfs_sql_json_close(struct pfs_sql_json *json)
{
	if (!json)
		return;
	(void)sqlite3_finalize(json->patch);
	(void)sqlite3_close(json->handle);
	free(json);
}

static struct pfs_sql_json *open_json(struct pfs_sql *sql)
{
	struct pfs_sql_json *json = sql->json ? sql->json : calloc(1, sizeof(*json));
	int result;

	if (!json || sql->json)
		return json;
	result = sqlite3_open_v2(":memory:", &json->handle,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
				 NULL);
	if (!result)
		result = sqlite3_prepare_v3(json->handle, "SELECT json_patch(?, ?)", -1,
					    SQLITE_PREPARE_PERSISTENT, &json->patch, NULL);
	if (result) {
		pfs_sql_json_close(json);
		return NULL;
	}
	sql->json = json;
	return json;
}

static void return_patched(sqlite3_context *context, struct pfs_sql_json *json, int result)
{
	sqlite3_value *value;

	if ((result & 0xff) == SQLITE_NOMEM) {
		sqlite3_result_error_nomem(context);
	} else if (result != SQLITE_ROW) {
		sqlite3_result_error(context, sqlite3_errmsg(json->handle), -1);
	} else {
		value = sqlite3_column_value(json->patch, 0);
		sqlite3_result_value(context, value);
		if (sqlite3_value_type(value) == SQLITE_TEXT)
			sqlite3_result_subtype(context, SUBTYPE_JSON);
	}
}

static void patch(sqlite3_context *context, int argc PFS_UNUSED, sqlite3_value **argv)
{
	struct pfs_sql *sql = sqlite3_user_data(context);
	uint64_t product = (uint64_t)sqlite3_value_bytes(argv[0]) *
			   (uint64_t)sqlite3_value_bytes(argv[1]);
	struct pfs_sql_json *json;
	int result;

	if (product > PRODUCT_MAX) {
		sqlite3_result_error(context, "json_patch: too long for each other; patch parts",
				     -1);
		return;
	}
	json = open_json(sql);
	if (!json) {
		sqlite3_result_error_nomem(context);
		return;
	}
	result = sqlite3_bind_value(json->patch, 1, argv[0]);
	if (!result)
		result = sqlite3_bind_value(json->patch, 2, argv[1]);
	if (!result)
		result = sqlite3_step(json->patch);
	return_patched(context, json, result);
	(void)sqlite3_reset(json->patch);
	(void)sqlite3_clear_bindings(json->patch);
}

int pfs_sql_add_json_functions(struct pfs_sql *sql)
{
	return sqlite3_create_function_v2(sql->handle, "json_patch", 2,
					  SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS |
						  SQLITE_RESULT_SUBTYPE,
					  sql, patch, NULL, NULL, NULL);
}
