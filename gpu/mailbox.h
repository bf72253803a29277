/* SPDX-License-Identifier: MIT */
/* gpu/mailbox.h - memory that clients and a server share, through which single questions are asked.
 *
 * The server is a kernel that stays on a device, and the memory is pinned and mapped there; in
 * tests the server is a thread. A client fills a slot's question and then raises `asked`; the
 * server answers and then sets `answered` to the same number. A run of the server has a number,
 * which it writes into `entered` when it begins and into `left` as its last step. It leaves when
 * `stop` has reached its number, when no question came for a while, or when its time is up; the
 * next run answers the questions that it left.
 *
 * Nothing here is atomic by type, since kernels are C++: both sides use acquire and release, but
 * for the question, which is read together with `asked` to save a way over the bus. Its path is read
 * behind it, and what is not the question's path is not found. What a question reads on the device
 * after another one's change comes through the cache of the one processor that all warps are on. */
#ifndef PFS_GPU_MAILBOX_H
#define PFS_GPU_MAILBOX_H

#include <stdint.h>

#include "base/both.h"

#define PFS_MAILBOX_SLOTS   16u /* questions at a time: a warp each */
#define PFS_MAILBOX_ENTRIES 64u /* entries that an answer has at most */
/* Steps that the server makes on a way up before it answers how far it has come: a step waits for
 * memory for a microsecond at most, and the server has to be able to leave within a hundred. */
#define PFS_MAILBOX_STEPS    64u
#define PFS_MAILBOX_NONE     0xffffffffu
#define PFS_MAILBOX_PATH_MAX 256u /* bytes of a path: a word for each lane of a warp */

enum pfs_mailbox_op {
	PFS_MAILBOX_LOOKUP, /* the index's entries from (first, value) to key `last`, inclusive */
	PFS_MAILBOX_LIST,   /* as LOOKUP, for a listing */
	/* As LOOKUP, of the key whose lower b bits are `first` in the directory whose path is the
	 * first `value` bytes of the slot's path, with the hash `last` (gpu/path_table.h); or only
	 * the node of the whole path, which has b_top bytes (0: is too long) and the hash a_top:a,
	 * if the server knows that. The answer's a is the directory; PFS_MAILBOX_NONE: the server
	 * has no such path, which says nothing. */
	PFS_MAILBOX_PATH,
	PFS_MAILBOX_ANCESTOR, /* is b on the way up from a? a itself counts */
	PFS_MAILBOX_MOVE,     /* as ANCESTOR, for a move */
	PFS_MAILBOX_CHILD,    /* is b the parent of a? */
	PFS_MAILBOX_COMMON,   /* the first node that the ways up from a and b both meet */
	/* ADD puts the pair (first, value) into the index, REMOVE takes it out; a becomes the
	 * parent of the slot `value`. No other question is asked meanwhile. The answer's n is 0 if
	 * nothing has changed, since the page is full or would be empty, or there is no such slot
	 * yet: the client then sends a batch. If n is 1, the answer's a is 1 if ADD found no such
	 * pair, or REMOVE found it. */
	PFS_MAILBOX_ADD,
	PFS_MAILBOX_REMOVE,
	PFS_MAILBOX_OPS,
};

struct pfs_mailbox_question { /* 48 bytes */
	uint64_t first, last;
	uint32_t op;
	uint32_t capacity; /* entries wanted at most */
	uint32_t value;
	uint32_t a, b;	       /* where the ways up have come to */
	uint32_t a_top, b_top; /* COMMON: where they began; each goes on where the other began */
	uint32_t falsify;      /* tests: answer wrongly */
};

struct pfs_mailbox_answer {
	uint32_t n;    /* number of entries; or 1: decided; 0: ask again, from a and b */
	uint32_t a, b; /* if decided: a is 0 or 1, or the node that COMMON found */
	uint32_t values[PFS_MAILBOX_ENTRIES];
	uint64_t keys[PFS_MAILBOX_ENTRIES];
};

#define PFS_MAILBOX_SUMS 2u

/* The first 64 bytes are a line, which the server reads as a whole, its words in any order: the
 * sums tell whether they belong together. */
struct pfs_mailbox_slot {
	struct pfs_mailbox_question question;
	uint32_t asked;
	uint32_t sums[PFS_MAILBOX_SUMS];
	uint32_t unused;
	uint64_t path[PFS_MAILBOX_PATH_MAX / 8];
	uint32_t answered; /* in another cache line; written by the server */
	struct pfs_mailbox_answer answer;
} __attribute__((aligned(64)));

#define PFS_MAILBOX_ASKED  12u /* which word of the line it is */
#define PFS_MAILBOX_SUMMED 13u /* words of the line that are summed up; the sums follow */
#define PFS_MAILBOX_LINE   16u

/* Returns what a word adds to the k-th sum. */
PFS_BOTH uint32_t pfs_mailbox_term(uint32_t word, uint32_t i, uint32_t k)
{
	uint32_t x = (word + 1) * (0x9e3779b1u + 0x3c6ef372u * (2 * i + k));

	return (x ^ x >> 15) * 0x85ebca6bu;
}

struct pfs_mailbox {
	uint32_t stop; /* written by clients */
	uint32_t unused[15];
	uint32_t entered, left; /* written by the server */
	uint32_t unused_too[14];
	struct pfs_mailbox_slot slots[PFS_MAILBOX_SLOTS];
};

/* One run of the server. */
struct pfs_mailbox_run {
	uint32_t number;
	uint64_t idle_ns;  /* leave after so long without a question; 0: as soon as there is none */
	uint64_t limit_ns; /* leave after so long in any case */
};

#endif
