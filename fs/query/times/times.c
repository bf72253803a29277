/* SPDX-License-Identifier: MIT */
#include "fs/query/times/times.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "fs/nodes/fields.h"

#define NANOSECONDS INT64_C(1000000000)
#define DAY	    (INT64_C(86400) * NANOSECONDS)

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

/* ---- relative times ---- */

/* The inverse of days_from_civil, without the day. */
static void civil_from_days(int64_t days, int64_t *month, int *day)
{
	int64_t shifted = days + 719468;
	int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
	int day_of_era = (int)(shifted - era * 146097);
	int year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	int day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int shifted_month = (5 * day_of_year + 2) / 153;

	*day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
	*month = (era * 400 + year_of_era) * 12 + shifted_month + 2; /* since year 0 */
}

static int64_t floor_divide(int64_t value, int64_t by)
{
	return value / by - (value % by < 0);
}

/* False: beyond the years that are counted. */
static bool add_months(int64_t *time, int64_t months)
{
	int64_t days = floor_divide(*time, DAY), month;
	int day;

	civil_from_days(days, &month, &day);
	month += months;
	if (month < 0 || month > INT64_C(12) * 9999)
		return false;
	*time -= days * DAY;
	days = days_from_civil((int)(month / 12), (int)(month % 12) + 1, 1) + day - 1;
	return !__builtin_mul_overflow(days, DAY, &days) &&
	       !__builtin_add_overflow(*time, days, time);
}

static void skip_blanks(struct reader *reader)
{
	while (skip(reader, " \t"))
		;
}

/* The next word, of letters alone; its length may be 0. */
static size_t next_word(struct reader *reader, const char **word)
{
	skip_blanks(reader);
	*word = reader->at;
	while (reader->at < reader->end && isalpha((unsigned char)*reader->at))
		reader->at++;
	return (size_t)(reader->at - *word);
}

static bool is_word(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && strncasecmp(word, name, len) == 0;
}

struct span {
	int64_t months, nanoseconds;
};

/* n of the unit that is named next, once more: plural, and shortened where nobody takes it for
 * another. */
static bool add_unit(struct reader *reader, struct span *span, int64_t n)
{
	static const struct {
		const char *name, *plural, *abbreviated;
		int64_t months, nanoseconds;
	} units[] = {
		{"second", "seconds", "sec", 0, NANOSECONDS},
		{"minute", "minutes", "min", 0, 60 * NANOSECONDS},
		{"hour", "hours", "h", 0, 3600 * NANOSECONDS},
		{"day", "days", "d", 0, DAY},
		{"week", "weeks", "w", 0, 7 * DAY},
		{"month", "months", "mon", 1, 0},
		{"year", "years", "y", 12, 0},
	};
	const char *word;
	size_t len = next_word(reader, &word);

	for (size_t i = 0; i < PFS_COUNT(units); i++) {
		int64_t amount;

		if (!is_word(word, len, units[i].name) && !is_word(word, len, units[i].plural) &&
		    !is_word(word, len, units[i].abbreviated))
			continue;
		span->months += n * units[i].months;
		return !__builtin_mul_overflow(n, units[i].nanoseconds, &amount) &&
		       !__builtin_add_overflow(span->nanoseconds, amount, &span->nanoseconds);
	}
	return false;
}

/* Reads a number of at most nine digits. */
static bool read_count(struct reader *reader, int64_t *count)
{
	const char *from = reader->at, *word;
	size_t len;

	*count = 0;
	while (reader->at < reader->end && isdigit((unsigned char)*reader->at) &&
	       reader->at - from < 9)
		*count = *count * 10 + (*reader->at++ - '0');
	if (reader->at > from)
		return true;
	len = next_word(reader, &word);
	*count = 1;
	return is_word(word, len, "a") || is_word(word, len, "an") || is_word(word, len, "one");
}

/* All have a sign, or none has, and "ago" follows: "30 days" may be either side of now. */
static bool read_span(struct reader *reader, struct span *span)
{
	bool is_signed = false;
	const char *word;
	size_t len;

	for (bool first = true;; first = false) {
		const char *from;
		bool negative;
		int64_t n;

		skip_blanks(reader);
		from = reader->at;
		if (!first && from < reader->end && (*from | 0x20) == 'a') {
			len = next_word(reader, &word);
			if (is_word(word, len, "ago"))
				break;
			reader->at = from;
		}
		if (!first && from == reader->end)
			return is_signed;
		negative = skip(reader, "-");
		if (first)
			is_signed = negative || skip(reader, "+");
		else if ((negative || skip(reader, "+")) != is_signed)
			return false;
		skip_blanks(reader);
		if (!read_count(reader, &n) || !add_unit(reader, span, negative ? -n : n))
			return false;
	}
	skip_blanks(reader);
	if (is_signed || reader->at != reader->end)
		return false;
	*span = (struct span){-span->months, -span->nanoseconds};
	return true;
}

static bool read_day(int64_t *nanoseconds, const char *word, size_t len, int64_t now)
{
	static const char *const names[] = {"yesterday", "today", "tomorrow"};
	int64_t today = floor_divide(now, DAY) * DAY;

	for (int i = 0; i < (int)PFS_COUNT(names); i++) {
		*nanoseconds = today + (i - 1) * DAY;
		if (is_word(word, len, names[i]))
			return true;
	}
	*nanoseconds = now;
	return is_word(word, len, "now");
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

bool pfs_time_read(int64_t *nanoseconds, const char *text, size_t len, int64_t now)
{
	struct reader reader = {.ok = true};
	struct span span = {0};

	for (; len && is_blank(*text); len--)
		text++;
	while (len && is_blank(text[len - 1]))
		len--;
	if (pfs_time_parse(nanoseconds, text, len) || read_day(nanoseconds, text, len, now))
		return true;
	reader.at = text;
	reader.end = text + len;
	if (!read_span(&reader, &span))
		return false;
	*nanoseconds = now;
	return (!span.months || add_months(nanoseconds, span.months)) &&
	       !__builtin_add_overflow(*nanoseconds, span.nanoseconds, nanoseconds);
}

int64_t pfs_time_now(void)
{
	return pfs_clock_ns(CLOCK_REALTIME);
}

bool pfs_time_is_column(const char *name, size_t len)
{
	return pfs_field_is_time(pfs_field_named(name, len));
}

/* ---- values that are compared with times ---- */

#define LEAST_NANOSECONDS 1e14 /* 28 hours from 1970: what is less was meant as seconds, or less */

/* Text that SQLite takes for a number beside a column of numbers. */
static bool read_number(struct pfs_sql_value *out, const struct pfs_sql_value *text)
{
	const char *from = text->bytes;
	size_t size = text->size;
	char copy[64], *end;

	while (size && isspace((unsigned char)*from)) {
		from++;
		size--;
	}
	while (size && isspace((unsigned char)from[size - 1]))
		size--;
	if (!size || size >= sizeof(copy))
		return false;
	memcpy(copy, from, size);
	copy[size] = 0;
	if (strspn(copy, "0123456789+-.eE") != size)
		return false;
	errno = 0;
	*out = (struct pfs_sql_value){.type = PFS_SQL_INTEGER, .integer = strtoll(copy, &end, 10)};
	if (!*end && !errno)
		return true;
	*out = (struct pfs_sql_value){.type = PFS_SQL_REAL, .real = strtod(copy, &end)};
	return !*end;
}

static int refuse_text(const struct pfs_sql_value *value, char problem[PFS_TIME_PROBLEM])
{
	(void)snprintf(problem, PFS_TIME_PROBLEM,
		       "%s%.*s%s is no time; write one like '2024-01-31', '2024-01-31 12:00:00', "
		       "'1 year ago', '-30 days', 'yesterday' or 'today'",
		       value->type == PFS_SQL_TEXT ? "'" : "a blob",
		       value->type == PFS_SQL_TEXT ? (int)PFS_MIN(value->size, 40) : 0,
		       value->bytes, value->type == PFS_SQL_TEXT ? "'" : "");
	return -EINVAL;
}

int pfs_time_value(struct pfs_sql_value *out, const struct pfs_sql_value *value, int64_t now,
		   bool strict, char problem[PFS_TIME_PROBLEM])
{
	struct pfs_sql_value number = *value;
	double size;

	*out = *value;
	if (value->type == PFS_SQL_NULL)
		return 0;
	if (value->type == PFS_SQL_BLOB)
		return refuse_text(value, problem);
	if (value->type == PFS_SQL_TEXT && !read_number(&number, value)) {
		out->type = PFS_SQL_INTEGER;
		out->size = 0;
		return pfs_time_read(&out->integer, value->bytes, value->size, now)
			       ? 0
			       : refuse_text(value, problem);
	}
	*out = number;
	size = fabs(number.type == PFS_SQL_REAL ? number.real : (double)number.integer);
	if (!strict || !(size > 0 && size < LEAST_NANOSECONDS))
		return 0;
	(void)snprintf(problem, PFS_TIME_PROBLEM,
		       "seconds? times here are nanoseconds: write seconds(x) or a date");
	return -EINVAL;
}

int pfs_time_from_seconds(struct pfs_sql_value *out, const struct pfs_sql_value *value,
			  char problem[PFS_TIME_PROBLEM])
{
	struct pfs_sql_value number = *value;
	double product;

	*out = *value;
	if (value->type == PFS_SQL_NULL)
		return 0;
	if (value->type == PFS_SQL_BLOB ||
	    (value->type == PFS_SQL_TEXT && !read_number(&number, value))) {
		(void)snprintf(problem, PFS_TIME_PROBLEM,
			       "seconds() takes a number of seconds since 1970");
		return -EINVAL;
	}
	*out = (struct pfs_sql_value){.type = PFS_SQL_INTEGER};
	if (number.type == PFS_SQL_INTEGER &&
	    !__builtin_mul_overflow(number.integer, NANOSECONDS, &out->integer))
		return 0;
	product = round(number.real * (double)NANOSECONDS);
	/* cppcheck-suppress incorrectLogicOperator ; it misreads hexadecimal numbers */
	if (number.type == PFS_SQL_REAL && product >= -0x1p63 && product < 0x1p63) {
		out->integer = (int64_t)product;
		return 0;
	}
	(void)snprintf(problem, PFS_TIME_PROBLEM,
		       "seconds() takes a number of seconds of the years 1677 to 2262");
	return -EINVAL;
}

/* ---- points in time ---- */

bool pfs_time_point(int64_t *nanoseconds, const char *text, size_t len, int64_t now)
{
	const struct pfs_sql_value value = {.type = PFS_SQL_TEXT, .bytes = text, .size = len};
	struct pfs_sql_value number;
	char problem[PFS_TIME_PROBLEM];
	double size;

	if (pfs_time_read(nanoseconds, text, len, now))
		return true;
	if (!read_number(&number, &value))
		return false;
	size = fabs(number.type == PFS_SQL_REAL ? number.real : (double)number.integer);
	if (number.type == PFS_SQL_INTEGER && size >= LEAST_NANOSECONDS) {
		*nanoseconds = number.integer;
		return true;
	}
	if (pfs_time_from_seconds(&number, &number, problem))
		return false;
	*nanoseconds = number.integer;
	return true;
}

void pfs_time_print(char text[PFS_TIME_TEXT], int64_t nanoseconds)
{
	int64_t fraction = (nanoseconds % NANOSECONDS + NANOSECONDS) % NANOSECONDS;
	time_t seconds = (nanoseconds - fraction) / NANOSECONDS;
	struct tm utc;
	size_t len;

	(void)gmtime_r(&seconds, &utc);
	len = strftime(text, PFS_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &utc);
	(void)snprintf(text + len, PFS_TIME_TEXT - len, ".%09lldZ", (long long)fraction);
}
