/* SPDX-License-Identifier: MIT */
/* gpu/mailbox.h - memory that clients and a server share, through which single questions are asked.
 *
 * The server is a kernel that stays on a device, and the memory is pinned and mapped there; for tests it
 * is a thread.  A client fills a slot's question and then raises `asked`; the server answers and then sets
 * `answered` to the same.  A run of the server has a number: it writes that into `entered` when it begins
 * and into `left` as the last it does.  It leaves when `stop` has come to its number, when nobody asked for
 * a while, or when its time is up; what it has not answered by then the next run finds.
 *
 * Nothing here is atomic by type, since kernels are C++: both sides use acquire and release. */
#ifndef PFS_GPU_MAILBOX_H
#define PFS_GPU_MAILBOX_H

#include <stdint.h>

#define PFS_MAILBOX_SLOTS   16u	  /* questions at a time: a warp each */
#define PFS_MAILBOX_ENTRIES 64u	  /* of an answer */
/* Steps on a way up, after which the client hears where it has come to: a step waits for memory for
 * a microsecond at most, and the server is to leave in a hundred. */
#define PFS_MAILBOX_STEPS   64u
#define PFS_MAILBOX_NONE    0xffffffffu

enum pfs_mailbox_op {
	PFS_MAILBOX_LOOKUP,   /* entries from (first, value) to (last, all) in the index */
	PFS_MAILBOX_LIST,     /* the same */
	PFS_MAILBOX_ANCESTOR, /* on the way up from a: is b met? a itself counts */
	PFS_MAILBOX_MOVE,     /* the same */
	PFS_MAILBOX_CHILD,    /* is b the parent of a? */
	PFS_MAILBOX_COMMON,   /* from a, b: the first that both ways up meet */
	/* The pair (first, value) comes, or goes, and a becomes the parent of the slot `value`;
	 * nobody else asks meanwhile. n is 0 if nothing has changed, since the page is full or
	 * would be empty, or the slot is beyond the parents: then a batch does it. With n 1, a says
	 * if the pair was not there, or was. */
	PFS_MAILBOX_ADD,
	PFS_MAILBOX_REMOVE,
	PFS_MAILBOX_OPS,
};

struct pfs_mailbox_question { /* 48 bytes */
	uint64_t first, last;
	uint32_t op;
	uint32_t capacity; /* of entries */
	uint32_t value;
	uint32_t a, b;	       /* where the ways stand */
	uint32_t a_top, b_top; /* COMMON: where they began; a way that has ended goes on at the other's */
	uint32_t falsify;      /* tests: answer wrongly */
};

struct pfs_mailbox_answer {
	uint32_t n;    /* entries; or 1: decided, 0: ask on from a and b */
	uint32_t a, b; /* decided: a is 0 or 1, or the node that COMMON found */
	uint32_t values[PFS_MAILBOX_ENTRIES];
	uint64_t keys[PFS_MAILBOX_ENTRIES];
};

struct pfs_mailbox_slot {
	struct pfs_mailbox_question question;
	uint32_t asked;
	uint32_t unused[3];
	uint32_t answered; /* another cache line: the server's */
	struct pfs_mailbox_answer answer;
} __attribute__((aligned(64)));

struct pfs_mailbox {
	uint32_t stop; /* the client's */
	uint32_t unused[15];
	uint32_t entered, left; /* the server's */
	uint32_t unused_too[14];
	struct pfs_mailbox_slot slots[PFS_MAILBOX_SLOTS];
};

/* One run of the server. */
struct pfs_mailbox_run {
	uint32_t number;
	uint64_t idle_ns;  /* leave when nobody asked for so long; 0: when there is nothing to do */
	uint64_t limit_ns; /* leave after so long, whatever there is to do */
};

#endif
