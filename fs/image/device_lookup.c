/* SPDX-License-Identifier: MIT */
#include "fs/image/device_lookup.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

#define NOWHERE	    "the device named a node that is not there"
#define CHANGES_MAX ((size_t)1 << 20) /* beyond it loading anew is faster */

/* A pair of the index that came or went, and, unless PFS_MAILBOX_NONE, the slot's parent. */
struct change {
	uint64_t key;
	uint32_t slot, parent;
	uint32_t number; /* in order of time */
	bool is_gone;
};

struct counter {
	_Atomic uint64_t n, timed, ns;
};

struct pfs_device_lookup {
	/* NULL: nobody but the image answers.  Set before the tree has more than one user. */
	struct pfs_resident *resident;
	pthread_mutex_t lock; /* who brings the device up to date; after tree->lock */
	/* Written under tree->lock for writing, or by who holds `lock` and any tree->lock. */
	bool is_loaded;
	struct change *changes;
	size_t n_changes, capacity;
	_Atomic bool is_current; /* loaded, and no changes */
	_Atomic bool is_given_up;
	bool is_falsified;
	struct counter host[PFS_QUESTION_KINDS], device[PFS_QUESTION_KINDS];
};

static const enum pfs_mailbox_op ops[PFS_QUESTION_KINDS] = {
	[PFS_QUESTION_LOOKUP] = PFS_MAILBOX_LOOKUP,	[PFS_QUESTION_LIST] = PFS_MAILBOX_LIST,
	[PFS_QUESTION_ANCESTOR] = PFS_MAILBOX_ANCESTOR, [PFS_QUESTION_MOVE] = PFS_MAILBOX_MOVE,
	[PFS_QUESTION_CHILD] = PFS_MAILBOX_CHILD,	[PFS_QUESTION_COMMON] = PFS_MAILBOX_COMMON,
	[PFS_QUESTION_CODE] = PFS_MAILBOX_OPS, /* the engine's */
	[PFS_QUESTION_PATH] = PFS_MAILBOX_OPS, /* nobody's */
};

const char *pfs_device_lookup_name(enum pfs_device_lookup_kind kind)
{
	static const char *const names[PFS_QUESTION_KINDS] = {
		"lookup", "list", "ancestor", "move", "child", "common", "code", "path", "text"};

	return names[kind];
}

/* ---- changes; tree->lock held for writing ---- */

static void note(struct pfs_device_lookup *single, const struct change *change)
{
	atomic_store(&single->is_current, false);
	if (single->n_changes == CHANGES_MAX ||
	    pfs_grow(&single->changes, &single->capacity, single->n_changes + 1,
		     sizeof(*single->changes))) {
		single->is_loaded = false;
		single->n_changes = 0;
		return;
	}
	single->changes[single->n_changes] = *change;
	single->changes[single->n_changes].number = (uint32_t)single->n_changes;
	single->n_changes++;
}

static void note_place(struct pfs_tree *tree, uint32_t slot, bool is_gone)
{
	const struct pfs_image *image = &tree->image;
	size_t len;
	const char *name;

	if (!tree->single->is_loaded || !pfs_image_is_live(image, slot))
		return;
	name = pfs_names_get(image->names, image->name[slot], &len);
	note(tree->single,
	     &(struct change){
		     .key = pfs_image_key(image->parent[slot], pfs_image_hash(tree, name, len)),
		     .slot = slot,
		     .parent = is_gone ? PFS_NO_SLOT : image->parent[slot],
		     .is_gone = is_gone,
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

/* ---- giving up ---- */

/* The device's own failures have been told. */
static int give_up(struct pfs_device_lookup *single, const char *why)
{
	if (!atomic_exchange(&single->is_given_up, true) && why)
		pfs_warning("%s; single questions go on on the processor", why);
	return -EIO;
}

/* ---- bringing the device up to date; single->lock and any tree->lock are held ---- */

static int load(const struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;
	struct pfs_device_lookup *single = tree->single;
	size_t n = pfs_btree_count(image->by_name);
	uint64_t *keys PFS_FREE = malloc((n + 1) * sizeof(*keys));
	uint32_t *slots PFS_FREE = malloc((n + 1) * sizeof(*slots));
	struct pfs_btree_cursor cursor;

	if (!keys || !slots)
		return give_up(single, "no memory for the device's index of names");
	pfs_btree_seek(image->by_name, &cursor, 0, 0);
	n = pfs_btree_read(image->by_name, &cursor, keys, slots, n, UINT64_MAX);
	PFS_TRY(pfs_resident_load(single->resident,
				  &(struct pfs_resident_load){.parent = image->parent,
							      .n_slots = image->end,
							      .keys = keys,
							      .values = slots,
							      .n = n}));
	single->is_loaded = true;
	single->n_changes = 0;
	return 0;
}

static int by_pair(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static int by_slot(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* Room for each change in each list, one after the other in one allocation. */
struct lists {
	uint64_t *gone_keys, *new_keys;
	uint32_t *gone_slots, *new_slots, *slots, *parents;
};

static void *make_lists(struct lists *lists, size_t n)
{
	uint64_t *memory = malloc(n * (2 * sizeof(uint64_t) + 4 * sizeof(uint32_t)));

	*lists = (struct lists){.gone_keys = memory};
	if (!memory)
		return NULL;
	lists->new_keys = memory + n;
	lists->gone_slots = (uint32_t *)(memory + 2 * n);
	lists->new_slots = lists->gone_slots + n;
	lists->slots = lists->new_slots + n;
	lists->parents = lists->slots + n;
	return memory;
}

/* The last that happened to each pair, and each slot's last parent. */
static void sum_up(struct pfs_resident_changes *out, const struct lists *lists,
		   struct change *changes, size_t n)
{
	qsort(changes, n, sizeof(*changes), by_pair);
	for (size_t i = 0; i < n; i++) {
		const struct change *c = &changes[i];

		if (i + 1 < n && c[1].key == c->key && c[1].slot == c->slot)
			continue;
		if (c->is_gone) {
			lists->gone_keys[out->n_gone] = c->key;
			lists->gone_slots[out->n_gone++] = c->slot;
		} else {
			lists->new_keys[out->n_new] = c->key;
			lists->new_slots[out->n_new++] = c->slot;
		}
	}
	qsort(changes, n, sizeof(*changes), by_slot);
	for (size_t i = 0; i < n; i++) {
		if (i + 1 < n && changes[i + 1].slot == changes[i].slot)
			continue;
		lists->slots[out->n_slots] = changes[i].slot;
		lists->parents[out->n_slots++] = changes[i].parent;
	}
}

static int apply(const struct pfs_tree *tree)
{
	struct pfs_device_lookup *single = tree->single;
	struct lists lists;
	void *memory PFS_FREE = make_lists(&lists, single->n_changes);
	struct pfs_resident_changes changes = {
		.gone_keys = lists.gone_keys,
		.new_keys = lists.new_keys,
		.gone_values = lists.gone_slots,
		.new_values = lists.new_slots,
		.slots = lists.slots,
		.parents = lists.parents,
		.end = tree->image.end,
	};

	if (!memory)
		return give_up(single, "no memory for the device's index of names");
	sum_up(&changes, &lists, single->changes, single->n_changes);
	single->n_changes = 0;
	return pfs_resident_apply(single->resident, &changes);
}

static int bring_up_to_date(const struct pfs_tree *tree)
{
	struct pfs_device_lookup *single = tree->single;
	int error = 0;
	PFS_LOCKED(&single->lock);

	if (atomic_load(&single->is_current))
		return 0;
	if (!single->is_loaded)
		error = load(tree);
	else if (single->n_changes)
		error = apply(tree);
	if (error) {
		(void)give_up(single, NULL);
		single->is_loaded = false;
		single->n_changes = 0;
	}
	atomic_store(&single->is_current, !error);
	return error;
}

/* False: the device is not to be asked. */
static bool begin(const struct pfs_tree *tree, uint64_t *began)
{
	const struct pfs_device_lookup *single = tree->single;

	if (!single || !single->resident || tree->image.copy || atomic_load(&single->is_given_up))
		return false;
	*began = pfs_now_ns();
	return atomic_load(&single->is_current) || bring_up_to_date(tree) == 0;
}

static bool end(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind, int error,
		uint64_t began)
{
	if (error)
		(void)give_up(tree->single, NULL);
	else
		pfs_device_lookup_count(tree, kind, true, pfs_now_ns() - began);
	return !error;
}

/* ---- questions ---- */

bool pfs_device_lookup_entries(const struct pfs_tree *tree, struct pfs_btree_entry *out,
			       unsigned *n, enum pfs_device_lookup_kind kind,
			       const struct pfs_btree_entry *from, uint64_t last, unsigned capacity)
{
	const struct pfs_mailbox_question question = {
		.op = ops[kind],
		.capacity = PFS_MIN(capacity, PFS_MAILBOX_ENTRIES),
		.first = from->key,
		.value = from->slot,
		.last = last,
	};
	const struct pfs_image *image = &tree->image;
	struct pfs_mailbox_answer answer;
	uint64_t began;
	int error;

	if (!begin(tree, &began))
		return false;
	error = pfs_resident_ask(tree->single->resident, &answer, &question);
	for (unsigned i = 0; !error && i < answer.n; i++) {
		out[i] = (struct pfs_btree_entry){answer.keys[i], answer.values[i]};
		if (answer.values[i] >= image->end || !pfs_image_is_live(image, answer.values[i]))
			error = give_up(tree->single, NOWHERE);
	}
	*n = answer.n;
	return end(tree, kind, error, began);
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
	error = pfs_resident_ask(tree->single->resident, &answer, &question);
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
		error = give_up(tree->single, NOWHERE);
	return end(tree, PFS_QUESTION_COMMON, error, began);
}

/* ---- figures ---- */

/* Adds n questions, of which so many took ns together. */
static void add(struct counter *counter, uint64_t n, uint64_t timed, uint64_t ns)
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
	struct pfs_device_lookup *single = tree->single;

	if (single && !tree->image.copy)
		add(on_device ? &single->device[kind] : &single->host[kind], 1, 1, ns);
}

void pfs_device_lookup_count_many(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind,
				  uint64_t n, uint64_t ns)
{
	struct pfs_device_lookup *single = tree->single;

	if (single && !tree->image.copy)
		add(&single->host[kind], n, n, ns);
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

static void read_counter(struct pfs_device_lookup_count *out, const struct counter *counter)
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
	out->by_device = !atomic_load(&single->is_given_up);
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

	if (!single || !single->resident || single->is_falsified || !single->is_loaded)
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
	pfs_watch(tree, &watcher);
	return 0;
}

void pfs_device_lookup_destroy(struct pfs_tree *tree)
{
	struct pfs_device_lookup *single = tree->single;

	if (!single)
		return;
	pfs_resident_close(single->resident);
	free(single->changes);
	(void)pthread_mutex_destroy(&single->lock);
	free(single);
	tree->single = NULL;
}

/* VERIFY builds: PRIMEFS_FALSIFY=lookup,move has the device answer these wrongly. */
static void falsify(struct pfs_device_lookup *single)
{
#ifdef PFS_VERIFY
	const char *text = getenv("PRIMEFS_FALSIFY");
	uint32_t operations = 0;

	for (unsigned kind = 0; text && kind < PFS_QUESTION_CODE; kind++)
		if (strstr(text, pfs_device_lookup_name(kind)))
			operations |= UINT32_C(1) << ops[kind];
	single->is_falsified = operations;
	pfs_resident_falsify(single->resident, operations);
#else
	(void)single;
#endif
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
}
