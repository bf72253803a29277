/* SPDX-License-Identifier: MIT */
/* Extended attributes: names, limits, types, and a random test against a table. */
#include "content_util.h"

#include <gmp.h>
#include <linux/limits.h>
#include <sys/xattr.h>

static char value[PFS_ATTR_VALUE_MAX + 2], list[XATTR_LIST_MAX];

static int try_set(uint64_t ino, const char *name, const char *text, int flags)
{
	return pfs_tree_setxattr(tree, ino, name, text, strlen(text), flags);
}

static void set(uint64_t ino, const char *name, const char *text)
{
	assert_int_equal(try_set(ino, name, text, 0), 0);
}

static void check(uint64_t ino, const char *name, const char *text)
{
	ssize_t len = (ssize_t)strlen(text);

	assert_int_equal(pfs_tree_getxattr(tree, NULL, 0, ino, name), len);
	memset(value, 0x5a, sizeof(value));
	assert_int_equal(pfs_tree_getxattr(tree, value, sizeof(value), ino, name), len);
	assert_memory_equal(value, text, (size_t)len);
}

static void check_list(uint64_t ino, const char *names, size_t size)
{
	assert_int_equal(pfs_tree_listxattr(tree, NULL, 0, ino), size);
	assert_int_equal(pfs_tree_listxattr(tree, list, sizeof(list), ino), size);
	assert_memory_equal(list, names, size);
}
#define CHECK_LIST(ino, names) check_list(ino, names, sizeof(names) - 1)

static bool is_flagged(uint64_t ino)
{
	return has_flag(ino, PFS_NODE_ATTRS);
}

static void test_basics(void **state)
{
	uint64_t ino;

	(void)state;
	new_tree();
	ino = make_file("f");
	assert_false(is_flagged(ino));
	CHECK_LIST(ino, "");
	assert_int_equal(pfs_tree_getxattr(tree, value, 10, ino, "user.a"), -ENODATA);
	assert_int_equal(try_set(ino, "user.a", "1", XATTR_REPLACE), -ENODATA);
	assert_int_equal(pfs_tree_removexattr(tree, ino, "user.a"), -ENODATA);
	assert_int_equal(try_set(ino, "user.b", "two", XATTR_CREATE), 0);
	assert_int_equal(try_set(ino, "user.b", "two", XATTR_CREATE), -EEXIST);
	set(ino, "user.a", "1");
	set(ino, "user.c", "");
	set(PFS_ROOT_PRIME, "user.top", "yes");
	for (int pass = 0; pass < 3; pass++) {
		CHECK_LIST(ino, "user.a\0user.b\0user.c\0");
		check(ino, "user.a", "1");
		check(ino, "user.b", "two");
		check(ino, "user.c", "");
		check(PFS_ROOT_PRIME, "user.top", "yes");
		assert_int_equal(pfs_tree_getxattr(tree, value, 2, ino, "user.b"), -ERANGE);
		assert_int_equal(pfs_tree_listxattr(tree, list, 5, ino), -ERANGE);
		if (pass == 0)
			sync_tree();
		else
			reopen_tree();
	}
	assert_int_equal(try_set(ino, "user.b", "zwei", XATTR_REPLACE), 0);
	assert_int_equal(pfs_tree_removexattr(tree, ino, "user.a"), 0);
	reopen_tree();
	CHECK_LIST(ino, "user.b\0user.c\0");
	check(ino, "user.b", "zwei");
	assert_int_equal(pfs_tree_removexattr(tree, ino, "user.b"), 0);
	assert_int_equal(pfs_tree_removexattr(tree, ino, "user.c"), 0);
	assert_false(is_flagged(ino));
	CHECK_LIST(ino, "");
	reopen_tree();
	CHECK_LIST(ino, "");
	set(ino, "user.again", "1");
	check(ino, "user.again", "1");
	close_tree();
}

static void test_limits(void **state)
{
	char name[300] = "user.";
	uint64_t ino;
	int i;

	(void)state;
	new_tree();
	ino = make_file("f");
	assert_int_equal(try_set(ino, "user.", "x", 0), -EINVAL);
	assert_int_equal(try_set(ino, "trusted.a", "x", 0), -EOPNOTSUPP);
	assert_int_equal(try_set(ino, "security.capability", "x", 0), -EOPNOTSUPP);
	assert_int_equal(pfs_tree_getxattr(tree, value, 1, ino, "system.posix_acl_access"),
			 -EOPNOTSUPP);
	assert_int_equal(try_set(ino, "user.a", "x", XATTR_CREATE | XATTR_REPLACE), -EINVAL);
	assert_int_equal(try_set(ino, "user.a", "x", 64), -EINVAL);
	memset(name + 5, 'n', 251);
	assert_int_equal(try_set(ino, name, "x", 0), -ERANGE);
	name[255] = '\0';
	set(ino, name, "longest");
	memset(value, '\0', sizeof(value));
	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.big", value, PFS_ATTR_VALUE_MAX + 1, 0),
			 -E2BIG);
	value[7] = 'x';
	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.big", value, PFS_ATTR_VALUE_MAX, 0), 0);
	reopen_tree();
	check(ino, name, "longest");
	assert_int_equal(pfs_tree_getxattr(tree, value, sizeof(value), ino, "user.big"),
			 PFS_ATTR_VALUE_MAX);
	assert_int_equal(value[7], 'x');
	assert_int_equal(value[8], 0);
	for (i = 0; i < 1000; i++) { /* no more than can be listed */
		int error;

		(void)snprintf(name + 5, 250, "%0200d", i);
		error = try_set(ino, name, "", 0);
		if (error) {
			assert_int_equal(error, -ENOSPC);
			break;
		}
	}
	assert_in_range(i, 300, 320);
	assert_in_range(pfs_tree_listxattr(tree, list, sizeof(list), ino), 60000, 65536);
	close_tree();
}

static void test_virtual(void **state)
{
	static const char *const names[] = {"user.primefs.prime", "user.primefs.code",
					    "user.primefs.path", "user.primefs.ancestors"};
	struct pfs_entry entry;
	uint64_t above;
	char text[64];
	uint64_t ino;

	(void)state;
	new_tree();
	assert_int_equal(
		pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, "d", S_IFDIR | 0755, 0, &root_caller),
		0);
	above = entry.attr.st_ino;
	assert_int_equal(pfs_tree_make(tree, &entry, above, "f", S_IFREG | 0644, 0, &root_caller),
			 0);
	ino = entry.attr.st_ino;
	(void)snprintf(text, sizeof(text), "%" PRIu64, ino);
	check(ino, names[0], text);
	check(ino, names[2], "/d/f");
	(void)snprintf(text, sizeof(text), "2\n%" PRIu64 "\n", above);
	check(ino, names[3], text);
	check(PFS_ROOT_PRIME, names[3], "");
	assert_true(pfs_tree_getxattr(tree, value, sizeof(value), ino, names[1]) > 10);
	check(PFS_ROOT_PRIME, names[1], "2");
	for (size_t i = 0; i < PFS_COUNT(names); i++) {
		assert_int_equal(try_set(ino, names[i], "1", 0), -EPERM);
		assert_int_equal(pfs_tree_removexattr(tree, ino, names[i]), -EPERM);
	}
	assert_int_equal(pfs_tree_getxattr(tree, value, 9, ino, "user.primefs.x"), -ENODATA);
	set(ino, "user.prime", "mine");
	CHECK_LIST(ino, "user.prime\0");
	assert_int_equal(
		pfs_tree_symlink(tree, &entry, PFS_ROOT_PRIME, "l", "target", &root_caller), 0);
	assert_int_equal(try_set(entry.attr.st_ino, "user.a", "1", 0), -EPERM);
	assert_int_equal(pfs_tree_removexattr(tree, entry.attr.st_ino, "user.a"), -EPERM);
	check(entry.attr.st_ino, names[2], "/l");
	close_tree();
}

/* ---- what follows from the path, however long it is ---- */

static void check_path(const uint64_t *path, size_t n)
{
	char *lines = malloc(n * 21 + 1), *end = lines, *decimal;
	mpz_t code;

	assert_non_null(lines);
	mpz_init_set_ui(code, 1);
	for (size_t i = 0; i < n; i++) {
		mpz_mul_ui(code, code, (unsigned long)path[i]);
		if (i + 1 < n)
			end += sprintf(end, "%" PRIu64 "\n", path[i]);
	}
	*end = '\0';
	decimal = mpz_get_str(NULL, 10, code);
	check(path[n - 1], "user.primefs.ancestors", lines);
	check(path[n - 1], "user.primefs.code", decimal);
	mpz_clear(code);
	free(decimal);
	free(lines);
}

static void make_chain(uint64_t *path, size_t from, size_t to, const char *name)
{
	struct pfs_entry entry;

	for (size_t i = from; i < to; i++) {
		assert_int_equal(pfs_tree_make(tree, &entry, path[i - 1], name, S_IFDIR | 0755, 0,
					       &root_caller),
				 0);
		path[i] = entry.attr.st_ino;
	}
}

enum { CHAIN = 1000, CUT = 300 };

static void test_deep(void **state)
{
	uint64_t path[CHAIN] = {PFS_ROOT_PRIME}, moved[CHAIN];
	size_t n = 0;

	(void)state;
	new_tree();
	make_chain(path, 1, CHAIN, "d");
	for (size_t i = 1; i <= CHAIN; i += i < 20 ? 1 : 49)
		check_path(path, i);
	check_path(path, CHAIN); /* about 11,600 bits */
	assert_int_equal(pfs_tree_rename(tree, path[CUT - 1], "d", path[9], "moved", 0), 0);
	for (; n < 10; n++)
		moved[n] = path[n];
	for (size_t i = CUT; i < CHAIN; i++)
		moved[n++] = path[i];
	check_path(moved, n);
	check_path(moved, 11);
	check_path(path, CUT);
	reopen_tree();
	check_path(moved, n);
	assert_int_equal(pfs_tree_rename(tree, path[9], "moved", path[CUT - 1], "d", 0), 0);
	check_path(path, CHAIN);
	close_tree();
}

/* The kernel passes on 64 KiB: what is longer is refused, not cut. */
static void test_too_deep(void **state)
{
	enum { DEEPER = 16000 };
	uint64_t *path = calloc(DEEPER, sizeof(*path));
	char name[201];

	(void)state;
	assert_non_null(path);
	new_tree();
	path[0] = PFS_ROOT_PRIME;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	make_chain(path, 1, DEEPER, name);
	assert_in_range(
		pfs_tree_getxattr(tree, value, sizeof(value), path[320], "user.primefs.path"),
		64000, 65536);
	for (size_t size = 0; size <= sizeof(value); size += sizeof(value)) {
		assert_int_equal(
			pfs_tree_getxattr(tree, value, size, path[330], "user.primefs.path"),
			-E2BIG);
		assert_int_equal(pfs_tree_getxattr(tree, value, size, path[DEEPER - 1],
						   "user.primefs.ancestors"),
				 -E2BIG);
		assert_int_equal(
			pfs_tree_getxattr(tree, value, size, path[DEEPER - 1], "user.primefs.code"),
			-E2BIG);
	}
	check_path(path, 5000);
	free(path);
	close_tree();
}

static void test_ctime(void **state)
{
	struct stat attr = {.st_ctim.tv_sec = 5, .st_mtim.tv_sec = 6};
	struct pfs_entry entry;
	uint64_t ino;

	(void)state;
	new_tree();
	ino = make_file("f");
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr,
						  PFS_SET_CTIME | PFS_SET_MTIME, &root_caller),
				 0);
		assert_int_equal(try_set(ino, "user.x", "1", XATTR_CREATE | XATTR_REPLACE),
				 -EINVAL);
		assert_int_equal(stat_of(ino).st_ctim.tv_sec, 5);
		if (pass == 0)
			set(ino, "user.x", "1");
		else
			assert_int_equal(pfs_tree_removexattr(tree, ino, "user.x"), 0);
		assert_true(stat_of(ino).st_ctim.tv_sec > 5);
		assert_int_equal(stat_of(ino).st_mtim.tv_sec, 6);
	}
	close_tree();
}

/* ---- types ---- */

static int count_types(void *arg, const struct pfs_attr_record *attr)
{
	int *types = arg;

	types[attr->type]++;
	return 0;
}

static void check_types(uint64_t ino, int integers, int reals, int texts)
{
	int types[3] = {0};

	sync_tree();
	assert_int_equal(pfs_store_scan_attrs(tree->store, ino, count_types, types), 0);
	assert_int_equal(types[PFS_ATTR_INTEGER], integers);
	assert_int_equal(types[PFS_ATTR_REAL], reals);
	assert_int_equal(types[PFS_ATTR_TEXT], texts);
}

static void test_types(void **state)
{
	struct pfs_node_record record = file_record(0, 1, "f");
	struct pfs_attr_record count = {
		.name = "count", .name_len = 5, .type = PFS_ATTR_INTEGER, .integer = -42};
	struct pfs_attr_record ratio = {
		.name = "ratio", .name_len = 5, .type = PFS_ATTR_REAL, .real = 0.1};
	struct pfs_store *store;
	uint64_t ino;

	(void)state;
	store = new_store(0);
	record.flags = PFS_NODE_ATTRS;
	assert_int_equal(pfs_store_begin(store), 0);
	ino = record.prime = reserve_primes(store);
	assert_int_equal(pfs_store_put_node(store, &record), 0);
	assert_int_equal(pfs_store_put_column(store, "count", 5, PFS_ATTR_INTEGER), 0);
	assert_int_equal(pfs_store_put_column(store, "ratio", 5, PFS_ATTR_REAL), 0);
	assert_int_equal(pfs_store_put_attr(store, ino, &count), 0);
	assert_int_equal(pfs_store_put_attr(store, ino, &ratio), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_close(store), 0);
	open_tree();
	check(ino, "user.count", "-42");
	check(ino, "user.ratio", "0.1");
	set(ino, "user.free", "7");
	check_types(ino, 1, 1, 1); /* what is beside a change keeps its type */
	set(ino, "user.count", "43");
	set(ino, "user.ratio", "2.5");
	check_types(ino, 1, 1, 1);
	set(ino, "user.count", "043");
	set(ino, "user.ratio", "2.50");
	check_types(ino, 0, 0, 3);
	reopen_tree();
	check(ino, "user.count", "043");
	check(ino, "user.ratio", "2.50");
	close_tree();
}

/* ---- nodes that go, commits that fail ---- */

/* More than is kept as a cache. */
static void flush_cache(void)
{
	static unsigned rounds;
	char name[32];

	memset(value, 'v', sizeof(value));
	rounds++;
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "large%u.%d", rounds, i);
		assert_int_equal(pfs_tree_setxattr(tree, make_file(name), "user.v", value,
						   PFS_ATTR_VALUE_MAX, 0),
				 0);
	}
	sync_tree();
}

/* A node without a name keeps its attributes, whether the store had them or never will. */
static void test_unlinked(void **state)
{
	uint64_t stored, later;

	(void)state;
	new_tree();
	stored = make_file("f");
	set(stored, "user.a", "stored");
	reopen_tree();
	later = make_file("g");
	assert_int_equal(pfs_tree_lookup(tree, &(struct pfs_entry){0}, PFS_ROOT_PRIME, "f"), 0);
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "f"), 0);
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "g"), 0);
	set(later, "user.a", "never");
	for (int pass = 0; pass < 3; pass++) {
		check(stored, "user.a", "stored");
		check(later, "user.a", "never");
		flush_cache();
	}
	set(stored, "user.b", "later");
	flush_cache();
	CHECK_LIST(stored, "user.a\0user.b\0");
	pfs_tree_forget(tree, stored, 1);
	pfs_tree_forget(tree, later, 1);
	assert_int_equal(pfs_tree_getxattr(tree, NULL, 0, stored, "user.a"), -ESTALE);
	sync_tree();
	assert_int_equal(count_findings(tree->store), 0);
	close_tree();
}

static void test_failing_commit(void **state)
{
	uint64_t ino;

	(void)state;
	new_tree();
	ino = make_file("f");
	set(ino, "user.a", "1");
	sync_tree();
	set(ino, "user.a", "2");
	set(ino, "user.b", "3");
	atomic_store(&commit_error, -ENOSPC);
	assert_int_equal(pfs_tree_sync(tree), -ENOSPC);
	check(ino, "user.a", "2");
	assert_int_equal(try_set(ino, "user.c", "4", 0), -EROFS);
	CHECK_LIST(ino, "user.a\0user.b\0");
	atomic_store(&commit_error, 0);
	reopen_tree();
	check(ino, "user.a", "2");
	check(ino, "user.b", "3");
	close_tree();
}

/* ---- random ---- */

#define NODES 40
#define NAMES 6

static void random_step(uint64_t *seed, uint64_t *inos, char (*texts)[NAMES][24])
{
	size_t node = below(seed, NODES), name = below(seed, NAMES);
	char *text = texts[node][name], full[16];

	(void)snprintf(full, sizeof(full), "user.%zu", name);
	switch (below(seed, 6)) {
	case 0:
		assert_int_equal(pfs_tree_removexattr(tree, inos[node], full),
				 *text ? 0 : -ENODATA);
		*text = '\0';
		break;
	case 1:
	case 2:
		(void)snprintf(text, 24, "%" PRIu64, random_number(seed));
		set(inos[node], full, text);
		break;
	default:
		if (*text)
			check(inos[node], full, text);
		else
			assert_int_equal(pfs_tree_getxattr(tree, value, 9, inos[node], full),
					 -ENODATA);
	}
}

static void test_random(void **state)
{
	static char texts[NODES][NAMES][24];
	uint64_t seed = first_seed(), inos[NODES];
	char name[16];

	(void)state;
	new_tree();
	for (int i = 0; i < NODES; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		inos[i] = make_file(name);
	}
	for (int i = 0; i < 20000; i++) {
		random_step(&seed, inos, texts);
		if (below(&seed, 400) == 0)
			sync_tree();
		if (below(&seed, 4000) == 0)
			reopen_tree();
	}
	close_tree();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(test_basics),	   TEST(test_limits),	TEST(test_virtual),
		TEST(test_deep),	   TEST(test_too_deep), TEST(test_ctime),
		TEST(test_types),	   TEST(test_unlinked), TEST(test_random),
		TEST(test_failing_commit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
