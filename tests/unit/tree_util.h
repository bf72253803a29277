/* SPDX-License-Identifier: MIT */
/* tests/unit/tree_util.h - what tests of one tree share: its store and itself, made and ended as
 * fixtures of cmocka; and a text that grows. */
#ifndef PFS_TESTS_TREE_UTIL_H
#define PFS_TESTS_TREE_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "tests/ref/temp_store.h"

static struct temp_store temp;
static struct pfs_tree *tree;

/* A new store with a tree over it. */
static inline void start_tree(const struct pfs_tree_options *options)
{
	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, options);
}

/* The default one, as a fixture. */
static inline int setup_tree(void **state PFS_UNUSED)
{
	start_tree(&(struct pfs_tree_options){.no_atime = false});
	return 0;
}

/* As a fixture: the store is sound at the end. */
static inline int stop_tree(void **state PFS_UNUSED)
{
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
	return 0;
}

struct text {
	char *bytes;
	size_t size, capacity;
};

/* To the struct text at arg; as what listings call. */
static inline int append_text(void *arg, const char *bytes, size_t size)
{
	struct text *text = arg;

	assert_int_equal(pfs_grow(&text->bytes, &text->capacity, text->size + size + 1, 1), 0);
	memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
	return 0;
}

#endif
