/* SPDX-License-Identifier: MIT */
#include "tools/bench/bench.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/order.h"

extern char **environ;

double pfs_bench_now(void)
{
	return pfs_now_s();
}

double pfs_bench_cpu(void)
{
	return (double)pfs_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

const char *pfs_bench_primefs(void)
{
	static char path[PATH_MAX + sizeof("/primefs")];
	const char *chosen = getenv("PRIMEFS");
	ssize_t len;
	char *slash;

	if (chosen && *chosen)
		return chosen;
	len = readlink("/proc/self/exe", path, PATH_MAX);
	path[len > 0 ? len : 0] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return "primefs";
	memcpy(slash, "/primefs", sizeof("/primefs"));
	return access(path, X_OK) == 0 ? path : "primefs";
}

int pfs_bench_run(const char *verb, double *seconds, const char *const *argv)
{
	return pfs_bench_run_as(verb, seconds, NULL, argv, 0);
}

int pfs_bench_run_as(const char *verb, double *seconds, uint64_t *memory, const char *const *argv,
		     int worst)
{
	struct rusage usage;
	posix_spawn_file_actions_t actions;
	double started = pfs_bench_now();
	int error, status = 0;
	pid_t pid;

	error = posix_spawn_file_actions_init(&actions);
	if (error)
		return -error;
	error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (!error) /* which does not change the words, whatever its type says */
		error = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (error) {
		(void)pfs_cmd_fail(verb, "%s: %s", argv[0], strerror(error));
		return -error;
	}
	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return -errno;
	if (seconds)
		*seconds = pfs_bench_now() - started;
	if (memory)
		*memory = (uint64_t)usage.ru_maxrss * 1024;
	if (WIFEXITED(status) && WEXITSTATUS(status) <= worst)
		return 0;
	(void)pfs_cmd_fail(verb, "%s %s failed", argv[0], argv[1]);
	return -EIO;
}

bool pfs_bench_is_installed(const char *program)
{
	const char *path = getenv("PATH");
	const char *end;

	for (path = path ? path : "/usr/bin:/bin"; *path; path = *end ? end + 1 : end) {
		char *file PFS_FREE = NULL;

		end = strchrnul(path, ':');
		if (asprintf(&file, "%.*s/%s", (int)(end - path), path, program) > 0 &&
		    access(file, X_OK) == 0)
			return true;
	}
	return false;
}

/* ---- figures ---- */

void pfs_figures_add(struct pfs_figures *figures, double ours)
{
	if (figures->n < PFS_BENCH_RUNS_MAX)
		figures->ours[figures->n++] = ours;
}

void pfs_figures_add_yardstick(struct pfs_figures *figures, double theirs)
{
	if (figures->n_yardstick < PFS_BENCH_RUNS_MAX)
		figures->theirs[figures->n_yardstick++] = theirs;
}

double pfs_bench_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), pfs_compare_double);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Prints at least three digits. */
static void print_value(double value)
{
	int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	(void)printf("%.*f", digits, value);
}

static void print_spread(const double *sorted, unsigned n, double middle, const char *unit)
{
	print_value(middle);
	(void)printf(" %s", unit);
	if (n < 2)
		return;
	(void)fputs(" [", stdout);
	print_value(sorted[0]);
	(void)putchar(' ');
	print_value(sorted[n - 1]);
	(void)putchar(']');
}

static void print_json(const struct pfs_figures *figures, struct pfs_json *json, double ours,
		       double theirs, double ratio)
{
	pfs_json_open(json, NULL, '{');
	pfs_json_string(json, "what", figures->what);
	pfs_json_string(json, "unit", figures->unit);
	pfs_json_real(json, "median", ours);
	pfs_json_real(json, "least", figures->ours[0]);
	pfs_json_real(json, "most", figures->ours[figures->n - 1]);
	if (figures->first > 0)
		pfs_json_real(json, "first", figures->first);
	if (figures->n_yardstick) {
		pfs_json_string(json, "yardstick", figures->yardstick);
		pfs_json_real(json, "yardstick_median", theirs);
		pfs_json_real(json, "yardstick_least", figures->theirs[0]);
		pfs_json_real(json, "yardstick_most", figures->theirs[figures->n_yardstick - 1]);
		pfs_json_real(json, "ratio", ratio);
	}
	if (figures->wanted_ratio > 0)
		pfs_json_real(json, "wanted_ratio", figures->wanted_ratio);
	if (figures->wanted > 0)
		pfs_json_real(json, "wanted", figures->wanted);
	pfs_json_close(json, '}');
}

double pfs_figures_ratio(struct pfs_figures *figures)
{
	double ours, theirs;

	if (!figures->n || !figures->n_yardstick)
		return 0;
	ours = pfs_bench_median(figures->ours, figures->n);
	theirs = pfs_bench_median(figures->theirs, figures->n_yardstick);
	return figures->less_is_better ? theirs / ours : ours / theirs;
}

void pfs_figures_print(struct pfs_figures *figures, struct pfs_json *json)
{
	double ours, theirs = 0, ratio = pfs_figures_ratio(figures);

	if (!figures->n)
		return;
	ours = pfs_bench_median(figures->ours, figures->n);
	if (figures->n_yardstick)
		theirs = pfs_bench_median(figures->theirs, figures->n_yardstick);
	if (json) {
		print_json(figures, json, ours, theirs, ratio);
		return;
	}
	(void)printf("%s\n    ", figures->what);
	print_spread(figures->ours, figures->n, ours, figures->unit);
	if (figures->first > 0) {
		(void)fputs(", at first ", stdout);
		print_value(figures->first);
		(void)printf(" %s", figures->unit);
	}
	if (figures->n_yardstick) {
		(void)printf("; %s ", figures->yardstick);
		print_spread(figures->theirs, figures->n_yardstick, theirs, figures->unit);
		(void)printf("; ratio %.2f", ratio);
	}
	if (figures->wanted_ratio > 0)
		(void)printf(", wanted %.2f", figures->wanted_ratio);
	if (figures->wanted > 0) {
		(void)printf("; wanted at %s ", figures->less_is_better ? "most" : "least");
		print_value(figures->wanted);
		(void)printf(" %s", figures->unit);
	}
	(void)putchar('\n');
	(void)fflush(stdout);
}
