/* SPDX-License-Identifier: MIT */
#include "fs/query/facet.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "fs/query/times/times.h"

#define WHERE_MAX (PFS_STATEMENT_MAX / 2) /* leaves room for the rest of a statement */

enum { EQUAL, GREATER, NOT_LESS, LESS, NOT_GREATER, UNEQUAL, LIKE, GLOB };

static const struct operator
{
	const char *suffix, *sql;
}
operators[] = {
	[EQUAL] = {"", "="},	    [GREATER] = {".gt", ">"},	   [NOT_LESS] = {".ge", ">="},
	[LESS] = {".lt", "<"},	    [NOT_GREATER] = {".le", "<="}, [UNEQUAL] = {".ne", "<>"},
	[LIKE] = {".like", "LIKE"}, [GLOB] = {".glob", "GLOB"},
};

static const struct end {
	const char *name, *select;
	enum pfs_format format;
} ends[] = {
	{"@paths", "path", PFS_FORMAT_PATHS},	  {"@paths0", "path", PFS_FORMAT_PATHS0},
	{"@count", "count(*)", PFS_FORMAT_PATHS}, {"@result.tsv", "*", PFS_FORMAT_TSV},
	{"@result.csv", "*", PFS_FORMAT_CSV},	  {"@result.json", "*", PFS_FORMAT_JSON},
	{"@result.txt", "*", PFS_FORMAT_TEXT},
};

/* ---- columns ---- */

int pfs_facet_add_column(struct pfs_facet_columns *columns, const char *name, size_t len,
			 bool is_number, bool is_number_only)
{
	PFS_TRY(pfs_grow(&columns->columns, &columns->capacity, columns->n + 1,
			 sizeof(*columns->columns)));
	columns->columns[columns->n].name = strndup(name, len);
	if (!columns->columns[columns->n].name)
		return -ENOMEM;
	columns->columns[columns->n].is_number = is_number;
	columns->columns[columns->n++].is_number_only = is_number_only;
	return 0;
}

void pfs_facet_columns_clear(struct pfs_facet_columns *columns)
{
	while (columns->n)
		free(columns->columns[--columns->n].name);
}

void pfs_facet_columns_finish(struct pfs_facet_columns *columns)
{
	pfs_facet_columns_clear(columns);
	free(columns->columns);
	*columns = (struct pfs_facet_columns){.columns = NULL};
}

static const struct pfs_facet_column *find_column(const struct pfs_facet_columns *columns,
						  const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < columns->n; i++)
		if (strlen(columns->columns[i].name) == len &&
		    memcmp(columns->columns[i].name, name, len) == 0)
			return &columns->columns[i];
	return NULL;
}

/* ---- names and what they stand for ---- */

size_t pfs_facet_encode(char out[PFS_FACET_NAME_MAX + 1], const struct pfs_sql_value *value)
{
	static const char hex[] = "0123456789ABCDEF";
	char number[PFS_NUMBER_SIZE];
	const char *text = value->bytes;
	size_t size = value->size, used = 0, i;

	if (value->type == PFS_SQL_NULL)
		return (size_t)snprintf(out, PFS_FACET_NAME_MAX + 1, "@null");
	if (value->type == PFS_SQL_INTEGER || value->type == PFS_SQL_REAL) {
		size = value->type == PFS_SQL_INTEGER ? pfs_print_integer(number, value->integer)
						      : pfs_print_real(number, value->real);
		text = number;
	}
	if (!size)
		return (size_t)snprintf(out, PFS_FACET_NAME_MAX + 1, "@empty");
	for (i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];
		bool dots =
			c == '.' && (size == 1 || (size == 2 && text[0] == '.' && text[1] == '.'));
		bool encoded = c < 0x20 || c == 0x7f || c == '/' || c == '%' ||
			       (c == '@' && i == 0) || dots;

		if (used + (encoded ? 3 : 1) > PFS_FACET_NAME_MAX)
			return 0;
		if (encoded) {
			out[used++] = '%';
			out[used++] = hex[c >> 4];
			out[used++] = hex[c & 15];
		} else {
			out[used++] = (char)c;
		}
	}
	out[used] = '\0';
	return used;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes the name in place; a percent sign that no two digits follow stays one. Returns the
 * length. */
static size_t decode(char *name)
{
	size_t used = 0, i;

	for (i = 0; name[i]; i++) {
		int high = name[i] == '%' ? hex_digit(name[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(name[i + 2]) : -1;

		if (low >= 0 && (high || low)) {
			name[used++] = (char)(high << 4 | low);
			i += 2;
		} else {
			name[used++] = name[i];
		}
	}
	name[used] = '\0';
	return used;
}

void pfs_sql_literal(FILE *out, const char *bytes, size_t len)
{
	size_t i;

	(void)fputc('\'', out);
	for (i = 0; i < len; i++) {
		if (bytes[i] == '\'')
			(void)fputc('\'', out);
		(void)fputc(bytes[i], out);
	}
	(void)fputc('\'', out);
}

static void print_column(FILE *out, const char *name)
{
	const char *c = name;

	while (islower((unsigned char)*c) || *c == '_')
		c++;
	if (c > name && !*c) {
		(void)fputs(name, out);
		return;
	}
	(void)fputc('"', out);
	for (c = name; *c; c++) {
		if (*c == '"')
			(void)fputc('"', out);
		(void)fputc(*c, out);
	}
	(void)fputc('"', out);
}

/* Digits, perhaps a sign, a fraction and K, M, G or T, as a number of SQL; false: anything else. */
static bool print_number(FILE *out, const char *text, size_t len)
{
	static const char letters[] = "KMGT";
	const char *letter = len > 1 ? strchr(letters, text[len - 1]) : NULL;
	size_t digits = letter ? len - 1 : len, i = *text == '-', points = 0, first = i;

	for (; i < digits; i++) {
		if (text[i] == '.' && i > first && i + 1 < digits)
			points++;
		else if (!isdigit((unsigned char)text[i]))
			return false;
	}
	if (digits == first || points > 1 || digits > 30)
		return false;
	if (letter && points)
		(void)fprintf(out, "CAST(%.*s * %llu AS INTEGER)", (int)digits, text,
			      1ULL << 10 * (letter - letters + 1));
	else if (letter)
		(void)fprintf(out, "%.*s * %llu", (int)digits, text,
			      1ULL << 10 * (letter - letters + 1));
	else
		(void)fprintf(out, "%.*s", (int)digits, text);
	return true;
}

/* ---- steps ---- */

/* Gives what was written to `out`, whose memory text is: condition, NUL, the rest. */
static int make(struct pfs_facet **facet, const struct pfs_facet *head, const char *where,
		const char *rest)
{
	size_t where_len = strlen(where), rest_len = strlen(rest);

	if (where_len > WHERE_MAX)
		return -ENAMETOOLONG;
	*facet = malloc(sizeof(**facet) + where_len + rest_len + 2);
	if (!*facet)
		return -ENOMEM;
	**facet = *head;
	(*facet)->where_len = where_len;
	memcpy((*facet)->text, where, where_len + 1);
	memcpy((*facet)->text + where_len + 1, rest, rest_len + 1);
	return 0;
}

int pfs_facet_begin(struct pfs_facet **out)
{
	struct pfs_facet head = {.kind = PFS_FACET_COLUMNS};

	return make(out, &head, "", "");
}

static const char *rest_of(const struct pfs_facet *facet)
{
	return facet->text + facet->where_len + 1;
}

static const char *condition_of(const struct pfs_facet *facet)
{
	return facet->where_len ? facet->text : "1";
}

/* One condition more: the caller writes it between the two. */
static FILE *open_condition(char **text, size_t *size, const struct pfs_facet *from)
{
	FILE *out = open_memstream(text, size);

	if (out && from->where_len)
		(void)fprintf(out, "%s AND ", from->text);
	return out;
}

static int close_condition(struct pfs_facet **facet, FILE *out, char **text,
			   const struct pfs_facet *from, uint64_t under)
{
	struct pfs_facet head = {
		.kind = PFS_FACET_COLUMNS, .under = under, .n_conditions = from->n_conditions + 1};
	int error = -ENOMEM;

	if (fclose(out) == 0)
		error = make(facet, &head, *text, rest_of(from));
	free(*text);
	return error;
}

/* -ENOENT: no such time. */
static int print_time(FILE *out, unsigned op, const char *text, size_t len,
		      char problem[PFS_TIME_PROBLEM])
{
	const struct pfs_sql_value value = {.type = PFS_SQL_TEXT, .bytes = text, .size = len};
	struct pfs_sql_value time;
	int error = pfs_time_value(&time, &value, pfs_time_now(), true, problem);

	if (!error && time.type == PFS_SQL_INTEGER) {
		(void)fprintf(out, " %s %lld", operators[op].sql, (long long)time.integer);
		return 0;
	}
	/* what a listing shows is one, whatever it looks like */
	if ((op == EQUAL || op == UNEQUAL) && pfs_is_integer(&time.integer, text, len)) {
		(void)fprintf(out, " %s time_of(%.*s, 0)", operators[op].sql, (int)len, text);
		return 0;
	}
	return -ENOENT;
}

/* What a column is compared with.  -ENOENT: not with that. */
static int print_operand(FILE *out, const struct pfs_facet *from, const char *name, char *decoded,
			 char problem[PFS_TIME_PROBLEM])
{
	size_t len = strcmp(name, "@empty") == 0 ? 0 : decode(decoded);
	bool is_ordered = from->op >= GREATER && from->op <= NOT_GREATER;

	if (strcmp(name, "@null") == 0) {
		(void)fputs(from->op == UNEQUAL ? " IS NOT NULL" : " IS NULL", out);
		return 0;
	}
	if (from->is_number && from->op < LIKE &&
	    pfs_time_is_column(rest_of(from), strlen(rest_of(from))))
		return print_time(out, from->op, decoded, len, problem);
	(void)fprintf(out, " %s ", operators[from->op].sql);
	if (from->is_number && from->op < LIKE && print_number(out, decoded, len))
		return 0;
	if (from->op < LIKE && (from->is_number_only || (from->is_number && is_ordered))) {
		(void)snprintf(problem, PFS_TIME_PROBLEM,
			       "it is compared with numbers, such as 4096, 1.5K or 2G");
		return -ENOENT;
	}
	pfs_sql_literal(out, decoded, len);
	return 0;
}

static int step_value(struct pfs_facet **facet, const struct pfs_facet *from, const char *name,
		      char problem[PFS_FACET_PROBLEM])
{
	char *decoded PFS_FREE = strdup(name), *text = NULL, why[PFS_TIME_PROBLEM] = "";
	size_t size;
	FILE *out = decoded ? open_condition(&text, &size, from) : NULL;
	int error;

	if (!out)
		return -ENOMEM;
	(void)fputs(rest_of(from), out);
	error = print_operand(out, from, name, decoded, why);
	if (!error)
		return close_condition(facet, out, &text, from, from->under);
	(void)fclose(out);
	free(text);
	if (*why)
		(void)snprintf(problem, PFS_FACET_PROBLEM, "%s%s/%.64s: %s", rest_of(from),
			       operators[from->op].suffix, name, why);
	return error;
}

int pfs_facet_step_under(struct pfs_facet **out, const struct pfs_facet *from, uint64_t ino)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_condition(&text, &size, from);

	if (!file)
		return -ENOMEM;
	(void)fprintf(file, "under(ino, %llu)", (unsigned long long)ino);
	return close_condition(out, file, &text, from, ino);
}

static int step_end(struct pfs_facet **facet, const struct pfs_facet *from, const char *name)
{
	struct pfs_facet head = {
		.kind = PFS_FACET_ANSWER, .under = from->under, .n_conditions = from->n_conditions};
	char *text PFS_FREE = NULL;
	size_t i;

	if (strcmp(name, "@nodes") == 0) {
		head.kind = PFS_FACET_NODES;
		return make(facet, &head, from->text, "");
	}
	for (i = 0; i < PFS_COUNT(ends); i++) {
		if (strcmp(name, ends[i].name) != 0)
			continue;
		head.format = ends[i].format;
		if (asprintf(&text, "SELECT %s FROM nodes WHERE %s", ends[i].select,
			     condition_of(from)) < 0) {
			text = NULL;
			return -ENOMEM;
		}
		return make(facet, &head, from->text, text);
	}
	return -ENOENT;
}

/* A column, or one with an operator. */
static int step_column(struct pfs_facet **facet, const struct pfs_facet *from, char *name,
		       const struct pfs_facet_columns *columns)
{
	struct pfs_facet head = {.under = from->under, .n_conditions = from->n_conditions};
	const struct pfs_facet_column *column = NULL;
	size_t len = decode(name), size;
	char *quoted = NULL;
	FILE *out;
	int error;

	for (unsigned op = EQUAL; op < PFS_COUNT(operators) && !column; op++) {
		size_t suffix = strlen(operators[op].suffix);

		if (suffix > len || strcmp(name + len - suffix, operators[op].suffix) != 0)
			continue;
		column = find_column(columns, name, len - suffix);
		head.op = op;
	}
	if (!column)
		return -ENOENT;
	head.kind = head.op == EQUAL ? PFS_FACET_VALUES : PFS_FACET_OPERANDS;
	head.is_number = column->is_number;
	head.is_number_only = column->is_number_only;
	out = open_memstream(&quoted, &size);
	if (!out)
		return -ENOMEM;
	print_column(out, column->name);
	error = fclose(out) == 0 ? make(facet, &head, from->text, quoted) : -ENOMEM;
	free(quoted);
	return error;
}

bool pfs_facet_is_rest(const char *name)
{
	return strncmp(name, "@more-", strlen("@more-")) == 0 || strcmp(name, "@values") == 0;
}

/* @values, or @more-N, of a column: all of them. */
static int step_more(struct pfs_facet **facet, const struct pfs_facet *from)
{
	struct pfs_facet head = {
		.kind = PFS_FACET_ANSWER, .under = from->under, .n_conditions = from->n_conditions};
	char *text PFS_FREE = NULL;

	if (asprintf(
		    &text,
		    "SELECT %s AS value, count(*) AS nodes FROM nodes WHERE %s GROUP BY 1 ORDER BY "
		    "2 DESC, 1",
		    rest_of(from), condition_of(from)) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return make(facet, &head, from->text, text);
}

int pfs_facet_step_children(struct pfs_facet **out, const struct pfs_facet *from, uint64_t dir)
{
	struct pfs_facet head = {
		.kind = PFS_FACET_ANSWER, .under = from->under, .n_conditions = from->n_conditions};
	char *text PFS_FREE = NULL;

	if (asprintf(&text,
		     "SELECT name AS value, subtree_count AS nodes FROM nodes WHERE parent = %llu "
		     "ORDER BY 1",
		     (unsigned long long)(from->under ? from->under : dir)) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return make(out, &head, from->text, text);
}

int pfs_facet_step(struct pfs_facet **out, const struct pfs_facet *from, const char *name,
		   const struct pfs_facet_columns *columns, char problem[PFS_FACET_PROBLEM])
{
	struct pfs_facet head = {.kind = PFS_FACET_CHILDREN,
				 .under = from->under,
				 .n_conditions = from->n_conditions};
	char *copy;
	int error;

	*out = NULL;
	*problem = 0;
	if (from->kind == PFS_FACET_VALUES && pfs_facet_is_rest(name))
		return step_more(out, from);
	if (from->kind == PFS_FACET_VALUES || from->kind == PFS_FACET_OPERANDS)
		return step_value(out, from, name, problem);
	if (*name == '@')
		return step_end(out, from, name);
	if (strcmp(name, "under") == 0)
		return make(out, &head, from->text, "under");
	copy = strdup(name);
	error = copy ? step_column(out, from, copy, columns) : -ENOMEM;
	free(copy);
	return error;
}

#define LISTED_CONDITIONS 2 /* below so many nothing is listed but ends */

bool pfs_facet_lists_columns(const struct pfs_facet *facet)
{
	return facet->n_conditions < LISTED_CONDITIONS;
}

bool pfs_facet_lists_column(const struct pfs_facet *facet, const char *name)
{
	char *quoted = NULL;
	size_t size;
	FILE *out = open_memstream(&quoted, &size);
	bool is_used = false;

	if (!out)
		return true;
	print_column(out, name);
	if (fclose(out) == 0)
		is_used = strcmp(quoted, rest_of(facet)) == 0;
	free(quoted);
	return !is_used;
}

bool pfs_facet_lists_values(const struct pfs_facet *facet)
{
	return facet->n_conditions == 0;
}

bool pfs_facet_is_same(const struct pfs_facet *a, const struct pfs_facet *b)
{
	return a->kind == b->kind && a->format == b->format && a->under == b->under &&
	       a->op == b->op && a->is_number == b->is_number &&
	       a->is_number_only == b->is_number_only && a->n_conditions == b->n_conditions &&
	       a->where_len == b->where_len && strcmp(a->text, b->text) == 0 &&
	       strcmp(rest_of(a), rest_of(b)) == 0;
}

/* ---- statements ---- */

char *pfs_facet_values(const struct pfs_facet *facet)
{
	char *sql = NULL;

	if (asprintf(&sql,
		     "SELECT v, n, count(*) OVER () FROM (SELECT %s AS v, count(*) AS n FROM nodes "
		     "WHERE %s GROUP BY 1) ORDER BY n DESC, v LIMIT %d",
		     rest_of(facet), condition_of(facet), PFS_FACET_VALUES_MAX) < 0)
		return NULL;
	return sql;
}

char *pfs_facet_children(const struct pfs_facet *facet, uint64_t dir)
{
	char *sql = NULL;

	if (asprintf(&sql,
		     "SELECT name, subtree_count, count(*) OVER () FROM nodes WHERE parent = %llu "
		     "ORDER BY name LIMIT %d",
		     (unsigned long long)(facet->under ? facet->under : dir),
		     PFS_FACET_VALUES_MAX) < 0)
		return NULL;
	return sql;
}

char *pfs_facet_child(const struct pfs_facet *facet, uint64_t dir, const char *name)
{
	char *decoded = strdup(name), *sql = NULL;
	size_t size;
	FILE *out = decoded ? open_memstream(&sql, &size) : NULL;

	if (out) {
		(void)fprintf(out, "SELECT ino FROM nodes WHERE parent = %llu AND name = ",
			      (unsigned long long)(facet->under ? facet->under : dir));
		pfs_sql_literal(out, decoded, decode(decoded));
	}
	free(decoded);
	if (out && fclose(out) != 0) {
		free(sql);
		return NULL;
	}
	return sql;
}

char *pfs_facet_nodes(const struct pfs_facet *facet)
{
	char *sql = NULL;

	if (asprintf(&sql, "SELECT name, ino, path FROM nodes WHERE %s", condition_of(facet)) < 0)
		return NULL;
	return sql;
}
