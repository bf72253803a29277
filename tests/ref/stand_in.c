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

struct job {
	struct pfs_codes_job base;
	struct pfs_codes_job *inner;
};

static struct pfs_codes_job *inner(struct pfs_codes_job *job)
{
	return ((struct job *)job)->inner;
}

static long count_down(void)
{
	return stand_in.calls_left == LONG_MAX ? LONG_MAX : --stand_in.calls_left;
}

static bool fails(void)
{
	return count_down() <= 0;
}

/* What is there can mostly still be read after the failure. */
static bool fails_to_read(void)
{
	long left = count_down();

	return left == 0 || (left < 0 && stand_in.reads_fail);
}

/* One wrapper an operation: fails in its turn, else passes the call on. */
#define WRAP(name, parameters, arguments)                                                          \
	static int faulty_##name parameters                                                        \
	{                                                                                          \
		return fails() ? stand_in.failure : inner(job)->ops->name arguments;               \
	}

static int faulty_begin(struct pfs_backend *b, struct pfs_codes_job **out)
{
	struct pfs_backend *device = ((struct device *)b)->inner;
	struct job *job;
	int error;

	if (fails_to_read())
		return stand_in.failure;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->base = (struct pfs_codes_job){b->ops, b};
	error = device->ops->begin(device, &job->inner);
	if (error)
		free(job);
	else
		*out = &job->base;
	return error;
}

static int faulty_sync(struct pfs_codes_job *job)
{
	return fails_to_read() ? stand_in.failure : inner(job)->ops->sync(inner(job));
}

static void faulty_end(struct pfs_codes_job *job)
{
	inner(job)->ops->end(inner(job));
	free(job);
}

/* A bit of memory that has turned. */
static void spoil(struct pfs_backend *b)
{
	const struct pfs_code_tiles *codes = &pfs_host_of(b)->codes;
	uint32_t row = stand_in.spoiled < codes->row_capacity ? codes->row_of[stand_in.spoiled] : 0;

	if (row)
		codes->tiles[row / PFS_TILE_ROWS].limbs[row % PFS_TILE_ROWS] ^= 4;
}

static int faulty_load(struct pfs_codes_job *job, const struct pfs_columns *c)
{
	int error = fails() ? stand_in.failure : inner(job)->ops->load(inner(job), c);

	stand_in.loads++;
	if (error == 0 && stand_in.spoiled)
		spoil(inner(job)->backend);
	return error;
}

static int faulty_apply(struct pfs_codes_job *job, const struct pfs_columns *c,
			const struct pfs_changes *changes)
{
	stand_in.applies++;
	return fails() ? stand_in.failure : inner(job)->ops->apply(inner(job), c, changes);
}

WRAP(alloc, (struct pfs_codes_job * job, void **memory, size_t size), (inner(job), memory, size))
WRAP(write, (struct pfs_codes_job * job, void *memory, size_t offset, const void *in, size_t size),
     (inner(job), memory, offset, in, size))
WRAP(fill, (struct pfs_codes_job * job, uint32_t *bits, size_t words, uint64_t from, uint64_t to),
     (inner(job), bits, words, from, to))
WRAP(set,
     (struct pfs_codes_job * job, uint32_t *bits, size_t words, const uint32_t *slots, size_t n),
     (inner(job), bits, words, slots, n))
WRAP(combine,
     (struct pfs_codes_job * job, uint32_t *bits, size_t words, const uint32_t *other,
      size_t other_words, enum pfs_bitmap_op op),
     (inner(job), bits, words, other, other_words, op))
WRAP(count, (struct pfs_codes_job * job, uint64_t *count, const uint32_t *bits, size_t words),
     (inner(job), count, bits, words))
WRAP(subtrees,
     (struct pfs_codes_job * job, uint32_t *const *bits, size_t words,
      const struct pfs_asked_subtree *subtrees, size_t n),
     (inner(job), bits, words, subtrees, n))
WRAP(parents, (struct pfs_codes_job * job, uint32_t *bits, size_t words, uint32_t slot),
     (inner(job), bits, words, slot))
WRAP(dividing,
     (struct pfs_codes_job * job, uint32_t *directories, size_t *n, size_t capacity,
      const uint32_t *limbs, size_t n_limbs),
     (inner(job), directories, n, capacity, limbs, n_limbs))
WRAP(find_prime, (struct pfs_codes_job * job, uint32_t *slot, uint64_t prime),
     (inner(job), slot, prime))
WRAP(codes,
     (struct pfs_codes_job * job, uint32_t *limbs, uint32_t *n_limbs, uint32_t first, size_t n),
     (inner(job), limbs, n_limbs, first, n))
WRAP(names_reserve, (struct pfs_codes_job * job, size_t heap, size_t places),
     (inner(job), heap, places))
static int faulty_names_update(struct pfs_codes_job *job, const struct pfs_names_update *update)
{
	for (size_t i = 0; i < update->n_pieces; i++)
		stand_in.names_sent += update->pieces[i].to - update->pieces[i].from;
	return fails() ? stand_in.failure : inner(job)->ops->names_update(inner(job), update);
}

WRAP(paths_open,
     (struct pfs_codes_job * job, struct pfs_path_listing **out,
      const struct pfs_paths_request *request),
     (inner(job), out, request))
WRAP(paths_next,
     (struct pfs_codes_job * job, struct pfs_path_listing *paths, const char **bytes, size_t *size),
     (inner(job), paths, bytes, size))

static int faulty_read(struct pfs_codes_job *job, void *out, const void *memory, size_t offset,
		       size_t size)
{
	return fails_to_read() ? stand_in.failure
			       : inner(job)->ops->read(inner(job), out, memory, offset, size);
}

static void faulty_release(struct pfs_backend *b, void *memory, size_t size)
{
	struct pfs_backend *device = ((struct device *)b)->inner;

	device->ops->release(device, memory, size);
}

static void faulty_describe(struct pfs_backend *b, struct pfs_engine_info *info)
{
	struct pfs_backend *device = ((struct device *)b)->inner;

	device->ops->describe(device, info);
}

static void faulty_paths_close(struct pfs_codes_job *job, struct pfs_path_listing *paths)
{
	inner(job)->ops->paths_close(inner(job), paths);
}

static void faulty_close(struct pfs_backend *b)
{
	struct pfs_backend *device = ((struct device *)b)->inner;

	device->ops->close(device);
	free(b);
}

static const struct pfs_engine_ops faulty_ops = {
	.name = "cuda",
	.close = faulty_close,
	.describe = faulty_describe,
	.begin = faulty_begin,
	.sync = faulty_sync,
	.end = faulty_end,
	.load = faulty_load,
	.apply = faulty_apply,
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
