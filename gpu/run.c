/* SPDX-License-Identifier: MIT */
#include "gpu/run.h"

#include <stdbool.h>
#include <stdlib.h>

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

static int allocate(const struct pfs_run *run, void *out, size_t count, size_t element_size,
		    bool clear)
{
	void **pointer = out;
	size_t size;

	*pointer = NULL;
	PFS_TRY(charge(run, &size, count, element_size));
	*pointer = clear ? calloc(1, size + 1) : malloc(size + 1); /* of nothing, too, a pointer */
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
	free(memory);
	give_back(run, count * element_size);
}
