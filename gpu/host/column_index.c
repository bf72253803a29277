/* SPDX-License-Identifier: MIT */
/* Column indexes on the host: built by sorting, searched by halving, and cut into intervals of the
 * values. */
#include "gpu/host/index_value.h"

#include <string.h>

#include "base/checked.h"
#include "base/search.h"
#include "gpu/host/families.h"
#include "gpu/host/order.h"
#include "gpu/host/positions.h"

/* ---- one value ---- */

void pfs_index_value(struct pfs_index_value *out, const struct pfs_column_index *index, uint64_t i)
{
	const struct pfs_table_column *column = &index->table->columns[index->column];
	uint32_t at = pfs_cell_at(column, index->rows[i]); /* an index has no NULL */

	*out = (struct pfs_index_value){0};
	if (column->kind == PFS_KIND_REAL) {
		out->number =
			(struct pfs_number){.is_real = true, .real = pfs_cell_real(column, at)};
		return;
	}
	out->number.integer = pfs_cell_integer(column, at);
	if (column->kind == PFS_KIND_CODE)
		out->text = pfs_dictionary_text(column->dictionary, (uint32_t)out->number.integer,
						&out->len);
	else if (column->kind == PFS_KIND_PLACE)
		out->text = pfs_heap_text(column->heap, (uint32_t)out->number.integer, &out->len);
}

int pfs_index_compare(enum pfs_collation collation, const struct pfs_index_value *a,
		      const struct pfs_index_value *b)
{
	if (!a->text != !b->text)
		return a->text ? 1 : -1;
	if (!a->text)
		return pfs_compare_numbers(a->number, b->number);
	return pfs_text_compare(collation, a->text, a->len, b->text, b->len);
}

/* Returns the first place of from..to whose value is not below `value` or, with `above`, is above
 * it. */
static uint64_t find_bound(const struct pfs_column_index *index, uint64_t from, uint64_t to,
			 const struct pfs_index_value *value, bool above)
{
	while (from < to) {
		uint64_t middle = from + (to - from) / 2;
		struct pfs_index_value here;
		int order;

		pfs_index_value(&here, index, middle);
		order = pfs_index_compare(index->collation, &here, value);
		if (order < 0 || (above && order == 0))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* ---- building ---- */

struct numbering {
	const struct pfs_order_key *key;
	const struct pfs_column_index *index;
};

static int number_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct numbering *n = context;

	(void)worker;
	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		struct pfs_span span = {.n = (uint32_t)PFS_MIN(PFS_SPAN, to - at),
					.at = n->index->rows + at};
		struct pfs_cells cells;

		(void)pfs_order_numbers(n->key, &span, n->index->numbers + at, &cells);
	}
	return 0;
}

static uint64_t without_nulls(const struct pfs_order_key *key, const uint32_t *order, uint64_t n)
{
	struct pfs_scalar cell;

	/* NULLs come last. */
	return PFS_SEARCH(i, 0, n, pfs_scalar_read(&key->reader, order[i], &cell));
}

/* Takes the sorted rows, which are freed, over into the index. */
static int fill_index(const struct pfs_sorting *s, struct pfs_column_index *index, uint32_t *order)
{
	const struct pfs_order_key *key = &s->keys[0];
	bool has_numbers =
		key->reader.kind == PFS_KIND_INTEGER || key->reader.kind == PFS_KIND_REAL;
	struct numbering n = {.key = key, .index = index};
	int error;

	index->n = without_nulls(key, order, s->positions->n);
	error = pfs_run_alloc_raw(s->run, &index->rows, index->n, sizeof(*index->rows));
	if (!error && index->n)
		memcpy(index->rows, order, index->n * sizeof(*order));
	pfs_run_free(s->run, order, s->positions->n, sizeof(*order));
	if (error || !has_numbers)
		return error;
	PFS_TRY(pfs_run_alloc_raw(s->run, &index->numbers, index->n, sizeof(*index->numbers)));
	return pfs_host_for(s->host, s->run, index->n, PFS_PIECE, number_piece, &n);
}

int pfs_host_index(struct pfs_operator_backend *b, const struct pfs_run *run,
		   struct pfs_column_index *index, const struct pfs_source *source)
{
	const struct pfs_sort_key key = {
		.ref = {0, index->column}, .collation = index->collation, .nulls_last = true};
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	struct pfs_positions positions;
	struct pfs_sorting s;
	uint32_t *order;
	int error;

	PFS_TRY(pfs_positions_open(&positions, host, run, source));
	error = pfs_sorting_open(&s, host, run, source, &positions, &key, 1);
	if (!error) {
		error = pfs_sort_all(&s, &order, positions.n);
		if (!error)
			error = fill_index(&s, index, order);
		pfs_sorting_close(&s);
	}
	pfs_positions_close(run, &positions);
	return error;
}

/* ---- ranges ---- */

static void value_of_constant(struct pfs_index_value *out, const struct pfs_constant *c)
{
	*out = (struct pfs_index_value){.number = {.is_real = c->type == PFS_IS_REAL,
						   .integer = c->integer,
						   .real = c->real}};
	if (c->type == PFS_IS_TEXT) {
		out->text = (const uint8_t *)c->text;
		out->len = c->len;
	}
}

int pfs_column_index_range(const struct pfs_run *run, uint64_t *from, uint64_t *to,
			   struct pfs_column_index *index, const struct pfs_bound *low,
			   const struct pfs_bound *high)
{
	struct pfs_index_value value;

	PFS_TRY(pfs_column_index_here(run, index));
	*from = 0;
	*to = index->n;
	if ((low && low->value.type == PFS_IS_NULL) || (high && high->value.type == PFS_IS_NULL)) {
		*to = 0; /* nothing compares with NULL */
		return 0;
	}
	if (low) {
		value_of_constant(&value, &low->value);
		*from = find_bound(index, 0, index->n, &value, low->is_open);
	}
	if (high) {
		value_of_constant(&value, &high->value);
		*to = find_bound(index, 0, index->n, &value, !high->is_open);
	}
	*to = PFS_MAX(*to, *from);
	return 0;
}

/* ---- intervals ---- */

/* Returns how many entries of the left fragment are among the first `target` ones of both fragments
 * merged. */
static uint64_t merged_share(const struct pfs_index_fragment *left,
			     const struct pfs_index_fragment *right, uint64_t target)
{
	uint64_t n_left = left->to - left->from, n_right = right->to - right->from;
	uint64_t low = target > n_right ? target - n_right : 0, high = PFS_MIN(target, n_left);

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		struct pfs_index_value a, b;

		pfs_index_value(&a, left->index, left->from + middle);
		pfs_index_value(&b, right->index, right->from + target - middle - 1);
		if (pfs_index_compare(left->index->collation, &a, &b) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void pfs_index_cut(uint64_t *left_at, uint64_t *right_at, size_t k,
		   const struct pfs_index_fragment *left, const struct pfs_index_fragment *right)
{
	uint64_t n = left->to - left->from + right->to - right->from;

	left_at[0] = left->from;
	right_at[0] = right->from;
	for (size_t i = 1; i < k; i++) {
		uint64_t target = n / k * i, share = merged_share(left, right, target);
		struct pfs_index_value a, b;
		uint64_t at = left->from + share, other = right->from + target - share;
		bool has_a = at < left->to, has_b = other < right->to;

		/* The next value begins the interval in both fragments. */
		if (has_a)
			pfs_index_value(&a, left->index, at);
		if (has_b)
			pfs_index_value(&b, right->index, other);
		if (!has_a || (has_b && pfs_index_compare(left->index->collation, &b, &a) < 0))
			a = b;
		left_at[i] = has_a || has_b ? find_bound(left->index, left_at[i - 1], left->to,
							      &a, false)
					    : left->to;
		right_at[i] = has_a || has_b ? find_bound(right->index, right_at[i - 1],
							       right->to, &a, false)
					     : right->to;
	}
	left_at[k] = left->to;
	right_at[k] = right->to;
}

int pfs_column_index_cut(const struct pfs_run *run, uint64_t *left_at, uint64_t *right_at, size_t k,
			 struct pfs_column_index *left, struct pfs_column_index *right)
{
	const struct pfs_index_fragment whole_left = {.index = left, .to = left->n};
	const struct pfs_index_fragment whole_right = {.index = right, .to = right->n};

	if (k == 0 || left->collation != right->collation)
		return -EINVAL;
	PFS_TRY(pfs_column_index_here(run, left));
	PFS_TRY(pfs_column_index_here(run, right));
	pfs_index_cut(left_at, right_at, k, &whole_left, &whole_right);
	return 0;
}
