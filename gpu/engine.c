/* SPDX-License-Identifier: MIT */
/* gpu/engine.c - opening, loading, changing; and leaving a device that fails. */
#include "gpu/engine.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "gpu/engine_impl.h"
#include "gpu/probe.h"

int pfs_engine_open_backend(struct pfs_engine **out, struct pfs_backend *backend, bool is_device)
{
	struct pfs_engine *e = calloc(1, sizeof(*e));

	if (!e || pthread_mutex_init(&e->lock, NULL)) {
		free(e);
		backend->ops->close(backend);
		return -ENOMEM;
	}
	e->backend = backend;
	e->is_device = is_device;
	e->use_ranges = true;
	e->stale = true;
	e->names_anew = true;
	*out = e;
	return 0;
}

int pfs_engine_by_name(enum pfs_engine_kind *kind, const char *name)
{
	static const char *const names[] = {
		[PFS_ENGINE_AUTO] = "auto",
		[PFS_ENGINE_HOST] = "host",
		[PFS_ENGINE_CUDA] = "cuda",
	};

	for (size_t i = 0; i < PFS_COUNT(names); i++) {
		if (strcmp(names[i], name) == 0) {
			*kind = (enum pfs_engine_kind)i;
			return 0;
		}
	}
	return -EINVAL;
}

int pfs_engine_open(struct pfs_engine **out, enum pfs_engine_kind kind)
{
	struct pfs_backend *backend = NULL;
	bool is_failed;
	int error = -ENODEV;

	if (kind != PFS_ENGINE_HOST)
		error = pfs_cuda_open(&backend);
	if (error == 0) {
		error = pfs_engine_open_backend(out, backend, true);
		if (error == 0)
			(*out)->device_only = kind == PFS_ENGINE_CUDA;
		return error;
	}
	is_failed = error != -ENODEV;
	if (is_failed)
		pfs_warning("the device cannot be opened (%s); going on with the host engine",
			    strerror(-error));
	else if (kind == PFS_ENGINE_CUDA)
		return error;
	PFS_TRY(pfs_host_open(&backend));
	PFS_TRY(pfs_engine_open_backend(out, backend, false));
	(*out)->is_degraded = is_failed;
	return 0;
}

void pfs_engine_close(struct pfs_engine *e)
{
	if (!e)
		return;
	e->backend->ops->close(e->backend);
	if (e->failed)
		e->failed->ops->close(e->failed);
	pfs_columns_free(&e->columns);
	pfs_changes_free(&e->changes);
	free(e->renamed);
	pfs_code_index_drop(&e->codes);
	(void)pthread_mutex_destroy(&e->lock);
	free(e);
}

void pfs_engine_describe(struct pfs_engine *e, struct pfs_engine_info *info)
{
	PFS_LOCKED(&e->lock);

	*info = (struct pfs_engine_info){
		.engine = e->backend->ops->name,
		.degraded = e->is_degraded,
		.directories = e->columns.n_directories
				       ? e->columns.n_directories - 1 - e->columns.n_free
				       : 0,
	};
	e->backend->ops->describe(e->backend, info);
}

bool pfs_engine_fall_back(struct pfs_engine *e, int error)
{
	struct pfs_backend *host;

	if (!e->is_device || (error != -ENOMEM && error != -EIO))
		return false;
	if (pfs_host_open(&host))
		return false;
	pfs_warning("the device failed (%s); going on with the host engine", strerror(-error));
	e->failed = e->backend; /* bitmaps may still be read from it */
	e->backend = host;
	e->is_device = false;
	e->is_degraded = true;
	e->stale = true;
	e->names_anew = true;
	return true;
}

int pfs_engine_update(struct pfs_engine *e)
{
	int error = 0;

	do {
		const struct pfs_engine_ops *ops = e->backend->ops;

		if (e->stale || e->changes.everything)
			error = ops->load(e->backend, &e->columns);
		else if (e->changes.n_slots || e->changes.n_directories)
			error = ops->apply(e->backend, &e->columns, &e->changes);
		/* A back end that stopped half-way is loaded anew next time. */
		e->stale = error != 0;
	} while (pfs_engine_leave_device(e, error));
	if (error == 0)
		pfs_changes_clear(&e->changes);
	return error;
}

int pfs_engine_load(struct pfs_engine *e, const uint32_t *parent, const uint64_t *prime, size_t n)
{
	PFS_LOCKED(&e->lock);
	int error;

	e->epoch++;
	e->stale = true;
	e->names_anew = true;
	e->n_renamed = 0;
	pfs_changes_clear(&e->changes);
	error = pfs_columns_load(&e->columns, parent, prime, n);
	return error ? error : pfs_engine_update(e);
}

static int note_name(struct pfs_engine *e, uint32_t slot)
{
	if (e->names_anew)
		return 0;
	if (e->n_renamed > e->columns.n_slots / 4 + 1024) { /* then all of them go faster */
		e->names_anew = true;
		e->n_renamed = 0;
		return 0;
	}
	if (pfs_grow(&e->renamed, &e->renamed_capacity, e->n_renamed + 1, sizeof(*e->renamed)))
		return -ENOMEM;
	e->renamed[e->n_renamed++] = slot;
	return 0;
}

int pfs_engine_apply(struct pfs_engine *e, size_t *applied, const struct pfs_delta *deltas,
		     size_t n)
{
	PFS_LOCKED(&e->lock);
	size_t done = 0;
	int error = 0;

	for (; done < n; done++) {
		error = pfs_columns_apply(&e->columns, &e->changes, &deltas[done]);
		if (error == 0 && deltas[done].op != PFS_DELTA_REMOVE)
			error = note_name(e, deltas[done].slot);
		if (error)
			break;
	}
	if (e->changes.n_slots > e->columns.n_slots / 2 + 1024)
		e->changes.everything = true;
	if (error == -ENOMEM)
		e->stale = true;
	e->epoch += done != 0;
	if (applied)
		*applied = done;
	return error;
}

void pfs_engine_use_ranges(struct pfs_engine *e, bool on)
{
	PFS_LOCKED(&e->lock);

	e->use_ranges = on;
}

int pfs_engine_sync(struct pfs_engine *e)
{
	PFS_LOCKED(&e->lock);
	int error;

	do {
		error = pfs_engine_update(e);
		error = error ? error : e->backend->ops->sync(e->backend);
	} while (pfs_engine_leave_device(e, error));
	return error;
}
