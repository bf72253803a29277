/* SPDX-License-Identifier: MIT */
#include "tools/ls_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/cmd.h"

#define PIECE ((size_t)1 << 20)
#define TOP   0 /* the directory itself is the first line */

struct node {
	const char *path; /* NUL-terminated, in text */
	uint32_t len, name; /* of the path; where in it the name begins */
	uint32_t parent;
	uint32_t children, n_children; /* in order, sorted */
	bool directory;
};

struct listing {
	const struct pfs_place *place;
	bool hidden, reverse;
	char *text;
	size_t size, capacity;
	struct node *nodes;
	size_t n, node_capacity;
	uint32_t *order; /* children of each directory, together */
	char **empty; /* paths of directories without entries, owned */
	size_t n_empty, empty_capacity;
	bool has_newlines, no_memory;
};

/* ---- reading ---- */

static int fail(const struct pfs_place *place, int error)
{
	return pfs_cmd_fail("ls", "%s/.query/paths: %s", place->folder, strerror(error));
}

static int read_text(struct listing *l)
{
	int folder PFS_CLOSE = open(l->place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd PFS_CLOSE = folder < 0 ? -1 : openat(folder, ".query/paths", O_RDONLY | O_CLOEXEC);
	ssize_t got = 0;

	if (fd < 0)
		return fail(l->place, errno);
	do {
		l->size += (size_t)got;
		if (pfs_grow(&l->text, &l->capacity, l->size + PIECE, 1))
			return fail(l->place, ENOMEM);
		got = read(fd, l->text + l->size, l->capacity - l->size);
	} while (got > 0);
	return got < 0 ? fail(l->place, errno) : PFS_EXIT_OK;
}

/* Whether `above` is the directory that the path lies in. */
static bool lies_in(const struct node *above, const char *path, size_t len)
{
	size_t from = above->len == 1 ? 0 : above->len; /* "/" */

	return len > from + 1 && path[from] == '/' && memcmp(path, above->path, from) == 0;
}

/* Each path comes after that of its directory, and after all that lies in others before it: the
 * directory is the last node, or one above that. */
static bool add_path(struct listing *l, const char *path, size_t len)
{
	uint32_t above = l->n ? (uint32_t)l->n - 1 : TOP;

	if (len > UINT32_MAX || l->n >= UINT32_MAX ||
	    pfs_grow(&l->nodes, &l->node_capacity, l->n + 1, sizeof(*l->nodes)))
		return false;
	while (above != TOP && !lies_in(&l->nodes[above], path, len))
		above = l->nodes[above].parent;
	l->nodes[l->n] = (struct node){.path = path, .len = (uint32_t)len, .parent = above};
	if (l->n) {
		l->nodes[l->n].name = l->nodes[above].len + (l->nodes[above].len > 1);
		l->nodes[above].directory = true;
		l->nodes[above].n_children++;
	}
	l->n++;
	return true;
}

static int add_paths(struct listing *l)
{
	char *at = l->text, *end = at + l->size, *newline;

	for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1) {
		*newline = 0;
		if (!add_path(l, at, (size_t)(newline - at)))
			return pfs_cmd_fail("ls", "no memory");
	}
	return PFS_EXIT_OK;
}

/* ---- order ---- */

static int compare_names(const struct listing *l, const char *x, const char *y)
{
	int order = strcoll(x, y);

	order = order ? order : strcmp(x, y);
	return l->reverse ? -order : order;
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct listing *l = arg;
	const struct node *x = &l->nodes[*(const uint32_t *)a], *y = &l->nodes[*(const uint32_t *)b];

	return compare_names(l, x->path + x->name, y->path + y->name);
}

static int sort_children(struct listing *l)
{
	uint32_t next = 0;

	l->order = calloc(l->n + 1, sizeof(*l->order));
	if (!l->order)
		return pfs_cmd_fail("ls", "no memory");
	for (size_t i = 0; i < l->n; i++) {
		l->nodes[i].children = next;
		next += l->nodes[i].n_children;
		l->nodes[i].n_children = 0;
	}
	for (uint32_t i = 1; i < l->n; i++) {
		struct node *above = &l->nodes[l->nodes[i].parent];

		l->order[above->children + above->n_children++] = i;
	}
	for (size_t i = 0; i < l->n; i++) {
		uint32_t *first = l->order + l->nodes[i].children;
		uint32_t n = l->nodes[i].n_children, k = 1;

		while (k < n && compare(first + k - 1, first + k, l) < 0)
			k++;
		if (k < n) /* they often come sorted */
			qsort_r(first, n, sizeof(*first), compare, l);
	}
	return PFS_EXIT_OK;
}

/* ---- directories without entries ---- */

static bool take_empty(void *arg, const struct pfs_row *row)
{
	struct listing *l = arg;
	char *path = strdup(row->field[0]);

	if (!path || pfs_grow(&l->empty, &l->empty_capacity, l->n_empty + 1, sizeof(path))) {
		free(path);
		l->no_memory = true;
		return false;
	}
	l->empty[l->n_empty++] = path;
	return true;
}

static bool take_newline(void *arg, const struct pfs_row *row PFS_UNUSED)
{
	((struct listing *)arg)->has_newlines = true;
	return false;
}

/* The child of that name. */
static struct node *find_child(const struct listing *l, const struct node *above, const char *name)
{
	uint32_t low = 0, high = above->n_children;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct node *child = &l->nodes[l->order[above->children + middle]];
		int order = compare_names(l, child->path + child->name, name);

		if (!order)
			return child;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* The path is taken apart. */
static void mark_empty(const struct listing *l, char *path)
{
	struct node *at = &l->nodes[TOP];
	char *rest = path + (at->len > 1 ? at->len : 0), *name;

	while (at && (name = strsep(&rest, "/")))
		if (*name)
			at = find_child(l, at, name);
	if (at)
		at->directory = true;
}

static int ask(struct listing *l)
{
	PFS_TRY(pfs_place_ask(l->place, "SELECT 1 FROM nodes WHERE name GLOB '*\n*' LIMIT 1",
			      take_newline, l));
	if (l->has_newlines)
		return PFS_EXIT_OK;
	PFS_TRY(pfs_place_ask(l->place,
			      "SELECT path FROM nodes WHERE type = 'd' AND subtree_count = 1",
			      take_empty, l));
	return l->no_memory ? pfs_cmd_fail("ls", "no memory") : PFS_EXIT_OK;
}

/* ---- printing ---- */

static void put(const char *bytes, size_t size)
{
	(void)fwrite_unlocked(bytes, 1, size, stdout);
}

static bool is_shown(const struct listing *l, const struct node *node)
{
	return l->hidden || node->path[node->name] != '.';
}

/* The path as it is shown: what stands for the place, then what is below it. */
static void put_heading(const struct listing *l, const struct node *node, bool blank)
{
	const char *shown = l->place->shown;
	size_t len = strlen(shown), above = l->nodes[TOP].len > 1 ? l->nodes[TOP].len : 0;

	if (blank)
		put("\n", 1);
	put(shown, len);
	if (node != &l->nodes[TOP]) {
		above += len && shown[len - 1] == '/';
		put(node->path + above, node->len - above);
	}
	put(":\n", 2);
}

static bool print(const struct listing *l, bool *blank)
{
	uint32_t *stack PFS_FREE = calloc(l->n, sizeof(*stack)); /* directories to come */
	size_t n = 0;

	if (!stack)
		return false;
	stack[n++] = TOP;
	while (n) {
		const struct node *node = &l->nodes[stack[--n]];
		const uint32_t *children = l->order + node->children;

		put_heading(l, node, *blank);
		*blank = true;
		for (uint32_t i = 0; i < node->n_children; i++) {
			const struct node *child = &l->nodes[children[i]];

			if (!is_shown(l, child))
				continue;
			put(child->path + child->name, child->len - child->name);
			put("\n", 1);
		}
		for (uint32_t i = node->n_children; i-- > 0;)
			if (l->nodes[children[i]].directory && is_shown(l, &l->nodes[children[i]]))
				stack[n++] = children[i];
	}
	return true;
}

int pfs_ls_paths(bool *done, const struct pfs_place *place, bool hidden, bool reverse, bool *blank)
{
	struct listing l = {.place = place, .hidden = hidden, .reverse = reverse};
	int status = place->store ? PFS_EXIT_OK : ask(&l);

	*done = !place->store && !l.has_newlines;
	if (*done && !status) {
		status = read_text(&l);
		status = status ? status : add_paths(&l);
		status = status ? status : sort_children(&l);
	}
	if (*done && !status && l.n) {
		for (size_t i = 0; i < l.n_empty; i++)
			mark_empty(&l, l.empty[i]);
		(void)__fsetlocking(stdout, FSETLOCKING_BYCALLER);
		if (!print(&l, blank))
			status = pfs_cmd_fail("ls", "no memory");
	}
	while (l.n_empty)
		free(l.empty[--l.n_empty]);
	free(l.empty);
	free(l.text);
	free(l.nodes);
	free(l.order);
	return status;
}
