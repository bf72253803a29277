/* SPDX-License-Identifier: MIT */
/* Keys and payloads of prefix trees: all payloads are one list, in the order of their keys. */
#include "base/checked.h"
#include "base/log.h"
#include "gpu/prefix_impl.h"

#define ITEMS_MAX 0x7ffffffeu

static struct pfs_prefix_payload *payload_at(const struct pfs_prefix_tree *tree, uint32_t place)
{
	return pfs_prefix_payload_at(tree, place);
}

int pfs_prefix_lists_create(struct pfs_prefix_tree *tree)
{
	/* Place 0 is before the first and behind the last; no key has it. */
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_ENTRIES, sizeof(struct pfs_prefix_payload)));
	(void)pfs_prefix_take(tree, PFS_PREFIX_ENTRIES, sizeof(struct pfs_prefix_payload));
	payload_at(tree, 0)->item = PFS_PREFIX_NONE;
	/* Nor do keys have the record at 0, or else a compact tree's word of it would look like 0. */
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_RECORDS, sizeof(struct pfs_prefix_record)));
	(void)pfs_prefix_take(tree, PFS_PREFIX_RECORDS, sizeof(struct pfs_prefix_record));
	tree->head.first_item = PFS_PREFIX_NONE;
	return 0;
}

uint32_t pfs_prefix_item_of(const struct pfs_prefix_tree *tree, uint32_t word)
{
	if (!tree->view.is_compact)
		return word & ~PFS_PREFIX_ITEM;
	return pfs_prefix_record_at(pfs_prefix_base(tree, PFS_PREFIX_RECORDS), word)->item;
}

int pfs_prefix_seek_key(const struct pfs_prefix_tree *tree, uint32_t *word, bool *equal,
			struct pfs_prefix_path *path, const struct pfs_prefix_text *key)
{
	return tree->view.is_compact ? pfs_prefix_compact_seek(tree, word, equal, path, key)
				     : pfs_prefix_tree_seek(tree, word, equal, path, key);
}

/* ---- taking and giving back ---- */

/* Units of 8 bytes. */
static uint32_t record_size(uint32_t len)
{
	return (uint32_t)pfs_div_round_up(len, 8) + 1;
}

static uint32_t *free_record_of(const struct pfs_prefix_tree *tree, uint32_t record)
{
	return (uint32_t *)((uint8_t *)pfs_prefix_base(tree, PFS_PREFIX_RECORDS) +
			    (uint64_t)record * 8);
}

static uint32_t take_record(struct pfs_prefix_tree *tree, uint32_t item,
			    const struct pfs_prefix_text *key)
{
	uint32_t size = record_size(key->len), record = tree->head.free_records[size];
	struct pfs_prefix_record *r;

	if (record)
		tree->head.free_records[size] = *free_record_of(tree, record);
	else
		record = (uint32_t)(pfs_prefix_take(tree, PFS_PREFIX_RECORDS, size * 8) / 8);
	pfs_prefix_touch(tree, PFS_PREFIX_RECORDS, (uint64_t)record * 8, size * 8);
	r = (struct pfs_prefix_record *)free_record_of(tree, record);
	*r = (struct pfs_prefix_record){item, key->len};
	if (key->len)
		memcpy(r + 1, key->bytes, key->len);
	return record;
}

static void give_record(struct pfs_prefix_tree *tree, uint32_t record)
{
	uint32_t size = record_size(pfs_prefix_key_of(tree, record).len);

	pfs_prefix_touch(tree, PFS_PREFIX_RECORDS, (uint64_t)record * 8, 8);
	*free_record_of(tree, record) = tree->head.free_records[size];
	tree->head.free_records[size] = record;
}

static uint32_t take_item(struct pfs_prefix_tree *tree)
{
	uint32_t item = tree->head.first_item;

	if (item == PFS_PREFIX_NONE)
		return (uint32_t)(pfs_prefix_take(tree, PFS_PREFIX_ITEMS,
						  sizeof(struct pfs_prefix_item)) /
				  sizeof(struct pfs_prefix_item));
	tree->head.first_item = pfs_prefix_item_at(tree, item)->first;
	return item;
}

static uint32_t take_place(struct pfs_prefix_tree *tree)
{
	uint32_t place = tree->head.first_place;

	if (place == 0)
		return (uint32_t)(pfs_prefix_take(tree, PFS_PREFIX_ENTRIES,
						  sizeof(struct pfs_prefix_payload)) /
				  sizeof(struct pfs_prefix_payload));
	tree->head.first_place = payload_at(tree, place)->next;
	return place;
}

/* Puts a payload before another one (0: behind all). */
static uint32_t link_payload(struct pfs_prefix_tree *tree, uint32_t item, uint64_t payload,
			     uint32_t next)
{
	uint32_t place = take_place(tree), previous = payload_at(tree, next)->previous;

	*payload_at(tree, place) =
		(struct pfs_prefix_payload){payload, next, previous, item, 0};
	payload_at(tree, previous)->next = place;
	payload_at(tree, next)->previous = place;
	tree->head.n_payloads++;
	return place;
}

static void unlink_payload(struct pfs_prefix_tree *tree, uint32_t place)
{
	struct pfs_prefix_payload *p = payload_at(tree, place);

	payload_at(tree, p->previous)->next = p->next;
	payload_at(tree, p->next)->previous = p->previous;
	*p = (struct pfs_prefix_payload){.next = tree->head.first_place, .item = PFS_PREFIX_NONE};
	tree->head.first_place = place;
	tree->head.n_payloads--;
	tree->head.removals++;
}

/* ---- changes ---- */

/* A key that is not there; spot: where in a compact tree; next: the payload that it comes before. */
static int add_key(struct pfs_prefix_tree *tree, const struct pfs_prefix_spot *spot,
		   const struct pfs_prefix_text *key, uint64_t payload, uint32_t next)
{
	uint32_t item, record, place;

	if (tree->head.n_keys >= ITEMS_MAX)
		return -EOVERFLOW;
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_ITEMS, sizeof(struct pfs_prefix_item)));
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_RECORDS, (size_t)record_size(key->len) * 8));
	PFS_TRY(tree->view.is_compact ? pfs_prefix_compact_reserve(tree)
				      : pfs_prefix_tree_reserve(tree, key));
	item = take_item(tree);
	record = take_record(tree, item, key);
	if (tree->view.is_compact)
		pfs_prefix_compact_insert(tree, spot, key, record | PFS_PREFIX_ITEM);
	else
		pfs_prefix_tree_insert(tree, key, item | PFS_PREFIX_ITEM);
	place = link_payload(tree, item, payload, next);
	*pfs_prefix_item_at(tree, item) = (struct pfs_prefix_item){record, place, place};
	tree->head.n_keys++;
	return 0;
}

int pfs_prefix_lists_insert(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
			    uint64_t payload)
{
	struct pfs_prefix_spot spot = {0};
	struct pfs_prefix_item *item;
	uint32_t word, number;
	bool equal;

	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_ENTRIES, sizeof(struct pfs_prefix_payload)));
	if (tree->view.is_compact)
		PFS_TRY(pfs_prefix_compact_spot(tree, &spot, &word, &tree->path, key));
	else
		PFS_TRY(pfs_prefix_tree_seek(tree, &word, &spot.equal, &tree->path, key));
	equal = spot.equal;
	if (word == 0)
		return add_key(tree, &spot, key, payload, 0);
	number = pfs_prefix_item_of(tree, word);
	item = pfs_prefix_item_at(tree, number);
	if (!equal)
		return add_key(tree, &spot, key, payload, item->first);
	item->last = link_payload(tree, number, payload, payload_at(tree, item->last)->next);
	return 0;
}

static int remove_key(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
		      uint32_t item)
{
	uint32_t record = pfs_prefix_item_at(tree, item)->record;

	PFS_TRY(tree->view.is_compact ? pfs_prefix_compact_remove(tree, key)
				      : pfs_prefix_tree_remove(tree, key));
	give_record(tree, record);
	*pfs_prefix_item_at(tree, item) = (struct pfs_prefix_item){.first = tree->head.first_item};
	tree->head.first_item = item;
	tree->head.n_keys--;
	return 0;
}

int pfs_prefix_lists_remove(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
			    uint64_t payload)
{
	struct pfs_prefix_item *item;
	uint32_t word, number, place;
	bool equal;

	PFS_TRY(pfs_prefix_seek_key(tree, &word, &equal, &tree->path, key));
	if (!equal)
		return 0;
	number = pfs_prefix_item_of(tree, word);
	item = pfs_prefix_item_at(tree, number);
	for (place = item->first; payload_at(tree, place)->payload != payload;
	     place = payload_at(tree, place)->next)
		if (place == item->last)
			return 0;
	if (item->first == item->last)
		PFS_TRY(remove_key(tree, key, number));
	else if (place == item->first)
		item->first = payload_at(tree, place)->next;
	else if (place == item->last)
		item->last = payload_at(tree, place)->previous;
	unlink_payload(tree, place);
	return 1;
}

/* ---- checking ---- */

static int compare_keys(const struct pfs_prefix_text *a, const struct pfs_prefix_text *b)
{
	uint32_t len = PFS_MIN(a->len, b->len);
	int order = len ? memcmp(a->bytes, b->bytes, len) : 0;

	return order ? order : (a->len > b->len) - (a->len < b->len);
}

static bool is_record(const struct pfs_prefix_tree *tree, uint32_t record)
{
	uint64_t used = tree->sections[PFS_PREFIX_RECORDS].used;

	return record && (uint64_t)record * 8 + 8 <= used &&
	       pfs_prefix_key_of(tree, record).len <= PFS_PREFIX_KEY_MAX &&
	       (uint64_t)record * 8 + 8 + pfs_prefix_key_of(tree, record).len <= used;
}

/* The item's key is behind `previous` and leads to it. */
static const char *check_item(const struct pfs_prefix_tree *tree, uint32_t number,
			      struct pfs_prefix_text *previous)
{
	const struct pfs_prefix_item *item = pfs_prefix_item_at(tree, number);
	struct pfs_prefix_text key;
	uint32_t found;

	if (!is_record(tree, item->record))
		return "a key's record is none";
	key = pfs_prefix_key_of(tree, item->record);
	if (previous->bytes && compare_keys(previous, &key) >= 0)
		return "keys are not in order";
	*previous = key;
	found = pfs_prefix_serial(&tree->view, &key);
	return found == (number | PFS_PREFIX_ITEM) ? NULL : "a key does not lead to its item";
}

/* All payloads, key by key. */
static const char *check_list(const struct pfs_prefix_tree *tree)
{
	uint64_t n_places = tree->sections[PFS_PREFIX_ENTRIES].used / sizeof(struct pfs_prefix_payload);
	uint64_t n_items = tree->sections[PFS_PREFIX_ITEMS].used / sizeof(struct pfs_prefix_item);
	struct pfs_prefix_text previous = {0};
	uint64_t n_keys = 0, n = 0;
	uint32_t last = 0;

	for (uint32_t place = payload_at(tree, 0)->next; place; n++) {
		const struct pfs_prefix_payload *p;
		const char *rule = NULL;

		if (place >= n_places || n >= tree->head.n_payloads)
			return "a payload's place is none";
		p = payload_at(tree, place);
		if (p->item >= n_items || p->previous != last)
			return "a payload is linked to what is not before it";
		if (pfs_prefix_item_at(tree, p->item)->first == place) {
			n_keys++;
			rule = check_item(tree, p->item, &previous);
		} else if (p->item != payload_at(tree, last)->item) {
			rule = "a payload is not its key's";
		}
		if (rule)
			return rule;
		if (pfs_prefix_item_at(tree, p->item)->last != place &&
		    (p->next >= n_places || payload_at(tree, p->next)->item != p->item))
			return "a key's last payload is another";
		last = place;
		place = p->next;
	}
	if (payload_at(tree, 0)->previous != last)
		return "the last payload is not the list's";
	return n == tree->head.n_payloads && n_keys == tree->head.n_keys ? NULL
									  : "payloads are lost";
}

int pfs_prefix_lists_verify(const struct pfs_prefix_tree *tree)
{
	const char *rule = check_list(tree);

	if (rule)
		pfs_error("a prefix tree: payloads: %s", rule);
	return rule ? -EUCLEAN : 0;
}
