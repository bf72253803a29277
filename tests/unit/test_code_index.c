/* SPDX-License-Identifier: MIT */
/* Nodes by their codes, asked one after another until the engine makes an index of them: it finds
 * what is there, nothing else, and never what was there before a change. */
#include <gmp.h>

#include "engine_util.h"
#include "gpu/engine_impl.h"

static void look_up(struct pair *p, const mpz_t code, uint32_t wanted)
{
	char *text = mpz_get_str(NULL, 10, code);
	uint32_t slot = REF_NONE;

	assert_int_equal(pfs_engine_node(p->engine, &slot, text), wanted == REF_NONE ? -ENOENT : 0);
	if (wanted != REF_NONE)
		assert_int_equal(slot, wanted);
	free(text);
}

static void look_up_all(struct pair *p)
{
	for (uint32_t slot = 0; slot < p->ref.n; slot++)
		if (p->ref.nodes[slot].live)
			look_up(p, p->ref.nodes[slot].code, slot);
	if (p->engine->device_only && p->engine->is_device)
		assert_null(p->engine->codes.entries); /* kernels alone have answered */
	else
		assert_non_null(p->engine->codes.entries);
}

/* Products of primes that are some node's, but no node's code: some agree with one in their low
 * bits. */
static void look_up_others(struct pair *p)
{
	mpz_t code;

	mpz_init(code);
	for (unsigned i = 0; i < 200; i++) {
		const struct ref_node *node = &p->ref.nodes[pair_random_node(p, false)];

		mpz_mul_ui(code, node->code, (unsigned long)p->next_directory);
		look_up(p, code, REF_NONE);
		mpz_mul(code, node->code, p->ref.nodes[pair_random_node(p, true)].code);
		look_up(p, code, REF_NONE);
		mpz_divexact_ui(code, node->code, 2);
		look_up(p, code, REF_NONE);
		mpz_set_ui(code, 1);
		mpz_mul_2exp(code, code, 65 + i);
		mpz_add(code, code, node->code);
		look_up(p, code, REF_NONE);
	}
	mpz_clear(code);
}

static void codes_find_their_nodes(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	struct pair p;
	mpz_t before;

	mpz_init(before);
	pair_init(&p, engine, 41);
	random_tree(&p, 1500, 2); /* the deepest have codes that are kept as factors */
	for (unsigned round = 0; round < 12; round++) {
		uint32_t node = 1 + (uint32_t)pair_random(&p, p.ref.n - 1);

		look_up_all(&p);
		look_up_others(&p);
		if (!p.ref.nodes[node].live)
			continue;
		mpz_set(before, p.ref.nodes[node].code);
		if (round % 4 == 3)
			pair_remove(&p, node);
		else
			pair_move(&p, node, pair_random_node(&p, true));
		if (!p.ref.nodes[node].live || mpz_cmp(before, p.ref.nodes[node].code) != 0)
			look_up(&p, before, REF_NONE);
		pair_add(&p, (uint32_t)p.ref.n, 0, round % 2);
	}
	look_up_all(&p);
	mpz_clear(before);
	pair_finish(&p);
	pfs_engine_close(engine);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {ON_ALL(codes_find_their_nodes)};

	return RUN_ON_ALL(tests, argc, argv);
}
