/* SPDX-License-Identifier: MIT */
/* primefs ls - ls(1) of a store or a mounted one; with -R one question gets the whole subtree. */
#include "tools/cmd.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tools/client/ask.h"
#include "tools/gnu/subtree.h"
#include "tools/columns.h"
#include "tools/gnu/ls_names.h"
#include "tools/gnu/ls_print.h"

enum {
	LONG,
	RECURSIVE,
	ALL,
	ALMOST,
	ONE,
	COLUMNS,
	DIRECTORY,
	HUMAN,
	INODE,
	NUMERIC,
	REVERSE,
	BY_SIZE,
	BY_TIME
};
static const struct pfs_cmd_option options[] = {
	[LONG] = {NULL, 'l', NULL, "mode, links, owner, group, size, time, name"},
	[RECURSIVE] = {"recursive", 'R', NULL, "directories with all that is in them"},
	[ALL] = {"all", 'a', NULL, "what begins with a dot, too"},
	[ALMOST] = {"almost-all", 'A', NULL, "what begins with a dot, too, but for . and .."},
	[ONE] = {NULL, '1', NULL, "one a line, which is the default but on a terminal"},
	[COLUMNS] = {NULL, 'C', NULL, "in columns, which is the default on a terminal"},
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
	"Lists directories, as ls(1) does.",
	options,
	"PATH is a path of a mounted store or, after a STORE, an absolute path in it.",
};

struct settings {
	bool given[BY_TIME + 1];
	struct pfs_ls_style style;
	bool bytes_only; /* the order depends on names' bytes alone */
};

struct list {
	struct pfs_ls_entry *entries;
	size_t n, capacity;
};

/* ---- rows ---- */

static bool needs_names_only(const struct settings *s)
{
	return s->style.form != PFS_LS_LONG && !s->given[BY_SIZE] && !s->given[BY_TIME];
}

#define ATTRIBUTES ", target, nlink, rdev, size, blocks, mtime, uid, gid, mode"

/* Returns the columns that follow the name. */
static const char *columns_of(const struct settings *s)
{
	if (needs_names_only(s))
		return s->given[INODE] ? ", ino" : "";
	return s->given[INODE] ? ", ino" ATTRIBUTES : ATTRIBUTES;
}

static void take_entry(struct pfs_ls_entry *e, const struct settings *s, struct pfs_row *row)
{
	e->target = "";
	e->target_len = 0;
	if (s->given[INODE])
		e->ino = pfs_row_number(row);
	if (needs_names_only(s))
		return;
	e->target = pfs_row_text(row, &e->target_len);
	e->nlink = pfs_row_number(row);
	e->rdev = pfs_row_number(row);
	e->size = pfs_row_signed(row);
	e->blocks = pfs_row_signed(row);
	e->mtime = pfs_row_time(row);
	e->uid = (uid_t)pfs_row_number(row);
	e->gid = (gid_t)pfs_row_number(row);
	e->mode = (mode_t)pfs_row_number(row);
}

/* ---- order ---- */

/* Returns true if the locale orders names by their bytes. */
static bool collates_bytes(void)
{
#ifdef __GLIBC__
	return (uint32_t)(uintptr_t)nl_langinfo(_NL_COLLATE_NRULES) == 0;
#else
	const char *locale = setlocale(LC_COLLATE, NULL);

	return locale && (strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0);
#endif
}

static int compare(const void *a, const void *b, void *settings)
{
	const struct pfs_ls_entry *x = a, *y = b;
	const struct settings *s = settings;
	int order = 0;

	if (s->given[BY_TIME])
		order = (x->mtime < y->mtime) - (x->mtime > y->mtime);
	else if (s->given[BY_SIZE])
		order = (x->size < y->size) - (x->size > y->size);
	order = order ? order : strcoll(x->name, y->name);
	order = order ? order : strcmp(x->name, y->name);
	return s->given[REVERSE] ? -order : order;
}

/* They often are in order already. */
static void sort(const struct list *list, struct settings *s)
{
	size_t i = 1;

	while (i < list->n && compare(&list->entries[i - 1], &list->entries[i], s) <= 0)
		i++;
	if (i < list->n)
		qsort_r(list->entries, list->n, sizeof(*list->entries), compare, s);
}

/* ---- directories ---- */

#define NO_NODE UINT32_MAX /* . and .. have no node */

struct directory {
	uint32_t node;
	size_t self, up; /* -a: places in `dots` */
	size_t above_len; /* length of the path of the directory that contains it */
	const char *name;
	size_t len;
};

struct descent {
	struct pfs_subtree subtree;
	struct settings *settings;
	struct pfs_stdout *out;
	struct list list; /* of the present directory */
	struct directory *pending;
	size_t n, capacity;
	char *path; /* of the present directory */
	size_t path_len, path_capacity;
	bool blank; /* a blank line precedes the next heading */
	struct list dots; /* -a: the parent of the place, the place, and directories met */
};

/* ---- . and .. ---- */

struct dot {
	const struct settings *settings;
	struct pfs_ls_entry *entry;
};

static bool take_dot(void *arg, struct pfs_row *row)
{
	struct dot *dot = arg;
	size_t len;

	(void)pfs_row_letter(row);
	(void)pfs_row_text(row, &len);
	take_entry(dot->entry, dot->settings, row);
	return false;
}

static int find_dot(struct dot *dot, const struct pfs_place *place, bool above)
{
	char *path PFS_FREE = pfs_sql_quote(place->path), *sql PFS_FREE = NULL;

	if (!path ||
	    asprintf(&sql, "SELECT type, name%s FROM nodes WHERE %s%s%s", columns_of(dot->settings),
		     above ? "ino = (SELECT parent FROM nodes WHERE path = " : "path = ", path,
		     above ? ")" : "") < 0)
		return pfs_cmd_fail("ls", "no memory");
	return pfs_place_ask(place, sql, take_dot, dot);
}

/* The .query of a mounted directory knows nothing above it. */
static bool stat_above(struct pfs_ls_entry *e, const struct pfs_place *place)
{
	char *above PFS_FREE = NULL;
	struct stat attr;

	if (place->store || asprintf(&above, "%s/..", place->folder) < 0 || stat(above, &attr) != 0)
		return false;
	e->ino = attr.st_ino;
	e->nlink = attr.st_nlink;
	e->size = attr.st_size;
	e->blocks = attr.st_blocks;
	e->mtime = pfs_timespec_ns(attr.st_mtim);
	e->uid = attr.st_uid;
	e->gid = attr.st_gid;
	e->mode = attr.st_mode;
	return true;
}

static int add(struct list *list, const struct pfs_ls_entry *entry)
{
	PFS_TRY(pfs_grow(&list->entries, &list->capacity, list->n + 1, sizeof(*entry)));
	list->entries[list->n++] = *entry;
	return 0;
}

static int find_dots(struct descent *d)
{
	const struct pfs_place *place = d->subtree.place;
	struct pfs_ls_entry self = {.target = ""}, up;
	struct dot dot = {.settings = d->settings, .entry = &self};

	if (!d->settings->given[ALL])
		return PFS_EXIT_OK;
	PFS_TRY(find_dot(&dot, place, false));
	up = self;
	dot.entry = &up;
	if (!stat_above(&up, place) && strcmp(place->path, "/") != 0)
		PFS_TRY(find_dot(&dot, place, true));
	self.target = up.target = ""; /* the texts belong to answers that are gone */
	if (add(&d->dots, &up) || add(&d->dots, &self))
		return pfs_cmd_fail("ls", "no memory");
	return PFS_EXIT_OK;
}

static int list_dot(struct descent *d, const char *name, size_t dot)
{
	struct pfs_ls_entry entry = d->dots.entries[dot];

	entry.node = NO_NODE;
	entry.type = 'd';
	entry.name = name;
	entry.len = strlen(name);
	return add(&d->list, &entry);
}

/* Lists the children to be shown, in order. */
static int list_children(struct descent *d, const struct directory *directory)
{
	const uint32_t node = directory->node;
	const struct settings *s = d->settings;
	struct list *list = &d->list;

	list->n = 0;
	if (d->dots.entries) {
		PFS_TRY(list_dot(d, ".", directory->self));
		PFS_TRY(list_dot(d, "..", directory->up));
	}
	for (uint32_t at = d->subtree.n ? d->subtree.nodes[node].first : 0; at;
	     at = d->subtree.nodes[at].next) {
		struct pfs_row row = pfs_subtree_row(&d->subtree, at);
		struct pfs_ls_entry *e;

		PFS_TRY(pfs_grow(&list->entries, &list->capacity, list->n + 1, sizeof(*e)));
		e = &list->entries[list->n];
		e->node = at;
		e->type = d->subtree.nodes[at].type;
		e->name = pfs_subtree_name(&d->subtree, at, &e->len);
		take_entry(e, s, &row);
		list->n += *e->name != '.' || s->given[ALMOST];
	}
	if (!s->bytes_only || d->subtree.beheaded || s->given[ALL])
		sort(list, d->settings);
	return 0;
}

static int add_pending(struct descent *d, size_t up)
{
	PFS_TRY(pfs_grow(&d->pending, &d->capacity, d->n + d->list.n, sizeof(*d->pending)));
	for (size_t i = d->list.n; i-- > 0;) {
		const struct pfs_ls_entry *e = &d->list.entries[i];

		if (e->type != 'd' || e->node == NO_NODE)
			continue;
		d->pending[d->n++] =
			(struct directory){e->node, d->dots.n, up, d->path_len, e->name, e->len};
		if (d->settings->given[ALL])
			PFS_TRY(add(&d->dots, e));
	}
	return 0;
}

static int enter(struct descent *d, const struct directory *directory)
{
	size_t at = directory->above_len;

	if (pfs_grow(&d->path, &d->path_capacity, at + directory->len + 1, 1) || !d->path)
		return -ENOMEM;
	if (at && d->path[at - 1] != '/')
		d->path[at++] = '/';
	(void)memcpy(d->path + at, directory->name, directory->len);
	d->path_len = at + directory->len;
	return 0;
}

static int put_directory(struct descent *d, const struct directory *directory, bool heading)
{
	PFS_TRY(enter(d, directory));
	if (heading) {
		if (d->blank)
			pfs_stdout_char(d->out, '\n');
		d->blank = true;
		pfs_ls_put_heading(d->out, &d->settings->style, d->path, d->path_len);
	}
	PFS_TRY(list_children(d, directory));
	if (d->settings->style.form == PFS_LS_LONG)
		pfs_ls_put_total(d->out, &d->settings->style, d->list.entries, d->list.n);
	PFS_TRY(pfs_ls_put(d->out, &d->settings->style, d->list.entries, d->list.n, d->list.n));
	return d->settings->given[RECURSIVE] ? add_pending(d, directory->self) : 0;
}

static int ask(struct pfs_subtree *subtree, const struct settings *s)
{
	char *path PFS_FREE = pfs_sql_quote(subtree->place->path), *where PFS_FREE = NULL;

	if (!path ||
	    asprintf(&where, "%s(ino, %s)%s", subtree->beheaded ? "child_of" : "under", path,
		     subtree->beheaded && !s->given[ALMOST] ? " AND name NOT GLOB '.*'" : "") < 0)
		return pfs_cmd_fail("ls", "no memory");
	return pfs_subtree_ask(subtree, "", columns_of(s), where);
}

/* Returns true if nothing but names is shown, in the order in which they come. */
static bool is_plain(const struct settings *s)
{
	const struct pfs_ls_style *style = &s->style;

	return s->given[RECURSIVE] && !s->given[ALL] && s->bytes_only &&
	       style->form == PFS_LS_LINES && !style->inodes && !style->quotes;
}

static int list_directory(struct pfs_stdout *out, struct settings *s, const struct pfs_place *place,
			  bool heading, bool *blank)
{
	struct descent d = {.subtree = {.place = place, .beheaded = !s->given[RECURSIVE]},
			    .settings = s,
			    .out = out,
			    .blank = *blank};
	struct directory top = {.self = 1, .name = *place->shown ? place->shown : "/"};
	int status, error = 0;

	if (is_plain(s))
		return pfs_ls_names(out, place, s->given[ALMOST], blank);
	status = find_dots(&d);
	status = status ? status : ask(&d.subtree, s);
	top.len = strlen(top.name);
	if (!status)
		error = put_directory(&d, &top, heading || s->given[RECURSIVE]);
	while (d.n && !error) {
		top = d.pending[--d.n];
		error = put_directory(&d, &top, true);
	}
	*blank = d.blank;
	pfs_subtree_close(&d.subtree);
	free(d.list.entries);
	free(d.dots.entries);
	free(d.pending);
	free(d.path);
	return error ? pfs_cmd_fail("ls", "no memory") : status;
}

/* ---- places ---- */

struct places {
	const struct settings *settings;
	struct list list;
	uint32_t number; /* the place that is asked for */
	const char *shown;
	bool no_memory;
};

/* Places are shown by the names by which they were given. */
static bool take_place(void *arg, struct pfs_row *row)
{
	struct places *places = arg;
	struct pfs_ls_entry *e = &places->list.entries[places->list.n];
	char *names;

	e->type = pfs_row_letter(row);
	(void)pfs_row_text(row, &e->len);
	take_entry(e, places->settings, row);
	e->node = places->number;
	e->len = strlen(places->shown);
	names = malloc(e->len + e->target_len + 2);
	places->no_memory = !names;
	if (!names)
		return false;
	(void)memcpy(names, places->shown, e->len + 1);
	(void)memcpy(names + e->len + 1, e->target, e->target_len + 1);
	e->name = names;
	e->target = names + e->len + 1;
	places->list.n++;
	return false;
}

static int find_place(struct places *places, const struct pfs_place *place)
{
	char *path PFS_FREE = pfs_sql_quote(place->path), *sql PFS_FREE = NULL;
	const size_t n = places->list.n;

	if (!path || asprintf(&sql, "SELECT type, name%s FROM nodes WHERE path = %s",
			      columns_of(places->settings), path) < 0)
		return pfs_cmd_fail("ls", "no memory");
	places->shown = *place->shown ? place->shown : "/";
	PFS_TRY(pfs_place_ask(place, sql, take_place, places));
	if (places->no_memory)
		return pfs_cmd_fail("ls", "no memory");
	return places->list.n > n
		       ? PFS_EXIT_OK
		       : pfs_cmd_fail("ls", "%s: no such file or directory", place->path);
}

/* Returns true if the place's content is listed. */
static bool is_listed(const struct settings *s, const struct pfs_ls_entry *place)
{
	return place->type == 'd' && !s->given[DIRECTORY];
}

/* Files first, then directories. */
static int list_places(struct pfs_stdout *out, struct settings *s, const struct pfs_place *places,
		       size_t n)
{
	struct places found = {.settings = s,
			       .list.entries = calloc(n, sizeof(struct pfs_ls_entry))};
	struct list files = {.entries = calloc(n, sizeof(struct pfs_ls_entry))};
	int status = PFS_EXIT_OK;
	bool blank;

	if (!found.list.entries || !files.entries) {
		free(found.list.entries);
		free(files.entries);
		return pfs_cmd_fail("ls", "no memory");
	}
	for (found.number = 0; found.number < n; found.number++)
		if (places[found.number].path)
			status = pfs_cmd_worst(status, find_place(&found, &places[found.number]));
	sort(&found.list, s);
	for (size_t i = 0; i < found.list.n; i++)
		if (!is_listed(s, &found.list.entries[i]))
			files.entries[files.n++] = found.list.entries[i];
	/* they count for the columns' widths, too */
	for (size_t i = 0, at = files.n; i < found.list.n; i++)
		if (is_listed(s, &found.list.entries[i]))
			files.entries[at++] = found.list.entries[i];
	if (files.n && pfs_ls_put(out, &s->style, files.entries, files.n, found.list.n))
		status = pfs_cmd_fail("ls", "no memory");
	blank = files.n;
	for (size_t i = 0; i < found.list.n; i++) {
		const struct pfs_ls_entry *e = &found.list.entries[i];

		if (is_listed(s, e))
			status = pfs_cmd_worst(status,
					 list_directory(out, s, &places[e->node], n > 1, &blank));
	}
	for (size_t i = 0; i < found.list.n; i++)
		free((char *)found.list.entries[i].name);
	free(found.list.entries);
	free(files.entries);
	return status;
}

static void choose(struct settings *s, int option)
{
	struct pfs_ls_style *style = &s->style;

	s->given[option] = true;
	if (option == ALL || option == ALMOST) { /* the last one counts */
		s->given[ALMOST] = true;
		s->given[ALL] = option == ALL;
	}
	if (option == BY_SIZE || option == BY_TIME) /* the last one counts */
		s->given[BY_SIZE + BY_TIME - option] = false;
	if (option == LONG || option == NUMERIC)
		style->form = PFS_LS_LONG;
	else if (option == COLUMNS)
		style->form = PFS_LS_COLUMNS;
	else if (option == ONE && style->form != PFS_LS_LONG) /* as in ls(1) */
		style->form = PFS_LS_LINES;
	style->inodes |= option == INODE;
	style->human |= option == HUMAN;
	style->numeric |= option == NUMERIC;
}

int pfs_cmd_ls(int argc, char **argv)
{
	static struct pfs_stdout out;
	const bool terminal = isatty(STDOUT_FILENO);
	struct settings s = {.style = {.quotes = terminal, .line = pfs_line_width()}};
	struct pfs_place *places = NULL;
	struct pfs_cmd_args args;
	int option, status;
	size_t n = 0;

	s.style.form = terminal ? PFS_LS_COLUMNS : PFS_LS_LINES;
	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0)
		choose(&s, option);
	if (pfs_cmd_end(&args, 0, -1))
		return args.status;
	(void)setlocale(LC_ALL, "");
	s.bytes_only =
		collates_bytes() && !s.given[BY_SIZE] && !s.given[BY_TIME] && !s.given[REVERSE];
	status = pfs_places_open(&places, &n, "ls", args.operands, (size_t)args.n_operands,
				 s.style.form != PFS_LS_LONG && !s.given[DIRECTORY]);
	if (status != PFS_EXIT_USAGE && n)
		status = pfs_cmd_worst(status, list_places(&out, &s, places, n));
	pfs_places_close(places, n);
	return pfs_stdout_end(&out, "ls", status);
}
