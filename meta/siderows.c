/* SPDX-License-Identifier: MIT */
/* A packed row has its number, the number of its cells (GONE: the row was removed), and for each
 * cell its type, followed by nothing (NULL), eight bytes (a number), or a size and as many bytes.
 */
#include "meta/siderows.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define GONE	  UINT16_MAX
#define HEAD_SIZE (sizeof(int64_t) + sizeof(uint16_t))
#define CELL_SIZE (1 + sizeof(uint64_t)) /* without the bytes of a text or blob */

static bool has_bytes(const struct pfs_cell *cell)
{
	return cell->type == PFS_CELL_TEXT || cell->type == PFS_CELL_BLOB;
}

static uint8_t *put(uint8_t *at, const void *value, size_t size)
{
	if (size)
		memcpy(at, value, size);
	return at + size;
}

static uint8_t *put_cell(uint8_t *at, const struct pfs_cell *cell)
{
	uint64_t size = cell->size;

	*at++ = (uint8_t)cell->type;
	switch (cell->type) {
	case PFS_CELL_INTEGER:
		return put(at, &cell->integer, sizeof(cell->integer));
	case PFS_CELL_REAL:
		return put(at, &cell->real, sizeof(cell->real));
	case PFS_CELL_TEXT:
	case PFS_CELL_BLOB:
		at = put(at, &size, sizeof(size));
		return put(at, cell->bytes, cell->size);
	case PFS_CELL_NULL:
		break;
	}
	return at;
}

int pfs_side_rows_reserve(struct pfs_side_rows *rows, uint64_t n, size_t n_cells)
{
	size_t size;

	if (__builtin_mul_overflow(n, HEAD_SIZE + n_cells * CELL_SIZE, &size) ||
	    __builtin_add_overflow(rows->size, size, &size))
		return -ENOMEM;
	return pfs_grow(&rows->bytes, &rows->capacity, size, 1);
}

int pfs_side_rows_add(struct pfs_side_rows *rows, int64_t row, const struct pfs_cell *cells,
		      size_t n)
{
	size_t most = HEAD_SIZE + n * CELL_SIZE, size = 0;
	uint16_t count = cells ? (uint16_t)n : GONE;
	uint8_t *at;

	for (size_t i = 0; cells && i < n; i++) {
		size_t len = has_bytes(&cells[i]) ? cells[i].size : 0;

		size += has_bytes(&cells[i]) ? len : 8;
		most += len;
	}
	if (size > PFS_TABLE_ROW_MAX)
		return -E2BIG;
	PFS_TRY(pfs_grow(&rows->bytes, &rows->capacity, rows->size + most, 1));
	at = put(rows->bytes + rows->size, &row, sizeof(row));
	at = put(at, &count, sizeof(count));
	for (size_t i = 0; cells && i < n; i++)
		at = put_cell(at, &cells[i]);
	rows->size = (size_t)(at - rows->bytes);
	rows->n++;
	return 0;
}

static const uint8_t *take(const uint8_t *at, void *value, size_t size)
{
	memcpy(value, at, size);
	return at + size;
}

static const uint8_t *take_cell(const uint8_t *at, struct pfs_cell *cell)
{
	uint64_t size;

	*cell = (struct pfs_cell){.type = *at++};
	switch (cell->type) {
	case PFS_CELL_INTEGER:
		return take(at, &cell->integer, sizeof(cell->integer));
	case PFS_CELL_REAL:
		return take(at, &cell->real, sizeof(cell->real));
	case PFS_CELL_TEXT:
	case PFS_CELL_BLOB:
		at = take(at, &size, sizeof(size));
		cell->bytes = at;
		cell->size = (size_t)size;
		return at + size;
	case PFS_CELL_NULL:
		break;
	}
	return at;
}

void pfs_side_cursor_begin(struct pfs_side_cursor *cursor, const struct pfs_side_rows *rows,
			   struct pfs_cell *cells)
{
	*cursor = (struct pfs_side_cursor){.at = rows->bytes, .n_left = rows->n, .cells = cells};
}

bool pfs_side_cursor_next(struct pfs_side_cursor *cursor)
{
	uint16_t count;

	if (!cursor->n_left)
		return false;
	cursor->n_left--;
	cursor->at = take(cursor->at, &cursor->row, sizeof(cursor->row));
	cursor->at = take(cursor->at, &count, sizeof(count));
	cursor->is_removed = count == GONE;
	cursor->n = cursor->is_removed ? 0 : count;
	for (size_t i = 0; i < cursor->n; i++)
		cursor->at = take_cell(cursor->at, &cursor->cells[i]);
	return true;
}

int pfs_side_rows_each(const struct pfs_side_rows *rows,
		       int (*fn)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
		       void *arg)
{
	struct pfs_cell cells[PFS_TABLE_COLUMNS_MAX];
	struct pfs_side_cursor cursor;

	pfs_side_cursor_begin(&cursor, rows, cells);
	while (pfs_side_cursor_next(&cursor))
		PFS_TRY(fn(arg, cursor.row, cursor.is_removed ? NULL : cells, cursor.n));
	return 0;
}

void pfs_side_rows_finish(struct pfs_side_rows *rows)
{
	free(rows->bytes);
	*rows = (struct pfs_side_rows){.table = 0};
}
