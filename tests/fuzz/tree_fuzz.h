/* SPDX-License-Identifier: MIT */
/* tests/fuzz/tree_fuzz.h - a small tree to ask about, in a store that is gone from its folder at
 * once. */
#ifndef PFS_TESTS_TREE_FUZZ_H
#define PFS_TESTS_TREE_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fs/tree/tree.h"
#include "tools/import/import.h"

static inline void keep_silent(void *arg PFS_UNUSED, const char *message PFS_UNUSED)
{
}

static inline int import_paths(const char *path)
{
	static const char paths[] =
		"d/a.c\tred\nd/b.txt\t\nd/d/c.tar.gz\tblue\nd/d/no\xffname\tred\n"
		"d/d/d/_\t5\nd/d/d/.x\t\ne/a.c\tred\ne/it's\tno\n";
	struct pfs_import import = {.say = keep_silent};
	int status;

	import.options.source = "input";
	import.options.store = path;
	import.options.quiet = true;
	import.options.columns = "tag";
	import.options.format = &pfs_import_paths;
	if (pfs_input_open_memory(&import.input, paths, sizeof(paths) - 1) != 0)
		abort();
	status = pfs_import_run(&import);
	pfs_input_close(&import.input);
	return status;
}

static inline struct pfs_tree *open_small_tree(bool read_only)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	struct pfs_tree *tree;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/primefs-fuzz-%ld.pfs",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
	(void)unlink(path);
	if (import_paths(path) != 0 ||
	    pfs_tree_open(&tree, path, &(struct pfs_tree_options){.read_only = read_only}) != 0 ||
	    (!read_only && pfs_tree_start(tree) != 0))
		abort();
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		char file[140];

		(void)snprintf(file, sizeof(file), "%s%s", path, suffixes[i]);
		(void)unlink(file);
	}
	return tree;
}

#endif
