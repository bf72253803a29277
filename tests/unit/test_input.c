/* SPDX-License-Identifier: MIT */
/* Files and pipes read the same; what is kept of a pipe can be read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/input.h"

#define LINES 200000

static char path[64];

/* Lines of 0 to 40 bytes: line n begins with n. */
static size_t make_line(char *out, unsigned n)
{
	return (size_t)snprintf(out, 64, "%u%.*s", n, (int)(n * 7 % 40),
				"........................................");
}

static int make_file(void **state)
{
	char line[64];
	FILE *file;
	unsigned i;
	int fd;

	(void)state;
	(void)strcpy(path, "/tmp/pfs-input-XXXXXX"); /* NOLINT: it fits */
	fd = mkstemp(path);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return -1;
	for (i = 0; i < LINES; i++)
		(void)fprintf(file, "%.*s\n", (int)make_line(line, i), line);
	return fclose(file);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void read_all(struct pfs_input_stream *input, uint64_t *offsets)
{
	const char *record;
	char line[64];
	size_t len;
	unsigned i;

	for (i = 0; i < LINES; i++) {
		uint64_t offset = pfs_input_tell(input);

		assert_int_equal(pfs_input_record(input, &record, &len, '\n'), 1);
		assert_int_equal(len, make_line(line, i));
		assert_memory_equal(record, line, len);
		offsets[i] = offset;
	}
	assert_int_equal(pfs_input_record(input, &record, &len, '\n'), 0);
}

static void read_some(struct pfs_input_stream *input, const uint64_t *offsets)
{
	const char *record;
	char line[64];
	size_t len;
	unsigned i, n = 1;

	for (i = 0; i < 3000; i++) {
		n = i % 3 ? n + 1 : (n * 69069 + 1) % (LINES - 5);
		assert_int_equal(pfs_input_seek(input, offsets[n]), 0);
		assert_int_equal(pfs_input_record(input, &record, &len, '\n'), 1);
		assert_int_equal(len, make_line(line, n));
		assert_memory_equal(record, line, len);
	}
}

static void test_file(void **state)
{
	uint64_t *offsets = calloc(LINES, sizeof(*offsets));
	struct pfs_input_stream input;

	(void)state;
	assert_int_equal(pfs_input_open(&input, path), 0);
	assert_true(input.regular);
	read_all(&input, offsets);
	read_some(&input, offsets);
	assert_int_equal(pfs_input_seek(&input, 0), 0);
	read_all(&input, offsets);
	pfs_input_close(&input);
	free(offsets);
}

static void read_line(struct pfs_input_stream *input, const uint64_t *offsets, unsigned n)
{
	const char *record;
	char line[64];
	size_t len;

	assert_int_equal(pfs_input_seek(input, offsets[n]), 0);
	assert_int_equal(pfs_input_tell(input), offsets[n]);
	assert_int_equal(pfs_input_record(input, &record, &len, '\n'), 1);
	assert_int_equal(len, make_line(line, n));
	assert_memory_equal(record, line, len);
}

/* Places that are near each other are read together; of those that are not little is read. */
static void test_jumps(void **state)
{
	uint64_t *offsets = calloc(LINES, sizeof(*offsets)), begin;
	struct pfs_input_stream input;
	const char *record;
	size_t len;

	(void)state;
	assert_int_equal(pfs_input_open(&input, path), 0);
	read_all(&input, offsets);
	for (unsigned i = 0; i < 20; i++)
		read_line(&input, offsets, i % 2 ? i * 1000 : LINES - 1 - i * 1000);
	assert_true(input.size < 4096);
	for (unsigned i = 0; i < 40; i++) {
		read_line(&input, offsets, LINES / 2 + i * 100);
		read_line(&input, offsets, LINES / 2 + i * 100 + 1);
	}
	begin = input.offset;
	assert_true(begin <= offsets[LINES / 2 + 3700]);
	read_line(&input, offsets, LINES / 2 + 3700);
	assert_int_equal(input.offset, begin);
	assert_int_equal(pfs_input_seek(&input, offsets[LINES - 1] + 12345), 0);
	assert_int_equal(pfs_input_tell(&input), offsets[LINES - 1] + 12345);
	assert_int_equal(pfs_input_record(&input, &record, &len, '\n'), 0);
	read_line(&input, offsets, LINES - 1);
	pfs_input_close(&input);
	free(offsets);
}

/* Standard input becomes a pipe that a child writes the file into; returns the old one. */
static int feed(void)
{
	int ends[2], old = dup(STDIN_FILENO);
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)close(ends[0]);
		(void)close(ends[1]);
		(void)execlp("cat", "cat", path, (char *)NULL);
		_exit(127);
	}
	(void)close(ends[1]);
	(void)dup2(ends[0], STDIN_FILENO);
	(void)close(ends[0]);
	return old;
}

static void unfeed(int old)
{
	(void)dup2(old, STDIN_FILENO);
	(void)close(old);
	(void)wait(NULL);
}

static void test_pipe(void **state)
{
	uint64_t *offsets = calloc(LINES, sizeof(*offsets));
	struct pfs_input_stream input;
	int old = feed();

	(void)state;
	assert_int_equal(pfs_input_open(&input, "-"), 0);
	assert_false(input.regular);
	assert_true(pfs_input_need(&input, 1000) >= 1000); /* looked at before it is kept */
	assert_int_equal(pfs_input_keep(&input), 0);
	read_all(&input, offsets);
	read_some(&input, offsets);
	pfs_input_close(&input);
	unfeed(old);

	old = feed();
	assert_int_equal(pfs_input_open(&input, "-"), 0);
	assert_true(pfs_input_need(&input, 1000) >= 1000);
	assert_int_equal(pfs_input_keep_all(&input), 0);
	assert_true(input.regular);
	read_all(&input, offsets);
	pfs_input_close(&input);
	unfeed(old);

	old = feed();
	assert_int_equal(pfs_input_open(&input, "-"), 0);
	read_all(&input, offsets);
	assert_int_equal(pfs_input_seek(&input, 0), -ESPIPE);
	assert_int_equal(pfs_input_keep(&input), -ESPIPE);
	pfs_input_close(&input);
	unfeed(old);
	free(offsets);
}

static void test_ends(void **state)
{
	struct pfs_input_stream input;
	const char *record;
	size_t len;

	(void)state;
	assert_int_equal(pfs_input_open_memory(&input, "a\0\0b", 4), 0);
	assert_int_equal(pfs_input_record(&input, &record, &len, 0), 1);
	assert_int_equal(len, 1);
	assert_int_equal(pfs_input_record(&input, &record, &len, 0), 1);
	assert_int_equal(len, 0);
	assert_int_equal(pfs_input_record(&input, &record, &len, 0), 1);
	assert_int_equal(len, 1); /* without its delimiter */
	assert_int_equal(pfs_input_record(&input, &record, &len, 0), 0);
	pfs_input_close(&input);
	assert_int_equal(pfs_input_open_memory(&input, NULL, 0), 0);
	assert_int_equal(pfs_input_record(&input, &record, &len, '\n'), 0);
	pfs_input_close(&input);
	assert_int_equal(pfs_input_open(&input, "/nonexistent"), -ENOENT);
	pfs_input_close(&input);
	assert_int_equal(pfs_input_open(&input, "/"), -EISDIR);
	pfs_input_close(&input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
