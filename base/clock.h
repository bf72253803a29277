/* SPDX-License-Identifier: MIT */
/* base/clock.h - how long something took. */
#ifndef PFS_BASE_CLOCK_H
#define PFS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment; never backwards. */
static inline uint64_t pfs_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Milliseconds since the same moment. */
static inline uint64_t pfs_now_ms(void)
{
	return pfs_now_ns() / 1000000;
}

#endif
