/* SPDX-License-Identifier: MIT */
#include "tools/gnu/du_links.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/cmd.h"

void pfs_du_links_finish(struct pfs_du_links *links)
{
	free(links->seen);
	*links = (struct pfs_du_links){.n = 0};
}

/* ---- what has been seen ---- */

static struct pfs_du_seen *place_of(const struct pfs_du_links *links, uint64_t link, dev_t device)
{
	size_t mask = links->size - 1;
	size_t at = ((link ^ device << 32) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & mask;

	while (links->seen[at].link &&
	       (links->seen[at].link != link || links->seen[at].device != device))
		at = (at + 1) & mask;
	return &links->seen[at];
}

static int make_room(struct pfs_du_links *links)
{
	struct pfs_du_links larger = {.n = links->n, .size = PFS_MAX(2 * links->size, 1024)};

	if (links->n < links->size / 2)
		return 0;
	larger.seen = calloc(larger.size, sizeof(*larger.seen));
	if (!larger.seen)
		return -ENOMEM;
	for (size_t i = 0; i < links->size; i++) {
		const struct pfs_du_seen *old = &links->seen[i];

		if (old->link)
			*place_of(&larger, old->link, old->device) = *old;
	}
	free(links->seen);
	*links = larger;
	return 0;
}

static int see(struct pfs_du_links *links, bool *before, uint64_t link, dev_t device)
{
	struct pfs_du_seen *seen;

	PFS_TRY(make_room(links));
	seen = place_of(links, link, device);
	*before = seen->link != 0;
	links->n += !*before;
	*seen = (struct pfs_du_seen){.link = link, .device = device};
	return 0;
}

/* ---- names ---- */

struct looking {
	struct pfs_du_links *links;
	const struct pfs_place *place;
	void (*again)(void *arg, const struct pfs_du_name *name);
	void *arg;
	struct node {
		uint64_t ino;
		uint32_t node;
	} *by_ino;
	uint32_t *up;
	size_t n; /* how many nodes there are */
	bool no_memory;
};

static int compare(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return (x->ino > y->ino) - (x->ino < y->ino);
}

static bool find(const struct looking *looking, uint32_t *node, uint64_t ino)
{
	struct node key = {.ino = ino};
	const struct node *found = bsearch(&key, looking->by_ino, looking->n, sizeof(key), compare);

	*node = found ? found->node : 0;
	return found != NULL;
}

static bool take_name(void *arg, struct pfs_row *row)
{
	struct looking *looking = arg;
	uint64_t link = pfs_row_number(row), ino = pfs_row_number(row);
	uint64_t parent = pfs_row_number(row);
	struct pfs_du_name name = {.up = looking->up};
	bool before;

	name.size = pfs_row_number(row);
	name.blocks = pfs_row_number(row);
	if (see(looking->links, &before, link, looking->place->device)) {
		looking->no_memory = true;
		return false;
	}
	if (!before)
		return true;
	name.is_own = find(looking, &name.node, ino);
	if (!name.is_own)
		(void)find(looking, &name.node, parent);
	looking->again(looking->arg, &name);
	return true;
}

static int ask(const struct pfs_place *place, const char *columns, const char *rest,
	       bool (*row)(void *arg, struct pfs_row *row), void *arg)
{
	char *path PFS_FREE = pfs_sql_quote(place->path), *sql PFS_FREE = NULL;

	if (!path ||
	    asprintf(&sql, "SELECT %s FROM nodes WHERE under(ino, %s) AND link IS NOT NULL %s",
		     columns, path, rest) < 0)
		return pfs_cmd_fail("du", "no memory");
	return pfs_place_ask(place, sql, row, arg);
}

static void list_nodes(struct looking *looking, const struct pfs_subtree *subtree)
{
	for (uint32_t node = 0; node < subtree->n; node++) {
		looking->by_ino[node] = (struct node){.ino = subtree->keys[node].ino, .node = node};
		for (uint32_t child = subtree->nodes[node].first; child;
		     child = subtree->nodes[child].next)
			looking->up[child] = node;
	}
	if (looking->n)
		qsort(looking->by_ino, looking->n, sizeof(*looking->by_ino), compare);
}

int pfs_du_see_names(struct pfs_du_links *links, const struct pfs_subtree *subtree,
		     void (*again)(void *arg, const struct pfs_du_name *name), void *arg)
{
	struct looking looking = {
		.links = links,
		.place = subtree->place,
		.again = again,
		.arg = arg,
		.by_ino = calloc(subtree->n + 1, sizeof(*looking.by_ino)),
		.up = calloc(subtree->n + 1, sizeof(*looking.up)),
		.n = subtree->n,
	};
	int status = 0;

	looking.no_memory = !looking.by_ino || !looking.up;
	if (!looking.no_memory) {
		list_nodes(&looking, subtree);
		status = ask(subtree->place, "link, ino, parent, size, blocks", "ORDER BY preorder",
			     take_name, &looking);
	}
	free(looking.by_ino);
	free(looking.up);
	return !status && looking.no_memory ? pfs_cmd_fail("du", "no memory") : status;
}

static bool take_any(void *arg, struct pfs_row *row PFS_UNUSED)
{
	*(bool *)arg = true;
	return false;
}

int pfs_du_has_names(const struct pfs_place *place, bool *any)
{
	*any = false;
	return ask(place, "link", "LIMIT 1", take_any, any);
}
