/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

static enum pfs_log_level threshold = PFS_LOG_INFO;
static bool use_syslog;

void pfs_log_open(enum pfs_log_level level, bool to_syslog)
{
	threshold = level;
	use_syslog = to_syslog;
	if (to_syslog)
		openlog("primefs", LOG_PID, LOG_DAEMON);
}

void pfs_log(enum pfs_log_level level, const char *format, ...)
{
	int saved = errno;
	va_list args;

	if (level > threshold && level != PFS_LOG_NOTICE)
		return;
	va_start(args, format);
	if (use_syslog) {
		vsyslog((int)level, format, args);
	} else {
		flockfile(stderr);
		(void)fputs("primefs: ", stderr);
		(void)vfprintf(stderr, format, args);
		(void)fputc('\n', stderr);
		funlockfile(stderr);
	}
	va_end(args);
	errno = saved;
}
