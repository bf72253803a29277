/* SPDX-License-Identifier: MIT */
/* Prints the figures of bench query as they are taken, and a table of those that were wanted at the
 * end. */
#include "tools/bench/query.h"

#include <stdlib.h>

#include "base/checked.h"

#define ENOUGH 4.0 /* seconds that are enough for one figure */

int pfs_bench_repeat(const struct pfs_bench_query *bench, struct pfs_figures *figures,
		     void (*add)(struct pfs_figures *figures, double value),
		     int (*run)(void *arg, double *seconds), void *arg)
{
	double seconds, started = pfs_bench_now();

	for (uint64_t i = 0; i < bench->runs && pfs_bench_now() - started < ENOUGH; i++) {
		PFS_TRY(run(arg, &seconds));
		add(figures, seconds * 1e3);
	}
	return 0;
}

int pfs_bench_query_print(struct pfs_bench_query *bench, struct pfs_figures *figures)
{
	struct pfs_bench_goal *goal;

	pfs_figures_print(figures, bench->json);
	if (figures->wanted_ratio <= 0 || !figures->n_yardstick)
		return 0;
	PFS_TRY(pfs_grow(&bench->goals, &bench->capacity, bench->n_goals + 1, sizeof(*goal)));
	goal = &bench->goals[bench->n_goals++];
	*goal = (struct pfs_bench_goal){
		.ratio = pfs_figures_ratio(figures),
		.wanted = figures->wanted_ratio,
		.otherwise =
			figures->wanted > 0 && figures->ours[figures->n / 2] <= figures->wanted,
	};
	(void)snprintf(goal->what, sizeof(goal->what), "%s, beside %s", figures->what,
		       figures->yardstick);
	return 0;
}

void pfs_bench_query_sum_up(struct pfs_bench_query *bench)
{
	size_t met = 0;

	if (bench->n_goals && !bench->json)
		(void)printf("\n%10s %8s\n", "speed-up", "wanted");
	for (size_t i = 0; i < bench->n_goals; i++) {
		const struct pfs_bench_goal *goal = &bench->goals[i];
		bool is_met = goal->ratio >= goal->wanted || goal->otherwise;

		met += is_met;
		if (!bench->json)
			(void)printf("%10.2f %8.2f  %s  %s\n", goal->ratio, goal->wanted,
				     is_met ? "met   " : "MISSED", goal->what);
	}
	if (bench->n_goals && !bench->json)
		(void)printf("%zu of %zu met\n", met, bench->n_goals);
	free(bench->goals);
	bench->goals = NULL;
}

void pfs_bench_query_failed(const struct pfs_bench_query *bench, const char *what,
			    const char *whose, const char *error)
{
	if (!bench->json) {
		(void)printf("%s\n    %s: %s\n", what, whose, error);
		return;
	}
	pfs_json_open(bench->json, NULL, '{');
	pfs_json_string(bench->json, "what", what);
	pfs_json_string(bench->json, "failed", whose);
	pfs_json_string(bench->json, "error", error);
	pfs_json_close(bench->json, '}');
}

void pfs_bench_query_lacks(const struct pfs_bench_query *bench, const char *program)
{
	if (!bench->json) {
		(void)printf("%s: not installed\n", program);
		return;
	}
	pfs_json_open(bench->json, NULL, '{');
	pfs_json_string(bench->json, "yardstick", program);
	pfs_json_string(bench->json, "missing", "not installed");
	pfs_json_close(bench->json, '}');
}
