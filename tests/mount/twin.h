/* SPDX-License-Identifier: MIT */
/* tests/mount/twin.h - the two folders that tests/mount/twin.c works in, and how they are compared
 * (twin_trees.c). */
#ifndef PFS_TESTS_MOUNT_TWIN_H
#define PFS_TESTS_MOUNT_TWIN_H

#include "tests/mount/probe.h"

enum { SIDES = 2 };

extern int root[SIDES];
extern char context[512]; /* all complaints begin with it */

/* Returns a hash of the bytes, and of those before, whose hash was `hash`. */
uint64_t mix(uint64_t hash, const void *bytes, size_t size);

/* Compares both trees, and fails the probe if they differ. */
void compare(bool contents);

/* Remembers all times; compare_times then fails if those that have changed since the last call are
 * others in one tree than in the other. */
void begin_times(void);
void compare_times(void);

#endif
