/* SPDX-License-Identifier: MIT */
#include "fs/mount/access.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#define INO   UINT64_C(4294967311)
#define OWNER 1000
#define GROUP 100

static struct pfs_access access_state;

static int confirm(mode_t mode, unsigned want, pid_t pid, uid_t uid, gid_t gid)
{
	struct stat attr = {
		.st_ino = INO, .st_mode = S_IFREG | mode, .st_uid = OWNER, .st_gid = GROUP};

	return pfs_access_confirm(&access_state, &attr, want, pid, uid, gid);
}

static int set_up(void **state)
{
	static const struct pfs_access none;

	(void)state;
	access_state = none;
	pfs_access_init(&access_state);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pfs_access_finish(&access_state);
	return 0;
}

static void is_doubtful_after_a_change(void **state)
{
	(void)state;
	assert_false(pfs_access_is_doubtful(&access_state, INO));
	assert_false(pfs_access_changed_within(&access_state, INO, INT32_MAX));
	pfs_access_changed(&access_state, INO);
	assert_true(pfs_access_is_doubtful(&access_state, INO));
	assert_true(pfs_access_changed_within(&access_state, INO, 10000));
	assert_false(pfs_access_changed_within(&access_state, INO, 0));
	assert_false(pfs_access_is_doubtful(&access_state, INO + 2));
}

/* What mode and owner grant without doubt is never asked for twice. */
static void passes_what_is_granted(void **state)
{
	(void)state;
	assert_int_equal(confirm(0600, R_OK | W_OK, 1, OWNER, 1), 0);
	assert_int_equal(confirm(0060, R_OK | W_OK, 1, 1, GROUP), 0);
	assert_int_equal(confirm(0055, R_OK, 1, 1, 1), 0);
	assert_int_equal(confirm(0011, X_OK, 1, 1, 1), 0);
}

static void asks_again_once(void **state)
{
	(void)state;
	assert_int_equal(confirm(0600, R_OK, 7, 1, 1), -ESTALE);
	assert_int_equal(confirm(0600, R_OK, 8, 1, 1), -ESTALE); /* somebody else */
	assert_int_equal(confirm(0600, R_OK, 7, 1, 1), 0);	 /* the kernel insists */
	assert_int_equal(confirm(0600, R_OK, 7, 1, 1), -ESTALE); /* another open */
	assert_int_equal(confirm(0600, R_OK, 8, 1, 1), 0);
}

/* Who was refused after the first question has not used it up for rights that came later. */
static void asks_again_after_each_change(void **state)
{
	(void)state;
	pfs_access_changed(&access_state, INO);
	assert_int_equal(confirm(0600, R_OK, 7, 1, 1), -ESTALE);
	pfs_access_changed(&access_state, INO);
	assert_int_equal(confirm(0600, R_OK, 7, 1, 1), -ESTALE);
	assert_int_equal(confirm(0600, R_OK, 7, 1, 1), 0);
}

static void doubts_what_another_group_may_grant(void **state)
{
	(void)state;
	assert_int_equal(confirm(0640, R_OK, 7, 1, 1), -ESTALE);
	assert_int_equal(confirm(0604, R_OK, 8, 1, 1), -ESTALE); /* not for that group */
	assert_int_equal(confirm(0066, R_OK, 9, OWNER, GROUP), -ESTALE);
	assert_int_equal(confirm(0604, R_OK, 10, 1, GROUP), -ESTALE);
	assert_int_equal(confirm(0644, R_OK | W_OK, 11, 1, 1), -ESTALE);
}

static void leaves_strangers_to_the_kernel(void **state)
{
	(void)state;
	assert_int_equal(confirm(0600, R_OK, 0, 1, 1), 0);
	assert_int_equal(confirm(0600, R_OK, 0, 1, 1), 0);
}

static void remembers_many(void **state)
{
	pid_t pid;

	(void)state;
	for (pid = 1; pid <= PFS_ACCESS_AGAIN; pid++)
		assert_int_equal(confirm(0, R_OK, pid, 1, 1), -ESTALE);
	for (pid = 1; pid <= PFS_ACCESS_AGAIN; pid++)
		assert_int_equal(confirm(0, R_OK, pid, 1, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(is_doubtful_after_a_change, set_up, tear_down),
		cmocka_unit_test_setup_teardown(passes_what_is_granted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(asks_again_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(asks_again_after_each_change, set_up, tear_down),
		cmocka_unit_test_setup_teardown(doubts_what_another_group_may_grant, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(leaves_strangers_to_the_kernel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(remembers_many, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
