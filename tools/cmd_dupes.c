/* SPDX-License-Identifier: MIT */
/* primefs dupes - finds files with the same content. */
#include "tools/client/answer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tools/cmd.h"
#include "tools/dupes/dupes.h"

enum { MIN_SIZE, ZERO, SUMMARY, JSON };
static const struct pfs_cmd_option options[] = {
	[MIN_SIZE] = {"min-size", 0, "BYTES", "only files of at least so many bytes (default 1)"},
	[ZERO] = {"print0", '0', NULL, "end each path with a NUL byte"},
	[SUMMARY] = {"summary", 's', NULL, "print the totals alone"},
	[JSON] = {"json", 0, NULL, "print an object"},
	{0},
};
static const struct pfs_cmd command = {
	"dupes",
	"STORE [PATH]",
	"Finds files with the same content.",
	options,
	"Prints the paths of each group, an empty line behind it, the largest files first.\n"
	"Files of equal size are hashed, and those of equal hash compared byte by byte.\n"
	"A mounted store, or its mountpoint, is asked through the daemon that serves it.\n"
	"Exit status: 1 when there are none, 3 when a file could not be read.",
};

/* ---- answering: words are "dupes", options, "--", a path ---- */

struct request {
	struct pfs_reply *reply;
	struct pfs_json *json; /* NULL: lines */
	uint64_t min_size;
	bool zero, summary, wants_json;
	const char *path;
	uint64_t unread; /* files that could not be read so far */
};

static bool parse(struct request *request, const char *const *words, size_t n)
{
	size_t i = 1;

	for (; i < n && strcmp(words[i], "--") != 0; i++) {
		if (strncmp(words[i], "min-size=", 9) == 0)
			request->min_size = strtoull(words[i] + 9, NULL, 10);
		else if (strcmp(words[i], "print0") == 0)
			request->zero = true;
		else if (strcmp(words[i], "summary") == 0)
			request->summary = true;
		else if (strcmp(words[i], "json") == 0)
			request->wants_json = true;
		else
			return false;
	}
	request->path = i + 1 < n ? words[i + 1] : "/";
	return i < n;
}

static int print_group(struct request *request, char *const *paths, size_t n)
{
	const char end = request->zero ? 0 : '\n';

	for (size_t i = 0; i < n; i++) {
		PFS_TRY(pfs_reply_write(request->reply, paths[i], strlen(paths[i])));
		PFS_TRY(pfs_reply_write(request->reply, &end, 1));
	}
	return pfs_reply_write(request->reply, &end, 1);
}

static int take_group(void *arg, uint64_t size, char *const *paths, size_t n)
{
	struct request *request = arg;

	if (request->summary)
		return 0;
	if (!request->json)
		return print_group(request, paths, n);
	pfs_json_open(request->json, NULL, '{');
	pfs_json_u64(request->json, "size", size);
	pfs_json_open(request->json, "paths", '[');
	for (size_t i = 0; i < n; i++)
		pfs_json_bytes(request->json, NULL, paths[i], strlen(paths[i]));
	pfs_json_close(request->json, ']');
	pfs_json_close(request->json, '}');
	return ferror(request->json->out) ? -ENOMEM : 0;
}

static int take_unread(void *arg, const char *path, int error)
{
	struct request *request = arg;
	char count[48] = "";

	if (++request->unread > 1)
		(void)snprintf(count, sizeof(count), " (the last of %llu)",
			       (unsigned long long)request->unread);
	(void)pfs_reply_fail(
		request->reply, PFS_EXIT_FAILURE, "%s: cannot be read: %s%s", path,
		error == -ESTALE ? "its original is gone, or is another file; see primefs refresh"
				 : strerror(-error),
		count);
	return 0;
}

/* Says why originals are not followed, if they are not: that is why no linked file can be read. */
static int fail_unread(const struct pfs_answered *answered, const struct request *request)
{
	char why[PATH_MAX + 2048];

	if (pfs_tree_links_refused(answered->tree, why, sizeof(why)))
		(void)pfs_reply_fail(request->reply, PFS_EXIT_FAILURE, "%s", why);
	return PFS_EXIT_FAILURE;
}

static bool is_gone(void *arg)
{
	const struct request *request = arg;

	return pfs_reply_gone(request->reply);
}

static void end_json(struct pfs_json *json, const struct pfs_dupes_report *report)
{
	pfs_json_close(json, ']');
	pfs_json_u64(json, "groups", report->groups);
	pfs_json_u64(json, "files", report->files);
	pfs_json_u64(json, "spare_bytes", report->spare);
	pfs_json_u64(json, "hashed", report->hashed);
	pfs_json_u64(json, "unread", report->unread);
	pfs_json_close(json, '}');
}

static int find(const struct pfs_answered *answered, struct request *request,
		struct pfs_dupes_report *report)
{
	struct pfs_dupes_options how = {
		.min_size = request->min_size,
		.group = take_group,
		.unread = take_unread,
		.gone = is_gone,
		.arg = request,
	};
	int error = pfs_tree_resolve(answered->tree, &how.ino, request->path);

	if (error)
		return pfs_reply_fail(request->reply, PFS_EXIT_FAILURE, "%s: %s in the store",
				      request->path, strerror(-error));
	if (request->json) {
		pfs_json_open(request->json, NULL, '{');
		pfs_json_open(request->json, "dupes", '[');
	}
	error = pfs_find_dupes(answered->tree, &how, report);
	if (!error && request->json)
		end_json(request->json, report);
	else if (!error && request->summary)
		error = pfs_reply_print(request->reply,
					"%llu files in %llu groups, %llu bytes to spare\n",
					(unsigned long long)report->files,
					(unsigned long long)report->groups,
					(unsigned long long)report->spare);
	if (error)
		return pfs_reply_fail(request->reply, PFS_EXIT_FAILURE, "%s: comparing files: %s",
				      answered->store, strerror(-error));
	if (report->unread)
		return fail_unread(answered, request);
	return report->groups ? PFS_EXIT_OK : PFS_EXIT_NO;
}

int pfs_answer_dupes(void *arg, struct pfs_reply *reply, const char *const *words, size_t n)
{
	struct request request = {.reply = reply, .min_size = 1};
	struct pfs_dupes_report report;
	struct pfs_json json = {.out = NULL};
	char *text PFS_FREE = NULL;
	size_t size = 0;
	int status;

	if (!parse(&request, words, n))
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE,
				      "the daemon of the mounted store is another version and does "
				      "not understand; mount again");
	json.out = open_memstream(&text, &size);
	if (!json.out)
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "no memory");
	if (request.wants_json)
		request.json = &json;
	status = find(arg, &request, &report);
	if (fclose(json.out) || pfs_reply_write(reply, text, size))
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "no memory");
	return status;
}

/* ---- asking ---- */

int pfs_cmd_dupes(int argc, char **argv)
{
	const char *words[8] = {"dupes"};
	struct pfs_cmd_args args;
	uint64_t min_size = 1;
	char min[64];
	size_t n = 1;
	int option;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		bool known = false;

		if (option == MIN_SIZE) {
			pfs_cmd_number(&args, &min_size, option, 1, INT64_MAX);
			continue;
		}
		for (size_t i = 1; i < n; i++)
			known |= strcmp(words[i], options[option].name) == 0;
		if (!known)
			words[n++] = options[option].name;
	}
	if (pfs_cmd_end(&args, 1, 2))
		return args.status;
	(void)snprintf(min, sizeof(min), "min-size=%llu", (unsigned long long)min_size);
	words[n++] = min;
	words[n++] = "--";
	if (args.n_operands > 1)
		words[n++] = args.operands[1];
	return pfs_answer(args.operands[0], words, n);
}
