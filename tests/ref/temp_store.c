/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ref/temp_store.h"

static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".img", ".img.part"};

const struct pfs_caller temp_root = {.uid = 0, .gid = 0, .umask = 022};
const struct pfs_caller temp_user = {.uid = 1000, .gid = 1000, .umask = 022};

void temp_store_folder(struct temp_store *temp)
{
	(void)snprintf(temp->folder, sizeof(temp->folder), "/tmp/primefs-test-XXXXXX");
	assert_non_null(mkdtemp(temp->folder));
	(void)snprintf(temp->path, sizeof(temp->path), "%s/store.pfs", temp->folder);
}

struct pfs_node_record temp_record(uint64_t prime, uint64_t parent, uint32_t slot, mode_t mode,
				   const char *name)
{
	const struct pfs_time time = {.sec = 1000000000, .nsec = 123456789};

	return (struct pfs_node_record){
		.prime = prime,
		.parent = parent,
		.slot = slot,
		.mode = mode,
		.atime = time,
		.mtime = time,
		.ctime = time,
		.name = name,
		.name_len = strlen(name),
	};
}

static void reserve_up_to(struct pfs_store *store, enum pfs_prime_kind kind, uint64_t prime)
{
	uint64_t first, end;

	assert_int_equal(pfs_store_reserved(store, &first, kind), 0);
	if (prime >= first)
		assert_int_equal(pfs_store_reserve(store, &first, &end, kind, prime + 1 - first),
				 0);
}

static void put(struct pfs_store *store, const struct pfs_node_record *nodes, size_t n)
{
	assert_int_equal(pfs_store_begin(store), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(pfs_store_put_node(store, &nodes[i]), 0);
		if (nodes[i].prime != PFS_ROOT_PRIME)
			reserve_up_to(store,
				      nodes[i].prime >> 32 ? PFS_PRIME_OTHER : PFS_PRIME_DIRECTORY,
				      nodes[i].prime);
	}
	assert_int_equal(pfs_store_commit(store, NULL), 0);
}

void temp_store_create(struct temp_store *temp)
{
	struct pfs_store_options options = {.flags = PFS_STORE_CREATE};
	struct pfs_node_record root = temp_record(PFS_ROOT_PRIME, 0, 0, S_IFDIR | 0755, "");
	struct pfs_store *store;

	temp_store_folder(temp);
	assert_int_equal(pfs_store_open(&store, temp->path, &options), 0);
	put(store, &root, 1);
	assert_int_equal(pfs_store_close(store), 0);
}

void temp_store_put(const struct temp_store *temp, const struct pfs_node_record *nodes, size_t n)
{
	struct pfs_store_options options = {0};
	struct pfs_store *store;

	assert_int_equal(pfs_store_open(&store, temp->path, &options), 0);
	put(store, nodes, n);
	assert_int_equal(pfs_store_close(store), 0);
}

void temp_store_remove(struct temp_store *temp)
{
	char path[128];

	for (size_t i = 0; i < PFS_COUNT(suffixes); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", temp->path, suffixes[i]);
		(void)unlink(path);
	}
	(void)rmdir(temp->folder);
}

static void copy_file(const char *from, const char *to)
{
	char buffer[65536];
	FILE *in = fopen(from, "rb"), *out;
	size_t n;

	if (!in)
		return;
	out = fopen(to, "wb");
	assert_non_null(out);
	while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0)
		assert_int_equal(fwrite(buffer, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
	(void)fclose(in);
}

void temp_store_copy(const struct temp_store *from, struct temp_store *to)
{
	char source[128], target[128];

	temp_store_folder(to);
	for (size_t i = 0; i < 2; i++) { /* the index of the log is made anew */
		(void)snprintf(source, sizeof(source), "%s%s", from->path, suffixes[i]);
		(void)snprintf(target, sizeof(target), "%s%s", to->path, suffixes[i]);
		copy_file(source, target);
	}
}

struct pfs_tree *temp_tree_open_with(const struct temp_store *temp,
				     const struct pfs_tree_options *options)
{
	struct pfs_tree *tree;

	assert_int_equal(pfs_tree_open(&tree, temp->path, options), 0);
	assert_int_equal(pfs_tree_start(tree), 0);
	return tree;
}

struct pfs_tree *temp_tree_open(const struct temp_store *temp)
{
	return temp_tree_open_with(temp, &(struct pfs_tree_options){0});
}

void temp_tree_close(struct pfs_tree *tree)
{
	assert_int_equal(pfs_tree_close(tree), 0);
}

uint64_t temp_tree_make(struct pfs_tree *tree, uint64_t parent, const char *name, mode_t mode)
{
	struct pfs_entry entry;

	if (pfs_tree_make(tree, &entry, parent, name, mode, 0, &temp_root))
		return 0;
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
	return entry.attr.st_ino;
}

static void print_finding(void *arg, const char *finding)
{
	unsigned *count = arg;

	if (++*count <= 3)
		print_message("%s\n", finding);
}

unsigned temp_store_findings(const struct temp_store *temp)
{
	unsigned count = 0;

	assert_int_equal(pfs_tree_check(temp->path, &(struct pfs_tree_options){0}, print_finding,
					&count),
			 0);
	return count;
}
