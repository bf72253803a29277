/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/printed.h"

#include <string.h>

#include "base/checked.h"
#include "base/number.h"

static bool is_text(const struct pfs_vector *values)
{
	return values->kind == PFS_KIND_CODE || values->kind == PFS_KIND_PLACE;
}

bool pfs_printing_takes(const struct pfs_printing *printing)
{
	const struct pfs_sql_format *format = printing->format;
	const struct pfs_vector *values = printing->values;

	for (size_t i = 0; i < format->n_pieces; i++) {
		enum pfs_kind kind = values->kind;

		if (format->pieces[i].what == PFS_SQL_AS_IS)
			continue;
		if (format->pieces[i].what == PFS_SQL_AS_TEXT &&
		    (kind == PFS_KIND_REAL || kind == PFS_KIND_NUMBER))
			return false;
		values++;
	}
	return true;
}

/* ---- values ---- */

/* The bits of a number, or the code or place of a text; NULL is *is_null and 0. */
static uint64_t bits_of(const struct pfs_vector *values, uint64_t at, bool *is_null)
{
	*is_null = pfs_vector_is_null(values, at);
	if (*is_null)
		return 0;
	return is_text(values) ? values->codes[at] : ((const uint64_t *)values->data)[at];
}

static bool is_real(const struct pfs_vector *values, uint64_t at)
{
	return values->kind == PFS_KIND_REAL ||
	       (values->is_real && (values->is_real[at / 64] >> at % 64 & 1));
}

uint64_t pfs_printing_hash(const struct pfs_printing *printing, uint64_t at)
{
	uint64_t hash = 0;
	bool is_null;

	for (size_t i = 0; i < printing->format->n_values; i++)
		hash = (hash ^ bits_of(&printing->values[i], at, &is_null)) *
		       UINT64_C(0x9e3779b97f4a7c15);
	return hash;
}

bool pfs_printing_same(const struct pfs_printing *printing, uint64_t a, uint64_t b)
{
	bool same = true;

	for (size_t i = 0; i < printing->format->n_values && same; i++) {
		const struct pfs_vector *values = &printing->values[i];
		bool a_null, b_null;

		same = bits_of(values, a, &a_null) == bits_of(values, b, &b_null) &&
		       a_null == b_null && is_real(values, a) == is_real(values, b);
	}
	return same;
}

/* ---- printing ---- */

static int reserve(struct pfs_text_buffer *out, size_t len)
{
	if (out->size + len >= PFS_SQL_VALUE_MIN) /* the statement may not have longer values */
		return -EOPNOTSUPP;
	return pfs_grow(&out->bytes, &out->capacity, out->size + len + 1, 1);
}

static void pad(struct pfs_text_buffer *out, size_t len)
{
	memset(out->bytes + out->size, ' ', len);
	out->size += len;
}

static bool is_inside(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* How many bytes the first n characters have: as SQLite skips them, a byte from 0xc0 on and all
 * that continue it are one. */
static size_t cut(const uint8_t *text, size_t len, int n)
{
	size_t at = 0;

	for (; n > 0 && at < len; n--) {
		if (text[at++] < 0xc0)
			continue;
		while (at < len && is_inside(text[at]))
			at++;
	}
	return at;
}

/* A text ends at its first NUL. */
static int put_text(struct pfs_text_buffer *out, const struct pfs_sql_piece *piece,
		    const uint8_t *text, size_t len)
{
	size_t width = (size_t)piece->width, taken;

	len = strnlen((const char *)text, len);
	if (piece->precision >= 0)
		len = piece->counts_characters ? cut(text, len, piece->precision)
					       : PFS_MIN(len, (size_t)piece->precision);
	taken = len;
	for (size_t i = 0; width && piece->counts_characters && i < len; i++)
		taken -= is_inside(text[i]);
	width = PFS_MAX(width, taken) - taken;
	PFS_TRY(reserve(out, len + width));
	pad(out, piece->at_left ? 0 : width);
	pfs_text_buffer_put(out, text, len);
	pad(out, piece->at_left ? width : 0);
	return 0;
}

/* NULL is the number 0, or an empty text. */
static int put_value(struct pfs_text_buffer *out, const struct pfs_sql_piece *piece,
		     const struct pfs_vector *values, uint64_t at)
{
	char digits[PFS_NUMBER_SIZE];
	const uint8_t *text = (const uint8_t *)digits;
	size_t len = 0;
	bool is_null;
	uint64_t bits = bits_of(values, at, &is_null);
	double real;

	if (piece->what == PFS_SQL_AS_TEXT) {
		if (is_text(values) && !is_null)
			text = pfs_vector_text(values, at, &len);
		else if (!is_null)
			len = pfs_print_integer(digits, (int64_t)bits);
		return put_text(out, piece, text, len);
	}
	memcpy(&real, &bits, sizeof(real));
	PFS_TRY(reserve(out, PFS_SQL_PRINTED_MAX));
	out->size += pfs_sql_print_number((char *)out->bytes + out->size, piece,
					  !is_null && is_real(values, at), (int64_t)bits, real);
	return 0;
}

int pfs_printing_row(const struct pfs_printing *printing, struct pfs_text_buffer *out, uint64_t at)
{
	const struct pfs_vector *values = printing->values;

	out->size = 0;
	for (size_t i = 0; i < printing->format->n_pieces; i++) {
		const struct pfs_sql_piece *piece = &printing->format->pieces[i];

		if (piece->what == PFS_SQL_AS_IS) {
			PFS_TRY(reserve(out, piece->len));
			pfs_text_buffer_put(out, piece->text, piece->len);
		} else {
			PFS_TRY(put_value(out, piece, values++, at));
		}
	}
	return 0;
}
