/* SPDX-License-Identifier: MIT */
/* Makes the store's tree what the newer one is. */
#include "tools/newer/from.h"

#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/change/change.h"
#include "fs/content/follow.h"
#include "tools/newer/from_impl.h"

#define AT_ONCE 1000 /* nodes whose values are taken over in one group */

static struct pfs_caller caller(void)
{
	return (struct pfs_caller){.uid = geteuid(), .gid = getegid()};
}

static int change(struct pfs_from_lists *from, struct pfs_change_set *set)
{
	const struct pfs_caller who = caller();
	char why[512];
	const struct pfs_change_basis basis = {.epoch = pfs_follow_epoch(from->options.tree)};

	return set->n ? pfs_tree_change(from->options.tree, set, &basis, &who, why, sizeof(why))
		      : 0;
}

static bool is_gone(const struct pfs_from_node *node)
{
	return node->other == PFS_FROM_NONE && !node->stays;
}

/* ---- places ---- */

/* Gives nodes that will be removed other names, so that their names are free. Only the top ones of
 * removed subtrees need that. */
static int clear_names(struct pfs_from_lists *from)
{
	struct pfs_change_set set = {.kind = PFS_CHANGE_UPDATE};
	int error = 0;

	for (size_t i = 1; i < from->old.n && !error; i++) {
		const struct pfs_from_node *node = &from->old.nodes[i],
					   *above = &from->old.nodes[node->parent];
		char name[PFS_NAME_MAX + 1];

		if (!is_gone(node) || is_gone(above))
			continue;
		pfs_change_name_aside(name, pfs_from_name(node->path), node->ino);
		error = pfs_change_set_move(&set, node->ino, above->ino, name);
	}
	if (!error)
		error = change(from, &set);
	pfs_change_set_finish(&set);
	return error;
}

static uint64_t parent_of(const struct pfs_from_lists *from, const struct pfs_from_node *node)
{
	return from->newer.nodes[node->parent].place;
}

static int made(struct pfs_from_lists *from, struct pfs_from_node *node,
		const struct pfs_entry *entry)
{
	node->place = entry->attr.st_ino;
	node->changes = true;
	pfs_tree_forget(from->options.tree, node->place, 1);
	return 0;
}

/* Makes a directory. If a node that will move away still has its name, the directory gets another
 * one, and its move to the right name is added to `set`. */
static int make_directory(struct pfs_from_lists *from, struct pfs_change_set *set,
			  struct pfs_from_node *node)
{
	const char *name = pfs_from_name(node->path);
	const struct pfs_caller who = caller();
	uint64_t parent = parent_of(from, node);
	char other[PFS_NAME_MAX + 1];
	struct pfs_entry entry;
	int error =
		pfs_tree_make(from->options.tree, &entry, parent, name, S_IFDIR | 0700, 0, &who);

	if (error != -EEXIST)
		return error ? error : made(from, node, &entry);
	pfs_change_name_aside(other, name, node->ino);
	PFS_TRY(pfs_tree_make(from->options.tree, &entry, parent, other, S_IFDIR | 0700, 0, &who));
	PFS_TRY(made(from, node, &entry));
	return pfs_change_set_move(set, node->place, parent, name);
}

static int place_all(struct pfs_from_lists *from)
{
	struct pfs_change_set set = {.kind = PFS_CHANGE_UPDATE};
	int error = 0;

	for (size_t i = 1; i < from->newer.n && !error; i++) {
		struct pfs_from_node *node = &from->newer.nodes[i];

		if (node->blocked)
			continue;
		if (!node->place && S_ISDIR(node->attr.st_mode))
			error = make_directory(from, &set, node);
		else if (node->place && node->moves)
			error = pfs_change_set_move(&set, node->place, parent_of(from, node),
						    pfs_from_name(node->path));
	}
	if (!error)
		error = change(from, &set);
	pfs_change_set_finish(&set);
	return error;
}

static int fetch_primes(struct pfs_from_lists *from)
{
	bool directories = false, others = false;

	for (size_t i = 1; i < from->newer.n; i++) {
		const struct pfs_from_node *node = &from->newer.nodes[i];

		directories |= !node->place && S_ISDIR(node->attr.st_mode);
		others |= !node->place && !S_ISDIR(node->attr.st_mode);
	}
	return pfs_follow_fetch(from->options.tree, directories, others);
}

static int settle_places(struct pfs_from_lists *from)
{
	int error;

	PFS_TRY(fetch_primes(from));
	pfs_follow_hold(from->options.tree);
	error = clear_names(from);
	if (!error)
		error = place_all(from);
	pfs_follow_let_go(from->options.tree);
	return error;
}

/* ---- what is in them ---- */

static int make_other(struct pfs_from_lists *from, struct pfs_from_node *node)
{
	const char *name = pfs_from_name(node->path);
	const struct pfs_caller who = caller();
	char target[PATH_MAX];
	struct pfs_entry entry;

	if (S_ISLNK(node->attr.st_mode)) {
		PFS_TRY(pfs_tree_readlink(from->options.newer, target, node->ino));
		PFS_TRY(pfs_tree_symlink(from->options.tree, &entry, parent_of(from, node), name,
					 target, &who));
	} else {
		PFS_TRY(pfs_tree_make(from->options.tree, &entry, parent_of(from, node), name,
				      node->attr.st_mode, node->attr.st_rdev, &who));
	}
	return made(from, node, &entry);
}

/* The target of a symlink cannot be changed, so the symlink is made anew. */
static int remake_link(struct pfs_from_lists *from, struct pfs_from_node *node)
{
	PFS_TRY(pfs_tree_unlink(from->options.tree, parent_of(from, node),
				pfs_from_name(node->path)));
	return make_other(from, node);
}

static int settle_one(struct pfs_from_lists *from, struct pfs_from_node *node)
{
	bool is_new = node->place && (node->other == PFS_FROM_NONE ||
				      from->old.nodes[node->other].other == PFS_FROM_NONE);

	if (!node->place) {
		is_new = true;
		PFS_TRY(make_other(from, node));
	} else if (node->changes && S_ISLNK(node->attr.st_mode)) {
		is_new = true;
		PFS_TRY(remake_link(from, node));
	}
	if (is_new && node->other != PFS_FROM_NONE && !S_ISLNK(node->attr.st_mode))
		PFS_TRY(pfs_from_take_attributes(from, node->place,
						 from->old.nodes[node->other].ino));
	return node->changes ? pfs_from_take_values(from, node, is_new) : 0;
}

static int settle_values(struct pfs_from_lists *from)
{
	int error = 0;

	for (size_t i = 1; i < from->newer.n && !error;) {
		pfs_follow_hold(from->options.tree);
		for (unsigned n = 0; i < from->newer.n && n < AT_ONCE && !error; i++) {
			struct pfs_from_node *node = &from->newer.nodes[i];

			if (node->blocked && !node->place)
				continue;
			if (!node->place || node->changes) {
				error = settle_one(from, node);
				n++;
			}
		}
		pfs_follow_let_go(from->options.tree);
	}
	return error;
}

/* ---- what goes ---- */

static int remove_gone(struct pfs_from_lists *from)
{
	struct pfs_change_set set = {.kind = PFS_CHANGE_REMOVE};
	int error = 0;

	for (size_t i = 1; i < from->old.n && !error; i++) {
		if (!is_gone(&from->old.nodes[i]))
			continue;
		error = pfs_grow(&set.list, &set.capacity, set.n + 1, sizeof(*set.list));
		if (!error)
			set.list[set.n++] = (struct pfs_change){.ino = from->old.nodes[i].ino};
	}
	if (!error)
		error = change(from, &set);
	pfs_change_set_finish(&set);
	return error;
}

/* Sets the times of directories, which additions and removals have changed. */
static int settle_times(struct pfs_from_lists *from)
{
	for (size_t i = 1; i < from->newer.n && from->options.archive; i++) {
		const struct pfs_from_node *node = &from->newer.nodes[i];
		const struct pfs_taking taking = {
			.attr = &node->attr,
			.set = PFS_SET_ATIME | PFS_SET_MTIME | PFS_SET_CTIME,
		};

		if (node->place && S_ISDIR(node->attr.st_mode))
			PFS_TRY(pfs_follow_take(from->options.tree, node->place, &taking));
	}
	return 0;
}

int pfs_from_apply(struct pfs_from_lists *from)
{
	PFS_TRY(settle_places(from));
	PFS_TRY(settle_values(from));
	PFS_TRY(remove_gone(from));
	PFS_TRY(settle_times(from));
	return pfs_tree_sync(from->options.tree);
}
