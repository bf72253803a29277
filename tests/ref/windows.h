/* SPDX-License-Identifier: MIT */
/* tests/ref/windows.h - random statements with functions of windows. */
#ifndef PFS_TESTS_REF_WINDOWS_H
#define PFS_TESTS_REF_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* As random_statement. */
bool random_windows(FILE *out, uint64_t *seed);

#endif
