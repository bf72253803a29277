/* SPDX-License-Identifier: MIT */
/* primefs-bench s3: what goes by the order of keys, from the first, from any and below a prefix,
 * and deletion; beside an array of the keys' numbers in that order. */
#include "tools/bench/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "base/search.h"
#include "tools/bench/bench.h"
#include "tools/bench/gen.h"

#define FROM_ANY 100000u /* keys from which some are read on, at most, */
#define READ_ON	 10u	 /* so many behind each */
#define SCANS	 1000u

/* Bytes of a prefix that has some keys, a thousandth of all, or a directory's. */
static const size_t prefix_len[] = {
	[PFS_S3_PARTITIONS] = 3, [PFS_S3_CONSECUTIVE] = 127, [PFS_S3_URLS] = 32,
	[PFS_S3_PATHS] = 24,	 [PFS_S3_COMPONENTS] = 4,
};

struct ordered {
	struct pfs_s3 *b;
	struct pfs_prefix *index;
	size_t n;
	uint64_t *numbers; /* of the keys, in their order */
	uint64_t *some;	   /* room for as many */
};

static const uint8_t *key_of(const struct ordered *o, uint64_t number, size_t *len)
{
	const uint64_t *at = o->b->at + number;

	*len = at[1] - at[0];
	return o->b->bytes + at[0];
}

static int compare_with(const struct ordered *o, size_t place, const uint8_t *key, size_t len)
{
	size_t other_len;
	const uint8_t *other = key_of(o, o->numbers[place], &other_len);

	return pfs_compare_bytes(other, other_len, key, len);
}

static size_t search(const struct ordered *o, const uint8_t *key, size_t len)
{
	return PFS_SEARCH(i, 0, o->n, compare_with(o, i, key, len) < 0);
}

static void show(const struct ordered *o, const char *what, double *seconds, size_t n, bool right)
{
	o->b->bad |= !right;
	pfs_s3_line(what, seconds, PFS_S3_RUNS, n, right);
}

/* ---- all keys ---- */

static int walk(const struct ordered *o, uint64_t *sum, uint64_t *numbers)
{
	static const uint64_t nothing[2] = {0, 0};
	const struct pfs_prefix_keys least = {"", nothing, 1};
	struct pfs_prefix_entry entry;
	size_t n = 0;
	int found;

	*sum = 0;
	for (found = pfs_prefix_seek(o->index, &entry, &least); found == 1 && n < o->n;
	     found = pfs_prefix_next(o->index, &entry), n++) {
		*sum += entry.payload + entry.key[entry.len - 1];
		if (numbers)
			numbers[n] = entry.payload;
	}
	return found < 0 ? found : n == o->n && !found ? 0 : -EUCLEAN;
}

static bool is_in_order(const struct ordered *o)
{
	bool right = true;

	for (size_t i = 1; i < o->n && right; i++) {
		size_t len;
		const uint8_t *key = key_of(o, o->numbers[i], &len);

		right = compare_with(o, i - 1, key, len) < 0;
	}
	return right;
}

static uint64_t sum_array(const struct ordered *o)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < o->n; i++) {
		size_t len;
		const uint8_t *key = key_of(o, o->numbers[i], &len);

		sum += o->numbers[i] + key[len - 1];
	}
	return sum;
}

static int time_all(const struct ordered *o)
{
	double seconds[PFS_S3_RUNS], beside[PFS_S3_RUNS];
	uint64_t sum, other = 0;
	bool right = is_in_order(o);

	for (int i = 0; i < PFS_S3_RUNS; i++) {
		double started = pfs_s3_clock(o->b);

		PFS_TRY(walk(o, &sum, NULL));
		seconds[i] = pfs_s3_clock(o->b) - started;
		started = pfs_s3_clock(o->b);
		other = sum_array(o);
		beside[i] = pfs_s3_clock(o->b) - started;
		right &= sum == other;
	}
	show(o, "next, all keys", seconds, o->n, right);
	show(o, "beside a sorted array", beside, o->n, true);
	return 0;
}

/* ---- from any key ---- */

static int read_on(const struct ordered *o, uint64_t *sum, uint32_t place)
{
	struct pfs_prefix_entry entry;
	int found = pfs_prefix_at(o->index, &entry, place);

	for (size_t i = 0; i < READ_ON && found == 1; i++) {
		found = pfs_prefix_next(o->index, &entry);
		if (found == 1)
			*sum += entry.payload;
	}
	return found < 0 ? found : 0;
}

static int read_on_from(const struct ordered *o, uint64_t *sum, size_t n)
{
	const struct pfs_s3_asked *asked = &o->b->batch;
	const struct pfs_prefix_keys keys = {asked->bytes, asked->at, n};

	*sum = 0;
	PFS_TRY(pfs_prefix_get(&o->b->run, o->index, NULL, o->b->places, &keys, PFS_PREFIX_SERIAL));
	for (size_t i = 0; i < n; i++)
		PFS_TRY(read_on(o, sum, o->b->places[i]));
	return 0;
}

static uint64_t read_on_in_array(const struct ordered *o, size_t n)
{
	const struct pfs_s3_asked *asked = &o->b->batch;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		size_t place =
			search(o, asked->bytes + asked->at[i], asked->at[i + 1] - asked->at[i]);

		for (size_t k = place + 1; k < PFS_MIN(o->n, place + 1 + READ_ON); k++)
			sum += o->numbers[k];
	}
	return sum;
}

static int time_from_any(const struct ordered *o)
{
	double seconds[PFS_S3_RUNS], beside[PFS_S3_RUNS];
	size_t n = PFS_MIN(o->b->batch.n, FROM_ANY);
	uint64_t sum, other;
	bool right = true;

	for (int i = 0; i < PFS_S3_RUNS; i++) {
		double started = pfs_s3_clock(o->b);

		PFS_TRY(read_on_from(o, &sum, n));
		seconds[i] = pfs_s3_clock(o->b) - started;
		started = pfs_s3_clock(o->b);
		other = read_on_in_array(o, n);
		beside[i] = pfs_s3_clock(o->b) - started;
		right &= sum == other;
	}
	show(o, "get, a batch, and the next ten of each key", seconds, n, right);
	show(o, "beside a sorted array, one thread", beside, n, true);
	return 0;
}

/* ---- below a prefix ---- */

/* Each number as often as it is found, without regard to the order: a list's is looked at by tests.
 */
static int scan_index(const struct ordered *o, size_t n, size_t *found, uint64_t *sum)
{
	const struct pfs_s3_asked *asked = &o->b->batch;
	struct pfs_prefix_list list;

	*found = *sum = 0;
	for (size_t i = 0; i < n; i++) {
		PFS_TRY(pfs_prefix_scan(&o->b->run, o->index, &list, asked->bytes + asked->at[i],
					prefix_len[o->b->set]));
		for (size_t k = 0; k < list.n; k++)
			*sum += list.payloads[k];
		*found += list.n;
		pfs_prefix_list_free(&o->b->run, &list);
	}
	return 0;
}

static uint64_t scan_array(const struct ordered *o, size_t n)
{
	const struct pfs_s3_asked *asked = &o->b->batch;
	const size_t len = prefix_len[o->b->set];
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *prefix = asked->bytes + asked->at[i];

		for (size_t k = search(o, prefix, len); k < o->n; k++) {
			size_t key_len;

			if (memcmp(key_of(o, o->numbers[k], &key_len), prefix, len) != 0)
				break;
			sum += o->numbers[k];
		}
	}
	return sum;
}

static int time_scans(const struct ordered *o)
{
	double seconds[PFS_S3_RUNS], beside[PFS_S3_RUNS];
	size_t n = PFS_MIN(o->b->batch.n, SCANS), found = 0;
	char what[64];
	uint64_t sum;
	bool right = true;

	for (int i = 0; i < PFS_S3_RUNS; i++) {
		double started = pfs_s3_clock(o->b);

		PFS_TRY(scan_index(o, n, &found, &sum));
		seconds[i] = pfs_s3_clock(o->b) - started;
		started = pfs_s3_clock(o->b);
		right &= scan_array(o, n) == sum;
		beside[i] = pfs_s3_clock(o->b) - started;
	}
	(void)snprintf(what, sizeof(what), "prefix scan, a key of %zu on average", found / n);
	show(o, what, seconds, found, right);
	show(o, "beside a sorted array, one thread", beside, found, true);
	return 0;
}

/* ---- deletion ---- */

/* Chooses keys of which none is twice, in no order. */
static int choose(const struct ordered *o, struct pfs_s3_asked *out)
{
	uint64_t seed = 7;
	size_t size = 0;

	out->n = PFS_MIN(o->b->questions, o->n / 10);
	for (size_t i = 0; i < out->n; i++)
		out->numbers[i] = i * (o->n / out->n);
	for (size_t i = out->n; i > 1; i--) {
		size_t k = pfs_gen_random(&seed) % i;
		uint64_t number = out->numbers[i - 1];

		out->numbers[i - 1] = out->numbers[k];
		out->numbers[k] = number;
	}
	for (size_t i = 0; i < out->n; i++) {
		size_t len;

		(void)key_of(o, out->numbers[i], &len);
		out->at[i] = size;
		size += len;
	}
	out->at[out->n] = size;
	out->bytes = malloc(size + 1);
	for (size_t i = 0; i < out->n && out->bytes; i++) {
		size_t len;
		const uint8_t *key = key_of(o, out->numbers[i], &len);

		memcpy(out->bytes + out->at[i], key, len);
	}
	return out->bytes ? 0 : -ENOMEM;
}

/* Leaves the keys out of a copy of the array; returns how many it has then. */
static size_t remove_in_array(const struct ordered *o, const struct pfs_s3_asked *asked)
{
	size_t n = 0;

	memcpy(o->some, o->numbers, o->n * sizeof(*o->some));
	for (size_t i = 0; i < asked->n; i++)
		o->some[search(o, asked->bytes + asked->at[i], asked->at[i + 1] - asked->at[i])] =
			UINT64_MAX;
	for (size_t i = 0; i < o->n; i++)
		if (o->some[i] != UINT64_MAX)
			o->some[n++] = o->some[i];
	return n;
}

static int time_removals(const struct ordered *o, const struct pfs_s3_asked *asked)
{
	const struct pfs_prefix_keys keys = {asked->bytes, asked->at, asked->n};
	double seconds[PFS_S3_RUNS], beside[PFS_S3_RUNS];
	struct pfs_prefix_info info;
	bool right = true;
	uint64_t n;

	for (int i = 0; i < PFS_S3_RUNS; i++) {
		double started = pfs_s3_clock(o->b);

		PFS_TRY(pfs_prefix_remove(&o->b->run, o->index, &n, &keys, asked->numbers));
		seconds[i] = pfs_s3_clock(o->b) - started;
		pfs_prefix_describe(o->index, &info);
		started = pfs_s3_clock(o->b);
		right &= remove_in_array(o, asked) == info.n_keys;
		beside[i] = pfs_s3_clock(o->b) - started;
		right &= n == asked->n && info.n_keys == o->n - asked->n;
		PFS_TRY(pfs_prefix_insert(&o->b->run, o->index, &n, &keys, asked->numbers));
	}
	show(o, "deletion, a batch", seconds, asked->n, right);
	show(o, "beside a sorted array, one thread", beside, asked->n, true);
	return 0;
}

static int time_deletion(const struct ordered *o)
{
	struct pfs_s3_asked asked = {
		.at = calloc(o->n / 10 + 1, sizeof(*asked.at)),
		.numbers = calloc(o->n / 10 + 1, sizeof(*asked.numbers)),
	};
	int error = asked.at && asked.numbers ? choose(o, &asked) : -ENOMEM;

	if (!error)
		error = time_removals(o, &asked);
	free(asked.bytes);
	free(asked.at);
	free(asked.numbers);
	return error;
}

int pfs_s3_order(struct pfs_s3 *b, struct pfs_prefix *index, size_t n)
{
	uint64_t *numbers PFS_FREE = calloc(n, sizeof(*numbers));
	uint64_t *some PFS_FREE = calloc(n, sizeof(*some));
	const struct ordered o = {b, index, n, numbers, some};
	uint64_t sum;

	if (!numbers || !some)
		return -ENOMEM;
	PFS_TRY(walk(&o, &sum, numbers));
	PFS_TRY(time_all(&o));
	PFS_TRY(time_from_any(&o));
	PFS_TRY(time_scans(&o));
	return time_deletion(&o);
}
