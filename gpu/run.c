/* SPDX-License-Identifier: MIT */
#include "gpu/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/later.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define STEP	  ((size_t)256 << 10) /* bytes of an array that grows between two polls */

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

	if (size < HUGE_PAGE)
		return;
	from += -(uintptr_t)from % HUGE_PAGE;
	to -= (uintptr_t)to % HUGE_PAGE;
	if (from < to)
		(void)madvise(from, (size_t)(to - from), MADV_HUGEPAGE);
}

/* Returns memory that begins with a huge page, if it is that large. */
static void *allocate_raw(size_t size)
{
	void *memory;

	if (size < HUGE_PAGE)
		return malloc(size + 1); /* of nothing, too, a pointer */
	return posix_memalign(&memory, HUGE_PAGE, size) == 0 ? memory : NULL;
}

static int allocate(const struct pfs_run *run, void *out, size_t count, size_t element_size,
		    bool clear)
{
	void **pointer = out;
	size_t size;

	*pointer = NULL;
	PFS_TRY(charge(run, &size, count, element_size));
	*pointer = clear ? calloc(1, size + 1) : allocate_raw(size);
	if (!*pointer) {
		give_back(run, size);
		return -ENOMEM;
	}
	prefer_huge_pages(*pointer, size);
	return 0;
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

/* Bytes behind those copied are cleared here and not by calloc, which may do it all at once. */
static int fill_grown(const struct pfs_run *run, char *grown, size_t size, const char *array,
		      size_t copied)
{
	for (size_t done = 0; done < size; done += STEP) {
		size_t end = PFS_MIN(done + STEP, size),
		       copy = PFS_MIN(PFS_MAX(copied, done), end) - done;

		if (done)
			PFS_TRY(pfs_run_poll(run));
		if (copy)
			memcpy(grown + done, array + done, copy);
		memset(grown + done + copy, 0, end - done - copy);
	}
	return 0;
}

int pfs_run_grow(const struct pfs_run *run, void *array, size_t old, size_t count,
		 size_t element_size, bool clear)
{
	void **at = array, *grown;
	size_t copied = *at ? old * element_size : 0;
	int error;

	PFS_TRY(allocate(run, &grown, count, element_size, false));
	error = fill_grown(run, grown, clear ? count * element_size : copied, *at, copied);
	if (error) {
		pfs_run_free(run, grown, count, element_size);
		return error;
	}
	pfs_run_free(run, *at, old, element_size);
	*at = grown;
	return 0;
}
