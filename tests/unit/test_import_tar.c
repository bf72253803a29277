/* SPDX-License-Identifier: MIT */
/* Archives: what comes twice, hard links, holes, bad names, types that change, what is cut short.
 */
#include "fs/content/hardlink.h"
#include "fs/image/image.h"
#include "tests/unit/import_util.h"

#include "tools/import/import_recognise.h"

#if PFS_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <sys/sysmacros.h>

#define SIZE_MAX_TAR ((size_t)4 << 20)

static char *bytes; /* the archive */
static size_t size;

struct item {
	const char *name;
	mode_t mode;
	const char *content; /* or a symlink's target */
	const char *hard;
	size_t fill; /* content is that many of its first byte */
};

/* Two entries of an ACL for each item in turn, of which every number is a tag or its
 * permissions. */
static const int (*acls)[4];

static void write_item(struct archive *archive, const struct item *item)
{
	struct archive_entry *entry = archive_entry_new();
	size_t len = item->fill ? item->fill : item->content ? strlen(item->content) : 0;
	char *content = malloc(len + 1);

	if (item->fill)
		(void)memset(content, item->content[0], len);
	else if (len)
		(void)memcpy(content, item->content, len);
	archive_entry_copy_pathname(entry, item->name);
	archive_entry_set_mode(entry, item->mode);
	for (size_t i = 0; acls && i < 4; i += 2)
		assert_int_equal(archive_entry_acl_add_entry(entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS,
							     (*acls)[i + 1], (*acls)[i], 9, NULL),
				 ARCHIVE_OK);
	acls += acls != NULL;
	archive_entry_set_mtime(entry, 1000, 5);
	archive_entry_set_uid(entry, 7);
	if (item->hard)
		archive_entry_copy_hardlink(entry, item->hard);
	if (S_ISLNK(item->mode))
		archive_entry_copy_symlink(entry, item->content);
	else
		archive_entry_set_size(entry, (la_int64_t)len);
	if (S_ISCHR(item->mode))
		archive_entry_set_rdev(entry, makedev(5, 1));
	if (S_ISREG(item->mode) && !item->hard && len)
		archive_entry_xattr_add_entry(entry, "user.first", content, 1);
	assert_true(archive_write_header(archive, entry) >= ARCHIVE_WARN);
	if (S_ISREG(item->mode) && len)
		assert_int_equal(archive_write_data(archive, content, len), len);
	archive_entry_free(entry);
	free(content);
}

static void write_archive(int (*format)(struct archive *), const struct item *items)
{
	struct archive *archive = archive_write_new();

	bytes = realloc(bytes, SIZE_MAX_TAR);
	assert_int_equal(format(archive), ARCHIVE_OK);
	assert_int_equal(archive_write_open_memory(archive, bytes, SIZE_MAX_TAR, &size),
			 ARCHIVE_OK);
	for (; items->name; items++)
		write_item(archive, items);
	assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
}

static int import_items(bool skip, const struct item *items)
{
	const struct pfs_import_options options = {.format = &pfs_import_tar, .skip = skip};

	write_archive(archive_write_set_format_pax, items);
	return run_import(&options, bytes, size);
}

#define REG  (S_IFREG | 0644)
#define DIR_ (S_IFDIR | 0750)

/* What the mask and a named user's entry take away, libarchive's mode has. */
static void acls_grant_no_more(void **state PFS_UNUSED)
{
	enum { USER = ARCHIVE_ENTRY_ACL_USER, MASK = ARCHIVE_ENTRY_ACL_MASK };
	static const struct item items[] = {
		{.name = "masked", .mode = S_IFREG | 0674},
		{.name = "denied", .mode = S_IFREG | 0644},
		{.name = "granted", .mode = S_IFREG | 0640},
		{.name = NULL},
	};
	static const int of_items[][4] = {
		{USER, 6, MASK, 4}, {USER, 0, MASK, 6}, {USER, 4, MASK, 4}};

	acls = of_items;
	assert_int_equal(import_items(false, items), 0);
	acls = NULL;
	assert_int_equal(stat_of("/masked").st_mode & 07777, 0644);
	assert_int_equal(stat_of("/denied").st_mode & 07777, 0600);
	assert_int_equal(stat_of("/granted").st_mode & 07777, 0640);
	assert_int_equal(narrowed, 1);
}

static void entries_become_nodes(void **state PFS_UNUSED)
{
	static const struct item items[] = {
		{"./", S_IFDIR | 0711, NULL, NULL, 0},
		{"d/f", REG, "content", NULL, 0},
		{"/abs/f", S_IFREG | 06755, "x", NULL, 0},
		{"link", S_IFLNK | 0777, "../somewhere", NULL, 0},
		{"char", S_IFCHR | 0600, NULL, NULL, 0},
		{"pipe", S_IFIFO | 0600, NULL, NULL, 0},
		{"d", DIR_, NULL, NULL, 0},
		{"empty", REG, NULL, NULL, 0},
		{"raw\xff", REG, "r", NULL, 0},
		{.name = NULL},
	};
	struct stat attr;

	assert_int_equal(import_items(false, items), 0);
	assert_string_equal(tree_text(), "abs/ abs/f char d/ d/f empty link pipe raw\xff");
	assert_string_equal(content_text("/d/f"), "content");
	assert_string_equal(attr_text("/d/f", "user.first"), "c");
	attr = stat_of("/");
	assert_int_equal(attr.st_mode, S_IFDIR | 0711);
	attr = stat_of("/d");
	assert_int_equal(attr.st_mode, DIR_);
	attr = stat_of("/abs/f");
	assert_int_equal(attr.st_mode, S_IFREG | 06755);
	assert_int_equal(attr.st_uid, 7);
	assert_int_equal(attr.st_mtim.tv_sec, 1000);
	assert_int_equal(attr.st_mtim.tv_nsec, 5);
	assert_int_equal(stat_of("/char").st_rdev, makedev(5, 1));
	assert_int_equal(stat_of("/link").st_size, 12);
	assert_int_equal(stat_of("/empty").st_size, 0);
}

static void the_last_of_a_name_counts(void **state PFS_UNUSED)
{
	static const struct item items[] = {
		{"f", REG, "a", NULL, 150000},
		{"f", REG, "short", NULL, 0},
		{"gone", REG, "with an attribute", NULL, 0},
		{"gone", REG, NULL, NULL, 0},
		{"file-dir", REG, "x", NULL, 0},
		{"file-dir", DIR_, NULL, NULL, 0},
		{"file-dir/in", REG, "in", NULL, 0},
		{"dir-file", DIR_, NULL, NULL, 0},
		{"dir-file", REG, "now a file", NULL, 0},
		{"file-link", REG, "x", NULL, 0},
		{"file-link", S_IFLNK | 0777, "t", NULL, 0},
		{"link-file", S_IFLNK | 0777, "t", NULL, 0},
		{"link-file", REG, "file", NULL, 0},
		{.name = NULL},
	};

	assert_int_equal(import_items(false, items), 0);
	assert_string_equal(tree_text(),
			    "dir-file f file-dir/ file-dir/in file-link gone link-file");
	assert_string_equal(content_text("/f"), "short");
	assert_int_equal(stat_of("/f").st_blocks, 8);
	assert_string_equal(attr_text("/f", "user.first"), "s");
	assert_string_equal(content_text("/gone"), "");
	assert_string_equal(attr_text("/gone", "user.first"), "-");
	assert_string_equal(content_text("/dir-file"), "now a file");
	assert_true(S_ISLNK(stat_of("/file-link").st_mode));
	assert_string_equal(content_text("/link-file"), "file");
}

/* How many names the file has, of which these are two. */
static unsigned names_of(const char *path, const char *other)
{
	struct pfs_tree *tree = open_tree();
	uint32_t slot[2];
	uint64_t ino;
	unsigned n;

	assert_int_equal(pfs_tree_resolve(tree, &ino, path), 0);
	slot[0] = pfs_image_slot(tree, ino);
	assert_int_equal(pfs_tree_resolve(tree, &ino, other), 0);
	slot[1] = pfs_image_slot(tree, ino);
	assert_int_equal(pfs_hard_link_of(tree, slot[0]), pfs_hard_link_of(tree, slot[1]));
	n = pfs_hard_link_names(tree, slot[0], NULL);
	(void)pfs_tree_close(tree);
	return n;
}

static void hard_links_are_copies(void **state PFS_UNUSED)
{
	static const struct item items[] = {
		{"a", REG, "a", NULL, 100000},
		{"b", REG, NULL, "a", 0},
		{"c", REG, NULL, "./b", 0}, /* of a, in truth */
		{"a", REG, "new", NULL, 0}, /* theirs is the old one */
		{"d", REG, NULL, "a", 0},
		{"e", REG, NULL, "b", 0},
		{"b", REG, "b itself", NULL, 0},
		{"none", REG, NULL, NULL, 0},
		{"f", REG, NULL, "none", 0},
		{"a", REG, NULL, "a", 0},
		{.name = NULL},
	};

	assert_int_equal(import_items(false, items), 0);
	assert_string_equal(tree_text(), "a b c d e f none");
	assert_string_equal(content_text("/a"), "new");
	assert_string_equal(content_text("/b"), "b itself");
	assert_int_equal(stat_of("/c").st_size, 100000);
	assert_int_equal(stat_of("/c").st_blocks, stat_of("/e").st_blocks);
	assert_int_equal(content_text("/c")[4000], 'a');
	assert_string_equal(content_text("/d"), "new");
	assert_int_equal(stat_of("/e").st_size, 100000);
	assert_int_equal(stat_of("/f").st_size, 0);
	assert_int_equal(names_of("/a", "/d"), 2);
	assert_int_equal(names_of("/c", "/e"), 2);
	assert_int_equal(names_of("/f", "/none"), 2);
	assert_int_equal(names_of("/b", "/b"), 1);
	/* an archive has a file's attributes with the first of its names alone */
	assert_string_equal(attr_text("/a", "user.first"), "n");
	assert_string_equal(attr_text("/b", "user.first"), "b");
	assert_string_equal(attr_text("/c", "user.first"), "a");
	assert_string_equal(attr_text("/d", "user.first"), "n");
	assert_string_equal(attr_text("/e", "user.first"), "a");
	assert_string_equal(attr_text("/f", "user.first"), "-");
}

static void wrong_entries_are_named(void **state PFS_UNUSED)
{
	char longest[300];
	const struct item items[] = {
		{"ok", REG, "1", NULL, 0},
		{"a/../../evil", REG, "2", NULL, 0},
		{"hard", REG, NULL, "nowhere", 0},
		{"ok/below", REG, "3", NULL, 0},
		{longest, REG, "4", NULL, 0},
		{"dir/in", REG, "5", NULL, 0},
		{"dir", REG, "6", NULL, 0},
		{"last", REG, "7", NULL, 0},
		{.name = NULL},
	};

	(void)snprintf(longest, sizeof(longest), "%0256d", 0);
	assert_int_equal(import_items(false, items), 3);
	assert_non_null(strstr(said, "memory: entry 'a/../../evil': "));
	assert_int_equal(access(test_path, F_OK), -1);
	assert_int_equal(import_items(true, items), 1);
	assert_string_equal(tree_text(), "dir/ dir/in last ok");
	assert_non_null(strstr(said, "entry 'hard': "));
	assert_non_null(strstr(said, "entry 'ok/below': "));
	assert_non_null(strstr(said, "entry 'dir': "));
	assert_non_null(strstr(said, "longer than 255"));
}

/* In this cpio the content of a file with several names comes with the last of them. */
static void content_may_come_with_the_last_link(void **state PFS_UNUSED)
{
	const struct pfs_import_options options = {.format = &pfs_import_tar};
	struct archive *archive = archive_write_new();
	static const char *const names[] = {"one", "two", "three"};
	size_t i;

	bytes = realloc(bytes, SIZE_MAX_TAR);
	assert_int_equal(archive_write_set_format_cpio_newc(archive), ARCHIVE_OK);
	assert_int_equal(archive_write_open_memory(archive, bytes, SIZE_MAX_TAR, &size),
			 ARCHIVE_OK);
	for (i = 0; i < 3; i++) {
		struct archive_entry *entry = archive_entry_new();

		archive_entry_copy_pathname(entry, names[i]);
		archive_entry_set_mode(entry, REG);
		archive_entry_set_nlink(entry, 3);
		archive_entry_set_ino(entry, 77);
		archive_entry_set_dev(entry, 1);
		archive_entry_set_size(entry, i == 2 ? 7 : 0);
		assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
		if (i == 2)
			assert_int_equal(archive_write_data(archive, "content", 7), 7);
		archive_entry_free(entry);
	}
	assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
	assert_int_equal(run_import(&options, bytes, size), 0);
	for (i = 0; i < 3; i++) {
		char path[16];

		(void)snprintf(path, sizeof(path), "/%s", names[i]);
		assert_string_equal(content_text(path), "content");
	}
	(void)tree_text();
}

static void holes_stay_holes(void **state PFS_UNUSED)
{
	const struct pfs_import_options options = {.format = &pfs_import_tar};
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	const size_t length = 1000000;
	char *content = calloc(1, length);
	struct pfs_tree *tree;
	uint64_t ino;
	int i;

	bytes = realloc(bytes, SIZE_MAX_TAR);
	assert_int_equal(archive_write_set_format_pax(archive), ARCHIVE_OK);
	assert_int_equal(archive_write_open_memory(archive, bytes, SIZE_MAX_TAR, &size),
			 ARCHIVE_OK);
	archive_entry_copy_pathname(entry, "holey");
	archive_entry_set_mode(entry, REG);
	archive_entry_set_size(entry, (la_int64_t)length);
	archive_entry_sparse_add_entry(entry, 500000, 10);
	for (i = 0; i < 10; i++)
		content[500000 + i] = (char)('0' + i);
	assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
	assert_int_equal(archive_write_data(archive, content, length), length);
	archive_entry_free(entry);
	assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
	free(content);
	assert_true(size < 100000);
	assert_int_equal(run_import(&options, bytes, size), 0);
	assert_int_equal(stat_of("/holey").st_size, length);
	assert_true(stat_of("/holey").st_blocks <= 128);
	tree = open_tree();
	assert_int_equal(pfs_tree_resolve(tree, &ino, "/holey"), 0);
	assert_int_equal(pfs_tree_seek(tree, ino, 0, SEEK_DATA), 500000 / 65536 * 65536);
	assert_int_equal(pfs_tree_seek(tree, ino, 500010, SEEK_DATA), -ENXIO);
	content = malloc(16);
	assert_int_equal(pfs_tree_read(tree, content, 12, ino, 499999, 0), 12);
	assert_memory_equal(content,
			    "\0"
			    "0123456789\0",
			    12);
	free(content);
	(void)pfs_tree_close(tree);
}

static void cut_archives_leave_nothing(void **state PFS_UNUSED)
{
	static const struct item items[] = {
		{"a", REG, "a", NULL, 3000}, {"b", REG, "b", NULL, 3000}, {.name = NULL}};
	const struct pfs_import_options options = {.format = &pfs_import_tar, .skip = true};
	size_t cut;

	write_archive(archive_write_set_format_gnutar, items);
	for (cut = 100; cut < 7000; cut += 700) {
		assert_int_equal(run_import(&options, bytes, cut), 3);
		assert_int_equal(access(test_path, F_OK), -1);
	}
}

static void a_damaged_header_is_one_problem(void **state PFS_UNUSED)
{
	static const struct item items[] = {
		{"before", REG, "1", NULL, 0},
		{"damaged", REG, "2", NULL, 2000},
		{"after", REG, "3", NULL, 0},
		{.name = NULL},
	};
	struct pfs_import_options options = {.format = &pfs_import_tar};

	write_archive(archive_write_set_format_ustar, items);
	bytes[1024 + 5] ^= 1; /* behind a header and a block of content */
	assert_int_equal(run_import(&options, bytes, size), 3);
	assert_non_null(strstr(said, "memory: Damaged tar archive"));
	options.skip = true;
	assert_int_equal(run_import(&options, bytes, size), 1);
	assert_int_equal(strlen(said) - 1, strcspn(said, "\n"));
	assert_string_equal(tree_text(), "after before");
}

static void archives_are_recognised(void **state PFS_UNUSED)
{
	static const struct item items[] = {{"a", REG, "content", NULL, 0}, {.name = NULL}};
	static const char list[] = "usr/bin/ls\nusr/bin/cat\n", mtree[] = "#mtree\na type=file\n";

	write_archive(archive_write_set_format_pax, items);
	assert_true(pfs_looks_like_archive(bytes, size));
	write_archive(archive_write_set_format_zip, items);
	assert_true(pfs_looks_like_archive(bytes, size));
	write_archive(archive_write_set_format_cpio_newc, items);
	assert_true(pfs_looks_like_archive(bytes, size));
	assert_false(pfs_looks_like_archive(list, sizeof(list) - 1));
	assert_false(pfs_looks_like_archive(mtree, sizeof(mtree) - 1));
	assert_false(pfs_looks_like_archive("PK", 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_become_nodes),
		cmocka_unit_test(acls_grant_no_more),
		cmocka_unit_test(the_last_of_a_name_counts),
		cmocka_unit_test(hard_links_are_copies),
		cmocka_unit_test(wrong_entries_are_named),
		cmocka_unit_test(content_may_come_with_the_last_link),
		cmocka_unit_test(holes_stay_holes),
		cmocka_unit_test(cut_archives_leave_nothing),
		cmocka_unit_test(a_damaged_header_is_one_problem),
		cmocka_unit_test(archives_are_recognised),
	};
	int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);

	free(bytes);
	return failed;
}

#else

static void without_libarchive_it_says_so(void **state PFS_UNUSED)
{
	const struct pfs_import_options options = {.format = &pfs_import_tar};

	assert_int_equal(import_text(&options, "anything"), 3);
	assert_non_null(strstr(said, "built without libarchive"));
	assert_true(pfs_looks_like_archive("PK\3\4\24", 5));
	assert_true(pfs_looks_like_archive("\x1f\x8b\10\0\0", 5));
	assert_false(pfs_looks_like_archive("a/b\nc/d\n", 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(without_libarchive_it_says_so)};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

#endif
