/* SPDX-License-Identifier: MIT */
/* meta/store.h - the durable truth: nodes, content, attributes and tables in one file.
 *
 * A store knows no tree, no paths and no codes; it keeps records by prime. It is one SQLite file
 * (docs/FORMAT.md), but nothing of SQL shows here, so that another store can stand beside it.
 *
 * Threads: reading functions are called by any number of threads; each takes a connection from a
 * pool. Writing functions belong to one thread at a time, between pfs_store_begin and
 * pfs_store_commit or rollback; reads see the last committed group.
 *
 * Errors: every function that can fail returns 0 or a negative errno, which is logged once here:
 * -EIO, -ENOSPC, -ENOMEM and -EROFS as SQLite and the disk report them, -EUCLEAN for a damaged
 * file. Others are named where they occur. Memory that a callback is passed is the store's, and
 * valid during the call. */
#ifndef PFS_META_STORE_H
#define PFS_META_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"
#include "meta/format.h"

struct pfs_store;

#define PFS_CHUNK_SIZE   65536 /* bytes of content in one chunk; the last may be shorter */
#define PFS_NAME_MAX     255
#define PFS_TARGET_MAX   4095
#define PFS_ATTR_NAME_MAX  255   /* without "user." */
#define PFS_ATTR_COLUMNS_MAX 1900 /* so many attributes can be columns of nodes */
#define PFS_ATTR_VALUE_MAX 65536

#define PFS_ROOT_PRIME UINT64_C(2)

enum pfs_node_flag {
	PFS_NODE_LINKED = 1, /* content is read through to an original: a source record exists */
	PFS_NODE_NODATA = 2, /* imported without content: reading it is -ENODATA */
	PFS_NODE_ATTRS = 4,  /* attribute records may exist */
	PFS_NODE_ROW = 8,    /* a row of a register; a file's content is made from it */
	PFS_NODE_WRITTEN = 16, /* a row whose file was written to: its content is in chunks */
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
	PFS_STORE_CREATE = 2,    /* makes the file; -EEXIST when there is one */
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
	size_t feed_primes; /* changed nodes of one group that are remembered in any case; 0: 2^20 (tests) */
	uint64_t log_bytes; /* pfs_store_checkpoint acts from this length on; 0: 64 MiB */
	int64_t at; /* with READ_ONLY, 0: now; else its nodes and attributes as they were then, in nanoseconds since 1970,
		       and all else as it is: meta/history.h.  Threads: as UNLOCKED */
};

/* Opens the store at path. A writer has it alone, readers share it: -EBUSY if another process holds
 * it (pfs_store_holder). A store of an older version is read as it is; opening it for writing
 * brings it up to PFS_STORE_SCHEMA, after a line in the log: -ENOSPC when there may be no room for
 * that. -ENOENT, -EACCES; -EMEDIUMTYPE: the file is no primefs store, or is damaged beyond opening;
 * -EPROTONOSUPPORT: its schema is newer than this program knows. With `at`:
 * -ENODATA: the store keeps no history; -ESTALE: it goes not so far back. *out is NULL on failure. */
PFS_MUST_CHECK int pfs_store_open(struct pfs_store **out, const char *path,
				  const struct pfs_store_options *options);

/* Closes the store: rolls back what is uncommitted, moves the log into the file (leaving one file,
 * no -wal), unlocks and frees. NULL is allowed. Returns the first error; the object is gone all the
 * same. */
int pfs_store_close(struct pfs_store *store);

/* Gives a closed store its final name, durably; both in one folder.  -EEXIST when `to` exists.
 * What an earlier store of that name may have left beside it (-wal, -shm) is removed: SQLite would take
 * it for this one's. */
PFS_MUST_CHECK int pfs_store_publish(const char *from, const char *to);

/* Puts the closed store `from`, in the same folder, durably in the place of this one, which was
 * opened READ_ONLY and ALONE and has only to be closed afterwards. The new file gets the mode of
 * the old one and, where this user may set it, its owner. */
PFS_MUST_CHECK int pfs_store_replace(struct pfs_store *store, const char *from);

/* Writes a sentence for the user about why the last pfs_store_open of path failed with `error`. */
void pfs_store_explain(char *out, size_t size, const char *path, int error);

/* Returns the process that holds the lock of path; 0 if none does, or it cannot be told. */
pid_t pfs_store_holder(const char *path);

/* Returns the version of the store's format: PFS_STORE_SCHEMA, or less in a READ_ONLY store. */
int pfs_store_version(const struct pfs_store *store);

/* Makes the entry of the file of that path in its folder durable. What the system says of files. */
PFS_MUST_CHECK int pfs_store_sync_folder(const char *path);

bool pfs_store_is_read_only(const struct pfs_store *store);

/* Returns true if all that is read stays that of one group whatever others write meanwhile: of a store that was opened
 * UNLOCKED and has a log, in which what others write goes behind it. */
bool pfs_store_is_steady(const struct pfs_store *store);
const char *pfs_store_path(const struct pfs_store *store);

/* Returns a random number that was fixed when the store was created (the seed of the name hash). */
uint64_t pfs_store_seed(const struct pfs_store *store);

/* Room on the disk, in bytes. */
struct pfs_store_space {
	uint64_t free, total; /* of the filesystem, for an unprivileged writer */
	uint64_t size;	      /* of the file, when the log is in it */
	uint64_t reusable;    /* empty inside the file, after the last commit: filled first */
	uint64_t log;	      /* length of the log; a checkpoint can free it */
	uint64_t growth;      /* by how much the file grows when the log is moved into it */
	bool keeps_history;   /* what a group replaces or removes stays, besides (history.h) */
};
PFS_MUST_CHECK int pfs_store_space(struct pfs_store *store, struct pfs_store_space *out);

/* ---- groups: every change is in one ---- */

PFS_MUST_CHECK int pfs_store_begin(struct pfs_store *store);

/* Commits the open group; on return it is durable (synced). *seq is the group's number, which grows
 * by one with each group; seq may be NULL. If this fails, the group is rolled back and can be
 * written again. Once a change of the group has failed (unless with -EINVAL for a bad argument), so
 * do all later ones and the commit. */
PFS_MUST_CHECK int pfs_store_commit(struct pfs_store *store, uint64_t *seq);

/* Rolls the open group back; does nothing without one. A BULK store cannot undo: it is fit only for
 * being removed then. */
void pfs_store_rollback(struct pfs_store *store);

/* Moves committed pages into the main file when the log is long. Not to be called within a group.
 * free_log: moves them in any case, and gives the log's room back to the filesystem. */
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

/* Returns the number of the last committed group. */
uint64_t pfs_store_seq(struct pfs_store *store);

/* Names a committed group: its number, and random bytes that no other group has, not even one of
 * the same number in a copy of the store that was changed on its own. */
#define PFS_TOKEN_SIZE 16
struct pfs_store_state {
	uint64_t seq;
	uint8_t token[PFS_TOKEN_SIZE];
};

/* Tells the last committed group: as it was when the store was opened for reading, or as it is now
 * for a writer. -ENODATA: no group of this version of the format has been committed. */
PFS_MUST_CHECK int pfs_store_state(struct pfs_store *store, struct pfs_store_state *out);

/* Returns 0 if the state is one of this store's own past, and pfs_store_scan_changes tells all that
 * came after it; -ESTALE: it is not, or it is forgotten. */
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

/* Sets *first so that the kind's numbers below it may have been handed out, and those from it on
 * never were. */
PFS_MUST_CHECK int pfs_store_reserved(struct pfs_store *store, uint64_t *first,
				      enum pfs_prime_kind kind);

/* ---- nodes ---- */

/* Inserts or replaces the record of node->prime. */
PFS_MUST_CHECK int pfs_store_put_node(struct pfs_store *store, const struct pfs_node_record *node);

/* Inserts so many records at once, whose primes have none yet; in a store that is made at once
 * (PFS_STORE_BULK) that takes half as long. -EINVAL: a record is not a possible one; -EEXIST (a
 * prime had a record) and others spoil the group. */
#define PFS_STORE_NODES 32u
PFS_MUST_CHECK int pfs_store_put_nodes(struct pfs_store *store,
				       const struct pfs_node_record nodes[PFS_STORE_NODES]);

/* Removes the record and the node's attributes, source and hard link, but not its content
 * (pfs_store_add_orphan). There is no error if it is not there. */
PFS_MUST_CHECK int pfs_store_remove_node(struct pfs_store *store, uint64_t prime);

/* Calls fn for each node record with first <= prime < end, in order of primes, until fn returns
 * non-zero, which is returned.  The record's pointers are valid during the call. */
PFS_MUST_CHECK int pfs_store_scan_nodes(struct pfs_store *store, uint64_t first, uint64_t end,
					int (*fn)(void *arg, const struct pfs_node_record *node),
					void *arg);

/* Counts what the store has. They are kept, so that asking is cheap. */
struct pfs_store_totals {
	uint64_t nodes, orphans;
	uint64_t end_slot;  /* no record's slot, now or earlier, reaches it (scans check that) */
	uint64_t end_prime; /* one more than the largest prime in use */
};
PFS_MUST_CHECK int pfs_store_totals(struct pfs_store *store, struct pfs_store_totals *out);

/* ---- content: chunk n of a node holds the bytes from n * PFS_CHUNK_SIZE on ----
 * An absent chunk is a hole.  A present one may be shorter than the chunk: the rest reads as zeros.
 * A present chunk of length 0 is space that was allocated and never written. */

PFS_MUST_CHECK int pfs_store_put_chunk(struct pfs_store *store, uint64_t prime, uint64_t n,
				       const void *data, size_t len);

/* Copies all chunks, those of the open group included, to a node that has none. */
PFS_MUST_CHECK int pfs_store_copy_chunks(struct pfs_store *store, uint64_t to, uint64_t from);

/* Removes the chunks first <= n < end. */
PFS_MUST_CHECK int pfs_store_remove_chunks(struct pfs_store *store, uint64_t prime, uint64_t first,
					   uint64_t end);

/* Copies a chunk's stored bytes into data, which has room for PFS_CHUNK_SIZE; *len is how many.
 * -ENOENT: it is a hole. */
PFS_MUST_CHECK int pfs_store_get_chunk(struct pfs_store *store, void *data, size_t *len,
				       uint64_t prime, uint64_t n);

/* Finds the first chunk that is there with first <= n < end, and the length that is stored.
 * -ENOENT: there is none. */
PFS_MUST_CHECK int pfs_store_next_chunk(struct pfs_store *store, uint64_t *n, size_t *len,
					uint64_t prime, uint64_t first, uint64_t end);

/* Notes that the content of this prime has no node any more and is to be removed, at the latest
 * when the store is opened next. To be called in the group that removes the node's record. */
PFS_MUST_CHECK int pfs_store_add_orphan(struct pfs_store *store, uint64_t prime);

/* Removes at most max_chunks chunks of the orphan, and with the last of them its record; *left says
 * whether any remain. Part of a group. */
PFS_MUST_CHECK int pfs_store_reap_orphan(struct pfs_store *store, bool *left, uint64_t prime,
					 uint64_t max_chunks);

/* Finds an orphan with prime >= from. -ENOENT: there is none. */
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

/* Removes one attribute of the node; name NULL: all of them. There is no error if it is not
 * there. */
PFS_MUST_CHECK int pfs_store_remove_attr(struct pfs_store *store, uint64_t prime, const void *name,
					 size_t name_len);

/* Calls fn for each attribute of the node, in order of names, until it returns non-zero, which is
 * returned. */
PFS_MUST_CHECK int pfs_store_scan_attrs(struct pfs_store *store, uint64_t prime,
					int (*fn)(void *arg, const struct pfs_attr_record *attr),
					void *arg);

/* Attribute columns: names that were imported with a type. A value that is set later takes that
 * type if it prints back byte for byte. Putting one again changes its type. */
PFS_MUST_CHECK int pfs_store_put_column(struct pfs_store *store, const void *name, size_t name_len,
					enum pfs_attr_type type);
PFS_MUST_CHECK int pfs_store_scan_columns(struct pfs_store *store,
					  int (*fn)(void *arg, const void *name, size_t name_len,
						    enum pfs_attr_type type),
					  void *arg);

/* Calls fn for every name that an attribute has or has had, until it returns non-zero, which is
 * returned. */
PFS_MUST_CHECK int pfs_store_scan_names(struct pfs_store *store,
					int (*fn)(void *arg, const void *name, size_t name_len),
					void *arg);

/* Calls fn for each node that has the attribute, in no order, until it returns non-zero, which is
 * returned. Reads all attributes of the store. */
PFS_MUST_CHECK int pfs_store_scan_values(struct pfs_store *store, const void *name,
					 size_t name_len,
					 int (*fn)(void *arg, uint64_t prime,
						   const struct pfs_attr_record *attr),
					 void *arg);

/* ---- sources: originals that content is read from ---- */

#define PFS_HANDLE_MAX 132 /* bytes: the handle's type and what name_to_handle_at gives */

/* Tells a file from a later one that has its inode number: it has these from its birth on. */
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

/* Says where a node came from in the source, so that a refresh finds it again. Linked files have
 * one, and so has whatever else came with the import of a folder. */
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

/* Inserts or replaces the record of a folder; this changes no node. */
PFS_MUST_CHECK int pfs_store_put_source_dir(struct pfs_store *store,
					    const struct pfs_source_dir *dir);

/* Gets the record of a folder; out->path is the caller's path. -ENOENT: there is none. */
PFS_MUST_CHECK int pfs_store_get_source_dir(struct pfs_store *store, struct pfs_source_dir *out,
					    uint32_t root, const void *path, size_t path_len);
PFS_MUST_CHECK int
pfs_store_scan_source_dirs(struct pfs_store *store,
			   int (*fn)(void *arg, const struct pfs_source_dir *dir), void *arg);

PFS_MUST_CHECK int pfs_store_put_source(struct pfs_store *store,
					const struct pfs_source_record *source);
PFS_MUST_CHECK int pfs_store_remove_source(struct pfs_store *store, uint64_t prime);

/* Gets the node's source. The record's path is copied into `path`, which has room for PATH_MAX
 * bytes. -ENOENT: it has none. */
PFS_MUST_CHECK int pfs_store_get_source(struct pfs_store *store, struct pfs_source_record *out,
					char *path, uint64_t prime);

/* Counts the files that read through to originals below the root. */
PFS_MUST_CHECK int pfs_store_count_sources(struct pfs_store *store, uint64_t *count, uint32_t root);

/* Sets *out if the last committed group has any source or source root. */
PFS_MUST_CHECK int pfs_store_has_originals(struct pfs_store *store, bool *out);

/* ---- trust: whether what the store says of originals is to be believed ---- */

/* Writes the birthmark of the store's own file into the store. Whoever calls this vouches for its
 * source roots. Part of a group. */
PFS_MUST_CHECK int pfs_store_stamp(struct pfs_store *store);

enum pfs_store_trust {
	PFS_TRUST_OWN,	   /* the file that was stamped, this process's user's, and only that one's
			      to write */
	PFS_TRUST_NOT_OWN, /* another user's */
	PFS_TRUST_SHARED,  /* group or others may write it */
	PFS_TRUST_UNSTAMPED, /* it has no stamp, or another file's: it is a copy */
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
/* Calls fn for each register, in the order in which they were put, until it returns non-zero, which
 * is returned. */
PFS_MUST_CHECK int
pfs_store_scan_registers(struct pfs_store *store,
			 int (*fn)(void *arg, const struct pfs_register_record *record), void *arg);

/* ---- hard links: nodes that were names of one file when they were imported ---- */

/* Notes that the node was a name of the file with the number `link`, which is the same at all its
 * names. It goes with the node's record. */
PFS_MUST_CHECK int pfs_store_put_hard_link(struct pfs_store *store, uint64_t prime, int64_t link);

/* Calls fn for each such node, in order of primes, until it returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_store_scan_hard_links(struct pfs_store *store,
					     int (*fn)(void *arg, uint64_t prime, int64_t link),
					     void *arg);

/* ---- side tables: rows of values that belong to no node ---- */

#define PFS_TABLE_NAME_LIMIT  255
#define PFS_TABLE_COLUMNS_MAX 500
#define PFS_TABLE_ROW_MAX     ((size_t)8 << 20) /* bytes of a row, and of what is said about the columns */

struct pfs_table_record {
	uint32_t id; /* 0: chosen by put */
	const void *name;
	size_t name_len;
	const void *columns; /* how they are declared; the store only keeps it */
	size_t columns_len;
};

struct pfs_cell {
	enum { PFS_CELL_NULL, PFS_CELL_INTEGER, PFS_CELL_REAL, PFS_CELL_TEXT, PFS_CELL_BLOB } type;
	int64_t integer;
	double real; /* no NaN */
	const void *bytes; /* of texts and blobs */
	size_t size;
};

/* Makes a table without rows (id 0); or renames the table of that id and changes what is said about
 * its columns, whose number stays. The name must be free. -EINVAL: the name or the number of
 * columns cannot be. */
PFS_MUST_CHECK int pfs_store_put_table(struct pfs_store *store, uint32_t *id,
				       const struct pfs_table_record *table, unsigned n_columns);
PFS_MUST_CHECK int pfs_store_drop_table(struct pfs_store *store, uint32_t id);

/* Inserts or replaces the row of that number. -E2BIG: it has more than PFS_TABLE_ROW_MAX bytes. */
PFS_MUST_CHECK int pfs_store_put_row(struct pfs_store *store, uint32_t id, int64_t row,
				     const struct pfs_cell *cells, size_t n);
/* No error when there is none. */
PFS_MUST_CHECK int pfs_store_remove_row(struct pfs_store *store, uint32_t id, int64_t row);

/* Calls fn for each table, in byte order of names, until it returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_store_scan_tables(struct pfs_store *store,
					 int (*fn)(void *arg, const struct pfs_table_record *table),
					 void *arg);

/* Calls fn for the table of that id and returns what it returns. -ENOENT: there is none. */
PFS_MUST_CHECK int pfs_store_get_table(struct pfs_store *store, uint32_t id,
				       int (*fn)(void *arg, const struct pfs_table_record *table),
				       void *arg);

/* Calls fn for each row of a table, in order of their numbers, until it returns non-zero, which is
 * returned; and begun, unless that is NULL, once before the first: what is committed afterwards is not
 * among the rows. -ENOENT: there is no such table. */
PFS_MUST_CHECK int pfs_store_scan_rows(struct pfs_store *store, uint32_t id, void (*begun)(void *arg),
				       int (*fn)(void *arg, int64_t row,
						 const struct pfs_cell *cells, size_t n),
				       void *arg);
PFS_MUST_CHECK int pfs_store_table_width(struct pfs_store *store, unsigned *n_columns, uint32_t id);

/* ---- path indexes: that statements have made one, under which names ---- */

#define PFS_PATH_INDEX_NAME_LIMIT 255

/* Keeps the name of an index on nodes' paths, which must be free. -EINVAL: it cannot be a name. */
PFS_MUST_CHECK int pfs_store_put_path_index(struct pfs_store *store, const char *name, size_t len);
/* No error when there is none. */
PFS_MUST_CHECK int pfs_store_drop_path_index(struct pfs_store *store, const char *name, size_t len);
/* Calls fn for each, in byte order of names, until it returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_store_scan_path_indexes(struct pfs_store *store,
					       int (*fn)(void *arg, const char *name, size_t len),
					       void *arg);

/* ---- checking ---- */

/* Runs SQLite's integrity check, and looks for what the store alone can tell: chunks, attributes
 * and sources without a node, duplicate slots. Calls fn with one line for each finding. Returns 0
 * if it could look at everything, whatever it found. */
PFS_MUST_CHECK int pfs_store_check(struct pfs_store *store,
				   void (*fn)(void *arg, const char *finding), void *arg);

#endif
