/* SPDX-License-Identifier: MIT */
/* primefs find where order matters: all rows are collected, then visited as find(1) would walk. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/cmd.h"
#include "tools/find_search.h"
#include "tools/walk.h"

#define KEY	  "name, ino, parent, readdir"
#define N_KEY	  4
#define FIELDS_MAX 32

struct node {
	struct pfs_walk_key key;
	size_t text; /* in texts: the name, then the columns, NUL-ended each */
	bool directory;
};

struct rows {
	struct node *nodes;
	size_t n, capacity;
	char *texts;
	size_t size, text_capacity;
	size_t n_fields; /* after the name */
	bool no_memory;
};

/* ---- collecting ---- */

static bool keep_text(struct rows *rows, const char *text, size_t size)
{
	if (pfs_grow(&rows->texts, &rows->text_capacity, rows->size + size + 1, 1))
		return false;
	(void)memcpy(rows->texts + rows->size, text, size + 1);
	rows->size += size + 1;
	return true;
}

static bool collect(void *arg, const struct pfs_row *row)
{
	struct rows *rows = arg;
	struct node *node;

	if (row->n <= N_KEY || row->n > FIELDS_MAX ||
	    pfs_grow(&rows->nodes, &rows->capacity, rows->n + 1, sizeof(*node))) {
		rows->no_memory = true;
		return false;
	}
	node = &rows->nodes[rows->n++];
	*node = (struct node){.key = {.ino = strtoull(row->field[1], NULL, 10),
				      .parent = strtoull(row->field[2], NULL, 10),
				      .order = strtoull(row->field[3], NULL, 10)},
			      .text = rows->size,
			      .directory = *row->field[N_KEY] == 'd'};
	rows->n_fields = row->n - N_KEY;
	rows->no_memory = !keep_text(rows, row->field[0], row->size[0]);
	for (size_t i = N_KEY; i < row->n && !rows->no_memory; i++)
		rows->no_memory = !keep_text(rows, row->field[i], row->size[i]);
	return !rows->no_memory;
}

/* Directories are collected whether or not they matter themselves: the way to what does leads
 * through them. */
static int ask(struct pfs_search *search, struct rows *rows)
{
	const struct pfs_find *find = search->run.find;
	char *path PFS_FREE = pfs_sql_quote(search->place->path);
	char *condition PFS_FREE = pfs_find_condition(find), *where PFS_FREE = NULL;
	char limit[64] = "";
	int status;

	if (find->max_depth != UINT32_MAX)
		(void)snprintf(limit, sizeof(limit), " AND depth <= %" PRIu64,
			       search->start_depth + (uint64_t)find->max_depth);
	if (!path || !condition ||
	    asprintf(&where, "under(ino, %s)%s%s%s%s", path, limit,
		     strcmp(condition, "1") != 0 ? " AND (type = 'd' OR " : "",
		     strcmp(condition, "1") != 0 ? condition : "",
		     strcmp(condition, "1") != 0 ? ")" : "") < 0)
		return pfs_cmd_fail("find", "no memory");
	status = pfs_search_ask(search, KEY, where, collect, rows);
	return !status && rows->no_memory ? pfs_cmd_fail("find", "no memory") : status;
}

/* ---- visiting ---- */

struct step {
	size_t node, next, path_len; /* next: child to visit; path_len: of search->path with this one's name */
};

struct visit {
	struct pfs_search *search;
	const struct rows *rows;
	struct pfs_walk walk;
	struct step *steps;
	size_t depth, capacity;
};

static bool append_name(struct pfs_search *search, size_t *len, const char *name)
{
	size_t size = strlen(name) + 1;

	if (pfs_grow(&search->path, &search->capacity, *len + size + 1, 1))
		return false;
	if (*len == 0 || search->path[*len - 1] != '/')
		search->path[(*len)++] = '/';
	(void)memcpy(search->path + *len, name, size);
	*len += size - 1;
	return true;
}

/* True if what is below is to be left out. */
static bool decide(struct visit *visit, const struct node *node)
{
	char *field[FIELDS_MAX], *text = visit->rows->texts + node->text;
	struct pfs_found found = {.depth = (unsigned)visit->depth};

	for (size_t i = 0; i < visit->rows->n_fields; i++) {
		text = strchr(text, 0) + 1;
		field[i] = text;
	}
	pfs_search_fill(visit->search, &found, field, visit->rows->n_fields);
	pfs_search_name(visit->search, &found);
	return pfs_search_decide(visit->search, &found);
}

/* Goes into the child that is next, deciding about it if directories come first. */
static bool enter(struct visit *visit, size_t child)
{
	const struct node *node = &visit->rows->nodes[child];
	struct step step = {child, visit->rows->n, visit->steps[visit->depth - 1].path_len};
	bool below = node->directory && visit->depth < visit->search->run.find->max_depth;

	if (!append_name(visit->search, &step.path_len, visit->rows->texts + node->text) ||
	    pfs_grow(&visit->steps, &visit->capacity, visit->depth + 1, sizeof(step)))
		return false;
	if (!visit->search->run.find->depth_first && decide(visit, node))
		below = false;
	if (below)
		step.next = pfs_walk_first_child(&visit->walk, node->key.ino);
	visit->steps[visit->depth++] = step;
	return true;
}

static void leave(struct visit *visit)
{
	const struct step *step = &visit->steps[--visit->depth];

	visit->search->path[step->path_len] = 0;
	if (visit->depth && visit->search->run.find->depth_first)
		(void)decide(visit, &visit->rows->nodes[step->node]);
}

/* The first step is the start itself, which is decided elsewhere. */
static bool begin(struct visit *visit, uint64_t start)
{
	struct pfs_search *search = visit->search;
	size_t len = search->start.path_len;

	if (pfs_grow(&search->path, &search->capacity, len + 1, 1) ||
	    pfs_grow(&visit->steps, &visit->capacity, 1, sizeof(*visit->steps)))
		return false;
	(void)memcpy(search->path, search->start.path, len + 1);
	visit->steps[visit->depth++] =
		(struct step){.next = pfs_walk_first_child(&visit->walk, start), .path_len = len};
	return true;
}

static bool visit_all(struct visit *visit, uint64_t start)
{
	const struct rows *rows = visit->rows;
	bool ok = begin(visit, start);

	while (ok && visit->depth && !visit->search->run.quit) {
		struct step *step = &visit->steps[visit->depth - 1];
		size_t child = step->next;
		uint64_t parent = visit->depth > 1 ? rows->nodes[step->node].key.ino : start;

		if (child < rows->n && rows->nodes[child].key.parent == parent) {
			step->next++;
			ok = enter(visit, child);
		} else {
			leave(visit);
		}
	}
	return ok;
}

int pfs_search_walk(struct pfs_search *search)
{
	struct rows rows = {.nodes = NULL};
	struct visit visit = {.search = search, .rows = &rows};
	int status = ask(search, &rows);

	visit.walk = (struct pfs_walk){rows.nodes, rows.n, sizeof(*rows.nodes)};
	status = status ? status : pfs_walk_sort_as_fts(&visit.walk, search->place);
	if (!status && !visit_all(&visit, search->start.ino))
		status = pfs_cmd_fail("find", "no memory");
	free(visit.steps);
	free(rows.nodes);
	free(rows.texts);
	return status;
}
