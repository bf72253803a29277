/* SPDX-License-Identifier: MIT */
/* Ordered indexes on the host: base/btree.h, batches of questions over all threads. */
#include <stdlib.h>
#include <string.h>

#include "base/btree.h"
#include "base/checked.h"
#include "gpu/host/families.h"
#include "gpu/host/operators.h"

#define GRAIN 2048u /* questions, or entries changed, between two polls */
#define GROUP 64u   /* keys that are looked for side by side before they are changed */

struct pfs_index_tree {
	struct pfs_btree *btree;
	enum pfs_index_kind kind;
};

void pfs_host_index_close(struct pfs_operator_backend *b, const struct pfs_run *run,
			  struct pfs_index_tree *tree)
{
	(void)b, (void)run;
	pfs_btree_destroy(tree->btree);
	free(tree);
}

int pfs_host_index_build(struct pfs_operator_backend *b, const struct pfs_run *run,
			 struct pfs_index_tree **out, enum pfs_index_kind kind,
			 const uint64_t *keys, const uint32_t *values, size_t n)
{
	struct pfs_index_tree *tree = calloc(1, sizeof(*tree));
	int error;

	*out = NULL;
	if (!tree)
		return -ENOMEM;
	tree->kind = kind;
	error = pfs_btree_create(&tree->btree);
	error = error ? error : pfs_btree_load(tree->btree, NULL, keys, values, n);
	if (error)
		pfs_host_index_close(b, run, tree);
	else
		*out = tree;
	return error;
}

/* ---- questions ---- */

struct find {
	const struct pfs_btree *btree;
	const struct pfs_index_query *query;
};

static int find_some(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct find *find = context;
	const struct pfs_index_query *query = find->query;
	uint32_t slot = query->question == PFS_INDEX_GREATER ? PFS_INDEX_NONE : 0;
	struct pfs_btree_entry found[64];

	(void)worker;
	for (uint64_t i = from; i < to; i += PFS_COUNT(found)) {
		size_t n = PFS_MIN(to - i, PFS_COUNT(found));

		pfs_btree_find(find->btree, found, &query->keys[i], slot, n);
		for (size_t k = 0; k < n; k++) {
			bool other = query->question == PFS_INDEX_EQUAL &&
				     found[k].key != query->keys[i + k];

			query->values[i + k] = other ? PFS_INDEX_NONE : found[k].slot;
			if (query->found_keys)
				query->found_keys[i + k] = found[k].key;
		}
	}
	return 0;
}

int pfs_host_index_find(struct pfs_operator_backend *b, const struct pfs_run *run,
			const struct pfs_index_tree *tree, const struct pfs_index_query *query)
{
	struct find find = {tree->btree, query};

	return pfs_host_for(pfs_host_operators_of(b), run, query->n, GRAIN, find_some, &find);
}

int pfs_host_index_range(struct pfs_operator_backend *b, const struct pfs_run *run,
			 const struct pfs_index_tree *tree, struct pfs_index_list *out,
			 uint64_t first, uint64_t last)
{
	const struct pfs_btree *btree = tree->btree;
	struct pfs_btree_cursor cursor;
	struct pfs_index_list piece = {0};
	size_t n = 0, done = 0;
	int error;

	(void)b;
	if (first == 0 && last == UINT64_MAX) {
		n = pfs_btree_count(btree);
	} else {
		PFS_TRY(pfs_index_list_make(run, &piece, GRAIN));
		pfs_btree_seek(btree, &cursor, first, 0);
		for (size_t more = GRAIN; more == GRAIN; n += more)
			more = pfs_btree_read(btree, &cursor, piece.keys, piece.values, GRAIN, last);
		pfs_index_list_free(run, &piece);
	}
	PFS_TRY(pfs_index_list_make(run, out, n));
	pfs_btree_seek(btree, &cursor, first, 0);
	for (error = 0; !error && done < n; error = error ? error : pfs_run_poll(run))
		done += pfs_btree_read(btree, &cursor, out->keys + done, out->values + done,
				       PFS_MIN(n - done, (size_t)GRAIN * 64), last);
	if (error)
		pfs_index_list_free(run, out);
	return error;
}

int pfs_host_index_read(struct pfs_operator_backend *b, const struct pfs_run *run,
			const struct pfs_index_tree *tree, struct pfs_index_cursor *cursor,
			struct pfs_index_list *out, enum pfs_index_direction direction)
{
	const struct pfs_btree *btree = tree->btree;
	bool is_up = direction == PFS_INDEX_UP;
	size_t wanted = out->n, done = 0, more, piece;
	struct pfs_btree_cursor at;

	(void)b;
	pfs_btree_seek(btree, &at, cursor->key, cursor->value);
	do {
		uint64_t *keys = out->keys + done;
		uint32_t *values = out->values + done;

		PFS_TRY(pfs_run_poll(run));
		piece = PFS_MIN(wanted - done, (size_t)GRAIN * 64);
		more = is_up ? pfs_btree_read(btree, &at, keys, values, piece, UINT64_MAX)
			     : pfs_btree_read_back(btree, &at, keys, values, piece);
		done += more;
	} while (more == piece && done < wanted);
	out->n = done;
	if (done) /* no value is NONE, so that there is one behind it */
		*cursor = (struct pfs_index_cursor){out->keys[done - 1], out->values[done - 1] + is_up};
	return 0;
}

/* ---- changes ---- */

/* The value of the key in a unique index, PFS_INDEX_NONE if it has none. */
static uint32_t value_of(const struct pfs_btree *btree, uint64_t key)
{
	struct pfs_btree_entry found;

	pfs_btree_find(btree, &found, &key, 0, 1);
	return found.slot != PFS_BTREE_NONE && found.key == key ? found.slot : PFS_INDEX_NONE;
}

/* The same of a group's key, whose keys were looked for together, before the first of them was changed. */
static uint32_t old_value(const struct pfs_btree *btree, const uint64_t *keys,
			  const struct pfs_btree_entry *found, size_t i)
{
	unsigned is_again = 0;

	for (size_t k = 0; k < i; k++)
		is_again |= keys[k] == keys[i];
	if (is_again)
		return value_of(btree, keys[i]);
	return found[i].slot != PFS_BTREE_NONE && found[i].key == keys[i] ? found[i].slot : PFS_INDEX_NONE;
}

/* Room has been reserved, so that no insertion fails.  old: what a unique index has. */
static bool insert_one(struct pfs_index_tree *tree, uint64_t key, uint32_t value, uint32_t old,
		       enum pfs_index_policy policy)
{
	if (old != PFS_INDEX_NONE && (policy == PFS_INDEX_REFUSE || old == value))
		return false;
	if (old != PFS_INDEX_NONE)
		(void)pfs_btree_remove(tree->btree, key, old);
	return pfs_btree_insert(tree->btree, key, value) == 0 && old == PFS_INDEX_NONE;
}

int pfs_host_index_insert(struct pfs_operator_backend *b, const struct pfs_run *run,
			  struct pfs_index_tree *tree, uint64_t *n_added,
			  const struct pfs_index_change *change)
{
	struct pfs_btree_entry found[GROUP];
	uint64_t added = 0;

	(void)b;
	PFS_TRY(pfs_run_poll(run)); /* not later: a batch is whole */
	PFS_TRY(pfs_btree_reserve(tree->btree, change->n));
	for (size_t from = 0; from < change->n; from += GROUP) {
		const uint64_t *keys = change->keys + from;
		size_t n = PFS_MIN(change->n - from, GROUP);

		pfs_btree_find(tree->btree, found, keys, 0, n);
		for (size_t i = 0; i < n; i++) {
			uint32_t old = tree->kind == PFS_INDEX_UNIQUE
					       ? old_value(tree->btree, keys, found, i)
					       : PFS_INDEX_NONE;

			added += insert_one(tree, keys[i], change->values[from + i], old,
					    change->policy);
		}
	}
	*n_added = added;
	return 0;
}

int pfs_host_index_remove(struct pfs_operator_backend *b, const struct pfs_run *run,
			  struct pfs_index_tree *tree, uint64_t *n_removed,
			  const struct pfs_index_change *change)
{
	struct pfs_btree_entry found[GROUP];
	uint64_t removed = 0;

	(void)b;
	PFS_TRY(pfs_run_poll(run));
	for (size_t from = 0; from < change->n; from += GROUP) {
		const uint64_t *keys = change->keys + from;
		size_t n = PFS_MIN(change->n - from, GROUP);

		pfs_btree_find(tree->btree, found, keys, 0, n);
		for (size_t i = 0; i < n; i++) {
			uint32_t value = found[i].slot;

			if (change->values)
				value = change->values[from + i];
			else if (value == PFS_BTREE_NONE || found[i].key != keys[i])
				continue; /* a key that comes twice is gone by then */
			removed += pfs_btree_remove(tree->btree, keys[i], value);
		}
	}
	*n_removed = removed;
	return 0;
}

void pfs_host_index_describe(const struct pfs_index_tree *tree, struct pfs_index_info *info)
{
	info->n = pfs_btree_count(tree->btree);
	info->bytes = pfs_btree_memory(tree->btree);
}

int pfs_host_index_verify(struct pfs_operator_backend *b, const struct pfs_run *run,
			  const struct pfs_index_tree *tree)
{
	(void)b, (void)run;
	return pfs_btree_verify(tree->btree);
}
