/* SPDX-License-Identifier: MIT */
/* primefs tree - questions about subtrees, ancestors and children, answered from the codes. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/tree/tree.h"
#include "tools/cmd.h"
#include "tools/ready.h"

enum { ENGINE, INO, ZERO, JSON };
static const struct pfs_cmd_option options[] = {
	[ENGINE] = {"engine", 0, "NAME", "auto, host or cuda (default auto)"},
	[INO] = {"ino", 0, NULL, "print the inode number and a tab before each path"},
	[ZERO] = {"print0", '0', NULL, "end each path with a NUL byte"},
	[JSON] = {"json", 0, NULL, "count only: print {\"count\": N}"},
	{0},
};
static const struct pfs_cmd command = {
	"tree",
	"STORE subtree|ancestors|children|common|count PATH...",
	"Answers questions about the hierarchy from its nodes' codes.",
	options,
	"subtree    the paths and everything under them\n"
	"ancestors  the directories above any of the paths\n"
	"children   what lies directly in any of the paths\n"
	"common     the directories above all of the paths\n"
	"count      how many nodes subtree would print\n"
	"Paths are absolute in the store, / being its root, and are printed in pre-order.\n"
	"Exit status: 1 when there is nothing to print.",
};

static const struct {
	const char *name;
	enum pfs_relation relation;
	bool counts;
} questions[] = {
	{"subtree", PFS_SUBTREE, false},	    {"ancestors", PFS_ANCESTORS, false},
	{"children", PFS_CHILDREN, false},	    {"common", PFS_COMMON_ANCESTORS, false},
	{"count", PFS_SUBTREE, true},
};

static int print(void *arg, const char *bytes, size_t size)
{
	bool *any = arg;

	*any = true;
	return fwrite(bytes, 1, size, stdout) == size ? 0 : -EIO;
}

static int answer(struct pfs_tree *tree, const struct pfs_question *question, bool counts,
		  unsigned flags, bool json)
{
	uint64_t count = 0;
	bool any = false;
	int error = counts ? pfs_tree_count(tree, &count, question)
			   : pfs_tree_list(tree, question, flags, print, &any);

	if (error)
		return pfs_cmd_fail("tree", "cannot answer: %s", strerror(-error));
	if (counts)
		(void)printf(json ? "{\"count\": %llu}\n" : "%llu\n", (unsigned long long)count);
	return pfs_cmd_flush("tree", counts || any ? PFS_EXIT_OK : PFS_EXIT_NO);
}

static int resolve(struct pfs_tree *tree, uint64_t *inos, char **paths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int error = pfs_tree_resolve(tree, &inos[i], paths[i]);

		if (error)
			return pfs_cmd_fail("tree", "%s: %s in the store", paths[i],
					    strerror(-error));
	}
	return 0;
}

static bool parse_engine(struct pfs_cmd_args *args, enum pfs_engine_kind *engine)
{
	if (!pfs_engine_by_name(engine, args->value))
		return true;
	pfs_cmd_reject(args, "unknown engine '%s': auto, host or cuda", args->value);
	return false;
}

int pfs_cmd_tree(int argc, char **argv)
{
	enum pfs_engine_kind engine = PFS_ENGINE_AUTO;
	uint64_t *inos PFS_FREE = NULL;
	struct pfs_question question = {0};
	struct pfs_tree *tree;
	struct pfs_cmd_args args;
	unsigned flags = 0;
	bool json = false;
	size_t which = 0;
	int option, status;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == ENGINE && !parse_engine(&args, &engine))
			break;
		flags |= option == INO ? PFS_LIST_INO : option == ZERO ? PFS_LIST_ZERO : 0;
		json |= option == JSON;
	}
	if (pfs_cmd_end(&args, 3, -1))
		return args.status;
	while (which < PFS_COUNT(questions) && strcmp(questions[which].name, args.operands[1]) != 0)
		which++;
	if (which == PFS_COUNT(questions))
		return pfs_cmd_usage("tree", "unknown question '%s'", args.operands[1]);
	question.relation = questions[which].relation;
	question.n = (size_t)args.n_operands - 2;
	inos = calloc(question.n, sizeof(*inos));
	if (!inos)
		return pfs_cmd_fail("tree", "no memory");
	question.inos = inos;
	status = pfs_ready_tree(&tree, "tree", args.operands[0]);
	if (status)
		return status;
	pfs_tree_use_engine(tree, engine);
	status = resolve(tree, inos, args.operands + 2, question.n);
	if (!status)
		status = answer(tree, &question, questions[which].counts, flags, json);
	(void)pfs_tree_close(tree);
	return status;
}
