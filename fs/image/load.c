/* SPDX-License-Identifier: MIT */
/* Loading: the store's records become the image.
 *
 * Directories come first (their primes are the small ones), so that every parent of a file can be
 * looked up; then all others.  Each time as many threads as there are processors scan a range of
 * primes after the other.  Records know their slots, so the threads write to different places. Then
 * they share the slots, for the map of primes, and for the index of names (load_index.c). */
#include "fs/image/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fs/image/image.h"
#include "fs/image/imagefile.h"
#include "fs/image/names.h"
#include "fs/image/rare_values.h"
#include "fs/image/slotmap.h"
#include "fs/tree/tree_impl.h"

#define DIRECTORY_PRIMES_END (UINT64_C(1) << 32)
#define PARTS_A_THREAD	     4u /* ranges of primes are not equally full */
#define PART_NODES	     4096u /* fewer are not worth a range of their own */
#define GRAIN		     (8u << 10) /* slots that a thread takes at once */

struct loader {
	struct pfs_tree *tree;
	struct pfs_pool *pool;
	pthread_mutex_t rare_lock;
	struct pfs_store_totals totals;
	uint64_t handed_out[2]; /* by enum pfs_prime_kind: primes are below */
	struct pfs_slot_map *directories; /* by prime */
	uint32_t *hashes;	/* by slot: of names */
	uint8_t *known;		/* by slot: directories that lead to the root */
};

/* A range of primes, which one thread scans. */
struct part {
	struct loader *loader;
	enum pfs_prime_kind kind;
	uint64_t first, end; /* primes */
	uint64_t handed_out; /* end of the valid ones */
	struct pfs_name_region region;
	uint64_t parent_prime; /* the last one looked up */
	uint32_t parent_slot;
	uint64_t nodes;
	uint64_t *parents; /* directories: parent's prime by number of arrival; else NULL */
	uint32_t *slots;   /* their slots */
	size_t capacity, slots_capacity;
	bool has_later_parents; /* a directory's parent does not lie before it */
	int error;
};

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
	pfs_rare_set_target(loader->tree->image.rare, values, target, (uint32_t)node->target_len);
	loader->tree->image.state[slot] |= PFS_SLOT_RARE;
	return 0;
}

/* Times outside the columns' range, targets and device numbers share one table. */
static int set_rarely_present(struct loader *loader, uint32_t slot,
			      const struct pfs_node_record *node)
{
	struct pfs_image *image = &loader->tree->image;
	PFS_LOCKED(&loader->rare_lock);

	if (node->target || node->rdev)
		PFS_TRY(set_rare(loader, slot, node));
	PFS_TRY(pfs_image_load_time(loader->tree, image->atime, slot, node->atime));
	PFS_TRY(pfs_image_load_time(loader->tree, image->mtime, slot, node->mtime));
	return pfs_image_load_time(loader->tree, image->ctime, slot, node->ctime);
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
	struct pfs_tree *tree = part->loader->tree;
	struct pfs_image *image = &tree->image;
	uint32_t slot = node->slot;
	uint64_t expected = 0;

	if (node->prime >= part->handed_out)
		return pfs_load_damaged(tree, node->prime,
					"has a number that was never handed out");
	if (slot >= image->end)
		return pfs_load_damaged(tree, node->prime, "has a slot out of range");
	if (!__atomic_compare_exchange_n(&image->prime[slot], &expected, node->prime, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return pfs_load_damaged(tree, node->prime, "has another node's slot");
	image->parent[slot] = PFS_NO_SLOT;
	image->mode[slot] = (uint16_t)node->mode;
	if (node->flags)
		image->flags[slot] = (uint8_t)node->flags;
	image->state[slot] = PFS_SLOT_STORED;
	pfs_image_load_numbers(image, slot, node);
	image->links[slot] = S_ISDIR(node->mode) ? 2 : 1;
	part->nodes++;
	if (node->prime != PFS_ROOT_PRIME) {
		part->loader->hashes[slot] =
			pfs_image_hash(tree, node->name, node->name_len);
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
		return pfs_load_damaged(part->loader->tree, node->prime,
					"is no directory but has a directory's prime");
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
		return pfs_load_damaged(tree, node->prime,
					"is a directory but has another kind's prime");
	if (node->parent != part->parent_prime) {
		part->parent_prime = node->parent;
		part->parent_slot = pfs_slot_map_find(part->loader->directories, tree->image.prime,
						      node->parent);
	}
	if (part->parent_slot == PFS_NO_SLOT)
		return pfs_load_damaged(tree, node->prime, "has a parent that does not exist");
	PFS_TRY(set_row(part, node));
	tree->image.parent[node->slot] = part->parent_slot;
	return 0;
}

static int scan_part(struct part *part)
{
	return pfs_store_scan_nodes(part->loader->tree->store, part->first, part->end,
				    part->kind == PFS_PRIME_DIRECTORY ? load_directory : load_other,
				    part);
}

static int connect_part(struct part *part)
{
	struct pfs_tree *tree = part->loader->tree;
	struct pfs_image *image = &tree->image;

	for (size_t i = 0; i < part->nodes; i++) {
		uint32_t slot = part->slots[i];
		uint32_t parent;

		if (slot == image->root)
			continue;
		parent = pfs_slot_map_find(part->loader->directories, image->prime,
					   part->parents[i]);
		if (parent == PFS_NO_SLOT)
			return pfs_load_damaged(tree, image->prime[slot],
						"has a parent that does not exist");
		image->parent[slot] = parent;
		(void)__atomic_fetch_add(&image->links[parent], 1, __ATOMIC_RELAXED);
		part->has_later_parents |= parent >= slot;
	}
	return 0;
}

/* Every directory must lead to the root: climbs until one that is known to. A circle has a parent
 * that does not lie before its child, so it is enough to climb from there. */
static int check_part(struct part *part)
{
	struct pfs_tree *tree = part->loader->tree;
	const struct pfs_image *image = &tree->image;
	uint8_t *known = part->loader->known;

	for (size_t i = 0; i < part->nodes; i++) {
		uint32_t first = part->slots[i], slot;
		uint64_t steps = 0;

		if (first == image->root || image->parent[first] < first)
			continue;
		for (slot = first; !__atomic_load_n(&known[slot], __ATOMIC_RELAXED);
		     slot = image->parent[slot])
			if (steps++ > image->directories)
				return pfs_load_damaged(tree, image->prime[slot],
							"is its own ancestor");
		for (; first != slot; first = image->parent[first])
			__atomic_store_n(&known[first], 1, __ATOMIC_RELAXED);
	}
	return 0;
}

/* ---- ranges of primes ---- */

struct job {
	struct part *parts;
	int (*work)(struct part *part);
};

static void work_on_parts(void *context, size_t from, size_t to)
{
	const struct job *job = context;

	for (size_t i = from; i < to; i++)
		job->parts[i].error = job->work(&job->parts[i]);
}

static int run_parts(struct pfs_pool *pool, struct part *parts, size_t n,
		     int (*work)(struct part *part))
{
	struct job job = {parts, work};

	pfs_pool_run(pool, n, 1, work_on_parts, &job);
	for (size_t i = 0; i < n; i++)
		PFS_TRY(parts[i].error);
	return 0;
}

/* Scans the primes from `first` on in ranges that share what is below `end`, but for the last,
 * which has all others of the kind, too.  The parts are the caller's to release. */
static int scan_all(struct loader *loader, struct part **parts, size_t *n, uint64_t first,
		    uint64_t end, enum pfs_prime_kind kind)
{
	uint64_t wanted = PFS_MIN(loader->totals.nodes / PART_NODES + 1,
				  (uint64_t)pfs_pool_threads(loader->pool) * PARTS_A_THREAD);
	uint64_t step = pfs_div_round_up(PFS_MAX(end, first + 1) - first, wanted);

	*parts = calloc(wanted, sizeof(**parts));
	if (!*parts)
		return -ENOMEM;
	for (; *n < wanted; ++*n)
		(*parts)[*n] = (struct part){
			.loader = loader,
			.kind = kind,
			.first = first + *n * step,
			.end = *n + 1 < wanted		     ? first + (*n + 1) * step
			       : kind == PFS_PRIME_DIRECTORY ? DIRECTORY_PRIMES_END
							     : (uint64_t)INT64_MAX,
			.handed_out = loader->handed_out[kind],
		};
	PFS_TRY(run_parts(loader->pool, *parts, *n, scan_part));
	for (size_t i = 0; i < *n; i++)
		loader->tree->image.nodes += (uint32_t)(*parts)[i].nodes;
	return 0;
}

static void release_parts(struct part *parts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(parts[i].parents);
		free(parts[i].slots);
	}
	free(parts);
}

static int load_others(struct loader *loader)
{
	struct part *parts = NULL;
	size_t n = 0;
	int error = scan_all(loader, &parts, &n, DIRECTORY_PRIMES_END, loader->totals.end_prime,
			     PFS_PRIME_OTHER);

	release_parts(parts, n);
	return error;
}

/* ---- what finds nodes ---- */

struct filling {
	const struct pfs_image *image;
	struct pfs_slot_map *map;
};

static void fill_map(void *context, size_t from, size_t to)
{
	const struct filling *filling = context;

	pfs_slot_map_fill(filling->map, filling->image->prime, (uint32_t)from, (uint32_t)to);
}

/* Makes a map, which is empty, one of all nodes that have been read. */
static int map_nodes(struct loader *loader, struct pfs_slot_map *map)
{
	const struct pfs_image *image = &loader->tree->image;
	struct filling filling = {image, map};

	PFS_TRY(pfs_slot_map_reserve(map, (uint64_t)image->nodes + image->nodes / 16));
	pfs_pool_run(loader->pool, image->end, GRAIN, fill_map, &filling);
	return 0;
}

static int connect_directories(struct loader *loader, struct part *parts, size_t n)
{
	struct pfs_image *image = &loader->tree->image;
	bool has_later_parents = false;

	image->directories = image->nodes;
	PFS_TRY(pfs_slot_map_create(&loader->directories));
	PFS_TRY(map_nodes(loader, loader->directories));
	image->root = pfs_slot_map_find(loader->directories, image->prime, PFS_ROOT_PRIME);
	if (image->root == PFS_NO_SLOT) {
		pfs_info("%s: damaged: it has no root; run primefs check",
			 pfs_store_path(loader->tree->store));
		return -EUCLEAN;
	}
	PFS_TRY(run_parts(loader->pool, parts, n, connect_part));
	for (size_t i = 0; i < n; i++)
		has_later_parents |= parts[i].has_later_parents;
	if (!has_later_parents)
		return 0;
	loader->known = calloc(image->end, 1);
	if (!loader->known)
		return -ENOMEM;
	loader->known[image->root] = 1;
	return run_parts(loader->pool, parts, n, check_part);
}

static int load_directories(struct loader *loader)
{
	struct part *parts = NULL;
	size_t n = 0;
	int error = scan_all(loader, &parts, &n, 0, loader->handed_out[PFS_PRIME_DIRECTORY],
			     PFS_PRIME_DIRECTORY);

	if (!error)
		error = connect_directories(loader, parts, n);
	release_parts(parts, n);
	return error;
}

/* The first of the free is the one that lies first. */
static void chain_unused(struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;

	if (image->nodes == image->end)
		return;
	for (uint32_t slot = image->end; slot-- > 0;)
		if (!image->prime[slot])
			pfs_image_chain_free(tree, slot);
}

/* A store never used more slots than it handed out numbers; a damaged one may say what it likes,
 * and is not believed before it costs memory. */
static int bound_slots(struct loader *loader)
{
	uint64_t *directories = &loader->handed_out[PFS_PRIME_DIRECTORY];
	uint64_t *others = &loader->handed_out[PFS_PRIME_OTHER];
	uint64_t most;

	PFS_TRY(pfs_store_reserved(loader->tree->store, directories, PFS_PRIME_DIRECTORY));
	PFS_TRY(pfs_store_reserved(loader->tree->store, others, PFS_PRIME_OTHER));
	most = PFS_MIN(*directories + (*others - DIRECTORY_PRIMES_END), PFS_SLOT_MAX);
	loader->tree->image.end = (uint32_t)PFS_MIN(loader->totals.end_slot, most);
	return 0;
}

static int prepare(struct loader *loader)
{
	struct pfs_image *image = &loader->tree->image;

	PFS_TRY(pfs_store_totals(loader->tree->store, &loader->totals));
	PFS_TRY(bound_slots(loader));
	PFS_TRY(pfs_image_grow(loader->tree, image->end));
	pfs_image_expect_filled(image);
	loader->hashes = malloc(((size_t)image->end + 1) * sizeof(*loader->hashes));
	return loader->hashes ? 0 : -ENOMEM;
}

static int load(struct loader *loader)
{
	struct pfs_load_index index = {.tree = loader->tree,
				       .index = loader->tree->image.by_name};
	struct pfs_image *image = &loader->tree->image;

	PFS_TRY(prepare(loader));
	PFS_TRY(pfs_pool_open(&loader->pool, loader->totals.nodes < PART_NODES ? 1 : 0, 0));
	PFS_TRY(load_directories(loader));
	PFS_TRY(load_others(loader));
	index.hashes = loader->hashes;
	index.pool = loader->pool;
	PFS_TRY(map_nodes(loader, image->by_prime));
	PFS_TRY(pfs_load_index(&index));
	pfs_pool_run(loader->pool, pfs_div_round_up(image->end, 64), GRAIN / 64, pfs_image_loaded,
		     loader->tree);
	chain_unused(loader->tree);
	return 0;
}

static int load_rows(struct pfs_tree *tree)
{
	struct loader loader = {.tree = tree, .rare_lock = PTHREAD_MUTEX_INITIALIZER};
	int error = load(&loader);

	pfs_pool_close(loader.pool);
	pfs_slot_map_destroy(loader.directories);
	free(loader.hashes);
	free(loader.known);
	return error;
}

int pfs_load(struct pfs_tree *tree)
{
	int error = tree->options.no_image_file ? -ENOENT : pfs_imagefile_load(tree, load_rows);

	return error == -ENOENT ? load_rows(tree) : error;
}
