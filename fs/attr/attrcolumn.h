/* SPDX-License-Identifier: MIT */
/* fs/attr/attrcolumn.h - attributes as columns: the value of one attribute at many nodes.
 *
 * A column is read from the store when it is first asked for, and kept. From then on every change
 * of a node's attributes is noted beside it. When there are too many notes, all columns are
 * forgotten, and read anew when they are wanted. For a snapshot that reads them, a node's earlier
 * set is kept as well.
 *
 * Locks: the content lock comes before tree->lock, as everywhere; each function says what its
 * caller holds. */
#ifndef PFS_FS_ATTR_ATTRCOLUMN_H
#define PFS_FS_ATTR_ATTRCOLUMN_H

#include "fs/tree/tree.h"
#include "meta/store.h"

struct pfs_attr_value {
	bool is_set;
	uint32_t same; /* values that a reader has given the same number are the same; 0: it has
			  none */
	enum pfs_attr_type type;
	union {
		int64_t integer;
		double real;
		const char *text;
	};
	size_t text_len;
};

/* Returns true if nobody but this program sets the attribute: a saved query's. */
bool pfs_attr_is_ours(const char *name, size_t len);

/* Calls fn for each name that attributes have or have had, without "user.", the oldest first, until
 * it returns non-zero, which is returned. `type` is that of an imported column, TEXT for others.
 * The content lock is held meanwhile. */
PFS_MUST_CHECK int pfs_attr_names(struct pfs_tree *tree,
				  int (*fn)(void *arg, const char *name, size_t name_len,
					    enum pfs_attr_type type),
				  void *arg);
/* Returns how many names there are; it only grows. */
uint64_t pfs_attr_names_count(const struct pfs_tree *tree);

struct pfs_attr_reader;

/* Opens a reader, which the caller closes, and reads the column if it is not there. No lock is
 * held. *out is NULL on failure. -ENOMEM, and what the store returns. */
PFS_MUST_CHECK int pfs_attr_reader_open(struct pfs_attr_reader **out, struct pfs_tree *tree,
					const char *name, size_t name_len);
void pfs_attr_reader_close(struct pfs_attr_reader *reader); /* NULL is allowed; any lock */
/* Opens another reader of the same column, whatever locks are held. -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_reader_copy(struct pfs_attr_reader **out,
					const struct pfs_attr_reader *reader);

/* Sets out[i] to the value at slots[i], valid until the next call or close. To be called between
 * pfs_scan_lock and pfs_scan_unlock. -EAGAIN: the column was forgotten, open it anew; -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_read(struct pfs_attr_reader *reader, struct pfs_attr_value *out,
				 const uint32_t *slots, size_t n);

/* ---- of a frozen tree (fs/tree/frozen.h), as they were when it was frozen ---- */

struct pfs_attr_wish {
	const char *name; /* without "user." */
	size_t len;
};

/* Makes the columns ready that pfs_attr_reader_open will open of the frozen tree; it can open no
 * others. No lock is held. Errors as of pfs_attr_reader_open. */
PFS_MUST_CHECK int pfs_attrs_frozen_open(struct pfs_tree *frozen, struct pfs_tree *live,
					 const struct pfs_attr_wish *wishes, size_t n);
/* Makes them those of the snapshot of that number. To be called in the hold of the live tree in
 * which the snapshot was taken. -EAGAIN: a column was forgotten, begin anew. */
PFS_MUST_CHECK int pfs_attrs_frozen_begin(struct pfs_tree *frozen, uint64_t number);
void pfs_attrs_frozen_close(struct pfs_tree *frozen);
/* Returns true if attributes of the node may have changed since then, one of which can be read of
 * the frozen tree. The live tree is held. */
bool pfs_attrs_frozen_changed(const struct pfs_tree *frozen, uint64_t prime);

/* ---- for xattr.c, under the content lock ---- */

struct pfs_attr_columns;
/* Makes the table of columns, which is empty. -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_columns_create(struct pfs_attr_columns **out, struct pfs_tree *tree);
void pfs_attr_columns_destroy(struct pfs_attr_columns *columns);
struct pfs_value;
/* Notes that the node's attributes are these now; tree->lock is held for writing. It cannot fail:
 * if there is no memory, the columns are forgotten. */
void pfs_attr_columns_note(struct pfs_attr_columns *columns, uint64_t prime,
			   struct pfs_value *set);
/* Calls fn for the name of each column that has been read and is kept, until it returns non-zero,
 * which is returned. No lock is held, meanwhile either. */
PFS_MUST_CHECK int pfs_attr_columns_asked(struct pfs_tree *tree,
					  int (*fn)(void *arg, const char *name, size_t name_len),
					  void *arg);
/* Frees what was forgotten. No lock is held. */
void pfs_attr_columns_settle(struct pfs_attr_columns *columns);

#endif
