/* SPDX-License-Identifier: MIT */
/* base/clock.h - clocks, in nanoseconds, for measuring and for waiting; and conversions between the
 * types for times of files.
 * Threads: any number of callers. */
#ifndef PFS_BASE_CLOCK_H
#define PFS_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define PFS_NS_PER_S  INT64_C(1000000000)
#define PFS_NS_PER_MS INT64_C(1000000)

/* A time since 1970. sec may be any number; nsec is less than 1,000,000,000. */
struct pfs_time {
	int64_t sec;
	uint32_t nsec;
};

static inline struct pfs_time pfs_time_of(struct timespec time)
{
	return (struct pfs_time){.sec = time.tv_sec, .nsec = (uint32_t)time.tv_nsec};
}

static inline struct timespec pfs_timespec_of(struct pfs_time time)
{
	return (struct timespec){.tv_sec = time.sec, .tv_nsec = time.nsec};
}

static inline struct timespec pfs_timespec_of_statx(struct statx_timestamp time)
{
	return (struct timespec){.tv_sec = time.tv_sec, .tv_nsec = time.tv_nsec};
}

/* Returns true if both are the same time. */
static inline bool pfs_is_time(struct pfs_time a, struct timespec b)
{
	return a.sec == b.tv_sec && a.nsec == (uint32_t)b.tv_nsec;
}

/* Returns nanoseconds since 1970. The time must be in 1677..2262, as those of clocks are. */
static inline int64_t pfs_timespec_ns(struct timespec time)
{
	return time.tv_sec * PFS_NS_PER_S + time.tv_nsec;
}

/* Returns the time of a clock. */
static inline int64_t pfs_clock_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return pfs_timespec_ns(now);
}

/* Returns the nanoseconds since some fixed moment. It never falls. */
static inline uint64_t pfs_now_ns(void)
{
	return (uint64_t)pfs_clock_ns(CLOCK_MONOTONIC);
}

/* Returns the milliseconds since the same moment. */
static inline uint64_t pfs_now_ms(void)
{
	return pfs_now_ns() / PFS_NS_PER_MS;
}

/* Returns the seconds since the same moment. */
static inline double pfs_now_s(void)
{
	return (double)pfs_now_ns() / 1e9;
}

/* Returns the clock's time in `ms` milliseconds from now, for functions that wait until a time. */
static inline struct timespec pfs_clock_in_ms(clockid_t clock, uint64_t ms)
{
	int64_t ns = pfs_clock_ns(clock) + (int64_t)ms * PFS_NS_PER_MS;

	return (struct timespec){.tv_sec = ns / PFS_NS_PER_S, .tv_nsec = ns % PFS_NS_PER_S};
}

#endif
