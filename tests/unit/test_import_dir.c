/* SPDX-License-Identifier: MIT */
/* Directories: every entry once whatever the threads do, deeper than a path can say, holes, the
 * store inside its own source. */
#include "tests/unit/import_util.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/xattr.h>

#include "tools/import/crawl.h"

static char source[160];

static int make_source(void **state)
{
	if (make_folder(state) != 0)
		return -1;
	(void)snprintf(source, sizeof(source), "%s/source", test_folder);
	return 0;
}

static int clean(void **state PFS_UNUSED)
{
	char command[1024];

	(void)snprintf(command, sizeof(command), "rm -rf %s %s; mkdir %s", source, test_path,
		       source);
	return system(command); /* NOLINT(cert-env33-c): our own temporary folder */
}

static int import_source(enum pfs_import_content content, const char *store)
{
	struct pfs_import import = {
		.options = {.format = &pfs_import_dir,
			    .source = source,
			    .store = store,
			    .content = content,
			    .quiet = true},
		.input = {.fd = -1, .kept_fd = -1},
		.say = keep_message,
	};

	said[0] = 0;
	return pfs_import_run(&import);
}

static void put(const char *name, const void *content, size_t size, off_t at)
{
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", source, name);
	fd = open(path, O_WRONLY | O_CREAT, 0640);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, content, size, at), size);
	(void)close(fd);
}

static void make_dir(const char *name)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", source, name);
	assert_int_equal(mkdir(path, 0750), 0);
}

/* Directories below one another, the innermost with a file, far beyond PATH_MAX. */
static void deeper_than_a_path(void **state PFS_UNUSED)
{
	const unsigned depth = 60;
	char name[PFS_NAME_MAX + 1], *long_path = malloc((size_t)depth * 256 + 16);
	int old = open(".", O_RDONLY | O_DIRECTORY);
	struct pfs_tree_info info;
	struct pfs_tree *tree;
	unsigned i;
	int fd;

	(void)memset(name, 'd', PFS_NAME_MAX);
	name[PFS_NAME_MAX] = 0;
	assert_int_equal(chdir(source), 0);
	for (i = 0; i < depth; i++) {
		assert_int_equal(mkdir(name, 0755), 0);
		assert_int_equal(chdir(name), 0);
		(void)sprintf(long_path + (size_t)i * 256, "/%s", name);
	}
	fd = open("file", O_WRONLY | O_CREAT, 0644);
	assert_int_equal(write(fd, "deep", 4), 4);
	(void)close(fd);
	(void)strcpy(long_path + (size_t)depth * 256, "/file"); /* NOLINT: it fits */
	assert_int_equal(fchdir(old), 0);
	(void)close(old);

	assert_int_equal(import_source(PFS_CONTENT_COPY, test_path), 0);
	tree = open_tree();
	assert_int_equal(pfs_tree_info(tree, &info), 0);
	assert_int_equal(info.nodes, depth + 2);
	assert_int_equal(info.max_depth, depth + 1);
	(void)pfs_tree_close(tree);
	assert_string_equal(content_text(long_path), "deep");
	(void)unlink(test_path);
	/* nobody could open it by its path: so it is not linked, and that is said */
	assert_int_equal(import_source(PFS_CONTENT_LINK, test_path), 1);
	assert_non_null(strstr(said, "too long"));
	free(long_path);
}

/* Each with a sibling, which is opened from far away. */
static void deep_directories_with_siblings(void **state PFS_UNUSED)
{
	const unsigned depth = 1500;
	int old = open(".", O_RDONLY | O_DIRECTORY);
	struct pfs_tree_info info;
	struct pfs_tree *tree;
	unsigned i;

	assert_int_equal(chdir(source), 0);
	for (i = 0; i < depth; i++) {
		int fd;

		assert_int_equal(mkdir("sibling", 0755), 0);
		assert_int_equal(mkdir("deeper", 0755), 0);
		fd = open("sibling/file", O_WRONLY | O_CREAT, 0644);
		assert_int_equal(write(fd, &i, sizeof(i)), sizeof(i));
		(void)close(fd);
		assert_int_equal(chdir("deeper"), 0);
	}
	assert_int_equal(fchdir(old), 0);
	(void)close(old);

	assert_int_equal(import_source(PFS_CONTENT_COPY, test_path), 0);
	assert_string_equal(said, "");
	tree = open_tree();
	assert_int_equal(pfs_tree_info(tree, &info), 0);
	assert_int_equal(info.directories, 2 * depth + 1);
	assert_int_equal(info.files, depth);
	assert_int_equal(info.bytes, depth * sizeof(i));
	assert_int_equal(info.max_depth, depth + 1);
	(void)pfs_tree_close(tree);
}

static void holes_and_attributes_are_kept(void **state PFS_UNUSED)
{
	char path[512], byte = 'x', content[PFS_CHUNK_SIZE + 1];
	struct pfs_entry entry;
	struct pfs_tree *tree;
	uint64_t ino;

	put("holey", &byte, 1, 5000000);
	put("holey", &byte, 1, 300000);
	put("hole", "", 0, 0);
	(void)snprintf(path, sizeof(path), "%s/hole", source);
	assert_int_equal(truncate(path, 1000000), 0);
	(void)memset(content, 'c', sizeof(content));
	put("chunk", content, PFS_CHUNK_SIZE, 0);
	put("more", content, PFS_CHUNK_SIZE + 1, 0);
	assert_int_equal(setxattr(source, "user.root", "r", 1, 0), 0);
	assert_int_equal(setxattr(path, "user.bytes", "\0\xff", 2, 0), 0);
	assert_int_equal(import_source(PFS_CONTENT_COPY, test_path), 0);
	assert_string_equal(tree_text(), "chunk hole holey more");
	assert_string_equal(attr_text("/", "user.root"), "r");
	assert_string_equal(attr_text("/chunk", "user.root"), "-");
	tree = open_tree();
	assert_int_equal(pfs_tree_resolve(tree, &ino, "/holey"), 0);
	assert_int_equal(pfs_tree_getattr(tree, &entry, ino), 0);
	assert_int_equal(entry.attr.st_size, 5000001);
	assert_true(entry.attr.st_blocks <= 3 * 128);
	assert_int_equal(pfs_tree_seek(tree, ino, 0, SEEK_DATA), 300000 / 65536 * 65536);
	assert_int_equal(pfs_tree_read(tree, content, 3, ino, 299999, 0), 3);
	assert_memory_equal(content, "\0x\0", 3);
	assert_int_equal(pfs_tree_resolve(tree, &ino, "/hole"), 0);
	assert_int_equal(pfs_tree_getattr(tree, &entry, ino), 0);
	assert_int_equal(entry.attr.st_size, 1000000);
	assert_int_equal(entry.attr.st_blocks, 0);
	assert_int_equal(pfs_tree_getxattr(tree, content, 8, ino, "user.bytes"), 2);
	assert_memory_equal(content, "\0\xff", 2);
	(void)pfs_tree_close(tree);
}

/* More names than usual, so that the list of them is long. */
static void many_attributes_are_kept(void **state PFS_UNUSED)
{
	char path[512], name[64];

	put("many", "x", 1, 0);
	(void)snprintf(path, sizeof(path), "%s/many", source);
	for (unsigned i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "user.attribute_number_%u", i);
		assert_int_equal(setxattr(path, name, "value", 5, 0), 0);
		assert_int_equal(setxattr(source, name, "above", 5, 0), 0);
	}
	assert_int_equal(import_source(PFS_CONTENT_COPY, test_path), 0);
	for (unsigned i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "user.attribute_number_%u", i);
		assert_string_equal(attr_text("/many", name), "value");
		assert_string_equal(attr_text("/", name), "above");
	}
}

static void the_store_is_not_its_own_content(void **state PFS_UNUSED)
{
	char store[256];

	put("a", "1", 1, 0);
	put("store.pfs.part-99999999", "2", 1, 0);
	put("store.pfsx", "3", 1, 0);
	(void)snprintf(store, sizeof(store), "%s/store.pfs", source);
	assert_int_equal(import_source(PFS_CONTENT_COPY, store), 0);
	assert_int_equal(rename(store, test_path), 0);
	assert_string_equal(tree_text(), "a store.pfsx");
}

static void nodes_have_their_sources(void **state PFS_UNUSED)
{
	char path[PATH_MAX];
	struct pfs_source_record record;
	struct pfs_store *store;
	struct pfs_tree *tree;
	struct stat attr;
	uint64_t ino;

	make_dir("d");
	make_dir(".query");
	put("d/file", "linked", 6, 0);
	put(".query/file", "there too", 9, 0);
	assert_int_equal(import_source(PFS_CONTENT_LINK, test_path), 0);
	assert_string_equal(tree_text(), ".query~/ .query~/file d/ d/file");
	assert_string_equal(content_text("/d/file"), "linked");
	assert_string_equal(content_text("/.query~/file"), "there too");
	tree = open_tree();
	assert_int_equal(pfs_tree_resolve(tree, &ino, "/d/file"), 0);
	(void)pfs_tree_close(tree);
	(void)snprintf(path, sizeof(path), "%s/d/file", source);
	assert_int_equal(stat(path, &attr), 0);
	store = open_as(PFS_STORE_READ_ONLY);
	assert_int_equal(pfs_store_get_source(store, &record, path, ino), 0);
	assert_int_equal(record.path_len, 6);
	assert_memory_equal(record.path, "d/file", 6);
	assert_int_equal(record.dev, attr.st_dev);
	assert_int_equal(record.ino, attr.st_ino);
	assert_int_equal(record.size, 6);
	assert_int_equal(record.ctime.nsec, attr.st_ctim.tv_nsec);
	assert_int_equal(pfs_store_close(store), 0);
}

static int add_source(const char *at)
{
	struct pfs_import import = {
		.options = {.format = &pfs_import_dir,
			    .source = source,
			    .store = test_path,
			    .at = at,
			    .content = PFS_CONTENT_COPY,
			    .quiet = true},
		.input = {.fd = -1, .kept_fd = -1},
		.say = keep_message,
	};

	said[0] = 0;
	return pfs_import_run(&import);
}

static void what_lies_in_what_is_left_out_is_too(void **state PFS_UNUSED)
{
	assert_int_equal(import_text(&(struct pfs_import_options){.format = &pfs_import_paths},
				     "a\nd/old\n"),
			 0);
	make_dir("a");
	make_dir("a/b");
	make_dir("a/b/c");
	put("a/b/file", "1", 1, 0);
	put("a/b/c/file", "1", 1, 0);
	make_dir("d");
	put("d/new", "2", 1, 0);
	assert_int_equal(add_source("/"), 1);
	assert_non_null(strstr(said, "/a: is in the store already"));
	assert_null(strstr(said, "/b"));
	assert_string_equal(tree_text(), "a d/ d/new d/old");
}

static void both_names_of_query(void **state PFS_UNUSED)
{
	make_dir(".query");
	make_dir(".query/in");
	put(".query/in/file", "1", 1, 0);
	make_dir(".query~");
	make_dir(".query~/in");
	put(".query~/in/file~", "2", 1, 0);
	assert_int_equal(import_source(PFS_CONTENT_COPY, test_path), 1);
	assert_non_null(strstr(said, ".query is stored as .query~, and both are there"));
	if (strstr(tree_text(), "file~"))
		assert_string_equal(tree_text(), ".query~/ .query~/in/ .query~/in/file~");
	else
		assert_string_equal(tree_text(), ".query~/ .query~/in/ .query~/in/file");
}

static void without_content_it_is_nodata(void **state PFS_UNUSED)
{
	struct pfs_entry entry;
	struct pfs_tree *tree;
	uint64_t ino;
	char byte;

	put("f", "12345", 5, 0);
	assert_int_equal(import_source(PFS_CONTENT_NONE, test_path), 0);
	tree = open_tree();
	assert_int_equal(pfs_tree_resolve(tree, &ino, "/f"), 0);
	assert_int_equal(pfs_tree_getattr(tree, &entry, ino), 0);
	assert_int_equal(entry.attr.st_size, 5);
	assert_int_equal(entry.attr.st_mode, S_IFREG | 0640);
	assert_int_equal(pfs_tree_read(tree, &byte, 1, ino, 0, 0), -ENODATA);
	(void)pfs_tree_close(tree);
}

/* ---- the crawl itself ---- */

static int no_problem(void *arg PFS_UNUSED, const char *path, const char *what)
{
	fail_msg("%s: %s", path, what);
	return 0;
}

#define WIDE  40
#define FILES 70

static void make_wide(void)
{
	char name[64];
	unsigned i, j, k;

	for (i = 0; i < WIDE; i++) {
		(void)snprintf(name, sizeof(name), "d%u", i);
		make_dir(name);
		for (j = 0; j < i % 4; j++) {
			(void)snprintf(name, sizeof(name), "d%u/s%u", i, j);
			make_dir(name);
			for (k = 0; k < FILES; k++) {
				(void)snprintf(name, sizeof(name), "d%u/s%u/f%u", i, j, k);
				put(name, name, strlen(name), 0);
			}
		}
	}
}

static void every_entry_comes_once(void **state PFS_UNUSED)
{
	const unsigned dirs = 1 + WIDE + WIDE / 4 * (1 + 2 + 3),
		       files = FILES * WIDE / 4 * (1 + 2 + 3);
	unsigned threads;

	make_wide();
	for (threads = 1; threads <= 8; threads++) {
		const struct pfs_crawl_options options = {
			.root = source, .content = true, .threads = threads, .problem = no_problem};
		unsigned n_dirs = 0, n_files = 0, n_chunks = 0, n_contents = 0;
		struct pfs_crawl_message *message;
		struct pfs_crawl *crawl;
		uint32_t node = 0;
		size_t i;

		assert_int_equal(pfs_crawl_open(&crawl, &options), 0);
		while ((message = pfs_crawl_next(crawl)) != NULL) {
			for (i = 0;
			     message->kind == PFS_CRAWL_ENTRIES && i < message->batch->n_entries;
			     i++) {
				struct pfs_crawl_entry *entry = &message->batch->entries[i];

				/* directories come before what lies in them */
				assert_true(!entry->parent || entry->parent->node > 0);
				entry->node = ++node;
				if (entry->dir)
					entry->dir->node = entry->node;
				n_dirs += S_ISDIR(entry->attr.st_mode);
				n_files += S_ISREG(entry->attr.st_mode);
			}
			if (message->kind == PFS_CRAWL_CHUNK) {
				const char *name = message->batch->bytes + message->entry->name;

				assert_true(message->entry->node > 0);
				assert_int_equal(message->n, 0);
				assert_memory_equal(message->data + message->len -
							    message->entry->name_len,
						    name, message->entry->name_len);
				n_chunks++;
			}
			n_contents += message->kind == PFS_CRAWL_CONTENT && message->readable &&
				      !message->changed;
		}
		assert_int_equal(pfs_crawl_error(crawl), 0);
		pfs_crawl_close(crawl);
		assert_int_equal(n_dirs, dirs);
		assert_int_equal(n_files, files);
		assert_int_equal(n_chunks, files);
		assert_int_equal(n_contents, files);
	}
}

static void a_crawl_can_be_left_at_any_point(void **state PFS_UNUSED)
{
	unsigned stop;

	make_wide();
	for (stop = 0; stop < 60; stop += 3) {
		const struct pfs_crawl_options options = {
			.root = source, .content = stop & 1, .threads = 3, .problem = no_problem};
		struct pfs_crawl *crawl;
		unsigned i;

		assert_int_equal(pfs_crawl_open(&crawl, &options), 0);
		for (i = 0; i < stop && pfs_crawl_next(crawl); i++)
			;
		pfs_crawl_close(crawl);
	}
}

static int stop_at_once(void *arg, const char *path PFS_UNUSED, const char *what PFS_UNUSED)
{
	__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
	return -ECANCELED;
}

static void a_problem_can_end_it(void **state PFS_UNUSED)
{
	int told = 0;
	const struct pfs_crawl_options options = {
		.root = source, .threads = 2, .problem = stop_at_once, .arg = &told};
	struct pfs_crawl *crawl;
	char path[512];

	if (geteuid() == 0)
		skip();
	make_dir("closed");
	(void)snprintf(path, sizeof(path), "%s/closed", source);
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(pfs_crawl_open(&crawl, &options), 0);
	while (pfs_crawl_next(crawl))
		;
	assert_int_equal(pfs_crawl_error(crawl), -ECANCELED);
	pfs_crawl_close(crawl);
	assert_int_equal(told, 1);
	assert_int_equal(chmod(path, 0700), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup(function, clean)
	const struct CMUnitTest tests[] = {
		TEST(deeper_than_a_path),
		TEST(deep_directories_with_siblings),
		TEST(holes_and_attributes_are_kept),
		TEST(many_attributes_are_kept),
		TEST(the_store_is_not_its_own_content),
		TEST(nodes_have_their_sources),
		TEST(what_lies_in_what_is_left_out_is_too),
		TEST(both_names_of_query),
		TEST(without_content_it_is_nodata),
		TEST(every_entry_comes_once),
		TEST(a_crawl_can_be_left_at_any_point),
		TEST(a_problem_can_end_it),
	};

	return cmocka_run_group_tests(tests, make_source, remove_folder);
}
