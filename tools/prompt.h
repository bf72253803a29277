/* SPDX-License-Identifier: MIT */
/* tools/prompt.h - a prompt for statements, with history and completion where libedit is. */
#ifndef PFS_TOOLS_PROMPT_H
#define PFS_TOOLS_PROMPT_H

/* Reads statements, each ended by a semicolon, from the terminal or from standard input until its end
 * or `quit`, and calls run for each.  At a terminal a statement that fails ends nothing; elsewhere it
 * ends the reading.  An exit status. */
int pfs_prompt(void *arg, const char *format,
	       int (*run)(void *arg, const char *format, const char *sql));

#endif
