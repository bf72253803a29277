/* SPDX-License-Identifier: MIT */
/* Reading directories, also while entries come and go. */
#include <dirent.h>
#include <limits.h>

#include "tests/mount/probe.h"

enum { MANY = 3000 };

static DIR *open_dir(const char *path)
{
	DIR *dir = opendir(path);

	if (!dir)
		probe_fail(__FILE__, __LINE__, "opendir %s: %s", path, strerror(errno));
	return dir;
}

static struct dirent *next(DIR *dir)
{
	struct dirent *entry;

	errno = 0;
	entry = readdir(dir);
	if (!entry && errno)
		probe_fail(__FILE__, __LINE__, "readdir: %s", strerror(errno));
	return entry;
}

static void make_files(const char *prefix, int count)
{
	char name[64];

	for (int i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "d/%s%d", prefix, i);
		(void)OK(close((int)OK(open(name, O_CREAT | O_EXCL | O_WRONLY, 0644))));
	}
}

/* The number in a name of make_files, or -1. */
static int number_of(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) == 0 ? (int)strtol(name + len, NULL, 10) : -1;
}

static void lists_all_once(void)
{
	static unsigned char seen[MANY];
	unsigned dots = 0;
	struct dirent *entry;
	DIR *dir;

	(void)OK(mkdir("d", 0755));
	make_files("file", MANY);
	dir = open_dir("d");
	while ((entry = next(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
			SAME(entry->d_type, DT_DIR);
			dots++;
			continue;
		}
		TRUE(number_of(entry->d_name, "file") >= 0);
		seen[number_of(entry->d_name, "file")]++;
		SAME(entry->d_type, DT_REG);
	}
	SAME(dots, 2);
	for (int i = 0; i < MANY; i++)
		SAME(seen[i], 1);
	(void)OK(closedir(dir));
}

static void tells_numbers_and_types(void)
{
	static const struct {
		const char *name;
		unsigned char type;
	} kinds[] = {{"f", DT_REG}, {"d", DT_DIR}, {"l", DT_LNK}, {"p", DT_FIFO}, {"s", DT_SOCK}};
	struct dirent *entry;
	unsigned found = 0;
	DIR *dir;

	probe_text("f", "");
	(void)OK(mkdir("d", 0755));
	(void)OK(symlink("x", "l"));
	(void)OK(mkfifo("p", 0644));
	(void)OK(mknod("s", S_IFSOCK | 0644, 0));
	dir = open_dir(".");
	while ((entry = next(dir))) {
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
			if (strcmp(entry->d_name, kinds[i].name) != 0)
				continue;
			SAME(entry->d_type, kinds[i].type);
			SAME(entry->d_ino, probe_stat(entry->d_name).st_ino);
			found++;
		}
		if (strcmp(entry->d_name, ".") == 0)
			SAME(entry->d_ino, probe_stat(".").st_ino);
		if (strcmp(entry->d_name, "..") == 0)
			SAME(entry->d_ino, probe_stat("..").st_ino);
	}
	SAME(found, ARRAY_SIZE(kinds));
	(void)OK(closedir(dir));
}

/* Entries that are there all the time appear exactly once, whatever others do. */
static void survives_coming_and_going(void)
{
	static unsigned char seen[MANY];
	struct dirent *entry;
	char name[64];
	int step = 0;
	DIR *dir;

	(void)OK(mkdir("d", 0755));
	make_files("stay", MANY);
	make_files("go", MANY);
	dir = open_dir("d");
	while ((entry = next(dir))) {
		if (number_of(entry->d_name, "stay") >= 0)
			seen[number_of(entry->d_name, "stay")]++;
		if (step < MANY) {
			(void)snprintf(name, sizeof(name), "d/go%d", MANY - 1 - step);
			(void)OK(unlink(name));
			(void)snprintf(name, sizeof(name), "d/come%d", step);
			(void)OK(close((int)OK(open(name, O_CREAT | O_EXCL | O_WRONLY, 0644))));
		}
		step++;
	}
	for (int i = 0; i < MANY; i++)
		SAME(seen[i], 1);
	(void)OK(closedir(dir));
}

/* `rm -r` with many descriptors: reading and removing what was read empties the directory. */
static void removing_while_reading_empties(void)
{
	struct dirent *entry;
	char name[sizeof("d/") + NAME_MAX];
	DIR *dir;

	(void)OK(mkdir("d", 0755));
	make_files("file", MANY);
	dir = open_dir("d");
	while ((entry = next(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "d/%s", entry->d_name);
		(void)OK(unlink(name));
	}
	(void)OK(closedir(dir));
	(void)OK(rmdir("d"));
}

enum { FILES = 500, STRIDE = 7 };

struct position {
	long told;
	char name[32]; /* of the entry that follows */
};

/* Reads d to its end, noting each position; d has FILES files. */
static void note_positions(DIR *dir, struct position *positions)
{
	struct dirent *entry;
	int count = 0;

	for (;;) {
		long told = telldir(dir);

		entry = next(dir);
		if (!entry)
			break;
		TRUE(count < FILES + 2);
		positions[count].told = told;
		(void)snprintf(positions[count++].name, sizeof(positions->name), "%.31s",
			       entry->d_name);
	}
	SAME(count, FILES + 2);
}

static void seek_to(DIR *dir, const struct position *position)
{
	struct dirent *entry;

	seekdir(dir, position->told);
	entry = next(dir);
	TRUE(entry && strcmp(entry->d_name, position->name) == 0);
}

/* A position stays good, also when the entry before it has gone. */
static void seeks_to_told_positions(void)
{
	static struct position positions[FILES + 2];
	char name[64];
	int i, left = 0;
	DIR *dir;

	(void)OK(mkdir("d", 0755));
	make_files("file", FILES);
	dir = open_dir("d");
	note_positions(dir, positions);
	for (i = FILES + 1; i >= 0; i -= STRIDE)
		seek_to(dir, &positions[i]);
	for (i = 10; i + 1 < FILES + 2; i += STRIDE) {
		if (positions[i].name[0] == '.' || positions[i + 1].name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "d/%s", positions[i].name);
		(void)OK(unlink(name));
		seek_to(dir, &positions[i + 1]);
	}
	rewinddir(dir);
	while (next(dir))
		left++;
	TRUE(left < FILES + 2);
	(void)OK(closedir(dir));
}

static void rewinding_shows_news(void)
{
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	(void)OK(mkdir("d", 0755));
	dir = open_dir("d");
	while (next(dir))
		;
	make_files("new", 1);
	rewinddir(dir);
	while ((entry = next(dir)))
		found = found || strcmp(entry->d_name, "new0") == 0;
	TRUE(found);
	(void)OK(unlink("d/new0"));
	rewinddir(dir);
	while ((entry = next(dir)))
		TRUE(strcmp(entry->d_name, "new0") != 0);
	(void)OK(closedir(dir));
}

/* What one descriptor changed, a listing begun afterwards shows (the kernel caches listings). */
static void listings_are_current(void)
{
	char name[64];

	(void)OK(mkdir("d", 0755));
	for (int round = 0; round < 50; round++) {
		struct dirent *entry;
		DIR *dir;
		int count = 0;

		(void)snprintf(name, sizeof(name), "d/x%d", round);
		(void)OK(mkdir(name, 0755));
		dir = open_dir("d");
		while ((entry = next(dir)))
			count += entry->d_name[0] != '.';
		SAME(count, 1);
		(void)OK(closedir(dir));
		(void)OK(rmdir(name));
		dir = open_dir("d");
		while ((entry = next(dir)))
			TRUE(entry->d_name[0] == '.');
		(void)OK(closedir(dir));
	}
}

static void removed_directory_reads_empty(void)
{
	struct dirent *entry;
	DIR *dir;

	(void)OK(mkdir("d", 0755));
	dir = open_dir("d");
	(void)OK(rmdir("d"));
	while ((entry = next(dir)))
		TRUE(strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
	(void)OK(closedir(dir));
}

/* What differs only in the low bits of a hash, or has the same one, is listed all the same. */
static void long_names_are_listed(void)
{
	enum { NAMES = 200 };
	char name[256];
	int count = 0;
	DIR *dir;

	(void)OK(mkdir("d", 0755));
	(void)OK(chdir("d"));
	memset(name, 'n', 255);
	name[255] = '\0';
	for (int i = 0; i < NAMES; i++) {
		name[100] = (char)('A' + i % 26);
		name[200] = (char)('a' + i / 26);
		probe_text(name, "");
	}
	dir = open_dir(".");
	while (next(dir))
		count++;
	SAME(count, NAMES + 2);
	(void)OK(closedir(dir));
}

/* Each descriptor has its own position, also when both read the same directory. */
static void two_listings_at_once(void)
{
	static unsigned char seen[2][MANY];
	struct dirent *entry;
	DIR *dirs[2];

	(void)OK(mkdir("d", 0755));
	make_files("file", MANY);
	dirs[0] = open_dir("d");
	dirs[1] = open_dir("d");
	for (int turn = 0, ended = 0; ended < 2; turn++) {
		entry = next(dirs[turn % 3 == 0]); /* one goes ahead of the other */
		if (!entry)
			ended++;
		else if (number_of(entry->d_name, "file") >= 0)
			seen[turn % 3 == 0][number_of(entry->d_name, "file")]++;
	}
	for (int side = 0; side < 2; side++)
		while ((entry = next(dirs[side])))
			if (number_of(entry->d_name, "file") >= 0)
				seen[side][number_of(entry->d_name, "file")]++;
	for (int i = 0; i < MANY; i++) {
		SAME(seen[0][i], 1);
		SAME(seen[1][i], 1);
	}
	(void)OK(closedir(dirs[0]));
	(void)OK(closedir(dirs[1]));
}

/* Renaming within a directory while it is listed: what keeps its name appears exactly once. */
static void survives_renames(void)
{
	static unsigned char seen[MANY];
	char from[64], to[64];
	struct dirent *entry;
	int step = 0;
	DIR *dir;

	(void)OK(mkdir("d", 0755));
	make_files("stay", MANY);
	make_files("old", MANY / 2);
	dir = open_dir("d");
	while ((entry = next(dir))) {
		if (number_of(entry->d_name, "stay") >= 0)
			seen[number_of(entry->d_name, "stay")]++;
		if (step < MANY / 2) {
			(void)snprintf(from, sizeof(from), "d/old%d", step);
			(void)snprintf(to, sizeof(to), "d/renamed%d", step);
			(void)OK(rename(from, to));
		}
		step++;
	}
	for (int i = 0; i < MANY; i++)
		SAME(seen[i], 1);
	(void)OK(closedir(dir));
}

/* A buffer for a few entries gives the same listing; one too small for an entry is EINVAL. */
static void small_buffers(void)
{
	enum { ENTRIES = 300, ROOM = 120 };
	static unsigned char seen[ENTRIES];
	_Alignas(struct dirent64) char buffer[ROOM + sizeof(struct dirent64)];
	ssize_t n;
	int fd;

	(void)OK(mkdir("d", 0755));
	make_files("file", ENTRIES);
	fd = (int)OK(open("d", O_RDONLY | O_DIRECTORY));
	while ((n = OK(getdents64(fd, buffer, ROOM))) > 0) {
		const struct dirent64 *entry;

		for (ssize_t at = 0; at < n; at += entry->d_reclen) {
			entry = (const void *)(buffer + at);
			if (number_of(entry->d_name, "file") >= 0)
				seen[number_of(entry->d_name, "file")]++;
		}
	}
	for (int i = 0; i < ENTRIES; i++)
		SAME(seen[i], 1);
	(void)OK(lseek(fd, 0, SEEK_SET));
	FAILS(getdents64(fd, buffer, 8), EINVAL);
	(void)OK(close(fd));
}

/* Positions found by one descriptor are good on another, and numbers agree with stat. */
static void ten_thousand(void)
{
	enum { COUNT = 10000 };
	static unsigned char seen[COUNT];
	struct dirent *entry;
	long half = -1;
	int count = 0, rest = 0;
	DIR *dir, *other;

	(void)OK(mkdir("d", 0755));
	make_files("file", COUNT);
	dir = open_dir("d");
	while ((entry = next(dir))) {
		int number = number_of(entry->d_name, "file");

		if (++count == COUNT / 2)
			half = telldir(dir);
		if (number < 0)
			continue;
		seen[number]++;
		if (number % 100 == 0) {
			struct stat st;

			(void)OK(fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW));
			SAME(entry->d_ino, st.st_ino);
		}
	}
	SAME(count, COUNT + 2);
	for (int i = 0; i < COUNT; i++)
		SAME(seen[i], 1);
	other = open_dir("d");
	seekdir(other, half);
	while (next(other))
		rest++;
	SAME(rest, COUNT + 2 - COUNT / 2);
	(void)OK(closedir(dir));
	(void)OK(closedir(other));
}

static void only_directories_are_listed(void)
{
	char buffer[1000];
	int fd;

	probe_text("f", "x");
	fd = (int)OK(open("f", O_RDONLY));
	FAILS(getdents64(fd, buffer, sizeof(buffer)), ENOTDIR);
	TRUE(!opendir("f") && errno == ENOTDIR);
	TRUE(!opendir("none") && errno == ENOENT);
	(void)OK(close(fd));
}

static const struct probe probes[] = {
	PROBE(lists_all_once),
	PROBE(tells_numbers_and_types),
	PROBE(survives_coming_and_going),
	PROBE(removing_while_reading_empties),
	PROBE(seeks_to_told_positions),
	PROBE(rewinding_shows_news),
	PROBE(listings_are_current),
	PROBE(removed_directory_reads_empty),
	PROBE(long_names_are_listed),
	PROBE(two_listings_at_once),
	PROBE(survives_renames),
	PROBE(small_buffers),
	PROBE(ten_thousand),
	PROBE(only_directories_are_listed),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
