/* SPDX-License-Identifier: MIT */
/* Lists of paths: what they mean, typed columns, what is wrong and in which line. */
#include "tests/unit/import_util.h"

#include "meta/store.h"
#include "tools/import/import_paths.h"

static const struct pfs_import_options paths = {.format = &pfs_import_paths};

static void paths_fold_and_imply(void **state PFS_UNUSED)
{
	assert_int_equal(import_text(&paths, "/usr/bin/ls\nusr/bin/cat\n./usr/lib//x///y\n"
					     "usr/./bin/ls\n\netc/\n.\n/\nlast"),
			 0);
	assert_string_equal(tree_text(), "etc/ last usr/ usr/bin/ usr/bin/cat usr/bin/ls usr/lib/ "
					 "usr/lib/x/ usr/lib/x/y");
	assert_int_equal(import_text(&paths, ""), 0);
	assert_string_equal(tree_text(), "");
}

static void a_prefix_becomes_a_directory(void **state PFS_UNUSED)
{
	const struct pfs_import_options options = {.format = &pfs_import_paths, .columns = "n"};

	assert_int_equal(import_text(&options, "a\t1\na/b\t2\na/b/c\t3\n"), 0);
	assert_string_equal(tree_text(), "a/ a/b/ a/b/c");
	assert_string_equal(attr_text("/a", "user.n"), "1");
	assert_string_equal(attr_text("/a/b", "user.n"), "2");
	assert_string_equal(attr_text("/a/b/c", "user.n"), "3");
	assert_int_equal(import_text(&options, "x/y\t1\nx\t2\n/\t3\nx/y\t4\n"), 0);
	assert_string_equal(attr_text("/x", "user.n"), "2");
	assert_string_equal(attr_text("/x/y", "user.n"), "4");
	assert_string_equal(attr_text("/", "user.n"), "3");
}

static void names_are_bytes(void **state PFS_UNUSED)
{
	const struct pfs_import_options options = {.format = &pfs_import_paths, .nul_ended = true};
	static const char list[] = "a\nb\0c/\xff\xfe\0tab\there\0.query\0...\0";

	assert_int_equal(run_import(&options, list, sizeof(list) - 1), 0);
	assert_string_equal(tree_text(), "... .query~ a\nb c/ c/\xff\xfe tab\there");
}

static void wrong_lines_are_named(void **state PFS_UNUSED)
{
	struct pfs_import_options options = {.format = &pfs_import_paths};
	char list[1024];

	assert_int_equal(import_text(&options, "ok\nalso/ok\na/../b\n"), 3);
	assert_non_null(strstr(said, "memory:3: "));
	assert_int_equal(access(test_path, F_OK), -1);
	(void)snprintf(list, sizeof(list), "x\nd/%0256d/y\n", 0);
	assert_int_equal(import_text(&options, list), 3);
	assert_non_null(strstr(said, "memory:2: a name is longer than 255"));
	assert_int_equal(run_import(&options, "a\nb\0c\n", 6), 3);
	assert_non_null(strstr(said, "memory:2: "));

	options.skip = true;
	(void)snprintf(list, sizeof(list), "x\nd/%0256d/y\nz/../q\n..\nlast\n", 0);
	assert_int_equal(import_text(&options, list), 1);
	assert_non_null(strstr(said, "memory:2: "));
	assert_non_null(strstr(said, "memory:3: "));
	assert_non_null(strstr(said, "memory:4: "));
	assert_string_equal(tree_text(), "last x");
	assert_int_equal(import_text(&options, "d/.query/x\nd/.query~\nlast\n"), 1);
	assert_non_null(strstr(said, "memory:2: .query is stored as .query~"));
	assert_string_equal(tree_text(), "d/ d/.query~/ d/.query~/x last");
}

static enum pfs_attr_type types[8];

static int take_type(void *arg, const void *name PFS_UNUSED, size_t name_len PFS_UNUSED,
		     enum pfs_attr_type type)
{
	types[(*(size_t *)arg)++] = type;
	return 0;
}

static void types_are_inferred(void **state PFS_UNUSED)
{
	const struct pfs_import_options options = {
		.format = &pfs_import_paths,
		.columns = "int,real,code,mixed,none,forced:real,asked:text",
	};
	struct pfs_store *store;
	size_t n = 0;

	assert_int_equal(import_text(&options, "a\t1\t2.5\t007\t1\t\t1\t5\n"
					       "b\t-7\t1e-05\t12\t2.5\t\t2.50\t6\n"
					       "c\t\t3.0\t13\t\t\t\t\n"
					       "d\n"
					       "e\t9223372036854775807\n"),
			 0);
	store = open_as(PFS_STORE_READ_ONLY);
	assert_int_equal(pfs_store_scan_columns(store, take_type, &n), 0);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(n, 7);
	assert_int_equal(types[0], PFS_ATTR_INTEGER);
	assert_int_equal(types[1], PFS_ATTR_REAL);
	assert_int_equal(types[2], PFS_ATTR_TEXT);
	assert_int_equal(types[3], PFS_ATTR_TEXT); /* "1" would print as "1.0" */
	assert_int_equal(types[4], PFS_ATTR_TEXT);
	assert_int_equal(types[5], PFS_ATTR_REAL);
	assert_int_equal(types[6], PFS_ATTR_TEXT);
	assert_string_equal(attr_text("/a", "user.code"), "007");
	assert_string_equal(attr_text("/b", "user.real"), "1e-05");
	assert_string_equal(attr_text("/b", "user.forced"), "2.5");
	assert_string_equal(attr_text("/c", "user.real"), "3.0");
	assert_string_equal(attr_text("/c", "user.int"), "-");
	assert_string_equal(attr_text("/d", "user.int"), "-");
	assert_string_equal(attr_text("/e", "user.int"), "9223372036854775807");
}

static void wrong_columns_are_named(void **state PFS_UNUSED)
{
	struct pfs_import_options options = {.format = &pfs_import_paths, .columns = "n:int,t"};

	assert_int_equal(import_text(&options, "a\t1\tx\nb\tx\n"), 3);
	assert_non_null(strstr(said, "memory:2: the value of 'n' is no integer"));
	assert_int_equal(import_text(&options, "a\t9223372036854775808\n"), 3);
	assert_int_equal(import_text(&options, "a\t1\tx\ty\n"), 3);
	assert_non_null(strstr(said, "memory:1: more fields"));
	assert_int_equal(import_text(&options, "\t1\n"), 3);
	options.skip = true;
	assert_int_equal(import_text(&options, "a\t1\nb\tx\nc\t2\n"), 1);
	assert_string_equal(tree_text(), "a c");
	options.columns = "r:real";
	assert_int_equal(import_text(&options, "a\t0x1\nb\tnan\nc\t1e999\nd\t-inf\ne\t1e-999\n"),
			 1);
	assert_non_null(strstr(said, "memory:1: the value of 'r' is no real"));
	assert_string_equal(tree_text(), "d e");
	assert_string_equal(attr_text("/d", "user.r"), "-inf");
	options.columns = "a,,b";
	assert_int_equal(import_text(&options, "x\n"), 3);
	options.columns = "a:blob";
	assert_int_equal(import_text(&options, "x\n"), 3);
	options.columns = "a,a";
	assert_int_equal(import_text(&options, "x\n"), 3);
	options.columns = "primefs.code";
	assert_int_equal(import_text(&options, "x\n"), 3);
}

static void at_adds_to_a_store(void **state PFS_UNUSED)
{
	struct pfs_import_options options = {.format = &pfs_import_paths, .at = "/d"};

	assert_int_equal(import_text(&paths, "d/old\nf\n"), 0);
	assert_int_equal(import_text(&options, "new/x\nmore\n"), 0);
	assert_string_equal(tree_text(), "d/ d/more d/new/ d/new/x d/old f");
	assert_int_equal(import_text(&options, "ok\nold\n"), 3);
	assert_non_null(strstr(said, "memory:2: is in the store already"));
	assert_int_equal(import_text(&options, "old/x\n"), 3);
	assert_string_equal(tree_text(), "d/ d/more d/new/ d/new/x d/old f");
	options.at = "/f";
	assert_int_equal(import_text(&options, "x\n"), 3);
	options.at = "/";
	options.columns = "n";
	assert_int_equal(import_text(&options, "d\t7\n"), 0); /* a directory may get attributes */
	assert_string_equal(attr_text("/d", "user.n"), "7");
}

static void an_existing_store_is_left_alone(void **state PFS_UNUSED)
{
	struct pfs_import import = {
		.options = {.format = &pfs_import_paths, .store = test_path, .quiet = true},
		.say = keep_message,
	};

	assert_int_equal(import_text(&paths, "a\n"), 0);
	said[0] = 0;
	assert_int_equal(pfs_input_open_memory(&import.input, "b\n", 2), 0);
	assert_int_equal(pfs_import_run(&import), 3);
	pfs_input_close(&import.input);
	assert_non_null(strstr(said, "exists already"));
	assert_string_equal(tree_text(), "a");
}

/* The trail of the last path must not change what a path means. */
static void neighbours_do_not_matter(void **state PFS_UNUSED)
{
	static const char *const words[] = {"a", "ab", "b", "", ".", "a", "abc", "bb"};
	struct pfs_build *build;
	struct pfs_path_trail trail = {0};
	uint64_t seed = 20240607;
	unsigned round;

	print_message("seed %llu\n", (unsigned long long)seed);
	(void)unlink(test_path);
	assert_int_equal(pfs_build_open(&build, test_path,
					&(struct pfs_build_options){.defaults = {.st_mode = 0644}}),
			 0);
	for (round = 0; round < 50000; round++) {
		struct pfs_path_trail fresh = {0};
		struct pfs_path_node with, without;
		uint32_t found;
		char path[64];
		size_t len = 0, i;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		for (i = 0; i <= (seed >> 61); i++)
			len += (size_t)snprintf(path + len, sizeof(path) - len, "%s%s",
						i ? "/" : "",
						words[(seed >> (20 + 3 * i)) % PFS_COUNT(words)]);
		assert_int_equal(pfs_path_add(&trail, &with, build, path, len), 0);
		assert_int_equal(pfs_path_add(&fresh, &without, build, path, len), 0);
		assert_int_equal(with.node, without.node);
		assert_int_equal(pfs_path_find(build, &found, path, len), 0);
		assert_int_equal(found, with.node);
		pfs_path_free(&fresh);
	}
	pfs_path_free(&trail);
	pfs_build_close(build);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_fold_and_imply),
		cmocka_unit_test(a_prefix_becomes_a_directory),
		cmocka_unit_test(names_are_bytes),
		cmocka_unit_test(wrong_lines_are_named),
		cmocka_unit_test(types_are_inferred),
		cmocka_unit_test(wrong_columns_are_named),
		cmocka_unit_test(at_adds_to_a_store),
		cmocka_unit_test(an_existing_store_is_left_alone),
		cmocka_unit_test(neighbours_do_not_matter),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
