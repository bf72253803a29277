/* SPDX-License-Identifier: MIT */
/* Every change of content with no memory at its first, second, third, ... request: either it fails
 * and nothing has changed, or it is done. */
#include "content_util.h"

#include <linux/falloc.h>

#include "tests/vfs/memory.h"

#define C    ((int64_t)PFS_CHUNK_SIZE)
#define SIZE (3 * C + 100)

/* ---- the changes ---- */

static uint8_t before[SIZE], expected[SIZE + C], back[SIZE + C], other[2 * C];
static int64_t expected_size;

static int one_write(uint64_t ino, const void *bytes, int64_t size, int64_t offset)
{
	ssize_t n = pfs_tree_write(tree, ino, bytes, (size_t)size, offset, true, false);

	memcpy(expected + offset, bytes, (size_t)size);
	expected_size = PFS_MAX(expected_size, offset + size);
	return n == size ? 0 : (int)n;
}

static int write_part(uint64_t ino)
{
	return one_write(ino, other, 50, C - 20);
}

static int write_whole(uint64_t ino)
{
	return one_write(ino, other, 2 * C, C / 2);
}

static int write_beyond(uint64_t ino)
{
	return one_write(ino, other, 300, SIZE - 5);
}

static int truncate_inside(uint64_t ino)
{
	memset(expected + C + 7, 0, (size_t)(SIZE - C - 7));
	expected_size = C + 7;
	return try_truncate(ino, C + 7);
}

static int punch(uint64_t ino)
{
	memset(expected + 9, 0, (size_t)C);
	return pfs_tree_fallocate(tree, ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 9, C,
				  true);
}

static int allocate(uint64_t ino)
{
	expected_size = SIZE + C / 2;
	return pfs_tree_fallocate(tree, ino, 0, 0, SIZE + C / 2, true);
}

static int set_attribute(uint64_t ino)
{
	return pfs_tree_setxattr(tree, ino, "user.a", "new", 3, 0);
}

static int (*const changes[])(uint64_t ino) = {
	write_part, write_whole, write_beyond, truncate_inside, punch, allocate, set_attribute};

static void check_content(uint64_t ino, const uint8_t *bytes, int64_t size)
{
	assert_int_equal(stat_of(ino).st_size, size);
	assert_int_equal(read_at(ino, back, sizeof(back), 0), size);
	assert_memory_equal(back, bytes, (size_t)size);
}

/* Has the change fail at request n; true: it did not come to that. */
static bool attempt(int (*change)(uint64_t ino), uint64_t ino, int n)
{
	bool refused;
	int error;

	memset(expected, 0, sizeof(expected));
	memcpy(expected, before, SIZE);
	expected_size = SIZE;
	memory_refuse(n, MEMORY_FOR_EVER);
	error = change(ino);
	refused = memory_grant();
	if (!refused)
		assert_int_equal(error, 0);
	if (error) {
		assert_int_equal(error, -ENOMEM);
		check_content(ino, before, SIZE);
	} else {
		check_content(ino, expected, expected_size);
	}
	return !refused;
}

static void test_changes(void **state)
{
	unsigned tries = 0;
	char name[32];

	(void)state;
	new_tree();
	memset(before, 'b', sizeof(before));
	memset(other, 'o', sizeof(other));
	for (size_t i = 0; i < PFS_COUNT(changes); i++) {
		for (unsigned stored = 0; stored < 2; stored++) {
			bool done = false;

			for (int n = 0; !done; n++, tries++) {
				uint64_t ino;

				(void)snprintf(name, sizeof(name), "%zu-%u-%d", i, stored, n);
				ino = make_file(name);
				write_at(ino, before, SIZE, 0);
				assert_int_equal(
					pfs_tree_setxattr(tree, ino, "user.a", "old", 3, 0), 0);
				if (stored)
					sync_tree();
				done = attempt(changes[i], ino, n);
			}
		}
	}
	assert_in_range(tries, 2 * PFS_COUNT(changes) + 10, 1000);
	sync_tree();
	assert_int_equal(count_findings(tree->store), 0);
	close_tree();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_changes, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
