/* SPDX-License-Identifier: MIT */
/* An ordered index as a sorted array, for gpu/index.h in place of a device's.  Slow and plain. */
#include <stdlib.h>

#include "base/search.h"
#include "gpu/engine_impl.h"
#include "tests/ref/stand_in_operators.h"

#define GONE SIZE_MAX

struct pair {
	uint64_t key, value;
	size_t number; /* in the order in which they came; or GONE */
};

struct pfs_index_tree {
	struct pair *pairs;
	size_t n;
	bool is_wide, is_unique;
};

/* ---- values of either width ---- */

static uint64_t value_at(const struct pfs_index_tree *tree, const void *values, size_t i)
{
	return tree->is_wide ? ((const uint64_t *)values)[i] : ((const uint32_t *)values)[i];
}

/* pair: NULL: there is none. */
static void answer(const struct pfs_index_tree *tree, void *values, size_t i,
		   const struct pair *pair)
{
	if (tree->is_wide)
		((uint64_t *)values)[i] = pair ? pair->value : PFS_INDEX_WIDE_NONE;
	else
		((uint32_t *)values)[i] = pair ? (uint32_t)pair->value : PFS_INDEX_NONE;
}

/* ---- order ---- */

static int by_key(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static int by_key_and_value(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int order = by_key(a, b);

	return order ? order : (x->value > y->value) - (x->value < y->value);
}

static int by_number(const struct pair *x, const struct pair *y)
{
	return (x->number > y->number) - (x->number < y->number);
}

static int unique_order(const void *a, const void *b)
{
	int order = by_key(a, b);

	return order ? order : by_number(a, b);
}

static int duplicates_order(const void *a, const void *b)
{
	int order = by_key_and_value(a, b);

	return order ? order : by_number(a, b);
}

/* The first pair that is not less. */
static size_t rank(const struct pfs_index_tree *tree, uint64_t key, uint64_t value)
{
	const struct pair wanted = {key, value, 0};

	return PFS_SEARCH(i, 0, tree->n, by_key_and_value(&tree->pairs[i], &wanted) < 0);
}

/* ---- the family ---- */

static void close_tree(struct pfs_operator_backend *b PFS_UNUSED,
		       const struct pfs_run *run PFS_UNUSED, struct pfs_index_tree *tree)
{
	free(tree->pairs);
	free(tree);
}

static int build(struct pfs_operator_backend *b, const struct pfs_run *run,
		 struct pfs_index_tree **out, const struct pfs_index_shape *shape,
		 const uint64_t *keys, const void *values, size_t n)
{
	struct pfs_index_tree *tree;

	PFS_TRY(stand_in_operators_call());
	tree = calloc(1, sizeof(*tree));
	if (!tree)
		return -ENOMEM;
	*tree = (struct pfs_index_tree){.is_wide = shape->is_wide,
					.is_unique = shape->kind == PFS_INDEX_UNIQUE};
	tree->pairs = calloc(n + 1, sizeof(*tree->pairs));
	if (!tree->pairs) {
		close_tree(b, run, tree);
		return -ENOMEM;
	}
	tree->n = n;
	for (size_t i = 0; i < n; i++)
		tree->pairs[i] = (struct pair){keys[i], value_at(tree, values, i), i};
	*out = tree;
	return 0;
}

static int find(struct pfs_operator_backend *b PFS_UNUSED, const struct pfs_run *run PFS_UNUSED,
		const struct pfs_index_tree *tree, const struct pfs_index_query *query)
{
	PFS_TRY(stand_in_operators_call());
	for (size_t i = 0; i < query->n; i++) {
		uint64_t key = query->keys[i];
		size_t at = rank(tree, key, query->question == PFS_INDEX_GREATER ? UINT64_MAX : 0);
		const struct pair *pair = at < tree->n ? &tree->pairs[at] : NULL;

		if (pair && query->question == PFS_INDEX_EQUAL && pair->key != key)
			pair = NULL;
		answer(tree, query->values, i, pair);
		if (pair && query->found_keys)
			query->found_keys[i] = pair->key;
	}
	return 0;
}

static int range(struct pfs_operator_backend *b PFS_UNUSED, const struct pfs_run *run,
		 const struct pfs_index_tree *tree, struct pfs_index_list *out, uint64_t first,
		 uint64_t last)
{
	size_t from = rank(tree, first, 0), to = rank(tree, last, UINT64_MAX);
	void *values;

	PFS_TRY(stand_in_operators_call());
	PFS_TRY(pfs_index_list_make(run, out, to - from, tree->is_wide));
	values = tree->is_wide ? (void *)out->wide_values : out->values;
	for (size_t i = from; i < to; i++) {
		out->keys[i - from] = tree->pairs[i].key;
		answer(tree, values, i - from, &tree->pairs[i]);
	}
	return 0;
}

/* Behind those that there are; then all are sorted, and of equal ones one stays. */
static int insert(struct pfs_operator_backend *b PFS_UNUSED, const struct pfs_run *run PFS_UNUSED,
		  struct pfs_index_tree *tree, uint64_t *n_added,
		  const struct pfs_index_change *change)
{
	size_t n = tree->n + change->n, kept = 0;
	struct pair *pairs;

	PFS_TRY(stand_in_operators_call());
	pairs = realloc(tree->pairs, (n + 1) * sizeof(*pairs));
	if (!pairs)
		return -ENOMEM;
	tree->pairs = pairs;
	for (size_t i = 0; i < change->n; i++)
		pairs[tree->n + i] = (struct pair){change->keys[i],
						   value_at(tree, change->values, i), tree->n + i};
	qsort(pairs, n, sizeof(*pairs), tree->is_unique ? unique_order : duplicates_order);
	for (size_t i = 0; i < n; i++) {
		bool same = kept && (tree->is_unique ? by_key : by_key_and_value)(&pairs[kept - 1],
										  &pairs[i]) == 0;

		if (!same)
			pairs[kept++] = pairs[i];
		else if (change->policy == PFS_INDEX_REPLACE)
			pairs[kept - 1].value = pairs[i].value;
	}
	*n_added = kept - tree->n;
	tree->n = kept;
	for (size_t i = 0; i < kept; i++)
		pairs[i].number = i;
	return 0;
}

static int remove_pairs(struct pfs_operator_backend *b PFS_UNUSED,
			const struct pfs_run *run PFS_UNUSED, struct pfs_index_tree *tree,
			uint64_t *n_removed, const struct pfs_index_change *change)
{
	size_t kept = 0;

	PFS_TRY(stand_in_operators_call());
	for (size_t i = 0; i < change->n; i++) {
		size_t at = rank(tree, change->keys[i],
				 change->values ? value_at(tree, change->values, i) : 0);
		struct pair *pair = &tree->pairs[at];

		if (at < tree->n && pair->key == change->keys[i] &&
		    (!change->values || pair->value == value_at(tree, change->values, i)))
			pair->number = GONE;
	}
	for (size_t i = 0; i < tree->n; i++) {
		if (tree->pairs[i].number == GONE)
			continue;
		tree->pairs[kept] = tree->pairs[i];
		tree->pairs[kept].number = kept;
		kept++;
	}
	*n_removed = tree->n - kept;
	tree->n = kept;
	return 0;
}

static void describe(const struct pfs_index_tree *tree, struct pfs_index_info *info)
{
	info->n = tree->n;
}

static int verify(struct pfs_operator_backend *b PFS_UNUSED, const struct pfs_run *run PFS_UNUSED,
		  const struct pfs_index_tree *tree)
{
	for (size_t i = 1; i < tree->n; i++)
		if ((tree->is_unique ? by_key : by_key_and_value)(&tree->pairs[i - 1],
								  &tree->pairs[i]) >= 0)
			return -EUCLEAN;
	return 0;
}

const struct pfs_index_family stand_in_index_family = {
	.build = build,
	.close = close_tree,
	.find = find,
	.range = range,
	.insert = insert,
	.remove = remove_pairs,
	.describe = describe,
	.verify = verify,
};
