/* SPDX-License-Identifier: MIT */
#include "tests/ref/random_sides.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "tests/ref/random.h"

#define COLUMNS	     5u
#define ROWS_AT_ONCE 200u

static uint64_t *state; /* of the statement being written */

static uint32_t below(uint32_t n)
{
	return random_below(state, n);
}

#define PICK(array) array[below(PFS_COUNT(array))]

/* ---- values ---- */

static const char *const few[] = {"0", "1", "2", "3", "5", "-1", "NULL"};
static const char *const extreme[] = {"9223372036854775807",
				      "-9223372036854775808",
				      "9223372036854775806",
				      "9007199254740992",
				      "9007199254740993",
				      "-9007199254740993",
				      "4611686018427387904",
				      "-4611686018427387904",
				      "0",
				      "1",
				      "-1",
				      "NULL"};
static const char *const reals[] = {"0.5", "-2.25", "1.5", "3.0", "1e3", "-0.0", "0.0", "NULL"};
static const char *const extreme_reals[] = {"9007199254740992.0",
					    "9007199254740994.0",
					    "9223372036854775808.0",
					    "9223372036854774784.0",
					    "-9223372036854775808.0",
					    "-9007199254740992.0",
					    "1e300",
					    "-1e300",
					    "9e999",
					    "1e-310",
					    "0.5",
					    "NULL"};
static const char *const texts[] = {"''",
				    "'a'",
				    "'A'",
				    "'ab'",
				    "'Ab '",
				    "'ab'",
				    "'12'",
				    "' 12'",
				    "'1e1'",
				    "'12abc'",
				    "'0'",
				    "'9223372036854775807'",
				    "CAST(x'ff41' AS TEXT)",
				    "CAST(x'c3' AS TEXT)",
				    "CAST(x'610062' AS TEXT)",
				    "'\xc3\xa9'",
				    "'%'",
				    "'a_b'",
				    "NULL",
				    "replace(hex(zeroblob(2000)), '00', 'ab')",
				    "replace(hex(zeroblob(2000)), '00', 'ab') || 'c'"};
/* None of them equals one of another class, so that it does not matter which of two equal ones is
 * shown. */
static const char *const mixed[] = {"1",
				    "2",
				    "9223372036854775807",
				    "0.5",
				    "-2.25",
				    "1e300",
				    "''",
				    "'a'",
				    "'1'",
				    "'ab'",
				    "x'61'",
				    "x''",
				    "NULL",
				    "CAST(x'ff' AS TEXT)"};
static const char *const anything[] = {"1",
				       "1.0",
				       "9007199254740992",
				       "9007199254740992.0",
				       "9007199254740993",
				       "9223372036854775807",
				       "9223372036854775808.0",
				       "-9223372036854775808",
				       "-9223372036854775808.0",
				       "'1'",
				       "'1.0'",
				       "''",
				       "x'31'",
				       "'A'",
				       "'a'",
				       "NULL"};

#define CLASS(array) array, PFS_COUNT(array)
static const struct class {
	const char *const *values;
	size_t n;
	bool is_key;	/* which of equal values is shown does not matter */
	bool adds_up;	/* in any order, to the same */
	bool is_number;
} classes[] = {
	{CLASS(few), true, true, true},	     {CLASS(extreme), true, true, true},
	{CLASS(reals), true, true, true},   {CLASS(extreme_reals), true, false, true},
	{CLASS(texts), true, false, false}, {CLASS(mixed), true, false, false},
	{CLASS(anything), false, false, false},
};

static struct table {
	const char *name;
	const struct class *of[COLUMNS];
	const char *declared[COLUMNS];
	bool is_nocase[COLUMNS]; /* which of equal texts is shown depends on the order of rows:
				    known of one table */
} tables[] = {{.name = "large"}, {.name = "small"}};

/* Affinity makes 1 of 1.0 and of '1', or leaves it: of all classes only the numbers stay what they
 * are. */
static const char *declaration(const struct class *of)
{
	static const char *const any[] = {"", "BLOB", "INTEGER", "NUMERIC", "REAL", "TEXT"};
	static const char *const of_numbers[] = {"INTEGER", "NUMERIC", "", "INTEGER"};

	if (of->values == few || of->values == extreme)
		return PICK(of_numbers);
	if (of->values == reals || of->values == extreme_reals)
		return "REAL";
	return of->values == texts || of->values == mixed ? any[below(2) ? 5 : below(2)]
							  : PICK(any);
}

static void put_rows(FILE *out, const struct table *table, unsigned n)
{
	char number[16];

	for (unsigned i = 0; i < n; i++) {
		if (i % ROWS_AT_ONCE == 0)
			(void)fprintf(out, "%sINSERT INTO %s VALUES ", i ? "\n" : "", table->name);
		(void)snprintf(number, sizeof(number), "%s(%u", i % ROWS_AT_ONCE ? ", " : "", i);
		for (unsigned c = 0; c < COLUMNS; c++)
			(void)fprintf(out, "%s, %s", c ? "" : number,
				      table->of[c]->values[below((uint32_t)table->of[c]->n)]);
		(void)fputc(')', out);
	}
	(void)fputs(n ? "\n" : "", out);
}

void random_sides_fill(FILE *out, uint64_t *seed)
{
	static const unsigned large[] = {0, 1, 2, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097};
	static const unsigned small[] = {0, 1, 5, 20, 60};
	static const unsigned often[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 6};

	state = seed;
	for (unsigned i = 0; i < PFS_COUNT(tables); i++) {
		struct table *t = &tables[i];

		(void)fprintf(out, "DROP TABLE IF EXISTS %s\nCREATE TABLE %s (id INTEGER", t->name,
			      t->name);
		for (unsigned c = 0; c < COLUMNS; c++) {
			t->of[c] = &classes[PICK(often)];
			t->declared[c] = declaration(t->of[c]);
			t->is_nocase[c] = t->of[c]->values == texts && below(3) == 0;
			(void)fprintf(out, ", c%u %s%s", c, t->declared[c],
				      t->is_nocase[c] ? " COLLATE NOCASE" : "");
		}
		(void)fputs(")\n", out);
		put_rows(out, t, i ? PICK(small) : PICK(large));
	}
}

/* ---- expressions ---- */

/* What a statement is from. */
struct from {
	const struct table *table[2];
	unsigned n;
};

static const struct table *one_of(const struct from *from)
{
	return from->table[below(from->n)];
}

/* One of the class wanted; its number, or COLUMNS: there is none. */
static unsigned column_that(const struct table *t, bool is_alone, bool adds_up)
{
	unsigned at = below(COLUMNS);

	for (unsigned i = 0; i < COLUMNS; i++, at = (at + 1) % COLUMNS) {
		if (t->of[at]->is_key && (is_alone || !t->is_nocase[at]) &&
		    (!adds_up || t->of[at]->adds_up))
			return at;
	}
	return COLUMNS;
}

static const char *constant(const struct class *of)
{
	switch (below(20)) {
	case 0:
		return PICK(extreme);
	case 1:
		return PICK(extreme_reals);
	case 2:
		return texts[below(12)];
	case 3:
		return PICK(anything);
	default:
		return of->values[below((uint32_t)PFS_MIN(of->n, 12u))];
	}
}

/* A column like the one; or another, now and then. */
static void put_other_column(FILE *out, const struct from *from, const struct class *of)
{
	const struct table *t = one_of(from);
	unsigned at = below(COLUMNS);

	for (unsigned i = 0; i < COLUMNS && t->of[at]->is_number != of->is_number && below(10); i++)
		at = (at + 1) % COLUMNS;
	(void)fprintf(out, "%s.c%u", t->name, at);
}

static void put_pattern(FILE *out)
{
	static const char *const patterns[] = {"LIKE 'a%'", "LIKE '%B'",
					       "GLOB '*b'", "GLOB '[0-9]*'",
					       "LIKE '%'",  "LIKE 'a!_%' ESCAPE '!'",
					       "GLOB 'a*'", "NOT LIKE '_'"};

	(void)fprintf(out, " %s", PICK(patterns));
}

static void put_term(FILE *out, const struct from *from)
{
	static const char *const operators[] = {"=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"};
	static const char *const collations[] = {
		"", "", "", " COLLATE NOCASE", " COLLATE RTRIM", " COLLATE BINARY"};
	const struct table *t = one_of(from);
	unsigned at = below(COLUMNS), form = below(7);
	const struct class *of = t->of[at];
	const char *collation = of->is_number ? "" : PICK(collations);

	(void)fprintf(out, "%s.c%u", t->name, at);
	if (form == 3 && of->is_number && below(8)) /* a pattern of numbers: SQLite's */
		form = 4;
	switch (form) {
	case 0:
		(void)fprintf(out, " IS %sNULL", below(2) ? "NOT " : "");
		break;
	case 1:
		(void)fprintf(out, "%s BETWEEN %s AND %s", collation, constant(of), constant(of));
		break;
	case 2:
		(void)fprintf(out, " %sIN (%s, %s, %s)", below(2) ? "NOT " : "", constant(of),
			      constant(of), constant(of));
		break;
	case 3:
		put_pattern(out);
		break;
	case 4:
		(void)fprintf(out, " %s ", PICK(operators));
		put_other_column(out, from, of);
		break;
	default:
		(void)fprintf(out, "%s %s %s", collation, PICK(operators), constant(of));
	}
}

static void put_where(FILE *out, const struct from *from)
{
	unsigned n = below(4);

	for (unsigned i = 0; i < n; i++) {
		(void)fputs(i == 0 ? " WHERE " : below(3) ? " AND " : " OR ", out);
		(void)fputs(below(6) ? "" : "NOT ", out);
		put_term(out, from);
	}
}

static struct from from_one(void)
{
	return (struct from){.table = {&tables[below(3) == 0]}, .n = 1};
}

static struct from put_from(FILE *out)
{
	static const char *const joins[] = {"JOIN", "LEFT JOIN", "JOIN"};
	struct from from = from_one();
	bool is_turned = below(2);

	if (below(3)) {
		(void)fprintf(out, " FROM %s", from.table[0]->name);
		return from;
	}
	from = (struct from){.table = {&tables[0], &tables[1]}, .n = 2};
	(void)fprintf(out, " FROM %s %s %s", tables[is_turned].name, PICK(joins),
		      tables[!is_turned].name);
	if (below(4) == 0) {
		(void)fprintf(out, " USING (c%u)", below(COLUMNS));
		return from;
	}
	(void)fprintf(out, " ON large.c%u = small.c%u", below(COLUMNS), below(COLUMNS));
	if (below(4) == 0) {
		(void)fputs(" AND ", out);
		put_term(out, &from);
	}
	return from;
}

/* ---- statements ---- */

static bool put_rows_as_they_are(FILE *out)
{
	struct from from = from_one();
	const struct table *t = from.table[0];
	unsigned at = below(COLUMNS);
	bool is_ordered = below(3);

	(void)fprintf(out, "SELECT %s, c%u", below(2) ? "*" : "id", below(COLUMNS));
	if (below(4) == 0)
		(void)fprintf(out, ", typeof(c%u), length(c%u)", below(COLUMNS), below(COLUMNS));
	(void)fprintf(out, " FROM %s", t->name);
	put_where(out, &from);
	if (!is_ordered)
		return false;
	(void)fprintf(out, " ORDER BY c%u%s%s%s, id", at,
		      t->of[at]->is_number || below(4) ? "" : " COLLATE NOCASE",
		      below(2) ? " DESC" : "", below(4) ? "" : " NULLS LAST");
	if (below(2))
		(void)fprintf(out, " LIMIT %u OFFSET %u", below(20), below(10));
	return true;
}

static void put_aggregate(FILE *out, const struct from *from)
{
	static const char *const of_sums[] = {"sum", "sum", "total", "avg"};
	static const char *const of_keys[] = {"min", "max", "count", "count(DISTINCT ",
					      "min", "max"};
	const struct table *t = one_of(from);
	bool is_sum = below(3) == 0;
	unsigned at = column_that(t, from->n == 1, is_sum);

	if (at == COLUMNS) {
		(void)fputs("count(*)", out);
		return;
	}
	if (is_sum) { /* what is real loses low bits of 2^62, by the order of rows */
		(void)fprintf(out, "%s(%s.c%u)",
			      t->of[at]->values == extreme ? "sum" : PICK(of_sums), t->name, at);
		return;
	}
	{
		const char *name = PICK(of_keys);

		(void)fprintf(out, "%s%s%s.c%u)", name, strchr(name, '(') ? "" : "(", t->name, at);
	}
}

static bool put_groups(FILE *out)
{
	char *text = NULL;
	size_t size;
	FILE *rest = open_memstream(&text, &size);
	struct from from = put_from(rest);
	const struct table *t = one_of(&from);
	unsigned key = below(4) ? column_that(t, from.n == 1, false) : COLUMNS,
		 columns = 1 + (key < COLUMNS);

	put_where(rest, &from);
	if (key < COLUMNS)
		(void)fprintf(rest, " GROUP BY %s.c%u", t->name, key);
	if (key < COLUMNS && below(3) == 0)
		(void)fprintf(rest, " HAVING count(*) > %u", below(3));
	(void)fclose(rest);
	(void)fputs("SELECT count(*)", out);
	if (key < COLUMNS)
		(void)fprintf(out, ", %s.c%u", t->name, key);
	for (unsigned n = below(4); n > 0; n--, columns++) {
		(void)fputs(", ", out);
		put_aggregate(out, &from);
	}
	(void)fputs(text, out);
	free(text);
	if (below(2))
		(void)fprintf(out, " ORDER BY %u%s", 1 + below(columns), below(2) ? " DESC" : "");
	if (below(3) == 0)
		(void)fprintf(out, " LIMIT %u", below(12));
	return true; /* in the order of the keys, where no other one is said */
}

static bool put_distinct(FILE *out)
{
	struct from from = from_one();
	unsigned key = column_that(from.table[0], true, false);

	if (key == COLUMNS)
		return put_groups(out);
	(void)fprintf(out, "SELECT DISTINCT c%u FROM %s", key, from.table[0]->name);
	put_where(out, &from);
	return false;
}

static bool put_joined_rows(FILE *out)
{
	char *text = NULL;
	size_t size;
	FILE *rest = open_memstream(&text, &size);
	struct from from = put_from(rest);

	put_where(rest, &from);
	(void)fclose(rest);
	(void)fprintf(out, "SELECT count(*), sum(%s.id), min(%s.id), max(%s.id)%s",
		      from.table[0]->name, from.table[from.n - 1]->name,
		      from.table[from.n - 1]->name, text);
	free(text);
	return false;
}

/* Two columns that are the same kind of column, put together. */
static bool put_compound(FILE *out)
{
	static const char *const compounds[] = {"UNION", "UNION ALL", "EXCEPT", "INTERSECT"};
	unsigned a = column_that(&tables[0], true, false), b = column_that(&tables[1], true, false);

	if (a == COLUMNS || b == COLUMNS || tables[0].of[a] != tables[1].of[b] ||
	    strcmp(tables[0].declared[a], tables[1].declared[b]) != 0)
		return put_distinct(out);
	(void)fprintf(out, "SELECT c%u FROM large %s SELECT c%u FROM small", a, PICK(compounds), b);
	return false;
}

static bool put_nested(FILE *out)
{
	static const char *const of_nodes[] = {"size",	"name",	 "ext", "depth",
					       "stars", "score", "tag"};
	const struct from from = from_one();
	unsigned of_outer = below(3);

	if (of_outer == 2)
		(void)fprintf(out, "SELECT count(*), sum(ino) FROM nodes WHERE %s", PICK(of_nodes));
	else
		(void)fprintf(out, "SELECT count(*), sum(id) FROM %s WHERE c%u",
			      tables[of_outer].name, below(COLUMNS));
	(void)fprintf(out, " %sIN (SELECT c%u FROM %s", below(3) ? "" : "NOT ", below(COLUMNS),
		      from.table[0]->name);
	put_where(out, &from);
	(void)fputs(")", out);
	return false;
}

bool random_sides(FILE *out, uint64_t *seed)
{
	static bool (*const statements[])(FILE * out) = {
		put_rows_as_they_are, put_rows_as_they_are, put_groups, put_groups,  put_groups,
		put_distinct,	      put_joined_rows,	    put_nested, put_compound};

	state = seed;
	return PICK(statements)(out);
}
