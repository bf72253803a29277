/* SPDX-License-Identifier: MIT */
/* fs/attr/xattr_impl.h - inside of extended attributes: attrs.c (the sets of all nodes), xattr.c
 * (one at a time), attredit.c (those of many nodes at once, for change.c). */
#ifndef PFS_FS_ATTR_XATTR_IMPL_H
#define PFS_FS_ATTR_XATTR_IMPL_H

#include "fs/attr/attrcolumn.h"
#include "fs/attr/attrset.h"

#define PFS_ATTR_SET_LIMIT ((size_t)1 << 20) /* bytes of all attributes of a node, set one by one */

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
};

/* Whether a set is not too large to be set so, or to be listed. */
bool pfs_attr_set_fits(const struct pfs_value *set);

/* The type of a new value: that of the column, if the text is what the number prints as. */
enum pfs_attr_type pfs_attr_type_of(const struct pfs_attrs *attrs, const struct pfs_attr *attr);

/* What the image has of the node.  -ESTALE.  No lock. */
PFS_MUST_CHECK int pfs_attr_look(struct pfs_tree *tree, uint8_t *flags, mode_t *mode, uint64_t ino);

/* What the node has now, for a change, and whether it is flagged as having any.  keep: see records.h.
 * -ESTALE, -EPERM (no file or directory).  No locks. */
PFS_MUST_CHECK int pfs_attr_base(struct pfs_tree *tree, struct pfs_value **out, bool *flagged,
				 uint64_t ino, bool keep);

/* The record into which a new set can be put, before being what it has now; -EAGAIN: it is not any
 * more.  With both locks. */
PFS_MUST_CHECK int pfs_attr_record(struct pfs_tree *tree, struct pfs_record **out, uint64_t ino,
				   const struct pfs_value *before, bool flagged);

/* Puts it there, taking over the reference.  With both locks. */
void pfs_attr_put(struct pfs_tree *tree, struct pfs_record *record, uint32_t slot, uint64_t ino,
		  struct pfs_value *set, struct pfs_time now);

#endif
