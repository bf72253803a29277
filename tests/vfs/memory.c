/* SPDX-License-Identifier: MIT */
#include "tests/vfs/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

static _Thread_local int left = -1; /* to be granted; -1: all */
static _Thread_local int refusals;
static _Thread_local bool refused;

void memory_refuse(int granted, int count)
{
	left = granted;
	refusals = count;
	refused = false;
}

bool memory_grant(void)
{
	left = -1;
	return refused;
}

static bool refuse(void)
{
	if (left < 0 || left-- > 0)
		return false;
	left = 0;
	if (refusals == 0) {
		left = -1;
		return false;
	}
	refusals -= refusals > 0;
	refused = true;
	return true;
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t size)
{
	return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return refuse() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return refuse() ? NULL : __real_realloc(old, size);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	if (!refuse())
		return __real_mmap(at, size, prot, flags, fd, offset);
	errno = ENOMEM;
	return MAP_FAILED;
}
/* NOLINTEND(bugprone-reserved-identifier) */
