/* SPDX-License-Identifier: MIT */
/* tests/ref/compare.h - the same tree in an engine and in the reference, every answer compared.  A
 * difference fails the cmocka test that runs. */
#ifndef PFS_TESTS_REF_COMPARE_H
#define PFS_TESTS_REF_COMPARE_H

#include "gpu/engine.h"
#include "gpu/probe.h"
#include "tests/ref/ref_tree.h"

struct pair {
	struct ref_tree ref;
	struct pfs_engine *engine;
	uint64_t random;		    /* state of pair_random */
	uint64_t next_directory, next_file; /* where to look for the next prime */
	/* Names, as an image keeps them: new ones go to the end. */
	uint8_t *heap;
	size_t heap_size, heap_capacity, n_named;
	uint32_t *place;
	uint64_t *named; /* the prime that the slot had when its name was written */
	uint64_t generation;
};

/* The engine stays the caller's. */
void pair_init(struct pair *p, struct pfs_engine *engine, uint64_t seed);
void pair_finish(struct pair *p);

uint64_t pair_random(struct pair *p, uint64_t below);
uint64_t pair_prime(struct pair *p, bool directory);
uint32_t pair_random_node(struct pair *p, bool directory); /* REF_NONE if there is none */
bool pair_is_directory(const struct pair *p, uint32_t slot);

/* Both: */
void pair_load(struct pair *p); /* the reference's tree into the engine */
void pair_add(struct pair *p, uint32_t slot, uint32_t parent, bool directory);
void pair_remove(struct pair *p, uint32_t slot);
void pair_move(struct pair *p, uint32_t slot, uint32_t parent); /* or both refuse */

/* Compares: */
void check_node(struct pair *p, uint32_t slot); /* everything that is asked of one node */
void check_two(struct pair *p, uint32_t a, uint32_t b);
void check_whole(struct pair *p); /* codes, batches, listings */
void check_set(const struct pair *p, struct pfs_bitmap *set, const bool *expected); /* frees set */

#endif
