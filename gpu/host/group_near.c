/* SPDX-License-Identifier: MIT */
/* Tuples of a group often lie near each other, as the children of a directory do. Then each worker
 * groups the tuples that it meets in a table of slots that stays in its cache and is emptied when
 * it is full, so that a group may come several times. Most come once, and are taken as they are;
 * the others, rather than all tuples, are then distributed by hash. A sample tells whether tuples
 * lie near each other; a worker that finds this wrong gives up. */
#include "gpu/host/group_hash.h"

#include <string.h>

#include "base/checked.h"

#define SLOTS	      16384u
#define GROUPS	      8192u  /* groups that are in the slots at a time */
#define PER_GROUP     4u     /* tuples of a group in a sample, if groups are near */
#define SEEN_MIN      65536u /* a worker gives up after so many tuples, */
#define PER_GROUP_MIN 2u     /* if groups have fewer tuples than this */
#define TUPLES_MIN    262144u
#define SAMPLES	      12u
#define SAMPLE_SIZE   (4u * PFS_SPAN)
#define HASHED_BITS   16u /* at least so many bits for each group tell repeated keys by hash, */
#define NUMBERS_MAX   64u /* or one for each number of a key, if these are at most so many */

static int open_worker(struct pfs_near_worker *worker, const struct pfs_grouping *g)
{
	if (worker->hash.grouping)
		return 0;
	PFS_TRY(pfs_group_table_open(&worker->table, g));
	worker->hash.grouping = g;
	worker->hash.groups = &worker->table;
	worker->hash.n_slots = SLOTS;
	return pfs_run_alloc(g->run, &worker->hash.slots, SLOTS, sizeof(*worker->hash.slots));
}

static void close_worker(struct pfs_near_worker *worker, const struct pfs_grouping *g)
{
	pfs_group_hash_free(&worker->hash);
	pfs_group_table_close(&worker->table, g);
}

/* Makes room for so many groups, but for them no slots. */
static int reserve(struct pfs_group_hash *hash, size_t capacity)
{
	PFS_TRY(pfs_group_table_reserve(hash->groups, hash->grouping, capacity, false));
	PFS_TRY(pfs_run_grow(hash->grouping->run, &hash->keys, hash->capacity, capacity,
			     sizeof(*hash->keys), false));
	hash->capacity = capacity;
	return 0;
}

/* Adds the span's tuples to groups, but not to their aggregates. */
static int find_groups(struct pfs_near_worker *worker, const struct pfs_span *span, uint32_t *group)
{
	struct pfs_group_hash *hash = &worker->hash;
	uint64_t keys[PFS_SPAN];

	if (worker->table.n - worker->since > GROUPS - PFS_SPAN) {
		memset(hash->slots, 0, SLOTS * sizeof(*hash->slots));
		worker->since = worker->table.n;
	}
	if (hash->capacity - worker->table.n < PFS_SPAN) {
		/* what a sample lets expect is for groups that do not come again */
		size_t expected = worker->since ? worker->expected : 0;

		PFS_TRY(reserve(hash, PFS_MAX(2 * hash->capacity, PFS_MAX(expected, GROUPS))));
	}
	pfs_group_hash_clear(hash, PFS_SPAN);
	pfs_keys_read(&hash->grouping->keys, span, keys, NULL);
	for (uint32_t i = 0; i < span->n; i++) {
		group[i] = i && keys[i] == keys[i - 1] && hash->grouping->keys.exact
				   ? group[i - 1]
				   : pfs_group_hash_find(hash, keys[i], pfs_span_at(span, i));
		worker->table.rows[group[i]]++;
	}
	worker->seen += span->n;
	return 0;
}

static int group_span(void *context, const struct pfs_span *span)
{
	struct pfs_near_worker *worker = context;
	const struct pfs_grouping *g = worker->hash.grouping;
	uint32_t group[PFS_SPAN];

	PFS_TRY(find_groups(worker, span, group));
	for (size_t i = 0; i < g->n_folds; i++)
		pfs_fold_add(&g->folds[i], &worker->table.folds[i], span, group);
	return 0;
}

static int group_piece(void *context, unsigned number, uint64_t from, uint64_t to)
{
	const struct pfs_near_groups *near = context;
	struct pfs_near_worker *worker = &near->of_worker[number];

	PFS_TRY(open_worker(worker, near->grouping));
	worker->expected = near->grouping->expected / near->n;
	if (worker->seen > SEEN_MIN && worker->seen / PER_GROUP_MIN < worker->table.n)
		return -ENOTUNIQ;
	return pfs_grouping_spans(near->grouping, number, from, to, group_span, worker);
}

/* ---- groups that come several times ---- */

/* Bits by key, or by its hash. */
struct marks {
	struct pfs_near_groups *near;
	bool by_number;
	unsigned bits; /* by hash: 2^bits of them */
	uint64_t *once, *twice;
	size_t n_words;
};

static uint64_t mark_of(const struct marks *m, uint64_t key)
{
	return m->by_number ? key
			    : pfs_hash_number(key, m->near->grouping->keys.seed) >> (64 - m->bits);
}

/* Returns true if the bit was set. */
static bool set_bit(uint64_t *words, uint64_t at)
{
	uint64_t *word = &words[at / 64], bit = UINT64_C(1) << at % 64;

	return (__atomic_load_n(word, __ATOMIC_RELAXED) & bit) ||
	       (__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit);
}

static int mark_piece(void *context, unsigned number, uint64_t from, uint64_t to)
{
	const struct marks *m = context;
	const struct pfs_near_worker *worker = m->near->of_worker;

	(void)number;
	for (uint64_t i = from; i < to; i++) {
		uint64_t at;

		worker = pfs_near_worker_of(worker, i);
		at = mark_of(m, worker->hash.keys[i - worker->before]);
		if (set_bit(m->once, at))
			(void)set_bit(m->twice, at);
	}
	return 0;
}

static int find_piece(void *context, unsigned number, uint64_t from, uint64_t to)
{
	const struct marks *m = context;
	const struct pfs_near_worker *worker = m->near->of_worker;
	uint64_t n = 0;

	(void)number;
	for (uint64_t i = from; i < to; i++) {
		bool is_repeated;

		worker = pfs_near_worker_of(worker, i);
		is_repeated = pfs_bit(m->twice, mark_of(m, worker->hash.keys[i - worker->before]));
		m->near->is_repeated[i / 64] |= (uint64_t)is_repeated << i % 64;
		n += is_repeated;
	}
	m->near->before[from / PFS_PIECE] = n;
	return 0;
}

static int list_piece(void *context, unsigned number, uint64_t from, uint64_t to)
{
	const struct pfs_near_groups *near = context;
	uint32_t *out = near->repeated + near->before[from / PFS_PIECE];

	(void)number;
	for (uint64_t w = from / 64; w * 64 < to; w++) {
		for (uint64_t word = near->is_repeated[w]; word; word &= word - 1)
			*out++ = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(word);
	}
	return 0;
}

static uint64_t pieces_of(const struct pfs_near_groups *near)
{
	return pfs_div_round_up(near->n_groups, PFS_PIECE);
}

static int list_repeated(struct pfs_near_groups *near, struct marks *m)
{
	const struct pfs_grouping *g = near->grouping;

	PFS_TRY(pfs_run_alloc(g->run, &m->once, m->n_words, sizeof(*m->once)));
	PFS_TRY(pfs_run_alloc(g->run, &m->twice, m->n_words, sizeof(*m->twice)));
	PFS_TRY(pfs_run_alloc(g->run, &near->is_repeated, pfs_div_round_up(near->n_groups, 64),
			      sizeof(*near->is_repeated)));
	PFS_TRY(pfs_run_alloc(g->run, &near->before, pieces_of(near), sizeof(*near->before)));
	PFS_TRY(pfs_host_for(g->host, g->run, near->n_groups, PFS_PIECE, mark_piece, m));
	PFS_TRY(pfs_host_for(g->host, g->run, near->n_groups, PFS_PIECE, find_piece, m));
	for (uint64_t i = 0; i < pieces_of(near); i++) {
		uint64_t here = near->before[i];

		near->before[i] = near->n_repeated;
		near->n_repeated += here;
	}
	PFS_TRY(pfs_run_alloc_raw(g->run, &near->repeated, near->n_repeated,
				  sizeof(*near->repeated)));
	return pfs_host_for(g->host, g->run, near->n_groups, PFS_PIECE, list_piece, near);
}

/* Finds the groups whose key, or whose hash, comes again. */
static int find_repeated(struct pfs_near_groups *near)
{
	const struct pfs_grouping *g = near->grouping;
	struct marks m = {.near = near, .bits = 6};
	int error;

	if (near->n_groups >= PFS_NO_ROW)
		return -ENOMEM;
	m.by_number = g->keys.exact && g->keys.domain / NUMBERS_MAX <= near->n_groups;
	while (UINT64_C(1) << m.bits < near->n_groups * HASHED_BITS)
		m.bits++;
	m.n_words = m.by_number ? g->keys.domain / 64 + 1 : (size_t)1 << (m.bits - 6);
	error = list_repeated(near, &m);
	pfs_run_free(g->run, m.once, m.n_words, sizeof(*m.once));
	pfs_run_free(g->run, m.twice, m.n_words, sizeof(*m.twice));
	return error;
}

struct copying {
	const struct pfs_near_groups *near;
	struct pfs_group_table *to;
};

static int copy_piece(void *context, unsigned number, uint64_t from, uint64_t to)
{
	const struct copying *c = context;
	const struct pfs_near_groups *near = c->near;
	const struct pfs_near_worker *worker = near->of_worker;
	size_t at = from - near->before[from / PFS_PIECE];

	(void)number;
	while (from < to) {
		uint64_t end = from;

		worker = pfs_near_worker_of(worker, from);
		while (end < to && end < worker->before + worker->table.n &&
		       !pfs_bit(near->is_repeated, end))
			end++;
		pfs_group_table_copy(c->to, at, near->grouping, &worker->table,
				     from - worker->before, end - from);
		at += end - from;
		from = end;
		while (from < to && pfs_bit(near->is_repeated, from))
			from++;
	}
	return 0;
}

int pfs_near_groups_copy(const struct pfs_near_groups *near, struct pfs_group_table *to)
{
	struct copying c = {near, to};

	return pfs_host_for(near->grouping->host, near->grouping->run, near->n_groups, PFS_PIECE,
			    copy_piece, &c);
}

/* ---- all ---- */

int pfs_near_groups_make(struct pfs_near_groups *near, const struct pfs_grouping *g)
{
	*near = (struct pfs_near_groups){.grouping = g, .n = pfs_host_workers(g->host)};
	PFS_TRY(pfs_run_alloc(g->run, &near->of_worker, near->n, sizeof(*near->of_worker)));
	PFS_TRY(pfs_host_for(g->host, g->run, pfs_grouping_tuples(g), PFS_PIECE, group_piece,
			     near));
	for (unsigned i = 0; i < near->n; i++) {
		near->of_worker[i].before = near->n_groups;
		near->n_groups += near->of_worker[i].table.n;
	}
	return find_repeated(near);
}

void pfs_near_groups_free(struct pfs_near_groups *near, const struct pfs_grouping *g)
{
	for (unsigned i = 0; near->of_worker && i < near->n; i++)
		close_worker(&near->of_worker[i], g);
	pfs_run_free(g->run, near->repeated, near->n_repeated, sizeof(*near->repeated));
	pfs_run_free(g->run, near->before, pieces_of(near), sizeof(*near->before));
	pfs_run_free(g->run, near->is_repeated, pfs_div_round_up(near->n_groups, 64),
		     sizeof(*near->is_repeated));
	pfs_run_free(g->run, near->of_worker, near->n, sizeof(*near->of_worker));
}

static int sample(struct pfs_near_worker *worker, const struct pfs_grouping *g)
{
	uint64_t n = pfs_grouping_tuples(g);

	PFS_TRY(open_worker(worker, g));
	for (unsigned i = 0; i < SAMPLES; i++) {
		uint64_t at = n / SAMPLES * i / PFS_PIECE * PFS_PIECE;

		PFS_TRY(pfs_grouping_spans(g, 0, at, at + SAMPLE_SIZE, group_span, worker));
	}
	return 0;
}

int pfs_grouping_sample(struct pfs_grouping *g)
{
	struct pfs_grouping bare = *g;
	struct pfs_near_worker worker = {.since = 0};
	int64_t tuples = 0;
	int error;

	g->is_near = false;
	if (pfs_grouping_tuples(g) < TUPLES_MIN)
		return 0;
	bare.n_folds = 0;
	error = sample(&worker, &bare);
	for (size_t i = 0; !error && i < worker.table.n; i++)
		tuples += worker.table.rows[i];
	g->is_near = !error && (uint64_t)tuples / PER_GROUP > worker.table.n;
	if (g->is_near) /* an eighth more, as no worker has exactly its part */
		g->expected =
			pfs_grouping_tuples(g) / (SAMPLES * SAMPLE_SIZE) * worker.table.n / 8 * 9;
	close_worker(&worker, &bare);
	return error;
}
