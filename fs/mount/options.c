/* SPDX-License-Identifier: MIT */
#include "fs/mount/options.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/reserve.h"

/* Names and attributes change only through this daemon, which tells the kernel of it. A day is as
 * good as for ever. */
#define TIMEOUT_SECONDS 86400.0

/* at least; or a quarter of what all statements may have */
#define QUERY_MEMORY   (UINT64_C(1) << 30)
#define QUERY_TIME_MAX 1000000.0 /* seconds */
/* bytes that can be looked at in a few hundredths of a second */
#define QUERY_VALUE	(UINT64_C(16) << 20)
#define QUERY_REST_MS	60000
#define QUERY_VALUE_MIN (UINT64_C(64) << 10)
#define QUERY_VALUE_MAX (UINT64_C(1) << 30)

#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif

struct flag {
	const char *name;
	unsigned long set, clear;
};

static const struct flag flags[] = {
	{"ro", MS_RDONLY, 0},	     {"rw", 0, MS_RDONLY},
	{"suid", 0, MS_NOSUID},	     {"nosuid", MS_NOSUID, 0},
	{"dev", 0, MS_NODEV},	     {"nodev", MS_NODEV, 0},
	{"exec", 0, MS_NOEXEC},	     {"noexec", MS_NOEXEC, 0},
	{"sync", MS_SYNCHRONOUS, 0}, {"async", 0, MS_SYNCHRONOUS},
	{"dirsync", MS_DIRSYNC, 0},  {"relatime", 0, MS_NOATIME},
	{"noatime", MS_NOATIME, 0},  {"nosymfollow", MS_NOSYMFOLLOW, 0},
	{"remount", MS_REMOUNT, 0},
};

/* Options that are meant for mount(8) and other readers of fstab, or that hold in any case. */
static const char *const ignored[] = {
	"defaults",
	"auto",
	"noauto",
	"nofail",
	"_netdev",
	"user",
	"nouser",
	"users",
	"owner",
	"group",
	"default_permissions",
};

static const char *const ignored_prefixes[] = {
	"x-", "comment=", "user=", "user_id=", "group_id=", /* the last two come with a remount */
};

static unsigned default_threads(void)
{
	/* Two receivers serve four clients, and wake up less often than more receivers do. This was
	 * measured beside a daemon that answers from arithmetic (primefs-bench mount). */
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 8 ? 4 : 2;
}

void pfs_mount_options_init(struct pfs_mount_options *options)
{
	*options = (struct pfs_mount_options){
		.flags = MS_NOSUID | MS_NODEV,
		.threads = default_threads(),
		.timeout = TIMEOUT_SECONDS,
		.readdirplus = PFS_READDIRPLUS_AUTO,
		.query_memory = PFS_MAX(QUERY_MEMORY, pfs_quarter_of_memory() / 4),
		.query_value = QUERY_VALUE,
		.query_rest_ms = QUERY_REST_MS,
	};
}

/* ---- values: each function parses a value, and sets the member of struct pfs_mount_options that
 * it is given. They return 0, -EINVAL or -ERANGE. ---- */

static int parse_choice(unsigned *out, const char *text, const char *const *names, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_readdirplus(void *member, const char *text)
{
	static const char *const names[] = {"auto", "always", "never"};
	unsigned i;

	PFS_TRY(parse_choice(&i, text, names, PFS_COUNT(names)));
	*(enum pfs_readdirplus *)member = (enum pfs_readdirplus)i;
	return 0;
}

static int parse_links(void *member, const char *text)
{
	static const char *const names[] = {"auto", "no", "yes"};
	unsigned i;

	PFS_TRY(parse_choice(&i, text, names, PFS_COUNT(names)));
	*(enum pfs_links_choice *)member = (enum pfs_links_choice)i;
	return 0;
}

static int parse_watch(void *member, const char *text)
{
	static const char *const names[] = {"no", "auto", "fanotify", "inotify"};
	unsigned i;

	PFS_TRY(parse_choice(&i, text, names, PFS_COUNT(names)));
	*(enum pfs_follow_choice *)member = (enum pfs_follow_choice)i;
	return 0;
}

/* The member is true if the text is "no". */
static int parse_no(void *member, const char *text)
{
	static const char *const names[] = {"yes", "no"};
	unsigned i;

	PFS_TRY(parse_choice(&i, text, names, PFS_COUNT(names)));
	*(bool *)member = i == 1;
	return 0;
}

static int parse_engine(void *member, const char *text)
{
	return pfs_engine_by_name(member, text);
}

/* The member is the whole struct. */
static int parse_history(void *member, const char *text)
{
	struct pfs_mount_options *options = member;

	options->sets_history = true;
	return pfs_history_parse(&options->history, text);
}

static int parse_seconds(void *member, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value < 0 || value > 1e9)
		return -EINVAL;
	*(double *)member = value;
	return 0;
}

/* The member is in milliseconds, the text in seconds. */
static int parse_ms(void *member, const char *text)
{
	double seconds;

	PFS_TRY(parse_seconds(&seconds, text));
	if (seconds > QUERY_TIME_MAX)
		return -ERANGE;
	*(unsigned *)member = (unsigned)ceil(seconds * 1000);
	return 0;
}

static int parse_threads(void *member, const char *text)
{
	uint64_t n;

	if (pfs_parse_u64(&n, text) != 0 || n < 1 || n > PFS_MOUNT_THREADS_MAX)
		return -EINVAL;
	*(unsigned *)member = (unsigned)n;
	return 0;
}

static int parse_watch_limit(void *member, const char *text)
{
	uint64_t n;

	if (pfs_parse_u64(&n, text) != 0 || n > UINT32_MAX)
		return -EINVAL;
	*(unsigned *)member = (unsigned)n;
	return 0;
}

/* A letter K, M, G or T behind the number multiplies it by a power of 1,024. */
static int parse_bytes(void *member, const char *text)
{
	static const char letters[] = "KMGT";
	char digits[24];
	size_t len = strlen(text);
	const char *letter = len ? strchr(letters, text[len - 1]) : NULL;
	unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
	uint64_t n;

	if (letter)
		len--;
	if (!len || len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	PFS_TRY(pfs_parse_u64(&n, digits));
	if (n > UINT64_MAX >> shift)
		return -ERANGE;
	*(uint64_t *)member = n << shift;
	return 0;
}

static int parse_query_value(void *member, const char *text)
{
	uint64_t bytes;

	PFS_TRY(parse_bytes(&bytes, text));
	if (bytes < QUERY_VALUE_MIN || bytes > QUERY_VALUE_MAX)
		return -ERANGE;
	*(uint64_t *)member = bytes;
	return 0;
}

#define MEMBER(member) offsetof(struct pfs_mount_options, member)

/* The options NAME=VALUE. `wants` describes the values, for the message about a wrong one. */
static const struct valued {
	const char *name, *wants;
	int (*parse)(void *member, const char *text);
	size_t member;
} valued[] = {
	{"threads", "a number from 1 to 64", parse_threads, MEMBER(threads)},
	{"timeout", "seconds, 0 or more", parse_seconds, MEMBER(timeout)},
	{"readdirplus", "auto, always or never", parse_readdirplus, MEMBER(readdirplus)},
	{"links", "auto, no or yes", parse_links, MEMBER(links)},
	{"snapshot", "yes or no", parse_no, MEMBER(no_image_file)},
	{"history", "an age as 12h, 2d or 8w, a size as 500M or 2G, or no", parse_history, 0},
	{"engine", "auto, host or cuda", parse_engine, MEMBER(engine)},
	{"refresh", "seconds, up to 1000000; 0: only when asked", parse_ms, MEMBER(refresh_ms)},
	{"watch", "auto, fanotify, inotify or no", parse_watch, MEMBER(watch)},
	{"watch_limit",
	 "a number of directories; 0: three quarters of what inotify lets a user watch",
	 parse_watch_limit, MEMBER(watch_limit)},
	{"query_memory", "bytes, with K, M, G or T perhaps; 0: no limit", parse_bytes,
	 MEMBER(query_memory)},
	{"query_memory_total", "bytes, with K, M, G or T perhaps; 0: a quarter of the machine's",
	 parse_bytes, MEMBER(query_memory_total)},
	{"query_value", "64K to 1G", parse_query_value, MEMBER(query_value)},
	{"query_rest", "seconds, up to 1000000", parse_ms, MEMBER(query_rest_ms)},
	{"query_kept", "bytes, with K, M, G or T perhaps; 0: the usual", parse_bytes,
	 MEMBER(query_kept)},
	{"query_measure", "yes or no", parse_no, MEMBER(no_measuring)},
	{"query_time", "seconds, up to 1000000; 0: no limit", parse_ms, MEMBER(query_time_ms)},
};

/* ---- the text ---- */

static bool is_ignored(const char *word)
{
	size_t i;

	for (i = 0; i < PFS_COUNT(ignored); i++)
		if (strcmp(word, ignored[i]) == 0)
			return true;
	for (i = 0; i < PFS_COUNT(ignored_prefixes); i++)
		if (strncmp(word, ignored_prefixes[i], strlen(ignored_prefixes[i])) == 0)
			return true;
	return false;
}

static bool apply_flag(struct pfs_mount_options *options, const char *word)
{
	size_t i;

	for (i = 0; i < PFS_COUNT(flags); i++) {
		if (strcmp(word, flags[i].name) != 0)
			continue;
		options->flags = (options->flags | flags[i].set) & ~flags[i].clear;
		options->said |= flags[i].set | flags[i].clear;
		if (flags[i].clear == MS_RDONLY)
			options->explicit_rw = true;
		return true;
	}
	return false;
}

unsigned long pfs_mount_flags_of(const char *text)
{
	struct pfs_mount_options listed = {.flags = 0};

	while (*text) {
		size_t len = strcspn(text, ",");
		char word[32];

		if (len < sizeof(word)) {
			(void)snprintf(word, sizeof(word), "%.*s", (int)len, text);
			(void)apply_flag(&listed, word);
		}
		text += len + (text[len] == ',');
	}
	return listed.flags;
}

/* Applies an option without a value. -ENOENT: there is no such option. */
static int apply_word(struct pfs_mount_options *options, const char *word)
{
	if (strcmp(word, "allow_other") == 0)
		options->allow_other = true;
	else if (strcmp(word, "writeback") == 0)
		options->writeback = true;
	else if (strcmp(word, "query_others") == 0)
		options->query_others = true;
	else if (strcmp(word, "watch") == 0)
		options->watch = PFS_FOLLOW_AUTO;
	else if (!apply_flag(options, word))
		return -ENOENT;
	return 0;
}

/* Applies an option. -ENOENT: there is no such option; -EINVAL, -ERANGE: its value is wrong, and
 * *wants says what it may be. */
static int apply(struct pfs_mount_options *options, const char **wants, const char *word)
{
	size_t len = strcspn(word, "=");

	if (!word[len])
		return apply_word(options, word);
	for (size_t i = 0; i < PFS_COUNT(valued); i++) {
		if (strncmp(word, valued[i].name, len) != 0 || valued[i].name[len])
			continue;
		*wants = valued[i].wants;
		return valued[i].parse((char *)options + valued[i].member, word + len + 1);
	}
	return -ENOENT;
}

int pfs_mount_options_parse(struct pfs_mount_options *options, char *message, size_t message_size,
			    const char *text)
{
	while (*text) {
		const char *wants = NULL;
		size_t len = strcspn(text, ",");
		char word[256];
		int error;

		(void)snprintf(word, sizeof(word), "%.*s", (int)PFS_MIN(len, sizeof(word) - 1),
			       text);
		text += len + (text[len] == ',');
		if (!*word || is_ignored(word))
			continue;
		error = apply(options, &wants, word);
		if (error == -ENOENT)
			(void)snprintf(message, message_size, "unknown option '%s'", word);
		else if (error)
			(void)snprintf(message, message_size, "option %.*s: not %s",
				       (int)strcspn(word, "="), word, wants);
		if (error)
			return -EINVAL;
	}
	return 0;
}
