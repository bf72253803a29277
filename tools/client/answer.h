/* SPDX-License-Identifier: MIT */
/* tools/client/answer.h - questions about a store. If it is mounted, its daemon answers them, else
 * the command itself; both by the same code, a verb, which does not know where it runs.
 *
 * A command parses its options, makes words of its question (the verb, words of its own, a "--"
 * before words that may be anything), and calls pfs_answer. Its verb is a line in tools/answers.c.
 */
#ifndef PFS_TOOLS_CLIENT_ANSWER_H
#define PFS_TOOLS_CLIENT_ANSWER_H

#include <signal.h>

#include "base/err.h"
#include "fs/mount/control/control.h"
#include "fs/query/output/answer.h"
#include "fs/tree/tree.h"

struct pfs_sourcewatch;

/* The store that a verb answers about; it is the verb's arg. */
struct pfs_answered {
	struct pfs_tree *tree;
	struct pfs_queries *queries; /* of the tree, shared by all questions */
	const char *store; /* the store's path */
	bool mounted;	   /* the store is mounted, and other programs use the tree, too */
	uint64_t memory_limit; /* of a statement, in bytes; 0: none */
	uint64_t value_limit;  /* of a value, in bytes; 0: that of meta/sql/sqlquery.h */
	unsigned time_limit_ms;
	struct pfs_sourcewatch *watch; /* of the tree's sources; NULL: none */
};

/* Sets *scope for a statement of a verb: it sees all nodes, has the limits of `answered`, and ends
 * when the reader of the reply is gone. */
void pfs_answered_scope(const struct pfs_answered *answered, struct pfs_query_scope *scope,
			struct pfs_reply *reply);

/* All verbs, for the daemon to register and for pfs_answer_with. */
extern const struct pfs_verb pfs_answers[];

/* Sets the verbs that a command answers itself; to be called once, before any of the following. */
void pfs_answer_with(const struct pfs_verb *table);

/* Has the verb words[0] answer on stdout. store: a store, or the directory that one is mounted on.
 * Returns an exit status; if it is not PFS_EXIT_OK, the reason has been printed. */
PFS_MUST_CHECK int pfs_answer(const char *store, const char *const *words, size_t n);

/* For several questions about one store, which is opened once at most. The functions return exit
 * statuses as pfs_answer does; *out is NULL on failure. */
struct pfs_answerer;
PFS_MUST_CHECK int pfs_answerer_open(struct pfs_answerer **out, const char *verb,
				     const char *store);
void pfs_answerer_close(struct pfs_answerer *answerer); /* NULL is allowed */
/* Asks one question; the answer's bytes go to the sink. An error of the sink ends the answer,
 * and is printed, unless it is -ECANCELED. */
PFS_MUST_CHECK int pfs_answerer_ask(struct pfs_answerer *answerer, const struct pfs_sink *sink,
				   const char *const *words, size_t n);

/* Returns the tree, if the command has opened the store for its last question, so that the command
 * need not make a request of words; NULL: a daemon has it. */
struct pfs_tree *pfs_answerer_tree(const struct pfs_answerer *answerer);

/* Makes answers end with PFS_EXIT_OK once *stop is true; the handler of a signal may set it. */
void pfs_answerer_stop_when(struct pfs_answerer *answerer, const volatile sig_atomic_t *stop);

/* ---- the verbs, each beside its command ---- */

int pfs_answer_dupes(void *arg, struct pfs_reply *reply, const char *const *words, size_t n);
int pfs_answer_info(void *arg, struct pfs_reply *reply, const char *const *words, size_t n);
int pfs_answer_query(void *arg, struct pfs_reply *reply, const char *const *words, size_t n);
int pfs_answer_refresh(void *arg, struct pfs_reply *reply, const char *const *words, size_t n);
int pfs_answer_resolve(void *arg, struct pfs_reply *reply, const char *const *words, size_t n);
int pfs_answer_tree(void *arg, struct pfs_reply *reply, const char *const *words, size_t n);
int pfs_answer_treemap(void *arg, struct pfs_reply *reply, const char *const *words, size_t n);

#endif
