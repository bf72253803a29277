/* SPDX-License-Identifier: MIT */
/* Compact prefix trees: a node only where keys part, so that there is one less than keys at most.  The
 * way down looks at nothing in between: the key that it ends at says where the asked one parts. */
#include "base/checked.h"
#include "base/log.h"
#include "gpu/prefix_impl.h"

static uint32_t *words_of(const struct pfs_prefix_tree *tree, uint32_t node)
{
	return pfs_prefix_words_of(tree, node);
}

static uint32_t n_words(const struct pfs_prefix_tree *tree)
{
	return (1u << tree->view.bits) + 1; /* behind the level */
}

/* Among the words behind the level: 0: the end word. */
static uint32_t index_of(const struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
			 uint32_t level)
{
	return level >= key->n_levels ? 0 : 1 + pfs_prefix_sub_key(key, level, tree->view.bits);
}

static uint32_t word_of(const struct pfs_prefix_tree *tree, const struct pfs_prefix_place *step)
{
	return words_of(tree, step->node)[1 + step->index];
}

/* Any key below. */
static uint32_t leaf_below(const struct pfs_prefix_tree *tree, uint32_t word)
{
	while (!(word & PFS_PREFIX_ITEM)) {
		const uint32_t *words = words_of(tree, word) + 1;

		while (*words == 0) /* each node has two that are not */
			words++;
		word = *words;
	}
	return word;
}

/* The first level where the keys differ, *is_less if a is the lesser; n_levels of both if nowhere. */
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
	/* The shorter one's last sub-key may go on with the longer one's bits. */
	if (pfs_prefix_sub_key(a, level - 1, bits) != pfs_prefix_sub_key(b, level - 1, bits))
		return level - 1;
	return level;
}

/* Down to where the key belongs; the path (NULL: not wanted) ends at the node whose word that is. */
static int locate(const struct pfs_prefix_tree *tree, struct pfs_prefix_spot *spot,
		  struct pfs_prefix_path *path, const struct pfs_prefix_text *key)
{
	uint32_t word = tree->head.root;
	struct pfs_prefix_text other;
	uint32_t leaf, last = 0;

	*spot = (struct pfs_prefix_spot){0};
	path->n = 0;
	while (word && !(word & PFS_PREFIX_ITEM)) {
		uint32_t level = words_of(tree, word)[0];
		const struct pfs_prefix_place step = {word, 0, index_of(tree, key, level)};

		PFS_TRY(pfs_prefix_path_push(path, &step));
		last = word;
		word = word_of(tree, &step);
	}
	if (word == 0 && last == 0)
		return 0;
	leaf = leaf_below(tree, word ? word : last);
	other = pfs_prefix_key_of(tree, leaf);
	spot->leaf = leaf;
	spot->level = parting(tree, &spot->is_less, &spot->equal, key, &other);
	/* A node at the level where they part, met on the way, has the key's word free. */
	while (path->n && words_of(tree, path->steps[path->n - 1].node)[0] > spot->level)
		path->n--;
	if (path->n) {
		const struct pfs_prefix_place *step = &path->steps[path->n - 1];

		spot->word = words_of(tree, step->node) + 1 + step->index;
		spot->is_free = *spot->word == 0;
	}
	return 0;
}

int pfs_prefix_compact_next(const struct pfs_prefix_tree *tree, uint32_t *word,
			    struct pfs_prefix_path *path)
{
	*word = 0;
	while (path->n) {
		struct pfs_prefix_place *step = &path->steps[path->n - 1];
		struct pfs_prefix_place next = {0, 0, PFS_PREFIX_BEFORE};
		uint32_t found = 0;

		while (found == 0 && step->index + 1 < n_words(tree)) {
			step->index++; /* from PFS_PREFIX_BEFORE to 0 */
			found = word_of(tree, step);
		}
		if (found & PFS_PREFIX_ITEM) {
			*word = found;
			return 0;
		}
		if (found == 0) {
			path->n--;
			continue;
		}
		next.node = found;
		PFS_TRY(pfs_prefix_path_push(path, &next));
	}
	return 0;
}

int pfs_prefix_compact_spot(const struct pfs_prefix_tree *tree, struct pfs_prefix_spot *spot,
			    uint32_t *word, struct pfs_prefix_path *path,
			    const struct pfs_prefix_text *key)
{
	uint32_t root = tree->head.root;

	PFS_TRY(locate(tree, spot, path, key));
	*word = spot->equal ? spot->leaf : 0;
	if (spot->equal || spot->leaf == 0)
		return 0;
	if (spot->is_less && !spot->is_free) { /* all that is there is greater */
		if (path->n) {
			path->steps[path->n - 1].index--;
		} else if (root & PFS_PREFIX_ITEM) {
			*word = root;
			return 0;
		} else {
			const struct pfs_prefix_place top = {root, 0, PFS_PREFIX_BEFORE};

			PFS_TRY(pfs_prefix_path_push(path, &top));
		}
	}
	return pfs_prefix_compact_next(tree, word, path);
}

int pfs_prefix_compact_seek(const struct pfs_prefix_tree *tree, uint32_t *word, bool *equal,
			    struct pfs_prefix_path *path, const struct pfs_prefix_text *key)
{
	struct pfs_prefix_spot spot;
	int error = pfs_prefix_compact_spot(tree, &spot, word, path, key);

	*equal = spot.equal;
	return error;
}

/* ---- changes ---- */

int pfs_prefix_compact_reserve(struct pfs_prefix_tree *tree)
{
	return pfs_prefix_reserve(tree, PFS_PREFIX_WORDS,
				  tree->node_words[0] * sizeof(uint32_t));
}

static void set_word(struct pfs_prefix_tree *tree, uint32_t *word, uint32_t value)
{
	if (word)
		pfs_prefix_set(tree, word, value);
	else
		tree->head.root = value;
}

void pfs_prefix_compact_insert(struct pfs_prefix_tree *tree, const struct pfs_prefix_spot *spot,
			       const struct pfs_prefix_text *key, uint32_t word)
{
	struct pfs_prefix_text other;
	uint32_t node, *words;

	if (spot->leaf == 0 || spot->is_free) {
		set_word(tree, spot->word, word);
		return;
	}
	other = pfs_prefix_key_of(tree, spot->leaf);
	node = pfs_prefix_node_take(tree, 0);
	words = words_of(tree, node);
	words[0] = spot->level;
	words[1 + index_of(tree, key, spot->level)] = word;
	words[1 + index_of(tree, &other, spot->level)] = spot->word ? *spot->word : tree->head.root;
	set_word(tree, spot->word, node);
}

/* How many words of a node are not 0; *last: one of them. */
static uint32_t n_used(const struct pfs_prefix_tree *tree, uint32_t *last, uint32_t node)
{
	const uint32_t *words = words_of(tree, node) + 1;
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_words(tree); i++) {
		if (words[i] == 0)
			continue;
		*last = words[i];
		n++;
	}
	return n;
}

int pfs_prefix_compact_remove(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key)
{
	struct pfs_prefix_path *path = &tree->path;
	uint32_t *above = NULL, node, only = 0;
	struct pfs_prefix_spot spot;

	PFS_TRY(locate(tree, &spot, path, key));
	PFS_VERIFY_CHECK(spot.equal);
	set_word(tree, spot.word, 0);
	if (path->n == 0)
		return 0;
	node = path->steps[path->n - 1].node;
	if (n_used(tree, &only, node) > 1)
		return 0;
	if (path->n > 1) {
		const struct pfs_prefix_place *step = &path->steps[path->n - 2];

		above = words_of(tree, step->node) + 1 + step->index;
	}
	set_word(tree, above, only);
	pfs_prefix_node_give(tree, 0, node);
	return 0;
}

/* ---- checking ---- */

static const char *check_node(const struct pfs_prefix_tree *tree, uint32_t node, uint32_t above)
{
	uint64_t end = ((uint64_t)node * PFS_PREFIX_UNIT + tree->node_words[0]) * sizeof(uint32_t);
	uint32_t any;

	if (node == 0 || end > tree->sections[PFS_PREFIX_WORDS].used)
		return "a node is none";
	if (words_of(tree, node)[0] > pfs_prefix_levels_of(PFS_PREFIX_KEY_MAX, tree->view.bits))
		return "a node's level is too great";
	if (above != PFS_PREFIX_NO_LEVEL && words_of(tree, node)[0] <= above)
		return "a node's level is not greater than the one's above";
	return n_used(tree, &any, node) < 2 ? "a node has a single child" : NULL;
}

static const char *check_all(const struct pfs_prefix_tree *tree, struct pfs_prefix_path *path,
			     int *error)
{
	struct pfs_prefix_place next = {tree->head.root, 0, PFS_PREFIX_BEFORE};
	const char *rule = check_node(tree, next.node, PFS_PREFIX_NO_LEVEL);
	uint64_t items = 0;

	*error = rule ? 0 : pfs_prefix_path_push(path, &next);
	while (path->n && !rule && !*error) {
		struct pfs_prefix_place *step = &path->steps[path->n - 1];

		if (step->index + 1 >= n_words(tree)) {
			path->n--;
			continue;
		}
		step->index++;
		next.node = word_of(tree, step);
		if (next.node == 0)
			continue;
		if (next.node & PFS_PREFIX_ITEM) {
			items++;
			continue;
		}
		rule = check_node(tree, next.node, words_of(tree, step->node)[0]);
		*error = rule ? 0 : pfs_prefix_path_push(path, &next);
	}
	return !rule && !*error && items != tree->head.n_keys ? "keys are not as many as said" : rule;
}

int pfs_prefix_compact_verify(const struct pfs_prefix_tree *tree)
{
	struct pfs_prefix_path path = {0};
	const char *rule;
	uint64_t node;
	int error = 0;

	if (tree->head.root == 0 || tree->head.root & PFS_PREFIX_ITEM)
		return tree->head.n_keys == (tree->head.root != 0) ? 0 : -EUCLEAN;
	rule = check_all(tree, &path, &error);
	node = path.n ? path.steps[path.n - 1].node : tree->head.root;
	if (rule)
		pfs_error("a prefix tree: page %llu: %s",
			  (unsigned long long)(node * PFS_PREFIX_UNIT * sizeof(uint32_t) >>
					       PFS_PREFIX_PAGE_BITS),
			  rule);
	free(path.steps);
	return rule ? -EUCLEAN : error;
}
