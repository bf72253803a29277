/* SPDX-License-Identifier: MIT */
#include "fs/content/follow.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/dir.h"
#include "fs/tree/tree_impl.h"

#define LISTED_AT_ONCE	4096u /* children copied in one hold of the tree's lock */
#define FETCHED_AT_ONCE 16u

static void show_node(const struct pfs_tree *tree, struct pfs_follower *out, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;

	*out = (struct pfs_follower){
		.ino = image->prime[slot],
		.flags = image->flags[slot],
		.attr = {.st_mode = image->mode[slot],
			 .st_nlink = image->links[slot],
			 .st_uid = image->uid[slot],
			 .st_gid = image->gid[slot],
			 .st_size = image->size[slot],
			 .st_mtim = pfs_timespec_of(pfs_image_time(tree, image->mtime, slot)),
			 .st_ctim = pfs_timespec_of(pfs_image_time(tree, image->ctime, slot))},
	};
}

static int take_name(const struct pfs_tree *tree, struct pfs_followers *out, uint32_t slot,
		     size_t *len)
{
	const char *name = pfs_names_get(tree->image.names, tree->image.name[slot], len);

	PFS_TRY(pfs_grow(&out->names, &out->names_capacity, out->names_len + *len + 1, 1));
	memcpy(out->names + out->names_len, name, *len);
	out->names[out->names_len + *len] = 0;
	out->names_len += *len + 1;
	return 0;
}

static int list_child(const struct pfs_tree *tree, struct pfs_followers *out, uint32_t slot)
{
	struct pfs_follower *child;
	size_t name = out->names_len, len;

	PFS_TRY(pfs_grow(&out->list, &out->capacity, out->n + 1, sizeof(*out->list)));
	PFS_TRY(take_name(tree, out, slot, &len));
	child = &out->list[out->n++];
	show_node(tree, child, slot);
	child->name = name;
	child->name_len = len;
	return 0;
}

static int list_subdirectory(const struct pfs_tree *tree, struct pfs_followers *out, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;
	size_t name = out->names_len, len;

	PFS_TRY(pfs_grow(&out->directories, &out->capacity, out->n + 1, sizeof(*out->directories)));
	PFS_TRY(take_name(tree, out, slot, &len));
	out->directories[out->n++] = (struct pfs_subdirectory){
		.ino = image->prime[slot],
		.slot = slot,
		.name = (uint32_t)name,
		.mtime = image->mtime[slot],
		.ctime = image->ctime[slot],
		.settled = image->flags[slot] & PFS_NODE_SETTLED,
		.mounted = image->flags[slot] & PFS_NODE_MOUNT,
		.has_subdirectories = image->links[slot] != 2,
	};
	return 0;
}

/* A listing of children that lets go of the tree's lock from time to time. */
struct listing {
	struct pfs_tree *tree;
	uint64_t ino;
	uint32_t slot; /* where the directory was last found, or PFS_NO_SLOT */
	bool directories_alone;
	int (*list)(const struct pfs_tree *tree, struct pfs_followers *to, uint32_t slot);
	struct pfs_followers *to;
	/* where the listing goes on, at the earliest; key 0: at the beginning */
	struct pfs_btree_entry next;
};

static int find_directory(struct listing *listing)
{
	const struct pfs_image *image = &listing->tree->image;
	uint32_t slot = listing->slot;

	if (slot < image->end && image->prime[slot] == listing->ino && S_ISDIR(image->mode[slot]))
		return 0;
	return pfs_dir_slot(listing->tree, &listing->slot, listing->ino);
}

/* Children's slots lie anywhere, so their cache lines are fetched together. */
static void fetch(const struct pfs_image *image, uint32_t slot)
{
	__builtin_prefetch(&image->prime[slot]);
	__builtin_prefetch(&image->name[slot]);
	__builtin_prefetch(&image->flags[slot]);
	__builtin_prefetch(&image->links[slot]);
	__builtin_prefetch(&image->mtime[slot]);
	__builtin_prefetch(&image->ctime[slot]);
}

/* Gets the slots of the next *n children to be listed, out of the *left that the hold may still
 * look at. */
static void next_slots(struct listing *listing, struct pfs_children *children,
		       uint32_t slots[FETCHED_AT_ONCE], unsigned *n, unsigned *left)
{
	const struct pfs_image *image = &listing->tree->image;

	for (*n = 0; *n < FETCHED_AT_ONCE && *left && pfs_children_next(children, &listing->next);
	     --*left) {
		uint32_t slot = listing->next.slot;

		if (listing->directories_alone && !S_ISDIR(image->mode[slot]))
			continue;
		fetch(image, slot);
		slots[(*n)++] = slot;
	}
}

/* Lists some of the children. *more: there may be others behind `next`. */
static int list_some(struct listing *listing, bool *more)
{
	struct pfs_tree *tree = listing->tree;
	struct pfs_btree_entry *next = &listing->next;
	struct pfs_children children;
	uint32_t slots[FETCHED_AT_ONCE];
	unsigned n = FETCHED_AT_ONCE, left = LISTED_AT_ONCE;
	int error;

	pfs_hold_read(tree, __func__);
	error = find_directory(listing);
	if (!error && !next->key)
		*next = (struct pfs_btree_entry){.key = pfs_image_key(listing->slot, 0)};
	if (!error)
		pfs_children_begin(&children, tree, listing->slot,
				   (uint32_t)(next->key - pfs_image_key(listing->slot, 0)),
				   next->slot);
	while (!error && n == FETCHED_AT_ONCE) {
		next_slots(listing, &children, slots, &n, &left);
		for (unsigned i = 0; i < n && !error; i++)
			error = listing->list(tree, listing->to, slots[i]);
	}
	pfs_hold_end(tree);
	*more = !left;
	next->slot++;
	return error;
}

static int list_all(struct listing *listing)
{
	bool more = true;

	while (more)
		PFS_TRY(list_some(listing, &more));
	return 0;
}

int pfs_follow_list(struct pfs_tree *tree, struct pfs_followers *out, uint64_t ino,
		    bool directories_alone)
{
	out->n = out->names_len = 0;
	return list_all(
		&(struct listing){tree, ino, PFS_NO_SLOT, directories_alone, list_child, out, {0}});
}

int pfs_follow_subdirectories(struct pfs_tree *tree, struct pfs_followers *out, uint64_t ino,
			      uint32_t slot)
{
	out->n = out->names_len = 0;
	return list_all(&(struct listing){tree, ino, slot, true, list_subdirectory, out, {0}});
}

void pfs_followers_finish(struct pfs_followers *followers)
{
	free(followers->list);
	free(followers->names);
	*followers = (struct pfs_followers){.n = 0};
}

int pfs_follow_node(struct pfs_tree *tree, struct pfs_follower *out, uint64_t ino)
{
	uint32_t slot;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT)
		show_node(tree, out, slot);
	pfs_hold_end(tree);
	return slot == PFS_NO_SLOT ? -ESTALE : 0;
}

int pfs_follow_child(struct pfs_tree *tree, uint64_t *ino, uint64_t parent, const char *name)
{
	uint32_t slot = PFS_NO_SLOT, child = PFS_NO_SLOT;
	int error;

	pfs_hold_read(tree, __func__);
	error = pfs_dir_slot(tree, &slot, parent);
	if (!error)
		child = pfs_image_child(tree, slot, name, strlen(name));
	if (child != PFS_NO_SLOT)
		*ino = tree->image.prime[child];
	pfs_hold_end(tree);
	return error ? error : child == PFS_NO_SLOT ? -ENOENT : 0;
}

uint64_t pfs_follow_parent(struct pfs_tree *tree, uint64_t ino)
{
	uint64_t parent = 0;
	uint32_t slot;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT)
		slot = tree->image.parent[slot];
	if (slot != PFS_NO_SLOT)
		parent = tree->image.prime[slot];
	pfs_hold_end(tree);
	return parent;
}

uint64_t pfs_follow_epoch(struct pfs_tree *tree)
{
	uint64_t epoch;

	pfs_hold_read(tree, __func__);
	epoch = tree->image.epoch;
	pfs_hold_end(tree);
	return epoch;
}

static bool is_alike(const struct pfs_tree *tree, uint32_t slot, const struct stat *of)
{
	struct pfs_time ctime, mtime;

	if (tree->image.size[slot] != of->st_size)
		return false;
	ctime = pfs_image_time(tree, tree->image.ctime, slot);
	mtime = pfs_image_time(tree, tree->image.mtime, slot);
	return pfs_is_time(ctime, of->st_ctim) && pfs_is_time(mtime, of->st_mtim);
}

/* Returns the directory of a file that is like one of these, or 0. The tree's lock is held. */
static uint64_t match_alike(const struct pfs_tree *tree, uint32_t slot, const struct stat *of,
			    size_t n)
{
	const struct pfs_image *image = &tree->image;
	size_t i = 0;

	if (!image->prime[slot] || image->state[slot] & PFS_SLOT_UNLINKED ||
	    !S_ISREG(image->mode[slot]) || image->parent[slot] == PFS_NO_SLOT)
		return 0;
	while (i < n && !is_alike(tree, slot, &of[i]))
		i++;
	return i < n ? image->prime[image->parent[slot]] : 0;
}

void pfs_follow_alike(struct pfs_tree *tree, const struct stat *of, size_t n,
		      void (*fn)(void *arg, uint64_t directory), void *arg)
{
	uint64_t last = 0;

	for (uint32_t slot = 0, end = 1; slot < end;) {
		uint64_t directory = 0;
		uint32_t stop;

		pfs_hold_read(tree, __func__);
		end = tree->image.end;
		stop = PFS_MIN(end, slot + LISTED_AT_ONCE);
		while (slot < stop && (!directory || directory == last))
			directory = match_alike(tree, slot++, of, n);
		pfs_hold_end(tree);
		if (directory && directory != last)
			fn(arg, directory);
		last = directory ? directory : last;
	}
}
