/* SPDX-License-Identifier: MIT */
#include "fs/mount/query/pending.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "fs/mount/respond.h"

void pfs_pendings_init(struct pfs_pendings *list, pthread_mutex_t *lock, unsigned *count)
{
	list->lock = lock;
	list->count = count;
	list->first = NULL;
	list->last = &list->first;
}

void pfs_pending_take(struct pfs_pending *pending)
{
	*pending->link = pending->next;
	if (pending->next)
		pending->next->link = pending->link;
	else
		pending->list->last = pending->link;
	pending->link = NULL;
	--*pending->list->count;
}

bool pfs_pending_wait(struct pfs_pending *pending)
{
	struct pfs_pendings *list = pending->list;

	if (atomic_load(&pending->is_interrupted))
		return false;
	pending->next = NULL;
	pending->link = list->last;
	*list->last = pending;
	list->last = &pending->next;
	++*list->count;
	return true;
}

bool pfs_pending_make(struct pfs_pending *pending)
{
	pending->is_made = !atomic_load(&pending->is_interrupted);
	return pending->is_made;
}

bool pfs_pending_is_gone(const struct pfs_pending *pending)
{
	return atomic_load_explicit(&pending->is_interrupted, memory_order_relaxed);
}

/* Marks the request, and takes it if it waits; returns true if it is to be answered here. What is
 * marked while it is made may be freed after this. */
static bool withdraw(struct pfs_pending *pending, bool *waits)
{
	PFS_LOCKED(pending->list->lock);

	atomic_store(&pending->is_interrupted, true);
	*waits = pending->link;
	if (*waits)
		pfs_pending_take(pending);
	return *waits || pending->is_made;
}

static void on_interrupt(fuse_req_t req, void *pending)
{
	bool waits;

	if (!withdraw(pending, &waits))
		return;
	if (waits)
		free(pending);
	(void)pfs_respond_error(req, -EINTR);
}

void pfs_pending_begin(struct pfs_pending *pending)
{
	fuse_req_interrupt_func(pending->req, on_interrupt, pending);
}

/* Returns true if an interrupt has answered it; none will from now on. */
static bool end_making(struct pfs_pending *pending)
{
	bool is_answered;
	PFS_LOCKED(pending->list->lock);

	is_answered = pending->is_made && atomic_load(&pending->is_interrupted);
	pending->is_made = false;
	return is_answered;
}

bool pfs_pending_end(struct pfs_pending *pending)
{
	if (end_making(pending))
		return true; /* the request may be gone */
	/* After this call no interrupt can be in on_interrupt, or enter it. */
	fuse_req_interrupt_func(pending->req, NULL, NULL);
	if (!atomic_load(&pending->is_interrupted))
		return false;
	(void)pfs_respond_error(pending->req, -EINTR);
	return true;
}
