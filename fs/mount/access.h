/* SPDX-License-Identifier: MIT */
/* fs/mount/access.h - access to what changes behind the kernel's back.
 *
 * The kernel decides who may open what, on attributes that it asks for at that moment. But it
 * throws a reply away that another has overtaken: somebody else's, or a notice (notify.h). Then it
 * decides on rights that an original had before. What it grants so is found out here, when the open
 * arrives: ESTALE makes it look up the path and decide once more, unseen by who opens. What it
 * refuses so is not shown to us; the next try succeeds.
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
	/* When an inode's rights last changed; others may share it. */
	_Atomic int64_t changed_ns[PFS_ACCESS_BUCKETS];
	pthread_mutex_t lock;
	struct { /* who was told to decide again; protected by lock */
		pid_t pid;
		uint64_t ino;
		int64_t told_ns, changed_ns; /* and when its rights had changed */
	} again[PFS_ACCESS_AGAIN];
	unsigned next; /* protected by lock */
};

void pfs_access_init(struct pfs_access *access);
void pfs_access_finish(struct pfs_access *access);

/* Says that the rights to ino are about to change; to be called before anybody can see the new
 * ones. */
void pfs_access_changed(struct pfs_access *access, uint64_t ino);

/* Returns true if they changed in the last ms milliseconds. */
bool pfs_access_changed_within(const struct pfs_access *access, uint64_t ino, int64_t ms);

/* Returns true if the kernel may have granted something on rights that are no longer so. */
#define PFS_ACCESS_DOUBT_MS 60000
static inline bool pfs_access_is_doubtful(const struct pfs_access *access, uint64_t ino)
{
	return pfs_access_changed_within(access, ino, PFS_ACCESS_DOUBT_MS);
}

/* Returns 0 if these attributes, of something doubtful, grant what the kernel granted, or if it has
 * decided again; -ESTALE: it must decide again. want: R_OK, W_OK, X_OK. pid 0: the process is in no
 * namespace of ours, and the kernel's word stands. */
int pfs_access_confirm(struct pfs_access *access, const struct stat *attr, unsigned want, pid_t pid,
		       uid_t uid, gid_t gid);

#endif
