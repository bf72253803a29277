/* SPDX-License-Identifier: MIT */
#include "tools/client/holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool device_of(uint64_t *device, int folder, const char *name, int flags)
{
	struct statx attr;

	if (statx(folder, name, AT_STATX_DONT_SYNC | flags, 0, &attr) != 0)
		return false;
	*device = (uint64_t)attr.stx_dev_major << 32 | attr.stx_dev_minor;
	return true;
}

uint64_t pfs_holder_device(const char *mountpoint)
{
	uint64_t device;

	return device_of(&device, AT_FDCWD, mountpoint, AT_SYMLINK_NOFOLLOW) ? device : 0;
}

static bool lies_on(int folder, const char *name, uint64_t device)
{
	uint64_t found;

	return device_of(&found, folder, name, 0) && found == device;
}

static bool has_open(int process, uint64_t device)
{
	int folder = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir PFS_CLOSEDIR = folder < 0 ? NULL : fdopendir(folder);
	struct dirent *entry;

	if (folder >= 0 && !dir)
		(void)close(folder);
	while (dir && (entry = readdir(dir)) != NULL)
		if (*entry->d_name != '.' && lies_on(folder, entry->d_name, device))
			return true;
	return false;
}

/* Returns true if the device is mounted in the process's mount namespace: a line of mountinfo
 * begins "36 35 98:0 ". */
static bool has_mounted(int process, uint64_t device)
{
	int fd = openat(process, "mountinfo", O_RDONLY | O_CLOEXEC);
	FILE *file PFS_FCLOSE = fd < 0 ? NULL : fdopen(fd, "r");
	char *line PFS_FREE = NULL;
	size_t size = 0;
	unsigned major_id, minor_id;

	if (fd >= 0 && !file)
		(void)close(fd);
	while (file && getline(&line, &size, file) > 0)
		/* NOLINTNEXTLINE(cert-err34-c): the kernel writes these numbers */
		if (sscanf(line, "%*d %*d %u:%u ", &major_id, &minor_id) == 2 &&
		    ((uint64_t)major_id << 32 | minor_id) == device)
			return true;
	return false;
}

static const char *what_keeps(int process, uint64_t device, bool by_namespace)
{
	if (has_open(process, device))
		return "has a file open in it";
	if (lies_on(process, "cwd", device) || lies_on(process, "root", device))
		return "works in it";
	if (lies_on(process, "exe", device))
		return "runs from it";
	return by_namespace && has_mounted(process, device)
		       ? "is in a mount namespace where it is still mounted"
		       : NULL;
}

static void read_name(char *out, size_t size, int process)
{
	int fd PFS_CLOSE = openat(process, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);

	out[n > 0 ? n - 1 : 0] = '\0'; /* without the newline at its end */
}

/* Files first: a namespace goes with its processes, and says less. */
static bool find(char *out, size_t size, uint64_t device, bool by_namespace)
{
	DIR *dir PFS_CLOSEDIR = opendir("/proc");
	struct dirent *entry;

	while (device && dir && (entry = readdir(dir)) != NULL) {
		int process PFS_CLOSE = -1;
		const char *what;
		char name[32];

		if (*entry->d_name < '1' || *entry->d_name > '9')
			continue;
		process = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		what = process < 0 ? NULL : what_keeps(process, device, by_namespace);
		if (!what)
			continue;
		read_name(name, sizeof(name), process);
		(void)snprintf(out, size, "process %s (%s) %s", entry->d_name, name, what);
		return true;
	}
	return false;
}

bool pfs_holder_find(char *out, size_t size, uint64_t device, bool here)
{
	return find(out, size, device, false) || (!here && find(out, size, device, true));
}
