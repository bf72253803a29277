/* SPDX-License-Identifier: MIT */
/* tools/client/prompt.h - a prompt for statements, with history and completion where libedit is. */
#ifndef PFS_TOOLS_CLIENT_PROMPT_H
#define PFS_TOOLS_CLIENT_PROMPT_H

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"

struct pfs_prompt {
	void *arg;
	/* Runs a statement. Returns an exit status, having said what was wrong. */
	int (*run)(void *arg, const char *sql);
	/* Calls add for the names of tables and columns, to be completed; asked for when Tab is first
	 * hit, and again after a statement that may change them. */
	void (*names)(void *arg, void (*add)(void *list, const char *name), void *list);
};

/* Reads statements, each ended by a semicolon, from the terminal or from standard input until its end
 * or `quit`, and runs each.  At a terminal a statement that fails ends nothing, and Ctrl-C drops the
 * one being typed or sets *pfs_prompt_stop() while one runs; elsewhere it ends the reading.  An exit status. */
PFS_MUST_CHECK int pfs_prompt(const struct pfs_prompt *prompt);

/* Returns a flag that is true once whatever runs should end, and false again when the next
 * statement begins. */
const volatile sig_atomic_t *pfs_prompt_stop(void);

#endif
