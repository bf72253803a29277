/* SPDX-License-Identifier: MIT */
/* Joins two column indexes: both are cut into intervals of the values, and several threads merge
 * the fragments independently. */
#include "base/checked.h"
#include "gpu/host/families.h"
#include "gpu/host/index_value.h"
#include "gpu/host/pairs.h"

#define PIECES_PER_WORKER 8u
#define RUN_STEP	  4096u /* pairs between two polls, */
#define COMPARE_STEP	  65536u /* and comparisons between two polls */

struct merging {
	struct pfs_host_operators *host;
	const struct pfs_run *run;
	const struct pfs_column_index *left, *right;
	uint64_t *left_at, *right_at; /* n_pieces + 1 */
	size_t n_pieces;
	bool by_numbers; /* both sides have comparable numbers */
	struct pfs_pairs *pieces;
};

static int compare_at(const struct merging *m, uint64_t left, uint64_t right)
{
	struct pfs_index_value a, b;

	if (m->by_numbers)
		return (m->left->numbers[left] > m->right->numbers[right]) -
		       (m->left->numbers[left] < m->right->numbers[right]);
	pfs_index_value(&a, m->left, left);
	pfs_index_value(&b, m->right, right);
	return pfs_index_compare(m->left->collation, &a, &b);
}

/* Returns where the places that are equal to `right` end. */
static uint64_t end_of_right(const struct merging *m, uint64_t left, uint64_t right, uint64_t end)
{
	do
		right++;
	while (right < end && compare_at(m, left, right) == 0);
	return right;
}

/* Adds the pairs of one left place with the right places from..to. */
static int add_pairs(const struct merging *m, struct pfs_pairs *pairs, uint64_t left, uint64_t from,
		     uint64_t to)
{
	while (from < to) {
		uint64_t n = PFS_MIN(to - from, RUN_STEP);

		if (pairs->n % RUN_STEP + n >= RUN_STEP)
			PFS_TRY(pfs_run_poll(m->run));
		PFS_TRY(pfs_pairs_reserve(m->run, pairs, n));
		for (uint64_t i = from; i < from + n; i++)
			pfs_pairs_add(pairs, m->left->rows[left], m->right->rows[i]);
		from += n;
	}
	return 0;
}

static int merge_piece(const struct merging *m, size_t piece)
{
	uint64_t left = m->left_at[piece], left_end = m->left_at[piece + 1];
	uint64_t right = m->right_at[piece], right_end = m->right_at[piece + 1];
	struct pfs_pairs *pairs = &m->pieces[piece];

	for (uint64_t steps = 0; left < left_end && right < right_end; steps++) {
		int order = compare_at(m, left, right);
		uint64_t end;

		if (steps % COMPARE_STEP == 0)
			PFS_TRY(pfs_run_poll(m->run));
		if (order) {
			left += order < 0;
			right += order > 0;
			continue;
		}
		end = end_of_right(m, left, right, right_end);
		do
			PFS_TRY(add_pairs(m, pairs, left++, right, end));
		while (left < left_end && compare_at(m, left, right) == 0);
		right = end;
	}
	return 0;
}

static int merge_pieces(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	(void)worker;
	for (uint64_t piece = from; piece < to; piece++)
		PFS_TRY(merge_piece(context, piece));
	return 0;
}

static int merge_all(struct merging *m, const struct pfs_index_fragment *left,
		     const struct pfs_index_fragment *right, struct pfs_pairs *out)
{
	size_t n = m->n_pieces;
	int error = pfs_run_alloc(m->run, &m->left_at, n + 1, sizeof(*m->left_at));

	if (!error)
		error = pfs_run_alloc(m->run, &m->right_at, n + 1, sizeof(*m->right_at));
	if (!error)
		error = pfs_run_alloc(m->run, &m->pieces, n, sizeof(*m->pieces));
	if (!error) {
		pfs_index_cut(m->left_at, m->right_at, n, left, right);
		error = pfs_host_for(m->host, m->run, n, 1, merge_pieces, m);
		if (!error)
			error = pfs_pairs_join(out, m->host, m->run, m->pieces, n);
		for (size_t i = 0; error && i < n; i++)
			pfs_pairs_close(m->run, &m->pieces[i]);
	}
	pfs_run_free(m->run, m->left_at, n + 1, sizeof(*m->left_at));
	pfs_run_free(m->run, m->right_at, n + 1, sizeof(*m->right_at));
	pfs_run_free(m->run, m->pieces, n, sizeof(*m->pieces));
	return error;
}

static enum pfs_kind kind_of(const struct pfs_column_index *index)
{
	return index->table->columns[index->column].kind;
}

int pfs_host_merge(struct pfs_operator_backend *b, const struct pfs_run *run,
		   struct pfs_tuples **out, const struct pfs_index_fragment *left,
		   const struct pfs_index_fragment *right)
{
	const struct pfs_source left_source = {.table = left->index->table};
	const struct pfs_source right_source = {.table = right->index->table};
	struct merging m = {.host = pfs_host_operators_of(b),
			    .run = run,
			    .left = left->index,
			    .right = right->index};
	struct pfs_pairs pairs = {0};
	int error;

	m.n_pieces = (size_t)PIECES_PER_WORKER * pfs_host_workers(m.host);
	m.by_numbers = m.left->numbers && m.right->numbers && kind_of(m.left) == kind_of(m.right);
	error = merge_all(&m, left, right, &pairs);
	if (!error)
		error = pfs_pairs_take(m.host, run, out, &left_source, &right_source, &pairs);
	pfs_pairs_close(run, &pairs);
	return error;
}
