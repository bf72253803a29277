/* SPDX-License-Identifier: MIT */
/* tests/fuzz/import_fuzz.h - an import of the fuzzer's input, whole: parse, build, write, and check
 * the store that comes of it. */
#ifndef PFS_TESTS_IMPORT_FUZZ_H
#define PFS_TESTS_IMPORT_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fs/tree/tree.h"
#include "tools/import/import.h"

static inline void say_nothing(void *arg PFS_UNUSED, const char *message PFS_UNUSED)
{
}

static inline void print_finding(void *arg, const char *finding)
{
	(void)fprintf(stderr, "%s\n", finding);
	*(int *)arg += 1;
}

/* Aborts when a store was made that is not sound, or when one was left by an import that failed. */
static inline void import_input(const struct pfs_import_options *options, const uint8_t *data,
				size_t size)
{
	struct pfs_import import = {.options = *options, .say = say_nothing};
	char path[128];
	int status, findings = 0;

	(void)snprintf(path, sizeof(path), "%s/primefs-fuzz-%ld.pfs",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
	(void)unlink(path);
	import.options.source = "input";
	import.options.store = path;
	import.options.quiet = true;
	import.options.skip_given = true;
	if (pfs_input_open_memory(&import.input, data, size) != 0)
		abort();
	status = pfs_import_run(&import);
	pfs_input_close(&import.input);
	if (status <= PFS_EXIT_NO) {
		if (pfs_tree_check(path, &(struct pfs_tree_options){0}, print_finding, &findings) !=
			    0 ||
		    findings)
			abort();
	} else if (access(path, F_OK) == 0) {
		abort();
	}
	(void)unlink(path);
}

#endif
