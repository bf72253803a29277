/* SPDX-License-Identifier: MIT */
/* primefs-bench s1 - the experiment of Voronkin and others (2017), S1.12: a register of addresses
 * with its records in a file, and five tests, on each engine, by codes and by ranges of slots. With
 * --peers=DIR it also writes what tests/bench/s1_peers.sh needs to ask SQLite and PostgreSQL the
 * same. */
#include "tools/bench/bench.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <primesieve.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/engine.h"
#include "gpu/probe.h"
#include "tools/bench/gen_kladr.h"

#define SEARCHES 3500u
#define FETCHES	 10000u
#define TESTS	 5u

enum { NODES, RECORD, SEED, DIRECTORY, PEERS };
static const struct pfs_cmd_option options[] = {
	[NODES] = {"nodes", 'n', "N", "nodes of the register (100000; the paper: also 2500000)"},
	[RECORD] = {"record", 'r', "BYTES", "of a record (20; the paper: also 10240)"},
	[SEED] = {"seed", 's', "N", "another register for another number (1)"},
	[DIRECTORY] = {"dir", 'd', "DIR", "where the records' file is made and removed (/tmp)"},
	[PEERS] = {"peers", 'p', "DIR", "write tree and queries there, for SQLite and PostgreSQL"},
	{0},
};
static const struct pfs_cmd command = {
	"s1", "", "the five tests of the paper on prime-product codes", options,
	"Additions to columns in memory, subtree searches, parent searches, reading the whole tree, "
	"nodes\n"
	"by their codes; each record found is read from the file.  Rates are a second, the whole tree's "
	"is\n"
	"seconds.  Imports of the register beside others: tests/bench/s1_peers.sh, after --peers.\n"};

struct bench {
	struct pfs_kladr tree;
	uint64_t *prime;
	uint32_t *parent; /* in the form that the engine takes */
	uint32_t search[SEARCHES], below[SEARCHES], fetch[FETCHES];
	size_t record;
	char *buffer; /* for a record, or a run of them */
	int fd;
	uint64_t bytes; /* how many were read */
	struct pfs_engine *engine;
};

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x >> 11;
}

/* ---- the data ---- */

/* Inner nodes get small primes; the regions, which have most nodes below them, get the smallest. */
static int give_primes(struct bench *b)
{
	const struct pfs_kladr *t = &b->tree;
	uint32_t *primes = primesieve_generate_n_primes(t->n, 3, UINT32_PRIMES);
	uint64_t *files = primesieve_generate_n_primes(t->n, UINT64_C(1) << 32, UINT64_PRIMES);
	size_t at = 0;

	if (!primes || !files) {
		primesieve_free(primes);
		primesieve_free(files);
		return -ENOMEM;
	}
	for (unsigned level = 0; level <= PFS_KLADR_LEVELS; level++) {
		for (uint32_t i = 0; i < t->n; i++) {
			bool inner = i + 1 < t->n && t->level[i + 1] > t->level[i];

			if (t->level[i] == level)
				b->prime[i] = inner ? primes[at++] : files[i];
		}
	}
	b->prime[0] = 2;
	primesieve_free(primes);
	primesieve_free(files);
	return 0;
}

static int make_data(struct bench *b, uint64_t seed)
{
	uint64_t x = seed * 2 + 1;
	uint32_t n = b->tree.n;
	size_t run = PFS_MAX(b->record, (size_t)1 << 20);
	int error;

	assert(n > 0);
	b->prime = calloc(n, sizeof(*b->prime));
	b->parent = calloc(n, sizeof(*b->parent));
	b->buffer = malloc(run);
	if (!b->prime || !b->parent || !b->buffer)
		return -ENOMEM;
	memset(b->buffer, 'x', run);
	error = give_primes(b);
	for (uint32_t i = 0; i < n; i++)
		b->parent[i] = i ? b->tree.parent[i] : PFS_NO_SLOT;
	for (size_t i = 0; i < SEARCHES; i++) {
		b->below[i] = (uint32_t)(next_random(&x) % n);
		/* Towns and what is under them, as far up as those have something. */
		b->search[i] = (uint32_t)(next_random(&x) % n);
		while (b->tree.level[b->search[i]] > 3 + i % 2)
			b->search[i] = b->tree.parent[b->search[i]];
	}
	for (size_t i = 0; i < FETCHES; i++)
		b->fetch[i] = (uint32_t)(next_random(&x) % n);
	return error;
}

/* ---- the tests ---- */

static int read_records(struct bench *b, uint32_t first, uint32_t n)
{
	ssize_t got = pread(b->fd, b->buffer, n * b->record, (off_t)((uint64_t)first * b->record));

	if (got < 0)
		return -errno;
	b->bytes += (uint64_t)got;
	return 0;
}

/* Reads the records of a set; those of neighbours are read together, as far as the buffer allows.
 */
static int read_set(struct bench *b, struct pfs_bitmap *set)
{
	const uint32_t most = PFS_MAX((uint32_t)(((size_t)1 << 20) / b->record), 1u);
	struct pfs_cursor cursor = {0};
	uint32_t slot, first = 0, n = 0;
	int error, failed = 0;

	while ((error = pfs_cursor_next(&cursor, set, &slot)) == 1 && failed == 0) {
		if (n && (slot != first + n || n == most)) {
			failed = read_records(b, first, n);
			n = 0;
		}
		first = n ? first : slot;
		n++;
	}
	pfs_cursor_finish(&cursor);
	if (error < 0 || failed)
		return failed ? failed : error;
	return n ? read_records(b, first, n) : 0;
}

static int add_nodes(struct bench *b)
{
	FILE *file PFS_FCLOSE = fdopen(dup(b->fd), "w");
	int error = 0;

	if (!file)
		return -errno;
	error = pfs_engine_load(b->engine, b->parent, b->prime, 1);
	for (uint32_t i = 0; i < b->tree.n && error == 0; i++) {
		const struct pfs_delta delta = {.op = PFS_DELTA_ADD,
						.slot = i,
						.parent = b->parent[i],
						.prime = b->prime[i]};

		if (i)
			error = pfs_engine_apply(b->engine, NULL, &delta, 1);
		if (fwrite(b->buffer, b->record, 1, file) != 1)
			error = -EIO;
	}
	if (error == 0 && fflush(file))
		error = -EIO;
	return error ? error : pfs_engine_sync(b->engine);
}

static int search_subtrees(struct bench *b)
{
	int error = 0;

	for (size_t i = 0; i < SEARCHES && error == 0; i++) {
		struct pfs_bitmap *set;

		error = pfs_engine_subtree(b->engine, &set, b->search[i]);
		if (error)
			break;
		error = read_set(b, set);
		pfs_bitmap_free(set);
	}
	return error;
}

static int search_parents(struct bench *b)
{
	int error = 0;

	for (size_t i = 0; i < SEARCHES && error == 0; i++) {
		uint32_t up = b->below[i];

		do {
			error = pfs_engine_parent(b->engine, &up, up);
			if (error == 0 && up != PFS_NO_SLOT)
				error = read_records(b, up, 1);
		} while (error == 0 && up != PFS_NO_SLOT);
	}
	return error;
}

static int read_tree(struct bench *b)
{
	struct pfs_bitmap *set;
	int error = pfs_engine_subtree(b->engine, &set, 0);

	if (error)
		return error;
	error = read_set(b, set);
	pfs_bitmap_free(set);
	return error;
}

static int fetch_nodes(struct bench *b)
{
	int error = 0;

	for (size_t i = 0; i < FETCHES && error == 0; i++) {
		char *code;
		uint32_t slot;

		error = pfs_engine_code(b->engine, &code, b->fetch[i]);
		if (error)
			break;
		error = pfs_engine_node(b->engine, &slot, code);
		free(code);
		if (error == 0 && slot != b->fetch[i])
			error = -EIO;
		error = error ? error : read_records(b, slot, 1);
	}
	return error;
}

static int timed(struct bench *b, double *seconds, int (*test)(struct bench *))
{
	double start = pfs_bench_now();
	int error = test(b);

	*seconds = pfs_bench_now() - start;
	return error;
}

/* Runs the five tests on one engine. The tree is as import leaves it. */
static int run_engine(struct bench *b, double seconds[TESTS], enum pfs_engine_kind kind,
		      bool ranges)
{
	int error = pfs_engine_open(&b->engine, kind);

	if (error)
		return error;
	error = ftruncate(b->fd, 0) ? -errno : 0;
	error = error ? error : timed(b, &seconds[0], add_nodes);
	error = error ? error : pfs_engine_load(b->engine, b->parent, b->prime, b->tree.n);
	pfs_engine_use_ranges(b->engine, ranges);
	error = error ? error : timed(b, &seconds[1], search_subtrees);
	error = error ? error : timed(b, &seconds[2], search_parents);
	error = error ? error : timed(b, &seconds[3], read_tree);
	error = error ? error : timed(b, &seconds[4], fetch_nodes);
	pfs_engine_close(b->engine);
	return error;
}

static void print_row(const char *name, const struct bench *b, const double s[TESTS])
{
	(void)printf("%-26s %12.0f %12.1f %12.1f %10.3f %12.1f\n", name, b->tree.n / s[0],
		     SEARCHES / s[1], SEARCHES / s[2], s[3], FETCHES / s[4]);
	(void)fflush(stdout);
}

static void print_paper(const struct bench *b)
{
	static const struct {
		const char *name;
		bool large, long_records;
		double add, subtree, parents, node;
	} rows[] = {
		{"paper, its method", true, true, 3253.34, 21.60, 27.76, 62.54},
		{"paper, MongoDB", true, true, 174.78, 12.36, 21.47, 1.13},
		{"paper, its method", false, true, 3245.34, 21.09, 30.02, 57.22},
		{"paper, MongoDB", false, true, 162.70, 23.33, 93.97, 5.77},
		{"paper, its method", false, false, 62500, 30.04, 108.97, 1988.64},
		{"paper, MongoDB", false, false, 8673.03, 6603.77, 350000, 2554.74},
	};

	for (size_t i = 0; i < PFS_COUNT(rows); i++)
		if (rows[i].large == (b->tree.n > 1000000) &&
		    rows[i].long_records == (b->record > 1000))
			(void)printf("%-26s %12.0f %12.1f %12.1f %10s %12.1f\n", rows[i].name,
				     rows[i].add, rows[i].subtree, rows[i].parents, "-",
				     rows[i].node);
}

static int run_all(struct bench *b)
{
	static const struct {
		const char *name;
		enum pfs_engine_kind kind;
		bool ranges;
	} runs[] = {
		{"primefs host, codes", PFS_ENGINE_HOST, false},
		{"primefs host, ranges", PFS_ENGINE_HOST, true},
		{"primefs cuda, codes", PFS_ENGINE_CUDA, false},
		{"primefs cuda, ranges", PFS_ENGINE_CUDA, true},
	};
	double seconds[TESTS];
	int error = 0;

	(void)printf("%" PRIu32 " nodes, records of %zu bytes\n%-26s %12s %12s %12s %10s %12s\n",
		     b->tree.n, b->record, "", "columns/s", "subtrees/s", "parents/s", "tree, s",
		     "nodes/s");
	for (size_t i = 0; i < PFS_COUNT(runs) && error == 0; i++) {
		error = run_engine(b, seconds, runs[i].kind, runs[i].ranges);
		if (error == -ENODEV) {
			(void)printf("%-26s no device\n", runs[i].name);
			error = 0;
			continue;
		}
		if (error == 0)
			print_row(runs[i].name, b, seconds);
	}
	print_paper(b);
	return error == -ENODEV ? 0 : error;
}

/* ---- for the peers ---- */

static FILE *create(const char *directory, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return NULL;
	return fopen(path, "w");
}

/* Prints the materialised path: numbers of a fixed width from the root, separated by a character
 * that both systems take. */
static void print_path(FILE *out, const struct pfs_kladr *t, uint32_t node)
{
	uint32_t path[PFS_KLADR_LEVELS + 1] = {0}, n = 0;

	for (; node; node = t->parent[node])
		path[n++] = node;
	(void)fputs("00000000", out);
	while (n-- > 0)
		(void)fprintf(out, ".%08" PRIu32, path[n]);
}

static void print_list(const char *directory, const char *name, const struct pfs_kladr *t,
		       const uint32_t *nodes, size_t n)
{
	FILE *out PFS_FCLOSE = create(directory, name);

	for (size_t i = 0; i < n && out; i++) {
		print_path(out, t, nodes[i]);
		(void)fputc('\n', out);
	}
}

/* Writes the file that primefs imports and the others load: each node's parent, its path for those
 * that need it, and its record. */
static int write_tree(const struct bench *b, FILE *out)
{
	(void)fputs("id,parent,name,path,data\n", out);
	for (uint32_t i = 0; i < b->tree.n; i++) {
		(void)fprintf(out, "%" PRIu32 ",%" PRIu32 ",%08" PRIu32 ",", i, b->tree.parent[i],
			      i);
		print_path(out, &b->tree, i);
		(void)fputc(',', out);
		(void)fwrite(b->buffer, 1, b->record, out);
		(void)fputc('\n', out);
	}
	return fflush(out) || ferror(out) ? -EIO : 0;
}

static int write_for_peers(const struct bench *b, const char *directory)
{
	FILE *tree PFS_FCLOSE = create(directory, "tree.csv");

	if (!tree)
		return -errno;
	PFS_TRY(write_tree(b, tree));
	print_list(directory, "subtrees", &b->tree, b->search, SEARCHES);
	print_list(directory, "parents", &b->tree, b->below, SEARCHES);
	print_list(directory, "nodes", &b->tree, b->fetch, FETCHES);
	return 0;
}

static int open_records(const char *directory)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/primefs-s1-XXXXXX", directory) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkstemp(path);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

int pfs_bench_s1(int argc, char **argv);

int pfs_bench_s1(int argc, char **argv)
{
	uint64_t nodes = 100000, record = 20, seed = 1;
	const char *directory = "/tmp", *peers = NULL;
	struct bench b = {.fd = -1};
	struct pfs_cmd_args args;
	int option, error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == NODES)
			pfs_cmd_number(&args, &nodes, NODES, 1000, 99999999);
		else if (option == RECORD)
			pfs_cmd_number(&args, &record, RECORD, 1, 1 << 20);
		else if (option == SEED)
			pfs_cmd_number(&args, &seed, SEED, 0, UINT32_MAX);
		else if (option == DIRECTORY)
			directory = args.value;
		else
			peers = args.value;
	}
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	b.record = record;
	error = pfs_kladr_make(&b.tree, (uint32_t)nodes, seed);
	error = error ? error : make_data(&b, seed);
	error = error || !peers ? error : write_for_peers(&b, peers);
	if (error == 0) {
		b.fd = open_records(directory);
		error = b.fd < 0 ? b.fd : run_all(&b);
	}
	if (b.fd >= 0)
		(void)close(b.fd);
	pfs_kladr_free(&b.tree);
	free(b.prime);
	free(b.parent);
	free(b.buffer);
	if (error)
		return pfs_cmd_fail("s1", "%s", strerror(-error));
	return pfs_cmd_flush("s1", PFS_EXIT_OK);
}
