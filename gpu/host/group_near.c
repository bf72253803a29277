/* SPDX-License-Identifier: MIT */
/* Tuples of a group often lie near each other, as the children of a directory do. Then each worker
 * groups the tuples that it meets in a table of slots that stays in its cache and is emptied when
 * it is full, so that a group may come several times. These groups, rather than all tuples, are
 * then distributed by hash. A sample tells whether tuples lie near each other; a worker that finds
 * this wrong gives up. */
#include "gpu/host/group_hash.h"

#include <string.h>

#include "base/checked.h"

#define SLOTS	    16384u
#define GROUPS	    8192u /* groups that are in the slots at a time */
#define PER_GROUP   4u	  /* tuples of a group in a sample, if groups are near */
#define SEEN_MIN      65536u /* a worker gives up after so many tuples, */
#define PER_GROUP_MIN 2u     /* if groups have fewer tuples than this */
#define TUPLES_MIN  262144u
#define SAMPLES	    12u
#define SAMPLE_SIZE (4u * PFS_SPAN)

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

		PFS_TRY(pfs_group_hash_reserve(
			hash, PFS_MAX(2 * hash->capacity, PFS_MAX(expected, GROUPS))));
	}
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
	return 0;
}

void pfs_near_groups_free(struct pfs_near_groups *near, const struct pfs_grouping *g)
{
	for (unsigned i = 0; near->of_worker && i < near->n; i++)
		close_worker(&near->of_worker[i], g);
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
