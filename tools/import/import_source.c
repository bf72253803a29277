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
		return pfs_import_fail(
			import,
			"the rules to leave something out have %zu bytes; a store keeps at most %u",
			size, PFS_ATTR_VALUE_MAX);
	attr.text = text;
	attr.text_len = size;
	return pfs_store_put_attr(pfs_build_store(import->build), prime, &attr);
}

void pfs_import_mark_compared(struct pfs_import *import)
{
	uint32_t node, from = 0, n = 0;

	while (n <= PFS_COMPARED_MAX && pfs_build_next_top(import->build, &node, &from))
		n++;
	import->says_when = n <= PFS_COMPARED_MAX && !import->options.passing;
	for (from = 0; import->says_when && pfs_build_next_top(import->build, &node, &from);)
		pfs_build_set_flags(import->build, node, PFS_NODE_ATTRS, 0);
}

/* Returns true for a folder whose files do not become links. */
static bool is_copied(const struct pfs_import *import)
{
	return import->options.format == &pfs_import_dir &&
	       import->options.content != PFS_CONTENT_LINK;
}

int pfs_import_put_compared(struct pfs_import *import, uint32_t node, uint64_t prime)
{
	const struct pfs_compared_times times = {.full_s = import->begun_s};
	char text[PFS_COMPARED_TEXT_SIZE];
	struct pfs_attr_record attr = {
		.name = PFS_COMPARED,
		.name_len = sizeof(PFS_COMPARED) - 1,
		.type = PFS_ATTR_TEXT,
		.text = text,
	};

	if (!import->says_when || !pfs_build_is_top(import->build, node))
		return 0;
	attr.text_len = (size_t)pfs_compared_print(text, &times);
	PFS_TRY(pfs_store_put_attr(pfs_build_store(import->build), prime, &attr));
	if (!is_copied(import))
		return 0;
	attr = (struct pfs_attr_record){.name = PFS_COPIED,
					.name_len = sizeof(PFS_COPIED) - 1,
					.type = PFS_ATTR_TEXT,
					.text = ""};
	return pfs_store_put_attr(pfs_build_store(import->build), prime, &attr);
}

int pfs_import_forget_copied(struct pfs_import *import)
{
	const uint64_t at = pfs_build_prime(import->build, PFS_BUILD_ROOT);

	if (!import->options.at || is_copied(import) || !pfs_build_is_into_empty(import->build))
		return 0;
	return pfs_store_remove_attr(pfs_build_store(import->build), at, PFS_COPIED,
				     sizeof(PFS_COPIED) - 1);
}
