/* SPDX-License-Identifier: MIT */
/* Decides an expression of find(1) for one node, and does its actions. */
#include "tools/gnu/find_expr.h"

#include <errno.h>
#include <fnmatch.h>
#include <grp.h>
#include <pwd.h>
#include <regex.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/cmd.h"
#include "tools/gnu/find_format.h"
#include "tools/gnu/find_ls.h"

#define NS_PER_S    INT64_C(1000000000)
#define BATCH_BYTES ((size_t)128 << 10) /* bytes of words, as in find(1) */

extern char **environ;

/* ---- tests ---- */

static int64_t value_of(const struct pfs_found *found, unsigned field)
{
	switch (field) {
	case PFS_FIND_INO:
		return (int64_t)found->ino;
	case PFS_FIND_NLINK:
		return (int64_t)found->nlink;
	case PFS_FIND_UID:
		return found->uid;
	case PFS_FIND_GID:
		return found->gid;
	case PFS_FIND_SIZE:
		return found->size;
	case PFS_FIND_MTIME:
		return found->mtime;
	case PFS_FIND_ATIME:
		return found->atime;
	default:
		return found->ctime;
	}
}

static bool number_holds(const struct pfs_find_node *node, int64_t value)
{
	int64_t units = value / node->number.unit + (value % node->number.unit > 0);

	if (node->number.sign > 0)
		return units > node->number.n;
	if (node->number.sign < 0)
		return units < node->number.n;
	return units == node->number.n;
}

static bool age_holds(const struct pfs_find_node *node, int64_t time)
{
	int64_t unit = node->number.unit, ago = node->time - node->number.n * unit;
	int64_t from = unit > 60 * NS_PER_S ? ago - unit : ago;

	if (node->number.sign > 0)
		return time < from;
	if (node->number.sign < 0)
		return time > ago;
	return time >= from && time < from + unit;
}

static bool perm_holds(const struct pfs_find_node *node, mode_t mode)
{
	mode &= 07777;
	if (!node->perm_kind)
		return mode == node->mode;
	if (node->perm_kind == '-' || !node->mode)
		return (mode & node->mode) == node->mode;
	return mode & node->mode;
}

static bool regex_holds(const struct pfs_find_node *node, const struct pfs_found *found)
{
	regoff_t len = (regoff_t)found->path_len;

	return re_match(node->regex, found->path, len, 0, NULL) == len;
}

static bool pattern_holds(const struct pfs_find_node *node, const char *text)
{
	return fnmatch(node->text, text, node->fold_case ? FNM_CASEFOLD : 0) == 0;
}

static bool test_holds(const struct pfs_find_node *node, const struct pfs_found *found)
{
	switch (node->kind) {
	case PFS_FIND_FALSE:
		return false;
	case PFS_FIND_NAME:
		return pattern_holds(node, found->name);
	case PFS_FIND_PATH:
		return pattern_holds(node, found->path);
	case PFS_FIND_LNAME:
		return found->type == 'l' && pattern_holds(node, found->target);
	case PFS_FIND_REGEX:
		return regex_holds(node, found);
	case PFS_FIND_TYPE:
		return strchr(node->text, found->type) != NULL;
	case PFS_FIND_NUMBER:
		return number_holds(node, value_of(found, node->field));
	case PFS_FIND_TIME:
		return age_holds(node, value_of(found, node->field));
	case PFS_FIND_NEWER:
		return value_of(found, node->field) > node->time;
	case PFS_FIND_PERM:
		return perm_holds(node, found->mode);
	case PFS_FIND_IS_EMPTY:
		return found->type == 'f' ? found->size == 0 : found->type == 'd' && found->empty;
	case PFS_FIND_NOUSER:
		return !getpwuid(found->uid);
	case PFS_FIND_NOGROUP:
		return !getgrgid(found->gid);
	case PFS_FIND_SAME:
		return found->ino == node->ino || (node->link && found->link == node->link);
	default:
		return true;
	}
}

/* ---- -exec ---- */

static bool run_command(struct pfs_find_run *run, char **command)
{
	posix_spawnattr_t as_found;
	int status = 0, error;
	sigset_t ignored;
	pid_t child;

	pfs_stdout_flush(run->out);
	(void)sigemptyset(&ignored);
	if (!pfs_cmd_found_xfsz_ignored)
		(void)sigaddset(&ignored, SIGXFSZ); /* main() ignores it */
	(void)posix_spawnattr_init(&as_found);
	(void)posix_spawnattr_setsigdefault(&as_found, &ignored);
	(void)posix_spawnattr_setflags(&as_found, POSIX_SPAWN_SETSIGDEF);
	error = posix_spawnp(&child, command[0], NULL, &as_found, command, environ);
	(void)posix_spawnattr_destroy(&as_found);
	if (error) {
		run->status = pfs_cmd_fail("find", "%s: %s", command[0], strerror(error));
		return false;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Returns a word of the command with every {} replaced. */
static char *fill_in(const char *word, const struct pfs_found *found)
{
	size_t size = strlen(word) + 1;
	const char *at;
	char *out, *to;

	for (at = word; (at = strstr(at, "{}")); at += 2)
		size += found->path_len;
	out = to = malloc(size);
	while (out && (at = strstr(word, "{}"))) {
		to = mempcpy(to, word, (size_t)(at - word));
		to = mempcpy(to, found->path, found->path_len);
		word = at + 2;
	}
	if (out)
		(void)memcpy(to, word, strlen(word) + 1);
	return out;
}

static bool execute(struct pfs_find_run *run, const struct pfs_find_node *node,
		    const struct pfs_found *found)
{
	size_t n = 0, i;
	bool ok = false;
	char **command;

	while (node->command[n])
		n++;
	command = calloc(n + 1, sizeof(*command));
	for (i = 0; command && i < n; i++) {
		command[i] = fill_in(node->command[i], found);
		if (!command[i])
			break;
	}
	if (!command || i < n)
		run->status = pfs_cmd_fail("find", "no memory for a command");
	else
		ok = run_command(run, command);
	for (i = 0; command && i < n; i++)
		free(command[i]);
	free(command);
	return ok;
}

static void run_batch(struct pfs_find_run *run, struct pfs_find_node *node)
{
	char **command;
	size_t n = 0;

	if (!node->n_batch)
		return;
	while (node->command[n])
		n++;
	command = calloc(n + node->n_batch + 1, sizeof(*command));
	if (!command) {
		run->status = pfs_cmd_fail("find", "no memory for a command");
		return;
	}
	(void)memcpy(command, node->command, n * sizeof(*command));
	(void)memcpy(command + n, node->batch, node->n_batch * sizeof(*command));
	if (!run_command(run, command) && !run->status)
		run->status = PFS_EXIT_NO;
	free(command);
	while (node->n_batch)
		free(node->batch[--node->n_batch]);
	node->batch_bytes = 0;
}

static void add_to_batch(struct pfs_find_run *run, struct pfs_find_node *node,
			 const struct pfs_found *found)
{
	char *path = strdup(found->path);

	if (node->n_batch && node->batch_bytes + found->path_len + 1 > BATCH_BYTES)
		run_batch(run, node);
	for (size_t i = 0; !node->n_batch && node->command[i]; i++)
		node->batch_bytes += strlen(node->command[i]) + 1;
	if (!path || pfs_grow(&node->batch, &node->capacity, node->n_batch + 1, sizeof(path))) {
		free(path);
		run->status = pfs_cmd_fail("find", "no memory for a command");
		return;
	}
	node->batch[node->n_batch++] = path;
	node->batch_bytes += found->path_len + 1;
}

/* ---- expressions ---- */

static bool act(struct pfs_find_run *run, struct pfs_find_node *node, const struct pfs_found *found)
{
	switch (node->kind) {
	case PFS_FIND_PRINT:
		pfs_stdout_name(run->out, found->path, found->path_len, run->terminal);
		pfs_stdout_char(run->out, '\n');
		return true;
	case PFS_FIND_PRINT0:
		pfs_stdout_put(run->out, found->path, found->path_len + 1);
		return true;
	case PFS_FIND_LS:
		pfs_find_put_ls(run->out, found);
		return true;
	case PFS_FIND_PRINTF:
		pfs_find_format_put(run->out, node->format, found, run->start, run->terminal);
		return true;
	case PFS_FIND_EXEC:
		return execute(run, node, found);
	case PFS_FIND_EXEC_MANY:
		add_to_batch(run, node, found);
		return true;
	case PFS_FIND_DELETE:
		return run->remove(run->arg, found);
	case PFS_FIND_PRUNE:
		run->pruned = found->type == 'd';
		return true;
	default:
		run->quit = true;
		return true;
	}
}

static bool decide(struct pfs_find_run *run, struct pfs_find_node *node,
		   const struct pfs_found *found)
{
	if (run->quit)
		return false;
	switch (node->kind) {
	case PFS_FIND_AND:
		return decide(run, node->left, found) && decide(run, node->right, found);
	case PFS_FIND_OR:
		return decide(run, node->left, found) || decide(run, node->right, found);
	case PFS_FIND_COMMA:
		(void)decide(run, node->left, found);
		return decide(run, node->right, found);
	case PFS_FIND_NOT:
		return !decide(run, node->left, found);
	default:
		return node->kind >= PFS_FIND_PRINT ? act(run, node, found)
						    : test_holds(node, found);
	}
}

bool pfs_find_decide(struct pfs_find_run *run, const struct pfs_found *found)
{
	run->pruned = false;
	return decide(run, run->find->root, found);
}

static void complete(struct pfs_find_run *run, struct pfs_find_node *node)
{
	if (!node)
		return;
	complete(run, node->left);
	complete(run, node->right);
	if (node->kind == PFS_FIND_EXEC_MANY)
		run_batch(run, node);
}

void pfs_find_complete(struct pfs_find_run *run)
{
	complete(run, run->find->root);
}

/* Deep expressions are deep on their left side. */
int pfs_find_each_same(struct pfs_find_node *root, int (*fn)(void *arg, struct pfs_find_node *node),
		       void *arg)
{
	for (; root; root = root->left) {
		if (root->kind == PFS_FIND_SAME)
			PFS_TRY(fn(arg, root));
		if (root->right)
			PFS_TRY(pfs_find_each_same(root->right, fn, arg));
	}
	return 0;
}
