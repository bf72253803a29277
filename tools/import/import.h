/* SPDX-License-Identifier: MIT */
/* tools/import/import.h - what the importers of all formats share.
 *
 * An importer reads the source and adds nodes to the build (read); pfs_build_finish then calls
 * `written` for every node in order of primes, to put its attributes and content into the store.
 *
 * Errors: the function that finds one says it (pfs_import_problem, pfs_import_fail) and returns
 * -ECANCELED, which everybody hands up in silence; other errors are said once, by
 * pfs_cmd_import. */
#ifndef PFS_TOOLS_IMPORT_IMPORT_H
#define PFS_TOOLS_IMPORT_IMPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "fs/build/build.h"
#include "tools/cmd.h"
#include "base/input.h"

enum pfs_import_content {
	PFS_CONTENT_LINK,
	PFS_CONTENT_COPY,
	PFS_CONTENT_NONE,
};

struct pfs_import;

struct pfs_import_format {
	const char *name;
	bool skips; /* what cannot be read is skipped unless --on-error says otherwise */
	int (*read)(struct pfs_import *import);
	int (*written)(struct pfs_import *import, uint32_t node, uint64_t prime); /* may be NULL */
	int (*finished)(struct pfs_import *import); /* all nodes have primes; may be NULL */
	void (*close)(struct pfs_import *import); /* frees import->state; may be NULL */
};

/* Each format once, by its name: pfs_import_NAME is defined in import_NAME.c.  Whoever lists
 * formats lists these. */
#define PFS_IMPORT_FORMATS(FORMAT) FORMAT(dir) FORMAT(paths) FORMAT(csv) FORMAT(tar)

#define PFS_IMPORT_FORMAT(name) extern const struct pfs_import_format pfs_import_##name;
PFS_IMPORT_FORMATS(PFS_IMPORT_FORMAT)
#undef PFS_IMPORT_FORMAT

struct pfs_leaving_out;

struct pfs_import_options {
	const char *source, *store;
	const struct pfs_import_format *format; /* NULL: recognised */
	const char *at;			 /* NULL: a new store */
	enum pfs_import_content content; /* dir */
	bool content_given;
	bool cross_mounts; /* dir */
	struct pfs_leaving_out *leaving_out; /* dir; NULL, or not given: nothing is left out */
	bool nul_ended;	/* paths */
	const char *columns; /* paths */
	const char *path_column, *id_column, *parent_column, *name_column; /* csv */
	const char *delimiter; /* csv: as in base/csv.h; NULL: recognised, or a comma */
	const char *slash;     /* csv: stands for a '/' in names; NULL: none may have one */
	bool skip; /* report what is wrong with an entry and go on without it */
	bool skip_given;
	mode_t mode; /* of a new store's file; 0: 0600 */
	bool trust;  /* stamp the store instead of importing */
	bool json, quiet;
	bool passing; /* the store is soon gone again: no image file is left beside it */
};

struct pfs_import_report {
	uint64_t skipped;    /* entries left out because something was wrong with them */
	uint64_t hard_links; /* further names of a file, which became files of their own */
	uint64_t narrowed;   /* modes that are less than st_mode, which had an ACL's mask in it */
	uint64_t changed;    /* files that changed while they were copied */
	uint64_t repeated;   /* entries that came again; the last one counts */
	uint64_t slashes;    /* names with a '/', kept as options.slash */
	char columns[512];   /* those that statements know as "user.NAME", in a list */
};

struct pfs_import {
	struct pfs_import_options options;
	struct pfs_input_stream input; /* all formats but dir */
	struct pfs_build *build;
	struct stat defaults;
	struct pfs_progress progress;
	struct pfs_import_report report; /* the importer's thread alone, but for skipped */
	pthread_mutex_t mutex; /* one message at a time */
	bool stopped;	       /* by a problem; atomic */
	void *state; /* the format's */
	time_t begun_s; /* since 1970; the source was as it is imported then or later */
	bool says_when; /* directories that are added get a stamp (import_source.h) */
	bool guarded; /* signals that end the process remove the unfinished store */
	void (*say)(void *arg, const char *message); /* NULL: to standard error */
	void *say_arg;
};

/* Says what is wrong with one entry: "primefs import: MESSAGE", the message beginning with
 * file:line or a path. Returns 0 if the import is to go on without it (it is counted), else
 * -ECANCELED. Any thread. */
PFS_MUST_CHECK int pfs_import_problem(struct pfs_import *import, const char *format, ...)
	PFS_PRINTF(2, 3);

/* Says why the import ends; returns -ECANCELED. */
int pfs_import_fail(struct pfs_import *import, const char *format, ...) PFS_PRINTF(2, 3);

/* Says something that leaves nothing out.  Any thread. */
void pfs_import_warn(struct pfs_import *import, const char *format, ...) PFS_PRINTF(2, 3);

/* Returns the st_blocks of a chunk, or of content that fills its chunks, as the tree counts
 * them. */
static inline int64_t pfs_import_blocks(uint64_t size)
{
	return (int64_t)((size + 4095) / 4096 * 8);
}

/* Notes that statements know this column by another name, which the report says. */
void pfs_import_note_column(struct pfs_import *import, const char *name);

/* Makes it possible to read the input twice; -ECANCELED when there is no room, which is said. */
PFS_MUST_CHECK int pfs_import_keep(struct pfs_import *import);

/* Says that reading the input failed with error; returns -ECANCELED. */
int pfs_import_unreadable(struct pfs_import *import, int error);

/* Shows the number of nodes now and then; cheap. */
void pfs_import_progress(struct pfs_import *import);

/* Returns true if the directory that things are added under was in the store before: it stays as it
 * is. */
static inline bool pfs_import_root_stored(const struct pfs_import *import)
{
	return import->options.at && pfs_build_prime(import->build, PFS_BUILD_ROOT);
}

/* Returns a sentence for what pfs_build_add returned for a name: -EINVAL, -ENAMETOOLONG, ... */
const char *pfs_import_name_error(int error);

/* Prints what originals a store has, by root, and stamps it: they are followed from now on.  An
 * exit status. */
int pfs_import_trust(const char *store, bool json);

/* Check that options make sense by themselves, and with the format: PFS_EXIT_USAGE and a line if
 * not. */
PFS_MUST_CHECK int pfs_import_check_values(struct pfs_import_options *options);
PFS_MUST_CHECK int pfs_import_check_uses(const struct pfs_import_options *options);

/* Runs an import whose options, with a format, and input are set; leaves the input open.  An exit
 * status. */
int pfs_import_run(struct pfs_import *import);

/* Leaves a process that makes an image file (fs/image/imagefile.h) of the store that was made or
 * added to. */
void pfs_import_leave_image(const struct pfs_import *import);

#endif
