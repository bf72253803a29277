/* SPDX-License-Identifier: MIT */
/* Originals in the hands of others: files and folders that are replaced, renumbered, closed or
 * given away, ACLs, and stores whose word does not count.  What needs other users runs as root
 * only. */
#include "origin_util.h"

#include <endian.h>
#include <limits.h>
#include <sys/xattr.h>

#include "base/acl.h"
#include "meta/birthmark.h"

#define OTHER_USER 65534

static uint64_t
	moved_by; /* what the stored numbers of devices are off by: the machine has started anew */

static void put_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

static int make_origin(void **state)
{
	if (make_folder(state))
		return -1;
	moved_by = 0;
	(void)snprintf(origin, sizeof(origin), "%s/origin", test_folder);
	if (mkdir(origin, 0755) || mkdir(path_of("a"), 0755) || mkdir(path_of("a/b"), 0755) ||
	    chmod(origin, 0755) || chmod(path_of("a"), 0755) || chmod(path_of("a/b"), 0755))
		return -1;
	put_file("a/b/f", "text", 0644);
	return 0;
}

/* ---- a store as import makes it ---- */

static void look_at(const char *name, struct stat *st, struct pfs_birthmark *mark)
{
	int fd = open(path_of(name), O_PATH | O_NOFOLLOW | O_CLOEXEC);

	assert_int_equal(fstat(fd, st), 0);
	pfs_birthmark_of(mark, fd);
	assert_int_equal(close(fd), 0);
	st->st_dev += moved_by;
}

static void put_dir(struct pfs_store *store, const char *path)
{
	struct pfs_source_dir dir = {.root = 1, .path = path, .path_len = strlen(path)};
	struct stat st;

	look_at(path, &st, &dir.mark);
	dir.dev = st.st_dev;
	dir.ino = st.st_ino;
	dir.mode = st.st_mode;
	dir.uid = st.st_uid;
	dir.gid = st.st_gid;
	assert_int_equal(pfs_store_put_source_dir(store, &dir), 0);
}

/* One node, linked to a/b/f; old: without what version 1 does not know. */
static uint64_t make_store(bool old)
{
	struct pfs_source_root root = {.path = origin, .has_rights = !old};
	struct pfs_source_record source = {.root = 1, .path = "a/b/f", .path_len = 5};
	struct pfs_store *store = new_store(0);
	struct pfs_node_record node;
	struct stat st;
	uint32_t id;

	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_stamp(store), 0);
	look_at(".", &st, &root.mark);
	root.dev = st.st_dev;
	root.ino = st.st_ino;
	root.mode = st.st_mode;
	root.uid = st.st_uid;
	root.gid = st.st_gid;
	if (old)
		root.mark = (struct pfs_birthmark){0};
	assert_int_equal(pfs_store_put_source_root(store, &id, &root), 0);
	if (!old) {
		put_dir(store, "a");
		put_dir(store, "a/b");
	}
	look_at("a/b/f", &st, &source.mark);
	if (old)
		source.mark = (struct pfs_birthmark){0};
	node = file_record(reserve_primes(store), 1, "f");
	node.flags = PFS_NODE_LINKED;
	source.prime = node.prime;
	take_stat(&node, &source, &st);
	assert_int_equal(pfs_store_put_node(store, &node), 0);
	assert_int_equal(pfs_store_put_source(store, &source), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_close(store), 0);
	return node.prime;
}

static uint64_t begin(bool old)
{
	uint64_t ino = make_store(old);

	open_tree();
	return ino;
}

/* What reading the node says: the text's length, or why there is none. */
static int try_read(uint64_t ino)
{
	char text[100];
	struct pfs_entry entry;
	int error = pfs_tree_getattr(tree, &entry, ino); /* as the kernel does before each open */

	return error ? error : (int)read_at(ino, text, sizeof(text), 0);
}

static unsigned mode_of(uint64_t ino)
{
	return stat_of(ino).st_mode & 07777;
}

static void set_own(uint64_t ino, mode_t mode)
{
	const struct stat attr = {.st_mode = mode, .st_mtim.tv_sec = 77};
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr, PFS_SET_MODE | PFS_SET_MTIME,
					  &root_caller),
			 0);
}

/* ---- files ---- */

/* What a user set holds for the file, not for its inode's number. */
static void test_reused_number(void **state PFS_UNUSED)
{
	struct stat first, again = {.st_ino = 0};
	char name[20];
	uint64_t ino;
	int tries;

	put_file("a/b/f", "mine", 0600);
	assert_int_equal(stat(path_of("a/b/f"), &first), 0);
	ino = begin(false);
	set_own(ino, 0644);
	assert_int_equal(mode_of(ino), 0644);
	reopen_tree();
	assert_int_equal(mode_of(ino), 0644);
	assert_int_equal(stat_of(ino).st_mtim.tv_sec, 77);
	assert_int_equal(unlink(path_of("a/b/f")), 0);
	/* the lowest number that is free may be another's */
	for (tries = 0; tries < 100 && again.st_ino != first.st_ino; tries++) {
		(void)snprintf(name, sizeof(name), "a/b/f%d", tries);
		put_file(name, "their own", 0600);
		assert_int_equal(stat(path_of(name), &again), 0);
	}
	assert_int_equal(rename(path_of(name), path_of("a/b/f")), 0);
	if (again.st_ino != first.st_ino)
		print_message("no number is used again here\n");
	assert_int_equal(mode_of(ino), 0600);
	assert_int_equal(stat_of(ino).st_mtim.tv_sec, again.st_mtim.tv_sec);
	assert_int_equal(try_read(ino), 9);
	reopen_tree();
	assert_int_equal(mode_of(ino), 0600);
	close_tree();
}

/* The same file for another owner is another file. */
static void test_given_away(void **state PFS_UNUSED)
{
	uint64_t ino;

	if (geteuid() != 0)
		skip();
	put_file("a/b/f", "mine", 0600);
	ino = begin(false);
	set_own(ino, 0644);
	assert_int_equal(chown(path_of("a/b/f"), OTHER_USER, OTHER_USER), 0);
	assert_int_equal(mode_of(ino), 0600);
	assert_int_equal(stat_of(ino).st_uid, OTHER_USER);
	set_own(ino, 0644);
	assert_int_equal(chown(path_of("a/b/f"), OTHER_USER, 0), 0);
	assert_int_equal(mode_of(ino), 0600);
	close_tree();
}

/* The devices have other numbers than at import: nothing that a user set is lost, now or when the
 * original changes, and a file on another device is another file. */
static void test_renumbered(void **state PFS_UNUSED)
{
	static const char *const texts[] = {"five.", "sixsix", "seven.."};
	uint64_t ino;

	moved_by = 1000;
	ino = begin(false);
	for (int pass = 0; pass < 3; pass++) {
		assert_int_equal(try_read(ino), 4 + pass);
		set_own(ino, 0600);
		reopen_tree();
		assert_int_equal(mode_of(ino), 0600);
		assert_int_equal(stat_of(ino).st_mtim.tv_sec, 77);
		put_file("a/b/f", texts[pass], 0644); /* the same file, written anew */
		assert_int_equal(mode_of(ino), 0600);
	}
	close_tree();
}

/* ---- folders ---- */

static void run(const char *commands)
{
	char command[600];

	(void)snprintf(command, sizeof(command), "cd %s; %s", origin, commands);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own temporary folder */
}

static void test_replaced_folder(void **state PFS_UNUSED)
{
	uint64_t ino = begin(false);

	assert_int_equal(try_read(ino), 4);
	/* the same user's, no wider open: as good as the one before */
	run("mv a/b a/old; mkdir -m 755 a/b; printf another > a/b/f; chmod 644 a/b/f");
	assert_int_equal(try_read(ino), 7);
	/* wider open than the one that was imported */
	run("mv a/b a/wide; mkdir a/b; chmod 777 a/b; cp a/wide/f a/b/f");
	assert_int_equal(try_read(ino), -ESTALE);
	run("rm -r a/b; mv a/old a/b");
	assert_int_equal(try_read(ino), 4);
	/* the folder itself may be opened wider: it is known */
	run("chmod 777 a/b");
	assert_int_equal(try_read(ino), 4);
	/* one folder further up, while the one below is the same */
	run("mkdir new; chmod 777 new; mv a/b new/b; mv a away; mv new a");
	assert_int_equal(try_read(ino), -ESTALE);
	reopen_tree();
	assert_int_equal(try_read(ino), -ESTALE);
	run("chmod 755 a");
	assert_int_equal(try_read(ino), 4);
	close_tree();
}

static void test_anothers_folder(void **state PFS_UNUSED)
{
	uint64_t ino;

	if (geteuid() != 0)
		skip();
	ino = begin(false);
	assert_int_equal(try_read(ino), 4);
	run("mv a/b a/old; mkdir -m 700 a/b; echo their secret > a/b/f; chmod 644 a/b/f; "
	    "chown -R 65534:65534 a/b");
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(try_read(ino), -ESTALE);
		assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, false), -ESTALE);
		reopen_tree();
	}
	run("rm -r a/b; mv a/old a/b");
	assert_int_equal(try_read(ino), 4);
	close_tree();
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_openat64(int dir, const char *name, int flags, mode_t mode);
int __wrap_openat64(int dir, const char *name, int flags, mode_t mode);
static unsigned opened;
int __wrap_openat64(int dir, const char *name, int flags, mode_t mode)
{
	opened++;
	return __real_openat64(dir, name, flags, mode);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Folders that have been checked are not opened again, however many there are. */
static void test_checked_once(void **state PFS_UNUSED)
{
	const struct timespec settle = {.tv_nsec = 200000000};
	uint64_t ino = begin(false);
	unsigned first;

	(void)nanosleep(&settle, NULL);
	opened = 0;
	assert_int_equal(mode_of(ino), 0644);
	first = opened;
	assert_int_equal(first, 3); /* a, b, f */
	opened = 0;
	for (int i = 0; i < 100; i++)
		assert_int_equal(mode_of(ino), 0644);
	assert_int_equal(opened, 100);
	/* what happens in one of them has it checked again, and what lies below */
	run("touch a/new");
	opened = 0;
	assert_int_equal(mode_of(ino), 0644);
	assert_int_equal(opened, 3);
	close_tree();
}

/* Who may no longer pass a folder on the way may no longer read; and again when he may. */
static void test_closed_folder(void **state PFS_UNUSED)
{
	uint64_t ino = begin(false);

	assert_int_equal(mode_of(ino), 0644);
	run("chmod 700 a");
	assert_int_equal(mode_of(ino), 0600);
	run("chmod 750 a");
	assert_int_equal(mode_of(ino), 0640); /* the folder's group is the file's */
	reopen_tree();
	assert_int_equal(mode_of(ino), 0640);
	run("chmod 755 a; chmod 711 a/b");
	assert_int_equal(mode_of(ino), 0644); /* who may not list it still may pass */
	run("chmod 700 .");
	assert_int_equal(mode_of(ino), 0600);
	run("chmod 755 .");
	assert_int_equal(mode_of(ino), 0644);
	if (geteuid() == 0) {
		run("chmod 700 a; chown 65534:65534 a");
		assert_int_equal(mode_of(ino), 0);
		run("chown 0:0 a; chgrp 65534 a; chmod 750 a");
		assert_int_equal(mode_of(ino), 0600); /* another group than the file's */
	}
	close_tree();
}

/* A store of version 1 knows nothing of folders: they have to be the mounting user's own. */
static void test_old_store(void **state PFS_UNUSED)
{
	struct pfs_source_record source;
	char path[PATH_MAX];
	uint64_t ino = begin(true);

	assert_int_equal(try_read(ino), 4);
	sync_tree();
	assert_int_equal(pfs_store_get_source(tree->store, &source, path, ino), 0);
	assert_true(source.mark.handle_len > 0 ||
		    source.mark.has_birth); /* it knows the file now */
	if (geteuid() == 0) {
		run("chown 65534 a");
		assert_int_equal(try_read(ino), -ESTALE);
		run("chown 0 a; chown 65534 a/b/f");
		assert_int_equal(try_read(ino), -ESTALE);
		run("chown 0 a/b/f; chown 65534 .");
		assert_int_equal(try_read(ino), -ESTALE);
		run("chown 0 .");
		assert_int_equal(try_read(ino), 4);
	}
	close_tree();
}

/* ---- ACLs ---- */

struct entry {
	uint16_t tag, perm;
	uint32_t id;
};

enum { U = 1, USER = 2, G = 4, GROUP = 8, MASK = 16, O = 32 };

static size_t make_acl(uint8_t *out, const struct entry *entries, size_t n)
{
	uint32_t version = htole32(2);

	memcpy(out, &version, 4);
	for (size_t i = 0; i < n; i++) {
		const struct entry entry = {htole16(entries[i].tag), htole16(entries[i].perm),
					    htole32(entries[i].id)};

		memcpy(out + 4 + 8 * i, &entry, 8);
	}
	return 4 + 8 * n;
}

/* As many as the users and groups can be in doubt: whoever is told less by the ACL gets no more. */
static void test_acl_modes(void **state PFS_UNUSED)
{
	static const struct {
		struct entry entries[8];
		size_t n;
		unsigned mode, wanted;
	} cases[] = {
		{{{U, 6, 0}, {G, 4, 0}, {O, 4, 0}}, 3, 0644, 0644},
		{{{U, 6, 0}, {USER, 6, 9}, {G, 0, 0}, {MASK, 6, 0}, {O, 0, 0}}, 5, 0660, 0600},
		{{{U, 6, 0}, {USER, 6, 9}, {G, 4, 0}, {MASK, 6, 0}, {O, 4, 0}}, 5, 0664, 0644},
		{{{U, 6, 0}, {USER, 6, 9}, {G, 6, 0}, {MASK, 4, 0}, {O, 0, 0}}, 5, 0640, 0640},
		{{{U, 6, 0}, {USER, 0, 9}, {G, 4, 0}, {MASK, 4, 0}, {O, 4, 0}}, 5, 0644, 0600},
		{{{U, 7, 0}, {G, 5, 0}, {GROUP, 7, 9}, {MASK, 7, 0}, {O, 5, 0}}, 5, 0775, 0755},
		{{{U, 7, 0}, {G, 5, 0}, {GROUP, 0, 9}, {MASK, 5, 0}, {O, 5, 0}}, 5, 0755, 0750},
		{{{U, 7, 0}, {USER, 7, 9}, {G, 7, 0}, {MASK, 0, 0}, {O, 5, 0}}, 5, 0705, 0700},
		{{{U, 7, 0}, {3, 7, 0}, {G, 5, 0}, {O, 5, 0}}, 4, 0755, 0700},
	};
	uint8_t acl[100];

	for (size_t i = 0; i < PFS_COUNT(cases); i++) {
		size_t size = make_acl(acl, cases[i].entries, cases[i].n);

		assert_int_equal(pfs_acl_value_mode(S_IFREG | 04000 | cases[i].mode, acl, size),
				 S_IFREG | 04000 | cases[i].wanted);
		assert_int_equal(pfs_acl_value_mode(cases[i].mode, acl, size - 1),
				 cases[i].mode & 0700);
		assert_int_equal(pfs_acl_value_mode(cases[i].mode, acl, 3), cases[i].mode & 0700);
	}
	assert_int_equal(pfs_acl_value_mode(0664, NULL, 0), 0600);
}

/* An ACL that comes later, on the file or on a folder. */
static void test_acl(void **state PFS_UNUSED)
{
	static const struct entry for_user[] = {
		{U, 6, -1u}, {USER, 6, 9}, {G, 0, -1u}, {MASK, 6, -1u}, {O, 0, -1u}};
	static const struct entry for_others[] = {
		{U, 6, -1u}, {USER, 6, 9}, {G, 4, -1u}, {MASK, 0, -1u}, {O, 4, -1u}};
	static const struct entry for_folder[] = {
		{U, 7, -1u}, {USER, 7, 9}, {G, 0, -1u}, {MASK, 7, -1u}, {O, 0, -1u}};
	uint8_t acl[100];
	size_t size = make_acl(acl, for_user, PFS_COUNT(for_user));
	struct stat st;
	uint64_t ino;

	put_file("a/b/f", "text", 0600);
	ino = begin(false);
	if (setxattr(path_of("a/b/f"), PFS_ACL_XATTR, acl, size, 0)) {
		close_tree();
		skip(); /* a filesystem without ACLs */
	}
	assert_int_equal(stat(path_of("a/b/f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660); /* its mask */
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(mode_of(ino), 0600);
		reopen_tree();
	}
	size = make_acl(acl, for_others, PFS_COUNT(for_others));
	assert_int_equal(setxattr(path_of("a/b/f"), PFS_ACL_XATTR, acl, size, 0), 0);
	assert_int_equal(stat(path_of("a/b/f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0604);
	assert_int_equal(mode_of(ino), 0600); /* the user is none of the others */
	assert_int_equal(removexattr(path_of("a/b/f"), PFS_ACL_XATTR), 0);
	assert_int_equal(chmod(path_of("a/b/f"), 0644), 0);
	assert_int_equal(mode_of(ino), 0644);
	size = make_acl(acl, for_folder, PFS_COUNT(for_folder));
	assert_int_equal(setxattr(path_of("a"), PFS_ACL_XATTR, acl, size, 0), 0);
	assert_int_equal(mode_of(ino), 0600); /* the folder's group may not pass */
	close_tree();
}

/* ---- whose word counts ---- */

static void test_refused(void **state PFS_UNUSED)
{
	const struct pfs_tree_options yes = {.links = PFS_LINKS_YES}, no = {.links = PFS_LINKS_NO};
	char line[2000];
	uint64_t ino = begin(false);

	assert_false(pfs_tree_links_refused(tree, line, sizeof(line)));
	assert_int_equal(try_read(ino), 4);
	close_tree();
	open_tree_as(&no);
	assert_false(pfs_tree_links_refused(tree, line, sizeof(line))); /* as was asked for */
	assert_int_equal(try_read(ino), -ENODATA);
	close_tree();
	run("cp -a ../a.pfs ../copy; mv ../copy ../a.pfs");
	open_tree();
	assert_true(pfs_tree_links_refused(tree, line, sizeof(line)));
	assert_non_null(strstr(line, "1 files that are linked"));
	assert_non_null(strstr(line, origin));
	assert_non_null(strstr(line, "import --trust"));
	put_file("a/b/f", "secret", 0600);
	assert_int_equal(try_read(ino), -ENODATA);
	assert_int_equal(mode_of(ino), 0644); /* nothing is looked at */
	assert_int_equal(stat_of(ino).st_size, 4);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, false), -ENODATA);
	close_tree();
	open_tree_as(&yes);
	assert_false(pfs_tree_links_refused(tree, line, sizeof(line)));
	assert_int_equal(try_read(ino), 6);
	close_tree();
	run("chmod 664 ../a.pfs");
	open_tree();
	assert_true(pfs_tree_links_refused(tree, line, sizeof(line)));
	assert_non_null(strstr(line, "chmod go-w"));
	assert_int_equal(try_read(ino), -ENODATA);
	assert_int_equal(try_truncate(ino, 0), 0); /* needs no original */
	assert_int_equal(try_read(ino), 0);
	close_tree();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_origin, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(test_reused_number), TEST(test_given_away),
		TEST(test_renumbered),	  TEST(test_replaced_folder),
		TEST(test_checked_once),  TEST(test_anothers_folder),
		TEST(test_closed_folder), TEST(test_old_store),
		TEST(test_acl_modes),	  TEST(test_acl),
		TEST(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
