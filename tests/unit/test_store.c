/* SPDX-License-Identifier: MIT */
/* Nodes, content and sources: what is put comes back, after a commit and after another open. */
#include "tests/unit/store_util.h"

#include <limits.h>

#define BIG_PRIME ((UINT64_C(1) << 32) + 15)

/* ---- nodes ---- */

struct seen_nodes {
	struct pfs_node_record node[16];
	char name[16][PFS_NAME_MAX + 1], target[16][PFS_TARGET_MAX + 1];
	size_t count;
	int stop_after;
};

static int see_node(void *arg, const struct pfs_node_record *node)
{
	struct seen_nodes *seen = arg;
	size_t i = seen->count++;

	assert_true(i < PFS_COUNT(seen->node));
	seen->node[i] = *node;
	(void)memcpy(seen->name[i], node->name, node->name_len);
	seen->name[i][node->name_len] = 0;
	if (node->target_len)
		(void)memcpy(seen->target[i], node->target, node->target_len);
	return seen->stop_after && seen->count == (size_t)seen->stop_after ? 77 : 0;
}

static struct seen_nodes *scan(struct pfs_store *store, uint64_t first, uint64_t end)
{
	static struct seen_nodes seen;

	(void)memset(&seen, 0, sizeof(seen));
	assert_int_equal(pfs_store_scan_nodes(store, first, end, see_node, &seen), 0);
	return &seen;
}

static void assert_time(struct pfs_time got, struct pfs_time wanted)
{
	assert_int_equal(got.sec, wanted.sec);
	assert_int_equal(got.nsec, wanted.nsec);
}

static void nodes_come_back(void **state PFS_UNUSED)
{
	static const struct pfs_time times[] = {
		{0, 0},
		{-1, 999999999},
		{1700000000, 123456789},
		{9223372036, 854775807},
		{9223372036, 854775808},
		{-9223372037, 145224192},
		{-9223372037, 145224191},
		{-9223372036, 145224191},
		{INT64_MAX, 999999999},
		{INT64_MIN, 0},
		{INT64_MIN, 1},
	};
	struct pfs_store *store = new_store(0);
	struct seen_nodes *seen;
	size_t i;

	assert_int_equal(pfs_store_begin(store), 0);
	for (i = 0; i < PFS_COUNT(times); i++) {
		struct pfs_node_record node = file_record(BIG_PRIME + i, (uint32_t)i + 1, "n");

		node.mtime = times[i];
		node.atime = times[(i + 1) % PFS_COUNT(times)];
		node.ctime = times[(i + 2) % PFS_COUNT(times)];
		node.size = INT64_MAX - (int64_t)i;
		node.uid = UINT32_MAX;
		assert_int_equal(pfs_store_put_node(store, &node), 0);
	}
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_close(store), 0);
	store = open_as(PFS_STORE_READ_ONLY);
	seen = scan(store, 0, UINT64_MAX);
	assert_int_equal(seen->count, PFS_COUNT(times) + 1);
	assert_int_equal(seen->node[0].prime, PFS_ROOT_PRIME);
	assert_int_equal(seen->node[0].parent, 0);
	assert_int_equal(seen->node[0].name_len, 0);
	for (i = 0; i < PFS_COUNT(times); i++) {
		const struct pfs_node_record *node = &seen->node[i + 1];

		assert_int_equal(node->prime, BIG_PRIME + i);
		assert_int_equal(node->parent, PFS_ROOT_PRIME);
		assert_int_equal(node->slot, i + 1);
		assert_int_equal(node->size, INT64_MAX - (int64_t)i);
		assert_int_equal(node->uid, UINT32_MAX);
		assert_time(node->mtime, times[i]);
		assert_time(node->atime, times[(i + 1) % PFS_COUNT(times)]);
		assert_time(node->ctime, times[(i + 2) % PFS_COUNT(times)]);
	}
	assert_int_equal(pfs_store_close(store), 0);
}

static void every_type_and_byte(void **state PFS_UNUSED)
{
	static const uint32_t types[] = {S_IFDIR, S_IFREG, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK};
	struct pfs_store *store = new_store(0);
	char name[PFS_NAME_MAX + 1], target[PFS_TARGET_MAX];
	struct pfs_node_record node;
	struct seen_nodes *seen;
	size_t i;

	for (i = 0; i < PFS_NAME_MAX; i++)
		name[i] = (char)(i + 1 == '/' ? 'x' : i + 1);
	name[PFS_NAME_MAX] = 0;
	(void)memset(target, '/', sizeof(target));
	assert_int_equal(pfs_store_begin(store), 0);
	for (i = 0; i < PFS_COUNT(types); i++) {
		node = file_record(BIG_PRIME + i, (uint32_t)i + 1, name);
		node.mode = types[i] | 07777;
		node.rdev = i ? UINT64_MAX - i : 0;
		node.flags = PFS_NODE_LINKED;
		node.blocks = 8;
		assert_int_equal(pfs_store_put_node(store, &node), 0);
	}
	node = file_record(BIG_PRIME + i, (uint32_t)i + 1, "link");
	node.mode = S_IFLNK | 0777;
	node.target = target;
	node.target_len = sizeof(target);
	assert_int_equal(pfs_store_put_node(store, &node), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);

	seen = scan(store, BIG_PRIME, BIG_PRIME + 100);
	assert_int_equal(seen->count, PFS_COUNT(types) + 1);
	for (i = 0; i < PFS_COUNT(types); i++) {
		assert_int_equal(seen->node[i].mode, types[i] | 07777);
		assert_true(seen->node[i].rdev == (i ? UINT64_MAX - i : 0));
		assert_int_equal(seen->node[i].blocks, 8);
		assert_int_equal(seen->node[i].flags, PFS_NODE_LINKED);
		assert_string_equal(seen->name[i], name);
		assert_int_equal(seen->node[i].target_len, 0);
	}
	assert_int_equal(seen->node[i].target_len, PFS_TARGET_MAX);
	assert_memory_equal(seen->target[i], target, sizeof(target));
	assert_int_equal(pfs_store_close(store), 0);
}

static void bad_records_are_refused(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	struct pfs_node_record good = file_record(BIG_PRIME, 1, "good"), bad;
	struct {
		const char *name;
		size_t len;
	} names[] = {
		{"", 0}, {".", 1}, {"..", 2}, {"a/b", 3}, {"a\0b", 3},
	};
	size_t i;

	assert_int_equal(pfs_store_begin(store), 0);
	for (i = 0; i < PFS_COUNT(names); i++) {
		bad = good;
		bad.name = names[i].name;
		bad.name_len = names[i].len;
		assert_int_equal(pfs_store_put_node(store, &bad), -EINVAL);
	}
	bad = good, bad.prime = 1;
	assert_int_equal(pfs_store_put_node(store, &bad), -EINVAL);
	bad = good, bad.prime = UINT64_C(1) << 63;
	assert_int_equal(pfs_store_put_node(store, &bad), -EINVAL);
	bad = good, bad.parent = 0;
	assert_int_equal(pfs_store_put_node(store, &bad), -EINVAL);
	bad = good, bad.mode = 0644;
	assert_int_equal(pfs_store_put_node(store, &bad), -EINVAL);
	bad = good, bad.size = -1;
	assert_int_equal(pfs_store_put_node(store, &bad), -EINVAL);
	bad = good, bad.mtime.nsec = 1000000000;
	assert_int_equal(pfs_store_put_node(store, &bad), -EINVAL);
	bad = good, bad.mode = S_IFLNK | 0777;
	assert_int_equal(pfs_store_put_node(store, &bad), -EINVAL);
	bad = good, bad.target = "t", bad.target_len = 1;
	assert_int_equal(pfs_store_put_node(store, &bad), -EINVAL);
	/* none of them spoilt the group */
	assert_int_equal(pfs_store_put_node(store, &good), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(scan(store, 3, UINT64_MAX)->count, 1);
	assert_int_equal(pfs_store_close(store), 0);
}

static void put_replaces_and_totals_follow(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	struct pfs_node_record node = file_record(BIG_PRIME, 41, "first"), directory;
	struct pfs_store_totals totals;
	struct seen_nodes seen = {.stop_after = 1};

	directory = file_record(7, 9, "directory");
	directory.mode = S_IFDIR | 0700;
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_node(store, &node), 0);
	node.name = "second";
	node.name_len = 6;
	node.slot = 1;
	assert_int_equal(pfs_store_put_node(store, &node), 0);
	assert_int_equal(pfs_store_put_node(store, &directory), 0);
	assert_int_equal(pfs_store_put_chunk(store, BIG_PRIME, 3, "abc", 3), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);

	assert_int_equal(pfs_store_totals(store, &totals), 0);
	assert_int_equal(totals.nodes, 3);
	assert_int_equal(totals.orphans, 0);
	assert_true(totals.end_slot >= 10);
	assert_int_equal(totals.end_prime, BIG_PRIME + 1);
	assert_string_equal(scan(store, BIG_PRIME, UINT64_MAX)->name[0], "second");
	assert_int_equal(scan(store, 3, 8)->count, 1);
	assert_int_equal(pfs_store_scan_nodes(store, 0, UINT64_MAX, see_node, &seen), 77);
	assert_int_equal(seen.count, 1);

	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_remove_chunks(store, BIG_PRIME, 0, UINT64_MAX), 0);
	assert_int_equal(pfs_store_remove_node(store, BIG_PRIME), 0);
	assert_int_equal(pfs_store_remove_node(store, BIG_PRIME), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_totals(store, &totals), 0);
	assert_int_equal(totals.nodes, 2);
	assert_int_equal(totals.end_prime, 8);
	assert_int_equal(pfs_store_close(store), 0);
}

/* ---- content ---- */

static void chunks_come_back(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	static uint8_t data[PFS_CHUNK_SIZE], got[PFS_CHUNK_SIZE];
	const uint64_t far = (UINT64_C(1) << 47) - 1;
	size_t len, i;
	uint64_t n;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_chunk(store, 5, 0, data, sizeof(data)), 0);
	assert_int_equal(pfs_store_put_chunk(store, 5, 7, data, 100), 0);
	assert_int_equal(pfs_store_put_chunk(store, 5, 9, NULL, 0), 0);
	assert_int_equal(pfs_store_put_chunk(store, 5, far, data, 1), 0);
	assert_int_equal(pfs_store_put_chunk(store, 5, far + 1, data, 1), -EINVAL);
	assert_int_equal(pfs_store_put_chunk(store, 5, 1, data, PFS_CHUNK_SIZE + 1), -EINVAL);
	assert_int_equal(pfs_store_put_chunk(store, 7, 0, data, 2), 0);
	assert_int_equal(pfs_store_get_chunk(store, got, &len, 5, 0), -ENOENT); /* not committed */
	assert_int_equal(pfs_store_commit(store, NULL), 0);

	assert_int_equal(pfs_store_get_chunk(store, got, &len, 5, 0), 0);
	assert_int_equal(len, sizeof(data));
	assert_memory_equal(got, data, sizeof(data));
	assert_int_equal(pfs_store_get_chunk(store, got, &len, 5, 9), 0);
	assert_int_equal(len, 0);
	assert_int_equal(pfs_store_get_chunk(store, got, &len, 5, 1), -ENOENT);
	assert_int_equal(pfs_store_get_chunk(store, got, &len, 5, far), 0);
	assert_int_equal(pfs_store_next_chunk(store, &n, &len, 5, 1, UINT64_MAX), 0);
	assert_int_equal(n, 7);
	assert_int_equal(len, 100);
	assert_int_equal(pfs_store_next_chunk(store, &n, &len, 5, 8, 9), -ENOENT);
	assert_int_equal(pfs_store_next_chunk(store, &n, &len, 5, 10, UINT64_MAX), 0);
	assert_true(n == far);

	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_chunk(store, 5, 7, data, sizeof(data)), 0);
	assert_int_equal(pfs_store_put_chunk(store, 5, 0, data + 1, 10), 0);
	assert_int_equal(pfs_store_remove_chunks(store, 5, 8, far), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_get_chunk(store, got, &len, 5, 7), 0);
	assert_int_equal(len, sizeof(data));
	assert_int_equal(pfs_store_get_chunk(store, got, &len, 5, 0), 0);
	assert_int_equal(len, 10);
	assert_memory_equal(got, data + 1, 10);
	assert_int_equal(pfs_store_get_chunk(store, got, &len, 5, 9), -ENOENT);
	assert_int_equal(pfs_store_get_chunk(store, got, &len, 5, far), 0);
	assert_int_equal(pfs_store_get_chunk(store, got, &len, 7, 0), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

static void orphans_are_reaped_in_steps(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	bool left = true;
	uint64_t prime, i;
	size_t len;
	int steps = 0;

	assert_int_equal(pfs_store_begin(store), 0);
	for (i = 0; i < 10; i++)
		assert_int_equal(pfs_store_put_chunk(store, 11, i * 3, "x", 1), 0);
	assert_int_equal(pfs_store_put_chunk(store, 13, 0, "keep", 4), 0);
	assert_int_equal(pfs_store_add_orphan(store, 11), 0);
	assert_int_equal(pfs_store_add_orphan(store, 11), 0);
	assert_int_equal(pfs_store_add_orphan(store, 17), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_next_orphan(store, &prime, 0), 0);
	assert_int_equal(prime, 11);
	assert_int_equal(pfs_store_next_orphan(store, &prime, 12), 0);
	assert_int_equal(prime, 17);
	assert_int_equal(pfs_store_next_orphan(store, &prime, 18), -ENOENT);

	while (left) {
		assert_int_equal(pfs_store_begin(store), 0);
		assert_int_equal(pfs_store_reap_orphan(store, &left, 11, 4), 0);
		assert_int_equal(pfs_store_commit(store, NULL), 0);
		steps++;
	}
	assert_int_equal(steps, 3);
	assert_int_equal(pfs_store_next_chunk(store, &i, &len, 11, 0, UINT64_MAX), -ENOENT);
	assert_int_equal(pfs_store_next_chunk(store, &i, &len, 13, 0, UINT64_MAX), 0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_reap_orphan(store, &left, 17, 1), 0);
	assert_false(left);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_next_orphan(store, &prime, 0), -ENOENT);
	assert_int_equal(pfs_store_close(store), 0);
}

static void chunks_are_copied(void **state PFS_UNUSED)
{
	static uint8_t data[PFS_CHUNK_SIZE], got[PFS_CHUNK_SIZE];
	struct pfs_store *store = new_store(0);
	uint64_t n;
	size_t len;

	(void)memset(data, 'c', sizeof(data));
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_chunk(store, 5, 0, data, sizeof(data)), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_put_chunk(store, 5, 1000, data, 9), 0);
	assert_int_equal(pfs_store_put_chunk(store, 5, 1001, NULL, 0), 0);
	assert_int_equal(pfs_store_copy_chunks(store, 7, 5), 0);
	assert_int_equal(pfs_store_copy_chunks(store, 11, 13), 0);
	assert_int_equal(pfs_store_copy_chunks(store, 7, 7), -EINVAL);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_get_chunk(store, got, &len, 7, 0), 0);
	assert_int_equal(len, sizeof(data));
	assert_memory_equal(got, data, sizeof(data));
	assert_int_equal(pfs_store_next_chunk(store, &n, &len, 7, 1, UINT64_MAX), 0);
	assert_true(n == 1000 && len == 9);
	assert_int_equal(pfs_store_next_chunk(store, &n, &len, 7, 1001, UINT64_MAX), 0);
	assert_true(n == 1001 && len == 0);
	assert_int_equal(pfs_store_next_chunk(store, &n, &len, 7, 1002, UINT64_MAX), -ENOENT);
	assert_int_equal(pfs_store_next_chunk(store, &n, &len, 11, 0, UINT64_MAX), -ENOENT);
	assert_int_equal(pfs_store_close(store), 0);
}

/* ---- sources ---- */

static int see_root(void *arg, const struct pfs_source_root *root)
{
	char *text = arg;

	(void)sprintf(text + strlen(text), "%u:%s:%llu ", root->id, root->path,
		      (unsigned long long)root->ino);
	return 0;
}

static void sources_come_back(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	struct pfs_source_record source = {.prime = BIG_PRIME,
					   .path = "a/b\xff",
					   .path_len = 4,
					   .dev = UINT64_MAX,
					   .ino = 12,
					   .size = 99,
					   .mtime = {-5, 7},
					   .ctime = {INT64_MAX, 8},
					   .mode = 0100644,
					   .uid = 1,
					   .gid = 2},
				 got;
	struct pfs_node_record node = file_record(BIG_PRIME, 1, "b");
	char path[PATH_MAX], text[100] = "";
	uint32_t id = 0, other = 0;

	node.flags = PFS_NODE_LINKED;
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(
		pfs_store_put_source_root(
			store, &id, &(struct pfs_source_root){.path = "/usr", .dev = 1, .ino = 2}),
		0);
	assert_int_equal(pfs_store_put_source_root(
				 store, &other,
				 &(struct pfs_source_root){.path = "/home", .dev = 1, .ino = 3}),
			 0);
	assert_int_equal(
		pfs_store_put_source_root(store, &other, &(struct pfs_source_root){.path = "home"}),
		-EINVAL);
	assert_int_equal(
		pfs_store_put_source_root(
			store, &id,
			&(struct pfs_source_root){.id = id, .path = "/usr2", .dev = 1, .ino = 4}),
		0);
	source.root = id;
	assert_int_equal(pfs_store_put_source(store, &source), 0);
	source.size = 100;
	assert_int_equal(pfs_store_put_source(store, &source), 0);
	assert_int_equal(pfs_store_put_node(store, &node), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_scan_source_roots(store, see_root, text), 0);
	assert_string_equal(text, "1:/usr2:4 2:/home:3 ");
	assert_int_equal(pfs_store_get_source(store, &got, path, BIG_PRIME), 0);
	assert_string_equal(path, "a/b\xff");
	assert_ptr_equal(got.path, path);
	assert_int_equal(got.path_len, 4);
	assert_int_equal(got.root, id);
	assert_true(got.dev == UINT64_MAX && got.ino == 12 && got.size == 100);
	assert_time(got.mtime, source.mtime);
	assert_time(got.ctime, source.ctime);
	assert_true(got.mode == 0100644 && got.uid == 1 && got.gid == 2);
	assert_int_equal(pfs_store_get_source(store, &got, path, 5), -ENOENT);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_remove_source(store, BIG_PRIME), 0);
	assert_int_equal(pfs_store_put_source(store, &source), 0);
	assert_int_equal(pfs_store_remove_node(store, BIG_PRIME), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_get_source(store, &got, path, BIG_PRIME), -ENOENT);
	assert_int_equal(pfs_store_close(store), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_come_back),
		cmocka_unit_test(every_type_and_byte),
		cmocka_unit_test(bad_records_are_refused),
		cmocka_unit_test(put_replaces_and_totals_follow),
		cmocka_unit_test(chunks_come_back),
		cmocka_unit_test(chunks_are_copied),
		cmocka_unit_test(orphans_are_reaped_in_steps),
		cmocka_unit_test(sources_come_back),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
