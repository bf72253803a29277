/* SPDX-License-Identifier: MIT */
/* File handles, as an NFS server would use them: they survive a forget. */

#include "tests/mount/probe.h"

struct handle {
	struct file_handle head;
	unsigned char bytes[MAX_HANDLE_SZ];
};

static int take(struct handle *handle, const char *path)
{
	int mount_id;

	handle->head.handle_bytes = MAX_HANDLE_SZ;
	return name_to_handle_at(AT_FDCWD, path, &handle->head, &mount_id, 0);
}

/* Makes the kernel forget what nobody uses. */
static void drop_caches(void)
{
	int fd;

	sync();
	fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		probe_skip("cannot drop the kernel's caches");
	(void)OK(write(fd, "2", 1));
	(void)OK(close(fd));
	probe_tick();
}

static void needs_handles(void)
{
	struct handle handle;

	probe_needs_root();
	if (take(&handle, ".") != 0 && errno == EOPNOTSUPP)
		probe_skip("no handles here");
}

static void survive_a_forget(void)
{
	struct handle file, dir;
	char data[8];
	ino_t ino;
	int top, fd;

	needs_handles();
	(void)OK(mkdir("a", 0755));
	(void)OK(mkdir("a/b", 0755));
	probe_text("a/b/f", "hello");
	ino = probe_stat("a/b/f").st_ino;
	(void)OK(take(&file, "a/b/f"));
	(void)OK(take(&dir, "a/b"));
	top = (int)OK(open(".", O_RDONLY | O_DIRECTORY));
	drop_caches();
	fd = (int)OK(open_by_handle_at(top, &file.head, O_RDWR));
	SAME(read(fd, data, sizeof(data)), 5);
	SAME(memcmp(data, "hello", 5), 0);
	SAME(pwrite(fd, "J", 1, 0), 1);
	(void)OK(close(fd));
	HOLDS("a/b/f", "Jello", 5);
	SAME(probe_stat("a/b/f").st_ino, ino);
	drop_caches();
	fd = (int)OK(open_by_handle_at(top, &dir.head, O_RDONLY | O_DIRECTORY));
	(void)OK(fchdir(fd)); /* the kernel finds the way up again by ".." */
	HOLDS("f", "Jello", 5);
	SAME(probe_stat("f").st_ino, ino);
}

static void survive_a_rename(void)
{
	struct handle handle;
	char data[8];
	int top, fd;

	needs_handles();
	probe_text("f", "hello");
	(void)OK(mkdir("d", 0755));
	(void)OK(take(&handle, "f"));
	(void)OK(rename("f", "d/g"));
	drop_caches();
	top = (int)OK(open(".", O_RDONLY | O_DIRECTORY));
	fd = (int)OK(open_by_handle_at(top, &handle.head, O_RDONLY));
	SAME(read(fd, data, sizeof(data)), 5);
}

static void are_stale_when_the_node_is_gone(void)
{
	struct handle handle;
	int top;

	needs_handles();
	probe_text("f", "hello");
	(void)OK(take(&handle, "f"));
	(void)OK(unlink("f"));
	for (int i = 0; i < 50; i++) { /* never another node under the old number */
		char name[16];

		(void)snprintf(name, sizeof(name), "g%d", i);
		probe_text(name, "other");
	}
	drop_caches();
	top = (int)OK(open(".", O_RDONLY | O_DIRECTORY));
	FAILS(open_by_handle_at(top, &handle.head, O_RDONLY), ESTALE);
}

static void of_every_kind(void)
{
	static const char *const names[] = {"f", "d", "l", "p"};
	struct handle handles[ARRAY_SIZE(names)];
	ino_t numbers[ARRAY_SIZE(names)];
	struct stat st;
	int top, fd;

	needs_handles();
	probe_text("f", "x");
	(void)OK(mkdir("d", 0755));
	(void)OK(symlink("f", "l"));
	(void)OK(mkfifo("p", 0644));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)OK(take(&handles[i], names[i]));
		numbers[i] = probe_stat(names[i]).st_ino;
	}
	top = (int)OK(open(".", O_RDONLY | O_DIRECTORY));
	drop_caches();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		fd = (int)OK(open_by_handle_at(top, &handles[i].head, O_PATH | O_NOFOLLOW));
		(void)OK(fstat(fd, &st));
		SAME(st.st_ino, numbers[i]);
		(void)OK(close(fd));
	}
}

static void of_removed_directories_are_stale(void)
{
	struct handle dir, file;
	int top;

	needs_handles();
	(void)OK(mkdir("d", 0755));
	probe_text("d/f", "x");
	(void)OK(take(&dir, "d"));
	(void)OK(take(&file, "d/f"));
	(void)OK(unlink("d/f"));
	(void)OK(rmdir("d"));
	drop_caches();
	top = (int)OK(open(".", O_RDONLY | O_DIRECTORY));
	FAILS(open_by_handle_at(top, &dir.head, O_RDONLY), ESTALE);
	FAILS(open_by_handle_at(top, &file.head, O_RDONLY), ESTALE);
}

/* Bytes that were never a handle open nothing. */
static void made_up_ones_are_stale(void)
{
	struct handle handle;
	unsigned char *bytes = (unsigned char *)&handle + offsetof(struct file_handle, f_handle);
	int top, fd;

	needs_handles();
	probe_text("f", "x");
	(void)OK(take(&handle, "f"));
	top = (int)OK(open(".", O_RDONLY | O_DIRECTORY));
	for (unsigned i = 0; i < handle.head.handle_bytes; i++) {
		bytes[i] ^= 0x55;
		fd = open_by_handle_at(top, &handle.head, O_RDONLY | O_NONBLOCK);
		TRUE(fd >= 0 || errno == ESTALE || errno == EINVAL || errno == EOVERFLOW);
		if (fd >= 0) /* what is left of it may still say which file */
			(void)OK(close(fd));
		bytes[i] ^= 0x55;
	}
	memset(bytes, 0xff, handle.head.handle_bytes);
	TRUE(open_by_handle_at(top, &handle.head, O_RDONLY) == -1);
}

static const struct probe probes[] = {
	PROBE(survive_a_forget),
	PROBE(survive_a_rename),
	PROBE(are_stale_when_the_node_is_gone),
	PROBE(of_every_kind),
	PROBE(of_removed_directories_are_stale),
	PROBE(made_up_ones_are_stale),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
