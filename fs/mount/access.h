/* SPDX-License-Identifier: MIT */
/* fs/mount/access.h - checks opens of files whose rights changed without the kernel's knowledge.
 *
 * The kernel decides on access itself, by attributes that it asks for at the open. But it throws a
 * reply away if another reply or a notice (notify.h) overtook it, and then decides by the rights
 * that an original had before. If it grants too much, this is found out here when the open arrives:
 * ESTALE makes it look up the path and decide once more, and the program does not notice. If it
 * refuses too much, the daemon never sees the request; the program's next try succeeds.
 * Threads: any number. */
#ifndef PFS_FS_MOUNT_ACCESS_H
#define PFS_FS_MOUNT_ACCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PFS_ACCESS_BUCKETS 4096
#define PFS_ACCESS_AGAIN   256

struct pfs_access {
	/* When an inode's rights last changed. Several inodes may share an entry. */
	_Atomic int64_t changed_ns[PFS_ACCESS_BUCKETS];
	pthread_mutex_t lock;
	struct { /* opens for which the kernel was told to decide again; protected by lock */
		pid_t pid;
		uint64_t ino;
		int64_t told_ns, changed_ns; /* when it was told; when the rights had changed */
	} again[PFS_ACCESS_AGAIN];
	unsigned next; /* protected by lock */
};

void pfs_access_init(struct pfs_access *access);
void pfs_access_finish(struct pfs_access *access);

/* Says that the rights to ino are about to change; to be called before anybody can see the new
 * ones. */
void pfs_access_changed(struct pfs_access *access, uint64_t ino);

/* Returns true if the rights to ino changed in the last ms milliseconds. */
bool pfs_access_changed_within(const struct pfs_access *access, uint64_t ino, int64_t ms);

/* Returns true if the kernel may have granted something on rights that are no longer so. */
#define PFS_ACCESS_DOUBT_MS 60000
static inline bool pfs_access_is_doubtful(const struct pfs_access *access, uint64_t ino)
{
	return pfs_access_changed_within(access, ino, PFS_ACCESS_DOUBT_MS);
}

/* For an inode that is doubtful. Returns 0 if its attributes grant what the kernel granted, or if
 * the kernel has decided again already; -ESTALE: the kernel must decide again. want: R_OK, W_OK,
 * X_OK. pid 0: the process is in another pid namespace, and the kernel's decision stands. */
int pfs_access_confirm(struct pfs_access *access, const struct stat *attr, unsigned want, pid_t pid,
		       uid_t uid, gid_t gid);

#endif
