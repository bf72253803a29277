/* SPDX-License-Identifier: MIT */
/* meta/history.h - what nodes and attributes were before groups changed them (docs/design/history.md).
 *
 * While a store keeps history, each group leaves the former rows of what it changes, in its own transaction;
 * content is not kept.  Whether it does is in the store itself, for whoever writes it.  The state after a
 * group is today's with the former rows of all later groups put over it, the earliest of each node winning.
 *
 * Times are nanoseconds since 1970; that of a group is never less than that of the group before.  Where the clock says that
 * earlier groups lie ahead of it, they become as old as it says; and one that was never set counts as standing still.
 * Threads: as meta/store.h has them. */
#ifndef PFS_META_HISTORY_H
#define PFS_META_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_store;

/* Says how much of the past is kept. 0: this is no bound; both 0: nothing is kept. */
struct pfs_history_rule {
	int64_t age;   /* nanoseconds */
	uint64_t size; /* bytes, about, of former rows */
};

struct pfs_history {
	struct pfs_history_rule rule; /* both 0: there is no history, and all else is 0 */
	uint64_t groups, rows, bytes; /* that changed something; former rows, and about what they take */
	int64_t since, last; /* the first time whose state is known, and that of the last group */
};

/* "no", an age as 90s, 12h, 2d, 8w or 1y, or a size as 500K, 500M, 2G or 1T.  -EINVAL. */
PFS_MUST_CHECK int pfs_history_parse(struct pfs_history_rule *out, const char *text);

/* Begins to keep history, changes how much, or ends and forgets it, in a group of its own, which it commits; none
 * is open.  The store's errors. */
PFS_MUST_CHECK int pfs_history_set(struct pfs_store *store, const struct pfs_history_rule *rule);

/* Describes the history as of the group committed last. */
PFS_MUST_CHECK int pfs_history_read(struct pfs_store *store, struct pfs_history *out);

/* Opens the store, which this process has open, once more: for reading, with nodes and attributes as they were at
 * that time.  One thread reads at a time.  It is closed first.  `tick`, if it is given, is called with `arg` every few
 * milliseconds while something is read; what it returns non-zero ends with -EINTR.  Errors as pfs_store_open with
 * `at`. */
PFS_MUST_CHECK int pfs_history_open(struct pfs_store **out, struct pfs_store *of, int64_t at, int (*tick)(void *arg),
				    void *arg);

/* Such a store stays what it was whatever is committed, and also when it is not read in one transaction, which would keep the log
 * from being emptied: pausing ends it, and going on, before something is read, begins another and takes over what has become
 * former since.  It does so by itself when the transaction is older than PFS_HISTORY_HOLD_NS.  -ESTALE: history has
 * forgotten the time meanwhile; -ENODATA: there is none any more; the store's errors. */
#define PFS_HISTORY_HOLD_NS UINT64_C(1000000000)
void pfs_history_pause(struct pfs_store *past);
PFS_MUST_CHECK int pfs_history_go_on(struct pfs_store *past);

/* Returns true if something is to be forgotten; the writing thread calls it. */
bool pfs_history_is_due(const struct pfs_store *store);
/* Forgets the oldest rows, a bounded number; in a group. */
PFS_MUST_CHECK int pfs_history_prune(struct pfs_store *store);

#endif
