/* SPDX-License-Identifier: MIT */
#include "fs/mount/powers.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Returns -EPERM if a user other than root may change the file. Write permission that an ACL grants
 * to anybody shows in the group's bits. */
static int check(char *why, size_t size, const char *path)
{
	struct stat attr;
	int error = 0;

	if (lstat(path, &attr) != 0)
		error = -errno;
	else if (attr.st_uid != 0 || attr.st_mode & (S_IWGRP | S_IWOTH) || S_ISLNK(attr.st_mode))
		error = -EPERM;
	if (error == -EPERM)
		(void)snprintf(
			why, size,
			"%s: others than root own it or may write it, so its store gets no suid "
			"and dev; leave these out, or move the store",
			path);
	else if (error)
		(void)snprintf(why, size, "%s: %s", path, strerror(-error));
	return error;
}

/* Checks from the top down: once a directory is found safe, nobody can change the path below it
 * while the rest is checked. */
int pfs_powers_check(char *why, size_t size, const char *store)
{
	char path[PATH_MAX];

	PFS_TRY(check(why, size, "/"));
	for (const char *end = store; (end = strchr(end + 1, '/')) != NULL;) {
		if (snprintf(path, sizeof(path), "%.*s", (int)(end - store), store) >= PATH_MAX)
			return -ENAMETOOLONG;
		PFS_TRY(check(why, size, path));
	}
	return check(why, size, store);
}
