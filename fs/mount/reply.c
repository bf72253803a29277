/* SPDX-License-Identifier: MIT */
#include "fs/mount/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

int pfs_reply_print(struct pfs_reply *reply, const char *format, ...)
{
	char *text PFS_FREE = NULL;
	va_list values;
	int n;

	va_start(values, format);
	n = vasprintf(&text, format, values);
	va_end(values);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return pfs_reply_write(reply, text, (size_t)n);
}

int pfs_reply_fail(struct pfs_reply *reply, int status, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	(void)vsnprintf(reply->message, sizeof(reply->message), format, values);
	va_end(values);
	return status;
}
