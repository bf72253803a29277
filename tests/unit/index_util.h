/* SPDX-License-Identifier: MIT */
/* tests/unit/index_util.h - an ordered index with 32-bit or 64-bit values, on the host, a device or
 * its stand-in, beside a sorted array. */
#ifndef PFS_TESTS_UNIT_INDEX_UTIL_H
#define PFS_TESTS_UNIT_INDEX_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "gpu/index.h"
#include "gpu/relation.h"
#include "each_util.h"
#include "tests/ref/sorted_pairs.h"

/* An index and what it must hold. */
struct pair_test {
	struct pfs_run run;
	struct pfs_index *index;
	struct ref_pairs ref;
	bool is_wide; /* values as wide_of has them */
	uint32_t page;
	enum pfs_index_upper_levels upper;
};

/* The caller frees it. */
static inline void *room(size_t n, size_t element_size)
{
	void *memory = calloc(n + 1, element_size);

	assert_non_null(memory);
	if (!memory)
		abort(); /* for the analyzer: the line above does not come back */
	return memory;
}

/* ---- values: the cases' and the reference's have 32 bits ---- */

/* In the same order: that of the upper halves of 64 bits, and of the lower ones where those are
 * equal, as sixteen neighbours are. */
static inline uint64_t wide_of(uint32_t value)
{
	if (value == PFS_INDEX_NONE)
		return PFS_INDEX_WIDE_NONE;
	return (uint64_t)(value >> 4) << 33 | (uint64_t)(value & 15) << 28;
}

static inline void assert_values(const struct pair_test *t, const void *got,
				 const uint32_t *expected, size_t n)
{
	if (!t->is_wide && n)
		assert_memory_equal(got, expected, n * sizeof(*expected));
	for (size_t i = 0; t->is_wide && i < n; i++)
		assert_int_equal(((const uint64_t *)got)[i], wide_of(expected[i]));
}

/* As the index has them; the caller frees it. */
static inline void *given(const struct pair_test *t, const uint32_t *values, size_t n)
{
	uint64_t *wide;

	if (!values)
		return NULL;
	wide = room(n, sizeof(*wide));
	if (!t->is_wide && n)
		memcpy(wide, values, n * sizeof(*values));
	for (size_t i = 0; t->is_wide && i < n; i++)
		wide[i] = wide_of(values[i]);
	return wide;
}

static inline int build_index(struct pair_test *t, struct pfs_index **out, enum pfs_index_kind kind,
		       const uint64_t *keys, const uint32_t *values, size_t n)
{
	const struct pfs_index_shape shape = {kind, t->is_wide, t->page, t->upper};
	void *own = given(t, values, n);
	int error = pfs_index_build(&t->run, out, &shape, keys, own, n);

	free(own);
	return error;
}

static inline int insert_into(struct pair_test *t, uint64_t *n_added, const uint64_t *keys,
			      const uint32_t *values, size_t n, enum pfs_index_policy policy)
{
	void *own = given(t, values, n);
	int error = pfs_index_insert(&t->run, t->index, n_added, keys, own, n, policy);

	free(own);
	return error;
}

static inline int remove_from(struct pair_test *t, uint64_t *n_removed, const uint64_t *keys,
			      const uint32_t *values, size_t n)
{
	void *own = given(t, values, n);
	int error = pfs_index_remove(&t->run, t->index, n_removed, keys, own, n);

	free(own);
	return error;
}

static inline uint64_t number_at(const struct pair_test *t, const void *values, size_t i)
{
	return t->is_wide ? ((const uint64_t *)values)[i] : ((const uint32_t *)values)[i];
}

static inline void begin(struct pair_test *t, enum pfs_index_kind kind)
{
	t->ref = (struct ref_pairs){.kind = kind};
	assert_int_equal(build_index(t, &t->index, kind, NULL, NULL, 0), 0);
}

static inline void end(struct pair_test *t)
{
	pfs_index_close(&t->run, t->index);
	ref_pairs_free(&t->ref);
}

static inline void insert(struct pair_test *t, const uint64_t *keys, const uint32_t *values,
			  size_t n, enum pfs_index_policy policy)
{
	uint64_t added;

	assert_int_equal(insert_into(t, &added, keys, values, n, policy), 0);
	assert_int_equal(added, ref_pairs_insert(&t->ref, keys, values, n, policy));
}

static inline void remove_pairs(struct pair_test *t, const uint64_t *keys, const uint32_t *values,
				size_t n)
{
	uint64_t removed;

	if (t->ref.kind == PFS_INDEX_UNIQUE)
		values = NULL;
	assert_int_equal(remove_from(t, &removed, keys, values, n), 0);
	assert_int_equal(removed, ref_pairs_remove(&t->ref, keys, values, n));
}

/* ---- where they run ---- */

static inline void run_on(void (*cases)(struct pair_test *t), enum index_place place)
{
	struct pair_test t = {.run = run_at(place, 2)};

	for (unsigned i = 0; i < (place == ON_CUDA ? 4 : 2); i++) {
		t.is_wide = i % 2;
		t.upper = i / 2 ? PFS_INDEX_UPPER_HOST : PFS_INDEX_UPPER_BESIDE;
		cases(&t);
	}
	assert_true(place != ON_STAND_IN || stand_in_operators.indexed);
	pfs_operators_close(t.run.operators);
}

#define CASES(name) ON_EACH(name, run_on, name)

#endif
