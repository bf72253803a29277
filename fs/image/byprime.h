/* SPDX-License-Identifier: MIT */
/* fs/image/byprime.h - a hash table of things that are found by their node's prime.
 *
 * It is intrusive: a thing starts with a struct pfs_byprime. Adding cannot fail: if there is no
 * memory for a larger table, the chains grow. The things stay their owner's.
 * Locks: the caller locks. */
#ifndef PFS_FS_IMAGE_BYPRIME_H
#define PFS_FS_IMAGE_BYPRIME_H

#include <stddef.h>
#include <stdint.h>

struct pfs_byprime {
	uint64_t prime;
	struct pfs_byprime *next;
};

struct pfs_byprime_table {
	struct pfs_byprime **chains;
	size_t size, count;	  /* size: a power of two, 0 before the first entry */
	struct pfs_byprime *only; /* the one chain while there is no array */
};

/* A table that is all zeros is empty and ready. */
struct pfs_byprime *pfs_byprime_find(const struct pfs_byprime_table *table, uint64_t prime);
void pfs_byprime_add(struct pfs_byprime_table *table, struct pfs_byprime *entry);
void pfs_byprime_remove(struct pfs_byprime_table *table, struct pfs_byprime *entry);

/* Empties the table, calling fn for each entry, and frees its memory. */
void pfs_byprime_drain(struct pfs_byprime_table *table,
		       void (*fn)(void *arg, struct pfs_byprime *entry), void *arg);

#endif
