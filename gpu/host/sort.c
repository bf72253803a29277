/* SPDX-License-Identifier: MIT */
/* Sorting everything: the keys become as few 64-bit words as their ranges allow. The positions are
 * sorted by the first word, those with the same word by the next one, and those that no word tells
 * apart by comparing values. Several threads sort parts of many positions. */
#include "gpu/host/order.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/radix.h"
#include "gpu/host/families.h"
#include "gpu/host/positions.h"

#define FEW	     64u   /* items that are sorted by comparing, whatever tells them apart */
#define POLLED	     4096u /* items between two polls */
#define FULL	     (UINT64_C(1) << 40) /* a word is not given another key from this domain on */
#define SMALL	     (UINT64_C(1) << 22) /* words below which are sorted in two passes, so that a chunk may be larger */
#define CHUNK_SMALL  (UINT64_C(1) << 18)
#define FEW_OF	     8u /* up to this part of the tuples, a limit does not sort the rest, */
#define SORTED_BYTES 48u /* if its candidates take less memory than this for each tuple, as sorting all does at least */

/* ---- keys as numbers ---- */

struct numbering {
	const struct pfs_sorting *sorting;
	const struct pfs_order_key *key;
	uint64_t *numbers; /* by index */
	uint64_t *nulls;   /* bits by index */
	atomic_bool *is_cut; /* a text has more than its number says */
};

/* Returns true if the number says all of the text: up to seven bytes, of which the last is not
 * 0. */
static bool says_all(const struct pfs_order_key *key, uint64_t number, uint32_t place)
{
	size_t len;

	if (number & 0xff)
		return false;
	(void)pfs_cell_text(&key->reader, place, &len);
	return len == (number ? 8 - (size_t)__builtin_ctzll(number) / 8 : 0);
}

static void look_for_cut(const struct numbering *n, const struct pfs_cells *cells,
			 const uint64_t *numbers, uint32_t count)
{
	for (uint32_t i = 0; i < count && !atomic_load_explicit(n->is_cut, memory_order_relaxed);
	     i++)
		if (!(cells->has_nulls && pfs_bit(cells->nulls, i)) &&
		    !says_all(n->key, numbers[i], cells->codes[i]))
			atomic_store(n->is_cut, true);
}

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
		(void)pfs_order_numbers(&plain, &span, n->numbers + at, &cells);
		if (plain.reader.kind == PFS_KIND_PLACE)
			look_for_cut(n, &cells, n->numbers + at, span.n);
		if (cells.has_nulls)
			memcpy(n->nulls + at / 64, cells.nulls,
			       (span.n + 63) / 64 * sizeof(uint64_t));
	}
	return 0;
}

/* ---- words ---- */

/* The words by which keys are sorted. All numbers of the last word are below `domain`; 0 stands for
 * 2^64. */
struct words {
	uint64_t **word; /* n of them, the most significant first, each by index */
	size_t n;
	uint64_t domain; /* of the last word; 0: it is full, or there is none */
	uint64_t first;  /* the same of the first word */
	size_t told;  /* so many keys are in the words */
	bool is_done; /* the next key is partly in them; from it on values are compared */
	unsigned compared; /* values, since the last poll */
};

static void free_words(struct words *w, const struct pfs_sorting *s)
{
	for (size_t i = 0; w->word && i < w->n; i++)
		pfs_run_free(s->run, w->word[i], s->positions->n, sizeof(uint64_t));
	pfs_run_free(s->run, w->word, 2 * s->n_keys, sizeof(*w->word));
}

static void set_domain(struct words *w, uint64_t domain)
{
	w->domain = domain;
	if (w->n == 1)
		w->first = domain;
}

/* Returns true if the last word has room for a digit below base, where 0 stands for 2^64. */
static bool is_room(const struct words *w, uint64_t base)
{
	uint64_t product;

	return w->n && base && w->domain && !__builtin_mul_overflow(w->domain, base, &product);
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
	if (is_room(w, 2)) {
		set_domain(w, w->domain * 2);
	} else {
		PFS_TRY(pfs_run_alloc(s->run, &w->word[w->n], s->positions->n, sizeof(uint64_t)));
		w->n++;
		set_domain(w, 2);
	}
	d->word = w->word[w->n - 1];
	return pfs_host_for(s->host, s->run, s->positions->n, PFS_PIECE, add_nulls_piece, d);
}

static int add_numbers(struct words *w, const struct pfs_sorting *s, struct digits *d,
		       uint64_t **numbers)
{
	uint64_t n = s->positions->n;

	PFS_TRY(pfs_host_for(s->host, s->run, n, PFS_PIECE, find_range_piece, d));
	if (d->least > d->greatest) /* all values are NULL */
		return 0;
	d->base = d->greatest - d->least + 1;
	if (is_room(w, d->base)) {
		set_domain(w, w->domain * d->base);
	} else { /* the numbers become a word where they are */
		w->word[w->n++] = PFS_TAKE(*numbers);
		set_domain(w, d->base);
		d->base = 0;
	}
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
	atomic_bool is_cut = key->reader.kind == PFS_KIND_NUMBER;
	struct numbering n = {.sorting = s, .key = key, .is_cut = &is_cut};
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
		error = add_numbers(w, s, &d, &n.numbers);
	pfs_run_free(s->run, n.numbers, count, sizeof(*n.numbers));
	pfs_run_free(s->run, n.nulls, words, sizeof(*n.nulls));
	w->is_done = atomic_load(&is_cut);
	w->told += !w->is_done;
	return error;
}

/* Adds keys to word k, which nothing has been sorted by yet, until it is full or there are no
 * more. */
static int fill_word(struct words *w, const struct pfs_sorting *s, size_t k)
{
	if (w->n == k)
		w->domain = 0; /* the word before has been sorted by */
	while (!w->is_done && w->told < s->n_keys &&
	       (w->n <= k || (w->n == k + 1 && w->domain && w->domain < FULL)))
		PFS_TRY(add_key(w, s, &s->keys[w->told]));
	return 0;
}

/* ---- sorting by one word ---- */

struct filling {
	struct pfs_keyed *items;
	const uint64_t *word;
};

static int number_indexes(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct filling *f = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++)
		f->items[i].value = (uint32_t)i;
	return 0;
}

static int fill_keys(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct filling *f = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++)
		f->items[i].key = f->word[f->items[i].value];
	return 0;
}

/* ---- sorting by all words ---- */

static int sort_from_word(const struct pfs_sorting *s, struct words *w, size_t k,
			  struct pfs_keyed *items, struct pfs_keyed *more, uint64_t n);

/* Sorts, of the items that are sorted by the words before k, those that these do not tell apart. */
static int sort_equal(const struct pfs_sorting *s, struct words *w, size_t k,
		      struct pfs_keyed *items, struct pfs_keyed *more, uint64_t n)
{
	for (uint64_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && items[to].key == items[from].key; to++)
			;
		if (to - from > 1)
			PFS_TRY(sort_from_word(s, w, k, items + from, more + from, to - from));
		if (to % POLLED < to - from)
			PFS_TRY(pfs_run_poll(s->run));
	}
	return 0;
}

/* The same for many items, shared by all threads. */
struct sharing {
	struct pfs_sorting alone; /* for a thread, which works without the others */
	const struct words *words;
	size_t k;
	struct pfs_keyed *items, *more;
	uint64_t n;
	uint64_t *starts; /* bits by item: it differs from the one before */
	uint32_t *many;	  /* where those begin that are so many that all threads sort them, */
	atomic_uint n_many;
	atomic_bool any_few, any_more; /* others: up to FEW, and more */
};

static int mark_starts(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct sharing *share = context;
	const struct pfs_keyed *items = share->items;

	(void)worker;
	for (uint64_t i = from; i < to; i++)
		if (i == 0 || items[i].key != items[i - 1].key)
			share->starts[i / 64] |= UINT64_C(1) << i % 64;
	return 0;
}

/* Returns where the next items begin that are equal, from `at` on and before `to`; else `to`. */
static uint64_t next_start(const struct sharing *share, uint64_t at, uint64_t to)
{
	uint64_t left = at < to ? share->starts[at / 64] >> at % 64 << at % 64 : 0;

	while (!left && (at = (at | 63) + 1) < to)
		left = share->starts[at / 64];
	return left ? PFS_MIN(at / 64 * 64 + (uint64_t)__builtin_ctzll(left), to) : to;
}

/* Returns where those end that begin at `at`, or PFS_SORT_SHARED behind it. */
static uint64_t few_end(const struct sharing *share, uint64_t at)
{
	return next_start(share, at + 1, PFS_MIN(at + PFS_SORT_SHARED, share->n));
}

static int find_equal(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	struct sharing *share = context;
	bool any_few = false, any_more = false;

	for (uint64_t at = next_start(share, from, to), end; at < to;
	     at = next_start(share, end, to)) {
		end = few_end(share, at);
		if (end - at == PFS_SORT_SHARED)
			share->many[atomic_fetch_add(&share->n_many, 1)] = (uint32_t)at;
		any_few |= end - at > 1 && end - at <= FEW;
		any_more |= end - at > FEW && end - at < PFS_SORT_SHARED;
	}
	if (any_few)
		atomic_store_explicit(&share->any_few, true, memory_order_relaxed);
	if (any_more)
		atomic_store_explicit(&share->any_more, true, memory_order_relaxed);
	return 0;
}

/* Those that begin in the piece. */
static int sort_few_equal(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	const struct sharing *share = context;
	struct words words = *share->words;

	for (uint64_t at = next_start(share, from, to), end; at < to;
	     at = next_start(share, end, to)) {
		end = few_end(share, at);
		if (end - at > 1 && end - at < PFS_SORT_SHARED)
			PFS_TRY(sort_from_word(&share->alone, &words, share->k, share->items + at,
					       share->more + at, end - at));
	}
	return 0;
}

static int sort_many_equal(const struct pfs_sorting *s, struct words *w,
			   const struct sharing *share)
{
	for (unsigned i = 0; i < atomic_load(&share->n_many); i++) {
		uint64_t at = share->many[i], n = next_start(share, at + 1, share->n) - at;

		PFS_TRY(sort_from_word(s, w, share->k, share->items + at, share->more + at, n));
	}
	return 0;
}

static int share_equal(const struct pfs_sorting *s, struct words *w, size_t k,
		       struct pfs_keyed *items, struct pfs_keyed *more, uint64_t n)
{
	struct sharing share = {
		.alone = *s, .words = w, .k = k, .items = items, .more = more, .n = n};
	const size_t n_words = (size_t)pfs_div_round_up(n, 64),
		     many_max = (size_t)(n / PFS_SORT_SHARED);
	int error = pfs_run_alloc(s->run, &share.starts, n_words, sizeof(*share.starts));

	share.alone.host = NULL;
	if (!error)
		error = pfs_run_alloc_raw(s->run, &share.many, many_max, sizeof(*share.many));
	if (!error)
		error = pfs_host_for(s->host, s->run, n, PFS_PIECE, mark_starts, &share);
	if (!error)
		error = pfs_host_for(s->host, s->run, n, PFS_PIECE, find_equal, &share);
	if (!error)
		error = sort_many_equal(s, w, &share);
	if (!error && atomic_load(&share.any_more))
		error = fill_word(w, s, k);
	if (!error && (atomic_load(&share.any_few) || atomic_load(&share.any_more)))
		error = pfs_host_for(s->host, s->run, n, PFS_PIECE, sort_few_equal, &share);
	pfs_run_free(s->run, share.starts, n_words, sizeof(*share.starts));
	pfs_run_free(s->run, share.many, many_max, sizeof(*share.many));
	return error;
}

struct apart {
	const struct pfs_sorting *sorting;
	const struct words *words;
	size_t k; /* words before it are not compared */
};

/* By words, then by the keys that are not in them. */
static int compare_indexes(const void *by, uint32_t a, uint32_t b)
{
	const struct apart *apart = by;
	const struct pfs_sorting *s = apart->sorting;
	uint32_t x = pfs_position_at(s->positions, a), y = pfs_position_at(s->positions, b);
	int order = 0;

	for (size_t i = apart->k; i < apart->words->n && order == 0; i++) {
		const uint64_t *word = apart->words->word[i];

		order = (word[a] > word[b]) - (word[a] < word[b]);
	}
	for (size_t i = apart->words->told; i < s->n_keys && order == 0; i++)
		order = pfs_order_compare_by(&s->keys[i], x, y);
	return order;
}

/* Sorts items, which are in the order of their indexes and which the words before k do not tell
 * apart. A thread that works alone makes no word. */
static int sort_from_word(const struct pfs_sorting *s, struct words *w, size_t k,
			  struct pfs_keyed *items, struct pfs_keyed *more, uint64_t n)
{
	struct filling f = {.items = items};
	uint64_t most = PFS_SORTED_AT_ONCE;

	if (n > FEW && s->host)
		PFS_TRY(fill_word(w, s, k));
	if (n <= FEW || (k == w->n && w->told < s->n_keys)) {
		const struct apart apart = {s, w, k};
		const struct pfs_comparing by = {s->run, compare_indexes, &apart, &w->compared};

		return pfs_sort_values(&by, items, more, n);
	}
	if (k == w->n)
		return 0;
	f.word = w->word[k];
	PFS_TRY(pfs_host_for(s->host, s->run, n, PFS_PIECE, fill_keys, &f));
	if (k + 1 == w->n && w->domain && w->domain <= SMALL)
		most = CHUNK_SMALL;
	PFS_TRY(pfs_sort_keys(s, items, more, n, most));
	if (k + 1 == w->n && w->told == s->n_keys)
		return 0;
	return (s->host && n >= PFS_SORT_SHARED ? share_equal : sort_equal)(s, w, k + 1, items,
									    more, n);
}

int pfs_sort_ties(const struct pfs_sorting *s, struct pfs_keyed *items, struct pfs_keyed *more,
		  uint64_t n)
{
	struct words none = {.is_done = true};

	return (s->host && n >= PFS_SORT_SHARED ? share_equal : sort_equal)(s, &none, 0, items,
									    more, n);
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
		o->order[i] = pfs_position_at(o->positions, o->sorted[i].value);
	return 0;
}

int pfs_sorted_positions(const struct pfs_sorting *s, uint32_t **order,
			 const struct pfs_keyed *items, uint64_t n)
{
	struct ordering o = {.positions = s->positions, .sorted = items};
	int error = pfs_run_alloc_raw(s->run, order, n, sizeof(**order));

	o.order = *order;
	if (!error)
		error = pfs_host_for(s->host, s->run, n, PFS_PIECE, order_piece, &o);
	if (error) {
		pfs_run_free(s->run, *order, n, sizeof(**order));
		*order = NULL;
	}
	return error;
}

/* Keeps the items that may be among the first ones, as far as the first word tells. */
static int leave_out(const struct pfs_sorting *s, struct words *w, struct pfs_keyed *items,
		     uint64_t *n, uint64_t most)
{
	PFS_TRY(fill_word(w, s, 0));
	return w->n ? pfs_sort_bound(s, items, n, w->word[0], w->first, most) : 0;
}

int pfs_sort_all(const struct pfs_sorting *s, uint32_t **order, uint64_t most)
{
	struct pfs_keyed *items = NULL, *more = NULL;
	struct filling f;
	uint64_t n = s->positions->n, kept = n;
	struct words w = {0};
	int error = pfs_run_alloc(s->run, &w.word, 2 * s->n_keys, sizeof(*w.word));

	*order = NULL;
	if (!error)
		error = pfs_run_alloc_raw(s->run, &items, n, sizeof(*items));
	if (!error)
		error = pfs_run_alloc_raw(s->run, &more, n, sizeof(*more));
	f = (struct filling){.items = items};
	if (!error)
		error = pfs_host_for(s->host, s->run, n, PFS_PIECE, number_indexes, &f);
	if (!error && most < n && n > PFS_SORT_SHARED)
		error = leave_out(s, &w, items, &kept, most);
	if (!error)
		error = sort_from_word(s, &w, 0, items, more, kept);
	free_words(&w, s);
	if (!error)
		error = pfs_sorted_positions(s, order, items, most);
	pfs_run_free(s->run, items, n, sizeof(*items));
	pfs_run_free(s->run, more, n, sizeof(*more));
	return error;
}

/* ---- the operator ---- */

/* Returns true if it is worth it to choose so many of n, and to sort these alone: many that share
 * their first key are told apart by comparing, which words of further keys do in less time. */
static bool are_few(const struct pfs_host_operators *host, uint64_t most, uint64_t n, size_t n_keys)
{
	return most < n / FEW_OF && (n_keys == 1 || most <= PFS_SORT_SHARED) &&
	       (double)most * (double)(pfs_host_workers(host) * PFS_FIRST_BYTES) <=
		       (double)n * SORTED_BYTES;
}

/* NOLINTNEXTLINE(readability-function-size): the public function's, and the back end */
int pfs_host_sort(struct pfs_operator_backend *b, const struct pfs_run *run,
		  struct pfs_tuples **out, const struct pfs_source *source,
		  const struct pfs_sort_key *keys, size_t n_keys, uint64_t offset, uint64_t limit)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	struct pfs_positions positions, sorted = {0};
	struct pfs_sorting s;
	uint32_t *order = NULL;
	uint64_t end;
	int error;

	PFS_TRY(pfs_positions_open(&positions, host, run, source));
	offset = PFS_MIN(offset, positions.n);
	end = offset + PFS_MIN(limit, positions.n - offset);
	error = pfs_sorting_open(&s, host, run, source, &positions, keys, n_keys);
	if (!error) {
		error = n_keys && are_few(host, end, positions.n, n_keys)
				? pfs_sort_first(&s, &order, end)
				: pfs_sort_all(&s, &order, end);
		pfs_sorting_close(&s);
	}
	if (!error) {
		sorted.at = order + offset;
		sorted.n = end - offset;
		error = pfs_host_batch(host, run, out, source, &sorted, 0);
	}
	pfs_run_free(run, order, end, sizeof(*order));
	pfs_positions_close(run, &positions);
	return error;
}
