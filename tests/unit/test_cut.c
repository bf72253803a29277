/* SPDX-License-Identifier: MIT */
/* What a commit writes is the tree of one moment, however much changes while it is taken. */
#include "tree_util.h"

#include <fcntl.h>
#include <inttypes.h>

#include "fs/image/image.h"
#include "fs/image/primes.h"
#include "fs/image/snapshot.h"
#include "fs/journal/journal_impl.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/random.h"

#define ROOT   PFS_ROOT_PRIME
#define NAMES  6000u /* that nodes are called by */
#define ROUNDS 6u

static uint64_t seed;
static unsigned steps; /* that the last cut took */

/* ---- a tree as a text, without what commits change by themselves ---- */

static void append(struct text *text, const char *bytes)
{
	assert_int_equal(append_text(text, bytes, strlen(bytes)), 0);
	text->bytes[text->size] = 0;
}

static void append_node(struct text *text, struct pfs_tree *of, uint32_t slot)
{
	char line[512], list[256], value[64], target[PATH_MAX] = "";
	struct pfs_node_record record;
	ssize_t len;

	pfs_hold_read(of, __func__);
	pfs_image_record(of, &record, slot);
	(void)snprintf(line, sizeof(line),
		       "%u %" PRIu64 " in %" PRIu64 " %.*s %o %" PRId64 " %" PRId64 ".%u", slot,
		       record.prime, record.parent, (int)record.name_len, (const char *)record.name,
		       (unsigned)record.mode, record.size, record.mtime.sec, record.mtime.nsec);
	pfs_hold_end(of);
	append(text, line);
	if (S_ISLNK(record.mode)) {
		assert_int_equal(pfs_tree_readlink(of, target, record.prime), 0);
		append(text, target);
	}
	len = pfs_tree_listxattr(of, list, sizeof(list), record.prime);
	assert_true(len >= 0);
	for (const char *name = list; name < list + len; name += strlen(name) + 1) {
		ssize_t size = pfs_tree_getxattr(of, value, sizeof(value), record.prime, name);

		assert_true(size >= 0);
		if (!strncmp(name, "user.primefs.", 13))
			continue;
		(void)snprintf(line, sizeof(line), " %s=%.*s", name, (int)size, value);
		append(text, line);
	}
	append(text, "\n");
}

static struct text show(struct pfs_tree *of)
{
	struct text text = {.bytes = malloc(4096), .capacity = 4096};

	assert_non_null(text.bytes);
	for (uint32_t slot = 0; slot < of->image.end; slot++)
		if (pfs_image_is_live(&of->image, slot))
			append_node(&text, of, slot);
	return text;
}

/* Line by line: cmocka shows no long texts. */
static void expect_same(struct text *found, struct text *expected)
{
	char *rest = NULL, *other_rest = NULL;
	const char *line = strtok_r(found->bytes, "\n", &rest);
	const char *other = strtok_r(expected->bytes, "\n", &other_rest);

	while (line && other) {
		assert_string_equal(line, other);
		line = strtok_r(NULL, "\n", &rest);
		other = strtok_r(NULL, "\n", &other_rest);
	}
	assert_string_equal(line ? line : "the end", other ? other : "the end");
	free(found->bytes);
	free(expected->bytes);
}

/* ---- changes ---- */

static void name_at(char *out, size_t size, uint32_t i)
{
	(void)snprintf(out, size, "%s%u", i % 2 ? "a name that is longer " : "n", i);
}

static void change_attr(uint64_t ino)
{
	char value[32];
	int error;

	(void)snprintf(value, sizeof(value), "%u", random_below(&seed, 1000));
	error = random_below(&seed, 4)
			? pfs_tree_setxattr(tree, ino, "user.a", value, strlen(value), 0)
			: pfs_tree_removexattr(tree, ino, "user.a");
	assert_true(error == 0 || error == -ENODATA);
}

static void make_one(const char *name)
{
	struct pfs_entry entry;

	if (random_below(&seed, 5) == 0)
		assert_int_equal(
			pfs_tree_symlink(tree, &entry, ROOT, name, "where it leads", &temp_root),
			0);
	else
		assert_int_equal(pfs_tree_make(tree, &entry, ROOT, name,
					       (random_below(&seed, 5) ? S_IFREG : S_IFDIR) | 0644,
					       0, &temp_root),
				 0);
	if (!S_ISLNK(entry.attr.st_mode) && random_below(&seed, 2))
		change_attr(entry.attr.st_ino);
	if (random_below(&seed, 8)) /* the others are used until the end */
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
}

static void change_entry(const char *name, const struct pfs_entry *entry)
{
	struct pfs_entry out;
	uint64_t ino = entry->attr.st_ino;
	char other[64];
	int error;

	name_at(other, sizeof(other), random_below(&seed, NAMES));
	switch (random_below(&seed, 5)) {
	case 0:
		error = pfs_tree_setattr(tree, &out, ino,
					 &(struct stat){.st_mode = random_below(&seed, 0777)},
					 PFS_SET_MODE, &temp_root);
		assert_int_equal(error, 0);
		break;
	case 1:
	case 2:
		error = S_ISDIR(entry->attr.st_mode) ? pfs_tree_rmdir(tree, ROOT, name)
						     : pfs_tree_unlink(tree, ROOT, name);
		assert_int_equal(error, 0);
		break;
	case 3:
		error = pfs_tree_rename(tree, ROOT, name, ROOT, other,
					random_below(&seed, 2) ? RENAME_EXCHANGE : 0);
		assert_true(error == 0 || error == -ENOENT || error == -EISDIR ||
			    error == -ENOTDIR);
		break;
	default:
		if (!S_ISLNK(entry->attr.st_mode))
			change_attr(ino);
	}
}

/* As the committer does it, with a group of its own. */
static void fetch_primes(void)
{
	if (!pfs_primes_low(tree))
		return;
	assert_int_equal(pfs_store_begin(tree->store), 0);
	assert_int_equal(pfs_primes_fetch(tree), 0);
	assert_int_equal(pfs_store_commit(tree->store, NULL), 0);
	pfs_primes_fetched(tree, true);
}

static void change_some(unsigned n)
{
	char name[64];
	struct pfs_entry entry;

	while (n--) {
		fetch_primes();
		name_at(name, sizeof(name), random_below(&seed, NAMES));
		if (pfs_tree_lookup(tree, &entry, ROOT, name)) {
			make_one(name);
		} else {
			change_entry(name, &entry);
			pfs_tree_forget(tree, entry.attr.st_ino, 1);
		}
	}
}

/* ---- commits, taken by the test itself ---- */

static void write_group(void)
{
	struct pfs_group *group = &tree->journal->group;

	assert_int_equal(pfs_group_write(tree, group, false), 0);
	pfs_group_done(tree, group);
	pfs_snapshots_drain(tree);
}

/* Between the steps of the cut so many changes are made; the store then has the tree as it was when
 * the cut began. */
static void commit_beside(unsigned changes)
{
	struct pfs_group *group = &tree->journal->group;
	struct text expected = show(tree), found;
	struct temp_store copy;
	struct pfs_tree *stored;
	bool more = true;

	assert_int_equal(pfs_cut_begin(tree, group), 0);
	for (steps = 0; more; steps++) {
		change_some(changes);
		more = pfs_cut_some(tree, group);
	}
	change_some(changes);
	write_group();
	temp_store_copy(&temp, &copy);
	assert_int_equal(temp_store_findings(&copy), 0);
	stored = temp_tree_open(&copy);
	found = show(stored);
	expect_same(&found, &expected);
	temp_tree_close(stored);
	temp_store_remove(&copy);
}

static int setup(void **state PFS_UNUSED)
{
	temp_store_create(&temp);
	assert_int_equal(
		pfs_tree_open(&tree, temp.path, &(struct pfs_tree_options){.no_atime = true}), 0);
	atomic_store(&tree->journal->running, true); /* though there is no committer */
	pfs_primes_want(tree, PFS_PRIME_DIRECTORY);
	pfs_primes_want(tree, PFS_PRIME_OTHER);
	return 0;
}

static int teardown(void **state PFS_UNUSED)
{
	atomic_store(&tree->journal->running, false);
	assert_int_equal(pfs_tree_close(tree), 0);
	assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
	return 0;
}

/* ---- tests ---- */

static void test_a_group_is_of_one_moment(void **state PFS_UNUSED)
{
	for (seed = 1; seed <= ROUNDS; seed++) {
		change_some(4000);
		commit_beside(150);
		assert_true(steps > 2);
	}
	commit_beside(0);
}

/* What is free but kept for a snapshot is in no group, and its slot is used again later. */
static void test_a_group_beside_a_snapshot(void **state PFS_UNUSED)
{
	struct pfs_snapshot *snapshot;

	seed = 77;
	change_some(3000);
	commit_beside(100);
	for (unsigned round = 0; round < 2; round++) {
		pfs_hold_read(tree, __func__);
		assert_int_equal(pfs_snapshot_take(&snapshot, tree, PFS_COLUMN_MODE), 0);
		pfs_hold_end(tree);
		change_some(3000);
		commit_beside(100);
		pfs_snapshot_end(snapshot);
	}
	commit_beside(100);
}

static void test_a_group_of_more_than_is_listed(void **state PFS_UNUSED)
{
	seed = 5;
	change_some(4000);
	pfs_hold_write(tree, __func__);
	atomic_store(&tree->journal->n_dirty, PFS_DIRTY_LIST + 1); /* all slots are looked at */
	pfs_hold_end(tree);
	commit_beside(100);
	commit_beside(100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_group_is_of_one_moment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_group_beside_a_snapshot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_group_of_more_than_is_listed, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
