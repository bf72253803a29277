/* SPDX-License-Identifier: MIT */
/* primefs ls - ls(1) over a store or a mounted one; with -R the whole subtree in one question. */
#include <inttypes.h>
#include <locale.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/ask.h"
#include "tools/cmd.h"
#include "tools/long.h"
#include "tools/ls_paths.h"

#define OUT_SIZE ((size_t)256 << 10)

enum { LONG, RECURSIVE, ALMOST, ONE, DIRECTORY, HUMAN, INODE, NUMERIC, REVERSE, BY_SIZE, BY_TIME };
static const struct pfs_cmd_option options[] = {
	[LONG] = {NULL, 'l', NULL, "mode, links, owner, group, size, time, name"},
	[RECURSIVE] = {"recursive", 'R', NULL, "directories with all that is in them"},
	[ALMOST] = {"almost-all", 'A', NULL, "what begins with a dot, too, but for . and .."},
	[ONE] = {NULL, '1', NULL, "one a line, which is the default"},
	[DIRECTORY] = {"directory", 'd', NULL, "directories themselves, not what is in them"},
	[HUMAN] = {"human-readable", 'h', NULL, "with -l: sizes such as 1.5K and 12M"},
	[INODE] = {"inode", 'i', NULL, "inode numbers, which are primes"},
	[NUMERIC] = {"numeric-uid-gid", 'n', NULL, "as -l, owners as numbers"},
	[REVERSE] = {"reverse", 'r', NULL, "in the reverse order"},
	[BY_SIZE] = {NULL, 'S', NULL, "the largest first"},
	[BY_TIME] = {NULL, 't', NULL, "the newest first"},
	{0},
};
static const struct pfs_cmd command = {
	"ls",
	"[STORE] [PATH...]",
	"Lists directories, as ls(1) does, one name a line.",
	options,
	"PATH is a path of a mounted store or, after a STORE, an absolute path in it.",
};

struct settings {
	bool given[BY_TIME + 1];
	bool terminal; /* which standard output is */
};

struct entry {
	uint64_t ino, parent_ino, nlink, rdev;
	int64_t size, blocks, mtime;
	uid_t uid;
	gid_t gid;
	mode_t mode;
	char type;
	char *name, *target; /* owned, in one piece */
	size_t place;	     /* which one it is, if it is one */
};

struct list {
	const struct settings *settings;
	struct entry *entries;
	size_t n, capacity;
	bool no_memory;
};

/* ---- rows ---- */

#define NAMES	"ino, parent, type, name"
#define COLUMNS NAMES ", target, nlink, rdev, size, blocks, mtime, uid, gid, mode"
enum { N_NAMES = 4, N_COLUMNS = 13 };

static bool take(void *arg, const struct pfs_row *row)
{
	struct list *list = arg;
	char **f = row->field;
	size_t target_size = row->n > N_NAMES ? row->size[N_NAMES] : 0;
	struct entry *e;

	if (row->n < N_NAMES ||
	    pfs_grow(&list->entries, &list->capacity, list->n + 1, sizeof(*list->entries))) {
		list->no_memory = true;
		return false;
	}
	e = &list->entries[list->n];
	*e = (struct entry){
		.ino = strtoull(f[0], NULL, 10),
		.parent_ino = strtoull(f[1], NULL, 10),
		.type = *f[2],
		.name = malloc(row->size[3] + target_size + 2),
	};
	if (!e->name) {
		list->no_memory = true;
		return false;
	}
	e->target = e->name + row->size[3] + 1;
	(void)memcpy(e->name, f[3], row->size[3] + 1);
	*e->target = 0;
	list->n++;
	if (row->n < N_COLUMNS)
		return true;
	(void)memcpy(e->target, f[4], target_size + 1);
	e->nlink = strtoull(f[5], NULL, 10);
	e->rdev = strtoull(f[6], NULL, 10);
	e->size = strtoll(f[7], NULL, 10);
	e->blocks = strtoll(f[8], NULL, 10);
	e->mtime = strtoll(f[9], NULL, 10);
	e->uid = (uid_t)strtoul(f[10], NULL, 10);
	e->gid = (gid_t)strtoul(f[11], NULL, 10);
	e->mode = (mode_t)strtoul(f[12], NULL, 10);
	return true;
}

static bool needs_names_only(const struct settings *s)
{
	return !s->given[LONG] && !s->given[BY_SIZE] && !s->given[BY_TIME];
}

static void finish_list(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->entries[i].name);
	free(list->entries);
	*list = (struct list){.settings = list->settings};
}

static int ask(struct list *list, const struct pfs_place *place, const char *before,
	       const char *after)
{
	char *path PFS_FREE = pfs_sql_quote(place->path), *sql PFS_FREE = NULL;
	int status;

	if (!path || asprintf(&sql, "SELECT %s FROM nodes WHERE %s%s%s",
			      needs_names_only(list->settings) ? NAMES : COLUMNS, before, path,
			      after) < 0)
		return pfs_cmd_fail("ls", "no memory");
	status = pfs_place_ask(place, sql, take, list);
	return status ? status : list->no_memory ? pfs_cmd_fail("ls", "no memory") : PFS_EXIT_OK;
}

/* ---- order: qsort's own argument, as the comparison depends on options ---- */

static int compare(const void *a, const void *b, void *arg)
{
	const struct entry *x = a, *y = b;
	const struct settings *s = arg;
	int order = 0;

	if (x->parent_ino != y->parent_ino) /* directories together */
		return x->parent_ino < y->parent_ino ? -1 : 1;
	if (s->given[BY_TIME])
		order = (x->mtime < y->mtime) - (x->mtime > y->mtime);
	else if (s->given[BY_SIZE])
		order = (x->size < y->size) - (x->size > y->size);
	order = order ? order : strcoll(x->name, y->name);
	order = order ? order : strcmp(x->name, y->name);
	return s->given[REVERSE] ? -order : order;
}

static void sort(struct list *list)
{
	union {
		const struct settings *given;
		void *argument;
	} s = {list->settings};

	if (list->n)
		qsort_r(list->entries, list->n, sizeof(*list->entries), compare, s.argument);
}

/* ---- printing ---- */

struct widths {
	int ino, nlink, user, group, size, major, minor;
};

static void widen(int *width, int n)
{
	*width = PFS_MAX(*width, n);
}

static int digits(uint64_t n)
{
	int count = 1;

	while (n /= 10)
		count++;
	return count;
}

/* Valid as long as out is. */
static const char *size_text(char out[PFS_DECIMAL_SIZE], const struct settings *s, int64_t size)
{
	if (!s->given[HUMAN])
		return pfs_decimal(out, (uint64_t)size);
	pfs_print_human(out, (uint64_t)size);
	return out;
}

/* A name, or a number where there is none or none is wanted; *named: it is a name. */
static const char *owner_text(char out[PFS_DECIMAL_SIZE], bool *named, const struct settings *s,
			      uint32_t id, const char *(*name_of)(uint32_t id))
{
	const char *name = s->given[NUMERIC] ? NULL : name_of(id);

	*named = name;
	return name ? name : pfs_decimal(out, id);
}

static bool is_device(const struct entry *e)
{
	return e->type == 'b' || e->type == 'c';
}

static struct widths measure(const struct list *list, const struct entry *entries, size_t n)
{
	const struct settings *s = list->settings;
	struct widths w = {0};
	char text[PFS_DECIMAL_SIZE];
	bool named;

	for (size_t i = 0; i < n; i++) {
		const struct entry *e = &entries[i];

		if (s->given[INODE])
			widen(&w.ino, digits(e->ino));
		if (!s->given[LONG])
			continue;
		widen(&w.nlink, digits(e->nlink));
		widen(&w.user, (int)strlen(owner_text(text, &named, s, e->uid, pfs_user_name)));
		widen(&w.group, (int)strlen(owner_text(text, &named, s, e->gid, pfs_group_name)));
		if (is_device(e)) {
			widen(&w.major, digits(major(e->rdev)));
			widen(&w.minor, digits(minor(e->rdev)));
			widen(&w.size, w.major + 2 + w.minor);
		} else {
			widen(&w.size, (int)strlen(size_text(text, s, e->size)));
		}
	}
	return w;
}

static void put_blanks(int n)
{
	static const char blanks[] = "                                ";

	for (; n > 0; n -= (int)sizeof(blanks) - 1)
		(void)fwrite(blanks, 1, PFS_MIN((size_t)n, sizeof(blanks) - 1), stdout);
}

/* In its column, to the left or right, and a blank before it. */
static void put_field(const char *text, int width, bool left)
{
	size_t len = strlen(text);

	put_blanks(1 + (left ? 0 : width - (int)len));
	(void)fwrite(text, 1, len, stdout);
	put_blanks(left ? width - (int)len : 0);
}

static void print_long(const struct settings *s, const struct widths *w, const struct entry *e)
{
	char mode[PFS_MODE_SIZE], when[PFS_WHEN_SIZE], text[PFS_DECIMAL_SIZE];
	const char *owner;
	bool named;

	pfs_print_mode(mode, e->type, e->mode);
	pfs_print_when(when, e->mtime);
	(void)fputs(mode, stdout);
	put_field(pfs_decimal(text, e->nlink), w->nlink, false);
	owner = owner_text(text, &named, s, e->uid, pfs_user_name);
	put_field(owner, w->user, named);
	owner = owner_text(text, &named, s, e->gid, pfs_group_name);
	put_field(owner, w->group, named);
	if (is_device(e)) {
		put_field(pfs_decimal(text, major(e->rdev)), w->size - 2 - w->minor, false);
		(void)putchar(',');
		put_field(pfs_decimal(text, minor(e->rdev)), w->minor, false);
	} else {
		put_field(size_text(text, s, e->size), w->size, false);
	}
	put_field(when, 0, true);
	(void)putchar(' ');
}

static void put_name(const struct settings *s, const char *name)
{
	pfs_print_name(stdout, name, strlen(name), s->terminal);
}

static void put_heading(const struct settings *s, const char *path, bool *blank)
{
	if (*blank)
		(void)putchar('\n');
	*blank = true;
	put_name(s, path);
	(void)fputs(":\n", stdout);
}

static void print_entries(const struct list *list, const struct entry *entries, size_t n)
{
	const struct settings *s = list->settings;
	struct widths w = measure(list, entries, n);

	for (size_t i = 0; i < n; i++) {
		const struct entry *e = &entries[i];

		if (s->given[INODE])
			(void)printf("%*" PRIu64 " ", w.ino, e->ino);
		if (s->given[LONG])
			print_long(s, &w, e);
		put_name(s, e->name);
		if (s->given[LONG] && e->type == 'l') {
			(void)fputs(" -> ", stdout);
			put_name(s, e->target);
		}
		(void)putchar('\n');
	}
}

static void print_total(const struct settings *s, const struct entry *entries, size_t n)
{
	char text[PFS_HUMAN_SIZE];
	uint64_t blocks = 0;

	for (size_t i = 0; i < n; i++)
		blocks += (uint64_t)entries[i].blocks;
	if (s->given[HUMAN])
		pfs_print_human(text, blocks * 512);
	else
		(void)snprintf(text, sizeof(text), "%" PRIu64, (blocks + 1) / 2);
	(void)printf("total %s\n", text);
}

/* ---- directories ---- */

static void print_directory(const struct list *list, size_t from, size_t to)
{
	if (list->settings->given[LONG])
		print_total(list->settings, list->entries + from, to - from);
	print_entries(list, list->entries + from, to - from);
}

/* The children of a directory: sorted, they lie together. */
static void find_children(const struct list *list, uint64_t ino, size_t *from, size_t *to)
{
	size_t low = 0, high = list->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->entries[middle].parent_ino < ino)
			low = middle + 1;
		else
			high = middle;
	}
	*from = *to = low;
	while (*to < list->n && list->entries[*to].parent_ino == ino)
		++*to;
}

struct pending {
	uint64_t ino;
	char *path; /* owned */
};

struct stack {
	struct pending *items;
	size_t n, capacity;
};

static bool push(struct stack *stack, uint64_t ino, const char *above, const char *name)
{
	size_t len = strlen(above);
	bool slash = *name && (!len || above[len - 1] != '/');
	struct pending item = {.ino = ino};

	if (asprintf(&item.path, "%s%s%s", above, slash ? "/" : "", name) < 0)
		return false;
	if (pfs_grow(&stack->items, &stack->capacity, stack->n + 1, sizeof(item))) {
		free(item.path);
		return false;
	}
	stack->items[stack->n++] = item;
	return true;
}

/* Each directory with its heading, then those in it. */
static bool print_subtree(const struct list *list, uint64_t top, const char *shown, bool *blank)
{
	struct stack stack = {0};
	bool ok = push(&stack, top, shown, "");

	while (stack.n) {
		struct pending item = stack.items[--stack.n];
		size_t from, to;

		find_children(list, item.ino, &from, &to);
		if (ok) {
			put_heading(list->settings, item.path, blank);
			print_directory(list, from, to);
		}
		while (ok && to-- > from)
			if (list->entries[to].type == 'd')
				ok = push(&stack, list->entries[to].ino, item.path,
					  list->entries[to].name);
		free(item.path);
	}
	free(stack.items);
	return ok;
}

/* ---- places ---- */

/* The condition that leaves hidden names out, if they are to be. */
static const char *unhidden(const struct settings *s)
{
	return s->given[ALMOST] ? ")" : ") AND name NOT GLOB '.*'";
}

/* Of a subtree: its top, and what is hidden; directories without a heading are not gone into. */
static void leave_out(struct list *list, uint64_t top)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct entry *e = &list->entries[i];

		if (e->ino == top || (*e->name == '.' && !list->settings->given[ALMOST]))
			free(e->name);
		else
			list->entries[kept++] = *e;
	}
	list->n = kept;
}

/* Only names, of a whole subtree. */
static bool wants_names(const struct settings *s)
{
	return s->given[RECURSIVE] && !s->terminal && !s->given[LONG] && !s->given[INODE] && !s->given[BY_SIZE] &&
	       !s->given[BY_TIME];
}

static int list_directory(const struct settings *s, const struct pfs_place *place, uint64_t ino,
			  bool heading, bool *blank)
{
	struct list list = {.settings = s};
	const char *shown = *place->shown ? place->shown : "/";
	bool done = false;
	int status = wants_names(s) ? pfs_ls_paths(&done, place, s->given[ALMOST], s->given[REVERSE],
						   blank)
				    : PFS_EXIT_OK;

	if (status || done)
		return status;
	status = s->given[RECURSIVE] ? ask(&list, place, "under(ino, ", ")")
					 : ask(&list, place, "child_of(ino, ", unhidden(s));

	if (!status) {
		if (s->given[RECURSIVE])
			leave_out(&list, ino);
		sort(&list);
		if (s->given[RECURSIVE]) {
			if (!print_subtree(&list, ino, shown, blank))
				status = pfs_cmd_fail("ls", "no memory");
		} else {
			if (heading)
				put_heading(s, shown, blank);
			print_directory(&list, 0, list.n);
		}
	}
	finish_list(&list);
	return status;
}

static int find_places(struct list *found, const struct settings *s, const struct pfs_place *places,
		       size_t n)
{
	found->settings = s;
	for (size_t i = 0; i < n; i++) {
		const char *shown = *places[i].shown ? places[i].shown : "/";
		struct entry *e;
		char *piece;

		PFS_TRY(ask(found, &places[i], "path = ", ""));
		if (!found->entries || found->n != i + 1)
			return pfs_cmd_fail("ls", "%s: no such file or directory", places[i].path);
		e = &found->entries[i];
		if (asprintf(&piece, "%s%c%s", shown, 0, e->target) < 0)
			return pfs_cmd_fail("ls", "no memory");
		free(e->name);
		e->name = piece;
		e->target = piece + strlen(shown) + 1;
		e->parent_ino = 0; /* sorted as one directory's */
		e->place = i;
	}
	return PFS_EXIT_OK;
}

/* Files first, then directories. */
static int list_places(const struct settings *s, const struct pfs_place *places, size_t n)
{
	struct list found = {0}, files = {.settings = s};
	bool blank = false;
	int status = find_places(&found, s, places, n);
	size_t i;

	files.entries = calloc(n + 1, sizeof(*files.entries));
	if (!files.entries)
		return pfs_cmd_fail("ls", "no memory");
	sort(&found);
	for (i = 0; i < found.n && !status; i++)
		if (found.entries[i].type != 'd' || s->given[DIRECTORY])
			files.entries[files.n++] = found.entries[i];
	if (!status && files.n) {
		print_entries(&files, files.entries, files.n);
		blank = true;
	}
	for (i = 0; i < found.n && !status; i++) {
		const struct entry *e = &found.entries[i];

		if (e->type == 'd' && !s->given[DIRECTORY])
			status = list_directory(s, &places[e->place], e->ino, n > 1, &blank);
	}
	free(files.entries);
	finish_list(&found);
	return status;
}

int pfs_cmd_ls(int argc, char **argv)
{
	struct settings s = {.terminal = isatty(STDOUT_FILENO)};
	struct pfs_place *places = NULL;
	struct pfs_cmd_args args;
	int option, status;
	size_t n = 0;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0)
		s.given[option] = true;
	if (pfs_cmd_end(&args, 0, -1))
		return args.status;
	s.given[LONG] |= s.given[NUMERIC];
	(void)setlocale(LC_ALL, "");
	(void)setvbuf(stdout, NULL, _IOFBF, OUT_SIZE);
	(void)__fsetlocking(stdout, FSETLOCKING_BYCALLER);
	status = pfs_places_open(&places, &n, "ls", args.operands, (size_t)args.n_operands);
	if (!status)
		status = list_places(&s, places, n);
	pfs_places_close(places, n);
	return status ? status : pfs_cmd_flush("ls", status);
}
