/* SPDX-License-Identifier: MIT */
/* Finds out whether a scan may look for the texts of an IN. SQLite hands IN to a virtual table as
 * `=`, one value after another, and then tests each row by `=` with that value alone. This is right
 * for a list, whose values have the column's affinity and collation. The values of a SELECT may
 * have others, which are lost. */
#include "fs/query/internal.h"
#include "fs/query/tokens.h"

/* Returns true if what stands behind IN is no list of expressions. */
static bool is_selected(const char *sql, size_t len, const struct pfs_token *in)
{
	struct pfs_token token = pfs_token_next(sql, len, in->at + in->len);

	if (token.kind != PFS_TOKEN_OPEN)
		return true;
	while (token.kind == PFS_TOKEN_OPEN)
		token = pfs_token_next(sql, len, token.at + token.len);
	return pfs_token_is(sql, &token, "SELECT") || pfs_token_is(sql, &token, "VALUES") ||
	       pfs_token_is(sql, &token, "WITH");
}

/* Returns true if the text has an IN of what is selected; after_row: only behind what may be a row
 * of values. NOT IN does not count. */
static bool selects_members(const char *sql, size_t len, bool after_row)
{
	struct pfs_token before, token = {.kind = PFS_TOKEN_OTHER};

	do {
		before = token;
		token = pfs_token_next(sql, len, token.at + token.len);
		if (pfs_token_is(sql, &token, "IN") && !pfs_token_is(sql, &before, "NOT") &&
		    (!after_row || before.kind == PFS_TOKEN_CLOSE) && is_selected(sql, len, &token))
			return true;
	} while (token.kind != PFS_TOKEN_END);
	return false;
}

bool pfs_is_selected_member(const struct pfs_query *query,
			    const struct pfs_sql_constraint *constraint)
{
	return constraint->op == PFS_SQL_EQ && !constraint->value &&
	       pfs_token_may_be(query->sql, query->len, "in") &&
	       selects_members(query->sql, query->len, !constraint->is_in);
}
