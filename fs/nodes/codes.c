/* SPDX-License-Identifier: MIT */
/* The image's questions to the engine: which nodes lie under, above or directly below others.
 *
 * The engine is filled from the image by the first question; from then on changes are noted as
 * deltas, under tree->lock, and applied before the next question.  When there are too many of them,
 * or no memory for them, the engine is filled anew instead.
 *
 * Lock order: codes->lock -> tree->lock (for reading): the answer is one epoch, and a change waits
 * only while the engine computes. */
#include "fs/nodes/codes.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fs/image/image.h"
#include "fs/tree/tree_impl.h"

#define DECLINE	   16u /* questions that others can answer, before the engine is filled for them */
#define DELTAS_MAX ((size_t)1 << 20) /* beyond it filling anew is faster */

struct pfs_codes {
	pthread_mutex_t lock; /* one question at a time */
	struct pfs_engine *engine; /* NULL until the first question; protected by lock */
	enum pfs_engine_kind kind; /* protected by lock */
	unsigned declined;	   /* protected by lock */
	/* Written under tree->lock for writing, or by who holds `lock` and tree->lock for reading. */
	bool loaded; /* the engine has the image, deltas aside */
	uint8_t *known; /* by slot: the engine has, or the deltas add, the node */
	size_t n_known;
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
	codes->loaded = false;
	codes->n_deltas = 0;
}

static void note(struct pfs_codes *codes, const struct pfs_delta *delta)
{
	if (codes->n_deltas == DELTAS_MAX ||
	    pfs_grow(&codes->deltas, &codes->capacity, codes->n_deltas + 1, sizeof(*delta)))
		fill_anew(codes);
	else
		codes->deltas[codes->n_deltas++] = *delta;
}

static bool is_known(const struct pfs_codes *codes, uint32_t slot)
{
	return slot < codes->n_known && codes->known[slot];
}

static void changed(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	struct pfs_codes *codes = tree->codes;
	struct pfs_delta delta = {
		.slot = slot,
		.parent = tree->image.parent[slot],
		.prime = tree->image.prime[slot],
		.op = PFS_DELTA_ADD,
	};
	size_t n_known = codes->n_known;

	if (!codes->loaded)
		return;
	if (!pfs_image_is_live(&tree->image, slot)) {
		if (is_known(codes, slot))
			note(codes, &(struct pfs_delta){.slot = slot, .op = PFS_DELTA_REMOVE});
		if (slot < n_known)
			codes->known[slot] = 0;
		return;
	}
	if (pfs_grow(&codes->known, &codes->n_known, (size_t)slot + 1, 1)) {
		fill_anew(codes);
		return;
	}
	memset(codes->known + n_known, 0, codes->n_known - n_known);
	if (codes->known[slot]) {
		delta.op = PFS_DELTA_MOVE;
		note(codes, &delta);
		delta.op = PFS_DELTA_NAME;
	}
	codes->known[slot] = 1;
	note(codes, &delta);
}

/* The engine's own columns are compared with the image by `primefs check`. */
static bool check(struct pfs_tree *tree)
{
	const struct pfs_codes *codes = tree->codes;

	for (uint32_t slot = 0; codes->loaded && slot < tree->image.end; slot++)
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
	codes->kind = tree->options.engine;
	tree->codes = codes;
	pfs_watch(tree, &watcher);
	return 0;
}

/* ---- questions ---- */

static int load(struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;
	struct pfs_codes *codes = tree->codes;
	uint64_t *named PFS_FREE = malloc((size_t)image->end * sizeof(*named));

	if (!named)
		return -ENOMEM;
	PFS_TRY(pfs_grow(&codes->known, &codes->n_known, image->end, 1));
	memset(codes->known, 0, codes->n_known);
	for (uint32_t slot = 0; slot < image->end; slot++) {
		bool has_name = pfs_image_is_live(image, slot);

		named[slot] = has_name ? image->prime[slot] : 0;
		codes->known[slot] = has_name;
	}
	PFS_TRY(pfs_engine_load(codes->engine, image->parent, named, image->end));
	codes->loaded = true;
	codes->n_deltas = 0;
	return 0;
}

static int bring_up_to_date(struct pfs_tree *tree)
{
	struct pfs_codes *codes = tree->codes;
	size_t n = codes->n_deltas;

	if (!codes->engine)
		PFS_TRY(pfs_engine_open(&codes->engine, codes->kind));
	if (!codes->loaded)
		return load(tree);
	codes->n_deltas = 0;
	if (!pfs_engine_apply(codes->engine, NULL, codes->deltas, n))
		return 0;
	pfs_warning("the engine did not take the latest changes; filling it anew");
	fill_anew(codes); /* next time, too, if that fails */
	return load(tree);
}

int pfs_codes_begin(struct pfs_tree *tree, struct pfs_engine **engine)
{
	int error;

	(void)pthread_mutex_lock(&tree->codes->lock);
	pfs_hold_read(tree, __func__);
	error = bring_up_to_date(tree);
	if (error)
		pfs_codes_end(tree);
	else
		*engine = tree->codes->engine;
	return error;
}

int pfs_codes_try(struct pfs_tree *tree, struct pfs_engine **engine)
{
	struct pfs_codes *codes = tree->codes;
	int error = -EBUSY;

	if (tree->image.still || pthread_mutex_trylock(&codes->lock))
		return error;
	if (codes->loaded || codes->kind != PFS_ENGINE_AUTO || codes->declined++ == DECLINE)
		error = bring_up_to_date(tree);
	if (error)
		pfs_codes_release(tree);
	else
		*engine = codes->engine;
	return error;
}

int pfs_codes_describe(struct pfs_tree *tree, struct pfs_engine_info *info)
{
	struct pfs_codes *codes = tree->codes;
	PFS_LOCKED(&codes->lock);

	if (!codes->engine)
		PFS_TRY(pfs_engine_open(&codes->engine, codes->kind));
	pfs_engine_describe(codes->engine, info);
	return 0;
}

bool pfs_codes_use_device(struct pfs_tree *tree)
{
	struct pfs_codes *codes = tree->codes;
	PFS_LOCKED(&codes->lock);
	struct pfs_engine_info info;

	if (!codes->engine && codes->kind == PFS_ENGINE_HOST)
		return false;
	if (!codes->engine && pfs_engine_open(&codes->engine, codes->kind))
		return true; /* whoever asks it learns why */
	pfs_engine_describe(codes->engine, &info);
	return info.engine[0] == 'c';
}

void pfs_codes_release(struct pfs_tree *tree)
{
	(void)pthread_mutex_unlock(&tree->codes->lock);
}

void pfs_codes_end(struct pfs_tree *tree)
{
	pfs_hold_end(tree);
	(void)pthread_mutex_unlock(&tree->codes->lock);
}
