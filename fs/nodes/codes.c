/* SPDX-License-Identifier: MIT */
/* The image's questions to the engine: which nodes lie under, above or directly below others.
 *
 * The engine is filled from a snapshot of the image by the first question, without tree->lock; from
 * that moment on changes are noted as deltas, under tree->lock, and applied before the next
 * question, many of them without it.  When there are too many of them, or no memory for them, the
 * engine is filled anew instead.
 *
 * Lock order: codes->lock -> tree->lock (for reading) -> codes->lease. The lock is held while the
 * engine is brought up to date. As long as the tree is held after that nothing changes, so that the
 * engine stays as it is, and any number of questions are answered without the lock: each answer is
 * one epoch. A question that has begun also has a lease, for which the engine stays as it is when
 * the tree has been let go. */
#include "fs/nodes/codes.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fs/image/image.h"
#include "fs/image/snapshot.h"
#include "fs/tree/tree_impl.h"

#define DECLINE	   16u /* questions that others can answer, before the engine is filled for them */
#define DELTAS_MAX ((size_t)1 << 20) /* beyond it filling anew is faster */
#define DELTAS_FEW ((size_t)1 << 13) /* applied by who holds the tree anyway, and */
#define SLOTS_FEW  (1u << 16)	     /* filled */
#define READ_WORDS (1u << 18)	     /* of a set in one copy: 2 MiB */
#define TRIES	   4u /* to leave little to do, beside somebody who writes, and */
#define BEGINNINGS 4u /* to find it so when the tree is held */

struct pfs_codes {
	pthread_mutex_t lock; /* one thread at a time brings the engine up to date */
	/* Held for reading by questions from begin to end; for writing, by who holds `lock`, where
	 * the engine changes. Nobody waits for it while the tree is held. */
	pthread_rwlock_t lease;
	struct pfs_engine *engine; /* NULL until the first question; protected by lock */
	/* The engine has all changes. Set by who holds `lock` and tree->lock for reading; cleared
	 * where a change is noted. Who holds tree->lock for reading and finds it set may ask the
	 * engine. */
	atomic_bool is_current;
	enum pfs_engine_kind kind; /* protected by lock */
	unsigned declined;	   /* protected by lock */
	bool loaded; /* the engine has the image, deltas aside, if `follows`; protected by lock */
	atomic_bool wanted;	   /* somebody who held the tree declined to fill it */
	pthread_mutex_t told_lock;   /* held for moments only */
	struct pfs_engine_info told; /* the latest description; protected by told_lock */
	/* Written under tree->lock for writing, or by who holds `lock` and tree->lock for
	 * reading. */
	bool follows; /* changes are noted */
	uint64_t *known; /* a bit a slot: the engine has, or is getting, or the deltas add, the
			  * node */
	size_t n_known; /* words */
	struct pfs_delta *deltas;
	size_t n_deltas, capacity;
};

void pfs_codes_destroy(struct pfs_tree *tree)
{
	struct pfs_codes *codes = tree->codes;

	if (!codes)
		return;
	if (codes->engine)
		pfs_engine_close(codes->engine);
	free(codes->deltas);
	free(codes->known);
	(void)pthread_mutex_destroy(&codes->lock);
	(void)pthread_rwlock_destroy(&codes->lease);
	(void)pthread_mutex_destroy(&codes->told_lock);
	free(codes);
	tree->codes = NULL;
}

void pfs_tree_use_engine(struct pfs_tree *tree, enum pfs_engine_kind kind)
{
	PFS_LOCKED(&tree->codes->lock);

	__atomic_store_n(&tree->codes->kind, kind, __ATOMIC_RELAXED);
}

/* Not to wait for a question that is being answered. */
enum pfs_engine_kind pfs_tree_engine_kind(struct pfs_tree *tree)
{
	return __atomic_load_n(&tree->codes->kind, __ATOMIC_RELAXED);
}

/* ---- changes; tree->lock held for writing ---- */

static void fill_anew(struct pfs_codes *codes)
{
	atomic_store(&codes->is_current, false);
	codes->follows = false;
	codes->n_deltas = 0;
}

static void note(struct pfs_codes *codes, const struct pfs_delta *delta)
{
	atomic_store(&codes->is_current, false);
	if (codes->n_deltas == DELTAS_MAX ||
	    pfs_grow(&codes->deltas, &codes->capacity, codes->n_deltas + 1, sizeof(*delta)))
		fill_anew(codes);
	else
		codes->deltas[codes->n_deltas++] = *delta;
}

static bool is_known(const struct pfs_codes *codes, uint32_t slot)
{
	return slot / 64 < codes->n_known && codes->known[slot / 64] >> slot % 64 & 1;
}

static void set_known(struct pfs_codes *codes, uint32_t slot, bool known)
{
	uint64_t bit = UINT64_C(1) << slot % 64;

	codes->known[slot / 64] = (codes->known[slot / 64] & ~bit) | (known ? bit : 0);
}

PFS_SELDOM static void follow(struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_codes *codes = tree->codes;
	size_t n_known = codes->n_known;
	struct pfs_delta delta;

	if (!pfs_image_is_live(&tree->image, slot)) {
		if (!is_known(codes, slot))
			return;
		set_known(codes, slot, false);
		note(codes, &(struct pfs_delta){.slot = slot, .op = PFS_DELTA_REMOVE});
		return;
	}
	if (pfs_grow(&codes->known, &codes->n_known, (size_t)slot / 64 + 1,
		     sizeof(*codes->known))) {
		fill_anew(codes);
		return;
	}
	memset(codes->known + n_known, 0, (codes->n_known - n_known) * sizeof(*codes->known));
	delta = (struct pfs_delta){
		.slot = slot,
		.parent = tree->image.parent[slot],
		.prime = tree->image.prime[slot],
		.op = PFS_DELTA_ADD,
	};
	if (is_known(codes, slot)) {
		delta.op = PFS_DELTA_MOVE;
		note(codes, &delta);
		delta.op = PFS_DELTA_NAME;
	}
	set_known(codes, slot, true);
	note(codes, &delta);
}

static void changed(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	if (tree->codes->follows)
		follow(tree, slot);
}

/* The engine's own columns are compared with the image by `primefs check`. */
static bool check(struct pfs_tree *tree)
{
	const struct pfs_codes *codes = tree->codes;

	for (uint32_t slot = 0; codes->follows && slot < tree->image.end; slot++)
		if (is_known(codes, slot) != pfs_image_is_live(&tree->image, slot))
			return false;
	return true;
}

static const struct pfs_watcher watcher = {
	.name = "codes",
	.columns = PFS_COLUMNS_PLACE,
	.changed = changed,
	.check = check,
};

int pfs_codes_create(struct pfs_tree *tree)
{
	struct pfs_codes *codes = calloc(1, sizeof(*codes));

	if (!codes)
		return -ENOMEM;
	(void)pthread_mutex_init(&codes->lock, NULL);
	(void)pthread_rwlock_init(&codes->lease, NULL);
	(void)pthread_mutex_init(&codes->told_lock, NULL);
	codes->kind = tree->options.engine;
	tree->codes = codes;
	pfs_watch(tree, &watcher);
	return 0;
}

/* ---- questions ---- */

/* What the engine is filled with. */
struct filling {
	struct pfs_snapshot *snapshot;
	uint32_t *parent, end;
	uint64_t *prime; /* 0: the slot has no node */
};

static void finish_filling(struct filling *filling)
{
	pfs_snapshot_end(filling->snapshot);
	free(filling->parent);
	free(filling->prime);
}

/* From now on changes are noted.  tree->lock is held for reading. */
static int begin_filling(struct pfs_tree *tree, struct filling *filling)
{
	const struct pfs_image *image = &tree->image;
	struct pfs_codes *codes = tree->codes;
	size_t words = pfs_div_round_up(image->end, 64);

	filling->end = image->end;
	codes->loaded = false;
	PFS_TRY(pfs_grow(&codes->known, &codes->n_known, words, sizeof(*codes->known)));
	PFS_TRY(pfs_snapshot_take(&filling->snapshot, tree,
				  PFS_COLUMN_PRIME | PFS_COLUMN_PARENT | PFS_COLUMN_LIVE));
	memcpy(codes->known, image->live, words * sizeof(*codes->known));
	memset(codes->known + words, 0, (codes->n_known - words) * sizeof(*codes->known));
	codes->n_deltas = 0;
	codes->follows = true;
	return 0;
}

static int fetch_block(const struct filling *filling, uint32_t block)
{
	const uint32_t first = block * PFS_SNAPSHOT_BLOCK;
	uint64_t live[PFS_SNAPSHOT_BLOCK / 64];

	PFS_TRY(pfs_snapshot_fetch(filling->snapshot, live, PFS_COLUMN_LIVE, block));
	PFS_TRY(pfs_snapshot_fetch(filling->snapshot, filling->parent + first, PFS_COLUMN_PARENT,
				   block));
	PFS_TRY(pfs_snapshot_fetch(filling->snapshot, filling->prime + first, PFS_COLUMN_PRIME,
				   block));
	for (uint32_t i = 0; i < PFS_SNAPSHOT_BLOCK; i++)
		if (!(live[i / 64] >> i % 64 & 1))
			filling->prime[first + i] = 0;
	return 0;
}

static int fill(struct pfs_codes *codes, struct filling *filling)
{
	uint32_t blocks = (uint32_t)pfs_div_round_up(filling->end, PFS_SNAPSHOT_BLOCK);
	size_t room = (size_t)blocks * PFS_SNAPSHOT_BLOCK;

	filling->parent = malloc(room * sizeof(*filling->parent));
	filling->prime = malloc(room * sizeof(*filling->prime));
	if (!filling->parent || !filling->prime)
		return -ENOMEM;
	for (uint32_t block = 0; block < blocks; block++)
		PFS_TRY(fetch_block(filling, block));
	PFS_TRY(pfs_engine_load(codes->engine, filling->parent, filling->prime, filling->end));
	codes->loaded = true;
	return 0;
}

static int apply(struct pfs_codes *codes, const struct pfs_delta *deltas, size_t n)
{
	int error = pfs_engine_apply(codes->engine, NULL, deltas, n);

	if (error)
		pfs_warning("the engine did not take the latest changes; filling it anew");
	codes->loaded = !error;
	return error;
}

/* Returns true if bringing the engine up to date takes a moment only. */
static bool is_little(const struct pfs_tree *tree)
{
	const struct pfs_codes *codes = tree->codes;

	return codes->follows && codes->loaded ? codes->n_deltas <= DELTAS_FEW
					       : tree->image.end <= SLOTS_FEW;
}

static int fill_held(struct pfs_tree *tree)
{
	struct pfs_codes *codes = tree->codes;
	struct filling filling = {0};
	int error = begin_filling(tree, &filling);

	if (!error)
		error = fill(codes, &filling);
	if (error)
		fill_anew(codes);
	finish_filling(&filling);
	return error;
}

static int apply_held(struct pfs_codes *codes)
{
	size_t n = codes->n_deltas;

	codes->n_deltas = 0;
	return apply(codes, codes->deltas, n);
}

static int change_held(struct pfs_tree *tree)
{
	struct pfs_codes *codes = tree->codes;

	if (!codes->engine)
		PFS_TRY(pfs_engine_open(&codes->engine, codes->kind));
	if (!codes->follows || !codes->loaded || apply_held(codes)) {
		if (!is_little(tree))
			return -EAGAIN;
		PFS_TRY(fill_held(tree));
	}
	atomic_store(&codes->is_current, true);
	return 0;
}

/* The caller holds the lock and the tree. -EAGAIN: it would take long, or has to wait for a
 * question. */
static int bring_up_to_date(struct pfs_tree *tree)
{
	struct pfs_codes *codes = tree->codes;
	int error;

	if (atomic_load(&codes->is_current))
		return 0;
	if (!is_little(tree) || pthread_rwlock_trywrlock(&codes->lease))
		return -EAGAIN;
	error = change_held(tree);
	(void)pthread_rwlock_unlock(&codes->lease);
	return error;
}

/* What is done in one hold of the tree: the engine is to be filled, or has as many deltas as it
 * takes out. */
static int take_work(struct pfs_tree *tree, struct filling *filling, struct pfs_delta **deltas,
		     size_t *n)
{
	struct pfs_codes *codes = tree->codes;
	int error = 0;

	pfs_hold_read(tree, __func__);
	if (!codes->follows || !codes->loaded) {
		error = begin_filling(tree, filling);
	} else if (codes->n_deltas) {
		*deltas = codes->deltas;
		*n = codes->n_deltas;
		codes->deltas = NULL;
		codes->n_deltas = codes->capacity = 0;
	}
	pfs_hold_end(tree);
	return error;
}

/* Without a snapshot the engine gets the deltas. */
static int change(struct pfs_codes *codes, struct filling *filling, const struct pfs_delta *deltas,
		  size_t n)
{
	PFS_WRITING(&codes->lease);

	if (filling->snapshot)
		return fill(codes, filling);
	if (!apply(codes, deltas, n)) /* what it makes of them, too */
		codes->loaded = !pfs_engine_sync(codes->engine);
	return 0;
}

/* One step towards an engine that has little to do when the tree is held; *is_done: there was
 * nothing to do. */
static int prepare_some(struct pfs_tree *tree, bool *is_done)
{
	struct pfs_codes *codes = tree->codes;
	struct pfs_delta *deltas PFS_FREE = NULL;
	struct filling filling = {0};
	size_t n = 0;
	int error = take_work(tree, &filling, &deltas, &n);


	if (!error && (filling.snapshot || deltas))
		error = change(codes, &filling, deltas, n);
	*is_done = !error && !filling.snapshot && !deltas;
	if (error && filling.snapshot && pfs_snapshot_is_given_up(filling.snapshot))
		error = -EAGAIN;
	finish_filling(&filling);
	return error;
}

/* Brings the engine nearly up to date, while the tree is not held. -ENODEV, -ENOMEM. */
static int prepare(struct pfs_tree *tree)
{
	struct pfs_codes *codes = tree->codes;
	bool is_done = false;
	int error = 0;

	if (!codes->engine)
		PFS_TRY(pfs_engine_open(&codes->engine, codes->kind));
	for (unsigned tries = 0; tries < TRIES && !is_done; tries++)
		error = prepare_some(tree, &is_done);
	if (error == -EAGAIN)
		return 0; /* whoever holds the tree finds out */
	if (error) {
		pfs_hold_read(tree, __func__);
		fill_anew(codes);
		pfs_hold_end(tree);
	}
	return error;
}

void pfs_codes_prepare_wanted(struct pfs_tree *tree)
{
	struct pfs_codes *codes = tree->codes;

	if (tree->image.copy || !atomic_load_explicit(&codes->wanted, memory_order_relaxed) ||
	    pthread_mutex_trylock(&codes->lock))
		return;
	/* nobody takes a lease meanwhile; if a question has one, the next statement looks again */
	if (pthread_rwlock_trywrlock(&codes->lease) == 0) {
		(void)pthread_rwlock_unlock(&codes->lease);
		atomic_store(&codes->wanted, false);
		if (prepare(tree))
			pfs_debug("the engine could not be filled: others answer, as before");
	}
	(void)pthread_mutex_unlock(&codes->lock);
}

void pfs_codes_lock(struct pfs_tree *tree)
{
	(void)pthread_mutex_lock(&tree->codes->lock);
}

void pfs_codes_unlock(struct pfs_tree *tree)
{
	(void)pthread_mutex_unlock(&tree->codes->lock);
}

int pfs_codes_begin(struct pfs_tree *tree, struct pfs_engine **engine)
{
	int error = -EAGAIN;

	pfs_codes_lock(tree);
	for (unsigned i = 0; i < BEGINNINGS && error == -EAGAIN; i++) {
		error = prepare(tree);
		if (error)
			break;
		pfs_hold_read(tree, __func__);
		error = bring_up_to_date(tree);
		*engine = error ? NULL : tree->codes->engine;
		if (error)
			pfs_hold_end(tree);
		else
			(void)pthread_rwlock_rdlock(
				&tree->codes
					 ->lease); /* only who has the lock takes it for writing */
	}
	pfs_codes_unlock(tree);
	return error;
}

void pfs_codes_let_go(struct pfs_tree *tree)
{
	pfs_hold_end(tree);
}

void pfs_codes_end(struct pfs_tree *tree)
{
	(void)pthread_rwlock_unlock(&tree->codes->lease);
}

int pfs_codes_bits(uint64_t **out, const struct pfs_bitmap *set, uint32_t end)
{
	size_t words = pfs_div_round_up(end, 64), piece = PFS_MIN(words, (size_t)READ_WORDS);
	uint64_t *bits PFS_FREE = malloc((words + 1) * sizeof(*bits));
	uint32_t *halves PFS_FREE = malloc((2 * piece + 1) * sizeof(*halves));

	*out = NULL;
	if (!bits || !halves)
		return -ENOMEM;
	for (size_t w = 0; w < words; w += piece) {
		size_t n = PFS_MIN(words - w, piece);

		PFS_TRY(pfs_bitmap_read(set, halves, 2 * w, 2 * n));
		for (size_t i = 0; i < n; i++)
			bits[w + i] = halves[2 * i] | (uint64_t)halves[2 * i + 1] << 32;
	}
	*out = PFS_TAKE(bits);
	return 0;
}

int pfs_codes_try(struct pfs_tree *tree, struct pfs_engine **engine)
{
	struct pfs_codes *codes = tree->codes;
	int error = -EBUSY;

	if (tree->image.copy)
		return error;
	if (atomic_load(&codes->is_current)) {
		*engine = codes->engine;
		return 0;
	}
	if (pthread_mutex_trylock(&codes->lock))
		return error;
	if (codes->follows || codes->kind != PFS_ENGINE_AUTO || codes->declined++ >= DECLINE)
		error = bring_up_to_date(tree);
	if (error == -EAGAIN) {
		atomic_store(&codes->wanted, true);
		error = -EBUSY;
	}
	if (!error)
		*engine = codes->engine;
	pfs_codes_unlock(tree);
	return error;
}

/* The caller holds the lock. */
static int describe(struct pfs_codes *codes, struct pfs_engine_info *info)
{
	if (!codes->engine)
		PFS_TRY(pfs_engine_open(&codes->engine, codes->kind));
	pfs_engine_describe(codes->engine, info);
	PFS_LOCKED(&codes->told_lock);
	codes->told = *info;
	return 0;
}

int pfs_codes_describe(struct pfs_tree *tree, struct pfs_engine_info *info)
{
	PFS_LOCKED(&tree->codes->lock);

	return describe(tree->codes, info);
}

int pfs_codes_describe_now(struct pfs_tree *tree, struct pfs_engine_info *info)
{
	static const char *const kinds[] = {
		[PFS_ENGINE_AUTO] = "auto", [PFS_ENGINE_HOST] = "host", [PFS_ENGINE_CUDA] = "cuda"};
	struct pfs_codes *codes = tree->codes;
	int error;

	if (!pthread_mutex_trylock(&codes->lock)) {
		error = describe(codes, info);
		(void)pthread_mutex_unlock(&codes->lock);
		return error;
	}
	PFS_LOCKED(&codes->told_lock);
	*info = codes->told;
	if (!info->engine)
		info->engine = kinds[pfs_tree_engine_kind(tree)];
	return 1;
}

bool pfs_codes_use_device(struct pfs_tree *tree)
{
	struct pfs_codes *codes = tree->codes;
	PFS_LOCKED(&codes->lock);
	struct pfs_engine_info info;

	if (!codes->engine && codes->kind != PFS_ENGINE_CUDA)
		return false;
	if (!codes->engine && pfs_engine_open(&codes->engine, codes->kind))
		return true; /* whoever asks it learns why */
	pfs_engine_describe(codes->engine, &info);
	return info.engine[0] == 'c';
}

