/* SPDX-License-Identifier: MIT */
#include "fs/content/follow.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/attr/xattr.h"
#include "fs/content/content_impl.h"
#include "fs/content/hardlink.h"
#include "fs/content/original.h"
#include "fs/image/image.h"
#include "fs/image/primes.h"
#include "fs/journal/journal.h"
#include "fs/tree/listen.h"
#include "fs/tree/tree_impl.h"

#define RIGHTS (PFS_SET_MODE | PFS_SET_UID | PFS_SET_GID)

int pfs_follow_allowed(const struct pfs_tree *tree)
{
	return pfs_links_refused(tree) ? -EPERM : 0;
}

bool pfs_follow_root(const struct pfs_tree *tree, struct pfs_original_root *out, size_t i)
{
	const struct pfs_originals *originals = pfs_links_originals(tree);

	if (i >= pfs_originals_roots(originals))
		return false;
	pfs_originals_root(originals, out, i);
	return true;
}

int pfs_follow_find_root(struct pfs_tree *tree, struct pfs_original_root *root)
{
	const uint32_t id = root->id;
	struct pfs_source_root record;
	char path[PATH_MAX];

	PFS_TRY(pfs_follow_root_record(tree, &record, path, id));
	PFS_TRY(pfs_originals_find_root(pfs_links_originals(tree), id, path));
	for (size_t i = 0; pfs_follow_root(tree, root, i); i++)
		if (root->id == id)
			return 0;
	return -ENOENT;
}

void pfs_follow_set_followed(struct pfs_tree *tree, uint32_t id)
{
	pfs_originals_set_followed(pfs_links_originals(tree), id);
}

/* ---- taking over ---- */

static void take_rights(struct pfs_tree *tree, uint32_t slot, const struct pfs_taking *taking)
{
	const struct pfs_image *image = &tree->image;
	const struct stat *attr = taking->attr;
	uid_t uid = taking->set & PFS_SET_UID ? attr->st_uid : image->uid[slot];
	gid_t gid = taking->set & PFS_SET_GID ? attr->st_gid : image->gid[slot];

	if (taking->set & PFS_SET_MODE)
		pfs_image_set_mode(tree, slot, attr->st_mode);
	if (uid != image->uid[slot] || gid != image->gid[slot])
		pfs_image_set_owner(tree, slot, uid, gid);
}

/* Both locks are held. -ENOMEM: there is no memory for a time that is far from the present. */
static int take_columns(struct pfs_tree *tree, uint32_t slot, const struct pfs_taking *taking)
{
	const struct stat *attr = taking->attr;
	const struct pfs_times times = {pfs_time_of(attr->st_atim), pfs_time_of(attr->st_mtim),
					pfs_time_of(attr->st_ctim)};
	const unsigned columns = (taking->set & PFS_SET_ATIME ? PFS_COLUMN_ATIME : 0) |
				 (taking->set & PFS_SET_MTIME ? PFS_COLUMN_MTIME : 0) |
				 (taking->set & PFS_SET_CTIME ? PFS_COLUMN_CTIME : 0);

	take_rights(tree, slot, taking);
	if (taking->set & PFS_SET_SIZE)
		pfs_image_set_size(tree, slot, attr->st_size, attr->st_blocks);
	return pfs_image_set_times(tree, slot, columns, &times);
}

/* Sets *cached to true if the kernel keeps the node's attributes or listing. Both locks are held.
 */
static int take_locked(struct pfs_tree *tree, uint64_t ino, const struct pfs_taking *taking,
		       struct pfs_value **value, bool *cached)
{
	struct pfs_records *sources = pfs_links_sources(tree);
	uint32_t slot = pfs_image_slot(tree, ino);
	struct pfs_record *record;

	if (slot == PFS_NO_SLOT || tree->image.state[slot] & PFS_SLOT_UNLINKED)
		return -ESTALE;
	record = *value ? pfs_records_entry(sources, ino) : NULL;
	if (*value && !record)
		return -ENOMEM;
	*cached = !(tree->image.flags[slot] & PFS_NODE_LINKED);
	PFS_TRY(take_columns(tree, slot, taking));
	if (record)
		pfs_records_set(sources, record, PFS_TAKE(*value), true);
	pfs_image_set_flags(tree, slot, taking->flags_cleared, taking->flags_set);
	if (taking->another)
		pfs_hard_link_leave(tree, slot);
	pfs_journal_touch(tree, slot);
	return 0;
}

int pfs_follow_take(struct pfs_tree *tree, uint64_t ino, const struct pfs_taking *taking)
{
	struct pfs_value *value PFS_UNREF = NULL;
	bool cached = false;
	int error;

	if (taking->record) {
		value = pfs_links_value(taking->record);
		if (!value)
			return -ENOMEM;
	}
	PFS_TRY(pfs_journal_reserve(tree, 1, value ? value->size : 0, false));
	if (taking->set & RIGHTS)
		pfs_tell_rights_change(tree, ino);
	pfs_parts_lock(tree);
	pfs_hold_write(tree, __func__);
	error = take_locked(tree, ino, taking, &value, &cached);
	pfs_hold_end(tree);
	pfs_parts_unlock(tree);
	if (error)
		return error;
	pfs_links_forget(tree, ino);
	if (cached)
		pfs_tell_stale(tree, ino);
	else
		pfs_tell_changed(tree, ino, NULL);
	return 0;
}

void pfs_follow_tell(struct pfs_tree *tree, uint64_t parent, const char *name)
{
	pfs_tell_changed(tree, parent, name);
}

int pfs_follow_former(struct pfs_tree *tree, uint64_t *bytes, uint64_t ino)
{
	struct pfs_value *set PFS_UNREF = NULL;
	int error = pfs_journal_former(tree, 1) ? pfs_attr_set_of(tree, &set, ino) : 0;

	*bytes += set ? set->size : 0;
	return error == -ESTALE ? 0 : error;
}

void pfs_follow_hold(struct pfs_tree *tree)
{
	pfs_journal_hold(tree);
}

int pfs_follow_hold_for(struct pfs_tree *tree, uint64_t *lacking,
			const struct pfs_journal_need *need)
{
	struct pfs_journal_need all = *need;

	all.bytes += pfs_journal_former(tree, PFS_ATTR_VALUE_MAX); /* the largest attribute */
	return pfs_journal_hold_for(tree, lacking, &all);
}

void pfs_follow_let_go(struct pfs_tree *tree)
{
	pfs_journal_let_go(tree);
}

int pfs_follow_fetch(struct pfs_tree *tree, bool directories, bool others)
{
	if (directories)
		pfs_primes_want(tree, PFS_PRIME_DIRECTORY);
	if (others)
		pfs_primes_want(tree, PFS_PRIME_OTHER);
	if (!directories && !others)
		return 0;
	return pfs_journal_fetch_primes(tree);
}

/* ---- what is known of the sources ---- */

void pfs_follow_set_how(struct pfs_tree *tree, const char *how)
{
	struct pfs_follow_known *known = pfs_links_follow_known(tree);
	PFS_LOCKED(&known->lock);

	(void)snprintf(known->state.how, sizeof(known->state.how), "%s", how);
}

void pfs_follow_set_unread(struct pfs_tree *tree, const char *lines)
{
	struct pfs_follow_known *known = pfs_links_follow_known(tree);
	PFS_LOCKED(&known->lock);

	(void)snprintf(known->state.unread, sizeof(known->state.unread), "%s", lines);
}

void pfs_follow_get_state(const struct pfs_tree *tree, struct pfs_follow_state *out)
{
	struct pfs_follow_known *known = pfs_links_follow_known(tree);
	PFS_LOCKED(&known->lock);

	*out = known->state;
}

/* ---- the end ---- */

int pfs_follow_end(struct pfs_tree *tree)
{
	const struct pfs_tree_listener *listener = pfs_listener_get(tree);

	if (listener->end)
		listener->end(listener->arg);
	pfs_listener_put(tree);
	PFS_TRY(pfs_tree_sync(tree));
	pfs_links_forget_ways(tree);
	return 0;
}
