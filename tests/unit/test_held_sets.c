/* SPDX-License-Identifier: MIT */
/* Sets of nodes, and large folders, are listed in holds of the tree in which little is done, and a
 * set is of one moment, whatever changes between the holds. PFS_SEED: another seed. */
#include "tree_util.h"

#include "base/btree.h"
#include "fs/image/children.h"
#include "fs/image/old_places.h"
#include "fs/image/slotorder.h"
#include "fs/nodes/ordered_impl.h"
#include "fs/nodes/paths.h"
#include "fs/tree/tree_impl.h"
#include "gpu/engine.h"
#include "tests/ref/random.h"

#define FILES	 40000u /* more than two holds take */
#define OTHERS	 2000u /* files beside it, which are moved into it */
#define STRAYS	 1000u
#define MIXED	 10000u /* files that are not made in the order of their names */
#define FEW_MIXED 1000u /* so few that they are sorted in one piece, when their names have been read */
#define COMPARED 24u /* paths, to place a stray */

static uint64_t seed = 20261126, folder;
/* Of this thread: others hold the tree, too. */
static _Thread_local bool is_held;
static _Thread_local unsigned entries, compared, most_entries,
	most_compared; /* in this hold, and in any */
static _Thread_local unsigned n_read,
	n_read_held; /* pieces of sets that an engine gave, and that in a hold */
static _Thread_local unsigned
	change_at;	   /* the hold from which on something changes before each; 0: none */
static _Thread_local bool is_clock_fast; /* a second passes between two looks at the clock */
static _Thread_local time_t ahead_s;
static bool changes_once;  /* only before that one */

static void change(void);

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_clock_gettime(clockid_t clock, struct timespec *time);
void __real_pfs_fair_read(struct pfs_fair *lock);
void __real_pfs_fair_end(struct pfs_fair *lock);
bool __real_pfs_children_next(struct pfs_children *children, struct pfs_btree_entry *entry);
bool __real_pfs_old_places_is_before(const struct pfs_old_places *past, uint32_t a, uint32_t b);
int __real_pfs_bitmap_read(const struct pfs_bitmap *bitmap, uint32_t *words, size_t first,
			   size_t n);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int error = __real_clock_gettime(clock, time);

	time->tv_sec += is_clock_fast ? ++ahead_s : 0;
	return error;
}

void __wrap_pfs_fair_read(struct pfs_fair *lock);
void __wrap_pfs_fair_read(struct pfs_fair *lock)
{
	unsigned at = change_at;

	if (at == 1) {
		change_at = 0;
		change();
		change_at = !changes_once;
	} else if (at) {
		change_at--;
	}
	__real_pfs_fair_read(lock);
	is_held = true;
	entries = compared = 0;
}

void __wrap_pfs_fair_end(struct pfs_fair *lock);
void __wrap_pfs_fair_end(struct pfs_fair *lock)
{
	most_entries = PFS_MAX(most_entries, entries);
	most_compared = PFS_MAX(most_compared, compared);
	is_held = false;
	__real_pfs_fair_end(lock);
}

bool __wrap_pfs_children_next(struct pfs_children *children, struct pfs_btree_entry *entry);
bool __wrap_pfs_children_next(struct pfs_children *children, struct pfs_btree_entry *entry)
{
	entries++;
	return __real_pfs_children_next(children, entry);
}

bool __wrap_pfs_old_places_is_before(const struct pfs_old_places *past, uint32_t a, uint32_t b);
bool __wrap_pfs_old_places_is_before(const struct pfs_old_places *past, uint32_t a, uint32_t b)
{
	compared++;
	return __real_pfs_old_places_is_before(past, a, b);
}

int __wrap_pfs_bitmap_read(const struct pfs_bitmap *bitmap, uint32_t *words, size_t first,
			   size_t n);
int __wrap_pfs_bitmap_read(const struct pfs_bitmap *bitmap, uint32_t *words, size_t first, size_t n)
{
	n_read++;
	n_read_held += is_held;
	return __real_pfs_bitmap_read(bitmap, words, first, n);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- a folder of many files ---- */

static void make_file(uint64_t into, const char *before, unsigned n, const char *behind)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s%06u%s", before, n, behind);
	assert_true(temp_tree_make(tree, into, name, S_IFREG | 0644));
}

static int start(void **state PFS_UNUSED)
{
	static const struct pfs_tree_options options = {.no_atime = true,
							.engine = PFS_ENGINE_HOST};
	uint64_t above;

	start_tree(&options);
	above = temp_tree_make(tree, PFS_ROOT_PRIME, "a", S_IFDIR | 0755);
	folder = temp_tree_make(tree, above, "b", S_IFDIR | 0755);
	for (unsigned i = 0; i < FILES; i++)
		make_file(folder, "f", i, "");
	for (unsigned i = 0; i < OTHERS; i++)
		make_file(PFS_ROOT_PRIME, "x", i, "");
	return 0;
}

/* What is changed may be gone already. */
static void change(void)
{
	static unsigned n;
	const unsigned which = random_below(&seed, 6);
	char name[32], beside[32], other[32];

	(void)snprintf(name, sizeof(name), "f%06u", random_below(&seed, FILES));
	(void)snprintf(beside, sizeof(beside), "x%06u", random_below(&seed, OTHERS));
	(void)snprintf(other, sizeof(other), "%c%u", "cgy"[n % 3], n);
	n++;
	if (which == 0)
		(void)!pfs_tree_unlink(tree, folder, name);
	else if (which == 1)
		(void)!pfs_tree_rename(tree, folder, name, PFS_ROOT_PRIME, other, 0);
	else if (which == 2)
		(void)!pfs_tree_rename(tree, folder, name, folder, other, 0);
	else if (which == 3)
		(void)!pfs_tree_rename(tree, PFS_ROOT_PRIME, beside, folder, beside, 0);
	else if (which == 4 && pfs_tree_rename(tree, PFS_ROOT_PRIME, "a", PFS_ROOT_PRIME, "z", 0))
		(void)!pfs_tree_rename(tree, PFS_ROOT_PRIME, "z", PFS_ROOT_PRIME, "a", 0);
	else
		assert_true(temp_tree_make(tree, folder, other, S_IFREG | 0644));
}

static struct text list(enum pfs_relation relation)
{
	const struct pfs_question question = {relation, &folder, 1};
	struct text text = {.size = 0};

	assert_int_equal(pfs_tree_list(tree, &question, PFS_LIST_INO, append_text, &text), 0);
	return text;
}

static bool is_same(const struct text *a, const struct text *b)
{
	return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static enum pfs_slot_order order_of_slots(void)
{
	enum pfs_slot_order order;

	pfs_hold_read(tree, __func__);
	order = pfs_slotorder(tree);
	pfs_hold_end(tree);
	return order;
}

/* ---- */

static void children_are_followed_in_pieces(void **state PFS_UNUSED)
{
	const struct pfs_question question = {PFS_CHILDREN, &folder, 1};
	uint64_t count;

	most_entries = 0;
	assert_int_equal(pfs_tree_count(tree, &count, &question), 0);
	assert_int_equal(count, FILES);
	assert_in_range(most_entries, PFS_PATHS_HELD, PFS_PATHS_HELD + 1);
	most_entries = 0;
	free(list(PFS_CHILDREN).bytes);
	assert_in_range(most_entries, PFS_PATHS_HELD, PFS_PATHS_HELD + 1);
	assert_int_equal(order_of_slots(), PFS_ORDER_ASCENDING);
}

static int count_visited(void *arg, const struct pfs_walk_node *node PFS_UNUSED)
{
	unsigned *n = arg;

	++*n;
	return 0;
}

/* Whatever changes meanwhile: the nodes that do not are visited once. */
static void a_walk_lists_in_pieces(void **state PFS_UNUSED)
{
	const struct pfs_question question = {PFS_CHILDREN, &folder, 1};
	unsigned visited = 0;
	uint64_t count;

	most_entries = 0;
	assert_int_equal(pfs_tree_count(tree, &count, &question), 0);
	assert_int_equal(pfs_tree_walk(tree, folder, count_visited, &visited), 0);
	assert_in_range(most_entries, PFS_PATHS_HELD, PFS_PATHS_HELD + 1);
	assert_int_equal(visited, count + 1);
	changes_once = true;
	for (unsigned at = 2; at < 6; at++) {
		assert_int_equal(pfs_tree_count(tree, &count, &question), 0);
		visited = 0;
		change_at = at;
		assert_int_equal(pfs_tree_walk(tree, folder, count_visited, &visited), 0);
		assert_int_equal(change_at, 0);
		assert_in_range(visited, count,
				count + 2); /* the folder, too, and what has changed or has not */
	}
	changes_once = false;
}

struct inos {
	uint64_t at[FILES + OTHERS];
	size_t n;
};

static int add_visited(void *arg, const struct pfs_walk_node *node)
{
	struct inos *inos = arg;

	if (node->depth)
		inos->at[inos->n++] = node->entry.attr.st_ino;
	return 0;
}

static int by_ino(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool is_gone(uint64_t ino)
{
	struct pfs_entry entry;

	return pfs_tree_getattr(tree, &entry, ino) != 0;
}

/* What was there when the first hold ended is visited once, whatever changes then, unless it is
 * removed. */
static void a_walk_is_of_one_moment(void **state PFS_UNUSED)
{
	static struct inos before, after;

	changes_once = true;
	for (unsigned i = 0; i < 60; i++) {
		size_t k = 0;

		before.n = after.n = 0;
		assert_int_equal(pfs_tree_walk(tree, folder, add_visited, &before), 0);
		change_at = 3 + i % 2; /* after the folder's visit and one hold, or two */
		assert_int_equal(pfs_tree_walk(tree, folder, add_visited, &after), 0);
		assert_int_equal(change_at, 0);
		qsort(before.at, before.n, sizeof(before.at[0]), by_ino);
		qsort(after.at, after.n, sizeof(after.at[0]), by_ino);
		for (size_t at = 0; at < before.n; at++) {
			if (k < after.n && after.at[k] == before.at[at])
				k++;
			else
				assert_true(is_gone(before.at[at]));
		}
		assert_int_equal(k, after.n);
	}
	changes_once = false;
}

/* Before each hold but the first something changes: what is listed is what was there in the
 * first. */
static void changes_are_not_listed(void **state PFS_UNUSED)
{
	for (unsigned i = 0; i < 40; i++) {
		struct text before = list(PFS_CHILDREN), text;

		assert_int_equal(order_of_slots(), PFS_ORDER_ASCENDING);
		change_at = 2;
		text = list(PFS_CHILDREN);
		change_at = 0;
		assert_true(is_same(&text, &before));
		free(text.bytes);
		free(before.bytes);
	}
}

static uint32_t slot_of(uint64_t ino)
{
	uint32_t slot;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	pfs_hold_end(tree);
	return slot;
}

static bool was_before(const struct pfs_old_places *past, uint64_t a, uint64_t b)
{
	const uint32_t x = slot_of(a), y = slot_of(b);
	bool is_before;

	pfs_hold_read(tree, __func__);
	assert_int_equal(pfs_old_places_check(past), 0);
	is_before = pfs_old_places_is_before(past, x, y);
	pfs_hold_end(tree);
	return is_before;
}

/* A past knows which came first, wherever they have gone since. */
static void a_past_has_the_order(void **state PFS_UNUSED)
{
	const uint64_t m = temp_tree_make(tree, PFS_ROOT_PRIME, "m", S_IFDIR | 0755),
		       file = temp_tree_make(tree, m, "file", S_IFREG | 0644),
		       deep = temp_tree_make(tree, m, "deep", S_IFDIR | 0755),
		       below = temp_tree_make(tree, deep, "below", S_IFREG | 0644),
		       other = temp_tree_make(tree, PFS_ROOT_PRIME, "k", S_IFREG | 0644);
	struct pfs_old_places *past;

	pfs_hold_read(tree, __func__);
	assert_int_equal(pfs_old_places_open(&past, tree), 0);
	pfs_hold_end(tree);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(was_before(past, PFS_ROOT_PRIME, below) &&
			    !was_before(past, below, PFS_ROOT_PRIME));
		assert_true(was_before(past, deep, below) && !was_before(past, below, deep));
		assert_true(was_before(past, below, file) && !was_before(past, file, below));
		assert_true(was_before(past, other, file) && !was_before(past, below, other));
		assert_false(was_before(past, file, file));
		if (i)
			break;
		assert_int_equal(pfs_tree_rename(tree, m, "deep", PFS_ROOT_PRIME, "zzz", 0), 0);
		assert_int_equal(pfs_tree_rename(tree, m, "file", PFS_ROOT_PRIME, "aaa", 0), 0);
		assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, "k", m, "a", 0), 0);
	}
	pfs_old_places_close(past);
}

/* 128 a hold or, if that takes 2 ms, the next four. */
static void strays_are_placed_in_pieces(void **state PFS_UNUSED)
{
	for (unsigned i = 0; i < STRAYS; i++)
		make_file(folder, "f", i * (FILES / STRAYS), " stray");
	most_compared = 0;
	free(list(PFS_CHILDREN).bytes);
	assert_in_range(most_compared, 128, 128 * COMPARED);
	most_compared = 0;
	is_clock_fast = true;
	free(list(PFS_CHILDREN).bytes);
	is_clock_fast = false;
	assert_in_range(most_compared, 4, 4 * COMPARED);
}

/* Before whichever hold something changes, all that is listed is as it was before that, or all as
 * it is since. */
static void check_moments(enum pfs_relation relation, unsigned least)
{
	struct text before = list(relation), text, after;
	unsigned at = 0;
	bool has_changed = true;

	for (changes_once = true; has_changed; before = after) {
		change_at = ++at;
		text = list(relation);
		has_changed = !change_at; /* else there were fewer holds */
		change_at = 0;
		after = list(relation);
		assert_true(is_same(&text, &before) || is_same(&text, &after));
		free(text.bytes);
		free(before.bytes);
	}
	changes_once = false;
	free(before.bytes);
	assert_in_range(at, least, UINT_MAX);
}

static void an_engine_lists_when_the_tree_has_been_let_go(void **state PFS_UNUSED)
{
	n_read = n_read_held = 0;
	check_moments(PFS_ANCESTORS, 3);
	assert_true(n_read > 0);
	assert_int_equal(n_read_held, 0);
}

/* Slots that say nothing of the order are sorted over a frozen tree. */
static void slots_without_an_order_are_sorted(void **state PFS_UNUSED)
{
	for (unsigned i = 0; i <= PFS_STRAYS_MAX; i++)
		make_file(folder, "!", PFS_STRAYS_MAX - i, "");
	most_entries = 0;
	check_moments(PFS_CHILDREN, 6);
	assert_in_range(most_entries, PFS_PATHS_HELD, PFS_PATHS_HELD + 1);
	assert_int_equal(order_of_slots(), PFS_ORDER_OTHER);
}

/* ---- a walk of a statement ---- */

static unsigned looks;

static int count_look(void *arg PFS_UNUSED)
{
	looks++;
	return 0;
}

/* Gets the last nodes below a directory by a walk from the top down. */
static void walk_some(uint32_t *slots, size_t *n, uint64_t top)
{
	static const _Atomic bool never;
	const struct pfs_order order = {PFS_FIELD_PATH, true};
	const struct pfs_scan_watch watch = {&never, count_look, NULL};
	struct pfs_path_walk *walk;

	looks = 0;
	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_path_walk_open(&walk, tree, slot_of(top), &order, &watch), 0);
	assert_int_equal(pfs_path_walk_next(walk, slots, n), 0);
	pfs_path_walk_close(walk);
	pfs_scan_unlock(tree);
}

static void add_path(struct text *text, uint32_t slot)
{
	uint64_t ino = tree->image.prime[slot];
	char *path;

	assert_int_equal(pfs_tree_path(tree, &path, ino), 0);
	(void)append_text(text, path, strlen(path));
	(void)append_text(text, "\n", 1);
	free(path);
}

/* A directory's n children, which are not made in the order of their names, are listed, compared,
 * sorted and taken in pieces, and come in that order; sort_looks: the sort looks, too. */
static void check_walk(const char *name, unsigned n_children, bool sort_looks)
{
	const uint64_t top = temp_tree_make(tree, PFS_ROOT_PRIME, name, S_IFDIR | 0755);
	const struct pfs_question question = {PFS_SUBTREE, &top, 1};
	struct text wanted = {.size = 0}, found = {.size = 0};
	uint32_t slots[64];
	size_t n = PFS_COUNT(slots);

	for (unsigned i = 0; i < n_children; i++)
		make_file(top, "", i * 7919 % n_children, "");
	walk_some(slots, &n, top);
	assert_in_range(looks - 3 * (n_children / 64), sort_looks, sort_looks ? n_children : 0);
	assert_int_equal(pfs_tree_list(tree, &question, 0, append_text, &wanted), 0);
	for (size_t i = n; i-- > 0;)
		add_path(&found, slots[i]);
	assert_in_range(found.size, 1, wanted.size);
	assert_memory_equal(found.bytes, wanted.bytes + wanted.size - found.size, found.size);
	free(found.bytes);
	free(wanted.bytes);
}

static void children_in_order_are_listed_in_pieces(void **state PFS_UNUSED)
{
	check_walk("~", MIXED, true);
	check_walk("~~", FEW_MIXED, false);
}

int main(void)
{
	const char *given = getenv("PFS_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_are_followed_in_pieces),
		cmocka_unit_test(changes_are_not_listed),
		cmocka_unit_test(a_walk_lists_in_pieces),
		cmocka_unit_test(a_walk_is_of_one_moment),
		cmocka_unit_test(a_past_has_the_order),
		cmocka_unit_test(strays_are_placed_in_pieces),
		cmocka_unit_test(an_engine_lists_when_the_tree_has_been_let_go),
		cmocka_unit_test(slots_without_an_order_are_sorted),
		cmocka_unit_test(children_in_order_are_listed_in_pieces),
	};

	seed = given ? strtoull(given, NULL, 10) : seed;
	print_message("seed %llu (PFS_SEED sets it)\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, start, stop_tree);
}
