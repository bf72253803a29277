/* SPDX-License-Identifier: MIT */
/* base/err.h - the convention for errors, and attributes that enforce it. A function that can fail
 * returns 0 or a negative errno, and gives data through out-parameters, which it writes only on
 * success. The function that turns a library's error into an errno logs it. */
#ifndef PFS_BASE_ERR_H
#define PFS_BASE_ERR_H

#include <errno.h>

#define PFS_MUST_CHECK __attribute__((warn_unused_result))
#define PFS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define PFS_UNUSED __attribute__((unused))
/* For a function that is seldom called: its caller, which mostly does not call it, then saves no
 * registers. */
#define PFS_SELDOM __attribute__((noinline))

/* Makes the calling function return the call's value, unless that is 0. */
#define PFS_TRY(call)                                                                              \
	do {                                                                                       \
		int pfs_try_error = (call);                                                        \
		if (pfs_try_error)                                                                 \
			return pfs_try_error;                                                      \
	} while (0)

/* The number of elements of an array (not of a pointer). */
#define PFS_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#if defined(PFS_VERIFY) && !defined(NDEBUG) /* invariants, checked in `make VERIFY=1` builds only  \
					     */
#include <assert.h>
#define PFS_VERIFY_CHECK(condition) assert(condition)
#elif defined(PFS_VERIFY) /* what is looked at for a check has been made */
#define PFS_VERIFY_CHECK(condition) ((void)sizeof(condition))
#else
#define PFS_VERIFY_CHECK(condition) ((void)0)
#endif

#endif
