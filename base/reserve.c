/* SPDX-License-Identifier: MIT */
#include "base/reserve.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/checked.h"

#define STEP ((size_t)1 << 20)
#define HUGE_MIN ((size_t)8 << 20)

/* If address space is limited (ulimit -v), an array that may become LARGEST, as those of eight
 * bytes a node may, reserves this part of it, and a smaller one as much less: so all are full at
 * about as many nodes. A tree's arrays take a third of the space, and a command may have two
 * trees. */
#define PART_OF_LIMIT 32
#define LARGEST	      ((size_t)8 << 30)

static rlim_t space(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

bool pfs_space_is_limited(void)
{
	return space() != RLIM_INFINITY;
}

static size_t allowed(size_t limit)
{
	double part;

	if (!pfs_space_is_limited())
		return limit;
	part = (double)space() / PART_OF_LIMIT * (double)PFS_MIN(limit, LARGEST) / (double)LARGEST;
	return PFS_MIN(limit, (size_t)part);
}

static int open_exactly(struct pfs_reserve *reserve, size_t limit)
{
	void *base;

	limit = PFS_MAX(pfs_div_round_up(limit, STEP), 1) * STEP;
	base = mmap(NULL, limit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -ENOMEM;
	*reserve = (struct pfs_reserve){.base = base, .limit = limit};
	return 0;
}

int pfs_reserve_open(struct pfs_reserve *reserve, size_t limit)
{
	return open_exactly(reserve, allowed(limit));
}

int pfs_reserve_whole(struct pfs_reserve *reserve, size_t size)
{
	int error = open_exactly(reserve, size);

	if (!error)
		error = pfs_reserve_grow(reserve, size);
	if (error)
		pfs_reserve_close(reserve);
	return error;
}

void pfs_reserve_close(struct pfs_reserve *reserve)
{
	if (reserve->base)
		(void)munmap(reserve->base, reserve->limit);
	*reserve = (struct pfs_reserve){0};
}

int pfs_reserve_grow(struct pfs_reserve *reserve, size_t size)
{
	size_t wanted;

	if (size <= reserve->committed)
		return 0;
	if (size > reserve->limit)
		return -ENOMEM;
	wanted = PFS_MAX(size, reserve->committed + reserve->committed / 8);
	wanted = PFS_MIN(pfs_div_round_up(wanted, STEP) * STEP, reserve->limit);
	if (mprotect((char *)reserve->base + reserve->committed, wanted - reserve->committed,
		     PROT_READ | PROT_WRITE) != 0)
		return -ENOMEM;
	reserve->committed = wanted;
	return 0;
}

void pfs_expect_filled(void *memory, size_t size)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	size_t skip = (size_t)(-(uintptr_t)memory % page);

	if (size >= HUGE_MIN)
		(void)madvise((char *)memory + skip, (size - skip) / page * page, MADV_HUGEPAGE);
}

uint64_t pfs_quarter_of_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);

	return pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size / 4
					  : UINT64_C(1) << 30;
}

void pfs_reserve_clear(struct pfs_reserve *reserve)
{
	if (reserve->committed && madvise(reserve->base, reserve->committed, MADV_DONTNEED) != 0)
		memset(reserve->base, 0, reserve->committed);
}
