/* SPDX-License-Identifier: MIT */
/* Mapped files agree with read and write. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/mount/probe.h"

enum { CHUNK = 65536 };

static const char zeros[4 * 4096];

/* Bytes that differ from their neighbours and from chunk to chunk. */
static void pattern(char *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (char)((i * 2654435761u + seed) >> 13);
}

static void maps(void)
{
	static char data[2 * CHUNK + 100];
	char *shared, *private;
	int fd, status;

	pattern(data, sizeof(data), 7);
	probe_write("f", data, sizeof(data));
	fd = (int)OK(open("f", O_RDWR));
	shared = mmap(NULL, sizeof(data), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	private = mmap(NULL, sizeof(data), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	TRUE(shared != MAP_FAILED && private != MAP_FAILED);
	SAME(memcmp(shared, data, sizeof(data)), 0);
	SAME(shared[sizeof(data)], 0); /* past the end, within the page */
	private[5] = 'p';
	data[CHUNK] = shared[CHUNK] = 's';
	data[2 * CHUNK] = shared[2 * CHUNK] = 't';
	(void)OK(msync(shared, sizeof(data), MS_SYNC));
	HOLDS("f", data, sizeof(data));
	data[7] = 'w';
	SAME(pwrite(fd, "w", 1, 7), 1); /* a write shows in the map */
	SAME(shared[7], 'w');
	if (OK(fork()) == 0) {
		shared[9] = 'c';
		_exit(0);
	}
	(void)OK(wait(&status));
	data[9] = 'c';
	(void)OK(munmap(shared, sizeof(data)));
	(void)OK(close(fd));
	HOLDS("f", data, sizeof(data));
}

static void mapped_writes_stamp(void)
{
	struct timespec before;
	char *map;
	int fd;

	probe_text("f", "0123456789");
	before = probe_stat("f").st_mtim;
	probe_tick();
	fd = (int)OK(open("f", O_RDWR));
	map = mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TRUE(map != MAP_FAILED);
	map[0] = 'x';
	(void)OK(msync(map, 10, MS_SYNC));
	(void)OK(munmap(map, 10));
	(void)OK(close(fd));
	TRUE(probe_later(probe_stat("f").st_mtim, before));
}

/* A map of a file that lost its name, and of one that lost its end. */
static void maps_outlive_names(void)
{
	char *map, byte;
	int fd, status;

	probe_write("f", zeros, 3 * 4096);
	fd = (int)OK(open("f", O_RDWR));
	map = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TRUE(map != MAP_FAILED);
	(void)OK(unlink("f"));
	map[4096] = 'u';
	(void)OK(msync(map, 3 * 4096, MS_SYNC));
	SAME(pread(fd, &byte, 1, 4096), 1);
	SAME(byte, 'u');
	(void)OK(ftruncate(fd, 4096));
	if (OK(fork()) == 0) {
		(void)signal(SIGBUS, SIG_DFL);
		_exit(map[2 * 4096]);
	}
	(void)OK(wait(&status));
	TRUE(WIFSIGNALED(status));
	SAME(WTERMSIG(status), SIGBUS);
	(void)OK(ftruncate(fd, 3 * 4096));
	SAME(map[4096], 0); /* what was cut off does not come back */
	map[2 * 4096] = 'v';
	(void)OK(close(fd)); /* the map holds the file */
	SAME(map[2 * 4096], 'v');
	(void)OK(munmap(map, 3 * 4096));
}

static const struct probe probes[] = {
	PROBE(maps),
	PROBE(mapped_writes_stamp),
	PROBE(maps_outlive_names),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
