/* SPDX-License-Identifier: MIT */
#include "gpu/aggregate.h"

#include <string.h>
#include <strings.h>

#include "gpu/run.h"

enum { NOTHING, ZERO };

const struct pfs_aggregate_traits pfs_aggregate_traits[PFS_N_AGGREGATES] = {
#define AGGREGATE(id, name, fold, result, of_none, merge)                                          \
	[PFS_##id] = {name, PFS_FOLD_##fold, PFS_RESULT_##result, of_none, PFS_MERGE_##merge},
	PFS_AGGREGATES(AGGREGATE)
#undef AGGREGATE
};

const struct pfs_fold_traits pfs_fold_traits[] = {
#define FOLD(id, takes, ...) [PFS_FOLD_##id] = {PFS_TAKES_##takes, __VA_ARGS__},
	PFS_FOLDS(FOLD)
#undef FOLD
};

bool pfs_aggregate_by_name(enum pfs_aggregate_op *op, const char *name, size_t len)
{
	for (int i = 0; i < PFS_N_AGGREGATES; i++) {
		const char *own = pfs_aggregate_traits[i].name;

		if (!own || strlen(own) != len || strncasecmp(own, name, len) != 0)
			continue;
		*op = (enum pfs_aggregate_op)i;
		return true;
	}
	return false;
}

void pfs_texts_free(const struct pfs_run *run, struct pfs_texts *texts)
{
	pfs_run_free(run, texts->bytes, texts->size, 1);
	texts->bytes = NULL;
}
