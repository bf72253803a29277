/* SPDX-License-Identifier: MIT */
/* base/log.h - messages of one line each: to stderr in the foreground, to the system log as a
 * daemon. Threads: any number of callers, once pfs_log_open has returned. */
#ifndef PFS_BASE_LOG_H
#define PFS_BASE_LOG_H

#include <stdbool.h>

#include "base/err.h"

enum pfs_log_level {
	PFS_LOG_NOTHING =
		0,	   /* for pfs_log_open: a command prints its errors itself, in one line */
	PFS_LOG_ERROR = 3, /* values are syslog's */
	PFS_LOG_WARNING = 4,
	PFS_LOG_NOTICE = 5, /* logged even if the level is NOTHING */
	PFS_LOG_INFO = 6,
	PFS_LOG_DEBUG = 7,
};

/* Sets the least important level that is logged, and whether messages go to the system log or to
 * stderr. Before the first call these are INFO and stderr. */
void pfs_log_open(enum pfs_log_level level, bool to_syslog);

/* Logs "primefs: ", the message and a newline. Does not change errno. */
void pfs_log(enum pfs_log_level level, const char *format, ...) PFS_PRINTF(2, 3);

#define pfs_error(...)   pfs_log(PFS_LOG_ERROR, __VA_ARGS__)
#define pfs_warning(...) pfs_log(PFS_LOG_WARNING, __VA_ARGS__)
#define pfs_notice(...)	 pfs_log(PFS_LOG_NOTICE, __VA_ARGS__)
#define pfs_info(...)    pfs_log(PFS_LOG_INFO, __VA_ARGS__)
#define pfs_debug(...)   pfs_log(PFS_LOG_DEBUG, __VA_ARGS__)

#endif
