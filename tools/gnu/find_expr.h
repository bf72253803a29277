/* SPDX-License-Identifier: MIT */
/* tools/gnu/find_expr.h - the expressions of find(1): parsed, turned into a condition in SQL that
 * keeps every node on which they do something, and decided node by node.
 *
 * The condition may keep more than that, never less; what it cannot say (regular expressions,
 * patterns with classes) the decision looks at again. */
#ifndef PFS_TOOLS_GNU_FIND_EXPR_H
#define PFS_TOOLS_GNU_FIND_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "tools/stdout.h"

/* Says what deciding and printing need to know of a node. */
enum pfs_find_need {
	PFS_FIND_INO = 1,
	PFS_FIND_MODE = 2,
	PFS_FIND_NLINK = 4,
	PFS_FIND_UID = 8,
	PFS_FIND_GID = 16,
	PFS_FIND_SIZE = 32,
	PFS_FIND_BLOCKS = 64,
	PFS_FIND_MTIME = 128,
	PFS_FIND_ATIME = 256,
	PFS_FIND_CTIME = 512,
	PFS_FIND_TARGET = 1024,
	PFS_FIND_EMPTY = 2048,
	PFS_FIND_RDEV = 4096,
	PFS_FIND_LINK = 8192,
	PFS_FIND_LISTED = 8191 & ~(256 | 512 | 2048) /* what -ls prints: no other time, nor EMPTY */
};

struct pfs_found {
	const char *path; /* as it is printed, NUL-terminated */
	size_t path_len;
	const char *name; /* its last component */
	unsigned depth;   /* below the starting point */
	char type;	  /* find's letter */
	uint64_t ino, nlink, rdev;
	uint64_t link;	  /* the same at all names of a file that has several; 0: it has not */
	mode_t mode; /* type bits included */
	uid_t uid;
	gid_t gid;
	int64_t size, blocks, mtime, atime, ctime; /* blocks of 512 bytes; times in ns */
	const char *target;			   /* of a symlink */
	bool empty;				   /* a directory without entries */
};

enum pfs_find_kind {
	PFS_FIND_AND, /* operators: left and right */
	PFS_FIND_OR,
	PFS_FIND_COMMA,
	PFS_FIND_NOT, /* left */
	PFS_FIND_TRUE, /* tests */
	PFS_FIND_FALSE,
	PFS_FIND_NAME,
	PFS_FIND_PATH,
	PFS_FIND_LNAME,
	PFS_FIND_REGEX,
	PFS_FIND_TYPE,
	PFS_FIND_NUMBER,
	PFS_FIND_TIME,
	PFS_FIND_NEWER,
	PFS_FIND_PERM,
	PFS_FIND_IS_EMPTY,
	PFS_FIND_NOUSER,
	PFS_FIND_NOGROUP,
	PFS_FIND_SAME,
	PFS_FIND_PRINT, /* actions */
	PFS_FIND_PRINT0,
	PFS_FIND_LS,
	PFS_FIND_PRINTF,
	PFS_FIND_EXEC,
	PFS_FIND_EXEC_MANY,
	PFS_FIND_DELETE,
	PFS_FIND_PRUNE,
	PFS_FIND_QUIT,
};

/* n (0), +n (1), -n (-1) */
struct pfs_find_number {
	int sign;
	int64_t n, unit; /* compared is the value divided by unit, rounded up */
};

struct re_pattern_buffer;
struct pfs_find_format;

struct pfs_find_node {
	enum pfs_find_kind kind;
	struct pfs_find_node *left, *right;
	unsigned field; /* enum pfs_find_need: NUMBER's, TIME's, NEWER's */
	const char *text; /* pattern, TYPE's letters, or SAME's file; argv's */
	uint64_t ino, link; /* SAME: of the file, where the search is; link 0: none */
	bool fold_case;
	struct pfs_find_number number; /* TIME: unit in ns, counted back from now */
	int64_t time;		       /* NEWER: later than; TIME: now */
	mode_t mode;
	char perm_kind; /* 0: exactly, '-': all of mode, '/': any of it */
	struct re_pattern_buffer *regex;
	struct pfs_find_format *format;
	char **command; /* of EXEC: argv's, ended by NULL */
	char **batch;   /* of EXEC_MANY: paths collected so far */
	size_t n_batch, capacity, batch_bytes;
};

struct pfs_find {
	struct pfs_find_node *root;
	unsigned needs; /* enum pfs_find_need */
	unsigned min_depth, max_depth;
	bool depth_first; /* contents before their directory */
	bool ordered;	  /* what is done depends on the order, which is find(1)'s walk */
	bool acts;	  /* has -exec or -delete: works on the mounted tree */
	char why[256];	  /* what is wrong, when parsing fails */
};

/* Parses argv, which must stay.  Without an action, printing is added.  -EINVAL (see why), -ENOMEM.
 * Finish it in any case. */
PFS_MUST_CHECK int pfs_find_parse(struct pfs_find *find, char **argv, int argc);
void pfs_find_finish(struct pfs_find *find);

/* Calls fn for each -samefile of the expression, to set ino and link, until it returns non-zero. */
PFS_MUST_CHECK int pfs_find_each_same(struct pfs_find_node *root,
				      int (*fn)(void *arg, struct pfs_find_node *node), void *arg);

/* Returns the condition on `nodes`, which the caller frees: "1" for all. Not for the starting
 * point, whose name may be another where it is found. NULL: no memory. */
char *pfs_find_condition(const struct pfs_find *find);

struct pfs_find_run {
	const struct pfs_find *find;
	struct pfs_stdout *out;
	bool terminal; /* which out goes to */
	const char *start; /* the operand that is being searched, as it is printed */
	bool pruned, quit;
	int status; /* enum pfs_exit: of what actions did */
	/* Removes the node; prints a line when it fails.  The run's. */
	void *arg;
	bool (*remove)(void *arg, const struct pfs_found *node);
};

/* Decides for a node, doing what is to be done; sets pruned (nothing below this one) and quit. */
bool pfs_find_decide(struct pfs_find_run *run, const struct pfs_found *node);

/* Runs what -exec … + has collected. */
void pfs_find_complete(struct pfs_find_run *run);

#endif
