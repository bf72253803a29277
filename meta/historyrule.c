/* SPDX-License-Identifier: MIT */
/* How much history is kept: parses the rule, begins to keep history by it, and ends that. */
#include "meta/history.h"

#include <string.h>

#include "base/checked.h"
#include "meta/internal.h"
#include "meta/version.h"

#define SECOND	INT64_C(1000000000)
#define AGE_MAX (INT64_C(100) * 365 * 86400 * SECOND)

int pfs_history_parse(struct pfs_history_rule *out, const char *text)
{
	static const struct {
		int64_t seconds;
		unsigned shift; /* of bytes */
		char letter;
	} units[] = {
		{1, 0, 's'},  {3600, 0, 'h'}, {86400, 0, 'd'}, {604800, 0, 'w'}, {31556952, 0, 'y'},
		{0, 10, 'K'}, {0, 20, 'M'},   {0, 30, 'G'},    {0, 40, 'T'},
	};
	size_t len = strlen(text), i = 0;
	char digits[12];
	uint64_t n;

	*out = (struct pfs_history_rule){0};
	if (strcmp(text, "no") == 0)
		return 0;
	if (len < 2 || len > sizeof(digits))
		return -EINVAL;
	while (i < PFS_COUNT(units) && units[i].letter != text[len - 1])
		i++;
	(void)memcpy(digits, text, len - 1);
	digits[len - 1] = 0;
	if (i == PFS_COUNT(units) || pfs_parse_u64(&n, digits) || !n || n > UINT32_MAX)
		return -EINVAL;
	if (units[i].shift) {
		out->size = n << units[i].shift;
		return out->size > INT64_MAX ? -EINVAL : 0;
	}
	if ((int64_t)n > AGE_MAX / SECOND / units[i].seconds)
		return -EINVAL;
	out->age = (int64_t)n * units[i].seconds * SECOND;
	return 0;
}

static int begin_history(struct pfs_store *store)
{
	PFS_TRY(pfs_db_exec(store->writer, pfs_schema_history_sql));
	PFS_TRY(pfs_db_begin_history(store->writer));
	return pfs_history_ask(store->writer, NULL, 0,
			       "INSERT INTO history (id, keep_time, keep_size, since_seq, since) "
			       "SELECT 1, 0, 0, seq, ?1 FROM meta WHERE id = 1",
			       pfs_history_now(store), 0);
}

static int change_rule(struct pfs_store *store, const struct pfs_history_rule *rule)
{
	if (!rule->age && !rule->size) {
		pfs_db_end_history(store->writer);
		return pfs_db_exec(store->writer,
				   "DROP TABLE history_attr; DROP TABLE history_node;"
				   "DROP TABLE history_group; DROP TABLE history");
	}
	if (!store->writer->history[0])
		PFS_TRY(begin_history(store));
	return pfs_history_ask(store->writer, NULL, 0,
			       "UPDATE history SET keep_time = ?1, keep_size = ?2", rule->age,
			       (int64_t)rule->size);
}

int pfs_history_set(struct pfs_store *store, const struct pfs_history_rule *rule)
{
	int error = pfs_store_begin(store);

	if (error)
		return error;
	if (rule->age == store->history.age && rule->size == store->history.size) {
		pfs_store_rollback(store);
		return 0;
	}
	error = change_rule(store, rule);
	store->history.is_known = false;
	if (!error)
		error = pfs_history_begin(store);
	if (!error)
		error = pfs_store_commit(store, NULL);
	if (error) {
		pfs_store_rollback(store);
		/* it is opened again later, for the file as it is then */
		(void)pfs_db_close(store->writer);
		store->writer = NULL;
	}
	return error;
}
