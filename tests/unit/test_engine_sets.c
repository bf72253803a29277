/* SPDX-License-Identifier: MIT */
/* What is read out of sets of nodes, on every engine: many subtrees at once, common ancestors,
 * paths; sets of every size around the blocks that the engines work in. */
#include "fs/image/names.h"
#include "stand_in_util.h"

/* ---- many at a time ---- */

static void batches(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	struct pfs_bitmap *sets[PFS_SUBTREES_MAX + 1] = {NULL};
	uint32_t slots[PFS_SUBTREES_MAX + 1];
	bool expected[1300];
	struct pair p;

	pair_init(&p, engine, 3);
	random_tree(&p, 1200, 6);
	for (size_t i = 0; i < PFS_COUNT(slots); i++)
		slots[i] = pair_random_node(&p, i % 4);
	assert_int_equal(pfs_engine_subtrees(engine, sets, slots, PFS_COUNT(slots)), -E2BIG);
	assert_int_equal(pfs_engine_subtrees(engine, sets, slots, 0), 0);
	slots[40] = 4000000;
	assert_int_equal(pfs_engine_subtrees(engine, sets, slots, 41), -ENOENT);
	assert_null(sets[0]);
	slots[40] = slots[0];
	for (size_t n = 1; n <= PFS_SUBTREES_MAX; n = n * 2 + (n > 1 && n < 32)) {
		pfs_engine_use_ranges(engine, n % 2);
		assert_int_equal(pfs_engine_subtrees(engine, sets, slots, n), 0);
		for (size_t k = 0; k < n; k++) {
			ref_subtree(&p.ref, expected, slots[k]);
			check_set(&p, sets[k], expected);
		}
	}
	pair_finish(&p);
	pfs_engine_close(engine);
}

/* ---- the deepest common ancestor of many ---- */

static void common_ancestors(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	uint32_t slots[1100], found, expected;
	struct pair p;

	pair_init(&p, engine, 8);
	random_tree(&p, 1000, 3);
	assert_int_equal(pfs_engine_common_ancestor(engine, &found, slots, 0), -EINVAL);
	for (unsigned round = 0; round < 60; round++) {
		uint32_t top = pair_random_node(&p, true);
		size_t n = 1 + pair_random(&p, round % 3 ? 5 : 300), taken = 0;

		/* Mostly from one subtree, so that the answer is not always the root. */
		for (size_t i = 0; i < n; i++) {
			uint32_t x = pair_random_node(&p, false);

			if (round % 4 == 0 ||
			    mpz_divisible_p(p.ref.nodes[x].code, p.ref.nodes[top].code))
				slots[taken++] = x;
		}
		slots[taken++] = round % 5 ? pair_random_node(&p, false) : top;
		if (round % 7 == 0)
			slots[taken] = slots[taken - 1], taken++;
		expected = ref_common_ancestor(&p.ref, slots, taken);
		assert_int_equal(pfs_engine_common_ancestor(engine, &found, slots, taken), 0);
		assert_int_equal(found, expected);
	}
	slots[0] = 4000000;
	assert_int_equal(pfs_engine_common_ancestor(engine, &found, slots, 3), -ENOENT);
	pair_finish(&p);
	pfs_engine_close(engine);
}

/* ---- an engine with nothing in it ---- */

static void empty(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	const uint64_t none[1] = {0};
	const uint32_t nowhere[1] = {PFS_NO_SLOT};
	struct pfs_bitmap *set;
	uint64_t count = 9, wrong = 9;
	uint32_t slot;
	char *code;

	for (size_t n = 0; n < 2; n++) { /* no slot, or one that is not in use */
		if (n == 1)
			assert_int_equal(pfs_engine_load(engine, nowhere, none, n), -EINVAL);
		else
			assert_int_equal(pfs_engine_load(engine, nowhere, none, n), 0);
		assert_int_equal(pfs_engine_subtree(engine, &set, 0), -ENOENT);
		assert_int_equal(pfs_engine_parents(engine, &set, 0), -ENOENT);
		assert_int_equal(pfs_engine_parent(engine, &slot, 0), -ENOENT);
		assert_int_equal(pfs_engine_code(engine, &code, 0), -ENOENT);
		assert_int_equal(pfs_engine_node(engine, &slot, "2"), -ENOENT);
		assert_int_equal(pfs_bitmap_of_slots(engine, &set, NULL, 0), 0);
		assert_int_equal(pfs_bitmap_count(set, &count), 0);
		assert_int_equal(count, 0);
		pfs_bitmap_free(set);
		assert_int_equal(pfs_engine_check(engine, &wrong), 0);
		assert_int_equal(wrong, 0);
	}
	pfs_engine_close(engine);
}

/* ---- paths ---- */

/* A tree with names of its own: as long as names get, and a path that is longer than any call
 * takes. */
struct named {
	struct pfs_names_view view;
	uint8_t *heap;
	uint32_t *place, *parent;
	uint64_t *prime;
	char **name;
	size_t n;
};

static void name_node(struct named *t, uint32_t slot, size_t len)
{
	size_t at = t->view.heap_size;

	t->name[slot] = malloc(len + 1);
	assert_non_null(t->name[slot]);
	for (size_t i = 0; i < len; i++) /* every byte that a name can have */
		t->name[slot][i] = (char)(1 + (slot * 31 + i * 7) % 255);
	for (size_t i = 0; i < len; i++)
		if (t->name[slot][i] == '/')
			t->name[slot][i] = '\n';
	t->name[slot][len] = '\0';
	t->place[slot] = (uint32_t)(at >> 2);
	t->heap[at] = (uint8_t)len;
	memcpy(t->heap + at + 1, t->name[slot], len);
	t->view.heap_size = (at + 1 + len + 3) & ~(size_t)3;
}

static void make_named(struct named *t, size_t n)
{
	*t = (struct named){.n = n};
	t->heap = calloc(n, 260);
	t->place = calloc(n, sizeof(*t->place));
	t->parent = calloc(n, sizeof(*t->parent));
	t->prime = calloc(n, sizeof(*t->prime));
	t->name = calloc(n, sizeof(*t->name));
	assert_true(t->heap && t->place && t->parent && t->prime && t->name);
	for (uint32_t i = 0; i < n; i++) {
		/* A chain of 300 directories; files and directories along it. */
		bool chain = i < 300;

		t->parent[i] = i == 0 ? PFS_NO_SLOT : chain ? i - 1 : i * 7 % 300;
		t->prime[i] = i == 0		    ? 2
			      : chain || i % 3 == 0 ? 2 * i + 1
						    : (UINT64_C(1) << 32) + 2 * i + 1;
		name_node(t, i, i == 0 ? 0 : chain || i % 5 == 0 ? 255 : 1 + i % 254);
	}
	t->view.heap = t->heap;
	t->view.place = t->place;
	t->view.n_slots = n;
	t->view.place_shift = 2;
	t->view.generation = 1;
}

static void free_named(struct named *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->name[i]);
	free(t->heap);
	free(t->place);
	free(t->parent);
	free(t->prime);
	free(t->name);
}

static size_t path_of(const struct named *t, char *out, uint32_t slot)
{
	size_t len = 0;

	if (t->parent[slot] == PFS_NO_SLOT)
		return 0;
	len = path_of(t, out, t->parent[slot]);
	out[len++] = '/';
	return (size_t)(stpcpy(out + len, t->name[slot]) - out);
}

static const struct named *sorted; /* for qsort */

static int by_path(const void *a, const void *b)
{
	static char x[100000], y[100000];

	x[path_of(sorted, x, *(const uint32_t *)a)] = '\0';
	y[path_of(sorted, y, *(const uint32_t *)b)] = '\0';
	return ref_compare_paths(x, y);
}

/* The lines that a listing has to have. */
struct expecting {
	const struct named *t;
	const uint32_t *slots;
	size_t n, at, end; /* fn says no before line `end` */
	unsigned flags;
};

static size_t make_line(const struct expecting *e, char *line)
{
	uint32_t slot = e->slots[e->at];
	size_t len = 0, start;

	if (e->flags & PFS_LISTING_PRIMES)
		len = (size_t)sprintf(line, "%llu\t", (unsigned long long)e->t->prime[slot]);
	start = len;
	len += path_of(e->t, line + len, slot);
	if (len == start)
		line[len++] = '/';
	line[len++] = e->flags & PFS_LISTING_ZERO ? '\0' : '\n';
	return len;
}

static int expect_lines(void *arg, const char *bytes, size_t size)
{
	static char line[100100];
	struct expecting *e = arg;

	while (size > 0 && e->at < e->end) { /* whole lines */
		size_t len;

		assert_true(e->at < e->n);
		len = make_line(e, line);
		assert_true(len <= size);
		assert_memory_equal(bytes, line, len);
		bytes += len;
		size -= len;
		e->at++;
	}
	return size ? -EPIPE : 0;
}

/* The listing is these slots' paths, of which the first n are of nodes. */
static int list_until(struct pfs_engine *engine, struct expecting *e, size_t n_slots)
{
	const struct pfs_listing listing = {&e->t->view, e->slots,     n_slots,
					    e->flags,	 expect_lines, e};

	return pfs_engine_list(engine, &listing);
}

static void check_paths(struct pfs_engine *engine, const struct named *t, const uint32_t *slots,
			size_t n, size_t n_slots, unsigned flags)
{
	struct expecting e = {.t = t, .slots = slots, .n = n, .end = SIZE_MAX, .flags = flags};

	assert_int_equal(list_until(engine, &e, n_slots), 0);
	assert_int_equal(e.at, n);
}

static void listings(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	const size_t wanted[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1400};
	uint32_t slots[1500];
	struct named t;
	struct pair p;

	make_named(&t, 1500);
	pair_init(&p, engine, 6); /* for its random numbers */
	assert_int_equal(pfs_engine_load(engine, t.parent, t.prime, t.n), 0);
	for (size_t s = 0; s < PFS_COUNT(wanted); s++) {
		size_t n = 0;

		for (uint32_t i = 0; i < t.n && n < wanted[s]; i++)
			if (pair_random(&p, t.n - i) < wanted[s] - n)
				slots[n++] = i;
		for (unsigned flags = 0; flags < 4; flags++)
			check_paths(engine, &t, slots, n, n, flags);
		sorted = &t;
		qsort(slots, n, sizeof(*slots), by_path);
		for (unsigned flags = 0; flags < 4; flags++)
			check_paths(engine, &t, slots, n, n, flags);
	}
	free_named(&t);
	pair_finish(&p);
	pfs_engine_close(engine);
}

/* Slots that hold no node have no path; names that change are sent again. */
static void listings_and_changes(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	const struct pfs_delta remove = {.op = PFS_DELTA_REMOVE, .slot = 1499};
	const struct pfs_delta rename = {.op = PFS_DELTA_NAME, .slot = 700};
	const uint32_t slots[] = {5, 700, 1498, 1499};
	struct named t;

	make_named(&t, 1500);
	assert_int_equal(pfs_engine_load(engine, t.parent, t.prime, t.n), 0);
	check_paths(engine, &t, slots, 4, 4, 0);
	assert_int_equal(pfs_engine_apply(engine, NULL, &remove, 1), 0);
	check_paths(engine, &t, slots, 3, 4, 0);
	check_paths(engine, &t, slots, 3, 4, PFS_LISTING_PRIMES);
	/* Another name, further on in the heap. */
	free(t.name[700]);
	t.heap = realloc(t.heap, t.view.heap_size + 300);
	assert_non_null(t.heap);
	t.view.heap = t.heap;
	name_node(&t, 700, 99);
	assert_int_equal(pfs_engine_apply(engine, NULL, &rename, 1), 0);
	check_paths(engine, &t, slots, 3, 4, 0);
	/* A load tells of all names at once. */
	free(t.name[5]);
	name_node(&t, 5, 98);
	assert_int_equal(pfs_engine_load(engine, t.parent, t.prime, t.n), 0);
	check_paths(engine, &t, slots, 4, 4, 0);
	t.view.n_slots = 10; /* fewer than the engine knows */
	assert_int_equal(list_until(engine, &(struct expecting){.t = &t, .slots = slots}, 4),
			 -EINVAL);
	assert_int_equal(pfs_engine_send_names(engine, &t.view, 1), -EINVAL);
	free_named(&t);
	pfs_engine_close(engine);
}

/* What fn says ends the listing and is returned; the engine goes on answering. */
static void listings_end(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	const uint32_t slots[] = {5, 700, 1498, 1499};
	struct named t;

	make_named(&t, 1500);
	assert_int_equal(pfs_engine_load(engine, t.parent, t.prime, t.n), 0);
	for (size_t end = 0; end < 4; end++) {
		struct expecting e = {.t = &t, .slots = slots, .n = 4, .end = end};

		assert_int_equal(list_until(engine, &e, 4), -EPIPE);
		assert_int_equal(e.at, end);
	}
	check_paths(engine, &t, slots, 4, 4, 0);
	free_named(&t);
	pfs_engine_close(engine);
}

/* Names are sent a few at a time, some changing meanwhile. */
static void names_in_pieces(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	const struct pfs_delta rename = {.op = PFS_DELTA_NAME, .slot = 5};
	uint32_t slots[1500];
	struct named t;
	int more;

	make_named(&t, 1500);
	t.heap = realloc(t.heap, t.view.heap_size + 300);
	assert_non_null(t.heap);
	t.view.heap = t.heap;
	for (uint32_t i = 0; i < t.n; i++)
		slots[i] = i;
	assert_int_equal(pfs_engine_load(engine, t.parent, t.prime, t.n), 0);
	for (unsigned i = 0; (more = pfs_engine_send_names(engine, &t.view, 1000)) == 1; i++) {
		if (i != 9)
			continue;
		free(t.name[5]);
		name_node(&t, 5, 99);
		assert_int_equal(pfs_engine_apply(engine, NULL, &rename, 1), 0);
		check_paths(engine, &t, slots, 8, 8, 0); /* sends what is left */
		assert_int_equal(pfs_engine_load(engine, t.parent, t.prime, t.n), 0);
	}
	assert_int_equal(more, 0);
	check_paths(engine, &t, slots, t.n, t.n, 0);
	free_named(&t);
	pfs_engine_close(engine);
}

/* ---- names in places of removed ones ---- */

enum { FILES = 20000, NAME_LEN = 40 };

static uint32_t add_name(struct pfs_names *names, uint32_t slot, unsigned round)
{
	char name[NAME_LEN + 1];
	uint32_t place;

	(void)snprintf(name, sizeof(name), "%0*u", NAME_LEN, slot * 10 + round);
	assert_int_equal(pfs_names_add(names, &place, name, NAME_LEN), 0);
	return place;
}

/* Renames a file whose next name takes the place of the one before. */
static void rename_file(struct pfs_engine *engine, struct pfs_names *names, uint32_t *place,
			unsigned *rounds, uint32_t slot)
{
	const struct pfs_delta delta = {.op = PFS_DELTA_NAME, .slot = slot};
	uint32_t before = place[slot];

	pfs_names_remove(names, before);
	place[slot] = add_name(names, slot, ++rounds[slot]);
	assert_int_equal(place[slot], before);
	assert_int_equal(pfs_engine_apply(engine, NULL, &delta, 1), 0);
}

struct numbered {
	const unsigned *rounds;
	uint32_t slot, n;
};

static int expect_names(void *arg, const char *bytes, size_t size)
{
	struct numbered *e = arg;
	char line[NAME_LEN + 8];

	for (size_t len; size; bytes += len, size -= len, e->slot++) {
		len = (size_t)snprintf(line, sizeof(line), "/%0*u\n", NAME_LEN,
				       e->slot * 10 + e->rounds[e->slot]);
		len = e->slot ? len : 2;
		assert_true(e->slot < e->n && len <= size);
		assert_memory_equal(bytes, e->slot ? line : "/\n", len);
	}
	return 0;
}

static void check_names(struct pfs_engine *engine, const struct pfs_names *names,
			const uint32_t *place, const unsigned *rounds, uint32_t n)
{
	struct numbered expected = {rounds, 0, n};
	static uint32_t slots[FILES + 1];
	struct pfs_names_view view;
	const struct pfs_listing listing = {&view, slots, n, 0, expect_names, &expected};

	for (uint32_t i = 0; i < n; i++)
		slots[i] = i;
	pfs_names_view(names, &view);
	view.place = place;
	view.n_slots = n;
	assert_int_equal(pfs_engine_list(engine, &listing), 0);
	assert_int_equal(expected.slot, n);
}

/* The heap is sent whole once; then what changed, in blocks. */
static void names_used_again(void **state)
{
	enum { BLOCK = PFS_BLOCK_ROWS * 4 };
	struct pfs_engine *engine = open_case(state);
	static uint32_t parent[FILES + 1], place[FILES + 1];
	static uint64_t prime[FILES + 1];
	unsigned rounds[FILES + 1] = {0};
	const struct pfs_delta add = {
		.op = PFS_DELTA_ADD, .slot = FILES, .prime = (UINT64_C(1) << 32) + 2 * FILES + 1};
	struct pfs_names *names;

	assert_int_equal(pfs_names_create(&names), 0);
	for (uint32_t i = 0; i < FILES; i++) {
		parent[i] = i ? 0 : PFS_NO_SLOT;
		prime[i] = i ? (UINT64_C(1) << 32) + 2 * i + 1 : 2;
		place[i] = add_name(names, i, 0);
	}
	assert_int_equal(pfs_engine_load(engine, parent, prime, FILES), 0);
	check_names(engine, names, place, rounds, FILES);
	if (is_stand_in(state))
		assert_true(stand_in.names_sent >= FILES * NAME_LEN);
	stand_in.names_sent = 0;
	check_names(engine, names, place, rounds, FILES);
	assert_int_equal(stand_in.names_sent, 0);
	rename_file(engine, names, place, rounds, FILES / 2);
	check_names(engine, names, place, rounds, FILES);
	if (is_stand_in(state))
		assert_in_range(stand_in.names_sent, 1, 2 * BLOCK);
	stand_in.names_sent = 0;
	rename_file(engine, names, place, rounds, 1);
	rename_file(engine, names, place, rounds, FILES - 1);
	place[FILES] = add_name(names, FILES, 0); /* and one at the end */
	assert_int_equal(pfs_engine_apply(engine, NULL, &add, 1), 0);
	check_names(engine, names, place, rounds, FILES + 1);
	if (is_stand_in(state))
		assert_in_range(stand_in.names_sent, 1, 4 * BLOCK);
	pfs_names_destroy(names);
	pfs_engine_close(engine);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ON_ALL(batches),  ON_ALL(common_ancestors),	ON_ALL(empty),
		ON_ALL(listings), ON_ALL(listings_and_changes), ON_ALL(listings_end),
		ON_ALL(names_in_pieces), ON_EACH(names_used_again),
	};

	return RUN_ON_ALL(tests, argc, argv);
}
