/* SPDX-License-Identifier: MIT */
/* Whose word about originals counts: the stamp of a store's own file, its owner and its mode; and
 * what tells a file from a later one. */
#include "tests/unit/store_util.h"

#include <fcntl.h>

#include "meta/birthmark.h"

static enum pfs_store_trust trust_of(unsigned flags)
{
	enum pfs_store_trust trust;
	struct pfs_store *store = open_as(flags);

	assert_int_equal(pfs_store_trust(store, &trust), 0);
	assert_int_equal(pfs_store_close(store), 0);
	return trust;
}

static void stamp(void)
{
	struct pfs_store *store = open_as(0);

	assert_int_equal(pfs_store_stamp(store), -EINVAL);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_stamp(store), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

/* With $s the store. */
static void run(const char *commands)
{
	char command[1000];

	(void)snprintf(command, sizeof(command), "s=%s; %s", test_path, commands);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own temporary folder */
}

static void only_the_stamped_file_is_trusted(void **state PFS_UNUSED)
{
	assert_int_equal(pfs_store_close(new_store(0)), 0);
	assert_int_equal(trust_of(0), PFS_TRUST_UNSTAMPED);
	stamp();
	assert_int_equal(trust_of(0), PFS_TRUST_OWN);
	assert_int_equal(trust_of(PFS_STORE_READ_ONLY), PFS_TRUST_OWN);
	/* whatever its name */
	run("mv $s $s.other && mv $s.other $s");
	assert_int_equal(trust_of(0), PFS_TRUST_OWN);
	/* a copy, its times and all, is not the file */
	run("cp -a $s $s.copy && mv $s.copy $s");
	assert_int_equal(trust_of(PFS_STORE_READ_ONLY), PFS_TRUST_UNSTAMPED);
	stamp();
	assert_int_equal(trust_of(0), PFS_TRUST_OWN);
}

static void others_may_not_write_it(void **state PFS_UNUSED)
{
	assert_int_equal(chmod(test_path, 0644), 0);
	assert_int_equal(trust_of(0), PFS_TRUST_OWN);
	assert_int_equal(chmod(test_path, 0620), 0);
	assert_int_equal(trust_of(0), PFS_TRUST_SHARED);
	assert_int_equal(chmod(test_path, 0602), 0);
	assert_int_equal(trust_of(0), PFS_TRUST_SHARED);
	assert_int_equal(chmod(test_path, 0600), 0);
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(test_path, 65534, 65534), 0);
	assert_int_equal(trust_of(0), PFS_TRUST_NOT_OWN);
	assert_int_equal(chown(test_path, 0, 0), 0);
}

static mode_t mode_of(const char *path)
{
	struct stat attr;

	assert_int_equal(stat(path, &attr), 0);
	return attr.st_mode & 07777;
}

static void a_new_store_is_the_users_alone(void **state PFS_UNUSED)
{
	const struct pfs_store_options how = {.flags = PFS_STORE_CREATE, .mode = 0664};
	mode_t before = umask(0);
	struct pfs_store *store;

	assert_int_equal(pfs_store_close(new_store(0)), 0);
	assert_int_equal(mode_of(test_path), 0600);
	assert_int_equal(unlink(test_path), 0);
	(void)umask(077);
	assert_int_equal(pfs_store_open(&store, test_path, &how), 0);
	assert_int_equal(mode_of(test_path), 0664);
	(void)umask(before);
	assert_int_equal(pfs_store_close(store), 0);
}

/* The inode numbers of a few files, removed and made again until one is given out anew. */
static void a_number_used_again_is_another_file(void **state PFS_UNUSED)
{
	struct pfs_birthmark first, again;
	char path[200];
	struct stat st;
	ino_t ino = 0;
	int fd, tries = 0;

	(void)snprintf(path, sizeof(path), "%s/reused", test_folder);
	for (; tries < 1000; tries++) {
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		pfs_birthmark_of(&again, fd);
		assert_true(pfs_birthmark_same(&again, &again));
		assert_int_equal(close(fd), 0);
		if (st.st_ino == ino)
			break;
		ino = st.st_ino;
		first = again;
		assert_int_equal(unlink(path), 0);
	}
	if (tries == 1000 || (!again.handle_len && !again.has_birth))
		skip(); /* a filesystem that uses no number twice, or tells nothing */
	assert_false(pfs_birthmark_same(&first, &again));
	/* the handle decides where there is one; an empty mark excludes nothing */
	again.birth = first.birth;
	assert_false(again.handle_len && pfs_birthmark_same(&first, &again));
	assert_true(pfs_birthmark_same(&first, &(struct pfs_birthmark){0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_stamped_file_is_trusted),
		cmocka_unit_test(others_may_not_write_it),
		cmocka_unit_test(a_new_store_is_the_users_alone),
		cmocka_unit_test(a_number_used_again_is_another_file),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
