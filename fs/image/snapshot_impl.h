/* SPDX-License-Identifier: MIT */
/* fs/image/snapshot_impl.h - what the files behind fs/image/snapshot.h share: snapshot.c (snapshots
 * and their versions of blocks) and snapshot_memory.c (what they may take, and what is kept for
 * them beside blocks). */
#ifndef PFS_FS_IMAGE_SNAPSHOT_IMPL_H
#define PFS_FS_IMAGE_SNAPSHOT_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/reserve.h"
#include "fs/image/kept.h"
#include "fs/image/snapshot.h"

#define PFS_VERSION_CLASSES 4u /* of blocks by their size: 512 bytes, 8, 16 and 32 KiB */

/* A block as it was. It is what snapshots read whose number is above `from` and at most `to`. */
struct pfs_version {
	struct pfs_version *older; /* of the same block; of free ones: the next */
	struct pfs_version *next;  /* of the same snapshot's */
	uint64_t from, to;
	uint32_t block;
	uint8_t column;
	uint64_t data[];
};

struct pfs_snapshot_entry {
	/* Snapshots up to this number do not read the block in the image any more: they have a
	 * copy, or need none. */
	_Atomic uint64_t copied;
	struct pfs_version *newest;	 /* protected by the lock */
};

struct pfs_snapshot {
	struct pfs_tree *tree;
	uint64_t number; /* they are counted from 1 */
	uint32_t end;
	uint64_t names_end;
	unsigned declared;
	/* Declared columns that are still wanted. It and all below are protected by the lock. */
	unsigned columns;
	_Atomic bool given_up;
	struct pfs_version
		*versions; /* each that is needed is in the list of one snapshot that reads it */
	struct pfs_snapshot *next; /* the one taken after it */
};

struct pfs_snapshots {
	pthread_mutex_t lock;
	_Atomic unsigned declared; /* columns that some snapshot declares */
	_Atomic uint64_t newest[PFS_COLUMN_COUNT]; /* snapshot that declares the column; 0: none */
	_Atomic uint64_t first, last; /* numbers of those open; 0: there is none */
	_Atomic uint32_t end;	      /* the newest's: no snapshot has slots from here on */
	_Atomic int64_t elsewhere[PFS_KEPT_KINDS]; /* bytes */
	struct pfs_reserve memory;
	struct pfs_snapshot_entry *entries; /* memory.base, by column and block */
	/* Protected by the lock. */
	struct pfs_snapshot *oldest;
	uint64_t number; /* given last */
	struct pfs_version *spare[PFS_VERSION_CLASSES];
	size_t n_spare[PFS_VERSION_CLASSES];
	uint64_t limit;
	struct pfs_tree *tree;
	struct pfs_snapshot_stats stats;
	struct pfs_kept kept; /* slots; protected by tree->lock, for writing */
};

/* ---- snapshot_memory.c; the lock is held ---- */

/* Memory for versions that no version has yet, by class. */
void pfs_spare_put(struct pfs_snapshots *snapshots, struct pfs_version *version, unsigned class);
struct pfs_version *pfs_spare_pop(struct pfs_snapshots *snapshots,
				  unsigned class); /* NULL: there is none */
/* Takes memory for one version more. NULL: there is none, or it would be more than the limit. */
struct pfs_version *pfs_spare_make(struct pfs_snapshots *snapshots, unsigned class);
/* Frees a spare one, to make room for another class. Returns false if there is none. */
bool pfs_spare_free(struct pfs_snapshots *snapshots);
/* Takes all spare ones out, in a list by `older`, which the caller frees without the lock. */
struct pfs_version *pfs_spare_take_all(struct pfs_snapshots *snapshots);

/* Returns true if all that is kept for snapshots is more than the limit. */
bool pfs_snapshots_are_over(const struct pfs_snapshots *snapshots);
/* Finds out the limit of the image as it is; tree->lock is held. */
void pfs_snapshots_find_limit(struct pfs_snapshots *snapshots);

#endif
