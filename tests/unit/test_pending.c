/* SPDX-License-Identifier: MIT */
/* Requests that wait without a thread, or for which a thread makes what is asked: whenever an
 * interrupt comes, each is answered once, and at once. libfuse's part is played here. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "fs/mount/query/pending.h"

#define ROUNDS 2000u

/* What libfuse has of the one request. */
static struct {
	pthread_mutex_t lock; /* the request's */
	fuse_interrupt_func_t on_interrupt;
	void *arg;
	_Atomic unsigned answered; /* with EINTR */
} fuse = {.lock = PTHREAD_MUTEX_INITIALIZER};

static fuse_req_t const request = (fuse_req_t)&fuse;

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
void __wrap_fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t fn, void *arg);
int __wrap_pfs_respond_error(fuse_req_t req, int error);

void __wrap_fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t fn, void *arg)
{
	PFS_LOCKED(&fuse.lock);

	assert_ptr_equal(req, request);
	assert_int_equal(fuse.answered, 0); /* it is gone then */
	fuse.on_interrupt = fn;
	fuse.arg = arg;
}

int __wrap_pfs_respond_error(fuse_req_t req, int error)
{
	assert_ptr_equal(req, request);
	assert_int_equal(error, -EINTR);
	atomic_fetch_add(&fuse.answered, 1);
	return 0;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void interrupt(void)
{
	PFS_LOCKED(&fuse.lock);

	if (fuse.on_interrupt)
		fuse.on_interrupt(request, fuse.arg);
}

/* ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pfs_pendings list;
static unsigned waiting;

static struct pfs_pending *begin(void)
{
	struct pfs_pending *pending = calloc(1, sizeof(*pending));

	assert_non_null(pending);
	fuse.answered = 0;
	pfs_pendings_init(&list, &lock, &waiting);
	pending->req = request;
	pending->list = &list;
	pfs_pending_begin(pending);
	return pending;
}

static bool make(struct pfs_pending *pending)
{
	PFS_LOCKED(&lock);

	return pfs_pending_make(pending);
}

static bool wait_in_list(struct pfs_pending *pending)
{
	PFS_LOCKED(&lock);

	return pfs_pending_wait(pending);
}

static void one_that_waits_is_answered(void **state PFS_UNUSED)
{
	assert_true(wait_in_list(begin()));
	assert_int_equal(waiting, 1);
	interrupt(); /* and frees it */
	assert_int_equal(fuse.answered, 1);
	assert_int_equal(waiting, 0);
	assert_null(list.first);
}

static void one_that_is_made_is_answered_meanwhile(void **state PFS_UNUSED)
{
	struct pfs_pending *pending = begin();

	assert_true(make(pending));
	assert_false(pfs_pending_is_gone(pending));
	interrupt();
	assert_int_equal(fuse.answered, 1);
	assert_true(pfs_pending_is_gone(pending));
	assert_true(pfs_pending_end(pending));
	assert_int_equal(fuse.answered, 1);
	free(pending);
}

static void one_that_only_begins_is_answered_at_its_end(void **state PFS_UNUSED)
{
	struct pfs_pending *pending = begin();

	interrupt();
	assert_int_equal(fuse.answered, 0);
	assert_false(wait_in_list(pending));
	assert_false(make(pending));
	assert_true(pfs_pending_end(pending));
	assert_int_equal(fuse.answered, 1);
	free(pending);
}

static void one_without_an_interrupt_is_its_makers(void **state PFS_UNUSED)
{
	struct pfs_pending *pending = begin();

	assert_true(make(pending));
	assert_false(pfs_pending_end(pending));
	interrupt();
	assert_int_equal(fuse.answered, 0);
	free(pending);
}

static void *interrupt_soon(void *arg PFS_UNUSED)
{
	interrupt();
	return NULL;
}

static void it_is_answered_once_whoever_comes_first(void **state PFS_UNUSED)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct pfs_pending *pending = begin();
		unsigned answered;
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, NULL), 0);
		(void)make(pending);
		answered = pfs_pending_end(pending) ? 0 : 1; /* by the maker */
		free(pending);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(fuse.answered + answered, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_waits_is_answered),
		cmocka_unit_test(one_that_is_made_is_answered_meanwhile),
		cmocka_unit_test(one_that_only_begins_is_answered_at_its_end),
		cmocka_unit_test(one_without_an_interrupt_is_its_makers),
		cmocka_unit_test(it_is_answered_once_whoever_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
