/* SPDX-License-Identifier: MIT */
#include "fs/image/span.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/tree/dir.h"
#include "fs/tree/tree_impl.h"

/* By slot: the end of a directory's range; 0: it has none, or is no directory; LOST: it has none
 * any more, and neither has any directory above; HOLE: there was no name when the ranges were made,
 * so that ranges may reach across. */
#define HOLE UINT32_MAX
#define LOST (UINT32_MAX - 1)
#define SORTED UINT32_C(0x40000000) /* added to an end: children are known to ascend by name */

struct pfs_spans {
	pthread_mutex_t lock; /* of making them, and noting the order, with tree->lock for reading */
	_Atomic(uint32_t *) end;
	uint32_t n;	  /* slots covered; set before `end` */
	atomic_int order; /* enum pfs_slot_order; set after what strays from it, */
	uint32_t strays[PFS_STRAYS_MAX], n_strays; /* which ascends */
};

static void drop(struct pfs_spans *spans)
{
	free(atomic_exchange(&spans->end, NULL));
}

void pfs_spans_destroy(struct pfs_tree *tree)
{
	if (!tree->spans)
		return;
	drop(tree->spans);
	(void)pthread_mutex_destroy(&tree->spans->lock);
	free(tree->spans);
	tree->spans = NULL;
}

/* ---- making them ---- */

/* Directories whose ranges may still grow, each under the one before. */
struct open {
	uint32_t *slot;
	size_t n, capacity;
};

#define OPEN UINT32_C(0x80000000) /* in place of an end: open, and at which level */

static void close_to(struct open *open, uint32_t *end, size_t level, uint32_t last)
{
	while (open->n > level)
		end[open->slot[--open->n]] = last + 1;
}

/* The slot comes after `last`.  Directories above it that are no longer, or not yet, open get no
 * range; those open that it does not lie under end before it. */
static int add(const struct pfs_image *image, struct open *open, uint32_t *end, uint8_t *spoiled,
	       uint32_t slot, uint32_t last)
{
	uint32_t above = image->parent[slot];

	for (; above != PFS_NO_SLOT && !(end[above] & OPEN); above = image->parent[above])
		spoiled[above] = 1;
	close_to(open, end, above == PFS_NO_SLOT ? 0 : (end[above] & ~OPEN) + 1, last);
	if (!S_ISDIR(image->mode[slot]))
		return 0;
	PFS_TRY(pfs_grow(&open->slot, &open->capacity, open->n + 1, sizeof(*open->slot)));
	end[slot] = OPEN | (uint32_t)open->n;
	open->slot[open->n++] = slot;
	return 0;
}

static int find_ranges(const struct pfs_image *image, uint32_t *end)
{
	uint8_t *spoiled PFS_FREE = calloc((size_t)image->end + 1, 1);
	struct open open = {0};
	uint32_t last = 0;
	int error = spoiled ? 0 : -ENOMEM;

	for (uint32_t slot = 0; slot < image->end && !error; slot++) {
		if (!pfs_image_is_live(image, slot))
			continue;
		error = add(image, &open, end, spoiled, slot, last);
		last = slot;
	}
	close_to(&open, end, 0, last);
	for (uint32_t slot = 0; slot < image->end && !error; slot++) {
		if (spoiled[slot])
			end[slot] = 0;
		else if (!pfs_image_is_live(image, slot))
			end[slot] = HOLE;
	}
	free(open.slot);
	return error;
}

static uint32_t *ranges(struct pfs_tree *tree)
{
	struct pfs_spans *spans = tree->spans;
	uint32_t *end = atomic_load(&spans->end);

	if (end)
		return end;
	PFS_LOCKED(&spans->lock);
	end = atomic_load(&spans->end);
	if (end)
		return end;
	end = calloc((size_t)tree->image.end + 1, sizeof(*end));
	if (!end || find_ranges(&tree->image, end)) {
		free(end);
		return NULL;
	}
	spans->n = tree->image.end;
	atomic_store(&spans->end, end);
	return end;
}

/* With its mark; marks are set by several readers at once. */
static uint32_t end_of(struct pfs_tree *tree, uint32_t directory)
{
	const uint32_t *ends = ranges(tree);
	uint32_t end = ends && directory < tree->spans->n
			       ? __atomic_load_n(&ends[directory], __ATOMIC_RELAXED)
			       : 0;

	return end >= LOST ? 0 : end;
}

uint32_t pfs_span_end(struct pfs_tree *tree, uint32_t directory)
{
	return end_of(tree, directory) & ~SORTED;
}

bool pfs_span_is_sorted(struct pfs_tree *tree, uint32_t directory)
{
	return end_of(tree, directory) & SORTED;
}

void pfs_span_note_sorted(struct pfs_tree *tree, uint32_t directory)
{
	uint32_t *ends = atomic_load(&tree->spans->end);

	if (ends && end_of(tree, directory))
		(void)__atomic_fetch_or(&ends[directory], SORTED, __ATOMIC_RELAXED);
}

enum pfs_slot_order pfs_spans_order(struct pfs_tree *tree)
{
	return (enum pfs_slot_order)atomic_load(&tree->spans->order);
}

/* The first of them that is not below the slot. */
static size_t first_stray(const struct pfs_spans *spans, uint32_t slot)
{
	size_t low = 0, high = spans->n_strays;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans->strays[middle] < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t pfs_spans_strays(struct pfs_tree *tree, const uint32_t **strays, uint32_t slot)
{
	const struct pfs_spans *spans = tree->spans;
	size_t first = first_stray(spans, slot);

	*strays = spans->strays + first;
	return spans->n_strays - first;
}

void pfs_spans_note_order(struct pfs_tree *tree, enum pfs_slot_order order, const uint32_t *strays,
			  size_t n)
{
	struct pfs_spans *spans = tree->spans;
	PFS_LOCKED(&spans->lock);

	if (atomic_load(&spans->order) != PFS_ORDER_UNKNOWN) /* another reader was faster */
		return;
	if (n)
		memcpy(spans->strays, strays, n * sizeof(*strays));
	spans->n_strays = (uint32_t)n;
	atomic_store(&spans->order, order);
}

static void stray(const struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_spans *spans = tree->spans;
	size_t at = first_stray(spans, slot);

	if (at < spans->n_strays && spans->strays[at] == slot)
		return;
	if (spans->n_strays == PFS_STRAYS_MAX) {
		atomic_store(&spans->order, PFS_ORDER_UNKNOWN);
		return;
	}
	memmove(spans->strays + at + 1, spans->strays + at,
		(spans->n_strays++ - at) * sizeof(*spans->strays));
	spans->strays[at] = slot;
}

/* ---- losing them ---- */

/* Each directory's is lost once. */
static void lose(const struct pfs_tree *tree, uint32_t *end, uint32_t directory)
{
	const struct pfs_image *image = &tree->image;

	for (; directory != PFS_NO_SLOT; directory = image->parent[directory]) {
		if (directory >= tree->spans->n)
			continue; /* it never had one */
		if (end[directory] == LOST)
			break;
		end[directory] = LOST;
	}
}

static void attached(struct pfs_tree *tree, uint32_t *end, uint32_t slot)
{
	struct pfs_spans *spans = tree->spans;

	if (atomic_load(&spans->order) == PFS_ORDER_ASCENDING) {
		if (S_ISDIR(tree->image.mode[slot]) && !pfs_image_is_empty(tree, slot))
			atomic_store(&spans->order, PFS_ORDER_UNKNOWN);
		else
			stray(tree, slot);
	}
	if (end && slot < spans->n && end[slot] == HOLE)
		drop(spans); /* it may be inside of ranges that it is no part of */
	else if (end)
		lose(tree, end, tree->image.parent[slot]);
}

static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	uint32_t *end = atomic_load(&tree->spans->end);

	if (end)
		lose(tree, end, tree->image.parent[slot]);
}

static void changed(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	uint32_t *end = atomic_load(&tree->spans->end);

	if (pfs_image_is_live(&tree->image, slot))
		attached(tree, end, slot);
	else if (columns & PFS_COLUMN_PRIME && end && slot < tree->spans->n && end[slot] != HOLE)
		end[slot] = 0;
}

/* ---- life ---- */

/* What is kept must be found by a pass, too, which may find more. */
static bool check(struct pfs_tree *tree)
{
	const uint32_t *kept = atomic_load(&tree->spans->end);
	uint32_t *found PFS_FREE = calloc((size_t)tree->image.end + 1, sizeof(*found));

	if (!kept || !found || find_ranges(&tree->image, found))
		return true;
	for (uint32_t slot = 0; slot < PFS_MIN(tree->spans->n, tree->image.end); slot++)
		if (kept[slot] && kept[slot] < LOST && pfs_image_is_live(&tree->image, slot) &&
		    (kept[slot] & ~SORTED) != found[slot])
			return false;
	return true;
}

static const struct pfs_watcher watcher = {
	.name = "ranges of slots",
	.columns = PFS_COLUMN_PRIME | PFS_COLUMNS_PLACE,
	.changing = changing,
	.changed = changed,
	.check = check,
};

int pfs_spans_create(struct pfs_tree *tree)
{
	tree->spans = calloc(1, sizeof(*tree->spans));
	if (!tree->spans)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->spans->lock, NULL);
	pfs_watch(tree, &watcher);
	return 0;
}
