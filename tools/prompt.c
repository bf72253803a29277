/* SPDX-License-Identifier: MIT */
#include "tools/prompt.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/query.h"
#include "tools/cmd.h"

#if PFS_EDIT
#include <editline/readline.h>

#define HISTORY_MAX 1000

static const char *const words[] = {
	"SELECT",	"FROM",		"WHERE",	 "GROUP BY",	  "ORDER BY",
	"HAVING",	"LIMIT",	"DISTINCT",	 "JOIN",	  "USING",
	"UPDATE",	"DELETE",	"INSERT INTO",	 "VALUES",	  "WITH",
	"BETWEEN",	"LIKE",		"GLOB",		 "count(*)",	  "sum(",
	"nodes",	"path",		"name",		 "ext",		  "ino",
	"parent",	"depth",	"type",		 "mode",	  "uid",
	"gid",		"owner",	"owner_group",	 "size",	  "blocks",
	"nlink",	"target",	"mtime",	 "atime",	  "ctime",
	"subtree_count", "subtree_size", "subtree_blocks", "subtree_mtime", "under(ino, ",
	"child_of(ino, ", "ancestor_of(ino, ", "path_of(", "ino_of(",	  "common_ancestor(",
};

static char *next_word(const char *text, int again)
{
	static size_t at;

	at = again ? at : 0;
	while (at < PFS_COUNT(words)) {
		const char *word = words[at++];

		if (strncasecmp(word, text, strlen(text)) == 0)
			return strdup(word);
	}
	return NULL;
}

static char **complete(const char *text, int start PFS_UNUSED, int end PFS_UNUSED)
{
	return rl_completion_matches(text, next_word);
}

/* In the folder for a program's state, as the XDG base directory specification has it. */
static bool history_file(char out[PATH_MAX])
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n = state && *state == '/' ? snprintf(out, PATH_MAX, "%s/primefs_history", state)
		: home ? snprintf(out, PATH_MAX, "%s/.primefs_history", home)
		       : -1;

	return n > 0 && n < PATH_MAX;
}

static void begin_editing(void)
{
	char file[PATH_MAX];

	rl_readline_name = "primefs";
	rl_attempted_completion_function = complete;
	using_history();
	stifle_history(HISTORY_MAX);
	if (history_file(file))
		(void)read_history(file);
}

static void end_editing(void)
{
	char file[PATH_MAX];
	mode_t mask = umask(077);

	if (history_file(file))
		(void)write_history(file);
	(void)umask(mask);
}

static void remember(const char *statement)
{
	add_history(statement);
}

static char *edit_line(const char *prompt)
{
	return readline(prompt);
}
#else
static void begin_editing(void)
{
}

static void end_editing(void)
{
}

static void remember(const char *statement PFS_UNUSED)
{
}

static char *edit_line(const char *prompt)
{
	char *line = NULL;
	size_t capacity = 0;
	ssize_t n;

	(void)fputs(prompt, stdout);
	(void)fflush(stdout);
	n = getline(&line, &capacity, stdin);
	if (n < 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = 0;
	return line;
}
#endif

static char *read_line(bool terminal, bool continued)
{
	char *line = NULL;
	size_t capacity = 0;

	if (terminal)
		return edit_line(continued ? "   ...> " : "primefs> ");
	if (getline(&line, &capacity, stdin) >= 0)
		return line;
	free(line);
	return NULL;
}

/* What is not blank; its end, and whether that is a semicolon. */
static char *trim(char *text, bool *ended)
{
	char *end = strchr(text, 0);

	while (isspace((unsigned char)*text))
		text++;
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = 0;
	*ended = end > text && end[-1] == ';';
	return text;
}

static void help(void)
{
	(void)puts("A statement ends with a semicolon.  For instance:\n"
		   "  SELECT path, size FROM nodes WHERE size > 1000000 ORDER BY size DESC LIMIT 10;\n"
		   "  SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext ORDER BY 3 DESC;\n"
		   "  SELECT path FROM nodes WHERE under(ino, '/src') AND name GLOB '*.c';\n"
		   "quit or end of input leaves.");
}

/* One statement's text has come; true to go on. */
static bool take(void *arg, const char *format, const char *text, bool terminal, int *status,
		 int (*run)(void *arg, const char *format, const char *sql))
{
	if (strcasecmp(text, "quit") == 0 || strcasecmp(text, "quit;") == 0 ||
	    strcasecmp(text, "exit") == 0)
		return false;
	if (strcasecmp(text, "help") == 0 || strcasecmp(text, "help;") == 0) {
		help();
		return true;
	}
	if (terminal)
		remember(text);
	*status = run(arg, format, text);
	return terminal || !*status;
}

static bool is_word(const char *text)
{
	return strcasecmp(text, "quit") == 0 || strcasecmp(text, "exit") == 0 ||
	       strcasecmp(text, "help") == 0;
}

int pfs_prompt(void *arg, const char *format,
	       int (*run)(void *arg, const char *format, const char *sql))
{
	bool terminal = isatty(STDIN_FILENO), go_on = true;
	char *text PFS_FREE = NULL, *line;
	size_t capacity = 0, size = 0;
	int status = PFS_EXIT_OK;

	if (terminal)
		begin_editing();
	while (go_on && (line = read_line(terminal, size))) {
		size_t len = strlen(line);
		bool ended;
		char *statement;

		if (pfs_grow(&text, &capacity, size + len + 2, 1) || !text) {
			free(line);
			status = pfs_cmd_fail("query", "no memory");
			break;
		}
		(void)memcpy(text + size, line, len);
		size += len;
		text[size++] = '\n';
		text[size] = 0;
		free(line);
		statement = trim(text, &ended);
		if (!ended && !is_word(statement) && *statement) {
			size = strlen(text);
			text[size++] = '\n';
			continue;
		}
		size = 0;
		go_on = !*statement || take(arg, format, statement, terminal, &status, run);
	}
	if (go_on && size) { /* the last one needs no semicolon */
		text[size] = 0;
		(void)take(arg, format, text, terminal, &status, run);
	}
	if (terminal)
		end_editing();
	return terminal ? PFS_EXIT_OK : status;
}
