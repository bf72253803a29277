/* SPDX-License-Identifier: MIT */
/* fs/query/relational/kept_rates.h - the rates that the statements of a tree use now: the fixed
 * ones, until this host or a device has been measured.
 *
 * Threads: any number of callers, but for open and close. */
#ifndef PFS_FS_QUERY_RELATIONAL_KEPT_RATES_H
#define PFS_FS_QUERY_RELATIONAL_KEPT_RATES_H

#include <stdint.h>

#include "base/err.h"
#include "fs/query/relational/rates.h"

struct pfs_kept_rates;
struct pfs_operators;

/* Begins with the fixed rates. -ENOMEM; *out is then NULL. */
PFS_MUST_CHECK int pfs_kept_rates_open(struct pfs_kept_rates **out);
/* Ends the thread that measures, if there is one. NULL is allowed. */
void pfs_kept_rates_close(struct pfs_kept_rates *kept);

/* Copies the rates, all of one moment. */
void pfs_kept_rates_get(struct pfs_kept_rates *kept, struct pfs_rates *out);

/* Starts a thread, nicer than requests, that measures the host, delay_ms from now: what is asked
 * first of a mount is not disturbed. Only from now on are devices measured. Where no thread can be
 * had, the host's rates stay the fixed ones. Called once at most. */
void pfs_kept_rates_measure(struct pfs_kept_rates *kept, unsigned delay_ms);
/* A device was started, which took start_ns: measures it, if pfs_kept_rates_measure was called. */
void pfs_kept_rates_see(struct pfs_kept_rates *kept, struct pfs_operators *operators,
			uint64_t start_ns);

#endif
