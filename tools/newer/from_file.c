/* SPDX-License-Identifier: MIT */
#include "tools/newer/from_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fs/content/compared.h"
#include "fs/content/follow.h"
#include "meta/store.h"
#include "tools/client/ready.h"
#include "tools/import/import.h"
#include "tools/import/import_recognise.h"
#include "tools/newer/from.h"
#include "tools/newer/from_log.h"
#include "tools/newer/from_print.h"

#define VERB "refresh"

struct job {
	const struct pfs_from_file *file;
	char store[PATH_MAX];
	char passing[PATH_MAX + 32]; /* the newer tree's store, which is unlinked once open */
	struct pfs_tree *tree, *newer;
	uint64_t root;
	time_t begun_s; /* when the refresh began, since 1970 */
	bool has_register;
	struct pfs_register_record is; /* of the table that was imported, if has_register */
	const struct pfs_import_format *format;
	struct pfs_json json;
};

/* ---- what the store has ---- */

/* Returns the name of a column of the table, or NULL if `column` is negative. */
static const char *column_name(const struct pfs_register_record *of, int column)
{
	const char *name = of->columns;

	if (column < 0)
		return NULL;
	while (column--)
		name += strlen(name) + 1;
	return name;
}

/* Finds the directory that is refreshed, and the register of the table imported to it, if any. */
static int find_register(struct job *job)
{
	const char *path = job->file->path ? job->file->path : "/";
	int error = pfs_tree_resolve(job->tree, &job->root, path);

	if (error)
		return pfs_cmd_fail(VERB, "%s: %s in the store", path, strerror(-error));
	error = pfs_tree_register(job->tree, &job->is, job->root);
	job->has_register = !error;
	if (error && error != -ENODATA)
		return pfs_cmd_fail(VERB, "%s: %s", job->store, strerror(-error));
	if (job->has_register && job->is.root != job->root)
		return pfs_cmd_fail(
			VERB, "%s: lies within a table; name the directory that it was imported to",
			path);
	return PFS_EXIT_OK;
}

static bool lies_in(const struct job *job, uint64_t ino, uint64_t directory)
{
	while (ino && ino != directory)
		ino = pfs_follow_parent(job->tree, ino);
	return ino == directory;
}

/* Called for nodes with an original. Returns 1 if the node lies in the directory to be
 * refreshed. */
static int see_original(void *arg, uint64_t ino, const struct pfs_source_record *record PFS_UNUSED)
{
	const struct job *job = arg;

	return lies_in(job, ino, job->root);
}

/* Refuses a directory to which a folder was imported: everything in it that the newer file lacks
 * would be removed. */
static int refuse_folder(struct job *job)
{
	const char *path = job->file->path ? job->file->path : "/";
	int found = job->has_register ? 0 : pfs_follow_find(job->tree, see_original, job);
	int copied = job->has_register || found ? 0 : pfs_compared_is_copied(job->tree, job->root);

	if (found < 0 || copied < 0)
		return pfs_cmd_fail(VERB, "%s: %s", job->store, strerror(found ? -found : -copied));
	if (!found && !copied)
		return PFS_EXIT_OK;
	return pfs_cmd_fail(
		VERB,
		"%s: a folder was imported to %s or below it, and no list or archive has its files; "
		"%s, or name another directory",
		job->store, path, copied ? "import it again" : "refresh it without --from");
}

/* ---- what is newer ---- */

static void say(void *arg PFS_UNUSED, const char *message)
{
	pfs_cmd_say(VERB, "%s", message);
}

static void describe(const struct job *job, struct pfs_import_options *options)
{
	const struct pfs_register_record *is = &job->is;

	*options = (struct pfs_import_options){
		.source = job->file->newer,
		.store = job->passing,
		.content = PFS_CONTENT_COPY,
		.columns = job->file->columns,
		.skip_given = true,
		.quiet = true,
		.passing = true,
	};
	if (!job->has_register)
		return;
	options->format = &pfs_import_csv;
	options->path_column = column_name(is, is->path);
	options->id_column = column_name(is, is->id);
	options->parent_column = column_name(is, is->parent);
	options->name_column = column_name(is, is->name);
	options->delimiter = strcmp(is->delimiter, ",") != 0 ? is->delimiter : NULL;
	options->slash = *is->slash ? is->slash : NULL;
}

static int open_input(const struct job *job, struct pfs_import *import)
{
	const char *newer = job->file->newer, *why = NULL;
	int error = pfs_input_open(&import->input, newer);

	if (!error)
		error = pfs_import_recognise(import, &why);
	if (error)
		return pfs_cmd_fail(VERB, "%s: %s", newer, why ? why : strerror(-error));
	if (!job->has_register && import->options.format == &pfs_import_csv)
		return pfs_cmd_fail(
			VERB,
			"%s: a table, but none was imported to %s of %s; name the directory that it "
			"was imported to",
			newer, job->file->path ? job->file->path : "/", job->store);
	return PFS_EXIT_OK;
}

static int import_newer(struct job *job)
{
	struct pfs_import import = {
		.input = {.fd = -1, .kept_fd = -1}, .guarded = true, .say = say};
	int status;

	/* Only one process at a time changes the store, so the name is fixed, and what a killed
	 * process has left is removed. */
	if (job->file->dry_run)
		(void)snprintf(job->passing, sizeof(job->passing), "%s.newer-%ld", job->store,
			       (long)getpid());
	else
		(void)snprintf(job->passing, sizeof(job->passing), "%s.newer", job->store);
	(void)unlink(job->passing);
	describe(job, &import.options);
	status = open_input(job, &import);
	if (!status)
		status = pfs_import_run(&import);
	job->format = import.options.format;
	pfs_input_close(&import.input);
	return status ? PFS_EXIT_FAILURE : PFS_EXIT_OK;
}

/* Imports the newer file and opens the result, if it can replace what the store has. */
static int open_newer(struct job *job)
{
	const struct pfs_tree_options how = {.read_only = true, .no_image_file = true};
	struct pfs_register_record now;
	struct pfs_tree_info info;
	int status = import_newer(job);
	int error = status ? 0 : pfs_tree_open(&job->newer, job->passing, &how);

	(void)unlink(job->passing);
	if (status)
		return status;
	if (!error)
		error = pfs_tree_start(job->newer);
	if (!error)
		error = pfs_tree_info(job->newer, &info);
	if (error)
		return pfs_cmd_fail(VERB, "%s: %s", job->file->newer, strerror(-error));
	if (info.nodes == 1)
		return pfs_cmd_fail(
			VERB,
			"%s: has no entries, so that everything would be removed; remove that "
			"yourself if it is meant",
			job->file->newer);
	if (job->has_register && (pfs_tree_register(job->newer, &now, PFS_ROOT_PRIME) ||
				  now.columns_len != job->is.columns_len ||
				  memcmp(now.columns, job->is.columns, now.columns_len) != 0))
		return pfs_cmd_fail(
			VERB,
			"%s:1: has other columns than the table that was imported; import it anew",
			job->file->newer);
	return PFS_EXIT_OK;
}

/* ---- telling ---- */

static int tell(void *arg, const struct pfs_from_event *event)
{
	struct job *job = arg;
	const struct pfs_from_file *file = job->file;

	if (file->json)
		pfs_from_print_json(&job->json, event);
	else if (file->list || file->dry_run || event->what == PFS_FROM_KEPT)
		pfs_from_print(event);
	return 0;
}

static void report(struct job *job, const struct pfs_from_lists *from, double seconds)
{
	bool dry = job->file->dry_run;

	if (!job->file->json) {
		(void)printf("%s: ", job->store);
		pfs_from_print_counts(from, true);
		(void)printf("%s in %.2f s\n", dry ? "; nothing was changed," : "", seconds);
		return;
	}
	pfs_json_close(&job->json, ']');
	pfs_from_print_counts_json(&job->json, from);
	pfs_json_bool(&job->json, "dry_run", dry);
	pfs_json_real(&job->json, "seconds", seconds);
	pfs_json_close(&job->json, '}');
}

/* ---- the whole ---- */

/* Makes the changes in the store, and notes the refresh there. */
static int take(struct job *job, const struct pfs_from_lists *from)
{
	const struct pfs_compared_times times = {.full_s = job->begun_s};
	char why[512] = "";
	int error = pfs_from_log_prepare(job->tree, why, sizeof(why));

	if (error)
		return pfs_cmd_fail(VERB,
				    "%s: the table refreshes cannot be written, and nothing was "
				    "changed: %s",
				    job->store, *why ? why : strerror(-error));
	error = pfs_from_apply((struct pfs_from_lists *)from);
	if (error)
		return pfs_cmd_fail(VERB, "%s: %s; do it again to go on", job->store,
				    strerror(-error));
	error = pfs_compared_note(job->tree, job->root, &times, true);
	if (error)
		return pfs_cmd_fail(VERB, "%s: is up to date, but does not know it: %s", job->store,
				    strerror(-error));
	error = pfs_from_log(job->tree, from, job->file->newer, why, sizeof(why));
	return error ? pfs_cmd_fail(
			       VERB,
			       "%s: is up to date, but the table refreshes cannot be written: %s",
			       job->store, *why ? why : strerror(-error))
		     : PFS_EXIT_OK;
}

static int compare_and_take(struct job *job, double begun)
{
	const struct pfs_from_options options = {
		.tree = job->tree,
		.newer = job->newer,
		.root = job->root,
		.id = job->has_register ? column_name(&job->is, job->is.id) : NULL,
		.rows = job->has_register && job->is.id < 0,
		.listed = !job->has_register,
		.archive = job->format == &pfs_import_tar,
	};
	struct pfs_from_lists *from;
	char why[512] = "";
	int status = PFS_EXIT_OK, error = pfs_from_compare(&from, &options, why, sizeof(why));

	if (error == -EBADMSG)
		return pfs_cmd_fail(VERB,
				    "%s: two nodes have the id '%s'; give one of them another",
				    job->store, why);
	if (error)
		return pfs_cmd_fail(VERB, "%s: %s", job->store, strerror(-error));
	if (!job->file->dry_run)
		status = take(job, from);
	job->json.out = stdout;
	if (!status && job->file->json) {
		pfs_json_open(&job->json, NULL, '{');
		pfs_json_open(&job->json, "entries", '[');
	}
	if (!status && !pfs_from_tell(from, tell, job))
		report(job, from, pfs_now_s() - begun);
	pfs_from_close(from);
	return pfs_cmd_flush(VERB, status);
}

int pfs_refresh_from(const struct pfs_from_file *file)
{
	struct job job = {.file = file, .begun_s = time(NULL)};
	char folder[PATH_MAX];
	double begun = pfs_now_s();
	int status;

	if (file->folders)
		return pfs_cmd_usage(
			VERB, "with --from there are only --columns, --list, --dry-run and --json");
	status = pfs_ready_name(job.store, folder, VERB, file->store);
	if (!status)
		status = file->dry_run ? pfs_ready_tree(&job.tree, VERB, job.store)
				       : pfs_ready_changing(&job.tree, VERB, job.store);
	if (!status)
		status = find_register(&job);
	if (!status)
		status = refuse_folder(&job);
	if (!status)
		status = open_newer(&job);
	if (!status)
		status = compare_and_take(&job, begun);
	if (pfs_tree_close(job.newer))
		status = pfs_cmd_worst(status, PFS_EXIT_FAILURE);
	if (pfs_tree_close(job.tree))
		status = pfs_cmd_worst(status,
				       pfs_cmd_fail(VERB, "%s: could not be closed", job.store));
	return status;
}
