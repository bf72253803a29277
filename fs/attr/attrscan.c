/* SPDX-License-Identifier: MIT */
/* Most columns have few different values. Those that came lately are found by a hash, so that they
 * are there once, or not much more often; a column in which all differ loses little by that. */
#include "fs/attr/attrscan.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/image/slotmap.h"
#include "fs/nodes/scan.h"
#include "fs/tree/tree_impl.h"

#define PLACED	    4096u /* nodes that get their values in one hold of the tree's lock */
#define AHEAD	    16u /* cells of the map from primes to slots that are fetched beside each other */
#define LATELY_BITS 14u

struct reading {
	struct pfs_attr_value *values;
	uint64_t *primes;  /* of the nodes that have one */
	uint32_t *numbers; /* of their values, from 1 */
	size_t n_values, n;
	size_t values_capacity, primes_capacity, numbers_capacity;
	uint32_t lately[1u << LATELY_BITS]; /* numbers, by hash; 0: none */
};

static void finish(struct reading *reading)
{
	for (size_t i = 0; i < reading->n_values; i++)
		if (reading->values[i].type == PFS_ATTR_TEXT)
			free((char *)reading->values[i].text);
	free(reading->values);
	free(reading->primes);
	free(reading->numbers);
	free(reading);
}

/* ---- values ---- */

static uint64_t bits_of(enum pfs_attr_type type, int64_t integer, double real)
{
	uint64_t bits = (uint64_t)integer;

	if (type == PFS_ATTR_REAL)
		memcpy(&bits, &real, sizeof(bits));
	return bits;
}

/* By the length and both ends of a text. */
static uint32_t hash_of(const struct pfs_attr_record *attr)
{
	uint64_t first = 0, last = 0, hash;

	if (attr->type == PFS_ATTR_TEXT) {
		memcpy(&first, attr->text, PFS_MIN(attr->text_len, sizeof(first)));
		if (attr->text_len > sizeof(last))
			memcpy(&last, (const char *)attr->text + attr->text_len - sizeof(last),
			       sizeof(last));
		first ^= attr->text_len << 32;
	} else {
		first = bits_of(attr->type, attr->integer, attr->real);
	}
	hash = (first ^ (last << 23 | last >> 41)) * UINT64_C(0x9e3779b97f4a7c15);
	hash ^= hash >> 32;
	return (uint32_t)(hash * UINT64_C(0xd6e8feb86659fd93) >> (64 - LATELY_BITS));
}

static bool is_same(const struct pfs_attr_value *value, const struct pfs_attr_record *attr)
{
	if (value->type != attr->type)
		return false;
	if (value->type == PFS_ATTR_TEXT)
		return value->text_len == attr->text_len &&
		       memcmp(value->text, attr->text, attr->text_len) == 0;
	return bits_of(value->type, value->integer, value->real) ==
	       bits_of(attr->type, attr->integer, attr->real);
}

/* Its text is a copy. */
static int copy(struct pfs_attr_value *out, const struct pfs_attr_record *attr)
{
	char *text;

	*out = (struct pfs_attr_value){.is_set = true, .type = attr->type};
	switch (attr->type) {
	case PFS_ATTR_INTEGER:
		out->integer = attr->integer;
		break;
	case PFS_ATTR_REAL:
		out->real = attr->real;
		break;
	case PFS_ATTR_TEXT:
		text = malloc(attr->text_len + 1);
		if (!text)
			return -ENOMEM;
		memcpy(text, attr->text, attr->text_len);
		out->text = text;
		out->text_len = attr->text_len;
		break;
	}
	return 0;
}

static int add_value(struct reading *reading, uint32_t *number, const struct pfs_attr_record *attr)
{
	struct pfs_attr_value *value;

	if (reading->n_values == UINT32_MAX - 1)
		return -ENOMEM;
	PFS_TRY(pfs_grow(&reading->values, &reading->values_capacity, reading->n_values + 1,
			 sizeof(*reading->values)));
	value = &reading->values[reading->n_values];
	PFS_TRY(copy(value, attr));
	value->same = *number = (uint32_t)++reading->n_values;
	return 0;
}

static int take_value(void *arg, uint64_t prime, const struct pfs_attr_record *attr)
{
	struct reading *reading = arg;
	uint32_t *number = &reading->lately[hash_of(attr)];

	PFS_TRY(pfs_grow(&reading->primes, &reading->primes_capacity, reading->n + 1,
			 sizeof(*reading->primes)));
	PFS_TRY(pfs_grow(&reading->numbers, &reading->numbers_capacity, reading->n + 1,
			 sizeof(*reading->numbers)));
	if (!*number || !is_same(&reading->values[*number - 1], attr))
		PFS_TRY(add_value(reading, number, attr));
	reading->primes[reading->n] = prime;
	reading->numbers[reading->n++] = *number;
	return 0;
}

/* ---- nodes ---- */

/* Finds the slots of the nodes, in short holds. If another node takes such a slot now or later, it
 * has none of these values: all attributes of that node are noted. */
static int place_values(struct pfs_tree *tree, struct pfs_attrfile_column *out,
			const struct reading *reading)
{
	(void)pfs_scan_lock(tree, __func__);
	out->end = pfs_scan_end(tree);
	pfs_scan_unlock(tree);
	out->place = calloc(PFS_MAX(out->end, 1), sizeof(*out->place));
	if (!out->place)
		return -ENOMEM;
	for (size_t i = 0; i < reading->n;) {
		const size_t end = PFS_MIN(reading->n, i + PLACED);

		(void)pfs_scan_lock(tree, __func__);
		for (; i < end; i++) {
			uint32_t slot = pfs_image_slot(tree, reading->primes[i]);

			if (i + AHEAD < reading->n)
				pfs_slot_map_prefetch(tree->image.by_prime,
						      reading->primes[i + AHEAD]);
			if (slot < out->end) /* else the node is gone, or newer */
				out->place[slot] = reading->numbers[i];
		}
		pfs_scan_unlock(tree);
	}
	return 0;
}

int pfs_attrscan_read(struct pfs_tree *tree, struct pfs_attrfile_column *out, const char *name,
		      size_t name_len)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	int error;

	*out = (struct pfs_attrfile_column){.place = NULL};
	if (!reading)
		return -ENOMEM;
	error = pfs_store_scan_values(tree->store, name, name_len, take_value, reading);
	if (!error)
		error = place_values(tree, out, reading);
	if (!error) {
		out->values = PFS_TAKE(reading->values);
		out->n = reading->n_values;
		reading->n_values = 0;
	}
	finish(reading);
	return error;
}
