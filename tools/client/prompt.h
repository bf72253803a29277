/* SPDX-License-Identifier: MIT */
/* tools/client/prompt.h - a prompt for statements; with libedit it has history and completion. */
#ifndef PFS_TOOLS_CLIENT_PROMPT_H
#define PFS_TOOLS_CLIENT_PROMPT_H

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"

struct pfs_prompt {
	void *arg;
	/* Runs a statement, and prints what is wrong with it. Returns an exit status. */
	int (*run)(void *arg, const char *sql);
	/* Calls add for each name of a table or column that can be completed. It is called when Tab
	 * is first hit, and again after a statement that may change names. */
	void (*names)(void *arg, void (*add)(void *list, const char *name), void *list);
};

/* Reads statements, each ended by a semicolon, from standard input until its end or `quit`, and
 * runs each. If that is a terminal, the prompt goes on after a statement that fails; Ctrl-C drops
 * the statement that is being typed, or sets *pfs_prompt_stop() if one runs. If it is none, a
 * statement that fails ends the reading. Returns an exit status. */
PFS_MUST_CHECK int pfs_prompt(const struct pfs_prompt *prompt);

/* Returns a flag that is true when the running statement should end, and false again when the next
 * one begins. */
const volatile sig_atomic_t *pfs_prompt_stop(void);

#endif
