/* SPDX-License-Identifier: MIT */
/* meta/account.h - accounts that bound what statements allocate.
 *
 * All that SQLite allocates in this process is counted on the account that its thread has entered,
 * until it is freed, by whichever thread. An allocation that would go beyond the bound of its
 * account, or of all accounts together, is refused to SQLite, which ends that statement alone. An
 * allocation without an account, as the store's own connections make them, is never refused. What a
 * statement needs outside SQLite is charged by hand.
 *
 * Where an allocation is counted, the clock is looked at from time to time, so that SQLite can be
 * stopped where it does not ask by itself, as while it prepares a statement.
 *
 * Threads: one thread at a time has entered an account; all other calls are any thread's. */
#ifndef PFS_META_ACCOUNT_H
#define PFS_META_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_account;

/* Makes SQLite allocate this way. To be called before SQLite is first used in the process; later
 * calls have no effect. */
void pfs_accounts_begin(void);

/* Sets the bound of all accounts together, in bytes (0: none; at first a quarter of the machine's
 * memory), and returns what they have now. */
void pfs_accounts_limit(uint64_t bytes);
uint64_t pfs_accounts_used(void);
bool pfs_accounts_crowded(void); /* true if more than half of the bound is taken */

/* Opens an account of `limit` bytes (0: no bound of its own). While SQLite allocates on it,
 * look(arg) is called from time to time, on the thread that has entered it; once it returns
 * non-zero, everything is refused (NULL: never). *out is NULL on failure. -ENOMEM. */
PFS_MUST_CHECK int pfs_account_open(struct pfs_account **out, uint64_t limit, int (*look)(void *arg),
				    void *arg);
/* Closes an account, which nobody has entered. What is still allocated on it stays, and counts for
 * all accounts together. NULL is allowed. */
void pfs_account_close(struct pfs_account *account);

/* Counts on the account (NULL: on none) what this thread allocates from now on. Returns the account
 * that it had entered before. */
struct pfs_account *pfs_account_enter(struct pfs_account *account);

static inline void pfs_cleanup_account(struct pfs_account **before)
{
	(void)pfs_account_enter(*before);
}
/* struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(a); leaves it at the end of the
 * block. */
#define PFS_ACCOUNT __attribute__((cleanup(pfs_cleanup_account), unused))

/* Says that this thread has written or read so many bytes for the account that it has entered, if
 * any, which takes time as allocating does. Returns false if the statement has to end. */
bool pfs_account_has_time(uint64_t bytes);

/* Counts bytes (less than 0: fewer) that SQLite knows nothing of. They count even if -ENOMEM says
 * that they are more than the account may have. NULL is allowed, and counts nothing. */
PFS_MUST_CHECK int pfs_account_charge(struct pfs_account *account, int64_t bytes);

/* Takes off bytes that were charged. NULL is allowed. */
void pfs_account_discharge(struct pfs_account *account, uint64_t bytes);

/* Returns about how many bytes the account may still have. */
uint64_t pfs_account_left(const struct pfs_account *account);

/* Refuses the statement everything after so many allocations from now on (0: any number). */
void pfs_account_count(struct pfs_account *account, uint64_t allocations);

enum pfs_refusal {
	PFS_REFUSED_NOTHING,
	PFS_REFUSED_MEMORY, /* it has reached its own bound */
	PFS_REFUSED_TOTAL,  /* all accounts together have reached theirs */
	PFS_REFUSED_NUMBER, /* it has made as many allocations as pfs_account_count allows */
	PFS_REFUSED_TIME,   /* `look` returned non-zero */
};
/* Returns why the account was last refused something. NULL is allowed. */
enum pfs_refusal pfs_account_refusal(const struct pfs_account *account);

#endif
