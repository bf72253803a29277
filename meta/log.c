/* SPDX-License-Identifier: MIT */
/* meta/log.c - finds out whether the log (-wal) beside a store belongs to it.
 *
 * SQLite plays back any log beside a store. If a crash leaves a store with a log, and a backup is
 * put in the place of that store, the log would destroy the backup. Each group writes the page with
 * the row of `meta`, so the bytes of a store and of a log tell which store they belong to and which
 * groups they have. Not handled here: a copy of the store that was changed separately and has one
 * group less than the log begins with; and one whose pages lie elsewhere (VACUUM INTO). */
#include "meta/log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "meta/db.h"

#define HEADER_PAGE	   1
#define META_PAGE	   2 /* root of the schema's first table, `meta`, which has one row */
#define LEAF		   0x0d
#define ID_AT		   68 /* of the application's id, in the header page */
#define MAGIC		   0x377f0682
#define FORMAT		   3007000
#define LOG_HEADER_SIZE	   32
#define FRAME_HEADER_SIZE  24
#define SALTS_SIZE	   8 /* at byte 16 of the header, 8 of a frame; an old frame has others */
#define SUM_SIZE	   8 /* at the end of either header */
#define SUMMED		   8 /* bytes of a frame's header that its checksum covers, with the page */
#define TOKEN_SIZE	   16

enum { ID, SEED, SEQ, TOKEN = 11, COLUMNS }; /* of `meta`; older stores have no token */

struct group {
	uint64_t seed, seq;
	uint8_t token[TOKEN_SIZE];
	bool has_token;
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

/* Returns the number of bytes that a value of this serial type has. */
static size_t size_of(size_t type)
{
	static const uint8_t sizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};

	return type < sizeof(sizes) ? sizes[type] : (type - sizeof(sizes)) / 2;
}

/* Reads an integer of a record. Returns false if its serial type is that of another value. */
static bool take_integer(const uint8_t *bytes, size_t type, uint64_t *value)
{
	size_t size = size_of(type);

	if (type == 0 || type == 7 || type > 9)
		return false;
	*value = type == 9;
	if (size && bytes[0] & 0x80)
		*value = UINT64_MAX;
	while (size--)
		*value = *value << 8 | *bytes++;
	return true;
}

/* Gets the group from the row of `meta`, whose id is stored as NULL. Returns false if the page is
 * not that table's. */
static bool read_group(struct group *out, const uint8_t *page)
{
	size_t at = number(page + 8, 2), size, rowid, header, end, value;
	unsigned column = ID;
	bool taken = true;

	if (page[0] != LEAF || number(page + 3, 2) != 1 || !take_small(page, &at, &size) ||
	    !take_small(page, &at, &rowid) || rowid != 1)
		return false;
	end = at;
	if (!take_small(page, &at, &header))
		return false;
	end += header;
	value = end;
	*out = (struct group){.has_token = false};
	for (; column < COLUMNS && at < end && taken; column++) {
		size_t type;

		if (!take_small(page, &at, &type) || value + size_of(type) > PFS_DB_PAGE_SIZE)
			return false;
		taken = column != ID || type == 0;
		if (column == SEED)
			taken = take_integer(page + value, type, &out->seed);
		if (column == SEQ)
			taken = take_integer(page + value, type, &out->seq);
		out->has_token = column == TOKEN && size_of(type) == TOKEN_SIZE;
		if (out->has_token)
			memcpy(out->token, page + value, TOKEN_SIZE);
		value += size_of(type);
	}
	return taken && column > SEQ;
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

/* Begins the checksum with the log's header. Returns false if SQLite takes it for none. */
static bool read_header(struct checksum *sum, uint8_t header[LOG_HEADER_SIZE], int fd)
{
	if (!read_at(fd, header, LOG_HEADER_SIZE, 0) || (number(header, 4) & ~1u) != MAGIC ||
	    number(header + 4, 4) != FORMAT)
		return false;
	*sum = (struct checksum){.is_big = header[3] & 1};
	add(sum, header, LOG_HEADER_SIZE - SUM_SIZE);
	return is_sum(sum, header + LOG_HEADER_SIZE - SUM_SIZE);
}

/* What the groups of a log tell. */
struct log {
	struct group first, last;
	bool found;
	bool another; /* it has pages of another file, or another group of the store's number */
};

static void end_group(struct log *log, const struct group *group, const struct group *is)
{
	if (!log->found)
		log->first = *group;
	log->last = *group;
	log->found = true;
	log->another |= group->seq == is->seq && group->has_token && is->has_token &&
			memcmp(group->token, is->token, TOKEN_SIZE) != 0;
}

/* Reads the groups that SQLite would play back. A crash may leave a frame's header with the page
 * that an older frame had there: its checksum shows that. */
static void read_log(struct log *log, int fd, const struct group *is)
{
	struct checksum sum;
	struct group group;
	uint8_t header[LOG_HEADER_SIZE], frame[FRAME_HEADER_SIZE + PFS_DB_PAGE_SIZE];
	const uint8_t *page = frame + FRAME_HEADER_SIZE;
	bool written = false;

	*log = (struct log){.found = false};
	if (!read_header(&sum, header, fd))
		return;
	log->another = number(header + 8, 4) != PFS_DB_PAGE_SIZE;
	for (uint64_t at = sizeof(header); !log->another && read_at(fd, frame, sizeof(frame), at);
	     at += sizeof(frame)) {
		uint32_t number_of_page = number(frame, 4);

		if (!number_of_page || memcmp(frame + 8, header + 16, SALTS_SIZE) != 0)
			break;
		add(&sum, frame, SUMMED);
		add(&sum, page, PFS_DB_PAGE_SIZE);
		if (!is_sum(&sum, frame + FRAME_HEADER_SIZE - SUM_SIZE))
			break;
		log->another = number_of_page == HEADER_PAGE &&
			       number(page + ID_AT, 4) != PFS_DB_APPLICATION_ID;
		if (number_of_page == META_PAGE)
			written = read_group(&group, page);
		if (!number(frame + 4, 4) || !written)
			continue; /* not the end of a group */
		end_group(log, &group, is);
		written = false;
	}
}

int pfs_log_check(const char *path, int store)
{
	int fd PFS_CLOSE = -1;
	uint8_t page[PFS_DB_PAGE_SIZE];
	struct group is;
	struct log log;
	char name[PATH_MAX];
	struct stat attr;

	if (snprintf(name, sizeof(name), "%s-wal", path) >= (int)sizeof(name) ||
	    lstat(name, &attr) || !S_ISREG(attr.st_mode) || !attr.st_size)
		return 0;
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || !read_at(store, page, sizeof(page), (META_PAGE - 1) * sizeof(page)) ||
	    !read_group(&is, page))
		return 0;
	read_log(&log, fd, &is);
	if (log.another)
		return -EXDEV;
	return log.found && (is.seed != log.first.seed || is.seq + 1 < log.first.seq ||
			     is.seq > log.last.seq)
		       ? -EXDEV
		       : 0;
}
