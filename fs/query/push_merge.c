/* SPDX-License-Identifier: MIT */
/* Predicates that say the same become one: of a BETWEEN SQLite shows two halves, each of which may be
 * true for many, and beside a GLOB the range of what begins as its pattern. */
#include <string.h>

#include "base/checked.h"
#include "fs/query/internal.h"

/* By memcmp, the shorter one first. */
static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t n = PFS_MIN(a_len, b_len);
	int order = n ? memcmp(a, b, n) : 0;

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* What is in both ranges of texts. */
static void narrow(struct pfs_predicate *old, const struct pfs_predicate *p)
{
	if (p->text && (!old->text ||
			compare(p->text, p->text_len, old->text, old->text_len) > 0)) {
		old->text = p->text;
		old->text_len = p->text_len;
	}
	if (p->high_text && (!old->high_text || compare(p->high_text, p->high_len, old->high_text,
							old->high_len) < 0)) {
		old->high_text = p->high_text;
		old->high_len = p->high_len;
	}
}

/* Whether a text for which p is true is in the range. */
static bool implies(const struct pfs_predicate *p, const struct pfs_predicate *range)
{
	size_t shared = PFS_MIN(p->text_len, range->high_len);

	if (range->test != PFS_TEST_BETWEEN ||
	    (range->text && compare(range->text, range->text_len, p->text, p->text_len) > 0))
		return false;
	if (!range->high_text)
		return true;
	if (p->test == PFS_TEST_EQUAL)
		return compare(p->text, p->text_len, range->high_text, range->high_len) < 0;
	/* what begins so goes on in any way */
	return shared && memcmp(p->text, range->high_text, shared) < 0;
}

static bool is_start(const struct pfs_predicate *p)
{
	return p->test == PFS_TEST_EQUAL || p->test == PFS_TEST_PREFIX;
}

/* Whether the old one says it all now. */
static bool merge(struct pfs_pushed *pushed, struct pfs_predicate *old,
		  const struct pfs_predicate *p)
{
	if (old->field != p->field || old->negated || p->negated)
		return false;
	if (old->test == PFS_TEST_RANGE && p->test == PFS_TEST_RANGE) {
		old->low = PFS_MAX(old->low, p->low);
		old->high = PFS_MIN(old->high, p->high);
		pushed->nothing |= old->low > old->high;
		return true;
	}
	if (old->test == PFS_TEST_BETWEEN && p->test == PFS_TEST_BETWEEN) {
		narrow(old, p);
		return true;
	}
	if (is_start(p) && implies(p, old))
		*old = *p;
	else if (!is_start(old) || !implies(old, p))
		return false;
	return true;
}

bool pfs_pushed_merge(struct pfs_pushed *pushed, const struct pfs_predicate *predicate)
{
	for (size_t i = 0; i < pushed->n; i++)
		if (merge(pushed, &pushed->predicates[i], predicate))
			return true;
	return false;
}
