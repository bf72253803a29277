/* SPDX-License-Identifier: MIT */
/* Sorting everything: the keys become as few 64-bit words as their ranges allow, and the positions
 * are sorted by each word, the last word first. Several threads sort parts of a word's range. */
#include "gpu/host/order.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/radix.h"
#include "base/search.h"
#include "gpu/host/families.h"
#include "gpu/host/lanes.h"
#include "gpu/host/positions.h"

#define PARALLEL_MIN 65536u		 /* from so many items on threads help */
/* items that are sorted at a time: they fit the cache, and take a millisecond */
#define CHUNK_MAX    (UINT64_C(1) << 16)
#define FEW_OF	     8u /* up to this part of the tuples, a limit does not sort the rest */

/* ---- keys as numbers ---- */

struct numbering {
	const struct pfs_sorting *sorting;
	const struct pfs_order_key *key;
	uint64_t *numbers; /* by index */
	uint64_t *nulls;   /* bits by index */
};

/* NULLs have 0 in `numbers`, and their bit. */
static int number_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct numbering *n = context;
	struct pfs_order_key plain = *n->key;

	(void)worker;
	plain.descending = false;
	plain.nulls_last = false;
	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		struct pfs_cells cells;
		struct pfs_span span;

		pfs_positions_span(n->sorting->positions, &span, at, to);
		(void)pfs_order_numbers(&plain, &span, n->numbers + at);
		pfs_cells_read(&plain.reader, &span, &cells);
		if (cells.has_nulls)
			memcpy(n->nulls + at / 64, cells.nulls,
			       (span.n + 63) / 64 * sizeof(uint64_t));
	}
	return 0;
}

/* ---- texts and mixed numbers: equal numbers need not be equal values ---- */

static uint32_t position_of(const struct pfs_positions *positions, uint32_t i)
{
	return positions->at ? positions->at[i] : positions->first + i;
}

static int compare_indexes(const void *a, const void *b, void *context)
{
	const struct numbering *n = context;
	const struct pfs_keyed *x = a, *y = b;
	int order = pfs_order_compare_by(n->key, position_of(n->sorting->positions, x->value),
					 position_of(n->sorting->positions, y->value));

	return order ? order : (x->value > y->value) - (x->value < y->value);
}

/* Makes ranks of the numbers: equal ranks are equal values. */
static int rank_numbers(const struct numbering *n, uint64_t count)
{
	const struct pfs_run *run = n->sorting->run;
	struct pfs_order_key plain = *n->key;
	struct numbering by = *n;
	struct pfs_keyed *items;
	uint64_t rank = 0;
	int error;

	plain.descending = false;
	by.key = &plain;
	PFS_TRY(pfs_run_alloc_raw(run, &items, count, sizeof(*items)));
	for (uint64_t i = 0; i < count; i++)
		items[i] = (struct pfs_keyed){.key = n->numbers[i], .value = (uint32_t)i};
	error = pfs_radix_sort(items, count);
	for (uint64_t from = 0, to; !error && from < count; from = to) {
		for (to = from + 1; to < count && items[to].key == items[from].key; to++)
			;
		if (to - from > 1)
			qsort_r(items + from, to - from, sizeof(*items), compare_indexes, &by);
		for (uint64_t i = from; i < to; i++) {
			uint32_t a = i ? items[i - 1].value : 0, b = items[i].value;

			rank += i &&
				(i == from ||
				 pfs_order_compare_by(&plain, position_of(n->sorting->positions, a),
						      position_of(n->sorting->positions, b)));
			n->numbers[b] = rank;
		}
		if (to % 4096 < to - from)
			error = pfs_run_poll(run);
	}
	pfs_run_free(run, items, count, sizeof(*items));
	return error;
}

/* ---- words ---- */

/* The words by which keys are sorted. All numbers of the last word are below `domain`; 0 stands for
 * 2^64. */
struct words {
	uint64_t **word; /* n of them, the most significant first, each by index */
	size_t n;
	uint64_t domain; /* of the last word; 0: it is full, or there is none */
};

static int add_word(struct words *w, const struct pfs_run *run, uint64_t count)
{
	PFS_TRY(pfs_run_alloc(run, &w->word[w->n], count, sizeof(uint64_t)));
	w->n++;
	w->domain = 1;
	return 0;
}

static void free_words(struct words *w, const struct pfs_sorting *s)
{
	for (size_t i = 0; w->word && i < w->n; i++)
		pfs_run_free(s->run, w->word[i], s->positions->n, sizeof(uint64_t));
	pfs_run_free(s->run, w->word, 2 * s->n_keys, sizeof(*w->word));
}

/* Adds a digit to the last word, or begins a new one: digit(i) < base, where base 0 stands for
 * 2^64. */
static int make_room(struct words *w, const struct pfs_run *run, uint64_t count, uint64_t base)
{
	uint64_t product;

	if (w->n && base && w->domain && !__builtin_mul_overflow(w->domain, base, &product)) {
		w->domain = product;
		return 0;
	}
	PFS_TRY(add_word(w, run, count));
	w->domain = base;
	return 0;
}

/* A key's numbers as they go into a word. */
struct digits {
	const struct pfs_order_key *key;
	uint64_t *numbers;     /* those of NULLs are not used */
	const uint64_t *nulls; /* NULL: there are none */
	uint64_t *word, base, least, greatest;
	pthread_mutex_t *mutex; /* protects least and greatest while they are found */
};

static int add_nulls_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct digits *d = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++)
		d->word[i] = d->word[i] * 2 + (pfs_bit(d->nulls, i) == d->key->nulls_last);
	return 0;
}

static int find_range_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct digits *d = context;
	uint64_t least = UINT64_MAX, greatest = 0;

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		if (d->nulls && pfs_bit(d->nulls, i))
			continue;
		least = PFS_MIN(least, d->numbers[i]);
		greatest = PFS_MAX(greatest, d->numbers[i]);
	}
	(void)pthread_mutex_lock(d->mutex);
	d->least = PFS_MIN(d->least, least);
	d->greatest = PFS_MAX(d->greatest, greatest);
	(void)pthread_mutex_unlock(d->mutex);
	return 0;
}

static int add_numbers_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct digits *d = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		uint64_t number = d->nulls && pfs_bit(d->nulls, i) ? d->least : d->numbers[i];

		d->word[i] = d->word[i] * d->base +
			     (d->key->descending ? d->greatest - number : number - d->least);
	}
	return 0;
}

static int add_nulls(struct words *w, const struct pfs_sorting *s, struct digits *d)
{
	PFS_TRY(make_room(w, s->run, s->positions->n, 2));
	d->word = w->word[w->n - 1];
	return pfs_host_for(s->host, s->run, s->positions->n, PFS_PIECE, add_nulls_piece, d);
}

static int add_numbers(struct words *w, const struct pfs_sorting *s, struct digits *d)
{
	uint64_t n = s->positions->n;

	PFS_TRY(pfs_host_for(s->host, s->run, n, PFS_PIECE, find_range_piece, d));
	if (d->least > d->greatest) /* all values are NULL */
		return 0;
	d->base = d->greatest - d->least + 1;
	PFS_TRY(make_room(w, s->run, n, d->base));
	d->word = w->word[w->n - 1];
	return pfs_host_for(s->host, s->run, n, PFS_PIECE, add_numbers_piece, d);
}

static bool any_bit(const uint64_t *words, uint64_t n)
{
	for (uint64_t i = 0; i < (n + 63) / 64; i++) {
		if (words[i])
			return true;
	}
	return false;
}

static int add_key(struct words *w, const struct pfs_sorting *s, const struct pfs_order_key *key)
{
	struct numbering n = {.sorting = s, .key = key};
	uint64_t count = s->positions->n;
	size_t words = (size_t)pfs_div_round_up(count, 64);
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct digits d;
	bool has_nulls;
	int error = pfs_run_alloc_raw(s->run, &n.numbers, count, sizeof(*n.numbers));

	if (!error)
		error = pfs_run_alloc(s->run, &n.nulls, words, sizeof(*n.nulls));
	if (!error)
		error = pfs_host_for(s->host, s->run, count, PFS_PIECE, number_piece, &n);
	if (!error && (key->reader.kind == PFS_KIND_PLACE || key->reader.kind == PFS_KIND_NUMBER))
		error = rank_numbers(&n, count);
	has_nulls = !error && any_bit(n.nulls, count);
	d = (struct digits){
		.key = key,
		.numbers = n.numbers,
		.nulls = has_nulls ? n.nulls : NULL,
		.least = UINT64_MAX,
		.mutex = &mutex,
	};
	if (has_nulls)
		error = add_nulls(w, s, &d);
	if (!error)
		error = add_numbers(w, s, &d);
	pfs_run_free(s->run, n.numbers, count, sizeof(*n.numbers));
	pfs_run_free(s->run, n.nulls, words, sizeof(*n.nulls));
	return error;
}

/* ---- sorting by one word ---- */

/* Chunks are sorted by a thread each, then merged two by two, a piece of the result by a thread. */
struct chunked {
	struct pfs_keyed *from, *to;
	uint64_t n, chunk;
	const uint64_t *word;
};

static int number_indexes(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct chunked *c = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++)
		c->from[i].value = (uint32_t)i;
	return 0;
}

static int fill_chunk(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct chunked *c = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++)
		c->from[i].key = c->word[c->from[i].value];
	return 0;
}

static int sort_chunk(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct chunked *c = context;

	(void)worker;
	pfs_radix_sort_with(c->from + from, c->to + from, to - from);
	return 0;
}

/* Returns how many of a are among the first k of both merged. If keys are equal, those of a come
 * first. */
static uint64_t merged_share(const struct pfs_keyed *a, uint64_t n_a, const struct pfs_keyed *b,
			     uint64_t n_b, uint64_t k)
{
	return PFS_SEARCH(i, k > n_b ? k - n_b : 0, PFS_MIN(k, n_a), a[i].key <= b[k - i - 1].key);
}

/* Places k.. before `end` of both merged. */
static void merge_pair(struct pfs_keyed *out, const struct pfs_keyed *a, uint64_t n_a,
		       const struct pfs_keyed *b, uint64_t n_b, uint64_t k, uint64_t end)
{
	uint64_t at_a = merged_share(a, n_a, b, n_b, k), at_b = k - at_a;

	for (; k < end && at_a < n_a && at_b < n_b;
	     k++) { /* without branches, which could not be predicted */
		bool is_a = a[at_a].key <= b[at_b].key;
		const struct pfs_keyed *from = is_a ? &a[at_a] : &b[at_b];

		out[k] = *from;
		at_a += is_a;
		at_b += !is_a;
	}
	if (k < end && at_a < n_a)
		memcpy(out + k, a + at_a, (end - k) * sizeof(*out));
	else if (k < end)
		memcpy(out + k, b + at_b, (end - k) * sizeof(*out));
}

static int merge_chunks(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct chunked *c = context;

	(void)worker;
	while (from < to) {
		uint64_t start = from / (2 * c->chunk) * (2 * c->chunk);
		uint64_t n_a = PFS_MIN(c->chunk, c->n - start);
		uint64_t n_b = PFS_MIN(c->chunk, c->n - start - n_a);
		uint64_t end = PFS_MIN(to, start + n_a + n_b);
		const struct pfs_keyed *a = c->from + start;

		merge_pair(c->to + start, a, n_a, a + n_a, n_b, from - start, end - start);
		from = end;
	}
	return 0;
}

/* Sorts c->from, with c->to as more memory; the result is c->from. */
static int sort_chunks(const struct pfs_sorting *s, struct chunked *c)
{
	uint64_t n_chunks = 1;

	while (n_chunks < pfs_host_workers(s->host) || c->n / n_chunks > CHUNK_MAX)
		n_chunks *= 2;
	c->chunk = pfs_div_round_up(c->n, n_chunks);
	PFS_TRY(pfs_host_for(s->host, s->run, c->n, c->chunk, sort_chunk, c));
	for (; c->chunk < c->n; c->chunk *= 2) {
		struct pfs_keyed *merged = c->to;

		PFS_TRY(pfs_host_for(s->host, s->run, c->n, PFS_PIECE, merge_chunks, c));
		c->to = c->from;
		c->from = merged;
	}
	return 0;
}

/* Sorts indexes 0..n by the words; *order = the result, which is `items` or `more`. */
static int sort_by_words(const struct pfs_sorting *s, const struct words *w,
			 struct pfs_keyed *items, struct pfs_keyed *more, struct pfs_keyed **order)
{
	struct chunked c = {.from = items, .to = more, .n = s->positions->n};

	PFS_TRY(pfs_host_for(s->host, s->run, c.n, PFS_PIECE, number_indexes, &c));
	for (size_t k = w->n; k-- > 0;) {
		c.word = w->word[k];
		PFS_TRY(pfs_host_for(s->host, s->run, c.n, PFS_PIECE, fill_chunk, &c));
		if (c.n < PARALLEL_MIN)
			pfs_radix_sort_with(c.from, c.to, c.n);
		else
			PFS_TRY(sort_chunks(s, &c));
	}
	*order = c.from;
	return 0;
}

struct ordering {
	const struct pfs_positions *positions;
	const struct pfs_keyed *sorted;
	uint32_t *order;
};

static int order_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct ordering *o = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++)
		o->order[i] = position_of(o->positions, o->sorted[i].value);
	return 0;
}

int pfs_sort_all(const struct pfs_sorting *s, uint32_t **order)
{
	struct pfs_keyed *items = NULL, *more = NULL, *sorted = NULL;
	uint64_t n = s->positions->n;
	struct words w = {0};
	struct ordering o;
	int error = pfs_run_alloc(s->run, &w.word, 2 * s->n_keys, sizeof(*w.word));

	*order = NULL;
	for (size_t i = 0; !error && i < s->n_keys; i++)
		error = add_key(&w, s, &s->keys[i]);
	if (!error)
		error = pfs_run_alloc_raw(s->run, &items, n, sizeof(*items));
	if (!error)
		error = pfs_run_alloc_raw(s->run, &more, n, sizeof(*more));
	if (!error)
		error = sort_by_words(s, &w, items, more, &sorted);
	free_words(&w, s);
	if (!error)
		error = pfs_run_alloc_raw(s->run, order, n, sizeof(**order));
	o = (struct ordering){s->positions, sorted, *order};
	if (!error)
		error = pfs_host_for(s->host, s->run, n, PFS_PIECE, order_piece, &o);
	if (error) {
		pfs_run_free(s->run, *order, n, sizeof(**order));
		*order = NULL;
	}
	pfs_run_free(s->run, items, n, sizeof(*items));
	pfs_run_free(s->run, more, n, sizeof(*more));
	return error;
}

/* ---- the operator ---- */

/* NOLINTNEXTLINE(readability-function-size): the public function's, and the back end */
int pfs_host_sort(struct pfs_operator_backend *b, const struct pfs_run *run,
		  struct pfs_tuples **out, const struct pfs_source *source,
		  const struct pfs_sort_key *keys, size_t n_keys, uint64_t offset, uint64_t limit)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	struct pfs_positions positions, sorted = {0};
	struct pfs_sorting s;
	uint32_t *order = NULL;
	uint64_t end, n;
	int error;

	PFS_TRY(pfs_positions_open(&positions, host, run, source));
	offset = PFS_MIN(offset, positions.n);
	end = offset + PFS_MIN(limit, positions.n - offset);
	n = n_keys && end < positions.n / FEW_OF ? end : positions.n;
	error = pfs_sorting_open(&s, host, run, source, &positions, keys, n_keys);
	if (!error) {
		error = n < positions.n ? pfs_sort_first(&s, &order, n) : pfs_sort_all(&s, &order);
		pfs_sorting_close(&s);
	}
	if (!error) {
		sorted.at = order + offset;
		sorted.n = end - offset;
		error = pfs_host_batch(host, run, out, source, &sorted, 0);
	}
	pfs_run_free(run, order, n, sizeof(*order));
	pfs_positions_close(run, &positions);
	return error;
}
