/* SPDX-License-Identifier: MIT */
/* What is done in one hold of the tree is bounded: by counts of what is read, freed and looked at,
 * not by times. */
#include <dirent.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/query_util.h"

#include "base/later.h"
#include "base/pool.h"
#include "fs/attr/attrcolumn.h"
#include "fs/image/span.h"
#include "fs/nodes/ordered.h"
#include "fs/nodes/paths.h"
#include "fs/tree/resolve.h"
#include "fs/tree/tree_impl.h"

#define FILES	40000u
#define BEARERS 12000u /* of them, with an attribute that all have and */
#define RARE	11999u /* one that this one has */
#define STAGES	6u     /* of a statement */
#ifdef PFS_VERIFY
#define PIECES 0u /* the statement is run twice, and holds are over without help */
#else
#define PIECES 1u /* of all nodes, at least */
#endif

static _Thread_local bool is_held;
static _Thread_local size_t attrs_read, largest_freed, largest_cleared; /* in this hold */
static _Atomic size_t most_attrs, most_freed, most_cleared, freed_after;
static _Atomic unsigned holds;
static _Atomic int64_t jump_ns; /* what each look at the clock adds to it; 0: the real time */
static _Atomic int64_t clock_ns;
static _Thread_local unsigned
	change_at; /* the hold before which this thread makes a file; 0: none */

static unsigned counted, counted_held; /* how often an engine has counted, and that while this
					  thread held the tree */
static bool is_alone; /* pools have no threads of their own */

static void make_late_file(void);

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
void __real_pfs_fair_read(struct pfs_fair *lock);
void __real_pfs_fair_end(struct pfs_fair *lock);
void *__real_calloc(size_t n, size_t size);
void __real_free(void *memory);
int __real_pfs_attr_read(struct pfs_attr_reader *reader, struct pfs_attr_value *out,
			 const uint32_t *slots, size_t n);
int __real_clock_gettime(clockid_t id, struct timespec *out);
int __real_pfs_bitmap_count(const struct pfs_bitmap *bitmap, uint64_t *count);
void __real_pfs_pool_run(struct pfs_pool *pool, size_t n, size_t grain,
			 void (*work)(void *context, size_t from, size_t to), void *context);
void __real_pfs_pool_run_last(struct pfs_pool *pool, size_t n, size_t grain,
			      void (*work)(void *context, size_t from, size_t to),
			      void (*last)(void *context), void *context);

static void keep_most(_Atomic size_t *most, size_t n)
{
	size_t seen = atomic_load(most);

	while (n > seen && !atomic_compare_exchange_weak(most, &seen, n))
		;
}

void __wrap_pfs_fair_read(struct pfs_fair *lock);
void __wrap_pfs_fair_read(struct pfs_fair *lock)
{
	if (change_at && --change_at == 0)
		make_late_file();
	__real_pfs_fair_read(lock);
	is_held = true;
	attrs_read = largest_freed = largest_cleared = 0;
	atomic_fetch_add(&holds, 1);
}

void __wrap_pfs_fair_end(struct pfs_fair *lock);
void __wrap_pfs_fair_end(struct pfs_fair *lock)
{
	keep_most(&most_attrs, attrs_read);
	keep_most(&most_freed, largest_freed);
	keep_most(&most_cleared, largest_cleared);
	is_held = false;
	__real_pfs_fair_end(lock);
}

void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	if (is_held)
		largest_cleared = PFS_MAX(largest_cleared, n * size);
	return __real_calloc(n, size);
}

void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
	size_t size = malloc_usable_size(memory);

	if (is_held)
		largest_freed = PFS_MAX(largest_freed, size);
	else
		keep_most(&freed_after, size);
	__real_free(memory);
}

int __wrap_pfs_attr_read(struct pfs_attr_reader *reader, struct pfs_attr_value *out,
			 const uint32_t *slots, size_t n);
int __wrap_pfs_attr_read(struct pfs_attr_reader *reader, struct pfs_attr_value *out,
			 const uint32_t *slots, size_t n)
{
	for (size_t i = 0; i < n && is_held; i++)
		attrs_read += (tree->image.flags[slots[i]] & PFS_NODE_ATTRS) != 0;
	return __real_pfs_attr_read(reader, out, slots, n);
}

int __wrap_pfs_bitmap_count(const struct pfs_bitmap *bitmap, uint64_t *count);
int __wrap_pfs_bitmap_count(const struct pfs_bitmap *bitmap, uint64_t *count)
{
	counted++;
	counted_held += is_held;
	return __real_pfs_bitmap_count(bitmap, count);
}

void __wrap_pfs_pool_run(struct pfs_pool *pool, size_t n, size_t grain,
			 void (*work)(void *context, size_t from, size_t to), void *context);
void __wrap_pfs_pool_run(struct pfs_pool *pool, size_t n, size_t grain,
			 void (*work)(void *context, size_t from, size_t to), void *context)
{
	if (is_alone)
		work(context, 0, n);
	else
		__real_pfs_pool_run(pool, n, grain, work, context);
}

void __wrap_pfs_pool_run_last(struct pfs_pool *pool, size_t n, size_t grain,
			      void (*work)(void *context, size_t from, size_t to),
			      void (*last)(void *context), void *context);
void __wrap_pfs_pool_run_last(struct pfs_pool *pool, size_t n, size_t grain,
			      void (*work)(void *context, size_t from, size_t to),
			      void (*last)(void *context), void *context)
{
	if (is_alone)
		work(context, 0, n);
	else
		__real_pfs_pool_run_last(pool, n, grain, work, last, context);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	int64_t jump = atomic_load(&jump_ns), ns;

	if (!jump || id != CLOCK_MONOTONIC)
		return __real_clock_gettime(id, out);
	ns = atomic_fetch_add(&clock_ns, jump);
	out->tv_sec = ns / 1000000000;
	out->tv_nsec = ns % 1000000000;
	return 0;
}

/* From here on time passes by looks at the clock alone, until it is 0. */
static void set_jump(int64_t ns)
{
	struct timespec now;

	__real_clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_store(&clock_ns, now.tv_sec * INT64_C(1000000000) + now.tv_nsec);
	atomic_store(&jump_ns, ns);
}

/* Memory for which large pages are wanted. */
static const void *large_pages[2 * PFS_IMAGE_COLUMNS];
static size_t n_large_pages;

int __real_madvise(void *memory, size_t size, int advice);
int __wrap_madvise(void *memory, size_t size, int advice);
int __wrap_madvise(void *memory, size_t size, int advice)
{
	if (advice == MADV_HUGEPAGE && n_large_pages < PFS_COUNT(large_pages))
		large_pages[n_large_pages++] = memory;
	return __real_madvise(memory, size, advice);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void count_anew(void)
{
	most_attrs = most_freed = most_cleared = freed_after = 0;
	holds = 0;
}

/* ---- a tree of many files, all in pre-order ---- */

static int set_up_files(void **state)
{
	int failed = set_up(state);
	uint64_t dir = ino_of("/a/b");
	char name[32];

	for (unsigned i = 0; i < FILES; i++) {
		uint64_t ino;

		(void)snprintf(name, sizeof(name), "f%06u", i);
		ino = make(dir, name, S_IFREG | 0644);
		if (i >= BEARERS)
			continue;
		assert_int_equal(pfs_tree_setxattr(tree, ino, "user.often", "1", 1, 0), 0);
		if (i == RARE)
			assert_int_equal(pfs_tree_setxattr(tree, ino, "user.rare", "1", 1, 0), 0);
	}
	assert_int_equal(pfs_tree_sync(tree), 0);
	return failed;
}

static void make_late_file(void)
{
	static unsigned n;
	char name[32];

	(void)snprintf(name, sizeof(name), "late %u", n++);
	(void)make(PFS_ROOT_PRIME, name, S_IFREG | 0644);
}

/* ---- threads ---- */

static unsigned count_pool_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	char path[300], name[32];
	unsigned n = 0;

	assert_non_null(tasks);
	for (const struct dirent *task; (task = readdir(tasks));) {
		FILE *file;

		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		n += fgets(name, sizeof(name), file) && strcmp(name, "pfs-pool\n") == 0;
		(void)fclose(file);
	}
	(void)closedir(tasks);
	return n;
}

/* There are no more threads than processors, though statements select, sort and group, and scans
 * look for nodes. */
static void scans_and_operators_share_threads(void **state PFS_UNUSED)
{
	static const struct pfs_predicate suffix = {
		.field = PFS_FIELD_EXT, .test = PFS_TEST_EQUAL, .text = "c", .text_len = 1};
	char text[1024];
	struct pfs_slots slots;

	query_text(text, sizeof(text),
		   "SELECT size, count(*) FROM nodes WHERE name GLOB '*7' GROUP BY size");
	query_text(text, sizeof(text), "SELECT ino FROM nodes ORDER BY mtime, size, name LIMIT 10");
	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_scan_select(tree, &slots, &suffix, 1, NULL, NULL), 0);
	pfs_slots_finish(&slots);
	pfs_scan_unlock(tree);
	assert_in_range(count_pool_threads(), 0, (unsigned)sysconf(_SC_NPROCESSORS_ONLN) - 1);
}

/* ---- what is freed ---- */

/* Answers that are sorted have large memory, which goes when the tree has been let go. */
static void large_memory_is_freed_after_the_hold(void **state PFS_UNUSED)
{
	static const char *const statements[] = {
		"SELECT path FROM nodes ORDER BY size DESC LIMIT 10",
		"SELECT path FROM nodes ORDER BY size DESC, name LIMIT 10",
		"SELECT path FROM nodes ORDER BY preorder DESC LIMIT 10",
		"SELECT sum(n) FROM (SELECT row_number() OVER (PARTITION BY uid ORDER BY name) AS n FROM nodes)",
	};
	char text[1024];

	for (size_t i = 0; i < PFS_COUNT(statements); i++) {
		count_anew();
		query_text(text, sizeof(text), statements[i]);
		assert_in_range(most_freed, 0, PFS_LATER_MIN - 1);
	}
	count_anew();
	query_text(text, sizeof(text), statements[1]); /* no index has it */
	assert_in_range(freed_after, FILES * sizeof(uint64_t), SIZE_MAX);
}

/* So does that of an index that too many changes have made useless. */
static void an_index_goes_after_the_hold(void **state PFS_UNUSED)
{
	const uint64_t dir = make(PFS_ROOT_PRIME, "more", S_IFDIR | 0755);
	char name[32];

	for (unsigned i = 0; i < 3; i++)
		pfs_scan_missed(tree, PFS_FIELD_MTIME);
	pfs_scan_prepare(tree);
	for (unsigned i = 0; i < 5000; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		(void)make(dir, name, S_IFREG | 0644);
	}
	count_anew();
	pfs_scan_prepare(tree);
	assert_in_range(most_freed, 0, PFS_LATER_MIN - 1);
	assert_in_range(freed_after, FILES * sizeof(uint32_t), SIZE_MAX);
}

/* More than a thread may put off is freed at once, and without a hold everything. */
static void memory_is_put_off_up_to_a_limit(void **state PFS_UNUSED)
{
	void *large[2] = {malloc(PFS_LATER_MAX / 2 + 1), malloc(PFS_LATER_MAX / 2 + 1)};

	assert_non_null(large[0]);
	assert_non_null(large[1]);
	count_anew();
	(void)pfs_scan_lock(tree, __func__);
	pfs_free_later(large[0]);
	assert_int_equal(largest_freed, 0);
	pfs_free_later(large[1]);
	assert_in_range(largest_freed, PFS_LATER_MAX / 2 + 1, SIZE_MAX);
	pfs_free_later(NULL);
	pfs_scan_unlock(tree);
	assert_in_range(freed_after, PFS_LATER_MAX / 2 + 1, SIZE_MAX);
	count_anew();
	pfs_free_later(malloc(PFS_LATER_MIN));
	assert_in_range(freed_after, PFS_LATER_MIN, SIZE_MAX);
}

/* ---- what is touched first ---- */

static bool has_large_pages(const void *column)
{
	for (size_t i = 0; i < n_large_pages; i++)
		if (large_pages[i] == column)
			return true;
	return false;
}

/* A page is cleared by whoever touches it first: what is filled while the tree is held has small
 * ones. */
static void depths_and_references_have_small_pages(void **state PFS_UNUSED)
{
	n_large_pages = 0;
	assert_int_equal(pfs_image_grow(tree, 1 << 22), 0);
	pfs_image_expect_filled(&tree->image);
	assert_true(has_large_pages(tree->image.parent));
	assert_false(has_large_pages(tree->image.depth));
	assert_false(has_large_pages(tree->image.references));
}

/* calloc clears at once what it has of memory that was freed: the ranges of all directories are
 * cleared as the pass over the slots comes to them. */
static void ranges_are_not_cleared_in_one_hold(void **state PFS_UNUSED)
{
	pfs_spans_drop(tree);
	count_anew();
	pfs_hold_read(tree, __func__);
	assert_int_equal(pfs_spans_prepare(tree, pfs_hold_pause, tree), 0);
	pfs_hold_end(tree);
	assert_in_range(most_cleared, 0, PFS_LATER_MIN - 1);
}

/* ---- what is looked at ---- */

static unsigned looks;

static int count_look(void *arg PFS_UNUSED)
{
	looks++;
	return 0;
}

/* That slots are in order already is found out in pieces, each time. */
static void an_order_is_looked_at_in_pieces(void **state PFS_UNUSED)
{
	static const _Atomic bool never;
	static const struct pfs_order order = {PFS_FIELD_PREORDER, false};
	const struct pfs_scan_watch watch = {&never, count_look, NULL};
	const struct pfs_ordered_question question = {
		.order = &order, .n_order = 1, .limit = UINT64_MAX, .watch = &watch};
	struct pfs_ordered *ordered;

	pfs_scan_set_piece(64);
	(void)pfs_scan_lock(tree, __func__);
	for (unsigned i = 0; i < 2; i++) { /* the first time it is found out of all slots, too */
		looks = 0;
		assert_int_equal(pfs_ordered_open(&ordered, tree, &question), 0);
		pfs_ordered_close(ordered);
	}
	pfs_scan_unlock(tree);
	pfs_scan_set_piece(UINT32_MAX);
	assert_in_range(looks, 2 * (FILES / (16 * 64)), UINT_MAX);
}

/* ---- attributes ---- */

/* Of one that few nodes have, and of several in a statement, so many are read in one hold. */
static void few_attributes_are_read_in_one_hold(void **state PFS_UNUSED)
{
	char text[1024];

	scope.sees_all = scope.may_change = false;
	scope.uid = scope.gid = 4711;
	count_anew();
	query_text(text, sizeof(text), "SELECT count(often), count(rare) FROM nodes");
	assert_string_equal(text, "12000 1");
	assert_in_range(most_attrs, 1, 8192);
}

/* ---- operators ---- */

static const char by_uid[] = "SELECT uid, count(*) FROM nodes GROUP BY uid ORDER BY 2 DESC";

#define FAST 1	     /* ns a look at the clock */
#define SLOW 5000000 /* longer than a hold may be */

/* As if each piece took so long. Returns how many holds there were. */
static unsigned ask_at_pace(int64_t pace_ns, char *text, size_t size)
{
	count_anew();
	set_jump(pace_ns);
	query_text(text, size, by_uid);
	set_jump(0);
	return holds;
}

/* Each piece of each stage of a statement may be in a hold of its own, if it has taken long. */
static void pieces_let_others_have_the_tree(void **state PFS_UNUSED)
{
	char text[1024];
	unsigned at_once;

	check(by_uid, "0 40006");
	at_once = ask_at_pace(FAST, text, sizeof(text));
	assert_string_equal(text, "0 40006");
	assert_in_range(ask_at_pace(SLOW, text, sizeof(text)), at_once + STAGES + PIECES, UINT_MAX);
	assert_string_equal(text, "0 40006");
}

/* In whichever pause the tree changes, the answer is of one moment. */
static void a_change_in_a_pause_is_seen_wholly_or_not(void **state PFS_UNUSED)
{
	char before[1024], text[1024], after[1024];
	unsigned at = 0;

	for (query_text(before, sizeof(before), by_uid);; memcpy(before, after, sizeof(before))) {
		change_at = ++at;
		(void)ask_at_pace(SLOW, text, sizeof(text));
		if (change_at) /* there were fewer holds */
			break;
		query_text(after, sizeof(after), by_uid);
		assert_string_not_equal(before, after);
		if (strcmp(text, before) != 0)
			assert_string_equal(text, after);
	}
	change_at = 0;
	assert_in_range(at, STAGES + PIECES, UINT_MAX);
}

/* ---- codes ---- */

static void an_engine_counts_when_the_tree_has_been_let_go(void **state PFS_UNUSED)
{
	const uint64_t dir = ino_of("/a/b");
	const struct pfs_question question = {.relation = PFS_ANCESTORS, .inos = &dir, .n = 1};
	uint64_t count;

	assert_int_equal(pfs_tree_count(tree, &count, &question), 0);
	assert_int_equal(count, 2);
	assert_int_equal(counted, 1);
	assert_int_equal(counted_held, 0);
}

/* ---- listings ---- */

#define PIECE_SLOTS 1024u /* the most that are listed in a hold that is too long */

static int add_text(void *arg, const char *bytes, size_t size)
{
	return fwrite(bytes, 1, size, arg) == size ? 0 : -EIO;
}

/* All paths, as if each piece took so long; to be freed. */
static char *list_at_pace(int64_t pace_ns)
{
	static const uint64_t root = PFS_ROOT_PRIME;
	const struct pfs_question question = {.relation = PFS_SUBTREE, .inos = &root, .n = 1};
	size_t size;
	char *text = NULL;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	count_anew();
	set_jump(pace_ns);
	assert_int_equal(pfs_tree_list(tree, &question, 0, add_text, file), 0);
	set_jump(0);
	assert_int_equal(fclose(file), 0);
	return text;
}

static void pieces_of_a_listing_let_others_have_the_tree(void **state PFS_UNUSED)
{
	char *at_once = list_at_pace(FAST), *slowly;

	is_alone = true;
	slowly = list_at_pace(SLOW);
	is_alone = false;
	assert_in_range(holds, FILES / PIECE_SLOTS, UINT_MAX);
	assert_string_equal(slowly, at_once);
	free(slowly);
	free(at_once);
}

/* Whenever the tree changes, what is listed is the tree of one moment. */
static void a_change_between_pieces_is_not_listed(void **state PFS_UNUSED)
{
	char *before = list_at_pace(FAST), *text, *after;
	unsigned at = 0;

	do {
		change_at = ++at;
		is_alone = true;
		text = list_at_pace(SLOW);
		is_alone = false;
		after = list_at_pace(FAST);
		if (strcmp(text, before) != 0)
			assert_string_equal(text, after);
		free(text);
		free(before);
		before = after;
	} while (!change_at);
	free(before);
	change_at = 0;
	assert_in_range(at, FILES / PIECE_SLOTS, UINT_MAX);
}

static void a_listing_is_measured_in_pieces(void **state PFS_UNUSED)
{
	struct pfs_paths *paths;
	uint64_t row = 0, size;
	char *text = list_at_pace(FAST);

	assert_int_equal(pfs_paths_open(&paths, tree, PFS_ROOT_PRIME, 0), 0);
	count_anew();
	assert_int_equal(pfs_paths_measure(paths, &row, &size, UINT64_MAX), 1);
	assert_in_range(holds, FILES / PFS_PATHS_HELD + 1, UINT_MAX);
	assert_int_equal(size, strlen(text));
	pfs_paths_close(paths);
	free(text);
}

/* Paths that a statement resolves are bounded by their bytes: a long one, many, and such as fit. */
static void a_part_of_long_paths_is_resolved_in_one_hold(void **state PFS_UNUSED)
{
	static const struct {
		const char *sql, *rows;
		size_t bytes;
	} cases[] = {
		{"SELECT count(ino) FROM resolve("
		 "replace(hex(zeroblob(400000)), '00', '/a/..') || '/a/b')",
		 "1", 400000 * 5},
		{"SELECT count(ino) FROM resolve(replace(hex(zeroblob(1000)), '00', "
		 "replace(hex(zeroblob(400)), '00', '/a/..') || '/a/b' || char(10)))",
		 "1000", 1000 * 2000},
		{"SELECT max(line) || min(path) || count(ino) FROM resolve("
		 "'/a' || char(10) || replace(hex(zeroblob(200000)), '00', '/./..') || "
		 "char(10) || char(10) || '/nope')",
		 "42", 200000 * 5},
		{"SELECT max(line) || ' ' || count(ino) || ' ' || max(path) FROM resolve("
		 "replace(hex(zeroblob(200000)), '00', './') || "
		 "replace(hex(zeroblob(1000)), '00', char(10)) || '/a')",
		 "1001 2 /a", 200000 * 2},
	};
	char text[1024];

	for (size_t i = 0; i < PFS_COUNT(cases); i++) {
		count_anew();
		query_text(text, sizeof(text), cases[i].sql);
		assert_string_equal(text, cases[i].rows);
		assert_in_range(holds, cases[i].bytes / PFS_RESOLVE_HELD_BYTES, UINT_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scans_and_operators_share_threads),
		cmocka_unit_test(large_memory_is_freed_after_the_hold),
		cmocka_unit_test(memory_is_put_off_up_to_a_limit),
		cmocka_unit_test(an_order_is_looked_at_in_pieces),
		cmocka_unit_test(pieces_let_others_have_the_tree),
		cmocka_unit_test(few_attributes_are_read_in_one_hold),
		cmocka_unit_test(an_index_goes_after_the_hold),
		cmocka_unit_test(a_change_in_a_pause_is_seen_wholly_or_not),
		cmocka_unit_test(depths_and_references_have_small_pages),
		cmocka_unit_test(ranges_are_not_cleared_in_one_hold),
		cmocka_unit_test(an_engine_counts_when_the_tree_has_been_let_go),
		cmocka_unit_test(pieces_of_a_listing_let_others_have_the_tree),
		cmocka_unit_test(a_change_between_pieces_is_not_listed),
		cmocka_unit_test(a_listing_is_measured_in_pieces),
		cmocka_unit_test(a_part_of_long_paths_is_resolved_in_one_hold),
	};

	return cmocka_run_group_tests(tests, set_up_files, tear_down);
}
