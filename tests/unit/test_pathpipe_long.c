/* SPDX-License-Identifier: MIT */
/* Lists with paths longer than a batch: how much memory these take, and how the
 * lines behind them are read. */
#include <malloc.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/pathpipe_util.h"
#include "tools/client/pathpipe.h"

#define LONG 5000u /* bytes of a path that counts as long */

/* Who watches the memory that is in use while paths are resolved. */
struct watcher {
	atomic_int long_ones; /* calls with a long path */
	atomic_bool have_met;
	size_t in_use; /* bytes, at the last call */
};

static size_t bytes_in_use(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* Waits a little for another thread's long path. */
static int watch(void *arg, uint64_t *inos, const struct pfs_path_text *paths, size_t n)
{
	struct watcher *watcher = arg;

	if (paths[0].len >= LONG) {
		if (atomic_fetch_add(&watcher->long_ones, 1))
			watcher->have_met = true;
		(void)poll(NULL, 0, 20);
		atomic_fetch_sub(&watcher->long_ones, 1);
	} else {
		watcher->in_use = bytes_in_use();
	}
	memset(inos, 0, n * sizeof(*inos));
	return 0;
}

/* Long paths take memory from one thread at a time, which frees it. */
static void memory_of_long_paths(void **state)
{
	enum { LENGTH = 1 << 20, PATHS = 6, SIZE = PATHS * (LENGTH + 1) + 2 };
	char *text = malloc(SIZE);

	(void)state;
	memset(text, 'p', SIZE);
	for (size_t i = 1; i <= PATHS; i++)
		text[i * (LENGTH + 1) - 1] = '\n';
	text[SIZE - 1] = '\n';
	for (unsigned threads = 1; threads < 5; threads += 3) {
		struct watcher watcher = {0};
		struct pfs_pathpipe pipe = {.in = file_with(text, SIZE),
					    .out = file_with("", 0),
					    .delimiter = '\n',
					    .batch = 10000,
					    .path_max = LENGTH,
					    .threads = threads,
					    .arg = &watcher,
					    .resolve = watch};
		const size_t before = bytes_in_use();

		assert_int_equal(pfs_pathpipe_run(&pipe), 0);
		assert_false(watcher.have_met);
		if (threads == 1) /* else another one may still have the last long path */
			assert_true(watcher.in_use < before + LENGTH);
		assert_int_equal(close(pipe.in), 0);
		assert_int_equal(close(pipe.out), 0);
	}
	free(text);
}

/* ---- reading in pieces ---- */

static atomic_size_t bytes_in_turn;

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size)
{
	const ssize_t got = __real_read(fd, to, size);

	bytes_in_turn += got > 0 ? (size_t)got : 0;
	return got;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static int find_nothing(void *arg PFS_UNUSED, uint64_t *inos,
			const struct pfs_path_text *paths PFS_UNUSED, size_t n)
{
	memset(inos, 0, n * sizeof(*inos));
	return 0;
}

/* Behind a long path, which has to be read in turn, the file is read in pieces again. */
static void in_pieces_behind_a_long_path(void **state)
{
	enum { LENGTH = 15000, SIZE = 1000000, BATCH = 10000, LINE = 13 };
	struct pfs_pathpipe pipe = {.out = file_with("", 0),
				    .delimiter = '\n',
				    .batch = BATCH,
				    .path_max = 2 * LENGTH,
				    .threads = 3,
				    .resolve = find_nothing};
	char *text = malloc(SIZE);

	(void)state;
	memset(text, 'p', SIZE);
	for (size_t i = LENGTH; i < SIZE; i += LINE)
		text[i] = '\n';
	text[SIZE - 1] = '\n';
	pipe.in = file_with(text, SIZE);
	bytes_in_turn = 0;
	assert_int_equal(pfs_pathpipe_run(&pipe), 0);
	assert_in_range(bytes_in_turn, LENGTH, LENGTH + 2 * BATCH);
	assert_int_equal(lseek(pipe.in, 0, SEEK_CUR), SIZE);
	assert_int_equal(lseek(pipe.out, 0, SEEK_END),
			 SIZE + 2 * (1 + (SIZE - LENGTH + LINE - 1) / LINE));
	assert_int_equal(close(pipe.in), 0);
	assert_int_equal(close(pipe.out), 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_long_paths),
		cmocka_unit_test(in_pieces_behind_a_long_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
