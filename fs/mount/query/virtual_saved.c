/* SPDX-License-Identifier: MIT */
/* `.query/NAME/`: saved queries. The statement is kept with the directory (pfs_tree_set_saved), and
 * moves and disappears with it. Everything else is computed at the open. */
#include "fs/mount/query/virtual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/cleanup.h"

#define NAME_MAX_BYTES 200 /* leaves room for what the store adds */
#define DEPTH_OF_NODES 3   /* .query/NAME/nodes */

/* ---- the statement ---- */

/* Gets the statement without blanks and semicolons at its end; the caller frees *sql. */
static int get_statement(struct pfs_call *call, const char *name, char **sql, size_t *len)
{
	char *text PFS_FREE = malloc(PFS_STATEMENT_MAX + 1);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = pfs_tree_get_saved(call->mount->tree, text, PFS_STATEMENT_MAX, call->scope.ino, name);
	if (n < 0)
		return n == -ENODATA ? -ENOENT : (int)n;
	while (n > 0 && (strchr(" \t\r\n;", text[n - 1]) != NULL))
		n--;
	if (n == 0)
		return pfs_call_fail(call, -EINVAL,
				     "%s: no statement yet; write one to .query/%s/sql", name,
				     name);
	text[n] = '\0';
	*len = (size_t)n;
	*sql = PFS_TAKE(text);
	return 0;
}

static int fill_sql(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *answer)
{
	char *text PFS_FREE = malloc(PFS_STATEMENT_MAX);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = pfs_tree_get_saved(call->mount->tree, text, PFS_STATEMENT_MAX, call->scope.ino,
			       file->parent->name);
	if (n < 0)
		return n == -ENODATA ? -ENOENT : (int)n;
	return pfs_answer_write(answer, text, (size_t)n);
}

static int store_sql(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *bytes)
{
	size_t size = (size_t)pfs_answer_size(bytes);
	char *text PFS_FREE = NULL;
	ssize_t n;

	if (!call->scope.sees_all)
		return -EACCES;
	text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	n = pfs_answer_read(bytes, text, size, 0);
	if (n < 0)
		return (int)n;
	pfs_call_forget_reason(call, file->parent->st_ino);
	return pfs_tree_set_saved(call->mount->tree, call->scope.ino, file->parent->name, text,
				  (size_t)n, XATTR_REPLACE);
}

/* ---- answers ---- */

/* The text of as_of is kept among the reasons, under a number that no node has. */
static uint64_t as_of_key(const struct pfs_virtual *saved)
{
	return saved->st_ino | 1;
}

static void keep_as_of(struct pfs_call *call, const struct pfs_virtual *saved)
{
	char epoch[64] = "", date[64], *text PFS_FREE = NULL, *compared PFS_FREE = NULL;
	time_t now = time(NULL);
	struct tm tm;

	if (pfs_call_compared(call, &compared))
		return;
	if (!gmtime_r(&now, &tm) || !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return;
	/* The epoch also counts changes in directories that are closed to others. */
	if (call->scope.sees_all)
		(void)snprintf(epoch, sizeof(epoch), "epoch %llu\n",
			       (unsigned long long)call->epoch);
	if (asprintf(&text, "%stime %s\n%s", epoch, date, compared) < 0) {
		text = NULL;
		return;
	}
	text[strlen(text) - 1] = '\0'; /* the newline at its end is added again when it is read */
	pfs_call_keep(call, as_of_key(saved), text);
}

/* Returns the part of "result.csv" that names the format, or all of "paths". */
static const char *format_name(const char *file)
{
	const char *dot = strchr(file, '.');

	return dot ? dot + 1 : file;
}

static int fill_result(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *answer)
{
	const char *name = format_name(file->name);
	enum pfs_format format = PFS_FORMAT_TSV;
	char *sql PFS_FREE = NULL;
	size_t len = 0;

	call->reason = file->parent->st_ino;
	PFS_TRY(pfs_format_by_name(&format, name, strlen(name)));
	PFS_TRY(get_statement(call, file->parent->name, &sql, &len));
	PFS_TRY(pfs_call_answer(call, answer, format, sql, len));
	pfs_call_forget_reason(call, call->reason);
	keep_as_of(call, file->parent);
	return 0;
}

/* Before a result has been read, there is no state that it is of, but what has been compared. */
static int fill_as_of(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *answer)
{
	char *text PFS_FREE = pfs_call_reason(call, as_of_key(file->parent));

	if (!text)
		PFS_TRY(pfs_call_compared(call, &text));
	return pfs_answer_text(answer, text);
}

static int run_to_end(struct pfs_call *call, struct pfs_query *query)
{
	struct pfs_query_error error = {.error = 0};
	int status;

	do
		status = pfs_query_next(query, &error);
	while (status > 0 || status == -EAGAIN);
	return status ? pfs_call_fail(call, status, "%s", error.text) : 0;
}

/* The plan also tells how many rows each step has seen, so the statement is run. */
static int fill_plan(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *answer)
{
	struct pfs_query *query = NULL;
	char *sql PFS_FREE = NULL, *plan PFS_FREE = NULL;
	size_t len = 0;
	int error;

	call->reason = file->parent->st_ino;
	call->scope.explains = true;
	PFS_TRY(get_statement(call, file->parent->name, &sql, &len));
	PFS_TRY(pfs_call_start(call, &query, sql, len));
	error = run_to_end(call, query);
	if (!error)
		error = pfs_query_plan(query, &plan);
	pfs_call_stop(call, query);
	return error ? error : pfs_answer_text(answer, plan);
}

/* Shows the last error of this query, or what is wrong with its statement. */
static int fill_error(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *answer)
{
	char *reason PFS_FREE = pfs_call_reason(call, file->parent->st_ino);
	struct pfs_query *query = NULL;
	char *sql PFS_FREE = NULL;
	size_t len = 0;
	int error;

	if (!reason) {
		call->reason = file->parent->st_ino;
		error = get_statement(call, file->parent->name, &sql, &len);
		if (!error)
			error = pfs_call_start(call, &query, sql, len);
		pfs_call_stop(call, query);
		if (!error || error == -EINTR)
			return error;
		reason = pfs_call_reason(call, call->reason);
	}
	return reason ? pfs_answer_text(answer, reason) : 0;
}

/* ---- nodes ---- */

/* Makes the statement that finds the nodes of a saved query's rows: by a column `ino`, else by
 * `path`. */
static int nodes_statement(struct pfs_call *call, const char *name, char **from)
{
	struct pfs_query *query = NULL;
	char *sql PFS_FREE = NULL;
	const char *key = NULL;
	size_t len = 0, i;

	PFS_TRY(get_statement(call, name, &sql, &len));
	PFS_TRY(pfs_call_start(call, &query, sql, len));
	for (i = 0; i < pfs_query_columns(query); i++) {
		const char *column = pfs_query_column_name(query, i);

		if (strcmp(column, "ino") == 0)
			key = "ino";
		else if (strcmp(column, "path") == 0 && !key)
			key = "path";
	}
	pfs_call_stop(call, query);
	if (!key)
		return pfs_call_fail(call, -EINVAL,
				     "%s: its nodes are found by a column ino or path; select one",
				     name);
	if (asprintf(from, "SELECT name, ino, path FROM nodes WHERE %s IN (SELECT %s FROM (%s\n))",
		     key, key, sql) < 0) {
		*from = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int list_nodes(struct pfs_call *call, struct pfs_virtual *dir,
		      struct pfs_virtual_names *names)
{
	char *from PFS_FREE = NULL;

	call->reason = dir->parent->st_ino;
	PFS_TRY(nodes_statement(call, dir->parent->name, &from));
	return pfs_links_list(call, names, from);
}

static int lookup_node(struct pfs_call *call, struct pfs_virtual *dir, const char *name,
		       struct pfs_virtual_found *found)
{
	char *from PFS_FREE = NULL;

	if (pfs_links_known(call, found, dir, name, DEPTH_OF_NODES) == 0)
		return 0;
	call->reason = dir->parent->st_ino;
	PFS_TRY(nodes_statement(call, dir->parent->name, &from));
	return pfs_links_lookup(call, found, name, from, DEPTH_OF_NODES);
}

/* ---- a saved query's directory ---- */

static const struct pfs_virtual_kind sql_kind = {
	.mode = S_IFREG | 0600,
	.fill = fill_sql,
	.store = store_sql,
	.store_limit = PFS_STATEMENT_MAX,
};
static const struct pfs_virtual_kind result_kind = {
	.mode = S_IFREG | 0400,
	.runs = true,
	.fill = fill_result,
};
static const struct pfs_virtual_kind as_of_kind = {.mode = S_IFREG | 0400, .fill = fill_as_of};
static const struct pfs_virtual_kind plan_kind = {
	.mode = S_IFREG | 0400,
	.runs = true,
	.fill = fill_plan,
};
static const struct pfs_virtual_kind error_kind = {.mode = S_IFREG | 0400, .fill = fill_error};
static const struct pfs_virtual_kind nodes_kind = {
	.mode = S_IFDIR | 0500,
	.finds = true,
	.list = list_nodes,
	.lookup = lookup_node,
};

static const struct {
	const char *name;
	const struct pfs_virtual_kind *kind;
} files[] = {
	{"as_of", &as_of_kind},	      {"error", &error_kind},
	{"nodes", &nodes_kind},	      {"paths", &result_kind},
	{"paths0", &result_kind},     {"plan", &plan_kind},
	{"result.csv", &result_kind}, {"result.json", &result_kind},
	{"result.tsv", &result_kind}, {"result.txt", &result_kind},
	{"sql", &sql_kind},
};

static int lookup(struct pfs_call *call PFS_UNUSED, struct pfs_virtual *dir PFS_UNUSED,
		  const char *name, struct pfs_virtual_found *found)
{
	size_t i;

	for (i = 0; i < PFS_COUNT(files); i++) {
		if (strcmp(files[i].name, name) == 0) {
			found->kind = files[i].kind;
			return 0;
		}
	}
	return -ENOENT;
}

static int list(struct pfs_call *call PFS_UNUSED, struct pfs_virtual *dir PFS_UNUSED,
		struct pfs_virtual_names *names)
{
	size_t i;

	for (i = 0; i < PFS_COUNT(files); i++)
		PFS_TRY(pfs_virtual_names_add(names, files[i].name, strlen(files[i].name),
					      files[i].kind->mode & S_IFMT));
	return 0;
}

static const struct pfs_virtual_kind saved_kind = {
	.mode = S_IFDIR | 0500,
	.lookup = lookup,
	.list = list,
};

/* ---- in `.query` ---- */

static int add_saved(void *names, const char *name, size_t len)
{
	return pfs_virtual_names_add(names, name, len, S_IFDIR);
}

int pfs_saved_list(struct pfs_call *call, struct pfs_virtual_names *names)
{
	return pfs_tree_list_saved(call->mount->tree, call->scope.ino, add_saved, names);
}

int pfs_saved_lookup(struct pfs_call *call, const char *name, struct pfs_virtual_found *found)
{
	ssize_t n = pfs_tree_get_saved(call->mount->tree, NULL, 0, call->scope.ino, name);

	if (n < 0)
		return n == -ENODATA || n == -ERANGE ? -ENOENT : (int)n;
	found->kind = &saved_kind;
	return 0;
}

int pfs_saved_make(struct pfs_call *call, const char *name)
{
	if (!call->scope.sees_all)
		return -EACCES;
	if (strlen(name) > NAME_MAX_BYTES)
		return pfs_call_fail(call, -ENAMETOOLONG, "%s: more than %d bytes", name,
				     NAME_MAX_BYTES);
	return pfs_tree_set_saved(call->mount->tree, call->scope.ino, name, "", 0, XATTR_CREATE);
}

int pfs_saved_remove(struct pfs_call *call, const char *name)
{
	int error;

	if (!call->scope.sees_all)
		return -EACCES;
	error = pfs_tree_set_saved(call->mount->tree, call->scope.ino, name, NULL, 0,
				   XATTR_REPLACE);
	return error == -ENODATA ? -ENOENT : error;
}
