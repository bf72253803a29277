/* SPDX-License-Identifier: MIT */
/* Each reader is counted when he comes and when he goes. A writer marks the count of those who
 * come, and waits until as many have gone as had come before him. Two writers who follow each other
 * differ in a mark. So a reader who came when the count was marked may go in as soon as it is
 * marked no more, or marked differently: he came before the second writer, who waits for him. */
#include "base/fair.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Marks of those who come: */
#define WRITER 1u /* a writer is in, or waits for readers alone */
#define ODD    2u /* changed by each writer */
#define MARKS  (WRITER | ODD)
/* and of those who go: the writer sleeps until they have gone. */
#define AWAITED 1u
#define READER	4u /* in either count */

enum sleeper { A_READER = 1, A_WRITER = 2 };

/* Until woken, or for no time at all; it does not sleep if the word is another already. */
static void sleep_at(_Atomic uint32_t *word, uint32_t value, enum sleeper who)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, NULL, NULL, who);
}

static void wake(_Atomic uint32_t *word, int n, enum sleeper who)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, n, NULL, NULL, who);
}

/* ---- reading ---- */

void pfs_fair_read(struct pfs_fair *lock)
{
	uint32_t come = atomic_fetch_add_explicit(&lock->come, READER, memory_order_acquire);
	const uint32_t marks = come & MARKS;

	if (!(marks & WRITER))
		return;
	for (;;) {
		come = atomic_load_explicit(&lock->come, memory_order_acquire);
		if ((come & MARKS) != marks)
			return;
		sleep_at(&lock->come, come, A_READER);
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

/* True if all readers who came before have gone. */
static bool have_gone(const struct pfs_fair *lock, uint32_t before)
{
	return atomic_load_explicit(&lock->gone, memory_order_acquire) == before;
}

static void sleep_until_gone(struct pfs_fair *lock, uint32_t before)
{
	uint32_t gone = atomic_fetch_or_explicit(&lock->gone, AWAITED, memory_order_acq_rel);

	gone |= AWAITED;
	while (gone != (before | AWAITED)) {
		sleep_at(&lock->gone, gone, A_WRITER);
		gone = atomic_load_explicit(&lock->gone, memory_order_acquire);
	}
	atomic_fetch_and_explicit(&lock->gone, ~AWAITED, memory_order_relaxed);
}

/* Marks the count, which was `come`; false: it is another. */
static bool mark(struct pfs_fair *lock, uint32_t come)
{
	if (!atomic_compare_exchange_strong(&lock->come, &come, (come ^ ODD) | WRITER))
		return false;
	atomic_store_explicit(&lock->before, come & ~MARKS, memory_order_relaxed);
	return true;
}

void pfs_fair_write(struct pfs_fair *lock)
{
	uint32_t come;

	atomic_fetch_add(&lock->waiting, 1); /* before it looks at `come`: see end_writing */
	for (;;) {
		come = atomic_load(&lock->come);
		if (come & WRITER)
			sleep_at(&lock->come, come, A_WRITER);
		else if (mark(lock, come))
			break;
	}
	if (!have_gone(lock, come & ~MARKS))
		sleep_until_gone(lock, come & ~MARKS);
	atomic_fetch_sub(&lock->waiting, 1);
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
	const uint32_t before = atomic_load_explicit(&lock->before, memory_order_relaxed);
	uint32_t come;

	lock->is_written = false;
	come = atomic_fetch_sub(&lock->come, WRITER);
	if ((come & ~MARKS) != before)
		wake(&lock->come, INT_MAX, A_READER);
	if (atomic_load(&lock->waiting)) /* who is not counted yet finds the mark gone */
		wake(&lock->come, 1, A_WRITER);
}

void pfs_fair_end(struct pfs_fair *lock)
{
	if (lock->is_written)
		end_writing(lock);
	else
		end_reading(lock);
}
