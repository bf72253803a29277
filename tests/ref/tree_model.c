/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/siphash.h"
#include "tests/ref/random.h"
#include "tests/ref/temp_store.h"
#include "tests/ref/tree_model.h"

#define NODES_MAX 120
#define NAMES	  9 /* few, so that they clash */
#define PATH_SIZE 1024

static uint64_t random_state;
static bool faults; /* any operation may fail, and is then not done */

uint32_t tree_model_random(uint32_t n)
{
	return random_below(&random_state, n);
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
static struct pfs_tree *tree;

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

uint64_t tree_model_state(void)
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

uint64_t tree_model_state_of(struct pfs_tree *of)
{
	uint64_t sum = 0;

	assert_int_equal(pfs_tree_walk(of, PFS_ROOT_PRIME, add_to_state, &sum), 0);
	return sum;
}

/* ---- operations, on both ---- */

/* The operation's result is what it must be; true when it was done. */
static bool done(int error, int expected)
{
	if (faults && (error == -EROFS || error == -EIO || error == -ENOSPC || error == -ENOMEM))
		return false;
	assert_int_equal(error, expected);
	return error == 0;
}

static int any_node(void)
{
	for (;;) {
		int i = (int)tree_model_random(NODES_MAX);

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
	(void)snprintf(name, 4, "n%u", tree_model_random(NAMES));
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
	int parent = any_node(), free_node = 1, expected = directory_error(parent), error;
	struct pfs_entry entry;
	mode_t mode = types[tree_model_random(6)] | 0600;
	char name[4];

	while (free_node < NODES_MAX && model[free_node].ino)
		free_node++;
	if (free_node == NODES_MAX)
		return;
	any_name(name);
	if (!expected && child(parent, name) != -1)
		expected = -EEXIST;
	error = pfs_tree_make(tree, &entry, model[parent].ino, name, mode, 5, &temp_user);
	if (!done(error, expected))
		return;
	model[free_node] = (struct model_node){
		.ino = entry.attr.st_ino,
		.parent = parent,
		.held = tree_model_random(4) == 0,
		.mode = mode,
		.uid = 1000,
		.rdev = S_ISCHR(mode) ? 5 : 0,
	};
	memcpy(model[free_node].name, name, sizeof(name));
	if (!model[free_node].held)
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
}

static void do_remove(void)
{
	int parent = any_directory(), victim, expected = 0, error;
	bool rmdir = tree_model_random(2);
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
	error = rmdir ? pfs_tree_rmdir(tree, model[parent].ino, name)
		      : pfs_tree_unlink(tree, model[parent].ino, name);
	if (done(error, expected))
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
	int error = directory_error(from_dir);

	if (!error)
		error = directory_error(to_dir);
	if (error)
		return error;
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
	unsigned flags = choices[tree_model_random(4)];
	int from_dir = any_directory(), to_dir = any_directory(), from, to, error;
	char name[4], new_name[4];

	any_name(name);
	any_name(new_name);
	from = child(from_dir, name);
	to = child(to_dir, new_name);
	error = pfs_tree_rename(tree, model[from_dir].ino, name, model[to_dir].ino, new_name,
				flags);
	if (!done(error, rename_error(from_dir, from, to_dir, to, flags)) || from == to)
		return;
	if (flags & RENAME_EXCHANGE) {
		model[to].parent = from_dir;
		memcpy(model[to].name, name, sizeof(name));
	} else if (to != -1) {
		drop(to);
	}
	model[from].parent = to_dir;
	memcpy(model[from].name, new_name, sizeof(new_name));
}

static void do_setattr(void)
{
	int i = any_node();
	struct stat attr = {.st_mode = tree_model_random(01000), .st_uid = tree_model_random(5)};
	struct pfs_entry entry;

	if (!done(pfs_tree_setattr(tree, &entry, model[i].ino, &attr, PFS_SET_MODE | PFS_SET_UID,
				   &temp_root),
		  0))
		return;
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

/* ---- for the tests ---- */

void tree_model_start(struct pfs_tree *of, uint64_t seed)
{
	random_state = seed;
	faults = false;
	memset(model, 0, sizeof(model));
	model[0] = (struct model_node){
		.ino = PFS_ROOT_PRIME, .parent = -1, .held = true, .mode = S_IFDIR | 0755};
	tree = of;
}

void tree_model_reopened(struct pfs_tree *of)
{
	tree = of;
	for (int i = 1; i < NODES_MAX; i++) {
		model[i].held = false;
		if (model[i].parent == -1)
			model[i].ino = 0;
	}
}

void tree_model_allow_faults(bool allow)
{
	faults = allow;
}

void tree_model_step(void)
{
	static void (*const operations[])(void) = {
		do_make,   do_make,   do_make,	 do_make,    do_remove, do_remove, do_remove,
		do_rename, do_rename, do_rename, do_setattr, do_forget, do_lookup, do_lookup,
	};

	operations[tree_model_random(sizeof(operations) / sizeof(operations[0]))]();
}
