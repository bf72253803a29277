/* SPDX-License-Identifier: MIT */
#include "fs/journal/records.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/journal/journal_impl.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

struct chain {
	struct pfs_record *first, *last;
};

struct pfs_records {
	struct pfs_tree *tree;
	int (*load)(struct pfs_tree *tree, struct pfs_value **out, uint64_t prime);
	size_t clean_limit;
	/* protected by the content lock */
	struct pfs_byprime_table table;
	struct chain dirty[2]; /* by mark */
	struct chain clean;    /* in order of their last use, the oldest first */
	/* 1 and 2 in turn, the mark of the next group; records with the other mark are still to be
	 * cut */
	uint8_t mark;
	size_t clean_bytes;
	/* records that are being written; only cut and done change this list */
	struct pfs_record *group;
	uint64_t version;	  /* grows when what a load has read may be outdated */
};

/* ---- values ---- */

struct pfs_value *pfs_value_create(size_t size)
{
	struct pfs_value *value;

	if (size > UINT32_MAX)
		return NULL;
	value = malloc(sizeof(*value) + size);
	if (!value)
		return NULL;
	atomic_init(&value->references, 1);
	value->size = (uint32_t)size;
	return value;
}

struct pfs_value *pfs_value_ref(struct pfs_value *value)
{
	if (value)
		(void)atomic_fetch_add(&value->references, 1);
	return value;
}

void pfs_value_unref(struct pfs_value *value)
{
	if (value && atomic_fetch_sub(&value->references, 1) == 1)
		free(value);
}

/* ---- entries ---- */

static size_t cost(const struct pfs_record *record)
{
	return sizeof(*record) + (record->value ? sizeof(*record->value) + record->value->size : 0);
}

static void append(struct chain *chain, struct pfs_record *record)
{
	record->next = NULL;
	record->previous = chain->last;
	*(chain->last ? &chain->last->next : &chain->first) = record;
	chain->last = record;
}

static void take_out(struct chain *chain, struct pfs_record *record)
{
	*(record->previous ? &record->previous->next : &chain->first) = record->next;
	*(record->next ? &record->next->previous : &chain->last) = record->previous;
}

/* Returns true if the record may be freed; the chain of clean records has only such. */
static bool is_cached(const struct pfs_record *record)
{
	return !record->dirty && !record->in_group && !record->kept && !record->held;
}

static void unchain(struct pfs_records *records, struct pfs_record *record)
{
	if (record->dirty) {
		take_out(&records->dirty[record->dirty - 1], record);
		*pfs_parts_unreported(records->tree) -= (int64_t)cost(record);
	} else if (is_cached(record)) {
		take_out(&records->clean, record);
		records->clean_bytes -= cost(record);
	}
}

static void free_record(struct pfs_records *records, struct pfs_record *record)
{
	pfs_byprime_remove(&records->table, &record->by_prime);
	pfs_value_unref(record->value);
	pfs_value_unref(record->writing);
	free(record);
}

static void chain_in(struct pfs_records *records, struct pfs_record *record)
{
	if (record->dirty) {
		append(&records->dirty[record->dirty - 1], record);
		*pfs_parts_unreported(records->tree) += (int64_t)cost(record);
		return;
	}
	if (!is_cached(record))
		return;
	append(&records->clean, record);
	records->clean_bytes += cost(record);
	while (records->clean_bytes > records->clean_limit && records->clean.first != record) {
		struct pfs_record *oldest = records->clean.first;

		unchain(records, oldest);
		free_record(records, oldest);
	}
}

int pfs_records_create(struct pfs_records **out, struct pfs_tree *tree, size_t clean_bytes,
		       int (*load)(struct pfs_tree *tree, struct pfs_value **out, uint64_t prime))
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->tree = tree;
	(*out)->clean_limit = clean_bytes;
	(*out)->load = load;
	(*out)->mark = 1;
	return 0;
}

static void free_entry(void *arg PFS_UNUSED, struct pfs_byprime *entry)
{
	struct pfs_record *record = (struct pfs_record *)entry;

	pfs_value_unref(record->value);
	pfs_value_unref(record->writing);
	free(record);
}

void pfs_records_destroy(struct pfs_records *records)
{
	if (!records)
		return;
	pfs_byprime_drain(&records->table, free_entry, NULL);
	free(records);
}

struct pfs_record *pfs_records_find(struct pfs_records *records, uint64_t prime)
{
	return (struct pfs_record *)pfs_byprime_find(&records->table, prime);
}

struct pfs_record *pfs_records_entry(struct pfs_records *records, uint64_t prime)
{
	struct pfs_record *record = pfs_records_find(records, prime);

	if (record)
		return record;
	record = calloc(1, sizeof(*record));
	if (!record)
		return NULL;
	record->by_prime.prime = prime;
	pfs_byprime_add(&records->table, &record->by_prime);
	chain_in(records, record);
	return record;
}

/* Gives the group that is being cut the record's present value. */
static void cut_record(struct pfs_records *records, struct pfs_record *record)
{
	unchain(records, record);
	record->dirty = 0;
	if (pfs_cut_has_name(records->tree, record->by_prime.prime)) {
		record->in_group = true;
		record->writing = pfs_value_ref(record->value);
		record->next_in_group = records->group;
		records->group = record;
	} else {
		record->kept = true;
	}
	chain_in(records, record);
}

/* Called before the record changes. */
static void settle(struct pfs_records *records, struct pfs_record *record)
{
	if (record->dirty && record->dirty != records->mark)
		cut_record(records, record);
}

void pfs_records_set(struct pfs_records *records, struct pfs_record *record,
		     struct pfs_value *value, bool store)
{
	settle(records, record);
	unchain(records, record);
	pfs_value_unref(record->value);
	record->value = value;
	if (store)
		record->dirty = records->mark;
	record->kept |= !store;
	chain_in(records, record);
}

void pfs_records_drop(struct pfs_records *records, uint64_t prime)
{
	struct pfs_record *record = pfs_records_find(records, prime);

	records->version++;
	if (!record)
		return;
	settle(records, record);
	unchain(records, record);
	record->dirty = 0;
	record->kept = false;
	record->dropped = true;
	if (!record->in_group)
		free_record(records, record);
}

/* ---- reading ---- */

/* Marks the record as used, and returns its value. The lock is held. */
static struct pfs_value *use(struct pfs_records *records, struct pfs_record *record,
			     enum pfs_records_for purpose)
{
	unchain(records, record);
	record->kept |= purpose == PFS_RECORDS_KEEP;
	record->held += purpose == PFS_RECORDS_HOLD;
	chain_in(records, record);
	return pfs_value_ref(record->value);
}

int pfs_records_get(struct pfs_records *records, struct pfs_value **out, uint64_t prime,
		    enum pfs_records_for purpose)
{
	struct pfs_tree *tree = records->tree;
	struct pfs_value *loaded;
	struct pfs_record *record;
	uint64_t version;
	int error = -EAGAIN;

	while (error == -EAGAIN) {
		loaded = NULL;
		pfs_parts_lock(tree);
		record = pfs_records_find(records, prime);
		if (record)
			*out = use(records, record, purpose);
		version = records->version;
		pfs_parts_unlock(tree);
		if (record)
			return 0;
		error = records->load(tree, &loaded, prime);
		if (error)
			return error;
		pfs_parts_lock(tree);
		if (version != records->version || pfs_records_find(records, prime)) {
			error = -EAGAIN; /* what was read may be outdated */
		} else {
			record = pfs_records_entry(records, prime);
			if (!record) {
				error = -ENOMEM;
			} else {
				unchain(records, record);
				record->value = loaded;
				loaded = NULL;
				chain_in(records, record);
				*out = use(records, record, purpose);
			}
		}
		pfs_parts_unlock(tree);
		pfs_value_unref(loaded);
	}
	return error;
}

void pfs_records_release(struct pfs_records *records, uint64_t prime)
{
	struct pfs_record *record = pfs_records_find(records, prime);

	if (!record || !record->held)
		return;
	unchain(records, record);
	record->held--;
	chain_in(records, record);
}

int pfs_records_pending(struct pfs_records *records,
			int (*fn)(void *arg, uint64_t prime, struct pfs_value *value), void *arg)
{
	struct pfs_record *record;
	int error = 0;

	for (unsigned i = 0; i < PFS_COUNT(records->dirty); i++)
		for (record = records->dirty[i].first; record && !error; record = record->next)
			error = fn(arg, record->by_prime.prime, record->value);
	for (record = records->group; record && !error; record = record->next_in_group)
		error = fn(arg, record->by_prime.prime, record->value);
	return error;
}

/* ---- the committer's protocol ---- */

void pfs_records_cut(struct pfs_records *records)
{
	records->mark = records->mark == 1 ? 2 : 1;
	PFS_VERIFY_CHECK(!records->dirty[records->mark - 1].first);
}

bool pfs_records_cut_some(struct pfs_records *records, unsigned n)
{
	struct chain *waiting = &records->dirty[2 - records->mark];

	while (n-- && waiting->first)
		cut_record(records, waiting->first);
	return waiting->first;
}

int pfs_records_write(struct pfs_records *records, int (*fn)(struct pfs_tree *tree, uint64_t prime,
							     const struct pfs_value *value))
{
	const struct pfs_record *record;
	int error;

	for (record = records->group; record; record = record->next_in_group) {
		error = fn(records->tree, record->by_prime.prime, record->writing);
		if (error)
			return error;
	}
	return 0;
}

void pfs_records_done(struct pfs_records *records)
{
	struct pfs_record *record, *next;

	pfs_parts_lock(records->tree);
	records->version++;
	for (record = records->group; record; record = next) {
		next = record->next_in_group;
		unchain(records, record);
		record->in_group = false;
		pfs_value_unref(record->writing);
		record->writing = NULL;
		if (record->dropped)
			free_record(records, record);
		else
			chain_in(records, record);
	}
	records->group = NULL;
	pfs_parts_unlock(records->tree);
}
