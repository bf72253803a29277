/* SPDX-License-Identifier: MIT */
/* Rows as text, and answers in memory and beyond.  The query is made up: see struct pfs_query. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <cmocka.h>

#include "base/checked.h"
#include "fs/query/output/answer.h"

#define TEXT(s) {.type = PFS_SQL_TEXT, .bytes = (s), .size = sizeof(s) - 1}
#define INT(i)	{.type = PFS_SQL_INTEGER, .integer = (i)}
#define REAL(r) {.type = PFS_SQL_REAL, .real = (r)}
#define NONE	{.type = PFS_SQL_NULL}

/* Rows that are given out, `repeat` times over. */
struct pfs_query {
	const char *const *names;
	size_t n_columns;
	const struct pfs_sql_value *values;
	size_t n_rows, repeat, at;
	size_t restart_at; /* once, when that many rows are out; 0: never */
	int fail;	   /* instead of the end */
};

static struct pfs_query *next_query; /* whatever the statement */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __wrap_pfs_query_start(struct pfs_query **out, struct pfs_queries *queries,
			   const struct pfs_query_scope *scope, const char *sql, size_t len,
			   struct pfs_query_error *error);
void __wrap_pfs_query_finish(struct pfs_query *query);
size_t __wrap_pfs_query_columns(const struct pfs_query *query);
const char *__wrap_pfs_query_column_name(const struct pfs_query *query, size_t column);
int __wrap_pfs_query_next(struct pfs_query *query, struct pfs_query_error *error);
int __wrap_pfs_query_parts(struct pfs_query *query, size_t *n_parts, pfs_portion_fn fn, void *arg,
			   struct pfs_query_error *error);
void __wrap_pfs_query_value(const struct pfs_query *query, size_t column,
			    struct pfs_sql_value *out);
void __wrap_pfs_query_rests(struct pfs_query *query);

int __wrap_fstatvfs64(int fd, struct statvfs *out);

static uint64_t blocks_left = 100000; /* of 100,000 */

int __wrap_fstatvfs64(int fd PFS_UNUSED, struct statvfs *out)
{
	*out = (struct statvfs){.f_frsize = 4096, .f_blocks = 100000, .f_bavail = blocks_left};
	return 0;
}

int __wrap_pfs_query_start(struct pfs_query **out, struct pfs_queries *queries PFS_UNUSED,
			   const struct pfs_query_scope *scope PFS_UNUSED,
			   const char *sql PFS_UNUSED, size_t len PFS_UNUSED,
			   struct pfs_query_error *error PFS_UNUSED)
{
	*out = next_query;
	return 0;
}

void __wrap_pfs_query_finish(struct pfs_query *query PFS_UNUSED)
{
}

size_t __wrap_pfs_query_columns(const struct pfs_query *query)
{
	return query->n_columns;
}

const char *__wrap_pfs_query_column_name(const struct pfs_query *query, size_t column)
{
	return query->names[column];
}

int __wrap_pfs_query_next(struct pfs_query *query, struct pfs_query_error *error)
{
	if (query->restart_at && query->at == query->restart_at) {
		query->restart_at = 0;
		query->at = 0;
		return -EAGAIN;
	}
	if (query->at == query->n_rows * PFS_MAX(query->repeat, 1)) {
		error->error = query->fail;
		return query->fail;
	}
	query->at++;
	return 1;
}

void __wrap_pfs_query_rests(struct pfs_query *query PFS_UNUSED)
{
}

int __wrap_pfs_query_parts(struct pfs_query *query PFS_UNUSED, size_t *n_parts PFS_UNUSED,
			   pfs_portion_fn fn PFS_UNUSED, void *arg PFS_UNUSED,
			   struct pfs_query_error *error PFS_UNUSED)
{
	return 0;
}

void __wrap_pfs_query_value(const struct pfs_query *query, size_t column,
			    struct pfs_sql_value *out)
{
	*out = query->values[(query->at - 1) % query->n_rows * query->n_columns + column];
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- */

static const char *const names[] = {"path", "n"};
static const struct pfs_sql_value values[] = {
	TEXT("/a\tb\n\\\r"),
	INT(-7),
	TEXT("\xff\"x,"),
	REAL(0.1),
	TEXT(""),
	NONE,
	NONE,
	REAL(1e300 * 1e300),
	TEXT("d\xc3\xa9j\xc3\xa0"),
	INT(1200),
};
#define TABLE                                                                                      \
	{                                                                                          \
		.names = names, .n_columns = 2, .values = values, .n_rows = 5                      \
	}

/* The query in that format, NUL-terminated; the caller frees. */
static char *formatted(struct pfs_query query, enum pfs_format format)
{
	struct pfs_query_scope scope = {.ino = 2};
	struct pfs_query_error error;
	struct pfs_answer *answer;
	uint64_t size;
	char *text;

	assert_int_equal(pfs_answer_create(&answer, 0, 0), 0);
	next_query = &query;
	assert_int_equal(pfs_answer_run(answer, NULL, &scope, "", 0, format, &error), 0);
	size = pfs_answer_size(answer);
	text = calloc(1, size + 1);
	assert_non_null(text);
	assert_int_equal(pfs_answer_read(answer, text, size + 1, 0), size);
	pfs_answer_close(answer);
	return text;
}

static void expect(struct pfs_query query, enum pfs_format format, const char *wanted)
{
	char *text = formatted(query, format);

	assert_string_equal(text, wanted);
	free(text);
}

static void test_formats(void **state PFS_UNUSED)
{
	struct pfs_query query = TABLE;
	char *text;

	expect(query, PFS_FORMAT_TSV,
	       "path\tn\n/"
	       "a\\tb\\n\\\\\\r\t-7\n\xff\"x,\t0.1\n\t\n\tinf\nd\xc3\xa9j\xc3\xa0\t1200\n");
	expect(query, PFS_FORMAT_CSV,
	       "path,n\r\n\"/a\tb\n\\\r\",-7\r\n\"\xff\"\"x,\",0.1\r\n\"\",\r\n,inf\r\n"
	       "d\xc3\xa9j\xc3\xa0,1200\r\n");
	expect(query, PFS_FORMAT_JSON,
	       "[\n{\"path\":\"/a\\tb\\n\\\\\\r\",\"n\":-7},\n"
	       "{\"path\":\"\xef\xbf\xbd\\\"x,\",\"path_bytes\":\"/yJ4LA==\",\"n\":0.1},\n"
	       "{\"path\":\"\",\"n\":null},\n{\"path\":null,\"n\":9e999},\n"
	       "{\"path\":\"d\xc3\xa9j\xc3\xa0\",\"n\":1200}\n]\n");
	expect(query, PFS_FORMAT_TEXT,
	       "path            n\n-----------  ----\n/a\\tb\\n\\\\\\r    -7\n\xff\"x,          "
	       "0.1\n"
	       "                 \n              inf\nd\xc3\xa9j\xc3\xa0         1200\n");
	expect(query, PFS_FORMAT_PATHS, "/a\tb\n\\\r\n\xff\"x,\n\nd\xc3\xa9j\xc3\xa0\n");
	text = formatted(query, PFS_FORMAT_PATHS0);
	assert_string_equal(text, "/a\tb\n\\\r");
	assert_string_equal(text + strlen(text) + 1, "\xff\"x,");
	free(text);
}

static void test_empty(void **state PFS_UNUSED)
{
	struct pfs_query no_rows = TABLE, no_columns = {.n_rows = 0};

	no_rows.n_rows = 0;
	expect(no_rows, PFS_FORMAT_TSV, "path\tn\n");
	expect(no_rows, PFS_FORMAT_CSV, "path,n\r\n");
	expect(no_rows, PFS_FORMAT_JSON, "[]\n");
	expect(no_rows, PFS_FORMAT_TEXT, "path  n\n----  -\n");
	expect(no_rows, PFS_FORMAT_PATHS, "");
	expect(no_columns, PFS_FORMAT_TSV, "");
	expect(no_columns, PFS_FORMAT_JSON, "[]\n");
	expect(no_columns, PFS_FORMAT_TEXT, "");
}

static void test_utf8_in_json(void **state PFS_UNUSED)
{
	static const char *const one[] = {"x"};
	static const struct pfs_sql_value odd[] = {
		TEXT("\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80|\xf0\x9f\x8c\x8d|\xe2\x82|\x01\x7f")};
	struct pfs_query query = {.names = one, .n_columns = 1, .values = odd, .n_rows = 1};
#define BAD "\xef\xbf\xbd"

	expect(query, PFS_FORMAT_JSON,
	       "[\n{\"x\":\"" BAD BAD "|" BAD BAD BAD "|" BAD BAD BAD BAD
	       "|\xf0\x9f\x8c\x8d|" BAD BAD
	       "|\\u0001\\u007f\",\"x_bytes\":\"wK987aCAfPSQgIB88J+MjXzignwBfw==\"}\n]\n");
}

static void test_names(void **state PFS_UNUSED)
{
	enum pfs_format format;

	assert_int_equal(pfs_format_by_name(&format, "paths0", 6), 0);
	assert_int_equal(format, PFS_FORMAT_PATHS0);
	assert_int_equal(pfs_format_by_name(&format, "tsvx", 3), 0);
	assert_int_equal(format, PFS_FORMAT_TSV);
	assert_int_equal(pfs_format_by_name(&format, "path", 4), -EINVAL);
	assert_int_equal(pfs_format_by_name(&format, "", 0), -EINVAL);
}

/* Larger than memory, in every format: what small rows give many times over. */
static void test_large(void **state PFS_UNUSED)
{
	struct pfs_query query = TABLE;
	const size_t times = 20000;
	char *once, *many;
	size_t head = strlen("path\tn\n"), len, i;

	once = formatted(query, PFS_FORMAT_TSV);
	query.repeat = times;
	query.restart_at = 777;
	many = formatted(query, PFS_FORMAT_TSV);
	len = strlen(once) - head;
	assert_int_equal(strlen(many), head + times * len);
	for (i = 0; i < times; i++)
		assert_memory_equal(many + head + i * len, once + head, len);
	free(many);
	many = formatted(query, PFS_FORMAT_TEXT);
	assert_int_equal(strncmp(many, "path            n\n", 18), 0);
	free(many);
	free(once);
}

static void test_answer_pieces(void **state PFS_UNUSED)
{
	static unsigned char bytes[1 << 20], read[1 << 20];
	struct pfs_answer *answer;
	size_t at = 0, i;
	uint64_t state64 = 99;

	for (i = 0; i < sizeof(bytes); i++) {
		state64 = state64 * 6364136223846793005u + 1;
		bytes[i] = (unsigned char)(state64 >> 33);
	}
	assert_int_equal(pfs_answer_create(&answer, 100000, 0), 0);
	while (at < sizeof(bytes)) { /* some larger than memory */
		size_t n = PFS_MIN((at * 7 + 13) % 200000, sizeof(bytes) - at);

		assert_int_equal(pfs_answer_write(answer, bytes + at, n), 0);
		at += n;
	}
	assert_int_equal(pfs_answer_size(answer), sizeof(bytes));
	for (at = 0; at < sizeof(bytes); at += 4321)
		assert_int_equal(pfs_answer_read(answer, read + at, 4321, at),
				 PFS_MIN((size_t)4321, sizeof(bytes) - at));
	assert_memory_equal(bytes, read, sizeof(bytes));
	assert_int_equal(pfs_answer_read(answer, read, 10, sizeof(bytes)), 0);
	assert_int_equal(pfs_answer_read(answer, read, 10, UINT64_MAX), 0);
	pfs_answer_truncate(answer);
	assert_int_equal(pfs_answer_size(answer), 0);
	assert_int_equal(pfs_answer_read(answer, read, 10, 0), 0);
	pfs_answer_close(answer);
}

#define MIB ((size_t)1 << 20)

/* Bytes that tell where they are. */
static void append_bytes(struct pfs_answer *answer, size_t size)
{
	static uint32_t words[MIB / 4];
	uint32_t at = (uint32_t)pfs_answer_made(answer) / 4;

	for (; size; size -= MIB) {
		for (size_t i = 0; i < MIB / 4; i++)
			words[i] = at++;
		assert_int_equal(pfs_answer_write(answer, words, MIB / 2 + 4), 0);
		assert_int_equal(pfs_answer_write(answer, (char *)words + MIB / 2 + 4, MIB / 2 - 4),
				 0);
	}
}

static void check_bytes(struct pfs_answer *answer, size_t size)
{
	static uint32_t words[1000];

	assert_int_equal(pfs_answer_size(answer), size);
	for (uint64_t at = 0; at < size; at += sizeof(words)) {
		ssize_t n = pfs_answer_read(answer, words, sizeof(words), at);

		assert_int_equal(n, PFS_MIN(sizeof(words), size - at));
		for (size_t i = 0; i < (size_t)n / 4; i++)
			assert_int_equal(words[i], at / 4 + i);
	}
}

/* How much of it can be had without a copy: all that is in memory. */
static uint64_t in_memory(const struct pfs_answer *answer)
{
	uint64_t at = 0;

	for (;;) {
		size_t size = 700000;
		const char *bytes = pfs_answer_view(answer, &size, at);
		uint32_t word;

		if (!bytes)
			return at;
		assert_in_range(size, 1, 700000);
		memcpy(&word, bytes, sizeof(word));
		assert_int_equal(word, at / 4);
		at += size;
	}
}

/* All answers together have a budget beyond what each has for itself. */
static void test_budget(void **state PFS_UNUSED)
{
	struct pfs_answer *a, *b, *small;

	pfs_answers_set_budget(6 * MIB);
	assert_int_equal(pfs_answer_create(&a, 4 * MIB, 0), 0);
	assert_int_equal(pfs_answer_create(&b, 4 * MIB, 0), 0);
	assert_int_equal(pfs_answer_create(&small, MIB, 0), 0);
	pfs_answer_keep_more(a);
	pfs_answer_keep_more(b);
	append_bytes(a, 4 * MIB);
	append_bytes(small, 3 * MIB); /* which may not have more */
	assert_int_equal(pfs_answers_taken(), 0);
	assert_int_equal(in_memory(a), 4 * MIB);
	assert_int_equal(in_memory(small), MIB);
	append_bytes(a, 3 * MIB);
	assert_int_equal(pfs_answers_taken(), 4 * MIB);
	append_bytes(b, 20 * MIB);
	assert_int_equal(pfs_answers_taken(), 6 * MIB);
	assert_int_equal(in_memory(b), 6 * MIB);
	append_bytes(a, 3 * MIB); /* what it has is used up before the file */
	assert_int_equal(in_memory(a), 8 * MIB);
	check_bytes(a, 10 * MIB);
	check_bytes(b, 20 * MIB);
	check_bytes(small, 3 * MIB);
	pfs_answer_truncate(a);
	assert_int_equal(pfs_answers_taken(), 2 * MIB);
	append_bytes(a, 9 * MIB);
	check_bytes(a, 9 * MIB);
	assert_int_equal(in_memory(a), 8 * MIB);
	assert_ptr_equal(pfs_answer_ref(a), a);
	pfs_answer_close(a);
	check_bytes(a, 9 * MIB);
	pfs_answer_close(a);
	assert_int_equal(pfs_answers_taken(), 2 * MIB);
	pfs_answer_close(b);
	pfs_answer_close(small);
	assert_int_equal(pfs_answers_taken(), 0);
	pfs_answers_set_budget(0);
}

static void *read_growing(void *arg)
{
	static uint32_t words[5000];
	struct pfs_answer *answer = arg;
	uint64_t at = 0;

	while (at < 12 * MIB) {
		uint64_t made = pfs_answer_made(answer);
		ssize_t n = pfs_answer_read(answer, words, sizeof(words), at);

		if (n < 0 || (uint64_t)n < PFS_MIN(made - at, sizeof(words)))
			return arg;
		n -= n % 4;
		for (size_t i = 0; i < (size_t)n / 4; i++)
			if (words[i] != at / 4 + i)
				return arg;
		at += (uint64_t)n;
	}
	return NULL;
}

/* What is there is read while more is written, to memory and to the file. */
static void test_growing(void **state PFS_UNUSED)
{
	struct pfs_answer *answer;
	pthread_t reader;
	void *failed;

	assert_int_equal(pfs_answer_create(&answer, 4 * MIB, 0), 0);
	append_bytes(answer, MIB);
	pfs_answer_set_growing(answer, true);
	assert_int_equal(pfs_answer_size(answer), 0);
	assert_int_equal(pfs_answer_made(answer), MIB);
	assert_false(pfs_answer_is_complete(answer));
	assert_int_equal(pthread_create(&reader, NULL, read_growing, answer), 0);
	append_bytes(answer, 11 * MIB);
	assert_true(pfs_answer_is_in_file(answer));
	assert_int_equal(pthread_join(reader, &failed), 0);
	assert_null(failed);
	pfs_answer_set_growing(answer, false);
	assert_true(pfs_answer_is_complete(answer));
	check_bytes(answer, 12 * MIB);
	pfs_answer_close(answer);
}

static void test_failures(void **state PFS_UNUSED)
{
	struct pfs_query query = TABLE;
	struct pfs_query_scope scope = {.ino = 2};
	struct pfs_query_error error;
	struct pfs_answer *answer;

	assert_int_equal(pfs_answer_create(&answer, 0, 20), 0);
	next_query = &query;
	assert_int_equal(pfs_answer_run(answer, NULL, &scope, "", 0, PFS_FORMAT_TSV, &error),
			 -EFBIG);
	assert_int_equal(error.error, -EFBIG);
	assert_non_null(strstr(error.text, "limit"));
	assert_int_equal(pfs_answer_size(answer), 0);
	query = (struct pfs_query)TABLE;
	query.n_rows = 0;
	query.fail = -EINTR;
	assert_int_equal(pfs_answer_run(answer, NULL, &scope, "", 0, PFS_FORMAT_TEXT, &error),
			 -EINTR);
	pfs_answer_close(answer);
	pfs_answer_close(NULL);
}

/* The last of a filesystem is left to others. */
static void test_space(void **state PFS_UNUSED)
{
	static const char piece[1 << 20];
	struct pfs_answer *answer;
	int error = 0;

	assert_int_equal(pfs_answer_create(&answer, 0, 0), 0);
	for (int i = 0; i < 40; i++)
		assert_int_equal(pfs_answer_write(answer, piece, sizeof(piece)), 0);
	blocks_left = 3000;
	for (int i = 0; i < 17 && !error; i++) /* it is looked at now and then */
		error = pfs_answer_write(answer, piece, sizeof(piece));
	assert_int_equal(error, -ENOSPC);
	blocks_left = 100000;
	pfs_answer_close(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats), cmocka_unit_test(test_empty),
		cmocka_unit_test(test_names),	cmocka_unit_test(test_utf8_in_json),
		cmocka_unit_test(test_large),	cmocka_unit_test(test_answer_pieces),
		cmocka_unit_test(test_budget),	cmocka_unit_test(test_space),
		cmocka_unit_test(test_growing), cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
