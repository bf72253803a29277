/* SPDX-License-Identifier: MIT */
/* primefs resolve - prints the inode numbers of paths as they are read. */
#include "tools/client/answer.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/tree/resolve.h"
#include "tools/cmd.h"
#include "tools/stdout.h"

#define BUFFER_FIRST ((size_t)2 << 20)
#define PATH_MAX_SIZE ((size_t)4 << 20) /* bytes of a path: half of what a request may have */
#define BATCH_MAX ((size_t)128 << 10)   /* paths that are asked for at once */

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
	int error = paths && inos ? 0 : -ENOMEM;

	for (size_t i = 0; i < n_paths && !error; i++)
		paths[i] = (struct pfs_path_text){words[i + 1], strlen(words[i + 1])};
	if (!error)
		error = pfs_tree_resolve_many(answered->tree, inos, paths, n_paths, &from);
	if (!error)
		error = pfs_reply_write(reply, inos, n_paths * sizeof(*inos));
	return error ? pfs_reply_fail(reply, PFS_EXIT_FAILURE, "cannot answer: %s",
				      strerror(-error))
		     : PFS_EXIT_OK;
}

/* ---- asking ---- */

struct asker {
	struct pfs_answerer *answerer;
	char delimiter;
	/* The bytes from..to have been read and not taken; `ended` says that there are no more.
	 * Behind them is room for another byte. */
	char *bytes;
	size_t from, to, capacity;
	bool ended;
	/* A batch of paths, and the answer to it. */
	const char **words; /* [0] is the verb */
	struct pfs_path_text *paths;
	size_t n;
	uint64_t *inos;
	size_t answered, room; /* bytes */
	bool missing;
	struct pfs_json *json; /* NULL: lines */
	struct pfs_stdout out;
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

/* A file's bytes are there at once; a program that writes into a pipe line by line gets its answers
 * line by line. */
static bool more_is_ready(void)
{
	struct pollfd event = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&event, 1, 0) > 0;
}

static int make_room(struct asker *asker)
{
	if (asker->from > 0) {
		memmove(asker->bytes, asker->bytes + asker->from, asker->to - asker->from);
		asker->to -= asker->from;
		asker->from = 0;
	}
	if (asker->to + 1 < asker->capacity)
		return PFS_EXIT_OK;
	if (asker->to >= PATH_MAX_SIZE)
		return pfs_cmd_fail("resolve",
				    "standard input: a path has more than %zu bytes; %s",
				    PATH_MAX_SIZE,
				    asker->delimiter ? "give one a line, or end each with NUL and say -0"
						     : "end each with NUL, or leave -0 out");
	if (pfs_grow(&asker->bytes, &asker->capacity, PATH_MAX_SIZE + 1, 1))
		return pfs_cmd_fail("resolve", "no memory");
	return PFS_EXIT_OK;
}

/* Reads at least a path to its end, and what is there already. */
static int read_more(struct asker *asker)
{
	size_t seen = asker->to - asker->from;
	bool whole = false;

	while (!asker->ended && (!whole || (asker->to + 1 < asker->capacity && more_is_ready()))) {
		ssize_t got;

		if (asker->to + 1 == asker->capacity)
			PFS_TRY(make_room(asker));
		got = read(STDIN_FILENO, asker->bytes + asker->to,
			   asker->capacity - 1 - asker->to);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return pfs_cmd_fail("resolve", "standard input: %s", strerror(errno));
		asker->ended = got == 0;
		asker->to += (size_t)got;
		if (!whole)
			whole = memchr(asker->bytes + asker->from + seen, asker->delimiter,
				       asker->to - asker->from - seen);
		seen = asker->to - asker->from;
	}
	return PFS_EXIT_OK;
}

/* Takes the paths that have been read completely, up to a batch. */
static void take_batch(struct asker *asker)
{
	asker->n = 0;
	while (asker->n < BATCH_MAX && asker->from < asker->to) {
		char *path = asker->bytes + asker->from;
		char *end = memchr(path, asker->delimiter, asker->to - asker->from);
		size_t len = end ? (size_t)(end - path) : asker->to - asker->from;

		if (!end && !asker->ended)
			break;
		path[len] = 0;
		asker->from += len + (end != NULL);
		asker->paths[asker->n++] = (struct pfs_path_text){path, len};
		/* A name has no NUL, and no path is empty. */
		asker->words[asker->n] = asker->delimiter && memchr(path, 0, len) ? "" : path;
	}
}

static void print_object(struct asker *asker, const struct pfs_path_text *path, uint64_t ino)
{
	pfs_json_open(asker->json, NULL, '{');
	if (ino)
		pfs_json_u64(asker->json, "ino", ino);
	pfs_json_bytes(asker->json, "path", path->bytes, path->len);
	pfs_json_close(asker->json, '}');
}

static void print_batch(struct asker *asker)
{
	for (size_t i = 0; i < asker->n; i++) {
		const struct pfs_path_text *path = &asker->paths[i];
		uint64_t ino = asker->inos[i];

		asker->missing |= !ino;
		if (asker->json) {
			print_object(asker, path, ino);
			continue;
		}
		if (ino)
			(void)pfs_stdout_number(&asker->out, ino, 0);
		else
			pfs_stdout_char(&asker->out, '-');
		pfs_stdout_char(&asker->out, '\t');
		pfs_stdout_put(&asker->out, path->bytes, path->len);
		pfs_stdout_char(&asker->out, asker->delimiter);
	}
	if (asker->json)
		(void)fflush(stdout);
	else
		pfs_stdout_flush(&asker->out);
}

static int answer_batch(struct asker *asker)
{
	const struct pfs_sink sink = {asker, take_answer};
	int status;

	asker->answered = 0;
	asker->room = asker->n * sizeof(*asker->inos);
	status = pfs_answerer_ask(asker->answerer, &sink, asker->words, asker->n + 1);
	if (!status && asker->answered < asker->room)
		return pfs_cmd_fail("resolve", "the answer ended early; ask again");
	if (!status)
		print_batch(asker);
	return status;
}

static bool is_wanted(const struct asker *asker)
{
	return asker->json ? !ferror(stdout) : !asker->out.error;
}

static int answer_all(struct asker *asker)
{
	/* even without paths, so that a store that cannot be read is reported at once */
	int status = answer_batch(asker);

	while (!status && is_wanted(asker)) {
		take_batch(asker);
		if (asker->n > 0)
			status = answer_batch(asker);
		else if (asker->ended)
			break;
		else
			status = read_more(asker);
	}
	return status;
}

static int prepare(struct asker *asker)
{
	asker->words = calloc(BATCH_MAX + 1, sizeof(*asker->words));
	asker->paths = calloc(BATCH_MAX, sizeof(*asker->paths));
	asker->inos = calloc(BATCH_MAX, sizeof(*asker->inos));
	asker->bytes = malloc(BUFFER_FIRST);
	if (!asker->words || !asker->paths || !asker->inos || !asker->bytes)
		return pfs_cmd_fail("resolve", "no memory");
	asker->capacity = BUFFER_FIRST;
	asker->words[0] = "resolve";
	return PFS_EXIT_OK;
}

static int run(struct asker *asker)
{
	int status = prepare(asker);

	if (asker->json)
		pfs_json_open(asker->json, NULL, '[');
	if (!status)
		status = answer_all(asker);
	if (asker->json)
		pfs_json_close(asker->json, ']');
	if (!status && asker->missing)
		status = PFS_EXIT_NO;
	if (asker->json)
		return pfs_cmd_flush("resolve", status);
	return pfs_stdout_end(&asker->out, "resolve", status);
}

int pfs_cmd_resolve(int argc, char **argv)
{
	struct asker *asker PFS_FREE = calloc(1, sizeof(*asker));
	struct pfs_json json = {.out = stdout};
	struct pfs_cmd_args args;
	int option, status;

	if (!asker)
		return pfs_cmd_fail("resolve", "no memory");
	asker->delimiter = '\n';
	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == ZERO)
			asker->delimiter = 0;
		else
			asker->json = &json;
	}
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	status = pfs_answerer_open(&asker->answerer, "resolve", args.operands[0]);
	if (status)
		return status;
	status = run(asker);
	pfs_answerer_close(asker->answerer);
	free(asker->words);
	free(asker->paths);
	free(asker->inos);
	free(asker->bytes);
	return status;
}
