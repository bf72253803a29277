/* SPDX-License-Identifier: MIT */
/* fs/mount/query/virtual.h - `.query`: nodes that no store holds, made when they are looked up.
 *
 * A node is found by the directory it is in and its name for as long as the kernel knows it, so
 * that a path keeps its node. Its number is even and from 2^63 up, which no prime is. Its st_ino is
 * computed from the names on the way to it, so that listings can tell it without making the node. A
 * file that is open is not given to the next who looks it up, so that its size is its only
 * reader's.
 *
 * What a file holds is computed when it is opened, and belongs to that open. Only the user who
 * mounted and root are answered; with the option query_others all users are, each about what he
 * sees (fs/nodes/visible.h). The kernel keeps nothing of these nodes but a file's size, so a file's
 * node is never given to two users.
 *
 * The files: turns.c has who waits for a turn; growing.c answers that are read while they are made;
 * virtual.c the table of nodes; virtual_ops.c FUSE's side; virtual_call.c a caller, its statements
 * and their errors; the others have the nodes themselves, by subject. */
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
#define PFS_ANSWER_OTHERS ((size_t)256 << 10) /* of those who do not see all, */
#define PFS_HANDLES_OTHERS 1024u	      /* and how much they may have open together; */
#define PFS_RUNNING_OTHERS 48u		      /* statements that run for them: of each, see shares.h */

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

/* Tells what a lookup has found; `data` becomes the node's. */
struct pfs_virtual_found {
	const struct pfs_virtual_kind *kind;
	void *data; /* allocated in one piece, or NULL */
};

/* A listing being made. */
struct pfs_virtual_names {
	struct pfs_virtual_name {
		size_t at; /* of the name, in `bytes` */
		mode_t type;
		uint64_t ino; /* that a link leads to, or 0 */
	} *names;
	size_t n, capacity;
	char *bytes; /* NUL-ended */
	size_t used, bytes_capacity;
	uint64_t epoch; /* of the tree, if these are links, sorted by name; else 0 */
};
PFS_MUST_CHECK int pfs_virtual_names_add(struct pfs_virtual_names *names, const char *name, size_t len, mode_t type);
void pfs_virtual_names_clear(struct pfs_virtual_names *names);
void pfs_virtual_names_finish(struct pfs_virtual_names *names);

/* The operations of a kind of node. If a member is NULL the kind has no such operation. All return
 * 0 or a negative errno. */
struct pfs_virtual_kind {
	mode_t mode; /* type and the mounting user's permissions */
	bool others_write; /* with query_others every user may write, too */
	bool runs;	   /* an open (or, if it takes writes, a write) runs a statement and takes a turn; */
	bool runs_for_others; /* so does that of a user who does not see all */
	int (*lookup)(struct pfs_call *call, struct pfs_virtual *dir, const char *name,
		      struct pfs_virtual_found *found);
	int (*list)(struct pfs_call *call, struct pfs_virtual *dir, struct pfs_virtual_names *names);
	/* Makes what an open for reading will read. */
	int (*fill)(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *answer);
	/* Takes the bytes of one write(2), at `offset`. */
	int (*write)(struct pfs_call *call, struct pfs_handle *handle, const char *data, size_t size,
		     off_t offset);
	/* Called with the handle's lock, before a read of what writes were answered with: answers
	 * the rest of them. */
	int (*settle)(struct pfs_call *call, struct pfs_handle *handle);
	/* Takes all that was written between open and close, in order of offsets. */
	int (*store)(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *bytes);
	size_t store_limit; /* bytes, 0: none */
	int (*make)(struct pfs_call *call, struct pfs_virtual *dir, const char *name, mode_t type);
	int (*remove)(struct pfs_call *call, struct pfs_virtual *dir, const char *name, mode_t type);
	/* Returns true if a node that is known has become another one (NULL: never). */
	bool (*differ)(const void *data, const void *found);
};

/* ---- nodes ---- */

struct pfs_virtual {
	uint64_t node, st_ino;
	uint64_t ino; /* the directory that `.query` is in */
	uid_t uid;    /* who found it; a regular file's node is found by nobody else */
	const struct pfs_virtual_kind *kind;
	struct pfs_virtual *parent; /* NULL: this is `.query`; else held */
	void *data;
	char *name;
	struct pfs_handle *handles; /* protected by the table's lock */
	/* The names listed last to a viewer who sees all; protected by the table's lock. */
	struct pfs_virtual_names links;
	uint64_t lookups;	    /* protected by the table's lock */
	uint32_t holds;		    /* the same; children, handles, and requests at work on it */
	bool named;		    /* the same; it is found by name */
	bool is_told; /* the same; the kernel was asked to forget it, and has not looked it up since */
	struct pfs_virtual *next_node, *next_name;
	struct pfs_virtual *older, *newer; /* neighbours by when the kernel last looked them up */
};

struct pfs_virtuals;

/* The kernel forgets nodes when it lacks memory, which may be never. Beyond PFS_VIRTUALS_KEPT it is
 * told to forget the oldest, by notices (notify.h) of their directory and name. */
#define PFS_VIRTUALS_KEPT 65536
PFS_MUST_CHECK int pfs_virtuals_open(struct pfs_virtuals **out,
				     void (*tell)(void *arg, uint64_t dir, const char *name),
				     void *arg);
size_t pfs_virtuals_count(struct pfs_virtuals *virtuals);
void pfs_virtuals_stop(struct pfs_virtuals *virtuals); /* stops telling; NULL is allowed */
void pfs_virtuals_close(struct pfs_virtuals *virtuals); /* no request is at work any more */

/* Returns the shares of running statements of users who do not see all. */
struct pfs_shares *pfs_virtuals_running(struct pfs_virtuals *virtuals);

/* Returns the node of that number, held; NULL if there is none. */
struct pfs_virtual *pfs_virtual_get(struct pfs_virtuals *virtuals, uint64_t node);
/* Returns true if an open of the node, or a write to it, has to take a turn (turns.h). */
bool pfs_virtual_runs(struct pfs_virtuals *virtuals, uint64_t node, bool writes, bool sees_all);
void pfs_virtual_drop(struct pfs_virtuals *virtuals, struct pfs_virtual *virtual);

/* Gets the node for what a lookup in parent (NULL: in the directory ino itself) has found, held and
 * with a lookup counted. Takes found->data in any case. -ENOMEM. */
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
	struct pfs_handle *next;     /* the node's next, the one opened last first; the table's lock */
	/* The process and user that opened it; what is done with it is done as that user. */
	pid_t pid;
	bool sees_all;
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	size_t n_groups;
	pthread_mutex_t lock;
	struct pfs_answer *answer;  /* what is read; protected by lock, as `growing` is */
	struct pfs_growing *growing; /* makes the answer; NULL: it is complete */
	struct pfs_answer *written; /* what is stored at close; NULL: nothing */
	uint64_t base; /* offset that the answer is read from; protected by lock */
	uint64_t end;  /* offset where a write continues the last one; the same */
	char *rest;    /* what was written and is not answered yet; owned; the same */
	size_t n_rest, rest_capacity;
	bool changed;  /* since it was stored; the same */
	bool emptied;  /* opened to be truncated, and not written to yet; the same */
	bool appends;  /* opened so: offsets of writes do not count */
	bool shown;    /* among the node's; the table's lock */
	int error;     /* of a write, told again at close; protected by lock */
	struct pfs_virtual_names names;	    /* a directory's */
};

/* Makes a handle of the call's node, which is one of the node's once `fill` has completed it.
 * -ENFILE: the user does not see all and has his share open; -ENOMEM; and what fill returns. */
PFS_MUST_CHECK int pfs_handle_open(struct pfs_handle **out, struct pfs_call *call, int flags,
				   int (*fill)(struct pfs_call *call, struct pfs_handle *handle,
					       int flags));
void pfs_handle_close(struct pfs_virtuals *virtuals, struct pfs_handle *handle);
/* Lets another answer take the place of what is read, from offset `base` on. The handle's lock is
 * held. */
void pfs_handle_replace(struct pfs_handle *handle, struct pfs_answer *answer,
			struct pfs_growing *growing, uint64_t base);
/* Sets attr's size to that of what is read; if that is not known yet, replies with attr once it is, and returns true. */
bool pfs_handle_measure(struct pfs_handle *handle, fuse_req_t req, struct stat *attr);
/* Returns the st_size of the call's node for who asks with a handle or, without one (NULL), of the
 * handle that the thread has open, or else of the only one of the same user and groups; some of it is measured for
 * the latter where it is not known. 0: there is no such handle, or it is not known. */
uint64_t pfs_handles_size(const struct pfs_call *call, struct pfs_handle *handle);
/* Makes the call, whosever it is, go on as the user who opened the handle. */
void pfs_handle_act(const struct pfs_handle *handle, struct pfs_call *call);
static inline struct pfs_handle *pfs_handle_of(const struct fuse_file_info *fi)
{
	return (struct pfs_handle *)(uintptr_t)fi->fh; /* NOLINT(performance-no-int-to-ptr): the one cast */
}

/* ---- callers ---- */

/* The reason of what was last wrong, by user. */
/* Adds the columns of nodes that the caller may know of to `columns`, which is empty. The
 * statement's errors. */
struct pfs_facet_columns;
struct pfs_known_columns;
PFS_MUST_CHECK int pfs_known_columns_open(struct pfs_known_columns **out);
void pfs_known_columns_close(struct pfs_known_columns *known); /* NULL is allowed */
PFS_MUST_CHECK int pfs_call_columns(struct pfs_call *call, struct pfs_facet_columns *columns);

struct pfs_reasons;
PFS_MUST_CHECK int pfs_reasons_open(struct pfs_reasons **out);
void pfs_reasons_close(struct pfs_reasons *reasons);
void pfs_reasons_keep(struct pfs_reasons *reasons, uid_t uid, const char *text);
/* As pfs_reasons_keep, about st_ino `about` (0: nothing). */
void pfs_reasons_tell(struct pfs_reasons *reasons, uid_t uid, uint64_t about, const char *text);

/* A request at work. */
struct pfs_call {
	struct pfs_mount *mount;
	fuse_req_t req;
	struct pfs_virtual *virtual; /* the node that it is about, held; NULL: none yet */
	struct pfs_query_scope scope;
	pid_t pid;
	gid_t *groups;
	uint64_t reason; /* st_ino of the node for which errors are kept besides */
	uint64_t epoch;	 /* the epoch that the last statement saw */
	pthread_mutex_t lock;
	struct pfs_query *query;  /* protected by lock */
	_Atomic bool interrupted;
	bool wants_all; /* the answer is to be complete before it is read */
	struct pfs_growing *growing; /* an answer that goes on growing after the reply; NULL: none */
	bool making; /* the entry that is looked up is being made, and need not be there yet */
};

/* Begins a call about the virtual node of that number (0: none) below the directory ino. Calls that
 * have begun are ended before the reply, which ends the request. -EACCES: the caller may not;
 * -ESTALE: there is no such node. */
PFS_MUST_CHECK int pfs_call_begin(struct pfs_call *call, fuse_req_t req, uint64_t node, uint64_t ino);
void pfs_call_end(struct pfs_call *call);
bool pfs_call_is_gone(void *call); /* true if it was interrupted: nobody waits for it */
/* Makes the call go on with another node, by its number. */
PFS_MUST_CHECK int pfs_call_move(struct pfs_call *call, uint64_t node);

/* Remembers why something failed, for `.query/error`; returns `error`. */
int pfs_call_fail(struct pfs_call *call, int error, const char *format, ...) PFS_PRINTF(3, 4);

/* Makes an empty answer for the call's user. -ENOMEM. */
PFS_MUST_CHECK int pfs_call_room(const struct pfs_call *call, struct pfs_answer **out, uint64_t limit);

/* Runs a statement into an answer, to its end or until call->growing goes on with it; remembers why
 * it failed. */
PFS_MUST_CHECK int pfs_call_answer(struct pfs_call *call, struct pfs_answer *answer,
				   enum pfs_format format, const char *sql, size_t len);
/* Runs a statement and calls row for each row, until it returns non-zero, which is returned. A call
 * with query NULL says that the rows begin anew and those before do not count. */
PFS_MUST_CHECK int pfs_call_rows(struct pfs_call *call, const char *sql, size_t len,
				 int (*row)(void *arg, const struct pfs_query *query), void *arg);
/* Starts a statement without running it, for what can be said of it; pfs_call_stop ends it. */
PFS_MUST_CHECK int pfs_call_start(struct pfs_call *call, struct pfs_query **query, const char *sql,
				  size_t len);
void pfs_call_stop(struct pfs_call *call, struct pfs_query *query);

/* Gets the lines of as_of that say when the directory, and parts of it, were last compared with their folders; the
 * caller frees them. */
PFS_MUST_CHECK int pfs_call_compared(struct pfs_call *call, char **text);

/* Returns the caller's last reason, of those about st_ino `about` (0: of all), which the caller
 * frees; NULL: there is none. */
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
extern const struct pfs_virtual_kind pfs_link_kind; /* data: the target */

PFS_MUST_CHECK int pfs_answer_text(struct pfs_answer *answer, const char *text);

/* The saved queries of the directory ino, for `.query`'s listing and lookup. */
PFS_MUST_CHECK int pfs_saved_list(struct pfs_call *call, struct pfs_virtual_names *names);
PFS_MUST_CHECK int pfs_saved_lookup(struct pfs_call *call, const char *name, struct pfs_virtual_found *found);
PFS_MUST_CHECK int pfs_saved_make(struct pfs_call *call, const char *name);
PFS_MUST_CHECK int pfs_saved_remove(struct pfs_call *call, const char *name);

/* Make symlinks to the nodes of a statement `SELECT name, ino, path ...`, `up` directories below
 * the one that `.query` is in: to all of them, or to that of one name. */
PFS_MUST_CHECK int pfs_links_list(struct pfs_call *call, struct pfs_virtual_names *names, const char *from);
/* As pfs_links_lookup, from what was listed; -ENOENT where that does not tell. */
PFS_MUST_CHECK int pfs_links_known(struct pfs_call *call, struct pfs_virtual_found *found,
				   const struct pfs_virtual *dir, const char *name, unsigned up);
PFS_MUST_CHECK int pfs_links_lookup(struct pfs_call *call, struct pfs_virtual_found *found, const char *name,
				    const char *from, unsigned up);

/* Makes an entry of the call's node and looks it up. */
PFS_MUST_CHECK int pfs_virtual_make(struct pfs_call *call, struct fuse_entry_param *param,
				    const char *name, mode_t type);

/* Returns the column of a total that the tree's own attribute may not tell this caller, because it
 * counts what he does not see; NULL: the attribute is something else. */
const char *pfs_limited_total(fuse_req_t req, const char *name);

#endif
