/* SPDX-License-Identifier: MIT */
#include "fs/mount/query/streamed.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/mount/query/pending.h"
#include "fs/mount/query/virtual.h"
#include "fs/mount/respond.h"

struct pfs_streamed {
	pthread_mutex_t lock;
	struct pfs_pendings waiting; /* all members are protected by lock */
	unsigned n_waiting, making;
};

struct read {
	struct pfs_pending pending;
	struct pfs_handle *handle; /* the kernel keeps this and the answer open until the reply */
	struct pfs_answer *answer; /* has a reference of its own while bytes of it are made */
	bool is_made;
	bool measures; /* it asks for attributes, not for bytes */
	size_t size;
	uint64_t offset;
	struct stat attr;
};

int pfs_streamed_open(struct pfs_streamed **out)
{
	struct pfs_streamed *streamed = calloc(1, sizeof(*streamed));

	*out = streamed;
	if (!streamed)
		return -ENOMEM;
	(void)pthread_mutex_init(&streamed->lock, NULL);
	pfs_pendings_init(&streamed->waiting, &streamed->lock, &streamed->n_waiting);
	return 0;
}

void pfs_streamed_close(struct pfs_streamed *streamed)
{
	if (!streamed)
		return;
	(void)pthread_mutex_destroy(&streamed->lock);
	free(streamed);
}

unsigned pfs_streamed_waiting(struct pfs_streamed *streamed)
{
	PFS_LOCKED(&streamed->lock);

	return streamed->n_waiting;
}

/* ---- one read ---- */

static bool is_gone(void *pending)
{
	return pfs_pending_is_gone(pending);
}

/* Keeps the reason why bytes cannot be made, for the user who opened the file. */
static int fail_read(fuse_req_t req, const struct pfs_handle *handle, int error)
{
	struct pfs_call call;

	if (error == -EINTR || pfs_call_begin(&call, req, handle->virtual->node, 0))
		return error == -EINTR ? error : -EIO;
	pfs_handle_act(handle, &call);
	(void)pfs_call_fail(
		&call, -EIO, "%s: cannot be read on (%s); open it again", handle->virtual->name,
		error == -ENOMEM ? "there is no memory for it, or for what has changed since"
				 : strerror(-error));
	pfs_call_end(&call);
	return -EIO;
}

static void respond_bytes(fuse_req_t req, const struct read *read, const char *data, ssize_t n)
{
	if (n < 0)
		(void)pfs_respond_error(req, fail_read(req, read->handle, (int)n));
	else
		(void)pfs_respond_bytes(req, data, (size_t)n);
}

static void respond_attr(fuse_req_t req, struct read *read, int error)
{
	read->attr.st_size += (off_t)pfs_answer_size(read->answer);
	read->attr.st_blocks = (read->attr.st_size + 511) / 512;
	if (error)
		(void)pfs_respond_error(req, fail_read(req, read->handle, error));
	else
		(void)pfs_respond_attr(req, &read->attr, 0);
}

/* Makes what is asked, which an interrupt ends; *data is this thread's. */
static ssize_t make(struct read *read, char **data)
{
	const struct pfs_stream_wait wait = {is_gone, &read->pending};

	if (read->measures)
		return pfs_answer_measure(read->answer, &wait);
	*data = pfs_dispatch_scratch(read->size);
	return *data ? pfs_answer_read_while(read->answer, *data, read->size, read->offset, &wait)
		     : -ENOMEM;
}

static void answer(struct read *read)
{
	char *data = NULL;
	ssize_t n = read->is_made ? make(read, &data) : 0;

	if (!pfs_pending_end(&read->pending)) {
		if (read->measures)
			respond_attr(read->pending.req, read, (int)n);
		else
			respond_bytes(read->pending.req, read, data, n);
	}
	if (read->is_made)
		pfs_answer_close(read->answer);
	free(read);
}

/* ---- those that wait ---- */

/* Notes that the read is being made. An interrupt may answer it meanwhile, and the file may then be
 * closed: so the answer gets a reference. The lock is held. */
static void begin(struct read *read)
{
	read->is_made = pfs_pending_make(&read->pending);
	if (read->is_made)
		(void)pfs_answer_ref(read->answer);
}

/* Returns true if the read is to be answered now, as an interrupted one always is; else it waits.
 */
static bool enter(struct pfs_streamed *streamed, struct read *read)
{
	PFS_LOCKED(&streamed->lock);

	if (streamed->making >= PFS_STREAMED_MAX && pfs_pending_wait(&read->pending))
		return false;
	streamed->making++;
	begin(read);
	return true;
}

/* Returns the read that the caller, who has answered one, answers next; NULL: none waits. */
static struct read *go_on(struct pfs_streamed *streamed)
{
	struct pfs_pending *next;
	PFS_LOCKED(&streamed->lock);

	next = streamed->waiting.first;
	if (next) {
		pfs_pending_take(next);
		begin((struct read *)next);
	} else {
		streamed->making--;
	}
	return (struct read *)next;
}

static void take(struct pfs_streamed *streamed, const struct read *asks)
{
	struct read *read = malloc(sizeof(*read));

	if (!read) {
		(void)pfs_respond_error(asks->pending.req, -ENOMEM);
		return;
	}
	*read = *asks;
	read->pending.list = &streamed->waiting;
	pfs_pending_begin(&read->pending);
	if (!enter(streamed, read))
		return;
	do {
		pfs_dispatch_yield();
		answer(read);
		read = go_on(streamed);
	} while (read);
}

void pfs_streamed_read(struct pfs_streamed *streamed, fuse_req_t req, struct pfs_handle *handle,
		       struct pfs_answer *answer, size_t size, uint64_t offset)
{
	const struct read read = {.pending.req = req,
				  .handle = handle,
				  .answer = answer,
				  .size = size,
				  .offset = offset};
	char *data = pfs_dispatch_scratch(size);
	ssize_t n = data ? pfs_answer_read_there(answer, data, size, offset) : -ENOMEM;

	if (n == -EAGAIN)
		take(streamed, &read);
	else
		respond_bytes(req, &read, data, n);
}

void pfs_streamed_measure(struct pfs_streamed *streamed, fuse_req_t req, struct pfs_handle *handle,
			  struct pfs_answer *answer, const struct stat *attr)
{
	take(streamed, &(struct read){.pending.req = req,
				      .handle = handle,
				      .answer = answer,
				      .measures = true,
				      .attr = *attr});
}
