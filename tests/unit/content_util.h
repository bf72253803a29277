/* SPDX-License-Identifier: MIT */
/* tests/unit/content_util.h - what the tests of content share: a store of their own with a tree
 * over it, whose commits can be made to fail, and a generator of repeatable numbers. */
#ifndef PFS_TESTS_CONTENT_UTIL_H
#define PFS_TESTS_CONTENT_UTIL_H

#include <fcntl.h>
#include <inttypes.h>

#include "base/checked.h"
#include "fs/content/content_impl.h"
#include "fs/image/image.h"
#include "fs/journal/journal_impl.h"
#include "fs/tree/tree_impl.h"
#include "store_util.h"

static const struct pfs_caller root_caller = {.umask = 022};
static struct pfs_tree *tree;
static _Atomic int commit_error; /* what the next commits fail with */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_pfs_store_commit(struct pfs_store *store, uint64_t *seq);
int __wrap_pfs_store_commit(struct pfs_store *store, uint64_t *seq);
static void (*before_commit)(void); /* called by the committer; NULL: nothing */
int __wrap_pfs_store_commit(struct pfs_store *store, uint64_t *seq)
{
	int error;

	if (before_commit)
		before_commit();
	error = atomic_load(&commit_error);
	if (!error)
		return __real_pfs_store_commit(store, seq);
	pfs_store_rollback(store);
	return error;
}

/* NOLINTEND(bugprone-reserved-identifier) */

/* Commits happen when they are asked for. */
static const struct pfs_tree_options quiet = {.commit_ms = 100000};

static inline void open_tree_as(const struct pfs_tree_options *options)
{
	assert_int_equal(pfs_tree_open(&tree, test_path, options), 0);
	assert_int_equal(pfs_tree_start(tree), 0);
}

static inline void open_tree(void)
{
	open_tree_as(&quiet);
}

/* A new store, empty but for the root, and a tree over it. */
static inline void new_tree(void)
{
	assert_int_equal(pfs_store_close(new_store(0)), 0);
	open_tree();
}

/* Everything is in the store, and the accounts say so. */
static inline void sync_tree(void)
{
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(atomic_load(&tree->journal->content), 0);
}

static inline void close_tree(void)
{
	assert_int_equal(pfs_tree_close(tree), 0);
	tree = NULL;
}

static inline void reopen_tree(void)
{
	close_tree();
	open_tree();
}

static inline uint64_t make_file(const char *name)
{
	struct pfs_entry entry;

	assert_int_equal(
		pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name, S_IFREG | 0644, 0, &root_caller),
		0);
	return entry.attr.st_ino;
}

static inline struct stat stat_of(uint64_t ino)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_getattr(tree, &entry, ino), 0);
	return entry.attr;
}

static inline int try_truncate(uint64_t ino, int64_t size)
{
	struct stat attr = {.st_size = size};
	struct pfs_entry entry;

	return pfs_tree_setattr(tree, &entry, ino, &attr, PFS_SET_SIZE, &root_caller);
}

static inline void write_at(uint64_t ino, const void *data, size_t size, int64_t offset)
{
	assert_int_equal(pfs_tree_write(tree, ino, data, size, offset, true, false), size);
}

static inline ssize_t read_at(uint64_t ino, void *data, size_t size, int64_t offset)
{
	return pfs_tree_read(tree, data, size, ino, offset, 0);
}

/* The blocks of what the store has of the file. */
static inline int64_t stored_blocks(uint64_t ino)
{
	int64_t blocks = 0;
	uint64_t n = 0;
	size_t len;
	int error;

	while (!(error = pfs_store_next_chunk(tree->store, &n, &len, ino, n, PFS_CHUNKS_MAX))) {
		blocks += pfs_chunk_blocks((uint32_t)len);
		n++;
	}
	assert_int_equal(error, -ENOENT);
	return blocks;
}

/* The first of 10,000 numbers for files that the test puts into the store itself; in a group. */
static inline uint64_t reserve_primes(struct pfs_store *store)
{
	uint64_t first, end;

	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_OTHER, 10000), 0);
	return first;
}

static inline struct pfs_time time_from(struct timespec time)
{
	return (struct pfs_time){.sec = time.tv_sec, .nsec = (uint32_t)time.tv_nsec};
}

/* Fills in what an import has of a linked file: the node's own, and what it compares the original
 * with. */
static inline void take_stat(struct pfs_node_record *node, struct pfs_source_record *source,
			     const struct stat *st)
{
	source->mode = node->mode = st->st_mode;
	source->uid = node->uid = st->st_uid;
	source->gid = node->gid = st->st_gid;
	source->size = node->size = st->st_size;
	source->dev = st->st_dev;
	source->ino = st->st_ino;
	source->mtime = node->mtime = time_from(st->st_mtim);
	source->ctime = node->ctime = time_from(st->st_ctim);
	node->blocks = st->st_blocks;
}

static inline uint64_t random_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static inline uint64_t below(uint64_t *state, uint64_t limit)
{
	return random_number(state) % limit;
}

static inline uint64_t first_seed(void)
{
	const char *text = getenv("PFS_SEED");
	uint64_t seed = 0;

	if (!text || pfs_parse_u64(&seed, text) || !seed)
		seed = 20240607;
	printf("seed %" PRIu64 " (PFS_SEED changes it)\n", seed);
	return seed;
}

/* Flags of the image (PFS_NODE_...); the committer writes beside them. */
static inline bool has_flag(uint64_t ino, unsigned flag)
{
	bool has;

	pfs_hold_read(tree, __func__);
	has = tree->image.flags[pfs_image_slot(tree, ino)] & flag;
	pfs_hold_end(tree);
	return has;
}

#endif
