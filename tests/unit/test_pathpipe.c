/* SPDX-License-Identifier: MIT */
/* Lists of paths from a descriptor to a descriptor: the same text for batches of every size, from
 * files and pipes, by one thread and several; what is not read, resolved or written; and that nobody
 * waits for more than he needs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "tests/unit/pathpipe_util.h"
#include "tools/client/pathpipe.h"

#define LONG  5000u /* bytes of the longest path: more than PATH_MAX */
#define WAIT_MS 60000

/* Resolves a path to its length, and a path of seven bytes to nothing. */
struct resolver {
	atomic_size_t calls;
	atomic_size_t most; /* paths of a call */
	const char *bad;    /* a path that fails, or NULL */
	int out;	    /* of `put` */
	unsigned at_once;   /* calls at most; 0: any number */
	atomic_int inside;
};

static int resolve(void *arg, uint64_t *inos, const struct pfs_path_text *paths, size_t n)
{
	struct resolver *resolver = arg;
	const unsigned inside = (unsigned)atomic_fetch_add(&resolver->inside, 1);
	size_t most = resolver->most;

	atomic_fetch_add(&resolver->calls, 1);
	if (inside >= resolver->at_once && resolver->at_once)
		return 4;
	while (n > most && !atomic_compare_exchange_weak(&resolver->most, &most, n))
		continue;
	for (size_t i = 0; i < n; i++) {
		if (resolver->bad && strncmp(paths[i].bytes, resolver->bad, paths[i].len) == 0)
			return 3;
		inos[i] = paths[i].len == 7 ? 0 : paths[i].len + 1;
		((char *)paths[i].bytes)[paths[i].len] = 0; /* which is allowed */
	}
	atomic_fetch_sub(&resolver->inside, 1);
	return 0;
}

/* Who takes the lines himself. */
static int put(void *arg, const struct pfs_resolve_text *text, uint64_t offset)
{
	const struct resolver *resolver = arg;

	for (size_t i = 0; i < text->n_parts; i++) {
		const struct iovec *part = &text->parts[i];

		if (pwrite(resolver->out, part->iov_base, part->iov_len, (off_t)offset) !=
		    (ssize_t)part->iov_len)
			return -EIO;
		offset += part->iov_len;
	}
	return 0;
}

/* A pipe, and who writes into it. */
struct feeder {
	const char *bytes;
	size_t size;
	int to;
};

static void *feed_main(void *arg)
{
	const struct feeder *feeder = arg;

	for (size_t at = 0; at < feeder->size;) {
		/* pieces that are no batch, and no power of two */
		size_t some = PFS_MIN(feeder->size - at, feeder->size / 7 + 1);
		ssize_t written = write(feeder->to, feeder->bytes + at, some);

		if (written < 0)
			break;
		at += (size_t)written;
	}
	(void)close(feeder->to);
	return NULL;
}

/* What the answer should be, line by line. */
static char *expected_of(size_t *len, const char *text, size_t size, char delimiter)
{
	struct pfs_path_text path;
	char *expected = NULL;
	FILE *out = open_memstream(&expected, len);
	size_t at = 0;

	assert_non_null(out);
	while (pfs_path_next(&path, text, size, &at, delimiter)) {
		if (path.len == 7)
			(void)fputs("-\t", out);
		else
			(void)fprintf(out, "%zu\t", path.len + 1);
		(void)fwrite(path.bytes, 1, path.len, out);
		(void)fputc(delimiter, out);
	}
	assert_int_equal(fclose(out), 0);
	return expected;
}

static void check_file(int fd, const char *expected, size_t len)
{
	char *got = malloc(len + 1);

	assert_int_equal(lseek(fd, 0, SEEK_END), len);
	assert_int_equal(pread(fd, got, len, 0), len);
	assert_memory_equal(got, expected, len);
	free(got);
}

/* Answers what pipe->in has. */
static void check_answers(struct pfs_pathpipe *pipe, const char *text, size_t size)
{
	struct resolver resolver = {.at_once = pipe->at_once};
	size_t len, at = 0;
	char *expected = expected_of(&len, text, size, pipe->delimiter);
	struct pfs_path_text path;
	bool missing = false;

	while (pfs_path_next(&path, text, size, &at, pipe->delimiter))
		missing |= path.len == 7;
	pipe->path_max = PFS_MAX(pipe->batch, LONG);
	pipe->arg = &resolver;
	pipe->resolve = resolve;
	resolver.out = pipe->out = file_with("", 0);
	assert_int_equal(pfs_pathpipe_run(pipe), 0);
	check_file(pipe->out, expected, len);
	assert_true(pipe->missing == missing);
	assert_true(resolver.most <= pipe->batch + 1);
	assert_int_equal(resolver.calls > 0, size > 0);
	assert_int_equal(close(pipe->in), 0);
	assert_int_equal(close(pipe->out), 0);
	free(expected);
}

/* From a file whose first bytes have been read, and from a pipe. */
static void check_text(const char *text, size_t size, char delimiter, size_t batch)
{
	struct pfs_pathpipe pipe = {.delimiter = delimiter,
				    .batch = batch,
				    .threads = 1 + (unsigned)(batch % 5),
				    .at_once = (unsigned)(batch % 3),
				    .put = batch % 2 ? put : NULL};
	struct feeder feeder = {text, size, -1};
	pthread_t thread;
	int ends[2];

	pipe.in = file_with("before", 6);
	assert_int_equal(pwrite(pipe.in, text, size, 6), size);
	assert_int_equal(lseek(pipe.in, 6, SEEK_SET), 6);
	check_answers(&pipe, text, size);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	feeder.to = ends[1];
	pipe.in = ends[0];
	assert_int_equal(pthread_create(&thread, NULL, feed_main, &feeder), 0);
	check_answers(&pipe, text, size);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Lines of 0, 1, ... bytes, whose borders fall everywhere in a batch; the last line with its
 * delimiter and without. */
static void batches_of_every_size(void **state)
{
	enum { LONGEST = 40 };
	char text[LONGEST * LONGEST];
	size_t size = 0;

	(void)state;
	for (size_t len = 0; len <= LONGEST; len++) {
		memset(text + size, 'a' + (int)len % 26, len);
		size += len;
		text[size++] = len % 3 ? '\n' : 0;
	}
	for (size_t batch = 1; batch < size + 3;
	     batch += batch < 200 || batch + 5 > size ? 1 : 97) {
		check_text(text, size, '\n', batch);
		check_text(text, size - 1, '\n', batch);
		check_text(text, size, 0, batch);
		check_text(text, size - 1, 0, batch);
	}
}

static void short_texts(void **state)
{
	static const char lines[] = "\n\n\n\n\n\n\n\n";
	static const char ones[] = "a\nb\nc\nd";

	(void)state;
	for (size_t size = 0; size < sizeof(lines); size++)
		for (size_t batch = 1; batch < 10; batch++)
			check_text(lines, size, '\n', batch);
	for (size_t size = 0; size < sizeof(ones); size++)
		for (size_t batch = 1; batch < 10; batch++)
			check_text(ones, size, '\n', batch);
	check_text("", 0, 0, 1);
}

/* As long as a path may be, and a byte longer; what came before it is answered. */
static void long_paths(void **state)
{
	struct resolver resolver = {0};
	char text[2 + LONG + 3] = "a\n";
	struct pfs_pathpipe pipe = {.out = file_with("", 0),
				    .delimiter = '\n',
				    .batch = 100,
				    .path_max = LONG,
				    .arg = &resolver,
				    .resolve = resolve};

	(void)state;
	memset(text + 2, 'x', LONG + 1);
	text[2 + LONG] = '\n';
	check_text(text, 2 + LONG, '\n', 1);
	check_text(text, 2 + LONG + 1, '\n', LONG);
	text[2 + LONG] = 'x';
	for (size_t size = 2 + LONG + 1; size < sizeof(text); size++) {
		text[size - 1] = size == sizeof(text) - 1 ? '\n' : 'x';
		pipe.in = file_with(text, size);
		assert_int_equal(ftruncate(pipe.out, 0), 0);
		assert_int_equal(lseek(pipe.out, 0, SEEK_SET), 0);
		assert_int_equal(pfs_pathpipe_run(&pipe), -ECANCELED);
		assert_int_equal(pipe.errors[PFS_PATHPIPE_READ], -ENAMETOOLONG);
		assert_int_equal(
			pipe.errors[PFS_PATHPIPE_RESOLVE] | pipe.errors[PFS_PATHPIPE_WRITE], 0);
		check_file(pipe.out, "2\ta\n", 4);
		assert_int_equal(close(pipe.in), 0);
	}
	assert_int_equal(close(pipe.out), 0);
}

/* Many batches, and more lines than are found at once. */
static void many_lines(void **state)
{
	const size_t size = (size_t)2 << 20;
	char *text = malloc(size);

	(void)state;
	memset(text, '\n', size);
	check_text(text, size, '\n', size);
	check_text(text, size, '\n', 100000);
	for (size_t i = 0; i < size; i++)
		text[i] = i % 11 == 7 || i % 1009 == 500 ? '\n' : 'p';
	check_text(text, size, '\n', 65536);
	check_text(text, size - 1, '\n', 65535);
	free(text);
}

/* ---- failures ---- */

static void unreadable(void **state)
{
	struct resolver resolver = {0};
	struct pfs_pathpipe pipe = {.in = open("/", O_RDONLY | O_CLOEXEC),
				    .out = file_with("", 0),
				    .batch = 100, .path_max = 100,
				    .arg = &resolver,
				    .resolve = resolve};

	(void)state;
	assert_int_equal(pfs_pathpipe_run(&pipe), -ECANCELED);
	assert_int_equal(pipe.errors[PFS_PATHPIPE_READ], -EISDIR);
	assert_int_equal(resolver.calls, 0);
	assert_int_equal(close(pipe.in), 0);
	assert_int_equal(close(pipe.out), 0);
}

/* The lines before a read that fails are answered. Memory is read, up to a page that its file has
 * not. */
static void unreadable_after_some(void **state)
{
	static const char text[] = "aaaa\nbbbb\ncc";
	const size_t page = (size_t)getpagesize(), size = sizeof(text) - 1;
	struct resolver resolver = {0};
	struct pfs_pathpipe pipe = {.in = open("/proc/self/mem", O_RDONLY | O_CLOEXEC),
				    .out = file_with("", 0),
				    .delimiter = '\n',
				    .batch = 100,
				    .path_max = 100,
				    .arg = &resolver,
				    .resolve = resolve};
	int file = file_with("", 0);
	char *memory;

	(void)state;
	assert_true(pipe.in >= 0);
	assert_int_equal(ftruncate(file, (off_t)page), 0);
	memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memcpy(memory + page - size, text, size);
	assert_true(lseek(pipe.in, (off_t)(uintptr_t)(memory + page - size), SEEK_SET) >= 0);
	assert_int_equal(pfs_pathpipe_run(&pipe), -ECANCELED);
	assert_int_equal(pipe.errors[PFS_PATHPIPE_READ], -EIO);
	check_file(pipe.out, "5\taaaa\n5\tbbbb\n", 14);
	assert_int_equal(munmap(memory, 2 * page), 0);
	assert_int_equal(close(file), 0);
	assert_int_equal(close(pipe.in), 0);
	assert_int_equal(close(pipe.out), 0);
}

/* A file from which more than a page's bytes at once cannot be read beyond a place, as if it had
 * been shortened or its disk failed after somebody looked where lines end. */
enum { TEXT_SIZE = 30000, BROKEN_AT = 12005, A_LINE = 10, PAGE = 4096 };
static int broken_fd = -1;
static bool is_shortened;
/* A file to which lines are appended, once, when its end has been read. */
static int growing_fd = -1;

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
ssize_t __real_pread64(int fd, void *to, size_t size, off_t offset);
ssize_t __wrap_pread64(int fd, void *to, size_t size, off_t offset);
ssize_t __wrap_pread64(int fd, void *to, size_t size, off_t offset)
{
	if (fd != broken_fd || size <= PAGE || offset + (off_t)size <= BROKEN_AT)
		return __real_pread64(fd, to, size, offset);
	if (offset < BROKEN_AT)
		return __real_pread64(fd, to, (size_t)(BROKEN_AT - offset), offset);
	errno = EIO;
	return is_shortened ? 0 : -1;
}

ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size)
{
	static const char more[] = "bb\ncccc\n";
	const ssize_t got = __real_read(fd, to, size);

	if (fd == growing_fd && got == 0) {
		growing_fd = -1;
		(void)pwrite(fd, more, sizeof(more) - 1, lseek(fd, 0, SEEK_CUR));
	}
	return got;
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* What was read before is answered: whole lines only, if there are more that cannot be read. */
static void broken_while_read(void **state)
{
	char text[TEXT_SIZE];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t i = A_LINE - 1; i < sizeof(text); i += A_LINE)
		text[i] = '\n';
	for (unsigned i = 0; i < 100; i++) {
		struct resolver resolver = {0};
		struct pfs_pathpipe pipe = {.in = file_with(text, sizeof(text)),
					    .out = file_with("", 0),
					    .delimiter = '\n',
					    .batch = 10000,
					    .path_max = 10000,
					    .threads = 1 + i % 5,
					    .arg = &resolver,
					    .resolve = resolve};
		size_t len;
		char *expected;

		is_shortened = i % 2;
		broken_fd = pipe.in;
		expected = expected_of(&len, text,
				       is_shortened ? BROKEN_AT : BROKEN_AT / A_LINE * A_LINE,
				       '\n');
		assert_int_equal(pfs_pathpipe_run(&pipe), is_shortened ? 0 : -ECANCELED);
		assert_int_equal(pipe.errors[PFS_PATHPIPE_READ], is_shortened ? 0 : -EIO);
		broken_fd = -1;
		check_file(pipe.out, expected, len);
		free(expected);
		assert_int_equal(close(pipe.in), 0);
		assert_int_equal(close(pipe.out), 0);
	}
}

/* The list ends where the file's end was read, though the file grows afterwards. */
static void grown_at_its_end(void **state)
{
	static const char text[] = "aaaa\nbb";

	(void)state;
	for (unsigned threads = 1; threads < 5; threads++) {
		struct resolver resolver = {0};
		struct pfs_pathpipe pipe = {.in = file_with(text, sizeof(text) - 1),
					    .out = file_with("", 0),
					    .delimiter = '\n',
					    .batch = 100,
					    .path_max = 100,
					    .threads = threads,
					    .arg = &resolver,
					    .resolve = resolve};

		growing_fd = pipe.in;
		assert_int_equal(pfs_pathpipe_run(&pipe), 0);
		assert_int_equal(growing_fd, -1);
		check_file(pipe.out, "5\taaaa\n3\tbb\n", 12);
		assert_int_equal(close(pipe.in), 0);
		assert_int_equal(close(pipe.out), 0);
	}
}

/* What was resolved before is written; nothing after it is. */
static void not_resolved(void **state)
{
	static const char text[] = "aaaa\nbbbb\ncccc\ndddd\n";

	(void)state;
	for (size_t i = 0; i < 4000; i++) {
		struct resolver resolver = {.bad = text + i % 4 * 5};
		struct pfs_pathpipe pipe = {.in = file_with(text, sizeof(text) - 1),
					    .out = file_with("", 0),
					    .delimiter = '\n',
					    .batch = 4,
					    .path_max = 4,
					    .threads = 4,
					    .arg = &resolver,
					    .resolve = resolve};

		assert_int_equal(pfs_pathpipe_run(&pipe), -ECANCELED);
		assert_int_equal(pipe.errors[PFS_PATHPIPE_RESOLVE], 3);
		check_file(pipe.out, "5\taaaa\n5\tbbbb\n5\tcccc\n", i % 4 * 7);
		assert_int_equal(close(pipe.in), 0);
		assert_int_equal(close(pipe.out), 0);
	}
}

/* The reader of the answer goes while the paths' writer says nothing more: who waits for paths does
 * not wait for ever. */
static void not_written(void **state)
{
	struct resolver resolver = {0};
	int in[2], out[2];
	struct pfs_pathpipe pipe = {.delimiter = '\n',
				    .batch = 100,
				    .path_max = 100,
				    .arg = &resolver,
				    .resolve = resolve};

	(void)state;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pipe.in = in[0];
	pipe.out = out[1];
	assert_int_equal(close(out[0]), 0);
	assert_int_equal(write(in[1], "a\n", 2), 2);
	assert_int_equal(pfs_pathpipe_run(&pipe), -ECANCELED);
	assert_int_equal(pipe.errors[PFS_PATHPIPE_WRITE], -EPIPE);
	assert_int_equal(pipe.errors[PFS_PATHPIPE_READ], 0);
	assert_int_equal(close(in[0]), 0);
	assert_int_equal(close(in[1]), 0);
	assert_int_equal(close(out[1]), 0);
}

/* ---- line by line ---- */

struct talk {
	int to, from;
	size_t answers;
};

/* Writes a path when the one before it has been answered. */
static void *talk_main(void *arg)
{
	struct talk *talk = arg;
	char line[5];

	for (; talk->answers < 20; talk->answers++) {
		struct pollfd event = {.fd = talk->from, .events = POLLIN};

		if (write(talk->to, "/a\n", 3) != 3 || poll(&event, 1, WAIT_MS) != 1 ||
		    read(talk->from, line, sizeof(line)) != 5 || memcmp(line, "3\t/a\n", 5) != 0)
			break;
	}
	(void)close(talk->to);
	return NULL;
}

static void answered_before_the_next(void **state)
{
	struct resolver resolver = {0};
	struct pfs_pathpipe pipe = {.delimiter = '\n',
				    .batch = 100,
				    .path_max = 100,
				    .arg = &resolver,
				    .resolve = resolve};
	int in[2], out[2];
	struct talk talk;
	pthread_t thread;

	(void)state;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pipe.in = in[0];
	pipe.out = out[1];
	talk = (struct talk){in[1], out[0], 0};
	assert_int_equal(pthread_create(&thread, NULL, talk_main, &talk), 0);
	assert_int_equal(pfs_pathpipe_run(&pipe), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(talk.answers, 20);
	assert_int_equal(close(in[0]), 0);
	assert_int_equal(close(out[0]), 0);
	assert_int_equal(close(out[1]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_of_every_size),
		cmocka_unit_test(short_texts),
		cmocka_unit_test(long_paths),
		cmocka_unit_test(many_lines),
		cmocka_unit_test(unreadable),
		cmocka_unit_test(unreadable_after_some),
		cmocka_unit_test(broken_while_read),
		cmocka_unit_test(grown_at_its_end),
		cmocka_unit_test(not_resolved),
		cmocka_unit_test(not_written),
		cmocka_unit_test(answered_before_the_next),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
