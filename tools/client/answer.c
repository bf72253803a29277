/* SPDX-License-Identifier: MIT */
#include "tools/client/answer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "tools/client/ask.h"
#include "tools/cmd.h"
#include "tools/client/ready.h"

static const struct pfs_verb *verbs;

void pfs_answer_with(const struct pfs_verb *table)
{
	verbs = table;
}

/* ---- where answers go ---- */

/* Passes on, and notices that there was something. */
struct noted {
	struct pfs_reply reply;
	const struct pfs_sink *sink;
	const volatile sig_atomic_t *stop; /* NULL: the process that closes our stdout ends us */
	bool any;
	int error; /* of the sink, unless it only needs no more */
};

static int note(struct pfs_reply *reply, const void *bytes, size_t size)
{
	struct noted *noted = (struct noted *)reply;
	int error = noted->sink->write(noted->sink->arg, bytes, size);

	noted->any = true;
	noted->error = error == -ECANCELED ? 0 : error;
	return error;
}

static int print(void *arg PFS_UNUSED, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, stdout) == size ? 0 : -errno;
}

static bool is_gone(void *reply)
{
	return pfs_reply_gone(reply);
}

static bool has_enough(struct pfs_reply *reply)
{
	const struct noted *noted = (struct noted *)reply;

	return noted->stop && *noted->stop;
}

/* Prints the sentence and, below that about a statement, the lines that show the place of an error;
 * any other sentence is one line, whatever the names in it hold. */
static int finish(const char *verb, const char *word, const struct noted *noted, int status)
{
	const char *message = noted->reply.message;
	bool has_place = strcmp(word, "query") == 0;
	size_t first = has_place ? strcspn(message, "\n") : strlen(message);

	if (noted->error)
		return pfs_cmd_fail(verb, "the answer: %s", strerror(-noted->error));
	if (*message)
		pfs_cmd_say(verb, "%.*s", (int)first, message);
	if (message[first])
		(void)fprintf(stderr, "%s\n", message + first + 1);
	return status;
}

/* ---- whoever has the tree ---- */

struct pfs_answerer {
	const char *verb; /* the command that asks, for messages */
	char store[PATH_MAX];
	/* the folder on which it is mounted and by which it was named; "": it was named by its own
	 * path */
	char folder[PATH_MAX];
	struct pfs_answered here; /* its tree is NULL until it is needed */
	bool changing;		  /* that tree is open for writing */
	const volatile sig_atomic_t *stop;
};

void pfs_answered_scope(const struct pfs_answered *answered, struct pfs_query_scope *scope,
			struct pfs_reply *reply)
{
	*scope = (struct pfs_query_scope){
		.ino = 2,
		.sees_all = true,
		.uid = geteuid(),
		.gid = getegid(),
		.memory_limit = answered->memory_limit,
		.value_limit = answered->value_limit,
		.time_limit_ms = answered->time_limit_ms,
		.gone = is_gone,
		.gone_arg = reply,
	};
}

static void close_here(struct pfs_answered *here)
{
	pfs_queries_close(PFS_TAKE(here->queries));
	if (here->tree)
		(void)pfs_tree_close(PFS_TAKE(here->tree));
}

static bool may_change(const char *const *words, size_t n)
{
	if (strcmp(words[0], "dupes") == 0)
		return true; /* it keeps what it has found out, where it can */
	if (strcmp(words[0], "refresh") == 0) {
		for (size_t i = 1; i < n && strcmp(words[i], "--") != 0; i++)
			if (strcmp(words[i], "dry-run") == 0)
				return false;
		return true;
	}
	return strcmp(words[0], "query") == 0 &&
	       pfs_statement_may_change(words[n - 1], strlen(words[n - 1]));
}

/* Opens the tree, for writing only if the question may change something. */
static int open_here(struct pfs_answerer *answerer, const char *const *words, size_t n)
{
	bool changes = may_change(words, n);
	int status;

	if (answerer->here.tree && (answerer->changing || !changes))
		return PFS_EXIT_OK;
	close_here(&answerer->here);
	if (strcmp(words[0], "dupes") == 0)
		status = pfs_ready_either(&answerer->here.tree, answerer->verb, answerer->store);
	else
		status = changes ? pfs_ready_changing(&answerer->here.tree, answerer->verb,
						      answerer->store)
				 : pfs_ready_tree(&answerer->here.tree, answerer->verb,
						  answerer->store);
	answerer->changing = !status && !pfs_tree_is_read_only(answerer->here.tree);
	if (status || pfs_queries_open(&answerer->here.queries, answerer->here.tree) == 0)
		return status;
	close_here(&answerer->here);
	return pfs_cmd_fail(answerer->verb, "no memory");
}

/* Asks the files of `.query`, by which the daemon answers users to whom it does not answer
 * commands. They take only statements, in the format of the command. Returns false if this is
 * something else. */
static bool ask_query_files(int *status, const struct noted *noted,
			    const struct pfs_answerer *answerer, const char *const *words)
{
	char run[PATH_MAX + sizeof("/.query/run")];

	(void)snprintf(run, sizeof(run), "%s/.query/run", answerer->folder);
	if (!*answerer->folder || strcmp(words[0], "query") != 0 || access(run, R_OK | W_OK) != 0)
		return false;
	if (strcmp(words[1], "tsv") == 0)
		*status = pfs_ask_run(answerer->verb, answerer->folder, answerer->folder, words[3],
				      noted->sink);
	else
		*status = pfs_cmd_fail(answerer->verb,
				       "%s: mounted by another user, who lets others ask for TSV "
				       "only; say --tsv",
				       answerer->folder);
	return true;
}

/* Returns true if the daemon has answered, or could not; *status is then the command's exit status.
 */
static bool ask_daemon(int *status, struct noted *noted, const struct pfs_answerer *answerer,
		       const char *const *words, size_t n)
{
	const char *store = answerer->store, *verb = answerer->verb;
	int error = pfs_control_ask(status, &noted->reply, store, words, n);

	if (!error || noted->error)
		*status = finish(verb, words[0], noted, *status);
	else if (error == -ENOENT || (error == -EPIPE && !noted->any))
		return false; /* the store is not mounted, or no longer */
	else if (error == -ECANCELED)
		*status = PFS_EXIT_OK; /* the asker needs no more */
	else if (error == -EACCES && ask_query_files(status, noted, answerer, words))
		return true;
	else if (error == -EACCES)
		*status = pfs_cmd_fail(verb,
				       "%s: mounted by another user, whose daemon does not answer "
				       "this one",
				       store);
	else if (error == -EPIPE)
		*status = pfs_cmd_fail(verb, "%s: its daemon ended amid the answer; ask again",
				       store);
	else
		*status = pfs_cmd_fail(verb, "%s: asking its daemon: %s", store,
				       strerror(-error));
	return true;
}

int pfs_answerer_open(struct pfs_answerer **out, const char *verb, const char *operand)
{
	struct pfs_answerer *answerer = calloc(1, sizeof(*answerer));
	int status;

	*out = answerer;
	if (!answerer) {
		(void)pfs_cmd_fail(verb, "no memory");
		return PFS_EXIT_FAILURE;
	}
	answerer->verb = verb;
	answerer->here.store = answerer->store;
	status = pfs_ready_name(answerer->store, answerer->folder, verb, operand);
	if (status)
		pfs_answerer_close(PFS_TAKE(*out));
	return status;
}

void pfs_answerer_close(struct pfs_answerer *answerer)
{
	if (answerer)
		close_here(&answerer->here);
	free(answerer);
}

struct pfs_tree *pfs_answerer_tree(const struct pfs_answerer *answerer)
{
	return answerer->here.tree;
}

void pfs_answerer_stop_when(struct pfs_answerer *answerer, const volatile sig_atomic_t *stop)
{
	answerer->stop = stop;
}

/* One call of a verb. */
struct job {
	const struct pfs_verb *verb;
	struct pfs_answered *here;
	struct pfs_reply *reply;
	const char *const *words;
	size_t n;
	int status;
};

static void do_job(void *arg)
{
	struct job *job = arg;

	job->status = job->verb->answer(job->here, job->reply, job->words, job->n);
}

/* Answers as the daemon does: in a thread whose stack has room for a statement. */
static int answer_here(struct pfs_answerer *answerer, struct noted *noted, const char *const *words,
		       size_t n)
{
	struct job job = {verbs, &answerer->here, &noted->reply, words, n, PFS_EXIT_OK};
	int error;

	while (strcmp(job.verb->name, words[0]) != 0)
		job.verb++;
	error = pfs_thread_call(do_job, &job);
	if (error)
		return pfs_cmd_fail(answerer->verb,
				    "cannot start a thread: %s; allow more (ulimit -v, -u)",
				    strerror(-error));
	return finish(answerer->verb, words[0], noted, job.status);
}

int pfs_answerer_ask(struct pfs_answerer *answerer, const struct pfs_sink *sink,
		    const char *const *words, size_t n)
{
	struct noted noted = {.reply = {.write = note, .gone = has_enough},
			      .sink = sink,
			      .stop = answerer->stop};
	int status = PFS_EXIT_OK;

	if (!answerer->here.tree && ask_daemon(&status, &noted, answerer, words, n))
		return status;
	status = open_here(answerer, words, n);
	return status ? status : answer_here(answerer, &noted, words, n);
}

int pfs_answer(const char *store, const char *const *words, size_t n)
{
	const struct pfs_sink out = {.write = print};
	struct pfs_answerer *answerer;
	int status = pfs_answerer_open(&answerer, words[0], store);

	if (status)
		return status;
	status = pfs_answerer_ask(answerer, &out, words, n);
	pfs_answerer_close(answerer);
	return status == PFS_EXIT_FAILURE ? status : pfs_cmd_flush(words[0], status);
}
