/* SPDX-License-Identifier: MIT */
/* primefs import: parses the options, chooses the format, runs the steps in order, and reports. */
#include "tools/import/import.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "tools/import/ignore.h"
#include "tools/import/import_recognise.h"
#include "tools/import/import_source.h"
#include "tools/client/ready.h"

static const struct pfs_import_format *const formats[] = {
#define FORMAT(name) &pfs_import_##name,
	PFS_IMPORT_FORMATS(FORMAT)
#undef FORMAT
};

static void show_writing(void *arg, uint64_t done, uint64_t total)
{
	struct pfs_import *import = arg;

	if (!import->options.quiet)
		pfs_progress_show(&import->progress, "%llu of %llu nodes written",
				  (unsigned long long)done, (unsigned long long)total);
}

/* ---- an interrupted import leaves nothing behind ---- */

static char temporary[PATH_MAX];

static void remove_and_die(int signal_number)
{
	/* a transaction in an existing store is undone by the next process that opens it */
	if (temporary[0])
		(void)unlink(temporary);
	(void)signal(signal_number, SIG_DFL);
	(void)raise(signal_number);
}

static const int fatal_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU};

/* Holds them back until a new file's name is known. */
static void hold_signals(sigset_t *before)
{
	sigset_t set;
	size_t i;

	(void)sigemptyset(&set);
	for (i = 0; i < PFS_COUNT(fatal_signals); i++)
		(void)sigaddset(&set, fatal_signals[i]);
	(void)pthread_sigmask(SIG_BLOCK, &set, before);
}

static void guard(const char *path)
{
	struct sigaction action = {.sa_handler = remove_and_die}, old;
	size_t i;

	temporary[0] = 0;
	if (path && strlen(path) < sizeof(temporary))
		(void)memcpy(temporary, path, strlen(path) + 1);
	(void)sigfillset(&action.sa_mask);
	for (i = 0; i < PFS_COUNT(fatal_signals); i++)
		if (sigaction(fatal_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			(void)sigaction(fatal_signals[i], &action, NULL);
}

/* ---- the import ---- */

/* Returns why a new store cannot be made; NULL: for the same reason that opening one would have. */
static const char *explain_new(const char *store, int error)
{
	struct stat attr;

	switch (error) {
	case -EEXIST:
		return stat(store, &attr) == 0 && S_ISDIR(attr.st_mode)
			       ? "is a directory; name a file in it"
			       : "exists already; remove it, choose another name, or add to it "
				 "with --at=/PATH";
	case -ENOENT:
	case -ENOTDIR:
		return "there is no such folder to make the store in";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "its folder may not be written by this user; make the store elsewhere";
	case -ENAMETOOLONG:
		return "its path is too long for a store, which needs files beside it";
	default:
		return NULL;
	}
}

/* Returns why nodes cannot be added to an existing store. */
static const char *explain_old(int error)
{
	switch (error) {
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "it and its folder have to be writable for what is added";
	default:
		return NULL;
	}
}

static int say_error(struct pfs_import *import, int error)
{
	const struct pfs_import_options *options = &import->options;
	const char *what = options->at ? explain_old(error) : explain_new(options->store, error);
	char why[PATH_MAX + 512];

	if (error == -ECANCELED)
		return PFS_EXIT_FAILURE; /* it has been said */
	if (error == -ENOSPC)
		what = "no space left for the store; nothing was imported";
	else if (error == -EOVERFLOW)
		what = pfs_import_name_error(error);
	if (error == -ENOTDIR && options->at)
		(void)snprintf(why, sizeof(why),
			       "%s: %s is, or lies in, something that is no directory",
			       options->store, options->at);
	else if (what)
		(void)snprintf(why, sizeof(why), "%s: %s", options->store, what);
	else
		pfs_store_explain(why, sizeof(why), options->store, error);
	(void)pfs_import_fail(import, "%s", why);
	return PFS_EXIT_FAILURE;
}

static int written(void *arg, uint32_t node, uint64_t prime)
{
	struct pfs_import *import = arg;

	if (import->options.format->written)
		PFS_TRY(import->options.format->written(import, node, prime));
	return pfs_import_put_compared(import, node, prime);
}

static int build_all(struct pfs_import *import)
{
	const struct pfs_import_options *options = &import->options;
	struct pfs_build_options build_options = {
		.at = options->at,
		.defaults = import->defaults,
		.mode = options->mode,
		.wait_ms = PFS_READY_WAIT_MS,
		.arg = import,
		.progress = show_writing,
		.written = written,
	};
	bool held = import->guarded && !options->at;
	sigset_t before;
	int error;

	if (held)
		hold_signals(&before);
	error = pfs_build_open(&import->build, options->store, &build_options);
	if (held && !error)
		guard(pfs_build_temporary(import->build));
	if (held)
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return error;
	error = options->format->read(import);
	if (!error) {
		pfs_import_mark_compared(import);
		error = pfs_build_finish(import->build);
	}
	if (!error && options->format->finished)
		error = options->format->finished(import);
	return error ? error : pfs_build_commit(import->build);
}

static void set_defaults(struct stat *defaults)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	*defaults = (struct stat){
		.st_mode = S_IFREG | (0666 & ~mask),
		.st_uid = geteuid(),
		.st_gid = getegid(),
	};
	(void)clock_gettime(CLOCK_REALTIME, &defaults->st_mtim);
	defaults->st_atim = defaults->st_ctim = defaults->st_mtim;
}

/* ---- the report ---- */

static void print_json(const struct pfs_import *import, const struct pfs_build_report *report,
		       double seconds, uint64_t store_bytes)
{
	struct pfs_json json = {.out = stdout};

	pfs_json_open(&json, NULL, '{');
	pfs_json_string(&json, "format", import->options.format->name);
	pfs_json_u64(&json, "nodes", report->nodes);
	pfs_json_u64(&json, "directories", report->directories);
	pfs_json_u64(&json, "files", report->files);
	pfs_json_u64(&json, "bytes", report->bytes);
	pfs_json_u64(&json, "skipped", import->report.skipped);
	pfs_json_u64(&json, "hard_links", import->report.hard_links);
	pfs_json_u64(&json, "narrowed", import->report.narrowed);
	pfs_json_u64(&json, "changed", import->report.changed);
	pfs_json_u64(&json, "repeated", import->report.repeated);
	pfs_json_u64(&json, "slashes", import->report.slashes);
	pfs_json_u64(&json, "renamed_query", report->renamed_query);
	pfs_json_u64(&json, "store_bytes", store_bytes);
	pfs_json_real(&json, "seconds", seconds);
	pfs_json_close(&json, '}');
}

static void print_some(uint64_t n, const char *what)
{
	if (n)
		(void)printf("  %llu %s\n", (unsigned long long)n, what);
}

static bool holds_content(const struct pfs_import *import)
{
	const struct pfs_import_options *options = &import->options;

	return options->format == &pfs_import_dir ? options->content == PFS_CONTENT_COPY
						  : options->format != &pfs_import_paths;
}

static void print_text(const struct pfs_import *import, const struct pfs_build_report *report,
		       double seconds, uint64_t store_bytes)
{
	(void)printf("%s: %llu nodes (%llu directories, %llu bytes in files) in %.2f s\n",
		     import->options.store, (unsigned long long)report->nodes,
		     (unsigned long long)report->directories, (unsigned long long)report->bytes,
		     seconds);
	if (!import->options.at)
		(void)printf("  the store takes %llu bytes, %.1f a node%s\n",
			     (unsigned long long)store_bytes,
			     (double)store_bytes / (double)PFS_MAX(report->nodes, 1),
			     holds_content(import) ? " with its content" : "");
	print_some(import->report.hard_links, "further hard links became files of their own");
	print_some(import->report.repeated, "entries came more than once; the last one counts");
	if (import->report.slashes)
		(void)printf("  %llu names with a '/' have '%s' in its place\n",
			     (unsigned long long)import->report.slashes, import->options.slash);
	if (*import->report.columns)
		(void)printf("  columns that nodes has itself are in statements %s\n",
			     import->report.columns);
	print_some(report->renamed_query, "entries called .query are stored as .query~");
	print_some(
		import->report.narrowed,
		"entries with an ACL have the mode that it leaves to all; ACLs are not imported");
	print_some(import->report.changed, "files changed while they were copied");
	print_some(import->report.skipped, "entries were left out (see above)");
}

static int report_all(struct pfs_import *import, double seconds)
{
	struct pfs_build_report report;
	struct stat attr = {.st_size = 0};

	pfs_build_report(import->build, &report);
	(void)stat(import->options.store, &attr);
	if (import->options.json)
		print_json(import, &report, seconds, (uint64_t)attr.st_size);
	else if (!import->options.quiet)
		print_text(import, &report, seconds, (uint64_t)attr.st_size);
	return pfs_cmd_flush("import", import->report.skipped || import->report.changed
					       ? PFS_EXIT_NO
					       : PFS_EXIT_OK);
}

int pfs_import_run(struct pfs_import *import)
{
	double start = pfs_now_s();
	int error, status;

	import->begun_s = time(NULL);
	pfs_log_open(PFS_LOG_NOTHING, false);
	set_defaults(&import->defaults);
	(void)pthread_mutex_init(&import->mutex, NULL);
	if (!import->options.skip_given)
		import->options.skip = import->options.format->skips;
	error = build_all(import);
	pfs_progress_clear(&import->progress);
	status = error ? say_error(import, error) : report_all(import, pfs_now_s() - start);
	if (import->options.format->close)
		import->options.format->close(import);
	pfs_build_close(import->build);
	import->build = NULL;
	temporary[0] = 0;
	(void)pthread_mutex_destroy(&import->mutex);
	if (!error)
		pfs_import_leave_image(import);
	return status;
}

/* ---- the command line ---- */

enum {
	FORMAT,
	AT,
	CONTENT,
	COLUMNS,
	NUL_ENDED,
	PATH_COLUMN,
	ID_COLUMN,
	PARENT_COLUMN,
	NAME_COLUMN,
	DELIMITER,
	SLASH,
	ON_ERROR,
	ONE_FILE_SYSTEM,
	CROSS_MOUNTS,
	EXCLUDE,
	EXCLUDE_FROM,
	EXCLUDE_CACHES,
	GITIGNORE,
	MODE,
	TRUST,
	JSON,
	QUIET,
};

static const struct pfs_cmd_option cmd_options[] = {
	[FORMAT] = {"format", 'f', "FORMAT",
		    "dir, paths, csv or tar (any archive); else recognised"},
	[AT] = {"at", 0, "/PATH", "add to an existing store, under this directory of it"},
	[CONTENT] = {"content", 'c', "HOW", "dir: link (read through, default), copy, or none"},
	[COLUMNS] = {"columns", 0, "LIST",
		     "NAME[:int|real|text],... paths: behind tabs; csv: their types"},
	[NUL_ENDED] = {"null", '0', NULL, "paths: they end with NUL, not with a newline"},
	[PATH_COLUMN] = {"path", 0, "COLUMN", "csv: has the paths"},
	[ID_COLUMN] = {"id", 0, "COLUMN", "csv: names the row, for --parent to refer to"},
	[PARENT_COLUMN] = {"parent", 0, "COLUMN",
			   "csv: the parent's id; empty or its own: the top"},
	[NAME_COLUMN] = {"name", 0, "COLUMN", "csv: has the file names"},
	[DELIMITER] = {"delimiter", 0, "CHAR",
		       "csv: stands between fields (\\t: a tab; \\t|\\t: as the NCBI's)"},
	[SLASH] = {"slash", 0, "CHAR", "csv: keep it in place of a '/' in a name"},
	[ON_ERROR] = {"on-error", 0, "WHAT", "stop at what is wrong with an entry, or skip it"},
	[ONE_FILE_SYSTEM] = {"one-file-system", 'x', NULL,
			     "dir: stay out of mount points (default)"},
	[CROSS_MOUNTS] = {"cross-mounts", 0, NULL, "dir: cross them"},
	[EXCLUDE] = {"exclude", 0, "RULE", "dir: leave out what the rule, as in .gitignore, fits"},
	[EXCLUDE_FROM] = {"exclude-from", 0, "FILE", "dir: what one of the file's rules fits"},
	[EXCLUDE_CACHES] = {"exclude-caches", 0, NULL, "dir: what is in folders with CACHEDIR.TAG"},
	[GITIGNORE] = {"gitignore", 0, NULL, "dir: what .gitignore files in it leave out"},
	[MODE] = {"mode", 'm', "MODE", "permissions of the new store, octal (default 600)"},
	[TRUST] =
		{"trust", 0, NULL,
		 "import nothing: show what an existing STORE links to, and follow it from now on"},
	[JSON] = {"json", 0, NULL, "report as JSON"},
	[QUIET] = {"quiet", 'q', NULL, "no report and no progress"},
	{0},
};

static const struct pfs_cmd command = {
	"import",
	"SOURCE STORE",
	"Makes a store of a directory, a list of paths, a table or an archive.",
	cmd_options,
	"SOURCE - is standard input.  Exit status 1: done, but entries were left out, or\nchanged "
	"while they were copied.\n",
};

static void choose_format(struct pfs_cmd_args *args, struct pfs_import_options *options)
{
#define FORMAT(name) ", " #name
	static const char names[] = PFS_IMPORT_FORMATS(FORMAT);
#undef FORMAT
	size_t i;

	for (i = 0; i < PFS_COUNT(formats); i++)
		if (strcmp(args->value, formats[i]->name) == 0)
			options->format = formats[i];
	if (!options->format)
		pfs_cmd_reject(args, "--format=%s: not one of %s", args->value, names + 2);
}

static void choose_content(struct pfs_cmd_args *args, struct pfs_import_options *options)
{
	options->content_given = true;
	if (strcmp(args->value, "link") == 0)
		options->content = PFS_CONTENT_LINK;
	else if (strcmp(args->value, "copy") == 0)
		options->content = PFS_CONTENT_COPY;
	else if (strcmp(args->value, "none") == 0)
		options->content = PFS_CONTENT_NONE;
	else
		pfs_cmd_reject(args, "--content=%s: not one of link, copy, none", args->value);
}

static void choose_on_error(struct pfs_cmd_args *args, struct pfs_import_options *options)
{
	options->skip_given = true;
	options->skip = strcmp(args->value, "skip") == 0;
	if (!options->skip && strcmp(args->value, "stop") != 0)
		pfs_cmd_reject(args, "--on-error=%s: neither stop nor skip", args->value);
}

/* The mode must let the owner read and write, and nobody execute. */
static void choose_mode(struct pfs_cmd_args *args, struct pfs_import_options *options)
{
	char *end;
	unsigned long mode = strtoul(args->value, &end, 8);

	if (*end || mode > 0666 || (mode & 0600) != 0600 || mode & 0111)
		pfs_cmd_reject(args, "--mode=%s: not from 600 to 666, octal, without x",
			       args->value);
	options->mode = (mode_t)mode;
}

static void choose_left_out(struct pfs_cmd_args *args, struct pfs_leaving_out *leaving_out,
			    int option)
{
	int error = 0;

	leaving_out->given = true;
	if (option == EXCLUDE)
		error = pfs_ignore_add(&leaving_out->rules, args->value, strlen(args->value));
	else if (option == EXCLUDE_FROM)
		error = pfs_ignore_read(&leaving_out->rules, AT_FDCWD, args->value, false);
	else if (option == EXCLUDE_CACHES)
		leaving_out->caches = true;
	else
		leaving_out->gitignore = true;
	if (error)
		pfs_cmd_reject(args, "%s: %s", args->value, strerror(-error));
}

static void take_option(struct pfs_cmd_args *args, struct pfs_import_options *options, int option)
{
	const char **texts[] = {
		[AT] = &options->at,
		[COLUMNS] = &options->columns,
		[PATH_COLUMN] = &options->path_column,
		[ID_COLUMN] = &options->id_column,
		[PARENT_COLUMN] = &options->parent_column,
		[NAME_COLUMN] = &options->name_column,
		[DELIMITER] = &options->delimiter,
		[SLASH] = &options->slash,
		[QUIET] = NULL,
	};

	if (texts[option])
		*texts[option] = args->value;
	else if (option == FORMAT)
		choose_format(args, options);
	else if (option == CONTENT)
		choose_content(args, options);
	else if (option == ON_ERROR)
		choose_on_error(args, options);
	else if (option == ONE_FILE_SYSTEM || option == CROSS_MOUNTS)
		options->cross_mounts = option == CROSS_MOUNTS;
	else if (option >= EXCLUDE && option <= GITIGNORE)
		choose_left_out(args, options->leaving_out, option);
	else if (option == NUL_ENDED)
		options->nul_ended = true;
	else if (option == MODE)
		choose_mode(args, options);
	else if (option == TRUST)
		options->trust = true;
	else if (option == JSON)
		options->json = true;
	else
		options->quiet = true;
}

static int open_source(struct pfs_import *import)
{
	struct pfs_import_options *options = &import->options;
	struct stat attr = {.st_mode = S_IFIFO};
	const char *why = NULL;
	int error;

	if (strcmp(options->source, "-") != 0 && stat(options->source, &attr) < 0)
		return pfs_cmd_fail("import", "%s: %s", options->source, strerror(errno));
	if (S_ISDIR(attr.st_mode)) {
		if (!options->format)
			options->format = &pfs_import_dir;
		if (options->format != &pfs_import_dir)
			return pfs_cmd_fail("import",
					    "%s: is a directory; --format=%s reads a file",
					    options->source, options->format->name);
		return 0;
	}
	if (options->format == &pfs_import_dir)
		return pfs_cmd_fail("import", "%s: is no directory, which --format=dir reads",
				    options->source);
	error = pfs_input_open(&import->input, options->source);
	if (!error)
		error = pfs_import_recognise(import, &why);
	if (error)
		return pfs_cmd_fail("import", "%s: %s", options->source,
				    why ? why : strerror(-error));
	return 0;
}

int pfs_cmd_import(int argc, char **argv)
{
	struct pfs_leaving_out leaving_out = {.given = false};
	struct pfs_import import = {.options = {.leaving_out = &leaving_out},
				    .input = {.fd = -1, .kept_fd = -1},
				    .guarded = true};
	struct pfs_cmd_args args;
	int option, status;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0)
		take_option(&args, &import.options, option);
	if (pfs_cmd_end(&args, import.options.trust ? 1 : 2, import.options.trust ? 1 : 2))
		return args.status;
	if (import.options.trust)
		return pfs_import_trust(args.operands[0], import.options.json);
	import.options.source = args.operands[0];
	import.options.store = args.operands[1];
	status = pfs_import_check_values(&import.options);
	if (!status)
		status = open_source(&import);
	if (!status)
		status = pfs_import_check_uses(&import.options);
	if (!status && !import.options.at && pfs_cmd_is_beside_store(import.options.store))
		status = pfs_cmd_fail("import", "%s: " PFS_CMD_BESIDE_STORE, import.options.store);
	if (!status && import.options.at)
		status = pfs_ready_unmounted("import", import.options.store);
	if (!status)
		status = pfs_import_run(&import);
	pfs_input_close(&import.input);
	pfs_ignore_finish(&leaving_out.rules);
	return status;
}
