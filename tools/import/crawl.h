/* SPDX-License-Identifier: MIT */
/* tools/import/crawl.h - reads a directory tree on several threads.
 *
 * The threads open directories by their paths beneath the root, with openat2 where the kernel has
 * it, so that no symlink is ever followed and nothing outside the root is reached.  What they find
 * comes as messages: batches of entries, each directory before what lies in it; then, when
 * content is asked for, the content of the files among them.  Messages are bounded in number and
 * size: the threads wait for their reader.
 *
 * What cannot be read is reported by `problem`, on any thread. */
#ifndef PFS_TOOLS_IMPORT_CRAWL_H
#define PFS_TOOLS_IMPORT_CRAWL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/err.h"
#include "meta/store.h"

struct pfs_ignore;
struct pfs_leaving_out;

struct pfs_crawl;

struct pfs_crawl_options {
	const char *root;
	bool cross_mounts;
	bool content;	   /* read regular files */
	bool marks;	   /* note what files and directories are known by */
	unsigned threads;  /* 0: as many as suit the machine */
	const struct pfs_leaving_out *leaving_out; /* NULL: nothing; stays the caller's */
	const char *store; /* entries of this name, and of its side files, are passed over */
	/* Says what is wrong with an entry; not 0: stop crawling. */
	int (*problem)(void *arg, const char *path, const char *what);
	void *arg;
};

/* A directory whose entries are read; node is the reader's. */
struct pfs_crawl_dir {
	struct pfs_crawl_dir *next;
	uint32_t node;
	dev_t dev;
	ino_t ino;
	const struct pfs_ignore *ignore; /* what .gitignore files above it say */
	bool unread; /* it, or something in it, could not be read, which was told */
	bool unlisted; /* it could not be opened, or its listing not be read to its end */
	size_t path_len;
	char path[]; /* below the root; "" is the root itself */
};

struct pfs_crawl_attr {
	const char *name; /* without "user." */
	const void *value;
	size_t name_len, value_len;
};

struct pfs_crawl_entry {
	struct stat attr;
	struct pfs_crawl_dir *parent; /* NULL: this is the root */
	struct pfs_crawl_dir *dir; /* directories that are going to be read: set dir->node */
	uint32_t name, target;	   /* offsets in the batch's bytes */
	uint32_t attrs, n_attrs;
	uint32_t handle; /* offset, too */
	struct pfs_time birth;
	uint16_t target_len;
	uint8_t name_len;
	uint8_t handle_len; /* pfs_crawl_mark */
	bool has_birth;
	bool settled;  /* a directory whose times tell of each change since it was looked at */
	bool mounted;  /* a directory below the root where something is mounted */
	bool narrowed; /* attr's mode is less than st_mode, which had an ACL's mask in it */
	bool left_out; /* the reader's: no content is wanted */
	uint32_t node; /* the reader's */
	uint64_t filesystem; /* mounted there, with options.marks and dir; pfs_filesystem_of */
};

struct pfs_crawl_batch {
	struct pfs_crawl_entry *entries; /* of one directory or several */
	size_t n_entries, entries_capacity;
	char *bytes; /* names, targets, attributes */
	size_t n_bytes, bytes_capacity;
	bool has_files; /* whose content comes */
	struct pfs_crawl_dir *done; /* private: goes with the batch */
};

enum pfs_crawl_kind {
	PFS_CRAWL_ENTRIES,
	PFS_CRAWL_CHUNK,   /* one chunk of entry's content */
	PFS_CRAWL_CONTENT, /* entry's content is complete; attr says how it was then */
	PFS_CRAWL_END,	   /* nothing more about the batch */
};

struct pfs_crawl_message {
	struct pfs_crawl_message *next;
	enum pfs_crawl_kind kind;
	struct pfs_crawl_batch *batch;
	struct pfs_crawl_entry *entry;
	struct stat attr;
	bool changed;  /* CONTENT: it did while it was read */
	bool readable; /* CONTENT: else there is none, and problem has been told */
	uint64_t n;    /* CHUNK: its number */
	size_t len;
	char data[];
};

/* Returns true if it is this process that fails, not what it reads, about which an error of memory
 * or of descriptors says nothing. A crawl ends with it. */
static inline bool pfs_crawl_is_own(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/* Begins to crawl. What opening the root returns. */
PFS_MUST_CHECK int pfs_crawl_open(struct pfs_crawl **out, const struct pfs_crawl_options *options);

/* Returns the next message, or NULL at the end. It is valid until the next call, its batch until
 * the call after END. */
struct pfs_crawl_message *pfs_crawl_next(struct pfs_crawl *crawl);

/* Returns the error that ended the crawl early, or 0. */
int pfs_crawl_error(struct pfs_crawl *crawl);

/* Returns the directories that are unread, as a list (next), once there are no more messages. They
 * stay the crawl's. */
const struct pfs_crawl_dir *pfs_crawl_unread(const struct pfs_crawl *crawl);

/* Gets the attribute at *at, which goes from entry->attrs on to the next; there are
 * entry->n_attrs. */
void pfs_crawl_attr(const struct pfs_crawl_batch *batch, struct pfs_crawl_attr *out, size_t *at);

/* Gets what the entry is known by; empty without options.marks. */
void pfs_crawl_mark(const struct pfs_crawl_batch *batch, struct pfs_birthmark *out,
		    const struct pfs_crawl_entry *entry);

/* Returns true if something is mounted where the directory lies, or it is of another device than
 * the one above it, which is of the device `above`. */
static inline bool pfs_crawl_is_mounted(const struct statx *directory, dev_t above)
{
	return directory->stx_attributes & STATX_ATTR_MOUNT_ROOT ||
	       makedev(directory->stx_dev_major, directory->stx_dev_minor) != above;
}
/* The same of the open directory fd, which need not be asked for the one above it if it is of the
 * root's device, and the kernel tells where something is mounted. */
bool pfs_crawl_is_mounted_at(const struct statx *directory, int fd, dev_t root);

/* Writes an entry's path for a message, without the beginning of a very long one; name NULL: the
 * path of dir; dir NULL: of the root. */
void pfs_crawl_path(char *out, size_t size, const char *root, const struct pfs_crawl_dir *dir,
		    const char *name, size_t name_len);

/* Stops the threads; NULL is allowed. */
void pfs_crawl_close(struct pfs_crawl *crawl);

#endif
