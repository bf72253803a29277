/* SPDX-License-Identifier: MIT */
/* primefs-bench rates - prints the rates that a daemon measures on this host to estimate
 * statements, beside the fixed ones (fs/query/relational/rates.h). */
#include "tools/bench/bench.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "fs/query/relational/measure.h"

static const struct pfs_cmd_option options[] = {{0}};

static const struct pfs_cmd command = {
	"rates",
	"",
	"Measures this host as a daemon does, and prints the rates beside the fixed ones.",
	options,
	"Nanoseconds a row, of one core.\n",
};

static const char *const names[PFS_N_SAMPLES] = {
	[PFS_SAMPLE_LOOK] = "look",
	[PFS_SAMPLE_PATTERN] = "pattern",
	[PFS_SAMPLE_FOLD] = "fold",
	[PFS_SAMPLE_GROUP_FEW] = "group_few",
	[PFS_SAMPLE_GROUP_MANY] = "group_many",
	[PFS_SAMPLE_SORT] = "sort",
	[PFS_SAMPLE_JOIN] = "join",
};

static int run(void)
{
	int64_t start = pfs_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct pfs_rates rates = pfs_rates_fixed;
	struct pfs_measured measured;
	double ms;

	PFS_TRY(pfs_measure_host(&measured, NULL, NULL));
	ms = (double)(pfs_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e6;
	pfs_rates_measured(&rates, &measured);
	(void)printf("measured in %.1f ms of processor time\n\n%-16s %10s\n", ms, "sample", "ns");
	for (unsigned i = 0; i < PFS_N_SAMPLES; i++)
		(void)printf("%-16s %10.2f\n", names[i], measured.ns[i]);
	(void)printf("\n%-16s %10s %10s %8s\n", "rate", "fixed", "measured", "factor");
	for (unsigned i = 0; i < PFS_N_WORKS; i++)
		(void)printf("%-16s %10.2f %10.2f %8.2f\n", pfs_work_names[i],
			     pfs_rates_fixed.work[i].host, rates.work[i].host,
			     rates.work[i].host / pfs_rates_fixed.work[i].host);
	return 0;
}

int pfs_bench_rates(int argc, char **argv)
{
	struct pfs_cmd_args args;
	int error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while (pfs_cmd_next(&args) >= 0)
		;
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	error = run();
	if (error)
		return pfs_cmd_fail("rates", "%s", strerror(-error));
	return pfs_cmd_flush("rates", PFS_EXIT_OK);
}
