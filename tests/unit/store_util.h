/* SPDX-License-Identifier: MIT */
/* tests/unit/store_util.h - what the tests of the store share: a folder of their own, short ways to
 * open a store and to make records. */
#ifndef PFS_TESTS_STORE_UTIL_H
#define PFS_TESTS_STORE_UTIL_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "meta/store.h"

static char test_folder[96];
static char test_path[104];

static inline int make_folder(void **state PFS_UNUSED)
{
	const char *parent = getenv("TMPDIR");

	(void)snprintf(test_folder, sizeof(test_folder), "%s/pfs-store-XXXXXX",
		       parent ? parent : "/tmp");
	if (!mkdtemp(test_folder))
		return -1;
	(void)snprintf(test_path, sizeof(test_path), "%s/a.pfs", test_folder);
	return 0;
}

static inline int remove_folder(void **state PFS_UNUSED)
{
	char command[300];

	(void)snprintf(command, sizeof(command), "chmod -R u+rwX %s; rm -rf %s", test_folder,
		       test_folder);
	return system(command); /* NOLINT(cert-env33-c): our own temporary folder */
}

static inline int try_open_as(struct pfs_store **out, unsigned flags)
{
	return pfs_store_open(out, test_path, &(struct pfs_store_options){.flags = flags});
}

static inline struct pfs_store *open_as(unsigned flags)
{
	struct pfs_store *store;

	assert_int_equal(try_open_as(&store, flags), 0);
	assert_non_null(store);
	return store;
}

/* A new store with a committed root; replaces the last one. */
static inline struct pfs_store *new_store(unsigned flags)
{
	const struct pfs_node_record root = {
		.prime = PFS_ROOT_PRIME, .mode = S_IFDIR | 0755, .name = "", .mtime = {.sec = 1}};
	struct pfs_store *store;

	(void)unlink(test_path);
	store = open_as(flags | PFS_STORE_CREATE);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_node(store, &root), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	return store;
}

static inline struct pfs_node_record file_record(uint64_t prime, uint32_t slot, const char *name)
{
	return (struct pfs_node_record){.prime = prime,
					.parent = PFS_ROOT_PRIME,
					.slot = slot,
					.mode = S_IFREG | 0644,
					.name = name,
					.name_len = strlen(name)};
}

static inline void print_finding(void *arg, const char *finding)
{
	int *count = arg;

	print_message("finding: %s\n", finding);
	(*count)++;
}

static inline int count_findings(struct pfs_store *store)
{
	int count = 0;

	assert_int_equal(pfs_store_check(store, print_finding, &count), 0);
	return count;
}

static inline void copy_file(const char *to, const char *from)
{
	static uint8_t buffer[1 << 20];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ssize_t len;

	assert_true(in >= 0 && out >= 0);
	while ((len = read(in, buffer, sizeof(buffer))) > 0)
		assert_int_equal(write(out, buffer, (size_t)len), len);
	assert_int_equal(len, 0);
	assert_int_equal(close(in), 0);
	assert_int_equal(close(out), 0);
}

#endif
