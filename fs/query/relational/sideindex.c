/* SPDX-License-Identifier: MIT */
/* An index of numbers is the rows sorted by value as they were at some time, those that changed
 * since, sorted as they were later, and those that changed after that: whoever asks looks at each
 * row that it names, so that a row need not be in the place of its value, and may be named again.
 * When many have changed they are merged in: each takes part in some merges of few rows, and in one
 * of all. */
#include "fs/query/relational/sidetable_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/radix.h"

#define MERGED_SHARE 128u /* so many of the rows, */
#define MERGED_MIN   64u  /* and so many, may have changed */
#define LATE_SHARE   16u  /* so many of the rows may be late */

/* By value; rows whose value was NULL are not among them. */
struct run {
	struct pfs_keyed *items;
	size_t n, room;
};

struct pfs_side_index {
	struct run all, late;
	uint32_t *changed; /* rows, some of them twice */
	size_t n_changed, capacity;
	bool is_lost; /* there was no memory for them */
};

static void free_index(struct pfs_side_index *index)
{
	if (!index)
		return;
	free(index->all.items);
	free(index->late.items);
	free(index->changed);
	free(index);
}

void pfs_side_indexes_drop(struct pfs_side_entry *entry)
{
	for (size_t i = 0; entry->indexes && i < entry->n_columns; i++)
		free_index(PFS_TAKE(entry->indexes[i]));
}

void pfs_side_index_note(struct pfs_side_entry *entry, size_t column, uint32_t row)
{
	struct pfs_side_index *index = entry->indexes[column];

	if (!index || index->is_lost)
		return;
	if (index->n_changed > entry->n_rows ||
	    pfs_grow(&index->changed, &index->capacity, index->n_changed + 1,
		     sizeof(*index->changed)))
		index->is_lost = true;
	else
		index->changed[index->n_changed++] = row;
}

/* ---- making ---- */

static uint64_t key_of_real(double value)
{
	uint64_t bits;

	value += 0.0; /* -0 is 0 */
	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static uint64_t key_at(const struct pfs_side_entry *entry, size_t i, size_t row)
{
	if (entry->columns[i].kind == PFS_KIND_REAL)
		return key_of_real(((const double *)entry->data[i])[row]);
	return ((const uint64_t *)entry->data[i])[row] ^ UINT64_C(1) << 63;
}

bool pfs_side_index_key(const struct pfs_side_entry *entry, uint64_t *key, size_t column,
			size_t row)
{
	if (!entry->indexes[column] || pfs_side_is_null(entry, column, row))
		return false;
	*key = key_at(entry, column, row);
	return true;
}

/* The rows that changed, each once, by value; *is_changed gets a bit for each. */
static int sort_changed(const struct pfs_side_entry *entry, struct pfs_side_index *index, size_t i,
			uint64_t *is_changed, struct pfs_keyed *out, size_t *n)
{
	*n = 0;
	for (size_t at = 0; at < index->n_changed; at++) {
		uint32_t row = index->changed[at];
		uint64_t bit = UINT64_C(1) << row % 64;

		if (is_changed[row / 64] & bit)
			continue;
		is_changed[row / 64] |= bit;
		if (pfs_side_is_live(entry, row) && !pfs_side_is_null(entry, i, row))
			out[(*n)++] =
				(struct pfs_keyed){.key = key_at(entry, i, row), .value = row};
	}
	return pfs_radix_sort(out, *n);
}

/* Drops rows that changed and rows that are gone: one that comes back counts as changed. */
static void drop_old(const struct pfs_side_entry *entry, struct run *run,
		     const uint64_t *is_changed)
{
	size_t n = 0;

	for (size_t i = 0; i < run->n; i++) {
		uint32_t row = run->items[i].value;

		run->items[n] = run->items[i];
		n += pfs_side_is_live(entry, row) && !(is_changed[row / 64] >> row % 64 & 1);
	}
	run->n = n;
}

/* Adds items from the end, where there is room for them. */
static void add_items(struct run *run, const struct pfs_keyed *more, size_t n_more)
{
	struct pfs_keyed *items = run->items;
	size_t from = run->n, to = from + n_more;

	run->n = to;
	while (n_more) {
		if (from && items[from - 1].key > more[n_more - 1].key)
			items[--to] = items[--from];
		else
			items[--to] = more[--n_more];
	}
}

static int make_room(struct run *run, size_t n)
{
	size_t room = run->n + n;
	struct pfs_keyed *items;

	if (room <= run->room)
		return 0;
	room += run->n ? room / LATE_SHARE : 0;
	items = realloc(run->items, (room + 1) * sizeof(*items));
	if (!items)
		return -ENOMEM;
	run->items = items;
	run->room = room;
	return 0;
}

/* Chooses what the changed rows are merged into.  The late ones count as changed, if that is all.
 */
static int choose(const struct pfs_side_entry *entry, struct pfs_side_index *index,
		  struct run **out)
{
	struct run *late = &index->late;

	*out = late;
	if (late->n + index->n_changed <= MERGED_MIN + entry->n_rows / LATE_SHARE)
		return 0;
	PFS_TRY(pfs_grow(&index->changed, &index->capacity, index->n_changed + late->n,
			 sizeof(*index->changed)));
	while (late->n)
		index->changed[index->n_changed++] = late->items[--late->n].value;
	*out = &index->all;
	return 0;
}

/* Merges in place: new memory of that size would take longer than the merging. */
static int merge(const struct pfs_side_entry *entry, struct pfs_side_index *index, size_t i)
{
	struct pfs_keyed *more = NULL;
	uint64_t *is_changed = calloc(entry->n_rows / 64 + 1, sizeof(*is_changed));
	struct run *run;
	int error = is_changed ? choose(entry, index, &run) : -ENOMEM;
	size_t n;

	if (!error)
		more = malloc((index->n_changed + 1) * sizeof(*more));
	if (!more)
		error = -ENOMEM;
	if (!error)
		error = sort_changed(entry, index, i, is_changed, more, &n);
	if (!error)
		error = make_room(run, n);
	if (!error) {
		drop_old(entry, run, is_changed);
		add_items(run, more, n);
		index->n_changed = 0;
	}
	free(more);
	free(is_changed);
	return error;
}

/* All rows count as changed. */
static struct pfs_side_index *begin(const struct pfs_side_entry *entry)
{
	struct pfs_side_index *index = calloc(1, sizeof(*index));

	if (index)
		index->changed = malloc((entry->n_rows + 1) * sizeof(*index->changed));
	if (!index || !index->changed) {
		free_index(index);
		return NULL;
	}
	index->capacity = entry->n_rows + 1;
	for (; index->n_changed < entry->n_rows; index->n_changed++)
		index->changed[index->n_changed] = (uint32_t)index->n_changed;
	return index;
}

static bool is_up(const struct pfs_side_entry *entry, const struct pfs_side_index *index)
{
	return index && index->n_changed <= MERGED_MIN + entry->n_rows / MERGED_SHARE;
}

/* Bytes that bring_up needs at once. */
static uint64_t needed(const struct pfs_side_entry *entry, size_t i)
{
	const struct pfs_side_index *index = entry->indexes[i];
	uint64_t n_changed = index ? index->n_changed + index->late.n : entry->n_rows;
	uint64_t n = n_changed + n_changed + (index ? index->all.n : 0);

	if (is_up(entry, index))
		return 0;
	return n * sizeof(struct pfs_keyed) + entry->n_rows / 8 +
	       (index ? 0 : entry->n_rows * sizeof(uint32_t));
}

/* The lock is held. */
static int bring_up(struct pfs_side_entry *entry, size_t i)
{
	if (!entry->indexes[i])
		entry->indexes[i] = begin(entry);
	if (!entry->indexes[i])
		return -ENOMEM;
	return is_up(entry, entry->indexes[i]) ? 0 : merge(entry, entry->indexes[i], i);
}

/* The same on the account.  -E2BIG: it has no room for that. */
static int bring_up_on(struct pfs_account *account, struct pfs_side_entry *entry, size_t i)
{
	uint64_t bytes;
	int error;

	if (entry->indexes[i] && entry->indexes[i]->is_lost)
		free_index(PFS_TAKE(entry->indexes[i]));
	bytes = needed(entry, i);
	if (bytes > pfs_account_left(account))
		return -E2BIG;
	error = pfs_account_charge(account, (int64_t)bytes) ? -E2BIG : bring_up(entry, i);
	pfs_account_discharge(account, bytes);
	return error;
}

/* ---- asking ---- */

static size_t place_of(const struct run *run, uint64_t key)
{
	size_t from = 0, to = run->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (run->items[middle].key < key)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* The part of a run that is in a range of values. */
static struct run part_of(const struct run *run, const struct pfs_side_range *range)
{
	size_t from = place_of(run, range->low);
	size_t to = range->high == UINT64_MAX ? run->n : place_of(run, range->high + 1);

	if (range->low > range->high || to < from)
		to = from;
	return (struct run){.items = run->items + from, .n = to - from};
}

bool pfs_side_table_is_indexed(const struct pfs_side_table *table, size_t column)
{
	struct pfs_side_entry *entry = (struct pfs_side_entry *)table;
	PFS_LOCKED(&entry->index_lock);

	return entry->indexes[column] && !entry->indexes[column]->is_lost;
}

static size_t list(const struct pfs_side_entry *entry, uint32_t *rows, const struct run parts[2],
		   const struct pfs_side_index *index)
{
	size_t n = 0, to;

	for (size_t part = 0; part < 2; part++)
		for (size_t i = 0; i < parts[part].n; i++)
			rows[n++] = parts[part].items[i].value;
	for (size_t i = 0; i < index->n_changed; i++)
		rows[n++] = index->changed[i];
	if (pfs_radix_sort_u32(rows, n))
		return SIZE_MAX;
	to = n;
	n = 0;
	for (size_t i = 0; i < to; i++)
		if ((!n || rows[n - 1] != rows[i]) && pfs_side_is_live(entry, rows[i]))
			rows[n++] = rows[i];
	return n;
}

int pfs_side_table_find(const struct pfs_side_table *table, uint32_t **rows, size_t *n,
			size_t column, const struct pfs_side_range *range, size_t most,
			struct pfs_account *account)
{
	struct pfs_side_entry *entry = (struct pfs_side_entry *)table;
	const struct pfs_side_index *index;
	struct run parts[2];
	size_t named;
	int error;
	PFS_LOCKED(&entry->index_lock);

	*rows = NULL;
	error = bring_up_on(account, entry, column);
	if (error)
		return error == -E2BIG ? 0 : error;
	index = entry->indexes[column];
	parts[0] = part_of(&index->all, range);
	parts[1] = part_of(&index->late, range);
	named = parts[0].n + parts[1].n + index->n_changed;
	if (named > most)
		return 0;
	*rows = malloc((named + 1) * sizeof(**rows));
	*n = *rows ? list(entry, *rows, parts, index) : SIZE_MAX;
	if (*n != SIZE_MAX)
		return 0;
	free(PFS_TAKE(*rows));
	return -ENOMEM;
}

/* ---- ranges of values ---- */

/* Returns the constant as a key of the column. Among integers no value of the range is left out,
 * but one beside it may be in it. */
static uint64_t key_of(const struct pfs_side_entry *entry, size_t column,
		       const struct pfs_constant *constant)
{
	double real = constant->type == PFS_IS_INTEGER ? (double)constant->integer : constant->real;
	int64_t integer;

	if (entry->columns[column].kind == PFS_KIND_REAL)
		return key_of_real(real);
	if (constant->type == PFS_IS_INTEGER)
		integer = constant->integer;
	else
		integer = real < -0x1p63 ? INT64_MIN : real >= 0x1p63 ? INT64_MAX : (int64_t)real;
	return (uint64_t)integer ^ UINT64_C(1) << 63;
}

void pfs_side_range_narrow(struct pfs_side_range *range, const struct pfs_side_table *table,
			   size_t column, enum pfs_op op, const struct pfs_constant *constant)
{
	/* a number that is rounded is beside what it should be by one, or by some thousands of the
	 * largest */
	uint64_t slack = constant->type == PFS_IS_REAL ? 1024 : 1;
	uint64_t key = key_of((const struct pfs_side_entry *)table, column, constant);
	uint64_t low = key < slack ? 0 : key - slack,
		 high = key > UINT64_MAX - slack ? UINT64_MAX : key + slack;

	if (op != PFS_OP_LT && op != PFS_OP_LE)
		range->low = PFS_MAX(range->low, low);
	if (op != PFS_OP_GT && op != PFS_OP_GE)
		range->high = PFS_MIN(range->high, high);
}

/* ---- what is in them ---- */

int64_t pfs_side_table_number(const struct pfs_side_table *table, uint32_t row)
{
	return ((const struct pfs_side_entry *)table)->numbers[row];
}

int64_t pfs_side_table_last(const struct pfs_side_table *table)
{
	const struct pfs_side_entry *entry = (const struct pfs_side_entry *)table;
	size_t row = entry->n_rows;

	while (row && !pfs_side_is_live(entry, row - 1))
		row--;
	return row ? entry->numbers[row - 1] : 0;
}

void pfs_side_table_cell(const struct pfs_side_table *table, struct pfs_cell *out, uint32_t row,
			 size_t column)
{
	const struct pfs_side_entry *entry = (const struct pfs_side_entry *)table;
	const struct pfs_table_column *values = &entry->columns[column];

	*out = (struct pfs_cell){.type = PFS_CELL_NULL};
	if (pfs_side_is_null(entry, column, row))
		return;
	switch (values->kind) {
	case PFS_KIND_INTEGER:
		out->type = PFS_CELL_INTEGER;
		out->integer = ((const int64_t *)values->data)[row];
		return;
	case PFS_KIND_REAL:
		out->type = PFS_CELL_REAL;
		out->real = ((const double *)values->data)[row];
		return;
	default:
		out->type = PFS_CELL_TEXT;
		out->bytes = (const char *)pfs_dictionary_text(
			values->dictionary, ((const uint32_t *)values->data)[row], &out->size);
	}
}

