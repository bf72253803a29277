/* SPDX-License-Identifier: MIT */
/* primefs find, if the order matters: collects all rows, and then visits them in the order in which
 * find(1) would walk. */
#include "tools/gnu/find_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/gnu/subtree.h"
#include "tools/cmd.h"

/* Directories are collected whether or not they matter themselves: the way to what does leads
 * through them. */
static int ask(const struct pfs_search *search, struct pfs_subtree *subtree)
{
	char *path PFS_FREE = pfs_sql_quote(search->place->path);
	char *condition PFS_FREE = pfs_find_condition(search->run.find), *where PFS_FREE = NULL;
	char limit[PFS_FIND_LIMIT], columns[PFS_FIND_COLUMNS];
	bool all = condition &&
		   (strcmp(condition, "1") == 0 || strcmp(condition, "type IN ('d')") == 0);

	pfs_search_limit(search, limit);
	pfs_search_columns(search, columns);
	if (!path || !condition ||
	    asprintf(&where, "under(ino, %s)%s AND (%s%s)", path, limit,
		     all ? "" : "type = 'd' OR ", condition) < 0)
		return pfs_cmd_fail("find", "no memory");
	return pfs_subtree_ask(subtree, "", columns, where);
}

struct step {
	uint32_t next; /* the child to visit next */
	size_t path_len;
	struct pfs_found found;
};

struct visit {
	struct pfs_search *search;
	const struct pfs_subtree *subtree;
	struct step *steps; /* the first is the start itself, which is decided elsewhere */
	size_t depth, capacity;
};

/* Goes into the child, deciding about it if directories come first. */
static bool enter(struct visit *visit, uint32_t child)
{
	struct pfs_search *search = visit->search;
	struct pfs_row row = pfs_subtree_row(visit->subtree, child);
	struct step *step;
	size_t size;
	const char *name = pfs_subtree_name(visit->subtree, child, &size);

	if (!pfs_search_enter(search, visit->steps[visit->depth - 1].path_len, name, size) ||
	    pfs_grow(&visit->steps, &visit->capacity, visit->depth + 1, sizeof(*step)))
		return false;
	step = &visit->steps[visit->depth];
	pfs_search_fill(search, &step->found, visit->subtree->nodes[child].type, &row);
	step->found.depth = (unsigned)visit->depth++;
	step->path_len = search->path_len;
	step->next = visit->subtree->nodes[child].first;
	if (!search->run.find->depth_first && pfs_search_decide(search, &step->found))
		step->next = 0;
	return true;
}

static void leave(struct visit *visit)
{
	struct step *step = &visit->steps[--visit->depth];
	struct pfs_search *search = visit->search;

	search->path_len = step->path_len;
	search->path[step->path_len] = 0;
	if (visit->depth && search->run.find->depth_first)
		(void)pfs_search_decide(search, &step->found);
}

static bool visit_all(struct visit *visit)
{
	bool ok = pfs_grow(&visit->steps, &visit->capacity, 1, sizeof(*visit->steps)) == 0;

	if (ok)
		visit->steps[visit->depth++] = (struct step){.next = visit->subtree->nodes[0].first,
							     .path_len = visit->search->start_len};
	while (ok && visit->depth && !visit->search->run.quit) {
		struct step *step = &visit->steps[visit->depth - 1];
		uint32_t child = step->next;

		if (child) {
			step->next = visit->subtree->nodes[child].next;
			ok = enter(visit, child);
		} else {
			leave(visit);
		}
	}
	return ok;
}

int pfs_search_walk(struct pfs_search *search)
{
	struct pfs_subtree subtree = {.place = search->place, .keyed = true};
	struct visit visit = {.search = search, .subtree = &subtree};
	int status = ask(search, &subtree);

	status = status ? status : pfs_subtree_sort_as_fts(&subtree);
	if (!status && subtree.n && !visit_all(&visit))
		status = pfs_cmd_fail("find", "no memory");
	free(visit.steps);
	pfs_subtree_close(&subtree);
	return status;
}
