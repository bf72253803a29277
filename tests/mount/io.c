/* SPDX-License-Identifier: MIT */
/* Reading and writing: sizes, holes, appending, direct and mapped access. */
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tests/mount/probe.h"

enum { CHUNK = 65536 };

static const char zeros[4 * CHUNK];

/* Bytes that differ from their neighbours and from chunk to chunk. */
static void pattern(char *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (char)((i * 2654435761u + seed) >> 13);
}

static void reads_back_at_every_edge(void)
{
	static const off_t offsets[] = {0, 1, 511, 4095, 4096, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK - 7};
	static const size_t sizes[] = {1, 2, 4096, 4097, CHUNK - 1, CHUNK, CHUNK + 1, 200001};
	static char model[8 * CHUNK], data[8 * CHUNK], found[8 * CHUNK];
	size_t size = 0;
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(sizes); j++) {
			pattern(data, sizes[j], (unsigned)(i * 100 + j));
			SAME(pwrite(fd, data, sizes[j], offsets[i]), sizes[j]);
			memcpy(model + offsets[i], data, sizes[j]);
			if ((size_t)offsets[i] + sizes[j] > size)
				size = (size_t)offsets[i] + sizes[j];
			SAME(probe_stat("f").st_size, size);
			SAME(pread(fd, found, sizeof(found), 0), size);
			SAME(memcmp(found, model, size), 0);
		}
	}
	SAME(pread(fd, found, 10, (off_t)size), 0);
	SAME(pread(fd, found, 10, (off_t)size - 3), 3);
	SAME(pread(fd, found, 10, (off_t)size + 1000000), 0);
	(void)OK(close(fd));
	HOLDS("f", model, size);
}

static void appends(void)
{
	enum { WRITERS = 4, LINES = 200, WIDTH = 16 };
	static char data[WRITERS * LINES * WIDTH];
	unsigned seen[WRITERS] = {0};
	char line[WIDTH + 1];
	int fd, i, status;

	probe_text("f", "");
	for (i = 0; i < WRITERS; i++) {
		if (OK(fork()) == 0) {
			fd = (int)OK(open("f", O_WRONLY | O_APPEND));
			for (int n = 0; n < LINES; n++) {
				(void)snprintf(line, sizeof(line), "writer %d %6d\n", i, n);
				SAME(write(fd, line, WIDTH), WIDTH);
			}
			_exit(0);
		}
	}
	for (i = 0; i < WRITERS; i++) {
		(void)OK(wait(&status));
		SAME(status, 0);
	}
	fd = (int)OK(open("f", O_RDONLY));
	SAME(read(fd, data, sizeof(data)), sizeof(data));
	for (i = 0; i < WRITERS * LINES; i++) { /* no line is lost or torn */
		int writer = data[i * WIDTH + 7] - '0';

		TRUE(writer >= 0 && writer < WRITERS);
		(void)snprintf(line, sizeof(line), "writer %d %6u\n", writer, seen[writer]++);
		SAME(memcmp(data + (size_t)i * WIDTH, line, WIDTH), 0);
	}
	(void)OK(close(fd));
	fd = (int)OK(open("f", O_RDWR | O_APPEND));
	(void)OK(lseek(fd, 0, SEEK_SET));
	SAME(write(fd, "end", 3), 3);
	SAME(lseek(fd, 0, SEEK_CUR), sizeof(data) + 3);
}

static void truncates(void)
{
	static char data[3 * CHUNK];
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

	pattern(data, sizeof(data), 1);
	SAME(write(fd, data, sizeof(data)), sizeof(data));
	(void)OK(ftruncate(fd, CHUNK + 100));
	HOLDS("f", data, CHUNK + 100);
	(void)OK(ftruncate(fd, 3 * CHUNK)); /* what was cut off does not come back */
	memset(data + CHUNK + 100, 0, sizeof(data) - CHUNK - 100);
	HOLDS("f", data, sizeof(data));
	(void)OK(ftruncate(fd, 100));
	SAME(pwrite(fd, "z", 1, 2 * CHUNK), 1);
	memset(data + 100, 0, sizeof(data) - 100);
	data[2 * CHUNK] = 'z';
	HOLDS("f", data, 2 * CHUNK + 1);
	(void)OK(truncate("f", 0));
	HOLDS("f", "", 0);
	SAME(probe_stat("f").st_blocks, 0);
	(void)OK(close((int)OK(open("f", O_RDWR | O_TRUNC))));
	FAILS(truncate("none", 1), ENOENT);
	FAILS(truncate(".", 1), EISDIR);
	FAILS(ftruncate(fd, -1), EINVAL);
	(void)OK(close(fd));
	fd = (int)OK(open("f", O_RDONLY));
	FAILS(ftruncate(fd, 1), EINVAL);
}

static void leaves_holes(void)
{
	static char found[CHUNK];
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));
	const off_t far = 5LL << 30;

	SAME(pwrite(fd, "end", 3, far), 3);
	SAME(probe_stat("f").st_size, far + 3);
	TRUE(probe_stat("f").st_blocks < 2000);
	SAME(pread(fd, found, sizeof(found), far / 2), sizeof(found));
	SAME(memcmp(found, zeros, sizeof(found)), 0);
	SAME(pread(fd, found, 10, far - 7), 10);
	SAME(memcmp(found, "\0\0\0\0\0\0\0end", 10), 0);
	(void)OK(ftruncate(fd, 20LL << 30));
	SAME(probe_stat("f").st_size, 20LL << 30);
	(void)OK(close(fd));
}

static void seeks_data_and_holes(void)
{
	static char data[CHUNK];
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));
	off_t hole, found;

	FAILS(lseek(fd, 0, SEEK_DATA), ENXIO);
	FAILS(lseek(fd, 0, SEEK_HOLE), ENXIO);
	memset(data, 'd', sizeof(data));
	SAME(pwrite(fd, data, sizeof(data), 0), sizeof(data));
	SAME(pwrite(fd, data, sizeof(data), 16 * CHUNK), sizeof(data));
	(void)OK(ftruncate(fd, 32 * CHUNK));
	SAME(lseek(fd, 0, SEEK_DATA), 0);
	SAME(lseek(fd, 5, SEEK_DATA), 5);
	hole = lseek(fd, 0, SEEK_HOLE);
	SAME(hole, CHUNK);
	SAME(lseek(fd, CHUNK, SEEK_HOLE), CHUNK);
	found = lseek(fd, CHUNK, SEEK_DATA);
	SAME(found, 16 * CHUNK);
	SAME(lseek(fd, 16 * CHUNK + 5, SEEK_HOLE), 17 * CHUNK);
	FAILS(lseek(fd, 17 * CHUNK, SEEK_DATA), ENXIO); /* only a hole is left */
	FAILS(lseek(fd, 32 * CHUNK, SEEK_HOLE), ENXIO);
	FAILS(lseek(fd, 40 * CHUNK, SEEK_DATA), ENXIO);
	FAILS(lseek(fd, -1, SEEK_DATA), ENXIO);
	SAME(lseek(fd, 31 * CHUNK, SEEK_HOLE), 31 * CHUNK);
	SAME(lseek(fd, -1, SEEK_END), 32 * CHUNK - 1);
	FAILS(lseek(fd, -1, SEEK_SET), EINVAL);
	(void)OK(close(fd));
}

static void fallocates(void)
{
	static char data[4 * CHUNK];
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));
	blkcnt_t blocks;

	pattern(data, sizeof(data), 3);
	(void)OK(fallocate(fd, 0, 0, 10000));
	SAME(probe_stat("f").st_size, 10000);
	HOLDS("f", zeros, 10000);
	(void)OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100000));
	SAME(probe_stat("f").st_size, 10000);
	SAME(pwrite(fd, data, sizeof(data), 0), sizeof(data));
	(void)OK(fallocate(fd, 0, 100, 1000)); /* what is there stays */
	HOLDS("f", data, sizeof(data));
	blocks = probe_stat("f").st_blocks;

	(void)OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1000, 2 * CHUNK));
	memset(data + 1000, 0, 2 * CHUNK);
	HOLDS("f", data, sizeof(data));
	(void)OK(fsync(fd));
	TRUE(probe_stat("f").st_blocks < blocks);
	SAME(probe_stat("f").st_size, sizeof(data));
	(void)OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4 * CHUNK - 10, 1000));
	memset(data + 4 * CHUNK - 10, 0, 10);
	HOLDS("f", data, sizeof(data));
	FAILS(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 1), EOPNOTSUPP);
	FAILS(fallocate(fd, 0, 0, 0), EINVAL);
	FAILS(fallocate(fd, 0, -1, 10), EINVAL);
	FAILS(fallocate(fd, 0, LLONG_MAX - 5, 100), EFBIG);
	(void)OK(close(fd));
	fd = (int)OK(open("f", O_RDONLY));
	FAILS(fallocate(fd, 0, 0, 10), EBADF);
}

static void zeroes_ranges(void)
{
	static char data[2 * CHUNK];
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

	pattern(data, sizeof(data), 4);
	SAME(pwrite(fd, data, sizeof(data), 0), sizeof(data));
	if (fallocate(fd, FALLOC_FL_ZERO_RANGE, 10, CHUNK) != 0 && errno == EOPNOTSUPP)
		probe_skip("no FALLOC_FL_ZERO_RANGE here");
	memset(data + 10, 0, CHUNK);
	HOLDS("f", data, sizeof(data));
	(void)OK(fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, CHUNK + 20, 10 * CHUNK));
	memset(data + CHUNK + 20, 0, CHUNK - 20);
	HOLDS("f", data, sizeof(data));
	(void)OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, CHUNK, 2 * CHUNK));
	SAME(probe_stat("f").st_size, 3 * CHUNK);
}

static void copies_ranges(void)
{
	static char data[3 * CHUNK], model[5 * CHUNK];
	off_t from = 777, to = 1234;
	size_t left = 2 * CHUNK + 5;
	int in, out;

	pattern(data, sizeof(data), 5);
	probe_write("in", data, sizeof(data));
	probe_text("out", "");
	in = (int)OK(open("in", O_RDWR));
	out = (int)OK(open("out", O_RDWR));
	memcpy(model + 1234, data + 777, left);
	while (left > 0) {
		ssize_t n = copy_file_range(in, &from, out, &to, left, 0);

		if (n < 0 && (errno == EOPNOTSUPP || errno == EXDEV))
			probe_skip("copy_file_range is refused");
		(void)OK(n);
		TRUE(n > 0);
		left -= (size_t)n;
	}
	SAME(from, 777 + 2 * CHUNK + 5);
	HOLDS("out", model, 1234 + 2 * CHUNK + 5);
	HOLDS("in", data, sizeof(data));
	from = sizeof(data) - 5;
	to = 0;
	SAME(copy_file_range(in, &from, out, &to, 100, 0), 5);
	SAME(copy_file_range(in, &from, out, &to, 100, 0), 0);
	from = 0;
	to = 10;
	FAILS(copy_file_range(in, &from, in, &to, 100, 0), EINVAL); /* overlaps */
	(void)OK(close(out));
	out = (int)OK(open("out", O_RDONLY));
	from = to = 0;
	FAILS(copy_file_range(in, &from, out, &to, 100, 0), EBADF);
}

static void direct_at_any_alignment(void)
{
	static char data[3 * CHUNK], found[3 * CHUNK + 64];
	int fd = open("f", O_CREAT | O_RDWR | O_DIRECT, 0644);

	if (fd < 0 && errno == EINVAL)
		probe_skip("no O_DIRECT here");
	pattern(data, sizeof(data), 6);
	if (pwrite(fd, data + 1, 1, 1) != 1)
		probe_skip("O_DIRECT wants alignment");
	SAME(pwrite(fd, data, 1, 0), 1);
	SAME(pwrite(fd, data + 2, CHUNK + 33, 2), CHUNK + 33);
	SAME(pwrite(fd, data + CHUNK + 35, 2 * CHUNK - 35, CHUNK + 35), 2 * CHUNK - 35);
	SAME(pread(fd, found + 3, 3 * CHUNK, 0), 3 * CHUNK);
	SAME(memcmp(found + 3, data, sizeof(data)), 0);
	SAME(pread(fd, found + 1, 5000, 12345), 5000);
	SAME(memcmp(found + 1, data + 12345, 5000), 0);
	HOLDS("f", data, sizeof(data)); /* and through the page cache */
}

static void vectors(void)
{
	char a[3], b[5];
	struct iovec out[2] = {{(void *)"abc", 3}, {(void *)"defgh", 5}};
	struct iovec in[2] = {{a, 3}, {b, 5}};
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

	SAME(pwritev(fd, out, 2, 100), 8);
	SAME(preadv(fd, in, 2, 100), 8);
	SAME(memcmp(a, "abc", 3), 0);
	SAME(memcmp(b, "defgh", 5), 0);
}

static void sizes_have_a_limit(void)
{
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

	struct rlimit limit = {.rlim_cur = 5000, .rlim_max = RLIM_INFINITY};

	FAILS(pwrite(fd, "x", 1, -1), EINVAL);
	SAME(probe_stat("f").st_size, 0);
	if (pwrite(fd, "x", 1, LLONG_MAX - 1) != 1) { /* whatever the greatest size is */
		SAME(errno, EFBIG);
		SAME(probe_stat("f").st_size, 0);
	}
	(void)OK(ftruncate(fd, 0));
	if (ftruncate(fd, LLONG_MAX) != 0) {
		SAME(errno, EFBIG);
		SAME(probe_stat("f").st_size, 0);
	}
	(void)OK(ftruncate(fd, 1LL << 40));
	SAME(probe_stat("f").st_size, 1LL << 40);
	(void)OK(ftruncate(fd, 0));
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)OK(setrlimit(RLIMIT_FSIZE, &limit));
	SAME(pwrite(fd, zeros, 6000, 0), 5000);
	FAILS(pwrite(fd, "x", 1, 5000), EFBIG);
	FAILS(ftruncate(fd, 5001), EFBIG);
	FAILS(fallocate(fd, 0, 0, 5001), EFBIG);
	SAME(probe_stat("f").st_size, 5000);
}

static void directories_are_not_files(void)
{
	char byte;
	int fd = (int)OK(open(".", O_RDONLY | O_DIRECTORY));

	FAILS(read(fd, &byte, 1), EISDIR);
	FAILS(write(fd, &byte, 1), EBADF);
	(void)OK(fsync(fd));
	(void)OK(fdatasync(fd));
	FAILS(ftruncate(fd, 0), EINVAL);
}

static void syncs(void)
{
	int fd = (int)OK(open("f", O_CREAT | O_RDWR | O_SYNC, 0644));

	SAME(write(fd, "x", 1), 1);
	(void)OK(fsync(fd));
	(void)OK(fdatasync(fd));
	(void)OK(syncfs(fd));
	(void)OK(close(fd));
	fd = (int)OK(open("f", O_RDONLY));
	(void)OK(fsync(fd));
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

static void statfs_is_true(void)
{
	struct statvfs st;

	(void)OK(statvfs(".", &st));
	SAME(st.f_namemax, 255);
	TRUE(st.f_bsize > 0 && st.f_frsize > 0 && st.f_blocks > 0);
	TRUE(st.f_bfree <= st.f_blocks && st.f_bavail <= st.f_bfree);
	TRUE(st.f_files == 0 || st.f_ffree <= st.f_files);
}

static const struct probe probes[] = {
	PROBE(reads_back_at_every_edge), PROBE(appends),
	PROBE(truncates),		 PROBE(leaves_holes),
	PROBE(seeks_data_and_holes),	 PROBE(fallocates),
	PROBE(zeroes_ranges),		 PROBE(copies_ranges),
	PROBE(direct_at_any_alignment),	 PROBE(vectors),
	PROBE(sizes_have_a_limit),	 PROBE(directories_are_not_files),
	PROBE(syncs),			 PROBE(maps),
	PROBE(mapped_writes_stamp),	 PROBE(statfs_is_true),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
