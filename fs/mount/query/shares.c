/* SPDX-License-Identifier: MIT */
#include "fs/mount/query/shares.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

struct pfs_share {
	uid_t uid;
	unsigned n; /* 0: nobody's, so that the next user gets it */
};

void pfs_shares_init(struct pfs_shares *shares, unsigned max)
{
	*shares = (struct pfs_shares){.max = max};
	(void)pthread_mutex_init(&shares->lock, NULL);
}

void pfs_shares_finish(struct pfs_shares *shares)
{
	(void)pthread_mutex_destroy(&shares->lock);
	free(shares->shares);
}

/* Returns the user's share, or a free one for him; NULL: there is no memory. */
static struct pfs_share *find(struct pfs_shares *shares, uid_t uid)
{
	struct pfs_share *share = NULL;

	for (size_t i = 0; i < shares->n; i++) {
		if (shares->shares[i].n && shares->shares[i].uid == uid)
			return &shares->shares[i];
		if (!shares->shares[i].n)
			share = &shares->shares[i];
	}
	if (!share) {
		if (pfs_grow(&shares->shares, &shares->capacity, shares->n + 1, sizeof(*share)))
			return NULL;
		share = &shares->shares[shares->n++];
	}
	*share = (struct pfs_share){.uid = uid};
	return share;
}

bool pfs_shares_take(struct pfs_shares *shares, uid_t uid)
{
	struct pfs_share *share;
	PFS_LOCKED(&shares->lock);

	share = find(shares, uid);
	if (!share || share->n >= shares->max - shares->used)
		return false;
	share->n++;
	shares->used++;
	return true;
}

void pfs_shares_give(struct pfs_shares *shares, uid_t uid)
{
	struct pfs_share *share;
	PFS_LOCKED(&shares->lock);

	share = find(shares, uid); /* it exists, since the user has some */
	if (share && share->n) {
		share->n--;
		shares->used--;
	}
}
