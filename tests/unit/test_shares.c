/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fs/mount/query/shares.h"

static unsigned take_all(struct pfs_shares *shares, uid_t uid)
{
	unsigned n = 0;

	while (pfs_shares_take(shares, uid))
		n++;
	return n;
}

/* Whoever comes later finds some, too, and what one gives back is everybody's. */
static void test_shares(void **state)
{
	struct pfs_shares shares;

	(void)state;
	pfs_shares_init(&shares, 1024);
	assert_int_equal(take_all(&shares, 1), 512);
	assert_int_equal(take_all(&shares, 2), 256);
	assert_int_equal(take_all(&shares, 3), 128);
	assert_int_equal(take_all(&shares, 1), 0);
	for (unsigned i = 0; i < 512; i++)
		pfs_shares_give(&shares, 1);
	assert_int_equal(take_all(&shares, 4), 320);
	assert_int_equal(take_all(&shares, 2), 32);
	pfs_shares_finish(&shares);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_shares)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
