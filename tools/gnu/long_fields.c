/* SPDX-License-Identifier: MIT */
#include "tools/gnu/long_fields.h"

#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define NS_PER_S    INT64_C(1000000000)
#define CACHED	    64 /* names that are cached */

struct name {
	bool known, named;
	uint32_t id;
	size_t len;
	char text[64];
};

void pfs_print_mode(char out[PFS_MODE_SIZE], char type, mode_t mode)
{
	static const char bits[] = "rwxrwxrwx";

	out[0] = type == 'f' ? '-' : type;
	for (int i = 0; i < 9; i++)
		out[i + 1] = mode & (0400u >> i) ? bits[i] : '-';
	if (mode & S_ISUID)
		out[3] = mode & S_IXUSR ? 's' : 'S';
	if (mode & S_ISGID)
		out[6] = mode & S_IXGRP ? 's' : 'S';
	if (mode & S_ISVTX)
		out[9] = mode & S_IXOTH ? 't' : 'T';
	out[10] = 0;
}

const char *pfs_date(struct pfs_dates *dates, size_t *len, int64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / NS_PER_S - (time_ns % NS_PER_S < 0));
	__typeof__(*dates->kept) *kept = &dates->kept[(uint64_t)seconds / 60 % PFS_DATES];
	struct tm local;
	bool recent;

	if (!dates->now)
		dates->now = time(NULL);
	recent = dates->is_recent(dates->now, seconds);
	if (!kept->known || kept->recent != recent || seconds < kept->minute ||
	    seconds >= kept->minute + 60) {
		kept->len = 0;
		kept->known = localtime_r(&seconds, &local);
		if (kept->known)
			kept->len = strftime(kept->text, sizeof(kept->text),
					     recent ? "%b %e %H:%M" : "%b %e  %Y", &local);
		kept->text[kept->len] = 0;
		kept->recent = recent;
		kept->minute = seconds - (kept->known ? local.tm_sec : 0);
	}
	*len = kept->len;
	return kept->text;
}

void pfs_print_human(char out[PFS_HUMAN_SIZE], uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	uint64_t unit = 1, tenths = 0, whole = bytes;
	size_t power = 0;

	/* Goes up to the unit in which the size, rounded up, is below 1,024. */
	while (whole >= 1024 && power + 2 < sizeof(units)) {
		unit *= 1024;
		power++;
		whole = bytes / unit + (bytes % unit != 0);
		tenths = bytes / unit * 10 + (bytes % unit * 5 + unit / 2 - 1) / (unit / 2);
	}
	if (power && tenths < 100)
		(void)snprintf(out, PFS_HUMAN_SIZE, "%u.%u%c", (unsigned)(tenths / 10),
			       (unsigned)(tenths % 10), units[power]);
	else
		(void)snprintf(out, PFS_HUMAN_SIZE, power ? "%llu%c" : "%llu",
			       (unsigned long long)whole, units[power]);
}

static const char *recall(const struct name *name, size_t *len)
{
	*len = name->len;
	return name->named ? name->text : NULL;
}

static void remember(struct name *name, uint32_t id, const char *text)
{
	name->known = true;
	name->id = id;
	name->named = text;
	(void)snprintf(name->text, sizeof(name->text), "%s", text ? text : "");
	name->len = strlen(name->text);
}

const char *pfs_user_name(uid_t uid, size_t *len)
{
	static struct name names[CACHED];
	struct name *name = &names[uid % CACHED];
	const struct passwd *entry;

	if (!name->known || name->id != uid) {
		entry = getpwuid(uid);
		remember(name, uid, entry ? entry->pw_name : NULL);
	}
	return recall(name, len);
}

const char *pfs_group_name(gid_t gid, size_t *len)
{
	static struct name names[CACHED];
	struct name *name = &names[gid % CACHED];
	const struct group *entry;

	if (!name->known || name->id != gid) {
		entry = getgrgid(gid);
		remember(name, gid, entry ? entry->gr_name : NULL);
	}
	return recall(name, len);
}
