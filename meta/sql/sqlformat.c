/* SPDX-License-Identifier: MIT */
/* A replacement of SQLite's printf(format, ...), which makes all conversions at once, however many
 * and long they are. This one looks at the clock between conversions: it finds each one and its
 * arguments, and calls SQLite's for it alone. */
#include "meta/sql/sqlquery_impl.h"

#include <string.h>

#include "base/number.h"

/* conversions, or pieces of their arguments, between two looks at the clock */
#define LOOK_WORK  65536
#define PIECE_BITS 10

struct formatting {
	struct pfs_sql *sql;
	sqlite3_str *out;
	sqlite3_value **arguments;
	int n, used;
	size_t work; /* since the last look at the clock */
	bool is_over;
};

struct conversion {
	bool left;
	char sign; /* '+', ' ', or 0 */
	bool hash, bang, zero, comma;
	unsigned width;
	int precision; /* -1: none */
	char letter;   /* 0: the format ends within it */
};

/* ---- arguments: those that are not there are 0 and NULL ---- */

static sqlite3_int64 take_integer(struct formatting *f)
{
	return f->used < f->n ? sqlite3_value_int64(f->arguments[f->used++]) : 0;
}

static double take_real(struct formatting *f)
{
	return f->used < f->n ? sqlite3_value_double(f->arguments[f->used++]) : 0;
}

static const char *take_text(struct formatting *f)
{
	const char *text = NULL;

	if (f->used < f->n) {
		text = (const char *)sqlite3_value_text(f->arguments[f->used]);
		f->work += (size_t)sqlite3_value_bytes(f->arguments[f->used++]) >> PIECE_BITS;
	}
	return text;
}

/* ---- reading a conversion ---- */

static const char *read_number(unsigned *out, const char *at)
{
	unsigned number = 0;

	for (; *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (unsigned)(*at - '0');
	*out = number & 0x7fffffff;
	return at;
}

static const char *read_width(struct formatting *f, struct conversion *to, const char *at)
{
	int width;

	if (*at != '*')
		return read_number(&to->width, at);
	width = (int)take_integer(f);
	if (width < 0) {
		to->left = true;
		width = width >= -INT32_MAX ? -width : 0;
	}
	to->width = (unsigned)width;
	return at + 1;
}

static const char *read_precision(struct formatting *f, struct conversion *to, const char *at)
{
	unsigned precision;

	if (*at != '*') {
		at = read_number(&precision, at);
		to->precision = (int)precision;
		return at;
	}
	to->precision = (int)take_integer(f);
	if (to->precision < 0)
		to->precision = to->precision >= -INT32_MAX ? -to->precision : -1;
	return at + 1;
}

static bool read_flag(struct conversion *to, char c)
{
	switch (c) {
	case '-':
		return to->left = true;
	case '+':
	case ' ':
		to->sign = c;
		return true;
	case '#':
		return to->hash = true;
	case '!':
		return to->bang = true;
	case '0':
		return to->zero = true;
	case ',':
		return to->comma = true;
	default:
		return false;
	}
}

/* Reads a conversion; at: behind the percent sign. Returns the place of its letter. */
static const char *read_conversion(struct formatting *f, struct conversion *to, const char *at)
{
	*to = (struct conversion){.precision = -1};
	while (read_flag(to, *at))
		at++;
	if (*at == '*' || (*at >= '1' && *at <= '9'))
		at = read_width(f, to, at);
	if (*at == '.')
		at = read_precision(f, to, at + 1);
	for (int i = 0; i < 2 && *at == 'l'; i++)
		at++;
	to->letter = *at;
	return at;
}

/* ---- writing it ---- */

/* Spells the conversion as SQLite reads it. */
static void spell(char spec[PFS_SQL_SPEC_MAX], const struct conversion *from, const char *letters)
{
	const char flags[] = {from->left ? '-' : 0, from->sign,		  from->hash ? '#' : 0,
			      from->bang ? '!' : 0, from->zero ? '0' : 0, from->comma ? ',' : 0};
	char *at = spec;

	*at++ = '%';
	for (size_t i = 0; i < sizeof(flags); i++) {
		*at = flags[i];
		at += flags[i] != 0;
	}
	if (from->width)
		at += pfs_print_integer(at, from->width);
	if (from->precision >= 0) {
		*at++ = '.';
		at += pfs_print_integer(at, from->precision);
	}
	memcpy(at, letters, strlen(letters) + 1);
}

static bool may_go_on(struct formatting *f)
{
	if (++f->work >= LOOK_WORK) {
		f->work = 0;
		f->is_over = pfs_sql_is_over(f->sql);
	}
	return !f->is_over && !sqlite3_str_errcode(f->out);
}

/* Writes one character, padded to the width. */
static void put_padded(sqlite3_str *out, const struct conversion *c, const char *bytes, int size)
{
	int pad = (int)c->width - size; /* in characters, of which continuation bytes are none */

	for (int i = 0; i < size; i++)
		pad += ((unsigned char)bytes[i] & 0xc0) == 0x80;
	pad = c->width ? pad : 0;
	if (pad > 0 && !c->left)
		sqlite3_str_appendchar(out, pad, ' ');
	sqlite3_str_append(out, bytes, size);
	if (pad > 0 && c->left)
		sqlite3_str_appendchar(out, pad, ' ');
}

/* Writes the first character of the argument, `precision` times. */
static void put_character(struct formatting *f, struct conversion *c)
{
	const char *text = take_text(f);
	char bytes[4] = {text ? text[0] : 0};
	int size = 1, pad = (int)c->width - c->precision;

	while (text && (bytes[0] & 0xc0) == 0xc0 && size < 4 && (text[size] & 0xc0) == 0x80) {
		bytes[size] = text[size];
		size++;
	}
	if (c->precision > 1) {
		if (pad > 0 && !c->left)
			sqlite3_str_appendchar(f->out, pad, ' ');
		if (size == 1)
			sqlite3_str_appendchar(f->out, c->precision - 1, bytes[0]);
		for (int i = 1; size > 1 && i < c->precision && may_go_on(f); i++)
			sqlite3_str_append(f->out, bytes, size);
		c->width = c->left && pad > 0 ? (unsigned)pad + 1 : 0;
	}
	put_padded(f->out, c, bytes, size);
}

static bool is_of_real(char letter)
{
	return letter && strchr("feEgG", letter);
}

/* Returns false if what follows is left out, as SQLite does. */
static bool put(struct formatting *f, struct conversion *c)
{
	char spec[PFS_SQL_SPEC_MAX], letters[] = {'l', 'l', c->letter, 0};

	switch (c->letter) {
	case 'd':
	case 'i':
	case 'u':
	case 'o':
	case 'x':
	case 'X':
	case 'r':
	case 'p':
		spell(spec, c, c->letter == 'p' ? letters + 2 : letters);
		sqlite3_str_appendf(f->out, spec, take_integer(f));
		return true;
	case 'f':
	case 'e':
	case 'E':
	case 'g':
	case 'G':
		spell(spec, c, letters + 2);
		sqlite3_str_appendf(f->out, spec, take_real(f));
		return true;
	case 'z': /* SQLite would free the argument */
		letters[2] = 's';
		__attribute__((fallthrough));
	case 's':
	case 'q':
	case 'Q':
	case 'w':
		spell(spec, c, letters + 2);
		sqlite3_str_appendf(f->out, spec, take_text(f));
		return true;
	case 'c':
		put_character(f, c);
		return true;
	case '%':
		put_padded(f->out, c, "%", 1);
		return true;
	case 'n': /* SQLite would store a length */
		sqlite3_str_append(f->out, "", 0);
		return true;
	default:
		return false;
	}
}

static void format(struct formatting *f, const char *at)
{
	struct conversion conversion;

	while (*at && may_go_on(f)) {
		const char *percent = strchrnul(at, '%');

		/* with nothing in front the result would be empty rather than NULL */
		if (percent > at)
			sqlite3_str_append(f->out, at, (int)(percent - at));
		if (!*percent)
			return;
		if (!percent[1]) {
			sqlite3_str_append(f->out, "%", 1);
			return;
		}
		at = read_conversion(f, &conversion, percent + 1);
		if (!put(f, &conversion))
			return;
		at++;
	}
}

void pfs_sql_format(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct formatting f = {.sql = sqlite3_user_data(context),
			       .arguments = argv + 1,
			       .n = argc - 1};
	const char *text = argc ? (const char *)sqlite3_value_text(argv[0]) : NULL;

	if (!text)
		return;
	f.out = sqlite3_str_new(sqlite3_context_db_handle(context));
	format(&f, text);
	/* SQLite makes NULL of a longer one than may be, but its limit is a thousand million */
	if (!f.is_over) {
		pfs_sql_return_str(context, f.out);
		return;
	}
	sqlite3_free(sqlite3_str_finish(f.out));
	sqlite3_result_error_code(context, SQLITE_INTERRUPT);
}

/* ---- a format taken apart ---- */

static struct pfs_sql_piece *add_piece(struct pfs_sql_format *format, const char *text, size_t len)
{
	struct pfs_sql_piece *piece = &format->pieces[format->n_pieces];

	if (format->n_pieces == PFS_SQL_PIECES_MAX)
		return NULL;
	format->n_pieces++;
	*piece = (struct pfs_sql_piece){.what = PFS_SQL_AS_IS, .text = text, .len = len};
	return piece;
}

static bool add_conversion(struct pfs_sql_format *format, const struct conversion *c)
{
	char letters[] = {'l', 'l', c->letter, 0};
	struct pfs_sql_piece *piece = add_piece(format, NULL, 0);

	if (!piece || !c->letter || !strchr("diuoxXfeEgGs", c->letter) ||
	    c->width > PFS_SQL_SPEC_MAX || c->precision > PFS_SQL_SPEC_MAX)
		return false;
	format->n_values++;
	piece->what = c->letter == 's'	      ? PFS_SQL_AS_TEXT
		      : is_of_real(c->letter) ? PFS_SQL_AS_REAL
					      : PFS_SQL_AS_INTEGER;
	spell(piece->spec, c, piece->what == PFS_SQL_AS_INTEGER ? letters : letters + 2);
	piece->is_decimal = strcmp(piece->spec, "%lld") == 0 || strcmp(piece->spec, "%lli") == 0;
	piece->at_left = c->left;
	piece->counts_characters = c->bang;
	piece->width = (int)c->width;
	piece->precision = c->precision;
	return true;
}

/* A format without '*' needs no argument here. */
bool pfs_sql_format_take(struct pfs_sql_format *out, const char *format, size_t len)
{
	struct formatting none = {.n = 0};
	struct conversion conversion;
	const char *at = format;

	*out = (struct pfs_sql_format){.n_pieces = 0};
	if (memchr(format, 0, len) || memchr(format, '*', len))
		return false;
	while (*at) {
		const char *percent = strchrnul(at, '%');

		if (percent > at && !add_piece(out, at, (size_t)(percent - at)))
			return false;
		at = percent;
		if (*at && at[1] == '%') {
			if (!add_piece(out, at, 1))
				return false;
			at += 2;
		} else if (*at) {
			at = read_conversion(&none, &conversion, at + 1);
			if (!add_conversion(out, &conversion))
				return false;
			at++;
		}
	}
	return out->n_values != 0;
}

static int64_t to_integer(double real) /* as SQLite converts it */
{
	return real >= 0x1p63 ? INT64_MAX : real <= -0x1p63 ? INT64_MIN : (int64_t)real;
}

size_t pfs_sql_print_number(char out[PFS_SQL_PRINTED_MAX], const struct pfs_sql_piece *piece,
			    bool is_real, int64_t integer, double real)
{
	if (piece->what == PFS_SQL_AS_REAL) {
		(void)sqlite3_snprintf(PFS_SQL_PRINTED_MAX, out, piece->spec,
				       is_real ? real : (double)integer);
		return strlen(out);
	}
	if (is_real)
		integer = to_integer(real);
	if (piece->is_decimal)
		return pfs_print_integer(out, integer);
	(void)sqlite3_snprintf(PFS_SQL_PRINTED_MAX, out, piece->spec, (sqlite3_int64)integer);
	return strlen(out);
}
