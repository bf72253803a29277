/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlfunction.c - functions whose values callbacks compute. */
#include "meta/sql/sqlquery_impl.h"

#include <errno.h>
#include <stdlib.h>

#define ARGUMENTS_MAX 4

/* What SQLite passes to each call of a function. */
struct pfs_sql_binding {
	struct pfs_sql *sql;
	const struct pfs_sql_function *function;
};

struct pfs_sql_call {
	sqlite3_context *context;
	struct pfs_sql *sql;
};

bool pfs_sql_from_value(struct pfs_sql_value *out, sqlite3_value *value)
{
	bool is_there;

	*out = (struct pfs_sql_value){.type = PFS_SQL_NULL};
	switch (sqlite3_value_type(value)) {
	case SQLITE_INTEGER:
		out->type = PFS_SQL_INTEGER;
		out->integer = sqlite3_value_int64(value);
		break;
	case SQLITE_FLOAT:
		out->type = PFS_SQL_REAL;
		out->real = sqlite3_value_double(value);
		break;
	/* sqlite3_value_text would append a NUL to a text, mostly in a copy of it */
	case SQLITE_TEXT:
	case SQLITE_BLOB:
		out->type = sqlite3_value_type(value) == SQLITE_TEXT ? PFS_SQL_TEXT : PFS_SQL_BLOB;
		out->bytes = sqlite3_value_blob(value);
		out->size = (size_t)sqlite3_value_bytes(value);
		break;
	default:
		break;
	}
	is_there = out->type < PFS_SQL_TEXT || out->bytes || !out->size;
	if (out->type >= PFS_SQL_TEXT && !out->bytes) {
		out->bytes = "";
		out->size = 0;
	}
	return is_there;
}

static size_t skip_blanks(const unsigned char *text, size_t size, size_t at)
{
	while (at < size && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r')))
		at++;
	return at;
}

/* Passes digits, and appends them to *value, which is negated, for as long as they fit; *fits tells
 * whether all did. */
static size_t skip_digits(const unsigned char *text, size_t size, size_t at, int64_t *value,
			  bool *fits)
{
	for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
		*fits = *fits && !__builtin_mul_overflow(*value, 10, value) &&
			!__builtin_sub_overflow(*value, (int64_t)(text[at] - '0'), value);
	return at;
}

/* Returns the place behind an exponent, or `at` if there is none. */
static size_t skip_exponent(const unsigned char *text, size_t size, size_t at)
{
	size_t sign = at + 1, digits, end;
	int64_t ignored = 0;
	bool fits = true;

	if (at >= size || (text[at] | 0x20) != 'e')
		return at;
	digits = sign + (sign < size && (text[sign] == '+' || text[sign] == '-'));
	end = skip_digits(text, size, digits, &ignored, &fits);
	return end > digits ? end : at;
}

/* Returns what sqlite3_value_numeric_type() would return. That function changes the value, which
 * may be a constant of the statement; and for a copy, which belongs to no connection, it crashes in
 * SQLite 3.53. */
void pfs_sql_number_of(struct pfs_sql_value *out, sqlite3_value *value)
{
	const unsigned char *text;
	size_t start, whole, end, n_digits;
	int64_t negated = 0, ignored = 0;
	bool fits = true, ignored_fits = true, minus;

	(void)pfs_sql_from_value(out, value); /* it cannot fail: the text exists */
	if (out->type != PFS_SQL_TEXT)
		return;
	text = (const unsigned char *)out->bytes;
	start = skip_blanks(text, out->size, 0);
	minus = start < out->size && text[start] == '-';
	start += minus || (start < out->size && text[start] == '+');
	end = whole = skip_digits(text, out->size, start, &negated, &fits);
	n_digits = whole - start;
	if (end < out->size && text[end] == '.') {
		end = skip_digits(text, out->size, whole + 1, &ignored, &ignored_fits);
		n_digits += end - whole - 1;
	}
	end = n_digits ? skip_exponent(text, out->size, end) : end;
	if (!n_digits || skip_blanks(text, out->size, end) < out->size)
		return;
	fits = fits && end == whole && (minus || negated != INT64_MIN);
	*out = (struct pfs_sql_value){.type = fits ? PFS_SQL_INTEGER : PFS_SQL_REAL};
	if (fits)
		out->integer = minus ? negated : -negated;
	else
		out->real = sqlite3_value_double(value);
}

int pfs_sql_real(struct pfs_sql *sql, double *out, const char *text)
{
	bool own = sql->own;
	int result = SQLITE_OK;

	sql->own = true;
	if (!sql->to_real)
		result = sqlite3_prepare_v3(sql->handle, "SELECT CAST(?1 AS REAL)", -1,
					    SQLITE_PREPARE_PERSISTENT, &sql->to_real, NULL);
	if (!result)
		result = sqlite3_bind_text(sql->to_real, 1, text, -1, SQLITE_STATIC);
	if (!result)
		result = sqlite3_step(sql->to_real);
	if (result == SQLITE_ROW)
		*out = sqlite3_column_double(sql->to_real, 0);
	(void)sqlite3_reset(sql->to_real);
	(void)sqlite3_clear_bindings(sql->to_real);
	sql->own = own;
	return result == SQLITE_ROW ? 0 : result == SQLITE_NOMEM ? -ENOMEM : -EIO;
}

void pfs_sql_return_integer(struct pfs_sql_call *call, int64_t value)
{
	sqlite3_result_int64(call->context, value);
}

void pfs_sql_return_real(struct pfs_sql_call *call, double value)
{
	sqlite3_result_double(call->context, value);
}

void pfs_sql_return_text(struct pfs_sql_call *call, const char *bytes, size_t size)
{
	sqlite3_result_text64(call->context, bytes, size, SQLITE_TRANSIENT, SQLITE_UTF8);
}

void pfs_sql_return_error(struct pfs_sql_call *call, int error, const char *text)
{
	sqlite3_result_error(call->context, text, -1);
	if (error != -EINVAL)
		(void)pfs_sql_failed(call->sql, error);
}

static void call_function(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct pfs_sql_binding *binding = sqlite3_user_data(context);
	struct pfs_sql_call call = {.context = context, .sql = binding->sql};
	struct pfs_sql_value arguments[ARGUMENTS_MAX];

	for (int i = 0; i < argc; i++) {
		if (!pfs_sql_from_value(&arguments[i], argv[i])) {
			sqlite3_result_error_nomem(context);
			return;
		}
	}
	binding->function->call(binding->sql->user, &call, arguments);
}

static void call_step(sqlite3_context *context, int argc PFS_UNUSED, sqlite3_value **argv)
{
	const struct pfs_sql_binding *binding = sqlite3_user_data(context);
	struct pfs_sql_call call = {.context = context, .sql = binding->sql};
	void *state = sqlite3_aggregate_context(context, (int)binding->function->state_size);
	struct pfs_sql_value argument;

	if (!state) {
		sqlite3_result_error_nomem(context);
		return;
	}
	if (!pfs_sql_from_value(&argument, argv[0])) {
		sqlite3_result_error_nomem(context);
		return;
	}
	binding->function->step(binding->sql->user, &call, state, &argument);
}

static void call_final(sqlite3_context *context)
{
	const struct pfs_sql_binding *binding = sqlite3_user_data(context);
	struct pfs_sql_call call = {.context = context, .sql = binding->sql};

	binding->function->final(binding->sql->user, &call, sqlite3_aggregate_context(context, 0));
}

/* A function's value holds for one statement, for which the tree does not change. */
#define FUNCTION_FLAGS (SQLITE_UTF8 | SQLITE_DETERMINISTIC)

int pfs_sql_add_functions(struct pfs_sql *sql)
{
	const struct pfs_sql_function *functions = sql->functions;
	int result = SQLITE_OK;
	size_t n = 0;

	while (functions[n].name)
		n++;
	sql->bindings = calloc(n + 1, sizeof(*sql->bindings));
	if (!sql->bindings)
		return SQLITE_NOMEM;
	for (size_t i = 0; i < n && !result; i++) {
		const struct pfs_sql_function *f = &functions[i];

		sql->bindings[i] = (struct pfs_sql_binding){.sql = sql, .function = f};
		result = sqlite3_create_function_v2(
			sql->handle, f->name, f->n_arguments, FUNCTION_FLAGS, &sql->bindings[i],
			f->call ? call_function : NULL, f->call ? NULL : call_step,
			f->call ? NULL : call_final, NULL);
	}
	return result;
}

bool pfs_sql_find_function(const struct pfs_sql *sql, const char *name,
			   void (**fn)(sqlite3_context *, int, sqlite3_value **), void **arg)
{
	for (struct pfs_sql_binding *binding = sql->bindings; binding->function; binding++) {
		if (binding->function->call &&
		    sqlite3_stricmp(binding->function->name, name) == 0) {
			*fn = call_function;
			*arg = binding;
			return true;
		}
	}
	return false;
}

int pfs_sql_failed(struct pfs_sql *sql, int error)
{
	sql->error = error;
	return SQLITE_ERROR;
}
