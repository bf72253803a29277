/* SPDX-License-Identifier: MIT */
/* tools/client/answer.h - questions that the daemon of a mounted store answers, and that a command
 * answers itself when the store is not mounted; by the same code, which does not know where it
 * runs.
 *
 * A command takes its options apart, puts what it wants into words (the verb, words of its own, a
 * "--" before what may be anything) and calls pfs_answer.  Its verb is a line in tools/answers.c.
 */
#ifndef PFS_TOOLS_CLIENT_ANSWER_H
#define PFS_TOOLS_CLIENT_ANSWER_H

#include <signal.h>

#include "base/err.h"
#include "fs/mount/control/control.h"
#include "fs/query/output/answer.h"
#include "fs/tree/tree.h"

struct pfs_sourcewatch;

/* Holds what a verb answers about; it is the verb's arg. */
struct pfs_answered {
	struct pfs_tree *tree;
	struct pfs_queries *queries; /* of the tree, for all who ask */
	const char *store; /* the path */
	bool mounted;	   /* the tree is others', too */
	uint64_t memory_limit; /* of a statement; 0: none */
	uint64_t value_limit;  /* 0: the usual */
	unsigned time_limit_ms;
	const struct pfs_sourcewatch *watch; /* of the tree's sources; NULL: none */
};

/* Sets *scope to that of a statement on whose answer somebody waits: everything, within the limits,
 * until he is gone. */
void pfs_answered_scope(const struct pfs_answered *answered, struct pfs_query_scope *scope,
			struct pfs_reply *reply);

/* All verbs, for the daemon to register and for pfs_answer_with. */
extern const struct pfs_verb pfs_answers[];

/* Sets the verbs that a command answers itself; to be called once, before any of the following. */
void pfs_answer_with(const struct pfs_verb *table);

/* Has words[0] answered, on stdout, for the store, or for the one that is mounted on the directory
 * `store`. Returns an exit status, having said what was wrong. */
PFS_MUST_CHECK int pfs_answer(const char *store, const char *const *words, size_t n);

/* Asks several questions about one store, which is read once at most. They return exit statuses,
 * having said what was wrong; *out is NULL on failure. */
struct pfs_answerer;
PFS_MUST_CHECK int pfs_answerer_open(struct pfs_answerer **out, const char *verb, const char *store);
void pfs_answerer_close(struct pfs_answerer *answerer); /* NULL is allowed */
/* Asks; the answer's bytes go to the sink, whose failure ends it. */
PFS_MUST_CHECK int pfs_answerer_ask(struct pfs_answerer *answerer, const struct pfs_sink *sink,
				   const char *const *words, size_t n);

/* Makes answers end, with PFS_EXIT_OK, once *stop is true; a signal's handler may set it. */
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
