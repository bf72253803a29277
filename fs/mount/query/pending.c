/* SPDX-License-Identifier: MIT */
#include "fs/mount/query/pending.h"

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

	if (pending->is_interrupted)
		return false;
	pending->next = NULL;
	pending->link = list->last;
	*list->last = pending;
	list->last = &pending->next;
	++*list->count;
	return true;
}

/* Marks or takes the request; returns true if it waited. */
static bool withdraw(struct pfs_pending *pending)
{
	PFS_LOCKED(pending->list->lock);

	pending->is_interrupted = true;
	if (!pending->link)
		return false;
	pfs_pending_take(pending);
	return true;
}

static void on_interrupt(fuse_req_t req, void *pending)
{
	if (!withdraw(pending))
		return;
	free(pending);
	(void)pfs_respond_error(req, -EINTR);
}

void pfs_pending_begin(struct pfs_pending *pending)
{
	fuse_req_interrupt_func(pending->req, on_interrupt, pending);
}

bool pfs_pending_end(struct pfs_pending *pending)
{
	/* After this nobody is in on_interrupt, nor comes there. */
	fuse_req_interrupt_func(pending->req, NULL, NULL);
	return pending->is_interrupted;
}
