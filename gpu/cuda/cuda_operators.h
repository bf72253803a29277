/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_operators.h - the CUDA back end of the relational operators: its device memory, the
 * mirrored arrays, and the *job*, which is one operator's work from its first kernel to its last.
 *
 * A job has a stream of its own; jobs of several threads run side by side.  All device memory of a
 * query comes from a stream-ordered pool.  When a job has ended everything that it queued is done,
 * so its results may be used by any other job.
 *
 * Lock: o->lock guards the streams and the mirrors; no kernel or copy is waited for under it.
 * Nothing is locked under o->staging_lock. */
#ifndef PFS_GPU_CUDA_CUDA_OPERATORS_H
#define PFS_GPU_CUDA_CUDA_OPERATORS_H

#include <pthread.h>

#include "gpu/cuda/cuda_check.h"
#include "gpu/cuda/relation_kernels.h"
#include "gpu/engine_impl.h"

#define PFS_JOB_STREAMS 16u
#define PFS_JOB_WINDOW	256u /* bytes of the host's memory that a job's kernels may write to */

/* A copy, in device memory, of an array that somebody else owns. */
struct pfs_mirror {
	struct pfs_mirror *next;
	uint64_t id;
	uint8_t *d_memory;
	size_t size;	 /* bytes allocated */
	size_t held;	 /* bytes that are a copy */
	uint64_t *epoch; /* of each block, as it was copied */
	size_t n_blocks;
	uint64_t compared; /* the clock of the stamps when they were last found to be the same */
	unsigned leases; /* jobs that read it */
	unsigned pins;	 /* jobs that look at it, so that it stays in the list */
	bool busy;	 /* a job changes it */
	uint64_t used;	 /* the clock when it was last asked for */
	bool has_bounds; /* the bounds are those of what it held then */
	struct pfs_device_bounds bounds;
};

struct pfs_cuda_operators {
	struct pfs_operator_backend base;
	cudaMemPool_t pool;
	size_t mirror_limit; /* bytes */
	void *windows;	     /* pinned, PFS_JOB_STREAMS of them; NULL: they could not be had */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a mirror is not busy any more, or has a lease less */
	/* protected by lock */
	cudaStream_t idle[PFS_JOB_STREAMS];
	unsigned n_idle;
	uint32_t windows_taken; /* a bit each */
	struct pfs_mirror *mirrors;
	size_t mirrored;
	uint64_t clock;
	int64_t failed_at;	      /* monotonic seconds; 0: the device is well */
	struct pfs_codes_copy *codes; /* cuda_texts.c */
	pthread_mutex_t staging_lock; /* held while a job copies; it may wait for the device */
	/* protected by staging_lock */
	struct pfs_staging *staging; /* cuda_staging.c; NULL until first wanted */
	bool no_staging;	     /* it could not be had */
};

struct pfs_job {
	struct pfs_cuda_operators *o;
	const struct pfs_run *run;
	cudaStream_t stream;
	void *window;	    /* pinned, PFS_JOB_WINDOW bytes; NULL: others have them all */
	void **d_temporary; /* freed at the end */
	size_t n_temporary, temporary_capacity;
	struct pfs_mirror **leases;
	size_t n_leases, lease_capacity;
	size_t left;	 /* bytes that it may yet copy into mirrors, at least a block each time */
	bool is_hurried; /* it never waits for other jobs' copies and leases */
	bool is_idle;	 /* all that was queued has been waited for: the job's end need not */
};

/* Holds what of a batch lies on the device, by table and by computed vector. */
struct pfs_device_tuples {
	uint32_t **d_rows; /* NULL: tables[i].from + place */
	void **d_data;
	uint32_t **d_nulls; /* NULL: none is NULL */
	void **d_owned;	    /* the memory that these lie in */
	size_t n_owned;
};

struct pfs_device_index {
	uint32_t *d_rows;
	uint64_t *d_keys; /* ascending */
	/* Where most keys repeat, each once, and where its entries start, with n behind the last;
	 * else NULL. */
	uint64_t *d_run_keys;
	uint32_t *d_run_starts;
	uint64_t n_runs;
};

static inline struct pfs_cuda_operators *pfs_cuda_operators_of(struct pfs_operator_backend *b)
{
	return (struct pfs_cuda_operators *)b; /* its first member */
}

/* ---- cuda_operators.c ---- */

/* Begins a job, which is to be ended whatever this returns. -EOPNOTSUPP: the device failed a moment
 * ago. */
PFS_MUST_CHECK int pfs_job_begin(struct pfs_job *job, struct pfs_operator_backend *b,
				 const struct pfs_run *run);
/* Waits for all that was queued, and ends the job. Returns `error`, or what went wrong
 * meanwhile. */
PFS_MUST_CHECK int pfs_job_end(struct pfs_job *job, int error);
/* For benchmarks: does it n times, and twice before to warm up. Sets seconds[0..n) to how long what
 * it queued took on the device. */
PFS_MUST_CHECK int pfs_job_time(struct pfs_job *job, double *seconds, unsigned n,
				int (*once)(struct pfs_job *job, void *context), void *context);
/* Sets *out to `size` bytes of device memory (a few more may be read), the job's until its end.
 * -ENOMEM, -EIO. */
PFS_MUST_CHECK int pfs_job_alloc(struct pfs_job *job, void *out, size_t size);
PFS_MUST_CHECK int pfs_job_alloc_zero(struct pfs_job *job, void *out, size_t size);
/* Frees the job's memory beyond the first n (job->n_temporary as it was), behind what is queued. */
void pfs_job_free_since(struct pfs_job *job, size_t n);
/* Makes memory outlive the job; whoever has it frees it by pfs_device_give. False: it is none that
 * the job would free. */
bool pfs_job_keep(struct pfs_job *job, const void *d_memory);
/* Takes over memory that outlived another job; it is freed at the end of this one. */
void pfs_job_adopt(struct pfs_job *job, void *d_memory);
void pfs_device_give(struct pfs_cuda_operators *o, void *d_memory);
PFS_MUST_CHECK int pfs_job_upload(struct pfs_job *job, void *out, const void *from, size_t size);
/* Waits for it. */
PFS_MUST_CHECK int pfs_job_download(struct pfs_job *job, void *to, const void *d_from, size_t size);
/* Makes an empty table with room for so many different numbers. -EOPNOTSUPP: it would have more
 * than `most` places. */
PFS_MUST_CHECK int pfs_job_table(struct pfs_job *job, struct pfs_device_table *table,
				 uint64_t numbers, uint64_t most);
/* Waits for what fills the table. -EOPNOTSUPP: it has refused, so that only the host can answer. A
 * table of capacity 0 never does. */
PFS_MUST_CHECK int pfs_job_table_check(struct pfs_job *job, const struct pfs_device_table *table);

/* ---- cuda_staging.c ---- */

/* Copies `size` bytes of the host, which may change when it returns. */
PFS_MUST_CHECK int pfs_job_copy(struct pfs_job *job, void *d_to, const void *from, size_t size);
void pfs_staging_close(struct pfs_cuda_operators *o);

/* ---- cuda_mirror.c ---- */

/* An owner's array of n elements of element_bits bits, whose changes are noted by stamps. Stamps
 * NULL: with id 0 it is copied for this job alone; with another id it only grows at its end. */
struct pfs_array {
	uint64_t id;
	const void *data;
	uint64_t n;
	unsigned element_bits;
	const struct pfs_stamps *stamps;
	/* In place of data: writes 64-bit words of it (element_bits is 1). */
	void (*fill)(void *context, uint64_t *words, size_t first, size_t n);
	void *context;
};

/* Sets *out to the array on the device, as it is now, until the job's end; and *mirror, if asked
 * for, to its mirror, or NULL. -EOPNOTSUPP: others read an older state of it and do not end; a
 * hurried job: or copy it. -EAGAIN: there is more than the job may copy. */
PFS_MUST_CHECK int pfs_job_array(struct pfs_job *job, const void **out, struct pfs_mirror **mirror,
				 const struct pfs_array *array);
/* Copies as much of what has changed of the array as the job may, without a lease. Returns 1 if
 * there is more; 0 if not, if the array has no id, or if others use its copy. */
PFS_MUST_CHECK int pfs_job_mirror(struct pfs_job *job, const struct pfs_array *array);
void pfs_job_return_leases(struct pfs_job *job);
/* Frees the copy of an array that nobody asks for again, unless somebody reads it. */
void pfs_mirror_forget(struct pfs_cuda_operators *o, uint64_t id);
void pfs_mirrors_drop_all(struct pfs_cuda_operators *o);

/* ---- cuda_source.c ---- */

/* Tells which places the source has, and how many at most. -EOPNOTSUPP: only the host can do
 * that. */
PFS_MUST_CHECK int pfs_job_places(struct pfs_job *job, struct pfs_device_places *places,
				  const struct pfs_source *source);
/* Lists all places, ascending; *n is how many. *d_list is NULL where they are just from..to. */
PFS_MUST_CHECK int pfs_job_list(struct pfs_job *job, uint32_t **d_list, uint64_t *n,
				const struct pfs_device_places *places);
/* Sets *value to how a reference's value at each place is had, and *kind. */
PFS_MUST_CHECK int pfs_job_value(struct pfs_job *job, struct pfs_device_value *value,
				 enum pfs_kind *kind, const struct pfs_source *source,
				 struct pfs_ref ref);
/* Gets the least and the most that the referenced column or vector holds, whatever the places. */
PFS_MUST_CHECK int pfs_job_bounds(struct pfs_job *job, struct pfs_device_bounds *bounds,
				  const struct pfs_source *source, struct pfs_ref ref,
				  const struct pfs_device_value *value);
/* Returns true if a value may be NULL. */
bool pfs_value_can_be_null(const struct pfs_device_value *value);
const struct pfs_table_column *pfs_source_column(const struct pfs_source *source,
						 struct pfs_ref ref);
/* Returns the dictionary of a reference, or NULL. */
const struct pfs_dictionary *pfs_source_dictionary(const struct pfs_source *source,
						   struct pfs_ref ref);

/* Makes a batch on the device: n tuples, whose tables and vectors pfs_job_put fills. */
PFS_MUST_CHECK int pfs_device_tuples_make(struct pfs_job *job, struct pfs_tuples **out, uint64_t n,
					  size_t n_tables, size_t n_computed);
/* Makes the job's memory the batch's, which frees it. Memory that lies in some that the batch has
 * already may be given, too. */
void pfs_device_tuples_own(struct pfs_job *job, struct pfs_tuples *tuples, void *d_memory);
/* Puts the source's tables and vectors at these places into the batch, from its tables first_table
 * and vectors first_computed on.  `adopt`: the places, the job's memory, may become the batch's. */
PFS_MUST_CHECK int pfs_job_put(struct pfs_job *job, struct pfs_tuples *tuples, size_t first_table,
			       size_t first_computed, const struct pfs_source *source,
			       uint32_t *d_places, bool adopt);
/* ---- cuda_keys.c ---- */

/* Makes combinations of references' values numbers below *limit, which is the stride of what would
 * come next. -EOPNOTSUPP: they are too many, or no numbers. */
struct pfs_key_refs {
	const struct pfs_source *source;
	const struct pfs_ref *refs;
	const enum pfs_collation *collations;
	size_t n;
	/* NULL: numbers follow from the values, so that they may be compared with those of another
	 * source. Else they only differ where values of these places do. */
	const struct pfs_device_places *places;
};
PFS_MUST_CHECK int pfs_job_keys(struct pfs_job *job, struct pfs_device_keys *keys, uint64_t *limit,
				const struct pfs_key_refs *refs);

/* ---- cuda_predicate.c ---- */

/* Makes a program tests on the device, which read what is there until the job's end; NULL is a
 * program of 0 steps. -EOPNOTSUPP: only the host can test that. */
PFS_MUST_CHECK int pfs_job_predicate(struct pfs_job *job, struct pfs_device_program *out,
				     const struct pfs_source *source,
				     const struct pfs_program *program);

/* ---- cuda_texts.c ---- */

/* The next four set *d_map to an array by code, which the host makes once for as long as the
 * dictionaries are not appended to; it is on the device until the job's end. -ENOMEM; what run's
 * functions say. */

/* Gives for each code of `from` the first code of `to` that is equal by the collation, or all
 * ones. */
PFS_MUST_CHECK int pfs_job_translate(struct pfs_job *job, const uint32_t **d_map,
				     const struct pfs_dictionary *from,
				     const struct pfs_dictionary *to, enum pfs_collation collation);
/* Gives for each code the first one that is equal by the collation; NULL: each is itself. */
PFS_MUST_CHECK int pfs_job_fold(struct pfs_job *job, const uint32_t **d_map,
				const struct pfs_dictionary *dictionary,
				enum pfs_collation collation);
/* Gives for each code its place in the collation's order; codes that are equal have the same. */
PFS_MUST_CHECK int pfs_job_rank(struct pfs_job *job, const uint32_t **d_rank,
				const struct pfs_dictionary *dictionary,
				enum pfs_collation collation);
/* Gives the code at each place of the order by bytes. */
PFS_MUST_CHECK int pfs_job_order(struct pfs_job *job, const uint32_t **d_codes,
				 const struct pfs_dictionary *dictionary);
void pfs_codes_drop_all(struct pfs_cuda_operators *o);

/* Has the heap on the device until the job's end. */
PFS_MUST_CHECK int pfs_job_heap(struct pfs_job *job, struct pfs_device_heap *out,
				const struct pfs_heap *heap);
/* Replaces places of the heap by numbers below places->to that are equal where the texts are, by
 * the collation, and all ones for NULL. */
PFS_MUST_CHECK int pfs_job_number_texts(struct pfs_job *job, struct pfs_device_value *value,
					const struct pfs_heap *heap, enum pfs_collation collation,
					const struct pfs_device_places *places);

/* cuda_compute.c: of the family of gather. */
PFS_MUST_CHECK int pfs_cuda_compute(struct pfs_operator_backend *b, const struct pfs_run *run,
				    struct pfs_tuples **out, const struct pfs_source *source,
				    const struct pfs_program *programs, size_t n_programs,
				    bool alone);
PFS_MUST_CHECK int pfs_cuda_filter(struct pfs_operator_backend *b, const struct pfs_run *run,
				   struct pfs_tuples **out, const struct pfs_source *source,
				   const struct pfs_program *program);

extern const struct pfs_select_family pfs_cuda_select_family; /* cuda_select.c */
extern const struct pfs_group_family pfs_cuda_group_family;   /* cuda_group.c */
extern const struct pfs_sort_family pfs_cuda_sort_family;     /* cuda_sort.c */
extern const struct pfs_join_family pfs_cuda_join_family;     /* cuda_join.c */
extern const struct pfs_gather_family pfs_cuda_gather_family; /* cuda_source.c */
extern const struct pfs_index_family pfs_cuda_index_family;   /* cuda_index.c; */
extern const struct pfs_index_family
	pfs_cuda_wide_index_family;			      /* once more, for values of 64 bits */
extern const struct pfs_prefix_family pfs_cuda_prefix_family; /* cuda_prefix.c */

#endif
