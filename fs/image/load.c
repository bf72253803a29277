/* SPDX-License-Identifier: MIT */
/* Loading: the store's records become the image.
 *
 * Directories come first (their primes are the small ones), so that every parent of a file can be
 * looked up; then all others.  Each time as many threads as there are processors scan a range of
 * primes after the other.  Records know their slots, so the threads write to different places. Then
 * one fills the map of primes while the others make the index of names (load_index.c). */
#include "fs/image/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "fs/image/image.h"
#include "fs/image/imagefile.h"
#include "fs/image/names.h"
#include "fs/image/rare_values.h"
#include "fs/image/slotmap.h"
#include "fs/tree/tree_impl.h"

#define DIRECTORY_PRIMES_END (UINT64_C(1) << 32)
#define PREFETCH	     16u
#define PARTS_A_THREAD	     4u /* ranges of primes are not equally full */
#define PART_NODES	     4096u /* fewer are not worth a range of their own */

struct loader {
	struct pfs_tree *tree;
	struct pfs_pool *pool;
	pthread_mutex_t rare_lock;
	struct pfs_store_totals totals;
	uint64_t handed_out[2]; /* by enum pfs_prime_kind: primes are below */
	uint32_t *hashes;	/* by slot: of names */
	int error;
};

/* A range of primes, which one thread scans. */
struct part {
	struct loader *loader;
	uint64_t first, end; /* primes */
	uint64_t handed_out; /* end of the valid ones */
	struct pfs_name_region region;
	uint64_t parent_prime; /* the last one looked up */
	uint32_t parent_slot;
	uint64_t nodes;
	uint64_t *parents; /* directories: parent's prime by number of arrival; else NULL */
	uint32_t *slots;   /* their slots */
	size_t capacity, slots_capacity;
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
		part->parent_slot = pfs_image_slot(tree, node->parent);
	}
	if (part->parent_slot == PFS_NO_SLOT)
		return pfs_load_damaged(tree, node->prime, "has a parent that does not exist");
	PFS_TRY(set_row(part, node));
	tree->image.parent[node->slot] = part->parent_slot;
	return 0;
}

/* Every directory must lead to the root: climbs until a directory that is known to. */
static int check_circles(struct pfs_tree *tree, const struct part *part, uint8_t *known)
{
	const struct pfs_image *image = &tree->image;

	for (size_t i = 0; i < part->nodes; i++) {
		uint32_t slot = part->slots[i];
		uint64_t steps = 0;

		for (; !known[slot]; slot = image->parent[slot])
			if (steps++ > image->directories)
				return pfs_load_damaged(tree, image->prime[slot],
							"is its own ancestor");
		for (slot = part->slots[i]; !known[slot]; slot = image->parent[slot])
			known[slot] = 1;
	}
	return 0;
}

static int map_directories(struct pfs_tree *tree, const struct part *part)
{
	struct pfs_image *image = &tree->image;

	for (size_t i = 0; i < part->nodes; i++) {
		PFS_TRY(pfs_slot_map_reserve(image->by_prime, ++image->directories));
		pfs_slot_map_insert(image->by_prime, image->prime, part->slots[i]);
	}
	return 0;
}

static int connect_directories(struct pfs_tree *tree, const struct part *part)
{
	struct pfs_image *image = &tree->image;

	for (size_t i = 0; i < part->nodes; i++) {
		uint32_t slot = part->slots[i];
		uint32_t parent;

		if (slot == image->root)
			continue;
		parent = pfs_image_slot(tree, part->parents[i]);
		if (parent == PFS_NO_SLOT)
			return pfs_load_damaged(tree, image->prime[slot],
						"has a parent that does not exist");
		image->parent[slot] = parent;
		image->links[parent]++;
	}
	return 0;
}

static int connect_all(struct pfs_tree *tree, const struct part *parts, size_t n)
{
	struct pfs_image *image = &tree->image;
	uint8_t *known PFS_FREE = calloc(image->end ? image->end : 1, 1);

	if (!known)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		PFS_TRY(map_directories(tree, &parts[i]));
	image->root = pfs_image_slot(tree, PFS_ROOT_PRIME);
	if (image->root == PFS_NO_SLOT) {
		pfs_info("%s: damaged: it has no root; run primefs check",
			  pfs_store_path(tree->store));
		return -EUCLEAN;
	}
	for (size_t i = 0; i < n; i++)
		PFS_TRY(connect_directories(tree, &parts[i]));
	known[image->root] = 1;
	for (size_t i = 0; i < n; i++)
		PFS_TRY(check_circles(tree, &parts[i], known));
	return 0;
}

/* ---- ranges of primes ---- */

struct scan {
	struct part *parts;
	int (*fn)(void *arg, const struct pfs_node_record *node);
};

static void scan_parts(void *context, size_t from, size_t to)
{
	const struct scan *scan = context;

	for (size_t i = from; i < to; i++) {
		struct part *part = &scan->parts[i];

		part->error = pfs_store_scan_nodes(part->loader->tree->store, part->first,
						   part->end, scan->fn, part);
	}
}

/* Scans the primes from `first` on in ranges that share what is below `end`, but for the last,
 * which has all others of the kind, too.  The parts are the caller's to release. */
static int scan_all(struct loader *loader, struct part **parts, size_t *n, uint64_t first,
		    uint64_t end, enum pfs_prime_kind kind)
{
	struct scan scan = {.fn = kind == PFS_PRIME_DIRECTORY ? load_directory : load_other};
	uint64_t wanted = PFS_MIN(loader->totals.nodes / PART_NODES + 1,
				  (uint64_t)pfs_pool_threads(loader->pool) * PARTS_A_THREAD);
	uint64_t step;

	step = pfs_div_round_up(PFS_MAX(end, first + 1) - first, wanted);
	*parts = scan.parts = calloc(wanted, sizeof(**parts));
	if (!scan.parts)
		return -ENOMEM;
	for (; *n < wanted; ++*n)
		scan.parts[*n] = (struct part){
			.loader = loader,
			.first = first + *n * step,
			.end = *n + 1 < wanted		     ? first + (*n + 1) * step
			       : kind == PFS_PRIME_DIRECTORY ? DIRECTORY_PRIMES_END
							     : (uint64_t)INT64_MAX,
			.handed_out = loader->handed_out[kind],
		};
	pfs_pool_run(loader->pool, *n, 1, scan_parts, &scan);
	for (size_t i = 0; i < *n; i++) {
		if (scan.parts[i].error)
			return scan.parts[i].error;
		loader->tree->image.nodes += (uint32_t)scan.parts[i].nodes;
	}
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

static int load_directories(struct loader *loader)
{
	struct part *parts = NULL;
	size_t n = 0;
	int error = scan_all(loader, &parts, &n, 0, loader->handed_out[PFS_PRIME_DIRECTORY],
			     PFS_PRIME_DIRECTORY);

	if (!error)
		error = connect_all(loader->tree, parts, n);
	release_parts(parts, n);
	return error;
}

/* Makes the other nodes known by their primes; puts unused slots among the free. */
static void *map_primes(void *arg)
{
	struct loader *loader = arg;
	struct pfs_image *image = &loader->tree->image;
	uint64_t count = image->directories;

	for (uint32_t slot = 0; slot < image->end; slot++) {
		if (slot + PREFETCH < image->end)
			pfs_slot_map_prefetch(image->by_prime, image->prime[slot + PREFETCH]);
		if (!image->prime[slot] || S_ISDIR(image->mode[slot]))
			continue;
		loader->error = pfs_slot_map_reserve(image->by_prime, ++count);
		if (loader->error)
			return NULL;
		pfs_slot_map_insert(image->by_prime, image->prime, slot);
	}
	for (uint32_t slot = image->end; slot-- > 0;)
		if (!image->prime[slot])
			pfs_image_chain_free(loader->tree, slot);
	return NULL;
}

static void *index_names(void *arg)
{
	struct pfs_load_index *index = arg;

	index->error = pfs_load_index(index);
	return NULL;
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
	uint64_t nodes;

	PFS_TRY(pfs_store_totals(loader->tree->store, &loader->totals));
	PFS_TRY(bound_slots(loader));
	PFS_TRY(pfs_image_grow(loader->tree, image->end));
	pfs_image_expect_filled(image);
	loader->hashes = malloc(((size_t)image->end + 1) * sizeof(*loader->hashes));
	if (!loader->hashes)
		return -ENOMEM;
	nodes = PFS_MIN(loader->totals.nodes, image->end);
	return pfs_slot_map_reserve(image->by_prime, nodes + nodes / 16);
}

/* Calls both functions, at the same time if a thread is to be had. */
static void call_both(void *(*fn)(void *), void *arg, void *(*other_fn)(void *), void *other_arg)
{
	static const struct pfs_thread_kind kind = {"pfs-load", 0, 0};
	pthread_t thread;
	bool started = pfs_thread_start(&thread, &kind, other_fn, other_arg) == 0;

	if (!started)
		(void)other_fn(other_arg);
	(void)fn(arg);
	if (started)
		(void)pthread_join(thread, NULL);
}

static int load(struct loader *loader)
{
	struct pfs_load_index index = {.tree = loader->tree,
				       .index = loader->tree->image.by_name};

	PFS_TRY(prepare(loader));
	PFS_TRY(pfs_pool_open(&loader->pool, loader->totals.nodes < PART_NODES ? 1 : 0, 0));
	PFS_TRY(load_directories(loader));
	PFS_TRY(load_others(loader));
	index.hashes = loader->hashes;
	index.pool = loader->pool;
	call_both(map_primes, loader, index_names, &index);
	pfs_image_loaded(loader->tree);
	return loader->error ? loader->error : index.error;
}

static int load_rows(struct pfs_tree *tree)
{
	struct loader loader = {.tree = tree, .rare_lock = PTHREAD_MUTEX_INITIALIZER};
	int error = load(&loader);

	pfs_pool_close(loader.pool);
	free(loader.hashes);
	return error;
}

int pfs_load(struct pfs_tree *tree)
{
	int error = tree->options.no_image_file ? -ENOENT : pfs_imagefile_load(tree, load_rows);

	return error == -ENOENT ? load_rows(tree) : error;
}
