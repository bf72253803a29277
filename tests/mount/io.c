/* SPDX-License-Identifier: MIT */
/* Reading and writing: sizes, holes, appending, direct access, copying. */
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
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
	static const off_t offsets[] = {0,	   1,	  511,	     4095,	   4096,
					CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK - 7};
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
	(void)syncfs(
		fd); /* where writes are gathered the refusal may come late: not to the next case */
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

static void statfs_is_true(void)
{
	struct statvfs st, after;

	(void)OK(statvfs(".", &st));
	SAME(st.f_namemax, 255);
	TRUE(st.f_bsize > 0 && st.f_frsize > 0 && st.f_blocks > 0);
	TRUE(st.f_bfree <= st.f_blocks && st.f_bavail <= st.f_bfree);
	TRUE(st.f_files == 0 || st.f_ffree <= st.f_files);
	probe_text("f", "x");
	(void)OK(statvfs("f", &after));
	SAME(after.f_files, st.f_files);
	if (probe_mounted()) /* nobody else works here */
		SAME(after.f_ffree, st.f_ffree - 1);
}

/* Offsets near the end of what a number can say. */
static void far_offsets(void)
{
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));
	char byte;

	SAME(write(fd, "abc", 3), 3);
	SAME(pread(fd, &byte, 1, LLONG_MAX - 1), 0);
	FAILS(pread(fd, &byte, 1, -1), EINVAL);
	FAILS(pread(fd, &byte, 1, LLONG_MIN), EINVAL);
	TRUE(pwrite(fd, zeros, 100, LLONG_MAX - 50) == -1 && (errno == EFBIG || errno == EINVAL));
	FAILS(pwrite(fd, zeros, 100, LLONG_MIN), EINVAL);
	FAILS(lseek(fd, LLONG_MIN, SEEK_SET), EINVAL);
	TRUE(lseek(fd, LLONG_MAX, SEEK_END) == -1 && (errno == EINVAL || errno == EOVERFLOW));
	FAILS(fallocate(fd, 0, LLONG_MAX, LLONG_MAX), EFBIG);
	FAILS(fallocate(fd, 0, 10, -1), EINVAL);
	FAILS(ftruncate(fd, LLONG_MIN), EINVAL);
	HOLDS("f", "abc", 3);
	(void)OK(close(fd));
}

/* pwrite(2) on a descriptor with O_APPEND appends, on Linux. */
static void appending_ignores_offsets(void)
{
	int fd, other;

	probe_text("f", "abc");
	fd = (int)OK(open("f", O_RDWR | O_APPEND));
	SAME(pwrite(fd, "de", 2, 0), 2);
	HOLDS("f", "abcde", 5);
	other = (int)OK(open("f", O_WRONLY));
	SAME(pwrite(other, "fgh", 3, 5), 3);
	SAME(write(fd, "!", 1), 1); /* at the end as it is now */
	HOLDS("f", "abcdefgh!", 9);
	(void)OK(ftruncate(other, 2));
	SAME(write(fd, "z", 1), 1);
	HOLDS("f", "abz", 3);
	(void)OK(fcntl(fd, F_SETFL, 0));
	SAME(pwrite(fd, "A", 1, 0), 1);
	HOLDS("f", "Abz", 3);
}

static void truncating_on_open(void)
{
	char byte;
	int fd, other;

	probe_text("f", "content");
	fd = (int)OK(open("f", O_RDWR));
	SAME(read(fd, &byte, 1), 1);
	other = (int)OK(open("f", O_WRONLY | O_TRUNC));
	SAME(read(fd, &byte, 1), 0); /* who had it open sees it */
	SAME(write(other, "new", 3), 3);
	SAME(lseek(fd, 0, SEEK_END), 3);
	(void)OK(close((int)OK(open("f", O_WRONLY | O_CREAT | O_TRUNC, 0600))));
	HOLDS("f", "", 0);
	SAME(probe_stat("f").st_mode, S_IFREG | 0644);
	FAILS(open("none", O_WRONLY | O_TRUNC), ENOENT);
	(void)OK(mkdir("d", 0755));
	FAILS(open("d", O_RDONLY | O_CREAT, 0644), EISDIR);
	FAILS(open("d", O_WRONLY | O_TRUNC), EISDIR);
	FAILS(open("f", O_WRONLY | O_CREAT | O_EXCL | O_TRUNC, 0644), EEXIST);
}

/* Modes that move content are refused and change nothing. */
static void other_allocations_are_refused(void)
{
	static char data[4 * CHUNK];
	int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

	if (!probe_mounted())
		probe_skip("allowed elsewhere");
	pattern(data, sizeof(data), 9);
	SAME(pwrite(fd, data, sizeof(data), 0), sizeof(data));
	FAILS(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, CHUNK), EOPNOTSUPP);
	FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, CHUNK), EOPNOTSUPP);
	FAILS(fallocate(fd, FALLOC_FL_UNSHARE_RANGE, 0, CHUNK), EOPNOTSUPP);
	HOLDS("f", data, sizeof(data));
	(void)OK(posix_fallocate(fd, 0, 5 * CHUNK)); /* the library writes if it must */
	SAME(probe_stat("f").st_size, 5 * CHUNK);
}

/* A file is written while it is read: no byte is other than the old or the new one. */
static void readers_beside_a_writer(void)
{
	enum { SIZE = 3 * CHUNK + 100, ROUNDS = 200 };
	static char content[SIZE];
	pid_t child;
	int fd;

	memset(content, 'a', SIZE);
	probe_write("f", content, SIZE);
	fd = (int)OK(open("f", O_RDWR));
	child = (pid_t)OK(fork());
	if (child == 0) {
		for (int i = 0;; i++) {
			memset(content, 'a' + i % 26, SIZE);
			SAME(pwrite(fd, content, SIZE, 0), SIZE);
		}
	}
	for (int i = 0; i < ROUNDS; i++) {
		SAME(pread(fd, content, SIZE, 0), SIZE);
		for (size_t at = 0; at < SIZE; at++)
			TRUE(content[at] >= 'a' && content[at] <= 'z');
	}
	(void)OK(kill(child, SIGKILL));
	(void)OK(waitpid(child, NULL, 0));
	SAME(probe_stat("f").st_size, SIZE);
}

static void copies_within_and_beyond(void)
{
	static char data[2 * CHUNK];
	loff_t from = 0, to = CHUNK;
	ssize_t n;
	int fd, dir, append;

	pattern(data, sizeof(data), 11);
	probe_write("f", data, CHUNK);
	fd = (int)OK(open("f", O_RDWR));
	n = copy_file_range(fd, &from, fd, &to, CHUNK, 0);
	if (n < 0 && (errno == EOPNOTSUPP || errno == EXDEV))
		probe_skip("copy_file_range is refused");
	SAME(n, CHUNK);
	memcpy(data + CHUNK, data, CHUNK);
	HOLDS("f", data, 2 * CHUNK);
	from = 10 * CHUNK;
	SAME(copy_file_range(fd, &from, fd, &to, 100, 0), 0);
	FAILS(copy_file_range(fd, &from, fd, &to, 100, 1), EINVAL);
	dir = (int)OK(open(".", O_RDONLY | O_DIRECTORY));
	FAILS(copy_file_range(dir, NULL, fd, NULL, 100, 0), EISDIR);
	append = (int)OK(open("f", O_WRONLY | O_APPEND));
	from = 0;
	FAILS(copy_file_range(fd, &from, append, NULL, 100, 0), EBADF);
	HOLDS("f", data, 2 * CHUNK);
}

static void spliced_and_sent(void)
{
	static char data[CHUNK + 777];
	int in, out, ends[2];
	off_t offset = 0;
	size_t left = sizeof(data);

	pattern(data, sizeof(data), 12);
	probe_write("in", data, sizeof(data));
	in = (int)OK(open("in", O_RDONLY));
	out = (int)OK(open("sent", O_CREAT | O_RDWR, 0644));
	while (left > 0)
		left -= (size_t)OK(sendfile(out, in, &offset, left));
	HOLDS("sent", data, sizeof(data));
	(void)OK(pipe(ends));
	out = (int)OK(open("spliced", O_CREAT | O_RDWR, 0644));
	for (left = sizeof(data); left > 0;) {
		ssize_t n = OK(splice(in, NULL, ends[1], NULL, left < 4000 ? left : 4000, 0));

		SAME(splice(ends[0], NULL, out, NULL, (size_t)n, 0), n);
		left -= (size_t)n;
	}
	HOLDS("spliced", data, sizeof(data));
}

static const struct probe probes[] = {
	PROBE(reads_back_at_every_edge),
	PROBE(appends),
	PROBE(truncates),
	PROBE(leaves_holes),
	PROBE(seeks_data_and_holes),
	PROBE(fallocates),
	PROBE(zeroes_ranges),
	PROBE(copies_ranges),
	PROBE(direct_at_any_alignment),
	PROBE(vectors),
	PROBE(sizes_have_a_limit),
	PROBE(directories_are_not_files),
	PROBE(syncs),
	PROBE(statfs_is_true),
	PROBE(far_offsets),
	PROBE(appending_ignores_offsets),
	PROBE(truncating_on_open),
	PROBE(other_allocations_are_refused),
	PROBE(readers_beside_a_writer),
	PROBE(copies_within_and_beyond),
	PROBE(spliced_and_sent),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
