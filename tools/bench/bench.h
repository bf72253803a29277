/* SPDX-License-Identifier: MIT */
/* tools/bench/bench.h - what benchmarks share: time, processes, clients, and figures beside a
 * yardstick. */
#ifndef PFS_TOOLS_BENCH_BENCH_H
#define PFS_TOOLS_BENCH_BENCH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "tools/cmd.h"

/* The subjects: argv[0] is the subject; they return an exit status. */
#define BENCH(name, summary) int pfs_bench_##name(int argc, char **argv);
#include "tools/bench/subjects.h"

#define PFS_BENCH_RUNS_MAX 64

/* Returns a number that looks as if it had been drawn, another one for each x: the last steps of
 * SplitMix64. */
static inline uint64_t pfs_bench_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Returns the seconds since some fixed moment. */
double pfs_bench_now(void);
double pfs_bench_cpu(void); /* processor time of all threads, in seconds */

/* Returns the path of the primefs that is measured: $PRIMEFS, else the one in this program's own
 * folder, else the one along PATH. */
const char *pfs_bench_primefs(void);

/* Runs a program, found along PATH, to its end and drops its output; *seconds (may be NULL) is how
 * long it took. -EIO: it failed, which has been said. */
PFS_MUST_CHECK int pfs_bench_run(const char *verb, double *seconds, const char *const *argv);
/* Print how long another program takes, once, or that it is not installed; one that fails has said
 * so. The last two are updatedb, which writes all names below the folder to `names`, and duc, which
 * writes sizes to a file beside `near` that is removed. */
void pfs_bench_run_other(const char *verb, const char *what, const char *const *argv);
void pfs_bench_index_names(const char *verb, const char *what, const char *folder,
			   const char *names);
void pfs_bench_index_sizes(const char *verb, const char *what, const char *folder,
			   const char *near);

/* As pfs_bench_run; *memory (may be NULL) is the most bytes that it had in memory, and an exit
 * status up to `worst` is no failure. */
PFS_MUST_CHECK int pfs_bench_run_as(const char *verb, double *seconds, uint64_t *memory,
				    const char *const *argv, int worst);

/* ---- a folder with a store ---- */

/* Holds what a subject with the options --nodes and --folder measures. */
struct pfs_bench_folder {
	const char *verb; /* for messages: every failure is said */
	uint64_t nodes;	  /* of the made-up tree */
	char path[PATH_MAX];
	/* Files in the folder; those that are there are removed at the end. */
	char list[PATH_MAX + 16], store[PATH_MAX + 16], image[PATH_MAX + 32],
		mountpoint[PATH_MAX + 16];
};

/* The first options of such a subject, in this order; and those of one that has no others, and
 * 1,000,000 nodes by default. */
enum { PFS_BENCH_NODES, PFS_BENCH_FOLDER };
extern const struct pfs_cmd_option pfs_bench_folder_options[];

/* Takes --nodes (at least `least`; folder->nodes is the default) and --folder, and makes the folder
 * with an empty directory to mount on.  Returns -1, or the exit status to end with. */
PFS_MUST_CHECK int pfs_bench_folder_begin(struct pfs_bench_folder *folder,
					  const struct pfs_cmd *command, uint64_t least, int argc,
					  char **argv);

/* Removes the folder. `error`, if not 0, is said; returns the exit status. */
PFS_MUST_CHECK int pfs_bench_folder_end(const struct pfs_bench_folder *folder, int error);

/* Makes the folder alone, in `parent` (NULL or "": $TMPDIR or /tmp), for subjects with other
 * options. */
PFS_MUST_CHECK int pfs_bench_folder_make(struct pfs_bench_folder *folder, const char *parent);
void pfs_bench_folder_remove(const struct pfs_bench_folder *folder);

/* Write the tree's paths into `list`, a line each; and import them into `store`. */
PFS_MUST_CHECK int pfs_bench_folder_list(const struct pfs_bench_folder *folder);
PFS_MUST_CHECK int pfs_bench_folder_import(const struct pfs_bench_folder *folder);
/* Tells how many nodes the store at `path` has, and how long their names are together. */
PFS_MUST_CHECK int pfs_bench_sum_names(uint64_t *nodes, uint64_t *name_bytes, const char *path);

/* ---- figures ---- */

/* Sorts n values, of which there is at least one, and returns their median. */
double pfs_bench_median(double *values, size_t n);

struct pfs_figures {
	const char *what, *unit;
	const char *yardstick; /* its name; NULL: there is none */
	bool less_is_better;
	unsigned n, n_yardstick;
	double ours[PFS_BENCH_RUNS_MAX], theirs[PFS_BENCH_RUNS_MAX];
	double first;	     /* of ours, a run before those, which makes what they find; 0: none */
	double wanted_ratio; /* of the yardstick's speed; 0: none */
	double wanted;	     /* at least, or at most if less is better; 0: none */
};

void pfs_figures_add(struct pfs_figures *figures, double ours);
void pfs_figures_add_yardstick(struct pfs_figures *figures, double theirs);

/* Prints one line: medians with the least and the most in brackets, and how much of the yardstick's
 * speed that is; or an object into json, if that is not NULL. */
void pfs_figures_print(struct pfs_figures *figures, struct pfs_json *json);

/* Returns ours by the yardstick, of medians; 0 without a yardstick. */
double pfs_figures_ratio(struct pfs_figures *figures);

/* Returns true if a program lies on PATH. */
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

/* Runs the load; *rate is how many a second. */
PFS_MUST_CHECK int pfs_load_run(double *rate, const struct pfs_load *load);

#endif
