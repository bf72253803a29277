/* SPDX-License-Identifier: MIT */
/* base/clock.h - the monotonic clock, for measuring how long something took. Threads: any number of
 * callers. */
#ifndef PFS_BASE_CLOCK_H
#define PFS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns the nanoseconds since some fixed moment; never goes backwards. */
static inline uint64_t pfs_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns the milliseconds since the same moment. */
static inline uint64_t pfs_now_ms(void)
{
	return pfs_now_ns() / 1000000;
}

#endif
