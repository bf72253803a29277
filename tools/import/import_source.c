/* SPDX-License-Identifier: MIT */
#include "tools/import/import_source.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "fs/content/compared.h"
#include "fs/content/follow.h"
#include "tools/import/ignore.h"

int pfs_import_put_left_out(struct pfs_import *import, uint64_t prime)
{
	char *text PFS_FREE = NULL;
	size_t size;
	struct pfs_attr_record attr = {
		.name = PFS_LEFT_OUT, .name_len = sizeof(PFS_LEFT_OUT) - 1, .type = PFS_ATTR_TEXT};

	PFS_TRY(pfs_leaving_out_write(import->options.leaving_out, &text, &size));
	if (size > PFS_ATTR_VALUE_MAX)
		return pfs_import_fail(import,
				       "the rules to leave something out have %zu bytes; a store keeps at most %u",
				       size, PFS_ATTR_VALUE_MAX);
	attr.text = text;
	attr.text_len = size;
	return pfs_store_put_attr(pfs_build_store(import->build), prime, &attr);
}

int pfs_import_put_compared(struct pfs_import *import, uint64_t prime, time_t begun_s)
{
	const struct pfs_compared_times times = {.full_s = begun_s};
	char text[PFS_COMPARED_TEXT_SIZE];
	const struct pfs_attr_record attr = {
		.name = PFS_COMPARED,
		.name_len = sizeof(PFS_COMPARED) - 1,
		.type = PFS_ATTR_TEXT,
		.text = text,
		.text_len = (size_t)pfs_compared_print(text, &times),
	};

	return pfs_store_put_attr(pfs_build_store(import->build), prime, &attr);
}
