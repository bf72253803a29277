/* SPDX-License-Identifier: MIT */
/* Reads of answers that grow: each is answered once its bytes are there, and waits without a thread
 * until then. */
#include "fs/mount/query/growing_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/mount/respond.h"
#include "fs/query/output/format.h"

#define TURNS_FROM (UINT64_C(1) << 63) /* turns have numbers from here on, requests below */

static void reply_size(struct pfs_growing_reader *reader)
{
	struct pfs_answer *answer = reader->growing->answer;

	reader->attr.st_size += (off_t)pfs_answer_size(answer);
	reader->attr.st_blocks = (reader->attr.st_size + 511) / 512;
	if (pfs_answer_is_complete(answer))
		(void)pfs_respond_attr(reader->pending.req, &reader->attr, 0);
	else
		(void)pfs_respond_error(reader->pending.req, -EIO);
}

/* Replies with a copy of the bytes. An answer that failed ends early, which is an error. */
static void reply(struct pfs_growing_reader *reader)
{
	struct pfs_answer *answer = reader->growing->answer;
	char *data PFS_FREE = malloc(reader->size + 1);
	ssize_t n = data ? pfs_answer_read(answer, data, reader->size, reader->offset) : -ENOMEM;

	if (n >= 0 && (size_t)n < reader->size && !pfs_answer_is_complete(answer))
		n = -EIO;
	if (n < 0)
		(void)pfs_respond_error(reader->pending.req, n == -ENOMEM ? n : -EIO);
	else
		(void)pfs_respond_bytes(reader->pending.req, data, (size_t)n);
}

/* Replies to the reader; error: 0, or what it gets instead. */
static void answer(struct pfs_growing_reader *reader, int error)
{
	if (!pfs_pending_end(&reader->pending)) {
		if (error)
			(void)pfs_respond_error(reader->pending.req, error);
		else if (reader->offset == PFS_ANSWER_END)
			reply_size(reader);
		else
			reply(reader);
	}
	free(reader);
}

/* Returns true if all that was asked for has been made, or never will be. The lock is held. */
static bool is_there(const struct pfs_growing *growing, uint64_t end)
{
	return growing->state == PFS_GROWING_ENDED || pfs_answer_made(growing->answer) >= end;
}

/* Takes readers out of the list: those whose bytes have been made, or all. */
static struct pfs_pending *take_readers(struct pfs_growing *growing, bool all)
{
	struct pfs_pending *taken = NULL;
	PFS_LOCKED(&growing->all->lock);

	for (struct pfs_pending *next, *pending = growing->readers.first; pending; pending = next) {
		const struct pfs_growing_reader *reader = (struct pfs_growing_reader *)pending;

		next = pending->next;
		if (!all &&
		    !is_there(growing, PFS_MIN(reader->offset + reader->size, PFS_ANSWER_END)))
			continue;
		pfs_pending_take(pending);
		pending->next = taken;
		taken = pending;
	}
	return taken;
}

void pfs_growing_answer_readers(struct pfs_growing *growing, bool all, int error)
{
	struct pfs_pending *readers = take_readers(growing, all);

	for (struct pfs_pending *next; readers; readers = next) {
		next = readers->next;
		answer((struct pfs_growing_reader *)readers, error);
	}
}

/* Returns true if the reader is to be answered now; else it waits. Sets *turn to the turn that the
 * statement is to take, or 0. */
static bool ask(struct pfs_growing_reader *reader, uint64_t *turn)
{
	struct pfs_growing *growing = reader->growing;
	uint64_t end = PFS_MIN(reader->offset + reader->size, PFS_ANSWER_END);
	bool there;
	PFS_LOCKED(&growing->all->lock);

	there = is_there(growing, end);
	growing->read_to = PFS_MAX(growing->read_to, end);
	*turn = 0;
	if (growing->state == PFS_GROWING_RESTS &&
	    pfs_answer_made(growing->answer) < growing->read_to + growing->ahead / 2) {
		pfs_growing_wake(growing, PFS_GROWING_WAITS);
		*turn = growing->turn = TURNS_FROM + growing->all->n_turns++;
	}
	return there || !pfs_pending_wait(&reader->pending);
}

static void take_reader(const struct pfs_growing_reader *asks)
{
	struct pfs_growing *growing = asks->growing;
	struct pfs_growing_reader *reader = malloc(sizeof(*reader));
	uint64_t turn;

	if (!reader) {
		(void)pfs_respond_error(asks->pending.req, -ENOMEM);
		return;
	}
	*reader = *asks;
	reader->pending.list = &growing->readers;
	pfs_pending_begin(&reader->pending);
	if (ask(reader, &turn))
		answer(reader, 0);
	if (turn)
		pfs_growing_take_turn(growing, turn);
}

void pfs_growing_read(struct pfs_growing *growing, fuse_req_t req, size_t size, uint64_t offset)
{
	take_reader(&(struct pfs_growing_reader){.growing = growing,
						 .pending.req = req,
						 .size = size,
						 .offset = PFS_MIN(offset, PFS_ANSWER_END - 1)});
}

void pfs_growing_measure(struct pfs_growing *growing, fuse_req_t req, const struct stat *attr)
{
	take_reader(&(struct pfs_growing_reader){
		.growing = growing, .pending.req = req, .offset = PFS_ANSWER_END, .attr = *attr});
}
