/* SPDX-License-Identifier: MIT */
#include "tests/ref/grouped.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "tests/ref/random.h"

static uint64_t *state; /* of the statement being written, */
static bool has_or;	/* which SQLite may look for by several scans of nodes, in their order */

static uint32_t below(uint32_t n)
{
	return random_below(state, n);
}

#define PICK(array) array[below(PFS_COUNT(array))]

/* What a statement is from: `a` is always nodes; of `b` these columns may be used. */
struct source {
	const char *text;
	const char *other; /* NULL: `a` alone; "b": nodes, too; "s": the side table; "w": `cased`,
			      whose texts are NOCASE */
};

static const struct source sources[] = {
	{"nodes a", NULL},
	{"nodes a", NULL},
	{"nodes a", NULL},
	{"nodes a", NULL},
	{"nodes a JOIN nodes b ON a.parent = b.ino", "b"},
	{"nodes b JOIN nodes a ON a.parent = b.ino", "b"},
	{"nodes a LEFT JOIN nodes b ON b.ino = a.parent", "b"},
	{"nodes a LEFT JOIN nodes b ON b.ino = a.parent AND b.size > 10", "b"},
	{"nodes a JOIN nodes b ON a.name = b.name", "b"},
	{"nodes a JOIN nodes b ON a.ext = b.ext AND a.size = b.size", "b"},
	{"nodes a JOIN side s ON a.ext = s.ext", "s"},
	{"side s JOIN nodes a ON s.k = a.name", "s"},
	{"nodes a LEFT JOIN side s ON s.n = a.size", "s"},
	{"side s LEFT JOIN nodes a ON a.name = s.k AND a.size < 200", "s"},
	{"nodes a JOIN side s USING (ext)", "s"},
	{"nodes a NATURAL JOIN side s", "s"},
	{"nodes a LEFT JOIN side s USING (ext)", "s"},
	{"side s NATURAL LEFT JOIN nodes a", "s"},
	{"nodes a LEFT JOIN nodes b USING (name, size)", "b"},
	{"nodes a JOIN cased w ON w.v = a.depth", "w"},
	{"cased w JOIN nodes a ON w.w = a.ext", "w"},
	{"nodes a LEFT JOIN cased w ON w.v = a.size", "w"},
	{"nodes a, side s, nodes b WHERE s.ext = a.ext AND b.ino = a.parent AND ", "b"},
};

static const char *table(const struct source *source)
{
	return source->other && below(3) == 0 ? source->other : "a";
}

static void put_number(FILE *out, const struct source *source)
{
	static const char *const numbers[] = {"size", "depth", "ino",	"parent", "mode",  "uid",
					      "size", "stars", "score", "blocks", "nlink", "mtime",
					      "subtree_count", "subtree_size"};
	const char *of = table(source);

	(void)fprintf(out, "%s.%s", of, *of == 's' ? "n" : *of == 'w' ? "v" : PICK(numbers));
}

static void put_text_column(FILE *out, const struct source *source)
{
	static const char *const texts[] = {"ext", "name", "type", "tag", "owner", "owner_group"};
	const char *of = table(source);

	(void)fprintf(out, "%s.%s", of,
		      *of == 'w'   ? "w"
		      : *of == 's' ? (below(2) ? "k" : "ext")
				   : PICK(texts));
}

static void put_printed(FILE *out, const struct source *source)
{
	static const char *const formats[] = {"%d kB", "%05d", "%x",	"%.1f", "%+d%%", "%o",
					      "%,d",   "%s",   "%8.3e", "%-6i", "%lld",	 "%g",
					      "%u",    "%d%d", "%.3d",	"%#X"};
	static const char *const of_texts[] = {"%s: %d", "%!-9s %5d", "%.2s%x%%", "%5s/%+d"};
	bool is_text = below(3) == 0;

	(void)fprintf(out, "%s('%s', ", below(3) ? "printf" : "format",
		      is_text ? PICK(of_texts) : PICK(formats));
	if (is_text) {
		put_text_column(out, source);
		(void)fputs(", ", out);
	}
	put_number(out, source);
	(void)fputs(below(2) ? ")" : " / 1000)", out);
}

/* A column, or what functions make of it: before it, and behind. */
static void put_text(FILE *out, const struct source *source)
{
	static const char *const functions[][2] = {
		{"upper(", ")"},
		{"lower(", ")"},
		{"substr(", ", 1, 1)"},
		{"substr(", ", 2)"},
		{"substring(", ", -3, 2)"},
		{"substr(", ", 0, 2)"},
		{"substr(", ", 9, 3)"},
		{"substr(", ", -1)"},
		{"trim(", ")"},
		{"trim(", ", 'dfc')"},
		{"ltrim(", ", '1d')"},
		{"rtrim(", ", '.c0')"},
		{"replace(", ", '1', '')"},
		{"replace(", ", 'd', 'dir')"},
		{"replace(", ", '.', 1)"},
		{"'<' || ", ""},
		{"(", " || '.c')"},
		{"", " || NULL"},
		{"hex(", ")"},
		{"upper(substr(", ", 1, 2))"},
		{"replace(lower(trim(", ", 'f')), '.', '_')"},
	};
	size_t which = below(PFS_COUNT(functions));
	bool is_made = below(4) == 0;

	if (below(12) == 0) {
		put_printed(out, source);
		return;
	}
	(void)fputs(is_made ? functions[which][0] : "", out);
	put_text_column(out, source);
	(void)fputs(is_made ? functions[which][1] : "", out);
}

static void put_constant(FILE *out)
{
	static const char *const constants[] = {"0",	 "1",  "2",    "100",
						"4096",	 "-3", "2.5",  "5e18",
						"'100'", "17", "NULL", "9223372036854775807"};

	(void)fputs(PICK(constants), out);
}

static void put_value(FILE *out, const struct source *source, unsigned depth)
{
	static const char *const operators[] = {"+", "-", "*", "/", "%", "&", "|", "<<", ">>"};

	bool is_place;

	switch (depth ? below(8) : 7) {
	case 0:
	case 1:
		(void)fputc('(', out);
		put_value(out, source, depth - 1);
		(void)fprintf(out, " %s ", PICK(operators));
		put_value(out, source, depth - 1);
		(void)fputc(')', out);
		break;
	case 2:
		is_place = below(2);
		(void)fputs(is_place ? "instr(" : "length(", out);
		put_text(out, source);
		(void)fputs(is_place ? ", '1')" : ")", out);
		break;
	case 3:
		(void)fputs("coalesce(", out);
		put_number(out, source);
		(void)fputs(", 7)", out);
		break;
	case 4:
		(void)fputs("CASE WHEN ", out);
		put_number(out, source);
		(void)fputs(" > 50 THEN ", out);
		put_number(out, source);
		(void)fputs(below(2) ? " ELSE -1 END" : " END", out);
		break;
	case 5:
		(void)fputs("CAST(", out);
		put_number(out, source);
		(void)fputs(below(2) ? " AS REAL)" : " AS INTEGER)", out);
		break;
	case 6:
		(void)fputs(below(2) ? "3" : "-", out);
		(void)fputs(below(2) ? "" : "1.5 * ", out);
		(void)fputs(" - ", out);
		put_number(out, source);
		break;
	default:
		put_number(out, source);
	}
}

/* A column compared with what replace() makes of it. */
static void put_replaced(FILE *out, const struct source *source, const char *comparison)
{
	static const char *const columns[] = {"a.name", "a.ext", "a.tag", "w.w"};
	static const char *const parts[] = {"'d', ''", "'1', '1'", "'c', 'C'", "'f1', 'x'"};
	const char *column = columns[source->other && *source->other == 'w' ? below(4) : below(3)];
	const char *part = PICK(parts);

	if (below(2))
		(void)fprintf(out, "replace(%s, %s) %s %s", column, part, comparison, column);
	else
		(void)fprintf(out, "%s %s replace(%s, %s)", column, comparison, column, part);
}

static void put_condition(FILE *out, const struct source *source)
{
	static const char *const comparisons[] = {"=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"};
	static const char *const texts[] = {"'c'", "'d1'", "'f'", "''", "'txt'", "'D1'", "5"};
	static const char *const patterns[] = {"'d*'",	"'%1%'", "'*1*'",    "'D_'",
					       "'%.c'", "'f%'",	 "'[df]1*'", "'%'"};

	switch (below(10)) {
	case 0:
		put_text(out, source);
		(void)fprintf(out, " %s %s", below(2) ? "LIKE" : "GLOB", PICK(patterns));
		break;
	case 9:
		put_replaced(out, source, PICK(comparisons));
		break;
	case 1:
	case 2:
		put_text(out, source);
		(void)fprintf(out, " %s %s%s", PICK(comparisons), PICK(texts),
			      below(6) ? "" : " COLLATE nocase");
		break;
	case 3:
		put_number(out, source);
		(void)fputs(below(2) ? " IN (100, 0, 5, 2)" : " NOT IN (1, 4096, NULL)", out);
		break;
	case 4:
		below(2) ? put_number(out, source) : put_text(out, source);
		(void)fputs(below(2) ? " IS NULL" : " IS NOT NULL", out);
		break;
	case 5:
		put_value(out, source, 1);
		(void)fputs(below(2) ? " BETWEEN 1 AND 4096" : " NOT BETWEEN 0 AND 99", out);
		break;
	case 6:
		(void)fputs(below(2) ? "under(a.ino, '/d1')" : "child_of(a.ino, 2)", out);
		break;
	default:
		put_value(out, source, 1);
		(void)fprintf(out, " %s ", PICK(comparisons));
		put_constant(out);
	}
}

static void put_conditions(FILE *out, const struct source *source)
{
	unsigned n = 1 + below(3);

	for (unsigned i = 0; i < n; i++) {
		bool is_or = i && !below(3);

		has_or |= is_or;
		(void)fputs(!i ? "" : is_or ? " OR " : " AND ", out);
		(void)fputs(below(6) ? "" : "NOT ", out);
		put_condition(out, source);
	}
}

static void put_from(FILE *out, const struct source *source)
{
	bool has_where = source - sources == PFS_COUNT(sources) - 1;

	(void)fprintf(out, " FROM %s", source->text);
	if (!has_where && below(3) == 0)
		return;
	(void)fputs(has_where ? "(" : " WHERE ", out);
	put_conditions(out, source);
	(void)fputs(has_where ? ")" : "", out);
}

static void put_aggregate(FILE *out, const struct source *source)
{
	static const char *const numeric[] = {"sum", "total", "avg",	       "min",
					      "max", "count", "count(DISTINCT"};
	static const char *const textual[] = {"min", "max", "count", "count(DISTINCT"};
	unsigned of_text = below(3) == 0;
	const char *name = of_text ? PICK(textual) : PICK(numeric);

	if (below(4) == 0) {
		(void)fputs("count(*)", out);
	} else {
		(void)fprintf(out, strchr(name, '(') ? "%s " : "%s(", name);
		of_text ? put_text(out, source) : put_value(out, source, 1);
		(void)fputc(')', out);
	}
	if (below(8) == 0) {
		(void)fputs(" FILTER (WHERE ", out);
		put_condition(out, source);
		(void)fputc(')', out);
	}
}

/* What an order of some columns leaves open: */
enum open {
	IS_ANY, /* any order of rows; so all columns are ordered by, and rows that are equal in them
		   are equal */
	IS_ASCENDING, /* that of the scan, as long as nothing descends: a scan may be walked the
			 other way */
	IS_KNOWN,
};

static bool put_end(FILE *out, unsigned columns, enum open open)
{
	unsigned n = open ? 1 + below(columns) : columns,
		 first = open ? below(columns) : columns / 2;

	if (below(open ? 4 : 2) == 0)
		return open != IS_ANY;
	(void)fputs(" ORDER BY ", out);
	for (unsigned i = 0; i < n; i++)
		(void)fprintf(out, "%s%u%s%s", i ? ", " : "", (i + first) % columns + 1,
			      open != IS_ASCENDING && below(2) ? " DESC" : "",
			      below(6) ? "" : " NULLS LAST");
	if (below(2))
		(void)fprintf(out, " LIMIT %u", below(12));
	else
		return true;
	if (below(3) == 0)
		(void)fprintf(out, " OFFSET %u", below(5));
	return true;
}

static void put_having(FILE *out, const struct source *source)
{
	static const char *const comparisons[] = {" = ", " <> ", " < ", " >= ", " IS "};
	static const char *const texts[] = {"'C'", "'c'", "'d1'", "'TXT'", "'red'"};

	(void)fputs(" HAVING ", out);
	switch (below(4)) {
	case 0:
		put_aggregate(out, source);
		(void)fputs(below(2) ? " IS NOT NULL" : " IS NULL", out);
		break;
	case 1:
		(void)fputs(below(2) ? "max(" : "min(", out);
		put_text(out, source);
		(void)fprintf(out, ")%s%s", PICK(comparisons), PICK(texts));
		break;
	default:
		(void)fprintf(out, "count(*) > %u", below(6));
	}
}

static void put_groups(FILE *out, const struct source *source, unsigned keys, unsigned aggregates)
{
	(void)fputs(below(12) ? "SELECT " : "SELECT DISTINCT ", out);
	for (unsigned i = 0; i < keys; i++) {
		(void)fputs(i ? ", " : "", out);
		below(2) ? put_text(out, source) : put_value(out, source, below(3) == 0);
	}
	for (unsigned i = 0; i < aggregates; i++) {
		(void)fputs(", ", out);
		put_aggregate(out, source);
		if (below(6) == 0)
			(void)fputs(" IS NULL", out);
	}
	put_from(out, source);
	(void)fputs(keys == 1 ? " GROUP BY 1" : " GROUP BY 1, 2", out);
	if (below(2) == 0)
		put_having(out, source);
}

/* Groups that are equal in what they are ordered by come in the order of their keys. */
static bool put_group(FILE *out, const struct source *source)
{
	unsigned keys = 1 + below(2), aggregates = below(4);

	put_groups(out, source, keys, aggregates);
	return put_end(out, keys + aggregates, IS_KNOWN);
}

/* Of groups that show the same, DISTINCT leaves the first one. */
static bool put_hidden_keys(FILE *out, const struct source *source)
{
	unsigned aggregates = 1 + below(2);

	(void)fputs(below(2) ? "SELECT " : "SELECT DISTINCT ", out);
	for (unsigned i = 0; i < aggregates; i++) {
		(void)fputs(i ? ", " : "", out);
		put_aggregate(out, source);
	}
	put_from(out, source);
	(void)fputs(" GROUP BY ", out);
	put_text(out, source);
	if (below(2)) {
		(void)fputs(", ", out);
		put_number(out, source);
	}
	return put_end(out, aggregates, IS_KNOWN);
}

/* What is a set comes in the order of the columns that ORDER BY does not name. */
static bool put_compound(FILE *out, const struct source *source)
{
	static const char *const operators[] = {" UNION ", " EXCEPT ", " INTERSECT ",
						" UNION ALL "};
	unsigned keys = 1 + below(2), aggregates = below(2), n = 2 + below(2), which = 0;

	for (unsigned i = 0; i < n; i++) {
		if (i)
			(void)fputs(operators[which = below(PFS_COUNT(operators))], out);
		put_groups(out, below(2) ? source : &PICK(sources), keys, aggregates);
	}
	return put_end(out, keys + aggregates,
		       which < PFS_COUNT(operators) - 1 ? IS_KNOWN : IS_ANY);
}

static bool put_whole(FILE *out, const struct source *source)
{
	unsigned aggregates = 1 + below(4);

	(void)fputs("SELECT ", out);
	for (unsigned i = 0; i < aggregates; i++) {
		(void)fputs(i ? ", " : "", out);
		put_aggregate(out, source);
		if (below(6) == 0)
			(void)fputs(" + 1", out);
	}
	put_from(out, source);
	return false;
}

static bool put_distinct(FILE *out, const struct source *source)
{
	unsigned columns = 1 + below(3);

	(void)fputs("SELECT DISTINCT ", out);
	for (unsigned i = 0; i < columns; i++) {
		(void)fputs(i ? ", " : "", out);
		below(2) ? put_text(out, source) : put_value(out, source, below(3) == 0);
	}
	put_from(out, source);
	return put_end(out, columns, source->other || has_or ? IS_ANY : IS_ASCENDING);
}

static bool put_rows(FILE *out, const struct source *source)
{
	unsigned columns = 2 + below(3);

	(void)fputs("SELECT ", out);
	for (unsigned i = 0; i < columns; i++) {
		(void)fputs(i ? ", " : "", out);
		below(2) ? put_text(out, source) : put_value(out, source, below(2));
	}
	put_from(out, source);
	return put_end(out, columns, IS_ANY);
}

static bool put_nodes(FILE *out, const struct source *source)
{
	static const char *const orders[] = {"", " ORDER BY 2", " ORDER BY 2 DESC",
					     " ORDER BY 3, 2 DESC", " ORDER BY 4 DESC"};
	const char *of = source->other && *source->other == 'b' ? "b" : "a";

	(void)fprintf(out, "SELECT %s.path, count(*), max(a.size), %s.name", of, of);
	put_from(out, source);
	(void)fprintf(out, " GROUP BY %s.%s%s%s", of, below(2) ? "path" : "ino",
		      below(3) ? "" : ", a.depth", PICK(orders));
	if (below(2))
		(void)fprintf(out, " LIMIT %u", below(12));
	return true;
}

bool random_grouped(FILE *out, uint64_t *seed)
{
	static bool (*const forms[])(FILE *, const struct source *) = {
		put_group, put_group, put_group,    put_whole,	     put_distinct,
		put_rows,  put_nodes, put_compound, put_hidden_keys,
	};

	state = seed;
	has_or = false;
	return PICK(forms)(out, &PICK(sources));
}

/* The conditions are such that SQLite looks for them by one scan. */
bool random_texts(FILE *out, uint64_t *seed)
{
	static const char *const conditions[] = {
		"a.size > 100", "a.type = 'f'",	      "a.name LIKE '%1%'", "a.ext IS NOT NULL",
		"a.depth < 3",	"length(a.name) > 2", "a.size % 2 = 0",	   "under(a.ino, '/d1')"};
	static const char *const ends[] = {"", ", ';'", ", ''", ", ', '", ", 1", ", a.ext"};
	const struct source *source = sources;
	unsigned n = 1 + below((state = seed, 3)), n_conditions = below(3);
	bool is_grouped = below(3) != 0, is_ordered = is_grouped && below(2);

	(void)fputs("SELECT ", out);
	if (is_grouped)
		below(2) ? put_text(out, source) : put_number(out, source);
	for (unsigned i = 0; i < n; i++) {
		bool is_length = below(5) == 0;

		(void)fputs(i || is_grouped ? ", " : "", out);
		(void)fputs(is_length ? "length(group_concat(" : "group_concat(", out);
		below(4) ? put_text(out, source) : put_number(out, source);
		(void)fprintf(out, "%s%s", PICK(ends), is_length ? "))" : ")");
	}
	(void)fputs(" FROM nodes a", out);
	for (unsigned i = 0; i < n_conditions; i++)
		(void)fprintf(out, "%s%s", i ? " AND " : " WHERE ", PICK(conditions));
	(void)fputs(is_grouped ? " GROUP BY 1" : "", out);
	(void)fputs(is_ordered ? " ORDER BY 1" : "", out);
	return is_ordered;
}
