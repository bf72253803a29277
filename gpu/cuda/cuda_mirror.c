/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_mirror.c - arrays of owners as device copies that are kept from job to job: only
 * blocks that changed cross the bus again.
 *
 * A job that reads a mirror has a lease on it.  While others have leases a mirror is not changed:
 * who needs a newer state waits a little, then leaves the operator to the host.
 *
 * Copies are made in pieces, and between two of them the statement may be told to give way: what
 * was copied until then stays. */
#include "gpu/cuda/cuda_operators.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define NEVER	   UINT64_MAX
#define WAIT_MS	   3	    /* for leases of an older state: the tree is held meanwhile */
#define SLACK	   64u	    /* bytes that kernels may read past the end */
#define FILL_WORDS 65536u
#define PIECE	   ((size_t)16 << 20) /* bytes copied before the statement is asked whether it goes on */

static size_t bytes_of(const struct pfs_array *a, uint64_t n)
{
	return (size_t)(a->element_bits == 1 ? (n + 63) / 64 * 8 : n * (a->element_bits / 8));
}

static size_t block_bytes(const struct pfs_array *a)
{
	return (size_t)PFS_BLOCK_ROWS * a->element_bits / 8;
}

static void free_mirror(struct pfs_cuda_operators *o, struct pfs_mirror *m)
{
	o->mirrored -= m->size;
	pfs_device_give(o, m->d_memory);
	free(m->epoch);
	free(m);
}

void pfs_mirrors_drop_all(struct pfs_cuda_operators *o)
{
	while (o->mirrors) {
		struct pfs_mirror *m = o->mirrors;

		o->mirrors = m->next;
		free_mirror(o, m);
	}
}

void pfs_mirror_forget(struct pfs_cuda_operators *o, uint64_t id)
{
	PFS_LOCKED(&o->lock);

	for (struct pfs_mirror **at = &o->mirrors; *at; at = &(*at)->next) {
		struct pfs_mirror *m = *at;

		if (m->id != id)
			continue;
		if (m->leases || m->pins)
			return;
		*at = m->next;
		free_mirror(o, m);
		return;
	}
}

/* The lock is held.  Frees what nobody reads, the longest unused first, until `size` more fits. */
static void make_room(struct pfs_cuda_operators *o, size_t size)
{
	while (o->mirrored + size > o->mirror_limit) {
		struct pfs_mirror **at, **oldest = NULL, *m;

		for (at = &o->mirrors; *at; at = &(*at)->next)
			if (!(*at)->leases && !(*at)->pins && (*at)->size &&
			    (!oldest || (*at)->used < (*oldest)->used))
				oldest = at;
		if (!oldest)
			return;
		m = *oldest;
		*oldest = m->next;
		free_mirror(o, m);
	}
}

static struct pfs_mirror *find_mirror(struct pfs_cuda_operators *o, uint64_t id)
{
	struct pfs_mirror *m;

	for (m = o->mirrors; m && m->id != id; m = m->next)
		;
	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->id = id;
	m->next = o->mirrors;
	o->mirrors = m;
	return m;
}

/* ---- copying ---- */

static int copy_data(struct pfs_job *job, uint8_t *d_memory, const uint8_t *data, size_t from,
		     size_t to)
{
	for (size_t n; from < to; from += n) {
		n = PFS_MIN(to - from, PIECE);
		PFS_TRY(pfs_run_check(job->run));
		PFS_TRY(pfs_job_copy(job, d_memory + from, data + from, n));
	}
	return 0;
}

/* Bytes from..to of the array, to their place in d_memory. */
static int copy_piece(struct pfs_job *job, uint8_t *d_memory, const struct pfs_array *a,
		      size_t from, size_t to)
{
	uint64_t *words PFS_FREE = NULL;

	if (!a->fill)
		return copy_data(job, d_memory, a->data, from, to);
	words = malloc(FILL_WORDS * sizeof(*words));
	if (!words)
		return -ENOMEM;
	for (size_t at = from / 8; at < to / 8; at += FILL_WORDS) {
		size_t n = PFS_MIN(to / 8 - at, (size_t)FILL_WORDS);

		PFS_TRY(pfs_run_check(job->run));
		a->fill(a->context, words, at, n);
		/* From pageable memory: the call returns when the words have been taken. */
		PFS_TRY(PFS_CUDA(cudaMemcpyAsync(d_memory + at * 8, words, n * 8,
						 cudaMemcpyHostToDevice, job->stream)));
	}
	return 0;
}

/* Nobody changes the array while a statement reads it: the stamps may be compared at once. */
static bool has_its_stamps(const struct pfs_mirror *m, const struct pfs_array *a)
{
	return m->epoch && memcmp(m->epoch, a->stamps->block,
				  pfs_div_round_up(a->n, PFS_BLOCK_ROWS) * sizeof(*m->epoch)) == 0;
}

/* Comparing the stamps of 100 million rows takes as long as a small kernel: while their clock
 * stands it is done once. */
static bool is_current(struct pfs_mirror *m, const struct pfs_array *a)
{
	const uint64_t *clock = a->stamps ? a->stamps->clock : NULL;
	size_t size = bytes_of(a, a->n);

	if (m->held != size && (a->stamps || m->held < size))
		return false;
	if (!a->stamps || !a->n)
		return true;
	if (clock && *clock == m->compared) {
		PFS_VERIFY_CHECK(has_its_stamps(m, a));
		return true;
	}
	if (!has_its_stamps(m, a))
		return false;
	m->compared = clock ? *clock : NEVER;
	return true;
}

/* Room for the array as it is now; what was there is lost if it has to move. */
static int resize(struct pfs_job *job, struct pfs_mirror *m, const struct pfs_array *a)
{
	size_t size = bytes_of(a, a->n), wanted = size + size / 8 + SLACK;
	size_t n_blocks = (size_t)pfs_div_round_up(a->n, PFS_BLOCK_ROWS);
	uint64_t *epoch;

	if (a->stamps && n_blocks > m->n_blocks) {
		epoch = realloc(m->epoch, n_blocks * sizeof(*epoch));
		if (!epoch)
			return -ENOMEM;
		for (size_t i = m->n_blocks; i < n_blocks; i++)
			epoch[i] = NEVER;
		m->epoch = epoch;
		m->n_blocks = n_blocks;
	}
	if (size + SLACK <= m->size)
		return 0;
	{
		PFS_LOCKED(&job->o->lock);

		pfs_device_give(job->o, m->d_memory);
		job->o->mirrored -= m->size;
		m->d_memory = NULL;
		m->size = m->held = 0;
		make_room(job->o, wanted);
	}
	for (size_t i = 0; i < m->n_blocks; i++)
		m->epoch[i] = NEVER;
	PFS_TRY(PFS_CUDA(cudaMallocFromPoolAsync((void **)&m->d_memory, wanted, job->o->pool,
						 job->stream)));
	PFS_LOCKED(&job->o->lock);
	m->size = wanted;
	job->o->mirrored += wanted;
	return 0;
}

static bool has_changed(const struct pfs_mirror *m, const struct pfs_array *a, size_t block)
{
	return m->epoch[block] != pfs_stamps_of(a->stamps, (uint32_t)block) ||
	       m->held < PFS_MIN((block + 1) * block_bytes(a), bytes_of(a, a->n));
}

static void use_up(struct pfs_job *job, size_t size)
{
	job->left -= PFS_MIN(job->left, size);
}

/* Blocks that changed, neighbours together, ascending: all that lies below what is held is a copy,
 * if of an older state. */
static int copy_blocks(struct pfs_job *job, struct pfs_mirror *m, const struct pfs_array *a)
{
	size_t n = (size_t)pfs_div_round_up(a->n, PFS_BLOCK_ROWS), size = bytes_of(a, a->n), i = 0;

	while (i < n && job->left) {
		size_t most = PFS_MIN(PIECE, job->left) / block_bytes(a), to = i, end;

		while (to < n && to - i < PFS_MAX(most, (size_t)1) && has_changed(m, a, to))
			to++;
		if (to == i) {
			i++;
			continue;
		}
		end = PFS_MIN(to * block_bytes(a), size);
		PFS_TRY(copy_piece(job, m->d_memory, a, i * block_bytes(a), end));
		use_up(job, end - i * block_bytes(a));
		for (; i < to; i++)
			m->epoch[i] = pfs_stamps_of(a->stamps, (uint32_t)i);
		m->held = PFS_MAX(m->held, end);
	}
	if (i == n)
		m->held = size;
	return 0;
}

/* What came at the end; by words, if not all of it. */
static int copy_end(struct pfs_job *job, struct pfs_mirror *m, const struct pfs_array *a)
{
	size_t from = m->held, to = bytes_of(a, a->n);

	if (from < to && to - from > job->left)
		to = from + job->left / 8 * 8;
	PFS_TRY(copy_piece(job, m->d_memory, a, from, to));
	use_up(job, to - from);
	m->held = to;
	return 0;
}

/* An error of the device leaves no copy; others, as when the statement is to give way, what was
 * copied. */
static int refresh(struct pfs_job *job, struct pfs_mirror *m, const struct pfs_array *a)
{
	int error, late;

	m->has_bounds = false;
	m->compared = NEVER;
	error = resize(job, m, a);
	if (!error)
		error = a->stamps ? copy_blocks(job, m, a) : copy_end(job, m, a);
	late = PFS_CUDA(cudaStreamSynchronize(job->stream));
	error = error ? error : late;
	for (size_t i = 0; (late || error == -EIO) && i < m->n_blocks; i++)
		m->epoch[i] = NEVER;
	m->held = late || error == -EIO ? 0 : m->held;
	return error;
}

/* ---- leases ---- */

/* The lock is held.  Waits until nobody changes the mirror and, if it is not current, nobody reads
 * it. */
static int wait_for(const struct pfs_job *job, struct pfs_mirror *m, const struct pfs_array *a)
{
	const struct timespec until = pfs_clock_in_ms(CLOCK_MONOTONIC, WAIT_MS);
	struct pfs_cuda_operators *o = job->o;

	while (m->busy || (m->leases && !is_current(m, a))) {
		if (job->is_hurried)
			return -EOPNOTSUPP;
		if (m->busy) /* an upload ends by itself */
			(void)pthread_cond_wait(&o->changed, &o->lock);
		else if (pthread_cond_timedwait(&o->changed, &o->lock, &until) != 0)
			return -EOPNOTSUPP;
	}
	return 0;
}

/* The lock is held, but not while the mirror, which nobody reads, is changed. */
static int update(struct pfs_job *job, struct pfs_mirror *m, const struct pfs_array *a)
{
	struct pfs_cuda_operators *o = job->o;
	int error;

	m->busy = true;
	(void)pthread_mutex_unlock(&o->lock);
	error = refresh(job, m, a);
	(void)pthread_mutex_lock(&o->lock);
	m->busy = false;
	(void)pthread_cond_broadcast(&o->changed);
	return error;
}

static int lease(struct pfs_job *job, struct pfs_mirror *m, const struct pfs_array *a)
{
	struct pfs_cuda_operators *o = job->o;
	int error;

	m->pins++;
	error = wait_for(job, m, a);
	m->used = ++o->clock;
	if (!error && !is_current(m, a)) {
		error = job->left ? update(job, m, a) : 0;
		if (!error && !is_current(m, a))
			error = -EAGAIN;
	}
	m->pins--;
	if (error)
		return error;
	job->leases[job->n_leases++] = m;
	m->leases++;
	return 0;
}

int pfs_job_mirror(struct pfs_job *job, const struct pfs_array *a)
{
	struct pfs_mirror *m;
	int error;
	PFS_LOCKED(&job->o->lock);

	m = a->id ? find_mirror(job->o, a->id) : NULL;
	if (!m)
		return a->id ? -ENOMEM : 0;
	m->used = ++job->o->clock;
	if (m->busy || m->leases || is_current(m, a))
		return 0;
	if (!job->left)
		return 1;
	m->pins++;
	error = update(job, m, a);
	m->pins--;
	return error ? error : !is_current(m, a);
}

void pfs_job_return_leases(struct pfs_job *job)
{
	PFS_LOCKED(&job->o->lock);

	for (size_t i = 0; i < job->n_leases; i++)
		job->leases[i]->leases--;
	job->n_leases = 0;
	(void)pthread_cond_broadcast(&job->o->changed);
}

int pfs_job_array(struct pfs_job *job, const void **out, struct pfs_mirror **mirror,
		  const struct pfs_array *a)
{
	struct pfs_mirror *m;
	uint8_t *d_memory;

	*out = NULL;
	if (mirror)
		*mirror = NULL;
	if (a->id == 0) {
		PFS_TRY(pfs_job_alloc(job, &d_memory, bytes_of(a, a->n)));
		*out = d_memory;
		return a->n ? copy_piece(job, d_memory, a, 0, bytes_of(a, a->n)) : 0;
	}
	PFS_TRY(pfs_grow(&job->leases, &job->lease_capacity, job->n_leases + 1,
			 sizeof(struct pfs_mirror *)));
	PFS_LOCKED(&job->o->lock);
	m = find_mirror(job->o, a->id);
	if (!m)
		return -ENOMEM;
	PFS_TRY(lease(job, m, a));
	*out = m->d_memory;
	if (mirror)
		*mirror = m;
	return 0;
}
