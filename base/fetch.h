/* SPDX-License-Identifier: MIT */
/* base/fetch.h - an attribute of functions that only fetch memory into the processor's cache. */
#ifndef PFS_BASE_FETCH_H
#define PFS_BASE_FETCH_H

/* Declares such a function. Unless it is inlined, gcc takes it for a function without effects, and
 * omits calls of it. */
#define PFS_FETCHES static inline __attribute__((always_inline))

#endif
