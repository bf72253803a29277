/* SPDX-License-Identifier: MIT */
/* Nodes that are changed as they were found in a frozen tree, while others change them. */
#include "base/cleanup.h"
#include "fs/attr/attrcolumn.h"
#include "fs/attr/xattr_impl.h"
#include "fs/change/change.h"
#include "fs/image/watch.h"
#include "fs/query/internal.h"
#include "fs/tree/tree_impl.h"
#include "tests/unit/query_util.h"

#include <pthread.h>
#include <sys/xattr.h>

static struct pfs_change_set set;
static struct pfs_tree *frozen;
static char why[256];

static void freeze(unsigned columns)
{
	static const struct pfs_attr_wish tag = {"tag", 3};
	const struct pfs_frozen_wish wish = {.columns = columns,
					     .attrs = &tag,
					     .n_attrs = columns & PFS_COLUMN_FLAGS ? 1 : 0,
					     .most = UINT64_MAX};

	assert_int_equal(pfs_frozen_open(&frozen, tree, &wish), 0);
}

static void want(enum pfs_change_kind kind, const char *const *paths, size_t n, unsigned fields)
{
	pfs_change_set_clear(&set);
	set.kind = kind;
	assert_int_equal(pfs_grow(&set.list, &set.capacity, n, sizeof(*set.list)), 0);
	for (size_t i = 0; i < n; i++)
		set.list[set.n++] = (struct pfs_change){.ino = ino_of(paths[i]),
							.set = fields,
							.mode = 0611,
							.uid = 77,
							.mtime = 123000000000};
}

static int apply(unsigned columns, bool is_last)
{
	const struct pfs_change_basis basis = {pfs_frozen_epoch(frozen), frozen, columns, is_last};

	return pfs_tree_change(tree, &set, &basis, &temp_root, why, sizeof(why));
}

static void thaw(void)
{
	pfs_frozen_close(PFS_TAKE(frozen));
	pfs_change_set_finish(&set);
}

static struct stat attr_of(const char *path)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_getattr(tree, &entry, ino_of(path)), 0);
	return entry.attr;
}

static void touch(const char *path, unsigned what, struct stat attr)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, ino_of(path), &attr, what, &temp_root), 0);
}

#define READ (PFS_COLUMN_SIZE | PFS_COLUMN_MTIME | PFS_COLUMN_PARENT)
static const char *const two[] = {"/a/d.c", "/e.tar.gz"};

/* What was not read may change; who is gone is left out. */
static void test_others(void **state)
{
	(void)state;
	freeze(READ);
	want(PFS_CHANGE_UPDATE, two, 2, PFS_CHANGE_UID);
	touch("/a/d.c", PFS_SET_GID, (struct stat){.st_gid = 5});
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "e.tar.gz"), 0);
	assert_int_equal(apply(READ, false), 0);
	assert_int_equal(set.n, 1);
	assert_int_equal(attr_of("/a/d.c").st_uid, 77);
	assert_int_equal(attr_of("/a/d.c").st_gid, 5);
	want(PFS_CHANGE_REMOVE, two, 1, 0);
	set.list[0].ino = ino_of("/a/b/c.txt");
	assert_int_equal(pfs_tree_unlink(tree, ino_of("/a/b"), "c.txt"), 0);
	assert_int_equal(apply(READ, false), 0);
	assert_int_equal(set.n, 0);
	thaw();
}

/* What was read may not, unless nobody looks again. */
static void test_conflict(void **state)
{
	(void)state;
	freeze(READ);
	want(PFS_CHANGE_UPDATE, two, 2, PFS_CHANGE_UID | PFS_CHANGE_MTIME);
	touch("/a/d.c", PFS_SET_MTIME, (struct stat){.st_mtim.tv_sec = 9});
	assert_int_equal(apply(READ, false), -EAGAIN);
	assert_int_equal(attr_of("/e.tar.gz").st_uid, 0);
	assert_int_equal(apply(READ, true), 0);
	assert_int_equal(attr_of("/a/d.c").st_uid, 77);
	assert_int_equal(attr_of("/a/d.c").st_mtim.tv_sec, 9);
	assert_int_equal(attr_of("/e.tar.gz").st_mtim.tv_sec, 123);
	thaw();
	freeze(READ);
	want(PFS_CHANGE_REMOVE, two, 2, 0);
	touch("/a/d.c", PFS_SET_SIZE, (struct stat){.st_size = 9});
	assert_int_equal(apply(READ, false), -EAGAIN);
	assert_int_equal(apply(READ, true), -EBUSY);
	assert_non_null(strstr(why, "/a/d.c: it changes faster"));
	assert_int_equal(attr_of("/e.tar.gz").st_uid, 77);
	thaw();
}

/* A path is that of all directories above. */
static void test_moved_above(void **state)
{
	const unsigned columns = PFS_COLUMN_PARENT | PFS_COLUMN_NAME;
	const char *path = "/a/b/c.txt";

	(void)state;
	freeze(columns);
	want(PFS_CHANGE_UPDATE, &path, 1, PFS_CHANGE_UID);
	(void)make(ino_of("/a"), "newer", S_IFREG | 0600);
	touch("/a", PFS_SET_MODE, (struct stat){.st_mode = 0700});
	assert_int_equal(apply(columns, false), 0);
	assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, "a", PFS_ROOT_PRIME, "z", 0), 0);
	assert_int_equal(apply(columns, false), -EAGAIN);
	assert_int_equal(apply(PFS_COLUMN_PARENT, false), 0);
	assert_int_equal(attr_of("/z/b/c.txt").st_uid, 77);
	thaw();
}

static void test_attributes(void **state)
{
	const unsigned columns = PFS_COLUMN_FLAGS | PFS_COLUMN_PARENT;

	(void)state;
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.tag", "x", 1, 0), 0);
	freeze(columns);
	want(PFS_CHANGE_UPDATE, two, 2, PFS_CHANGE_UID);
	assert_int_equal(apply(columns, false), 0);
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.tag", "y", 1, 0), 0);
	assert_int_equal(apply(columns, false), -EAGAIN);
	assert_int_equal(apply(columns, true), 0);
	thaw();
	freeze(columns);
	want(PFS_CHANGE_UPDATE, two, 2, PFS_CHANGE_UID);
	assert_int_equal(apply(columns, false), 0); /* it changed before */
	thaw();
}

/* Gives /a/d.c and /e.tar.gz that value of an attribute. */
static void want_attr(const char *name, const char *value)
{
	want(PFS_CHANGE_UPDATE, two, 2, 0);
	assert_int_equal(pfs_grow(&set.attrs, &set.attrs_capacity, 1, sizeof(*set.attrs)), 0);
	set.n_attrs = 1;
	set.attrs[0] = (struct pfs_attr_change){.removed = !value};
	assert_int_equal(pfs_change_set_text(&set, &set.attrs[0].name, name, strlen(name)), 0);
	if (value)
		assert_int_equal(
			pfs_change_set_text(&set, &set.attrs[0].value, value, strlen(value)), 0);
	for (size_t i = 0; i < 2; i++)
		set.list[i].n_attrs = 1;
}

static void assert_attr(const char *path, const char *name, const char *value)
{
	char found[16];
	ssize_t size = pfs_tree_getxattr(tree, found, sizeof(found), ino_of(path), name);

	assert_int_equal(size, value ? (ssize_t)strlen(value) : -ENODATA);
	if (value)
		assert_memory_equal(found, value, strlen(value));
}

/* An attribute that the statement read is theirs who have set it since, if nobody looks again; one
 * that it did not read is set to what it says whatever it was. */
static void test_later_attributes(void **state)
{
	const unsigned columns = PFS_COLUMN_FLAGS | PFS_COLUMN_PARENT;
	uint64_t d = ino_of("/a/d.c");

	(void)state;
	assert_int_equal(pfs_tree_setxattr(tree, d, "user.tag", "x", 1, 0), 0);
	freeze(columns);
	assert_int_equal(pfs_tree_setxattr(tree, d, "user.tag", "later", 5, 0), 0);
	assert_int_equal(pfs_tree_setxattr(tree, d, "user.other", "theirs", 6, 0), 0);
	want_attr("tag", "x+");
	assert_int_equal(apply(columns, false), -EAGAIN);
	assert_int_equal(apply(columns, true), 0);
	assert_attr("/a/d.c", "user.tag", "later");
	assert_attr("/e.tar.gz", "user.tag", "x+");
	want_attr("other", "ours");
	assert_int_equal(apply(columns, true), 0);
	assert_attr("/a/d.c", "user.other", "ours");
	assert_int_equal(pfs_tree_removexattr(tree, d, "user.tag"), 0);
	want_attr("tag", "x+");
	assert_int_equal(apply(columns, true), 0);
	assert_attr("/a/d.c", "user.tag", NULL);
	assert_int_equal(pfs_tree_setxattr(tree, d, "user.tag", "x", 1, 0), 0); /* as it was */
	assert_int_equal(apply(columns, true), 0);
	assert_attr("/a/d.c", "user.tag", "x+");
	thaw();
}

/* What a set of changes looked at stays in memory no longer than the set. */
static void test_let_go(void **state)
{
	const unsigned columns = PFS_COLUMN_FLAGS | PFS_COLUMN_PARENT;
	const struct pfs_record *record;

	(void)state;
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.tag", "x", 1, 0), 0);
	reopen();
	freeze(columns);
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/e.tar.gz"), "user.tag", "y", 1, 0), 0);
	want_attr("tag", "z");
	assert_int_equal(apply(columns, false), -EAGAIN);
	record = pfs_records_find(tree->attrs->sets, ino_of("/a/d.c"));
	assert_true(!record || (!record->kept && !record->held));
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "e.tar.gz"), 0);
	assert_int_equal(apply(columns, false), 0);
	assert_int_equal(pfs_tree_sync(tree), 0);
	record = pfs_records_find(tree->attrs->sets, ino_of("/a/d.c"));
	assert_true(!record || (!record->kept && !record->held));
	assert_attr("/a/d.c", "user.tag", "z");
	thaw();
}

/* Nothing of a directory stays behind that came after it was to go. */
static void test_directory(void **state)
{
	static const char *const tree_of_a[] = {"/a", "/a/b", "/a/b/c.txt", "/a/d.c"};

	(void)state;
	freeze(READ);
	want(PFS_CHANGE_REMOVE, tree_of_a, 4, 0);
	(void)make(ino_of("/a/b"), "newer", S_IFREG | 0600);
	assert_int_equal(apply(PFS_COLUMN_PARENT, false), -EAGAIN);
	assert_int_equal(apply(PFS_COLUMN_PARENT, true), -ENOTEMPTY);
	assert_non_null(strstr(why, "/a/b/newer"));
	thaw();
}

/* ---- beside somebody who changes what the statement reads, all the time ---- */

static _Atomic bool stop;

static void *change_the_root(void *arg)
{
	char name[32];

	for (unsigned i = 0; !atomic_load(&stop); i++) {
		(void)snprintf(name, sizeof(name), "x%u", i);
		if (!temp_tree_make(tree, PFS_ROOT_PRIME, name, S_IFREG | 0600))
			return NULL;
		if (pfs_tree_setxattr(tree, PFS_ROOT_PRIME, "user.tag", name, strlen(name), 0))
			return NULL;
		if (i > 10) {
			(void)snprintf(name, sizeof(name), "x%u", i - 10);
			if (pfs_tree_unlink(tree, PFS_ROOT_PRIME, name))
				return NULL;
		}
		(void)usleep(300);
	}
	return arg;
}

static void test_beside_changes(void **state)
{
	static const char *const statements[] = {
		"UPDATE nodes SET mode = 448, atime = mtime",
		"UPDATE nodes SET uid = uid + 1 WHERE nlink > 0 AND mtime > 0 AND path >= '/'",
		"UPDATE nodes SET tag = name WHERE ctime > 0 AND type = 'd'",
		"UPDATE nodes SET tag = name || uid, rare = name",
		"UPDATE nodes SET gid = gid + 1 WHERE length(name) > 0 AND uid % 1 = 0", /* these
											    have
											    parts */
		"UPDATE nodes SET tag = (SELECT count(*) FROM nodes WHERE size % 2 = 0) WHERE type = 'd'",
		"INSERT INTO counts SELECT name, count(*) FROM nodes GROUP BY name",
		"INSERT INTO counts SELECT upper(name) || typeof(count(*)), count(*) FROM nodes GROUP BY name",
	};
	const unsigned rounds = getenv("PFS_TEST_SMALL") ? 2 : 10;
	pthread_t thread;
	unsigned n_frozen = 0;

	(void)state;
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.tag", "x", 1, 0), 0);
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.rare", "x", 1, 0), 0);
	for (unsigned i = 0; i < 2000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "n%u", i);
		(void)make(ino_of("/a"), name, S_IFREG | 0600);
	}
	change("CREATE TABLE counts (name TEXT, n INTEGER)", 0);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, change_the_root, (void *)&stop), 0);
	for (unsigned i = 0; i < rounds * PFS_COUNT(statements); i++) {
		struct pfs_query *query = begin(statements[i % PFS_COUNT(statements)]);

		n_frozen += query->frozen != NULL;
		assert_true(pfs_query_changes(query) >= 3);
		pfs_query_finish(query);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, (void **)&state), 0);
	assert_non_null(state);
	print_message("%u of %zu statements read a frozen tree\n", n_frozen,
		      rounds * PFS_COUNT(statements));
	assert_true(n_frozen > 0);
	assert_int_equal(attr_of("/").st_mode, S_IFDIR | 0700);
	assert_int_equal(attr_of("/a/n1999").st_uid, rounds);
	assert_int_equal(attr_of("/a/n1999").st_gid, rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_conflict, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_moved_above, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_attributes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_later_attributes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_let_go, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_directory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_beside_changes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
