/* SPDX-License-Identifier: MIT */
#include "gpu/intervals.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/engine_impl.h"

/* Both columns in one piece of the back end's memory, each as long as a bitmap has bits. */
struct pfs_intervals {
	struct pfs_engine *engine;
	struct pfs_backend *backend;
	uint32_t *rank, *size;
	size_t n;
};

static void number(uint32_t *rank, uint32_t *size, size_t n, const struct pfs_columns *c)
{
	for (uint32_t i = 0; i < n; i++) {
		bool live = pfs_slot_live(c, i);

		rank[i] = live ? i : PFS_NO_RANK;
		size[i] = !live ? 0 : pfs_slot_is_directory(c, i) ? c->span[c->home[i]] : 1;
	}
}

int pfs_intervals_make(struct pfs_engine *e, struct pfs_intervals **out)
{
	PFS_LOCKED(&e->lock);
	const struct pfs_columns *c = &e->columns;
	size_t n = pfs_engine_words(e) * 32, bytes = 2 * n * sizeof(uint32_t);
	struct pfs_intervals *made PFS_FREE = calloc(1, sizeof(*made));
	uint32_t *columns PFS_FREE = malloc(bytes);
	void *memory = NULL;
	int rc;

	if (!made || !columns)
		return -ENOMEM;
	if (!c->root || c->span[c->root] != c->n_slots)
		return -EINVAL;
	number(columns, columns + n, n, c);
	rc = pfs_engine_update(e);
	rc = rc ? rc : e->backend->ops->alloc(e->backend, &memory, bytes);
	if (rc)
		return rc;
	*made = (struct pfs_intervals){.engine = e, .backend = e->backend, .n = n};
	made->rank = memory;
	made->size = made->rank + n;
	rc = e->backend->ops->write(e->backend, memory, 0, columns, bytes);
	if (rc) {
		e->backend->ops->release(e->backend, memory, bytes);
		return rc;
	}
	*out = made;
	made = NULL;
	return 0;
}

void pfs_intervals_free(struct pfs_intervals *intervals)
{
	if (!intervals)
		return;
	(void)pthread_mutex_lock(&intervals->engine->lock);
	intervals->backend->ops->release(intervals->backend, intervals->rank,
					 2 * intervals->n * sizeof(uint32_t));
	(void)pthread_mutex_unlock(&intervals->engine->lock);
	free(intervals);
}

static int look_up(const struct pfs_intervals *v, uint32_t *rank, uint32_t *size, uint32_t slot)
{
	const struct pfs_engine_ops *ops = v->backend->ops;
	size_t at = slot * sizeof(*rank);
	int rc;

	if (v->backend != v->engine->backend)
		return -EIO;
	if (slot >= v->n)
		return -ENOENT;
	rc = ops->read(v->backend, rank, v->rank, at, sizeof(*rank));
	rc = rc ? rc : ops->read(v->backend, size, v->size, at, sizeof(*size));
	return rc || *rank != PFS_NO_RANK ? rc : -ENOENT;
}

static int find(struct pfs_intervals *v, struct pfs_bitmap **out, uint32_t slot, bool above)
{
	PFS_LOCKED(&v->engine->lock);
	struct pfs_bitmap *set = NULL;
	uint32_t rank, size;
	int rc = look_up(v, &rank, &size, slot);

	rc = rc ? rc : pfs_bitmap_new(v->engine, &set);
	if (rc)
		return rc;
	if (set->words * 32 != v->n) /* the engine has grown since */
		rc = -EINVAL;
	else if (above)
		rc = v->backend->ops->intervals_around(v->backend, set->bits, v->rank, v->size,
						       v->n, rank);
	else
		rc = v->backend->ops->intervals_in(v->backend, set->bits, v->rank, v->n, rank,
						   size);
	*out = set;
	if (rc) {
		v->backend->ops->release(v->backend, set->bits, set->words * sizeof(*set->bits));
		free(set);
	}
	return rc;
}

int pfs_intervals_subtree(struct pfs_intervals *v, struct pfs_bitmap **out, uint32_t slot)
{
	return find(v, out, slot, false);
}

int pfs_intervals_ancestors(struct pfs_intervals *v, struct pfs_bitmap **out, uint32_t slot)
{
	return find(v, out, slot, true);
}

int pfs_intervals_add(struct pfs_intervals *v, uint32_t slot, uint32_t parent)
{
	PFS_LOCKED(&v->engine->lock);
	const struct pfs_engine_ops *ops = v->backend->ops;
	struct pfs_interval_move m = {.from = PFS_NEW_RANK, .size = 1};
	uint32_t size, rank, one = 1;
	size_t at = slot * sizeof(one);
	int rc = look_up(v, &m.parent, &size, parent);

	if (rc || slot >= v->n)
		return rc ? rc : -ENOENT;
	rank = m.parent + 1;
	rc = ops->intervals_move(v->backend, v->rank, v->size, v->n, m);
	rc = rc ? rc : ops->write(v->backend, v->rank, at, &rank, sizeof(rank));
	return rc ? rc : ops->write(v->backend, v->size, at, &one, sizeof(one));
}

int pfs_intervals_move(struct pfs_intervals *v, uint32_t slot, uint32_t parent)
{
	PFS_LOCKED(&v->engine->lock);
	struct pfs_interval_move m;
	uint32_t size;
	int rc = look_up(v, &m.from, &m.size, slot);

	rc = rc ? rc : look_up(v, &m.parent, &size, parent);
	if (rc == 0 && pfs_interval_holds(m.from, m.size, m.parent))
		rc = -EINVAL;
	return rc ? rc : v->backend->ops->intervals_move(v->backend, v->rank, v->size, v->n, m);
}
