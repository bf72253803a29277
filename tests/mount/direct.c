/* SPDX-License-Identifier: MIT */
/* Direct I/O beside the page cache: who reads after a write has ended reads what was written. */
#include <linux/aio_abi.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/mount/probe.h"

#define BLOCK	4096
#define READERS 2
#define SECONDS 20 /* at most, on a machine that has other things to do */

static int open_direct(const char *path)
{
	int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);

	if (fd < 0 && errno == EINVAL)
		probe_skip("no O_DIRECT here");
	return (int)OK(fd);
}

static unsigned char *map_block(void)
{
	void *block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	TRUE(block != MAP_FAILED);
	return block;
}

/* As many bytes through the kernel's AIO, and waits for them. */
static void write_async(aio_context_t context, int fd, const unsigned char *block)
{
	struct iocb iocb = {
		.aio_fildes = (uint32_t)fd,
		.aio_lio_opcode = IOCB_CMD_PWRITE,
		.aio_buf = (uint64_t)(uintptr_t)block,
		.aio_nbytes = BLOCK,
	};
	struct iocb *list[] = {&iocb};
	struct io_event event;

	SAME(OK(syscall(SYS_io_submit, context, 1L, list)), 1);
	SAME(OK(syscall(SYS_io_getevents, context, 1L, 1L, &event, NULL)), 1);
	SAME(event.res, BLOCK);
}

static void read_for_ever(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char data[BLOCK];

	while (pread(fd, data, sizeof(data), 0) >= 0)
		;
	_exit(1);
}

static void start_readers(pid_t pids[READERS], const char *path)
{
	for (int i = 0; i < READERS; i++) {
		pids[i] = (pid_t)OK(fork());
		if (pids[i] == 0)
			read_for_ever(path);
	}
}

static void stop_readers(const pid_t pids[READERS])
{
	for (int i = 0; i < READERS; i++) {
		(void)kill(pids[i], SIGKILL);
		(void)waitpid(pids[i], NULL, 0);
	}
}

/* The first write after which the cache has something else; 0: none has. */
static int first_stale(bool async, int writes)
{
	unsigned char *block = map_block(), seen[BLOCK];
	aio_context_t context = 0;
	pid_t pids[READERS];
	int direct, cached, stale = 0;
	time_t end = time(NULL) + SECONDS;

	memset(block, 0, BLOCK);
	probe_write("f", block, BLOCK);
	direct = open_direct("f");
	cached = (int)OK(open("f", O_RDONLY | O_CLOEXEC));
	(void)OK(syscall(SYS_io_setup, 1, &context));
	start_readers(pids, "f");
	for (int i = 1; i <= writes && !stale && time(NULL) < end; i++) {
		memset(block, i % 255 + 1, BLOCK);
		if (async)
			write_async(context, direct, block);
		else
			SAME(pwrite(direct, block, BLOCK, 0), BLOCK);
		if (pread(cached, seen, BLOCK, 0) != BLOCK || memcmp(seen, block, BLOCK) != 0)
			stale = i;
	}
	stop_readers(pids);
	(void)OK(syscall(SYS_io_destroy, context));
	return stale;
}

static void async_writes_are_read(void)
{
	SAME(first_stale(true, 3000), 0);
}

static void writes_are_read(void)
{
	SAME(first_stale(false, 3000), 0);
}

static const struct probe probes[] = {
	PROBE(async_writes_are_read),
	PROBE(writes_are_read),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
