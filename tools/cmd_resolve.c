/* SPDX-License-Identifier: MIT */
/* primefs resolve - prints the inode numbers of paths as they are read. */
#include "tools/client/answer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/nodes/scan.h"
#include "fs/tree/resolve.h"
#include "tools/client/pathpipe.h"
#include "tools/cmd.h"

#define PATH_MAX_SIZE ((size_t)4 << 20) /* bytes of a path, which are half of what a request may have */
#define GRAIN	      4096u		/* words that a thread measures at once */

enum { ZERO, JSON };
static const struct pfs_cmd_option options[] = {
	[ZERO] = {"null", '0', NULL, "paths end with a NUL byte, read and printed"},
	[JSON] = {"json", 0, NULL, "print an array of objects"},
	{0},
};
static const struct pfs_cmd command = {
	"resolve",
	"STORE <PATHS",
	"Prints the inode number of each path that it reads, which is the node's prime.",
	options,
	"A line PRIME, a tab, PATH for each line read, in their order; - where there is no such node.\n"
	"Paths begin at the store's root, and lead over no symlink.\n"
	"A mounted store, or its mountpoint, is asked through the daemon that serves it.\n"
	"Exit status: 1 when a node was missing.",
};

/* ---- answering: words are "resolve", paths ----
 * The answer is a uint64_t for each, of this machine's byte order; 0: there is no such node. */

struct measuring {
	struct pfs_path_text *paths;
	const char *const *words;
};

static void measure_words(void *arg, size_t from, size_t to)
{
	const struct measuring *measuring = arg;

	for (size_t i = from; i < to; i++)
		measuring->paths[i] =
			(struct pfs_path_text){measuring->words[i], strlen(measuring->words[i])};
}

static bool is_gone(void *reply)
{
	return pfs_reply_gone(reply);
}

int pfs_answer_resolve(void *arg, struct pfs_reply *reply, const char *const *words, size_t n)
{
	const struct pfs_answered *answered = arg;
	const struct pfs_resolve_from from = {.gone = is_gone, .arg = reply};
	size_t n_paths = n - 1;
	struct pfs_path_text *paths PFS_FREE = calloc(n, sizeof(*paths));
	uint64_t *inos PFS_FREE = calloc(n, sizeof(*inos));
	struct measuring measuring = {paths, words + 1};
	int error = paths && inos ? 0 : -ENOMEM;

	if (!error) {
		pfs_scan_run(answered->tree, n_paths, GRAIN, measure_words, &measuring);
		error = pfs_tree_resolve_many(answered->tree, inos, paths, n_paths, &from);
	}
	if (!error)
		error = pfs_reply_write(reply, inos, n_paths * sizeof(*inos));
	return error ? pfs_reply_fail(reply, PFS_EXIT_FAILURE, "cannot answer: %s",
				      strerror(-error))
		     : PFS_EXIT_OK;
}

/* ---- asking ---- */

struct asker {
	struct pfs_answerer *answerer;
	struct pfs_pathpipe pipe;
	struct pfs_json json;
	/* A request, and the answer to it. */
	const char **words; /* [0] is the verb */
	size_t words_capacity;
	uint64_t *inos;
	size_t answered, room; /* bytes */
	int failed; /* the exit status of a request whose reason has been printed; 0: none */
};

static int take_answer(void *arg, const void *bytes, size_t size)
{
	struct asker *asker = arg;

	if (size > asker->room - asker->answered)
		return -EPROTO;
	memcpy((char *)asker->inos + asker->answered, bytes, size);
	asker->answered += size;
	return 0;
}

/* Asks whoever has the tree. Returns an exit status; if it is not PFS_EXIT_OK, the reason has been
 * printed. */
static int ask(struct asker *asker, uint64_t *inos, const struct pfs_path_text *paths, size_t n)
{
	const struct pfs_sink sink = {asker, take_answer};
	int status;

	if (pfs_grow(&asker->words, &asker->words_capacity, n + 1, sizeof(*asker->words)))
		return pfs_cmd_fail("resolve", "no memory");
	asker->words[0] = "resolve";
	for (size_t i = 0; i < n; i++) {
		char *path = (char *)paths[i].bytes;

		path[paths[i].len] = 0;
		/* no name has a NUL in it, and no path is empty */
		asker->words[1 + i] =
			asker->pipe.delimiter && memchr(path, 0, paths[i].len) ? "" : path;
	}
	asker->inos = inos;
	asker->answered = 0;
	asker->room = n * sizeof(*inos);
	status = pfs_answerer_ask(asker->answerer, &sink, asker->words, n + 1);
	if (!status && asker->answered < asker->room)
		return pfs_cmd_fail("resolve", "the answer ended early; ask again");
	return status;
}

static int resolve(void *arg, uint64_t *inos, const struct pfs_path_text *paths, size_t n)
{
	struct asker *asker = arg;
	const struct pfs_resolve_from from = {.alone = true};
	struct pfs_tree *tree = pfs_answerer_tree(asker->answerer);

	if (tree)
		return pfs_tree_resolve_many(tree, inos, paths, n, &from);
	if (!asker->failed)
		asker->failed = ask(asker, inos, paths, n);
	return asker->failed;
}

static int show_objects(void *arg, const uint64_t *inos, const struct pfs_path_text *paths,
			size_t n)
{
	struct asker *asker = arg;

	for (size_t i = 0; i < n; i++) {
		pfs_json_open(&asker->json, NULL, '{');
		if (inos[i])
			pfs_json_u64(&asker->json, "ino", inos[i]);
		pfs_json_bytes(&asker->json, "path", paths[i].bytes, paths[i].len);
		pfs_json_close(&asker->json, '}');
	}
	return fflush(stdout) ? -errno : 0;
}

/* Returns true if there are paths to be read from the file to which the answers are written: these
 * would overwrite paths that are not read yet, or be read as paths themselves without an end. */
static bool would_read_its_answers(const struct pfs_pathpipe *pipe)
{
	struct stat in, out;

	return !fstat(pipe->in, &in) && !fstat(pipe->out, &out) && S_ISREG(in.st_mode) &&
	       in.st_ino == out.st_ino && in.st_dev == out.st_dev &&
	       lseek(pipe->in, 0, SEEK_CUR) < in.st_size;
}

/* One sentence, of the stage that failed. */
static int say(const struct pfs_pathpipe *pipe, int error)
{
	const int *errors = pipe->errors;

	if (error != -ECANCELED)
		return pfs_cmd_fail("resolve", "cannot begin: %s", strerror(-error));
	if (errors[PFS_PATHPIPE_RESOLVE] > 0) /* its sentence has been printed */
		return errors[PFS_PATHPIPE_RESOLVE];
	if (errors[PFS_PATHPIPE_RESOLVE])
		return pfs_cmd_fail("resolve", "cannot answer: %s",
				    strerror(-errors[PFS_PATHPIPE_RESOLVE]));
	if (errors[PFS_PATHPIPE_WRITE] && pipe->show) /* pfs_cmd_flush says it */
		return PFS_EXIT_FAILURE;
	if (errors[PFS_PATHPIPE_WRITE])
		return pfs_cmd_fail("resolve", "standard output: %s",
				    strerror(-errors[PFS_PATHPIPE_WRITE]));
	if (errors[PFS_PATHPIPE_READ] == -ENAMETOOLONG)
		return pfs_cmd_fail("resolve", "standard input: a path has more than %zu bytes; %s",
				    pipe->path_max,
				    pipe->delimiter
					    ? "give one a line, or end each with NUL and say -0"
					    : "end each with NUL, or leave -0 out");
	return pfs_cmd_fail("resolve", "standard input: %s", strerror(-errors[PFS_PATHPIPE_READ]));
}

static int run(struct asker *asker, bool as_objects)
{
	int status = ask(asker, NULL, NULL, 0); /* a store that cannot be read is told at once */
	int error = 0;

	if (as_objects)
		pfs_json_open(&asker->json, NULL, '[');
	asker->pipe.at_once = !pfs_answerer_tree(asker->answerer); /* a request at a time */
	if (!status)
		error = pfs_pathpipe_run(&asker->pipe);
	if (error)
		status = say(&asker->pipe, error);
	if (as_objects)
		pfs_json_close(&asker->json, ']');
	if (!status && asker->pipe.missing)
		status = PFS_EXIT_NO;
	return as_objects ? pfs_cmd_flush("resolve", status) : status;
}

int pfs_cmd_resolve(int argc, char **argv)
{
	struct asker asker = {.json = {.out = stdout}};
	struct pfs_cmd_args args;
	bool as_objects = false;
	int option, status;

	asker.pipe = (struct pfs_pathpipe){.in = STDIN_FILENO,
					   .out = STDOUT_FILENO,
					   .delimiter = '\n',
					   .path_max = PATH_MAX_SIZE,
					   .arg = &asker,
					   .resolve = resolve};
	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == ZERO)
			asker.pipe.delimiter = 0;
		else
			as_objects = true;
	}
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	if (as_objects)
		asker.pipe.show = show_objects;
	if (would_read_its_answers(&asker.pipe))
		return pfs_cmd_fail("resolve", "standard input is the file of standard output; "
					       "write the answers to another one");
	status = pfs_answerer_open(&asker.answerer, "resolve", args.operands[0]);
	if (status)
		return status;
	status = run(&asker, as_objects);
	pfs_answerer_close(asker.answerer);
	free(asker.words);
	return status;
}
