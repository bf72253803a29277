/* SPDX-License-Identifier: MIT */
/* Tab-separated values. */
#include "fs/query/output/format.h"

#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "fs/query/internal.h"

/* What a byte is written as after a backslash; 0: itself, without one. */
static const char tsv_escape[256] = {['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r', ['\\'] = '\\'};

#define PIECE ((size_t)16 << 10) /* of text that may become twice as long */

/* Returns behind what it has put. */
static char *put_escaped(char *to, const char *from, const char *end)
{
	for (; from < end; from++) {
		char escape = tsv_escape[(unsigned char)*from];

		if (escape)
			*to++ = '\\';
		*to++ = escape ? escape : *from;
	}
	return to;
}

void pfs_tsv_bytes(struct pfs_out *out, const char *bytes, size_t size)
{
	while (size) {
		size_t n = PFS_MIN(size, PIECE);
		char *room = pfs_out_room(out, 2 * n);

		out->used += (size_t)(put_escaped(room, bytes, bytes + n) - room);
		bytes += n;
		size -= n;
	}
}

void pfs_tsv_value(struct pfs_out *out, const struct pfs_sql_value *value)
{
	switch (value->type) {
	case PFS_SQL_INTEGER:
		out->used += pfs_print_integer(pfs_out_room(out, PFS_NUMBER_SIZE), value->integer);
		break;
	case PFS_SQL_REAL:
		out->used += pfs_print_real(pfs_out_room(out, PFS_NUMBER_SIZE), value->real);
		break;
	case PFS_SQL_TEXT:
	case PFS_SQL_BLOB:
		pfs_tsv_bytes(out, value->bytes, value->size);
		break;
	case PFS_SQL_NULL:
		break;
	}
}

/* ---- a part, column by column of each row ---- */

typedef unsigned char block __attribute__((vector_size(16)));
#define BLOCK sizeof(block)

/* Copies whole blocks, up to one byte less than a block too many, and looks at them meanwhile: NULL
 * if one of them may have something to escape, being a control character below 16 or a
 * backslash. */
static char *put_clean(char *to, const char *from, size_t size)
{
	block odd = {0};
	uint64_t words[2];

	for (size_t i = 0; i < size; i += BLOCK) {
		block bytes;

		memcpy(&bytes, from + i, BLOCK);
		odd |= (block)(bytes < 16) | (block)(bytes == '\\');
		memcpy(to + i, &bytes, BLOCK);
	}
	memcpy(words, &odd, BLOCK);
	return words[0] | words[1] ? NULL : to + size;
}

/* Where text is put, in the room that `out` has; kept apart from it, so that it stays in
 * registers. */
struct place {
	struct pfs_out *out;
	char *at, *end;
};

static void get_place(struct place *place)
{
	place->at = place->out->data + place->out->used;
	place->end = place->out->data + place->out->capacity;
}

static void set_used(const struct place *place)
{
	place->out->used = (size_t)(place->at - place->out->data);
}

static inline void need(struct place *place, size_t size)
{
	if (__builtin_expect(size > (size_t)(place->end - place->at), 0)) {
		set_used(place);
		(void)pfs_out_room(place->out, size);
		get_place(place);
	}
}

/* As pfs_tsv_value. */
static void put_value(struct place *place, const struct pfs_sql_value *value)
{
	set_used(place);
	pfs_tsv_value(place->out, value);
	get_place(place);
}

/* A text of a column; those behind it are read, too, not what is behind the last. */
static inline void put_text(struct place *place, const struct pfs_sql_column *values, size_t row,
			    size_t n)
{
	const char *from = values->bytes + values->offset[row];
	size_t size = values->offset[row + 1] - values->offset[row];
	char *end;

	if (size <= PIECE && values->offset[n] - values->offset[row] >= size + BLOCK) {
		need(place, size + BLOCK);
		end = put_clean(place->at, from, size);
		if (end) {
			place->at = end;
			return;
		}
	}
	put_value(place,
		  &(struct pfs_sql_value){.type = PFS_SQL_TEXT, .bytes = from, .size = size});
}

static inline void put_kept(struct place *place, const struct pfs_sql_value *value)
{
	/* a letter, as types are */
	if (value->type == PFS_SQL_TEXT && value->size == 1 &&
	    !tsv_escape[(unsigned char)*value->bytes]) {
		need(place, 1);
		*place->at++ = *value->bytes;
		return;
	}
	put_value(place, value);
}

static inline void put_cell(struct place *place, const struct pfs_sql_column *values, size_t row,
			    size_t n)
{
	switch (values->kind) {
	case PFS_SQL_INTEGERS:
		need(place, PFS_NUMBER_SIZE);
		if (values->integers[row] != PFS_SQL_NO_INTEGER)
			place->at += pfs_print_integer(place->at, values->integers[row]);
		break;
	case PFS_SQL_BYTES: /* none has no bytes */
		put_text(place, values, row, n);
		break;
	case PFS_SQL_VALUES:
		put_kept(place, &values->values[row]);
		break;
	case PFS_SQL_ABSENT:
		break;
	}
}

size_t pfs_tsv_part(struct pfs_out *out, const struct pfs_portion *part, size_t n_columns,
		    size_t size)
{
	struct place place = {.out = out};
	size_t row;

	get_place(&place);
	for (row = 0; row < part->n && !out->error; row++) {
		if ((size_t)(place.at - out->data) >= size)
			break;
		for (size_t i = 0; i < n_columns; i++) {
			put_cell(&place, &part->columns[part->of[i]], row, part->n);
			need(&place, 1);
			*place.at++ = i + 1 < n_columns ? '\t' : '\n';
		}
	}
	set_used(&place);
	return row;
}
