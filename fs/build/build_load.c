/* SPDX-License-Identifier: MIT */
/* A build onto an existing store: loads its nodes, so that their names are found, and looks up or
 * makes the directory below which nodes are added. */
#include "fs/build/build_impl.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/search.h"

struct load {
	struct pfs_build *build;
	uint64_t *parents; /* their primes, by node */
	size_t parents_capacity;
	int error;
};

static int take_node(void *arg, const struct pfs_node_record *record)
{
	struct load *load = arg;
	struct pfs_build *build = load->build;
	uint32_t node;

	load->error = pfs_grow(&load->parents, &load->parents_capacity, build->count + 1,
			       sizeof(*load->parents));
	if (!load->error)
		load->error = pfs_build_append(build, &node, 0, record->name, record->name_len);
	if (!load->error)
		load->error = pfs_build_need_primes(build);
	if (load->error)
		return 1;
	load->parents[node] = record->parent;
	build->prime[node] = record->prime;
	build->flags[node] = (uint8_t)record->flags;
	build->state[node] = S_ISDIR(record->mode) ? BUILD_DIRECTORY : BUILD_FIXED;
	return 0;
}

static int find_prime(const struct pfs_build *build, uint32_t *node, uint64_t prime)
{
	/* Nodes were numbered in order of their primes. */
	uint64_t at = PFS_SEARCH(i, 0, build->n_stored, build->prime[i] < prime);

	if (at == build->n_stored || build->prime[at] != prime)
		return -EUCLEAN;
	*node = (uint32_t)at;
	return 0;
}

static int damaged(const struct pfs_build *build, uint64_t prime)
{
	pfs_error("%s: node %llu has no directory that it belongs to: see primefs check",
		  build->path, (unsigned long long)prime);
	return -EUCLEAN;
}

static int link_nodes(struct pfs_build *build, const uint64_t *parents)
{
	size_t node;

	if (build->n_stored == 0 || build->prime[0] != PFS_ROOT_PRIME)
		return damaged(build, PFS_ROOT_PRIME);
	if (build->n_stored > 1)
		build->state[0] |= BUILD_PARENT;
	for (node = 1; node < build->n_stored; node++) {
		if (find_prime(build, &build->parent[node], parents[node]) != 0 ||
		    !(build->state[build->parent[node]] & BUILD_DIRECTORY) ||
		    (build->name[node] & 0xff) == 0)
			return damaged(build, build->prime[node]);
		build->state[build->parent[node]] |= BUILD_PARENT;
	}
	return 0;
}

static int find_at(struct pfs_build *build, const char *path)
{
	uint32_t node = 0;
	int error = 0;

	while (*path && !error) {
		size_t len = strcspn(path, "/");
		enum pfs_build_seen seen;

		if (len && !(len == 1 && path[0] == '.')) {
			error = pfs_build_add(build, &node, &seen, node, path, len, NULL);
			if (!error)
				error = pfs_build_set_directory(build, node);
		}
		path += len + (path[len] == '/');
	}
	build->at = node;
	build->into_empty = node < build->n_stored && !(build->state[node] & BUILD_PARENT);
	return error;
}

int pfs_build_load(struct pfs_build *build)
{
	struct load load = {.build = build};
	int error = pfs_store_scan_nodes(build->store, 0, UINT64_MAX, take_node, &load);

	if (error >= 0)
		error = load.error;
	if (!error) {
		build->n_stored = build->count;
		error = link_nodes(build, load.parents);
	}
	free(load.parents);
	if (!error)
		error = pfs_build_index(build);
	return error ? error : find_at(build, build->options.at);
}
