/* SPDX-License-Identifier: MIT */
/* tests/unit/build_util.h - builds of the test's store, and the nodes that it has afterwards. */
#ifndef PFS_TESTS_BUILD_UTIL_H
#define PFS_TESTS_BUILD_UTIL_H

#include "tests/unit/store_util.h"

#include "base/checked.h"
#include "fs/build/build.h"

#define NODES_MAX 60000

struct record {
	uint64_t prime, parent;
	uint32_t slot, mode, flags;
	int64_t size;
	struct pfs_time mtime;
	char name[PFS_NAME_MAX + 1], target[64];
};

static struct record *records; /* in order of primes */
static size_t n_records;

static inline int take_record(void *arg PFS_UNUSED, const struct pfs_node_record *node)
{
	struct record *to = &records[n_records++];

	assert_true(n_records <= NODES_MAX);
	*to = (struct record){
		.prime = node->prime,
		.parent = node->parent,
		.slot = node->slot,
		.mode = node->mode,
		.flags = node->flags,
		.size = node->size,
		.mtime = node->mtime,
	};
	(void)memcpy(to->name, node->name, node->name_len);
	if (node->target_len)
		(void)memcpy(to->target, node->target,
			     PFS_MIN(node->target_len, sizeof(to->target) - 1));
	return 0;
}

static inline void load(void)
{
	struct pfs_store *store = open_as(PFS_STORE_READ_ONLY);

	records = realloc(records, NODES_MAX * sizeof(*records));
	n_records = 0;
	assert_int_equal(pfs_store_scan_nodes(store, 0, UINT64_MAX, take_record, NULL), 0);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

static inline const struct record *by_prime(uint64_t prime)
{
	for (size_t i = 0; i < n_records; i++)
		if (records[i].prime == prime)
			return &records[i];
	return NULL;
}

/* The record of a path "a/b/c"; NULL when there is none. */
static inline const struct record *by_path(const char *path)
{
	uint64_t parent = PFS_ROOT_PRIME;
	const struct record *found = by_prime(parent);

	while (*path && found) {
		size_t len = strcspn(path, "/"), i;

		for (i = 0, found = NULL; i < n_records && !found; i++)
			if (records[i].parent == parent && strlen(records[i].name) == len &&
			    memcmp(records[i].name, path, len) == 0)
				found = &records[i];
		parent = found ? found->prime : 0;
		path += len + (path[len] == '/');
	}
	return found;
}

static const struct stat plain = {
	.st_mode = 0644,
	.st_uid = 7,
	.st_gid = 8,
	.st_mtim = {.tv_sec = 1000, .tv_nsec = 5},
};

static inline struct pfs_build *open_build(const char *at)
{
	const struct pfs_build_options options = {.at = at, .defaults = plain};
	struct pfs_build *build;

	assert_int_equal(pfs_build_open(&build, test_path, &options), 0);
	return build;
}

static inline uint32_t add(struct pfs_build *build, uint32_t parent, const char *name,
			   const struct stat *attr)
{
	enum pfs_build_seen seen;
	uint32_t node;

	assert_int_equal(pfs_build_add(build, &node, &seen, parent, name, strlen(name), attr), 0);
	return node;
}

static inline uint32_t add_path(struct pfs_build *build, const char *path)
{
	char copy[512], *rest = copy, *name;
	uint32_t node = PFS_BUILD_ROOT;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	while ((name = strsep(&rest, "/")) != NULL)
		node = add(build, node, name, NULL);
	return node;
}

static inline void complete(struct pfs_build *build)
{
	assert_int_equal(pfs_build_finish(build), 0);
	assert_int_equal(pfs_build_commit(build), 0);
	pfs_build_close(build);
}

static inline int fresh(void **state PFS_UNUSED)
{
	(void)unlink(test_path);
	return 0;
}

#endif
