/* SPDX-License-Identifier: MIT */
/* Text that is made as it is read: from the front, from behind, anywhere, by several at once; what
 * is kept of it, and how much is made again.  PFS_SEED: another seed. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/checked.h"
#include "fs/query/output/answer.h"
#include "tests/ref/random.h"

#define ROWS	300000u
#define A_TIME	5000u /* rows that the source gives at once */
#define MEMORY	((size_t)256 << 10)
#define ROW_MAX 32u

static uint64_t seed = 20261122;

/* Rows of different lengths, one a line. */
static size_t row_text(char out[ROW_MAX], uint64_t row)
{
	return (size_t)snprintf(out, ROW_MAX, "%.*s%llu\n", (int)(row * 7 % 13), "-------------",
				(unsigned long long)row);
}

static char *whole;
static size_t whole_size;

static int make_whole(void **state)
{
	(void)state;
	whole = malloc((size_t)ROWS * ROW_MAX);
	for (uint64_t row = 0; row < ROWS; row++)
		whole_size += row_text(whole + whole_size, row);
	return 0;
}

static int free_whole(void **state)
{
	(void)state;
	free(whole);
	return 0;
}

/* ---- a source ---- */

struct rows {
	uint64_t n;
	_Atomic uint64_t made; /* rows given */
	uint64_t most;	       /* at how many it fails; 0: never */
	_Atomic unsigned asked; /* at the moment: one at a time is allowed */
	unsigned together;
	uint64_t measured; /* times */
	bool is_closed;
};

static int give_rows(void *arg, uint64_t *row,
		     int (*fn)(void *fn_arg, const char *bytes, size_t size), void *fn_arg)
{
	struct rows *rows = arg;
	uint64_t end = PFS_MIN(rows->n, *row + A_TIME);
	char text[ROW_MAX];

	if (*row >= rows->n)
		return 0;
	if (rows->most && rows->made + A_TIME > rows->most)
		return -EPROTO;
	for (uint64_t i = *row; i < end; i++) {
		int error = fn(fn_arg, text, row_text(text, i));

		if (error)
			return error;
	}
	rows->made += end - *row;
	*row = end;
	return 1;
}

static int next_rows(void *arg, uint64_t *row,
		     int (*fn)(void *fn_arg, const char *bytes, size_t size), void *fn_arg)
{
	struct rows *rows = arg;
	int error;

	rows->together += atomic_fetch_add(&rows->asked, 1) != 0;
	error = give_rows(arg, row, fn, fn_arg);
	(void)atomic_fetch_sub(&rows->asked, 1);
	return error;
}

static int measure_rows(void *arg, uint64_t *row, uint64_t *size, uint64_t n)
{
	struct rows *rows = arg;
	uint64_t end = *row + PFS_MIN(n, rows->n - PFS_MIN(rows->n, *row));
	char text[ROW_MAX];

	if (*row >= rows->n)
		return 0;
	for (*size = 0; *row < end; ++*row)
		*size += row_text(text, *row);
	rows->measured++;
	return 1;
}

static void close_rows(void *arg)
{
	struct rows *rows = arg;

	rows->is_closed = true;
}

static struct pfs_stream *open_stream(struct rows *rows)
{
	const struct pfs_stream_source source = {rows, next_rows, measure_rows, close_rows};
	struct pfs_stream *stream;

	assert_int_equal(pfs_stream_open(&stream, &source, MEMORY), 0);
	return stream;
}

/* Does not assert, as several threads call it. */
static bool reads_right(struct pfs_stream *stream, size_t size, uint64_t offset)
{
	size_t wanted = offset < whole_size ? PFS_MIN(size, whole_size - (size_t)offset) : 0;
	char *data = malloc(size + 1);
	ssize_t n = pfs_stream_read(stream, data, size, offset, NULL);
	bool is_right =
		n == (ssize_t)wanted && memcmp(data, whole + (wanted ? offset : 0), wanted) == 0;

	free(data);
	return is_right;
}

static bool count_down(void *arg)
{
	unsigned *left = arg;

	return *left == 0 || --*left == 0;
}

/* ---- */

static void test_forward(void **state)
{
	struct rows rows = {.n = ROWS};
	struct pfs_stream *stream = open_stream(&rows);
	uint64_t size;

	(void)state;
	for (size_t at = 0; at < whole_size; at += 100000)
		assert_true(reads_right(stream, 100000, at));
	assert_true(reads_right(stream, 1000, whole_size));
	assert_true(reads_right(stream, 1000, whole_size + 12345));
	assert_int_equal(rows.made, ROWS); /* each row once */
	assert_true(pfs_stream_size(stream, &size));
	assert_int_equal(size, whole_size);
	pfs_stream_close(stream);
	assert_true(rows.is_closed);
}

static void test_begin(void **state)
{
	struct rows rows = {.n = ROWS}, few = {.n = 10}, none = {.n = 0},
		    some = {.n = PFS_STREAM_MARKED - 1};
	struct pfs_stream *stream = open_stream(&rows);
	uint64_t size;

	(void)state;
	assert_int_equal(pfs_stream_begin(stream, NULL), 0);
	assert_false(pfs_stream_size(stream, &size));
	assert_true(rows.made < ROWS / 10); /* not more than is kept */
	assert_true(reads_right(stream, 10, 0));
	pfs_stream_close(stream);

	stream = open_stream(&some);
	assert_int_equal(pfs_stream_begin(stream, NULL), 0);
	assert_true(some.made < some.n); /* more than is kept */
	pfs_stream_measure_some(stream);
	assert_true(pfs_stream_size(stream, &size));
	assert_memory_equal(whole + size, "-65535\n", 7);
	pfs_stream_close(stream);

	stream = open_stream(&few);
	assert_int_equal(pfs_stream_begin(stream, NULL), 0);
	assert_true(pfs_stream_size(stream, &size));
	assert_int_equal(size, strchr(strstr(whole, "9\n"), '\n') + 1 - whole);
	pfs_stream_close(stream);

	stream = open_stream(&none);
	assert_int_equal(pfs_stream_begin(stream, NULL), 0);
	assert_true(pfs_stream_size(stream, &size));
	assert_int_equal(size, 0);
	assert_int_equal(pfs_stream_read(stream, &size, 8, 0, NULL), 0);
	pfs_stream_close(stream);
}

/* What is measured is not made, and the end is near from then on. */
static void test_measured(void **state)
{
	struct rows rows = {.n = ROWS};
	struct pfs_stream *stream = open_stream(&rows);
	unsigned left = 1;
	uint64_t size;

	(void)state;
	assert_true(reads_right(stream, 10, 500000));
	size = rows.made;
	assert_int_equal(pfs_stream_measure(stream, &(struct pfs_stream_wait){count_down, &left}),
			 -EINTR);
	assert_int_equal(pfs_stream_measure(stream, NULL), 0);
	assert_int_equal(pfs_stream_measure(stream, NULL), 0);
	assert_int_equal(rows.made, size);
	assert_int_equal(rows.measured, ROWS / PFS_STREAM_MARKED + 1);
	assert_true(pfs_stream_size(stream, &size));
	assert_int_equal(size, whole_size);
	rows.made = 0;
	assert_true(reads_right(stream, 1000, whole_size - 500));
	assert_true(rows.made <= PFS_STREAM_MARKED);
	assert_true(reads_right(stream, 1000, whole_size));
	assert_true(reads_right(stream, whole_size, 0));
	pfs_stream_close(stream);
}

/* Where a reader goes back no more is made again than from the mark before. */
static void test_back(void **state)
{
	struct rows rows = {.n = ROWS};
	struct pfs_stream *stream = open_stream(&rows);

	(void)state;
	for (size_t end = whole_size; end > 0; end -= PFS_MIN(end, 50000)) {
		uint64_t made = rows.made;

		assert_true(reads_right(stream, 50000, end - PFS_MIN(end, 50000)));
		if (end < whole_size)
			assert_true(rows.made - made <= (uint64_t)PFS_STREAM_MARKED + 5 * A_TIME);
	}
	pfs_stream_close(stream);
}

static void read_anywhere(struct pfs_stream *stream, uint64_t *random, unsigned times,
			  unsigned *wrong)
{
	while (times--) {
		size_t size = 1 + random_below(random, random_below(random, 10) ? 5000 : 600000);

		*wrong += !reads_right(stream, size,
				       random_below(random, (unsigned)whole_size + 1000));
	}
}

static void test_anywhere(void **state)
{
	struct rows rows = {.n = ROWS};
	struct pfs_stream *stream = open_stream(&rows);
	unsigned wrong = 0;

	(void)state;
	read_anywhere(stream, &seed, 300, &wrong);
	assert_int_equal(wrong, 0);
	pfs_stream_close(stream);
}

struct reader {
	pthread_t thread;
	struct pfs_stream *stream;
	uint64_t random;
	unsigned wrong;
};

static void *read_on(void *arg)
{
	struct reader *reader = arg;

	read_anywhere(reader->stream, &reader->random, 60, &reader->wrong);
	return NULL;
}

static void test_together(void **state)
{
	struct rows rows = {.n = ROWS};
	struct pfs_stream *stream = open_stream(&rows);
	struct reader readers[4];

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(readers); i++) {
		readers[i] = (struct reader){.stream = stream, .random = seed + i};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
	}
	for (size_t i = 0; i < PFS_COUNT(readers); i++) {
		(void)pthread_join(readers[i].thread, NULL);
		assert_int_equal(readers[i].wrong, 0);
	}
	assert_int_equal(rows.together, 0);
	pfs_stream_close(stream);
}

/* Who does not wait any more is let go between two pieces, and may ask again. */
static void test_gone(void **state)
{
	struct rows rows = {.n = ROWS};
	struct pfs_stream *stream = open_stream(&rows);
	unsigned left = 4;
	const struct pfs_stream_wait wait = {count_down, &left};
	char byte;

	(void)state;
	assert_int_equal(pfs_stream_read(stream, &byte, 1, whole_size - 1, &wait), -EINTR);
	assert_true(rows.made <= 4 * A_TIME);
	assert_true(reads_right(stream, 1, whole_size - 1));
	assert_int_equal(rows.made, ROWS); /* it went on from where it was */
	pfs_stream_close(stream);
}

/* ---- one asks the source, and others come ---- */

struct gate {
	struct rows rows;
	sem_t is_in, open;
	_Atomic bool is_shut;
};

/* Waits within the source until the gate is opened; 20 s at most. */
static int next_behind_gate(void *arg, uint64_t *row,
			    int (*fn)(void *fn_arg, const char *bytes, size_t size), void *fn_arg)
{
	struct gate *gate = arg;

	if (gate->is_shut) {
		struct timespec end;

		(void)clock_gettime(CLOCK_REALTIME, &end);
		end.tv_sec += 20;
		(void)sem_post(&gate->is_in);
		(void)sem_timedwait(&gate->open, &end);
		gate->is_shut = false;
	}
	return next_rows(&gate->rows, row, fn, fn_arg);
}

static void *read_first(void *stream)
{
	return reads_right(stream, 10, 0) ? stream : NULL;
}

static bool is_gone(void *arg)
{
	return *(const bool *)arg;
}

/* Who does not wait any more is let go while another one asks the source, whatever he wants of
 * it. */
static void test_gone_behind(void **state)
{
	struct gate gate = {.rows = {.n = ROWS}, .is_shut = true};
	const struct pfs_stream_source source = {&gate, next_behind_gate, measure_rows, close_rows};
	bool gone = true;
	const struct pfs_stream_wait wait = {is_gone, &gone};
	struct pfs_stream *stream;
	pthread_t first;
	void *read;
	char byte;

	(void)state;
	(void)sem_init(&gate.is_in, 0, 0);
	(void)sem_init(&gate.open, 0, 0);
	assert_int_equal(pfs_stream_open(&stream, &source, MEMORY), 0);
	assert_int_equal(pthread_create(&first, NULL, read_first, stream), 0);
	(void)sem_wait(&gate.is_in);
	assert_int_equal(pfs_stream_read(stream, &byte, 1, whole_size / 2, &wait), -EINTR);
	assert_int_equal(pfs_stream_measure(stream, &wait), -EINTR);
	assert_int_equal(pfs_stream_read_kept(stream, &byte, 1, 0), -EAGAIN);
	pfs_stream_measure_some(stream);
	assert_int_equal(gate.rows.measured, 0);
	assert_true(gate.is_shut);
	(void)sem_post(&gate.open);
	(void)pthread_join(first, &read);
	assert_ptr_equal(read, stream);
	assert_int_equal(pfs_stream_read_kept(stream, &byte, 1, 0), 1);
	assert_int_equal(pfs_stream_read_kept(stream, &byte, 1, whole_size / 2), -EAGAIN);
	pfs_stream_measure_some(stream);
	assert_int_equal(gate.rows.measured, 1);
	assert_true(reads_right(stream, 1000, whole_size - 500));
	assert_int_equal(pfs_stream_read_kept(stream, &byte, 1, whole_size), 0);
	pfs_stream_close(stream);
	(void)sem_destroy(&gate.is_in);
	(void)sem_destroy(&gate.open);
}

/* What fails is told to each who comes there; what is kept is still to be had. */
static void test_failing(void **state)
{
	struct rows rows = {.n = ROWS, .most = ROWS / 2};
	struct pfs_stream *stream = open_stream(&rows);
	char byte;

	(void)state;
	assert_true(reads_right(stream, 1000, 0));
	assert_int_equal(pfs_stream_read(stream, &byte, 1, whole_size - 1, NULL), -EPROTO);
	assert_int_equal(pfs_stream_read(stream, &byte, 1, whole_size - 1, NULL), -EPROTO);
	rows.most = 0;
	assert_true(reads_right(stream, 1000, whole_size - 1000));
	assert_true(reads_right(stream, 1000, 0));
	pfs_stream_close(stream);
}

/* An answer that is one. */
static void test_answer(void **state)
{
	struct rows rows = {.n = ROWS};
	struct pfs_answer *answer;
	size_t size = 10;
	char *data = malloc(whole_size + 1);

	(void)state;
	assert_int_equal(pfs_answer_create(&answer, 0, 0), 0);
	assert_int_equal(pfs_answer_set_stream(answer, open_stream(&rows), NULL), 0);
	assert_int_equal(pfs_answer_size(answer), 0);
	assert_false(pfs_answer_is_complete(answer));
	assert_null(pfs_answer_view(answer, &size, 0));
	assert_int_equal(pfs_answer_read_while(answer, data, whole_size + 1, 0, NULL), whole_size);
	assert_memory_equal(data, whole, whole_size);
	assert_true(pfs_answer_is_complete(answer));
	assert_int_equal(pfs_answer_size(answer), whole_size);
	pfs_answer_close(answer);
	assert_true(rows.is_closed);
	free(data);
}

int main(void)
{
	const char *given = getenv("PFS_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward),	 cmocka_unit_test(test_begin),
		cmocka_unit_test(test_back),	 cmocka_unit_test(test_anywhere),
		cmocka_unit_test(test_together), cmocka_unit_test(test_gone),
		cmocka_unit_test(test_failing),	 cmocka_unit_test(test_answer),
		cmocka_unit_test(test_measured), cmocka_unit_test(test_gone_behind),
	};

	seed = given ? strtoull(given, NULL, 10) : seed;
	print_message("seed %llu (PFS_SEED sets it)\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, make_whole, free_whole);
}
