/* SPDX-License-Identifier: MIT */
/* fs/query/relational/cursor_impl.h - what cursor.c (which rows, and one by one) and cursor_parts.c
 * (many at once) share behind cursor.h. */
#ifndef PFS_FS_QUERY_RELATIONAL_CURSOR_IMPL_H
#define PFS_FS_QUERY_RELATIONAL_CURSOR_IMPL_H

#include <stdatomic.h>

#include "fs/query/gather.h"
#include "fs/query/relational/cursor.h"

#define PFS_ROW_PART	    1024 /* rows whose columns stay in a core's cache until they are written */
#define PFS_ROW_WAVE_BYTES  ((size_t)16 << 20) /* are gathered while the tree is held, about */
#define PFS_ROW_MEMORY_PART 4 /* that much of what is left of the memory parts may take */

struct hand;

struct pfs_row_cursor {
	struct pfs_query *query;
	const struct pfs_block *block;
	const struct pfs_row_plan *plan;
	struct pfs_run_context *context;
	bool is_begun, is_done; /* rows are being selected; no more are */
	bool is_trying;		/* the first rows, of plan->is_short */
	struct pfs_running running;
	struct pfs_program program; /* of plan->rest */
	struct pfs_pushed pushed;
	struct pfs_ordered *ordered; /* NULL: as they are selected */
	struct pfs_slots within;     /* that it orders, if plan->rest selects */
	struct pfs_rows *found;	     /* by a scan; NULL: all */
	uint64_t next_row, piece;    /* of the table */
	uint64_t skip, left;	     /* rows: of OFFSET, of LIMIT */
	uint64_t charged;	     /* bytes of what is ordered */

	uint32_t *slots; /* the piece */
	size_t capacity;
	size_t n, at;
	uint64_t given;

	struct pfs_gathered *gather;	/* of rows one by one: */
	struct pfs_portion_walk *walk;	/* through them, the reader's */
	size_t batch;			/* how many are gathered next */

	size_t wave, wave_max; /* rows that are worked on at once */
	_Atomic size_t bytes;  /* of the values of the last ones, */
	size_t rows;	       /* so many */
	pthread_mutex_t lock;  /* of hands */
	struct hand *hands;    /* that are free: one for each thread that has been at work */
};

/* Finds the slots of the next rows, from cursor->at to cursor->n; none: there are no more.  The
 * tree is held.  As pfs_row_cursor_next. */
PFS_MUST_CHECK int pfs_row_cursor_slots(struct pfs_row_cursor *cursor);
void pfs_row_cursor_close_hands(struct pfs_row_cursor *cursor);
size_t pfs_row_cursor_largest_wave(void);

#endif
