/* SPDX-License-Identifier: MIT */
/* fs/attr/attrfile.h - for the files of fs/attr/attrcolumn.h: columns of attributes in the image's
 * file, those that somebody has asked for, so that they need not be read of the store again.
 *
 * A column is its name, each value that it has once, and for each slot that has one which: as the
 * store had them when the file was written.  It holds as long as no attribute has been committed
 * since.
 *
 * Locks: none is held. */
#ifndef PFS_FS_ATTR_ATTRFILE_H
#define PFS_FS_ATTR_ATTRFILE_H

#include "base/checked.h"
#include "fs/attr/attrcolumn.h"

/* Holds a column of attributes, which attrcolumn.c keeps, or pfs_attrfile_free frees. */
struct pfs_attrfile_column {
	uint32_t *place; /* by slot: 1 + the value's; 0: none */
	uint32_t end;	 /* slots that place has */
	struct pfs_attr_value *values;
	size_t n;
	char *texts; /* that values point into */
};

/* Gets the column of that name.  -ENOENT: the file has none, or another one than the store, or is
 * damaged; -ENOMEM. */
PFS_MUST_CHECK int pfs_attrfile_read(struct pfs_tree *tree, struct pfs_attrfile_column *out,
				     const char *name, size_t name_len);
void pfs_attrfile_free(struct pfs_attrfile_column *column);

/* As they lie there: one column after the other, each a head, the name, values, their texts, and
 * pairs of slots and values.  Each of these begins at a multiple of 8. */
struct pfs_attrfile_head {
	uint64_t size; /* of all of the column */
	uint64_t n_pairs, texts_size;
	uint32_t n_values, name_len;
};

struct pfs_attrfile_value {
	uint64_t is; /* the number's bits, or where the text begins */
	uint32_t text_len;
	uint32_t type; /* enum pfs_attr_type */
};

struct pfs_attrfile_pair {
	uint32_t slot, value;
};

static inline uint64_t pfs_attrfile_round_up(uint64_t size)
{
	return pfs_div_round_up(size, 8) * 8;
}

/* Gets the column's head and name that begin at *at, which moves on.  -ENOENT: there are no
 * more, or they are damaged; -ENOMEM. */
PFS_MUST_CHECK int pfs_attrfile_next(const struct pfs_tree *tree, struct pfs_attrfile_head *head,
				     char name[PFS_NAME_MAX], uint64_t *at);

/* Counts the values that the file's columns have otherwise than `rows`, the same store's tree
 * without the file; a column that cannot be read, or what follows the last one that can, counts as
 * one.  None of a file that is not of the store's last group: nobody reads its columns.  -ENOMEM,
 * and what the store returns. */
PFS_MUST_CHECK int pfs_attrfile_compare(struct pfs_tree *tree, struct pfs_tree *rows,
					uint64_t *different);

/* Has the columns that are there, and those that the image's file had, written with the image from
 * now on. */
PFS_MUST_CHECK int pfs_attrfile_create(struct pfs_tree *tree);

#endif
