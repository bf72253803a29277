/* SPDX-License-Identifier: MIT */
/* primefs find - find(1) of a store or a mounted one: SQL selects what it can, and the rest is
 * decided here. */
#include "tools/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/client/ask.h"
#include "tools/gnu/find_search.h"

static const struct pfs_cmd_option options[] = {{0}};
static const struct pfs_cmd command = {
	"find",
	"[STORE] [PATH...] [EXPRESSION]",
	"Finds nodes, as find(1) does.",
	options,
	"PATH is a path of a mounted store or, after a STORE, an absolute path in it.\n"
	"tests      -name -iname -path -ipath -regex -iregex -regextype -lname -type -size -empty\n"
	"           -mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -newerXY -user -group\n"
	"           -uid -gid -nouser -nogroup -perm -links -inum -samefile -true -false\n"
	"actions    -print -print0 -ls -printf -exec -delete -prune -quit\n"
	"global     -maxdepth -mindepth -depth\n"
	"operators  ( ) ! -not -a -and -o -or ,\n"
	"-exec and -delete need the store mounted, and a path of the mount.",
};

/* ---- rows ---- */

static bool no_memory(struct pfs_search *search)
{
	search->run.status = pfs_cmd_fail("find", "no memory");
	return false;
}

/* Takes a row of path, depth, type and the columns. */
static bool take_path(struct pfs_search *search, struct pfs_found *found, struct pfs_row *row)
{
	size_t size;
	const char *path = pfs_row_text(row, &size);
	unsigned depth = (unsigned)pfs_row_number(row);
	char type;

	if (!pfs_search_show(search, path, size))
		return no_memory(search);
	type = pfs_row_letter(row);
	pfs_search_fill(search, found, type, row);
	found->depth = depth - search->start_depth;
	return true;
}

static bool take_start(void *arg, struct pfs_row *row)
{
	struct pfs_search *search = arg;

	if (!take_path(search, &search->start, row))
		return false;
	search->start_len = search->path_len;
	search->start_depth = search->start.depth;
	search->start.depth = 0;
	search->start.target = search->start_target = strdup(search->start.target);
	if (!search->start_target)
		return no_memory(search);
	search->found_start = true;
	if (!search->run.find->depth_first && pfs_search_decide(search, &search->start))
		search->start_pruned = true;
	return !search->run.quit;
}

static bool take_row(void *arg, struct pfs_row *row)
{
	struct pfs_search *search = arg;
	struct pfs_found found;

	if (!take_path(search, &found, row))
		return false;
	if (found.depth) /* depth 0 is the start itself */
		(void)pfs_search_decide(search, &found);
	return !search->run.quit;
}

/* Takes a row of depth, name, type and the columns; it comes after the row of its directory. */
static bool take_name(void *arg, struct pfs_row *row)
{
	struct pfs_search *search = arg;
	size_t depth = (size_t)pfs_row_number(row) - search->start_depth, size;
	const char *name = pfs_row_text(row, &size);
	struct pfs_found found;

	if (!depth) { /* the start itself */
		search->lens_n = 0;
		return true;
	}
	depth = PFS_MIN(depth, search->lens_n + 1);
	if (pfs_grow(&search->lens, &search->lens_capacity, depth + 1, sizeof(*search->lens)) ||
	    !pfs_search_enter(search, depth > 1 ? search->lens[depth - 1] : search->start_len, name,
			      size))
		return no_memory(search);
	search->lens[depth] = search->path_len;
	search->lens_n = depth;
	if (search->prints_all) {
		search->path[search->path_len] = '\n';
		pfs_stdout_put(search->run.out, search->path, search->path_len + 1);
		return true;
	}
	pfs_search_fill(search, &found, pfs_row_letter(row), row);
	found.depth = (unsigned)depth;
	(void)pfs_search_decide(search, &found);
	return !search->run.quit;
}

/* ---- statements ---- */

static int ask(struct pfs_search *search, const char *key, const char *where,
	       bool (*row)(void *arg, struct pfs_row *row))
{
	char list[PFS_FIND_COLUMNS] = "", *sql PFS_FREE = NULL;

	if (!search->prints_all)
		pfs_search_columns(search, list);
	if (asprintf(&sql, "SELECT %s%s FROM nodes WHERE %s", key, list, where) < 0)
		return pfs_cmd_fail("find", "no memory");
	return pfs_place_ask(search->place, sql, row, search);
}

static int ask_start(struct pfs_search *search)
{
	char *path PFS_FREE = pfs_sql_quote(search->place->path), *where PFS_FREE = NULL;
	int status;

	if (!path || asprintf(&where, "path = %s", path) < 0)
		return pfs_cmd_fail("find", "no memory");
	status = ask(search, "path, depth, type", where, take_start);
	if (!status && !search->found_start && !search->run.status)
		return pfs_cmd_fail("find", "%s: %s", search->place->path, strerror(ENOENT));
	return status;
}

/* Asks for everything, each directory before what it contains, so that names suffice. */
static int ask_all(struct pfs_search *search, const char *path, const char *limit)
{
	const struct pfs_find *find = search->run.find;
	const struct pfs_find_node *root = find->root;
	char *where PFS_FREE = NULL;

	search->prints_all = !search->run.terminal && find->min_depth < 2 &&
			     root->kind == PFS_FIND_AND && root->left->kind == PFS_FIND_TRUE &&
			     root->right->kind == PFS_FIND_PRINT;
	if (asprintf(&where, "under(ino, %s)%s ORDER BY preorder", path, limit) < 0)
		return pfs_cmd_fail("find", "no memory");
	return ask(search, search->prints_all ? "depth, name" : "depth, name, type", where,
		   take_name);
}

static int ask_rest(struct pfs_search *search)
{
	const struct pfs_find *find = search->run.find;
	char *path PFS_FREE = pfs_sql_quote(search->place->path);
	char *condition PFS_FREE = pfs_find_condition(find), *where PFS_FREE = NULL;
	char limit[PFS_FIND_LIMIT], least[PFS_FIND_LIMIT] = "";

	pfs_search_limit(search, limit);
	if (find->min_depth > 1)
		(void)snprintf(least, sizeof(least), " AND depth >= %" PRIu64,
			       search->start_depth + (uint64_t)find->min_depth);
	if (path && condition && strcmp(condition, "1") == 0)
		return ask_all(search, path, limit);
	if (!path || !condition ||
	    asprintf(&where, "under(ino, %s)%s%s AND %s", path, least, limit, condition) < 0)
		return pfs_cmd_fail("find", "no memory");
	return ask(search, "path, depth, type", where, take_row);
}

/* ---- places ---- */

static bool remove_node(void *arg, const struct pfs_found *found)
{
	struct pfs_search *search = arg;

	if (found->depth == 0 && strcmp(search->place->path, "/") == 0)
		return true; /* a mounted root stays, as find(1) leaves `.` */
	if (unlinkat(AT_FDCWD, found->path, found->type == 'd' ? AT_REMOVEDIR : 0) == 0)
		return true;
	search->run.status = pfs_cmd_fail("find", "%s: %s", found->path, strerror(errno));
	return false;
}

/* ---- -samefile ---- */

struct same {
	const struct pfs_place *place;
	struct pfs_find_node *node;
	bool found;
};

static bool take_same(void *arg, struct pfs_row *row)
{
	struct same *same = arg;

	same->node->ino = pfs_row_number(row);
	same->node->link = pfs_row_number(row);
	same->found = true;
	return false;
}

/* The file is a path in the store that is searched, or in the mount. */
static int find_same(void *arg, struct pfs_find_node *node)
{
	struct same *same = arg;
	char *path PFS_FREE = pfs_sql_quote(node->text), *sql PFS_FREE = NULL;
	struct stat attr;
	int status;

	if (!same->place->store && lstat(node->text, &attr) != 0)
		return pfs_cmd_fail("find", "-samefile %s: %s", node->text, strerror(errno));
	if (!same->place->store && attr.st_dev != same->place->device)
		return pfs_cmd_fail("find", "-samefile %s: lies outside the mount that is searched",
				    node->text);
	if (!path ||
	    (same->place->store
		     ? asprintf(&sql, "SELECT ino, ifnull(link, 0) FROM nodes WHERE path = %s",
				path)
		     : asprintf(&sql,
				"SELECT ino, ifnull(link, 0) FROM nodes WHERE ino = %llu "
				"UNION ALL SELECT %llu, 0",
				(unsigned long long)attr.st_ino, (unsigned long long)attr.st_ino)) <
		    0)
		return pfs_cmd_fail("find", "no memory");
	same->node = node;
	same->found = false;
	status = pfs_place_ask(same->place, sql, take_same, same);
	if (!status && !same->found)
		return pfs_cmd_fail("find", "-samefile %s: no such path in the store", node->text);
	return status;
}

static int find_same_files(const struct pfs_find *find, const struct pfs_place *place)
{
	struct same same = {.place = place};

	return find->needs & PFS_FIND_LINK ? pfs_find_each_same(find->root, find_same, &same) : 0;
}

static int search_place(struct pfs_find_run *run, const struct pfs_place *place)
{
	struct pfs_search search = {.place = place, .run = *run};
	int status;

	search.run.arg = &search;
	search.run.start = *place->shown ? place->shown : "/";
	search.run.remove = remove_node;
	if (place->store && run->find->acts)
		return pfs_cmd_fail(
			"find",
			"-exec and -delete need the store mounted, and a path of the mount");
	status = find_same_files(run->find, place);
	if (!status)
		status = ask_start(&search);
	if (!status && !search.run.quit && search.start.type == 'd' && !search.start_pruned &&
	    run->find->max_depth > 0)
		status = run->find->ordered ? pfs_search_walk(&search) : ask_rest(&search);
	if (!status && run->find->depth_first && !search.run.quit && search.path) {
		search.path_len = search.start_len;
		search.path[search.path_len] = 0;
		(void)pfs_search_decide(&search, &search.start);
	}
	free(search.path);
	free(search.lens);
	free(search.start_target);
	run->quit = search.run.quit;
	return status ? status : search.run.status;
}

static int search_places(const struct pfs_find *find, char **operands, size_t n_operands)
{
	static struct pfs_stdout out;
	struct pfs_find_run run = {.find = find, .out = &out, .terminal = isatty(STDOUT_FILENO)};
	struct pfs_place *places = NULL;
	size_t n = 0, i;
	int status = pfs_places_open(&places, &n, "find", operands, n_operands, false);

	for (i = 0; i < n && status != PFS_EXIT_USAGE && !run.quit; i++)
		if (places[i].path)
			status = pfs_cmd_worst(status, search_place(&run, &places[i]));
	pfs_find_complete(&run);
	status = status ? status : run.status;
	pfs_places_close(places, n);
	return pfs_stdout_end(&out, "find", status);
}

static bool begins_expression(const char *word)
{
	return *word == '-' || strcmp(word, "(") == 0 || strcmp(word, "!") == 0;
}

int pfs_cmd_find(int argc, char **argv)
{
	struct pfs_cmd_args args;
	struct pfs_find find;
	int n = 1, status, error;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		pfs_cmd_begin(&args, &command, argc, argv);
		while (pfs_cmd_next(&args) >= 0)
			;
		return pfs_cmd_end(&args, 0, -1) ? args.status : PFS_EXIT_OK;
	}
	while (n < argc && !begins_expression(argv[n]))
		n++;
	(void)setlocale(LC_ALL, ""); /* patterns match characters, not bytes */
	error = pfs_find_parse(&find, argv + n, argc - n);
	status = error ? pfs_cmd_usage("find", "%s", find.why)
		       : search_places(&find, argv + 1, (size_t)n - 1);
	pfs_find_finish(&find);
	return status;
}
