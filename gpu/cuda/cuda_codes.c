/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_codes.c - the device's columns and codes: loaded, changed, scanned. */
#include "gpu/cuda/cuda_engine.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

static const uint8_t widths[PFS_N_WIDTHS] = PFS_WIDTHS;

#define CLEAR_ROWS PFS_TILE_ROWS /* the blank tile's */

struct pfs_cuda_codes pfs_cuda_codes_of(const struct pfs_cuda_job *job)
{
	const struct pfs_cuda *g = job->g;

	return (struct pfs_cuda_codes){
		.d_directories = g->directories.d_memory,
		.d_directory_slot = g->directory_slot.d_memory,
		.n = g->n_directories,
		.d_row_of = g->row_of.d_memory,
		.d_width = g->width.d_memory,
		.d_tiles = g->tiles.d_memory,
		.d_pool = g->pool.d_memory,
		.d_counters = job->counters.d_memory,
	};
}

/* ---- rows ---- */

struct plan {
	struct pfs_cuda_rows rows;
	uint32_t n_new[PFS_N_WIDTHS]; /* tiles */
	uint32_t first[PFS_N_WIDTHS]; /* of them */
	uint32_t n_tiles, pool_used;  /* afterwards */
};

/* From how many rows of each width are needed. */
static void plan_rows(const struct pfs_cuda_job *job, struct plan *plan)
{
	const struct pfs_cuda *g = job->g;

	*plan = (struct plan){.n_tiles = g->n_tiles, .pool_used = g->pool_used};
	for (unsigned w = 0; w < PFS_N_WIDTHS; w++) {
		uint32_t needed = job->host_counters->rows_needed[w];
		uint32_t left = g->open_tile[w] ? PFS_TILE_ROWS - g->open_used[w] : 0;

		plan->rows.n_open[w] = PFS_MIN(needed, left);
		plan->rows.open[w] = g->open_tile[w] * PFS_TILE_ROWS + g->open_used[w];
		plan->rows.fresh[w] = plan->n_tiles * PFS_TILE_ROWS;
		plan->first[w] = plan->n_tiles;
		plan->n_new[w] =
			(uint32_t)pfs_div_round_up(needed - plan->rows.n_open[w], PFS_TILE_ROWS);
		plan->n_tiles += plan->n_new[w];
		plan->pool_used += plan->n_new[w] * widths[w];
	}
}

static void accept_plan(struct pfs_cuda_job *job, const struct plan *plan)
{
	struct pfs_cuda *g = job->g;

	for (unsigned w = 0; w < PFS_N_WIDTHS; w++) {
		uint32_t needed = job->host_counters->rows_needed[w];
		uint32_t rest = needed - plan->rows.n_open[w];

		g->open_used[w] += plan->rows.n_open[w];
		g->n_rows += needed;
		g->n_limbs += (uint64_t)needed * widths[w];
		if (plan->n_new[w] == 0)
			continue;
		g->open_tile[w] = plan->first[w] + plan->n_new[w] - 1;
		g->open_used[w] = rest - (plan->n_new[w] - 1) * PFS_TILE_ROWS;
	}
	g->n_tiles = plan->n_tiles;
	g->pool_used = plan->pool_used;
}

static int write_tiles(struct pfs_cuda_job *job, const struct plan *plan)
{
	struct pfs_cuda *g = job->g;
	uint32_t at = g->pool_used;
	int error = 0;

	for (unsigned w = 0; w < PFS_N_WIDTHS && error == 0; w++) {
		if (plan->n_new[w])
			error = pfs_cuda_codes_tiles(g->tiles.d_memory, plan->first[w],
						     plan->n_new[w], at, widths[w], job->stream);
		at += plan->n_new[w] * widths[w];
	}
	return error;
}

/* Room for what the plan needs; *fits = false: codes must be built anew to have it. */
static bool fits(const struct pfs_cuda *g, const struct plan *plan)
{
	return ((size_t)plan->n_tiles + 1) * sizeof(struct pfs_cuda_tile) + 4096 <= g->tiles.size &&
	       (size_t)plan->pool_used * PFS_TILE_ROWS * sizeof(uint32_t) + 4096 <= g->pool.size;
}

static int reserve_for(struct pfs_cuda_job *job, const struct plan *plan)
{
	struct pfs_cuda *g = job->g;
	/* An eighth more, and a few tiles of every width. */
	size_t tiles = (size_t)plan->n_tiles + plan->n_tiles / 8 + 4 * PFS_N_WIDTHS;
	size_t pool = (size_t)plan->pool_used + plan->pool_used / 8 + 2048;
	int error = pfs_device_reserve(job, &g->tiles, tiles * sizeof(struct pfs_cuda_tile));

	return error ? error
		     : pfs_device_reserve(job, &g->pool, pool * PFS_TILE_ROWS * sizeof(uint32_t));
}

/* ---- building ---- */

static int list_deep(struct pfs_cuda_job *job)
{
	struct pfs_cuda *g = job->g;
	struct pfs_cuda_codes c = pfs_cuda_codes_of(job);
	int error;

	error = pfs_counters_clear(job);
	error = error ? error : pfs_device_reserve(job, &g->deep, c.n * sizeof(uint32_t));
	error = error ? error : pfs_cuda_codes_deep(&c, g->deep.d_memory, job->stream);
	error = error ? error : pfs_counters_read(job);
	g->n_deep = error ? 0 : job->host_counters->n_deep;
	return error;
}

static int forget_codes(struct pfs_cuda_job *job)
{
	struct pfs_cuda *g = job->g;
	size_t capacity = (size_t)g->directory_capacity + PFS_TILE_ROWS;
	int error;

	g->n_tiles = 1; /* the blank one */
	g->pool_used = 0;
	g->n_rows = g->n_lost = g->n_limbs = 0;
	g->n_deep = 0;
	memset(g->open_tile, 0, sizeof(g->open_tile));
	memset(g->open_used, 0, sizeof(g->open_used));
	error = pfs_device_reserve(job, &g->row_of, capacity * sizeof(uint32_t));
	error = error ? error : pfs_device_reserve(job, &g->width, capacity);
	error = error ? error
		      : pfs_device_reserve(job, &g->tiles, 64 * sizeof(struct pfs_cuda_tile));
	error = error ? error
		      : pfs_device_clear(job, g->tiles.d_memory, sizeof(struct pfs_cuda_tile));
	error = error ? error
		      : pfs_device_clear(job, g->row_of.d_memory, capacity * sizeof(uint32_t));
	return error ? error
		     : PFS_CUDA(cudaMemsetAsync(g->width.d_memory, PFS_CUDA_UNUSED, capacity,
						job->stream));
}

int pfs_cuda_codes_build(struct pfs_cuda_job *job)
{
	struct pfs_cuda *g = job->g;
	struct pfs_cuda_codes c;
	struct plan plan;
	int error = forget_codes(job);

	if (error || g->n_directories < 2)
		return error;
	c = pfs_cuda_codes_of(job);
	error = pfs_counters_clear(job);
	error = error ? error : pfs_cuda_codes_widths(&c, NULL, job->stream);
	error = error ? error : pfs_counters_read(job);
	if (error)
		return error;
	plan_rows(job, &plan);
	if (!fits(g, &plan)) {
		error = reserve_for(job, &plan);
		error = error ? error
			      : pfs_device_clear(job, g->tiles.d_memory,
						 sizeof(struct pfs_cuda_tile));
		c = pfs_cuda_codes_of(job);
	}
	error = error ? error : write_tiles(job, &plan);
	error = error ? error : pfs_cuda_codes_write(&c, NULL, &plan.rows, job->stream);
	if (error)
		return error;
	accept_plan(job, &plan);
	return job->host_counters->rows_needed[PFS_CUDA_DEEP] ? list_deep(job) : 0;
}

static int upload_columns(struct pfs_cuda_job *job, const struct pfs_columns *c)
{
	struct pfs_cuda *g = job->g;
	size_t slots = ((size_t)c->slot_capacity / PFS_TILE_ROWS + 1) * PFS_TILE_ROWS;
	size_t directories = (size_t)c->directory_capacity + PFS_TILE_ROWS;
	int error = pfs_device_reserve(job, &g->home, slots * sizeof(*c->home));

	error = error ? error : pfs_device_reserve(job, &g->prime, slots * sizeof(*c->prime));
	error = error ? error
		      : pfs_device_reserve(job, &g->directories,
					   directories * sizeof(*c->directories));
	error = error ? error
		      : pfs_device_reserve(job, &g->directory_slot, directories * sizeof(uint32_t));
	if (error)
		return error;
	error = pfs_device_clear(job, g->home.d_memory, slots * sizeof(*c->home));
	error = error ? error : pfs_device_clear(job, g->prime.d_memory, slots * sizeof(*c->prime));
	error = error ? error
		      : pfs_device_write(job, g->home.d_memory, c->home,
					 c->n_slots * sizeof(*c->home));
	error = error ? error
		      : pfs_device_write(job, g->prime.d_memory, c->prime,
					 c->n_slots * sizeof(*c->prime));
	error = error ? error
		      : pfs_device_write(job, g->directories.d_memory, c->directories,
					 c->n_directories * sizeof(*c->directories));
	error = error ? error
		      : pfs_device_write(job, g->directory_slot.d_memory, c->directory_slot,
					 c->n_directories * sizeof(uint32_t));
	return error;
}

int pfs_cuda_load(struct pfs_codes_job *base, const struct pfs_columns *c)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	struct pfs_cuda *g = job->g;
	int error = upload_columns(job, c);

	g->has_directory_paths = false;
	if (error)
		return error;
	g->n_slots = c->n_slots;
	g->slot_capacity = c->slot_capacity;
	g->n_directories = c->n_directories;
	g->directory_capacity = c->directory_capacity;
	g->root = c->root;
	return pfs_cuda_codes_build(job);
}

/* ---- changing ---- */

/* Sends the numbers of n elements to `list`, and takes room for their values. */
static int send_list(struct pfs_cuda_job *job, const uint32_t *numbers, size_t n)
{
	PFS_TRY(pfs_device_reserve(job, &job->list, n * sizeof(uint32_t)));
	PFS_TRY(pfs_device_reserve(job, &job->values, n * sizeof(uint64_t)));
	return pfs_device_write(job, job->list.d_memory, numbers, n * sizeof(*numbers));
}

/* Set the elements of a column on the device whose numbers are in `list`. */
static int scatter64(struct pfs_cuda_job *job, uint64_t *d_column, const uint64_t *values, size_t n)
{
	PFS_TRY(pfs_device_write(job, job->values.d_memory, values, n * sizeof(*values)));
	return pfs_cuda_scatter64(d_column, job->list.d_memory, job->values.d_memory, n,
				  job->stream);
}

static int scatter32(struct pfs_cuda_job *job, uint32_t *d_column, const uint32_t *values, size_t n)
{
	PFS_TRY(pfs_device_write(job, job->values.d_memory, values, n * sizeof(*values)));
	return pfs_cuda_scatter32(d_column, job->list.d_memory, job->values.d_memory, n,
				  job->stream);
}

static int patch_slots(struct pfs_cuda_job *job, const struct pfs_columns *c,
		       const struct pfs_changes *changes)
{
	struct pfs_cuda *g = job->g;
	size_t n = changes->n_slots;
	uint64_t *values PFS_FREE = malloc((n + 1) * sizeof(*values));
	uint32_t *homes = (uint32_t *)values;

	if (n == 0)
		return 0;
	if (!values)
		return -ENOMEM;
	PFS_TRY(send_list(job, changes->slots, n));
	for (size_t i = 0; i < n; i++)
		values[i] = c->prime[changes->slots[i]];
	PFS_TRY(scatter64(job, g->prime.d_memory, values, n));
	for (size_t i = 0; i < n; i++)
		homes[i] = c->home[changes->slots[i]];
	return scatter32(job, g->home.d_memory, homes, n);
}

static int patch_directories(struct pfs_cuda_job *job, const struct pfs_columns *c,
			     const struct pfs_changes *changes)
{
	struct pfs_cuda *g = job->g;
	size_t n = changes->n_directories;
	uint64_t *values PFS_FREE = malloc((n + 1) * sizeof(*values));
	uint32_t *slots = (uint32_t *)values;

	if (n == 0)
		return 0;
	if (!values)
		return -ENOMEM;
	PFS_TRY(send_list(job, changes->directories, n));
	for (size_t i = 0; i < n; i++)
		memcpy(&values[i], &c->directories[changes->directories[i]], sizeof(*values));
	PFS_TRY(scatter64(job, g->directories.d_memory, values, n));
	for (size_t i = 0; i < n; i++)
		slots[i] = c->directory_slot[changes->directories[i]];
	return scatter32(job, g->directory_slot.d_memory, slots, n);
}

/* Sets, in `work`, the bits of the directories whose codes change: those made, moved or removed,
 * whose numbers patch_directories() has left in `list`, and those that lie under a moved one now.
 */
static int find_concerned(struct pfs_cuda_job *job, const struct pfs_changes *changes)
{
	struct pfs_cuda *g = job->g;
	size_t size = ((size_t)g->n_directories / 32 + PFS_TILE_WORDS) * sizeof(uint32_t);
	struct pfs_cuda_tree t = pfs_cuda_tree_of(g);
	int error = pfs_device_reserve(job, &job->work, size);

	error = error ? error : pfs_device_clear(job, job->work.d_memory, size);
	error = error ? error
		      : pfs_cuda_set_bits(job->work.d_memory, job->list.d_memory,
					  changes->n_directories, job->stream);
	return error || !changes->has_moves
		       ? error
		       : pfs_cuda_mark_below(&t, job->work.d_memory, job->stream);
}

static int recode(struct pfs_cuda_job *job)
{
	struct pfs_cuda *g = job->g;
	struct pfs_cuda_codes c = pfs_cuda_codes_of(job);
	struct plan plan;
	int error = pfs_counters_clear(job);

	error = error ? error : pfs_cuda_codes_widths(&c, job->work.d_memory, job->stream);
	error = error ? error : pfs_counters_read(job);
	if (error)
		return error;
	g->n_lost += job->host_counters->n_lost;
	plan_rows(job, &plan);
	if (!fits(g, &plan) || g->n_lost > g->n_rows / 2 + 64 * PFS_TILE_ROWS)
		return pfs_cuda_codes_build(job);
	error = write_tiles(job, &plan);
	error = error ? error
		      : pfs_cuda_codes_write(&c, job->work.d_memory, &plan.rows, job->stream);
	if (error)
		return error;
	accept_plan(job, &plan);
	return g->n_deep || job->host_counters->rows_needed[PFS_CUDA_DEEP] ? list_deep(job) : 0;
}

int pfs_cuda_apply(struct pfs_codes_job *base, const struct pfs_columns *c,
		   const struct pfs_changes *changes)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	struct pfs_cuda *g = job->g;
	int error;

	if (c->slot_capacity > g->slot_capacity || c->directory_capacity > g->directory_capacity)
		return pfs_cuda_load(base, c);
	g->has_directory_paths = g->has_directory_paths && !changes->n_directories;
	error = patch_slots(job, c, changes);
	error = error ? error : patch_directories(job, c, changes);
	g->n_slots = c->n_slots;
	g->n_directories = c->n_directories;
	if (error || changes->n_directories == 0)
		return error;
	error = find_concerned(job, changes);
	return error ? error : recode(job);
}

/* ---- scanning ---- */

static size_t row_count(const struct pfs_cuda *g)
{
	return (size_t)g->n_tiles * PFS_TILE_ROWS;
}

static size_t directory_count(const struct pfs_cuda *g) /* whole tiles; row_of is 0 at the end */
{
	return pfs_div_round_up(g->n_directories, PFS_TILE_ROWS) * PFS_TILE_ROWS;
}

static int row_bits_of(struct pfs_cuda_job *job, struct pfs_divisor divisor)
{
	struct pfs_cuda *g = job->g;
	int error = pfs_device_reserve(job, &job->row_bits, row_count(g) / 8);

	error = error ? error : pfs_device_clear(job, job->row_bits.d_memory, CLEAR_ROWS / 8);
	return error ? error
		     : pfs_cuda_scan(g->tiles.d_memory, g->n_tiles, g->pool.d_memory, divisor.p,
				     divisor.inverse, job->row_bits.d_memory, job->stream);
}

/* d_bits by directory. */
static int bits_of(struct pfs_cuda_job *job, struct pfs_divisor divisor)
{
	struct pfs_cuda *g = job->g;
	struct pfs_cuda_codes c = pfs_cuda_codes_of(job);
	int error = row_bits_of(job, divisor);

	error = error ? error
		      : pfs_device_reserve(job, &job->directory_bits, directory_count(g) / 8);
	error = error ? error
		      : pfs_cuda_gather_bits(job->directory_bits.d_memory, g->row_of.d_memory,
					     directory_count(g), job->row_bits.d_memory,
					     job->stream);
	if (error == 0 && g->n_deep)
		error = pfs_cuda_deep_bits(&c, g->deep.d_memory, g->n_deep, divisor.p,
					   job->directory_bits.d_memory, job->stream);
	return error;
}

static void prepare_divisors(struct pfs_cuda_divisors *out, const struct pfs_divisor *divisors,
			     size_t n)
{
	*out = (struct pfs_cuda_divisors){.n = (uint32_t)n};
	for (size_t k = 0; k < PFS_CUDA_PREDICATES; k++) {
		struct pfs_divisor d = k < n ? divisors[k] : pfs_divisor_of(1);
		uint64_t most = UINT32_MAX / d.p, power = 1;

		out->p[k] = d.p;
		out->inverse[k] = d.inverse;
		out->max_limbs[k] = most < 3 ? 0 : (uint32_t)PFS_MIN(most - 3, PFS_CUDA_FAST_LIMBS);
		for (size_t l = 0; l < PFS_CUDA_FAST_LIMBS; l++) {
			out->powers[k][l] = (uint32_t)(power % d.p);
			power = (power % d.p << 32) % d.p;
		}
	}
}

static int row_masks_of(struct pfs_cuda_job *job, const struct pfs_cuda_divisors *prepared)
{
	struct pfs_cuda *g = job->g;
	int wide = 0,
	    error = pfs_device_reserve(job, &job->row_masks, row_count(g) * sizeof(uint64_t));

	for (unsigned w = 0; w < PFS_N_WIDTHS; w++)
		wide |= widths[w] > 8 && g->open_tile[w] != 0;
	error = error ? error
		      : pfs_device_clear(job, job->row_masks.d_memory,
					 CLEAR_ROWS * sizeof(uint64_t));
	return error ? error
		     : pfs_cuda_scan_many(g->tiles.d_memory, g->n_tiles, g->pool.d_memory, prepared,
					  job->row_masks.d_memory, wide, job->stream);
}

int pfs_cuda_scan_rows(struct pfs_cuda_job *job, const struct pfs_divisor *divisors, size_t n)
{
	struct pfs_cuda_divisors prepared;

	if (n == 1)
		return row_bits_of(job, divisors[0]);
	prepare_divisors(&prepared, divisors, n);
	return row_masks_of(job, &prepared);
}

/* Masks by directory: its own, if it is one of those asked for, else that of the first such
 * above. */
static int masks_of(struct pfs_cuda_job *job, const struct pfs_asked_subtree *subtrees, size_t n)
{
	struct pfs_cuda_tree t = pfs_cuda_tree_of(job->g);
	size_t size = directory_count(job->g) * sizeof(uint64_t);
	uint32_t directories[PFS_SUBTREES_MAX];
	uint64_t masks[PFS_SUBTREES_MAX];
	int error = pfs_device_reserve(job, &job->directory_masks, size);

	for (size_t k = 0; k < n; k++) {
		directories[k] = subtrees[k].directory;
		masks[k] = subtrees[k].mask;
	}
	error = error ? error : pfs_device_clear(job, job->directory_masks.d_memory, size);
	error = error ? error : pfs_device_reserve(job, &job->list, sizeof(directories));
	error = error ? error : pfs_device_reserve(job, &job->values, sizeof(masks));
	error = error ? error
		      : pfs_device_write(job, job->list.d_memory, directories,
					 n * sizeof(*directories));
	error = error ? error
		      : pfs_device_write(job, job->values.d_memory, masks, n * sizeof(*masks));
	error = error ? error
		      : pfs_cuda_scatter64(job->directory_masks.d_memory, job->list.d_memory,
					   job->values.d_memory, n, job->stream);
	return error ? error : pfs_cuda_masks_below(&t, job->directory_masks.d_memory, job->stream);
}

int pfs_cuda_subtrees(struct pfs_codes_job *base, uint32_t *const *bits, size_t words,
		      const struct pfs_asked_subtree *subtrees, size_t n)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	struct pfs_cuda *g = job->g;
	struct pfs_cuda_bitmaps bitmaps;
	int error;

	if (n == 1) {
		error = bits_of(job, subtrees[0].divisor);
		return error ? error
			     : pfs_cuda_gather_bits(bits[0], g->home.d_memory, words * 32,
						    job->directory_bits.d_memory, job->stream);
	}
	error = masks_of(job, subtrees, n);
	for (size_t k = 0; k < n; k++)
		bitmaps.d_bits[k] = bits[k];
	return error ? error
		     : pfs_cuda_spread_masks(&bitmaps, (uint32_t)n, g->home.d_memory, words * 32,
					     job->directory_masks.d_memory, job->stream);
}
