/* SPDX-License-Identifier: MIT */
#include "tests/ref/stand_in.h"

#include <limits.h>
#include <stdlib.h>

#include "gpu/host/sets.h"

struct device {
	struct pfs_backend base;
	struct pfs_backend *inner;
};

struct stand_in stand_in = {.calls_left = LONG_MAX, .failure = -EIO};

static struct pfs_backend *inner(struct pfs_backend *b)
{
	return ((struct device *)b)->inner;
}

static bool fails(void)
{
	return stand_in.calls_left != LONG_MAX && --stand_in.calls_left <= 0;
}

/* One wrapper an operation: fails in its turn, else passes the call on. */
#define WRAP(name, parameters, arguments)                                                          \
	static int faulty_##name parameters                                                        \
	{                                                                                          \
		return fails() ? stand_in.failure : inner(b)->ops->name arguments;                 \
	}
/* A bit of memory that has turned. */
static void spoil(struct pfs_backend *b)
{
	const struct pfs_code_tiles *codes = &pfs_host_of(b)->codes;
	uint32_t row = stand_in.spoiled < codes->row_capacity ? codes->row_of[stand_in.spoiled] : 0;

	if (row)
		codes->tiles[row / PFS_TILE_ROWS].limbs[row % PFS_TILE_ROWS] ^= 4;
}

static int faulty_load(struct pfs_backend *b, const struct pfs_columns *c)
{
	int error = fails() ? stand_in.failure : inner(b)->ops->load(inner(b), c);

	stand_in.loads++;
	if (error == 0 && stand_in.spoiled)
		spoil(inner(b));
	return error;
}

static int faulty_apply(struct pfs_backend *b, const struct pfs_columns *c,
			const struct pfs_changes *changes)
{
	stand_in.applies++;
	return fails() ? stand_in.failure : inner(b)->ops->apply(inner(b), c, changes);
}

WRAP(sync, (struct pfs_backend * b), (inner(b)))
WRAP(alloc, (struct pfs_backend * b, void **memory, size_t size), (inner(b), memory, size))
WRAP(write, (struct pfs_backend * b, void *memory, size_t offset, const void *in, size_t size),
     (inner(b), memory, offset, in, size))
WRAP(fill, (struct pfs_backend * b, uint32_t *bits, size_t words, uint64_t from, uint64_t to),
     (inner(b), bits, words, from, to))
WRAP(set, (struct pfs_backend * b, uint32_t *bits, size_t words, const uint32_t *slots, size_t n),
     (inner(b), bits, words, slots, n))
WRAP(combine,
     (struct pfs_backend * b, uint32_t *bits, size_t words, const uint32_t *other,
      size_t other_words, enum pfs_bitmap_op op),
     (inner(b), bits, words, other, other_words, op))
WRAP(count, (struct pfs_backend * b, uint64_t *count, const uint32_t *bits, size_t words),
     (inner(b), count, bits, words))
WRAP(subtrees,
     (struct pfs_backend * b, uint32_t *const *bits, size_t words,
      const struct pfs_asked_subtree *subtrees, size_t n),
     (inner(b), bits, words, subtrees, n))
WRAP(parents, (struct pfs_backend * b, uint32_t *bits, size_t words, uint32_t slot),
     (inner(b), bits, words, slot))
WRAP(dividing,
     (struct pfs_backend * b, uint32_t *directories, size_t *n, size_t capacity,
      const uint32_t *limbs, size_t n_limbs),
     (inner(b), directories, n, capacity, limbs, n_limbs))
WRAP(find_prime, (struct pfs_backend * b, uint32_t *slot, uint64_t prime), (inner(b), slot, prime))
WRAP(codes, (struct pfs_backend * b, uint32_t *limbs, uint32_t *n_limbs, uint32_t first, size_t n),
     (inner(b), limbs, n_limbs, first, n))
WRAP(names_reserve, (struct pfs_backend * b, size_t heap, size_t places), (inner(b), heap, places))
static int faulty_names_update(struct pfs_backend *b, const struct pfs_names_update *update)
{
	for (size_t i = 0; i < update->n_pieces; i++)
		stand_in.names_sent += update->pieces[i].to - update->pieces[i].from;
	return fails() ? stand_in.failure : inner(b)->ops->names_update(inner(b), update);
}

WRAP(paths_open,
     (struct pfs_backend * b, struct pfs_path_listing **out, const struct pfs_paths_request *request),
     (inner(b), out, request))
WRAP(paths_next,
     (struct pfs_backend * b, struct pfs_path_listing *paths, const char **bytes, size_t *size),
     (inner(b), paths, bytes, size))

/* What is there can mostly still be read. */
static int faulty_read(struct pfs_backend *b, void *out, const void *memory, size_t offset,
		       size_t size)
{
	if (fails() && stand_in.reads_fail)
		return stand_in.failure;
	return inner(b)->ops->read(inner(b), out, memory, offset, size);
}

static void faulty_release(struct pfs_backend *b, void *memory, size_t size)
{
	inner(b)->ops->release(inner(b), memory, size);
}

static void faulty_describe(struct pfs_backend *b, struct pfs_engine_info *info)
{
	inner(b)->ops->describe(inner(b), info);
}

static void faulty_paths_close(struct pfs_backend *b, struct pfs_path_listing *paths)
{
	inner(b)->ops->paths_close(inner(b), paths);
}

static void faulty_close(struct pfs_backend *b)
{
	inner(b)->ops->close(inner(b));
	free(b);
}

static const struct pfs_engine_ops faulty_ops = {
	.name = "cuda",
	.close = faulty_close,
	.describe = faulty_describe,
	.load = faulty_load,
	.apply = faulty_apply,
	.sync = faulty_sync,
	.alloc = faulty_alloc,
	.release = faulty_release,
	.read = faulty_read,
	.write = faulty_write,
	.fill = faulty_fill,
	.set = faulty_set,
	.combine = faulty_combine,
	.count = faulty_count,
	.subtrees = faulty_subtrees,
	.parents = faulty_parents,
	.dividing = faulty_dividing,
	.find_prime = faulty_find_prime,
	.codes = faulty_codes,
	.names_reserve = faulty_names_reserve,
	.names_update = faulty_names_update,
	.paths_open = faulty_paths_open,
	.paths_next = faulty_paths_next,
	.paths_close = faulty_paths_close,
};

int stand_in_open(struct pfs_backend **out)
{
	struct device *device = calloc(1, sizeof(*device));
	int error;

	if (!device)
		return -ENOMEM;
	device->base.ops = &faulty_ops;
	error = pfs_host_open(&device->inner);
	if (error)
		free(device);
	else
		*out = &device->base;
	return error;
}
