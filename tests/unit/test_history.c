/* SPDX-License-Identifier: MIT */
/* History: what a store was at any time since it began to keep it equals what a model remembers. */
#include "history_util.h"

static void every_state_is_found_again(void **state PFS_UNUSED)
{
	uint64_t random = 1;
	struct pfs_store *store = begin_history(&for_a_day);

	for (int i = 0; i < 150; i++) {
		change_group(store, &random);
		remember(store);
		if (i % 11 == 0) {
			assert_int_equal(pfs_store_begin(store), 0);
			change_something(store, &random);
			pfs_store_rollback(store);
		}
		if (i % 50 == 0) {
			assert_int_equal(pfs_store_close(store), 0);
			store = open_as(0);
		}
	}
	for (size_t i = 0; i < n_states; i++)
		assert_was(store, &states[i]);
	assert_int_equal(count_findings(store), 0);
	assert_not_known(store, states[0].time - INT64_C(3600) * 1000000000, -ESTALE);
	assert_int_equal(pfs_store_close(store), 0);
	for (size_t i = 0; i < n_states; i += 7)
		assert_was(NULL, &states[i]);
}

static void only_what_differs_is_kept(void **state PFS_UNUSED)
{
	struct pfs_store *store = begin_history(&for_a_day);
	struct pfs_node_record node = file_record(OTHERS + 1, 1, "a");
	struct pfs_history before, after;

	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_node(store, &node), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	before = read_history(store);
	assert_int_equal(before.rows, 1);
	node.atime.sec = 5;
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_node(store, &node), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	after = read_history(store);
	assert_memory_equal(&before, &after, sizeof(before));
	node.size = 5;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pfs_store_begin(store), 0);
		assert_int_equal(pfs_store_put_node(store, &node), 0);
		assert_int_equal(pfs_store_put_node(store, &node), 0);
		assert_int_equal(pfs_store_commit(store, NULL), 0);
	}
	after = read_history(store);
	assert_int_equal(after.rows, 2);
	assert_int_equal(after.groups, 2);
	assert_true(after.bytes > before.bytes && after.last >= before.last &&
		    after.since == before.since);
	assert_int_equal(pfs_store_close(store), 0);
}

static void it_ends_and_leaves_nothing(void **state PFS_UNUSED)
{
	uint64_t random = 2;
	struct pfs_store *store = begin_history(&for_a_day);
	struct pfs_history none = {.groups = 0}, now;

	change_group(store, &random);
	assert_int_equal(pfs_history_set(store, &nothing), 0);
	now = read_history(store);
	assert_memory_equal(&now, &none, sizeof(now));
	assert_not_known(store, states[0].time, -ENODATA);
	change_group(store, &random);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_history_set(store, &for_a_day), 0);
	assert_not_known(store, states[0].time, -ESTALE);
	n_states = 0;
	remember(store);
	change_group(store, &random);
	assert_was(store, &states[0]);
	assert_int_equal(pfs_store_close(store), 0);
}

/* ---- how long it takes ---- */

#define MANY 2000

static int count_tick(void *arg)
{
	++*(int *)arg;
	return 0;
}

static int stop_here(void *arg PFS_UNUSED, const struct pfs_node_record *node PFS_UNUSED)
{
	return 1;
}

static void put_many(struct pfs_store *store, int64_t value)
{
	const struct pfs_attr_record attr = {
		.name = "x", .name_len = 1, .type = PFS_ATTR_INTEGER, .integer = value};

	assert_int_equal(pfs_store_begin(store), 0);
	for (uint32_t i = 1; i <= MANY; i++) {
		struct pfs_node_record node = file_record(OTHERS + i, i, "a");

		node.flags = PFS_NODE_ATTRS;
		node.size = value;
		assert_int_equal(pfs_store_put_node(store, &node), 0);
		assert_int_equal(pfs_store_put_attr(store, node.prime, &attr), 0);
	}
	assert_int_equal(pfs_store_commit(store, NULL), 0);
}

/* A node or its attributes cost the same however many have changed: ticks come every 10,000 steps
 * of SQLite's, and to look at all for each would be 40,000,000 of them at least. */
static void one_is_read_without_all_others(void **state PFS_UNUSED)
{
	struct pfs_store *store = begin_history(&for_a_day), *past;
	static struct dump dump;
	int64_t then;
	int ticks = 0;

	put_many(store, 1);
	then = pfs_time_now();
	while (pfs_time_now() == then) {
	}
	put_many(store, 2);
	assert_int_equal(pfs_history_open(&past, store, then, count_tick, &ticks), 0);
	for (uint64_t i = 1; i <= MANY; i++) {
		dump.len = 0;
		assert_int_equal(
			pfs_store_scan_nodes(past, OTHERS + i, OTHERS + i + 1, stop_here, NULL), 1);
		assert_int_equal(pfs_store_scan_attrs(past, OTHERS + i, dump_attr, &dump), 0);
		assert_string_equal(dump.text, " x=1");
	}
	assert_in_range(ticks, 1, 400);
	assert_int_equal(pfs_store_close(past), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

static void rules_are_read(void **state PFS_UNUSED)
{
	static const char *const wrong[] = {
		"", "2", "d", "0d", "-1d", "2x", "2 d", "99999999999y", "4000000000y", "2dd"};
	struct pfs_history_rule rule;

	assert_int_equal(pfs_history_parse(&rule, "2d"), 0);
	assert_true(rule.age == INT64_C(172800) * 1000000000 && rule.size == 0);
	assert_int_equal(pfs_history_parse(&rule, "500M"), 0);
	assert_true(rule.size == UINT64_C(500) << 20 && rule.age == 0);
	assert_int_equal(pfs_history_parse(&rule, "no"), 0);
	assert_true(rule.size == 0 && rule.age == 0);
	for (size_t i = 0; i < PFS_COUNT(wrong); i++)
		assert_int_equal(pfs_history_parse(&rule, wrong[i]), -EINVAL);
}

static void points_in_time_are_read(void **state PFS_UNUSED)
{
	const int64_t now = INT64_C(1700000000) * 1000000000;
	char text[PFS_TIME_TEXT];
	int64_t at;

	assert_true(pfs_time_point(&at, "2 days ago", 10, now) &&
		    at == now - INT64_C(172800) * 1000000000);
	assert_true(pfs_time_point(&at, "1600000000", 10, now) &&
		    at == INT64_C(1600000000) * 1000000000);
	assert_true(pfs_time_point(&at, "1600000000.5", 12, now) &&
		    at == INT64_C(1600000000500000000));
	assert_true(pfs_time_point(&at, "1600000000000000001", 19, now) &&
		    at == INT64_C(1600000000000000001));
	assert_true(pfs_time_point(&at, "2023-11-14", 10, now));
	assert_false(pfs_time_point(&at, "soon", 4, now));
	pfs_time_print(text, INT64_C(1600000000000000001));
	assert_string_equal(text, "2020-09-13T12:26:40.000000001Z");
	assert_true(pfs_time_parse(&at, text, strlen(text)) && at == INT64_C(1600000000000000001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_state_is_found_again),
		cmocka_unit_test(only_what_differs_is_kept),
		cmocka_unit_test(it_ends_and_leaves_nothing),
		cmocka_unit_test(one_is_read_without_all_others),
		cmocka_unit_test(rules_are_read),
		cmocka_unit_test(points_in_time_are_read),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
