/* SPDX-License-Identifier: MIT */
/* Compact prefix trees have a node only where keys part, so at least one fewer than keys. The way
 * down looks at nothing in between: the key that it ends at tells where the key asked for parts
 * from it. */
#include "base/checked.h"
#include "base/log.h"
#include "gpu/prefix_impl.h"

static uint32_t *words_of(const struct pfs_prefix_tree *tree, uint32_t node)
{
	return pfs_prefix_words_of(tree, node);
}

/* Returns the word of the root. */
static uint32_t *root_of(const struct pfs_prefix_tree *tree)
{
	return words_of(tree, 0);
}

/* Returns how many words follow the head. */
static uint32_t count_of(const struct pfs_prefix_tree *tree, const uint32_t *words)
{
	return pfs_prefix_rank(&tree->view, words, (1u << tree->view.bits) + 1);
}

static uint32_t units_of(const struct pfs_prefix_tree *tree, uint32_t count)
{
	return (uint32_t)pfs_div_round_up(tree->view.head + count, PFS_PREFIX_UNIT);
}

/* Returns 0 for the end word, else 1 plus the sub-key. */
static uint32_t index_of(const struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
			 uint32_t level)
{
	return level >= key->n_levels ? 0 : 1 + pfs_prefix_sub_key(key, level, tree->view.bits);
}

static void flip(const struct pfs_prefix_tree *tree, uint32_t *words, uint32_t index)
{
	if (index == 0)
		words[0] ^= PFS_PREFIX_ENDS;
	else
		words[tree->view.map + (index - 1) / 32] ^= 1u << (index - 1) % 32;
}

static void touch_node(struct pfs_prefix_tree *tree, uint32_t node, uint32_t units)
{
	size_t unit = PFS_PREFIX_UNIT * sizeof(uint32_t);

	pfs_prefix_touch(tree, PFS_PREFIX_WORDS, node * unit, units * unit);
}

/* Returns the first key below the word, or the last one. */
static uint32_t edge_below(const struct pfs_prefix_tree *tree, uint32_t word, bool is_first)
{
	while (!(word & PFS_PREFIX_ITEM)) {
		const uint32_t *words = words_of(tree, word);

		word = words[tree->view.head + (is_first ? 0 : count_of(tree, words) - 1)];
	}
	return word;
}

/* Returns the first level at which the keys differ, and sets *is_less if a is the lesser; if they
 * are equal, the number of levels. */
static uint32_t parting(const struct pfs_prefix_tree *tree, bool *is_less, bool *equal,
			const struct pfs_prefix_text *a, const struct pfs_prefix_text *b)
{
	uint32_t len = PFS_MIN(a->len, b->len), i = 0, bits = tree->view.bits, level;

	while (i + 8 <= len && memcmp(a->bytes + i, b->bytes + i, 8) == 0)
		i += 8;
	while (i < len && a->bytes[i] == b->bytes[i])
		i++;
	*equal = i == a->len && i == b->len;
	*is_less = i == len ? a->len < b->len : a->bytes[i] < b->bytes[i];
	if (i < len) {
		unsigned differ = (unsigned)(a->bytes[i] ^ b->bytes[i]);

		return (i * 8 + (unsigned)__builtin_clz(differ) - 24) / bits;
	}
	level = PFS_MIN(a->n_levels, b->n_levels);
	if (*equal || level == 0)
		return level;
	/* The last sub-key of the shorter key may go on with bits of the longer one. */
	if (pfs_prefix_sub_key(a, level - 1, bits) != pfs_prefix_sub_key(b, level - 1, bits))
		return level - 1;
	return level;
}

/* Returns the word that leads to where the key parts at this level: to a key, or to a node of this
 * level or a deeper one. *above is the word of the node that contains it. */
static uint32_t *descend(const struct pfs_prefix_tree *tree, uint32_t **above, uint32_t level,
			 const struct pfs_prefix_text *key)
{
	uint32_t *word = root_of(tree);

	*above = NULL;
	while (!(*word & PFS_PREFIX_ITEM)) {
		uint32_t *words = words_of(tree, *word);
		uint32_t at = pfs_prefix_level(words);

		if (at >= level)
			break;
		*above = word;
		word = &words[tree->view.head +
			      pfs_prefix_rank(&tree->view, words, index_of(tree, key, at))];
	}
	return word;
}

/* Returns the key itself, or one that is next to it below the node at which it leaves the tree. */
static uint32_t leaf_near(const struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key)
{
	uint8_t side = PFS_PREFIX_ON_THE_WAY;
	uint32_t word = *root_of(tree);

	while (word && !(word & PFS_PREFIX_ITEM))
		word = pfs_prefix_step_near(&tree->view, &side, word, key);
	return word;
}

void pfs_prefix_compact_locate(const struct pfs_prefix_tree *tree, struct pfs_prefix_spot *spot,
			       const struct pfs_prefix_text *key)
{
	uint32_t leaf = leaf_near(tree, key), *above;
	struct pfs_prefix_text other;

	*spot = (struct pfs_prefix_spot){.word = root_of(tree), .leaf = leaf};
	if (leaf == 0)
		return;
	other = pfs_prefix_key_of(tree, leaf);
	spot->level = parting(tree, &spot->is_less, &spot->equal, key, &other);
	spot->word = descend(tree, &above, spot->level, key);
	if (spot->equal || *spot->word & PFS_PREFIX_ITEM)
		return;
	spot->is_free = pfs_prefix_level(words_of(tree, *spot->word)) == spot->level;
	if (!spot->is_free) /* it comes before or behind all that is there */
		spot->leaf = edge_below(tree, *spot->word, spot->is_less);
}

/* ---- changes ---- */

int pfs_prefix_compact_reserve(struct pfs_prefix_tree *tree)
{
	return pfs_prefix_reserve(tree, PFS_PREFIX_WORDS,
				  PFS_PREFIX_NODE_SIZES * PFS_PREFIX_UNIT * sizeof(uint32_t));
}

/* Gives the node at *at one word more, for which it may have to move. */
static void add_word(struct pfs_prefix_tree *tree, uint32_t *at, uint32_t index, uint32_t word)
{
	uint32_t *words = words_of(tree, *at), head = tree->view.head;
	uint32_t n = count_of(tree, words),
		 rank = head + pfs_prefix_rank(&tree->view, words, index);
	uint32_t units = units_of(tree, n), wanted = units_of(tree, n + 1);

	if (wanted > units) {
		uint32_t node = pfs_prefix_node_take(tree, wanted - 1);

		memcpy(words_of(tree, node), words, (head + n) * sizeof(*words));
		pfs_prefix_node_give(tree, units - 1, *at);
		pfs_prefix_set(tree, at, node);
		words = words_of(tree, node);
	}
	touch_node(tree, *at, wanted);
	memmove(&words[rank + 1], &words[rank], (head + n - rank) * sizeof(*words));
	words[rank] = word;
	flip(tree, words, index);
}

void pfs_prefix_compact_insert(struct pfs_prefix_tree *tree, const struct pfs_prefix_spot *spot,
			       const struct pfs_prefix_text *key, uint32_t item)
{
	struct pfs_prefix_text other;
	uint32_t node, *words, index = index_of(tree, key, spot->level);

	if (spot->leaf == 0) {
		pfs_prefix_set(tree, spot->word, item);
		return;
	}
	if (spot->is_free) {
		add_word(tree, spot->word, index, item);
		return;
	}
	other = pfs_prefix_key_of(tree, spot->leaf);
	node = pfs_prefix_node_take(tree, units_of(tree, 2) - 1);
	words = words_of(tree, node);
	words[0] = spot->level << 16;
	flip(tree, words, index);
	flip(tree, words, index_of(tree, &other, spot->level));
	words[tree->view.head + !spot->is_less] = item;
	words[tree->view.head + spot->is_less] = *spot->word;
	pfs_prefix_set(tree, spot->word, node);
}

/* Takes the word from the node at *at, which has more than two; a unit that it does not need any
 * more is a node of the smallest size for others. */
static void drop_word(struct pfs_prefix_tree *tree, const uint32_t *at, uint32_t index)
{
	uint32_t *words = words_of(tree, *at), head = tree->view.head;
	uint32_t n = count_of(tree, words),
		 rank = head + pfs_prefix_rank(&tree->view, words, index);
	uint32_t units = units_of(tree, n), wanted = units_of(tree, n - 1);

	touch_node(tree, *at, units);
	memmove(&words[rank], &words[rank + 1], (head + n - rank - 1) * sizeof(*words));
	words[head + n - 1] = 0;
	flip(tree, words, index);
	if (wanted < units) {
		tree->head.n_nodes++; /* it was none */
		pfs_prefix_node_give(tree, 0, *at + wanted);
	}
}

void pfs_prefix_compact_remove(struct pfs_prefix_tree *tree, const struct pfs_prefix_spot *spot)
{
	struct pfs_prefix_text key = pfs_prefix_key_of(tree, spot->leaf);
	uint32_t *above, *words, node, index, rank;

	(void)descend(tree, &above, spot->level + 1, &key);
	if (!above) {
		pfs_prefix_set(tree, root_of(tree), 0);
		return;
	}
	node = *above;
	words = words_of(tree, node);
	index = index_of(tree, &key, pfs_prefix_level(words));
	if (count_of(tree, words) > 2) {
		drop_word(tree, above, index);
		return;
	}
	rank = pfs_prefix_rank(&tree->view, words, index);
	pfs_prefix_set(tree, above, words[tree->view.head + !rank]);
	pfs_prefix_node_give(tree, units_of(tree, 2) - 1, node);
}

/* ---- checking ---- */

/* The bits of a head that mean nothing. */
static bool is_head_clean(const struct pfs_prefix_tree *tree, const uint32_t *words)
{
	uint32_t n = tree->view.map ? 0 : 1u << tree->view.bits; /* in the first word: 16 at most */

	return (words[0] & 0xffff) >> (n & 31) == 0;
}

static const char *check_node(const struct pfs_prefix_tree *tree, uint32_t node, uint32_t above)
{
	uint64_t n_units =
		tree->sections[PFS_PREFIX_WORDS].used / (PFS_PREFIX_UNIT * sizeof(uint32_t));
	uint32_t least = units_of(tree, 2), level;
	const uint32_t *words = words_of(tree, node);

	if (node == 0 || (uint64_t)node + least > n_units)
		return "a node is none";
	if (!is_head_clean(tree, words) ||
	    (uint64_t)node + units_of(tree, count_of(tree, words)) > n_units)
		return "a node has more words than there can be";
	level = pfs_prefix_level(words);
	if (level > pfs_prefix_levels_of(PFS_PREFIX_KEY_MAX, tree->view.bits))
		return "a node's level is too great";
	if (above != PFS_PREFIX_NO_LEVEL && level <= above)
		return "a node's level is not greater than the one's above";
	return count_of(tree, words) < 2 ? "a node has a single child" : NULL;
}

static bool is_item(const struct pfs_prefix_tree *tree, uint32_t word)
{
	uint64_t at = (uint64_t)(word & ~PFS_PREFIX_ITEM) * 8,
		 used = tree->sections[PFS_PREFIX_RECORDS].used;

	return word & PFS_PREFIX_ITEM && at && at + sizeof(struct pfs_prefix_record) <= used &&
	       at + PFS_PREFIX_RECORD_HEAD + pfs_prefix_key_of(tree, word).len <= used;
}

/* Steps count words from 1 on. */
static const char *check_all(const struct pfs_prefix_tree *tree, struct pfs_prefix_path *path,
			     int *error)
{
	struct pfs_prefix_place next = {*root_of(tree), 0, 0};
	const char *rule = check_node(tree, next.node, PFS_PREFIX_NO_LEVEL);
	uint64_t items = 0;

	*error = rule ? 0 : pfs_prefix_path_push(path, &next);
	while (path->n && !rule && !*error) {
		struct pfs_prefix_place *step = &path->steps[path->n - 1];
		const uint32_t *words = words_of(tree, step->node);

		if (step->index == count_of(tree, words)) {
			path->n--;
			continue;
		}
		next.node = words[tree->view.head + step->index++];
		if (next.node & PFS_PREFIX_ITEM) {
			items++;
			rule = is_item(tree, next.node) ? NULL : "a key is none";
			continue;
		}
		rule = check_node(tree, next.node, pfs_prefix_level(words));
		*error = rule ? 0 : pfs_prefix_path_push(path, &next);
	}
	return !rule && !*error && items != tree->head.n_keys ? "keys are not as many as said"
							      : rule;
}

int pfs_prefix_compact_verify(const struct pfs_prefix_tree *tree)
{
	struct pfs_prefix_path path = {0};
	const char *rule;
	uint64_t node;
	int error = 0;

	if (*root_of(tree) == 0 || *root_of(tree) & PFS_PREFIX_ITEM)
		return tree->head.n_keys == (*root_of(tree) != 0) &&
				       (*root_of(tree) == 0 || is_item(tree, *root_of(tree)))
			       ? 0
			       : -EUCLEAN;
	rule = check_all(tree, &path, &error);
	node = path.n ? path.steps[path.n - 1].node : *root_of(tree);
	if (rule)
		pfs_error("a prefix tree: page %llu: %s",
			  (unsigned long long)(node * PFS_PREFIX_UNIT * sizeof(uint32_t) >>
					       PFS_PREFIX_PAGE_BITS),
			  rule);
	free(path.steps);
	return rule ? -EUCLEAN : error;
}
