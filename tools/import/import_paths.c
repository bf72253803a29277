/* SPDX-License-Identifier: MIT */
/* One path a line, with or without columns behind it. */
#include "tools/import/import_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "tools/import/import.h"
#include "tools/import/import_columns.h"

/* ---- a path ---- */

static size_t common_length(const char *a, const char *b, size_t len)
{
	size_t at = 0;

	for (; at + 8 <= len; at += 8) {
		uint64_t x, y;

		(void)memcpy(&x, a + at, 8);
		(void)memcpy(&y, b + at, 8);
		if (x != y)
			break;
	}
	while (at < len && a[at] == b[at])
		at++;
	return at;
}

/* Keeps of the trail what the path has in common with the last one. */
static int turn(struct pfs_path_trail *trail, const char *path, size_t len)
{
	size_t common = common_length(trail->path, path, PFS_MIN(len, trail->len));

	while (trail->n_above && trail->above[trail->n_above - 1].end > common)
		trail->n_above--;
	PFS_TRY(pfs_grow(&trail->path, &trail->capacity, len, 1));
	if (len > common)
		(void)memcpy(trail->path + common, path + common, len - common);
	trail->len = len;
	return 0;
}

static int enter(struct pfs_path_trail *trail, uint32_t node, size_t end)
{
	PFS_TRY(pfs_grow(&trail->above, &trail->above_capacity, trail->n_above + 1,
			 sizeof(*trail->above)));
	trail->above[trail->n_above].node = node;
	trail->above[trail->n_above++].end = end;
	return 0;
}

/* A path is added whole or not at all. */
static int check_path(const char *path, const char *end)
{
	while (path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		size_t size = (size_t)((slash ? slash : end) - path);

		if (size == 2 && path[0] == '.' && path[1] == '.')
			return -ELOOP;
		if (size > PFS_NAME_MAX)
			return -ENAMETOOLONG;
		if (memchr(path, 0, size))
			return -EINVAL;
		path += size + (slash != NULL);
	}
	return 0;
}

/* The next component of the path, from *at on, which goes behind it and its slash. */
static int add_component(struct pfs_path_trail *trail, struct pfs_path_node *out,
			 struct pfs_build *build, size_t *at)
{
	const char *name = trail->path + *at;
	const char *slash = memchr(name, '/', trail->len - *at);
	size_t size = slash ? (size_t)(slash - name) : trail->len - *at;

	*at += size + (slash != NULL);
	if (size > 1 || (size == 1 && *name != '.')) {
		PFS_TRY(pfs_build_add(build, &out->node, &out->seen, out->node, name, size, NULL));
		if (slash)
			PFS_TRY(pfs_build_set_directory(build, out->node));
	}
	return slash ? enter(trail, out->node, *at) : 0;
}

int pfs_path_add(struct pfs_path_trail *trail, struct pfs_path_node *out, struct pfs_build *build,
		 const char *path, size_t len)
{
	size_t at = 0;

	PFS_TRY(turn(trail, path, len));
	*out = (struct pfs_path_node){.node = PFS_BUILD_ROOT, .seen = PFS_BUILD_AGAIN};
	if (trail->n_above) {
		out->node = trail->above[trail->n_above - 1].node;
		at = trail->above[trail->n_above - 1].end;
	}
	PFS_TRY(check_path(path + at, path + len));
	while (at < len)
		PFS_TRY(add_component(trail, out, build, &at));
	return 0;
}

int pfs_path_find(const struct pfs_build *build, uint32_t *node, const char *path, size_t len)
{
	const char *end = path + len;

	for (*node = PFS_BUILD_ROOT; path < end;) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		size_t size = (size_t)((slash ? slash : end) - path);

		if (size > 1 || (size == 1 && path[0] != '.'))
			PFS_TRY(pfs_build_find(build, node, *node, path, size));
		path += size + (slash != NULL);
	}
	return 0;
}

void pfs_path_free(struct pfs_path_trail *trail)
{
	free(trail->path);
	free(trail->above);
	*trail = (struct pfs_path_trail){0};
}

/* ---- the format ---- */

struct paths {
	struct pfs_import_columns columns;
	struct pfs_path_trail trail;
	uint64_t line;
	uint64_t *place; /* by node: 1 + where its line begins in the input; with columns only */
	size_t n_places, places_capacity;
};

static int note_place(struct paths *paths, uint32_t node, uint64_t offset)
{
	PFS_TRY(pfs_grow(&paths->place, &paths->places_capacity, (size_t)node + 1,
			 sizeof(*paths->place)));
	while (paths->n_places <= node)
		paths->place[paths->n_places++] = 0;
	paths->place[node] = offset + 1;
	return 0;
}

/* Cuts the next field off the rest of a line; false when there is none. */
static bool next_field(const char **field, size_t *len, const char **rest, const char *end)
{
	const char *tab;

	if (!*rest)
		return false;
	*field = *rest;
	tab = memchr(*rest, '\t', (size_t)(end - *rest));
	*len = (size_t)((tab ? tab : end) - *rest);
	*rest = tab ? tab + 1 : NULL;
	return true;
}

/* The fields after the path; *any: one of them has a value.  1: the line is to be skipped. */
static int see_fields(struct pfs_import *import, bool *any, const char *rest, const char *end)
{
	struct paths *paths = import->state;
	const char *field, *why;
	size_t i, len;

	for (i = 0; next_field(&field, &len, &rest, end); i++) {
		if (i == paths->columns.n) {
			PFS_TRY(pfs_import_problem(
				import, "%s:%llu: more fields than the %zu of --columns",
				import->input.name, (unsigned long long)paths->line,
				paths->columns.n));
			return 1;
		}
		why = pfs_import_column_see(&paths->columns.list[i], field, len);
		if (why) {
			PFS_TRY(pfs_import_problem(
				import, "%s:%llu: the value of '%s' %s", import->input.name,
				(unsigned long long)paths->line, paths->columns.list[i].name, why));
			return 1;
		}
		*any |= len > 0;
	}
	return 0;
}

static int take_line(struct pfs_import *import, const char *line, size_t len, uint64_t offset)
{
	struct paths *paths = import->state;
	const char *end = line + len, *rest = NULL;
	struct pfs_path_node at;
	bool any = false;
	int error;

	if (paths->columns.n) {
		const char *tab = memchr(line, '\t', len);

		rest = tab ? tab + 1 : NULL;
		len = tab ? (size_t)(tab - line) : len;
	}
	if (len == 0)
		return rest ? pfs_import_problem(import, "%s:%llu: no path before the first tab",
						 import->input.name,
						 (unsigned long long)paths->line)
			    : 0;
	error = see_fields(import, &any, rest, end);
	if (error)
		return error > 0 ? 0 : error;
	error = pfs_path_add(&paths->trail, &at, import->build, line, len);
	if (!error && at.seen == PFS_BUILD_STORED &&
	    !pfs_build_is_directory(import->build, at.node))
		error = -EEXIST;
	if (error == -ENOMEM || error == -EOVERFLOW)
		return error;
	if (error)
		return pfs_import_problem(import, "%s:%llu: %s", import->input.name,
					  (unsigned long long)paths->line,
					  pfs_import_name_error(error));
	if (!any)
		return 0;
	pfs_build_set_flags(import->build, at.node, PFS_NODE_ATTRS, 0);
	return note_place(paths, at.node, offset);
}

static int open_paths(struct pfs_import *import)
{
	struct paths *paths = calloc(1, sizeof(*paths));
	const char *why = NULL;

	if (!paths)
		return -ENOMEM;
	import->state = paths;
	if (!import->options.columns)
		return 0;
	why = pfs_import_columns_parse(&paths->columns, import->options.columns);
	if (why)
		return pfs_import_fail(import, "--columns=%s: %s", import->options.columns, why);
	return pfs_import_keep(import);
}

static int read_paths(struct pfs_import *import)
{
	char delimiter = import->options.nul_ended ? 0 : '\n';
	struct paths *paths;
	const char *line;
	size_t len;
	int got;

	PFS_TRY(open_paths(import));
	paths = import->state;
	for (;;) {
		uint64_t offset = pfs_input_tell(&import->input);

		got = pfs_input_record(&import->input, &line, &len, delimiter);
		if (got <= 0)
			break;
		paths->line++;
		PFS_TRY(take_line(import, line, len, offset));
		if (paths->line % 65536 == 0)
			pfs_import_progress(import);
	}
	if (got == -EMSGSIZE)
		return pfs_import_fail(import,
				       "%s:%llu: longer than 64 MiB; is this a list of paths?",
				       import->input.name, (unsigned long long)paths->line + 1);
	if (got < 0)
		return pfs_import_unreadable(import, got);
	pfs_path_free(&paths->trail);
	return pfs_import_columns_settle(&paths->columns, pfs_build_store(import->build));
}

static int paths_written(struct pfs_import *import, uint32_t node, uint64_t prime)
{
	char delimiter = import->options.nul_ended ? 0 : '\n';
	struct paths *paths = import->state;
	const char *line, *rest, *field, *end;
	size_t i, len;

	if (node >= paths->n_places || !paths->place[node])
		return 0;
	PFS_TRY(pfs_input_seek(&import->input, paths->place[node] - 1));
	if (pfs_input_record(&import->input, &line, &len, delimiter) != 1)
		return pfs_import_fail(import, "%s: changed while it was read", import->input.name);
	end = line + len;
	rest = memchr(line, '\t', len);
	rest += rest != NULL;
	for (i = 0; i < paths->columns.n && next_field(&field, &len, &rest, end); i++)
		PFS_TRY(pfs_import_column_put(&paths->columns.list[i],
					      pfs_build_store(import->build), prime, field, len));
	return 0;
}

static void close_paths(struct pfs_import *import)
{
	struct paths *paths = import->state;

	if (!paths)
		return;
	pfs_import_columns_free(&paths->columns);
	pfs_path_free(&paths->trail);
	free(paths->place);
	free(paths);
}

const struct pfs_import_format pfs_import_paths = {
	.name = "paths",
	.read = read_paths,
	.written = paths_written,
	.close = close_paths,
};
