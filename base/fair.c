/* SPDX-License-Identifier: MIT */
/* Each reader adds to one counter when it comes, and to another when it goes. A writer marks the
 * first counter, and waits until as many readers have gone as had come before. Successive writers
 * set different marks. A reader that finds a mark waits until the marks change. If another writer
 * has set them by then, the reader may enter, too: that writer waits for it. */
#include "base/fair.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Marks in `come`: */
#define WRITER 1u /* a writer holds the lock, or waits only for readers to go */
#define ODD    2u /* each writer inverts it */
#define MARKS  (WRITER | ODD)
/* The mark in `gone`: a writer sleeps until readers have gone. */
#define AWAITED 1u
#define READER	4u /* one reader, in either counter */

#define LOOKS 256u /* how often a waiting thread looks before it sleeps: some microseconds */

enum sleeper { A_READER = 1, A_WRITER = 2 };

/* Sleeps until woken, or for a shorter time; returns at once if the word is not `value`. */
static void sleep_at(_Atomic uint32_t *word, uint32_t value, enum sleeper who)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, NULL, NULL, who);
}

static void wake(_Atomic uint32_t *word, int n, enum sleeper who)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, n, NULL, NULL, who);
}

/* Returns false if the caller has looked *looks times, and should sleep; else pauses for a moment.
 * Looking comes first because most holds are shorter than it takes to sleep and to be woken. */
static bool may_look_again(unsigned *looks)
{
	if (*looks == LOOKS)
		return false;
	++*looks;
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
	return true;
}

/* Sleeps until the writer that holds the lock ends it; `come` is the value that was read. No end is
 * missed: the sleeper is counted before the kernel compares the word, and the writer changes the
 * word before it reads that count. */
static void sleep_until_end(struct pfs_fair *lock, uint32_t come, enum sleeper who)
{
	atomic_fetch_add(&lock->asleep, 1);
	sleep_at(&lock->come, come, who);
	atomic_fetch_sub(&lock->asleep, 1);
}

/* ---- reading ---- */

void pfs_fair_read(struct pfs_fair *lock)
{
	uint32_t come = atomic_fetch_add_explicit(&lock->come, READER, memory_order_acquire);
	const uint32_t marks = come & MARKS;
	unsigned looks = 0;

	if (!(marks & WRITER))
		return;
	for (;;) {
		come = atomic_load_explicit(&lock->come, memory_order_acquire);
		if ((come & MARKS) != marks)
			return;
		if (!may_look_again(&looks))
			sleep_until_end(lock, come, A_READER);
	}
}

static void end_reading(struct pfs_fair *lock)
{
	uint32_t gone = atomic_fetch_add_explicit(&lock->gone, READER, memory_order_acq_rel);

	if (gone & AWAITED &&
	    (gone & ~AWAITED) + READER == atomic_load_explicit(&lock->before, memory_order_relaxed))
		wake(&lock->gone, 1, A_WRITER);
}

/* ---- writing ---- */

/* Returns true if as many readers have gone as `before`, which is how many had come. */
static bool have_gone(const struct pfs_fair *lock, uint32_t before)
{
	return atomic_load_explicit(&lock->gone, memory_order_acquire) == before;
}

static void await_gone(struct pfs_fair *lock, uint32_t before)
{
	unsigned looks = 0;
	uint32_t gone;

	while (may_look_again(&looks))
		if (have_gone(lock, before))
			return;
	gone = atomic_fetch_or_explicit(&lock->gone, AWAITED, memory_order_acq_rel) | AWAITED;
	while (gone != (before | AWAITED)) {
		sleep_at(&lock->gone, gone, A_WRITER);
		gone = atomic_load_explicit(&lock->gone, memory_order_acquire);
	}
	atomic_fetch_and_explicit(&lock->gone, ~AWAITED, memory_order_relaxed);
}

/* Sets a writer's marks in `come`. Returns false if that has another value by now. */
static bool mark(struct pfs_fair *lock, uint32_t come)
{
	if (!atomic_compare_exchange_strong(&lock->come, &come, (come ^ ODD) | WRITER))
		return false;
	atomic_store_explicit(&lock->before, come & ~MARKS, memory_order_relaxed);
	return true;
}

void pfs_fair_write(struct pfs_fair *lock)
{
	unsigned looks = 0;
	uint32_t come;

	atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_relaxed);
	for (;;) {
		come = atomic_load_explicit(&lock->come, memory_order_relaxed);
		if (!(come & WRITER) && mark(lock, come))
			break;
		if (come & WRITER && !may_look_again(&looks))
			sleep_until_end(lock, come, A_WRITER);
	}
	if (!have_gone(lock, come & ~MARKS))
		await_gone(lock, come & ~MARKS);
	atomic_fetch_sub_explicit(&lock->waiting, 1, memory_order_relaxed);
	lock->is_written = true;
}

bool pfs_fair_try_write(struct pfs_fair *lock)
{
	uint32_t come = atomic_load_explicit(&lock->come, memory_order_relaxed);

	if (come & WRITER || !have_gone(lock, come & ~MARKS) || !mark(lock, come))
		return false;
	lock->is_written = true;
	return true;
}

static void end_writing(struct pfs_fair *lock)
{
	lock->is_written = false;
	atomic_fetch_sub(&lock->come, WRITER);
	if (!atomic_load(&lock->asleep))
		return;
	wake(&lock->come, INT_MAX, A_READER);
	wake(&lock->come, 1, A_WRITER);
}

void pfs_fair_end(struct pfs_fair *lock)
{
	if (lock->is_written)
		end_writing(lock);
	else
		end_reading(lock);
}
