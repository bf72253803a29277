/* SPDX-License-Identifier: MIT */
/* gpu/run.h - what a statement lends to every operator that it runs: where to run, when to stop,
 * and whose memory counts.
 *
 * Threads: both functions are called by several threads at once, and by the operator's own.  They
 * must not call an operator. */
#ifndef PFS_GPU_RUN_H
#define PFS_GPU_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/engine.h"

struct pfs_operators;

struct pfs_run {
	struct pfs_operators *operators;
	/* HOST: always there.  CUDA or AUTO: on the device where that has the operator for such an
	 * input and is well, else on the host. */
	enum pfs_engine_kind on;
	/* Called at least once for each piece of about a millisecond's work. An error ends the
	 * operator, which returns it. NULL: it is never ended. */
	int (*poll)(void *context);
	/* Called before memory is allocated (bytes above 0) and after it is freed (below 0; must
	 * then return 0).  An error, by convention -ENOMEM, is returned by the operator, which
	 * keeps nothing. NULL: without a limit. */
	int (*charge)(void *context, int64_t bytes);
	void *context;
};

/* ---- for operators and back ends ---- */

static inline int pfs_run_poll(const struct pfs_run *run)
{
	return run->poll ? run->poll(run->context) : 0;
}

/* Counts work whose steps may take long, so that the run is polled for cancellation by steps and
 * not by rows. */
struct pfs_run_work {
	const struct pfs_run *run;
	uint64_t steps; /* at most, since run was polled */
	int error;	/* of polling: nothing more is worth doing */
};

/* calloc and free that are counted. -ENOMEM, or what charge returns: *out is NULL then.
 * pfs_run_free takes the size that was asked for, and allows NULL. */
PFS_MUST_CHECK int pfs_run_alloc(const struct pfs_run *run, void *out, size_t count,
				 size_t element_size);
void pfs_run_free(const struct pfs_run *run, void *memory, size_t count, size_t element_size);
/* As pfs_run_alloc, without clearing. */
PFS_MUST_CHECK int pfs_run_alloc_raw(const struct pfs_run *run, void *out, size_t count,
				     size_t element_size);

#endif
