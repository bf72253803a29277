/* SPDX-License-Identifier: MIT */
/* gpu/cuda/kernels.h - launch wrappers for codes and sets of nodes. Each queues its kernels on the
 * stream, neither allocates nor waits, and returns 0 or -EIO. d_ marks device memory. Bitmaps have
 * whole tiles (32 words). */
#ifndef PFS_GPU_CUDA_KERNELS_H
#define PFS_GPU_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#define PFS_CUDA_WIDTHS	    24 /* PFS_N_WIDTHS and room */
#define PFS_CUDA_DEEP	    22 /* in place of a width: kept as factors */
#define PFS_CUDA_UNUSED	    23 /* the number is not in use */
#define PFS_CUDA_PREDICATES 64
#define PFS_CUDA_FAST_LIMBS 16

struct pfs_cuda_directory {
	uint32_t parent, prime;
};

/* 1,024 rows: limb l of row r at pool[(at + l) * 1024 + r]. */
struct pfs_cuda_tile {
	uint32_t at, n_limbs;
};

struct pfs_cuda_counters {
	uint32_t rows_needed[PFS_CUDA_WIDTHS]; /* [PFS_CUDA_DEEP]: how many are deep */
	uint32_t cursor[PFS_CUDA_WIDTHS];
	uint32_t n_lost, n_deep;
	uint64_t count; /* of whatever was counted */
};

/* The directories and where their codes are. */
struct pfs_cuda_codes {
	const struct pfs_cuda_directory *d_directories;
	const uint32_t *d_directory_slot;
	uint32_t n;
	uint32_t *d_row_of; /* tile * 1024 + row; 0: none */
	uint8_t *d_width;   /* index into PFS_WIDTHS, or the two above */
	struct pfs_cuda_tile *d_tiles;
	uint32_t *d_pool;
	struct pfs_cuda_counters *d_counters;
};

/* Says where the i-th new row of a width goes: into the open tile while it lasts, then into new
 * ones. */
struct pfs_cuda_rows {
	uint32_t n_open[PFS_CUDA_WIDTHS], open[PFS_CUDA_WIDTHS], fresh[PFS_CUDA_WIDTHS];
};

struct pfs_cuda_divisors {
	uint32_t p[PFS_CUDA_PREDICATES], inverse[PFS_CUDA_PREDICATES];
	/* powers[k][l] = 2^(32 l) mod p: codes of up to max_limbs are tested by these; see
	 * codes.cu. */
	uint32_t max_limbs[PFS_CUDA_PREDICATES];
	uint32_t powers[PFS_CUDA_PREDICATES][PFS_CUDA_FAST_LIMBS];
	uint32_t n;
};

struct pfs_cuda_bitmaps {
	uint32_t *d_bits[PFS_CUDA_PREDICATES];
};

#ifdef __cplusplus
extern "C" {
#endif

/* ---- codes.cu; d_concerned: bits by directory number, NULL: all ---- */

/* Sets the widths, drops rows that do not fit any more, and counts the rows that are needed. */
int pfs_cuda_codes_widths(const struct pfs_cuda_codes *c, const uint32_t *d_concerned,
			  cudaStream_t stream);
/* Writes tile descriptors: n tiles from `first` on, of n_limbs each, the first at pool row `at`. */
int pfs_cuda_codes_tiles(struct pfs_cuda_tile *d_tiles, uint32_t first, uint32_t n, uint32_t at,
			 uint32_t n_limbs, cudaStream_t stream);
/* Gives rows to directories without one, and multiplies their codes out. */
int pfs_cuda_codes_write(const struct pfs_cuda_codes *c, const uint32_t *d_concerned,
			 const struct pfs_cuda_rows *rows, cudaStream_t stream);
/* Lists the deep directories in d_deep; they are counters.n_deep. */
int pfs_cuda_codes_deep(const struct pfs_cuda_codes *c, uint32_t *d_deep, cudaStream_t stream);
int pfs_cuda_codes_read(const struct pfs_cuda_codes *c, uint32_t *d_limbs, uint32_t *d_n_limbs,
			uint32_t first, uint32_t n, cudaStream_t stream);

/* ---- scan.cu ---- */

/* Sets the bit of each row whose code the prime divides. */
int pfs_cuda_scan(const struct pfs_cuda_tile *d_tiles, uint32_t n_tiles, const uint32_t *d_pool,
		  uint32_t p, uint32_t inverse, uint32_t *d_row_bits, cudaStream_t stream);
/* Sets bit k of d_row_masks[row] if the row's code is divided by divisor k. wide: there are codes
 * of more than eight limbs. */
int pfs_cuda_scan_many(const struct pfs_cuda_tile *d_tiles, uint32_t n_tiles,
		       const uint32_t *d_pool, const struct pfs_cuda_divisors *divisors,
		       uint64_t *d_row_masks, int wide, cudaStream_t stream);
/* Bit i of d_bits = bit d_index[i] of d_table, for n, a multiple of 1,024. */
int pfs_cuda_gather_bits(uint32_t *d_bits, const uint32_t *d_index, size_t n,
			 const uint32_t *d_table, cudaStream_t stream);
/* bitmaps[k] = bits k of d_table[d_index[i]]. */
int pfs_cuda_spread_masks(const struct pfs_cuda_bitmaps *bitmaps, uint32_t n_bitmaps,
			  const uint32_t *d_index, size_t n, const uint64_t *d_table,
			  cudaStream_t stream);
/* Sets the deep directories' bits from that of the first directory above that has a code. */
int pfs_cuda_deep_bits(const struct pfs_cuda_codes *c, const uint32_t *d_deep, uint32_t n_deep,
		       uint32_t p, uint32_t *d_bits, cudaStream_t stream);

/* ---- sets.cu ---- */

int pfs_cuda_fill(uint32_t *d_bits, size_t words, uint64_t from, uint64_t to, cudaStream_t stream);
int pfs_cuda_set_bits(uint32_t *d_bits, const uint32_t *d_list, size_t n, cudaStream_t stream);
int pfs_cuda_combine(uint32_t *d_bits, size_t words, const uint32_t *d_other, size_t other_words,
		     int op, cudaStream_t stream);
int pfs_cuda_count(const uint32_t *d_bits, size_t words, uint64_t *d_count, cudaStream_t stream);

struct pfs_cuda_tree {
	const uint32_t *d_home;
	const uint64_t *d_prime;
	uint32_t n_slots;
	const struct pfs_cuda_directory *d_directories;
	const uint32_t *d_directory_slot;
	uint32_t n_directories;
};

/* d_target[list[i]] = values[i], for columns of 32 and 64 bits. */
int pfs_cuda_scatter32(uint32_t *d_target, const uint32_t *d_list, const uint32_t *d_values,
		       size_t n, cudaStream_t stream);
int pfs_cuda_scatter64(uint64_t *d_target, const uint32_t *d_list, const uint64_t *d_values,
		       size_t n, cudaStream_t stream);

/* ---- tree.cu ---- */

/* Sets the bits of the directories above the slot. */
int pfs_cuda_parents(const struct pfs_cuda_tree *t, uint32_t *d_bits, uint32_t slot,
		     cudaStream_t stream);
/* d_bits, by directory number: sets the bits of all directories that lie under one whose bit is
 * set. */
int pfs_cuda_mark_below(const struct pfs_cuda_tree *t, uint32_t *d_bits, cudaStream_t stream);
/* d_masks, by directory number: a directory whose mask is 0 gets that of the first one above whose
 * mask is not. */
int pfs_cuda_masks_below(const struct pfs_cuda_tree *t, uint64_t *d_masks, cudaStream_t stream);
int pfs_cuda_dividing(const struct pfs_cuda_tree *t, uint32_t *d_found, size_t capacity,
		      uint64_t *d_count, const uint32_t *d_limbs, size_t n_limbs,
		      cudaStream_t stream);
/* *d_count = slot + 1, if there is one. */
int pfs_cuda_find_prime(const struct pfs_cuda_tree *t, uint64_t prime, uint64_t *d_count,
			cudaStream_t stream);

/* ---- paths.cu ---- */

struct pfs_cuda_names {
	const uint8_t *d_heap;
	const uint32_t *d_place; /* by slot */
	unsigned shift;
	uint32_t root;					  /* directory number */
	uint32_t *d_directory_place, *d_directory_length; /* by number: name; bytes of the path */
	unsigned flags;
};

int pfs_cuda_directory_paths(const struct pfs_cuda_tree *t, const struct pfs_cuda_names *names,
			     cudaStream_t stream);
/* d_ends[i] = end of line i in the whole text; *d_longest: its length. */
size_t pfs_cuda_path_scratch(size_t n);
int pfs_cuda_path_ends(const struct pfs_cuda_tree *t, const struct pfs_cuda_names *names,
		       uint64_t *d_ends, uint64_t *d_longest, const uint32_t *d_slots, size_t n,
		       void *d_scratch, size_t scratch_size, cudaStream_t stream);
/* Cuts: d_cuts[0] = 0, each piece as many lines as fit in piece_size; d_cuts[*d_n_cuts] = n.  At
 * most max pieces. */
int pfs_cuda_path_cuts(uint64_t *d_cuts, uint64_t *d_n_cuts, uint64_t max, const uint64_t *d_ends,
		       size_t n, uint64_t piece_size, cudaStream_t stream);
int pfs_cuda_path_text(const struct pfs_cuda_tree *t, const struct pfs_cuda_names *names,
		       char *d_text, const uint64_t *d_ends, const uint32_t *d_slots, size_t first,
		       size_t n, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
