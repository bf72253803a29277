/* SPDX-License-Identifier: MIT */
/* What of a statement the image answers: constraints that SQLite finds in it, as predicates.
 *
 * A constraint must come out as SQLite's own comparison would.  Numbers: a value's place among the
 * integers is known, so that the answer is exact.  Text: if the other side is a column of numbers
 * SQLite first reads both as numbers; that side is not shown here, so only equality, which is right
 * for a text then, and literals are taken, which alone are exact. */
#include "fs/query/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/order.h"
#include "fs/nodes/relation.h"
#include "meta/store.h"

#define WILDCARDS_GLOB "*?["
#define LEAST	       (INT64_MIN + 1) /* of the integers: below is none */

/* ---- predicates ---- */

void pfs_pushed_finish(struct pfs_pushed *pushed)
{
	for (size_t i = 0; i < pushed->n_text; i++)
		free(pushed->text[i]);
	pushed->n_text = 0;
}

/* The later text by memcmp, the shorter one first; sign -1: the earlier.  NULL: there is none. */
static void choose(const char **old, size_t *old_len, const char *text, size_t len, int sign)
{
	if (text && (!*old || sign * pfs_compare_bytes(text, len, *old, *old_len) > 0)) {
		*old = text;
		*old_len = len;
	}
}

/* What is in both ranges, of a BETWEEN for one, which comes as its two halves; false: these are no
 * such. */
static bool narrow(struct pfs_predicate *old, const struct pfs_predicate *p)
{
	if (old->field != p->field || old->test != p->test || old->negated || p->negated ||
	    (p->test != PFS_TEST_RANGE && p->test != PFS_TEST_BETWEEN))
		return false;
	old->low = PFS_MAX(old->low, p->low);
	old->high = PFS_MIN(old->high, p->high);
	choose(&old->text, &old->text_len, p->text, p->text_len, 1);
	choose(&old->high_text, &old->high_len, p->high_text, p->high_len, -1);
	return true;
}

static void add(struct pfs_pushed *pushed, const struct pfs_predicate *predicate)
{
	for (size_t i = 0; i < pushed->n; i++) {
		if (narrow(&pushed->predicates[i], predicate)) {
			pushed->nothing |= pushed->predicates[i].low > pushed->predicates[i].high;
			return;
		}
	}
	pushed->predicates[pushed->n++] = *predicate;
}

static void add_range(struct pfs_pushed *pushed, enum pfs_field field, int64_t low, int64_t high)
{
	if (low > high)
		pushed->nothing = true;
	else
		add(pushed, &(struct pfs_predicate){.field = field,
						    .test = PFS_TEST_RANGE,
						    .low = PFS_MAX(low, LEAST),
						    .high = high});
}

static void add_none(struct pfs_pushed *pushed, enum pfs_field field, bool negated)
{
	add(pushed, &(struct pfs_predicate){
			    .field = field, .test = PFS_TEST_NONE, .negated = negated});
}

/* ---- numbers ---- */

/* field OP value, with the value between the integers `below` and `above`, which are the same if it
 * is one itself. */
static void add_compared(struct pfs_pushed *pushed, enum pfs_field field, int op, int64_t below,
			 int64_t above)
{
	bool integer = below == above;

	switch (op) {
	case PFS_SQL_EQ:
	case PFS_SQL_IS:
		add_range(pushed, field, integer ? below : 1, integer ? below : 0);
		break;
	case PFS_SQL_NE:
		if (integer)
			add(pushed, &(struct pfs_predicate){.field = field,
							    .test = PFS_TEST_RANGE,
							    .negated = true,
							    .low = PFS_MAX(below, LEAST),
							    .high = below});
		else
			add_none(pushed, field, true);
		break;
	case PFS_SQL_LT:
	case PFS_SQL_LE:
		if (op == PFS_SQL_LT && integer)
			below = below == INT64_MIN ? INT64_MIN : below - 1;
		add_range(pushed, field, LEAST, below);
		break;
	default:
		if (op == PFS_SQL_GT && integer && above == INT64_MAX)
			pushed->nothing = true;
		else
			add_range(pushed, field, op == PFS_SQL_GT && integer ? above + 1 : above,
				  INT64_MAX);
	}
}

/* The value is beyond all integers, on one side. */
static void add_beyond(struct pfs_pushed *pushed, enum pfs_field field, int op, bool above)
{
	bool all = op == PFS_SQL_NE || (above ? op == PFS_SQL_LT || op == PFS_SQL_LE
					      : op == PFS_SQL_GT || op == PFS_SQL_GE);

	if (all)
		add_none(pushed, field, true);
	else
		pushed->nothing = true;
}

static void push_number(struct pfs_pushed *pushed, enum pfs_field field,
			const struct pfs_sql_argument *argument)
{
	const struct pfs_sql_value *value = &argument->number;

	switch (value->type) {
	case PFS_SQL_NULL:
		if (argument->op == PFS_SQL_IS)
			add_none(pushed, field, false);
		else
			pushed->nothing = true;
		break;
	case PFS_SQL_INTEGER:
		add_compared(pushed, field, argument->op, value->integer, value->integer);
		break;
	case PFS_SQL_REAL:
		/* cppcheck-suppress incorrectLogicOperator ; it misreads hexadecimal numbers */
		if (value->real >= 0x1p63 || value->real < -0x1p63)
			add_beyond(pushed, field, argument->op, value->real > 0);
		else
			add_compared(pushed, field, argument->op, (int64_t)floor(value->real),
				     ceil(value->real) >= 0x1p63 ? INT64_MAX
								  : (int64_t)ceil(value->real));
		break;
	default: /* text and blobs are greater than any number */
		add_beyond(pushed, field, argument->op, true);
	}
}

static void push_type(struct pfs_pushed *pushed, const struct pfs_sql_argument *argument)
{
	const struct pfs_sql_value *value = &argument->value;
	bool letter = value->size == 1;

	if (value->type == PFS_SQL_NULL)
		pushed->nothing = true;
	if (value->type != PFS_SQL_TEXT)
		return;
	if (letter)
		add_compared(pushed, PFS_FIELD_TYPE, argument->op, *value->bytes, *value->bytes);
	else if (argument->op != PFS_SQL_NE)
		pushed->nothing = true;
}

/* ---- text ---- */

/* Bytes that stay as long as the predicates, with a NUL after them. */
static int keep(struct pfs_pushed *pushed, const char **out, const char *bytes, size_t size)
{
	char *copy = malloc(size + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, size);
	copy[size] = 0;
	pushed->text[pushed->n_text++] = copy;
	*out = copy;
	return 0;
}

static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] >= 0x80 || strchr(WILDCARDS_GLOB, text[i]))
			return false;
	}
	return true;
}

/* A GLOB that is but a beginning, an end or a part of the text.  SQLite reads UTF-8 where the
 * pattern is not ASCII: such ones are left as they are. */
static void simplify_glob(struct pfs_predicate *predicate)
{
	const char *text = predicate->text;
	size_t len = predicate->text_len;
	bool open_left = len && text[0] == '*', open_right = len > 1 && text[len - 1] == '*';

	text += open_left;
	len -= (size_t)open_left + open_right;
	if (!is_plain(text, len))
		return;
	if (open_left && open_right)
		predicate->test = PFS_TEST_CONTAINS;
	else if (open_left)
		predicate->test = PFS_TEST_SUFFIX;
	else
		predicate->test = open_right ? PFS_TEST_PREFIX : PFS_TEST_EQUAL;
	predicate->text = text;
	predicate->text_len = len;
}

/* A path that no node has, being no path as the tree spells it: "a//b", "a/./b". */
static bool is_canonical(const char *path, size_t len)
{
	const char *end = path + len;

	if (!len || *path != '/')
		return false;
	while (path < end) {
		const char *name = path + 1, *slash;
		size_t n;

		slash = memchr(name, '/', (size_t)(end - name));
		n = (size_t)((slash ? slash : end) - name);
		if (n == 0 || (n == 1 && *name == '.') || (n == 2 && !memcmp(name, "..", 2)))
			return false;
		path = slash ? slash : end;
	}
	return true;
}

/* What begins with "/a/b/..." lies under /a/b: the codes find that faster than the paths. */
static void push_folder(struct pfs_query *query, struct pfs_pushed *pushed,
			const struct pfs_predicate *predicate)
{
	size_t len = predicate->text_len;
	const char *slash;
	uint32_t slot;
	int64_t ino;

	if (predicate->test == PFS_TEST_GLOB)
		len = strcspn(predicate->text, WILDCARDS_GLOB);
	else if (predicate->test != PFS_TEST_PREFIX)
		return;
	slash = memrchr(predicate->text, '/', len);
	if (!slash || slash == predicate->text)
		return;
	len = (size_t)(slash - predicate->text);
	slot = is_canonical(predicate->text, len)
		       ? pfs_relation_resolve(query->tree, query->visible, predicate->text, len)
		       : PFS_NO_SLOT;
	if (slot == PFS_NO_SLOT) {
		pushed->nothing = true;
		return;
	}
	ino = (int64_t)pfs_relation_ino(query->tree, slot);
	add(pushed, &(struct pfs_predicate){.test = PFS_TEST_UNDER, .low = ino});
}

static int push_text(struct pfs_query *query, struct pfs_pushed *pushed, enum pfs_field field,
		     const struct pfs_sql_argument *argument)
{
	const struct pfs_sql_value *value = &argument->value;
	struct pfs_predicate predicate = {.field = field, .test = PFS_TEST_BETWEEN};
	size_t len = value->size;

	if (value->type == PFS_SQL_NULL) {
		if (argument->op == PFS_SQL_IS)
			add_none(pushed, field, false);
		else
			pushed->nothing = true;
	}
	if (value->type != PFS_SQL_TEXT)
		return 0;
	if (argument->op == PFS_SQL_GLOB || argument->op == PFS_SQL_LIKE)
		len = strnlen(value->bytes, len); /* SQLite reads no further */
	/* the least text above one has a NUL more */
	if (argument->op == PFS_SQL_GT || argument->op == PFS_SQL_LE)
		len++;
	PFS_TRY(keep(pushed, &predicate.text, value->bytes, value->size));
	predicate.text_len = len;
	switch (argument->op) {
	case PFS_SQL_EQ:
	case PFS_SQL_IS:
	case PFS_SQL_NE:
		predicate.test = PFS_TEST_EQUAL;
		predicate.negated = argument->op == PFS_SQL_NE;
		break;
	case PFS_SQL_GLOB:
		predicate.test = PFS_TEST_GLOB;
		simplify_glob(&predicate);
		break;
	case PFS_SQL_LIKE:
		predicate.test = PFS_TEST_LIKE;
		break;
	case PFS_SQL_LT:
	case PFS_SQL_LE:
		predicate.high_text = predicate.text;
		predicate.high_len = len;
		predicate.text = NULL;
		predicate.text_len = 0;
		break;
	default:
		break;
	}
	if (field == PFS_FIELD_PATH)
		push_folder(query, pushed, &predicate);
	add(pushed, &predicate);
	return 0;
}

/* ---- arguments ---- */

static void push_call(struct pfs_query *query, struct pfs_pushed *pushed,
		      const struct pfs_sql_argument *argument)
{
	static const enum pfs_test tests[] = {
		[PFS_CALL_UNDER] = PFS_TEST_UNDER,
		[PFS_CALL_CHILD_OF] = PFS_TEST_CHILD_OF,
		[PFS_CALL_ANCESTOR_OF] = PFS_TEST_ANCESTOR_OF,
	};
	uint32_t slot = pfs_query_node(query, &argument->value);

	if (slot == PFS_NO_SLOT)
		pushed->nothing = true;
	else
		add(pushed, &(struct pfs_predicate){
				    .test = tests[argument->op - PFS_SQL_FUNCTION],
				    .low = (int64_t)pfs_relation_ino(query->tree, slot)});
}

static int push_one(struct pfs_query *query, struct pfs_pushed *pushed,
		    const struct pfs_sql_argument *argument)
{
	const struct pfs_node_table *table = query->connection->table;
	const struct pfs_node_column *column =
		&table->columns[argument->column < 0 ? pfs_node_ino : argument->column];

	if (argument->op >= PFS_SQL_FUNCTION)
		push_call(query, pushed, argument);
	else if (argument->op == PFS_SQL_IS_NULL || argument->op == PFS_SQL_NOT_NULL)
		add_none(pushed, column->field, argument->op == PFS_SQL_NOT_NULL);
	else if (column->kind == PFS_NODE_INTEGER)
		push_number(pushed, column->field, argument);
	else if (column->kind == PFS_NODE_TYPE)
		push_type(pushed, argument);
	else
		return push_text(query, pushed, column->field, argument);
	return 0;
}

int pfs_push_arguments(struct pfs_query *query, struct pfs_pushed *pushed,
		       const struct pfs_sql_argument *arguments, size_t n)
{
	pushed->n = pushed->n_text = 0; /* the rest is large */
	pushed->nothing = false;
	if (query->top != PFS_ROOT_PRIME)
		add(pushed, &(struct pfs_predicate){.test = PFS_TEST_UNDER,
						    .low = (int64_t)query->top});
	if (query->visible)
		pushed->predicates[pushed->n++] = pfs_visible_predicate(query->visible);
	for (size_t i = 0; i < n && !pushed->nothing; i++)
		PFS_TRY(push_one(query, pushed, &arguments[i]));
	return 0;
}
