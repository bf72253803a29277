/* SPDX-License-Identifier: MIT */
#include "tools/bench/query_duckdb.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/cmd.h"

extern char **environ;

/* ---- rows ---- */

static void end_field(FILE *csv, bool last)
{
	(void)fputc(last ? '\n' : ',', csv);
}

void pfs_duckdb_put_text(FILE *csv, const char *text, size_t size, bool last)
{
	(void)fputc('"', csv);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"')
			(void)fputc('"', csv);
		(void)fputc(c < ' ' || c > 126 ? '?' : c, csv);
	}
	(void)fputc('"', csv);
	end_field(csv, last);
}

void pfs_duckdb_put_number(FILE *csv, int64_t number, bool last)
{
	(void)fprintf(csv, "%" PRId64, number);
	end_field(csv, last);
}

void pfs_duckdb_put_null(FILE *csv, bool last)
{
	end_field(csv, last);
}

/* ---- the program ---- */

struct files {
	char script[PATH_MAX + 16], output[PATH_MAX + 16];
};

static int write_script(const char *path, const char *setup, char *const *statements, size_t n,
			uint64_t runs)
{
	FILE *out = fopen(path, "we");

	if (!out)
		return -errno;
	(void)fprintf(out, ".mode trash\n%s\n.timer on\n", setup);
	for (size_t i = 0; i < n; i++)
		for (uint64_t k = 0; k <= runs; k++)
			(void)fprintf(out, "%s;\n", statements[i]);
	return ferror(out) | fclose(out) ? -EIO : 0;
}

static int run_program(const char *script, const char *output)
{
	static const char *const words[] = {"duckdb", "-batch", "-bail", ":memory:", NULL};
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions), status = 0;
	pid_t pid;

	if (error)
		return -error;
	error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, script, O_RDONLY, 0);
	if (!error)
		error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output,
							 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (!error) /* which does not change the words, whatever its type says */
		error = posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)words, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	while (!error && waitpid(pid, &status, 0) < 0)
		error = errno == EINTR ? 0 : errno;
	return -error; /* a statement that failed ended the program: times are missing */
}

/* Lines such as `Run Time (s): real 0.012 user 0.010 sys 0.001`. */
static int read_times(double *ms, const char *path, size_t n, uint64_t runs, size_t *n_read)
{
	FILE *in = fopen(path, "re");
	char *line = NULL, *at;
	size_t capacity = 0, i = 0;

	*n_read = 0;
	if (!in)
		return -errno;
	while (i < n * (runs + 1) && getline(&line, &capacity, in) >= 0) {
		at = strstr(line, "real ");
		if (strncmp(line, "Run Time", 8) != 0 || !at)
			continue;
		if (i % (runs + 1))
			ms[i / (runs + 1) * runs + i % (runs + 1) - 1] = strtod(at + 5, NULL) * 1e3;
		i++;
	}
	free(line);
	(void)fclose(in);
	*n_read = i;
	return 0;
}

int pfs_duckdb_run(double *ms, const char *verb, const char *folder, const char *setup,
		   char *const *statements, size_t n, uint64_t runs)
{
	struct files files;
	size_t n_read = 0;
	int error;

	(void)snprintf(files.script, sizeof(files.script), "%s/duckdb.sql", folder);
	(void)snprintf(files.output, sizeof(files.output), "%s/duckdb.out", folder);
	error = write_script(files.script, setup, statements, n, runs);
	error = error ? error : run_program(files.script, files.output);
	error = error ? error : read_times(ms, files.output, n, runs, &n_read);
	(void)unlink(files.script);
	(void)unlink(files.output);
	if (error)
		(void)pfs_cmd_fail(verb, "duckdb: %s", strerror(-error));
	if (error || n_read == n * (runs + 1))
		return error;
	(void)pfs_cmd_fail(verb, "duckdb stops at: %s", statements[n_read / (runs + 1)]);
	return -EIO;
}
