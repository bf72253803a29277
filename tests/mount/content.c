/* SPDX-License-Identifier: MIT */
/* Random changes of one file, in every way there is, against a model in memory.
 * PFS_LONG=1 does more; PFS_SEED=N repeats a run. */
#include <stdarg.h>
#include <sys/mman.h>

#include "tests/mount/probe.h"

enum { ROOM = 600000, CHUNK = 65536, CHECK_EVERY = 50 };

static struct {
	unsigned char bytes[ROOM]; /* zero from size on */
	size_t size;
} model;

static unsigned char data[ROOM], found[ROOM];
static unsigned long seed;
static uint64_t rng;
static long step;
static int fd, direct; /* direct: -1 where O_DIRECT wants alignment */
static bool named;     /* the file still has its name */

static uint32_t draw(uint32_t below)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((rng >> 33) % below);
}

/* Often at or next to the edge of a page or chunk. */
static size_t draw_offset(size_t below)
{
	static const uint32_t grains[] = {CHUNK, 4096, 512};
	size_t offset = draw((uint32_t)below);

	if (draw(2)) {
		offset -= offset % grains[draw(3)];
		offset += draw(3);
		offset -= offset ? draw(2) : 0;
	}
	return offset < below ? offset : below - 1;
}

/* At least 1 and at most to the end of the room. */
static size_t draw_size(size_t offset)
{
	static const uint32_t limits[] = {16, 5000, 70000, 200000};
	size_t size = 1 + draw_offset(limits[draw(4)]), room = ROOM - offset;

	return size < room ? size : room;
}

#define WRONG(...) wrong(__LINE__, __VA_ARGS__)
__attribute__((format(printf, 2, 3))) static _Noreturn void wrong(int line, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	probe_fail(__FILE__, line, "seed %lu, step %ld: %s", seed, step, text);
}

static void compare(const unsigned char *have, size_t offset, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (have[i] != model.bytes[offset + i])
			WRONG("read %zu from %zu: byte %zu is %d, not %d; size %zu", size, offset,
			      offset + i, have[i], model.bytes[offset + i], model.size);
}

static void check_size(void)
{
	struct stat st;

	(void)OK(fstat(fd, &st));
	if ((size_t)st.st_size != model.size)
		WRONG("size is %lld, not %zu", (long long)st.st_size, model.size);
}

static void grow(size_t to)
{
	if (to > model.size)
		model.size = to;
}

static void fill(size_t size)
{
	unsigned char byte = (unsigned char)(1 + draw(255));

	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)(byte + i / 7);
}

/* ---- the ways ---- */

static void do_write(int to)
{
	size_t offset = draw_offset(ROOM), size = draw_size(offset);

	fill(size);
	if (pwrite(to, data, size, (off_t)offset) != (ssize_t)size)
		WRONG("write %zu to %zu: %s", size, offset, strerror(errno));
	memcpy(model.bytes + offset, data, size);
	grow(offset + size);
}

static void do_read(int from)
{
	size_t offset = draw_offset(ROOM), size = draw_size(offset), want;
	ssize_t n = pread(from, found, size, (off_t)offset);

	want = offset >= model.size ? 0 : model.size - offset;
	want = want < size ? want : size;
	if (n != (ssize_t)want)
		WRONG("read %zu from %zu is %zd, not %zu; size %zu", size, offset, n, want,
		      model.size);
	compare(found, offset, want);
}

static void buffered_write(void)
{
	do_write(fd);
}

static void buffered_read(void)
{
	do_read(fd);
}

static void direct_write(void)
{
	if (direct >= 0)
		do_write(direct);
}

static void direct_read(void)
{
	if (direct >= 0)
		do_read(direct);
}

static void truncation(void)
{
	size_t size = draw_offset(ROOM);

	(void)OK(ftruncate(fd, (off_t)size));
	if (size < model.size)
		memset(model.bytes + size, 0, model.size - size);
	model.size = size;
}

static void allocation(void)
{
	static const int modes[] = {
		0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
	int mode = modes[draw(ARRAY_SIZE(modes))];
	size_t offset = draw_offset(ROOM), size = draw_size(offset);

	if (fallocate(fd, mode, (off_t)offset, (off_t)size) != 0) {
		if (errno == EOPNOTSUPP && !probe_mounted())
			return;
		WRONG("fallocate %d, %zu from %zu: %s", mode, size, offset, strerror(errno));
	}
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		memset(model.bytes + offset, 0, size);
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		grow(offset + size);
}

static void mapping(void)
{
	bool shared = draw(3);
	size_t offset, size;
	unsigned char *map;

	if (model.size == 0)
		return;
	map = mmap(NULL, model.size, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd,
		   0);
	TRUE(map != MAP_FAILED);
	offset = draw_offset(model.size);
	size = draw_size(offset);
	size = size < model.size - offset ? size : model.size - offset;
	compare(map + offset, offset, size);
	fill(size);
	memcpy(map + offset, data, size);
	if (shared)
		memcpy(model.bytes + offset, data, size);
	if (draw(2))
		(void)OK(msync(map, model.size, MS_SYNC));
	(void)OK(munmap(map, model.size));
}

static void copying(void)
{
	size_t from, to, size, done = 0;
	loff_t in, out;

	if (model.size < 2)
		return;
	from = draw_offset(model.size);
	to = draw_offset(ROOM);
	size = draw_size(from > to ? from : to);
	size = size < model.size - from ? size : model.size - from;
	if (from < to + size && to < from + size)
		return;
	in = (loff_t)from;
	out = (loff_t)to;
	while (done < size) {
		ssize_t n = copy_file_range(fd, &in, fd, &out, size - done, 0);

		if (n < 0 && done == 0 &&
		    (errno == EOPNOTSUPP || errno == EXDEV || errno == ENOSYS))
			return;
		if (n <= 0)
			WRONG("copy %zu from %zu to %zu is %zd: %s", size, from, to, n,
			      strerror(errno));
		done += (size_t)n;
	}
	memmove(model.bytes + to, model.bytes + from, size);
	grow(to + size);
}

static void appending(void)
{
	size_t size = draw_size(model.size);
	int to;

	if (model.size == ROOM || !named)
		return;
	to = (int)OK(open("f", O_WRONLY | O_APPEND));
	fill(size);
	if (write(to, data, size) != (ssize_t)size)
		WRONG("append %zu: %s", size, strerror(errno));
	(void)OK(close(to));
	memcpy(model.bytes + model.size, data, size);
	model.size += size;
}

/* What is called a hole must read as zeros. */
static void seeking(void)
{
	size_t offset, limit;
	off_t at;

	if (model.size == 0)
		return;
	offset = draw_offset(model.size);
	at = lseek(fd, (off_t)offset, SEEK_DATA);
	if (at < 0 && errno != ENXIO)
		WRONG("SEEK_DATA from %zu: %s", offset, strerror(errno));
	limit = at < 0 ? model.size : (size_t)at;
	if (limit < offset || limit > model.size)
		WRONG("SEEK_DATA from %zu is %zu; size %zu", offset, limit, model.size);
	for (size_t i = offset; i < limit; i++)
		if (model.bytes[i])
			WRONG("data at %zu is said to be a hole", i);
	at = lseek(fd, (off_t)offset, SEEK_HOLE);
	if (at < (off_t)offset || (size_t)at > model.size)
		WRONG("SEEK_HOLE from %zu is %lld; size %zu", offset, (long long)at, model.size);
}

static void syncing(void)
{
	(void)OK(draw(2) ? fsync(fd) : fdatasync(fd));
	if (draw(2)) /* the next reads ask the filesystem again */
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void reopening(void)
{
	if (!named)
		return;
	(void)OK(close(fd));
	fd = (int)OK(open("f", O_RDWR));
}

static const struct {
	void (*run)(void);
	unsigned weight;
} ways[] = {
	{buffered_write, 8}, {buffered_read, 6}, {direct_write, 3}, {direct_read, 3},
	{truncation, 3},     {allocation, 4},	 {mapping, 4},	    {copying, 3},
	{appending, 2},	     {seeking, 3},	 {syncing, 1},	    {reopening, 1},
};

static void one_step(void)
{
	unsigned total = 0, at;
	size_t way;

	for (way = 0; way < ARRAY_SIZE(ways); way++)
		total += ways[way].weight;
	at = draw(total);
	for (way = 0; at >= ways[way].weight; way++)
		at -= ways[way].weight;
	ways[way].run();
	check_size();
	if (step % CHECK_EVERY == 0) {
		SAME(pread(fd, found, ROOM, 0), model.size);
		compare(found, 0, model.size);
	}
}

/* O_DIRECT, where it takes any alignment. */
static int open_direct(void)
{
	int opened = open("f", O_RDWR | O_DIRECT);

	if (opened >= 0 && (pwrite(opened, "x", 1, 1) != 1 || ftruncate(opened, 0) != 0)) {
		(void)close(opened);
		opened = -1;
	}
	TRUE(opened >= 0 || !probe_mounted());
	return opened;
}

static void changes(bool keep_name)
{
	const char *given = getenv("PFS_SEED");
	long steps = probe_long() ? 20000 : 1500;

	seed = given ? strtoul(given, NULL, 10) : 20240607;
	rng = seed;
	(void)printf("        seed %lu\n", seed);
	fd = (int)OK(open("f", O_CREAT | O_EXCL | O_RDWR, 0644));
	direct = open_direct();
	named = keep_name;
	if (!named)
		(void)OK(unlink("f"));
	for (step = 1; step <= steps; step++)
		one_step();
	if (named)
		HOLDS("f", model.bytes, model.size);
}

static void random_changes(void)
{
	changes(true);
}

static void random_changes_without_a_name(void)
{
	changes(false);
}

static const struct probe probes[] = {
	PROBE(random_changes),
	PROBE(random_changes_without_a_name),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
