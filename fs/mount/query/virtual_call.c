/* SPDX-License-Identifier: MIT */
/* Callers of `.query`, the statements that run for them, and the reasons of their errors. */
#include "fs/mount/query/virtual.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/mount/query/growing.h"
#include "fs/mount/query/shares.h"

#define REASONS_MAX 256 /* users and saved queries whose last reasons are kept */
#define GROUPS_MAX    65536
#define GROUPS_USUAL  32
#define GROUP_UNKNOWN 65534 /* /proc shows all groups of another user namespace as this one */
#define RUNNING_MAX                                                                                \
	(PFS_MORE_THREADS - 32) /* so that other requests that wait find a thread */

/* ---- reasons ---- */

struct reason {
	uid_t uid;
	uint64_t about; /* a node's st_ino; 0: any node */
	char *text;
};

struct pfs_reasons {
	pthread_mutex_t lock;
	struct reason reasons[REASONS_MAX];
	size_t next; /* the place that is replaced next */
};

int pfs_reasons_open(struct pfs_reasons **out)
{
	struct pfs_reasons *reasons = calloc(1, sizeof(*reasons));

	*out = reasons;
	if (!reasons)
		return -ENOMEM;
	(void)pthread_mutex_init(&reasons->lock, NULL);
	return 0;
}

void pfs_reasons_close(struct pfs_reasons *reasons)
{
	size_t i;

	if (!reasons)
		return;
	for (i = 0; i < REASONS_MAX; i++)
		free(reasons->reasons[i].text);
	(void)pthread_mutex_destroy(&reasons->lock);
	free(reasons);
}

/* The lock is held. */
static struct reason *find_reason(struct pfs_reasons *reasons, uid_t uid, uint64_t about)
{
	size_t i;

	for (i = 0; i < REASONS_MAX; i++) {
		struct reason *reason = &reasons->reasons[i];

		if (reason->text && reason->uid == uid && reason->about == about)
			return reason;
	}
	return NULL;
}

static void keep_reason(struct pfs_reasons *reasons, uid_t uid, uint64_t about, const char *text)
{
	struct reason *reason;
	char *copy;

	if (asprintf(&copy, "%s\n", text) < 0)
		return;
	PFS_LOCKED(&reasons->lock);
	reason = find_reason(reasons, uid, about);
	if (!reason) {
		reason = &reasons->reasons[reasons->next];
		reasons->next = (reasons->next + 1) % REASONS_MAX;
	}
	free(reason->text);
	*reason = (struct reason){uid, about, copy};
}

void pfs_reasons_keep(struct pfs_reasons *reasons, uid_t uid, const char *text)
{
	keep_reason(reasons, uid, 0, text);
}

char *pfs_call_reason(struct pfs_call *call, uint64_t about)
{
	struct pfs_reasons *reasons = call->mount->reasons;
	struct reason *reason;

	PFS_LOCKED(&reasons->lock);
	reason = find_reason(reasons, call->scope.uid, about);
	return reason ? strdup(reason->text) : NULL;
}

void pfs_call_keep(struct pfs_call *call, uint64_t about, const char *text)
{
	keep_reason(call->mount->reasons, call->scope.uid, about, text);
}

void pfs_call_forget_reason(struct pfs_call *call, uint64_t about)
{
	struct pfs_reasons *reasons = call->mount->reasons;
	struct reason *reason;

	PFS_LOCKED(&reasons->lock);
	reason = find_reason(reasons, call->scope.uid, about);
	if (!reason)
		return;
	free(reason->text);
	reason->text = NULL;
}

void pfs_reasons_tell(struct pfs_reasons *reasons, uid_t uid, uint64_t about, const char *text)
{
	keep_reason(reasons, uid, 0, text);
	if (about)
		keep_reason(reasons, uid, about, text);
}

/* The text has no newline at its end. */
static void remember(struct pfs_call *call, const char *text)
{
	pfs_reasons_tell(call->mount->reasons, call->scope.uid, call->reason, text);
}

int pfs_call_fail(struct pfs_call *call, int error, const char *format, ...)
{
	char text[1024];
	va_list values;

	va_start(values, format);
	(void)vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	remember(call, text);
	return error;
}

static int fail_statement(struct pfs_call *call, const struct pfs_query_error *error,
			  const char *sql, size_t len)
{
	char *text PFS_FREE = pfs_query_error_text(error, sql, len);

	(void)atomic_fetch_add(&call->mount->failed, 1);
	if (error->error == -EINTR) /* the user who interrupted does not wait for a reason */
		return error->error;
	if (text)
		remember(call, text);
	return error->error;
}

/* ---- calls ---- */

static void on_interrupt(fuse_req_t req PFS_UNUSED, void *arg)
{
	struct pfs_call *call = arg;

	PFS_LOCKED(&call->lock);
	call->interrupted = true;
	if (call->query)
		pfs_query_interrupt(call->query);
}

bool pfs_call_is_gone(void *arg)
{
	struct pfs_call *call = arg;

	return atomic_load_explicit(&call->interrupted, memory_order_relaxed);
}

/* Gets the supplementary groups, if the caller's rows depend on them. They are read in /proc, where
 * the caller is waiting for this request. */
static int get_groups(struct pfs_call *call)
{
	int room = GROUPS_USUAL, n = 0;

	do {
		free(call->groups);
		room = PFS_MAX(room, n);
		call->groups = calloc((size_t)room, sizeof(*call->groups));
		if (!call->groups)
			return -ENOMEM;
		n = fuse_req_getgroups(call->req, room, call->groups);
		if (n > GROUPS_MAX)
			return -E2BIG;
	} while (n > room);
	if (n < 0)
		return pfs_call_fail(call, -EACCES,
				     "your groups cannot be read in /proc by the user who mounted "
				     "(another PID namespace, or a /proc mounted with hidepid)");
	call->scope.groups = call->groups;
	for (int i = 0; i < n; i++)
		if (call->groups[i] != GROUP_UNKNOWN)
			call->groups[call->scope.n_groups++] = call->groups[i];
	return 0;
}

static int start_call(struct pfs_call *call, uint64_t node, uint64_t ino)
{
	const struct pfs_mount_options *options = &call->mount->options;

	if (!call->scope.sees_all && !options->query_others)
		return -EACCES;
	if (node) {
		call->virtual = pfs_virtual_get(call->mount->virtuals, node);
		if (!call->virtual)
			return -ESTALE;
		ino = call->virtual->ino;
	}
	call->scope.ino = ino;
	call->scope.memory_limit = options->query_memory;
	call->scope.value_limit = options->query_value;
	call->scope.time_limit_ms = options->query_time_ms;
	/* a statement that changes something runs before there is a query to interrupt */
	call->scope.gone = pfs_call_is_gone;
	call->scope.gone_arg = call;
	return call->scope.sees_all ? 0 : get_groups(call);
}

int pfs_call_begin(struct pfs_call *call, fuse_req_t req, uint64_t node, uint64_t ino)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	int error;

	*call = (struct pfs_call){
		.mount = pfs_mount_of(req),
		.req = req,
		.pid = ctx->pid,
		.scope = {.uid = ctx->uid,
			  .gid = ctx->gid,
			  .sees_all = pfs_sees_all(ctx->uid)},
	};
	(void)pthread_mutex_init(&call->lock, NULL);
	error = start_call(call, node, ino);
	if (error) {
		pfs_call_end(call);
		return error;
	}
	fuse_req_interrupt_func(req, on_interrupt, call);
	return 0;
}

void pfs_call_end(struct pfs_call *call)
{
	/* After this call no interrupt can be in on_interrupt, or enter it. */
	fuse_req_interrupt_func(call->req, NULL, NULL);
	if (call->virtual)
		pfs_virtual_drop(call->mount->virtuals, call->virtual);
	(void)pthread_mutex_destroy(&call->lock);
	free(call->groups);
}

int pfs_call_move(struct pfs_call *call, uint64_t node)
{
	struct pfs_virtual *virtual = pfs_virtual_get(call->mount->virtuals, node);

	if (!virtual)
		return -ESTALE;
	if (call->virtual)
		pfs_virtual_drop(call->mount->virtuals, call->virtual);
	call->virtual = virtual;
	return 0;
}

/* ---- statements ---- */

static void set_running(void *arg, struct pfs_query *query)
{
	struct pfs_call *call = arg;

	PFS_LOCKED(&call->lock);
	if (call->query && !query)
		call->epoch = pfs_query_epoch(call->query);
	call->query = query;
	if (query && call->interrupted)
		pfs_query_interrupt(query);
}

static void end_running(struct pfs_call *call)
{
	atomic_fetch_sub(&call->mount->running, 1);
	if (!call->scope.sees_all)
		pfs_shares_give(pfs_virtuals_running(call->mount->virtuals), call->scope.uid);
}

static int begin_statement(struct pfs_call *call)
{
	struct pfs_mount *mount = call->mount;

	pfs_dispatch_yield();
	if (!call->scope.sees_all &&
	    !pfs_shares_take(pfs_virtuals_running(mount->virtuals), call->scope.uid))
		return pfs_call_fail(call, -EAGAIN,
				     "as many of your statements are running as others are left to "
				     "run; try again when one has ended");
	if (atomic_fetch_add(&mount->running, 1) < RUNNING_MAX)
		return 0;
	end_running(call);
	return pfs_call_fail(call, -EAGAIN, "%d statements are running already; try again",
			     RUNNING_MAX);
}

static void end_statement(struct pfs_call *call)
{
	end_running(call);
	(void)atomic_fetch_add(&call->mount->run, 1);
}

int pfs_call_room(const struct pfs_call *call, struct pfs_answer **out, uint64_t limit)
{
	bool sees_all = call->scope.sees_all;

	PFS_TRY(pfs_answer_create(out, sees_all ? PFS_ANSWER_MEMORY : PFS_ANSWER_OTHERS, limit));
	if (sees_all)
		pfs_answer_keep_more(*out);
	return 0;
}

int pfs_call_answer(struct pfs_call *call, struct pfs_answer *answer, enum pfs_format format,
		    const char *sql, size_t len)
{
	const struct pfs_asked asked = {sql, len, format};
	const struct pfs_growing_asker asker = {
		.queries = call->mount->queries,
		.scope = &call->scope,
		.memory = call->scope.sees_all ? PFS_ANSWER_MEMORY : PFS_ANSWER_OTHERS,
		.about = call->reason,
		.wants_all = call->wants_all,
		.arg = call,
		.running = set_running,
	};
	struct pfs_query_error error = {.error = 0};
	int status;

	PFS_TRY(begin_statement(call));
	status = pfs_growing_begin(&call->growing, call->mount->growings, answer, &asked, &asker,
				   &error);
	end_statement(call);
	return status ? fail_statement(call, &error, sql, len) : 0;
}

int pfs_call_start(struct pfs_call *call, struct pfs_query **query, const char *sql, size_t len)
{
	struct pfs_query_error error = {.error = 0};
	int status;

	*query = NULL;
	PFS_TRY(begin_statement(call));
	status = pfs_query_start(query, call->mount->queries, &call->scope, sql, len, &error);
	if (status) {
		end_statement(call);
		return fail_statement(call, &error, sql, len);
	}
	set_running(call, *query);
	return 0;
}

void pfs_call_stop(struct pfs_call *call, struct pfs_query *query)
{
	if (!query)
		return;
	set_running(call, NULL);
	pfs_query_finish(query);
	end_statement(call);
}

int pfs_call_rows(struct pfs_call *call, const char *sql, size_t len,
		  int (*row)(void *arg, const struct pfs_query *query), void *arg)
{
	struct pfs_query_error error = {.error = 0};
	struct pfs_query *query;
	int status, stop = 0;

	PFS_TRY(pfs_call_start(call, &query, sql, len));
	while (!stop && (status = pfs_query_next(query, &error)) != 0) {
		if (status > 0)
			stop = row(arg, query);
		else if (status == -EAGAIN)
			stop = row(arg, NULL);
		else
			break;
	}
	pfs_call_stop(call, query);
	if (stop)
		return stop;
	return status < 0 ? fail_statement(call, &error, sql, len) : 0;
}

int pfs_answer_text(struct pfs_answer *answer, const char *text)
{
	return pfs_answer_write(answer, text, strlen(text));
}
