/* SPDX-License-Identifier: MIT */
/* primefs find - find(1) over a store or a mounted one: what can be said in SQL is asked for, the
 * rest is decided here. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "tools/find_expr.h"

#define OUT_SIZE ((size_t)1 << 20)

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
	"actions    -print -print0 -ls -exec -delete -prune -quit\n"
	"global     -maxdepth -mindepth -depth\n"
	"operators  ( ) ! -not -a -and -o -or ,\n"
	"-exec and -delete need the store mounted, and a path of the mount.",
};

struct search {
	const struct pfs_place *place;
	struct pfs_find_run run;
	struct pfs_found start;
	char *start_path; /* owned */
	unsigned start_depth;
	char *path; /* being printed */
	size_t capacity;
	/* Directories below which nothing is looked at: each one's path begins with the one's before,
	 * as byte order has it ("a", "a-b", "a-b/c"; then "a/x", which lies in the first). */
	char *pruned;
	size_t *pruned_len, n_pruned, pruned_capacity;
	bool found_start;
};

/* ---- rows ---- */

static const struct {
	unsigned need; /* 0: always */
	const char *column;
} columns[] = {
	{0, "path"},			 {0, "type"},
	{0, "depth"},			 {PFS_FIND_INO, "ino"},
	{PFS_FIND_MODE, "mode"},	 {PFS_FIND_NLINK, "nlink"},
	{PFS_FIND_UID, "uid"},		 {PFS_FIND_GID, "gid"},
	{PFS_FIND_SIZE, "size"},	 {PFS_FIND_BLOCKS, "blocks"},
	{PFS_FIND_MTIME, "mtime"},	 {PFS_FIND_ATIME, "atime"},
	{PFS_FIND_CTIME, "ctime"},	 {PFS_FIND_TARGET, "target"},
	{PFS_FIND_EMPTY, "subtree_count"},
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
	default:
		found->empty = strcmp(text, "1") == 0;
		break;
	}
}

/* What is printed for an absolute path in the store: what stands for the place, and the rest. */
static bool show(struct search *search, const char *path, size_t size)
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

static bool fill(struct search *search, struct pfs_found *found, const struct pfs_row *row)
{
	size_t n = 3;

	*found = (struct pfs_found){.target = ""};
	if (row->n < n || !show(search, row->field[0], row->size[0]))
		return false;
	found->path = search->path;
	found->path_len = strlen(search->path);
	found->name = last_component(search->path);
	found->type = *row->field[1];
	found->depth = (unsigned)strtoul(row->field[2], NULL, 10) - search->start_depth;
	for (size_t i = n; i < PFS_COUNT(columns); i++)
		if (columns[i].need & search->run.find->needs && n < row->n)
			take_field(found, columns[i].need, row->field[n++]);
	return true;
}

static bool is_pruned(struct search *search, const char *path)
{
	size_t same = 0;

	if (!search->n_pruned)
		return false;
	while (path[same] && path[same] == search->pruned[same])
		same++;
	while (search->n_pruned && search->pruned_len[search->n_pruned - 1] > same)
		search->n_pruned--;
	for (size_t i = 0; i < search->n_pruned; i++)
		if (path[search->pruned_len[i]] == '/')
			return true;
	return false;
}

static void prune(struct search *search, const struct pfs_found *found)
{
	char *path = strdup(found->path);

	if (!path || pfs_grow(&search->pruned_len, &search->pruned_capacity, search->n_pruned + 1,
			      sizeof(*search->pruned_len))) {
		free(path);
		search->run.status = pfs_cmd_fail("find", "no memory");
		search->run.quit = true;
		return;
	}
	free(search->pruned);
	search->pruned = path;
	search->pruned_len[search->n_pruned++] = found->path_len;
}

static void decide(struct search *search, const struct pfs_found *found)
{
	const struct pfs_find *find = search->run.find;

	if (found->depth < find->min_depth || found->depth > find->max_depth)
		return;
	(void)pfs_find_decide(&search->run, found);
	if (search->run.pruned && !find->depth_first)
		prune(search, found);
}

static bool take_start(void *arg, const struct pfs_row *row)
{
	struct search *search = arg;

	search->start_depth = row->n > 2 ? (unsigned)strtoul(row->field[2], NULL, 10) : 0;
	if (!fill(search, &search->start, row))
		return false;
	search->found_start = true;
	if (!search->run.find->depth_first)
		decide(search, &search->start);
	return !search->run.quit;
}

static bool take_row(void *arg, const struct pfs_row *row)
{
	struct search *search = arg;
	struct pfs_found found;

	if (!fill(search, &found, row)) {
		search->run.status = pfs_cmd_fail("find", "no memory");
		return false;
	}
	if (!is_pruned(search, found.path))
		decide(search, &found);
	return !search->run.quit;
}

/* ---- statements ---- */

static char *select_of(const struct pfs_find *find, const char *where)
{
	char list[256];
	size_t n = 0;
	char *sql;

	for (size_t i = 0; i < PFS_COUNT(columns); i++)
		if (!columns[i].need || columns[i].need & find->needs)
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "",
					      columns[i].column);
	return asprintf(&sql, "SELECT %s FROM nodes WHERE %s", list, where) < 0 ? NULL : sql;
}

/* Order matters where a directory decides about what is in it, or the first one about the rest. */
static const char *order_of(const struct pfs_find *find)
{
	return find->depth_first ? " ORDER BY path DESC" : find->ordered ? " ORDER BY path" : "";
}

static int ask(struct search *search, const char *where,
	       bool (*row)(void *arg, const struct pfs_row *row))
{
	char *sql PFS_FREE = select_of(search->run.find, where);

	return sql ? pfs_place_ask(search->place, sql, row, search) : pfs_cmd_fail("find", "no memory");
}

static int ask_start(struct search *search)
{
	char *path PFS_FREE = pfs_sql_quote(search->place->path), *where PFS_FREE = NULL;
	int status;

	if (!path || asprintf(&where, "path = %s", path) < 0)
		return pfs_cmd_fail("find", "no memory");
	status = ask(search, where, take_start);
	if (!status && !search->found_start)
		return pfs_cmd_fail("find", "%s: %s", search->place->path, strerror(ENOENT));
	/* decided last when contents come first */
	search->start_path = search->path;
	search->start.path = search->path;
	search->path = NULL;
	search->capacity = 0;
	return status;
}

static int ask_rest(struct search *search)
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
	    asprintf(&where, "under(ino, %s) AND depth >= %" PRIu64 "%s AND %s%s", path, low,
		     limits, condition, order_of(find)) < 0)
		return pfs_cmd_fail("find", "no memory");
	return ask(search, where, take_row);
}

/* ---- everything, as paths only ---- */

static bool put(const struct search *search, const char *bytes, size_t n)
{
	return fwrite_unlocked(bytes, 1, n, search->run.out) == n;
}

/* Lines of absolute paths in the store; one that does not begin with a slash is the rest of a name
 * that has a newline. */
static int take_paths(void *arg, const void *bytes, size_t size)
{
	struct search *search = arg;
	const char *shown = search->place->shown;
	size_t len = strlen(shown), above = strlen(search->place->path);
	const char *at = bytes, *end = at + size;

	above = above > 1 ? above : 0;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *next = newline ? newline + 1 : end;

		if (*at == '/') {
			at += above;
			at += len && (shown[len - 1] == '/' || at[1] == '\n') && *at == '/';
			if (!put(search, shown, len))
				return -EIO;
		}
		if (!put(search, at, (size_t)(next - at)))
			return -EIO;
		at = next;
	}
	return 0;
}

/* Whole lines of .query/paths. */
static int copy_paths(struct search *search)
{
	int folder PFS_CLOSE = open(search->place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd PFS_CLOSE = folder < 0 ? -1 : openat(folder, ".query/paths", O_RDONLY | O_CLOEXEC);
	char *buffer PFS_FREE = malloc(OUT_SIZE);
	size_t kept = 0;
	ssize_t got;

	if (fd < 0 || !buffer)
		return pfs_cmd_fail("find", "%s/.query/paths: %s", search->place->folder,
				    strerror(errno));
	while ((got = read(fd, buffer + kept, OUT_SIZE - kept)) > 0) {
		size_t size = kept + (size_t)got;
		const char *last = memrchr(buffer, '\n', size);
		size_t whole = last ? (size_t)(last + 1 - buffer) : 0;

		if (!whole && size == OUT_SIZE)
			whole = size;
		if (take_paths(search, buffer, whole))
			break;
		kept = size - whole;
		(void)memmove(buffer, buffer + whole, kept);
	}
	return got < 0 ? pfs_cmd_fail("find", "%s/.query/paths: %s", search->place->folder,
				      strerror(errno))
		       : PFS_EXIT_OK;
}

static bool wants_all_paths(const struct search *search)
{
	const struct pfs_find *find = search->run.find;
	const struct pfs_find_node *root = find->root;

	return root->kind == PFS_FIND_AND && root->left->kind == PFS_FIND_TRUE &&
	       root->right->kind == PFS_FIND_PRINT && !find->min_depth &&
	       find->max_depth == UINT32_MAX && !find->depth_first;
}

static int list_all(struct search *search)
{
	const char *const words[] = {"tree", "subtree", "--", search->place->path};
	const struct pfs_sink sink = {search, take_paths};

	return search->place->store
		       ? pfs_answerer_ask(search->place->store, &sink, words, PFS_COUNT(words))
		       : copy_paths(search);
}

/* ---- places ---- */

static bool remove_node(void *arg, const struct pfs_found *found)
{
	struct search *search = arg;

	if (found->depth == 0 && strcmp(search->place->path, "/") == 0)
		return true; /* a mounted root stays, as find(1) leaves `.` */
	if (unlinkat(AT_FDCWD, found->path, found->type == 'd' ? AT_REMOVEDIR : 0) == 0)
		return true;
	search->run.status = pfs_cmd_fail("find", "%s: %s", found->path, strerror(errno));
	return false;
}

static int search_place(struct pfs_find_run *run, const struct pfs_place *place)
{
	struct search search = {.place = place, .run = *run};
	int status;

	search.run.arg = &search;
	search.run.remove = remove_node;
	if (place->store && run->find->acts)
		return pfs_cmd_fail("find", "-exec and -delete need the store mounted, and a path of the mount");
	if (wants_all_paths(&search)) {
		struct stat attr;

		if (place->store || (lstat(place->shown, &attr) == 0 && S_ISDIR(attr.st_mode)))
			return list_all(&search);
	}
	status = ask_start(&search);
	if (!status && !search.run.quit && search.start.type == 'd' && !search.n_pruned &&
	    run->find->max_depth > 0)
		status = ask_rest(&search);
	if (!status && run->find->depth_first && !search.run.quit)
		decide(&search, &search.start);
	free(search.start_path);
	free(search.path);
	free(search.pruned);
	free(search.pruned_len);
	run->quit = search.run.quit;
	return status ? status : search.run.status;
}

static int search_places(const struct pfs_find *find, char **operands, size_t n_operands)
{
	struct pfs_find_run run = {.find = find, .out = stdout};
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
	error = pfs_find_parse(&find, argv + n, argc - n);
	status = error ? pfs_cmd_usage("find", "%s", find.why)
		       : search_places(&find, argv + 1, (size_t)n - 1);
	pfs_find_finish(&find);
	return status;
}
