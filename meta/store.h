/* SPDX-License-Identifier: MIT */
/* meta/store.h - the store: nodes, content, attributes and tables, kept durably in one file.
 *
 * A store knows no tree, no paths and no codes; it keeps records by prime. It is one SQLite file
 * (docs/FORMAT.md), but this interface has no SQL, so that it could be another kind of file.
 *
 * Threads: reading functions are called by any number of threads; each takes a connection from a
 * pool. Writing functions belong to one thread at a time, between pfs_store_begin and
 * pfs_store_commit or rollback; reads see the last committed group.
 *
 * Errors: every function that can fail returns 0 or a negative errno, which is logged once here:
 * -EIO, -ENOSPC, -ENOMEM and -EROFS as SQLite and the disk report them, -EUCLEAN for a damaged
 * file. Others are named where they occur. Memory that a callback gets belongs to the store, and is
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
#define PFS_ATTR_COLUMNS_MAX 1900 /* attributes that can be columns of `nodes` */
#define PFS_ATTR_VALUE_MAX 65536

#define PFS_ROOT_PRIME UINT64_C(2)

enum pfs_node_flag {
	PFS_NODE_LINKED = 1, /* its content is that of an original: it has a source record */
	PFS_NODE_NODATA = 2, /* imported without content: reading fails with -ENODATA */
	PFS_NODE_ATTRS = 4,  /* attribute records may exist */
	PFS_NODE_ROW =
		8, /* a row of a register; if it is a file, its content is made from the row */
	PFS_NODE_WRITTEN = 16, /* a file that was such a row and was written to: it has chunks */
	PFS_NODE_NAMED = 32,   /* one of several names of a file: it has a hard link record */
	PFS_NODE_SETTLED = 64, /* a directory whose source was last changed well before it was read:
				  its times tell whether it has been changed since */
	PFS_NODE_MOUNT = 128,  /* a directory whose source was where something is mounted */
	PFS_NODE_ELSEWHERE =
		PFS_NODE_LINKED | PFS_NODE_ROW, /* a file whose content is not in chunks */
};

struct pfs_node_record {
	uint64_t prime;
	uint64_t parent; /* the parent's prime; 0 at the root */
	uint32_t slot;   /* unique among the store's nodes */
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
	PFS_STORE_READ_ONLY = 1, /* also works if neither file nor folder can be written */
	PFS_STORE_CREATE = 2,    /* makes the file; -EEXIST: there is one */
	/* With CREATE: without a journal, and without a sync before close. (Import writes a
	 * temporary file and publishes it.) Only the writing thread reads, and sees the open group.
	 */
	PFS_STORE_BULK = 4,
	/* With READ_ONLY: takes no lock, so a writer may have the store open. All that is read is
	 * of the group that was committed last at the opening. One thread at a time reads, and no
	 * callback may wait for another thread that reads. */
	PFS_STORE_UNLOCKED = 8,
	PFS_STORE_ALONE = 16, /* with READ_ONLY: locks the store as a writer does */
};

struct pfs_store_options {
	unsigned flags;
	mode_t mode;	   /* with CREATE: the file's mode, whatever the umask; 0: 0600 */
	unsigned wait_ms;  /* how long to wait for another process's lock */
	const char *vfs;   /* NULL, or a registered SQLite VFS (fault injection) */
	size_t feed_primes; /* changed nodes of one group that are surely remembered; 0: 2^20
			       (tests) */
	uint64_t log_bytes; /* the length of the log from which pfs_store_checkpoint acts; 0: 64
			     * MiB */
	/* With READ_ONLY: the time, in nanoseconds since 1970, whose nodes and attributes are shown
	 * (meta/history.h); all else is as it is now. 0: now. Threads: as UNLOCKED. */
	int64_t at;
};

/* Opens the store at path. A writer does not share it, readers do: -EBUSY: another process has it
 * (pfs_store_holder). A store of an older version can be read; opening it for writing raises it to
 * PFS_STORE_SCHEMA, and logs a line: -ENOSPC: there may be no room for that. -ENOENT; -EACCES;
 * -EMEDIUMTYPE: the file is no primefs store, or too damaged to be opened; -EPROTONOSUPPORT: its
 * version is newer than this program knows; -EXDEV: the log beside it is not its own. With `at`:
 * -ENODATA: the store keeps no history; -ESTALE: its history begins later. *out is NULL on
 * failure. */
PFS_MUST_CHECK int pfs_store_open(struct pfs_store **out, const char *path,
				  const struct pfs_store_options *options);

/* Closes and frees the store: rolls back the open group, moves the log into the file (so that there
 * is one file, and no -wal), and unlocks. NULL is allowed. Returns the first error; the store is
 * closed all the same. */
int pfs_store_close(struct pfs_store *store);

/* Returns true if the file's header says that it is a store, of whatever version and state. */
bool pfs_store_is_marked(const char *path);

/* Renames a closed store durably, within its folder. -EEXIST: `to` exists. Removes a -wal and -shm
 * that an earlier store of that name may have left: SQLite would take them for this store's. */
PFS_MUST_CHECK int pfs_store_publish(const char *from, const char *to);

/* Replaces this store durably by the closed store `from` in the same folder. This store was opened
 * READ_ONLY and ALONE, and can only be closed afterwards. The new file gets the mode of the old one
 * and, if this user may set it, its owner. */
PFS_MUST_CHECK int pfs_store_replace(struct pfs_store *store, const char *from);

/* Writes a sentence for the user that says why pfs_store_open of path has just failed with `error`.
 */
void pfs_store_explain(char *out, size_t size, const char *path, int error);

/* Returns the process that has locked the store at path; 0: none, or it is not known. */
pid_t pfs_store_holder(const char *path);

/* Returns the version of the store's format: PFS_STORE_SCHEMA, or less in a READ_ONLY store. */
int pfs_store_version(const struct pfs_store *store);

/* Makes the directory entry of the file at path durable. Errors of open(2) and fsync(2). */
PFS_MUST_CHECK int pfs_store_sync_folder(const char *path);

bool pfs_store_is_read_only(const struct pfs_store *store);

/* Returns true if all that is read is of one group, whatever other processes write meanwhile. That
 * is so for a store that was opened UNLOCKED and has a log, since others write behind the part of
 * the log that is read. */
bool pfs_store_is_steady(const struct pfs_store *store);
const char *pfs_store_path(const struct pfs_store *store);

/* Returns a random number that was chosen when the store was created: the key of the names' hash.
 */
uint64_t pfs_store_seed(const struct pfs_store *store);

/* Room on the disk, in bytes. */
struct pfs_store_space {
	uint64_t free, total; /* of the filesystem, for an unprivileged writer */
	uint64_t size;	      /* of the file, once the log is moved into it */
	uint64_t reusable;    /* in empty pages of the file after the last commit, which are filled
				 first */
	uint64_t log;	      /* of the log; a checkpoint can free it */
	uint64_t growth;      /* how much the file grows when the log is moved into it */
	bool keeps_history;   /* former rows also take room (history.h) */
};
PFS_MUST_CHECK int pfs_store_space(struct pfs_store *store, struct pfs_store_space *out);

/* ---- groups: every change is in one ---- */

PFS_MUST_CHECK int pfs_store_begin(struct pfs_store *store);

/* Commits the open group; on return it is durable. Sets *seq to the group's number, which is one
 * more than that of the group before; seq may be NULL. On failure the group is rolled back, and can
 * be written again. After a change of the group has failed, all its later changes and the commit
 * fail too, but for a change that failed with -EINVAL because of its arguments. */
PFS_MUST_CHECK int pfs_store_commit(struct pfs_store *store, uint64_t *seq);

/* Rolls the open group back, if there is one. A BULK store cannot undo changes: its file can only
 * be removed afterwards. */
void pfs_store_rollback(struct pfs_store *store);

/* Moves committed pages from the log into the main file, if the log is long; with free_log in any
 * case, and then gives the log's room back to the filesystem. No group is open. */
PFS_MUST_CHECK int pfs_store_checkpoint(struct pfs_store *store, bool free_log);

/* Calls fn for each node of which a group after number `since` has changed anything (record,
 * content, attributes or source), in order of groups, then of primes, until fn returns non-zero,
 * which is returned. node is the present record, or NULL if there is none any more; its pointers
 * are valid during the call. -ESTALE: the store does not remember changes so far back; read
 * everything instead. (It keeps some megabytes of changes, and none of an import.) */
PFS_MUST_CHECK int pfs_store_scan_changes(struct pfs_store *store, uint64_t since,
					  int (*fn)(void *arg, uint64_t seq, uint64_t prime,
						    const struct pfs_node_record *node),
					  void *arg);

/* Returns the number of the last committed group. */
uint64_t pfs_store_seq(struct pfs_store *store);

/* The identity of a committed group: its number, and its token. A token is random bytes that no
 * other group has, not even the group with the same number in a copy of the store. */
#define PFS_TOKEN_SIZE 16
struct pfs_store_state {
	uint64_t seq;
	uint8_t token[PFS_TOKEN_SIZE];
};

/* Gets the identity of the last committed group; for a reader, of the last one when it opened the
 * store. -ENODATA: no group of this version of the format has been committed. */
PFS_MUST_CHECK int pfs_store_state(struct pfs_store *store, struct pfs_store_state *out);

/* Returns 0 if the state is of a group of this store, and pfs_store_scan_changes knows all changes
 * after it; else -ESTALE. */
PFS_MUST_CHECK int pfs_store_follows(struct pfs_store *store, const struct pfs_store_state *state);

/* ---- primes ---- */

enum pfs_prime_kind {
	PFS_PRIME_DIRECTORY, /* numbers from 3 below 2^32 */
	PFS_PRIME_OTHER,     /* numbers above 2^32 */
};

/* Hands out a range of numbers, first <= n < end, to take primes from. Once the open group has been
 * committed, no later call hands out any of them again, even after a crash. After a rollback they
 * stay handed out, which the next group records. -ENOSPC: the numbers of this kind are used up (end
 * is at most 2^32, or 2^63). */
PFS_MUST_CHECK int pfs_store_reserve(struct pfs_store *store, uint64_t *first, uint64_t *end,
				     enum pfs_prime_kind kind, uint64_t count);

/* Sets *first to a number such that no number of the kind from it on was ever handed out. */
PFS_MUST_CHECK int pfs_store_reserved(struct pfs_store *store, uint64_t *first,
				      enum pfs_prime_kind kind);

/* ---- nodes ---- */

/* Inserts or replaces the record of node->prime. */
PFS_MUST_CHECK int pfs_store_put_node(struct pfs_store *store, const struct pfs_node_record *node);

/* Inserts PFS_STORE_NODES records, whose primes have no records yet. In a BULK store this takes
 * half as long as pfs_store_put_node. -EINVAL: a record has impossible values; -EEXIST: a prime has
 * a record, which spoils the group as other errors do. */
#define PFS_STORE_NODES 32u
PFS_MUST_CHECK int pfs_store_put_nodes(struct pfs_store *store,
				       const struct pfs_node_record nodes[PFS_STORE_NODES]);

/* Removes the node's record, attributes, source and hard link, but not its content
 * (pfs_store_add_orphan). It is no error if there is no such node. */
PFS_MUST_CHECK int pfs_store_remove_node(struct pfs_store *store, uint64_t prime);

/* Calls fn for each node record with first <= prime < end, in order of primes, until fn returns
 * non-zero, which is returned.  The record's pointers are valid during the call. */
PFS_MUST_CHECK int pfs_store_scan_nodes(struct pfs_store *store, uint64_t first, uint64_t end,
					int (*fn)(void *arg, const struct pfs_node_record *node),
					void *arg);

/* Counts of what the store has, which need not be counted anew. */
struct pfs_store_totals {
	uint64_t nodes, orphans;
	uint64_t end_slot; /* greater than every slot that a record has or had (scans check that) */
	uint64_t end_prime; /* one more than the largest prime in use */
};
PFS_MUST_CHECK int pfs_store_totals(struct pfs_store *store, struct pfs_store_totals *out);

/* ---- content: chunk n of a node holds the bytes from n * PFS_CHUNK_SIZE on ----
 * A chunk that is not there is a hole. A chunk may be stored with fewer bytes; the others are 0. A
 * chunk of length 0 was allocated and never written. */

PFS_MUST_CHECK int pfs_store_put_chunk(struct pfs_store *store, uint64_t prime, uint64_t n,
				       const void *data, size_t len);

/* Copies all chunks of a node, also those of the open group, to a node that has none. */
PFS_MUST_CHECK int pfs_store_copy_chunks(struct pfs_store *store, uint64_t to, uint64_t from);

/* Removes the chunks first <= n < end. */
PFS_MUST_CHECK int pfs_store_remove_chunks(struct pfs_store *store, uint64_t prime, uint64_t first,
					   uint64_t end);

/* Copies a chunk's *len stored bytes to data, which has room for PFS_CHUNK_SIZE. -ENOENT: it is a
 * hole. */
PFS_MUST_CHECK int pfs_store_get_chunk(struct pfs_store *store, void *data, size_t *len,
				       uint64_t prime, uint64_t n);

/* Finds the first chunk with first <= n < end, and the length of its stored bytes. -ENOENT: there
 * is none. */
PFS_MUST_CHECK int pfs_store_next_chunk(struct pfs_store *store, uint64_t *n, size_t *len,
					uint64_t prime, uint64_t first, uint64_t end);

/* Notes that the content of this prime is an orphan: it has no node any more, and is to be removed,
 * at the latest when the store is next opened. Call it in the group that removes the node's record.
 */
PFS_MUST_CHECK int pfs_store_add_orphan(struct pfs_store *store, uint64_t prime);

/* Removes at most max_chunks chunks of the orphan, and the record of the orphan with the last of
 * them. Sets *left to true if some chunks remain. A group is open. */
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

/* Attribute columns: names that were imported with a type. A value that is set later gets that type
 * if printing it gives the same bytes again. Putting a column again changes its type. */
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

/* Values that a file has from its birth on, and a later file with the same inode number has not. */
struct pfs_birthmark {
	struct pfs_time birth;
	bool has_birth;	    /* `birth` is known; not every filesystem tells it */
	uint8_t handle_len; /* 0: the filesystem has no handles, or none was recorded */
	uint8_t handle[PFS_HANDLE_MAX];
};

struct pfs_source_root {
	uint32_t id; /* 0: chosen by put */
	const char *path; /* absolute, NUL-terminated */
	uint64_t dev, ino; /* of the folder itself at import */
	struct pfs_birthmark mark;
	bool has_rights; /* mode, uid and gid are known; stores of version 1 do not have them */
	uint32_t mode, uid, gid;
	bool has_mounts; /* PFS_NODE_MOUNT tells of all its directories; only with has_rights */
};

/* A folder between a source root and an original, as it was at import. */
struct pfs_source_dir {
	uint32_t root;
	const void *path; /* relative to the root, raw bytes; never empty */
	size_t path_len;
	uint64_t dev, ino;
	struct pfs_birthmark mark;
	uint32_t mode, uid, gid;
};

/* Where a node came from in its source. Linked files read their content there, and a refresh finds
 * each node again by it. Each node that an import of a folder made has one. */
struct pfs_source_record {
	uint64_t prime;
	uint32_t root;
	const void *path; /* relative to the root, raw bytes */
	size_t path_len;
	/* These are of the original as it was last seen. */
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

/* Calls fn with the prime and the path of each source of the root, in no order, until fn returns
 * non-zero, which is returned. */
PFS_MUST_CHECK int pfs_store_scan_sources(struct pfs_store *store, uint32_t root,
					  int (*fn)(void *arg, uint64_t prime, const char *path,
						    size_t path_len),
					  void *arg);

/* Counts the files that read through to originals below the root. */
PFS_MUST_CHECK int pfs_store_count_sources(struct pfs_store *store, uint64_t *count, uint32_t root);

/* Sets *out if the last committed group has any source or source root. */
PFS_MUST_CHECK int pfs_store_has_originals(struct pfs_store *store, bool *out);

/* ---- trust: whether to believe what the store says of originals ---- */

/* Writes the birthmark of the store's own file into the store: its stamp. The caller knows that the
 * store's source roots are right. A group is open. */
PFS_MUST_CHECK int pfs_store_stamp(struct pfs_store *store);

enum pfs_store_trust {
	PFS_TRUST_OWN,	   /* it is the file that was stamped, and this user's, and nobody else may
			      write it */
	PFS_TRUST_NOT_OWN, /* it is another user's */
	PFS_TRUST_SHARED,  /* group or others may write it */
	PFS_TRUST_UNSTAMPED, /* it has no stamp, or that of another file, of which it is a copy */
};
PFS_MUST_CHECK int pfs_store_trust(struct pfs_store *store, enum pfs_store_trust *out);

/* ---- registers: tables whose rows are nodes, as they were imported ---- */

#define PFS_REGISTER_COLUMNS_MAX ((size_t)1 << 20) /* bytes of the names of the columns */
#define PFS_REGISTER_SIGN_MAX	 8		   /* bytes of a delimiter, or for a slash */
#define PFS_NO_COLUMN		 (-1)

enum pfs_register_style {
	PFS_REGISTER_OWN_PARENT = 1, /* rows at the top have their own id as parent */
	PFS_REGISTER_SLASHED = 2,    /* paths begin with a slash */
};

struct pfs_register_record {
	uint64_t root; /* the prime of the directory that the rows lie under */
	const char *columns; /* the columns' names in order, a NUL behind each */
	size_t columns_len;
	/* The numbers, from 0, of columns with a meaning, or PFS_NO_COLUMN. All but id are not kept
	 * as attributes. */
	int path, id, parent, name;
	char delimiter[PFS_REGISTER_SIGN_MAX + 1];
	char slash[PFS_REGISTER_SIGN_MAX + 1]; /* what names have in place of '/'; "": nothing */
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

/* Notes that the node was a name of the file with the number `link`; all names of one file have the
 * same number. Removing the node's record removes this too. */
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
	const void *columns; /* the declaration (meta/declaration.h), which the store only keeps */
	size_t columns_len;
};

struct pfs_side_rows; /* meta/siderows.h */

struct pfs_cell {
	enum { PFS_CELL_NULL, PFS_CELL_INTEGER, PFS_CELL_REAL, PFS_CELL_TEXT, PFS_CELL_BLOB } type;
	int64_t integer;
	double real; /* no NaN */
	const void *bytes; /* of texts and blobs */
	size_t size;
};

/* With id 0, makes a table without rows; else renames the table of that id and changes its
 * declaration, with the same number of columns. No other table may have the name. -EINVAL: the name
 * or the number of columns is not allowed. */
PFS_MUST_CHECK int pfs_store_put_table(struct pfs_store *store, uint32_t *id,
				       const struct pfs_table_record *table, unsigned n_columns);
PFS_MUST_CHECK int pfs_store_drop_table(struct pfs_store *store, uint32_t id);

/* Inserts, replaces and removes rows of a table, in the order in which they are packed
 * (meta/siderows.h); rising numbers take the least time. It is no error if a row that is removed is
 * not there. */
PFS_MUST_CHECK int pfs_store_write_rows(struct pfs_store *store, const struct pfs_side_rows *rows);
/* Adds a row that has these cells (NULL: that is removed) to the batch, which is written and
 * emptied when it is large; the caller writes what is left in the end, and finishes the batch.
 * -E2BIG: the row has more than PFS_TABLE_ROW_MAX bytes; -ENOMEM. */
PFS_MUST_CHECK int pfs_store_put_row(struct pfs_store *store, struct pfs_side_rows *batch,
				     int64_t row, const struct pfs_cell *cells, size_t n);

/* Calls fn for each table, in byte order of names, until it returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_store_scan_tables(struct pfs_store *store,
					 int (*fn)(void *arg, const struct pfs_table_record *table),
					 void *arg);

/* Calls fn for the table of that id and returns what it returns. -ENOENT: there is none. */
PFS_MUST_CHECK int pfs_store_get_table(struct pfs_store *store, uint32_t id,
				       int (*fn)(void *arg, const struct pfs_table_record *table),
				       void *arg);

/* Calls fn for each row of a table, in order of their numbers, until it returns non-zero, which is
 * returned. Before the first row it calls begun, unless that is NULL: later commits do not change
 * the rows that fn gets. -ENOENT: there is no such table. */
PFS_MUST_CHECK int
pfs_store_scan_rows(struct pfs_store *store, uint32_t id, void (*begun)(void *arg),
		    int (*fn)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
		    void *arg);
PFS_MUST_CHECK int pfs_store_table_width(struct pfs_store *store, unsigned *n_columns, uint32_t id);

/* ---- path indexes: the names under which statements have made indexes on paths ---- */

#define PFS_PATH_INDEX_NAME_LIMIT 255

/* Adds the name of an index on nodes' paths; no other may have it. -EINVAL: it is no possible name.
 */
PFS_MUST_CHECK int pfs_store_put_path_index(struct pfs_store *store, const char *name, size_t len);
/* Removes a name. It is no error if there is none. */
PFS_MUST_CHECK int pfs_store_drop_path_index(struct pfs_store *store, const char *name, size_t len);
/* Calls fn for each name, in byte order, until it returns non-zero, which is returned. is_newer: a
 * newer program has made the index, and only that knows of what; the name is taken. Damaged names
 * are passed over, with a warning when the first is met. */
PFS_MUST_CHECK int pfs_store_scan_path_indexes(struct pfs_store *store,
					       int (*fn)(void *arg, const char *name, size_t len,
							 bool is_newer),
					       void *arg);
/* Adds to the one store all that the other has, those of newer programs, too. */
PFS_MUST_CHECK int pfs_store_copy_path_indexes(struct pfs_store *from, struct pfs_store *to);

/* ---- checking ---- */

/* Runs SQLite's integrity check, and looks for chunks, attributes and sources without a node and
 * for slots that two nodes have. Calls fn with one line for each finding. Returns 0 if it could
 * look at everything, whatever it found. */
PFS_MUST_CHECK int pfs_store_check(struct pfs_store *store,
				   void (*fn)(void *arg, const char *finding), void *arg);

#endif
