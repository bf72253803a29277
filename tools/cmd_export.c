/* SPDX-License-Identifier: MIT */
/* primefs export: writes out what was imported. */
#include "tools/cmd.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/attr/attrcolumn.h"
#include "fs/content/register.h"
#include "meta/store.h"
#include "tools/export/export.h"
#include "tools/client/ready.h"
#include "tools/output.h"

static const struct pfs_export_format *const formats[] = {&pfs_export_paths, &pfs_export_csv,
							  &pfs_export_tar};

enum { FORMAT, AT, COLUMNS, NEW_IDS, NUL_ENDED, OUTPUT };

static const struct pfs_cmd_option cmd_options[] = {
	[FORMAT] = {"format", 'f', "FORMAT", "paths (default), csv or tar"},
	[AT] = {"at", 0, "/PATH", "only what lies under this directory of the store"},
	[COLUMNS] = {"columns", 0, "NAME,...",
		     "paths, csv: these attributes (paths has none without it, csv all)"},
	[NEW_IDS] = {"new-ids", 0, NULL, "csv: number the rows that have come since the import"},
	[NUL_ENDED] = {"null", '0', NULL, "paths: end them with NUL, not with a newline"},
	[OUTPUT] = {"output", 'o', "FILE", "write there, not to standard output"},
	{0},
};

static const struct pfs_cmd command = {
	"export",
	"STORE",
	"Writes what a store holds as paths, a table or an archive.",
	cmd_options,
	"Exit status 1: done, but the content of some files could not be had.\n",
};

struct job {
	const struct pfs_export_format *format;
	const char *at, *columns, *output;
	struct pfs_export export;
};

/* ---- columns ---- */

static int take_columns(struct pfs_export *to, const char *list)
{
	while (*list) {
		size_t len = strcspn(list, ",");

		PFS_TRY(pfs_export_add_column(to, list, len));
		list += len + (list[len] == ',');
	}
	return 0;
}

struct wanted {
	const char *name;
	bool is_there;
};

static int see_name(void *arg, const char *name, size_t len, enum pfs_attr_type type PFS_UNUSED)
{
	struct wanted *wanted = arg;

	wanted->is_there |= strlen(wanted->name) == len && memcmp(wanted->name, name, len) == 0;
	return 0;
}

/* Checks that each attribute has been set on some node: otherwise it is misspelt, or a column that
 * only statements know. */
static int check_columns(const struct pfs_export *to)
{
	for (size_t i = 0; i < to->n_columns; i++) {
		struct wanted wanted = {.name = to->columns[i]};

		PFS_TRY(pfs_attr_names(to->tree, see_name, &wanted));
		if (!wanted.is_there &&
		    !pfs_registers_computing(to->tree, wanted.name, strlen(wanted.name)))
			return pfs_export_fail(
				to,
				"--columns=%s: no node has this attribute; columns of nodes "
				"itself are for primefs query",
				wanted.name);
	}
	return 0;
}

/* ---- the export ---- */

static int find_root(const struct job *job)
{
	struct pfs_export *to = (struct pfs_export *)&job->export;
	struct pfs_entry entry;
	int error = pfs_tree_resolve(to->tree, &to->root, job->at ? job->at : "/");

	if (!error)
		error = pfs_tree_getattr(to->tree, &entry, to->root);
	if (!error && !S_ISDIR(entry.attr.st_mode))
		error = -ENOTDIR;
	if (error)
		return pfs_export_fail(to, "--at=%s: %s", job->at, strerror(-error));
	return 0;
}

/* All that may be wrong is found before the output is opened. */
static int prepare(struct job *job)
{
	struct pfs_export *to = &job->export;

	PFS_TRY(find_root(job));
	if (job->columns)
		PFS_TRY(take_columns(to, job->columns));
	return check_columns(to);
}

/* Says why the export ends, unless that has been said. Returns an exit status. */
static int fail(const struct job *job, int error)
{
	if (error != -ECANCELED)
		(void)pfs_export_fail(&job->export, "%s", strerror(-error));
	return PFS_EXIT_FAILURE;
}

static int write_out(struct job *job)
{
	struct pfs_export *to = &job->export;
	struct pfs_output out;
	int error, status = PFS_EXIT_OK;

	PFS_TRY(pfs_output_open(&out, "export", job->output));
	to->out = out.file;
	if (job->format->binary && isatty(fileno(out.file)))
		status = pfs_cmd_usage("export",
				       "an archive is nothing for a terminal; use -o FILE");
	error = status ? 0 : job->format->write(to);
	if (error)
		status = fail(job, error);
	else if (!status && to->left_out)
		status = PFS_EXIT_NO;
	return pfs_output_close(&out, status, to->out_error);
}

static int run(struct job *job)
{
	int error, status = pfs_ready_group(&job->export.tree, "export", job->export.store);

	if (status)
		return status;
	error = prepare(job);
	status = error ? fail(job, error) : write_out(job);
	if (pfs_tree_close(job->export.tree)) {
		(void)pfs_export_fail(&job->export,
				      "its image file was damaged, and is removed; export again");
		status = PFS_EXIT_FAILURE;
	}
	while (job->export.n_columns)
		free(job->export.columns[--job->export.n_columns]);
	free(job->export.columns);
	return status;
}

static void choose_format(struct job *job, struct pfs_cmd_args *args)
{
	size_t i;

	for (i = 0; i < PFS_COUNT(formats); i++)
		if (strcmp(args->value, formats[i]->name) == 0) {
			job->format = formats[i];
			return;
		}
	pfs_cmd_reject(args, "--format=%s: not one of paths, csv, tar", args->value);
}

static void choose_top(struct job *job, struct pfs_cmd_args *args)
{
	job->at = args->value;
	if (!*job->at)
		pfs_cmd_reject(args, "--at= is empty; that of the root is /");
}

int pfs_cmd_export(int argc, char **argv)
{
	struct job job = {.format = &pfs_export_paths};
	struct pfs_cmd_args args;
	char store[PATH_MAX], folder[PATH_MAX];
	int option, status;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == FORMAT)
			choose_format(&job, &args);
		else if (option == AT)
			choose_top(&job, &args);
		else if (option == COLUMNS)
			job.columns = args.value;
		else if (option == NEW_IDS)
			job.export.new_ids = true;
		else if (option == NUL_ENDED)
			job.export.nul_ended = true;
		else
			job.output = args.value;
	}
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	if (job.columns && job.format == &pfs_export_tar)
		return pfs_cmd_usage("export",
				     "--columns is for paths and csv; tar has all attributes");
	if (job.export.new_ids && (job.format != &pfs_export_csv || job.columns))
		return pfs_cmd_usage("export", "--new-ids is for --format=csv without --columns");
	if (job.export.nul_ended && job.format != &pfs_export_paths)
		return pfs_cmd_usage("export", "--null is for --format=paths");
	job.export.store = store;
	status = pfs_ready_name(store, folder, "export", args.operands[0]);
	return status ? status : run(&job);
}
