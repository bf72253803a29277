/* SPDX-License-Identifier: MIT */
/* tests/unit/import_util.h - imports from memory into a store in the test's folder, and what they
 * said. */
#ifndef PFS_TESTS_IMPORT_UTIL_H
#define PFS_TESTS_IMPORT_UTIL_H

#include "tests/unit/store_util.h"

#include "base/checked.h"
#include "fs/tree/tree.h"
#include "tools/import/import.h"

static char said[8192]; /* by the last import, a line for each message */
static uint64_t narrowed PFS_UNUSED; /* by the last import's ACLs */

static inline void keep_message(void *arg PFS_UNUSED, const char *message)
{
	size_t len = strlen(said);

	(void)snprintf(said + len, sizeof(said) - len, "%s\n", message);
}

/* An exit status. */
static inline int run_import(const struct pfs_import_options *options, const void *data,
			     size_t size)
{
	struct pfs_import import = {.options = *options, .say = keep_message};
	int status;

	said[0] = 0;
	import.options.source = "memory";
	import.options.store = test_path;
	import.options.quiet = true;
	import.options.skip_given = true;
	if (!options->at)
		(void)unlink(test_path);
	assert_int_equal(pfs_input_open_memory(&import.input, data, size), 0);
	status = pfs_import_run(&import);
	narrowed = import.report.narrowed;
	pfs_input_close(&import.input);
	return status;
}

static inline int import_text(const struct pfs_import_options *options, const char *text)
{
	return run_import(options, text, strlen(text));
}

struct listing {
	struct pfs_tree *tree;
	char text[16384];
};

static inline int list_node(void *arg, const struct pfs_walk_node *node)
{
	struct listing *listing = arg;
	size_t len = strlen(listing->text);

	if (node->depth)
		(void)snprintf(listing->text + len, sizeof(listing->text) - len, "%s%s%s",
			       len ? " " : "", node->path,
			       S_ISDIR(node->entry.attr.st_mode) ? "/" : "");
	return 0;
}

static inline struct pfs_tree *open_tree(void)
{
	struct pfs_tree *tree;

	assert_int_equal(
		pfs_tree_open(&tree, test_path, &(struct pfs_tree_options){.read_only = true}), 0);
	return tree;
}

/* All nodes' paths, directories with a slash; the tree is sound too. */
static inline const char *tree_text(void)
{
	static struct listing listing;
	int findings = 0;

	listing.text[0] = 0;
	assert_int_equal(
		pfs_tree_check(test_path, &(struct pfs_tree_options){0}, print_finding, &findings),
		0);
	assert_int_equal(findings, 0);
	listing.tree = open_tree();
	assert_int_equal(pfs_tree_walk(listing.tree, PFS_ROOT_PRIME, list_node, &listing), 0);
	(void)pfs_tree_close(listing.tree);
	return listing.text;
}

/* An attribute's value, "-" when there is none. */
static inline const char *attr_text(const char *path, const char *name)
{
	static char value[1024];
	struct pfs_tree *tree = open_tree();
	ssize_t len;
	uint64_t ino;

	assert_int_equal(pfs_tree_resolve(tree, &ino, path), 0);
	len = pfs_tree_getxattr(tree, value, sizeof(value) - 1, ino, name);
	(void)pfs_tree_close(tree);
	if (len == -ENODATA)
		return "-";
	assert_true(len >= 0);
	value[len] = 0;
	return value;
}

static inline const char *content_text(const char *path)
{
	static char content[4096];
	struct pfs_tree *tree = open_tree();
	ssize_t len;
	uint64_t ino;

	assert_int_equal(pfs_tree_resolve(tree, &ino, path), 0);
	len = pfs_tree_read(tree, content, sizeof(content) - 1, ino, 0, 0);
	(void)pfs_tree_close(tree);
	assert_true(len >= 0);
	content[len] = 0;
	return content;
}

static inline struct stat stat_of(const char *path)
{
	struct pfs_tree *tree = open_tree();
	struct pfs_entry entry;
	uint64_t ino;

	assert_int_equal(pfs_tree_resolve(tree, &ino, path), 0);
	assert_int_equal(pfs_tree_getattr(tree, &entry, ino), 0);
	(void)pfs_tree_close(tree);
	return entry.attr;
}

#endif
