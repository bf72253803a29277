/* SPDX-License-Identifier: MIT */
/* gpu/cuda/relation_kernels.h - launch wrappers of the relational operators: each queues its
 * kernels on the stream, neither allocates nor waits but where it says so, and returns 0 or -EIO.
 * d_ marks device memory.
 *
 * A *place* is a position in an operator's input: the row itself where that is a table, the tuple's
 * number where it is a batch.  Bits are 32-bit words, the lowest bit first. */
#ifndef PFS_GPU_CUDA_RELATION_KERNELS_H
#define PFS_GPU_CUDA_RELATION_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PFS_DEVICE_KEYS	      8
#define PFS_DEVICE_AGGREGATES 12
#define PFS_DEVICE_STEPS      64

struct pfs_device_column {
	const void *d_data;
	const uint32_t *d_via;	 /* or NULL */
	const uint32_t *d_nulls; /* or NULL */
	uint64_t mask;		 /* all ones: none */
	int64_t base;
	uint8_t width, is_signed, shift;
	uint8_t is_real; /* its values are ordered as pfs_order_real says */
};

/* The value at a place: the column at row d_rows[place], or from + place. */
struct pfs_device_value {
	struct pfs_device_column column;
	const uint32_t *d_rows;
	uint32_t from;
};

/* Texts, by their places, as in struct pfs_heap. */
struct pfs_device_heap {
	const uint8_t *d_bytes;
	uint8_t place_shift, length_size;
};

/* A value that is sorted by; d_rank is of codes. */
struct pfs_device_sort_key {
	struct pfs_device_value value;
	const uint32_t *d_rank;
	bool descending, nulls_first;
};

/* The places from..to of which the mask (NULL: all) has its bit. */
struct pfs_device_places {
	uint64_t from, to;
	const uint32_t *d_mask;
};

/* Reals as integers in the same order; -0 is 0. */
#ifdef __CUDACC__
__host__ __device__
#endif
static inline int64_t pfs_order_real(double value)
{
	union {
		double real;
		int64_t bits;
	} u;

	u.real = value == 0 ? 0.0 : value;
	return u.bits < 0 ? (int64_t)((uint64_t)INT64_MIN - (uint64_t)u.bits) : u.bits;
}

/* ---- select.cu ---- */

enum pfs_device_op {
	PFS_DEVICE_RANGE,     /* low <= value <= high; NULL: unknown */
	PFS_DEVICE_COMPARE,   /* value and other, both integers or both reals; high: enum pfs_op */
	PFS_DEVICE_IN,	      /* value among d_list[0..n), ascending; NULL: unknown */
	PFS_DEVICE_IN_SET,    /* bit of value in d_set, of n; NULL: unknown */
	PFS_DEVICE_IS_NULL,   /* never unknown */
	PFS_DEVICE_MEMBER,    /* bit of the place in d_set */
	PFS_DEVICE_EQUALS,    /* the text is d_text; NULL: unknown */
	PFS_DEVICE_BEGINS,    /* with d_text */
	PFS_DEVICE_ENDS,
	PFS_DEVICE_CONTAINS,
	PFS_DEVICE_UNKNOWN, /* always */
	PFS_DEVICE_AND,
	PFS_DEVICE_OR,
	PFS_DEVICE_NOT,
};

struct pfs_device_step {
	enum pfs_device_op op;
	struct pfs_device_value value, other;
	int64_t low, high;
	const int64_t *d_list;
	const uint32_t *d_set;
	const uint8_t *d_text;
	struct pfs_device_heap heap;
	uint64_t n; /* of the list or set; bytes of the text */
	/* Set for texts if d_text is ASCII in small letters, and the texts' capitals count as
	 * these. */
	uint8_t folds;
	uint8_t ends_at_nul; /* a NUL byte ends the text */
	/* RANGE: the column has no rows, via, nulls, shift, mask; low <= high are of its
	 * elements. */
	uint8_t is_plain;
};

struct pfs_device_program {
	uint32_t n;
	struct pfs_device_step step[PFS_DEVICE_STEPS];
};

/* Sets the bits of the places for which the program leaves true, and clears those behind them among
 * n_bits; *d_count (NULL: not asked) grows by how many. d_bits NULL: they are only counted. No
 * program, or one without steps, is true of all places. */
#ifdef __cplusplus
extern "C" {
#endif
int pfs_cuda_select(uint32_t *d_bits, uint64_t n_bits, uint64_t *d_count,
		    const struct pfs_device_places *places,
		    const struct pfs_device_program *program, cudaStream_t stream);

/* Lists the numbers of the set bits, ascending; with d_temporary NULL only *temporary_size is
 * set. */
int pfs_cuda_rows_list(uint32_t *d_list, uint64_t *d_n, void *d_temporary, size_t *temporary_size,
		       const uint32_t *d_bits, uint64_t n_bits, cudaStream_t stream);

/* ---- gather.cu ---- */

/* out[i] = the value at place places ? places[i] : i, as 8 bytes (32-bit: as 4), and a bit where it
 * is NULL, in whole words of 64 (d_nulls may be NULL: not asked). */
int pfs_cuda_values_at(void *d_out, bool as_32_bit, uint32_t *d_nulls,
			   const struct pfs_device_value *value, const uint32_t *d_places,
			   uint64_t n, cudaStream_t stream);
/* out[i] = rows ? rows[places[i]] : from + places[i]; none where the place is none. */
int pfs_cuda_rows_at(uint32_t *d_out, const uint32_t *d_rows, uint32_t from,
			 const uint32_t *d_places, uint64_t n, cudaStream_t stream);

/* out[i] = from + i. */
int pfs_cuda_count_up(uint32_t *d_out, uint32_t from, uint64_t n, cudaStream_t stream);

/* ---- evaluate.cu ---- */

#define PFS_EXPRESSION_STEPS 24
#define PFS_EXPRESSION_DEPTH 8

enum { PFS_CELL_NULL, PFS_CELL_INTEGER, PFS_CELL_REAL };

struct pfs_device_operation {
	int op; /* enum pfs_op: a column, a constant, or what takes numbers and leaves one */
	uint32_t type;
	int64_t bits; /* of a constant */
	struct pfs_device_value value;
};

/* Postfix, checked: never deeper than PFS_EXPRESSION_DEPTH, and leaves one value. */
struct pfs_device_expression {
	uint32_t n;
	struct pfs_device_operation operation[PFS_EXPRESSION_STEPS];
};

/* out[i] = the value at places ? places[i] : from + i, and a bit where it is NULL, in whole words
 * of 64; *d_types gets the bits 1 << PFS_CELL_ of those met. */
int pfs_cuda_evaluate(uint64_t *d_out, uint32_t *d_nulls, uint32_t *d_types,
		      const struct pfs_device_expression *expression, const uint32_t *d_places,
		      uint32_t from, uint64_t n, cudaStream_t stream);

/* ---- group.cu ---- */

/* Bounds the values of an array, which one pass finds. above and below are the sums of the values
 * above and below zero, as doubles; they are not set for reals. */
struct pfs_device_bounds {
	long long least, most;
	double above, below;
};
/* Finds the bounds; *d_bounds is {INT64_MAX, INT64_MIN, 0, 0} before. */
int pfs_cuda_bounds(struct pfs_device_bounds *d_bounds, const struct pfs_device_value *value,
		    uint64_t n, cudaStream_t stream);

/* A combination of values as one number: the sum of (value - least + 1) * stride, 0 for NULL. */
struct pfs_device_key {
	struct pfs_device_value value;
	const uint32_t *d_map; /* of codes: what stands for each, all ones: nothing does; or NULL */
	int64_t least;
	uint64_t stride;
	bool is_row; /* the values are numbers of rows or places, of which all ones is NULL */
	bool is_text; /* the place is that of any of the texts that are equal */
};

struct pfs_device_keys {
	struct pfs_device_key key[PFS_DEVICE_KEYS];
	uint32_t n;
};

/* Places that are looked at for a number, at most; a multiple of 32. In a table that is half empty
 * random hashes take about a hundred, however large it is. */
#define PFS_PROBES_MAX 512u

/* A hash table with open addressing: a number that is in it has a place of its own. All ones is an
 * empty place. At least half of the places are. */
struct pfs_device_table {
	unsigned long long *d_numbers;
	uint64_t capacity; /* a power of two; 0: numbers are places themselves */
	uint64_t seed;
	uint32_t *d_refused; /* set if PFS_PROBES_MAX are not enough: then places mean nothing */
};

enum pfs_device_aggregate_op {
	PFS_DEVICE_COUNT,
	PFS_DEVICE_SUM,
	PFS_DEVICE_SUM_REAL, /* integers and reals, as doubles */
	PFS_DEVICE_MIN,
	PFS_DEVICE_MAX,
	PFS_DEVICE_DISTINCT, /* counted by pfs_cuda_group_distinct */
};

/* Says how a group's result is made of what was kept of it. */
enum pfs_device_show {
	PFS_SHOW_COUNT, /* the number of values, or of tuples where there is no argument */
	PFS_SHOW_VALUE, /* what was kept, as it is */
	PFS_SHOW_EXTREME, /* the same; of reals, whose order was kept, the real */
	PFS_SHOW_REAL,	/* the sum as a real */
	PFS_SHOW_MEAN,	/* the sum by the number of values */
};

struct pfs_device_aggregate {
	enum pfs_device_aggregate_op op;
	enum pfs_device_show show;
	bool is_null_of_none; /* a group without values has NULL */
	struct pfs_device_value value;
	bool can_be_null;
	const uint32_t *d_rank, *d_code; /* of texts, for MIN and MAX: ranks by code, and back */
	unsigned long long *d_value;	 /* by group; a double for SUM_REAL; NULL for COUNT */
	uint32_t *d_count;		 /* values that are not NULL; NULL where none can be */
};

struct pfs_device_groups {
	uint64_t n; /* groups that there is room for */
	uint32_t *d_first; /* the least place; all ones: there is none */
	uint32_t *d_count;
	struct pfs_device_aggregate aggregate[PFS_DEVICE_AGGREGATES];
	uint32_t n_aggregates;
};

/* Makes the totals those of groups without places. */
int pfs_cuda_group_clear(const struct pfs_device_groups *groups, cudaStream_t stream);
/* Adds the places to their groups, whose totals have been cleared. d_temporary has
 * pfs_cuda_group_room() bytes, which may be none. Few groups that come late have no first place
 * then: see pfs_cuda_group_late. */
int pfs_cuda_group(const struct pfs_device_groups *groups, const struct pfs_device_keys *keys,
		   const struct pfs_device_table *table, const struct pfs_device_places *places,
		   void *d_temporary, cudaStream_t stream);
size_t pfs_cuda_group_room(const struct pfs_device_groups *groups,
			   const struct pfs_device_table *table,
			   const struct pfs_device_places *places);
/* Finds the first places that pfs_cuda_group has not, which most often are none. */
int pfs_cuda_group_late(const struct pfs_device_groups *groups, const struct pfs_device_keys *keys,
			const struct pfs_device_table *table,
			const struct pfs_device_places *places, cudaStream_t stream);
/* total.cu: The same without keys: all places are of group 0. */
int pfs_cuda_group_all(const struct pfs_device_groups *groups,
		       const struct pfs_device_places *places, cudaStream_t stream);
/* group_parts.cu: As these, of many groups that are places themselves; a room of 0 says that these
 * are not such. */
int pfs_cuda_group_parts(const struct pfs_device_groups *groups, const struct pfs_device_keys *keys,
			 const struct pfs_device_places *places, void *d_temporary,
			 cudaStream_t stream);
size_t pfs_cuda_group_parts_room(const struct pfs_device_groups *groups,
				 const struct pfs_device_places *places);
/* group_plain.cu: As pfs_cuda_group, of columns that are read as they lie, which
 * pfs_cuda_group_is_plain tells; copies: of each group's totals in a block. First places are looked
 * for below early_to. */
bool pfs_cuda_group_is_plain(const struct pfs_device_groups *groups,
			     const struct pfs_device_keys *keys,
			     const struct pfs_device_places *places);
int pfs_cuda_group_plain(const struct pfs_device_groups *groups, const struct pfs_device_keys *keys,
			 const struct pfs_device_places *places, uint32_t copies, uint64_t early_to,
			 cudaStream_t stream);

/* ---- group_results.cu ---- */

/* After pfs_cuda_group: d_value[group] += how many different values the places have; `value` is the
 * key that numbers them, `limit` how many combinations with groups there are.  d_seen: as many
 * bits, 0, or with `pairs` a table with room for all places. */
int pfs_cuda_group_distinct(unsigned long long *d_value, const struct pfs_device_key *value,
			    uint64_t n_values, const struct pfs_device_keys *keys,
			    const struct pfs_device_table *table, uint32_t *d_seen,
			    const struct pfs_device_table *pairs,
			    const struct pfs_device_places *places, cudaStream_t stream);
/* Sets the bits of the groups that have a tuple, and clears the others, in whole words of 64. */
int pfs_cuda_group_bits(uint32_t *d_bits, const uint32_t *d_count, uint64_t n, cudaStream_t stream);

/* Where results of listed groups go, in the list's order. */
struct pfs_device_shown {
	uint32_t *d_places; /* first ones */
	void *d_data[PFS_DEVICE_AGGREGATES];
	uint32_t *d_nulls[PFS_DEVICE_AGGREGATES]; /* words of 64 bits; NULL: no result is NULL */
};
/* Fills them in for n groups. */
int pfs_cuda_group_show(const struct pfs_device_shown *shown,
			const struct pfs_device_groups *groups, const uint32_t *d_list, uint64_t n,
			cudaStream_t stream);
/* The same, after listing the groups that have a tuple (has_all: all groups), ascending; places
 * behind these, up to groups->n, are none. Of a few thousand groups at most, by one block. What it
 * says of them may lie in the host's memory. */
struct pfs_device_listed {
	uint64_t n;
	bool is_late; /* one lacks its first place: after pfs_cuda_group_late it is done again */
};
int pfs_cuda_group_list(const struct pfs_device_shown *shown, uint32_t *d_list,
			struct pfs_device_listed *listed, const struct pfs_device_groups *groups,
			bool has_all, cudaStream_t stream);

/* ---- text_numbers.cu ---- */

#define PFS_DEVICE_TEXT_MAX 65536u /* bytes of a text that one thread goes through */

struct pfs_device_texts {
	struct pfs_device_value value; /* places of the heap */
	struct pfs_device_heap heap;
	uint8_t collation; /* enum pfs_collation */
};

/* numbers[place] = a place whose text is equal by the collation, the same for all that are equal;
 * all ones where the value is NULL. The table has room for all places; it refuses also if a text is
 * longer than PFS_DEVICE_TEXT_MAX: then numbers mean nothing. */
int pfs_cuda_number_texts(uint32_t *d_numbers, const struct pfs_device_table *table,
			  const struct pfs_device_texts *texts,
			  const struct pfs_device_places *places, cudaStream_t stream);

/* ---- sort.cu ---- */

/* keys[i] = the value at places[i] as a number in the order wanted; NULL is the least or the most
 * there, and nulls[i] tells it from the others: 1, or 0 for nulls_first. */
int pfs_cuda_sort_keys(uint64_t *d_keys, uint8_t *d_nulls, const struct pfs_device_sort_key *key,
		       const uint32_t *d_places, uint64_t n, cudaStream_t stream);
/* Sorts pairs, stable; d_temporary NULL: *temporary_size is set.  Results are in d_keys_out and
 * d_places_out. */
int pfs_cuda_sort_pairs(void *d_temporary, size_t *temporary_size, uint64_t *d_keys_out,
			const uint64_t *d_keys, uint32_t *d_places_out, const uint32_t *d_places,
			uint64_t n, int bits, cudaStream_t stream);
int pfs_cuda_sort_flags(void *d_temporary, size_t *temporary_size, uint8_t *d_flags_out,
			const uint8_t *d_flags, uint32_t *d_places_out, const uint32_t *d_places,
			uint64_t n, cudaStream_t stream);
/* histogram[(key >> shift) & 4095] grows by the keys of places whose bits above are `prefix`. */
int pfs_cuda_sort_histogram(uint32_t *d_histogram, const struct pfs_device_sort_key *key,
			    const struct pfs_device_places *places, uint64_t prefix, int shift,
			    cudaStream_t stream);
/* Bits of the places whose keys are at most `most`; bits before their first word are left as they
 * are. */
int pfs_cuda_sort_at_most(uint32_t *d_bits, const struct pfs_device_sort_key *key,
			  const struct pfs_device_places *places, uint64_t most,
			  cudaStream_t stream);

/* ---- join.cu ---- */

/* groups[i] = the place in the table of right's number at places[i], put in if it is not; none if a
 * key is NULL.  counts[group] counts them. */
int pfs_cuda_join_build(uint32_t *d_groups, uint32_t *d_counts, const struct pfs_device_keys *keys,
			const struct pfs_device_table *table,
			const struct pfs_device_places *places, cudaStream_t stream);
/* d_rows in the order of groups; d_starts: each group's first, is moved to its end. */
int pfs_cuda_join_scatter(uint32_t *d_rows, uint32_t *d_ends, const uint32_t *d_groups,
			  const struct pfs_device_places *places, cudaStream_t stream);
/* slots[group] = how many rows << 32 | the row, or where they begin in d_rows; 0: none. */
int pfs_cuda_join_pack(unsigned long long *d_slots, const uint32_t *d_counts,
		       const uint32_t *d_ends, const uint32_t *d_rows, uint64_t n,
		       cudaStream_t stream);
/* Rows of a tile, and tiles of n rows. */
uint64_t pfs_cuda_join_tile(void);
uint64_t pfs_cuda_join_tiles(uint64_t n);
/* d_found, in whole tiles: the slot of each place of left; d_sums: how many pairs each tile makes.
 * keys: left's values, right's least ones and strides; limit: how many numbers right's values can
 * make. */
int pfs_cuda_join_find(unsigned long long *d_found, uint64_t *d_sums,
		       const struct pfs_device_keys *keys, const struct pfs_device_table *table,
		       uint64_t limit, const unsigned long long *d_slots,
		       const struct pfs_device_places *places, bool outer, cudaStream_t stream);
/* d_starts: where the pairs of each tile begin. */
int pfs_cuda_join_write(uint32_t *d_left, uint32_t *d_right, const uint64_t *d_starts,
			const unsigned long long *d_found, const uint32_t *d_rows, uint64_t from,
			uint64_t n, cudaStream_t stream);
/* Builds the table of unique keys: rows[place in the table] is the row, all ones at first;
 * *d_repeated is set where there is a row already. */
int pfs_cuda_join_build_unique(uint32_t *d_rows, uint32_t *d_repeated,
			       const struct pfs_device_keys *keys,
			       const struct pfs_device_table *table,
			       const struct pfs_device_places *places, cudaStream_t stream);
/* Left's pairs, in no order; *d_total grows by how many.  Room for as many as left has places. */
int pfs_cuda_join_unique(uint32_t *d_left, uint32_t *d_right, uint64_t *d_total,
			 const struct pfs_device_keys *keys, const struct pfs_device_table *table,
			 uint64_t limit, const uint32_t *d_rows,
			 const struct pfs_device_places *places, bool outer, cudaStream_t stream);

/* As pfs_cuda_join_unique, of left's places without a mask: d_right[i] is the partner of place from
 * + i, or none. *d_missing, at first 0, is set if one has none; unless `outer`, d_right means
 * nothing then. */
int pfs_cuda_join_partners(uint32_t *d_right, uint32_t *d_missing,
			   const struct pfs_device_keys *keys, const struct pfs_device_table *table,
			   uint64_t limit, const uint32_t *d_rows,
			   const struct pfs_device_places *places, bool outer, cudaStream_t stream);

/* ---- merge.cu ---- */

/* Sets the bits of the entries whose keys are not the ones before; n keys, ascending. */
int pfs_cuda_run_bits(uint32_t *d_bits, const uint64_t *d_keys, uint64_t n, cudaStream_t stream);
/* Gets the runs' keys from where they start; d_starts[n_runs] becomes n. */
int pfs_cuda_run_keys(uint64_t *d_run_keys, uint32_t *d_starts, const uint64_t *d_keys,
		      uint64_t n_runs, uint64_t n, cudaStream_t stream);

/* The larger of two column indexes that are merged: its entries from..to; d_run_keys may be
 * NULL. */
struct pfs_merge_side {
	const uint64_t *d_keys;
	uint64_t from, to;
	const uint64_t *d_run_keys;
	const uint32_t *d_run_starts;
	uint64_t n_runs;
};

/* Of each key of the smaller index, at the first of its equal ones: how many these are, where the
 * equal ones of the larger index begin, and how many they are.  At the others, and where there is
 * no partner, all is 0. */
struct pfs_merge_range {
	uint32_t few, first, many;
};
int pfs_cuda_merge_count(uint64_t *d_pairs, struct pfs_merge_range *d_ranges, const uint64_t *d_few,
			 uint64_t n, const struct pfs_merge_side *many, cudaStream_t stream);
/* Returns how many shares of the pairs there are; d_share_keys has room for one more. */
uint64_t pfs_cuda_merge_shares(uint64_t total);
/* Writes the rows of the pairs. starts[0..n): sums of pairs; d_few, d_many: the rows of the entries
 * that were counted from; swapped: the smaller index is right's, so pairs of a key are in the order
 * of the larger one's rows. */
int pfs_cuda_merge_write(uint32_t *d_few_out, uint32_t *d_many_out, uint32_t *d_share_keys,
			 const uint64_t *d_starts, uint64_t n,
			 const struct pfs_merge_range *d_ranges, const uint32_t *d_few,
			 const uint32_t *d_many, uint64_t total, bool swapped, cudaStream_t stream);

/* out[i] = sum of in[0..i). */
int pfs_cuda_sums_32(void *d_temporary, size_t *temporary_size, uint32_t *d_out,
		     const uint32_t *d_in, uint64_t n, cudaStream_t stream);
int pfs_cuda_sums_64(void *d_temporary, size_t *temporary_size, uint64_t *d_out,
		     const uint64_t *d_in, uint64_t n, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
