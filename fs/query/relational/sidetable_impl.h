/* SPDX-License-Identifier: MIT */
/* fs/query/relational/sidetable_impl.h - inside of fs/query/relational/sidetable.h: sidecache.c
 * (which there are), sidetable.c (how they are made and follow), sideindex.c (rows found by a
 * value). */
#ifndef PFS_FS_QUERY_RELATIONAL_SIDETABLE_IMPL_H
#define PFS_FS_QUERY_RELATIONAL_SIDETABLE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/nodes/dictionary.h"
#include "fs/query/relational/sidetable.h"

struct pfs_side_index;

struct pfs_side_entry {
	struct pfs_side_table table; /* the first member */
	uint64_t version;	     /* of all side tables */
	unsigned users;
	_Atomic bool is_lost;		   /* what has changed since that version is not known */
	const struct pfs_account *account; /* while it is being made */
	struct pfs_query *query;	   /* likewise */
	struct pfs_side_entry *next;
	/* Arrays with an element for each column; those of texts are codes. */
	struct pfs_dictionary_builder *dictionaries;
	struct pfs_table_column *columns;
	void **data;
	uint64_t **nulls;
	bool *has_value; /* it has had one, which says of what class it is */
	int64_t *numbers; /* of the rows, which are in their order */
	uint64_t *live;	  /* NULL: all are */
	size_t n_dead;
	size_t n_columns, columns_capacity, n_rows, capacity;
	struct pfs_side_index *
		*indexes; /* by column; NULL: none yet; protected by index_lock, and the array */
	pthread_mutex_t index_lock;
	size_t behind; /* the row behind the one that changed last */
	uint64_t n_followed; /* rows that have changed */
};

struct pfs_sql_side;

/* by_copy: from SQLite's copy, which is filled; else from the store, which -EOPNOTSUPP says is not
 * enough. */
PFS_MUST_CHECK int pfs_side_entry_make(struct pfs_side_entry **out, struct pfs_query *query,
				       const struct pfs_sql_side *side, bool by_copy);
/* The entry, which nobody else has, becomes that of the connection's version, at what has changed
 * since.  After an error it is to be freed. */
PFS_MUST_CHECK int pfs_side_entry_follow(struct pfs_side_entry *entry, struct pfs_query *query);
void pfs_side_entry_free(struct pfs_side_entry *entry);

/* ---- sideindex.c ---- */

/* Sets *key to that of a row in the column's index.  False: there is no index, or the value is
 * NULL. */
bool pfs_side_index_key(const struct pfs_side_entry *entry, uint64_t *key, size_t column,
			size_t row);
/* The row is new, or has another key than before, or none.  Nobody else has the entry. */
void pfs_side_index_note(struct pfs_side_entry *entry, size_t column, uint32_t row);
void pfs_side_indexes_drop(struct pfs_side_entry *entry);

static inline bool pfs_side_is_live(const struct pfs_side_entry *entry, size_t row)
{
	return !entry->live || entry->live[row / 64] >> row % 64 & 1;
}

static inline bool pfs_side_is_null(const struct pfs_side_entry *entry, size_t i, size_t row)
{
	return entry->nulls[i][row / 64] >> row % 64 & 1;
}

#endif
