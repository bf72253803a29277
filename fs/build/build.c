/* SPDX-License-Identifier: MIT */
/* Takes a build from open to commit: makes its file, and puts its nodes in order. */
#include "fs/build/build.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "base/random.h"
#include "fs/build/build_impl.h"
#include "fs/image/image.h"

#define THREADS 2u

/* ---- the file ---- */

/* Returns true if the file belongs to a process that no longer exists. The number of the process is
 * followed by "-" or, from earlier versions, by nothing. */
static bool is_dead(const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);

	return end > text && (*end == '-' || !*end) && pid > 0 && pid <= INT32_MAX &&
	       kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Removes temporary files that imports into the same store left when they died. */
static void remove_stale(const char *store)
{
	const char *slash = strrchr(store, '/'), *base = slash ? slash + 1 : store;
	char *folder PFS_FREE = slash ? strndup(store, (size_t)(slash - store) + 1) : strdup(".");
	DIR *dir PFS_CLOSEDIR = folder ? opendir(folder) : NULL;
	size_t len = strlen(base);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		char *path PFS_FREE = NULL;

		if (strncmp(entry->d_name, base, len) != 0 ||
		    strncmp(entry->d_name + len, ".part-", 6) != 0 ||
		    !is_dead(entry->d_name + len + 6))
			continue;
		/* The process may still run in another container; then it holds the file's
		 * lock. */
		if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
			return;
		if (pfs_store_holder(path) == 0)
			(void)unlink(path);
	}
}

int pfs_build_name_part(char **out, const char *store)
{
	char digits[PFS_RANDOM_SIZE];

	*out = NULL;
	PFS_TRY(pfs_random_digits(digits));
	remove_stale(store);
	if (asprintf(out, "%s.part-%ld-%s", store, (long)getpid(), digits) < 0) {
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int open_new(struct pfs_build *build)
{
	struct pfs_store_options options = {.flags = PFS_STORE_CREATE | PFS_STORE_BULK,
					    .mode = build->options.mode};
	struct stat attr;
	uint32_t root;

	if (lstat(build->path, &attr) == 0)
		return -EEXIST;
	PFS_TRY(pfs_build_name_part(&build->temporary, build->path));
	PFS_TRY(pfs_store_open(&build->store, build->temporary, &options));
	PFS_TRY(pfs_store_begin(build->store));
	PFS_TRY(pfs_build_append(build, &root, 0, "", 0));
	build->state[root] = BUILD_DIRECTORY;
	return 0;
}

static int open_existing(struct pfs_build *build)
{
	struct pfs_store_options options = {.wait_ms = build->options.wait_ms};

	PFS_TRY(pfs_store_open(&build->store, build->path, &options));
	PFS_TRY(pfs_store_begin(build->store));
	return pfs_build_load(build);
}

int pfs_build_open(struct pfs_build **out, const char *store,
		   const struct pfs_build_options *options)
{
	struct pfs_build *build = calloc(1, sizeof(*build));
	int error = 0;

	*out = NULL;
	if (!build)
		return -ENOMEM;
	build->options = *options;
	build->path = strdup(store);
	if (!build->path || getrandom(&build->seed, sizeof(build->seed), 0) < 0)
		error = -ENOMEM;
	if (!error)
		error = options->at ? open_existing(build) : open_new(build);
	if (error)
		pfs_build_close(build);
	else
		*out = build;
	return error;
}

void pfs_build_close(struct pfs_build *build)
{
	if (!build)
		return;
	if (build->store) {
		pfs_store_rollback(build->store);
		(void)pfs_store_close(build->store);
	}
	if (build->temporary)
		(void)unlink(build->temporary);
	pfs_build_free_primes(build);
	free(build->path);
	free(build->temporary);
	free(build->parent);
	free(build->name);
	free(build->state);
	free(build->flags);
	free(build->prime);
	free(build->attr);
	free(build->heap);
	free(build->targets);
	free(build->table);
	free(build->fixed);
	free(build);
}

const char *pfs_build_temporary(const struct pfs_build *build)
{
	return build->temporary;
}

struct pfs_store *pfs_build_store(struct pfs_build *build)
{
	return build->store;
}

int pfs_build_commit(struct pfs_build *build)
{
	struct pfs_store *store = build->store;
	int error;

	PFS_TRY(pfs_store_commit(store, NULL));
	build->store = NULL;
	error = pfs_store_close(store);
	if (error || !build->temporary)
		return error;
	PFS_TRY(pfs_store_publish(build->temporary, build->path));
	free(build->temporary);
	build->temporary = NULL;
	return 0;
}

void pfs_build_report(const struct pfs_build *build, struct pfs_build_report *out)
{
	*out = build->report;
}

/* ---- the nodes, in the order of their primes ---- */

static int compare_targets(const void *a, const void *b)
{
	const struct pfs_build_target *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

struct writer {
	struct pfs_build *build;
	uint32_t *order;     /* all nodes in pre-order */
	uint32_t *slot;	     /* by node; set only for new nodes */
	/* indexes in `order` of new directories except the root, heaviest first */
	uint64_t *directory;
	size_t n_directories, n_files; /* n_files: only nodes without a prime yet */
	uint32_t *nodes;	       /* those to be written, in the order of their primes */
	size_t n;
};

/* Gives primes to all new directories and lists them. This precedes all writing, since a record has
 * the prime of its parent, which may be larger than its own. */
static int list_directories(struct writer *writer)
{
	struct pfs_build *build = writer->build;

	if (build->n_stored == 0) {
		build->prime[0] = PFS_ROOT_PRIME;
		writer->nodes[writer->n++] = 0;
	}
	for (size_t i = 0; i < writer->n_directories; i++) {
		uint32_t node = writer->order[writer->directory[i]];

		PFS_TRY(pfs_build_next_prime(build, &build->prime[node], PFS_PRIME_DIRECTORY,
					     writer->n_directories - i));
		writer->nodes[writer->n++] = node;
	}
	return 0;
}

/* Gives primes to the other new nodes and lists them; those that have a prime come first. */
static int list_files(struct writer *writer)
{
	struct pfs_build *build = writer->build;
	size_t i, left = writer->n_files;

	for (i = 0; i < build->n_fixed; i++) {
		uint32_t node = build->fixed[i].node;

		if ((build->state[node] & BUILD_FIXED) &&
		    build->prime[node] == build->fixed[i].prime)
			writer->nodes[writer->n++] = node;
	}
	for (i = 0; i < build->count; i++) {
		uint32_t node = writer->order[i];

		if (node < build->n_stored ||
		    (build->state[node] & (BUILD_FIXED | BUILD_DIRECTORY)))
			continue;
		PFS_TRY(pfs_build_next_prime(build, &build->prime[node], PFS_PRIME_OTHER, left--));
		writer->nodes[writer->n++] = node;
	}
	return 0;
}

/* ---- directories of an existing store that got new children or attributes ---- */

struct kept_record {
	struct pfs_node_record record;
	char name[PFS_NAME_MAX];
	bool found;
};

static int keep_record(void *arg, const struct pfs_node_record *record)
{
	struct kept_record *kept = arg;

	kept->record = *record;
	(void)memcpy(kept->name, record->name, PFS_MIN(record->name_len, sizeof(kept->name)));
	kept->record.name = kept->name;
	kept->found = S_ISDIR(record->mode);
	return 1;
}

/* Writes the node's record again, with its new flags and times. */
static int rewrite(struct pfs_build *build, uint32_t node)
{
	const struct stat *defaults = &build->options.defaults;
	struct kept_record kept = {.found = false};
	int error = pfs_store_scan_nodes(build->store, build->prime[node], build->prime[node] + 1,
					 keep_record, &kept);

	if (error < 0 || !kept.found)
		return error < 0 ? error : -EUCLEAN;
	kept.record.flags = build->flags[node];
	kept.record.mtime = pfs_time_of(defaults->st_mtim);
	kept.record.ctime = kept.record.mtime;
	PFS_TRY(pfs_store_put_node(build->store, &kept.record));
	return pfs_build_tell(build, node, kept.record.prime);
}

static int rewrite_changed(struct pfs_build *build)
{
	for (size_t node = 0; node < build->n_stored; node++)
		if (build->state[node] & BUILD_CHANGED)
			PFS_TRY(rewrite(build, (uint32_t)node));
	return 0;
}

/* ---- finish ---- */

/* Gives slots to new nodes, and lists new directories. */
static int arrange(struct writer *writer, const uint32_t *weight)
{
	struct pfs_build *build = writer->build;
	struct pfs_store_totals totals = {.end_slot = 0};
	uint64_t slot;
	size_t i, n = 0;

	if (build->n_stored)
		PFS_TRY(pfs_store_totals(build->store, &totals));
	slot = totals.end_slot;
	if (slot + pfs_build_count(build) > PFS_SLOT_MAX)
		return -EOVERFLOW;
	for (i = 0; i < build->count; i++) {
		uint32_t node = writer->order[i];
		uint8_t state = build->state[node];

		if (node < build->n_stored)
			continue;
		writer->slot[node] = (uint32_t)slot++;
		if (node && (state & BUILD_DIRECTORY))
			/* heaviest first, then in pre-order */
			writer->directory[n++] = (uint64_t)(UINT32_MAX - weight[node]) << 32 | i;
		else if (node && !(state & BUILD_FIXED))
			writer->n_files++;
	}
	qsort(writer->directory, n, sizeof(*writer->directory), pfs_compare_u64);
	for (i = 0; i < n; i++)
		writer->directory[i] = (uint32_t)writer->directory[i];
	writer->n_directories = n;
	return 0;
}

static size_t count_new_directories(const struct pfs_build *build)
{
	size_t node, n = 0;

	for (node = build->n_stored; node < build->count; node++)
		n += build->state[node] & BUILD_DIRECTORY;
	return n;
}

static int finish(struct pfs_build *build, struct pfs_pool *pool)
{
	size_t bytes = build->count * sizeof(uint32_t);
	uint32_t *order PFS_FREE = malloc(bytes), *slot PFS_FREE = malloc(bytes);
	uint32_t *weight PFS_FREE = malloc(bytes);
	uint64_t *directory PFS_FREE = calloc(count_new_directories(build) + 1, sizeof(*directory));
	struct writer writer = {
		.build = build, .order = order, .slot = slot, .directory = directory};

	if (!order || !weight || !slot || !directory)
		return -ENOMEM;
	if (build->n_targets)
		qsort(build->targets, build->n_targets, sizeof(*build->targets), compare_targets);
	PFS_TRY(pfs_build_order(build, pool, order, weight));
	PFS_TRY(arrange(&writer, weight));
	writer.nodes = weight; /* its memory, which is not needed any more */
	PFS_TRY(pfs_build_need_primes(build));
	PFS_TRY(list_directories(&writer));
	PFS_TRY(list_files(&writer));
	PFS_TRY(pfs_build_write(build, pool, writer.nodes, writer.n, slot));
	PFS_TRY(rewrite_changed(build));
	build->finished = true;
	return 0;
}

int pfs_build_finish(struct pfs_build *build)
{
	struct pfs_pool *pool;
	int error;

	free(build->table);
	build->table = NULL;
	build->table_size = 0;
	PFS_TRY(pfs_pool_open(&pool, THREADS, 0));
	error = finish(build, pool);
	pfs_pool_close(pool);
	return error;
}
