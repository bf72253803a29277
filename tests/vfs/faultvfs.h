/* SPDX-License-Identifier: MIT */
/* tests/vfs/faultvfs.h - an SQLite VFS above the system's one that fails calls on demand, and that
 * records what reaches the disk so that crashes can be played back.
 *
 * In a program of one's own: fault_register(), then give the VFS's name to the store, or make it
 * the default.  In the real program (build/<variant>/tests/vfs/primefs-fault is primefs with this
 * VFS as its default): the environment variable PFS_FAULT holds a plan, or PFS_FAULT_FILE names a
 * file that holds one and is read again whenever it changes: `echo 'sync:0:*:EIO' > file` starts
 * the fault in a running daemon, `: > file` ends it.
 *
 * A plan in words: CALLS:FIRST:COUNT:ERRNO.  CALLS is `any` or names of calls joined by commas
 * (open read write truncate sync delete access size shm lock memory); FIRST of them succeed, then
 * COUNT
 * (`*`: all) fail with ERRNO (EIO, ENOSPC, EDQUOT, ENOMEM).
 *
 * Nothing is really synced: crashes are played back, never real.
 *
 * Threads: any number; the plan and the recording are the process's. */
#ifndef PFS_TESTS_FAULTVFS_H
#define PFS_TESTS_FAULTVFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define FAULT_VFS_NAME "pfs-fault"

/* ---- failing calls ---- */

enum fault_call {
	FAULT_OPEN,
	FAULT_READ,
	FAULT_WRITE, /* half of the bytes are written */
	FAULT_TRUNCATE,
	FAULT_SYNC,
	FAULT_DELETE,
	FAULT_ACCESS,
	FAULT_SIZE,
	FAULT_SHM,
	FAULT_LOCK,
	FAULT_MEMORY, /* SQLite's allocations; only if registered before SQLite is used */
	FAULT_CALLS,
};

#define FAULT_BIT(call) (1u << (call))
#define FAULT_ANY	(FAULT_BIT(FAULT_MEMORY) - 1) /* all but memory */
#define FAULT_FOR_EVER	UINT64_MAX

struct fault_plan {
	unsigned calls; /* FAULT_BIT of each kind that counts and may fail */
	uint64_t first; /* so many succeed, */
	uint64_t count; /* then so many fail, and all others succeed */
	int error;	/* EIO, ENOSPC, EDQUOT or ENOMEM */
};

/* Registers the VFS, as SQLite's default if make_default; reads PFS_FAULT and PFS_FAULT_FILE.
 * Again: no effect.  0 or -EINVAL (a plan that is none), -EIO. */
PFS_MUST_CHECK int fault_register(bool make_default);

/* From now on this plan; NULL: no faults. */
void fault_set(const struct fault_plan *next);

/* From now on this thread's calls neither count nor fail, or do again: for a test that looks on. */
void fault_spare(bool spare);

/* Calls of the plan's kinds, and failures among them, since fault_set. */
uint64_t fault_calls(void);
uint64_t fault_failures(void);

/* *out = the plan in words; empty text is no fault (count 0).  -EINVAL. */
PFS_MUST_CHECK int fault_parse(struct fault_plan *out, const char *text);

/* ---- recording and playing back ---- */

/* Starts an empty recording of all files that the VFS opens (their last path components are their
 * names); the former one is forgotten. */
void fault_record(void);

/* Ends the recording, which can be played back until the next one. */
void fault_stop(void);

/* Notes a number at this moment of the recording, for the test to find. */
void fault_mark(uint64_t number);

/* Notes that the program has synced the folder itself, past SQLite: makings and deletes of files up
 * to here are durable. */
void fault_folder_synced(void);

size_t fault_length(void); /* entries so far, marks included */

/* The number of the last mark among the first `length` entries; 0 when there is none. */
uint64_t fault_last_mark(size_t length);

enum fault_crash {
	FAULT_KILLED,  /* the process dies: all entries have happened, in order */
	FAULT_REORDER, /* power fails: of what was not synced, some writes happened and some not */
	FAULT_TORN,    /* the same for each sector of them, and some sectors hold noise */
};

/* Writes into folder the files as a crash after `length` entries may leave them; the same seed
 * gives the same crash.  -errno. */
PFS_MUST_CHECK int fault_replay(const char *folder, size_t length, enum fault_crash crash,
				uint64_t seed);

#endif
