/* SPDX-License-Identifier: MIT */
/* tests/ref/ref_tree.h - the reference engine: GMP and loops, every question answered as its
 * definition reads.  Slow on purpose; failures of memory end the test. */
#ifndef PFS_TESTS_REF_TREE_H
#define PFS_TESTS_REF_TREE_H

#include <gmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REF_NONE UINT32_MAX

struct ref_node {
	bool live;
	uint32_t parent;
	uint64_t prime;
	mpz_t code; /* product of the primes on the path */
	char name[24];
};

struct ref_tree {
	struct ref_node *nodes; /* by slot */
	size_t n, capacity;
};

void ref_init(struct ref_tree *t);
void ref_finish(struct ref_tree *t);

/* add: code = code(parent) * prime, in any slot that is free. */
void ref_add(struct ref_tree *t, uint32_t slot, uint32_t parent, uint64_t prime);
/* remove: drops x with code(x) mod k = 0.  Returns how many. */
size_t ref_remove(struct ref_tree *t, uint32_t slot);
/* move: code(x) / code(old parent) * code(new parent) for x in the subtree.  False: refused. */
bool ref_move(struct ref_tree *t, uint32_t slot, uint32_t parent);

/* out[i] for every slot */
void ref_subtree(const struct ref_tree *t, bool *out, uint32_t slot); /* code(x) mod k = 0 */
void ref_parents(const struct ref_tree *t, bool *out,
		 uint32_t slot); /* k mod code(x) = 0, x != k */
uint32_t ref_parent(const struct ref_tree *t, uint32_t slot); /* the largest of parents(k) */
uint32_t ref_node(const struct ref_tree *t, const mpz_t code);
/* The node whose code is the gcd of the codes. */
uint32_t ref_common_ancestor(const struct ref_tree *t, const uint32_t *slots, size_t n);
/* The path, allocated. */
char *ref_path(const struct ref_tree *t, uint32_t slot);
/* Component-wise comparison of two paths. */
int ref_compare_paths(const char *a, const char *b);

#endif
