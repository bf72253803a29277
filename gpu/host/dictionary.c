/* SPDX-License-Identifier: MIT */
#include "gpu/host/dictionary.h"

#include "base/radix.h"
#include "base/random.h"
#include "gpu/host/order.h"
#include "gpu/host/text.h"
#include "gpu/textkey.h"

#define POLLED 64u /* texts between two polls */

struct ordering {
	const struct pfs_dictionary *dictionary;
	enum pfs_collation collation;
};

static int compare_texts(const struct ordering *by, uint32_t a, uint32_t b)
{
	size_t a_len, b_len;
	const uint8_t *a_text = pfs_dictionary_text(by->dictionary, a, &a_len);
	const uint8_t *b_text = pfs_dictionary_text(by->dictionary, b, &b_len);

	return pfs_text_compare(by->collation, a_text, a_len, b_text, b_len);
}

static int compare_codes(const void *by, uint32_t a, uint32_t b)
{
	return compare_texts(by, a, b);
}

static int make(struct pfs_codes_map *out, const struct pfs_run *run, size_t n)
{
	*out = (struct pfs_codes_map){.n = n};
	PFS_TRY(pfs_run_alloc_raw(run, &out->made, n, sizeof(*out->made)));
	out->of = out->made;
	return 0;
}

/* Sorts the codes, of which it has a list and room for another one, and numbers them. */
static int rank_codes(const struct pfs_codes_map *out, const struct pfs_run *run,
		      const struct ordering *by, struct pfs_keyed *codes, struct pfs_keyed *more)
{
	unsigned compared = 0;
	const struct pfs_comparing c = {run, compare_codes, by, &compared};
	uint32_t rank = 0;

	for (uint32_t i = 0; i < out->n; i++)
		codes[i] = (struct pfs_keyed){.value = i};
	PFS_TRY(pfs_sort_values(&c, codes, more, out->n));
	for (uint32_t i = 0; i < out->n; i++) {
		if (i % POLLED == 0)
			PFS_TRY(pfs_run_poll(run));
		rank += i && compare_texts(by, codes[i - 1].value, codes[i].value) != 0;
		out->made[codes[i].value] = rank;
	}
	return 0;
}

int pfs_codes_rank(struct pfs_codes_map *out, const struct pfs_run *run,
		   const struct pfs_dictionary *dictionary, enum pfs_collation collation)
{
	const struct ordering by = {.dictionary = dictionary, .collation = collation};
	struct pfs_keyed *codes;
	int error;

	if (collation == PFS_BINARY && dictionary->rank) {
		*out = (struct pfs_codes_map){.of = dictionary->rank};
		return 0;
	}
	PFS_TRY(make(out, run, dictionary->n));
	error = pfs_run_alloc_raw(run, &codes, 2 * out->n, sizeof(*codes));
	if (!error)
		error = rank_codes(out, run, &by, codes, codes + out->n);
	pfs_run_free(run, codes, 2 * out->n, sizeof(*codes));
	if (error)
		pfs_codes_map_close(run, out);
	return error;
}

/* A hash table of codes by their texts. */
struct finder {
	const struct pfs_dictionary *dictionary;
	enum pfs_collation collation;
	uint64_t seed;
	uint32_t *slots; /* PFS_NO_ROW: the slot is free */
	size_t mask;
};

/* Returns the slot of the text's code, or the free one where it belongs. */
static uint32_t *find_slot(const struct finder *f, const uint8_t *text, size_t len)
{
	const uint32_t size = pfs_textkey_size(f->collation, text, (uint32_t)len);
	size_t at = pfs_textkey_hash(f->collation, text, size, f->seed) & f->mask;

	for (;; at = (at + 1) & f->mask) {
		const uint8_t *other;
		size_t other_len;

		if (f->slots[at] == PFS_NO_ROW)
			return &f->slots[at];
		other = pfs_dictionary_text(f->dictionary, f->slots[at], &other_len);
		if (pfs_text_compare(f->collation, text, len, other, other_len) == 0)
			return &f->slots[at];
	}
}

static int open_finder(struct finder *f, const struct pfs_run *run)
{
	size_t size = 16;

	while (size < (size_t)f->dictionary->n * 2)
		size *= 2;
	f->seed = pfs_random_seed();
	f->mask = size - 1;
	PFS_TRY(pfs_run_alloc_raw(run, &f->slots, size, sizeof(*f->slots)));
	for (size_t i = 0; i < size; i++)
		f->slots[i] = PFS_NO_ROW;
	return 0;
}

static void close_finder(struct finder *f, const struct pfs_run *run)
{
	pfs_run_free(run, f->slots, f->slots ? f->mask + 1 : 0, sizeof(*f->slots));
}

/* Puts the codes in, each unless an equal one is there. first: by code the one that is, or NULL. */
static int put_all(const struct finder *f, const struct pfs_run *run, uint32_t *first)
{
	for (uint32_t code = 0; code < f->dictionary->n; code++) {
		const uint8_t *text;
		uint32_t *slot;
		size_t len;

		if (code % POLLED == 0)
			PFS_TRY(pfs_run_poll(run));
		text = pfs_dictionary_text(f->dictionary, code, &len);
		slot = find_slot(f, text, len);
		if (*slot == PFS_NO_ROW)
			*slot = code;
		if (first)
			first[code] = *slot;
	}
	return 0;
}

int pfs_codes_fold(struct pfs_codes_map *out, const struct pfs_run *run,
		   const struct pfs_dictionary *dictionary, enum pfs_collation collation)
{
	struct finder f = {.dictionary = dictionary, .collation = collation};
	int error;

	*out = (struct pfs_codes_map){0};
	if (collation == PFS_BINARY)
		return 0;
	PFS_TRY(make(out, run, dictionary->n));
	error = open_finder(&f, run);
	if (!error)
		error = put_all(&f, run, out->made);
	close_finder(&f, run);
	if (error)
		pfs_codes_map_close(run, out);
	return error;
}

static int find_all(const struct finder *f, const struct pfs_run *run,
		    const struct pfs_codes_map *out, const struct pfs_dictionary *from)
{
	for (uint32_t code = 0; code < from->n; code++) {
		const uint8_t *text;
		size_t len;

		if (code % POLLED == 0)
			PFS_TRY(pfs_run_poll(run));
		text = pfs_dictionary_text(from, code, &len);
		out->made[code] = *find_slot(f, text, len);
	}
	return 0;
}

int pfs_codes_translate(struct pfs_codes_map *out, const struct pfs_run *run,
			const struct pfs_dictionary *from, const struct pfs_dictionary *to,
			enum pfs_collation collation)
{
	struct finder f = {.dictionary = to, .collation = collation};
	int error;

	PFS_TRY(make(out, run, from->n));
	error = open_finder(&f, run);
	if (!error)
		error = put_all(&f, run, NULL);
	if (!error)
		error = find_all(&f, run, out, from);
	close_finder(&f, run);
	if (error)
		pfs_codes_map_close(run, out);
	return error;
}

void pfs_codes_map_close(const struct pfs_run *run, struct pfs_codes_map *map)
{
	pfs_run_free(run, map->made, map->n, sizeof(*map->made));
	*map = (struct pfs_codes_map){0};
}
