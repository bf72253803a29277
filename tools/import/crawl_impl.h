/* SPDX-License-Identifier: MIT */
/* tools/import/crawl_impl.h - what the files crawl*.c share.  Nobody else includes it. */
#ifndef PFS_TOOLS_IMPORT_CRAWL_IMPL_H
#define PFS_TOOLS_IMPORT_CRAWL_IMPL_H

#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "tools/import/crawl.h"

#define PFS_CRAWL_STATX	     (STATX_BASIC_STATS | STATX_MNT_ID | STATX_BTIME)
#define PFS_CRAWL_LIST_SIZE  65536 /* the kernel's limits for attribute names and values */
#define PFS_CRAWL_VALUE_SIZE 65536
#define PFS_CRAWL_DIR_SIZE   65536

struct pfs_crawl_rules; /* crawl_rules.c */

struct pfs_crawl {
	struct pfs_crawl_options options;
	int root;
	dev_t dev;
	uint64_t mount; /* the root's, where the kernel tells it */
	bool mount_known;
	bool is_exact; /* the root's filesystem stamps changes with this machine's clock */
	dev_t own;     /* what the store is mounted as, which is never crossed into; 0: it is not */
	dev_t store_dev; /* the folder that the store lies in */
	ino_t store_ino;
	const char *store_name;

	pthread_t *threads;
	unsigned n_threads;
	pthread_mutex_t mutex;
	/* everything below: protected by mutex */
	pthread_cond_t work;  /* there is a directory to read, or no more will come */
	pthread_cond_t room;  /* the queue has room */
	pthread_cond_t ready; /* there is a message, or no more will come */
	struct pfs_crawl_dir *done;  /* not freed with any batch */
	struct pfs_crawl_dir *unread; /* nor are these */
	struct pfs_crawl_rules *rules; /* all, which live as long as the crawl */
	struct pfs_crawl_dir *stack; /* to be read by whoever has nothing to do */
	unsigned busy; /* threads that are reading directories */
	struct pfs_crawl_message *first, **last;
	size_t queued_bytes;
	bool stop;
	int error;
	_Atomic unsigned hungry; /* threads that wait for work; not protected */

	struct pfs_crawl_message *current; /* the reader's */
};

/* The last directory that the thread read beyond PATH_MAX: those below it are opened from there. */
struct pfs_crawl_deep {
	int fd; /* or -1 */
	char *path;
	size_t len, capacity;
};

/* One thread's. */
struct pfs_crawl_thread {
	struct pfs_crawl *crawl;
	bool busy;
	struct pfs_crawl_dir
		*own; /* found, and to be read by this thread if nobody else wants to */
	struct pfs_crawl_dir *done; /* read: they go with the next batch, whose reader knows them */
	size_t done_bytes;	    /* their paths */
	struct pfs_crawl_dir *dir;  /* being read */
	struct pfs_crawl_deep deep;
	int fd;			    /* of dir */
	const struct pfs_ignore *ignore; /* what .gitignore files say of its entries */
	bool tag_only;			 /* it is a cache: nothing but its tag is wanted */
	bool own_cwd;     /* the thread has a working directory of its own */
	bool at_cwd;      /* which is dir */
	dev_t without_attrs; /* a filesystem that has no user.* attributes; 0: none is known */
	bool lists;	  /* the last entry had attributes: the next is taken to have some */
	struct pfs_crawl_batch *batch; /* being filled; may be NULL */
	char list[PFS_CRAWL_LIST_SIZE];
	char value[PFS_CRAWL_VALUE_SIZE];
	char entries[PFS_CRAWL_DIR_SIZE];
};

/* Returns the memory of a message and of what it carries, in bytes. */
size_t pfs_crawl_weight(const struct pfs_crawl_message *message);

/* Queues a message, which is no longer the caller's; waits for room.  -ECANCELED: the crawl has
 * been stopped (the message is queued all the same, so that whoever clears up finds it). */
PFS_MUST_CHECK int pfs_crawl_send(struct pfs_crawl *crawl, struct pfs_crawl_message *message);

/* Makes a message with room for `size` bytes of data. */
struct pfs_crawl_message *pfs_crawl_message_create(enum pfs_crawl_kind kind,
						   struct pfs_crawl_batch *batch, size_t size);

/* Says what is wrong with an entry of the thread's directory; name NULL: with the directory.
 * Returns 0 to go on. */
PFS_MUST_CHECK int pfs_crawl_problem(struct pfs_crawl_thread *thread, const char *name,
				     const char *what);

/* Says that the thread's directory cannot be opened, or its listing not be read to its end. */
PFS_MUST_CHECK int pfs_crawl_unlisted(struct pfs_crawl_thread *thread, int error);
/* Says that the entry cannot be read. The error itself, if it is this process's own. */
PFS_MUST_CHECK int pfs_crawl_unreadable(struct pfs_crawl_thread *thread, const char *name,
					int error);

/* crawl_open.c: beyond PATH_MAX the way down is long: it is begun at the directory that was the
 * last one there, if this one lies below it.  A descriptor or a negative errno. */
int pfs_crawl_open_dir(const struct pfs_crawl_thread *thread, const struct pfs_crawl_dir *dir);

/* Closes the directory, which is thread->fd, or keeps it for those below it. */
void pfs_crawl_leave_dir(struct pfs_crawl_thread *thread, const struct pfs_crawl_dir *dir);

/* crawl.c: where options.store lies, which may be in the tree that is read. */
PFS_MUST_CHECK int pfs_crawl_know_store(struct pfs_crawl *crawl);

/* crawl_dir.c: what tells where the filesystem ends; from is the root's.  What statx says. */
PFS_MUST_CHECK int pfs_crawl_know_root(struct pfs_crawl *crawl, struct statx *from);

/* Puts an entry of thread->dir, which statx was asked about, into thread->batch; one that was left
 * out, as `problem` was told, is not there.  A directory that may be read goes to thread->own. */
PFS_MUST_CHECK int pfs_crawl_keep(struct pfs_crawl_thread *thread, const char *name,
				  const struct statx *from);

/* Makes sure that there is thread->batch. */
PFS_MUST_CHECK int pfs_crawl_need_batch(struct pfs_crawl_thread *thread);

/* crawl_rules.c: what is left out of the directory, which is open as thread->fd; `above` is what
 * the files of those above say. What cannot be read is told. */
PFS_MUST_CHECK int pfs_crawl_read_rules(struct pfs_crawl_thread *thread,
					const struct pfs_ignore *above);
/* Returns true if the entry of thread->dir is left out. */
bool pfs_crawl_leaves_out(const struct pfs_crawl_thread *thread, const char *name, bool directory);
void pfs_crawl_free_rules(struct pfs_crawl *crawl);

/* Returns true if the store, or a file of its, has this name in the store's folder. */
bool pfs_crawl_is_store(const struct pfs_crawl *crawl, const char *name);

/* crawl_dir.c: sends the root as the first entry; the threads do not run yet. */
PFS_MUST_CHECK int pfs_crawl_root(struct pfs_crawl *crawl);

/* crawl_dir.c: reads thread->dir into thread->batch; its subdirectories go to thread->own. */
PFS_MUST_CHECK int pfs_crawl_directory(struct pfs_crawl_thread *thread);

/* Sends the batch, with the content of its files; then all may have thread->own. */
PFS_MUST_CHECK int pfs_crawl_flush(struct pfs_crawl_thread *thread);

/* The thread ends: what it has not sent is dropped. */
void pfs_crawl_drop(struct pfs_crawl_thread *thread);
void pfs_crawl_free_batch(struct pfs_crawl_batch *batch);
void pfs_crawl_free_dirs(struct pfs_crawl_dir *list);

/* crawl_file.c: sends the content of a batch's regular files. */
PFS_MUST_CHECK int pfs_crawl_files(struct pfs_crawl_thread *thread, struct pfs_crawl_batch *batch);

/* Opens below the directory, which may deny O_NOATIME; a descriptor or a negative errno. */
PFS_MUST_CHECK int pfs_crawl_openat(int dir, const char *name, int flags);

#endif
