/* SPDX-License-Identifier: MIT */
/* fs/mount/query/shares.h - shares of a resource of which all users together may have `max`. A user
 * may take as many as he leaves free for the others, which is half if he is alone, so that no user
 * can take the last one.
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
	struct pfs_share *shares; /* one for each user who has any; protected by lock, as `used` */
	size_t n, capacity;
};

void pfs_shares_init(struct pfs_shares *shares, unsigned max);
void pfs_shares_finish(struct pfs_shares *shares);
/* Takes one for the user. Returns false if he has as many as he may, or there is no memory. */
bool pfs_shares_take(struct pfs_shares *shares, uid_t uid);
void pfs_shares_give(struct pfs_shares *shares, uid_t uid); /* gives one back */

#endif
