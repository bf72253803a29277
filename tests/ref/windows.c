/* SPDX-License-Identifier: MIT */
#include "tests/ref/windows.h"

#include "base/err.h"
#include "tests/ref/random.h"

static uint64_t *state; /* of the statement being written */

static uint32_t below(uint32_t n)
{
	return random_below(state, n);
}

#define PICK(array) array[below(PFS_COUNT(array))]

/* ---- a window ---- */

static const char *const keys[] = {
	"a.size",  "a.depth", "a.parent",   "a.ext",	    "a.type",
	"a.tag",   "a.name",  "a.size % 3", "a.size > 100", "a.ext COLLATE NOCASE",
	"a.nlink", "7"};

/* peers: that are told apart have an order of their own. */
static void put_window(char *text, size_t size, bool peers)
{
	static const char *const ways[] = {"", "", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"};
	unsigned n_partition = below(3), n_order = below(3);
	size_t len = 0;

	text[0] = 0;
	for (unsigned i = 0; i < n_partition; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%s", i ? ", " : "PARTITION BY ",
					PICK(keys));
	for (unsigned i = 0; i < n_order; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%s%s", i ? ", " : " ORDER BY ",
					PICK(keys), PICK(ways));
	if (peers)
		(void)snprintf(text + len, size - len, "%sa.ino%s", n_order ? ", " : " ORDER BY ",
			       below(2) ? "" : " DESC");
	else if (below(9) == 0 && n_order)
		(void)snprintf(text + len, size - len, " RANGE UNBOUNDED PRECEDING");
}

static void put_function(FILE *out, bool peers, const char *window)
{
	static const char *const plain[] = {"rank()", "dense_rank()", "count(*)"};
	static const char *const of_one[] = {"count", "sum", "avg", "min", "max", "total"};
	static const char *const values[] = {"a.size",
					     "a.ino",
					     "a.depth",
					     "a.size - 100",
					     "-a.size * a.depth",
					     "a.nlink",
					     "a.mode",
					     "a.stars",
					     "a.score",
					     "a.size * 1.5",
					     "a.parent",
					     "a.ext",
					     "1",
					     "9223372036854775000 - a.ino",
					     "a.ino - 9007199254740000"};

	if (peers && below(3)) {
		static const char *const forms[] = {
			"row_number()",	     "first_value(a.size)", "ntile(1)",
			"ntile(4)",	     "ntile(1000)",	    "lag(a.size)",
			"lag(a.parent, 0)",  "lag(a.size, 3)",	    "lead(a.depth)",
			"lead(a.parent, 2)", "lead(a.size, 9999)",  "lag(a.name)",
			"lag(a.size, 1, -1)"};

		(void)fprintf(out, "%s OVER (%s)", PICK(forms), window);
	} else if (below(2)) {
		(void)fprintf(out, "%s OVER (%s)", PICK(plain), window);
	} else {
		const char *function = PICK(of_one);

		(void)fprintf(out, "%s(%s) OVER (%s)", function, PICK(values), window);
	}
}

static void put_where(FILE *out)
{
	static const char *const conditions[] = {"a.size > 100",
						 "a.type = 'f'",
						 "a.name LIKE '%1%'",
						 "under(a.ino, 2)",
						 "a.ext IS NOT NULL",
						 "a.depth < 0",
						 "a.size % 2 = 0 OR a.tag = 'x'"};

	if (below(2))
		(void)fprintf(out, " WHERE %s", PICK(conditions));
}

/* ---- statements ---- */

/* `a` is nodes, alone or joined: then its rows may be peers that nothing tells apart. */
bool random_windows(FILE *out, uint64_t *seed)
{
	static const char *const joins[] = {" JOIN side s ON s.ext = a.ext",
					    " LEFT JOIN side s ON s.ext = a.ext",
					    " JOIN nodes p ON a.parent = p.ino"};
	unsigned n = 1 + below((state = seed, 3));
	bool peers = below(2), is_inner = below(3) == 0, ordered = below(2);
	char window[512];

	put_window(window, sizeof(window), peers);
	(void)fputs(is_inner ? "SELECT count(*), sum(r), max(i), min(r) FROM (SELECT a.ino AS i, "
			     : "SELECT a.ino, a.name, ",
		    out);
	for (unsigned i = 0; i < n; i++) {
		if (below(4) == 0)
			put_window(window, sizeof(window), peers);
		put_function(out, peers, window);
		if (!i && is_inner)
			(void)fputs(" AS r", out);
		(void)fputs(i + 1 < n ? ", " : " FROM nodes a", out);
	}
	if (!peers && below(3) == 0)
		(void)fputs(PICK(joins), out);
	put_where(out);
	if (is_inner) {
		(void)fputs(below(2) ? ")" : ") WHERE r > 2", out);
		return true;
	}
	if (ordered && peers)
		(void)fprintf(out, " ORDER BY %s1", below(2) ? "3, " : "");
	if (ordered && peers && below(2))
		(void)fputs(" LIMIT 5 OFFSET 2", out);
	return ordered && peers;
}
