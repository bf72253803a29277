/* SPDX-License-Identifier: MIT */
/* Output, gathered: into large writes, or kept in one piece. */
#include "fs/query/output/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

int pfs_out_init(struct pfs_out *out, const struct pfs_sink *sink)
{
	*out = (struct pfs_out){.sink = sink, .data = malloc(PFS_OUT_SIZE)};
	if (!out->data)
		return -ENOMEM;
	out->capacity = PFS_OUT_SIZE;
	return 0;
}

void pfs_out_init_lent(struct pfs_out *out, char *data, size_t size)
{
	*out = (struct pfs_out){.capacity = size, .is_lent = true};
	out->data = data;
}

void pfs_out_finish(struct pfs_out *out)
{
	if (!out->is_lent)
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

/* Goes on in memory of its own. */
static int move_out(struct pfs_out *out, size_t size)
{
	size_t capacity = 2 * (out->used + PFS_MAX(size, PFS_OUT_SIZE));
	char *own = malloc(capacity);

	if (!own)
		return -ENOMEM;
	memcpy(own, out->data, out->used);
	out->data = own;
	out->capacity = capacity;
	out->is_lent = false;
	return 0;
}

void pfs_out_make_room(struct pfs_out *out, size_t size)
{
	if (out->sink) {
		pfs_out_flush(out);
		return;
	}
	if (!out->error && out->is_lent)
		out->error = move_out(out, size);
	else if (!out->error)
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

void pfs_out_print(struct pfs_out *out, const char *format, ...)
{
	char text[512];
	va_list values;

	va_start(values, format);
	(void)vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	pfs_out_text(out, text);
}
