/* SPDX-License-Identifier: MIT */
/* primefs find - find(1) over a store or a mounted one: what can be said in SQL is asked for, the
 * rest is decided here. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/answer.h"
#include "tools/ask.h"
#include "tools/cmd.h"
#include "tools/find_search.h"

#define OUT_SIZE ((size_t)1 << 20)
#define KEY	 "path, depth"
#define N_KEY	 2

static const struct pfs_cmd_option options[] = {{0}};
static const struct pfs_cmd command = {
	"find",
	"[STORE] [PATH...] [EXPRESSION]",
	"Finds nodes, as find(1) does.",
	options,
	"PATH is a path of a mounted store or, after a STORE, an absolute path in it.\n"
	"tests      -name -iname -path -ipath -regex -iregex -regextype -lname -type -size -empty\n"
	"           -mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -newerXY -user -group\n"
	"           -uid -gid -nouser -nogroup -perm -links -inum -true -false\n"
	"actions    -print -print0 -ls -printf -exec -delete -prune -quit\n"
	"global     -maxdepth -mindepth -depth\n"
	"operators  ( ) ! -not -a -and -o -or ,\n"
	"-exec and -delete need the store mounted, and a path of the mount.",
};

/* ---- rows ---- */

static const struct {
	unsigned need; /* 0: always */
	const char *column;
} columns[] = {
	{0, "type"},		     {PFS_FIND_INO, "ino"},	  {PFS_FIND_MODE, "mode"},
	{PFS_FIND_NLINK, "nlink"},   {PFS_FIND_UID, "uid"},	  {PFS_FIND_GID, "gid"},
	{PFS_FIND_SIZE, "size"},     {PFS_FIND_BLOCKS, "blocks"}, {PFS_FIND_MTIME, "mtime"},
	{PFS_FIND_ATIME, "atime"},   {PFS_FIND_CTIME, "ctime"},	  {PFS_FIND_TARGET, "target"},
	{PFS_FIND_RDEV, "rdev"},     {PFS_FIND_EMPTY, "subtree_count"},
};

static void take_field(struct pfs_found *found, unsigned need, const char *text)
{
	switch (need) {
	case PFS_FIND_INO:
		found->ino = strtoull(text, NULL, 10);
		break;
	case PFS_FIND_MODE:
		found->mode = (mode_t)strtoul(text, NULL, 10);
		break;
	case PFS_FIND_NLINK:
		found->nlink = strtoull(text, NULL, 10);
		break;
	case PFS_FIND_UID:
		found->uid = (uid_t)strtoul(text, NULL, 10);
		break;
	case PFS_FIND_GID:
		found->gid = (gid_t)strtoul(text, NULL, 10);
		break;
	case PFS_FIND_SIZE:
		found->size = strtoll(text, NULL, 10);
		break;
	case PFS_FIND_BLOCKS:
		found->blocks = strtoll(text, NULL, 10);
		break;
	case PFS_FIND_MTIME:
		found->mtime = strtoll(text, NULL, 10);
		break;
	case PFS_FIND_ATIME:
		found->atime = strtoll(text, NULL, 10);
		break;
	case PFS_FIND_CTIME:
		found->ctime = strtoll(text, NULL, 10);
		break;
	case PFS_FIND_TARGET:
		found->target = text;
		break;
	case PFS_FIND_RDEV:
		found->rdev = strtoull(text, NULL, 10);
		break;
	default:
		found->empty = strcmp(text, "1") == 0;
		break;
	}
}

/* What is printed for an absolute path in the store: what stands for the place, and the rest. */
static bool show(struct pfs_search *search, const char *path, size_t size)
{
	const char *shown = search->place->shown, *rest = path;
	size_t len = strlen(shown), above = strlen(search->place->path);

	rest += above > 1 ? above : 0;
	if (len && shown[len - 1] == '/' && *rest == '/')
		rest++;
	if (len && !strcmp(rest, "/")) /* the store's root, mounted */
		rest++;
	size = (size_t)(path + size - rest);
	if (pfs_grow(&search->path, &search->capacity, len + size + 1, 1))
		return false;
	(void)memcpy(mempcpy(search->path, shown, len), rest, size + 1);
	return true;
}

static const char *last_component(const char *path)
{
	const char *end = strchr(path, 0), *at = end;

	while (at > path + 1 && at[-1] == '/')
		at--;
	while (at > path && at[-1] != '/')
		at--;
	return *at ? at : path;
}

void pfs_search_fill(const struct pfs_search *search, struct pfs_found *found, char **field, size_t n)
{
	size_t at = 0;

	found->target = "";
	for (size_t i = 0; i < PFS_COUNT(columns) && at < n; i++) {
		if (!columns[i].need)
			found->type = *field[at++];
		else if (columns[i].need & search->run.find->needs)
			take_field(found, columns[i].need, field[at++]);
	}
}

void pfs_search_name(const struct pfs_search *search, struct pfs_found *found)
{
	found->path = search->path;
	found->path_len = strlen(search->path);
	found->name = last_component(search->path);
}

bool pfs_search_decide(struct pfs_search *search, const struct pfs_found *found)
{
	const struct pfs_find *find = search->run.find;

	if (found->depth < find->min_depth || found->depth > find->max_depth)
		return false;
	(void)pfs_find_decide(&search->run, found);
	return search->run.pruned;
}

/* A row of path, depth and the columns. */
static bool fill(struct pfs_search *search, struct pfs_found *found, const struct pfs_row *row)
{
	if (row->n < N_KEY || !show(search, row->field[0], row->size[0])) {
		search->run.status = pfs_cmd_fail("find", "no memory");
		return false;
	}
	*found = (struct pfs_found){
		.depth = (unsigned)strtoul(row->field[1], NULL, 10) - search->start_depth};
	pfs_search_fill(search, found, row->field + N_KEY, row->n - N_KEY);
	pfs_search_name(search, found);
	return true;
}

static bool take_start(void *arg, const struct pfs_row *row)
{
	struct pfs_search *search = arg;

	search->start_depth = row->n > 1 ? (unsigned)strtoul(row->field[1], NULL, 10) : 0;
	if (!fill(search, &search->start, row))
		return false;
	search->found_start = true;
	if (!search->run.find->depth_first && pfs_search_decide(search, &search->start))
		search->start_pruned = true;
	return !search->run.quit;
}

static bool take_row(void *arg, const struct pfs_row *row)
{
	struct pfs_search *search = arg;
	struct pfs_found found;

	if (!fill(search, &found, row))
		return false;
	(void)pfs_search_decide(search, &found);
	return !search->run.quit;
}

/* ---- statements ---- */

int pfs_search_ask(struct pfs_search *search, const char *key, const char *where,
		   bool (*row)(void *arg, const struct pfs_row *row), void *arg)
{
	char list[256] = "", *sql PFS_FREE = NULL;
	size_t n = 0;

	for (size_t i = 0; i < PFS_COUNT(columns); i++)
		if (!columns[i].need || columns[i].need & search->run.find->needs)
			n += (size_t)snprintf(list + n, sizeof(list) - n, ", %s", columns[i].column);
	if (asprintf(&sql, "SELECT %s%s FROM nodes WHERE %s", key, list, where) < 0)
		return pfs_cmd_fail("find", "no memory");
	return pfs_place_ask(search->place, sql, row, arg);
}

static int ask_start(struct pfs_search *search)
{
	char *path PFS_FREE = pfs_sql_quote(search->place->path), *where PFS_FREE = NULL;
	int status;

	if (!path || asprintf(&where, "path = %s", path) < 0)
		return pfs_cmd_fail("find", "no memory");
	status = pfs_search_ask(search, KEY, where, take_start, search);
	if (!status && !search->found_start && !search->run.status)
		return pfs_cmd_fail("find", "%s: %s", search->place->path, strerror(ENOENT));
	/* decided last when contents come first */
	search->start.path = search->path;
	search->path = NULL;
	search->capacity = 0;
	return status;
}

static int ask_rest(struct pfs_search *search)
{
	const struct pfs_find *find = search->run.find;
	uint64_t low = search->start_depth + (uint64_t)PFS_MAX(find->min_depth, 1);
	uint64_t high = search->start_depth + (uint64_t)find->max_depth;
	char *path PFS_FREE = pfs_sql_quote(search->place->path);
	char *condition PFS_FREE = pfs_find_condition(find), *where PFS_FREE = NULL;
	char limits[64] = "";

	if (find->max_depth != UINT32_MAX)
		(void)snprintf(limits, sizeof(limits), " AND depth <= %" PRIu64, high);
	if (!path || !condition ||
	    asprintf(&where, "under(ino, %s) AND depth >= %" PRIu64 "%s AND %s", path, low, limits,
		     condition) < 0)
		return pfs_cmd_fail("find", "no memory");
	return pfs_search_ask(search, KEY, where, take_row, search);
}

/* ---- everything, as paths only ---- */

/* Paths come in pieces of any size; `end` ends each path. */
struct paths {
	const struct pfs_search *search;
	char end;
	size_t shown_len, above; /* of the place as it is shown; what its path in the store takes */
	char *bytes; /* that have not been taken: the beginning of a path */
	size_t n, capacity;
	char *out; /* that has not been printed */
	size_t n_out, out_capacity;
};

static int print_paths(struct paths *paths)
{
	size_t n = paths->n_out;

	paths->n_out = 0;
	return !n || fwrite_unlocked(paths->out, 1, n, paths->search->run.out) == n ? 0 : -EIO;
}

/* One absolute path in the store, or the rest of one whose name has a newline. */
static int take_path(struct paths *paths, const char *path, size_t size)
{
	const char *shown = paths->search->place->shown, *end = path + size;
	size_t len = 0;
	char *out;

	if (size && *path == '/') {
		len = paths->shown_len;
		path += paths->above;
		path += len && (shown[len - 1] == '/' || size == 1) && *path == '/';
	}
	size = (size_t)(end - path);
	if (paths->n_out + len + size + 1 > paths->out_capacity)
		PFS_TRY(print_paths(paths));
	PFS_TRY(pfs_grow(&paths->out, &paths->out_capacity, PFS_MAX(len + size + 1, OUT_SIZE), 1));
	out = paths->out + paths->n_out;
	memcpy(out, shown, len);
	memcpy(out + len, path, size);
	out[len + size] = '\n';
	paths->n_out += len + size + 1;
	return 0;
}

/* `size` bytes have been put after those that were there. */
static int take_new(struct paths *paths, size_t size)
{
	char *at = paths->bytes, *stop = at + paths->n + size, *next;

	for (; (next = memchr(at, paths->end, (size_t)(stop - at))); at = next + 1)
		PFS_TRY(take_path(paths, at, (size_t)(next - at)));
	paths->n = (size_t)(stop - at);
	(void)memmove(paths->bytes, at, paths->n);
	return 0;
}

/* A sink's write. */
static int take_paths(void *arg, const void *piece, size_t size)
{
	struct paths *paths = arg;

	if (pfs_grow(&paths->bytes, &paths->capacity, paths->n + size + 1, 1) || !paths->bytes)
		return -ENOMEM;
	(void)memcpy(paths->bytes + paths->n, piece, size);
	return take_new(paths, size);
}

static int fail_paths(const struct pfs_place *place, int error)
{
	return pfs_cmd_fail("find", "%s/.query/paths: %s", place->folder, strerror(error));
}

static int copy_paths(struct paths *paths)
{
	const struct pfs_place *place = paths->search->place;
	int folder PFS_CLOSE = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd PFS_CLOSE = folder < 0 ? -1 : openat(folder, ".query/paths", O_RDONLY | O_CLOEXEC);
	ssize_t got = 0;

	if (fd < 0)
		return fail_paths(place, errno);
	do {
		if (pfs_grow(&paths->bytes, &paths->capacity, paths->n + OUT_SIZE, 1))
			return fail_paths(place, ENOMEM);
		got = read(fd, paths->bytes + paths->n, OUT_SIZE);
	} while (got > 0 && !take_new(paths, (size_t)got));
	return got < 0 ? fail_paths(place, errno) : PFS_EXIT_OK;
}

static bool wants_all_paths(const struct pfs_search *search)
{
	const struct pfs_find *find = search->run.find;
	const struct pfs_find_node *root = find->root;

	return !search->run.terminal && root->kind == PFS_FIND_AND && root->left->kind == PFS_FIND_TRUE &&
	       root->right->kind == PFS_FIND_PRINT && !find->min_depth &&
	       find->max_depth == UINT32_MAX && !find->depth_first;
}

static bool note_one(void *arg, const struct pfs_row *row PFS_UNUSED)
{
	*(bool *)arg = true;
	return false;
}

/* Lines are paths, unless a name ends with a newline: "/a\n/b" could be one, or two. */
static int are_lines_paths(const struct pfs_place *place, bool *are)
{
	bool found = false;
	struct stat attr;

	*are = false;
	if (lstat(place->shown, &attr) != 0 || !S_ISDIR(attr.st_mode))
		return PFS_EXIT_OK;
	PFS_TRY(pfs_place_ask(place, "SELECT 1 FROM nodes WHERE name GLOB '*\n' LIMIT 1", note_one,
			      &found));
	*are = !found;
	return PFS_EXIT_OK;
}

/* *done: all has been listed. */
static int list_all(const struct pfs_search *search, bool *done)
{
	const struct pfs_place *place = search->place;
	const char *const words[] = {"tree", "subtree", "print0", "--", place->path};
	size_t above = strlen(place->path);
	struct paths paths = {
		.search = search,
		.end = place->store ? 0 : '\n',
		.shown_len = strlen(place->shown),
		.above = above > 1 ? above : 0,
	};
	const struct pfs_sink sink = {&paths, take_paths};
	int status = PFS_EXIT_OK;

	*done = true;
	if (place->store) {
		status = pfs_answerer_ask(place->store, &sink, words, PFS_COUNT(words));
	} else {
		PFS_TRY(are_lines_paths(place, done));
		if (*done)
			status = copy_paths(&paths);
	}
	(void)print_paths(&paths); /* whether all went out is asked at the end */
	free(paths.bytes);
	free(paths.out);
	return status;
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

static int search_place(struct pfs_find_run *run, const struct pfs_place *place)
{
	struct pfs_search search = {.place = place, .run = *run};
	int status;

	search.run.arg = &search;
	search.run.start = *place->shown ? place->shown : "/";
	search.run.remove = remove_node;
	if (place->store && run->find->acts)
		return pfs_cmd_fail("find", "-exec and -delete need the store mounted, and a path of the mount");
	if (wants_all_paths(&search)) {
		bool done;

		status = list_all(&search, &done);
		if (status || done)
			return status;
	}
	status = ask_start(&search);
	if (!status && !search.run.quit && search.start.type == 'd' && !search.start_pruned &&
	    run->find->max_depth > 0)
		status = run->find->ordered ? pfs_search_walk(&search) : ask_rest(&search);
	if (!status && run->find->depth_first && !search.run.quit)
		(void)pfs_search_decide(&search, &search.start);
	free((char *)search.start.path);
	free(search.path);
	run->quit = search.run.quit;
	return status ? status : search.run.status;
}

static int search_places(const struct pfs_find *find, char **operands, size_t n_operands)
{
	struct pfs_find_run run = {
		.find = find, .out = stdout, .terminal = isatty(STDOUT_FILENO)};
	struct pfs_place *places = NULL;
	size_t n = 0, i;
	int status = pfs_places_open(&places, &n, "find", operands, n_operands);

	(void)setvbuf(stdout, NULL, _IOFBF, OUT_SIZE);
	(void)__fsetlocking(stdout, FSETLOCKING_BYCALLER);
	for (i = 0; i < n && !status && !run.quit; i++)
		status = search_place(&run, &places[i]);
	pfs_find_complete(&run);
	status = status ? status : run.status;
	pfs_places_close(places, n);
	return status == PFS_EXIT_FAILURE ? status : pfs_cmd_flush("find", status);
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
	(void)setlocale(LC_ALL, ""); /* patterns are of characters, not of bytes */
	error = pfs_find_parse(&find, argv + n, argc - n);
	status = error ? pfs_cmd_usage("find", "%s", find.why)
		       : search_places(&find, argv + 1, (size_t)n - 1);
	pfs_find_finish(&find);
	return status;
}
