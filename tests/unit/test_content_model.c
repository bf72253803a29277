/* SPDX-License-Identifier: MIT */
/* Random changes of a file against an array of bytes, with commits that are under way, that fail
 * and that succeed in between; then the same from the store. */
#include "content_util.h"

#include <linux/falloc.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MODEL_SIZE (6 * PFS_CHUNK_SIZE)
#define ROUNDS	   4
#define STEPS	   1500

struct model {
	uint64_t ino;
	int64_t size;
	uint8_t bytes[MODEL_SIZE];
};

static struct model files[3];
static uint8_t scratch[MODEL_SIZE];

/* ---- commits that wait to be let go ---- */

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static bool gate_closed, commit_waits;

static void pass_gate(void)
{
	PFS_LOCKED(&gate_lock);

	commit_waits = true;
	(void)pthread_cond_broadcast(&gate_moved);
	while (gate_closed)
		(void)pthread_cond_wait(&gate_moved, &gate_lock);
	commit_waits = false;
}

static void *sync_thread(void *arg)
{
	*(int *)arg = pfs_tree_sync(tree);
	return NULL;
}

static pthread_t syncer;
static int sync_result;

/* A group has been cut and written, and is not committed. */
static void hold_commit(void)
{
	(void)pthread_mutex_lock(&gate_lock);
	gate_closed = true;
	commit_waits = false;
	(void)pthread_mutex_unlock(&gate_lock);
	assert_int_equal(pthread_create(&syncer, NULL, sync_thread, &sync_result), 0);
	(void)pthread_mutex_lock(&gate_lock);
	while (!commit_waits)
		(void)pthread_cond_wait(&gate_moved, &gate_lock);
	(void)pthread_mutex_unlock(&gate_lock);
}

static int let_commit_go(int error)
{
	atomic_store(&commit_error, error);
	(void)pthread_mutex_lock(&gate_lock);
	gate_closed = false;
	(void)pthread_cond_broadcast(&gate_moved);
	(void)pthread_mutex_unlock(&gate_lock);
	assert_int_equal(pthread_join(syncer, NULL), 0);
	return sync_result;
}

/* ---- steps ---- */

/* Often at or near the boundaries of chunks. */
static int64_t random_place(uint64_t *seed, int64_t limit)
{
	int64_t place = (int64_t)below(seed, (uint64_t)limit + 1);

	if (below(seed, 2))
		place = place / PFS_CHUNK_SIZE * PFS_CHUNK_SIZE + (int64_t)below(seed, 5) - 2;
	if (below(seed, 8) == 0)
		place = place / 4096 * 4096;
	return PFS_MAX(PFS_MIN(place, limit), 0);
}

static void random_span(uint64_t *seed, int64_t *start, int64_t *length)
{
	int64_t end;

	*start = random_place(seed, MODEL_SIZE - 1);
	end = below(seed, 2) ? *start + 1 + (int64_t)below(seed, 5000)
			     : random_place(seed, MODEL_SIZE);
	*length = PFS_MIN(PFS_MAX(end - *start, 1), MODEL_SIZE - *start);
}

static void grow_model(struct model *model, int64_t size)
{
	model->size = PFS_MAX(model->size, size);
}

static void step_write(struct model *model, uint64_t *seed)
{
	int64_t start, length, i;

	random_span(seed, &start, &length);
	for (i = 0; i < length; i++)
		scratch[i] = (uint8_t)random_number(seed);
	if (below(seed, 8) == 0 && model->size + length <= MODEL_SIZE) {
		start = model->size;
		write_at(model->ino, scratch, (size_t)length, PFS_AT_END);
	} else {
		write_at(model->ino, scratch, (size_t)length, start);
	}
	memcpy(model->bytes + start, scratch, (size_t)length);
	grow_model(model, start + length);
}

static void step_truncate(struct model *model, uint64_t *seed)
{
	int64_t size = below(seed, 4) ? random_place(seed, MODEL_SIZE) : 0;
	bool volatile_attr;

	if (!size && below(seed, 2))
		assert_int_equal(pfs_tree_open_file(tree, &volatile_attr, model->ino,
						    O_WRONLY | O_TRUNC, false, false),
				 0);
	else
		assert_int_equal(try_truncate(model->ino, size), 0);
	memset(model->bytes + size, 0, (size_t)(MODEL_SIZE - size));
	model->size = size;
}

static void step_fallocate(struct model *model, uint64_t *seed)
{
	static const int modes[] = {
		0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
	int mode = modes[below(seed, PFS_COUNT(modes))];
	int64_t start, length;

	random_span(seed, &start, &length);
	assert_int_equal(pfs_tree_fallocate(tree, model->ino, mode, start, length, false), 0);
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		memset(model->bytes + start, 0, (size_t)length);
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		grow_model(model, start + length);
}

static void step_copy(struct model *model, uint64_t *seed)
{
	struct model *from = &files[below(seed, PFS_COUNT(files))];
	int64_t start, length, to, copied;

	random_span(seed, &start, &length);
	to = random_place(seed, MODEL_SIZE - length);
	copied = pfs_tree_copy_range(tree, from->ino, start, model->ino, to, (size_t)length, true);
	length = PFS_MAX(PFS_MIN(length, from->size - start), 0);
	if (length && from == model && start < to + length && to < start + length) {
		assert_int_equal(copied, -EINVAL);
		return;
	}
	assert_int_equal(copied, length);
	if (!length)
		return;
	memmove(model->bytes + to, from->bytes + start, (size_t)length);
	grow_model(model, to + length);
}

static void check_read(const struct model *model, int64_t start, int64_t length)
{
	ssize_t expected = PFS_MAX(PFS_MIN(length, model->size - start), 0);

	memset(scratch, 0xa5, sizeof(scratch));
	assert_int_equal(read_at(model->ino, scratch, (size_t)length, start), expected);
	assert_memory_equal(scratch, model->bytes + start, (size_t)expected);
}

static void check_zero(const struct model *model, int64_t start, int64_t end)
{
	for (; start < end; start++)
		assert_int_equal(model->bytes[start], 0);
}

static void check_seek(const struct model *model, uint64_t *seed)
{
	int64_t offset = random_place(seed, MODEL_SIZE), data, hole, next;

	data = pfs_tree_seek(tree, model->ino, offset, SEEK_DATA);
	hole = pfs_tree_seek(tree, model->ino, offset, SEEK_HOLE);
	if (offset >= model->size) {
		assert_int_equal(data, -ENXIO);
		assert_int_equal(hole, -ENXIO);
		return;
	}
	if (data == -ENXIO)
		data = model->size;
	assert_in_range(data, offset, model->size);
	check_zero(model, offset, data);
	assert_in_range(hole, offset, model->size);
	assert_true(hole == offset || data == offset);
	if (hole == model->size)
		return;
	next = pfs_tree_seek(tree, model->ino, hole, SEEK_DATA);
	assert_int_not_equal(next, hole);
	check_zero(model, hole, next == -ENXIO ? model->size : next);
}

static void check_all(void)
{
	for (size_t i = 0; i < PFS_COUNT(files); i++) {
		check_read(&files[i], 0, MODEL_SIZE);
		assert_int_equal(stat_of(files[i].ino).st_size, files[i].size);
	}
}

static void check_blocks(void)
{
	for (size_t i = 0; i < PFS_COUNT(files); i++)
		assert_int_equal(stat_of(files[i].ino).st_blocks, stored_blocks(files[i].ino));
}

static void step(uint64_t *seed)
{
	struct model *model = &files[below(seed, PFS_COUNT(files))];
	int64_t start, length;

	switch (below(seed, 10)) {
	case 0:
	case 1:
	case 2:
		step_write(model, seed);
		break;
	case 3:
		step_truncate(model, seed);
		break;
	case 4:
	case 5:
		step_fallocate(model, seed);
		break;
	case 6:
		step_copy(model, seed);
		break;
	case 7:
		check_seek(model, seed);
		break;
	default:
		random_span(seed, &start, &length);
		check_read(model, start, length);
		break;
	}
}

/* While a commit fails everything can be read and nothing changed. */
static void check_failing(void)
{
	assert_int_equal(pfs_tree_failure(tree), -EIO);
	check_all();
	assert_int_equal(pfs_tree_write(tree, files[0].ino, "x", 1, 0, true, false), -EROFS);
	assert_int_equal(try_truncate(files[0].ino, 0), -EROFS);
	check_all();
	atomic_store(&commit_error, 0);
	while (pfs_tree_failure(tree))
		(void)usleep(20000);
}

static void one_round(uint64_t *seed, bool failing)
{
	bool held = false;
	int i, result;

	for (i = 0; i < STEPS; i++) {
		step(seed);
		if (below(seed, 25) == 0 && !held) {
			hold_commit();
			held = true;
		} else if (held && below(seed, 10) == 0) {
			bool fail = failing && i > STEPS / 2;

			held = false;
			result = let_commit_go(fail ? -EIO : 0);
			assert_int_equal(result, fail ? -EIO : 0);
			if (fail) {
				check_failing();
				failing = false;
			}
		}
	}
	if (held)
		assert_int_equal(let_commit_go(0), 0);
}

static void test_against_model(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	uint64_t seed = first_seed();
	int findings;

	(void)state;
	before_commit = pass_gate;
	new_tree();
	for (size_t i = 0; i < PFS_COUNT(files); i++)
		files[i].ino = make_file(names[i]);
	for (int round = 0; round < ROUNDS; round++) {
		one_round(&seed, round % 2 == 0);
		check_all();
		sync_tree();
		check_all();
		check_blocks();
		reopen_tree();
		check_all();
		check_blocks();
	}
	findings = count_findings(tree->store);
	close_tree();
	assert_int_equal(findings, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_against_model, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
