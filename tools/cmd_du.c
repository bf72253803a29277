/* SPDX-License-Identifier: MIT */
/* primefs du - du(1) over a store or a mounted one, from the totals that every directory keeps. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/answer.h"
#include "tools/ask.h"
#include "tools/cmd.h"
#include "tools/long.h"
#include "tools/walk.h"

#define NO_PARENT SIZE_MAX

enum { ALL, HUMAN, SUMMARY, DEPTH, TOTAL, KIB, MIB, BYTES, APPARENT, ZERO, SORT, TREE, SVG };
static const struct pfs_cmd_option options[] = {
	[ALL] = {"all", 'a', NULL, "files, too"},
	[HUMAN] = {"human-readable", 'h', NULL, "sizes such as 1.5K and 12M"},
	[SUMMARY] = {"summarize", 's', NULL, "only a total for each path"},
	[DEPTH] = {"max-depth", 'd', "N", "only what lies at most N levels below a path"},
	[TOTAL] = {"total", 'c', NULL, "and the sum of all paths"},
	[KIB] = {NULL, 'k', NULL, "in units of 1,024 bytes, which is the default"},
	[MIB] = {NULL, 'm', NULL, "in units of 1,048,576 bytes"},
	[BYTES] = {"bytes", 'b', NULL, "the bytes in files, not what they take"},
	[APPARENT] = {"apparent-size", 0, NULL, "the same, in the unit"},
	[ZERO] = {"null", '0', NULL, "end each line with a NUL byte"},
	[SORT] = {"sort", 0, NULL, "the largest first, in each directory"},
	[TREE] = {"tree", 0, NULL, "as a tree, the largest first"},
	[SVG] = {"svg", 0, "FILE", "write a picture of the sizes to FILE (- for standard output)"},
	{0},
};
static const struct pfs_cmd command = {
	"du",
	"[STORE] [PATH...]",
	"Prints what directories take up, as du(1) does.",
	options,
	"PATH is a path of a mounted store or, after a STORE, an absolute path in it.",
};

struct settings {
	bool all, human, summary, total, apparent, zero, sort, tree;
	uint64_t depth, unit;
};

struct entry {
	struct pfs_walk_key key;
	uint64_t bytes;
	uint64_t own; /* apparent: a directory's own size */
	size_t name; /* in names */
	size_t parent; /* index */
	bool directory;
	bool skipped; /* counted with a path given before */
};

struct usage {
	const struct settings *settings;
	const struct pfs_place *place;
	struct entry *entries;
	size_t n, capacity;
	char *names;
	size_t names_size, names_capacity;
	char *path;
	size_t path_len, path_capacity;
	bool no_memory;
	const uint64_t *seen; /* inos of the paths given before */
	size_t n_seen;
};

/* ---- rows ---- */

static bool take(void *arg, const struct pfs_row *row)
{
	struct usage *u = arg;
	struct entry *entry;
	uint64_t blocks, size, total;

	if (row->n < 8 ||
	    pfs_grow(&u->entries, &u->capacity, u->n + 1, sizeof(*u->entries)) ||
	    pfs_grow(&u->names, &u->names_capacity, u->names_size + row->size[0] + 1, 1)) {
		u->no_memory = true;
		return false;
	}
	entry = &u->entries[u->n++];
	blocks = strtoull(row->field[4], NULL, 10);
	size = strtoull(row->field[5], NULL, 10);
	total = strtoull(row->field[6], NULL, 10);
	*entry = (struct entry){
		.key = {.ino = strtoull(row->field[1], NULL, 10),
			.parent = strtoull(row->field[2], NULL, 10),
			.order = strtoull(row->field[3], NULL, 10)},
		.name = u->names_size,
		.parent = NO_PARENT,
		.directory = *row->field[7] == 'd',
	};
	entry->bytes = u->settings->apparent ? total : blocks * 512;
	entry->own = entry->directory ? size : 0;
	(void)memcpy(u->names + u->names_size, row->field[0], row->size[0] + 1);
	u->names_size += row->size[0] + 1;
	return true;
}

/* Apparent sizes count directories themselves, and need them all; totals do not. */
static int ask_entries(struct usage *u)
{
	const struct settings *s = u->settings;
	char *path PFS_FREE = pfs_sql_quote(u->place->path), *sql PFS_FREE = NULL;
	char limits[128] = "";

	if (s->depth != UINT64_MAX && !s->apparent)
		(void)snprintf(limits, sizeof(limits),
			       " AND depth <= %" PRIu64 " + (SELECT depth FROM nodes WHERE path = ",
			       s->depth);
	if (!path || asprintf(&sql,
			      "SELECT name, ino, parent, readdir, subtree_blocks, size, "
			      "subtree_size, type FROM nodes WHERE under(ino, %s)%s%s%s%s%s%s",
			      path, limits, *limits ? path : "", *limits ? ")" : "",
			      s->all ? "" : " AND (type = 'd' OR path = ", s->all ? "" : path,
			      s->all ? "" : ")") < 0)
		return pfs_cmd_fail("du", "no memory");
	if (s->depth == 0 && !s->apparent) { /* one row, found by its path */
		free(PFS_TAKE(sql));
		if (asprintf(&sql,
			     "SELECT name, ino, parent, readdir, subtree_blocks, size, "
			     "subtree_size, type FROM nodes WHERE path = %s",
			     path) < 0)
			return pfs_cmd_fail("du", "no memory");
	}
	return pfs_place_ask(u->place, sql, take, u);
}

/* ---- order ---- */

static int by_ino(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->key.ino > y->key.ino) - (x->key.ino < y->key.ino);
}

static const struct entry *find_ino(const struct usage *u, uint64_t ino)
{
	const struct entry key = {.key.ino = ino};

	return bsearch(&key, u->entries, u->n, sizeof(key), by_ino);
}

/* Directories' own sizes, added to all above them.  Ordered by number. */
static void add_own_sizes(struct usage *u, size_t top)
{
	for (size_t i = 0; i < u->n; i++) {
		const struct entry *above = u->entries[i].key.ino == u->entries[top].key.ino
						    ? NULL
						    : find_ino(u, u->entries[i].key.parent);

		u->entries[i].parent = above ? (size_t)(above - u->entries) : NO_PARENT;
	}
	for (size_t i = 0; i < u->n; i++)
		for (size_t at = i; u->entries[i].own && at != NO_PARENT;
		     at = u->entries[at].parent)
			u->entries[at].bytes += u->entries[i].own;
}

/* What was counted with an earlier path is not counted again.  Ordered by number. */
static void skip_seen(struct usage *u, uint64_t top)
{
	for (size_t i = 0; i < u->n_seen; i++) {
		const struct entry *seen = find_ino(u, u->seen[i]), *at = seen;

		if (!seen || u->seen[i] == top)
			continue;
		u->entries[seen - u->entries].skipped = true;
		while (at && at->key.ino != top) {
			at = find_ino(u, at->key.parent);
			if (at)
				u->entries[at - u->entries].bytes -= seen->bytes;
		}
	}
}

static struct pfs_walk walk_of(const struct usage *u)
{
	return (struct pfs_walk){u->entries, u->n, sizeof(*u->entries)};
}

static int put_in_order(struct usage *u, uint64_t top)
{
	const struct settings *s = u->settings;
	const struct pfs_walk walk = walk_of(u);

	qsort(u->entries, u->n, sizeof(*u->entries), by_ino);
	if (s->apparent)
		add_own_sizes(u, (size_t)(find_ino(u, top) - u->entries));
	skip_seen(u, top);
	if (!s->sort && !s->tree)
		return pfs_walk_sort_as_fts(&walk, u->place);
	for (size_t i = 0; i < u->n; i++)
		u->entries[i].key.order = UINT64_MAX - u->entries[i].bytes;
	pfs_walk_sort(&walk);
	return PFS_EXIT_OK;
}

/* ---- printing ---- */

static void print_size(const struct settings *s, uint64_t bytes)
{
	char human[PFS_HUMAN_SIZE];

	if (s->human)
		pfs_print_human(human, bytes);
	else
		(void)snprintf(human, sizeof(human), "%" PRIu64, pfs_div_round_up(bytes, s->unit));
	(void)fputs(human, stdout);
}

static void print_line(const struct settings *s, uint64_t bytes, const char *path)
{
	print_size(s, bytes);
	(void)putchar('\t');
	(void)fputs(path, stdout);
	(void)putchar(s->zero ? 0 : '\n');
}

static bool push_name(struct usage *u, const char *name)
{
	size_t len = strlen(name);
	bool slash = u->path_len == 0 || u->path[u->path_len - 1] != '/';

	if (pfs_grow(&u->path, &u->path_capacity, u->path_len + len + 2, 1))
		return false;
	if (slash)
		u->path[u->path_len++] = '/';
	(void)memcpy(u->path + u->path_len, name, len + 1);
	u->path_len += len;
	return true;
}

struct step {
	size_t entry, next, path_len; /* next: child to visit; path_len: without this entry's name */
};

struct descent {
	struct usage *u;
	struct step *steps;
	size_t depth, capacity; /* depth: steps in use */
};

static bool descend(struct descent *walk, size_t entry)
{
	struct usage *u = walk->u;
	const struct pfs_walk entries = walk_of(u);
	const struct entry *e = &u->entries[entry];
	size_t before = u->path_len;

	if (walk->depth && !push_name(u, u->names + e->name))
		return false;
	if (pfs_grow(&walk->steps, &walk->capacity, walk->depth + 1, sizeof(*walk->steps)))
		return false;
	walk->steps[walk->depth++] = (struct step){
		entry, e->directory ? pfs_walk_first_child(&entries, e->key.ino) : u->n, before};
	return true;
}

/* The branches that lead to the entry on top of the steps. */
static void print_branch(const struct descent *walk)
{
	const struct usage *u = walk->u;
	const struct entry *e = &u->entries[walk->steps[walk->depth - 1].entry];

	print_size(u->settings, e->bytes);
	(void)putchar('\t');
	for (size_t i = 1; i < walk->depth; i++) {
		size_t at = walk->steps[i].entry;
		bool last = at + 1 >= u->n ||
			    u->entries[at + 1].key.parent != u->entries[at].key.parent;

		(void)fputs(i + 1 < walk->depth ? last ? "    " : "│   "
			    : last		 ? "└── "
						 : "├── ",
			    stdout);
	}
	(void)fputs(walk->depth == 1 ? u->path : u->names + e->name, stdout);
	(void)putchar(u->settings->zero ? 0 : '\n');
}

/* Contents before their directory, as du has it; with --tree after it. */
static bool print_all(struct usage *u, size_t top)
{
	const struct settings *s = u->settings;
	struct descent walk = {.u = u};
	bool ok = descend(&walk, top);

	if (ok && s->tree)
		print_branch(&walk);
	while (ok && walk.depth) {
		struct step *step = &walk.steps[walk.depth - 1];
		const struct entry *e = &u->entries[step->entry];

		if (step->next < u->n && u->entries[step->next].key.parent == e->key.ino) {
			size_t child = step->next++;

			if (walk.depth - 1 >= s->depth || u->entries[child].skipped)
				continue;
			ok = descend(&walk, child);
			if (ok && s->tree)
				print_branch(&walk);
		} else {
			if (!s->tree)
				print_line(s, e->bytes, u->path);
			u->path_len = step->path_len;
			if (walk.depth > 1)
				u->path[u->path_len] = 0;
			walk.depth--;
		}
	}
	free(walk.steps);
	return ok;
}

/* ---- places ---- */

static bool keep_ino(void *arg, const struct pfs_row *row)
{
	*(uint64_t *)arg = strtoull(row->field[0], NULL, 10);
	return false;
}

static int find_top(const struct pfs_place *place, uint64_t *ino)
{
	char *path PFS_FREE = pfs_sql_quote(place->path), *sql PFS_FREE = NULL;

	*ino = 0;
	if (!path || asprintf(&sql, "SELECT ino FROM nodes WHERE path = %s", path) < 0)
		return pfs_cmd_fail("du", "no memory");
	PFS_TRY(pfs_place_ask(place, sql, keep_ino, ino));
	return *ino ? PFS_EXIT_OK
		    : pfs_cmd_fail("du", "%s: %s", place->path, strerror(ENOENT));
}

static int measure(const struct settings *settings, const struct pfs_place *place, uint64_t *total,
		   uint64_t *seen, size_t n_seen)
{
	struct usage u = {.settings = settings, .place = place, .seen = seen, .n_seen = n_seen};
	size_t top = 0;
	uint64_t ino;
	int status = find_top(place, &ino);

	seen[n_seen] = ino;

	status = status ? status : ask_entries(&u);
	if (!status && !u.no_memory && u.n)
		status = put_in_order(&u, ino);
	while (top < u.n && u.entries[top].key.ino != ino)
		top++;
	u.path = strdup(*place->shown ? place->shown : "/");
	u.path_len = u.path ? strlen(u.path) : 0;
	u.path_capacity = u.path_len + 1;
	if (!status && top < u.n) {
		*total += u.entries[top].bytes;
		u.no_memory |= !u.path || !print_all(&u, top);
	}
	free(u.entries);
	free(u.names);
	free(u.path);
	return status ? status : u.no_memory ? pfs_cmd_fail("du", "no memory") : PFS_EXIT_OK;
}

/* ---- the picture ---- */

static int write_out(void *arg, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, arg) == size ? 0 : -EIO;
}

static int copy_file(const struct pfs_place *place, FILE *out)
{
	int folder PFS_CLOSE = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd PFS_CLOSE = folder < 0 ? -1
				      : openat(folder, ".query/treemap.svg", O_RDONLY | O_CLOEXEC);
	char piece[1 << 16];
	ssize_t got = -1;

	while (fd >= 0 && (got = read(fd, piece, sizeof(piece))) > 0)
		if (write_out(out, piece, (size_t)got))
			return PFS_EXIT_OK; /* noticed when it is closed */
	return got < 0 ? pfs_cmd_fail("du", "%s/.query/treemap.svg: %s", place->folder,
				      strerror(errno))
		       : PFS_EXIT_OK;
}

static int draw(const struct pfs_place *place, const char *file)
{
	const char *const words[] = {"treemap", "--", place->path};
	bool is_stdout = strcmp(file, "-") == 0;
	FILE *out = is_stdout ? stdout : fopen(file, "we");
	const struct pfs_sink sink = {out, write_out};
	int status;

	if (!out)
		return pfs_cmd_fail("du", "%s: %s", file, strerror(errno));
	status = place->store ? pfs_answerer_ask(place->store, &sink, words, PFS_COUNT(words))
			      : copy_file(place, out);
	if (is_stdout)
		return status;
	if (ferror(out) || fclose(out) != 0)
		return pfs_cmd_fail("du", "%s: cannot be written: %s", file, strerror(errno));
	return status;
}

/* ---- the command ---- */

static void set(struct settings *s, struct pfs_cmd_args *args, int option)
{
	switch (option) {
	case ALL:
		s->all = true;
		break;
	case HUMAN:
		s->human = true;
		break;
	case SUMMARY:
		s->summary = true;
		break;
	case DEPTH:
		pfs_cmd_number(args, &s->depth, option, 0, UINT32_MAX);
		break;
	case TOTAL:
		s->total = true;
		break;
	case KIB:
	case MIB:
		s->human = false;
		s->unit = option == KIB ? 1024 : 1024 * 1024;
		break;
	case BYTES:
	case APPARENT:
		s->apparent = true;
		s->unit = option == BYTES ? 1 : s->unit;
		break;
	case ZERO:
		s->zero = true;
		break;
	case SORT:
		s->sort = true;
		break;
	default:
		s->tree |= option == TREE;
		break;
	}
}

/* Whether it lies in, or is, one of the places before it. */
static bool is_repeated(const struct pfs_place *places, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		size_t len = strlen(places[j].path);

		len -= places[j].path[len - 1] == '/';
		if (places[i].device == places[j].device &&
		    strncmp(places[i].path, places[j].path, len) == 0 &&
		    (!places[i].path[len] || places[i].path[len] == '/'))
			return true;
	}
	return false;
}

static int measure_all(const struct settings *s, const struct pfs_place *places, size_t n)
{
	uint64_t *seen PFS_FREE = calloc(n + 1, sizeof(*seen));
	uint64_t total = 0;
	int status = PFS_EXIT_OK;

	if (!seen)
		return pfs_cmd_fail("du", "no memory");
	for (size_t i = 0; i < n && !status; i++)
		if (!is_repeated(places, i))
			status = measure(s, &places[i], &total, seen, i);
	if (!status && s->total)
		print_line(s, total, "total");
	return status;
}

static int run(const struct settings *s, const char *svg, char **operands, size_t n_operands)
{
	struct pfs_place *places = NULL;
	size_t n = 0;
	int status = pfs_places_open(&places, &n, "du", operands, n_operands);

	if (!status && svg && n > 1)
		status = pfs_cmd_usage("du", "--svg draws one path, not %zu", n);
	if (!status)
		status = svg ? draw(&places[0], svg) : measure_all(s, places, n);
	pfs_places_close(places, n);
	return status == PFS_EXIT_OK ? pfs_cmd_flush("du", status) : status;
}

int pfs_cmd_du(int argc, char **argv)
{
	struct settings s = {.depth = UINT64_MAX, .unit = 1024};
	const char *svg = NULL;
	struct pfs_cmd_args args;
	int option;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == SVG)
			svg = args.value;
		set(&s, &args, option);
	}
	if (!args.stop && s.summary && s.all)
		pfs_cmd_reject(&args, "-a and -s exclude each other");
	if (!args.stop && s.summary && s.depth != UINT64_MAX && s.depth)
		pfs_cmd_reject(&args, "-s and -d exclude each other");
	if (pfs_cmd_end(&args, 0, -1))
		return args.status;
	if (s.summary)
		s.depth = 0;
	return run(&s, svg, args.operands, (size_t)args.n_operands);
}
