/* SPDX-License-Identifier: MIT */
/* tests/ref/key_lists.h - what a prefix tree must hold: a fixed set of possible keys as a sorted
 * array, found by a hash table, each with its payloads. */
#ifndef PFS_TESTS_REF_KEY_LISTS_H
#define PFS_TESTS_REF_KEY_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ref_key {
	const uint8_t *bytes; /* the caller's */
	uint32_t len;
	uint64_t *payloads;
	size_t n, capacity;
};

struct ref_lists {
	struct ref_key *keys; /* in byte order, each once */
	size_t n_keys;
	uint32_t *table; /* number and 1, by hash; 0: free */
	size_t table_size;
	size_t n_payloads, n_present; /* keys with payloads */
};

/* Aborts without memory, as all of these. */
void ref_lists_make(struct ref_lists *lists, const uint8_t *const *keys, const uint32_t *lens,
		    size_t n);
void ref_lists_free(struct ref_lists *lists);
/* The key's number, or n_keys. */
size_t ref_lists_find(const struct ref_lists *lists, const uint8_t *bytes, uint32_t len);
void ref_lists_add(struct ref_lists *lists, size_t number, uint64_t payload);
bool ref_lists_remove(struct ref_lists *lists, size_t number, uint64_t payload);
/* The first key that is not less and has payloads, or n_keys. */
size_t ref_lists_seek(const struct ref_lists *lists, const uint8_t *bytes, uint32_t len);

#endif
