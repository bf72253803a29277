/* SPDX-License-Identifier: MIT */
#include "base/reserve.h"
#include "gpu/table.h"

#include <stdatomic.h>

uint64_t pfs_table_new_id(void)
{
	static atomic_uint_fast64_t last;

	return atomic_fetch_add(&last, 1) + 1;
}

static bool width_is_sound(const struct pfs_table_column *c)
{
	switch (c->kind) {
	case PFS_KIND_INTEGER:
	case PFS_KIND_CODE:
		return c->width == 1 || c->width == 2 || c->width == 4 || c->width == 8;
	case PFS_KIND_REAL:
		return c->width == 8;
	case PFS_KIND_PLACE:
		return c->width == 4;
	case PFS_KIND_NUMBER:
		return false;
	}
	return false;
}

static bool column_is_sound(const struct pfs_table_column *c, uint32_t n_rows)
{
	bool is_plain = c->shift == 0 && c->mask == 0;

	if (!width_is_sound(c) || c->shift >= 8 * c->width)
		return false;
	if (!c->data && (c->via ? c->n_elements : n_rows))
		return false;
	if (c->is_signed && !is_plain)
		return false;
	switch (c->kind) {
	case PFS_KIND_CODE:
		return c->dictionary && c->base == 0 && !c->is_signed;
	case PFS_KIND_PLACE:
		return c->heap && is_plain && c->base == 0 && !c->is_signed &&
		       (c->heap->length_size == 1 || c->heap->length_size == 4);
	case PFS_KIND_REAL:
		return is_plain && c->base == 0;
	default:
		return true;
	}
}

bool pfs_table_is_sound(const struct pfs_table *table)
{
	if (table->n_rows > PFS_ROWS_MAX)
		return false;
	for (uint32_t i = 0; i < table->n_columns; i++) {
		if (!column_is_sound(&table->columns[i], table->n_rows))
			return false;
	}
	return true;
}

int pfs_stamps_reserve(struct pfs_stamps *stamps, struct pfs_reserve *blocks)
{
	const size_t size = ((size_t)UINT32_MAX / PFS_BLOCK_ROWS + 2) * sizeof(*stamps->block);

	PFS_TRY(pfs_reserve_whole(blocks, size));
	*stamps = (struct pfs_stamps){.id = pfs_table_new_id(), .block = blocks->base};
	return 0;
}
