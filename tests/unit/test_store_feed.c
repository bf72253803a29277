/* SPDX-License-Identifier: MIT */
/* The feed of changes: what each group changed can be read back, as far as it is remembered. */
#include "tests/unit/store_model.h"

struct feed_text {
	char text[2000];
	int stop_after;
};

static int see_change(void *arg, uint64_t seq, uint64_t prime, const struct pfs_node_record *node)
{
	struct feed_text *feed = arg;
	size_t at = strlen(feed->text);

	(void)snprintf(feed->text + at, sizeof(feed->text) - at, "%llu:%llu%s ",
		       (unsigned long long)seq, (unsigned long long)prime, node ? "" : "-");
	if (node)
		assert_int_equal(node->prime, prime);
	return feed->stop_after && --feed->stop_after == 0 ? 55 : 0;
}

static const char *changes(struct pfs_store *store, uint64_t since)
{
	static struct feed_text feed;

	feed = (struct feed_text){.text = ""};
	assert_int_equal(pfs_store_scan_changes(store, since, see_change, &feed), 0);
	return feed.text;
}

static uint64_t commit(struct pfs_store *store)
{
	uint64_t seq;

	assert_int_equal(pfs_store_commit(store, &seq), 0);
	assert_int_equal(pfs_store_seq(store), seq);
	return seq;
}

static void put_file(struct pfs_store *store, uint64_t prime)
{
	struct pfs_node_record node = file_record(prime, (uint32_t)prime, "file");

	assert_int_equal(pfs_store_put_node(store, &node), 0);
}

/* Groups 1 (the root) to 5. */
static struct pfs_store *five_groups(void)
{
	const struct pfs_attr_record attr = {.name = "a", .name_len = 1, .type = PFS_ATTR_TEXT};
	struct pfs_store *store = new_store(0);

	assert_int_equal(pfs_store_begin(store), 0);
	put_file(store, 500);
	put_file(store, 7);
	put_file(store, 500);
	assert_int_equal(commit(store), 2);
	assert_int_equal(pfs_store_begin(store), 0);
	put_file(store, 9);
	pfs_store_rollback(store);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(commit(store), 3);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_chunk(store, 7, 0, "x", 1), 0);
	assert_int_equal(pfs_store_put_attr(store, 500, &attr), 0);
	assert_int_equal(commit(store), 4);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_remove_node(store, 500), 0);
	assert_int_equal(commit(store), 5);
	return store;
}

static void groups_are_told_in_order(void **state PFS_UNUSED)
{
	struct pfs_store *store = five_groups();
	struct feed_text feed = {.stop_after = 2};

	assert_string_equal(changes(store, 0), "1:2 2:7 2:500- 4:7 4:500- 5:500- ");
	assert_string_equal(changes(store, 2), "4:7 4:500- 5:500- ");
	assert_string_equal(changes(store, 5), "");
	assert_string_equal(changes(store, UINT64_MAX), "");
	assert_int_equal(pfs_store_scan_changes(store, 0, see_change, &feed), 55);
	assert_string_equal(feed.text, "1:2 2:7 ");
	assert_int_equal(pfs_store_close(store), 0);
	store = open_as(PFS_STORE_READ_ONLY);
	assert_int_equal(pfs_store_seq(store), 5);
	assert_string_equal(changes(store, 4), "5:500- ");
	assert_int_equal(pfs_store_close(store), 0);
}

static void an_import_is_not_remembered(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(PFS_STORE_BULK);
	struct feed_text feed = {.text = ""};

	assert_int_equal(pfs_store_scan_changes(store, 0, see_change, &feed), -ESTALE);
	assert_int_equal(pfs_store_close(store), 0);
	store = open_as(0);
	assert_int_equal(pfs_store_scan_changes(store, 0, see_change, &feed), -ESTALE);
	assert_string_equal(changes(store, 1), "");
	assert_int_equal(pfs_store_begin(store), 0);
	put_file(store, 7);
	assert_int_equal(commit(store), 2);
	assert_string_equal(changes(store, 1), "2:7 ");
	assert_int_equal(count_findings(store), 1); /* that prime was never handed out */
	assert_int_equal(pfs_store_close(store), 0);
}

static int count_change(void *arg, uint64_t seq, uint64_t prime PFS_UNUSED,
			const struct pfs_node_record *node PFS_UNUSED)
{
	uint64_t *last = arg;

	assert_true(seq >= *last);
	*last = seq;
	return 0;
}

/* Far-apart primes, so that rows are large: the oldest groups go, the newest stay. */
static void old_groups_are_forgotten(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	struct pfs_store_state states[42];
	uint64_t g, i, last = 0, oldest = 0;

	for (g = 0; g < 40; g++) {
		assert_int_equal(pfs_store_state(store, &states[g + 1]), 0);
		assert_int_equal(pfs_store_begin(store), 0);
		for (i = 0; i < 50000; i++)
			assert_int_equal(pfs_store_remove_chunks(store, 3 + i * 1000003, 0, 1), 0);
		(void)commit(store);
	}
	while (pfs_store_scan_changes(store, oldest, count_change, &last) == -ESTALE)
		oldest++;
	assert_in_range(oldest, 2, 35);
	assert_int_equal(last, 41);
	for (g = 1; g <= 40; g++)
		assert_int_equal(pfs_store_follows(store, &states[g]), g < oldest ? -ESTALE : 0);
	assert_int_equal(count_findings(store), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

/* What a group may change for the feed to go on follows the number of nodes. */
static void a_large_store_remembers_more(void **state PFS_UNUSED)
{
	const struct pfs_store_options how = {.feed_primes = 5};
	struct pfs_store *store = new_store(0);
	struct feed_text feed = {.text = ""};
	uint64_t i;

	assert_int_equal(pfs_store_begin(store), 0);
	for (i = 0; i < 79; i++)
		put_file(store, 1000 + i);
	assert_int_equal(commit(store), 2);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(pfs_store_open(&store, test_path, &how), 0);
	for (unsigned n = 10; n <= 11; n++) { /* an eighth of them, with the root, and one more */
		assert_int_equal(pfs_store_begin(store), 0);
		for (i = 0; i < n; i++)
			assert_int_equal(pfs_store_remove_chunks(store, 1000 + i, 0, 1), 0);
		assert_int_equal(commit(store), n - 7);
		feed.text[0] = 0;
		assert_int_equal(pfs_store_scan_changes(store, n - 8, see_change, &feed),
				 n == 10 ? 0 : -ESTALE);
	}
	assert_int_equal(pfs_store_close(store), 0);
}

/* More than one group may change: the feed starts anew after it. */
static void a_huge_group_starts_the_feed_anew(void **state PFS_UNUSED)
{
	struct pfs_store *store = five_groups();
	struct feed_text feed = {.text = ""};
	struct pfs_store_state before, after;
	uint64_t i;

	assert_int_equal(pfs_store_state(store, &before), 0);
	assert_int_equal(pfs_store_begin(store), 0);
	for (i = 0; i < (1 << 20) + 1; i++)
		assert_int_equal(pfs_store_remove_chunks(store, 1000 + i, 0, 1), 0);
	assert_int_equal(commit(store), 6);
	assert_int_equal(pfs_store_state(store, &after), 0);
	assert_int_equal(pfs_store_scan_changes(store, 5, see_change, &feed), -ESTALE);
	assert_string_equal(changes(store, 6), "");
	assert_int_equal(pfs_store_begin(store), 0);
	put_file(store, 7);
	assert_int_equal(commit(store), 7);
	assert_string_equal(changes(store, 6), "7:7 ");
	assert_int_equal(pfs_store_follows(store, &before), -ESTALE);
	assert_int_equal(pfs_store_follows(store, &after), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

/* ---- tokens: which store's past a state is of ---- */

static struct pfs_store_state state_of(struct pfs_store *store)
{
	struct pfs_store_state state;

	assert_int_equal(pfs_store_state(store, &state), 0);
	assert_int_equal(state.seq, pfs_store_seq(store));
	return state;
}

static void commit_one(struct pfs_store *store, uint64_t prime)
{
	assert_int_equal(pfs_store_begin(store), 0);
	if (prime)
		put_file(store, prime);
	(void)commit(store);
}

/* A group without changes, too, has a state of its own, which can be told later and after an
 * import. */
static void a_state_is_known_again(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(PFS_STORE_BULK);
	struct pfs_store_state states[4], other;

	assert_int_equal(pfs_store_close(store), 0);
	store = open_as(0);
	states[0] = state_of(store);
	for (uint64_t i = 1; i < PFS_COUNT(states); i++) {
		commit_one(store, i == 2 ? 0 : 6 + i);
		states[i] = state_of(store);
	}
	assert_int_equal(pfs_store_close(store), 0);
	store = open_as(PFS_STORE_READ_ONLY);
	for (size_t i = 0; i < PFS_COUNT(states); i++) {
		assert_int_equal(pfs_store_follows(store, &states[i]), 0);
		for (size_t byte = 0; byte < PFS_TOKEN_SIZE; byte++) {
			other = states[i];
			other.token[byte] ^= 1;
			assert_int_equal(pfs_store_follows(store, &other), -ESTALE);
		}
	}
	other = states[3];
	other.seq++;
	assert_int_equal(pfs_store_follows(store, &other), -ESTALE);
	assert_int_equal(pfs_store_close(store), 0);
}

/* Two copies of a store that were changed by as many groups have the past in common, and no
 * more. */
static void copies_that_diverged_are_told_apart(void **state PFS_UNUSED)
{
	struct pfs_store_state common, ours, theirs;
	struct pfs_store *store = new_store(0);
	char copy[200];

	(void)snprintf(copy, sizeof(copy), "%s-copy", test_path);
	commit_one(store, 7);
	common = state_of(store);
	assert_int_equal(pfs_store_close(store), 0);
	copy_file(copy, test_path);
	store = open_as(0);
	commit_one(store, 9);
	ours = state_of(store);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(rename(copy, test_path), 0);
	store = open_as(0);
	assert_int_equal(pfs_store_follows(store, &common), 0);
	commit_one(store, 9);
	theirs = state_of(store);
	assert_int_equal(theirs.seq, ours.seq);
	assert_int_equal(pfs_store_follows(store, &theirs), 0);
	assert_int_equal(pfs_store_follows(store, &common), 0);
	assert_int_equal(pfs_store_follows(store, &ours), -ESTALE);
	assert_int_equal(count_findings(store), 2); /* of primes that were never handed out */
	assert_int_equal(pfs_store_close(store), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_told_in_order),
		cmocka_unit_test(an_import_is_not_remembered),
		cmocka_unit_test(old_groups_are_forgotten),
		cmocka_unit_test(a_large_store_remembers_more),
		cmocka_unit_test(a_huge_group_starts_the_feed_anew),
		cmocka_unit_test(a_state_is_known_again),
		cmocka_unit_test(copies_that_diverged_are_told_apart),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
