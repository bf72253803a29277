/* SPDX-License-Identifier: MIT */
#include "fs/nodes/paths.h"

#include <stdlib.h>

#include "base/checked.h"
#include "fs/image/past.h"
#include "fs/image/span.h"
#include "fs/nodes/list.h"
#include "fs/nodes/scan_impl.h"
#include "fs/tree/tree_impl.h"

struct pfs_paths {
	struct pfs_tree *tree;
	struct pfs_past *past;
	unsigned flags;
	uint32_t from, to;
	struct pfs_slots slots; /* n 0: all from..to */
};

/* Whether the subtree is the slots *from to *to, whose order is pre-order. */
static bool is_range(struct pfs_tree *tree, uint32_t top, uint32_t *from, uint32_t *to)
{
	const struct pfs_image *image = &tree->image;

	*from = top == image->root ? 0 : top;
	*to = top == image->root ? image->end : top + 1;
	if (top != image->root && S_ISDIR(image->mode[top]))
		*to = pfs_span_end(tree, top);
	return *to && pfs_scan_ascends(tree, *from, *to);
}

int pfs_paths_order(struct pfs_tree *tree, uint64_t ino, uint32_t *from, uint32_t *to,
		    struct pfs_slots *slots)
{
	const struct pfs_predicate under = {.test = PFS_TEST_UNDER, .low = (int64_t)ino};
	uint32_t top = pfs_image_slot(tree, ino);

	*slots = (struct pfs_slots){.slot = NULL};
	if (top == PFS_NO_SLOT || tree->image.state[top] & PFS_SLOT_UNLINKED)
		return -ENOENT;
	if (is_range(tree, top, from, to))
		return 0;
	*from = *to = 0;
	PFS_TRY(pfs_scan_select(tree, slots, &under, 1, NULL, NULL));
	return pfs_scan_sort_preorder(tree, slots, NULL);
}

int pfs_paths_open(struct pfs_paths **out, struct pfs_tree *tree, uint64_t ino, unsigned flags)
{
	struct pfs_paths *paths = calloc(1, sizeof(*paths));
	int error;

	*out = NULL;
	if (!paths)
		return -ENOMEM;
	paths->tree = tree;
	paths->flags = flags;
	(void)pthread_rwlock_rdlock(&tree->lock);
	error = pfs_paths_order(tree, ino, &paths->from, &paths->to, &paths->slots);
	if (!error)
		error = pfs_past_open(&paths->past, tree);
	(void)pthread_rwlock_unlock(&tree->lock);
	if (error)
		pfs_paths_close(paths);
	else
		*out = paths;
	return error;
}

void pfs_paths_close(struct pfs_paths *paths)
{
	if (!paths)
		return;
	pfs_past_close(paths->past);
	pfs_slots_finish(&paths->slots);
	free(paths);
}

static int list(const struct pfs_paths *paths, uint64_t row, uint64_t end,
		const struct pfs_list_sink *sink)
{
	PFS_TRY(pfs_past_check(paths->past));
	if (paths->slots.n)
		return pfs_list_slots(paths->tree, paths->slots.slot + row, (size_t)(end - row), sink);
	return pfs_list_range(paths->tree, paths->from + (uint32_t)row, paths->from + (uint32_t)end,
			      sink);
}

static uint64_t rows_of(const struct pfs_paths *paths)
{
	return paths->slots.n ? paths->slots.n : paths->to - paths->from;
}

int pfs_paths_next(struct pfs_paths *paths, uint64_t *row,
		   int (*fn)(void *arg, const char *bytes, size_t size), void *arg)
{
	const struct pfs_list_sink sink = {paths->past, paths->flags, fn, arg};
	uint64_t n = rows_of(paths), end = PFS_MIN(n, *row + PFS_PATHS_HELD);
	int rc;

	if (*row >= n)
		return 0;
	(void)pthread_rwlock_rdlock(&paths->tree->lock);
	rc = list(paths, *row, end, &sink);
	(void)pthread_rwlock_unlock(&paths->tree->lock);
	if (rc)
		return rc;
	*row = end;
	return 1;
}

static int measure(const struct pfs_paths *paths, uint64_t *size, uint64_t row, uint64_t end)
{
	PFS_TRY(pfs_past_check(paths->past));
	if (paths->slots.n)
		return pfs_list_measure_slots(paths->tree, size, paths->slots.slot + row,
					      (size_t)(end - row), paths->past);
	return pfs_list_measure_range(paths->tree, size, paths->from + (uint32_t)row,
				      paths->from + (uint32_t)end, paths->past);
}

int pfs_paths_measure(struct pfs_paths *paths, uint64_t *row, uint64_t *size, uint64_t n)
{
	uint64_t rows = rows_of(paths), end;
	int error;

	if (*row >= rows)
		return 0;
	end = *row + PFS_MIN(n, rows - *row);
	(void)pthread_rwlock_rdlock(&paths->tree->lock);
	error = measure(paths, size, *row, end);
	(void)pthread_rwlock_unlock(&paths->tree->lock);
	if (error)
		return error;
	*row = end;
	return 1;
}
