/* SPDX-License-Identifier: MIT */
/* Checks what a prefix tree is asked, makes keys ready, and chooses who answers. */
#include "gpu/prefix.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "gpu/prefix_impl.h"
#include "gpu/probe_impl.h"

#define TYPICAL_BYTES 128u /* bytes of a key, if lengths vary */
#define DEPTH	      8u
#define POLL_EVERY    1024u

/* ---- opening ---- */

static bool is_shape(const struct pfs_prefix_shape *shape)
{
	return shape->bits >= 1 && shape->bits <= 8 && shape->levels <= PFS_PREFIX_KEY_MAX * 8 &&
	       shape->depth <= PFS_PREFIX_BLOCK_MAX && (unsigned)shape->type <= PFS_PREFIX_U64 &&
	       (unsigned)shape->layout <= PFS_PREFIX_COMPACT;
}

void pfs_prefix_set_view(struct pfs_prefix_tree *tree)
{
	const struct pfs_prefix_shape *shape = &tree->head.shape;
	uint32_t len = shape->type == PFS_PREFIX_U32 ? 4 : 8;

	tree->view = (struct pfs_prefix_view){
		.words = pfs_prefix_base(tree, PFS_PREFIX_WORDS),
		.groups = pfs_prefix_base(tree, PFS_PREFIX_GROUPS),
		.records = pfs_prefix_base(tree, PFS_PREFIX_RECORDS),
		.n_groups = pfs_prefix_n_groups(tree),
		.levels = shape->levels,
		.fixed = shape->type == PFS_PREFIX_BYTES ? 0
							 : pfs_prefix_levels_of(len, shape->bits),
		.width = shape->layout == PFS_PREFIX_SIXTEEN ? PFS_PREFIX_WIDE : 1,
		.bits = shape->bits,
		.map = shape->bits > 4,
		.head = 1 + (1u << shape->bits) / 32,
		.is_compact = shape->layout == PFS_PREFIX_COMPACT,
	};
	tree->view.ends = tree->view.fixed ? 0 : tree->view.width;
	if (tree->sections[PFS_PREFIX_WORDS].used)
		tree->view.root = tree->view.words[0];
}

static uint32_t whole_units(uint32_t words)
{
	return (uint32_t)pfs_div_round_up(words, PFS_PREFIX_UNIT) * PFS_PREFIX_UNIT;
}

static int open_tree(struct pfs_prefix_tree *tree, const struct pfs_prefix_shape *shape)
{
	uint32_t fan = 1u << shape->bits;
	uint32_t len = shape->type == PFS_PREFIX_BYTES ? TYPICAL_BYTES
		       : shape->type == PFS_PREFIX_U32 ? 4
						       : 8;
	double root = sqrt((double)pfs_prefix_levels_of(len, shape->bits));

	tree->head.shape = *shape;
	if (shape->levels == 0)
		tree->head.shape.levels = (unsigned)lround(PFS_MAX(root, 1));
	if (shape->depth == 0)
		tree->head.shape.depth = DEPTH;
	PFS_TRY(pfs_prefix_sections_open(tree));
	pfs_prefix_set_view(tree);
	tree->node_words[0] = whole_units(tree->view.ends + fan);
	tree->node_words[1] = whole_units(tree->view.ends + fan * tree->view.width);
	for (uint32_t i = 0; i < PFS_PREFIX_NODE_SIZES && tree->view.is_compact; i++)
		tree->node_words[i] = (i + 1) * PFS_PREFIX_UNIT;
	return 0;
}

int pfs_prefix_open_empty(const struct pfs_run *run, struct pfs_prefix **out,
			  const struct pfs_prefix_shape *shape)
{
	struct pfs_prefix *index;
	pthread_rwlockattr_t attr;
	int error;

	*out = NULL;
	if (!is_shape(shape))
		return -EINVAL;
	index = calloc(1, sizeof(*index));
	if (!index)
		return -ENOMEM;
	(void)pthread_rwlockattr_init(&attr);
	/* Questions that never pause must not keep changes waiting for ever. */
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&index->lock, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
	(void)pthread_mutex_init(&index->blocks_lock, NULL);
	(void)pthread_mutex_init(&index->copy_lock, NULL);
	error = open_tree(&index->tree, shape);
	if (error)
		pfs_prefix_close(run, index);
	else
		*out = index;
	return error;
}

int pfs_prefix_create(const struct pfs_run *run, struct pfs_prefix **out,
		      const struct pfs_prefix_shape *shape)
{
	struct pfs_prefix *index;
	int error;

	*out = NULL;
	PFS_TRY(pfs_prefix_open_empty(run, &index, shape));
	error = pfs_prefix_tree_create(&index->tree);
	error = error ? error : pfs_prefix_lists_create(&index->tree);
	pfs_prefix_set_view(&index->tree);
	if (error)
		pfs_prefix_close(run, index);
	else
		*out = index;
	return error;
}

static struct pfs_operator_backend *device_of(const struct pfs_run *run)
{
	struct pfs_operator_backend *device =
		run->on == PFS_ENGINE_HOST ? NULL : pfs_operators_device(run->operators);

	return device && device->families->prefix ? device : NULL;
}

/* The copy_lock is held, or nobody else has the index. */
static void drop_copy(const struct pfs_run *run, struct pfs_prefix *index)
{
	struct pfs_operator_backend *device =
		index->copy ? pfs_operators_device(run->operators) : NULL;

	if (device)
		device->families->prefix->drop(device, index->copy);
	index->copy = NULL;
}

void pfs_prefix_page_out(const struct pfs_run *run, struct pfs_prefix *index)
{
	PFS_LOCKED(&index->copy_lock);
	drop_copy(run, index);
	index->no_copy = false; /* it may be tried again */
}

void pfs_prefix_close(const struct pfs_run *run, struct pfs_prefix *index)
{
	if (!index)
		return;
	drop_copy(run, index);
	pfs_prefix_blocks_forget(index);
	free(index->tree.path.steps);
	pfs_prefix_sections_close(&index->tree);
	(void)pthread_mutex_destroy(&index->copy_lock);
	(void)pthread_mutex_destroy(&index->blocks_lock);
	(void)pthread_rwlock_destroy(&index->lock);
	free(index);
}

/* ---- changes ---- */

static int change_one(struct pfs_prefix_tree *tree, const struct pfs_prefix_text *key,
		      uint64_t payload, bool removes)
{
	int changed = removes ? pfs_prefix_lists_remove(tree, key, payload)
			      : pfs_prefix_lists_insert(tree, key, payload);

	return !removes && changed == 0 ? 1 : changed;
}

/* *n is how many pairs have been changed, also on an error. */
static int change(const struct pfs_run *run, struct pfs_prefix *index, uint64_t *n,
		  const struct pfs_prefix_keys *keys, const uint64_t *payloads, bool removes)
{
	struct pfs_prefix_tree *tree = &index->tree;
	struct pfs_prefix_text texts[PFS_PREFIX_SIDE_BY_SIDE];
	uint64_t integers[PFS_PREFIX_SIDE_BY_SIDE];
	int error = pfs_prefix_check_keys(tree, keys);

	*n = 0;
	PFS_TRY(error);
	PFS_TRY(pfs_run_poll(run)); /* not later, since a batch is not interrupted */
	(void)pthread_rwlock_wrlock(&index->lock);
	pfs_prefix_blocks_forget(index);
	for (size_t i = 0; i < keys->n && error >= 0; i += PFS_COUNT(texts)) {
		size_t group = PFS_MIN(keys->n - i, PFS_COUNT(texts));

		pfs_prefix_set_view(tree);
		pfs_prefix_texts_make(tree, texts, integers, keys, i, group);
		if (tree->view.is_compact && group > 1)
			pfs_prefix_fetch(tree, texts, group);
		for (size_t k = 0; k < group && error >= 0; k++) {
			error = change_one(tree, &texts[k], payloads[i + k], removes);
			*n += error == 1;
		}
	}
	pfs_prefix_set_view(tree);
	tree->changes++;
#ifdef PFS_VERIFY
	PFS_VERIFY_CHECK(pfs_prefix_verify_tree(tree) != -EUCLEAN);
#endif
	(void)pthread_rwlock_unlock(&index->lock);
	return PFS_MIN(error, 0);
}

int pfs_prefix_insert(const struct pfs_run *run, struct pfs_prefix *index, uint64_t *n_added,
		      const struct pfs_prefix_keys *keys, const uint64_t *payloads)
{
	return change(run, index, n_added, keys, payloads, false);
}

int pfs_prefix_remove(const struct pfs_run *run, struct pfs_prefix *index, uint64_t *n_removed,
		      const struct pfs_prefix_keys *keys, const uint64_t *payloads)
{
	return change(run, index, n_removed, keys, payloads, true);
}

/* ---- questions ---- */

/* Compares the keys with what a device has found without being sure. */
static void compare(const struct pfs_prefix_tree *tree, uint32_t *items,
		    const struct pfs_prefix_texts *keys)
{
	for (size_t i = 0; i < keys->n; i++) {
		struct pfs_prefix_text key;

		if (items[i] == 0)
			continue;
		key = pfs_prefix_key_of(tree, items[i]);
		if (key.len != keys->texts[i].len ||
		    !pfs_prefix_same(key.bytes, keys->texts[i].bytes, key.len))
			items[i] = 0;
	}
}

/* Returns 0 if the device has answered. */
static int ask_device(const struct pfs_run *run, struct pfs_prefix *index, uint32_t *items,
		      const struct pfs_prefix_texts *keys)
{
	struct pfs_operator_backend *device = device_of(run);
	bool unsure = false;
	int error;

	if (!device)
		return -EOPNOTSUPP;
	PFS_LOCKED(&index->copy_lock);
	if (index->no_copy)
		return -EOPNOTSUPP;
	error = device->families->prefix->find(device, run, index, items, &unsure, keys);
	if (error == -ENOMEM) {
		pfs_warning("a prefix tree is too large for the device: the processor answers");
		index->no_copy = true;
	}
	if (error == -ENOMEM || error == -EIO)
		drop_copy(run, index);
	if (!error && unsure)
		compare(&index->tree, items, keys);
	if (!error)
		atomic_fetch_add(&index->asked_on_device, keys->n);
	return error == -ENOMEM || error == -EIO ? -EOPNOTSUPP : error;
}

static int find(const struct pfs_run *run, struct pfs_prefix *index, uint32_t *items,
		const struct pfs_prefix_texts *keys)
{
	int error = ask_device(run, index, items, keys);

	if (error != -EOPNOTSUPP)
		return error;
	return pfs_host_prefix_find(pfs_operators_host(run->operators), run, index, items, keys);
}

static void answer(const struct pfs_prefix_tree *tree, uint64_t *payloads, uint32_t *places,
		   const uint32_t *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct pfs_prefix_record *record = pfs_prefix_record_of(tree, items[i]);

		places[i] = items[i] ? record->first : PFS_PREFIX_NONE;
		if (payloads && items[i])
			payloads[i] = record->payload;
	}
}

struct batch {
	struct pfs_prefix_text *texts;
	uint64_t *integers;
	uint32_t *items;
	size_t n; /* of each array */
};

/* Memory for a few keys, so that allocating takes no longer than the question. */
struct few {
	struct pfs_prefix_text texts[PFS_PREFIX_SIDE_BY_SIDE];
	uint64_t integers[PFS_PREFIX_SIDE_BY_SIDE];
	uint32_t items[PFS_PREFIX_SIDE_BY_SIDE];
};

static int batch_make(const struct pfs_run *run, struct batch *batch, struct few *few, size_t n)
{
	batch->n = PFS_MIN(n, PFS_PREFIX_BATCH);
	if (n <= PFS_PREFIX_SIDE_BY_SIDE) {
		*batch = (struct batch){few->texts, few->integers, few->items, n};
		return 0;
	}
	PFS_TRY(pfs_run_alloc_raw(run, &batch->texts, batch->n, sizeof(*batch->texts)));
	PFS_TRY(pfs_run_alloc_raw(run, &batch->integers, batch->n, sizeof(*batch->integers)));
	return pfs_run_alloc_raw(run, &batch->items, batch->n, sizeof(*batch->items));
}

static void batch_free(const struct pfs_run *run, struct batch *batch, const struct few *few)
{
	if (batch->texts == few->texts)
		return;
	pfs_run_free(run, batch->texts, batch->n, sizeof(*batch->texts));
	pfs_run_free(run, batch->integers, batch->n, sizeof(*batch->integers));
	pfs_run_free(run, batch->items, batch->n, sizeof(*batch->items));
}

int pfs_prefix_get(const struct pfs_run *run, struct pfs_prefix *index, uint64_t *payloads,
		   uint32_t *places, const struct pfs_prefix_keys *keys,
		   enum pfs_prefix_traversal traversal)
{
	struct pfs_prefix_tree *tree = &index->tree;
	struct batch batch = {0};
	struct few few;
	int error;

	PFS_TRY(pfs_prefix_check_keys(tree, keys));
	error = batch_make(run, &batch, &few, keys->n);
	(void)pthread_rwlock_rdlock(&index->lock);
	for (size_t i = 0; i < keys->n && !error; i += batch.n) {
		struct pfs_prefix_texts texts = {batch.texts, PFS_MIN(batch.n, keys->n - i),
						 traversal};

		pfs_prefix_texts_make(tree, batch.texts, batch.integers, keys, i, texts.n);
		error = find(run, index, batch.items, &texts);
		if (!error)
			answer(tree, payloads ? payloads + i : NULL, places + i, batch.items,
			       texts.n);
	}
	(void)pthread_rwlock_unlock(&index->lock);
	batch_free(run, &batch, &few);
	return error;
}

int pfs_prefix_probe(const struct pfs_run *run, struct pfs_prefix *index, double *seconds,
		     unsigned repeat, const struct pfs_prefix_keys *keys,
		     enum pfs_prefix_traversal traversal)
{
	struct pfs_operator_backend *device = device_of(run);
	struct pfs_prefix_texts texts = {NULL, keys->n, traversal};
	struct batch batch = {.n = keys->n};
	int error;

	if (!device)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_prefix_check_keys(&index->tree, keys));
	error = pfs_run_alloc_raw(run, &batch.texts, batch.n, sizeof(*batch.texts));
	if (!error)
		error = pfs_run_alloc_raw(run, &batch.integers, batch.n, sizeof(*batch.integers));
	(void)pthread_rwlock_rdlock(&index->lock);
	if (!error) {
		pfs_prefix_texts_make(&index->tree, batch.texts, batch.integers, keys, 0, keys->n);
		texts.texts = batch.texts;
		(void)pthread_mutex_lock(&index->copy_lock);
		error = pfs_cuda_prefix_probe(device, run, index, seconds, repeat, &texts);
		(void)pthread_mutex_unlock(&index->copy_lock);
	}
	(void)pthread_rwlock_unlock(&index->lock);
	pfs_run_free(run, batch.texts, batch.n, sizeof(*batch.texts));
	pfs_run_free(run, batch.integers, batch.n, sizeof(*batch.integers));
	return error;
}

/* ---- in order ---- */

/* Returns 1 if there is a payload at this place. */
static int entry_at(const struct pfs_prefix_tree *tree, struct pfs_prefix_entry *out,
		    uint32_t place)
{
	const struct pfs_prefix_payload *p = pfs_prefix_payload_at(tree, place);
	struct pfs_prefix_text key;

	if (place == 0)
		return 0;
	key = pfs_prefix_key_of(tree, p->item);
	*out = (struct pfs_prefix_entry){
		.payload = p->payload,
		.key = key.bytes,
		.len = key.len,
		.place = place,
		.removals = tree->head.removals,
	};
	return 1;
}

int pfs_prefix_seek(struct pfs_prefix *index, struct pfs_prefix_entry *out,
		    const struct pfs_prefix_keys *key)
{
	struct pfs_prefix_text text;
	uint64_t integer;
	uint32_t place;
	int error;

	if (key->n != 1)
		return -EINVAL;
	PFS_TRY(pfs_prefix_check_keys(&index->tree, key));
	(void)pthread_rwlock_rdlock(&index->lock);
	pfs_prefix_texts_make(&index->tree, &text, &integer, key, 0, 1);
	error = pfs_prefix_seek_place(&index->tree, &place, &text);
	error = error ? error : entry_at(&index->tree, out, place);
	(void)pthread_rwlock_unlock(&index->lock);
	return error;
}

int pfs_prefix_at(struct pfs_prefix *index, struct pfs_prefix_entry *out, uint32_t place)
{
	const struct pfs_prefix_tree *tree = &index->tree;
	int error = -ESTALE;

	(void)pthread_rwlock_rdlock(&index->lock);
	if (place < tree->sections[PFS_PREFIX_ENTRIES].used / sizeof(struct pfs_prefix_payload) &&
	    pfs_prefix_payload_at(tree, place)->item != PFS_PREFIX_NONE)
		error = entry_at(tree, out, place);
	(void)pthread_rwlock_unlock(&index->lock);
	return error;
}

static int step(struct pfs_prefix *index, struct pfs_prefix_entry *entry, bool is_back)
{
	const struct pfs_prefix_tree *tree = &index->tree;
	const struct pfs_prefix_payload *p;
	int error = -ESTALE;

	(void)pthread_rwlock_rdlock(&index->lock);
	if (entry->removals == tree->head.removals) {
		p = pfs_prefix_payload_at(tree, entry->place);
		error = entry_at(tree, entry, is_back ? p->previous : p->next);
	}
	(void)pthread_rwlock_unlock(&index->lock);
	return error;
}

int pfs_prefix_next(struct pfs_prefix *index, struct pfs_prefix_entry *entry)
{
	return step(index, entry, false);
}

int pfs_prefix_previous(struct pfs_prefix *index, struct pfs_prefix_entry *entry)
{
	return step(index, entry, true);
}

int pfs_prefix_last(struct pfs_prefix *index, struct pfs_prefix_entry *out)
{
	const struct pfs_prefix_tree *tree = &index->tree;
	int error;

	(void)pthread_rwlock_rdlock(&index->lock);
	error = entry_at(tree, out, pfs_prefix_payload_at(tree, 0)->previous);
	(void)pthread_rwlock_unlock(&index->lock);
	return error;
}

/* Collects the entries from the place on whose keys begin with the prefix; only counts them if
 * there is no list. */
static int collect(const struct pfs_run *run, const struct pfs_prefix_tree *tree,
		   struct pfs_prefix_list *out, uint32_t place,
		   const struct pfs_prefix_text *prefix)
{
	uint32_t item = PFS_PREFIX_NONE;
	size_t n = 0;

	for (; place; place = pfs_prefix_payload_at(tree, place)->next) {
		const struct pfs_prefix_payload *p = pfs_prefix_payload_at(tree, place);

		if (p->item != item) {
			struct pfs_prefix_text key = pfs_prefix_key_of(tree, p->item);

			item = p->item;
			if (key.len < prefix->len ||
			    !pfs_prefix_same(key.bytes, prefix->bytes, prefix->len))
				break;
		}
		if (out->payloads)
			out->payloads[n] = p->payload;
		if (n++ % POLL_EVERY == 0)
			PFS_TRY(pfs_run_poll(run));
	}
	out->n = n;
	return 0;
}

int pfs_prefix_scan(const struct pfs_run *run, struct pfs_prefix *index,
		    struct pfs_prefix_list *out, const void *prefix, size_t len)
{
	const struct pfs_prefix_tree *tree = &index->tree;
	struct pfs_prefix_text text = {prefix, (uint32_t)len, 0};
	uint32_t place;
	int error;

	*out = (struct pfs_prefix_list){0};
	if (tree->head.shape.type != PFS_PREFIX_BYTES)
		return -EINVAL;
	if (len > PFS_PREFIX_KEY_MAX)
		return -ENAMETOOLONG;
	text.n_levels = pfs_prefix_levels_of(text.len, tree->view.bits);
	(void)pthread_rwlock_rdlock(&index->lock);
	error = pfs_prefix_seek_place(tree, &place, &text);
	error = error ? error : collect(run, tree, out, place, &text);
	if (!error)
		error = pfs_run_alloc_raw(run, &out->payloads, out->n, sizeof(*out->payloads));
	error = error ? error : collect(run, tree, out, place, &text);
	(void)pthread_rwlock_unlock(&index->lock);
	if (error)
		pfs_prefix_list_free(run, out);
	return error;
}

void pfs_prefix_list_free(const struct pfs_run *run, struct pfs_prefix_list *list)
{
	pfs_run_free(run, list->payloads, list->n, sizeof(*list->payloads));
	*list = (struct pfs_prefix_list){0};
}

/* ---- the rest ---- */

void pfs_prefix_describe(struct pfs_prefix *index, struct pfs_prefix_info *info)
{
	const struct pfs_prefix_tree *tree = &index->tree;
	const struct pfs_prefix_head *head = &tree->head;

	(void)pthread_rwlock_rdlock(&index->lock);
	(void)pthread_mutex_lock(&index->copy_lock);
	*info = (struct pfs_prefix_info){
		.where = index->copy ? "cuda" : "host",
		.shape = head->shape,
		.n_keys = head->n_keys,
		.n_payloads = head->n_payloads,
		.n_nodes = head->n_nodes,
		.n_partitions = head->n_partitions,
		.n_blocks = head->n_blocks,
		.asked_on_device = atomic_load(&index->asked_on_device),
	};
	(void)pthread_mutex_unlock(&index->copy_lock);
	for (int i = 0; i < PFS_PREFIX_SECTIONS; i++) {
		bool is_list = i == PFS_PREFIX_RECORDS || i == PFS_PREFIX_ENTRIES;

		*(is_list ? &info->list_bytes : &info->tree_bytes) += tree->sections[i].used;
	}
	(void)pthread_rwlock_unlock(&index->lock);
}

int pfs_prefix_verify_tree(const struct pfs_prefix_tree *tree)
{
	PFS_TRY(tree->view.is_compact ? pfs_prefix_compact_verify(tree)
				      : pfs_prefix_tree_verify(tree));
	return pfs_prefix_lists_verify(tree);
}

int pfs_prefix_verify(struct pfs_prefix *index)
{
	int error;

	(void)pthread_rwlock_rdlock(&index->lock);
	error = pfs_prefix_verify_tree(&index->tree);
	(void)pthread_rwlock_unlock(&index->lock);
	return error;
}
