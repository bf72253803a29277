/* SPDX-License-Identifier: MIT */
/* tools/gnu/find_parse_impl.h - inside of the parser of find's expressions: find_parse.c
 * (parentheses and operators) and find_primary.c (tests, actions and options, each with its
 * arguments). */
#ifndef PFS_TOOLS_GNU_FIND_PARSE_IMPL_H
#define PFS_TOOLS_GNU_FIND_PARSE_IMPL_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "tools/gnu/find_expr.h"

struct pfs_find_parser {
	struct pfs_find *find;
	char **argv;
	int argc, at; /* at: the next word */
	int nesting;
	bool has_action;
	reg_syntax_t syntax; /* of -regex */
	int64_t now;	     /* ns */
	int error;
};

/* Notes why the expression cannot be, unless something came before. NULL. */
PFS_PRINTF(3, 4)
struct pfs_find_node *pfs_find_fail(struct pfs_find_parser *p, int error, const char *format, ...);

/* Makes a node without anything below. NULL: there is no memory, which is noted. */
struct pfs_find_node *pfs_find_make(struct pfs_find_parser *p, enum pfs_find_kind kind);
void pfs_find_free_node(struct pfs_find_node *node); /* and all below; NULL is allowed */

/* Parses the test, action or option of that name, and its arguments, which are the next words.
 * NULL: there is none of that name, or, if p->error says so, it cannot be. */
struct pfs_find_node *pfs_find_primary(struct pfs_find_parser *p, const char *name);

#endif
