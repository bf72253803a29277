/* SPDX-License-Identifier: MIT */
/* `.query/resolve`: programs write paths, one a line, and read the primes of their nodes in the
 * same order. */
#include "fs/mount/query/virtual.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/nodes/scan.h"
#include "fs/tree/resolve_lines.h"

#define PATH_SIZE_MAX ((size_t)1 << 20)
#define OTHERS_MAX ((uint64_t)64 << 20) /* bytes of an answer for users who do not see all */

static void share(void *tree, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context)
{
	pfs_scan_run(tree, n, grain, work, context);
}

/* Answers the first lines of a text; *used: the bytes that they have. */
static int answer_some(struct pfs_call *call, struct pfs_handle *handle, size_t *used,
		       const char *text, size_t size)
{
	const struct pfs_viewer viewer = {call->scope.uid, call->scope.gid, call->scope.groups,
					  call->scope.n_groups};
	const struct pfs_resolve_from from = {
		.ino = call->virtual->ino,
		.viewer = call->scope.sees_all ? NULL : &viewer,
		.gone = pfs_call_is_gone,
		.arg = call,
	};
	struct pfs_tree *tree = call->mount->tree;
	const struct pfs_resolve_threads threads = {share, tree};
	struct pfs_resolve_lines lines = {0};
	struct pfs_resolve_text out = {0};
	int error = pfs_resolve_lines_find(&lines, used, text, size, '\n', &threads);

	if (!error)
		error = pfs_tree_resolve_many(tree, lines.inos, lines.paths, lines.n, &from);
	if (!error)
		error = pfs_resolve_lines_print(&lines, &out, false, '\n', &threads);
	for (size_t i = 0; i < out.n_parts && !error; i++)
		error = pfs_answer_write(handle->answer, out.parts[i].iov_base,
					 out.parts[i].iov_len);
	pfs_resolve_lines_free(&lines);
	pfs_resolve_text_free(&out);
	return error;
}

static int answer_lines(struct pfs_call *call, struct pfs_handle *handle, const char *text,
			size_t size)
{
	size_t used;

	for (size_t at = 0; at < size; at += used)
		PFS_TRY(answer_some(call, handle, &used, text + at, size - at));
	return 0;
}

static void forget(struct pfs_handle *handle)
{
	pfs_answer_truncate(handle->answer);
	handle->n_rest = 0;
}

static int fail(struct pfs_call *call, struct pfs_handle *handle, int error)
{
	forget(handle);
	handle->end = UINT64_MAX;
	switch (error) {
	case -EINTR:
		return error;
	case -ENAMETOOLONG:
		return pfs_call_fail(call, error,
				     "resolve: a path has more than %zu bytes; write one a line",
				     PATH_SIZE_MAX);
	case -EFBIG:
		return pfs_call_fail(call, error,
				     "resolve: more than %llu MiB of answers; read them in between",
				     (unsigned long long)(OTHERS_MAX >> 20));
	default:
		return pfs_call_fail(call, error, "resolve: %s", strerror(-error));
	}
}

/* Answers the lines that are complete; the rest waits for what follows. */
static int take(struct pfs_call *call, struct pfs_handle *handle, const char *data, size_t size)
{
	const char *last;
	size_t whole;

	PFS_TRY(pfs_grow(&handle->rest, &handle->rest_capacity, handle->n_rest + size, 1));
	memcpy(handle->rest + handle->n_rest, data, size);
	handle->n_rest += size;
	last = memrchr(handle->rest + handle->n_rest - size, '\n', size);
	whole = last ? (size_t)(last - handle->rest) + 1 : 0;
	if (whole)
		PFS_TRY(answer_lines(call, handle, handle->rest, whole));
	handle->n_rest -= whole;
	memmove(handle->rest, handle->rest + whole, handle->n_rest);
	return handle->n_rest > PATH_SIZE_MAX ? -ENAMETOOLONG : 0;
}

/* Takes a piece of a list of paths. A write that begins where the last one ended goes on with its
 * list; a write after a read begins a new one. */
static int resolve(struct pfs_call *call, struct pfs_handle *handle, const char *data, size_t size,
		   off_t offset)
{
	int error;

	pfs_handle_act(handle, call);
	if (size > PATH_SIZE_MAX / 16)
		pfs_dispatch_yield();
	PFS_LOCKED(&handle->lock);
	if ((uint64_t)offset != handle->end)
		forget(handle);
	error = take(call, handle, data, size);
	if (!error && !call->scope.sees_all && pfs_answer_size(handle->answer) > OTHERS_MAX)
		error = -EFBIG;
	if (error)
		return fail(call, handle, error);
	handle->base = handle->end = (uint64_t)offset + size;
	return 0;
}

/* Answers the last line, which need not end with a newline. */
static int settle(struct pfs_call *call, struct pfs_handle *handle)
{
	int error = answer_lines(call, handle, handle->rest, handle->n_rest);

	handle->n_rest = 0;
	return error ? fail(call, handle, error) : 0;
}

static int fill_nothing(struct pfs_call *call PFS_UNUSED, struct pfs_virtual *file PFS_UNUSED,
			struct pfs_answer *answer PFS_UNUSED)
{
	return 0;
}

const struct pfs_virtual_kind pfs_resolve_kind = {
	.mode = S_IFREG | 0600,
	.others_write = true,
	.fill = fill_nothing,
	.write = resolve,
	.settle = settle,
};
