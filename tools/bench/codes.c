/* SPDX-License-Identifier: MIT */
/* primefs-bench codes - scans over prime-product codes, each figure beside the ceiling that the
 * same hardware sets in the same run. */
#include "tools/bench/bench.h"

#include <primesieve.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/engine.h"
#include "gpu/probe.h"

#define REPEAT		 20u
#define THREADS_MAX	 8u
#define ASKED_SECONDS	 0.5
#define FIRST_FILE_PRIME (UINT64_C(1) << 32)

enum { ENGINE, ROWS, DIRECTORIES, FILES };
static const struct pfs_cmd_option options[] = {
	[ENGINE] = {"engine", 'e', "NAME", "host, cuda, or both (both where there is a device)"},
	[ROWS] = {"rows", 'r', "N", "codes of one width (104857600 on a device, 4194304 else)"},
	[DIRECTORIES] = {"directories", 'd', "N", "of the mixed tree (20000000, or 1000000)"},
	[FILES] = {"files", 'f', "N", "of the mixed tree (five times as many)"},
	{0},
};
static const struct pfs_cmd command = {
	"codes", "",
	"times scans, products and moves over codes beside copies and sums of the same memory",
	options, "Medians of 20; in brackets the least and the most.\n"};

struct bench {
	struct pfs_engine *engine;
	double ceiling; /* bytes a second, of what `limit` names */
	const char *limit;
	uint64_t rows, directories, files;
};

static uint64_t mix(uint64_t x)
{
	return pfs_bench_mix(x + UINT64_C(0x9e3779b97f4a7c15));
}

/* limited: NULL, or the bench of whose limit the figure is a share. */
static void print_figure(const char *what, const struct pfs_figure *f, const struct bench *limited)
{
	(void)printf("  %-52s %9.3f ms [%.3f %.3f]", what, f->median * 1e3, f->least * 1e3,
		     f->most * 1e3);
	if (f->bytes)
		(void)printf(" %7.0f GB/s", (double)f->bytes / f->median / 1e9);
	if (f->bytes && limited)
		(void)printf(" %4.0f %% of %s",
			     100 * (double)f->bytes / f->median / limited->ceiling, limited->limit);
	(void)putchar('\n');
	(void)fflush(stdout);
}

/* Runs op REPEAT times and twice before, waiting each time. */
static int time_calls(struct bench *b, struct pfs_figure *f, int (*op)(struct bench *, void *),
		      void *argument)
{
	double seconds[REPEAT];
	int error = 0;

	*f = (struct pfs_figure){0};
	for (unsigned i = 0; i < REPEAT + 2 && error == 0; i++) {
		double start;

		error = pfs_engine_sync(b->engine);
		start = pfs_bench_now();
		error = error ? error : op(b, argument);
		error = error ? error : pfs_engine_sync(b->engine);
		if (i >= 2)
			seconds[i - 2] = pfs_bench_now() - start;
	}
	if (error == 0)
		pfs_figure_of(f, seconds, REPEAT);
	return error;
}

static int limit(struct bench *b, enum pfs_probe what, const char *name)
{
	struct pfs_figure f;
	int error = pfs_engine_probe(b->engine, &f, what, NULL, 0, REPEAT);

	if (error)
		return error == -ENOTSUP ? 0 : error;
	print_figure(name, &f, NULL);
	if (what != PFS_PROBE_TO_HOST) {
		b->ceiling = (double)f.bytes / f.median;
		b->limit = what == PFS_PROBE_COPY ? "copy" : "read";
	}
	return 0;
}

/* A scan reads only: on the host its limit is a sum, as a copy's pages are also fetched to be
 * overwritten; on a device a copy's. */
static int limits(struct bench *b)
{
	PFS_TRY(limit(b, PFS_PROBE_COPY, "copy, read and written"));
	PFS_TRY(limit(b, PFS_PROBE_READ, "sum, read"));
	return limit(b, PFS_PROBE_TO_HOST, "device to pinned host memory");
}

/* ---- one width: a chain of wide primes, and all the rest in its last directory ---- */

static int load_width(struct bench *b, unsigned n_limbs)
{
	size_t chain = n_limbs, n = chain + b->rows;
	uint32_t *parent PFS_FREE = malloc(n * sizeof(*parent));
	uint64_t *prime PFS_FREE = malloc(n * sizeof(*prime));

	if (!parent || !prime)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		parent[i] = i == 0 ? PFS_NO_SLOT : (uint32_t)PFS_MIN(i, chain) - 1;
		/* Odd numbers do as well as primes for what is timed here. Behind the chain's
		 * factors of 32 bits, one of 28 bits fills the last limb. */
		prime[i] = i == 0      ? 2
			   : i < chain ? UINT64_C(4294967291) - 2 * i
				       : (UINT64_C(1) << 27) + 2 * (i - chain) + 1;
	}
	return pfs_engine_load(b->engine, parent, prime, n);
}

static int one_width(struct bench *b, unsigned n_limbs)
{
	uint32_t slots[32];
	struct pfs_figure f;
	char what[64];
	int error = load_width(b, n_limbs);

	for (uint32_t i = 0; i < PFS_COUNT(slots); i++)
		slots[i] = n_limbs + i * 1000;
	error = error ? error : pfs_engine_probe(b->engine, &f, PFS_PROBE_SCAN, slots, 1, REPEAT);
	if (error)
		return error;
	(void)snprintf(what, sizeof(what), "scan, %u bits", n_limbs * 32);
	print_figure(what, &f, b);
	if (n_limbs != 4)
		return 0;
	error = pfs_engine_probe(b->engine, &f, PFS_PROBE_SCAN, slots, 32, REPEAT);
	if (error)
		return error;
	print_figure("32 predicates in one pass, 128 bits", &f, NULL);
	(void)printf("  %-52s %9.0f G tests/s\n", "", 32 * (double)b->rows / f.median / 1e9);
	return 0;
}

static int widths(struct bench *b)
{
	static const unsigned limbs[] = {2, 3, 4, 8, 16};
	int error = 0;

	(void)printf("%llu codes of one width, bits by row\n", (unsigned long long)b->rows);
	for (size_t i = 0; i < PFS_COUNT(limbs) && error == 0; i++)
		error = one_width(b, limbs[i]);
	return error;
}

/* ---- the mixed tree, in pre-order: a directory, its files, its subdirectories ---- */

struct tree {
	size_t n;
	uint32_t *parent; /* by slot */
	uint64_t *prime;
	uint32_t n_directories;
	uint32_t *slot, *up,
		*size; /* by directory: its slot, its parent's number, directories below */
};

static void free_tree(struct tree *t)
{
	free(t->parent);
	free(t->prime);
	free(t->slot);
	free(t->up);
	free(t->size);
}

static uint32_t next_depth(uint32_t depth, uint64_t random)
{
	uint32_t r = (uint32_t)(random >> 40) % 100;
	uint32_t climb = 1 + (uint32_t)__builtin_ctzll(~random);

	if (r < (depth < 3 ? 50 : depth < 23 ? 30 : 0))
		return depth + 1;
	return r < 80 ? depth : depth - PFS_MIN(depth, climb);
}

/* A walk goes down, stays or climbs: it is about five deep, at most 24. Half of all directories are
 * below the first subdirectory, so that there is something large to move. */
static void shape_tree(struct tree *t)
{
	uint32_t stack[32] = {0}, depth = 0;
	uint64_t x = 1;

	for (uint32_t d = 0; d < t->n_directories; d++) {
		if (d) {
			x = mix(x);
			depth = next_depth(depth, x);
			depth = PFS_MAX(depth, d > 1 && d <= t->n_directories / 2 ? 2u : 1u);
			t->up[d] = stack[depth - 1];
		}
		stack[depth] = d;
		t->size[d] = 1;
	}
	for (uint32_t d = t->n_directories; d-- > 1;)
		t->size[t->up[d]] += t->size[d];
}

static int compare_weights(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

/* The heaviest directories get the smallest primes, as in an import. */
static int give_primes(struct tree *t)
{
	uint64_t *weights PFS_FREE = malloc(t->n_directories * sizeof(*weights));
	uint32_t *primes = primesieve_generate_n_primes(t->n_directories, 3, UINT32_PRIMES);

	if (!weights || !primes) {
		primesieve_free(primes);
		return -ENOMEM;
	}
	for (uint32_t d = 0; d < t->n_directories; d++)
		weights[d] = (uint64_t)t->size[d] << 32 | d;
	qsort(weights, t->n_directories, sizeof(*weights), compare_weights);
	for (uint32_t i = 0; i < t->n_directories; i++)
		t->prime[t->slot[(uint32_t)weights[i]]] = primes[i];
	t->prime[0] = 2;
	primesieve_free(primes);
	return 0;
}

static int make_tree(struct tree *t, uint32_t n_directories, uint64_t n_files)
{
	uint64_t range = 2 * n_files / n_directories + 1, room = n_directories * (range + 1),
		 file = 1;

	*t = (struct tree){.n_directories = n_directories};
	t->parent = malloc(room * sizeof(*t->parent));
	t->prime = malloc(room * sizeof(*t->prime));
	t->slot = calloc(n_directories, sizeof(*t->slot));
	t->up = calloc(n_directories, sizeof(*t->up));
	t->size = calloc(n_directories, sizeof(*t->size));
	if (!t->parent || !t->prime || !t->slot || !t->up || !t->size)
		return -ENOMEM;
	shape_tree(t);
	for (uint32_t d = 0; d < n_directories; d++) {
		uint64_t files = mix(d + 7) % range;

		t->slot[d] = (uint32_t)t->n;
		t->parent[t->n++] = d ? t->slot[t->up[d]] : PFS_NO_SLOT;
		for (; files; files--) {
			t->parent[t->n] = t->slot[d];
			t->prime[t->n++] = FIRST_FILE_PRIME + 2 * file++;
		}
	}
	return give_primes(t);
}

static int one_subtree(struct bench *b, void *slot)
{
	struct pfs_bitmap *set;
	int error = pfs_engine_subtree(b->engine, &set, *(uint32_t *)slot);

	if (error == 0)
		pfs_bitmap_free(set);
	return error;
}

static int many_subtrees(struct bench *b, void *slots)
{
	struct pfs_bitmap *sets[PFS_SUBTREES_MAX];
	int error = pfs_engine_subtrees(b->engine, sets, slots, PFS_SUBTREES_MAX);

	for (size_t i = 0; i < PFS_SUBTREES_MAX && error == 0; i++)
		pfs_bitmap_free(sets[i]);
	return error;
}

static int range_written(struct bench *b, void *slot)
{
	struct pfs_bitmap *set, *empty;
	int error = pfs_engine_subtree(b->engine, &set, *(uint32_t *)slot);

	if (error)
		return error;
	error = pfs_bitmap_of_slots(b->engine, &empty, NULL, 0);
	if (error == 0) {
		error = pfs_bitmap_combine(empty, set, PFS_BITMAP_OR);
		pfs_bitmap_free(empty);
	}
	pfs_bitmap_free(set);
	return error;
}

/* Checks that the answer by codes is the range that follows from pre-order. */
static int verify(struct bench *b, const struct tree *t, uint32_t d)
{
	uint32_t end = d + t->size[d];
	uint64_t wanted = (end < t->n_directories ? t->slot[end] : t->n) - t->slot[d], count = 0;
	struct pfs_bitmap *set;
	int error = pfs_engine_subtree(b->engine, &set, t->slot[d]);

	if (error)
		return error;
	error = pfs_bitmap_count(set, &count);
	pfs_bitmap_free(set);
	if (error == 0 && count != wanted)
		(void)printf("  BAD: directory %u holds %llu, not %llu\n", d,
			     (unsigned long long)wanted, (unsigned long long)count);
	return error;
}

static int subtrees(struct bench *b, const struct tree *t)
{
	uint32_t slots[PFS_SUBTREES_MAX], *some = &slots[1];
	struct pfs_figure f;
	int error = 0;

	for (uint32_t k = 0; k < PFS_SUBTREES_MAX; k++) {
		uint32_t d = (uint32_t)(mix(k) % t->n_directories);

		while (t->size[d] < 100 && d)
			d = t->up[d];
		slots[k] = t->slot[d];
		pfs_engine_use_ranges(b->engine, false);
		error = error || k >= 8 ? error : verify(b, t, d);
	}
	error = error ? error : time_calls(b, &f, one_subtree, some);
	if (error)
		return error;
	print_figure("subtree by codes, bitmap of all slots", &f, NULL);
	error = time_calls(b, &f, many_subtrees, slots);
	if (error)
		return error;
	print_figure("64 subtrees in one pass, 64 bitmaps", &f, NULL);
	pfs_engine_use_ranges(b->engine, true);
	error = time_calls(b, &f, one_subtree, some);
	if (error == 0)
		print_figure("subtree as a range of slots", &f, NULL);
	error = error ? error : time_calls(b, &f, range_written, some);
	if (error == 0)
		print_figure("subtree as a range of slots, bitmap, or-ed", &f, NULL);
	return error;
}

/* ---- several threads ---- */

struct asker {
	pthread_t thread;
	struct bench *bench;
	const struct tree *tree;
	uint64_t seed, n_answers;
	double end;
	int error;
};

/* Subtrees of random directories, counted, until the time is over. */
static void *ask(void *arg)
{
	struct asker *asker = arg;
	const struct tree *t = asker->tree;

	while (!asker->error && pfs_bench_now() < asker->end) {
		uint32_t d = (uint32_t)(mix(asker->seed++) % t->n_directories);
		struct pfs_bitmap *set;
		uint64_t count;

		asker->error = pfs_engine_subtree(asker->bench->engine, &set, t->slot[d]);
		if (asker->error)
			break;
		asker->error = pfs_bitmap_count(set, &count);
		pfs_bitmap_free(set);
		asker->n_answers++;
	}
	return NULL;
}

static int ask_beside(struct bench *b, const struct tree *t, unsigned n_threads,
		      uint64_t *n_answers)
{
	struct asker askers[THREADS_MAX];
	double end = pfs_bench_now() + ASKED_SECONDS;
	unsigned n = 0;
	int error = 0;

	*n_answers = 0;
	for (; n < n_threads && !error; n += !error) {
		askers[n] = (struct asker){
			.bench = b, .tree = t, .seed = (uint64_t)n << 32, .end = end};
		error = -pthread_create(&askers[n].thread, NULL, ask, &askers[n]);
	}
	for (unsigned i = 0; i < n; i++) {
		(void)pthread_join(askers[i].thread, NULL);
		error = error ? error : askers[i].error;
		*n_answers += askers[i].n_answers;
	}
	return error;
}

static int side_by_side(struct bench *b, const struct tree *t)
{
	int error = 0;

	pfs_engine_use_ranges(b->engine, false);
	for (unsigned n = 1; n <= THREADS_MAX && !error; n *= 2) {
		uint64_t n_answers;

		error = ask_beside(b, t, n, &n_answers);
		if (!error)
			(void)printf(
				"  subtrees by codes, counted, asked by %u thread%-12s %9.0f a second\n",
				n, n == 1 ? "" : "s", (double)n_answers / ASKED_SECONDS);
	}
	pfs_engine_use_ranges(b->engine, true);
	return error;
}

struct moving {
	struct pfs_delta delta[2];
	unsigned turn;
};

static int move(struct bench *b, void *argument)
{
	struct moving *m = argument;

	return pfs_engine_apply(b->engine, NULL, &m->delta[m->turn++ % 2], 1);
}

/* Moves it to the root and back, so that its codes get shorter and longer. */
static int moves(struct bench *b, const struct tree *t, uint32_t wanted, const char *size)
{
	uint32_t best = 1;
	struct moving m = {.turn = 0};
	struct pfs_figure f;
	char what[64];
	int error;

	for (uint32_t d = 1; d < t->n_directories; d++) {
		uint32_t distance = t->size[d] > wanted ? t->size[d] - wanted : wanted - t->size[d];
		uint32_t now_best =
			t->size[best] > wanted ? t->size[best] - wanted : wanted - t->size[best];

		if (distance < now_best)
			best = d;
	}
	for (unsigned i = 0; i < 2; i++)
		m.delta[i] = (struct pfs_delta){.op = PFS_DELTA_MOVE, .slot = t->slot[best]};
	m.delta[1].parent = t->slot[t->up[best]];
	/* another place: outside of it, and one level deep */
	for (uint32_t d = 1; d < t->n_directories; d++)
		if ((d < best || d >= best + t->size[best]) && d != t->up[best] && t->up[d] == 0)
			m.delta[0].parent = t->slot[d];
	error = time_calls(b, &f, move, &m);
	(void)snprintf(what, sizeof(what), "moving %s of %u directories", size, t->size[best]);
	if (error == 0)
		print_figure(what, &f, NULL);
	return error;
}

static int count_bytes(void *arg, const char *bytes PFS_UNUSED, size_t size)
{
	*(uint64_t *)arg += size;
	return 0;
}

static int list_all(struct bench *b, void *argument)
{
	const struct pfs_listing *listing = argument;

	*(uint64_t *)listing->arg = 0;
	return pfs_engine_list(b->engine, listing);
}

static int time_listings(struct bench *b, struct pfs_listing *listing, const uint64_t *bytes)
{
	double start = pfs_bench_now(), sent;
	int error = pfs_engine_send_names(b->engine, listing->view, SIZE_MAX);
	struct pfs_figure f;

	sent = pfs_bench_now() - start;
	if (error == 0)
		error = time_calls(b, &f, list_all, listing);
	if (error)
		return error;
	(void)printf("  %-52s %9.3f ms, once\n", "sending the names of a listing", sent * 1e3);
	(void)printf("  %-52s %9.1f GB/s [%.1f %.1f] of text (%.2f GB)\n",
		     "listing every path, slots given", (double)*bytes / f.median / 1e9,
		     (double)*bytes / f.most / 1e9, (double)*bytes / f.least / 1e9,
		     (double)*bytes / 1e9);
	return 0;
}

static int listings(struct bench *b, const struct tree *t)
{
	struct pfs_names_view view = {.n_slots = t->n, .place_shift = 4, .generation = 1};
	uint32_t *place PFS_FREE = malloc(t->n * sizeof(*place));
	uint8_t *heap PFS_FREE = calloc(t->n + 1, 16);
	uint64_t bytes = 0;
	struct pfs_listing listing = {&view, place, t->n, 0, count_bytes, &bytes};

	if (!place || !heap)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++) {
		place[i] = (uint32_t)i; /* the slots, too */
		heap[16 * i] =
			(uint8_t)snprintf((char *)heap + 16 * i + 1, 15, "n%llu.%s",
					  (unsigned long long)i % 100000000, i % 2 ? "txt" : "c");
	}
	view.heap = heap;
	view.heap_size = 16 * t->n;
	view.place = place;
	return time_listings(b, &listing, &bytes);
}

static int mixed(struct bench *b)
{
	struct pfs_engine_info info;
	struct pfs_figure f;
	struct tree t;
	int error = make_tree(&t, (uint32_t)b->directories, b->files);

	error = error ? error : pfs_engine_load(b->engine, t.parent, t.prime, t.n);
	if (error == 0) {
		pfs_engine_describe(b->engine, &info);
		(void)printf("%u directories (%.2f limbs on average, %llu deep), %llu files\n",
			     t.n_directories, (double)info.code_limbs / t.n_directories,
			     (unsigned long long)info.deep,
			     (unsigned long long)(t.n - t.n_directories));
		error = pfs_engine_probe(b->engine, &f, PFS_PROBE_BUILD, NULL, 0, REPEAT);
	}
	if (error == 0)
		print_figure("all codes from parents and primes", &f, b);
	error = error ? error : subtrees(b, &t);
	error = error ? error : side_by_side(b, &t);
	error = error ? error : listings(b, &t);
	error = error ? error : moves(b, &t, 1000, "a subtree");
	error = error ? error : moves(b, &t, t.n_directories / 2, "a subtree");
	error = error ? error : subtrees(b, &t);
	free_tree(&t);
	return error;
}

static int bench_engine(enum pfs_engine_kind kind, struct bench b)
{
	struct pfs_engine_info info;
	bool device = kind == PFS_ENGINE_CUDA;
	int error = pfs_engine_open(&b.engine, kind);

	if (error)
		return error;
	b.rows = b.rows ? b.rows : device ? 104857600 : 4194304;
	b.directories = b.directories ? b.directories : device ? 20000000 : 1000000;
	b.files = b.files ? b.files : 5 * b.directories;
	pfs_engine_describe(b.engine, &info);
	(void)printf("%s: %s\n", info.engine, info.device);
	error = limits(&b);
	error = error ? error : widths(&b);
	error = error ? error : mixed(&b);
	pfs_engine_describe(b.engine, &info);
	if (error == 0 && info.degraded)
		error = -EIO;
	pfs_engine_close(b.engine);
	return error;
}

int pfs_bench_codes(int argc, char **argv);

int pfs_bench_codes(int argc, char **argv)
{
	struct bench b = {0};
	struct pfs_cmd_args args;
	const char *engine = "both";
	int option, error = 0;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == ENGINE)
			engine = args.value;
		else if (option == ROWS)
			pfs_cmd_number(&args, &b.rows, ROWS, 40000, UINT64_C(1) << 31);
		else if (option == DIRECTORIES)
			pfs_cmd_number(&args, &b.directories, DIRECTORIES, 1000, 200000000);
		else
			pfs_cmd_number(&args, &b.files, FILES, 0, UINT64_C(4000000000));
	}
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	if (strcmp(engine, "host") != 0)
		error = bench_engine(PFS_ENGINE_CUDA, b);
	if (error == -ENODEV && strcmp(engine, "both") == 0)
		error = 0;
	if (error == 0 && strcmp(engine, "cuda") != 0)
		error = bench_engine(PFS_ENGINE_HOST, b);
	if (error)
		return pfs_cmd_fail("codes", "%s", strerror(-error));
	return pfs_cmd_flush("codes", PFS_EXIT_OK);
}
