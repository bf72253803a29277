/* SPDX-License-Identifier: MIT */
/* Output, gathered: into large writes, or kept in one piece. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "fs/query/format.h"

int pfs_out_init(struct pfs_out *out, const struct pfs_sink *sink)
{
	*out = (struct pfs_out){.sink = sink, .data = malloc(PFS_OUT_SIZE)};
	if (!out->data)
		return -ENOMEM;
	out->capacity = PFS_OUT_SIZE;
	return 0;
}

void pfs_out_finish(struct pfs_out *out)
{
	free(out->data);
	out->data = NULL;
	out->used = out->capacity = 0;
}

void pfs_out_flush(struct pfs_out *out)
{
	if (!out->error && out->used)
		out->error = out->sink->write(out->sink->arg, out->data, out->used);
	out->used = 0;
}

void pfs_out_make_room(struct pfs_out *out, size_t size)
{
	if (out->sink) {
		pfs_out_flush(out);
		return;
	}
	if (!out->error)
		out->error = pfs_grow(&out->data, &out->capacity, out->used + size, 1);
	if (out->error)
		out->used = 0; /* what is written from here on is nobody's */
}

static void long_bytes(struct pfs_out *out, const void *bytes, size_t size)
{
	if (out->sink) {
		pfs_out_flush(out);
		if (!out->error)
			out->error = out->sink->write(out->sink->arg, bytes, size);
		return;
	}
	pfs_out_make_room(out, size);
	if (out->error)
		return;
	memcpy(out->data + out->used, bytes, size);
	out->used += size;
}

void pfs_out_bytes(struct pfs_out *out, const void *bytes, size_t size)
{
	if (size > PFS_OUT_SIZE) {
		long_bytes(out, bytes, size);
		return;
	}
	memcpy(pfs_out_room(out, size), bytes, size);
	out->used += size;
}

void pfs_out_text(struct pfs_out *out, const char *text)
{
	pfs_out_bytes(out, text, strlen(text));
}

/* ---- TSV ---- */

/* What a byte is written as after a backslash; 0: itself, without one. */
static const char tsv_escape[256] = {['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r', ['\\'] = '\\'};

#define ONES   UINT64_C(0x0101010101010101)
#define HIGHS  (ONES * 0x80)
#define PIECE  ((size_t)16 << 10) /* of text that may become twice as long */

/* Whether one of eight bytes may have to be escaped: a control character below 16 or a backslash. */
static bool may_escape(uint64_t bytes)
{
	uint64_t low = (bytes - ONES * 0x10) & ~bytes, slash = bytes ^ ONES * '\\';

	return (low | ((slash - ONES) & ~slash)) & HIGHS;
}

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

/* Eight at a time as long as there are that many. */
static char *put_piece(char *to, const char *from, const char *end)
{
	uint64_t bytes;

	for (; end - from >= 8; from += 8) {
		memcpy(&bytes, from, 8);
		if (may_escape(bytes)) {
			to = put_escaped(to, from, from + 8);
			continue;
		}
		memcpy(to, &bytes, 8);
		to += 8;
	}
	return put_escaped(to, from, end);
}

void pfs_tsv_bytes(struct pfs_out *out, const char *bytes, size_t size)
{
	while (size) {
		size_t n = PFS_MIN(size, PIECE);
		char *room = pfs_out_room(out, 2 * n);

		out->used += (size_t)(put_piece(room, bytes, bytes + n) - room);
		bytes += n;
		size -= n;
	}
}

void pfs_tsv_value(struct pfs_out *out, const struct pfs_query_value *value)
{
	switch (value->type) {
	case PFS_VALUE_INT:
		out->used += pfs_print_integer(pfs_out_room(out, PFS_NUMBER_SIZE), value->integer);
		break;
	case PFS_VALUE_REAL:
		out->used += pfs_print_real(pfs_out_room(out, PFS_NUMBER_SIZE), value->real);
		break;
	case PFS_VALUE_TEXT:
	case PFS_VALUE_BLOB:
		pfs_tsv_bytes(out, value->bytes, value->size);
		break;
	case PFS_VALUE_NULL:
		break;
	}
}
