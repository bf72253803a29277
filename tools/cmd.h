/* SPDX-License-Identifier: MIT */
/* tools/cmd.h - what all commands share: exit status, options, one-line errors, JSON, progress.
 *
 * A command is a function pfs_cmd_<verb> in tools/cmd_<verb>.c and a line in tools/verbs.h.  It
 * describes itself with a struct pfs_cmd, from which --help is printed:
 *
 *	enum { COLOUR, LOUD };
 *	static const struct pfs_cmd_option options[] = {
 *		[COLOUR] = {"colour", 'c', "NAME", "paint it so"},
 *		[LOUD] = {"loud", 0, NULL, "say more"},
 *		{0},
 *	};
 *	static const struct pfs_cmd command = {"paint", "STORE [PATH]", "paints a store", options,
 *NULL};
 *
 *	int pfs_cmd_paint(int argc, char **argv)
 *	{
 *		struct pfs_cmd_args args;
 *		int option;
 *
 *		pfs_cmd_begin(&args, &command, argc, argv);
 *		while ((option = pfs_cmd_next(&args)) >= 0)
 *			if (option == COLOUR)
 *				colour = args.value;
 *		if (pfs_cmd_end(&args, 1, 2))
 *			return args.status;
 *		... args.operands[0] ...
 *	}
 */
#ifndef PFS_TOOLS_CMD_H
#define PFS_TOOLS_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "gpu/engine.h"

enum pfs_exit {
	PFS_EXIT_OK = 0,
	PFS_EXIT_NO = 1,      /* the answer is no: nothing found, not the same, not clean */
	PFS_EXIT_USAGE = 2,   /* the command line makes no sense */
	PFS_EXIT_FAILURE = 3, /* it does, but it could not be done */
};

/* Returns the worse of two statuses that a command has come to. */
static inline int pfs_cmd_worst(int a, int b)
{
	return a > b ? a : b;
}

/* The name that messages and help give the program, "primefs"; set before anything else. */
extern const char *pfs_cmd_program;
/* Whether who called the program ignores SIGXFSZ, which main() ignores in any case. */
extern bool pfs_cmd_found_xfsz_ignored;

/* ---- errors: "primefs VERB: MESSAGE" on stderr, control bytes in it escaped ---- */

/* Says it, points to --help, and returns PFS_EXIT_USAGE. */
int pfs_cmd_usage(const char *verb, const char *format, ...) PFS_PRINTF(2, 3);

/* Only says it. */
void pfs_cmd_say(const char *verb, const char *format, ...) PFS_PRINTF(2, 3);

/* Says it, and returns PFS_EXIT_FAILURE. */
int pfs_cmd_fail(const char *verb, const char *format, ...) PFS_PRINTF(2, 3);

/* ---- options and operands ---- */

struct pfs_cmd_option {
	const char *name;     /* without "--"; may be NULL when there is a letter */
	char letter;          /* or 0 */
	const char *argument; /* what --help calls its value; NULL: it takes none */
	const char *help;
};

struct pfs_cmd {
	const char *verb;
	const char *operands;
	const char *summary;
	const struct pfs_cmd_option *options; /* ended by one with neither name nor letter */
	const char *notes; /* printed below the options by --help, long lines folded, or NULL */
};

struct pfs_cmd_args {
	const struct pfs_cmd *cmd;
	char **operands; /* NULL-terminated */
	int n_operands;
	const char *value; /* of the option just returned */
	int status;        /* what to exit with when pfs_cmd_end says so */
	/* private */
	int argc, at;
	char **argv;
	const char *cluster; /* rest of "-abc" */
	bool ended;          /* by "--" or an error */
	bool stop;
};

/* argv[0] is the verb.  argv is reordered so that operands come together. */
void pfs_cmd_begin(struct pfs_cmd_args *args, const struct pfs_cmd *cmd, int argc, char **argv);

/* Returns the index in cmd->options of the next option, whose value is in args->value; -1 when
 * there are no more. Long options are --name, --name=value or --name value; letters may be
 * clustered; operands may come in between; "--" ends the options. --help is answered here. */
int pfs_cmd_next(struct pfs_cmd_args *args);

/* Returns true if the command is to return args->status now: after --help, a bad option, or unless
 * the number of operands lies in min..max (max < 0: any). */
bool pfs_cmd_end(struct pfs_cmd_args *args, int min, int max);

/* Ends pfs_cmd_next and makes pfs_cmd_end true; for a value that makes no sense. */
void pfs_cmd_reject(struct pfs_cmd_args *args, const char *format, ...) PFS_PRINTF(2, 3);

/* Gets the option's value as a number between min and max; rejects others. */
void pfs_cmd_number(struct pfs_cmd_args *args, uint64_t *out, int option, uint64_t min,
		    uint64_t max);

/* Gets the value of --engine; rejects others. */
void pfs_cmd_engine(struct pfs_cmd_args *args, enum pfs_engine_kind *kind);

#define PFS_CMD_NO_DEVICE                                                                          \
	"engine cuda: no CUDA device can be used here, or this program was built without CUDA; "   \
	"try auto"

/* ---- progress ---- */

/* Shows a line on a terminal's stderr, overwriting the one before: not in the first second, at most
 * ten times a second, never elsewhere than on a terminal. */
struct pfs_progress {
	uint64_t started_ms, shown_ms; /* zero at first */
	bool shown;
};
void pfs_progress_show(struct pfs_progress *progress, const char *format, ...) PFS_PRINTF(2, 3);
void pfs_progress_clear(struct pfs_progress *progress);

/* ---- output ---- */

/* Flushes stdout. Returns `status`; or PFS_EXIT_FAILURE, with a line, if what was printed did not
 * get out. */
int pfs_cmd_flush(const char *verb, int status);

/* Returns true if a store's name with this text behind it names a file that the store has, or may
 * have, beside it. */
bool pfs_cmd_is_store_suffix(const char *text);

#define PFS_CMD_BESIDE_STORE "has the name of a file that a store has beside it; name another file"
/* Returns true if the file, be it there or not, or what it is a symlink to, has the name of one
 * that an existing store has, or may have, beside it. */
bool pfs_cmd_is_beside_store(const char *file);

/* Streams JSON: commas and indentation come by themselves.  Key NULL: an element of an array, or
 * the outermost value. */
struct pfs_json {
	FILE *out;
	unsigned depth;
	bool started; /* something has been written at this depth */
};
void pfs_json_open(struct pfs_json *json, const char *key, char bracket); /* '{' or '[' */
void pfs_json_close(struct pfs_json *json, char bracket);		  /* '}' or ']' */
void pfs_json_u64(struct pfs_json *json, const char *key, uint64_t value);
void pfs_json_real(struct pfs_json *json, const char *key, double value);
void pfs_json_bool(struct pfs_json *json, const char *key, bool value);
void pfs_json_string(struct pfs_json *json, const char *key, const char *value);

/* Writes bytes as a string; those that are not UTF-8 become U+FFFD. */
void pfs_json_bytes(struct pfs_json *json, const char *key, const void *value, size_t len);

/* ---- the commands: argv[0] is the verb; they return an exit status ---- */

#define VERB(name, summary) int pfs_cmd_##name(int argc, char **argv);
#include "tools/verbs.h"

#endif
