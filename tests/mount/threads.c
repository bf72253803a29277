/* SPDX-License-Identifier: MIT */
/* Many threads in the same directories: each knows what its own names must be, and of those who
 * want the same thing one gets it.  PFS_LONG=1 does more. */
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "tests/mount/probe.h"

enum { THREADS = 8, DIRS = 4, NAMES = 30, PATH_SIZE = 32 };

static long rounds(long quick)
{
	return probe_long() ? 20 * quick : quick;
}

static uint32_t draw(uint64_t *rng, uint32_t below)
{
	*rng = *rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*rng >> 33) % below);
}

static void run_threads(void *(*run)(void *), long count)
{
	static long numbers_of[THREADS];
	pthread_t threads[THREADS];

	for (long i = 0; i < count; i++) {
		numbers_of[i] = i;
		SAME(pthread_create(&threads[i], NULL, run, &numbers_of[i]), 0);
	}
	for (long i = 0; i < count; i++)
		SAME(pthread_join(threads[i], NULL), 0);
}

/* ---- own names in shared directories ---- */

struct entry {
	mode_t mode; /* 0: does not exist */
	ino_t ino;
	int dir;      /* where it lies */
	uint32_t tag; /* its content, repeated */
	uint32_t words;
};

static struct entry entries[THREADS][NAMES];

static void entry_path(char *path, int dir, long thread, int name)
{
	(void)snprintf(path, PATH_SIZE, "s%d/t%ld-%d", dir, thread, name);
}

static void write_words(const struct entry *entry, int fd, uint32_t words)
{
	static _Thread_local uint32_t buffer[4096];

	for (uint32_t i = 0; i < words; i++)
		buffer[i] = entry->tag + i;
	SAME(pwrite(fd, buffer, words * sizeof(*buffer), 0), words * sizeof(*buffer));
}

static void verify(const struct entry *entry, const char *path)
{
	static _Thread_local uint32_t buffer[4097];
	struct stat st;
	int fd;

	if (!entry->mode) {
		FAILS(lstat(path, &st), ENOENT);
		return;
	}
	st = probe_stat(path);
	SAME(st.st_mode, entry->mode);
	SAME(st.st_ino, entry->ino);
	if (!S_ISREG(st.st_mode))
		return;
	SAME(st.st_size, entry->words * sizeof(*buffer));
	fd = (int)OK(open(path, O_RDONLY));
	SAME(read(fd, buffer, sizeof(buffer)), entry->words * sizeof(*buffer));
	for (uint32_t i = 0; i < entry->words; i++)
		SAME(buffer[i], entry->tag + i);
	(void)OK(close(fd));
}

static void make_entry(struct entry *entry, const char *path, uint64_t *rng)
{
	int fd;

	entry->tag = draw(rng, UINT32_MAX);
	entry->words = 0;
	switch (draw(rng, 5)) {
	case 0:
		(void)OK(mkdir(path, 0755));
		break;
	case 1:
		(void)OK(symlink("nowhere", path));
		break;
	default:
		fd = (int)OK(open(path, O_CREAT | O_EXCL | O_RDWR, 0644));
		entry->words = draw(rng, 4096);
		write_words(entry, fd, entry->words);
		(void)OK(close(fd));
	}
	entry->mode = probe_stat(path).st_mode;
	entry->ino = probe_stat(path).st_ino;
}

static void remove_entry(struct entry *entry, const char *path)
{
	(void)OK(S_ISDIR(entry->mode) ? rmdir(path) : unlink(path));
	entry->mode = 0;
}

static void rewrite_entry(struct entry *entry, const char *path, uint64_t *rng)
{
	int fd;

	if (!S_ISREG(entry->mode))
		return;
	fd = (int)OK(open(path, O_RDWR | (draw(rng, 2) ? O_TRUNC : 0)));
	entry->tag = draw(rng, UINT32_MAX);
	entry->words = draw(rng, 4096);
	(void)OK(ftruncate(fd, (off_t)(entry->words * sizeof(uint32_t))));
	write_words(entry, fd, entry->words);
	if (draw(rng, 30) == 0)
		(void)OK(fsync(fd));
	(void)OK(close(fd));
}

static void chmod_entry(struct entry *entry, const char *path, uint64_t *rng)
{
	if (S_ISLNK(entry->mode))
		return;
	entry->mode = (entry->mode & S_IFMT) | 0600 | draw(rng, 0200);
	(void)OK(chmod(path, entry->mode & 07777));
}

static void move_entry(long thread, int name, uint64_t *rng)
{
	struct entry *entry = &entries[thread][name];
	char from[PATH_SIZE], to[PATH_SIZE];
	int dir = (int)draw(rng, DIRS);

	entry_path(from, entry->dir, thread, name);
	entry_path(to, dir, thread, name);
	(void)OK(rename(from, to));
	entry->dir = dir;
}

/* Exchanges two of the thread's entries, whatever they are. */
static void exchange_entries(long thread, int name, int other)
{
	struct entry *a = &entries[thread][name], *b = &entries[thread][other], kept;
	char from[PATH_SIZE], to[PATH_SIZE];

	if (name == other || !b->mode)
		return;
	entry_path(from, a->dir, thread, name);
	entry_path(to, b->dir, thread, other);
	(void)OK((int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE));
	kept = *a;
	*a = *b;
	*b = kept;
	b->dir = a->dir;
	a->dir = kept.dir;
}

static void *work_on_own_names(void *arg)
{
	long thread = *(const long *)arg, steps = rounds(600);
	uint64_t rng = 1000 + (uint64_t)thread;
	char path[PATH_SIZE];

	for (long step = 0; step < steps; step++) {
		int name = (int)draw(&rng, NAMES);
		struct entry *entry = &entries[thread][name];

		entry_path(path, entry->dir, thread, name);
		verify(entry, path);
		if (!entry->mode) {
			make_entry(entry, path, &rng);
			continue;
		}
		switch (draw(&rng, 6)) {
		case 0:
			remove_entry(entry, path);
			break;
		case 1:
			rewrite_entry(entry, path, &rng);
			break;
		case 2:
			chmod_entry(entry, path, &rng);
			break;
		case 3:
			exchange_entries(thread, name, (int)draw(&rng, NAMES));
			break;
		default:
			move_entry(thread, name, &rng);
		}
	}
	return NULL;
}

static int count_names(const char *path, bool only_directories)
{
	const struct dirent *entry;
	DIR *dir = opendir(path);
	int count = 0;

	TRUE(dir);
	while ((entry = readdir(dir)))
		count += !only_directories || entry->d_type == DT_DIR;
	(void)closedir(dir);
	return count - 2;
}

static void own_names_in_shared_directories(void)
{
	int count[DIRS] = {0}, dirs[DIRS] = {0};
	char path[PATH_SIZE];

	for (int i = 0; i < DIRS; i++) {
		(void)snprintf(path, sizeof(path), "s%d", i);
		(void)OK(mkdir(path, 0755));
	}
	run_threads(work_on_own_names, THREADS);
	for (long thread = 0; thread < THREADS; thread++) {
		for (int name = 0; name < NAMES; name++) {
			const struct entry *entry = &entries[thread][name];

			entry_path(path, entry->dir, thread, name);
			verify(entry, path);
			count[entry->dir] += entry->mode != 0;
			dirs[entry->dir] += S_ISDIR(entry->mode);
		}
	}
	for (int i = 0; i < DIRS; i++) {
		(void)snprintf(path, sizeof(path), "s%d", i);
		SAME(count_names(path, false), count[i]);
		SAME(count_names(path, true), dirs[i]);
		SAME(probe_stat(path).st_nlink, 2 + dirs[i]);
	}
}

/* ---- who wants the same thing ---- */

static atomic_long winners[7];
static pthread_barrier_t line;

static void count_win(size_t race, long result, int loss)
{
	if (result >= 0)
		winners[race]++;
	else
		SAME(errno, loss);
}

static void *race(void *arg)
{
	long thread = *(const long *)arg, n = rounds(150);
	char own[PATH_SIZE];
	int fd;

	(void)snprintf(own, sizeof(own), "own%ld", thread);
	for (long i = 0; i < n; i++) {
		(void)pthread_barrier_wait(&line);
		fd = open("f", O_CREAT | O_EXCL | O_RDWR, 0644);
		count_win(0, fd, EEXIST);
		if (fd >= 0)
			(void)OK(close(fd));
		(void)pthread_barrier_wait(&line);
		count_win(1, rename("f", own), ENOENT);
		(void)pthread_barrier_wait(&line);
		(void)unlink(own);
		count_win(2, mkdir("d", 0755), EEXIST);
		(void)pthread_barrier_wait(&line);
		count_win(3, rmdir("d"), ENOENT);
		(void)pthread_barrier_wait(&line);
		count_win(4, symlink("x", "l"), EEXIST);
		(void)pthread_barrier_wait(&line);
		count_win(5, unlink("l"), ENOENT);
		probe_text(own, "x");
		(void)pthread_barrier_wait(&line);
		count_win(
			6,
			syscall(SYS_renameat2, AT_FDCWD, own, AT_FDCWD, "target", RENAME_NOREPLACE),
			EEXIST);
		(void)pthread_barrier_wait(&line);
		(void)unlink("target");
		(void)unlink(own);
	}
	return NULL;
}

static void one_of_many_wins(void)
{
	SAME(pthread_barrier_init(&line, NULL, THREADS), 0);
	run_threads(race, THREADS);
	for (size_t i = 0; i < ARRAY_SIZE(winners); i++)
		SAME(winners[i], rounds(150));
	SAME(count_names(".", false), 0);
}

/* ---- moving directories into each other ---- */

enum { FOREST = 24 };

static int forest;           /* the folder that they all lie below */
static ino_t numbers[FOREST];

/* The way to one of them as it was found somewhere below, or an empty path. */
static void find_dir(char *path, size_t size, uint64_t *rng)
{
	size_t len = 0;

	path[0] = '\0';
	for (uint32_t depth = 1 + draw(rng, 4); depth-- > 0; len = strlen(path)) {
		char longer[128];

		(void)snprintf(longer, sizeof(longer), "%s%sd%u", path, len ? "/" : "",
			       draw(rng, FOREST));
		if (strlen(longer) < size && faccessat(forest, longer, F_OK, 0) == 0)
			(void)snprintf(path, size, "%s", longer);
	}
}

static void *move_directories(void *arg)
{
	uint64_t rng = 77 + (uint64_t)*(const long *)arg;
	char from[100], to[250];

	for (long i = 0, n = rounds(2000); i < n; i++) {
		const char *name;
		size_t len;

		find_dir(from, sizeof(from), &rng);
		find_dir(to, 100, &rng);
		name = strrchr(from, '/') ? strrchr(from, '/') + 1 : from;
		if (!*name)
			continue;
		len = strlen(to);
		(void)snprintf(to + len, sizeof(to) - len, "%s%s", len ? "/" : "", name);
		if (renameat(forest, from, forest, to) != 0)
			TRUE(errno == EINVAL || errno == ENOENT || errno == ENOTEMPTY);
	}
	return NULL;
}

static int count_below(int at)
{
	DIR *dir = fdopendir(at);
	struct dirent *entry;
	struct stat st, up;
	nlink_t below = 0;
	int count = 0;

	TRUE(dir);
	while ((entry = readdir(dir))) {
		int child;

		if (entry->d_name[0] == '.')
			continue;
		SAME(entry->d_ino, numbers[strtol(entry->d_name + 1, NULL, 10)]);
		child = (int)OK(openat(at, entry->d_name, O_RDONLY | O_DIRECTORY));
		(void)OK(fstat(at, &st));
		(void)OK(fstatat(child, "..", &up, 0));
		SAME(up.st_ino, st.st_ino);
		below++;
		count += 1 + count_below(child);
	}
	(void)OK(fstat(at, &st));
	SAME(st.st_nlink, 2 + below);
	(void)OK(closedir(dir));
	return count;
}

/* However many move directories below each other, none is lost and none is its own ancestor. */
static void moving_directories_into_each_other(void)
{
	char name[16];

	(void)OK(mkdir("forest", 0755));
	forest = (int)OK(open("forest", O_RDONLY | O_DIRECTORY));
	for (int i = 0; i < FOREST; i++) {
		(void)snprintf(name, sizeof(name), "d%d", i);
		(void)OK(mkdirat(forest, name, 0755));
		(void)snprintf(name, sizeof(name), "forest/d%d", i);
		numbers[i] = probe_stat(name).st_ino;
	}
	run_threads(move_directories, THREADS);
	SAME(count_below(forest), FOREST);
}

/* ---- one file, many writers ---- */

enum { BLOCK = 5000, BLOCKS = 50 }; /* no multiple of a page */

static void *write_own_blocks(void *arg)
{
	unsigned char block[BLOCK];
	long thread = *(const long *)arg;
	int fd = (int)OK(open("f", O_WRONLY));

	memset(block, 'A' + (int)thread, sizeof(block));
	for (long i = 0; i < BLOCKS; i++)
		SAME(pwrite(fd, block, BLOCK, (i * THREADS + thread) * BLOCK), BLOCK);
	(void)OK(close(fd));
	return NULL;
}

static void neighbours_in_one_file(void)
{
	static unsigned char want[THREADS * BLOCKS * BLOCK];

	for (size_t i = 0; i < sizeof(want); i++)
		want[i] = (unsigned char)('A' + i / BLOCK % THREADS);
	for (int round = 0; round < 3; round++) {
		probe_text("f", "");
		run_threads(write_own_blocks, THREADS);
		HOLDS("f", want, sizeof(want));
	}
}

static const struct probe probes[] = {
	PROBE(own_names_in_shared_directories),
	PROBE(one_of_many_wins),
	PROBE(moving_directories_into_each_other),
	PROBE(neighbours_in_one_file),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
