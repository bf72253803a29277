/* SPDX-License-Identifier: MIT */
/* primefs-bench s5 - the experiments of the paper on B+-trees: creation, insertion, search, visit,
 * range and deletion, beside a sorted array and other maps (s5_peers.h) in the same run.
 *
 * Keys are random 64-bit numbers; questions are unsorted, and one in eight has no key. Times are
 * from and to the caller's memory, and include a device's bus; those of "on the device" lines do
 * not. */
#include "tools/bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "gpu/index.h"
#include "gpu/probe.h"
#include "gpu/relation.h"
#include "tools/bench/s5_columns.h"
#include "tools/bench/s5_peers.h"

#define RUNS	5
#define SINGLES 1000u /* keys that are inserted one at a time, at most */

enum { KEYS, ENGINE, QUESTIONS, PAGE, UPPER, THREADS, CPU, SIZES, COLUMNS, PEERS };

static const struct pfs_cmd_option options[] = {
	[KEYS] = {"keys", 'k', "N", "in the index (1000000)"},
	[ENGINE] = {"engine", 'e', "NAME", "host or cuda (host)"},
	[QUESTIONS] = {"questions", 'q', "N",
		       "in a batch, and entries inserted (a tenth of the keys)"},
	[PAGE] = {"page", 'p', "N", "entries of a page on the host; 0: measured (62)"},
	[UPPER] = {"upper", 'u', "WHERE", "a device's upper levels: beside or host (beside)"},
	[THREADS] = {"threads", 't', "N", "of the host's operators; 0: one a processor (0)"},
	[CPU] = {"cpu", 'c', NULL, "processor time, of all threads together"},
	[SIZES] = {"sizes", 0, NULL, "from 5,000 keys to those, then other pages of them"},
	[COLUMNS] = {"columns", 0, NULL,
		     "an index of a column of so many nodes, by both kinds; on the host"},
	[PEERS] = {"peers", 0, "WHICH", "beside the array: maps or none (maps)"},
	{0},
};

static const struct pfs_cmd command = {
	"s5",
	"",
	"Times ordered indexes beside a sorted array.",
	options,
	"Each answer is compared with the array's: BAD where they differ.\n",
};

struct bench {
	struct pfs_run run;
	struct pfs_index *index;
	size_t n, m; /* keys, questions */
	uint64_t *keys, *asked, *new_keys;
	uint32_t *values, *found, *expected;
	struct pfs_s5_peer *peers[PFS_S5_PEERS]; /* NULL: there is none */
	uint64_t *all_keys; /* all keys of a peer, */
	uint32_t *all_values; /* and its values */
	uint32_t page;
	enum pfs_index_upper_levels upper;
	bool bad, is_cpu; /* is_cpu: times are processor times */
	bool is_alone; /* beside the array only */
};

static double clock_of(const struct bench *b)
{
	return b->is_cpu ? pfs_bench_cpu() : pfs_bench_now();
}

/* Returns the next one of a sequence without repetitions. */
static uint64_t scrambled(uint64_t x)
{
	x *= UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

static int make(struct bench *b)
{
	b->keys = malloc(b->n * sizeof(*b->keys));
	b->values = malloc(b->n * sizeof(*b->values));
	b->asked = malloc(b->m * sizeof(*b->asked));
	b->new_keys = malloc(b->m * sizeof(*b->new_keys));
	b->found = malloc(b->m * sizeof(*b->found));
	b->expected = malloc(b->m * sizeof(*b->expected));
	if (!b->keys || !b->values || !b->asked || !b->new_keys || !b->found || !b->expected)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i++) {
		b->keys[i] = scrambled(i + 1);
		b->values[i] = (uint32_t)i;
	}
	qsort(b->keys, b->n, sizeof(*b->keys), pfs_compare_u64);
	for (size_t i = 0; i < b->m; i++) {
		uint64_t r = scrambled(b->n + b->m + i + 1);

		b->asked[i] = i % 8 ? b->keys[r % b->n] : r;
		b->new_keys[i] = scrambled(b->n + i + 1);
	}
	return 0;
}

static uint32_t search_array(const struct bench *b, uint64_t key)
{
	const uint64_t *base = b->keys;

	for (size_t n = b->n; n > 1; n -= n / 2)
		base += base[n / 2] <= key ? n / 2 : 0;
	return *base == key ? b->values[base - b->keys] : PFS_INDEX_NONE;
}

/* The median of the runs, with the least and the most where there are several. What is done to a
 * single key is in microseconds. */
static void line(const char *what, double *seconds, unsigned runs, size_t n, bool is_right)
{
	const double unit = n == 1 ? 1e6 : 1e3;
	struct pfs_figure figure;
	char range[40] = "";

	pfs_figure_of(&figure, seconds, runs);
	if (runs > 1)
		(void)snprintf(range, sizeof(range), "[%.3f %.3f]", figure.least * unit,
			       figure.most * unit);
	(void)printf("%-44s %10.3f %s %-21s %10.2f M/s%s\n", what, figure.median * unit,
		     n == 1 ? "us" : "ms", range, (double)n / figure.median / 1e6,
		     is_right ? "" : "  BAD");
	(void)fflush(stdout);
}

/* ---- beside it ---- */

enum step { FILL, FIND, VISIT, INSERT, REMOVE };

static int ask_peer(const struct bench *b, struct pfs_s5_peer *peer, enum step step)
{
	switch (step) {
	case FILL:
		return pfs_s5_peer_fill(peer, b->keys, b->values, b->n);
	case FIND:
		return pfs_s5_peer_find(peer, b->found, b->asked, b->m);
	case VISIT:
		return pfs_s5_peer_visit(peer, b->all_keys, b->all_values);
	case INSERT:
		return pfs_s5_peer_insert(peer, b->new_keys, b->values, b->m);
	default:
		return pfs_s5_peer_remove(peer, b->new_keys, b->m);
	}
}

static bool is_peer_right(const struct bench *b, enum step step)
{
	return step != FIND || memcmp(b->found, b->expected, b->m * sizeof(*b->found)) == 0;
}

/* Measures the same step of n keys with the other maps: as often as with ours, if it changes
 * nothing and takes less than a second. */
static int time_peers(struct bench *b, enum step step, size_t n)
{
	const unsigned most = step == FIND || step == VISIT ? RUNS : 1;

	for (int kind = 0; kind < PFS_S5_PEERS; kind++) {
		unsigned runs = 0;
		double seconds[RUNS];
		char what[64];

		if (!b->peers[kind])
			continue;
		while (runs < most && (!runs || seconds[runs - 1] < 1)) {
			double started = clock_of(b);

			PFS_TRY(ask_peer(b, b->peers[kind], step));
			seconds[runs++] = clock_of(b) - started;
		}
		(void)snprintf(what, sizeof(what), "    beside %s, one thread",
			       pfs_s5_peer_name((enum pfs_s5_peer_kind)kind));
		line(what, seconds, runs, n, is_peer_right(b, step));
		b->bad |= !is_peer_right(b, step);
	}
	return 0;
}

/* Inserts single keys, each timed alone, and removes them. peer: NULL: into our index. */
static int time_singles(struct bench *b, struct pfs_s5_peer *peer, double *seconds, size_t n)
{
	uint64_t changed = 1;

	for (size_t i = 0; i < n; i++) {
		const uint64_t *key = b->new_keys + i;
		double started = clock_of(b);

		if (peer)
			PFS_TRY(pfs_s5_peer_insert(peer, key, b->values + i, 1));
		else
			PFS_TRY(pfs_index_insert(&b->run, b->index, &changed, key, b->values + i, 1,
						 PFS_INDEX_REFUSE));
		seconds[i] = clock_of(b) - started;
		b->bad |= changed != 1;
	}
	if (peer)
		PFS_TRY(pfs_s5_peer_find(peer, b->found, b->new_keys, n));
	else
		PFS_TRY(pfs_index_find(&b->run, b->index, NULL, b->found, b->new_keys, n,
				       PFS_INDEX_EQUAL));
	if (peer)
		return pfs_s5_peer_remove(peer, b->new_keys, n);
	return pfs_index_remove(&b->run, b->index, &changed, b->new_keys, NULL, n);
}

/* A key in a call is what a map inserts whose caller does not wait for more of them. */
static int insert_singles(struct bench *b)
{
	const size_t n = PFS_MIN(b->m, (size_t)SINGLES);

	for (int kind = -1; kind < PFS_S5_PEERS; kind++) {
		struct pfs_s5_peer *peer = kind < 0 ? NULL : b->peers[kind];
		double seconds[SINGLES];
		char what[64] = "insertion, a single key; 15 us wanted";
		bool is_right;

		if (kind >= 0 && !peer)
			continue;
		PFS_TRY(time_singles(b, peer, seconds, n));
		is_right = memcmp(b->found, b->values, n * sizeof(*b->found)) == 0;
		b->bad |= !is_right;
		if (peer)
			(void)snprintf(what, sizeof(what), "    beside %s",
				       pfs_s5_peer_name((enum pfs_s5_peer_kind)kind));
		line(what, seconds, (unsigned)n, 1, is_right);
	}
	return 0;
}

static int open_peers(struct bench *b)
{
	if (b->is_alone)
		return 0;
	b->all_keys = malloc(b->n * sizeof(*b->all_keys));
	b->all_values = malloc(b->n * sizeof(*b->all_values));
	if (!b->all_keys || !b->all_values)
		return -ENOMEM;
	for (int kind = 0; kind < PFS_S5_PEERS; kind++) {
		int error = pfs_s5_peer_open(&b->peers[kind], (enum pfs_s5_peer_kind)kind);

		if (error == -ENOENT)
			(void)printf("without %s: tools/setup bench brings it\n",
				     pfs_s5_peer_name((enum pfs_s5_peer_kind)kind));
		else if (error)
			return error;
	}
	return 0;
}

/* ---- the index ---- */

static int build(struct bench *b)
{
	const struct pfs_index_shape shape = {
		.kind = PFS_INDEX_UNIQUE, .page = b->page, .upper = b->upper};
	struct pfs_index_info info;
	double seconds[RUNS];

	for (int i = 0; i < RUNS; i++) {
		double started;

		pfs_index_close(&b->run, b->index);
		started = clock_of(b);
		PFS_TRY(pfs_index_build(&b->run, &b->index, &shape, b->keys, b->values, b->n));
		seconds[i] = clock_of(b) - started;
	}
	line("creation", seconds, RUNS, b->n, true);
	pfs_index_describe(b->index, &info);
	(void)printf("    in pages of %u entries%s, %.1f MB, %.1f bytes a key\n", info.page,
		     info.measured ? ", measured" : "", (double)info.bytes / 1e6,
		     (double)info.bytes / (double)b->n);
	if (info.upper_bytes)
		(void)printf("    the levels above them on the host, %.1f MB\n",
			     (double)info.upper_bytes / 1e6);
	return time_peers(b, FILL, b->n);
}

static int search(struct bench *b, const char *what)
{
	double seconds[RUNS], beside[RUNS];
	unsigned n_beside = 0;
	bool is_right;

	for (int i = 0; i < RUNS; i++) {
		double started = clock_of(b);

		PFS_TRY(pfs_index_find(&b->run, b->index, NULL, b->found, b->asked, b->m,
				       PFS_INDEX_EQUAL));
		seconds[i] = clock_of(b) - started;
	}
	do {
		double started = clock_of(b);

		for (size_t k = 0; k < b->m; k++)
			b->expected[k] = search_array(b, b->asked[k]);
		beside[n_beside] = clock_of(b) - started;
	} while (beside[n_beside++] < 1 && n_beside < RUNS);
	is_right = memcmp(b->found, b->expected, b->m * sizeof(*b->found)) == 0;
	b->bad |= !is_right;
	line(what, seconds, RUNS, b->m, is_right);
	line("    beside a sorted array, one thread", beside, n_beside, b->m, true);
	return time_peers(b, FIND, b->m);
}

/* True if what was copied on the device has the sums of the index's entries. */
static bool has_all(const struct bench *b, const struct pfs_index_seconds *copied)
{
	uint64_t keys = 0, values = 0;

	for (size_t i = 0; i < b->n; i++) {
		keys += b->keys[i];
		values += b->values[i];
	}
	return copied->key_sum == keys && copied->value_sum == values;
}

/* Measures questions and answers that are on the device. */
static int search_on_device(struct bench *b, const char *what)
{
	double seconds[PFS_INDEX_PROBES][RUNS];
	struct pfs_index_seconds out = {.repeat = RUNS};
	bool is_right;
	int error;

	for (unsigned i = 0; i < PFS_INDEX_PROBES; i++)
		out.seconds[i] = seconds[i];
	error = pfs_index_probe(&b->run, b->index, &out, b->asked, b->m);
	if (error == -EOPNOTSUPP)
		return 0;
	PFS_TRY(error);
	is_right = has_all(b, &out);
	b->bad |= !is_right;
	line(what, seconds[PFS_INDEX_SEARCHED], RUNS, b->m, true);
	line("    beside thrust::lower_bound, sorted array", seconds[PFS_INDEX_BISECTED], RUNS,
	     b->m, true);
	line("visit of all, left on the device", seconds[PFS_INDEX_VISITED], RUNS, b->n, is_right);
	line("    beside a sum of these keys and values", seconds[PFS_INDEX_SUMMED], RUNS, b->n,
	     is_right);
	return 0;
}

static int search_both(struct bench *b, const char *what, const char *on_device)
{
	PFS_TRY(search(b, what));
	return search_on_device(b, on_device);
}

static int visit(struct bench *b, const char *what, uint64_t first, uint64_t last)
{
	struct pfs_index_list list;
	double seconds[RUNS];
	size_t n = 0;

	for (int i = 0; i < RUNS; i++) {
		double started = clock_of(b);

		PFS_TRY(pfs_index_range(&b->run, b->index, &list, first, last));
		seconds[i] = clock_of(b) - started;
		n = list.n;
		pfs_index_list_free(&b->run, &list);
	}
	line(what, seconds, RUNS, n, true);
	return 0;
}

static int visit_some(struct bench *b)
{
	PFS_TRY(visit(b, "visit of all", 0, UINT64_MAX));
	PFS_TRY(time_peers(b, VISIT, b->n));
	return visit(b, "range, a hundredth", UINT64_MAX / 2, UINT64_MAX / 100 * 51);
}

/* Inserts and deletes in turns, so that each insertion finds the same entries. The first one also
 * takes memory from the system. */
static int change(struct bench *b)
{
	uint64_t changed[RUNS], removed[RUNS];
	double insertion[RUNS], deletion[RUNS], first, started;

	memset(b->expected, 0, b->m * sizeof(*b->expected)); /* of the values */
	for (int i = 0; i < RUNS; i++) {
		started = clock_of(b);
		PFS_TRY(pfs_index_insert(&b->run, b->index, &changed[i], b->new_keys, b->expected,
					 b->m, PFS_INDEX_REFUSE));
		insertion[i] = clock_of(b) - started;
		started = clock_of(b);
		PFS_TRY(pfs_index_remove(&b->run, b->index, &removed[i], b->new_keys, NULL, b->m));
		deletion[i] = clock_of(b) - started;
		b->bad |= changed[i] != b->m || removed[i] != b->m;
	}
	first = insertion[0];
	line("insertion, the first batch", &first, 1, b->m, changed[0] == b->m);
	line("insertion, a batch", insertion, RUNS, b->m, !b->bad);
	PFS_TRY(time_peers(b, INSERT, b->m));
	line("deletion, a batch", deletion, RUNS, b->m, !b->bad);
	return time_peers(b, REMOVE, b->m);
}

static int bench_index(struct bench *b)
{
	PFS_TRY(make(b));
	PFS_TRY(open_peers(b));
	(void)printf("%zu keys, %zu questions, %s\n", b->n, b->m,
		     b->run.on == PFS_ENGINE_CUDA ? "cuda" : "host");
	PFS_TRY(build(b));
	PFS_TRY(search_both(b, "search", "search, on the device"));
	PFS_TRY(visit_some(b));
	PFS_TRY(insert_singles(b));
	PFS_TRY(change(b));
	return search_both(b, "search after insertion and deletion",
			   "search after them, on the device");
}

static void clear(struct bench *b)
{
	pfs_index_close(&b->run, b->index);
	for (int kind = 0; kind < PFS_S5_PEERS; kind++) {
		pfs_s5_peer_close(b->peers[kind]);
		b->peers[kind] = NULL;
	}
	free(b->all_keys);
	free(b->all_values);
	free(b->keys);
	free(b->values);
	free(b->asked);
	free(b->new_keys);
	free(b->found);
	free(b->expected);
	b->index = NULL;
	b->all_keys = b->keys = b->asked = b->new_keys = NULL;
	b->all_values = b->values = b->found = b->expected = NULL;
}

/* Measures one index of so many keys, with a tenth as many questions unless a number is given. */
static int bench(struct bench *b, uint64_t keys, uint64_t questions, uint64_t page)
{
	int error;

	b->n = keys;
	b->m = questions ? questions : keys / 10;
	b->page = page ? (uint32_t)page : PFS_INDEX_MEASURED;
	error = bench_index(b);
	clear(b);
	return error;
}

/* Measures more and more keys, as the paper's figures do; then the largest number in pages of other
 * sizes. */
static int bench_sizes(struct bench *b, uint64_t keys, uint64_t questions, uint64_t page)
{
	static const uint64_t steps[] = {5000, 20000, 100000, 1000000, 10000000, 40000000};
	static const uint32_t pages[] = {14, 30, 126, 254};

	for (size_t i = 0; i < PFS_COUNT(steps) && steps[i] < keys; i++)
		PFS_TRY(bench(b, steps[i], PFS_MIN(questions, steps[i]), page));
	PFS_TRY(bench(b, keys, questions, page));
	for (size_t i = 0; i < PFS_COUNT(pages) && b->run.on == PFS_ENGINE_HOST; i++)
		PFS_TRY(bench(b, keys, questions, pages[i]));
	return 0;
}

static bool upper_by_name(enum pfs_index_upper_levels *out, const char *name)
{
	*out = strcmp(name, "host") == 0 ? PFS_INDEX_UPPER_HOST : PFS_INDEX_UPPER_BESIDE;
	return *out == PFS_INDEX_UPPER_HOST || strcmp(name, "beside") == 0;
}

static void choose_peers(struct bench *b, struct pfs_cmd_args *args)
{
	b->is_alone = strcmp(args->value, "none") == 0;
	if (!b->is_alone && strcmp(args->value, "maps") != 0)
		pfs_cmd_reject(args, "--peers=%s: not maps or none", args->value);
}

int pfs_bench_s5(int argc, char **argv)
{
	struct bench b = {.run.on = PFS_ENGINE_HOST};
	uint64_t keys = 1000000, questions = 0, page = PFS_INDEX_PAGE, threads = 0;
	struct pfs_cmd_args args;
	bool is_sweep = false, is_columns = false;
	int option, error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == KEYS)
			pfs_cmd_number(&args, &keys, KEYS, 1000, 500000000);
		else if (option == SIZES)
			is_sweep = true;
		else if (option == COLUMNS)
			is_columns = true;
		else if (option == QUESTIONS)
			pfs_cmd_number(&args, &questions, QUESTIONS, 1, 500000000);
		else if (option == PAGE)
			pfs_cmd_number(&args, &page, PAGE, 0, PFS_INDEX_PAGE_MOST);
		else if (option == THREADS)
			pfs_cmd_number(&args, &threads, THREADS, 0, 256);
		else if (option == UPPER && !upper_by_name(&b.upper, args.value))
			return pfs_cmd_usage("s5", "'%s': neither beside nor host", args.value);
		else if (option == CPU)
			b.is_cpu = true;
		else if (option == PEERS)
			choose_peers(&b, &args);
		else if (option == ENGINE && pfs_engine_by_name(&b.run.on, args.value) != 0)
			return pfs_cmd_usage("s5", "'%s': no engine", args.value);
	}
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	if (is_columns)
		b.run.on = PFS_ENGINE_HOST;
	error = pfs_operators_open(&b.run.operators, b.run.on, (unsigned)threads);
	if (!error && is_columns)
		error = pfs_s5_columns(&b.run, keys, b.is_cpu);
	else if (!error)
		error = (is_sweep ? bench_sizes : bench)(&b, keys, questions, page);
	pfs_operators_close(b.run.operators);
	if (error)
		return pfs_cmd_fail("s5", "%s", strerror(-error));
	return pfs_cmd_flush("s5", b.bad ? PFS_EXIT_FAILURE : PFS_EXIT_OK);
}
