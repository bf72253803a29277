/* SPDX-License-Identifier: MIT */
/* Questions to prefix trees on the host: the traversals, each as a device does it, on all
 * threads. */
#include "gpu/prefix_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/fetch.h"
#include "gpu/host/operators.h"

#define GRAIN_KEYS	 1024u
#define GRAIN_PARTITIONS 4096u
#define SIDE_BY_SIDE	 PFS_PREFIX_SIDE_BY_SIDE
#define LINE		 64u /* bytes that come from memory together */

/* ---- serial ---- */

struct find {
	const struct pfs_prefix_view *view;
	const struct pfs_prefix_text *texts;
	uint32_t *items;
};

/* Fetches the lines of a key's record or of a node, most of which have few words. */
PFS_FETCHES void fetch_word(const struct pfs_prefix_view *v, uint32_t word)
{
	const void *record = pfs_prefix_record_at(v->records, word);
	const void *node = v->words + (size_t)word * PFS_PREFIX_UNIT;
	const uint8_t *at = word & PFS_PREFIX_ITEM ? record : node;

	__builtin_prefetch(at);
	__builtin_prefetch(at + (word & PFS_PREFIX_ITEM ? LINE : LINE / 2));
}

/* For compact trees: goes down with several keys side by side, so that one waits for memory while
 * others go on. Sets `words` to the words at which they end. */
static void descend_side_by_side(uint32_t *words, const struct pfs_prefix_view *v,
				 const struct pfs_prefix_text *texts, size_t n)
{
	size_t open = n;

	for (size_t i = 0; i < n; i++)
		words[i] = v->root;
	while (open) {
		open = 0;
		for (size_t i = 0; i < n; i++) {
			if (words[i] == 0 || words[i] & PFS_PREFIX_ITEM)
				continue;
			words[i] = pfs_prefix_step(v, words[i], &texts[i]);
			open += words[i] && !(words[i] & PFS_PREFIX_ITEM);
			fetch_word(v, words[i]);
		}
	}
}

static void find_side_by_side(const struct find *find, size_t from, size_t to)
{
	uint32_t words[SIDE_BY_SIDE] = {0};

	descend_side_by_side(words, find->view, &find->texts[from], to - from);
	for (size_t i = from; i < to; i++)
		find->items[i] = pfs_prefix_compared(find->view, words[i - from], &find->texts[i]);
}

/* Goes on to keys next to them. Returns true while some are on their way. */
static bool step_all_near(uint32_t *words, uint8_t *sides, const struct pfs_prefix_view *v,
			  const struct pfs_prefix_text *texts, size_t n)
{
	bool goes_on = false;

	for (size_t i = 0; i < n; i++) {
		if (words[i] == 0 || words[i] & PFS_PREFIX_ITEM)
			continue;
		words[i] = pfs_prefix_step_near(v, &sides[i], words[i], &texts[i]);
		fetch_word(v, words[i]);
		goes_on = true;
	}
	return goes_on;
}

void pfs_prefix_fetch(const struct pfs_prefix_tree *tree, const struct pfs_prefix_text *texts,
		      size_t n)
{
	uint8_t sides[SIDE_BY_SIDE] = {PFS_PREFIX_ON_THE_WAY};
	uint32_t words[SIDE_BY_SIDE] = {0};

	if (tree->view.root == 0)
		return;
	for (size_t i = 0; i < n; i++)
		words[i] = tree->view.root;
	while (step_all_near(words, sides, &tree->view, texts, n))
		continue;
	for (size_t i = 0; i < n; i++) {
		const struct pfs_prefix_record *record = pfs_prefix_record_of(tree, words[i]);

		__builtin_prefetch(pfs_prefix_payload_at(tree, record->first));
		__builtin_prefetch(pfs_prefix_payload_at(tree, record->last));
	}
	for (size_t i = 0; i < n; i++) {
		const struct pfs_prefix_record *record = pfs_prefix_record_of(tree, words[i]);

		__builtin_prefetch(pfs_prefix_payload_at(
			tree, pfs_prefix_payload_at(tree, record->first)->previous));
		__builtin_prefetch(pfs_prefix_payload_at(
			tree, pfs_prefix_payload_at(tree, record->last)->next));
	}
}

static int find_some(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct find *find = context;

	(void)worker;
	for (uint64_t i = from; i < to && find->view->is_compact; i += SIDE_BY_SIDE)
		find_side_by_side(find, i, PFS_MIN(i + SIDE_BY_SIDE, to));
	for (uint64_t i = from; i < to && !find->view->is_compact; i++)
		find->items[i] = pfs_prefix_serial(find->view, &find->texts[i]);
	return 0;
}

/* ---- all partitions at once ---- */

struct all_at_once {
	const struct pfs_prefix_view *view;
	const struct pfs_prefix_text *key;
	uint32_t *results; /* by partition */
	/* PARALLEL: the partition from which each is reached, plus 1; 0: it is not reached. */
	uint32_t *previous;
	atomic_uint n_payloads, payload; /* payload: the partition of the last one */
	/* HIERARCHICAL */
	const struct pfs_prefix_blocks *blocks;
	uint32_t *block_results;
};

static int walk_some(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct all_at_once *all = context;

	(void)worker;
	for (uint64_t p = from; p < to; p++) {
		uint32_t result = pfs_prefix_walk(all->view, (uint32_t)p, all->key);

		all->results[p] = result;
		if (all->previous && result && !(result & PFS_PREFIX_ITEM)) {
			all->previous[result] = (uint32_t)p + 1;
		} else if (all->previous && result) {
			atomic_fetch_add(&all->n_payloads, 1);
			atomic_store(&all->payload, (unsigned)p);
		}
	}
	return 0;
}

/* Follows the results forward, from the root. */
static uint32_t put_together(const struct all_at_once *all)
{
	uint32_t result = all->results[0];

	while (result && !(result & PFS_PREFIX_ITEM))
		result = all->results[result];
	return result;
}

static int trace_some(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct all_at_once *all = context;

	(void)worker;
	for (uint64_t p = from; p < to; p++) {
		uint32_t at = (uint32_t)p;

		if (!(all->results[p] & PFS_PREFIX_ITEM))
			continue;
		while (at && all->previous[at])
			at = all->previous[at] - 1;
		if (at == 0) /* at most one partition does, since each is reached from one */
			atomic_store(&all->payload, all->results[p]);
	}
	return 0;
}

/* Finds for each block the way from its root to where it leaves the block. */
static int block_some(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct all_at_once *all = context;
	const struct pfs_prefix_blocks *blocks = all->blocks;
	uint32_t results[PFS_PREFIX_BLOCK_MAX]; /* as in a kernel's shared memory */

	(void)worker;
	for (uint64_t b = from; b < to; b++) {
		const uint32_t *list = blocks->list + blocks->first[b];
		uint32_t n = blocks->first[b + 1] - blocks->first[b], at = 0;

		all->block_results[b] = 0;
		if (n == 0)
			continue;
		for (uint32_t i = 0; i < n; i++)
			results[i] = pfs_prefix_walk(all->view, list[i], all->key);
		while (results[at] && !(results[at] & PFS_PREFIX_ITEM) &&
		       blocks->block[results[at]] == b)
			at = blocks->place[results[at]];
		all->block_results[b] = results[at];
	}
	return 0;
}

static uint32_t put_blocks_together(const struct all_at_once *all)
{
	uint32_t result = all->block_results[all->blocks->block[0]];

	while (result && !(result & PFS_PREFIX_ITEM))
		result = all->block_results[all->blocks->block[result]];
	return result;
}

struct where {
	struct pfs_host_operators *host;
	const struct pfs_run *run;
	const struct pfs_prefix_tree *tree;
};

static int find_parallel(const struct where *where, struct all_at_once *all, uint32_t *item)
{
	uint32_t n = pfs_prefix_n_partitions(where->tree);
	uint32_t result;

	memset(all->previous, 0, n * sizeof(*all->previous));
	atomic_store(&all->n_payloads, 0);
	atomic_store(&all->payload, 0);
	PFS_TRY(pfs_host_for(where->host, where->run, n, GRAIN_PARTITIONS, walk_some, all));
	if (atomic_load(&all->n_payloads) == 1) { /* the shortcut: it is this payload or none */
		struct pfs_prefix_text key;

		result = all->results[atomic_load(&all->payload)];
		key = pfs_prefix_key_of(where->tree, result);
		*item = key.len == all->key->len &&
					pfs_prefix_same(key.bytes, all->key->bytes, key.len)
				? result
				: 0;
		return 0;
	}
	atomic_store(&all->payload, 0);
	PFS_TRY(pfs_host_for(where->host, where->run, n, GRAIN_PARTITIONS, trace_some, all));
	*item = atomic_load(&all->payload);
	return 0;
}

static int find_one(const struct where *where, struct all_at_once *all, uint32_t *item,
		    enum pfs_prefix_traversal traversal)
{
	uint32_t n = pfs_prefix_n_partitions(where->tree);

	if (traversal == PFS_PREFIX_PARALLEL)
		return find_parallel(where, all, item);
	if (traversal == PFS_PREFIX_HIERARCHICAL) {
		PFS_TRY(pfs_host_for(where->host, where->run, all->blocks->n_blocks, 16, block_some,
				     all));
		*item = put_blocks_together(all);
		return 0;
	}
	PFS_TRY(pfs_host_for(where->host, where->run, n, GRAIN_PARTITIONS, walk_some, all));
	*item = put_together(all);
	return 0;
}

static int find_all_at_once(const struct where *where, struct pfs_prefix *index, uint32_t *items,
			    const struct pfs_prefix_texts *keys)
{
	size_t n = (size_t)pfs_prefix_n_partitions(where->tree) + 1;
	struct all_at_once all = {.view = &where->tree->view};
	int error = 0;

	if (keys->traversal == PFS_PREFIX_HIERARCHICAL) {
		PFS_TRY(pfs_prefix_blocks_get(index, &all.blocks));
		n = all.blocks->n_blocks + 1;
	}
	PFS_TRY(pfs_run_alloc_raw(where->run, &all.results, n, sizeof(*all.results)));
	all.block_results = all.results;
	if (keys->traversal == PFS_PREFIX_PARALLEL)
		error = pfs_run_alloc_raw(where->run, &all.previous, n, sizeof(*all.previous));
	for (size_t i = 0; i < keys->n && !error; i++) {
		all.key = &keys->texts[i];
		error = find_one(where, &all, &items[i], keys->traversal);
	}
	pfs_run_free(where->run, all.results, n, sizeof(*all.results));
	pfs_run_free(where->run, all.previous, n, sizeof(*all.previous));
	return error;
}

int pfs_host_prefix_find(struct pfs_operator_backend *b, const struct pfs_run *run,
			 struct pfs_prefix *index, uint32_t *items,
			 const struct pfs_prefix_texts *keys)
{
	const struct where where = {pfs_host_operators_of(b), run, &index->tree};
	struct find find = {&index->tree.view, keys->texts, items};

	if (keys->traversal != PFS_PREFIX_SERIAL && !find.view->is_compact)
		return find_all_at_once(&where, index, items, keys);
	return pfs_host_for(where.host, run, keys->n, GRAIN_KEYS, find_some, &find);
}

/* ---- blocks ---- */

static void free_blocks(struct pfs_prefix_blocks *blocks)
{
	free(blocks->first);
	free(blocks->list);
	free(blocks->place);
	free(blocks->block);
	*blocks = (struct pfs_prefix_blocks){0};
}

void pfs_prefix_blocks_forget(struct pfs_prefix *index)
{
	free_blocks(&index->blocks);
	index->has_blocks = false;
}

static bool is_used(const struct pfs_prefix_tree *tree, uint32_t partition)
{
	const struct pfs_prefix_spare *spares = pfs_prefix_base(tree, PFS_PREFIX_SPARES);

	return spares[partition / tree->view.width].lanes >> partition % tree->view.width & 1;
}

/* The root of each block comes first; `next` counts the others, from 0. */
static void fill_blocks(const struct pfs_prefix_tree *tree, struct pfs_prefix_blocks *out,
			uint32_t *next)
{
	const struct pfs_prefix_part *parts = pfs_prefix_base(tree, PFS_PREFIX_PARTS);
	const struct pfs_prefix_block *blocks = pfs_prefix_base(tree, PFS_PREFIX_BLOCKS);

	for (uint32_t b = 0; b < out->n_blocks; b++)
		out->first[b + 1] = out->first[b] + blocks[b].size;
	for (uint32_t p = 0; p < out->n_partitions; p++) {
		uint32_t block = parts[p].block;

		if (!is_used(tree, p))
			continue;
		out->block[p] = block;
		out->place[p] = blocks[block].root == p ? 0 : ++next[block];
		out->list[out->first[block] + out->place[p]] = p;
	}
}

static int make_blocks(const struct pfs_prefix_tree *tree, struct pfs_prefix_blocks *out)
{
	uint32_t *next;

	out->n_blocks = (uint32_t)(tree->sections[PFS_PREFIX_BLOCKS].used /
				   sizeof(struct pfs_prefix_block));
	out->n_partitions = pfs_prefix_n_partitions(tree);
	out->first = calloc((size_t)out->n_blocks + 1, sizeof(*out->first));
	out->list = calloc((size_t)out->n_partitions + 1, sizeof(*out->list));
	out->place = calloc((size_t)out->n_partitions + 1, sizeof(*out->place));
	out->block = calloc((size_t)out->n_partitions + 1, sizeof(*out->block));
	next = calloc((size_t)out->n_blocks + 1, sizeof(*next));
	if (out->first && out->list && out->place && out->block && next) {
		fill_blocks(tree, out, next);
		free(next);
		return 0;
	}
	free(next);
	free_blocks(out);
	return -ENOMEM;
}

int pfs_prefix_blocks_get(struct pfs_prefix *index, const struct pfs_prefix_blocks **out)
{
	int error = 0;

	*out = &index->blocks;
	PFS_LOCKED(&index->blocks_lock);
	if (!index->has_blocks)
		error = make_blocks(&index->tree, &index->blocks);
	index->has_blocks = error == 0;
	return error;
}
