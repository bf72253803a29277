/* SPDX-License-Identifier: MIT */
/* gpu/bitmap.c - sets of nodes: made, combined, counted, walked.  A set that is a range of slots is
 * kept as two numbers until its bits are needed. */
#include "gpu/engine_impl.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"

#define CURSOR_WORDS_FIRST 256	 /* small sets are many, */
#define CURSOR_WORDS_MOST  65536 /* large ones cross the bus in few pieces */

/* Whole tiles, so that kernels need not look at the end. */
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

int pfs_bitmap_new(struct pfs_engine *e, struct pfs_bitmap **out)
{
	struct pfs_bitmap *bitmap = calloc(1, sizeof(*bitmap));
	void *memory = NULL;
	int error;

	if (!bitmap)
		return -ENOMEM;
	bitmap->engine = e;
	bitmap->backend = e->backend;
	bitmap->words = pfs_engine_words(e);
	error = e->backend->ops->alloc(e->backend, &memory, bitmap->words * sizeof(*bitmap->bits));
	if (error) {
		free(bitmap);
		return error;
	}
	bitmap->bits = memory;
	*out = bitmap;
	return 0;
}

void pfs_bitmap_free(struct pfs_bitmap *bitmap)
{
	if (!bitmap)
		return;
	(void)pthread_mutex_lock(&bitmap->engine->lock);
	release_bits(bitmap);
	(void)pthread_mutex_unlock(&bitmap->engine->lock);
	free(bitmap);
}

/* Takes the bits over from a device that was left, if it still gives them. */
static int rescue(struct pfs_bitmap *bitmap)
{
	struct pfs_engine *e = bitmap->engine;
	const struct pfs_engine_ops *ops = e->backend->ops;
	size_t size = bitmap->words * sizeof(*bitmap->bits);
	uint32_t *copy PFS_FREE = malloc(size);
	void *memory = NULL;
	int error;

	if (!copy)
		return -ENOMEM;
	if (bitmap->backend->ops->read(bitmap->backend, copy, bitmap->bits, 0, size)) {
		pfs_warning("a result was lost with the device");
		return -ESTALE;
	}
	error = ops->alloc(e->backend, &memory, size);
	if (error)
		return error;
	release_bits(bitmap);
	bitmap->backend = e->backend;
	bitmap->bits = memory;
	return ops->write(e->backend, memory, 0, copy, size);
}

int pfs_bitmap_here(const struct pfs_bitmap *set)
{
	struct pfs_bitmap *bitmap = (struct pfs_bitmap *)set;
	struct pfs_engine *e = bitmap->engine;
	const struct pfs_engine_ops *ops = e->backend->ops;
	void *memory = NULL;
	int error;

	if (!bitmap->is_range)
		return bitmap->backend == e->backend ? 0 : rescue(bitmap);
	error = ops->alloc(e->backend, &memory, bitmap->words * sizeof(*bitmap->bits));
	if (error)
		return error;
	bitmap->backend = e->backend;
	bitmap->bits = memory;
	error = ops->fill(e->backend, bitmap->bits, bitmap->words, bitmap->from, bitmap->to);
	if (error)
		release_bits(bitmap);
	else
		bitmap->is_range = false;
	return error;
}

int pfs_bitmap_of_slots(struct pfs_engine *e, struct pfs_bitmap **out, const uint32_t *slots,
			size_t n)
{
	PFS_LOCKED(&e->lock);
	struct pfs_bitmap *bitmap = NULL;
	int error;

	for (size_t i = 0; i < n; i++)
		if (slots[i] >= e->columns.n_slots)
			return -EINVAL;
	do {
		error = pfs_bitmap_new(e, &bitmap);
		if (error)
			continue;
		error = e->backend->ops->set(e->backend, bitmap->bits, bitmap->words, slots, n);
		if (error) {
			release_bits(bitmap);
			free(bitmap);
		}
	} while (pfs_engine_leave_device(e, error));
	if (error == 0)
		*out = bitmap;
	return error;
}

static int widen(struct pfs_bitmap *bitmap, size_t words)
{
	struct pfs_engine *e = bitmap->engine;
	const struct pfs_engine_ops *ops = e->backend->ops;
	void *memory = NULL;
	int error = ops->alloc(e->backend, &memory, words * sizeof(*bitmap->bits));

	if (error)
		return error;
	error = ops->fill(e->backend, memory, words, 0, 0);
	if (error == 0)
		error = ops->combine(e->backend, memory, words, bitmap->bits, bitmap->words,
				     PFS_BITMAP_OR);
	if (error) {
		ops->release(e->backend, memory, words * sizeof(*bitmap->bits));
		return error;
	}
	release_bits(bitmap);
	bitmap->bits = memory;
	bitmap->words = words;
	return 0;
}

int pfs_bitmap_combine(struct pfs_bitmap *bitmap, const struct pfs_bitmap *other,
		       enum pfs_bitmap_op op)
{
	struct pfs_engine *e = bitmap->engine;
	PFS_LOCKED(&e->lock);
	int error;

	do {
		error = pfs_bitmap_here(bitmap);
		error = error ? error : pfs_bitmap_here(other);
		if (error == 0 && op == PFS_BITMAP_OR && other->words > bitmap->words)
			error = widen(bitmap, other->words);
		if (error == 0)
			error = e->backend->ops->combine(e->backend, bitmap->bits, bitmap->words,
							 other->bits, other->words, op);
	} while (pfs_engine_leave_device(e, error));
	return error;
}

static int count_locked(const struct pfs_bitmap *bitmap, uint64_t *count)
{
	struct pfs_engine *e = bitmap->engine;
	int error;

	if (bitmap->is_range) {
		*count = bitmap->to - bitmap->from;
		return 0;
	}
	do {
		error = pfs_bitmap_here(bitmap);
		if (error == 0)
			error = e->backend->ops->count(e->backend, count, bitmap->bits,
						       bitmap->words);
	} while (pfs_engine_leave_device(e, error));
	return error;
}

int pfs_bitmap_count(const struct pfs_bitmap *bitmap, uint64_t *count)
{
	PFS_LOCKED(&bitmap->engine->lock);

	return count_locked(bitmap, count);
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
	struct pfs_engine *e = bitmap->engine;
	PFS_LOCKED(&e->lock);
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
		error = pfs_bitmap_here(bitmap);
		if (error == 0)
			error = e->backend->ops->read(e->backend, words, bitmap->bits,
						      first * sizeof(*words),
						      there * sizeof(*words));
	} while (pfs_engine_leave_device(e, error));
	return error;
}

static int refill(struct pfs_cursor *cursor, const struct pfs_bitmap *bitmap, size_t end)
{
	size_t first = cursor->first + cursor->n;
	size_t n = PFS_MIN(end - first, (size_t)CURSOR_WORDS_FIRST);

	/* Each piece eight times the one before. */
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
