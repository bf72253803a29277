/* SPDX-License-Identifier: MIT */
/* Attributes and their columns: what is put comes back, typed. */
#include "tests/unit/store_util.h"

#include <math.h>

struct seen_attrs {
	struct pfs_attr_record attr[8];
	char name[8][PFS_ATTR_NAME_MAX + 1], text[8][PFS_ATTR_VALUE_MAX];
	size_t count;
};

static int see_attr(void *arg, const struct pfs_attr_record *attr)
{
	struct seen_attrs *seen = arg;
	size_t i = seen->count++;

	assert_true(i < PFS_COUNT(seen->attr));
	seen->attr[i] = *attr;
	(void)memcpy(seen->name[i], attr->name, attr->name_len);
	seen->name[i][attr->name_len] = 0;
	if (attr->text_len)
		(void)memcpy(seen->text[i], attr->text, attr->text_len);
	return 0;
}

static struct seen_attrs *scan_attrs(struct pfs_store *store, uint64_t prime)
{
	static struct seen_attrs seen;

	(void)memset(&seen, 0, sizeof(seen));
	assert_int_equal(pfs_store_scan_attrs(store, prime, see_attr, &seen), 0);
	return &seen;
}

static int put_integer(struct pfs_store *store, uint64_t prime, const char *name, int64_t value)
{
	const struct pfs_attr_record attr = {
		.name = name, .name_len = strlen(name), .type = PFS_ATTR_INTEGER, .integer = value};

	return pfs_store_put_attr(store, prime, &attr);
}

static int put_real(struct pfs_store *store, uint64_t prime, const char *name, double value)
{
	const struct pfs_attr_record attr = {
		.name = name, .name_len = strlen(name), .type = PFS_ATTR_REAL, .real = value};

	return pfs_store_put_attr(store, prime, &attr);
}

static int put_text(struct pfs_store *store, uint64_t prime, const char *name, const void *text,
		    size_t len)
{
	const struct pfs_attr_record attr = {.name = name,
					     .name_len = strlen(name),
					     .type = PFS_ATTR_TEXT,
					     .text = text,
					     .text_len = len};

	return pfs_store_put_attr(store, prime, &attr);
}

/* Every second time of a store that is made at once, which puts attributes some at a time. */
static unsigned bulk = PFS_STORE_BULK;

static unsigned flags_of(void **state)
{
	return *state ? *(unsigned *)*state : 0;
}

static void values_come_back_typed(void **state)
{
	static uint8_t big[PFS_ATTR_VALUE_MAX];
	struct pfs_store *store = new_store(flags_of(state));
	struct seen_attrs *seen;
	size_t i;

	for (i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)i;
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(put_integer(store, 5, "zeta", INT64_MIN), 0);
	assert_int_equal(put_real(store, 5, "alpha", 5.0), 0);
	assert_int_equal(put_real(store, 5, "minus", -0.0), 0);
	assert_int_equal(put_text(store, 5, "text", "5\0\xff", 3), 0);
	assert_int_equal(put_text(store, 5, "empty", NULL, 0), 0);
	assert_int_equal(put_text(store, 5, "big", big, sizeof(big)), 0);
	assert_int_equal(put_text(store, 7, "text", "7", 1), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);

	seen = scan_attrs(store, 5);
	assert_int_equal(seen->count, 6);
	assert_string_equal(seen->name[0], "alpha");
	assert_true(seen->attr[0].type == PFS_ATTR_REAL && seen->attr[0].real == 5.0);
	assert_string_equal(seen->name[1], "big");
	assert_int_equal(seen->attr[1].text_len, sizeof(big));
	assert_memory_equal(seen->text[1], big, sizeof(big));
	assert_string_equal(seen->name[2], "empty");
	assert_true(seen->attr[2].type == PFS_ATTR_TEXT && seen->attr[2].text_len == 0);
	assert_true(seen->attr[3].type == PFS_ATTR_REAL && signbit(seen->attr[3].real));
	assert_true(seen->attr[4].text_len == 3);
	assert_memory_equal(seen->text[4], "5\0\xff", 3);
	assert_true(seen->attr[5].type == PFS_ATTR_INTEGER && seen->attr[5].integer == INT64_MIN);
	assert_int_equal(scan_attrs(store, 7)->count, 1);
	assert_int_equal(pfs_store_close(store), 0);
}

static void values_are_replaced_and_removed(void **state)
{
	struct pfs_store *store = new_store(flags_of(state));
	struct seen_attrs *seen;

	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(put_text(store, 5, "a", "text", 4), 0);
	assert_int_equal(put_integer(store, 5, "b", 1), 0);
	assert_int_equal(put_integer(store, 7, "b", 1), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(put_integer(store, 5, "a", 9), 0);
	assert_int_equal(pfs_store_remove_attr(store, 5, "b", 1), 0);
	assert_int_equal(pfs_store_remove_attr(store, 5, "never", 5), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	seen = scan_attrs(store, 5);
	assert_int_equal(seen->count, 1);
	assert_true(seen->attr[0].type == PFS_ATTR_INTEGER && seen->attr[0].integer == 9);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_remove_attr(store, 5, NULL, 0), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(scan_attrs(store, 5)->count, 0);
	assert_int_equal(scan_attrs(store, 7)->count, 1);
	assert_int_equal(pfs_store_close(store), 0);
}

static void bad_attributes_are_refused(void **state)
{
	static const uint8_t big[PFS_ATTR_VALUE_MAX + 1];
	struct pfs_store *store = new_store(flags_of(state));
	char long_name[PFS_ATTR_NAME_MAX + 2];

	(void)memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	assert_int_equal(put_integer(store, 5, "early", 1), -EINVAL); /* in no group */
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(put_text(store, 5, "bigger", big, sizeof(big)), -EINVAL);
	assert_int_equal(put_real(store, 5, "nan", NAN), -EINVAL);
	assert_int_equal(put_integer(store, 5, "", 1), -EINVAL);
	assert_int_equal(put_integer(store, 5, long_name, 1), -EINVAL);
	assert_int_equal(put_integer(store, 5, long_name + 1, 1), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_string_equal(scan_attrs(store, 5)->name[0], long_name + 1);
	assert_int_equal(pfs_store_close(store), 0);
}

/* A name first met in a group that is rolled back must get a number again. */
static void names_survive_a_rollback(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);

	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(put_integer(store, 5, "new", 1), 0);
	pfs_store_rollback(store);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(put_integer(store, 5, "other", 1), 0);
	assert_int_equal(put_integer(store, 5, "new", 1), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(scan_attrs(store, 5)->count, 2);
	assert_string_equal(scan_attrs(store, 5)->name[0], "new");
	assert_int_equal(pfs_store_close(store), 0);
}

/* More names than are remembered. */
static void many_names(void **state)
{
	struct pfs_store *store = new_store(flags_of(state));
	uint64_t i;

	assert_int_equal(pfs_store_begin(store), 0);
	for (i = 0; i < 1000; i++) {
		char name[20];

		(void)snprintf(name, sizeof(name), "name-%u", (unsigned)(i % 500));
		assert_int_equal(put_integer(store, i % 500 + 5, name, (int64_t)i), 0);
	}
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	for (i = 0; i < 500; i++) {
		const struct seen_attrs *seen = scan_attrs(store, i + 5);
		char name[20];

		(void)snprintf(name, sizeof(name), "name-%u", (unsigned)i);
		assert_int_equal(seen->count, 1);
		assert_string_equal(seen->name[0], name);
		assert_int_equal(seen->attr[0].integer, 500 + i);
	}
	assert_int_equal(pfs_store_close(store), 0);
}

/* Before there are enough to be put together, after that, and in between. */
static void a_group_reads_its_own(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(PFS_STORE_BULK);
	char text[20];

	assert_int_equal(pfs_store_begin(store), 0);
	for (unsigned i = 0; i < 100; i++) {
		int len = snprintf(text, sizeof(text), "%*u", (int)(i % 15), i);

		assert_int_equal(put_text(store, 5 + i, "a", text, (size_t)len), 0);
		if (i % 40 != 7)
			continue;
		assert_int_equal(scan_attrs(store, 5 + i)->attr[0].text_len, len);
		assert_memory_equal(scan_attrs(store, 5 + i)->text[0], text, len);
		assert_int_equal(put_integer(store, 5 + i, "a", i), 0);
		assert_int_equal(put_integer(store, 5 + i, "b", i), 0);
		assert_int_equal(pfs_store_remove_attr(store, 5 + i, "b", 1), 0);
	}
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	for (unsigned i = 0; i < 100; i++) {
		int len = snprintf(text, sizeof(text), "%*u", (int)(i % 15), i);
		const struct seen_attrs *seen = scan_attrs(store, 5 + i);

		assert_int_equal(seen->count, 1);
		if (i % 40 == 7) {
			assert_int_equal(seen->attr[0].integer, i);
		} else {
			assert_int_equal(seen->attr[0].text_len, len);
			assert_memory_equal(seen->text[0], text, len);
		}
	}
	assert_int_equal(pfs_store_close(store), 0);
}

static int see_column(void *arg, const void *name, size_t name_len, enum pfs_attr_type type)
{
	char *text = arg;

	(void)sprintf(text + strlen(text), "%.*s:%d ", (int)name_len, (const char *)name,
		      (int)type);
	return 0;
}

static void columns_come_back(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	char text[100] = "";

	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(put_text(store, 5, "untyped", NULL, 0), 0);
	assert_int_equal(pfs_store_put_column(store, "year", 4, PFS_ATTR_INTEGER), 0);
	assert_int_equal(pfs_store_put_column(store, "note", 4, PFS_ATTR_TEXT), 0);
	assert_int_equal(pfs_store_put_column(store, "year", 4, PFS_ATTR_REAL), 0);
	assert_int_equal(pfs_store_put_column(store, "", 0, PFS_ATTR_REAL), -EINVAL);
	assert_int_equal(put_real(store, 5, "year", 1.5), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_scan_columns(store, see_column, text), 0);
	assert_string_equal(text, "year:1 note:2 ");
	assert_string_equal(scan_attrs(store, 5)->name[1], "year");
	assert_int_equal(pfs_store_close(store), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_back_typed),
		cmocka_unit_test(values_are_replaced_and_removed),
		cmocka_unit_test(bad_attributes_are_refused),
		cmocka_unit_test(names_survive_a_rollback),
		cmocka_unit_test(many_names),
		cmocka_unit_test(columns_come_back),
		cmocka_unit_test_prestate(values_come_back_typed, &bulk),
		cmocka_unit_test_prestate(values_are_replaced_and_removed, &bulk),
		cmocka_unit_test_prestate(bad_attributes_are_refused, &bulk),
		cmocka_unit_test_prestate(many_names, &bulk),
		cmocka_unit_test(a_group_reads_its_own),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
