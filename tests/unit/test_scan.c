/* SPDX-License-Identifier: MIT */
/* Predicates over the image against naive loops over what a walk of the tree says. */
#include "predicate_util.h"

#include <malloc.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/pattern.h"

static uint64_t seed = 20260911;
static struct temp_store temp;
static const struct pfs_tree_options options = {.no_atime = true}; /* reading changes nothing */

/* ---- the comparison ---- */

static int by_slot(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static bool has(const struct pfs_slots *slots, uint32_t slot)
{
	return slots->n && bsearch(&slot, slots->slot, slots->n, sizeof(slot), by_slot);
}

static void complain(const struct pfs_predicate *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		print_message("field %d test %d%s low %lld high %lld '%.*s' '%.*s'\n", p[i].field,
			      p[i].test, p[i].negated ? " not" : "", (long long)p[i].low,
			      (long long)p[i].high, (int)p[i].text_len, p[i].text ? p[i].text : "",
			      (int)p[i].high_len, p[i].high_text ? p[i].high_text : "");
}

static void check_select(const struct pfs_predicate *p, size_t n, const struct pfs_slots *within)
{
	struct pfs_slots out;
	size_t expected = 0;
	const char *how = NULL;

	assert_int_equal(pfs_scan_select(model.tree, &out, p, n, within, NULL), 0);
	for (size_t i = 0; i < model.n; i++) {
		bool holds = !within || has(within, model.seen[i].slot);

		for (size_t k = 0; k < n && holds; k++)
			holds = naive_holds(&p[k], i);
		if (holds != has(&out, model.seen[i].slot)) {
			complain(p, n);
			fail_msg("%s: %d", model.seen[i].path, holds);
		}
		expected += holds;
	}
	assert_int_equal(out.n, expected);
	for (size_t i = 1; i < out.n; i++)
		assert_true(out.slot[i - 1] < out.slot[i]);
	pfs_slots_finish(&out);
	if (within)
		return;
	assert_true(pfs_scan_estimate(model.tree, &how, p, n) <= model.n);
	assert_non_null(how);
}

static void random_within(struct pfs_slots *within)
{
	uint32_t end = pfs_scan_end(model.tree);

	*within = (struct pfs_slots){.slot = malloc(end * sizeof(*within->slot))};
	assert_non_null(within->slot);
	for (size_t i = 0; i < model.n; i++)
		if (rnd(3) == 0)
			within->slot[within->n++] = model.seen[i].slot;
	qsort(within->slot, within->n, sizeof(*within->slot), by_slot);
}

static void check_selects(size_t rounds)
{
	struct pfs_predicate p[4];

	(void)pfs_scan_lock(model.tree, __func__);
	while (rounds-- > 0) {
		struct pfs_slots within;
		size_t n = rnd(20) ? 1 + rnd(rnd(3) ? 2 : 4) : 0;

		for (size_t i = 0; i < n; i++)
			random_predicate(&p[i], i);
		check_select(p, n, NULL);
		if (rounds % 8)
			continue;
		random_within(&within);
		check_select(p, n, &within);
		pfs_slots_finish(&within);
	}
	pfs_scan_unlock(model.tree);
}

/* ---- values ---- */

static void check_integers(const uint32_t *slots, const size_t *of, size_t n)
{
	int64_t *values = malloc((n + 1) * sizeof(*values));

	assert_non_null(values);
	for (enum pfs_field field = 1; field < PFS_FIELD_COUNT; field++) {
		if (pfs_field_is_bytes(field) || field == PFS_FIELD_READDIR)
			continue;
		assert_int_equal(pfs_scan_integers(model.tree, values, field, slots, n), 0);
		for (size_t i = 0; i < n; i++)
			assert_true(values[i] == naive_integer(field, of[i]));
	}
	free(values);
}

/* Whether the bytes are the expected ones, or, in pre-order's spelling, these. */
static bool is_spelt(enum pfs_field field, const char *bytes, const char *expected, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] !=
		    (field == PFS_FIELD_PREORDER && expected[i] == '/' ? 0 : expected[i]))
			return false;
	return true;
}

static void check_bytes(const uint32_t *slots, const size_t *of, size_t n)
{
	uint64_t *offset = malloc((n + 1) * sizeof(*offset));
	uint8_t *none = malloc(n + 1);
	char *bytes = NULL;
	size_t capacity = 0;

	assert_true(offset && none);
	for (enum pfs_field field = 1; field < PFS_FIELD_COUNT; field++) {
		if (!pfs_field_is_bytes(field))
			continue;
		assert_int_equal(pfs_scan_bytes(model.tree, &bytes, &capacity, offset, none, field,
						slots, n),
				 0);
		for (size_t i = 0; i < n; i++) {
			const char *expected = naive_bytes(field, of[i]);
			size_t len = expected ? strlen(expected) : 0;

			assert_int_equal(none[i], !expected);
			assert_int_equal(offset[i + 1] - offset[i], len);
			assert_true(is_spelt(field, bytes + offset[i], expected, len));
		}
	}
	free(bytes);
	free(none);
	free(offset);
}

/* Of some nodes in any order, repeated or not; of all; of none. */
static void check_values(void)
{
	uint32_t *slots = malloc(model.n * sizeof(*slots));
	size_t *of = malloc(model.n * sizeof(*of));

	assert_true(slots && of);
	(void)pfs_scan_lock(model.tree, __func__);
	for (int round = 0; round < 4; round++) {
		size_t n = round == 3 ? 0 : round == 2 ? model.n : rnd((uint32_t)model.n);

		for (size_t i = 0; i < n; i++) {
			of[i] = round == 2 ? i : rnd((uint32_t)model.n);
			slots[i] = model.seen[of[i]].slot;
		}
		check_integers(slots, of, n);
		check_bytes(slots, of, n);
	}
	pfs_scan_unlock(model.tree);
	free(of);
	free(slots);
}

static void check_order(void)
{
	struct pfs_slots slots;

	(void)pfs_scan_lock(model.tree, __func__);
	for (int round = 0; round < 3; round++) {
		size_t at = 0;

		random_within(&slots);
		if (round == 0) {
			for (size_t i = 0; i < model.n; i++)
				slots.slot[i] = model.seen[i].slot;
			slots.n = model.n;
			qsort(slots.slot, slots.n, sizeof(*slots.slot), by_slot);
		}
		assert_int_equal(pfs_scan_sort_preorder(model.tree, &slots, NULL), 0);
		for (size_t i = 0; i < slots.n; i++, at++)
			while (at < model.n && model.seen[at].slot != slots.slot[i])
				at++;
		assert_true(at <= model.n);
		pfs_slots_finish(&slots);
	}
	pfs_scan_unlock(model.tree);
}

static void check_all(size_t rounds)
{
	check_selects(rounds);
	check_values();
	check_order();
}

/* ---- tests ---- */

static void begin(uint64_t offset)
{
	print_message("seed %llu\n", (unsigned long long)seed + offset);
	random_state = seed + offset;
	temp_store_create(&temp);
	model.tree = temp_tree_open_with(&temp, &options);
}

static void end(void)
{
	model_forget(&model);
	temp_tree_close(model.tree);
	temp_store_remove(&temp);
}

static void test_random_trees(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 12; i++) {
		begin(i);
		random_tree(model.tree, i < 2 ? i : 20 + rnd(400));
		model_look(&model, model.tree);
		check_all(300);
		random_changes(&model, 40);
		check_all(300);
		temp_tree_close(model.tree);
		model_look(&model, temp_tree_open_with(&temp, &options));
		check_all(100);
		end();
	}
}

/* Stored anew, slots are in pre-order and files beside each other. */
static void test_optimized(void **state)
{
	(void)state;
	for (uint64_t i = 100; i < 104; i++) {
		begin(i);
		random_tree(model.tree, 300);
		temp_tree_close(model.tree);
		assert_int_equal(pfs_tree_optimize(temp.path, 0), 0);
		model_look(&model, temp_tree_open_with(&temp, &options));
		check_all(300);
		random_changes(&model, 5);
		check_all(300);
		end();
	}
}

/* What a column leaves out is not looked at afterwards, but counts. */
static void check_estimate(void)
{
	const struct pfs_predicate p[] = {
		{.field = PFS_FIELD_MODE,
		 .test = PFS_TEST_MASK,
		 .low = 0777,
		 .high = (int64_t)model.seen[1].attr.st_mode & 0777},
		{.field = PFS_FIELD_DEPTH, .low = 0, .high = 1000},
	};
	const char *how;

	(void)pfs_scan_lock(model.tree, __func__);
	assert_in_range(pfs_scan_estimate(model.tree, &how, p, PFS_COUNT(p)), 0, model.n / 10);
	pfs_scan_unlock(model.tree);
}

/* No bits are those of every node. */
static void test_no_mask(void **state)
{
	struct pfs_predicate p = {.field = PFS_FIELD_MODE, .test = PFS_TEST_MASK};

	(void)state;
	begin(140);
	random_tree(model.tree, 300);
	model_look(&model, model.tree);
	(void)pfs_scan_lock(model.tree, __func__);
	check_select(&p, 1, NULL);
	p.negated = true;
	check_select(&p, 1, NULL);
	pfs_scan_unlock(model.tree);
	end();
}

/* Enough for several threads, samples and codes. */
static void test_large(void **state)
{
	(void)state;
	begin(150);
	random_tree(model.tree, 60000);
	model_look(&model, model.tree);
	check_all(60);
	check_estimate();
	temp_tree_close(model.tree);
	assert_int_equal(pfs_tree_optimize(temp.path, 0), 0);
	model_look(&model, temp_tree_open_with(&temp, &options));
	check_all(60);
	random_changes(&model, 3);
	check_all(60);
	pfs_scan_set_piece(64);
	check_selects(60);
	pfs_scan_set_piece(UINT32_MAX);
	pfs_tree_use_engine(model.tree, PFS_ENGINE_HOST);
	check_all(60);
	end();
}

/* What is found takes memory, and not what was looked at. */
static void check_memory(const struct pfs_slots *within)
{
	const struct pfs_predicate high = {.field = PFS_FIELD_DEPTH, .low = 0, .high = 3};
	struct pfs_slots out;

	assert_int_equal(pfs_scan_select(model.tree, &out, &high, 1, within, NULL), 0);
	assert_in_range(out.n, 1, model.n / 4);
	assert_true(malloc_usable_size(out.slot) < model.n / 2 * sizeof(*out.slot));
	pfs_slots_finish(&out);
}

static void test_memory(void **state)
{
	struct pfs_slots all;

	(void)state;
	begin(160);
	random_tree(model.tree, 20000);
	model_look(&model, model.tree);
	(void)pfs_scan_lock(model.tree, __func__);
	check_memory(NULL);
	assert_int_equal(pfs_scan_select(model.tree, &all, NULL, 0, NULL, NULL), 0);
	check_memory(&all);
	pfs_slots_finish(&all);
	pfs_scan_unlock(model.tree);
	end();
}

static int never(void *arg PFS_UNUSED)
{
	fail_msg("asked, though it was to stop");
	return 0;
}

/* ---- work that lets others in ---- */

#define PIECES 24u
#define PIECE  10u /* elements */

struct pieces {
	atomic_uint seen[PIECES * PIECE];
	bool is_slow; /* so that a run has no more pieces than there are threads */
	unsigned looks, most_looks;
};

static int see(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	struct pieces *pieces = context;

	assert_true(from % PIECE == 0 && to - from <= PIECE);
	for (; from < to; from++)
		atomic_fetch_add(&pieces->seen[from], 1);
	if (pieces->is_slow)
		(void)usleep(5000);
	return 0;
}

static int count_look(void *arg)
{
	struct pieces *pieces = arg;

	return ++pieces->looks == pieces->most_looks ? -EAGAIN : 0;
}

/* Each element is seen once, however many runs it takes; a look ends them. */
static void test_watched(void **state)
{
	const size_t n = PIECES * PIECE - 3, pieces_a_run = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	_Atomic bool stop = false;
	struct pieces pieces = {.is_slow = false};
	const struct pfs_scan_watch watch = {&stop, count_look, &pieces};

	(void)state;
	begin(10);
	assert_int_equal(pfs_scan_run_watched(model.tree, n, PIECE, see, &pieces, NULL), 0);
	assert_int_equal(pieces.looks, 0);
	pieces.is_slow = true;
	assert_int_equal(pfs_scan_run_watched(model.tree, n, PIECE, see, &pieces, &watch), 0);
	assert_true(pieces.looks >= PIECES / (pieces_a_run + 1));
	for (size_t i = 0; i < PIECES * PIECE; i++)
		assert_int_equal(pieces.seen[i], i < n ? 2 : 0);
	pieces.most_looks = pieces.looks + 1;
	assert_int_equal(pfs_scan_run_watched(model.tree, n, PIECE, see, &pieces, &watch), -EAGAIN);
	assert_int_equal(pieces.looks, pieces.most_looks);
	assert_int_equal(pfs_scan_run_watched(model.tree, 0, PIECE, see, &pieces, &watch), 0);
	end();
}

/* A list that is copied is let go of now and then. */
static void test_long_list(void **state)
{
	static uint32_t slots[300000];
	const struct pfs_slots within = {slots, PFS_COUNT(slots)};
	static const _Atomic bool stop;
	struct pieces pieces = {.is_slow = false};
	const struct pfs_scan_watch watch = {&stop, count_look, &pieces};
	struct pfs_slots out;

	(void)state;
	begin(11);
	(void)pfs_scan_lock(model.tree, __func__);
	for (size_t i = 0; i < within.n; i++)
		slots[i] = pfs_scan_slot_of(model.tree, PFS_ROOT_PRIME);
	assert_int_equal(pfs_scan_select(model.tree, &out, NULL, 0, &within, &watch), 0);
	pfs_scan_unlock(model.tree);
	assert_int_equal(out.n, within.n);
	assert_in_range(pieces.looks, 2, UINT_MAX);
	pfs_slots_finish(&out);
	end();
}

/* What is not filled in afterwards is no pointer to anything. */
static __attribute__((noinline)) void spoil_stack(void)
{
	volatile unsigned char bytes[16384];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0xff;
}

static void test_errors(void **state)
{
	struct pfs_predicate p = {.field = PFS_FIELD_NAME, .test = PFS_TEST_RANGE};
	_Atomic bool stop = true;
	const struct pfs_scan_watch stopped = {.stop = &stop, .look = never};
	struct pfs_slots out;
	int64_t value;

	(void)state;
	begin(200);
	(void)pfs_scan_lock(model.tree, __func__);
	p = (struct pfs_predicate){.test = PFS_TEST_UNDER, .low = PFS_ROOT_PRIME};
	spoil_stack();
	assert_int_equal(pfs_scan_select(model.tree, &out, &p, 1, NULL, &stopped), -EINTR);
	p = (struct pfs_predicate){.field = PFS_FIELD_NAME, .test = PFS_TEST_RANGE};
	assert_int_equal(pfs_scan_select(model.tree, &out, &p, 1, NULL, NULL), -EINVAL);
	p = (struct pfs_predicate){.field = PFS_FIELD_SIZE, .test = PFS_TEST_GLOB, .text = ""};
	assert_int_equal(pfs_scan_select(model.tree, &out, &p, 1, NULL, NULL), -EINVAL);
	p = (struct pfs_predicate){.field = PFS_FIELD_SIZE, .test = PFS_TEST_MASK};
	assert_int_equal(pfs_scan_select(model.tree, &out, &p, 1, NULL, NULL), -EINVAL);
	p = (struct pfs_predicate){
		.field = PFS_FIELD_PREORDER, .test = PFS_TEST_EQUAL, .text = "", .text_len = 0};
	assert_int_equal(pfs_scan_select(model.tree, &out, &p, 1, NULL, NULL), -EINVAL);
	p = (struct pfs_predicate){.test = PFS_TEST_UNDER, .low = 4};
	assert_int_equal(pfs_scan_select(model.tree, &out, &p, 1, NULL, NULL), -ENOENT);
	assert_null(out.slot);
	p = (struct pfs_predicate){.field = PFS_FIELD_SIZE, .high = INT64_MAX};
	assert_int_equal(pfs_scan_select(model.tree, &out, &p, 1, NULL, &stopped), -EINTR);
	assert_null(out.slot);
	assert_int_equal(pfs_scan_slot_of(model.tree, 4), PFS_NO_SLOT);
	assert_int_equal(pfs_scan_integers(model.tree, &value, PFS_FIELD_NAME, NULL, 0), -EINVAL);
	assert_int_equal(pfs_scan_integers(model.tree, &value, PFS_FIELD_OF_NONE, NULL, 0),
			 -EINVAL);
	p = (struct pfs_predicate){.test = PFS_TEST_RANGE};
	assert_int_equal(pfs_scan_select(model.tree, &out, &p, 1, NULL, NULL), -EINVAL);
	pfs_scan_unlock(model.tree);
	end();
}

static void string_together(char *out, size_t size, const char *const *parts, uint32_t n_parts)
{
	size_t len = 0;

	out[0] = 0;
	for (uint32_t n = rnd(9); n > 0; n--)
		len += (size_t)snprintf(out + len, size - len, "%s", parts[rnd(n_parts)]);
}

/* The two dialects against SQLite's own. */
static void test_patterns(void **state)
{
	static const char *const parts[] = {"a",
					    "A",
					    "b",
					    "*",
					    "?",
					    "[",
					    "]",
					    "^",
					    "-",
					    "%",
					    "_",
					    ".",
					    "*",
					    "%",
					    "\xc3\xa9",
					    "\xe2\x82\xac",
					    "\xf0\x9f\x98\x80",
					    "\x80",
					    "\xff",
					    "\xc1\xa1",
					    "\xed\xa0\x80",
					    "\xef\xbf\xbe"};

	(void)state;
	random_state = seed + 300;
	for (int i = 0; i < 400000; i++) {
		char pattern[64], text[64];
		size_t len;

		string_together(pattern, sizeof(pattern), parts, PFS_COUNT(parts));
		string_together(text, sizeof(text), parts, PFS_COUNT(parts));
		len = strlen(text);
		if (pfs_pattern_matches(PFS_PATTERN_GLOB, pattern, 0, text, len) !=
		    !sqlite3_strglob(pattern, text))
			fail_msg("'%s' GLOB '%s'", text, pattern);
		if (pfs_pattern_matches(PFS_PATTERN_LIKE, pattern, 0, text, len) !=
		    !sqlite3_strlike(pattern, text, 0))
			fail_msg("'%s' LIKE '%s'", text, pattern);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_random_trees),
		cmocka_unit_test(test_optimized),
		cmocka_unit_test(test_no_mask),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_watched),
		cmocka_unit_test(test_long_list),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
