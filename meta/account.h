/* SPDX-License-Identifier: MIT */
/* meta/account.h - what statements allocate, each on an account that bounds it.
 *
 * All that SQLite allocates in this process carries the account that its thread has entered, if any,
 * until it is freed, by whichever thread.  An allocation that would go beyond the account's bound, or
 * that of all accounts together, is refused to SQLite, which ends that statement alone; one without an
 * account, as the store's own connections make them, never is.  What else a statement needs is charged
 * by hand.
 *
 * Where an allocation is counted the clock is looked at, too, from time to time: so SQLite can be
 * stopped where it does not ask itself, as in preparing a statement.
 *
 * Threads: an account is entered by one thread at a time; the rest from any. */
#ifndef PFS_META_ACCOUNT_H
#define PFS_META_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_account;

/* Has SQLite allocate this way; before its first use in the process, else without effect.  Again and
 * again is fine. */
void pfs_accounts_begin(void);

/* Bytes of all accounts together: the bound, 0: none (a quarter of the machine's memory at first), and
 * what they have by now. */
void pfs_accounts_limit(uint64_t bytes);
uint64_t pfs_accounts_used(void);
bool pfs_accounts_crowded(void); /* more than half of the bound is taken */

/* limit: bytes, 0: none.  look is called with arg as it allocates, on the thread that has entered
 * it, and says whether to refuse from then on (NULL: never).  *out NULL on failure.  -ENOMEM. */
PFS_MUST_CHECK int pfs_account_open(struct pfs_account **out, uint64_t limit, int (*look)(void *arg),
				    void *arg);
/* Nobody has it entered; what is still allocated stays, and counts for all accounts.  NULL is
 * allowed. */
void pfs_account_close(struct pfs_account *account);

/* What this thread allocates from now on is on the account; NULL: on none.  Returns the one before. */
struct pfs_account *pfs_account_enter(struct pfs_account *account);

static inline void pfs_cleanup_account(struct pfs_account **before)
{
	(void)pfs_account_enter(*before);
}
/* struct pfs_account *before PFS_ACCOUNT = pfs_account_enter(a); until the end of the block. */
#define PFS_ACCOUNT __attribute__((cleanup(pfs_cleanup_account), unused))

/* This thread has written or read so many bytes for the account that it has entered, if any: that takes time as
 * allocating does.  False: it is to end. */
bool pfs_account_has_time(uint64_t bytes);

/* So many bytes more (or less) that SQLite knows nothing of; they count in any case.  -ENOMEM: more than
 * may be.  NULL is allowed: on none. */
PFS_MUST_CHECK int pfs_account_charge(struct pfs_account *account, int64_t bytes);

/* Gives back bytes charged before; NULL is allowed. */
void pfs_account_discharge(struct pfs_account *account, uint64_t bytes);

/* Bytes that it may still have, about. */
uint64_t pfs_account_left(const struct pfs_account *account);

/* Until the next call no more than so many allocations, 0: any number; whoever makes more is refused
 * them. */
void pfs_account_count(struct pfs_account *account, uint64_t allocations);

enum pfs_refusal {
	PFS_REFUSED_NOTHING,
	PFS_REFUSED_MEMORY, /* its own bound */
	PFS_REFUSED_TOTAL,  /* that of all accounts */
	PFS_REFUSED_NUMBER, /* pfs_account_count's */
	PFS_REFUSED_TIME,   /* look said so */
};
/* Why the account was last refused something.  NULL is allowed. */
enum pfs_refusal pfs_account_refusal(const struct pfs_account *account);

#endif
