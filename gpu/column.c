/* SPDX-License-Identifier: MIT */
/* gpu/column.c - integer columns by slot, and their sums over subtrees. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "gpu/engine_impl.h"

static int alloc_column(struct pfs_engine *e, struct pfs_column **out, size_t n, bool by_directory)
{
	struct pfs_column *column = calloc(1, sizeof(*column));
	void *memory = NULL;
	int rc;

	if (!column)
		return -ENOMEM;
	rc = e->backend->ops->alloc(e->backend, &memory, PFS_MAX(n, 1u) * sizeof(int64_t));
	if (rc) {
		free(column);
		return rc;
	}
	*column = (struct pfs_column){
		.engine = e,
		.backend = e->backend,
		.v = {.values = memory, .n = n, .by_directory = by_directory},
		.epoch = e->epoch,
	};
	*out = column;
	return 0;
}

static void release_column(struct pfs_column *column)
{
	column->backend->ops->release(column->backend, column->v.values,
				      PFS_MAX(column->v.n, 1u) * sizeof(int64_t));
}

int pfs_column_create(struct pfs_engine *e, struct pfs_column **out, const int64_t *values,
		      size_t n)
{
	PFS_LOCKED(&e->lock);
	struct pfs_column *column = NULL;
	int rc;

	do {
		rc = alloc_column(e, &column, n, false);
		if (rc)
			continue;
		rc = e->backend->ops->write(e->backend, column->v.values, 0, values,
					    n * sizeof(*values));
		if (rc) {
			release_column(column);
			free(column);
		}
	} while (pfs_engine_leave_device(e, rc));
	if (rc == 0)
		*out = column;
	return rc;
}

void pfs_column_free(struct pfs_column *column)
{
	if (!column)
		return;
	(void)pthread_mutex_lock(&column->engine->lock);
	release_column(column);
	(void)pthread_mutex_unlock(&column->engine->lock);
	free(column);
}

int pfs_column_here(const struct pfs_column *values)
{
	struct pfs_column *column = (struct pfs_column *)values;
	struct pfs_engine *e = column->engine;
	size_t size = column->v.n * sizeof(int64_t);
	int64_t *copy PFS_FREE = NULL;
	void *memory = NULL;
	int rc;

	if (column->v.by_directory && column->epoch != e->epoch)
		return -ESTALE;
	if (column->backend == e->backend)
		return 0;
	copy = malloc(PFS_MAX(size, 1u));
	if (!copy)
		return -ENOMEM;
	if (column->backend->ops->read(column->backend, copy, column->v.values, 0, size)) {
		pfs_warning("a column was lost with the device");
		return -ESTALE;
	}
	rc = e->backend->ops->alloc(e->backend, &memory, PFS_MAX(size, sizeof(int64_t)));
	if (rc)
		return rc;
	release_column(column);
	column->backend = e->backend;
	column->v.values = memory;
	return e->backend->ops->write(e->backend, memory, 0, copy, size);
}

/* The first n of what the back end has. */
static int read_values(const struct pfs_column *column, int64_t *values, size_t n)
{
	struct pfs_engine *e = column->engine;
	int rc;

	do {
		rc = pfs_column_here(column);
		if (rc == 0)
			rc = e->backend->ops->read(e->backend, values, column->v.values, 0,
						   n * sizeof(*values));
	} while (pfs_engine_leave_device(e, rc));
	return rc;
}

int pfs_column_read(const struct pfs_column *column, int64_t *values, size_t n)
{
	struct pfs_engine *e = column->engine;
	PFS_LOCKED(&e->lock);
	size_t there = PFS_MIN(n, column->v.n);
	int64_t *sums PFS_FREE = NULL;
	int rc;

	if (!column->v.by_directory) {
		memset(values + there, 0, (n - there) * sizeof(*values));
		return read_values(column, values, there);
	}
	sums = malloc(PFS_MAX(column->v.n, 1u) * sizeof(*sums));
	if (!sums)
		return -ENOMEM;
	rc = read_values(column, sums, column->v.n);
	memset(values, 0, n * sizeof(*values));
	for (size_t d = 1; d < column->v.n && rc == 0; d++)
		if (e->columns.directory_slot[d] < n)
			values[e->columns.directory_slot[d]] = sums[d];
	return rc;
}

int pfs_engine_rollup(struct pfs_engine *e, struct pfs_column **out,
		      const struct pfs_column *values)
{
	PFS_LOCKED(&e->lock);
	struct pfs_column *column = NULL;
	int rc;

	if (values && values->v.by_directory)
		return -EINVAL;
	do {
		rc = pfs_engine_update(e);
		if (rc == 0 && values)
			rc = pfs_column_here(values);
		rc = rc ? rc : alloc_column(e, &column, e->columns.n_directories, true);
		if (rc)
			continue;
		rc = e->backend->ops->rollup(e->backend, column->v.values,
					     values ? values->v.values : NULL,
					     values ? values->v.n : 0);
		if (rc) {
			release_column(column);
			free(column);
		}
	} while (pfs_engine_leave_device(e, rc));
	if (rc == 0)
		*out = column;
	return rc;
}
