/* SPDX-License-Identifier: MIT */
/* base/fetch.h - for functions that do nothing but fetch memory into the processor's cache. */
#ifndef PFS_BASE_FETCH_H
#define PFS_BASE_FETCH_H

/* In front of such a function: gcc takes it for one without effect and would leave calls of it out. */
#define PFS_FETCHES static inline __attribute__((always_inline))

#endif
