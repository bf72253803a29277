/* SPDX-License-Identifier: MIT */
/* Content, one promise at a time. */
#include "content_util.h"

#include <linux/falloc.h>

#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define C     ((int64_t)PFS_CHUNK_SIZE)

static uint8_t data[4 * PFS_CHUNK_SIZE], back[4 * PFS_CHUNK_SIZE];
static const int64_t sizes[] = {0, 1, C - 1, C, C + 1, 2 * C - 1, 2 * C, 2 * C + 1};

static int set_up(void **state)
{
	uint64_t seed = 99;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(random_number(&seed) | 1);
	return make_folder(state);
}

static void start(void **state)
{
	(void)state;
	new_tree();
}

static void check_bytes(uint64_t ino, const void *expected, int64_t size)
{
	assert_int_equal(stat_of(ino).st_size, size);
	memset(back, 0x5a, sizeof(back));
	assert_int_equal(read_at(ino, back, sizeof(back), 0), size);
	assert_memory_equal(back, expected, (size_t)size);
}

static void test_boundary_sizes(void **state)
{
	char name[16];
	uint64_t ino[PFS_COUNT(sizes)];

	start(state);
	for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
		(void)snprintf(name, sizeof(name), "f%zu", i);
		ino[i] = make_file(name);
		write_at(ino[i], data, (size_t)sizes[i], 0);
	}
	for (int pass = 0; pass < 3; pass++) {
		for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
			check_bytes(ino[i], data, sizes[i]);
			assert_int_equal(stat_of(ino[i]).st_blocks, (sizes[i] + 4095) / 4096 * 8);
		}
		if (pass == 0)
			sync_tree();
		else
			reopen_tree();
	}
	close_tree();
}

/* Every size to every other, from memory and from the store; what was cut off is gone. */
static void test_truncate(void **state)
{
	static uint8_t expected[sizeof(data)];
	uint64_t ino;
	unsigned stored;

	start(state);
	ino = make_file("f");
	for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
		for (size_t j = 0; j < PFS_COUNT(sizes); j++) {
			for (stored = 0; stored < 4; stored++) {
				assert_int_equal(try_truncate(ino, 0), 0);
				write_at(ino, data, (size_t)sizes[i], 0);
				if (stored & 1)
					sync_tree();
				assert_int_equal(try_truncate(ino, sizes[j]), 0);
				if (stored & 2)
					sync_tree();
				assert_int_equal(try_truncate(ino, 3 * C), 0);
				memset(expected, 0, sizeof(expected));
				memcpy(expected, data, (size_t)PFS_MIN(sizes[i], sizes[j]));
				check_bytes(ino, expected, 3 * C);
				assert_int_equal(stat_of(ino).st_blocks,
						 (PFS_MIN(sizes[i], sizes[j]) + 4095) / 4096 * 8);
			}
		}
	}
	close_tree();
}

/* Parts that end one byte before, at, and after the end of what is there. */
static void test_overwrite(void **state)
{
	static uint8_t expected[sizeof(data)];
	uint64_t ino;

	start(state);
	ino = make_file("f");
	for (int64_t end = C - 2; end <= C; end++) {
		for (int64_t length = end - 1; length <= end + 1; length++) {
			assert_int_equal(try_truncate(ino, 0), 0);
			write_at(ino, data, (size_t)end, 0);
			sync_tree();
			write_at(ino, data + 77, (size_t)length, 0);
			memcpy(expected, data, (size_t)end);
			memcpy(expected, data + 77, (size_t)length);
			check_bytes(ino, expected, PFS_MAX(end, length));
			write_at(ino, "x", 1, end - 1);
			expected[end - 1] = 'x';
			sync_tree();
			check_bytes(ino, expected, PFS_MAX(end, length));
		}
	}
	close_tree();
}

static void test_append(void **state)
{
	uint64_t ino;
	int64_t size = 0;

	start(state);
	ino = make_file("f");
	for (size_t step = 1; size + (int64_t)step <= 3 * C; step = step * 3 / 2 + 1) {
		write_at(ino, data + size, step, PFS_AT_END);
		size += (int64_t)step;
		if (step % 3 == 0)
			sync_tree();
	}
	check_bytes(ino, data, size);
	close_tree();
}

static void test_sparse(void **state)
{
	const int64_t far = INT64_C(1) << 40;
	uint64_t ino;
	char c = 0;

	start(state);
	ino = make_file("f");
	write_at(ino, "a", 1, 0);
	write_at(ino, "b", 1, far);
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(stat_of(ino).st_size, far + 1);
		assert_int_equal(stat_of(ino).st_blocks, 16);
		assert_int_equal(pfs_tree_seek(tree, ino, 0, SEEK_DATA), 0);
		assert_int_equal(pfs_tree_seek(tree, ino, 0, SEEK_HOLE), 1);
		assert_int_equal(pfs_tree_seek(tree, ino, 1, SEEK_DATA), far);
		assert_int_equal(pfs_tree_seek(tree, ino, far, SEEK_HOLE), far + 1);
		assert_int_equal(pfs_tree_seek(tree, ino, far + 1, SEEK_DATA), -ENXIO);
		assert_int_equal(pfs_tree_seek(tree, ino, -1, SEEK_DATA), -ENXIO);
		assert_int_equal(pfs_tree_seek(tree, ino, 0, SEEK_SET), -EINVAL);
		assert_int_equal(read_at(ino, &c, 1, far / 2), 1);
		assert_int_equal(c, 0);
		reopen_tree();
	}
	/* neither takes as long as the hole is wide */
	assert_int_equal(pfs_tree_fallocate(tree, ino, PUNCH, 1, far, true), 0);
	assert_int_equal(stat_of(ino).st_blocks, 8);
	assert_int_equal(pfs_tree_seek(tree, ino, 1, SEEK_DATA), -ENXIO);
	assert_int_equal(try_truncate(ino, INT64_C(1) << 50), 0);
	assert_int_equal(try_truncate(ino, 1), 0);
	check_bytes(ino, "a", 1);
	sync_tree();
	assert_int_equal(stored_blocks(ino), 8);
	close_tree();
}

static void test_allocate(void **state)
{
	uint64_t ino;

	start(state);
	ino = make_file("f");
	assert_int_equal(pfs_tree_fallocate(tree, ino, FALLOC_FL_KEEP_SIZE, 0, 2 * C, true), 0);
	assert_int_equal(stat_of(ino).st_size, 0);
	assert_int_equal(stat_of(ino).st_blocks, 256);
	assert_int_equal(pfs_tree_fallocate(tree, ino, 0, 0, 100000, true), 0);
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(stat_of(ino).st_size, 100000);
		assert_int_equal(stat_of(ino).st_blocks, 256);
		/* space is no data */
		assert_int_equal(pfs_tree_seek(tree, ino, 0, SEEK_DATA), -ENXIO);
		assert_int_equal(pfs_tree_seek(tree, ino, 5, SEEK_HOLE), 5);
		reopen_tree();
	}
	/* a write in the middle gives none of it up */
	write_at(ino, "x", 1, 10);
	assert_int_equal(stat_of(ino).st_blocks, 256);
	assert_int_equal(pfs_tree_seek(tree, ino, 0, SEEK_DATA), 0);
	/* cutting the file gives up what lies beyond its end */
	assert_int_equal(try_truncate(ino, 4096), 0);
	assert_int_equal(stat_of(ino).st_blocks, 8);
	sync_tree();
	assert_int_equal(stored_blocks(ino), 8);
	close_tree();
}

static void test_zero_and_punch(void **state)
{
	static uint8_t expected[sizeof(data)];
	uint64_t ino;

	start(state);
	ino = make_file("f");
	write_at(ino, data, 3 * C, 0);
	sync_tree();
	memcpy(expected, data, 3 * C);
	memset(expected + 10, 0, (size_t)(2 * C));
	assert_int_equal(pfs_tree_fallocate(tree, ino, FALLOC_FL_ZERO_RANGE, 10, 2 * C, true), 0);
	check_bytes(ino, expected, 3 * C);
	assert_int_equal(stat_of(ino).st_blocks, 384);
	assert_int_equal(pfs_tree_seek(tree, ino, C, SEEK_HOLE), C);
	assert_int_equal(pfs_tree_fallocate(tree, ino, PUNCH, 5, 3 * C, true), 0);
	memset(expected + 5, 0, (size_t)(3 * C));
	check_bytes(ino, expected, 3 * C);
	assert_int_equal(stat_of(ino).st_blocks, 8);
	assert_int_equal(pfs_tree_fallocate(tree, ino, FALLOC_FL_ZERO_RANGE, 3 * C - 1, 2, true),
			 0);
	check_bytes(ino, expected, 3 * C + 1);
	sync_tree();
	assert_int_equal(stored_blocks(ino), stat_of(ino).st_blocks);
	close_tree();
}

static void test_refusals(void **state)
{
	struct pfs_entry entry;
	bool volatile_attr;
	uint64_t ino;
	char c;

	start(state);
	ino = make_file("f");
	assert_int_equal(pfs_tree_fallocate(tree, ino, FALLOC_FL_PUNCH_HOLE, 0, 1, true),
			 -EOPNOTSUPP);
	assert_int_equal(pfs_tree_fallocate(tree, ino, FALLOC_FL_COLLAPSE_RANGE, 0, C, true),
			 -EOPNOTSUPP);
	assert_int_equal(pfs_tree_fallocate(tree, ino, 0, 0, 0, true), -EINVAL);
	assert_int_equal(pfs_tree_fallocate(tree, ino, 0, -1, 5, true), -EINVAL);
	assert_int_equal(pfs_tree_fallocate(tree, ino, 0, 5, INT64_MAX, true), -EFBIG);
	assert_int_equal(pfs_tree_fallocate(tree, ino, 0, 0, INT64_C(1) << 55, true), -ENOSPC);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, -5, true, false), -EINVAL);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, PFS_FILE_SIZE_MAX, true, false), -EFBIG);
	assert_int_equal(try_truncate(ino, INT64_MAX), -EFBIG);
	assert_int_equal(try_truncate(ino, PFS_FILE_SIZE_MAX), 0);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, PFS_AT_END, true, false), -EFBIG);
	assert_int_equal(read_at(ino, &c, 1, PFS_FILE_SIZE_MAX - 1), 1);
	assert_int_equal(try_truncate(ino, 0), 0);
	assert_int_equal(read_at(ino, &c, 1, -1), -EINVAL);
	assert_int_equal(read_at(PFS_ROOT_PRIME, &c, 1, 0), -EISDIR);
	assert_int_equal(pfs_tree_write(tree, PFS_ROOT_PRIME, "x", 1, 0, true, false), -EISDIR);
	assert_int_equal(
		pfs_tree_open_file(tree, &volatile_attr, PFS_ROOT_PRIME, O_RDONLY, true, false),
		-EISDIR);
	assert_int_equal(read_at(1000003, &c, 1, 0), -ESTALE);
	assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, "fifo", S_IFIFO | 0600, 0,
				       &root_caller),
			 0);
	assert_int_equal(pfs_tree_write(tree, entry.attr.st_ino, "x", 1, 0, true, false), -EINVAL);
	close_tree();
	assert_int_equal(
		pfs_tree_open(&tree, test_path, &(struct pfs_tree_options){.read_only = true}), 0);
	assert_int_equal(pfs_tree_open_file(tree, &volatile_attr, ino, O_RDWR, true, false),
			 -EROFS);
	assert_int_equal(pfs_tree_open_file(tree, &volatile_attr, ino, O_RDONLY, true, false), 0);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, false), -EROFS);
	close_tree();
}

/* What only the store has makes a caller wait, and it can choose not to. */
static void test_nowait(void **state)
{
	uint64_t ino;
	char c;

	start(state);
	ino = make_file("f");
	assert_int_equal(pfs_tree_write(tree, ino, data, 100, 0, true, true), 100);
	assert_int_equal(pfs_tree_read(tree, back, 100, ino, 0, PFS_READ_NOWAIT), 100);
	sync_tree();
	assert_int_equal(pfs_tree_read(tree, &c, 1, ino, 0, PFS_READ_NOWAIT), -EAGAIN);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 5, true, true), -EAGAIN);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 5, true, false), 1);
	assert_int_equal(pfs_tree_read(tree, &c, 1, ino, 0, PFS_READ_NOWAIT), 1);
	assert_int_equal(pfs_tree_read(tree, &c, 1, ino, 100, PFS_READ_NOWAIT), 0);
	close_tree();
}

static void set_mode(uint64_t ino, mode_t mode)
{
	struct stat attr = {.st_mode = mode};
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr, PFS_SET_MODE, &root_caller), 0);
}

static void test_suid(void **state)
{
	bool volatile_attr;
	uint64_t ino;

	start(state);
	ino = make_file("f");
	set_mode(ino, 06755);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, false), 1);
	assert_int_equal(stat_of(ino).st_mode & 07777, 06755);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, false, false), 1);
	assert_int_equal(stat_of(ino).st_mode & 07777, 0755);
	set_mode(ino, 06745); /* not executable by the group: the bit means something else */
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, false, false), 1);
	assert_int_equal(stat_of(ino).st_mode & 07777, 02745);
	set_mode(ino, 06755);
	assert_int_equal(
		pfs_tree_open_file(tree, &volatile_attr, ino, O_WRONLY | O_TRUNC, false, false), 0);
	assert_int_equal(stat_of(ino).st_mode & 07777, 0755);
	close_tree();
}

static void set_times(uint64_t ino, int64_t atime, int64_t mtime, int64_t ctime)
{
	struct stat attr = {
		.st_atim.tv_sec = atime, .st_mtim.tv_sec = mtime, .st_ctim.tv_sec = ctime};
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr,
					  PFS_SET_ATIME | PFS_SET_MTIME | PFS_SET_CTIME,
					  &root_caller),
			 0);
}

static bool read_moves_atime(uint64_t ino)
{
	struct stat before = stat_of(ino), after;

	assert_int_equal(read_at(ino, back, 1, 0), 1);
	after = stat_of(ino);
	assert_int_equal(after.st_ctim.tv_sec, before.st_ctim.tv_sec);
	assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	return after.st_atim.tv_sec != before.st_atim.tv_sec;
}

static void test_times(void **state)
{
	struct pfs_tree_options no_atime = quiet;
	int64_t now = pfs_now().sec;
	uint64_t ino;

	start(state);
	ino = make_file("f");
	write_at(ino, "x", 1, 0);
	set_times(ino, now - 100, now - 200, now - 200);
	assert_false(read_moves_atime(ino));
	set_times(ino, now - 200, now - 200, now - 300);
	assert_true(read_moves_atime(ino));
	set_times(ino, now - 200, now - 300, now - 200);
	assert_true(read_moves_atime(ino));
	set_times(ino, now - 86401, now - 90000, now - 90000);
	assert_true(read_moves_atime(ino));
	set_times(ino, 1, 2, 3);
	write_at(ino, "x", 0, 0); /* nothing written, nothing changed */
	assert_int_equal(stat_of(ino).st_mtim.tv_sec, 2);
	write_at(ino, "y", 1, 0);
	assert_in_range(stat_of(ino).st_mtim.tv_sec, now, now + 1000);
	assert_in_range(stat_of(ino).st_ctim.tv_sec, now, now + 1000);
	set_times(ino, 1, 2, 3);
	assert_int_equal(pfs_tree_fallocate(tree, ino, PUNCH, 0, 10, true), 0);
	assert_in_range(stat_of(ino).st_mtim.tv_sec, now, now + 1000);
	set_times(ino, 1, 2, 3);
	close_tree();
	no_atime.no_atime = true;
	open_tree_as(&no_atime);
	assert_false(read_moves_atime(ino));
	close_tree();
}

static void test_no_data(void **state)
{
	struct pfs_node_record record = file_record(0, 1, "f");
	uint64_t ino;
	struct pfs_store *store;
	bool volatile_attr;
	char c;

	(void)state;
	store = new_store(0);
	record.flags = PFS_NODE_NODATA;
	record.size = 1000;
	record.blocks = 8;
	assert_int_equal(pfs_store_begin(store), 0);
	ino = record.prime = reserve_primes(store);
	assert_int_equal(pfs_store_put_node(store, &record), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_close(store), 0);
	open_tree();
	assert_int_equal(stat_of(ino).st_size, 1000);
	assert_int_equal(read_at(ino, &c, 1, 0), -ENODATA);
	assert_int_equal(read_at(ino, &c, 1, 1000), 0);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, false), -ENODATA);
	assert_int_equal(try_truncate(ino, 10), -ENODATA);
	assert_int_equal(pfs_tree_fallocate(tree, ino, 0, 0, 10, true), -ENODATA);
	assert_int_equal(pfs_tree_seek(tree, ino, 3, SEEK_DATA), 3);
	assert_int_equal(pfs_tree_seek(tree, ino, 3, SEEK_HOLE), 1000);
	assert_int_equal(
		pfs_tree_open_file(tree, &volatile_attr, ino, O_WRONLY | O_TRUNC, true, false), 0);
	write_at(ino, "new", 3, 0);
	reopen_tree();
	check_bytes(ino, "new", 3);
	close_tree();
}

static void test_copy_range(void **state)
{
	uint64_t from, to;

	start(state);
	from = make_file("from");
	to = make_file("to");
	write_at(from, data, 3 * C, 0);
	assert_int_equal(pfs_tree_copy_range(tree, from, 10, to, 0, 2 * C, true), 2 * C);
	check_bytes(to, data + 10, 2 * C);
	assert_int_equal(pfs_tree_copy_range(tree, from, 3 * C - 5, to, 0, 100, true), 5);
	assert_int_equal(pfs_tree_copy_range(tree, from, 3 * C, to, 0, 100, true), 0);
	assert_int_equal(pfs_tree_copy_range(tree, from, 0, from, 5, 10, true), -EINVAL);
	assert_int_equal(pfs_tree_copy_range(tree, from, 0, from, 10, 10, true), 10);
	assert_int_equal(pfs_tree_copy_range(tree, from, 0, PFS_ROOT_PRIME, 0, 10, true), -EISDIR);
	assert_int_equal(pfs_tree_copy_range(tree, from, 0, to, PFS_FILE_SIZE_MAX - 3, 10, true),
			 -EFBIG);
	close_tree();
}

/* A small file waits in about as much memory as it has bytes; no more waits than is allowed. */
static void test_memory(void **state)
{
	struct pfs_tree_options small = {.pending_limit = 4 << 20, .commit_ms = 100000};
	uint64_t ino;
	int64_t most = 0;

	start(state);
	ino = make_file("small");
	write_at(ino, data, 1024, 0);
	assert_in_range(atomic_load(&tree->journal->content), 1024, 1024 + 512);
	close_tree();
	open_tree_as(&small);
	ino = make_file("large");
	for (int64_t at = 0; at < 32 << 20; at += 2 * C) {
		write_at(ino, data, (size_t)(2 * C), at);
		most = PFS_MAX(most, atomic_load(&tree->journal->content));
	}
	assert_in_range(most, 2 * C, (4 << 20) + 4 * C);
	assert_int_equal(pfs_tree_fallocate(tree, ino, 0, 0, INT64_C(1) << 30, true), 0);
	sync_tree();
	assert_int_equal(read_at(ino, back, (size_t)(2 * C), 12 * C), 2 * C);
	assert_memory_equal(back, data, (size_t)(2 * C));
	assert_int_equal(stored_blocks(ino), stat_of(ino).st_blocks);
	close_tree();
}

/* An open file without a name lives on, across commits, and leaves nothing behind. */
static void test_unlinked(void **state)
{
	struct pfs_store_totals totals;
	uint64_t stored, fresh;

	start(state);
	stored = make_file("stored");
	write_at(stored, data, 3 * C, 0);
	sync_tree();
	fresh = make_file("fresh");
	write_at(fresh, data, C, 0);
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "stored"), 0);
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "fresh"), 0);
	for (int pass = 0; pass < 3; pass++) {
		check_bytes(stored, data, 3 * C);
		check_bytes(fresh, data, C);
		write_at(stored, data + C, 10, C);
		write_at(fresh, data, 20, 0);
		sync_tree();
	}
	assert_int_equal(try_truncate(stored, C + 1), 0);
	check_bytes(stored, data, C + 1);
	sync_tree();
	pfs_tree_forget(tree, stored, 1);
	pfs_tree_forget(tree, fresh, 1);
	assert_int_equal(read_at(stored, back, 1, 0), -ESTALE);
	for (int i = 0; i < 1000; i++) { /* reaped in the background */
		assert_int_equal(pfs_tree_sync(tree), 0);
		assert_int_equal(pfs_store_totals(tree->store, &totals), 0);
		if (!totals.orphans && !stored_blocks(stored) && !stored_blocks(fresh))
			break;
		(void)usleep(10000);
	}
	assert_int_equal(pfs_store_totals(tree->store, &totals), 0);
	assert_int_equal(totals.orphans, 0);
	assert_int_equal(stored_blocks(stored) + stored_blocks(fresh), 0);
	assert_int_equal(count_findings(tree->store), 0);
	close_tree();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(test_boundary_sizes), TEST(test_truncate), TEST(test_overwrite),
		TEST(test_append),	   TEST(test_sparse),	TEST(test_allocate),
		TEST(test_zero_and_punch), TEST(test_refusals), TEST(test_nowait),
		TEST(test_suid),	   TEST(test_times),	TEST(test_no_data),
		TEST(test_copy_range),	   TEST(test_memory),	TEST(test_unlinked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
