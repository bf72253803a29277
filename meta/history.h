/* SPDX-License-Identifier: MIT */
/* meta/history.h - history: the former rows of nodes and attributes (docs/design/history.md).
 *
 * While a store keeps history, each group also writes the former rows of what it changes, in its
 * own transaction; content is not kept. The store itself says whether and how long it keeps
 * history. The state after a group is the present state, with the former rows of all later groups
 * put over it; of several former rows of a node the earliest counts.
 *
 * Times are nanoseconds since 1970. The time of a group is never less than that of the group
 * before. If the clock was set back, so that earlier groups have times in the future, these get the
 * present time. A clock that was never set counts as one that stands still. Threads: as
 * meta/store.h has them. */
#ifndef PFS_META_HISTORY_H
#define PFS_META_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_store;

/* How much history is kept: a bound of 0 is none; both 0: no history is kept. */
struct pfs_history_rule {
	int64_t age;   /* nanoseconds */
	uint64_t size; /* bytes of former rows, about */
};

struct pfs_history {
	struct pfs_history_rule rule; /* both 0: no history is kept, and all other members are 0 */
	uint64_t groups; /* groups that changed something */
	uint64_t rows, bytes; /* former rows, and about how many bytes they take */
	int64_t since;	      /* the earliest time whose state is known */
	int64_t last;	      /* the time of the last group */
};

/* Parses "no", an age like 90s, 12h, 2d, 8w or 1y, or a size like 500K, 500M, 2G or 1T. -EINVAL:
 * the text is none of these. */
PFS_MUST_CHECK int pfs_history_parse(struct pfs_history_rule *out, const char *text);

/* Begins to keep history, changes how much is kept, or stops and removes it. This is a group of its
 * own, which it commits; no other group is open. The store's errors. */
PFS_MUST_CHECK int pfs_history_set(struct pfs_store *store, const struct pfs_history_rule *rule);

/* Describes the history as it is after the last committed group. The store's errors. */
PFS_MUST_CHECK int pfs_history_read(struct pfs_store *store, struct pfs_history *out);

/* Opens the store `of`, which this process has open, a second time: for reading, with nodes and
 * attributes as they were at the time `at`. One thread at a time reads it. It is closed before
 * `of`. tick(arg), if tick is not NULL, is called every few milliseconds while something is read;
 * if it returns non-zero, the reading function returns -EINTR. Errors as pfs_store_open with `at`.
 */
PFS_MUST_CHECK int pfs_history_open(struct pfs_store **out, struct pfs_store *of, int64_t at,
				    int (*tick)(void *arg), void *arg);

/* A store that pfs_history_open opened shows the same state whatever is committed meanwhile. One
 * long read transaction would keep the log from being emptied. So pfs_history_pause ends the
 * transaction, and pfs_history_go_on, before the next read, begins another and takes over the rows
 * that have become former since. A reading function does both by itself if the transaction is older
 * than PFS_HISTORY_HOLD_NS. -ESTALE: the history of that time has been removed meanwhile; -ENODATA:
 * the store keeps no history any more; the store's errors. */
#define PFS_HISTORY_HOLD_NS UINT64_C(1000000000)
void pfs_history_pause(struct pfs_store *past);
PFS_MUST_CHECK int pfs_history_go_on(struct pfs_store *past);

/* Returns true if the rule says that some history is to be removed. For the writing thread. */
bool pfs_history_is_due(const struct pfs_store *store);
/* Removes the oldest history, a bounded number of rows. A group is open. The store's errors. */
PFS_MUST_CHECK int pfs_history_prune(struct pfs_store *store);

#endif
