/* SPDX-License-Identifier: MIT */
#include "fs/content/hardlink.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/order.h"
#include "fs/image/image.h"
#include "fs/tree/tree_impl.h"

struct name {
	uint64_t prime;
	int64_t link;
	/* the node's slot when the tree was opened, which it has as long as it lives */
	uint32_t slot;
};

struct group {
	int64_t link;
	uint32_t names;
};

struct pfs_hard_links {
	/* in order of primes, as the store had them at the opening; they never change */
	struct name *names;
	size_t n, capacity;
	struct group *groups; /* in order of `link` */
	size_t n_groups;
	bool is_frozen; /* the names belong to the live tree */
};

static int compare_links(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return (x->link > y->link) - (x->link < y->link);
}

static int compare_primes(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return (x->prime > y->prime) - (x->prime < y->prime);
}

static int take(void *arg, uint64_t prime, int64_t link)
{
	struct pfs_tree *tree = arg;
	struct pfs_hard_links *links = tree->hard_links;
	uint32_t slot = pfs_image_slot(tree, prime);

	if (slot == PFS_NO_SLOT || !(tree->image.flags[slot] & PFS_NODE_NAMED))
		return 0;
	PFS_TRY(pfs_grow(&links->names, &links->capacity, links->n + 1, sizeof(*links->names)));
	links->names[links->n++] = (struct name){.prime = prime, .link = link, .slot = slot};
	return 0;
}

static int count_names(struct pfs_hard_links *links)
{
	struct group *groups = calloc(links->n + 1, sizeof(*groups));
	size_t i, n = 0;

	links->groups = groups;
	if (!groups)
		return -ENOMEM;
	for (i = 0; i < links->n; i++)
		groups[i] = (struct group){.link = links->names[i].link, .names = 1};
	qsort(groups, links->n, sizeof(*groups), compare_links);
	for (i = 0; i < links->n; i++) {
		if (n && groups[n - 1].link == groups[i].link)
			groups[n - 1].names++;
		else
			groups[n++] = groups[i];
	}
	links->n_groups = n;
	return 0;
}

int pfs_hard_links_create(struct pfs_tree *tree)
{
	tree->hard_links = calloc(1, sizeof(*tree->hard_links));
	if (!tree->hard_links)
		return -ENOMEM;
	PFS_TRY(pfs_store_scan_hard_links(tree->store, take, tree));
	return count_names(tree->hard_links);
}

void pfs_hard_links_destroy(struct pfs_tree *tree)
{
	if (!tree->hard_links)
		return;
	if (!tree->hard_links->is_frozen)
		free(tree->hard_links->names);
	free(tree->hard_links->groups);
	free(tree->hard_links);
	tree->hard_links = NULL;
}

static const struct name *find(const struct pfs_tree *tree, uint32_t slot)
{
	const struct pfs_hard_links *links = tree->hard_links;
	struct name key = {.prime = tree->image.prime[slot]};

	if (!links || !links->n || !(tree->image.flags[slot] & PFS_NODE_NAMED))
		return NULL;
	return bsearch(&key, links->names, links->n, sizeof(key), compare_primes);
}

/* Returns true if the node still exists and is still a name of the file. */
static bool is_in(const struct pfs_tree *tree, const struct name *name)
{
	const struct pfs_image *image = &tree->image;

	return image->prime[name->slot] == name->prime && image->flags[name->slot] & PFS_NODE_NAMED;
}

static struct group *group_of(const struct pfs_tree *tree, const struct name *name)
{
	struct group key = {.link = name->link};

	return bsearch(&key, tree->hard_links->groups, tree->hard_links->n_groups, sizeof(key),
		       compare_links);
}

int64_t pfs_hard_link_of(const struct pfs_tree *tree, uint32_t slot)
{
	const struct name *name = find(tree, slot);

	return name ? name->link : PFS_NO_LINK;
}

uint32_t pfs_hard_link_names(const struct pfs_tree *tree, uint32_t slot, const uint32_t *seen)
{
	const struct name *name = find(tree, slot);
	const struct group *group = name ? group_of(tree, name) : NULL;

	if (!group)
		return tree->image.links[slot];
	return seen ? seen[group - tree->hard_links->groups] : group->names;
}

int pfs_hard_links_seen(const struct pfs_tree *tree, uint32_t **seen,
			bool (*sees)(const struct pfs_visible *visible, const struct pfs_tree *tree,
				     uint32_t slot),
			const struct pfs_visible *visible)
{
	const struct pfs_hard_links *links = tree->hard_links;

	*seen = calloc(links->n_groups + 1, sizeof(**seen));
	if (!*seen)
		return -ENOMEM;
	for (size_t i = 0; i < links->n; i++) {
		const struct name *name = &links->names[i];

		if (is_in(tree, name) && sees(visible, tree, name->slot))
			(*seen)[group_of(tree, name) - links->groups]++;
	}
	return 0;
}

int pfs_hard_links_freeze(struct pfs_tree *frozen, const struct pfs_tree *live, bool has_flags)
{
	struct pfs_hard_links *links = calloc(1, sizeof(*links));

	frozen->hard_links = links;
	if (!links)
		return -ENOMEM;
	*links = *live->hard_links;
	links->is_frozen = true;
	links->groups = calloc(links->n_groups + 1, sizeof(*links->groups));
	if (!links->groups)
		return -ENOMEM;
	for (size_t i = 0; i < links->n_groups; i++)
		links->groups[i].link = live->hard_links->groups[i].link;
	for (size_t i = 0; has_flags && i < links->n; i++) {
		struct group *group =
			is_in(frozen, &links->names[i]) ? group_of(frozen, &links->names[i]) : NULL;

		if (group)
			group->names++;
	}
	return 0;
}

void pfs_hard_link_leave(struct pfs_tree *tree, uint32_t slot)
{
	const struct name *name = find(tree, slot);
	struct group *group = name ? group_of(tree, name) : NULL;

	if (tree->image.flags[slot] & PFS_NODE_NAMED)
		pfs_image_set_flags(tree, slot, PFS_NODE_NAMED, 0);
	if (group)
		group->names--;
}

int pfs_hard_link_slots(const struct pfs_tree *tree, uint32_t **slots, size_t *n, int64_t low,
			int64_t high, bool inside)
{
	const struct pfs_hard_links *links = tree->hard_links;
	size_t i, count = 0;

	*n = 0;
	*slots = malloc((links->n + 1) * sizeof(**slots));
	if (!*slots)
		return -ENOMEM;
	for (i = 0; i < links->n; i++) {
		const struct name *name = &links->names[i];

		if (is_in(tree, name) && (name->link >= low && name->link <= high) == inside)
			(*slots)[count++] = name->slot;
	}
	qsort(*slots, count, sizeof(**slots), pfs_compare_u32);
	*n = count;
	return 0;
}
