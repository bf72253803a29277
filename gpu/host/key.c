/* SPDX-License-Identifier: MIT */
#include "gpu/host/key.h"

#include <string.h>

#include "base/checked.h"
#include "base/random.h"
#include "gpu/host/dictionary.h"
#include "gpu/host/lanes.h"
#include "gpu/host/number.h"
#include "gpu/host/text.h"
#include "gpu/textkey.h"

#define OF_NULL UINT64_C(0x5bd1e995) /* NULL as a number that is hashed */

/* ---- ranges ---- */

struct ranging {
	const struct pfs_key *key;
	const struct pfs_positions *positions;
	struct extremes {
		int64_t least, greatest;
		bool any;
		uint8_t apart[64]; /* workers write, each in its own cache line */
	} * of_worker;
};

static void include(struct extremes *e, int64_t least, int64_t greatest)
{
	e->least = e->any ? PFS_MIN(e->least, least) : least;
	e->greatest = e->any ? PFS_MAX(e->greatest, greatest) : greatest;
	e->any = true;
}

static int range_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct ranging *r = context;
	struct extremes *e = &r->of_worker[worker];

	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		int64_t least, greatest;
		struct pfs_cells cells;
		struct pfs_span span;

		pfs_positions_span(r->positions, &span, at, to);
		pfs_cells_read(&r->key->reader, &span, &cells);
		if (!cells.has_nulls) {
			pfs_lanes()->extremes(&least, &greatest, cells.integers, span.n);
			include(e, least, greatest);
			continue;
		}
		for (uint32_t i = 0; i < span.n; i++) {
			if (!pfs_bit(cells.nulls, i))
				include(e, cells.integers[i], cells.integers[i]);
		}
	}
	return 0;
}

static int read_range(struct pfs_key *key, struct pfs_host_operators *host,
		      const struct pfs_run *run, const struct pfs_positions *positions)
{
	struct ranging r = {.key = key, .positions = positions};
	struct extremes all = {0};
	unsigned workers = pfs_host_workers(host);
	int error;

	PFS_TRY(pfs_run_alloc(run, &r.of_worker, workers, sizeof(*r.of_worker)));
	error = pfs_host_for(host, run, positions->n, PFS_PIECE, range_piece, &r);
	for (unsigned i = 0; i < workers; i++) {
		if (r.of_worker[i].any)
			include(&all, r.of_worker[i].least, r.of_worker[i].greatest);
	}
	pfs_run_free(run, r.of_worker, workers, sizeof(*r.of_worker));
	key->least = all.least;
	key->span = (uint64_t)all.greatest - (uint64_t)all.least;
	key->is_ranged = true;
	return error;
}

/* Returns true for an integer that differs where its element does, so that elements, whose range is
 * known, are grouped instead. */
static bool is_by_element(struct pfs_key *key)
{
	const struct pfs_table_column *c = key->reader.column;

	if (key->reader.kind != PFS_KIND_INTEGER || !c || !c->via || !c->is_by_via)
		return false;
	key->span = c->n_elements;
	return true;
}

/* Ranges that the column's description gives. */
static bool range_is_known(struct pfs_key *key)
{
	const struct pfs_table_column *c = key->reader.column;
	unsigned bits;

	if (key->reader.kind == PFS_KIND_CODE) {
		size_t n = c ? c->dictionary->n : key->reader.vector->dictionary->n;

		key->span = n ? n - 1 : 0;
		return true;
	}
	if (!c || c->is_signed || (c->width > 1 && (!c->mask || c->mask > UINT8_MAX)))
		return false;
	bits = 8u * c->width - c->shift;
	key->least = c->base;
	key->span = c->mask ? c->mask : (UINT64_C(1) << bits) - 1;
	return true;
}

/* Returns true for a single key whose numbers need not be few, and whose values are known not to be
 * negative. */
static bool is_known_alone(struct pfs_key *key)
{
	const struct pfs_table_column *c = key->reader.column;

	if (key->reader.kind != PFS_KIND_INTEGER || !c)
		return false;
	key->span = INT64_MAX;
	return c->width == sizeof(uint64_t) && !c->is_signed && !c->shift && !c->mask && !c->base;
}

bool pfs_keys_are_known(const struct pfs_source *source, const struct pfs_group_key *wanted,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct pfs_key key = {.collation = wanted[i].collation};

		pfs_cell_reader_open(&key.reader, source, wanted[i].ref);
		if ((key.reader.kind != PFS_KIND_CODE && key.reader.kind != PFS_KIND_INTEGER) ||
		    !(is_by_element(&key) || range_is_known(&key) ||
		      (n == 1 && is_known_alone(&key))))
			return false;
	}
	return true;
}

static int open_key(struct pfs_key *key, struct pfs_host_operators *host, const struct pfs_run *run,
		    const struct pfs_source *source, const struct pfs_positions *positions,
		    const struct pfs_group_key *wanted, const struct pfs_keys *keys)
{
	enum pfs_kind kind;

	pfs_cell_reader_open(&key->reader, source, wanted->ref);
	key->collation = wanted->collation;
	kind = key->reader.kind;
	if (kind == PFS_KIND_CODE) {
		const struct pfs_dictionary *dictionary = key->reader.column
								  ? key->reader.column->dictionary
								  : key->reader.vector->dictionary;

		PFS_TRY(pfs_codes_fold(&key->map, run, dictionary, key->collation));
	}
	if (kind != PFS_KIND_CODE && kind != PFS_KIND_INTEGER)
		return 0;
	key->by_element = keys->is_alone && is_by_element(key);
	key->is_ranged = key->by_element || range_is_known(key) ||
			 (keys->is_alone && keys->n == 1 && is_known_alone(key));
	return key->is_ranged ? 0 : read_range(key, host, run, positions);
}

void pfs_keys_multiply(struct pfs_keys *keys)
{
	keys->exact = true;
	keys->domain = 1;
	for (size_t i = 0; i < keys->n; i++) {
		const struct pfs_key *key = &keys->key[i];

		keys->exact &= key->is_ranged && !key->by_text && key->span < UINT64_MAX - 1 &&
			       !__builtin_mul_overflow(keys->domain, key->span + 2, &keys->domain);
	}
	if (!keys->exact)
		keys->domain = 0;
}

int pfs_keys_open(struct pfs_keys *keys, struct pfs_host_operators *host, const struct pfs_run *run,
		  const struct pfs_source *source, const struct pfs_positions *positions,
		  const struct pfs_group_key *wanted, size_t n)
{
	int error;

	*keys = (struct pfs_keys){.n = n, .is_alone = keys->is_alone, .seed = pfs_random_seed()};
	PFS_TRY(pfs_run_alloc(run, &keys->key, n, sizeof(*keys->key)));
	for (size_t i = 0; i < n; i++) {
		error = open_key(&keys->key[i], host, run, source, positions, &wanted[i], keys);
		if (error) {
			pfs_keys_close(run, keys);
			return error;
		}
	}
	pfs_keys_multiply(keys);
	return 0;
}

void pfs_keys_close(const struct pfs_run *run, struct pfs_keys *keys)
{
	for (size_t i = 0; keys->key && i < keys->n; i++)
		pfs_codes_map_close(run, &keys->key[i].map);
	if (keys->key)
		pfs_run_free(run, keys->key, keys->n, sizeof(*keys->key));
	*keys = (struct pfs_keys){0};
}

/* ---- numbers ---- */

/* Returns the number of integer or code i within the key's range; if it is outside, sets its bit in
 * `absent`. */
static uint64_t digit_of(const struct pfs_key *key, const struct pfs_cells *cells, uint32_t i,
			 uint64_t *absent)
{
	uint64_t digit;

	if (cells->has_nulls && pfs_bit(cells->nulls, i)) {
		if (absent)
			absent[i / 64] |= UINT64_C(1) << i % 64;
		return 0;
	}
	if (key->reader.kind == PFS_KIND_CODE)
		digit = key->map.of ? key->map.of[cells->codes[i]] : cells->codes[i];
	else
		digit = (uint64_t)cells->integers[i];
	digit -= (uint64_t)key->least;
	if (digit <= key->span)
		return digit + 1;
	if (absent)
		absent[i / 64] |= UINT64_C(1) << i % 64;
	return 0;
}

/* Computes out = out * (span + 2) + digit. */
static void add_digits(const struct pfs_key *key, const struct pfs_cells *cells, uint32_t n,
		       uint64_t *restrict out, uint64_t *absent)
{
	uint64_t base = key->span + 2, least = (uint64_t)key->least;

	if (cells->has_nulls || absent || key->map.of) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = out[i] * base + digit_of(key, cells, i, absent);
	} else if (key->reader.kind == PFS_KIND_CODE) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = out[i] * base + cells->codes[i] + 1;
	} else {
		for (uint32_t i = 0; i < n; i++)
			out[i] = out[i] * base + ((uint64_t)cells->integers[i] - least) + 1;
	}
}

/* Does the same with elements' numbers; only keys that are alone have them, and none is absent. */
static void add_elements(const struct pfs_key *key, const struct pfs_span *span,
			 uint64_t *restrict out)
{
	uint32_t buffer[PFS_SPAN], first;
	const uint32_t *at = pfs_cell_elements(&key->reader, span, &first, buffer);

	for (uint32_t i = 0; i < span->n; i++)
		out[i] = out[i] * (key->span + 2) + (uint32_t)(at[i] + 1); /* PFS_NO_ROW: 0 */
}

/* Returns a number that is the same for reals and integers that are equal. */
static uint64_t number_of_real(double real)
{
	int64_t whole = pfs_real_to_integer(real);
	uint64_t bits;

	if ((double)whole == real && whole != INT64_MAX)
		return (uint64_t)whole;
	memcpy(&bits, &real, sizeof(bits));
	return bits;
}

/* Returns a number that is the same for values that are equal; of texts, a hash. */
static uint64_t number_of_cell(const struct pfs_key *key, const struct pfs_cells *cells, uint32_t i,
			       uint64_t seed)
{
	bool is_real = key->reader.kind == PFS_KIND_REAL ||
		       (cells->has_reals && pfs_bit(cells->is_real, i));
	const uint8_t *text;
	size_t len;

	if (key->reader.kind == PFS_KIND_PLACE || key->by_text) {
		text = pfs_cell_text(&key->reader, cells->codes[i], &len);
		len = pfs_textkey_size(key->collation, text, (uint32_t)len);
		return pfs_textkey_hash(key->collation, text, (uint32_t)len, seed);
	}
	if (key->reader.kind == PFS_KIND_CODE)
		return key->map.of ? key->map.of[cells->codes[i]] : cells->codes[i];
	return is_real ? number_of_real(cells->reals[i]) : (uint64_t)cells->integers[i];
}

/* Adds the hashes of texts of a heap, none NULL. */
static void add_texts(const struct pfs_key *key, const uint32_t *places, uint32_t n, uint64_t seed,
		      uint64_t *out)
{
	const struct pfs_heap *heap = pfs_cell_heap(&key->reader);
	const enum pfs_collation collation = key->collation;

	for (uint32_t i = 0; i < n; i++) {
		size_t len;
		const uint8_t *text = pfs_heap_text(heap, places[i], &len);
		uint32_t size = pfs_textkey_size(collation, text, (uint32_t)len);

		out[i] = pfs_hash_word(out[i], pfs_textkey_hash(collation, text, size, seed), seed);
	}
}

static void add_hashes(const struct pfs_key *key, const struct pfs_cells *cells, uint32_t n,
		       uint64_t seed, uint64_t *out, uint64_t *absent)
{
	if (key->reader.kind == PFS_KIND_PLACE && !cells->has_nulls) {
		add_texts(key, cells->codes, n, seed, out);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		bool is_null = cells->has_nulls && pfs_bit(cells->nulls, i);

		if (absent && (is_null || (key->map.of && key->reader.kind == PFS_KIND_CODE &&
					   key->map.of[cells->codes[i]] == PFS_NO_ROW)))
			absent[i / 64] |= UINT64_C(1) << i % 64;
		out[i] = pfs_hash_word(
			out[i], is_null ? OF_NULL : number_of_cell(key, cells, i, seed), seed);
	}
}

void pfs_keys_read(const struct pfs_keys *keys, const struct pfs_span *span, uint64_t *out,
		   uint64_t *absent)
{
	memset(out, 0, span->n * sizeof(*out));
	if (absent)
		memset(absent, 0, PFS_SPAN_WORDS * sizeof(*absent));
	for (size_t k = 0; k < keys->n; k++) {
		struct pfs_cells cells;

		if (keys->exact && keys->key[k].by_element) {
			add_elements(&keys->key[k], span, out);
			continue;
		}
		pfs_cells_read(&keys->key[k].reader, span, &cells);
		if (keys->exact)
			add_digits(&keys->key[k], &cells, span->n, out, absent);
		else
			add_hashes(&keys->key[k], &cells, span->n, keys->seed, out, absent);
	}
}

/* ---- comparing ---- */

static bool texts_equal(const struct pfs_key *a, int64_t a_code, const struct pfs_key *b,
			int64_t b_code)
{
	size_t a_len, b_len;
	const uint8_t *a_text = pfs_cell_text(&a->reader, (uint32_t)a_code, &a_len);
	const uint8_t *b_text = pfs_cell_text(&b->reader, (uint32_t)b_code, &b_len);

	a_len = pfs_textkey_size(a->collation, a_text, (uint32_t)a_len);
	b_len = pfs_textkey_size(a->collation, b_text, (uint32_t)b_len);
	return pfs_textkey_equal(a->collation, a_text, (uint32_t)a_len, b_text, (uint32_t)b_len);
}

static uint32_t mapped(const struct pfs_key *key, int64_t code)
{
	return key->map.of ? key->map.of[code] : (uint32_t)code;
}

static bool cells_equal(const struct pfs_key *a, uint32_t a_at, const struct pfs_key *b,
			uint32_t b_at)
{
	struct pfs_scalar x = {0}, y = {0};
	bool has_x = pfs_scalar_read(&a->reader, a_at, &x),
	     has_y = pfs_scalar_read(&b->reader, b_at, &y);

	if (!has_x || !has_y)
		return has_x == has_y;
	if (a->reader.kind == PFS_KIND_PLACE || a->by_text)
		return texts_equal(a, x.integer, b, y.integer);
	if (a->reader.kind == PFS_KIND_CODE)
		return mapped(a, x.integer) == mapped(b, y.integer);
	return pfs_compare_numbers((struct pfs_number){x.is_real, x.integer, x.real},
				   (struct pfs_number){y.is_real, y.integer, y.real}) == 0;
}

bool pfs_keys_equal(const struct pfs_keys *a, uint32_t a_at, const struct pfs_keys *b,
		    uint32_t b_at)
{
	for (size_t i = 0; i < a->n; i++) {
		if (!cells_equal(&a->key[i], a_at, &b->key[i], b_at))
			return false;
	}
	return true;
}
