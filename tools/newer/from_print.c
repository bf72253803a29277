/* SPDX-License-Identifier: MIT */
#include "tools/newer/from_print.h"

#include <stdio.h>
#include <string.h>

const char *const pfs_from_names[PFS_FROM_WHATS] = {
	[PFS_FROM_ADDED] = "added", [PFS_FROM_REMOVED] = "removed", [PFS_FROM_MERGED] = "merged",
	[PFS_FROM_MOVED] = "moved", [PFS_FROM_RENAMED] = "renamed", [PFS_FROM_CHANGED] = "changed",
	[PFS_FROM_KEPT] = "kept",
};

void pfs_from_print(const struct pfs_from_event *event)
{
	const char *arrow = event->what == PFS_FROM_MERGED ? " -> " : " <- ";

	(void)printf("%s %s", pfs_from_names[event->what], event->path);
	if (event->from)
		(void)printf("%s%s", arrow, event->from);
	if (event->column)
		(void)printf(": %s", event->column);
	if (event->before)
		(void)printf(" was %s", event->before);
	if (event->after)
		(void)printf("%s is %s", event->before ? "," : "", event->after);
	(void)printf("\n");
}

static void add_text(struct pfs_json *json, const char *key, const char *value)
{
	if (value)
		pfs_json_bytes(json, key, value, strlen(value));
}

void pfs_from_print_json(struct pfs_json *json, const struct pfs_from_event *event)
{
	pfs_json_open(json, NULL, '{');
	pfs_json_string(json, "what", pfs_from_names[event->what]);
	if (event->ino)
		pfs_json_u64(json, "ino", event->ino);
	add_text(json, "id", event->key);
	add_text(json, "path", event->path);
	add_text(json, event->what == PFS_FROM_MERGED ? "into" : "from", event->from);
	add_text(json, "column", event->column);
	add_text(json, "before", event->before);
	add_text(json, "after", event->after);
	pfs_json_close(json, '}');
}

void pfs_from_print_counts(const struct pfs_from_lists *from, bool merges)
{
	const char *comma = "";

	for (int what = 0; what < PFS_FROM_WHATS; what++) {
		if (!merges && (what == PFS_FROM_MERGED || what == PFS_FROM_KEPT))
			continue;
		(void)printf("%s%llu %s", comma,
			     (unsigned long long)pfs_from_count(from, (enum pfs_from_what)what),
			     pfs_from_names[what]);
		comma = ", ";
	}
}

void pfs_from_print_counts_json(struct pfs_json *json, const struct pfs_from_lists *from)
{
	for (int what = 0; what < PFS_FROM_WHATS; what++)
		pfs_json_u64(json, pfs_from_names[what],
			     pfs_from_count(from, (enum pfs_from_what)what));
}
