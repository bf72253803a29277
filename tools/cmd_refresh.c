/* SPDX-License-Identifier: MIT */
/* primefs refresh - brings what came with a folder up to date with it. */
#include "tools/client/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tools/cmd.h"
#include "tools/import/ignore.h"
#include "tools/newer/from_file.h"
#include "tools/refresh/refresh.h"
#include "tools/refresh/sourcewatch.h"

enum {
	QUICK,
	KEEP,
	DRY_RUN,
	CROSS_MOUNTS,
	UNMOUNTED,
	LIST,
	JSON,
	CACHES,
	GITIGNORE,
	EXCLUDE,
	EXCLUDE_FROM,
	FROM,
	COLUMNS,
	OPTIONS
};
static const struct pfs_cmd_option options[] = {
	[QUICK] = {"quick", 'q', NULL, "look at directories alone, and at files where one changed"},
	[KEEP] = {"keep", 'k', NULL, "keep what is gone, with the attribute gone: since when"},
	[DRY_RUN] = {"dry-run", 'n', NULL, "change nothing; say what would change"},
	[CROSS_MOUNTS] = {"cross-mounts", 0, NULL, "go into other filesystems, too"},
	[UNMOUNTED] = {"unmounted", 0, NULL, "what lies where filesystems were mounted counts"},
	[LIST] = {"list", 'l', NULL, "print each node that changes"},
	[JSON] = {"json", 0, NULL, "print an object"},
	[CACHES] = {"exclude-caches", 0, NULL, "leave alone what is in folders with CACHEDIR.TAG"},
	[GITIGNORE] = {"gitignore", 0, NULL, "leave alone what .gitignore files leave out"},
	[EXCLUDE] = {"exclude", 0, "RULE", "leave alone what the rule, as in .gitignore, fits"},
	[EXCLUDE_FROM] = {"exclude-from", 0, "FILE",
			  "leave alone what one of the file's rules fits"},
	[FROM] = {"from", 0, "NEW", "bring a table, list or archive up to date with a newer one"},
	[COLUMNS] = {"columns", 0, "LIST", "with --from: as import has it"},
	{0},
};
static const struct pfs_cmd command = {
	"refresh",
	"STORE [PATH...]",
	"Brings what was imported up to date with the folder, or with a newer file.",
	options,
	"What has moved keeps its inode number, attributes and saved queries.  What the store\n"
	"has changed stays, and is listed.  PATH is absolute in the store; default: everything.\n"
	"With --from STORE must not be mounted, and PATH is the directory that NEW was added under;\n"
	"rows with ids are known by them, all else by paths; the table refreshes tells what changed.\n"
	"A mounted store, or its mountpoint, is refreshed by the daemon that serves it.\n"
	"Exit status: 1 when something could not be read, and stayed as it was.",
};

static const char *const names[PFS_REFRESH_EVENTS] = {
	[PFS_REFRESH_ADDED] = "added",	     [PFS_REFRESH_REMOVED] = "removed",
	[PFS_REFRESH_MOVED] = "moved",	     [PFS_REFRESH_CHANGED] = "changed",
	[PFS_REFRESH_KEPT] = "kept",	     [PFS_REFRESH_UNREAD] = "unread",
};

/* ---- answering: words are "refresh", options, "--", paths ---- */

/* A path that was not there when the refresh began. */
struct sought {
	char *path;
	/* In a dry run: the path that it has without what would move, as far as the directories in
	 * the first known_len bytes. */
	char *now;
	size_t known_len;
	bool comes, goes; /* it would be added, or be removed from where it is now */
};

struct request {
	struct pfs_reply *reply;
	bool wanted[OPTIONS];
	const char *const *paths;
	size_t n_paths;
	/* Nodes of the paths; the last n_sought are directories in which one of `sought`, which is
	 * in the same order, was not there. */
	uint64_t *inos;
	struct sought *sought;
	size_t n_sought;
	struct pfs_leaving_out leaving_out;
	struct pfs_json json;
};

static bool find_option(size_t *which, const char *name)
{
	for (*which = 0; options[*which].name; ++*which)
		if (strcmp(options[*which].name, name) == 0)
			return true;
	return false;
}

/* Parses the words. Returns false if a word is unknown, as it may come from another version of this
 * program, or if there is no memory. */
static bool parse(struct request *request, const char *const *words, size_t n)
{
	struct pfs_leaving_out *leaving_out = &request->leaving_out;
	size_t i = 1, which;

	for (; i < n && strcmp(words[i], "--") != 0; i++) {
		if (strncmp(words[i], "rule=", 5) == 0) {
			leaving_out->given = true;
			if (pfs_ignore_add(&leaving_out->rules, words[i] + 5, strlen(words[i] + 5)))
				return false;
			continue;
		}
		if (!find_option(&which, words[i]))
			return false;
		request->wanted[which] = true;
	}
	leaving_out->caches = request->wanted[CACHES];
	leaving_out->gitignore = request->wanted[GITIGNORE];
	leaving_out->given |= leaving_out->caches || leaving_out->gitignore;
	if (i >= n)
		return false;
	request->paths = words + i + 1;
	request->n_paths = n - i - 1;
	return true;
}

static int print_event(struct request *request, enum pfs_refresh_event event, const char *path,
		       const char *from, const char *why)
{
	const char *arrow = from ? " <- " : "", *colon = why ? ": " : "";

	return pfs_reply_print(request->reply, "%s %s%s%s%s%s\n", names[event], path, arrow,
			       from ? from : "", colon, why ? why : "");
}

static void add_event(struct request *request, enum pfs_refresh_event event, const char *path,
		      const char *from, const char *why)
{
	struct pfs_json *json = &request->json;

	pfs_json_open(json, NULL, '{');
	pfs_json_string(json, "what", names[event]);
	pfs_json_bytes(json, "path", path, strlen(path));
	if (from)
		pfs_json_bytes(json, "from", from, strlen(from));
	if (why)
		pfs_json_string(json, "why", why);
	pfs_json_close(json, '}');
}

/* Takes the path, or one above it, back to where it would move from. */
static int move_back(struct sought *sought, const char *path, const char *from)
{
	size_t len = strlen(path);
	char *now;

	if (len <= sought->known_len || strncmp(sought->now, path, len) != 0 ||
	    (sought->now[len] && sought->now[len] != '/'))
		return 0;
	if (asprintf(&now, "%s%s", from, sought->now + len) < 0)
		return -ENOMEM;
	free(sought->now);
	sought->now = now;
	sought->known_len = strlen(from);
	return 0;
}

static int find_sought(struct request *request, enum pfs_refresh_event event, const char *path,
		       const char *from)
{
	for (size_t i = 0; i < request->n_sought && request->wanted[DRY_RUN]; i++) {
		struct sought *sought = &request->sought[i];

		if (event == PFS_REFRESH_MOVED)
			PFS_TRY(move_back(sought, path, from));
		else if (strcmp(sought->now, path) != 0)
			continue;
		sought->comes |= event == PFS_REFRESH_ADDED;
		sought->goes |= event == PFS_REFRESH_REMOVED && !request->wanted[KEEP];
	}
	return 0;
}

static int take_event(void *arg, enum pfs_refresh_event event, const char *path, const char *from,
		      const char *why)
{
	struct request *request = arg;

	PFS_TRY(find_sought(request, event, path, from));
	if (request->wanted[JSON]) {
		add_event(request, event, path, from, why);
		return ferror(request->json.out) ? -ENOMEM : 0;
	}
	if (!request->wanted[LIST] && !request->wanted[DRY_RUN] && event != PFS_REFRESH_KEPT &&
	    event != PFS_REFRESH_UNREAD)
		return 0;
	return print_event(request, event, path, from, why);
}

static bool is_gone(void *arg)
{
	const struct request *request = arg;

	return pfs_reply_gone(request->reply);
}

static int explain(struct pfs_reply *reply, const struct pfs_answered *answered, int error,
		   const char *why)
{
	char text[PFS_REFRESH_EXPLAINED];

	pfs_refresh_explain(text, sizeof(text), error);
	return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "%s: %s", *why ? why : answered->store,
			      text);
}

static int explain_missing(struct pfs_reply *reply, const char *path, int error)
{
	return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "%s: %s in the store%s", path,
			      strerror(-error), error == -ENOENT ? ", nor in its source" : "");
}

/* Gets the nearest node above the path that the store has. The source may have a directory in a
 * file's place. */
static int resolve_above(struct pfs_tree *tree, uint64_t *ino, const char *path)
{
	char *above PFS_FREE = strdup(path), *slash;
	int error = above ? -ENOENT : -ENOMEM;

	while ((error == -ENOENT || error == -ENOTDIR) && (slash = strrchr(above, '/'))) {
		*slash = 0;
		error = pfs_tree_resolve(tree, ino, *above ? above : "/");
	}
	return error;
}

/* Returns the path without dots and needless slashes, for the caller to free; NULL: no memory. */
static char *normalise(const char *path)
{
	char *out = malloc(strlen(path) + 2), *end = out;

	for (size_t len; out && *(path += strspn(path, "/")); path += len) {
		len = strcspn(path, "/");
		if (len == 2 && path[0] == '.' && path[1] == '.') {
			while (end > out && *--end != '/')
				;
		} else if (len != 1 || *path != '.') {
			*end++ = '/';
			memcpy(end, path, len);
			end += len;
		}
	}
	if (out)
		memcpy(end, end == out ? "/" : "", end == out ? 2 : 1);
	return out;
}

/* What the store does not have may be in the source. */
static int resolve(const struct pfs_answered *answered, struct request *request)
{
	size_t n = 0;

	for (size_t i = 0; i < request->n_paths; i++) {
		const char *path = request->paths[i];
		struct sought *sought;
		uint64_t ino;
		int error = pfs_tree_resolve(answered->tree, &ino, path);

		if (!error) {
			request->inos[n++] = ino;
			continue;
		}
		if (error == -ENOENT || error == -ENOTDIR)
			error = resolve_above(answered->tree, &ino, path);
		if (error)
			return explain_missing(request->reply, path, error);
		request->n_sought++;
		request->inos[request->n_paths - request->n_sought] = ino;
		sought = &request->sought[request->n_paths - request->n_sought];
		sought->path = normalise(path);
		sought->now = sought->path ? strdup(sought->path) : NULL;
		if (!sought->now)
			return explain(request->reply, answered, -ENOMEM, "");
	}
	request->sought += n;
	return PFS_EXIT_OK;
}

/* Returns 0 if the store has all that was sought, or would have; else why it has not *path. */
static int find_missing(const struct pfs_answered *answered, const struct request *request,
			const char **path)
{
	uint64_t ino;
	int error = 0;

	for (size_t i = request->n_sought; i-- && !error;) {
		const struct sought *sought = &request->sought[i];

		*path = sought->path;
		error = sought->goes ? -ENOENT : 0;
		if (!sought->goes && !sought->comes)
			error = pfs_tree_resolve(answered->tree, &ino, sought->now);
	}
	return error;
}

static int print_report(struct request *request, const struct pfs_answered *answered,
			const struct pfs_refresh_report *report, double seconds)
{
	const uint64_t *count = report->count;

	return pfs_reply_print(
		request->reply,
		"%s: %llu added, %llu removed, %llu moved, %llu changed, %llu kept%s in %.2f s\n",
		answered->store, (unsigned long long)count[PFS_REFRESH_ADDED],
		(unsigned long long)count[PFS_REFRESH_REMOVED],
		(unsigned long long)count[PFS_REFRESH_MOVED],
		(unsigned long long)count[PFS_REFRESH_CHANGED],
		(unsigned long long)count[PFS_REFRESH_KEPT],
		request->wanted[DRY_RUN] ? "; nothing was changed,"
		: request->wanted[QUICK] ? "; files were not looked at,"
					 : "",
		seconds);
}

static void end_json(struct request *request, const struct pfs_refresh_report *report,
		     double seconds)
{
	struct pfs_json *json = &request->json;

	pfs_json_close(json, ']');
	for (int event = 0; event < PFS_REFRESH_EVENTS; event++)
		pfs_json_u64(json, names[event], report->count[event]);
	pfs_json_u64(json, "looked_at", report->looked_at);
	pfs_json_u64(json, "listed", report->listed);
	pfs_json_bool(json, "quick", request->wanted[QUICK]);
	pfs_json_bool(json, "dry_run", request->wanted[DRY_RUN]);
	pfs_json_real(json, "seconds", seconds);
	pfs_json_close(json, '}');
}

static int refresh(const struct pfs_answered *answered, struct request *request)
{
	const struct pfs_refresh_options how = {
		.store = answered->store,
		.inos = request->inos,
		.n_inos = request->n_paths,
		.n_flat = request->n_sought,
		.leaving_out = &request->leaving_out,
		.quick = request->wanted[QUICK],
		.keep = request->wanted[KEEP],
		.watcher = pfs_sourcewatch_watcher(answered->watch),
		.dry_run = request->wanted[DRY_RUN],
		.cross_mounts = request->wanted[CROSS_MOUNTS],
		.unmounted = request->wanted[UNMOUNTED],
		.event = take_event,
		.gone = is_gone,
		.arg = request,
	};
	struct pfs_refresh_report report;
	char why[PATH_MAX] = "";
	const char *path = NULL;
	double start;
	int error, missing = 0;

	start = pfs_now_s();
	if (request->wanted[JSON]) {
		pfs_json_open(&request->json, NULL, '{');
		pfs_json_open(&request->json, "entries", '[');
	}
	error = pfs_refresh(answered->tree, &how, &report, why, sizeof(why));
	if (error || report.count[PFS_REFRESH_UNREAD])
		pfs_sourcewatch_look(answered->watch);
	/* what could not be read may have it */
	if (error ? error == -ENODATA : !report.count[PFS_REFRESH_UNREAD])
		missing = find_missing(answered, request, &path);
	if (missing)
		return explain_missing(request->reply, path, missing);
	if (error)
		return explain(request->reply, answered, error, why);
	if (request->wanted[JSON])
		end_json(request, &report, pfs_now_s() - start);
	else
		error = print_report(request, answered, &report, pfs_now_s() - start);
	if (error)
		return explain(request->reply, answered, error, "");
	return report.count[PFS_REFRESH_UNREAD] ? PFS_EXIT_NO : PFS_EXIT_OK;
}

static int answer(const struct pfs_answered *answered, struct request *request)
{
	struct pfs_reply *reply = request->reply;
	uint64_t *inos PFS_FREE = calloc(request->n_paths + 1, sizeof(*inos));
	struct sought *sought PFS_FREE = calloc(request->n_paths + 1, sizeof(*sought));
	char *text PFS_FREE = NULL;
	size_t size = 0;
	int status, error = 0;

	request->json.out = open_memstream(&text, &size);
	if (!inos || !sought || !request->json.out) {
		if (request->json.out)
			(void)fclose(request->json.out);
		return explain(reply, answered, -ENOMEM, "");
	}
	request->inos = inos;
	request->sought = sought;
	status = resolve(answered, request);
	if (!status)
		status = refresh(answered, request);
	for (size_t i = 0; i < request->n_paths; i++) {
		free(sought[i].path);
		free(sought[i].now);
	}
	if (fclose(request->json.out))
		return explain(reply, answered, -ENOMEM, "");
	if (status != PFS_EXIT_FAILURE)
		error = pfs_reply_write(reply, text, size);
	return error ? explain(reply, answered, error, "") : status;
}

int pfs_answer_refresh(void *arg, struct pfs_reply *reply, const char *const *words, size_t n)
{
	struct request request = {.reply = reply};
	int status;

	if (parse(&request, words, n))
		status = answer(arg, &request);
	else
		status = pfs_reply_fail(reply, PFS_EXIT_FAILURE,
					"the daemon of the mounted store is another version and "
					"does not understand; mount again");
	pfs_ignore_finish(&request.leaving_out.rules);
	return status;
}

/* ---- asking ---- */

/* The words of the request, which belong to it. */
struct words {
	char **list;
	size_t n, capacity;
};

static int add_word(struct words *words, const char *before, const char *word, size_t len)
{
	char *copy;

	PFS_TRY(pfs_grow(&words->list, &words->capacity, words->n + 1, sizeof(char *)));
	if (asprintf(&copy, "%s%.*s", before, (int)len, word) < 0)
		return -ENOMEM;
	words->list[words->n++] = copy;
	return 0;
}

/* Adds each rule of a file as a word, since the daemon reads no files for users. */
static int add_rules(struct words *words, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line PFS_FREE = NULL;
	size_t size = 0;
	ssize_t len;
	int error = file ? 0 : -errno;

	for (size_t n = 0; !error && (len = getline(&line, &size, file)) >= 0; n++) {
		size_t mark = n ? 0 : pfs_ignore_mark_len(line, (size_t)len);

		if (len && line[len - 1] == '\n')
			len--;
		error = add_word(words, "rule=", line + mark, (size_t)len - mark);
	}
	if (!error && ferror(file))
		error = -EIO;
	if (file)
		(void)fclose(file);
	return error;
}

static void take_option(struct pfs_cmd_args *args, struct words *words, struct pfs_from_file *file,
			int option)
{
	int error = 0;

	file->list |= option == LIST;
	file->dry_run |= option == DRY_RUN;
	file->json |= option == JSON;
	file->folders |= option != LIST && option != DRY_RUN && option != JSON && option != FROM &&
			 option != COLUMNS;
	if (option == FROM)
		file->newer = args->value;
	else if (option == COLUMNS)
		file->columns = args->value;
	else if (option == EXCLUDE)
		error = add_word(words, "rule=", args->value, strlen(args->value));
	else if (option == EXCLUDE_FROM)
		error = add_rules(words, args->value);
	else
		error = add_word(words, "", options[option].name, strlen(options[option].name));
	if (error)
		pfs_cmd_reject(args, "%s: %s", args->value ? args->value : options[option].name,
			       strerror(-error));
}

int pfs_cmd_refresh(int argc, char **argv)
{
	struct words words = {.list = NULL};
	struct pfs_from_file file = {.newer = NULL};
	struct pfs_cmd_args args;
	int option, status, error = add_word(&words, "", "refresh", 7);

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0)
		take_option(&args, &words, &file, option);
	if (pfs_cmd_end(&args, 1, file.newer ? 2 : -1)) {
		status = args.status;
	} else if (file.newer) {
		file.store = args.operands[0];
		file.path = args.operands[1];
		status = pfs_refresh_from(&file);
	} else if (file.columns) {
		status = pfs_cmd_usage("refresh", "--columns goes with --from");
	} else {
		error = error ? error : add_word(&words, "", "--", 2);
		for (int i = 1; i < args.n_operands && !error; i++)
			error = add_word(&words, "", args.operands[i], strlen(args.operands[i]));
		status = error ? pfs_cmd_fail("refresh", "no memory")
			       : pfs_answer(args.operands[0], (const char *const *)words.list,
					    words.n);
	}
	while (words.n)
		free(words.list[--words.n]);
	free(words.list);
	return status;
}
