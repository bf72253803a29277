/* SPDX-License-Identifier: MIT */
/* Sets of rows in the host's memory. */
#include "gpu/rows.h"

#include <string.h>

#include "base/checked.h"
#include "base/search.h"
#include "gpu/engine_impl.h"

static size_t words_of(uint32_t n_rows)
{
	return ((size_t)n_rows + 63) / 64;
}

static int new_rows(const struct pfs_run *run, struct pfs_rows **out, enum pfs_rows_form form,
		    uint32_t n_rows)
{
	PFS_TRY(pfs_run_alloc(run, out, 1, sizeof(**out)));
	(*out)->form = form;
	(*out)->n_rows = (*out)->to = n_rows;
	return 0;
}

int pfs_rows_of_range(const struct pfs_run *run, struct pfs_rows **out, uint32_t n_rows,
		      uint32_t from, uint32_t to)
{
	PFS_TRY(new_rows(run, out, PFS_ROWS_RANGE, n_rows));
	(*out)->to = PFS_MIN(to, n_rows);
	(*out)->from = PFS_MIN(from, (*out)->to);
	return 0;
}

int pfs_rows_of_bits(const struct pfs_run *run, struct pfs_rows **out, uint32_t n_rows,
		     const uint64_t *bits, uint32_t from, uint32_t to)
{
	size_t n = words_of(n_rows), here = words_of(to) - from / 64;
	struct pfs_rows *rows;
	int error;

	*out = NULL;
	PFS_TRY(new_rows(run, &rows, PFS_ROWS_BITS, n_rows));
	error = here == n ? pfs_run_alloc_raw(run, &rows->bits, n, sizeof(*bits))
			  : pfs_run_alloc(run, &rows->bits, n, sizeof(*bits));
	if (error) {
		pfs_rows_free(run, rows);
		return error;
	}
	rows->allocated = n * sizeof(*bits);
	rows->from = from;
	rows->to = to;
	if (here)
		memcpy(rows->bits + from / 64, bits, here * sizeof(*bits));
	if (to % 64)
		rows->bits[to / 64] &= (UINT64_C(1) << to % 64) - 1;
	*out = rows;
	return 0;
}

int pfs_rows_of_list(const struct pfs_run *run, struct pfs_rows **out, uint32_t n_rows,
		     const uint32_t *list, uint32_t n)
{
	struct pfs_rows *rows;
	int error;

	*out = NULL;
	PFS_TRY(new_rows(run, &rows, PFS_ROWS_LIST, n_rows));
	error = pfs_run_alloc_raw(run, &rows->list, n, sizeof(*list));
	if (error) {
		pfs_rows_free(run, rows);
		return error;
	}
	rows->allocated = n * sizeof(*list);
	if (n)
		memcpy(rows->list, list, rows->allocated);
	rows->n_list = n;
	*out = rows;
	return 0;
}

void pfs_rows_free(const struct pfs_run *run, struct pfs_rows *rows)
{
	if (!rows)
		return;
	if (rows->form == PFS_ROWS_ON_DEVICE && rows->backend)
		rows->backend->families->select->release(rows->backend, run, rows);
	pfs_run_free(run, rows->bits, rows->allocated, 1);
	pfs_run_free(run, rows->list, rows->allocated, 1);
	pfs_run_free(run, rows, 1, sizeof(*rows));
}

/* ---- looking ---- */

/* Returns the first place in the list whose row is not below `row`. */
static uint32_t list_find(const struct pfs_rows *rows, uint32_t row)
{
	return (uint32_t)PFS_SEARCH(i, 0, rows->n_list, rows->list[i] < row);
}

bool pfs_rows_has(const struct pfs_rows *rows, uint32_t row)
{
	uint32_t at;

	if (row >= rows->n_rows)
		return false;
	switch (rows->form) {
	case PFS_ROWS_RANGE:
		return row >= rows->from && row < rows->to;
	case PFS_ROWS_BITS:
		return rows->bits[row / 64] >> row % 64 & 1;
	case PFS_ROWS_LIST:
		at = list_find(rows, row);
		return at < rows->n_list && rows->list[at] == row;
	case PFS_ROWS_ON_DEVICE:
		break;
	}
	return false;
}

/* Bits first * 64.. of from..to. */
static uint64_t range_word(uint64_t from, uint64_t to, uint64_t first)
{
	uint64_t low = PFS_MAX(from, first), high = PFS_MIN(to, first + 64);
	uint64_t word;

	if (low >= high)
		return 0;
	word = high - low == 64 ? UINT64_MAX : (UINT64_C(1) << (high - low)) - 1;
	return word << (low - first);
}

static void list_words(const struct pfs_rows *rows, uint64_t *words, size_t first, size_t n)
{
	uint64_t start = (uint64_t)first * 64, end = start + (uint64_t)n * 64;

	memset(words, 0, n * sizeof(*words));
	if (start >= rows->n_rows)
		return;
	for (uint32_t i = list_find(rows, (uint32_t)start); i < rows->n_list; i++) {
		uint32_t row = rows->list[i];

		if (row >= end)
			return;
		words[(row - start) / 64] |= UINT64_C(1) << row % 64;
	}
}

void pfs_rows_words(const struct pfs_rows *rows, uint64_t *words, size_t first, size_t n)
{
	size_t all = words_of(rows->n_rows), here = first < all ? PFS_MIN(n, all - first) : 0;

	switch (rows->form) {
	case PFS_ROWS_RANGE:
		for (size_t i = 0; i < n; i++)
			words[i] = range_word(rows->from, rows->to, ((uint64_t)first + i) * 64);
		return;
	case PFS_ROWS_BITS:
		memcpy(words, rows->bits + first, here * sizeof(*words));
		memset(words + here, 0, (n - here) * sizeof(*words));
		return;
	case PFS_ROWS_LIST:
		list_words(rows, words, first, n);
		return;
	case PFS_ROWS_ON_DEVICE:
		memset(words, 0, n * sizeof(*words));
	}
}

static size_t next_of_bits(const struct pfs_rows *rows, uint64_t *next, uint32_t *out,
			   size_t capacity)
{
	size_t n = 0, end = words_of(rows->to);
	uint64_t first = PFS_MAX(*next, rows->from);

	for (size_t w = first / 64; w < end && n < capacity; w++) {
		uint64_t word = rows->bits[w];

		if (w == first / 64)
			word &= UINT64_MAX << first % 64;
		for (; word && n < capacity; word &= word - 1)
			out[n++] = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(word);
	}
	*next = n ? (uint64_t)out[n - 1] + 1 : (uint64_t)end * 64;
	return n;
}

size_t pfs_rows_next(const struct pfs_rows *rows, uint64_t *next, uint32_t *out, size_t capacity)
{
	size_t n = 0;

	switch (rows->form) {
	case PFS_ROWS_RANGE:
		for (uint64_t row = PFS_MAX(*next, rows->from); row < rows->to && n < capacity;
		     row++)
			out[n++] = (uint32_t)row;
		*next = n ? (uint64_t)out[n - 1] + 1 : rows->n_rows;
		return n;
	case PFS_ROWS_BITS:
		return next_of_bits(rows, next, out, capacity);
	case PFS_ROWS_LIST: /* *next is a place in the list */
		n = *next < rows->n_list ? PFS_MIN(capacity, rows->n_list - *next) : 0;
		memcpy(out, rows->list + *next, n * sizeof(*out));
		*next += n;
		return n;
	case PFS_ROWS_ON_DEVICE:
		break;
	}
	return 0;
}

static uint64_t count_here(const struct pfs_rows *rows)
{
	uint64_t count = 0;

	if (rows->form == PFS_ROWS_RANGE)
		return rows->to - rows->from;
	if (rows->form == PFS_ROWS_LIST)
		return rows->n_list;
	for (size_t w = rows->from / 64; w < words_of(rows->to); w++)
		count += (uint64_t)__builtin_popcountll(rows->bits[w]);
	return count;
}

int pfs_rows_count(const struct pfs_run *run, uint64_t *count, const struct pfs_rows *rows)
{
	if (rows->form == PFS_ROWS_ON_DEVICE)
		return rows->backend->families->select->count_rows(rows->backend, run, count, rows);
	*count = count_here(rows);
	return 0;
}

int pfs_rows_here(const struct pfs_run *run, struct pfs_rows *rows)
{
	if (rows->form != PFS_ROWS_ON_DEVICE)
		return 0;
	return rows->backend->families->select->fetch(rows->backend, run, rows);
}
