/* SPDX-License-Identifier: MIT */
/* tests/vfs/foldersync.c - linked with --wrap=fsync: the store syncs its folder itself, past
 * SQLite, and a recording has to know. */
#include <sys/stat.h>

#include "tests/vfs/faultvfs.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
	struct stat st;
	int result = __real_fsync(fd);

	if (!result && !fstat(fd, &st) && S_ISDIR(st.st_mode))
		fault_folder_synced();
	return result;
}
/* NOLINTEND(bugprone-reserved-identifier) */
