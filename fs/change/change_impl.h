/* SPDX-License-Identifier: MIT */
/* fs/change/change_impl.h - what the files behind fs/change/change.h share: change.c (locks,
 * removal), change_edits.c (attributes), change_find.c (the nodes, and whether they are as they
 * were), change_place.c (where nodes come to), change_make.c (new nodes), change_tell.c (whom to
 * tell what).
 *
 * Functions that plan come first and can fail; what applies the plan cannot. */
#ifndef PFS_FS_CHANGE_CHANGE_IMPL_H
#define PFS_FS_CHANGE_CHANGE_IMPL_H

#include "fs/change/change.h"
#include "fs/tree/dir.h"

#define PFS_NO_ROW SIZE_MAX

/* A node of the set that gets a place, or loses the one it has. */
struct pfs_move {
	size_t row;	   /* of the set's list */
	uint32_t slot;	   /* PFS_NO_SLOT while it is not made */
	uint32_t parent; /* its directory afterwards; PFS_NO_SLOT: the one that parent_row makes */
	size_t parent_row; /* else PFS_NO_ROW */
	const char *name;  /* terminated */
	size_t len;
	uint32_t hash;	/* of the name */
	uint32_t place; /* of the name in the heap */
	bool visited;
};

struct pfs_changing {
	struct pfs_tree *tree;
	struct pfs_change_set *changes;
	const struct pfs_change_basis *basis;
	const struct pfs_caller *caller;
	struct pfs_time now;
	uint32_t *slots;	     /* by row */
	struct pfs_attr_edit *edits; /* by row, then those of rows that were dropped; NULL: no row
					changes attributes */
	size_t n_edits;
	uint64_t former; /* what history keeps of attributes that are replaced or go, in bytes */
	bool has_outdated;	     /* of `edits`: others have changed the attributes since */
	bool *kept;	/* by row, of a removal: its parts are kept for who reads them */
	uint64_t *seen; /* a bit a slot: a directory that lies where it did; NULL without a frozen
			   tree */
	struct pfs_move *moves;
	size_t n_moves;
	struct pfs_move **by_slot; /* moves in order of slots, but for those to be made */
	uint64_t *moving;	   /* a bit a slot: in by_slot */
	struct pfs_move **order;   /* moves, what comes to lie above others first */
	struct pfs_notices *notices;
	char *why;
	size_t why_size;
};

static inline const char *pfs_change_text(const struct pfs_changing *changing,
					  const struct pfs_bytes *bytes)
{
	return changing->changes->text + bytes->at;
}

static inline bool pfs_is_moving(const struct pfs_changing *changing, uint32_t slot)
{
	return changing->moving[slot / 64] >> slot % 64 & 1;
}

/* Writes to changing->why what is the matter with the node at slot, or with a path; returns
 * code. */
int pfs_change_fail(struct pfs_changing *changing, int code, uint32_t slot, const char *why);
int pfs_change_fail_path(struct pfs_changing *changing, int code, const char *path, size_t len,
			 const char *why);
/* As pfs_change_fail, of what the row asks for. */
int pfs_change_fail_row(struct pfs_changing *changing, int code, size_t row, const char *why);

/* ---- change_find.c ---- */

/* Fills in the slots of rows chosen on a frozen tree, so that it need not be done in the hold. No
 * locks are held. -ENOMEM. */
PFS_MUST_CHECK int pfs_change_find(struct pfs_changing *changing);
/* Fills in the slots, drops rows of nodes that are gone and looks at what has changed since they
 * were chosen; with the locks. -EAGAIN, -EBUSY (change.h). */
PFS_MUST_CHECK int pfs_change_check(struct pfs_changing *changing);
/* The set was chosen before the node at slot came to its directory, and can be chosen again. With
 * the locks. */
bool pfs_change_came_later(const struct pfs_changing *changing, uint32_t slot);

/* ---- change_edits.c: attributes are changed on a copy of what the node has ---- */

/* Takes the copies and changes them, without locks. A node that is gone has none if the set was
 * chosen on a frozen tree, else it is -EAGAIN. */
PFS_MUST_CHECK int pfs_change_prepare_edits(struct pfs_changing *changing);
/* Checks the copies. -EAGAIN, with has_outdated set: others have changed the attributes of some
 * nodes since. pfs_change_renew_edits, which is called without the locks, copies those anew. */
PFS_MUST_CHECK int pfs_change_check_edits(struct pfs_changing *changing);
PFS_MUST_CHECK int pfs_change_renew_edits(struct pfs_changing *changing);
/* Fills in `former`. No locks are held. -ENOMEM; the store's errors. */
PFS_MUST_CHECK int pfs_change_measure(struct pfs_changing *changing);
void pfs_change_apply_edits(struct pfs_changing *changing); /* with the locks */
void pfs_change_finish_edits(struct pfs_changing *changing); /* without */

/* ---- change_tell.c: notices of what the kernel may know ---- */

/* Make, empty and free the list of notices. -ENOMEM. */
PFS_MUST_CHECK int pfs_notices_create(struct pfs_changing *changing);
void pfs_notices_finish(struct pfs_changing *changing);
void pfs_notices_clear(struct pfs_changing *changing);
/* Notes what the kernel may have to forget; called with the locks, before anything changes. */
PFS_MUST_CHECK int pfs_notice_moves(struct pfs_changing *changing);
PFS_MUST_CHECK int pfs_notice_node(struct pfs_changing *changing, uint32_t slot);
void pfs_notices_tell(const struct pfs_changing *changing); /* without locks */
/* Makes the rows of registers show what was changed (fs/content/row.h). No locks are held. */
void pfs_change_rows(struct pfs_changing *changing);

/* ---- change_place.c; with the locks ---- */

/* Fills in `moves` with where every row goes that asks for another place or is to be made, checks
 * that the names there will be free, fills in `order`, and takes the memory that the index of names
 * needs. */
PFS_MUST_CHECK int pfs_change_places(struct pfs_changing *changing);

/* Fills in by_slot and `moving` from moves, and `order`. */
PFS_MUST_CHECK int pfs_change_order(struct pfs_changing *changing);

/* ---- change_make.c ---- */

/* Gets a prime for each row from *n on, and counts *n up. -EAGAIN: more have to be fetched. No
 * locks are needed. */
PFS_MUST_CHECK int pfs_change_primes(struct pfs_changing *changing, uint64_t *primes, size_t *n);

/* Sets *mode to that of the node that a row asks for, its type included. */
PFS_MUST_CHECK int pfs_change_new_mode(struct pfs_changing *changing, mode_t *mode, size_t row);

/* Take slots for all rows, give them back, and make the nodes. The locks are held. */
PFS_MUST_CHECK int pfs_change_take(struct pfs_changing *changing, const uint64_t *primes);
void pfs_change_untake(struct pfs_changing *changing);
void pfs_change_make(struct pfs_changing *changing);

#endif
