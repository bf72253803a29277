/* SPDX-License-Identifier: MIT */
/* `.query` itself, and the simple files in it. */
#include "fs/mount/query/virtual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>

#include "base/cleanup.h"
#include "fs/content/compared.h"
#include "fs/content/follow.h"
#include "fs/nodes/paths.h"
#include "fs/query/output/treemap.h"

#define TREEMAP_WIDTH  1200
#define TREEMAP_HEIGHT 800

/* ---- run ---- */

static int fill_nothing(struct pfs_call *call PFS_UNUSED, struct pfs_virtual *file PFS_UNUSED,
			struct pfs_answer *answer PFS_UNUSED)
{
	return 0;
}

/* Tells a user who does not see all who may change something: a statement of his could not change
 * every node that it names. */
static void add_who_may(struct pfs_call *call)
{
	char *reason PFS_FREE = pfs_call_reason(call, 0);

	if (reason)
		(void)pfs_call_fail(call, -EACCES,
				    "%s(only root and the user who mounted change anything by "
				    "statements; mv, rm, chmod and the like are for all)",
				    reason);
}

/* Runs what was written as a statement, whose answer replaces the last one. */
static int run(struct pfs_call *call, struct pfs_handle *handle, const char *data, size_t size,
	       off_t offset)
{
	struct pfs_answer *answer;
	int error;

	error = pfs_call_room(call, &answer, 0);
	if (error)
		return error;
	pfs_handle_act(handle, call);
	call->scope.may_change = call->scope.sees_all;
	error = pfs_call_answer(call, answer, PFS_FORMAT_TSV, data, size);
	if (error == -EACCES && !call->scope.sees_all)
		add_who_may(call);
	if (error) {
		pfs_answer_close(answer);
		return error;
	}
	PFS_LOCKED(&handle->lock);
	pfs_handle_replace(handle, answer, call->growing, (uint64_t)offset + size);
	return 0;
}

static const struct pfs_virtual_kind run_kind = {
	.mode = S_IFREG | 0600,
	.others_write = true,
	.runs = true,
	.fill = fill_nothing,
	.write = run,
};

/* ---- sql: statements as names ---- */

static int fill_statement(struct pfs_call *call, struct pfs_virtual *file,
			  struct pfs_answer *answer)
{
	static const char *const suffixes[] = {"csv", "json", "tsv", "txt"};
	enum pfs_format format = PFS_FORMAT_TSV;
	const char *dot = strrchr(file->name, '.');
	size_t len = strlen(file->name), i;

	for (i = 0; dot && i < PFS_COUNT(suffixes); i++) {
		if (strcmp(dot + 1, suffixes[i]) == 0) {
			len = (size_t)(dot - file->name);
			PFS_TRY(pfs_format_by_name(&format, dot + 1, strlen(dot + 1)));
			break;
		}
	}
	return pfs_call_answer(call, answer, format, file->name, len);
}

static const struct pfs_virtual_kind statement_kind = {
	.mode = S_IFREG | 0400,
	.runs = true,
	.fill = fill_statement,
};

static int lookup_statement(struct pfs_call *call PFS_UNUSED, struct pfs_virtual *dir PFS_UNUSED,
			    const char *name PFS_UNUSED, struct pfs_virtual_found *found)
{
	found->kind = &statement_kind;
	return 0;
}

static const struct pfs_virtual_kind sql_kind = {
	.mode = S_IFDIR | 0500,
	.lookup = lookup_statement,
};

/* ---- error, paths, treemap.svg ---- */

static int fill_error(struct pfs_call *call, struct pfs_virtual *file PFS_UNUSED,
		      struct pfs_answer *answer)
{
	char *reason PFS_FREE = pfs_call_reason(call, 0);

	return reason ? pfs_answer_text(answer, reason) : 0;
}

static const struct pfs_virtual_kind error_kind = {
	.mode = S_IFREG | 0400,
	.fill = fill_error,
};

static int next_paths(void *paths, uint64_t *row,
		      int (*fn)(void *arg, const char *bytes, size_t size), void *arg)
{
	return pfs_paths_next(paths, row, fn, arg);
}

static int measure_paths(void *paths, uint64_t *row, uint64_t *size, uint64_t n)
{
	return pfs_paths_measure(paths, row, size, n);
}

static void close_paths(void *paths)
{
	pfs_paths_close(paths);
}

static int stream_paths(struct pfs_call *call, struct pfs_answer *answer)
{
	struct pfs_stream_source source = {NULL, next_paths, measure_paths, close_paths};
	struct pfs_stream *stream;
	struct pfs_paths *paths;

	PFS_TRY(pfs_paths_open(&paths, call->mount->tree, call->scope.ino, 0));
	source.arg = paths;
	PFS_TRY(pfs_stream_open(&stream, &source, PFS_ANSWER_MEMORY));
	return pfs_answer_set_stream(answer, stream,
				     &(struct pfs_stream_wait){pfs_call_is_gone, call});
}

static int fill_paths(struct pfs_call *call, struct pfs_virtual *file PFS_UNUSED,
		      struct pfs_answer *answer)
{
	static const char visible[] = "SELECT path FROM nodes ORDER BY preorder";
	int error;

	if (!call->scope.sees_all)
		return pfs_call_answer(call, answer, PFS_FORMAT_PATHS, visible, strlen(visible));
	pfs_dispatch_yield();
	error = stream_paths(call, answer);
	if (error && error != -EINTR)
		return pfs_call_fail(call, error, "paths: %s", strerror(-error));
	return error;
}

static const struct pfs_virtual_kind paths_kind = {
	.mode = S_IFREG | 0400,
	.runs_for_others = true,
	.fill = fill_paths,
};

static int add_tile(void *treemap, const struct pfs_query *query)
{
	if (query)
		return pfs_treemap_row(treemap, query);
	pfs_treemap_clear(treemap);
	return 0;
}

static int draw_treemap(struct pfs_call *call, struct pfs_treemap *treemap,
			struct pfs_answer *answer)
{
	struct pfs_sink sink = {answer, pfs_answer_write};
	char *path PFS_FREE = NULL;
	char sql[PFS_TREEMAP_STATEMENT];
	size_t len = pfs_treemap_statement(treemap, sql, call->scope.ino);

	PFS_TRY(pfs_call_rows(call, sql, len, add_tile, treemap));
	PFS_TRY(pfs_tree_path(call->mount->tree, &path, call->scope.ino));
	return pfs_treemap_write(treemap, &sink, call->scope.ino, path);
}

static int fill_treemap(struct pfs_call *call, struct pfs_virtual *file PFS_UNUSED,
			struct pfs_answer *answer)
{
	struct pfs_treemap *treemap;
	int error = pfs_treemap_create(&treemap, TREEMAP_WIDTH, TREEMAP_HEIGHT);

	if (error)
		return error;
	error = draw_treemap(call, treemap, answer);
	pfs_treemap_close(treemap);
	return error;
}

static const struct pfs_virtual_kind treemap_kind = {
	.mode = S_IFREG | 0400,
	.runs = true,
	.fill = fill_treemap,
};

/* ---- as_of ---- */

/* Writes the time as text; "" if it has no calendar date. */
static const char *show_time(char out[64], time_t time)
{
	struct tm tm;

	if (!gmtime_r(&time, &tm) || !strftime(out, 64, "%Y-%m-%dT%H:%M:%SZ", &tm))
		*out = 0;
	return out;
}

static void print_compared(FILE *out, const struct pfs_compared_times *times, const char *path)
{
	char date[64];

	if (times->full_s)
		(void)fprintf(out, "compared %s %s\n", show_time(date, times->full_s), path);
	if (times->quick_s > times->full_s)
		(void)fprintf(out, "directories %s %s\n", show_time(date, times->quick_s), path);
	if (times->flat_s)
		(void)fprintf(out, "entries %s %s\n", show_time(date, times->flat_s), path);
}

/* Finds the path of a part of the tree; returns false if it is not below the directory `above`. */
static bool find_part(struct pfs_tree *tree, char **path, uint64_t ino, const char *above)
{
	size_t len = strlen(above);

	*path = NULL;
	return !pfs_tree_path(tree, path, ino) && strlen(*path) > len &&
	       memcmp(*path, above, len) == 0 && (len == 1 || (*path)[len] == '/');
}

/* Prints the parts whose times differ from those of the whole. */
static int print_parts(struct pfs_call *call, FILE *out, const struct pfs_compared_times *all,
		       const char *above)
{
	struct pfs_tree *tree = call->mount->tree;
	struct pfs_compared_stamp *list PFS_FREE = NULL;
	size_t n;

	PFS_TRY(pfs_compared_list(tree, &list, &n));
	for (size_t i = 0; i < n; i++) {
		struct pfs_compared_times times;
		char *path PFS_FREE = NULL;

		if (!find_part(tree, &path, list[i].ino, above) ||
		    pfs_compared_node(tree, &times, list[i].ino))
			continue;
		times.full_s = times.full_s == all->full_s ? 0 : times.full_s;
		times.quick_s = times.quick_s == all->quick_s ? 0 : times.quick_s;
		print_compared(out, &times, path);
	}
	return 0;
}

/* A user who does not see all is told of the directory alone, since he may not be allowed to know
 * the names of its parts. */
int pfs_call_compared(struct pfs_call *call, char **text)
{
	struct pfs_compared_times times;
	char *path PFS_FREE = NULL;
	size_t size;
	FILE *out;
	int error = pfs_compared_load(call->mount->tree);

	*text = NULL;
	if (!error)
		error = pfs_tree_path(call->mount->tree, &path, call->scope.ino);
	if (!error)
		error = pfs_compared_node(call->mount->tree, &times, call->scope.ino);
	if (error)
		return error;
	out = open_memstream(text, &size);
	if (!out)
		return -ENOMEM;
	print_compared(out, &times, path);
	if (call->scope.sees_all)
		error = print_parts(call, out, &times, path);
	if (fclose(out) && !error)
		error = -ENOMEM;
	if (error)
		free(PFS_TAKE(*text));
	return error;
}

/* Only users who see all are told the epoch, which also counts changes in directories that are
 * closed to others, and which directories cannot be read. */
static int fill_as_of(struct pfs_call *call, struct pfs_virtual *file PFS_UNUSED,
		      struct pfs_answer *answer)
{
	struct pfs_tree *tree = call->mount->tree;
	struct pfs_follow_state state;
	char line[sizeof(state.how) + 128], date[64], *compared PFS_FREE = NULL;

	pfs_follow_get_state(tree, &state);
	if (call->scope.sees_all) {
		(void)snprintf(line, sizeof(line), "epoch %llu\n",
			       (unsigned long long)pfs_follow_epoch(tree));
		PFS_TRY(pfs_answer_text(answer, line));
	}
	(void)snprintf(line, sizeof(line), "time %s\n", show_time(date, time(NULL)));
	PFS_TRY(pfs_answer_text(answer, line));
	(void)snprintf(line, sizeof(line), "source %s\n", *state.how ? state.how : "not followed");
	PFS_TRY(pfs_answer_text(answer, line));
	if (call->scope.sees_all)
		PFS_TRY(pfs_answer_text(answer, state.unread));
	PFS_TRY(pfs_call_compared(call, &compared));
	return pfs_answer_text(answer, compared);
}

static const struct pfs_virtual_kind as_of_kind = {
	.mode = S_IFREG | 0400,
	.fill = fill_as_of,
};

/* ---- the directory ---- */

static const struct fixed {
	const char *name;
	const struct pfs_virtual_kind *kind;
} fixed[] = {
	{"as_of", &as_of_kind},
	{"error", &error_kind},
	{"help", &pfs_help_kind},
	{"paths", &paths_kind},
	{"resolve", &pfs_resolve_kind},
	{"run", &run_kind},
	{"sql", &sql_kind},
	{"stats", &pfs_stats_kind},
	{"tables", &pfs_tables_kind},
	{"treemap.svg", &treemap_kind},
	{"where", &pfs_where_kind},
};

static const struct pfs_virtual_kind *find_fixed(const char *name)
{
	size_t i;

	for (i = 0; i < PFS_COUNT(fixed); i++)
		if (strcmp(fixed[i].name, name) == 0)
			return fixed[i].kind;
	return NULL;
}

static int lookup(struct pfs_call *call, struct pfs_virtual *dir PFS_UNUSED, const char *name,
		  struct pfs_virtual_found *found)
{
	found->kind = find_fixed(name);
	return found->kind ? 0 : pfs_saved_lookup(call, name, found);
}

static int list(struct pfs_call *call, struct pfs_virtual *dir PFS_UNUSED,
		struct pfs_virtual_names *names)
{
	size_t i;

	for (i = 0; i < PFS_COUNT(fixed); i++)
		PFS_TRY(pfs_virtual_names_add(names, fixed[i].name, strlen(fixed[i].name),
					      fixed[i].kind->mode & S_IFMT));
	return pfs_saved_list(call, names);
}

static int make(struct pfs_call *call, struct pfs_virtual *dir PFS_UNUSED, const char *name,
		mode_t type)
{
	if (find_fixed(name))
		return -EEXIST;
	return S_ISDIR(type) ? pfs_saved_make(call, name) : -EPERM;
}

static int remove_(struct pfs_call *call, struct pfs_virtual *dir PFS_UNUSED, const char *name,
		   mode_t type)
{
	if (find_fixed(name))
		return -EPERM;
	return S_ISDIR(type) ? pfs_saved_remove(call, name) : -EISDIR;
}

const struct pfs_virtual_kind pfs_query_kind = {
	.mode = S_IFDIR | 0700,
	.lookup = lookup,
	.list = list,
	.make = make,
	.remove = remove_,
};
