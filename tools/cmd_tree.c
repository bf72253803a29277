/* SPDX-License-Identifier: MIT */
/* primefs tree - answers questions about subtrees, ancestors and children from the codes. */
#include "tools/client/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/tree/tree.h"
#include "tools/cmd.h"

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
	"STORE subtree|ancestors|children|parents|common|deepest|count PATH... | node CODE...",
	"Answers questions about the hierarchy from its nodes' codes.",
	options,
	"subtree    the paths and everything under them\n"
	"ancestors  the directories above any of the paths\n"
	"children   what lies directly in any of the paths\n"
	"parents    the directories that the paths lie directly in\n"
	"common     the directories above all of the paths\n"
	"deepest    the deepest node that all of the paths are or lie under\n"
	"count      how many nodes subtree would print\n"
	"node       the nodes that have these codes\n"
	"Paths are absolute in the store, / being its root, and are printed in pre-order.\n"
	"A mounted store, or its mountpoint, is asked through the daemon that serves it.\n"
	"Exit status: 1 when there is nothing to print.",
};

static const struct {
	const char *name;
	enum pfs_relation relation;
	bool counts;
	bool by_code; /* its operands are codes instead of paths */
} questions[] = {
	{"subtree", PFS_SUBTREE, false, false},
	{"ancestors", PFS_ANCESTORS, false, false},
	{"children", PFS_CHILDREN, false, false},
	{"parents", PFS_PARENTS, false, false},
	{"common", PFS_COMMON_ANCESTORS, false, false},
	{"deepest", PFS_DEEPEST_COMMON, false, false},
	{"count", PFS_SUBTREE, true, false},
	{"node", PFS_SUBTREE, false, true},
};

/* ---- answering: words are a question, options, "--", paths ---- */

struct request {
	const char *engine; /* NULL: any */
	size_t which;	    /* of the questions */
	unsigned flags;
	bool json;
	const char *const *paths;
	size_t n_paths;
};

static bool find_question(size_t *which, const char *name)
{
	for (*which = 0; *which < PFS_COUNT(questions); ++*which)
		if (strcmp(questions[*which].name, name) == 0)
			return true;
	return false;
}

/* Parses the words. Returns false if one is unknown, as it may come from another version of this
 * program. */
static bool parse(struct request *request, const char *const *words, size_t n)
{
	size_t i = 2;

	if (n < 2 || !find_question(&request->which, words[1]))
		return false;
	for (; i < n && strcmp(words[i], "--") != 0; i++) {
		if (strncmp(words[i], "engine=", 7) == 0)
			request->engine = words[i] + 7;
		else if (strcmp(words[i], "ino") == 0)
			request->flags |= PFS_LIST_INO;
		else if (strcmp(words[i], "print0") == 0)
			request->flags |= PFS_LIST_ZERO;
		else if (strcmp(words[i], "json") == 0)
			request->json = true;
		else
			return false;
	}
	if (i + 1 >= n)
		return false;
	request->paths = words + i + 1;
	request->n_paths = n - i - 1;
	return true;
}

static int cannot(struct pfs_reply *reply, int error)
{
	if (error == -ENODEV)
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE, PFS_CMD_NO_DEVICE);
	if (error == -EAGAIN)
		return pfs_reply_fail(
			reply, PFS_EXIT_FAILURE,
			"the tree changes faster than the engine follows it; try again later");
	return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "cannot answer: %s", strerror(-error));
}

/* Checks the engine. That of a mounted store was chosen when it was mounted. */
static int choose_engine(const struct pfs_answered *answered, struct pfs_reply *reply,
			 const char *name)
{
	enum pfs_engine_kind kind;
	struct pfs_engine_info info;
	int error = pfs_engine_by_name(&kind, name);

	if (!error && !answered->mounted)
		pfs_tree_use_engine(answered->tree, kind);
	if (!error && answered->mounted && kind != PFS_ENGINE_AUTO) {
		error = pfs_tree_engine(answered->tree, &info);
		/* An engine whose device has failed was "cuda", and answers the same. */
		if (!error && strcmp(info.engine, name) != 0 &&
		    !(kind == PFS_ENGINE_CUDA && info.degraded))
			return pfs_reply_fail(reply, PFS_EXIT_FAILURE,
					      "%s: mounted with the engine %s; leave --engine "
					      "out, or mount with --engine=%s",
					      answered->store, info.engine, name);
	}
	return error ? cannot(reply, error) : PFS_EXIT_OK;
}

static int resolve(struct pfs_tree *tree, struct pfs_reply *reply, uint64_t *inos,
		   const struct request *request)
{
	for (size_t i = 0; i < request->n_paths; i++) {
		int error = pfs_tree_resolve(tree, &inos[i], request->paths[i]);

		if (error)
			return pfs_reply_fail(reply, PFS_EXIT_FAILURE, "%s: %s in the store",
					      request->paths[i], strerror(-error));
	}
	return PFS_EXIT_OK;
}

struct listing {
	struct pfs_reply *reply;
	bool any;
};

static int write_piece(void *arg, const char *bytes, size_t size)
{
	struct listing *listing = arg;

	listing->any = true;
	return pfs_reply_write(listing->reply, bytes, size);
}

static int answer(struct pfs_tree *tree, struct pfs_reply *reply, const struct request *request,
		  const uint64_t *inos)
{
	const struct pfs_question question = {
		.relation = questions[request->which].relation,
		.inos = inos,
		.n = request->n_paths,
	};
	struct listing listing = {.reply = reply};
	uint64_t count;
	int error;

	if (questions[request->which].counts) {
		error = pfs_tree_count(tree, &count, &question);
		if (!error)
			error = pfs_reply_print(reply,
						request->json ? "{\"count\": %llu}\n" : "%llu\n",
						(unsigned long long)count);
		return error ? cannot(reply, error) : PFS_EXIT_OK;
	}
	error = pfs_tree_list(tree, &question, request->flags, write_piece, &listing);
	if (error == -ENOBUFS)
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE,
				      "whoever reads this is too slow for so much; print it into a "
				      "file");
	if (error)
		return cannot(reply, error);
	return listing.any ? PFS_EXIT_OK : PFS_EXIT_NO;
}

static int print_node(struct pfs_tree *tree, struct pfs_reply *reply, unsigned flags, uint64_t ino)
{
	char *path PFS_FREE = NULL;
	int error = pfs_tree_path(tree, &path, ino);

	if (!error && flags & PFS_LIST_INO)
		error = pfs_reply_print(reply, "%llu\t", (unsigned long long)ino);
	if (!error)
		error = pfs_reply_write(reply, path, strlen(path));
	return error ? error : pfs_reply_write(reply, flags & PFS_LIST_ZERO ? "" : "\n", 1);
}

static int find_nodes(struct pfs_tree *tree, struct pfs_reply *reply, const struct request *request)
{
	int status = PFS_EXIT_NO;

	for (size_t i = 0; i < request->n_paths; i++) {
		uint64_t ino;
		int error = pfs_tree_node_of_code(tree, &ino, request->paths[i]);

		if (error == -EINVAL || error == -E2BIG)
			return pfs_reply_fail(
				reply, PFS_EXIT_FAILURE,
				"%.40s: no code; user.primefs.code of a mounted node is one",
				request->paths[i]);
		if (!error)
			error = print_node(tree, reply, request->flags, ino);
		if (!error)
			status = PFS_EXIT_OK;
		else if (error != -ENOENT && error != -ESTALE)
			return cannot(reply, error);
	}
	return status;
}

int pfs_answer_tree(void *arg, struct pfs_reply *reply, const char *const *words, size_t n)
{
	const struct pfs_answered *answered = arg;
	struct request request = {0};
	uint64_t *inos PFS_FREE = NULL;
	int status = PFS_EXIT_OK;

	if (!parse(&request, words, n))
		return pfs_reply_fail(reply, PFS_EXIT_FAILURE,
				      "the daemon of the mounted store is another version and does "
				      "not understand; mount again");
	inos = calloc(request.n_paths, sizeof(*inos));
	if (!inos)
		return cannot(reply, -ENOMEM);
	if (request.engine)
		status = choose_engine(answered, reply, request.engine);
	if (!status && questions[request.which].by_code)
		return find_nodes(answered->tree, reply, &request);
	if (!status)
		status = resolve(answered->tree, reply, inos, &request);
	return status ? status : answer(answered->tree, reply, &request, inos);
}

/* ---- asking ---- */

int pfs_cmd_tree(int argc, char **argv)
{
	const char **words PFS_FREE = calloc((size_t)argc + 8, sizeof(*words));
	bool wanted[PFS_COUNT(options)] = {false};
	static const char *const engines[] = {"engine=auto", "engine=host", "engine=cuda"};
	enum pfs_engine_kind engine = PFS_ENGINE_AUTO;
	struct pfs_cmd_args args;
	size_t which, n = 0;
	int option;

	if (!words)
		return pfs_cmd_fail("tree", "no memory");
	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		wanted[option] = true;
		if (option == ENGINE)
			pfs_cmd_engine(&args, &engine);
	}
	if (pfs_cmd_end(&args, 3, -1))
		return args.status;
	if (!find_question(&which, args.operands[1]))
		return pfs_cmd_usage("tree", "unknown question '%s'", args.operands[1]);
	words[n++] = "tree";
	words[n++] = args.operands[1];
	if (wanted[ENGINE])
		words[n++] = engines[engine];
	for (option = INO; option <= JSON; option++)
		if (wanted[option])
			words[n++] = options[option].name;
	words[n++] = "--";
	for (int i = 2; i < args.n_operands; i++)
		words[n++] = args.operands[i];
	return pfs_answer(args.operands[0], words, n);
}
