/* SPDX-License-Identifier: MIT */
#include "fs/tree/resolve_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/number.h"
#include "fs/nodes/scan.h"

#define CHUNK  ((size_t)64 << 20)  /* bytes of text that are answered together */
#define SPLIT  ((size_t)128 << 10) /* bytes in which a thread finds lines at once */
#define PIECE  4096u		   /* lines that a thread writes at once */

struct chunk {
	const struct pfs_resolve_lines *lines;
	const char *text; /* whole lines */
	size_t size;
	/* Before each piece: how many lines end before it; or how many bytes of the answer precede it. */
	size_t *before;
	size_t before_capacity;
	struct pfs_path_text *paths;
	uint64_t *inos;
	size_t n, paths_capacity, inos_capacity;
	char *out;
};

/* Makes sums of what before[1..n] says of each piece. */
static void sum_up(size_t *before, size_t n)
{
	before[0] = 0;
	for (size_t i = 0; i < n; i++)
		before[i + 1] += before[i];
}

/* ---- finding lines: a line is its end's piece's ---- */

static const char *line_end(const struct chunk *chunk, const char *at, size_t to)
{
	return memchr(at, chunk->lines->delimiter, (size_t)(chunk->text + to - at));
}

static void count_lines(void *arg, size_t from, size_t to)
{
	const struct chunk *chunk = arg;
	const char *end = chunk->text + from - 1;
	size_t n = 0;

	while ((end = line_end(chunk, end + 1, to)))
		n++;
	if (to == chunk->size && chunk->text[to - 1] != chunk->lines->delimiter)
		n++;
	chunk->before[from / SPLIT + 1] = n;
}

static void find_lines(void *arg, size_t from, size_t to)
{
	const struct chunk *chunk = arg;
	struct pfs_path_text *path = chunk->paths + chunk->before[from / SPLIT];
	const char *begin = memrchr(chunk->text, chunk->lines->delimiter, from), *end;

	begin = begin ? begin + 1 : chunk->text;
	for (end = line_end(chunk, chunk->text + from, to); end; end = line_end(chunk, begin, to)) {
		*path++ = (struct pfs_path_text){begin, (size_t)(end - begin)};
		begin = end + 1;
	}
	if (to == chunk->size && begin < chunk->text + to)
		*path = (struct pfs_path_text){begin, (size_t)(chunk->text + to - begin)};
}

static int split(struct pfs_tree *tree, struct chunk *chunk)
{
	size_t pieces = pfs_div_round_up(chunk->size, SPLIT);

	PFS_TRY(pfs_grow(&chunk->before, &chunk->before_capacity, pieces + 1, sizeof(*chunk->before)));
	pfs_scan_run(tree, chunk->size, SPLIT, count_lines, chunk);
	sum_up(chunk->before, pieces);
	chunk->n = chunk->before[pieces];
	PFS_TRY(pfs_grow(&chunk->paths, &chunk->paths_capacity, chunk->n, sizeof(*chunk->paths)));
	PFS_TRY(pfs_grow(&chunk->inos, &chunk->inos_capacity, chunk->n, sizeof(*chunk->inos)));
	pfs_scan_run(tree, chunk->size, SPLIT, find_lines, chunk);
	return 0;
}

/* ---- writing ---- */

static size_t print_number(char out[PFS_NUMBER_SIZE], uint64_t ino)
{
	if (ino)
		return pfs_print_unsigned(out, ino);
	*out = '-';
	return 1;
}

static void measure_lines(void *arg, size_t from, size_t to)
{
	const struct chunk *chunk = arg;
	char number[PFS_NUMBER_SIZE];
	size_t size = 0;

	for (size_t i = from; i < to; i++) {
		size += print_number(number, chunk->inos[i]) + 1;
		if (chunk->lines->with_paths)
			size += 1 + chunk->paths[i].len;
	}
	chunk->before[from / PIECE + 1] = size;
}

static void write_lines(void *arg, size_t from, size_t to)
{
	const struct chunk *chunk = arg;
	char *out = chunk->out + chunk->before[from / PIECE], number[PFS_NUMBER_SIZE];

	for (size_t i = from; i < to; i++) {
		size_t len = print_number(number, chunk->inos[i]);

		memcpy(out, number, len);
		out += len;
		if (chunk->lines->with_paths) {
			*out++ = '\t';
			memcpy(out, chunk->paths[i].bytes, chunk->paths[i].len);
			out += chunk->paths[i].len;
		}
		*out++ = chunk->lines->delimiter;
	}
}

static int print(struct pfs_tree *tree, struct chunk *chunk)
{
	const struct pfs_resolve_lines *lines = chunk->lines;
	size_t pieces = pfs_div_round_up(chunk->n, PIECE);

	PFS_TRY(pfs_grow(&chunk->before, &chunk->before_capacity, pieces + 1, sizeof(*chunk->before)));
	pfs_scan_run(tree, chunk->n, PIECE, measure_lines, chunk);
	sum_up(chunk->before, pieces);
	chunk->out = lines->room(lines->arg, chunk->before[pieces]);
	if (!chunk->out)
		return -ENOMEM;
	pfs_scan_run(tree, chunk->n, PIECE, write_lines, chunk);
	return 0;
}

/* ---- both ---- */

/* How much of the text, at most CHUNK bytes and the rest of a line, are whole lines. */
static size_t next_size(const struct pfs_resolve_lines *lines, size_t at)
{
	const char *end;

	if (lines->size - at <= CHUNK)
		return lines->size - at;
	end = memchr(lines->text + at + CHUNK - 1, lines->delimiter, lines->size - at - CHUNK + 1);
	return end ? (size_t)(end + 1 - lines->text) - at : lines->size - at;
}

static int answer(struct pfs_tree *tree, struct pfs_resolve_lines *lines, struct chunk *chunk,
		  const struct pfs_resolve_from *from)
{
	uint64_t began = pfs_now_ns(), found, resolved;

	PFS_TRY(split(tree, chunk));
	found = pfs_now_ns();
	PFS_TRY(pfs_tree_resolve_many(tree, chunk->inos, chunk->paths, chunk->n, from));
	resolved = pfs_now_ns();
	PFS_TRY(print(tree, chunk));
	lines->split_ns += found - began;
	lines->resolve_ns += resolved - found;
	lines->print_ns += pfs_now_ns() - resolved;
	return 0;
}

int pfs_tree_resolve_lines(struct pfs_tree *tree, struct pfs_resolve_lines *lines,
			   const struct pfs_resolve_from *from)
{
	struct chunk chunk = {.lines = lines};
	int error = 0;

	for (size_t at = 0; at < lines->size && !error; at += chunk.size) {
		chunk.text = lines->text + at;
		chunk.size = next_size(lines, at);
		error = answer(tree, lines, &chunk, from);
	}
	free(chunk.before);
	free(chunk.paths);
	free(chunk.inos);
	return error;
}
