/* SPDX-License-Identifier: MIT */
#include "fs/mount/access.h"

#include "base/cleanup.h"
#include "base/clock.h"

/* A second request counts only within this time; an older entry belongs to a caller who gave up. */
#define AGAIN_NS (10000 * PFS_NS_PER_MS)

void pfs_access_init(struct pfs_access *access)
{
	(void)pthread_mutex_init(&access->lock, NULL);
}

void pfs_access_finish(struct pfs_access *access)
{
	(void)pthread_mutex_destroy(&access->lock);
}

static size_t bucket(uint64_t ino)
{
	return (ino >> 1) % PFS_ACCESS_BUCKETS;
}

void pfs_access_changed(struct pfs_access *access, uint64_t ino)
{
	atomic_store(&access->changed_ns[bucket(ino)], (int64_t)pfs_now_ns());
}

bool pfs_access_changed_within(const struct pfs_access *access, uint64_t ino, int64_t ms)
{
	int64_t changed = atomic_load(&access->changed_ns[bucket(ino)]);

	return changed && (int64_t)pfs_now_ns() - changed < ms * PFS_NS_PER_MS;
}

/* Decides by owner, group and mode alone. The caller's other groups are not known here, so a caller
 * outside the file's group is granted only what both the group's and the others' bits grant. */
static bool is_granted(const struct stat *attr, unsigned want, uid_t uid, gid_t gid)
{
	unsigned granted = attr->st_mode >> 6;

	if (uid != attr->st_uid) {
		granted = attr->st_mode >> 3;
		if (gid != attr->st_gid)
			granted &= attr->st_mode;
	}
	return (granted & want) == want;
}

/* Returns true if this process was told before to have the kernel decide again, and the rights have
 * not changed since. Else notes this request as the first. */
static bool is_second(struct pfs_access *access, pid_t pid, uint64_t ino)
{
	int64_t now = (int64_t)pfs_now_ns(),
		changed = atomic_load(&access->changed_ns[bucket(ino)]);
	unsigned i;
	PFS_LOCKED(&access->lock);

	for (i = 0; i < PFS_ACCESS_AGAIN; i++) {
		if (access->again[i].pid != pid || access->again[i].ino != ino)
			continue;
		access->again[i].pid = 0;
		if (now - access->again[i].told_ns < AGAIN_NS &&
		    access->again[i].changed_ns == changed)
			return true;
	}
	i = access->next++ % PFS_ACCESS_AGAIN;
	access->again[i].pid = pid;
	access->again[i].ino = ino;
	access->again[i].told_ns = now;
	access->again[i].changed_ns = changed;
	return false;
}

int pfs_access_confirm(struct pfs_access *access, const struct stat *attr, unsigned want, pid_t pid,
		       uid_t uid, gid_t gid)
{
	if (!pid || is_granted(attr, want, uid, gid) || is_second(access, pid, attr->st_ino))
		return 0;
	return -ESTALE;
}
