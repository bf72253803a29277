/* SPDX-License-Identifier: MIT */
/* tests/unit/predicate_util.h - what predicates mean, told naively of one model, and random ones.
 *
 * The model has been looked at (model_look) before anything is asked; nodes are named by their
 * place in it.  naive_integer, naive_bytes: a field's value, PFS_FIELD_NONE or NULL for none; a
 * field that nobody has said the meaning of fails the test.  naive_holds: whether a predicate of
 * random_predicate holds of a node; of one about a node's place in the tree, `high` is the other
 * node's.  random_predicate: the texts of a predicate last until the next of the same number,
 * which is below eight; bits, which only number 0 may have, until the next that has some. */
#ifndef PFS_TESTS_UNIT_PREDICATE_UTIL_H
#define PFS_TESTS_UNIT_PREDICATE_UTIL_H

#include "scan_util.h"

#include <sqlite3.h>

static struct model model;

/* ---- what fields and tests mean, naively ---- */

static int64_t naive_time(struct timespec time)
{
	int64_t ns;

	if (__builtin_mul_overflow((int64_t)time.tv_sec, INT64_C(1000000000), &ns) ||
	    __builtin_add_overflow(ns, time.tv_nsec, &ns))
		return time.tv_sec < 0 ? INT64_MIN + 1 : INT64_MAX;
	return ns;
}

static int64_t naive_type(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return 'f';
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'l';
	case S_IFIFO:
		return 'p';
	case S_IFSOCK:
		return 's';
	default:
		return S_ISCHR(mode) ? 'c' : 'b';
	}
}

static int64_t naive_total(enum pfs_field field, const struct seen *seen)
{
	switch (field) {
	case PFS_FIELD_SUBTREE_COUNT:
		return seen->count;
	case PFS_FIELD_SUBTREE_SIZE:
		return seen->size;
	case PFS_FIELD_SUBTREE_BLOCKS:
		return seen->blocks;
	case PFS_FIELD_SUBTREE_MTIME:
		return naive_time(seen->newest);
	default:
		fail_msg("%s: what is it, naively?", pfs_fields[field].name);
		return 0;
	}
}

static int64_t naive_integer(enum pfs_field field, size_t i)
{
	const struct stat *st = &model.seen[i].attr;

	switch (field) {
	case PFS_FIELD_INO:
		return (int64_t)st->st_ino;
	case PFS_FIELD_PARENT:
		return i ? (int64_t)model.seen[model.seen[i].parent].ino : PFS_FIELD_NONE;
	case PFS_FIELD_DEPTH:
		return model.seen[i].depth;
	case PFS_FIELD_TYPE:
		return naive_type(st->st_mode);
	case PFS_FIELD_MODE:
		return st->st_mode;
	case PFS_FIELD_UID:
		return st->st_uid;
	case PFS_FIELD_GID:
		return st->st_gid;
	case PFS_FIELD_SIZE:
		return st->st_size;
	case PFS_FIELD_BLOCKS:
		return st->st_blocks;
	case PFS_FIELD_NLINK:
	case PFS_FIELD_LINKS:
		return (int64_t)st->st_nlink;
	case PFS_FIELD_LINK: /* tests/cli/hard_links.sh has some */
	case PFS_FIELD_COMPARED: /* and tests/cli/refresh.sh these */
		return PFS_FIELD_NONE;
	case PFS_FIELD_MTIME:
		return naive_time(st->st_mtim);
	case PFS_FIELD_ATIME:
		return naive_time(st->st_atim);
	case PFS_FIELD_CTIME:
		return naive_time(st->st_ctim);
	case PFS_FIELD_RDEV:
		return (int64_t)st->st_rdev;
	default:
		return naive_total(field, &model.seen[i]);
	}
}

static const char *naive_bytes(enum pfs_field field, size_t i)
{
	const char *dot;

	switch (field) {
	case PFS_FIELD_NAME:
		return model.seen[i].name;
	case PFS_FIELD_EXT:
		dot = strrchr(model.seen[i].name, '.');
		return dot && dot != model.seen[i].name ? dot + 1 : NULL;
	case PFS_FIELD_TARGET:
		return model.seen[i].target;
	case PFS_FIELD_PATH:
	case PFS_FIELD_PREORDER:
		return model.seen[i].path;
	default:
		fail_msg("%s: what is it, naively?", pfs_fields[field].name);
		return NULL;
	}
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, PFS_MIN(a_len, b_len));

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

static bool naive_text_test(const struct pfs_predicate *p, const char *bytes)
{
	const char *text = p->text ? p->text : ""; /* a range alone may have none */
	size_t len = strlen(bytes);

	switch (p->test) {
	case PFS_TEST_EQUAL:
		return compare(bytes, len, text, p->text_len) == 0;
	case PFS_TEST_BETWEEN:
		return (!p->text || compare(bytes, len, p->text, p->text_len) >= 0) &&
		       (!p->high_text || compare(bytes, len, p->high_text, p->high_len) < 0);
	case PFS_TEST_GLOB:
		return sqlite3_strglob(text, bytes) == 0;
	case PFS_TEST_LIKE:
		return sqlite3_strlike(text, bytes, 0) == 0;
	case PFS_TEST_CONTAINS:
		return strstr(bytes, text) != NULL;
	case PFS_TEST_PREFIX:
		return strncmp(bytes, text, p->text_len) == 0;
	default:
		return len >= p->text_len && !strcmp(bytes + len - p->text_len, text);
	}
}

static bool naive_relation(const struct pfs_predicate *p, size_t i)
{
	size_t top = (size_t)p->high; /* that is where the test keeps it */

	switch (p->test) {
	case PFS_TEST_UNDER:
		return model_is_under(&model, i, top);
	case PFS_TEST_CHILD_OF:
		return i && model.seen[i].parent == top;
	default:
		return i != top && model_is_under(&model, top, i);
	}
}

static bool has_bit(const uint64_t *bits, uint32_t slot)
{
	return bits[slot / 64] >> slot % 64 & 1;
}

static bool naive_holds(const struct pfs_predicate *p, size_t i)
{
	const char *bytes;
	int64_t value;

	if (p->test == PFS_TEST_SHOWN)
		return (!i || has_bit(p->bits, model.seen[model.seen[i].parent].slot)) !=
		       p->negated;
	if (p->test >= PFS_TEST_UNDER)
		return naive_relation(p, i) != p->negated;
	if (pfs_field_is_bytes(p->field)) {
		bytes = naive_bytes(p->field, i);
		if (p->test == PFS_TEST_NONE)
			return !bytes != p->negated;
		return bytes && naive_text_test(p, bytes) != p->negated;
	}
	value = naive_integer(p->field, i);
	if (p->test == PFS_TEST_NONE)
		return (value == PFS_FIELD_NONE) != p->negated;
	if (value == PFS_FIELD_NONE)
		return false;
	if (p->test == PFS_TEST_MASK)
		return ((value & p->low) == p->high) != p->negated;
	return (value >= p->low && value <= p->high) != p->negated;
}

/* ---- random predicates ---- */

/* Texts live as long as the round. */
static char texts[16][700];

static const char *keep(size_t which, const char *from, size_t len)
{
	len = PFS_MIN(len, sizeof(texts[0]) - 1);
	if (len)
		memcpy(texts[which], from, len);
	texts[which][len] = 0;
	return texts[which];
}

static void random_range(struct pfs_predicate *p)
{
	int64_t a = naive_integer(p->field, rnd((uint32_t)model.n));
	int64_t b = naive_integer(p->field, rnd((uint32_t)model.n));

	p->test = rnd(12) ? PFS_TEST_RANGE : PFS_TEST_NONE;
	p->low = rnd(6) ? PFS_MIN(a, b) : INT64_MIN;
	p->high = rnd(3) ? PFS_MAX(a, b) : rnd(2) ? p->low : INT64_MAX;
	if (p->field == PFS_FIELD_MODE && rnd(2)) {
		p->test = PFS_TEST_MASK;
		p->low = 1 << rnd(9);
		p->low |= 1 << rnd(9);
		p->high = p->low & rnd(01000);
	}
}

/* A piece of somebody's value, with wildcards here and there. */
static void random_text(struct pfs_predicate *p, size_t which)
{
	static const char *const wild[] = {"*",	   "?",	   "%", "_",  "[a-z]",
					   "[^a]", "[]a]", "[", "**", "*?"};
	const char *bytes = naive_bytes(p->field, rnd((uint32_t)model.n));
	size_t len, from;
	char out[700];
	size_t n = 0;

	bytes = bytes ? bytes : "a";
	len = strlen(bytes);
	from = rnd(2) ? 0 : rnd((uint32_t)len + 1);
	if (rnd(3))
		len = from + rnd((uint32_t)(PFS_MIN(len - from, 5)) + 1);
	if (p->test == PFS_TEST_EQUAL && rnd(4))
		from = 0, len = strlen(bytes);
	if (p->test == PFS_TEST_SUFFIX)
		len = strlen(bytes);
	for (size_t i = from; i < len && n < 500; i++) {
		const char *w = wild[rnd(PFS_COUNT(wild))];

		if ((p->test == PFS_TEST_GLOB || p->test == PFS_TEST_LIKE) && rnd(3) == 0) {
			n += (size_t)snprintf(out + n, sizeof(out) - n, "%s", w);
			i -= rnd(2);
			if (i + 1 == 0)
				i = 0;
		} else {
			out[n++] = bytes[i];
		}
	}
	p->text = keep(which, out, n);
	p->text_len = n;
}

static void random_bytes_test(struct pfs_predicate *p, size_t which)
{
	static const enum pfs_test tests[] = {PFS_TEST_EQUAL,	 PFS_TEST_BETWEEN, PFS_TEST_GLOB,
					      PFS_TEST_LIKE,	 PFS_TEST_CONTAINS, PFS_TEST_PREFIX,
					      PFS_TEST_SUFFIX, PFS_TEST_NONE,	   PFS_TEST_GLOB};

	p->test = tests[rnd(PFS_COUNT(tests))];
	random_text(p, 2 * which);
	if (p->test != PFS_TEST_BETWEEN)
		return;
	p->high_text = p->text;
	p->high_len = p->text_len;
	random_text(p, 2 * which + 1);
	if (rnd(4) == 0) {
		p->text = NULL;
		p->text_len = 0;
	} else if (rnd(4) == 0) {
		p->high_text = NULL;
		p->high_len = 0;
	}
}

static void random_shown(struct pfs_predicate *p)
{
	static uint64_t bits[4096];

	assert_true(pfs_scan_end(model.tree) <= PFS_COUNT(bits) * 64);
	for (size_t i = 0; i < PFS_COUNT(bits); i++)
		bits[i] = (uint64_t)rnd(UINT32_MAX) << 32 | rnd(UINT32_MAX);
	p->test = PFS_TEST_SHOWN;
	p->bits = bits;
}

/* Any, but for an offset of readdir, which tests/cli/du.sh looks at, and what nothing tests. */
static enum pfs_field random_field(bool has_bytes)
{
	enum pfs_field field;

	do
		field = 1 + rnd(PFS_FIELD_COUNT - 1);
	while (pfs_field_is_bytes(field) != has_bytes || field == PFS_FIELD_READDIR ||
	       field == PFS_FIELD_PREORDER || field == PFS_FIELD_COMPARED);
	return field;
}

static void random_predicate(struct pfs_predicate *p, size_t which)
{
	*p = (struct pfs_predicate){.negated = rnd(4) == 0};
	if (which == 0 && rnd(10) == 0) {
		random_shown(p);
	} else if (rnd(4) == 0) {
		p->test = PFS_TEST_UNDER + rnd(3);
		p->high = rnd((uint32_t)model.n);
		p->low = (int64_t)model.seen[p->high].ino;
	} else if (rnd(2)) {
		p->field = random_field(false);
		random_range(p);
	} else {
		p->field = random_field(true);
		random_bytes_test(p, which);
	}
}

#endif
