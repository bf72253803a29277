/* SPDX-License-Identifier: MIT */
/* fs/mount/query/virtual.h - `.query`: nodes that no store holds, made when they are looked up.
 *
 * A node is found by the directory it is in and its name for as long as the kernel knows it, so
 * that a path keeps its node. Its number is even and from 2^63 up, which no prime is. Its st_ino is
 * computed from the names on the way to it, so that listings can give it without making the node.
 * If a file is open, the next lookup of its name makes another node, so that each open file has a
 * size of its own.
 *
 * A file's content is computed when it is opened, and belongs to that open. Only the user who
 * mounted and root are answered; with the option query_others all users are, each about the nodes
 * that he sees (fs/nodes/visible.h). The kernel caches nothing of these nodes but a file's size, so
 * a file's node is never given to two users. README.md lists the files of this folder. */
#ifndef PFS_FS_MOUNT_QUERY_VIRTUAL_H
#define PFS_FS_MOUNT_QUERY_VIRTUAL_H

#include <pthread.h>
#include <unistd.h>

#include "fs/mount/internal.h"
#include "fs/query/output/answer.h"

#define PFS_QUERY_NAME	  ".query"
#define PFS_VIRTUAL_FIRST (UINT64_C(1) << 63)
/* Bytes of memory that an open file has at least; the rest goes to a temporary file. */
#define PFS_ANSWER_MEMORY ((size_t)4 << 20)
/* The same for a user who does not see all nodes; and how many files all such users together may
 * have open, and statements run at a time (shares.h). */
#define PFS_ANSWER_OTHERS ((size_t)256 << 10)
#define PFS_HANDLES_OTHERS 1024u
#define PFS_RUNNING_OTHERS 48u

struct pfs_call;
struct pfs_growing; /* growing.h */
struct pfs_handle;
struct pfs_virtual;

static inline bool pfs_sees_all(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

static inline bool pfs_is_virtual(uint64_t node)
{
	return node >= PFS_VIRTUAL_FIRST;
}

/* ---- kinds of nodes ---- */

/* What a lookup has found. The node that is made of it owns `data`. */
struct pfs_virtual_found {
	const struct pfs_virtual_kind *kind;
	void *data; /* allocated in one piece, or NULL */
};

/* A listing being made. */
struct pfs_virtual_names {
	struct pfs_virtual_name {
		size_t at; /* of the name, in `bytes` */
		mode_t type;
		uint64_t ino; /* the node that a link leads to, or 0 */
	} *names;
	size_t n, capacity;
	char *bytes; /* NUL-ended */
	size_t used, bytes_capacity;
	uint64_t epoch; /* if these are links, sorted by name: the tree's epoch; else 0 */
};
PFS_MUST_CHECK int pfs_virtual_names_add(struct pfs_virtual_names *names, const char *name,
					 size_t len, mode_t type);
void pfs_virtual_names_clear(struct pfs_virtual_names *names);
void pfs_virtual_names_finish(struct pfs_virtual_names *names);

/* The operations of a kind of node. If a member is NULL the kind has no such operation. All return
 * 0 or a negative errno. */
struct pfs_virtual_kind {
	mode_t mode; /* type and the mounting user's permissions */
	bool others_write; /* with query_others every user may write, too */
	/* An open (or, if the kind takes writes, a write) runs a statement and takes a turn. */
	bool runs;
	bool runs_for_others; /* as `runs`, if the user does not see all nodes */
	bool finds; /* a lookup in the directory, and an open of it, may run a statement and takes a
		       turn */
	int (*lookup)(struct pfs_call *call, struct pfs_virtual *dir, const char *name,
		      struct pfs_virtual_found *found);
	int (*list)(struct pfs_call *call, struct pfs_virtual *dir,
		    struct pfs_virtual_names *names);
	/* Makes what an open for reading will read. */
	int (*fill)(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *answer);
	/* Takes the bytes of one write(2), at `offset`. */
	int (*write)(struct pfs_call *call, struct pfs_handle *handle, const char *data,
		     size_t size, off_t offset);
	/* Called with the handle's lock before a read, if writes are answered by reads of the same
	 * file: answers what was written and is not answered yet. */
	int (*settle)(struct pfs_call *call, struct pfs_handle *handle);
	/* Takes all that was written between open and close, in order of offsets. */
	int (*store)(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *bytes);
	size_t store_limit; /* bytes that may be written; 0: no limit */
	int (*make)(struct pfs_call *call, struct pfs_virtual *dir, const char *name, mode_t type);
	int (*remove)(struct pfs_call *call, struct pfs_virtual *dir, const char *name,
		      mode_t type);
	/* Returns true if the node that has `data` is not what a lookup has found; NULL: never. */
	bool (*differ)(const void *data, const void *found);
};

/* ---- nodes ---- */

struct pfs_virtual {
	uint64_t node, st_ino;
	uint64_t ino; /* the directory that `.query` is in */
	uid_t uid;    /* the user who looked it up; no other user gets a regular file's node */
	const struct pfs_virtual_kind *kind;
	struct pfs_virtual *parent; /* NULL: this is `.query`; else held */
	void *data;
	char *name;
	struct pfs_handle *handles; /* protected by the table's lock */
	/* The names listed last to a viewer who sees all; protected by the table's lock. */
	struct pfs_virtual_names links;
	uint64_t lookups;	    /* protected by the table's lock */
	/* The next three are protected by the table's lock, too. */
	uint32_t holds; /* how many children, handles and requests at work use it */
	bool named;	/* a lookup by name finds it */
	bool is_told;	/* the kernel was asked to forget it, and has not looked it up since */
	struct pfs_virtual *next_node, *next_name;
	struct pfs_virtual *older, *newer; /* neighbours by when the kernel last looked them up */
};

struct pfs_virtuals;

/* The kernel forgets nodes when it lacks memory, which may be never. If there are more than
 * PFS_VIRTUALS_KEPT, it is told to forget the oldest: `tell` sends a notice (notify.h) of their
 * directory and name. */
#define PFS_VIRTUALS_KEPT 65536
PFS_MUST_CHECK int pfs_virtuals_open(struct pfs_virtuals **out,
				     void (*tell)(void *arg, uint64_t dir, const char *name),
				     void *arg);
size_t pfs_virtuals_count(struct pfs_virtuals *virtuals);
void pfs_virtuals_stop(struct pfs_virtuals *virtuals); /* stops telling; NULL is allowed */
void pfs_virtuals_close(struct pfs_virtuals *virtuals); /* no request is at work any more */

/* Returns the shares of statements that run for users who do not see all nodes. */
struct pfs_shares *pfs_virtuals_running(struct pfs_virtuals *virtuals);

/* Returns the node of that number, held; NULL if there is none. */
struct pfs_virtual *pfs_virtual_get(struct pfs_virtuals *virtuals, uint64_t node);
enum pfs_virtual_use {
	PFS_VIRTUAL_OPENED,
	PFS_VIRTUAL_WRITTEN,
	PFS_VIRTUAL_SEARCHED, /* a name is looked up in the directory, or it is opened */
};
/* Returns true if a request that uses the node so has to take a turn (turns.h). */
bool pfs_virtual_runs(struct pfs_virtuals *virtuals, uint64_t node, enum pfs_virtual_use use,
		      bool sees_all);
void pfs_virtual_drop(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual);

/* Gets the node for what a lookup in parent (NULL: in the directory ino itself) has found. It is
 * held, and one lookup is counted. found->data is taken over, also on failure. -ENOMEM. */
PFS_MUST_CHECK int pfs_virtual_find(struct pfs_virtuals *virtuals, struct pfs_virtual **out,
				    struct pfs_virtual *parent, uint64_t ino, const char *name,
				    uid_t uid, const struct pfs_virtual_found *found);
void pfs_virtual_forget(struct pfs_virtuals *virtuals, uint64_t node, uint64_t n);

/* Returns the st_ino of the entry `name` of dir (NULL: of the directory ino). */
uint64_t pfs_virtual_st_ino(const struct pfs_virtual *dir, uint64_t ino, const char *name);

/* Returns the node that a link leads to, from a listing of dir that was made at that epoch for a
 * viewer who sees all; 0: not known. A program that lists links asks for each of them, several
 * times. */
uint64_t pfs_virtual_listed(struct pfs_virtuals *virtuals, const struct pfs_virtual *dir,
			    const char *name, uint64_t epoch);

/* ---- open files and directories ---- */

struct pfs_handle {
	struct pfs_virtual *virtual; /* held */
	/* The node's next handle; the newest is first. Protected by the table's lock. */
	struct pfs_handle *next;
	/* The process and user that opened it; all that is done with it is done as that user. */
	pid_t pid;
	bool sees_all;
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	size_t n_groups;
	pthread_mutex_t lock;
	/* protected by lock: */
	struct pfs_answer *answer;   /* the bytes that reads get */
	struct pfs_growing *growing; /* makes the answer; NULL: it is complete */
	struct pfs_answer *written;  /* bytes that are stored at close; NULL: none */
	uint64_t base; /* the offset in the file at which the answer begins */
	uint64_t end;  /* a write at this offset continues the last write */
	char *rest;    /* bytes that were written and are not answered yet; owned */
	size_t n_rest, rest_capacity;
	bool changed; /* written to since it was stored */
	bool emptied; /* opened with O_TRUNC, and not written to yet */
	bool appends; /* opened with O_APPEND: offsets of writes do not count; never changes */
	bool shown;   /* it is in the node's list; protected by the table's lock instead */
	int error;    /* a write's error, which close returns again */
	struct pfs_virtual_names names; /* a directory's listing */
};

/* Makes a handle of the call's node. It joins the node's handles once `fill` has filled it.
 * -ENFILE: the user does not see all nodes, and has as many files open as he may; -ENOMEM; and what
 * fill returns. */
PFS_MUST_CHECK int pfs_handle_open(struct pfs_handle **out, struct pfs_call *call, int flags,
				   int (*fill)(struct pfs_call *call, struct pfs_handle *handle,
					       int flags));
void pfs_handle_close(struct pfs_virtuals *virtuals, struct pfs_handle *handle);
/* Replaces the handle's answer; the new one begins at offset `base` of the file. The handle's lock
 * is held. */
void pfs_handle_replace(struct pfs_handle *handle, struct pfs_answer *answer,
			struct pfs_growing *growing, uint64_t base);
/* Sets attr's st_size to the size of the handle's answer. If that is not known yet, returns true,
 * and replies with attr once it is. */
bool pfs_handle_measure(struct pfs_handle *handle, fuse_req_t req, struct stat *attr);
/* Returns the st_size of the call's node: that of `handle` or, if handle is NULL, of the handle
 * that the calling thread has opened, or else of the only handle that the same user and groups
 * have. In the last case, if the size is not known, some of the answer is measured. 0: there is no
 * such handle, or its size is not known. */
uint64_t pfs_handles_size(const struct pfs_call *call, struct pfs_handle *handle);
/* Makes the call go on as the user who opened the handle. */
void pfs_handle_act(const struct pfs_handle *handle, struct pfs_call *call);
static inline struct pfs_handle *pfs_handle_of(const struct fuse_file_info *fi)
{
	return (struct pfs_handle *)(uintptr_t)fi->fh; /* NOLINT(performance-no-int-to-ptr): the one cast */
}

/* ---- callers ---- */

struct pfs_facet_columns;
struct pfs_known_columns;
/* Makes the cache of the columns that facets show; it is empty. -ENOMEM. */
PFS_MUST_CHECK int pfs_known_columns_open(struct pfs_known_columns **out);
void pfs_known_columns_close(struct pfs_known_columns *known); /* NULL is allowed */
/* Adds the columns of nodes that the caller sees to `columns`, which is empty. Errors are those of
 * a statement. */
PFS_MUST_CHECK int pfs_call_columns(struct pfs_call *call, struct pfs_facet_columns *columns);

/* For each user the last errors, as texts: what `.query/error` says. */
struct pfs_reasons;
PFS_MUST_CHECK int pfs_reasons_open(struct pfs_reasons **out);
void pfs_reasons_close(struct pfs_reasons *reasons);
void pfs_reasons_keep(struct pfs_reasons *reasons, uid_t uid, const char *text);
/* As pfs_reasons_keep, for a text that is about the node with st_ino `about` (0: about none). */
void pfs_reasons_tell(struct pfs_reasons *reasons, uid_t uid, uint64_t about, const char *text);

/* A request at work. */
struct pfs_call {
	struct pfs_mount *mount;
	fuse_req_t req;
	struct pfs_virtual *virtual; /* the node of the request, held; NULL: none yet */
	struct pfs_query_scope scope;
	pid_t pid;
	gid_t *groups;
	uint64_t reason; /* st_ino of the node that errors are kept about, too */
	uint64_t epoch;	 /* the epoch that the last statement saw */
	pthread_mutex_t lock;
	struct pfs_query *query;  /* protected by lock */
	_Atomic bool interrupted;
	bool wants_all; /* the answer is to be complete before it is read */
	struct pfs_growing
		*growing; /* an answer that goes on growing after the reply; NULL: none */
	bool making; /* the lookup precedes making the entry, which need not exist yet */
};

/* Begins a call about the virtual node of that number (0: none) below the directory ino. Each call
 * that has begun is ended (pfs_call_end) before the reply, since the reply ends the request.
 * -EACCES: the user may not use `.query`; -ESTALE: there is no such node. */
PFS_MUST_CHECK int pfs_call_begin(struct pfs_call *call, fuse_req_t req, uint64_t node,
				  uint64_t ino);
void pfs_call_end(struct pfs_call *call);
bool pfs_call_is_gone(void *call); /* true if it was interrupted: no process waits for it */
/* Makes the call go on with another node, by its number. */
PFS_MUST_CHECK int pfs_call_move(struct pfs_call *call, uint64_t node);

/* Remembers why something failed, for `.query/error`; returns `error`. */
int pfs_call_fail(struct pfs_call *call, int error, const char *format, ...) PFS_PRINTF(3, 4);

/* Makes an empty answer for the call's user. -ENOMEM. */
PFS_MUST_CHECK int pfs_call_room(const struct pfs_call *call, struct pfs_answer **out,
				 uint64_t limit);

/* Runs a statement into an answer, to its end or until call->growing takes it over. If it fails,
 * remembers why. */
PFS_MUST_CHECK int pfs_call_answer(struct pfs_call *call, struct pfs_answer *answer,
				   enum pfs_format format, const char *sql, size_t len);
/* Runs a statement and calls row for each row, until it returns non-zero, which is returned. A call
 * with query NULL says that the rows begin anew and those before do not count. */
PFS_MUST_CHECK int pfs_call_rows(struct pfs_call *call, const char *sql, size_t len,
				 int (*row)(void *arg, const struct pfs_query *query), void *arg);
/* Prepares a statement without running it, for its columns and plan; pfs_call_stop ends it. */
PFS_MUST_CHECK int pfs_call_start(struct pfs_call *call, struct pfs_query **query, const char *sql,
				  size_t len);
void pfs_call_stop(struct pfs_call *call, struct pfs_query *query);

/* Gets the lines of `.query/as_of` that say when the directory, and parts of it, were last compared
 * with their folders; the caller frees them. */
PFS_MUST_CHECK int pfs_call_compared(struct pfs_call *call, char **text);

/* Returns the text of the user's last error about the node with st_ino `about` (0: of the last
 * error at all), which the caller frees; NULL: there is none. */
char *pfs_call_reason(struct pfs_call *call, uint64_t about);
void pfs_call_keep(struct pfs_call *call, uint64_t about, const char *text);
void pfs_call_forget_reason(struct pfs_call *call, uint64_t about);

/* ---- the nodes, by subject ---- */

extern const struct pfs_virtual_kind pfs_query_kind; /* `.query` */
extern const struct pfs_virtual_kind pfs_help_kind;
extern const struct pfs_virtual_kind pfs_resolve_kind;
extern const struct pfs_virtual_kind pfs_where_kind;
extern const struct pfs_virtual_kind pfs_tables_kind;
extern const struct pfs_virtual_kind pfs_stats_kind;

/* Appends the text to the answer. Errors as of pfs_answer_write. */
PFS_MUST_CHECK int pfs_answer_text(struct pfs_answer *answer, const char *text);

/* The saved queries of the directory ino, for `.query`'s listing and lookup. */
PFS_MUST_CHECK int pfs_saved_list(struct pfs_call *call, struct pfs_virtual_names *names);
PFS_MUST_CHECK int pfs_saved_lookup(struct pfs_call *call, const char *name,
				    struct pfs_virtual_found *found);
PFS_MUST_CHECK int pfs_saved_make(struct pfs_call *call, const char *name);
PFS_MUST_CHECK int pfs_saved_remove(struct pfs_call *call, const char *name);

/* Make symlinks to the nodes of a statement `SELECT name, ino, path ...`. pfs_links_list makes one
 * to each node; pfs_links_lookup one to the node of a name. The links lie `up` directories below
 * the one that `.query` is in. */
PFS_MUST_CHECK int pfs_links_list(struct pfs_call *call, struct pfs_virtual_names *names,
				  const char *from);
/* As pfs_links_lookup, from the last listing, if that is of the present epoch; -ENOENT: it is not,
 * or has no such name. */
PFS_MUST_CHECK int pfs_links_known(struct pfs_call *call, struct pfs_virtual_found *found,
				   const struct pfs_virtual *dir, const char *name, unsigned up);
PFS_MUST_CHECK int pfs_links_lookup(struct pfs_call *call, struct pfs_virtual_found *found,
				    const char *name, const char *from, unsigned up);

/* Makes an entry of the call's node and looks it up. */
PFS_MUST_CHECK int pfs_virtual_make(struct pfs_call *call, struct fuse_entry_param *param,
				    const char *name, mode_t type);

/* If the extended attribute `name` is a total of a subtree, and the caller does not see all nodes,
 * returns the column of `nodes` with the total of the nodes that he sees; else NULL. */
const char *pfs_limited_total(fuse_req_t req, const char *name);

#endif
