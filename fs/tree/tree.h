/* SPDX-License-Identifier: MIT */
/* fs/tree/tree.h - the mounted hierarchy: POSIX operations on nodes, by inode number.
 *
 * The tree is the image of a store in memory plus a journal that carries its changes to the store
 * in the background (docs/ARCHITECTURE.md, "A write").  Everything that POSIX says about names,
 * owners, modes, times and sizes is decided here; fs/mount only decodes and replies.
 *
 * Inode numbers are the nodes' primes; the root's is 2.  Names are raw bytes, NUL-terminated.
 * Threads: any number of callers.  No function holds a lock while it calls back, unless it says so.
 *
 * Errors: negative errno as the system calls document them.  A change can in addition fail with
 * -EROFS (read-only tree, or the journal failed: pfs_tree_failure), -ENOSPC (the store's
 * filesystem cannot hold it), -ENOMEM; nothing is half done then.  -ESTALE: no node has that
 * inode number, or its original is gone.
 *
 * References: an inode number that a caller holds a reference to stays valid after its last name
 * is gone.  lookup, create and readdir take one where they say so; pfs_tree_forget drops them. */
#ifndef PFS_FS_TREE_TREE_H
#define PFS_FS_TREE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <time.h>

#include "base/err.h"
#include "gpu/engine.h"

struct pfs_tree;
struct pfs_history;
struct pfs_history_rule;
struct pfs_store;

enum pfs_links_choice {
	PFS_LINKS_AUTO, /* only if the store is the file that import wrote, is this user's, and
			   nobody else may write it (enum pfs_store_trust) */
	PFS_LINKS_NO,
	PFS_LINKS_YES,
};

struct pfs_tree_options {
	enum pfs_links_choice links; /* whether originals are followed; else they read -ENODATA */
	bool read_only;
	bool alone;	  /* with read_only: lock the store as a writer does */
	bool beside_writer; /* with read_only: take no lock, show the group that was last at
			     * opening */
	bool no_atime;    /* never update access times */
	bool no_image_file; /* load the image from the store's rows, not from an image file */
	/* Closing leaves an image file (fs/image/imagefile.h), which another process writes; the
	 * closing process must exit afterwards. */
	bool leave_image_file;
	/* Makes an image file by another process; NULL: none is made while the tree is open. The
	 * committer calls it, and waits for it, for a large store that has no image file or an
	 * outdated one: when nothing has changed for image_idle_ms (0: 60,000) or, if changes do
	 * not pause, when very many have happened and the last image file is image_beside_ms old
	 * (0: 600,000). */
	void (*make_image_file)(const char *store);
	unsigned image_idle_ms, image_beside_ms;
	unsigned wait_ms; /* how long to wait for another process's lock on the store */
	/* How much history to keep from now on (meta/history.h); NULL: as the store says. Not with
	 * read_only. */
	const struct pfs_history_rule *history;
	int64_t at;	  /* with read_only: the time to show (struct pfs_store_options); 0: now */
	enum pfs_engine_kind engine; /* the engine that answers questions about sets */
	const char *vfs;  /* as in struct pfs_store_options */
	uint64_t pending_limit; /* the most bytes of changes that wait for a commit; 0: 256 MiB */
	unsigned commit_ms;     /* commit at least this often; 0: 1,000 */
	unsigned retry_ms;      /* the time after which a failed commit is tried again; 0: 1,000 */
};

/* Opens the store and loads the image. *out is NULL on failure. Errors as pfs_store_open, for which
 * pfs_store_explain has a sentence; -ENOMEM; the store's errors. */
PFS_MUST_CHECK int pfs_tree_open(struct pfs_tree **out, const char *path,
				 const struct pfs_tree_options *options);

/* Starts the committer and its helpers; call after daemonizing (threads do not survive a fork).
 * Until then changes are refused with -EROFS. */
PFS_MUST_CHECK int pfs_tree_start(struct pfs_tree *tree);

/* Commits what is pending, and closes the store. NULL is allowed. Returns the first error. */
int pfs_tree_close(struct pfs_tree *tree);

bool pfs_tree_is_read_only(const struct pfs_tree *tree);

/* Returns true if some nodes may be linked to files outside the store, which others can change. */
bool pfs_tree_has_links(const struct pfs_tree *tree);
/* Returns true if some files may have content that is made from their rows (fs/content/row.h);
 * renaming a node changes such content. */
bool pfs_tree_has_rows(const struct pfs_tree *tree);

/* Returns true if PFS_LINKS_AUTO has decided not to follow originals, and writes a line to `out`
 * that says how many there are, where, and what to do. It looks at all nodes, with the tree held.
 */
bool pfs_tree_links_refused(struct pfs_tree *tree, char *out, size_t size);

/* The caller of an operation, who becomes the owner of what the operation creates. Callers with uid
 * 0 keep suid and sgid bits where Linux keeps them. The kernel has checked access
 * (default_permissions). */
struct pfs_caller {
	uid_t uid;
	gid_t gid;
	mode_t umask;
};

/* Functions that are called when something has changed that the kernel may have cached, and that
 * the kernel did not ask for itself. Any thread calls them, without tree->lock and the content
 * lock; they must not block, but for `end`. */
struct pfs_tree_listener {
	void *arg;
	/* The entry `name` of the inode changed; NULL: the inode's attributes and content. */
	void (*changed)(void *arg, uint64_t ino, const char *name);
	/* The inode's attributes and content changed as a consequence of a request for another
	 * inode, or for its name. NULL is allowed. */
	void (*stale)(void *arg, uint64_t ino);
	/* A thread calls begin before, and end after, the calls of changed and stale for the
	 * changes of one statement. end returns when the kernel knows of them, so it may block. A
	 * refresh, which tells the kernel itself, calls end alone. NULL is allowed. */
	void (*begin)(void *arg);
	void (*end)(void *arg);
	/* A node is about to take over mode or owner of its original; nobody has seen these yet. */
	void (*rights_change)(void *arg, uint64_t ino);
};
/* Replaces the tree's listener, and returns when no call of the former one is under way. */
void pfs_tree_listen(struct pfs_tree *tree, const struct pfs_tree_listener *listener);

/* ---- names ---- */

struct pfs_entry {
	struct stat attr;
	bool volatile_attr; /* attributes may change by themselves: the kernel must not cache
			     * them */
	bool row;	    /* the node is a row of an imported table */
};

/* Finds the entry `name`, and takes a reference on success. "." and ".." work, because the kernel
 * asks for them when it resolves a file handle after a forget. -ENOENT, -ENOTDIR, -ENAMETOOLONG. */
PFS_MUST_CHECK int pfs_tree_lookup(struct pfs_tree *tree, struct pfs_entry *out, uint64_t parent,
				   const char *name);

/* Drops n references; a node without a name goes with its last one. */
void pfs_tree_forget(struct pfs_tree *tree, uint64_t ino, uint64_t n);

/* Makes a node of the type in `mode`: a regular file, directory, fifo, socket or device; no type: a
 * regular file. Takes a reference. -EEXIST, also for ".query"; -ENOENT: the parent was removed;
 * -ENOTDIR; -ENAMETOOLONG; -EINVAL: the name is empty, "." or "..", or has a '/'. */
PFS_MUST_CHECK int pfs_tree_make(struct pfs_tree *tree, struct pfs_entry *out, uint64_t parent,
				 const char *name, mode_t mode, dev_t rdev,
				 const struct pfs_caller *caller);
PFS_MUST_CHECK int pfs_tree_symlink(struct pfs_tree *tree, struct pfs_entry *out, uint64_t parent,
				    const char *name, const char *target,
				    const struct pfs_caller *caller);

/* Gets a symlink's target; `target` has room for PATH_MAX bytes and is NUL-terminated on
 * success. */
PFS_MUST_CHECK int pfs_tree_readlink(struct pfs_tree *tree, char *target, uint64_t ino);

PFS_MUST_CHECK int pfs_tree_unlink(struct pfs_tree *tree, uint64_t parent, const char *name);
PFS_MUST_CHECK int pfs_tree_rmdir(struct pfs_tree *tree, uint64_t parent, const char *name);

/* Renames as rename(2) does. flags: 0, RENAME_NOREPLACE or RENAME_EXCHANGE; others are -EINVAL. */
PFS_MUST_CHECK int pfs_tree_rename(struct pfs_tree *tree, uint64_t parent, const char *name,
				   uint64_t new_parent, const char *new_name, unsigned flags);

/* ---- directories ----
 * Offset 0 is the beginning. Each entry has the offset at which a listing goes on behind it; that
 * stays right while other entries come and go. */

struct pfs_dirent {
	const char *name;
	uint64_t ino;
	mode_t mode; /* type bits */
	int64_t next_offset;
	const struct pfs_entry *entry; /* NULL unless attributes were asked for */
};

/* Calls fn for entries from offset on, under the image's read lock, until it returns non-zero
 * (full).  With want_attr every entry but "." and ".." for which fn returns 0 takes a reference.
 * -ENOTDIR, -ESTALE. */
PFS_MUST_CHECK int pfs_tree_readdir(struct pfs_tree *tree, uint64_t ino, int64_t offset,
				    bool want_attr,
				    int (*fn)(void *arg, const struct pfs_dirent *entry),
				    void *arg);

/* ---- attributes ---- */

PFS_MUST_CHECK int pfs_tree_getattr(struct pfs_tree *tree, struct pfs_entry *out, uint64_t ino);

enum pfs_set {
	PFS_SET_MODE = 1,
	PFS_SET_UID = 2,
	PFS_SET_GID = 4,
	PFS_SET_SIZE = 8,
	PFS_SET_ATIME = 16,
	PFS_SET_MTIME = 32,
	PFS_SET_CTIME = 64,
	PFS_SET_ATIME_NOW = 128,
	PFS_SET_MTIME_NOW = 256,
};

/* Sets the fields of attr that `set` names, all or none, with Linux's side effects: chown and
 * truncate clear suid and sgid, and ctime becomes now. set == 0 is a chown that keeps both owners.
 * A size alone that is the same as before changes no times, as truncate(2) does, unlike
 * ftruncate(2). -EFBIG; -EISDIR; -EINVAL. */
PFS_MUST_CHECK int pfs_tree_setattr(struct pfs_tree *tree, struct pfs_entry *out, uint64_t ino,
				    const struct stat *attr, unsigned set,
				    const struct pfs_caller *caller);

/* Sums over a node and all nodes below it. A linked file counts as its original was when last
 * looked at. */
struct pfs_totals {
	uint64_t count;	 /* of nodes */
	uint64_t size;	 /* sum of st_size of all nodes but directories; modulo 2^64 */
	uint64_t blocks; /* sum of st_blocks; modulo 2^64 */
	int64_t mtime;	 /* the newest, in nanoseconds, or the nearest that 64 bits hold */
};

/* Gets the totals of a node; of a node without a name they are its own values. The first call looks
 * at all nodes (fs/image/totals.h); from then on the totals are kept. -ESTALE, -ENOMEM. */
PFS_MUST_CHECK int pfs_tree_totals(struct pfs_tree *tree, struct pfs_totals *out, uint64_t ino);

PFS_MUST_CHECK int pfs_tree_statfs(struct pfs_tree *tree, struct statvfs *out);

/* Extended attributes: user.* and the virtual user.primefs.prime, .code, .ancestors, .path, and
 * .subtree_count, _size, _blocks and _mtime (struct pfs_totals). With size 0 the length is
 * returned. -ENODATA; -ERANGE; -EOPNOTSUPP: another namespace; -EPERM: the attribute is virtual, or
 * the node is neither file nor directory; -E2BIG: the value is too long, also if it is a virtual
 * one that the kernel would not pass on; -ENOSPC. */
PFS_MUST_CHECK ssize_t pfs_tree_getxattr(struct pfs_tree *tree, void *value, size_t size,
					 uint64_t ino, const char *name);
PFS_MUST_CHECK ssize_t pfs_tree_listxattr(struct pfs_tree *tree, char *list, size_t size,
					  uint64_t ino);
PFS_MUST_CHECK int pfs_tree_setxattr(struct pfs_tree *tree, uint64_t ino, const char *name,
				     const void *value, size_t size, int flags);
PFS_MUST_CHECK int pfs_tree_removexattr(struct pfs_tree *tree, uint64_t ino, const char *name);

/* Calls fn with the name of each attribute that was imported as a column, in their order, until it
 * returns non-zero, which is returned. */
PFS_MUST_CHECK int
pfs_tree_imported_columns(struct pfs_tree *tree,
			  int (*fn)(void *arg, const void *name, size_t name_len), void *arg);

/* The columns of a register (meta/store.h) are attributes of all nodes below its root. Columns that
 * follow from the node's place (its parent's id, its name, its path) are read only (-EPERM), and
 * are neither listed nor stored. user.primefs.row has all columns, as the content of a row's file
 * has. */
struct pfs_register_record;

/* Describes the table whose rows are the node and those below it; pointers are valid until the tree
 * is closed. -ENODATA: there is no such table. */
PFS_MUST_CHECK int pfs_tree_register(struct pfs_tree *tree, struct pfs_register_record *out,
				     uint64_t ino);

/* Saved queries of a directory: named texts, which move and go with the directory, and which
 * listxattr does not list. flags as for setxattr; value NULL removes. Errors as those of
 * attributes; -ERANGE: the name is too long. */
PFS_MUST_CHECK ssize_t pfs_tree_get_saved(struct pfs_tree *tree, void *value, size_t size,
					  uint64_t ino, const char *name);
PFS_MUST_CHECK int pfs_tree_set_saved(struct pfs_tree *tree, uint64_t ino, const char *name,
				      const void *value, size_t size, int flags);
/* Calls fn for each saved query of the directory, until it returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_tree_list_saved(struct pfs_tree *tree, uint64_t ino,
				       int (*fn)(void *arg, const char *name, size_t len),
				       void *arg);

/* Get and set the attribute in which primefs keeps a hash of a file's content; its text says for
 * which size and mtime the hash is right. Neither changes a time. Errors as those of attributes. */
PFS_MUST_CHECK ssize_t pfs_tree_get_hash(struct pfs_tree *tree, void *value, size_t size,
					 uint64_t ino);
PFS_MUST_CHECK int pfs_tree_set_hash(struct pfs_tree *tree, uint64_t ino, const void *value,
				     size_t size);

/* ---- content ----
 * A reference suffices for reading and writing; nothing has to be opened. With `nowait`, a call
 * that would wait for the disk or for the committer returns -EAGAIN, so that a dispatch thread can
 * hand the request to another thread. */

/* Checks that a file can be opened with these flags of open(2), and refreshes it from its original.
 * O_TRUNC truncates it, and clears suid and sgid unless privileged. *volatile_attr as in struct
 * pfs_entry. -ESTALE, -EROFS, -EISDIR. */
PFS_MUST_CHECK int pfs_tree_open_file(struct pfs_tree *tree, bool *volatile_attr, uint64_t ino,
				      int flags, bool privileged, bool nowait);

enum pfs_read_flag {
	PFS_READ_NOWAIT = 1,
	PFS_READ_NOATIME = 2, /* does not change the access time */
};

/* Reads; returns the number of bytes, fewer than `size` only at the end of the file. Updates atime
 * as relatime does. */
PFS_MUST_CHECK ssize_t pfs_tree_read(struct pfs_tree *tree, void *data, size_t size, uint64_t ino,
				     int64_t offset, unsigned flags);

/* Writes, and returns the number of bytes: `size`, or fewer if that is over 1 MiB and an error came
 * after a part was written. Clears suid and sgid unless privileged. */
#define PFS_AT_END (-1) /* an offset: append */
PFS_MUST_CHECK ssize_t pfs_tree_write(struct pfs_tree *tree, uint64_t ino, const void *data,
				      size_t size, int64_t offset, bool privileged, bool nowait);

/* Allocates, punches or zeroes. mode: 0 or FALLOC_FL_KEEP_SIZE, PUNCH_HOLE|KEEP_SIZE, ZERO_RANGE
 * with or without KEEP_SIZE; others are -EOPNOTSUPP. -EFBIG, -ENOSPC, -EINVAL. */
PFS_MUST_CHECK int pfs_tree_fallocate(struct pfs_tree *tree, uint64_t ino, int mode, int64_t offset,
				      int64_t length, bool privileged);

/* Seeks as lseek(2) does; whence: SEEK_DATA or SEEK_HOLE. -ENXIO. */
PFS_MUST_CHECK int64_t pfs_tree_seek(struct pfs_tree *tree, uint64_t ino, int64_t offset,
				     int whence);

PFS_MUST_CHECK ssize_t pfs_tree_copy_range(struct pfs_tree *tree, uint64_t from,
					   int64_t from_offset, uint64_t to, int64_t to_offset,
					   size_t size, bool privileged);

/* ---- durability ---- */

/* Waits until all changes that were made before the call are committed. Returns the error of a
 * commit that failed; -EROFS: the committer does not run, or ends before. */
PFS_MUST_CHECK int pfs_tree_sync(struct pfs_tree *tree);

/* Returns the error of a commit that failed, until one succeeds; or 0. */
PFS_MUST_CHECK int pfs_tree_failure(struct pfs_tree *tree);

/* ---- for commands ---- */

struct pfs_tree_info {
	uint64_t nodes, directories, files; /* root included; files: all nodes but directories */
	uint64_t bytes;         /* sum of st_size of `files` */
	uint64_t rows;		/* files whose content is made from their row */
	uint64_t written;	/* files that were such, and have been written to */
	uint32_t max_depth;     /* the root has depth 0 */
	uint32_t max_code_bits; /* of all nodes' codes */
	uint64_t epoch;
	uint64_t memory_bytes; /* of columns, names, indexes and totals */
	uint64_t name_bytes;   /* the names' part of memory_bytes */
	unsigned schema;       /* the version of the store's format */
	uint64_t seed;	       /* a random number that the store and its copies have */
};
PFS_MUST_CHECK int pfs_tree_info(struct pfs_tree *tree, struct pfs_tree_info *out);

/* Describes the history that the store keeps, and its size. The store's errors. */
PFS_MUST_CHECK int pfs_tree_history(struct pfs_tree *tree, struct pfs_history *out);
/* Opens the tree's store as it was at a time, as pfs_history_open does. */
PFS_MUST_CHECK int pfs_tree_history_open(struct pfs_tree *tree, struct pfs_store **out, int64_t at,
					 int (*tick)(void *arg), void *arg);

/* Finds the inode number of an absolute path in the store. -ENOENT, -ENOTDIR. */
PFS_MUST_CHECK int pfs_tree_resolve(struct pfs_tree *tree, uint64_t *ino, const char *path);

/* Gets the node's absolute path, which the caller frees. */
PFS_MUST_CHECK int pfs_tree_path(struct pfs_tree *tree, char **path, uint64_t ino);

/* Gets the node's code (the product of the primes on its path) in decimal, which the caller
 * frees. */
PFS_MUST_CHECK int pfs_tree_code(struct pfs_tree *tree, char **decimal, uint64_t ino);

/* Finds the node that has the code. -ENOENT: no node has; -EINVAL: the text is no number; -E2BIG:
 * it is longer than 1 MiB; -ENODEV; -ENOMEM. */
PFS_MUST_CHECK int pfs_tree_node_of_code(struct pfs_tree *tree, uint64_t *ino, const char *decimal);

/* Gets the primes of the directories above the node, the root's first, each ended by a newline; the
 * caller frees them. */
PFS_MUST_CHECK int pfs_tree_ancestors(struct pfs_tree *tree, char **lines, uint64_t ino);

/* Calls fn for the node and each node below it, in pre-order, children in byte order of names,
 * until fn returns non-zero, which is returned. The path is relative to ino, "" for ino itself. */
struct pfs_walk_node {
	const char *path;
	size_t path_len;
	uint32_t depth; /* below ino */
	struct pfs_entry entry;
};
PFS_MUST_CHECK int pfs_tree_walk(struct pfs_tree *tree, uint64_t ino,
				 int (*fn)(void *arg, const struct pfs_walk_node *node), void *arg);

/* ---- questions about sets: answered by the engine (gpu/engine.h), from the codes ---- */

/* Sets the engine, in place of struct pfs_tree_options.engine. Call it before the first question.
 */
void pfs_tree_use_engine(struct pfs_tree *tree, enum pfs_engine_kind kind);
enum pfs_engine_kind pfs_tree_engine_kind(struct pfs_tree *tree);

/* Describes the engine. Opens it if there was no question yet, but does not fill it: directories,
 * deep and code_limbs are those of the last question. The caller does not hold the tree. -ENODEV,
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_tree_engine(struct pfs_tree *tree, struct pfs_engine_info *info);
/* As pfs_tree_engine, but does not wait while another thread opens or fills the engine or is
 * answered by it: then it returns 1, and *info is what was last told, or the engine's name
 * alone. */
PFS_MUST_CHECK int pfs_tree_engine_now(struct pfs_tree *tree, struct pfs_engine_info *info);

enum pfs_relation {
	PFS_SUBTREE,	      /* the given nodes and all nodes below them */
	PFS_ANCESTORS,	      /* the nodes above any of them */
	PFS_CHILDREN,	      /* the children of any of them */
	PFS_PARENTS,	      /* the parents of any of them */
	PFS_COMMON_ANCESTORS, /* the nodes above all of them */
	PFS_DEEPEST_COMMON,   /* the deepest node whose subtree has all of them */
};

struct pfs_question {
	enum pfs_relation relation;
	const uint64_t *inos;
	size_t n; /* 1 or more */
};

/* Counts the nodes that answer the question. -ENOENT: one of the inode numbers is no node's, or of
 * a node without a name; -ENODEV: options.engine asked for a device that is not there; -EAGAIN: the
 * tree changes faster than the engine can follow; -ENOMEM. */
PFS_MUST_CHECK int pfs_tree_count(struct pfs_tree *tree, uint64_t *count,
				  const struct pfs_question *question);

enum pfs_list_flag {
	PFS_LIST_INO = 1,  /* the prime in decimal and a tab before each path */
	PFS_LIST_ZERO = 2, /* NUL after each path, not a newline */
};

/* Lists the absolute paths of the nodes that answer the question, in component-wise pre-order, all
 * as they were at one moment. Calls fn with pieces of whole lines until it returns non-zero, which
 * is returned. fn is called while the tree is held. Errors as pfs_tree_count. */
PFS_MUST_CHECK int pfs_tree_list(struct pfs_tree *tree, const struct pfs_question *question,
				 unsigned flags,
				 int (*fn)(void *arg, const char *bytes, size_t size), void *arg);

/* Sets *wrong to the number of directories whose codes on the engine differ from GMP's product. */
PFS_MUST_CHECK int pfs_tree_check_codes(struct pfs_tree *tree, uint64_t *wrong);

/* Checks the store at path, which may be damaged: every node is reachable, names are valid and
 * unique, slots are unique, primes are prime, unique, handed out and in the range of their kind;
 * then pfs_store_check. Calls fn with a line for each finding. Of options it uses wait_ms and vfs.
 * Returns 0 if it could look at everything, whatever it found; else the errors of pfs_store_open
 * and of reading. */
PFS_MUST_CHECK int pfs_tree_check(const char *path, const struct pfs_tree_options *options,
				  void (*fn)(void *arg, const char *finding), void *arg);

/* Builds the store at path anew, and replaces the old one by it: slots in pre-order, the smallest
 * primes for the directories with the most nodes, no unused space. Inode numbers change. While it
 * runs it needs as much room again. If it fails or is interrupted, the old store is as it was. */
PFS_MUST_CHECK int pfs_tree_optimize(const char *path, unsigned wait_ms);

#endif
