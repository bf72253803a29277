/* SPDX-License-Identifier: MIT */
#include "fs/tree/resolve_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"

#define SPLIT	 ((size_t)128 << 10) /* bytes of a piece in which one thread finds lines */
#define PIECE	 4096u		     /* lines of a piece that one thread prints */
#define LINE_MAX 23u		     /* a line's bytes without its path: 20 digits, 3 more */

_Static_assert(SPLIT <= PFS_RESOLVE_LINES_MAX, "the lines of a piece are found at once");

/* ---- finding lines: a line belongs to the piece in which it ends ---- */

struct finding {
	struct pfs_resolve_lines *lines;
	const char *text;
	size_t size;
	char delimiter;
};

static const char *line_end(const struct finding *finding, const char *at, size_t to)
{
	return memchr(at, finding->delimiter, (size_t)(finding->text + to - at));
}

/* Sets before[i + 1] to the number of lines in piece i. */
static void count_lines(void *arg, size_t from, size_t to)
{
	const struct finding *finding = arg;
	const char *end = finding->text + from - 1;
	size_t n = 0;

	while ((end = line_end(finding, end + 1, to)))
		n++;
	if (to == finding->size && finding->text[to - 1] != finding->delimiter)
		n++;
	finding->lines->before[from / SPLIT + 1] = n;
}

static void find_lines(void *arg, size_t from, size_t to)
{
	const struct finding *finding = arg;
	struct pfs_path_text *path = finding->lines->paths + finding->lines->before[from / SPLIT];
	const char *begin = memrchr(finding->text, finding->delimiter, from), *end;

	begin = begin ? begin + 1 : finding->text;
	for (end = line_end(finding, finding->text + from, to); end;
	     end = line_end(finding, begin, to)) {
		*path++ = (struct pfs_path_text){begin, (size_t)(end - begin)};
		begin = end + 1;
	}
	if (to == finding->size && begin < finding->text + to)
		*path = (struct pfs_path_text){begin, (size_t)(finding->text + to - begin)};
}

/* Adds up the pieces' numbers of lines in `before`, as far as they are at most
 * PFS_RESOLVE_LINES_MAX. Returns how many pieces are taken. */
static size_t sum_up(size_t *before, size_t pieces)
{
	size_t n = 0;

	before[0] = 0;
	while (n < pieces && before[n] + before[n + 1] <= PFS_RESOLVE_LINES_MAX) {
		before[n + 1] += before[n];
		n++;
	}
	return n;
}

int pfs_resolve_lines_find(struct pfs_resolve_lines *lines, size_t *used, const char *text,
			   size_t size, char delimiter, const struct pfs_resolve_threads *threads)
{
	struct finding finding = {lines, text, size, delimiter};
	size_t pieces = pfs_div_round_up(size, SPLIT), taken;
	const struct pfs_path_text *last;

	PFS_TRY(pfs_grow(&lines->before, &lines->before_capacity, pieces + 1,
			 sizeof(*lines->before)));
	threads->run(threads->arg, size, SPLIT, count_lines, &finding);
	taken = sum_up(lines->before, pieces);
	lines->n = lines->before[taken];
	PFS_TRY(pfs_grow(&lines->paths, &lines->paths_capacity, lines->n, sizeof(*lines->paths)));
	PFS_TRY(pfs_grow(&lines->inos, &lines->inos_capacity, lines->n, sizeof(*lines->inos)));
	threads->run(threads->arg, PFS_MIN(size, taken * SPLIT), SPLIT, find_lines, &finding);
	last = &lines->paths[lines->n - 1];
	*used = PFS_MIN((size_t)(last->bytes - text) + last->len + 1, size);
	return 0;
}

void pfs_resolve_lines_free(struct pfs_resolve_lines *lines)
{
	free(lines->before);
	free(lines->paths);
	free(lines->inos);
	*lines = (struct pfs_resolve_lines){0};
}

/* ---- printing ---- */

struct printing {
	const struct pfs_resolve_lines *lines;
	struct pfs_resolve_text *out;
	bool with_paths;
	char delimiter;
};

/* Returns the offset at which line i may be printed, so that all lines before it fit. Behind each
 * piece are PFS_NUMBER_SIZE more bytes, which printing its last number may overwrite. */
static size_t place_of(const struct printing *printing, size_t i)
{
	const struct pfs_path_text *paths = printing->lines->paths;

	return i * LINE_MAX + i / PIECE * PFS_NUMBER_SIZE +
	       (printing->with_paths ? (size_t)(paths[i].bytes - paths[0].bytes) : 0);
}

static void print_lines(void *arg, size_t from, size_t to)
{
	const struct printing *printing = arg;
	const struct pfs_resolve_lines *lines = printing->lines;
	char *begin = printing->out->bytes + place_of(printing, from), *out = begin;

	for (size_t i = from; i < to; i++) {
		if (lines->inos[i])
			out += pfs_print_unsigned(out, lines->inos[i]);
		else
			*out++ = '-';
		if (printing->with_paths) {
			*out++ = '\t';
			out = mempcpy(out, lines->paths[i].bytes, lines->paths[i].len);
		}
		*out++ = printing->delimiter;
	}
	printing->out->parts[from / PIECE] = (struct iovec){begin, (size_t)(out - begin)};
}

int pfs_resolve_lines_print(const struct pfs_resolve_lines *lines, struct pfs_resolve_text *out,
			    bool with_paths, char delimiter,
			    const struct pfs_resolve_threads *threads)
{
	struct printing printing = {lines, out, with_paths, delimiter};
	size_t room;

	out->n_parts = pfs_div_round_up(lines->n, PIECE);
	if (lines->n == 0)
		return 0;
	room = place_of(&printing, lines->n - 1) + LINE_MAX + PFS_NUMBER_SIZE +
	       lines->paths[lines->n - 1].len;
	PFS_TRY(pfs_grow(&out->bytes, &out->capacity, room, 1));
	PFS_TRY(pfs_grow(&out->parts, &out->parts_capacity, out->n_parts, sizeof(*out->parts)));
	threads->run(threads->arg, lines->n, PIECE, print_lines, &printing);
	return 0;
}

void pfs_resolve_text_free(struct pfs_resolve_text *text)
{
	free(text->bytes);
	free(text->parts);
	*text = (struct pfs_resolve_text){0};
}
