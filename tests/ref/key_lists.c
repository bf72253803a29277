/* SPDX-License-Identifier: MIT */
#include "tests/ref/key_lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

static void *checked(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static int compare(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
	uint32_t len = a_len < b_len ? a_len : b_len;
	int order = len ? memcmp(a, b, len) : 0;

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int by_key(const void *a, const void *b)
{
	const struct ref_key *x = a, *y = b;

	return compare(x->bytes, x->len, y->bytes, y->len);
}

/* FNV-1a */
static size_t hash_of(const uint8_t *bytes, uint32_t len)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (uint32_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

/* Where in the table the key is or would be. */
static uint32_t *entry_of(const struct ref_lists *lists, const uint8_t *bytes, uint32_t len)
{
	for (size_t i = hash_of(bytes, len);; i++) {
		uint32_t *entry = &lists->table[i & (lists->table_size - 1)];
		const struct ref_key *key = *entry ? &lists->keys[*entry - 1] : NULL;

		if (!key || compare(key->bytes, key->len, bytes, len) == 0)
			return entry;
	}
}

void ref_lists_make(struct ref_lists *lists, const uint8_t *const *keys, const uint32_t *lens,
		    size_t n)
{
	size_t kept = 0;

	*lists = (struct ref_lists){.table_size = 2};
	while (lists->table_size < 2 * n + 2)
		lists->table_size *= 2;
	lists->keys = checked(calloc(n + 1, sizeof(*lists->keys)));
	lists->table = checked(calloc(lists->table_size, sizeof(*lists->table)));
	for (size_t i = 0; i < n; i++) {
		lists->keys[i].bytes = keys[i];
		lists->keys[i].len = lens[i];
	}
	qsort(lists->keys, n, sizeof(*lists->keys), by_key);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || by_key(&lists->keys[kept - 1], &lists->keys[i]) != 0)
			lists->keys[kept++] = lists->keys[i];
	lists->n_keys = kept;
	for (size_t i = 0; i < kept; i++)
		*entry_of(lists, lists->keys[i].bytes, lists->keys[i].len) = (uint32_t)i + 1;
}

void ref_lists_free(struct ref_lists *lists)
{
	for (size_t i = 0; i < lists->n_keys; i++)
		free(lists->keys[i].payloads);
	free(lists->keys);
	free(lists->table);
	*lists = (struct ref_lists){0};
}

size_t ref_lists_find(const struct ref_lists *lists, const uint8_t *bytes, uint32_t len)
{
	uint32_t entry = *entry_of(lists, bytes, len);

	return entry ? entry - 1 : lists->n_keys;
}

void ref_lists_add(struct ref_lists *lists, size_t number, uint64_t payload)
{
	struct ref_key *key = &lists->keys[number];

	if (key->n == key->capacity) {
		key->capacity = key->capacity * 2 + 2;
		key->payloads = checked(
			realloc(key->payloads, key->capacity * sizeof(*key->payloads)));
	}
	lists->n_present += key->n == 0;
	lists->n_payloads++;
	key->payloads[key->n++] = payload;
}

bool ref_lists_remove(struct ref_lists *lists, size_t number, uint64_t payload)
{
	struct ref_key *key = &lists->keys[number];

	for (size_t i = 0; i < key->n; i++) {
		if (key->payloads[i] != payload)
			continue;
		memmove(&key->payloads[i], &key->payloads[i + 1],
			(key->n - i - 1) * sizeof(*key->payloads));
		key->n--;
		lists->n_present -= key->n == 0;
		lists->n_payloads--;
		return true;
	}
	return false;
}

size_t ref_lists_seek(const struct ref_lists *lists, const uint8_t *bytes, uint32_t len)
{
	const struct ref_key *keys = lists->keys;
	size_t from = PFS_SEARCH(i, 0, lists->n_keys,
				 compare(keys[i].bytes, keys[i].len, bytes, len) < 0);

	while (from < lists->n_keys && lists->keys[from].n == 0)
		from++;
	return from;
}
