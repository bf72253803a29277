/* SPDX-License-Identifier: MIT */
#include "tools/gnu/find_args.h"

#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"

static bool parse_digits(int64_t *out, const char **text)
{
	int64_t n = 0;

	if (!isdigit((unsigned char)**text))
		return false;
	for (; isdigit((unsigned char)**text); (*text)++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, **text - '0', &n))
			return false;
	*out = n;
	return true;
}

bool pfs_find_parse_number(struct pfs_find_number *out, const char *text, const char *units)
{
	static const struct {
		char letter;
		int64_t bytes;
	} known[] = {{'b', 512},	{'c', 1},	   {'w', 2},
		     {'k', 1024},	{'M', 1024 * 1024}, {'G', 1024 * 1024 * 1024}};
	size_t i;

	out->sign = *text == '+' ? 1 : *text == '-' ? -1 : 0;
	text += out->sign != 0;
	if (!parse_digits(&out->n, &text))
		return false;
	if (!units)
		return !*text;
	out->unit = 512;
	for (i = 0; *text && i < PFS_COUNT(known); i++) {
		if (*text == known[i].letter) {
			out->unit = known[i].bytes;
			return !text[1];
		}
	}
	return !*text;
}

/* Applies one clause of a symbolic mode, such as "u+rw", to *mode. */
static bool parse_clause(mode_t *mode, const char **text)
{
	static const struct {
		char letter;
		mode_t bits;
	} who_bits[] = {{'u', 04700}, {'g', 02070}, {'o', 01007}, {'a', 07777}},
	  what_bits[] = {{'r', 0444}, {'w', 0222},  {'x', 0111},
			 {'X', 0111}, {'s', 06000}, {'t', 01000}};
	mode_t who = 0, what = 0;
	const char *c = *text;
	size_t i;
	char op;

	for (; *c && strchr("ugoa", *c); c++)
		for (i = 0; i < PFS_COUNT(who_bits); i++)
			who |= who_bits[i].letter == *c ? who_bits[i].bits : 0;
	who = who ? who : 07777;
	op = *c;
	if (!op || !strchr("+-=", op))
		return false;
	for (c++; *c && strchr("rwxXst", *c); c++)
		for (i = 0; i < PFS_COUNT(what_bits); i++)
			what |= what_bits[i].letter == *c ? what_bits[i].bits : 0;
	what &= who | (who & 01000 ? 01000 : 0);
	if (op == '=')
		*mode &= ~who;
	*mode = op == '-' ? *mode & ~what : *mode | what;
	*text = c;
	return true;
}

bool pfs_find_parse_mode(mode_t *out, const char *text)
{
	mode_t mode = 0;

	if (isdigit((unsigned char)*text)) {
		char *end;
		unsigned long value = strtoul(text, &end, 8);

		*out = (mode_t)value;
		return !*end && value <= 07777;
	}
	while (parse_clause(&mode, &text)) {
		if (!*text) {
			*out = mode;
			return true;
		}
		if (*text++ != ',')
			break;
	}
	return false;
}

bool pfs_find_date(int64_t *out, const char *words)
{
	char *const command[] = {(char *)"date", (char *)"-d", (char *)words, (char *)"+%s%N",
				 NULL};
	char digits[64], *end = digits;
	int ends[2], status = -1;
	posix_spawn_file_actions_t actions;
	ssize_t got = 0;
	pid_t child;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return false;
	if (pipe2(ends, O_CLOEXEC) == 0) {
		(void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
		(void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
						       O_WRONLY, 0);
		status = posix_spawnp(&child, command[0], &actions, NULL, command, environ);
		(void)close(ends[1]);
		if (status == 0) {
			got = read(ends[0], digits, sizeof(digits) - 1);
			(void)waitpid(child, &status, 0);
		}
		(void)close(ends[0]);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	digits[PFS_MAX(got, 0)] = 0;
	*out = strtoll(digits, &end, 10);
	return status == 0 && end != digits;
}

bool pfs_find_syntax(reg_syntax_t *out, const char *name)
{
	static const struct {
		const char *name;
		reg_syntax_t syntax;
	} types[] = {
		{"findutils-default", RE_SYNTAX_EMACS},
		{"emacs", RE_SYNTAX_EMACS},
		{"posix-extended", RE_SYNTAX_POSIX_EXTENDED},
		{"posix-egrep", RE_SYNTAX_POSIX_EGREP},
		{"posix-basic", RE_SYNTAX_POSIX_BASIC},
		{"egrep", RE_SYNTAX_EGREP},
		{"grep", RE_SYNTAX_GREP},
		{"ed", RE_SYNTAX_ED},
		{"sed", RE_SYNTAX_SED},
		{"awk", RE_SYNTAX_AWK},
		{"gnu-awk", RE_SYNTAX_GNU_AWK},
	};

	for (size_t i = 0; i < PFS_COUNT(types); i++) {
		if (strcmp(types[i].name, name) == 0) {
			*out = types[i].syntax;
			return true;
		}
	}
	return false;
}
