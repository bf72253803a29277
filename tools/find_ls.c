/* SPDX-License-Identifier: MIT */
#include "tools/find_ls.h"

#include <inttypes.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/checked.h"
#include "tools/long.h"

#define NS_PER_S INT64_C(1000000000)
#define RECENT	 (180 * 86400) /* seconds in which the time of day is printed, not the year */
#define AHEAD	 3600	       /* by which clocks may differ */

static void print_escaped(FILE *out, const char *text)
{
	static const char from[] = "\\\n\b\r\t\f \"", to[] = "\\nbrtf \"";

	for (; *text; text++) {
		const char *at = strchr(from, *text);

		if (at)
			(void)fprintf(out, "\\%c", to[at - from]);
		else if (*text > ' ' && *text < 127)
			(void)fputc(*text, out);
		else
			(void)fprintf(out, "\\%03o", (unsigned char)*text);
	}
}

static void print_number(FILE *out, int *width, uint64_t number)
{
	int n = fprintf(out, "%*" PRIu64, *width, number);

	*width = PFS_MAX(*width, n);
}

static void print_name(FILE *out, int *width, const char *name)
{
	int n = fprintf(out, "%-*s", *width, name);

	*width = PFS_MAX(*width, n);
	(void)fputc(' ', out);
}

static void print_id(FILE *out, int *width, uint32_t id)
{
	int n = fprintf(out, "%-*" PRIu32, *width, id);

	*width = PFS_MAX(*width, n);
	(void)fputc(' ', out);
}

/* A number widens the column by the space after it: find(1) does. */
static void print_user(FILE *out, int *width, uint32_t id)
{
	const char *name = pfs_user_name(id);
	int n;

	if (name) {
		print_name(out, width, name);
	} else {
		n = fprintf(out, "%-8" PRIu32 " ", id);
		*width = PFS_MAX(*width, n);
	}
}

static void print_group(FILE *out, int *width, uint32_t id)
{
	const char *name = pfs_group_name(id);

	if (name)
		print_name(out, width, name);
	else
		print_id(out, width, id);
}

static void print_when(FILE *out, int64_t time_ns)
{
	static time_t now;
	time_t seconds = (time_t)(time_ns / NS_PER_S - (time_ns % NS_PER_S < 0));
	char text[32] = "";
	struct tm local;
	bool recent;

	now = now ? now : time(NULL);
	recent = seconds >= now - RECENT && seconds <= now + AHEAD;
	if (localtime_r(&seconds, &local))
		(void)strftime(text, sizeof(text), recent ? "%b %e %H:%M" : "%b %e  %Y", &local);
	(void)fprintf(out, " %s ", text);
}

void pfs_find_print_ls(FILE *out, const struct pfs_found *found)
{
	static int ino = 9, blocks = 6, nlink = 3, owner = 8, group = 8, size = 8, major_no = 3, minor_no = 3;
	char mode[PFS_MODE_SIZE];

	pfs_print_mode(mode, found->type, found->mode);
	print_number(out, &ino, found->ino);
	(void)fputc(' ', out);
	print_number(out, &blocks, (uint64_t)(found->blocks + 1) / 2);
	(void)fprintf(out, " %s ", mode);
	print_number(out, &nlink, found->nlink);
	(void)fputc(' ', out);
	print_user(out, &owner, found->uid);
	print_group(out, &group, found->gid);
	if (found->type == 'b' || found->type == 'c') {
		print_number(out, &major_no, major(found->rdev));
		(void)fputs(", ", out);
		print_number(out, &minor_no, minor(found->rdev));
	} else {
		print_number(out, &size, (uint64_t)found->size);
	}
	print_when(out, found->mtime);
	print_escaped(out, found->path);
	if (found->type == 'l') {
		(void)fputs(" -> ", out);
		print_escaped(out, found->target);
	}
	(void)fputc('\n', out);
}
