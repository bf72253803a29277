/* SPDX-License-Identifier: MIT */
#include "fs/query/edits.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static int append(struct pfs_edits *edits, const char *bytes, size_t n)
{
	PFS_TRY(pfs_grow(&edits->text, &edits->capacity, edits->len + n + 1, 1));
	if (n)
		memcpy(edits->text + edits->len, bytes, n);
	edits->len += n;
	return 0;
}

int pfs_edits_replace(struct pfs_edits *edits, const char *old, size_t old_at, size_t old_len,
		      const char *bytes, size_t n)
{
	PFS_TRY(append(edits, old + edits->copied, old_at - edits->copied));
	edits->n++;
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
	*edits = (struct pfs_edits){.text = NULL};
}
