/* SPDX-License-Identifier: MIT */
/* Statements of a viewer who does not see all, while the tree changes between each two holds of
 * it. */
#include "fs/nodes/scan.h"
#include "fs/nodes/visible_open.h"
#include "fs/query/internal.h"
#include "tests/unit/query_util.h"

#define FEW   20  /* entries of the directory that is closed and opened, more than are followed, */
#define MANY  700 /* and nodes: more than are looked at in one hold, or as a sample */

static enum { NOTHING, FILES, RIGHTS } changes;
static unsigned n_changes;
static uint64_t folder;

/* ---- before the tree is taken ---- */

static void make_another(void)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "another%u", n_changes);
	(void)make(PFS_ROOT_PRIME, name, S_IFREG | 0644);
}

static void turn_over(void)
{
	const struct stat attr = {.st_mode = n_changes % 2 ? 0700 : 0755};
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, folder, &attr, PFS_SET_MODE, &temp_root),
			 0);
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
uint64_t __real_pfs_scan_lock(struct pfs_tree *of, const char *by);
uint64_t __wrap_pfs_scan_lock(struct pfs_tree *of, const char *by);

uint64_t __wrap_pfs_scan_lock(struct pfs_tree *of, const char *by)
{
	if (of == tree && changes != NOTHING) {
		n_changes++;
		if (changes == FILES)
			make_another();
		else
			turn_over();
	}
	return __real_pfs_scan_lock(of, by);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- statements ---- */

static int begin_test(void **state)
{
	char name[32];

	(void)set_up(state);
	changes = NOTHING;
	folder = make(PFS_ROOT_PRIME, "folder", S_IFDIR | 0755);
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		(void)make(i < FEW ? folder : PFS_ROOT_PRIME, name, S_IFREG | 0644);
	}
	scope = (struct pfs_query_scope){.ino = PFS_ROOT_PRIME, .uid = 500, .gid = 500};
	pfs_open_set_piece(64, FEW / 2);
	return 0;
}

static int end_test(void **state)
{
	changes = NOTHING;
	pfs_open_set_piece(0, 0);
	return tear_down(state);
}

/* What he sees cannot be followed: it is what it was at some moment, in a frozen tree. */
static void ask_beside(const char *sql, const char *opened, const char *closed)
{
	struct pfs_query *query = begin(sql);
	char text[100];

	rest_text(text, sizeof(text), query);
	assert_non_null(query->frozen);
	assert_true(strcmp(text, opened) == 0 || strcmp(text, closed) == 0);
	pfs_query_finish(query);
}

static void test_rights(void **state)
{
	static const char count[] = "SELECT count(*) FROM nodes WHERE name GLOB 'n*'";

	(void)state;
	check(count, "700");
	changes = RIGHTS;
	for (unsigned i = 0; i < 4; i++) {
		ask_beside(count, "700", "680");
		ask_beside("SELECT name FROM nodes WHERE name GLOB 'n1?' ORDER BY name LIMIT 1",
			   "n10", "");
	}
}

/* Attributes are found, rare ones too, and those that he may not read are not. */
static void test_attributes(void **state)
{
	const struct stat barred = {.st_mode = 0600};
	struct pfs_entry entry;
	char name[32], text[100];

	(void)state;
	for (unsigned i = FEW; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "/n%u", i);
		assert_int_equal(pfs_tree_setxattr(tree, ino_of(name), "user.often", "v", 1, 0), 0);
	}
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/n677"), "user.rare", "v", 1, 0), 0);
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/n88"), "user.barred", "v", 1, 0), 0);
	assert_int_equal(
		pfs_tree_setattr(tree, &entry, ino_of("/n88"), &barred, PFS_SET_MODE, &temp_root),
		0);
	changes = FILES;
	query_text(text, sizeof(text), "SELECT name FROM nodes WHERE rare = 'v'");
	assert_string_equal(text, "n677");
	query_text(text, sizeof(text), "SELECT count(often) FROM nodes");
	assert_string_equal(text, "679");
	refuse("SELECT barred FROM nodes", -EINVAL, "no such column: barred");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rights, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_attributes, begin_test, end_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
