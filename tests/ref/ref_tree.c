/* SPDX-License-Identifier: MIT */
#include "tests/ref/ref_tree.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ref_init(struct ref_tree *t)
{
	*t = (struct ref_tree){0};
}

void ref_finish(struct ref_tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		mpz_clear(t->nodes[i].code);
	free(t->nodes);
	ref_init(t);
}

static void grow(struct ref_tree *t, size_t n)
{
	if (n > t->capacity) {
		t->capacity = n + n / 2 + 16;
		t->nodes = realloc(t->nodes, t->capacity * sizeof(*t->nodes));
		assert(t->nodes);
	}
	for (; t->n < n; t->n++) {
		t->nodes[t->n] = (struct ref_node){.live = false};
		mpz_init(t->nodes[t->n].code);
	}
}

static void multiply(mpz_t code, uint64_t prime)
{
	mpz_t factor;

	mpz_init_set_ui(factor, (unsigned long)prime);
	mpz_mul(code, code, factor);
	mpz_clear(factor);
}

void ref_add(struct ref_tree *t, uint32_t slot, uint32_t parent, uint64_t prime)
{
	struct ref_node *x;

	grow(t, (size_t)slot + 1);
	x = &t->nodes[slot];
	assert(!x->live && (parent == REF_NONE || t->nodes[parent].live));
	x->live = true;
	x->parent = parent;
	x->prime = prime;
	(void)snprintf(x->name, sizeof(x->name), "%c%u", (int)('a' + prime % 3), slot);
	if (parent == REF_NONE)
		mpz_set_ui(x->code, 1);
	else
		mpz_set(x->code, t->nodes[parent].code);
	multiply(x->code, prime);
}

static bool is_under(const struct ref_tree *t, size_t x, uint32_t k)
{
	return t->nodes[x].live && mpz_divisible_p(t->nodes[x].code, t->nodes[k].code);
}

void ref_subtree(const struct ref_tree *t, bool *out, uint32_t slot)
{
	for (size_t x = 0; x < t->n; x++)
		out[x] = is_under(t, x, slot);
}

void ref_parents(const struct ref_tree *t, bool *out, uint32_t slot)
{
	for (size_t x = 0; x < t->n; x++)
		out[x] = t->nodes[x].live && x != slot &&
			 mpz_divisible_p(t->nodes[slot].code, t->nodes[x].code);
}

uint32_t ref_parent(const struct ref_tree *t, uint32_t slot)
{
	uint32_t best = REF_NONE;

	for (uint32_t x = 0; x < t->n; x++) {
		if (!t->nodes[x].live || x == slot ||
		    !mpz_divisible_p(t->nodes[slot].code, t->nodes[x].code))
			continue;
		if (best == REF_NONE || mpz_cmp(t->nodes[x].code, t->nodes[best].code) > 0)
			best = x;
	}
	return best;
}

size_t ref_remove(struct ref_tree *t, uint32_t slot)
{
	size_t removed = 0;
	mpz_t code;

	mpz_init_set(code, t->nodes[slot].code);
	for (size_t x = 0; x < t->n; x++) {
		if (!t->nodes[x].live || !mpz_divisible_p(t->nodes[x].code, code))
			continue;
		t->nodes[x].live = false;
		removed++;
	}
	mpz_clear(code);
	return removed;
}

bool ref_move(struct ref_tree *t, uint32_t slot, uint32_t parent)
{
	mpz_t old, from, to;

	if (mpz_divisible_p(t->nodes[parent].code, t->nodes[slot].code))
		return false;
	mpz_init_set(old, t->nodes[slot].code);
	mpz_init_set(from, t->nodes[t->nodes[slot].parent].code);
	mpz_init_set(to, t->nodes[parent].code);
	for (size_t x = 0; x < t->n; x++) {
		if (!t->nodes[x].live || !mpz_divisible_p(t->nodes[x].code, old))
			continue;
		mpz_divexact(t->nodes[x].code, t->nodes[x].code, from);
		mpz_mul(t->nodes[x].code, t->nodes[x].code, to);
	}
	t->nodes[slot].parent = parent;
	mpz_clears(old, from, to, NULL);
	return true;
}

uint32_t ref_node(const struct ref_tree *t, const mpz_t code)
{
	for (uint32_t x = 0; x < t->n; x++)
		if (t->nodes[x].live && mpz_cmp(t->nodes[x].code, code) == 0)
			return x;
	return REF_NONE;
}

uint32_t ref_common_ancestor(const struct ref_tree *t, const uint32_t *slots, size_t n)
{
	uint32_t found;
	mpz_t common;

	mpz_init_set(common, t->nodes[slots[0]].code);
	for (size_t i = 1; i < n; i++)
		mpz_gcd(common, common, t->nodes[slots[i]].code);
	found = ref_node(t, common);
	mpz_clear(common);
	return found;
}

char *ref_path(const struct ref_tree *t, uint32_t slot)
{
	char *path = NULL, *longer;

	if (t->nodes[slot].parent == REF_NONE)
		return strdup("/");
	for (; t->nodes[slot].parent != REF_NONE; slot = t->nodes[slot].parent) {
		if (asprintf(&longer, "/%s%s", t->nodes[slot].name, path ? path : "") < 0)
			abort();
		free(path);
		path = longer;
	}
	return path;
}

/* The slash sorts before every byte of a name. */
int ref_compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}
