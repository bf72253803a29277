/* SPDX-License-Identifier: MIT */
#include "tests/ref/relation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ref/random.h"

uint32_t ref_below(struct ref_world *w, uint32_t n)
{
	return random_below(&w->random, n);
}

static int charge(void *context, int64_t bytes)
{
	int64_t *charged = context;

	(void)__atomic_add_fetch(charged, bytes, __ATOMIC_RELAXED);
	return 0;
}

/* ---- SQL functions for what SQLite has no word for ---- */

static void match(sqlite3_context *context, int n, sqlite3_value **values)
{
	const char *kind = sqlite3_user_data(context);
	const char *text, *part;
	size_t len, part_len;

	(void)n;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	text = (const char *)sqlite3_value_text(values[0]);
	len = (size_t)sqlite3_value_bytes(values[0]);
	part = (const char *)sqlite3_value_text(values[1]);
	part_len = (size_t)sqlite3_value_bytes(values[1]);
	if (*kind == 'c') {
		sqlite3_result_int(context, memmem(text, len, part, part_len) != NULL);
		return;
	}
	sqlite3_result_int(context,
			   len >= part_len && memcmp(*kind == 'p' ? text : text + len - part_len,
						     part, part_len) == 0);
}

void ref_open(struct ref_world *w, struct pfs_operators *operators, enum pfs_engine_kind on,
	      uint64_t seed)
{
	static char kinds[] = "psc";
	static const char *const names[] = {"pfs_prefix", "pfs_suffix", "pfs_contains"};

	memset(w, 0, sizeof(*w));
	w->random = seed;
	w->run = (struct pfs_run){
		.operators = operators, .on = on, .charge = charge, .context = &w->charged};
	assert_int_equal(sqlite3_open(":memory:", &w->db), SQLITE_OK);
	/* SQLite 3.40's automatic indexes miss pairs that are equal by RTRIM only. */
	assert_int_equal(sqlite3_exec(w->db, "PRAGMA automatic_index = OFF", NULL, NULL, NULL),
			 SQLITE_OK);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(sqlite3_create_function(w->db, names[i], 2, SQLITE_UTF8, &kinds[i],
							 match, NULL, NULL),
				 SQLITE_OK);
}

static void free_table(struct ref_table *t)
{
	for (size_t i = 0; i < t->n_memory; i++)
		free(t->memory[i]);
	free(t->values);
	memset(t, 0, sizeof(*t));
}

void ref_close(struct ref_world *w)
{
	free_table(&w->a);
	free_table(&w->b);
	for (unsigned i = 0; i < REF_TEXTS; i++)
		free(w->texts[i]);
	assert_int_equal(sqlite3_close(w->db), SQLITE_OK);
	assert_int_equal(w->charged, 0);
}

/* ---- values ---- */

static void make_texts(struct ref_world *w)
{
	static const char *const parts[] = {"a",
					    "A",
					    "b",
					    "%",
					    "_",
					    "*",
					    "?",
					    "[",
					    "]",
					    "^",
					    "-",
					    " ",
					    "\xc3\xa9",
					    "\xff",
					    "\xe2\x82",
					    "ab",
					    "Ab",
					    "0",
					    "12",
					    "a_",
					    "a%",
					    "%a",
					    "\xf0\x9f\x98\x80"};

	for (unsigned i = 0; i < REF_TEXTS; i++) {
		char text[300];
		unsigned n = ref_below(w, i % 16 == 15 ? 40 : 5);
		size_t len = 0;

		for (unsigned k = 0; k < n; k++) {
			const char *part = parts[ref_below(w, PFS_COUNT(parts))];

			memcpy(text + len, part, strlen(part));
			len += strlen(part);
		}
		text[len] = 0;
		free(w->texts[i]);
		w->texts[i] = malloc(len + 1);
		memcpy(w->texts[i], text, len + 1);
		if (len > 2 && ref_below(w, 12) == 0)
			w->texts[i][1] = 0; /* a NUL within */
		w->text_len[i] = len;
	}
}

int64_t ref_integer(struct ref_world *w)
{
	static const int64_t special[] = {0,
					  1,
					  -1,
					  INT64_MAX,
					  INT64_MIN,
					  INT64_MAX - 1,
					  (INT64_C(1) << 53),
					  (INT64_C(1) << 53) + 1,
					  -(INT64_C(1) << 53) - 1,
					  INT64_C(1) << 62,
					  -(INT64_C(1) << 62)};

	if (ref_below(w, 12) == 0)
		return special[ref_below(w, PFS_COUNT(special))];
	if (ref_below(w, 8) == 0)
		return (int64_t)random_next(&w->random);
	if (ref_below(w, 3) == 0)
		return (int64_t)ref_below(w, 5) - 2;
	return (int64_t)ref_below(w, 60) - 20;
}

double ref_real(struct ref_world *w)
{
	static const double special[] = {0.0,
					 -0.0,
					 0.5,
					 1e300,
					 -1e300,
					 9007199254740992.0,
					 9007199254740994.0,
					 9223372036854775808.0,
					 9223372036854774784.0,
					 -9223372036854775808.0,
					 1e-310,
					 INFINITY};

	if (ref_below(w, 8) == 0)
		return special[ref_below(w, PFS_COUNT(special))];
	return ref_below(w, 2) ? (double)ref_below(w, 40) - 10
			       : (double)ref_below(w, 4000) / 64 - 20;
}

static struct pfs_constant integer_constant(int64_t value)
{
	return (struct pfs_constant){.type = PFS_IS_INTEGER, .integer = value};
}

static struct pfs_constant real_constant(double value)
{
	return (struct pfs_constant){.type = PFS_IS_REAL, .real = value};
}

struct pfs_constant ref_text(struct ref_world *w)
{
	unsigned i = ref_below(w, REF_TEXTS);

	return (struct pfs_constant){
		.type = PFS_IS_TEXT, .text = w->texts[i], .len = w->text_len[i]};
}

/* ---- tables ---- */

static void *keep(struct ref_table *t, size_t size)
{
	void *memory = calloc(1, size + 16);

	assert_non_null(memory);
	assert_true(t->n_memory < PFS_COUNT(t->memory));
	t->memory[t->n_memory++] = memory;
	return memory;
}

static struct pfs_constant *value_of(struct ref_table *t, uint32_t row, unsigned column)
{
	return &t->values[(size_t)row * REF_COLUMNS_MAX + column];
}

static void put(void *data, unsigned width, uint32_t i, uint64_t value)
{
	memcpy((char *)data + (size_t)i * width, &value, width); /* little-endian */
}

static void make_integers(struct ref_world *w, struct ref_table *t, unsigned column, void *data,
			  uint32_t n, const uint32_t *via)
{
	struct pfs_table_column *c = &t->columns[column];
	uint32_t n_elements = via ? c->n_elements : n;
	uint64_t *raw = calloc(n_elements + 1, sizeof(*raw));

	assert_non_null(raw);
	for (uint32_t i = 0; i < n_elements; i++) {
		raw[i] = c->width == 8 ? (uint64_t)ref_integer(w) : ref_below(w, 200);
		put(data, c->width, i, raw[i]);
	}
	for (uint32_t row = 0; row < n; row++) {
		uint32_t at = via ? via[row] : row;
		uint64_t value;

		if (at == PFS_NO_ROW)
			continue;
		value = raw[at];
		if (c->width < 8)
			value &= (UINT64_C(1) << 8 * c->width) - 1;
		if (c->is_signed && c->width == 1)
			value = (uint64_t)(int64_t)(int8_t)value;
		value >>= c->shift;
		if (c->mask)
			value &= c->mask;
		*value_of(t, row, column) = integer_constant((int64_t)(value + (uint64_t)c->base));
	}
	free(raw);
}

static void make_codes(struct ref_world *w, struct ref_table *t, unsigned column, void *data,
		       uint32_t n)
{
	struct pfs_dictionary *d = &t->dictionary[column];
	uint8_t *bytes = keep(t, REF_TEXTS * 300);
	uint64_t *offset = keep(t, (REF_TEXTS + 1) * sizeof(*offset));
	unsigned of_code[REF_TEXTS], count = 0;

	for (unsigned i = 0; i < REF_TEXTS; i++) { /* no text twice */
		bool is_new = ref_below(w, 4) > 0;

		for (unsigned k = 0; k < count; k++)
			is_new &= w->text_len[of_code[k]] != w->text_len[i] ||
				  memcmp(w->texts[of_code[k]], w->texts[i], w->text_len[i]) != 0;
		if (!is_new)
			continue;
		memcpy(bytes + offset[count], w->texts[i], w->text_len[i]);
		offset[count + 1] = offset[count] + w->text_len[i];
		of_code[count++] = i;
	}
	*d = (struct pfs_dictionary){.bytes = bytes, .offset = offset, .n = count};
	t->columns[column].dictionary = d;
	for (uint32_t row = 0; row < n && count; row++) {
		uint32_t code = ref_below(w, count);

		put(data, t->columns[column].width, row, code);
		*value_of(t, row, column) =
			(struct pfs_constant){.type = PFS_IS_TEXT,
					      .text = w->texts[of_code[code]],
					      .len = w->text_len[of_code[code]]};
	}
}

static void make_places(struct ref_world *w, struct ref_table *t, unsigned column, uint32_t *places,
			uint32_t n)
{
	struct pfs_heap *h = &t->heap[column];
	uint32_t of_text[REF_TEXTS];
	uint8_t *bytes = keep(t, REF_TEXTS * 300);
	uint64_t at = 0;

	h->place_shift = ref_below(w, 2) ? 2 : 0;
	h->length_size = ref_below(w, 2) ? 4 : 1;
	for (unsigned i = 0; i < REF_TEXTS; i++)
		if (memchr(w->texts[i], 0, w->text_len[i]))
			h->length_size = 4; /* others have no NUL */
	for (unsigned i = 0; i < REF_TEXTS; i++) {
		of_text[i] = (uint32_t)(at >> h->place_shift);
		memcpy(bytes + at, &w->text_len[i], h->length_size);
		memcpy(bytes + at + h->length_size, w->texts[i], w->text_len[i]);
		at += h->length_size + w->text_len[i];
		at = (at + 3) & ~UINT64_C(3);
	}
	h->bytes = bytes;
	h->size = at;
	t->columns[column].heap = h;
	for (uint32_t row = 0; row < n; row++) {
		unsigned i = ref_below(w, REF_TEXTS);

		places[row] = of_text[i];
		*value_of(t, row, column) = (struct pfs_constant){
			.type = PFS_IS_TEXT, .text = w->texts[i], .len = w->text_len[i]};
	}
}

static void describe_integers(struct ref_world *w, struct ref_table *t, unsigned column, uint32_t n)
{
	static const uint8_t widths[] = {1, 2, 4, 8, 8};
	struct pfs_table_column *c = &t->columns[column];
	uint32_t *via;

	c->kind = PFS_KIND_INTEGER;
	c->width = widths[ref_below(w, PFS_COUNT(widths))];
	c->is_signed = c->width == 8 || ref_below(w, 2);
	if (c->width < 8 && !c->is_signed && ref_below(w, 2)) {
		c->shift = (uint8_t)ref_below(w, 5);
		c->mask = 15;
	}
	if (c->width < 8 && ref_below(w, 3) == 0)
		c->base = (int64_t)ref_below(w, 1000) - 500;
	if (c->is_signed && c->width < 8)
		c->is_signed = c->width == 1;
	if (ref_below(w, 4) == 0) {
		c->n_elements = 1 + ref_below(w, 50);
		via = keep(t, (size_t)n * sizeof(*via));
		for (uint32_t i = 0; i < n; i++)
			via[i] = ref_below(w, 9) ? ref_below(w, c->n_elements) : PFS_NO_ROW;
		c->via = via;
	}
}

static void make_column(struct ref_world *w, struct ref_table *t, unsigned column, uint32_t n)
{
	struct pfs_table_column *c = &t->columns[column];
	void *data = keep(t, (size_t)(n + 64) * 8);
	unsigned kind = column < 4 ? column : ref_below(w, 4);
	static const uint8_t widths[] = {1, 2, 4};
	uint64_t *nulls;

	c->data = data;
	switch (kind) {
	case 0:
		describe_integers(w, t, column, n);
		make_integers(w, t, column, data, n, c->via);
		break;
	case 1:
		c->kind = PFS_KIND_REAL;
		c->width = 8;
		for (uint32_t row = 0; row < n; row++) {
			((double *)data)[row] = ref_real(w);
			*value_of(t, row, column) = real_constant(((double *)data)[row]);
		}
		break;
	case 2:
		c->kind = PFS_KIND_CODE;
		c->width = widths[ref_below(w, 3)];
		make_codes(w, t, column, data, n);
		break;
	default:
		c->kind = PFS_KIND_PLACE;
		c->width = 4;
		make_places(w, t, column, data, n);
	}
	if (c->via || (ref_below(w, 2) && (kind != 2 || c->dictionary->n))) {
		c->not_null = !c->via;
		return;
	}
	nulls = keep(t, n / 8 + 16);
	c->nulls = nulls;
	for (uint32_t row = 0; row < n; row++) {
		if (ref_below(w, 5) && (kind != 2 || c->dictionary->n))
			continue;
		nulls[row / 64] |= UINT64_C(1) << row % 64;
		*value_of(t, row, column) = (struct pfs_constant){.type = PFS_IS_NULL};
	}
}

static void bind(sqlite3_stmt *statement, int at, const struct pfs_constant *c)
{
	int error = SQLITE_OK;

	switch (c->type) {
	case PFS_IS_NULL:
		error = sqlite3_bind_null(statement, at);
		break;
	case PFS_IS_INTEGER:
		error = sqlite3_bind_int64(statement, at, c->integer);
		break;
	case PFS_IS_REAL:
		error = sqlite3_bind_double(statement, at, c->real);
		break;
	case PFS_IS_TEXT:
		error = sqlite3_bind_text(statement, at, c->text, (int)c->len, SQLITE_TRANSIENT);
	}
	assert_int_equal(error, SQLITE_OK);
}

static void exec(struct ref_world *w, const char *sql)
{
	assert_int_equal(sqlite3_exec(w->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static bool is_live(const struct ref_table *t, uint32_t row)
{
	return !t->table.live || (t->table.live[row / 64] >> row % 64 & 1);
}

static void store(struct ref_world *w, struct ref_table *t, const char *name)
{
	char sql[200];
	sqlite3_stmt *statement;

	(void)snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS %s", name);
	exec(w, sql);
	(void)snprintf(sql, sizeof(sql), "CREATE TABLE %s(r,c0,c1,c2,c3,c4,c5,c6,c7,c8,c9)", name);
	exec(w, sql);
	exec(w, "BEGIN");
	(void)snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES(?,?,?,?,?,?,?,?,?,?,?)", name);
	statement = ref_prepare(w, sql, NULL);
	for (uint32_t row = 0; row < t->table.n_rows; row++) {
		if (!is_live(t, row))
			continue;
		(void)sqlite3_bind_int64(statement, 1, row);
		for (unsigned i = 0; i < REF_COLUMNS_MAX; i++)
			bind(statement, (int)i + 2, value_of(t, row, i));
		assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
		(void)sqlite3_reset(statement);
	}
	(void)sqlite3_finalize(statement);
	exec(w, "COMMIT");
}

static void fill(struct ref_world *w, struct ref_table *t, uint32_t n, const char *name)
{
	uint64_t *live;

	free_table(t);
	t->values = calloc((size_t)n * REF_COLUMNS_MAX + 1, sizeof(*t->values));
	assert_non_null(t->values);
	t->table = (struct pfs_table){
		.n_rows = n, .n_columns = REF_COLUMNS_MAX, .columns = t->columns};
	for (unsigned i = 0; i < REF_COLUMNS_MAX; i++)
		make_column(w, t, i, n);
	if (ref_below(w, 2)) {
		live = keep(t, n / 8 + 16);
		for (uint32_t row = 0; row < n; row++)
			live[row / 64] |= (uint64_t)(ref_below(w, 10) != 0) << row % 64;
		t->table.live = live;
	}
	assert_true(pfs_table_is_sound(&t->table));
	store(w, t, name);
}

void ref_fill(struct ref_world *w, uint32_t n_a, uint32_t n_b)
{
	make_texts(w);
	fill(w, &w->a, n_a, "a");
	fill(w, &w->b, n_b, "b");
}

/* ---- statements ---- */

sqlite3_stmt *ref_prepare(struct ref_world *w, const char *sql, const struct ref_expression *e)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(w->db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sqlite3_errmsg(w->db), sql);
	for (size_t i = 0; e && i < e->n_bound; i++)
		bind(statement, (int)i + 1, &e->bound[i]);
	return statement;
}
