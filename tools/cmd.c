/* SPDX-License-Identifier: MIT */
#include "tools/cmd.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "fs/image/imagefile.h"
#include "fs/mount/control/control.h"
#include "meta/store.h"

#define LINE_MAX_BYTES 95 /* of the notes */

/* Names may hold anything, a message is one line: control bytes are shown as \n, \t, \x1b. */
static void print_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n')
			(void)fputs("\\n", out);
		else if (c == '\t')
			(void)fputs("\\t", out);
		else if (c < ' ' || c == 0x7f)
			(void)fprintf(out, "\\x%02x", c);
		else
			(void)fputc(c, out);
	}
}

const char *pfs_cmd_program = "primefs";
bool pfs_cmd_found_xfsz_ignored;

static PFS_PRINTF(3, 0) void say(const char *verb, const char *hint, const char *format,
				 va_list values)
{
	char message[8192];

	(void)vsnprintf(message, sizeof(message), format, values);
	flockfile(stderr);
	(void)fprintf(stderr, "%s %s: ", pfs_cmd_program, verb);
	print_escaped(stderr, message);
	if (hint)
		(void)fprintf(stderr, "; see %s %s %s", pfs_cmd_program, verb, hint);
	(void)fputc('\n', stderr);
	funlockfile(stderr);
}

int pfs_cmd_usage(const char *verb, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say(verb, "--help", format, values);
	va_end(values);
	return PFS_EXIT_USAGE;
}

void pfs_cmd_say(const char *verb, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say(verb, NULL, format, values);
	va_end(values);
}

int pfs_cmd_fail(const char *verb, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	say(verb, NULL, format, values);
	va_end(values);
	return PFS_EXIT_FAILURE;
}

/* ---- options ---- */

static void stop(struct pfs_cmd_args *args, int status)
{
	args->status = status;
	args->stop = true;
}

static void print_option(const struct pfs_cmd_option *option)
{
	char letter[8] = "    ", left[64];
	bool both = option->letter && option->name;

	if (option->letter)
		(void)snprintf(letter, sizeof(letter), "-%c%s", option->letter, both ? ", " : "");
	(void)snprintf(left, sizeof(left), "%s%s%s%s%s", letter, option->name ? "--" : "",
		       option->name ? option->name : "",
		       !option->argument ? "" : option->name ? "=" : " ",
		       option->argument ? option->argument : "");
	if (strlen(left) > 24)
		(void)printf("  %s\n%28s%s\n", left, "", option->help);
	else
		(void)printf("  %-24s  %s\n", left, option->help);
}

/* Lines that are longer end at a space. */
static void print_notes(const char *notes)
{
	while (*notes) {
		size_t len = strcspn(notes, "\n"), end = len;

		for (size_t i = LINE_MAX_BYTES; len > LINE_MAX_BYTES && end == len && i > 0; i--)
			if (notes[i] == ' ')
				end = i;
		(void)printf("%.*s\n", (int)end, notes);
		notes += end + (notes[end] != 0);
	}
}

static void print_help(const struct pfs_cmd *cmd)
{
	static const struct pfs_cmd_option help = {"help", 0, NULL, "print this"};
	const struct pfs_cmd_option *option;

	(void)printf("usage: %s %s [OPTION]...%s%s\n%s\n\n", pfs_cmd_program, cmd->verb,
		     *cmd->operands ? " " : "", cmd->operands, cmd->summary);
	for (option = cmd->options; option->name || option->letter; option++)
		print_option(option);
	print_option(&help);
	if (cmd->notes)
		(void)putchar('\n');
	print_notes(cmd->notes ? cmd->notes : "");
}

void pfs_cmd_begin(struct pfs_cmd_args *args, const struct pfs_cmd *cmd, int argc, char **argv)
{
	*args = (struct pfs_cmd_args){
		.cmd = cmd,
		.operands = argv + 1, /* collected in place, never ahead of what has been read */
		.argc = argc,
		.at = 1,
		.argv = argv,
	};
}

static int take_value(struct pfs_cmd_args *args, int index, const char *attached)
{
	const struct pfs_cmd_option *option = &args->cmd->options[index];

	args->value = attached;
	if (option->argument && !attached) {
		if (args->at == args->argc) {
			if (option->name)
				pfs_cmd_reject(args, "--%s needs a value", option->name);
			else
				pfs_cmd_reject(args, "-%c needs a value", option->letter);
			return -1;
		}
		args->value = args->argv[args->at++];
	} else if (!option->argument && attached) {
		pfs_cmd_reject(args, "--%s takes no value", option->name);
		return -1;
	}
	return index;
}

static int long_option(struct pfs_cmd_args *args, const char *text)
{
	const struct pfs_cmd_option *options = args->cmd->options;
	const char *equals = strchrnul(text, '=');
	size_t len = (size_t)(equals - text);
	int i;

	if (strcmp(text, "help") == 0) {
		print_help(args->cmd);
		stop(args, pfs_cmd_flush(args->cmd->verb, PFS_EXIT_OK));
		return -1;
	}
	for (i = 0; options[i].name || options[i].letter; i++)
		if (options[i].name && strlen(options[i].name) == len &&
		    memcmp(options[i].name, text, len) == 0)
			return take_value(args, i, *equals ? equals + 1 : NULL);
	pfs_cmd_reject(args, "unknown option --%.*s", (int)len, text);
	return -1;
}

static int short_option(struct pfs_cmd_args *args)
{
	const struct pfs_cmd_option *options = args->cmd->options;
	const char *attached = NULL;
	char letter = *args->cluster++;
	int i;

	for (i = 0; options[i].name || options[i].letter; i++) {
		if (options[i].letter != letter)
			continue;
		if (options[i].argument && *args->cluster) {
			attached = args->cluster;
			args->cluster = NULL;
		}
		return take_value(args, i, attached);
	}
	pfs_cmd_reject(args, "unknown option -%c", letter);
	return -1;
}

int pfs_cmd_next(struct pfs_cmd_args *args)
{
	while (!args->stop) {
		char *word;

		if (args->cluster && *args->cluster)
			return short_option(args);
		args->cluster = NULL;
		if (args->at >= args->argc)
			break;
		word = args->argv[args->at++];
		if (args->ended || word[0] != '-' || !word[1]) {
			args->operands[args->n_operands++] = word;
		} else if (word[1] != '-') {
			args->cluster = word + 1;
		} else if (word[2]) {
			return long_option(args, word + 2);
		} else {
			args->ended = true;
		}
	}
	return -1;
}

bool pfs_cmd_end(struct pfs_cmd_args *args, int min, int max)
{
	if (args->stop)
		return true;
	if (args->n_operands < min)
		pfs_cmd_reject(args, "an operand is missing: %s", args->cmd->operands);
	else if (max >= 0 && args->n_operands > max)
		pfs_cmd_reject(args, "'%s' is one operand too many", args->operands[max]);
	else if (args->n_operands < args->argc - 1)
		args->operands[args->n_operands] = NULL;
	/* As of a script's variable that is not set, which must not mean all there is. */
	for (int i = 0; i < args->n_operands; i++)
		if (!*args->operands[i])
			pfs_cmd_reject(args, "an operand is empty: %s", args->cmd->operands);
	return args->stop;
}

void pfs_cmd_reject(struct pfs_cmd_args *args, const char *format, ...)
{
	char message[512];
	va_list values;

	if (args->stop)
		return;
	va_start(values, format);
	(void)vsnprintf(message, sizeof(message), format, values);
	va_end(values);
	stop(args, pfs_cmd_usage(args->cmd->verb, "%s", message));
}

void pfs_cmd_number(struct pfs_cmd_args *args, uint64_t *out, int option, uint64_t min,
		    uint64_t max)
{
	uint64_t number;

	if (pfs_parse_u64(&number, args->value) != 0 || number < min || number > max)
		pfs_cmd_reject(args, "--%s=%s: not a number from %llu to %llu",
			       args->cmd->options[option].name, args->value,
			       (unsigned long long)min, (unsigned long long)max);
	else
		*out = number;
}

void pfs_cmd_engine(struct pfs_cmd_args *args, enum pfs_engine_kind *kind)
{
	if (pfs_engine_by_name(kind, args->value) != 0)
		pfs_cmd_reject(args, "--engine=%s: not auto, host or cuda", args->value);
}

/* ---- progress ---- */

void pfs_progress_show(struct pfs_progress *progress, const char *format, ...)
{
	uint64_t now = pfs_now_ms();
	va_list values;

	if (!progress->started_ms)
		progress->started_ms = now;
	if (now - progress->started_ms < 1000 || now - progress->shown_ms < 100 ||
	    !isatty(STDERR_FILENO))
		return;
	progress->shown_ms = now;
	progress->shown = true;
	(void)fputs("\r\033[K", stderr);
	va_start(values, format);
	(void)vfprintf(stderr, format, values);
	va_end(values);
	(void)fflush(stderr);
}

void pfs_progress_clear(struct pfs_progress *progress)
{
	if (progress->shown)
		(void)fputs("\r\033[K", stderr);
	*progress = (struct pfs_progress){0};
}

/* ---- output ---- */

int pfs_cmd_flush(const char *verb, int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	return pfs_cmd_fail(verb, "standard output: %s", strerror(errno));
}

bool pfs_cmd_is_store_suffix(const char *text)
{
	static const char *const suffixes[] = {"-wal",
					       "-shm",
					       "-journal",
					       PFS_IMAGE_FILE_SUFFIX,
					       (PFS_IMAGE_FILE_SUFFIX PFS_IMAGE_PART_SUFFIX),
					       PFS_CONTROL_SUFFIX};

	for (size_t i = 0; i < PFS_COUNT(suffixes); i++)
		if (strcmp(text, suffixes[i]) == 0)
			return true;
	return strncmp(text, ".part-", 6) == 0;
}

static bool is_named_for_store(const char *file)
{
	char store[PATH_MAX];
	const char *at;

	for (at = file + strlen(file); at > file && at[-1] != '/'; at--)
		if (pfs_cmd_is_store_suffix(at) && (size_t)(at - file) < sizeof(store)) {
			(void)snprintf(store, sizeof(store), "%.*s", (int)(at - file), file);
			if (pfs_store_is_marked(store))
				return true;
		}
	return false;
}

bool pfs_cmd_is_beside_store(const char *file)
{
	char real[PATH_MAX] = ""; /* of an empty name nothing is written to it */

	/* of what is not there glibc has the path, too */
	return is_named_for_store(file) ||
	       ((realpath(file, real) || errno == ENOENT) && is_named_for_store(real));
}
