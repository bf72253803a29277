/* SPDX-License-Identifier: MIT */
/* primefs info: what a store holds, in figures. */
#include "tools/client/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/times/times.h"
#include "meta/history.h"
#include "tools/cmd.h"

enum { JSON };

static const struct pfs_cmd_option options[] = {
	[JSON] = {"json", 0, NULL, "as JSON"},
	{0},
};

static const struct pfs_cmd command = {
	"info", "STORE", "Prints what a store holds.", options, NULL,
};

static void print_history_json(struct pfs_json *json, const struct pfs_history *history)
{
	char text[PFS_TIME_TEXT];

	pfs_json_u64(json, "history_bytes", history->bytes);
	if (!history->rule.age && !history->rule.size)
		return;
	pfs_json_u64(json, "history_rows", history->rows);
	pfs_json_u64(json, "history_groups", history->groups);
	pfs_time_print(text, history->since);
	pfs_json_string(json, "history_since", text);
	pfs_time_print(text, history->last);
	pfs_json_string(json, "history_last", text);
}

static void print_json(FILE *out, const struct pfs_tree_info *info,
		       const struct pfs_history *history, uint64_t store_bytes)
{
	struct pfs_json json = {.out = out};

	pfs_json_open(&json, NULL, '{');
	pfs_json_u64(&json, "nodes", info->nodes);
	pfs_json_u64(&json, "directories", info->directories);
	pfs_json_u64(&json, "files", info->files);
	pfs_json_u64(&json, "bytes", info->bytes);
	pfs_json_u64(&json, "rows", info->rows);
	pfs_json_u64(&json, "written_rows", info->written);
	pfs_json_u64(&json, "max_depth", info->max_depth);
	pfs_json_u64(&json, "max_code_bits", info->max_code_bits);
	pfs_json_u64(&json, "schema", info->schema);
	pfs_json_u64(&json, "store_bytes", store_bytes);
	pfs_json_u64(&json, "memory_bytes", info->memory_bytes);
	pfs_json_u64(&json, "name_bytes", info->name_bytes);
	print_history_json(&json, history);
	pfs_json_close(&json, '}');
}

static void print_line(FILE *out, const char *what, uint64_t n, const char *note)
{
	(void)fprintf(out, "%-22s%14llu%s%s\n", what, (unsigned long long)n, *note ? "  " : "",
		      note);
}

static void print_history(FILE *out, const struct pfs_history *history)
{
	char since[PFS_TIME_TEXT], last[PFS_TIME_TEXT], note[128];

	if (!history->rule.age && !history->rule.size) {
		(void)fprintf(out, "%-22s%14s\n", "history", "no");
		return;
	}
	pfs_time_print(since, history->since);
	pfs_time_print(last, history->last);
	if (history->rule.age)
		(void)snprintf(note, sizeof(note), "bytes, about, kept for %llu s",
			       (unsigned long long)history->rule.age / 1000000000);
	else
		(void)snprintf(note, sizeof(note), "bytes, about, of at most %llu",
			       (unsigned long long)history->rule.size);
	print_line(out, "history", history->bytes, note);
	(void)snprintf(note, sizeof(note), "from %s to %s", since, last);
	print_line(out, "former rows", history->rows, note);
}

static void print_text(FILE *out, const struct pfs_tree_info *info,
		       const struct pfs_history *history, uint64_t store_bytes)
{
	char note[64];

	print_line(out, "nodes", info->nodes, "the root included");
	print_line(out, "directories", info->directories, "");
	print_line(out, "files", info->files, "all that is no directory");
	print_line(out, "bytes", info->bytes, "in files");
	if (info->rows || info->written) {
		print_line(out, "rows", info->rows, "files that show their row of a table");
		print_line(out, "written to", info->written,
			   "that did, and have their own content");
	}
	print_line(out, "greatest depth", info->max_depth, "");
	print_line(out, "longest code", info->max_code_bits, "bits");
	print_line(out, "schema", info->schema, "");
	(void)snprintf(note, sizeof(note), "bytes, %.1f a node",
		       (double)store_bytes / (double)PFS_MAX(info->nodes, 1));
	print_line(out, "the store takes", store_bytes, note);
	/* Of few nodes it is next to all room that is kept for more. */
	if (info->nodes < 65536)
		(void)snprintf(note, sizeof(note), "bytes");
	else
		(void)snprintf(note, sizeof(note), "bytes, %.1f a node besides its name",
			       (double)(info->memory_bytes - info->name_bytes) /
				       (double)info->nodes);
	print_line(out, "the image in memory", info->memory_bytes, note);
	print_history(out, history);
}

int pfs_answer_info(void *arg, struct pfs_reply *reply, const char *const *words, size_t n)
{
	const struct pfs_answered *answered = arg;
	struct pfs_tree_info info;
	struct stat attr = {.st_size = 0};
	char *text PFS_FREE = NULL;
	size_t size = 0;
	FILE *out;
	struct pfs_history history;
	int error = pfs_tree_info(answered->tree, &info);

	if (!error)
		error = pfs_tree_history(answered->tree, &history);
	if (error)
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "%s: %s", answered->store,
				      strerror(-error));
	out = open_memstream(&text, &size);
	if (!out)
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "no memory");
	(void)stat(answered->store, &attr);
	if (n > 1 && strcmp(words[1], "json") == 0)
		print_json(out, &info, &history, (uint64_t)attr.st_size);
	else
		print_text(out, &info, &history, (uint64_t)attr.st_size);
	if (fclose(out) != 0)
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "no memory");
	return pfs_reply_write(reply, text, size) ? PFS_EXIT_FAILURE : PFS_EXIT_OK;
}

int pfs_cmd_info(int argc, char **argv)
{
	const char *const words[] = {"info", "json"};
	struct pfs_cmd_args args;
	bool as_json = false;

	pfs_cmd_begin(&args, &command, argc, argv);
	while (pfs_cmd_next(&args) == JSON)
		as_json = true;
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	return pfs_answer(args.operands[0], words, as_json ? 2 : 1);
}
