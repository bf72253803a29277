/* SPDX-License-Identifier: MIT */
#include "fs/mount/options.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/reserve.h"

/* Names and attributes change only through this daemon, which says so; a day is for ever. */
#define TIMEOUT_SECONDS 86400.0

#define QUERY_MEMORY   (UINT64_C(1) << 30) /* at least, and a fourth of what all statements may have */
#define QUERY_TIME_MAX 1000000.0 /* seconds */
#define QUERY_VALUE	(UINT64_C(16) << 20) /* what takes a few hundredths of a second to look at */
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

/* Meant for mount(8) and other readers of fstab, or what holds anyway. */
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
	"x-", "comment=", "user=", "user_id=", "group_id=", /* the last two when it remounts */
};

static unsigned default_threads(void)
{
	/* Two serve four clients and wake up less than more do; measured against a daemon that
	 * answers from arithmetic (primefs-bench mount). */
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

static int parse_readdirplus(enum pfs_readdirplus *out, const char *text)
{
	static const char *const names[] = {"auto", "always", "never"};
	unsigned i;

	PFS_TRY(parse_choice(&i, text, names, PFS_COUNT(names)));
	*out = (enum pfs_readdirplus)i;
	return 0;
}

static int parse_links(enum pfs_links_choice *out, const char *text)
{
	static const char *const names[] = {"auto", "no", "yes"};
	unsigned i;

	PFS_TRY(parse_choice(&i, text, names, PFS_COUNT(names)));
	*out = (enum pfs_links_choice)i;
	return 0;
}

static int parse_no(bool *is_no, const char *text)
{
	static const char *const names[] = {"yes", "no"};
	unsigned i;

	PFS_TRY(parse_choice(&i, text, names, PFS_COUNT(names)));
	*is_no = i == 1;
	return 0;
}

static int parse_timeout(double *out, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value < 0 || value > 1e9)
		return -EINVAL;
	*out = value;
	return 0;
}

static int parse_threads(unsigned *out, const char *text)
{
	uint64_t n;

	if (pfs_parse_u64(&n, text) != 0 || n < 1 || n > PFS_MOUNT_THREADS_MAX)
		return -EINVAL;
	*out = (unsigned)n;
	return 0;
}

/* Bytes, with a letter K, M, G or T (of 1,024) perhaps. */
static int parse_bytes(uint64_t *out, const char *text)
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
	*out = n << shift;
	return 0;
}

static int parse_query_value(uint64_t *out, const char *text)
{
	uint64_t bytes;

	PFS_TRY(parse_bytes(&bytes, text));
	if (bytes < QUERY_VALUE_MIN || bytes > QUERY_VALUE_MAX)
		return -ERANGE;
	*out = bytes;
	return 0;
}

static int parse_query_time(unsigned *out, const char *text)
{
	double seconds;

	PFS_TRY(parse_timeout(&seconds, text));
	if (seconds > QUERY_TIME_MAX)
		return -ERANGE;
	*out = (unsigned)ceil(seconds * 1000);
	return 0;
}

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

/* As apply, of how the source is followed. */
static int apply_follow(struct pfs_mount_options *options, const char **wants, const char *word,
			const char *value)
{
	static const char *const names[] = {"no", "auto", "fanotify", "inotify"};
	unsigned i = 0;

	if (strcmp(word, "refresh") == 0) {
		*wants = "seconds, up to 1000000; 0: only when asked";
		return parse_query_time(&options->refresh_ms, value);
	}
	if (strcmp(word, "watch") == 0) {
		*wants = "auto, fanotify, inotify or no";
		PFS_TRY(parse_choice(&i, value, names, PFS_COUNT(names)));
		options->watch = (enum pfs_follow_choice)i;
		return 0;
	}
	if (strcmp(word, "watch_limit") == 0) {
		uint64_t n;

		*wants = "a number of directories; 0: three quarters of what inotify lets a user watch";
		if (pfs_parse_u64(&n, value) != 0 || n > UINT32_MAX)
			return -EINVAL;
		options->watch_limit = (unsigned)n;
		return 0;
	}
	return -ENOENT;
}

/* As apply, of what statements may take. */
static int apply_query(struct pfs_mount_options *options, const char **wants, const char *word,
		       const char *value)
{
	if (strcmp(word, "query_memory") == 0) {
		*wants = "bytes, with K, M, G or T perhaps; 0: no limit";
		return parse_bytes(&options->query_memory, value);
	}
	if (strcmp(word, "query_memory_total") == 0) {
		*wants = "bytes, with K, M, G or T perhaps; 0: a quarter of the machine's";
		return parse_bytes(&options->query_memory_total, value);
	}
	if (strcmp(word, "query_value") == 0) {
		*wants = "64K to 1G";
		return parse_query_value(&options->query_value, value);
	}
	if (strcmp(word, "query_rest") == 0) {
		*wants = "seconds, up to 1000000";
		return parse_query_time(&options->query_rest_ms, value);
	}
	if (strcmp(word, "query_kept") == 0) {
		*wants = "bytes, with K, M, G or T perhaps; 0: the usual";
		return parse_bytes(&options->query_kept, value);
	}
	if (strcmp(word, "query_measure") == 0) {
		*wants = "yes or no";
		return parse_no(&options->no_measuring, value);
	}
	if (strcmp(word, "query_time") == 0) {
		*wants = "seconds, up to 1000000; 0: no limit";
		return parse_query_time(&options->query_time_ms, value);
	}
	return -ENOENT;
}

/* As apply, of options that go together. */
static int apply_group(struct pfs_mount_options *options, const char **wants, const char *word,
		       char *value)
{
	int error = apply_query(options, wants, word, value);

	if (error == -ENOENT)
		error = apply_follow(options, wants, word, value);
	if (error == -ENOENT)
		value[-1] = '=';
	return error;
}

/* 0; -EINVAL: a bad value, *wants says what it should be; -ENOENT: no such option. */
static int apply(struct pfs_mount_options *options, const char **wants, char *word)
{
	char *value = strchr(word, '=');

	if (!value) {
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
	*value++ = '\0';
	if (strcmp(word, "threads") == 0) {
		*wants = "a number from 1 to 64";
		return parse_threads(&options->threads, value);
	}
	if (strcmp(word, "timeout") == 0) {
		*wants = "seconds, 0 or more";
		return parse_timeout(&options->timeout, value);
	}
	if (strcmp(word, "readdirplus") == 0) {
		*wants = "auto, always or never";
		return parse_readdirplus(&options->readdirplus, value);
	}
	if (strcmp(word, "links") == 0) {
		*wants = "auto, no or yes";
		return parse_links(&options->links, value);
	}
	if (strcmp(word, "snapshot") == 0) {
		*wants = "yes or no";
		return parse_no(&options->no_image_file, value);
	}
	if (strcmp(word, "history") == 0) {
		*wants = "an age as 12h, 2d or 8w, a size as 500M or 2G, or no";
		options->sets_history = true;
		return pfs_history_parse(&options->history, value);
	}
	if (strcmp(word, "engine") == 0) {
		*wants = "auto, host or cuda";
		return pfs_engine_by_name(&options->engine, value);
	}
	return apply_group(options, wants, word, value);
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
			(void)snprintf(message, message_size, "option %s: not %s", word, wants);
		if (error)
			return -EINVAL;
	}
	return 0;
}
