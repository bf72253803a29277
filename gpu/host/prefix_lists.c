/* SPDX-License-Identifier: MIT */
/* Keys and payloads of prefix trees: all payloads are one list, in the order of their keys. */
#include "base/checked.h"
#include "base/log.h"
#include "base/order.h"
#include "gpu/prefix_impl.h"

#define ITEMS_MAX 0x7ffffffeu

static struct pfs_prefix_payload *payload_at(const struct pfs_prefix_tree *tree, uint32_t place)
{
	return pfs_prefix_payload_at(tree, place);
}

int pfs_prefix_lists_create(struct pfs_prefix_tree *tree)
{
	/* Place 0 is before the first payload and behind the last; no key has it. */
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_ENTRIES, sizeof(struct pfs_prefix_payload)));
	(void)pfs_prefix_take(tree, PFS_PREFIX_ENTRIES, sizeof(struct pfs_prefix_payload));
	payload_at(tree, 0)->item = PFS_PREFIX_NONE;
	/* Record 0 ends lists of free records, and no key has it either. */
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_RECORDS, sizeof(struct pfs_prefix_record)));
	(void)pfs_prefix_take(tree, PFS_PREFIX_RECORDS, sizeof(struct pfs_prefix_record));
	return 0;
}

/* The place where a key is, or where it would come. */
struct place {
	struct pfs_prefix_spot spot; /* COMPACT */
	uint32_t item;		     /* 0: the key is not there */
	uint32_t next; /* the first payload of the first key that is not less; 0: there is none */
};

static int find_place(const struct pfs_prefix_tree *tree, struct place *out,
		      struct pfs_prefix_path *path, const struct pfs_prefix_text *key)
{
	const struct pfs_prefix_record *record;
	bool equal, is_before = true;
	uint32_t word;

	*out = (struct place){0};
	if (tree->view.is_compact) {
		pfs_prefix_compact_locate(tree, &out->spot, key);
		word = out->spot.leaf;
		equal = out->spot.equal;
		is_before = equal || out->spot.is_less;
	} else {
		PFS_TRY(pfs_prefix_tree_seek(tree, &word, &equal, path, key));
	}
	if (word == 0)
		return 0;
	record = pfs_prefix_record_of(tree, word);
	out->item = equal ? word & ~PFS_PREFIX_ITEM : 0;
	out->next = is_before ? record->first : payload_at(tree, record->last)->next;
	return 0;
}

int pfs_prefix_seek_place(const struct pfs_prefix_tree *tree, uint32_t *place,
			  const struct pfs_prefix_text *key)
{
	struct pfs_prefix_path path = {0};
	struct place found;
	int error = find_place(tree, &found, &path, key);

	free(path.steps);
	*place = found.next;
	return error;
}

/* ---- taking and giving back ---- */

/* Returns the size in units of 8 bytes. */
static uint32_t record_size(uint32_t len)
{
	return (uint32_t)pfs_div_round_up(PFS_PREFIX_RECORD_HEAD + len, 8);
}

/* Returns the free record's link to the next one. */
static uint32_t *free_record_of(const struct pfs_prefix_tree *tree, uint32_t item)
{
	return (uint32_t *)pfs_prefix_record_of(tree, item);
}

static uint32_t take_record(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key)
{
	uint32_t size = record_size(key->len), item = tree->head.free_records[size];

	if (item)
		tree->head.free_records[size] = *free_record_of(tree, item);
	else
		item = (uint32_t)(pfs_prefix_take(tree, PFS_PREFIX_RECORDS, size * 8) / 8);
	pfs_prefix_touch(tree, PFS_PREFIX_RECORDS, (uint64_t)item * 8, size * 8);
	pfs_prefix_record_of(tree, item)->len = key->len;
	if (key->len)
		memcpy((uint8_t *)pfs_prefix_record_of(tree, item) + PFS_PREFIX_RECORD_HEAD,
		       key->bytes, key->len);
	return item;
}

static void give_record(struct pfs_prefix_tree *tree, uint32_t item)
{
	uint32_t size = record_size(pfs_prefix_key_of(tree, item).len);

	pfs_prefix_touch(tree, PFS_PREFIX_RECORDS, (uint64_t)item * 8, 8);
	*free_record_of(tree, item) = tree->head.free_records[size];
	tree->head.free_records[size] = item;
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

/* Adds a key that is not there. */
static int add_key(struct pfs_prefix_tree *tree, const struct place *at,
		   const struct pfs_prefix_text *key, uint64_t payload)
{
	struct pfs_prefix_record *record;
	uint32_t item;

	if (tree->head.n_keys >= ITEMS_MAX)
		return -EOVERFLOW;
	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_RECORDS, (size_t)record_size(key->len) * 8));
	PFS_TRY(tree->view.is_compact ? pfs_prefix_compact_reserve(tree)
				      : pfs_prefix_tree_reserve(tree, key));
	item = take_record(tree, key);
	if (tree->view.is_compact)
		pfs_prefix_compact_insert(tree, &at->spot, key, item | PFS_PREFIX_ITEM);
	else
		pfs_prefix_tree_insert(tree, key, item | PFS_PREFIX_ITEM);
	record = pfs_prefix_record_of(tree, item);
	record->payload = payload;
	record->first = record->last = link_payload(tree, item, payload, at->next);
	tree->head.n_keys++;
	return 0;
}

int pfs_prefix_lists_insert(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
			    uint64_t payload)
{
	struct pfs_prefix_record *record;
	struct place at;

	PFS_TRY(pfs_prefix_reserve(tree, PFS_PREFIX_ENTRIES, sizeof(struct pfs_prefix_payload)));
	PFS_TRY(find_place(tree, &at, &tree->path, key));
	if (at.item == 0)
		return add_key(tree, &at, key, payload);
	record = pfs_prefix_record_of(tree, at.item);
	record->last = link_payload(tree, at.item, payload, payload_at(tree, record->last)->next);
	return 0;
}

static int remove_key(struct pfs_prefix_tree *tree, const struct place *at,
		      const struct pfs_prefix_text *key)
{
	if (tree->view.is_compact)
		pfs_prefix_compact_remove(tree, &at->spot);
	else
		PFS_TRY(pfs_prefix_tree_remove(tree, key));
	give_record(tree, at->item);
	tree->head.n_keys--;
	return 0;
}

int pfs_prefix_lists_remove(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
			    uint64_t payload)
{
	struct pfs_prefix_record *record;
	struct place at;
	uint32_t place;

	PFS_TRY(find_place(tree, &at, &tree->path, key));
	if (at.item == 0)
		return 0;
	record = pfs_prefix_record_of(tree, at.item);
	for (place = record->first; payload_at(tree, place)->payload != payload;
	     place = payload_at(tree, place)->next)
		if (place == record->last)
			return 0;
	if (record->first == record->last) {
		PFS_TRY(remove_key(tree, &at, key));
	} else if (place == record->first) {
		record->first = payload_at(tree, place)->next;
		record->payload = payload_at(tree, record->first)->payload;
	} else if (place == record->last) {
		record->last = payload_at(tree, place)->previous;
	}
	unlink_payload(tree, place);
	return 1;
}

/* ---- checking ---- */

static bool is_record(const struct pfs_prefix_tree *tree, uint32_t item)
{
	uint64_t used = tree->sections[PFS_PREFIX_RECORDS].used, at = (uint64_t)item * 8;

	return item && at + PFS_PREFIX_RECORD_HEAD <= used &&
	       pfs_prefix_key_of(tree, item).len <= PFS_PREFIX_KEY_MAX &&
	       at + PFS_PREFIX_RECORD_HEAD + pfs_prefix_key_of(tree, item).len <= used;
}

/* Checks that the item's key comes behind `previous` and that it is found. */
static const char *check_item(const struct pfs_prefix_tree *tree, uint32_t item,
			      struct pfs_prefix_text *previous)
{
	const struct pfs_prefix_record *record = pfs_prefix_record_of(tree, item);
	struct pfs_prefix_text key = pfs_prefix_key_of(tree, item);

	if (previous->bytes &&
	    pfs_compare_bytes(previous->bytes, previous->len, key.bytes, key.len) >= 0)
		return "keys are not in order";
	*previous = key;
	if (record->payload != payload_at(tree, record->first)->payload)
		return "a key's payload is not its first";
	return pfs_prefix_serial(&tree->view, &key) == (item | PFS_PREFIX_ITEM)
		       ? NULL
		       : "a key does not lead to its item";
}

/* Checks all payloads, key by key. */
static const char *check_list(const struct pfs_prefix_tree *tree)
{
	uint64_t n_places =
		tree->sections[PFS_PREFIX_ENTRIES].used / sizeof(struct pfs_prefix_payload);
	struct pfs_prefix_text previous = {0};
	uint64_t n_keys = 0, n = 0;
	uint32_t last = 0;

	for (uint32_t place = payload_at(tree, 0)->next; place; n++) {
		const struct pfs_prefix_payload *p;
		const char *rule = NULL;

		if (place >= n_places || n >= tree->head.n_payloads)
			return "a payload's place is none";
		p = payload_at(tree, place);
		if (p->previous != last)
			return "a payload is linked to what is not before it";
		if (!is_record(tree, p->item))
			return "a key's record is none";
		if (pfs_prefix_record_of(tree, p->item)->first == place) {
			n_keys++;
			rule = check_item(tree, p->item, &previous);
		} else if (p->item != payload_at(tree, last)->item) {
			rule = "a payload is not its key's";
		}
		if (rule)
			return rule;
		if (pfs_prefix_record_of(tree, p->item)->last != place &&
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
