/* SPDX-License-Identifier: MIT */
/* fs/nodes/fields.h - every column of the table `nodes`, written once.
 *
 * A field is a value that every node has, or has none of.  PFS_FIELDS says of each what there is to
 * say; whatever goes by fields takes it from there: the enum, the table's declaration, scans,
 * orders, column indexes, the relational operators, snapshots, statements that change nodes, plans
 * and help. Nobody switches over enum pfs_field: where the value lies, or what makes it (enum
 * pfs_field_source), decides what is done with it, and the compiler tells which source a switch
 * lacks.
 *
 * To add a field is to add its line; docs/design/columns.md has an example. */
#ifndef PFS_FS_NODES_FIELDS_H
#define PFS_FS_NODES_FIELDS_H

#include "fs/image/watch.h"

/* FIELD(id, name, type, kind, source, made of, operators, values, order, index, viewers, setter) in
 * the order of SELECT *:
 *
 * name, type   as SQLite has them.  Where it knows that there is no NULL, min() is the first row of
 * an order. kind         of the values: PFS_NODE_... source       PFS_SOURCE_...; of an array also
 * its name in struct pfs_image, of a total that in struct pfs_totals made of      the columns of
 * the image that the value follows from (fs/image/watch.h) operators    how they get the column:
 * PFS_OPERAND_... values       how many different ones there are: PFS_VALUES_... order ORDERED: the
 * image can give nodes in its order; else UNORDERED index        INDEXED: it can have a column
 * index; else UNINDEXED viewers      ALIKE: all see the same value; OWN: each viewer has one of his
 * own, that of what he sees setter       which of fs/query/change.c's takes a value for it: never,
 * or set_...
 *
 * ALIAS(name, type, kind, id) is a column that is shown from the field `id`. */
/* clang-format off */
#define PFS_SHOWN_FIELDS(FIELD, ALIAS)                                                             \
	FIELD(PATH, "path", "TEXT NOT NULL", BYTES, MADE(PATH),                                    \
	      PFS_COLUMN_PARENT | PFS_COLUMN_NAME, LATE, ALL, ORDERED, UNINDEXED, ALIKE, path)     \
	FIELD(NAME, "name", "TEXT NOT NULL", BYTES, MADE(NAME),                                    \
	      PFS_COLUMN_NAME, LENT, MANY, ORDERED, INDEXED, ALIKE, name)                          \
	FIELD(EXT, "ext", "TEXT", BYTES, MADE(EXT), /* what follows the last dot that is not first */ \
	      PFS_COLUMN_NAME, MADE, FEW, ORDERED, UNINDEXED, ALIKE, never)                        \
	FIELD(INO, "ino", "INTEGER NOT NULL", INTEGER, ARRAY(INO, prime),                          \
	      PFS_COLUMN_PRIME, LENT, ALL, ORDERED, INDEXED, ALIKE, never)                         \
	FIELD(PARENT, "parent", "INTEGER", INTEGER, MADE(PARENT), /* its ino; none at the root */  \
	      PFS_COLUMN_PARENT, LENT, MANY, ORDERED, UNINDEXED, ALIKE, parent)                    \
	FIELD(DEPTH, "depth", "INTEGER NOT NULL", INTEGER, MADE(DEPTH),                            \
	      PFS_COLUMN_PARENT, MADE, FEW, ORDERED, UNINDEXED, ALIKE, never)                      \
	FIELD(TYPE, "type", "TEXT NOT NULL", TYPE, ARRAY(TYPE, mode), /* find's letter */          \
	      PFS_COLUMN_MODE, LENT, FEW, ORDERED, UNINDEXED, ALIKE, type)                         \
	FIELD(MODE, "mode", "INTEGER NOT NULL", INTEGER, ARRAY(U16, mode), /* st_mode */           \
	      PFS_COLUMN_MODE, LENT, FEW, ORDERED, UNINDEXED, ALIKE, mode)                         \
	FIELD(UID, "uid", "INTEGER NOT NULL", INTEGER, ARRAY(U32, uid),                            \
	      PFS_COLUMN_UID, LENT, FEW, ORDERED, INDEXED, ALIKE, uid)                             \
	FIELD(GID, "gid", "INTEGER NOT NULL", INTEGER, ARRAY(U32, gid),                            \
	      PFS_COLUMN_GID, LENT, FEW, ORDERED, INDEXED, ALIKE, gid)                             \
	ALIAS("owner", "TEXT", OWNER, UID)                                                         \
	ALIAS("owner_group", "TEXT", GROUP, GID)                                                   \
	FIELD(SIZE, "size", "INTEGER NOT NULL", INTEGER, ARRAY(I64, size),                         \
	      PFS_COLUMN_SIZE, LENT, MANY, ORDERED, INDEXED, ALIKE, size)                          \
	FIELD(BLOCKS, "blocks", "INTEGER NOT NULL", INTEGER, ARRAY(I64, blocks),                   \
	      PFS_COLUMN_BLOCKS, LENT, FEW, ORDERED, INDEXED, ALIKE, never)                        \
	FIELD(NLINK, "nlink", "INTEGER NOT NULL", INTEGER, ARRAY(U32, links),                      \
	      PFS_COLUMN_LINKS, LENT, FEW, ORDERED, UNINDEXED, ALIKE, never)                       \
	FIELD(LINK, "link", "INTEGER", INTEGER, MADE(LINK), /* one of all names of a source file; or none */ \
	      PFS_COLUMN_FLAGS, ABSENT, FEW, ORDERED, UNINDEXED, OWN, never)                       \
	FIELD(LINKS, "links", "INTEGER NOT NULL", INTEGER, MADE(LINKS), /* how many names the file has */ \
	      PFS_COLUMN_FLAGS | PFS_COLUMN_LINKS, ABSENT, FEW, ORDERED, UNINDEXED, OWN, never)    \
	FIELD(TARGET, "target", "TEXT", BYTES, MADE(TARGET), /* of a symlink */                    \
	      PFS_COLUMN_MODE, LATE, FEW, ORDERED, UNINDEXED, ALIKE, target)                       \
	FIELD(MTIME, "mtime", "INTEGER NOT NULL", INTEGER, ARRAY(TIME, mtime),                     \
	      PFS_COLUMN_MTIME, LENT, MANY, ORDERED, INDEXED, ALIKE, mtime)                        \
	FIELD(ATIME, "atime", "INTEGER NOT NULL", INTEGER, ARRAY(TIME, atime),                     \
	      PFS_COLUMN_ATIME, LENT, FEW, ORDERED, INDEXED, ALIKE, atime)                         \
	FIELD(CTIME, "ctime", "INTEGER NOT NULL", INTEGER, ARRAY(TIME, ctime),                     \
	      PFS_COLUMN_CTIME, LENT, FEW, ORDERED, INDEXED, ALIKE, never)                         \
	FIELD(SUBTREE_COUNT, "subtree_count", "INTEGER NOT NULL", INTEGER, TOTAL(TOTAL, count),    \
	      PFS_COLUMNS_TOTALLED, ABSENT, FEW, ORDERED, UNINDEXED, OWN, never)                   \
	FIELD(SUBTREE_SIZE, "subtree_size", "INTEGER NOT NULL", INTEGER, TOTAL(TOTAL, size),       \
	      PFS_COLUMNS_TOTALLED, ABSENT, FEW, ORDERED, UNINDEXED, OWN, never)                   \
	FIELD(SUBTREE_BLOCKS, "subtree_blocks", "INTEGER NOT NULL", INTEGER, TOTAL(TOTAL, blocks), \
	      PFS_COLUMNS_TOTALLED, ABSENT, FEW, ORDERED, UNINDEXED, OWN, never)                   \
	FIELD(SUBTREE_MTIME, "subtree_mtime", "INTEGER NOT NULL", INTEGER, TOTAL(TOTAL_TIME, mtime), \
	      PFS_COLUMNS_TOTALLED, ABSENT, FEW, ORDERED, UNINDEXED, OWN, never)
/* HIDDEN: shown only to those who ask for them by name. */
#define PFS_HIDDEN_FIELDS(FIELD)                                                                   \
	FIELD(RDEV, "rdev", "INTEGER HIDDEN", INTEGER, MADE(RDEV),                                 \
	      PFS_COLUMN_MODE, ABSENT, FEW, ORDERED, UNINDEXED, ALIKE, never)                      \
	FIELD(COMPARED, "compared", "INTEGER HIDDEN", INTEGER, MADE(COMPARED), /* with its source, last */ \
	      PFS_COLUMN_PARENT | PFS_COLUMN_MODE, ABSENT, FEW, UNORDERED, UNINDEXED, ALIKE, never) \
	FIELD(READDIR, "readdir", "INTEGER HIDDEN", INTEGER, MADE(READDIR), /* an order of siblings */ \
	      PFS_COLUMN_PARENT | PFS_COLUMN_NAME, ABSENT, FEW, ORDERED, UNINDEXED, ALIKE, never)  \
	FIELD(PREORDER, "preorder", "TEXT HIDDEN NOT NULL", BYTES, MADE(PREORDER), /* an order of all: */ \
	      /* the path with NUL for each slash, whose bytes compare component-wise */           \
	      PFS_COLUMN_PARENT | PFS_COLUMN_NAME, ABSENT, ALL, ORDERED, UNINDEXED, ALIKE, never)
/* clang-format on */
#define PFS_FIELDS(FIELD, ALIAS) PFS_SHOWN_FIELDS(FIELD, ALIAS) PFS_HIDDEN_FIELDS(FIELD)

/* The columns that totals are made of. */
#define PFS_COLUMNS_TOTALLED (PFS_COLUMN_SIZE | PFS_COLUMN_BLOCKS | PFS_COLUMN_MTIME)

#define PFS_NO_ALIAS(name, type, kind, id)

enum pfs_field {
	PFS_FIELD_OF_NONE, /* a test that looks at no field */
#define PFS_FIELD_ID(id, ...) PFS_FIELD_##id,
	PFS_FIELDS(PFS_FIELD_ID, PFS_NO_ALIAS)
#undef PFS_FIELD_ID
	PFS_FIELD_COUNT
};

/* The value of an integer field that has none. */
#define PFS_FIELD_NONE INT64_MIN

enum pfs_node_kind {
	PFS_NODE_INTEGER,
	PFS_NODE_BYTES,
	PFS_NODE_TYPE,	/* a letter */
	PFS_NODE_OWNER, /* the name of the user that the field is the number of */
	PFS_NODE_GROUP,
	PFS_NODE_ATTR, /* no field: an attribute, by its name */
};

/* Says where a field's value lies, or what makes it. Times are nanoseconds, clamped to 64 bits. */
enum pfs_field_source {
	PFS_SOURCE_NONE, /* no field */
	PFS_SOURCE_U16,	 /* arrays of the image */
	PFS_SOURCE_U32,
	PFS_SOURCE_I64, /* never negative */
	PFS_SOURCE_TIME,
	PFS_SOURCE_INO,	   /* primes, which the map of slots knows */
	PFS_SOURCE_TYPE,   /* of the mode */
	PFS_SOURCE_PARENT, /* from here on each is made as its name says */
	PFS_SOURCE_DEPTH,
	PFS_SOURCE_LINK,
	PFS_SOURCE_LINKS,
	PFS_SOURCE_RDEV,
	PFS_SOURCE_COMPARED, /* a time, or none; scans are not asked for those that have a certain
				one */
	PFS_SOURCE_READDIR,
	PFS_SOURCE_TOTAL, /* of the subtree */
	PFS_SOURCE_TOTAL_TIME,
	PFS_SOURCE_NAME, /* bytes */
	PFS_SOURCE_EXT,
	PFS_SOURCE_TARGET,
	PFS_SOURCE_PATH,
	PFS_SOURCE_PREORDER,
};

/* Says how the relational operators get a column (fs/nodes/columns.h). */
enum pfs_operand {
	PFS_OPERAND_ABSENT, /* they have it not: SQLite runs the statement */
	PFS_OPERAND_LENT,   /* an array of the image, where it lies */
	PFS_OPERAND_MADE,   /* an array that is made when it is wanted, and kept */
	PFS_OPERAND_LATE,   /* not computed with: made of the rows that the answer has */
};

/* Says how many different values there are, for guesses. */
enum pfs_field_values {
	PFS_VALUES_FEW,
	PFS_VALUES_MANY, /* one for some ten nodes */
	PFS_VALUES_ALL,	 /* each node has another one */
};

struct pfs_field_info {
	const char *name;
	enum pfs_node_kind kind;
	enum pfs_field_source source;
	size_t place; /* arrays: of the pointer in struct pfs_image; totals: in struct pfs_totals */
	unsigned made_of;
	enum pfs_operand operand;
	enum pfs_field_values values;
	bool is_array, is_ordered, is_indexed, is_viewers;
	const char *index_name; /* "index of size" */
};

/* Describes each field, by enum pfs_field. */
extern const struct pfs_field_info pfs_fields[PFS_FIELD_COUNT];

/* Returns true if the field has bytes, and no integer. */
static inline bool pfs_field_is_bytes(enum pfs_field field)
{
	return pfs_fields[field].kind == PFS_NODE_BYTES;
}

/* Returns true if the field's bytes are made from the names above the node. */
static inline bool pfs_field_is_path(enum pfs_field field)
{
	return pfs_fields[field].source == PFS_SOURCE_PATH ||
	       pfs_fields[field].source == PFS_SOURCE_PREORDER;
}

static inline bool pfs_field_is_total(enum pfs_field field)
{
	return pfs_fields[field].source == PFS_SOURCE_TOTAL ||
	       pfs_fields[field].source == PFS_SOURCE_TOTAL_TIME;
}

static inline bool pfs_field_is_time(enum pfs_field field)
{
	return pfs_fields[field].source == PFS_SOURCE_TIME ||
	       pfs_fields[field].source == PFS_SOURCE_COMPARED ||
	       pfs_fields[field].source == PFS_SOURCE_TOTAL_TIME;
}

/* Returns true if each viewer has a value of his own, that of what he sees. */
static inline bool pfs_field_is_viewers(enum pfs_field field)
{
	return pfs_fields[field].is_viewers;
}

/* Returns the image's array that the field lies in; NULL if it lies in none. */
struct pfs_image;
const void *pfs_field_array(const struct pfs_image *image, enum pfs_field field);

/* Returns the field of that name, whatever its capitals, or PFS_FIELD_OF_NONE. */
enum pfs_field pfs_field_named(const char *name, size_t len);

#endif
