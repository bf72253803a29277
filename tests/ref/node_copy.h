/* SPDX-License-Identifier: MIT */
/* tests/ref/node_copy.h - statements about nodes over a copy of them in a table of SQLite's, which
 * has rows alone: what the tree knows of them is found by walking up these. */
#ifndef PFS_TESTS_REF_NODE_COPY_H
#define PFS_TESTS_REF_NODE_COPY_H

#include <sqlite3.h>
#include <stddef.h>

/* under(), child_of(), ancestor_of(), common_ancestor(), ino_of() and path_of(), over the table
 * `nodes`. */
void node_copy_add_functions(sqlite3 *copy);

/* A statement that names the hidden column `preorder`, as the copy, which has none, is to be asked.
 * The caller frees it. */
char *node_copy_spelling(const char *sql, size_t len);

#endif
