/* SPDX-License-Identifier: MIT */
#include "tools/bench/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fs/image/imagefile.h"
#include "fs/mount/kernel.h"
#include "tools/bench/yardstick.h"
#include "tools/bench/bench.h"

static int say(const struct pfs_bench_server *server, const char *what, int error)
{
	if (error)
		(void)pfs_cmd_fail(server->verb, "%s: %s", what, strerror(-error));
	return error;
}

int pfs_bench_server_open(struct pfs_bench_server *server, const char *folder)
{
	(void)snprintf(server->folder, sizeof(server->folder), "%s/primefs-bench.XXXXXX", folder);
	if (!mkdtemp(server->folder))
		return say(server, folder, -errno);
	(void)snprintf(server->store, sizeof(server->store), "%s/store.pfs", server->folder);
	(void)snprintf(server->mountpoint, sizeof(server->mountpoint), "%s/mnt", server->folder);
	return mkdir(server->mountpoint, 0755) != 0 ? say(server, server->mountpoint, -errno) : 0;
}

void pfs_bench_server_close(struct pfs_bench_server *server)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	char image[PATH_MAX + sizeof(PFS_IMAGE_FILE_SUFFIX)];

	if (pfs_bench_server_unmount_yardstick(server) != 0 ||
	    pfs_bench_server_unmount(server) != 0)
		(void)pfs_cmd_fail(server->verb, "%s: left behind", server->folder);
	(void)snprintf(image, sizeof(image), "%s" PFS_IMAGE_FILE_SUFFIX, server->store);
	(void)unlink(server->store);
	(void)rmdir(server->mountpoint);
	for (int i = 0; i < 100; i++) { /* the daemon may still be writing the image file */
		(void)unlink(image);
		if (rmdir(server->folder) == 0 || errno != ENOTEMPTY)
			break;
		(void)nanosleep(&pause, NULL);
	}
}

/* ---- the store ---- */

int pfs_bench_server_fill(struct pfs_bench_server *server, double *seconds,
			  int (*print)(FILE *out, const void *arg), const void *arg)
{
	char list[PATH_MAX];
	const char *argv[] = {pfs_bench_primefs(), "import", "--quiet", "--format=paths", list,
			      server->store,	NULL};
	FILE *out;
	int error;

	(void)snprintf(list, sizeof(list), "%s/list", server->folder);
	out = fopen(list, "we");
	if (!out)
		return say(server, list, -errno);
	error = print(out, arg);
	if (fclose(out) != 0 && !error)
		error = -errno;
	(void)unlink(server->store);
	error = error ? say(server, list, error) : pfs_bench_run(server->verb, seconds, argv);
	(void)unlink(list);
	return error;
}

int pfs_bench_server_mount(struct pfs_bench_server *server, const char *timeout, const char *engine)
{
	char list[64];
	const char *argv[] = {
		pfs_bench_primefs(),
		"mount",
		"--engine",
		engine,
		"-o",
		list,
		server->other ? server->other : server->store,
		server->mountpoint,
		NULL};

	(void)snprintf(list, sizeof(list), "threads=%u,timeout=%s%s", server->threads, timeout,
		       server->without_image ? ",snapshot=no" : "");
	PFS_TRY(pfs_bench_run(server->verb, NULL, argv));
	server->mounted = true;
	return 0;
}

int pfs_bench_server_unmount(struct pfs_bench_server *server)
{
	const char *argv[] = {pfs_bench_primefs(), "umount", server->mountpoint, NULL};

	if (!server->mounted)
		return 0;
	server->mounted = false;
	return pfs_bench_run(server->verb, NULL, argv);
}

/* ---- the yardstick ---- */

static void become_yardstick(const struct pfs_bench_server *server, const char *timeout)
{
	const struct pfs_yardstick yardstick = {1000, 1000, server->bytes, server->threads,
						strtod(timeout, NULL)};
	char threads[16];

	if (!server->nullfs)
		_exit(pfs_yardstick_serve(&yardstick, server->mountpoint) != 0);
	(void)snprintf(threads, sizeof(threads), "%u", server->threads);
	(void)setenv("ND", "1000", 1);
	(void)setenv("NF", "1000", 1);
	(void)setenv("RDP", "always", 1);
	(void)setenv("CRD", "1", 1);
	(void)setenv("KEEP", "1", 1);
	(void)setenv("TMO", timeout, 1);
	(void)setenv("THREADS", threads, 1);
	(void)execl(server->nullfs, server->nullfs, "-o", "default_permissions", server->mountpoint,
		    (char *)NULL);
	(void)say(server, server->nullfs, -errno);
	_exit(PFS_EXIT_FAILURE);
}

/* Waits until the yardstick is mounted, which shows by other device numbers. */
static int await_yardstick(const struct pfs_bench_server *server)
{
	struct stat inside, outside;
	unsigned i;

	for (i = 0; i < 2000; i++) {
		if (stat(server->mountpoint, &inside) == 0 && stat(server->folder, &outside) == 0 &&
		    inside.st_dev != outside.st_dev)
			return 0;
		if (waitpid(server->yardstick, NULL, WNOHANG) == server->yardstick)
			return -EIO;
		(void)usleep(5000);
	}
	return -ETIMEDOUT;
}

int pfs_bench_server_mount_yardstick(struct pfs_bench_server *server, const char *timeout)
{
	(void)fflush(stdout);
	server->yardstick = fork();
	if (server->yardstick < 0)
		return say(server, "fork", -errno);
	if (server->yardstick == 0)
		become_yardstick(server, timeout);
	return say(server, "the yardstick", await_yardstick(server));
}

int pfs_bench_server_unmount_yardstick(struct pfs_bench_server *server)
{
	int error;

	if (server->yardstick <= 0)
		return 0;
	error = pfs_kernel_unmount(server->mountpoint, false);
	while (!error && waitpid(server->yardstick, NULL, 0) < 0)
		if (errno != EINTR)
			error = -errno;
	server->yardstick = 0;
	return say(server, server->mountpoint, error);
}
