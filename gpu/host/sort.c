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
#include "base/search.h"
#include "gpu/host/families.h"
#include "gpu/host/lanes.h"
#include "gpu/host/positions.h"

#define PARALLEL_MIN 65536u		 /* from so many items on threads help */
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
		w->domain *= 2;
	} else {
		PFS_TRY(pfs_run_alloc(s->run, &w->word[w->n], s->positions->n, sizeof(uint64_t)));
		w->n++;
		w->domain = 2;
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
		w->domain *= d->base;
	} else { /* the numbers become a word where they are */
		w->word[w->n++] = PFS_TAKE(*numbers);
		w->domain = d->base;
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

static int copy_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct chunked *c = context;

	(void)worker;
	memcpy(c->to + from, c->from + from, (to - from) * sizeof(*c->to));
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

int pfs_sort_keys(const struct pfs_sorting *s, struct pfs_keyed *items, struct pfs_keyed *more,
		  uint64_t n, uint64_t most)
{
	struct chunked c = {.from = items, .to = more, .n = n};
	uint64_t n_chunks = 1;

	if (n < PARALLEL_MIN) {
		pfs_radix_sort_with(items, more, n);
		return 0;
	}
	while (n_chunks < pfs_host_workers(s->host) || n / n_chunks > most)
		n_chunks *= 2;
	c.chunk = pfs_div_round_up(n, n_chunks);
	PFS_TRY(pfs_host_for(s->host, s->run, n, c.chunk, sort_chunk, &c));
	for (; c.chunk < n; c.chunk *= 2) {
		struct pfs_keyed *merged = c.to;

		PFS_TRY(pfs_host_for(s->host, s->run, n, PFS_PIECE, merge_chunks, &c));
		c.to = c.from;
		c.from = merged;
	}
	return c.from == items ? 0 : pfs_host_for(s->host, s->run, n, PFS_PIECE, copy_piece, &c);
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

/* Those that begin in the piece. */
static int sort_few_equal(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct sharing *share = context;
	struct words words = *share->words;

	(void)worker;
	for (uint64_t at = next_start(share, from, to), end; at < to;
	     at = next_start(share, end, to)) {
		end = next_start(share, at + 1, PFS_MIN(at + PARALLEL_MIN, share->n));
		if (end - at > 1 && end - at < PARALLEL_MIN)
			PFS_TRY(sort_from_word(&share->alone, &words, share->k, share->items + at,
					       share->more + at, end - at));
	}
	return 0;
}

/* Those that are so many that all threads sort them together; *most: of the others. */
static int sort_many_equal(const struct pfs_sorting *s, struct words *w,
			   const struct sharing *share, uint64_t *most)
{
	*most = 0;
	for (uint64_t at = 0, end; at < share->n; at = end) {
		end = next_start(share, at + 1, share->n);
		if (end - at >= PARALLEL_MIN)
			PFS_TRY(sort_from_word(s, w, share->k, share->items + at, share->more + at,
					       end - at));
		else
			*most = PFS_MAX(*most, end - at);
		if (end % POLLED < end - at)
			PFS_TRY(pfs_run_poll(s->run));
	}
	return 0;
}

static int share_equal(const struct pfs_sorting *s, struct words *w, size_t k,
		       struct pfs_keyed *items, struct pfs_keyed *more, uint64_t n)
{
	struct sharing share = {
		.alone = *s, .words = w, .k = k, .items = items, .more = more, .n = n};
	const size_t n_words = (size_t)pfs_div_round_up(n, 64);
	uint64_t most = 0;
	int error = pfs_run_alloc(s->run, &share.starts, n_words, sizeof(*share.starts));

	share.alone.host = NULL;
	if (!error)
		error = pfs_host_for(s->host, s->run, n, PFS_PIECE, mark_starts, &share);
	if (!error)
		error = sort_many_equal(s, w, &share, &most);
	if (!error && most > FEW)
		error = fill_word(w, s, k);
	if (!error && most > 1)
		error = pfs_host_for(s->host, s->run, n, PFS_PIECE, sort_few_equal, &share);
	pfs_run_free(s->run, share.starts, n_words, sizeof(*share.starts));
	return error;
}

/* Sorts items, which are in the order of their indexes and which the words before k do not tell
 * apart. A thread that works alone makes no word. */
static int sort_from_word(const struct pfs_sorting *s, struct words *w, size_t k,
			  struct pfs_keyed *items, struct pfs_keyed *more, uint64_t n)
{
	struct chunked c = {.from = items};
	uint64_t most = PFS_SORTED_AT_ONCE;

	if (n > FEW && s->host)
		PFS_TRY(fill_word(w, s, k));
	if (n <= FEW || (k == w->n && w->told < s->n_keys)) {
		const struct pfs_comparing apart = {s, w->word + k, w->n - k, w->told,
						    &w->compared};

		return pfs_sort_values(&apart, items, more, n);
	}
	if (k == w->n)
		return 0;
	c.word = w->word[k];
	PFS_TRY(pfs_host_for(s->host, s->run, n, PFS_PIECE, fill_chunk, &c));
	if (k + 1 == w->n && w->domain && w->domain <= SMALL)
		most = CHUNK_SMALL;
	PFS_TRY(pfs_sort_keys(s, items, more, n, most));
	if (k + 1 == w->n && w->told == s->n_keys)
		return 0;
	return (s->host && n >= PARALLEL_MIN ? share_equal : sort_equal)(s, w, k + 1, items, more,
									 n);
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

int pfs_sort_all(const struct pfs_sorting *s, uint32_t **order)
{
	struct pfs_keyed *items = NULL, *more = NULL;
	struct chunked c;
	uint64_t n = s->positions->n;
	struct words w = {0};
	struct ordering o;
	int error = pfs_run_alloc(s->run, &w.word, 2 * s->n_keys, sizeof(*w.word));

	*order = NULL;
	if (!error)
		error = pfs_run_alloc_raw(s->run, &items, n, sizeof(*items));
	if (!error)
		error = pfs_run_alloc_raw(s->run, &more, n, sizeof(*more));
	c = (struct chunked){.from = items};
	if (!error)
		error = pfs_host_for(s->host, s->run, n, PFS_PIECE, number_indexes, &c);
	if (!error)
		error = sort_from_word(s, &w, 0, items, more, n);
	free_words(&w, s);
	if (!error)
		error = pfs_run_alloc_raw(s->run, order, n, sizeof(**order));
	o = (struct ordering){s->positions, items, *order};
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

/* Returns true if it is worth it to choose so many of n, and to sort these alone. */
static bool are_few(const struct pfs_host_operators *host, uint64_t most, uint64_t n)
{
	return most < n / FEW_OF &&
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
	uint64_t end, n;
	int error;

	PFS_TRY(pfs_positions_open(&positions, host, run, source));
	offset = PFS_MIN(offset, positions.n);
	end = offset + PFS_MIN(limit, positions.n - offset);
	n = n_keys && are_few(host, end, positions.n) ? end : positions.n;
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
