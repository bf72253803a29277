/* SPDX-License-Identifier: MIT */
/* fs/journal/records.h - values that the store keeps beside nodes (all attributes of a node, its
 * source); they are in memory while they are not stored yet.
 *
 * A node has one value or none. Values are counted by reference and never changed, only replaced.
 * A new value is dirty, then in the group being written, then clean. Clean ones are kept as a
 * cache, from which the least recently used go first. A kept one stays until its node is dropped,
 * since the store has removed it. A held one stays until all its holders have released it.
 *
 * Locks: the content lock protects everything here, except where it says otherwise. */
#ifndef PFS_FS_JOURNAL_RECORDS_H
#define PFS_FS_JOURNAL_RECORDS_H

#include <stdatomic.h>

#include "fs/image/byprime.h"
#include "fs/tree/tree.h"

struct pfs_value {
	_Atomic uint32_t references;
	uint32_t size; /* of data, in bytes */
	_Alignas(8) uint8_t data[];
};

/* These need no lock. create makes a value with one reference, or returns NULL if there is no
 * memory. unref allows NULL. */
struct pfs_value *pfs_value_create(size_t size);
struct pfs_value *pfs_value_ref(struct pfs_value *value);
void pfs_value_unref(struct pfs_value *value);
static inline void pfs_cleanup_value(struct pfs_value **value)
{
	pfs_value_unref(*value);
}
#define PFS_UNREF __attribute__((cleanup(pfs_cleanup_value)))

struct pfs_record {
	struct pfs_byprime by_prime;
	struct pfs_value *value;   /* NULL: the node has none */
	struct pfs_value *writing; /* what the group has; NULL: it removes the record */
	uint8_t dirty; /* 0: clean; else the mark of the group that it goes into (records.c) */
	bool in_group, kept, dropped;
	unsigned held; /* number of holders */
	/* Neighbours among the dirty records of the same mark, or among the clean ones in the order
	 * of last use. */
	struct pfs_record *next,
		*previous;
	struct pfs_record *next_in_group;
};

struct pfs_records;

/* Makes an empty set of records. load reads a node's value from the store, with no lock held; it
 * sets *out to NULL if the store has none. clean_bytes: the size of the cache of clean values. */
PFS_MUST_CHECK int
pfs_records_create(struct pfs_records **out, struct pfs_tree *tree, size_t clean_bytes,
		   int (*load)(struct pfs_tree *tree, struct pfs_value **out, uint64_t prime));
void pfs_records_destroy(struct pfs_records *records); /* NULL is allowed */

enum pfs_records_for {
	PFS_RECORDS_LOOK, /* the entry may leave the cache at any time */
	PFS_RECORDS_HOLD, /* the entry stays in memory until pfs_records_release */
	PFS_RECORDS_KEEP, /* the entry stays in memory until the node is dropped */
};

/* Gets the node's value, from memory or from the store; NULL if it has none. The caller gives it
 * back with pfs_value_unref. No lock is held. */
PFS_MUST_CHECK int pfs_records_get(struct pfs_records *records, struct pfs_value **out,
				   uint64_t prime, enum pfs_records_for purpose);
/* Ends one hold of the node's entry, if it is still there. */
void pfs_records_release(struct pfs_records *records, uint64_t prime);

/* Returns the node's entry; NULL if its value is not in memory. */
struct pfs_record *pfs_records_find(struct pfs_records *records, uint64_t prime);
/* Finds or makes the node's entry (clean, without a value); NULL if there is no memory. */
struct pfs_record *pfs_records_entry(struct pfs_records *records, uint64_t prime);
/* Replaces the value, and takes over the caller's reference. store: the value goes into the next
 * group; else it stays in memory only, until the node is dropped. tree->lock is held, too. */
void pfs_records_set(struct pfs_records *records, struct pfs_record *record,
		     struct pfs_value *value, bool store);
void pfs_records_drop(struct pfs_records *records, uint64_t prime); /* tree->lock is held, too */

/* Calls fn for each value that the store does not have yet, until it returns non-zero, which is
 * returned. */
PFS_MUST_CHECK int pfs_records_pending(struct pfs_records *records,
				       int (*fn)(void *arg, uint64_t prime,
						 struct pfs_value *value),
				       void *arg);

/* The functions `cut`, `cut_some`, `write` and `done` of a part (fs/journal/part.h) for these
 * records. fn writes one value. Values of unlinked nodes are not written. cut_some needs
 * tree->lock, too; write holds no lock; done takes the content lock. */
void pfs_records_cut(struct pfs_records *records);
bool pfs_records_cut_some(struct pfs_records *records, unsigned n);
PFS_MUST_CHECK int pfs_records_write(struct pfs_records *records,
				     int (*fn)(struct pfs_tree *tree, uint64_t prime,
					       const struct pfs_value *value));
void pfs_records_done(struct pfs_records *records);

#endif
