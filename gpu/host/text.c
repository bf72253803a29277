/* SPDX-License-Identifier: MIT */
#include "gpu/host/text.h"

#include "base/checked.h"
#include "base/order.h"
#include "base/pattern.h"

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* Compares as SQLite's sqlite3StrNICmp, which stops at a NUL. */
static int compare_nocase(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	size_t n = PFS_MIN(a_len, b_len), i = 0;

	while (i < n && a[i] && lower(a[i]) == lower(b[i]))
		i++;
	if (i < n && lower(a[i]) != lower(b[i]))
		return lower(a[i]) - lower(b[i]);
	return (a_len > b_len) - (a_len < b_len);
}

static size_t trimmed(const uint8_t *text, size_t len)
{
	while (len && text[len - 1] == ' ')
		len--;
	return len;
}

int pfs_text_compare(enum pfs_collation collation, const uint8_t *a, size_t a_len, const uint8_t *b,
		     size_t b_len)
{
	switch (collation) {
	case PFS_NOCASE:
		return compare_nocase(a, a_len, b, b_len);
	case PFS_RTRIM:
		return pfs_compare_bytes(a, trimmed(a, a_len), b, trimmed(b, b_len));
	case PFS_BINARY:
		break;
	}
	return pfs_compare_bytes(a, a_len, b, b_len);
}

int64_t pfs_text_length(const uint8_t *text, size_t len)
{
	int64_t count = 0;

	if (pfs_text_is_plain(text, len))
		return (int64_t)len;
	for (size_t i = 0; i < len && text[i]; count++) {
		if (text[i++] < 0xc0)
			continue;
		while (i < len && (text[i] & 0xc0) == 0x80)
			i++;
	}
	return count;
}

#define LOOK_STEPS (UINT64_C(1) << 20) /* they take a millisecond or two */

/* How many steps this thread has taken at patterns since it polled, at most. */
static _Thread_local uint64_t steps_since;

/* Polls while a text is matched. It never pauses, since the text is read afterwards. */
static int look(void *arg)
{
	struct pfs_run_work *work = arg;

	work->error = pfs_run_check(work->run);
	return work->error;
}

/* Counts the steps that matching a text may take, and polls if many have been taken. Returns false
 * if they are so many that matching this text has to poll, too; then only the text is counted,
 * whose end is looked for first. */
static bool count_steps(const struct pfs_step *step, size_t len, struct pfs_run_work *work)
{
	uint64_t steps = ((uint64_t)step->constant.len + 1) * (len + 1);
	bool is_short = steps <= LOOK_STEPS;

	steps_since += is_short ? steps : len;
	if (steps_since > LOOK_STEPS) {
		steps_since = 0;
		work->error = pfs_run_poll(work->run);
	}
	return is_short;
}

bool pfs_text_matches(const struct pfs_step *step, const struct pfs_text_match *match,
		      const uint8_t *text, size_t len, struct pfs_run_work *work)
{
	const struct pfs_pattern_look until = {look, work};
	bool is_pattern = step->op == PFS_OP_LIKE || step->op == PFS_OP_GLOB, matches = false;
	enum pfs_pattern_kind kind = step->op == PFS_OP_LIKE ? PFS_PATTERN_LIKE : PFS_PATTERN_GLOB;
	uint32_t escape = kind == PFS_PATTERN_LIKE ? step->escape : 0;
	bool is_long = !work->error && is_pattern && !count_steps(step, len, work);

	if (work->error)
		return false;
	if (is_long)
		return (!match || pfs_text_match_ends_hold(match, text, len)) &&
		       pfs_pattern_matches_until(&matches, &until, kind, step->constant.text,
						 escape, text, len) == 0 &&
		       matches;
	if (match && !pfs_text_match_holds_outside(match, text, len))
		return false;
	return (match && match->rest == PFS_REST_NONE) ||
	       pfs_pattern_matches(kind, step->constant.text, escape, text, len);
}
