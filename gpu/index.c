/* SPDX-License-Identifier: MIT */
/* Checks what an index is asked, chooses its back end, and takes it to the host when a device is
 * short of memory. */
#include "gpu/index.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "gpu/engine_impl.h"
#include "gpu/probe_impl.h"
#include "gpu/relation.h"

#define MANY ((size_t)1 << 20) /* values that several threads look at */

struct pfs_index {
	/* Held for reading by questions, for writing by changes; guards everything below. */
	pthread_rwlock_t lock;
	struct pfs_index_shape shape;
	struct pfs_operator_backend *backend, *host;
	struct pfs_index_tree *tree; /* the back end's */
};

static const struct pfs_index_family *family_for(const struct pfs_operator_backend *b, bool is_wide)
{
	return is_wide ? b->families->wide_index : b->families->index;
}

static const struct pfs_index_family *family_of(const struct pfs_index *index)
{
	return family_for(index->backend, index->shape.is_wide);
}

static bool is_value_less(const struct pfs_index_shape *shape, const void *values, size_t i,
			  size_t than)
{
	const uint64_t *wide = values;
	const uint32_t *narrow = values;

	return shape->is_wide ? wide[i] < wide[than] : narrow[i] < narrow[than];
}

struct values {
	const struct pfs_index_shape *shape;
	const void *of;
};

static int check_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct values *values = context;
	const uint64_t *wide = values->of;
	const uint32_t *narrow = values->of;
	bool is_none = false;

	(void)worker;
	if (values->shape->is_wide)
		for (uint64_t i = from; i < to; i++)
			is_none |= wide[i] == PFS_INDEX_WIDE_NONE;
	else
		for (uint64_t i = from; i < to; i++)
			is_none |= narrow[i] == PFS_INDEX_NONE;
	return is_none ? -EINVAL : 0;
}

static int check_values(const struct pfs_run *run, const struct pfs_index_shape *shape,
			const void *values, size_t n)
{
	struct values context = {shape, values};

	return n < MANY ? check_piece(&context, 0, 0, n)
			: pfs_operators_for(run, n, MANY / 4, check_piece, &context);
}

static int check_pairs(const struct pfs_run *run, const struct pfs_index_shape *shape,
		       const uint64_t *keys, const void *values, size_t n)
{
	if (n > PFS_INDEX_BATCH_MAX)
		return -EINVAL;
	PFS_TRY(check_values(run, shape, values, n));
	for (size_t i = 1; i < n; i++) {
		if (keys[i - 1] < keys[i])
			continue;
		if (keys[i - 1] > keys[i] || shape->kind == PFS_INDEX_UNIQUE ||
		    !is_value_less(shape, values, i - 1, i))
			return -EINVAL;
	}
	return 0;
}

static int build_on(const struct pfs_run *run, struct pfs_index *index,
		    struct pfs_operator_backend *b, const uint64_t *keys, const void *values,
		    size_t n)
{
	const struct pfs_index_family *family = family_for(b, index->shape.is_wide);
	struct pfs_index_tree *tree;

	PFS_TRY(family->build(b, run, &tree, &index->shape, keys, values, n));
	index->backend = b;
	index->tree = tree;
	return 0;
}

int pfs_index_build(const struct pfs_run *run, struct pfs_index **out,
		    const struct pfs_index_shape *shape, const uint64_t *keys, const void *values,
		    size_t n)
{
	struct pfs_operator_backend *device =
		run->on == PFS_ENGINE_HOST ? NULL : pfs_operators_device(run->operators);
	struct pfs_index *index;
	pthread_rwlockattr_t attr;
	int error = -EOPNOTSUPP;

	*out = NULL;
	if (shape->page && shape->page != PFS_INDEX_MEASURED &&
	    (shape->page < PFS_INDEX_PAGE_LEAST || shape->page > PFS_INDEX_PAGE_MOST))
		return -EINVAL;
	PFS_TRY(check_pairs(run, shape, keys, values, n));
	index = calloc(1, sizeof(*index));
	if (!index)
		return -ENOMEM;
	index->shape = *shape;
	index->host = pfs_operators_host(run->operators);
	(void)pthread_rwlockattr_init(&attr);
	/* Questions that never pause must not keep changes waiting for ever. */
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&index->lock, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
	if (device && family_for(device, shape->is_wide)) {
		error = build_on(run, index, device, keys, values, n);
		if (error == -ENOMEM)
			pfs_warning("an index of %zu entries is too large for the device: it stays "
				    "on the processor", n);
	}
	if (error == -EOPNOTSUPP || error == -ENOMEM || error == -EIO)
		error = build_on(run, index, index->host, keys, values, n);
	if (error)
		pfs_index_close(run, index);
	else
		*out = index;
	return error;
}

void pfs_index_close(const struct pfs_run *run, struct pfs_index *index)
{
	if (!index)
		return;
	if (index->tree)
		family_of(index)->close(index->backend, run, index->tree);
	(void)pthread_rwlock_destroy(&index->lock);
	free(index);
}

/* Moves the index from the device to the host.  The lock is held for writing. */
static int take_home(const struct pfs_run *run, struct pfs_index *index)
{
	const struct pfs_index_family *family = family_of(index);
	struct pfs_operator_backend *device = index->backend;
	struct pfs_index_tree *tree = index->tree;
	struct pfs_index_list all;
	int error;

	PFS_TRY(family->range(device, run, tree, &all, 0, UINT64_MAX));
	error = build_on(run, index, index->host, all.keys,
			 index->shape.is_wide ? (const void *)all.wide_values : all.values, all.n);
	pfs_index_list_free(run, &all);
	if (error)
		return error;
	family->close(device, run, tree);
	pfs_warning("an index is too large for the device: it goes on on the processor");
	return 0;
}

/* A device that failed a moment ago is not asked again: what it held is lost. */
static int lost(const struct pfs_index *index, int error)
{
	return error == -EOPNOTSUPP && index->backend != index->host ? -EIO : error;
}

/* True if a device could not do it for want of memory, and the host shall.  The lock is held for
 * writing. */
static bool is_short(const struct pfs_run *run, struct pfs_index *index, int *error)
{
	if (*error != -ENOMEM || index->backend == index->host)
		return false;
	*error = take_home(run, index);
	return *error == 0;
}

static int verified(const struct pfs_run *run, struct pfs_index *index, int error)
{
#ifdef PFS_VERIFY
	if (error == 0)
		PFS_VERIFY_CHECK(family_of(index)->verify(index->backend, run, index->tree) !=
				 -EUCLEAN);
#else
	(void)run, (void)index;
#endif
	return lost(index, error);
}

/* After a question that ended so, with the lock held for reading: the same with the lock not
 * held. */
static bool is_short_for_question(const struct pfs_run *run, struct pfs_index *index, int *error)
{
	bool on_device = index->backend != index->host, again;

	*error = lost(index, *error);
	(void)pthread_rwlock_unlock(&index->lock);
	if (*error != -ENOMEM || !on_device)
		return false;
	(void)pthread_rwlock_wrlock(&index->lock);
	again = index->backend == index->host; /* another one has taken it there */
	again = again || is_short(run, index, error);
	(void)pthread_rwlock_unlock(&index->lock);
	return again;
}

int pfs_index_insert(const struct pfs_run *run, struct pfs_index *index, uint64_t *n_added,
		     const uint64_t *keys, const void *values, size_t n,
		     enum pfs_index_policy policy)
{
	const struct pfs_index_change change = {keys, values, n, policy};
	int error;

	if (n > PFS_INDEX_BATCH_MAX)
		return -EINVAL;
	PFS_TRY(check_values(run, &index->shape, values, n));
	(void)pthread_rwlock_wrlock(&index->lock);
	do
		error = family_of(index)->insert(index->backend, run, index->tree, n_added,
						 &change);
	while (is_short(run, index, &error));
	error = verified(run, index, error);
	(void)pthread_rwlock_unlock(&index->lock);
	return error;
}

int pfs_index_remove(const struct pfs_run *run, struct pfs_index *index, uint64_t *n_removed,
		     const uint64_t *keys, const void *values, size_t n)
{
	const struct pfs_index_change change = {.keys = keys, .values = values, .n = n};
	int error;

	if (n > PFS_INDEX_BATCH_MAX || (index->shape.kind == PFS_INDEX_UNIQUE) != (values == NULL))
		return -EINVAL;
	(void)pthread_rwlock_wrlock(&index->lock);
	do
		error = family_of(index)->remove(index->backend, run, index->tree, n_removed,
						 &change);
	while (is_short(run, index, &error));
	error = verified(run, index, error);
	(void)pthread_rwlock_unlock(&index->lock);
	return error;
}

int pfs_index_find(const struct pfs_run *run, struct pfs_index *index, uint64_t *found_keys,
		   void *values, const uint64_t *keys, size_t n,
		   enum pfs_index_question question)
{
	struct pfs_index_query query = {.keys = keys, .n = n, .question = question};
	int error;

	if (n > PFS_INDEX_BATCH_MAX)
		return -EINVAL;
	query.found_keys = found_keys;
	query.values = values;
	do {
		(void)pthread_rwlock_rdlock(&index->lock);
		error = family_of(index)->find(index->backend, run, index->tree, &query);
	} while (is_short_for_question(run, index, &error));
	return error;
}

int pfs_index_range(const struct pfs_run *run, struct pfs_index *index, struct pfs_index_list *out,
		    uint64_t first, uint64_t last)
{
	int error;

	*out = (struct pfs_index_list){0};
	if (first > last)
		return 0;
	do {
		(void)pthread_rwlock_rdlock(&index->lock);
		error = family_of(index)->range(index->backend, run, index->tree, out, first, last);
	} while (is_short_for_question(run, index, &error));
	return error;
}

int pfs_index_read(const struct pfs_run *run, struct pfs_index *index,
		   struct pfs_index_cursor *cursor, struct pfs_index_list *out,
		   enum pfs_index_direction direction)
{
	int error = -EOPNOTSUPP;

	(void)pthread_rwlock_rdlock(&index->lock);
	if (family_of(index)->read)
		error = family_of(index)->read(index->backend, run, index->tree, cursor, out,
					       direction);
	(void)pthread_rwlock_unlock(&index->lock);
	return error;
}

void pfs_index_describe(struct pfs_index *index, struct pfs_index_info *info)
{
	(void)pthread_rwlock_rdlock(&index->lock);
	*info = (struct pfs_index_info){.where = index->backend->families->name};
	family_of(index)->describe(index->tree, info);
	(void)pthread_rwlock_unlock(&index->lock);
}

int pfs_index_verify(const struct pfs_run *run, struct pfs_index *index)
{
	int error;

	(void)pthread_rwlock_rdlock(&index->lock);
	error = family_of(index)->verify(index->backend, run, index->tree);
	(void)pthread_rwlock_unlock(&index->lock);
	return error;
}

int pfs_index_probe(const struct pfs_run *run, struct pfs_index *index,
		    struct pfs_index_seconds *out, const uint64_t *keys, size_t n)
{
	const struct pfs_index_query query = {.keys = keys, .n = n, .question = PFS_INDEX_EQUAL};
	int error = -EOPNOTSUPP;

	(void)pthread_rwlock_rdlock(&index->lock);
	if (index->backend != index->host)
		error = (index->shape.is_wide ? pfs_cuda_wide_index_probe : pfs_cuda_index_probe)(
			index->backend, run, index->tree, out, &query);
	(void)pthread_rwlock_unlock(&index->lock);
	return error;
}
