/* SPDX-License-Identifier: MIT */
/* primefs-bench s4 - joins of a small relation, whose keys are unique or each there twice, and a
 * large one whose keys follow Zipf's law: by merging two column indexes, completely and in
 * fragments of the values, and without an index, beside DuckDB.
 *
 * Columns are where the operator computes (on a device they are mirrored before the first figure),
 * and results stay there. Pairs are counted, and some pairs of each answer are compared with the
 * keys. */
#include "tools/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "gpu/probe.h"
#include "gpu/relation.h"
#include "tools/bench/duckdb.h"

#define RUNS	     7
#define THREADS_MAX  64
#define COMPARED     100000u
#define LONG_SECONDS 1.0 /* what takes longer is measured once */

enum { LEFT, RIGHT, ENGINE, FRAGMENTS };

static const struct pfs_cmd_option options[] = {
	[LEFT] = {"left", 'l', "N", "rows of the small relation (600000)"},
	[RIGHT] = {"right", 'r', "N", "rows of the large one (60000000)"},
	[ENGINE] = {"engine", 'e', "NAME", "host or cuda (host)"},
	[FRAGMENTS] = {"fragments", 'f', "N", "that the domain is cut into (600 to 200000)"},
	{0},
};

static const struct pfs_cmd command = {
	"s4",
	"",
	"Times joins at several skews: indexes merged, whole and in fragments, and unsorted, beside DuckDB.",
	options,
	"Answers are compared with the keys: BAD where they differ.\n",
};

struct relation {
	uint32_t n;
	uint32_t *keys;
	struct pfs_table_column column;
	struct pfs_stamps stamps;
	struct pfs_table table;
	struct pfs_column_index *index;
};

struct bench {
	struct pfs_run run;
	struct relation left, twice, right; /* twice: each key of left, twice */
	struct relation *small;		    /* that is joined: left or twice */
	struct pfs_duckdb *duckdb; /* NULL: it is not installed */
	double theta;
	uint64_t fragments;
	bool bad, any_bad;
};

/* ---- the relations ---- */

static int make_relation(struct relation *r, uint32_t n, bool unique)
{
	r->n = n;
	r->keys = malloc(n * sizeof(*r->keys) + 64);
	r->stamps.block = calloc(n / PFS_BLOCK_ROWS + 1, sizeof(*r->stamps.block));
	if (!r->keys || !r->stamps.block)
		return -ENOMEM;
	r->stamps.id = pfs_table_new_id();
	r->column = (struct pfs_table_column){.kind = PFS_KIND_INTEGER,
					      .width = 4,
					      .not_null = true,
					      .unique = unique,
					      .data = r->keys,
					      .data_stamps = &r->stamps};
	r->table = (struct pfs_table){.n_rows = n, .n_columns = 1, .columns = &r->column};
	return 0;
}

static void free_relation(struct relation *r)
{
	free(r->keys);
	free(r->stamps.block);
}

static uint32_t key_of(const struct bench *b, uint32_t rank)
{
	return (uint32_t)((uint64_t)rank * 999983 % b->left.n) * 3 + 1;
}

/* Returns a rank that follows Zipf's law, roughly, by the inverse of its integral. */
static uint32_t rank_of(const struct bench *b, uint64_t random)
{
	double u = (double)(random >> 11) * 0x1p-53, n = b->left.n, a = 1 - b->theta;

	return (uint32_t)PFS_MIN(pow(u * (pow(n, a) - 1) + 1, 1 / a) - 1, n - 1);
}

struct share {
	struct bench *b;
	uint32_t from, to;
};

static void *fill_share(void *arg)
{
	const struct share *share = arg;
	struct bench *b = share->b;

	for (uint32_t i = share->from; i < share->to; i++)
		b->right.keys[i] = key_of(b, rank_of(b, pfs_bench_mix(i + 1)));
	return NULL;
}

/* Makes new keys of the large relation. */
static int fill(struct bench *b)
{
	unsigned n = (unsigned)PFS_MIN(PFS_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1), THREADS_MAX);
	struct share shares[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	unsigned started = 0;

	for (; started < n; started++) {
		shares[started] = (struct share){
			b, (uint32_t)((uint64_t)b->right.n * started / n),
			(uint32_t)((uint64_t)b->right.n * (started + 1) / n)};
		if (pthread_create(&threads[started], NULL, fill_share, &shares[started]))
			break;
	}
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	b->right.stamps.id = pfs_table_new_id(); /* the values have changed */
	return started == n ? 0 : -EAGAIN;
}

/* ---- figures ---- */

typedef int what_fn(struct bench *b, bool check);

static int time_what(struct bench *b, const char *name, what_fn *what)
{
	double seconds[RUNS], began = pfs_bench_now();
	struct pfs_figure figure;
	unsigned n;

	b->bad = false;
	PFS_TRY(what(b, true)); /* also warms up */
	n = pfs_bench_now() - began < LONG_SECONDS ? RUNS : 1;
	for (unsigned i = 0; i < n; i++) {
		double start = pfs_bench_now();

		PFS_TRY(what(b, false));
		seconds[i] = pfs_bench_now() - start;
	}
	b->any_bad |= b->bad;
	pfs_figure_of(&figure, seconds, n);
	(void)printf("theta %.2f  %-40s %9.3f ms [%.3f %.3f]  %s\n", b->theta, name,
		     figure.median * 1e3, figure.least * 1e3, figure.most * 1e3,
		     b->bad ? "BAD" : "ok");
	(void)fflush(stdout);
	return 0;
}

/* Pairs of left's rows, in table `left` of the batch, and right's. */
static int check_pairs(struct bench *b, struct pfs_tuples *tuples, unsigned left)
{
	const uint32_t *rows = NULL, *others;

	PFS_TRY(pfs_tuples_here(&b->run, tuples));
	rows = tuples->tables[left].rows;
	others = tuples->tables[!left].rows;
	for (uint64_t i = 0; i < PFS_MIN(tuples->n, COMPARED); i++) {
		uint64_t at = i * (tuples->n / PFS_MIN(tuples->n, COMPARED));

		b->bad |= b->small->keys[rows[at]] != b->right.keys[others ? others[at] : at];
	}
	return 0;
}

static int build_index(struct bench *b, struct relation *r)
{
	const struct pfs_source source = {.table = &r->table};

	pfs_column_index_free(&b->run, r->index);
	r->index = NULL;
	return pfs_column_index_build(&b->run, &r->index, &source, 0, PFS_BINARY);
}

/* Each row of the large relation has as many partners. */
static uint64_t n_pairs(const struct bench *b)
{
	return (uint64_t)b->right.n * (b->small->n / b->left.n);
}

static int build_right(struct bench *b, bool check)
{
	(void)check;
	return build_index(b, &b->right);
}

static int merge_fragment(struct bench *b, bool check, const uint64_t *left, const uint64_t *right,
			  uint64_t *pairs)
{
	const struct pfs_index_fragment l = {b->small->index, left[0], left[1]};
	const struct pfs_index_fragment r = {b->right.index, right[0], right[1]};
	struct pfs_tuples *tuples;
	int error;

	PFS_TRY(pfs_column_index_join(&b->run, &tuples, &l, &r));
	*pairs += tuples->n;
	error = check && tuples->n ? check_pairs(b, tuples, 0) : 0;
	pfs_tuples_free(&b->run, tuples);
	return error;
}

static int merge(struct bench *b, bool check)
{
	uint64_t left[2] = {0, b->small->index->n}, right[2] = {0, b->right.index->n}, pairs = 0;

	PFS_TRY(merge_fragment(b, check, left, right, &pairs));
	b->bad |= pairs != n_pairs(b);
	return 0;
}

static int merge_in_fragments(struct bench *b, bool check)
{
	uint64_t *left = calloc(b->fragments + 1, sizeof(*left));
	uint64_t *right = calloc(b->fragments + 1, sizeof(*right)), pairs = 0;
	int error = left && right ? pfs_column_index_cut(&b->run, left, right, b->fragments,
							 b->small->index, b->right.index)
				  : -ENOMEM;

	for (uint64_t i = 0; i < b->fragments && !error; i++)
		error = merge_fragment(b, check, left + i, right + i, &pairs);
	b->bad |= pairs != n_pairs(b);
	free(left);
	free(right);
	return error;
}

static int join_unsorted(struct bench *b, bool check)
{
	const struct pfs_join_key key = {.left = {0, 0}, .right = {0, 0}};
	const struct pfs_join join = {.keys = &key, .n_keys = 1};
	const struct pfs_source left = {.table = &b->right.table},
				right = {.table = &b->small->table};
	struct pfs_tuples *tuples;
	int error;

	PFS_TRY(pfs_join(&b->run, &tuples, &left, &right, &join));
	b->bad |= tuples->n != n_pairs(b);
	error = check ? check_pairs(b, tuples, 1) : 0;
	pfs_tuples_free(&b->run, tuples);
	return error;
}

/* ---- DuckDB ---- */

static int write_keys(const struct relation *r, FILE *csv)
{
	for (uint32_t i = 0; i < r->n; i++) {
		pfs_duckdb_put_number(csv, r->keys[i], false);
		pfs_duckdb_put_number(csv, i, true);
	}
	return fclose(csv) == 0 ? 0 : -EIO;
}

/* Makes a table of that name in DuckDB: the keys, and each row's number. */
static int fill_duckdb(const struct bench *b, const struct relation *r, const char *name)
{
	const char *folder = getenv("TMPDIR");
	char path[PATH_MAX], sql[2 * PATH_MAX];
	int fd, error;
	FILE *csv;

	(void)snprintf(path, sizeof(path), "%s/primefs-bench-s4-XXXXXX",
		       folder && *folder ? folder : "/tmp");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	csv = fdopen(fd, "w");
	error = csv ? write_keys(r, csv) : -errno;
	if (!csv)
		(void)close(fd);
	(void)snprintf(
		sql, sizeof(sql),
		"CREATE OR REPLACE TABLE %s (k UINTEGER, n UINTEGER); COPY %s FROM '%s' (FORMAT csv, HEADER false)",
		name, name, path);
	error = error ? error : pfs_duckdb_run(b->duckdb, NULL, sql);
	(void)unlink(path);
	return error;
}

/* Makes all pairs of rows, which are not kept: each pair's numbers are added up. */
static int join_in_duckdb(struct bench *b, bool check)
{
	(void)check;
	return pfs_duckdb_run(b->duckdb, NULL,
			      "SELECT count(*), sum(l.n), sum(r.n) FROM r JOIN l ON r.k = l.k");
}

static int time_fragments(struct bench *b, uint64_t fragments)
{
	char name[64];

	b->fragments = fragments;
	(void)snprintf(name, sizeof(name), "cut into %llu fragments and merged",
		       (unsigned long long)fragments);
	return time_what(b, name, merge_in_fragments);
}

static int time_twice(struct bench *b)
{
	b->small = &b->twice;
	PFS_TRY(time_what(b, "both sides repeat: unsorted", join_unsorted));
	return time_what(b, "both sides repeat: indexes merged", merge);
}

static int time_merges(struct bench *b, uint64_t fragments)
{
	static const uint64_t several[] = {600, 6000, 60000, 200000};

	PFS_TRY(time_what(b, "index of the large relation", build_right));
	PFS_TRY(time_what(b, "indexes merged, all pairs", merge));
	if (fragments)
		return time_fragments(b, fragments);
	for (size_t i = 0; i < PFS_COUNT(several); i++)
		PFS_TRY(time_fragments(b, several[i]));
	return 0;
}

static int time_skew(struct bench *b, double theta, uint64_t fragments)
{
	b->theta = theta;
	b->small = &b->left;
	PFS_TRY(fill(b));
	PFS_TRY(time_what(b, "unsorted, build included", join_unsorted));
	if (b->duckdb) {
		PFS_TRY(fill_duckdb(b, &b->right, "r"));
		PFS_TRY(time_what(b, "the same by DuckDB", join_in_duckdb));
	}
	PFS_TRY(time_merges(b, fragments));
	return time_twice(b);
}

static int make_relations(struct bench *b, uint32_t n_left, uint32_t n_right)
{
	PFS_TRY(make_relation(&b->left, n_left, true));
	PFS_TRY(make_relation(&b->twice, 2 * n_left, false));
	PFS_TRY(make_relation(&b->right, n_right, false));
	for (uint32_t i = 0; i < b->twice.n; i++)
		b->twice.keys[i] = key_of(b, i % n_left);
	memcpy(b->left.keys, b->twice.keys, n_left * sizeof(*b->left.keys));
	PFS_TRY(build_index(b, &b->twice));
	return build_index(b, &b->left);
}

static int bench(struct bench *b, uint32_t n_left, uint32_t n_right, uint64_t fragments)
{
	static const double thetas[] = {0, 0.5, 0.73, 0.86};

	PFS_TRY(pfs_operators_open(&b->run.operators, b->run.on, 0));
	PFS_TRY(make_relations(b, n_left, n_right));
	if (pfs_duckdb_open(&b->duckdb))
		(void)printf("DuckDB: not installed\n");
	else
		PFS_TRY(fill_duckdb(b, &b->left, "l"));
	(void)printf("%u and %u rows, %s\n", n_left, n_right,
		     b->run.on == PFS_ENGINE_CUDA ? "cuda" : "host");
	for (unsigned i = 0; i < PFS_COUNT(thetas); i++)
		PFS_TRY(time_skew(b, thetas[i], fragments));
	return 0;
}

int pfs_bench_s4(int argc, char **argv)
{
	struct bench b = {.run.on = PFS_ENGINE_HOST};
	uint64_t left = 600000, right = 60000000, fragments = 0;
	struct pfs_cmd_args args;
	int option, error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == LEFT)
			pfs_cmd_number(&args, &left, LEFT, 10, 100000000);
		else if (option == RIGHT)
			pfs_cmd_number(&args, &right, RIGHT, 10, PFS_ROWS_MAX / 2);
		else if (option == FRAGMENTS)
			pfs_cmd_number(&args, &fragments, FRAGMENTS, 1, 1000000);
		else if (pfs_engine_by_name(&b.run.on, args.value) != 0)
			return pfs_cmd_usage("s4", "'%s': no engine", args.value);
	}
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	error = bench(&b, (uint32_t)left, (uint32_t)right, fragments);
	pfs_column_index_free(&b.run, b.left.index);
	pfs_column_index_free(&b.run, b.twice.index);
	pfs_column_index_free(&b.run, b.right.index);
	pfs_operators_close(b.run.operators);
	pfs_duckdb_close(b.duckdb);
	free_relation(&b.left);
	free_relation(&b.twice);
	free_relation(&b.right);
	if (error)
		return pfs_cmd_fail("s4", "%s", strerror(-error));
	return pfs_cmd_flush("s4", b.any_bad ? PFS_EXIT_FAILURE : PFS_EXIT_OK);
}
