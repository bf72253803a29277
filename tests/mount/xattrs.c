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

static const struct probe probes[] = {
	PROBE(set_and_get),	      PROBE(create_and_replace), PROBE(lists_names),
	PROBE(directories_have_them), PROBE(others_have_none),	 PROBE(names_have_limits),
	PROBE(follow_the_open_file),
};

int main(int argc, char **argv)
{
	return probe_main(argc, argv, probes, ARRAY_SIZE(probes));
}
