/* SPDX-License-Identifier: MIT */
/* The kernel makes pages of 4 KiB of what is filled. With such pages, reading in random order waits
 * twice for most cache lines: for the page's address, and for the line. So a thread that has
 * nothing to fill makes the kernel join whole ranges into large pages. */
#include "base/lazy_impl.h"

#include <sys/mman.h>

#include "base/checked.h"

#define LARGE ((size_t)2 << 20) /* bytes of a large page */

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

size_t pfs_lazy_stretches(const struct pfs_lazy_part *part)
{
	return part->size / LARGE;
}

/* Returns where the stretch begins in the part's memory, beyond whose end the last one may lie. */
static size_t begin_of_stretch(const struct pfs_lazy_part *part, size_t number)
{
	return (size_t)(-(uintptr_t)part->memory % LARGE) + number * LARGE;
}

/* Returns true if the stretch is filled, and not with zeros for the greater part: the kernel's page
 * of them is fast, and takes no memory. */
static bool is_stretch_ready(const struct pfs_lazy_part *part, size_t number)
{
	size_t at = begin_of_stretch(part, number), end = at + LARGE;
	size_t n_zeros = 0, n_bytes = 0;

	if (end > part->size)
		return false;
	for (uint64_t i = at / part->block_size; i < pfs_div_round_up(end, part->block_size); i++) {
		if (!pfs_lazy_is_there(part, i))
			return false;
		if (pfs_lazy_state(part, i) == ZEROS)
			n_zeros++;
		else
			n_bytes++;
	}
	return n_bytes > n_zeros;
}

/* A stretch that the kernel does not join stays as it is. It joins none that has its page of
 * zeros. */
static void join(const struct pfs_lazy_part *part, size_t number)
{
	char *stretch = part->memory + begin_of_stretch(part, number);

	(void)madvise(stretch, LARGE, MADV_POPULATE_WRITE);
	(void)madvise(stretch, LARGE, MADV_COLLAPSE);
}

void pfs_lazy_join(struct pfs_lazy *lazy, struct pollfd *fds, nfds_t n_fds)
{
	const uint64_t n_filled = atomic_load(&lazy->n_filled);

	for (unsigned i = 0; i < lazy->n_parts; i++) {
		struct pfs_lazy_part *part = &lazy->parts[i];

		for (size_t k = 0; k < pfs_lazy_stretches(part); k++) {
			if (part->joined[k] || !is_stretch_ready(part, k))
				continue;
			part->joined[k] = 1;
			join(part, k);
			if (poll(fds, n_fds, 0) > 0)
				return;
		}
	}
	atomic_store(&lazy->n_looked_at, n_filled);
}
