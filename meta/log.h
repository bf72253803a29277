/* SPDX-License-Identifier: MIT */
/* meta/log.h - whether the log (-wal) beside a store is its own. Threads: any number. */
#ifndef PFS_META_LOG_H
#define PFS_META_LOG_H

#include "base/err.h"

/* Looks at the store at `path`, which can be read by the descriptor `store` and which nobody has open
 * for writing. Returns -EXDEV if the log beside it is another store's, or this one's from before or after
 * other groups than the store has: playing it back would damage the store. 0: it is the store's own, there
 * is none, or it cannot be told. */
PFS_MUST_CHECK int pfs_log_check(const char *path, int store);

#endif
