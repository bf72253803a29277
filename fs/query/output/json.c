/* SPDX-License-Identifier: MIT */
/* Strings and members of objects, as JSON writes them. */
#include "fs/query/output/format.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"

/* The bytes of the UTF-8 character at text, 0 if there is none: overlong forms, surrogates and what
 * is beyond U+10FFFF are none. */
size_t pfs_utf8_length(const char *text, size_t size)
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf;
	size_t n, i;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (n > size || p[1] < low || p[1] > high)
		return 0;
	for (i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

static void json_escape(struct pfs_out *out, unsigned char c)
{
	static const char shorthand[256] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
					    ['\r'] = 'r', ['"'] = '"',	['\\'] = '\\'};
	char text[8];

	if (shorthand[c]) {
		pfs_out_char(out, '\\');
		pfs_out_char(out, shorthand[c]);
		return;
	}
	(void)snprintf(text, sizeof(text), "\\u%04x", c);
	pfs_out_text(out, text);
}

typedef unsigned char block __attribute__((vector_size(16)));
#define BLOCK sizeof(block)

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static bool is_plain_block(const char *bytes)
{
	uint64_t words[2];
	block b;

	memcpy(&b, bytes, BLOCK);
	b = (block)(b < 0x20) | (block)(b > 0x7e) | (block)(b == '"') | (block)(b == '\\');
	memcpy(words, &b, BLOCK);
	return !(words[0] | words[1]);
}

/* Returns how many of the bytes, from the first on, are written as they are. */
static size_t plain_length(const char *bytes, size_t size)
{
	size_t n = 0;

	while (size - n >= BLOCK && is_plain_block(bytes + n))
		n += BLOCK;
	while (n < size && is_plain((unsigned char)bytes[n]))
		n++;
	return n;
}

/* One character that is not; its length, *valid false if it was no UTF-8. */
static size_t put_character(struct pfs_out *out, const char *bytes, size_t size, bool *valid)
{
	size_t n = pfs_utf8_length(bytes, size);

	if (n == 1)
		json_escape(out, (unsigned char)*bytes);
	else if (n)
		pfs_out_bytes(out, bytes, n);
	else
		pfs_out_text(out, "\xef\xbf\xbd");
	*valid &= n != 0;
	return PFS_MAX(n, 1);
}

bool pfs_out_json(struct pfs_out *out, const char *bytes, size_t size)
{
	bool valid = true;
	size_t i = 0;

	pfs_out_char(out, '"');
	while (i < size) {
		size_t n = plain_length(bytes + i, size - i);

		pfs_out_bytes(out, bytes + i, n);
		i += n;
		if (i < size)
			i += put_character(out, bytes + i, size - i, &valid);
	}
	pfs_out_char(out, '"');
	return valid;
}

static void json_base64(struct pfs_out *out, const char *bytes, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)bytes;
	size_t i;

	pfs_out_char(out, '"');
	for (i = 0; i < size; i += 3) {
		size_t left = size - i;
		unsigned bits = (unsigned)p[i] << 16;

		if (left > 1)
			bits |= (unsigned)p[i + 1] << 8;
		if (left > 2)
			bits |= p[i + 2];
		pfs_out_char(out, digits[bits >> 18]);
		pfs_out_char(out, digits[bits >> 12 & 63]);
		pfs_out_char(out, left > 1 ? digits[bits >> 6 & 63] : '=');
		pfs_out_char(out, left > 2 ? digits[bits & 63] : '=');
	}
	pfs_out_char(out, '"');
}

static void json_number(struct pfs_out *out, const struct pfs_sql_value *value)
{
	char *room = pfs_out_room(out, PFS_NUMBER_SIZE);

	if (value->type == PFS_SQL_INTEGER)
		out->used += pfs_print_integer(room, value->integer);
	else if ((value->real - value->real) == 0)
		out->used += pfs_print_real(room, value->real);
	else /* JSON has no infinities; what is too large reads as one */
		pfs_out_text(out, value->real < 0 ? "-9e999" : "9e999");
}

void pfs_json_member(struct pfs_out *out, const char *name, const struct pfs_sql_value *value)
{
	(void)pfs_out_json(out, name, strlen(name));
	pfs_out_char(out, ':');
	if (value->type == PFS_SQL_NULL) {
		pfs_out_text(out, "null");
	} else if (value->type == PFS_SQL_INTEGER || value->type == PFS_SQL_REAL) {
		json_number(out, value);
	} else if (!pfs_out_json(out, value->bytes, value->size)) {
		char longer[256];

		(void)snprintf(longer, sizeof(longer), "%.200s_bytes", name);
		pfs_out_char(out, ',');
		(void)pfs_out_json(out, longer, strlen(longer));
		pfs_out_char(out, ':');
		json_base64(out, value->bytes, value->size);
	}
}
