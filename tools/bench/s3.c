/* SPDX-License-Identifier: MIT */
/* primefs-bench s3 - the experiments of the paper on speculative prefix trees: three sets of keys,
 * trees of every level from 100 keys to what memory holds, every traversal, partitions of other
 * heights, and compact trees, beside a scan of all keys and a sorted array in the same run.
 *
 * Times are from and to the caller's memory, and include a device's bus; those of "on the device"
 * lines do not. */
#include "tools/bench/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "base/search.h"
#include "gpu/probe.h"
#include "gpu/relation.h"
#include "tools/bench/gen.h"
#include "tools/bench/s3.h"

#define LINE	  128u /* bytes of a key of the first two sets */
#define URL_MAX	  147u
#define TAIL	  32u	  /* a number of 17 digits, and what snprintf needs */
#define SINGLES	  64u	  /* so many are asked for one after the other, */
#define MORE	  100000u /* or, if they take little time, so many */
#define FEW	  100u

enum { KEYS, ENGINE, QUESTIONS, BITS, MEMORY, SET, CPU };

static const struct pfs_cmd_option options[] = {
	[KEYS] = {"keys", 'k', "N", "of a compact tree, at most (1000000)"},
	[ENGINE] = {"engine", 'e', "NAME", "host or cuda (host)"},
	[QUESTIONS] = {"questions", 'q', "N", "in a batch (100000)"},
	[BITS] = {"bits", 'b', "N", "of a sub-key (4)"},
	[MEMORY] = {"memory", 'm', "MIB", "of a tree with all levels, at most (1024)"},
	[SET] = {"set", 's', "NAME", "partitions, consecutive, urls, paths or components (all)"},
	[CPU] = {"cpu", 'c', NULL, "processor time, of all threads together"},
	{0},
};

static const struct pfs_cmd command = {
	"s3",
	"",
	"Times prefix trees beside a scan and a sorted array.",
	options,
	"Each answer is compared with the key's number: BAD where they differ.\n",
};

static const char *const sets[] = {"partitions", "consecutive", "urls", "paths", "components"};

static const char *const traversals[] = {
	[PFS_PREFIX_SERIAL] = "serial",
	[PFS_PREFIX_SPECULATIVE] = "speculative",
	[PFS_PREFIX_HIERARCHICAL] = "hierarchical",
	[PFS_PREFIX_PARALLEL] = "parallel results",
};

double pfs_s3_clock(const struct pfs_s3 *b)
{
	return b->is_cpu ? pfs_bench_cpu() : pfs_bench_now();
}

/* ---- keys ---- */

/* Keys that part at once, so that each opens partitions of its own. */
static size_t partition_key(uint8_t *out, uint64_t i)
{
	char digits[17];
	uint64_t state = i;

	(void)snprintf(digits, sizeof(digits), "%016llx",
		       (unsigned long long)pfs_gen_random(&state));
	for (size_t k = 0; k < LINE; k++)
		out[k] = (uint8_t)digits[k % 16];
	return LINE;
}

/* The last byte counts fastest, then the one before it. */
static size_t consecutive_key(uint8_t *out, uint64_t i)
{
	memset(out, 0, LINE);
	for (size_t k = LINE; i; i >>= 8)
		out[--k] = (uint8_t)i;
	return LINE;
}

/* A key like those of a register of people: 60 bytes on average, 147 at most. */
static size_t url_key(uint8_t *out, uint64_t i)
{
	static const char head[] = "http://www.example.com/people/", vowels[] = "aeiou";
	uint64_t state = i * 7 + 3, r = pfs_gen_random(&state);
	size_t letters = 6 + r % 12 + (r >> 8 & 63 ? 0 : (r >> 16) % 83), n = sizeof(head) - 1;

	memcpy(out, head, n);
	for (size_t k = 0; k < letters; k++) {
		r = pfs_gen_random(&state);
		out[n++] = k % 2 ? (uint8_t)vowels[r % 5] : (uint8_t)('b' + r % 24);
	}
	out[sizeof(head) - 1 + letters / 2] = '-';
	return n + (size_t)snprintf((char *)out + n, TAIL, "/%017" PRIu64, i * 1000003);
}

/* A key of 67 bytes; they are in no order. */
static size_t path_key(uint8_t *out, uint64_t i)
{
	char text[URL_MAX];
	uint64_t state = i, r = pfs_gen_random(&state);
	int n = snprintf(text, sizeof(text),
			 "/srv/archive/section-%03u/package-%05u/include/file-%012llx.h",
			 (unsigned)(r % 1000), (unsigned)(r >> 32) % 100000,
			 (unsigned long long)(i * UINT64_C(0x9e3779b97f4b) % (UINT64_C(1) << 48)));

	memcpy(out, text, (size_t)n);
	return (size_t)n;
}

/* A directory's number, and the name of one of the twelve entries that each directory has: 16
 * bytes, as the path index has them. */
static size_t component_key(uint8_t *out, uint64_t i)
{
	char text[TAIL];
	uint64_t state = i, r = pfs_gen_random(&state), directory = i / 12;
	int n = snprintf(text, sizeof(text), "%06x-%05u", (unsigned)(r & 0xffffff),
			 (unsigned)(i % 12));

	for (int k = 0; k < 4; k++)
		*out++ = (uint8_t)(directory >> (24 - 8 * k));
	memcpy(out, text, (size_t)n);
	return 4 + (size_t)n;
}

static int make_keys(struct pfs_s3 *b)
{
	static size_t (*const make[])(uint8_t * out, uint64_t i) = {
		[PFS_S3_PARTITIONS] = partition_key,
		[PFS_S3_CONSECUTIVE] = consecutive_key,
		[PFS_S3_URLS] = url_key,
		[PFS_S3_PATHS] = path_key,
		[PFS_S3_COMPONENTS] = component_key,
	};
	size_t size = 0;

	b->bytes = malloc(b->most * URL_MAX + TAIL);
	b->at = malloc((b->most + 1) * sizeof(*b->at));
	b->numbers = malloc(b->most * sizeof(*b->numbers));
	b->sorted = malloc(b->most * sizeof(*b->sorted));
	if (!b->bytes || !b->at || !b->numbers || !b->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < b->most; i++) {
		uint8_t *out = b->bytes + size;

		b->at[i] = size;
		b->numbers[i] = i;
		size += make[b->set](out, i);
	}
	b->at[b->most] = size;
	return 0;
}

/* Chooses any keys of the first n. */
static int make_asked(const struct pfs_s3 *b, struct pfs_s3_asked *out, size_t most, size_t n,
		      uint64_t seed)
{
	size_t size = 0;

	out->n = PFS_MIN(most, n);
	if (!out->bytes) {
		out->bytes = malloc(most * URL_MAX);
		out->at = malloc((most + 1) * sizeof(*out->at));
		out->numbers = malloc(most * sizeof(*out->numbers));
	}
	if (!out->bytes || !out->at || !out->numbers)
		return -ENOMEM;
	for (size_t i = 0; i < out->n; i++) {
		size_t any = pfs_gen_random(&seed) % n, len = b->at[any + 1] - b->at[any];

		memcpy(out->bytes + size, b->bytes + b->at[any], len);
		out->at[i] = size;
		out->numbers[i] = any;
		size += len;
	}
	out->at[out->n] = size;
	return 0;
}

/* ---- figures ---- */

void pfs_s3_line(const char *what, double *seconds, unsigned runs, size_t n, bool is_right)
{
	struct pfs_figure figure;
	char range[40] = "";

	pfs_figure_of(&figure, seconds, runs);
	if (runs > 1)
		(void)snprintf(range, sizeof(range), "[%.3f %.3f]", figure.least / (double)n * 1e6,
			       figure.most / (double)n * 1e6);
	(void)printf("    %-44s %12.3f us %-25s %10.3f M/s%s\n", what,
		     figure.median / (double)n * 1e6, range, (double)n / figure.median / 1e6,
		     is_right ? "" : "  BAD");
	(void)fflush(stdout);
}

static bool is_right(struct pfs_s3 *b, const struct pfs_s3_asked *asked)
{
	bool right = true;

	for (size_t i = 0; i < asked->n; i++)
		right &= b->places[i] != PFS_PREFIX_NONE && b->got[i] == asked->numbers[i];
	b->bad |= !right;
	return right;
}

static int get_batch(struct pfs_s3 *b, struct pfs_prefix *index)
{
	const struct pfs_prefix_keys keys = {b->batch.bytes, b->batch.at, b->batch.n};
	double seconds[PFS_S3_RUNS];

	for (int i = 0; i < PFS_S3_RUNS; i++) {
		double started = pfs_s3_clock(b);

		PFS_TRY(pfs_prefix_get(&b->run, index, b->got, b->places, &keys,
				       PFS_PREFIX_SERIAL));
		seconds[i] = pfs_s3_clock(b) - started;
	}
	pfs_s3_line("get, a batch", seconds, PFS_S3_RUNS, b->batch.n, is_right(b, &b->batch));
	return 0;
}

static int get_singles(struct pfs_s3 *b, struct pfs_prefix *index,
		       enum pfs_prefix_traversal traversal)
{
	double seconds[PFS_S3_RUNS];
	char what[64];

	for (int run = 0; run < PFS_S3_RUNS; run++) {
		double started = pfs_s3_clock(b);

		for (size_t i = 0; i < b->singles.n; i++) {
			const struct pfs_prefix_keys key = {b->singles.bytes, b->singles.at + i, 1};

			PFS_TRY(pfs_prefix_get(&b->run, index, b->got + i, b->places + i, &key,
					       traversal));
		}
		seconds[run] = pfs_s3_clock(b) - started;
	}
	(void)snprintf(what, sizeof(what), "get, one by one, %s", traversals[traversal]);
	pfs_s3_line(what, seconds, PFS_S3_RUNS, b->singles.n, is_right(b, &b->singles));
	return 0;
}

/* Measures questions and answers that are on the device. */
static int get_on_device(struct pfs_s3 *b, struct pfs_prefix *index,
			 const struct pfs_s3_asked *asked, enum pfs_prefix_traversal traversal)
{
	const struct pfs_prefix_keys keys = {asked->bytes, asked->at,
					     asked == &b->singles ? 1 : asked->n};
	double seconds[PFS_S3_RUNS];
	char what[64];
	int error = pfs_prefix_probe(&b->run, index, seconds, PFS_S3_RUNS, &keys, traversal);

	if (error == -EOPNOTSUPP)
		return 0;
	PFS_TRY(error);
	(void)snprintf(what, sizeof(what), "on the device, %s, %s", keys.n == 1 ? "one" : "a batch",
		       traversals[traversal]);
	pfs_s3_line(what, seconds, PFS_S3_RUNS, keys.n, true);
	return 0;
}

/* ---- yardsticks ---- */

static size_t len_of(const struct pfs_s3 *b, const uint8_t *key)
{
	const uint64_t *at = b->at;
	size_t offset = (size_t)(key - b->bytes);
	/* Keys are in memory in the order of their numbers. */
	uint64_t behind = PFS_SEARCH(i, 1, b->most, at[i] <= offset);

	return at[behind] - at[behind - 1];
}

/* Looks at every key, as the paper's scan with a thread for each key. */
static void scan_keys(struct pfs_s3 *b, size_t n)
{
	double started = pfs_s3_clock(b);

	for (size_t i = 0; i < b->singles.n; i++) {
		const uint8_t *key = b->singles.bytes + b->singles.at[i];
		size_t len = b->singles.at[i + 1] - b->singles.at[i];

		b->places[i] = PFS_PREFIX_NONE;
		for (size_t k = 0; k < n; k++) {
			if (b->at[k + 1] - b->at[k] != len ||
			    memcmp(b->bytes + b->at[k], key, len) != 0)
				continue;
			b->got[i] = k;
			b->places[i] = 1;
		}
	}
	started = pfs_s3_clock(b) - started;
	pfs_s3_line("get, one by one, in a scan of all keys", &started, 1, b->singles.n,
		    is_right(b, &b->singles));
}

static int compare(const void *x, const void *y, void *context)
{
	const struct pfs_s3 *b = context;
	const uint8_t *a = *(const uint8_t *const *)x, *c = *(const uint8_t *const *)y;

	return pfs_compare_bytes(a, len_of(b, a), c, len_of(b, c));
}

static size_t search_sorted(const struct pfs_s3 *b, size_t n, const uint8_t *key, size_t len)
{
	size_t from = 0;

	for (size_t count = n; count > 1;) {
		size_t half = count / 2;
		const uint8_t *other = b->sorted[from + half];
		int order = memcmp(other, key, len); /* no key is a prefix of another */

		from += order <= 0 ? half : 0;
		count -= half;
	}
	return from;
}

static void search_array(struct pfs_s3 *b, size_t n)
{
	double seconds[PFS_S3_RUNS];

	for (size_t i = 0; i < n; i++)
		b->sorted[i] = b->bytes + b->at[i];
	qsort_r(b->sorted, n, sizeof(*b->sorted), compare, b);
	for (int run = 0; run < PFS_S3_RUNS; run++) {
		double started = pfs_s3_clock(b);

		for (size_t i = 0; i < b->batch.n; i++) {
			const uint8_t *key = b->batch.bytes + b->batch.at[i];
			size_t len = b->batch.at[i + 1] - b->batch.at[i];
			size_t k = search_sorted(b, n, key, len);

			b->places[i] = memcmp(b->sorted[k], key, len) == 0 ? 1 : PFS_PREFIX_NONE;
			b->got[i] = b->batch.numbers[i];
		}
		seconds[run] = pfs_s3_clock(b) - started;
	}
	pfs_s3_line("get, a batch, in a sorted array, one thread", seconds, PFS_S3_RUNS, b->batch.n,
		    is_right(b, &b->batch));
}

/* ---- the experiments ---- */

static int insert_some(struct pfs_s3 *b, struct pfs_prefix *index, size_t from, size_t to)
{
	const struct pfs_prefix_keys keys = {b->bytes, b->at + from, to - from};
	uint64_t added;

	return pfs_prefix_insert(&b->run, index, &added, &keys, b->numbers + from);
}

static void print_head(struct pfs_s3 *b, struct pfs_prefix *index, const char *what, double seconds)
{
	struct pfs_prefix_info info;

	pfs_prefix_describe(index, &info);
	(void)printf(
		"%s, %s, %llu keys, %u bits, %u levels a partition: %llu partitions, tree %.3f "
		"MB, keys and payloads %.3f MB\n",
		sets[b->set], what, (unsigned long long)info.n_keys, info.shape.bits,
		info.shape.levels, (unsigned long long)info.n_partitions,
		(double)info.tree_bytes / 1e6, (double)info.list_bytes / 1e6);
	pfs_s3_line("insertion, all keys once", &seconds, 1, info.n_keys, true);
}

/* Keys of which only compact trees are made, and these at once as large as they are to be. */
static bool is_large(const struct pfs_s3 *b)
{
	return b->set == PFS_S3_PATHS || b->set == PFS_S3_COMPONENTS;
}

/* Few questions are asked if each walks through all partitions, or is looked for among all keys. */
static size_t n_singles(const struct pfs_s3 *b)
{
	return is_large(b) ? PFS_MIN(MORE, b->questions) : SINGLES;
}

/* last: of the traversals. */
static int get_all(struct pfs_s3 *b, struct pfs_prefix *index, int last)
{
	PFS_TRY(get_batch(b, index));
	PFS_TRY(get_on_device(b, index, &b->batch, PFS_PREFIX_SERIAL));
	for (int t = PFS_PREFIX_SERIAL; t <= last; t++) {
		PFS_TRY(get_singles(b, index, (enum pfs_prefix_traversal)t));
		PFS_TRY(get_on_device(b, index, &b->singles, (enum pfs_prefix_traversal)t));
	}
	return 0;
}

static int measure(struct pfs_s3 *b, struct pfs_prefix *index, size_t n, bool is_compact)
{
	PFS_TRY(make_asked(b, &b->batch, b->questions, n, 5));
	PFS_TRY(make_asked(b, &b->singles, n_singles(b), n, 6));
	PFS_TRY(get_all(b, index, is_compact ? PFS_PREFIX_SERIAL : PFS_PREFIX_PARALLEL));
	if (!is_compact)
		return 0;
	PFS_TRY(pfs_s3_order(b, index, n));
	return pfs_s3_pages(b, index);
}

/* Measures one index of n keys. *is_full: the tree would have more memory than is allowed, and was
 * not measured. */
static int one_index(struct pfs_s3 *b, const struct pfs_prefix_shape *shape, const char *what,
		     size_t n, bool *is_full)
{
	uint64_t most = shape->layout == PFS_PREFIX_COMPACT ? UINT64_MAX : b->memory;
	struct pfs_prefix_info info = {0};
	struct pfs_prefix *index;
	double started;
	int error = 0;

	PFS_TRY(pfs_prefix_create(&b->run, &index, shape));
	started = pfs_s3_clock(b);
	for (size_t from = 0, to; from < n && !error && info.tree_bytes <= most; from = to) {
		to = PFS_MIN(n, from + 1000);
		error = insert_some(b, index, from, to);
		pfs_prefix_describe(index, &info);
	}
	started = pfs_s3_clock(b) - started;
	*is_full = info.tree_bytes > most;
	if (*is_full)
		(void)printf("%s, %s: %llu keys need more than %llu MB: the limit\n", sets[b->set],
			     what, (unsigned long long)info.n_keys,
			     (unsigned long long)(b->memory >> 20));
	if (!error && !*is_full) {
		print_head(b, index, what, started);
		error = measure(b, index, n, shape->layout == PFS_PREFIX_COMPACT);
	}
	pfs_prefix_close(&b->run, index);
	return error;
}

/* Measures from 100 keys on, ten times as many each time. */
static int grow(struct pfs_s3 *b, enum pfs_prefix_layout layout, const char *what, size_t from)
{
	const struct pfs_prefix_shape shape = {.layout = layout, .bits = b->bits};
	bool is_full = false;

	for (size_t n = from; n <= b->most && !is_full; n *= 10) {
		PFS_TRY(one_index(b, &shape, what, n, &is_full));
		if (is_full)
			continue;
		scan_keys(b, n);
		search_array(b, n);
	}
	return 0;
}

/* Partitions of other heights; the tree is the same. */
static int vary_levels(struct pfs_s3 *b)
{
	bool is_full;

	for (unsigned levels = 1; levels <= LINE * 8 / b->bits; levels *= 4) {
		const struct pfs_prefix_shape shape = {.bits = b->bits, .levels = levels};

		PFS_TRY(one_index(b, &shape, "on demand", PFS_MIN(b->most, 10 * FEW), &is_full));
	}
	return 0;
}

static void free_asked(struct pfs_s3_asked *asked)
{
	free(asked->bytes);
	free(asked->at);
	free(asked->numbers);
	*asked = (struct pfs_s3_asked){0};
}

static void free_keys(struct pfs_s3 *b)
{
	free(b->bytes);
	free(b->at);
	free(b->numbers);
	free(b->sorted);
	free_asked(&b->batch);
	free_asked(&b->singles);
	b->bytes = NULL;
	b->at = b->numbers = NULL;
	b->sorted = NULL;
}

static int bench_set(struct pfs_s3 *b)
{
	const struct pfs_prefix_shape compact = {.layout = PFS_PREFIX_COMPACT, .bits = b->bits};
	int error = make_keys(b);
	bool is_full;

	if (!error && is_large(b)) {
		error = one_index(b, &compact, "compact", b->most, &is_full);
		if (!error)
			search_array(b, b->most);
		free_keys(b);
		return error;
	}
	error = error ? error : grow(b, PFS_PREFIX_ON_DEMAND, "on demand", FEW);
	error = error ? error : grow(b, PFS_PREFIX_SIXTEEN, "sixteen at a time", FEW);
	if (!error && b->set == 0)
		error = vary_levels(b);
	error = error ? error : grow(b, PFS_PREFIX_COMPACT, "compact", PFS_MIN(b->most, 100 * FEW));
	free_keys(b);
	return error;
}

static int bench(struct pfs_s3 *b, size_t only)
{
	b->got = malloc(b->questions * sizeof(*b->got));
	b->places = malloc(b->questions * sizeof(*b->places));
	if (!b->got || !b->places)
		return -ENOMEM;
	PFS_TRY(pfs_operators_open(&b->run.operators, b->run.on, 0));
	for (b->set = 0; b->set < PFS_COUNT(sets); b->set++)
		if (only == PFS_COUNT(sets) || only == b->set)
			PFS_TRY(bench_set(b));
	return pfs_s3_names(b);
}

static size_t set_of(const char *name)
{
	size_t set = 0;

	while (set < PFS_COUNT(sets) && strcmp(sets[set], name) != 0)
		set++;
	return set;
}

int pfs_bench_s3(int argc, char **argv)
{
	struct pfs_s3 b = {.run.on = PFS_ENGINE_HOST};
	uint64_t keys = 1000000, questions = 100000, bits = 4, memory = 1024;
	size_t only = PFS_COUNT(sets);
	struct pfs_cmd_args args;
	int option, error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == KEYS)
			pfs_cmd_number(&args, &keys, KEYS, FEW, 100000000);
		else if (option == QUESTIONS)
			pfs_cmd_number(&args, &questions, QUESTIONS, SINGLES, 100000000);
		else if (option == BITS)
			pfs_cmd_number(&args, &bits, BITS, 1, 8);
		else if (option == MEMORY)
			pfs_cmd_number(&args, &memory, MEMORY, 1, 32768);
		else if (option == SET && set_of(args.value) == PFS_COUNT(sets))
			return pfs_cmd_usage("s3", "'%s': no set of keys", args.value);
		else if (option == SET)
			only = set_of(args.value);
		else if (option == CPU)
			b.is_cpu = true;
		else if (pfs_engine_by_name(&b.run.on, args.value) != 0)
			return pfs_cmd_usage("s3", "'%s': no engine", args.value);
	}
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	b.most = keys;
	b.questions = questions;
	b.bits = (unsigned)bits;
	b.memory = memory << 20;
	error = bench(&b, only);
	free_keys(&b);
	pfs_operators_close(b.run.operators);
	free(b.got);
	free(b.places);
	if (error)
		return pfs_cmd_fail("s3", "%s", strerror(-error));
	return pfs_cmd_flush("s3", b.bad ? PFS_EXIT_FAILURE : PFS_EXIT_OK);
}
