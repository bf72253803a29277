/* SPDX-License-Identifier: MIT */
#include "gpu/run.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/later.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define LARGE	  (2 * HUGE_PAGE)

static int charge(const struct pfs_run *run, size_t *size, size_t count, size_t element_size)
{
	if (__builtin_mul_overflow(count, element_size, size) || *size > INT64_MAX / 2)
		return -ENOMEM;
	return run->charge ? run->charge(run->context, (int64_t)*size) : 0;
}

static void give_back(const struct pfs_run *run, size_t size)
{
	if (run->charge)
		(void)run->charge(run->context, -(int64_t)size);
}

/* Threads that touch new memory wait for each other at each page. */
static void prefer_huge_pages(void *memory, size_t size)
{
	char *from = memory, *to = from + size;

	from += -(uintptr_t)from % HUGE_PAGE;
	to -= (uintptr_t)to % HUGE_PAGE;
	if (from < to)
		(void)madvise(from, (size_t)(to - from), MADV_HUGEPAGE);
}

static int allocate(const struct pfs_run *run, void *out, size_t count, size_t element_size,
		    bool clear)
{
	void **pointer = out;
	size_t size;

	*pointer = NULL;
	PFS_TRY(charge(run, &size, count, element_size));
	/* no elements have a pointer, too */
	*pointer = clear ? calloc(1, size + 1) : malloc(size + 1);
	if (*pointer && size >= LARGE)
		prefer_huge_pages(*pointer, size);
	if (*pointer)
		return 0;
	give_back(run, size);
	return -ENOMEM;
}

int pfs_run_alloc(const struct pfs_run *run, void *out, size_t count, size_t element_size)
{
	return allocate(run, out, count, element_size, true);
}

int pfs_run_alloc_raw(const struct pfs_run *run, void *out, size_t count, size_t element_size)
{
	return allocate(run, out, count, element_size, false);
}

void pfs_run_free(const struct pfs_run *run, void *memory, size_t count, size_t element_size)
{
	if (!memory)
		return;
	pfs_free_later(memory);
	give_back(run, count * element_size);
}
