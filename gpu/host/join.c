/* SPDX-License-Identifier: MIT */
/* Joins by hash: a table of the right side's keys, or of their numbers if these are dense, in which
 * the left side's tuples are looked up. */
#include "gpu/host/families.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "gpu/host/evaluate.h"
#include "gpu/host/dictionary.h"
#include "gpu/host/key.h"
#include "gpu/host/pairs.h"

#define DENSE_PER_ROW 4u     /* a direct table has at most so many places for each tuple, */
#define DENSE_ALWAYS  65536u /* or so many in all */
#define POLL_STEP     65536u /* tuples between two polls */
#define PAIRS_STEP    4096u  /* pairs between two polls */

struct joiner {
	struct pfs_host_operators *host;
	const struct pfs_run *run;
	const struct pfs_source *left, *right;
	const struct pfs_join *join;
	struct pfs_positions left_at, right_at;
	struct pfs_keys left_keys, right_keys;
	bool never; /* a text is compared with a number, which never succeeds */
	/* The table: place -> first tuple + 1 of the right side, numbered 0..n, then the next of
	 * the same place. */
	uint32_t *head, *next;
	uint64_t *numbers, *absent; /* by tuple of the right side */
	size_t n_heads;
	bool is_direct;
	bool is_chained; /* some place has several tuples: else `next` is not read */
	bool keeps_left; /* a left tuple without a partner makes a pair with PFS_NO_ROW */
	struct pfs_pairs *pieces;
};

/* ---- keys of both sides ---- */

static bool is_text(enum pfs_kind kind)
{
	return kind == PFS_KIND_CODE || kind == PFS_KIND_PLACE;
}

static const struct pfs_dictionary *dictionary_of(const struct pfs_key *key)
{
	return key->reader.column ? key->reader.column->dictionary : key->reader.vector->dictionary;
}

/* Makes both keys give equal numbers for equal values. */
static int match_keys(struct joiner *j, size_t i)
{
	struct pfs_key *left = &j->left_keys.key[i], *right = &j->right_keys.key[i];

	pfs_cell_reader_open(&left->reader, j->left, j->join->keys[i].left);
	left->collation = right->collation;
	if (is_text(left->reader.kind) != is_text(right->reader.kind)) {
		j->never = true;
		return 0;
	}
	if (left->reader.kind != right->reader.kind) {
		right->is_ranged = false;
		left->by_text = right->by_text = is_text(left->reader.kind);
		return 0;
	}
	left->is_ranged = right->is_ranged;
	left->least = right->least;
	left->span = right->span;
	if (left->reader.kind != PFS_KIND_CODE)
		return 0;
	if (dictionary_of(left) == dictionary_of(right))
		return pfs_codes_fold(&left->map, j->run, dictionary_of(left), left->collation);
	return pfs_codes_translate(&left->map, j->run, dictionary_of(left), dictionary_of(right),
				   left->collation);
}

static int open_keys(struct joiner *j)
{
	size_t n = j->join->n_keys;
	struct pfs_group_key *wanted;
	int error;

	PFS_TRY(pfs_run_alloc(j->run, &wanted, n, sizeof(*wanted)));
	for (size_t i = 0; i < n; i++)
		wanted[i] =
			(struct pfs_group_key){j->join->keys[i].right, j->join->keys[i].collation};
	error = pfs_keys_open(&j->right_keys, j->host, j->run, j->right, &j->right_at, wanted, n);
	pfs_run_free(j->run, wanted, n, sizeof(*wanted));
	if (error)
		return error;
	PFS_TRY(pfs_run_alloc(j->run, &j->left_keys.key, n, sizeof(*j->left_keys.key)));
	j->left_keys.n = n;
	j->left_keys.seed = j->right_keys.seed;
	for (size_t i = 0; i < n; i++)
		PFS_TRY(match_keys(j, i));
	pfs_keys_multiply(&j->right_keys);
	j->left_keys.exact = j->right_keys.exact;
	j->left_keys.domain = j->right_keys.domain;
	return 0;
}

/* ---- the table ---- */

static int read_right(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct joiner *j = context;

	(void)worker;
	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		uint64_t absent[PFS_SPAN_WORDS];
		struct pfs_span span;

		pfs_positions_span(&j->right_at, &span, at, to);
		pfs_keys_read(&j->right_keys, &span, j->numbers + at, absent);
		memcpy(j->absent + at / 64, absent, (span.n + 63) / 64 * sizeof(uint64_t));
	}
	return 0;
}

static size_t head_of(const struct joiner *j, uint64_t number)
{
	return j->is_direct ? number
			    : pfs_hash_number(number, j->right_keys.seed) & (j->n_heads - 1);
}

struct building {
	const struct joiner *j;
	size_t n_parts;
	_Atomic bool is_chained;
};

/* One thread fills each part of the heads, from the last tuple to the first, so that tuples with
 * the same place follow each other in order. */
static int build_part(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct building *b = context;
	const struct joiner *j = b->j;
	bool is_chained = false;
	size_t first = j->n_heads / b->n_parts * from;
	size_t end = to == b->n_parts ? j->n_heads : j->n_heads / b->n_parts * to;

	(void)worker;
	for (uint64_t i = j->right_at.n; i-- > 0;) {
		size_t head = head_of(j, j->numbers[i]);

		if (i % POLL_STEP == 0)
			PFS_TRY(pfs_run_poll(j->run));
		if (head < first || head >= end || pfs_bit(j->absent, i))
			continue;
		j->next[i] = j->head[head];
		is_chained |= j->next[i] != 0;
		j->head[head] = (uint32_t)i + 1;
	}
	if (is_chained)
		atomic_store(&b->is_chained, true);
	return 0;
}

static int build(struct joiner *j)
{
	uint64_t n = j->right_at.n;
	struct building b = {.j = j, .n_parts = pfs_host_workers(j->host)};

	j->is_direct = j->right_keys.exact &&
		       j->right_keys.domain <= PFS_MAX(DENSE_ALWAYS, n * DENSE_PER_ROW);
	j->n_heads = 16;
	while (j->n_heads < 2 * n)
		j->n_heads *= 2;
	if (j->is_direct)
		j->n_heads = j->right_keys.domain;
	PFS_TRY(pfs_run_alloc(j->run, &j->head, j->n_heads, sizeof(*j->head)));
	PFS_TRY(pfs_run_alloc_raw(j->run, &j->next, n, sizeof(*j->next)));
	PFS_TRY(pfs_run_alloc_raw(j->run, &j->numbers, n, sizeof(*j->numbers)));
	PFS_TRY(pfs_run_alloc_raw(j->run, &j->absent, pfs_div_round_up(n, 64), sizeof(*j->absent)));
	PFS_TRY(pfs_host_for(j->host, j->run, n, PFS_PIECE, read_right, j));
	if (n < PFS_PIECE || b.n_parts > j->n_heads)
		b.n_parts = 1;
	PFS_TRY(pfs_host_for(j->host, j->run, b.n_parts, 1, build_part, &b));
	j->is_chained = atomic_load(&b.is_chained);
	return 0;
}

/* ---- looking up ---- */

static uint32_t position_of(const struct pfs_positions *positions, uint32_t i)
{
	return positions->at ? positions->at[i] : positions->first + i;
}

/* However many partners a tuple has. */
static inline int add_pair(const struct joiner *j, struct pfs_pairs *pairs, uint32_t left,
			   uint32_t right)
{
	if (pairs->n % PAIRS_STEP == 0)
		PFS_TRY(pfs_run_poll(j->run));
	if (pairs->n == pairs->capacity)
		PFS_TRY(pfs_pairs_reserve(j->run, pairs, PFS_SPAN));
	pfs_pairs_add(pairs, left, right);
	return 0;
}

/* Adds the partners of one tuple, which are those of the chain that starts at `tuple` + 1. */
static int add_partners(const struct joiner *j, struct pfs_pairs *pairs, uint32_t left,
			uint64_t number, uint32_t tuple)
{
	for (; tuple; tuple = j->is_chained ? j->next[tuple - 1] : 0) {
		uint32_t right = position_of(&j->right_at, tuple - 1);

		if (!j->is_direct &&
		    (j->numbers[tuple - 1] != number ||
		     (!j->right_keys.exact &&
		      !pfs_keys_equal(&j->left_keys, left, &j->right_keys, right))))
			continue;
		PFS_TRY(add_pair(j, pairs, left, right));
	}
	return 0;
}

/* Reads the numbers of the span's tuples, and where their chains start; 0: nowhere. */
static void find_chains(const struct joiner *j, const struct pfs_span *span, uint64_t *numbers,
			uint32_t *tuple)
{
	uint64_t absent[PFS_SPAN_WORDS];

	if (j->never) {
		memset(numbers, 0, span->n * sizeof(*numbers));
		memset(tuple, 0, span->n * sizeof(*tuple));
		return;
	}
	pfs_keys_read(&j->left_keys, span, numbers, absent);
	for (uint32_t i = 0; i < span->n; i++)
		__builtin_prefetch(&j->head[pfs_bit(absent, i) ? 0 : head_of(j, numbers[i])]);
	for (uint32_t i = 0; i < span->n; i++) {
		tuple[i] = pfs_bit(absent, i) ? 0 : j->head[head_of(j, numbers[i])];
		if (tuple[i] && !j->is_direct)
			__builtin_prefetch(&j->numbers[tuple[i] - 1]);
		if (tuple[i] && j->is_chained)
			__builtin_prefetch(&j->next[tuple[i] - 1]);
	}
}

static int look_up_span(const struct joiner *j, struct pfs_pairs *pairs,
			const struct pfs_span *span)
{
	uint64_t numbers[PFS_SPAN];
	uint32_t tuple[PFS_SPAN];

	find_chains(j, span, numbers, tuple);
	for (uint32_t i = 0; i < span->n; i++) {
		uint32_t left = pfs_span_at(span, i);
		size_t before = pairs->n;

		PFS_TRY(add_partners(j, pairs, left, numbers[i], tuple[i]));
		if (j->keeps_left && pairs->n == before)
			PFS_TRY(add_pair(j, pairs, left, PFS_NO_ROW));
	}
	return 0;
}

static int look_up_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct joiner *j = context;
	struct pfs_pairs *pairs = &j->pieces[from / PFS_PIECE];

	(void)worker;
	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		struct pfs_span span;

		pfs_positions_span(&j->left_at, &span, at, to);
		PFS_TRY(look_up_span(j, pairs, &span));
	}
	return 0;
}

static int look_up(struct joiner *j, struct pfs_pairs *out)
{
	size_t n_pieces = pfs_div_round_up(j->left_at.n, PFS_PIECE);
	int error;

	PFS_TRY(pfs_run_alloc(j->run, &j->pieces, n_pieces, sizeof(*j->pieces)));
	error = pfs_host_for(j->host, j->run, j->left_at.n, PFS_PIECE, look_up_piece, j);
	if (error) {
		for (size_t i = 0; i < n_pieces; i++)
			pfs_pairs_close(j->run, &j->pieces[i]);
	} else {
		error = pfs_pairs_join(out, j->host, j->run, j->pieces, n_pieces);
	}
	pfs_run_free(j->run, j->pieces, n_pieces, sizeof(*j->pieces));
	return error;
}

/* ---- the rest of ON ---- */

/* Finds the pairs for which the condition is true. */
static int test_pairs(struct joiner *j, const struct pfs_pairs *pairs, uint64_t *truth)
{
	struct pfs_source source = {0};
	struct pfs_evaluator evaluator;
	struct pfs_tuples *tuples;
	enum pfs_kind kind;
	bool is_truth;
	int error;

	PFS_TRY(pfs_pairs_take(j->host, j->run, &tuples, j->left, j->right, pairs));
	source.tuples = tuples;
	error = pfs_program_check(&kind, &is_truth, j->join->condition, NULL, tuples);
	if (!error)
		error = pfs_evaluator_open(&evaluator, j->host, j->run, &source,
					   j->join->condition);
	if (!error) {
		for (uint64_t at = 0; !error && at < pairs->n; at += PFS_SPAN) {
			struct pfs_span span = {.first = (uint32_t)at};

			span.n = (uint32_t)PFS_MIN(PFS_SPAN, pairs->n - at);
			memcpy(truth + at / 64, pfs_evaluate_truth(&evaluator, 0, &span),
			       (span.n + 63) / 64 * sizeof(*truth));
			error = pfs_run_poll(j->run);
			if (!error)
				error = atomic_load(&evaluator.error);
		}
		pfs_evaluator_close(&evaluator);
	}
	pfs_tuples_free(j->run, tuples);
	return error;
}

/* Pairs that are left, in left's order, with those of left that have none any more. */
static int keep_pairs(const struct joiner *j, struct pfs_pairs *out, const struct pfs_pairs *pairs,
		      const uint64_t *truth, bool keeps_left)
{
	size_t at = 0;

	PFS_TRY(pfs_pairs_reserve(j->run, out, pairs->n + (keeps_left ? j->left_at.n : 0)));
	for (uint64_t i = 0; i < j->left_at.n; i++) {
		uint32_t left = position_of(&j->left_at, (uint32_t)i);
		size_t before = out->n;

		for (; at < pairs->n && pairs->left[at] == left; at++) {
			if (pfs_bit(truth, at))
				pfs_pairs_add(out, left, pairs->right[at]);
		}
		if (keeps_left && out->n == before)
			pfs_pairs_add(out, left, PFS_NO_ROW);
	}
	return 0;
}

static int look_up_with_condition(struct joiner *j, struct pfs_pairs *out)
{
	bool keeps_left = j->keeps_left;
	struct pfs_pairs pairs = {0};
	uint64_t *truth;
	size_t words;
	int error;

	j->keeps_left = false;
	PFS_TRY(look_up(j, &pairs));
	words = (size_t)pfs_div_round_up(pairs.n, 64);
	error = pfs_run_alloc(j->run, &truth, words, sizeof(*truth));
	if (!error)
		error = test_pairs(j, &pairs, truth);
	if (!error)
		error = keep_pairs(j, out, &pairs, truth, keeps_left);
	pfs_run_free(j->run, truth, words, sizeof(*truth));
	pfs_pairs_close(j->run, &pairs);
	return error;
}

/* ---- the operator ---- */

static void close_joiner(struct joiner *j)
{
	const struct pfs_run *run = j->run;
	uint64_t n = j->right_at.n;

	pfs_run_free(run, j->head, j->n_heads, sizeof(*j->head));
	pfs_run_free(run, j->next, n, sizeof(*j->next));
	pfs_run_free(run, j->numbers, n, sizeof(*j->numbers));
	pfs_run_free(run, j->absent, pfs_div_round_up(n, 64), sizeof(*j->absent));
	pfs_keys_close(run, &j->left_keys);
	pfs_keys_close(run, &j->right_keys);
	pfs_positions_close(run, &j->left_at);
	pfs_positions_close(run, &j->right_at);
}

int pfs_host_join(struct pfs_operator_backend *b, const struct pfs_run *run,
		  struct pfs_tuples **out, const struct pfs_source *left,
		  const struct pfs_source *right, const struct pfs_join *join)
{
	struct joiner j = {.host = pfs_host_operators_of(b),
			   .run = run,
			   .left = left,
			   .right = right,
			   .join = join,
			   .keeps_left = join->kind == PFS_JOIN_LEFT};
	struct pfs_pairs pairs = {0};
	int error = pfs_positions_open(&j.left_at, j.host, run, left);

	if (!error)
		error = pfs_positions_open(&j.right_at, j.host, run, right);
	if (!error)
		error = open_keys(&j);
	if (!error && !j.never)
		error = build(&j);
	if (!error)
		error = join->condition ? look_up_with_condition(&j, &pairs) : look_up(&j, &pairs);
	if (!error)
		error = pfs_pairs_take(j.host, run, out, left, right, &pairs);
	pfs_pairs_close(run, &pairs);
	close_joiner(&j);
	return error;
}
