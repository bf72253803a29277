/* SPDX-License-Identifier: MIT */
#include "tools/client/ready.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "fs/mount/kernel.h"
#include "fs/query/times/times.h"
#include "meta/history.h"
#include "meta/store.h"
#include "tools/cmd.h"

int pfs_ready_name(char store[PATH_MAX], char folder[PATH_MAX], const char *verb,
		   const char *operand)
{
	struct pfs_kernel_mount found;
	struct stat attr;

	(void)snprintf(store, PATH_MAX, "%s", operand);
	if (!realpath(operand, folder) || stat(folder, &attr) != 0 || !S_ISDIR(attr.st_mode)) {
		*folder = '\0';
		return PFS_EXIT_OK; /* opening it will show what is wrong */
	}
	if (pfs_kernel_find(&found, folder, NULL) != 0 &&
	    getxattr(folder, "user.primefs.path", NULL, 0) > 0)
		return pfs_cmd_fail(verb,
				    "%s: no store is mounted on it, it lies in one; name that or "
				    "its mountpoint, or see %s/.query/help",
				    operand, operand);
	if (pfs_kernel_find(&found, folder, NULL) != 0)
		return pfs_cmd_fail(verb,
				    "%s: a directory on which no store is mounted; name a "
				    "store or its mountpoint",
				    operand);
	(void)snprintf(store, PATH_MAX, "%s", found.source);
	return PFS_EXIT_OK;
}

static bool is_mounted(struct pfs_kernel_mount *found, struct pfs_kernel_daemon *daemon,
		       const char *store)
{
	char path[PATH_MAX];

	return realpath(store, path) && pfs_kernel_find(found, NULL, path) == 0 &&
	       pfs_kernel_daemon(daemon, found->mountpoint) == 0;
}

/* Returns PFS_EXIT_OK unless a daemon has the store open for writing or, with `even_readers`, at
 * all. */
static int check_mounts(const char *verb, const char *store, bool even_readers)
{
	struct pfs_kernel_mount found;
	struct pfs_kernel_daemon daemon;

	if (!is_mounted(&found, &daemon, store) || (daemon.read_only && !even_readers))
		return PFS_EXIT_OK;
	return pfs_cmd_fail(verb, "%s: mounted on %s by process %d; run primefs umount %s first",
			    store, found.mountpoint, (int)daemon.pid, found.mountpoint);
}

int pfs_ready_unmounted(const char *verb, const char *store)
{
	return check_mounts(verb, store, true);
}

/* Commits earlier changes, so that they are in the group that is read. */
static void commit(const char *mountpoint)
{
	int fd PFS_CLOSE = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)fsync(fd);
}

static int try_tree(struct pfs_tree **tree, const char *store,
		    const struct pfs_tree_options *options)
{
	int error;

	*tree = NULL;
	/* this command prints its errors itself, in one line */
	pfs_log_open(PFS_LOG_NOTHING, false);
	error = pfs_tree_open(tree, store, options);
	if (!error)
		error = pfs_tree_start(*tree);
	if (!error)
		return 0;
	(void)pfs_tree_close(*tree);
	*tree = NULL;
	return error;
}

/* Says why the store could not be opened; error 0: it was. */
static int tell(const char *verb, const char *store, int error)
{
	char why[PATH_MAX + 512];

	if (!error)
		return PFS_EXIT_OK;
	pfs_store_explain(why, sizeof(why), store, error);
	return pfs_cmd_fail(verb, "%s", why);
}

static int open_tree(struct pfs_tree **tree, const char *verb, const char *store,
		     const struct pfs_tree_options *options)
{
	return tell(verb, store, try_tree(tree, store, options));
}

static int ready(struct pfs_tree **tree, const char *verb, const char *store, bool read_only,
		 int64_t at)
{
	const struct pfs_tree_options options = {.read_only = read_only,
						 .wait_ms = PFS_READY_WAIT_MS,
						 .at = at};
	int status = check_mounts(verb, store, !read_only);

	*tree = NULL;
	return status ? status : open_tree(tree, verb, store, &options);
}

int pfs_ready_tree(struct pfs_tree **tree, const char *verb, const char *store)
{
	return ready(tree, verb, store, true, 0);
}

int pfs_ready_changing(struct pfs_tree **tree, const char *verb, const char *store)
{
	return ready(tree, verb, store, false, 0);
}

/* Returns true if the error is one of writing, which need not be one of reading. */
static bool may_be_readable(int error)
{
	return error == -EACCES || error == -EPERM || error == -EROFS || error == -ENOSPC ||
	       error == -EFBIG || error == -ENOLCK;
}

int pfs_ready_either(struct pfs_tree **tree, const char *verb, const char *store)
{
	struct pfs_tree_options options = {.wait_ms = PFS_READY_WAIT_MS};
	struct pfs_kernel_mount found;
	struct pfs_kernel_daemon daemon;
	int error;

	*tree = NULL;
	if (check_mounts(verb, store, false))
		return PFS_EXIT_FAILURE;
	if (!is_mounted(&found, &daemon, store)) {
		error = try_tree(tree, store, &options);
		if (!may_be_readable(error))
			return tell(verb, store, error);
	}
	options.read_only = true;
	return open_tree(tree, verb, store, &options);
}

static int ready_group(struct pfs_tree **tree, const char *verb, const char *store, int64_t at)
{
	const struct pfs_tree_options options = {
		.read_only = true, .beside_writer = true, .at = at};
	struct pfs_kernel_mount found;
	struct pfs_kernel_daemon daemon;

	if (!is_mounted(&found, &daemon, store) || daemon.read_only)
		return ready(tree, verb, store, true, at);
	commit(found.mountpoint);
	if (open_tree(tree, verb, store, &options) != PFS_EXIT_OK)
		return PFS_EXIT_FAILURE;
	/* The daemon held the lock while the store was opened, so nobody else has written. */
	if (is_mounted(&found, &daemon, store) && !daemon.read_only)
		return PFS_EXIT_OK;
	(void)pfs_tree_close(*tree);
	return ready(tree, verb, store, true, at);
}

int pfs_ready_group(struct pfs_tree **tree, const char *verb, const char *store)
{
	return ready_group(tree, verb, store, 0);
}

/* Prints a line if the store does not know its state of that time. If it cannot be opened, that
 * shows later. */
static int check_history(const char *verb, const char *store, int64_t at)
{
	const struct pfs_store_options options = {.flags =
							  PFS_STORE_READ_ONLY | PFS_STORE_UNLOCKED};
	struct pfs_history history = {.rule = {0}};
	struct pfs_store *peek = NULL;
	char since[PFS_TIME_TEXT];
	int error;

	pfs_log_open(PFS_LOG_NOTHING, false);
	error = pfs_store_open(&peek, store, &options);
	if (!error)
		error = pfs_history_read(peek, &history);
	(void)pfs_store_close(peek);
	if (error)
		return PFS_EXIT_OK;
	if (!history.rule.age && !history.rule.size)
		return pfs_cmd_fail(
			verb,
			"%s: keeps no history; mount it with -o history=2d, and what changes "
			"from then on is kept for two days",
			store);
	pfs_time_print(since, history.since);
	return at >= history.since
		       ? PFS_EXIT_OK
		       : pfs_cmd_fail(verb, "%s: what it was is known from %s on", store, since);
}

int pfs_ready_past(struct pfs_tree **tree, const char *verb, const char *store, int64_t at)
{
	int status = check_history(verb, store, at);

	*tree = NULL;
	return status ? status : ready_group(tree, verb, store, at);
}

struct pfs_tree *pfs_ready_beside(const char *store)
{
	const struct pfs_tree_options how = {.read_only = true, .beside_writer = true};
	struct pfs_tree *tree;

	return pfs_tree_open(&tree, store, &how) ? NULL : tree;
}
