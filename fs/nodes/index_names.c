/* SPDX-License-Identifier: MIT */
/* What a column index has of names: their order, and ranges of it. */
#include "fs/nodes/index_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/order.h"

#define PIECE	 (1u << 16) /* names read in one hold of the tree */
#define AHEAD	 16u /* names fetched ahead */
#define KEY_SIZE sizeof(uint64_t)
#define ENDED	 UINT64_C(0xff) /* of a key: none of these bits is set if the name ends within it */

/* ---- sorting ---- */

/* Items that are the same as the one before as far as their names were looked at. */
struct ties {
	uint64_t *bits;
	struct pfs_keyed *items;
	size_t n;
};

static bool is_tied(const struct ties *ties, size_t i)
{
	return ties->bits[i / 64] >> i % 64 & 1;
}

/* Marks which of the sorted items from..to have the key of the item before, and a name that goes on
 * beyond it. Returns true if any has. */
static bool note_ties(struct ties *ties, size_t from, size_t to)
{
	bool any = false;

	for (size_t i = from + 1; i < to; i++) {
		uint64_t key = ties->items[i].key;
		bool tied = key == ties->items[i - 1].key && key & ENDED;

		ties->bits[i / 64] &= ~(UINT64_C(1) << i % 64);
		ties->bits[i / 64] |= (uint64_t)tied << i % 64;
		any |= tied;
	}
	return any;
}

/* The next run of tied ones from *from on, up to *to; false: there is none. */
static bool next_run(const struct ties *ties, size_t *from, size_t *to)
{
	size_t i = *from + 1;

	while (i < ties->n && !is_tied(ties, i))
		i += ties->bits[i / 64] >> i % 64 ? 1 : 64 - i % 64;
	if (i >= ties->n)
		return false;
	*from = i - 1;
	while (i < ties->n && is_tied(ties, i))
		i++;
	*to = i;
	return true;
}

/* Returns true if the item's key alone does not place it: it or the next one is tied. */
static bool is_in_run(const struct ties *ties, size_t i)
{
	return is_tied(ties, i) || is_tied(ties, i + 1);
}

/* The keys of those that are tied: their names' bytes from `at` on. */
static void read_keys(const struct pfs_tree *tree, struct ties *ties, size_t from, size_t to,
		      size_t at)
{
	const struct pfs_image *image = &tree->image;

	for (size_t i = from; i < to; i++) {
		struct pfs_keyed *item = &ties->items[i];
		const char *name;
		size_t len;

		if (i % 64 == 0 && !ties->bits[i / 64] && !is_tied(ties, i + 64)) {
			i += 63;
			continue;
		}
		if (i + AHEAD < to && is_in_run(ties, i + AHEAD))
			pfs_names_prefetch(image->names, image->name[item[AHEAD].value]);
		if (!is_in_run(ties, i))
			continue;
		name = pfs_names_get(image->names, image->name[item->value], &len);
		item->key = pfs_index_name_key(name, len, at);
	}
}

/* True for runs of equal names, and for siblings that are in name order already. */
static bool ascends(const struct pfs_keyed *items, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (items[i - 1].key > items[i].key)
			return false;
	return true;
}

static int sort_runs(struct ties *ties, bool *any)
{
	*any = false;
	for (size_t from = 0, to; next_run(ties, &from, &to); from = to - 1) {
		if (!ascends(ties->items + from, to - from))
			PFS_TRY(pfs_radix_sort(ties->items + from, to - from));
		*any |= note_ties(ties, from, to);
	}
	return 0;
}

/* Reads the keys in pieces, with a hold of the tree for each unless it is held anyway. */
static void read_all_keys(struct pfs_tree *tree, struct ties *ties, size_t at, bool holds)
{
	for (size_t from = 0; from < ties->n; from += PIECE) {
		if (!holds)
			(void)pfs_scan_lock(tree, __func__);
		read_keys(tree, ties, from, PFS_MIN(from + PIECE, ties->n), at);
		if (!holds)
			pfs_scan_unlock(tree);
	}
}

int pfs_index_sort_names(struct pfs_tree *tree, struct pfs_keyed *items, size_t n, bool holds)
{
	struct ties ties = {.items = items, .n = n};
	int error = 0;
	bool any;

	ties.bits =
		calloc(n / 64 + 2, sizeof(*ties.bits)); /* the one behind the last is not tied */
	if (!ties.bits)
		return -ENOMEM;
	any = note_ties(&ties, 0, n);
	for (size_t at = KEY_SIZE; any && !error; at += KEY_SIZE) {
		read_all_keys(tree, &ties, at, holds);
		error = sort_runs(&ties, &any);
	}
	free(ties.bits);
	return error;
}

/* ---- comparing ---- */

int pfs_index_compare_name(const struct pfs_image *image, uint32_t slot, const char *text,
			   size_t len)
{
	size_t name_len;
	const char *name = pfs_names_get(image->names, image->name[slot], &name_len);

	return pfs_compare_bytes(name, name_len, text, len);
}

/* ---- ranges ---- */

/* The least text above all that begin so; false: there is none. */
static bool raise_last(struct pfs_index_range *range, const uint8_t *prefix, size_t len)
{
	while (len && prefix[len - 1] == UINT8_MAX)
		len--;
	if (!len)
		return false;
	memcpy(range->room, prefix, len);
	range->room[len - 1]++;
	range->high_len = len;
	return true;
}

bool pfs_index_range_of_names(struct pfs_index_range *out, bool *exact,
			      const struct pfs_text_match *text)
{
	*out = (struct pfs_index_range){.field = PFS_FIELD_NAME};
	if (text->rest == PFS_REST_RANGE) {
		out->low_text = text->text;
		out->low_len = text->text_len;
		out->high_text = text->high_text;
		out->high_len = text->high_len;
		*exact = true;
		return true;
	}
	if (text->fold || !text->prefix_len || text->prefix_len > PFS_NAME_MAX)
		return false;
	out->low_text = (const char *)text->prefix;
	out->low_len = text->prefix_len;
	if (text->max_len == text->prefix_len) { /* itself alone: the next one has a NUL more */
		memcpy(out->room, text->prefix, text->prefix_len);
		out->room[text->prefix_len] = 0;
		out->high_len = text->prefix_len + 1;
		out->high_text = (const char *)out->room;
	} else if (raise_last(out, text->prefix, text->prefix_len)) {
		out->high_text = (const char *)out->room;
	}
	*exact = text->rest == PFS_REST_NONE && !text->suffix_len && !text->needle.len;
	return true;
}
