/* SPDX-License-Identifier: MIT */
#include "fs/image/feed.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/reserve.h"
#include "fs/image/image.h"
#include "gpu/table.h"

#define PART 4u /* of all blocks: if more have changed, all are looked at */

struct change {
	uint32_t slot, columns;
};

struct pfs_feed {
	struct change *ring; /* by number, modulo PFS_FEED_CHANGES */
	struct pfs_stamps stamps[PFS_COLUMN_COUNT];
	struct pfs_reserve ring_memory, blocks[PFS_COLUMN_COUNT];
};

int pfs_feed_create(struct pfs_image *image)
{
	struct pfs_feed *feed = calloc(1, sizeof(*feed));

	image->feed = feed;
	if (!feed)
		return -ENOMEM;
	for (size_t i = 0; i < PFS_COLUMN_COUNT; i++) {
		PFS_TRY(pfs_stamps_reserve(&feed->stamps[i], &feed->blocks[i]));
		feed->stamps[i].clock = &image->epoch;
	}
	PFS_TRY(pfs_reserve_whole(&feed->ring_memory, PFS_FEED_CHANGES * sizeof(*feed->ring)));
	feed->ring = feed->ring_memory.base;
	return 0;
}

void pfs_feed_destroy(struct pfs_image *image)
{
	struct pfs_feed *feed = image->feed;

	if (!feed)
		return;
	for (size_t i = 0; i < PFS_COLUMN_COUNT; i++)
		pfs_reserve_close(&feed->blocks[i]);
	pfs_reserve_close(&feed->ring_memory);
	free(feed);
	image->feed = NULL;
}

void pfs_feed_note(struct pfs_image *image, uint32_t slot, unsigned columns)
{
	struct pfs_feed *feed = image->feed;
	const bool is_all = columns & PFS_COLUMN_LIVE; /* the node comes or goes */
	uint64_t number = image->epoch++;

	feed->ring[number % PFS_FEED_CHANGES] =
		(struct change){slot, is_all ? PFS_COLUMNS_ALL : columns};
	if (is_all) {
#define TOUCH(id, ...) pfs_stamps_touch(&feed->stamps[PFS_COLUMN_NUMBER_##id], slot, number + 1);
		PFS_WATCHED_COLUMNS(TOUCH)
		TOUCH(LIVE)
#undef TOUCH
		return;
	}
	for (; columns; columns &= columns - 1)
		pfs_stamps_touch(&feed->stamps[__builtin_ctz(columns)], slot, number + 1);
}

int pfs_feed_next(const struct pfs_image *image, struct pfs_feed_follower *follower,
		  uint32_t *slots, size_t *n)
{
	const uint64_t lag = image->epoch - follower->cursor,
		       end = follower->cursor + PFS_MIN(lag, PFS_FEED_LOOKED);
	const size_t room = *n;

	*n = 0;
	if (lag > PFS_FEED_CHANGES)
		return -EAGAIN;
	for (; follower->cursor < end && *n < room; follower->cursor++) {
		const struct change *change =
			&image->feed->ring[follower->cursor % PFS_FEED_CHANGES];

		if (change->columns & follower->columns)
			slots[(*n)++] = change->slot;
	}
	return follower->cursor < image->epoch;
}

bool pfs_feed_has_changed(const struct pfs_image *image, unsigned columns, uint32_t block,
			  uint64_t since)
{
	for (; columns; columns &= columns - 1)
		if (pfs_stamps_of(&image->feed->stamps[__builtin_ctz(columns)], block) > since)
			return true;
	return false;
}

bool pfs_feed_is_near(const struct pfs_image *image, unsigned columns, uint32_t end, uint64_t since)
{
	uint32_t blocks = end / PFS_BLOCK_ROWS + 1, n = 0;

	for (uint32_t block = 0; block < blocks; block++)
		n += pfs_feed_has_changed(image, columns, block, since);
	return n <= blocks / PART;
}

const struct pfs_stamps *pfs_feed_stamps(const struct pfs_image *image,
					 enum pfs_column_number column)
{
	return &image->feed->stamps[column];
}
