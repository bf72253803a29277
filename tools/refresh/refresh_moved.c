/* SPDX-License-Identifier: MIT */
/* What is known of nodes that the store has moved, and of directories that the source has. */
#include "tools/refresh/refresh_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* ---- nodes that the store has moved ---- */

/* The node is gone with what else the entry's place loses. Its original may be the entry. */
static int meet(struct pfs_displaced *displaced, struct pfs_finding *here)
{
	char path[PATH_MAX];
	size_t len;

	displaced->here = here;
	displaced->looked = false;
	displaced->met = pfs_refresh_path_of(path, here, &len) ? strdup(path) : NULL;
	return displaced->met || len >= sizeof(path) ? 0 : -ENOMEM;
}

int pfs_refresh_displaced(struct pfs_refresh *refresh, uint64_t ino, const char *path,
			  struct pfs_finding *here)
{
	struct pfs_displaced *displaced =
		(struct pfs_displaced *)pfs_byprime_find(&refresh->displaced_inos, ino);

	if (displaced)
		return here && !displaced->here ? meet(displaced, here) : 0;
	displaced = calloc(1, sizeof(*displaced));
	if (!displaced)
		return -ENOMEM;
	displaced->by_prime.prime = ino;
	pfs_byprime_add(&refresh->displaced_inos, &displaced->by_prime);
	*refresh->displaced_end = displaced;
	refresh->displaced_end = &displaced->next;
	displaced->path = strdup(path);
	if (!displaced->path)
		return -ENOMEM;
	return here ? meet(displaced, here) : 0;
}

int pfs_refresh_displaced_to(struct pfs_refresh *refresh, uint64_t ino, const char *path,
			     const char *at)
{
	struct pfs_displaced *displaced;

	PFS_TRY(pfs_refresh_displaced(refresh, ino, path, NULL));
	displaced = (struct pfs_displaced *)pfs_byprime_find(&refresh->displaced_inos, ino);
	free(displaced->met);
	displaced->at = displaced->met = strdup(at);
	return displaced->at ? 0 : -ENOMEM;
}

bool pfs_refresh_is_met(const struct pfs_refresh *refresh, uint64_t ino,
			const struct pfs_refresh_place *place, const char *name)
{
	const struct pfs_displaced *displaced =
		(struct pfs_displaced *)pfs_byprime_find(&refresh->displaced_inos, ino);
	size_t len = place->dir->path_len;
	const char *at = displaced ? displaced->at : NULL;

	if (!displaced || displaced->here || !at)
		return displaced && displaced->here;
	return strncmp(at, place->dir->path, len) == 0 &&
	       strcmp(at + len + (at[len] == '/'), name) == 0;
}

static int displace_child(struct pfs_refresh *refresh, const struct pfs_follower *child,
			  uint64_t **todo, size_t *n, size_t *capacity)
{
	struct pfs_source_record record;
	char path[PATH_MAX];
	int error = pfs_follow_record(refresh->tree, &record, path, child->ino);

	if (!error && record.root == refresh->root.id)
		return pfs_refresh_displaced(refresh, child->ino, path, NULL);
	if (error && error != -ENOENT)
		return error;
	if (!S_ISDIR(child->attr.st_mode))
		return 0;
	PFS_TRY(pfs_grow(todo, capacity, *n + 1, sizeof(**todo)));
	(*todo)[(*n)++] = child->ino;
	return 0;
}

int pfs_refresh_displaced_below(struct pfs_refresh *refresh, uint64_t ino)
{
	struct pfs_followers children = {.n = 0};
	uint64_t *todo = NULL;
	size_t n = 0, capacity = 0;
	int error = pfs_grow(&todo, &capacity, 1, sizeof(*todo));

	if (!error)
		todo[n++] = ino;
	while (!error && n) {
		error = pfs_follow_list(refresh->tree, &children, todo[--n], false);
		for (size_t i = 0; i < children.n && !error; i++)
			error = displace_child(refresh, &children.list[i], &todo, &n, &capacity);
	}
	pfs_followers_finish(&children);
	free(todo);
	return error;
}

/* ---- directories that have moved in the source ---- */

const struct pfs_source_move *pfs_refresh_move_of(const struct pfs_refresh *refresh,
						  const char *path, size_t *n, size_t *len)
{
	const struct pfs_source_move *found = NULL;

	for (; *n < refresh->n_moves; (*n)++) {
		const struct pfs_source_move *move = &refresh->moves[*n];
		size_t from = strlen(move->from);

		if (from < *len || strncmp(path, move->from, from) != 0 ||
		    (path[from] && path[from] != '/'))
			continue;
		*len = from;
		found = move;
	}
	return found;
}

int pfs_refresh_note_move(struct pfs_refresh *refresh, const char *from, const char *to)
{
	struct pfs_source_move move = {strdup(from), strdup(to)};

	if (!move.from || !move.to ||
	    pfs_grow(&refresh->moves, &refresh->moves_capacity, refresh->n_moves + 1,
		     sizeof(*refresh->moves))) {
		free(move.from);
		free(move.to);
		return -ENOMEM;
	}
	refresh->moves[refresh->n_moves++] = move;
	return 0;
}

static int seek(struct pfs_refresh *refresh, const char *path, const char *end)
{
	char *copy;

	if (asprintf(&copy, "%s%s", path, end) < 0)
		copy = NULL;
	if (!copy || pfs_grow(&refresh->sought, &refresh->sought_capacity, refresh->n_sought + 1,
			      sizeof(char *))) {
		free(copy);
		return -ENOMEM;
	}
	refresh->sought[refresh->n_sought++] = copy;
	return 0;
}

int pfs_refresh_seek(struct pfs_refresh *refresh, const char *path)
{
	return seek(refresh, path, "");
}

int pfs_refresh_seek_renamed(struct pfs_refresh *refresh, const char *path)
{
	return seek(refresh, path, "/");
}

void pfs_refresh_forget_sought(struct pfs_refresh *refresh)
{
	while (refresh->n_sought)
		free(refresh->sought[--refresh->n_sought]);
}

void pfs_refresh_displaced_finish(struct pfs_refresh *refresh)
{
	while (refresh->displaced) {
		struct pfs_displaced *next = refresh->displaced->next;

		free(refresh->displaced->path);
		free(refresh->displaced->met);
		free(refresh->displaced->now);
		pfs_crawl_look_free(refresh->displaced->another);
		free(refresh->displaced);
		refresh->displaced = next;
	}
	free(refresh->displaced_inos.chains);
	for (size_t i = 0; i < refresh->n_moves; i++) {
		free(refresh->moves[i].from);
		free(refresh->moves[i].to);
	}
	free(refresh->moves);
	pfs_refresh_forget_sought(refresh);
	free((void *)refresh->sought);
}
