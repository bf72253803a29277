/* SPDX-License-Identifier: MIT */
/* A block is filled and verified in memory of its own; then the kernel copies it to its place, page
 * by page. A block of nothing but zeros gets the kernel's page of zeros, which takes no memory
 * until somebody writes there. The first block that is touched of some that lie together is filled
 * alone, since it may be the only one: a directory's entries lie anywhere in each of many columns.
 * With the second one its neighbours are filled, as many as take no longer than the fault takes in
 * the kernel; while few blocks of all parts are filled, only after half of them was touched, so
 * that a listing of a few hundred entries takes little memory. If blocks are filled one behind the
 * other, that looks like a scan, and as many further blocks are filled as have been so far. */
#include "base/lazy_impl.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "base/thread.h"

#ifndef UFFD_USER_MODE_ONLY /* Linux 5.11 */
#define UFFD_USER_MODE_ONLY 1
#endif

#define AROUND	  ((size_t)64 << 10) /* bytes, from such an address on, that are filled together */
#define FEW	  8192u /* blocks: until so many are filled, memory counts for more than time */
#define AHEAD_MAX ((size_t)1 << 20) /* bytes that are filled together */
#define PIECE	  ((size_t)256 << 10) /* bytes that one thread fills at a time */
/* time without a block to fill before stretches are joined; most commands end before */
#define IDLE_MS	  1000

/* All that have been started, for pfs_lazy_touch. */
static pthread_mutex_t started_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pfs_lazy *started;

static size_t page_size(void)
{
	return (size_t)getpagesize();
}

static size_t whole_pages(size_t size)
{
	return pfs_div_round_up(size, page_size()) * page_size();
}

static void wait_for_memory(void)
{
	const struct timespec soon = {.tv_nsec = 10000000};

	(void)nanosleep(&soon, NULL);
}

/* ---- filling ---- */

struct range {
	uint64_t first, end; /* blocks */
};

static bool is_absent(const struct pfs_lazy_part *part, uint64_t number)
{
	return pfs_lazy_state(part, number) < FILLING;
}

static void set_state(struct pfs_lazy_part *part, uint64_t first, uint64_t end, enum block state)
{
	for (; first < end; first++)
		atomic_store_explicit(&part->blocks[first], (uint8_t)state, memory_order_release);
}

/* Makes the kernel put pages where there are none; returns how many bytes it has put, or -1 if
 * none. */
static ssize_t put_pages(const struct pfs_lazy *lazy, uintptr_t to, const char *from, size_t size)
{
	struct uffdio_copy copy = {.dst = to, .src = (uintptr_t)from, .len = size};
	struct uffdio_zeropage zeros = {.range = {.start = to, .len = size}};

	if (from)
		return ioctl(lazy->faults, UFFDIO_COPY, &copy) == 0 ? (ssize_t)size
								    : (ssize_t)copy.copy;
	return ioctl(lazy->faults, UFFDIO_ZEROPAGE, &zeros) == 0 ? (ssize_t)size
								 : (ssize_t)zeros.zeropage;
}

/* Puts the bytes, or zeros if `from` is NULL, in their place. If memory is short it tries again,
 * since nothing else can be done. A page that is there already stays as it is. After other errors
 * it gives up: the memory has been unmapped, and no thread waits for it. */
static void put_all_pages(const struct pfs_lazy *lazy, const char *to, const char *from,
			  size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = put_pages(lazy, (uintptr_t)to + done, from ? from + done : NULL,
				      size - done);

		if (n > 0)
			done += (size_t)n;
		else if (errno == EEXIST)
			done += page_size();
		else if (errno == ENOMEM)
			wait_for_memory();
		else if (errno != EAGAIN) /* EAGAIN: the kernel is about to change the mappings */
			return;
	}
}

static bool are_zeros(const char *bytes, size_t size)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

/* Puts blocks that are all to be FILLED, or all to be ZEROS. */
static void put(struct pfs_lazy_part *part, struct range its, const char *bytes, size_t size,
		enum block state)
{
	struct pfs_lazy *lazy = part->lazy;
	char *to = part->memory + its.first * part->block_size;

	(void)pthread_rwlock_rdlock(&lazy->putting);
	if (lazy->faults >= 0)
		put_all_pages(lazy, to, state == FILLED ? bytes : NULL, size);
	else if (state == FILLED) /* the memory has zeros before */
		memcpy(to, bytes, size);
	(void)pthread_mutex_lock(&lazy->lock);
	(void)atomic_fetch_add(&lazy->n_filled, its.end - its.first);
	set_state(part, its.first, its.end, state);
	(void)pthread_cond_broadcast(&lazy->filled);
	(void)pthread_mutex_unlock(&lazy->lock);
	(void)pthread_rwlock_unlock(&lazy->putting);
}

/* Puts blocks, run by run. */
static void put_runs(struct pfs_lazy_part *part, struct range its, const char *bytes, size_t size)
{
	while (its.first < its.end) {
		struct range run = {its.first, its.first};
		size_t done = 0, n;
		enum block state = ZEROS;

		for (; run.end < its.end; run.end++, done += n) {
			n = PFS_MIN(size - done, part->block_size);
			if (run.end == run.first)
				state = are_zeros(bytes, n) ? ZEROS : FILLED;
			else if (are_zeros(bytes + done, n) != (state == ZEROS))
				break;
		}
		put(part, run, bytes, done, state);
		its.first = run.end;
		bytes += done;
		size -= done;
	}
}

/* Blocks that this thread has claimed. */
static void fill(struct pfs_lazy_part *part, uint64_t first, uint64_t end)
{
	size_t at = first * part->block_size,
	       size = PFS_MIN(part->size, end * part->block_size) - at;
	char *bytes PFS_FREE = NULL;

	while ((bytes = calloc(1, whole_pages(size))) == NULL)
		wait_for_memory();
	part->fill(part->context, bytes, first, end - first, size);
	put_runs(part, (struct range){first, end}, bytes, whole_pages(size));
}

/* Returns how many blocks to fill from this one on: as many as are filled right before it. */
static uint64_t ahead(const struct pfs_lazy_part *part, uint64_t number)
{
	uint64_t most = PFS_MAX(AHEAD_MAX / part->block_size, 1), n = 0;

	while (n < most && n < number && pfs_lazy_is_there(part, number - n - 1))
		n++;
	return PFS_MAX(n, 1);
}

/* Claims the block, if nobody has it, and with it those around it, from `low` to before `high`,
 * that nobody has. */
static struct range claim(struct pfs_lazy_part *part, uint64_t low, uint64_t number, uint64_t high)
{
	struct range its = {number, number};
	PFS_LOCKED(&part->lazy->lock);

	while (its.end < PFS_MIN(high, part->n_blocks) && is_absent(part, its.end))
		its.end++;
	while (its.end > number && its.first > low && is_absent(part, its.first - 1))
		its.first--;
	set_state(part, its.first, its.end, FILLING);
	return its;
}

static void await(struct pfs_lazy_part *part, uint64_t number)
{
	PFS_LOCKED(&part->lazy->lock);

	while (pfs_lazy_state(part, number) == FILLING)
		(void)pthread_cond_wait(&part->lazy->filled, &part->lazy->lock);
}

static void provide(struct pfs_lazy_part *part, uint64_t number, uint64_t n)
{
	struct range its = claim(part, number, number, number + n);

	if (its.end > number)
		fill(part, its.first, its.end);
	else
		await(part, number);
}

void pfs_lazy_provide(struct pfs_lazy_part *part, size_t at, size_t size)
{
	uint64_t end, most, least = 0;

	if (!part || !size || at >= part->size)
		return;
	end = pfs_div_round_up(PFS_MIN(at + size, part->size), part->block_size);
	most = PFS_MAX(AHEAD_MAX / part->block_size, 1);
	for (uint64_t i = at / part->block_size; i < end; i++)
		if (!pfs_lazy_is_there(part, i)) {
			least = least ? 1 : ahead(part, i);
			provide(part, i, PFS_MAX(PFS_MIN(end - i, most), least));
		}
}

/* Returns the first part that has bytes in from..end, or NULL. */
static struct pfs_lazy_part *next_part(const char *from, const char *end)
{
	struct pfs_lazy_part *next = NULL;
	PFS_LOCKED(&started_lock);

	for (struct pfs_lazy *lazy = started; lazy; lazy = lazy->next)
		for (unsigned i = 0; i < lazy->n_parts; i++) {
			struct pfs_lazy_part *part = &lazy->parts[i];

			if (part->memory < end && part->memory + part->size > from &&
			    (!next || part->memory < next->memory))
				next = part;
		}
	return next;
}

void pfs_lazy_touch(const void *memory, size_t size)
{
	const char *from = memory, *end = from + size;
	struct pfs_lazy_part *part;

	while (from < end && (part = next_part(from, end)) != NULL) {
		from = PFS_MAX(from, (const char *)part->memory);
		pfs_lazy_provide(part, (size_t)(from - part->memory), (size_t)(end - from));
		from = part->memory + part->size;
	}
}

/* Returns true if the block was ABSENT, which makes it SEEN. */
static bool see(struct pfs_lazy_part *part, uint64_t number)
{
	if (pfs_lazy_state(part, number) != ABSENT)
		return false;

	PFS_LOCKED(&part->lazy->lock);

	if (pfs_lazy_state(part, number) != ABSENT)
		return false;
	set_state(part, number, number + 1, SEEN);
	return true;
}

void pfs_lazy_get(struct pfs_lazy_part *part, void *to, size_t at, size_t size)
{
	uint64_t number = at / part->block_size;
	size_t begin = number * part->block_size;
	char *bytes PFS_FREE = NULL;

	if (see(part, number) && (bytes = calloc(1, part->block_size)) != NULL) {
		part->fill(part->context, bytes, number, 1,
			   PFS_MIN(part->size - begin, part->block_size));
		memcpy(to, bytes + (at - begin), size);
	} else {
		memcpy(to, part->memory + at, size);
	}
}

/* ---- all of it ---- */

struct piece {
	struct pfs_lazy_part *part;
	uint64_t first, n_pieces; /* first is the number of its first piece */
};

struct pieces {
	struct piece of[PFS_LAZY_PARTS];
	unsigned n;
};

static void fill_piece(struct pfs_lazy_part *part, uint64_t number)
{
	pfs_lazy_provide(part, number * PIECE, PIECE);
}

static void fill_pieces(void *context, size_t from, size_t to)
{
	const struct pieces *pieces = context;

	for (; from < to; from++)
		for (unsigned i = 0; i < pieces->n; i++)
			if (from >= pieces->of[i].first &&
			    from - pieces->of[i].first < pieces->of[i].n_pieces)
				fill_piece(pieces->of[i].part, from - pieces->of[i].first);
}

void pfs_lazy_fill_all(struct pfs_lazy *lazy)
{
	struct pieces pieces = {.n = lazy->n_parts};
	struct pfs_pool *pool = NULL;
	uint64_t n = 0;

	for (unsigned i = 0; i < lazy->n_parts; i++) {
		uint64_t its = pfs_div_round_up(lazy->parts[i].size, PIECE);

		pieces.of[i] = (struct piece){&lazy->parts[i], n, its};
		n += its;
	}
	if (lazy->is_child || pfs_pool_open(&pool, 0, 0)) {
		fill_pieces(&pieces, 0, n);
		return;
	}
	pfs_pool_run(pool, n, 1, fill_pieces, &pieces);
	pfs_pool_close(pool);
}

/* ---- who stands by ---- */

static struct pfs_lazy_part *find_part(struct pfs_lazy *lazy, const char *address)
{
	for (unsigned i = 0; i < lazy->n_parts; i++) {
		struct pfs_lazy_part *part = &lazy->parts[i];

		if (address >= part->memory &&
		    (size_t)(address - part->memory) < whole_pages(part->size))
			return part;
	}
	return NULL;
}

/* Returns true if so many of these blocks have been touched that the others are filled, too. */
static bool are_touched(const struct pfs_lazy_part *part, uint64_t first, uint64_t end)
{
	bool frugal = atomic_load(&part->lazy->n_filled) < FEW;
	uint64_t wanted = frugal ? PFS_MAX((end - first) / 2, 1) : 1, n = 0;

	for (uint64_t i = first; i < PFS_MIN(end, part->n_blocks) && n < wanted; i++)
		n += !is_absent(part, i);
	return n == wanted;
}

/* Fills the block at this address. The thread that fills a block wakes those that wait for it; they
 * may have begun to wait just when it was filled. */
static void answer(struct pfs_lazy *lazy, uintptr_t address)
{
	struct uffdio_range range = {.start = address / page_size() * page_size(),
				     .len = page_size()};
	struct pfs_lazy_part *part = find_part(lazy, (const char *)address); /* NOLINT(performance-no-int-to-ptr): the kernel's */
	uint64_t number, low, high, n;
	struct range its;

	if (!part)
		return;
	number = (address - (uintptr_t)part->memory) / part->block_size;
	n = PFS_MAX(AROUND / part->block_size, 1);
	low = number / n * n;
	high = low + n;
	if (!are_touched(part, low, high)) {
		low = number;
		high = number + 1;
	}
	its = claim(part, low, number, PFS_MAX(high, number + ahead(part, number)));
	if (its.end > number)
		fill(part, its.first, its.end);
	else if (pfs_lazy_is_there(part, number))
		(void)ioctl(lazy->faults, UFFDIO_WAKE, &range);
}

/* Waits for something to do, and joins stretches if nothing comes. */
static void await_fault(struct pfs_lazy *lazy, struct pollfd *fds, nfds_t n_fds)
{
	bool is_due = atomic_load(&lazy->n_looked_at) != atomic_load(&lazy->n_filled);

	if (poll(fds, n_fds, is_due ? IDLE_MS : -1) || pthread_mutex_trylock(&lazy->joining))
		return;
	pfs_lazy_join(lazy, fds, n_fds);
	(void)pthread_mutex_unlock(&lazy->joining);
}

static void *stand_by(void *arg)
{
	struct pfs_lazy *lazy = arg;
	struct pollfd fds[] = {{.fd = lazy->faults, .events = POLLIN},
			       {.fd = lazy->ending, .events = POLLIN}};
	struct uffd_msg fault;

	while (!(fds[1].revents & POLLIN)) {
		if (read(lazy->faults, &fault, sizeof(fault)) != sizeof(fault))
			await_fault(lazy, fds, PFS_COUNT(fds));
		else if (fault.event == UFFD_EVENT_PAGEFAULT)
			answer(lazy, (uintptr_t)fault.arg.pagefault.address);
	}
	return NULL;
}

/* Returns a descriptor, or -1. */
static int open_faults(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	struct uffdio_api api = {.api = UFFD_API};

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

bool pfs_lazy_is_possible(void)
{
	int fd PFS_CLOSE = open_faults();

	return fd >= 0;
}

static bool enter(const struct pfs_lazy *lazy)
{
	for (unsigned i = 0; i < lazy->n_parts; i++) {
		struct uffdio_register range = {.range = {(uintptr_t)lazy->parts[i].memory,
							  whole_pages(lazy->parts[i].size)},
						.mode = UFFDIO_REGISTER_MODE_MISSING};

		if (ioctl(lazy->faults, UFFDIO_REGISTER, &range))
			return false;
	}
	return true;
}

/* Starts as many threads as possible, at least one. Requests wait for them, so they have no
 * niceness. */
static bool start_threads(struct pfs_lazy *lazy)
{
	static const struct pfs_thread_kind kind = {"pfs-lazy", 0, PFS_THREAD_STACK};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = processors > 0 ? (unsigned)PFS_MIN(processors, (long)PFS_LAZY_THREADS) : 1;
	sigset_t all, before;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	while (lazy->n_threads < n &&
	       !pfs_thread_start(&lazy->threads[lazy->n_threads], &kind, stand_by, lazy))
		lazy->n_threads++;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return lazy->n_threads > 0;
}

static int start(struct pfs_lazy *lazy)
{
	for (unsigned i = 0; i < lazy->n_parts; i++)
		if (madvise(lazy->parts[i].memory, whole_pages(lazy->parts[i].size), MADV_DONTNEED))
			return -ENOMEM;
	lazy->faults = open_faults();
	lazy->ending = eventfd(0, EFD_CLOEXEC);
	if (lazy->faults >= 0 && lazy->ending >= 0 && start_threads(lazy) && enter(lazy))
		return 0;
	if (lazy->n_threads)
		return -ENOMEM; /* for the kernel's tables */
	if (lazy->faults >= 0)
		(void)close(lazy->faults);
	lazy->faults = -1;
	pfs_lazy_fill_all(lazy);
	return 0;
}

int pfs_lazy_start(struct pfs_lazy *lazy)
{
	PFS_TRY(start(lazy));
	(void)pthread_mutex_lock(&started_lock);
	lazy->next = started;
	started = lazy;
	(void)pthread_mutex_unlock(&started_lock);
	return 0;
}

/* ---- life ---- */

int pfs_lazy_create(struct pfs_lazy **out)
{
	struct pfs_lazy *lazy = calloc(1, sizeof(*lazy));

	*out = lazy;
	if (!lazy)
		return -ENOMEM;
	lazy->faults = lazy->ending = -1;
	(void)pthread_mutex_init(&lazy->lock, NULL);
	(void)pthread_cond_init(&lazy->filled, NULL);
	(void)pthread_rwlock_init(&lazy->putting, NULL);
	(void)pthread_mutex_init(&lazy->joining, NULL);
	return 0;
}

int pfs_lazy_add(struct pfs_lazy *lazy, struct pfs_lazy_part **out, void *memory, size_t size,
		 size_t block_size, pfs_lazy_fill *fill_blocks, void *context)
{
	struct pfs_lazy_part *part = &lazy->parts[lazy->n_parts];

	*out = NULL;
	if (!size)
		return 0;
	if (lazy->n_parts == PFS_LAZY_PARTS)
		return -ENOMEM;
	*part = (struct pfs_lazy_part){.lazy = lazy,
				       .memory = memory,
				       .size = size,
				       .block_size = block_size,
				       .n_blocks = pfs_div_round_up(size, block_size),
				       .fill = fill_blocks,
				       .context = context};
	part->blocks = calloc(part->n_blocks, sizeof(*part->blocks));
	part->joined = calloc(pfs_lazy_stretches(part) + 1, sizeof(*part->joined));
	if (!part->blocks || !part->joined) {
		free(part->blocks);
		free(part->joined);
		return -ENOMEM;
	}
	lazy->n_parts++;
	*out = part;
	return 0;
}

static void close_descriptor(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

static void forget(const struct pfs_lazy *lazy)
{
	PFS_LOCKED(&started_lock);

	for (struct pfs_lazy **at = &started; *at; at = &(*at)->next)
		if (*at == lazy) {
			*at = lazy->next;
			return;
		}
}

void pfs_lazy_close(struct pfs_lazy *lazy)
{
	const uint64_t one = 1;

	if (!lazy)
		return;
	forget(lazy);
	if (lazy->n_threads && !lazy->is_child) {
		(void)!write(lazy->ending, &one, sizeof(one));
		for (unsigned i = 0; i < lazy->n_threads; i++)
			(void)pthread_join(lazy->threads[i], NULL);
	}
	close_descriptor(lazy->faults);
	close_descriptor(lazy->ending);
	for (unsigned i = 0; i < lazy->n_parts; i++) {
		free(lazy->parts[i].blocks);
		free(lazy->parts[i].joined);
	}
	(void)pthread_mutex_destroy(&lazy->lock);
	(void)pthread_cond_destroy(&lazy->filled);
	(void)pthread_rwlock_destroy(&lazy->putting);
	(void)pthread_mutex_destroy(&lazy->joining);
	free(lazy);
}

/* Begins the child of a fork: it has neither the threads that were filling blocks nor the pages of
 * these blocks. */
static void begin_child(struct pfs_lazy *lazy)
{
	close_descriptor(lazy->faults);
	close_descriptor(lazy->ending);
	lazy->faults = lazy->ending = -1;
	lazy->is_child = true;
	(void)pthread_mutex_init(&started_lock, NULL);
	(void)pthread_mutex_init(&lazy->lock, NULL);
	(void)pthread_cond_init(&lazy->filled, NULL);
	(void)pthread_rwlock_init(&lazy->putting, NULL);
	for (unsigned i = 0; i < lazy->n_parts; i++)
		for (uint64_t k = 0; k < lazy->parts[i].n_blocks; k++)
			if (pfs_lazy_state(&lazy->parts[i], k) == FILLING)
				set_state(&lazy->parts[i], k, k + 1, ABSENT);
}

void pfs_lazy_settle(struct pfs_lazy *lazy)
{
	if (!lazy)
		return;
	(void)pthread_rwlock_wrlock(&lazy->putting);
	(void)pthread_rwlock_unlock(&lazy->putting);
}

pid_t pfs_lazy_fork(struct pfs_lazy *lazy)
{
	pid_t child;

	(void)pthread_mutex_lock(&started_lock);
	(void)pthread_rwlock_wrlock(&lazy->putting);
	(void)pthread_mutex_lock(&lazy->lock);
	child = fork();
	if (!child) {
		begin_child(lazy);
		return 0;
	}
	(void)pthread_mutex_unlock(&lazy->lock);
	(void)pthread_rwlock_unlock(&lazy->putting);
	(void)pthread_mutex_unlock(&started_lock);
	return child;
}

bool pfs_lazy_is_filled(const struct pfs_lazy_part *part, uint64_t number)
{
	return pfs_lazy_is_there(part, number);
}

bool pfs_lazy_is_absent(const struct pfs_lazy_part *part, uint64_t number)
{
	return is_absent(part, number);
}

uint64_t pfs_lazy_filled(const struct pfs_lazy *lazy)
{
	return lazy ? atomic_load(&lazy->n_filled) : 0;
}
