/* SPDX-License-Identifier: MIT */
/* Prefix trees with partitions: walking in order, changing and checking them.
 *
 * What holds nothing any more is given back, except for nodes that 16 partitions share: these
 * stay, so that a walk in order may meet nodes without items, and then turns back. */
#include "base/checked.h"
#include "base/log.h"
#include "gpu/prefix_impl.h"

enum { INNER, LAST };

static uint32_t fan(const struct pfs_prefix_tree *tree)
{
	return 1u << tree->view.bits;
}

/* ---- nodes ---- */

uint32_t pfs_prefix_node_take(struct pfs_prefix_tree *tree, unsigned size)
{
	size_t bytes = tree->node_words[size] * sizeof(uint32_t);
	uint32_t node = tree->head.free_nodes[size];

	tree->head.n_nodes++;
	if (node == 0)
		return (uint32_t)(pfs_prefix_take(tree, PFS_PREFIX_WORDS, bytes) /
				  (PFS_PREFIX_UNIT * sizeof(uint32_t)));
	tree->head.free_nodes[size] = pfs_prefix_words_of(tree, node)[0];
	pfs_prefix_touch(tree, PFS_PREFIX_WORDS,
			 (uint64_t)node * PFS_PREFIX_UNIT * sizeof(uint32_t), bytes);
	memset(pfs_prefix_words_of(tree, node), 0, bytes);
	return node;
}

void pfs_prefix_node_give(struct pfs_prefix_tree *tree, unsigned size, uint32_t node)
{
	pfs_prefix_set(tree, pfs_prefix_words_of(tree, node), tree->head.free_nodes[size]);
	tree->head.free_nodes[size] = node;
	tree->head.n_nodes--;
}

static uint32_t node_for(struct pfs_prefix_tree *tree, uint32_t level)
{
	return pfs_prefix_node_take(tree, pfs_prefix_is_last(&tree->view, level) ? LAST : INNER);
}

/* ---- partitions ---- */

static struct pfs_prefix_group *group_at(const struct pfs_prefix_tree *tree, uint32_t group)
{
	return (struct pfs_prefix_group *)pfs_prefix_base(tree, PFS_PREFIX_GROUPS) + group;
}

static struct pfs_prefix_part *part_at(const struct pfs_prefix_tree *tree, uint32_t partition)
{
	return (struct pfs_prefix_part *)pfs_prefix_base(tree, PFS_PREFIX_PARTS) + partition;
}

static struct pfs_prefix_spare *spare_at(const struct pfs_prefix_tree *tree, uint32_t group)
{
	return (struct pfs_prefix_spare *)pfs_prefix_base(tree, PFS_PREFIX_SPARES) + group;
}

/* Returns the first group with a free lane, of partitions that begin at this level. */
static uint32_t *open_at(const struct pfs_prefix_tree *tree, uint32_t level)
{
	return (uint32_t *)pfs_prefix_base(tree, PFS_PREFIX_OPEN) + level / tree->view.levels;
}

static uint32_t all_lanes(const struct pfs_prefix_tree *tree)
{
	return (1u << tree->view.width) - 1;
}

static uint32_t new_group(struct pfs_prefix_tree *tree, uint32_t level)
{
	uint32_t group = tree->head.free_group;
	uint32_t root = node_for(tree, level);

	if (group) {
		tree->head.free_group = spare_at(tree, group)->next;
	} else {
		group = pfs_prefix_n_groups(tree);
		(void)pfs_prefix_take(tree, PFS_PREFIX_GROUPS, sizeof(struct pfs_prefix_group));
		(void)pfs_prefix_take(tree, PFS_PREFIX_SPARES, sizeof(struct pfs_prefix_spare));
		(void)pfs_prefix_take(tree, PFS_PREFIX_PARTS,
				      tree->view.width * sizeof(struct pfs_prefix_part));
	}
	pfs_prefix_touch(tree, PFS_PREFIX_GROUPS, group * sizeof(struct pfs_prefix_group),
			 sizeof(struct pfs_prefix_group));
	*group_at(tree, group) = (struct pfs_prefix_group){root, level};
	*spare_at(tree, group) = (struct pfs_prefix_spare){0, *open_at(tree, level)};
	if (group) /* the root partition has a group of its own */
		*open_at(tree, level) = group;
	return group;
}

static struct pfs_prefix_block *block_at(const struct pfs_prefix_tree *tree, uint32_t block)
{
	return (struct pfs_prefix_block *)pfs_prefix_base(tree, PFS_PREFIX_BLOCKS) + block;
}

/* Returns the block of a new partition below `parent`. */
static uint32_t block_for(struct pfs_prefix_tree *tree, uint32_t partition, uint32_t parent,
			  uint32_t level)
{
	uint32_t block = part_at(tree, parent)->block;

	if (level / tree->view.levels % tree->head.shape.depth &&
	    block_at(tree, block)->size < PFS_PREFIX_BLOCK_MAX) {
		block_at(tree, block)->size++;
		return block;
	}
	block = tree->head.free_block;
	if (block)
		tree->head.free_block = block_at(tree, block)->root;
	else
		block = (uint32_t)(pfs_prefix_take(tree, PFS_PREFIX_BLOCKS,
						   sizeof(struct pfs_prefix_block)) /
				   sizeof(struct pfs_prefix_block));
	*block_at(tree, block) = (struct pfs_prefix_block){partition, 1};
	tree->head.n_blocks++;
	return block;
}

static uint32_t new_partition(struct pfs_prefix_tree *tree, uint32_t parent, uint32_t level)
{
	uint32_t *open = open_at(tree, level);
	uint32_t group = level && *open ? *open : new_group(tree, level);
	struct pfs_prefix_spare *spare = spare_at(tree, group);
	uint32_t lane = (uint32_t)__builtin_ctz(~spare->lanes);
	uint32_t partition = group * tree->view.width + lane;

	spare->lanes |= 1u << lane;
	if (spare->lanes == all_lanes(tree)) /* it is the first one of its list */
		*open = spare->next;
	tree->head.n_partitions++;
	part_at(tree, partition)->count = 0;
	part_at(tree, partition)->block = block_for(tree, partition, parent, level);
	return partition;
}

/* Frees a group of one partition, of which only the root is left. */
static void free_group(struct pfs_prefix_tree *tree, uint32_t group)
{
	struct pfs_prefix_group *g = group_at(tree, group);

	pfs_prefix_node_give(tree, pfs_prefix_is_last(&tree->view, g->level) ? LAST : INNER,
			     g->root);
	pfs_prefix_touch(tree, PFS_PREFIX_GROUPS, group * sizeof(*g), sizeof(*g));
	*g = (struct pfs_prefix_group){0, PFS_PREFIX_NO_LEVEL};
	*spare_at(tree, group) = (struct pfs_prefix_spare){0, tree->head.free_group};
	tree->head.free_group = group;
}

/* Groups of several partitions stay, with what they share, for the next ones of their level. */
static void free_partition(struct pfs_prefix_tree *tree, uint32_t partition)
{
	uint32_t group = partition / tree->view.width, level = group_at(tree, group)->level;
	uint32_t block = part_at(tree, partition)->block;
	struct pfs_prefix_spare *spare = spare_at(tree, group);
	bool was_full = spare->lanes == all_lanes(tree);

	spare->lanes &= ~(1u << partition % tree->view.width);
	tree->head.n_partitions--;
	if (--block_at(tree, block)->size == 0) {
		block_at(tree, block)->root = tree->head.free_block;
		tree->head.free_block = block;
		tree->head.n_blocks--;
	}
	if (tree->view.width == 1) {
		free_group(tree, group);
	} else if (was_full) {
		spare->next = *open_at(tree, level);
		*open_at(tree, level) = group;
	}
}

/* ---- in order ---- */

int pfs_prefix_path_push(struct pfs_prefix_path *path, const struct pfs_prefix_place *step)
{
	PFS_TRY(pfs_grow(&path->steps, &path->capacity, path->n + 1, sizeof(*path->steps)));
	path->steps[path->n++] = *step;
	return 0;
}

static uint32_t *word_at(const struct pfs_prefix_tree *tree, const struct pfs_prefix_place *step,
			 uint32_t level)
{
	const struct pfs_prefix_view *v = &tree->view;
	uint32_t lane = step->partition % v->width;
	uint32_t at = step->index == 0 ? lane
				       : pfs_prefix_child(v, step->index - 1, lane,
							  pfs_prefix_is_last(v, level));

	return pfs_prefix_words_of(tree, step->node) + at;
}

/* Returns the node to which a word that is no item leads from this level. */
static struct pfs_prefix_place below(const struct pfs_prefix_tree *tree, uint32_t word,
				     uint32_t partition, uint32_t level)
{
	struct pfs_prefix_place place = {word, partition, PFS_PREFIX_BEFORE};

	if (pfs_prefix_is_last(&tree->view, level)) {
		place.node = group_at(tree, word / tree->view.width)->root;
		place.partition = word;
	}
	return place;
}

/* Returns the next word that is not 0 of the node at the end of the path. */
static uint32_t next_word(const struct pfs_prefix_tree *tree, struct pfs_prefix_place *step,
			  uint32_t level)
{
	step->index++; /* from PFS_PREFIX_BEFORE to 0 */
	if (step->index == 0 && !tree->view.ends)
		step->index = 1;
	for (; step->index <= fan(tree); step->index++) {
		uint32_t word = *word_at(tree, step, level);

		if (word)
			return word;
	}
	step->index--; /* if nothing follows, this one is looked at once more */
	return 0;
}

/* Goes from a path to the first item behind it; *word is that item's word, or 0. */
static int next_item(const struct pfs_prefix_tree *tree, uint32_t *word,
		     struct pfs_prefix_path *path)
{
	*word = 0;
	while (path->n) {
		uint32_t level = (uint32_t)path->n - 1;
		struct pfs_prefix_place *step = &path->steps[level], next;
		uint32_t found = next_word(tree, step, level);

		if (found & PFS_PREFIX_ITEM) {
			*word = found;
			return 0;
		}
		if (found == 0) {
			path->n--;
			continue;
		}
		next = below(tree, found, step->partition, level);
		PFS_TRY(pfs_prefix_path_push(path, &next));
	}
	return 0;
}

int pfs_prefix_tree_seek(const struct pfs_prefix_tree *tree, uint32_t *word, bool *equal,
			 struct pfs_prefix_path *path, const struct pfs_prefix_text *key)
{
	struct pfs_prefix_place place = {group_at(tree, 0)->root, 0, PFS_PREFIX_BEFORE};
	uint32_t found = 0;

	*equal = false;
	path->n = 0;
	for (uint32_t level = 0;; level++) {
		bool ends = level == key->n_levels;

		place.index = ends ? 0 : 1 + pfs_prefix_sub_key(key, level, tree->view.bits);
		PFS_TRY(pfs_prefix_path_push(path, &place));
		found = *word_at(tree, &place, level);
		*equal = found & PFS_PREFIX_ITEM && level + !ends == key->n_levels;
		if (ends || found == 0 || found & PFS_PREFIX_ITEM)
			break;
		place = below(tree, found, place.partition, level);
	}
	*word = found;
	return *equal ? 0 : next_item(tree, word, path);
}

/* ---- changes ---- */

/* Reserves memory for a path of so many nodes. */
static int reserve_nodes(struct pfs_prefix_tree *tree, uint32_t n)
{
	size_t node_bytes =
		PFS_MAX(tree->node_words[INNER], tree->node_words[LAST]) * sizeof(uint32_t);
	size_t groups = n / tree->view.levels + 2;

	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_WORDS, n * node_bytes));
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_GROUPS,
				   groups * sizeof(struct pfs_prefix_group)));
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_SPARES,
				   groups * sizeof(struct pfs_prefix_spare)));
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_PARTS,
				   groups * tree->view.width * sizeof(struct pfs_prefix_part)));
	return pfs_prefix_reserve(tree, PFS_PREFIX_BLOCKS,
				  groups * sizeof(struct pfs_prefix_block));
}

int pfs_prefix_tree_reserve(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key)
{
	struct pfs_prefix_place place = {group_at(tree, 0)->root, 0, 0};
	uint32_t level = 0;

	while (level < key->n_levels) {
		uint32_t word;

		place.index = 1 + pfs_prefix_sub_key(key, level, tree->view.bits);
		word = *word_at(tree, &place, level);
		if (word == 0 || word & PFS_PREFIX_ITEM)
			break;
		place = below(tree, word, place.partition, level++);
	}
	return reserve_nodes(tree, key->n_levels - level + 1);
}

/* Returns true if a key of `level + 1` levels may be put here without a node of its own. */
static bool is_direct(const struct pfs_prefix_tree *tree, uint32_t level)
{
	return tree->view.width == 1 || pfs_prefix_is_last(&tree->view, level);
}

/* Makes what the word at this place leads to: an item that ends there moves into it. */
static void extend(struct pfs_prefix_tree *tree, const struct pfs_prefix_place *place,
		   uint32_t level)
{
	uint32_t *word = word_at(tree, place, level), item = *word;
	struct pfs_prefix_place next;
	bool is_last = pfs_prefix_is_last(&tree->view, level);
	uint32_t made = is_last ? new_partition(tree, place->partition, level + 1)
				: node_for(tree, level + 1);

	word = word_at(tree, place, level);
	pfs_prefix_set(tree, word, made);
	if (is_last && item == 0)
		part_at(tree, place->partition)->count++;
	if (item == 0)
		return;
	next = below(tree, made, place->partition, level);
	next.index = 0;
	pfs_prefix_set(tree, word_at(tree, &next, level + 1), item);
	if (is_last)
		part_at(tree, made)->count++;
}

void pfs_prefix_tree_insert(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
			    uint32_t item)
{
	struct pfs_prefix_place place = {group_at(tree, 0)->root, 0, 0};
	uint32_t *word;

	for (uint32_t level = 0; level < key->n_levels; level++) {
		place.index = 1 + pfs_prefix_sub_key(key, level, tree->view.bits);
		word = word_at(tree, &place, level);
		if (*word == 0 && level + 1 == key->n_levels && is_direct(tree, level))
			break;
		if (*word == 0 || *word & PFS_PREFIX_ITEM)
			extend(tree, &place, level);
		place = below(tree, *word_at(tree, &place, level), place.partition, level);
		place.index = 0;
	}
	word = place.index ? word_at(tree, &place, key->n_levels - 1)
			   : word_at(tree, &place, key->n_levels);
	pfs_prefix_set(tree, word, item);
	part_at(tree, place.partition)->count++;
}

static bool is_empty(const struct pfs_prefix_tree *tree, uint32_t node)
{
	const uint32_t *words = pfs_prefix_words_of(tree, node);

	for (uint32_t i = 0; i < tree->view.ends + fan(tree); i++)
		if (words[i])
			return false;
	return true;
}

int pfs_prefix_tree_remove(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key)
{
	struct pfs_prefix_path *path = &tree->path;
	/* items and partitions count, children within a partition do not */
	bool equal, counts = true;
	uint32_t word;

	PFS_TRY(pfs_prefix_tree_seek(tree, &word, &equal, path, key));
	PFS_VERIFY_CHECK(equal);
	for (uint32_t n = (uint32_t)path->n; n; n--) {
		const struct pfs_prefix_place *step = &path->steps[n - 1];
		uint32_t partition = step->partition;
		uint32_t top = group_at(tree, partition / tree->view.width)->level;

		pfs_prefix_set(tree, word_at(tree, step, n - 1), 0);
		part_at(tree, partition)->count -= counts;
		counts = tree->view.width != 1 || n - 1 == top;
		if (!counts) {
			if (!is_empty(tree, step->node))
				break;
			pfs_prefix_node_give(tree, pfs_prefix_is_last(&tree->view, n - 1),
					     step->node);
			continue;
		}
		if (part_at(tree, partition)->count || partition == 0)
			break;
		free_partition(tree, partition);
		n = top + 1;
	}
	return 0;
}

int pfs_prefix_tree_create(struct pfs_prefix_tree *tree)
{
	uint32_t levels = pfs_prefix_levels_of(PFS_PREFIX_KEY_MAX, tree->view.bits);
	size_t open_bytes = (levels / tree->view.levels + 2) * sizeof(uint32_t);
	size_t unit = PFS_PREFIX_UNIT * sizeof(uint32_t);

	/* Numbers from 1 on, but for the root's: 0 is none. */
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_WORDS, unit));
	(void)pfs_prefix_take(tree, PFS_PREFIX_WORDS, unit);
	if (tree->view.is_compact)
		return 0;
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_OPEN, open_bytes));
	(void)pfs_prefix_take(tree, PFS_PREFIX_OPEN, open_bytes);
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_BLOCKS, sizeof(struct pfs_prefix_block)));
	(void)pfs_prefix_take(tree, PFS_PREFIX_BLOCKS, sizeof(struct pfs_prefix_block));
	PFS_TRY(reserve_nodes(tree, 1));
	(void)new_partition(tree, 0, 0);
	return 0;
}

/* ---- checking ---- */

struct check {
	const struct pfs_prefix_tree *tree;
	uint32_t *counts; /* by partition: how many things were met in it */
	uint64_t items, partitions;
	const char *rule;
};

static bool is_node(const struct pfs_prefix_tree *tree, uint32_t node, uint32_t level)
{
	unsigned size = pfs_prefix_is_last(&tree->view, level) ? LAST : INNER;
	uint64_t end =
		((uint64_t)node * PFS_PREFIX_UNIT + tree->node_words[size]) * sizeof(uint32_t);

	return node && end <= tree->sections[PFS_PREFIX_WORDS].used;
}

static bool is_partition(const struct pfs_prefix_tree *tree, uint32_t partition, uint32_t level)
{
	uint32_t group = partition / tree->view.width;

	return group < pfs_prefix_n_groups(tree) && group_at(tree, group)->level == level &&
	       spare_at(tree, group)->lanes >> partition % tree->view.width & 1 &&
	       is_node(tree, group_at(tree, group)->root, level);
}

/* Notes what a word that is not 0 leads to, and goes down unless it is an item. */
static int check_word(struct check *check, struct pfs_prefix_path *path, uint32_t word)
{
	uint32_t level = (uint32_t)path->n - 1;
	const struct pfs_prefix_place *step = &path->steps[level];
	bool is_last = pfs_prefix_is_last(&check->tree->view, level), is_item;
	struct pfs_prefix_place next;

	is_item = word & PFS_PREFIX_ITEM;
	if (is_item || is_last)
		check->counts[step->partition]++;
	check->items += is_item;
	if (is_item)
		return 0;
	if (step->index == 0)
		check->rule = "an end word is no item";
	else if (is_last && !is_partition(check->tree, word, level + 1))
		check->rule = "a partition is none, or of another level";
	else if (is_last && check->counts[word])
		check->rule = "a partition is reached twice";
	else if (!is_last && !is_node(check->tree, word, level + 1))
		check->rule = "a node is none";
	if (check->rule)
		return -EUCLEAN;
	check->partitions += is_last;
	next = below(check->tree, word, step->partition, level);
	return pfs_prefix_path_push(path, &next);
}

static int check_all(struct check *check, struct pfs_prefix_path *path)
{
	struct pfs_prefix_place root = {group_at(check->tree, 0)->root, 0, PFS_PREFIX_BEFORE};
	uint32_t most = pfs_prefix_levels_of(PFS_PREFIX_KEY_MAX, check->tree->view.bits);

	if (!is_partition(check->tree, 0, 0)) {
		check->rule = "the root is no partition";
		return -EUCLEAN;
	}
	check->partitions = 1;
	PFS_TRY(pfs_prefix_path_push(path, &root));
	while (path->n) {
		uint32_t level = (uint32_t)path->n - 1;
		uint32_t word = level <= most ? next_word(check->tree, &path->steps[level], level)
					      : 0;

		if (word == 0)
			path->n--;
		else
			PFS_TRY(check_word(check, path, word));
	}
	return 0;
}

static int check_counts(struct check *check)
{
	const struct pfs_prefix_tree *tree = check->tree;

	if (check->items != tree->head.n_keys || check->partitions != tree->head.n_partitions)
		check->rule = "items or partitions are not as many as they are said to be";
	for (uint32_t p = 0; p < pfs_prefix_n_partitions(tree) && !check->rule; p++) {
		bool is_used = spare_at(tree, p / tree->view.width)->lanes >> p % tree->view.width &
			       1;

		if (is_used && part_at(tree, p)->count != check->counts[p])
			check->rule = "a partition's count is wrong";
	}
	return check->rule ? -EUCLEAN : 0;
}

int pfs_prefix_tree_verify(const struct pfs_prefix_tree *tree)
{
	struct check check = {.tree = tree};
	struct pfs_prefix_path path = {0};
	uint32_t node = 0;
	int error;

	check.counts = calloc(pfs_prefix_n_partitions(tree) + 1, sizeof(*check.counts));
	if (!check.counts)
		return -ENOMEM;
	error = check_all(&check, &path);
	if (path.n)
		node = path.steps[path.n - 1].node;
	error = error ? error : check_counts(&check);
	if (check.rule)
		pfs_error(
			"a prefix tree: page %llu: %s",
			(unsigned long long)((uint64_t)node * PFS_PREFIX_UNIT * sizeof(uint32_t) >>
					     PFS_PREFIX_PAGE_BITS),
			check.rule);
	free(check.counts);
	free(path.steps);
	return error;
}
