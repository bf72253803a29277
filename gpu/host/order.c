/* SPDX-License-Identifier: MIT */
#include "gpu/host/order.h"

#include <string.h>

#include "gpu/host/dictionary.h"
#include "gpu/host/number.h"
#include "gpu/host/text.h"

#define SIGN (UINT64_C(1) << 63)

int pfs_sorting_open(struct pfs_sorting *s, struct pfs_host_operators *host,
		     const struct pfs_run *run, const struct pfs_source *source,
		     const struct pfs_positions *positions, const struct pfs_sort_key *keys,
		     size_t n_keys)
{
	int error = 0;

	*s = (struct pfs_sorting){
		.host = host, .run = run, .positions = positions, .n_keys = n_keys};
	PFS_TRY(pfs_run_alloc(run, &s->keys, n_keys, sizeof(*s->keys)));
	for (size_t i = 0; !error && i < n_keys; i++) {
		struct pfs_order_key *key = &s->keys[i];

		pfs_cell_reader_open(&key->reader, source, keys[i].ref);
		key->collation = keys[i].collation;
		key->descending = keys[i].descending;
		key->nulls_last = keys[i].nulls_last;
		if (key->reader.kind == PFS_KIND_CODE)
			error = pfs_codes_rank(&key->rank, run,
					       key->reader.column ? key->reader.column->dictionary
								  : key->reader.vector->dictionary,
					       key->collation);
	}
	if (error)
		pfs_sorting_close(s);
	return error;
}

void pfs_sorting_close(struct pfs_sorting *s)
{
	for (size_t i = 0; s->keys && i < s->n_keys; i++)
		pfs_codes_map_close(s->run, &s->keys[i].rank);
	pfs_run_free(s->run, s->keys, s->n_keys, sizeof(*s->keys));
	*s = (struct pfs_sorting){0};
}

/* ---- numbers ---- */

static uint64_t number_of_real(double real)
{
	uint64_t bits;

	if (real == 0)
		real = 0; /* not -0 */
	memcpy(&bits, &real, sizeof(bits));
	return bits & SIGN ? ~bits : bits | SIGN;
}

/* Returns the first eight bytes as the collation compares them. */
static uint64_t number_of_text(const struct pfs_order_key *key, uint32_t place)
{
	uint64_t number = 0;
	size_t len;
	const uint8_t *text = pfs_cell_text(&key->reader, place, &len);

	if (key->collation == PFS_RTRIM) {
		while (len && text[len - 1] == ' ')
			len--;
	}
	for (size_t i = 0; i < 8 && i < len; i++) {
		uint8_t c = text[i];

		if (key->collation == PFS_NOCASE && c >= 'A' && c <= 'Z')
			c |= 0x20;
		number |= (uint64_t)c << (56 - 8 * i);
		if (key->collation == PFS_NOCASE && !c)
			break; /* NOCASE does not look further */
	}
	return number;
}

static uint64_t number_at(const struct pfs_order_key *key, const struct pfs_cells *cells,
			  uint32_t i)
{
	switch (key->reader.kind) {
	case PFS_KIND_CODE:
		return key->rank.of[cells->codes[i]];
	case PFS_KIND_PLACE:
		return number_of_text(key, cells->codes[i]);
	case PFS_KIND_REAL:
		return number_of_real(cells->reals[i]);
	case PFS_KIND_NUMBER:
		return number_of_real(cells->has_reals && pfs_bit(cells->is_real, i)
					      ? cells->reals[i]
					      : (double)cells->integers[i]);
	case PFS_KIND_INTEGER:
		break;
	}
	return (uint64_t)cells->integers[i] ^ SIGN;
}

bool pfs_order_numbers(const struct pfs_order_key *key, const struct pfs_span *span, uint64_t *out,
		       struct pfs_cells *cells)
{
	uint64_t flip = key->descending ? UINT64_MAX : 0;

	pfs_cells_read(&key->reader, span, cells);
	if (!cells->has_nulls && key->reader.kind == PFS_KIND_INTEGER) {
		for (uint32_t i = 0; i < span->n; i++)
			out[i] = (uint64_t)cells->integers[i] ^ SIGN ^ flip;
		return true;
	}
	for (uint32_t i = 0; i < span->n; i++) {
		if (cells->has_nulls && pfs_bit(cells->nulls, i))
			out[i] = key->nulls_last ? UINT64_MAX : 0;
		else
			out[i] = number_at(key, cells, i) ^ flip;
	}
	return !cells->has_nulls && key->reader.kind != PFS_KIND_PLACE &&
	       key->reader.kind != PFS_KIND_NUMBER;
}

/* ---- one by one ---- */

static int compare_cells(const struct pfs_order_key *key, const struct pfs_scalar *a,
			 const struct pfs_scalar *b)
{
	size_t a_len, b_len;
	const uint8_t *a_text, *b_text;
	uint32_t a_rank, b_rank;

	if (key->reader.kind == PFS_KIND_PLACE) {
		a_text = pfs_cell_text(&key->reader, (uint32_t)a->integer, &a_len);
		b_text = pfs_cell_text(&key->reader, (uint32_t)b->integer, &b_len);
		return pfs_text_compare(key->collation, a_text, a_len, b_text, b_len);
	}
	if (key->reader.kind == PFS_KIND_CODE) {
		a_rank = key->rank.of[a->integer];
		b_rank = key->rank.of[b->integer];
		return (a_rank > b_rank) - (a_rank < b_rank);
	}
	return pfs_compare_numbers((struct pfs_number){a->is_real, a->integer, a->real},
				   (struct pfs_number){b->is_real, b->integer, b->real});
}

int pfs_order_compare_by(const struct pfs_order_key *key, uint32_t a, uint32_t b)
{
	struct pfs_scalar x = {0}, y = {0};
	bool has_x = pfs_scalar_read(&key->reader, a, &x),
	     has_y = pfs_scalar_read(&key->reader, b, &y);
	int order;

	if (!has_x || !has_y) {
		if (has_x == has_y)
			return 0;
		return has_x == key->nulls_last ? -1 : 1;
	}
	order = compare_cells(key, &x, &y);
	return key->descending ? -order : order;
}

int pfs_order_compare(const struct pfs_sorting *s, uint32_t a, uint32_t b)
{
	int order = 0;

	for (size_t i = 0; i < s->n_keys && order == 0; i++)
		order = pfs_order_compare_by(&s->keys[i], a, b);
	return order;
}
