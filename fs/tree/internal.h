/* SPDX-License-Identifier: MIT */
/* fs/tree/internal.h - what the modules of fs/tree share: the image's columns and the contracts
 * between image, journal and content.  Nobody outside fs/tree includes it.
 *
 * Lock order: content (pfs_content_lock) -> tree->lock -> journal's own mutex, or the totals'.  No
 * lock is held while the store is read or written. */
#ifndef PFS_FS_TREE_INTERNAL_H
#define PFS_FS_TREE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/reserve.h"
#include "fs/tree/tree.h"
#include "gpu/engine.h"
#include "base/btree.h"
#include "meta/store.h"

#define PFS_IMAGE_COLUMNS 16

/* Beyond what a file can be: st_size of the largest file that chunk numbers and off_t allow. */
#define PFS_FILE_SIZE_MAX (INT64_MAX - PFS_CHUNK_SIZE)

enum pfs_slot_state {
	PFS_SLOT_STORED = 1,    /* the store has, or the group being written will have, a record */
	PFS_SLOT_DIRTY = 2,     /* in the journal's list of the next group */
	PFS_SLOT_UNLINKED = 4,  /* no name any more; lives until its last reference goes */
	PFS_SLOT_RARE = 8,      /* has an entry in the table of rare values */
	PFS_SLOT_DROPPED = 16,  /* unlinked, and no reference is left: free after the next cut */
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
	uint64_t epoch;
	uint64_t access; /* raised where a directory comes, goes, moves, or changes mode or owner */
	uint64_t *prime; /* 0: free */
	uint32_t *parent; /* slot; PFS_NO_SLOT at the root and for the unlinked */
	uint32_t *name;   /* place in the name heap */
	uint16_t *mode;
	uint8_t *flags; /* enum pfs_node_flag */
	uint8_t *state; /* enum pfs_slot_state */
	uint32_t *uid, *gid;
	int64_t *size, *blocks;
	int64_t *atime, *mtime, *ctime; /* nanoseconds; INT64_MIN: see the rare values */
	bool has_far_times;		/* some was INT64_MIN since the tree was opened */
	uint32_t *links; /* directories: 2 + subdirectories; others 1 */
	uint32_t *depth; /* of directories, see pfs_image_depth; 0: not known; at the root: whether any is */
	_Atomic uint32_t *references; /* saturates at UINT32_MAX: then never freed */
	struct pfs_names *names;
	struct pfs_slot_map *by_prime;  /* prime -> slot */
	struct pfs_rare *rare; /* slot -> rdev, symlink target, times beyond nanoseconds */
	struct pfs_btree *by_name; /* (parent slot << 31 | name hash) -> slot: lookup and readdir */
	struct pfs_reserve memory[PFS_IMAGE_COLUMNS]; /* of the columns */
};

struct pfs_tree {
	struct pfs_tree_options options;
	struct pfs_store *store;
	pthread_rwlock_t lock;
	struct pfs_image image; /* protected by lock */
	_Atomic bool read_only;
	struct pfs_journal *journal;
	struct pfs_content *content;
	struct pfs_attrs *attrs;
	struct pfs_links *links;
	struct pfs_primes *primes;
	struct pfs_codes *codes;
	struct pfs_totals_table *totals;
	struct pfs_spans *spans;
	struct pfs_scan *scan;
	struct pfs_viewers *viewers;
	struct pfs_indexes *indexes;
	struct pfs_columns *columns;
	struct pfs_sides *sides;
	struct pfs_registers *registers;
	struct pfs_rows *rows;
	struct pfs_hard_links *hard_links;
	struct pfs_tree_listener listener;
};

/* ---- image.c: columns, slots, and the places of names ---- */

#define PFS_SLOT_MAX (UINT32_C(1) << 30) /* slots an image can have */

PFS_MUST_CHECK int pfs_image_create(struct pfs_tree *tree);
void pfs_image_destroy(struct pfs_tree *tree);

/* The live or unlinked node of that prime, or PFS_NO_SLOT.  Any lock on the tree. */
uint32_t pfs_image_slot(const struct pfs_tree *tree, uint64_t ino);

/* Makes sure that the next n pfs_image_take and pfs_image_attach cannot fail.  -ENOMEM, -ENOSPC
 * (PFS_SLOT_MAX). */
PFS_MUST_CHECK int pfs_image_reserve(struct pfs_tree *tree, uint32_t n);

/* For loading: makes the columns reach below `end`; puts a slot among the free. */
PFS_MUST_CHECK int pfs_image_grow(struct pfs_tree *tree, uint32_t end);
void pfs_image_chain_free(struct pfs_tree *tree, uint32_t slot);

/* A free slot, every column of it zero but prime and the state's PFS_SLOT_DIRTY; its parent is
 * PFS_NO_SLOT. */
uint32_t pfs_image_take(struct pfs_tree *tree, uint64_t prime);

/* Gives the slot back, with its rare values.  It must be detached. */
void pfs_image_free(struct pfs_tree *tree, uint32_t slot);

/* Gives the slot its place: parent, name, index; counts it (nodes, directories) and a directory in its
 * parent's links.  parent PFS_NO_SLOT: the root.  name: a place in the name heap that becomes the image's. */
void pfs_image_attach(struct pfs_tree *tree, uint32_t slot, uint32_t parent, uint32_t name);

/* Undoes attach and frees the name. */
void pfs_image_detach(struct pfs_tree *tree, uint32_t slot);

/* The child of that name, or PFS_NO_SLOT. */
uint32_t pfs_image_child(const struct pfs_tree *tree, uint32_t parent, const char *name, size_t len);

/* A name's hash (SipHash, keyed by the store's seed), and the key in by_name that it makes. */
#define PFS_NAME_HASH_BITS 31
uint32_t pfs_image_hash(const struct pfs_tree *tree, const char *name, size_t len);
static inline uint64_t pfs_image_key(uint32_t parent, uint32_t hash)
{
	return (uint64_t)parent << PFS_NAME_HASH_BITS | hash;
}

void pfs_image_stat(const struct pfs_tree *tree, struct pfs_entry *out, uint32_t slot);
/* The row as the store has it.  Points into the image: use it under the lock. */
void pfs_image_record(const struct pfs_tree *tree, struct pfs_node_record *out, uint32_t slot);
struct pfs_time pfs_image_time(const struct pfs_tree *tree, const int64_t *column, uint32_t slot);
/* Cannot fail for times of the clock; -ENOMEM for those outside 1677..2262. */
PFS_MUST_CHECK int pfs_image_set_time(struct pfs_tree *tree, int64_t *column, uint32_t slot,
				      struct pfs_time time);
/* Whether a column holds it: nanoseconds in 64 bits. */
static inline bool pfs_time_fits(struct pfs_time time)
{
	return time.sec > INT64_MIN / 1000000000 && time.sec < INT64_MAX / 1000000000;
}

struct pfs_time pfs_now(void); /* CLOCK_REALTIME_COARSE, as the kernel stamps files */
static inline void pfs_node_stamp(struct pfs_tree *tree, int64_t *column, uint32_t slot,
				  struct pfs_time now)
{
	if (pfs_image_set_time(tree, column, slot, now)) /* cannot be: the clock's time fits */
		PFS_VERIFY_CHECK(false);
}

/* st_size and st_blocks of what is no directory. */
void pfs_image_set_size(struct pfs_tree *tree, uint32_t slot, int64_t size, int64_t blocks);

/* ---- load.c ---- */

/* Fills an empty image from the store.  -EUCLEAN, with a line in the log that names the node, for
 * records that are no tree. */
PFS_MUST_CHECK int pfs_load(struct pfs_tree *tree);

/* ---- names.c: the heap of names ---- */

#define PFS_NO_NAME 0u
#define PFS_NAME_SLACK 320u /* bytes that may be read past a name's start, whatever is in them */

PFS_MUST_CHECK int pfs_names_create(struct pfs_names **out);
void pfs_names_destroy(struct pfs_names *names);
/* *place = where a copy of the bytes now is, NUL-terminated.  len <= PFS_NAME_MAX.  -ENOMEM. */
PFS_MUST_CHECK int pfs_names_add(struct pfs_names *names, uint32_t *place, const void *name,
				 size_t len);
/* The same for several threads at once (loading), each with its own region, {0} at first; only what a
 * region lacks is taken from the heap, under a lock of the heap's. */
struct pfs_name_region {
	uint64_t next, end;
};
PFS_MUST_CHECK int pfs_names_add_in(struct pfs_names *names, struct pfs_name_region *region,
				    uint32_t *place, const void *name, size_t len);
void pfs_names_remove(struct pfs_names *names, uint32_t place);
/* The heap for the engine's listings: all but place and n_slots. */
void pfs_names_view(const struct pfs_names *names, struct pfs_names_view *view);
/* When blocks of it last changed, for whoever keeps a copy. */
const struct pfs_stamps *pfs_names_stamps(const struct pfs_names *names);
/* Valid until the name is removed; never moves. */
const char *pfs_names_get(const struct pfs_names *names, uint32_t place, size_t *len);
void pfs_names_prefetch(const struct pfs_names *names, uint32_t place);
uint64_t pfs_names_bytes(const struct pfs_names *names); /* of memory in use */

/* ---- slotmap.c: prime -> slot, a hash that keeps slots only and looks primes up in the column; it
 * grows a little with every insert, never all at once ---- */

PFS_MUST_CHECK int pfs_slot_map_create(struct pfs_slot_map **out);
void pfs_slot_map_destroy(struct pfs_slot_map *map);
/* Room for `count` slots in all; many more than there are only while it is empty.  -ENOMEM. */
PFS_MUST_CHECK int pfs_slot_map_reserve(struct pfs_slot_map *map, uint64_t count);
void pfs_slot_map_insert(struct pfs_slot_map *map, const uint64_t *primes, uint32_t slot);
void pfs_slot_map_remove(struct pfs_slot_map *map, const uint64_t *primes, uint64_t prime);
uint32_t pfs_slot_map_find(const struct pfs_slot_map *map, const uint64_t *primes, uint64_t prime);
/* Makes an insert or find of that prime faster, a little later. */
void pfs_slot_map_prefetch(const struct pfs_slot_map *map, uint64_t prime);
uint64_t pfs_slot_map_memory(const struct pfs_slot_map *map);

/* ---- rare.c: what few nodes have ---- */

enum { PFS_RARE_ATIME, PFS_RARE_MTIME, PFS_RARE_CTIME, PFS_RARE_TIMES };

struct pfs_rare_values {
	uint32_t slot;
	uint32_t target_len;
	char *target; /* symlinks; NUL-terminated, owned */
	uint64_t rdev;
	struct pfs_time times[PFS_RARE_TIMES];
};

PFS_MUST_CHECK int pfs_rare_create(struct pfs_rare **out);
void pfs_rare_destroy(struct pfs_rare *rare);
/* The slot's values, made (zero) if there are none.  Valid until the next get or drop.  -ENOMEM. */
PFS_MUST_CHECK int pfs_rare_get(struct pfs_rare *rare, struct pfs_rare_values **out, uint32_t slot);
/* NULL when there are none. */
const struct pfs_rare_values *pfs_rare_find(const struct pfs_rare *rare, uint32_t slot);
void pfs_rare_drop(struct pfs_rare *rare, uint32_t slot);

/* ---- primes.c: the next prime of each kind ---- */

PFS_MUST_CHECK int pfs_primes_create(struct pfs_tree *tree);
void pfs_primes_destroy(struct pfs_tree *tree);

/* A prime that no node of this store ever had.  -EAGAIN: the ranges at hand are used up; let the
 * committer fetch (pfs_primes_low), wait, try again.  -ENOSPC: all of the kind are used. */
PFS_MUST_CHECK int pfs_primes_next(struct pfs_tree *tree, uint64_t *prime, enum pfs_prime_kind kind);

/* Whether the committer should fetch; fetch inside a group; done when that is committed (or lost). */
bool pfs_primes_low(struct pfs_tree *tree);
PFS_MUST_CHECK int pfs_primes_fetch(struct pfs_tree *tree);
void pfs_primes_fetched(struct pfs_tree *tree, bool committed);

/* ---- path.c ---- */

/* Whether `slot` is `top` or lies under it: one divisibility test.  Any lock on the tree; neither
 * is unlinked. */
bool pfs_image_is_under(const struct pfs_tree *tree, uint32_t slot, uint32_t top);

/* How many directories lie above the node.  Climbs only as far as to the first one whose depth is known, and
 * notes what it has met; readers may do so at once.  Any lock on the tree; it is not unlinked. */
uint32_t pfs_image_depth(const struct pfs_image *image, uint32_t slot);

/* The length of the node's code in bits.  Under the lock.  -ENOMEM. */
PFS_MUST_CHECK int pfs_image_code_bits(const struct pfs_tree *tree, uint32_t *bits, uint32_t slot);

/* ---- codes.c: the engine beside the image ---- */

PFS_MUST_CHECK int pfs_codes_create(struct pfs_tree *tree);
void pfs_codes_destroy(struct pfs_tree *tree);

/* With tree->lock held for writing: the node has a place (again), has none any more. */
void pfs_codes_attached(struct pfs_tree *tree, uint32_t slot);
void pfs_codes_removed(struct pfs_tree *tree, uint32_t slot);

/* Begins a question: *engine knows the image as it is, and the image stays so until end, tree->lock
 * being held for reading.  -ENODEV, -ENOMEM. */
PFS_MUST_CHECK int pfs_codes_begin(struct pfs_tree *tree, struct pfs_engine **engine);
void pfs_codes_end(struct pfs_tree *tree);

/* The same for who holds tree->lock for reading already and goes on holding it; therefore it never
 * waits: -EBUSY when another question is being answered, and for the first few while the engine
 * is empty, unless it was chosen. */
PFS_MUST_CHECK int pfs_codes_try(struct pfs_tree *tree, struct pfs_engine **engine);
void pfs_codes_release(struct pfs_tree *tree);
/* Whether a device answers, or was asked for. */
bool pfs_codes_use_device(struct pfs_tree *tree);

/* ---- journal.c: from the image to the store ---- */

/* An operation's first step, without locks: makes sure that its changes can be kept and committed.
 * bytes: of content.  -EROFS, -ENOSPC, -ENOMEM; waits while too much is pending, or -EAGAIN with
 * nowait. */
PFS_MUST_CHECK int pfs_journal_reserve(struct pfs_tree *tree, size_t nodes, uint64_t bytes,
				       bool nowait);

/* The same for what removes or moves names: works on a full disk as long as anything does. */
PFS_MUST_CHECK int pfs_journal_reserve_removal(struct pfs_tree *tree, size_t nodes);

/* Waits, without locks, for the committer to fetch primes.  -EROFS when it cannot. */
PFS_MUST_CHECK int pfs_journal_fetch_primes(struct pfs_tree *tree);

/* With tree->lock held for writing; cannot fail within what was reserved.  Raise the epoch. */
void pfs_journal_touch(struct pfs_tree *tree, uint32_t slot); /* the row changed or is new */
void pfs_journal_unlinked(struct pfs_tree *tree, uint32_t slot); /* last name gone, maybe referenced */
/* Last reference gone too, content dropped: the slot is freed, at once or after the next cut. */
void pfs_journal_dropped(struct pfs_tree *tree, uint32_t slot);

/* Bytes of content now waiting for the store grew (or, negative, shrank). */
void pfs_journal_pending(struct pfs_tree *tree, int64_t bytes);

/* Bytes free, less what is pending, and total of the store's filesystem. */
PFS_MUST_CHECK int pfs_journal_space(struct pfs_tree *tree, uint64_t *free_bytes,
				     uint64_t *total_bytes);

/* A group of somebody else's (sides.c), which the committer writes between two of its own. */
struct pfs_errand {
	int (*write)(void *arg, struct pfs_store *store);
	void *arg;
	int error;
	bool done;
};

/* Waits until it is done; one at a time.  The errand's error; -EROFS when nothing can be written. */
PFS_MUST_CHECK int pfs_journal_send(struct pfs_tree *tree, struct pfs_errand *errand);

PFS_MUST_CHECK int pfs_journal_create(struct pfs_tree *tree);
void pfs_journal_destroy(struct pfs_tree *tree);
PFS_MUST_CHECK int pfs_journal_start(struct pfs_tree *tree);
/* Commits what is pending and ends the committer.  The error if that failed. */
PFS_MUST_CHECK int pfs_journal_stop(struct pfs_tree *tree);

/* ---- content.c: chunks that the store does not have yet ---- */

PFS_MUST_CHECK int pfs_content_create(struct pfs_tree *tree);
void pfs_content_destroy(struct pfs_tree *tree);
void pfs_content_lock(struct pfs_tree *tree);
void pfs_content_unlock(struct pfs_tree *tree);

/* Called by the committer. cut: with the content lock and tree->lock: what is dirty becomes the
 * group being written.  write: between begin and commit of the store, without locks, may be repeated
 * after a failed group.  done: the group is committed; takes the content lock itself.
 * Chunks and source records go this way; whatever is dirty counts in pfs_journal_pending. */
void pfs_content_cut(struct pfs_tree *tree);
PFS_MUST_CHECK int pfs_content_write(struct pfs_tree *tree);
void pfs_content_done(struct pfs_tree *tree);

/* Truncation, for setattr.  prepare, without locks: waits, and loads what the new end cuts through.
 * On success it returns with the content lock HELD, so that nothing changes before set: take
 * tree->lock, look at the node again, call set (or not), unlock both.  -EFBIG, -ENODATA, -ESTALE,
 * -EINVAL (no regular file), and what reserve and the store say.
 * set, with both locks: cannot fail; updates size and blocks, touches the row. */
PFS_MUST_CHECK int pfs_content_prepare_size(struct pfs_tree *tree, uint64_t ino, int64_t size);
void pfs_content_set_size(struct pfs_tree *tree, uint32_t slot, int64_t size);

/* Before the last name of a node goes, without locks: loads what the store forgets together with
 * the record (attributes, source), so that the node stays whole while it is referenced.  Costs
 * nothing for nodes without. */
PFS_MUST_CHECK int pfs_content_keep(struct pfs_tree *tree, uint64_t ino);

/* Forget everything about a node that is gone (both locks held). */
void pfs_content_drop(struct pfs_tree *tree, uint64_t ino);

/* ---- xattr.c: attribute records that the store does not have yet; the same protocol, under the
 * same content lock ---- */

PFS_MUST_CHECK int pfs_attrs_create(struct pfs_tree *tree);
void pfs_attrs_destroy(struct pfs_tree *tree);
void pfs_attrs_cut(struct pfs_tree *tree);
PFS_MUST_CHECK int pfs_attrs_write(struct pfs_tree *tree);
void pfs_attrs_done(struct pfs_tree *tree);
void pfs_attrs_drop(struct pfs_tree *tree, uint64_t ino);
/* For attrcolumn.c: the columns; and fn for each node whose attributes the store does not have yet, the
 * content lock held. */
struct pfs_attr_columns *pfs_attrs_columns(const struct pfs_tree *tree);
struct pfs_value;
PFS_MUST_CHECK int pfs_attrs_pending(struct pfs_tree *tree,
				     int (*fn)(void *arg, uint64_t prime, struct pfs_value *set),
				     void *arg);

/* ---- link.c: originals that content is read through to ---- */

PFS_MUST_CHECK int pfs_links_create(struct pfs_tree *tree);
void pfs_links_destroy(struct pfs_tree *tree);

/* Compares the node with its original and takes over what changed (attributes, through the
 * journal).  0, -ESTALE, or what opening says.  No locks held. */
PFS_MUST_CHECK int pfs_links_refresh(struct pfs_tree *tree, uint64_t ino);

/* ---- sides.c: side tables (fs/tree/sides.h) ---- */

PFS_MUST_CHECK int pfs_sides_create(struct pfs_tree *tree);
void pfs_sides_destroy(struct pfs_tree *tree);
void pfs_sides_write(struct pfs_tree *tree, struct pfs_errand *errand); /* the committer's part */

#endif
