/* SPDX-License-Identifier: MIT */
/* What a watch cannot read of its source: people are told of it once, and in as_of while it lasts.
 * The kernel does not say of everything when it can be read again, so each refresh looks. */
#include "tools/refresh/sourcewatch_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fs/content/follow.h"

#define LOGGED_AT_ONCE 16 /* lines; how many more there are is another */

static void free_node(struct pfs_unread_node *node)
{
	free(node->path);
	free(node->why);
}

void pfs_sourcewatch_free_unread(struct pfs_unread *unread)
{
	while (unread->n)
		free_node(&unread->list[--unread->n]);
	free(unread->list);
	*unread = (struct pfs_unread){.n = 0};
}

static int add(struct pfs_unread *unread, uint64_t ino, const char *path, const char *why)
{
	struct pfs_unread_node node = {.ino = ino};

	if (unread->n == PFS_UNREAD_MAX) {
		unread->n_more++;
		return 0;
	}
	PFS_TRY(pfs_grow(&unread->list, &unread->capacity, unread->n + 1, sizeof(*unread->list)));
	node.path = strdup(path);
	node.why = strdup(why);
	if (!node.path || !node.why) {
		free_node(&node);
		return -ENOMEM;
	}
	unread->list[unread->n++] = node;
	return 0;
}

static const struct pfs_unread_node *find(const struct pfs_unread *unread,
					  const struct pfs_unread_node *node)
{
	for (size_t i = 0; i < unread->n; i++)
		if (node->ino ? unread->list[i].ino == node->ino
			      : !strcmp(unread->list[i].path, node->path))
			return &unread->list[i];
	return NULL;
}

int pfs_sourcewatch_note_unread(struct pfs_sourcewatch *watch, const char *path, const char *why)
{
	uint64_t ino;

	if (pfs_tree_resolve(watch->tree, &ino, path))
		ino = 0;
	return find(&watch->found, &(struct pfs_unread_node){ino, (char *)path, NULL})
		       ? 0
		       : add(&watch->found, ino, path, why);
}

static void log_new(const struct pfs_sourcewatch *watch)
{
	size_t n = 0;

	for (size_t i = 0; i < watch->found.n; i++) {
		const struct pfs_unread_node *node = &watch->found.list[i];
		const struct pfs_unread_node *before = find(&watch->unread, node);

		if (before && !strcmp(before->why, node->why))
			continue;
		if (++n <= LOGGED_AT_ONCE)
			pfs_warning("%s: %s is not followed: %s", watch->options.store, node->path,
				    node->why);
	}
	if (n > LOGGED_AT_ONCE)
		pfs_warning("%s: so are %zu more; .query/as_of tells of them", watch->options.store,
			    n - LOGGED_AT_ONCE);
}

/* Lines that would not fit are counted instead. */
static void publish(const struct pfs_sourcewatch *watch)
{
	const struct pfs_unread *unread = &watch->unread;
	char text[PFS_FOLLOW_UNREAD] = "";
	size_t len = 0, i;

	for (i = 0; i < unread->n; i++) {
		size_t room = sizeof(text) - 64 - len;
		int n = snprintf(text + len, room, "unread %s: %s\n", unread->list[i].path,
				 unread->list[i].why);

		if (n < 0 || (size_t)n >= room)
			break;
		len += (size_t)n;
	}
	text[len] = 0;
	if (i < unread->n || unread->n_more)
		(void)snprintf(text + len, sizeof(text) - len, "unread, and %zu more\n",
			       unread->n - i + unread->n_more);
	pfs_follow_set_unread(watch->tree, text);
}

void pfs_sourcewatch_take_unread(struct pfs_sourcewatch *watch, bool all, int error)
{
	struct pfs_unread *found = &watch->found, *unread = &watch->unread;

	if (error) {
		pfs_sourcewatch_free_unread(found);
		return;
	}
	for (size_t i = 0; i < found->n; i++) /* some have been made since they were told */
		if (!found->list[i].ino &&
		    pfs_tree_resolve(watch->tree, &found->list[i].ino, found->list[i].path))
			found->list[i].ino = 0;
	log_new(watch);
	for (size_t i = 0; i < unread->n && !all; i++) { /* of those with a node it has asked */
		const struct pfs_unread_node *node = &unread->list[i];

		if (!node->ino && !find(found, node) && add(found, 0, node->path, node->why))
			found->n_more++;
	}
	found->n_more += all ? 0 : unread->n_more;
	pfs_sourcewatch_free_unread(unread);
	*unread = *found;
	*found = (struct pfs_unread){.n = 0};
	publish(watch);
}
