/* SPDX-License-Identifier: MIT */
/* Extended attributes of the user namespace. */
#include <limits.h>
#include <sys/xattr.h>

#include "tests/mount/probe.h"

static void needs_xattrs(void)
{
	probe_text("f", "x");
	if (setxattr("f", "user.a", "1", 1, 0) != 0 && errno == EOPNOTSUPP)
		probe_skip("no user xattrs here");
	(void)OK(removexattr("f", "user.a"));
}

static void set_and_get(void)
{
	static char value[3000], found[4000];

	needs_xattrs();
	memset(value, 'v', sizeof(value));
	(void)OK(setxattr("f", "user.a", "one", 3, 0));
	SAME(getxattr("f", "user.a", found, sizeof(found)), 3);
	SAME(memcmp(found, "one", 3), 0);
	(void)OK(setxattr("f", "user.a", value, sizeof(value), 0));
	SAME(getxattr("f", "user.a", NULL, 0), sizeof(value));
	SAME(getxattr("f", "user.a", found, sizeof(found)), sizeof(value));
	SAME(memcmp(found, value, sizeof(value)), 0);
	FAILS(getxattr("f", "user.a", found, 10), ERANGE);
	(void)OK(setxattr("f", "user.empty", "", 0, 0));
	SAME(getxattr("f", "user.empty", found, sizeof(found)), 0);
	(void)OK(setxattr("f", "user.bin", "\0\xff\0", 3, 0));
	SAME(getxattr("f", "user.bin", found, sizeof(found)), 3);
	SAME(memcmp(found, "\0\xff\0", 3), 0);
	FAILS(getxattr("f", "user.none", found, sizeof(found)), ENODATA);
	(void)OK(removexattr("f", "user.a"));
	FAILS(getxattr("f", "user.a", found, sizeof(found)), ENODATA);
	FAILS(removexattr("f", "user.a"), ENODATA);
}

static void create_and_replace(void)
{
	char found[8];

	needs_xattrs();
	FAILS(setxattr("f", "user.a", "1", 1, XATTR_REPLACE), ENODATA);
	(void)OK(setxattr("f", "user.a", "1", 1, XATTR_CREATE));
	FAILS(setxattr("f", "user.a", "2", 1, XATTR_CREATE), EEXIST);
	(void)OK(setxattr("f", "user.a", "3", 1, XATTR_REPLACE));
	SAME(getxattr("f", "user.a", found, sizeof(found)), 1);
	SAME(found[0], '3');
}

static void lists_names(void)
{
	char list[256];
	ssize_t size;

	needs_xattrs();
	SAME(listxattr("f", list, sizeof(list)), 0);
	(void)OK(setxattr("f", "user.b", "1", 1, 0));
	(void)OK(setxattr("f", "user.a", "1", 1, 0));
	(void)OK(setxattr("f", "user.\xc3\xa9", "1", 1, 0));
	size = OK(listxattr("f", list, sizeof(list)));
	SAME(size, sizeof("user.a") + sizeof("user.b") + sizeof("user.\xc3\xa9"));
	SAME(listxattr("f", NULL, 0), size);
	TRUE(memmem(list, (size_t)size, "user.a", 7) && memmem(list, (size_t)size, "user.b", 7));
	FAILS(listxattr("f", list, 3), ERANGE);
}

static void directories_have_them(void)
{
	char found[8];

	needs_xattrs();
	(void)OK(mkdir("d", 0755));
	(void)OK(setxattr("d", "user.a", "dir", 3, 0));
	SAME(getxattr("d", "user.a", found, sizeof(found)), 3);
	(void)OK(rename("d", "e"));
	SAME(getxattr("e", "user.a", found, sizeof(found)), 3);
	(void)OK(rmdir("e"));
	(void)OK(mkdir("d", 0755));
	FAILS(getxattr("d", "user.a", found, sizeof(found)), ENODATA);
}

static void others_have_none(void)
{
	needs_xattrs();
	(void)OK(symlink("f", "l"));
	(void)OK(mkfifo("p", 0644));
	FAILS(lsetxattr("l", "user.a", "1", 1, 0), EPERM);
	FAILS(setxattr("p", "user.a", "1", 1, 0), EPERM);
}

static void names_have_limits(void)
{
	char name[300] = "user.";

	needs_xattrs();
	memset(name + 5, 'n', 250);
	(void)OK(setxattr("f", name, "1", 1, 0)); /* 255 bytes */
	(void)OK(removexattr("f", name));
	name[255] = 'n';
	FAILS(setxattr("f", name, "1", 1, 0), ERANGE);
	FAILS(setxattr("f", "user.", "1", 1, 0), EINVAL);
	FAILS(setxattr("f", "nonsense", "1", 1, 0), EOPNOTSUPP);
}

static void follow_the_open_file(void)
{
	char found[8];
	int fd;

	needs_xattrs();
	fd = (int)OK(open("f", O_RDWR));
	(void)OK(fsetxattr(fd, "user.a", "abc", 3, 0));
	(void)OK(unlink("f"));
	SAME(fgetxattr(fd, "user.a", found, sizeof(found)), 3);
	(void)OK(fsetxattr(fd, "user.b", "x", 1, 0));
	probe_text("f", "");
	FAILS(getxattr("f", "user.a", found, sizeof(found)), ENODATA);
	(void)OK(close(fd));
}

static void values_have_limits(void)
{
	static char value[65537], found[65536];

	needs_xattrs();
	memset(value, 'v', sizeof(value));
	FAILS(setxattr("f", "user.a", value, sizeof(value), 0), E2BIG);
	SAME(listxattr("f", NULL, 0), 0);
	if (setxattr("f", "user.a", value, sizeof(value) - 1, 0) != 0) {
		TRUE(!probe_mounted() && (errno == ENOSPC || errno == E2BIG));
		return;
	}
	SAME(getxattr("f", "user.a", found, sizeof(found)), sizeof(found));
	SAME(memcmp(found, value, sizeof(found)), 0);
	FAILS(getxattr("f", "user.a", found, sizeof(found) - 1), ERANGE);
	(void)OK(setxattr("f", "user.a", "", 0, XATTR_REPLACE));
	SAME(getxattr("f", "user.a", found, sizeof(found)), 0);
}

static void many_on_one_file(void)
{
	enum { COUNT = 100 };
	char name[32], list[COUNT * 16];
	unsigned seen[COUNT] = {0};
	ssize_t size;

	needs_xattrs();
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(name, sizeof(name), "user.n%d", i);
		if (setxattr("f", name, name, strlen(name), XATTR_CREATE) != 0 && errno == ENOSPC &&
		    !probe_mounted())
			probe_skip("no room for many");
		SAME(errno == ENOSPC, false);
	}
	size = OK(listxattr("f", list, sizeof(list)));
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(list + at) + 1) {
		char value[32];

		if (strncmp(list + at, "user.n", 6) != 0)
			continue;
		seen[strtol(list + at + 6, NULL, 10)]++;
		SAME(getxattr("f", list + at, value, sizeof(value)), strlen(list + at));
		SAME(memcmp(value, list + at, strlen(list + at)), 0);
	}
	for (int i = 0; i < COUNT; i++)
		SAME(seen[i], 1);
}

static bool is_refused(long value)
{
	return value == -1 && (errno == EOPNOTSUPP || errno == EPERM || errno == ENODATA);
}

static void only_user_names(void)
{
	static const char *const others[] = {"trusted.a", "security.a", "system.a", "osx.a",
					     "user", "User.a"};
	char found[8];

	needs_xattrs();
	if (!probe_mounted())
		probe_skip("other names mean something elsewhere");
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		TRUE(is_refused(setxattr("f", others[i], "1", 1, 0)));
		TRUE(is_refused(getxattr("f", others[i], found, sizeof(found))));
		TRUE(is_refused(removexattr("f", others[i])));
	}
	SAME(listxattr("f", NULL, 0), 0);
}

static void set_as_another(void *arg)
{
	char found[8];

	(void)arg;
	FAILS(setxattr("f", "user.a", "2", 1, 0), EACCES);
	FAILS(removexattr("f", "user.a"), EACCES);
	SAME(getxattr("f", "user.a", found, sizeof(found)), 1);
	FAILS(getxattr("secret", "user.a", found, sizeof(found)), EACCES);
	FAILS(setxattr("sticky", "user.a", "2", 1, 0), EPERM);
	(void)OK(setxattr("open", "user.a", "2", 1, 0));
}

/* Reading needs read permission, changing write permission; in a sticky directory, ownership. */
static void permissions_apply(void)
{
	probe_needs_root();
	needs_xattrs();
	probe_text("secret", "x");
	probe_text("open", "x");
	(void)OK(mkdir("sticky", 0777));
	(void)OK(chmod("secret", 0600));
	(void)OK(chmod("open", 0666));
	(void)OK(chmod("sticky", 01777));
	(void)OK(setxattr("f", "user.a", "1", 1, 0));
	(void)OK(setxattr("secret", "user.a", "1", 1, 0));
	probe_as(4321, 4321, set_as_another, NULL);
}

static void read_decimal(const char *path, const char *name, unsigned long long *value)
{
	char found[32] = {0}, *end;

	TRUE(lgetxattr(path, name, found, sizeof(found) - 1) > 0);
	*value = strtoull(found, &end, 10);
	SAME(*end, '\0');
}

/* What primefs tells about a node: never listed, never set. */
static void virtual_ones(void)
{
	static const char *const names[] = {"user.primefs.prime", "user.primefs.code",
					    "user.primefs.path", "user.primefs.ancestors"};
	unsigned long long prime, code, outer;
	char path[PATH_MAX];
	ssize_t len;

	if (!probe_mounted())
		probe_skip("only on primefs");
	(void)OK(mkdir("d", 0755));
	probe_text("d/f", "x");
	read_decimal("d/f", "user.primefs.prime", &prime);
	SAME(prime, probe_stat("d/f").st_ino);
	read_decimal("d", "user.primefs.prime", &prime);
	SAME(prime, probe_stat("d").st_ino);
	read_decimal("d", "user.primefs.code", &code);
	SAME(code % prime, 0);
	SAME(code % 2, 0); /* the root's */
	read_decimal(".", "user.primefs.code", &outer);
	SAME(code, outer * prime);
	len = OK(getxattr("d/f", "user.primefs.path", path, sizeof(path)));
	TRUE(len > 4 && memcmp(path + len - 4, "/d/f", 4) == 0 && path[0] == '/');
	SAME(getxattr("d/f", "user.primefs.path", NULL, 0), len);
	FAILS(getxattr("d/f", "user.primefs.path", path, 3), ERANGE);
	SAME(listxattr("d/f", NULL, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		FAILS(setxattr("d/f", names[i], "3", 1, 0), EPERM);
		FAILS(setxattr("d/f", names[i], "3", 1, XATTR_CREATE), EPERM);
		FAILS(removexattr("d/f", names[i]), EPERM);
	}
}

static const struct probe probes[] = {
	PROBE(set_and_get),	      PROBE(create_and_replace), PROBE(lists_names),
	PROBE(directories_have_them), PROBE(others_have_none),	 PROBE(names_have_limits),
	PROBE(follow_the_open_file),
	PROBE(values_have_limits),
	PROBE(many_on_one_file),
	PROBE(only_user_names),
	PROBE(permissions_apply),
	PROBE(virtual_ones),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
