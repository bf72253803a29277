/* SPDX-License-Identifier: MIT */
/* The device is filled while the tree changes: its pairs and parents are copied in many holds, and
 * so they are of several moments.  What changes is gathered from before the first hold on, and is
 * sent behind them: the last change of a pair, or of a parent, says what it is, whatever was
 * copied. */
#include "fs/image/device_lookup_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "fs/image/image.h"
#include "fs/tree/tree_impl.h"

#define CHANGES_MAX ((size_t)1 << 20) /* beyond it filling anew is faster */
#define FEW	    4096u  /* changes that whoever asks sends in his hold */
#define PIECE	    16384u /* pairs, or parents, that are copied in one hold */

#define NO_MEMORY "no memory for the device's index of names"

int pfs_device_give_up(struct pfs_device_lookup *single, const char *why)
{
	if (!atomic_exchange(&single->is_given_up, true) && why)
		pfs_warning("%s; single questions go on on the processor", why);
	return -EIO;
}

void pfs_device_follow_note(struct pfs_device_lookup *single,
			    const struct pfs_device_change *change)
{
	struct pfs_device_changes *changes = &single->changes;

	atomic_store(&single->is_current, false);
	if (changes->n == CHANGES_MAX ||
	    pfs_grow(&changes->list, &changes->capacity, changes->n + 1, sizeof(*changes->list))) {
		atomic_store(&single->state, PFS_DEVICE_EMPTY);
		changes->n = 0;
		return;
	}
	changes->list[changes->n] = *change;
	changes->list[changes->n].number = (uint32_t)changes->n;
	changes->n++;
}

/* ---- sending changes ---- */

static int by_pair(const void *a, const void *b)
{
	const struct pfs_device_change *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static int by_slot(const void *a, const void *b)
{
	const struct pfs_device_change *x = a, *y = b;

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
		   struct pfs_device_change *changes, size_t n)
{
	qsort(changes, n, sizeof(*changes), by_pair);
	for (size_t i = 0; i < n; i++) {
		const struct pfs_device_change *c = &changes[i];

		out->moves_directories |= c->is_gone && c->is_directory;
		if (i + 1 < n && c[1].key == c->key && c[1].slot == c->slot)
			continue;
		if (c->is_gone) {
			lists->gone_keys[out->n_gone] = c->key;
			lists->gone_slots[out->n_gone++] = c->slot;
		} else {
			lists->new_keys[out->n_new] = c->key;
			lists->new_slots[out->n_new++] = c->slot;
			out->n_directories += c->is_directory;
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

static int apply(struct pfs_device_lookup *single, struct pfs_device_changes *changes)
{
	struct lists lists;
	void *memory PFS_FREE = make_lists(&lists, changes->n);
	struct pfs_resident_changes sums = {
		.gone_keys = lists.gone_keys,
		.new_keys = lists.new_keys,
		.gone_values = lists.gone_slots,
		.new_values = lists.new_slots,
		.slots = lists.slots,
		.parents = lists.parents,
		.end = changes->end,
	};

	if (!memory)
		return pfs_device_give_up(single, NO_MEMORY);
	sum_up(&sums, &lists, changes->list, changes->n);
	changes->n = 0;
	return pfs_resident_apply(single->resident, &sums);
}

/* Has whoever asks do without the device; single->lock and any tree->lock are held. */
static void leave(struct pfs_device_lookup *single)
{
	(void)pfs_device_give_up(single, NULL);
	atomic_store(&single->state, PFS_DEVICE_EMPTY);
	single->changes.n = 0;
}

int pfs_device_follow(const struct pfs_tree *tree)
{
	struct pfs_device_lookup *single = tree->single;
	enum pfs_device_state state;
	int error = 0;
	PFS_LOCKED(&single->lock);

	state = atomic_load(&single->state);
	if (state != PFS_DEVICE_FILLED || single->changes.n > FEW) {
		single->is_wanted |= state != PFS_DEVICE_BUSY;
		(void)pthread_cond_signal(&single->wanted);
		return -EAGAIN;
	}
	single->changes.end = tree->image.end;
	if (single->changes.n)
		error = apply(single, &single->changes);
	if (error)
		leave(single);
	atomic_store(&single->is_current, !error);
	return error;
}

/* ---- the thread ---- */

struct copy {
	uint64_t *keys;
	uint32_t *slots, *parents;
	size_t n, n_parents;
	size_t keys_capacity, slots_capacity, parents_capacity;
};

static void free_copy(struct copy *copy)
{
	free(copy->keys);
	free(copy->slots);
	free(copy->parents);
}

/* Copies pairs behind those that it has; 0: there are no more. */
static int copy_pairs(struct pfs_tree *tree, struct copy *copy)
{
	size_t n = copy->n, most = n + PIECE, got;
	struct pfs_btree_cursor cursor;

	PFS_TRY(pfs_grow(&copy->keys, &copy->keys_capacity, most, sizeof(*copy->keys)));
	PFS_TRY(pfs_grow(&copy->slots, &copy->slots_capacity, most, sizeof(*copy->slots)));
	pfs_hold_read(tree, __func__);
	pfs_btree_seek(tree->image.by_name, &cursor, n ? copy->keys[n - 1] : 0,
		       n ? copy->slots[n - 1] + 1 : 0);
	got = pfs_btree_read(tree->image.by_name, &cursor, copy->keys + n, copy->slots + n, PIECE,
			     UINT64_MAX);
	pfs_hold_end(tree);
	copy->n += got;
	return got == PIECE;
}

/* The same of parents. */
static int copy_parents(struct pfs_tree *tree, struct copy *copy)
{
	const struct pfs_image *image = &tree->image;
	size_t from = copy->n_parents, n;

	PFS_TRY(pfs_grow(&copy->parents, &copy->parents_capacity, from + PIECE,
			 sizeof(*copy->parents)));
	pfs_hold_read(tree, __func__);
	n = PFS_MIN(image->end - from, (size_t)PIECE);
	memcpy(copy->parents + from, image->parent + from, n * sizeof(*copy->parents));
	pfs_hold_end(tree);
	copy->n_parents += n;
	return n == PIECE;
}

/* Pairs first: each of their slots is then among those of the parents.  1: the tree is closed. */
static int copy_all(struct pfs_tree *tree, struct copy *copy)
{
	static int (*const steps[])(struct pfs_tree *tree, struct copy *copy) = {copy_pairs,
										  copy_parents};

	for (size_t i = 0; i < PFS_COUNT(steps); i++) {
		int more = 1;

		while (more) {
			if (atomic_load(&tree->single->stops))
				return 1;
			more = steps[i](tree, copy);
			if (more < 0)
				return pfs_device_give_up(tree->single, NO_MEMORY);
		}
	}
	return 0;
}

static int fill(struct pfs_tree *tree)
{
	struct copy copy = {.n = 0};
	int error = copy_all(tree, &copy);

	if (!error)
		error = pfs_resident_load(tree->single->resident,
					  &(struct pfs_resident_load){.parent = copy.parents,
								      .n_slots = copy.n_parents,
								      .keys = copy.keys,
								      .values = copy.slots,
								      .n = copy.n});
	free_copy(&copy);
	return error;
}

enum work { NOTHING, FILL, APPLY };

/* What is to be done outside of holds; *taken are the changes. */
static enum work take_work(struct pfs_tree *tree, struct pfs_device_changes *taken)
{
	struct pfs_device_lookup *single = tree->single;
	enum work work = NOTHING;

	pfs_hold_read(tree, __func__);
	(void)pthread_mutex_lock(&single->lock);
	if (atomic_load(&single->state) == PFS_DEVICE_EMPTY) {
		work = FILL;
	} else if (single->changes.n > FEW) {
		const struct pfs_device_changes changes = single->changes;

		single->changes = *taken;
		*taken = changes;
		taken->end = tree->image.end;
		work = APPLY;
	}
	atomic_store(&single->state, work == NOTHING ? PFS_DEVICE_FILLED : PFS_DEVICE_BUSY);
	(void)pthread_mutex_unlock(&single->lock);
	pfs_hold_end(tree);
	return work;
}

/* Sends what the device lacks until little is missing. */
static void catch_up(struct pfs_tree *tree)
{
	struct pfs_device_lookup *single = tree->single;
	struct pfs_device_changes taken = {.list = NULL};
	enum work work;
	int error = 0;

	while (!error && (work = take_work(tree, &taken)) != NOTHING)
		error = work == FILL ? fill(tree) : apply(single, &taken);
	free(taken.list);
	if (error >= 0)
		return;
	pfs_hold_read(tree, __func__);
	(void)pthread_mutex_lock(&single->lock);
	leave(single);
	(void)pthread_mutex_unlock(&single->lock);
	pfs_hold_end(tree);
}

static void *keep(void *arg)
{
	struct pfs_tree *tree = arg;
	struct pfs_device_lookup *single = tree->single;

	(void)pthread_mutex_lock(&single->lock);
	while (!atomic_load(&single->stops)) {
		if (!single->is_wanted) {
			(void)pthread_cond_wait(&single->wanted, &single->lock);
			continue;
		}
		single->is_wanted = false;
		(void)pthread_mutex_unlock(&single->lock);
		catch_up(tree);
		(void)pthread_mutex_lock(&single->lock);
	}
	(void)pthread_mutex_unlock(&single->lock);
	return NULL;
}

void pfs_device_follow_start(struct pfs_tree *tree)
{
	static const struct pfs_thread_kind kind = {"pfs-names", PFS_THREAD_NICE, 0};
	struct pfs_device_lookup *single = tree->single;

	single->has_thread = pfs_thread_start(&single->thread, &kind, keep, tree) == 0;
	if (!single->has_thread)
		(void)pfs_device_give_up(single, "no thread for the device's index of names");
}

void pfs_device_follow_stop(struct pfs_device_lookup *single)
{
	if (!single->has_thread)
		return;
	(void)pthread_mutex_lock(&single->lock);
	atomic_store(&single->stops, true);
	(void)pthread_cond_signal(&single->wanted);
	(void)pthread_mutex_unlock(&single->lock);
	(void)pthread_join(single->thread, NULL);
}
