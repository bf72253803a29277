/* SPDX-License-Identifier: MIT */
/* Blocks are filled elsewhere, and mremap puts them where they belong: whoever touches one meanwhile finds no
 * memory there, and waits for it in the handler.  Elsewhere is memory as large, at the same distance for each block:
 * so the kernel makes one mapping of neighbours. */
#include "base/lazy.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"

#define REGIONS	   1024u
#define GROUP	   ((size_t)256 << 10) /* bytes that are filled at once where more than one block is */
#define GROUPS_MAX 512u
#define ALONE_MAX  8192u /* blocks of the process that are filled one by one */

enum block { ABSENT, FILLING, AWAITED, FILLED };

struct pfs_lazy {
	char *memory, *elsewhere;
	size_t size, block_size;
	uint64_t n_blocks, group; /* blocks */
	pfs_lazy_fill *fill;
	void *context;
	_Atomic uint64_t n_filled;
	_Atomic uint32_t blocks[]; /* enum block, each a futex */
};

/* All there are.  A handler pins an entry while it looks at it. */
static struct region {
	_Atomic(struct pfs_lazy *) lazy;
	_Atomic uint32_t pins;
} regions[REGIONS];
static _Atomic uint32_t n_regions; /* used at some time */
static _Atomic uint32_t n_alone;
static struct sigaction before;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of opening and closing */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- filling ---- */

static bool is_under_way(_Atomic uint32_t *block)
{
	uint32_t state = atomic_load(block);

	return state == FILLING || state == AWAITED;
}

static void await(_Atomic uint32_t *block)
{
	const struct timespec soon = {.tv_nsec = 10000000};
	uint32_t filling = FILLING;

	(void)atomic_compare_exchange_strong(block, &filling, AWAITED);
	(void)syscall(SYS_futex, block, FUTEX_WAIT, AWAITED, &soon, NULL, 0);
}

/* What there is of whole pages from that block on. */
static size_t whole_pages(const struct pfs_lazy *lazy, uint64_t first, uint64_t count)
{
	size_t page = page_size(), at = first * lazy->block_size;

	return pfs_div_round_up(PFS_MIN(lazy->size - at, count * lazy->block_size), page) * page;
}

/* Memory may be short for a moment only; there is nothing else that could be done. */
static void put(const struct pfs_lazy *lazy, uint64_t first, uint64_t count)
{
	const struct timespec soon = {.tv_nsec = 10000000};
	size_t at = first * lazy->block_size, size = whole_pages(lazy, first, count);

	while (mremap(lazy->elsewhere + at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		      lazy->memory + at) == MAP_FAILED)
		(void)nanosleep(&soon, NULL);
}

static bool claim(struct pfs_lazy *lazy, uint64_t number)
{
	uint32_t absent = ABSENT;

	return atomic_compare_exchange_strong(&lazy->blocks[number], &absent, FILLING);
}

/* Fills the block, which is claimed, and what is absent of its group around it, if that is wanted. */
static void fill(struct pfs_lazy *lazy, uint64_t number)
{
	uint64_t first = number, end = number + 1, begin = number / lazy->group * lazy->group;
	uint64_t limit = PFS_MIN(begin + lazy->group, lazy->n_blocks);
	bool many = atomic_load(&n_alone) >= ALONE_MAX;

	if (many || (number && atomic_load(&lazy->blocks[number - 1]) == FILLED))
		while (end < limit && claim(lazy, end))
			end++;
	else
		(void)atomic_fetch_add(&n_alone, 1);
	while (many && first > begin && claim(lazy, first - 1))
		first--;
	if (end - first > 1) /* a fault for all of them */
		(void)madvise(lazy->elsewhere + first * lazy->block_size, whole_pages(lazy, first, end - first),
			      MADV_POPULATE_WRITE);
	lazy->fill(lazy->context, lazy->elsewhere + first * lazy->block_size, first, end - first,
		   PFS_MIN(lazy->size, end * lazy->block_size) - first * lazy->block_size);
	put(lazy, first, end - first);
	(void)atomic_fetch_add(&lazy->n_filled, end - first);
	for (; first < end; first++)
		if (atomic_exchange(&lazy->blocks[first], FILLED) == AWAITED)
			(void)syscall(SYS_futex, &lazy->blocks[first], FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* By this thread, or by whoever is at it. */
static void provide(struct pfs_lazy *lazy, uint64_t number)
{
	if (claim(lazy, number))
		fill(lazy, number);
	while (is_under_way(&lazy->blocks[number]))
		await(&lazy->blocks[number]);
}

static bool reaches(const struct pfs_lazy *lazy, const char *address)
{
	return lazy && address >= lazy->memory &&
	       (size_t)(address - lazy->memory) < whole_pages(lazy, 0, lazy->n_blocks);
}

/* Whether the address is one of such memory, which there is now. */
static bool answer(const char *address)
{
	uint32_t n = atomic_load(&n_regions);

	for (uint32_t i = 0; i < n; i++) {
		struct region *region = &regions[i];
		struct pfs_lazy *lazy;
		bool found;

		(void)atomic_fetch_add(&region->pins, 1);
		lazy = atomic_load(&region->lazy);
		found = reaches(lazy, address);
		if (found)
			provide(lazy, (size_t)(address - lazy->memory) / lazy->block_size);
		(void)atomic_fetch_sub(&region->pins, 1);
		if (found)
			return true;
	}
	return false;
}

/* What is not ours is as it would be without us: it happens again at once. */
static void handle(int number, siginfo_t *info, void *context PFS_UNUSED)
{
	int error = errno;
	sigset_t faults;

	(void)sigemptyset(&faults); /* of what is touched meanwhile: ThreadSanitizer blocks all */
	(void)sigaddset(&faults, SIGSEGV);
	(void)pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
	if (info->si_code <= 0 || !answer(info->si_addr)) /* sent by somebody, or not ours */
		(void)sigaction(number, &before, NULL);
	errno = error;
}

/* Whoever was filling it is not in the child: he may have come to moving it. */
static void leave_off(struct pfs_lazy *lazy, uint64_t number)
{
	unsigned char there;
	bool moved = mincore(lazy->elsewhere + number * lazy->block_size, page_size(), &there) != 0;

	if (is_under_way(&lazy->blocks[number]))
		atomic_store(&lazy->blocks[number], moved ? FILLED : ABSENT);
}

static void begin_child(void)
{
	for (uint32_t i = 0; i < atomic_load(&n_regions); i++) {
		struct pfs_lazy *lazy = atomic_load(&regions[i].lazy);

		atomic_store(&regions[i].pins, 0);
		for (uint64_t k = 0; lazy && k < lazy->n_blocks; k++)
			if (is_under_way(&lazy->blocks[k]))
				leave_off(lazy, k);
	}
}

static void begin(void)
{
	(void)pthread_atfork(NULL, NULL, begin_child);
}

/* Somebody may have put another one in its place since the last time (the tests' framework does). */
static void catch_faults(void)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
	struct sigaction now;

	(void)sigemptyset(&action.sa_mask);
	if (sigaction(SIGSEGV, NULL, &now) || now.sa_sigaction == handle)
		return;
	before = now;
	(void)sigaction(SIGSEGV, &action, NULL);
}

/* ---- life ---- */

static int enter(struct pfs_lazy *lazy)
{
	int error = -ENOMEM;

	(void)pthread_mutex_lock(&lock);
	catch_faults();
	for (uint32_t i = 0; i < REGIONS && error; i++) {
		if (atomic_load(&regions[i].lazy))
			continue;
		atomic_store(&regions[i].lazy, lazy);
		if (i >= atomic_load(&n_regions))
			atomic_store(&n_regions, i + 1);
		error = 0;
	}
	(void)pthread_mutex_unlock(&lock);
	return error;
}

int pfs_lazy_open(struct pfs_lazy **out, void *memory, size_t size, size_t block_size,
		  pfs_lazy_fill *fill_block, void *context)
{
	uint64_t n_blocks;
	size_t whole = pfs_div_round_up(size, page_size()) * page_size();
	struct pfs_lazy *lazy;

	*out = NULL;
	if (!size || !block_size)
		return 0;
	n_blocks = pfs_div_round_up(size, block_size);
	lazy = calloc(1, sizeof(*lazy) + n_blocks * sizeof(lazy->blocks[0]));
	if (!lazy)
		return -ENOMEM;
	lazy->memory = memory;
	lazy->size = size;
	lazy->block_size = block_size;
	lazy->n_blocks = n_blocks;
	lazy->fill = fill_block;
	lazy->context = context;
	lazy->group = PFS_MAX(GROUP, size / GROUPS_MAX) / block_size;
	lazy->elsewhere = mmap(NULL, whole, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	(void)pthread_once(&once, begin);
	if (lazy->elsewhere == MAP_FAILED || mprotect(memory, whole, PROT_NONE) || enter(lazy)) {
		if (lazy->elsewhere != MAP_FAILED)
			(void)munmap(lazy->elsewhere, whole);
		free(lazy);
		return -ENOMEM;
	}
	*(volatile char *)lazy->elsewhere = 0; /* before it is split: parts of one mapping can become one again */
	*out = lazy;
	return 0;
}

void pfs_lazy_close(struct pfs_lazy *lazy)
{
	if (!lazy)
		return;
	for (uint32_t i = 0; i < atomic_load(&n_regions); i++) {
		if (atomic_load(&regions[i].lazy) != lazy)
			continue;
		atomic_store(&regions[i].lazy, NULL);
		while (atomic_load(&regions[i].pins)) /* of who looks for another one's address */
			(void)sched_yield();
	}
	for (uint64_t i = 0, first; i < lazy->n_blocks; i++) { /* what was moved may be somebody else's by now */
		for (first = i; i < lazy->n_blocks && atomic_load(&lazy->blocks[i]) != FILLED; i++)
			continue;
		if (i > first)
			(void)munmap(lazy->elsewhere + first * lazy->block_size,
				     whole_pages(lazy, first, i - first));
	}
	free(lazy);
}

bool pfs_lazy_is_filled(const struct pfs_lazy *lazy, uint64_t number)
{
	return atomic_load(&lazy->blocks[number]) == FILLED;
}

uint64_t pfs_lazy_filled(const struct pfs_lazy *lazy)
{
	return lazy ? atomic_load(&lazy->n_filled) : 0;
}

void pfs_lazy_touch(const void *memory, size_t size)
{
	const volatile char *at = memory;
	size_t page = page_size();

	for (size_t i = 0; i < size; i += page)
		(void)at[i];
	if (size)
		(void)at[size - 1];
}
