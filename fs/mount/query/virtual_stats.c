/* SPDX-License-Identifier: MIT */
/* `.query/stats`: what the directory holds and what the daemon has done, as JSON. */
#include "fs/mount/query/virtual.h"

#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/mount/query/growing.h"
#include "fs/mount/query/streamed.h"
#include "fs/mount/query/turns.h"
#include "fs/query/output/format.h"
#include "fs/image/snapshot.h"
#include "fs/image/hold.h"
#include "fs/image/device_lookup.h"
#include "fs/nodes/index_paths.h"
#include "fs/query/pathindex.h"
#include "fs/query/relational/rates.h"

static const char *const operations[PFS_OPCODES] = {
	[FUSE_LOOKUP] = "lookup",
	[FUSE_FORGET] = "forget",
	[FUSE_GETATTR] = "getattr",
	[FUSE_SETATTR] = "setattr",
	[FUSE_READLINK] = "readlink",
	[FUSE_SYMLINK] = "symlink",
	[FUSE_MKNOD] = "mknod",
	[FUSE_MKDIR] = "mkdir",
	[FUSE_UNLINK] = "unlink",
	[FUSE_RMDIR] = "rmdir",
	[FUSE_RENAME] = "rename",
	[FUSE_LINK] = "link",
	[FUSE_OPEN] = "open",
	[FUSE_READ] = "read",
	[FUSE_WRITE] = "write",
	[FUSE_STATFS] = "statfs",
	[FUSE_RELEASE] = "release",
	[FUSE_FSYNC] = "fsync",
	[FUSE_SETXATTR] = "setxattr",
	[FUSE_GETXATTR] = "getxattr",
	[FUSE_LISTXATTR] = "listxattr",
	[FUSE_REMOVEXATTR] = "removexattr",
	[FUSE_FLUSH] = "flush",
	[FUSE_OPENDIR] = "opendir",
	[FUSE_READDIR] = "readdir",
	[FUSE_RELEASEDIR] = "releasedir",
	[FUSE_FSYNCDIR] = "fsyncdir",
	[FUSE_CREATE] = "create",
	[FUSE_INTERRUPT] = "interrupt",
	[FUSE_BATCH_FORGET] = "batch_forget",
	[FUSE_FALLOCATE] = "fallocate",
	[FUSE_READDIRPLUS] = "readdirplus",
	[FUSE_RENAME2] = "rename2",
	[FUSE_LSEEK] = "lseek",
	[FUSE_COPY_FILE_RANGE] = "copy_file_range",
};

/* ---- the directory ---- */

struct totals {
	int64_t nodes, bytes;
};

static int take_totals(void *arg, const struct pfs_query *query)
{
	struct totals *totals = arg;

	if (query)
		*totals = (struct totals){pfs_query_integer(query, 0), pfs_query_integer(query, 1)};
	return 0;
}

/* Uses no statement for users who see all: a statement may wait for a device. */
static int find_totals(struct pfs_call *call, struct totals *totals)
{
	struct pfs_totals all;
	char sql[128];
	int n = snprintf(sql, sizeof(sql),
			 "SELECT subtree_count, subtree_size FROM nodes WHERE ino = %llu",
			 (unsigned long long)call->scope.ino);

	if (!call->scope.sees_all)
		return pfs_call_rows(call, sql, (size_t)n, take_totals, totals);
	PFS_TRY(pfs_tree_totals(call->mount->tree, &all, call->scope.ino));
	*totals = (struct totals){(int64_t)all.count, (int64_t)all.size};
	return 0;
}

static int print_directory(struct pfs_call *call, struct pfs_out *out)
{
	char *path PFS_FREE = NULL;
	struct totals totals = {0, 0};

	PFS_TRY(pfs_tree_path(call->mount->tree, &path, call->scope.ino));
	PFS_TRY(find_totals(call, &totals));
	pfs_out_text(out, "  \"directory\": {\"path\": ");
	(void)pfs_out_json(out, path, strlen(path));
	pfs_out_print(out, ", \"ino\": %llu, \"nodes\": %lld, \"bytes\": %lld}",
	      (unsigned long long)call->scope.ino, (long long)totals.nodes,
	      (long long)totals.bytes);
	return 0;
}

/* ---- what concerns all: for the user who mounted only ---- */

static int print_store(struct pfs_call *call, struct pfs_out *out)
{
	struct pfs_tree_info info;

	PFS_TRY(pfs_tree_info(call->mount->tree, &info));
	pfs_out_print(out,
	      ",\n  \"store\": {\"nodes\": %llu, \"directories\": %llu, \"files\": %llu, "
	      "\"bytes\": %llu, \"max_depth\": %u, \"max_code_bits\": %u, \"epoch\": %llu, "
	      "\"memory_bytes\": %llu, \"name_bytes\": %llu}",
	      (unsigned long long)info.nodes, (unsigned long long)info.directories,
	      (unsigned long long)info.files, (unsigned long long)info.bytes, info.max_depth,
	      info.max_code_bits, (unsigned long long)info.epoch,
	      (unsigned long long)info.memory_bytes, (unsigned long long)info.name_bytes);
	return 0;
}

static void print_rate(struct pfs_out *out, const char *name, double fixed, double now)
{
	pfs_out_print(out, ",\n    \"%s\": {\"fixed\": %.4g, \"now\": %.4g}", name, fixed, now);
}

/* Prints the rates by which statements are estimated: nanoseconds a row on one core of the host. */
static void print_rates(struct pfs_call *call, struct pfs_out *out)
{
	const struct pfs_rates *fixed = &pfs_rates_fixed;
	struct pfs_rates now;

	pfs_queries_rates(call->mount->queries, &now);
	pfs_out_print(out, ",\n  \"rates\": {\"host\": \"%s\", \"device\": \"%s\"",
		      now.is_measured ? "measured" : "fixed", now.is_seen ? "measured" : "fixed");
	for (unsigned i = 0; i < PFS_N_WORKS; i++)
		print_rate(out, pfs_work_names[i], fixed->work[i].host, now.work[i].host);
	print_rate(out, "device_start", fixed->start_ns, now.start_ns);
	print_rate(out, "device_launch", fixed->launch_ns, now.launch_ns);
	print_rate(out, "device_byte", fixed->byte_ns, now.byte_ns);
	pfs_out_text(out, "}");
}

static int print_engine(struct pfs_call *call, struct pfs_out *out)
{
	struct pfs_engine_info info;
	struct pfs_plan_counts plans;
	uint64_t host, device;
	bool has_device = pfs_queries_count(call->mount->queries, &host, &device);
	int is_busy = pfs_tree_engine_now(call->mount->tree, &info);

	if (is_busy < 0)
		return is_busy;
	pfs_out_print(out, ",\n  \"engine\": {\"kind\": \"%s\", \"device\": ", info.engine);
	(void)pfs_out_json(out, info.device, strlen(info.device));
	pfs_out_print(out,
		      ", \"busy\": %s, \"degraded\": %s, \"threads\": %u, \"device_bytes\": %llu, "
		      "\"directories\": %llu, \"deep\": %llu}",
		      is_busy ? "true" : "false", info.degraded ? "true" : "false", info.threads,
		      (unsigned long long)info.device_bytes, (unsigned long long)info.directories,
		      (unsigned long long)info.deep);
	pfs_out_print(out,
		      ",\n  \"operators\": {\"device\": %s, \"on_host\": %llu, \"on_device\": "
		      "%llu, \"ns\": %llu}",
		      has_device ? "true" : "false", (unsigned long long)host,
		      (unsigned long long)device,
		      (unsigned long long)pfs_queries_operators_ns(call->mount->queries));
	pfs_queries_plans(call->mount->queries, &plans);
	pfs_out_print(
		out,
		",\n  \"plans\": {\"made\": %llu, \"found\": %llu, \"kept\": %llu, \"bytes\": %llu}",
		(unsigned long long)plans.made, (unsigned long long)plans.found,
		(unsigned long long)plans.kept, (unsigned long long)plans.bytes);
	return 0;
}

static void print_counts(struct pfs_out *out, const char *name,
			 const struct pfs_device_lookup_count *counts)
{
	pfs_out_print(out, "\"%s\": {", name);
	for (unsigned kind = 0; kind < PFS_QUESTION_KINDS; kind++)
		pfs_out_print(
			out, "%s\"%s\": {\"count\": %llu, \"timed\": %llu, \"ns\": %llu}",
			kind ? ", " : "", pfs_device_lookup_name((enum pfs_device_lookup_kind)kind),
			(unsigned long long)counts[kind].n, (unsigned long long)counts[kind].timed,
			(unsigned long long)counts[kind].ns);
	pfs_out_print(out, "}");
}

/* Prints who answers single questions, such as lookups: the host or a device. */
static void print_single(struct pfs_call *call, struct pfs_out *out)
{
	struct pfs_device_lookup_stats stats;

	pfs_device_lookup_stats(call->mount->tree, &stats);
	pfs_out_print(out, ",\n  \"single\": {\"by\": \"%s\",\n    ",
		      stats.by_device ? "cuda" : "host");
	print_counts(out, "host", stats.host);
	pfs_out_print(out, ",\n    ");
	print_counts(out, "cuda", stats.device);
	pfs_out_print(
		out,
		",\n    \"kernel\": {\"failed\": %s, \"is_running\": %s, \"runs\": %llu, \"loads\": %llu, "
		"\"batches\": %llu, \"edits\": %llu, \"change_ns\": %llu, \"leave_ns\": %llu, "
		"\"bytes\": %llu, \"paths_bus_ns\": %llu, \"paths_kernel_ns\": %llu}}",
		stats.info.failed ? "true" : "false", stats.info.is_running ? "true" : "false",
		(unsigned long long)stats.info.runs, (unsigned long long)stats.info.loads,
		(unsigned long long)stats.info.batches, (unsigned long long)stats.info.edits,
		(unsigned long long)stats.info.change_ns, (unsigned long long)stats.info.leave_ns,
		(unsigned long long)stats.info.bytes, (unsigned long long)stats.info.bus_ns,
		(unsigned long long)stats.info.kernel_ns);
}

static void print_snapshots(struct pfs_call *call, struct pfs_out *out)
{
	struct pfs_snapshot_stats stats;

	pfs_snapshots_stats(call->mount->tree, &stats);
	pfs_out_print(out,
	      ",\n  \"snapshots\": {\"open\": %u, \"taken\": %llu, \"given_up\": %llu, "
	      "\"copied_blocks\": %llu, \"bytes\": %llu, \"most_bytes\": %llu, \"names\": %llu, "
	      "\"slots\": %llu, \"attribute_bytes\": %llu, \"listing_bytes\": %llu, "
	      "\"all_bytes\": %llu, \"limit\": %llu}",
	      stats.open, (unsigned long long)stats.taken, (unsigned long long)stats.given_up,
	      (unsigned long long)stats.copied, (unsigned long long)stats.bytes,
	      (unsigned long long)stats.most_bytes, (unsigned long long)stats.kept_names,
	      (unsigned long long)stats.kept_slots,
	      (unsigned long long)stats.kept_elsewhere[PFS_KEPT_ATTRIBUTES],
	      (unsigned long long)stats.kept_elsewhere[PFS_KEPT_PASTS],
	      (unsigned long long)stats.taken_bytes, (unsigned long long)stats.limit);
}

struct names {
	struct pfs_out *out;
	const char *separator;
};

static int print_name(void *arg, const char *name, size_t len)
{
	struct names *names = arg;

	pfs_out_text(names->out, names->separator);
	(void)pfs_out_json(names->out, name, len);
	names->separator = ", ";
	return 0;
}

/* Prints what makes the index again. */
static int print_definition(void *arg, const char *name, size_t len)
{
	char text[sizeof("CREATE INDEX \"\" ON nodes(path)") + 2 * PFS_PATH_INDEX_NAME_LIMIT];
	size_t n = (size_t)snprintf(text, sizeof(text), "CREATE INDEX \"");

	for (size_t i = 0; i < len; i++) {
		if (name[i] == '"')
			text[n++] = '"';
		text[n++] = name[i];
	}
	n += (size_t)snprintf(text + n, sizeof(text) - n, "\" ON nodes(path)");
	return print_name(arg, text, n);
}

/* Prints an array of what `print` prints of each name. */
static void print_names(struct pfs_call *call, struct pfs_out *out, const char *key,
			int (*print)(void *arg, const char *name, size_t len))
{
	struct names names = {out, ""};

	pfs_out_print(out, ", \"%s\": [", key);
	if (pfs_path_index_names(call->mount->tree, print, &names))
		pfs_out_print(out, "%snull", names.separator); /* the store cannot be read */
	pfs_out_text(out, "]");
}

static void print_path_index(struct pfs_call *call, struct pfs_out *out)
{
	struct pfs_path_index_info info;

	if (!pfs_path_index_describe(call->mount->tree, &info))
		return;
	pfs_out_print(
		out,
		",\n  \"path_index\": {\"state\": \"%s\", \"keys\": %llu, \"bytes\": %llu, \"made\": %llu, "
		"\"asked\": %llu",
		info.state, (unsigned long long)info.keys, (unsigned long long)info.bytes,
		(unsigned long long)info.made, (unsigned long long)info.asked);
	print_names(call, out, "names", print_name);
	print_names(call, out, "definitions", print_definition);
	pfs_out_text(out, "}");
}

/* Prints the longest time for which the tree's lock was held, and by whom; and the longest time for
 * which a writer waited for it, and so did everybody behind him. */
static void print_holds(struct pfs_call *call, struct pfs_out *out)
{
	static const char *const kinds[] = {"read", "write"};

	for (unsigned is_write = 0; is_write < 2; is_write++) {
		struct pfs_hold longest = pfs_hold_longest(call->mount->tree, is_write, false);

		pfs_out_print(out, "%s\"%s\": {\"longest_us\": %llu, \"by\": \"%s\"}",
		      is_write ? ", " : ",\n  \"holds\": {", kinds[is_write],
		      (unsigned long long)longest.ns / 1000, longest.by ? longest.by : "");
		if (is_write)
			pfs_out_print(out, ", \"longest_wait_us\": %llu}",
				      (unsigned long long)longest.waited_ns / 1000);
	}
}

static void print_operations(struct pfs_call *call, struct pfs_out *out)
{
	const char *separator = "";
	struct pfs_growing_counts growing;
	size_t i;

	pfs_growings_count(call->mount->growings, &growing);
	pfs_out_print(
		out,
		",\n  \"queries\": {\"running\": %d, \"waiting\": %u, \"run\": %llu, \"failed\": %llu, "
		"\"files\": %zu, \"growing\": %u, \"resting\": %u, \"readers\": %u}",
		atomic_load(&call->mount->running),
		call->mount->turns ? pfs_turns_waiting(call->mount->turns) : 0,
		(unsigned long long)atomic_load(&call->mount->run),
		(unsigned long long)atomic_load(&call->mount->failed),
		pfs_virtuals_count(call->mount->virtuals), growing.answers, growing.resting,
		growing.readers +
			(call->mount->streamed ? pfs_streamed_waiting(call->mount->streamed) : 0));
	pfs_out_text(out, ",\n  \"operations\": {");
	for (i = 0; i < PFS_OPCODES; i++) {
		uint64_t n = atomic_load(&call->mount->counts[i].n);

		if (!n || !operations[i])
			continue;
		pfs_out_print(out, "%s\n    \"%s\": {\"count\": %llu, \"ns\": %llu}", separator,
		      operations[i], (unsigned long long)n,
		      (unsigned long long)atomic_load(&call->mount->counts[i].ns));
		separator = ",";
	}
	pfs_out_text(out, "\n  }");
}

static int print_all(struct pfs_call *call, struct pfs_out *out)
{
	pfs_out_text(out, "{\n");
	PFS_TRY(print_directory(call, out));
	if (call->scope.sees_all) {
		PFS_TRY(print_store(call, out));
		PFS_TRY(print_engine(call, out));
		print_rates(call, out);
		print_single(call, out);
		print_snapshots(call, out);
		print_holds(call, out);
		print_path_index(call, out);
		print_operations(call, out);
	}
	pfs_out_text(out, "\n}\n");
	pfs_out_flush(out);
	return out->error;
}

static int fill_stats(struct pfs_call *call, struct pfs_virtual *file PFS_UNUSED,
		      struct pfs_answer *answer)
{
	struct pfs_sink sink = {answer, pfs_answer_write};
	struct pfs_out out;
	int error;

	PFS_TRY(pfs_out_init(&out, &sink));
	error = print_all(call, &out);
	pfs_out_finish(&out);
	return error;
}

const struct pfs_virtual_kind pfs_stats_kind = {
	.mode = S_IFREG | 0400,
	.fill = fill_stats,
};
