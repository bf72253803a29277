/* SPDX-License-Identifier: MIT */
#include "gpu/host/concat.h"

#include <string.h>

#include "base/number.h"
#include "gpu/textheap.h"

#define LOOK_TUPLES 65536u /* tuples between two polls */

int pfs_concat_open(struct pfs_fold *fold, const struct pfs_run *run,
		    const struct pfs_source *source)
{
	if (fold->reader.kind == PFS_KIND_REAL || fold->reader.kind == PFS_KIND_NUMBER)
		return -EOPNOTSUPP;
	fold->n_next = source->table ? source->table->n_rows : source->tuples->n;
	return pfs_run_alloc_raw(run, &fold->next, fold->n_next, sizeof(*fold->next));
}

void pfs_concat_close(const struct pfs_run *run, struct pfs_fold *fold)
{
	pfs_run_free(run, fold->next, fold->n_next, sizeof(*fold->next));
	fold->next = NULL;
}

/* ---- lists ---- */

void pfs_concat_merge(const struct pfs_fold *fold, struct pfs_fold_table *t, size_t into,
		      const struct pfs_fold_table *other, size_t from)
{
	uint32_t a = other->at[from], a_last = other->last[from];
	uint32_t b = t->at[into], b_last = t->last[into];
	uint32_t *link = &t->at[into]; /* the link that gets the next tuple */

	if (t->count[into] == 0) {
		b = a;
		b_last = a_last;
	}
	t->count[into] += other->count[from];
	if (b_last < a) { /* the whole other list comes behind */
		fold->next[b_last] = a;
		t->last[into] = a_last;
		return;
	}
	while (a != b) {
		if (b < a) {
			uint32_t kept = a, kept_last = a_last;

			a = b;
			a_last = b_last;
			b = kept;
			b_last = kept_last;
		}
		/* a is the lesser tuple. When its list ends, the rest of the other list follows. */
		*link = a;
		link = &fold->next[a];
		a = a == a_last ? b : *link;
	}
	*link = b;
	t->last[into] = b_last;
}

/* ---- texts ---- */

struct concat {
	const struct pfs_fold *fold;
	const struct pfs_run *run;
	const struct pfs_fold_table *table;
	const uint32_t *order;
	struct pfs_vector *out; /* the codes are the texts' lengths at first, then their places */
};

static const void *value_at(const struct pfs_fold *fold, char digits[PFS_NUMBER_SIZE], size_t *len,
			    uint32_t position)
{
	struct pfs_scalar cell = {0};

	(void)pfs_scalar_read(&fold->reader, position, &cell); /* a list has no NULL */
	if (fold->reader.kind != PFS_KIND_INTEGER)
		return pfs_cell_text(&fold->reader, (uint32_t)cell.integer, len);
	*len = pfs_print_integer(digits, cell.integer);
	return digits;
}

/* Goes through the values of one group; with bytes, writes them there. Returns in *size how many
 * bytes they are. */
static int go_through(const struct concat *c, uint8_t *bytes, uint64_t *size, size_t group)
{
	const struct pfs_fold *fold = c->fold;
	const struct pfs_constant *separator = &fold->separator;
	uint32_t at = c->table->at[group];
	char digits[PFS_NUMBER_SIZE];
	uint64_t end = 0;

	for (int64_t i = 0; i < c->table->count[group]; i++) {
		size_t between = i ? separator->len : 0, len;
		const void *value = value_at(fold, digits, &len, at);

		if (i % LOOK_TUPLES == LOOK_TUPLES - 1)
			PFS_TRY(pfs_run_poll(c->run));
		if (bytes && between)
			memcpy(bytes + end, separator->text, between);
		if (bytes && len)
			memcpy(bytes + end + between, value, len);
		end += between + len;
		if (!bytes && end >= fold->texts->limit)
			break;
		at = fold->next[at]; /* the link of the last tuple is not used */
	}
	*size = end;
	return 0;
}

static size_t group_of(const struct concat *c, uint64_t i)
{
	return c->order ? c->order[i] : i;
}

static int measure_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct concat *c = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		uint64_t size;

		PFS_TRY(go_through(c, NULL, &size, group_of(c, i)));
		if (size >= c->fold->texts->limit) /* SQLite's limit includes a NUL */
			return -EOPNOTSUPP;
		c->out->codes[i] = (uint32_t)size;
		if (c->table->count[group_of(c, i)] == 0)
			c->out->nulls[i / 64] |= UINT64_C(1) << i % 64;
	}
	return 0;
}

static int write_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct concat *c = context;
	uint8_t *bytes = c->fold->texts->bytes;

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		uint8_t *text = pfs_heap_begin(bytes, c->out->codes[i]);
		uint64_t size;

		PFS_TRY(go_through(c, text, &size, group_of(c, i)));
		pfs_heap_end(text, (size_t)size);
	}
	return 0;
}

/* Finds a place for each text. */
static int make_room(const struct concat *c, uint64_t n)
{
	struct pfs_texts *texts = c->fold->texts;
	uint64_t size = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t room = pfs_heap_room(c->out->codes[i]);

		if (size >> PFS_TEXT_SHIFT > UINT32_MAX)
			return -EOPNOTSUPP;
		c->out->codes[i] = (uint32_t)(size >> PFS_TEXT_SHIFT);
		size += room;
	}
	pfs_texts_free(c->run, texts);
	PFS_TRY(pfs_run_alloc_raw(c->run, &texts->bytes, size, 1));
	texts->size = size;
	texts->heap = pfs_heap_of(texts->bytes, size);
	return 0;
}

int pfs_concat_finish(const struct pfs_fold *fold, struct pfs_host_operators *host,
		      const struct pfs_run *run, struct pfs_vector *out,
		      const struct pfs_fold_table *t, const uint32_t *order, uint64_t n)
{
	struct concat c = {.fold = fold, .run = run, .table = t, .order = order, .out = out};

	PFS_TRY(pfs_host_for(host, run, n, PFS_SPAN, measure_piece, &c));
	PFS_TRY(make_room(&c, n));
	out->heap = &fold->texts->heap;
	return pfs_host_for(host, run, n, PFS_SPAN, write_piece, &c);
}
