/* SPDX-License-Identifier: MIT */
/* fs/mount/options.h - a mount's options, as a struct and as the text after -o. */
#ifndef PFS_FS_MOUNT_OPTIONS_H
#define PFS_FS_MOUNT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"
#include "gpu/engine.h"
#include "meta/history.h"

#define PFS_MOUNT_THREADS_MAX 64

enum pfs_readdirplus {
	PFS_READDIRPLUS_AUTO, /* for processes that want attributes, as advice.h guesses */
	PFS_READDIRPLUS_ALWAYS,
	PFS_READDIRPLUS_NEVER,
};

enum pfs_follow_choice {
	PFS_FOLLOW_NOT,
	PFS_FOLLOW_AUTO, /* the first that works of: fanotify, inotify, refreshes */
	PFS_FOLLOW_FANOTIFY, /* as AUTO */
	PFS_FOLLOW_INOTIFY,
};

struct pfs_mount_options {
	unsigned long flags; /* mount(2)'s MS_* flags, MS_REMOUNT included */
	unsigned long said;  /* the flags that an option set or cleared */
	bool explicit_rw;    /* "rw" was said */
	bool allow_other;
	bool writeback;	  /* the kernel gathers writes before it sends them */
	bool single;	  /* one thread, one request at a time */
	bool debug;	  /* log each request */
	unsigned threads; /* threads that wait for requests */
	double timeout;	  /* seconds that the kernel may keep names and attributes */
	enum pfs_readdirplus readdirplus;
	enum pfs_engine_kind engine;
	enum pfs_links_choice links;
	bool sets_history; /* the store's rule of history becomes `history` */
	struct pfs_history_rule history;
	bool no_image_file;	/* no image file is read or written (fs/image/imagefile.h) */
	bool no_measuring;	/* estimates of statements go by fixed rates (fs/query/query.h) */
	bool query_others;	/* `.query` answers all users, about what each of them sees */
	uint64_t query_memory;	/* bytes that a statement may need at once; 0: no limit */
	/* Bytes of all statements together; 0: a quarter of the machine's memory. */
	uint64_t query_memory_total;
	uint64_t query_value;	/* bytes that a value in a statement may have */
	enum pfs_follow_choice watch; /* how the source is watched for changes */
	/* directories that inotify may watch; 0: three quarters of what it allows */
	unsigned watch_limit;
	unsigned refresh_ms;	/* milliseconds between refreshes from the source; 0: none */
	unsigned query_time_ms; /* milliseconds that a statement may take; 0: no limit */
	/* For tests: milliseconds that a statement waits for the reader of its answer. */
	unsigned query_rest_ms;
	/* For tests: bytes of memory that all answers together may have beyond their own
	 * (answer.h); 0: the usual. */
	uint64_t query_kept;
};

/* Returns the flags (MS_*) that are among the options of a mount as the kernel lists them. */
unsigned long pfs_mount_flags_of(const char *text);

/* Sets the defaults: nosuid, nodev, and limits that fit this machine. */
void pfs_mount_options_init(struct pfs_mount_options *options);

/* Applies comma-separated options; later ones win. -EINVAL: message says which one is wrong, and
 * why. */
PFS_MUST_CHECK int pfs_mount_options_parse(struct pfs_mount_options *options, char *message,
					   size_t message_size, const char *text);

#endif
