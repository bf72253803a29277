/* SPDX-License-Identifier: MIT */
/* primefs diff - shows what has changed between two stores, or between two times of one store. */
#include "tools/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/query/times/times.h"
#include "meta/store.h"
#include "tools/client/ready.h"
#include "tools/newer/from_print.h"

enum { BY_PATH, SUMMARY, JSON };
static const struct pfs_cmd_option options[] = {
	[BY_PATH] = {"by-path", 0, NULL,
		     "nodes of one path are the same, not those of one inode number"},
	[SUMMARY] = {"summary", 's', NULL, "print the totals alone"},
	[JSON] = {"json", 0, NULL, "print an object"},
	{0},
};
static const struct pfs_cmd command = {
	"diff",
	"STORE NEWER|TIME [TIME]",
	"Prints what is otherwise in the second of two stores, or has changed in one.",
	options,
	"Of a store and its copy nodes of one inode number are the same, of others those of one\n"
	"path.  Files of one size and mtime count as equal.  Mounted stores, or their mountpoints,\n"
	"are read as they are in the store by now.\n"
	"A time is one that the store keeps history of (primefs mount -o history=2d): '2 days ago',\n"
	"2024-01-31, '2024-01-31 12:00', seconds since 1970; what happened from then on is printed, up\n"
	"to the second one.  A file of that name is a store all the same.\n"
	"Exit status: 1 when anything differs.",
};

struct job {
	bool by_path, summary, json;
	struct pfs_tree *trees[2];
	struct pfs_json out;
};

static int tell(void *arg, const struct pfs_from_event *event)
{
	struct job *job = arg;

	if (job->json)
		pfs_from_print_json(&job->out, event);
	else
		pfs_from_print(event);
	return 0;
}

static int report(struct job *job, const struct pfs_from_lists *from)
{
	uint64_t n = 0;
	int error = 0;

	for (int what = 0; what < PFS_FROM_WHATS; what++)
		n += pfs_from_count(from, (enum pfs_from_what)what);
	job->out.out = stdout;
	if (job->json) {
		pfs_json_open(&job->out, NULL, '{');
		pfs_json_open(&job->out, "entries", '[');
	}
	if (!job->summary)
		error = pfs_from_tell(from, tell, job);
	if (job->json) {
		pfs_json_close(&job->out, ']');
		pfs_from_print_counts_json(&job->out, from);
		pfs_json_close(&job->out, '}');
	} else if (job->summary) {
		pfs_from_print_counts(from, false);
		(void)printf("\n");
	}
	return pfs_cmd_flush("diff", error || n ? PFS_EXIT_NO : PFS_EXIT_OK);
}

static int compare(struct job *job, const char *name)
{
	struct pfs_from_options how = {
		.tree = job->trees[0],
		.newer = job->trees[1],
		.root = PFS_ROOT_PRIME,
		.archive = true,
	};
	struct pfs_tree_info info[2];
	struct pfs_from_lists *from = NULL;
	char why[512] = "";
	int status, error = 0;

	for (int i = 0; i < 2 && !error; i++)
		error = pfs_tree_info(job->trees[i], &info[i]);
	if (!error) {
		how.primes = !job->by_path && info[0].seed == info[1].seed;
		error = pfs_from_compare(&from, &how, why, sizeof(why));
	}
	status = error ? pfs_cmd_fail("diff", "%s: %s", name, strerror(-error)) : report(job, from);
	pfs_from_close(from);
	return status;
}

static int open_stores(struct job *job, char *const *operands)
{
	char store[PATH_MAX], folder[PATH_MAX];
	int status = PFS_EXIT_OK;

	for (int i = 0; i < 2 && !status; i++) {
		status = pfs_ready_name(store, folder, "diff", operands[i]);
		if (!status)
			status = pfs_ready_group(&job->trees[i], "diff", store);
	}
	return status;
}

/* Opens one store at the times that the operands give. */
static int open_times(struct job *job, char *const *operands, int n)
{
	const int64_t now = pfs_time_now();
	int64_t at[2] = {0, 0};
	char store[PATH_MAX], folder[PATH_MAX];
	int status;

	for (int i = 1; i < n; i++)
		if (!pfs_time_point(&at[i - 1], operands[i], strlen(operands[i]), now) ||
		    !at[i - 1])
			return pfs_cmd_fail(
				"diff",
				"%s: is neither a store nor a time; write one like '2 days ago', "
				"2024-01-31 or '2024-01-31 12:00'",
				operands[i]);
	status = pfs_ready_name(store, folder, "diff", operands[0]);
	if (!status)
		status = pfs_ready_past(&job->trees[0], "diff", store, at[0]);
	if (!status)
		status = at[1] ? pfs_ready_past(&job->trees[1], "diff", store, at[1])
			       : pfs_ready_group(&job->trees[1], "diff", store);
	return status;
}

int pfs_cmd_diff(int argc, char **argv)
{
	struct job job = {.json = false};
	struct pfs_cmd_args args;
	int option, status;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		job.by_path |= option == BY_PATH;
		job.summary |= option == SUMMARY;
		job.json |= option == JSON;
	}
	if (pfs_cmd_end(&args, 2, 3))
		return args.status;
	status = args.n_operands == 2 && access(args.operands[1], F_OK) == 0
			 ? open_stores(&job, args.operands)
			 : open_times(&job, args.operands, args.n_operands);
	if (!status)
		status = compare(&job, args.operands[0]);
	for (int i = 0; i < 2; i++)
		if (pfs_tree_close(job.trees[i]))
			status = pfs_cmd_fail(
				"diff",
				"%s: its image file was damaged, and is removed; run it again",
				args.operands[i]);
	return status;
}
