/* SPDX-License-Identifier: MIT */
/* Text compared with numbers: what pfs_sql_number_of makes of it is what SQLite makes of it, and no
 * copy of a value is asked for its number, of which SQLite 3.53 crashes. */
#include "meta/sql/sqlquery_impl.h"
#include "tests/ref/random.h"
#include "tests/unit/query_util.h"

/* NOLINTNEXTLINE(bugprone-reserved-identifier): the linker's --wrap */
sqlite3_value *__wrap_sqlite3_value_dup(const sqlite3_value *value);
/* NOLINTNEXTLINE(bugprone-reserved-identifier) */
sqlite3_value *__wrap_sqlite3_value_dup(const sqlite3_value *value)
{
	(void)value;
	fail_msg("a copied value belongs to no connection");
	return NULL;
}

/* Both, each its own copy of the argument, since SQLite's changes it. */
static void judge(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct pfs_sql_value ours;
	int type;

	(void)argc;
	pfs_sql_number_of(&ours, argv[0]);
	type = sqlite3_value_numeric_type(argv[1]);
	if (type == SQLITE_INTEGER)
		sqlite3_result_int(context, ours.type == PFS_SQL_INTEGER &&
						    ours.integer == sqlite3_value_int64(argv[1]));
	else if (type == SQLITE_FLOAT)
		sqlite3_result_int(context, ours.type == PFS_SQL_REAL &&
						    ours.real == sqlite3_value_double(argv[1]));
	else
		sqlite3_result_int(context, ours.type == PFS_SQL_TEXT);
}

static void agree(sqlite3_stmt *statement, const char *text, size_t len)
{
	assert_int_equal(sqlite3_reset(statement), SQLITE_OK);
	for (int i = 1; i <= 2; i++)
		assert_int_equal(sqlite3_bind_text(statement, i, text, (int)len, SQLITE_TRANSIENT),
				 SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	if (!sqlite3_column_int(statement, 0))
		fail_msg("'%.*s'", (int)len, text);
}

static void test_numbers(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"0",
		"-0",
		"+7",
		"007",
		" 12 ",
		"\t\n\v\f\r1\t\n\v\f\r",
		"12a",
		"1 2",
		"+",
		"-",
		"--1",
		"+-1",
		"- 1",
		".",
		"+.",
		".5",
		"5.",
		"-.5e3",
		"5.e1",
		"e5",
		".e5",
		"1e",
		"1e+",
		"1e+ ",
		"1e5x",
		"1E-5",
		"1e999",
		"-1e999",
		"9223372036854775807",
		"9223372036854775808",
		"-9223372036854775808",
		"-9223372036854775809",
		"0000000000000000000000000000012",
		"99999999999999999999",
		"0x10",
		"inf",
		"nan",
		"1_000",
		"12.0",
		"1e2",
		"0.1",
		"2.5e-324",
		"179769313486231570000000000000000000000000000000000000000e252",
		"\xc2\xa0",
		"/",
		":",
	};
	static const char letters[] = "0123456789001122++--..eE  \tx";
	uint64_t seed = 20;
	sqlite3 *handle;
	sqlite3_stmt *statement;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &handle), SQLITE_OK);
	assert_int_equal(
		sqlite3_create_function(handle, "judge", 2, SQLITE_UTF8, NULL, judge, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(handle, "SELECT judge(?1, ?2)", -1, &statement, NULL),
			 SQLITE_OK);
	for (size_t i = 0; i < PFS_COUNT(texts); i++)
		agree(statement, texts[i], strlen(texts[i]));
	for (int i = 0; i < 100000; i++) {
		char text[24];
		size_t len = random_below(&seed, sizeof(text));

		for (size_t k = 0; k < len; k++)
			text[k] = letters[random_below(&seed, sizeof(letters) - 1)];
		agree(statement, text, len);
	}
	(void)sqlite3_finalize(statement);
	(void)sqlite3_close(handle);
}

/* As it would be where it stands in a statement. */
static double literal(sqlite3 *handle, const char *text)
{
	char select[64];
	sqlite3_stmt *statement;
	double value;

	(void)snprintf(select, sizeof(select), "SELECT %s", text);
	assert_int_equal(sqlite3_prepare_v2(handle, select, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	value = sqlite3_column_double(statement, 0);
	(void)sqlite3_finalize(statement);
	return value;
}

static void agree_on_decimal(struct pfs_sql *sql, const char *text)
{
	double ours = -1;

	assert_int_equal(pfs_sql_real(sql, &ours, text), 0);
	if (ours != literal(sql->handle, text))
		fail_msg("%s: %.17g", text, ours);
}

/* Decimals are what they are as literals, all of them by one prepared statement. */
static void test_decimals(void **state)
{
	static const char *const texts[] = {"0.0",	"0.1",
					    "5.",	".5",
					    "1e0",	"1e308",
					    "1e309",	"1e-400",
					    "4.9e-324", "1.7976931348623157e308",
					    "2.5e-324", "9007199254740993.0"};
	struct pfs_sql sql = {.own = false};
	uint64_t seed = 21;
	const sqlite3_stmt *first;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &sql.handle), SQLITE_OK);
	agree_on_decimal(&sql, "1.5");
	first = sql.to_real;
	for (size_t i = 0; i < PFS_COUNT(texts); i++)
		agree_on_decimal(&sql, texts[i]);
	for (int i = 0; i < 20000; i++) {
		char text[48];

		(void)snprintf(text, sizeof(text), "%u.%llue%d", random_below(&seed, 10),
			       (unsigned long long)random_next(&seed),
			       (int)random_below(&seed, 640) - 330);
		agree_on_decimal(&sql, text);
	}
	assert_ptr_equal(sql.to_real, first);
	assert_false(sql.own);
	(void)sqlite3_finalize(sql.to_real);
	assert_int_equal(sqlite3_close(sql.handle), SQLITE_OK);
}

static void test_statements(void **state)
{
	(void)state;
	check("SELECT name FROM nodes WHERE size = '0' AND type = 'f' ORDER BY name",
	      "c.txt,d.c,e.tar.gz");
	check("SELECT name FROM nodes WHERE depth < ' 2.5 ' AND type = 'f' ORDER BY name",
	      "d.c,e.tar.gz");
	check("SELECT name FROM nodes WHERE depth >= '+3' ORDER BY name", "c.txt");
	check("SELECT name FROM nodes WHERE path = '/a'", "a");
	check("SELECT count(*) FROM nodes WHERE depth < '1x'", "6");
	/* Looking at a constant leaves it the text that it is. */
	check("SELECT DISTINCT t FROM (SELECT ' 1' t), nodes WHERE depth = t", " 1");
	check("SELECT name FROM nodes WHERE depth = (SELECT '1') ORDER BY name", "a,e.tar.gz");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_decimals),
		cmocka_unit_test_setup_teardown(test_statements, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
