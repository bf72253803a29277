/* SPDX-License-Identifier: MIT */
/* Does the same random operations in two folders and compares every answer and what comes of it.
 *
 *	twin [--seed=N] [--ops=N] [--every=N [--from=N]] [--uid=N] [--times] REFERENCE TESTED
 *
 * REFERENCE lies on a filesystem of the kernel's own.  --times looks after each operation whose
 * mtime and ctime changed, in the whole of both trees (slow: it waits for the clock each time).
 * The trees are compared after every 250 operations, or --every; --ops=0 only compares. */
#include <getopt.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "tests/mount/twin.h"

enum { OPEN_FILES = 6, PATH_SIZE = 64, DATA_SIZE = 150000 };

struct op {
	char path[2][PATH_SIZE];
	int slot, other_slot; /* open files */
	int flags;
	mode_t mode;
	uid_t id;
	off_t offset;
	size_t size;
	struct timespec times[2];
	const char *name, *value;
};

/* What the operation said: value or -errno, and what it read. */
struct answer {
	long value;
	uint64_t read;
};

static int open_file[SIDES][OPEN_FILES];
static char data[DATA_SIZE];
static uint64_t rng;
static unsigned long seed;
static long step, first, every = 250;

static uint32_t draw(uint32_t below)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((rng >> 33) % below);
}

static long result(long value)
{
	return value == -1 ? -errno : value;
}

/* ---- operations: each acts in the current folder ---- */

static struct answer do_open(const struct op *op, int side)
{
	int fd = open(op->path[0], op->flags | O_CLOEXEC | O_NONBLOCK, op->mode);
	int *slot = &open_file[side][op->slot];

	if (fd < 0)
		return (struct answer){result(-1), 0};
	if (*slot >= 0)
		(void)close(*slot);
	*slot = fd;
	return (struct answer){0, 0};
}

static struct answer do_close(const struct op *op, int side)
{
	int fd = open_file[side][op->slot];

	open_file[side][op->slot] = -1;
	return (struct answer){fd < 0 ? 0 : result(close(fd)), 0};
}

static struct answer do_pwrite(const struct op *op, int side)
{
	return (struct answer){
		result(pwrite(open_file[side][op->slot], data, op->size, op->offset)), 0};
}

static struct answer do_pread(const struct op *op, int side)
{
	static char found[DATA_SIZE];
	ssize_t n = pread(open_file[side][op->slot], found, op->size, op->offset);
	uint64_t hash = n > 0 ? mix(0, found, (size_t)n) : 0;
	struct stat st;

	if (n >= 0 && fstat(open_file[side][op->slot], &st) == 0) /* it may have lost its name */
		hash += (uint64_t)st.st_size * 31 + st.st_nlink * 7 + st.st_mode;
	return (struct answer){result(n), hash};
}

static struct answer do_ftruncate(const struct op *op, int side)
{
	return (struct answer){result(ftruncate(open_file[side][op->slot], op->offset)), 0};
}

static struct answer do_fallocate(const struct op *op, int side)
{
	return (struct answer){result(fallocate(open_file[side][op->slot], op->flags, op->offset,
						(off_t)op->size)), 0};
}

static struct answer do_copy_range(const struct op *op, int side)
{
	off_t from = op->offset, to = op->times[0].tv_sec % (2 * DATA_SIZE);
	ssize_t n = 0, total = 0;

	while ((size_t)total < op->size &&
	       (n = copy_file_range(open_file[side][op->slot], &from,
				    open_file[side][op->other_slot], &to, op->size - (size_t)total,
				    0)) > 0)
		total += n;
	return (struct answer){n < 0 ? result(-1) : total, 0};
}

static struct answer do_map(const struct op *op, int side)
{
	int fd = open_file[side][op->slot];
	struct stat st;
	char *map;
	size_t at;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return (struct answer){0, 0};
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return (struct answer){result(-1), 0};
	at = (size_t)op->offset % (size_t)st.st_size;
	map[at] = (char)op->size;
	(void)msync(map, (size_t)st.st_size, MS_SYNC);
	(void)munmap(map, (size_t)st.st_size);
	return (struct answer){0, 0};
}

static struct answer do_fsync(const struct op *op, int side)
{
	return (struct answer){result(fsync(open_file[side][op->slot])), 0};
}

static struct answer do_mkdir(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(mkdir(op->path[0], op->mode)), 0};
}

static struct answer do_mknod(const struct op *op, int side)
{
	static const mode_t kinds[] = {S_IFREG, S_IFIFO, S_IFSOCK};

	(void)side;
	return (struct answer){result(mknod(op->path[0], kinds[op->slot % 3] | op->mode, 0)), 0};
}

static struct answer do_symlink(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(symlink(op->path[1], op->path[0])), 0};
}

static struct answer do_unlink(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(unlink(op->path[0])), 0};
}

static struct answer do_rmdir(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(rmdir(op->path[0])), 0};
}

static struct answer do_rename(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(syscall(SYS_renameat2, AT_FDCWD, op->path[0], AT_FDCWD,
					      op->path[1], op->flags)), 0};
}

static struct answer do_chmod(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(chmod(op->path[0], op->mode)), 0};
}

static struct answer do_chown(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(lchown(op->path[0], op->slot & 1 ? op->id : (uid_t)-1,
					     op->slot & 2 ? op->id : (gid_t)-1)), 0};
}

static struct answer do_truncate(const struct op *op, int side)
{
	struct stat st;

	(void)side;
	/* tmpfs has its own opinion on whether that changes times */
	if (stat(op->path[0], &st) == 0 && S_ISREG(st.st_mode) && st.st_size == op->offset)
		return (struct answer){0, 0};
	return (struct answer){result(truncate(op->path[0], op->offset)), 0};
}

static struct answer do_utimens(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(utimensat(AT_FDCWD, op->path[0], op->times, op->flags)), 0};
}

static struct answer do_setxattr(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(setxattr(op->path[0], op->name, op->value, strlen(op->value),
					       op->slot % 3)), 0};
}

static struct answer do_removexattr(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(removexattr(op->path[0], op->name)), 0};
}

static struct answer do_getxattr(const struct op *op, int side)
{
	char value[64];
	ssize_t n = getxattr(op->path[0], op->name, value, op->size % sizeof(value));

	(void)side;
	return (struct answer){result(n),
			       op->size % sizeof(value) && n > 0 ? mix(0, value, (size_t)n) : 0};
}

static struct answer do_access(const struct op *op, int side)
{
	(void)side;
	return (struct answer){result(access(op->path[0], op->flags & 7)), 0};
}

static const struct {
	const char *name;
	struct answer (*run)(const struct op *op, int side);
	unsigned weight;
	bool needs_open;
} kinds[] = {
	{"open", do_open, 14, false},	      {"close", do_close, 5, false},
	{"pwrite", do_pwrite, 12, true},      {"pread", do_pread, 8, true},
	{"ftruncate", do_ftruncate, 4, true}, {"fallocate", do_fallocate, 4, true},
	{"copy_range", do_copy_range, 3, true}, {"map", do_map, 2, true},
	{"fsync", do_fsync, 1, true},	      {"mkdir", do_mkdir, 8, false},
	{"mknod", do_mknod, 3, false},	      {"symlink", do_symlink, 4, false},
	{"unlink", do_unlink, 6, false},
	{"rmdir", do_rmdir, 4, false},	      {"rename", do_rename, 14, false},
	{"chmod", do_chmod, 5, false},	      {"chown", do_chown, 3, false},
	{"truncate", do_truncate, 4, false},  {"utimens", do_utimens, 4, false},
	{"setxattr", do_setxattr, 3, false},  {"removexattr", do_removexattr, 1, false},
	{"getxattr", do_getxattr, 2, false},  {"access", do_access, 2, false},
};

static size_t draw_kind(void)
{
	unsigned total = 0, at;
	size_t kind;

	for (kind = 0; kind < ARRAY_SIZE(kinds); kind++)
		total += kinds[kind].weight;
	at = draw(total);
	for (kind = 0; at >= kinds[kind].weight; kind++)
		at -= kinds[kind].weight;
	return kind;
}

static void draw_path(char *path)
{
	static const char *const names[] = {"a", "b", "c", "dd", "\xff\xfe e", "."};
	unsigned depth = 1 + draw(3);
	size_t len = 0;

	for (; depth-- > 0; len = strlen(path))
		(void)snprintf(path + len, PATH_SIZE - len, "%s%s",
			       names[draw(depth ? 4 : draw(20) ? 5 : 6)], depth ? "/" : "");
}

static void draw_op(struct op *op, size_t kind)
{
	static const int opens[] = {O_RDWR,
				    O_RDWR | O_CREAT,
				    O_RDWR | O_CREAT,
				    O_RDWR | O_CREAT | O_EXCL,
				    O_RDONLY,
				    O_RDWR | O_TRUNC,
				    O_RDWR | O_CREAT | O_APPEND,
				    O_RDWR | O_CREAT | O_NOFOLLOW,
				    O_RDONLY | O_DIRECTORY};
	static const int renames[] = {0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
	static const int allocations[] = {0, FALLOC_FL_KEEP_SIZE,
					  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					  FALLOC_FL_ZERO_RANGE,
					  FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
	static const char *const attributes[] = {"user.a", "user.b", "user.longer"};
	static const char *const values[] = {"", "1", "a longer value of an attribute"};

	*op = (struct op){.slot = (int)draw(OPEN_FILES), .other_slot = (int)draw(OPEN_FILES)};
	draw_path(op->path[0]);
	draw_path(op->path[1]);
	op->mode = draw(4) ? 0755 : draw(010000);
	op->id = draw(2) ? 4321 : getuid();
	op->offset = draw(3) ? (off_t)draw(2 * DATA_SIZE) : (off_t)draw(5) * 65536;
	op->size = draw(2) ? draw(DATA_SIZE) : draw(100);
	for (int i = 0; i < 2; i++)
		op->times[i] =
			(struct timespec){.tv_sec = draw(2000000000), .tv_nsec = draw(1000000000)};
	if (draw(4) == 0)
		op->times[draw(2)].tv_nsec = UTIME_OMIT;
	op->name = attributes[draw(3)];
	op->value = values[draw(3)];
	if (kinds[kind].run == do_open)
		op->flags = opens[draw(ARRAY_SIZE(opens))];
	else if (kinds[kind].run == do_rename)
		op->flags = renames[draw(ARRAY_SIZE(renames))];
	else if (kinds[kind].run == do_fallocate)
		op->flags = allocations[draw(ARRAY_SIZE(allocations))];
	else if (kinds[kind].run == do_utimens)
		op->flags = draw(2) ? AT_SYMLINK_NOFOLLOW : 0;
	else
		op->flags = (int)draw(8);
	for (size_t i = 0; i < op->size; i += 64)
		data[i] = (char)draw(256);
}

/* ---- running ---- */

static void describe(const struct op *op, size_t kind)
{
	(void)snprintf(context, sizeof(context),
		       "seed %lu, step %ld, %s %s %s, slots %d %d, flags 0%o, mode 0%o, id %u, "
		       "offset %ld, size %zu",
		       seed, step, kinds[kind].name, op->path[0], op->path[1], op->slot,
		       op->other_slot, (unsigned)op->flags, op->mode, op->id, (long)op->offset,
		       op->size);
}

static void one_step(bool times)
{
	struct answer answers[SIDES];
	size_t kind = draw_kind();
	struct op op;

	draw_op(&op, kind);
	if (kinds[kind].needs_open &&
	    (open_file[0][op.slot] < 0 || open_file[0][op.other_slot] < 0))
		return;
	describe(&op, kind);
	if (times)
		probe_tick();
	for (int side = 0; side < SIDES; side++) {
		(void)OK(fchdir(root[side]));
		answers[side] = kinds[kind].run(&op, side);
		if (side == 0 && answers[0].value == -EOPNOTSUPP)
			return; /* nothing to learn from this reference */
	}
	if (answers[0].value != answers[1].value || answers[0].read != answers[1].read)
		probe_fail(__FILE__, __LINE__, "%s: %ld (%s), wanted %ld (%s)%s", context,
			   answers[1].value,
			   answers[1].value < 0 ? strerror((int)-answers[1].value) : "fine",
			   answers[0].value,
			   answers[0].value < 0 ? strerror((int)-answers[0].value) : "fine",
			   answers[0].value == answers[1].value ? "; the bytes differ" : "");
	if (times)
		compare_times();
	else if (step >= first && step % every == 0)
		compare(true);
}

static void run(long ops, bool times)
{
	for (int slot = 0; slot < OPEN_FILES; slot++)
		open_file[0][slot] = open_file[1][slot] = -1;
	(void)snprintf(context, sizeof(context), "before anything");
	compare(true);
	if (times)
		begin_times();
	for (step = 1; step <= ops; step++)
		one_step(times);
	compare(true);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'}, {"ops", required_argument, NULL, 'n'},
		{"every", required_argument, NULL, 'e'}, {"from", required_argument, NULL, 'f'},
		{"uid", required_argument, NULL, 'u'},
		{"times", no_argument, NULL, 't'}, {0},
	};
	long ops = 5000, uid = -1;
	bool times = false;
	int c;

	seed = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			seed = strtoul(optarg, NULL, 10);
		else if (c == 'n')
			ops = strtol(optarg, NULL, 10);
		else if (c == 'e')
			every = strtol(optarg, NULL, 10);
		else if (c == 'f')
			first = strtol(optarg, NULL, 10);
		else if (c == 'u')
			uid = strtol(optarg, NULL, 10);
		else if (c == 't')
			times = true;
		else
			return 2;
	}
	if (argc - optind != 2 || every < 1)
		return 2;
	(void)umask(0);
	(void)alarm(600);
	for (int side = 0; side < SIDES; side++)
		root[side] = (int)OK(open(argv[optind + side], O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (uid >= 0)
		probe_become((uid_t)uid, (gid_t)uid);
	rng = seed;
	run(ops, times);
	(void)printf("ok      seed %lu, %ld operations\n1 passed, 0 failed, 0 skipped\n", seed,
		     ops);
	return 0;
}
