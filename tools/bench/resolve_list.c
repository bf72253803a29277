/* SPDX-License-Identifier: MIT */
#include "tools/bench/resolve_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/device_lookup.h"
#include "fs/nodes/scan.h"
#include "meta/store.h"
#include "tools/bench/gen.h"

#define AT_ONCE 10000000u /* paths, at most */
#define ROUNDS	16u	  /* in which they are taken where there are fewer of such lengths */

/* ---- the list ---- */

static int keep(void *arg, const char *bytes, size_t size)
{
	struct pfs_resolve_list *list = arg;

	PFS_TRY(pfs_grow(&list->text, &list->capacity, list->size + size, 1));
	memcpy(list->text + list->size, bytes, size);
	list->size += size;
	return 0;
}

static void mix(struct pfs_resolve_list *list)
{
	uint64_t state = 1;

	for (size_t i = 0; i < list->n; i++) {
		size_t other = pfs_gen_random(&state) % (i + 1);

		list->mixed[i] = list->mixed[other];
		list->mixed_wanted[i] = list->mixed_wanted[other];
		list->mixed[other] = list->paths[i];
		list->mixed_wanted[other] = list->wanted[i];
	}
}

/* Splits the text into paths and numbers. */
int pfs_resolve_list_make(struct pfs_resolve_list *list, struct pfs_tree *tree, size_t room)
{
	const uint64_t root = PFS_ROOT_PRIME;
	const struct pfs_question all = {PFS_SUBTREE, &root, 1};
	struct pfs_path_text path;
	size_t at = 0;

	PFS_TRY(pfs_tree_list(tree, &all, PFS_LIST_INO | PFS_LIST_ZERO, keep, list));
	list->paths = calloc(room, sizeof(*list->paths));
	list->mixed = calloc(room, sizeof(*list->mixed));
	list->wanted = calloc(room, sizeof(*list->wanted));
	list->mixed_wanted = calloc(room, sizeof(*list->mixed_wanted));
	if (!list->paths || !list->mixed || !list->wanted || !list->mixed_wanted)
		return -ENOMEM;
	while (list->n < room && pfs_path_next(&path, list->text, list->size, &at, 0)) {
		char *end;

		list->wanted[list->n] = strtoull(path.bytes, &end, 10);
		list->paths[list->n].bytes = end + 1;
		list->paths[list->n++].len = path.len - (size_t)(end + 1 - path.bytes);
	}
	mix(list);
	return 0;
}

void pfs_resolve_list_free(struct pfs_resolve_list *list)
{
	free(list->text);
	free(list->paths);
	free(list->mixed);
	free(list->wanted);
	free(list->mixed_wanted);
	*list = (struct pfs_resolve_list){.n = 0};
}

int pfs_resolve_differs(const char *verb)
{
	(void)pfs_cmd_fail(verb, "a path has another number than in the listing");
	return -EUCLEAN;
}

/* ---- at once ---- */

static int add_room(struct pfs_resolve_at_once *to, size_t n, size_t size)
{
	to->paths.list = PFS_RESIDENT_LISTS;
	to->paths.text = malloc(size + 1);
	to->paths.ends = calloc(n + 1, sizeof(*to->paths.ends));
	to->paths.slots = calloc(n + 1, sizeof(*to->paths.slots));
	to->wanted = calloc(n + 1, sizeof(*to->wanted));
	return to->paths.text && to->paths.ends && to->paths.slots && to->wanted ? 0 : -ENOMEM;
}

int pfs_resolve_at_once_make(struct pfs_resolve_at_once *asked, struct pfs_tree *tree,
			     const struct pfs_resolve_list *list, size_t least, size_t most)
{
	size_t size = 0, n = 0, end = 0;

	for (; end < ROUNDS * list->n && n < AT_ONCE; end++) {
		const size_t len = list->mixed[end % list->n].len;

		if (len < least || len > most)
			continue;
		if (size + len > UINT32_MAX)
			break;
		size += len;
		n++;
	}
	PFS_TRY(add_room(asked, n, size));
	size = 0;
	(void)pfs_scan_lock(tree, __func__);
	for (size_t i = 0; i < end; i++) {
		const struct pfs_path_text *path = &list->mixed[i % list->n];

		if (path->len < least || path->len > most)
			continue;
		memcpy(asked->paths.text + size, path->bytes, path->len);
		size += path->len;
		asked->wanted[asked->paths.n] = pfs_scan_slot_of(tree, list->mixed_wanted[i % list->n]);
		asked->paths.ends[asked->paths.n++] = (uint32_t)size;
	}
	pfs_scan_unlock(tree);
	return 0;
}

void pfs_resolve_at_once_free(struct pfs_resolve_at_once *asked)
{
	free(asked->paths.text);
	free(asked->paths.ends);
	free(asked->paths.slots);
	free(asked->wanted);
	*asked = (struct pfs_resolve_at_once){.wanted = NULL};
}

int pfs_resolve_at_once_time(struct pfs_figures *figures, const struct pfs_resolve_at_once *asked,
			     const char *verb, struct pfs_tree *tree)
{
	struct pfs_resident_paths paths = asked->paths;
	struct pfs_device_lookup_stats before, after;
	int error;

	if (paths.n == 0)
		return 0;
	pfs_device_lookup_stats(tree, &before);
	(void)pfs_scan_lock(tree, __func__);
	error = pfs_device_paths_resolve(tree, &paths, PFS_NO_SLOT);
	pfs_scan_unlock(tree);
	pfs_device_lookup_stats(tree, &after);
	if (error)
		return error;
	pfs_figures_add(figures,
			(double)paths.n * 1e3 /
				(double)(after.info.kernel_ns - before.info.kernel_ns + 1));
	return memcmp(paths.slots, asked->wanted, paths.n * sizeof(*paths.slots))
		       ? pfs_resolve_differs(verb)
		       : 0;
}
