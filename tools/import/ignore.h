/* SPDX-License-Identifier: MIT */
/* tools/import/ignore.h - which entries of a folder are left out: rules as in .gitignore files.
 *
 * A line is a rule; empty ones and those that begin with # are none.  ! at its beginning takes back
 * what an earlier rule leaves out, / at its end is for directories alone.  A rule with another / in
 * it is of a path from where the rules are, any other of a name anywhere below.  * and ? stand for
 * anything but /, [...] for one of these, ** for any number of folders; \ takes the meaning from
 * what follows. The last rule that fits counts.  What lies in a directory that is left out is never
 * asked about.
 *
 * Threads: any number may ask; a set of rules does not change once it is made. */
#ifndef PFS_TOOLS_IMPORT_IGNORE_H
#define PFS_TOOLS_IMPORT_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct pfs_ignore_rule;

struct pfs_ignore {
	const struct pfs_ignore *above; /* rules that count where these do not say; or NULL */
	size_t base_len;		/* of the path of the directory that they are of */
	struct pfs_ignore_rule *rules;
	size_t n, capacity;
};

/* Adds the rule that the text is, which need not end with a NUL.  -ENOMEM. */
PFS_MUST_CHECK int pfs_ignore_add(struct pfs_ignore *ignore, const char *line, size_t len);

/* Adds all lines of a text. -ENOMEM. */
PFS_MUST_CHECK int pfs_ignore_add_lines(struct pfs_ignore *ignore, const char *text, size_t size);

/* Returns how many bytes the byte order mark takes that a file of this text begins with; 0: none.
 * It is not part of the first rule. */
size_t pfs_ignore_mark_len(const char *text, size_t size);

/* Adds all lines of the file `name` below the directory dir (or AT_FDCWD), which is no symlink if
 * `strict`; a byte order mark that it begins with is passed over. What opening and reading return;
 * -EFBIG: it has more than PFS_IGNORE_FILE_MAX bytes. */
#define PFS_IGNORE_FILE_MAX ((size_t)1 << 20)
PFS_MUST_CHECK int pfs_ignore_read(struct pfs_ignore *ignore, int dir, const char *name,
				   bool strict);

/* Returns true if the entry is left out. path: its directory's, below the root, with `len` bytes.
 * ignore NULL: nothing is left out. */
bool pfs_ignores(const struct pfs_ignore *ignore, const char *path, size_t len, const char *name,
		 bool directory);

/* Says what an import, or a refresh, was told to leave out. */
struct pfs_leaving_out {
	struct pfs_ignore rules; /* of paths from the root */
	bool gitignore;		 /* and what .gitignore files say, each of what is below it */
	bool caches;		 /* and all in a directory with a CACHEDIR.TAG but that */
	bool given;		 /* any of these */
};

static inline bool pfs_leaving_out_given(const struct pfs_leaving_out *leaving_out)
{
	return leaving_out && leaving_out->given;
}

/* Make a text of it, which the caller frees, for a store to keep: a line that names the other two,
 * then a rule a line. Reading it adds to what is there, and sets `given`. -ENOMEM. */
PFS_MUST_CHECK int pfs_leaving_out_write(const struct pfs_leaving_out *leaving_out, char **text,
					 size_t *size);
PFS_MUST_CHECK int pfs_leaving_out_read(struct pfs_leaving_out *leaving_out, const char *text,
					size_t size);

void pfs_ignore_finish(struct pfs_ignore *ignore);

/* Sets *is to true if the open directory has a CACHEDIR.TAG (bford.info/cachedir): all but that is
 * left out then. Returns 0, or why none can be opened: -ENOENT, mostly. */
#define PFS_CACHE_TAG "CACHEDIR.TAG"
int pfs_find_cache_tag(bool *is, int dir);

#endif
