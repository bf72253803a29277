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
	PFS_LINKS_AUTO, /* if the store is the very file that import wrote, this user's, and only
			   that one's to write: enum pfs_store_trust */
	PFS_LINKS_NO,
	PFS_LINKS_YES,
};

struct pfs_tree_options {
	enum pfs_links_choice links; /* whether originals are followed; else they read -ENODATA */
	bool read_only;
	bool alone;	  /* with read_only: lock the store as a writer does */
	bool beside_writer; /* with read_only: without a lock, all of the group committed last */
	bool no_atime;    /* never update access times */
	bool no_image_file; /* load the image from the store's rows, whatever lies beside it */
	/* When it is closed, one is written by another process (fs/image/imagefile.h); the closing
	 * process then ends. */
	bool leave_image_file;
	/* Has one made by another process, of a large store whose image file many changes have outdated, or that has none,
	 * when nothing has changed for image_idle_ms (0: 60,000), or, where changes do not pause, when very many have and
	 * the last one is image_beside_ms old (0: 600,000); by the committer, which waits for it.  NULL: not. */
	void (*make_image_file)(const char *store);
	unsigned image_idle_ms, image_beside_ms;
	unsigned wait_ms; /* for another process's lock on the store */
	const struct pfs_history_rule *history; /* of what was before, to be kept from now on (meta/history.h); NULL: as
						   the store has it.  Not read_only */
	int64_t at;	  /* with read_only: as it was then (struct pfs_store_options); 0: as it is */
	enum pfs_engine_kind engine; /* who answers questions about sets */
	const char *vfs;  /* see pfs_store_options */
	uint64_t pending_limit; /* bytes of changes not yet committed; 0: 256 MiB */
	unsigned commit_ms;     /* commit at least this often; 0: 1,000 */
	unsigned retry_ms;      /* try a failed commit again after; 0: 1,000 */
};

/* Opens the store and loads the image.  *out is NULL on failure; pfs_store_explain has a sentence
 * for the errors of pfs_store_open. */
PFS_MUST_CHECK int pfs_tree_open(struct pfs_tree **out, const char *path,
				 const struct pfs_tree_options *options);

/* Starts the committer and its helpers; call after daemonizing (threads do not survive a fork).
 * Until then changes are refused with -EROFS. */
PFS_MUST_CHECK int pfs_tree_start(struct pfs_tree *tree);

/* Commits what is pending, and closes the store. NULL is allowed. Returns the first error. */
int pfs_tree_close(struct pfs_tree *tree);

bool pfs_tree_is_read_only(const struct pfs_tree *tree);

/* Returns true if there may be nodes that are linked to files outside, which change on their
 * own. */
bool pfs_tree_has_links(const struct pfs_tree *tree);
/* Returns true if there may be files whose content is made of their rows, which change with
 * names. */
bool pfs_tree_has_rows(const struct pfs_tree *tree);

/* Returns true if links=auto leaves originals alone, with a line that says how many, where they are
 * and what to do. Locks nothing: to be called before pfs_tree_start. */
bool pfs_tree_links_refused(struct pfs_tree *tree, char *out, size_t size);

/* Says who asks, and so owns what is created; privileged (uid 0) callers keep suid and sgid as
 * Linux has it. Access itself is decided by the kernel (default_permissions). */
struct pfs_caller {
	uid_t uid;
	gid_t gid;
	mode_t umask;
};

/* Is told when something changed that the kernel may have cached and did not ask for. Called
 * without locks, from any thread; it must not block. */
struct pfs_tree_listener {
	void *arg;
	/* The entry `name` of the inode changed; NULL: the inode's attributes and content. */
	void (*changed)(void *arg, uint64_t ino, const char *name);
	/* The inode's attributes and content are others now because of something that the kernel asked
	 * for of another one, or of its name.  NULL is allowed. */
	void (*stale)(void *arg, uint64_t ino);
	/* Around the calls of changed and stale for what one statement has done, by the thread that
	 * calls: end returns when the kernel knows, and may block.  A refresh, which says itself
	 * what the kernel has cached, calls end alone.  NULL is allowed. */
	void (*begin)(void *arg);
	void (*end)(void *arg);
	/* A node is about to take over its original's mode or owner: nobody has seen it yet. */
	void (*rights_change)(void *arg, uint64_t ino);
};
/* Takes the place of the listener that there was, and returns when no call of that one is under
 * way. */
void pfs_tree_listen(struct pfs_tree *tree, const struct pfs_tree_listener *listener);

/* ---- names ---- */

struct pfs_entry {
	struct stat attr;
	bool volatile_attr; /* may change without the kernel: cache it for no time */
	bool row;	    /* was a row of the table that it came with */
};

/* Finds the entry `name`, and takes a reference on success. "." and ".." work: a handle that
 * outlived a forget comes in so. -ENOENT, -ENOTDIR, -ENAMETOOLONG. */
PFS_MUST_CHECK int pfs_tree_lookup(struct pfs_tree *tree, struct pfs_entry *out, uint64_t parent,
				   const char *name);

/* Drops n references. */
void pfs_tree_forget(struct pfs_tree *tree, uint64_t ino, uint64_t n);

/* Makes a node of the type that mode has: regular, directory, fifo, socket, character, block. Takes
 * a reference. -EEXIST, also for ".query"; -ENOENT: the parent was removed; -ENOTDIR,
 * -ENAMETOOLONG; -EINVAL: the name is empty, "." or "..", or has a '/'. */
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

/* Renames as rename(2) does, by all of its rules that concern the tree. flags: 0, RENAME_NOREPLACE
 * or RENAME_EXCHANGE; others are -EINVAL. */
PFS_MUST_CHECK int pfs_tree_rename(struct pfs_tree *tree, uint64_t parent, const char *name,
				   uint64_t new_parent, const char *new_name, unsigned flags);

/* ---- directories ----
 * Offsets: 0 starts; entries carry the offset to resume after them, which stays right while
 * entries come and go. */

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
				    int (*fn)(void *arg, const struct pfs_dirent *entry), void *arg);

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

/* Sets the fields of attr that `set` names, all or none, with Linux's side effects (chown and
 * truncate clear suid and sgid, ctime moves; naming none is a chown that keeps both owners; a size
 * alone that is the same as before moves no times, as truncate(2) has it, unlike ftruncate(2)).
 * -EFBIG, -EISDIR, -EINVAL. */
PFS_MUST_CHECK int pfs_tree_setattr(struct pfs_tree *tree, struct pfs_entry *out, uint64_t ino,
				    const struct stat *attr, unsigned set,
				    const struct pfs_caller *caller);

/* Totals of a node and all that lies below it. Original files count as they were when last looked
 * at. */
struct pfs_totals {
	uint64_t count;	 /* of nodes */
	uint64_t size;	 /* sum of st_size of what is no directory; modulo 2^64 */
	uint64_t blocks; /* sum of st_blocks; modulo 2^64 */
	int64_t mtime;	 /* the newest, in nanoseconds, or the nearest that 64 bits hold */
};

/* Gets the totals of a node; one without a name is all by itself. The first call takes a while
 * (fs/image/totals.h); from then on the totals are kept. -ESTALE, -ENOMEM. */
PFS_MUST_CHECK int pfs_tree_totals(struct pfs_tree *tree, struct pfs_totals *out, uint64_t ino);

PFS_MUST_CHECK int pfs_tree_statfs(struct pfs_tree *tree, struct statvfs *out);

/* Extended attributes: user.* and the virtual user.primefs.prime, .code, .ancestors, .path, and
 * .subtree_count, _size, _blocks and _mtime (struct pfs_totals).
 * size 0 asks for the length.  -ENODATA, -ERANGE, -EOPNOTSUPP (other namespaces), -EPERM (virtual
 * ones, and user.* on what is neither file nor directory), -E2BIG (a virtual one longer than the
 * kernel passes on, too), -ENOSPC. */
PFS_MUST_CHECK ssize_t pfs_tree_getxattr(struct pfs_tree *tree, void *value, size_t size,
					 uint64_t ino, const char *name);
PFS_MUST_CHECK ssize_t pfs_tree_listxattr(struct pfs_tree *tree, char *list, size_t size,
					  uint64_t ino);
PFS_MUST_CHECK int pfs_tree_setxattr(struct pfs_tree *tree, uint64_t ino, const char *name,
				     const void *value, size_t size, int flags);
PFS_MUST_CHECK int pfs_tree_removexattr(struct pfs_tree *tree, uint64_t ino, const char *name);

/* Calls fn with the name of each attribute that was imported as a column, in their order, until it
 * returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_tree_imported_columns(struct pfs_tree *tree,
					     int (*fn)(void *arg, const void *name, size_t name_len),
					     void *arg);

/* The columns of a register (meta/store.h) are attributes of all nodes below its root.  Those that
 * follow from the node's place (its parent's id, its name, its path) are read only (-EPERM), are not
 * listed, and not stored.  user.primefs.row is all of them, as the content of a row's file is. */
struct pfs_register_record;

/* Tells what the table is like whose rows lie at and below the node; pointers are valid until
 * close. -ENODATA: there is none. */
PFS_MUST_CHECK int pfs_tree_register(struct pfs_tree *tree, struct pfs_register_record *out,
				     uint64_t ino);

/* Saved queries of a directory: texts by name, which move and die with it and are no attributes to
 * anybody else.  flags as for setxattr; value NULL removes.  Errors as above; -ERANGE: the name is
 * too long. */
PFS_MUST_CHECK ssize_t pfs_tree_get_saved(struct pfs_tree *tree, void *value, size_t size,
					  uint64_t ino, const char *name);
PFS_MUST_CHECK int pfs_tree_set_saved(struct pfs_tree *tree, uint64_t ino, const char *name,
				      const void *value, size_t size, int flags);
/* Calls fn for each of the directory's, until it returns non-zero, which is returned. */
PFS_MUST_CHECK int pfs_tree_list_saved(struct pfs_tree *tree, uint64_t ino,
				       int (*fn)(void *arg, const char *name, size_t len),
				       void *arg);

/* Gets, and sets, the attribute in which primefs keeps something about a file's content (a hash); the
 * text says which size and mtime it belongs to. Neither moves a time. Errors as above. */
PFS_MUST_CHECK ssize_t pfs_tree_get_hash(struct pfs_tree *tree, void *value, size_t size, uint64_t ino);
PFS_MUST_CHECK int pfs_tree_set_hash(struct pfs_tree *tree, uint64_t ino, const void *value,
				     size_t size);

/* ---- content ----
 * No open is needed: a reference keeps content readable and writable.  `nowait` makes a call that
 * would wait for the disk or for the committer return -EAGAIN instead, so that a dispatch thread
 * can hand it to another. */

/* Checks that a file can be opened with these flags of open(2), and refreshes it from its original.
 * O_TRUNC truncates, which is what `privileged` is for, as in pfs_tree_write. *volatile_attr as in
 * struct pfs_entry. -ESTALE, -EROFS, -EISDIR. */
PFS_MUST_CHECK int pfs_tree_open_file(struct pfs_tree *tree, bool *volatile_attr, uint64_t ino,
				      int flags, bool privileged, bool nowait);

enum pfs_read_flag {
	PFS_READ_NOWAIT = 1,
	PFS_READ_NOATIME = 2, /* leaves the access time alone */
};

/* Reads; returns the number of bytes, fewer than `size` only at the end of the file. Updates atime
 * as relatime does. */
PFS_MUST_CHECK ssize_t pfs_tree_read(struct pfs_tree *tree, void *data, size_t size, uint64_t ino,
				     int64_t offset, unsigned flags);

/* Writes all of `size` bytes, or returns an error; what is more than 1 MiB may be written in part.
 * privileged: keeps suid and sgid. */
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

PFS_MUST_CHECK ssize_t pfs_tree_copy_range(struct pfs_tree *tree, uint64_t from, int64_t from_offset,
					   uint64_t to, int64_t to_offset, size_t size,
					   bool privileged);

/* ---- durability ---- */

/* Returns when all that was done before the call is committed, or the error if it cannot be. */
PFS_MUST_CHECK int pfs_tree_sync(struct pfs_tree *tree);

/* Returns the error of a commit that failed, until one succeeds; or 0. */
PFS_MUST_CHECK int pfs_tree_failure(struct pfs_tree *tree);

/* ---- for commands ---- */

struct pfs_tree_info {
	uint64_t nodes, directories, files; /* root included; files: all that is no directory */
	uint64_t bytes;         /* sum of st_size of what is no directory */
	/* Files whose content is their row; files that were written to, whose content is so no
	 * more. */
	uint64_t rows, written;
	uint32_t max_depth;     /* the root has depth 0 */
	uint32_t max_code_bits; /* of all nodes' codes */
	uint64_t epoch;
	uint64_t memory_bytes; /* columns, names, indexes and totals */
	uint64_t name_bytes;   /* of which names */
	unsigned schema;       /* the version of the store's format */
	uint64_t seed;	       /* random, fixed when the store was made: its copies have the same */
};
PFS_MUST_CHECK int pfs_tree_info(struct pfs_tree *tree, struct pfs_tree_info *out);

/* Describes what the store keeps of the past, and what that costs. */
PFS_MUST_CHECK int pfs_tree_history(struct pfs_tree *tree, struct pfs_history *out);
/* The tree's store as it was: pfs_history_open. */
PFS_MUST_CHECK int pfs_tree_history_open(struct pfs_tree *tree, struct pfs_store **out, int64_t at,
					 int (*tick)(void *arg), void *arg);

/* Absolute path in the store -> inode number.  -ENOENT, -ENOTDIR. */
PFS_MUST_CHECK int pfs_tree_resolve(struct pfs_tree *tree, uint64_t *ino, const char *path);

/* Gets the node's absolute path, which the caller frees. */
PFS_MUST_CHECK int pfs_tree_path(struct pfs_tree *tree, char **path, uint64_t ino);

/* Gets the node's code (the product of the primes on its path) in decimal, which the caller
 * frees. */
PFS_MUST_CHECK int pfs_tree_code(struct pfs_tree *tree, char **decimal, uint64_t ino);

/* Finds the node that has the code. -ENOENT: none has; -EINVAL: it is no number; -E2BIG: it is
 * longer than 1 MiB; -ENODEV, -ENOMEM. */
PFS_MUST_CHECK int pfs_tree_node_of_code(struct pfs_tree *tree, uint64_t *ino, const char *decimal);

/* Gets the primes of the directories above the node, the root's first, each ended by a newline; the
 * caller frees them. */
PFS_MUST_CHECK int pfs_tree_ancestors(struct pfs_tree *tree, char **lines, uint64_t ino);

/* Visits the subtree of ino in pre-order, children in byte order of names, itself first, until fn
 * returns non-zero, which is returned.  path is relative to ino, "" for itself. */
struct pfs_walk_node {
	const char *path;
	size_t path_len;
	uint32_t depth; /* below ino */
	struct pfs_entry entry;
};
PFS_MUST_CHECK int pfs_tree_walk(struct pfs_tree *tree, uint64_t ino,
				 int (*fn)(void *arg, const struct pfs_walk_node *node), void *arg);

/* ---- questions about sets: answered by the engine (gpu/engine.h), from the codes ---- */

/* Sets who answers from the first question on; pfs_tree_options.engine says so until then. */
void pfs_tree_use_engine(struct pfs_tree *tree, enum pfs_engine_kind kind);
enum pfs_engine_kind pfs_tree_engine_kind(struct pfs_tree *tree);

/* Describes the engine, and opens it if nobody has asked anything yet, but fills nothing:
 * directories, deep and code_limbs are those of the last question. The tree is not held. -ENODEV,
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_tree_engine(struct pfs_tree *tree, struct pfs_engine_info *info);

enum pfs_relation {
	PFS_SUBTREE,	      /* under any of the nodes, these included */
	PFS_ANCESTORS,	      /* proper ancestors of any of them */
	PFS_CHILDREN,	      /* whose parent is one of them */
	PFS_PARENTS,	      /* in which one of them lies directly */
	PFS_COMMON_ANCESTORS, /* proper ancestors of all of them */
	PFS_DEEPEST_COMMON,   /* the deepest node that all of them are or lie under */
};

struct pfs_question {
	enum pfs_relation relation;
	const uint64_t *inos;
	size_t n; /* 1 or more */
};

/* Counts the nodes that answer the question. -ENOENT: no node has one of the inode numbers, or it
 * has no name. -ENODEV: options.engine asked for a device that is not there. -EAGAIN: the tree changes
 * faster than the engine follows it. */
PFS_MUST_CHECK int pfs_tree_count(struct pfs_tree *tree, uint64_t *count,
				  const struct pfs_question *question);

enum pfs_list_flag {
	PFS_LIST_INO = 1,  /* the prime in decimal and a tab before each path */
	PFS_LIST_ZERO = 2, /* NUL after each path, not a newline */
};

/* Lists the nodes' absolute paths in component-wise pre-order, all as they were at one moment, in
 * pieces of whole lines, until fn returns non-zero, which is returned. fn is called while the tree
 * is held. */
PFS_MUST_CHECK int pfs_tree_list(struct pfs_tree *tree, const struct pfs_question *question,
				 unsigned flags,
				 int (*fn)(void *arg, const char *bytes, size_t size), void *arg);

/* Sets *wrong to how many directories' codes on the engine differ from GMP's product. */
PFS_MUST_CHECK int pfs_tree_check_codes(struct pfs_tree *tree, uint64_t *wrong);

/* Looks at the store at path, damaged or not: every node reachable, names valid and unique, slots
 * unique, primes prime, unique, handed out and of their kind's range; then pfs_store_check. Calls
 * fn with a line for each finding. Of options it uses wait_ms and vfs. Returns 0 if it could look
 * at everything, whatever it found; else what pfs_store_open and reading return. */
PFS_MUST_CHECK int pfs_tree_check(const char *path, const struct pfs_tree_options *options,
				  void (*fn)(void *arg, const char *finding), void *arg);

/* Builds the store at path anew and puts it in its own place: slots in pre-order, the smallest primes for
 * the heaviest directories, no unused space.  Inode numbers change.  Needs as much room again while it
 * runs; when it fails or is interrupted the old store is as it was. */
PFS_MUST_CHECK int pfs_tree_optimize(const char *path, unsigned wait_ms);

#endif
