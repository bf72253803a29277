/* SPDX-License-Identifier: MIT */
/* A large store whose image file is outdated, or that has none, gets one when nothing changes for a
 * while, while it is open; a small one, and one that little has changed in, does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fs/image/imagefile.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/temp_store.h"

#define NODES	 (PFS_IMAGE_FILE_NODES + 100u)
#define FIRST	 UINT64_C(5000000029)
#define IDLE_MS	 100u
#define WAIT_MS	 60000u
#define CHANGED	 (NODES / 32)

static atomic_uint made;

static void make(const char *store)
{
	assert_true(*store == '/');
	atomic_fetch_add(&made, 1);
}

static void create(struct temp_store *temp, uint32_t nodes)
{
	struct pfs_node_record *records = calloc(nodes, sizeof(*records));
	char *names = calloc(nodes, 16);

	assert_true(records && names);
	temp_store_create(temp);
	for (uint32_t i = 0; i < nodes; i++) {
		(void)snprintf(names + (size_t)i * 16, 16, "f%u", i);
		records[i] = temp_record(FIRST + i, PFS_ROOT_PRIME, i + 1, S_IFREG | 0644,
					 names + (size_t)i * 16);
	}
	temp_store_put(temp, records, nodes);
	free(records);
	free(names);
}

static struct pfs_tree *open_idle(const struct temp_store *temp)
{
	return temp_tree_open_with(temp, &(struct pfs_tree_options){.make_image_file = make,
								    .image_idle_ms = IDLE_MS,
								    .commit_ms = 10});
}

static void await(unsigned n)
{
	for (unsigned i = 0; i < WAIT_MS && atomic_load(&made) < n; i++)
		(void)usleep(1000);
	assert_int_equal(atomic_load(&made), n);
}

static void change(struct pfs_tree *tree, uint32_t n)
{
	const struct stat to = {.st_mode = 0600};
	struct pfs_entry entry;

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(
			pfs_tree_setattr(tree, &entry, FIRST + i, &to, PFS_SET_MODE, &temp_root),
			0);
	assert_int_equal(pfs_tree_sync(tree), 0);
}

static void an_outdated_one_is_made_anew(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;

	create(&temp, NODES);
	atomic_store(&made, 0);
	tree = open_idle(&temp);
	await(1);
	change(tree, 10); /* opening brings so few up to date */
	(void)usleep(3000u * IDLE_MS);
	assert_int_equal(atomic_load(&made), 1);
	change(tree, CHANGED);
	await(2);
	(void)usleep(3000u * IDLE_MS);
	assert_int_equal(atomic_load(&made), 2);
	assert_int_equal(pfs_imagefile_write(tree), 0);
	temp_tree_close(tree);
	tree = open_idle(&temp);
	(void)usleep(3000u * IDLE_MS);
	assert_int_equal(atomic_load(&made), 2);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* Much has changed, and the next change comes before it has been idle. */
static void one_is_made_beside_changes(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;

	create(&temp, NODES);
	atomic_store(&made, 0);
	tree = temp_tree_open_with(&temp,
				   &(struct pfs_tree_options){.make_image_file = make,
							      .image_idle_ms = 1000 * WAIT_MS,
							      .image_beside_ms = 1,
							      .commit_ms = 10});
	(void)usleep(3000u * IDLE_MS);
	assert_int_equal(atomic_load(&made), 0);
	change(tree, 1); /* there is none at all */
	await(1);
	change(tree, CHANGED);
	(void)usleep(3000u * IDLE_MS);
	assert_int_equal(atomic_load(&made), 1);
	change(tree, 3 * CHANGED);
	await(2);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

static void a_small_store_has_none(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;

	create(&temp, 1000);
	atomic_store(&made, 0);
	tree = open_idle(&temp);
	change(tree, 1000);
	(void)usleep(3000u * IDLE_MS);
	assert_int_equal(atomic_load(&made), 0);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* As -o snapshot=no has it: nobody to make one, and none is used. */
static void where_none_is_wanted_none_is_made(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;

	create(&temp, NODES);
	atomic_store(&made, 0);
	tree = temp_tree_open(&temp);
	assert_int_equal(pfs_imagefile_write(tree), 0);
	temp_tree_close(tree);
	tree = temp_tree_open_with(&temp, &(struct pfs_tree_options){.no_image_file = true,
								     .image_idle_ms = IDLE_MS,
								     .commit_ms = 10});
	assert_false(tree->image.from_file);
	change(tree, CHANGED);
	(void)usleep(3000u * IDLE_MS);
	assert_int_equal(atomic_load(&made), 0);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_outdated_one_is_made_anew),
		cmocka_unit_test(one_is_made_beside_changes),
		cmocka_unit_test(a_small_store_has_none),
		cmocka_unit_test(where_none_is_wanted_none_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
