/* SPDX-License-Identifier: MIT */
/* meta/account.h - accounts, which bound the memory that statements allocate.
 *
 * A thread enters an account; what SQLite then allocates on this thread is counted on that account
 * until any thread frees it. An allocation beyond the bound of its account, or beyond the bound of
 * all accounts together, fails, and SQLite ends that statement alone. An allocation on a thread
 * without an account, such as the store's own connections make, never fails so. Memory that a
 * statement needs outside SQLite is charged with pfs_account_charge.
 *
 * Counting also looks at the clock from time to time. So SQLite can be stopped where it calls no
 * progress handler, for example while it prepares a statement.
 *
 * Threads: one thread at a time has entered an account; all other calls are any thread's. */
#ifndef PFS_META_ACCOUNT_H
#define PFS_META_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_account;

/* Makes SQLite allocate this way. Call it before SQLite is first used in the process; later calls
 * have no effect. */
void pfs_accounts_begin(void);

/* pfs_accounts_limit sets the bound of all accounts together, in bytes; 0: there is none. At first
 * it is a quarter of the machine's memory. pfs_accounts_used returns the bytes that are counted on
 * all accounts, and pfs_accounts_crowded true if they are more than half of the bound. */
void pfs_accounts_limit(uint64_t bytes);
uint64_t pfs_accounts_used(void);
bool pfs_accounts_crowded(void);

/* Opens an account of `limit` bytes (0: no bound of its own). While SQLite allocates on it,
 * look(arg) is called from time to time, on the thread that has entered it; once it has returned
 * non-zero, all allocations on the account fail. look may be NULL. *out is NULL on failure.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_account_open(struct pfs_account **out, uint64_t limit,
				    int (*look)(void *arg), void *arg);
/* Closes an account that no thread has entered. Memory that is still allocated on it goes on
 * counting for all accounts together. NULL is allowed. */
void pfs_account_close(struct pfs_account *account);

/* Makes this thread enter the account (NULL: none), on which its allocations count from now on.
 * Returns the account that it had entered before. */
struct pfs_account *pfs_account_enter(struct pfs_account *account);

static inline void pfs_cleanup_account(struct pfs_account **before)
{
	(void)pfs_account_enter(*before);
}
/* struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(a); enters `before` again at the end
 * of the block. */
#define PFS_ACCOUNT __attribute__((cleanup(pfs_cleanup_account), unused))

/* Tells the account that this thread has entered, if any, that the thread has written or read so
 * many bytes; as allocating does, this makes it look at the clock. Returns false if the statement
 * has to end. */
bool pfs_account_has_time(uint64_t bytes);

/* Adds to the account bytes that were allocated outside SQLite; a negative number takes bytes off.
 * -ENOMEM: the account has more than its bound now; the bytes count all the same. NULL is allowed,
 * and counts nothing. */
PFS_MUST_CHECK int pfs_account_charge(struct pfs_account *account, int64_t bytes);

/* Takes off bytes that were charged. NULL is allowed. */
void pfs_account_discharge(struct pfs_account *account, uint64_t bytes);

/* Returns about how many more bytes can be counted on the account. */
uint64_t pfs_account_left(const struct pfs_account *account);

/* Makes all allocations on the account fail after so many more; 0: any number succeed. */
void pfs_account_count(struct pfs_account *account, uint64_t allocations);

enum pfs_refusal {
	PFS_REFUSED_NOTHING,
	PFS_REFUSED_MEMORY, /* the account's own bound */
	PFS_REFUSED_TOTAL,  /* the bound of all accounts together */
	PFS_REFUSED_NUMBER, /* the number of pfs_account_count */
	PFS_REFUSED_TIME,   /* `look` returned non-zero */
};
/* Returns why an allocation on the account last failed. NULL is allowed. */
enum pfs_refusal pfs_account_refusal(const struct pfs_account *account);

#endif
