/* SPDX-License-Identifier: MIT */
/* Loading: the store's records become the image.
 *
 * Directories come first, by one thread (their primes are the small ones), so that every parent of a
 * file can be looked up; then two threads scan half of the files each.  Records know their slots, so
 * the threads write to different places.  Then one fills the map of primes while the other makes the
 * index of names: entries are counted out by parent and sorted by hash within a parent. */
#include "fs/tree/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"

#define DIRECTORY_PRIMES_END (UINT64_C(1) << 32)

struct loader {
	struct pfs_tree *tree;
	pthread_mutex_t rare_lock;
	struct pfs_store_totals totals;
};

/* One thread's part of the scan. */
struct part {
	struct loader *loader;
	uint64_t first, end; /* primes */
	struct pfs_name_region region;
	uint64_t parent_prime; /* the last one looked up */
	uint32_t parent_slot;
	uint64_t nodes;
	uint64_t *parents; /* directories: parent's prime by number of arrival; else NULL */
	uint32_t *slots;   /* their slots */
	size_t capacity, slots_capacity;
	int error;
};

static int damaged(uint64_t prime, const char *what)
{
	pfs_error("damaged store: node %" PRIu64 " %s; run primefs check", prime, what);
	return -EUCLEAN;
}

static int set_rare(struct loader *loader, uint32_t slot, const struct pfs_node_record *node)
{
	struct pfs_rare_values *values;
	char *target = NULL;

	if (node->target) {
		target = malloc(node->target_len + 1);
		if (!target)
			return -ENOMEM;
		memcpy(target, node->target, node->target_len);
		target[node->target_len] = 0;
	}
	if (pfs_rare_get(loader->tree->image.rare, &values, slot)) {
		free(target);
		return -ENOMEM;
	}
	values->rdev = node->rdev;
	values->target = target;
	values->target_len = (uint32_t)node->target_len;
	loader->tree->image.state[slot] |= PFS_SLOT_RARE;
	return 0;
}

/* Times outside the columns' range, targets and device numbers share one table. */
static int set_rarely_present(struct loader *loader, uint32_t slot, const struct pfs_node_record *node)
{
	struct pfs_image *image = &loader->tree->image;
	PFS_LOCKED(&loader->rare_lock);

	if (node->target || node->rdev)
		PFS_TRY(set_rare(loader, slot, node));
	PFS_TRY(pfs_image_set_time(loader->tree, image->atime, slot, node->atime));
	PFS_TRY(pfs_image_set_time(loader->tree, image->mtime, slot, node->mtime));
	return pfs_image_set_time(loader->tree, image->ctime, slot, node->ctime);
}

static int set_times(struct loader *loader, uint32_t slot, const struct pfs_node_record *node)
{
	struct pfs_image *image = &loader->tree->image;

	if (node->target || node->rdev || !pfs_time_fits(node->atime) ||
	    !pfs_time_fits(node->mtime) || !pfs_time_fits(node->ctime))
		return set_rarely_present(loader, slot, node);
	image->atime[slot] = node->atime.sec * 1000000000 + node->atime.nsec;
	image->mtime[slot] = node->mtime.sec * 1000000000 + node->mtime.nsec;
	image->ctime[slot] = node->ctime.sec * 1000000000 + node->ctime.nsec;
	return 0;
}

static int set_row(struct part *part, const struct pfs_node_record *node)
{
	struct pfs_image *image = &part->loader->tree->image;
	uint32_t slot = node->slot;
	uint64_t expected = 0;

	if (slot >= part->loader->totals.end_slot)
		return damaged(node->prime, "has a slot beyond the last");
	if (!__atomic_compare_exchange_n(&image->prime[slot], &expected, node->prime, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return damaged(node->prime, "has another node's slot");
	image->parent[slot] = PFS_NO_SLOT;
	image->mode[slot] = (uint16_t)node->mode;
	image->flags[slot] = (uint8_t)node->flags;
	image->state[slot] = PFS_SLOT_STORED;
	image->uid[slot] = node->uid;
	image->gid[slot] = node->gid;
	image->size[slot] = node->size;
	image->blocks[slot] = node->blocks;
	image->links[slot] = S_ISDIR(node->mode) ? 2 : 1;
	part->nodes++;
	if (node->prime != PFS_ROOT_PRIME) {
		if (node->name_len == 0 || memchr(node->name, '/', node->name_len) ||
		    memchr(node->name, 0, node->name_len))
			return damaged(node->prime, "has no valid name");
		PFS_TRY(pfs_names_add_in(image->names, &part->region, &image->name[slot],
					 node->name, node->name_len));
	}
	return set_times(part->loader, slot, node);
}

static int load_directory(void *arg, const struct pfs_node_record *node)
{
	struct part *part = arg;
	size_t i = part->nodes;

	if (!S_ISDIR(node->mode))
		return damaged(node->prime, "is no directory but has a directory's prime");
	PFS_TRY(pfs_grow(&part->parents, &part->capacity, i + 1, sizeof(*part->parents)));
	PFS_TRY(pfs_grow(&part->slots, &part->slots_capacity, i + 1, sizeof(*part->slots)));
	part->parents[i] = node->parent;
	part->slots[i] = node->slot;
	return set_row(part, node);
}

static int load_other(void *arg, const struct pfs_node_record *node)
{
	struct part *part = arg;
	struct pfs_tree *tree = part->loader->tree;

	if (S_ISDIR(node->mode))
		return damaged(node->prime, "is a directory but has another kind's prime");
	if (node->parent != part->parent_prime) {
		part->parent_prime = node->parent;
		part->parent_slot = pfs_image_slot(tree, node->parent);
	}
	if (part->parent_slot == PFS_NO_SLOT)
		return damaged(node->prime, "has a parent that does not exist");
	PFS_TRY(set_row(part, node));
	tree->image.parent[node->slot] = part->parent_slot;
	return 0;
}

/* Every directory must lead to the root: climbs until a directory that is known to. */
static int check_cycles(struct pfs_tree *tree, const struct part *directories)
{
	struct pfs_image *image = &tree->image;
	uint8_t *known PFS_FREE = calloc(image->end ? image->end : 1, 1);

	if (!known)
		return -ENOMEM;
	known[image->root] = 1;
	for (size_t i = 0; i < directories->nodes; i++) {
		uint32_t slot = directories->slots[i];
		uint64_t steps = 0;

		for (; !known[slot]; slot = image->parent[slot])
			if (steps++ > directories->nodes)
				return damaged(image->prime[slot], "is its own ancestor");
		for (slot = directories->slots[i]; !known[slot]; slot = image->parent[slot])
			known[slot] = 1;
	}
	return 0;
}

static int connect_directories(struct pfs_tree *tree, const struct part *part)
{
	struct pfs_image *image = &tree->image;

	for (size_t i = 0; i < part->nodes; i++)
		pfs_slot_map_insert(image->by_prime, image->prime, part->slots[i]);
	image->root = pfs_image_slot(tree, PFS_ROOT_PRIME);
	if (image->root == PFS_NO_SLOT) {
		pfs_error("damaged store: it has no root; run primefs check");
		return -EUCLEAN;
	}
	for (size_t i = 0; i < part->nodes; i++) {
		uint32_t slot = part->slots[i];
		uint32_t parent;

		if (slot == image->root)
			continue;
		parent = pfs_image_slot(tree, part->parents[i]);
		if (parent == PFS_NO_SLOT)
			return damaged(image->prime[slot], "has a parent that does not exist");
		image->parent[slot] = parent;
		image->links[parent]++;
	}
	return check_cycles(tree, part);
}

static void *scan_others(void *arg)
{
	struct part *part = arg;

	part->error = pfs_store_scan_nodes(part->loader->tree->store, part->first, part->end,
					   load_other, part);
	return NULL;
}

/* Runs fn(arg) in another thread, or, when there is none to be had, in this one. */
static bool start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	if (pthread_create(thread, NULL, fn, arg) == 0)
		return true;
	(void)fn(arg);
	return false;
}

static int load_others(struct loader *loader, uint64_t *nodes)
{
	uint64_t middle = PFS_MAX(loader->totals.middle_prime, DIRECTORY_PRIMES_END);
	uint64_t end = PFS_MAX(loader->totals.end_prime, middle);
	struct part low = {.loader = loader, .first = DIRECTORY_PRIMES_END, .end = middle};
	struct part high = {.loader = loader, .first = middle, .end = end};
	pthread_t thread;
	bool started = start(&thread, scan_others, &high);

	(void)scan_others(&low);
	if (started)
		(void)pthread_join(thread, NULL);
	*nodes += low.nodes + high.nodes;
	return low.error ? low.error : high.error;
}

static void *map_primes(void *arg)
{
	struct pfs_image *image = &((struct pfs_tree *)arg)->image;

	for (uint32_t slot = 0; slot < image->end; slot++)
		if (image->prime[slot] && !S_ISDIR(image->mode[slot]))
			pfs_slot_map_insert(image->by_prime, image->prime, slot);
	for (uint32_t slot = image->end; slot-- > 0;)
		if (!image->prime[slot])
			pfs_image_chain_free((struct pfs_tree *)arg, slot);
	return NULL;
}

/* ---- the index of names ---- */

static int by_key_and_slot(const void *a, const void *b)
{
	const struct pfs_btree_entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static int sort_group(uint64_t *keys, uint32_t *slots, size_t n)
{
	struct pfs_btree_entry few[64], *entries = few;
	struct pfs_btree_entry *many PFS_FREE = NULL;

	if (n > PFS_COUNT(few)) {
		many = malloc(n * sizeof(*many));
		if (!many)
			return -ENOMEM;
		entries = many;
	}
	for (size_t i = 0; i < n; i++)
		entries[i] = (struct pfs_btree_entry){.key = keys[i], .slot = slots[i]};
	qsort(entries, n, sizeof(*entries), by_key_and_slot);
	for (size_t i = 0; i < n; i++) {
		keys[i] = entries[i].key;
		slots[i] = entries[i].slot;
	}
	return 0;
}

static int check_duplicates(const struct pfs_image *image, const uint64_t *keys,
			    const uint32_t *slots, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		for (size_t j = i; j-- > 0 && keys[j] == keys[i];) {
			size_t len, other_len;
			const char *name = pfs_names_get(image->names, image->name[slots[i]], &len);
			const char *other =
				pfs_names_get(image->names, image->name[slots[j]], &other_len);

			if (len == other_len && memcmp(name, other, len) == 0)
				return damaged(image->prime[slots[i]], "has the name of a sibling");
		}
	}
	return 0;
}

/* Counts entries out by parent: starts[p] becomes the end of p's group. */
static void group_by_parent(const struct pfs_tree *tree, uint64_t *keys, uint32_t *slots,
			    uint32_t *starts)
{
	const struct pfs_image *image = &tree->image;
	uint32_t sum = 0;

	for (uint32_t slot = 0; slot < image->end; slot++)
		if (image->prime[slot] && slot != image->root)
			starts[image->parent[slot]]++;
	for (uint32_t slot = 0; slot < image->end; slot++) {
		uint32_t count = starts[slot];

		starts[slot] = sum;
		sum += count;
	}
	for (uint32_t slot = 0; slot < image->end; slot++) {
		size_t len;
		const char *name;
		uint32_t at;

		if (!image->prime[slot] || slot == image->root)
			continue;
		name = pfs_names_get(image->names, image->name[slot], &len);
		at = starts[image->parent[slot]]++;
		keys[at] = pfs_image_key(tree, image->parent[slot], name, len);
		slots[at] = slot;
	}
}

static int index_names(struct pfs_tree *tree)
{
	struct pfs_image *image = &tree->image;
	size_t n = image->nodes - 1;
	uint64_t *keys PFS_FREE = malloc((n + 1) * sizeof(*keys));
	uint32_t *slots PFS_FREE = malloc((n + 1) * sizeof(*slots));
	uint32_t *ends PFS_FREE = calloc((size_t)image->end + 1, sizeof(*ends));
	size_t first = 0;

	if (!keys || !slots || !ends)
		return -ENOMEM;
	group_by_parent(tree, keys, slots, ends);
	for (uint32_t slot = 0; slot < image->end; slot++) {
		size_t count = ends[slot] - first;

		if (count > 1) {
			PFS_TRY(sort_group(keys + first, slots + first, count));
			PFS_TRY(check_duplicates(image, keys + first, slots + first, count));
		}
		first = ends[slot];
	}
	return pfs_btree_load(image->by_name, keys, slots, n);
}

static int prepare(struct loader *loader)
{
	struct pfs_tree *tree = loader->tree;

	PFS_TRY(pfs_store_totals(tree->store, &loader->totals));
	if (loader->totals.end_slot > PFS_SLOT_MAX || loader->totals.nodes > PFS_SLOT_MAX) {
		pfs_error("damaged store: its nodes' slots are out of range; run primefs check");
		return -EUCLEAN;
	}
	tree->image.end = (uint32_t)loader->totals.end_slot;
	PFS_TRY(pfs_image_grow(tree, tree->image.end));
	return pfs_slot_map_reserve(tree->image.by_prime, tree->image.prime,
				    loader->totals.nodes + loader->totals.nodes / 16);
}

int pfs_load(struct pfs_tree *tree)
{
	struct loader loader = {.tree = tree, .rare_lock = PTHREAD_MUTEX_INITIALIZER};
	struct part directories = {.loader = &loader, .end = DIRECTORY_PRIMES_END};
	uint64_t nodes;
	pthread_t thread;
	bool started;
	int error = prepare(&loader);

	if (!error)
		error = pfs_store_scan_nodes(tree->store, 0, DIRECTORY_PRIMES_END, load_directory,
					     &directories);
	if (!error)
		error = connect_directories(tree, &directories);
	nodes = directories.nodes;
	free(directories.parents);
	free(directories.slots);
	PFS_TRY(error);
	PFS_TRY(load_others(&loader, &nodes));
	if (nodes > PFS_SLOT_MAX)
		return -EUCLEAN;
	tree->image.nodes = (uint32_t)nodes;
	tree->image.directories = (uint32_t)directories.nodes;
	started = start(&thread, map_primes, tree);
	error = index_names(tree);
	if (started)
		(void)pthread_join(thread, NULL);
	return error;
}
