/* SPDX-License-Identifier: MIT */
#include "fs/image/snapshot_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

#define PART	  8u /* of the image: what all that is kept may take, */
#define LEAST	  (UINT64_C(64) << 20) /* but so many bytes in a small one */
#define KEPT_NAME 16u /* bytes that a kept name costs, about, */
#define KEPT_SLOT 96u /* and a slot */

static const size_t class_size[PFS_VERSION_CLASSES] = {512, 8192, 16384, 32768};

/* ---- the limit ---- */

void pfs_snapshots_find_limit(struct pfs_snapshots *snapshots)
{
	const struct pfs_image *image = &snapshots->tree->image;
	uint64_t bytes = pfs_names_bytes(image->names);

	for (size_t i = 0; i < PFS_IMAGE_COLUMNS; i++)
		bytes += image->memory[i].committed;
	snapshots->limit = PFS_MAX(bytes / PART, LEAST);
}

/* Bytes in all. */
static uint64_t taken(const struct pfs_snapshots *snapshots)
{
	uint64_t bytes = snapshots->stats.bytes +
			 pfs_names_held(snapshots->tree->image.names) * KEPT_NAME +
			 pfs_kept_count(&snapshots->kept) * KEPT_SLOT;

	for (unsigned kind = 0; kind < PFS_KEPT_KINDS; kind++)
		bytes += (uint64_t)atomic_load_explicit(&snapshots->elsewhere[kind],
							memory_order_relaxed);
	return bytes;
}

/* What is kept for one that was given up is freed when it has ended: that shall not cost the others
 * theirs. */
static uint64_t limit_now(const struct pfs_snapshots *snapshots)
{
	uint64_t limit = snapshots->limit;

	for (const struct pfs_snapshot *one = snapshots->oldest; one; one = one->next)
		limit += one->given_up ? snapshots->limit / 4 : 0;
	return limit;
}

bool pfs_snapshots_are_over(const struct pfs_snapshots *snapshots)
{
	return taken(snapshots) > limit_now(snapshots);
}

/* ---- memory that no version has ---- */

void pfs_spare_put(struct pfs_snapshots *snapshots, struct pfs_version *version, unsigned class)
{
	version->older = snapshots->spare[class];
	snapshots->spare[class] = version;
	snapshots->n_spare[class]++;
}

struct pfs_version *pfs_spare_pop(struct pfs_snapshots *snapshots, unsigned class)
{
	struct pfs_version *version = snapshots->spare[class];

	if (version) {
		snapshots->spare[class] = version->older;
		snapshots->n_spare[class]--;
	}
	return version;
}

bool pfs_spare_free(struct pfs_snapshots *snapshots)
{
	for (unsigned class = PFS_VERSION_CLASSES; class-- > 0;) {
		struct pfs_version *version = pfs_spare_pop(snapshots, class);

		if (!version)
			continue;
		free(version);
		snapshots->stats.bytes -= class_size[class];
		return true;
	}
	return false;
}

struct pfs_version *pfs_spare_take_all(struct pfs_snapshots *snapshots)
{
	struct pfs_version *list = NULL;

	for (unsigned class = 0; class < PFS_VERSION_CLASSES; class++) {
		struct pfs_version *version;

		while ((version = pfs_spare_pop(snapshots, class))) {
			version->older = list;
			list = version;
			snapshots->stats.bytes -= class_size[class];
		}
	}
	return list;
}

struct pfs_version *pfs_spare_make(struct pfs_snapshots *snapshots, unsigned class)
{
	struct pfs_snapshot_stats *stats = &snapshots->stats;
	struct pfs_version *version = NULL;

	if (taken(snapshots) + class_size[class] <= limit_now(snapshots))
		version = malloc(sizeof(*version) + class_size[class]);
	if (version) {
		stats->bytes += class_size[class];
		stats->most_bytes = PFS_MAX(stats->most_bytes, stats->bytes);
	}
	return version;
}

/* ---- what is kept beside blocks ---- */

uint64_t pfs_snapshots_open(const struct pfs_tree *tree, uint64_t *first)
{
	const struct pfs_snapshots *snapshots = tree->snapshots;

	*first = snapshots ? atomic_load_explicit(&snapshots->first, memory_order_acquire) : 0;
	return snapshots ? atomic_load_explicit(&snapshots->last, memory_order_acquire) : 0;
}

void pfs_snapshots_keep(struct pfs_tree *tree, enum pfs_kept_kind kind, int64_t bytes)
{
	if (tree->snapshots)
		(void)atomic_fetch_add_explicit(&tree->snapshots->elsewhere[kind], bytes,
						memory_order_relaxed);
}

bool pfs_snapshots_has_room(struct pfs_tree *tree, enum pfs_kept_kind kind, uint64_t bytes)
{
	struct pfs_snapshots *snapshots = tree->snapshots;
	PFS_LOCKED(&snapshots->lock);

	if ((uint64_t)atomic_load(&snapshots->elsewhere[kind]) + bytes > snapshots->limit / 2)
		return false;
	while (taken(snapshots) + bytes > limit_now(snapshots))
		if (!pfs_spare_free(snapshots))
			return false;
	return true;
}

void pfs_snapshots_measure(struct pfs_tree *tree)
{
	PFS_LOCKED(&tree->snapshots->lock);

	pfs_snapshots_find_limit(tree->snapshots);
}

bool pfs_snapshots_keep_slot(struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_snapshots *snapshots = tree->snapshots;
	uint64_t first, last = pfs_snapshots_open(tree, &first);

	if (!last || slot >= atomic_load_explicit(&snapshots->end, memory_order_acquire))
		return false;
	(void)!pfs_kept_add(&snapshots->kept, slot, last);
	return true;
}

void pfs_snapshots_stats(struct pfs_tree *tree, struct pfs_snapshot_stats *out)
{
	const struct pfs_snapshots *snapshots = tree->snapshots;
	PFS_LOCKED(&tree->snapshots->lock);

	*out = snapshots->stats;
	out->kept_names = pfs_names_held(tree->image.names);
	out->kept_slots = pfs_kept_count(&snapshots->kept);
	for (unsigned kind = 0; kind < PFS_KEPT_KINDS; kind++)
		out->kept_elsewhere[kind] = (uint64_t)atomic_load(&snapshots->elsewhere[kind]);
	out->taken_bytes = taken(snapshots);
	out->limit = snapshots->limit;
}
