/* SPDX-License-Identifier: MIT */
#include "fs/tree/directories.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/tree/tree_impl.h"

#define TYPICAL_PATH  256u /* bytes of a directory's path with its head: so much room is kept */
#define ROOM_MIN      ((size_t)1 << 16)
#define SHARE	      32u /* of a quarter of the machine's memory */
#define BUCKET_LOAD   3u  /* paths of 8 that fit */

struct pfs_directory_tables {
	pthread_mutex_t lock;
	struct pfs_directories *current; /* protected by lock, as its references are */
};

int pfs_directories_create(struct pfs_tree *tree)
{
	tree->directories = calloc(1, sizeof(*tree->directories));
	if (!tree->directories)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->directories->lock, NULL);
	return 0;
}

static void free_table(struct pfs_directories *table)
{
	pfs_reserve_close(&table->memory);
	free(table);
}

static void unref(struct pfs_directories *table)
{
	if (table && --table->references == 0)
		free_table(table);
}

void pfs_directories_destroy(struct pfs_tree *tree)
{
	if (!tree->directories)
		return;
	unref(tree->directories->current);
	(void)pthread_mutex_destroy(&tree->directories->lock);
	free(tree->directories);
	tree->directories = NULL;
}

/* Memory that is not touched is not taken. */
static struct pfs_directories *make_table(const struct pfs_tree *tree)
{
	size_t n = tree->image.directories, most = pfs_quarter_of_memory() / SHARE, size;
	struct pfs_directories *table = calloc(1, sizeof(*table));
	uint64_t n_buckets = 64;

	if (!table)
		return NULL;
	while (n_buckets * BUCKET_LOAD < n && n_buckets * sizeof(*table->buckets) < most / 2)
		n_buckets *= 2;
	table->paths_size = PFS_MIN(PFS_MAX(n * TYPICAL_PATH, ROOM_MIN), PFS_MAX(most, ROOM_MIN));
	table->mask = n_buckets - 1;
	table->access = tree->image.access;
	table->references = 1;
	atomic_init(&table->paths_used, sizeof(uint64_t)); /* place 0 is none */
	size = n_buckets * sizeof(*table->buckets) + table->paths_size;
	if (pfs_reserve_whole(&table->memory, size)) {
		free_table(table);
		return NULL;
	}
	pfs_expect_filled(table->memory.base, size);
	table->buckets = table->memory.base;
	table->paths = (char *)(table->buckets + n_buckets);
	return table;
}

struct pfs_directories *pfs_directories_take(struct pfs_tree *tree)
{
	struct pfs_directory_tables *tables = tree->directories;
	struct pfs_directories *table;

	PFS_LOCKED(&tables->lock);
	table = tables->current;
	if (!table || table->access != tree->image.access ||
	    atomic_load(&table->paths_used) > table->paths_size) {
		unref(table);
		table = tables->current = make_table(tree);
	}
	if (table)
		table->references++;
	return table;
}

void pfs_directories_return(struct pfs_tree *tree, struct pfs_directories *table)
{
	PFS_LOCKED(&tree->directories->lock);
	unref(table);
}

/* Returns true if the bucket has the hash, or no room for it. */
static bool is_taken(struct pfs_directory_bucket *bucket, uint64_t hash)
{
	for (size_t i = 0; i < PFS_COUNT(bucket->cells); i++) {
		uint64_t cell = atomic_load_explicit(&bucket->cells[i], memory_order_relaxed);

		if (cell == 0)
			return false;
		if (cell >> 32 == hash >> 32)
			return true;
	}
	return true;
}

void pfs_directory_add(struct pfs_directories *table, uint64_t hash,
		       const struct pfs_directory_path *path, const char *bytes)
{
	struct pfs_directory_bucket *bucket = pfs_directory_bucket(table, hash);
	size_t size = pfs_div_round_up(sizeof(*path) + path->len, 8) * 8, place;
	struct pfs_directory_path *copy;

	if (path->len > PFS_DIRECTORY_PATH_MAX || is_taken(bucket, hash))
		return;
	place = atomic_fetch_add(&table->paths_used, size);
	if (place + size > table->paths_size)
		return;
	copy = (struct pfs_directory_path *)(table->paths + place);
	*copy = *path;
	memcpy(copy->bytes, bytes, path->len);
	for (size_t i = 0; i < PFS_COUNT(bucket->cells); i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&bucket->cells[i], &none,
						   (hash >> 32) << 32 | place / 8))
			return;
	}
}
