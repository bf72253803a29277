/* SPDX-License-Identifier: MIT */
/* meta/store.h - the durable truth: nodes, content, attributes and tables in one file.
 *
 * A store knows no tree, no paths and no codes; it keeps records by prime.  It is one SQLite file
 * (docs/FORMAT.md), but nothing of SQL shows here, so that another store can stand beside it.
 *
 * Threads: reading functions from any number of threads (each takes a connection of a pool).
 * Writing functions belong to one thread at a time, between pfs_store_begin and
 * pfs_store_commit/rollback; reads see the last committed group.
 *
 * Errors everywhere: 0 or a negative errno, logged once here.  -EIO, -ENOSPC, -ENOMEM and -EROFS
 * as SQLite and the disk report them, -EUCLEAN for a damaged file; others are named where they
 * occur. */
#ifndef PFS_META_STORE_H
#define PFS_META_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "meta/format.h"

struct pfs_store;

#define PFS_CHUNK_SIZE   65536 /* bytes of content in one chunk; the last may be shorter */
#define PFS_NAME_MAX     255
#define PFS_TARGET_MAX   4095
#define PFS_ATTR_NAME_MAX  255   /* without "user." */
#define PFS_ATTR_COLUMNS_MAX 1900 /* attributes that can be columns of nodes */
#define PFS_ATTR_VALUE_MAX 65536

#define PFS_ROOT_PRIME UINT64_C(2)

/* Seconds may be any signed 64-bit number; nsec < 1,000,000,000. */
struct pfs_time {
	int64_t sec;
	uint32_t nsec;
};

enum pfs_node_flag {
	PFS_NODE_LINKED = 1, /* content is read through to an original: a source record exists */
	PFS_NODE_NODATA = 2, /* imported without content: reading it is -ENODATA */
	PFS_NODE_ATTRS = 4,  /* attribute records may exist */
	PFS_NODE_ROW = 8,    /* a row of a register; a file's content is made from it */
	PFS_NODE_WRITTEN = 16, /* a row whose file was written to: its content is its own */
	PFS_NODE_NAMED = 32, /* one of several names of a file: a hard link record exists */
	PFS_NODE_SETTLED = 64, /* a directory whose source was last changed well before it was read:
				  its times tell whether it has been changed since */
	PFS_NODE_ELSEWHERE = PFS_NODE_LINKED | PFS_NODE_ROW, /* a file's content is no chunks */
};

struct pfs_node_record {
	uint64_t prime;
	uint64_t parent; /* the parent's prime; 0 at the root */
	uint32_t slot;   /* persisted, unique among live nodes */
	uint32_t mode;   /* as st_mode: type and permissions */
	uint32_t flags;  /* enum pfs_node_flag */
	uint64_t rdev;   /* character and block devices */
#define PFS_NODE_MEMBER(id, name, type, since) type name;
	PFS_NODE_NUMBERS(PFS_NODE_MEMBER)
#undef PFS_NODE_MEMBER
	struct pfs_time atime, mtime, ctime;
	const void *name; /* raw bytes, no NUL and no '/'; empty at the root */
	size_t name_len;
	const void *target; /* symlinks; else NULL */
	size_t target_len;
};

/* ---- opening ---- */

enum pfs_store_flag {
	PFS_STORE_READ_ONLY = 1, /* works where neither file nor folder can be written */
	PFS_STORE_CREATE = 2,    /* must not exist yet: -EEXIST */
	PFS_STORE_BULK = 4,      /* with CREATE: no journal, no sync before close (import writes a
				    temporary file and publishes it).  Reads see the open group
				    too and belong to the writing thread. */
	PFS_STORE_UNLOCKED = 8,  /* with READ_ONLY: take no lock, beside a writer.  All that is read is of the
				    group committed last when it was opened; one thread reads at a time,
				    and no callback may wait for another that does */
	PFS_STORE_ALONE = 16,    /* with READ_ONLY: lock it as a writer does */
};

struct pfs_store_options {
	unsigned flags;
	mode_t mode;	   /* with CREATE: of the file, whatever the umask; 0: 0600 */
	unsigned wait_ms;  /* wait this long for another process's lock */
	const char *vfs;   /* NULL, or a registered SQLite VFS (fault injection) */
	uint64_t log_bytes; /* pfs_store_checkpoint acts from this length on; 0: 64 MiB */
};

/* Opens path.  A writer locks the store alone, readers share it: -EBUSY when held (see
 * pfs_store_holder).  A store of an older version is read as it is; opening it for writing brings
 * it up to PFS_STORE_SCHEMA, after a line in the log: -ENOSPC when there may be no room for that.
 * -ENOENT, -EACCES; -EMEDIUMTYPE when the file is no primefs store or is damaged beyond opening;
 * -EPROTONOSUPPORT when its schema is newer than this program knows. *out is NULL on failure. */
PFS_MUST_CHECK int pfs_store_open(struct pfs_store **out, const char *path,
				  const struct pfs_store_options *options);

/* Rolls back what is uncommitted, checkpoints (leaving one file, no -wal), unlocks, frees.  NULL is
 * allowed.  Returns the first error; the object is gone all the same. */
int pfs_store_close(struct pfs_store *store);

/* Gives a closed store its final name, durably; both in one folder.  -EEXIST when `to` exists.
 * What an earlier store of that name may have left beside it (-wal, -shm) is removed: SQLite would take
 * it for this one's. */
PFS_MUST_CHECK int pfs_store_publish(const char *from, const char *to);

/* Puts the closed store `from`, of the same folder, durably in the place of this one, which was
 * opened READ_ONLY and ALONE and has only to be closed afterwards.  It gets its mode and, where
 * this user may give it, its owner. */
PFS_MUST_CHECK int pfs_store_replace(struct pfs_store *store, const char *from);

/* A sentence for the user about why the last pfs_store_open of path failed with `error`. */
void pfs_store_explain(char *out, size_t size, const char *path, int error);

/* The process that holds the lock of path, or 0 when none does or it cannot be told. */
pid_t pfs_store_holder(const char *path);

/* Of the format: PFS_STORE_SCHEMA, or less in a READ_ONLY store. */
int pfs_store_version(const struct pfs_store *store);

bool pfs_store_is_read_only(const struct pfs_store *store);
const char *pfs_store_path(const struct pfs_store *store);

/* A random number fixed when the store was created (seed of the name hash). */
uint64_t pfs_store_seed(const struct pfs_store *store);

/* In bytes. */
struct pfs_store_space {
	uint64_t free, total; /* of the store's filesystem, for an unprivileged writer */
	uint64_t reusable;    /* empty inside the file, after the last commit: filled first */
	uint64_t log;	      /* length of the log; a checkpoint can free it */
	uint64_t growth;      /* of the file, when the log is moved into it */
};
PFS_MUST_CHECK int pfs_store_space(struct pfs_store *store, struct pfs_store_space *out);

/* ---- groups: every change is in one ---- */

PFS_MUST_CHECK int pfs_store_begin(struct pfs_store *store);

/* Durable (synced) on return.  *seq is the group's number, growing by one a group; may be NULL.
 * On failure the group is rolled back and can be written again.  Once a change of the group has
 * failed (-EINVAL for a bad argument apart), so do all others and the commit. */
PFS_MUST_CHECK int pfs_store_commit(struct pfs_store *store, uint64_t *seq);

/* No error without a group.  A BULK store cannot undo: it is fit only for being removed then. */
void pfs_store_rollback(struct pfs_store *store);

/* Moves committed pages into the main file when the log is long; call between groups.  free_log: in
 * any case, and gives the log's room back. */
PFS_MUST_CHECK int pfs_store_checkpoint(struct pfs_store *store, bool free_log);

/* Calls fn for each node that a group later than number `since` has changed in any way (its record,
 * content, attributes or source), in order of groups, then of primes, until fn returns non-zero,
 * which is returned.  node is the record as it is now, NULL when it is gone; its pointers are
 * valid during the call.  -ESTALE: the store does not remember so far back (it keeps some
 * megabytes of this, and nothing of an import): read everything instead. */
PFS_MUST_CHECK int pfs_store_scan_changes(struct pfs_store *store, uint64_t since,
					  int (*fn)(void *arg, uint64_t seq, uint64_t prime,
						    const struct pfs_node_record *node),
					  void *arg);

/* The number of the last committed group. */
uint64_t pfs_store_seq(struct pfs_store *store);

/* Which group it was: its number, and random bytes that no other group has, not even one of the same number
 * in a copy of the store that was changed on its own. */
#define PFS_TOKEN_SIZE 16
struct pfs_store_state {
	uint64_t seq;
	uint8_t token[PFS_TOKEN_SIZE];
};

/* The last committed group, as it was when the store was opened for reading, or is now.  -ENODATA: no
 * group of this version of the format has been committed. */
PFS_MUST_CHECK int pfs_store_state(struct pfs_store *store, struct pfs_store_state *out);

/* Whether the state is one of this store's own past, of which pfs_store_scan_changes tells all that came
 * after: 0; -ESTALE: it is not, or is forgotten. */
PFS_MUST_CHECK int pfs_store_follows(struct pfs_store *store, const struct pfs_store_state *state);

/* ---- primes ---- */

enum pfs_prime_kind {
	PFS_PRIME_DIRECTORY, /* numbers from 3 below 2^32 */
	PFS_PRIME_OTHER,     /* numbers above 2^32 */
};

/* Hands out the numbers first <= n < end for taking primes from; no later call, even after a crash,
 * hands out any of them again once the group that this call is part of has been committed.  After
 * a rollback they stay handed out, which the next group records.
 * -ENOSPC when the kind's numbers are used up (end is never beyond 2^32, or 2^63). */
PFS_MUST_CHECK int pfs_store_reserve(struct pfs_store *store, uint64_t *first, uint64_t *end,
				     enum pfs_prime_kind kind, uint64_t count);

/* The numbers below *first of the kind may have been handed out, those from it on never. */
PFS_MUST_CHECK int pfs_store_reserved(struct pfs_store *store, uint64_t *first,
				      enum pfs_prime_kind kind);

/* ---- nodes ---- */

/* Inserts or replaces the record of node->prime. */
PFS_MUST_CHECK int pfs_store_put_node(struct pfs_store *store, const struct pfs_node_record *node);

/* Drops the record and the node's attributes, source and hard link, not its content
 * (pfs_store_add_orphan). No error when there is none. */
PFS_MUST_CHECK int pfs_store_remove_node(struct pfs_store *store, uint64_t prime);

/* Calls fn for each node record with first <= prime < end, in order of primes, until fn returns
 * non-zero, which is returned.  The record's pointers are valid during the call. */
PFS_MUST_CHECK int pfs_store_scan_nodes(struct pfs_store *store, uint64_t first, uint64_t end,
					int (*fn)(void *arg, const struct pfs_node_record *node),
					void *arg);

/* Number of node records and more; cheap. */
struct pfs_store_totals {
	uint64_t nodes, orphans;
	uint64_t end_slot;  /* no record's slot, now or earlier, reaches it (scans make sure) */
	uint64_t end_prime; /* one more than the largest prime in use */
};
PFS_MUST_CHECK int pfs_store_totals(struct pfs_store *store, struct pfs_store_totals *out);

/* ---- content: chunk n of a node holds the bytes from n * PFS_CHUNK_SIZE on ----
 * An absent chunk is a hole.  A present one may be shorter than the chunk: the rest reads as zeros.
 * A present chunk of length 0 is space that was allocated and never written. */

PFS_MUST_CHECK int pfs_store_put_chunk(struct pfs_store *store, uint64_t prime, uint64_t n,
				       const void *data, size_t len);

/* Copies all chunks, those of the open group too, to a node that has none. */
PFS_MUST_CHECK int pfs_store_copy_chunks(struct pfs_store *store, uint64_t to, uint64_t from);

/* Removes the chunks first <= n < end. */
PFS_MUST_CHECK int pfs_store_remove_chunks(struct pfs_store *store, uint64_t prime, uint64_t first,
					   uint64_t end);

/* *len = bytes stored (at most PFS_CHUNK_SIZE, copied to data); -ENOENT for a hole. */
PFS_MUST_CHECK int pfs_store_get_chunk(struct pfs_store *store, void *data, size_t *len,
				       uint64_t prime, uint64_t n);

/* The first present chunk with first <= n < end, and its stored length; -ENOENT when none. */
PFS_MUST_CHECK int pfs_store_next_chunk(struct pfs_store *store, uint64_t *n, size_t *len,
					uint64_t prime, uint64_t first, uint64_t end);

/* Content without a node: to be removed, at the latest when the store is opened next.  Part of the
 * group in which the node's record is removed. */
PFS_MUST_CHECK int pfs_store_add_orphan(struct pfs_store *store, uint64_t prime);

/* Removes at most max_chunks chunks of the orphan, and the orphan's record with the last of them;
 * *left says whether any remain.  In a group. */
PFS_MUST_CHECK int pfs_store_reap_orphan(struct pfs_store *store, bool *left, uint64_t prime,
					 uint64_t max_chunks);

/* Some orphan with prime >= from; -ENOENT when there is none. */
PFS_MUST_CHECK int pfs_store_next_orphan(struct pfs_store *store, uint64_t *prime, uint64_t from);

/* ---- attributes: the xattr user.NAME of a node, typed ---- */

enum pfs_attr_type {
	PFS_ATTR_INTEGER,
	PFS_ATTR_REAL,
	PFS_ATTR_TEXT, /* raw bytes */
};

struct pfs_attr_record {
	const void *name; /* without "user." */
	size_t name_len;
	enum pfs_attr_type type;
	int64_t integer;
	double real;
	const void *text;
	size_t text_len;
};

PFS_MUST_CHECK int pfs_store_put_attr(struct pfs_store *store, uint64_t prime,
				      const struct pfs_attr_record *attr);

/* name NULL: all of the node's attributes. */
PFS_MUST_CHECK int pfs_store_remove_attr(struct pfs_store *store, uint64_t prime, const void *name,
					 size_t name_len);

/* Calls fn for each attribute of the node, in order of names, until it returns non-zero. */
PFS_MUST_CHECK int pfs_store_scan_attrs(struct pfs_store *store, uint64_t prime,
					int (*fn)(void *arg, const struct pfs_attr_record *attr),
					void *arg);

/* Attribute columns: names that were imported with a type.  A value set later takes that type when
 * it prints back byte for byte.  Put is idempotent. */
PFS_MUST_CHECK int pfs_store_put_column(struct pfs_store *store, const void *name, size_t name_len,
					enum pfs_attr_type type);
PFS_MUST_CHECK int pfs_store_scan_columns(struct pfs_store *store,
					  int (*fn)(void *arg, const void *name, size_t name_len,
						    enum pfs_attr_type type),
					  void *arg);

/* Every name that an attribute has or has had. */
PFS_MUST_CHECK int pfs_store_scan_names(struct pfs_store *store,
					int (*fn)(void *arg, const void *name, size_t name_len),
					void *arg);

/* Calls fn for each node that has the attribute, in no order, until it returns non-zero.  Reads all
 * attributes of the store. */
PFS_MUST_CHECK int pfs_store_scan_values(struct pfs_store *store, const void *name,
					 size_t name_len,
					 int (*fn)(void *arg, uint64_t prime,
						   const struct pfs_attr_record *attr),
					 void *arg);

/* ---- sources: originals that content is read from ---- */

#define PFS_HANDLE_MAX 132 /* bytes: the handle's type and what name_to_handle_at gives */

/* What a file has had from its birth on, so that a later one with its number is told from it. */
struct pfs_birthmark {
	struct pfs_time birth;
	bool has_birth;	    /* not every filesystem tells it */
	uint8_t handle_len; /* 0: the filesystem has no handles, or it was not recorded */
	uint8_t handle[PFS_HANDLE_MAX];
};

struct pfs_source_root {
	uint32_t id; /* 0: chosen by put */
	const char *path; /* absolute, NUL-terminated */
	uint64_t dev, ino; /* of the folder itself at import */
	struct pfs_birthmark mark;
	bool has_rights; /* stores of version 1 do not know mode, uid and gid */
	uint32_t mode, uid, gid;
};

/* A folder between a root and an original, as it was at import. */
struct pfs_source_dir {
	uint32_t root;
	const void *path; /* relative to the root, raw bytes; never empty */
	size_t path_len;
	uint64_t dev, ino;
	struct pfs_birthmark mark;
	uint32_t mode, uid, gid;
};

/* Of a linked file, or of whatever else came with the import of a folder: where it is in the source,
 * so that refreshing finds it. */
struct pfs_source_record {
	uint64_t prime;
	uint32_t root;
	const void *path; /* relative to the root, raw bytes */
	size_t path_len;
	/* the original as it was last seen */
	uint64_t dev, ino;
	struct pfs_birthmark mark;
	int64_t size;
	struct pfs_time mtime, ctime;
	uint32_t mode, uid, gid;
};

PFS_MUST_CHECK int pfs_store_put_source_root(struct pfs_store *store, uint32_t *id,
					     const struct pfs_source_root *root);
PFS_MUST_CHECK int pfs_store_scan_source_roots(struct pfs_store *store,
					       int (*fn)(void *arg,
							 const struct pfs_source_root *root),
					       void *arg);

/* Inserts or replaces the record of a folder; no node changes by it. */
PFS_MUST_CHECK int pfs_store_put_source_dir(struct pfs_store *store,
					    const struct pfs_source_dir *dir);

/* -ENOENT when there is no record of the folder.  out->path is the caller's. */
PFS_MUST_CHECK int pfs_store_get_source_dir(struct pfs_store *store, struct pfs_source_dir *out,
					    uint32_t root, const void *path, size_t path_len);
PFS_MUST_CHECK int
pfs_store_scan_source_dirs(struct pfs_store *store,
			   int (*fn)(void *arg, const struct pfs_source_dir *dir), void *arg);

PFS_MUST_CHECK int pfs_store_put_source(struct pfs_store *store,
					const struct pfs_source_record *source);
PFS_MUST_CHECK int pfs_store_remove_source(struct pfs_store *store, uint64_t prime);

/* -ENOENT when the node has none.  The record's path is copied into path (size PATH_MAX). */
PFS_MUST_CHECK int pfs_store_get_source(struct pfs_store *store, struct pfs_source_record *out,
					char *path, uint64_t prime);

/* How many files read through to originals below the root. */
PFS_MUST_CHECK int pfs_store_count_sources(struct pfs_store *store, uint64_t *count, uint32_t root);

/* Whether the last committed group has any source or source root. */
PFS_MUST_CHECK int pfs_store_has_originals(struct pfs_store *store, bool *out);

/* ---- trust: whether what the store says of originals is to be believed ---- */

/* Writes the birthmark of the store's own file into it: whoever does vouches for its source roots.
 * Part of a group. */
PFS_MUST_CHECK int pfs_store_stamp(struct pfs_store *store);

enum pfs_store_trust {
	PFS_TRUST_OWN,	   /* the file that was stamped, this process's user's, and only that one's
			      to write */
	PFS_TRUST_NOT_OWN, /* another user's */
	PFS_TRUST_SHARED,  /* group or others may write it */
	PFS_TRUST_UNSTAMPED, /* without a stamp, or with another file's: a copy */
};
PFS_MUST_CHECK int pfs_store_trust(struct pfs_store *store, enum pfs_store_trust *out);

/* ---- registers: tables whose rows are nodes, as they were imported ---- */

#define PFS_REGISTER_COLUMNS_MAX ((size_t)1 << 20) /* bytes of the names of the columns */
#define PFS_REGISTER_SIGN_MAX	 8		   /* bytes of a delimiter, or for a slash */
#define PFS_NO_COLUMN		 (-1)

enum pfs_register_style {
	PFS_REGISTER_OWN_PARENT = 1, /* rows at the top have their own id as their parent's */
	PFS_REGISTER_SLASHED = 2,    /* paths begin with a slash */
};

struct pfs_register_record {
	uint64_t root; /* the prime of the directory that the rows lie under */
	const char *columns; /* their names in order, a NUL behind each */
	size_t columns_len;
	/* the columns, from 0, that are not kept as attributes (id is); or PFS_NO_COLUMN */
	int path, id, parent, name;
	char delimiter[PFS_REGISTER_SIGN_MAX + 1];
	char slash[PFS_REGISTER_SIGN_MAX + 1]; /* in names in place of '/'; "": none */
	unsigned style;			       /* enum pfs_register_style */
};

PFS_MUST_CHECK int pfs_store_put_register(struct pfs_store *store,
					  const struct pfs_register_record *record);
/* In the order of putting, until fn returns non-zero, which is returned. */
PFS_MUST_CHECK int
pfs_store_scan_registers(struct pfs_store *store,
			 int (*fn)(void *arg, const struct pfs_register_record *record), void *arg);

/* ---- hard links: nodes that were names of one file when they were imported ---- */

/* link: the file's number, the same at all of its names.  Removed with the node's record. */
PFS_MUST_CHECK int pfs_store_put_hard_link(struct pfs_store *store, uint64_t prime, int64_t link);

/* In order of primes, until fn returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_store_scan_hard_links(struct pfs_store *store,
					     int (*fn)(void *arg, uint64_t prime, int64_t link),
					     void *arg);

/* ---- side tables: rows of values that belong to no node ---- */

#define PFS_TABLE_NAME_LIMIT  255
#define PFS_TABLE_COLUMNS_MAX 500
#define PFS_TABLE_ROW_MAX     ((size_t)8 << 20) /* bytes, and of what is said about the columns */

struct pfs_table_record {
	uint32_t id; /* 0: chosen by put */
	const void *name;
	size_t name_len;
	const void *columns; /* what they are; the store only keeps it */
	size_t columns_len;
};

struct pfs_cell {
	enum { PFS_CELL_NULL, PFS_CELL_INTEGER, PFS_CELL_REAL, PFS_CELL_TEXT, PFS_CELL_BLOB } type;
	int64_t integer;
	double real; /* no NaN */
	const void *bytes; /* of texts and blobs */
	size_t size;
};

/* Makes a table without rows (id 0), or renames the one of that id and changes what is said about its
 * columns, whose number stays.  -EINVAL.  The name must be free. */
PFS_MUST_CHECK int pfs_store_put_table(struct pfs_store *store, uint32_t *id,
				       const struct pfs_table_record *table, unsigned n_columns);
PFS_MUST_CHECK int pfs_store_drop_table(struct pfs_store *store, uint32_t id);

/* Inserts or replaces row number `row`.  -E2BIG: more than PFS_TABLE_ROW_MAX. */
PFS_MUST_CHECK int pfs_store_put_row(struct pfs_store *store, uint32_t id, int64_t row,
				     const struct pfs_cell *cells, size_t n);
/* No error when there is none. */
PFS_MUST_CHECK int pfs_store_remove_row(struct pfs_store *store, uint32_t id, int64_t row);

/* Calls fn for each table, in byte order of names, until it returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_store_scan_tables(struct pfs_store *store,
					 int (*fn)(void *arg, const struct pfs_table_record *table),
					 void *arg);

/* For one of them.  -ENOENT: there is none. */
PFS_MUST_CHECK int pfs_store_get_table(struct pfs_store *store, uint32_t id,
				       int (*fn)(void *arg, const struct pfs_table_record *table),
				       void *arg);

/* The same for the rows of a table, in order of their numbers.  -ENOENT: no such table. */
PFS_MUST_CHECK int pfs_store_scan_rows(struct pfs_store *store, uint32_t id,
				       int (*fn)(void *arg, int64_t row,
						 const struct pfs_cell *cells, size_t n),
				       void *arg);
PFS_MUST_CHECK int pfs_store_table_width(struct pfs_store *store, unsigned *n_columns, uint32_t id);
PFS_MUST_CHECK int pfs_store_count_rows(struct pfs_store *store, uint64_t *count, uint32_t id);

/* ---- path indexes: that statements have made one, under which names ---- */

#define PFS_PATH_INDEX_NAME_LIMIT 255

/* -EINVAL: not such a name; it must be free. */
PFS_MUST_CHECK int pfs_store_put_path_index(struct pfs_store *store, const char *name, size_t len);
/* No error when there is none. */
PFS_MUST_CHECK int pfs_store_drop_path_index(struct pfs_store *store, const char *name, size_t len);
/* In byte order of names, until fn returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_store_scan_path_indexes(struct pfs_store *store,
					       int (*fn)(void *arg, const char *name, size_t len),
					       void *arg);

/* ---- checking ---- */

/* SQLite's integrity check, and what the store alone can tell: chunks, attributes and sources
 * without a node, duplicate slots.  fn gets one line for each finding; returns 0 when it could
 * look at everything, whatever it found. */
PFS_MUST_CHECK int pfs_store_check(struct pfs_store *store,
				   void (*fn)(void *arg, const char *finding), void *arg);

#endif
