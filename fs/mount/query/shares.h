/* SPDX-License-Identifier: MIT */
/* fs/mount/query/shares.h - shares of something that there is a limited number of for all users
 * together. Each user may have as many as he leaves to the others, which is half if he is alone, so
 * that none can take the last.
 * Threads: any number. */
#ifndef PFS_FS_MOUNT_QUERY_SHARES_H
#define PFS_FS_MOUNT_QUERY_SHARES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pfs_shares {
	pthread_mutex_t lock;
	unsigned max, used;
	struct pfs_share *shares; /* protected by lock, as `used` is: of users who have any */
	size_t n, capacity;
};

void pfs_shares_init(struct pfs_shares *shares, unsigned max);
void pfs_shares_finish(struct pfs_shares *shares);
/* Takes one for the user. Returns false if he has his share, or there is no memory. */
bool pfs_shares_take(struct pfs_shares *shares, uid_t uid);
void pfs_shares_give(struct pfs_shares *shares, uid_t uid); /* gives one back */

#endif
