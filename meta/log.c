/* SPDX-License-Identifier: MIT */
/* meta/log.c - whether the log (-wal) beside a store is its own.
 *
 * SQLite plays back whatever log lies there.  A store that was put in the place of another one, which a crash had
 * left with a log, as when a backup is restored, would be destroyed by it.  Each group writes the page with the
 * row of `meta`: so the file and its log tell by their own bytes of which store they are, and of which groups.
 * Not handled here: copies of one store that were changed on their own, and have groups of the same numbers. */
#include "meta/log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "meta/db.h"

#define META_PAGE	   2 /* the root of the schema's first table, whose one row is `meta` */
#define LEAF		   0x0d
#define LOG_HEADER_SIZE	   32
#define FRAME_HEADER_SIZE  24
#define SALTS_SIZE	   8 /* in the header at 16, in a frame at 8: a frame with others is an old one */

struct group {
	uint64_t seed, seq;
};

static uint32_t number(const uint8_t *bytes, size_t size)
{
	uint32_t value = 0;

	while (size--)
		value = value << 8 | *bytes++;
	return value;
}

/* SQLite's varint, of one byte or two; false: it is longer, which no part of the row of `meta` has. */
static bool take_small(const uint8_t *page, size_t *at, size_t *value)
{
	if (*at + 2 > PFS_DB_PAGE_SIZE)
		return false;
	*value = page[(*at)++];
	if (*value < 0x80)
		return true;
	*value = (*value & 0x7f) << 7 | page[*at];
	return page[(*at)++] < 0x80;
}

/* An integer of a record, by its serial type. */
static bool take_integer(const uint8_t *page, size_t *at, size_t type, uint64_t *value)
{
	static const uint8_t sizes[] = {0, 1, 2, 3, 4, 6, 8, 0, 0, 0};
	size_t size = type < sizeof(sizes) ? sizes[type] : 0;

	if (type == 0 || type == 7 || type >= sizeof(sizes) || *at + size > PFS_DB_PAGE_SIZE)
		return false;
	*value = type == 9;
	if (size && page[*at] & 0x80)
		*value = UINT64_MAX;
	while (size--)
		*value = *value << 8 | page[(*at)++];
	return true;
}

/* Reads what begins the row: id, which is NULL there, seed and seq.  False: the page is no such table. */
static bool read_group(struct group *out, const uint8_t *page)
{
	size_t at = number(page + 8, 2), size, rowid, header, id, seed, seq, values;

	if (page[0] != LEAF || number(page + 3, 2) != 1 || !take_small(page, &at, &size) ||
	    !take_small(page, &at, &rowid) || rowid != 1)
		return false;
	values = at;
	if (!take_small(page, &at, &header) || !take_small(page, &at, &id) || id != 0 ||
	    !take_small(page, &at, &seed) || !take_small(page, &at, &seq))
		return false;
	values += header;
	return take_integer(page, &values, seed, &out->seed) && take_integer(page, &values, seq, &out->seq);
}

static bool read_at(int fd, uint8_t *bytes, size_t size, uint64_t at)
{
	return pread(fd, bytes, size, (off_t)at) == (ssize_t)size;
}

/* Gets the first and the last group in the log. Returns false if there is none. Behind the last group may lie frames of
 * one that was not committed and is older, if others were written over its beginning: numbers of groups never fall. */
static bool read_log(struct group *first, struct group *last, int fd)
{
	struct group group;
	uint8_t header[LOG_HEADER_SIZE], frame[FRAME_HEADER_SIZE], page[PFS_DB_PAGE_SIZE];
	uint64_t at = sizeof(header);
	bool found = false;

	*last = (struct group){0};
	if (!read_at(fd, header, sizeof(header), 0) || number(header + 8, 4) != PFS_DB_PAGE_SIZE)
		return false;
	for (; read_at(fd, frame, sizeof(frame), at); at += sizeof(frame) + sizeof(page)) {
		if (number(frame, 4) == 0 || memcmp(frame + 8, header + 16, SALTS_SIZE) != 0)
			break;
		if (number(frame, 4) != META_PAGE || !read_at(fd, page, sizeof(page), at + sizeof(frame)) ||
		    !read_group(&group, page))
			continue;
		if (group.seq < last->seq)
			break;
		if (!found)
			*first = group;
		*last = group;
		found = true;
	}
	return found;
}

int pfs_log_check(const char *path, int store)
{
	int log PFS_CLOSE = -1;
	uint8_t page[PFS_DB_PAGE_SIZE];
	struct group is, first, last;
	char name[PATH_MAX];
	struct stat attr;

	if (snprintf(name, sizeof(name), "%s-wal", path) >= (int)sizeof(name) || lstat(name, &attr) ||
	    !S_ISREG(attr.st_mode) || !attr.st_size)
		return 0;
	log = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (log < 0 || !read_at(store, page, sizeof(page), (META_PAGE - 1) * sizeof(page)) ||
	    !read_group(&is, page) || !read_log(&first, &last, log))
		return 0;
	return is.seed != first.seed || is.seq + 1 < first.seq || is.seq > last.seq ? -EXDEV : 0;
}
