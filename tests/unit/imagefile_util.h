/* SPDX-License-Identifier: MIT */
/* tests/unit/imagefile_util.h - stores with an image file, as they are with it and without, and its
 * bytes, damaged. */
#ifndef PFS_TESTS_UNIT_IMAGEFILE_UTIL_H
#define PFS_TESTS_UNIT_IMAGEFILE_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/lazy.h"
#include "base/log.h"
#include "fs/attr/attrfile.h"
#include "fs/image/imagefile_impl.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/image/slotorder.h"
#include "fs/nodes/paths.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"
#include "tests/ref/random.h"
#include "tests/ref/temp_store.h"
#include "tests/ref/tree_model.h"

#define LARGE 9000u /* nodes */

static uint64_t seed;
static bool is_long;

static inline char *file_of(const struct temp_store *temp)
{
	static char name[128];

	(void)snprintf(name, sizeof(name), "%s" PFS_IMAGE_FILE_SUFFIX, temp->path);
	return name;
}

/* ---- two images ---- */

static inline bool same_time(struct pfs_time a, struct pfs_time b)
{
	return a.sec == b.sec && a.nsec == b.nsec;
}

static inline void assert_same_node(struct pfs_tree *a, struct pfs_tree *b, uint32_t slot)
{
	struct pfs_node_record x, y;

	assert_int_equal(a->image.prime[slot], b->image.prime[slot]);
	if (!a->image.prime[slot])
		return;
	pfs_image_record(a, &x, slot);
	pfs_image_record(b, &y, slot);
	assert_int_equal(x.name_len, y.name_len);
	assert_memory_equal(x.name, y.name, x.name_len);
	assert_int_equal(x.target_len, y.target_len);
	if (x.target_len)
		assert_memory_equal(x.target, y.target, x.target_len);
	assert_true(x.prime == y.prime && x.parent == y.parent && x.slot == y.slot &&
		    x.flags == y.flags);
	assert_true(x.mode == y.mode && x.uid == y.uid && x.gid == y.gid && x.rdev == y.rdev);
	assert_true(x.size == y.size && x.blocks == y.blocks && same_time(x.atime, y.atime) &&
		    same_time(x.mtime, y.mtime) && same_time(x.ctime, y.ctime));
	assert_int_equal(a->image.links[slot], b->image.links[slot]);
	assert_true((a->image.live[slot / 64] >> slot % 64 & 1) ==
		    (b->image.live[slot / 64] >> slot % 64 & 1));
	assert_int_equal(a->image.state[slot], b->image.state[slot]);
	assert_int_equal(pfs_image_slot(b, x.prime), slot);
}

static inline void assert_same_index(struct pfs_tree *a, struct pfs_tree *b)
{
	struct pfs_btree_cursor in_a, in_b;
	struct pfs_btree_entry x, y;

	pfs_btree_seek(a->image.by_name, &in_a, 0, 0);
	pfs_btree_seek(b->image.by_name, &in_b, 0, 0);
	while (pfs_btree_next(a->image.by_name, &in_a, &x)) {
		assert_true(pfs_btree_next(b->image.by_name, &in_b, &y));
		assert_true(x.key == y.key && x.slot == y.slot);
	}
	assert_false(pfs_btree_next(b->image.by_name, &in_b, &y));
	assert_int_equal(pfs_btree_verify(b->image.by_name), 0);
}

/* What is known of subtrees: the totals of all directories, and which slots each has. */
static inline void assert_same_subtrees(struct pfs_tree *a, struct pfs_tree *b)
{
	struct pfs_totals x, y;

	assert_int_equal(pfs_totals_prepare(a, NULL, NULL), 0);
	assert_int_equal(pfs_totals_prepare(b, NULL, NULL), 0);
	for (uint32_t slot = 0; slot < a->image.end; slot++) {
		if (!pfs_image_is_live(&a->image, slot) || !S_ISDIR(a->image.mode[slot]))
			continue;
		pfs_totals_at(a, &x, slot);
		pfs_totals_at(b, &y, slot);
		assert_true(x.count == y.count && x.size == y.size && x.blocks == y.blocks &&
			    x.mtime == y.mtime);
	}
	assert_true(pfs_spans_are_sound(a));
	assert_true(pfs_spans_are_sound(b));
}

/* But for the order in which free slots are used again. */
static inline void assert_same_but_free(struct pfs_tree *a, struct pfs_tree *b)
{
	assert_same_subtrees(a, b);
	assert_int_equal(a->image.end, b->image.end);
	assert_int_equal(a->image.nodes, b->image.nodes);
	assert_int_equal(a->image.directories, b->image.directories);
	assert_int_equal(a->image.root, b->image.root);
	assert_int_equal(a->image.free_count, b->image.free_count);
	for (uint32_t slot = 0; slot < a->image.end; slot++)
		assert_same_node(a, b, slot);
	assert_same_index(a, b);
	assert_int_equal(tree_model_state_of(a), tree_model_state_of(b));
}

static inline void assert_same(struct pfs_tree *a, struct pfs_tree *b)
{
	assert_same_but_free(a, b);
	assert_int_equal(a->image.free_head, b->image.free_head);
	for (uint32_t slot = a->image.free_head; slot != PFS_NO_SLOT; slot = a->image.parent[slot])
		assert_int_equal(a->image.parent[slot], b->image.parent[slot]);
}

static inline struct pfs_tree *open_rows(const struct temp_store *temp)
{
	return temp_tree_open_with(
		temp, &(struct pfs_tree_options){.read_only = true, .no_image_file = true});
}

static inline struct pfs_tree *open_file(const struct temp_store *temp)
{
	return temp_tree_open_with(temp, &(struct pfs_tree_options){.read_only = true});
}

static inline void write_file(const struct temp_store *temp)
{
	struct pfs_tree *tree = open_rows(temp);

	assert_int_equal(pfs_imagefile_write(tree), 0);
	temp_tree_close(tree);
}

/* Whether it is used; what is answered is the same either way. */
static inline bool check_file(const struct temp_store *temp)
{
	struct pfs_tree *rows = open_rows(temp), *file = open_file(temp);
	bool used = file->image.from_file;

	assert_false(rows->image.from_file);
	assert_false(pfs_totals_are_made(rows));
	assert_true(pfs_totals_are_made(file) == used);
	assert_same(rows, file);
	temp_tree_close(rows);
	temp_tree_close(file);
	return used;
}

/* ---- a tree with everything that images have ---- */

static inline void add_rare(struct pfs_tree *tree, unsigned round)
{
	const struct stat far = {.st_mtim = {.tv_sec = INT64_C(1) << 40, .tv_nsec = 5}};
	struct pfs_entry entry;
	char name[32];

	(void)snprintf(name, sizeof(name), "link %u", round);
	assert_int_equal(
		pfs_tree_symlink(tree, &entry, PFS_ROOT_PRIME, name, "to/somewhere", &temp_root),
		0);
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
	(void)snprintf(name, sizeof(name), "far %u", round);
	assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name, S_IFBLK | 0600, 0x1234,
				       &temp_root),
			 0);
	assert_int_equal(
		pfs_tree_setattr(tree, &entry, entry.attr.st_ino, &far, PFS_SET_MTIME, &temp_root),
		0);
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
}

/* A store after so many random operations, which the model knows, and with an image file. */
static inline void make_store(struct temp_store *temp, unsigned steps)
{
	struct pfs_tree *tree;

	temp_store_create(temp);
	tree = temp_tree_open(temp);
	tree_model_start(tree, seed);
	for (unsigned i = 0; i < steps; i++)
		tree_model_step();
	add_rare(tree, 0);
	temp_tree_close(tree);
	write_file(temp);
}

/* As large that all sections have several blocks. */
static inline void make_large_store(struct temp_store *temp)
{
	struct pfs_tree *tree;

	make_store(temp, 300);
	tree = temp_tree_open(temp);
	for (unsigned i = 0; i < LARGE; i++) {
		struct pfs_entry entry;
		char name[32];

		(void)snprintf(name, sizeof(name), "%x of many", i * 2654435761u);
		assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name,
					       (i % 8 ? S_IFREG : S_IFDIR) | 0600, 0, &temp_root),
				 0);
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	}
	for (unsigned i = 0; i < LARGE; i += 5) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%x of many", i * 2654435761u);
		if (i % 8)
			assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, name), 0);
	}
	temp_tree_close(tree);
	write_file(temp);
}

/* ---- damage ---- */

static uint8_t *bytes;
static size_t size;

static inline void take_bytes(const struct temp_store *temp)
{
	struct stat attr = {0};
	int fd = open(file_of(temp), O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &attr), 0);
	size = (size_t)attr.st_size;
	free(bytes);
	bytes = malloc(size);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, size), size);
	assert_int_equal(close(fd), 0);
}

static inline void put_bytes(const struct temp_store *temp, size_t n)
{
	int fd = open(file_of(temp), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(close(fd), 0);
}

/* Whoever met with the damage removed the file. */
static inline bool is_removed(const struct temp_store *temp)
{
	return access(file_of(temp), F_OK) != 0;
}

static inline void sum_up(void)
{
	struct pfs_image_header *header = (struct pfs_image_header *)bytes;
	uint64_t *sums = (uint64_t *)(bytes + PFS_IMAGE_FILE_PAGE);
	struct pfs_image_layout layout;

	pfs_imagefile_layout(&layout, header);
	for (unsigned section = 0; section < PFS_SECTIONS; section++) {
		uint64_t block = layout.first_block[section];

		for (uint64_t at = 0; at < layout.size[section];
		     at += layout.unit[section], block++)
			sums[block] = pfs_imagefile_sum(
				header, block, bytes + layout.offset[section] + at,
				PFS_MIN(layout.size[section] - at, layout.unit[section]));
	}
	header->table_checksum = pfs_imagefile_sum_sums(
		header, &layout, sums, (uint64_t *)(bytes + layout.sum_pages_offset));
	header->checksum = pfs_imagefile_sum(header, PFS_SUM_HEADER, header,
					     offsetof(struct pfs_image_header, checksum));
}

/* PFS_SEED and PFS_LONG; no findings are logged. */
static inline void take_settings(void)
{
	const char *text = getenv("PFS_SEED"), *mode = getenv("PFS_LONG");

	seed = text ? strtoull(text, NULL, 0) : 1;
	is_long = mode && *mode == '1';
	print_message("PFS_SEED=%llu\n", (unsigned long long)seed);
	pfs_log_open(PFS_LOG_NOTHING, false);
}

#endif
