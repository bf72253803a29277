/* SPDX-License-Identifier: MIT */
/* tests/unit/store_model.h - a run of groups that touch everything a store has, and a digest of all
 * that it holds, so that a store can be compared with what it must be after group g. */
#ifndef PFS_TESTS_STORE_MODEL_H
#define PFS_TESTS_STORE_MODEL_H

#include <limits.h>

#include "tests/ref/random.h"
#include "tests/unit/store_util.h"

#define MODEL_NODES    40
#define MODEL_CHUNKS   6
#define MODEL_PRIME(i) ((UINT64_C(1) << 32) + 1 + (uint64_t)(i))

static inline uint64_t model_random(uint64_t seed)
{
	return random_mix((seed + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

#define MODEL_TRY(call)                                                                            \
	do {                                                                                       \
		int model_error = (call);                                                          \
		if (model_error)                                                                   \
			return model_error;                                                        \
	} while (0)

/* One node's part of group g: there, changed or gone, with content, an attribute or a source. */
static inline int model_change(struct pfs_store *store, uint64_t g, uint64_t step)
{
	static uint8_t data[PFS_CHUNK_SIZE];
	uint64_t r = model_random(g * 1000 + step);
	uint64_t prime = MODEL_PRIME(r % MODEL_NODES);
	size_t len = r >> 40 & 1 ? PFS_CHUNK_SIZE : (r >> 41) % 3000;
	struct pfs_node_record node = file_record(prime, (uint32_t)(r % MODEL_NODES) + 1, "a name");
	struct pfs_attr_record attr = {.name = r & 256 ? "colour" : "weight", .name_len = 6};
	bool left;

	if (r >> 20 & 1 && step % 8 == 0) {
		MODEL_TRY(pfs_store_remove_node(store, prime));
		MODEL_TRY(pfs_store_add_orphan(store, prime));
		return pfs_store_reap_orphan(store, &left, prime, 1000);
	}
	node.size = (int64_t)g;
	node.flags = PFS_NODE_LINKED | PFS_NODE_ATTRS;
	MODEL_TRY(pfs_store_put_node(store, &node));
	(void)memset(data, (int)(r >> 50), sizeof(data));
	MODEL_TRY(pfs_store_put_chunk(store, prime, (r >> 32) % MODEL_CHUNKS, data, len));
	attr.type = PFS_ATTR_INTEGER;
	attr.integer = (int64_t)r;
	MODEL_TRY(pfs_store_put_attr(store, prime, &attr));
	return pfs_store_put_source(store, &(struct pfs_source_record){.prime = prime,
								       .root = 1,
								       .path = "original",
								       .path_len = 8,
								       .size = (int64_t)g});
}

/* Writes group g (from 1), without commit; the root's size says g. */
static inline int model_group(struct pfs_store *store, uint64_t g)
{
	const struct pfs_node_record root = {
		.prime = PFS_ROOT_PRIME, .mode = S_IFDIR | 0755, .name = "", .size = (int64_t)g};
	uint64_t steps = 1 + model_random(g) % 12, i, first, end;
	uint32_t id;

	MODEL_TRY(pfs_store_put_node(store, &root));
	MODEL_TRY(pfs_store_put_source_root(
		store, &id, &(struct pfs_source_root){.id = 1, .path = "/original", .ino = g}));
	if (g == 1)
		MODEL_TRY(pfs_store_reserve(store, &first, &end, PFS_PRIME_OTHER, 1000));
	for (i = 0; i < steps; i++)
		MODEL_TRY(model_change(store, g, i));
	return 0;
}

struct model_state {
	struct pfs_store *store;
	uint64_t group, digest;
	int error;
};

static inline void model_mix(struct model_state *state, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	size_t i;

	for (i = 0; i < len; i++)
		state->digest = (state->digest ^ bytes[i]) * UINT64_C(0x100000001b3);
}

static inline int model_see_attr(void *arg, const struct pfs_attr_record *attr)
{
	model_mix(arg, attr->name, attr->name_len);
	model_mix(arg, &attr->integer, sizeof(attr->integer));
	return 0;
}

static inline int model_see_content(struct model_state *state, uint64_t prime)
{
	uint8_t data[PFS_CHUNK_SIZE];
	uint64_t n = 0, from = 0;
	size_t len, stored;
	int error;

	while (!(
		error = pfs_store_next_chunk(state->store, &n, &stored, prime, from, UINT64_MAX))) {
		MODEL_TRY(pfs_store_get_chunk(state->store, data, &len, prime, n));
		model_mix(state, &n, sizeof(n));
		model_mix(state, data, len);
		if (stored != len)
			return -EUCLEAN;
		from = n + 1;
	}
	return error == -ENOENT ? 0 : error;
}

static inline int model_see_node(void *arg, const struct pfs_node_record *node)
{
	struct model_state *state = arg;
	struct pfs_source_record source;
	char path[PATH_MAX];

	model_mix(state, &node->prime, sizeof(node->prime));
	model_mix(state, &node->size, sizeof(node->size));
	model_mix(state, node->name, node->name_len);
	if (node->prime == PFS_ROOT_PRIME) {
		state->group = (uint64_t)node->size;
		return 0;
	}
	MODEL_TRY(model_see_content(state, node->prime));
	MODEL_TRY(pfs_store_scan_attrs(state->store, node->prime, model_see_attr, state));
	MODEL_TRY(pfs_store_get_source(state->store, &source, path, node->prime));
	model_mix(state, &source.size, sizeof(source.size));
	return 0;
}

/* *group = the last group that the store holds, *digest = of all that it holds. */
static inline int model_look(struct pfs_store *store, uint64_t *group, uint64_t *digest)
{
	struct model_state state = {.store = store, .digest = UINT64_C(0xcbf29ce484222325)};

	MODEL_TRY(pfs_store_scan_nodes(store, 0, UINT64_MAX, model_see_node, &state));
	*group = state.group;
	*digest = state.digest;
	return 0;
}

/* The seed of what is random in this run: PFS_SEED, or `usual`; printed. */
static inline uint64_t model_seed(uint64_t usual)
{
	const char *text = getenv("PFS_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 10) : usual;

	print_message("PFS_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static inline bool long_mode(void)
{
	const char *text = getenv("PFS_LONG");

	return text && strcmp(text, "1") == 0;
}

#endif
