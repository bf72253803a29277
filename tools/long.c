/* SPDX-License-Identifier: MIT */
#include "tools/long.h"

#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <wchar.h>

#define NS_PER_S    INT64_C(1000000000)
#define HALF_A_YEAR (31556952 / 2)
#define CACHED	    64 /* names */

struct name {
	bool known, named;
	uint32_t id;
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

static void write_when(char out[PFS_WHEN_SIZE], time_t seconds)
{
	time_t now = time(NULL);
	bool recent = seconds <= now && seconds > now - HALF_A_YEAR;
	struct tm local;

	out[0] = 0;
	if (localtime_r(&seconds, &local))
		(void)strftime(out, PFS_WHEN_SIZE, recent ? "%b %e %H:%M" : "%b %e  %Y", &local);
}

/* Many files are of the same second. */
void pfs_print_when(char out[PFS_WHEN_SIZE], int64_t time_ns)
{
	static struct {
		bool known;
		time_t seconds;
		char text[PFS_WHEN_SIZE];
	} kept[CACHED];
	time_t seconds = (time_t)(time_ns / NS_PER_S - (time_ns % NS_PER_S < 0));
	size_t i = (uint64_t)seconds % CACHED;

	if (!kept[i].known || kept[i].seconds != seconds) {
		write_when(kept[i].text, seconds);
		kept[i].seconds = seconds;
		kept[i].known = true;
	}
	(void)memcpy(out, kept[i].text, PFS_WHEN_SIZE);
}

void pfs_print_human(char out[PFS_HUMAN_SIZE], uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	uint64_t unit = 1, tenths = 0, whole = bytes;
	size_t power = 0;

	/* up to the unit in which, rounded up, it is below 1,024 */
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

/* Bytes of the first character, or of what is none; *prints: it can be shown. */
static size_t first_character(bool *prints, const char *text, size_t len)
{
	mbstate_t state = {0};
	wchar_t c = 0;
	size_t n = mbrtowc(&c, text, len, &state);

	*prints = n <= len && wcwidth(c) >= 0;
	if (n == (size_t)-2) /* the beginning of one */
		return len;
	return n && n <= len ? n : 1;
}

void pfs_print_name(FILE *out, const char *name, size_t len, bool terminal)
{
	bool prints;
	size_t n;

	if (!terminal)
		(void)fwrite(name, 1, len, out);
	for (; terminal && len; name += n, len -= n) {
		n = first_character(&prints, name, len);
		(void)fwrite(prints ? name : "?", 1, prints ? n : 1, out);
	}
}

const char *pfs_decimal(char out[PFS_DECIMAL_SIZE], uint64_t number)
{
	char *at = out + PFS_DECIMAL_SIZE - 1;

	*at = 0;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	return at;
}

static const char *remember(struct name *name, uint32_t id, const char *text)
{
	name->known = true;
	name->id = id;
	name->named = text;
	if (text)
		(void)snprintf(name->text, sizeof(name->text), "%s", text);
	return text ? name->text : NULL;
}

const char *pfs_user_name(uid_t uid)
{
	static struct name names[CACHED];
	struct name *name = &names[uid % CACHED];
	const struct passwd *entry;

	if (name->known && name->id == uid)
		return name->named ? name->text : NULL;
	entry = getpwuid(uid);
	return remember(name, uid, entry ? entry->pw_name : NULL);
}

const char *pfs_group_name(gid_t gid)
{
	static struct name names[CACHED];
	struct name *name = &names[gid % CACHED];
	const struct group *entry;

	if (name->known && name->id == gid)
		return name->named ? name->text : NULL;
	entry = getgrgid(gid);
	return remember(name, gid, entry ? entry->gr_name : NULL);
}
