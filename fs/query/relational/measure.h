/* SPDX-License-Identifier: MIT */
/* fs/query/relational/measure.h - measures the host, and a device, by operators over small tables
 * of its own (rates.h has what becomes of it).
 *
 * The host's samples take one core some tens of milliseconds of processor time and 3 MiB. What else
 * runs on the machine hardly counts: each sample is the least processor time of several runs.
 *
 * Threads: any number of callers. */
#ifndef PFS_FS_QUERY_RELATIONAL_MEASURE_H
#define PFS_FS_QUERY_RELATIONAL_MEASURE_H

#include "base/err.h"
#include "fs/query/relational/rates.h"

struct pfs_operators;

/* Measures the host. poll is called each millisecond or so, and ends it by an error; NULL: never.
 * -ENOMEM; what poll returns. */
PFS_MUST_CHECK int pfs_measure_host(struct pfs_measured *out, int (*poll)(void *context),
				    void *context);
/* Measures launches of the operators' device, which is running, and copies to it: 32 MiB. Leaves
 * start_ns as it is. -EOPNOTSUPP: the host had to do it; -ENOMEM. */
PFS_MUST_CHECK int pfs_measure_device(struct pfs_seen *seen, struct pfs_operators *operators);

#endif
