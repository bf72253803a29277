/* SPDX-License-Identifier: MIT */
#include "tools/import/import_source.h"

#include <stdlib.h>
#include <string.h>

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

/* Returns true for a folder whose files do not become links. */
static bool is_copied(const struct pfs_import *import)
{
	return import->options.format == &pfs_import_dir &&
	       import->options.content != PFS_CONTENT_LINK;
}

static bool says_when(const struct pfs_import *import, uint32_t node)
{
	return import->says_when && pfs_build_is_top(import->build, node);
}

static bool says_copied(const struct pfs_import *import, uint32_t node)
{
	return is_copied(import) &&
	       (says_when(import, node) || pfs_build_is_grown(import->build, node));
}

void pfs_import_mark_compared(struct pfs_import *import)
{
	uint32_t node, from = 0, n = 0;

	while (pfs_build_next_place(import->build, &node, &from))
		n += pfs_build_is_top(import->build, node);
	import->says_when = n <= PFS_COMPARED_MAX && !import->options.passing;
	for (from = 0; pfs_build_next_place(import->build, &node, &from);)
		if (says_when(import, node) || says_copied(import, node))
			pfs_build_set_flags(import->build, node, PFS_NODE_ATTRS, 0);
}

static int put(struct pfs_import *import, uint64_t prime, const char *name, const char *text)
{
	const struct pfs_attr_record attr = {
		.name = name,
		.name_len = strlen(name),
		.type = PFS_ATTR_TEXT,
		.text = text,
		.text_len = strlen(text),
	};

	return pfs_store_put_attr(pfs_build_store(import->build), prime, &attr);
}

int pfs_import_put_compared(struct pfs_import *import, uint32_t node, uint64_t prime)
{
	const struct pfs_compared_times times = {.full_s = import->begun_s};
	char text[PFS_COMPARED_TEXT_SIZE];

	if (says_copied(import, node))
		PFS_TRY(put(import, prime, PFS_COPIED, ""));
	if (!says_when(import, node))
		return 0;
	(void)pfs_compared_print(text, &times);
	PFS_TRY(put(import, prime, PFS_COMPARED, text));
	if (is_copied(import) || !pfs_build_is_grown(import->build, node))
		return 0;
	return pfs_store_remove_attr(pfs_build_store(import->build), prime, PFS_COPIED,
				     sizeof(PFS_COPIED) - 1);
}
