/* SPDX-License-Identifier: MIT */
#include "fs/image/device_lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "fs/image/device_lookup_impl.h"
#include "fs/image/feed.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"
#include "gpu/path_table.h"

#define NOWHERE "the device named a node that is not there"

static const enum pfs_mailbox_op ops[PFS_QUESTION_KINDS] = {
	[PFS_QUESTION_LOOKUP] = PFS_MAILBOX_LOOKUP,	[PFS_QUESTION_LIST] = PFS_MAILBOX_LIST,
	[PFS_QUESTION_ANCESTOR] = PFS_MAILBOX_ANCESTOR, [PFS_QUESTION_MOVE] = PFS_MAILBOX_MOVE,
	[PFS_QUESTION_CHILD] = PFS_MAILBOX_CHILD,	[PFS_QUESTION_COMMON] = PFS_MAILBOX_COMMON,
	[PFS_QUESTION_CODE] = PFS_MAILBOX_OPS, /* the engine's */
	[PFS_QUESTION_PATH] = PFS_MAILBOX_OPS, /* of another kernel */
	[PFS_QUESTION_TEXT] = PFS_MAILBOX_OPS, /* the engine's */
};

const char *pfs_device_lookup_name(enum pfs_device_lookup_kind kind)
{
	static const char *const names[PFS_QUESTION_KINDS] = {
		"lookup", "list", "ancestor", "move", "child", "common", "code", "path", "text"};

	return names[kind];
}

/* ---- changes; tree->lock held for writing ---- */

static void note_place(struct pfs_tree *tree, uint32_t slot, bool is_gone)
{
	const struct pfs_image *image = &tree->image;
	size_t len;
	const char *name;

	if (!pfs_device_follows(tree->single) || !pfs_image_is_live(image, slot))
		return;
	name = pfs_names_get(image->names, image->name[slot], &len);
	pfs_device_follow_note(
		tree->single,
		&(struct pfs_device_change){
			.key = pfs_image_key(image->parent[slot], pfs_image_hash(tree, name, len)),
			.slot = slot,
			.parent = is_gone ? PFS_NO_SLOT : image->parent[slot],
			.is_gone = is_gone,
			.is_directory = S_ISDIR(image->mode[slot]),
		});
}

static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	note_place(tree, slot, true);
}

static void changed(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	note_place(tree, slot, false);
}

/* ---- questions ---- */

bool pfs_device_lookup_is_there(const struct pfs_tree *tree)
{
	return tree->single && tree->single->resident;
}

/* False: the device is not to be asked. */
static bool begin(const struct pfs_tree *tree, uint64_t *began)
{
	const struct pfs_device_lookup *single = tree->single;

	if (!pfs_device_lookup_is_there(tree) || tree->image.copy ||
	    atomic_load(&single->is_given_up))
		return false;
	*began = pfs_now_ns();
	return atomic_load(&single->is_current) || pfs_device_follow(tree) == 0;
}

static bool end(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind, int error,
		uint64_t began)
{
	if (error)
		(void)pfs_device_give_up(tree->single, NULL);
	else
		pfs_device_lookup_count(tree, kind, true, pfs_now_ns() - began);
	return !error;
}

/* The entries of an answer, if the tree has them. */
static int take_entries(const struct pfs_tree *tree, struct pfs_btree_entry *out, unsigned *n,
			const struct pfs_mailbox_answer *answer)
{
	const struct pfs_image *image = &tree->image;
	int error = 0;

	for (unsigned i = 0; !error && i < answer->n; i++) {
		out[i] = (struct pfs_btree_entry){answer->keys[i], answer->values[i]};
		if (answer->values[i] >= image->end || !pfs_image_is_live(image, answer->values[i]))
			error = pfs_device_give_up(tree->single, NOWHERE);
	}
	*n = answer->n;
	return error;
}

bool pfs_device_lookup_entries(const struct pfs_tree *tree, struct pfs_btree_entry *out,
			       unsigned *n, enum pfs_device_lookup_kind kind,
			       const struct pfs_btree_entry *from, uint64_t last, unsigned capacity)
{
	struct pfs_mailbox_question question;
	struct pfs_mailbox_answer answer;
	uint64_t began;
	int error;

	if (!begin(tree, &began))
		return false;
	question = (struct pfs_mailbox_question){
		.op = ops[kind],
		.capacity = PFS_MIN(capacity, PFS_MAILBOX_ENTRIES),
		.first = from->key,
		.value = from->slot,
		.last = last,
	};
	error = pfs_resident_ask(tree->single->resident, &answer, &question, NULL);
	error = error ? error : take_entries(tree, out, n, &answer);
	return end(tree, kind, error, began);
}

bool pfs_device_lookup_path(const struct pfs_tree *tree, struct pfs_btree_entry *out, unsigned *n,
			    const struct pfs_device_path *path, unsigned capacity)
{
	const struct pfs_image *image = &tree->image;
	const size_t directory_len = path->directory_len;
	const size_t len = path->len > PFS_MAILBOX_PATH_MAX ? 0 : path->len;
	struct pfs_mailbox_question question;
	struct pfs_mailbox_answer answer;
	uint64_t began, seed, whole;
	int error;

	if (directory_len == 0 || directory_len > PFS_MAILBOX_PATH_MAX ||
	    !pfs_resident_knows_paths(tree->single->resident) || !begin(tree, &began))
		return false;
	seed = pfs_store_seed(tree->store);
	whole = pfs_path_hash(seed, path->path, (uint32_t)len);
	question = (struct pfs_mailbox_question){
		.op = PFS_MAILBOX_PATH,
		.capacity = PFS_MIN(capacity, PFS_MAILBOX_ENTRIES),
		.first = path->hash,
		.last = pfs_path_hash(seed, path->path, (uint32_t)directory_len),
		.value = (uint32_t)directory_len,
		.b = PFS_NAME_HASH_BITS,
		.a = (uint32_t)whole,
		.a_top = (uint32_t)(whole >> 32),
		.b_top = (uint32_t)len,
	};
	error = pfs_resident_ask(tree->single->resident, &answer, &question, path->path);
	error = error ? error : take_entries(tree, out, n, &answer);
	/* The server knows files, too: what is below one is not its to say. */
	if (!error && (answer.a >= image->end || !S_ISDIR(image->mode[answer.a])))
		return false;
	return end(tree, PFS_QUESTION_LOOKUP, error, began);
}

bool pfs_device_lookup_is_under(const struct pfs_tree *tree, bool *under,
				enum pfs_device_lookup_kind kind, uint32_t slot, uint32_t top)
{
	uint64_t began;

	return begin(tree, &began) &&
	       end(tree, kind,
		   pfs_resident_is_under(tree->single->resident, under, ops[kind], slot, top),
		   began);
}

bool pfs_device_lookup_is_child(const struct pfs_tree *tree, bool *child, uint32_t slot,
				uint32_t parent)
{
	const struct pfs_mailbox_question question = {
		.op = PFS_MAILBOX_CHILD, .a = slot, .b = parent};
	struct pfs_mailbox_answer answer = {.n = 0};
	uint64_t began;
	int error;

	if (!begin(tree, &began))
		return false;
	error = pfs_resident_ask(tree->single->resident, &answer, &question, NULL);
	*child = answer.a;
	return end(tree, PFS_QUESTION_CHILD, error, began);
}

bool pfs_device_lookup_common(const struct pfs_tree *tree, uint32_t *common, uint32_t a, uint32_t b)
{
	uint64_t began;
	int error;

	if (!begin(tree, &began))
		return false;
	error = pfs_resident_common(tree->single->resident, common, a, b);
	if (!error && (*common >= tree->image.end || !pfs_image_is_live(&tree->image, *common)))
		error = pfs_device_give_up(tree->single, NOWHERE);
	return end(tree, PFS_QUESTION_COMMON, error, began);
}

/* ---- many paths ---- */

static void leave_paths(struct pfs_device_lookup *single, int error)
{
	if (error == -EIO)
		(void)pfs_device_give_up(single, NULL); /* its failure has been told */
	else if (!atomic_exchange(&single->had_no_paths, true))
		pfs_warning("too little memory for the device to resolve paths: the processor does "
			    "while it is so");
}

bool pfs_device_paths_take(const struct pfs_tree *tree, struct pfs_resident_paths **out)
{
	struct pfs_device_lookup *single = tree->single;
	int error;

	if (!pfs_device_lookup_is_there(tree) || tree->image.copy ||
	    atomic_load(&single->is_given_up))
		return false;
	error = pfs_resident_paths_take(single->resident, out);
	if (error && error != -EBUSY)
		leave_paths(single, error);
	return !error;
}

void pfs_device_paths_return(const struct pfs_tree *tree, const struct pfs_resident_paths *paths)
{
	pfs_resident_paths_return(tree->single->resident, paths);
}

/* The device has the tree's names and parents as they are, since the tree is held. */
int pfs_device_paths_resolve(const struct pfs_tree *tree, struct pfs_resident_paths *paths,
			     uint32_t top)
{
	const struct pfs_image *image = &tree->image;
	struct pfs_device_lookup *single = tree->single;
	struct pfs_names_view names;
	const struct pfs_resident_columns columns = {
		.names = &names,
		.prime = image->prime,
		.place_stamps = pfs_feed_stamps(image, PFS_COLUMN_NUMBER_NAME),
		.prime_stamps = pfs_feed_stamps(image, PFS_COLUMN_NUMBER_PRIME),
		.seed = pfs_store_seed(tree->store),
		.hash_bits = PFS_NAME_HASH_BITS,
		.root = image->root,
		.top = top,
	};
	uint64_t began;
	int error;

	if (!begin(tree, &began))
		return -EOPNOTSUPP;
	pfs_names_view(image->names, &names);
	names.place = image->name;
	names.n_slots = image->end;
	error = pfs_resident_resolve(single->resident, paths, &columns, PFS_DEVICE_PATHS_SENT);
	if (!error)
		pfs_device_lookup_count_many(tree, PFS_QUESTION_PATH, true, paths->n,
					     pfs_now_ns() - began);
	if (!error || error == -EAGAIN)
		return error;
	if (error != -EOPNOTSUPP)
		leave_paths(single, error);
	return -EOPNOTSUPP;
}

/* ---- figures ---- */

/* Adds n questions, of which so many took ns together. */
static void add(struct pfs_device_counter *counter, uint64_t n, uint64_t timed, uint64_t ns)
{
	atomic_fetch_add_explicit(&counter->n, n, memory_order_relaxed);
	if (!ns)
		return;
	atomic_fetch_add_explicit(&counter->timed, timed, memory_order_relaxed);
	atomic_fetch_add_explicit(&counter->ns, ns, memory_order_relaxed);
}

void pfs_device_lookup_count(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind,
			     bool on_device, uint64_t ns)
{
	pfs_device_lookup_count_many(tree, kind, on_device, 1, ns);
}

void pfs_device_lookup_count_many(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind,
				  bool on_device, uint64_t n, uint64_t ns)
{
	struct pfs_device_lookup *single = tree->single;

	if (single && !tree->image.copy)
		add(on_device ? &single->device[kind] : &single->host[kind], n, n, ns);
}

uint64_t pfs_device_lookup_host_begin(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind)
{
	struct pfs_device_lookup *single = tree->single;

	if (!single || tree->image.copy ||
	    atomic_fetch_add_explicit(&single->host[kind].n, 1, memory_order_relaxed) %
		    PFS_QUESTION_TIMED)
		return 0;
	return pfs_now_ns();
}

void pfs_device_lookup_host_end(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind,
				uint64_t began)
{
	if (began)
		add(&tree->single->host[kind], 0, 1, pfs_now_ns() - began);
}

static void read_counter(struct pfs_device_lookup_count *out,
			 const struct pfs_device_counter *counter)
{
	out->n = atomic_load(&counter->n);
	out->timed = atomic_load(&counter->timed);
	out->ns = atomic_load(&counter->ns);
}

void pfs_device_lookup_stats(struct pfs_tree *tree, struct pfs_device_lookup_stats *out)
{
	struct pfs_device_lookup *single = tree->single;

	*out = (struct pfs_device_lookup_stats){.by_device = false};
	for (unsigned kind = 0; kind < PFS_QUESTION_KINDS; kind++) {
		read_counter(&out->host[kind], &single->host[kind]);
		read_counter(&out->device[kind], &single->device[kind]);
	}
	if (!single->resident)
		return;
	pfs_resident_describe(single->resident, &out->info);
	out->by_device = atomic_load(&single->state) == PFS_DEVICE_FILLED &&
			 !atomic_load(&single->is_given_up);
}

/* ---- life ---- */

/* Asks the device for all that it has. */
static bool check_entries(const struct pfs_tree *tree)
{
	struct pfs_btree_entry some[PFS_MAILBOX_ENTRIES], from = {0, 0}, entry;
	struct pfs_btree_cursor cursor;
	unsigned n = PFS_MAILBOX_ENTRIES;

	pfs_btree_seek(tree->image.by_name, &cursor, 0, 0);
	while (n == PFS_MAILBOX_ENTRIES) {
		if (!pfs_device_lookup_entries(tree, some, &n, PFS_QUESTION_LIST, &from, UINT64_MAX,
					       PFS_MAILBOX_ENTRIES))
			return atomic_load(&tree->single->is_given_up);
		for (unsigned i = 0; i < n; i++)
			if (!pfs_btree_next(tree->image.by_name, &cursor, &entry) ||
			    entry.key != some[i].key || entry.slot != some[i].slot)
				return false;
		if (n)
			from = (struct pfs_btree_entry){some[n - 1].key, some[n - 1].slot + 1};
	}
	return !pfs_btree_next(tree->image.by_name, &cursor, &entry);
}

static bool check_parents(const struct pfs_tree *tree)
{
	for (uint32_t slot = 0; slot < tree->image.end; slot++) {
		bool child;

		if (pfs_image_is_live(&tree->image, slot) &&
		    pfs_device_lookup_is_child(tree, &child, slot, tree->image.parent[slot]) &&
		    !child)
			return false;
	}
	return true;
}

static bool check(struct pfs_tree *tree)
{
	struct pfs_device_lookup *single = tree->single;

	if (!single || !single->resident || single->falsified || pfs_device_follow(tree))
		return true;
	return check_entries(tree) && check_parents(tree);
}

static const struct pfs_watcher watcher = {
	.name = "the device's names",
	.columns = PFS_COLUMNS_PLACE,
	.changing = changing,
	.changed = changed,
	.check = check,
};

int pfs_device_lookup_create(struct pfs_tree *tree)
{
	tree->single = calloc(1, sizeof(*tree->single));
	if (!tree->single)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->single->lock, NULL);
	(void)pthread_cond_init(&tree->single->wanted, NULL);
	pfs_watch(tree, &watcher);
	return 0;
}

void pfs_device_lookup_destroy(struct pfs_tree *tree)
{
	struct pfs_device_lookup *single = tree->single;

	if (!single)
		return;
	pfs_device_follow_stop(single);
	pfs_resident_close(single->resident);
	free(single->changes.list);
	(void)pthread_cond_destroy(&single->wanted);
	(void)pthread_mutex_destroy(&single->lock);
	free(single);
	tree->single = NULL;
}

/* VERIFY builds: PRIMEFS_FALSIFY=lookup,move has the device answer these wrongly. What the engine's
 * kernels answer, who asks them falsifies. */
static void falsify(struct pfs_device_lookup *single)
{
#ifdef PFS_VERIFY
	const char *text = getenv("PRIMEFS_FALSIFY");
	uint32_t operations = 0;

	for (unsigned kind = 0; text && kind < PFS_QUESTION_KINDS; kind++) {
		if (!strstr(text, pfs_device_lookup_name(kind)))
			continue;
		single->falsified |= UINT32_C(1) << kind;
		if (kind != PFS_QUESTION_CODE && kind != PFS_QUESTION_TEXT)
			operations |= UINT32_C(1) << ops[kind];
		if (kind == PFS_QUESTION_LOOKUP)
			operations |= UINT32_C(1) << PFS_MAILBOX_PATH;
	}
	pfs_resident_falsify(single->resident, operations);
#else
	(void)single;
#endif
}

bool pfs_device_lookup_is_falsified(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind)
{
	return tree->single && tree->single->falsified >> kind & 1;
}

void pfs_device_lookup_start(struct pfs_tree *tree)
{
	struct pfs_device_lookup *single = tree->single;

	if (tree->options.engine != PFS_ENGINE_CUDA || single->resident)
		return;
	if (pfs_resident_open(&single->resident)) {
		pfs_warning("single questions are answered by the processor: there is no device "
			    "for them");
		return;
	}
	falsify(single);
	pfs_device_follow_start(tree);
}
