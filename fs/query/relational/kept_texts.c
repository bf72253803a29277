/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/run.h"

/* Texts that outlast the block that makes them: those around it may hand them on. */
struct pfs_kept_texts {
	struct pfs_texts texts;
	struct pfs_kept_texts *next;
};

struct pfs_texts *pfs_kept_texts_add(struct pfs_run_context *context)
{
	struct pfs_kept_texts *kept = pfs_arena_get(context->arena, sizeof(*kept));

	if (!kept)
		return NULL;
	kept->next = context->kept_texts;
	context->kept_texts = kept;
	return &kept->texts;
}

void pfs_kept_texts_free(struct pfs_run_context *context)
{
	for (struct pfs_kept_texts *kept = context->kept_texts; kept; kept = kept->next)
		pfs_texts_free(context->run, &kept->texts);
	context->kept_texts = NULL;
}
