/* SPDX-License-Identifier: MIT */
/* tests/unit/pathpipe_util.h - files in memory that lists of paths are read from and written to. */
#ifndef PFS_TESTS_UNIT_PATHPIPE_UTIL_H
#define PFS_TESTS_UNIT_PATHPIPE_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Returns a descriptor at the beginning of a new file with these bytes, which the caller closes. */
static inline int file_with(const char *bytes, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

#endif
