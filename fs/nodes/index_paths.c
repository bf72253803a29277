/* SPDX-License-Identifier: MIT */
#include "fs/nodes/index_paths_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "fs/image/names.h"
#include "meta/store.h"

#define QUESTIONS    2u /* that an index is made for */
#define CHANGED_MIN  65536u
#define CHANGED_PART 16u    /* of the nodes: so many may have changed besides */
#define PIECE	     16384u /* slots read in one hold of the tree */
#define APPLIED	     512u   /* changes applied in one hold */
#define KEY_BYTES    64u    /* of memory, about, beside the name */

static const struct pfs_run host = {.on = PFS_ENGINE_HOST};
static const struct pfs_prefix_shape shape = {
	.type = PFS_PREFIX_BYTES, .layout = PFS_PREFIX_COMPACT, .bits = 2};

/* ---- keys ---- */

void pfs_path_keys_finish(struct pfs_path_keys *keys)
{
	free(keys->bytes);
	free(keys->at);
	free(keys->slots);
	*keys = (struct pfs_path_keys){.bytes = NULL};
}

void pfs_path_keys_cut(struct pfs_path_keys *keys, size_t n)
{
	if (keys->at)
		keys->size = keys->at[n];
	keys->n = n;
}

static int add_key(struct pfs_path_keys *keys, uint32_t directory, const char *name, size_t len,
		   uint32_t slot)
{
	PFS_TRY(pfs_grow(&keys->bytes, &keys->capacity, keys->size + PFS_PATH_KEY_SIZE, 1));
	PFS_TRY(pfs_grow(&keys->at, &keys->at_capacity, keys->n + 2, sizeof(*keys->at)));
	PFS_TRY(pfs_grow(&keys->slots, &keys->slots_capacity, keys->n + 1, sizeof(*keys->slots)));
	keys->at[keys->n] = keys->size;
	keys->slots[keys->n++] = slot;
	keys->size += pfs_path_key(keys->bytes + keys->size, directory, name, len);
	keys->at[keys->n] = keys->size;
	return 0;
}

int pfs_path_keys_add(struct pfs_path_keys *keys, const struct pfs_image *image, uint32_t slot)
{
	char inside[PFS_NAME_MAX + 1];
	const char *name;
	size_t len;

	if (!pfs_image_is_live(image, slot) || slot == image->root)
		return 0;
	name = pfs_names_get(image->names, image->name[slot], &len);
	PFS_TRY(add_key(keys, image->parent[slot], name, len, slot));
	if (!S_ISDIR(image->mode[slot]))
		return 0;
	memcpy(inside, name, len);
	inside[len] = '/';
	return add_key(keys, image->parent[slot], inside, len + 1, slot);
}

static struct pfs_prefix_keys batch_of(const struct pfs_path_keys *keys, size_t from)
{
	return (struct pfs_prefix_keys){keys->bytes, keys->at + from, keys->n - from};
}

int pfs_path_keys_insert(struct pfs_prefix *prefix, const struct pfs_path_keys *keys)
{
	const struct pfs_prefix_keys batch = batch_of(keys, 0);
	uint64_t n;

	return keys->n ? pfs_prefix_insert(&host, prefix, &n, &batch, keys->slots) : 0;
}

/* Returns true if the prefix tree has the key with this slot. It may have it with others, too,
 * which had the key before and whose changes are not applied yet. */
static bool has_key(struct pfs_prefix *prefix, const struct pfs_prefix_keys *key, uint64_t slot)
{
	size_t len = key->at[1] - key->at[0];
	struct pfs_prefix_entry found;
	int there = pfs_prefix_seek(prefix, &found, key);

	while (there == 1 && found.len == len &&
	       memcmp(found.key, (const uint8_t *)key->keys + key->at[0], len) == 0) {
		if (found.payload == slot)
			return true;
		there = pfs_prefix_next(prefix, &found);
	}
	return false;
}

bool pfs_path_keys_are_in(struct pfs_prefix *prefix, const struct pfs_path_keys *keys)
{
	for (size_t i = 0; i < keys->n; i++) {
		const struct pfs_prefix_keys key = {keys->bytes, keys->at + i, 1};

		if (!has_key(prefix, &key, keys->slots[i]))
			return false;
	}
	return true;
}

int pfs_path_prefix_create(struct pfs_prefix **out)
{
	return pfs_prefix_create(&host, out, &shape);
}

void pfs_path_prefix_close(struct pfs_prefix *prefix)
{
	pfs_prefix_close(&host, prefix);
}

/* ---- life ---- */

void pfs_path_entries_unref(struct pfs_path_entries *entries)
{
	if (!entries || atomic_fetch_sub(&entries->users, 1) != 1)
		return;
	pfs_path_prefix_close(entries->prefix);
	(void)pthread_mutex_destroy(&entries->lock);
	pfs_path_keys_finish(&entries->old);
	free(entries->noted);
	free(entries->changes);
	free(entries);
}

/* Gives the index up, if that is the one there is; who holds the tree does not free it, which takes
 * a while. */
static void forget(struct pfs_path_index *index, struct pfs_path_entries *entries)
{
	struct pfs_path_entries *before = NULL;

	(void)pthread_mutex_lock(&index->lock);
	if (entries && index->now == entries) {
		before = index->given_up;
		index->given_up = PFS_TAKE(index->now);
		atomic_store(&index->is_watching, false);
		atomic_store(&index->missed, 0);
	}
	(void)pthread_mutex_unlock(&index->lock);
	pfs_path_entries_unref(before);
}

static void clear_away(struct pfs_path_index *index)
{
	struct pfs_path_entries *entries;

	(void)pthread_mutex_lock(&index->lock);
	entries = PFS_TAKE(index->given_up);
	(void)pthread_mutex_unlock(&index->lock);
	pfs_path_entries_unref(entries);
}

static struct pfs_path_entries *take(struct pfs_path_index *index)
{
	struct pfs_path_entries *entries;
	PFS_LOCKED(&index->lock);

	entries = index->now;
	if (entries)
		atomic_fetch_add(&entries->users, 1);
	return entries;
}

/* ---- changes ---- */

static bool is_noted(const struct pfs_path_entries *entries, uint32_t slot)
{
	return slot / 64 < entries->words && entries->noted[slot / 64] >> slot % 64 & 1;
}

static int note(struct pfs_path_entries *entries, const struct pfs_image *image, uint32_t slot)
{
	const struct pfs_path_change change = {slot, entries->old.n};
	size_t words = entries->words;

	PFS_TRY(pfs_grow(&entries->changes, &entries->capacity, entries->n_changes + 1,
			 sizeof(*entries->changes)));
	if (slot / 64 >= words) {
		PFS_TRY(pfs_grow(&entries->noted, &words, slot / 64 + 1, sizeof(*entries->noted)));
		memset(entries->noted + entries->words, 0,
		       (words - entries->words) * sizeof(*entries->noted));
		entries->words = words;
	}
	PFS_TRY(pfs_path_keys_add(&entries->old, image, slot));
	entries->noted[slot / 64] |= UINT64_C(1) << slot % 64;
	entries->changes[entries->n_changes++] = change;
	return 0;
}

PFS_SELDOM static void follow(struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_path_index *index = tree->path_index;
	struct pfs_path_entries *entries = take(index); /* it may have been given up meanwhile */

	if (entries && (slot < entries->made_to || atomic_load(&entries->is_made)) &&
	    !is_noted(entries, slot) &&
	    (entries->n_changes == entries->most || note(entries, &tree->image, slot)))
		forget(index, entries);
	pfs_path_entries_unref(entries);
}

static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	if (atomic_load_explicit(&tree->path_index->is_watching, memory_order_relaxed))
		follow(tree, slot);
}

static bool is_too_large(const struct pfs_path_entries *entries)
{
	struct pfs_prefix_info info;

	pfs_prefix_describe(entries->prefix, &info);
	return info.tree_bytes + info.list_bytes >= pfs_quarter_of_memory();
}

/* Applies the last changes that were noted, `most` of them.  The tree is held, and
 * entries->lock. */
static int apply(struct pfs_path_entries *entries, const struct pfs_image *image, size_t most)
{
	size_t from = entries->n_changes - PFS_MIN(entries->n_changes, most), first;
	struct pfs_path_keys fresh = {.bytes = NULL};
	struct pfs_prefix_keys gone;
	int error = 0;
	uint64_t n;

	if (from == entries->n_changes)
		return 0;
	first = entries->changes[from].first_key;
	if (first < entries->old.n) {
		gone = batch_of(&entries->old, first);
		error = pfs_prefix_remove(&host, entries->prefix, &n, &gone,
					  entries->old.slots + first);
	}
	for (size_t i = from; i < entries->n_changes && !error; i++) {
		uint32_t slot = entries->changes[i].slot;

		entries->noted[slot / 64] &= ~(UINT64_C(1) << slot % 64);
		error = pfs_path_keys_add(&fresh, image, slot);
	}
	if (!error)
		error = pfs_path_keys_insert(entries->prefix, &fresh);
	if (!error && is_too_large(entries))
		error = -ENOMEM;
	pfs_path_keys_finish(&fresh);
	pfs_path_keys_cut(&entries->old, first);
	entries->n_changes = from;
	if (error)
		atomic_store(&entries->is_broken, true);
	return error;
}

/* Applies some of the changes. Returns true if none is left. */
static bool apply_some(struct pfs_tree *tree, struct pfs_path_entries *entries)
{
	bool done;

	(void)pthread_mutex_lock(&entries->lock);
	if (!atomic_load(&entries->is_broken))
		(void)apply(entries, &tree->image, APPLIED);
	done = entries->n_changes == 0;
	(void)pthread_mutex_unlock(&entries->lock);
	if (atomic_load(&entries->is_broken)) {
		pfs_warning("the path index is given up: memory is short, or it would take more "
			    "than a quarter");
		forget(tree->path_index, entries);
		done = true;
	}
	return done;
}

void pfs_path_index_follow(struct pfs_tree *tree)
{
	struct pfs_path_entries *entries;
	bool done;

	if (!tree->path_index)
		return;
	clear_away(tree->path_index);
	entries = take(tree->path_index);
	done = !entries || !atomic_load(&entries->is_made);
	while (!done) {
		(void)pfs_scan_lock(tree, __func__);
		done = apply_some(tree, entries);
		pfs_scan_unlock(tree);
	}
	pfs_path_entries_unref(entries);
}

static bool check_entries(struct pfs_tree *tree, struct pfs_path_entries *entries)
{
	struct pfs_path_keys keys = {.bytes = NULL};
	struct pfs_prefix_info info;
	size_t n = entries->old.n;
	bool right = true;

	for (uint32_t slot = 0; slot < tree->image.end && right; slot++) {
		pfs_path_keys_cut(&keys, 0);
		if (is_noted(entries, slot))
			continue;
		if (pfs_path_keys_add(&keys, &tree->image, slot))
			break;
		n += keys.n;
		right = pfs_path_keys_are_in(entries->prefix, &keys);
	}
	pfs_prefix_describe(entries->prefix, &info);
	right = right && info.n_payloads == n;
	pfs_path_keys_finish(&keys);
	return right;
}

static bool check(struct pfs_tree *tree)
{
	struct pfs_path_entries *entries = take(tree->path_index);
	bool right = true;

	if (entries && atomic_load(&entries->is_made)) {
		PFS_LOCKED(&entries->lock);
		right = atomic_load(&entries->is_broken) || check_entries(tree, entries);
	}
	pfs_path_entries_unref(entries);
	return right;
}

static const struct pfs_watcher watcher = {
	.name = "path index",
	.columns = PFS_COLUMNS_PLACE,
	.changing = changing,
	.check = check,
};

/* ---- making one ---- */

static int begin(struct pfs_tree *tree, struct pfs_path_entries **out)
{
	struct pfs_path_index *index = tree->path_index;
	struct pfs_path_entries *entries = calloc(1, sizeof(*entries));

	*out = NULL;
	if (!entries)
		return -ENOMEM;
	atomic_init(&entries->users, 2);
	(void)pthread_mutex_init(&entries->lock, NULL);
	if (pfs_path_prefix_create(&entries->prefix)) {
		atomic_store(&entries->users, 1);
		pfs_path_entries_unref(entries);
		return -ENOMEM;
	}
	(void)pfs_scan_lock(tree, __func__);
	entries->most = CHANGED_MIN + tree->image.nodes / CHANGED_PART;
	(void)pthread_mutex_lock(&index->lock);
	index->now = entries;
	atomic_store(&index->is_watching, true);
	(void)pthread_mutex_unlock(&index->lock);
	pfs_scan_unlock(tree);
	*out = entries;
	return 0;
}

/* The keys of the next slots, whose changes are noted from then on; *done: there are none, and
 * those of all before are in. */
static int read_some(struct pfs_tree *tree, struct pfs_path_entries *entries,
		     struct pfs_path_keys *keys, bool *done)
{
	const struct pfs_image *image = &tree->image;
	uint32_t to;
	int error = 0;

	(void)pfs_scan_lock(tree, __func__);
	to = PFS_MIN(entries->made_to + PIECE, image->end);
	*done = to == entries->made_to;
	for (uint32_t slot = entries->made_to; slot < to && !error; slot++)
		error = pfs_path_keys_add(keys, image, slot);
	entries->made_to = to;
	if (*done)
		atomic_store(&entries->is_made, true);
	pfs_scan_unlock(tree);
	return error;
}

static bool is_given_up(struct pfs_path_index *index, const struct pfs_path_entries *entries)
{
	PFS_LOCKED(&index->lock);
	return index->now != entries || atomic_load(&index->stop);
}

static int fill(struct pfs_tree *tree, struct pfs_path_entries *entries)
{
	struct pfs_path_keys keys = {.bytes = NULL};
	bool done = false;
	int error = 0;

	while (!error && !done) {
		error = read_some(tree, entries, &keys, &done);
		error = error ? error : pfs_path_keys_insert(entries->prefix, &keys);
		pfs_path_keys_cut(&keys, 0);
		if (!error && is_too_large(entries))
			error = -EFBIG;
		if (!error && is_given_up(tree->path_index, entries))
			error = -EAGAIN;
	}
	pfs_path_keys_finish(&keys);
	return error;
}

static int fail_for_room(void)
{
	pfs_warning("the path index is not made: it would take more than a quarter of the "
		    "machine's memory");
	return -ENOMEM;
}

/* Returns true if an index of so many nodes will not have too much memory, by the length of an
 * average name. */
static bool has_room(struct pfs_tree *tree, uint64_t *nodes)
{
	const struct pfs_image *image = &tree->image;
	uint64_t keys, names;

	(void)pfs_scan_lock(tree, __func__);
	*nodes = image->nodes;
	keys = image->nodes + image->directories;
	names = pfs_names_bytes(image->names);
	pfs_scan_unlock(tree);
	return *nodes < atomic_load(&tree->path_index->too_many) &&
	       keys * (KEY_BYTES + names / PFS_MAX(*nodes, 1)) < pfs_quarter_of_memory();
}

int pfs_path_index_make(struct pfs_tree *tree)
{
	struct pfs_path_index *index = tree->path_index;
	struct pfs_path_entries *entries;
	uint64_t nodes;
	bool is_there;
	int error;

	if (!index || !atomic_load(&index->is_wanted))
		return -ENOENT;
	PFS_LOCKED(&index->making);
	entries = take(index);
	is_there = entries != NULL;
	pfs_path_entries_unref(entries);
	if (is_there)
		return 0;
	if (!has_room(tree, &nodes))
		return fail_for_room();
	PFS_TRY(begin(tree, &entries));
	error = fill(tree, entries);
	if (error == -EFBIG) {
		atomic_store(&index->too_many, nodes);
		error = fail_for_room();
	}
	if (error)
		forget(index, entries);
	else
		atomic_fetch_add(&index->made, 1);
	pfs_path_entries_unref(entries);
	return error;
}

static void *make_main(void *arg)
{
	struct pfs_tree *tree = arg;

	if (pfs_path_index_make(tree))
		pfs_debug("the path index has not been made");
	pfs_path_index_follow(tree);
	atomic_store(&tree->path_index->thread_ended, true);
	return NULL;
}

/* Makes it in a thread, unless one does. */
static void start(struct pfs_tree *tree)
{
	static const struct pfs_thread_kind kind = {"pfs-path-index", PFS_THREAD_NICE, 0};
	struct pfs_path_index *index = tree->path_index;
	PFS_LOCKED(&index->lock);

	atomic_store(&index->missed, 0);
	if (index->now || !atomic_load(&index->is_wanted) || atomic_load(&index->stop))
		return;
	if (index->has_thread) {
		if (!atomic_load(&index->thread_ended))
			return;
		(void)pthread_join(index->thread, NULL);
	}
	atomic_store(&index->thread_ended, false);
	index->has_thread = pfs_thread_start(&index->thread, &kind, make_main, tree) == 0;
}

/* ---- the tree's ---- */

static int note_name(void *arg, const char *name PFS_UNUSED, size_t len PFS_UNUSED, bool is_newer)
{
	*(bool *)arg |= !is_newer;
	return 0;
}

int pfs_path_index_create(struct pfs_tree *tree)
{
	struct pfs_path_index *index = calloc(1, sizeof(*index));
	bool is_wanted = false;

	if (!index)
		return -ENOMEM;
	(void)pthread_mutex_init(&index->lock, NULL);
	(void)pthread_mutex_init(&index->making, NULL);
	atomic_init(&index->too_many, UINT64_MAX);
	tree->path_index = index;
	pfs_watch(tree, &watcher);
	PFS_TRY(pfs_store_scan_path_indexes(tree->store, note_name, &is_wanted));
	atomic_store(&index->is_wanted, is_wanted);
	return 0;
}

void pfs_path_index_destroy(struct pfs_tree *tree)
{
	struct pfs_path_index *index = tree->path_index;

	if (!index)
		return;
	atomic_store(&index->stop, true);
	if (index->has_thread)
		(void)pthread_join(index->thread, NULL);
	pfs_path_entries_unref(index->now);
	pfs_path_entries_unref(index->given_up);
	(void)pthread_mutex_destroy(&index->lock);
	(void)pthread_mutex_destroy(&index->making);
	free(index);
	tree->path_index = NULL;
}

void pfs_path_index_want(struct pfs_tree *tree, bool is_wanted, bool now)
{
	struct pfs_path_index *index = tree->path_index;
	struct pfs_path_entries *entries;

	atomic_store(&index->is_wanted, is_wanted);
	if (is_wanted) {
		if (now)
			start(tree);
		return;
	}
	atomic_store(&index->too_many, UINT64_MAX); /* who wants it again has perhaps made room */
	entries = take(index);
	forget(index, entries);
	pfs_path_entries_unref(entries);
	clear_away(index);
}

bool pfs_path_index_describe(struct pfs_tree *tree, struct pfs_path_index_info *info)
{
	struct pfs_path_index *index = tree->path_index;
	struct pfs_path_entries *entries = take(index);
	struct pfs_prefix_info prefix = {.n_payloads = 0};

	if (entries)
		pfs_prefix_describe(entries->prefix, &prefix);
	*info = (struct pfs_path_index_info){
		.state = !entries			 ? "wanted"
			 : atomic_load(&entries->is_made) ? "ready"
							  : "being made",
		.keys = prefix.n_payloads,
		.bytes = prefix.tree_bytes + prefix.list_bytes,
		.made = atomic_load(&index->made),
		.asked = atomic_load(&index->asked),
	};
	pfs_path_entries_unref(entries);
	return atomic_load(&index->is_wanted);
}

int pfs_path_entries_take(struct pfs_tree *tree, struct pfs_path_entries **out)
{
	struct pfs_path_index *index = tree->path_index;
	struct pfs_path_entries *entries;
	bool follows;

	*out = NULL;
	if (!index || !atomic_load_explicit(&index->is_wanted, memory_order_relaxed))
		return -ENOENT;
	entries = take(index);
	if (!entries && atomic_fetch_add(&index->missed, 1) + 1 >= QUESTIONS)
		start(tree);
	follows = entries && atomic_load(&entries->is_made) && apply_some(tree, entries) &&
		  !atomic_load(&entries->is_broken);
	if (!follows) {
		pfs_path_entries_unref(entries);
		return -ENOENT;
	}
	atomic_fetch_add(&index->asked, 1);
	*out = entries;
	return 0;
}
