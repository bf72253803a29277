/* SPDX-License-Identifier: MIT */
#include "tools/bench/duckdb.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "tools/bench/peer.h"

/* ---- rows ---- */

static void end_field(FILE *csv, bool last)
{
	(void)fputc(last ? '\n' : ',', csv);
}

void pfs_duckdb_put_text(FILE *csv, const char *text, size_t size, bool last)
{
	(void)fputc('"', csv);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"')
			(void)fputc('"', csv);
		(void)fputc(c < ' ' || c > 126 ? '?' : c, csv);
	}
	(void)fputc('"', csv);
	end_field(csv, last);
}

void pfs_duckdb_put_number(FILE *csv, int64_t number, bool last)
{
	(void)fprintf(csv, "%" PRId64, number);
	end_field(csv, last);
}

void pfs_duckdb_put_null(FILE *csv, bool last)
{
	end_field(csv, last);
}

/* ---- the library ---- */

/* duckdb_result of DuckDB's C interface, whose header is not needed for a few functions. */
struct result {
	uint64_t deprecated[3];
	void *data;
	char *error;
	void *internal;
};

struct pfs_duckdb {
	void *library, *database, *connection;
	int (*open)(const char *path, void **database);
	int (*connect)(void *database, void **connection);
	int (*query)(void *connection, const char *sql, struct result *result);
	const char *(*error_of)(struct result *result);
	uint64_t (*row_count)(struct result *result);
	uint64_t (*column_count)(struct result *result);
	char *(*text_of)(struct result *result, uint64_t column, uint64_t row);
	void (*free)(void *text);
	void (*destroy)(struct result *result);
	void (*disconnect)(void **connection);
	void (*close)(void **database);
};

static void *load(void)
{
	const char *chosen = getenv("LIBDUCKDB");

	return chosen && *chosen ? dlopen(chosen, RTLD_NOW | RTLD_LOCAL)
				 : pfs_peer_library("libduckdb.so");
}

static bool find(struct pfs_duckdb *duckdb)
{
	const struct pfs_peer_function functions[] = {
		{"duckdb_open", (void **)&duckdb->open},
		{"duckdb_connect", (void **)&duckdb->connect},
		{"duckdb_query", (void **)&duckdb->query},
		{"duckdb_result_error", (void **)&duckdb->error_of},
		{"duckdb_row_count", (void **)&duckdb->row_count},
		{"duckdb_column_count", (void **)&duckdb->column_count},
		{"duckdb_value_varchar", (void **)&duckdb->text_of},
		{"duckdb_free", (void **)&duckdb->free},
		{"duckdb_destroy_result", (void **)&duckdb->destroy},
		{"duckdb_disconnect", (void **)&duckdb->disconnect},
		{"duckdb_close", (void **)&duckdb->close},
	};

	return pfs_peer_functions(duckdb->library, functions, PFS_COUNT(functions));
}

int pfs_duckdb_open(struct pfs_duckdb **out)
{
	struct pfs_duckdb *duckdb = calloc(1, sizeof(*duckdb));
	int error = -ENOENT;

	*out = NULL;
	if (!duckdb)
		return -ENOMEM;
	duckdb->library = load();
	if (find(duckdb))
		error = duckdb->open(NULL, &duckdb->database) ||
					duckdb->connect(duckdb->database, &duckdb->connection)
				? -ENOMEM
				: 0;
	if (error)
		pfs_duckdb_close(duckdb);
	else
		*out = duckdb;
	return error;
}

void pfs_duckdb_close(struct pfs_duckdb *duckdb)
{
	if (!duckdb)
		return;
	if (duckdb->connection)
		duckdb->disconnect(&duckdb->connection);
	if (duckdb->database)
		duckdb->close(&duckdb->database);
	if (duckdb->library)
		(void)dlclose(duckdb->library);
	free(duckdb);
}

static void put_row(const struct pfs_duckdb *duckdb, char *out, size_t size, struct result *result)
{
	uint64_t columns = duckdb->column_count(result);
	size_t len = 0;

	for (uint64_t i = 0; i < columns && len < size; i++) {
		char *text = duckdb->text_of(result, i, 0);

		len += (size_t)snprintf(out + len, size - len, "%s%s", i ? "\t" : "",
					text ? text : "");
		duckdb->free(text);
	}
}

int pfs_duckdb_ask(struct pfs_duckdb *duckdb, uint64_t *rows, char *row, size_t size,
		   const char *sql)
{
	struct result result = {.data = NULL};
	bool failed = duckdb->query(duckdb->connection, sql, &result) != 0;
	uint64_t n = failed ? 0 : duckdb->row_count(&result);

	if (failed)
		pfs_error("DuckDB: %s: %s", sql, duckdb->error_of(&result));
	if (rows && !failed)
		*rows = n;
	if (size)
		*row = '\0';
	if (size && n == 1)
		put_row(duckdb, row, size, &result);
	duckdb->destroy(&result);
	return failed ? -EINVAL : 0;
}

int pfs_duckdb_run(struct pfs_duckdb *duckdb, uint64_t *rows, const char *sql)
{
	return pfs_duckdb_ask(duckdb, rows, NULL, 0, sql);
}
