/* SPDX-License-Identifier: MIT */
/* primefs query - runs statements over a store or a mounted one: one from the command line, or many
 * at a prompt. */
#include "tools/client/answer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/nodes/fields.h"
#include "fs/query/output/answer.h"
#include "tools/cmd.h"
#include "tools/client/prompt.h"

#define PIECE_SIZE  ((size_t)256 << 10)
#define KEPT_MEMORY ((size_t)16 << 20) /* bytes of an answer in memory; the rest goes to a file */

enum { CSV, JSON, TSV, TEXT, PATHS, PATHS0, FORMATS, PLAN = FORMATS };
static const struct pfs_cmd_option options[] = {
	[CSV] = {"csv", 0, NULL, "comma-separated values"},
	[JSON] = {"json", 0, NULL, "an array of objects"},
	[TSV] = {"tsv", 0, NULL, "tab-separated values, special bytes escaped"},
	[TEXT] = {"txt", 0, NULL, "aligned columns"},
	[PATHS] = {"paths", 0, NULL, "the column path, or else the first, one a line"},
	[PATHS0] = {"paths0", '0', NULL, "the same, each ended by a NUL byte"},
	[PLAN] = {"plan", 0, NULL, "how the statement ran, without its rows"},
	{0},
};
static const struct pfs_cmd command = {
	"query",
	"STORE|MOUNTPOINT [SQL]",
	"Runs a statement; without one, asks for statements at a prompt.",
	options,
	"The table nodes has a row for each node, and besides a column for each attribute:"
#define ALIAS(name, ...)     " " name
#define FIELD(id, name, ...) " " name
	PFS_SHOWN_FIELDS(
		FIELD,
		ALIAS) ".\n"
#undef FIELD
#undef ALIAS
		       "hash, which is not in *: what primefs dupes keeps; nor is compared: when the node was\n"
		       "last known to be as its source.\n"
		       "Functions: under(ino, PATH) child_of(ino, PATH) ancestor_of(ino, PATH) path_of(ino)\n"
		       "ino_of(PATH) common_ancestor(ino) node_of_code(N); resolve(TEXT) is a table of its lines.\n"
		       "nodes_at(TIME) is nodes as it was, where history is kept: nodes_at('2 days ago');\n"
		       "attrs_at(TIME) has its attributes: ino, name, value.\n"
		       "The language is SQLite's.\n"
		       "Without a format: aligned columns on a terminal, TSV elsewhere.",
};

/* ---- answering: words are the format or "plan", "--", the statement ---- */

static int explain(struct pfs_reply *reply, const struct pfs_query_error *error, const char *sql)
{
	char *text PFS_FREE = NULL;
	int status = error->error == -EINVAL ? PFS_EXIT_USAGE : PFS_EXIT_FAILURE;

	if (error->error == -ECANCELED || error->error == -EPIPE || pfs_reply_gone(reply))
		return PFS_EXIT_OK; /* the asker needs no more */
	text = pfs_query_error_text(error, sql, strlen(sql));
	return pfs_reply_fail(reply, status, "%s", text ? text : error->text);
}

static int pass_on(void *arg, const void *bytes, size_t size)
{
	return pfs_reply_write(arg, bytes, size);
}

static int send_answer(struct pfs_reply *reply, struct pfs_answer *answer)
{
	char *piece PFS_FREE = malloc(PIECE_SIZE);
	uint64_t at = 0;
	ssize_t got = 0;

	if (!piece)
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "no memory for the answer");
	while ((got = pfs_answer_read(answer, piece, PIECE_SIZE, at)) > 0) {
		if (pfs_reply_write(reply, piece, (size_t)got))
			return PFS_EXIT_FAILURE;
		at += (uint64_t)got;
	}
	return got < 0 ? pfs_reply_fail(reply, PFS_EXIT_FAILURE, "the answer: %s",
					strerror((int)-got))
		       : PFS_EXIT_OK;
}

/* Others may change the tree meanwhile, so the answer is complete before its first byte is sent. */
static int answer_whole(struct pfs_queries *queries, const struct pfs_query_scope *scope,
			struct pfs_reply *reply, const char *sql, enum pfs_format format)
{
	struct pfs_query_error error = {0};
	struct pfs_answer *answer;
	int status;

	if (pfs_answer_create(&answer, KEPT_MEMORY, 0))
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "no memory for the answer");
	pfs_answer_keep_more(answer);
	status = pfs_answer_run(answer, queries, scope, sql, strlen(sql), format, &error)
			 ? explain(reply, &error, sql)
			 : send_answer(reply, answer);
	pfs_answer_close(answer);
	return status;
}

static int answer_rows(struct pfs_queries *queries, const struct pfs_query_scope *scope,
		       struct pfs_reply *reply, const char *sql, enum pfs_format format)
{
	const struct pfs_sink sink = {reply, pass_on};
	struct pfs_query_error error = {0};
	struct pfs_query *query;
	int status = pfs_query_start(&query, queries, scope, sql, strlen(sql), &error);

	if (!status)
		status = pfs_format_rows(query, format, &sink, &error);
	pfs_query_finish(query);
	return status ? explain(reply, &error, sql) : PFS_EXIT_OK;
}

/* When the command ends without a message, its changes are in the store. */
static int keep_changes(struct pfs_reply *reply, struct pfs_tree *tree, const char *sql, int status)
{
	int error = 0;

	if (!status && pfs_statement_may_change(sql, strlen(sql)) && !pfs_tree_is_read_only(tree))
		error = pfs_tree_sync(tree);
	return error ? pfs_reply_fail(reply, PFS_EXIT_FAILURE, "the change is not kept: %s",
				      strerror(-error))
		     : status;
}

static int answer_plan(struct pfs_queries *queries, const struct pfs_query_scope *scope,
		       struct pfs_reply *reply, const char *sql)
{
	struct pfs_query_scope explaining = *scope;
	struct pfs_query_error error = {0};
	struct pfs_query *query;
	char *plan PFS_FREE = NULL;
	int status;

	explaining.explains = true;
	status = pfs_query_start(&query, queries, &explaining, sql, strlen(sql), &error);
	if (status)
		return explain(reply, &error, sql);
	while ((status = pfs_query_next(query, &error)) == 1 || status == -EAGAIN)
		; /* the plan also tells how many rows each step has seen */
	if (status) {
		pfs_query_finish(query);
		return explain(reply, &error, sql);
	}
	status = pfs_query_plan(query, &plan);
	pfs_query_finish(query);
	return status || pfs_reply_write(reply, plan, strlen(plan))
		       ? pfs_reply_fail(reply, PFS_EXIT_FAILURE, "the plan: %s", strerror(-status))
		       : PFS_EXIT_OK;
}

int pfs_answer_query(void *arg, struct pfs_reply *reply, const char *const *words, size_t n)
{
	const struct pfs_answered *answered = arg;
	struct pfs_queries *queries = answered->queries;
	struct pfs_query_scope scope;
	enum pfs_format format = PFS_FORMAT_TSV;
	bool plan = n > 1 && strcmp(words[1], "plan") == 0;
	int status;

	if (n != 4 || (!plan && pfs_format_by_name(&format, words[1], strlen(words[1]))))
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE,
				      "the daemon is of another version; remount the store");
	pfs_answered_scope(answered, &scope, reply);
	scope.may_change = true;
	status = plan		     ? answer_plan(queries, &scope, reply, words[3])
		 : answered->mounted ? answer_whole(queries, &scope, reply, words[3], format)
				     : answer_rows(queries, &scope, reply, words[3], format);
	return keep_changes(reply, answered->tree, words[3], status);
}

/* ---- the command ---- */

static int print(void *arg PFS_UNUSED, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, stdout) == size ? 0 : -errno;
}

/* Prints to a terminal, which names must not control. aligned.c has made one line of each row. */
static int print_visibly(void *arg PFS_UNUSED, const void *bytes, size_t size)
{
	const unsigned char *text = bytes;

	for (size_t i = 0; i < size; i++) {
		bool obeyed = (text[i] < ' ' && text[i] != '\n') || text[i] == 0x7f;

		if (putc_unlocked(obeyed ? '?' : text[i], stdout) == EOF)
			return -errno;
	}
	return 0;
}

struct session {
	struct pfs_answerer *answerer;
	const char *format;
	bool visibly;
};

static int run(void *arg, const char *sql)
{
	const struct session *session = arg;
	const char *const words[] = {"query", session->format, "--", sql};
	const struct pfs_sink out = {.write = session->visibly ? print_visibly : print};
	int status = pfs_answerer_ask(session->answerer, &out, words, PFS_COUNT(words));

	return status ? status : pfs_cmd_flush("query", status);
}

static int drop(void *arg PFS_UNUSED, const void *bytes PFS_UNUSED, size_t size PFS_UNUSED)
{
	return 0;
}

/* Says what is wrong with the store before anybody types a statement. */
static int try_store(const struct session *session)
{
	const char *const words[] = {"query", session->format, "--", "SELECT 1"};
	const struct pfs_sink out = {.write = drop};

	return pfs_answerer_ask(session->answerer, &out, words, PFS_COUNT(words));
}

/* ---- names of tables and columns, for the prompt ---- */

struct names {
	char *text;
	size_t size, capacity;
};

static int keep(void *arg, const void *bytes, size_t size)
{
	struct names *names = arg;

	PFS_TRY(pfs_grow(&names->text, &names->capacity, names->size + size + 1, 1));
	(void)memcpy(names->text + names->size, bytes, size);
	names->size += size;
	return 0;
}

static void add_names(void *arg, void (*add)(void *list, const char *name), void *list)
{
	static const char sql[] =
		"SELECT 'nodes' UNION SELECT name FROM pragma_table_info('nodes') UNION SELECT name "
		"FROM sqlite_master WHERE type = 'table' UNION SELECT c.name FROM sqlite_master AS t "
		"JOIN pragma_table_info(t.name) AS c WHERE t.type = 'table'";
	const char *const words[] = {"query", "tsv", "--", sql};
	const struct session *session = arg;
	struct names names = {.text = NULL};
	const struct pfs_sink sink = {&names, keep};
	char *line, *rest = NULL;

	if (pfs_answerer_ask(session->answerer, &sink, words, PFS_COUNT(words)) || !names.text) {
		free(names.text);
		return;
	}
	names.text[names.size] = 0;
	(void)strtok_r(names.text, "\n", &rest); /* passes the header */
	while ((line = strtok_r(NULL, "\n", &rest)))
		add(list, line);
	free(names.text);
}

int pfs_cmd_query(int argc, char **argv)
{
	struct session session = {.format = NULL};
	const struct pfs_prompt prompt = {&session, run, add_names};
	struct pfs_cmd_args args;
	int option, status;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0)
		session.format = options[option].name;
	if (pfs_cmd_end(&args, 1, 2))
		return args.status;
	if (!session.format)
		session.format = isatty(STDOUT_FILENO) ? "txt" : "tsv";
	session.visibly = isatty(STDOUT_FILENO) && strcmp(session.format, "txt") == 0;
	status = pfs_answerer_open(&session.answerer, "query", args.operands[0]);
	if (status)
		return status;
	pfs_answerer_stop_when(session.answerer, pfs_prompt_stop());
	status = args.n_operands > 1 ? run(&session, args.operands[1]) : try_store(&session);
	if (args.n_operands == 1 && !status)
		status = pfs_prompt(&prompt);
	pfs_answerer_close(session.answerer);
	return status;
}
