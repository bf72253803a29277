/* SPDX-License-Identifier: MIT */
/* tools/import/crawl_look.h - a source looked at entry by entry, for whoever walks it himself: each
 * entry is noted as a crawl notes it.
 *
 * Of the options: root, cross_mounts, marks, leaving_out, store, problem.  One thread. */
#ifndef PFS_TOOLS_IMPORT_CRAWL_LOOK_H
#define PFS_TOOLS_IMPORT_CRAWL_LOOK_H

#include "tools/import/crawl.h"

struct pfs_crawl_look;

/* Begins to look at a source. What opening the root returns. */
PFS_MUST_CHECK int pfs_crawl_look_open(struct pfs_crawl_look **out,
				       const struct pfs_crawl_options *options);
void pfs_crawl_look_close(struct pfs_crawl_look *look); /* NULL is allowed */

/* Opens a directory below the root; dir is the caller's and stays until leave, and gets its device
 * and number.  *fd is valid until then.  What opening says. */
PFS_MUST_CHECK int pfs_crawl_look_enter(struct pfs_crawl_look *look, int *fd,
					struct pfs_crawl_dir *dir);
void pfs_crawl_look_leave(struct pfs_crawl_look *look);

/* The directory's entry of that name, alone in a batch that pfs_crawl_look_free frees; name NULL:
 * the directory itself.  entry->dir is set for a directory that is to be walked: it is not another
 * filesystem's, unless those are crossed.  *out is NULL when the entry has gone or is left out,
 * which problem was told. */
PFS_MUST_CHECK int pfs_crawl_look_at(struct pfs_crawl_look *look, struct pfs_crawl_batch **out,
				     const char *name);
void pfs_crawl_look_free(struct pfs_crawl_batch *batch); /* NULL is allowed */

/* Returns true for an entry of the entered directory that an import passes over: the store's, and
 * what is left out. */
bool pfs_crawl_look_passes(const struct pfs_crawl_look *look, const char *name, bool directory);
/* Returns true if what is mounted, of that device, is not walked: as mounts are not to be crossed,
 * or it is the store itself. */
bool pfs_crawl_look_stays_out(const struct pfs_crawl_look *look, dev_t mounted);

#endif
