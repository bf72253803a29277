/* SPDX-License-Identifier: MIT */
/* base/fetch.h - for functions that do nothing but fetch memory into the processor's cache. */
#ifndef PFS_BASE_FETCH_H
#define PFS_BASE_FETCH_H

/* Declares a function that only fetches into the cache: gcc would take it for one without effect
 * and leave out calls of it. */
#define PFS_FETCHES static inline __attribute__((always_inline))

#endif
