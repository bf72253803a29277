/* SPDX-License-Identifier: MIT */
/* gpu/engine_impl.h - for implementers: the columns that engine.c keeps, and the tables of
 * functions that a back end fills.
 *
 * Directories have numbers of their own, dense and stable while they live, because everything is
 * computed for directories; number 0 is reserved and means none. Each slot has a `home`: the number
 * of the directory itself or, for any other node, of the directory that it lies in. So a file's bit
 * in a subtree is its home's bit. A slot that is not in use has home 0, whose bit is never set. */
#ifndef PFS_GPU_ENGINE_IMPL_H
#define PFS_GPU_ENGINE_IMPL_H

#include <pthread.h>

#include "gpu/code_index.h"
#include "gpu/engine.h"
#include "gpu/index.h"
#include "gpu/modexact.h"
#include "gpu/relation.h"

#define PFS_ROOT_PRIME	     2u
#define PFS_FIRST_FILE_PRIME (UINT64_C(1) << 32)

/* Codes are kept in tiles of this many rows of one width, limb-major. */
#define PFS_TILE_ROWS  1024u
#define PFS_TILE_WORDS (PFS_TILE_ROWS / 32)

/* The widths of codes, in limbs. A directory's code has the first width that fits. A directory
 * whose code needs more than the last one is deep: its code is kept as its factors, which GMP
 * multiplies when the code is asked for. */
#define PFS_WIDTHS                                                                                 \
	{                                                                                          \
		1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128        \
	}
#define PFS_N_WIDTHS  21
#define PFS_LIMBS_MAX 128

/* Return bounds of the length in bits of a product of different primes; sum: the sum of their
 * rounded logarithms, up to 32 * PFS_LIMBS_MAX or little more. */
PFS_BOTH float pfs_bits_most(float sum)
{
	return sum + 0.01f + sum * 0.0001f;
}

PFS_BOTH float pfs_bits_least(float sum)
{
	return sum - 0.01f - sum * 0.0001f;
}

struct pfs_directory {
	uint32_t parent; /* directory number; 0 at the root */
	uint32_t prime;	 /* the factor that it adds: 1 at the root, whose 2 is not kept in codes */
};

/* The engine's copy of the image's places and primes; the host back end computes on it in place. */
struct pfs_columns {
	uint32_t n_slots, slot_capacity;
	uint32_t *home;				    /* by slot */
	uint64_t *prime;			    /* by slot; 0: not in use */
	uint32_t n_directories, directory_capacity; /* numbers in use, 0 included */
	struct pfs_directory *directories;
	uint32_t *directory_slot; /* PFS_NO_SLOT: number not in use */
	/* By directory: how many slots its subtree has, which are the range from its own slot on;
	 * 0: its subtree is no range any more, nor that of any directory above it. */
	uint32_t *span;
	uint32_t *free_directories;
	size_t n_free, free_capacity;
	uint32_t root; /* directory number */
};

/* The changes since the back end last saw the columns. The lists may have repetitions. */
struct pfs_changes {
	uint32_t *slots; /* slots whose home or prime changed */
	size_t n_slots, slot_capacity;
	uint32_t *directories; /* directories that were made, moved or removed */
	size_t n_directories, directory_capacity;
	bool has_moves; /* a directory moved: the codes of those below it change, too */
	bool everything; /* too much changed: load anew */
};

/* One of the subtrees that are asked for together. */
struct pfs_asked_subtree {
	uint32_t directory;
	struct pfs_divisor divisor; /* of its prime */
	uint64_t mask; /* bit k is set if the directory is, or lies under, the k-th of them */
};

/* Bytes of the heap of names. */
struct pfs_names_piece {
	size_t from, to;
};

/* What a back end that keeps names has to learn of them. */
struct pfs_names_update {
	const struct pfs_names_view *view;
	const struct pfs_names_piece *pieces; /* of the heap, ascending */
	size_t n_pieces;
	const uint32_t *renamed; /* slots whose places have changed, and */
	size_t n_renamed;
	size_t from, to; /* a range of slots */
};

struct pfs_paths_request {
	const struct pfs_columns *columns;
	const struct pfs_names_view *view;
	const uint32_t *slots; /* in the order wanted; each has a node */
	size_t n;
	unsigned flags;
};

struct pfs_backend;
struct pfs_path_listing; /* a back end's listing in progress */

/* What one question, or one update, has of a back end while it runs: scratch memory, and a stream
 * on a device. It is the first member of every back end's job. */
struct pfs_codes_job {
	const struct pfs_engine_ops *ops;
	struct pfs_backend *backend;
};

/* The functions of a back end of codes. Jobs run side by side; but during load, apply,
 * names_reserve and names_update there is no other job. Bitmaps, of 32-bit words, are in the back
 * end's memory. Those passed to questions have words for at least slot_capacity bits, and are
 * overwritten whole. All members are required. After -ENOMEM or -EIO engine.c leaves a device. */
struct pfs_engine_ops {
	const char *name;
	void (*close)(struct pfs_backend *b);
	void (*describe)(struct pfs_backend *b, struct pfs_engine_info *info);

	int (*begin)(struct pfs_backend *b, struct pfs_codes_job **job);
	/* Waits for all that the job has queued. Then other jobs may use what it made. */
	int (*sync)(struct pfs_codes_job *job);
	void (*end)(struct pfs_codes_job *job); /* after sync, which may have failed */

	int (*load)(struct pfs_codes_job *job, const struct pfs_columns *c);
	int (*apply)(struct pfs_codes_job *job, const struct pfs_columns *c,
		     const struct pfs_changes *changes);

	int (*alloc)(struct pfs_codes_job *job, void **memory, size_t size); /* not cleared */
	/* Frees memory. All jobs that used it have been waited for. */
	void (*release)(struct pfs_backend *b, void *memory, size_t size);
	int (*read)(struct pfs_codes_job *job, void *out, const void *memory, size_t offset,
		    size_t size);
	int (*write)(struct pfs_codes_job *job, void *memory, size_t offset, const void *in,
		     size_t size);

	/* Sets of nodes */
	int (*fill)(struct pfs_codes_job *job, uint32_t *bits, size_t words, uint64_t from,
		    uint64_t to);
	int (*set)(struct pfs_codes_job *job, uint32_t *bits, size_t words, const uint32_t *slots,
		   size_t n);
	int (*combine)(struct pfs_codes_job *job, uint32_t *bits, size_t words,
		       const uint32_t *other, size_t other_words, enum pfs_bitmap_op op);
	int (*count)(struct pfs_codes_job *job, uint64_t *count, const uint32_t *bits,
		     size_t words);

	/* Questions */
	int (*subtrees)(struct pfs_codes_job *job, uint32_t *const *bits, size_t words,
			const struct pfs_asked_subtree *subtrees, size_t n);
	/* The directories above the slot. */
	int (*parents)(struct pfs_codes_job *job, uint32_t *bits, size_t words, uint32_t slot);
	/* Lists directories whose prime divides the number (odd), the first `capacity` of them;
	 * they are *n in all. */
	int (*dividing)(struct pfs_codes_job *job, uint32_t *directories, size_t *n,
			size_t capacity, const uint32_t *limbs, size_t n_limbs);
	int (*find_prime)(struct pfs_codes_job *job, uint32_t *slot, uint64_t prime);
	/* Reads the codes of n directories from `first` on: the i-th into n_limbs[i] limbs at
	 * limbs[i * PFS_LIMBS_MAX]; n_limbs[i] 0: it has no code (it is deep, or not in use). */
	int (*codes)(struct pfs_codes_job *job, uint32_t *limbs, uint32_t *n_limbs, uint32_t first,
		     size_t n);

	/* Makes room for a heap of names and for places by slot; what was there is lost. */
	int (*names_reserve)(struct pfs_codes_job *job, size_t heap, size_t places);
	int (*names_update)(struct pfs_codes_job *job, const struct pfs_names_update *update);
	int (*paths_open)(struct pfs_codes_job *job, struct pfs_path_listing **out,
			  const struct pfs_paths_request *request);
	int (*paths_next)(struct pfs_codes_job *job, struct pfs_path_listing *paths,
			  const char **bytes, size_t *size);
	void (*paths_close)(struct pfs_codes_job *job, struct pfs_path_listing *paths);
};

/* First member of every back end. */
struct pfs_backend {
	const struct pfs_engine_ops *ops;
};

PFS_MUST_CHECK int pfs_host_open(struct pfs_backend **out);
/* -ENODEV: built without CUDA, or no device; -EIO: there is one, and it failed; -ENOMEM. */
PFS_MUST_CHECK int pfs_cuda_open(struct pfs_backend **out);

/* For tests: makes the n-th CUDA call from now on fail (0: none). Returns how many calls were left
 * before the one that was to fail until now; 0: it has failed, or none was to fail. */
long pfs_cuda_fail_at(long n);
/* For tests: returns the bytes of device memory that were not freed when operators were closed,
 * over all operators that have been. */
uint64_t pfs_cuda_bytes_left(void);

/* Makes an engine over this back end, which it then owns (tests: one that fails at will). */
PFS_MUST_CHECK int pfs_engine_open_backend(struct pfs_engine **out, struct pfs_backend *backend,
					   bool is_device);

/* ---- the relational operators: families of functions ----
 *
 * A back end has a table of families. If a family is NULL, or a function returns -EOPNOTSUPP, or a
 * device -ENOMEM or -EIO, gpu/relation.c has the host's back end, which has all families, run the
 * operator. gpu/relation.c has also checked the arguments. Any number of threads call the functions
 * at once. Results may be on the device; the back end that made one fetches and releases it.
 * Sources are in the host's memory or on this back end's device. */

struct pfs_select_family {
	int (*select)(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_rows **out, const struct pfs_source *source,
		      const struct pfs_program *program);
	int (*count_rows)(struct pfs_operator_backend *b, const struct pfs_run *run,
			  uint64_t *count, const struct pfs_rows *rows);
	/* Fetches the set into the host's memory. */
	int (*fetch)(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_rows *rows);
	/* Frees rows->device. */
	void (*release)(struct pfs_operator_backend *b, const struct pfs_run *run,
			struct pfs_rows *rows);
};

struct pfs_window; /* gpu/window.h */

struct pfs_sort_family {
	int (*sort)(struct pfs_operator_backend *b, const struct pfs_run *run,
		    struct pfs_tuples **out, const struct pfs_source *source,
		    const struct pfs_sort_key *keys, size_t n_keys, uint64_t offset,
		    uint64_t limit);
	/* As pfs_window; NULL: the host's. */
	int (*window)(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_tuples **out, const struct pfs_source *source,
		      const struct pfs_window *window);
	/* Sets index->rows, or index->device, and index->n; the other members are set before. */
	int (*index)(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_column_index *index, const struct pfs_source *source);
	int (*fetch)(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_column_index *index);
	void (*release)(struct pfs_operator_backend *b, const struct pfs_run *run,
			struct pfs_column_index *index);
};

struct pfs_group_family {
	int (*group)(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_tuples **out, const struct pfs_source *source,
		     const struct pfs_group_key *keys, size_t n_keys,
		     const struct pfs_aggregate *aggregates, size_t n_aggregates);
};

struct pfs_join_family {
	int (*join)(struct pfs_operator_backend *b, const struct pfs_run *run,
		    struct pfs_tuples **out, const struct pfs_source *left,
		    const struct pfs_source *right, const struct pfs_join *join);
	int (*merge)(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_tuples **out, const struct pfs_index_fragment *left,
		     const struct pfs_index_fragment *right);
	/* As pfs_partners; NULL: the host's. */
	int (*partners)(struct pfs_operator_backend *b, const struct pfs_run *run,
			struct pfs_rows **out, const struct pfs_source *left,
			const struct pfs_source *right, const struct pfs_join_key *key);
};

/* Batches: reading them, and what is computed tuple by tuple. */
struct pfs_gather_family {
	int (*gather)(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_vector *out, const struct pfs_source *source,
		      struct pfs_ref ref); /* into the host's memory */
	int (*compute)(struct pfs_operator_backend *b, const struct pfs_run *run,
		       struct pfs_tuples **out, const struct pfs_source *source,
		       const struct pfs_program *programs, size_t n_programs,
		       bool alone); /* as pfs_project; else as pfs_compute */
	int (*filter)(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_tuples **out, const struct pfs_source *source,
		      const struct pfs_program *program);
	int (*fetch)(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_tuples *tuples);
	void (*release)(struct pfs_operator_backend *b, const struct pfs_run *run,
			struct pfs_tuples *tuples);
	/* As pfs_table_mirror; NULL: the back end reads the owner's arrays. */
	int (*mirror)(struct pfs_operator_backend *b, const struct pfs_run *run,
		      const struct pfs_table *table, size_t size);
};

struct pfs_index_tree; /* a back end's B+-tree; gpu/index.c has it locked */

struct pfs_index_query { /* of pfs_index_find */
	uint64_t *found_keys; /* or NULL */
	void *values; /* as wide as the family's */
	const uint64_t *keys;
	size_t n;
	enum pfs_index_question question;
};

struct pfs_index_change { /* of pfs_index_insert and pfs_index_remove */
	const uint64_t *keys;
	const void *values; /* NULL: removals of keys */
	size_t n;
	enum pfs_index_policy policy;
};

/* The functions do what gpu/index.h says. If insert or remove fails with anything but -EIO, the
 * tree is as it was. */
struct pfs_index_family {
	int (*build)(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_index_tree **out, const struct pfs_index_shape *shape,
		     const uint64_t *keys, const void *values, size_t n);
	void (*close)(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_index_tree *tree);
	int (*find)(struct pfs_operator_backend *b, const struct pfs_run *run,
		    const struct pfs_index_tree *tree, const struct pfs_index_query *query);
	int (*range)(struct pfs_operator_backend *b, const struct pfs_run *run,
		     const struct pfs_index_tree *tree, struct pfs_index_list *out, uint64_t first,
		     uint64_t last);
	/* NULL: there are no cursors. */
	int (*read)(struct pfs_operator_backend *b, const struct pfs_run *run,
		    const struct pfs_index_tree *tree, struct pfs_index_cursor *cursor,
		    struct pfs_index_list *out, enum pfs_index_direction direction);
	int (*insert)(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_index_tree *tree, uint64_t *n_added,
		      const struct pfs_index_change *change);
	int (*remove)(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_index_tree *tree, uint64_t *n_removed,
		      const struct pfs_index_change *change);
	void (*describe)(const struct pfs_index_tree *tree, struct pfs_index_info *info);
	int (*verify)(struct pfs_operator_backend *b, const struct pfs_run *run,
		      const struct pfs_index_tree *tree);
};

/* Makes a list for n entries. -ENOMEM. */
PFS_MUST_CHECK int pfs_index_list_make(const struct pfs_run *run, struct pfs_index_list *list,
				       size_t n, bool is_wide);

struct pfs_prefix_family; /* gpu/prefix_impl.h */

struct pfs_families {
	const char *name;
	void (*close)(struct pfs_operator_backend *b);
	const struct pfs_select_family *select;
	const struct pfs_sort_family *sort;
	const struct pfs_group_family *group;
	const struct pfs_join_family *join;
	const struct pfs_gather_family *gather;
	const struct pfs_index_family *index, *wide_index;
	/* A device's family; NULL: prefix trees stay on the host, which needs none
	 * (gpu/prefix_impl.h). */
	const struct pfs_prefix_family *prefix;
};

/* The first member of every back end of the relational operators. */
struct pfs_operator_backend {
	const struct pfs_families *families;
};

/* ---- tuples.c: for back ends ---- */

/* Replaces a batch by what the host's sort makes of it, where a device has only left out what comes
 * later. */
PFS_MUST_CHECK int pfs_sort_here(const struct pfs_run *run, struct pfs_tuples **tuples,
				 const struct pfs_sort_key *keys, size_t n_keys, uint64_t offset,
				 uint64_t limit);

/* Brings those columns of the table that are vectors of batches to where b reads them; NULL: the
 * host. */
PFS_MUST_CHECK int pfs_table_bring(const struct pfs_run *run, const struct pfs_operator_backend *b,
				   const struct pfs_table *table);

/* Makes a batch of n tuples without rows and values. The caller allocates these with pfs_run_alloc:
 * rows for n tuples, and the data and bits of vectors. */
PFS_MUST_CHECK int pfs_tuples_make(const struct pfs_run *run, struct pfs_tuples **out, uint64_t n,
				   size_t n_tables, size_t n_computed);

/* Return how many tables, and how many computed vectors, the source has. */
size_t pfs_source_tables(const struct pfs_source *source);
size_t pfs_source_computed(const struct pfs_source *source);

/* Opens the host's back end; pool as for pfs_operators_open_on. */
PFS_MUST_CHECK int pfs_host_operators_open(struct pfs_operator_backend **out,
					   struct pfs_pool *pool);

struct pfs_operators {
	struct pfs_operator_backend *host;
	pthread_mutex_t starting;	     /* held by the thread that starts the device */
	struct pfs_operator_backend *device; /* NULL until started; then never changes */
	struct pfs_operator_counts counts;
	struct pfs_pool *own_pool; /* NULL: the threads are the caller's */
};

/* The next two return the back ends of the operators; the device's is NULL until it is started.
 * They are here because a device's back end, which relation.c opens, asks the host's. */
static inline struct pfs_operator_backend *pfs_operators_host(const struct pfs_operators *o)
{
	return o->host;
}

static inline struct pfs_operator_backend *pfs_operators_device(const struct pfs_operators *o)
{
	return __atomic_load_n(&o->device, __ATOMIC_ACQUIRE);
}

/* -ENODEV: built without CUDA, or no device. */
PFS_MUST_CHECK int pfs_cuda_operators_open(struct pfs_operator_backend **out);

struct pfs_engine {
	/* Held for reading by questions; for writing where the columns change, the back end takes
	 * the changes over, or is left. It protects everything below. */
	pthread_rwlock_t lock;
	struct pfs_backend *backend;
	struct pfs_backend *failed; /* the device that was left; closed with the engine */
	bool is_degraded;	    /* a device failed, when it was opened or since */
	bool is_device;
	bool device_only; /* a device was asked for, so the host's tables are not used */
	bool use_ranges;
	bool stale;	/* the back end must load anew */
	uint64_t epoch; /* raised by every change of the columns */
	struct pfs_columns columns;
	struct pfs_changes changes;
	/* What the back end knows of names, as they were at names_clock: the first names_size bytes
	 * of the heap, and the places of the first places_sent slots. */
	uint64_t names_generation, names_clock; /* of struct pfs_names_view */
	size_t names_size, places_sent;
	size_t names_room, places_room; /* bytes and slots that it has room for */
	bool names_anew;		/* it knows nothing */
	uint32_t *renamed;		/* slots whose places have changed since */
	size_t n_renamed, renamed_capacity;
	struct pfs_code_index codes;
};

struct pfs_bitmap {
	struct pfs_engine *engine;
	/* The set is the range from..to of slots, without words; or words in the back end's
	 * memory. */
	bool is_range;
	uint64_t from, to;
	struct pfs_backend *backend;
	uint32_t *bits;
	size_t words;
};

/* ---- columns.c ---- */

/* Fills the columns with n slots; parent and prime are by slot, and stay the caller's. Errors as of
 * pfs_engine_load; the columns are empty then. */
PFS_MUST_CHECK int pfs_columns_load(struct pfs_columns *c, const uint32_t *parent,
				    const uint64_t *prime, size_t n);
/* Makes one change, and notes it in `changes`. -EINVAL as of pfs_engine_apply: nothing has changed;
 * -ENOMEM: the change may have been made without being noted. */
PFS_MUST_CHECK int pfs_columns_apply(struct pfs_columns *c, struct pfs_changes *changes,
				     const struct pfs_delta *delta);
void pfs_columns_free(struct pfs_columns *c);
void pfs_changes_clear(struct pfs_changes *changes); /* forgets the changes, and keeps the memory */
void pfs_changes_free(struct pfs_changes *changes);

/* Returns true if the slot has a node. */
static inline bool pfs_slot_live(const struct pfs_columns *c, uint32_t slot)
{
	return slot < c->n_slots && c->prime[slot] != 0;
}

/* Returns true if the slot, which has a node, is a directory's. */
static inline bool pfs_slot_is_directory(const struct pfs_columns *c, uint32_t slot)
{
	return c->directory_slot[c->home[slot]] == slot;
}

/* Returns the directory that the node lies in; 0 for the root. */
static inline uint32_t pfs_slot_parent(const struct pfs_columns *c, uint32_t slot)
{
	uint32_t home = c->home[slot];

	return c->directory_slot[home] == slot ? c->directories[home].parent : home;
}

/* ---- engine.c ---- */

/* A question in progress, which is asked in a loop:
 *
 *	do {
 *		error = pfs_asking_begin(&asking);
 *		error = error ? error : ...
 *	} while (!pfs_asking_end(&asking, &error)); */
struct pfs_asking {
	struct pfs_engine *engine;
	const struct pfs_names_view *names; /* that the back end has to know; or NULL */
	bool is_alone;			    /* the lock is held for writing */
	/* what begin sets */
	bool is_held; /* the engine's lock */
	struct pfs_codes_job *job;
};
/* Begins a question, with the engine's lock: the back end is up to date, and has a job for it. */
PFS_MUST_CHECK int pfs_asking_begin(struct pfs_asking *asking);
/* Waits for what was queued, ends the question with this error, and changes that if more went
 * wrong. Returns false if the question must be repeated, because the device was left or others had
 * its memory. */
PFS_MUST_CHECK bool pfs_asking_end(struct pfs_asking *asking, int *error);

/* Waits for what the job has queued, and ends it. Returns `error`, or what went wrong meanwhile. */
PFS_MUST_CHECK int pfs_codes_job_end(struct pfs_codes_job *job, int error);
/* Called with an error of a back end, with the lock held for writing. Returns true if the device
 * was left for it, so that the call must be repeated on the host's back end. */
bool pfs_engine_leave_device(struct pfs_engine *e, int error);

/* ---- listing.c ---- */

/* Returns true if the back end has all names of the view as they are now. The lock is held. */
bool pfs_engine_knows_names(const struct pfs_engine *e, const struct pfs_names_view *view);
/* As pfs_engine_send_names, with the lock held for writing. */
PFS_MUST_CHECK int pfs_engine_send_some(struct pfs_engine *e, const struct pfs_names_view *view,
					size_t most);

/* ---- bitmap.c; a question is in progress ---- */

/* Returns how many 32-bit words a bitmap of all slots has: whole tiles. */
size_t pfs_engine_words(const struct pfs_engine *e);
/* Makes an empty set, which the caller frees with pfs_bitmap_free. -ENOMEM. */
PFS_MUST_CHECK int pfs_bitmap_new(const struct pfs_asking *asking, struct pfs_bitmap **out);

/* ---- names ---- */

/* Returns the name of a slot: its length in one byte, and then its bytes. */
static inline const uint8_t *pfs_name_of(const struct pfs_names_view *view, uint32_t slot)
{
	return view->heap + ((uint64_t)view->place[slot] << view->place_shift);
}

#endif
