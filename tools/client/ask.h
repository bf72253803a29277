/* SPDX-License-Identifier: MIT */
/* tools/client/ask.h - rows about a place: what lies at a path of a mounted store, asked through the
 * `.query` there, or at a path in a store, asked through its daemon or read. */
#ifndef PFS_TOOLS_CLIENT_ASK_H
#define PFS_TOOLS_CLIENT_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "tools/gnu/row.h"

struct pfs_place {
	const char *verb;
	const char *shown; /* what stands for the place in what is printed; "" for a store's root */
	struct pfs_answerer *store; /* NULL: mounted; all places of a call share it */
	char *folder;	   /* mounted: the directory whose .query is asked */
	dev_t device;	   /* mounted: of the mount */
	char *path;	   /* absolute in the store; NULL: it could not be opened */
};

/* Opens every place that the operands name: a store and paths in it (none: its root), or paths of
 * mounted stores (none: the working directory); follows: such a path that is a symlink to a directory is
 * that directory.  An exit status, having said what was wrong; with
 * PFS_EXIT_FAILURE some may be open.  Close them in any case. */
PFS_MUST_CHECK int pfs_places_open(struct pfs_place **places, size_t *n, const char *verb,
				   char **operands, size_t n_operands, bool follows);
void pfs_places_close(struct pfs_place *places, size_t n);

/* Calls row for each row of the statement, to be taken apart by tools/gnu/row.h, until it returns false.  An
 * exit status, having said what was wrong. */
PFS_MUST_CHECK int pfs_place_ask(const struct pfs_place *place, const char *sql,
				 bool (*row)(void *arg, struct pfs_row *row), void *arg);

/* As pfs_place_ask, and the rows stay: what is left of one, at row->at - kept->text, may be taken
 * later. The text moves while rows come; the caller frees it in any case. */
struct pfs_place_text {
	char *text;
	size_t size, capacity;
};
PFS_MUST_CHECK int pfs_place_keep(const struct pfs_place *place, struct pfs_place_text *kept,
				  const char *sql,
				  bool (*row)(void *arg, struct pfs_row *row), void *arg);

/* Asks .query/run of the mounted directory `folder`, which answers whoever may ask there; `shown` stands
 * for it in messages.  The answer is TSV; a sink that returns -ECANCELED has enough.  An exit status,
 * having said what was wrong. */
struct pfs_sink;
PFS_MUST_CHECK int pfs_ask_run(const char *verb, const char *shown, const char *folder,
			       const char *sql, const struct pfs_sink *sink);

/* Returns the text as SQL has it, in quotes, which the caller frees; NULL: no memory. */
char *pfs_sql_quote(const char *text);

#endif
