/* SPDX-License-Identifier: MIT */
/* History: what a store was at any time since it began to keep it equals what a model remembers,
 * whatever was changed, forgotten, rolled back or cut short by SIGKILL. */
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <time.h>

#include "base/checked.h"
#include "base/log.h"
#include "fs/query/times/times.h"
#include "meta/history.h"
#include "tests/ref/random.h"
#include "tests/unit/store_util.h"
#include "tests/vfs/faultvfs.h"

#define FILES	   40 /* that come and go */
#define STATES_MAX 400
#define DUMP_MAX   16384
#define OTHERS	   (UINT64_C(1) << 32)

static const struct pfs_history_rule for_a_day = {.age = INT64_C(86400) * 1000000000};
static const struct pfs_history_rule nothing;

struct state {
	int64_t time;
	uint64_t hash;
	uint64_t nodes;
};

static struct state states[STATES_MAX];
static size_t n_states;

/* ---- what a store holds, as a text ---- */

struct dump {
	char text[DUMP_MAX];
	size_t len;
	uint64_t nodes;
	struct pfs_store *store;
};

static int dump_attr(void *arg, const struct pfs_attr_record *attr)
{
	struct dump *dump = arg;

	dump->len += (size_t)snprintf(dump->text + dump->len, sizeof(dump->text) - dump->len,
				      " %.*s=%lld", (int)attr->name_len, (const char *)attr->name,
				      (long long)attr->integer);
	return 0;
}

static int dump_node(void *arg, const struct pfs_node_record *node)
{
	struct dump *dump = arg;

	dump->nodes++;
	dump->len += (size_t)snprintf(
		dump->text + dump->len, sizeof(dump->text) - dump->len,
		"\n%llu %llu %.*s %o %lld %lld %.*s", (unsigned long long)node->prime,
		(unsigned long long)node->parent, (int)node->name_len, (const char *)node->name,
		node->mode, (long long)node->size, (long long)node->mtime.sec,
		(int)node->target_len, (const char *)(node->target ? node->target : ""));
	assert_true(dump->len < sizeof(dump->text) - 500);
	return pfs_store_scan_attrs(dump->store, node->prime, dump_attr, dump);
}

static struct state look(struct pfs_store *store)
{
	static struct dump dump;
	struct pfs_store_totals totals;
	struct state state = {.hash = 14695981039346656037u};

	dump.len = dump.nodes = 0;
	dump.store = store;
	assert_int_equal(pfs_store_scan_nodes(store, 0, INT64_MAX, dump_node, &dump), 0);
	assert_int_equal(pfs_store_totals(store, &totals), 0);
	assert_int_equal(totals.nodes, dump.nodes);
	for (size_t i = 0; i < dump.len; i++)
		state.hash = (state.hash ^ (uint8_t)dump.text[i]) * 1099511628211u;
	state.nodes = dump.nodes;
	state.time = pfs_time_now();
	return state;
}

/* `of` is NULL where nobody has the store open. */
static int try_open_at(struct pfs_store **out, struct pfs_store *of, int64_t at)
{
	const struct pfs_store_options options = {.flags = PFS_STORE_READ_ONLY, .at = at};

	return of ? pfs_history_open(out, of, at, NULL, NULL)
		  : pfs_store_open(out, test_path, &options);
}

static void assert_was(struct pfs_store *of, const struct state *state)
{
	struct pfs_store *store;
	struct state was;

	assert_int_equal(try_open_at(&store, of, state->time), 0);
	was = look(store);
	assert_int_equal(was.nodes, state->nodes);
	assert_true(was.hash == state->hash);
	assert_int_equal(pfs_store_close(store), 0);
}

static void assert_not_known(struct pfs_store *of, int64_t at, int error)
{
	struct pfs_store *store;

	assert_int_equal(try_open_at(&store, of, at), error);
	assert_null(store);
}

static struct pfs_history read_history(struct pfs_store *store)
{
	struct pfs_history history;

	assert_int_equal(pfs_history_read(store, &history), 0);
	return history;
}

/* ---- random groups ---- */

static uint64_t any_file(uint64_t *random)
{
	return OTHERS + 1 + random_below(random, FILES);
}

static void change_something(struct pfs_store *store, uint64_t *random)
{
	uint64_t prime = any_file(random);
	struct pfs_node_record node = file_record(prime, (uint32_t)(prime - OTHERS), "a");
	struct pfs_attr_record attr = {.name = "x", .name_len = 1, .type = PFS_ATTR_INTEGER};
	char name[16];

	node.flags = PFS_NODE_ATTRS;
	attr.name = random_below(random, 2) ? "x" : "y";
	attr.integer = (int64_t)random_below(random, 3);
	node.name_len = (size_t)snprintf(name, sizeof(name), "n%d", (int)random_below(random, 3));
	node.name = name;
	node.size = (int64_t)random_below(random, 3);
	node.atime.sec = (int64_t)random_below(random, 1000);
	if (random_below(random, 4) == 0) {
		node.mode = S_IFLNK | 0777;
		node.target = "there";
		node.target_len = 1 + random_below(random, 5);
	}
	switch (random_below(random, 8)) {
	case 0:
	case 1:
		assert_int_equal(pfs_store_remove_node(store, prime), 0);
		break;
	case 2:
		assert_int_equal(pfs_store_remove_attr(store, prime, attr.name, 1), 0);
		break;
	case 3:
		assert_int_equal(pfs_store_remove_attr(store, prime, NULL, 0), 0);
		break;
	case 4:
	case 5:
		assert_int_equal(pfs_store_put_node(store, &node), 0);
		assert_int_equal(pfs_store_put_attr(store, prime, &attr), 0);
		break;
	default:
		assert_int_equal(pfs_store_put_node(store, &node), 0);
		break;
	}
}

static void change_group(struct pfs_store *store, uint64_t *random)
{
	assert_int_equal(pfs_store_begin(store), 0);
	for (uint64_t n = 1 + random_below(random, 6); n; n--)
		change_something(store, random);
	if (pfs_history_is_due(store))
		assert_int_equal(pfs_history_prune(store), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
}

/* Waits until the clock has moved, so that the next group is later. */
static void remember(struct pfs_store *store)
{
	struct state state = look(store);

	while (pfs_time_now() == state.time) {
	}
	assert_true(n_states < STATES_MAX);
	states[n_states++] = state;
}

static struct pfs_store *begin_history(const struct pfs_history_rule *rule)
{
	struct pfs_store *store = new_store(0);
	uint64_t first, end;

	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_OTHER, 100000), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	n_states = 0;
	assert_int_equal(pfs_history_set(store, rule), 0);
	remember(store);
	return store;
}

/* ---- tests ---- */

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

static void forget_all_that_is_due(struct pfs_store *store)
{
	for (int groups = 0; pfs_history_is_due(store); groups++) {
		assert_true(groups < 100); /* what is young when this begins may be old when it ends */
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
	times_ahead_are_pulled_back("UPDATE history_group SET time = time + " YEARS " WHERE seq > (SELECT max(seq) - 3 FROM "
				    "history_group)",
				    false);
	times_ahead_are_pulled_back("UPDATE history_group SET time = time + " YEARS "; UPDATE history SET since = since + " YEARS,
				    true);
}

static off_t log_size(void)
{
	char name[4096];
	struct stat attr;

	(void)snprintf(name, sizeof(name), "%s-wal", test_path);
	return stat(name, &attr) ? 0 : attr.st_size;
}

/* What was stays what it was, also when it is let go of between two reads; and while it is, the log can be emptied. */
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

/* ---- SIGKILL ---- */

static _Noreturn void write_until_killed(int to, uint64_t seed)
{
	uint64_t random = seed;
	struct pfs_store *store = open_as(0);

	for (;;) {
		struct state state;

		change_group(store, &random);
		state = look(store);
		if (write(to, &state, sizeof(state)) != sizeof(state))
			_exit(1);
	}
}

/* Remembers what the child said was committed. */
static void run_and_kill(uint64_t seed)
{
	int pipes[2], status;
	struct state state;
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		(void)close(pipes[0]);
		write_until_killed(pipes[1], seed);
	}
	(void)close(pipes[1]);
	for (uint64_t n = 2 + seed % 5; n && read(pipes[0], &state, sizeof(state)) == sizeof(state);
	     n--)
		states[n_states++] = state;
	(void)usleep((useconds_t)(seed * 331 % 3000));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	while (n_states < STATES_MAX && read(pipes[0], &state, sizeof(state)) == sizeof(state))
		states[n_states++] = state;
	(void)close(pipes[0]);
	assert_true(WIFSIGNALED(status));
}

static void what_was_committed_is_known_after_a_kill(void **state PFS_UNUSED)
{
	const struct pfs_history_rule small = {.size = 6000};
	const char *few = getenv("PFS_TEST_SMALL");
	const uint64_t cycles = few && *few == '1' ? 4 : 12;
	struct pfs_store *store = begin_history(&small);

	assert_int_equal(pfs_store_close(store), 0);
	for (uint64_t i = 1; i <= cycles; i++) {
		n_states = 0;
		run_and_kill(i);
		store = open_as(0);
		assert_int_equal(count_findings(store), 0);
		for (size_t n = 0; n < n_states; n++)
			if (states[n].time >= read_history(store).since)
				assert_was(store, &states[n]);
		assert_int_equal(pfs_store_close(store), 0);
	}
}

/* ---- calls that fail ---- */

#define STEPS 10 /* history begins, groups, it ends */

static int write_group(struct pfs_store *store, uint64_t g)
{
	const struct pfs_attr_record attr = {
		.name = "x", .name_len = 1, .type = PFS_ATTR_INTEGER, .integer = (int64_t)g};
	struct pfs_node_record node = file_record(OTHERS + 1 + g % 3, (uint32_t)(1 + g % 3), "a");
	int error = pfs_store_begin(store);

	node.size = (int64_t)g;
	node.flags = PFS_NODE_ATTRS;
	if (!error)
		error = pfs_store_put_node(store, &node);
	if (!error)
		error = pfs_store_put_attr(store, node.prime, &attr);
	if (!error)
		error = pfs_store_remove_node(store, OTHERS + 1 + (g + 1) % 3);
	if (!error)
		error = pfs_history_prune(store);
	if (!error)
		return pfs_store_commit(store, NULL);
	pfs_store_rollback(store);
	return error;
}

static int run_step(struct pfs_store *store, uint64_t step)
{
	const struct pfs_history_rule small = {.size = 600};

	if (step == 0 || step == STEPS)
		return pfs_history_set(store, step ? &nothing : &small);
	return write_group(store, step);
}

static void assert_all_known(struct pfs_store *store)
{
	fault_spare(true);
	for (size_t i = 0; i < n_states; i++)
		if (states[i].time >= read_history(store).since)
			assert_was(store, &states[i]);
	assert_int_equal(count_findings(store), 0);
	fault_spare(false);
}

/* Each step again until it is done.  The calls that could fail. */
static uint64_t run_with(const struct fault_plan *plan)
{
	const struct pfs_store_options options = {
		.flags = PFS_STORE_CREATE, .vfs = FAULT_VFS_NAME, .log_bytes = 1};
	const struct pfs_node_record root = {
		.prime = PFS_ROOT_PRIME, .mode = S_IFDIR | 0755, .name = ""};
	struct pfs_store *store;
	uint64_t first, end, calls = 0;
	bool failed = false;

	(void)unlink(test_path);
	assert_int_equal(pfs_store_open(&store, test_path, &options), 0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_node(store, &root), 0);
	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_OTHER, 10), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	n_states = 0;
	fault_set(plan);
	for (uint64_t step = 0; step <= STEPS; step++) {
		if (run_step(store, step)) {
			failed = true;
			fault_set(NULL);
			assert_all_known(store);
			step--;
			continue;
		}
		fault_spare(true);
		if (step < STEPS)
			remember(store);
		fault_spare(false);
		if (step == STEPS - 1)
			assert_all_known(store);
	}
	calls = fault_calls();
	fault_set(NULL);
	assert_true(failed == (plan->count != 0));
	assert_int_equal(read_history(store).rule.size, 0);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
	return calls;
}

static void what_fails_is_done_again(void **state PFS_UNUSED)
{
	struct fault_plan plan = {.calls = FAULT_BIT(FAULT_WRITE) | FAULT_BIT(FAULT_SYNC),
				  .error = ENOSPC};
	uint64_t made, step;

	assert_int_equal(fault_register(false), 0);
	pfs_log_open((enum pfs_log_level)0, false); /* the faults are meant */
	made = run_with(&plan);
	assert_true(made > 30);
	step = made / (getenv("PFS_TEST_SMALL") ? 8 : 25) + 1;
	for (uint64_t first = 0; first < made; first += step) {
		plan.first = first;
		plan.count = first % 4 ? 1 : FAULT_FOR_EVER;
		(void)run_with(&plan);
	}
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
		cmocka_unit_test(the_oldest_are_forgotten_by_size),
		cmocka_unit_test(the_oldest_are_forgotten_by_age),
		cmocka_unit_test(a_large_group_goes_bit_by_bit),
		cmocka_unit_test(many_groups_go_bit_by_bit),
		cmocka_unit_test(a_clock_that_was_ahead_spoils_nothing),
		cmocka_unit_test(a_past_goes_on_while_groups_come),
		cmocka_unit_test(one_is_read_without_all_others),
		cmocka_unit_test(what_was_committed_is_known_after_a_kill),
		cmocka_unit_test(what_fails_is_done_again),
		cmocka_unit_test(rules_are_read),
		cmocka_unit_test(points_in_time_are_read),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
