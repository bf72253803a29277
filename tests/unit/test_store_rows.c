/* SPDX-License-Identifier: MIT */
/* Rows of side tables are in the store as they were written, in whatever order and company: beside
 * a model of two tables. PFS_SEED=N: another run. */
#include "tests/unit/store_util.h"

#include "base/checked.h"
#include "meta/siderows.h"
#include "tests/unit/store_model.h"

#define NUMBERS 600
#define TABLES	2u

/* Of each table the stamp of each row, from which its values follow; 0: it is not there. */
static uint64_t stamps[TABLES][NUMBERS];
static const unsigned widths[TABLES] = {1, 4};

/* The numbers that there may be: some next to each other, some far apart. */
static int64_t number_of(size_t i)
{
	if (i == 0)
		return INT64_MIN;
	if (i == NUMBERS - 1)
		return INT64_MAX;
	return (int64_t)i < NUMBERS / 2 ? (int64_t)i - 20 : (int64_t)i * 7;
}

static size_t fill_in(struct pfs_cell *cells, unsigned width, uint64_t stamp)
{
	static const char text[] = "0123456789abcdef";

	for (unsigned c = 0; c < width; c++) {
		uint64_t value = stamp * 31 + c;

		cells[c] = (struct pfs_cell){.type = value % 5};
		cells[c].integer = (int64_t)(value << (value % 60));
		cells[c].real = (double)value / 7;
		cells[c].bytes = text;
		cells[c].size = value % sizeof(text);
	}
	return width;
}

struct seen {
	unsigned table;
	size_t at;
};

static int see(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	struct seen *seen = arg;
	struct pfs_cell expected[4];

	while (seen->at < NUMBERS && !stamps[seen->table][seen->at])
		seen->at++;
	assert_true(seen->at < NUMBERS);
	assert_int_equal(row, number_of(seen->at));
	assert_int_equal(n, widths[seen->table]);
	(void)fill_in(expected, widths[seen->table], stamps[seen->table][seen->at]);
	for (size_t c = 0; c < n; c++) {
		assert_int_equal(cells[c].type, expected[c].type);
		if (cells[c].type == PFS_CELL_INTEGER)
			assert_int_equal(cells[c].integer, expected[c].integer);
		if (cells[c].type == PFS_CELL_REAL)
			assert_true(cells[c].real == expected[c].real);
		if (cells[c].type >= PFS_CELL_TEXT) {
			assert_int_equal(cells[c].size, expected[c].size);
			assert_memory_equal(cells[c].bytes, expected[c].bytes, cells[c].size);
		}
	}
	seen->at++;
	return 0;
}

static void compare(struct pfs_store *store, const uint32_t *ids)
{
	for (unsigned t = 0; t < TABLES; t++) {
		struct seen seen = {.table = t};

		assert_int_equal(pfs_store_scan_rows(store, ids[t], NULL, see, &seen), 0);
		while (seen.at < NUMBERS && !stamps[t][seen.at])
			seen.at++;
		assert_int_equal(seen.at, NUMBERS);
	}
}

/* Of a hundred rows so many are removed, and of a hundred that may be written so many are passed
 * over. */
static void write_some(struct pfs_store *store, uint32_t id, unsigned table, uint64_t *seed)
{
	struct pfs_side_rows rows PFS_SIDE_ROWS = {.table = id};
	struct pfs_cell cells[4];
	uint64_t removed = (*seed = model_random(*seed)) % 3 * 50;
	uint64_t passed = (*seed = model_random(*seed)) % 4 * 33;
	bool rise = (*seed = model_random(*seed)) % 4;

	for (size_t i = 0; i < NUMBERS; i++) {
		uint64_t random = *seed = model_random(*seed);
		size_t at = rise ? i : random / 100000 % NUMBERS;

		if (random % 100 < passed)
			continue;
		stamps[table][at] = random / 100 % 100 < removed ? 0 : random;
		assert_int_equal(pfs_side_rows_add(&rows, number_of(at),
						   stamps[table][at] ? cells : NULL,
						   fill_in(cells, widths[table], random)),
				 0);
	}
	assert_int_equal(pfs_store_write_rows(store, &rows), 0);
}

static void rows_are_those_of_a_model(void **state PFS_UNUSED)
{
	const char *given = getenv("PFS_SEED");
	uint64_t first = given ? strtoull(given, NULL, 10) : (uint64_t)getpid(), seed = first;
	struct pfs_store *store = open_as(PFS_STORE_CREATE);
	uint32_t ids[TABLES];

	(void)printf("PFS_SEED=%llu\n", (unsigned long long)first);
	assert_int_equal(pfs_store_begin(store), 0);
	for (unsigned t = 0; t < TABLES; t++)
		assert_int_equal(
			pfs_store_put_table(store, &ids[t],
					    &(struct pfs_table_record){.name = t ? "b" : "a",
								       .name_len = 1,
								       .columns = "",
								       .columns_len = 0},
					    widths[t]),
			0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	for (unsigned turn = 0; turn < 200; turn++) {
		static uint64_t before[TABLES][NUMBERS];

		(void)memcpy(before, stamps, sizeof(before));
		assert_int_equal(pfs_store_begin(store), 0);
		for (unsigned i = 0; i < 3; i++) {
			unsigned table = (seed = model_random(seed)) % TABLES;

			write_some(store, ids[table], table, &seed);
		}
		if (turn % 10 == 9) {
			pfs_store_rollback(store);
			(void)memcpy(stamps, before, sizeof(before));
		} else {
			assert_int_equal(pfs_store_commit(store, NULL), 0);
		}
		compare(store, ids);
	}
	assert_int_equal(pfs_store_close(store), 0);
}

static int count(void *arg, int64_t row PFS_UNUSED, const struct pfs_cell *cells PFS_UNUSED,
		 size_t n PFS_UNUSED)
{
	(*(unsigned *)arg)++;
	return 0;
}

/* A batch is written as it grows. */
static void batches_are_written(void **state PFS_UNUSED)
{
	static const char text[100000];
	const struct pfs_cell cell = {.type = PFS_CELL_BLOB, .bytes = text, .size = sizeof(text)};
	struct pfs_store *store = open_as(PFS_STORE_CREATE);
	struct pfs_side_rows batch PFS_SIDE_ROWS = {.table = 0};
	const struct pfs_table_record table = {.name = "a", .name_len = 1, .columns = ""};
	struct pfs_cell large = cell;
	unsigned n = 0;

	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_table(store, &batch.table, &table, 1), 0);
	for (int64_t i = 1; i <= 100; i++) {
		assert_int_equal(pfs_store_put_row(store, &batch, i, &cell, 1), 0);
		assert_true(batch.n < 20);
	}
	large.size = PFS_TABLE_ROW_MAX + 1;
	assert_int_equal(pfs_store_put_row(store, &batch, 101, &large, 1), -E2BIG);
	assert_int_equal(pfs_store_put_row(store, &batch, 1, NULL, 0), 0);
	assert_int_equal(pfs_store_write_rows(store, &batch), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_scan_rows(store, batch.table, NULL, count, &n), 0);
	assert_int_equal(n, 99);
	assert_int_equal(pfs_store_close(store), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_are_those_of_a_model, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(batches_are_written, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
