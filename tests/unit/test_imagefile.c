/* SPDX-License-Identifier: MIT */
/* The image file: what is answered with it is what is answered without; another store's or another
 * user's is as if there were none.  PFS_LONG=1: more rounds.  PFS_SEED=N: another run. */
#include "tests/unit/imagefile_util.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void answers_are_the_same(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;

	temp_store_create(&temp);
	tree = temp_tree_open(&temp);
	tree_model_start(tree, seed);
	for (unsigned round = 0; round < (is_long ? 200 : 20); round++) {
		for (unsigned i = 0; i < 300; i++)
			tree_model_step();
		assert_int_equal(tree_model_state_of(tree), tree_model_state());
		temp_tree_close(tree);
		assert_true(check_file(&temp) || !round);
		if (round % 4 == 0)
			write_file(&temp);
		assert_true(check_file(&temp));
		tree = temp_tree_open(&temp);
		assert_true(tree->image.from_file);
		tree_model_reopened(tree);
	}
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
}

static void what_few_have_is_there(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;

	make_store(&temp, 50);
	tree = temp_tree_open(&temp);
	assert_true(tree->image.from_file);
	add_rare(tree, 1);
	temp_tree_close(tree);
	assert_true(check_file(&temp));
	write_file(&temp);
	assert_true(check_file(&temp));
	temp_store_remove(&temp);
}

/* ---- a system that does not let us wait for who touches memory ---- */

static int forbid(long number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {PFS_COUNT(code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void use_whole(const struct temp_store *temp)
{
	if (forbid(SYS_userfaultfd))
		_exit(77);
	assert_false(pfs_lazy_is_possible());
	assert_true(check_file(temp));
	bytes[size / 2] ^= 1;
	put_bytes(temp, size);
	assert_false(check_file(temp)); /* all is looked at while the rows can be loaded instead */
	_exit(0);
}

static void without_help_all_is_read(void **state PFS_UNUSED)
{
	struct temp_store temp;
	pid_t child;
	int status;

	make_large_store(&temp);
	take_bytes(&temp);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		use_whole(&temp);
	assert_int_equal(waitpid(child, &status, 0), child);
	temp_store_remove(&temp);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* ---- somebody else's ---- */

static void copies_are_told_apart(void **state PFS_UNUSED)
{
	struct temp_store ours, theirs;
	struct temp_store *both[] = {&ours, &theirs};

	make_store(&ours, 200);
	temp_store_copy(&ours, &theirs);
	take_bytes(&ours);
	put_bytes(&theirs, size);
	assert_true(check_file(&theirs));
	for (unsigned i = 0; i < 2; i++) {
		struct pfs_tree *tree = temp_tree_open(both[i]);

		add_rare(tree, 1 + i);
		temp_tree_close(tree);
		assert_true(check_file(both[i]));
		write_file(both[i]);
		assert_true(check_file(both[i]));
	}
	take_bytes(&ours);
	put_bytes(&theirs, size);
	assert_false(check_file(&theirs));
	temp_store_remove(&ours);
	temp_store_remove(&theirs);
}

static void only_the_owners_is_used(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct stat attr;
	char other[160];

	make_store(&temp, 50);
	assert_int_equal(stat(file_of(&temp), &attr), 0);
	assert_int_equal(attr.st_mode & 0777, 0600);
	assert_int_equal(chmod(file_of(&temp), 0620), 0);
	assert_false(check_file(&temp));
	assert_int_equal(chmod(file_of(&temp), 0602), 0);
	assert_false(check_file(&temp));
	assert_int_equal(chmod(file_of(&temp), 0644), 0);
	assert_true(check_file(&temp));
	if (geteuid() == 0) {
		assert_int_equal(chown(file_of(&temp), 65534, 0), 0);
		assert_false(check_file(&temp));
		assert_int_equal(chown(file_of(&temp), 0, 0), 0);
	}
	(void)snprintf(other, sizeof(other), "%s.moved", file_of(&temp));
	assert_int_equal(rename(file_of(&temp), other), 0);
	assert_int_equal(symlink(other, file_of(&temp)), 0);
	assert_false(check_file(&temp));
	assert_int_equal(unlink(file_of(&temp)), 0);
	assert_int_equal(mkfifo(file_of(&temp), 0600), 0);
	assert_false(check_file(&temp));
	assert_int_equal(unlink(file_of(&temp)), 0);
	write_file(&temp);
	assert_true(check_file(&temp));
	assert_int_equal(unlink(other), 0);
	temp_store_remove(&temp);
}

/* A file of somebody's that only has the name, of the finished or of the unfinished one. */
static void no_other_file_is_lost(void **state PFS_UNUSED)
{
	static const char words[] = "these words are nobody's image file";
	struct temp_store temp;
	char name[160];

	for (unsigned part = 0; part < 2; part++) {
		struct pfs_tree *tree;
		char found[sizeof(words)];
		FILE *file;

		make_store(&temp, 50);
		(void)snprintf(name, sizeof(name), "%s%s", file_of(&temp), part ? ".part" : "");
		file = fopen(name, "we");
		assert_non_null(file);
		assert_int_equal(fwrite(words, 1, sizeof(words), file), sizeof(words));
		assert_int_equal(fclose(file), 0);
		tree = open_rows(&temp);
		assert_int_equal(pfs_imagefile_write(tree), -EPERM);
		temp_tree_close(tree);
		file = fopen(name, "re");
		assert_non_null(file);
		assert_int_equal(fread(found, 1, sizeof(found), file), sizeof(words));
		assert_int_equal(fclose(file), 0);
		assert_memory_equal(found, words, sizeof(words));
		temp_store_remove(&temp);
	}
}

/* Names that no store has, with right checksums. */
static void bad_names_are_refused(void **state PFS_UNUSED)
{
	static const char *const bad[] = {"/", ".", "..", "a/b", "../../../escaped", "12345678/",
					  "1234567/"};
	struct pfs_image_layout layout;
	struct temp_store temp;

	for (size_t i = 0; i < PFS_COUNT(bad); i++) {
		const size_t len = strlen(bad[i]);
		char good[32] = "", *at;
		struct pfs_entry entry;
		struct pfs_tree *tree;

		make_store(&temp, 10);
		tree = temp_tree_open(&temp);
		memset(good, 'z', len);
		good[0] = 'q';
		assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, good, S_IFREG | 0600,
					       0, &temp_root),
				 0);
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
		temp_tree_close(tree);
		write_file(&temp);
		take_bytes(&temp);
		pfs_imagefile_layout(&layout, (const struct pfs_image_header *)bytes);
		at = memmem(bytes + layout.offset[PFS_SECTION_HEAP], layout.size[PFS_SECTION_HEAP],
			    good, len + 1);
		assert_non_null(at);
		memcpy(at, bad[i], len);
		sum_up();
		put_bytes(&temp, size);
		assert_true(!check_file(&temp) || is_removed(&temp));
		temp_store_remove(&temp);
	}
}

static void the_mode_is_the_stores(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct stat attr;

	make_store(&temp, 50);
	assert_int_equal(chmod(temp.path, 0664), 0);
	write_file(&temp);
	assert_int_equal(stat(file_of(&temp), &attr), 0);
	assert_int_equal(attr.st_mode & 07777, 0644);
	assert_true(check_file(&temp));
	temp_store_remove(&temp);
}

/* ---- killed while it is written ---- */

static void a_kill_leaves_the_old_one(void **state PFS_UNUSED)
{
	struct temp_store temp;
	uint64_t random = seed;

	make_store(&temp, 500);
	for (unsigned i = 0; i < (is_long ? 200 : 10); i++) {
		struct pfs_tree *tree = open_rows(&temp);
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(pfs_imagefile_write(tree) ? 1 : 0);
		(void)usleep(random_below(&random, 3000));
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		temp_tree_close(tree);
		assert_true(check_file(&temp));
	}
	write_file(&temp);
	assert_true(check_file(&temp));
	temp_store_remove(&temp);
}

/* ---- the order of slots ---- */

static uint64_t add_node(struct pfs_tree *tree, uint64_t parent, const char *name, mode_t mode)
{
	uint64_t ino = temp_tree_make(tree, parent, name, mode);

	assert_int_not_equal(ino, 0);
	return ino;
}

static int add_text(void *arg, const char *text, size_t len)
{
	assert_true(strlen(arg) + len < 4096);
	strncat(arg, text, len);
	return 0;
}

static void list_paths(struct pfs_tree *tree, char out[4096])
{
	struct pfs_paths *paths;
	uint64_t row = 0;
	int got;

	*out = '\0';
	assert_int_equal(pfs_paths_open(&paths, tree, PFS_ROOT_PRIME, 0), 0);
	do
		got = pfs_paths_next(paths, &row, add_text, out);
	while (got == 1);
	assert_int_equal(got, 0);
	pfs_paths_close(paths);
}

/* It is known, with so many strays, before anybody looks; -1: it is not. The paths are those of the
 * rows. */
static void check_order(const struct temp_store *temp, int n_strays)
{
	struct pfs_tree *rows = open_rows(temp), *file = open_file(temp);
	char expected[4096], paths[4096];
	const uint32_t *strays;

	assert_true(file->image.from_file);
	assert_int_equal(pfs_slotorder(rows), PFS_ORDER_UNKNOWN);
	assert_int_equal(pfs_slotorder(file),
			 n_strays < 0 ? PFS_ORDER_UNKNOWN : PFS_ORDER_ASCENDING);
	assert_int_equal(pfs_slotorder_strays(file, &strays, 0), PFS_MAX(n_strays, 0));
	list_paths(rows, expected);
	list_paths(file, paths);
	assert_string_equal(paths, expected);
	temp_tree_close(rows);
	temp_tree_close(file);
}

static void the_order_of_slots_is_known(void **state PFS_UNUSED)
{
	struct temp_store temp;
	struct pfs_tree *tree;
	uint64_t a, b;

	temp_store_create(&temp);
	tree = temp_tree_open(&temp);
	a = add_node(tree, PFS_ROOT_PRIME, "a", S_IFDIR | 0755);
	b = add_node(tree, a, "b", S_IFDIR | 0755);
	(void)add_node(tree, b, "c", S_IFREG | 0644);
	(void)add_node(tree, b, "cc", S_IFREG | 0644);
	(void)add_node(tree, a, "b-c", S_IFREG | 0644);
	(void)add_node(tree, PFS_ROOT_PRIME, "z", S_IFREG | 0644);
	temp_tree_close(tree);
	write_file(&temp);
	check_order(&temp, 0);
	/* what comes later is followed, */
	tree = temp_tree_open(&temp);
	(void)add_node(tree, a, "0", S_IFREG | 0644);
	temp_tree_close(tree);
	check_order(&temp, 1);
	/* and is in the next file, made of what is known; rows say nothing of it */
	tree = open_file(&temp);
	assert_int_equal(pfs_imagefile_write(tree), 0);
	temp_tree_close(tree);
	check_order(&temp, 1);
	tree = temp_tree_open(&temp);
	(void)add_node(tree, b, "1", S_IFREG | 0644);
	assert_int_equal(pfs_tree_unlink(tree, a, "0"), 0);
	temp_tree_close(tree);
	check_order(&temp, 2);
	/* a directory that moves takes the order of others with it */
	tree = temp_tree_open(&temp);
	assert_int_equal(pfs_tree_rename(tree, PFS_ROOT_PRIME, "a", PFS_ROOT_PRIME, "zz", 0), 0);
	temp_tree_close(tree);
	check_order(&temp, -1);
	write_file(&temp);
	check_order(&temp, -1);
	temp_store_remove(&temp);
}

static unsigned count_known(const struct pfs_image_known *known, size_t pieces)
{
	unsigned n = 0;

	for (size_t i = 0; i < pieces; i++)
		n += known->pieces[i] != 0;
	return n;
}

/* What an open store takes does not grow with it: what is kept for each leaf of the index is read
 * when it is needed, and a mount looks at no node to see that nothing is linked. */
static void opening_touches_little(void **state PFS_UNUSED)
{
	const struct pfs_image_file *file;
	struct temp_store temp;
	struct pfs_tree *tree;
	char why[256];

	if (!pfs_lazy_is_possible())
		skip();
	make_large_store(&temp);
	tree = open_file(&temp);
	file = tree->image.file;
	assert_true(tree->image.from_file);
	assert_false(pfs_tree_links_refused(tree, why, sizeof(why)));
	assert_true(pfs_lazy_is_absent(file->lazy_parts[PFS_SECTION_FLAGS], 0));
	assert_true(file->layout.n_inners > 1);
	assert_int_equal(count_known(&file->firsts, file->layout.n_inners), 0);
	assert_true(pfs_lazy_is_absent(file->lazy_parts[PFS_SECTION_INNERS], 0));
	assert_int_equal(pfs_btree_verify(tree->image.by_name), 0);
	assert_int_equal(count_known(&file->firsts, file->layout.n_inners), file->layout.n_inners);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* A node's attributes are read without a block of their columns being filled, the first time. */
static void looking_once_fills_little(void **state PFS_UNUSED)
{
	static const unsigned columns[] = {PFS_SECTION_SIZE,  PFS_SECTION_UID,	 PFS_SECTION_ATIME,
					   PFS_SECTION_MTIME, PFS_SECTION_CTIME, PFS_SECTION_LINKS};
	const struct pfs_image_file *file;
	struct pfs_entry first, second;
	struct temp_store temp;
	struct pfs_tree *tree;
	uint32_t slot;

	if (!pfs_lazy_is_possible())
		skip();
	make_large_store(&temp);
	tree = open_file(&temp);
	file = tree->image.file;
	slot = tree->image.end - 1; /* in a block that opening does not look at */
	pfs_image_stat(tree, &first, slot);
	for (size_t i = 0; i < PFS_COUNT(columns); i++) {
		size_t element;

		(void)pfs_imagefile_column(&tree->image, &element, columns[i]);
		assert_true(pfs_lazy_is_absent(file->lazy_parts[columns[i]],
					       slot * element / PFS_IMAGE_FILE_BLOCK));
	}
	pfs_image_stat(tree, &second, slot);
	assert_memory_equal(&first.attr, &second.attr, sizeof(first.attr));
	assert_int_equal(first.attr.st_ino, tree->image.prime[slot]);
	assert_int_equal(first.attr.st_mode, tree->image.mode[slot]);
	assert_int_equal(first.attr.st_nlink, tree->image.links[slot]);
	assert_int_equal(first.attr.st_uid, tree->image.uid[slot]);
	assert_int_equal(first.attr.st_size, tree->image.size[slot]);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_the_same),
		cmocka_unit_test(what_few_have_is_there),
		cmocka_unit_test(without_help_all_is_read),
		cmocka_unit_test(copies_are_told_apart),
		cmocka_unit_test(only_the_owners_is_used),
		cmocka_unit_test(no_other_file_is_lost),
		cmocka_unit_test(bad_names_are_refused),
		cmocka_unit_test(the_mode_is_the_stores),
		cmocka_unit_test(a_kill_leaves_the_old_one),
		cmocka_unit_test(the_order_of_slots_is_known),
		cmocka_unit_test(opening_touches_little),
		cmocka_unit_test(looking_once_fills_little),
	};
	int failed;

	take_settings();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(bytes);
	return failed;
}
