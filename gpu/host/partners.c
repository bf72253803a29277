/* SPDX-License-Identifier: MIT */
/* Rows that have partners, where both keys are elements of the same array, in which no two are
 * equal: a bit for each element, and no value is read. */
#include "base/checked.h"
#include "gpu/host/families.h"
#include "gpu/host/operators.h"
#include "gpu/host/span.h"

struct marking {
	struct pfs_source_reader source; /* the right side's tuples */
	struct pfs_cell_reader key;
	uint64_t *bits; /* by element: a tuple has it */
	uint32_t n;
};

/* Returns which element of the column the tuple has, or PFS_NO_ROW. */
static uint32_t element_at(const struct pfs_cell_reader *key, uint32_t position)
{
	uint32_t row = position;

	if (key->rows)
		row = key->rows->rows ? key->rows->rows[position] : key->rows->from + position;
	return key->column->via && row != PFS_NO_ROW ? key->column->via[row] : row;
}

static void mark(const struct marking *m, uint32_t element)
{
	uint64_t *word = &m->bits[element / 64], bit = UINT64_C(1) << element % 64;

	if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		(void)__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

static int mark_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct marking *m = context;
	uint64_t at = m->source.begin + from, end = m->source.begin + to;
	uint32_t last = PFS_NO_ROW;

	(void)worker;
	while (at < end) {
		struct pfs_span span;

		at = pfs_source_reader_span(&m->source, &span, at, end);
		for (uint32_t i = 0; i < span.n; i++) {
			uint32_t element = element_at(&m->key, pfs_span_at(&span, i));

			if (element == last || element >= m->n)
				continue;
			mark(m, element);
			last = element;
		}
	}
	return 0;
}

/* Returns true if keys are equal where they are the same element: a row of the left side is one. */
static bool are_elements(const struct pfs_cell_reader *left, const struct pfs_cell_reader *right)
{
	const struct pfs_table_column *a = left->column, *b = right->column;

	return a && b && a->data && a->data == b->data && a->kind == b->kind &&
	       a->width == b->width && a->shift == b->shift && a->mask == b->mask &&
	       a->base == b->base && a->unique && a->not_null && !a->via &&
	       (b->via ? b->is_by_via : b->unique && b->not_null);
}

int pfs_host_partners(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_rows **out, const struct pfs_source *left,
		      const struct pfs_source *right, const struct pfs_join_key *key)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	struct marking m = {.n = left->table->n_rows};
	size_t words = (size_t)pfs_div_round_up(m.n, 64);
	struct pfs_cell_reader of_left;
	int error;

	pfs_cell_reader_open(&of_left, left, key->left);
	pfs_cell_reader_open(&m.key, right, key->right);
	if (!are_elements(&of_left, &m.key))
		return -EOPNOTSUPP;
	PFS_TRY(pfs_source_reader_open(&m.source, right));
	PFS_TRY(pfs_run_alloc(run, &m.bits, words, sizeof(*m.bits)));
	error = pfs_host_for(host, run, m.source.end - m.source.begin, PFS_PIECE, mark_piece, &m);
	if (!error)
		error = pfs_rows_of_bits(run, out, m.n, m.bits, 0, m.n);
	pfs_run_free(run, m.bits, words, sizeof(*m.bits));
	return error;
}
