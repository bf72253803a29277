/* SPDX-License-Identifier: MIT */
/* A build puts into a store what was added: whatever the order, slots in pre-order, the smallest
 * primes for the heaviest directories; and nothing when it is given up. */
#include "build_util.h"

#include <dirent.h>

#include "fs/image/image.h"

static void an_empty_build_is_a_root(void **state PFS_UNUSED)
{
	complete(open_build(NULL));
	load();
	assert_int_equal(n_records, 1);
	assert_int_equal(records[0].prime, 2);
	assert_int_equal(records[0].mode, S_IFDIR | 0755);
	assert_int_equal(records[0].slot, 0);
	assert_int_equal(records[0].mtime.sec, 1000);
}

static void slots_are_in_pre_order_and_primes_by_weight(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);
	static const char *const in_order[] = {"",	     "a",	"a/x",	   "a.b",
					       "heavy",	     "heavy/1", "heavy/2", "heavy/in",
					       "heavy/in/3", "z",	"z/1"};
	size_t i;

	(void)add_path(build, "z/1");
	(void)add_path(build, "heavy/in/3");
	(void)add_path(build, "heavy/2");
	(void)add_path(build, "heavy/1");
	(void)add_path(build, "a.b");
	(void)add_path(build, "a/x");
	assert_int_equal(pfs_build_count(build), 11);
	complete(build);
	load();
	assert_int_equal(n_records, 11);
	for (i = 0; i < PFS_COUNT(in_order); i++)
		assert_int_equal(by_path(in_order[i])->slot, i);
	assert_int_equal(by_path("heavy")->prime, 3);
	assert_int_equal(by_path("a")->prime, 5); /* as heavy as the next two, but the first */
	assert_int_equal(by_path("heavy/in")->prime, 7);
	assert_int_equal(by_path("z")->prime, 11);
	assert_int_equal(by_path("a/x")->prime, UINT64_C(4294967311)); /* the first above 2^32 */
	assert_int_equal(by_path("a/x")->mode, S_IFREG | 0644);
	assert_int_equal(by_path("heavy/in")->mode, S_IFDIR | 0755);
}

static void names_are_bytes(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);
	char longest[PFS_NAME_MAX + 2], name[2] = {0};
	enum pfs_build_seen seen;
	uint32_t node, again;
	int c;

	for (c = 1; c < 256; c++) {
		name[0] = (char)c;
		if (c != '/' && c != '.')
			(void)add(build, PFS_BUILD_ROOT, name, NULL);
	}
	(void)memset(longest, 'n', sizeof(longest));
	assert_int_equal(pfs_build_add(build, &node, &seen, 0, longest, PFS_NAME_MAX, NULL), 0);
	assert_int_equal(seen, PFS_BUILD_NEW);
	assert_int_equal(pfs_build_add(build, &again, &seen, 0, longest, PFS_NAME_MAX, NULL), 0);
	assert_int_equal(seen, PFS_BUILD_AGAIN);
	assert_int_equal(again, node);
	assert_int_equal(pfs_build_find(build, &again, 0, longest, PFS_NAME_MAX), 0);
	assert_int_equal(again, node);
	assert_int_equal(pfs_build_find(build, &again, 0, longest, 17), -ENOENT);
	assert_int_equal(pfs_build_add(build, &node, &seen, 0, longest, PFS_NAME_MAX + 1, NULL),
			 -ENAMETOOLONG);
	assert_int_equal(pfs_build_add(build, &node, &seen, 0, "", 0, NULL), -EINVAL);
	assert_int_equal(pfs_build_add(build, &node, &seen, 0, ".", 1, NULL), -EINVAL);
	assert_int_equal(pfs_build_add(build, &node, &seen, 0, "..", 2, NULL), -EINVAL);
	assert_int_equal(pfs_build_add(build, &node, &seen, 0, "a/b", 3, NULL), -EINVAL);
	assert_int_equal(pfs_build_add(build, &node, &seen, 0, "a\0b", 3, NULL), -EINVAL);
	complete(build);
	load();
	assert_int_equal(n_records, 1 + 253 + 1);
	assert_non_null(by_path("\xff"));
	assert_true(by_path("\x01")->slot < by_path("\x7f")->slot);
	assert_true(by_path("\x7f")->slot < by_path("\x80")->slot);
}

static void attributes_targets_and_flags_are_kept(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);
	struct stat attr = {.st_mode = S_IFREG | 04751, .st_size = 12345, .st_blocks = 24};
	uint32_t file = add(build, PFS_BUILD_ROOT, "file", &attr), link, implied;
	struct pfs_build_report report;

	attr.st_mode = S_IFLNK | 0777;
	link = add(build, PFS_BUILD_ROOT, "link", &attr);
	assert_int_equal(pfs_build_set_target(build, link, "old", 3), 0);
	assert_int_equal(pfs_build_set_target(build, link, "where/to", 8), 0);
	attr.st_mode = S_IFREG | 0640;
	implied = add(build, PFS_BUILD_ROOT, "implied", &attr);
	(void)add(build, implied, "child", NULL);
	attr.st_mode = S_IFDIR | 01777;
	assert_int_equal(pfs_build_set(build, PFS_BUILD_ROOT, &attr), 0);
	attr.st_mode = S_IFREG | 0600;
	assert_int_equal(pfs_build_set(build, PFS_BUILD_ROOT, &attr), -EISDIR);
	assert_int_equal(pfs_build_set(build, implied, &attr), -EISDIR);
	pfs_build_set_flags(build, file, PFS_NODE_NODATA | PFS_NODE_ATTRS, 0);
	pfs_build_set_flags(build, file, 0, PFS_NODE_ATTRS);
	assert_int_equal(pfs_build_finish(build), 0);
	pfs_build_report(build, &report);
	assert_int_equal(report.nodes, 5);
	assert_int_equal(report.directories, 2);
	assert_int_equal(report.bytes, 12345 + 8);
	assert_int_equal(pfs_build_commit(build), 0);
	pfs_build_close(build);
	load();
	assert_int_equal(by_path("file")->mode, S_IFREG | 04751);
	assert_int_equal(by_path("file")->size, 12345);
	assert_int_equal(by_path("file")->flags, PFS_NODE_NODATA);
	assert_string_equal(by_path("link")->target, "where/to");
	assert_int_equal(by_path("link")->size, 8);
	assert_int_equal(by_path("implied")->mode, S_IFDIR | 0750);
	assert_int_equal(by_path("")->mode, S_IFDIR | 01777);
}

static void what_is_fixed_has_its_prime_at_once(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);
	uint32_t a = add(build, PFS_BUILD_ROOT, "a", NULL),
		 b = add(build, PFS_BUILD_ROOT, "b", NULL);
	uint32_t c = add(build, PFS_BUILD_ROOT, "c", NULL), node;
	uint64_t prime_a, prime_b, again;
	enum pfs_build_seen seen;

	assert_int_equal(pfs_build_fix(build, &prime_b, b), 0);
	assert_int_equal(pfs_build_fix(build, &prime_a, a), 0);
	assert_int_equal(pfs_build_fix(build, &again, b), 0);
	assert_true(again == prime_b && prime_b < prime_a && prime_b > UINT32_MAX);
	assert_int_equal(pfs_build_prime(build, a), prime_a);
	assert_int_equal(pfs_build_prime(build, c), 0);
	assert_int_equal(pfs_store_put_chunk(pfs_build_store(build), prime_a, 0, "x", 1), 0);
	assert_int_equal(pfs_build_add(build, &node, &seen, a, "in", 2, NULL), -ENOTDIR);
	pfs_build_unfix(build, b);
	assert_int_equal(pfs_build_prime(build, b), 0);
	(void)add(build, b, "in", NULL);
	assert_int_equal(pfs_build_fix(build, &again, b), -EISDIR);
	pfs_build_unfix(build, a);
	assert_int_equal(pfs_build_fix(build, &again, a), 0);
	assert_true(again > prime_a);
	assert_int_equal(pfs_store_remove_chunks(pfs_build_store(build), prime_a, 0, 1), 0);
	complete(build);
	load();
	assert_int_equal(n_records, 5);
	assert_int_equal(by_path("a")->prime, again);
	assert_int_equal(by_path("b")->prime, 3);
}

struct told {
	uint64_t last;
	size_t n;
};

static int told_of(void *arg, uint32_t node, uint64_t prime)
{
	struct told *told = arg;

	assert_true(prime > told->last);
	assert_true((node == PFS_BUILD_ROOT) == (prime == PFS_ROOT_PRIME));
	told->last = prime;
	told->n++;
	return told->n == 4 ? 77 : 0;
}

static void the_writer_is_told_in_order_of_primes(void **state PFS_UNUSED)
{
	struct told told = {0};
	const struct pfs_build_options options = {
		.defaults = plain, .arg = &told, .written = told_of};
	struct pfs_build *build;
	struct stat attr;

	assert_int_equal(pfs_build_open(&build, test_path, &options), 0);
	(void)add_path(build, "b/2");
	(void)add_path(build, "a/1");
	(void)add_path(build, "c");
	assert_int_equal(pfs_build_finish(build), 77);
	assert_int_equal(told.n, 4);
	pfs_build_close(build);
	assert_int_equal(stat(test_path, &attr), -1);
}

#define MANY 9000u /* nodes, of which some thousands are written together */

struct numbers {
	uint32_t stop; /* the node after which the build ends; 0: none */
	size_t n;
	bool numbered[MANY + 1];
};

static void number_of(void *arg, uint32_t node, struct pfs_node_record *record)
{
	struct numbers *numbers = arg;

	numbers->numbered[node] = true;
	record->size += MANY;
}

static int numbered_of(void *arg, uint32_t node, uint64_t prime PFS_UNUSED)
{
	struct numbers *numbers = arg;

	assert_true(numbers->numbered[node]);
	return ++numbers->n == numbers->stop ? 77 : 0;
}

/* finish() makes records on one thread while it writes others. */
static void each_of_many_records_is_its_nodes(void **state PFS_UNUSED)
{
	for (unsigned round = 0; round < 2; round++) {
		struct numbers numbers = {.stop = round ? 0 : MANY / 2};
		const struct pfs_build_options options = {.defaults = plain,
							  .arg = &numbers,
							  .number = number_of,
							  .written = numbered_of};
		struct pfs_build *build;

		assert_int_equal(pfs_build_open(&build, test_path, &options), 0);
		for (unsigned i = 1; i <= MANY; i++) {
			struct stat attr = {.st_mode = S_IFREG | 0600, .st_size = i};
			char name[16];

			(void)snprintf(name, sizeof(name), "%u", i * 7919 % MANY);
			assert_int_equal(add(build, PFS_BUILD_ROOT, name, &attr), i);
		}
		if (numbers.stop) {
			assert_int_equal(pfs_build_finish(build), 77);
			assert_int_equal(numbers.n, numbers.stop);
			pfs_build_close(build);
			continue;
		}
		complete(build);
		assert_int_equal(numbers.n, MANY + 1);
		load();
		assert_int_equal(n_records, MANY + 1);
		for (size_t i = 1; i < n_records;
		     i++) { /* slots are in the order of names, as primes of files are */
			assert_int_equal(records[i].slot, i);
			assert_true(i == 1 || strcmp(records[i - 1].name, records[i].name) < 0);
			assert_int_equal((unsigned)(records[i].size - MANY) * 7919 % MANY,
					 strtoul(records[i].name, NULL, 10));
		}
	}
}

static size_t entries(void)
{
	DIR *dir = opendir(test_folder);
	struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(dir)) != NULL)
		n += entry->d_name[0] != '.';
	(void)closedir(dir);
	return n;
}

static void nothing_remains_of_what_was_given_up(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);
	char stale[128];
	FILE *file;

	(void)add_path(build, "a/b");
	assert_non_null(pfs_build_temporary(build));
	assert_int_equal(entries(), 1);
	assert_int_equal(pfs_build_finish(build), 0);
	pfs_build_close(build);
	assert_int_equal(entries(), 0);
	/* nor of one that was killed */
	(void)snprintf(stale, sizeof(stale), "%s.part-%d", test_path, 2000000000);
	file = fopen(stale, "w");
	(void)fclose(file);
	complete(open_build(NULL));
	assert_int_equal(entries(), 1);
}

static void a_store_is_never_replaced(void **state PFS_UNUSED)
{
	const struct pfs_build_options options = {.defaults = plain};
	struct pfs_build *build = open_build(NULL), *other;
	FILE *file;

	assert_int_equal(pfs_build_finish(build), 0);
	file = fopen(test_path, "w"); /* somebody else was quicker */
	(void)fclose(file);
	assert_int_equal(pfs_build_commit(build), -EEXIST);
	pfs_build_close(build);
	assert_int_equal(entries(), 1);
	assert_int_equal(pfs_build_open(&other, test_path, &options), -EEXIST);
	assert_null(other);
}

static void an_existing_store_is_added_to(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);
	const struct pfs_build_options later = {
		.at = "/old/new//deep/",
		.defaults = {.st_mode = 0600, .st_mtim = {.tv_sec = 2000}},
	};
	const struct pfs_build_options wrong = {.at = "/old/file/x", .defaults = plain};
	enum pfs_build_seen seen;
	uint64_t old_prime;
	uint32_t node;

	(void)add_path(build, "old/file");
	complete(build);
	load();
	old_prime = by_path("old/file")->prime;
	assert_int_equal(pfs_build_open(&build, test_path, &wrong), -ENOTDIR);
	assert_null(build);
	assert_int_equal(pfs_build_open(&build, test_path, &later), 0);
	assert_null(pfs_build_temporary(build));
	(void)add_path(build, "sub/more");
	assert_int_equal(pfs_build_count(build), 4);
	complete(build);

	build = open_build("/");
	assert_int_equal(pfs_build_add(build, &node, &seen, 0, "old", 3, NULL), 0);
	assert_int_equal(seen, PFS_BUILD_STORED);
	assert_true(pfs_build_is_directory(build, node));
	assert_int_equal(pfs_build_add(build, &node, &seen, node, "file", 4, NULL), 0);
	assert_int_equal(seen, PFS_BUILD_STORED);
	assert_int_equal(pfs_build_prime(build, node), old_prime);
	assert_int_equal(pfs_build_add(build, &node, &seen, node, "x", 1, NULL), -ENOTDIR);
	complete(build);

	load();
	assert_int_equal(n_records, 7);
	assert_int_equal(by_path("old/file")->prime, old_prime);
	assert_int_equal(by_path("old/file")->slot, 2);
	assert_int_equal(by_path("old/new")->slot, 3);
	assert_int_equal(by_path("old/new/deep/sub/more")->slot, 6);
	assert_int_equal(by_path("old/new/deep/sub/more")->mode, S_IFREG | 0600);
	assert_int_equal(by_path("old")->mtime.sec, 2000);
	assert_int_equal(by_path("old")->mode, S_IFDIR | 0755);
	assert_int_equal(by_path("")->mtime.sec, 1000);
}

static void giving_up_leaves_an_existing_store_alone(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);

	(void)add_path(build, "a");
	complete(build);
	build = open_build("/new");
	(void)add_path(build, "b");
	assert_int_equal(pfs_build_finish(build), 0);
	pfs_build_close(build);
	load();
	assert_int_equal(n_records, 2);
	assert_int_equal(entries(), 1);
}

static void query_is_stored_under_another_name(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);
	struct pfs_build_report report;
	uint32_t node = add(build, PFS_BUILD_ROOT, ".query", NULL), again;
	char path[64];

	assert_int_equal(pfs_build_find(build, &again, PFS_BUILD_ROOT, ".query", 6), 0);
	assert_int_equal(again, node);
	again = add(build, add(build, node, "in", NULL), "deep", NULL);
	assert_int_equal(pfs_build_path(build, path, sizeof(path), again), 14);
	assert_string_equal(path, ".query/in/deep");
	assert_int_equal(pfs_build_path(build, path, 15, again), 14);
	assert_int_equal(pfs_build_path(build, path, 14, again), -ENAMETOOLONG);
	assert_int_equal(pfs_build_path(build, path, sizeof(path), PFS_BUILD_ROOT), 0);
	assert_string_equal(path, "");
	assert_int_equal(pfs_build_finish(build), 0);
	pfs_build_report(build, &report);
	assert_int_equal(report.renamed_query, 1);
	assert_int_equal(pfs_build_commit(build), 0);
	pfs_build_close(build);
	load();
	assert_non_null(by_path(".query~"));
}

static void both_names_of_query_are_one_too_many(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);
	uint32_t one = add(build, PFS_BUILD_ROOT, "one", NULL);
	uint32_t other = add(build, PFS_BUILD_ROOT, "other", NULL), node;
	enum pfs_build_seen seen;

	(void)add(build, one, ".query", NULL);
	(void)add(build, one, ".query", NULL);
	assert_int_equal(pfs_build_add(build, &node, &seen, one, ".query~", 7, NULL), -ENOTUNIQ);
	(void)add(build, other, ".query~", NULL);
	assert_int_equal(pfs_build_add(build, &node, &seen, other, ".query", 6, NULL), -ENOTUNIQ);
	complete(build);
	/* in a store, what is called so may have come as either */
	build = open_build("/one");
	(void)add(build, PFS_BUILD_ROOT, ".query", NULL);
	(void)add(build, PFS_BUILD_ROOT, ".query~", NULL);
	complete(build);
}

static uint64_t more_slots; /* than the store has */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_pfs_store_totals(struct pfs_store *store, struct pfs_store_totals *out);
int __wrap_pfs_store_totals(struct pfs_store *store, struct pfs_store_totals *out);
int __wrap_pfs_store_totals(struct pfs_store *store, struct pfs_store_totals *out)
{
	int error = __real_pfs_store_totals(store, out);

	out->end_slot += more_slots;
	return error;
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* The image of a store with more slots could not be loaded. */
static void no_slot_is_beyond_those_of_an_image(void **state PFS_UNUSED)
{
	struct pfs_build *build = open_build(NULL);

	complete(build);
	more_slots = PFS_SLOT_MAX - 2;
	build = open_build("/");
	(void)add(build, PFS_BUILD_ROOT, "one", NULL);
	assert_int_equal(pfs_build_finish(build), 0);
	pfs_build_close(build);
	build = open_build("/");
	(void)add(build, PFS_BUILD_ROOT, "one", NULL);
	(void)add(build, PFS_BUILD_ROOT, "too many", NULL);
	assert_int_equal(pfs_build_finish(build), -EOVERFLOW);
	pfs_build_close(build);
	more_slots = 0;
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup(function, fresh)
	const struct CMUnitTest tests[] = {
		TEST(an_empty_build_is_a_root),
		TEST(slots_are_in_pre_order_and_primes_by_weight),
		TEST(names_are_bytes),
		TEST(attributes_targets_and_flags_are_kept),
		TEST(what_is_fixed_has_its_prime_at_once),
		TEST(the_writer_is_told_in_order_of_primes),
		TEST(each_of_many_records_is_its_nodes),
		TEST(nothing_remains_of_what_was_given_up),
		TEST(a_store_is_never_replaced),
		TEST(an_existing_store_is_added_to),
		TEST(giving_up_leaves_an_existing_store_alone),
		TEST(query_is_stored_under_another_name),
		TEST(both_names_of_query_are_one_too_many),
		TEST(no_slot_is_beyond_those_of_an_image),
	};
	int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);

	free(records);
	return failed;
}
