/* SPDX-License-Identifier: MIT */
/* fs/attr/xattr_impl.h - what the files of extended attributes share: attrs.c (the sets of all
 * nodes), xattr.c (one attribute at a time), attredit.c (those of many nodes at once, for
 * fs/change/change.c). */
#ifndef PFS_FS_ATTR_XATTR_IMPL_H
#define PFS_FS_ATTR_XATTR_IMPL_H

#include <stdatomic.h>

#include "fs/attr/attrcolumn.h"
#include "fs/attr/attrnames.h"
#include "fs/attr/attrset.h"

/* The most bytes that all attributes of a node may have that are set one by one. */
#define PFS_ATTR_SET_LIMIT ((size_t)1 << 20)

struct pfs_attr_type_of_name { /* a name that was imported with a type */
	char *name;
	size_t name_len;
	enum pfs_attr_type type;
};

struct pfs_attrs {
	struct pfs_records *sets;
	struct pfs_attr_type_of_name *columns; /* in order of names */
	size_t n_columns, capacity;
	struct pfs_attr_columns *by_name;
	struct pfs_attr_name_list names; /* protected by the content lock */
	_Atomic bool is_written; /* the store's have changed since it was opened */
};

/* Returns true if a set is small enough to be set, or listed, attribute by attribute. */
bool pfs_attr_set_fits(const struct pfs_value *set);

/* Returns the type of a new value: the column's, if the text is what the number prints as. */
enum pfs_attr_type pfs_attr_type_of(const struct pfs_attrs *attrs, const struct pfs_attr *attr);

/* Gets what the image has of the node. No lock is held. -ESTALE. */
PFS_MUST_CHECK int pfs_attr_look(struct pfs_tree *tree, uint8_t *flags, mode_t *mode, uint64_t ino);

/* Returns 0 if users may set attributes of the node. No lock is held. -ESTALE; -EPERM: it is no
 * file and no directory. */
PFS_MUST_CHECK int pfs_attr_allowed(struct pfs_tree *tree, uint64_t ino);

/* Gets the set that the node has now, for a change of it, and whether the node is flagged as having
 * any. A set that is flagged is held, if that is the purpose (records.h). No locks are held.
 * -ESTALE. */
PFS_MUST_CHECK int pfs_attr_base(struct pfs_tree *tree, struct pfs_value **out, bool *flagged,
				 uint64_t ino, enum pfs_records_for purpose);

/* Gets the record that a new set can be put into, if the node still has the set `before`. Both
 * locks are held. -EAGAIN: it has another one by now. */
PFS_MUST_CHECK int pfs_attr_record(struct pfs_tree *tree, struct pfs_record **out, uint64_t ino,
				   const struct pfs_value *before, bool flagged);

/* Puts the set there and takes over the reference. Both locks are held. */
void pfs_attr_put(struct pfs_tree *tree, struct pfs_record *record, uint32_t slot, uint64_t ino,
		  struct pfs_value *set, struct pfs_time now);

#endif
