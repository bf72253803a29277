/* SPDX-License-Identifier: MIT */
#include "fs/query/counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/query/tokens.h"

struct reader {
	const char *sql;
	size_t len;
	struct pfs_token token; /* the next one */
};

static void step(struct reader *reader)
{
	reader->token = pfs_token_next(reader->sql, reader->len,
				       reader->token.at + reader->token.len);
}

static bool skip_word(struct reader *reader, const char *word)
{
	bool is = pfs_token_is(reader->sql, &reader->token, word);

	if (is)
		step(reader);
	return is;
}

static bool skip_sign(struct reader *reader, enum pfs_token_kind kind, char sign)
{
	bool is = reader->token.kind == kind && reader->sql[reader->token.at] == sign;

	if (is)
		step(reader);
	return is;
}

/* Where it stands. */
struct count {
	size_t from, to; /* count(*) */
	size_t end;	 /* of FROM nodes */
	bool named;	 /* count(*) AS name */
};

/* Reads on after SELECT; true: one was read, and nothing but it is selected. */
static bool read_count(struct reader *reader, struct count *count)
{
	count->from = reader->token.at;
	if (!skip_word(reader, "count") || !skip_sign(reader, PFS_TOKEN_OPEN, '(') ||
	    !skip_sign(reader, PFS_TOKEN_OTHER, '*') || reader->token.kind != PFS_TOKEN_CLOSE)
		return false;
	count->to = reader->token.at + 1;
	step(reader);
	count->named = skip_word(reader, "AS") ||
		       !pfs_token_is(reader->sql, &reader->token, "FROM");
	if (count->named) {
		if (reader->token.kind != PFS_TOKEN_WORD)
			return false;
		step(reader);
	}
	if (!skip_word(reader, "FROM"))
		return false;
	count->end = reader->token.at + reader->token.len;
	return skip_word(reader, "nodes") &&
	       (reader->token.kind == PFS_TOKEN_END || reader->token.kind == PFS_TOKEN_CLOSE ||
		reader->sql[reader->token.at] == ';');
}

/* Without a name the column has the text as it stands there for one. */
static int put_total(struct pfs_edits *out, const struct reader *reader, const struct count *count)
{
	const char *text = reader->sql + count->from;
	size_t len = count->to - count->from;
	char total[128];
	int n;

	if (count->named)
		n = snprintf(total, sizeof(total), "ifnull(max(subtree_count), 0)");
	else
		n = snprintf(total, sizeof(total), "ifnull(max(subtree_count), 0) AS \"%.*s\"",
			     (int)len, text);
	return pfs_edits_replace(out, reader->sql, count->from, len, total, (size_t)n);
}

static int replace(struct pfs_edits *out, const struct reader *reader, const struct count *count,
		   uint64_t top)
{
	char where[48];
	int n = snprintf(where, sizeof(where), " WHERE ino = %" PRIu64, top);

	PFS_TRY(put_total(out, reader, count));
	return pfs_edits_replace(out, reader->sql, count->end, 0, where, (size_t)n);
}

/* What stands between its signs must fit, and be no quote. */
static bool can_name(const struct reader *reader, const struct count *count)
{
	size_t len = count->to - count->from;

	return len < 64 && !memchr(reader->sql + count->from, '"', len);
}

/* WITH may give the name `nodes` to something else. */
static bool has_with(struct reader reader)
{
	for (step(&reader); reader.token.kind != PFS_TOKEN_END; step(&reader))
		if (pfs_token_is(reader.sql, &reader.token, "WITH"))
			return true;
	return false;
}

int pfs_counts_replace(struct pfs_edits *out, const char *sql, size_t len, uint64_t top)
{
	struct reader reader = {.sql = sql, .len = len};
	struct count count;

	*out = (struct pfs_edits){.text = NULL};
	if (!pfs_token_may_be(sql, len, "count"))
		return 0;
	for (step(&reader); reader.token.kind != PFS_TOKEN_END;) {
		if (!skip_word(&reader, "SELECT")) {
			step(&reader);
			continue;
		}
		if (!read_count(&reader, &count) || !can_name(&reader, &count))
			continue;
		if (!out->n && has_with((struct reader){.sql = sql, .len = len}))
			return 0;
		PFS_TRY(replace(out, &reader, &count, top));
	}
	return out->n ? pfs_edits_end(out, sql, len) : 0;
}
