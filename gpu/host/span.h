/* SPDX-License-Identifier: MIT */
/* gpu/host/span.h - reading a source a span at a time: up to 1,024 of its tuples, and the values of
 * a column at them.
 *
 * A tuple's position is its row, where the source is of a table, or its place in the batch; spans
 * of positions are all that the operators know of a source. */
#ifndef PFS_GPU_HOST_SPAN_H
#define PFS_GPU_HOST_SPAN_H

#include "gpu/relation.h"

#define PFS_SPAN       1024u
#define PFS_SPAN_WORDS (PFS_SPAN / 64u)
#define PFS_PIECE      (16u * PFS_SPAN) /* of a source: what a thread takes at a time */

struct pfs_span {
	uint32_t n;
	uint32_t first; /* positions first, first + 1, ... */
	const uint32_t
		*at; /* or these, ascending unless somebody else made the span; NULL: not listed */
	uint32_t buffer[PFS_SPAN];
};

/* A source, which is cut into begin..end: row numbers (in whole spans), places in the list of rows,
 * or places in the batch. */
struct pfs_source_reader {
	const struct pfs_source *source;
	uint64_t begin, end;
	uint32_t from, to; /* rows outside are not in the source */
	bool by_list;
};

/* Opens a reader of the source. -EINVAL: it is a batch of 2^32 tuples or more. */
PFS_MUST_CHECK int pfs_source_reader_open(struct pfs_source_reader *reader,
					  const struct pfs_source *source);

/* Gets the positions of at..end, which lie within the reader's, as far as one span goes. `at` is
 * where a piece begins, or what the last call returned. Returns where to go on; the span may be
 * empty. */
uint64_t pfs_source_reader_span(const struct pfs_source_reader *reader, struct pfs_span *span,
				uint64_t at, uint64_t end);

/* Returns a number that the source has no more positions than. */
uint64_t pfs_source_reader_bound(const struct pfs_source_reader *reader);

/* Tells which rows from `first` on, a multiple of PFS_SPAN, are in the source, which is of a table
 * and not read by list. Returns how many. */
uint32_t pfs_source_reader_words(const struct pfs_source_reader *reader, uint64_t *words,
				 uint32_t first);

/* A reference, looked up. */
struct pfs_cell_reader {
	enum pfs_kind kind;
	const struct pfs_table_column *column; /* or */
	const struct pfs_vector *vector;
	const struct pfs_tuple_table
		*rows; /* of a batch: from position to row; NULL: they are the same */
};

void pfs_cell_reader_open(struct pfs_cell_reader *reader, const struct pfs_source *source,
			  struct pfs_ref ref);
/* Returns true if it is known that no value is NULL. */
bool pfs_cell_reader_has_values(const struct pfs_cell_reader *reader);
/* Returns true if rows that do not exist can be read, too. */
bool pfs_cell_reader_is_safe(const struct pfs_cell_reader *reader);

/* Returns the elements of a column or vector at the span, or NULL if they are consecutive from
 * *first on. An element that is NULL because its row is missing is PFS_NO_ROW. The buffer has room
 * for PFS_SPAN. */
const uint32_t *pfs_cell_elements(const struct pfs_cell_reader *reader, const struct pfs_span *span,
				  uint32_t *first, uint32_t *buffer);

/* The values at a span.  What stands at a NULL is 0. */
struct pfs_cells {
	bool has_nulls;
	bool has_reals; /* NUMBER only; REAL: all are */
	uint64_t nulls[PFS_SPAN_WORDS];
	uint64_t is_real[PFS_SPAN_WORDS];
	union {
		int64_t integers[PFS_SPAN]; /* INTEGER, NUMBER */
		double reals[PFS_SPAN];	    /* REAL, NUMBER */
		uint32_t codes[PFS_SPAN];   /* CODE, PLACE */
	};
};

void pfs_cells_read(const struct pfs_cell_reader *reader, const struct pfs_span *span,
		    struct pfs_cells *out);
/* Makes the values at the NULLs of n cells 0. */
void pfs_cells_clear_nulls(struct pfs_cells *cells, enum pfs_kind kind, uint32_t n);

/* One value. pfs_scalar_read returns false if it is NULL; of texts `integer` is the code or
 * place. */
struct pfs_scalar {
	bool is_real;
	int64_t integer;
	double real;
};
bool pfs_scalar_read(const struct pfs_cell_reader *reader, uint32_t position,
		     struct pfs_scalar *out);

/* Returns where the bytes of a PLACE are. */
static inline const struct pfs_heap *pfs_cell_heap(const struct pfs_cell_reader *reader)
{
	return reader->column ? reader->column->heap : reader->vector->heap;
}

/* Returns the bytes of a CODE or PLACE. */
const uint8_t *pfs_cell_text(const struct pfs_cell_reader *reader, uint32_t code, size_t *len);

static inline uint32_t pfs_span_at(const struct pfs_span *span, uint32_t i)
{
	return span->at ? span->at[i] : span->first + i;
}

static inline bool pfs_bit(const uint64_t *words, uint64_t i)
{
	return words[i / 64] >> i % 64 & 1;
}

#endif
