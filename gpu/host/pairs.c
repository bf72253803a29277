/* SPDX-License-Identifier: MIT */
#include "gpu/host/pairs.h"

#include <string.h>

#include "base/checked.h"
#include "gpu/host/positions.h"

#define COPIED ((size_t)65536) /* pairs between two polls */

int pfs_pairs_reserve(const struct pfs_run *run, struct pfs_pairs *pairs, size_t more)
{
	size_t wanted = pairs->n + more, capacity = PFS_MAX(wanted, pairs->capacity * 2);
	int error;

	if (wanted <= pairs->capacity)
		return 0;
	PFS_TRY(pfs_run_grow(run, &pairs->left, pairs->capacity, capacity, sizeof(*pairs->left),
			     false));
	error = pfs_run_grow(run, &pairs->right, pairs->capacity, capacity, sizeof(*pairs->right),
			     false);
	if (error) {
		pfs_run_free(run, pairs->left, capacity, sizeof(*pairs->left));
		pairs->left = NULL;
		return error;
	}
	pairs->capacity = capacity;
	return 0;
}

void pfs_pairs_close(const struct pfs_run *run, struct pfs_pairs *pairs)
{
	pfs_run_free(run, pairs->left, pairs->capacity, sizeof(*pairs->left));
	pfs_run_free(run, pairs->right, pairs->capacity, sizeof(*pairs->right));
	*pairs = (struct pfs_pairs){0};
}

struct joining {
	const struct pfs_run *run;
	struct pfs_pairs *out, *pieces;
	size_t *before;
};

static int copy_piece(const struct joining *j, size_t to, const struct pfs_pairs *piece)
{
	for (size_t at = 0; at < piece->n; at += COPIED) {
		size_t n = PFS_MIN(piece->n - at, COPIED);

		if (at)
			PFS_TRY(pfs_run_poll(j->run));
		memcpy(j->out->left + to + at, piece->left + at, n * sizeof(*piece->left));
		memcpy(j->out->right + to + at, piece->right + at, n * sizeof(*piece->right));
	}
	return 0;
}

static int copy_pieces(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct joining *j = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		PFS_TRY(copy_piece(j, j->before[i], &j->pieces[i]));
		pfs_pairs_close(j->run, &j->pieces[i]);
	}
	return 0;
}

int pfs_pairs_join(struct pfs_pairs *out, struct pfs_host_operators *host,
		   const struct pfs_run *run, struct pfs_pairs *pieces, size_t n_pieces)
{
	struct joining j = {.run = run, .out = out, .pieces = pieces};
	size_t n = 0;
	int error = pfs_run_alloc_raw(run, &j.before, n_pieces, sizeof(*j.before));

	*out = (struct pfs_pairs){0};
	for (size_t i = 0; !error && i < n_pieces; i++) {
		j.before[i] = n;
		n += pieces[i].n;
	}
	if (!error)
		error = n < PFS_NO_ROW ? pfs_pairs_reserve(run, out, n) : -ENOMEM;
	if (!error)
		error = pfs_host_for(host, run, n_pieces, 1, copy_pieces, &j);
	for (size_t i = 0; i < n_pieces; i++)
		pfs_pairs_close(run, &pieces[i]);
	pfs_run_free(run, j.before, n_pieces, sizeof(*j.before));
	if (error)
		pfs_pairs_close(run, out);
	else
		out->n = n;
	return error;
}

int pfs_pairs_take(struct pfs_host_operators *host, const struct pfs_run *run,
		   struct pfs_tuples **out, const struct pfs_source *left,
		   const struct pfs_source *right, const struct pfs_pairs *pairs)
{
	size_t left_tables = pfs_source_tables(left), left_computed = pfs_source_computed(left);
	uint32_t none = 0; /* an empty list of pairs is still a list */
	struct pfs_positions at = {.n = pairs->n};
	struct pfs_tuples *tuples;
	int error;

	*out = NULL;
	PFS_TRY(pfs_tuples_make(run, &tuples, pairs->n, left_tables + pfs_source_tables(right),
				left_computed + pfs_source_computed(right)));
	at.at = pairs->left ? pairs->left : &none;
	error = pfs_host_take(host, run, tuples, 0, 0, left, &at);
	at.at = pairs->right ? pairs->right : &none;
	if (!error)
		error = pfs_host_take(host, run, tuples, left_tables, left_computed, right, &at);
	if (error)
		pfs_tuples_free(run, tuples);
	else
		*out = tuples;
	return error;
}
