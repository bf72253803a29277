/* SPDX-License-Identifier: MIT */
/* primefs du - du(1) of a store or a mounted one, from the totals that each directory keeps. */
#include "tools/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/client/answer.h"
#include "tools/client/ask.h"
#include "tools/gnu/subtree.h"
#include "tools/gnu/du_links.h"
#include "tools/gnu/long_fields.h"
#include "tools/output.h"
#include "tools/stdout.h"

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

struct usage {
	const struct settings *settings;
	const struct pfs_place *place;
	struct pfs_stdout *out;
	struct pfs_subtree subtree;
	struct entry {
		uint64_t bytes;
		bool skipped; /* it was counted with an earlier path */
	} *entries; /* by node */
	size_t capacity;
	char *path;
	size_t path_len, path_capacity;
	bool no_memory;
	const uint64_t *seen; /* inode numbers of the paths given before */
	size_t n_seen;
	bool holds_seen; /* some of them are in this subtree */
	struct pfs_du_links *links;
	bool has_names; /* some files have several names */
};

/* ---- rows ---- */

#define COLUMNS		 "subtree_blocks, "
#define APPARENT_COLUMNS "subtree_size, size, "

static bool is_seen(const struct usage *u, uint64_t ino)
{
	for (size_t i = 0; i < u->n_seen; i++)
		if (u->seen[i] == ino)
			return true;
	return false;
}

/* What was counted with an earlier path is not counted again, neither here nor in directories
 * above. */
static void skip(struct usage *u, uint32_t node)
{
	const uint32_t *above = u->subtree.above;

	for (size_t i = 0; i < u->subtree.depth; i++)
		if (u->entries[above[i]].skipped)
			return;
	for (size_t i = 0; i < u->subtree.depth; i++)
		u->entries[above[i]].bytes -= u->entries[node].bytes;
	u->entries[node].skipped = true;
}

/* Adds a directory's own size to all above it. */
static void add_own(struct usage *u, uint64_t own)
{
	for (size_t i = u->subtree.depth + 1; i-- > 0;) {
		struct entry *entry = &u->entries[u->subtree.above[i]];

		entry->bytes += own;
		if (entry->skipped)
			return;
	}
}

static void take(void *arg, uint32_t node, char type, struct pfs_row *row)
{
	struct usage *u = arg;
	uint64_t total = pfs_row_number(row), own = 0;

	if (pfs_grow(&u->entries, &u->capacity, (size_t)node + 1, sizeof(*u->entries))) {
		u->no_memory = true;
		return;
	}
	if (u->settings->apparent) {
		own = pfs_row_number(row);
		own = type == 'd' ? own : 0;
	} else {
		total *= 512;
	}
	u->entries[node] = (struct entry){.bytes = total};
	if (node && u->n_seen && is_seen(u, u->subtree.keys[node].ino))
		skip(u, node);
	if (own)
		add_own(u, own);
}

/* Takes off a name whose file was counted under another one, unless it is in a subtree that was
 * counted before. */
static void take_off(void *arg, const struct pfs_du_name *name)
{
	struct usage *u = arg;
	uint64_t bytes = u->settings->apparent ? name->size : name->blocks * 512;

	for (uint32_t node = name->node; !u->entries[node].skipped; node = name->up[node]) {
		if (node)
			continue;
		for (node = name->node; node; node = name->up[node])
			u->entries[node].bytes -= bytes;
		u->entries[0].bytes -= bytes;
		u->entries[name->node].skipped |= name->is_own;
		return;
	}
}

static uint64_t depth_of(const char *path)
{
	uint64_t depth = 0;

	for (const char *at = path; path[1] && *at; at++)
		depth += *at == '/';
	return depth;
}

/* Totals suffice, except for apparent sizes, which count directories themselves, and for paths
 * counted before, which may be files: these need all entries. */
static int ask_entries(struct usage *u)
{
	const struct settings *s = u->settings;
	const char *columns = s->apparent ? APPARENT_COLUMNS : COLUMNS;
	char *path PFS_FREE = pfs_sql_quote(u->place->path), *subtree PFS_FREE = NULL;
	char *itself PFS_FREE = NULL;
	char limit[64] = "";

	PFS_TRY(pfs_du_has_names(u->place, &u->has_names));
	if (s->depth != UINT64_MAX && !s->apparent && !u->holds_seen && !u->has_names)
		(void)snprintf(limit, sizeof(limit), " AND depth <= %" PRIu64,
			       s->depth + depth_of(u->place->path));
	if (!path || asprintf(&itself, "path = %s", path) < 0 ||
	    asprintf(&subtree, "under(ino, %s)%s%s", path, limit,
		     s->all || u->holds_seen ? "" : " AND type = 'd'") < 0)
		return pfs_cmd_fail("du", "no memory");
	if (s->depth || s->apparent || u->holds_seen)
		PFS_TRY(pfs_subtree_ask(&u->subtree, columns, "", subtree));
	if (!u->subtree.n) /* there is no directory, or only its total is asked for */
		PFS_TRY(pfs_subtree_ask(&u->subtree, columns, "", itself));
	if (u->no_memory)
		return pfs_cmd_fail("du", "no memory");
	if (!u->subtree.n)
		return pfs_cmd_fail("du", "%s: %s", u->place->path, strerror(ENOENT));
	return u->has_names ? pfs_du_see_names(u->links, &u->subtree, take_off, u) : PFS_EXIT_OK;
}

static int put_in_order(struct usage *u)
{
	if (!u->settings->sort && !u->settings->tree)
		return pfs_subtree_sort_as_fts(&u->subtree);
	for (size_t i = 0; i < u->subtree.n; i++)
		u->subtree.keys[i].order = UINT64_MAX - u->entries[i].bytes;
	return pfs_subtree_sort(&u->subtree) ? pfs_cmd_fail("du", "no memory") : PFS_EXIT_OK;
}

/* ---- printing ---- */

static void put_size(struct pfs_stdout *out, const struct settings *s, uint64_t bytes)
{
	char human[PFS_HUMAN_SIZE];

	if (s->human) {
		pfs_print_human(human, bytes);
		pfs_stdout_text(out, human);
	} else {
		(void)pfs_stdout_number(out, pfs_div_round_up(bytes, s->unit), 0);
	}
	pfs_stdout_char(out, '\t');
}

static void put_line(struct pfs_stdout *out, const struct settings *s, uint64_t bytes,
		     const char *path, size_t len)
{
	put_size(out, s, bytes);
	pfs_stdout_put(out, path, len);
	pfs_stdout_char(out, s->zero ? 0 : '\n');
}

static bool push_name(struct usage *u, const char *name, size_t len)
{
	if (pfs_grow(&u->path, &u->path_capacity, u->path_len + len + 1, 1))
		return false;
	if (u->path_len == 0 || u->path[u->path_len - 1] != '/')
		u->path[u->path_len++] = '/';
	(void)memcpy(u->path + u->path_len, name, len);
	u->path_len += len;
	return true;
}

struct step {
	uint32_t node, next; /* next: the child to visit next */
	/* length of the path without this node's name; where the name begins */
	size_t above_len, name;
};

struct descent {
	struct usage *u;
	struct step *steps;
	size_t depth, capacity; /* depth: how many steps are in use */
};

static bool descend(struct descent *descent, uint32_t node)
{
	struct usage *u = descent->u;
	struct step step = {node, u->subtree.nodes[node].first, u->path_len, 0};
	size_t size;
	const char *name = pfs_subtree_name(&u->subtree, node, &size);

	if ((node && !push_name(u, name, size)) ||
	    pfs_grow(&descent->steps, &descent->capacity, descent->depth + 1, sizeof(step)))
		return false;
	step.name = node ? u->path_len - size : 0;
	descent->steps[descent->depth++] = step;
	return true;
}

/* Draws the branches that lead to the entry on top of the steps. */
static void put_branch(const struct descent *descent)
{
	struct usage *u = descent->u;
	const struct step *top = &descent->steps[descent->depth - 1];

	put_size(u->out, u->settings, u->entries[top->node].bytes);
	for (size_t i = 1; i < descent->depth; i++) {
		bool last = !u->subtree.nodes[descent->steps[i].node].next;

		pfs_stdout_text(u->out, i + 1 < descent->depth ? last ? "    " : "│   "
				     : last		    ? "└── "
							    : "├── ");
	}
	pfs_stdout_put(u->out, u->path + top->name, u->path_len - top->name);
	pfs_stdout_char(u->out, u->settings->zero ? 0 : '\n');
}

/* Contents before their directory, as du has it; with --tree after it. */
static bool print_all(struct usage *u)
{
	const struct settings *s = u->settings;
	struct descent descent = {.u = u};
	bool ok = descend(&descent, 0);

	if (ok && s->tree)
		put_branch(&descent);
	while (ok && descent.depth) {
		struct step *step = &descent.steps[descent.depth - 1];
		uint32_t child = step->next;

		if (child) {
			step->next = u->subtree.nodes[child].next;
			if (descent.depth - 1 >= s->depth || u->entries[child].skipped ||
			    (!s->all && u->subtree.nodes[child].type != 'd'))
				continue;
			ok = descend(&descent, child);
			if (ok && s->tree)
				put_branch(&descent);
		} else {
			if (!s->tree)
				put_line(u->out, s, u->entries[step->node].bytes, u->path,
					 u->path_len);
			u->path_len = step->above_len;
			descent.depth--;
		}
	}
	free(descent.steps);
	return ok;
}

/* ---- places ---- */

/* Sums over all places. */
struct counted {
	uint64_t total;
	uint64_t *seen; /* their inode numbers, ascending */
	struct pfs_du_links links;
};

static int measure(const struct settings *settings, const struct pfs_place *place,
		   struct pfs_stdout *out, struct counted *counted, size_t n_seen,
		   bool holds_seen)
{
	struct usage u = {.settings = settings,
			  .place = place,
			  .out = out,
			  .path = strdup(*place->shown ? place->shown : "/"),
			  .seen = counted->seen,
			  .links = &counted->links,
			  .n_seen = n_seen,
			  .holds_seen = holds_seen};
	int status;

	u.subtree = (struct pfs_subtree){
		.place = place, .keyed = true, .take = take, .arg = &u};
	u.path_len = u.path ? strlen(u.path) : 0;
	u.path_capacity = u.path_len;
	status = ask_entries(&u);
	status = status ? status : put_in_order(&u);
	if (!status) {
		counted->seen[n_seen] = u.subtree.keys[0].ino;
		counted->total += u.entries[0].bytes;
		if (!u.path || (!u.entries[0].skipped && !print_all(&u)))
			status = pfs_cmd_fail("du", "no memory");
	}
	pfs_subtree_close(&u.subtree);
	free(u.entries);
	free(u.path);
	return status;
}

/* ---- the picture ---- */

/* Its file is opened at its first bytes: a question that fails leaves one as it was, even if it has
 * to be written in place. */
struct picture {
	const char *name;      /* NULL: standard output */
	struct pfs_output out; /* whose file is NULL until then */
	bool failed;	       /* it could not be opened, which has been said */
};

static int write_out(void *arg, const void *bytes, size_t size)
{
	struct picture *picture = arg;

	if (!picture->out.file && !picture->failed)
		picture->failed = pfs_output_open(&picture->out, "du", picture->name);
	return picture->failed || fwrite(bytes, 1, size, picture->out.file) == size ? 0 : -errno;
}

static int copy_file(const struct pfs_place *place, struct picture *picture)
{
	int folder PFS_CLOSE = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd PFS_CLOSE = folder < 0 ? -1
				      : openat(folder, ".query/treemap.svg", O_RDONLY | O_CLOEXEC);
	char piece[1 << 16];
	ssize_t got = -1;

	while (fd >= 0 && (got = read(fd, piece, sizeof(piece))) > 0) {
		int error = write_out(picture, piece, (size_t)got);

		if (error)
			return pfs_cmd_fail("du", "the answer: %s", strerror(-error));
	}
	return got < 0 ? pfs_cmd_fail("du", "%s/.query/treemap.svg: %s", place->folder,
				      strerror(errno))
		       : PFS_EXIT_OK;
}

static int draw(const struct pfs_place *place, const char *file)
{
	const char *const words[] = {"treemap", "--", place->path};
	struct picture picture = {.name = strcmp(file, "-") == 0 ? NULL : file};
	struct pfs_sink sink = {&picture, write_out};
	int status = place->store
			     ? pfs_answerer_ask(place->store, &sink, words, PFS_COUNT(words))
			     : copy_file(place, &picture);

	if (picture.failed)
		return PFS_EXIT_FAILURE;
	return picture.out.file ? pfs_output_close(&picture.out, status, 0) : status;
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
		s->human &= option != BYTES; /* the last option for a unit counts */
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

/* Returns true if the place is in the other one, or is it. */
static bool lies_in(const struct pfs_place *place, const struct pfs_place *above)
{
	size_t len = strlen(above->path);

	len -= above->path[len - 1] == '/';
	return place->device == above->device && strncmp(place->path, above->path, len) == 0 &&
	       (!place->path[len] || place->path[len] == '/');
}

static int measure_all(const struct settings *s, const struct pfs_place *places, size_t n)
{
	static struct pfs_stdout out;
	struct counted counted = {.seen = calloc(n + 1, sizeof(*counted.seen))};
	int status = PFS_EXIT_OK;

	if (!counted.seen)
		return pfs_cmd_fail("du", "no memory");
	for (size_t i = 0; i < n; i++) {
		bool repeated = !places[i].path, holds_seen = false;

		for (size_t j = 0; j < i && !repeated; j++) {
			repeated = places[j].path && lies_in(&places[i], &places[j]);
			holds_seen |= places[j].path && lies_in(&places[j], &places[i]);
		}
		if (!repeated)
			status = pfs_cmd_worst(status, measure(s, &places[i], &out, &counted, i,
							 holds_seen));
	}
	if (s->total)
		put_line(&out, s, counted.total, "total", strlen("total"));
	free(counted.seen);
	pfs_du_links_finish(&counted.links);
	return pfs_stdout_end(&out, "du", status);
}

static int run(const struct settings *s, const char *svg, char **operands, size_t n_operands)
{
	struct pfs_place *places = NULL;
	size_t n = 0;
	int status = pfs_places_open(&places, &n, "du", operands, n_operands, false);

	if (!status && svg && n > 1)
		status = pfs_cmd_usage("du", "--svg draws one path, not %zu", n);
	else if (!status && svg)
		status = draw(&places[0], svg);
	else if (status != PFS_EXIT_USAGE && !svg && n)
		status = pfs_cmd_worst(status, measure_all(s, places, n));
	pfs_places_close(places, n);
	return status;
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
