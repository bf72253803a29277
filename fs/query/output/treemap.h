/* SPDX-License-Identifier: MIT */
/* fs/query/output/treemap.h - the sizes of a subtree as a picture: one SVG that needs nothing else.
 *
 * A squarified treemap (Bruls, Huizing and van Wijk 2000): a rectangle for each file, as large as
 * its size, inside the rectangle of its directory, and coloured by extension. Files that are too
 * small to be seen are drawn as one rectangle, the directory's rest.
 *
 * Use: run pfs_treemap_statement's statement, give its rows to pfs_treemap_row, then write. */
#ifndef PFS_FS_QUERY_OUTPUT_TREEMAP_H
#define PFS_FS_QUERY_OUTPUT_TREEMAP_H

#include "fs/query/output/answer.h"

struct pfs_treemap;

/* Makes an empty treemap of so many pixels, at least 16 each. -ENOMEM. */
PFS_MUST_CHECK int pfs_treemap_create(struct pfs_treemap **out, unsigned width, unsigned height);
void pfs_treemap_close(struct pfs_treemap *treemap); /* NULL is allowed */
void pfs_treemap_clear(
	struct pfs_treemap *treemap); /* removes all rows: the statement has begun anew */

/* Writes the statement of whose rows a treemap of the directory `ino` is made. Returns its
 * length. */
#define PFS_TREEMAP_STATEMENT 512
size_t pfs_treemap_statement(const struct pfs_treemap *treemap, char sql[PFS_TREEMAP_STATEMENT],
			     uint64_t ino);
/* Adds the query's present row. -ENOMEM. */
PFS_MUST_CHECK int pfs_treemap_row(struct pfs_treemap *treemap, const struct pfs_query *query);

/* Writes the picture; title is bytes, as a path is. What the sink returns; -ENOMEM. */
PFS_MUST_CHECK int pfs_treemap_write(struct pfs_treemap *treemap, const struct pfs_sink *sink,
				     uint64_t ino, const char *title);

#endif
