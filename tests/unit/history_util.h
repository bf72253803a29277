/* SPDX-License-Identifier: MIT */
/* tests/unit/history_util.h - a store that is changed at random, and what a model remembers of each
 * of its states. */
#ifndef PFS_TESTS_HISTORY_UTIL_H
#define PFS_TESTS_HISTORY_UTIL_H

#include "tests/unit/store_util.h"

#include "base/checked.h"
#include "base/log.h"
#include "fs/query/times/times.h"
#include "meta/history.h"
#include "tests/ref/random.h"

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

static inline int dump_attr(void *arg, const struct pfs_attr_record *attr)
{
	struct dump *dump = arg;

	dump->len += (size_t)snprintf(dump->text + dump->len, sizeof(dump->text) - dump->len,
				      " %.*s=%lld", (int)attr->name_len, (const char *)attr->name,
				      (long long)attr->integer);
	return 0;
}

static inline int dump_node(void *arg, const struct pfs_node_record *node)
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

static inline struct state look(struct pfs_store *store)
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
static inline int try_open_at(struct pfs_store **out, struct pfs_store *of, int64_t at)
{
	const struct pfs_store_options options = {.flags = PFS_STORE_READ_ONLY, .at = at};

	return of ? pfs_history_open(out, of, at, NULL, NULL)
		  : pfs_store_open(out, test_path, &options);
}

static inline void assert_was(struct pfs_store *of, const struct state *state)
{
	struct pfs_store *store;
	struct state was;

	assert_int_equal(try_open_at(&store, of, state->time), 0);
	was = look(store);
	assert_int_equal(was.nodes, state->nodes);
	assert_true(was.hash == state->hash);
	assert_int_equal(pfs_store_close(store), 0);
}

static inline void assert_not_known(struct pfs_store *of, int64_t at, int error)
{
	struct pfs_store *store;

	assert_int_equal(try_open_at(&store, of, at), error);
	assert_null(store);
}

static inline struct pfs_history read_history(struct pfs_store *store)
{
	struct pfs_history history;

	assert_int_equal(pfs_history_read(store, &history), 0);
	return history;
}

/* ---- random groups ---- */

static inline uint64_t any_file(uint64_t *random)
{
	return OTHERS + 1 + random_below(random, FILES);
}

static inline void change_something(struct pfs_store *store, uint64_t *random)
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

static inline void change_group(struct pfs_store *store, uint64_t *random)
{
	assert_int_equal(pfs_store_begin(store), 0);
	for (uint64_t n = 1 + random_below(random, 6); n; n--)
		change_something(store, random);
	if (pfs_history_is_due(store))
		assert_int_equal(pfs_history_prune(store), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
}

/* Waits until the clock has moved, so that the next group is later. */
static inline void remember(struct pfs_store *store)
{
	struct state state = look(store);

	while (pfs_time_now() == state.time) {
	}
	assert_true(n_states < STATES_MAX);
	states[n_states++] = state;
}

static inline struct pfs_store *begin_history(const struct pfs_history_rule *rule)
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

#endif
