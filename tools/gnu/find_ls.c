/* SPDX-License-Identifier: MIT */
#include "tools/gnu/find_ls.h"

#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/checked.h"
#include "tools/gnu/long_fields.h"

/* seconds: for later times the time of day is printed, else the year */
#define RECENT	 (180 * 86400)
#define AHEAD	 3600	       /* seconds by which clocks may differ */

/* Returns how many bytes there are before the first one that is to be escaped. It looks at sixteen
 * at a time. */
static size_t count_plain(const char *text, size_t len)
{
	typedef signed char bytes __attribute__((vector_size(16)));
	size_t n = 0;

	for (bytes b; n + sizeof(b) <= len; n += sizeof(b)) {
		uint64_t found[2];

		(void)memcpy(&b, text + n, sizeof(b));
		/* signed, so that this also finds bytes that are not ASCII */
		b = (b <= ' ') | (b == 127) | (b == '\\') | (b == '"');
		(void)memcpy(found, &b, sizeof(b));
		if (found[0] | found[1])
			break;
	}
	while (n < len && text[n] > ' ' && text[n] < 127 && text[n] != '\\' && text[n] != '"')
		n++;
	return n;
}

static void put_escaped(struct pfs_stdout *out, const char *text, size_t len)
{
	static const char from[] = "\\\n\b\r\t\f \"", to[] = "\\nbrtf \"";
	size_t plain;

	while ((plain = count_plain(text, len)) < len) {
		const char *at = strchr(from, text[plain]);

		pfs_stdout_put(out, text, plain);
		if (at)
			pfs_stdout_put(out, (char[]){'\\', to[at - from]}, 2);
		else
			pfs_stdout_printf(out, "\\%03o", (unsigned char)text[plain]);
		text += plain + 1;
		len -= plain + 1;
	}
	pfs_stdout_put(out, text, len);
}

/* Prints a number aligned to the right, in a column that stays as wide as it has become. */
static void put_number(struct pfs_stdout *out, size_t *width, uint64_t number)
{
	*width = pfs_stdout_number(out, number, *width);
}

/* Prints a text aligned to the left, and a blank. */
static void put_left(struct pfs_stdout *out, size_t *width, const char *text, size_t len)
{
	pfs_stdout_left(out, text, len, *width);
	pfs_stdout_char(out, ' ');
	*width = PFS_MAX(*width, len);
}

/* A number makes the column wider by the blank after it, as in find(1). */
static void put_user(struct pfs_stdout *out, size_t *width, uint32_t id)
{
	size_t len, narrow = 8;
	const char *name = pfs_user_name(id, &len);
	char digits[PFS_DIGITS];

	if (name) {
		put_left(out, width, name, len);
	} else {
		name = pfs_decimal(digits, &len, id);
		put_left(out, &narrow, name, len);
		*width = PFS_MAX(*width, narrow + 1);
	}
}

static void put_group(struct pfs_stdout *out, size_t *width, uint32_t id)
{
	size_t len;
	const char *name = pfs_group_name(id, &len);
	char digits[PFS_DIGITS];

	if (!name)
		name = pfs_decimal(digits, &len, id);
	put_left(out, width, name, len);
}

static bool is_recent(time_t now, time_t seconds)
{
	return seconds >= now - RECENT && seconds <= now + AHEAD;
}

void pfs_find_put_ls(struct pfs_stdout *out, const struct pfs_found *found)
{
	static size_t ino = 9, blocks = 6, nlink = 3, owner = 8, group = 8, size = 8, major_no = 3,
		      minor_no = 3;
	static struct pfs_dates dates = {.is_recent = is_recent};
	char mode[PFS_MODE_SIZE];
	size_t len;
	const char *date = pfs_date(&dates, &len, found->mtime);

	pfs_print_mode(mode, found->type, found->mode);
	put_number(out, &ino, found->ino);
	pfs_stdout_char(out, ' ');
	put_number(out, &blocks, (uint64_t)(found->blocks + 1) / 2);
	pfs_stdout_char(out, ' ');
	pfs_stdout_put(out, mode, PFS_MODE_SIZE - 1);
	pfs_stdout_char(out, ' ');
	put_number(out, &nlink, found->nlink);
	pfs_stdout_char(out, ' ');
	put_user(out, &owner, found->uid);
	put_group(out, &group, found->gid);
	if (found->type == 'b' || found->type == 'c') {
		put_number(out, &major_no, major(found->rdev));
		pfs_stdout_put(out, ", ", 2);
		put_number(out, &minor_no, minor(found->rdev));
	} else {
		put_number(out, &size, (uint64_t)found->size);
	}
	pfs_stdout_char(out, ' ');
	pfs_stdout_put(out, date, len);
	pfs_stdout_char(out, ' ');
	put_escaped(out, found->path, found->path_len);
	if (found->type == 'l') {
		pfs_stdout_put(out, " -> ", 4);
		put_escaped(out, found->target, strlen(found->target));
	}
	pfs_stdout_char(out, '\n');
}
