/* SPDX-License-Identifier: MIT */
#include "tools/answer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/mount/kernel.h"
#include "tools/cmd.h"
#include "tools/ready.h"

const struct pfs_verb pfs_answers[] = {
	{"info", pfs_answer_info},
	{"tree", pfs_answer_tree},
	{0},
};

/* ---- stdout as a reply ---- */

struct printed {
	struct pfs_reply reply;
	bool any;
};

static int print(struct pfs_reply *reply, const void *bytes, size_t size)
{
	((struct printed *)reply)->any = true;
	return fwrite(bytes, 1, size, stdout) == size ? 0 : -EIO;
}

static bool never_gone(struct pfs_reply *reply PFS_UNUSED)
{
	return false; /* who closes our stdout ends us */
}

static int finish(const char *verb, const struct printed *printed, int status)
{
	if (*printed->reply.message)
		pfs_cmd_say(verb, "%s", printed->reply.message);
	return status == PFS_EXIT_FAILURE ? status : pfs_cmd_flush(verb, status);
}

/* ---- whoever has the tree ---- */

/* The store, or the one that is mounted here. */
static int find_store(char path[PATH_MAX], const char *verb, const char *operand)
{
	struct pfs_kernel_mount found;
	char folder[PATH_MAX];
	struct stat attr;

	(void)snprintf(path, PATH_MAX, "%s", operand);
	if (!realpath(operand, folder) || stat(folder, &attr) != 0 || !S_ISDIR(attr.st_mode))
		return PFS_EXIT_OK; /* what is wrong shows when it is opened */
	if (pfs_kernel_find(&found, folder, NULL) != 0)
		return pfs_cmd_fail(verb,
				    "%s: a directory on which no store is mounted; name a "
				    "store or its mountpoint",
				    operand);
	(void)snprintf(path, PATH_MAX, "%s", found.source);
	return PFS_EXIT_OK;
}

/* True when the daemon has answered, or could not: *status is what to exit with. */
static bool ask_daemon(int *status, struct printed *printed, const char *store,
		       const char *const *words, size_t n)
{
	int error = pfs_control_ask(status, &printed->reply, store, words, n);

	if (!error)
		*status = finish(words[0], printed, *status);
	else if (error == -ENOENT || (error == -EPIPE && !printed->any))
		return false; /* not mounted, or not any more */
	else if (error == -EACCES)
		*status = pfs_cmd_fail(words[0],
				       "%s: mounted by another user, whose daemon does not answer "
				       "this one",
				       store);
	else if (error == -EPIPE)
		*status = pfs_cmd_fail(words[0], "%s: its daemon ended amid the answer; ask again",
				       store);
	else
		*status = pfs_cmd_fail(words[0], "%s: asking its daemon: %s", store,
				       strerror(-error));
	return true;
}

static int answer_here(struct printed *printed, const char *store, const char *const *words,
		       size_t n)
{
	struct pfs_answered answered = {.store = store};
	const struct pfs_verb *verb = pfs_answers;
	int status = pfs_ready_tree(&answered.tree, words[0], store);

	if (status)
		return status;
	while (strcmp(verb->name, words[0]) != 0)
		verb++;
	status = verb->answer(&answered, &printed->reply, words, n);
	(void)pfs_tree_close(answered.tree);
	return finish(words[0], printed, status);
}

int pfs_answer(const char *store, const char *const *words, size_t n)
{
	struct printed printed = {.reply = {.write = print, .gone = never_gone}};
	char path[PATH_MAX];
	int status = find_store(path, words[0], store);

	if (status || ask_daemon(&status, &printed, path, words, n))
		return status;
	return answer_here(&printed, path, words, n);
}
