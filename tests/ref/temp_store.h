/* SPDX-License-Identifier: MIT */
/* tests/ref/temp_store.h - stores for tests of the tree: made, opened, copied as a crash leaves
 * them. */
#ifndef PFS_TESTS_REF_TEMP_STORE_H
#define PFS_TESTS_REF_TEMP_STORE_H

#include <limits.h>

#include "fs/tree/tree.h"
#include "meta/store.h"

struct temp_store {
	char folder[64];
	char path[96]; /* of the store in it */
};

/* Everything here fails the test when it fails. */

void temp_store_create(struct temp_store *temp); /* a folder, and an empty store with its root */
void temp_store_folder(struct temp_store *temp); /* the folder alone */
void temp_store_remove(struct temp_store *temp);

/* A copy of the store's files as they are now: what a crash would leave. */
void temp_store_copy(const struct temp_store *from, struct temp_store *to);

/* Writes records into the closed store.  Numbers up to the largest prime of each kind are marked as
 * handed out. */
void temp_store_put(const struct temp_store *temp, const struct pfs_node_record *nodes, size_t n);

/* A record with usual values. */
struct pfs_node_record temp_record(uint64_t prime, uint64_t parent, uint32_t slot, mode_t mode,
				   const char *name);

/* Opened and started. */
struct pfs_tree *temp_tree_open(const struct temp_store *temp);
struct pfs_tree *temp_tree_open_with(const struct temp_store *temp,
				     const struct pfs_tree_options *options);
void temp_tree_close(struct pfs_tree *tree);
/* A node made by temp_root and forgotten; 0: it cannot be.  From any thread. */
uint64_t temp_tree_make(struct pfs_tree *tree, uint64_t parent, const char *name, mode_t mode);

/* How many findings the check has, each of them printed. */
unsigned temp_store_findings(const struct temp_store *temp);

extern const struct pfs_caller temp_root, temp_user;

#endif
