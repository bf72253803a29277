/* SPDX-License-Identifier: MIT */
/* fs/query/relational/textchain.h - functions of one text, one after the other, as SQLite has them:
 * upper, lower, trim, substr, replace, `||` with a constant, instr.
 *
 * What a statement computes so of a column is a column of the same table then, which is made when
 * the statement's block begins (texts.c): whatever takes a column takes it. */
#ifndef PFS_FS_QUERY_RELATIONAL_TEXTCHAIN_H
#define PFS_FS_QUERY_RELATIONAL_TEXTCHAIN_H

#include "base/err.h"
#include "gpu/predicate.h"

#define PFS_TEXT_STEPS_MAX 16

enum pfs_text_op {
	PFS_TEXT_UPPER, /* ASCII's letters, as the next */
	PFS_TEXT_LOWER,
	PFS_TEXT_TRIM, /* a: the characters, of one byte each; at_left, at_right */
	PFS_TEXT_PART, /* of `count` characters from number `from` on, up to the first NUL: SUBSTR
			*/
	PFS_TEXT_REPLACE, /* a, which is not empty, by b */
	PFS_TEXT_PREPEND, /* a */
	PFS_TEXT_APPEND,  /* a */
	PFS_TEXT_PLACE,	  /* the last step: where a is, from 1, or 0, in characters: INSTR */
};

struct pfs_text_step {
	enum pfs_text_op op;
	bool at_left, at_right;
	int64_t from, count; /* count is not negative */
	struct pfs_constant a, b;
};

/* Room for what steps make of a text; all zero at first. */
struct pfs_text_room {
	struct pfs_text_buffer {
		uint8_t *bytes;
		size_t size, capacity;
	} buffers[2];
};
void pfs_text_room_finish(struct pfs_text_room *room);
/* Puts bytes behind those that the buffer has; there is room for them. */
void pfs_text_buffer_put(struct pfs_text_buffer *out, const void *bytes, size_t len);

/* Applies the steps to *text of *len bytes, which then are the result's: bytes of the text, the
 * room or a step. *place is the last one's result, if that is PLACE.  -ENOMEM; -EOPNOTSUPP: it
 * would be a very long text. */
PFS_MUST_CHECK int pfs_text_apply(const struct pfs_text_step *steps, size_t n,
				  struct pfs_text_room *room, const uint8_t **text, size_t *len,
				  int64_t *place);

#endif
