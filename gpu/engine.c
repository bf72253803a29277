/* SPDX-License-Identifier: MIT */
/* gpu/engine.c - opens, loads and changes an engine, and leaves a device that fails. */
#include "gpu/engine.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "gpu/engine_impl.h"
#include "gpu/probe.h"

static int init_lock(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attr;
	int error;

	(void)pthread_rwlockattr_init(&attr);
	/* Questions that never pause must not keep changes waiting for ever. */
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	error = pthread_rwlock_init(lock, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
	return -error;
}

int pfs_engine_open_backend(struct pfs_engine **out, struct pfs_backend *backend, bool is_device)
{
	struct pfs_engine *e = calloc(1, sizeof(*e));

	if (!e || init_lock(&e->lock)) {
		free(e);
		backend->ops->close(backend);
		return -ENOMEM;
	}
	e->backend = backend;
	e->is_device = is_device;
	e->use_ranges = true;
	e->stale = true;
	e->names_anew = true;
	pfs_code_index_init(&e->codes);
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
	pfs_code_index_finish(&e->codes);
	(void)pthread_rwlock_destroy(&e->lock);
	free(e);
}

void pfs_engine_describe(struct pfs_engine *e, struct pfs_engine_info *info)
{
	PFS_READING(&e->lock);

	*info = (struct pfs_engine_info){
		.engine = e->backend->ops->name,
		.degraded = e->is_degraded,
		.directories = e->columns.n_directories
				       ? e->columns.n_directories - 1 - e->columns.n_free
				       : 0,
	};
	e->backend->ops->describe(e->backend, info);
}

bool pfs_engine_leave_device(struct pfs_engine *e, int error)
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

/* ---- questions ---- */

int pfs_codes_job_end(struct pfs_codes_job *job, int error)
{
	int late = job->ops->sync(job);

	job->ops->end(job);
	return error ? error : late;
}

static bool has_columns(const struct pfs_engine *e)
{
	return !e->stale && !e->changes.everything && !e->changes.n_slots &&
	       !e->changes.n_directories;
}

static int update_backend(struct pfs_engine *e)
{
	const struct pfs_engine_ops *ops = e->backend->ops;
	struct pfs_codes_job *job;
	int error;

	PFS_TRY(ops->begin(e->backend, &job));
	if (e->stale || e->changes.everything)
		error = ops->load(job, &e->columns);
	else
		error = ops->apply(job, &e->columns, &e->changes);
	return pfs_codes_job_end(job, error);
}

/* Brings the back end's columns up to date. The lock is held for writing. */
static int update(struct pfs_engine *e)
{
	int error = 0;

	if (has_columns(e))
		return 0;
	do {
		error = update_backend(e);
		/* A back end that stopped half-way is loaded anew next time. */
		e->stale = error != 0;
	} while (error && pfs_engine_leave_device(e, error));
	if (error == 0)
		pfs_changes_clear(&e->changes);
	return error;
}

static bool is_ready(const struct pfs_asking *asking)
{
	return has_columns(asking->engine) &&
	       (!asking->names || pfs_engine_knows_names(asking->engine, asking->names));
}

/* Brings the back end up to date. The lock is held for writing. */
static int make_ready(const struct pfs_asking *asking)
{
	struct pfs_engine *e = asking->engine;
	int error;

	do { /* repeated if the device is left while names are sent to it */
		PFS_TRY(update(e));
		error = asking->names ? pfs_engine_send_some(e, asking->names, SIZE_MAX) : 0;
	} while (error >= 0 && !has_columns(e));
	return PFS_MIN(error, 0);
}

/* Takes the lock, for reading unless the question is asked alone. */
static int hold_ready(struct pfs_asking *asking)
{
	struct pfs_engine *e = asking->engine;

	for (unsigned i = 0;; i++) {
		int error;

		(void)(asking->is_alone ? pthread_rwlock_wrlock : pthread_rwlock_rdlock)(&e->lock);
		if (is_ready(asking))
			return 0;
		if (!asking->is_alone) {
			(void)pthread_rwlock_unlock(&e->lock);
			(void)pthread_rwlock_wrlock(&e->lock);
		}
		/* If changes come all the time the question is answered alone, rather than never.
		 */
		asking->is_alone = asking->is_alone || i > 0;
		error = make_ready(asking);
		if (error == 0 && asking->is_alone)
			return 0;
		(void)pthread_rwlock_unlock(&e->lock);
		if (error)
			return error;
	}
}

int pfs_asking_begin(struct pfs_asking *asking)
{
	struct pfs_backend *backend;

	asking->is_held = false;
	asking->job = NULL;
	PFS_TRY(hold_ready(asking));
	asking->is_held = true;
	backend = asking->engine->backend;
	return backend->ops->begin(backend, &asking->job);
}

bool pfs_asking_end(struct pfs_asking *asking, int *error)
{
	struct pfs_engine *e = asking->engine;
	const struct pfs_backend *backend;
	bool is_device;

	if (!asking->is_held) /* neither back end could be brought up to date */
		return true;
	if (asking->job)
		*error = pfs_codes_job_end(asking->job, *error);
	backend = e->backend;
	is_device = e->is_device;
	(void)pthread_rwlock_unlock(&e->lock);
	if (!is_device || (*error != -ENOMEM && *error != -EIO))
		return true;
	if (*error == -ENOMEM && !asking->is_alone) {
		asking->is_alone = true;
		return false;
	}
	PFS_WRITING(&e->lock);
	return e->backend == backend && !pfs_engine_leave_device(e, *error);
}

/* ---- changes ---- */

int pfs_engine_load(struct pfs_engine *e, const uint32_t *parent, const uint64_t *prime, size_t n)
{
	PFS_WRITING(&e->lock);
	int error;

	e->epoch++;
	e->stale = true;
	e->names_anew = true;
	e->n_renamed = 0;
	pfs_changes_clear(&e->changes);
	error = pfs_columns_load(&e->columns, parent, prime, n);
	return error ? error : update(e);
}

static int note_name(struct pfs_engine *e, uint32_t slot)
{
	if (e->names_anew)
		return 0;
	if (e->n_renamed > e->columns.n_slots / 4 + 1024) { /* then sending all of them is faster */
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
	PFS_WRITING(&e->lock);
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
	PFS_WRITING(&e->lock);

	e->use_ranges = on;
}

int pfs_engine_sync(struct pfs_engine *e)
{
	struct pfs_asking asking = {.engine = e};
	int error;

	do
		error = pfs_asking_begin(&asking);
	while (!pfs_asking_end(&asking, &error));
	return error;
}
