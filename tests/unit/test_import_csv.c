/* SPDX-License-Identifier: MIT */
/* Tables: by path and by parent, rows in any order, and what is wrong with which line. */
#include "tests/unit/import_util.h"

#include "tools/import/import_recognise.h"

static const struct pfs_import_options by_path = {.format = &pfs_import_csv, .path_column = "path"};
static const struct pfs_import_options by_id = {.format = &pfs_import_csv,
						.id_column = "id",
						.parent_column = "parent",
						.name_column = "name"};

static void rows_with_paths(void **state PFS_UNUSED)
{
	assert_int_equal(import_text(&by_path, "size,path,note\n12,/a/b,\"x, y\"\n007,/a/c,\"two\n"
					       "lines\"\n,/a,dir\n5,e/,empty\n"),
			 0);
	assert_string_equal(tree_text(), "a/ a/b a/c e/");
	assert_string_equal(content_text("/a/b"), "size: 12\nnote: x, y\n");
	assert_string_equal(content_text("/a/c"), "size: 007\nnote: two\n lines\n");
	assert_string_equal(attr_text("/a", "user.note"), "dir");
	assert_string_equal(attr_text("/a", "user.size"), "-");
	assert_string_equal(attr_text("/a/c", "user.size"), "007");
	assert_string_equal(attr_text("/a/c", "user.path"), "/a/c");
	assert_string_equal(attr_text("/a/c", "user.primefs.row"), content_text("/a/c"));
	assert_string_equal(attr_text("/e", "user.size"), "5");
}

static void types_may_be_declared(void **state PFS_UNUSED)
{
	struct pfs_import_options options = by_path;

	options.columns = "v:real,n:text";
	assert_int_equal(import_text(&options, "path,v,n\na,2.50,7\nb,3,8\n"), 0);
	assert_string_equal(attr_text("/a", "user.v"), "2.5");
	assert_string_equal(attr_text("/b", "user.v"), "3.0");
	assert_string_equal(content_text("/a"), "v: 2.5\nn: 7\n");
	assert_int_equal(stat_of("/a").st_size, strlen("v: 2.5\nn: 7\n"));
	options.columns = "w:int";
	assert_int_equal(import_text(&options, "path,v,n\n"), 3);
	options.columns = "v:int";
	assert_int_equal(import_text(&options, "path,v\na,x\n"), 3);
	assert_non_null(strstr(said, "memory:2: the value of 'v' is no integer"));
}

static void parents_and_children_in_any_order(void **state PFS_UNUSED)
{
	assert_int_equal(import_text(&by_id,
				     "id,parent,name,rank\n4,2,lion,species\n2,1,cats,family\n"
				     "3,1,dogs,family\n1,,animals,kingdom\n9,9,own parent,\n"),
			 0);
	assert_string_equal(tree_text(),
			    "animals/ animals/cats/ animals/cats/lion animals/dogs own parent");
	assert_string_equal(content_text("/animals/cats/lion"),
			    "id: 4\nparent: 2\nname: lion\nrank: species\n");
	assert_string_equal(attr_text("/animals/cats", "user.rank"), "family");
	assert_string_equal(attr_text("/animals/cats", "user.id"), "2");
	assert_string_equal(attr_text("/animals/cats", "user.parent"), "1");
	assert_string_equal(attr_text("/animals/cats", "user.name"), "cats");
	assert_string_equal(attr_text("/animals", "user.parent"), "");
	assert_string_equal(attr_text("/animals/cats", "user.primefs.row"),
			    "id: 2\nparent: 1\nname: cats\nrank: family\n");
	assert_int_equal(stat_of("/animals/cats/lion").st_size,
			 strlen(content_text("/animals/cats/lion")));
}

static void ids_have_the_type_that_is_declared(void **state PFS_UNUSED)
{
	struct pfs_import_options options = by_id;

	options.columns = "id:int";
	assert_int_equal(import_text(&options, "id,parent,name\n007,007,a\n08,007,b\n"), 0);
	assert_string_equal(attr_text("/a", "user.id"), "7");
	assert_string_equal(attr_text("/a", "user.parent"), "7");
	assert_string_equal(content_text("/a/b"), "id: 8\nparent: 7\nname: b\n");
	assert_int_equal(stat_of("/a/b").st_size, strlen("id: 8\nparent: 7\nname: b\n"));
	options.slash = "_";
	assert_int_equal(import_text(&options, "id,parent,name\n1,,a/b\n"), 0);
	assert_string_equal(attr_text("/a_b", "user.name"), "a/b");
	assert_string_equal(content_text("/a_b"), "id: 1\nparent: \nname: a/b\n");
	assert_int_equal(stat_of("/a_b").st_size, strlen("id: 1\nparent: \nname: a/b\n"));
}

static void the_usual_columns_need_no_options(void **state PFS_UNUSED)
{
	struct pfs_import_options options = {.format = &pfs_import_csv};

	assert_int_equal(import_text(&options, "path,v\na,1\n"), 0);
	assert_string_equal(tree_text(), "a");
	assert_int_equal(import_text(&options, "name,id,parent\na,1,\nb,2,1\n"), 0);
	assert_string_equal(tree_text(), "a/ a/b");
	assert_int_equal(import_text(&options, "x,y\n1,2\n"), 3);
	assert_non_null(strstr(said, "--path=COLUMN"));
	assert_int_equal(import_text(&options, ""), 3);
	options.path_column = "nowhere";
	assert_int_equal(import_text(&options, "x,y\n1,2\n"), 3);
	assert_non_null(strstr(said, "no column 'nowhere'; there are: x, y"));
	options.id_column = "x";
	assert_int_equal(import_text(&options, "x,y\n1,2\n"), 3);
	options.path_column = NULL;
	assert_int_equal(import_text(&options, "x,x\n1,2\n"), 3);
	assert_non_null(strstr(said, "memory:1: column 2: "));
}

/* Rows that are wrong: all of them are reported with their lines, the others imported. */
static void check_wrong(const char *rows, const char *tree, const char *const *messages)
{
	struct pfs_import_options options = by_id;
	char table[512];

	(void)snprintf(table, sizeof(table), "id,parent,name\n%s", rows);
	assert_int_equal(import_text(&options, table), 3);
	assert_non_null(strstr(said, messages[0]));
	assert_int_equal(access(test_path, F_OK), -1);
	options.skip = true;
	assert_int_equal(import_text(&options, table), 1);
	assert_string_equal(tree_text(), tree);
	for (; *messages; messages++)
		if (!strstr(said, *messages))
			fail_msg("'%s' is not in:\n%s", *messages, said);
}

#define WRONG(rows, tree, ...) check_wrong(rows, tree, (const char *const[]){__VA_ARGS__, NULL})

static void wrong_rows_are_named(void **state PFS_UNUSED)
{
	WRONG("1,,a\n2,9,b\n3,2,c\n", "a", "memory:3: no row has the id of its parent, '9'",
	      "memory:4: its parent, line 3, was left out");
	WRONG("1,,a\n2,3,b\n3,4,c\n4,2,d\n5,4,e\n", "a", "lies under itself", "memory:3: ",
	      "memory:4: ", "memory:5: ", "memory:6: its parent, line 5, was left out");
	WRONG("1,,a\n2,1,b\n3,1,b\n", "a/ a/b", "memory:4: the same place in the tree as line 3");
	WRONG("1,,a\n1,,b\n2,1,c\n", "a/ a/c", "memory:3: the same id as line 2");
	WRONG("1,,a\n2,1,b/c\n", "a", "memory:3: ");
	WRONG("1,,a\n2,1,\n", "a", "memory:3: ");
	WRONG("1,,a\n,1,b\n", "a", "memory:3: the id is empty");
	WRONG("1,,a\n2,1,..\n", "a", "memory:3: ");
	WRONG("1,,a\n2,1\n", "a", "memory:3: 2 fields; the header has 3");
	WRONG("1,,a\n2,1,b,\n", "a", "memory:3: 4 fields");
}

static void broken_csv_ends_it(void **state PFS_UNUSED)
{
	struct pfs_import_options options = by_path;

	options.skip = true;
	assert_int_equal(import_text(&options, "path\na\n\"b\nc\n"), 3);
	assert_non_null(strstr(said, "memory:3: a quoted field that begins here never ends"));
	assert_int_equal(access(test_path, F_OK), -1);
}

static void duplicate_paths_are_named(void **state PFS_UNUSED)
{
	struct pfs_import_options options = by_path;

	assert_int_equal(import_text(&options, "path,v\na,1\n/a,2\n"), 3);
	assert_non_null(strstr(said, "memory:3: the same place in the tree as line 2"));
	options.skip = true;
	assert_int_equal(import_text(&options, "path,v\na,1\n/a,2\n\nb/../c,3\n,4\n"), 1);
	assert_non_null(strstr(said, "memory:5: "));
	assert_non_null(strstr(said, "memory:6: "));
	assert_string_equal(tree_text(), "a");
	assert_string_equal(attr_text("/a", "user.v"), "1");
}

static void deep_chains_in_the_worst_order(void **state PFS_UNUSED)
{
	const size_t n = 20000;
	char *table = malloc(n * 32);
	struct pfs_build_report report = {0};
	size_t len = (size_t)sprintf(table, "id,parent,name\n"), i;
	struct pfs_tree_info info;
	struct pfs_tree *tree;

	(void)report;
	for (i = n; i > 0; i--)
		len += (size_t)sprintf(table + len, "%zu,%.0zu,d\n", i, i - 1);
	assert_int_equal(run_import(&by_id, table, len), 0);
	free(table);
	tree = open_tree();
	assert_int_equal(pfs_tree_info(tree, &info), 0);
	assert_int_equal(info.nodes, n + 1);
	assert_int_equal(info.max_depth, n);
	(void)pfs_tree_close(tree);
}

/* "path,t" and one row f whose t is n bytes in quotes. */
static char *table_of(size_t n, char byte)
{
	char *table = NULL, *value = malloc(n + 1);

	(void)memset(value, byte, n);
	value[n] = 0;
	assert_true(asprintf(&table, "path,t\nf,\"%s\"\n", value) > 0);
	free(value);
	return table;
}

static void content_of_many_chunks(void **state PFS_UNUSED)
{
	char *table = table_of(200000, '\n'), tail[8];
	struct pfs_entry entry;
	struct pfs_tree *tree;
	uint64_t ino;

	/* an attribute holds 64 KiB at most */
	assert_int_equal(import_text(&by_path, table), 3);
	assert_non_null(strstr(said, "memory:2: the value of 't' is longer than 64 KiB"));
	free(table);
	/* as content, lines that go on take a blank each */
	table = table_of(60000, '\n');
	assert_int_equal(import_text(&by_path, table), 0);
	free(table);
	tree = open_tree();
	assert_int_equal(pfs_tree_resolve(tree, &ino, "/f"), 0);
	assert_int_equal(pfs_tree_getattr(tree, &entry, ino), 0);
	assert_int_equal(entry.attr.st_size, 3 + 2 * 60000 + 1);
	assert_int_equal(pfs_tree_read(tree, tail, 8, ino, entry.attr.st_size - 2, 0), 2);
	assert_memory_equal(tail, " \n", 2);
	(void)pfs_tree_close(tree);
}

static void headers_are_recognised(void **state PFS_UNUSED)
{
#define LOOKS(text) pfs_find_delimiter(text, strlen(text), true)
	assert_string_equal(LOOKS("path,size\n/a,1\n"), ",");
	assert_string_equal(LOOKS("\xef\xbb\xbfid,parent,name\r\n1,,x\r\n"), ",");
	assert_string_equal(LOOKS("a,b\n"), ",");
	assert_string_equal(LOOKS("a,\"b, c\"\n1,\"two\nlines\"\n"), ",");
	assert_string_equal(LOOKS("id\tparent\tname\n1\t\tx, y\n"), "\t");
	assert_string_equal(LOOKS("id;parent;name\n1;;x\n"), ";");
	assert_string_equal(LOOKS("id|parent|name\n1||x\n"), "|");
	assert_string_equal(LOOKS("id\t|\tparent\t|\tname\t|\n1\t|\t\t|\t\"x\t|\n"), "\t|\t");
	assert_null(LOOKS(""));
	assert_null(LOOKS("a\nb\n"));
	assert_null(LOOKS("/usr/a,b\n/usr/c,d\n"));
	assert_null(LOOKS("a,b\nc\n"));
	assert_null(LOOKS("a,,b\n1,2,3\n"));
	assert_null(LOOKS("a,b"));
	assert_null(LOOKS("size (bytes);x\n1;2\n"));
	assert_string_equal(pfs_find_delimiter("size (bytes);x\n1;2\n", 19, false), ";");
}

static void delimiters(void **state PFS_UNUSED)
{
	static const char *const all[] = {",", "\t", ";", "|"};
	struct pfs_import_options options = by_id;
	char table[128];
	size_t i;

	for (i = 0; i < PFS_COUNT(all); i++) {
		const char d = *all[i];

		options.delimiter = all[i];
		(void)snprintf(table, sizeof(table),
			       "id%cparent%cname%cv\n1%c%ca%c\"x%c\"\"y\"\"\"\n2%c1%cb%c,;\n", d, d,
			       d, d, d, d, d, d, d, d);
		if (d != ',' && d != ';') {
			assert_int_equal(import_text(&options, table), 0);
			(void)snprintf(table, sizeof(table), "x%c\"y\"", d);
			assert_string_equal(attr_text("/a", "user.v"), table);
			assert_string_equal(attr_text("/a/b", "user.v"), ",;");
		}
	}
	options.delimiter = "\t|\t";
	assert_int_equal(import_text(&options, "id\t|\tparent\t|\tname\t|\tv\t|\n"
					       "1\t|\t1\t|\ta\t|\t\"x\t|\n2\t|\t1\t|\tb\t|\t\t|\n"),
			 0);
	assert_string_equal(tree_text(), "a/ a/b");
	assert_string_equal(attr_text("/a", "user.v"), "\"x");
	assert_string_equal(attr_text("/a/b", "user.v"), "-");
}

static void slashes_in_names(void **state PFS_UNUSED)
{
	struct pfs_import_options options = by_id;

	assert_int_equal(import_text(&options, "id,parent,name\n1,,a\n2,1,b/c\n"), 3);
	assert_non_null(strstr(said, "memory:3: the name 'b/c' has a '/'; --slash=CHAR"));
	options.slash = "\xe2\x88\x95";
	assert_int_equal(import_text(&options, "id,parent,name\n1,,a\n2,1,b/c/\n"), 0);
	assert_string_equal(tree_text(), "a/ a/b\xe2\x88\x95"
					 "c\xe2\x88\x95");
	options.slash = "_";
	assert_int_equal(import_text(&options, "id,parent,name\n1,,a_b\n"), 3);
	assert_non_null(strstr(said, "memory:2: the name 'a_b' has '_', which --slash keeps"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_with_paths),
		cmocka_unit_test(types_may_be_declared),
		cmocka_unit_test(parents_and_children_in_any_order),
		cmocka_unit_test(ids_have_the_type_that_is_declared),
		cmocka_unit_test(the_usual_columns_need_no_options),
		cmocka_unit_test(wrong_rows_are_named),
		cmocka_unit_test(broken_csv_ends_it),
		cmocka_unit_test(duplicate_paths_are_named),
		cmocka_unit_test(deep_chains_in_the_worst_order),
		cmocka_unit_test(content_of_many_chunks),
		cmocka_unit_test(headers_are_recognised),
		cmocka_unit_test(delimiters),
		cmocka_unit_test(slashes_in_names),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
