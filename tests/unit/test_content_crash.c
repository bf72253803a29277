/* SPDX-License-Identifier: MIT */
/* Power failures under changes of content: files are made, written, punched, cut, replaced and
 * removed, some while they are held open; whatever a crash leaves must be a state that they had,
 * byte for byte. */
#include <string.h>

#include <linux/falloc.h>

#include "base/checked.h"
#include "tests/ref/tree_model.h"
#include "tests/unit/crash_util.h"

#define STEPS	 300
#define FILES	 5
#define SIZE_MAX_BYTES ((size_t)200000) /* four chunks */
#define ROOT	 2

struct file {
	uint64_t ino; /* 0: there is none of that name */
	size_t size;
	uint8_t bytes[SIZE_MAX_BYTES];
};

static struct file files[FILES];
static struct history history;
static uint8_t scratch[SIZE_MAX_BYTES + 1];
static struct pfs_tree *tree;

/* ---- states ---- */

static uint64_t mix(uint64_t hash, const uint8_t *bytes, size_t size)
{
	uint64_t word;

	hash = (hash ^ size) * UINT64_C(0x9e3779b97f4a7c15);
	for (; size >= sizeof(word); bytes += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	while (size-- > 0)
		hash = (hash ^ *bytes++) * UINT64_C(1099511628211);
	return hash;
}

static uint64_t model_state(void)
{
	uint64_t hash = 1;

	for (unsigned i = 0; i < FILES; i++)
		hash = files[i].ino ? mix(hash, files[i].bytes, files[i].size) : hash * 31 + i;
	return hash;
}

static void name_of(char name[8], unsigned i)
{
	(void)snprintf(name, 8, "f%u", i);
}

static uint64_t state_of(struct pfs_tree *of)
{
	uint64_t hash = 1;

	for (unsigned i = 0; i < FILES; i++) {
		struct pfs_entry entry;
		char name[8];
		int error;

		name_of(name, i);
		error = pfs_tree_lookup(of, &entry, ROOT, name);
		if (error) {
			assert_int_equal(error, -ENOENT);
			hash = hash * 31 + i;
			continue;
		}
		assert_in_range(entry.attr.st_size, 0, SIZE_MAX_BYTES);
		assert_int_equal(
			pfs_tree_read(of, scratch, sizeof(scratch), entry.attr.st_ino, 0, 0),
			entry.attr.st_size);
		hash = mix(hash, scratch, (size_t)entry.attr.st_size);
		pfs_tree_forget(of, entry.attr.st_ino, 1);
	}
	return hash;
}

/* ---- changes ---- */

static void make(unsigned i)
{
	struct pfs_entry entry;
	char name[8];

	name_of(name, i);
	assert_int_equal(pfs_tree_make(tree, &entry, ROOT, name, S_IFREG | 0644, 0, &temp_root), 0);
	files[i].ino = entry.attr.st_ino;
	files[i].size = 0;
	memset(files[i].bytes, 0, sizeof(files[i].bytes));
	if (tree_model_random(2)) /* the rest stays as if it were open for ever */
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
}

static void write_some(struct file *file, bool append)
{
	size_t most = tree_model_random(2) ? SIZE_MAX_BYTES : 5000;
	size_t at = append ? file->size : tree_model_random(SIZE_MAX_BYTES);
	size_t n = 1 + tree_model_random((uint32_t)most);

	n = PFS_MIN(n, SIZE_MAX_BYTES - at);
	if (!n)
		return;
	for (size_t k = 0; k < n; k++)
		file->bytes[at + k] = (uint8_t)(1 + (k * 7 + at + file->ino) % 255);
	file->bytes[at] = (uint8_t)tree_model_random(256);
	assert_int_equal(
		pfs_tree_write(tree, file->ino, file->bytes + at, n, (int64_t)at, true, false), n);
	file->size = PFS_MAX(file->size, at + n);
}

static void punch(struct file *file)
{
	size_t at = tree_model_random(SIZE_MAX_BYTES), n = 1 + tree_model_random(100000);

	assert_int_equal(pfs_tree_fallocate(tree, file->ino,
					    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					    (int64_t)at, (int64_t)n, true),
			 0);
	memset(file->bytes + at, 0, PFS_MIN(n, SIZE_MAX_BYTES - at));
}

static void cut(struct file *file)
{
	size_t size = tree_model_random(3) ? tree_model_random(SIZE_MAX_BYTES) : 0;
	struct stat attr = {.st_size = (off_t)size};
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, file->ino, &attr, PFS_SET_SIZE, &temp_root),
			 0);
	if (size < file->size)
		memset(file->bytes + size, 0, file->size - size);
	file->size = size;
}

static void remove_file(unsigned i)
{
	char name[8];

	name_of(name, i);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, name), 0);
	files[i].ino = 0;
}

/* Takes another's name, which may be gone with that. */
static void rename_over(unsigned i)
{
	unsigned to = (i + 1 + tree_model_random(FILES - 1)) % FILES;
	char name[8], new_name[8];

	name_of(name, i);
	name_of(new_name, to);
	assert_int_equal(pfs_tree_rename(tree, ROOT, name, ROOT, new_name, 0), 0);
	files[to] = files[i];
	files[i].ino = 0;
}

static void step(void)
{
	unsigned i = tree_model_random(FILES);
	struct file *file = &files[i];

	if (!file->ino) {
		make(i);
		return;
	}
	switch (tree_model_random(12)) {
	case 0:
		remove_file(i);
		break;
	case 1:
		rename_over(i);
		break;
	case 2:
		cut(file);
		break;
	case 3:
		punch(file);
		break;
	case 4:
	case 5:
		write_some(file, true);
		break;
	default:
		write_some(file, false);
		break;
	}
}

/* ---- crashes ---- */

static void record(struct temp_store *temp, uint64_t seed)
{
	/* several groups between two syncs, and some cut in the middle of what is done */
	struct pfs_tree_options options = {.commit_ms = 2, .pending_limit = 2000000};

	temp_store_create(temp);
	tree = temp_tree_open_with(temp, &options);
	tree_model_start(tree, seed);
	history_note(&history, 0, model_state());
	for (uint64_t i = 1; i <= STEPS; i++) {
		step();
		history_note(&history, i, model_state());
		if (i % 5 == 0) {
			assert_int_equal(pfs_tree_sync(tree), 0);
			fault_mark(i);
		}
		if (i % 100 == 0) {
			temp_tree_close(tree);
			tree = temp_tree_open_with(temp, &options);
			fault_mark(i);
		}
	}
	assert_true(state_of(tree) == history.state[STEPS]);
	temp_tree_close(tree);
	fault_mark(STEPS);
}

static bool judge(struct pfs_tree *left, uint64_t synced)
{
	return history_has(&history, state_of(left), synced);
}

static void test_crashes(void **state)
{
	(void)state;
	crash_everywhere(record, judge, model_seed(20260901), long_mode() ? 3000 : 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_crashes)};

	if (fault_register(true))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
