/* SPDX-License-Identifier: MIT */
/* JSON to a stream, indented; what is no UTF-8 becomes U+FFFD (tools/cmd.h). */
#include "tools/cmd.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The length of the UTF-8 sequence that s starts with, at most len; 0 when it is none. */
static size_t utf8_len(const unsigned char *s, size_t len)
{
	/* Björn Hoehrmann's limits: the second byte's range excludes overlong forms, surrogates and
	 * what lies beyond U+10FFFF. */
	unsigned char low = 0x80, high = 0xbf;
	size_t need, i;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		need = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		need = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		need = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (len < need || s[1] < low || s[1] > high)
		return 0;
	for (i = 2; i < need; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return need;
}

static void put_quoted(FILE *out, const void *value, size_t len)
{
	const unsigned char *s = value;
	const unsigned char *end = s + len;

	(void)fputc('"', out);
	while (s < end) {
		size_t n = utf8_len(s, (size_t)(end - s));

		if (n == 0)
			(void)fputs("\\ufffd", out);
		else if (*s == '"' || *s == '\\')
			(void)fprintf(out, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			(void)fprintf(out, "\\u%04x", *s);
		else
			(void)fwrite(s, 1, n, out);
		s += n ? n : 1;
	}
	(void)fputc('"', out);
}

static void start(struct pfs_json *json, const char *key)
{
	if (json->started)
		(void)fputc(',', json->out);
	if (json->depth > 0)
		(void)fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
	if (key) {
		put_quoted(json->out, key, strlen(key));
		(void)fputs(": ", json->out);
	}
	json->started = true;
}

static void finish(struct pfs_json *json)
{
	if (json->depth == 0)
		(void)fputc('\n', json->out);
}

void pfs_json_open(struct pfs_json *json, const char *key, char bracket)
{
	start(json, key);
	(void)fputc(bracket, json->out);
	json->depth++;
	json->started = false;
}

void pfs_json_close(struct pfs_json *json, char bracket)
{
	json->depth--;
	if (json->started)
		(void)fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
	(void)fputc(bracket, json->out);
	json->started = true;
	finish(json);
}

void pfs_json_u64(struct pfs_json *json, const char *key, uint64_t value)
{
	start(json, key);
	(void)fprintf(json->out, "%" PRIu64, value);
	finish(json);
}

void pfs_json_real(struct pfs_json *json, const char *key, double value)
{
	start(json, key);
	if (isfinite(value))
		(void)fprintf(json->out, "%.15g", value);
	else
		(void)fputs("null", json->out);
	finish(json);
}

void pfs_json_bool(struct pfs_json *json, const char *key, bool value)
{
	start(json, key);
	(void)fputs(value ? "true" : "false", json->out);
	finish(json);
}

void pfs_json_string(struct pfs_json *json, const char *key, const char *value)
{
	pfs_json_bytes(json, key, value, strlen(value));
}

void pfs_json_bytes(struct pfs_json *json, const char *key, const void *value, size_t len)
{
	start(json, key);
	put_quoted(json->out, value, len);
	finish(json);
}
