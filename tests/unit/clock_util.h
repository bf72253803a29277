/* SPDX-License-Identifier: MIT */
/* tests/unit/clock_util.h - clocks that a test puts on.  A test that includes it has clock_gettime
 * wrapped (tests/wrap.mk). */
#ifndef PFS_TESTS_UNIT_CLOCK_UTIL_H
#define PFS_TESTS_UNIT_CLOCK_UTIL_H

#include <time.h>

static _Atomic unsigned seconds_later;

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	int error = __real_clock_gettime(id, out);

	out->tv_sec += (time_t)seconds_later;
	return error;
}
/* NOLINTEND(bugprone-reserved-identifier) */

#endif
