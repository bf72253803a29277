/* SPDX-License-Identifier: MIT */
/* What is wrong with a statement, and what to do, in one line. */
#include "fs/query/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"

#define SHOWN_MAX 100 /* bytes of a line, on either side of what is wrong */
#define NAME_MAX_LEN 64 /* names longer than this are not compared */

static bool is_same(const char *a, const char *b)
{
	return tolower((unsigned char)*a) == tolower((unsigned char)*b);
}

/* Returns how many characters have to be changed, added, left out or exchanged with the next one to
 * make a of b, capitals apart. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][NAME_MAX_LEN + 1], n = strlen(b), i, j;

	for (j = 0; j <= n; j++)
		rows[0][j] = j;
	for (i = 1; a[i - 1]; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3];

		row[0] = i;
		for (j = 1; j <= n; j++) {
			row[j] = PFS_MIN(above[j - 1] + !is_same(&a[i - 1], &b[j - 1]),
					 PFS_MIN(row[j - 1], above[j]) + 1);
			if (i > 1 && j > 1 && is_same(&a[i - 1], &b[j - 2]) &&
			    is_same(&a[i - 2], &b[j - 1]))
				row[j] = PFS_MIN(row[j], rows[(i + 1) % 3][j - 2] + 1);
		}
	}
	return rows[(i + 2) % 3][n];
}

static const char *nearest(const char *name, const struct pfs_node_table *table)
{
	const char *best = NULL;
	size_t least = strlen(name) / 3 + 1;

	if (strlen(name) > NAME_MAX_LEN)
		return NULL;
	for (size_t i = 0; i < table->n; i++) {
		const char *column = table->columns[i].name;
		size_t d = strlen(column) > NAME_MAX_LEN ? least : distance(name, column);

		if (d < least) {
			least = d;
			best = column;
		}
	}
	return best;
}

/* The rest of text after the prefix; NULL: it begins otherwise. */
static const char *after(const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Returns where the name stands alone in the statement; -1: nowhere. */
static long find_name(const struct pfs_query *query, const char *name)
{
	const char *sql = query->sql;
	size_t len = strlen(name);

	for (size_t at = 0; len && at + len <= query->len; at++) {
		if (strncasecmp(sql + at, name, len) == 0 && (at == 0 || !is_name(sql[at - 1])) &&
		    (at + len == query->len || !is_name(sql[at + len])))
			return (long)at;
	}
	return -1;
}

/* Returns where what is missing would follow. */
static long end_of(const struct pfs_query *query)
{
	size_t end = query->len;

	while (end && isspace((unsigned char)query->sql[end - 1]))
		end--;
	return (long)end;
}

struct wanted {
	const char *name;
	bool is_there;
};

static int see_name(void *arg, const char *name, size_t len, enum pfs_attr_type type PFS_UNUSED)
{
	struct wanted *wanted = arg;

	wanted->is_there |= strlen(wanted->name) == len &&
			    strncasecmp(wanted->name, name, len) == 0;
	return 0;
}

/* Returns true if the name is an attribute's that is no column because there are too many. */
static bool is_left_out(const struct pfs_query *query, const char *name)
{
	struct wanted wanted = {.name = name};

	if (!query->connection->table->is_full || query->is_limited)
		return false;
	if (strncasecmp(name, "user.", 5) == 0)
		wanted.name += 5;
	return !pfs_attr_names(query->queries->tree, see_name, &wanted) && wanted.is_there;
}

/* A text without its quotes is the commonest of names that there are not. */
static void advise_column(const struct pfs_query *query, char *out, size_t size, const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *bare = dot ? dot + 1 : name;
	const char *near = nearest(bare, query->connection->table);

	if (is_left_out(query, name))
		(void)snprintf(out, size, "only %d attributes can be columns, and there are more",
			       PFS_ATTR_COLUMNS_MAX);
	else if (near && strcasecmp(near, bare) == 0)
		(void)snprintf(out, size, "nodes has it; %s",
			       dot ? "see what FROM calls that table" : "write FROM nodes");
	else if (near)
		(void)snprintf(out, size, "did you mean %s?", near);
	else
		(void)snprintf(
			out, size,
			"a text is written '%.40s'; `PRAGMA table_info(nodes)` lists the columns",
			name);
}

/* The token begins as a text or a number does, and is neither. */
static const char *advice_on_token(const char *token)
{
	if (*token && strchr("'\"`[", *token))
		return "this quote is not closed";
	if (isdigit((unsigned char)*token))
		return "numbers have no units: 10K is written 10 * 1024";
	return "correct it there";
}

static const char *advice_on(const char *text, long offset)
{
	const char *token = after(text, "unrecognized token: \"");

	if (token)
		return advice_on_token(token);
	if (after(text, "near \""))
		return offset == 0
			       ? "a statement begins with SELECT, UPDATE, INSERT, DELETE, CREATE or WITH"
			       : "correct it there";
	if (after(text, "no such table: "))
		return "the tree's table is nodes; SELECT name FROM sqlite_master lists others";
	if (after(text, "no such function: ") || after(text, "wrong number of arguments"))
		return "see primefs-query(1) for those of the tree";
	if (after(text, "incomplete input"))
		return "something has to follow";
	if (after(text, "parser stack overflow"))
		return "it is nested too deeply; write it with fewer parentheses and sub-selects";
	return "";
}

static void advise(const struct pfs_query *query, char *out, size_t size, const char *text,
		   long offset)
{
	const char *name = after(text, "no such column: ");

	if (name)
		advise_column(query, out, size, name);
	else
		(void)snprintf(out, size, "%s", advice_on(text, offset));
}

static const char *sentence(int code)
{
	switch (code) {
	case -ENOMEM:
		return "the statement needs more memory than query_memory lets it; select fewer "
		       "columns or rows, or raise that";
	case -EINTR:
		return "interrupted; run it again";
	case -ETIMEDOUT:
		return "the statement ran longer than it may; narrow it down or raise the limit";
	case -EAGAIN:
	case -EBUSY:
		return "the tree changed while the statement ran; run it again";
	case -ENOSPC:
		return "no space for temporary files; make room in $TMPDIR or sort fewer rows";
	case -EIO:
		return "temporary files cannot be written or read; look at $TMPDIR";
	case -EUCLEAN:
		return "the image file is damaged, and cannot be made anew from the store; run primefs check, and mount "
		       "again";
	case -ENOENT:
		return "the directory asked about is gone";
	case -ESTALE:
		return "what the store was then has been forgotten while the statement ran; ask for a later time, or keep "
		       "more (-o history=)";
	case -E2BIG:
		return "the statement has more than 65536 bytes, or a pattern takes too many steps in one path; put "
		       "long lists into a table, or write fewer '*' and '%'";
	case -EACCES:
		return "not allowed";
	case -EROFS:
		return "the store is read-only: it is mounted so, or what was changed last could not be "
		       "written; make room for it, or mount without ro";
	default:
		return strerror(-code);
	}
}

int pfs_query_complain(const struct pfs_query *query, struct pfs_query_error *error, int code,
		       const struct pfs_sql_problem *problem)
{
	const char *text = code == -ETIMEDOUT	       ? sentence(code)
			   : *query->why	       ? query->why
			   : problem && *problem->text ? problem->text
						       : sentence(code);
	long offset = problem ? problem->offset : -1;
	char advice[128] = "";

	error->error = code;
	if (code == -ENOMEM && pfs_account_refusal(query->account) == PFS_REFUSED_TOTAL)
		text = "statements together need more memory than query_memory_total lets them; "
		       "wait for others to end, or raise that";
	if (code == -ENOMEM && query->lost)
		text = query->lost;
	if (offset < 0 && after(text, "no such table: ")) /* SQLite knows no place then */
		offset = find_name(query, after(text, "no such table: "));
	if (offset < 0 && after(text, "incomplete input"))
		offset = end_of(query);
	error->offset = offset;
	if (code == -EINTR || ((code == -EIO || code == -ENOSPC) && !*query->why))
		text = sentence(code);
	if (code == -EINVAL)
		advise(query, advice, sizeof(advice), text, offset);
	(void)snprintf(error->text, sizeof(error->text), "%s%s%s", text, *advice ? "; " : "",
		       advice);
	for (char *c = error->text; *c; c++) { /* one line, whatever SQLite quotes */
		if ((unsigned char)*c < ' ')
			*c = ' ';
	}
	return code;
}

static bool is_inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Narrows a long line to what stands near the offset. */
static void narrow(size_t *start, size_t *end, const char *sql, size_t offset)
{
	if (offset - *start > SHOWN_MAX)
		*start = offset - SHOWN_MAX;
	while (*start < offset && is_inside_character(sql[*start]))
		(*start)++;
	if (*end - offset <= SHOWN_MAX)
		return;
	*end = offset + SHOWN_MAX;
	while (*end > offset && is_inside_character(sql[*end]))
		(*end)--;
}

/* The line of the statement that the offset is in, and a caret below it, blanks as wide as what
 * stands above them. */
static void point(FILE *out, const char *sql, size_t len, size_t offset)
{
	const char *before = memrchr(sql, '\n', offset);
	size_t start = before ? (size_t)(before - sql) + 1 : 0;
	const char *after_it = memchr(sql + offset, '\n', len - offset);
	size_t end = after_it ? (size_t)(after_it - sql) : len;

	narrow(&start, &end, sql, offset);
	(void)fprintf(out, "\n  %.*s\n  ", (int)(end - start), sql + start);
	for (size_t i = start; i < offset; i++) {
		if (sql[i] == '\t')
			(void)fputc('\t', out);
		else if (!is_inside_character(sql[i]))
			(void)fputc(' ', out);
	}
	(void)fputc('^', out);
}

char *pfs_query_error_text(const struct pfs_query_error *error, const char *sql, size_t len)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	(void)fputs(error->text, out);
	if (error->offset >= 0 && (size_t)error->offset <= len)
		point(out, sql, len, (size_t)error->offset);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
