/* SPDX-License-Identifier: MIT */
/* tools/client/ask.h - rows about a place. A place is a path in a mounted store, about which
 * `.query` is asked there; or a path in a store, about which its daemon is asked, or which is
 * read. */
#ifndef PFS_TOOLS_CLIENT_ASK_H
#define PFS_TOOLS_CLIENT_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "tools/gnu/row.h"

struct pfs_run_file; /* the .query/run that is open */

struct pfs_place {
	const char *verb;
	const char *shown; /* the name of the place in what is printed; "" for a store's root */
	struct pfs_answerer *store; /* shared by all places of a call; NULL: the place is mounted */
	char *folder;	   /* if mounted: the directory whose .query is asked */
	struct pfs_run_file
		*run; /* if mounted: that of the place asked last; shared by all places of a call */
	dev_t device;	   /* if mounted: the mount's device number */
	char *path;	   /* absolute in the store; NULL: the place could not be opened */
};

/* Opens every place that the operands name: a store and paths in it (no path: its root), or paths
 * in mounted stores (no operand: the working directory). follows: a path in a mounted store that is
 * a symlink to a directory stands for that directory. Returns an exit status; if it is not
 * PFS_EXIT_OK, the reason has been printed, and with PFS_EXIT_FAILURE some places may be open. The
 * caller closes the places in any case. */
PFS_MUST_CHECK int pfs_places_open(struct pfs_place **places, size_t *n, const char *verb,
				   char **operands, size_t n_operands, bool follows);
void pfs_places_close(struct pfs_place *places, size_t n);

/* Calls row for each row of the statement, until it returns false; tools/gnu/row.h parses a row.
 * Returns an exit status; if it is not PFS_EXIT_OK, the reason has been printed. */
PFS_MUST_CHECK int pfs_place_ask(const struct pfs_place *place, const char *sql,
				 bool (*row)(void *arg, struct pfs_row *row), void *arg);

/* As pfs_place_ask, but keeps the text of all rows: the rest of a row, from the offset
 * row->at - kept->text on, may be parsed later. The text may move with each row. The caller frees
 * kept->text in any case. */
struct pfs_place_text {
	char *text;
	size_t size, capacity;
};
PFS_MUST_CHECK int pfs_place_keep(const struct pfs_place *place, struct pfs_place_text *kept,
				  const char *sql,
				  bool (*row)(void *arg, struct pfs_row *row), void *arg);

/* Asks .query/run in the mounted directory `folder`, as any user may who has rights there. `shown`
 * is its name in messages. The answer is TSV; a sink ends it by -ECANCELED. Returns an exit status;
 * if it is not PFS_EXIT_OK, the reason has been printed. */
struct pfs_sink;
PFS_MUST_CHECK int pfs_ask_run(const char *verb, const char *shown, const char *folder,
			       const char *sql, const struct pfs_sink *sink);

/* Returns the text as a literal of SQL, in quotes, which the caller frees; NULL: no memory. */
char *pfs_sql_quote(const char *text);

#endif
