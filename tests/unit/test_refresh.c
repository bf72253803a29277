/* SPDX-License-Identifier: MIT */
/* A source that changes while a refresh reads it: nodes are what they were, sooner or later. */
#include "tests/unit/import_util.h"

#include <fcntl.h>
#include <limits.h>

#include "fs/change/change.h"
#include "fs/content/compared.h"
#include "fs/content/follow.h"
#include "fs/nodes/scan.h"
#include "fs/tree/frozen.h"
#include "tools/refresh/refresh.h"

#define ATTEMPTS 100 /* until two changes have one time */

static char source[160];
static struct pfs_tree *tree;

/* What happens when a directory of that name is about to be read, once. */
static struct {
	const char *at;
	void (*change)(void);
	bool restless, knows;
	unsigned left, behind, entered;
} scene;

static const char *path_of(const char *name)
{
	static char paths[2][512];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", source, name);
	return path;
}

static void make_dir(const char *name)
{
	assert_int_equal(mkdir(path_of(name), 0755), 0);
}

static void put(const char *name)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, name, strlen(name)), strlen(name));
	(void)close(fd);
}

static void move(const char *from, const char *to)
{
	assert_int_equal(rename(path_of(from), path_of(to)), 0);
}

/* ---- a watcher that changes what is watched ---- */

static uint64_t enter(void *arg PFS_UNUSED, int fd, uint64_t ino PFS_UNUSED,
		      uint64_t *was PFS_UNUSED)
{
	char proc[64], name[PATH_MAX];
	ssize_t len;

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	len = readlink(proc, name, sizeof(name) - 1);
	assert_true(len > 0);
	name[len] = 0;
	if (scene.at && strcmp(strrchr(name, '/') + 1, scene.at) == 0) {
		scene.at = NULL;
		scene.change();
	}
	scene.entered++;
	return 1;
}

static bool knows(void *arg PFS_UNUSED, uint64_t ino PFS_UNUSED)
{
	return scene.knows;
}

static void made(void *arg PFS_UNUSED, uint64_t number PFS_UNUSED, uint64_t ino PFS_UNUSED)
{
}

static bool restless(void *arg PFS_UNUSED, bool *changed)
{
	*changed = scene.restless;
	return scene.restless;
}

static void left(void *arg PFS_UNUSED, uint64_t number)
{
	assert_true(number <= 1);
	scene.left += number == 1;
	scene.behind += !number;
}

static void linked(void *arg PFS_UNUSED, const struct stat *node PFS_UNUSED)
{
}

static void refresh_as(bool quick)
{
	const struct pfs_refresh_watcher watcher = {NULL,     enter, knows, made,
						    restless, left,  linked};
	const struct pfs_refresh_options options = {
		.store = test_path, .watcher = &watcher, .quick = quick};
	struct pfs_refresh_report report;
	char why[PATH_MAX] = "";

	assert_int_equal(pfs_refresh(tree, &options, &report, why, sizeof(why)), 0);
}

static void refresh(void)
{
	refresh_as(false);
}

static uint64_t ino_of(const char *path)
{
	uint64_t ino = 0;
	int error = pfs_tree_resolve(tree, &ino, path);

	assert_true(!error || error == -ENOENT);
	return ino;
}

static void times_of(struct timespec times[2], const char *path)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_getattr(tree, &entry, ino_of(path)), 0);
	times[0] = entry.attr.st_mtim;
	times[1] = entry.attr.st_ctim;
}

/* ---- stores ---- */

static int make_source(void **state)
{
	if (make_folder(state) != 0)
		return -1;
	(void)snprintf(source, sizeof(source), "%s/source", test_folder);
	return 0;
}

/* Directories 1 to 9 with a file each, imported. */
static int begin(void **state PFS_UNUSED)
{
	struct pfs_import import = {
		.options = {.format = &pfs_import_dir,
			    .source = source,
			    .store = test_path,
			    .content = PFS_CONTENT_LINK,
			    .quiet = true},
		.input = {.fd = -1, .kept_fd = -1},
		.say = keep_message,
	};
	char command[1024];

	(void)snprintf(command, sizeof(command), "rm -rf %s %s*; mkdir %s", source, test_path,
		       source);
	if (system(command)) /* NOLINT(cert-env33-c): our own temporary folder */
		return -1;
	for (char name[] = "1"; *name <= '9'; ++*name) {
		char file[] = "1/file";

		make_dir(name);
		*file = *name;
		put(file);
	}
	assert_int_equal(pfs_import_run(&import), 0);
	assert_int_equal(
		pfs_tree_open(&tree, test_path, &(struct pfs_tree_options){.read_only = false}), 0);
	assert_int_equal(pfs_tree_start(tree), 0);
	memset(&scene, 0, sizeof(scene));
	return 0;
}

static int end(void **state PFS_UNUSED)
{
	int findings = 0;

	assert_int_equal(pfs_tree_close(tree), 0);
	assert_int_equal(
		pfs_tree_check(test_path, &(struct pfs_tree_options){0}, print_finding, &findings),
		0);
	return findings;
}

/* ---- tests ---- */

static void exchange_all(void)
{
	for (char from[] = "1", to[] = "9"; *from < *to; ++*from, --*to)
		assert_int_equal(
			renameat2(AT_FDCWD, path_of(from), AT_FDCWD, path_of(to), RENAME_EXCHANGE),
			0);
}

/* Whichever of them is read first: half of them are read as they are then, as others before. */
static void directories_that_are_exchanged(void **state PFS_UNUSED)
{
	static const char *const moments[] = {"1", "3", "5", "7", "9"};

	for (size_t i = 0; i < PFS_COUNT(moments); i++) {
		uint64_t directories[9], files[9];

		for (int n = 0; n < 9; n++) {
			const char directory[] = {'/', (char)('1' + n), 0};
			const char file[] = {'/', (char)('1' + n), '/', 'f', 'i', 'l', 'e', 0};

			directories[n] = ino_of(directory);
			files[n] = ino_of(file);
		}
		scene.at = moments[i];
		scene.change = exchange_all;
		refresh();
		assert_null(scene.at);
		refresh();
		for (int n = 0; n < 9; n++) {
			const char directory[] = {'/', (char)('9' - n), 0};
			const char file[] = {'/', (char)('9' - n), '/', 'f', 'i', 'l', 'e', 0};

			assert_int_equal(directories[n], ino_of(directory));
			assert_int_equal(files[n], ino_of(file));
		}
	}
}

/* A frozen tree tells when its nodes were compared, as the tree does. */
static void what_is_compared_in_a_frozen_tree(void **state PFS_UNUSED)
{
	const struct pfs_frozen_wish wish = {.columns = PFS_COLUMNS_ALL, .most = UINT64_MAX};
	const uint64_t ino = ino_of("/1/file");
	struct pfs_tree *frozen;
	uint32_t slot;

	refresh();
	assert_int_equal(pfs_frozen_open(&frozen, tree, &wish), 0);
	(void)pfs_scan_lock(tree, __func__);
	slot = pfs_scan_slot_of(tree, ino);
	assert_int_equal(pfs_compared_ns(frozen, slot), pfs_compared_ns(tree, slot));
	assert_true(pfs_compared_ns(frozen, slot) > 0);
	pfs_scan_unlock(tree);
	pfs_frozen_close(frozen);
}

/* The directory's times are those of its source. */
static void assert_as_source(const char *path)
{
	struct timespec times[2];
	struct stat attr;

	times_of(times, path);
	assert_int_equal(lstat(path_of(path + 1), &attr), 0);
	assert_memory_equal(&times[0], &attr.st_mtim, sizeof(times[0]));
	assert_memory_equal(&times[1], &attr.st_ctim, sizeof(times[1]));
}

static void move_into_two(void)
{
	move("5", "2/5");
	move("6", "8/6");
}

/* One of the two comes to where is looked later than where it was: it is there twice.  What comes
 * to where has been looked already is only seen by who is told of changes. */
static void directories_that_come_elsewhere(void **state PFS_UNUSED)
{
	static const char *const moments[] = {"2", "8"};

	for (size_t i = 0; i < PFS_COUNT(moments); i++) {
		uint64_t five = ino_of("/5"), file = ino_of("/6/file"), six = ino_of("/6");

		scene.at = moments[i];
		scene.change = move_into_two;
		scene.restless = true;
		make_dir("2/new"); /* so that both listings are read anew */
		make_dir("8/new");
		refresh();
		assert_null(scene.at);
		scene.restless = false;
		refresh();
		assert_int_equal(five, ino_of("/2/5"));
		assert_int_equal(six, ino_of("/8/6"));
		assert_int_equal(file, ino_of("/8/6/file"));
		assert_int_equal(ino_of("/5"), 0);
		assert_int_equal(ino_of("/6"), 0);
		move("2/5", "5");
		move("8/6", "6");
		assert_int_equal(rmdir(path_of("2/new")), 0);
		assert_int_equal(rmdir(path_of("8/new")), 0);
		refresh();
		assert_int_equal(five, ino_of("/5"));
		assert_as_source("/");
		assert_as_source("/2");
	}
}

/* One may stamp both changes with the same time, as the clock stands still between its ticks. */
static void a_store_that_changes_when_its_source_does(void **state PFS_UNUSED)
{
	const struct pfs_caller caller = {.uid = geteuid(), .gid = getegid()};
	struct timespec ours[2];
	struct stat theirs;
	char name[32] = "";

	(void)usleep(2200000);
	refresh(); /* by now times tell of changes */
	for (int i = 0; i < ATTEMPTS; i++) {
		struct pfs_entry made;

		(void)snprintf(name, sizeof(name), "1/theirs%d", i);
		put(name);
		(void)snprintf(name, sizeof(name), "ours%d", i);
		assert_int_equal(
			pfs_tree_make(tree, &made, ino_of("/1"), name, S_IFREG | 0644, 0, &caller),
			0);
		pfs_tree_forget(tree, made.attr.st_ino, 1);
		times_of(ours, "/1");
		assert_int_equal(lstat(path_of("1"), &theirs), 0);
		(void)snprintf(name, sizeof(name), "/1/theirs%d", i);
		if (memcmp(&ours[0], &theirs.st_mtim, sizeof(ours[0])) == 0)
			break;
	}
	refresh();
	assert_true(ino_of(name));
}

/* The same of modes: of a file and of a directory. */
static void modes_that_change_at_once(void **state PFS_UNUSED)
{
	const struct pfs_caller caller = {.uid = geteuid(), .gid = getegid()};
	static const char *const paths[] = {"/1/file", "/1"};
	const struct stat ours = {.st_mode = 0700};

	(void)usleep(2200000);
	refresh(); /* by now times tell of changes */
	for (size_t k = 0; k < PFS_COUNT(paths); k++) {
		uint64_t ino = ino_of(paths[k]);
		struct timespec now = {0};
		struct pfs_follower node;
		struct pfs_entry set;
		struct stat theirs;

		for (int i = 0; i < ATTEMPTS; i++) {
			/* A time that somebody has read is followed by one between two ticks. */
			assert_int_equal(chmod(path_of(paths[k] + 1), 0755), 0);
			(void)usleep(10000);
			(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
			assert_int_equal(
				pfs_tree_setattr(tree, &set, ino, &ours, PFS_SET_MODE, &caller), 0);
			assert_int_equal(chmod(path_of(paths[k] + 1), 0711), 0);
			assert_int_equal(lstat(path_of(paths[k] + 1), &theirs), 0);
			if (memcmp(&now, &theirs.st_ctim, sizeof(now)) == 0)
				break;
		}
		refresh();
		assert_int_equal(pfs_follow_node(tree, &node, ino), 0);
		assert_int_equal(node.attr.st_mode & 07777, 0711);
	}
}

static int rename_by_statement(uint64_t ino, const char *name)
{
	const struct pfs_caller caller = {.uid = geteuid(), .gid = getegid()};
	const struct pfs_change_basis basis = {.epoch = pfs_follow_epoch(tree)};
	struct pfs_change_set set = {.kind = PFS_CHANGE_UPDATE};
	char why[512];
	int error = pfs_change_set_move(&set, ino, ino_of("/"), name);

	if (!error)
		error = pfs_tree_change(tree, &set, &basis, &caller, why, sizeof(why));
	pfs_change_set_finish(&set);
	return error;
}

/* The same of a directory that the store changes and moves, in each of the ways that it can. */
static void directories_that_the_store_moves(void **state PFS_UNUSED)
{
	const struct pfs_caller caller = {.uid = geteuid(), .gid = getegid()};
	uint64_t root = ino_of("/"), ino = ino_of("/1");
	const char *from = "1", *to = "moved";

	for (int way = 0; way < 2; way++) {
		char own[32], name[32], path[64];
		struct timespec now = {0};
		struct stat theirs;

		(void)usleep(2200000);
		refresh(); /* by now times tell of changes */
		for (int i = 0; i < ATTEMPTS; i++) {
			struct pfs_entry made;
			const char *old = from;

			(void)snprintf(own, sizeof(own), "own%d_%d", way, i);
			(void)snprintf(name, sizeof(name), "1/new%d_%d", way, i);
			/* A time that somebody has read is followed by one between two ticks. */
			assert_int_equal(chmod(path_of("1"), 0755), 0);
			(void)usleep(10000);
			(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
			assert_int_equal(
				pfs_tree_make(tree, &made, ino, own, S_IFREG | 0644, 0, &caller),
				0);
			assert_int_equal(way ? rename_by_statement(ino, to)
					     : pfs_tree_rename(tree, root, from, root, to, 0),
					 0);
			put(name);
			pfs_tree_forget(tree, made.attr.st_ino, 1);
			from = to;
			to = old;
			assert_int_equal(lstat(path_of("1"), &theirs), 0);
			if (memcmp(&now, &theirs.st_ctim, sizeof(now)) == 0)
				break;
		}
		refresh();
		(void)snprintf(path, sizeof(path), "/%s/%s", from, name + 2);
		assert_true(ino_of(path));
	}
}

static void nothing(void)
{
}

/* What goes while something changes stays, and its directory is read again; then it goes. */
static void what_is_gone_while_the_source_changes(void **state PFS_UNUSED)
{
	uint64_t three = ino_of("/3"), file = ino_of("/3/file");

	scene.change = nothing;
	scene.restless = true;
	assert_int_equal(unlink(path_of("3/file")), 0);
	assert_int_equal(rmdir(path_of("3")), 0);
	put("4/other");
	refresh();
	assert_int_equal(scene.left, 1);
	assert_int_equal(ino_of("/3"), three);
	assert_int_equal(ino_of("/3/file"), file);
	assert_true(ino_of("/4/other"));
	scene.restless = false;
	refresh();
	assert_int_equal(scene.left, 1);
	assert_int_equal(ino_of("/3"), 0);
}

static void move_all_away(void)
{
	for (char from[] = "1", to[] = "away1"; *from <= '9'; to[4] = ++*from)
		move(from, to);
}

/* Where directories have gone that their listing still had is not known, and no directory is known
 * that tells. */
static void what_vanishes_before_it_is_opened(void **state PFS_UNUSED)
{
	uint64_t three = ino_of("/3"), file = ino_of("/3/file");

	scene.at = "5"; /* whichever are read before that */
	scene.change = move_all_away;
	refresh();
	assert_null(scene.at);
	assert_true(scene.behind > 0);
	scene.behind = 0;
	refresh();
	assert_int_equal(scene.behind, 0);
	assert_int_equal(ino_of("/away3"), three);
	assert_int_equal(ino_of("/away3/file"), file);
}

/* Of 1/a/b/c and its like nothing has changed: who watches them all has none of them opened but the
 * top. */
static void a_quick_one_opens_what_has_changed(void **state PFS_UNUSED)
{
	make_dir("1/a");
	make_dir("1/a/b");
	make_dir("1/a/b/c");
	(void)usleep(2200000);
	refresh(); /* by now times tell of changes */
	scene.entered = 0;
	refresh_as(true);
	assert_int_equal(scene.entered, 1 + 9 + 3);
	scene.knows = true;
	scene.entered = 0;
	refresh_as(true);
	assert_int_equal(scene.entered, 1);
	put("1/a/b/c/new");
	put("1/a/b/other");
	scene.entered = 0;
	refresh_as(true);
	assert_int_equal(scene.entered, 3);
	assert_true(ino_of("/1/a/b/c/new"));
	assert_true(ino_of("/1/a/b/other"));
}

/* Makes the directory "new" so old that its times, and those of what is in it, tell of changes. */
static void make_new(void)
{
	make_dir("new");
	make_dir("new/a");
	put("new/a/file");
	make_dir("new/a/b");
	put("new/a/b/file");
	(void)usleep(2200000);
}

static void rename_new(void)
{
	move("new", "new2");
}

/* What is in them cannot be opened any more by the path that they had; no time of theirs changes
 * with that. */
static void what_is_new_where_something_is_renamed(void **state PFS_UNUSED)
{
	make_new();
	scene.at = "new";
	scene.change = rename_new;
	refresh();
	assert_null(scene.at);
	(void)usleep(2200000);
	refresh();
	assert_true(ino_of("/new2/a/file"));
	assert_true(ino_of("/new2/a/b/file"));
	assert_int_equal(ino_of("/new"), 0);
	assert_as_source("/new2/a");
	assert_as_source("/new2/a/b");
	assert_int_equal(scene.left, 1);
}

static const char *name_of(unsigned i, const char *below)
{
	static char name[64];

	(void)snprintf(name, sizeof(name), "1/many/%u%s", i, below);
	return name;
}

/* Several threads look at them. */
static void a_quick_one_looks_at_many(void **state PFS_UNUSED)
{
	uint64_t seven;

	make_dir("1/many");
	for (unsigned i = 0; i < 300; i++) {
		make_dir(name_of(i, ""));
		make_dir(name_of(i, "/a"));
		make_dir(name_of(i, "/a/b"));
	}
	refresh();
	(void)usleep(2200000);
	refresh(); /* by now times tell of changes */
	seven = ino_of("/1/many/7");
	scene.knows = true;
	scene.entered = 0;
	refresh_as(true);
	assert_int_equal(scene.entered, 1);
	put("1/many/250/a/b/new");
	assert_int_equal(rmdir(path_of("1/many/100/a/b")), 0);
	move("1/many/7", "1/many/8/a/7");
	refresh_as(true);
	assert_true(ino_of("/1/many/250/a/b/new"));
	assert_int_equal(ino_of("/1/many/100/a/b"), 0);
	assert_int_equal(ino_of("/1/many/8/a/7"), seven);
	assert_true(ino_of("/1/many/8/a/7/a/b"));
	assert_true(ino_of("/1/many/299/a/b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_quick_one_opens_what_has_changed, begin, end),
		cmocka_unit_test_setup_teardown(a_quick_one_looks_at_many, begin, end),
		cmocka_unit_test_setup_teardown(what_is_compared_in_a_frozen_tree, begin, end),
		cmocka_unit_test_setup_teardown(directories_that_are_exchanged, begin, end),
		cmocka_unit_test_setup_teardown(directories_that_come_elsewhere, begin, end),
		cmocka_unit_test_setup_teardown(a_store_that_changes_when_its_source_does, begin,
						end),
		cmocka_unit_test_setup_teardown(modes_that_change_at_once, begin, end),
		cmocka_unit_test_setup_teardown(directories_that_the_store_moves, begin, end),
		cmocka_unit_test_setup_teardown(what_is_gone_while_the_source_changes, begin, end),
		cmocka_unit_test_setup_teardown(what_vanishes_before_it_is_opened, begin, end),
		cmocka_unit_test_setup_teardown(what_is_new_where_something_is_renamed, begin, end),
	};

	return cmocka_run_group_tests(tests, make_source, remove_folder);
}
