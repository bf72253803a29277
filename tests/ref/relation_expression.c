/* SPDX-License-Identifier: MIT */
/* Random expressions, as programs and as SQL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ref/relation.h"

static struct pfs_constant integer_constant(int64_t value)
{
	return (struct pfs_constant){.type = PFS_IS_INTEGER, .integer = value};
}

static struct pfs_constant real_constant(double value)
{
	return (struct pfs_constant){.type = PFS_IS_REAL, .real = value};
}

__attribute__((format(printf, 2, 3))) static void say(struct ref_expression *e, const char *format,
						      ...)
{
	va_list args;

	va_start(args, format);
	e->len += (size_t)vsnprintf(e->sql + e->len, sizeof(e->sql) - e->len, format, args);
	va_end(args);
	assert_true(e->len < sizeof(e->sql));
}

static struct pfs_step *step(struct ref_expression *e, enum pfs_op op)
{
	assert_true(e->n < REF_STEPS_MAX);
	e->steps[e->n] = (struct pfs_step){.op = op};
	return &e->steps[e->n++];
}

static void say_bound(struct ref_expression *e, const struct pfs_constant *c)
{
	e->bound[e->n_bound++] = *c;
	say(e, "?%zu", e->n_bound);
}

static void say_constant(struct ref_expression *e, struct pfs_constant c)
{
	step(e, PFS_OP_CONSTANT)->constant = c;
	say_bound(e, &c);
}

/* A column of numbers, or of texts. */
static void say_column(struct ref_world *w, struct ref_expression *e, bool is_text)
{
	unsigned i;

	do
		i = ref_below(w, REF_COLUMNS_MAX);
	while (is_text !=
	       (w->a.columns[i].kind == PFS_KIND_CODE || w->a.columns[i].kind == PFS_KIND_PLACE));
	step(e, PFS_OP_COLUMN)->ref.column = (uint16_t)i;
	say(e, "c%u", i);
}

static struct pfs_constant number_constant(struct ref_world *w)
{
	if (ref_below(w, 20) == 0)
		return (struct pfs_constant){.type = PFS_IS_NULL};
	return ref_below(w, 2) ? integer_constant(ref_integer(w)) : real_constant(ref_real(w));
}

static void say_text(struct ref_world *w, struct ref_expression *e)
{
	if (ref_below(w, 4) == 0)
		say_constant(e, ref_text(w));
	else
		say_column(w, e, true);
}

static void say_arithmetic(struct ref_world *w, struct ref_expression *e, unsigned depth)
{
	static const char *const signs[] = {"+", "-", "*", "/", "%", "&", "|", "<<", ">>"};
	unsigned which = ref_below(w, PFS_COUNT(signs));

	say(e, "(");
	ref_number(w, e, depth - 1);
	say(e, " %s ", signs[which]);
	ref_number(w, e, depth - 1);
	say(e, ")");
	(void)step(e, (enum pfs_op)(PFS_OP_ADD + which));
}

static void say_unary(struct ref_world *w, struct ref_expression *e, unsigned depth)
{
	static const struct {
		enum pfs_op op;
		const char *before, *after;
	} forms[] = {
		{PFS_OP_NEGATE, "(-", ")"},
		{PFS_OP_BIT_NOT, "(~", ")"},
		{PFS_OP_TO_INTEGER, "(+CAST(", " AS INTEGER))"},
		{PFS_OP_TO_REAL, "(+CAST(", " AS REAL))"},
	};
	unsigned which = ref_below(w, PFS_COUNT(forms));

	say(e, "%s", forms[which].before);
	say(e, "(");
	ref_number(w, e, depth - 1);
	say(e, ")");
	say(e, "%s", forms[which].after);
	(void)step(e, forms[which].op);
}

void ref_number(struct ref_world *w, struct ref_expression *e, unsigned depth)
{
	switch (depth ? ref_below(w, 9) : ref_below(w, 4)) {
	case 0:
		say_constant(e, number_constant(w));
		return;
	case 1:
	case 2:
	case 3:
		say_column(w, e, false);
		return;
	case 4:
		say_unary(w, e, depth);
		return;
	case 5:
		say(e, "length(");
		say_text(w, e);
		say(e, ")");
		(void)step(e, PFS_OP_LENGTH);
		return;
	case 6:
		say(e, "(CASE WHEN ");
		ref_truth(w, e, depth - 1);
		say(e, " THEN ");
		ref_number(w, e, depth - 1);
		say(e, " ELSE ");
		ref_number(w, e, depth - 1);
		say(e, " END)");
		(void)step(e, PFS_OP_CHOOSE);
		return;
	default:
		say_arithmetic(w, e, depth);
	}
}

static void say_value(struct ref_world *w, struct ref_expression *e, unsigned depth, bool is_text)
{
	if (is_text)
		say_text(w, e);
	else
		ref_number(w, e, depth);
}

static enum pfs_collation say_collation(struct ref_world *w, struct ref_expression *e, unsigned n)
{
	static const char *const names[] = {"BINARY", "NOCASE", "RTRIM"};
	unsigned which = ref_below(w, n);

	say(e, " COLLATE %s", names[which]);
	return (enum pfs_collation)which;
}

/* Of what is compared some is computed, where the expression is not deep, too. */
static unsigned depth_of_value(struct ref_world *w, unsigned depth)
{
	return depth ? depth : ref_below(w, 3) == 0;
}

static void say_comparison(struct ref_world *w, struct ref_expression *e, unsigned depth)
{
	static const char *const signs[] = {"=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"};
	unsigned which = ref_below(w, PFS_COUNT(signs));
	bool is_text = ref_below(w, 2), other_is_text = is_text != (ref_below(w, 10) == 0);
	enum pfs_collation collation;

	say(e, "(");
	say_value(w, e, depth_of_value(w, depth), is_text);
	collation = say_collation(w, e, 3);
	say(e, " %s ", signs[which]);
	say_value(w, e, ref_below(w, 2) ? depth : 0, other_is_text);
	say(e, ")");
	step(e, (enum pfs_op)(PFS_OP_EQ + which))->collation = collation;
}

static void say_between(struct ref_world *w, struct ref_expression *e, unsigned depth)
{
	bool is_text = ref_below(w, 3) == 0;
	enum pfs_collation collation;

	say(e, "(");
	say_value(w, e, depth_of_value(w, depth), is_text);
	collation = say_collation(w, e, 3);
	say(e, " BETWEEN ");
	say_value(w, e, 0, is_text);
	say(e, " AND ");
	say_value(w, e, 0, is_text != (ref_below(w, 9) == 0));
	say(e, ")");
	step(e, PFS_OP_BETWEEN)->collation = collation;
}

static struct pfs_constant random_member(struct ref_world *w, bool is_text)
{
	if (ref_below(w, 8) == 0)
		return (struct pfs_constant){.type = PFS_IS_NULL};
	return is_text != (ref_below(w, 8) == 0) ? ref_text(w) : number_constant(w);
}

static void say_in(struct ref_world *w, struct ref_expression *e, unsigned depth)
{
	unsigned n = ref_below(w, 4) ? ref_below(w, 6) : ref_below(w, 30);
	bool is_text = ref_below(w, 2);
	enum pfs_collation collation;
	struct pfs_step *in;

	if (e->n_lists + n > PFS_COUNT(e->lists))
		n = 0;
	say(e, "(");
	say_value(w, e, depth_of_value(w, depth), is_text);
	/* Members that RTRIM makes equal are a malformed database to SQLite 3.40. */
	collation = say_collation(w, e, 2);
	say(e, " IN (");
	in = step(e, PFS_OP_IN);
	in->collation = collation;
	in->list = &e->lists[e->n_lists];
	in->n_list = n;
	for (unsigned i = 0; i < n; i++) {
		struct pfs_constant c = random_member(w, is_text);

		e->lists[e->n_lists++] = c;
		say(e, i ? "," : "");
		say_bound(e, &c);
	}
	say(e, "))");
}

static void say_match(struct ref_world *w, struct ref_expression *e)
{
	static const char *const names[] = {"LIKE", "GLOB", "pfs_prefix", "pfs_suffix",
					    "pfs_contains"};
	unsigned which = ref_below(w, PFS_COUNT(names));
	struct pfs_constant pattern = ref_text(w);
	struct pfs_step *s;

	say(e, which < 2 ? "(" : "%s(", names[which]);
	say_text(w, e);
	s = step(e, (enum pfs_op)(PFS_OP_LIKE + which));
	s->constant = pattern;
	if (which < 2)
		say(e, " %s ", names[which]);
	else
		say(e, ",");
	say_bound(e, &pattern);
	if (which == 0 && ref_below(w, 3) == 0) {
		static const char escapes[] = "a%_^*";

		s->escape = (uint8_t)escapes[ref_below(w, 5)];
		say(e, " ESCAPE '%c'", (char)s->escape);
	}
	say(e, ")");
}

static void say_set(struct ref_world *w, struct ref_expression *e)
{
	uint32_t n = w->a.table.n_rows, from = ref_below(w, n + 1), to = ref_below(w, n + 1);

	if (e->n_sets == PFS_COUNT(e->sets)) {
		ref_truth(w, e, 0);
		return;
	}
	if (from > to)
		from = to;
	assert_int_equal(pfs_rows_of_range(&w->run, &e->sets[e->n_sets], n, from, to), 0);
	step(e, PFS_OP_BITS)->bits = e->sets[e->n_sets++];
	say(e, "(a.r >= %u AND a.r < %u)", from, to);
}

void ref_truth(struct ref_world *w, struct ref_expression *e, unsigned depth)
{
	unsigned which = depth ? ref_below(w, 12) : ref_below(w, 6);
	bool is_null;

	switch (which) {
	case 0:
	case 1:
		say_comparison(w, e, depth ? depth - 1 : 0);
		return;
	case 2:
		say_between(w, e, depth ? depth - 1 : 0);
		return;
	case 3:
		say_in(w, e, depth ? depth - 1 : 0);
		return;
	case 4:
		say_match(w, e);
		return;
	case 5:
	case 6:
		say(e, "(");
		say_value(w, e, depth_of_value(w, depth ? depth - 1 : 0), ref_below(w, 2));
		is_null = ref_below(w, 2);
		say(e, is_null ? " IS NULL)" : " NOT NULL)");
		(void)step(e, is_null ? PFS_OP_IS_NULL : PFS_OP_NOT_NULL);
		return;
	case 7:
		say(e, "(NOT ");
		ref_truth(w, e, depth - 1);
		say(e, ")");
		(void)step(e, PFS_OP_NOT);
		return;
	case 8:
		say_set(w, e);
		return;
	default:
		say(e, "(");
		ref_truth(w, e, depth - 1);
		say(e, which & 1 ? " AND " : " OR ");
		if (ref_below(w, 8))
			ref_truth(w, e, depth - 1);
		else
			ref_number(w, e, depth - 1); /* true unless 0 */
		say(e, ")");
		(void)step(e, which & 1 ? PFS_OP_AND : PFS_OP_OR);
	}
}

void ref_condition(struct ref_world *w, struct ref_expression *e, unsigned depth)
{
	unsigned which = ref_below(w, 6);

	say(e, which == 0 ? "((" : which < 3 ? "(NOT (" : "(");
	ref_truth(w, e, depth);
	say(e, which == 0 ? ") IS NULL)" : which < 3 ? "))" : ")");
	if (which < 3) /* tells what is false from what is NULL */
		(void)step(e, which == 0 ? PFS_OP_IS_NULL : PFS_OP_NOT);
}

void ref_expression_finish(struct ref_world *w, struct ref_expression *e)
{
	for (size_t i = 0; i < e->n_sets; i++)
		pfs_rows_free(&w->run, e->sets[i]);
	memset(e, 0, sizeof(*e));
}
