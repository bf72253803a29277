/* SPDX-License-Identifier: MIT */
#include "tests/ref/statements.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "tests/ref/random.h"

const char *const random_statement_tables[] = {
	"CREATE TABLE side (ext TEXT, k TEXT, n INTEGER)",
	"INSERT INTO side VALUES ('c', 'f1', 1), ('txt', 'd1', 2), ('gz', 'c', 100), (NULL, NULL, "
	"3), "
	"('c', 'red', 2), ('', 'f3.c', NULL), ('txt', 'f2', 4096)",
	"CREATE TABLE bare (v, w TEXT COLLATE NOCASE, x BLOB)",
	"INSERT INTO bare VALUES (1, 'c', '2'), (2, 'C', '100'), (100, 'txt', '1'), (2, 'TXT', NULL), "
	"(5, 'red', '5')",
	/* No two texts are equal but for their case: which of them a group shows does not
	 * matter. */
	"CREATE TABLE cased (v INTEGER, w TEXT COLLATE NOCASE)",
	"INSERT INTO cased VALUES (1, 'c'), (2, 'TXT'), (100, 'red'), (2, 'Gz'), (3, 'D1'), (2, NULL), (5, 'f2')",
	NULL,
};

static uint64_t *state; /* of the statement being written */

static uint32_t below(uint32_t n)
{
	return random_below(state, n);
}

#define PICK(array) array[below(PFS_COUNT(array))]

/* ---- conditions ---- */

static const char *column(void)
{
	static const char *const columns[] = {"size",  "depth", "ino",	"parent", "name",
					      "ext",   "path",	"type", "mtime",  "uid",
					      "stars", "tag",	"mode", "target", "score"};

	return PICK(columns);
}

static const char *value(void)
{
	static const char *const values[] = {"0",	 "100",		 "-3",	 "2.5",	  "1e19",
					     "'100'",	 "'c'",		 "'d1'", "'f'",	  "NULL",
					     "'/'",	 "'/d1'",	 "''",	 "x'63'", "5",
					     "'d1.txt'", "'2005-01-01'", "17",	 "2"};

	return PICK(values);
}

static bool is_time(const char *of)
{
	return strcmp(of, "mtime") == 0;
}

static const char *value_for(const char *of)
{
	static const char *const times[] = {
		"0",	"1700000000000000000", "1111111111111111111.5", "'1500000000000000000'",
		"NULL", "-1e17",	       "'2005-01-01'",		"'1 year ago'",
		"1e19", "1234567890123456789"};

	return is_time(of) ? PICK(times) : value();
}

/* Not a time, which stands beside nothing else. */
static const char *number_or_text(void)
{
	const char *one = column();

	return is_time(one) ? "size" : one;
}

static const char *operator(void)
{
	static const char *const ops[] = {"=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"};

	return PICK(ops);
}

static void put_computed(FILE *out, const char *table)
{
	switch (below(5)) {
	case 0:
		(void)fprintf(out, "length(%s.%s) %s %u", table, column(), operator(), below(12));
		break;
	case 1:
		(void)fprintf(out, "%s.size %% %u = %u", table, 2 + below(5), below(3));
		break;
	case 2:
		(void)fprintf(out, "CASE %s.type WHEN 'd' THEN %s.depth ELSE %s.%s END %s %s",
			      table, table, table, number_or_text(), operator(), value());
		break;
	case 3:
		(void)fprintf(out, "coalesce(%s.%s, %s.%s) %s %s", table, number_or_text(),
			      table, number_or_text(), operator(), value());
		break;
	default:
		(void)fprintf(out, "%s.%s %s %s.%s", table, number_or_text(), operator(), table,
			      number_or_text());
	}
}

static void put_term(FILE *out, const char *table)
{
	static const char *const patterns[] = {"'d*'",	"'*1*'",   "'*.c'",   "'/d1*'",
					       "'?1*'", "'[df]1'", "'/*/f*'", "'%1%'",
					       "'D_'",	"'%'",	   "'f1%'"};
	static const char *const functions[] = {"under", "child_of", "ancestor_of"};
	static const char *const nodes[] = {"'/d1'", "2", "3", "'/'", "'d2'", "'/nowhere'", "NULL"};

	const char *of = column();

	switch (below(9)) {
	case 0:
		(void)fprintf(out, "%s.%s IS %sNULL", table, of, below(2) ? "NOT " : "");
		break;
	case 1:
		(void)fprintf(out, "%s.%s %s %s", table, of, below(2) ? "GLOB" : "LIKE",
			      PICK(patterns));
		break;
	case 2:
		(void)fprintf(out, "%s(%s.ino, %s)", PICK(functions), table, PICK(nodes));
		break;
	case 3:
		(void)fprintf(out, "%s.%s %sIN (%s, %s)", table, of, below(2) ? "NOT " : "",
			      value_for(of), value_for(of));
		break;
	case 4:
		(void)fprintf(out, "%s.%s BETWEEN %s AND %s", table, of, value_for(of),
			      value_for(of));
		break;
	case 5:
		put_computed(out, table);
		break;
	default:
		(void)fprintf(out, "%s.%s %s %s", table, of, operator(), value_for(of));
	}
}

/* About one table or two. */
static void put_where(FILE *out, const char *one, const char *other)
{
	unsigned terms = 1 + below(3);

	for (unsigned i = 0; i < terms; i++) {
		(void)fputs(i ? below(4) ? " AND " : " OR " : "", out);
		(void)fputs(below(6) ? "" : "NOT ", out);
		put_term(out, below(2) ? one : other);
	}
}

static void put_nodes_where(FILE *out, const char *name)
{
	(void)fprintf(out, " FROM nodes %s WHERE ", name);
	put_where(out, name, name);
}

/* ---- statements ---- */

static bool put_rows(FILE *out)
{
	(void)fputs(below(3) ? "SELECT a.path, a.size" : "SELECT *", out);
	put_nodes_where(out, "a");
	return false;
}

static bool put_ordered(FILE *out)
{
	static const char *const orders[] = {
		"a.size DESC, a.path", "a.name, a.ino", "a.path",     "a.path DESC",
		"a.mtime, a.ino DESC", "a.ino",		"a.ino DESC", "a.ext, a.depth, a.path",
		"a.preorder",	       "a.preorder DESC"};

	(void)fprintf(out, "SELECT a.path, a.%s", column());
	put_nodes_where(out, "a");
	(void)fprintf(out, " ORDER BY %s", PICK(orders));
	if (below(2))
		(void)fprintf(out, " LIMIT %u OFFSET %u", below(20), below(10));
	return true;
}

static bool put_join(FILE *out)
{
	static const char *const joins[] = {"JOIN", "LEFT JOIN", "JOIN", "RIGHT JOIN"};
	static const char *const on[] = {
		"b.parent = a.ino", "b.name = a.name",	"b.parent = a.ino AND b.size > 50",
		"b.size = a.depth", "b.ino = a.parent", "b.name = a.size"};

	(void)fprintf(out, "SELECT a.path, b.path FROM nodes a %s nodes b ON %s WHERE ",
		      PICK(joins), PICK(on));
	put_where(out, "a", "b");
	return false;
}

static bool put_side_join(FILE *out)
{
	static const char *const what[] = {"count(*)", "a.path, n", "count(*), sum(n)",
					   "a.name, k"};
	static const char *const joins[] = {
		"nodes a NATURAL JOIN side",	    "side NATURAL JOIN nodes a",
		"nodes a JOIN side USING (ext)",    "nodes a LEFT JOIN side USING (ext)",
		"side NATURAL LEFT JOIN nodes a",   "nodes a JOIN side ON k = a.name",
		"nodes a JOIN side ON n = a.depth", "side LEFT JOIN nodes a ON a.name = k",
		"nodes a JOIN side ON n <= a.size"};

	(void)fprintf(out, "SELECT %s FROM %s WHERE ", PICK(what), PICK(joins));
	put_where(out, "a", "a");
	return false;
}

static bool put_groups(FILE *out)
{
	static const char *const keys[] = {"a.ext",    "a.type",	  "a.depth",
					   "a.parent", "a.type, a.depth", "length(a.name)",
					   "a.tag"};
	const char *key = PICK(keys);

	(void)fprintf(out, "SELECT %s, count(*), sum(a.size), max(a.name), avg(a.stars)", key);
	put_nodes_where(out, "a");
	(void)fprintf(out, " GROUP BY %s", key);
	if (below(2))
		(void)fprintf(out, " HAVING count(*) > %u", below(5));
	return false;
}

static bool put_aggregates(FILE *out)
{
	(void)fprintf(out, "SELECT count(*), count(a.%s), min(a.%s), max(a.%s), total(a.size)",
		      column(), column(), column());
	put_nodes_where(out, "a");
	return false;
}

static bool put_subquery(FILE *out)
{
	if (below(2)) {
		(void)fprintf(out,
			      "SELECT a.path FROM nodes a WHERE %sEXISTS (SELECT 1 FROM nodes b "
			      "WHERE b.parent = a.ino AND (",
			      below(2) ? "NOT " : "");
		put_where(out, "b", "b");
		(void)fputs("))", out);
		return false;
	}
	(void)fputs("SELECT a.path", out);
	put_nodes_where(out, "a");
	(void)fprintf(out, " AND a.ino %sIN (SELECT b.parent FROM nodes b WHERE ",
		      below(3) ? "" : "NOT ");
	put_where(out, "a", "b");
	(void)fputs(")", out);
	return false;
}

static bool put_sets(FILE *out)
{
	static const char *const operators[] = {"UNION", "UNION ALL", "EXCEPT", "INTERSECT"};
	const char *which = column();

	(void)fprintf(out, "SELECT a.%s", which);
	put_nodes_where(out, "a");
	(void)fprintf(out, " %s SELECT b.%s", PICK(operators), which);
	put_nodes_where(out, "b");
	return false;
}

static bool put_distinct(FILE *out)
{
	const char *first = column(), *second = column();

	(void)fprintf(out, "SELECT DISTINCT a.%s, a.%s", first, second);
	put_nodes_where(out, "a");
	return false;
}

static bool put_window(FILE *out)
{
	(void)fprintf(out,
		      "SELECT a.path, count(*) OVER (PARTITION BY a.%s), row_number() OVER "
		      "(PARTITION BY a.%s ORDER BY a.ino)",
		      column(), column());
	put_nodes_where(out, "a");
	return false;
}

static bool put_common(FILE *out)
{
	if (below(2)) {
		(void)fputs("WITH RECURSIVE up(i) AS (SELECT a.ino", out);
		put_nodes_where(out, "a");
		(void)fputs(" UNION SELECT parent FROM nodes, up WHERE ino = i) SELECT count(*), "
			    "sum(i) FROM up",
			    out);
		return false;
	}
	(void)fputs("WITH c AS (SELECT *", out);
	put_nodes_where(out, "a");
	(void)fputs(") SELECT type, count(*), min(size), max(path) FROM c GROUP BY type", out);
	return false;
}

bool random_statement(FILE *out, uint64_t *seed)
{
	static bool (*const forms[])(FILE * out) = {
		put_rows,     put_rows,	  put_ordered,	  put_ordered,	 put_join,
		put_join,     put_groups, put_subquery,	  put_sets,	 put_window,
		put_distinct, put_common, put_aggregates, put_side_join, put_side_join,
	};

	state = seed;
	return PICK(forms)(out);
}

/* ---- orders ---- */

static const char *const keys[] = {"size",	   "mtime",  "ino",	     "name",   "ext",
				   "path",	   "type",   "depth",	     "uid",    "parent",
				   "subtree_size", "target", "nlink",	     "blocks", "tag",
				   "stars",	   "mode",   "subtree_count", "preorder"};
#define SHOWN (PFS_COUNT(keys) - 1) /* the last one has bytes that few programs print */

/* Columns to be ordered by, which are all that is selected: what is equal in them may come in any
 * order.  Where it is compared otherwise, paths decide. */
static void put_keys(FILE *out, FILE *order, bool distinct)
{
	unsigned n = 1 + below(4) / 2;
	bool nocase = below(12) == 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned k = below(PFS_COUNT(keys));
		const char *key = keys[k];

		(void)fprintf(out, k < SHOWN ? "%sa.%s" : "%shex(a.%s)", i ? ", " : "", key);
		(void)fprintf(order, "%sa.%s%s%s%s", i ? ", " : "", key,
			      nocase ? " COLLATE NOCASE" : "", below(2) ? " DESC" : "",
			      below(12) ? "" : " NULLS LAST");
	}
	(void)fputs(nocase || distinct ? ", a.path" : "", out);
	(void)fputs(nocase || distinct ? ", a.path" : "", order);
}

static void put_limit(FILE *out)
{
	if (below(4))
		(void)fprintf(out, " LIMIT %u", below(4) ? below(8) : below(200));
	else
		return;
	if (below(3) == 0)
		(void)fprintf(out, " OFFSET %u", below(20));
}

static void put_ranges(FILE *out)
{
	static const char *const ranges[] = {"a.size > 4096",
					     "a.size BETWEEN 1 AND 101",
					     "a.mtime < '2001-01-01'",
					     "a.mtime >= '2030-01-01'",
					     "a.ino < 20",
					     "a.uid = 17",
					     "a.size >= 101.5 AND a.size < 1e10",
					     "a.type = 'f'",
					     "under(a.ino, '/d1')",
					     "a.name GLOB 'd*'",
					     "a.size > 4096 OR a.name GLOB 'f1*'"};
	(void)fputs(" WHERE ", out);
	if (below(3))
		(void)fputs(PICK(ranges), out);
	else
		put_where(out, "a", "a");
}

static void put_selected(FILE *out)
{
	static const char *const forms[] = {
		"SELECT min(a.%s) FROM nodes a",
		"SELECT max(a.%s) FROM nodes a",
		"SELECT a.%s, count(*), sum(a.size) FROM nodes a GROUP BY 1 ORDER BY 1 LIMIT 9",
		"SELECT DISTINCT a.%s FROM nodes a ORDER BY 1 DESC LIMIT 5",
		"SELECT DISTINCT a.%s FROM nodes a ORDER BY 1",
		"SELECT a.%s FROM nodes a JOIN nodes b ON b.parent = a.ino ORDER BY 1 LIMIT 12",
		"SELECT a.%s FROM nodes a LEFT JOIN nodes b ON b.size = a.depth ORDER BY 1 DESC",
		"SELECT b.%s FROM nodes a RIGHT JOIN nodes b ON b.ino = a.parent ORDER BY 1",
		"SELECT a.%s FROM nodes a UNION ALL SELECT name FROM nodes ORDER BY 1 LIMIT 20",
		"SELECT count(*) FROM (SELECT a.%s FROM nodes a ORDER BY 1 LIMIT 7 OFFSET 2)",
		"SELECT (SELECT count(*) FROM nodes), a.%s FROM nodes a ORDER BY 2 LIMIT 3",
		"SELECT rank() OVER (ORDER BY a.%s), a.path FROM nodes a ORDER BY 1, 2"};

	for (const char *at = PICK(forms); *at; at++) {
		if (strncmp(at, "%s", 2) != 0) {
			(void)fputc(*at, out);
			continue;
		}
		(void)fputs(keys[below(SHOWN)], out);
		at++;
	}
}

static void put_by_keys(FILE *out)
{
	bool in = below(5) == 0;
	char *order = NULL;
	size_t len;
	FILE *by = open_memstream(&order, &len);

	(void)fputs(in ? "SELECT path FROM nodes WHERE ino IN (SELECT ino FROM (SELECT a.ino, "
		       : "SELECT ",
		    out);
	put_keys(out, by, in);
	(void)fclose(by);
	(void)fputs(" FROM nodes a", out);
	if (below(2))
		put_ranges(out);
	(void)fprintf(out, " ORDER BY %s", order);
	put_limit(out);
	(void)fputs(in ? ")) ORDER BY path" : "", out);
	free(order);
}

bool random_order(FILE *out, uint64_t *seed)
{
	state = seed;
	if (below(3) == 0)
		put_selected(out);
	else
		put_by_keys(out);
	return true;
}

/* ---- rows as they are ---- */

bool random_rows(FILE *out, uint64_t *seed)
{
	static const char *const orders[] = {
		"a.path DESC", "a.size, a.ino DESC",	     "a.name, a.path",
		"a.ino",       "a.subtree_size DESC, a.ino", "a.preorder"};
	bool is_nested, has_order;

	state = seed;
	is_nested = below(4) == 0;
	has_order = below(4) != 0;
	(void)fprintf(out, "SELECT a.%s, a.%s, a.path FROM ", column(), keys[below(SHOWN)]);
	if (is_nested) {
		(void)fputs("(SELECT *", out);
		put_nodes_where(out, "a");
		(void)fputs(") a", out);
	} else {
		(void)fputs("nodes a", out);
	}
	put_ranges(out);
	if (has_order) {
		(void)fprintf(out, " ORDER BY %s", orders[below(PFS_COUNT(orders) - is_nested)]);
		put_limit(out);
	}
	return has_order;
}
