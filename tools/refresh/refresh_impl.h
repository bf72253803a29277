/* SPDX-License-Identifier: MIT */
/* tools/refresh/refresh_impl.h - inside of tools/refresh/refresh.h: refresh.c (roots, and the order of things),
 * refresh_walk.c, refresh_entry.c and refresh_closed.c (comparing), refresh_match.c (what moved), refresh_plan.c (what is known meanwhile),
 * refresh_apply.c and refresh_place.c (make it so). */
#ifndef PFS_TOOLS_REFRESH_REFRESH_IMPL_H
#define PFS_TOOLS_REFRESH_REFRESH_IMPL_H

#include "fs/content/follow.h"
#include "fs/image/byprime.h"
#include "tools/import/crawl_look.h"
#include "tools/import/ignore.h"
#include "tools/refresh/refresh.h"

/* A directory of the source, and of the store. */
struct pfs_refresh_place {
	struct pfs_refresh_place *next;	   /* to be walked, later of those that are kept */
	struct pfs_crawl_dir *dir; /* its path in the source */
	char *old_path;		   /* where its record has it; NULL: there, too, or there is none */
	uint64_t ino;		   /* 0: to be made */
	uint64_t above;		   /* the node of the directory that it was met in; 0: none */
	uint64_t number;	   /* the watcher's */
	uint64_t was;		   /* the node that its directory was when it was last read; 0: not known */
	struct pfs_finding *from;	   /* what it was found as, if it was new or had moved */
	struct pfs_finding *own;	   /* itself, if it takes something over */
	struct pfs_finding *found;   /* entries in it */
	struct pfs_gone *gone;	   /* children that go */
	struct pfs_time listed;    /* ctime when it was read last; sec INT64_MIN: not known */
	struct stat before;	   /* of the node, before anything changes; st_mode 0: it is new */
	bool settled; /* PFS_NODE_SETTLED */
	bool met;	 /* the directory above, read before it, has it */
	bool unfinished; /* something in it is left to the next refresh, which is to read it again */
	bool touched; /* the store has changed its listing: its times stay */
	bool matched; /* it is known which node it is: its record need not say so */
	bool flat;    /* directories in it are walked only if they have changed */
	bool in_use;  /* something refers to it */
};

enum pfs_finding_kind {
	PFS_FOUND_NEW,	   /* perhaps: until it is matched */
	PFS_FOUND_MOVED,   /* the node `ino` comes here */
	PFS_FOUND_CHANGED, /* the node `ino`, which is here, takes something over */
	PFS_FOUND_LEFT,	   /* something else of the store's has its name */
};

/* An entry of the source that something follows from. */
struct pfs_finding {
	struct pfs_finding *next; /* of the place's */
	struct pfs_finding *following; /* in the order of finding */
	struct pfs_refresh_place *place;     /* that it is in, or is */
	struct pfs_crawl_batch *batch;
	const struct pfs_crawl_entry *entry;
	enum pfs_finding_kind kind;
	uint64_t ino;
	uint64_t over;	      /* the node of its name, which was another original's; or 0 */
	uint64_t was;	      /* of a directory: the node that it was when it was last read; or 0 */
	struct pfs_refresh_place *as; /* a directory that is new or has moved */
	bool removed;	      /* it was there when the directory was read last, and has no node */
	bool closed;	      /* a directory that is not walked: another filesystem's */
	bool listed;	      /* the place has it */
	bool silent;	      /* nothing that anybody would call a change */
	bool another;	      /* the file is not the one that the node was of */
	unsigned set;	      /* enum pfs_set, to take over */
	char name[];
};

/* A node whose original is not where it was. */
struct pfs_gone {
	struct pfs_byprime by_prime;
	struct pfs_gone *next;	    /* of the place's tops, or of those without one */
	struct pfs_gone *alike;	    /* whose marks have one hash */
	struct pfs_source_record record; /* path: behind it */
	uint64_t parent;	    /* its directory, in the store */
	mode_t mode;
	size_t n_below; /* nodes below it in the store, of those at the top */
	bool top;     /* its name is gone, else it lies below one that is gone */
	bool maybe;   /* another file has its name: it goes if that one is not to be it */
	bool present; /* it is where it was, after all */
	bool claimed; /* it was found elsewhere */
	bool held;    /* present unless it is claimed, for it may have moved while the source was read; with top */
	char path[];
};

/* A directory that was walked. */
struct pfs_walked {
	struct pfs_byprime by_source; /* its number there */
	dev_t dev;
	uint64_t ino;
};

/* A node that the store has moved. */
struct pfs_displaced {
	uint64_t ino;
	char *path; /* of the original */
};

struct pfs_refresh {
	struct pfs_tree *tree;
	const struct pfs_refresh_options *options;
	struct pfs_refresh_report *report;
	struct pfs_original_root root;
	const char *store;
	uint64_t root_ino; /* the node that stands for it */
	struct pfs_crawl_look *look;
	struct pfs_leaving_out left_out; /* as the import was told, unless the options say */
	bool otherwise;			 /* they do: PFS_NODE_SETTLED is not of what is left out now */
	struct pfs_refresh_place *todo;
	struct pfs_refresh_place *kept, **kept_end; /* in the order of walking */
	struct pfs_finding *found, **found_end;
	struct pfs_gone *loose; /* tops without a place */
	struct pfs_byprime_table gone, marks;
	struct pfs_displaced *displaced;
	size_t n_displaced, displaced_capacity;
	struct pfs_followers children; /* of the directory at hand */
	struct pfs_byprime_table walked;
	struct pfs_byprime_table begun; /* directories that are, or were, to be walked; if shallow */
	struct pfs_source_root *root_record; /* to be written anew, or NULL */
};

/* ---- refresh_plan.c ---- */

/* Makes a place that is walked before all others. name NULL: path is its own, else it is name below
 * path. */
PFS_MUST_CHECK int pfs_refresh_place(struct pfs_refresh *refresh, struct pfs_refresh_place **out, const char *path,
				  const char *name);
void pfs_refresh_place_free(struct pfs_refresh_place *place);

/* Notes an entry that was found. Takes the batch over, on failure too. place->own is left alone. */
PFS_MUST_CHECK int pfs_refresh_found(struct pfs_refresh *refresh, struct pfs_finding **out,
				  struct pfs_refresh_place *place, struct pfs_crawl_batch *batch,
				  const char *name);

/* Tells if the directory is to be walked: *first is false if a shallow refresh came to it another
 * way. */
PFS_MUST_CHECK int pfs_refresh_begin(struct pfs_refresh *refresh, bool *first, uint64_t ino);

/* The source's directory of those numbers is read as `ino`, if not 0; *was: the node that it was
 * when it was read before in this refresh, if another.  -ENOMEM. */
PFS_MUST_CHECK int pfs_refresh_note_walked(struct pfs_refresh *refresh, uint64_t *was, uint64_t ino,
					   dev_t source_dev, uint64_t source_ino);

/* The directory that is open is read as place->ino, if not 0; finds out what it was when it was read before, in
 * this refresh or by the watcher. */
PFS_MUST_CHECK int pfs_refresh_enter(struct pfs_refresh *refresh, struct pfs_refresh_place *place, int fd, const struct stat *attr);

/* The directory is that of the node `was`, which is elsewhere as far as is known: it has moved while the source was
 * read, and is left to the next refresh. */
bool pfs_refresh_has_moved(struct pfs_refresh *refresh, const struct pfs_finding *found, uint64_t was);

/* A node that is gone, unless it turns up: at the top of what is gone, with all below; place NULL: where the store
 * has moved it. */
PFS_MUST_CHECK int pfs_refresh_gone(struct pfs_refresh *refresh, struct pfs_gone **out,
				 struct pfs_refresh_place *place, uint64_t ino,
				 const struct pfs_source_record *record);
struct pfs_gone *pfs_refresh_find(const struct pfs_refresh *refresh, uint64_t ino);

/* Returns one that the entry is, neither present nor claimed; or NULL. */
struct pfs_gone *pfs_refresh_twin(const struct pfs_refresh *refresh, const struct pfs_finding *found);

/* Notes a node that the store has moved; all of them below a directory of the store's own. */
PFS_MUST_CHECK int pfs_refresh_displaced(struct pfs_refresh *refresh, uint64_t ino, const char *path);
PFS_MUST_CHECK int pfs_refresh_displaced_below(struct pfs_refresh *refresh, uint64_t ino);
void pfs_refresh_finish(struct pfs_refresh *refresh);

/* Returns the device as it would be if the root's had the number that it had. */
dev_t pfs_refresh_dev(const struct pfs_refresh *refresh, dev_t dev);

/* Returns true if the entry is the original that the record is of. */
bool pfs_refresh_same(const struct pfs_refresh *refresh, const struct pfs_crawl_batch *batch,
		   const struct pfs_source_record *record);

/* Tells of a node, by its path in the store; name NULL: of the node, else of that name in it. */
PFS_MUST_CHECK int pfs_refresh_tell(struct pfs_refresh *refresh, enum pfs_refresh_event event, uint64_t ino,
				 const char *name, const char *from, const char *why);

/* As pfs_refresh_tell, of an entry, by where it is to be. */
PFS_MUST_CHECK int pfs_refresh_tell_found(struct pfs_refresh *refresh, enum pfs_refresh_event event,
				       const struct pfs_finding *found, const char *from);

/* Returns the name that an entry has in the store. */
const char *pfs_refresh_name(const char *name);

/* ---- refresh_walk.c ---- */

/* Walks the places that are to be walked. */
PFS_MUST_CHECK int pfs_refresh_walk(struct pfs_refresh *refresh);

/* ---- refresh_match.c ---- */

/* Decides what each entry found is. */
PFS_MUST_CHECK int pfs_refresh_match(struct pfs_refresh *refresh);

/* ---- refresh_place.c: what changes places, and room for it ---- */

/* Makes sure, before the hold, that there is room for all that will be done to the place. -ENOSPC: nothing has been
 * touched. */
PFS_MUST_CHECK int pfs_refresh_reserve_place(struct pfs_refresh *refresh, const struct pfs_refresh_place *place);

/* New directories are made, and what has moved goes to its place, as one group. */
PFS_MUST_CHECK int pfs_refresh_move(struct pfs_refresh *refresh);

/* ---- refresh_apply.c ---- */

/* The rest of each place, each as a group. */
/* A directory that has just been made, before what is in it. */
PFS_MUST_CHECK int pfs_refresh_take_made(struct pfs_refresh *refresh, const struct pfs_finding *found);
PFS_MUST_CHECK int pfs_refresh_apply(struct pfs_refresh *refresh);

#endif
