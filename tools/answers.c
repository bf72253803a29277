/* SPDX-License-Identifier: MIT */
/* The verbs that answer, in the daemon or in the command itself. */
#include "tools/client/answer.h"

const struct pfs_verb pfs_answers[] = {
	{"dupes", pfs_answer_dupes},	 {"info", pfs_answer_info},
	{"query", pfs_answer_query},	 {"refresh", pfs_answer_refresh},
	{"resolve", pfs_answer_resolve}, {"tree", pfs_answer_tree},
	{"treemap", pfs_answer_treemap}, {0},
};
