/* SPDX-License-Identifier: MIT */
/* fs/attr/attrcolumn.h - attributes as columns: the value of one attribute at many nodes.
 *
 * A column is read from the store when it is first asked for, and kept.  From then on every change of
 * a node's attributes is noted beside it, as long as there are not too many; then all columns are
 * forgotten, and read anew when they are wanted. Of a node that changes, the set that a snapshot reads is kept, too.
 *
 * Lock order: the content lock, tree->lock, as everywhere. */
#ifndef PFS_FS_ATTR_ATTRCOLUMN_H
#define PFS_FS_ATTR_ATTRCOLUMN_H

#include "fs/tree/tree.h"
#include "meta/store.h"

struct pfs_attr_value {
	bool is_set;
	enum pfs_attr_type type;
	union {
		int64_t integer;
		double real;
		const char *text;
	};
	size_t text_len;
};

/* A name that nobody but this program sets: a saved query's. */
bool pfs_attr_is_ours(const char *name, size_t len);

/* The names that attributes have or have had, without "user.", the oldest first; `type` is that of an
 * imported column, TEXT for others.  fn is called with the content lock held. */
PFS_MUST_CHECK int pfs_attr_names(struct pfs_tree *tree,
				  int (*fn)(void *arg, const char *name, size_t name_len,
					    enum pfs_attr_type type),
				  void *arg);
/* Grows with them. */
uint64_t pfs_attr_names_count(const struct pfs_tree *tree);

struct pfs_attr_reader;

/* Reads the column if it is not there.  No lock held.  *out NULL on failure.  -ENOMEM, and what the
 * store says. */
PFS_MUST_CHECK int pfs_attr_reader_open(struct pfs_attr_reader **out, struct pfs_tree *tree,
					const char *name, size_t name_len);
void pfs_attr_reader_close(struct pfs_attr_reader *reader); /* NULL is allowed; any lock */
/* Another of the same column, whatever locks are held.  -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_reader_copy(struct pfs_attr_reader **out,
					const struct pfs_attr_reader *reader);

/* out[i] = the value at slots[i], valid until the next call or close.  Between pfs_scan_lock and
 * pfs_scan_unlock.  -EAGAIN: the column was forgotten, open it anew; -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_read(struct pfs_attr_reader *reader, struct pfs_attr_value *out,
				 const uint32_t *slots, size_t n);

/* ---- of a frozen tree (fs/tree/frozen.h), as they were when it was frozen ---- */

struct pfs_attr_wish {
	const char *name; /* without "user." */
	size_t len;
};

/* Makes ready what is going to be read of the frozen tree, by pfs_attr_reader_open: no other column can be. No lock
 * held; as that. */
PFS_MUST_CHECK int pfs_attrs_frozen_open(struct pfs_tree *frozen, struct pfs_tree *live,
					 const struct pfs_attr_wish *wishes, size_t n);
/* They are what the snapshot of that number has; in the hold of the live tree that it was taken in. -EAGAIN: a column was
 * forgotten, begin anew. */
PFS_MUST_CHECK int pfs_attrs_frozen_begin(struct pfs_tree *frozen, uint64_t number);
void pfs_attrs_frozen_close(struct pfs_tree *frozen);

/* ---- for xattr.c, under the content lock ---- */

struct pfs_attr_columns;
PFS_MUST_CHECK int pfs_attr_columns_create(struct pfs_attr_columns **out, struct pfs_tree *tree);
void pfs_attr_columns_destroy(struct pfs_attr_columns *columns);
/* Makes sure that note cannot fail for a new name.  -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_columns_name(struct pfs_attr_columns *columns, const char *name,
					 size_t name_len);
struct pfs_value;
/* The node's attributes are these now; with tree->lock held for writing.  Cannot fail: without memory
 * the columns are forgotten. */
void pfs_attr_columns_note(struct pfs_attr_columns *columns, uint64_t prime,
			   struct pfs_value *set);
/* Frees what was forgotten; no lock. */
void pfs_attr_columns_settle(struct pfs_attr_columns *columns);

#endif
