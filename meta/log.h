/* SPDX-License-Identifier: MIT */
/* meta/log.h - whether the log (-wal) beside a store belongs to that store. Threads: any number. */
#ifndef PFS_META_LOG_H
#define PFS_META_LOG_H

#include "base/err.h"

/* Checks the log beside the store at `path`, which no process has open for writing and which the
 * descriptor `store` can read. Returns -EXDEV if the log belongs to another store, or its groups do
 * not continue those of this store: playing it back would damage the store. Returns 0 if the log
 * belongs to the store, if there is none, and if that cannot be found out. */
PFS_MUST_CHECK int pfs_log_check(const char *path, int store);

#endif
