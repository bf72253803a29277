/* SPDX-License-Identifier: MIT */
/* primefs-bench s3: the pages of an index, out to the host's memory and in again, and out of a
 * device and to it; and the dictionary of named indexes. */
#include "tools/bench/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "gpu/engine.h"
#include "gpu/probe.h"
#include "tools/bench/bench.h"
#include "tools/bench/gen.h"

#define LONG_S	  1.0 /* what takes so long is not measured again */
#define NAMES_MAX 10000u
#define NAME_ROOM 32u
#define FINDS	  200u

/* Prints the median of the runs for so many bytes. */
static void line(const char *what, double *seconds, unsigned runs, uint64_t bytes, bool is_right)
{
	struct pfs_figure figure;
	char range[40] = "";

	pfs_figure_of(&figure, seconds, runs);
	if (runs > 1)
		(void)snprintf(range, sizeof(range), "[%.3f %.3f]", figure.least * 1e3,
			       figure.most * 1e3);
	(void)printf("    %-44s %12.3f ms %-25s %10.3f GB/s%s\n", what, figure.median * 1e3, range,
		     (double)bytes / figure.median / 1e9, is_right ? "" : "  BAD");
	(void)fflush(stdout);
}

static bool is_over(unsigned runs, const double *seconds)
{
	double sum = 0;

	for (unsigned i = 0; i < runs; i++)
		sum += seconds[i];
	return runs == PFS_S3_RUNS || sum > LONG_S;
}

/* ---- the host's memory ---- */

struct paging {
	double out[PFS_S3_RUNS], in[PFS_S3_RUNS], copy[PFS_S3_RUNS];
	size_t size;
	bool right;
};

static int page_once(struct pfs_s3 *b, struct pfs_prefix *index, struct paging *paging,
		     unsigned run)
{
	struct pfs_prefix_info before, after = {0};
	uint8_t *bytes, *copy;
	struct pfs_prefix *other;
	double started = pfs_s3_clock(b);
	int error;

	PFS_TRY(pfs_prefix_write(&b->run, index, &bytes, &paging->size));
	paging->out[run] = pfs_s3_clock(b) - started;
	started = pfs_s3_clock(b);
	copy = malloc(paging->size);
	if (copy)
		memcpy(copy, bytes, paging->size);
	paging->copy[run] = pfs_s3_clock(b) - started;
	started = pfs_s3_clock(b);
	error = copy ? pfs_prefix_read(&b->run, &other, copy, paging->size) : -ENOMEM;
	paging->in[run] = pfs_s3_clock(b) - started;
	if (!error) {
		pfs_prefix_describe(index, &before);
		pfs_prefix_describe(other, &after);
		pfs_prefix_close(&b->run, other);
		paging->right &=
			before.n_keys == after.n_keys && before.n_payloads == after.n_payloads;
	}
	free(copy);
	free(bytes);
	return error;
}

/* ---- a device ---- */

/* Measures how fast the bus is, from the device to memory that does not move. */
static int time_bus(void)
{
	struct pfs_engine *engine;
	struct pfs_figure figure;
	int error;

	PFS_TRY(pfs_engine_open(&engine, PFS_ENGINE_CUDA));
	error = pfs_engine_probe(engine, &figure, PFS_PROBE_TO_HOST, NULL, 0, PFS_S3_RUNS);
	pfs_engine_close(engine);
	if (error)
		return error == -ENOTSUP ? 0 : error;
	line("beside the bus, from device to host", &figure.median, 1, figure.bytes, true);
	return 0;
}

/* A key is asked for when the pages are there, and when they have been dropped. */
static int time_device(struct pfs_s3 *b, struct pfs_prefix *index)
{
	const struct pfs_prefix_keys key = {b->singles.bytes, b->singles.at, 1};
	double out[PFS_S3_RUNS], in[PFS_S3_RUNS], there[PFS_S3_RUNS];
	struct pfs_prefix_info info;
	bool right = true;
	uint64_t bytes;

	pfs_prefix_describe(index, &info);
	if (strcmp(info.where, "cuda") != 0)
		return 0;
	/* a device has the tree and the keys, not the payloads, each of which is 8 bytes and 16 of
	 * links */
	bytes = info.tree_bytes + info.list_bytes - 24 * info.n_payloads;
	for (int i = 0; i < PFS_S3_RUNS; i++) {
		double started = pfs_s3_clock(b);

		pfs_prefix_page_out(&b->run, index);
		out[i] = pfs_s3_clock(b) - started;
		started = pfs_s3_clock(b);
		PFS_TRY(pfs_prefix_get(&b->run, index, b->got, b->places, &key, PFS_PREFIX_SERIAL));
		in[i] = pfs_s3_clock(b) - started;
		started = pfs_s3_clock(b);
		PFS_TRY(pfs_prefix_get(&b->run, index, b->got, b->places, &key, PFS_PREFIX_SERIAL));
		there[i] = pfs_s3_clock(b) - started;
		right &= b->places[0] != PFS_PREFIX_NONE && b->got[0] == b->singles.numbers[0];
	}
	b->bad |= !right;
	pfs_s3_line("pages out of the device", out, PFS_S3_RUNS, 1, true);
	line("in again, with a get", in, PFS_S3_RUNS, bytes, right);
	pfs_s3_line("beside a get of pages that are there", there, PFS_S3_RUNS, 1, true);
	return time_bus();
}

int pfs_s3_pages(struct pfs_s3 *b, struct pfs_prefix *index)
{
	struct paging paging = {.right = true};
	unsigned runs = 0;

	do
		PFS_TRY(page_once(b, index, &paging, runs++));
	while (!is_over(runs, paging.in));
	b->bad |= !paging.right;
	line("pages out, to bytes in memory", paging.out, runs, paging.size, true);
	line("in again, with all checks", paging.in, runs, paging.size, paging.right);
	line("beside a copy of these bytes", paging.copy, runs, paging.size, true);
	return time_device(b, index);
}

/* ---- the dictionary ---- */

struct named {
	char (*names)[NAME_ROOM];      /* ascending */
	struct pfs_prefix *indexes[2]; /* of names with even and odd numbers */
	struct pfs_prefix_names *dictionary;
	size_t n;
};

static int find_names(struct pfs_s3 *b, const struct named *named)
{
	double seconds[PFS_S3_RUNS], beside[PFS_S3_RUNS];
	bool right = true;
	char what[64];

	for (int run = 0; run < PFS_S3_RUNS; run++) {
		uint64_t seed = 11;
		double started = pfs_s3_clock(b);

		for (size_t i = 0; i < FINDS; i++) {
			size_t any = pfs_gen_random(&seed) % named->n;
			struct pfs_prefix *found;

			PFS_TRY(pfs_prefix_names_find(&b->run, named->dictionary, &found,
						      named->names[any]));
			right &= found == named->indexes[any % 2];
		}
		seconds[run] = pfs_s3_clock(b) - started;
		seed = 11;
		started = pfs_s3_clock(b);
		for (size_t i = 0; i < FINDS; i++) {
			size_t any = pfs_gen_random(&seed) % named->n;

			right &= PFS_SEARCH(k, 0, named->n,
					    strcmp(named->names[k], named->names[any]) < 0) == any;
		}
		beside[run] = pfs_s3_clock(b) - started;
	}
	b->bad |= !right;
	(void)snprintf(what, sizeof(what), "an index of %zu by its name", named->n);
	pfs_s3_line(what, seconds, PFS_S3_RUNS, FINDS, right);
	pfs_s3_line("beside a sorted array, one thread", beside, PFS_S3_RUNS, FINDS, true);
	return 0;
}

static int add_names(struct named *named, size_t n)
{
	for (; named->n < n; named->n++) {
		(void)snprintf(named->names[named->n], NAME_ROOM, "index of attribute %06zu",
			       named->n);
		PFS_TRY(pfs_prefix_names_add(named->dictionary, named->names[named->n],
					     named->indexes[named->n % 2]));
	}
	return 0;
}

static int bench_names(struct pfs_s3 *b, struct named *named)
{
	static const struct pfs_prefix_shape shape = {.layout = PFS_PREFIX_COMPACT, .bits = 4};

	PFS_TRY(pfs_prefix_names_create(&named->dictionary));
	PFS_TRY(pfs_prefix_create(&b->run, &named->indexes[0], &shape));
	PFS_TRY(pfs_prefix_create(&b->run, &named->indexes[1], &shape));
	(void)printf("the dictionary of indexes\n");
	for (size_t n = 10; n <= NAMES_MAX; n *= 10) {
		PFS_TRY(add_names(named, n));
		PFS_TRY(find_names(b, named));
	}
	return 0;
}

int pfs_s3_names(struct pfs_s3 *b)
{
	struct named named = {.names = calloc(NAMES_MAX, sizeof(*named.names))};
	int error = named.names ? bench_names(b, &named) : -ENOMEM;

	pfs_prefix_names_close(&b->run, named.dictionary);
	pfs_prefix_close(&b->run, named.indexes[0]);
	pfs_prefix_close(&b->run, named.indexes[1]);
	free(named.names);
	return error;
}
