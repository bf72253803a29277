/* SPDX-License-Identifier: MIT */
/* The newest mtime of a directory with more children than fs/image/newest_child.h remembers. */
#include "totals_util.h"

#define WIDE 20000u

static uint64_t wide, files[WIDE];
static int64_t mtimes[WIDE];		/* seconds; INT64_MIN: removed */
static unsigned listed[WIDE], n_listed; /* as readdir, and the search for the newest, meet them */

static int list(void *arg, const struct pfs_dirent *entry)
{
	(void)arg;
	if (*entry->name != '.')
		listed[n_listed++] = (unsigned)strtoul(entry->name, NULL, 10);
	return 0;
}

/* All are made, and none is newer than they will be: the directory's own time is old. */
static void make_wide(int64_t (*first)(unsigned i))
{
	char name[16];

	open_new();
	wide = make_in(ROOT, "wide", S_IFDIR | 0755);
	for (unsigned i = 0; i < WIDE; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		files[i] = make_in(wide, name, S_IFREG | 0644);
		mtimes[i] = first(i);
		set_mtime(files[i], mtimes[i], 0);
	}
	set_mtime(wide, -1, 0);
	set_mtime(ROOT, -1, 0);
	n_listed = 0;
	assert_int_equal(pfs_tree_readdir(tree, wide, 0, false, list, NULL), 0);
	assert_int_equal(n_listed, WIDE);
	check_all();
}

/* A file becomes another time. */
static void change(unsigned i, int64_t sec)
{
	mtimes[i] = sec;
	set_mtime(files[i], sec, 0);
}

static void expect_newest(int64_t sec)
{
	struct pfs_totals totals;

	assert_int_equal(pfs_tree_totals(tree, &totals, ROOT), 0);
	assert_int_equal(totals.mtime, sec * SECOND);
}

static int64_t all_alike(unsigned i)
{
	(void)i;
	return 1000000;
}

/* One after the other goes back: the others are as new as before. */
static void test_all_alike(void **state)
{
	(void)state;
	make_wide(all_alike);
	for (unsigned i = 0; i < WIDE; i++) {
		change(listed[i], i % 3);
		expect_newest(i < WIDE - 1 ? 1000000 : 2);
	}
	check_all();
	end();
}

static int64_t half_alike(unsigned i)
{
	return i % 2 ? 1000000 : i;
}

static void test_half_alike(void **state)
{
	(void)state;
	make_wide(half_alike);
	for (unsigned i = 0, left = WIDE / 2; i < WIDE; i++) {
		if (listed[i] % 2 == 0)
			continue;
		change(listed[i], 0);
		expect_newest(--left ? 1000000 : WIDE - 2);
	}
	check_all();
	end();
}

static int64_t scattered(unsigned i)
{
	return (int64_t)i * 7919 % WIDE;
}

/* The newest always goes back, or away, or to where it no longer counts. */
static void test_newest_goes(void **state)
{
	static unsigned by_time[WIDE];
	uint64_t other;

	(void)state;
	make_wide(scattered);
	other = make_in(ROOT, "other", S_IFDIR | 0755);
	for (unsigned i = 0; i < WIDE; i++)
		by_time[mtimes[i]] = i;
	for (unsigned time = WIDE; time-- > 1;) {
		unsigned i = by_time[time];
		char name[16];

		(void)snprintf(name, sizeof(name), "%u", i);
		if (time % 3 == 0)
			change(i, 0);
		else if (time % 3 == 1)
			assert_int_equal(pfs_tree_unlink(tree, wide, name), 0);
		else
			assert_int_equal(pfs_tree_rename(tree, wide, name, other, name, 0), 0);
		set_mtime(wide, -1, 0);
		set_mtime(other, -1, 0);
		if (time % 3 == 2)
			change(i, 0);
		set_mtime(ROOT, -1, 0);
		expect_newest(time - 1);
		if (time % 16 == 0)
			assert_true(totals_are_right(tree));
	}
	check_all();
	end();
}

static void test_random(void **state)
{
	static const unsigned ranges[] = {3, 1000, 1000000};
	unsigned rounds = getenv("PFS_TEST_SMALL") ? 3000 : 30000;
	uint64_t random = seed;
	char name[16];

	(void)state;
	make_wide(scattered);
	for (unsigned n = 0; n < rounds; n++) {
		unsigned i = random_below(&random, n % 2 ? WIDE : 50);

		(void)snprintf(name, sizeof(name), "%u", i);
		if (n % 100 == 99 && mtimes[i] != INT64_MIN) {
			assert_int_equal(pfs_tree_unlink(tree, wide, name), 0);
			pfs_tree_forget(tree, files[i], 1);
			mtimes[i] = INT64_MIN;
			set_mtime(wide, -1, 0);
			set_mtime(ROOT, -1, 0);
		} else if (mtimes[i] == INT64_MIN) {
			files[i] = make_in(wide, name, S_IFREG | 0644);
			change(i, -1);
			set_mtime(wide, -1, 0);
			set_mtime(ROOT, -1, 0);
		} else {
			change(i, random_below(&random, ranges[n / 500 % 3]));
		}
		if (n % 16 == 0)
			assert_true(totals_are_right(tree));
	}
	check_all();
	end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_alike),
		cmocka_unit_test(test_half_alike),
		cmocka_unit_test(test_newest_goes),
		cmocka_unit_test(test_random),
	};

	take_seed(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
