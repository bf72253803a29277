/* SPDX-License-Identifier: MIT */
/* History that is forgotten: the oldest first, bit by bit, by size and by age, whatever the clock
 * says. */
#include "history_util.h"

#include <sqlite3.h>

static void forget_all_that_is_due(struct pfs_store *store)
{
	for (int groups = 0; pfs_history_is_due(store); groups++) {
		assert_true(groups <
			    100); /* what is young when this begins may be old when it ends */
		assert_int_equal(pfs_store_begin(store), 0);
		assert_int_equal(pfs_history_prune(store), 0);
		assert_int_equal(pfs_store_commit(store, NULL), 0);
	}
}

/* Those that are known are right, and the first ones are not known. */
static void assert_known_ones(struct pfs_store *store)
{
	struct pfs_history history = read_history(store);
	size_t known = 0;

	for (size_t i = 0; i < n_states; i++) {
		if (states[i].time < history.since) {
			assert_not_known(store, states[i].time, -ESTALE);
			continue;
		}
		assert_was(store, &states[i]);
		known++;
	}
	assert_true(known > 0 && known < n_states);
}

static void the_oldest_are_forgotten_by_size(void **state PFS_UNUSED)
{
	const struct pfs_history_rule small = {.size = 4000};
	uint64_t random = 3;
	struct pfs_store *store = begin_history(&small);

	for (int i = 0; i < 100; i++) {
		change_group(store, &random);
		remember(store);
	}
	forget_all_that_is_due(store);
	assert_true(read_history(store).bytes <= small.size);
	assert_true(read_history(store).bytes >= small.size / 2);
	assert_known_ones(store);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

static void the_oldest_are_forgotten_by_age(void **state PFS_UNUSED)
{
	struct pfs_history_rule young = {.age = 0};
	uint64_t random = 4;
	struct pfs_store *store = begin_history(&for_a_day);

	for (int i = 0; i < 60; i++) {
		change_group(store, &random);
		remember(store);
	}
	assert_false(pfs_history_is_due(store));
	young.age = pfs_time_now() - states[30].time;
	assert_int_equal(pfs_history_set(store, &young), 0);
	(void)usleep(1000 + (useconds_t)(young.age / 64 / 1000)); /* the slack */
	assert_true(pfs_history_is_due(store));
	forget_all_that_is_due(store);
	remember(store);
	assert_known_ones(store);
	assert_not_known(store, states[20].time, -ESTALE);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

/* A group of more rows than one forgets: what is left of it is nobody's, and goes with the next
 * groups. */
static void a_large_group_goes_bit_by_bit(void **state PFS_UNUSED)
{
	const struct pfs_history_rule small = {.size = 1000};
	struct pfs_store *store = begin_history(&small);
	int groups = 0;

	assert_int_equal(pfs_store_begin(store), 0);
	for (uint32_t i = 1; i <= 10000; i++) {
		struct pfs_node_record node = file_record(OTHERS + i, i, "a");

		assert_int_equal(pfs_store_put_node(store, &node), 0);
	}
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(read_history(store).rows, 10000);
	for (; pfs_history_is_due(store); groups++) {
		assert_int_equal(pfs_store_begin(store), 0);
		assert_int_equal(pfs_history_prune(store), 0);
		assert_int_equal(pfs_store_commit(store, NULL), 0);
		assert_not_known(store, states[0].time, -ESTALE);
		assert_int_equal(count_findings(store), 0);
		assert_int_equal(pfs_store_close(store), 0);
		store = open_as(0);
	}
	assert_int_equal(groups, 3);
	assert_int_equal(read_history(store).rows, 0);
	assert_int_equal(pfs_store_close(store), 0);
}

static void alter(const char *text)
{
	sqlite3 *handle;

	assert_int_equal(sqlite3_open(test_path, &handle), SQLITE_OK);
	assert_int_equal(sqlite3_exec(handle, text, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

/* Of a clock that was three years ahead, and since when what was. */
static void times_ahead_are_pulled_back(const char *ahead, bool has_begun_ahead)
{
	struct pfs_history_rule young = {.age = INT64_C(50) * 1000000};
	uint64_t random = 5;
	struct pfs_store *store = begin_history(&for_a_day);
	struct state now, before;
	int64_t was;

	for (int i = 0; i < 10; i++) {
		change_group(store, &random);
		remember(store);
	}
	assert_int_equal(pfs_store_close(store), 0);
	before = states[n_states - 1];
	alter(ahead);
	before.time = pfs_time_now();
	assert_was(NULL, &before);
	assert_true(pfs_time_now() >= before.time);
	store = open_as(0);
	assert_true(read_history(store).last <= pfs_time_now());
	while (pfs_time_now() == before.time) {
	}
	before.time = pfs_time_now();
	change_group(store, &random);
	now = look(store);
	while (pfs_time_now() == now.time) {
	}
	change_group(store, &random);
	assert_was(store, &now);
	if (!has_begun_ahead)
		assert_was(store, &states[2]);
	assert_true(read_history(store).last >= now.time);
	assert_int_equal(count_findings(store), 0);
	was = read_history(store).since;
	(void)usleep(60000);
	assert_int_equal(pfs_history_set(store, &young), 0);
	assert_true(pfs_history_is_due(store));
	forget_all_that_is_due(store);
	assert_true(read_history(store).since > was);
	assert_true(read_history(store).since <= pfs_time_now());
	assert_int_equal(read_history(store).groups, 0);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

#define YEARS "94670000000000000"

static void a_clock_that_was_ahead_spoils_nothing(void **state PFS_UNUSED)
{
	times_ahead_are_pulled_back("UPDATE history_group SET time = time + " YEARS
				    " WHERE seq > (SELECT max(seq) - 3 FROM "
				    "history_group)",
				    false);
	times_ahead_are_pulled_back("UPDATE history_group SET time = time + " YEARS
				    "; UPDATE history SET since = since + " YEARS,
				    true);
}

static off_t log_size(void)
{
	char name[4096];
	struct stat attr;

	(void)snprintf(name, sizeof(name), "%s-wal", test_path);
	return stat(name, &attr) ? 0 : attr.st_size;
}

/* What was stays what it was, also when it is let go of between two reads; and while it is, the log
 * can be emptied. */
static void a_past_goes_on_while_groups_come(void **state PFS_UNUSED)
{
	const struct pfs_history_rule small = {.size = 100};
	struct pfs_store *store = begin_history(&for_a_day), *past[3];
	const size_t at[] = {0, 10, 20};
	uint64_t random = 9;

	for (int i = 0; i < 20; i++) {
		change_group(store, &random);
		remember(store);
	}
	for (size_t i = 0; i < PFS_COUNT(past); i++)
		assert_int_equal(try_open_at(&past[i], store, states[at[i]].time), 0);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 5; i++)
			change_group(store, &random);
		for (size_t i = 0; i < PFS_COUNT(past); i++) {
			assert_true(look(past[i]).hash == states[at[i]].hash);
			pfs_history_pause(past[i]);
			pfs_history_pause(past[i]);
		}
		assert_int_equal(pfs_store_checkpoint(store, true), 0);
		assert_int_equal(log_size(), 0);
		for (size_t i = 0; i < PFS_COUNT(past); i++)
			assert_int_equal(pfs_history_go_on(past[i]), 0);
	}
	for (size_t i = 0; i < PFS_COUNT(past); i++)
		pfs_history_pause(past[i]);
	assert_int_equal(pfs_history_set(store, &small), 0);
	forget_all_that_is_due(store);
	assert_int_equal(pfs_history_go_on(past[0]), -ESTALE);
	assert_int_equal(pfs_history_set(store, &nothing), 0);
	assert_int_equal(pfs_history_go_on(past[1]), -ENODATA);
	for (size_t i = 0; i < PFS_COUNT(past); i++)
		assert_int_equal(pfs_store_close(past[i]), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

/* As many groups as may be, of which no row is left, go bit by bit, too. */
static void many_groups_go_bit_by_bit(void **state PFS_UNUSED)
{
	const struct pfs_history_rule small = {.size = 1000};
	uint64_t random = 8;
	struct pfs_store *store = begin_history(&for_a_day);
	int groups = 0;

	change_group(store, &random);
	assert_int_equal(pfs_store_close(store), 0);
	alter("UPDATE meta SET seq = seq + 10000;"
	      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
	      "INSERT INTO history_group SELECT i + (SELECT max(seq) FROM history_group), "
	      "(SELECT max(time) FROM history_group), 0, 1 FROM n;");
	store = open_as(0);
	change_group(store, &random);
	assert_int_equal(pfs_history_set(store, &small), 0);
	for (uint64_t before = read_history(store).groups; pfs_history_is_due(store); groups++) {
		uint64_t now;

		assert_int_equal(pfs_store_begin(store), 0);
		assert_int_equal(pfs_history_prune(store), 0);
		assert_int_equal(pfs_store_commit(store, NULL), 0);
		now = read_history(store).groups;
		assert_true(before - now <= 4096);
		before = now;
	}
	assert_int_equal(groups, 3);
	assert_true(read_history(store).bytes <= small.size);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_are_forgotten_by_size),
		cmocka_unit_test(the_oldest_are_forgotten_by_age),
		cmocka_unit_test(a_large_group_goes_bit_by_bit),
		cmocka_unit_test(many_groups_go_bit_by_bit),
		cmocka_unit_test(a_clock_that_was_ahead_spoils_nothing),
		cmocka_unit_test(a_past_goes_on_while_groups_come),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
