/* SPDX-License-Identifier: MIT */
/* tools/bench/bench.h - what benchmarks share: time, processes, clients, and figures beside a yardstick.
 */
#ifndef PFS_TOOLS_BENCH_BENCH_H
#define PFS_TOOLS_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "tools/cmd.h"

/* The subjects: argv[0] is the subject; they return an exit status. */
#define BENCH(name, summary) int pfs_bench_##name(int argc, char **argv);
#include "tools/bench/subjects.h"

#define PFS_BENCH_RUNS_MAX 64

/* Seconds since some moment. */
double pfs_bench_now(void);

/* The primefs that is measured: $PRIMEFS, else the one in this program's own folder, else the one
 * along PATH. */
const char *pfs_bench_primefs(void);

/* Runs a program, found along PATH, to its end, its output dropped; *seconds it took (may be NULL).
 * -EIO when it fails, which has been said. */
PFS_MUST_CHECK int pfs_bench_run(const char *verb, double *seconds, const char *const *argv);

/* ---- figures ---- */

struct pfs_figures {
	const char *what, *unit;
	const char *yardstick; /* its name; NULL: there is none */
	bool less_is_better;
	unsigned n, n_yardstick;
	double ours[PFS_BENCH_RUNS_MAX], theirs[PFS_BENCH_RUNS_MAX];
	double wanted_ratio; /* of the yardstick's speed; 0: none */
	double wanted;	     /* at least, or at most if less is better; 0: none */
};

void pfs_figures_add(struct pfs_figures *figures, double ours);
void pfs_figures_add_yardstick(struct pfs_figures *figures, double theirs);

/* One line, medians with the least and the most in brackets, and how much of the yardstick's speed
 * that is; or an object into json if that is not NULL. */
void pfs_figures_print(struct pfs_figures *figures, struct pfs_json *json);

/* Ours beside the yardstick, by medians; 0 without one. */
double pfs_figures_ratio(struct pfs_figures *figures);

/* Whether a program lies on PATH. */
bool pfs_bench_is_installed(const char *program);

/* ---- clients ---- */

enum pfs_load_kind {
	PFS_LOAD_STAT,	/* fstat of an open file */
	PFS_LOAD_MISS,	/* stat of a name that is not there, another one each time */
	PFS_LOAD_PAIR,	/* create a file, close and remove it */
	PFS_LOAD_WRITE, /* create a file, write 1 KB, close it */
	PFS_LOAD_SYNC,	/* the same with an fsync before the close */
};

struct pfs_load {
	enum pfs_load_kind kind;
	const char *folder; /* holds d0 ... d63, and they f000000, as far as there are threads */
	unsigned threads;   /* at most 64 */
	double seconds;
	unsigned series; /* names are made of this too: no two loads make the same ones */
};

/* *rate = how many a second. */
PFS_MUST_CHECK int pfs_load_run(double *rate, const struct pfs_load *load);

#endif
