/* SPDX-License-Identifier: MIT */
/* gpu/run.h - what a statement gives to every operator that it runs: where to run, when to stop or
 * to pause, and which account counts its memory.
 *
 * Threads: poll and charge are called by several threads at once, also by an operator's own
 * threads. They must not call an operator; nor must pause. */
#ifndef PFS_GPU_RUN_H
#define PFS_GPU_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/engine.h"

struct pfs_operators;
struct pfs_operator_counts; /* relation.h */

#define PFS_RUN_PAUSE 1 /* what poll returns when a pause is due */

struct pfs_run {
	struct pfs_operators *operators;
	/* HOST: the host runs the operator. CUDA or AUTO: the device does, if there is one that
	 * works and has the operator for such an input; else the host. */
	enum pfs_engine_kind on;
	/* Called at least once for each piece of about a millisecond's work. An error ends the
	 * operator, which returns it. PFS_RUN_PAUSE, of which only the thread that called the
	 * operator may be told, has `pause` called soon. NULL: it is never ended. */
	int (*poll)(void *context);
	/* Lets others change what the operator reads. Called by the thread that called the
	 * operator, while no thread of the operator reads. An error, if something has changed, ends
	 * the operator, which returns it. NULL: it never pauses. */
	int (*pause)(void *context);
	/* Called before memory is allocated (bytes above 0), and after it is freed (bytes below 0;
	 * it must then return 0). If it returns an error, by convention -ENOMEM, the operator frees
	 * all and returns that error. NULL: memory has no limit. */
	int (*charge)(void *context, int64_t bytes);
	void *context;
	/* The run's operators are counted here, too; NULL: they are not. One caller at a time. */
	struct pfs_operator_counts *counts;
};

/* ---- for operators and back ends ---- */

/* Polls the run, and pauses if that is due (crew.h). After an error what the operator reads may
 * have changed: the caller reads no more of it. */
PFS_MUST_CHECK int pfs_run_poll(const struct pfs_run *run);
/* As pfs_run_poll, but never pauses: for whoever reads on after an error, or has something that
 * others may wait for while they keep the run's owner waiting. */
PFS_MUST_CHECK int pfs_run_check(const struct pfs_run *run);

/* Work whose steps may take long, so that the run is polled by steps and not by rows. */
struct pfs_run_work {
	const struct pfs_run *run;
	int error;	/* the poll's error: the work has to end, and nothing is read any more */
};

/* As calloc and free, with run->charge. On an error, -ENOMEM or what charge returns, *out is NULL.
 * pfs_run_free takes the same sizes as pfs_run_alloc, and allows NULL. */
PFS_MUST_CHECK int pfs_run_alloc(const struct pfs_run *run, void *out, size_t count,
				 size_t element_size);
void pfs_run_free(const struct pfs_run *run, void *memory, size_t count, size_t element_size);
/* As pfs_run_alloc, but the memory is not cleared. */
PFS_MUST_CHECK int pfs_run_alloc_raw(const struct pfs_run *run, void *out, size_t count,
				     size_t element_size);
/* Replaces *array, which has `old` elements or is NULL, by one of `count`, which begins with them;
 * what comes behind them is cleared if `clear` is true. Polls the run from time to time. On an
 * error *array is what it was. */
PFS_MUST_CHECK int pfs_run_grow(const struct pfs_run *run, void *array, size_t old, size_t count,
				size_t element_size, bool clear);

#endif
