/* SPDX-License-Identifier: MIT */
#include "fs/mount/mount.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/log.h"
#include "fs/mount/kernel.h"
#include "fs/mount/notify.h"
#include "fs/mount/query/growing.h"
#include "fs/mount/query/streamed.h"
#include "fs/mount/query/turns.h"
#include "fs/mount/query/virtual.h"

#define HEADER_BYTES 4096 /* room for a request's header, which the kernel demands */
/* rates are measured so long after the start, to not disturb the first requests */
#define MEASURE_MS   1000

static _Thread_local bool changes_itself; /* this thread runs a statement */

/* Passes a change without a name on only if a statement made it or the file is open: the next open
 * drops what is cached of other files, and each notice may cost a request in flight its attributes
 * (notify.h). */
static void on_change(void *arg, uint64_t ino, const char *name)
{
	struct pfs_mount *mount = arg;

	if (name || changes_itself || atomic_load(pfs_volatile_opens(mount, ino)) > 0)
		pfs_notifier_push(mount->notifier, ino, name);
}

static void on_stale(void *arg, uint64_t ino)
{
	const struct pfs_mount *mount = arg;

	pfs_notifier_push(mount->notifier, ino, NULL);
}

static void begin_changes(void *arg PFS_UNUSED)
{
	changes_itself = true;
}

static void end_changes(void *arg)
{
	const struct pfs_mount *mount = arg;

	changes_itself = false;
	pfs_notifier_flush(mount->notifier);
}

/* Returns the device number of what is mounted there, without asking its daemon; 0 if that fails.
 */
static uint64_t device_of(const char *mountpoint)
{
	struct statx stat;

	if (statx(AT_FDCWD, mountpoint, AT_STATX_DONT_SYNC | AT_SYMLINK_NOFOLLOW, 0, &stat) != 0)
		return 0;
	return (uint64_t)stat.stx_dev_major << 32 | stat.stx_dev_minor;
}

static void on_rights_change(void *arg, uint64_t ino)
{
	struct pfs_mount *mount = arg;

	pfs_access_changed(&mount->access, ino);
}

/* Turns the option writeback off if files may change in size by themselves: with it, the kernel
 * believes only sizes that it has set. */
static void refuse_writeback(struct pfs_mount *mount, const char *store)
{
	if (!mount->options.writeback ||
	    (!pfs_tree_has_links(mount->tree) && !pfs_tree_has_rows(mount->tree)))
		return;
	pfs_warning("%s: writeback stays off: it has %s", store,
		    pfs_tree_has_links(mount->tree)
			    ? "links to files outside, which may change"
			    : "rows of a table, whose files change with their names");
	mount->options.writeback = false;
}

/* Returns how many statements may run at a time. */
static unsigned slots(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return (unsigned)PFS_MIN(PFS_MAX(2 * n, 2), PFS_MORE_THREADS / 2);
}

static void on_failed_answer(void *arg, uid_t uid, uint64_t about, const char *text)
{
	struct pfs_mount *mount = arg;

	(void)atomic_fetch_add(&mount->failed, 1);
	if (text)
		pfs_reasons_tell(mount->reasons, uid, about, text);
}

/* Opens what statements need to run beside other requests: turns, and tables of answers. */
static int start_turns(struct pfs_mount *mount)
{
	struct pfs_growing_host host = {
		.arg = mount,
		.take_turn = pfs_session_take_turn,
		.failed = on_failed_answer,
		.running = &mount->running,
		.rest_ms = mount->options.query_rest_ms,
	};

	if (mount->options.query_kept)
		pfs_answers_set_budget(mount->options.query_kept);
	PFS_TRY(pfs_streamed_open(&mount->streamed));
	if (mount->options.single)
		return 0;
	PFS_TRY(pfs_turns_open(&mount->turns, slots(), pfs_session_go_on, mount));
	host.turns = mount->turns;
	return pfs_growings_open(&mount->growings, &host);
}

static int start(struct pfs_mount *mount, const char *store)
{
	struct pfs_tree_listener listener = {
		.arg = mount,
		.changed = on_change,
		.stale = on_stale,
		.begin = begin_changes,
		.end = end_changes,
		.rights_change = on_rights_change,
	};
	struct pfs_dispatch_options dispatch = {
		.receivers = mount->options.single ? 1 : mount->options.threads,
		.max_threads =
			mount->options.single ? 1 : mount->options.threads + PFS_MORE_THREADS,
		.request_size = PFS_IO_BYTES + HEADER_BYTES,
		.arg = mount,
		.receive = pfs_session_receive,
		.process = pfs_session_process,
	};

	refuse_writeback(mount, store);
	PFS_TRY(pfs_kernel_mount(&mount->fd, store, mount->mountpoint, &mount->options));
	mount->owns_fd = true;
	mount->dev = device_of(mount->mountpoint);
	PFS_TRY(pfs_virtuals_open(&mount->virtuals, pfs_session_notify, mount));
	PFS_TRY(pfs_reasons_open(&mount->reasons));
	PFS_TRY(pfs_known_columns_open(&mount->columns));
	PFS_TRY(start_turns(mount));
	PFS_TRY(pfs_session_open(mount));
	PFS_TRY(pfs_notifier_start(&mount->notifier, pfs_session_notify, mount));
	pfs_tree_listen(mount->tree, &listener);
	return pfs_dispatch_start(&mount->dispatch, &dispatch);
}

int pfs_mount_open(struct pfs_mount **out, struct pfs_tree *tree, struct pfs_queries *queries,
		   const char *store, const char *mountpoint,
		   const struct pfs_mount_options *options)
{
	struct pfs_mount *mount = calloc(1, sizeof(*mount));
	int error;

	*out = NULL;
	if (!mount)
		return -ENOMEM;
	mount->options = *options;
	mount->tree = tree;
	mount->queries = queries;
	mount->fd = -1;
	pfs_access_init(&mount->access);
	mount->mountpoint = strdup(mountpoint);
	error = mount->mountpoint ? start(mount, store) : -ENOMEM;
	if (error) {
		pfs_mount_close(mount);
		return error;
	}
	if (!options->no_measuring)
		pfs_queries_measure(queries, MEASURE_MS);
	*out = mount;
	return 0;
}

void pfs_mount_answers_at(struct pfs_mount *mount, const char *name)
{
	(void)snprintf(mount->control, sizeof(mount->control), "%s", name);
	atomic_store(&mount->has_control, true);
}

struct pfs_turns *pfs_mount_turns(struct pfs_mount *mount)
{
	return pfs_turns_ref(mount->turns);
}

int pfs_mount_event(const struct pfs_mount *mount)
{
	return pfs_dispatch_event(mount->dispatch);
}

/* Unmounts, unless somebody else has done so; the mountpoint may then be another filesystem's by
 * now. */
static void detach(struct pfs_mount *mount)
{
	int error = 0;

	if (mount->fd < 0 || atomic_load(&mount->gone))
		return;
	if (!mount->dev || mount->dev == device_of(mount->mountpoint))
		error = pfs_kernel_unmount(mount->mountpoint, true);
	if (error && error != -EINVAL)
		pfs_warning("%s: cannot unmount: %s", mount->mountpoint, strerror(-error));
}

void pfs_mount_close(struct pfs_mount *mount)
{
	static const struct pfs_tree_listener nobody;

	if (!mount)
		return;
	pfs_queries_stop(mount->queries); /* nobody waits for the statements that run */
	pfs_turns_stop(mount->turns);	  /* commands may still ask, but end no turn any more */
	detach(mount); /* requests are still served: the kernel may have to write pages back */
	pfs_dispatch_stop(mount->dispatch);
	pfs_notifier_stop(mount->notifier);
	pfs_growings_stop(mount->growings);
	pfs_virtuals_stop(mount->virtuals);
	pfs_tree_listen(mount->tree,
			/* until now a command could change the tree, and told the mount of it */
			&nobody);
	pfs_notifier_close(mount->notifier);
	pfs_session_close(mount);
	pfs_access_finish(&mount->access);
	pfs_virtuals_close(mount->virtuals);
	pfs_growings_close(mount->growings);
	pfs_streamed_close(mount->streamed);
	pfs_known_columns_close(mount->columns);
	pfs_reasons_close(mount->reasons);
	pfs_turns_close(mount->turns);
	free(mount->mountpoint);
	free(mount);
}
