/* SPDX-License-Identifier: MIT */
/* tools/bench/shares.h - which parts of a statement through a mount take how long, by the daemon's
 * `.query/stats`. */
#ifndef PFS_TOOLS_BENCH_SHARES_H
#define PFS_TOOLS_BENCH_SHARES_H

#include <stdbool.h>
#include <stdint.h>

struct pfs_json;

/* What a daemon has done so far. */
struct pfs_bench_daemon {
	bool has_device;
	uint64_t on_host, on_device; /* operators run by each */
	uint64_t operators_ns;	     /* for which operators have run statements */
};

/* stats: what `.query/stats` says. What it lacks is 0. */
void pfs_bench_daemon_read(struct pfs_bench_daemon *out, const char *stats);

struct pfs_bench_shares {
	unsigned runs;
	double seconds; /* that they took who asked, all of them */
	double operators_seconds;
};

/* Takes the daemon's part of the runs between the two. */
void pfs_bench_shares_take(struct pfs_bench_shares *shares, const struct pfs_bench_daemon *before,
			   const struct pfs_bench_daemon *now);

/* Print a line, or an object to json, if that is not NULL; of operators only if there is a device.
 */
void pfs_bench_shares_print(const struct pfs_bench_shares *shares, const char *what,
			    struct pfs_json *json);
void pfs_bench_operators_print(const struct pfs_bench_daemon *before,
			       const struct pfs_bench_daemon *now, const char *what,
			       struct pfs_json *json);

#endif
