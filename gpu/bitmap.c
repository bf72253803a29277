/* SPDX-License-Identifier: MIT */
/* gpu/bitmap.c - sets of nodes: makes, combines, counts and walks them. A set that is a range of
 * slots is kept as two numbers until its bits are needed. */
#include "gpu/engine_impl.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"

#define CURSOR_WORDS_FIRST 256	 /* most sets are small, */
#define CURSOR_WORDS_MOST  65536 /* and large ones cross the bus in few pieces */

/* Returns how many words a bitmap has: whole tiles, so that kernels need not look at the end. */
size_t pfs_engine_words(const struct pfs_engine *e)
{
	return pfs_div_round_up(PFS_MAX(e->columns.slot_capacity, 1u), PFS_TILE_ROWS) *
	       PFS_TILE_WORDS;
}

static void release_bits(struct pfs_bitmap *bitmap)
{
	if (bitmap->bits)
		bitmap->backend->ops->release(bitmap->backend, bitmap->bits,
					      bitmap->words * sizeof(*bitmap->bits));
	bitmap->bits = NULL;
}

static int alloc_bits(struct pfs_codes_job *job, uint32_t **bits, size_t words)
{
	void *memory = NULL;
	int error = job->ops->alloc(job, &memory, words * sizeof(**bits));

	*bits = memory;
	return error;
}

int pfs_bitmap_new(const struct pfs_asking *asking, struct pfs_bitmap **out)
{
	struct pfs_bitmap *bitmap = calloc(1, sizeof(*bitmap));
	int error;

	if (!bitmap)
		return -ENOMEM;
	bitmap->engine = asking->engine;
	bitmap->backend = asking->job->backend;
	bitmap->words = pfs_engine_words(asking->engine);
	error = alloc_bits(asking->job, &bitmap->bits, bitmap->words);
	if (error)
		free(bitmap);
	else
		*out = bitmap;
	return error;
}

void pfs_bitmap_free(struct pfs_bitmap *bitmap)
{
	if (bitmap)
		release_bits(bitmap);
	free(bitmap);
}

static int read_left_device(const struct pfs_bitmap *bitmap, uint32_t *copy)
{
	const struct pfs_engine_ops *ops = bitmap->backend->ops;
	struct pfs_codes_job *job;

	PFS_TRY(ops->begin(bitmap->backend, &job));
	return pfs_codes_job_end(job, ops->read(job, copy, bitmap->bits, 0,
						bitmap->words * sizeof(*copy)));
}

/* Takes the bits over from a device that was left, if it still gives them. */
static int rescue(struct pfs_codes_job *job, struct pfs_bitmap *bitmap)
{
	size_t size = bitmap->words * sizeof(*bitmap->bits);
	uint32_t *copy PFS_FREE = malloc(size);
	uint32_t *bits;

	if (!copy)
		return -ENOMEM;
	if (read_left_device(bitmap, copy)) {
		pfs_warning("a result was lost with the device");
		return -ESTALE;
	}
	PFS_TRY(alloc_bits(job, &bits, bitmap->words));
	release_bits(bitmap);
	bitmap->backend = job->backend;
	bitmap->bits = bits;
	return job->ops->write(job, bits, 0, copy, size);
}

/* Makes `bits` valid in the engine's present back end, which does not change the set. */
static int bring_here(const struct pfs_asking *asking, const struct pfs_bitmap *set)
{
	struct pfs_bitmap *bitmap = (struct pfs_bitmap *)set;
	struct pfs_codes_job *job = asking->job;

	if (!bitmap->is_range)
		return bitmap->backend == job->backend ? 0 : rescue(job, bitmap);
	release_bits(bitmap); /* bits of an attempt that failed and has ended */
	PFS_TRY(alloc_bits(job, &bitmap->bits, bitmap->words));
	bitmap->backend = job->backend;
	PFS_TRY(job->ops->fill(job, bitmap->bits, bitmap->words, bitmap->from, bitmap->to));
	bitmap->is_range = false;
	return 0;
}

static int make_of_slots(const struct pfs_asking *asking, struct pfs_bitmap **out,
			 const uint32_t *slots, size_t n)
{
	struct pfs_codes_job *job = asking->job;

	for (size_t i = 0; i < n; i++)
		if (slots[i] >= asking->engine->columns.n_slots)
			return -EINVAL;
	PFS_TRY(pfs_bitmap_new(asking, out));
	return job->ops->set(job, (*out)->bits, (*out)->words, slots, n);
}

int pfs_bitmap_of_slots(struct pfs_engine *e, struct pfs_bitmap **out, const uint32_t *slots,
			size_t n)
{
	struct pfs_asking asking = {.engine = e};
	struct pfs_bitmap *made = NULL;
	int error;

	do {
		pfs_bitmap_free(made);
		made = NULL;
		error = pfs_asking_begin(&asking);
		error = error ? error : make_of_slots(&asking, &made, slots, n);
	} while (!pfs_asking_end(&asking, &error));
	if (error)
		pfs_bitmap_free(made);
	else
		*out = made;
	return error;
}

static int widen(struct pfs_codes_job *job, struct pfs_bitmap *bitmap, size_t words)
{
	struct pfs_bitmap former = *bitmap, wide = {.backend = job->backend, .words = words};
	int error, late;

	PFS_TRY(alloc_bits(job, &wide.bits, words));
	error = job->ops->fill(job, wide.bits, words, 0, 0);
	if (error == 0)
		error = job->ops->combine(job, wide.bits, words, bitmap->bits, bitmap->words,
					  PFS_BITMAP_OR);
	late = job->ops->sync(job); /* one of the two is freed next */
	error = error ? error : late;
	if (error == 0) {
		bitmap->bits = wide.bits;
		bitmap->words = words;
	}
	release_bits(error ? &wide : &former);
	return error;
}

static int combine(const struct pfs_asking *asking, struct pfs_bitmap *bitmap,
		   const struct pfs_bitmap *other, enum pfs_bitmap_op op)
{
	struct pfs_codes_job *job = asking->job;

	PFS_TRY(bring_here(asking, bitmap));
	PFS_TRY(bring_here(asking, other));
	if (op == PFS_BITMAP_OR && other->words > bitmap->words)
		PFS_TRY(widen(job, bitmap, other->words));
	return job->ops->combine(job, bitmap->bits, bitmap->words, other->bits, other->words, op);
}

int pfs_bitmap_combine(struct pfs_bitmap *bitmap, const struct pfs_bitmap *other,
		       enum pfs_bitmap_op op)
{
	struct pfs_asking asking = {.engine = bitmap->engine};
	int error;

	do { /* what has been done already changes nothing when it is done again */
		error = pfs_asking_begin(&asking);
		error = error ? error : combine(&asking, bitmap, other, op);
	} while (!pfs_asking_end(&asking, &error));
	return error;
}

int pfs_bitmap_count(const struct pfs_bitmap *bitmap, uint64_t *count)
{
	struct pfs_asking asking = {.engine = bitmap->engine};
	int error;

	if (bitmap->is_range) {
		*count = bitmap->to - bitmap->from;
		return 0;
	}
	do {
		error = pfs_asking_begin(&asking);
		error = error ? error : bring_here(&asking, bitmap);
		if (error == 0)
			error = asking.job->ops->count(asking.job, count, bitmap->bits,
						       bitmap->words);
	} while (!pfs_asking_end(&asking, &error));
	return error;
}

static void range_words(uint32_t *words, size_t first, size_t n, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t bit = (uint64_t)(first + i) * 32;
		uint64_t lo = PFS_MIN(PFS_MAX(from, bit), bit + 32) - bit;
		uint64_t hi = PFS_MIN(PFS_MAX(to, bit), bit + 32) - bit;

		words[i] = (uint32_t)(((UINT64_C(1) << hi) - 1) & ~((UINT64_C(1) << lo) - 1));
	}
}

int pfs_bitmap_read(const struct pfs_bitmap *bitmap, uint32_t *words, size_t first, size_t n)
{
	struct pfs_asking asking = {.engine = bitmap->engine};
	size_t there = first < bitmap->words ? PFS_MIN(n, bitmap->words - first) : 0;
	int error;

	if (bitmap->is_range) {
		range_words(words, first, n, bitmap->from, bitmap->to);
		return 0;
	}
	memset(words + there, 0, (n - there) * sizeof(*words));
	if (there == 0)
		return 0;
	do {
		error = pfs_asking_begin(&asking);
		error = error ? error : bring_here(&asking, bitmap);
		if (error == 0)
			error = asking.job->ops->read(asking.job, words, bitmap->bits,
						      first * sizeof(*words),
						      there * sizeof(*words));
	} while (!pfs_asking_end(&asking, &error));
	return error;
}

static int refill(struct pfs_cursor *cursor, const struct pfs_bitmap *bitmap, size_t end)
{
	size_t first = cursor->first + cursor->n;
	size_t n = PFS_MIN(end - first, (size_t)CURSOR_WORDS_FIRST);

	/* Each piece is eight times as large as the one before. */
	if (cursor->n)
		n = PFS_MIN(end - first, PFS_MIN(cursor->n * 8, (size_t)CURSOR_WORDS_MOST));
	if (pfs_grow(&cursor->words, &cursor->capacity, n, sizeof(*cursor->words)))
		return -ENOMEM;
	cursor->first = first;
	cursor->n = n;
	return pfs_bitmap_read(bitmap, cursor->words, first, n);
}

int pfs_cursor_next(struct pfs_cursor *cursor, const struct pfs_bitmap *bitmap, uint32_t *slot)
{
	size_t end = bitmap->is_range ? pfs_div_round_up(bitmap->to, 32) : bitmap->words;

	if (!cursor->capacity) {
		if (bitmap->is_range)
			cursor->next = bitmap->from;
		cursor->first = cursor->next / 32;
	}
	for (;;) {
		size_t i = cursor->next / 32 - cursor->first;

		for (; i < cursor->n; i++, cursor->next = (cursor->first + i) * UINT64_C(32)) {
			uint32_t word = cursor->words[i] & (~0u << cursor->next % 32);

			if (word) {
				cursor->next = (cursor->first + i) * UINT64_C(32) +
					       (uint64_t)__builtin_ctz(word);
				*slot = (uint32_t)cursor->next++;
				return 1;
			}
		}
		if (cursor->first + cursor->n >= end)
			return 0;
		int error = refill(cursor, bitmap, end);
		if (error)
			return error;
	}
}

void pfs_cursor_finish(struct pfs_cursor *cursor)
{
	free(cursor->words);
	*cursor = (struct pfs_cursor){0};
}
