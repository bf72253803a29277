/* SPDX-License-Identifier: MIT */
/* Linked originals: reading through, what changes outside, attacks on the path, the copy before the
 * first change. */
#include "origin_util.h"

#include <dirent.h>
#include <linux/falloc.h>
#include <sys/time.h>

#include "fs/image/image.h"
#include "fs/image/totals.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"

#define C     ((int64_t)PFS_CHUNK_SIZE)
#define LARGE_CHUNKS 80 /* several reservations of a copy, each of which waits for a commit */
#define LARGE (LARGE_CHUNKS * C + 1234)

static uint8_t data[LARGE], back[LARGE + 100];
static struct pfs_store *building;
static uint64_t first_prime, next_prime; /* numbers rather: nobody divides them */
static int told, rights_told;

static void count_told(void *arg, uint64_t ino, const char *name)
{
	(void)arg;
	assert_true(ino > 0 && !name);
	told++;
}

static void count_rights(void *arg, uint64_t ino)
{
	(void)arg;
	assert_true(ino > 0);
	rights_told++;
}

/* ---- making originals, and a store that links to them ---- */

/* Without the NUL. */
static void put_text(uint8_t *bytes, const char *text)
{
	while (*text)
		*bytes++ = (uint8_t)*text++;
}

static void put_file(const char *name, const void *bytes, size_t size)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(close(fd), 0);
}

static bool original_is(const char *name, const void *bytes, int64_t size)
{
	int fd = open(path_of(name), O_RDONLY);
	ssize_t got = read(fd, back, sizeof(back));

	(void)close(fd);
	return got == size && !memcmp(back, bytes, (size_t)size);
}

static int make_origin(void **state)
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

static void begin_store(void **state)
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
static uint64_t link_as(const char *path, const char *like)
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

static uint64_t link_to(const char *path)
{
	return link_as(path, path);
}

static void listen_to_tree(void)
{
	pfs_tree_listen(tree, &(struct pfs_tree_listener){
					.changed = count_told, .rights_change = count_rights});
}

static void end_store(void)
{
	struct pfs_totals totals;

	assert_int_equal(pfs_store_commit(building, NULL), 0);
	assert_int_equal(pfs_store_close(building), 0);
	open_tree();
	listen_to_tree();
	assert_int_equal(pfs_tree_totals(tree, &totals, PFS_ROOT_PRIME), 0); /* kept from now on */
}

static int try_stat(uint64_t ino)
{
	return pfs_tree_getattr(tree, &(struct pfs_entry){0}, ino);
}

static int try_open(uint64_t ino, int flags)
{
	bool volatile_attr;

	return pfs_tree_open_file(tree, &volatile_attr, ino, flags, true, false);
}

static bool is_linked(uint64_t ino)
{
	return has_flag(ino, PFS_NODE_LINKED);
}

static void check_bytes(uint64_t ino, const void *bytes, int64_t size)
{
	assert_int_equal(stat_of(ino).st_size, size);
	memset(back, 0x5a, sizeof(back));
	assert_int_equal(read_at(ino, back, sizeof(back), 0), size);
	assert_memory_equal(back, bytes, (size_t)size);
	(void)pfs_scan_lock(tree, __func__);
	assert_null(pfs_watch_check(tree));
	pfs_scan_unlock(tree);
}

static bool has_source(uint64_t ino)
{
	struct pfs_source_record source;
	char path[PATH_MAX];
	int error = pfs_store_get_source(tree->store, &source, path, ino);

	assert_true(!error || error == -ENOENT);
	return !error;
}

/* ---- reading through ---- */

static void test_read(void **state)
{
	struct pfs_entry entry;
	bool volatile_attr;
	uint64_t ino;
	ssize_t at_once;

	begin_store(state);
	put_file("sub/f", data, LARGE);
	ino = link_to("sub/f");
	end_store();
	assert_int_equal(pfs_tree_getattr(tree, &entry, ino), 0);
	assert_true(entry.volatile_attr);
	assert_int_equal(pfs_tree_read(tree, back, 10, ino, 0, PFS_READ_NOWAIT), -EAGAIN);
	assert_int_equal(pfs_tree_open_file(tree, &volatile_attr, ino, O_RDONLY, true, true),
			 -EAGAIN);
	assert_int_equal(pfs_tree_open_file(tree, &volatile_attr, ino, O_RDONLY, true, false), 0);
	assert_true(volatile_attr);
	check_bytes(ino, data, LARGE);
	at_once = pfs_tree_read(tree, back, 10, ino, C - 5, PFS_READ_NOWAIT);
	if (at_once != -EAGAIN) { /* as on a tmpfs, which cannot tell what it has */
		assert_int_equal(at_once, 10);
		assert_memory_equal(back, data + C - 5, 10);
	}
	assert_int_equal(read_at(ino, back, 10, LARGE - 3), 3);
	assert_int_equal(read_at(ino, back, 10, LARGE), 0);
	assert_int_equal(pfs_tree_seek(tree, ino, 5, SEEK_DATA), 5);
	assert_int_equal(pfs_tree_seek(tree, ino, LARGE, SEEK_DATA), -ENXIO);
	assert_in_range(pfs_tree_seek(tree, ino, 5, SEEK_HOLE), 6, LARGE);
	close_tree();
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

/* Many files in use cost a bounded number of descriptors. */
static void test_descriptors(void **state)
{
	uint64_t inos[1000];
	unsigned before;
	char name[16];

	begin_store(state);
	for (size_t i = 0; i < PFS_COUNT(inos); i++) {
		(void)snprintf(name, sizeof(name), "%zu", i);
		put_file(name, name, strlen(name));
		inos[i] = link_to(name);
	}
	end_store();
	before = count_descriptors();
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < PFS_COUNT(inos); i++) {
			(void)snprintf(name, sizeof(name), "%zu", i);
			assert_int_equal(try_open(inos[i], O_RDONLY), 0);
			assert_int_equal(read_at(inos[i], back, 16, 0), strlen(name));
			assert_memory_equal(back, name, strlen(name));
		}
	}
	assert_in_range(count_descriptors(), before, before + 270);
	close_tree();
}

/* ---- what happens outside ---- */

static void test_changed(void **state)
{
	struct pfs_tree_options read_only = {.read_only = true};
	uint64_t ino;

	begin_store(state);
	put_file("f", "one", 3);
	ino = link_to("f");
	end_store();
	check_bytes(ino, "one", 3);
	put_file("f", "four", 4);
	check_bytes(ino, "four", 4);
	assert_int_equal(told, 1);
	assert_int_equal(rights_told, 0);
	assert_int_equal(chmod(path_of("f"), 0600), 0);
	assert_int_equal(stat_of(ino).st_mode & 07777, 0600);
	assert_int_equal(told, 1); /* the content is the same */
	assert_int_equal(rights_told, 1);
	reopen_tree();		   /* what was seen is in the store */
	listen_to_tree();
	pfs_hold_read(tree, __func__);
	assert_int_equal(tree->image.size[pfs_image_slot(tree, ino)], 4);
	pfs_hold_end(tree);
	assert_int_equal(try_stat(ino), 0);
	assert_int_equal(told, 1);
	close_tree();
	/* one that may not write shows it all the same */
	put_file("f", "fiver", 5);
	assert_int_equal(pfs_tree_open(&tree, test_path, &read_only), 0);
	check_bytes(ino, "fiver", 5);
	check_bytes(ino, "fiver", 5);
	close_tree();
	/* another file in its place */
	open_tree();
	put_file("g", "other", 5);
	check_bytes(ino, "fiver", 5);
	assert_int_equal(rename(path_of("g"), path_of("f")), 0);
	check_bytes(ino, "other", 5);
	assert_true(is_linked(ino));
	close_tree();
}

static void test_missing(void **state)
{
	uint64_t ino;

	begin_store(state);
	put_file("f", "one", 3);
	ino = link_to("f");
	end_store();
	check_bytes(ino, "one", 3);
	assert_int_equal(unlink(path_of("f")), 0);
	assert_int_equal(try_stat(ino), -ESTALE);
	assert_int_equal(try_open(ino, O_RDONLY), -ESTALE);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, false), -ESTALE);
	/* nothing that is no file counts as one, nor does looking at it wait */
	assert_int_equal(mkfifo(path_of("f"), 0644), 0);
	assert_int_equal(try_open(ino, O_RDONLY), -ESTALE);
	assert_int_equal(unlink(path_of("f")), 0);
	assert_int_equal(mkdir(path_of("f"), 0755), 0);
	assert_int_equal(try_open(ino, O_RDONLY), -ESTALE);
	assert_int_equal(rmdir(path_of("f")), 0);
	/* what is truncated to nothing needs no original */
	assert_int_equal(try_truncate(ino, 0), 0);
	check_bytes(ino, "", 0);
	assert_false(is_linked(ino));
	close_tree();
}

/* The node's own attributes, each until the original's changes. */
static void test_own_attributes(void **state)
{
	struct stat attr = {.st_mode = 0600, .st_mtim.tv_sec = 77}, before;
	struct pfs_entry entry;
	uint64_t ino;

	begin_store(state);
	put_file("f", "one", 3);
	ino = link_to("f");
	end_store();
	assert_int_equal(stat(path_of("f"), &before), 0);
	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr, PFS_SET_MODE | PFS_SET_MTIME,
					  &root_caller),
			 0);
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(stat_of(ino).st_mode & 07777, 0600);
		assert_int_equal(stat_of(ino).st_mtim.tv_sec, 77);
		reopen_tree();
	}
	assert_int_equal(stat(path_of("f"), &attr), 0);
	assert_int_equal(attr.st_mode, before.st_mode);
	assert_int_equal(attr.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
	assert_true(is_linked(ino));
	put_file("f", "four", 4);
	attr = stat_of(ino);
	assert_int_equal(attr.st_size, 4);
	assert_int_equal(attr.st_mode & 07777, 0600);
	assert_int_not_equal(attr.st_mtim.tv_sec, 77);
	put_file("g", "fiver", 5);
	assert_int_equal(rename(path_of("g"), path_of("f")), 0);
	check_bytes(ino, "fiver", 5);
	assert_int_equal(stat_of(ino).st_mode & 07777,
			 0644); /* another file: what was set is gone */
	assert_int_equal(chmod(path_of("f"), 0640), 0);
	assert_int_equal(stat_of(ino).st_mode & 07777, 0640);
	close_tree();
}

/* ---- attacks ---- */

/* Everything that could lead out of the root says that the original is gone. */
static void test_attacks(void **state)
{
	static const char *const paths[] = {"../secret", "sub/../../secret", "link",
					    "sub/link",	 "dirlink/secret",   "/etc/passwd"};
	uint64_t inos[PFS_COUNT(paths)], good, swapped, inner;
	char secret[128];

	begin_store(state);
	(void)snprintf(secret, sizeof(secret), "%s/secret", test_folder);
	put_file("../secret", "secret", 6);
	put_file("sub/good", "good", 4);
	put_file("swapped", "good", 4);
	assert_int_equal(mkdir(path_of("inner"), 0755), 0);
	put_file("inner/good", "good", 4);
	assert_int_equal(symlink(secret, path_of("link")), 0);
	assert_int_equal(symlink("../../secret", path_of("sub/link")), 0);
	assert_int_equal(symlink(test_folder, path_of("dirlink")), 0);
	for (size_t i = 0; i < PFS_COUNT(paths); i++)
		inos[i] = link_as(paths[i], "../secret");
	good = link_to("sub/good");
	swapped = link_to("swapped");
	inner = link_to("inner/good");
	end_store();
	for (size_t i = 0; i < PFS_COUNT(paths); i++) {
		assert_int_equal(try_stat(inos[i]), -ESTALE);
		assert_int_equal(try_open(inos[i], O_RDONLY), -ESTALE);
		assert_int_equal(read_at(inos[i], back, 6, 0), -ESTALE);
		assert_int_equal(pfs_tree_write(tree, inos[i], "x", 1, 0, true, false), -ESTALE);
	}
	check_bytes(good, "good", 4);
	check_bytes(swapped, "good", 4);
	/* a component, or the file, becomes a symlink while it is in use */
	assert_int_equal(symlink(secret, path_of("new")), 0);
	assert_int_equal(rename(path_of("new"), path_of("swapped")), 0);
	assert_int_equal(try_stat(swapped), -ESTALE);
	assert_int_equal(read_at(swapped, back, 4, 0), -ESTALE);
	{
		char elsewhere[128], sub[512];

		(void)snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", test_folder);
		(void)snprintf(sub, sizeof(sub), "%s", path_of("sub"));
		assert_int_equal(rename(sub, elsewhere), 0);
		assert_int_equal(symlink(elsewhere, sub), 0);
	}
	assert_int_equal(try_stat(good), -ESTALE);
	assert_int_equal(try_open(good, O_RDONLY), -ESTALE);
	/* not even one that stays beneath the root */
	assert_int_equal(rename(path_of("inner"), path_of("renamed")), 0);
	assert_int_equal(symlink("renamed", path_of("inner")), 0);
	assert_int_equal(try_stat(inner), -ESTALE);
	assert_int_equal(read_at(inner, back, 4, 0), -ESTALE);
	close_tree();
}

static void test_root(void **state)
{
	char moved[512];
	uint64_t ino;

	begin_store(state);
	put_file("f", "one", 3);
	ino = link_to("f");
	end_store();
	(void)snprintf(moved, sizeof(moved), "%s/moved", test_folder);
	assert_int_equal(rename(origin, moved), 0);
	check_bytes(ino, "one", 3); /* the folder is the same, whatever its name */
	reopen_tree();
	assert_int_equal(try_stat(ino), -ESTALE); /* not found by its name any more */
	close_tree();
	assert_int_equal(mkdir(origin, 0755), 0);
	put_file("f", "one", 3);
	open_tree();
	assert_int_equal(try_stat(ino), -ESTALE); /* another folder of that name */
	write_at(make_file("new"), "works", 5, 0);
	close_tree();
	(void)snprintf(moved, sizeof(moved), "rm -r %s; mv %s/moved %s", origin, test_folder,
		       origin);
	assert_int_equal(system(moved), 0); /* NOLINT(cert-env33-c): our own temporary folder */
	open_tree();
	check_bytes(ino, "one", 3);
	close_tree();
}

/* ---- the copy ---- */

static void test_first_write(void **state)
{
	struct pfs_tree_options small = {.pending_limit = 1 << 20, .commit_ms = 100000};
	static uint8_t expected[LARGE + 10];
	uint64_t ino, nothing;

	begin_store(state);
	put_file("f", data, LARGE);
	put_file("nothing", "", 0);
	ino = link_to("f");
	nothing = link_to("nothing");
	end_store();
	close_tree();
	open_tree_as(&small);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, true), -EAGAIN);
	assert_true(is_linked(ino));
	write_at(ino, "changed", 7, C - 3);
	write_at(ino, "end", 3, PFS_AT_END);
	write_at(nothing, "some", 4, 0);
	memcpy(expected, data, LARGE);
	put_text(expected + C - 3, "changed");
	put_text(expected + LARGE, "end");
	for (int pass = 0; pass < 3; pass++) {
		assert_false(is_linked(ino));
		check_bytes(ino, expected, LARGE + 3);
		check_bytes(nothing, "some", 4);
		sync_tree();
		assert_false(has_source(ino));
		assert_int_equal(stored_blocks(ino), stat_of(ino).st_blocks);
		if (pass)
			reopen_tree();
	}
	assert_true(original_is("f", data, LARGE));
	assert_true(original_is("nothing", "", 0));
	assert_int_equal(count_findings(tree->store), 0);
	close_tree();
}

static void test_truncate(void **state)
{
	static const int64_t sizes[] = {0, 1, C, C + 1, LARGE - 1, LARGE, LARGE + 5};
	static uint8_t expected[LARGE + 100];
	uint64_t inos[PFS_COUNT(sizes)], opened, punched;

	begin_store(state);
	put_file("f", data, LARGE);
	for (size_t i = 0; i < PFS_COUNT(sizes); i++)
		inos[i] = link_to("f");
	opened = link_to("f");
	punched = link_to("f");
	end_store();
	for (size_t i = 0; i < PFS_COUNT(sizes); i++)
		assert_int_equal(try_truncate(inos[i], sizes[i]), 0);
	assert_int_equal(try_open(opened, O_WRONLY | O_TRUNC), 0);
	assert_int_equal(pfs_tree_fallocate(tree, punched,
					    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5, C, true),
			 0);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
			memset(expected, 0, sizeof(expected));
			memcpy(expected, data, (size_t)PFS_MIN(sizes[i], LARGE));
			check_bytes(inos[i], expected, sizes[i]);
			assert_false(is_linked(inos[i]));
		}
		check_bytes(opened, "", 0);
		memcpy(expected, data, LARGE);
		memset(expected + 5, 0, C);
		check_bytes(punched, expected, LARGE);
		sync_tree();
		for (size_t i = 0; i < PFS_COUNT(sizes); i++)
			assert_int_equal(stored_blocks(inos[i]), stat_of(inos[i]).st_blocks);
		reopen_tree();
	}
	assert_true(original_is("f", data, LARGE));
	close_tree();
}

static _Atomic int commits_left;

static void fail_after_some(void)
{
	if (atomic_fetch_sub(&commits_left, 1) <= 0)
		atomic_store(&commit_error, -EIO);
}

/* Broken off in the middle, with some groups committed: the original counts as before, and the next
 * copy is whole, also when the original is shorter by then. */
static void test_interrupted(void **state)
{
	struct pfs_tree_options small = {.pending_limit = 512 << 10, .commit_ms = 100000};
	uint64_t ino;

	begin_store(state);
	put_file("f", data, LARGE);
	ino = link_to("f");
	end_store();
	close_tree();
	atomic_store(&commits_left, 2);
	before_commit = fail_after_some;
	open_tree_as(&small);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, false), -EROFS);
	assert_true(is_linked(ino));
	check_bytes(ino, data, LARGE);
	assert_int_equal(pfs_tree_close(tree), -EIO);
	before_commit = NULL;
	atomic_store(&commit_error, 0);

	open_tree();
	assert_in_range(stored_blocks(ino), 128, LARGE_CHUNKS * 128); /* of the copy: they mean nothing */
	check_bytes(ino, data, LARGE);
	put_file("f", data + 9, C + 5);
	check_bytes(ino, data + 9, C + 5);
	assert_int_equal(try_truncate(ino, C + 10), 0);
	write_at(ino, data + C + 14, 5, C + 5);
	check_bytes(ino, data + 9, C + 10);
	sync_tree();
	assert_int_equal(stored_blocks(ino), 128 + 8);
	reopen_tree();
	check_bytes(ino, data + 9, C + 10);
	close_tree();
}

/* A linked file without a name is still linked, and can still be changed. */
static void test_unlinked(void **state)
{
	uint64_t read_only, changed;
	char name[32];

	begin_store(state);
	put_file("f", data, 2 * C);
	read_only = link_to("f");
	changed = link_to("f");
	end_store();
	for (uint64_t ino = read_only; ino <= changed; ino++) {
		(void)snprintf(name, sizeof(name), "n%" PRIu64, ino);
		assert_int_equal(
			pfs_tree_lookup(tree, &(struct pfs_entry){0}, PFS_ROOT_PRIME, name), 0);
		assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, name), 0);
	}
	sync_tree();
	assert_false(has_source(read_only));
	check_bytes(read_only, data, 2 * C);
	write_at(changed, data + 2 * C, 10, 2 * C);
	sync_tree();
	check_bytes(changed, data, 2 * C + 10);
	assert_false(has_source(changed));
	pfs_tree_forget(tree, read_only, 1);
	pfs_tree_forget(tree, changed, 1);
	sync_tree();
	assert_int_equal(count_findings(tree->store), 0);
	close_tree();
}

/* Two that want to change the same file at once: one copy, both changes. */
struct writer {
	uint64_t ino;
	int64_t offset;
};

static void *write_thread(void *arg)
{
	const struct writer *writer = arg;

	for (int i = 0; i < 50; i++)
		if (pfs_tree_write(tree, writer->ino, "12345678", 8, writer->offset + 8 * i, true,
				   false) != 8)
			return arg;
	return NULL;
}

static void test_two_writers(void **state)
{
	static uint8_t expected[LARGE];
	struct writer writers[2] = {{0, 100}, {0, LARGE - 1000}};
	pthread_t threads[2];
	void *failed;
	uint64_t ino;

	begin_store(state);
	put_file("f", data, LARGE);
	ino = link_to("f");
	end_store();
	memcpy(expected, data, LARGE);
	for (int i = 0; i < 2; i++) {
		writers[i].ino = ino;
		for (int j = 0; j < 50; j++)
			put_text(expected + writers[i].offset + 8L * j, "12345678");
		assert_int_equal(pthread_create(&threads[i], NULL, write_thread, &writers[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	check_bytes(ino, expected, LARGE);
	reopen_tree();
	check_bytes(ino, expected, LARGE);
	close_tree();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_origin, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(test_read),	   TEST(test_descriptors), TEST(test_changed),
		TEST(test_missing),	   TEST(test_attacks),	   TEST(test_root),
		TEST(test_own_attributes), TEST(test_first_write), TEST(test_truncate),
		TEST(test_interrupted),	   TEST(test_unlinked),	   TEST(test_two_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
