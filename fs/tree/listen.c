/* SPDX-License-Identifier: MIT */
#include "fs/tree/listen.h"

#include "fs/tree/tree_impl.h"

void pfs_listener_create(struct pfs_tree *tree)
{
	pthread_rwlockattr_t attr;

	(void)pthread_rwlockattr_init(&attr);
	/* Who listens anew waits for those who tell, not for all who come after them. */
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&tree->listener_lock, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
}

void pfs_listener_destroy(struct pfs_tree *tree)
{
	(void)pthread_rwlock_destroy(&tree->listener_lock);
}

void pfs_tree_listen(struct pfs_tree *tree, const struct pfs_tree_listener *listener)
{
	(void)pthread_rwlock_wrlock(&tree->listener_lock);
	tree->listener = *listener;
	(void)pthread_rwlock_unlock(&tree->listener_lock);
}

const struct pfs_tree_listener *pfs_listener_get(struct pfs_tree *tree)
{
	(void)pthread_rwlock_rdlock(&tree->listener_lock);
	return &tree->listener;
}

void pfs_listener_put(struct pfs_tree *tree)
{
	(void)pthread_rwlock_unlock(&tree->listener_lock);
}

void pfs_tell_changed(struct pfs_tree *tree, uint64_t ino, const char *name)
{
	const struct pfs_tree_listener *listener = pfs_listener_get(tree);

	if (listener->changed)
		listener->changed(listener->arg, ino, name);
	pfs_listener_put(tree);
}

void pfs_tell_stale(struct pfs_tree *tree, uint64_t ino)
{
	const struct pfs_tree_listener *listener = pfs_listener_get(tree);

	if (listener->stale)
		listener->stale(listener->arg, ino);
	pfs_listener_put(tree);
}

void pfs_tell_rights_change(struct pfs_tree *tree, uint64_t ino)
{
	const struct pfs_tree_listener *listener = pfs_listener_get(tree);

	if (listener->rights_change)
		listener->rights_change(listener->arg, ino);
	pfs_listener_put(tree);
}
