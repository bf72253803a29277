/* SPDX-License-Identifier: MIT */
/* primefs - the command line: finds the verb and runs it. */
#include "tools/cmd.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/reserve.h"
#include "tools/client/answer.h"

struct verb {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the verb; returns an exit status */
	const char *summary;
};

static const struct verb verbs[] = {
#define VERB(name, summary) {#name, pfs_cmd_##name, summary},
#include "tools/verbs.h"
	{NULL, NULL, NULL},
};

static const struct verb *find(const struct verb *list, const char *name)
{
	for (; list->name; list++)
		if (strcmp(list->name, name) == 0)
			return list;
	return NULL;
}

static int list(const char *head, const struct verb *verb, const char *foot)
{
	(void)puts(head);
	for (; verb->name; verb++)
		(void)printf("  %-10s %s\n", verb->name, verb->summary);
	(void)puts(foot);
	return pfs_cmd_flush("help", PFS_EXIT_OK);
}

static int print_help(void)
{
	return list("usage: primefs COMMAND [OPTION]... [OPERAND]...\n"
		    "Mounts a hierarchy that one store file holds.\n",
		    verbs,
		    "\nprimefs COMMAND --help explains a command; so does its manual page.\n"
		    "Exit status: 0 done, 1 the answer is no, 2 wrong usage, 3 failure.");
}

int pfs_cmd_help(int argc, char **argv)
{
	static char help[] = "--help";
	char *question[] = {argc > 1 ? argv[1] : NULL, help, NULL};
	const struct verb *verb;

	if (argc < 2 || argv[1][0] == '-')
		return print_help();
	verb = find(verbs, argv[1]);
	if (!verb)
		return pfs_cmd_usage("help", "unknown command '%s'", argv[1]);
	return verb->run == pfs_cmd_help ? print_help() : verb->run(2, question);
}

/* Opens closed standard descriptors, so that no other file gets their numbers: otherwise messages
 * might be written into a store. Using these descriptors still fails. */
static void occupy_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		(void)close(fd);
}

int main(int argc, char **argv)
{
	const struct verb *verb;

	occupy_standard_descriptors();
	/* a file as large as ulimit -f lets it be is an error of a write, not the end of a mount */
	pfs_cmd_found_xfsz_ignored = signal(SIGXFSZ, SIG_IGN) == SIG_IGN;
	if (pfs_space_is_limited()) /* else each thread's heap takes 64 MiB of it */
		(void)mallopt(M_ARENA_MAX, 1);
	if (argc < 2) {
		(void)fputs("primefs: no command given; see primefs help\n", stderr);
		return PFS_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_help();
	if (strcmp(argv[1], "--version") == 0) {
		(void)puts("primefs " PFS_VERSION);
		return pfs_cmd_flush("--version", PFS_EXIT_OK);
	}
	/* the command itself prints what concerns people, in one line */
	pfs_log_open(PFS_LOG_WARNING, false);
	pfs_answer_with(pfs_answers);
	verb = find(verbs, argv[1]);
	/* mount.fuse3 calls this program in this way */
	if (!verb && argc > 2 && strchr(argv[1], '/'))
		return pfs_cmd_mount(argc, argv);
	if (!verb && (strcmp(argv[1], "bench") == 0 || strcmp(argv[1], "gen") == 0)) {
		(void)fputs(
			"primefs: what 'bench' and 'gen' did is in primefs-bench now (make primefs-bench)\n",
			stderr);
		return PFS_EXIT_USAGE;
	}
	if (!verb) {
		(void)fprintf(stderr, "primefs: unknown command '%s'; see primefs help\n", argv[1]);
		return PFS_EXIT_USAGE;
	}
	return verb->run(argc - 1, argv + 1);
}
