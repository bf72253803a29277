/* SPDX-License-Identifier: MIT */
#include "gpu/host/concat.h"

#include <string.h>

#include "base/number.h"
#include "gpu/textheap.h"

#define LOOK_GROUPS 65536u /* groups or stretches between two polls */
#define STRETCH	    8192u  /* tuples */

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

/* ---- stretches ---- */

/* So many tuples of one group that follow each other in its list. What a stretch makes of them,
 * separators included, is a part of the group's text; all threads work on a long text. */
struct stretch {
	uint32_t result; /* number of the group's result */
	uint32_t first, n;
	uint32_t at; /* bytes that it makes; later where they begin in the group's text */
};

struct concat {
	const struct pfs_fold *fold;
	const struct pfs_run *run;
	const struct pfs_fold_table *table;
	const uint32_t *order;
	struct pfs_vector *out; /* the codes are the texts' places */
	struct stretch *stretches;
	uint64_t n_stretches;
};

static size_t group_of(const struct concat *c, uint64_t i)
{
	return c->order ? c->order[i] : i;
}

/* Cuts the list of one group, whose result is number i, into stretches. */
static int cut_list(struct concat *c, uint64_t i)
{
	size_t group = group_of(c, i);
	uint64_t left = (uint64_t)c->table->count[group];
	uint32_t at = c->table->at[group];

	while (left) {
		struct stretch *stretch = &c->stretches[c->n_stretches++];

		*stretch = (struct stretch){
			.result = (uint32_t)i, .first = at, .n = PFS_MIN(left, STRETCH)};
		left -= stretch->n;
		if (!left)
			break;
		PFS_TRY(pfs_run_poll(c->run));
		for (uint32_t tuple = 0; tuple < stretch->n; tuple++)
			at = c->fold->next[at];
	}
	return 0;
}

static int cut_lists(struct concat *c, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (i % LOOK_GROUPS == 0)
			PFS_TRY(pfs_run_poll(c->run));
		PFS_TRY(cut_list(c, i));
		c->out->codes[i] = 0;
		if (c->table->count[group_of(c, i)] == 0)
			c->out->nulls[i / 64] |= UINT64_C(1) << i % 64;
	}
	return 0;
}

/* ---- texts ---- */

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

static bool is_begin(const struct concat *c, const struct stretch *stretch)
{
	return stretch->first == c->table->at[group_of(c, stretch->result)];
}

/* Goes through the values of one stretch; with bytes, writes them there. Returns how many bytes
 * they are, or, without bytes, a number from the aggregate's limit on. */
static uint64_t go_through(const struct concat *c, uint8_t *bytes, const struct stretch *stretch)
{
	const struct pfs_fold *fold = c->fold;
	const struct pfs_constant *separator = &fold->separator;
	size_t between = is_begin(c, stretch) ? 0 : separator->len;
	uint32_t at = stretch->first;
	char digits[PFS_NUMBER_SIZE];
	uint64_t end = 0;

	for (uint32_t i = 0; i < stretch->n; i++) {
		size_t len;
		const void *value = value_at(fold, digits, &len, at);

		if (bytes && between)
			memcpy(bytes + end, separator->text, between);
		if (bytes && len)
			memcpy(bytes + end + between, value, len);
		end += between + len;
		if (!bytes && end >= fold->texts->limit)
			break;
		between = separator->len;
		at = fold->next[at]; /* the link of the last tuple is not used */
	}
	return end;
}

static int measure_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct concat *c = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		uint64_t size = go_through(c, NULL, &c->stretches[i]);

		if (size >= c->fold->texts->limit) /* SQLite's limit includes a NUL */
			return -EOPNOTSUPP;
		c->stretches[i].at = (uint32_t)size;
	}
	return 0;
}

static bool is_last(const struct concat *c, uint64_t i)
{
	return i + 1 == c->n_stretches || c->stretches[i + 1].result != c->stretches[i].result;
}

static int write_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct concat *c = context;
	uint8_t *bytes = c->fold->texts->bytes;

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		const struct stretch *stretch = &c->stretches[i];
		uint8_t *text = pfs_heap_begin(bytes, c->out->codes[stretch->result]);
		uint64_t size = go_through(c, text + stretch->at, stretch);

		if (is_last(c, i))
			pfs_heap_end(text, stretch->at + size);
	}
	return 0;
}

/* Finds a place for each text, and in it for each stretch. */
static int make_room(const struct concat *c)
{
	struct pfs_texts *texts = c->fold->texts;
	uint64_t size = 0, len = 0;

	for (uint64_t i = 0; i < c->n_stretches; i++) {
		struct stretch *stretch = &c->stretches[i];
		uint32_t more = stretch->at;

		if (i % LOOK_GROUPS == 0)
			PFS_TRY(pfs_run_poll(c->run));
		if (size >> PFS_TEXT_SHIFT > UINT32_MAX || len + more >= texts->limit)
			return -EOPNOTSUPP;
		c->out->codes[stretch->result] = (uint32_t)(size >> PFS_TEXT_SHIFT);
		stretch->at = (uint32_t)len;
		len += more;
		if (!is_last(c, i))
			continue;
		size += pfs_heap_room(len);
		len = 0;
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
	const uint64_t most =
		n + fold->n_next / STRETCH; /* the last one of a list may be shorter */
	uint64_t grain;
	int error;

	PFS_TRY(pfs_run_alloc_raw(run, &c.stretches, most, sizeof(*c.stretches)));
	error = cut_lists(&c, n);
	grain = 1 + c.n_stretches * STRETCH / (fold->n_next + 1); /* about STRETCH tuples */
	if (!error)
		error = pfs_host_for(host, run, c.n_stretches, grain, measure_piece, &c);
	if (!error)
		error = make_room(&c);
	out->heap = &fold->texts->heap;
	if (!error)
		error = pfs_host_for(host, run, c.n_stretches, grain, write_piece, &c);
	pfs_run_free(run, c.stretches, most, sizeof(*c.stretches));
	return error;
}
