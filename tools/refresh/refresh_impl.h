/* SPDX-License-Identifier: MIT */
/* tools/refresh/refresh_impl.h - inside of tools/refresh/refresh.h: refresh.c (roots, and the order
 * of things), refresh_begin.c (where it begins), refresh_walk.c, refresh_entry.c and
 * refresh_closed.c (comparing), refresh_match.c (what moved), refresh_moved.c, refresh_behind.c and
 * refresh_displaced.c (what the store has moved), refresh_mount.c (what is mounted), refresh_plan.c
 * (what has been found so far), refresh_apply.c, refresh_place.c and refresh_record.c (changing the
 * store). */
#ifndef PFS_TOOLS_REFRESH_REFRESH_IMPL_H
#define PFS_TOOLS_REFRESH_REFRESH_IMPL_H

#include "base/pool.h"
#include "fs/content/follow.h"
#include "fs/content/original.h"
#include "fs/image/byprime.h"
#include "tools/import/crawl_look.h"
#include "tools/import/ignore.h"
#include "tools/refresh/refresh.h"

/* A directory of the source, and its node in the store. */
struct pfs_refresh_place {
	struct pfs_refresh_place *next;	   /* in the list `todo`, later in the list `kept` */
	struct pfs_crawl_dir *dir; /* its path in the source */
	char *old_path;		   /* the path in its record; NULL: the same, or no record */
	uint64_t ino;		   /* its node; 0: to be made */
	uint64_t above;		   /* the node of the directory that it was met in; 0: none */
	uint64_t number;	   /* the watcher's number for it */
	uint64_t was;		   /* the node it had when last read; 0: not known */
	struct pfs_finding *from;	   /* the finding that led to it, if new or moved */
	struct pfs_finding *own;	   /* the finding about it, if it takes something over */
	struct pfs_finding *found;   /* findings about entries in it */
	struct pfs_gone *gone;	   /* children that are gone */
	struct pfs_time listed;    /* what came later was not in the listing when that was last
				    * compared; sec INT64_MIN: not known */
	struct stat before;	   /* of the node, before anything changes; st_mode 0: it is new */
	bool settled; /* PFS_NODE_SETTLED */
	bool met;	 /* the listing of the directory above, read before, has it */
	bool unfinished; /* something in it is left to the next refresh, which will read it again */
	bool unread; /* it could not be opened, or its listing not be read to its end */
	bool touched; /* its listing was changed in the store: its times stay */
	bool matched; /* its node is known without its record */
	bool flat;    /* directories in it are walked only if they have changed */
	bool in_mount; /* something is mounted there, or where it was met, or further up */
	bool in_use;  /* something refers to it */
	bool start;   /* the refresh begins at it */
};

enum pfs_finding_kind {
	PFS_FOUND_NEW,	   /* it is new, or has moved: that is known once it is matched */
	PFS_FOUND_MOVED,   /* the node `ino` comes here */
	PFS_FOUND_CHANGED, /* the node `ino`, which is here, takes something over */
	PFS_FOUND_LEFT,	   /* nothing is done: it is `removed`, or its name is taken in the store */
};

/* An entry of the source that something follows from. */
struct pfs_finding {
	struct pfs_finding *next; /* in the place's list */
	struct pfs_finding *following; /* in the order of finding */
	struct pfs_refresh_place *place;     /* the directory that it is in, or is */
	struct pfs_crawl_batch *batch;
	const struct pfs_crawl_entry *entry;
	enum pfs_finding_kind kind;
	uint64_t ino;
	uint64_t over;	      /* the node of its name, if that has another original; or 0 */
	uint64_t was;	      /* a directory's node when it was last read; or 0 */
	struct pfs_refresh_place *as; /* its place, if it is a directory that is new or has moved */
	bool removed;	      /* it was there at the last refresh, and was removed, or moved to
			       * another directory, in the store */
	bool closed;	      /* a directory that is not walked, as it is another filesystem's */
	bool listed;	      /* it is in the place's list */
	bool silent;	      /* what changes is too little to be reported */
	bool another;	      /* the original is another file than the node's was */
	unsigned set;	      /* enum pfs_set: what the node takes over */
	char name[];
};

/* A node whose original is not where it was. */
struct pfs_gone {
	struct pfs_byprime by_prime;
	struct pfs_gone *next;	    /* in the place's list or, without a place, in `loose` */
	struct pfs_gone *alike;	    /* the next whose mark has the same hash */
	struct pfs_source_record record; /* its path is `path` below */
	uint64_t parent;	    /* its directory, in the store */
	mode_t mode;
	size_t n_below; /* if `top`: how many nodes lie below it in the store */
	uint64_t former; /* if `top`: bytes that history keeps of attributes of these and its own */
	bool top;     /* its own name is gone; else a directory above it is */
	bool maybe;   /* another file has its name, and may turn out to be its original */
	bool present; /* its original is where it was, after all */
	bool stays;   /* it is gone, but something in it stays, and so does the directory */
	bool claimed; /* its original was found elsewhere */
	bool held;    /* stays with all below it unless claimed: it may have moved during this
		       * refresh, or its filesystem is not seen */
	bool mount;   /* PFS_NODE_MOUNT */
	bool unmounted;		    /* with held: its filesystem is not seen, which is told */
	struct pfs_finding *found;  /* with claimed: the entry, if that is new or has moved */
	struct pfs_finding *stands; /* with held: the entry of its name, where its filesystem, which
				     * is not looked at, is or was mounted; or NULL */
	char path[];
};

/* A directory that was read. */
struct pfs_read_directory {
	struct pfs_byprime by_source; /* by its inode number in the source, once somebody asks */
	dev_t dev;
	uint64_t ino;
};
#define PFS_READ_AT_ONCE 1024u /* in one piece of memory */
struct pfs_read_directories {
	struct pfs_read_directories *next;
	size_t n, n_listed; /* so many of them can be found by their numbers */
	struct pfs_read_directory list[PFS_READ_AT_ONCE];
};

/* A device of the source, and the number that records have for the filesystem on it. */
struct pfs_device {
	dev_t stored, dev;
};

/* A node that was moved in the store. */
struct pfs_displaced {
	struct pfs_byprime by_prime;
	struct pfs_displaced *next; /* in the order of finding */
	char *path;		    /* in its record */
	struct pfs_finding *here; /* the entry that has its name where the node is; or NULL */
	char *met;	  /* that entry's; or NULL */
	char *now;	  /* by the directory that has moved with the original; NULL: none has */
	size_t n_moves;	  /* those among which `now` was sought */
	size_t moved_len; /* of that directory's old path */
	const char *at;	  /* the one of these where the original is; NULL: it is not known to be */
	struct pfs_crawl_batch *another; /* a file at `path` that is not the original; or NULL */
	bool looked;	  /* at `path` */
	bool unread;	  /* what is at `now` could not be looked at */
};

/* A directory of the source that has moved. */
struct pfs_source_move {
	char *from, *to;
};

struct pfs_refresh {
	struct pfs_tree *tree;
	const struct pfs_refresh_options *options;
	struct pfs_refresh_report *report;
	struct pfs_original_root root;
	const char *store;
	uint64_t root_ino; /* the node that stands for the root */
	struct pfs_crawl_look *look;
	struct pfs_leaving_out left_out; /* what the options leave out, else what import left out */
	/* The options leave out something else than import: PFS_NODE_SETTLED does not count. */
	bool otherwise;
	struct pfs_refresh_place *todo; /* places to be walked */
	struct pfs_refresh_place *kept, **kept_end; /* places walked, in that order */
	struct pfs_finding *found, **found_end;
	struct pfs_gone *loose; /* gone nodes (top) without a place */
	struct pfs_byprime_table gone, marks;
	struct pfs_displaced *displaced, **displaced_end;
	struct pfs_byprime_table displaced_inos; /* the nodes in `displaced` */
	struct pfs_source_move *moves;
	size_t n_moves, moves_capacity;
	/* Paths in records of directories that the store may have moved something out of, with a
	 * slash at the end if not out of what lies below them. */
	char **sought;
	size_t n_sought, sought_capacity;
	struct pfs_followers children; /* of the directory at hand */
	struct pfs_read_directories *read, *read_last,
		*read_listed; /* the last that can be found is in read_listed */
	struct pfs_byprime_table read_by_source;
	/* If shallow, or with several inos: nodes of places that are or were in `todo`, without
	 * those at which the refresh has not begun yet. */
	struct pfs_byprime_table begun;
	struct pfs_device *devices;	/* others than the root's, as far as they are known */
	size_t n_devices, devices_capacity;
	struct pfs_byprime_table passed; /* directories that nothing is mounted over on their way */
	bool cut;			 /* something is, on the way of another */
	struct pfs_source_root source;	 /* the root's record, while that is refreshed */
	bool source_changed;		 /* which is to be written */
	bool unlooked; /* there may be mount points of which their nodes do not say that they are */
	uint64_t unread;       /* how many nodes were unread when this root was begun */
	struct pfs_byprime_table unread_inos; /* those of this root */
	struct pfs_byprime_table partly; /* at the end: directories that one of them lies in */
	uint64_t reading; /* the node that is unread if crawling says that something is; or 0 */
	struct pfs_pool *pool; /* threads of a quick refresh; NULL: none has begun */
	char *why;	       /* what an error is about */
	size_t why_size;
};

/* ---- refresh_plan.c ---- */

/* Makes a place, and puts it first in `todo`. name NULL: its path is `path`; else it is `name` in
 * `path`. */
PFS_MUST_CHECK int pfs_refresh_place(struct pfs_refresh *refresh, struct pfs_refresh_place **out,
				     const char *path, const char *name);
void pfs_refresh_place_free(struct pfs_refresh_place *place);

/* Enters the source's directory `path` to look at it, until pfs_refresh_leave. The place, which is
 * not walked, has what is known of it. What opening the directory says. */
PFS_MUST_CHECK int pfs_refresh_visit(struct pfs_refresh *refresh, struct pfs_refresh_place **out,
				     int *fd, const char *path);
void pfs_refresh_leave(struct pfs_refresh *refresh, struct pfs_refresh_place *place);

/* Makes a place of the source's directory `path` that only says where, and is not walked. ino: the
 * directory in which the nodes are. */
PFS_MUST_CHECK int pfs_refresh_where(struct pfs_refresh *refresh, struct pfs_refresh_place **out,
				     const char *path, uint64_t ino);

/* Gets the path of a finding in the source. Returns false if it is too long for a record. */
bool pfs_refresh_path_of(char out[PATH_MAX], const struct pfs_finding *found, size_t *len);

/* Notes a finding about an entry of the place. Takes the batch over, also on failure. place->own is
 * not set. */
PFS_MUST_CHECK int pfs_refresh_found(struct pfs_refresh *refresh, struct pfs_finding **out,
				  struct pfs_refresh_place *place, struct pfs_crawl_batch *batch,
				  const char *name);

/* Adds a node to a table of nodes; *first is false if it is there already. -ENOMEM. */
PFS_MUST_CHECK int pfs_refresh_note(struct pfs_byprime_table *table, bool *first, uint64_t ino);

/* Notes that the node's directory is to be walked. *first is false if it is noted already, as a
 * refresh that is shallow, or of several nodes, may come to it in several ways. */
PFS_MUST_CHECK int pfs_refresh_begin(struct pfs_refresh *refresh, bool *first, uint64_t ino);

/* Notes that the source's directory of those numbers is read as that of the node `ino`. -ENOMEM. */
PFS_MUST_CHECK int pfs_refresh_note_read(struct pfs_refresh *refresh, uint64_t ino,
					 dev_t source_dev, uint64_t source_ino);
/* Returns the node as whose directory it was read first in this refresh; 0: it was not. */
uint64_t pfs_refresh_read_as(struct pfs_refresh *refresh, dev_t source_dev, uint64_t source_ino);

/* Notes that the open directory fd is read as that of the node place->ino, if not 0. Sets
 * place->was to the node that it had when it was read before, by the watcher or, if it has no node
 * yet, in this refresh. */
PFS_MUST_CHECK int pfs_refresh_enter(struct pfs_refresh *refresh, struct pfs_refresh_place *place,
				     int fd);

/* Returns true if the directory found is that of the node `was`, which lies elsewhere in the store:
 * it has moved while the source was read, and is left to the next refresh. What is mounted, and all
 * in it, may be in both places. */
bool pfs_refresh_has_moved(struct pfs_refresh *refresh, const struct pfs_finding *found,
			   uint64_t was);

/* Notes a node whose original is not where it was, and all nodes below it; the node itself is the
 * `top`. place NULL: the node was moved in the store. */
PFS_MUST_CHECK int pfs_refresh_gone(struct pfs_refresh *refresh, struct pfs_gone **out,
				 struct pfs_refresh_place *place, uint64_t ino,
				 const struct pfs_source_record *record);
struct pfs_gone *pfs_refresh_find(const struct pfs_refresh *refresh, uint64_t ino);

/* Gets a gone node whose original the entry found is, and that is neither present nor claimed; or
 * NULL. What was removed in the store has none. */
PFS_MUST_CHECK int pfs_refresh_twin(struct pfs_refresh *refresh, struct pfs_gone **out,
				    const struct pfs_finding *found);

void pfs_refresh_finish(struct pfs_refresh *refresh);

/* Returns true if the entry is the original that the record is of, both being in the same place: if
 * that is a mount point, pfs_refresh_same_mounted tells, too. */
bool pfs_refresh_same(const struct pfs_refresh *refresh, const struct pfs_crawl_batch *batch,
		   const struct pfs_source_record *record);

/* Calls the options' `event` for a node, with its path in the store. name NULL: for the node `ino`;
 * else for the child of that name. */
PFS_MUST_CHECK int pfs_refresh_tell(struct pfs_refresh *refresh, enum pfs_refresh_event event,
				    uint64_t ino, const char *name, const char *from,
				    const char *why);

/* As pfs_refresh_tell, for a finding, with the path that its node would have if no directory above
 * it moved. */
PFS_MUST_CHECK int pfs_refresh_tell_found(struct pfs_refresh *refresh, enum pfs_refresh_event event,
				       const struct pfs_finding *found, const char *from,
				       const char *why);

/* Returns the name that an entry has in the store. */
const char *pfs_refresh_name(const char *name);

/* ---- refresh_begin.c ---- */

/* Sets *is to true if the refresh is about the root: it is one of everything, or the root has
 * something at, above or (but for the flat ones) below one of the inos. Needs no root_ino. */
PFS_MUST_CHECK int pfs_refresh_is_asked(struct pfs_refresh *refresh, bool *is);

/* Sets root_ino to the node that stands for the root; 0: nothing of it is left. */
PFS_MUST_CHECK int pfs_refresh_find_root(struct pfs_refresh *refresh);

/* Looks at the source's directory of the path itself. *batch is NULL if it cannot be looked at. */
PFS_MUST_CHECK int pfs_refresh_look_at_directory(struct pfs_refresh *refresh,
						 struct pfs_crawl_batch **batch, const char *path);

/* Sets *is to true if the node, which has a record, is where its original is in the source: the
 * store has not moved it. */
PFS_MUST_CHECK int pfs_refresh_is_in_place(struct pfs_refresh *refresh, bool *is, uint64_t ino);

/* Returns true if all that came with the root is refreshed. */
bool pfs_refresh_begins_at_root(const struct pfs_refresh *refresh);

/* Puts the places into `todo` at which the refresh begins. */
PFS_MUST_CHECK int pfs_refresh_set_out(struct pfs_refresh *refresh);

/* ---- refresh_mount.c: what is mounted below a source, and what was ---- */

#define PFS_NOT_MOUNTED "its filesystem is not mounted there"

/* Notes that the filesystem of that number is on the device, unless it is known where it is. */
PFS_MUST_CHECK int pfs_refresh_learn(struct pfs_refresh *refresh, dev_t stored, dev_t dev);
/* Gets the number of the filesystem on the device; if none is known, it gets one. */
PFS_MUST_CHECK int pfs_refresh_number(struct pfs_refresh *refresh, dev_t *stored, dev_t dev);
/* pfs_refresh_is_on returns true if the filesystem of that number is known to be on the device,
 * pfs_refresh_may_be_on also if neither is known. */
bool pfs_refresh_is_on(const struct pfs_refresh *refresh, dev_t stored, dev_t dev);
bool pfs_refresh_may_be_on(const struct pfs_refresh *refresh, dev_t stored, dev_t dev);

/* Sets *same if what is mounted at fd, which has the record's mark, is the filesystem that the
 * record of the node `ino` is of: others may have the same mark at their roots. here: the record is
 * of the same place. */
PFS_MUST_CHECK int pfs_refresh_same_mounted(struct pfs_refresh *refresh, bool *same, int fd,
					    const struct pfs_source_record *record, uint64_t ino,
					    bool here);

/* Sets *is if the open directory fd is not of the filesystem that the root's nodes in the node of
 * the directory came from. The node's record is another root's, and does not tell. */
PFS_MUST_CHECK int pfs_refresh_is_shared_unseen(struct pfs_refresh *refresh, bool *is, int fd,
						const struct pfs_crawl_dir *dir, uint64_t ino);

/* What is where a directory was. */
struct pfs_there {
	bool was;	      /* the caller's: something was mounted there */
	bool elsewhere;	      /* the caller's: the record is of another place */
	bool exists, mounted; /* a directory; something is mounted there */
	bool same;	      /* it is the record's; only if something was or is mounted there */
	dev_t dev;
};
/* Looks at the source's directory `path`, with which the node's record is compared; record may be
 * NULL. What opening the directory returns, if it is there. */
PFS_MUST_CHECK int pfs_refresh_look_there(struct pfs_refresh *refresh, struct pfs_there *there,
					  const char *path, const struct pfs_source_record *record,
					  uint64_t ino);

/* Notes that the filesystem of a gone node is not seen: the node and all below it stay, and that is
 * told, unless they are found elsewhere. Does nothing for a directory in which nothing is, nor was
 * before the store moved or removed all of it. */
PFS_MUST_CHECK int pfs_refresh_unmounted(const struct pfs_refresh *refresh, struct pfs_gone *gone);

/* Returns 1 if something was mounted where the directory of a node with these flags lay, in that of
 * the node `above`. Where nodes do not say that yet, records with different numbers do. 0: nothing
 * was, or that is not known. */
PFS_MUST_CHECK int pfs_refresh_was_mounted(const struct pfs_refresh *refresh,
					   const struct pfs_source_record *record, unsigned flags,
					   uint64_t above);
/* Sets *is if such a directory, in whose place another is (`there`) or none (NULL), is not seen:
 * what was mounted there is not, or something is that was not, or another filesystem. It is gone if
 * the options say that what is not seen is. */
PFS_MUST_CHECK int pfs_refresh_is_unseen(const struct pfs_refresh *refresh, bool *is,
					 const struct pfs_source_record *record, unsigned flags,
					 uint64_t above, const struct pfs_crawl_entry *there);
/* Tells that something is mounted over what the directory had. batch: what is there, which is not
 * walked. */
PFS_MUST_CHECK int pfs_refresh_leave_covered(struct pfs_refresh *refresh,
					     const struct pfs_follower *child,
					     const struct pfs_crawl_batch *batch);

/* pfs_refresh_tells_mounts returns true if all nodes say, once all changes are made, whether
 * something is mounted where they are, but the root's record does not say so yet.
 * pfs_refresh_note_mounts notes that, when they are committed. */
bool pfs_refresh_tells_mounts(const struct pfs_refresh *refresh);
PFS_MUST_CHECK int pfs_refresh_note_mounts(struct pfs_refresh *refresh);

/* Sets *unseen if the original of a node that the store has moved may be where its record has it,
 * but another filesystem is there. */
PFS_MUST_CHECK int pfs_refresh_look_for(struct pfs_refresh *refresh, bool *unseen,
					const struct pfs_source_record *record,
					const struct pfs_follower *node);

/* ---- refresh_walk.c ---- */

/* Walks the places that are to be walked. */
PFS_MUST_CHECK int pfs_refresh_walk(struct pfs_refresh *refresh);

/* ---- refresh_moved.c: what is known of what the store has moved ---- */

/* pfs_refresh_displaced notes a node that was moved in the store, once, pfs_refresh_displaced_below
 * all nodes with a record below a directory that was made in the store. here: the entry that the
 * source has where the node is now, which may be new, `over` the node; or NULL. */
PFS_MUST_CHECK int pfs_refresh_displaced(struct pfs_refresh *refresh, uint64_t ino,
					 const char *path, struct pfs_finding *here);
PFS_MUST_CHECK int pfs_refresh_displaced_below(struct pfs_refresh *refresh, uint64_t ino);
/* Notes the same of a directory that is walked, as its original is at `at`, where the node is. */
PFS_MUST_CHECK int pfs_refresh_displaced_to(struct pfs_refresh *refresh, uint64_t ino,
					    const char *path, const char *at);
/* Returns true if the node was moved in the store, and what the source has where the node is, by
 * that name in the place, is noted or, if it is its original, followed. */
bool pfs_refresh_is_met(const struct pfs_refresh *refresh, uint64_t ino,
			const struct pfs_refresh_place *place, const char *name);
/* Notes that a directory of the source has moved. */
PFS_MUST_CHECK int pfs_refresh_note_move(struct pfs_refresh *refresh, const char *from,
					 const char *to);
/* Returns the move of the lowest directory that the path in records is or lies in, of those from
 * number *n on, unless that of a lower one is known, whose old path had the length *len; or NULL.
 * Sets *len likewise, and *n to where to go on. */
const struct pfs_source_move *pfs_refresh_move_of(const struct pfs_refresh *refresh,
						  const char *path, size_t *n, size_t *len);
/* Notes that the store may have moved something out of the directory of that path in records, which
 * is about to have another one. */
PFS_MUST_CHECK int pfs_refresh_seek(struct pfs_refresh *refresh, const char *path);
/* The same of a directory that may have another name for what the store has moved out of it. */
PFS_MUST_CHECK int pfs_refresh_seek_renamed(struct pfs_refresh *refresh, const char *path);
void pfs_refresh_forget_sought(struct pfs_refresh *refresh);
void pfs_refresh_displaced_finish(struct pfs_refresh *refresh);

/* ---- refresh_behind.c: what the source has where the store has moved it ---- */

/* Looks at the entry of the source's directory `folder`. *passes: it is left out. *batch is NULL if
 * that was not possible, which was told. What opening the directory says. */
PFS_MUST_CHECK int pfs_refresh_look_in(struct pfs_refresh *refresh, struct pfs_crawl_batch **batch,
				       bool *passes, const char *folder, const char *name);
/* Finds the entry that the source has where the node is (displaced->here), unless it is known. */
PFS_MUST_CHECK int pfs_refresh_look_behind(struct pfs_refresh *refresh,
					   struct pfs_displaced *displaced);

/* ---- refresh_displaced.c: what becomes of it ---- */

/* Looks for the originals of all that was moved, as far as directories have been found to move, and
 * walks directories that were. What has an original stays and follows it; else it is gone. */
PFS_MUST_CHECK int pfs_refresh_look_for_displaced(struct pfs_refresh *refresh);
/* Returns true if what the store has moved to where the entry is stays there. */
bool pfs_refresh_is_covered(const struct pfs_refresh *refresh, const struct pfs_finding *found);
/* A file that was moved, and whose original another file has taken the place of that is no other
 * node's, takes everything over from that one. Called once originals have been matched by their
 * marks. */
PFS_MUST_CHECK int pfs_refresh_replace_displaced(struct pfs_refresh *refresh);

/* ---- refresh_match.c ---- */

/* Decides what each entry found is. */
PFS_MUST_CHECK int pfs_refresh_match(struct pfs_refresh *refresh);

/* ---- refresh_record.c: records of originals ---- */

static inline bool pfs_is_later(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Returns what a node takes over (bits of enum pfs_set) if its original was as the record says and
 * is as `now` says. */
unsigned pfs_what_to_take(const struct pfs_source_record *record, const struct stat *node,
			  const struct stat *now);
bool pfs_is_as_recorded(const struct pfs_source_record *record, const struct stat *now);

/* Makes the record that the finding's node gets. path: its path in the source. */
PFS_MUST_CHECK int pfs_refresh_record_of(struct pfs_refresh *refresh, struct pfs_source_record *out,
					 const struct pfs_finding *found, const char *path,
					 size_t len);

/* A node or one below it. Each is listed after the node that it lies in. */
struct pfs_below {
	uint64_t ino;
	size_t above; /* index of the node that it lies in; of the first: 0 */
	bool stays;   /* the caller's */
};
/* Lists the node `top` and all nodes below it. The caller frees the list, also on failure. */
PFS_MUST_CHECK int pfs_refresh_list_below(struct pfs_refresh *refresh, struct pfs_below **out,
					  size_t *n, uint64_t top);

/* Gives what has moved with the directory that it is in, and was not looked at, records that say
 * so. */
PFS_MUST_CHECK int pfs_refresh_move_records(struct pfs_refresh *refresh);
/* The same for a node whose original was below the path `from`, which is `to` now. Does nothing if
 * its record has another path. */
PFS_MUST_CHECK int pfs_refresh_move_record(struct pfs_refresh *refresh, uint64_t ino,
					   const char *from, const char *to);
/* Writes records of the folders found, before any file below them is linked. */
PFS_MUST_CHECK int pfs_refresh_put_folders(struct pfs_refresh *refresh);

/* ---- refresh_place.c: what changes places, and room for it ---- */

/* Holds the journal (pfs_follow_hold_for) once there is room for all changes of the place. -ENOSPC:
 * nothing has been changed, and refresh->why says what room they need. */
PFS_MUST_CHECK int pfs_refresh_hold_place(struct pfs_refresh *refresh,
					  const struct pfs_refresh_place *place);
/* The same for a node that goes and has no place. */
PFS_MUST_CHECK int pfs_refresh_hold_loose(struct pfs_refresh *refresh, const struct pfs_gone *gone);

/* Gives a directory the times back that it had before something in it was changed. */
PFS_MUST_CHECK int pfs_refresh_restore(struct pfs_refresh *refresh, uint64_t ino,
				       const struct stat *before);

/* Makes new directories, and moves nodes to their new places, as one group. */
PFS_MUST_CHECK int pfs_refresh_move(struct pfs_refresh *refresh);

/* ---- refresh_apply.c ---- */

/* Notes which gone directories stay, as something in them does, and tells of each. */
PFS_MUST_CHECK int pfs_refresh_note_staying(struct pfs_refresh *refresh);
/* Gives a directory that has just been made what it takes over, before anything is made in it. */
PFS_MUST_CHECK int pfs_refresh_take_made(struct pfs_refresh *refresh,
					 const struct pfs_finding *found);
/* Returns true if the node has the attribute PFS_REFRESH_GONE. */
bool pfs_refresh_is_marked(const struct pfs_refresh *refresh, uint64_t ino);
/* Makes all other changes, those of each place as one group. */
PFS_MUST_CHECK int pfs_refresh_apply(struct pfs_refresh *refresh);

#endif
