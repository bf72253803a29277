/* SPDX-License-Identifier: MIT */
/* tests/ref/change_model.h - random changes of sets of nodes, by statements, and of what lies
 * beside the tree: side tables and saved queries; and sums of all that there is, to compare it with
 * what there was.  One to a program. */
#ifndef PFS_TESTS_REF_CHANGE_MODEL_H
#define PFS_TESTS_REF_CHANGE_MODEL_H

#include "fs/query/query.h"
#include "tests/ref/temp_store.h"

/* Opens the store and makes a small tree and a table; then steps can be made. */
void change_model_start(const struct temp_store *temp, const struct pfs_tree_options *options,
			uint64_t seed);
/* What closing says. */
PFS_MUST_CHECK int change_model_close(void);
void change_model_reopen(const struct temp_store *temp, const struct pfs_tree_options *options);

/* What a step changes: nodes, with their attributes, content and saved queries, which are durable
 * after a sync; or tables, which are at once. */
enum change_part { CHANGE_NODES, CHANGE_TABLES, CHANGE_PARTS };

/* Runs a statement to its end; what it says. */
int change_model_run(const char *sql);
/* Puts a table with random rows in the place of the one of that name, from CSV. */
int change_model_import(const char *name);

/* One random change; what it says.  *part: of what. */
int change_model_step(enum change_part *part);
/* The words of the last step. */
const char *change_model_text(void);
/* Whether a change may fail so without any fault: it asks for what cannot be. */
bool change_model_may_refuse(int error);

struct change_state {
	uint64_t part[CHANGE_PARTS];
};
/* Of any tree; NULL: the model's own. */
void change_model_look(struct change_state *state, struct pfs_tree *of);

struct pfs_tree *change_model_tree(void);

#endif
