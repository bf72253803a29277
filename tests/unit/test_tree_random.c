/* SPDX-License-Identifier: MIT */
/* Random changes against a simple model; closing, crashing and opening again in between.
 *
 * A state of the tree is summed up in one number.  The model keeps the number of every state since
 * the last sync: whatever a crash leaves must be one of them, that is, no operation half done and
 * none before the sync lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/siphash.h"
#include "tests/ref/temp_store.h"

#define NODES_MAX 120
#define NAMES	  9 /* few, so that they clash */
#define STEPS	  2500
#define PATH_SIZE 1024

static uint64_t seed = 20260801, random_state;

static uint32_t random_below(uint32_t n)
{
	uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ (z >> 31)) % n);
}

/* ---- the model ---- */

struct model_node {
	uint64_t ino; /* 0: free */
	int parent;   /* -1: the root, or unlinked */
	bool held;    /* we hold a reference */
	char name[4];
	mode_t mode;
	uid_t uid;
	uint64_t rdev;
};

static struct model_node model[NODES_MAX];
static struct temp_store temp;
static struct pfs_tree *tree;
static struct pfs_tree_options options;

static uint64_t states[STEPS + 2]; /* since the last sync */
static size_t n_states;

static bool is_dir(int i)
{
	return S_ISDIR(model[i].mode);
}

static int child(int parent, const char *name)
{
	for (int i = 1; i < NODES_MAX; i++)
		if (model[i].ino && model[i].parent == parent && !strcmp(model[i].name, name))
			return i;
	return -1;
}

static bool is_empty(int dir)
{
	for (int i = 1; i < NODES_MAX; i++)
		if (model[i].ino && model[i].parent == dir)
			return false;
	return true;
}

static bool is_under(int node, int top)
{
	while (node != -1 && node != top)
		node = model[node].parent;
	return node == top;
}

static bool is_alive(int i)
{
	return i == 0 || (model[i].ino && model[i].parent != -1);
}

static size_t path_of(char *path, int i)
{
	size_t len = 0;

	if (model[i].parent > 0) {
		len = path_of(path, model[i].parent);
		path[len++] = '/';
	}
	if (i)
		len += (size_t)snprintf(path + len, PATH_SIZE - len, "%s", model[i].name);
	path[len] = 0;
	return len;
}

static unsigned links_of(int i)
{
	unsigned links = is_dir(i) ? 2 : 1;

	for (int k = 1; k < NODES_MAX; k++)
		links += model[k].ino && model[k].parent == i && is_dir(k);
	return links;
}

/* ---- states ---- */

static uint64_t sum_of(const char *path, uint64_t ino, mode_t mode, uid_t uid, uint64_t rdev,
		       uint64_t links)
{
	uint64_t sum = pfs_siphash(path, strlen(path), ino, mode);

	return sum ^ pfs_siphash(&links, sizeof(links), sum + uid, sum + rdev);
}

static uint64_t state_of_model(void)
{
	uint64_t sum = 0;
	char path[PATH_SIZE];

	for (int i = 0; i < NODES_MAX; i++) {
		if (!is_alive(i))
			continue;
		(void)path_of(path, i);
		sum += sum_of(path, model[i].ino, model[i].mode, model[i].uid, model[i].rdev,
			      links_of(i));
	}
	return sum;
}

static int add_to_state(void *arg, const struct pfs_walk_node *node)
{
	const struct stat *st = &node->entry.attr;
	uint64_t *sum = arg;

	*sum += sum_of(node->path, st->st_ino, st->st_mode, st->st_uid, st->st_rdev, st->st_nlink);
	return 0;
}

static uint64_t state_of_tree(struct pfs_tree *of)
{
	uint64_t sum = 0;

	assert_int_equal(pfs_tree_walk(of, PFS_ROOT_PRIME, add_to_state, &sum), 0);
	return sum;
}

/* ---- operations, on both ---- */

static int any_node(void)
{
	for (;;) {
		int i = (int)random_below(NODES_MAX);

		if (i == 0 || model[i].ino)
			return i;
	}
}

static int any_directory(void)
{
	for (int tries = 0; tries < 10; tries++) {
		int i = any_node();

		if (is_dir(i))
			return i;
	}
	return 0;
}

static void any_name(char *name)
{
	(void)snprintf(name, 4, "n%u", random_below(NAMES));
}

/* What an operation in the directory must fail with, before names are looked at. */
static int directory_error(int dir)
{
	if (!is_dir(dir))
		return -ENOTDIR;
	return is_alive(dir) ? 0 : -ENOENT;
}

static void drop(int i)
{
	if (!model[i].held)
		model[i].ino = 0;
	model[i].parent = -1;
}

static void do_make(void)
{
	static const mode_t types[] = {S_IFREG, S_IFREG, S_IFDIR, S_IFDIR, S_IFCHR, S_IFIFO};
	int parent = any_node(), free_node = 1, expected = directory_error(parent), rc;
	struct pfs_entry entry;
	mode_t mode = types[random_below(6)] | 0600;
	char name[4];

	while (free_node < NODES_MAX && model[free_node].ino)
		free_node++;
	if (free_node == NODES_MAX)
		return;
	any_name(name);
	if (!expected && child(parent, name) != -1)
		expected = -EEXIST;
	rc = pfs_tree_make(tree, &entry, model[parent].ino, name, mode, 5, &temp_user);
	assert_int_equal(rc, expected);
	if (rc)
		return;
	model[free_node] = (struct model_node){
		.ino = entry.attr.st_ino,
		.parent = parent,
		.held = random_below(4) == 0,
		.mode = mode,
		.uid = 1000,
		.rdev = S_ISCHR(mode) ? 5 : 0,
	};
	(void)strcpy(model[free_node].name, name);
	if (!model[free_node].held)
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
}

static void do_remove(void)
{
	int parent = any_directory(), victim, expected = 0, rc;
	bool rmdir = random_below(2);
	char name[4];

	any_name(name);
	victim = child(parent, name);
	if (victim == -1)
		expected = -ENOENT;
	else if (rmdir && !is_dir(victim))
		expected = -ENOTDIR;
	else if (!rmdir && is_dir(victim))
		expected = -EISDIR;
	else if (rmdir && !is_empty(victim))
		expected = -ENOTEMPTY;
	rc = rmdir ? pfs_tree_rmdir(tree, model[parent].ino, name)
		   : pfs_tree_unlink(tree, model[parent].ino, name);
	assert_int_equal(rc, expected);
	if (!rc)
		drop(victim);
}

static int replace_error(int from, int to)
{
	if (to == -1 || from == to)
		return 0;
	if (is_dir(from) != is_dir(to))
		return is_dir(from) ? -ENOTDIR : -EISDIR;
	return is_dir(to) && !is_empty(to) ? -ENOTEMPTY : 0;
}

static int rename_error(int from_dir, int from, int to_dir, int to, unsigned flags)
{
	int rc = directory_error(from_dir);

	if (!rc)
		rc = directory_error(to_dir);
	if (rc)
		return rc;
	if (from == -1)
		return -ENOENT;
	if (flags & RENAME_NOREPLACE && to != -1)
		return -EEXIST;
	if (is_dir(from) && is_under(to_dir, from))
		return -EINVAL;
	if (!(flags & RENAME_EXCHANGE))
		return replace_error(from, to);
	if (to == -1)
		return -ENOENT;
	return is_dir(to) && is_under(from_dir, to) ? -EINVAL : 0;
}

static void do_rename(void)
{
	static const unsigned choices[] = {0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
	unsigned flags = choices[random_below(4)];
	int from_dir = any_directory(), to_dir = any_directory(), from, to, rc;
	char name[4], new_name[4];

	any_name(name);
	any_name(new_name);
	from = child(from_dir, name);
	to = child(to_dir, new_name);
	rc = pfs_tree_rename(tree, model[from_dir].ino, name, model[to_dir].ino, new_name, flags);
	assert_int_equal(rc, rename_error(from_dir, from, to_dir, to, flags));
	if (rc || from == to)
		return;
	if (flags & RENAME_EXCHANGE) {
		model[to].parent = from_dir;
		(void)strcpy(model[to].name, name);
	} else if (to != -1) {
		drop(to);
	}
	model[from].parent = to_dir;
	(void)strcpy(model[from].name, new_name);
}

static void do_setattr(void)
{
	int i = any_node();
	struct stat attr = {.st_mode = random_below(01000), .st_uid = random_below(5)};
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, model[i].ino, &attr,
					  PFS_SET_MODE | PFS_SET_UID, &temp_root),
			 0);
	model[i].mode = (model[i].mode & S_IFMT) | attr.st_mode;
	model[i].uid = attr.st_uid;
	assert_int_equal(entry.attr.st_mode, model[i].mode);
}

static void do_forget(void)
{
	int i = any_node();

	if (i == 0 || !model[i].held)
		return;
	pfs_tree_forget(tree, model[i].ino, 1);
	model[i].held = false;
	if (model[i].parent == -1)
		model[i].ino = 0;
}

static void do_lookup(void)
{
	int parent = any_directory(), i;
	struct pfs_entry entry;
	char name[4];

	any_name(name);
	i = child(parent, name);
	assert_int_equal(pfs_tree_lookup(tree, &entry, model[parent].ino, name),
			 i == -1 ? -ENOENT : 0);
	if (i == -1)
		return;
	assert_int_equal(entry.attr.st_ino, model[i].ino);
	assert_int_equal(entry.attr.st_nlink, links_of(i));
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
}

/* ---- what happens to the tree in between ---- */

static void note_state(void)
{
	states[n_states++] = state_of_model();
}

static void synced(void)
{
	n_states = 0;
	note_state();
}

static void forget_references(void)
{
	for (int i = 1; i < NODES_MAX; i++) {
		model[i].held = false;
		if (model[i].parent == -1)
			model[i].ino = 0;
	}
}

static void do_reopen(void)
{
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	tree = temp_tree_open_with(&temp, &options);
	forget_references();
	synced();
	assert_int_equal(state_of_tree(tree), states[0]);
}

static void do_crash(bool sync_first)
{
	struct temp_store copy;
	struct pfs_tree *after;
	uint64_t state;
	bool known = false;

	if (sync_first) {
		assert_int_equal(pfs_tree_sync(tree), 0);
		synced();
	}
	temp_store_copy(&temp, &copy);
	after = temp_tree_open(&copy);
	state = state_of_tree(after);
	for (size_t i = 0; i < n_states; i++)
		known = known || states[i] == state;
	assert_true(known);
	temp_tree_close(after);
	assert_int_equal(temp_store_findings(&copy), 0);
	temp_store_remove(&copy);
}

static void step(void)
{
	static void (*const operations[])(void) = {
		do_make,   do_make,   do_make,	  do_make,    do_remove, do_remove, do_remove,
		do_rename, do_rename, do_rename, do_setattr, do_forget, do_lookup, do_lookup,
	};
	uint32_t choice = random_below(1000);

	if (choice < 2)
		do_reopen();
	else if (choice < 10)
		do_crash(choice % 2);
	else
		operations[random_below(sizeof(operations) / sizeof(operations[0]))]();
	note_state();
}

static void run(unsigned commit_ms)
{
	options.commit_ms = commit_ms;
	print_message("seed %llu\n", (unsigned long long)seed);
	random_state = seed;
	memset(model, 0, sizeof(model));
	model[0] = (struct model_node){
		.ino = PFS_ROOT_PRIME, .parent = -1, .held = true, .mode = S_IFDIR | 0755};
	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, &options);
	synced();
	for (int i = 0; i < STEPS; i++) {
		step();
		if (i % 50 == 0)
			assert_int_equal(state_of_tree(tree), state_of_model());
	}
	do_reopen();
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

static void test_rare_commits(void **state)
{
	(void)state;
	run(1000);
}

static void test_frequent_commits(void **state)
{
	(void)state;
	seed++;
	run(1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rare_commits),
		cmocka_unit_test(test_frequent_commits),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
