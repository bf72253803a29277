/* SPDX-License-Identifier: MIT */
#include "fs/query/times.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/query/tokens.h"

#define NANOSECONDS INT64_C(1000000000)

/* ---- ISO 8601 ---- */

/* A cursor over the text; once something is missing `ok` is false. */
struct reader {
	const char *at, *end;
	bool ok;
};

static int digits(struct reader *reader, int n)
{
	int value = 0;

	for (; n > 0; n--) {
		if (!reader->ok || reader->at == reader->end || *reader->at < '0' ||
		    *reader->at > '9') {
			reader->ok = false;
			return 0;
		}
		value = value * 10 + (*reader->at++ - '0');
	}
	return value;
}

static bool skip(struct reader *reader, const char *any)
{
	if (!reader->ok || reader->at == reader->end || !strchr(any, *reader->at))
		return false;
	reader->at++;
	return true;
}

static void need(struct reader *reader, char c)
{
	const char any[] = {c, 0};

	reader->ok = skip(reader, any);
}

static int between(struct reader *reader, int value, int low, int high)
{
	if (value < low || value > high)
		reader->ok = false;
	return value;
}

/* Days from 1970-01-01 in the proleptic Gregorian calendar (Hinnant's days_from_civil). */
static int64_t days_from_civil(int year, int month, int day)
{
	int y = month <= 2 ? year - 1 : year;
	int era = (y >= 0 ? y : y - 399) / 400;
	int year_of_era = y - era * 400;
	int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

	return (int64_t)era * 146097 + day_of_era - 719468;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

static int64_t read_date(struct reader *reader)
{
	int year = digits(reader, 4), month, day = 1;

	need(reader, '-');
	month = between(reader, digits(reader, 2), 1, 12);
	if (!reader->ok)
		return 0;
	if (skip(reader, "-"))
		day = between(reader, digits(reader, 2), 1, days_in_month(year, month));
	else if (reader->at != reader->end)
		reader->ok = false;
	return days_from_civil(year, month, day);
}

/* Digits after the point, the first nine of which count. */
static int64_t read_fraction(struct reader *reader)
{
	int64_t value = 0, unit = NANOSECONDS / 10;

	value += digits(reader, 1) * unit;
	while (reader->ok && reader->at < reader->end && isdigit((unsigned char)*reader->at)) {
		unit /= 10;
		value += digits(reader, 1) * unit;
	}
	return value;
}

static int read_offset(struct reader *reader)
{
	int sign, minutes;

	if (skip(reader, "Zz") || reader->at == reader->end)
		return 0;
	sign = *reader->at == '-' ? -1 : 1;
	reader->ok = skip(reader, "+-");
	minutes = 60 * between(reader, digits(reader, 2), 0, 23);
	if (reader->ok && reader->at < reader->end) {
		(void)skip(reader, ":");
		minutes += between(reader, digits(reader, 2), 0, 59);
	}
	return sign * minutes;
}

bool pfs_time_parse(int64_t *nanoseconds, const char *text, size_t len)
{
	struct reader reader = {.at = text, .end = text + len, .ok = true};
	int64_t seconds = read_date(&reader) * 86400, fraction = 0;

	if (skip(&reader, "Tt ")) {
		seconds += 3600 * between(&reader, digits(&reader, 2), 0, 23);
		need(&reader, ':');
		seconds += 60 * between(&reader, digits(&reader, 2), 0, 59);
		if (skip(&reader, ":")) {
			seconds += between(&reader, digits(&reader, 2), 0, 60);
			if (skip(&reader, ".,"))
				fraction = read_fraction(&reader);
		}
		if (reader.ok)
			seconds -= 60 * read_offset(&reader);
	}
	if (!reader.ok || reader.at != reader.end)
		return false;
	return !__builtin_mul_overflow(seconds, NANOSECONDS, &seconds) &&
	       !__builtin_add_overflow(seconds, fraction, nanoseconds);
}

/* ---- what is compared with a time ---- */

/* Where a statement is being read. */
enum state {
	ELSEWHERE,
	COLUMN,	  /* after a time column */
	COMPARED, /* after an operator that follows one: a literal is a time */
	LOW,	  /* after BETWEEN */
	HIGH,	  /* after the AND of it */
	IN_WORD,  /* after IN */
	LIST,	  /* in its parentheses, where literals are times */
	EXTREME,  /* after MAX or MIN */
	EXTREMES, /* in its parentheses */
	EXTREMAL, /* after a time column there */
};

struct rewriting {
	struct pfs_edits *out;
	const char *sql;
	size_t len;
	enum state state;
	/* A literal before an operator, which is a time if a time column follows. */
	struct pfs_token left;
	bool has_left, left_operator;
};

static bool is(const struct rewriting *r, const struct pfs_token *token, const char *word)
{
	return pfs_token_is(r->sql, token, word);
}

static bool is_time_column(const struct rewriting *r, struct pfs_token token)
{
	static const char *const names[] = {"mtime", "atime", "ctime", "subtree_mtime"};

	if (token.kind != PFS_TOKEN_WORD)
		return false;
	if (!pfs_token_is_letter(r->sql[token.at]) && token.len > 2) {
		token.at++;
		token.len -= 2;
	}
	for (size_t i = 0; i < PFS_COUNT(names); i++) {
		if (is(r, &token, names[i]))
			return true;
	}
	return false;
}

/* The literal's number in its place, if it is a time. */
static int replace(struct rewriting *r, const struct pfs_token *literal)
{
	char number[32];
	int64_t value;
	int n;

	if (literal->len < 2 ||
	    !pfs_time_parse(&value, r->sql + literal->at + 1, literal->len - 2))
		return 0;
	/* the least of all has no literal of its own */
	n = value == INT64_MIN ? 0 : snprintf(number, sizeof(number), "%lld", (long long)value);
	return n ? pfs_edits_replace(r->out, r->sql, literal->at, literal->len, number, (size_t)n)
		 : 0;
}

static bool dot_follows(const struct rewriting *r, const struct pfs_token *token)
{
	size_t end = token->at + token->len;

	return end < r->len && r->sql[end] == '.';
}

static enum state after_word(const struct rewriting *r, const struct pfs_token *token)
{
	bool negation = is(r, token, "NOT");

	switch (r->state) {
	case COLUMN:
		if (negation)
			return COLUMN;
		if (is(r, token, "IS"))
			return COMPARED;
		if (is(r, token, "BETWEEN"))
			return LOW;
		return is(r, token, "IN") ? IN_WORD : ELSEWHERE;
	case COMPARED: /* IS NOT [DISTINCT FROM] */
		return negation || is(r, token, "DISTINCT") || is(r, token, "FROM") ? COMPARED
										     : ELSEWHERE;
	case LOW:
		return is(r, token, "AND") ? HIGH : LOW;
	case LIST:
		return is(r, token, "SELECT") ? ELSEWHERE : LIST;
	case EXTREMES: /* n.mtime */
		return dot_follows(r, token) ? EXTREMES : ELSEWHERE;
	default:
		return is(r, token, "MAX") || is(r, token, "MIN") ? EXTREME : ELSEWHERE;
	}
}

static int read_literal(struct rewriting *r, const struct pfs_token *token)
{
	enum state state = r->state;

	if (state == COMPARED || state == HIGH)
		r->state = ELSEWHERE;
	if (state == COMPARED || state == LOW || state == HIGH || state == LIST)
		return replace(r, token);
	r->left = *token;
	r->has_left = true;
	r->left_operator = false;
	r->state = ELSEWHERE;
	return 0;
}

static int read_word(struct rewriting *r, const struct pfs_token *token)
{
	int error = 0;

	if (is_time_column(r, *token)) {
		if (r->has_left && r->left_operator)
			error = replace(r, &r->left);
		r->has_left = false;
		r->state = r->state == EXTREMES ? EXTREMAL : COLUMN;
		return error;
	}
	/* between a literal and its column: IS [NOT], the name of a table, MAX or MIN */
	r->state = after_word(r, token);
	if (is(r, token, "IS"))
		r->left_operator = r->has_left;
	else if (!r->left_operator ||
		 !(is(r, token, "NOT") || dot_follows(r, token) || r->state == EXTREME))
		r->has_left = false;
	return 0;
}

static int read_token(struct rewriting *r, const struct pfs_token *token)
{
	switch (token->kind) {
	case PFS_TOKEN_STRING:
		return read_literal(r, token);
	case PFS_TOKEN_WORD:
		return read_word(r, token);
	case PFS_TOKEN_OPERATOR:
		r->left_operator = r->has_left;
		r->state = r->state == COLUMN ? COMPARED : ELSEWHERE;
		return 0;
	case PFS_TOKEN_DOT:
		return 0;
	case PFS_TOKEN_OPEN:
		r->has_left = r->has_left && r->state == EXTREME;
		r->state = r->state == IN_WORD	 ? LIST
			   : r->state == EXTREME ? EXTREMES
						 : ELSEWHERE;
		return 0;
	case PFS_TOKEN_CLOSE:
		r->has_left = false;
		r->state = r->state == EXTREMAL ? COLUMN : ELSEWHERE;
		return 0;
	case PFS_TOKEN_COMMA:
		r->has_left = false;
		r->state = r->state == LIST ? LIST : ELSEWHERE;
		return 0;
	default:
		r->has_left = false;
		r->state = ELSEWHERE;
		return 0;
	}
}

int pfs_times_replace(struct pfs_edits *out, const char *sql, size_t len)
{
	struct rewriting r = {.out = out, .sql = sql, .len = len};
	struct pfs_token token;

	*out = (struct pfs_edits){.text = NULL};
	if (!pfs_token_may_be(sql, len, "time"))
		return pfs_edits_end(out, sql, len);
	token = pfs_token_next(sql, len, 0);
	while (token.kind != PFS_TOKEN_END) {
		PFS_TRY(read_token(&r, &token));
		token = pfs_token_next(sql, len, token.at + token.len);
	}
	return pfs_edits_end(out, sql, len);
}

/* ---- edits ---- */

static int append(struct pfs_edits *edits, const char *bytes, size_t n)
{
	PFS_TRY(pfs_grow(&edits->text, &edits->capacity, edits->len + n + 1, 1));
	if (n)
		memcpy(edits->text + edits->len, bytes, n);
	edits->len += n;
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): two pieces of text, and where */
int pfs_edits_replace(struct pfs_edits *edits, const char *old, size_t old_at, size_t old_len,
		      const char *bytes, size_t n)
{
	PFS_TRY(append(edits, old + edits->copied, old_at - edits->copied));
	PFS_TRY(pfs_grow(&edits->edits, &edits->edits_capacity, edits->n + 1,
			 sizeof(*edits->edits)));
	edits->edits[edits->n++] = (struct pfs_edit){
		.at = edits->len,
		.old_at = old_at,
		.len = n,
		.old_len = old_len,
	};
	edits->copied = old_at + old_len;
	return append(edits, bytes, n);
}

int pfs_edits_end(struct pfs_edits *edits, const char *old, size_t len)
{
	return append(edits, old + edits->copied, len - edits->copied);
}

void pfs_edits_finish(struct pfs_edits *edits)
{
	free(edits->text);
	free(edits->edits);
	*edits = (struct pfs_edits){.text = NULL};
}

long pfs_edits_offset(const struct pfs_edits *edits, long offset)
{
	long at = offset;

	if (offset < 0)
		return offset;
	for (size_t i = 0; i < edits->n && edits->edits[i].at <= (size_t)offset; i++) {
		const struct pfs_edit *edit = &edits->edits[i];
		size_t into = (size_t)offset - edit->at;

		at = (long)(edit->old_at + (into < edit->len ? 0 : edit->old_len + into - edit->len));
	}
	return at;
}
