/* SPDX-License-Identifier: MIT */
/* Nodes in the order of their values, however they come to it, and rare values from column indexes,
 * on random trees that change; against the values of all nodes.  PFS_SEED: another seed. */
#include "scan_util.h"

#include <pthread.h>
#include <stdatomic.h>

#include "fs/image/watch.h"
#include "fs/nodes/ordered.h"
#include "base/pattern.h"
#include "fs/nodes/scan_impl.h"
#include "fs/tree/frozen.h"

#define NODES	4000
#define ROUNDS	3
#define QUESTIONS 400

static uint64_t seed = 20261121;
static struct temp_store temp;
static struct model model;
static const struct pfs_tree_options options = {.no_atime = true};

/* ---- values ---- */

struct values {
	int64_t *integers; /* or */
	char *bytes;
	uint64_t *offset;
	uint8_t *none;
};

static void read_values(struct values *out, enum pfs_field field, const struct pfs_slots *slots)
{
	size_t capacity = 0;

	*out = (struct values){.integers = NULL};
	if (!pfs_field_is_bytes(field)) {
		out->integers = calloc(slots->n + 1, sizeof(*out->integers));
		assert_int_equal(pfs_scan_integers(model.tree, out->integers, field, slots->slot,
						   slots->n),
				 0);
		return;
	}
	out->offset = calloc(slots->n + 1, sizeof(*out->offset));
	out->none = calloc(slots->n + 1, 1);
	assert_int_equal(pfs_scan_bytes(model.tree, &out->bytes, &capacity, out->offset, out->none,
					field, slots->slot, slots->n),
			 0);
}

static void finish(struct values *values)
{
	free(values->integers);
	free(values->bytes);
	free(values->offset);
	free(values->none);
}

static int compare(const struct values *values, size_t a, size_t b)
{
	size_t a_len, b_len;
	int order;

	if (values->integers)
		return (values->integers[a] > values->integers[b]) -
		       (values->integers[a] < values->integers[b]);
	if (values->none[a] || values->none[b])
		return values->none[b] - values->none[a];
	a_len = values->offset[a + 1] - values->offset[a];
	b_len = values->offset[b + 1] - values->offset[b];
	order = memcmp(values->bytes + values->offset[a], values->bytes + values->offset[b],
		       PFS_MIN(a_len, b_len));
	return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* ---- orders ---- */

static enum pfs_field random_field(void)
{
	static const enum pfs_field often[] = {PFS_FIELD_PATH, PFS_FIELD_PREORDER, PFS_FIELD_SIZE,
					       PFS_FIELD_NAME};
	enum pfs_field field = (enum pfs_field)(1 + rnd(PFS_FIELD_COUNT - 1));

	return rnd(3) ? field : often[rnd(PFS_COUNT(often))];
}

static void random_predicate(struct pfs_predicate *p)
{
	static const struct pfs_predicate some[] = {
		{.field = PFS_FIELD_TYPE, .low = 'f', .high = 'f'},
		{.field = PFS_FIELD_SIZE, .low = 3, .high = 500000},
		{.field = PFS_FIELD_SIZE, .low = 999000, .high = INT64_MAX},
		{.field = PFS_FIELD_MTIME, .low = INT64_MIN + 1, .high = INT64_C(300000000000)},
		{.field = PFS_FIELD_NAME, .test = PFS_TEST_CONTAINS, .text = "a", .text_len = 1},
		{.field = PFS_FIELD_UID, .low = 2, .high = 2, .negated = true},
		{.field = PFS_FIELD_NAME, .test = PFS_TEST_PREFIX, .text = "a", .text_len = 1},
		{.field = PFS_FIELD_NAME, .test = PFS_TEST_BETWEEN, .text = "lib", .text_len = 3},
	};

	*p = some[rnd(PFS_COUNT(some))];
	if (rnd(4) == 0)
		*p = (struct pfs_predicate){
			.test = PFS_TEST_UNDER,
			.low = (int64_t)model.seen[rnd((uint32_t)model.n)].ino,
		};
}

static void read_all(struct pfs_slots *out, struct pfs_ordered *ordered)
{
	size_t capacity = 0, n;

	*out = (struct pfs_slots){.slot = NULL};
	do {
		n = 1 + rnd(rnd(2) ? 10 : 1000);
		assert_int_equal(pfs_grow(&out->slot, &capacity, out->n + n, sizeof(*out->slot)),
				 0);
		assert_int_equal(pfs_ordered_next(ordered, out->slot + out->n, &n), 0);
		out->n += n;
	} while (n);
}

static int by_slot(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void check_set(struct pfs_slots *slots, const struct pfs_slots *expected)
{
	assert_int_equal(slots->n, expected->n);
	if (!slots->n)
		return;
	qsort(slots->slot, slots->n, sizeof(*slots->slot), by_slot);
	assert_memory_equal(slots->slot, expected->slot, slots->n * sizeof(*slots->slot));
}

static void check_order(const struct pfs_slots *slots, const struct pfs_order *order, size_t n,
			const char *how)
{
	struct values values[3];

	for (size_t i = 0; i < n; i++)
		read_values(&values[i], order[i].field, slots);
	for (size_t at = 1; at < slots->n; at++) {
		int found = 0;

		for (size_t i = 0; i < n && !found; i++)
			found = order[i].descending ? -compare(&values[i], at - 1, at)
						    : compare(&values[i], at - 1, at);
		if (found == 0) /* the same each time: by slots */
			found = (slots->slot[at - 1] < slots->slot[at]) == order[0].descending;
		if (found > 0)
			fail_msg("by field %d%s, %s: %zu of %zu", order[0].field,
				 order[0].descending ? " down" : "", how, at, slots->n);
	}
	for (size_t i = 0; i < n; i++)
		finish(&values[i]);
}

static void random_within(struct pfs_slots *within)
{
	*within = (struct pfs_slots){.slot = calloc(model.n, sizeof(*within->slot))};
	for (size_t i = 0; i < model.n; i++)
		if (rnd(3))
			within->slot[within->n++] = model.seen[i].slot;
	qsort(within->slot, within->n, sizeof(*within->slot), by_slot);
}

/* The tree is held.  How it was done. */
static const char *check_question(void)
{
	struct pfs_predicate predicates[2];
	struct pfs_order order[3];
	struct pfs_slots within = {0}, expected, found;
	struct pfs_ordered_question question = {
		.order = order,
		.n_order = rnd(2) ? 1 : 1 + rnd(3),
		.predicates = predicates,
		.n = rnd(3),
		.limit = rnd(2) ? rnd(60) : UINT64_MAX,
	};
	struct pfs_ordered *ordered;
	const char *how;

	for (size_t i = 0; i < question.n_order; i++)
		order[i] = (struct pfs_order){.field = random_field(), .descending = rnd(2)};
	for (size_t i = 0; i < question.n; i++)
		random_predicate(&predicates[i]);
	if (rnd(10) == 0) {
		random_within(&within);
		question.within = &within;
	}
	assert_int_equal(pfs_ordered_open(&ordered, model.tree, &question), 0);
	how = pfs_ordered_how(ordered);
	read_all(&found, ordered);
	pfs_ordered_close(ordered);
	assert_int_equal(pfs_scan_select(model.tree, &expected, predicates, question.n,
					 question.within, NULL),
			 0);
	check_order(&found, order, question.n_order, how);
	check_set(&found, &expected);
	pfs_slots_finish(&found);
	pfs_slots_finish(&expected);
	pfs_slots_finish(&within);
	return how;
}

/* Ranges that leave few or none, beside the values of all. */
static void check_range(void)
{
	static const enum pfs_field fields[] = {PFS_FIELD_SIZE, PFS_FIELD_MTIME, PFS_FIELD_ATIME,
						PFS_FIELD_UID, PFS_FIELD_INO};
	struct pfs_predicate p = {.field = fields[rnd(PFS_COUNT(fields))]};
	struct pfs_slots all, found;
	struct values values;
	size_t n = 0;

	assert_int_equal(pfs_scan_select(model.tree, &all, NULL, 0, NULL, NULL), 0);
	read_values(&values, p.field, &all);
	p.low = values.integers[rnd((uint32_t)all.n)];
	p.high = rnd(2) ? p.low : rnd(2) || p.low > 1 << 30 ? INT64_MAX : p.low + rnd(1000);
	assert_int_equal(pfs_scan_select(model.tree, &found, &p, 1, NULL, NULL), 0);
	for (size_t i = 0; i < all.n; i++)
		if (values.integers[i] >= p.low && values.integers[i] <= p.high)
			all.slot[n++] = all.slot[i];
	all.n = n;
	check_set(&found, &all);
	finish(&values);
	pfs_slots_finish(&all);
	pfs_slots_finish(&found);
}

/* ---- names ---- */

struct bytes {
	const char *at;
	size_t len;
};

static struct bytes name_at(const struct values *values, size_t i)
{
	if (!values->bytes)
		return (struct bytes){.at = ""};
	return (struct bytes){values->bytes + values->offset[i],
			      values->offset[i + 1] - values->offset[i]};
}

static int compare_bytes(struct bytes a, struct bytes b)
{
	int order = 0;

	for (size_t i = 0; i < PFS_MIN(a.len, b.len) && !order; i++)
		order = (uint8_t)a.at[i] - (uint8_t)b.at[i];
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* By a part of a name and of another one, so that few or none are meant. */
static void random_names(struct pfs_predicate *p, struct bytes name, struct bytes other,
			 char *pattern)
{
	static const enum pfs_test tests[] = {PFS_TEST_EQUAL, PFS_TEST_PREFIX, PFS_TEST_PREFIX,
					      PFS_TEST_BETWEEN, PFS_TEST_GLOB};

	*p = (struct pfs_predicate){.field = PFS_FIELD_NAME,
				    .test = tests[rnd(PFS_COUNT(tests))],
				    .text = name.at,
				    .text_len = name.len};
	if (p->test == PFS_TEST_PREFIX || rnd(8) == 0)
		p->text_len = rnd((uint32_t)name.len + 1);
	if (p->test == PFS_TEST_BETWEEN && rnd(4)) {
		p->high_text = other.at;
		p->high_len = rnd((uint32_t)other.len + 1);
	}
	if (p->test == PFS_TEST_BETWEEN && rnd(4) == 0)
		p->text = NULL;
	if (p->test == PFS_TEST_GLOB) {
		p->text_len = (size_t)sprintf(pattern, "%.*s*%s", (int)rnd((uint32_t)name.len + 1),
					      name.at, rnd(2) ? "?" : "");
		p->text = pattern;
	}
}

static bool is_like(const struct pfs_predicate *p, struct bytes name)
{
	struct bytes text = {p->text ? p->text : "", p->text_len};
	struct bytes high = {p->high_text ? p->high_text : "", p->high_len};

	switch (p->test) {
	case PFS_TEST_EQUAL:
		return compare_bytes(name, text) == 0;
	case PFS_TEST_PREFIX:
		name.len = PFS_MIN(name.len, text.len);
		return compare_bytes(name, text) == 0;
	case PFS_TEST_BETWEEN:
		return (!p->text || compare_bytes(name, text) >= 0) &&
		       (!p->high_text || compare_bytes(name, high) < 0);
	default:
		return pfs_pattern_matches(PFS_PATTERN_GLOB, p->text, 0, name.at, name.len);
	}
}

/* Beside the names of all.  Whether an index told. */
static bool check_names(void)
{
	struct pfs_predicate p;
	struct pfs_slots all, found;
	struct values names;
	char pattern[PFS_NAME_MAX + 3];
	const char *how;
	size_t n = 0;

	assert_int_equal(pfs_scan_select(model.tree, &all, NULL, 0, NULL, NULL), 0);
	read_values(&names, PFS_FIELD_NAME, &all);
	random_names(&p, name_at(&names, rnd((uint32_t)all.n)),
		     name_at(&names, rnd((uint32_t)all.n)), pattern);
	(void)pfs_scan_estimate(model.tree, &how, &p, 1);
	assert_int_equal(pfs_scan_is_short(model.tree, &p, 1), strcmp(how, "index of name") == 0);
	assert_int_equal(pfs_scan_select(model.tree, &found, &p, 1, NULL, NULL), 0);
	for (size_t i = 0; i < all.n; i++)
		if (is_like(&p, name_at(&names, i)))
			all.slot[n++] = all.slot[i];
	all.n = n;
	check_set(&found, &all);
	finish(&names);
	pfs_slots_finish(&all);
	pfs_slots_finish(&found);
	return strcmp(how, "index of name") == 0;
}

/* ---- changes ---- */

static void change_some(size_t changes)
{
	uint64_t directories[512] = {PFS_ROOT_PRIME};
	size_t n = 1;

	for (size_t i = 1; i < model.n && n < PFS_COUNT(directories) / 2; i++)
		if (S_ISDIR(model.seen[i].attr.st_mode))
			directories[n++] = model.seen[i].ino;
	while (changes-- > 0) {
		const struct seen *seen = &model.seen[1 + rnd((uint32_t)PFS_MAX(model.n, 2) - 1)];
		uint64_t parent = model.seen[seen->parent].ino;
		char name[600];
		int error = 0;

		(void)random_name(name);
		name[PFS_NAME_MAX] = 0;
		if (rnd(3) == 0)
			random_node(model.tree, directories, &n, PFS_COUNT(directories));
		else if (rnd(3) == 0)
			error = pfs_tree_unlink(model.tree, parent, seen->name);
		else if (rnd(3) == 0)
			error = pfs_tree_rename(model.tree, parent, seen->name,
						directories[rnd((uint32_t)n)], name, 0);
		else if (rnd(2))
			error = pfs_tree_setattr(
				model.tree, &(struct pfs_entry){.volatile_attr = false}, seen->ino,
				&(struct stat){.st_mtim.tv_sec = rnd(900), .st_uid = rnd(5)},
				PFS_SET_MTIME | PFS_SET_UID, &temp_root);
		else if (S_ISREG(seen->attr.st_mode))
			error = pfs_tree_setattr(
				model.tree, &(struct pfs_entry){.volatile_attr = false}, seen->ino,
				&(struct stat){.st_size = rnd(1000000)}, PFS_SET_SIZE, &temp_root);
		(void)error; /* often impossible, or gone */
	}
	model_look(&model, model.tree);
}

/* A tree frozen before changes has the indexes of the live one, as they were. How often they
 * told. */
static unsigned ask_frozen(void)
{
	const struct pfs_frozen_wish wish = {.columns = PFS_COLUMNS_ALL, .most = UINT64_MAX};
	struct pfs_tree *live = model.tree, *frozen;
	unsigned named = 0;

	assert_int_equal(pfs_frozen_open(&frozen, live, &wish), 0);
	change_some(rnd(2) ? 20 : 12000); /* which they bear, or not */
	model.tree = frozen;
	(void)pfs_scan_lock(frozen, __func__);
	for (unsigned i = 0; i < 20; i++) {
		check_range();
		named += check_names();
	}
	pfs_scan_unlock(frozen);
	model.tree = live;
	pfs_frozen_close(frozen);
	return named;
}

static void ask(size_t questions, unsigned *indexed, unsigned *walked, unsigned *named)
{
	while (questions-- > 0) {
		const char *how;

		pfs_scan_prepare(model.tree);
		(void)pfs_scan_lock(model.tree, __func__);
		how = check_question();
		*indexed += strncmp(how, "index", 5) == 0;
		*walked += strncmp(how, "names", 5) == 0;
		check_range();
		*named += check_names();
		pfs_scan_unlock(model.tree);
		if (rnd(20) == 0)
			change_some(1 + rnd(10));
	}
}

static void test_orders(void **state)
{
	unsigned indexed = 0, walked = 0, named = 0, frozen = 0;

	(void)state;
	for (size_t round = 0; round < ROUNDS; round++) {
		temp_store_create(&temp);
		model.tree = temp_tree_open_with(&temp, &options);
		random_tree(model.tree, NODES);
		model_look(&model, model.tree);
		ask(QUESTIONS, &indexed, &walked, &named);
		change_some(12000); /* more than indexes bear */
		ask(QUESTIONS / 2, &indexed, &walked, &named);
		frozen += ask_frozen();
		model_forget(&model);
		temp_tree_close(model.tree);
		temp_store_remove(&temp);
	}
	print_message(
		"%u by indexes, %u by names from the top down, %u names by their index, %u of them frozen\n",
		indexed, walked, named + frozen, frozen);
	assert_true(indexed > 50 && walked > 10 && named > 200 && frozen > 10);
}

/* ---- while somebody changes the tree ---- */

#define READERS	2
#define SWEEPS	150
#define CHANGES 4000

static atomic_bool ended;

static void *change_on(void *arg)
{
	uint64_t state = 7, *inos = arg;

	for (unsigned i = 0; i < CHANGES; i++) {
		struct stat attr = {.st_size = random_below(&state, 1000000)};
		struct pfs_entry entry;
		char name[32], other[32];

		(void)snprintf(name, sizeof(name), "n%u", random_below(&state, 50));
		(void)snprintf(other, sizeof(other), "n%u", random_below(&state, 50));
		if (i % 8 == 7)
			(void)!pfs_tree_rename(model.tree, PFS_ROOT_PRIME, name, PFS_ROOT_PRIME,
					       other, 0);
		else if (i % 4 == 0)
			(void)!pfs_tree_make(model.tree, &entry, PFS_ROOT_PRIME, name,
					     S_IFREG | 0644, 0, &temp_root);
		else if (i % 4 == 1)
			(void)!pfs_tree_unlink(model.tree, PFS_ROOT_PRIME, name);
		else
			(void)!pfs_tree_setattr(model.tree, &entry,
						inos[random_below(&state, 1000)], &attr,
						PFS_SET_SIZE, &temp_root);
	}
	atomic_store(&ended, true);
	return NULL;
}

/* Whether the ten largest are in order, and none is larger than they. */
static bool are_largest(struct pfs_tree *tree)
{
	const struct pfs_order order = {PFS_FIELD_SIZE, true};
	const struct pfs_ordered_question question = {.order = &order, .n_order = 1, .limit = 10};
	struct pfs_predicate larger = {.field = PFS_FIELD_SIZE, .high = INT64_MAX};
	struct pfs_ordered *ordered;
	uint32_t slots[10];
	int64_t sizes[10];
	struct pfs_slots found = {0};
	size_t n = 10;
	bool fine;

	if (pfs_ordered_open(&ordered, tree, &question))
		return false;
	fine = !pfs_ordered_next(ordered, slots, &n) && n == 10 &&
	       !pfs_scan_integers(tree, sizes, PFS_FIELD_SIZE, slots, n);
	pfs_ordered_close(ordered);
	for (size_t i = 1; i < n && fine; i++)
		fine = sizes[i - 1] >= sizes[i];
	larger.low = fine ? sizes[0] + 1 : 0;
	fine = fine && !pfs_scan_select(tree, &found, &larger, 1, NULL, NULL) && found.n == 0;
	pfs_slots_finish(&found);
	return fine;
}

/* Whether as many names as begin so are found to. */
static bool are_found(struct pfs_tree *tree)
{
	const struct pfs_predicate p = {
		.field = PFS_FIELD_NAME, .test = PFS_TEST_PREFIX, .text = "n4", .text_len = 2};
	struct pfs_slots all, found;
	uint64_t *offset;
	char *bytes = NULL;
	size_t capacity = 0, n = 0;
	bool fine;

	if (pfs_scan_select(tree, &all, NULL, 0, NULL, NULL) ||
	    pfs_scan_select(tree, &found, &p, 1, NULL, NULL))
		return false;
	offset = calloc(all.n + 1, sizeof(*offset));
	fine = offset && !pfs_scan_bytes(tree, &bytes, &capacity, offset, NULL, PFS_FIELD_NAME,
					 all.slot, all.n);
	for (size_t i = 0; i < all.n && fine; i++)
		n += offset[i + 1] - offset[i] >= 2 && memcmp(bytes + offset[i], "n4", 2) == 0;
	fine &= n == found.n;
	free(offset);
	free(bytes);
	pfs_slots_finish(&all);
	pfs_slots_finish(&found);
	return fine;
}

static void *read_on(void *arg)
{
	size_t *wrong = arg;

	for (unsigned i = 0; i < SWEEPS || !atomic_load(&ended); i++) {
		pfs_scan_prepare(model.tree);
		(void)pfs_scan_lock(model.tree, __func__);
		*wrong += !are_largest(model.tree);
		*wrong += !are_found(model.tree);
		pfs_scan_unlock(model.tree);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t readers[READERS], writer;
	size_t wrong[READERS] = {0};
	uint64_t inos[1000];

	(void)state;
	temp_store_create(&temp);
	model.tree = temp_tree_open_with(&temp, &options);
	for (size_t i = 0; i < PFS_COUNT(inos); i++) {
		struct pfs_entry entry;
		char name[32];

		(void)snprintf(name, sizeof(name), "f%zu", i);
		assert_int_equal(pfs_tree_make(model.tree, &entry, PFS_ROOT_PRIME, name,
					       S_IFREG | 0644, 0, &temp_root),
				 0);
		inos[i] = entry.attr.st_ino;
	}
	assert_int_equal(pthread_create(&writer, NULL, change_on, inos), 0);
	for (size_t i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_on, &wrong[i]), 0);
	(void)pthread_join(writer, NULL);
	for (size_t i = 0; i < READERS; i++) {
		(void)pthread_join(readers[i], NULL);
		assert_int_equal(wrong[i], 0);
	}
	temp_tree_close(model.tree);
	temp_store_remove(&temp);
}

int main(void)
{
	const char *given = getenv("PFS_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_threads),
	};

	random_state = seed = given ? strtoull(given, NULL, 10) : seed;
	print_message("seed %llu (PFS_SEED sets it)\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
