/* SPDX-License-Identifier: MIT */
/* Finds the order of slots, which is pre-order with children in byte order of their names, and the
 * weights of directories. */
#include "fs/build/build_impl.h"

#include <endian.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"

#define SORTED_AT_ONCE 4096u /* nodes whose children one thread sorts */

struct sort_key {
	uint64_t bytes; /* eight bytes of the name, behind the prefix that all siblings share */
	uint32_t node;
};

/* Returns the name's bytes from `from` on, padded with zeros, as a number that compares as the
 * bytes do. */
static uint64_t bytes_of(const struct pfs_build *build, uint32_t node, size_t from)
{
	size_t len = build->name[node] & 0xff;
	uint64_t bytes = 0;

	if (len > from)
		(void)memcpy(&bytes, build->heap + (build->name[node] >> 8) + from,
			     PFS_MIN(len - from, sizeof(bytes)));
	return be64toh(bytes);
}

static int compare_names(const struct pfs_build *build, uint32_t a, uint32_t b)
{
	uint64_t x = build->name[a], y = build->name[b];

	return pfs_compare_bytes(build->heap + (x >> 8), x & 0xff, build->heap + (y >> 8),
				 y & 0xff);
}

static int compare_keys(const void *a, const void *b, void *build)
{
	const struct sort_key *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return compare_names(build, x->node, y->node);
}

/* Returns how many bytes the names of all these nodes have in common at their beginning. */
static size_t common_prefix(const struct pfs_build *build, const uint32_t *nodes, size_t n)
{
	const char *first = build->heap + (build->name[nodes[0]] >> 8);
	size_t common = build->name[nodes[0]] & 0xff, i, at;

	for (i = 1; i < n && common; i++) {
		const char *name = build->heap + (build->name[nodes[i]] >> 8);

		common = PFS_MIN(common, (size_t)(build->name[nodes[i]] & 0xff));
		for (at = 0; at < common && name[at] == first[at]; at++)
			;
		common = at;
	}
	return common;
}

/* Sorts n nodes by name. `keys` is memory that may grow. */
static int sort_siblings(const struct pfs_build *build, struct sort_key **keys, size_t *capacity,
			 uint32_t *nodes, size_t n)
{
	size_t i, common;
	int error;

	for (i = 1; i < n && compare_names(build, nodes[i - 1], nodes[i]) < 0; i++)
		;
	if (i >= n)
		return 0;
	error = pfs_grow(keys, capacity, n, sizeof(**keys));
	if (error)
		return error;
	common = common_prefix(build, nodes, n);
	for (i = 0; i < n; i++)
		(*keys)[i] = (struct sort_key){bytes_of(build, nodes[i], common), nodes[i]};
	qsort_r(*keys, n, sizeof(**keys), compare_keys, (void *)build);
	for (i = 0; i < n; i++)
		nodes[i] = (*keys)[i].node;
	return 0;
}

/* Fills `children` with all nodes but the root, grouped by parent; those of node n are from
 * start[n] to start[n + 1]. */
static void group_by_parent(const struct pfs_build *build, uint32_t *start, uint32_t *children)
{
	size_t node, sum = 0;

	(void)memset(start, 0, (build->count + 1) * sizeof(*start));
	for (node = 1; node < build->count; node++)
		start[build->parent[node]]++;
	for (node = 0; node <= build->count; node++) {
		sum += start[node];
		/* the end of its children, which are filled in backwards */
		start[node] = (uint32_t)sum;
	}
	for (node = build->count - 1; node > 0; node--)
		children[--start[build->parent[node]]] = (uint32_t)node;
}

struct siblings {
	const struct pfs_build *build;
	const uint32_t *start;
	uint32_t *children;
	_Atomic int error;
};

/* Sorts the children of the nodes from..to, which no other thread looks at. */
static void sort_some(void *context, size_t from, size_t to)
{
	struct siblings *all = context;
	struct sort_key *keys PFS_FREE = NULL;
	size_t capacity = 0;

	for (size_t node = from; node < to; node++) {
		int error = sort_siblings(all->build, &keys, &capacity,
					  all->children + all->start[node],
					  all->start[node + 1] - all->start[node]);

		if (error)
			atomic_store(&all->error, error);
	}
}

struct cursor {
	uint32_t next, end; /* indexes of `children` */
};

struct walk {
	struct cursor *stack; /* the directories from the root to the current one */
	size_t depth, capacity;
	uint32_t *order;
	size_t n;
};

static int descend(struct walk *walk, uint32_t node, const uint32_t *start)
{
	if (start[node] == start[node + 1])
		return 0;
	PFS_TRY(pfs_grow(&walk->stack, &walk->capacity, walk->depth + 1, sizeof(*walk->stack)));
	walk->stack[walk->depth++] = (struct cursor){start[node], start[node + 1]};
	return 0;
}

static int walk_all(struct walk *walk, const uint32_t *start, const uint32_t *children)
{
	int error = descend(walk, 0, start);

	while (!error && walk->depth) {
		struct cursor *top = &walk->stack[walk->depth - 1];

		if (top->next == top->end) {
			walk->depth--;
			continue;
		}
		walk->order[walk->n++] = children[top->next];
		error = descend(walk, children[top->next++], start);
	}
	free(walk->stack);
	return error;
}

int pfs_build_order(const struct pfs_build *build, struct pfs_pool *pool, uint32_t *order,
		    uint32_t *weight)
{
	uint32_t *start PFS_FREE = malloc((build->count + 1) * sizeof(*start));
	uint32_t *children PFS_FREE = malloc(build->count * sizeof(*children));
	struct siblings siblings = {.build = build, .start = start, .children = children};
	struct walk walk = {.order = order, .n = 1};
	size_t i;
	int error;

	if (!start || !children)
		return -ENOMEM;
	order[0] = 0; /* the root */
	group_by_parent(build, start, children);
	pfs_pool_run(pool, build->count, SORTED_AT_ONCE, sort_some, &siblings);
	error = atomic_load(&siblings.error);
	if (!error)
		error = walk_all(&walk, start, children);
	if (error)
		return error;
	(void)memset(weight, 0, build->count * sizeof(*weight));
	for (i = build->count - 1; i > 0; i--)
		weight[build->parent[order[i]]] += weight[order[i]] + 1;
	return 0;
}
