/* SPDX-License-Identifier: MIT */
#include "fs/journal/part.h"

#include "fs/image/image.h"
#include "fs/journal/journal_impl.h"
#include "fs/tree/tree_impl.h"

void pfs_take_part(struct pfs_tree *tree, const struct pfs_part *part)
{
	struct pfs_journal_parts *parts = &tree->journal->parts;

	PFS_VERIFY_CHECK(parts->n < PFS_PARTS_MAX);
	parts->list[parts->n++] = part;
	parts->flags |= part->flags;
}

/* ---- the content lock ---- */

void pfs_parts_lock(struct pfs_tree *tree)
{
	(void)pthread_mutex_lock(&tree->journal->parts.lock);
}

void pfs_parts_unlock(struct pfs_tree *tree)
{
	struct pfs_journal_parts *parts = &tree->journal->parts;
	int64_t bytes = parts->unreported;

	parts->unreported = 0;
	if (bytes)
		pfs_journal_pending(tree, bytes);
	(void)pthread_mutex_unlock(&parts->lock);
}

void pfs_parts_wait(struct pfs_tree *tree, pthread_cond_t *condition)
{
	(void)pthread_cond_wait(condition, &tree->journal->parts.lock);
}

int64_t *pfs_parts_unreported(struct pfs_tree *tree)
{
	return &tree->journal->parts.unreported;
}

/* ---- nodes that go ---- */

bool pfs_parts_must_keep(const struct pfs_tree *tree, uint32_t slot)
{
	return tree->image.flags[slot] & tree->journal->parts.flags;
}

int pfs_parts_keep(struct pfs_tree *tree, uint64_t ino, uint64_t *former)
{
	const struct pfs_journal_parts *parts = &tree->journal->parts;
	unsigned flags = 0;
	uint32_t slot;

	*former = 0;
	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT)
		flags = tree->image.flags[slot];
	pfs_hold_end(tree);
	for (unsigned i = 0; i < parts->n; i++)
		if (parts->list[i]->flags & flags)
			PFS_TRY(parts->list[i]->keep(tree, ino, former));
	*former = pfs_journal_former(tree, *former);
	return 0;
}

void pfs_parts_drop(struct pfs_tree *tree, uint64_t ino)
{
	const struct pfs_journal_parts *parts = &tree->journal->parts;

	for (unsigned i = 0; i < parts->n; i++)
		if (parts->list[i]->drop)
			parts->list[i]->drop(tree, ino);
}

/* ---- a group ---- */

void pfs_parts_cut(struct pfs_tree *tree)
{
	const struct pfs_journal_parts *parts = &tree->journal->parts;

	for (unsigned i = 0; i < parts->n; i++)
		if (parts->list[i]->cut)
			parts->list[i]->cut(tree);
}

bool pfs_parts_cut_some(struct pfs_tree *tree, unsigned n)
{
	const struct pfs_journal_parts *parts = &tree->journal->parts;

	for (unsigned i = 0; i < parts->n; i++)
		if (parts->list[i]->cut_some && parts->list[i]->cut_some(tree, n))
			return true;
	return false;
}

int pfs_parts_write(struct pfs_tree *tree)
{
	const struct pfs_journal_parts *parts = &tree->journal->parts;

	for (unsigned i = 0; i < parts->n; i++)
		if (parts->list[i]->write)
			PFS_TRY(parts->list[i]->write(tree));
	return 0;
}

void pfs_parts_done(struct pfs_tree *tree)
{
	const struct pfs_journal_parts *parts = &tree->journal->parts;

	for (unsigned i = 0; i < parts->n; i++)
		if (parts->list[i]->done)
			parts->list[i]->done(tree);
}
