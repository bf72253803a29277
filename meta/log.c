/* SPDX-License-Identifier: MIT */
/* meta/log.c - finds out whether the log (-wal) beside a store belongs to it.
 *
 * SQLite plays back any log beside a store. If a crash leaves a store with a log, and a backup is
 * put in the place of that store, the log would destroy the backup. Each group writes the page with
 * the row of `meta`, so the bytes of a store and of a log tell which store they belong to and which
 * groups they have. Not handled here: copies of one store that were changed separately and have
 * groups with the same numbers. */
#include "meta/log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "meta/db.h"

#define META_PAGE	   2 /* root of the schema's first table, `meta`, which has one row */
#define LEAF		   0x0d
#define LOG_HEADER_SIZE	   32
#define FRAME_HEADER_SIZE  24
#define SALTS_SIZE	   8 /* at byte 16 of the header, 8 of a frame; an old frame has others */
#define SUMMED		   8 /* bytes of a frame's header that its checksum covers, with the page */

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

/* Reads a varint of SQLite. Returns false if it has more than two bytes, which none in the row of
 * `meta` has, or if the page ends. */
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

/* Reads an integer of a record. Returns false if its serial type is that of another value. */
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

/* Gets seed and seq from the row of `meta`, which begins with id (stored as NULL), seed and seq.
 * Returns false if the page is not that table's. */
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
	return take_integer(page, &values, seed, &out->seed) &&
	       take_integer(page, &values, seq, &out->seq);
}

static bool read_at(int fd, uint8_t *bytes, size_t size, uint64_t at)
{
	return pread(fd, bytes, size, (off_t)at) == (ssize_t)size;
}

/* SQLite's checksum of a log, of all that comes before. */
struct checksum {
	uint32_t a, b;
	bool is_big; /* the order of the words' bytes */
};

static uint32_t word(const uint8_t *bytes, bool is_big)
{
	uint32_t value = number(bytes, 4);

	return is_big ? value : __builtin_bswap32(value);
}

static void add(struct checksum *sum, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		sum->a += word(bytes + i, sum->is_big) + sum->b;
		sum->b += word(bytes + i + 4, sum->is_big) + sum->a;
	}
}

static bool is_sum(const struct checksum *sum, const uint8_t *bytes)
{
	return sum->a == number(bytes, 4) && sum->b == number(bytes + 4, 4);
}

/* Begins the checksum with the log's header. Returns false if the log has none of ours. */
static bool read_header(struct checksum *sum, uint8_t header[LOG_HEADER_SIZE], int fd)
{
	if (!read_at(fd, header, LOG_HEADER_SIZE, 0) || number(header + 8, 4) != PFS_DB_PAGE_SIZE)
		return false;
	*sum = (struct checksum){.is_big = header[3] & 1};
	add(sum, header, LOG_HEADER_SIZE - SUMMED);
	return is_sum(sum, header + LOG_HEADER_SIZE - SUMMED);
}

/* Gets the first and the last group that SQLite would play back from the log. Returns false if
 * there is none. A crash may leave a frame's header with the page that an older frame had there:
 * its checksum shows that. */
static bool read_log(struct group *first, struct group *last, int fd)
{
	struct checksum sum;
	struct group group;
	uint8_t header[LOG_HEADER_SIZE], frame[FRAME_HEADER_SIZE + PFS_DB_PAGE_SIZE];
	const uint8_t *page = frame + FRAME_HEADER_SIZE;
	bool found = false, written = false;

	if (!read_header(&sum, header, fd))
		return false;
	for (uint64_t at = sizeof(header); read_at(fd, frame, sizeof(frame), at);
	     at += sizeof(frame)) {
		if (memcmp(frame + 8, header + 16, SALTS_SIZE) != 0)
			break;
		add(&sum, frame, SUMMED);
		add(&sum, page, PFS_DB_PAGE_SIZE);
		if (!is_sum(&sum, frame + 8 + SALTS_SIZE))
			break;
		if (number(frame, 4) == META_PAGE)
			written = read_group(&group, page);
		if (!number(frame + 4, 4) || !written)
			continue; /* not the end of a group */
		if (!found)
			*first = group;
		*last = group;
		found = true;
		written = false;
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

	if (snprintf(name, sizeof(name), "%s-wal", path) >= (int)sizeof(name) ||
	    lstat(name, &attr) || !S_ISREG(attr.st_mode) || !attr.st_size)
		return 0;
	log = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (log < 0 || !read_at(store, page, sizeof(page), (META_PAGE - 1) * sizeof(page)) ||
	    !read_group(&is, page) || !read_log(&first, &last, log))
		return 0;
	return is.seed != first.seed || is.seq + 1 < first.seq || is.seq > last.seq ? -EXDEV : 0;
}
