/* SPDX-License-Identifier: MIT */
/* Accounts: what SQLite allocates, by whom, freed by whom. */
#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "meta/account.h"

#define MIB (1 << 20)

static int set_up(void **state)
{
	(void)state;
	pfs_accounts_begin();
	return 0;
}

static struct pfs_account *open_account(uint64_t limit)
{
	struct pfs_account *account;

	assert_int_equal(pfs_account_open(&account, limit, NULL, NULL), 0);
	return account;
}

static void test_bound(void **state)
{
	struct pfs_account *account = open_account(4 * MIB);
	void *first, *second;

	(void)state;
	assert_null(pfs_account_enter(account));
	first = sqlite3_malloc(3 * MIB);
	assert_non_null(first);
	assert_null(sqlite3_malloc(2 * MIB));
	assert_int_equal(pfs_account_refusal(account), PFS_REFUSED_MEMORY);
	assert_null(sqlite3_realloc(first, 5 * MIB));
	first = sqlite3_realloc(first, 1 * MIB);
	second = sqlite3_malloc(2 * MIB);
	assert_non_null(first);
	assert_non_null(second);
	assert_ptr_equal(pfs_account_enter(NULL), account);
	sqlite3_free(sqlite3_malloc(64 * MIB)); /* on none */
	sqlite3_free(first);
	sqlite3_free(second);
	pfs_account_close(account);
	assert_int_equal(pfs_accounts_used(), 0);
}

static void test_small_ones_count(void **state)
{
	struct pfs_account *account = open_account(MIB);
	void *blocks[2 * MIB / 1024];
	size_t n = 0;

	(void)state;
	(void)pfs_account_enter(account);
	while (n < sizeof(blocks) / sizeof(blocks[0]) && (blocks[n] = sqlite3_malloc(1024)))
		n++;
	assert_true(n > 900 && n < 1100);
	while (n > 0)
		sqlite3_free(blocks[--n]);
	(void)pfs_account_enter(NULL);
	pfs_account_close(account);
	assert_int_equal(pfs_accounts_used(), 0);
}

static void *free_it(void *memory)
{
	sqlite3_free(memory);
	return NULL;
}

static void test_freed_elsewhere_and_later(void **state)
{
	struct pfs_account *account = open_account(0);
	pthread_t thread;
	void *memory;

	(void)state;
	(void)pfs_account_enter(account);
	memory = sqlite3_malloc(MIB);
	(void)pfs_account_enter(NULL);
	pfs_account_close(account);
	assert_true(pfs_accounts_used() >= MIB);
	assert_int_equal(pthread_create(&thread, NULL, free_it, memory), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(pfs_accounts_used(), 0);
}

static void test_charges(void **state)
{
	struct pfs_account *account = open_account(2 * MIB);

	(void)state;
	assert_int_equal(pfs_account_charge(NULL, MIB), 0);
	assert_int_equal(pfs_account_charge(account, MIB), 0);
	assert_int_equal(pfs_account_left(account), MIB);
	assert_int_equal(pfs_account_charge(account, 2 * MIB), -ENOMEM);
	assert_int_equal(pfs_account_charge(account, -3 * MIB), 0);
	pfs_accounts_limit(MIB);
	assert_int_equal(pfs_account_charge(account, MIB / 2), 0);
	assert_false(pfs_accounts_crowded());
	assert_int_equal(pfs_account_charge(account, MIB), -ENOMEM);
	assert_int_equal(pfs_account_refusal(account), PFS_REFUSED_TOTAL);
	assert_true(pfs_accounts_crowded());
	assert_int_equal(pfs_account_charge(account, -3 * MIB / 2), 0);
	pfs_accounts_limit(0);
	pfs_account_close(account);
	assert_int_equal(pfs_accounts_used(), 0);
}

static int look(void *arg)
{
	unsigned *looks = arg;

	return ++*looks == 3;
}

static void test_looks(void **state)
{
	struct pfs_account *account;
	unsigned looks = 0, n = 0;

	(void)state;
	assert_int_equal(pfs_account_open(&account, 0, look, &looks), 0);
	(void)pfs_account_enter(account);
	for (void *memory = NULL; n < 100000 && (memory = sqlite3_malloc(16)); n++)
		sqlite3_free(memory);
	assert_int_equal(looks, 3);
	assert_true(n > 1000 && n < 10000);
	assert_int_equal(pfs_account_refusal(account), PFS_REFUSED_TIME);
	looks = 0;
	for (n = 0; n < 8; n++) /* large ones are looked at more often */
		sqlite3_free(sqlite3_malloc(8 * MIB));
	assert_true(looks > 4);
	pfs_account_count(account, 10);
	looks = 4;
	for (n = 0; n < 20; n++)
		sqlite3_free(sqlite3_malloc(16));
	assert_int_equal(pfs_account_refusal(account), PFS_REFUSED_NUMBER);
	pfs_account_count(account, 0);
	sqlite3_free(sqlite3_malloc(16));
	(void)pfs_account_enter(NULL);
	pfs_account_close(account);
	assert_int_equal(pfs_accounts_used(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_small_ones_count),
		cmocka_unit_test(test_freed_elsewhere_and_later),
		cmocka_unit_test(test_charges),
		cmocka_unit_test(test_looks),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
