/* SPDX-License-Identifier: MIT */
/* Prefix trees: one table of cases for each shape, on the host, on the stand-in of a device and,
 * where there is one, on a device, each answer compared with a sorted array's and a hash
 * table's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/prefix.h"
#include "gpu/relation.h"
#include "each_util.h"
#include "tests/ref/key_lists.h"
#include "tests/ref/random.h"

static const uint64_t seed = 0x5eed0003;

static bool is_long(void)
{
	const char *word = getenv("PFS_LONG");

	return word && *word == '1';
}

/* An index and what it must hold. */
struct prefix_test {
	struct pfs_run run;
	struct pfs_prefix_shape shape;
	struct pfs_prefix *index;
	struct ref_lists ref;
};

/* A batch of keys of the reference, as pfs_prefix wants them. */
struct batch {
	uint8_t *bytes;
	uint64_t *at;
	uint64_t *payloads, *got;
	uint32_t *places;
	size_t *numbers; /* of the reference */
	size_t n, room, size;
};

static void *room_for(size_t n, size_t element_size)
{
	void *memory = calloc(n + 1, element_size);

	assert_non_null(memory);
	if (!memory)
		abort(); /* for the analyzer: the line above does not come back */
	return memory;
}

static struct batch batch_make(size_t n, size_t key_bytes)
{
	return (struct batch){
		.bytes = room_for(n, key_bytes),
		.at = room_for(n + 1, sizeof(uint64_t)),
		.payloads = room_for(n, sizeof(uint64_t)),
		.got = room_for(n, sizeof(uint64_t)),
		.places = room_for(n, sizeof(uint32_t)),
		.numbers = room_for(n, sizeof(size_t)),
		.room = n,
	};
}

static void batch_free(struct batch *b)
{
	free(b->bytes);
	free(b->at);
	free(b->payloads);
	free(b->got);
	free(b->places);
	free(b->numbers);
}

static void batch_clear(struct batch *b)
{
	b->n = b->size = 0;
}

static void batch_add(struct batch *b, const struct ref_lists *ref, size_t number, uint64_t payload)
{
	const struct ref_key *key = &ref->keys[number];

	assert_true(b->n < b->room);
	if (key->len)
		memcpy(b->bytes + b->size, key->bytes, key->len);
	b->numbers[b->n] = number;
	b->payloads[b->n] = payload;
	b->size += key->len;
	b->at[++b->n] = b->size;
}

/* Integers are kept in the reference with the highest byte first. */
static struct pfs_prefix_keys keys_of(const struct prefix_test *t, struct batch *b)
{
	if (t->shape.type == PFS_PREFIX_BYTES)
		return (struct pfs_prefix_keys){b->bytes, b->at, b->n};
	for (size_t i = 0; i < b->n; i++) {
		const uint8_t *key = t->ref.keys[b->numbers[i]].bytes;

		if (t->shape.type == PFS_PREFIX_U32) {
			uint32_t word;

			memcpy(&word, key, sizeof(word));
			word = __builtin_bswap32(word);
			memcpy(b->bytes + i * sizeof(word), &word, sizeof(word));
		} else {
			uint64_t word;

			memcpy(&word, key, sizeof(word));
			word = __builtin_bswap64(word);
			memcpy(b->bytes + i * sizeof(word), &word, sizeof(word));
		}
	}
	return (struct pfs_prefix_keys){b->bytes, NULL, b->n};
}

static void insert(struct prefix_test *t, struct batch *b)
{
	const struct pfs_prefix_keys keys = keys_of(t, b);
	uint64_t n;

	assert_int_equal(pfs_prefix_insert(&t->run, t->index, &n, &keys, b->payloads), 0);
	assert_int_equal(n, b->n);
	for (size_t i = 0; i < b->n; i++)
		ref_lists_add(&t->ref, b->numbers[i], b->payloads[i]);
}

static void take_out(struct prefix_test *t, struct batch *b)
{
	const struct pfs_prefix_keys keys = keys_of(t, b);
	uint64_t n, wanted = 0;

	assert_int_equal(pfs_prefix_remove(&t->run, t->index, &n, &keys, b->payloads), 0);
	for (size_t i = 0; i < b->n; i++)
		wanted += ref_lists_remove(&t->ref, b->numbers[i], b->payloads[i]);
	assert_int_equal(n, wanted);
}

static void assert_gets(struct prefix_test *t, struct batch *b, enum pfs_prefix_traversal traversal)
{
	const struct pfs_prefix_keys keys = keys_of(t, b);

	assert_int_equal(pfs_prefix_get(&t->run, t->index, b->got, b->places, &keys, traversal), 0);
	for (size_t i = 0; i < b->n; i++) {
		const struct ref_key *key = &t->ref.keys[b->numbers[i]];

		if (key->n == 0) {
			assert_int_equal(b->places[i], PFS_PREFIX_NONE);
			continue;
		}
		assert_int_not_equal(b->places[i], PFS_PREFIX_NONE);
		assert_int_equal(b->got[i], key->payloads[0]);
	}
}

static void assert_every_traversal(struct prefix_test *t, struct batch *b)
{
	assert_gets(t, b, PFS_PREFIX_SERIAL);
	if (t->shape.layout == PFS_PREFIX_COMPACT)
		return;
	assert_gets(t, b, PFS_PREFIX_SPECULATIVE);
	assert_gets(t, b, PFS_PREFIX_HIERARCHICAL);
	assert_gets(t, b, PFS_PREFIX_PARALLEL);
}

/* From the first key that is not less than this one to the end, or so many payloads. */
static void assert_order_from(struct prefix_test *t, struct batch *b, size_t number, size_t most)
{
	const struct ref_key *from = &t->ref.keys[number];
	struct pfs_prefix_entry entry;
	struct pfs_prefix_keys key;
	size_t at;
	int more;

	batch_clear(b);
	batch_add(b, &t->ref, number, 0);
	key = keys_of(t, b);
	at = ref_lists_seek(&t->ref, from->bytes, from->len);
	more = pfs_prefix_seek(t->index, &entry, &key);
	for (; at < t->ref.n_keys && most; at++) {
		const struct ref_key *wanted = &t->ref.keys[at];

		for (size_t i = 0; i < wanted->n && most; i++, most--) {
			assert_int_equal(more, 1);
			assert_int_equal(entry.payload, wanted->payloads[i]);
			assert_int_equal(entry.len, wanted->len);
			if (wanted->len)
				assert_memory_equal(entry.key, wanted->bytes, wanted->len);
			more = pfs_prefix_next(t->index, &entry);
		}
	}
	if (at == t->ref.n_keys && most)
		assert_int_equal(more, 0);
}

static void assert_scan(struct prefix_test *t, const uint8_t *prefix, uint32_t len)
{
	struct pfs_prefix_list list;
	size_t n = 0;

	assert_int_equal(pfs_prefix_scan(&t->run, t->index, &list, prefix, len), 0);
	for (size_t k = ref_lists_seek(&t->ref, prefix, len); k < t->ref.n_keys; k++) {
		const struct ref_key *key = &t->ref.keys[k];

		if (key->len < len || (len && memcmp(key->bytes, prefix, len) != 0))
			break;
		for (size_t i = 0; i < key->n; i++, n++) {
			assert_true(n < list.n);
			assert_int_equal(list.payloads[n], key->payloads[i]);
		}
	}
	assert_int_equal(list.n, n);
	pfs_prefix_list_free(&t->run, &list);
}

static void assert_sound(struct prefix_test *t)
{
	struct pfs_prefix_info info;

	assert_int_equal(pfs_prefix_verify(t->index), 0);
	pfs_prefix_describe(t->index, &info);
	assert_int_equal(info.n_keys, t->ref.n_present);
	assert_int_equal(info.n_payloads, t->ref.n_payloads);
	if (info.n_keys == 0 && t->shape.layout == PFS_PREFIX_ON_DEMAND) {
		assert_int_equal(info.n_partitions, 1);
		assert_int_equal(info.n_blocks, 1);
		assert_int_equal(info.n_nodes, 1);
	}
	if (info.n_keys == 0 && t->shape.layout == PFS_PREFIX_COMPACT)
		assert_int_equal(info.n_nodes, 0);
}

static void begin(struct prefix_test *t)
{
	assert_int_equal(pfs_prefix_create(&t->run, &t->index, &t->shape), 0);
}

static void end(struct prefix_test *t)
{
	pfs_prefix_close(&t->run, t->index);
	ref_lists_free(&t->ref);
}

/* ---- the shapes ---- */

static const struct pfs_prefix_shape shapes[] = {
	{PFS_PREFIX_BYTES, PFS_PREFIX_ON_DEMAND, 8, 1, 0},
	{PFS_PREFIX_BYTES, PFS_PREFIX_ON_DEMAND, 4, 0, 0},
	{PFS_PREFIX_BYTES, PFS_PREFIX_ON_DEMAND, 3, 2, 2},
	{PFS_PREFIX_BYTES, PFS_PREFIX_ON_DEMAND, 1, 5, 1},
	{PFS_PREFIX_BYTES, PFS_PREFIX_ON_DEMAND, 7, 300, 0},
	{PFS_PREFIX_BYTES, PFS_PREFIX_SIXTEEN, 8, 2, 3},
	{PFS_PREFIX_BYTES, PFS_PREFIX_SIXTEEN, 4, 1, 4},
	{PFS_PREFIX_BYTES, PFS_PREFIX_SIXTEEN, 5, 3, 1000},
	{PFS_PREFIX_BYTES, PFS_PREFIX_SIXTEEN, 2, 0, 0},
	{PFS_PREFIX_BYTES, PFS_PREFIX_COMPACT, 8, 0, 0},
	{PFS_PREFIX_BYTES, PFS_PREFIX_COMPACT, 4, 0, 0},
	{PFS_PREFIX_BYTES, PFS_PREFIX_COMPACT, 3, 0, 0},
	{PFS_PREFIX_BYTES, PFS_PREFIX_COMPACT, 7, 0, 0},
	{PFS_PREFIX_BYTES, PFS_PREFIX_COMPACT, 6, 0, 0},
	{PFS_PREFIX_BYTES, PFS_PREFIX_COMPACT, 1, 0, 0},
};

static const struct pfs_prefix_shape integer_shapes[] = {
	{PFS_PREFIX_U32, PFS_PREFIX_ON_DEMAND, 4, 0, 0},
	{PFS_PREFIX_U32, PFS_PREFIX_SIXTEEN, 3, 4, 2},
	{PFS_PREFIX_U32, PFS_PREFIX_COMPACT, 4, 0, 0},
	{PFS_PREFIX_U64, PFS_PREFIX_ON_DEMAND, 5, 3, 0},
	{PFS_PREFIX_U64, PFS_PREFIX_SIXTEEN, 8, 0, 0},
	{PFS_PREFIX_U64, PFS_PREFIX_COMPACT, 8, 0, 0},
	{PFS_PREFIX_U64, PFS_PREFIX_COMPACT, 5, 0, 0},
};

/* ---- every order of a few keys ---- */

#define FEW 7

struct orders {
	struct prefix_test *t;
	struct batch one, all;
	unsigned most;
	size_t order[FEW];
	uint64_t n_sequences;
};

static void assert_all(struct orders *o)
{
	batch_clear(&o->all);
	for (size_t k = 0; k < o->t->ref.n_keys; k++)
		batch_add(&o->all, &o->t->ref, k, 0);
	assert_every_traversal(o->t, &o->all);
	for (size_t k = 0; k < o->t->ref.n_keys; k++) {
		const struct ref_key *key = &o->t->ref.keys[k];

		assert_order_from(o->t, &o->one, k, SIZE_MAX);
		if (o->t->shape.type == PFS_PREFIX_BYTES)
			assert_scan(o->t, key->bytes, key->len);
	}
	assert_sound(o->t);
}

static void one_pair(struct orders *o, size_t number, bool removes)
{
	batch_clear(&o->one);
	batch_add(&o->one, &o->t->ref, number, number * 10);
	(removes ? take_out : insert)(o->t, &o->one);
}

/* Inserted in this order; removed in an order of its own. */
static void one_sequence(struct orders *o, unsigned length)
{
	uint64_t mixed = random_mix(o->n_sequences++);

	for (unsigned i = 0; i < length; i++)
		one_pair(o, o->order[i], false);
	assert_all(o);
	for (unsigned left = length; left; left--) {
		unsigned i = (unsigned)(mixed % left);
		size_t number = o->order[i];

		mixed /= left;
		one_pair(o, number, true);
		o->order[i] = o->order[left - 1];
		o->order[left - 1] = number;
		if (left == (length + 1) / 2)
			assert_all(o);
	}
	assert_sound(o->t);
}

static void every_order(struct orders *o, unsigned length, unsigned used)
{
	size_t order[FEW];

	memcpy(order, o->order, sizeof(order));
	one_sequence(o, length);
	memcpy(o->order, order, sizeof(order));
	for (size_t k = 0; k < o->t->ref.n_keys && length < o->most; k++) {
		if (used >> k & 1)
			continue;
		o->order[length] = k;
		every_order(o, length + 1, used | 1u << k);
		memcpy(o->order, order, sizeof(order));
	}
}

static void orders_of(struct prefix_test *t, const uint8_t *const *keys, const uint32_t *lens,
		      size_t n)
{
	/* The shape that is checked most has sequences of six, the others of fewer. */
	bool is_first = t->shape.bits == 4 && t->shape.type == PFS_PREFIX_BYTES;
	struct orders o = {.t = t, .one = batch_make(1, 16), .all = batch_make(FEW, 16)};

	o.most = t->run.on != PFS_ENGINE_HOST ? 2 : is_long() || is_first ? 6 : 4;
	ref_lists_make(&t->ref, keys, lens, n);
	begin(t);
	every_order(&o, 0, 0);
	end(t);
	batch_free(&o.one);
	batch_free(&o.all);
}

static void exhaustive(struct prefix_test *t)
{
	static const uint8_t *const keys[] = {(const uint8_t *)"",	  (const uint8_t *)"\0",
					      (const uint8_t *)"a",	  (const uint8_t *)"a\0",
					      (const uint8_t *)"a\0\0", (const uint8_t *)"ab\xff",
					      (const uint8_t *)"\xff"};
	static const uint32_t lens[] = {0, 1, 1, 2, 3, 3, 1};
	static const uint8_t *const integers[] = {
		(const uint8_t *)"\0\0\0\0\0\0\0\0",
		(const uint8_t *)"\0\0\0\1\0\0\0\1",
		(const uint8_t *)"\0\0\0\2\0\0\0\1",
		(const uint8_t *)"\x80\0\0\0\0\0\0\0",
		(const uint8_t *)"\x80\0\0\1\x10\0\0\0",
		(const uint8_t *)"\xff\xff\xff\xfe\xff\xff\xff\xff",
		(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff",
	};
	static const uint32_t fours[] = {4, 4, 4, 4, 4, 4, 4}, eights[] = {8, 8, 8, 8, 8, 8, 8};

	if (t->shape.type == PFS_PREFIX_BYTES)
		orders_of(t, keys, lens, FEW);
	else
		orders_of(t, integers, t->shape.type == PFS_PREFIX_U32 ? fours : eights, FEW);
}

/* ---- many random operations ---- */

#define POOL	  3000u
#define POOL_KEY  24u
#define MOST	  500u /* in a batch */
#define AT_ONCE	  24u  /* asked of all traversals */

struct pool {
	uint8_t bytes[POOL][POOL_KEY];
	const uint8_t *keys[POOL];
	uint32_t lens[POOL];
};

/* Few different bytes, so that keys share beginnings. */
static void make_pool(struct pool *pool, const struct prefix_test *t, uint64_t *state)
{
	static const uint8_t letters[] = {0, 1, 'a', 0x7f, 0x80, 0xfe, 0xff};

	for (size_t k = 0; k < POOL; k++) {
		pool->keys[k] = pool->bytes[k];
		pool->lens[k] = t->shape.type == PFS_PREFIX_U32	  ? 4
				: t->shape.type == PFS_PREFIX_U64 ? 8
								  : random_below(state, POOL_KEY);
		for (size_t i = 0; i < POOL_KEY; i++)
			pool->bytes[k][i] = letters[random_below(
				state, k % 3 ? 2 : (uint32_t)PFS_COUNT(letters))];
	}
}

static void random_batch(struct prefix_test *t, struct batch *b, uint64_t *state, size_t n)
{
	bool removes = random_below(state, 10) < (t->ref.n_present > POOL / 3 ? 8 : 3);

	batch_clear(b);
	for (size_t i = 0; i < n; i++) {
		size_t number = random_below(state, (uint32_t)t->ref.n_keys);
		const struct ref_key *key = &t->ref.keys[number];
		uint64_t payload = random_below(state, 5);

		if (removes && key->n && payload)
			payload = key->payloads[random_below(state, (uint32_t)key->n)];
		batch_add(b, &t->ref, number, payload);
	}
	(removes ? take_out : insert)(t, b);
}

static void look_around(struct prefix_test *t, struct batch *b, uint64_t *state)
{
	size_t any = random_below(state, (uint32_t)t->ref.n_keys);
	const struct ref_key *key = &t->ref.keys[any];

	batch_clear(b);
	for (size_t i = 0; i < MOST; i++)
		batch_add(b, &t->ref, random_below(state, (uint32_t)t->ref.n_keys), 0);
	assert_gets(t, b, PFS_PREFIX_SERIAL);
	batch_clear(b);
	for (size_t i = 0; i < AT_ONCE; i++)
		batch_add(b, &t->ref, random_below(state, (uint32_t)t->ref.n_keys), 0);
	assert_every_traversal(t, b);
	assert_order_from(t, b, any, 100);
	if (t->shape.type == PFS_PREFIX_BYTES)
		assert_scan(t, key->bytes, key->len / 2);
}

/* The index goes out to bytes and comes back as another. */
static void page_out_and_in(struct prefix_test *t)
{
	struct pfs_prefix *back;
	uint8_t *bytes;
	size_t size;

	assert_int_equal(pfs_prefix_write(&t->run, t->index, &bytes, &size), 0);
	pfs_prefix_close(&t->run, t->index);
	t->index = NULL;
	assert_int_equal(pfs_prefix_read(&t->run, &back, bytes, size), 0);
	t->index = back;
	free(bytes);
}

/* The last payload of many keys. */
static void take_out_some(struct prefix_test *t, struct batch *b)
{
	batch_clear(b);
	for (size_t k = 0; k < t->ref.n_keys && b->n < b->room; k++) {
		const struct ref_key *key = &t->ref.keys[k];

		if (key->n)
			batch_add(b, &t->ref, k, key->payloads[key->n - 1]);
	}
	take_out(t, b);
}

static void random_operations(struct prefix_test *t)
{
	struct pool *pool = room_for(1, sizeof(*pool));
	struct batch b = batch_make(MOST, POOL_KEY);
	uint64_t state = seed;
	unsigned rounds =
		is_long() ? 1000 : 40; /* the whole pool some eighty times, in each of 22 shapes */

	make_pool(pool, t, &state);
	ref_lists_make(&t->ref, pool->keys, pool->lens, POOL);
	begin(t);
	for (unsigned round = 0; round < rounds; round++) {
		random_batch(t, &b, &state, 1 + random_below(&state, MOST - 1));
		look_around(t, &b, &state);
		if (round % 16 == 0)
			assert_sound(t);
		if (round % 32 == 31)
			page_out_and_in(t);
		if (round % 32 == 15)
			pfs_prefix_page_out(&t->run, t->index);
	}
	assert_order_from(t, &b, 0, SIZE_MAX);
	while (t->ref.n_payloads)
		take_out_some(t, &b);
	assert_sound(t);
	end(t);
	batch_free(&b);
	free(pool);
}

/* ---- keys that are made to hurt ---- */

enum { LONG = 4000, CHAIN = 120 };

static void adversarial(struct prefix_test *t)
{
	static uint8_t shared[8][PFS_PREFIX_KEY_MAX], zeros[CHAIN], ones[CHAIN];
	const uint8_t *keys[8 + 2 * CHAIN];
	uint32_t lens[8 + 2 * CHAIN];
	struct batch b = batch_make(PFS_COUNT(keys), PFS_PREFIX_KEY_MAX);
	size_t n = 0;

	if (t->shape.type != PFS_PREFIX_BYTES) {
		batch_free(&b);
		return;
	}
	memset(ones, 0xff, sizeof(ones));
	for (size_t i = 0; i < 8; i++, n++) {
		memset(shared[i], 'x', sizeof(shared[i]));
		shared[i][LONG] = (uint8_t)(i * 36);
		keys[n] = shared[i];
		lens[n] = i < 4 ? LONG + 1 : i < 6 ? PFS_PREFIX_KEY_MAX : LONG - (uint32_t)i;
	}
	for (uint32_t i = 0; i < CHAIN; i++) { /* each a prefix of the next */
		keys[n] = zeros;
		lens[n++] = i;
		keys[n] = ones;
		lens[n++] = i + 1;
	}
	ref_lists_make(&t->ref, keys, lens, n);
	begin(t);
	for (size_t k = 0; k < t->ref.n_keys; k++) { /* every second, from both ends */
		batch_add(&b, &t->ref, k % 2 ? k : t->ref.n_keys - 1 - k, k);
		if (b.n < 40 && k + 1 < t->ref.n_keys)
			continue;
		insert(t, &b);
		batch_clear(&b);
	}
	for (size_t k = 0; k < t->ref.n_keys; k++)
		batch_add(&b, &t->ref, k, 0);
	assert_every_traversal(t, &b);
	assert_order_from(t, &b, 0, SIZE_MAX);
	assert_scan(t, shared[0], LONG - 3);
	assert_scan(t, zeros, 50);
	assert_sound(t);
	page_out_and_in(t);
	batch_clear(&b);
	for (size_t k = 0; k < t->ref.n_keys; k += 2)
		batch_add(&b, &t->ref, k, t->ref.keys[k].n ? t->ref.keys[k].payloads[0] : 0);
	take_out(t, &b);
	assert_sound(t);
	assert_order_from(t, &b, 0, SIZE_MAX);
	end(t);
	batch_free(&b);
}

/* ---- for every shape ---- */

static void for_shapes(void (*cases)(struct prefix_test *t), enum index_place place)
{
	struct prefix_test t = {.run = run_at(place, 2)};

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (size_t i = 0; i < PFS_COUNT(shapes) + PFS_COUNT(integer_shapes); i++) {
		t.shape = i < PFS_COUNT(shapes) ? shapes[i] : integer_shapes[i - PFS_COUNT(shapes)];
		cases(&t);
	}
	assert_true(place != ON_STAND_IN || stand_in_operators.indexed);
	pfs_operators_close(t.run.operators);
}

#define CASES(name) ON_EACH(name, for_shapes, name)

CASES(exhaustive)
CASES(random_operations)
CASES(adversarial)

/* With an argument, a pattern, only the tests that match it. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		EACH(exhaustive),
		EACH(random_operations),
		EACH(adversarial),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
