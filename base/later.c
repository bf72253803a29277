/* SPDX-License-Identifier: MIT */
#include "base/later.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

struct put_off {
	struct put_off *next;
};

/* What this thread has put off. The memory itself is the list. */
static _Thread_local struct {
	bool is_on;
	size_t bytes;
	struct put_off *first;
} later;

void pfs_large_is_given_back(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, PFS_LARGE_MIN);
	(void)mallopt(M_TRIM_THRESHOLD,
		      PFS_LARGE_MIN); /* of the end of a heap; else 128 KiB from then on */
}

void pfs_later_begin(void)
{
	later.is_on = true;
}

void pfs_later_end(void)
{
	later.is_on = false;
	later.bytes = 0;
	while (later.first) {
		struct put_off *first = later.first;

		later.first = first->next;
		free(first);
	}
}

void pfs_free_later(void *memory)
{
	size_t size = later.is_on ? malloc_usable_size(memory) : 0;
	struct put_off *put_off = memory;

	if (size < PFS_LATER_MIN || size > PFS_LATER_MAX - later.bytes) {
		free(memory);
		return;
	}
	put_off->next = later.first;
	later.first = put_off;
	later.bytes += size;
}
