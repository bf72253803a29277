/* SPDX-License-Identifier: MIT */
/* fs/image/image.h - the image of a store in memory: columns, slots, and the places of names.
 *
 * Locks: tree->lock, for writing where something changes, but for references (struct pfs_image).
 * No function blocks. */
#ifndef PFS_FS_IMAGE_IMAGE_H
#define PFS_FS_IMAGE_IMAGE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/reserve.h"
#include "fs/image/watch.h"
#include "fs/tree/tree.h"
#include "gpu/engine.h"
#include "meta/store.h"

/* Its arrays by slot: what is watched, and what is not. */
#define PFS_IMAGE_ARRAYS(COLUMN)                                                                   \
	PFS_WATCHED_COLUMNS(COLUMN)                                                                \
	COLUMN(STATE, state, uint8_t)                                                              \
	COLUMN(REFERENCES, references, uint32_t)                                                   \
	COLUMN(DEPTH, depth, uint32_t)
enum pfs_image_array {
#define PFS_IMAGE_ARRAY(id, ...) PFS_ARRAY_##id,
	PFS_IMAGE_ARRAYS(PFS_IMAGE_ARRAY)
#undef PFS_IMAGE_ARRAY
	PFS_IMAGE_COLUMNS
};
#define PFS_WATCHERS_MAX  16
#define PFS_RECENT	  4096u /* changes whose slots are remembered */

enum pfs_slot_state {
	PFS_SLOT_STORED = 1,    /* the store has, or the group being written will have, a record */
	PFS_SLOT_DIRTY = 2,     /* in the journal's list of the next group */
	PFS_SLOT_UNLINKED = 4,  /* no name any more; lives until its last reference goes */
	PFS_SLOT_RARE = 8,      /* has an entry in the table of rare values */
	PFS_SLOT_DROPPED = 16,  /* unlinked, and no reference is left: free after the next cut */
	PFS_SLOT_KEPT = 64,	/* free but for snapshots that are open */
	PFS_SLOT_ORPHAN = 32,   /* unlinked, and the store has an orphan record for its content */
};

/* The image: one array a column, indexed by slot, at addresses that never move (reserved address
 * space that is committed as it grows).  Everything here is protected by tree->lock, but for
 * references, which are atomic and only grow under the read lock. */
struct pfs_image {
	uint32_t end; /* slots below it have been used */
	uint32_t nodes, directories; /* with a name, or the root */
	uint32_t root; /* slot */
	uint32_t free_head; /* free slots, chained by their parent column */
	uint32_t free_count;
	uint64_t epoch; /* raised by each change of a slot */
	uint64_t access; /* raised where a directory comes, goes, moves, or changes mode or owner */
	uint32_t recent[PFS_RECENT]; /* slots, each at the epoch (modulo) that it changed in */
	const struct pfs_watcher *watchers[PFS_WATCHERS_MAX];
	unsigned n_watchers;
	unsigned n_groups; /* cut, for pfs_watch_check_group */
	uint64_t *prime; /* 0: free */
	uint32_t *parent; /* slot; PFS_NO_SLOT at the root and for the unlinked */
	uint32_t *name;   /* place in the name heap */
	uint16_t *mode;
	uint8_t *flags; /* enum pfs_node_flag */
	uint8_t *state; /* enum pfs_slot_state */
	uint64_t *live; /* a bit a slot: it has a name, or is the root */
#define PFS_IMAGE_MEMBER(id, name, type, since) type *name;
	PFS_NODE_NUMBERS(PFS_IMAGE_MEMBER)
#undef PFS_IMAGE_MEMBER
	int64_t *atime, *mtime, *ctime; /* nanoseconds; of PFS_TIME_PAST and _FUTURE see the rare values */
	uint32_t *links; /* directories: 2 + subdirectories; others 1 */
	uint32_t *depth; /* of directories, see pfs_image_depth; 0: not known; at the root: whether any is */
	_Atomic uint32_t *references; /* saturates at UINT32_MAX: then never freed */
	struct pfs_names *names;
	struct pfs_slot_map *by_prime;  /* prime -> slot */
	struct pfs_rare *rare; /* slot -> rdev, symlink target, times beyond nanoseconds */
	struct pfs_image_copy *copy; /* NULL: this one changes (image_copy.h) */
	struct pfs_btree *by_name; /* (parent slot << 31 | name hash) -> slot: lookup and readdir */
	bool from_file; /* it was loaded from an image file (imagefile.h), */
	struct pfs_store_state file_state; /* which was of this state of the store */
	struct pfs_reserve memory[PFS_IMAGE_COLUMNS]; /* of the columns */
	struct pfs_reserve live_memory;
};

#define PFS_SLOT_MAX (UINT32_C(1) << 30) /* slots an image can have */

PFS_MUST_CHECK int pfs_image_create(struct pfs_tree *tree);
PFS_MUST_CHECK int pfs_image_open_columns(struct pfs_image *image); /* for image_copy.c */
void pfs_image_destroy(struct pfs_tree *tree);
/* Makes it as empty as it was; its watchers stay.  -ENOMEM. */
PFS_MUST_CHECK int pfs_image_clear(struct pfs_tree *tree);

/* The live or unlinked node of that prime, or PFS_NO_SLOT.  Any lock on the tree. */
uint32_t pfs_image_slot(const struct pfs_tree *tree, uint64_t ino);

/* Makes sure that the next n pfs_image_take and pfs_image_attach cannot fail.  -ENOMEM, -ENOSPC
 * (PFS_SLOT_MAX). */
PFS_MUST_CHECK int pfs_image_reserve(struct pfs_tree *tree, uint32_t n);

/* For loading: makes the columns reach below `end`; puts a slot among the free. */
PFS_MUST_CHECK int pfs_image_grow(struct pfs_tree *tree, uint32_t end);
void pfs_image_chain_free(struct pfs_tree *tree, uint32_t slot);

/* After loading: slots with a mode have a name. */
void pfs_image_loaded(struct pfs_tree *tree);

/* Whether the slot has a node with a name. */
static inline bool pfs_image_is_live(const struct pfs_image *image, uint32_t slot)
{
	return image->live[slot / 64] >> slot % 64 & 1;
}

/* A free slot, every column of it zero but prime and the state's PFS_SLOT_DIRTY; its parent is
 * PFS_NO_SLOT. */
uint32_t pfs_image_take(struct pfs_tree *tree, uint64_t prime);

/* Gives the slot back, with its rare values, once no snapshot is open.  It must be detached. */
void pfs_image_free(struct pfs_tree *tree, uint32_t slot);
void pfs_image_free_now(struct pfs_tree *tree, uint32_t slot); /* for snapshot.c */

/* ---- setters: they tell the watchers (watch.h), but of a slot that was taken and has no place ---- */

/* What a new node is made of; after take.  The mode says the type; links follow from it. */
void pfs_image_make(struct pfs_tree *tree, uint32_t slot, mode_t mode, uid_t uid, gid_t gid);
/* A symlink's target (NULL: none), a copy that becomes the image's and the node's size, and a device's
 * number.  -ENOMEM: the copy stays the caller's. */
PFS_MUST_CHECK int pfs_image_set_target(struct pfs_tree *tree, uint32_t slot, char *target,
					size_t target_len, uint64_t rdev);

/* Gives the slot its first place: parent, name, index; counts it (nodes, directories) and a directory in
 * its parent's links.  name: a place in the name heap that becomes the image's. */
void pfs_image_attach(struct pfs_tree *tree, uint32_t slot, uint32_t parent, uint32_t name);
/* Gives it another one; the name it had is freed. */
void pfs_image_move(struct pfs_tree *tree, uint32_t slot, uint32_t parent, uint32_t name);
/* Takes its place for good, and its links, and frees the name. */
void pfs_image_detach(struct pfs_tree *tree, uint32_t slot);

void pfs_image_set_mode(struct pfs_tree *tree, uint32_t slot, mode_t mode);
void pfs_image_set_owner(struct pfs_tree *tree, uint32_t slot, uid_t uid, gid_t gid);
/* Flags come and go.  Called where extended attributes change, too, after them. */
void pfs_image_set_flags(struct pfs_tree *tree, uint32_t slot, unsigned gone, unsigned come);
/* st_size and st_blocks of what is no directory. */
void pfs_image_set_size(struct pfs_tree *tree, uint32_t slot, int64_t size, int64_t blocks);
/* Cannot fail for times of the clock; -ENOMEM for those outside 1677..2262. */
PFS_MUST_CHECK int pfs_image_set_time(struct pfs_tree *tree, int64_t *column, uint32_t slot,
				      struct pfs_time time);
/* times: PFS_COLUMN_ATIME, MTIME, CTIME; the time fits. */
void pfs_image_stamp(struct pfs_tree *tree, uint32_t slot, unsigned times, struct pfs_time now);
/* For loading: tells nobody. */
PFS_MUST_CHECK int pfs_image_load_time(struct pfs_tree *tree, int64_t *column, uint32_t slot,
				       struct pfs_time time);

/* ---- reading ---- */

/* A name's hash (SipHash, keyed by the store's seed), and the key in by_name that it makes. */
#define PFS_NAME_HASH_BITS 31
uint32_t pfs_image_hash(const struct pfs_tree *tree, const char *name, size_t len);
static inline uint64_t pfs_image_key(uint32_t parent, uint32_t hash)
{
	return (uint64_t)parent << PFS_NAME_HASH_BITS | hash;
}

/* What is in the slot's entry of the table of rare values; false: it has none. Its target stays valid as
 * long as the lock, or the snapshot of a copy. */
struct pfs_rare_values;
bool pfs_image_rare(const struct pfs_image *image, struct pfs_rare_values *out, uint32_t slot);

/* The index of names, of statements: by_name, or a copy's. */
struct pfs_btree *pfs_image_index(const struct pfs_tree *tree);

void pfs_image_stat(const struct pfs_tree *tree, struct pfs_entry *out, uint32_t slot);
/* The plain numbers of a row (meta/format.h): those of a slot, and for loading, which tells nobody. */
void pfs_image_numbers(const struct pfs_image *image, struct pfs_node_record *out, uint32_t slot);
void pfs_image_load_numbers(struct pfs_image *image, uint32_t slot, const struct pfs_node_record *node);
/* The row as the store has it.  Points into the image: use it under the lock. */
void pfs_image_record(const struct pfs_tree *tree, struct pfs_node_record *out, uint32_t slot);
/* What columns have for a time that nanoseconds in 64 bits cannot say: the nearest that they can, and the time
 * itself is a rare value. INT64_MIN is no time. */
#define PFS_TIME_PAST	(INT64_MIN + 1)
#define PFS_TIME_FUTURE INT64_MAX
struct pfs_time pfs_image_time(const struct pfs_tree *tree, const int64_t *column, uint32_t slot);
/* Whether a column holds it: nanoseconds in 64 bits. */
static inline bool pfs_time_fits(struct pfs_time time)
{
	return time.sec > INT64_MIN / 1000000000 && time.sec < INT64_MAX / 1000000000;
}

struct pfs_time pfs_now(void); /* CLOCK_REALTIME_COARSE, as the kernel stamps files */

#endif
