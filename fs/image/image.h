/* SPDX-License-Identifier: MIT */
/* fs/image/image.h - the image of a store in memory: its columns, its slots, and the places of
 * names.
 *
 * The columns are the tree's, at addresses that never move; whoever reads them holds the tree or
 * reads a snapshot. Only the setters below change them.
 *
 * Locks: tree->lock, for writing where something changes, but for references (struct pfs_image). No
 * function blocks. */
#ifndef PFS_FS_IMAGE_IMAGE_H
#define PFS_FS_IMAGE_IMAGE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/reserve.h"
#include "fs/image/watch.h"
#include "fs/tree/tree.h"
#include "gpu/engine.h"
#include "meta/store.h"

/* The image's arrays by slot: first those that are watched, then those that are not. */
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
#define PFS_RECENT 4096u /* changes of directories that are remembered */

enum pfs_slot_state {
	PFS_SLOT_STORED = 1,	/* the store has, or the group being written will have, a record */
	/* The row has changed and is not written. The two marks alternate from cut to cut: one is
	 * the next group's (journal->mark), the other that of the group being cut. */
	PFS_SLOT_DIRTY_1 = 2,
	PFS_SLOT_UNLINKED = 4,	/* no name any more; lives until its last reference goes */
	PFS_SLOT_RARE = 8,	/* has an entry in the table of rare values */
	PFS_SLOT_DROPPED = 16,	/* unlinked, and no reference is left: free after the next cut */
	PFS_SLOT_ORPHAN = 32,	/* unlinked, and the store has an orphan record for its content */
	PFS_SLOT_KEPT = 64,	/* not used again before the snapshots that are open have ended */
	PFS_SLOT_DIRTY_2 = 128,
	PFS_SLOT_DIRTY = PFS_SLOT_DIRTY_1 | PFS_SLOT_DIRTY_2,
};

/* The image: one array a column, indexed by slot, at addresses that never move (reserved address
 * space that is committed as it grows).  Everything here is protected by tree->lock, but for
 * references, which are atomic and only grow under the read lock. */
struct pfs_image {
	uint32_t end; /* slots from here on were never used */
	uint32_t room; /* the columns reach below this slot */
	uint32_t nodes, directories; /* how many have a name; the root counts */
	uint32_t root; /* slot */
	uint32_t free_head; /* the first free slot; others follow by their parent column */
	uint32_t free_count;
	uint64_t epoch; /* raised by each change of a slot */
	uint64_t access; /* raised when a directory comes, goes, moves, or changes mode or owner */
	struct pfs_feed *feed;		    /* what has changed last (feed.h) */
	/* A ring of directories: the one whose change raised access from n to n + 1 is at
	 * n % PFS_RECENT. */
	uint32_t recent_access[PFS_RECENT];
	struct pfs_watchers watchers;
	unsigned n_groups; /* groups that were cut, for pfs_watch_check_group */
	uint64_t *prime; /* 0: free */
	uint32_t *parent; /* slot; PFS_NO_SLOT at the root and for the unlinked */
	uint32_t *name;   /* place in the name heap */
	uint16_t *mode;
	uint8_t *flags; /* enum pfs_node_flag */
	uint8_t *state; /* enum pfs_slot_state */
	uint64_t *live; /* a bit a slot: it has a node with a name, or is the root */
#define PFS_IMAGE_MEMBER(id, name, type, since) type *name;
	PFS_NODE_NUMBERS(PFS_IMAGE_MEMBER)
#undef PFS_IMAGE_MEMBER
	int64_t *atime, *mtime,
		*ctime;	 /* nanoseconds; PFS_TIME_PAST and _FUTURE: see the rare values */
	uint32_t *links; /* directories: 2 + subdirectories; others 1 */
	/* The depth of a directory (pfs_image_depth); 0: not known. The root's entry is 1 once a
	 * depth of 2 or more may be known, else 0. */
	uint32_t *depth;
	_Atomic uint32_t *references; /* saturates at UINT32_MAX: then never freed */
	struct pfs_names *names;
	struct pfs_slot_map *by_prime;  /* prime -> slot */
	struct pfs_rare *rare; /* slot -> rdev, symlink target, times beyond nanoseconds */
	struct pfs_image_copy *copy; /* NULL: this is the live image (image_copy.h) */
	struct pfs_btree *by_name; /* (parent slot << 31 | name hash) -> slot: lookup and readdir */
	bool from_file; /* this image was loaded from an image file (imagefile.h) */
	struct pfs_store_state file_state; /* the state of the store that the file was made of */
	/* Rows that have changed since the file was made: read into the image at the opening, or
	 * written by this process. For the committer alone. */
	uint64_t n_behind;
	/* The file that this image (or, of a copy, the live image) was loaded from; NULL: none. A
	 * block is read from it at its first touch. */
	struct pfs_image_file *file;
	uint32_t file_end; /* slots from here on are not in the file */
	/* Closes the file; the memory has to be unmapped next. */
	void (*close_file)(struct pfs_image *image);
	struct pfs_reserve memory[PFS_IMAGE_COLUMNS]; /* of the columns */
	struct pfs_reserve live_memory;
};

#define PFS_SLOT_MAX (UINT32_C(1) << 30) /* slots an image can have */

PFS_MUST_CHECK int pfs_image_create(struct pfs_tree *tree);
/* For image_copy.c: columns without slots, and their feed; close may find them half made. -ENOMEM.
 */
PFS_MUST_CHECK int pfs_image_open_columns(struct pfs_image *image);
void pfs_image_close_columns(struct pfs_image *image);
void pfs_image_destroy(struct pfs_tree *tree);
/* Makes the image as empty as it was at first; its watchers stay. -ENOMEM. */
PFS_MUST_CHECK int pfs_image_clear(struct pfs_tree *tree);

/* Returns the slot of the live or unlinked node of that prime, or PFS_NO_SLOT. Any lock on the tree
 * is held. */
uint32_t pfs_image_slot(const struct pfs_tree *tree, uint64_t ino);

/* Makes sure that the next n pfs_image_take and pfs_image_attach cannot fail. -ENOMEM; -ENOSPC:
 * there would be more than PFS_SLOT_MAX slots. */
PFS_MUST_CHECK int pfs_image_reserve(struct pfs_tree *tree, uint32_t n);

/* For loading: grow makes the columns reach below `end`; expect_filled says that all of them are
 * about to be written; chain_free puts a slot among the free. */
PFS_MUST_CHECK int pfs_image_grow(struct pfs_tree *tree, uint32_t end);
void pfs_image_expect_filled(struct pfs_image *image);
void pfs_image_chain_free(struct pfs_tree *tree, uint32_t slot);

/* After loading: marks as live each slot that has a mode, in those words of 64 slots; for
 * pfs_pool_run. */
void pfs_image_loaded(void *tree, size_t from, size_t to);

/* Returns true if the slot has a node with a name. */
static inline bool pfs_image_is_live(const struct pfs_image *image, uint32_t slot)
{
	return image->live[slot / 64] >> slot % 64 & 1;
}

/* Takes a free slot. Every column of it is zero but for prime, the state's PFS_SLOT_DIRTY, and the
 * parent, which is PFS_NO_SLOT. */
uint32_t pfs_image_take(struct pfs_tree *tree, uint64_t prime);

/* Gives a slot back, which must be detached, with its rare values, once no snapshot is open any
 * more. */
void pfs_image_free(struct pfs_tree *tree, uint32_t slot);
void pfs_image_free_now(struct pfs_tree *tree, uint32_t slot); /* for snapshot.c */

/* ---- setters: they tell the watchers (watch.h), but of a slot that was taken and has no place
 * ---- */

/* Says what a new node is, after take. The mode gives its type; links follow from that. now: its
 * times, which fit the columns. */
void pfs_image_make(struct pfs_tree *tree, uint32_t slot, mode_t mode, uid_t uid, gid_t gid,
		    struct pfs_time now);
/* Sets a symlink's target (NULL: none), a copy that becomes the image's and gives the node its
 * size, and a device's number. -ENOMEM: the copy stays the caller's. */
PFS_MUST_CHECK int pfs_image_set_target(struct pfs_tree *tree, uint32_t slot, char *target,
					size_t target_len, uint64_t rdev);

/* Gives the slot its first place: parent, name, index. Counts it as a node or directory, and a
 * directory among its parent's links. name: a place in the name heap, which becomes the image's;
 * hash: the name's (pfs_image_hash), which the caller has looked it up by. */
void pfs_image_attach(struct pfs_tree *tree, uint32_t slot, uint32_t parent, uint32_t name,
		      uint32_t hash);
/* Gives the slot another place, with name and hash as above; the name that it had is freed. ctime,
 * its own then, fits the column. */
void pfs_image_move(struct pfs_tree *tree, uint32_t slot, uint32_t parent, uint32_t name,
		    uint32_t hash, struct pfs_time ctime);
/* Takes the slot's place away for good, with its links, and frees the name, whose hash this is.
 * ctime as above; NULL: it stays as it was. */
void pfs_image_detach(struct pfs_tree *tree, uint32_t slot, uint32_t hash,
		      const struct pfs_time *ctime);

void pfs_image_set_mode(struct pfs_tree *tree, uint32_t slot, mode_t mode);
void pfs_image_set_owner(struct pfs_tree *tree, uint32_t slot, uid_t uid, gid_t gid);
/* Clears and sets flags. Also called, afterwards, where extended attributes change. */
void pfs_image_set_flags(struct pfs_tree *tree, uint32_t slot, unsigned gone, unsigned come);
/* Sets st_size and st_blocks of what is no directory. */
void pfs_image_set_size(struct pfs_tree *tree, uint32_t slot, int64_t size, int64_t blocks);
/* Sets st_size and st_blocks, and mtime and ctime to now, which fits the columns. */
void pfs_image_write(struct pfs_tree *tree, uint32_t slot, int64_t size, int64_t blocks,
		     struct pfs_time now);
/* Sets some times of the slot; columns: of PFS_COLUMN_ATIME, MTIME, CTIME. Cannot fail for times
 * that the clock gives; -ENOMEM for one outside 1677..2262: some of them are set. */
struct pfs_times {
	struct pfs_time atime, mtime, ctime;
};
PFS_MUST_CHECK int pfs_image_set_times(struct pfs_tree *tree, uint32_t slot, unsigned columns,
				       const struct pfs_times *times);
/* Sets some of the slot's times to now, which fits the column. times: PFS_COLUMN_ATIME, MTIME,
 * CTIME. */
void pfs_image_stamp(struct pfs_tree *tree, uint32_t slot, unsigned times, struct pfs_time now);
/* For loading: sets a time as pfs_image_set_times does, without telling the watchers. */
PFS_MUST_CHECK int pfs_image_load_time(struct pfs_tree *tree, int64_t *column, uint32_t slot,
				       struct pfs_time time);

/* ---- reading ---- */

/* Return a name's hash (SipHash, keyed by the store's seed), and the key in by_name that it
 * makes. */
#define PFS_NAME_HASH_BITS 31
uint32_t pfs_image_hash(const struct pfs_tree *tree, const char *name, size_t len);
uint32_t pfs_image_hash_of(const struct pfs_tree *tree, uint32_t slot); /* of the slot's name */
static inline uint64_t pfs_image_key(uint32_t parent, uint32_t hash)
{
	return (uint64_t)parent << PFS_NAME_HASH_BITS | hash;
}

/* Gets what the table of rare values has of the slot. Returns false if it has nothing. The target
 * stays valid as long as the lock is held, or the snapshot of a copy is open. */
struct pfs_rare_values;
bool pfs_image_rare(const struct pfs_image *image, struct pfs_rare_values *out, uint32_t slot);

/* Returns the index of names, for statements: by_name, or a copy's own. */
struct pfs_btree *pfs_image_index(const struct pfs_tree *tree);

void pfs_image_stat(const struct pfs_tree *tree, struct pfs_entry *out, uint32_t slot);
/* Get a slot's plain numbers (meta/format.h), and set them for loading, which tells nobody. */
void pfs_image_numbers(const struct pfs_image *image, struct pfs_node_record *out, uint32_t slot);
void pfs_image_load_numbers(struct pfs_image *image, uint32_t slot,
			    const struct pfs_node_record *node);
/* Gets the row as the store has it. It points into the image: to be used under the lock. */
void pfs_image_record(const struct pfs_tree *tree, struct pfs_node_record *out, uint32_t slot);
/* These stand in columns for times before and after what nanoseconds in 64 bits can say; the time
 * itself is a rare value then. INT64_MIN is no time. */
#define PFS_TIME_PAST	(INT64_MIN + 1)
#define PFS_TIME_FUTURE INT64_MAX
struct pfs_time pfs_image_time(const struct pfs_tree *tree, const int64_t *column, uint32_t slot);
/* Returns true if a column can hold the time: nanoseconds in 64 bits. */
static inline bool pfs_time_fits(struct pfs_time time)
{
	return time.sec > INT64_MIN / 1000000000 && time.sec < INT64_MAX / 1000000000;
}

struct pfs_time pfs_now(void); /* CLOCK_REALTIME_COARSE, as the kernel stamps files */

#endif
