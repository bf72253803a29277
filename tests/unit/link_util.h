/* SPDX-License-Identifier: MIT */
/* tests/unit/link_util.h - originals, and a store whose files are linked to them. */
#ifndef PFS_TESTS_LINK_UTIL_H
#define PFS_TESTS_LINK_UTIL_H

#include "tests/unit/origin_util.h"

#include <limits.h>

#include "fs/image/image.h"
#include "fs/image/totals.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"

#define C	     ((int64_t)PFS_CHUNK_SIZE)
#define LARGE_CHUNKS 80 /* several reservations of a copy, each of which waits for a commit */
#define LARGE	     (LARGE_CHUNKS * C + 1234)

static uint8_t data[LARGE], back[LARGE + 100];
static struct pfs_store *building;
static uint64_t first_prime, next_prime; /* numbers rather: nobody divides them */
static int told, rights_told;

static inline void count_told(void *arg, uint64_t ino, const char *name)
{
	(void)arg;
	assert_true(ino > 0 && !name);
	told++;
}

static inline void count_stale(void *arg, uint64_t ino)
{
	count_told(arg, ino, NULL);
}

static inline void count_rights(void *arg, uint64_t ino)
{
	(void)arg;
	assert_true(ino > 0);
	rights_told++;
}

/* ---- making originals, and a store that links to them ---- */

/* Without the NUL. */
static inline void put_text(uint8_t *bytes, const char *text)
{
	while (*text)
		*bytes++ = (uint8_t)*text++;
}

static inline void put_file(const char *name, const void *bytes, size_t size)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(close(fd), 0);
}

static inline bool original_is(const char *name, const void *bytes, int64_t size)
{
	int fd = open(path_of(name), O_RDONLY);
	ssize_t got = read(fd, back, sizeof(back));

	(void)close(fd);
	return got == size && !memcmp(back, bytes, (size_t)size);
}

static inline int make_origin(void **state)
{
	uint64_t seed = 5;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(random_number(&seed) | 1);
	if (make_folder(state))
		return -1;
	told = rights_told = 0;
	atomic_store(&commit_error, 0);
	(void)snprintf(origin, sizeof(origin), "%s/origin", test_folder);
	return mkdir(origin, 0755) || mkdir(path_of("sub"), 0755);
}

static inline void begin_store(void **state)
{
	struct pfs_source_root root = {.path = origin};
	struct stat st;
	uint32_t id;

	(void)state;
	building = new_store(0);
	assert_int_equal(stat(origin, &st), 0);
	root.dev = st.st_dev;
	root.ino = st.st_ino;
	assert_int_equal(pfs_store_begin(building), 0);
	assert_int_equal(pfs_store_stamp(building), 0);
	first_prime = next_prime = reserve_primes(building);
	assert_int_equal(pfs_store_put_source_root(building, &id, &root), 0);
	assert_int_equal(id, 1);
}

/* A node linked to path below the origin, which looks as `like` does. */
static inline uint64_t link_as(const char *path, const char *like)
{
	static char name[16];
	struct pfs_source_record source = {.root = 1, .path = path, .path_len = strlen(path)};
	struct pfs_node_record node;
	struct stat st;

	(void)snprintf(name, sizeof(name), "n%" PRIu64, next_prime);
	assert_int_equal(stat(path_of(like), &st), 0);
	node = file_record(next_prime, (uint32_t)(next_prime - first_prime + 1), name);
	node.flags = PFS_NODE_LINKED;
	source.prime = next_prime;
	take_stat(&node, &source, &st);
	assert_int_equal(pfs_store_put_node(building, &node), 0);
	assert_int_equal(pfs_store_put_source(building, &source), 0);
	return next_prime++;
}

static inline uint64_t link_to(const char *path)
{
	return link_as(path, path);
}

static inline void listen_to_tree(void)
{
	pfs_tree_listen(tree, &(struct pfs_tree_listener){.changed = count_told,
							  .stale = count_stale,
							  .rights_change = count_rights});
}

static inline void end_store(void)
{
	struct pfs_totals totals;

	assert_int_equal(pfs_store_commit(building, NULL), 0);
	assert_int_equal(pfs_store_close(building), 0);
	open_tree();
	listen_to_tree();
	assert_int_equal(pfs_tree_totals(tree, &totals, PFS_ROOT_PRIME), 0); /* kept from now on */
}

static inline int try_stat(uint64_t ino)
{
	return pfs_tree_getattr(tree, &(struct pfs_entry){0}, ino);
}

static inline int try_open(uint64_t ino, int flags)
{
	bool volatile_attr;

	return pfs_tree_open_file(tree, &volatile_attr, ino, flags, true, false);
}

static inline bool is_linked(uint64_t ino)
{
	return has_flag(ino, PFS_NODE_LINKED);
}

static inline void check_bytes(uint64_t ino, const void *bytes, int64_t size)
{
	assert_int_equal(stat_of(ino).st_size, size);
	memset(back, 0x5a, sizeof(back));
	assert_int_equal(read_at(ino, back, sizeof(back), 0), size);
	assert_memory_equal(back, bytes, (size_t)size);
	(void)pfs_scan_lock(tree, __func__);
	assert_null(pfs_watch_check(tree));
	pfs_scan_unlock(tree);
}

static inline bool has_source(uint64_t ino)
{
	struct pfs_source_record source;
	char path[PATH_MAX];
	int error = pfs_store_get_source(tree->store, &source, path, ino);

	assert_true(!error || error == -ENOENT);
	return !error;
}

#endif
