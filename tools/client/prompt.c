/* SPDX-License-Identifier: MIT */
#include "tools/client/prompt.h"

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
#include "meta/sql/sqlquery.h"
#include "tools/cmd.h"

/* Set by Ctrl-C, which ends the statement that runs or drops the one that is being typed. */
static volatile sig_atomic_t stop;

const volatile sig_atomic_t *pfs_prompt_stop(void)
{
	return &stop;
}

#if PFS_EDIT
#include <editline/readline.h>
#include <setjmp.h>

#define HISTORY_MAX 1000

static const char *const words[] = {
	"SELECT",	 "FROM",	   "WHERE",
	"GROUP BY",	 "ORDER BY",	   "HAVING",
	"LIMIT",	 "DISTINCT",	   "JOIN",
	"USING",	 "UPDATE",	   "SET",
	"DELETE",	 "INSERT INTO",	   "VALUES",
	"WITH",		 "BETWEEN",	   "LIKE",
	"GLOB",		 "IS NULL",	   "CREATE TABLE",
	"DROP TABLE",	 "count(*)",	   "sum(",
	"min(",		 "max(",	   "avg(",
	"under(ino, ",	 "child_of(ino, ", "ancestor_of(ino, ",
	"path_of(",	 "ino_of(",	   "common_ancestor(",
	"node_of_code(", "resolve(",	   "help",
	"quit",
};

/* Names of the store's, for completion. */
static struct {
	const struct pfs_prompt *prompt;
	char **list;
	size_t n, capacity;
	bool known;
} names;

static void add_name(void *list PFS_UNUSED, const char *name)
{
	char *copy = strdup(name);

	if (!copy || pfs_grow(&names.list, &names.capacity, names.n + 1, sizeof(copy)))
		free(copy); /* one name fewer can be completed */
	else
		names.list[names.n++] = copy;
}

static void forget_names(void)
{
	while (names.n)
		free(names.list[--names.n]);
	names.known = false;
}

static char *next_word(const char *text, int again)
{
	static size_t at;

	at = again ? at : 0;
	while (at < PFS_COUNT(words) + names.n) {
		const char *word = at < PFS_COUNT(words) ? words[at]
							 : names.list[at - PFS_COUNT(words)];

		at++;
		if (strncasecmp(word, text, strlen(text)) == 0)
			return strdup(word);
	}
	return NULL;
}

static char **complete(const char *text, int start PFS_UNUSED, int end PFS_UNUSED)
{
	if (!names.known)
		names.prompt->names(names.prompt->arg, add_name, NULL);
	names.known = true;
	rl_attempted_completion_over = 1; /* SQL has no names of files */
	return rl_completion_matches(text, next_word);
}

/* The file is in the folder for programs' states, by the XDG base directory specification. */
static bool history_file(char out[PATH_MAX])
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n = state && *state == '/' ? snprintf(out, PATH_MAX, "%s/primefs_history", state)
		: home ? snprintf(out, PATH_MAX, "%s/.primefs_history", home)
		       : -1;

	return n > 0 && n < PATH_MAX;
}

static void begin_editing(const struct pfs_prompt *prompt)
{
	char file[PATH_MAX];

	names.prompt = prompt;
	rl_readline_name = "primefs";
	rl_attempted_completion_function = complete;
	rl_completion_append_character = 0;
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
	forget_names();
	free(names.list);
	names.list = NULL;
	names.capacity = 0;
}

static void remember(const char *statement)
{
	add_history(statement);
}

/* libedit goes on reading after a signal, so this leaves it by a jump, as other programs do. */
static sigjmp_buf typing;
static volatile sig_atomic_t is_typing;

static void interrupt(int number PFS_UNUSED)
{
	stop = 1;
	if (is_typing) {
		is_typing = 0;
		siglongjmp(typing, 1);
	}
}

static char *edit_line(const char *prompt)
{
	char *line;

	if (sigsetjmp(typing, 1) != 0) {
		(void)putchar('\n');
		return NULL;
	}
	is_typing = 1;
	line = readline(prompt);
	is_typing = 0;
	return line;
}
#else
#include <poll.h>

static void forget_names(void)
{
}

static void begin_editing(const struct pfs_prompt *prompt PFS_UNUSED)
{
}

static void end_editing(void)
{
}

static void remember(const char *statement PFS_UNUSED)
{
}

static void interrupt(int number PFS_UNUSED)
{
	stop = 1;
}

static char *edit_line(const char *prompt)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	sigset_t interrupts, before;
	char *line = NULL;
	size_t capacity = 0;
	ssize_t n = -1;

	/* An interrupt that comes between the prompt and the reading must not wait for a line. */
	(void)sigemptyset(&interrupts);
	(void)sigaddset(&interrupts, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &interrupts, &before);
	(void)fputs(prompt, stdout);
	(void)fflush(stdout);
	if (!stop && ppoll(&input, 1, NULL, &before) > 0)
		n = getline(&line, &capacity, stdin);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (n < 0) {
		clearerr(stdin); /* perhaps by an interrupt */
		(void)putchar('\n');
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = 0;
	return line;
}
#endif

/* Reads a line. Returns NULL at the end of input, or if *stop is set, and then drops what was
 * typed. *has_nul: there is more behind its end. */
static char *read_line(bool *has_nul, bool terminal, bool continued)
{
	char *line = NULL;
	size_t capacity = 0;
	ssize_t len;

	stop = 0;
	*has_nul = false;
	if (terminal)
		return edit_line(continued ? "   ...> " : "primefs> ");
	len = getline(&line, &capacity, stdin);
	if (len >= 0) {
		*has_nul = memchr(line, 0, (size_t)len);
		return line;
	}
	free(line);
	return NULL;
}

static void help(void)
{
	(void)puts(
		"A statement ends with a semicolon.  For instance:\n"
		"  SELECT path, size FROM nodes WHERE size > 1000000 ORDER BY size DESC LIMIT 10;\n"
		"  SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext ORDER BY 3 DESC;\n"
		"  SELECT path FROM nodes WHERE under(ino, '/src') AND name GLOB '*.c';\n"
		"  SELECT name FROM pragma_table_info('nodes');\n"
		"Tab completes; Ctrl-C stops a statement; quit or end of input leaves.");
}

#define BLANKS " \t\n\v\f\r"

enum { NONE, QUIT, HELP };

/* Finds a word that is no statement and needs no semicolon; other programs' prompts have such
 * words, too. */
static int word_of(const char *text)
{
	static const struct {
		const char *name;
		int word;
	} list[] = {{"quit", QUIT}, {"exit", QUIT}, {".quit", QUIT}, {".exit", QUIT}, {"\\q", QUIT},
		    {"help", HELP}, {".help", HELP}, {"\\?", HELP}};
	size_t len;

	text += strspn(text, BLANKS);
	len = strcspn(text, BLANKS ";");
	for (size_t i = 0; i < PFS_COUNT(list); i++)
		if (strlen(list[i].name) == len && strncasecmp(text, list[i].name, len) == 0 &&
		    !text[len + strspn(text + len, BLANKS ";")])
			return list[i].word;
	return NONE;
}

/* Runs the text of one statement. Returns true to go on. */
static bool take(const struct pfs_prompt *prompt, const char *text, bool terminal, int *status)
{
	int word = word_of(text);

	text += strspn(text, BLANKS);
	if (word == QUIT)
		return false;
	if (word == HELP) {
		help();
		return true;
	}
	if (terminal)
		remember(text);
	*status = prompt->run(prompt->arg, text);
	if (stop)
		(void)fputs("interrupted\n", stderr);
	if (pfs_statement_may_change(text, strlen(text)))
		forget_names();
	return terminal || !*status;
}

/* Statements as their lines come. */
struct text {
	char *bytes; /* a semicolon, which ends what was run before, and what has come since */
	size_t size, capacity;
	size_t seen; /* no semicolon before this one ends a statement */
};

/* Adds a line. */
static int add_line(struct text *text, const char *line)
{
	size_t len = strlen(line);

	PFS_TRY(pfs_grow(&text->bytes, &text->capacity, text->size + len + 3, 1));
	if (!text->bytes)
		return -ENOMEM; /* for the analyzer: there is room */
	if (!text->size) {
		text->bytes[text->size++] = ';';
		text->seen = 1;
	}
	(void)memcpy(text->bytes + text->size, line, len);
	text->size += len;
	if (!len || line[len - 1] != '\n')
		text->bytes[text->size++] = '\n';
	text->bytes[text->size] = 0;
	return 0;
}

/* Returns true if the text is complete that begins with a semicolon and ends before `end`. A
 * semicolon, blanks and comments are. */
static bool is_complete(const char *text, char *end)
{
	char after = *end;
	bool is;

	*end = 0;
	is = pfs_sql_is_complete(text);
	*end = after;
	return is;
}

/* Returns the semicolon that ends the statement behind the one at `from`; NULL: it has none yet. A
 * statement that is too long to be run counts as ended, so that no time goes into its end. */
static char *end_of(const struct text *text, const char *from)
{
	const char *start = from + 1 + strspn(from + 1, BLANKS);
	char *end = text->bytes + text->seen;

	while ((end = strchr(end, ';')) && !is_complete(from, end + 1) &&
	       end < start + PFS_STATEMENT_MAX)
		end++;
	return end;
}

/* Runs the statements that are complete. At a terminal what is behind one that fails, or is
 * stopped, is dropped. Returns true to go on. */
static bool run_complete(const struct pfs_prompt *prompt, struct text *text, bool terminal,
			 int *status)
{
	char *from = text->bytes, *end, after;
	bool go_on = true;

	while (go_on && (end = end_of(text, from))) {
		bool is_blank = is_complete(from, end);

		after = end[1];
		end[1] = 0;
		*status = PFS_EXIT_OK;
		if (!is_blank)
			go_on = take(prompt, from + 1, terminal, status);
		end[1] = after;
		from = end;
		text->seen = (size_t)(end + 1 - text->bytes);
		if (*status || stop)
			end[1] = 0;
	}
	if (go_on && word_of(from + 1)) {
		go_on = take(prompt, from + 1, terminal, status);
		from[1] = 0;
	}
	text->size = strlen(from);
	if (is_complete(from, from + text->size))
		text->size = 0; /* nothing has begun */
	(void)memmove(text->bytes, from, text->size);
	text->bytes[text->size] = 0;
	text->seen = text->size;
	return go_on;
}

static int read_statements(const struct pfs_prompt *prompt, struct text *text, bool terminal)
{
	int status = PFS_EXIT_OK, error;
	bool go_on = true, has_nul;
	char *line;

	while (go_on) {
		line = read_line(&has_nul, terminal, text->size);
		if (!line && !stop)
			break;
		if (!line) {
			text->size = 0;
			continue;
		}
		if (has_nul) {
			free(line);
			(void)pfs_cmd_fail("query", "standard input: a NUL byte; leave it out");
			return PFS_EXIT_USAGE;
		}
		error = add_line(text, line);
		free(line);
		if (error)
			return pfs_cmd_fail("query", "no memory");
		go_on = run_complete(prompt, text, terminal, &status);
	}
	if (go_on && text->size) /* the last statement needs no semicolon */
		(void)take(prompt, text->bytes + 1, terminal, &status);
	return status;
}

int pfs_prompt(const struct pfs_prompt *prompt)
{
	const struct sigaction action = {.sa_handler = interrupt};
	struct sigaction before;
	struct text text = {.bytes = NULL};
	bool terminal = isatty(STDIN_FILENO);
	int status;

	if (!terminal) {
		status = read_statements(prompt, &text, false);
		free(text.bytes);
		return status;
	}
	begin_editing(prompt);
	(void)sigaction(SIGINT, &action, &before);
	(void)read_statements(prompt, &text, true);
	(void)sigaction(SIGINT, &before, NULL);
	end_editing();
	free(text.bytes);
	return PFS_EXIT_OK;
}
