/* SPDX-License-Identifier: MIT */
/* fs/nodes/columns_impl.h - what the files behind columns.h share: columns.c (making columns, and
 * following the tree) and columns_show.c (lending them). */
#ifndef PFS_FS_NODES_COLUMNS_IMPL_H
#define PFS_FS_NODES_COLUMNS_IMPL_H

#include <pthread.h>

#include "base/reserve.h"
#include "fs/attr/attrcolumn.h"
#include "fs/image/feed.h"
#include "fs/nodes/columns.h"
#include "fs/nodes/dictionary.h"
#include "fs/nodes/scan_impl.h"

#define PFS_DERIVED_MAX 64

enum pfs_derived_kind { PFS_DERIVED_EXT, PFS_DERIVED_DEPTH, PFS_DERIVED_ATTR };

struct pfs_derived {
	enum pfs_derived_kind kind;
	char *attr; /* ATTR: its name */
	size_t attr_len;
	enum pfs_attr_type type;
	struct pfs_attr_reader *reader; /* protected by the columns' lock, as all below is */
	bool ready;
	bool is_mixed;			/* ATTR: some value is of another type */
	struct pfs_feed_follower
		follower; /* what comes before its cursor is in the column, once it is ready */
	uint64_t since;	  /* while it is made: blocks that have changed since are read; 0: all */
	uint64_t access;		/* DEPTH: the image's, for which it holds */
	uint32_t end;			/* slots that it has */
	struct pfs_reserve data, nulls;
	struct pfs_dictionary_builder dictionary;
	/* ATTR: 1 + the text's code, by the number that the reader gives to equal values (`same`);
	 * 0: not known yet. */
	uint32_t *known;
	size_t n_known, known_capacity;
	struct pfs_reserve blocks; /* of both stamps */
	struct pfs_stamps data_stamps, nulls_stamps;
};

struct pfs_derived_columns {
	pthread_mutex_t making; /* one at a time; taken before tree->lock */
	pthread_mutex_t lock;
	/* Changed with tree->lock held for reading and the lock. */
	struct pfs_derived *columns[PFS_DERIVED_MAX];
	size_t n;
	struct pfs_heap names; /* as they were lent last; protected by the lock */
	uint64_t blocks_read;  /* by whoever made a column, or fell behind */
};

/* Returns true, and the kind, if a column is made for the wish; false: the image has it. */
static inline bool pfs_derived_kind_of(enum pfs_derived_kind *kind,
				       const struct pfs_column_wish *wish)
{
	enum pfs_field_source source = pfs_fields[wish->field].source;

	*kind = PFS_DERIVED_DEPTH;
	if (wish->attr)
		*kind = PFS_DERIVED_ATTR;
	else if (source == PFS_SOURCE_EXT)
		*kind = PFS_DERIVED_EXT;
	return wish->attr || source == PFS_SOURCE_EXT || source == PFS_SOURCE_DEPTH;
}

/* Returns the bytes of an element. */
static inline uint8_t pfs_derived_width(const struct pfs_derived *column)
{
	return column->kind == PFS_DERIVED_ATTR && column->type != PFS_ATTR_TEXT ? sizeof(int64_t)
										 : sizeof(uint32_t);
}

/* ---- columns_fill.c; the tree is held, and the columns' lock, or the column is not ready ---- */

/* Makes room for the slots; none that it did not have has a value yet. -ENOMEM. */
PFS_MUST_CHECK int pfs_derived_reach(struct pfs_derived *column, uint32_t end);
/* Reads the slots' values. -ENOMEM; -EIO from the store. */
PFS_MUST_CHECK int pfs_derived_fill(const struct pfs_tree *tree, struct pfs_derived *column,
				    const uint32_t *slots, size_t n);
/* Reads the slots from..*to of a column that is not ready, or the first of them, as many as are to
 * be read in one hold: up to *to then. It has those before them, and `from` is a multiple of 64; so
 * is *to, if it is not the caller's. */
PFS_MUST_CHECK int pfs_derived_fill_range(struct pfs_tree *tree, struct pfs_derived *column,
					  uint32_t from, uint32_t *to);

/* Gets the column as it is at the tree's epoch; the tree is held. Errors as of pfs_columns_get. */
PFS_MUST_CHECK int pfs_derived_get(struct pfs_tree *tree, struct pfs_derived **out,
				   enum pfs_derived_kind kind, const struct pfs_column_wish *wish);

#endif
