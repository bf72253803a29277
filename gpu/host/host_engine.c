/* SPDX-License-Identifier: MIT */
/* gpu/host/host_engine.c - the back end of codes that every machine has: threads and SIMD over the
 * engine's own columns. */
#include "gpu/probe_impl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "gpu/host/sets.h"

#define DIVIDED 16384u /* directories that a thread takes at a time */

#define GRAIN 262144u /* slots that a thread takes at a time */

static void host_close(struct pfs_backend *b)
{
	struct pfs_host *host = pfs_host_of(b);

	while (host->idle) {
		struct pfs_host_job *job = host->idle;

		host->idle = job->next;
		pfs_scan_scratch_free(&job->scratch);
		free(job);
	}
	pfs_pool_close(host->codes.pool);
	pfs_code_tiles_free(&host->codes);
	(void)pthread_mutex_destroy(&host->lock);
	free(host);
}

static void host_describe(struct pfs_backend *b, struct pfs_engine_info *info)
{
	const struct pfs_code_tiles *codes = &pfs_host_of(b)->codes;

	info->threads = pfs_pool_threads(codes->pool);
	info->deep = codes->n_deep;
	info->code_limbs = 0;
	for (size_t t = 0; t < codes->n_tiles; t++)
		info->code_limbs += (uint64_t)codes->tiles[t].n_limbs * codes->tiles[t].used;
	(void)snprintf(info->device, sizeof(info->device), "%s, %u threads", codes->simd->name,
		       info->threads);
}

static int host_begin(struct pfs_backend *b, struct pfs_codes_job **out)
{
	struct pfs_host *host = pfs_host_of(b);
	struct pfs_host_job *job;

	{
		PFS_LOCKED(&host->lock);

		job = host->idle;
		if (job)
			host->idle = job->next;
	}
	if (!job)
		job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->base = (struct pfs_codes_job){b->ops, b};
	*out = &job->base;
	return 0;
}

static int host_sync(struct pfs_codes_job *job)
{
	(void)job;
	return 0;
}

static void host_end(struct pfs_codes_job *base)
{
	struct pfs_host_job *job = (struct pfs_host_job *)base;
	struct pfs_host *host = pfs_host_of_job(base);
	PFS_LOCKED(&host->lock);

	job->next = host->idle;
	host->idle = job;
}

static int host_load(struct pfs_codes_job *job, const struct pfs_columns *c)
{
	struct pfs_host *host = pfs_host_of_job(job);

	host->columns = c;
	return pfs_code_tiles_build(&host->codes, c);
}

static int host_apply(struct pfs_codes_job *job, const struct pfs_columns *c,
		      const struct pfs_changes *changes)
{
	return changes->n_directories
		       ? pfs_code_tiles_change(&pfs_host_of_job(job)->codes, c, changes)
		       : 0;
}

static int host_alloc(struct pfs_codes_job *job, void **memory, size_t size)
{
	(void)job;
	*memory = malloc(size);
	return *memory ? 0 : -ENOMEM;
}

static void host_release(struct pfs_backend *b, void *memory, size_t size)
{
	(void)b;
	(void)size;
	free(memory);
}

static int host_read(struct pfs_codes_job *job, void *out, const void *memory, size_t offset,
		     size_t size)
{
	(void)job;
	if (size)
		memcpy(out, (const char *)memory + offset, size);
	return 0;
}

static int host_write(struct pfs_codes_job *job, void *memory, size_t offset, const void *in,
		      size_t size)
{
	(void)job;
	if (size)
		memcpy((char *)memory + offset, in, size);
	return 0;
}

/* ---- by slot, from bits by directory ---- */

struct spread {
	const struct pfs_simd *simd;
	const struct pfs_columns *c;
	uint32_t *bits;
	const uint32_t *directory_bits;
};

/* Handles whole words by the fast loop, and the last slots one by one. */
static void spread_piece(void *context, size_t from, size_t to)
{
	const struct spread *s = context;
	const uint32_t *table = s->directory_bits;
	size_t whole = to & ~(size_t)31;

	s->simd->gather_bits(s->bits + from / 32, s->c->home + from, whole - from, table);
	for (size_t i = whole; i < to; i++) {
		uint32_t home = s->c->home[i], word = i == whole ? 0 : s->bits[i / 32];

		s->bits[i / 32] = word | (table[home / 32] >> home % 32 & 1) << i % 32;
	}
}

static void clear_end(uint32_t *bits, size_t words, uint32_t n_slots)
{
	size_t used = pfs_div_round_up(n_slots, 32);

	memset(bits + used, 0, (words - used) * sizeof(*bits));
}

static int one_subtree(struct pfs_host *host, struct pfs_scan_scratch *scratch,
		       uint32_t *const *bits, size_t words, struct pfs_divisor divisor)
{
	struct spread s = {.simd = host->codes.simd, .c = host->columns, .bits = bits[0]};

	PFS_TRY(pfs_code_tiles_scan(&host->codes, scratch, host->columns, divisor));
	s.directory_bits = scratch->directory_bits;
	pfs_pool_run(host->codes.pool, host->columns->n_slots, GRAIN, spread_piece, &s);
	clear_end(bits[0], words, host->columns->n_slots);
	return 0;
}

struct masks {
	const struct pfs_columns *c;
	const uint64_t *asked; /* by directory: the mask of one that is asked for, or 0 */
	uint64_t *masks;
	uint32_t *const *bits;
};

/* A directory's mask is its own if it is asked for, else its parent's, which in pre-order is known
 * already. */
static void masks_piece(void *context, size_t from, size_t to)
{
	const struct masks *m = context;

	for (size_t d = from; d < to; d++) {
		uint64_t mask = 0;

		for (uint32_t up = (uint32_t)d; up && !mask; up = m->c->directories[up].parent) {
			if (up >= from && up < d) {
				mask = m->masks[up];
				break;
			}
			mask = m->asked[up];
		}
		m->masks[d] = mask;
	}
}

/* Handles 32 slots at a time; most have no bit. */
static void spread_masks_piece(void *context, size_t from, size_t to)
{
	const struct masks *m = context;

	for (size_t at = from; at < to; at += 32) {
		size_t n = PFS_MIN(to - at, (size_t)32);
		uint64_t mask[32], any = 0;

		for (size_t i = 0; i < n; i++) {
			mask[i] = m->masks[m->c->home[at + i]];
			any |= mask[i];
		}
		for (; any; any &= any - 1) {
			unsigned k = (unsigned)__builtin_ctzll(any);
			uint32_t word = 0;

			for (size_t i = 0; i < n; i++)
				word |= (uint32_t)(mask[i] >> k & 1) << i;
			m->bits[k][at / 32] = word;
		}
	}
}

static int many_subtrees(struct pfs_host *host, uint32_t *const *bits, size_t words,
			 const struct pfs_asked_subtree *subtrees, size_t n)
{
	const struct pfs_columns *c = host->columns;
	uint64_t *asked PFS_FREE = calloc(c->n_directories, sizeof(*asked));
	uint64_t *masks PFS_FREE = malloc((size_t)c->n_directories * sizeof(*masks));
	struct masks m = {.c = c, .asked = asked, .masks = masks, .bits = bits};

	if (!asked || !masks)
		return -ENOMEM;
	for (size_t k = 0; k < n; k++) {
		asked[subtrees[k].directory] = subtrees[k].mask;
		memset(bits[k], 0, words * sizeof(*bits[k]));
	}
	pfs_pool_run(host->codes.pool, c->n_directories, DIVIDED, masks_piece, &m);
	pfs_pool_run(host->codes.pool, c->n_slots, GRAIN, spread_masks_piece, &m);
	return 0;
}

static int host_subtrees(struct pfs_codes_job *base, uint32_t *const *bits, size_t words,
			 const struct pfs_asked_subtree *subtrees, size_t n)
{
	struct pfs_host_job *job = (struct pfs_host_job *)base;
	struct pfs_host *host = pfs_host_of_job(base);

	return n == 1 ? one_subtree(host, &job->scratch, bits, words, subtrees[0].divisor)
		      : many_subtrees(host, bits, words, subtrees, n);
}

static int host_parents(struct pfs_codes_job *job, uint32_t *bits, size_t words, uint32_t slot)
{
	const struct pfs_columns *c = pfs_host_of_job(job)->columns;

	memset(bits, 0, words * sizeof(*bits));
	for (uint32_t d = pfs_slot_parent(c, slot); d; d = c->directories[d].parent)
		bits[c->directory_slot[d] / 32] |= 1u << c->directory_slot[d] % 32;
	return 0;
}

/* ---- nodes one by one ---- */

struct each {
	const struct pfs_columns *c;
	const uint32_t *limbs;
	size_t n_limbs;
	uint32_t *found;
	size_t capacity;
	atomic_size_t n_found;
	uint64_t prime;
};

static void dividing_piece(void *context, size_t from, size_t to)
{
	struct each *e = context;

	for (size_t d = from; d < to; d++) {
		struct pfs_divisor divisor = pfs_divisor_of(e->c->directories[d].prime);
		size_t at;

		if (e->c->directory_slot[d] == PFS_NO_SLOT ||
		    !pfs_divides(divisor, e->limbs, (unsigned)e->n_limbs, 1))
			continue;
		at = atomic_fetch_add(&e->n_found, 1);
		if (at < e->capacity)
			e->found[at] = (uint32_t)d;
	}
}

static int host_dividing(struct pfs_codes_job *job, uint32_t *directories, size_t *n,
			 size_t capacity, const uint32_t *limbs, size_t n_limbs)
{
	struct pfs_host *host = pfs_host_of_job(job);
	struct each e = {.c = host->columns,
			 .limbs = limbs,
			 .n_limbs = n_limbs,
			 .capacity = capacity};

	e.found = directories;
	pfs_pool_run(host->codes.pool, host->columns->n_directories, DIVIDED, dividing_piece, &e);
	*n = atomic_load(&e.n_found);
	return 0;
}

static void prime_piece(void *context, size_t from, size_t to)
{
	struct each *e = context;

	for (size_t i = from; i < to; i++)
		if (e->c->prime[i] == e->prime)
			atomic_store(&e->n_found, i + 1);
}

static int host_find_prime(struct pfs_codes_job *job, uint32_t *slot, uint64_t prime)
{
	struct pfs_host *host = pfs_host_of_job(job);
	struct each e = {.c = host->columns, .prime = prime};

	pfs_pool_run(host->codes.pool, host->columns->n_slots, GRAIN, prime_piece, &e);
	if (atomic_load(&e.n_found) == 0)
		return -ENOENT;
	*slot = (uint32_t)(atomic_load(&e.n_found) - 1);
	return 0;
}

static int host_codes(struct pfs_codes_job *job, uint32_t *limbs, uint32_t *n_limbs, uint32_t first,
		      size_t n)
{
	for (size_t i = 0; i < n; i++)
		pfs_code_tiles_read(&pfs_host_of_job(job)->codes, limbs + i * PFS_LIMBS_MAX,
				    &n_limbs[i], first + (uint32_t)i);
	return 0;
}

/* ---- for benchmarks ---- */

#define PROBE_SIZE ((size_t)256 << 20)

typedef uint64_t vector __attribute__((vector_size(16)));

struct copy {
	char *to;
	const char *from;
	uint64_t sum; /* atomic */
};

static void copy_piece(void *context, size_t from, size_t to)
{
	const struct copy *copy = context;

	memcpy(copy->to + from, copy->from + from, to - from);
}

static void read_piece(void *context, size_t from, size_t to)
{
	struct copy *copy = context;
	const vector *vectors = (const vector *)(const void *)copy->from;
	vector even = {0}, odd = {0};

	for (size_t i = from / sizeof(*vectors); i < to / sizeof(*vectors); i += 2) {
		even += vectors[i];
		odd += vectors[i + 1];
	}
	even += odd;
	(void)__atomic_add_fetch(&copy->sum, even[0] + even[1], __ATOMIC_RELAXED);
}

static int probe_memory(struct pfs_host *host, double *seconds,
			void (*piece)(void *context, size_t from, size_t to))
{
	char *memory PFS_FREE = malloc(2 * PROBE_SIZE);
	struct copy copy;
	double start;

	if (!memory)
		return -ENOMEM;
	copy = (struct copy){.to = memory, .from = memory + PROBE_SIZE};
	memset(memory, 1, 2 * PROBE_SIZE);
	start = pfs_now_s();
	pfs_pool_run(host->codes.pool, PROBE_SIZE, PROBE_SIZE / 64, piece, &copy);
	*seconds = pfs_now_s() - start;
	return 0;
}

int pfs_host_probe(struct pfs_codes_job *base, double *seconds, uint64_t *bytes,
		   enum pfs_probe what, const struct pfs_divisor *divisors, size_t n)
{
	struct pfs_host_job *job = (struct pfs_host_job *)base;
	struct pfs_host *host = pfs_host_of_job(base);
	struct pfs_engine_info info;
	double start;
	int error = 0;

	host_describe(base->backend, &info);
	start = pfs_now_s();
	switch (what) {
	case PFS_PROBE_COPY:
		*bytes = 2 * PROBE_SIZE;
		return probe_memory(host, seconds, copy_piece);
	case PFS_PROBE_READ:
		*bytes = PROBE_SIZE;
		return probe_memory(host, seconds, read_piece);
	case PFS_PROBE_TO_HOST:
		return -ENOTSUP;
	case PFS_PROBE_SCAN:
		*bytes = info.code_limbs * sizeof(uint32_t);
		error = pfs_code_tiles_scan_rows(&host->codes, &job->scratch, divisors, n);
		break;
	case PFS_PROBE_BUILD:
		*bytes = info.code_limbs * sizeof(uint32_t) +
			 host->columns->n_directories * sizeof(struct pfs_directory);
		error = pfs_code_tiles_build(&host->codes, host->columns);
		break;
	}
	*seconds = pfs_now_s() - start;
	return error;
}

static const struct pfs_engine_ops host_ops = {
	.name = "host",
	.close = host_close,
	.describe = host_describe,
	.begin = host_begin,
	.sync = host_sync,
	.end = host_end,
	.load = host_load,
	.apply = host_apply,
	.alloc = host_alloc,
	.release = host_release,
	.read = host_read,
	.write = host_write,
	.fill = pfs_host_fill,
	.set = pfs_host_set,
	.combine = pfs_host_combine,
	.count = pfs_host_count,
	.subtrees = host_subtrees,
	.parents = host_parents,
	.dividing = host_dividing,
	.find_prime = host_find_prime,
	.codes = host_codes,
	.names_reserve = pfs_host_names_reserve,
	.names_update = pfs_host_names_update,
	.paths_open = pfs_host_paths_open,
	.paths_next = pfs_host_paths_next,
	.paths_close = pfs_host_paths_close,
};

int pfs_host_open(struct pfs_backend **out)
{
	struct pfs_host *host = calloc(1, sizeof(*host));
	int error;

	if (!host)
		return -ENOMEM;
	host->base.ops = &host_ops;
	host->codes.simd = pfs_simd_version(0);
	(void)pthread_mutex_init(&host->lock, NULL);
	error = pfs_pool_open(&host->codes.pool, 0, PFS_THREAD_NICE);
	if (error) {
		(void)pthread_mutex_destroy(&host->lock);
		free(host);
		return error;
	}
	*out = &host->base;
	return 0;
}
