/* SPDX-License-Identifier: MIT */
/* gpu/table.h - tables as the operators see them: n rows of typed columns, lent by their owner.
 *
 * Nothing here owns memory. The owner moves no array, and does not change what a statement reads of
 * them, from the statement's first operator until its last result is freed. The host computes on
 * the arrays in place. A device has mirrors of arrays, found by their `id`, and copies a block
 * again when the block's epoch is above that of its copy.
 *
 * Not handled here: snapshots, locks, names of columns, affinity. */
#ifndef PFS_GPU_TABLE_H
#define PFS_GPU_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/reserve.h"

#define PFS_NO_ROW	UINT32_MAX /* no row of this table: its columns read as NULL */
#define PFS_ROWS_MAX	(UINT32_MAX - 64u)
#define PFS_BLOCK_ROWS	4096u /* rows whose changes are noted together */

enum pfs_kind {
	PFS_KIND_INTEGER,
	PFS_KIND_REAL,
	PFS_KIND_CODE,	 /* text by dictionary: 32-bit codes */
	PFS_KIND_PLACE,	 /* text by heap: 32-bit places */
	PFS_KIND_NUMBER, /* integers and reals mixed; computed vectors only */
};

enum pfs_collation { PFS_BINARY, PFS_NOCASE, PFS_RTRIM };

/* Texts that repeat. The bytes of code c are bytes[offset[c]] up to, but without,
 * bytes[offset[c + 1]]; no two codes have the same bytes. Texts are only added: a code keeps its
 * bytes as long as the dictionary has the same id. */
struct pfs_dictionary {
	uint64_t id; /* from pfs_table_new_id; 0: it is not worth mirroring */
	const uint8_t *bytes;
	const uint64_t *offset; /* n + 1 */
	uint32_t n;
	/* The rank of each code, from 0, in the order of bytes (memcmp, the shorter first). After
	 * codes were added it is another array. NULL: an operator that needs it makes it. */
	const uint32_t *rank;
};

struct pfs_stamps;
struct pfs_tuples;

/* Texts that do not repeat. The text of place p is at bytes + ((uint64_t)p << place_shift): its
 * length in length_size bytes, little-endian, and then its bytes. Texts of rows that exist never
 * change in place. */
struct pfs_heap {
	uint64_t id; /* another one after the heap was compacted; 0: it is not worth mirroring */
	const uint8_t *bytes;
	uint64_t size; /* only grows at the end */
	uint8_t place_shift;
	uint8_t length_size; /* 1: no text has a NUL; or 4 */
	/* The stamps of blocks of PFS_BLOCK_ROWS places, if places of removed texts are used again;
	 * NULL: they are not. */
	const struct pfs_stamps *stamps;
};

/* When each block of PFS_BLOCK_ROWS elements of an array last changed. */
struct pfs_stamps {
	uint64_t id;	 /* the array's; another one after it moved or changed its width */
	uint64_t *block; /* epochs; written by pfs_stamps_touch alone, read by any thread */
	/* The owner's clock, which moves whenever any of the stamps does, so that they need not be
	 * compared while it stands; NULL: there is none. Read by whoever may read the array. */
	const uint64_t *clock;
};
/* Reserves room for the stamps of any number of rows; the caller closes `blocks` (base/reserve.h).
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_stamps_reserve(struct pfs_stamps *stamps, struct pfs_reserve *blocks);

/* One column.  The value of row r is NULL if its bit in `nulls` is set, else the element r of data.
 * Integers and codes are ((element >> shift) & mask) + base, where the element is read as unsigned
 * unless is_signed; the result fits int64_t, and a code is below dictionary->n.
 * With `via`, the value of row r is that of element via[r] of data and nulls, which may have
 * another number of elements than the table has rows; via[r] = PFS_NO_ROW is NULL.  So a node's
 * `parent` is the prime of the slot in its parent column. */
struct pfs_table_column {
	enum pfs_kind kind;
	uint8_t width; /* bytes of an element: integers and codes 1, 2, 4, 8; reals 8; places 4 */
	bool is_signed;
	bool not_null; /* no row that exists is NULL: `nulls` is not read */
	bool unique;   /* no two rows that exist have the same value */
	/* With via: no element that a row's via names is NULL, and no two are equal, so that rows
	 * are grouped by via as by the value. */
	bool is_by_via;
	uint8_t shift;
	uint64_t mask; /* 0: all bits.  With a mask or shift the element is unsigned */
	int64_t base;
	const void *data;
	const uint32_t *via;
	uint32_t n_elements;   /* with via: elements of data and nulls; else they have n_rows */
	const uint64_t *nulls; /* bit r % 64 of word r / 64 set: NULL.  NULL: there is none */
	const struct pfs_dictionary *dictionary;
	const struct pfs_heap *heap;
	/* The column is computed vector `vector` of this batch, which may lie on a device: data and
	 * nulls are NULL then, until pfs_table_here (gpu/relation.h). NULL: it is no batch's. */
	struct pfs_tuples *batch;
	uint16_t vector;
	/* The stamps of data, via and nulls; NULL: a device copies the array for each statement. */
	const struct pfs_stamps *data_stamps, *via_stamps, *nulls_stamps;
};

struct pfs_table {
	uint32_t n_rows; /* rows 0..n_rows; at most PFS_ROWS_MAX */
	uint32_t n_columns;
	const struct pfs_table_column *columns;
	/* Which rows exist: bits as in `nulls`, or a function that writes n words of such bits from
	 * word `first` on, and is called by several threads. If both are NULL, all rows exist. */
	const uint64_t *live;
	void (*fill_live)(void *context, uint64_t *words, size_t first, size_t n);
	void *live_context;
	const struct pfs_stamps *live_stamps;
	uint64_t epoch; /* the epoch of the state that the statement reads */
};

/* Returns a number that was never returned before. */
uint64_t pfs_table_new_id(void);

/* Returns true if the description can be used: widths, kinds, and what a kind needs. For owners'
 * tests; no operator calls it. */
bool pfs_table_is_sound(const struct pfs_table *table);

/* Notes that element `row` of the stamped array changes, or has changed, in the epoch. Epochs never
 * fall. */
static inline void pfs_stamps_touch(const struct pfs_stamps *stamps, uint32_t row, uint64_t epoch)
{
	__atomic_store_n(&stamps->block[row / PFS_BLOCK_ROWS], epoch, __ATOMIC_RELEASE);
}

static inline uint64_t pfs_stamps_of(const struct pfs_stamps *stamps, uint32_t block)
{
	return __atomic_load_n(&stamps->block[block], __ATOMIC_ACQUIRE);
}

/* ---- one value ---- */

/* Returns where the row's value is, or PFS_NO_ROW: the value is NULL. */
static inline uint32_t pfs_cell_at(const struct pfs_table_column *column, uint32_t row)
{
	uint32_t at = column->via && row != PFS_NO_ROW ? column->via[row] : row;

	if (at != PFS_NO_ROW && column->nulls && !column->not_null &&
	    (column->nulls[at / 64] >> at % 64 & 1))
		return PFS_NO_ROW;
	return at;
}

/* Returns the integer, code or place at an element that pfs_cell_at returned. */
static inline int64_t pfs_cell_integer(const struct pfs_table_column *column, uint32_t at)
{
	uint64_t raw = 0;

	switch (column->width) {
	case 1:
		raw = column->is_signed ? (uint64_t)((const int8_t *)column->data)[at]
					: ((const uint8_t *)column->data)[at];
		break;
	case 2:
		raw = column->is_signed ? (uint64_t)((const int16_t *)column->data)[at]
					: ((const uint16_t *)column->data)[at];
		break;
	case 4:
		raw = column->is_signed ? (uint64_t)((const int32_t *)column->data)[at]
					: ((const uint32_t *)column->data)[at];
		break;
	default:
		raw = ((const uint64_t *)column->data)[at];
		break;
	}
	raw >>= column->shift;
	if (column->mask)
		raw &= column->mask;
	return (int64_t)(raw + (uint64_t)column->base);
}

static inline double pfs_cell_real(const struct pfs_table_column *column, uint32_t at)
{
	return ((const double *)column->data)[at];
}

/* pfs_dictionary_text returns the bytes of a code, pfs_heap_text those of a place. */
static inline const uint8_t *pfs_dictionary_text(const struct pfs_dictionary *dictionary,
						 uint32_t code, size_t *len)
{
	*len = dictionary->offset[code + 1] - dictionary->offset[code];
	return dictionary->bytes + dictionary->offset[code];
}

static inline const uint8_t *pfs_heap_text(const struct pfs_heap *heap, uint32_t place, size_t *len)
{
	const uint8_t *at = heap->bytes + ((uint64_t)place << heap->place_shift);

	*len = heap->length_size == 1 ? *at
				      : (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 |
						(size_t)at[3] << 24;
	return at + heap->length_size;
}

#endif
