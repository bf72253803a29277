/* SPDX-License-Identifier: MIT */
/* Grouping by hash: the tuples' keys and positions are distributed over partitions by the keys'
 * hashes, so that no group is in two partitions, and each partition has a hash table that fits into
 * the cache. They are sorted by partition in batches that fit into the cache, too; each partition
 * then reads its stretch of every batch. If tuples of a group lie near each other, they are grouped
 * in stretches first, and of these groups those that may come again are distributed
 * (group_near.c). */
#include "gpu/host/group_hash.h"

#include <string.h>

#include "base/checked.h"

#define PARTITION_ROWS	   32768u /* tuples of a partition, on average */
#define PARTITION_BITS_MAX 10u
#define BATCH		   32768u /* tuples at most that are sorted by partition together */
#define FIRST_SLOTS	   1024u
#define CLEARED		   4096u  /* groups that are made empty at a time */
#define POLL_STEP	   16384u /* tuples between two questions whether to go on, in whole spans */

/* ---- tables of groups ---- */

int pfs_group_table_open(struct pfs_group_table *table, const struct pfs_grouping *g)
{
	*table = (struct pfs_group_table){0};
	return pfs_run_alloc(g->run, &table->folds, g->n_folds, sizeof(*table->folds));
}

int pfs_group_table_reserve(struct pfs_group_table *table, const struct pfs_grouping *g,
			    size_t capacity, bool clear)
{
	int error;

	if (capacity <= table->capacity)
		return 0;
	for (size_t i = 0; i < g->n_folds; i++)
		PFS_TRY(pfs_fold_reserve(&g->folds[i], g->run, &table->folds[i], capacity, clear));
	PFS_TRY(pfs_run_grow(g->run, &table->rows, table->capacity, capacity, sizeof(*table->rows),
			     clear));
	error = pfs_run_grow(g->run, &table->first, table->capacity, capacity,
			     sizeof(*table->first), false);
	if (error) { /* what has grown is given back as what it was */
		pfs_run_free(g->run, table->rows, capacity, sizeof(*table->rows));
		table->rows = NULL;
		return error;
	}
	table->capacity = capacity;
	return 0;
}

void pfs_group_table_copy(struct pfs_group_table *table, size_t at, const struct pfs_grouping *g,
			  const struct pfs_group_table *other, size_t from, size_t n)
{
	if (n == 0)
		return;
	memcpy(table->first + at, other->first + from, n * sizeof(*table->first));
	memcpy(table->rows + at, other->rows + from, n * sizeof(*table->rows));
	for (size_t k = 0; k < g->n_folds; k++)
		pfs_fold_copy(&g->folds[k], &table->folds[k], at, &other->folds[k], from, n);
}

void pfs_group_table_close(struct pfs_group_table *table, const struct pfs_grouping *g)
{
	for (size_t i = 0; table->folds && i < g->n_folds; i++)
		pfs_fold_table_free(g->run, &table->folds[i]);
	pfs_run_free(g->run, table->folds, g->n_folds, sizeof(*table->folds));
	pfs_run_free(g->run, table->first, table->capacity, sizeof(*table->first));
	pfs_run_free(g->run, table->rows, table->capacity, sizeof(*table->rows));
	*table = (struct pfs_group_table){0};
}

/* ---- by hash ---- */

/* Makes at least so many slots, a power of two, with all groups. -ENOMEM. */
static int grow_slots(struct pfs_group_hash *t, size_t least)
{
	size_t wanted = t->n_slots ? t->n_slots * 4 : FIRST_SLOTS;
	const struct pfs_run *run = t->grouping->run;
	uint32_t *slots;

	while (wanted < least)
		wanted *= 2;
	PFS_TRY(pfs_run_alloc(run, &slots, wanted, sizeof(*slots)));
	for (size_t i = 0; i < t->groups->n - t->before; i++) {
		size_t at = pfs_hash_number(t->keys[i], t->grouping->keys.seed) & (wanted - 1);

		while (slots[at])
			at = (at + 1) & (wanted - 1);
		slots[at] = (uint32_t)(t->before + i) + 1;
	}
	pfs_run_free(run, t->slots, t->n_slots, sizeof(*slots));
	t->slots = slots;
	t->n_slots = wanted;
	return 0;
}

void pfs_group_hash_clear(struct pfs_group_hash *t, size_t n)
{
	size_t from = t->cleared;

	if (from - t->groups->n >= n)
		return;
	t->cleared = PFS_MIN(PFS_MAX(from + CLEARED, t->groups->n + n), t->groups->capacity);
	n = t->cleared - from;
	memset(t->groups->rows + from, 0, n * sizeof(*t->groups->rows));
	for (size_t i = 0; i < t->grouping->n_folds; i++)
		pfs_fold_clear(&t->grouping->folds[i], &t->groups->folds[i], from, n);
}

void pfs_group_hash_free(struct pfs_group_hash *t)
{
	if (!t->grouping)
		return;
	pfs_run_free(t->grouping->run, t->slots, t->n_slots, sizeof(*t->slots));
	pfs_run_free(t->grouping->run, t->keys, t->capacity, sizeof(*t->keys));
	t->slots = NULL;
	t->keys = NULL;
}

/* ---- partitions ---- */

struct partitioning {
	const struct pfs_grouping *grouping;
	const struct pfs_near_groups *near; /* its repeated groups are distributed; NULL: tuples */
	uint64_t n;
	unsigned bits;	/* 2^bits partitions */
	uint64_t batch; /* tuples, in whole spans */
	uint64_t n_batches;
	uint64_t *unsorted; /* by worker: the keys of its batch */
	uint64_t *keys; /* keys and positions by batch, in it by partition, in the tuples' order */
	uint32_t *at;
	uint32_t *end; /* by batch and partition: behind its last tuple */
	struct partition_worker {
		struct pfs_group_table table; /* groups of its partitions */
		struct pfs_group_hash hash;   /* the last one's */
		size_t n;		      /* partitions that it has met */
		size_t share, most;	      /* partitions that it may expect; groups at most */
		uint8_t apart[64];	      /* workers write, each in its own cache line */
	} * of_worker;
	struct partition {
		const struct pfs_group_table *table; /* that has its n groups, from `from` on */
		size_t from, n;
		size_t before; /* groups of the partitions before */
	} * parts;
	struct pfs_group_table *all;
};

static size_t partition_of(const struct partitioning *p, uint64_t key)
{
	return p->bits ? pfs_hash_number(key, p->grouping->keys.seed) >> (64 - p->bits) : 0;
}

/* Reads the keys of tuples from..to. */
static int read_keys(const struct partitioning *p, uint64_t *keys, uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		struct pfs_span span;

		if ((at - from) % POLL_STEP == 0)
			PFS_TRY(pfs_run_poll(p->grouping->run));
		pfs_positions_span(p->grouping->positions, &span, at, to);
		pfs_keys_read(&p->grouping->keys, &span, keys + (at - from), NULL);
	}
	return 0;
}

/* Does the same for groups. */
static void copy_keys(const struct partitioning *p, uint64_t *keys, uint64_t from, uint64_t to)
{
	const struct pfs_near_worker *worker = p->near->of_worker;

	for (uint64_t i = from; i < to; i++) {
		uint32_t group = p->near->repeated[i];

		worker = pfs_near_worker_of(worker, group);
		keys[i - from] = worker->hash.keys[group - worker->before];
	}
}

static int distribute_batch(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct partitioning *p = context;
	const struct pfs_positions *positions = p->grouping->positions;
	uint64_t *keys = p->unsorted + worker * p->batch;
	uint32_t *next = p->end + ((from / p->batch) << p->bits), before = (uint32_t)from;

	if (p->near)
		copy_keys(p, keys, from, to);
	else
		PFS_TRY(read_keys(p, keys, from, to));
	for (uint64_t i = 0; i < to - from; i++)
		next[partition_of(p, keys[i])]++;
	for (size_t part = 0; part < (size_t)1 << p->bits; part++) {
		uint32_t here = next[part];

		next[part] = before;
		before += here;
	}
	for (uint64_t i = 0; i < to - from; i++) {
		uint32_t place = next[partition_of(p, keys[i])]++, tuple = (uint32_t)(from + i);

		p->keys[place] = keys[i];
		p->at[place] =
			p->near ? p->near->repeated[tuple] : pfs_position_at(positions, tuple);
	}
	return 0;
}

/* ---- one partition ---- */

/* Tuples of a partition, or groups of workers, whose numbers ascend. */
struct some {
	uint32_t n;
	uint64_t keys[PFS_SPAN];
	uint32_t at[PFS_SPAN];
};

/* Makes room for so many groups in the worker's table, or for more: for an eighth more than those
 * that its partitions have had so far let expect; then by quarters, since other threads may have
 * the rest of the partitions. -ENOMEM. */
static int grow_table(struct partition_worker *worker, size_t wanted)
{
	size_t expected = 0;

	if (worker->n)
		expected = worker->hash.before / worker->n * worker->share / 8 * 9;
	wanted = PFS_MAX(wanted, expected);
	wanted = PFS_MAX(wanted, worker->table.capacity * (worker->n ? 5 : 8) / 4);
	return pfs_group_table_reserve(&worker->table, worker->hash.grouping,
				       PFS_MIN(wanted, worker->most), false);
}

/* Makes room for n more groups, which are empty, and slots for them. -ENOMEM. */
static int make_room(struct partition_worker *worker, size_t n)
{
	struct pfs_group_hash *t = &worker->hash;
	size_t wanted = PFS_MAX(t->capacity, FIRST_SLOTS / 2);

	while (wanted - (t->groups->n - t->before) < n)
		wanted *= 2;
	if (wanted > t->capacity) {
		PFS_TRY(pfs_run_grow(t->grouping->run, &t->keys, t->capacity, wanted,
				     sizeof(*t->keys), false));
		t->capacity = wanted;
	}
	if (t->n_slots < 2 * wanted)
		PFS_TRY(grow_slots(t, 2 * wanted));
	if (t->groups->capacity - t->groups->n < n)
		PFS_TRY(grow_table(worker, t->before + wanted));
	pfs_group_hash_clear(t, n);
	return 0;
}

static int add_tuples(struct partition_worker *worker, const struct some *some)
{
	struct pfs_group_hash *t = &worker->hash;
	const struct pfs_grouping *g = t->grouping;
	struct pfs_span span = {.n = some->n, .at = some->at};
	uint32_t group[PFS_SPAN];

	PFS_TRY(make_room(worker, some->n));
	for (uint32_t i = 0; i < some->n; i++) {
		group[i] = pfs_group_hash_find(t, some->keys[i], some->at[i]);
		t->groups->rows[group[i]]++;
	}
	for (size_t i = 0; i < g->n_folds; i++)
		pfs_fold_add(&g->folds[i], &t->groups->folds[i], &span, group);
	return 0;
}

/* Does the same for groups. */
static int merge_groups(struct partition_worker *to, const struct pfs_near_worker *worker,
			const struct some *some)
{
	struct pfs_group_hash *t = &to->hash;
	const struct pfs_grouping *g = t->grouping;

	PFS_TRY(make_room(to, some->n));
	for (uint32_t i = 0; i < some->n; i++) {
		uint32_t group;
		size_t k;

		worker = pfs_near_worker_of(worker, some->at[i]);
		k = some->at[i] - worker->before;
		group = pfs_group_hash_find(t, some->keys[i], worker->table.first[k]);
		t->groups->first[group] = PFS_MIN(t->groups->first[group], worker->table.first[k]);
		t->groups->rows[group] += worker->table.rows[k];
		for (size_t f = 0; f < g->n_folds; f++)
			pfs_fold_merge(&g->folds[f], &t->groups->folds[f], group,
				       &worker->table.folds[f], k);
	}
	return 0;
}

static int add_some(struct partition_worker *worker, const struct partitioning *p,
		    struct some *some)
{
	PFS_TRY(p->near ? merge_groups(worker, p->near->of_worker, some)
			: add_tuples(worker, some));
	some->n = 0;
	return pfs_run_poll(p->grouping->run);
}

/* Adds the partition's stretches of all batches. */
static int add_partition(struct partition_worker *worker, const struct partitioning *p, size_t part)
{
	struct some some = {.n = 0};

	for (uint64_t batch = 0; batch < p->n_batches; batch++) {
		const uint32_t *end = p->end + (batch << p->bits) + part;
		uint64_t from = part ? end[-1] : batch * p->batch;

		if (batch + 1 < p->n_batches) { /* it lies far away */
			uint32_t next = part ? end[((size_t)1 << p->bits) - 1]
					     : (uint32_t)((batch + 1) * p->batch);

			__builtin_prefetch(p->keys + next);
			__builtin_prefetch(p->at + next);
		}
		while (from < *end) {
			uint32_t n = (uint32_t)PFS_MIN(PFS_SPAN - some.n, *end - from);

			memcpy(some.keys + some.n, p->keys + from, n * sizeof(*some.keys));
			memcpy(some.at + some.n, p->at + from, n * sizeof(*some.at));
			some.n += n;
			from += n;
			if (some.n == PFS_SPAN)
				PFS_TRY(add_some(worker, p, &some));
		}
	}
	return add_some(worker, p, &some);
}

static int open_worker(struct partition_worker *worker, const struct partitioning *p)
{
	const struct pfs_grouping *g = p->grouping;

	if (worker->hash.grouping)
		return 0;
	worker->hash = (struct pfs_group_hash){.grouping = g, .groups = &worker->table};
	worker->most = p->n;
	worker->share = pfs_div_round_up((size_t)1 << p->bits, pfs_host_workers(g->host));
	return pfs_group_table_open(&worker->table, g);
}

static int group_partition(void *context, unsigned number, uint64_t from, uint64_t to)
{
	const struct partitioning *p = context;
	struct partition_worker *worker = &p->of_worker[number];
	struct pfs_group_hash *t = &worker->hash;

	PFS_TRY(open_worker(worker, p));
	for (uint64_t part = from; part < to; part++) {
		t->before = worker->table.n;
		if (t->slots)
			memset(t->slots, 0, t->n_slots * sizeof(*t->slots));
		PFS_TRY(add_partition(worker, p, part));
		p->parts[part] = (struct partition){.table = &worker->table,
						    .from = t->before,
						    .n = worker->table.n - t->before};
		worker->n++;
	}
	return 0;
}

/* ---- one table of all ---- */

static int join_partition(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct partitioning *p = context;
	const struct pfs_grouping *g = p->grouping;

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		const struct partition *part = &p->parts[i];

		pfs_group_table_copy(p->all, part->before, g, part->table, part->from, part->n);
	}
	return 0;
}

static void add_sizes(struct pfs_group_table *to, const struct pfs_grouping *g,
		      const struct pfs_group_table *table)
{
	for (size_t k = 0; table->folds && k < g->n_folds; k++)
		to->folds[k].size += table->folds[k].size;
}

static int join_partitions(struct partitioning *p)
{
	const struct pfs_grouping *g = p->grouping;
	size_t n = p->near ? p->near->n_groups - p->near->n_repeated : 0;
	size_t n_parts = (size_t)1 << p->bits;

	for (size_t part = 0; part < n_parts; part++) {
		p->parts[part].before = n;
		n += p->parts[part].n;
	}
	for (unsigned i = 0; i < pfs_host_workers(g->host); i++) {
		add_sizes(p->all, g, &p->of_worker[i].table);
		if (p->near)
			add_sizes(p->all, g, &p->near->of_worker[i].table);
	}
	PFS_TRY(pfs_group_table_reserve(p->all, g, n, false));
	p->all->n = n;
	if (p->near)
		PFS_TRY(pfs_near_groups_copy(p->near, p->all));
	return pfs_host_for(g->host, g->run, n_parts, 1, join_partition, p);
}

/* Frees what is of no use any more once all partitions have their groups. */
static void free_tuples(struct partitioning *p)
{
	const struct pfs_run *run = p->grouping->run;
	unsigned workers = pfs_host_workers(p->grouping->host);

	pfs_run_free(run, p->end, p->n_batches << p->bits, sizeof(*p->end));
	pfs_run_free(run, p->at, p->n, sizeof(*p->at));
	pfs_run_free(run, p->keys, p->n, sizeof(*p->keys));
	pfs_run_free(run, p->unsorted, workers * p->batch, sizeof(*p->unsorted));
	p->end = p->at = NULL;
	p->keys = p->unsorted = NULL;
	for (unsigned i = 0; p->of_worker && i < workers; i++)
		pfs_group_hash_free(&p->of_worker[i].hash);
}

static int run_partitions(struct partitioning *p)
{
	const struct pfs_grouping *g = p->grouping;

	PFS_TRY(pfs_host_for(g->host, g->run, p->n, p->batch, distribute_batch, p));
	PFS_TRY(pfs_host_for(g->host, g->run, UINT64_C(1) << p->bits, 1, group_partition, p));
	free_tuples(p);
	return join_partitions(p);
}

static int alloc_partitions(struct partitioning *p, unsigned workers, size_t n_parts)
{
	const struct pfs_run *run = p->grouping->run;

	PFS_TRY(pfs_run_alloc(run, &p->of_worker, workers, sizeof(*p->of_worker)));
	PFS_TRY(pfs_run_alloc_raw(run, &p->unsorted, workers * p->batch, sizeof(*p->unsorted)));
	PFS_TRY(pfs_run_alloc_raw(run, &p->keys, p->n, sizeof(*p->keys)));
	PFS_TRY(pfs_run_alloc_raw(run, &p->at, p->n, sizeof(*p->at)));
	PFS_TRY(pfs_run_alloc(run, &p->end, p->n_batches * n_parts, sizeof(*p->end)));
	return pfs_run_alloc(run, &p->parts, n_parts, sizeof(*p->parts));
}

static void free_partitions(struct partitioning *p, unsigned workers, size_t n_parts)
{
	const struct pfs_run *run = p->grouping->run;

	free_tuples(p);
	for (unsigned i = 0; p->of_worker && i < workers; i++)
		pfs_group_table_close(&p->of_worker[i].table, p->grouping);
	pfs_run_free(run, p->of_worker, workers, sizeof(*p->of_worker));
	pfs_run_free(run, p->parts, n_parts, sizeof(*p->parts));
}

static int group_items(struct pfs_group_table *out, const struct pfs_grouping *g,
		       const struct pfs_near_groups *near)
{
	const unsigned workers = pfs_host_workers(g->host);
	struct partitioning p = {.grouping = g, .all = out, .near = near};
	uint64_t spans;
	size_t n_parts;
	int error;

	p.n = near ? near->n_repeated : g->positions->n;
	if (p.n >= PFS_NO_ROW)
		return -ENOMEM;
	while (p.bits < PARTITION_BITS_MAX && p.n >> p.bits > PARTITION_ROWS)
		p.bits++;
	n_parts = (size_t)1 << p.bits;
	spans = pfs_div_round_up(pfs_div_round_up(p.n, PFS_SPAN), 4ul * workers);
	p.batch = PFS_SPAN * PFS_MIN(PFS_MAX(spans, 1), BATCH / PFS_SPAN);
	p.n_batches = pfs_div_round_up(p.n, p.batch);
	error = alloc_partitions(&p, workers, n_parts);
	if (!error)
		error = run_partitions(&p);
	free_partitions(&p, workers, n_parts);
	return error;
}

int pfs_group_by_hash(struct pfs_group_table *out, const struct pfs_grouping *g)
{
	struct pfs_near_groups near;
	int error;

	if (!g->is_near)
		return group_items(out, g, NULL);
	error = pfs_near_groups_make(&near, g);
	if (!error)
		error = group_items(out, g, &near);
	pfs_near_groups_free(&near, g);
	return error == -ENOTUNIQ && g->positions ? group_items(out, g, NULL) : error;
}
