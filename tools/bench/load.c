/* SPDX-License-Identifier: MIT */
/* Clients of a filesystem: threads that do one thing as often as they can. */
#include "tools/bench/bench.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

struct client {
	const struct pfs_load *load;
	unsigned number;
	_Atomic bool *stop;
	pthread_t thread;
	uint64_t done;
	int error;
};

static void name_of(char path[PATH_MAX], const struct client *client)
{
	(void)snprintf(path, PATH_MAX, "%s/d%u/x%u_%u_%llu", client->load->folder, client->number,
		       client->load->series, client->number, (unsigned long long)client->done);
}

static int miss(const struct client *client)
{
	char path[PATH_MAX];
	struct stat stat_buffer;

	name_of(path, client);
	return stat(path, &stat_buffer) == 0 ? -EEXIST : errno == ENOENT ? 0 : -errno;
}

static int make(const struct client *client)
{
	static const char kilobyte[1024];
	enum pfs_load_kind kind = client->load->kind;
	char path[PATH_MAX];
	int fd;

	name_of(path, client);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	if ((kind != PFS_LOAD_PAIR && write(fd, kilobyte, sizeof(kilobyte)) < 0) ||
	    (kind == PFS_LOAD_SYNC && fsync(fd) != 0)) {
		int error = -errno;

		(void)close(fd);
		return error;
	}
	if (close(fd) != 0 || (kind == PFS_LOAD_PAIR && unlink(path) != 0))
		return -errno;
	return 0;
}

static int repeat_stat(struct client *client)
{
	struct stat stat_buffer;
	char path[PATH_MAX];
	int fd PFS_CLOSE = -1;

	(void)snprintf(path, sizeof(path), "%s/d%u/f000000", client->load->folder, client->number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (; !atomic_load_explicit(client->stop, memory_order_relaxed); client->done++)
		if (fstat(fd, &stat_buffer) != 0)
			return -errno;
	return 0;
}

static int repeat(struct client *client)
{
	int error = 0;

	for (; !atomic_load_explicit(client->stop, memory_order_relaxed); client->done++) {
		error = client->load->kind == PFS_LOAD_MISS ? miss(client) : make(client);
		if (error)
			break;
	}
	return error;
}

static void *client_main(void *arg)
{
	struct client *client = arg;

	client->error = client->load->kind == PFS_LOAD_STAT ? repeat_stat(client) : repeat(client);
	return NULL;
}

int pfs_load_run(double *rate, const struct pfs_load *load)
{
	struct client *clients PFS_FREE = calloc(load->threads, sizeof(*clients));
	_Atomic bool stop = false;
	double started = pfs_bench_now();
	uint64_t done = 0;
	unsigned i, n;
	int error = 0;

	if (!clients)
		return -ENOMEM;
	for (n = 0; n < load->threads && !error; n++) {
		clients[n] = (struct client){.load = load, .number = n, .stop = &stop};
		error = -pthread_create(&clients[n].thread, NULL, client_main, &clients[n]);
	}
	if (error)
		n--;
	else
		(void)usleep((useconds_t)(load->seconds * 1e6));
	atomic_store(&stop, true);
	for (i = 0; i < n; i++) {
		(void)pthread_join(clients[i].thread, NULL);
		error = error ? error : clients[i].error;
		done += clients[i].done;
	}
	*rate = (double)done / (pfs_bench_now() - started);
	return error;
}
