/* SPDX-License-Identifier: MIT */
/* tests/unit/origin_util.h - a folder that a store's files are linked to. */
#ifndef PFS_TESTS_UNIT_ORIGIN_UTIL_H
#define PFS_TESTS_UNIT_ORIGIN_UTIL_H

#include "content_util.h"

static char origin[128]; /* the imported folder */

static inline const char *path_of(const char *name)
{
	static char paths[2][512]; /* for calls that take two */
	static unsigned turn;
	char *path = paths[turn++ % 2];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", origin, name);
	return path;
}

#endif
